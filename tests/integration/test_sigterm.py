"""SIGTERM ends a node within 2 s, whatever it is doing, and its control socket
is gone then.
"""

import os
import signal
import threading
import time

import pair
from history import Client, History

BOUND = 2.0


def ends(node):
    took = node.terminate(BOUND)
    pair.check(not os.path.exists(node.control),
               'the control socket is still there')
    print(f'  {took * 1000:.0f} ms', flush=True)


def blocked_writes(client, count=20):
    """Issue writes that cannot end now; their results, as they come."""
    results = []

    def done(error):
        results.append(getattr(error, 'value', error))
        return 1
    for i in range(count):
        client.aio_pwrite(pair.nbd.Buffer.from_bytearray(bytearray(4096)),
                          i * 4096, done)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        client.poll(50)
    pair.equal(results, [], 'writes that should be blocked ended')
    return results


def test_fresh():
    ends(pair.Pair().a.start())


def test_fresh_connected():
    both = pair.Pair().start()
    ends(both.b)
    both.a.wait(connection_state='Connecting')
    ends(both.a)


def test_idle_primary_with_clients():
    both = pair.Pair().create()
    clients = [both.a.connect() for _ in range(3)]
    clients[0].pwrite(bytes(4096), 0)
    ends(both.a)


def test_secondary():
    both = pair.Pair().create()
    ends(both.b)
    both.a.wait(copies=1, suspended=False)
    ends(both.a)


def test_busy_primary():
    both = pair.Pair().create()
    client = Client(both.a, History(4096))
    end = time.monotonic() + 0.3
    client.work(lambda: time.monotonic() > end)
    ends(both.a)


def test_blocked_partner_stopped():
    both = pair.Pair(arbiter=False, deadline=60).create()
    client = both.a.connect()
    both.b.pause()
    blocked_writes(client)
    ends(both.a)


def test_blocked_partner_killed():
    both = pair.Pair(arbiter=False, deadline=60).create()
    clients = [both.a.connect() for _ in range(2)]
    both.b.kill()
    for client in clients:
        blocked_writes(client)
    ends(both.a)


def test_blocked_under_freeze():
    both = pair.Pair(arbiter=False, on_partner_loss='freeze',
                     deadline=0.2).create()
    client = both.a.connect()
    both.b.kill()
    blocked_writes(client)
    ends(both.a)


def test_blocked_writes_fail():
    """The clients of a node that ends get an error, not silence."""
    both = pair.Pair(arbiter=False, deadline=60).create()
    client = both.a.connect()
    both.b.kill()
    results = blocked_writes(client, 8)
    both.a.signal(signal.SIGTERM)
    end = time.monotonic() + 5
    try:
        while len(results) < 8 and time.monotonic() < end:
            client.poll(50)
    except pair.nbd.Error:
        pass
    pair.equal(len(results), 8, 'ended writes')
    pair.check(all(results), f'a write succeeded: {results}')
    pair.wait_for(lambda: not both.a.running(), 'the node is gone', BOUND)


def test_arbiter_hangs():
    """Create waits for an arbiter that does not answer; SIGTERM does not."""
    directory = pair.make_directory()
    script = os.path.join(directory, 'arbiter')
    asked = os.path.join(directory, 'pid')
    with open(script, 'w') as file:
        file.write(f'#!/bin/sh\necho $$ >{asked}\nexec sleep 60\n')
    os.chmod(script, 0o755)
    both = pair.Pair(arbiter=script, deadline=60).start()
    thread = threading.Thread(target=lambda: both.a.twinlog('create'))
    thread.start()
    pair.wait_for(lambda: os.path.exists(asked) and os.path.getsize(asked),
                  'the arbiter is asked')
    with open(asked) as file:
        pid = int(file.read())
    both.a.extra_pids.add(pid)
    ends(both.a)
    thread.join()
    pair.wait_for(lambda: gone(pid), 'the arbiter command is gone')
    both.a.extra_pids.clear()


def test_during_resync():
    for ending in ('a', 'b'):
        both = pair.Pair(size='512M', lock='off', arbiter=False)
        both.a.start()
        both.a.twinlog('create', '--alone', expect=pair.DONE)
        client = both.a.connect()
        content = os.urandom(16 * pair.MIB)
        for offset in range(0, 512 * pair.MIB, len(content)):
            client.pwrite(content, offset)
        both.b.spawn(lock='off')
        both.b.wait(connection_state='SyncTarget')
        ends(both.a if ending == 'a' else both.b)
        both.stop()


def test_daemonised():
    both = pair.Pair()
    pid_file = both.b.path('pid')
    result = pair.run(both.b.arguments(options=('-P', pid_file)),
                      env=pair.environment())
    pair.equal(result.returncode, 0, f'daemonising: {result.stderr}')
    # The one that was started may end before the daemon has written it.
    pair.wait_for(lambda: os.path.exists(pid_file)
                  and os.path.getsize(pid_file), 'the pid file')
    with open(pid_file) as file:
        pid = int(file.read())
    both.b.extra_pids.add(pid)
    pair.wait_for(both.b.status, 'the daemon answers')
    both.a.start()
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    os.kill(pid, signal.SIGTERM)
    pair.wait_for(lambda: gone(pid), 'the daemon is gone', BOUND)
    pair.check(not os.path.exists(both.b.control), 'control socket')
    both.b.extra_pids.discard(pid)
    both.a.wait(copies=1, suspended=False)


def gone(pid):
    """Is there no such process, or only what waits to be reaped of it?"""
    try:
        with open(f'/proc/{pid}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        return [int(word) for word in file.read().split()]


def test_under_run():
    """`nbdkit --run`: the node ends with its command."""
    both = pair.Pair()
    go = both.b.path('go')
    node = both.b
    node.spawn(arguments=[
        *node.arguments(options=()), '--run',
        f'until [ -e {go} ]; do sleep 0.05; done'])
    node.wait_up()
    both.a.start()
    both.a.wait(connection_state='Connected')
    both.a.twinlog('create', expect=pair.DONE)
    both.wait_complete(both.a)
    servers = [pid for pid in (node.pid(), *children(node.pid()))
               if 'nbdkit' in os.readlink(f'/proc/{pid}/exe')]
    node.extra_pids.update(servers)
    open(go, 'w').close()
    pair.wait_for(lambda: all(gone(pid) for pid in servers),
                  f'the processes {servers} are gone', BOUND)
    node.extra_pids.clear()
    node.process.wait(5)
    pair.check(not os.path.exists(node.control), 'control socket')


def test_other_signals():
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        node = pair.Pair().a.start()
        node.signal(number)
        pair.wait_for(lambda: not node.running(), 'gone', BOUND)
        pair.check(not os.path.exists(node.control), 'control socket')


if __name__ == '__main__':
    pair.main(test_fresh, test_fresh_connected,
              test_idle_primary_with_clients, test_secondary,
              test_busy_primary, test_blocked_partner_stopped,
              test_blocked_partner_killed, test_blocked_under_freeze,
              test_blocked_writes_fail, test_arbiter_hangs,
              test_during_resync, test_daemonised, test_under_run,
              test_other_signals)
