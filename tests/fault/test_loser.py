"""home-operations/miroir 145: the node that lost starts its recovery from what
its peer tells it: it asks nobody else for that, and nobody has to help.
"""

import pair
from history import Client, History
from link import LinkedPair
from rounds import all_equal, check_history, same_stores, work_for, work_until
from test_arbiter_faults import faulty_pair

BLOCKS = 1024


def at_rest(both, primary, history):
    pair.wait_for(lambda: all_equal(primary.status()), 'at rest')
    both.wait_complete(primary)
    same_stores(both)
    check_history(primary, history)
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   f'full resyncs of {node.name}')


def test_secondary():
    """It was left behind while the link was dark, and its arbiter is gone."""
    both, arbiter = faulty_pair(LinkedPair,
                                store=pair.make_directory('/dev/shm'))
    history = History(BLOCKS)
    client = Client(both.a, history)
    work_for(client, 0.1)
    arbiter.fault(both.b, 'exit 2')
    both.dark()
    work_until(client, lambda: both.a.get('copies') == 1
               and not both.a.get('suspended'), 'a is alone')
    work_for(client, 0.1)
    both.light()
    work_until(client, lambda: both.a.get('copies') == 2, 'b is filled')
    pair.equal(client.failed, 0, 'failed requests')
    client.close()
    at_rest(both, both.a, history)
    pair.equal(arbiter.met(), 0, 'questions of b to its arbiter')


def test_primary():
    """It stood still while the other was promoted, and there is no arbiter."""
    both = pair.Pair(size=BLOCKS * pair.BLOCK, arbiter=False, deadline=1,
                     store=pair.make_directory('/dev/shm')).create()
    history = History(BLOCKS)
    old = Client(both.a, history)
    work_for(old, 0.1)
    both.a.pause()
    both.b.wait(5, connection_state='Connecting')
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    new = Client(both.b, history, seed=1)
    work_for(new, 0.1)
    # The assertion was wrong, so nothing new is asked of it: what it had under
    # way it may only answer as of the time before.
    both.a.resume()
    work_until(new, lambda: both.b.get('copies') == 2, 'a is filled')
    old.drain()
    pair.equal(both.a.get('role'), 'Secondary', 'role of a')
    new.close()
    at_rest(both, both.b, history)


if __name__ == '__main__':
    pair.main(test_secondary, test_primary)
