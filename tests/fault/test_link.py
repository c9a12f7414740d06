"""The link between two nodes, each in a network namespace of its own: pulled
and plugged in again, deaf in one direction, slow, its connections killed by
the kernel.  No request waits beyond the deadline and a second, nothing that
was acknowledged is lost, and the pair is whole again afterwards without help.

TWINLOG_BLIPS: how many connections are killed (50).
"""

import os

import pair
from history import Client
from load import DEADLINE, Load
from network import NetworkPair, requires_network
from rounds import check_history, work_for, work_until

BLIPS = int(os.environ.get('TWINLOG_BLIPS', '50'))


def down_and_up(name, arbiter, family):
    load = Load(arbiter=arbiter, family=family)
    for _ in range(2):
        failed = load.client.failed
        load.both.cable('down')
        if arbiter:
            load.until('alone', copies=1, suspended=False)
            work_for(load.client, 0.2)
        else:
            work_until(load.client, lambda: load.client.failed > failed,
                       'writes fail')
        load.both.cable('up')
        load.whole()
    if arbiter:
        pair.equal(load.client.failed, 0, 'failed requests')
    load.end(name)


def test_down_and_up():
    down_and_up('down and up, error', False, 4)
    down_and_up('down and up, arbiter', True, 4)
    down_and_up('down and up, arbiter, IPv6', True, 6)


def test_short_down():
    """Shorter than the deadline: what was lost is sent again."""
    load = Load(arbiter=False, deadline=4)
    view = load.both.a.get('view')
    for _ in range(3):
        load.both.cable('down')
        work_for(load.client, 0.2)
        load.both.cable('up')
        work_for(load.client, 1.0)
    load.whole()
    pair.equal(load.client.failed, 0, 'failed requests')
    pair.equal(load.both.a.get('view'), view, 'view')
    load.end('0.2 s down, error')


def test_parts():
    """A write that is carried out in two parts waits in the first one until
    the arbiter has let the node go on alone, and ends as well as any other.
    """
    both = NetworkPair(size=2 * pair.MIB, deadline=DEADLINE, arbiter=True)
    both.create()
    handle = both.a.connect()
    both.cable('down')
    handle.pwrite(bytes(2 * pair.BLOCK), pair.MIB - pair.BLOCK)
    handle.zero(2 * pair.BLOCK, pair.MIB - pair.BLOCK)
    pair.equal(both.a.get('copies'), 1, 'copies')
    both.stop()


def test_deaf():
    """What is sent to one of them is lost, the other direction works."""
    for arbiter in (True, False):
        for number in range(2):
            load = Load(arbiter=arbiter)
            node = load.both.nodes[number]
            failed = load.client.failed
            load.both.deafen(node)
            if arbiter:
                load.until('alone', copies=1, suspended=False)
                work_for(load.client, 0.2)
                pair.equal(load.client.failed, 0, 'failed requests')
            else:
                work_until(load.client, lambda: load.client.failed > failed,
                           'writes fail')
            load.both.undeafen(node)
            load.end(f'{node.name} deaf, '
                     f'{"arbiter" if arbiter else "error"}')


def test_slow():
    """A link of 50 Mbit/s: slow is not gone.  A node that comes back empty is
    filled over it under load.
    """
    load = Load(arbiter=True)
    load.both.limit('50mbit')
    work_for(load.client, 3 * DEADLINE)
    pair.equal(load.both.a.get('copies'), 2, 'copies')
    pair.equal(load.both.a.status()['counters']['resyncs'], 0, 'resyncs')
    load.both.b.kill()
    load.until('alone', copies=1, suspended=False)
    load.both.b.spawn()
    load.until('filled', copies=2, peer_disk_state='UpToDate')
    pair.equal(load.client.failed, 0, 'failed requests')
    load.client.close()
    load.both.wait_complete(load.both.a)
    check_history(load.both.a, load.history)
    print(f'  50 Mbit/s: longest request {load.longest.seconds:.2f} s,'
          f' acknowledged {load.history.acknowledged}', flush=True)
    pair.check(load.longest.seconds <= DEADLINE + 1, 'a request took longer')


def connections_killed(family, blips):
    """Within the deadline they are replaced, and no client hears of it."""
    load = Load(arbiter=False, deadline=5, family=family)
    killed = 0
    for _ in range(blips):
        gone = load.both.kill_connections()
        pair.check(gone > 0, 'no connection was killed')
        killed += gone
        done = load.client.completed
        work_until(load.client, lambda: load.client.completed > done + 100,
                   'it goes on')
        load.whole()
    pair.equal(load.client.failed, 0, 'failed requests')
    pair.equal(load.both.a.get('view')['number'], 1, 'view')
    load.end(f'{killed} connections killed, IPv{family}')


def test_connections_killed():
    connections_killed(4, BLIPS)
    connections_killed(6, max(1, BLIPS // 5))


def test_promotion_across():
    """The cable is pulled and the other side promoted, there and back."""
    for family in (4, 6):
        load = Load(family=family)
        primary, client = load.both.a, load.client
        for number in range(2):
            other = load.both.other(primary)
            # An overtaken primary does not know it before it asks.
            primary.pause()
            load.both.cable('down')
            other.wait(DEADLINE + 3, connection_state='Connecting')
            other.twinlog('promote', expect=pair.DONE)
            fresh = Client(other, load.history, seed=number)
            work_for(fresh, 0.1)
            # The history tells whether what it answers now was done before.
            primary.resume()
            client.drain()
            load.both.cable('up')
            primary, client = other, fresh
            work_until(client, lambda: primary.get('copies') == 2,
                       'two copies')
        client.close()
        load.both.wait_complete(primary)
        check_history(primary, load.history)
        load.both.stop()


if __name__ == '__main__':
    requires_network()
    pair.main(test_down_and_up, test_short_down, test_parts, test_deaf,
              test_slow, test_connections_killed, test_promotion_across)
