"""The link is cut for a second under load: only what was written meanwhile is
copied, block for block, and what was in flight at the cut.

TWINLOG_ROUNDS: how many cuts of each kind (3).
"""

import os
import statistics
import struct
import time

import pair
from judge import Record
from proxy import PASS, ProxiedPair
from roaming import Roamer
from rounds import all_equal, check_history, fill, same_stores

ROUNDS = int(os.environ.get('TWINLOG_ROUNDS', '3'))
BLOCKS = 32 * pair.MIB // pair.BLOCK
CUT = 1.0


class Copied:
    """The blocks that sync-chunks carry over the proxy, and their bytes."""

    def __init__(self, proxy):
        self.reset()
        proxy.rule = self.look

    def reset(self):
        self.blocks = set()
        self.bytes = 0

    def look(self, frame):
        if frame.kind == 'sync-chunk':
            offset, length = struct.unpack('>QI', frame.data[32:44])
            first = offset // pair.BLOCK
            self.blocks.update(range(first, first + length // pair.BLOCK))
            self.bytes += length
        return PASS


def blocks_of(writes):
    return {block for write in writes
            for block in range(write.first, write.first + write.count)}


def cut(both, client, copied, busy):
    """One cut; what was written meanwhile, and what was copied, in bytes.

    Unless BUSY the client rests before the nodes meet again.
    """
    record = client.record
    client.progress(200)
    copied.reset()
    client.forget_pause()
    # What was ended before the cut began is on both nodes.
    before = record.tick()
    both.proxy.close()
    end = time.monotonic() + CUT
    client.wait_for(lambda: time.monotonic() > end, 'a second')
    if not busy:
        client.rest()
    both.proxy.open = True
    client.wait_for(lambda: all_there(both.a.status()), 'two copies')
    client.hold()
    client.wait_for(lambda: all_equal(both.a.status()), 'at rest')
    both.wait_complete(both.a)
    since = [write for write in record.writes if write.end > before]
    allowed = blocks_of(since)
    pair.check(copied.blocks <= allowed,
               f'copied although nobody wrote them: blocks'
               f' {sorted(copied.blocks - allowed)[:10]}')
    if not busy:
        # Nothing was written once the other was back.
        needed = blocks_of(write for write in since
                           if write.done and write.start > before)
        pair.check(needed <= copied.blocks, 'not all of it was copied')
    pair.check(0 < len(allowed) < BLOCKS / 3, f'{len(allowed)} blocks were'
               ' written, so that little can be told')
    same_stores(both)
    check_history(both.a, record)
    record.judge()
    pair.equal(record.lost, [], 'lost')
    client.release()
    return (sum(write.count for write in since) * pair.BLOCK,
            len(allowed) * pair.BLOCK, copied.bytes)


def all_there(status):
    return status['copies'] == 2 and status['peer-disk-state'] == 'UpToDate'


class Few(Roamer):
    """A client that writes half of the blocks at most, two out of four, and
    takes its time.
    """

    def turn(self):
        super().turn()
        if self.current:
            self.current.range = self.range
        time.sleep(0.002)

    def range(self):
        random = self.current.random
        return random.randrange(BLOCKS // 4) * 4, random.choice((1, 2))


def run_cuts(arbiter, busy):
    both = ProxiedPair(size=BLOCKS * pair.BLOCK, arbiter=arbiter, deadline=5,
                       store=pair.make_directory('/dev/shm')).create()
    copied = Copied(both.proxy)
    record = Record(BLOCKS)
    fill(both.a, record)
    client = Few(both, record, depth=8)
    results = [cut(both, client, copied, busy) for _ in range(ROUNDS)]
    pair.equal(client.failed, 0, 'failed requests')
    client.end()
    pair.equal(both.a.status()['counters']['resyncs-full'], 0,
               'full resyncs')
    written, distinct, sent = (
        statistics.median(column) // pair.KIB for column in zip(*results))
    print(f'  cut of {CUT:.0f} s, {"with" if arbiter else "without"} arbiter,'
          f' {"under load" if busy else "then no new writes"}: median'
          f' of {ROUNDS}: written {written:.0f} KiB, of that different'
          f' blocks {distinct:.0f} KiB, copied {sent:.0f} KiB of'
          f' {BLOCKS * pair.BLOCK // pair.KIB}', flush=True)


def test_alone_meanwhile():
    """The primary goes on alone."""
    run_cuts(True, False)


def test_alone_and_busy():
    """... and the resync meets the load."""
    run_cuts(True, True)


def test_waiting_meanwhile():
    """Without an arbiter requests wait, and only they are copied."""
    run_cuts(False, False)


if __name__ == '__main__':
    pair.main(test_alone_meanwhile, test_alone_and_busy,
              test_waiting_meanwhile)
