"""Delay, loss and reordering of single packets on the cable of a NetworkPair,
by two twinlog-packets, each of which has what its node sends.
"""

import os
import subprocess

import pair

PROGRAM = os.path.join(pair.BUILD, 'tests/fault/twinlog-packets')
QUEUE = 0


class Packets:
    """What becomes of the packets that leave the namespace SPACE."""

    def __init__(self, space, seed):
        self.process = subprocess.Popen(
            space.inside([PROGRAM, str(QUEUE), str(seed)]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1,
            preexec_fn=pair.die_with_parent)
        if self.process.stdout.readline() != 'ready\n':
            pair.skip(f'no packet queue: {self.process.stderr.read()}')
        made = space.run('iptables', '-A', 'OUTPUT', '-o', 'cable', '-p',
                         'tcp', '-j', 'NFQUEUE', '--queue-num', str(QUEUE),
                         may_fail=True)
        if made.returncode != 0:
            pair.skip(f'no NFQUEUE: {made.stderr.strip()}')

    def become(self, delay=0, jitter=0, loss=0):
        """Milliseconds, and in a hundred.  How many packets were let go and
        how many lost until now.
        """
        self.process.stdin.write(f'{delay:.0f} {jitter:.0f}'
                                 f' {loss * 10:.0f}\n')
        return [int(word) for word in self.process.stdout.readline().split()]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()


class BadNetwork:
    """Both directions of a NetworkPair."""

    def __init__(self, both, seed):
        self.directions = [Packets(space, seed + i)
                           for i, space in enumerate(both.spaces)]
        stop = both.stop

        def stopped():
            stop()
            while self.directions:
                self.directions.pop().stop()
        both.stop = stopped

    def become(self, **changes):
        """As Packets.become, the sums of both."""
        counts = [one.become(**changes) for one in self.directions]
        return [sum(count) for count in zip(*counts)]


def requires_packets():
    pair.requires_program('iptables')
    if not os.path.exists(PROGRAM):
        pair.skip('twinlog-packets was not built: libnetfilter-queue-dev'
                  ' is missing')
