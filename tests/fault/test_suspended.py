"""A node that is suspended at one exact place.  A primary on a request's way,
also between its last check and its answer, that wakes up after the other node
was promoted: what it answers of the time before was so, what came to it since
waits or fails, and nothing it says is stale.  A partner that is left behind
meanwhile.  Either node while it agrees a view: one of them serves in the end,
and never both.

TWINLOG_SEED: of the random numbers.
"""

import itertools
import os
import random
import threading
import time

import pair
from history import Client, History
from link import LinkedPair
from rounds import check_history, serving, work_for, work_until

BLOCKS = 256
DEADLINE = 1.0
LIBRARY = os.path.join(pair.BUILD, 'tests/fault/libtwinlog-stop.so')
PLACES = ('asked', 'frame', 'sent', 'heard', 'answer')
SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 32))))


class SuspendedPair(LinkedPair):
    """A pair whose nodes stop where they are told; where CLOCK is false their
    clocks stand still meanwhile, as those of machines do.
    """

    def __init__(self, clock=True):
        super().__init__(size=BLOCKS * pair.BLOCK, deadline=DEADLINE)
        preload = ':'.join(filter(None, (os.environ.get('TWINLOG_PRELOAD'),
                                         LIBRARY)))
        for node in self.nodes:
            node.stop_file = node.path('stop')
            self.set(node, f'LD_PRELOAD={preload}',
                     f'TWINLOG_STOP={node.stop_file}',
                     *([] if clock else ['TWINLOG_STOP_CLOCK=1']))

    @staticmethod
    def set(node, *words):
        """In the environment of NODE."""
        arguments = node.arguments
        node.arguments = lambda *positional, **changes: [
            'env', *words, *arguments(*positional, **changes)]

    def take_over(self):
        """Node b notices and is promoted."""
        self.b.wait(DEADLINE + 5, connection_state='Connecting')
        self.b.twinlog('promote', expect=pair.DONE)


def suspend_at(node, place):
    """It stops the next time that it comes to PLACE."""
    with open(node.stop_file + '.new', 'w') as file:
        file.write(place)
    os.rename(node.stop_file + '.new', node.stop_file)


def is_suspended(node):
    with open(f'/proc/{node.pid()}/stat') as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'T'


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
    suspend_at(both.a, place)
    request = early()
    poll_until([request], lambda: is_suspended(both.a),
               f'a stops at {place}', 10)
    return request


def one_place(place, write, clock):
    both = SuspendedPair(clock).create()
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
        for write, clock in itertools.product((False, True), repeat=2):
            early, late = one_place(place, write, clock)
            print(f'  {"write" if write else "read"}, {place},'
                  f' clock {"goes on" if clock else "stops"}: the one under'
                  f' way {"failed" if early else "was answered"}, the first'
                  f' read since {"failed" if late else "was not stale"}',
                  flush=True)


def ends(client):
    """What CLIENT has under way is answered."""
    end = time.monotonic() + DEADLINE + 6
    client.work(lambda: client.in_flight == 0 or time.monotonic() > end,
                refill=False)
    pair.equal(client.in_flight, 0, 'requests without an answer')


def whole(both, primary, client, history):
    """Two copies again, with all that was acknowledged."""
    work_until(client, lambda: primary.get('copies') == 2, 'two copies')
    client.close()
    both.wait_complete(primary)
    check_history(primary, history)


def test_under_load():
    """With 16 requests in flight when it stops, and as many that come to it
    since: with those of the other node they make one history.
    """
    chance = random.Random(SEED)
    for number in range(6):
        place = chance.choice(PLACES)
        both = SuspendedPair(clock=number % 2 == 0).create()
        history = History(BLOCKS)
        early = Client(both.a, history, seed=chance.random())
        late = Client(both.a, history, seed=chance.random())
        work_for(early, chance.uniform(0.02, 0.1))
        suspend_at(both.a, place)
        work_until(early, lambda: is_suspended(both.a),
                   f'a stops at {place}', 10, pause=0)
        both.take_over()
        new = Client(both.b, history, seed=chance.random())
        work_for(new, 0.1)
        for _ in range(late.depth):
            late.issue()
        both.a.resume()
        for client in (early, late):
            ends(client)
        whole(both, both.b, new, history)
        print(f'  {place}: of {early.depth} under way {early.failed} failed,'
              f' of {late.depth} since {late.failed}', flush=True)
        both.stop()


def test_partner():
    """It stops between what it hears and its acknowledgement, is left behind,
    and wakes up: what it says is not counted, and it gets what it missed.
    """
    for place in ('heard', 'frame', 'sent'):
        both = SuspendedPair().create()
        history = History(BLOCKS)
        client = Client(both.a, history)
        work_for(client, 0.1)
        suspend_at(both.b, place)
        work_until(client, lambda: is_suspended(both.b),
                   f'b stops at {place}', 10, pause=0)
        work_until(client, lambda: both.a.get('copies') == 1
                   and not both.a.get('suspended'), 'a is alone')
        work_for(client, 0.1)
        both.b.resume()
        both.b.twinlog('promote', expect=pair.REFUSED)
        pair.equal(client.failed, 0, 'failed requests')
        whole(both, both.a, client, history)
        both.a.kill()
        both.take_over()
        check_history(both.b, history)
        both.stop()


# On the way of a view: proposed, asked for, agreed, acted on.
STEPS = ('storing', 'stored', 'storing', 'stored')
AGREED = 2  # the first of them where the arbiter has it


def step(node, count, work):
    """NODE goes on from its first step to number COUNT, and stops there."""
    for number in range(count + 1):
        if number > 0:
            suspend_at(node, STEPS[number])
            node.resume()
        work(lambda: is_suspended(node), f'{node.name} stops at {number}')


def test_primary_goes_on():
    """The link is cut, and the primary stops while it agrees to go on alone:
    the other is promoted where the arbiter does not know of it yet, and else
    refused.
    """
    for count in range(len(STEPS)):
        both = SuspendedPair().create()
        history = History(BLOCKS)
        old, late = Client(both.a, history), Client(both.a, history, seed=1)
        work_for(old, 0.1)
        suspend_at(both.a, STEPS[0])
        both.dark()
        step(both.a, count,
             lambda condition, what: work_until(old, condition, what, 10))
        both.b.wait(DEADLINE + 5, connection_state='Connecting')
        answer = both.b.twinlog('promote')
        pair.equal(answer.returncode,
                   pair.DONE if count < AGREED else pair.REFUSED,
                   f'promote of b with a at step {count}')
        primary, client = both.a, old
        if count < AGREED:
            primary, client = both.b, Client(both.b, history, seed=2)
            work_for(client, 0.1)
        for _ in range(late.depth):
            late.issue()
        both.a.resume()
        ends(late)
        if count < AGREED:
            pair.equal(late.completed, 0, 'answered by a')
            ends(old)
        else:
            work_until(client, lambda: not both.a.get('suspended'),
                       'a goes on')
        both.light()
        whole(both, primary, client, history)
        both.stop()


def test_promotion():
    """The link is cut, and the other stops while it is promoted: the primary
    goes on where the arbiter does not know of it yet, and else it is one no
    more.
    """
    for count in range(len(STEPS)):
        both = SuspendedPair().create()
        history = History(BLOCKS)
        old = Client(both.a, history)
        work_for(old, 0.1)
        # Nothing that the primary could go on with arrives at the arbiter.
        both.a.pause()
        both.dark()
        both.b.wait(DEADLINE + 5, connection_state='Connecting')
        suspend_at(both.b, STEPS[0])
        answers = []
        promotion = threading.Thread(target=lambda: answers.append(
            both.b.twinlog('promote').returncode))
        promotion.start()
        step(both.b, count,
             lambda condition, what: pair.wait_for(condition, what))
        both.a.resume()
        if count < AGREED:
            work_until(old, lambda: both.a.get('copies') == 1
                       and not both.a.get('suspended'), 'a goes on')
        else:
            work_until(old, lambda: both.a.get('role') == 'Secondary',
                       'a steps down')
        acknowledged = history.acknowledged
        work_for(old, 0.1)
        both.b.resume()
        promotion.join(30)
        pair.equal(answers, [pair.REFUSED if count < AGREED else pair.DONE],
                   f'promote of b at step {count}')
        primary, client = both.a, old
        if count >= AGREED:
            pair.equal(history.acknowledged, acknowledged,
                       'acknowledged while b was suspended')
            ends(old)
            primary, client = both.b, Client(both.b, history, seed=1)
        both.light()
        whole(both, primary, client, history)
        both.stop()


def test_switchover():
    """Either node stops while the role is handed over, and the other one is
    asked to be promoted: one of them serves in the end.
    """
    for name, count in [('a', count) for count in range(len(STEPS))] \
            + [('b', count) for count in range(2)]:  # it is only told
        both = SuspendedPair().create()
        node = both.a if name == 'a' else both.b
        other = both.other(node)
        history = History(BLOCKS)
        client = Client(both.a, history)
        work_for(client, 0.1)
        client.close()
        pair.wait_for(lambda: both.a.get('clients') == 0, 'the client left')
        suspend_at(node, STEPS[0])
        answers = []
        switchover = threading.Thread(target=lambda: answers.append(
            both.a.twinlog('switchover').returncode))
        switchover.start()
        step(node, count,
             lambda condition, what: pair.wait_for(condition, what))
        other.wait(DEADLINE + 5, connection_state='Connecting')
        promoted = other.twinlog('promote').returncode
        if promoted == pair.DONE:
            client = Client(other, history, seed=1)
            work_for(client, 0.1)
            client.close()
        node.resume()
        switchover.join(30)
        primary = pair.wait_for(lambda: serving(both), 'one serves', 20)
        client = Client(primary, history, seed=2)
        work_for(client, 0.1)
        whole(both, primary, client, history)
        print(f'  {name} at step {count}: switchover {answers[0]}, promote of'
              f' {other.name} {promoted}, {primary.name} serves', flush=True)
        both.stop()


if __name__ == '__main__':
    if not os.path.exists(LIBRARY):
        pair.skip('libtwinlog-stop.so was not built')
    print(f'  seed {SEED}', flush=True)
    pair.main(test_at_each_place, test_under_load, test_partner,
              test_primary_goes_on, test_promotion, test_switchover)
