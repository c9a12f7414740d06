"""State files that are damaged, of others, or on a disk that fails: one clear
line, a nonzero status or a refusal, nothing changed.
"""

import os
import shutil

import pair
from test_parameters import refused

FRESH = {'role': 'Secondary', 'disk-state': 'Empty'}


def created():
    """A pair that was created and stopped; its state files exist."""
    both = pair.Pair().create()
    for node in both.nodes:
        node.terminate()
    return both


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def write(path, content):
    with open(path, 'wb') as file:
        file.write(content)


def test_damaged():
    both = created()
    node = both.a
    good = read(node.state)
    for length in (0, 1, len(good) // 2, len(good) - 2):
        write(node.state, good[:length])
        refused(node, [node.state])
    for place in (0, 3, len(good) // 3, len(good) // 2, len(good) - 9):
        bad = bytearray(good)
        bad[place] ^= 0x20
        write(node.state, bad)
        refused(node, [node.state])
    write(node.state, good + b'more')
    refused(node, [node.state])
    write(node.state, os.urandom(1 << 20))
    refused(node, [node.state])
    os.unlink(node.state)
    os.mkdir(node.state)
    refused(node, [node.state])
    os.rmdir(node.state)
    # And the one that was good all the while still is.
    write(node.state, good)
    node.start()
    pair.equal(node.get('view')['number'] >= 1, True, 'view was kept')


def test_of_others():
    both = created()
    node = both.a
    refused(node, ['volume', 'slog0', 'slog7'], name='slog7')
    refused(node, ['node', 'a', 'c'], node='c')
    refused(node, ['size'], size='32M')
    shutil.copy(both.b.state, node.state)
    refused(node, ['node', node.state])


def test_missing():
    """A node without its state file confirms nothing, and is filled."""
    both = pair.Pair().create()
    for node in both.nodes:
        node.terminate()
    for node in both.nodes:
        os.unlink(node.state)
    both.start()
    for node in both.nodes:
        status = node.status()
        for key, value in FRESH.items():
            pair.equal(status[key], value, key)
        pair.equal(status['view']['number'], 0, 'view')
    # The arbiter knows the volume, and that its content is gone.
    for options in ((), ('--alone',)):
        answer = both.a.twinlog('create', *options, expect=pair.REFUSED)
        pair.contains(answer.stderr + answer.stdout, ['arbiter'], 'create')
    pair.equal(both.a.twinlog('promote').returncode, pair.REFUSED, 'promote')


def test_missing_on_one():
    both = pair.Pair().create()
    client = both.a.connect()
    client.pwrite(b'x' * 8192, 4096)
    both.b.kill()
    os.unlink(both.b.state)
    both.b.start()
    both.wait_complete(both.a)
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(both.b.connect().pread(8192, 4096), b'x' * 8192, 'content')


def inside_mounts(node, script, **changes):
    """NODE, after SCRIPT in a mount namespace of its own."""
    return ['unshare', '-m', '--propagation', 'private', 'sh', '-c',
            f'set -e\n{script}\nexec "$@"', 'sh', *node.arguments(**changes)]


def test_read_only():
    """A file system that is read-only: root's permissions do not bind."""
    pair.requires_root()
    both = created()
    node = both.a
    inner = node.path('inner')
    os.mkdir(inner)
    state = os.path.join(inner, 'state')
    shutil.copy(node.state, state)
    script = f'mount --bind {inner} {inner}\n' \
             f'mount -o remount,bind,ro {inner}'
    good = read(state)
    refused(node, [inner], arguments=inside_mounts(node, script, state=state))
    pair.equal(read(state), good, 'the state file')
    # And where there is no state yet.
    os.unlink(state)
    refused(node, [inner], arguments=inside_mounts(node, script, state=state))


def fill(directory):
    """Leave no byte in the file system of DIRECTORY."""
    path = os.path.join(directory, 'filler')
    with open(path, 'ab', buffering=0) as filler:
        for chunk in (pair.BLOCK, 512, 1):
            try:
                while True:
                    filler.write(bytes(chunk))
            except OSError:
                pass
    return path


def on_tiny_disk(node):
    """Start NODE with its state on a file system of 64 KiB.  The directory
    as this process reaches it.
    """
    tiny = node.path('tiny')
    os.mkdir(tiny)
    script = f'mount -t tmpfs -o size=64k none {tiny}'
    state = os.path.join(tiny, 'state')
    node.spawn(arguments=inside_mounts(node, script, state=state))
    node.wait_up()
    return f'/proc/{node.pid()}/root{tiny}'


def test_disk_full_at_create():
    pair.requires_root()
    both = pair.Pair()
    both.b.start()
    tiny = on_tiny_disk(both.a)
    both.a.wait(connection_state='Connected')
    filler = fill(tiny)
    since = len(both.a.log())
    answer = both.a.twinlog('create', expect=pair.FAILED)
    pair.contains(answer.stderr, ['state', 'space'], 'create on a full disk')
    pair.equal(len(answer.stderr.strip().splitlines()), 1, 'lines')
    pair.check(len(both.a.log_lines(since)) <= 3,
               f'logged {both.a.log_lines(since)}')
    status = both.a.status()
    pair.equal(status['role'], 'Secondary', 'role')
    pair.equal(status['view']['number'], 0, 'view')
    pair.equal(both.b.get('view')['number'], 0, 'view of the other')
    pair.check(not os.path.exists(os.path.join(tiny, 'state')),
               'half a state file')
    # With room it works.
    os.unlink(filler)
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)


def test_disk_full_at_promote():
    pair.requires_root()
    both = pair.Pair()
    both.a.start()
    tiny = on_tiny_disk(both.b)
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    client = both.a.connect()
    client.pwrite(b'x' * 4096, 0)
    filler = fill(tiny)
    good = read(os.path.join(tiny, 'state'))
    both.a.kill()
    both.b.wait(connection_state='Connecting')
    view = both.b.get('view')
    answer = both.b.twinlog('promote')
    pair.check(answer.returncode in (pair.FAILED, pair.REFUSED),
               f'promote on a full disk: {answer.returncode}')
    pair.contains(answer.stderr, ['state'], 'promote on a full disk')
    status = both.b.status()
    pair.equal(status['role'], 'Secondary', 'role')
    pair.equal(status['view'], view, 'view')
    pair.equal(read(os.path.join(tiny, 'state')), good, 'state file')
    pair.check(status['trouble'], 'status tells no trouble')
    os.unlink(filler)

    def promoted():
        return both.b.twinlog('promote').returncode == pair.DONE
    pair.wait_for(promoted, 'promoted once there is room')
    pair.equal(both.b.connect().pread(4096, 0), b'x' * 4096, 'content')
    pair.check(not both.b.get('trouble'), 'trouble that has passed')


def test_full_disk_of_primary():
    """The primary cannot record that it is alone: it does not acknowledge,
    and goes on once it can.
    """
    pair.requires_root()
    both = pair.Pair(deadline=1)
    both.b.start()
    tiny = on_tiny_disk(both.a)
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    client = both.a.connect()
    client.pwrite(b'x' * 4096, 0)
    filler = fill(tiny)
    view = both.a.get('view')
    both.b.kill()
    pair.expect_error(lambda: client.pwrite(b'y' * 4096, 0), pair.errno.EIO,
                      'a write that could not be recorded')
    pair.equal(both.a.get('view'), view, 'view')
    os.unlink(filler)
    both.a.wait(copies=1, suspended=False)
    client.pwrite(b'z' * 4096, 0)
    pair.equal(client.pread(4096, 0), b'z' * 4096, 'content')


if __name__ == '__main__':
    pair.main(test_damaged, test_of_others, test_missing, test_missing_on_one,
              test_read_only, test_disk_full_at_create,
              test_disk_full_at_promote, test_full_disk_of_primary)
