"""Connections that look alive and are not: packets that arrive in one direction
only, or only while they are small, a machine that is gone without a word, or
back before anybody noticed, and a link too slow for what is written.  No request waits beyond the deadline and a
second, nothing that was acknowledged is lost, and the pair finds together
again by itself.
"""

import time

import pair
from history import Client
from load import DEADLINE, Load
from network import PORT, NetworkPair, requires_network
from rounds import check_history, work_for, work_until

POLICIES = ((True, 'arbiter'), (False, 'error'))
ALL = 'meta l4proto tcp'
RESETS = 'tcp flags & rst == rst'
LARGE = f'{ALL} meta length > 1000'
DIALS = f'tcp dport {PORT} tcp flags & (syn | ack) == syn'


def some(percent):
    return f'{ALL} numgen random mod 100 < {percent}'


class Filter:
    """What arrives at NODE of a NetworkPair and is dropped on the way."""

    def __init__(self, both, node):
        self.space = both.space(node)
        self.space.run('nft', 'add table netdev fault; add chain netdev fault'
                       ' arrives { type filter hook ingress device cable'
                       ' priority 0; }')

    def drop(self, *rules):
        """This, and nothing else, from now on."""
        self.space.run('nft', 'flush chain netdev fault arrives; ' + ''.join(
            f'add rule netdev fault arrives {rule} counter drop; '
            for rule in rules))


class FilteredLoad(Load):
    """A busy pair, with a filter before each node."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.filters = [Filter(self.both, node) for node in self.both.nodes]

    def drop(self, *rules):
        for one in self.filters:
            one.drop(*rules)

    def vanish(self, node):
        """Its machine is gone: nobody hears of it, and when the machine is
        there again it knows of no connection.
        """
        self.drop(ALL)
        node.kill()
        self.both.space(node).run('ss', '-K', '-t')

    def left_behind(self, arbiter):
        """The partner is known to be gone; within what time."""
        began = time.monotonic()
        if arbiter:
            self.until('alone', copies=1, suspended=False)
            done = self.client.completed
            work_until(self.client,
                       lambda: self.client.completed > done + 100,
                       'it goes on')
        else:
            failed = self.client.failed
            work_until(self.client, lambda: self.client.failed > failed,
                       'writes fail')
        return time.monotonic() - began


def connections(both, node):
    """How many of NODE's machine with the other one are thought alive."""
    return len(both.space(node).run('ss', '-H', '-t', 'state', 'established')
               .stdout.splitlines())


def test_one_way():
    """All or a third of what goes one way is lost, and nothing of the other."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        for one in load.filters:
            one.drop(ALL)
            load.left_behind(arbiter)
            one.drop()
            load.whole()
            one.drop(some(33))
            work_for(load.client, 2 * DEADLINE)
            one.drop()
            load.whole()
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        load.end(f'one way, {policy}')


def test_one_can_dial():
    """A firewall lets connections through that one of them has opened, and
    says nothing to the other.
    """
    load = FilteredLoad(arbiter=False, deadline=5 * DEADLINE)
    for one in load.filters:
        one.drop(DIALS)
        for _ in range(2):
            began = time.monotonic()
            pair.check(load.both.kill_connections() > 0, 'none was killed')
            done = load.client.completed
            work_until(load.client,
                       lambda: load.client.completed > done + 100,
                       'it goes on')
            load.whole()
            print(f'  connected again, busy and whole after'
                  f' {time.monotonic() - began:.2f} s', flush=True)
        one.drop()
    pair.equal(load.client.failed, 0, 'failed requests')
    load.end('one can dial')


def test_partner_gone():
    """It stays away: its connection does not live on either."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        load.vanish(load.both.b)
        took = load.left_behind(arbiter)
        work_for(load.client, DEADLINE)
        pair.equal(connections(load.both, load.both.a), 0,
                   'connections with a machine that is gone')
        load.drop()
        load.both.b.spawn()
        load.at_rest(f'partner gone, {policy}, left behind after'
                     f' {took:.2f} s')
        load.both.stop()


def test_partner_gone_while_idle():
    """Nothing is written: the heartbeats tell."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        load.client.drain()
        load.vanish(load.both.b)
        load.both.a.wait(DEADLINE + 5, connection_state='Connecting')
        load.drop()
        load.both.b.spawn()
        load.at_rest(f'partner gone while idle, {policy}')
        load.both.stop()


def test_partner_back_unnoticed():
    """The machine is up again within the deadline, and what its kernel would
    say of the old connection is lost too: only the new one tells.
    """
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        for number in range(2):
            load.vanish(load.both.b)
            load.drop(RESETS)
            began = time.monotonic()
            load.both.b.spawn()
            load.both.b.wait(DEADLINE + 5, connection_state=(
                'Connected', 'SyncTarget'))
            took = time.monotonic() - began
            work_for(load.client, DEADLINE / 10)
            load.whole()
            print(f'  {policy}: connected {took:.2f} s after its start',
                  flush=True)
        load.at_rest(f'partner back unnoticed, {policy}')
        load.both.stop()


def test_primary_gone():
    """The secondary notices, takes over, and has all of it."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        both = load.both
        load.vanish(both.a)
        load.client.work(lambda: not load.client.alive())
        both.b.wait(DEADLINE + 5, connection_state='Connecting')
        both.b.twinlog('promote', *([] if arbiter else ['--fenced']),
                       expect=pair.DONE)
        check_history(both.b, load.history)
        client = load.longest.watch(Client(both.b, load.history, seed=1))
        work_for(client, 0.1)
        load.drop()
        both.a.spawn()
        work_until(client, lambda: both.b.get('copies') == 2, 'two copies')
        client.close()
        both.wait_complete(both.b)
        check_history(both.b, load.history)
        pair.check(load.longest.seconds <= DEADLINE + 1,
                   f'a request took {load.longest.seconds:.2f} s')
        both.stop()


def test_large_packets_lost():
    """Heartbeats and handshakes pass, what is written does not."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        load.drop(LARGE)
        load.left_behind(arbiter)
        work_for(load.client, 4 * DEADLINE)
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        load.drop()
        load.end(f'large packets lost, {policy}')


def test_too_slow():
    """1 Mbit/s: what is in flight takes longer than the deadline."""
    for arbiter, policy in POLICIES:
        load = FilteredLoad(arbiter=arbiter)
        load.both.limit('1mbit')
        load.left_behind(arbiter)
        work_for(load.client, 3 * DEADLINE)
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        load.both.limit('1gbit')
        load.end(f'1 Mbit/s, {policy}')


def test_large_request():
    """16 MiB at once over 20 Mbit/s: as many small ones it would go on, but it
    is one request.
    """
    for arbiter, policy in POLICIES:
        both = NetworkPair(size='32M', deadline=DEADLINE,
                           arbiter=arbiter).create()
        both.limit('20mbit')
        client = both.a.connect()
        began = time.monotonic()
        try:
            client.pwrite(bytes(range(256)) * (16 * pair.MIB // 256), 0)
        except pair.nbd.Error as error:
            pair.equal(error.errnum, pair.errno.EIO, 'error')
        took = time.monotonic() - began
        print(f'  16 MiB, {policy}: ended after {took:.2f} s', flush=True)
        # Its last piece may begin just before the deadline.
        pair.check(took <= 2 * DEADLINE + 1, f'it took {took:.2f} s')
        both.limit('10gbit')
        both.wait_complete(both.a)
        client.pwrite(b'x' * pair.BLOCK, 0)
        both.stop()


if __name__ == '__main__':
    requires_network()
    pair.requires_program('nft')
    pair.main(test_one_way, test_one_can_dial, test_partner_gone,
              test_partner_gone_while_idle, test_partner_back_unnoticed,
              test_primary_gone, test_large_packets_lost, test_too_slow,
              test_large_request)
