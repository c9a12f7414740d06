"""A state file that is lost, or is that of the other node, while the RAM was
kept: what is in the RAM does not count without the record of who was a member,
so the node is filled anew and confirms nothing meanwhile.
"""

import os
import shutil

import pair
from history import Client, History
from rounds import (all_equal, check_history, same_stores, work_for,
                    work_until)

BLOCKS = 1024


def kept_pair(**parameters):
    """A pair whose RAM is kept, with content; its history."""
    both = pair.Pair(size=BLOCKS * pair.BLOCK,
                     store=pair.make_directory('/dev/shm'),
                     deadline=1, **parameters).create()
    history = History(BLOCKS)
    client = Client(both.a, history)
    work_for(client, 0.2)
    return both, history, client


def at_rest(both, primary, history):
    pair.wait_for(lambda: all_equal(primary.status()), 'at rest')
    both.wait_complete(primary)
    same_stores(both)
    check_history(primary, history)


def is_fresh(node):
    """It has no record, and what its RAM holds does not count."""
    pair.equal((node.get('disk-state'), node.get('view')['number']),
               ('Empty', 0), f'data and view of {node.name}')


def test_of_secondary():
    """Under load, with the RAM kept and without: Empty, then filled."""
    for keep_ram in (True, False):
        for arbiter in (True, False):
            both, history, client = kept_pair(arbiter=arbiter)
            both.b.kill()
            os.unlink(both.b.state)
            if not keep_ram:
                for suffix in ('', '.header'):
                    os.unlink(both.b.parameters['store'] + suffix)
            both.b.spawn()
            work_until(client, lambda: both.a.get('copies') == 2,
                       'it is filled')
            client.close()
            at_rest(both, both.a, history)
            # What its RAM held did not count.
            pair.equal(both.a.status()['counters']['resyncs-full'], 1,
                       'full resyncs')
            both.stop()


def test_of_primary():
    """The other is promoted; the one that lost its record follows."""
    for arbiter in (True, False):
        both, history, client = kept_pair(arbiter=arbiter)
        both.a.kill()
        client.work(lambda: not client.alive())
        os.unlink(both.a.state)
        both.b.wait(connection_state='Connecting')
        if arbiter:
            both.b.twinlog('promote', expect=pair.DONE)
        else:
            both.b.twinlog('promote', '--fenced', expect=pair.DONE)
        check_history(both.b, history)
        client = Client(both.b, history, seed=1)
        both.a.spawn()
        work_until(client, lambda: both.b.get('copies') == 2, 'two copies')
        client.close()
        at_rest(both, both.b, history)
        both.stop()


def test_confirms_nothing():
    """The primary went on alone and acknowledged; then it lost its record.
    It does not tell the node that was left behind that there is nothing newer.
    """
    both, history, client = kept_pair(arbiter=False)
    client.close()
    client = both.a.connect()
    both.b.pause()
    both.a.wait(connection_state='Connecting')
    both.a.twinlog('degrade', '--fenced', expect=pair.DONE)
    client.pwrite(b'W' * 4096, 0)
    both.a.kill()
    os.unlink(both.a.state)
    both.b.resume()
    both.a.start()
    for node in both.nodes:
        node.wait(connection_state='Connected')
    answer = both.b.twinlog('promote', expect=pair.REFUSED)
    pair.check(answer.stderr.strip(), 'no reason')
    is_fresh(both.a)
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    # Not after they have met anew either.
    both.a.kill()
    both.a.start()
    both.b.wait(connection_state='Connected')
    both.b.twinlog('promote', expect=pair.REFUSED)
    both.a.twinlog('promote', expect=pair.REFUSED)
    is_fresh(both.a)


def refuses_to_start(node, words):
    node.spawn()
    status = pair.wait_for(lambda: not node.running()
                           and (node.process.returncode,), 'it ends')
    node.kill()
    pair.check(status != (0,), 'exit status 0')
    pair.contains(node.log_lines()[-1], words, 'its last line')


def test_of_the_other():
    """The state file of one node, copied to the other: refused, unchanged.
    The other's RAM does not count either.
    """
    both, history, client = kept_pair()
    client.close()
    both.b.kill()
    own = both.b.path('own.state')
    os.rename(both.b.state, own)
    shutil.copy(both.a.state, both.b.state)
    with open(both.b.state, 'rb') as file:
        copied = file.read()
    refuses_to_start(both.b, ['node', both.b.state])
    with open(both.b.state, 'rb') as file:
        pair.equal(file.read(), copied, 'the state file')
    os.replace(own, both.b.state)
    # Its own state, and the RAM of the other.
    for suffix in ('', '.header'):
        shutil.copy(both.a.parameters['store'] + suffix,
                    both.b.parameters['store'] + suffix)
    full = both.a.status()['counters']['resyncs-full']
    both.b.start()
    at_rest(both, both.a, history)
    # It did not count: all was copied.
    pair.equal(both.a.status()['counters']['resyncs-full'], full + 1,
               'full resyncs')


def test_of_both():
    """With both records nothing tells which RAM is the newer: nothing is
    served, nor is the volume taken for a new one.
    """
    both, history, client = kept_pair()
    client.close()
    for node in both.nodes:
        node.terminate()
        os.unlink(node.state)
    both.start()
    for node in both.nodes:
        is_fresh(node)
        node.twinlog('promote', expect=pair.REFUSED)
        node.twinlog('create', expect=pair.REFUSED)


if __name__ == '__main__':
    pair.main(test_of_secondary, test_of_primary, test_confirms_nothing,
              test_of_the_other, test_of_both)
