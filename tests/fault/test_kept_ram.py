"""Nodes whose RAM outlives the process are killed at random moments under 16
requests in flight and started again at once: nothing that was acknowledged is
lost, no block is torn, only what may differ is copied, and at rest both stores
hold the same bytes.

TWINLOG_ROUNDS: how many kills (20), half of them without an arbiter.
TWINLOG_SEED: of the random numbers.
"""

import os
import random
import threading
import time

import pair
from history import Client, History
from rounds import all_equal, check_history, same_stores, work_until

ROUNDS = int(os.environ.get('TWINLOG_ROUNDS', '20'))
SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 32))))
BLOCKS = 2048


def kept_pair(**parameters):
    return pair.Pair(size=BLOCKS * pair.BLOCK,
                     store=pair.make_directory('/dev/shm'),
                     **parameters).create()


def kill_under_load(client, node, nodes, chance):
    """Kill NODES at a random moment, CLIENT being attached to NODE; how many
    requests had no answer.
    """
    delay = chance.uniform(0.005, 0.2)

    def kill():
        for dead in nodes:
            dead.process.kill()
    thread = threading.Timer(delay, kill)
    thread.start()
    end = time.monotonic() + delay + 10
    if node in nodes:
        unanswered = client.work(lambda: not client.alive()
                                 or time.monotonic() > end)
        pair.check(not client.alive(), 'the connection outlives its server')
    else:
        unanswered = client.work(lambda: not thread.is_alive())
    thread.join()
    for dead in nodes:
        dead.kill()
    return unanswered


def no_full_resync(both):
    for node in both.nodes:
        if node.running():
            pair.equal(node.status()['counters']['resyncs-full'], 0,
                       f'full resyncs of {node.name}')


class Rounds:
    """A pair, its primary, and the client that is attached to it."""

    def __init__(self, chance, **parameters):
        self.chance = chance
        self.both = kept_pair(**parameters)
        self.primary = self.both.a
        self.history = History(BLOCKS)
        self.unanswered = 0
        self.attach()

    def attach(self):
        self.client = Client(self.primary, self.history,
                             seed=self.chance.random())

    def kill(self, *nodes):
        no_full_resync(self.both)
        self.unanswered += kill_under_load(self.client, self.primary,
                                           nodes, self.chance)

    def kill_secondary(self):
        """The client hears nothing of it."""
        failed = self.client.failed
        other = self.both.other(self.primary)
        self.kill(other)
        other.spawn()
        self.refilled()
        pair.equal(self.client.failed, failed, 'failed requests')

    def kill_primary(self):
        """It resumes once its partner confirms that nobody took over."""
        self.kill(self.primary)
        self.primary.start()
        self.resumed()

    def kill_both(self):
        self.kill(*self.both.nodes)
        for node in self.chance.sample(self.both.nodes, 2):
            node.spawn()
        self.resumed()

    def replace_primary(self):
        """The other is promoted; the one that was killed follows it."""
        killed = self.primary
        self.kill(killed)
        self.primary = self.both.fail_over(killed)
        check_history(self.primary, self.history)
        self.attach()
        killed.spawn()
        self.refilled()

    def resumed(self):
        self.primary.wait(10, role='Primary', suspended=False)
        check_history(self.primary, self.history)
        self.attach()
        self.refilled()

    def refilled(self):
        """Under load, until both are members again."""
        def members():
            status = self.primary.status()
            return status['copies'] == 2 \
                and status['peer-disk-state'] == 'UpToDate'
        work_until(self.client, members, 'two copies')

    def compare(self):
        self.client.close()
        self.at_rest()
        self.attach()

    def at_rest(self):
        pair.wait_for(lambda: all_equal(self.primary.status()), 'at rest')
        self.both.wait_complete(self.primary)
        same_stores(self.both)
        check_history(self.primary, self.history)


def run_rounds(kinds, rounds, **parameters):
    print(f'  seed {SEED}', flush=True)
    chance = random.Random(SEED)
    these = Rounds(chance, **parameters)
    for number in range(rounds):
        kinds[number % len(kinds)](these)
        these.compare()
    these.client.close()
    these.at_rest()
    no_full_resync(these.both)
    pair.equal(these.history.lost, [], 'lost')
    pair.check(these.unanswered > 0, 'no kill met a request in flight')
    pair.check(these.history.acknowledged > 20 * rounds,
               f'only {these.history.acknowledged} acknowledged')
    print(f'  kills {rounds}, acknowledged {these.history.acknowledged},'
          f' unanswered {these.unanswered}, lost 0', flush=True)


def test_without_arbiter():
    run_rounds((Rounds.kill_primary, Rounds.kill_secondary,
                Rounds.kill_primary, Rounds.kill_secondary,
                Rounds.kill_both), ROUNDS // 2, arbiter=False)


def test_with_arbiter():
    run_rounds((Rounds.replace_primary, Rounds.kill_secondary,
                Rounds.replace_primary, Rounds.kill_primary,
                Rounds.replace_primary, Rounds.kill_both),
               ROUNDS - ROUNDS // 2)


if __name__ == '__main__':
    pair.main(test_without_arbiter, test_with_arbiter)
