"""nbdkit dies and comes back with its RAM below an attached device: a pause and
no error, for a pool that has the device as its log as for who writes to it;
and what was sent twice does not overwrite what was written after it.

TWINLOG_NODE_KILLS: how often nbdkit is killed under the pool (20).
"""

import os
import random
import time

import pair
import storage
from attached import (KEPT, clients, create_kept_alone, create_kept_pair,
                      end_load, kernel_is_quiet, kill_node, load_goes_on,
                      log_of, start_load, start_log, write_block)
from machines import SLOW, Lab
from pair import check, equal, stays, wait_for
from storage import NAME, VOLUME, attach, detach

KILLS = int(os.environ.get('TWINLOG_NODE_KILLS', '20'))
FREEZES = 3
DEADLINE = 5  # of the nodes; the kernel's time-out is 5 seconds more, and so
              # long waits what was in flight when nbdkit died


def await_writes(machine, count, seconds, meanwhile=load_goes_on):
    before = storage.log_writes(machine)

    def written():
        meanwhile(machine)
        return storage.log_writes(machine) >= before + count
    wait_for(written, f'{count} writes to the device', seconds, 0.1)


def kill_and_return(machine, parameters):
    """How long no write ended."""
    time.sleep(random.random())
    began = time.monotonic()
    kill_node(machine)
    storage.start_node(machine, **parameters)
    await_writes(machine, 5, SLOW)
    return time.monotonic() - began


def test_pool():
    lab = Lab().start()
    parameters = create_kept_pair(lab, deadline=DEADLINE)
    start_log(lab.a)
    attach(lab.a, '--reconnect 600')  # however slow this machine is
    storage.create_pool(lab.a)
    start_load(lab.a, '--directory=/tank/data --rw=randwrite --bs=4k --size=4m'
               ' --fsync=1 --verify_backlog=64')
    pauses = []
    for _ in range(KILLS):
        await_writes(lab.a, 20, SLOW)
        pauses.append(kill_and_return(lab.a, parameters))
        check(storage.pool_is_healthy(lab.a), 'the pool is not healthy')
    print(f'{KILLS} kills, no write for at most {max(pauses):.1f} s,'
          f' on average {sum(pauses) / KILLS:.1f} s', flush=True)

    end_load(lab.a)
    kernel_is_quiet(lab.a)
    lab.a.run("zpool status -x | grep -x 'all pools are healthy'")
    said = lab.a.text('zpool status tank')
    check('errors: No known data errors' in said, said)
    storage.log_is_whole(lab.a)
    storage.await_pair(lab.a)
    storage.twinlog(lab.a, f'verify {VOLUME}')
    lab.a.run('zpool export tank')
    detach(lab.a)


def freeze(machine):
    """Stop nbdkit until the kernel has given its connection up."""
    def ends():
        load_goes_on(machine)
        return sum('connection ended' in line for line in log_of(machine))
    before = ends()
    machine.run('kill -STOP $(pidof nbdkit)')
    wait_for(lambda: ends() > before, 'the kernel gives the connection up',
             SLOW, 0.2)


def go_on(machine):
    machine.run('kill -CONT $(pidof nbdkit)')


def keep_running(machine):
    """Start nbdkit again if it has ended, as its unit would: that of Debian 12
    aborts where a client goes away in the middle of several requests."""
    if machine.run('pidof nbdkit', may_fail=True).status:
        print('nbdkit aborted', flush=True)
        storage.start_node(machine, **{**KEPT, 'deadline': DEADLINE})


def test_frozen():
    """A frozen node still has the requests that the kernel sends again."""
    lab = Lab().start()
    create_kept_alone(lab.a, deadline=DEADLINE)
    start_log(lab.a)
    attach(lab.a, '--reconnect 600')  # however slow this machine is
    start_load(lab.a, f'--filename={NAME} --direct=1 --rw=randwrite --bs=4k'
               ' --size=4k --norandommap --verify_backlog=1')
    for _ in range(FREEZES):
        await_writes(lab.a, 20, SLOW)
        freeze(lab.a)
        go_on(lab.a)
        await_writes(lab.a, 5, SLOW, keep_running)
    end_load(lab.a)
    kernel_is_quiet(lab.a)


def test_late_requests():
    """While the node counts another connection, which may be the old one,
    the device gets no new one."""
    lab = Lab().start()
    create_kept_alone(lab.a, deadline=DEADLINE)
    start_log(lab.a)
    attach(lab.a, '--reconnect 600')  # however slow this machine is
    # It sends nothing, so that its connection outlives the freeze.
    lab.a.run(f'nbd-client -unix {storage.SOCKET} /dev/nbd1')
    equal(clients(lab.a), 2, 'clients')
    lab.a.spawn(f'dd if=/dev/zero of={NAME} bs=4096 count=1 oflag=direct;'
                ' echo ended $?', '/var/log/dd')
    lab.a.wait('grep -x "ended 0" /var/log/dd')
    lab.a.run('kill -STOP $(pidof nbdkit)')
    lab.a.spawn(f'dd if=/dev/zero of={NAME} bs=4096 count=1 oflag=direct;'
                ' echo ended $?', '/var/log/dd')
    wait_for(lambda: any('connection ended' in line for line in log_of(lab.a)),
             'the kernel gives the connection up', SLOW, 0.2)
    go_on(lab.a)
    wait_for(lambda: any('another NBD client' in line
                         for line in log_of(lab.a)), 'the agent waits', 30, 0.2)
    stays(lambda: not any('connected again' in line for line in log_of(lab.a)),
          3, 'connected beside another client', 0.2)
    lab.a.run('nbd-client -d /dev/nbd1')
    lab.a.wait('grep -x "ended 0" /var/log/dd')
    write_block(lab.a)
    kernel_is_quiet(lab.a)


if __name__ == '__main__':
    pair.main(test_pool, test_frozen, test_late_requests)
