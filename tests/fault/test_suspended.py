"""A primary that is suspended at one exact place of a request's way, also
between its last check and its answer, and wakes up after the other node was
promoted: what it answers of the time before was so, what came to it since waits
or fails, and nothing it says is stale.

TWINLOG_SEED: of the random numbers.
"""

import os
import random
import time

import pair
from history import Client, History
from rounds import check_history, work_for, work_until

BLOCKS = 256
DEADLINE = 1.0
LIBRARY = os.path.join(pair.BUILD, 'tests/fault/libtwinlog-stop.so')
PLACES = ('asked', 'frame', 'sent', 'heard', 'answer')
SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 32))))


class SuspendedPair(pair.Pair):
    """A pair whose node a stops where it is told."""

    def __init__(self, **parameters):
        super().__init__(size=BLOCKS * pair.BLOCK, deadline=DEADLINE,
                         **parameters)
        self.stop_file = os.path.join(self.directory, 'stop')
        preload = ':'.join(filter(None, (os.environ.get('TWINLOG_PRELOAD'),
                                         LIBRARY)))
        arguments = self.a.arguments
        self.a.arguments = lambda *positional, **changes: [
            'env', f'LD_PRELOAD={preload}', f'TWINLOG_STOP={self.stop_file}',
            *arguments(*positional, **changes)]

    def suspend_at(self, place):
        """Node a stops the next time that it comes to PLACE."""
        with open(self.stop_file + '.new', 'w') as file:
            file.write(place)
        os.rename(self.stop_file + '.new', self.stop_file)

    def is_suspended(self):
        with open(f'/proc/{self.a.pid()}/stat') as stat:
            return stat.read().rpartition(')')[2].split()[0] == 'T'

    def take_over(self):
        """Node b notices and is promoted."""
        self.b.wait(DEADLINE + 5, connection_state='Connecting')
        self.b.twinlog('promote', expect=pair.DONE)


class Request:
    """One read or write of a block."""

    def __init__(self, client, block, letter=None):
        self.client = client
        self.error = None
        self.buffer = pair.nbd.Buffer(pair.BLOCK)
        if letter:
            self.buffer = pair.nbd.Buffer.from_bytearray(
                bytearray(letter * pair.BLOCK))
            client.aio_pwrite(self.buffer, block * pair.BLOCK, self.ended)
        else:
            client.aio_pread(self.buffer, block * pair.BLOCK, self.ended)

    def ended(self, error):
        self.error = getattr(error, 'value', error)
        return 1

    def letter(self):
        """What a read has brought."""
        content = bytes(self.buffer.to_bytearray())
        pair.check(content == content[:1] * pair.BLOCK, 'a torn block')
        return content[:1]


def poll_until(requests, condition, what, seconds):
    def reached():
        for request in requests:
            if request.error is None:
                request.client.poll(10)
        return condition()
    pair.wait_for(reached, what, seconds, 0)


def suspend(both, place, early):
    """Node a stops at PLACE, with the request that EARLY () issues."""
    both.suspend_at(place)
    request = early()
    poll_until([request], both.is_suspended, f'a stops at {place}', 10)
    return request


def one_place(place, write):
    both = SuspendedPair().create()
    clients = [both.a.connect() for _ in range(3)]
    clients[0].pwrite(b'1' * 2 * pair.BLOCK, 0)
    for client in clients:
        client.pread(pair.BLOCK, 0)
    early = suspend(both, place, lambda: Request(
        clients[0], 1 if write else 0, b'3' if write else None))
    # Other threads go on for a moment; at its own stop it has no answer.
    if place in ('asked', 'answer'):
        pair.equal(early.error, None, 'the request of the one that stopped')
    both.take_over()
    new = both.b.connect()
    new.pwrite(b'2' * pair.BLOCK, 0)
    seen = bytes(new.pread(1, pair.BLOCK))
    requests = [early, Request(clients[1], 0), Request(clients[2], 0, b'9')]
    _, late_read, late_write = requests
    both.a.resume()
    poll_until(requests, lambda: all(request.error is not None
                                     for request in requests),
               'all of them end', DEADLINE + 6)
    if late_read.error == 0:
        pair.equal(late_read.letter(), b'2', 'its first read')
    pair.check(late_write.error != 0, 'it acknowledged its first write')
    both.a.wait(role='Secondary')
    both.wait_complete(both.b)
    if early.error == 0:
        pair.equal(seen if write else early.letter(), b'3' if write else b'1',
                   'what was answered of the time before')
    pair.equal(bytes(new.pread(pair.BLOCK, 0)), b'2' * pair.BLOCK, 'content')
    pair.equal(bytes(new.pread(1, pair.BLOCK)), seen,
               'what was read after the promotion')
    both.stop()
    return early.error, late_read.error


def test_at_each_place():
    """The next one to come to that place is a read, or a write."""
    for place in PLACES:
        for write in (False, True):
            early, late = one_place(place, write)
            print(f'  {"write" if write else "read"}, {place}: the one under'
                  f' way {"failed" if early else "was answered"}, the first'
                  f' read since {"failed" if late else "was not stale"}',
                  flush=True)


def test_under_load():
    """With 16 requests in flight when it stops, and as many that come to it
    since: with those of the other node they make one history.
    """
    chance = random.Random(SEED)
    for number in range(6):
        place = chance.choice(PLACES)
        both = SuspendedPair().create()
        history = History(BLOCKS)
        early = Client(both.a, history, seed=chance.random())
        late = Client(both.a, history, seed=chance.random())
        work_for(early, chance.uniform(0.02, 0.1))
        both.suspend_at(place)
        work_until(early, both.is_suspended, f'a stops at {place}', 10,
                   pause=0)
        both.take_over()
        new = Client(both.b, history, seed=chance.random())
        work_for(new, 0.1)
        for _ in range(late.depth):
            late.issue()
        both.a.resume()
        for client in (early, late):
            end = time.monotonic() + DEADLINE + 6
            client.work(lambda: client.in_flight == 0
                        or time.monotonic() > end, refill=False)
            pair.equal(client.in_flight, 0, 'requests without an answer')
        work_until(new, lambda: both.b.get('copies') == 2, 'two copies')
        new.close()
        both.wait_complete(both.b)
        check_history(both.b, history)
        pair.equal(history.lost, [], 'lost')
        print(f'  {place}: of {early.depth} under way {early.failed} failed,'
              f' of {late.depth} since {late.failed}', flush=True)
        both.stop()


if __name__ == '__main__':
    if not os.path.exists(LIBRARY):
        pair.skip('libtwinlog-stop.so was not built')
    print(f'  seed {SEED}', flush=True)
    pair.main(test_at_each_place, test_under_load)
