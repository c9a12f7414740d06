"""Peers that do not belong here, and rubbish on the mirror port: the node
stays up, logs one line, and its store and state are untouched.
"""

import os
import socket

import frames
import pair


def connect(both):
    """To node a's mirror port, from the address of its peer."""
    mirror = socket.create_connection(('127.0.0.1', both.ports[0]), 5)
    mirror.settimeout(10)
    return mirror


def read_to_end(mirror):
    """What the node says until it closes."""
    said = b''
    try:
        while True:
            more = mirror.recv(65536)
            if not more:
                break
            said += more
    except (ConnectionResetError, BrokenPipeError):
        pass
    except socket.timeout:
        raise pair.Failure('the connection is not closed') from None
    mirror.close()
    return said


def bye_text(said):
    """The reason in the bye frame among what a node said, or None."""
    while True:
        found = frames.parse(said)
        if found is None:
            return None
        kind, payload, said = found
        if kind == frames.BYE:
            return payload.decode()


def lone_primary(**parameters):
    """Node a primary alone, with content; node b is not running."""
    both = pair.Pair(arbiter=False, **parameters)
    both.a.start()
    both.a.twinlog('create', '--alone', expect=pair.DONE)
    both.a.says('only copy')  # and none of these lines comes later
    client = both.a.connect()
    client.pwrite(b'x' * 65536, 0)
    return both, client


def unchanged_through(both, client, act, words):
    """ACT () changes nothing on node a, and leaves at most one line.

    A line with WORDS: this time, or where the same happened before, then.
    """
    def seen():
        status = both.a.status()
        return {key: status[key] for key in
                ('role', 'disk-state', 'view', 'copies', 'uuid')}

    def state():
        with open(both.a.state, 'rb') as file:
            return file.read()

    before, content = (seen(), state()), bytes(client.pread(65536, 0))
    since = len(both.a.log())
    act()
    both.a.says(*words, seconds=5)
    pair.stays(lambda: len(both.a.log_lines(since)) <= 1, 0.2,
               'more lines in the log than one for the connection')
    pair.equal((seen(), state()), before, 'status and state')
    pair.equal(bytes(client.pread(65536, 0)), content, 'content')
    client.pwrite(content[:4096], 0)


def test_garbage():
    both, client = lone_primary()
    for rubbish in (b'GET / HTTP/1.1\r\nHost: a\r\n\r\n' + b' ' * 64,
                    os.urandom(4096), bytes(64), b'\xff' * 100000):
        def act():
            mirror = connect(both)
            try:
                mirror.sendall(rubbish)
            except (ConnectionResetError, BrokenPipeError):
                pass
            read_to_end(mirror)
        unchanged_through(both, client, act, ['not a twinlog frame'])


def test_compressed_garbage():
    """Frames that say they are compressed, from a peer that has offered it;
    to a node that has not, they are frames of a wrong length.
    """
    long = frames.frame(frames.WRITE, os.urandom(4096), flags=128, length=4096)
    bomb = frames.frame(frames.WRITE, bytes(100), flags=128, length=1 << 20)
    short = frames.frame(frames.WRITE, os.urandom(100), flags=128,
                         length=4096)
    empty = frames.frame(frames.WRITE, flags=128, length=4096)
    wrong = 'compressed payload of wrong length'
    damaged = 'a compressed payload is not well formed'
    offer = frames.hello(arbiter=0, features=1)
    for compress, cases in (
            ('lz4', ((long, wrong), (empty, wrong), (bomb, damaged),
                     (short, damaged))),
            ('none', ((short, 'payload of wrong length'),))):
        both, client = lone_primary(compress=compress)
        for frame, words in cases:
            def act():
                mirror = connect(both)
                mirror.sendall(offer)
                mirror.recv(1)  # it has answered
                mirror.sendall(frame)
                read_to_end(mirror)
            unchanged_through(both, client, act, [words])
        both.stop()


def test_half_a_frame():
    """The peer goes away in the middle of a frame."""
    both, client = lone_primary()
    whole = frames.hello(arbiter=0)
    for length in (1, 63, 64, 65, len(whole) - 1):
        def act():
            mirror = connect(both)
            mirror.sendall(whole[:length])
            mirror.shutdown(socket.SHUT_WR)
            read_to_end(mirror)
        unchanged_through(both, client, act, ['closed'])


def test_bad_frames():
    both, client = lone_primary()
    good = frames.hello(arbiter=0)
    flipped = bytearray(good)
    flipped[20] ^= 1
    flipped_payload = bytearray(good)
    flipped_payload[100] ^= 1
    for data, words in (
            (flipped, ['checksum']),
            (flipped_payload, ['checksum']),
            (frames.frame(99), ['type']),
            (frames.frame(frames.HELLO, bytes(8193)), ['large']),
            (frames.frame(frames.HELLO, b'abc'), ['hello']),
            (frames.frame(frames.HELLO, b'', length=1), ['range']),
            (frames.frame(frames.WRITE, b'z' * 4096, length=4096),
             ['hello']),
            (frames.frame(frames.WRITE, b'z' * 4096, length=4096,
                          offset=1 << 40), ['end'])):
        def act():
            mirror = connect(both)
            mirror.sendall(data)
            read_to_end(mirror)
        unchanged_through(both, client, act, words)


def test_wrong_hello():
    """Another version, volume, size, and the node's own name."""
    both, client = lone_primary()
    for changes, words in (
            ({'version_min': 2, 'version_max': 7}, ['version']),
            ({'version_min': 0, 'version_max': 0}, ['version']),
            ({'volume': 'slog9'}, ['volume', 'slog9']),
            ({'size': 32 << 20}, ['size']),
            ({'node': 'a'}, ['node=', 'differ']),
            ({'uuid': b'u' * 16, 'data': 2}, ['uuid'])):
        said = []

        def act():
            mirror = connect(both)
            mirror.sendall(frames.hello(**{'arbiter': 0, **changes}))
            said.append(read_to_end(mirror))
        unchanged_through(both, client, act, words)
        reason = bye_text(said[0])
        pair.check(reason is not None, f'no bye for {changes}')
        pair.contains(reason, words, f'bye of {changes}')
        pair.contains(both.a.get('disconnect-reason'), words,
                      f'disconnect-reason of {changes}')


def test_silent_connections():
    """One that sends half a hello and waits does not keep the peer out, and
    is closed after a while.
    """
    both = pair.Pair(deadline=1)
    both.a.start()
    silent = []
    for data in (b'', frames.hello()[:30], frames.hello()[:100]):
        mirror = connect(both)
        mirror.sendall(data)
        silent.append(mirror)
    both.b.start()
    for node in both.nodes:
        node.wait(10, connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    for mirror in silent:
        read_to_end(mirror)


def test_garbage_beside_the_session():
    """While the pair is connected, rubbish beside it disturbs nothing."""
    both = pair.Pair().create()
    client = both.a.connect()
    for data in (os.urandom(1000), frames.hello(node='a'), frames.hello(
            volume='slog9')):
        mirror = connect(both)
        try:
            mirror.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass
        read_to_end(mirror)
        client.pwrite(data, 4096)
        pair.equal(client.pread(len(data), 4096), data, 'content')
    for node in both.nodes:
        pair.equal(node.get('connection-state'), 'Connected', 'connection')
    pair.equal(both.a.get('copies'), 2, 'copies')
    pair.equal(both.a.status()['counters']['failed'], 0, 'failed requests')


def mismatch(words, first, second, **both_parameters):
    """Two nodes that differ never connect, and both say why, once."""
    both = pair.Pair(**both_parameters)
    both.a.start(**first)
    both.b.start(**second)
    for node in both.nodes:
        pair.wait_for(lambda: node.get('disconnect-reason'),
                      f'{node.name} tells a reason')
        pair.contains(node.get('disconnect-reason'), words,
                      f'disconnect-reason of {node.name}')
    # Logged once per change, not once per try: beside a warning of the start
    # and "refused", our reason and the peer's.
    pair.stays(lambda: all(len(node.log_lines()) <= 4 for node in both.nodes),
               2.0, 'the log grows with each try')
    for node in both.nodes:
        node.says(*words)
        pair.check(node.get('connection-state') in
                   ('Connecting', 'StandAlone'), 'connected')
        pair.equal(node.get('view')['number'], 0, 'view')
        pair.check(not os.path.exists(node.state), 'a state file appeared')
    return both


def test_real_peer_of_another_size():
    mismatch(['size'], {}, {'size': '32M'})


def test_real_peer_of_another_volume():
    mismatch(['volume'], {}, {'name': 'slog9'})


def test_real_peer_with_the_same_name():
    mismatch(['node=', 'differ'], {}, {'node': 'a'})


def test_two_histories():
    """Both created alone: another UUID, nothing is overwritten."""
    both = pair.Pair(arbiter=False)
    for node in both.nodes:
        node.start()
        node.twinlog('create', '--alone', expect=pair.DONE)
        if node is both.a:  # the two have not met when b is created
            node.kill()
    client = both.b.connect()
    client.pwrite(b'b' * 4096, 0)
    both.a.start()
    pair.wait_for(lambda: both.b.get('disconnect-reason'), 'a reason')
    pair.contains(both.b.get('disconnect-reason'), ['uuid'], 'reason')
    pair.equal(both.b.get('role'), 'Primary', 'role of the one that serves')
    pair.equal(client.pread(4096, 0), b'b' * 4096, 'content')
    pair.check(both.b.get('connection-state') != 'Connected', 'connected')


if __name__ == '__main__':
    if frames.xxhash is None:
        pair.skip('python3-xxhash is not installed')
    pair.main(test_garbage, test_compressed_garbage, test_half_a_frame,
              test_bad_frames,
              test_wrong_hello, test_silent_connections,
              test_garbage_beside_the_session,
              test_real_peer_of_another_size,
              test_real_peer_of_another_volume,
              test_real_peer_with_the_same_name, test_two_histories)
