"""What the code takes, prints and answers: read from the sources, and asked
of the programs that were built.
"""

import json
import os
import random
import re
import socket
import subprocess
import tempfile
import time

import compare

SOURCE = os.environ.get('TWINLOG_SOURCE') or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('TWINLOG_BUILD') or os.path.join(SOURCE, 'build')
PLUGIN = os.path.join(BUILD, 'plugins/twinlog/nbdkit-twinlog-plugin.so')
TWINLOG = os.path.join(BUILD, 'client/twinlog')
SIM = os.path.join(BUILD, 'tests/sim/twinlog-sim')
THREADS = os.path.join(BUILD, 'tests/threads/twinlog-threads')
EXPLORE = os.path.join(BUILD, 'tests/explore/twinlog-explore')
SCRIPTS = ('quickstart', 'zfs-lab', 'bench-zfs', 'bench', 'run-tests',
           'install-packages')

ENVIRONMENT = {**os.environ, 'LC_ALL': 'C',
               'LD_PRELOAD': os.environ.get('TWINLOG_PRELOAD', '')}


def source(path):
    with open(os.path.join(SOURCE, path), encoding='utf-8') as file:
        return file.read()


def found(what, words):
    """WORDS, of which there must be some: or else the code has changed its
    form, and this test looks in the wrong place.
    """
    if not words:
        raise SystemExit(f'check-man: found no {what} in the code')
    return words


def run(*command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=60, env=ENVIRONMENT, check=False)
    if result.returncode != 0:
        raise SystemExit(f'check-man: {" ".join(command)}: status '
                         f'{result.returncode}: {result.stderr.strip()}')
    return result.stdout


def long_options(text):
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]*', text))


# ---- The plugin ----

def parameters():
    table = re.findall(r'\[TL_KEY_\w+\] = \{"([^"]+)"',
                       source('plugins/twinlog/values.c'))
    return found('parameters', set(table)) | {'config'}


def plugin_help():
    """The parameters that `nbdkit --help PLUGIN` tells."""
    return found('parameters in --help', set(re.findall(
        r'^\[?([a-z-]+)=', run('nbdkit', PLUGIN, '--help'), re.MULTILINE)))


def policies():
    return found('policies', set(re.findall(
        r'\[TL_POLICY_\w+\] = "(\w+)"', source('plugins/twinlog/values.c'))))


def dump_keys():
    return found('keys of --dump-plugin', set(re.findall(
        r'^(twinlog_\w+)=', run('nbdkit', '--dump-plugin', PLUGIN),
        re.MULTILINE)))


# ---- The command ----

def commands():
    """Each command and its options."""
    text = run(TWINLOG, '--help')
    text = text[text.index('Commands:'):text.index('Options')]
    return found('commands', {
        name: long_options(rest)
        for name, rest in re.findall(r'^  ([a-z-]+)(.*)', text, re.MULTILINE)})


def options():
    text = run(TWINLOG, '--help')
    return found('options', set(re.findall(
        r'^  (--[a-z-]+)', text[text.index('Options'):], re.MULTILINE))) | \
        {'-h'}


def exit_statuses():
    block = re.search(r'enum tl_status_code \{(.*?)\};',
                      source('server/core/core.h'), re.DOTALL)
    return found('exit statuses',
                 set(re.findall(r'= (\d+)', block.group(1) if block else '')))


def states():
    """The words of `wait`, and those that a node shows."""
    waited = set(re.findall(r'^    \{"(\w+)",', source('client/wait.c'),
                            re.MULTILINE))
    shown = set(re.findall(r'\[TL_(?:DISK|LINK)_\w+\] = "(\w+)"',
                           source('server/core/status.c')))
    return found('states', waited), found('states', shown)


def requests():
    """What the control socket takes: each command and its options."""
    table = re.search(r'commands\[\] = \{\n(.*?)\n\};',
                      source('server/net/command.c'), re.DOTALL)
    return found('requests', {
        name: set(re.findall(r'\{"(\w+)", TL_', rest))
        for name, rest in re.findall(r'^    \{"([\w-]+)",(.*?)\}\},$',
                                     table.group(1) if table else '',
                                     re.MULTILINE | re.DOTALL)})


def free_port():
    """Below the range that outgoing connections get theirs from."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
                return port
            except OSError:
                pass


def paths_of(value, path=()):
    for key, below in value.items():
        yield path + (key,)
        if isinstance(below, dict):
            yield from paths_of(below, path + (key,))


def ask_status(directory):
    """The status of a node that is started for this."""
    control = os.path.join(directory, 'ctl')
    node = subprocess.Popen(
        ['nbdkit', '-f', '--exit-with-parent', '--unix',
         os.path.join(directory, 'sock'), PLUGIN, '1M', 'name=check',
         'node=a', f'listen=127.0.0.1:{free_port()}',
         f'peer=127.0.0.1:{free_port()}', f'control={control}',
         f'state={directory}/state', 'lock=off'],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    try:
        end = time.monotonic() + 20
        while node.poll() is None and time.monotonic() < end:
            answer = subprocess.run(
                [TWINLOG, '--control', control, 'status', '--json'],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                timeout=60, check=False)
            if answer.returncode == 0:
                return json.loads(answer.stdout)
            time.sleep(0.05)
    finally:
        node.terminate()
        try:
            said, _ = node.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            node.kill()
            said, _ = node.communicate()
    raise SystemExit(f'check-man: a node did not answer status: {said}')


def status_keys():
    """The paths of all keys of `status --json`, as a node answers them."""
    # Another process may take the port first: a new one then.
    for attempt in range(3):
        with tempfile.TemporaryDirectory(prefix='twinlog-man-') as directory:
            try:
                return set(paths_of(ask_status(directory)))
            except SystemExit:
                if attempt == 2:
                    raise
    return set()


def status_words():
    """All that may be a key in the source of the answers."""
    return found('keys of status', set(re.findall(
        r'"([a-z][a-z0-9-]+)"', source('server/net/status_json.c'))))


# ---- The formats ----

def frames():
    """Each frame type and its number."""
    block = re.search(r'enum tl_frame_type \{(.*?)\};',
                      source('server/core/frame.h'), re.DOTALL)
    enum = re.sub(r'/\*.*?\*/', '', block.group(1), flags=re.DOTALL)
    numbers = {word: number for number, word in
               enumerate(re.findall(r'TL_\w+', enum), 1)}
    names = re.findall(r'\[(TL_\w+)\] = \{"([^"]+)"',
                       source('server/core/frame.c'))
    return found('frames', {name: numbers[word] for word, name in names})


def frame_flags():
    """(type, flag's name, its bits)"""
    text = source('server/core/frame.h')
    text = text[text.index('/* Flags. */'):text.index('struct tl_frame {')]
    return found('flags', {
        (kind, name.lower(), int(bits)) for name, bits, kind in
        re.findall(r'#define TL_(\w+) +(\d+)u +/\* ([\w-]+)', text)})


def function(text, name):
    """The body of a function."""
    match = re.search(r'^' + name + r' \(.*?^\}', text,
                      re.MULTILINE | re.DOTALL)
    return match.group(0) if match else ''


def frame_errors():
    text = source('server/core/frame.c')
    words = re.findall(r'"([^"]+)"', function(text, 'check_limits') +
                       function(text, 'tl_frame_decode'))
    words += re.findall(r'bad = "([^"]+)"',
                        function(source('server/net/receive.c'), 'collect') +
                        function(source('server/net/compress.c'),
                                 'tl_expand_decode'))
    return found('errors of frames', set(words))


def header_bytes():
    """The fields of a header: (first byte, last byte)."""
    text = function(source('server/core/frame.c'), 'tl_frame_encode')
    return found('the header', spans(
        [int(n) for n in re.findall(r'tl_put \(&at, .*, (\d+)\);', text)]))


def spans(widths):
    fields, at = [], 0
    for width in widths:
        fields.append((at, at + width - 1))
        at += width
    return fields


def hello_fields():
    """(offset, bytes) of the fields of a hello before its view."""
    text = function(source('server/core/hello.c'), 'tl_hello_encode')
    widths = []
    for call, rest in re.findall(r'tl_put(_name|_bytes)? \(&at, (.*)\);',
                                 text[:text.index('put_view')]):
        widths.append({'_name': 64, '_bytes': 16}.get(call) or
                      int(rest.rsplit(', ', 1)[1]))
    return found('the hello', {(first, last - first + 1)
                               for first, last in spans(widths)})


def constant(path, name):
    """The value of a #define."""
    text = source(path)
    match = re.search(r'#define ' + name + r' (.*?)(?: /\*.*)?$', text,
                      re.MULTILINE)
    if not match:
        raise SystemExit(f'check-man: {path} does not define {name}')
    value = re.sub(r'\b(\d+)u\b', r'\1', match.group(1)).strip('"')
    value = value.replace('/', '//')
    value = re.sub(r'TL_\w+|SECOND', lambda word: str(constant(
        path, word.group(0))), value)
    return eval(value, {'__builtins__': {}})  # digits and operators


def state_keys():
    return found('keys of the state file', set(re.findall(
        r'json_object_get \(\w+, "([^"]+)"\)',
        source('server/state/record.c'))))


def literals():
    """All string literals of the node and the plugin, with each conversion
    as %.
    """
    text = ''
    for folder in ('server/core', 'server/net', 'server/state',
                   'plugins/twinlog'):
        for name in sorted(os.listdir(os.path.join(SOURCE, folder))):
            if name.endswith('.c'):
                text += source(f'{folder}/{name}')
    text = re.sub(r'"\s*PRI\w+\s*"', 'u', text)
    text = re.sub(r'"\s*PRI\w+', 'u"', text)
    text = re.sub(r'"\s*\n\s*"', '', text)
    text = re.sub(r'%[-0-9.*]*(?:ll|z)?[a-zA-Z]', '%', text)
    return found('texts', re.findall(r'"((?:[^"\\\n]|\\.)*)"', text))


# ---- Scripts ----

def script_options():
    """The options of each program of twinlog-testing(7)."""
    result = {}
    for name in SCRIPTS:
        path = f'scripts/{name}'
        taken = re.findall(r'^ *((?:-\w+ \| )*--[a-z-]+)\)', source(path),
                           re.MULTILINE)
        result[path] = found(f'options of {name}', long_options(
            ' '.join(taken) + '\n' + run(os.path.join(SOURCE, path), '--help')))
    for name, file, program in (
            ('twinlog-sim', 'tests/sim/main.c', SIM),
            ('twinlog-explore', 'tests/explore/main.c', EXPLORE)):
        known = re.findall(r'\{"([a-z-]+)", (?:no|required)_argument',
                           source(file))
        result[name] = found(f'options of {name}', {
            '--' + word for word in known} |
            long_options(run(program, '--help')))
    known = re.findall(r'\{"([a-z-]+)", (?:no|required)_argument',
                       source('tests/threads/main.c'))
    result['twinlog-threads'] = found('options of twinlog-threads', {
        '--' + word for word in known} | long_options(run(THREADS, '--help')))
    # Every program has --help; the manual says so once.
    return {name: words - {'--help'} for name, words in result.items()}


def takeover_options():
    """The options of the two scripts that move a volume and its pools."""
    both = source('scripts/lib/takeover.sh')
    return {name: found(f'options of {name}', set(re.findall(
        r'^ *(?:-\w+ \| )*(--[a-z-]+)\)',
        source(f'scripts/{name}') + both, re.MULTILINE)) | long_options(
            run(os.path.join(SOURCE, f'scripts/{name}'), '--help')))
            for name in compare.TAKEOVER}


def test_variables():
    return found('variables', set(re.findall(
        r'\$\{(TWINLOG_\w+)', source('scripts/run-tests'))) |
        set(re.findall(r'^  (TWINLOG_\w+)', run(
            os.path.join(SOURCE, 'scripts/run-tests'), '--help'),
            re.MULTILINE)))


def arbiter_commands():
    text = source('scripts/twinlog-arbiter-file')
    block = re.search(r'case \$command in(.*?)esac', text, re.DOTALL)
    return found('commands of the arbiter', set(re.findall(
        r'^ *([a-z]+)\)', block.group(1) if block else '', re.MULTILINE)))


def pages():
    """The pages that are built, and their sections."""
    text = source('man/meson.build')
    block = text[text.index('manual_pages = {'):text.index('}')]
    return found('pages', dict(re.findall(r"'([\w-]+)': '(\d)'", block)))
