"""A client that outlives failovers: it keeps many requests in flight on
whichever node lets it in, leaves a node that fails or does not answer, and
looks for another one.  It runs in a thread of its own.
"""

import threading
import time

import nbd

import pair
from history import Client

POLL = 20  # ms, how long it looks at one connection
PAUSE = 0.002  # s, between looks where there is nothing to wait for
TURN = 0.05  # s, no turn of its loop takes that long by itself
NEVER = float('inf')
PATIENCE = 1.0  # s, for a node that does not answer


class Clock:
    """Time as the client has it: it stands while the client is held up, by a
    busy machine say, and not by what it waits for.
    """

    def __init__(self):
        self.held = 0.0
        self.turned = time.monotonic()

    def now(self):
        return time.monotonic() - self.held

    def turn(self):
        """Another turn of the client's loop."""
        now = time.monotonic()
        self.held += max(0.0, now - self.turned - TURN)
        self.turned = now


class Attached(Client):
    """A connection to one node."""

    def __init__(self, node, handle, roamer, seed):
        self.given = handle
        super().__init__(self, roamer.record, roamer.depth, seed)
        self.node = node
        self.roamer = roamer
        self.heard = roamer.clock.now()

    def connect(self):
        return self.given

    def ending(self, done):
        ended = super().ending(done)
        began = self.roamer.clock.now()

        def timed(error):
            value = ended(error)
            self.roamer.answered(self, began,
                                 bool(getattr(error, 'value', error)))
            return value
        return timed

    def issue_more(self):
        """Beyond the depth: reads, and a few of everything."""
        for _ in range(self.depth):
            self.issue_read(*self.range())
            self.in_flight += 1
        for _ in range(self.depth // 2):
            self.issue()

    def frozen(self):
        return self.roamer.frozen.get(self.node) == NEVER

    def good(self):
        """Not one to leave."""
        if not self.alive() or self.failed:
            return False
        if self.in_flight == 0:
            return not self.frozen()
        return self.roamer.clock.now() < self.heard + PATIENCE

    def turn(self, refill, wait):
        """One look at the connection; true where there was something."""
        if self.in_flight == 0:
            self.heard = self.roamer.clock.now()
        try:
            while refill and self.in_flight < self.depth:
                self.issue()
            seen = self.handle.poll(wait) == 1
        except nbd.Error:
            pair.check(not self.alive(), 'an error on a connection that lives')
            seen = False
        if self.problem:
            raise self.problem
        return seen


class Attempt:
    """To be let in by one node."""

    def __init__(self, node):
        self.node = node
        self.handle = nbd.NBD()
        self.since = time.monotonic()
        self.over = False

    def turn(self):
        """True once it is let in."""
        try:
            if self.handle.aio_is_created():
                self.handle.aio_connect_unix(self.node.socket)
            elif self.handle.aio_is_connecting():
                self.handle.poll(1)
            if self.handle.aio_is_ready():
                return True
            self.over = self.handle.aio_is_dead() \
                or self.handle.aio_is_closed() \
                or time.monotonic() > self.since + PATIENCE
        except nbd.Error:
            self.over = True
        return False


class Roamer(threading.Thread):
    """Works until it is told to end; what it did comes into RECORD."""

    def __init__(self, both, record, depth=16, seed=0):
        super().__init__(daemon=True)
        self.both = both
        self.record = record
        self.depth = depth
        self.seed = seed
        self.visits = 0
        self.clock = Clock()
        self.current = None  # the connection that is used
        self.left = []  # connections with requests that are to end
        self.attempts = {}
        self.between = 0.01  # s, between tries to get in
        self.next_try = 0.0
        self.frozen = {}  # node: since when it runs again, on our clock
        self.asked = None  # a node for which there are to be more requests
        self.working = True
        self.quiet = threading.Event()
        self.ended = False
        self.trouble = None
        self.completed = self.failed = 0
        self.longest = 0.0  # the longest time to an answer
        self.bound = NEVER  # that it should have
        self.overdue = 0  # answers beyond it
        self.last = time.monotonic()  # the last success
        self.longest_pause = 0.0  # between two of them
        self.start()

    # ---- What the test asks of it; any thread ----

    def check(self):
        if self.trouble:
            raise self.trouble

    def wait_for(self, condition, what, seconds=20.0):
        """As pair.wait_for; ends early where this client is in trouble."""
        def reached():
            self.check()
            return condition()
        return pair.wait_for(reached, what, seconds, 0.005)

    def progress(self, requests=50, seconds=20.0):
        """Wait until so many more requests were answered with success."""
        done = self.completed
        self.wait_for(lambda: self.completed >= done + requests,
                      'the client is served', seconds)

    def rest(self):
        """No new request from now on."""
        self.quiet.clear()
        self.working = False

    def hold(self, seconds=10.0):
        """... and wait until all have ended."""
        self.rest()
        self.wait_for(self.quiet.is_set, 'all requests have ended', seconds)

    def release(self):
        self.last = time.monotonic()
        self.working = True

    def freeze(self, node, idle=False):
        """NODE is stopped: nobody can answer until it runs again.  IDLE: it
        has nothing to do then.
        """
        if idle:
            self.hold()
        self.frozen[node] = NEVER
        node.pause()
        self.release()

    def thaw(self, node):
        """Let it go on; what it finds first are new reads."""
        self.ask_more(node)
        self.frozen[node] = self.clock.now()
        node.resume()

    def died(self, node):
        """It was killed: whatever becomes of it is not frozen, and what it
        had not answered ends now.
        """
        if self.frozen.get(node) == NEVER:
            self.frozen[node] = self.clock.now()

    def ask_more(self, node):
        """Issue requests to it, where it was left."""
        self.asked = node
        self.wait_for(lambda: self.asked is None, 'they are issued', 5)

    def forget_pause(self):
        """The longest pause so far, which is measured anew."""
        pause, self.longest_pause = self.longest_pause, 0.0
        return pause

    def end(self):
        self.ended = True
        self.join(10)
        pair.check(not self.is_alive(), 'the client does not end')
        self.check()

    # ---- Its thread ----

    def answered(self, client, began, failed):
        client.heard = now = self.clock.now()
        began = max(began, self.frozen.get(client.node, 0.0))
        self.longest = max(self.longest, now - began)
        self.overdue += now - began > self.bound
        if failed:
            self.failed += 1
            return
        self.completed += 1
        now = time.monotonic()
        self.longest_pause = max(self.longest_pause, now - self.last)
        self.last = now

    def run(self):
        try:
            while not self.ended:
                self.turn()
        except BaseException as trouble:
            self.trouble = trouble
        finally:
            self.current = None
            self.left = []
            self.attempts = {}

    def turn(self):
        if self.current is None:
            if self.working:
                self.look_around()
        elif not self.current.good():
            self.left.append(self.current)
            self.current = None
        else:
            self.current.turn(self.working,
                              0 if not self.current.in_flight
                              else 1 if self.left else POLL)
        for client in self.left:
            if client.node is self.asked:
                client.issue_more()
        self.asked = None
        for client in self.left:
            wait = 0 if self.current else 1
            while client.alive() and client.turn(False, wait):
                wait = 0
        self.left = [client for client in self.left
                     if client.alive() and (client.in_flight
                                            or client.frozen())]
        self.idle()
        self.clock.turn()

    def idle(self):
        if not self.working and not any(
                client.in_flight for client in [*self.left, self.current]
                if client):
            self.quiet.set()
            time.sleep(PAUSE)

    def look_around(self):
        """Knock at both doors at once."""
        now = time.monotonic()
        if now < self.next_try:
            time.sleep(PAUSE)
            return
        for node in self.both.nodes:
            attempt = self.attempts.get(node)
            if attempt is None:
                attempt = self.attempts[node] = Attempt(node)
            if attempt.turn():
                self.visits += 1
                self.current = Attached(node, attempt.handle, self,
                                        f'{self.seed}-{self.visits}')
                self.attempts = {}
                return
            if attempt.over:
                del self.attempts[node]
        if not self.attempts:
            self.next_try = now + self.between
