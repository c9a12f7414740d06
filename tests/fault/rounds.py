"""What the rounds of a fault test have in common: a client that is kept busy
while something is done to the nodes, and the comparison at rest.
"""

import threading
import time

import pair
from history import nothing_lost, pattern, settle


def work_for(client, seconds):
    end = time.monotonic() + seconds
    client.work(lambda: time.monotonic() > end)


def work_until(client, condition, what, seconds=20.0, pause=0.02):
    """Keep CLIENT busy until CONDITION (), looked at now and then, holds."""
    end = time.monotonic() + seconds
    looked = 0.0

    def reached():
        nonlocal looked
        now = time.monotonic()
        pair.check(now < end, f'not within {seconds} s: {what}')
        if now < looked + pause:
            return False
        looked = now
        return condition()
    client.work(reached)


def work_while(client, action):
    """Keep CLIENT busy while ACTION () runs; what it returns or raises.

    Once requests fail no more are issued: they would only fail faster.
    """
    failed = client.failed
    results, errors = [], []

    def act():
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        client.work(lambda: not thread.is_alive() or client.failed > failed)
        client.work(lambda: not thread.is_alive(), refill=False)
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return results[0]


def all_equal(status):
    """Both nodes are members that hold everything, and nothing is dirty."""
    return status is not None and status['role'] == 'Primary' \
        and status['copies'] == 2 and not status['suspended'] \
        and status['peer-disk-state'] == 'UpToDate' \
        and status['out-of-sync'] == 0 and status['ap-in-flight'] == 0


def serving(both):
    """The node that serves, with two copies; None while there is none."""
    for node in both.nodes:
        status = node.status()
        if status and status['role'] == 'Primary' and status['copies'] == 2 \
                and status['connection-state'] == 'Connected' \
                and not status['suspended']:
            return node
    return None


def check_history(node, history):
    """Nothing is in flight: read all of NODE's volume and compare."""
    client = node.connect()
    settle(client, history)
    client.shutdown()
    nothing_lost(history)


def same_stores(both):
    """The files of both stores hold the same bytes."""
    paths = [node.parameters['store'] for node in both.nodes]
    result = pair.run(['cmp', *paths])
    pair.equal((result.returncode, result.stdout + result.stderr), (0, ''),
               'cmp of the two stores')


def fill(node, history, most=256):
    """Write every block of NODE's volume once, MOST at a time."""
    client = node.connect()
    for first in range(0, history.blocks, most):
        count = min(most, history.blocks - first)
        write = history.issue(first, count, False)
        client.pwrite(b''.join(pattern(write.number, block)
                               for block in range(first, first + count)),
                      first * pair.BLOCK)
        history.acknowledge(write, first, count)
    client.shutdown()


class Longest:
    """The longest time from the issue of a request to its end.

    Of a request that ended while the test did something else it is not known
    when: the time since the last look does not count.
    """

    def __init__(self):
        self.seconds = 0.0
        self.looked = time.monotonic()
        self.unseen = 0.0

    def watch(self, client):
        """Measure every request that CLIENT issues from now on."""
        ending = client.ending

        def timed(done):
            began = time.monotonic()
            ended = ending(done)

            def measured(error):
                self.seconds = max(self.seconds, time.monotonic() - began
                                   - self.unseen)
                return ended(error)
            return measured
        client.ending = timed
        client.handle = Watched(client.handle, self)
        return client


class Watched:
    """A libnbd handle that tells LONGEST how long nobody has looked."""

    def __init__(self, handle, longest):
        self.handle = handle
        self.longest = longest

    def __getattr__(self, name):
        return getattr(self.handle, name)

    def poll(self, timeout):
        longest, came = self.longest, 0
        longest.unseen = time.monotonic() - longest.looked
        while self.handle.poll(0) > 0:
            came = 1
        longest.unseen = 0.0
        try:
            return came or self.handle.poll(timeout)
        finally:
            longest.looked = time.monotonic()
