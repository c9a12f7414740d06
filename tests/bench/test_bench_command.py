"""`twinlog bench`: what it prints, what it leaves, and what it refuses."""

import json
import os
import signal
import subprocess
import time
import xml.etree.ElementTree

import pair

SMALL = ('--size', '4K,128K', '--depth', '1,8', '--connections', '1,2',
         '--seconds', '0.05')
FIGURES = ('iops', 'bytes-per-second', 'p50-us', 'p99-us', 'p999-us')
KEYS = {'pattern', 'size', 'depth', 'connections', 'done', *FIGURES, 'limit',
        'cpu-us', 'projected'}
SIDES = ('client', 'primary', 'secondary')


def bench(*words, expect=pair.DONE, **keywords):
    result = pair.run([pair.TWINLOG, *words], **keywords)
    text = (result.stdout + result.stderr).strip()
    pair.equal(result.returncode, expect, f'{" ".join(words)}: {text!r}')
    if expect != pair.DONE:
        pair.equal(result.stdout, '', 'standard output')
        pair.check(result.stderr.startswith('twinlog: ')
                   and result.stderr.count('\n') == 1,
                   f'not one line: {result.stderr!r}')
        return result.stderr
    pair.equal(result.stderr, '', 'standard error')
    return result.stdout


def own_directory():
    """A TMPDIR for the bench, and the environment that names it."""
    directory = os.path.join(pair.make_directory(), 'tmp')
    os.mkdir(directory)
    return directory, {**os.environ, 'TMPDIR': directory}


def processes_of(directory):
    """Those whose command line names the directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                if directory.encode() in file.read():
                    found.append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def nothing_left(directory):
    pair.wait_for(lambda: not os.listdir(directory), 'the files are gone')
    pair.wait_for(lambda: not processes_of(directory), 'the nodes are gone')


def check_row(row, known):
    pair.equal(set(row), KEYS, 'keys of a row')
    for key in FIGURES:
        pair.check(row[key] > 0, f'{key} of {row}')
    pair.check(row['p50-us'] <= row['p99-us'] <= row['p999-us'],
               f'percentiles of {row}')
    if row['pattern'] == 'writes':
        pair.check(abs(row['iops'] * row['size'] / row['bytes-per-second'] - 1)
                   < 0.001, f'bytes of {row}')
    else:
        pair.equal((row['size'], row['depth']), (0, 1), f'chains of {row}')
        length = row['bytes-per-second'] / row['iops']
        pair.check(8 << 10 <= length <= 512 << 10, f'{length} bytes a chain')
    for side in SIDES:
        value = row['cpu-us'][side]
        pair.check(value > 0 if side in known else value is None,
                   f'CPU of the {side} in {row}')


def points(rows):
    return sorted((row['pattern'], row['size'], row['depth'],
                   row['connections']) for row in rows)


def check_rows(rows, known, flush):
    expected = [('writes', size, depth, connections)
                for size in (4096, 131072) for depth in (1, 8)
                for connections in (1, 2)]
    expected += [(pattern, 0, 1, connections) for connections in (1, 2)
                 for pattern in (['zil', 'zil+flush'] if flush else ['zil'])]
    pair.equal(points(rows), sorted(expected), 'rows')
    for row in rows:
        check_row(row, known)


def test_throw_away():
    directory, environment = own_directory()
    answer = json.loads(bench('bench', *SMALL, '--json', '--link', '10,25',
                              env=environment))
    pair.equal(os.listdir(directory), [], 'left behind')
    pair.equal(processes_of(directory), [], 'left behind')
    check_rows(answer['rows'], SIDES, True)
    for row in answer['rows']:
        if row['pattern'] == 'writes':
            pair.check(row['projected']['iops'] > 0, f'projection of {row}')
            pair.equal(row['projected']['p50-us'] is not None,
                       row['depth'] * row['connections'] == 1, f'{row}')
        else:
            pair.equal(row['projected'], None, 'projection of a chain')
    pings = answer['link']['pings']
    pair.equal([ping['size'] for ping in pings], [4096, 131072], 'pings')
    for ping in pings:
        pair.check(0 < ping['p50-us'] <= ping['p99-us'], f'{ping}')
    pair.check(answer['link']['bytes-per-second'] > 0, 'rate of the link')
    pair.contains(answer['sentence'], ['What limits the pair'], 'sentence')


def test_table_and_picture():
    pair.requires_program('gnuplot')
    directory, environment = own_directory()
    picture = os.path.join(pair.make_directory(), "it's.svg")
    text = bench('bench', '--size', '4K,64K', '--depth', '1,2',
                 '--connections', '1', '--seconds', '0.05', '--plot', picture,
                 env=environment)
    pair.contains(text, ['4 KiB', '64 KiB', 'zil+flush', 'p99.9',
                         'throw-away pair', 'What limits the pair'], 'table')
    with open(picture, encoding='utf-8') as file:
        drawing = file.read()
    pair.check(xml.etree.ElementTree.fromstring(drawing).tag.endswith('svg'),
               'no SVG')
    pair.contains(drawing, ['4 KiB, 1 conn', '64 KiB, 1 conn',
                            'writes a second'], 'picture')
    pair.equal(os.listdir(directory), [], 'left behind')


def start_long():
    """A bench that would take a minute, and its nodes' process ids."""
    directory, environment = own_directory()
    process = subprocess.Popen(
        [pair.TWINLOG, 'bench', '--size', '4K', '--depth', '1', '--seconds',
         '10'], env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=pair.die_with_parent)
    pair.wait_for(lambda: len(processes_of(directory)) >= 2, 'nodes', 20)
    return directory, process


def clients_of(directory):
    """How many NBD clients the pair's first node has."""
    for name in os.listdir(directory):
        result = pair.run([pair.TWINLOG, '--control',
                           os.path.join(directory, name, 'a.ctl'), 'status',
                           '--json'])
        if result.returncode == pair.DONE:
            return json.loads(result.stdout)['clients']
    return 0


def test_ended():
    """However it is ended, at its start or later, nothing stays."""
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT,
                   signal.SIGHUP):
        for under_load in (False, True):
            directory, process = start_long()
            if under_load:
                pair.wait_for(lambda: clients_of(directory) > 0, 'load', 20)
            process.send_signal(number)
            process.communicate(timeout=20)
            pair.equal(process.returncode, -number, 'end')
            nothing_left(directory)


def test_node_dies():
    """A node that ends is an error at once."""
    for name in ('node=a', 'node=b'):
        directory, process = start_long()
        pair.wait_for(lambda: clients_of(directory) > 0, 'load', 20)
        for pid in processes_of(directory):
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            if name.encode() in words:
                os.kill(pid, signal.SIGKILL)
        if name == 'node=b':  # the arbiter lets the primary go on alone
            process.terminate()
        _, error = process.communicate(timeout=20)
        if name == 'node=a':
            pair.check(process.returncode in (pair.FAILED, pair.UNREACHABLE),
                       f'exit status {process.returncode}')
            pair.equal(error.count('\n'), 1, f'lines of {error!r}')
        nothing_left(directory)


def test_volume():
    """An existing one is written over only where that is said."""
    both = pair.Pair(size='64M').create()
    words = ('--socket', both.a.socket, '--control', both.a.control, 'bench',
             'slog0', *SMALL)
    client = both.a.connect()
    client.pwrite(b'precious' * 512, 0)
    error = bench(*words, expect=pair.REFUSED)
    pair.contains(error, ['--overwrite'], 'refusal')
    error = bench(*words, '--overwrite', expect=pair.REFUSED)
    pair.contains(error, ['another NBD client'], 'refusal')
    pair.equal(bytes(client.pread(8, 0)), b'precious', 'content')
    client.shutdown()
    both.a.wait(clients=0)
    both.b.wait(role='Secondary')
    error = bench('--socket', both.b.socket, '--control', both.b.control,
                  'bench', 'slog0', '--overwrite', expect=pair.REFUSED)
    pair.contains(error, ['not the primary'], 'refusal')

    answer = json.loads(bench(*words, '--overwrite', '--json'))
    check_rows(answer['rows'], ('client', 'primary'), False)
    pair.equal(answer['link'], None, 'link')
    both.a.wait(clients=0)
    both.a.twinlog('verify', expect=pair.DONE)
    status = both.a.status()
    pair.equal(status['counters']['failed'], 0, 'failed requests')
    written = sum(row['done'] for row in answer['rows']
                  if row['pattern'] == 'writes')
    pair.check(status['counters']['writes'] >= written,
               f'{status["counters"]} for {written} measured writes')


def test_flush():
    """Chains end with a flush where the export offers it."""
    both = pair.Pair(size='16M', flush='on').create()
    answer = json.loads(bench('bench', '--socket', both.a.socket,
                              '--overwrite', *SMALL, '--json'))
    check_rows(answer['rows'], ('client', 'primary'), True)
    pair.check(both.a.status()['counters']['flushes'] > 0, 'flushes')


def test_content():
    """What a file holds is what is written."""
    both = pair.Pair(size='1M').create()
    path = os.path.join(pair.make_directory(), 'content')
    content = os.urandom(pair.BLOCK)
    with open(path, 'wb') as file:
        file.write(content)
    words = ('bench', '--uri', both.a.uri(), '--overwrite', '--size', '8K',
             '--depth', '4', '--connections', '1', '--seconds', '0.05',
             '--content')
    bench(*words, path)
    client = both.a.connect()
    blocks = {bytes(client.pread(pair.BLOCK, offset))
              for offset in range(0, pair.MIB, pair.BLOCK)}
    client.shutdown()
    pair.check(content in blocks, 'the content was not written')
    pair.equal(blocks - {content, bytes(pair.BLOCK)}, set(), 'other content')
    with open(path, 'wb'):
        pass
    for wrong in (path, path + '.none'):
        error = bench(*words, wrong, expect=pair.FAILED)
        pair.contains(error, ['cannot read', wrong], 'error')


def test_write_fails():
    both = pair.Pair(size='16M', arbiter=None, deadline=1).create()
    process = subprocess.Popen(
        [pair.TWINLOG, 'bench', '--uri', both.a.uri(), '--overwrite',
         '--seconds', '20'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=pair.die_with_parent)
    both.a.wait(clients=1)
    both.b.kill()
    output, error = process.communicate(timeout=30)
    pair.equal(process.returncode, pair.FAILED, f'exit status: {error!r}')
    pair.equal(output, '', 'standard output')
    pair.contains(error, ['a request failed'], 'error')
    pair.equal(error.count('\n'), 1, f'lines of {error!r}')


def test_ping():
    """Against what answers elsewhere; not a node's own port."""
    both = pair.Pair(size='16M').create()
    place = f'127.0.0.1:{pair.free_port()}'
    process = subprocess.Popen(
        [pair.TWINLOG, 'bench', '--answer', place], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, text=True, preexec_fn=pair.die_with_parent)
    try:
        pair.contains(process.stdout.readline(), ['answering', place],
                      'answer')
        words = ('bench', '--socket', both.a.socket, '--overwrite', *SMALL,
                 '--json', '--ping')
        answer = json.loads(bench(*words, place))
        pair.equal([ping['size'] for ping in answer['link']['pings']],
                   [4096, 131072], 'pings')
        bench('bench', '--answer', place, expect=pair.FAILED)
    finally:
        process.kill()
        process.communicate()
    error = bench(*words, place, expect=pair.UNREACHABLE)
    pair.contains(error, ['--answer', place], 'error')


def test_refused():
    bench('bench', '--size', '3', expect=pair.USAGE)
    bench('bench', '--depth', 'many', expect=pair.USAGE)
    bench('bench', '--connections', '1;4', expect=pair.USAGE)
    bench('bench', '--seconds', '-1', expect=pair.USAGE)
    bench('bench', '--link', 'fast', expect=pair.USAGE)
    bench('bench', '--ping', 'localhost:1', expect=pair.USAGE)
    bench('bench', '--alone', expect=pair.USAGE)
    bench('bench', '--overwrite', expect=pair.USAGE)
    bench('bench', '--plot', '/nonexistent/x.svg', expect=pair.FAILED)
    bench('bench', '--uri', 'nbd://127.0.0.1:1', expect=pair.REFUSED)
    bench('bench', '--uri', 'nbd://127.0.0.1:1', '--overwrite',
          expect=pair.UNREACHABLE)
    both = pair.Pair(size='1M').create()
    error = bench('bench', '--socket', both.a.socket, '--overwrite', '--size',
                  '2M', expect=pair.FAILED)
    pair.contains(error, ['too small'], 'error')


def test_missing_programs():
    directory, environment = own_directory()
    environment['PATH'] = directory
    error = bench('bench', '--plot', directory + '/x.svg', expect=pair.FAILED,
                  env=environment)
    pair.contains(error, ['gnuplot', 'not installed'], 'error')
    pair.equal(os.listdir(directory), [], 'left behind')
    began = time.monotonic()
    error = bench('bench', expect=pair.FAILED, env=environment)
    pair.contains(error, ['nbdkit'], 'error')
    pair.check(time.monotonic() - began < 20, 'it waited for a dead node')
    nothing_left(directory)


if __name__ == '__main__':
    pair.main(test_throw_away, test_table_and_picture, test_ended,
              test_node_dies, test_volume, test_flush, test_content,
              test_write_fails, test_ping, test_refused, test_missing_programs)
