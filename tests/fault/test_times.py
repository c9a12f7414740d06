"""How long things take, as a client sees it: a failover, a switchover, a
rejoin under load.  Whether they are right is checked; how fast they are is
printed, and only bounded by the deadline.

TWINLOG_ROUNDS: how many of each (5).
"""

import os
import statistics
import threading
import time

import pair
from judge import Record
from roaming import Roamer
from rounds import check_history, fill

ROUNDS = int(os.environ.get('TWINLOG_ROUNDS', '5'))
BLOCKS = 2048
DEADLINE = 2.0


def milliseconds(seconds):
    return f'median {statistics.median(seconds) * 1000:.0f} ms,' \
           f' worst {max(seconds) * 1000:.0f} ms of {len(seconds)}'


def judged(client, node):
    """Nothing is in flight: what CLIENT saw was possible."""
    check_history(node, client.record)
    client.record.judge()
    pair.equal(client.record.lost, [], 'lost')


# ---- The primary is killed ----

class Watcher:
    """Writes one block over and over, on one node, until it is told to end or
    the node is gone; then it is known what was acknowledged.
    """

    def __init__(self, node):
        self.client = node.connect()
        self.acknowledged = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                number = self.acknowledged + 1
                self.client.pwrite(content(number), 0)
                self.acknowledged = number
        except pair.nbd.Error:
            pass


def content(number):
    return number.to_bytes(8, 'big') * (pair.BLOCK // 8)


def take_over(both, killed, *options):
    """Kill it; the time until the other has acknowledged a write, and what
    that one found.
    """
    other = both.other(killed)
    began = time.monotonic()
    killed.process.kill()
    pair.wait_for(lambda: other.get('connection-state') == 'Connecting',
                  'it is noticed', 5, 0.001)
    other.twinlog('promote', *options, expect=pair.DONE)
    client = other.connect()
    client.pwrite(content(1), pair.BLOCK)
    took = time.monotonic() - began
    found = int.from_bytes(client.pread(8, 0), 'big')
    client.shutdown()
    return took, found


def kill_to_write(arbiter):
    both = pair.Pair(size=BLOCKS * pair.BLOCK, deadline=DEADLINE,
                     arbiter=arbiter).create()
    primary = both.a
    times = []
    for _ in range(ROUNDS):
        watcher = Watcher(primary)
        pair.wait_for(lambda: watcher.acknowledged > 100, 'writes')
        took, found = take_over(both, primary,
                                *([] if arbiter else ['--fenced']))
        times.append(took)
        watcher.thread.join(10)
        pair.check(watcher.acknowledged <= found <= watcher.acknowledged + 1,
                   f'write {watcher.acknowledged} was acknowledged, and'
                   f' {found} is there')
        pair.check(took <= DEADLINE, f'it took {took:.2f} s')
        killed, primary = primary, both.other(primary)
        killed.kill()
        killed.start()
        both.wait_complete(primary)
    print(f'  kill of the primary to the first acknowledged write on the'
          f' other node, {"with the file arbiter" if arbiter else "--fenced"}:'
          f' {milliseconds(times)}', flush=True)


def test_kill_with_fenced():
    kill_to_write(False)


def test_kill_with_arbiter():
    kill_to_write(True)


# ---- A planned change of sides ----

def switchover_pauses(arbiter):
    both = pair.Pair(size=BLOCKS * pair.BLOCK, deadline=DEADLINE,
                     arbiter=arbiter).create()
    client = Roamer(both, Record(BLOCKS))
    client.between = 0.001
    primary, pauses = both.a, []
    for number in range(ROUNDS):
        client.progress(200)
        client.forget_pause()
        primary.twinlog('switchover', '--disconnect', expect=pair.DONE)
        primary = both.other(primary)
        client.progress(200)
        pauses.append(client.forget_pause())
        pair.equal(client.current.node, primary, 'who serves the client')
        pair.check(pauses[-1] <= DEADLINE,
                   f'the client had no answer for {pauses[-1]:.2f} s')
        both.wait_complete(primary)
        if number % 10 == 9 or number == ROUNDS - 1:
            client.hold()
            judged(client, primary)
            client.release()
    client.end()
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   f'full resyncs of {node.name}')
    print(f'  switchover, last answer before to first answer after, 16 in'
          f' flight, {"with" if arbiter else "without"} arbiter:'
          f' {milliseconds(pauses)}', flush=True)


def test_switchover_with_arbiter():
    switchover_pauses(True)


def test_switchover_without_arbiter():
    switchover_pauses(False)


# ---- A node comes back ----

def rejoin(kept):
    """LINBIT/drbd 89: the longest that a write waits for, and the longest
    time without an answer, while the partner is filled.
    """
    blocks = (32 if kept else 64) * pair.MIB // pair.BLOCK
    store = pair.make_directory('/dev/shm') if kept else None
    both = pair.Pair(size=blocks * pair.BLOCK, deadline=DEADLINE,
                      store=store, lock='off').create()
    record = Record(blocks)
    fill(both.a, record)
    client = Roamer(both, record)
    writes, pauses = [], []
    for _ in range(ROUNDS):
        client.progress(200)
        both.b.kill()
        both.a.wait(copies=1, suspended=False)
        client.progress(2000)
        client.longest = 0.0
        client.forget_pause()
        failed = client.failed
        both.b.start()
        client.wait_for(lambda: both.a.get('copies') == 2, 'two copies', 60)
        client.progress(200)
        writes.append(client.longest)
        pauses.append(client.forget_pause())
        pair.equal(client.failed, failed, 'failed requests')
        pair.check(client.longest <= DEADLINE,
                   f'a request took {client.longest:.2f} s')
        both.wait_complete(both.a)
        client.hold()
        judged(client, both.a)
        client.release()
    client.end()
    print(f'  rejoin under load, 16 in flight,'
          f' {"RAM kept" if kept else f"{blocks // 256} MiB, RAM lost"}:'
          f' longest request {milliseconds(writes)}; longest time without'
          f' an answer {milliseconds(pauses)}', flush=True)


def test_rejoin_with_ram_lost():
    rejoin(False)


def test_rejoin_with_ram_kept():
    rejoin(True)


if __name__ == '__main__':
    pair.main(test_kill_with_fenced, test_kill_with_arbiter,
              test_switchover_with_arbiter, test_switchover_without_arbiter,
              test_rejoin_with_ram_lost, test_rejoin_with_ram_kept)
