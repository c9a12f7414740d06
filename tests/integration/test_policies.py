"""What a primary does when its partner goes: each policy does what its name
says, and status shows it.
"""

import errno
import os
import time

import pair

EIO = errno.EIO


def timed(function):
    """How long FUNCTION took, and the errno value it failed with or 0."""
    began = time.monotonic()
    try:
        function()
        error = 0
    except pair.nbd.Error as failure:
        error = failure.errnum
    return time.monotonic() - began, error


def write(client, letter, offset=0):
    return timed(lambda: client.pwrite(letter * 4096, offset))


def fails_at_deadline(client, deadline, slack=1.0):
    took, error = write(client, b'f')
    pair.equal(error, EIO, 'a write without a partner')
    pair.check(deadline - 0.05 <= took <= deadline + slack,
               f'it failed after {took:.2f} s, the deadline is {deadline} s')


def is_stuck(client, seconds):
    """A write does not end within SECONDS.  Its results, later."""
    results = []

    def done(error):
        results.append(getattr(error, 'value', error))
        return 1
    client.aio_pwrite(pair.nbd.Buffer.from_bytearray(bytearray(b's' * 4096)),
                      8192, done)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.poll(20)
    pair.equal(results, [], 'a write that should wait ended')
    return results


def ends(client, results, seconds=10):
    end = time.monotonic() + seconds
    while not results and time.monotonic() < end:
        client.poll(20)
    pair.check(results, f'a write did not end within {seconds} s')
    return results[0]


def switched_arbiter(both_directory):
    """The file arbiter, as unreachable as the file `down` is there."""
    script = os.path.join(both_directory, 'switched-arbiter')
    down = os.path.join(both_directory, 'down')
    store = os.path.join(both_directory, 'arbiter')
    os.makedirs(store, exist_ok=True)
    with open(script, 'w') as file:
        file.write(f'#!/bin/sh\n[ ! -e {down} ] || exit 2\n'
                   f'exec {pair.ARBITER} {store} "$@"\n')
    os.chmod(script, 0o755)
    return script, down


# ---- error ----

def test_error_partner_killed():
    both = pair.Pair(arbiter=False, deadline=1).create()
    pair.equal(both.a.get('policy'), 'error', 'default without an arbiter')
    client = both.a.connect()
    pair.equal(write(client, b'1')[1], 0, 'a write while connected')
    both.b.kill()
    both.a.wait(connection_state='Connecting')
    fails_at_deadline(client, 1)
    status = both.a.status()
    pair.equal(status['role'], 'Primary', 'role')
    pair.equal(status['suspended'], True, 'suspended')
    pair.check(status['suspended-reason'], 'no suspended-reason')
    pair.check(status['counters']['failed'] >= 1, 'failed is not counted')
    pair.equal(status['peer-disk-state'], 'DUnknown', 'peer-disk-state')
    pair.equal(status['peer-role'], 'Unknown', 'peer-role')

    # The partner comes back, empty: writes succeed again.
    both.b.start()
    both.a.wait(suspended=False)
    pair.equal(write(client, b'2')[1], 0, 'a write after it came back')
    both.wait_complete(both.a)
    pair.equal(client.pread(4096, 0), b'2' * 4096, 'content')
    # And it is a full partner: the new copy carries the device.
    both.a.kill()
    both.b.wait(connection_state='Connecting')
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    pair.equal(both.b.connect().pread(4096, 0), b'2' * 4096, 'content')


def test_error_not_before_the_deadline():
    """A partner that pauses for less than the deadline costs no error."""
    both = pair.Pair(arbiter=False, deadline=2).create()
    client = both.a.connect()
    both.b.pause()
    results = is_stuck(client, 1.0)
    both.b.resume()
    pair.equal(ends(client, results), 0, 'a write across a short pause')
    pair.equal(both.a.status()['counters']['failed'], 0, 'failed')
    pair.equal(both.a.get('copies'), 2, 'copies')


def test_error_partner_paused():
    """A partner that pauses for longer: EIO, and help is not needed after."""
    both = pair.Pair(arbiter=False, deadline=0.5).create()
    client = both.a.connect()
    both.b.pause()
    fails_at_deadline(client, 0.5)
    both.b.resume()
    both.wait_complete(both.a)
    pair.equal(write(client, b'3')[1], 0, 'a write afterwards')
    pair.equal(client.pread(4096, 0), b'3' * 4096, 'content')


def test_error_reads():
    """What is on both nodes stays readable without the partner; what only
    this one has is not shown.
    """
    both = pair.Pair(arbiter=False, deadline=0.5).create()
    client = both.a.connect()
    client.pwrite(b'1' * 8192, 0)
    both.b.kill()
    both.a.wait(connection_state='Connecting')
    fails_at_deadline(client, 0.5)
    pair.equal(client.pread(4096, 4096), b'1' * 4096, 'a clean block')
    took, error = timed(lambda: client.pread(4096, 0))
    pair.equal(error, EIO, 'reading a block whose write failed')
    pair.check(took < 2, f'that read took {took:.1f} s')


def test_degrade():
    both = pair.Pair(arbiter=False, deadline=0.5).create()
    client = both.a.connect()
    both.b.kill()
    both.a.wait(connection_state='Connecting')
    fails_at_deadline(client, 0.5)
    # Only with the assertion, and only on the primary.
    answer = both.a.twinlog('degrade')
    pair.check(answer.returncode in (pair.USAGE, pair.REFUSED),
               f'degrade without --fenced: {answer.returncode}')
    pair.equal(both.a.get('suspended'), True, 'suspended')
    both.a.twinlog('degrade', '--fenced', expect=pair.DONE)
    pair.equal(write(client, b'4')[1], 0, 'a write after degrade')
    status = both.a.status()
    pair.equal(status['copies'], 1, 'copies')
    pair.equal(status['view']['members'], ['a'], 'members')
    pair.equal(status['suspended'], False, 'suspended')
    both.b.start()
    both.wait_complete(both.a)
    pair.equal(both.a.get('view')['members'], ['a', 'b'], 'members')


def test_degrade_while_connected():
    """Nobody is declared dead who is there to answer."""
    both = pair.Pair(arbiter=False).create()
    answer = both.a.twinlog('degrade', '--fenced')
    pair.equal(answer.returncode, pair.REFUSED, 'degrade while connected')
    answer = both.b.twinlog('degrade', '--fenced')
    pair.equal(answer.returncode, pair.REFUSED, 'degrade on a secondary')
    pair.equal(both.a.get('copies'), 2, 'copies')


# ---- arbiter ----

def test_arbiter_goes_on():
    both = pair.Pair(deadline=5).create()
    pair.equal(both.a.get('policy'), 'arbiter', 'default with an arbiter')
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    since = len(both.a.log())
    both.b.kill()
    took, error = write(client, b'2')
    pair.equal(error, 0, 'a write after the partner died')
    pair.check(took < 1, f'it took {took:.2f} s')
    status = both.a.status()
    pair.equal(status['copies'], 1, 'copies')
    pair.equal(status['view']['members'], ['a'], 'members')
    pair.equal(status['suspended'], False, 'suspended')
    pair.equal(status['role'], 'Primary', 'role')
    pair.equal(status['disk-state'], 'UpToDate', 'disk-state')
    pair.check(status['disconnect-reason'], 'no disconnect-reason')
    # Loudly: the log says that this is the only copy.
    both.a.says('only copy', since=since)
    text = both.a.twinlog('status', expect=pair.DONE).stdout
    pair.contains(text, ['copies', '1', 'Primary'], 'status')


def test_arbiter_goes_on_when_frozen():
    """The same for a partner that hangs: only a time-out notices."""
    both = pair.Pair(deadline=1).create()
    client = both.a.connect()
    both.b.pause()
    took, error = write(client, b'2')
    pair.equal(error, 0, 'a write while the partner hangs')
    pair.check(took < 2, f'it took {took:.2f} s')
    both.a.wait(copies=1, suspended=False)
    # The one that hung wakes up, is behind, and is filled.
    both.b.resume()
    both.wait_complete(both.a)
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(both.b.connect().pread(4096, 0), b'2' * 4096, 'content')


def test_arbiter_unreachable():
    directory = pair.make_directory()
    script, down = switched_arbiter(directory)
    both = pair.Pair(arbiter=script, directory=directory, deadline=1).create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    open(down, 'w').close()
    both.b.kill()
    took, error = write(client, b'2')
    pair.equal(error, EIO, 'a write without partner and arbiter')
    pair.check(0.95 <= took <= 2.8, f'it failed after {took:.2f} s')
    status = both.a.status()
    pair.equal(status['suspended'], True, 'suspended')
    pair.contains(status['trouble'] or '', ['arbiter'], 'trouble')
    # Reachable again: it goes on by itself.
    os.unlink(down)
    both.a.wait(copies=1, suspended=False)
    pair.equal(write(client, b'3')[1], 0, 'a write once it answers')
    pair.check(not both.a.get('trouble'), 'trouble that has passed')


def test_arbiter_unreachable_at_promote():
    directory = pair.make_directory()
    script, down = switched_arbiter(directory)
    both = pair.Pair(arbiter=script, directory=directory, deadline=1).create()
    both.a.connect().pwrite(b'1' * 4096, 0)
    both.a.kill()
    both.b.wait(connection_state='Connecting')
    open(down, 'w').close()
    answer = both.b.twinlog('promote')
    pair.check(answer.returncode not in (pair.DONE, pair.USAGE),
               f'promote without an answer: {answer.returncode}')
    pair.contains(answer.stderr, ['arbiter'], 'promote without an answer')
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    os.unlink(down)
    pair.wait_for(
        lambda: both.b.twinlog('promote').returncode == pair.DONE,
        'promoted once the arbiter answers')
    pair.equal(both.b.connect().pread(4096, 0), b'1' * 4096, 'content')


def test_arbiter_refuses():
    """The other was promoted meanwhile: the old primary acknowledges nothing
    any more, steps down, and is filled from the new one.
    """
    both = pair.Pair(deadline=1).create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    both.a.pause()
    both.b.wait(10, connection_state='Connecting')
    both.b.twinlog('promote', expect=pair.DONE)
    new = both.b.connect()
    new.pwrite(b'2' * 4096, 0)

    # Written to the old primary before it knows: no success, no old content.
    results, reads = [], []
    buffer = pair.nbd.Buffer(4096)
    client.aio_pwrite(pair.nbd.Buffer.from_bytearray(bytearray(b'9' * 4096)),
                      4096, lambda error: results.append(
                          getattr(error, 'value', error)) or 1)
    client.aio_pread(buffer, 0, lambda error: reads.append(
        getattr(error, 'value', error)) or 1)
    both.a.resume()
    pair.check(ends(client, results) != 0, 'the old primary acknowledged')
    if ends(client, reads) == 0:
        pair.equal(bytes(buffer.to_bytearray()), b'2' * 4096,
                   'a read of the old primary')
    both.a.wait(role='Secondary')
    # A client of the time before gets nothing more.
    pair.check(write(client, b'8')[1] != 0, 'a later write succeeded')
    both.wait_complete(both.b)
    pair.equal(new.pread(8192, 0), b'2' * 4096 + bytes(4096), 'content')


def test_killed_while_alone():
    """A lone primary that is killed takes its copy with it: no other serves
    what is older.
    """
    both = pair.Pair().create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    both.b.kill()
    pair.equal(write(client, b'2')[1], 0, 'a write of a lone primary')
    both.a.kill()
    both.start()
    for node in both.nodes:
        answer = node.twinlog('promote')
        pair.equal(answer.returncode, pair.REFUSED,
                   f'promote on {node.name} after a double crash')
        answer = node.twinlog('promote', '--fenced')
        pair.equal(answer.returncode, pair.REFUSED,
                   f'promote --fenced on {node.name} after a double crash')
        pair.equal(node.get('disk-state'), 'Empty', 'disk-state')


# ---- freeze and continue ----

def test_freeze():
    both = pair.Pair(arbiter=False, on_partner_loss='freeze',
                     deadline=0.3).create()
    client = both.a.connect()
    both.b.kill()
    results = is_stuck(client, 1.5)
    status = both.a.status()
    pair.equal(status['suspended'], True, 'suspended')
    pair.check(status['ap-in-flight'] >= 1, 'ap-in-flight')
    both.b.start()
    pair.equal(ends(client, results), 0, 'the write once the partner is back')
    both.wait_complete(both.a)


def test_continue():
    both = pair.Pair(arbiter=False, on_partner_loss='continue').create()
    client = both.a.connect()
    both.b.kill()
    took, error = write(client, b'2')
    pair.equal(error, 0, 'a write after the partner died')
    pair.check(took < 1, f'it took {took:.2f} s')
    both.a.wait(copies=1)
    both.b.start()
    both.wait_complete(both.a)


if __name__ == '__main__':
    pair.main(test_error_partner_killed, test_error_not_before_the_deadline,
              test_error_partner_paused, test_error_reads, test_degrade,
              test_degrade_while_connected, test_arbiter_goes_on,
              test_arbiter_goes_on_when_frozen, test_arbiter_unreachable,
              test_arbiter_unreachable_at_promote, test_arbiter_refuses,
              test_killed_while_alone, test_freeze, test_continue)
