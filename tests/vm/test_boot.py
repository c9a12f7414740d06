"""The machines come up, do what they are told, and say what came of it."""

import os
import time

import pair
from machines import Lab
from pair import check, contains, equal


def commands(machine, number):
    equal(machine.text('hostname'), machine.name, 'its name')
    result = machine.run('cat; exit 7', data=bytes(range(256)) * 400,
                         may_fail=True)
    equal(result.status, 7, 'exit status')
    equal(result.output, bytes(range(256)) * 400, 'binary output')
    equal(machine.run('sleep 100', seconds=1, may_fail=True).status, 124,
          'status of a command that takes too long')
    equal(machine.text('hostid'), f'{number:08x}', 'its host id')
    equal(machine.text('cat /sys/module/zfs/version').partition('-')[0],
          '2.1.11', 'ZFS')
    contains(machine.text('twinlog --version'), ['twinlog'], 'our command')
    contains(machine.text('nbdkit twinlog --help'), ['listen='], 'our plugin')


def clock(machine):
    """A second is one, however busy this machine was while it booted."""
    def look():
        before = time.monotonic()
        inside = float(machine.text('cut -d " " -f 1 /proc/uptime'))
        return before, inside, time.monotonic()
    first = last = look()
    while last[0] - first[2] < 3:
        last = look()
    took = last[1] - first[1]
    least, most = last[0] - first[2], last[2] - first[0]
    check(least * 0.98 - 0.1 <= took <= most * 1.02 + 0.1,
          f'{took:.2f} s in the machine, {least:.2f} s to {most:.2f} s outside')


def records(machine):
    """What was written to the port is outside before write returns."""
    for line in ('one', 'two'):
        machine.run(f'echo {line} >/dev/virtio-ports/records')
    with open(machine.records) as received:
        equal(received.read(), 'one\ntwo\n', 'records')


def link(lab):
    lab.a.run('ping -c 1 -w 10 10.0.0.2')
    lab.cable('down')
    check(lab.a.run('ping -c 1 -w 1 10.0.0.2', may_fail=True).status != 0,
          'no ping through a cut link')
    lab.cable('up')
    lab.a.run('ping -c 1 -w 10 10.0.0.2')


def power_cut(lab):
    """A machine forgets its RAM, and keeps its own disk and the shared one."""
    lab.a.run('echo own >/var/lib/twinlog/f; echo ram >/tmp/f; sync')
    lab.a.run('echo shared | dd of=/dev/vda1 conv=fsync')
    lab.a.power_cut()
    equal(lab.b.text('head -n 1 /dev/vda1'), 'shared', 'shared disk, from b')
    lab.a.start()
    equal(lab.a.text('cat /var/lib/twinlog/f'), 'own', 'own disk')
    equal(lab.a.run('cat /tmp/f', may_fail=True).status, 1, 'RAM')
    link(lab)


def test_boot():
    lab = Lab()
    began = time.monotonic()
    lab.start()
    print(f'both are up after {time.monotonic() - began:.1f} s')
    for number, machine in enumerate(lab.nodes, 1):
        commands(machine, number)
        clock(machine)
        records(machine)
    link(lab)
    power_cut(lab)
    for machine in lab.nodes:
        pid = machine.process.pid
        machine.clean_up()
        check(not os.path.exists(f'/proc/{pid}'), 'qemu is gone')


if __name__ == '__main__':
    pair.main(test_boot)
