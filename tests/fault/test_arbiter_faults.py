"""Arbiters that hang, fail, talk nonsense, are killed, or swap and do not say
so: while the outcome is unknown nothing is acknowledged alone and nobody is
promoted; the same swap is asked again until it is known, also after a
restart; what was acknowledged is there in the end.
"""

import os
import shlex
import time

import pair
from history import Client, History
from link import LinkedPair
from rounds import Longest, check_history, work_for, work_until

BLOCKS = 1024
DEADLINE = 1.0

# What the command does instead of its work; "swapped" first does it.
FAULTS = {
    'hangs': 'exec sleep 20',
    'fails': 'echo out of order >&2; exit 2',
    'says nonsense': 'head -c 3000 /dev/zero | tr "\\0" "#"; echo; exit 1',
    'says half a line': 'printf slog; exit 1',
    'says nothing': 'exit 1',
    'is killed': 'kill -9 $$',
    'is not there': 'exec /does/not/exist',
    'swapped, hangs': 'work; exec sleep 20',
    'swapped, fails': 'work; exit 3',
    'swapped, is killed': 'work; kill -9 $$',
}

# Until it is told to go on.
WAITS = 'while [ ! -e "${0%/*}/go" ]; do sleep 0.02; done'

SCRIPT = '''#!/bin/sh
# ARBITER NODE COMMAND...: does what the file of this node says.
node=$1
shift
echo $$ >>{directory}/pids
work() {{
  {arbiter} {store} "$@" >/dev/null 2>&1
}}
if [ -e {directory}/fault-$node ]; then
  echo "$node" >>{directory}/met
  . {directory}/fault-$node
fi
exec {arbiter} {store} "$@"
'''


class FaultyArbiter:
    """Makes the arbiter of each node of a pair as bad as it is told."""

    def __init__(self, both):
        self.directory = both.directory
        path = os.path.join(self.directory, 'faulty-arbiter')
        with open(path, 'w') as script:
            script.write(SCRIPT.format(
                directory=shlex.quote(self.directory),
                arbiter=shlex.quote(pair.ARBITER),
                store=shlex.quote(both.arbiter_directory)))
        os.chmod(path, 0o755)
        for node in both.nodes:
            node.parameters['arbiter'] = f'{shlex.quote(path)} {node.name}'

    def fault(self, node, commands):
        path = os.path.join(self.directory, f'fault-{node.name}')
        with open(path + '.new', 'w') as file:
            file.write(commands.replace('work', 'work "$@"') + '\n')
        os.rename(path + '.new', path)

    def good(self, node):
        os.unlink(os.path.join(self.directory, f'fault-{node.name}'))

    def go(self):
        open(os.path.join(self.directory, 'go'), 'w').close()

    def met(self):
        """How often a fault was met."""
        try:
            with open(os.path.join(self.directory, 'met')) as file:
                return len(file.read().split())
        except FileNotFoundError:
            return 0

    def left(self):
        """Those of its processes that are still there."""
        with open(os.path.join(self.directory, 'pids')) as file:
            pids = file.read().split()
        return [pid for pid in pids if self.is_ours(pid)]

    def is_ours(self, pid):
        """Not another process that got the same number."""
        try:
            with open(f'/proc/{pid}/cmdline') as file:
                words = file.read()
            with open(f'/proc/{pid}/environ') as file:
                return bool(words) and \
                    f'TWINLOG_FAULTS={self.directory}' in file.read()
        except OSError:
            return False


def faulty_pair(kind=pair.Pair, **parameters):
    both = kind(size=BLOCKS * pair.BLOCK, deadline=DEADLINE, **parameters)
    arbiter = FaultyArbiter(both)
    os.environ['TWINLOG_FAULTS'] = both.directory
    return both.create(), arbiter


def test_going_on_alone():
    """The partner is killed under load while the arbiter is bad."""
    for name, commands in FAULTS.items():
        both, arbiter = faulty_pair()
        history = History(BLOCKS)
        longest = Longest()
        client = longest.watch(Client(both.a, history))
        work_for(client, 0.1)
        arbiter.fault(both.a, commands)
        both.b.kill()
        # One that swapped is known to have, once it is asked again.
        work_for(client, DEADLINE + 1.2)
        pair.check(arbiter.met() > 0, 'the fault was not met')
        if 'swapped' not in name:
            pair.check(client.failed > 0, f'{name}: nothing failed')
            status = both.a.status()
            pair.equal(status['suspended'], True, f'{name}: suspended')
            pair.equal(status['role'], 'Primary', f'{name}: role')
            pair.check('arbiter' in status['trouble'],
                       f'{name}: trouble {status["trouble"]!r}')
        failed = client.failed
        arbiter.good(both.a)
        work_until(client, lambda: both.a.get('copies') == 1
                   and not both.a.get('suspended'), f'{name}: alone')
        done = client.completed
        work_until(client, lambda: client.completed > done + 50,
                   f'{name}: it goes on')
        pair.wait_for(lambda: not arbiter.left(),
                      f'{name}: the processes of the arbiter end',
                      DEADLINE + 2)
        both.b.spawn()
        work_until(client, lambda: both.a.get('copies') == 2,
                   f'{name}: two copies')
        # The node's bound, and the client's own delay on a busy machine.
        pair.check(longest.seconds <= DEADLINE + 1 + 0.5,
                   f'{name}: a request took {longest.seconds:.2f} s')
        client.close()
        both.wait_complete(both.a)
        check_history(both.a, history)
        print(f'  {name}: {failed} failed, longest request'
              f' {longest.seconds:.2f} s, acknowledged'
              f' {history.acknowledged}, lost 0', flush=True)
        both.stop()


def test_promotion():
    """The primary is killed, and the other's arbiter is bad: it is answered
    in time, and once the arbiter is good the promotion is done.
    """
    for name in ('hangs', 'fails', 'says nonsense', 'swapped, hangs',
                 'swapped, is killed'):
        commands = FAULTS[name]
        both, arbiter = faulty_pair()
        history = History(BLOCKS)
        client = Client(both.a, history)
        work_for(client, 0.1)
        both.a.kill()
        client.work(lambda: not client.alive())
        both.b.wait(connection_state='Connecting')
        arbiter.fault(both.b, commands)
        began = time.monotonic()
        answer = both.b.twinlog('promote')
        took = time.monotonic() - began
        pair.check(arbiter.met() > 0, 'the fault was not met')
        pair.check(took < DEADLINE + 2, f'{name}: it took {took:.2f} s')
        if answer.returncode != pair.DONE:
            pair.check(answer.returncode in (pair.FAILED, pair.TIMED_OUT),
                       f'{name}: exit status {answer.returncode}')
            pair.contains(answer.stderr, ['arbiter'], name)
        if 'swapped' not in name:
            pair.equal(both.b.get('role'), 'Secondary', f'{name}: role')
        arbiter.good(both.b)

        def promoted():
            return both.b.twinlog('promote').returncode == pair.DONE
        pair.wait_for(promoted, f'{name}: promoted in the end', 10)
        check_history(both.b, history)
        both.a.start()
        both.wait_complete(both.b)
        both.stop()


def test_restart_while_unknown():
    """The swap is made, nobody hears of it, and the node is killed: with kept
    RAM it asks again, and is what the arbiter made it.
    """
    both, arbiter = faulty_pair(store=pair.make_directory('/dev/shm'))
    history = History(BLOCKS)
    client = Client(both.a, history)
    work_for(client, 0.1)
    for commands in (FAULTS['swapped, hangs'], FAULTS['hangs']):
        arbiter.fault(both.a, commands)
        met = arbiter.met()
        both.b.kill()
        work_until(client, lambda: arbiter.met() > met, 'it is asked')
        work_for(client, 0.2)
        both.a.kill()
        client.work(lambda: not client.alive())
        arbiter.good(both.a)
        both.a.start()
        both.a.wait(role='Primary', copies=1, suspended=False)
        check_history(both.a, history)
        client = Client(both.a, history)
        work_for(client, 0.1)
        both.b.spawn()
        work_until(client, lambda: both.a.get('copies') == 2, 'two copies')
    client.close()
    both.wait_complete(both.a)
    check_history(both.a, history)


def record(both):
    """What the arbiter has."""
    path = os.path.join(both.arbiter_directory, f'{both.volume}.record')
    with open(path) as file:
        return file.read()


def test_overtaken_while_late():
    """The link is cut; the primary's question arrives late.  If the other's
    came first, the primary steps down and acknowledges nothing; if its own
    swap was made and only the answer is late, the other is refused.
    """
    for late, wins in ((WAITS, 'b'), (FAULTS['swapped, hangs'], 'a')):
        both, arbiter = faulty_pair(LinkedPair)
        history = History(BLOCKS)
        client = Client(both.a, history)
        work_for(client, 0.1)
        before = record(both)
        arbiter.fault(both.a, late)
        both.dark()
        work_until(client, lambda: arbiter.met() > 0, 'a asks the arbiter')
        acknowledged = history.acknowledged
        both.b.wait(5, connection_state='Connecting')
        # Where a's swap is to come first, it has to be there.
        if wins == 'a':
            pair.wait_for(lambda: record(both) != before, 'a has swapped')
        answer = both.b.twinlog('promote')
        if wins == 'b':
            pair.equal(answer.returncode, pair.DONE, 'promote')
            new = Client(both.b, history, seed=1)
            work_for(new, 0.2)
            acknowledged = history.acknowledged
            arbiter.go()
            work_until(client, lambda: both.a.get('role') == 'Secondary',
                       'a steps down')
            pair.equal(history.acknowledged, acknowledged,
                       'acknowledged by the one that was overtaken')
            new.close()
            client.drain()
        else:
            pair.equal(answer.returncode, pair.REFUSED, 'promote')
            arbiter.good(both.a)
            work_until(client, lambda: not both.a.get('suspended'),
                       'a goes on')
            client.close()
        both.light()
        primary = both.a if wins == 'a' else both.b
        both.wait_complete(primary, 20)
        check_history(primary, history)
        both.stop()


if __name__ == '__main__':
    pair.main(test_going_on_alone, test_promotion,
              test_restart_while_unknown, test_overtaken_while_late)
