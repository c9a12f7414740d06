"""Faults of the network one upon the other, undone in another order, round
after round: packets late, lost, out of order, lost one way, the cable pulled, a
slow cable, connections killed, the partner standing still, either node killed
and started again, its RAM kept or, of the partner, lost.  Where there is an
arbiter the other node takes over meanwhile where it can, told to or by itself.
The clients of both nodes make one history, no request waits beyond the deadline
and a second, and after each round the pair is whole again without help.

TWINLOG_SWIZZLES: how many rounds (9), a third of them without an arbiter.
TWINLOG_SEED: of the random numbers.
"""

import os
import random
import threading
import time

import pair
from history import Client
from load import DEADLINE, Load
from network import requires_network
from packets import BadNetwork, requires_packets
from rounds import check_history, serving
from test_half_open import ALL, Filter, some
from test_partition import handicap
from test_proxy import forget_ram

ROUNDS = int(os.environ.get('TWINLOG_SWIZZLES', '9'))
SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 31))))


class Swizzle(Load):
    """A busy pair, and what can be done to it; each fault answers with what
    undoes it.
    """

    def __init__(self, chance, **parameters):
        self.slow = None
        super().__init__(self.prepare, store=pair.make_directory('/dev/shm'),
                         **parameters)
        self.chance = chance
        self.network = BadNetwork(self.both, chance.randrange(1 << 31))
        self.filters = [Filter(self.both, node) for node in self.both.nodes]
        self.primary = self.both.a
        self.old = []  # clients of one that was overtaken
        self.failed = self.taken_over = 0

    def prepare(self, both):
        if 'arbiter' in both.a.parameters:
            self.slow = handicap(both)

    # ---- Clients ----

    def work(self, seconds, until=lambda: False):
        """Keep the client busy; those of before end what they have begun."""
        end = time.monotonic() + seconds
        client, rest = self.client, 0.0

        def no_rest():
            nonlocal rest
            if client.failed > self.failed:  # others would only fail faster
                self.failed = client.failed
                rest = time.monotonic() + 0.02
            return time.monotonic() > rest
        while time.monotonic() < end and not until():
            step = time.monotonic() + 0.01
            client.work(lambda: time.monotonic() > step, refill=no_rest())
            if not client.alive():
                time.sleep(0.01)
            for old in self.old:
                old.handle.poll(0)

    def work_until(self, condition, what, seconds):
        looked, value = 0.0, None

        def reached():
            nonlocal looked, value
            if time.monotonic() < looked + 0.05:
                return False
            looked = time.monotonic()
            value = condition()
            return value
        self.work(seconds, reached)
        pair.check(value, f'not within {seconds} s: {what}')
        return value

    # ---- Faults ----

    def bad_packets(self):
        """In one direction."""
        packets = self.chance.choice(self.network.directions)
        packets.become(delay=self.chance.choice((0, 1, 50, 300, 1500)),
                       jitter=self.chance.choice((0, 0, 10, 200)),
                       loss=self.chance.choice((0, 1, 10, 30, 80)))
        return packets.become

    def one_way(self):
        one = self.chance.choice(self.filters)
        one.drop(self.chance.choice((ALL, some(20), some(60))))
        return one.drop

    def cable_down(self):
        self.both.cable('down')
        return lambda: self.both.cable('up')

    def slow_cable(self):
        self.both.limit(self.chance.choice(('500kbit', '5mbit', '50mbit')))
        return lambda: self.both.limit('10gbit')

    def killed_connections(self):
        self.both.kill_connections()
        return lambda: None

    def partner_stands_still(self):
        other = self.both.other(self.primary)
        other.pause()
        return other.resume

    def partner_killed(self):
        other = self.both.other(self.primary)
        other.kill()
        if self.chance.random() < 0.5:
            forget_ram(other)
        return other.spawn

    def primary_killed(self):
        """What it had sent may be under way yet."""
        killed = self.primary
        killed.kill()
        self.client.work(lambda: not self.client.alive())
        return killed.spawn

    FAULTS = (bad_packets, bad_packets, one_way, cable_down, slow_cable,
              killed_connections, partner_stands_still, partner_killed,
              primary_killed)
    HELPLESS = (partner_stands_still, partner_killed)  # takes nothing over

    # ---- A round ----

    def take_over(self, seconds):
        """The other one is asked to, while all goes on.  It may win, for the
        primary's way to the arbiter is long.
        """
        other = self.both.other(self.primary)
        done = threading.Event()
        end = time.monotonic() + seconds

        def ask():
            while time.monotonic() < end and not done.is_set():
                if other.get('connection-state') == 'Connecting' and \
                        other.twinlog('promote').returncode == pair.DONE:
                    done.set()
                time.sleep(0.02)
        thread = threading.Thread(target=ask)
        thread.start()
        self.work(seconds + 60, lambda: not thread.is_alive())
        thread.join()
        if done.is_set():
            self.change_to(other)

    def change_to(self, primary):
        """The client is that of PRIMARY from now on."""
        self.taken_over += primary is not self.primary
        self.primary = primary
        if self.client.alive():
            self.old.append(self.client)
        self.client = self.longest.watch(
            Client(self.primary, self.history, seed=self.chance.random()))
        self.failed = 0

    def round(self):
        chance = self.chance
        slow = None
        if self.slow and chance.random() < 0.7:
            slow = f'{self.slow}.{self.primary.name}'
            open(slow, 'w').close()
        # Each kind once: what undoes one would undo the other too.
        faults = list(dict.fromkeys(chance.sample(self.FAULTS,
                                                  chance.randint(1, 3))))
        if Swizzle.partner_killed in faults:  # the only copy is served
            faults = [fault for fault in faults if fault not in (
                Swizzle.primary_killed, Swizzle.partner_stands_still)]
        undo = []
        for fault in faults:
            undo.append(fault(self))
            self.work(chance.uniform(0, DEADLINE / 2))
        if slow and not set(self.HELPLESS) & set(faults) \
                and 'auto_promote' not in self.both.a.parameters:
            self.take_over(2 * DEADLINE)
        else:
            self.work(chance.uniform(0, 2 * DEADLINE))
        chance.shuffle(undo)
        for one in undo:
            one()
            self.work(chance.uniform(0, DEADLINE / 2))
        if slow:
            os.unlink(slow)
        self.healed(', '.join(fault.__name__ for fault in faults))

    def healed(self, what):
        primary = self.work_until(lambda: serving(self.both),
                                  f'whole again after {what}', 40)
        if primary is not self.primary or not self.client.alive():
            self.change_to(primary)
            self.work(0.05)
        self.client.drain()
        for old in self.old:
            old.drain()
        self.old.clear()
        self.both.wait_complete(self.primary)
        check_history(self.primary, self.history)
        longest, self.longest.seconds = self.longest.seconds, 0.0
        print(f'  {what}: longest request {longest:.2f} s', flush=True)
        # The node's bound, and the client's own delay on a busy machine.
        pair.check(longest <= DEADLINE + 1 + 0.5,
                   f'{what}: a request took {longest:.2f} s')


def run_rounds(rounds, seed, **parameters):
    swizzle = Swizzle(random.Random(seed), **parameters)
    for _ in range(rounds):
        swizzle.round()
    print(f'  {rounds} rounds, acknowledged {swizzle.history.acknowledged},'
          f' taken over {swizzle.taken_over} times, lost 0', flush=True)


def test_without_arbiter():
    run_rounds(ROUNDS // 3, SEED, arbiter=False)


def test_with_arbiter():
    run_rounds(ROUNDS // 3, SEED + 1)


def test_auto_promote():
    run_rounds(ROUNDS // 3, SEED + 2, auto_promote='on')


if __name__ == '__main__':
    requires_network()
    requires_packets()
    pair.requires_program('nft')
    print(f'  seed {SEED}', flush=True)
    pair.main(test_without_arbiter, test_with_arbiter, test_auto_promote)
