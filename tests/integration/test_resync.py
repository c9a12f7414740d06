"""Resyncs that are disturbed: by load, by clients that come and go, by the
death of either side in the middle.
"""

import os
import time

import pair
from history import Client, History, nothing_lost, settle

MIB = pair.MIB
SIZE = 256 * MIB


def lone_and_full(**parameters):
    """Node a primary alone, each block with content; its history."""
    both = pair.Pair(size=SIZE, lock='off', **parameters)
    both.a.start()
    both.a.twinlog('create', '--alone', expect=pair.DONE)
    client = both.a.connect()
    content = os.urandom(16 * MIB)
    for offset in range(16 * MIB, SIZE, len(content)):
        client.pwrite(content, offset)
    client.shutdown()
    return both, content


def catch_in_the_middle(both):
    """Start node b, and return while it is being filled."""
    both.b.spawn()

    def some_of_it():
        status = both.a.status()
        return status['connection-state'] == 'SyncSource' \
            and status['percent-in-sync'] > 5
    pair.wait_for(some_of_it, 'a resync has begun', 20, 0.002)


def check_content(node, content):
    client = node.connect()
    for offset in range(16 * MIB, SIZE, len(content)):
        pair.check(client.pread(len(content), offset) == content,
                   f'content at {offset} on {node.name}')
    client.shutdown()


def test_longest_stall():
    """Under full load the resync ends, and no write waits for a second."""
    both, content = lone_and_full()
    history = History(16 * MIB // pair.BLOCK)
    client = Client(both.a, history)
    both.b.spawn()
    end = time.monotonic() + 60
    looked = moved = time.monotonic()
    completed, stall = 0, 0.0

    def complete():
        nonlocal looked, moved, completed, stall
        now = time.monotonic()
        pair.check(now < end, 'the resync does not end under load')
        if client.completed > completed:
            stall = max(stall, now - moved)
            completed, moved = client.completed, now
        if now < looked + 0.05:
            return False
        looked = now
        return both.a.get('copies') == 2
    client.work(complete)
    print(f'  longest stall {stall * 1000:.0f} ms', flush=True)
    pair.check(stall < 1, f'nothing completed for {stall:.2f} s')
    both.wait_complete(both.a)
    client.drain()
    settle(client.handle, history)
    nothing_lost(history)
    pair.equal(client.failed, 0, 'failed requests')
    client.close()
    both.a.kill()
    both.fail_over(both.a)
    check_content(both.b, content)


def test_clients_come_and_go():
    both, content = lone_and_full()
    both.b.spawn()
    visits = 0
    while both.a.get('copies') != 2:
        client = both.a.connect()
        client.pwrite(b'v' * 4096, 4096 * (visits % 1000))
        pair.equal(client.pread(4096, 4096 * (visits % 1000)), b'v' * 4096,
                   'content')
        client.shutdown()
        visits += 1
        pair.check(visits < 20000, 'the resync does not end')
    both.wait_complete(both.a)
    check_content(both.a, content)


def test_target_dies():
    """Several times in the middle: it always finishes after that."""
    both, content = lone_and_full()
    for _ in range(3):
        catch_in_the_middle(both)
        both.b.kill()
        both.a.wait(role='Primary', copies=1, suspended=False)
        client = both.a.connect()
        client.pwrite(b'd' * 4096, 0)
        client.shutdown()
    both.b.start()
    both.wait_complete(both.a)
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(both.b.connect().pread(4096, 0), b'd' * 4096, 'content')
    check_content(both.b, content)


def test_target_hangs():
    """Stopped in the middle for longer than the deadline, then let go on."""
    both, content = lone_and_full(deadline=0.5)
    catch_in_the_middle(both)
    both.b.pause()
    client = both.a.connect()
    client.pwrite(b'h' * 4096, 0)
    both.a.wait(connection_state='Connecting', copies=1)
    both.b.resume()
    both.wait_complete(both.a)
    client.shutdown()
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(both.b.connect().pread(4096, 0), b'h' * 4096, 'content')
    check_content(both.b, content)


def test_source_dies():
    """Half a copy is never served."""
    for arbiter in (True, False):
        both, _ = lone_and_full(arbiter=arbiter)
        catch_in_the_middle(both)
        both.a.kill()
        both.b.wait(connection_state='Connecting')
        status = both.b.status()
        pair.check(status['disk-state'] in ('Inconsistent', 'Empty'),
                   f'disk-state {status["disk-state"]}')
        for options in ((), ('--fenced',)):
            answer = both.b.twinlog('promote', *options, expect=pair.REFUSED)
            pair.check(answer.stderr.strip(), 'no reason')
        pair.equal(both.b.get('role'), 'Secondary', 'role')
        both.stop()


def test_source_is_demoted():
    """With the only complete copy the role is given away or kept, but the
    content survives.
    """
    both, content = lone_and_full()
    catch_in_the_middle(both)
    both.a.twinlog('demote')
    if both.a.get('role') == 'Secondary':
        both.b.twinlog('promote', expect=pair.REFUSED)
        both.a.twinlog('promote', expect=pair.DONE)
    both.wait_complete(both.a)
    check_content(both.a, content)


def test_progress_is_shown():
    both, _ = lone_and_full()
    catch_in_the_middle(both)
    source, target = both.a.status(), both.b.status()
    if source['connection-state'] == 'SyncSource':
        pair.check(0 < source['percent-in-sync'] < 100, 'percent-in-sync')
        pair.check(0 < source['out-of-sync'] < SIZE, 'out-of-sync')
        pair.equal(source['copies'], 1, 'copies during a resync')
        pair.equal(source['peer-disk-state'], 'Inconsistent',
                   'peer-disk-state')
    if target['connection-state'] == 'SyncTarget':
        pair.equal(target['disk-state'], 'Inconsistent', 'disk-state')
        pair.equal(target['may-promote'], False, 'may-promote')
    both.wait_complete(both.a)
    status = both.a.status()
    pair.equal(status['percent-in-sync'], 100, 'percent-in-sync')
    pair.equal(status['out-of-sync'], 0, 'out-of-sync')
    pair.equal(status['estimated-seconds-to-finish'], None,
               'estimated-seconds-to-finish')
    pair.equal(status['counters']['resyncs-full'], 1, 'resyncs-full')


if __name__ == '__main__':
    pair.main(test_longest_stall, test_clients_come_and_go, test_target_dies,
              test_target_hangs, test_source_dies, test_source_is_demoted,
              test_progress_is_shown)
