"""Zero and trim give memory back on both nodes, extents show it, and a resync
copies only what exists.
"""

import os
import time

import pair

MIB = pair.MIB


def resident(node):
    return node.get('resident-bytes')


def extents(client, length, offset=0):
    """Runs as (length, is a hole)."""
    found = []

    def extent(context, start, entries, error):
        for i in range(0, len(entries), 2):
            found.append((entries[i], bool(entries[i + 1] & 1)))
        return 0
    client.block_status(length, offset, extent)
    merged = []
    for run, hole in found:
        if merged and merged[-1][1] == hole:
            merged[-1] = (merged[-1][0] + run, hole)
        else:
            merged.append((run, hole))
    return merged


def connect(node):
    client = pair.nbd.NBD()
    client.add_meta_context('base:allocation')
    client.connect_unix(node.socket)
    return client


def test_memory_is_given_back():
    store = pair.make_directory('/dev/shm')
    both = pair.Pair(size='64M', store=store).create()
    client = connect(both.a)
    content = os.urandom(8 * MIB)

    def on_tmpfs(node):
        return os.stat(node.parameters['store']).st_blocks * 512

    for offset in range(0, 64 * MIB, 8 * MIB):
        client.pwrite(content, offset)
    for node in both.nodes:
        pair.check(resident(node) >= 64 * MIB, f'resident-bytes of '
                   f'{node.name}: {resident(node)}')
        pair.check(on_tmpfs(node) >= 64 * MIB, 'bytes on tmpfs')
    client.trim(16 * MIB, 0)
    client.zero(16 * MIB, 32 * MIB)
    for node in both.nodes:
        pair.wait_for(lambda: resident(node) <= 33 * MIB,
                      f'{node.name} gave 32 MiB back')
        pair.check(on_tmpfs(node) <= 33 * MIB, f'bytes on tmpfs of '
                   f'{node.name}: {on_tmpfs(node)}')
    pair.check(not any(client.pread(16 * MIB, 0)), 'trimmed content')
    pair.check(not any(client.pread(16 * MIB, 32 * MIB)), 'zeroed content')
    pair.equal(bytes(client.pread(8 * MIB, 16 * MIB)), content, 'the rest')
    pair.equal(extents(client, 64 * MIB),
               [(16 * MIB, True), (16 * MIB, False),
                (16 * MIB, True), (16 * MIB, False)], 'extents')
    # Edges within a block are zeroed without giving it back.
    client.zero(4096, 16 * MIB + 100)
    pair.equal(client.pread(4296, 16 * MIB),
               content[:100] + bytes(4096) + content[4196:4296], 'edges')
    client.shutdown()
    both.a.kill()
    both.fail_over(both.a)
    client = connect(both.b)
    pair.equal(extents(client, 64 * MIB),
               [(16 * MIB, True), (16 * MIB, False),
                (16 * MIB, True), (16 * MIB, False)],
               'extents on the other node')
    pair.check(not any(client.pread(16 * MIB, 0)), 'trimmed content')


def test_anonymous_memory():
    """The same without store=, with the memory locked."""
    both = pair.Pair(size='64M').create()
    client = connect(both.a)
    for offset in range(0, 64 * MIB, 16 * MIB):
        client.pwrite(os.urandom(16 * MIB), offset)
    before = [resident(node) for node in both.nodes]
    client.zero(64 * MIB, 0)
    for node, bytes_before in zip(both.nodes, before):
        pair.check(bytes_before >= 64 * MIB, f'{bytes_before} resident')
        pair.wait_for(lambda: resident(node) <= MIB,
                      f'{node.name} gave everything back')
    pair.equal(extents(client, 64 * MIB), [(64 * MIB, True)], 'extents')
    client.pwrite(b'x' * 4096, 5 * MIB)
    pair.equal(extents(client, 64 * MIB),
               [(5 * MIB, True), (4096, False),
                (59 * MIB - 4096, True)], 'extents')


def test_fresh_is_empty():
    both = pair.Pair(size='64M').create()
    client = connect(both.a)
    pair.equal(extents(client, 64 * MIB), [(64 * MIB, True)], 'extents')
    pair.check(not any(client.pread(MIB, 63 * MIB)), 'a fresh device')


def test_resync_copies_what_exists():
    """1 GiB with 4 MiB of content here and there."""
    both = pair.Pair(size='1G', lock='off', arbiter=False)
    both.a.start()
    both.a.twinlog('create', '--alone', expect=pair.DONE)
    client = connect(both.a)
    content = os.urandom(64 * pair.KIB)
    for i in range(64):
        client.pwrite(content, i * 16 * MIB + 4096)
    began = time.monotonic()
    both.b.start()
    both.wait_complete(both.a)
    took = time.monotonic() - began
    print(f'  {took:.2f} s', flush=True)
    pair.check(took < 10, f'the resync took {took:.1f} s')
    both.a.says('full resync to node b: 4096 KiB')
    pair.equal(both.a.get('out-of-sync'), 0, 'out-of-sync')
    both.a.kill()
    both.b.wait(connection_state='Connecting')
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    client = connect(both.b)
    runs = extents(client, 1024 * MIB)
    pair.equal(sum(run for run, hole in runs if not hole), 4 * MIB,
               'allocated on the other node')
    for i in range(64):
        pair.equal(bytes(client.pread(64 * pair.KIB, i * 16 * MIB + 4096)),
                   content, f'content of piece {i}')


if __name__ == '__main__':
    pair.main(test_memory_is_given_back, test_anonymous_memory,
              test_fresh_is_empty, test_resync_copies_what_exists)
