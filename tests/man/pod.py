"""A manual page as the tests see it: sections, items and their text."""

import re

FORMAT = re.compile(r'[BCFI]<([^<>]*)>')


class Item:
    """One =item: where it stands, what it names, the text below it."""

    def __init__(self, head1, head2, paths, line):
        self.head1, self.head2 = head1, head2
        self.paths = paths  # of keys, one for each parent that it belongs to
        self.line = line
        self.body = ''

    @property
    def key(self):
        return self.paths[0][-1]


class Page:
    """TEXT is POD.  An item's key is the first marked word in it, or else all
    of it.  Items that follow each other without text between share what is
    below them, nested items too.
    """

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.sections = {}  # heading: its text
        self.items = []
        head1 = head2 = ''
        groups = []  # one list of items for each open =over
        fresh = []   # beside it: has text come since the last =item?
        for paragraph in re.split(r'\n\s*\n', text):
            paragraph = paragraph.strip('\n')
            word, _, rest = paragraph.partition(' ')
            if word == '=head1':
                head1, head2 = rest, ''
                self.sections[head1] = ''
                continue
            if word == '=head2':
                head2 = rest
                self.sections[rest] = ''
                continue
            if word == '=over':
                groups.append([])
                fresh.append(True)
                continue
            if word == '=back':
                groups.pop()
                fresh.pop()
                if fresh:
                    fresh[-1] = True
                continue
            if word == '=item':
                if fresh[-1]:
                    groups[-1] = []
                fresh[-1] = False
                if rest == '*':
                    continue
                marked = FORMAT.search(rest)
                key = marked.group(1) if marked else rest
                parents = [path for group in groups[-2:-1]
                           for item in group for path in item.paths] or [()]
                item = Item(head1, head2, [path + (key,) for path in parents],
                            rest)
                groups[-1].append(item)
                self.items.append(item)
                continue
            if fresh:
                fresh[-1] = True
            for group in groups:
                for item in group:
                    item.body += paragraph + '\n\n'
            for head in {head1, head2} - {''}:
                self.sections[head] += paragraph + '\n\n'

    def section(self, head):
        return self.sections.get(head, '')

    def among(self, head):
        """The items of a section, by its =head1 or =head2."""
        return [item for item in self.items if head in (item.head1,
                                                        item.head2)]

    def keys(self, head, depth=None):
        return {item.key for item in self.among(head)
                if depth is None or len(item.paths[0]) == depth}

    def paths(self, head):
        return {path for item in self.among(head) for path in item.paths}


def verbatim(text):
    """The lines of a section that are printed as they are."""
    return [line for line in text.splitlines() if line.startswith(' ')]
