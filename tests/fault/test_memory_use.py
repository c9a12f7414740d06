"""Memory of a node: what it takes beyond the device, idle, under load and with
a partner that stands still, and that no request asks for any.

Not counted are nbdkit's own request buffers, one for each thread of each
connection, as large as the largest request that it has seen.
"""

import mmap
import os
import struct

import pair

LIBRARY = os.path.join(pair.BUILD, 'tests/fault/libtwinlog-allocations.so')
SIZE = 256 * pair.MIB
BOUND = 16 * pair.MIB + SIZE // 1000
CONNECTIONS, THREADS, LARGE = 4, 16, pair.MIB
WRITES = 3000


def beyond(node, buffers):
    """Bytes of RAM now, without the device and nbdkit's buffers."""
    with open(f'/proc/{node.pid()}/smaps_rollup') as file:
        for line in file:
            words = line.split()
            if words[0] == 'Rss:':
                return int(words[1]) * pair.KIB - SIZE - buffers
    raise pair.Failure('no Rss')


def bounded(both, what, buffers=0):
    """BUFFERS of nbdkit: only the primary has clients."""
    for node, mine in ((both.a, buffers), (both.b, 0)):
        more = beyond(node, mine)
        print(f'  {what}, {node.name}: {more / pair.MIB:.1f} MiB of'
              f' {BOUND / pair.MIB:.1f}', flush=True)
        pair.check(more <= BOUND, f'{what}: {node.name} takes {more} bytes'
                                  ' beyond the device')


class Load:
    """As many writes under way as nbdkit has threads, on each connection."""

    def __init__(self, node, size, connections=CONNECTIONS):
        content = bytearray(size)  # it compresses, but not to nothing
        for offset in range(0, size, pair.BLOCK):
            content[offset:offset + pair.KIB] = os.urandom(pair.KIB)
        self.payload = pair.nbd.Buffer.from_bytearray(content)
        self.size, self.sent = size, 0
        self.handles = [node.connect() for _ in range(connections)]
        self.cookies = [[] for _ in self.handles]

    def send(self):
        """Where fewer are under way, more."""
        for handle, cookies in zip(self.handles, self.cookies):
            while len(cookies) < THREADS:
                offset = self.sent * self.size % SIZE
                cookies.append(handle.aio_pwrite(self.payload, offset))
                self.sent += 1

    def answered(self, milliseconds):
        """Take the answers that come; how many did."""
        count = 0
        for handle, cookies in zip(self.handles, self.cookies):
            handle.poll(milliseconds)
            left = [cookie for cookie in cookies
                    if not handle.aio_command_completed(cookie)]
            count += len(cookies) - len(left)
            cookies[:] = left
        return count

    def carry_out(self, count):
        while count > 0:
            self.send()
            count -= self.answered(1)
        self.finish()

    def finish(self):
        pair.wait_for(lambda: self.answered(1) >= 0
                      and not any(self.cookies), 'all answers', 20, 0)

    def close(self):
        for handle in self.handles:
            handle.shutdown()


def beyond_the_device(**parameters):
    """The partner stands still under load, without a deadline."""
    both = pair.Pair(size=SIZE, arbiter=None, on_partner_loss='freeze',
                     **parameters)
    both.create()
    bounded(both, 'idle')
    load = Load(both.a, LARGE)
    buffers = CONNECTIONS * THREADS * LARGE
    load.carry_out(600)
    load.send()
    bounded(both, 'under load', buffers)
    both.b.pause()
    for _ in range(20):
        load.send()
        load.answered(20)
    pair.equal([len(cookies) for cookies in load.cookies],
               [THREADS] * CONNECTIONS, 'writes that wait for the partner')
    bounded(both, 'the partner stands still', buffers)
    both.b.resume()
    load.finish()
    bounded(both, 'afterwards', buffers)
    load.close()
    both.stop()


def test_beyond_the_device():
    beyond_the_device()
    print('  compress=lz4:')
    beyond_the_device(compress='lz4')


def test_beyond_while_alone():
    """It stands still beyond the deadline, and is filled later."""
    both = pair.Pair(size=SIZE, deadline=0.5).create()
    load = Load(both.a, LARGE)
    buffers = CONNECTIONS * THREADS * LARGE
    load.carry_out(600)
    both.b.pause()
    load.send()
    pair.wait_for(lambda: load.answered(1) >= 0 and both.a.get('copies') == 1,
                  'it goes on alone', 10)
    bounded(both, 'ejected', buffers)
    both.b.resume()
    load.carry_out(600)
    both.wait_complete(both.a)
    bounded(both, 'filled again', buffers)
    load.close()


class Counts:
    """What allocations.c counts in a node that is not started yet."""

    def __init__(self, node):
        path = node.path('allocations')
        with open(path, 'wb') as file:
            file.write(bytes(32))
        with open(path, 'r+b') as file:
            self.shared = mmap.mmap(file.fileno(), 32)
        self.node = node
        preload = ':'.join(filter(None, (os.environ.get('TWINLOG_PRELOAD'),
                                         LIBRARY)))
        arguments = node.arguments
        node.arguments = lambda *positional, **changes: [
            'env', f'LD_PRELOAD={preload}', f'TWINLOG_ALLOCATIONS={path}',
            *arguments(*positional, **changes)]

    def begin(self):
        self.shared[:] = struct.pack('=4Q', 1, 0, 0, 0)

    def look(self):
        """(by the plugin, by nbdkit)"""
        _, plugin, others, self.place = struct.unpack('=4Q', self.shared[:])
        return plugin, others


def start_counted(**parameters):
    """A pair, whose nodes are counted."""
    if not os.path.exists(LIBRARY):
        pair.skip('libtwinlog-allocations.so was not built')
    both = pair.Pair(size=SIZE, **parameters)
    counts = [Counts(node) for node in both.nodes]
    both.create()
    return both, counts


def none_since(counts, what):
    for count in counts:
        plugin, others = count.look()
        print(f'  {what}, {count.node.name}: {plugin} allocations, nbdkit'
              f' {others}', flush=True)
        pair.check(plugin == 0, f'{what}: {plugin} allocations of node '
                                f'{count.node.name}, the last at '
                                f'{count.place:#x} of the plugin')


def test_no_allocation():
    """Of our code, at either node, in any request."""
    for parameters in ({}, {'arbiter': None}, {'compress': 'lz4'}):
        both, counts = start_counted(**parameters)
        for size in (pair.BLOCK, 128 * pair.KIB):
            load = Load(both.a, size)
            load.carry_out(100)
            for count in counts:
                count.begin()
            load.carry_out(WRITES)
            none_since(counts, f'{WRITES} writes of {size // pair.KIB} KiB')
            for count in counts:
                count.begin()
            handle = load.handles[0]
            for i in range(200):
                offset = i * 7 * pair.BLOCK
                handle.pwrite(bytes(pair.BLOCK), offset)
                handle.pwrite(bytes(pair.BLOCK), offset, pair.nbd.CMD_FLAG_FUA)
                handle.pread(pair.BLOCK, offset)
                handle.zero(pair.BLOCK, offset)
                handle.trim(pair.BLOCK, offset)
            none_since(counts, '1000 requests one by one')
            load.close()
        print(f'  compressed: {both.a.get("compress")["bytes-before"]} bytes',
              flush=True)
        both.stop()


def test_is_seen():
    """The count is not blind: a client that comes takes memory."""
    both, counts = start_counted()
    for count in counts:
        count.begin()
    both.a.connect().shutdown()
    pair.check(counts[0].look()[0] > 0, 'a client took no memory')
    pair.check(counts[0].look()[1] > 0, 'nbdkit took no memory for it')
    both.b.status()
    pair.check(counts[1].look()[0] > 0, 'status took no memory')


if __name__ == '__main__':
    # With it malloc touches all that it gives, before the node does.
    os.environ.pop('MALLOC_PERTURB_', None)
    pair.main(test_beyond_the_device, test_beyond_while_alone,
              test_no_allocation, test_is_seen)
