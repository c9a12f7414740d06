"""Planned changes of sides: the client is detached before and attached to the
other node after, and the volume is served again at once.

TWINLOG_SWITCHOVERS: how many (20).
"""

import os
import re
import statistics
import time

import pair
from history import Client, History
from rounds import check_history, work_for, work_while

BLOCKS = 1024
SWITCHOVERS = int(os.environ.get('TWINLOG_SWITCHOVERS', '20'))
PAUSE = re.compile(r'after a pause of ([0-9.]+) ms')


def left(node):
    """Its clients have gone."""
    pair.wait_for(lambda: node.get('clients') == 0, 'the client left')


def run_switchovers(arbiter, number):
    both = pair.Pair(size=BLOCKS * pair.BLOCK, arbiter=arbiter).create()
    history = History(BLOCKS)
    primary = both.a
    pauses, whole = [], []
    for count in range(number):
        other = both.other(primary)
        client = Client(primary, history, seed=count)
        work_for(client, 0.1)
        client.close()
        left(primary)
        began = time.monotonic()
        answer = primary.twinlog('switchover', expect=pair.DONE)
        # The first write on the other side, with all that lies between.
        fresh = other.connect()
        check = bytes([count + 1]) * 4096
        fresh.pwrite(check, 0)
        whole.append((time.monotonic() - began) * 1000)
        pair.equal(bytes(fresh.pread(4096, 0)), check, 'content')
        # The history's clients do not know of this write: take it back.
        write = history.issue(0, 1, True)
        fresh.zero(4096, 0)
        history.acknowledge(write, 0, 1)
        fresh.shutdown()
        said = PAUSE.search(answer.stdout + answer.stderr)
        pair.check(said, f'no pause in {answer.stdout!r} {answer.stderr!r}')
        pauses.append(float(said.group(1)))
        pair.equal((primary.get('role'), other.get('role')),
                   ('Secondary', 'Primary'), 'roles after the answer')
        primary = other
    check_history(primary, history)
    both.wait_complete(primary)
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   f'full resyncs of {node.name}')
    print(f'  {"with" if arbiter else "without"} arbiter, {number}'
          f' switchovers: pause median {statistics.median(pauses):.1f} ms,'
          f' worst {max(pauses):.1f} ms; command to first write median'
          f' {statistics.median(whole):.0f} ms, worst {max(whole):.0f} ms;'
          f' acknowledged {history.acknowledged}, lost 0', flush=True)
    pair.check(max(whole) < 2000, f'one took {max(whole):.0f} ms')


def test_with_arbiter():
    run_switchovers(True, SWITCHOVERS)


def test_without_arbiter():
    run_switchovers(False, SWITCHOVERS)


def test_refused():
    """While clients are attached, on a secondary, without a partner."""
    both = pair.Pair(size=BLOCKS * pair.BLOCK).create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    view = both.a.get('view')
    answer = both.a.twinlog('switchover', expect=pair.REFUSED)
    pair.contains(answer.stderr, ['client', 'detach', '--disconnect'],
                  'refusal')
    answer = both.b.twinlog('switchover', expect=pair.REFUSED)
    pair.contains(answer.stderr, ['Secondary'], 'refusal on a secondary')
    client.pwrite(b'2' * 4096, 0)
    pair.equal((both.a.get('view'), both.a.get('role')), (view, 'Primary'),
               'view and role after refusals')
    both.b.kill()
    both.a.wait(copies=1)
    client.shutdown()
    left(both.a)
    answer = both.a.twinlog('switchover', expect=pair.REFUSED)
    pair.contains(answer.stderr, ['partner'], 'refusal without a partner')
    pair.equal(both.a.get('role'), 'Primary', 'role')


def test_disconnect():
    """ydb-platform/nbs 6116: with 32 requests in flight, in less than a
    second; what was acknowledged is there, what comes later fails.
    """
    both = pair.Pair(size=BLOCKS * pair.BLOCK).create()
    history = History(BLOCKS)
    primary = both.a
    took = []
    for number in range(5):
        other = both.other(primary)
        client = Client(primary, history, depth=32, seed=number)
        work_for(client, 0.1)

        def change():
            began = time.monotonic()
            primary.twinlog('switchover', '--disconnect', expect=pair.DONE)
            return time.monotonic() - began
        took.append(work_while(client, change))
        client.drain()
        pair.check(client.failed > 0, 'no request of the old client failed')
        done = client.completed
        work_for(client, 0.05)
        client.drain()
        pair.equal(client.completed, done, 'served by the old primary')
        client.close()
        check_history(other, history)
        both.wait_complete(other)
        left(primary)
        primary = other
    print(f'  32 in flight: worst {max(took):.2f} s', flush=True)
    pair.check(max(took) < 1, f'one took {max(took):.2f} s')


def test_partner_freezes():
    """Bounded, and one of the two serves in the end."""
    for arbiter in (True, False):
        both = pair.Pair(size=BLOCKS * pair.BLOCK, deadline=0.5,
                         arbiter=arbiter).create()
        client = both.a.connect()
        client.pwrite(b'1' * 4096, 0)
        client.shutdown()
        left(both.a)
        both.b.pause()
        began = time.monotonic()
        answer = both.a.twinlog('switchover')
        took = time.monotonic() - began
        pair.check(answer.returncode not in (pair.DONE, pair.USAGE),
                   f'exit status {answer.returncode} with a frozen partner')
        pair.check(took < 3, f'it took {took:.1f} s')
        both.b.resume()

        def one_serves():
            return [node for node in both.nodes
                    if node.get('role') == 'Primary'
                    and node.get('copies') == 2]
        primary, = pair.wait_for(one_serves, 'one of them serves', 10)
        both.wait_complete(primary)
        client = primary.connect()
        pair.equal(bytes(client.pread(4096, 0)), b'1' * 4096, 'content')
        both.stop()


if __name__ == '__main__':
    pair.main(test_with_arbiter, test_without_arbiter, test_refused,
              test_disconnect, test_partner_freezes)
