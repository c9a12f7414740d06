"""spdk/spdk 3343: NBD clients attach and detach in every phase of a resync.
The resync is held up at each kind of its frames in turn, and meanwhile one
client leaves, one comes and goes, and one comes and stays.
"""

import threading

import pair
from proxy import PASS, ProxiedPair
from rounds import all_equal, same_stores
from test_proxy import RESYNC, forget_ram

BLOCKS = 1024


class Hold:
    """A rule: the first frame of KIND waits until it may go on."""

    def __init__(self, kind):
        self.kind = kind
        self.held = threading.Event()
        self.released = threading.Event()

    def __call__(self, frame):
        if frame.kind == self.kind and not self.held.is_set():
            self.held.set()
            self.released.wait(3)  # less than the deadline
        return PASS


def write(client, block, letter):
    """Issue it; its result comes into the list."""
    results = []
    client.aio_pwrite(
        pair.nbd.Buffer.from_bytearray(bytearray(letter * pair.BLOCK)),
        block * pair.BLOCK,
        lambda error: results.append(getattr(error, 'value', error)) or 1)
    return results


def visit(both, kind, full, number):
    """One resync, held up at KIND."""
    letter = bytes([number + 1])
    both.proxy.close()
    both.a.wait(copies=1, suspended=False)
    if full:
        both.b.kill()
        forget_ram(both.b)
    leaves = both.a.connect()
    for block in range(8):
        leaves.pwrite(letter * pair.BLOCK, block * 128 * pair.BLOCK)
    both.proxy.rule = hold = Hold(kind)
    both.proxy.open = True
    if full:
        both.b.spawn()
    pair.check(hold.held.wait(20), f'no {kind} was seen')
    leaves.shutdown()
    both.a.connect().shutdown()
    stays = both.a.connect()
    results = write(stays, 1 + number, letter)
    stays.poll(20)
    hold.released.set()
    pair.wait_for(lambda: stays.poll(20) >= 0 and results, 'the write ends')
    pair.equal(results, [0], f'{kind}: result of a write')
    pair.equal(bytes(stays.pread(pair.BLOCK, (1 + number) * pair.BLOCK)),
               letter * pair.BLOCK, f'{kind}: content')
    pair.wait_for(lambda: all_equal(both.a.status()), f'{kind}: at rest', 20)
    both.wait_complete(both.a)
    same_stores(both)
    stays.shutdown()
    pair.wait_for(lambda: both.a.get('clients') == 0, 'the clients left')


def run_visits(full):
    both = ProxiedPair(size=BLOCKS * pair.BLOCK,
                       store=pair.make_directory('/dev/shm')).create()
    both.a.connect().pwrite(b'x' * pair.MIB, 0)
    for number, kind in enumerate(RESYNC):
        visit(both, kind, full, number)
    pair.equal(both.a.status()['counters']['resyncs-full'],
               len(RESYNC) if full else 0, 'full resyncs')


def test_in_partial_resync():
    run_visits(False)


def test_in_full_resync():
    run_visits(True)


if __name__ == '__main__':
    pair.main(test_in_partial_resync, test_in_full_resync)
