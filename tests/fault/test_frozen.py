"""A node that stands still: shorter than the deadline nobody hears of it,
longer and every request ends within the deadline and a second; an old primary
that wakes up after the other was promoted acknowledges nothing and shows
nothing old.
"""

import threading
import time

import pair
from history import Client, History
from rounds import Longest, check_history, work_for, work_until

BLOCKS = 2048
DEADLINE = 1.0
EIO = pair.errno.EIO


def busy_pair(**parameters):
    """A pair, its history, and a client of node a that has begun."""
    both = pair.Pair(size=BLOCKS * pair.BLOCK, deadline=DEADLINE,
                     **parameters).create()
    history = History(BLOCKS)
    longest = Longest()
    client = longest.watch(Client(both.a, history))
    work_for(client, 0.1)
    return both, history, client, longest


def after(client, both, history):
    """What goes for every test once the node runs again."""
    work_until(client, lambda: both.a.get('copies') == 2, 'two copies')
    client.close()
    both.wait_complete(both.a)
    check_history(both.a, history)


def test_longer_error():
    """xen-api 6444: writes fail in time, and afterwards the device needs no
    help.
    """
    both, history, client, longest = busy_pair(arbiter=False)
    both.b.pause()
    work_until(client, lambda: client.failed >= client.depth,
               'the requests in flight failed', DEADLINE + 2)
    view = both.a.get('view')
    pair.check(both.a.get('suspended'), 'not suspended')
    both.b.resume()
    after(client, both, history)
    pair.check(longest.seconds <= DEADLINE + 1,
               f'a request took {longest.seconds:.2f} s')
    pair.check(longest.seconds >= DEADLINE - 0.1,
               f'the longest request took {longest.seconds:.2f} s')
    pair.equal(both.a.get('view'), view, 'view')
    print(f'  longest request {longest.seconds:.2f} s of'
          f' {DEADLINE + 1:.2f}', flush=True)


def test_longer_arbiter():
    """The primary goes on alone; the one that wakes up is filled."""
    both, history, client, longest = busy_pair()
    both.b.pause()
    work_until(client, lambda: both.a.get('copies') == 1
               and not both.a.get('suspended'), 'alone', DEADLINE + 2)
    done = client.completed
    work_until(client, lambda: client.completed > done + 100,
               'it goes on', 2)
    both.b.resume()
    after(client, both, history)
    pair.equal(client.failed, 0, 'failed requests')
    pair.check(longest.seconds <= DEADLINE + 1,
               f'a request took {longest.seconds:.2f} s')
    pair.equal(both.a.status()['counters']['resyncs-full'], 0,
               'full resyncs')
    print(f'  longest request {longest.seconds:.2f} s of'
          f' {DEADLINE + 1:.2f}', flush=True)


def test_shorter():
    """xcp-ng/sm 45: no error, no ejection, the same view."""
    for arbiter in (False, True):
        both, history, client, longest = busy_pair(arbiter=arbiter)
        view = both.a.get('view')
        for _ in range(3):
            both.b.pause()
            work_for(client, DEADLINE / 2)
            both.b.resume()
            work_for(client, DEADLINE / 10)
        after(client, both, history)
        pair.equal(client.failed, 0, 'failed requests')
        for node in both.nodes:
            pair.equal(node.get('view'), view, f'view of {node.name}')
        counters = both.a.status()['counters']
        pair.equal((counters['resyncs'], counters['resyncs-full']), (0, 0),
                   'resyncs')
        pair.check(longest.seconds >= DEADLINE / 3, 'nothing was paused')
        both.stop()


def outcome(client, function):
    """Issue one request now; its result comes into the list."""
    results = []

    def done(error):
        results.append(getattr(error, 'value', error))
        return 1
    function(done)
    return results


def test_old_primary_wakes_up():
    """ewwhite/zfs-ha 38: its first read and write after the promotion."""
    for number in range(3):
        both, history, client, _ = busy_pair()
        client.drain()
        fresh = both.a.connect()
        fresh.pwrite(b'1' * 4096, 0)
        both.a.pause()
        both.b.wait(DEADLINE + 3, connection_state='Connecting')
        both.b.twinlog('promote', expect=pair.DONE)
        new = both.b.connect()
        new.pwrite(b'2' * 4096, 0)
        buffer = pair.nbd.Buffer(4096)
        reads = outcome(fresh, lambda done: fresh.aio_pread(buffer, 0, done))
        writes = outcome(fresh, lambda done: fresh.aio_pwrite(
            pair.nbd.Buffer.from_bytearray(bytearray(b'9' * 4096)), 0, done))
        began = time.monotonic()
        both.a.resume()
        while not (reads and writes) \
                and time.monotonic() < began + 2 * DEADLINE + 3:
            fresh.poll(20)
        took = time.monotonic() - began
        pair.check(reads and writes, f'no answer within {took:.1f} s')
        pair.check(writes[0] != 0, 'the old primary acknowledged a write')
        if reads[0] == 0:
            pair.equal(bytes(buffer.to_bytearray()), b'2' * 4096,
                       'a read of the old primary')
        both.a.wait(role='Secondary')
        both.wait_complete(both.b)
        pair.equal(bytes(new.pread(4096, 0)), b'2' * 4096, 'content')
        print(f'  round {number}: both ended after {took:.2f} s', flush=True)
        both.stop()


def test_primary_pauses_under_load():
    """Frozen with requests in flight, overtaken, woken up: the history of the
    clients of both is one.
    """
    both, history, client, _ = busy_pair()
    both.a.pause()
    client.work(lambda: client.in_flight == client.depth)
    both.b.wait(DEADLINE + 3, connection_state='Connecting')
    both.b.twinlog('promote', expect=pair.DONE)
    new = Client(both.b, history, seed=1)
    work_for(new, 0.2)
    both.a.resume()
    end = time.monotonic() + 2 * DEADLINE + 3
    client.work(lambda: client.in_flight == 0 or time.monotonic() > end,
                refill=False)
    pair.equal(client.in_flight, 0, 'requests without an answer')
    # The history tells whether what it answered now was done before it slept.
    work_until(new, lambda: both.b.get('copies') == 2, 'two copies')
    new.close()
    both.wait_complete(both.b)
    check_history(both.b, history)


def test_both_pause():
    """The whole pair stands still, as a machine that is suspended does."""
    both, history, client, _ = busy_pair(arbiter=False)
    for node in both.nodes:
        node.pause()
    timer = threading.Timer(2 * DEADLINE, lambda: [
        node.resume() for node in both.nodes])
    timer.start()
    work_for(client, 2 * DEADLINE)
    timer.join()
    after(client, both, history)


if __name__ == '__main__':
    pair.main(test_longer_error, test_longer_arbiter, test_shorter,
              test_old_primary_wakes_up, test_primary_pauses_under_load,
              test_both_pause)
