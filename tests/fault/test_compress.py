"""compress=lz4 over a link of 200 Mbit/s: what both nodes have on is used for
writes and for a resync, and loses nothing; what only one has is not; what does
not shrink is left alone.
"""

import os

import pair
from network import NetworkPair, requires_network

MIB = pair.MIB
SIZE = 64 * MIB
PIECE = 131072


def made(**parameters):
    """A pair over a slow link, with a client of its primary."""
    both = NetworkPair(size=SIZE, lock='off', arbiter=False, **parameters)
    both.create()
    both.limit('200mbit')
    return both, both.a.connect()


def shrinking(number):
    """A piece of which a quarter is random."""
    return b''.join(os.urandom(64) + bytes([number % 256]) * 192
                    for _ in range(PIECE // 256))


def fill(client, piece):
    """Write each piece of the volume, several at once."""
    pieces = [piece(i) for i in range(SIZE // PIECE)]
    under_way = []
    for i, bytes_of_it in enumerate(pieces):
        buffer = pair.nbd.Buffer.from_bytearray(bytearray(bytes_of_it))
        under_way.append(client.aio_pwrite(buffer, i * PIECE))
        while len(under_way) > 8:
            client.poll(-1)
            under_way = [cookie for cookie in under_way
                         if not client.aio_command_completed(cookie)]
    while any(not client.aio_command_completed(cookie)
              for cookie in under_way):
        client.poll(-1)
        under_way = [cookie for cookie in under_way
                     if not client.aio_command_completed(cookie)]
    return pieces


def compared(node, pieces):
    client = node.connect()
    for i, piece in enumerate(pieces):
        pair.check(client.pread(PIECE, i * PIECE) == piece,
                   f'content of piece {i} on node {node.name}')
    client.shutdown()


def verified(node):
    node.twinlog('verify', expect=pair.DONE)
    verify = node.get('verify')
    pair.equal((verify['checked-bytes'], verify['different-bytes']),
               (SIZE, 0), 'verify: checked and different bytes')


def counted(node, since=(0, 0)):
    """Bytes before and after, beyond those of SINCE."""
    compress = node.get('compress')
    return (compress['bytes-before'] - since[0],
            compress['bytes-after'] - since[1])


def compressed(counts, what):
    before, after = counts
    print(f'  {what}: {before >> 20} MiB to {after >> 20} MiB', flush=True)
    pair.check(before > SIZE // 4, f'{what}: only {before} bytes compressed')
    pair.check(after < before // 2, f'{what}: {before} bytes to {after}')


def test_both():
    """Writes, a resync of a node that comes back empty, the other direction
    after a promotion: each is compressed, and both stores are equal.
    """
    both, client = made(compress='lz4')
    pair.check(both.a.get('compress')['active'] and
               both.b.get('compress')['active'], 'it is not active')
    pieces = fill(client, shrinking)
    client.shutdown()
    counts = counted(both.a)
    compressed(counts, 'writes')
    verified(both.a)

    both.b.kill()
    both.b.start()
    both.a.wait(60, copies=2, peer_disk_state='UpToDate')
    compressed(counted(both.a, counts), 'resync')
    verified(both.a)

    both.a.twinlog('switchover', expect=pair.DONE)
    both.wait_complete(both.b)
    compared(both.b, pieces)
    client = both.b.connect()
    pieces = fill(client, shrinking)
    client.shutdown()
    compressed(counted(both.b), 'writes of the other node')
    verified(both.b)
    both.stop()


def test_random():
    """What does not shrink is sent as it is."""
    both, client = made(compress='lz4')
    pieces = fill(client, lambda number: os.urandom(PIECE))
    client.shutdown()
    before, _ = counted(both.a)
    pair.equal(before, 0, 'bytes compressed')
    verified(both.a)
    compared(both.a, pieces)
    both.stop()


def one_only(number):
    both = NetworkPair(size=SIZE, lock='off', arbiter=False)
    both.nodes[number].parameters['compress'] = 'lz4'
    both.create()
    both.limit('200mbit')
    client = both.a.connect()
    pieces = fill(client, shrinking)
    client.shutdown()
    for node in both.nodes:
        pair.equal(node.get('compress'),
                   {'active': False, 'bytes-before': 0, 'bytes-after': 0},
                   f'compress of node {node.name}')
    verified(both.a)

    # The other one is given it, too: nothing but a restart is needed.
    both.nodes[1 - number].parameters['compress'] = 'lz4'
    if number == 0:
        both.b.kill()
        both.b.start()
        both.a.wait(60, copies=2, peer_disk_state='UpToDate')
        pair.check(both.a.get('compress')['active'], 'it is not active')
        verified(both.a)
    compared(both.a, pieces)
    both.stop()


def test_one_only():
    one_only(0)
    one_only(1)


if __name__ == '__main__':
    requires_network()
    pair.main(test_both, test_random, test_one_only)
