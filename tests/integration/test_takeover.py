"""scripts/twinlog-failover and twinlog-move up to the point where a kernel with
NBD and a pool are needed: what they refuse, and that they change nothing then.
"""

import os
import signal

import pair
from pair import FAILED, REFUSED, UNREACHABLE, USAGE

SCRIPTS = os.path.join(os.environ['TWINLOG_SOURCE'], 'scripts')


def run(script, node, *options):
    environment = dict(pair.environment(), TWINLOG_COMMAND=pair.TWINLOG,
                       TMPDIR=pair.make_directory())
    return pair.run([os.path.join(SCRIPTS, script), node.volume, '--control',
                     node.control, *options], env=environment)


def expect(status, text, script, node, *options):
    result = run(script, node, *options)
    pair.check(result.returncode == status and text in result.stderr,
               f'{script} {options}: {result.returncode}, expected {status}'
               f' and "{text}": {result.stderr}')


def test_usage():
    node = pair.Pair().a
    for options, text in (((), '--fence COMMAND or --fenced'),
                          (('--fence',), 'takes a value'),
                          (('--fence', 'x', '--fenced'), 'exclude'),
                          (('--fenced', '--grace', '1s'), 'whole seconds'),
                          (('--fenced', '--pool', '-m'), 'name of a pool'),
                          (('--fenced', 'other'), 'one volume'),
                          (('--bogus',), 'no option --bogus')):
        expect(USAGE, text, 'twinlog-failover', node, *options)
    expect(USAGE, 'exclude', 'twinlog-move', node, '--take', '--other', 'x')
    for script in ('twinlog-failover', 'twinlog-move'):
        expect(UNREACHABLE, '', script, node,
               *(('--fenced',) if 'failover' in script else ()))


def test_primary_lives():
    """Nobody is powered off for a call that was not needed."""
    both = pair.Pair(deadline=1).create()
    fenced = os.path.join(pair.make_directory(), 'fenced')
    expect(REFUSED, 'twinlog-move', 'twinlog-failover', both.b, '--fence',
           f'echo >{fenced}')
    pair.check(not os.path.exists(fenced), 'it was fenced')
    both.wait_complete(both.a)


def test_no_data():
    """Nor for a node that could not take over."""
    both = pair.Pair(deadline=1).create()
    fenced = os.path.join(pair.make_directory(), 'fenced')
    both.b.kill()
    both.a.wait(copies=1)
    both.a.signal(signal.SIGSTOP)
    both.b.spawn()
    both.b.wait(disk_state='Empty')
    expect(REFUSED, 'must not take over', 'twinlog-failover', both.b,
           '--fence', f'echo >{fenced}')
    pair.check(not os.path.exists(fenced), 'it was fenced')
    both.a.signal(signal.SIGCONT)


def test_fencing():
    """A primary that hangs: nothing is done until it is off."""
    both = pair.Pair(deadline=1).create()
    both.a.signal(signal.SIGSTOP)
    expect(FAILED, 'fencing failed', 'twinlog-failover', both.b, '--fence',
           'false')
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    expect(0, 'would: promoting', 'twinlog-failover', both.b, '--fence',
           'false', '--dry-run')
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    # How it goes on from there takes a kernel with NBD.
    result = run('twinlog-failover', both.b, '--fence',
                 f'kill -9 {both.a.pid()}', '--socket', '/nonexistent/socket')
    pair.equal(both.b.get('role'), 'Primary', f'role, {result.stderr}')
    pair.check(result.returncode == FAILED
               and 'could not be attached' in result.stderr, result.stderr)


def test_move_refused():
    """The partner is away; and a second half without the first."""
    both = pair.Pair(deadline=1).create()
    expect(REFUSED, 'not Primary', 'twinlog-move', both.b, '--take')
    both.b.kill()
    both.a.wait(copies=1)
    expect(REFUSED, 'UpToDate', 'twinlog-move', both.a)
    pair.equal(both.a.get('role'), 'Primary', 'role')


if __name__ == '__main__':
    pair.main(test_usage, test_primary_lives, test_no_data, test_fencing,
              test_move_refused)
