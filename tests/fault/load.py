"""A pair over a cable, kept busy while something is done to the cable."""

import pair
from history import Client, History
from network import NetworkPair
from rounds import Longest, check_history, work_for, work_until

BLOCKS = 2048
DEADLINE = 1.0


class Load:
    """A pair over a cable, and a client that keeps node a busy.  PREPARE is
    called with the pair before it starts.
    """

    def __init__(self, prepare=lambda both: None, **parameters):
        parameters.setdefault('deadline', DEADLINE)
        self.deadline = parameters['deadline']
        self.both = NetworkPair(size=BLOCKS * pair.BLOCK, **parameters)
        prepare(self.both)
        self.both.create()
        self.history = History(BLOCKS)
        self.longest = Longest()
        self.client = self.longest.watch(Client(self.both.a, self.history))
        work_for(self.client, 0.1)

    def until(self, what, seconds=20.0, **states):
        wanted = {key.replace('_', '-'): value
                  for key, value in states.items()}

        def reached():
            status = self.both.a.status()
            return all(status[key] == value
                       for key, value in wanted.items())
        work_until(self.client, reached, what, seconds)

    def whole(self):
        self.until('whole again', copies=2, suspended=False,
                   peer_disk_state='UpToDate')

    def end(self, name):
        """As at_rest, and each resync was a partial one; then it is over."""
        self.at_rest(name)
        for node in self.both.nodes:
            pair.equal(node.status()['counters']['resyncs-full'], 0,
                       f'full resyncs of {node.name}')
        self.both.stop()

    def at_rest(self, name):
        """Whole again, nothing lost, no request too long."""
        self.whole()
        self.client.close()
        self.both.wait_complete(self.both.a)
        check_history(self.both.a, self.history)
        print(f'  {name}: longest request {self.longest.seconds:.2f} s of'
              f' {self.deadline + 1:.2f}, {self.client.failed} failed,'
              f' acknowledged {self.history.acknowledged}, lost 0',
              flush=True)
        pair.check(self.longest.seconds <= self.deadline + 1,
                   f'{name}: a request took {self.longest.seconds:.2f} s')
