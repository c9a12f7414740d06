"""`twinlog attach` and `detach` on the kernel's NBD client: the device and its
name, what is refused, and what happens to the device when its agent or the
primary role goes."""

import pair
import storage
from attached import (agent, clients, create_kept_pair, kernel_is_quiet,
                      kill_node, log_of, start_log, write_block)
from machines import Lab
from pair import FAILED, MIB, REFUSED, UNREACHABLE, USAGE, check, contains, \
    equal, wait_for
from storage import NAME, SOCKET, VOLUME, attach, detach, twinlog


def queue(machine, index, key):
    return machine.text(f'cat /sys/block/nbd{index}/queue/{key}')


def is_gone(machine, index=0):
    equal(machine.text(f'cat /sys/block/nbd{index}/size'), '0', 'size')
    machine.run(f'! test -e {NAME}')
    machine.run(f'! test -e /run/twinlog/{VOLUME}.attach')


def check_device(machine):
    said = attach(machine, '--device /dev/nbd3')
    contains(said, [VOLUME, '/dev/nbd3', NAME], 'attach')
    equal(machine.text(f'readlink -f {NAME}'), '/dev/nbd3', NAME)
    equal(machine.text(f'blockdev --getsize64 {NAME}'),
          str(storage.SIZE * MIB), 'size')
    equal(queue(machine, 3, 'logical_block_size'), '4096', 'block size')
    equal(queue(machine, 3, 'nr_requests'), '16', 'requests')
    equal(queue(machine, 3, 'write_cache'), 'write through', 'cache')
    equal(clients(machine), 1, 'clients')
    write_block(machine)

    # It is attached: that is what was wanted.
    before = agent(machine)
    contains(attach(machine), ['/dev/nbd3'], 'attach again')
    attach(machine, '--device /dev/nbd3')
    contains(attach(machine, '--device /dev/nbd2', REFUSED), ['/dev/nbd3'],
             'attach as another device')
    equal(agent(machine), before, 'agent')


def check_detach(machine):
    """Not while somebody uses it, unless that is said."""
    machine.run(f'mke2fs -F -b 4096 {NAME} && mount -t ext4 {NAME} /mnt')
    contains(detach(machine, expect=REFUSED), ['in use', 'mounted'],
             'detach of a mounted device')
    machine.run('umount /mnt')
    machine.spawn(f'sleep 300 <{NAME} & echo $! >/tmp/user; wait', '/dev/null')
    machine.wait('test -s /tmp/user && readlink /proc/$(cat /tmp/user)/fd/0'
                 ' | grep nbd3')
    contains(detach(machine, expect=REFUSED), ['in use', 'process'],
             'detach of an open device')
    machine.run('kill $(cat /tmp/user)')
    machine.wait('! test -e /proc/$(cat /tmp/user)')
    contains(detach(machine), ['detached'], 'detach')
    is_gone(machine, 3)
    contains(detach(machine), ['not attached'], 'detach again')
    twinlog(machine, 'detach', USAGE)
    twinlog(machine, 'detach --device /dev/nbd3', REFUSED)


def test_device():
    lab = Lab().start()
    create_kept_pair(lab)
    check_device(lab.a)
    check_detach(lab.a)
    kernel_is_quiet(lab.a)
    attach(lab.a)
    equal(lab.a.text(f'readlink -f {NAME}'), '/dev/nbd0', NAME)
    twinlog(lab.a, 'detach --device /dev/nbd0')
    is_gone(lab.a)


def test_refusals():
    lab = Lab().start()
    create_kept_pair(lab)
    contains(attach(lab.b, expect=REFUSED), ['node b', 'primary', 'switchover'],
             'attach on a secondary')
    lab.a.run('rmmod nbd')
    contains(attach(lab.a, expect=FAILED), ['modprobe nbd'], 'without a module')
    lab.a.run('modprobe nbd nbds_max=4')

    lab.a.run('nbdkit --unix /tmp/other.sock memory 1M &&'
              ' nbd-client -unix /tmp/other.sock /dev/nbd1')
    contains(attach(lab.a, '--device /dev/nbd1', REFUSED), ['in use'],
             'a device in use')
    contains(attach(lab.a, '--socket /tmp/other.sock', REFUSED),
             ['not that of node a'], "another server's socket")
    contains(attach(lab.a, '--socket /tmp/none.sock', FAILED),
             ['/tmp/none.sock'], 'no socket')
    contains(twinlog(lab.a, 'detach --device /dev/nbd1', REFUSED),
             ['twinlog attached'], "detach of another one's device")
    lab.a.run('nbd-client -d /dev/nbd1')

    lab.a.run(f'nbd-client -unix {SOCKET} /dev/nbd0')
    contains(attach(lab.a, expect=REFUSED), ['another NBD client'],
             'two that write at once')
    lab.a.run('nbd-client -d /dev/nbd0')
    is_gone(lab.a)
    attach(lab.a)
    detach(lab.a)
    lab.a.run('kill -9 $(pidof nbdkit)')
    attach(lab.a, expect=UNREACHABLE)


def test_agent_dies():
    """The device stays; another agent takes it over, if it may."""
    lab = Lab().start()
    parameters = create_kept_pair(lab)
    start_log(lab.a)
    attach(lab.a)
    first = agent(lab.a)
    lab.a.run(f'kill -9 {first}')
    write_block(lab.a)
    contains(attach(lab.a), ['/dev/nbd0'], 'attach for a new agent')
    check(agent(lab.a) != first, 'the agent that was killed is still named')
    write_block(lab.a)
    kill_node(lab.a)
    storage.start_node(lab.a, **parameters)
    write_block(lab.a)

    # It dies together with the node: the next one connects again.
    lab.a.run(f'kill -9 {agent(lab.a)}')
    kill_node(lab.a)
    storage.start_node(lab.a, **parameters)
    storage.await_states(lab.a, 'Primary')
    attach(lab.a)
    write_block(lab.a)
    kernel_is_quiet(lab.a)

    # The other node served meanwhile: what knows the device knows old data.
    lab.a.run(f'kill -9 {agent(lab.a)}')
    kill_node(lab.a)
    twinlog(lab.b, f'promote {VOLUME} --fenced')
    storage.start_node(lab.a, **parameters)
    storage.await_pair(lab.b)
    twinlog(lab.b, f'switchover {VOLUME}')
    storage.await_pair(lab.a)
    contains(attach(lab.a, expect=REFUSED), ['/dev/nbd0', 'detach'],
             'attach of a device that missed a primary')
    detach(lab.a)
    attach(lab.a)
    write_block(lab.a)


def test_role_lost():
    """The device goes with the primary role, and does not come back."""
    lab = Lab().start()
    create_kept_pair(lab)
    start_log(lab.a)
    attach(lab.a)
    write_block(lab.a)
    twinlog(lab.a, f'switchover {VOLUME} --disconnect')
    wait_for(lambda: any('given up' in line for line in log_of(lab.a)),
             'the agent gives up', 30, 0.2)
    lab.a.wait('test $(cat /sys/block/nbd0/size) = 0')
    attach(lab.b)
    write_block(lab.b)
    detach(lab.b)
    twinlog(lab.b, f'switchover {VOLUME}')
    storage.await_pair(lab.a)
    equal(lab.a.text('cat /sys/block/nbd0/size'), '0', 'size')
    attach(lab.a)
    write_block(lab.a)


if __name__ == '__main__':
    pair.main(test_device, test_refusals, test_agent_dies, test_role_lost)
