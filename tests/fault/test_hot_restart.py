"""ydb-platform/nbs 5386: a node is ended by SIGTERM under load and started
again with its RAM, as for a new release of it, time after time: the volume is
served again each time, and only what was in flight is copied.

TWINLOG_RESTARTS: how many (20), of the primary and the secondary in turn.
"""

import os
import statistics
import time

import pair
from history import Client, History
from rounds import all_equal, check_history, same_stores, work_for, work_until

BLOCKS = 1024
RESTARTS = int(os.environ.get('TWINLOG_RESTARTS', '20'))


def restart_primary(both, client, history):
    """The client attaches anew; how long until its first write is done."""
    both.a.process.terminate()
    client.work(lambda: not client.alive())
    both.a.terminate(10)
    began = time.monotonic()
    both.a.spawn()
    both.a.wait(10, role='Primary', suspended=False)
    check_history(both.a, history)
    client = Client(both.a, history, seed=history.numbers)
    work_until(client, lambda: client.completed > 0, 'it is served again')
    return client, time.monotonic() - began


def restart_secondary(both, client):
    """The client hears nothing of it."""
    both.b.process.terminate()
    work_until(client, lambda: not both.b.running(), 'b has ended')
    both.b.kill()  # reap it
    both.b.spawn()
    work_until(client, lambda: both.a.get('copies') == 2, 'two copies')


def run_restarts(arbiter):
    both = pair.Pair(size=BLOCKS * pair.BLOCK, arbiter=arbiter,
                     store=pair.make_directory('/dev/shm')).create()
    history = History(BLOCKS)
    client = Client(both.a, history)
    failed, took = 0, []
    for number in range(RESTARTS // 2):
        work_for(client, 0.05)
        if number % 2 == 0:
            failed += client.failed
            client, seconds = restart_primary(both, client, history)
            took.append(seconds)
        else:
            before = client.failed
            restart_secondary(both, client)
            pair.equal(client.failed, before, 'failed requests')
        work_until(client, lambda: both.a.get('copies') == 2, 'two copies')
    client.close()
    pair.wait_for(lambda: all_equal(both.a.status()), 'at rest')
    same_stores(both)
    check_history(both.a, history)
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   f'full resyncs of {node.name}')
    print(f'  {RESTARTS // 2} restarts {"with" if arbiter else "without"}'
          f' arbiter: start to first write median'
          f' {statistics.median(took):.2f} s, worst {max(took):.2f} s;'
          f' acknowledged {history.acknowledged}, lost 0', flush=True)


def test_with_arbiter():
    run_restarts(True)


def test_without_arbiter():
    run_restarts(False)


if __name__ == '__main__':
    pair.main(test_with_arbiter, test_without_arbiter)
