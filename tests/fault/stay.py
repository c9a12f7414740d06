"""A pair that lives through many faults, and a client that outlives them.

Each round does one bad thing, makes the other node primary where there is
still something to be made, starts what was killed, with its RAM or without,
and waits for two copies; all of it under load.  At the end of the round both
nodes hold the same, and what the client was told so far is judged.

A request ends within the deadline, and where there is an arbiter within one
second more (its grace); the client may hear of it a second later, or on a
machine that is busy with other things TWINLOG_SLACK seconds.
"""

import collections
import contextlib
import os
import random
import signal
import threading
import time

import pair
from judge import Record
from link import LinkedPair
from roaming import Roamer
from rounds import all_equal, check_history, same_stores
from test_arbiter_faults import FAULTS as ARBITER_FAULTS
from test_arbiter_faults import FaultyArbiter, record

BLOCKS = 2048
DEADLINE = 1.0
GRACE = 1.0  # that the arbiter is given
SLACK = float(os.environ.get('TWINLOG_SLACK', '1'))  # until the client hears


class Stay:
    """One pair and its client, for some rounds."""

    tried = collections.Counter()  # faults, of all stays

    def __init__(self, setup, seed):
        self.seed = seed
        self.arbitrated = setup['arbiter']
        self.kept = setup.get('kept', False)
        self.automatic = setup.get('auto-promote', False)
        parameters = {'deadline': DEADLINE}
        if self.kept:
            parameters['store'] = pair.make_directory('/dev/shm')
        if self.automatic:
            parameters['auto_promote'] = 'on'
        self.both = LinkedPair(size=BLOCKS * pair.BLOCK,
                               arbiter=self.arbitrated, **parameters)
        if self.arbitrated:
            os.environ['TWINLOG_FAULTS'] = self.both.directory
            self.arbiter = FaultyArbiter(self.both)
        self.both.create()
        self.primary = self.both.a
        self.changes = 0  # of the primary
        self.record = Record(BLOCKS)
        self.client = Roamer(self.both, self.record, seed=seed)
        self.client.bound = DEADLINE + 1
        self.counts = collections.Counter()

    @property
    def other(self):
        return self.both.other(self.primary)

    # ---- What a fault is made of ----

    def pause(self, longest):
        time.sleep(self.chance.uniform(0, longest))

    def kill(self, node):
        """With its RAM, or so that this is kept, by chance."""
        node.kill()
        self.client.died(node)
        if self.kept and self.chance.random() < 0.5:
            os.unlink(node.parameters['store'])
            self.counts['RAM lost'] += 1
        else:
            self.counts['RAM kept' if self.kept else 'RAM lost'] += 1

    def serves(self, node):
        status = node.status()
        return status['role'] == 'Primary' and not status['suspended']

    def take_over(self, node, seconds=20.0):
        """NODE is to serve."""
        def serves():
            if not self.serves(node) and not self.automatic:
                self.promote(node)
            return self.serves(node)
        self.client.wait_for(serves, f'{node.name} serves', seconds)
        self.serving(node)

    def serving(self, node):
        self.changes += node is not self.primary
        self.primary = node

    def promote(self, node):
        """As an operator does who has fenced the other node, or who leaves
        that to the arbiter.
        """
        return node.twinlog('promote', *(
            [] if self.arbitrated else ['--fenced'])).returncode

    def stop_primary(self, stop=pair.Node.pause, go_on=pair.Node.resume):
        """Stop it while both are members.  One that has gone on alone, as
        where this machine was held up for the deadline, is let go on until
        it has two copies again: nobody could take its place.
        """
        stop(self.primary)
        while self.arbitrated \
                and not record(self.both).strip().endswith(':a+b'):
            self.counts['was alone'] += 1
            go_on(self.primary)
            self.both.light()
            self.two_copies()
            stop(self.primary)

    def kill_primary(self):
        self.stop_primary()
        self.kill(self.primary)
        self.both.light()
        self.take_over(self.other)

    def kill_secondary(self):
        """The primary goes on without it; not always in time."""
        self.kill(self.other)
        if not self.arbitrated:
            self.pause(1.5 * DEADLINE)
            self.primary.wait(connection_state='Connecting')
            self.primary.twinlog('degrade', '--fenced', expect=pair.DONE)
        self.client.wait_for(lambda: self.primary.get('copies') == 1
                             and self.serves(self.primary), 'alone')

    def start_dead(self):
        for node in self.both.nodes:
            if not node.running():
                node.start()

    def two_copies(self):
        self.start_dead()
        self.client.wait_for(
            lambda: self.primary.get('copies') == 2
            and self.primary.get('peer-disk-state') == 'UpToDate',
            f'{self.primary.name} has two copies', 40)

    # ---- Faults: each ends with a primary that serves ----

    def just_kill(self):
        self.pause(0.4)
        self.kill_primary()

    def dark(self, towards=None):
        """Shortly before the kill, as where a machine dies."""
        self.both.dark(towards)
        self.pause(DEADLINE / 4)
        self.kill_primary()

    def one_way(self):
        self.dark(self.chance.choice(self.both.nodes))

    def reconnect(self):
        """The kill meets the resync of what was in flight at a cut, or with
        an arbiter a primary that was about to go on alone.
        """
        self.both.light()
        self.pause(0.06)
        if not self.arbitrated:
            self.kill_primary()
            return
        self.kill_source()
        self.two_copies()
        self.kill_primary()

    def frozen(self):
        """Stopped, overtaken, and let go on, where an arbiter is there to
        see to it; else it is killed before the other is promoted.
        """
        old, idle = self.primary, self.chance.random() < 0.5
        self.stop_primary(lambda node: self.client.freeze(node, idle),
                          self.client.thaw)
        if not self.arbitrated:
            self.pause(2 * DEADLINE)
            self.kill(old)
            self.take_over(self.other)
            return
        self.take_over(self.other)
        self.client.progress()
        self.pause(0.3)
        if self.chance.random() < 0.3:
            self.kill(old)
            return
        self.client.thaw(old)
        old.wait(role='Secondary')

    def split(self):
        """The link is dark and both want to be primary."""
        late = self.chance.choice((self.primary, self.other, None))
        if late:
            self.arbiter.fault(late, ARBITER_FAULTS['hangs'])
        self.both.dark()
        old, other = self.primary, self.other

        def decided():
            if not self.automatic:
                self.promote(other)
            return other.get('role') == 'Primary' \
                or old.get('copies') == 1 and self.serves(old)
        self.client.wait_for(decided, 'one of both goes on')
        self.pause(0.3)
        if late:
            self.arbiter.good(late)
        self.both.light()
        self.one_is_primary()
        if self.primary is old:
            self.counts['splits won by the old primary'] += 1
            self.two_copies()
            self.kill_primary()

    def one_is_primary(self):
        """Where chance has decided; it may take a command."""
        def found():
            for node in self.both.nodes:
                if node.running() and self.serves(node):
                    rest = self.both.other(node)
                    if not rest.running() or rest.get('role') != 'Primary':
                        return node
            return None
        began = time.monotonic()

        def sought():
            node = found()
            if node:
                return node
            if time.monotonic() > began + DEADLINE and not self.automatic:
                for node in self.both.nodes:
                    if node.running():
                        self.promote(node)
            if time.monotonic() > began + 4 * DEADLINE:
                self.start_dead()
            return found()
        self.serving(self.client.wait_for(sought, 'one serves', 30))

    def target_dies(self):
        """In the middle of its resync, and once more thereafter."""
        self.kill_secondary()
        self.other.start()
        self.pause(0.15)
        self.kill_secondary()
        self.two_copies()
        self.kill_primary()

    def source_dies(self):
        """In the middle of a resync, with its RAM kept: nobody else has all,
        unless the resync was over.
        """
        self.kill_secondary()
        self.other.start()
        self.pause(0.15)
        self.kill_source()
        self.two_copies()
        self.kill_primary()

    def kill_source(self):
        """Its RAM is kept, and it comes back where the other cannot serve."""
        self.primary.kill()
        if self.promote(self.other) != pair.DONE:
            self.counts['refused'] += 1
            self.primary.start()
        self.one_is_primary()

    def both_die(self):
        for node in self.chance.sample(self.both.nodes, 2):
            node.process.kill()
        for node in self.both.nodes:
            node.kill()
        self.pause(0.2)
        for node in self.chance.sample(self.both.nodes, 2):
            node.spawn()
        for node in self.both.nodes:
            node.wait_up()
        self.one_is_primary()
        self.two_copies()
        self.kill_primary()

    def killed_in_switchover(self):
        """One of both, at some moment of it."""
        before, victim = self.primary, self.chance.choice(self.both.nodes)
        thread = threading.Thread(
            target=self.primary.twinlog,
            args=('switchover', '--disconnect'), daemon=True)
        thread.start()
        self.pause(0.05)
        if victim is before:
            self.stop_primary()
        self.kill(victim)
        thread.join(20)
        pair.check(not thread.is_alive(), 'the switchover has no end')
        self.one_is_primary()
        if self.primary is before:
            self.two_copies()
            self.kill_primary()

    def switchover(self):
        """Nobody dies; both remain members."""
        self.primary.twinlog('switchover', '--disconnect', expect=pair.DONE)
        self.one_is_primary()

    def bad_arbiter(self):
        """It fails for some time from the kill on."""
        name = self.chance.choice(sorted(ARBITER_FAULTS))
        for node in self.both.nodes:
            self.arbiter.fault(node, ARBITER_FAULTS[name])
        timer = threading.Timer(
            self.chance.uniform(0.2, 2.5),
            lambda: [self.arbiter.good(node) for node in self.both.nodes])
        timer.start()
        try:
            self.kill_primary()
        finally:
            timer.join()

    # ---- A round ----

    def faults(self):
        """Those that there can be in this setup."""
        always = [Stay.just_kill, Stay.dark, Stay.one_way, Stay.frozen,
                  Stay.target_dies, Stay.killed_in_switchover,
                  Stay.switchover]
        if self.arbitrated:
            always += [Stay.split, Stay.bad_arbiter]
        if self.kept:
            always += [Stay.source_dies, Stay.both_die]
        if self.kept or not self.arbitrated:
            always += [Stay.reconnect]
        return always

    def round(self, number):
        self.chance = random.Random(f'{self.seed} {number}')
        # One of those that were done least so far.
        faults = self.faults()
        least = min(self.tried[fault] for fault in faults)
        fault = self.chance.choice([fault for fault in faults
                                    if self.tried[fault] == least])
        self.tried[fault] += 1
        self.counts[fault.__name__] += 1
        began = time.monotonic()
        self.client.progress()
        before = self.primary
        fault(self)
        self.client.progress()
        # In half of the rounds nothing is written over what there is now.
        if self.chance.random() < 0.5:
            self.client.hold()
            check_history(self.primary, self.record)
            self.client.release()
        self.two_copies()
        self.client.progress()
        self.at_rest()
        print(f'  {number}: {self.setup()}, {fault.__name__},'
              f' {before.name} to {self.primary.name},'
              f' {time.monotonic() - began:.1f} s, longest request so far'
              f' {self.client.longest:.2f} s', flush=True)

    def setup(self):
        return ' '.join((['auto-promote'] if self.automatic else
                         ['arbiter'] if self.arbitrated else ['fenced'])
                        + (['store'] if self.kept else []))

    def limit(self):
        """Within that a node answers every request."""
        return DEADLINE + (GRACE if self.arbitrated else 0.0)

    def at_rest(self):
        self.client.hold()
        self.client.wait_for(lambda: all_equal(self.primary.status()),
                             'at rest')
        self.both.wait_complete(self.primary)
        if self.kept:
            same_stores(self.both)
        else:
            self.primary.twinlog('verify', expect=pair.DONE)
        check_history(self.primary, self.record)
        self.record.judge()
        pair.check(not self.record.lost, f'{len(self.record.lost)} wrong: '
                   + '; '.join(self.record.lost[:5]))
        limit = self.limit() + SLACK
        pair.check(self.client.longest <= limit, 'a request took'
                   f' {self.client.longest:.2f} s of at most {limit:.2f}')
        self.client.release()

    def show(self):
        """What the nodes said, but for the clients that they turned away."""
        for node in self.both.nodes:
            lines = [line for line in node.log_lines()
                     if 'client refused' not in line]
            print(f'---- of node {node.name}', *lines[-30:], sep='\n',
                  flush=True)
            if node.running():
                node.resume()
                print(f'---- {node.status()}', flush=True)

    def end(self):
        self.client.end()
        self.stop()

    def stop(self):
        """Also the processes of the arbiter that killed nodes had started."""
        self.both.stop()
        if self.arbitrated:
            for pid in self.arbiter.left():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
