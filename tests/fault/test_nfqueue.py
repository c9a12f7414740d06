"""Packets that are late, lost or out of order, one by one, on the cable between
two nodes: no request waits beyond the deadline and a second, a link that is
slow but within the deadline costs no error and no view, nothing that was
acknowledged is lost, and the pair is whole again without help.

TWINLOG_SEED: of the random numbers.
"""

import os
import random

import pair
from load import DEADLINE, Load
from network import requires_network
from packets import BadNetwork, requires_packets
from rounds import work_for, work_until

SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 31))))
MS = DEADLINE * 1000  # the deadline in milliseconds
LONG = 4 * DEADLINE  # where the network alone must not reach it
POLICIES = ((True, 'arbiter'), (False, 'error'))


def begin(**parameters):
    """A busy pair, and the network between its nodes, which is good yet."""
    load = Load(**parameters)
    return load, BadNetwork(load.both, SEED)


def end(load, network, name):
    """The network is good again."""
    seen, lost = network.become()
    pair.check(seen > 20, f'{name}: only {seen} packets were seen')
    load.end(f'{name}, {lost} of {seen + lost} packets lost')


def undisturbed(load, view, name):
    pair.equal(load.client.failed, 0, f'{name}: failed requests')
    pair.equal(load.both.a.get('view'), view, f'{name}: view')
    pair.equal(load.both.a.status()['counters']['resyncs'], 0,
               f'{name}: resyncs')


def test_delay_below():
    """Each request takes long, but not so long: slow is not gone."""
    for arbiter, policy in POLICIES:
        load, network = begin(arbiter=arbiter, deadline=LONG)
        view = load.both.a.get('view')
        network.become(delay=MS / 5)
        work_for(load.client, 3 * DEADLINE)
        pair.check(load.longest.seconds >= DEADLINE / 3, 'nothing was late')
        undisturbed(load, view, policy)
        end(load, network, f'{MS / 5:.0f} ms, {policy}')


def test_delay_above():
    """Longer than the deadline: as if the partner were gone."""
    for arbiter, policy in POLICIES:
        load, network = begin(arbiter=arbiter)
        network.become(delay=1.5 * MS)
        if arbiter:
            load.until('alone', copies=1, suspended=False)
            done = load.client.completed
            work_until(load.client,
                       lambda: load.client.completed > done + 100,
                       'it goes on')
        else:
            work_until(load.client, lambda: load.client.failed > 0,
                       'writes fail')
        # New connections fare no better.
        work_for(load.client, 2 * DEADLINE)
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        end(load, network, f'{1.5 * MS:.0f} ms, {policy}')


def test_delay_at_the_edge():
    """A handshake is quick enough and an acknowledgement is not: again and
    again the partner is filled, lets the next write wait, and is left behind.
    """
    for arbiter, policy in POLICIES:
        load, network = begin(arbiter=arbiter)
        network.become(delay=MS / 2)
        work_for(load.client, 5 * DEADLINE)
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        end(load, network, f'{MS / 2:.0f} ms, {policy}')


def test_loss():
    """LINBIT/drbd 116: from 1 to 30 % of all packets are lost at random, those
    of handshakes and resyncs too.
    """
    for arbiter, policy in POLICIES:
        load, network = begin(arbiter=arbiter)
        for loss in (1, 5, 10, 20, 30):
            network.become(loss=loss)
            work_for(load.client, DEADLINE / 2)
            load.both.kill_connections()
            work_for(load.client, 1.5 * DEADLINE)
        if arbiter:
            pair.equal(load.client.failed, 0, 'failed requests')
        end(load, network, f'1 to 30 % loss, {policy}')


def test_reorder():
    """Later packets overtake by up to 20 ms."""
    for arbiter, policy in POLICIES:
        load, network = begin(arbiter=arbiter, deadline=LONG)
        view = load.both.a.get('view')
        network.become(delay=1, jitter=20)
        work_for(load.client, 2 * DEADLINE)
        undisturbed(load, view, policy)
        end(load, network, f'out of order, {policy}')


def test_all_of_it():
    """Late, out of order and lossy while a node is filled under load."""
    load, network = begin(arbiter=True, deadline=LONG)
    network.become(delay=1, jitter=5, loss=2)
    load.both.b.kill()
    load.until('alone', copies=1, suspended=False)
    load.both.b.spawn()
    load.until('filled', 90, copies=2, peer_disk_state='UpToDate')
    pair.equal(load.client.failed, 0, 'failed requests')
    seen, lost = network.become()
    pair.check(lost > 0, 'nothing was lost')
    load.at_rest(f'late, out of order, {lost} of {seen + lost} lost')


if __name__ == '__main__':
    requires_network()
    requires_packets()
    print(f'  seed {SEED}', flush=True)
    pair.main(test_delay_below, test_delay_above, test_delay_at_the_edge,
              test_loss, test_reorder, test_all_of_it)
