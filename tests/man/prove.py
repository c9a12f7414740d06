"""The proof that compare.py can fail: manuals and facts with one thing wrong,
each of which it must report, by its name.
"""

import copy
import re

import compare
import pod

BOGUS = 'bogus-word'

# Where an item stands for something in the code, both ways.
CHECKED = {
    compare.PLUGIN: ('PARAMETERS', 'DUMP-PLUGIN KEYS'),
    'twinlog': ('COMMANDS', 'OPTIONS', 'EXIT STATUS', 'STATES',
                'STATUS KEYS'),
    'twinlog-protocol': ('FRAMES',),
    'twinlog-state': ('FIELDS',),
    'twinlog-testing': ('scripts/quickstart', 'scripts/run-tests',
                        'scripts/install-packages', 'twinlog-sim',
                        'twinlog-explore', 'twinlog-threads'),
    'twinlog-arbiter-file': ('COMMANDS',),
    'twinlog-failover': ('OPTIONS',),
    'twinlog-move': ('OPTIONS',),
}

# Its text is about itself, or it stands for another item as well.
NOT_ITEMS = {'SIZE', '-h'}


def doctored(pages, name, old, new, after=''):
    """PAGES with the first OLD of page NAME, behind AFTER, replaced."""
    text = pages[name].text
    at = text.index(old, text.index(after))
    return {**pages, name: pod.Page(name, text[:at] + new +
                                    text[at + len(old):])}


class Proof:
    def __init__(self, facts, pages):
        self.facts, self.pages = facts, pages
        self.missed, self.tried = [], 0

    def expect(self, what, word, pages=None, facts=None):
        self.tried += 1
        problems = compare.compare(facts or self.facts, pages or self.pages)
        if not any(word in problem for problem in problems):
            self.missed.append(f'not noticed: {what} (reported: {problems})')

    def manual(self):
        for name, heads in CHECKED.items():
            page = self.pages[name]
            for head in heads:
                line = next(line for line in (f'=head1 {head}',
                                              f'=head2 {head}')
                            if line + '\n' in page.text)
                self.expect(f'{name}, {head}: an item more', BOGUS, doctored(
                    self.pages, name, '=over 4\n',
                    f'=over 4\n\n=item B<--{BOGUS}=>\n', after=line))
                for item in page.among(head):
                    if item.key in NOT_ITEMS or item.line == '*':
                        continue
                    self.expect(
                        f'{name}, {head}: without {item.line}',
                        item.key.rstrip('='), doctored(
                            self.pages, name, f'=item {item.line}\n', '',
                            after=line))
        for word, new in (('B<write> (3)', 'B<write> (4)'),
                          ('Flag 1 (I<full>)', 'Flag 4 (I<full>)'),
                          ('bytes 8 to 15', 'bytes 8 to 16'),
                          ('\n     160      8', '\n     160      4'),
                          ('\n  unknown frame type', ''),
                          ('\n  bad header checksum',
                           f'\n  bad header checksum\n  {BOGUS}')):
            self.expect(f'{word} became {new}', 'twinlog-protocol', doctored(
                self.pages, 'twinlog-protocol', word, new))
        self.expect('a request option less', 'disconnect', doctored(
            self.pages, 'twinlog', '"disconnect": true', '"lost": true'))
        self.expect('a log line that nobody writes', BOGUS, doctored(
            self.pages, compare.PLUGIN, 'C<Secondary: REASON>',
            f'C<Secondary {BOGUS}>'))
        self.expect('a message that nobody gives', BOGUS, doctored(
            self.pages, 'twinlog-state', 'C<it is empty>', f'C<{BOGUS}>'))
        self.expect('a link to nowhere', 'twinlog-none', doctored(
            self.pages, 'twinlog', 'L<twinlog-state(5)>',
            'L<twinlog-none(5)>'))
        self.expect('a link to a wrong section', 'twinlog-state.7', doctored(
            self.pages, 'twinlog', 'L<twinlog-state(5)>',
            'L<twinlog-state(7)>'))

    def code(self):
        """Facts that the manual does not have, and some that are gone."""
        for kind, fact in self.facts.items():
            if kind == 'literals':
                continue
            for facts, word in self.changed(kind, fact):
                self.expect(f'{kind}: {word} changed in the code', word,
                            facts=facts)

    def changed(self, kind, fact):
        def facts(new):
            return {**self.facts, kind: new}

        if kind == 'states':
            yield facts((fact[0] | {BOGUS}, fact[1])), BOGUS
            yield facts((fact[0], fact[1] | {BOGUS})), BOGUS
            for word in fact[0]:
                yield facts((fact[0] - {word}, fact[1])), word
        elif kind == 'numbers':
            for page, head, words in fact:
                more = re.sub(r'\d+', lambda n: n.group(0) + '7', words)
                yield facts([(page, head, more)]), more
        elif isinstance(fact, dict):
            value = next(iter(fact.values()))
            yield facts({**fact, BOGUS: value}), BOGUS
            for word, below in fact.items():
                less = copy.copy(fact)
                del less[word]
                yield facts(less), word
                if isinstance(below, set):
                    yield facts({**fact, word: below | {f'--{BOGUS}'}}), BOGUS
        elif kind in ('header', 'hello'):
            first, width = max(fact)
            yield facts({*fact, (first + 8, width + 8)}), str(first + 8)
        else:
            one = next(iter(fact))
            more = (BOGUS,) * len(one) if isinstance(one, tuple) else BOGUS
            yield facts({*fact, more}), BOGUS
            if kind != 'status words':
                for word in fact:
                    yield facts(set(fact) - {word}), compare.show(word)


def prove(facts, pages):
    """What was not noticed, a line each."""
    proof = Proof(facts, pages)
    proof.manual()
    proof.code()
    print(f'{proof.tried} damages tried, {len(proof.missed)} not noticed')
    return proof.missed
