"""The active machine is rebooted with the pool imported and under load: no
error of the kernel's NBD client, no wait, and nothing is lost; where things
are stopped in their order as well as where nothing is stopped at all."""

import re

import pair
import storage
from machines import SLOW, Lab
from pair import check, equal, wait_for
from storage import PATIENT, VOLUME


ERROR = 3  # and what is worse has lower numbers; the console shows no others
TROUBLE = re.compile(r'nbd\d|I/O error|blocked for more than')


def errors(machine):
    """What the kernel has said so far of the device, and of waiting."""
    lines = [line for line in machine.text('dmesg -r').splitlines()
             if re.match(r'<\d+>', line)
             and int(line[1:line.index('>')]) % 8 <= ERROR]
    return [line for line in lines if TROUBLE.search(line)]


def reboot(machine, command):
    """Until it has come to its end, without a word about the device."""
    said = errors(machine)
    before = len(machine.console_since())
    machine.spawn(command, '/dev/null')
    wait_for(lambda: not machine.is_on(), f'machine {machine.name} is down',
             SLOW, 0.1)
    console = machine.console_since(before).decode(errors='replace')
    said += [line for line in console.splitlines() if TROUBLE.search(line)]
    equal(said, [], 'what the kernel said of the device')
    machine.power_cut()  # it is off; forget its process


def test_in_order():
    """Load, pool, device, node: the reverse of the start."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'ordered', **PATIENT)
    storage.end_writer(lab.a)
    lab.a.run('zpool export tank')
    storage.detach(lab.a)
    lab.a.run('kill $(pidof nbdkit); while pidof nbdkit; do usleep 10000; done')
    reboot(lab.a, 'reboot')

    lab.a.start()
    storage.start_node(lab.a, **PATIENT)
    storage.await_states(lab.b, 'Connected')
    storage.twinlog(lab.b, f'promote {VOLUME}')
    storage.await_pair(lab.b)
    storage.twinlog(lab.b, f'switchover {VOLUME}')
    storage.await_pair(lab.a)
    storage.attach(lab.a)
    lab.a.run(f'zpool import -o cachefile=none -d /dev/vda1'
              f' -d {storage.NAME} tank')
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')
    storage.nothing_is_lost(lab.a)


def test_at_once():
    """As after an oops: the kernel just starts again."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'at-once', **PATIENT)
    reboot(lab.a, 'reboot -f')
    storage.fail_over(lab.b)
    storage.nothing_is_lost(lab.b)
    lab.a.start()
    storage.start_node(lab.a, **PATIENT)
    storage.await_pair(lab.b)
    storage.write_files(lab.b, 'other')
    check(storage.pool_is_healthy(lab.b), 'the pool is healthy')


if __name__ == '__main__':
    pair.main(test_in_order, test_at_once)
