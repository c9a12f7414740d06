"""Who may connect to the mirror port, and where nodes can be."""

import os
import socket

import frames
import pair


def say(source, host, port, data):
    """Connect from SOURCE; the bytes that come back until it is closed."""
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    mirror = socket.socket(family)
    mirror.settimeout(5)
    mirror.bind((source, 0))
    said = b''
    try:
        mirror.connect((host, port))
        if data:
            mirror.sendall(data)
        while True:
            more = mirror.recv(4096)
            if not more:
                break
            said += more
    except (ConnectionResetError, BrokenPipeError):
        pass
    except socket.timeout:
        raise pair.Failure('the connection is not closed') from None
    finally:
        mirror.close()
    return said


def test_other_address():
    """Closed before a byte is read: not even a good hello is answered."""
    both = pair.Pair()
    both.a.start()
    good = frames.hello()
    for data in (b'', good, b'rubbish' * 100):
        pair.equal(say('127.0.0.2', '127.0.0.1', both.ports[0], data), b'',
                   'answer to a stranger')
    pair.check(not both.a.get('peer-node'), 'a stranger became the peer')
    both.a.says('127.0.0.2')
    # A flood of them neither fills the log nor keeps the peer out.
    before = len(both.a.log_lines())
    for _ in range(100):
        say('127.0.0.2', '127.0.0.1', both.ports[0], b'')
    pair.check(len(both.a.log_lines()) - before < 20,
               'a line for each connection of a stranger')
    both.b.start()
    both.a.wait(connection_state='Connected')


def test_listens_there_only():
    """No wildcard: the other addresses of the machine do not answer."""
    both = pair.Pair()
    both.a.start()
    try:
        socket.create_connection(('127.0.0.3', both.ports[0]), 2).close()
    except ConnectionRefusedError:
        return
    raise pair.Failure('it listens on another address')


def test_ipv6():
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(('::1', 0))
        except OSError:
            pair.skip('no ::1 on this machine')
    both = pair.Pair(host='::1').create()
    both.a.connect().pwrite(b'6' * 4096, 0)
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(both.b.connect().pread(4096, 0), b'6' * 4096, 'content')
    both.a.start()
    both.wait_complete(both.b)


def test_two_volumes():
    """Two volumes on one machine know nothing of each other."""
    directory = pair.make_directory()
    first = pair.Pair(volume='slog0', directory=directory).create()
    second = pair.Pair(volume='slog1', directory=directory,
                       size='8M').create()
    for both, letter in ((first, b'0'), (second, b'1')):
        both.a.connect().pwrite(letter * 65536, 4096)
    first.a.kill()
    first.fail_over(first.a)
    pair.equal(second.a.get('role'), 'Primary', 'role in the other volume')
    pair.equal(second.a.get('copies'), 2, 'copies in the other volume')
    for node, letter in ((first.b, b'0'), (second.a, b'1')):
        pair.equal(node.connect().pread(65536, 4096), letter * 65536,
                   f'content of {node.volume}')
    first.a.start()
    first.wait_complete(first.b)
    records = sorted(os.listdir(first.arbiter_directory))
    for volume in ('slog0', 'slog1'):
        pair.check(any(volume in name for name in records),
                   f'no record of {volume} at the arbiter: {records}')


if __name__ == '__main__':
    if frames.xxhash is None:
        pair.skip('python3-xxhash is not installed')
    pair.main(test_other_address, test_listens_there_only, test_ipv6,
              test_two_volumes)
