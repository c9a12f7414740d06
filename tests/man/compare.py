"""Does the manual say what the code does, and nothing else?

Pure: FACTS come from extract.py, a manual is a dictionary of pages.
"""

import json
import re

import pod

PLUGIN = 'nbdkit-twinlog-plugin'
TAKEOVER = ('twinlog-failover', 'twinlog-move')
LOG_WORDS = re.compile(r'\b(?:NODE|ROLE|REASON|ADDRESS|KIND|N)\b')


class Report:
    def __init__(self):
        self.problems = []

    def say(self, page, text):
        self.problems.append(f'man/{page}.pod: {text}')

    def both(self, page, what, code, manual):
        """The same things on both sides, or each difference by its name."""
        for missing in sorted(map(show, set(code) - set(manual))):
            self.say(page, f'{what} {missing} is not documented')
        for extra in sorted(map(show, set(manual) - set(code))):
            self.say(page, f'{what} {extra} does not exist')


def show(thing):
    if isinstance(thing, tuple):
        return '.'.join(str(part) for part in thing)
    return str(thing)


def without(keys, end):
    return {key[:-len(end)] for key in keys if key.endswith(end)}


def plugin(report, facts, manual):
    page = manual[PLUGIN]
    keys = page.keys('PARAMETERS', depth=1)
    report.both(PLUGIN, 'parameter', facts['parameters'], without(keys, '='))
    report.both(PLUGIN, 'parameter of --help', facts['plugin help'],
                without(keys, '='))
    synopsis = page.section('SYNOPSIS')
    for key in sorted(facts['parameters']):
        if f'{key}=' not in synopsis:
            report.say(PLUGIN, f'parameter {key} is not in the synopsis')
    report.both(PLUGIN, 'policy', facts['policies'], {
        path[1] for path in page.paths('PARAMETERS')
        if path[0] == 'on-partner-loss=' and len(path) == 2})
    report.both(PLUGIN, 'key of --dump-plugin', facts['dump keys'],
                page.keys('DUMP-PLUGIN KEYS'))
    for item in page.among('LOG'):
        if item.key.startswith('nbdkit:'):
            continue  # its own
        text = LOG_WORDS.sub('%', item.key).removesuffix('...').strip()
        if not any(text in literal for literal in facts['literals']):
            report.say(PLUGIN, f'log line "{item.key}" does not exist')


def command(report, facts, manual):
    name = 'twinlog'
    page = manual[name]
    items = {item.key: set(re.findall(r'B<(--[a-z-]+)>', item.line))
             for item in page.among('COMMANDS')}
    report.both(name, 'command', facts['commands'], items)
    for key, options in facts['commands'].items():
        if key in items:
            report.both(name, f'option of {key}', options, items[key])
        if not re.search(rf'^ twinlog {key}\b', page.section('SYNOPSIS'),
                         re.MULTILINE):
            report.say(name, f'command {key} is not in the synopsis')
    report.both(name, 'option', facts['options'], page.keys('OPTIONS'))
    report.both(name, 'exit status', facts['exit statuses'],
                page.keys('EXIT STATUS'))
    waited, shown = facts['states']
    words = page.keys('STATES')
    report.both(name, 'state', waited, words)
    for word in sorted(shown - words):
        report.say(name, f'state {word} is not documented')
    report.both(name, 'key of status', facts['status keys'],
                page.paths('STATUS KEYS'))
    socket = page.section('THE CONTROL SOCKET')
    known = page.keys('STATUS KEYS') | set(re.findall(r'"([\w-]+)"', socket))
    for word in sorted(facts['status words'] - known):
        report.say(name, f'key of status {word} is not documented')
    shown = {}
    for line in pod.verbatim(socket):
        request = json.loads(line)
        name_of = request.pop('command')
        shown[name_of] = set(request)
    report.both(name, 'request', facts['requests'], shown)
    for key, options in facts['requests'].items():
        report.both(name, f'option of request {key}', options,
                    shown.get(key, options))


def protocol(report, facts, manual):
    name = 'twinlog-protocol'
    page = manual[name]
    items = {item.key: item for item in page.among('FRAMES')}
    report.both(name, 'frame', facts['frames'], items)
    for key, number in facts['frames'].items():
        if key in items and not items[key].line.endswith(f'({number})'):
            report.say(name, f'frame {key} is number {number}, not '
                             f'{items[key].line}')
    report.both(name, 'flag', facts['flags'], {
        (key, flag, int(bits)) for key, item in items.items()
        for bits, flag in re.findall(r'[Ff]lag (\d+) \(I<(\w+)>\)',
                                     item.body)})
    report.both(name, 'error', facts['frame errors'],
                {line.strip() for line in
                 pod.verbatim(page.section('ERRORS'))})
    layout = set()
    for item in page.among('HEADER'):
        first, last = re.match(r'bytes? (\d+)(?: (?:to|and) (\d+))?:',
                               item.key).groups()
        layout.add((int(first), int(last or first)))
    report.both(name, 'header field', facts['header'], layout)
    report.both(name, 'field of hello', facts['hello'], {
        (int(offset), int(width)) for offset, width in
        re.findall(r'^ +(\d+) +(\d+)  ', page.section('The hello'),
                   re.MULTILINE)})


def state(report, facts, manual):
    name = 'twinlog-state'
    page = manual[name]
    report.both(name, 'field', facts['state keys'], page.keys('FIELDS'))
    for item in page.among('WHEN IT IS LOST OR REFUSED'):
        for text in re.findall(r'C<([^<>]*)>', item.line):
            words = text.removesuffix('...').strip()
            if not any(words in literal for literal in facts['literals']):
                report.say(name, f'message "{text}" does not exist')


def programs(report, facts, manual):
    name = 'twinlog-testing'
    page = manual[name]
    heads = {item.head2 for item in page.among('PROGRAMS')}
    report.both(name, 'program', facts['scripts'], heads)
    for program, options in facts['scripts'].items():
        keys = page.keys(program)
        report.both(name, f'option of {program}', options,
                    {key for key in keys if key.startswith('-')})
        for option in sorted(options):
            if option.startswith('--') and \
                    option not in page.section('SYNOPSIS'):
                report.say(name, f'option {option} of {program} is not in '
                                 'the synopsis')
    report.both(name, 'variable', facts['variables'],
                {key for key in page.keys('scripts/run-tests')
                 if key.isupper()})
    report.both('twinlog-arbiter-file', 'command', facts['arbiter commands'],
                manual['twinlog-arbiter-file'].keys('COMMANDS'))


def takeover(report, facts, manual):
    report.both('*', 'page of a script', facts['takeover'],
                {name for name in manual if f'scripts/{name}>' in
                 manual[name].section('DESCRIPTION')} & set(TAKEOVER))
    for name, options in facts['takeover'].items():
        report.both(name, 'option', options, manual[name].keys('OPTIONS'))
        for option in sorted(options - {'--help'}):
            if option not in manual[name].section('SYNOPSIS'):
                report.say(name, f'option {option} is not in the synopsis')


def numbers(report, facts, manual):
    """Figures of the code, in the words that the manual has for them."""
    for page, head, words in facts['numbers']:
        text = ' '.join(manual[page].section(head).split())
        if words not in text:
            report.say(page, f'{head} does not say "{words}"')


def shape(report, facts, manual):
    """What every page has, and where its links lead."""
    report.both('*', 'page', facts['pages'], manual)
    for name, page in manual.items():
        for head in ('NAME', 'DESCRIPTION', 'SEE ALSO'):
            if head not in page.sections:
                report.say(name, f'there is no {head}')
        if not page.section('NAME').startswith(f'{name} - '):
            report.say(name, 'NAME has another name')
        if not page.text.isascii():
            report.say(name, 'there are characters beyond ASCII')
        for line in page.text.splitlines():
            if len(line) > 80 and not line.startswith(' twinlog1:'):
                report.say(name, f'a line is too long: {line}')
        links = set(re.findall(r'L<(?:[^|<>]*\|)?([\w-]*twinlog[\w-]*)'
                               r'\((\d)\)>', page.text))
        report.both(name, 'link',
                    {link for link in links if link in
                     set(facts['pages'].items())}, links)
        for other in links:
            if other == (name, facts['pages'].get(name)):
                report.say(name, 'it links to itself')


def compare(facts, manual):
    """Every difference between FACTS and MANUAL, a line each."""
    report = Report()
    for part in (plugin, command, protocol, state, programs, takeover, numbers,
                 shape):
        try:
            part(report, facts, manual)
        except (KeyError, AttributeError, IndexError, ValueError) as error:
            report.problems.append(f'{part.__name__}: the manual has lost '
                                   f'its form: {error!r}')
    return report.problems
