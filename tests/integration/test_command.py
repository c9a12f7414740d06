"""The `twinlog` command: what it prints and how it ends."""

import json
import os
import re
import threading
import time

import pair

STATUS = {
    'name': str, 'node': str, 'role': str, 'disk-state': str,
    'connection-state': str, 'peer-node': (str, type(None)),
    'peer-role': str, 'peer-disk-state': str, 'view': dict, 'copies': int,
    'suspended': bool, 'suspended-reason': (str, type(None)),
    'may-promote': bool, 'may-promote-reason': (str, type(None)),
    'out-of-sync': int, 'percent-in-sync': (int, float),
    'estimated-seconds-to-finish': (int, float, type(None)),
    'ap-in-flight': int, 'size': int, 'uuid': (str, type(None)),
    'policy': str, 'arbiter': bool, 'deadline-seconds': (int, float),
    'seconds-since-change': (int, float),
    'seconds-since-peer': (int, float, type(None)),
    'disconnect-reason': (str, type(None)), 'trouble': (str, type(None)),
    'clients': int, 'resident-bytes': int, 'counters': dict,
    'latency-us': dict, 'verify': dict, 'compress': dict, 'paths': int,
}
VIEW = {'number': int, 'id': (str, int, type(None)),
        'primary': (str, type(None)), 'members': list}
COUNTERS = ('reads', 'writes', 'zeroes', 'flushes', 'failed', 'bytes-read',
            'bytes-written', 'resyncs', 'resyncs-full', 'promotions')
VERIFY = {'active': bool, 'interrupted': bool, 'checked-bytes': int,
          'different-bytes': int, 'seconds-since-end': (int, float, type(None))}
LATENCIES = ('p50', 'p99', 'p999')


def status_json(node):
    answer = node.twinlog('status', '--json', expect=pair.DONE)
    return json.loads(answer.stdout)


def check_shape(status):
    for key, kind in STATUS.items():
        pair.check(key in status, f'status has no {key}')
        pair.check(isinstance(status[key], kind),
                   f'{key} is {status[key]!r}')
        if kind is int:
            pair.check(not isinstance(status[key], bool), f'{key} is a bool')
    for key in status:
        pair.check(key in STATUS, f'status has a key {key} beyond the manual')
    for key, kind in VERIFY.items():
        pair.check(isinstance(status['verify'].get(key), kind),
                   f'verify has no {key}')
    for key, kind in VIEW.items():
        pair.check(isinstance(status['view'].get(key, Ellipsis), kind),
                   f'view: {status["view"]}')
    for key in COUNTERS:
        pair.check(isinstance(status['counters'].get(key), int),
                   f'counters: {status["counters"]}')
    for kind in ('read', 'write'):
        for key in LATENCIES:
            pair.check(key in status['latency-us'][kind],
                       f'latency-us: {status["latency-us"]}')


def test_status():
    both = pair.Pair()
    both.a.start()
    status = status_json(both.a)
    check_shape(status)
    for key, value in (
            ('name', 'slog0'), ('node', 'a'), ('role', 'Secondary'),
            ('disk-state', 'Empty'), ('connection-state', 'Connecting'),
            ('peer-role', 'Unknown'), ('peer-disk-state', 'DUnknown'),
            ('size', 16 * pair.MIB), ('policy', 'arbiter'),
            ('arbiter', True), ('deadline-seconds', 5), ('clients', 0),
            ('seconds-since-peer', None), ('paths', 0),
            ('may-promote', False)):
        pair.equal(status[key], value, key)
    pair.equal(status['view']['number'], 0, 'view')
    pair.equal(status['view']['members'], [], 'members')

    both.b.start()
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    client = both.a.connect()
    client.pwrite(b'x' * 4096, 0)
    client.pwrite(b'x' * 8192, 0)
    client.pread(4096, 0)
    client.zero(4096, 4096)
    status = status_json(both.a)
    check_shape(status)
    for key, value in (
            ('role', 'Primary'), ('disk-state', 'UpToDate'),
            ('connection-state', 'Connected'), ('peer-node', 'b'),
            ('peer-role', 'Secondary'), ('peer-disk-state', 'UpToDate'),
            ('copies', 2), ('suspended', False), ('out-of-sync', 0),
            ('percent-in-sync', 100), ('ap-in-flight', 0), ('clients', 1)):
        pair.equal(status[key], value, key)
    pair.equal(status['view']['members'], ['a', 'b'], 'members')
    pair.equal(status['view']['primary'], 'a', 'primary')
    pair.check(re.fullmatch(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
                            status['uuid']), f'uuid {status["uuid"]}')
    pair.check(status['seconds-since-peer'] < 10, 'seconds-since-peer')
    counters = status['counters']
    for key, value in (('reads', 1), ('writes', 2), ('zeroes', 1),
                       ('bytes-read', 4096), ('bytes-written', 12288),
                       ('failed', 0)):
        pair.equal(counters[key], value, key)
    write = status['latency-us']['write']
    pair.check(0 < write['p50'] <= write['p99'] <= write['p999'],
               f'latencies {write}')
    other = status_json(both.b)
    check_shape(other)
    pair.equal(other['view'], status['view'], 'view on both')
    pair.equal(other['uuid'], status['uuid'], 'uuid on both')
    pair.equal(other['peer-node'], 'a', 'peer-node')

    text = both.a.twinlog('status', expect=pair.DONE).stdout
    pair.contains(text, ['slog0', 'Primary', 'UpToDate', 'Connected',
                         'Secondary', 'b'], 'status as text')
    # The name of the volume may be given, and must be the node's.
    both.a.twinlog('status', 'slog0', expect=pair.DONE)


def test_create():
    both = pair.Pair().start()
    answer = both.a.twinlog('create', expect=pair.DONE)
    pair.check(answer.stdout.strip() and not answer.stderr,
               f'create said {answer.stdout!r} {answer.stderr!r}')
    both.wait_complete(both.a)
    pair.equal(both.a.get('view')['number'], 1, 'view')
    for node in both.nodes:
        for options in ((), ('--alone',)):
            answer = node.twinlog('create', *options, expect=pair.REFUSED)
            pair.equal(len(answer.stderr.strip().splitlines()), 1,
                       'lines of a refusal')
    pair.equal(both.a.get('view')['number'], 1, 'view')


def test_create_needs_the_partner():
    both = pair.Pair(arbiter=False)
    both.a.start()
    answer = both.a.twinlog('create', expect=pair.FAILED)
    pair.contains(answer.stderr, ['--alone'], 'create without the partner')
    both.a.twinlog('create', '--alone', expect=pair.DONE)
    status = both.a.status()
    pair.equal(status['role'], 'Primary', 'role')
    pair.equal(status['copies'], 1, 'copies')
    pair.equal(status['view']['members'], ['a'], 'members')
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    # The fresh partner adopts the volume, and does not make its own.
    both.b.start()
    both.wait_complete(both.a)
    both.b.twinlog('create', '--alone', expect=pair.REFUSED)


def test_create_known_to_the_arbiter():
    """Refused where the arbiter knows the volume, though this node does not.
    """
    both = pair.Pair()
    both.a.start()
    both.a.twinlog('create', '--alone', expect=pair.DONE)
    both.a.kill()
    both.b.start()
    answer = both.b.twinlog('create', '--alone', expect=pair.REFUSED)
    pair.contains(answer.stderr, ['arbiter'], 'create')
    pair.equal(both.b.get('view')['number'], 0, 'view')


def test_wait():
    both = pair.Pair()
    began = time.monotonic()
    both.a.twinlog('wait', '--for', 'Primary', '--timeout', '0.3',
                   expect=pair.TIMED_OUT)
    pair.check(0.25 < time.monotonic() - began < 3, 'not the time-out')
    both.a.start()
    both.a.twinlog('wait', '--for', 'Secondary', '--timeout', '5',
                   expect=pair.DONE)
    both.a.twinlog('wait', '--for', 'Connecting', '--timeout', '5',
                   expect=pair.DONE)
    both.a.twinlog('wait', '--for', 'Connected', '--timeout', '0.3',
                   expect=pair.TIMED_OUT)
    # A node that is slow to answer is asked once, and answers.
    both.a.pause()
    resume = threading.Timer(0.5, both.a.resume)
    resume.start()
    both.a.twinlog('wait', '--for', 'Secondary', '--timeout', '0',
                   expect=pair.DONE)
    resume.join()
    # It waits for a node that is not there yet, and for what comes later.
    results = {}

    def wait(node, state):
        results[state] = node.twinlog('wait', '--for', state,
                                      '--timeout', '20').returncode
    waits = [threading.Thread(target=wait, args=arguments) for arguments in (
        (both.b, 'UpToDate'), (both.b, 'peer:Primary'),
        (both.a, 'Primary'), (both.a, 'peer:UpToDate'),
        (both.a, 'Connected'))]
    for thread in waits:
        thread.start()
    both.b.start()
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    for thread in waits:
        thread.join(25)
    pair.equal(results, dict.fromkeys(
        ('UpToDate', 'peer:Primary', 'Primary', 'peer:UpToDate',
         'Connected'), pair.DONE), 'waits')
    for words in (('--for', 'Happy', '--timeout', '1'),
                  ('--for', 'peer:Connected', '--timeout', '1'),
                  ('--for', 'Primary', '--timeout', 'soon'),
                  ('--for', 'Primary', '--timeout', '-1'),
                  ('--timeout', '1')):
        both.a.twinlog('wait', *words, expect=pair.USAGE)


def test_exit_status():
    both = pair.Pair().start()
    node = both.a
    for words in ((), ('--help-me',), ('dance',), ('status', '--loud'),
                  ('status', 'slog0', 'slog1'), ('promote', '--alone'),
                  ('status', 'a/b')):
        answer = pair.run([pair.TWINLOG, '--control', node.control, *words])
        pair.equal(answer.returncode, pair.USAGE, f'twinlog {words}')
        pair.check(answer.stderr.strip(), f'twinlog {words} says nothing')
        pair.equal(answer.stdout, '', f'output of twinlog {words}')
    for words in (('--help',), ('--version',)):
        answer = pair.run([pair.TWINLOG, *words])
        pair.equal(answer.returncode, pair.DONE, f'twinlog {words}')
        pair.check(answer.stdout.strip(), f'twinlog {words} says nothing')
    answer = node.twinlog('status', 'slog9')
    pair.check(answer.returncode in (pair.USAGE, pair.UNREACHABLE,
                                     pair.REFUSED, pair.FAILED),
               f'status of another volume: {answer.returncode}')
    pair.contains(answer.stderr, ['slog9'], 'status of another volume')
    node.twinlog('promote', expect=pair.REFUSED)

    def unreachable(what):
        for command in ('status', 'create', 'promote', 'demote'):
            answer = node.twinlog(command, expect=pair.UNREACHABLE)
            pair.equal(len(answer.stderr.strip().splitlines()), 1,
                       f'lines, {what}')
            pair.contains(answer.stderr, [node.control], what)
    node.kill()
    unreachable('killed, its socket is still there')
    os.unlink(node.control)
    unreachable('no socket')


def test_frozen_node():
    """A node that does not answer: an end with 4 or 5, not a hang."""
    both = pair.Pair()
    node = both.a.start()
    node.pause()
    began = time.monotonic()
    answer = node.twinlog('status')
    took = time.monotonic() - began
    node.resume()
    pair.check(answer.returncode in (pair.UNREACHABLE, pair.TIMED_OUT),
               f'status of a frozen node: {answer.returncode}')
    pair.check(took < 30, f'it took {took:.0f} s')


if __name__ == '__main__':
    pair.main(test_status, test_create, test_create_needs_the_partner,
              test_create_known_to_the_arbiter, test_wait, test_exit_status,
              test_frozen_node)
