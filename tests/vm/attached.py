"""The agent of a volume that is attached, and load on its device."""

import json
import re

import storage
from pair import check, equal
from storage import NAME, VOLUME, twinlog

KEPT = {'deadline': 20, 'store': '/dev/shm/slog0'}
LOAD = '/var/log/load'
SYSLOG = '/var/log/syslog'


def start_log(machine):
    """The system log, where the agent writes."""
    machine.spawn(f'syslogd -n -O {SYSLOG}', '/dev/null')
    machine.wait('test -S /dev/log')


def log_of(machine):
    """What the agents of MACHINE said so far."""
    return [line.split('twinlog', 1)[1]
            for line in machine.text(f'cat {SYSLOG}').splitlines()
            if 'twinlog[' in line]


def agent(machine):
    """The process of the agent."""
    return int(machine.text(f'head -n 1 /run/twinlog/{VOLUME}.attach'))


def clients(machine):
    return json.loads(twinlog(machine, f'status {VOLUME} --json'))['clients']


def kill_node(machine):
    machine.run('kill -9 $(pidof nbdkit) && '
                'while pidof nbdkit; do usleep 10000; done')


def write_block(machine, number=0, seconds=60, may_fail=False):
    """One block, straight to the device, as dd writes it."""
    return machine.run(f'dd if=/dev/urandom of={NAME} bs=4096 count=1'
                       f' seek={number} oflag=direct conv=notrunc 2>&1',
                       seconds, may_fail=may_fail)


def start_load(machine, options):
    """Runs of fio, one after the other, that check what they wrote."""
    machine.run('rm -f /tmp/enough')
    machine.spawn(f'until test -e /tmp/enough; do fio --name=load {options}'
                  ' --verify=crc32c --verify_fatal=1 --time_based --runtime=5'
                  ' || { echo failed; exit 1; }; done; echo ended well', LOAD)


def load_goes_on(machine):
    """No run met an error so far, or read anything else than it wrote."""
    said = machine.text(f'cat {LOAD}')
    check(not said.endswith('failed'), f'fio: {said[-2000:]}')


def end_load(machine, seconds=120):
    machine.run('touch /tmp/enough')
    machine.wait(f'grep -x -e failed -e "ended well" {LOAD}', seconds)
    load_goes_on(machine)


def kernel_is_quiet(machine):
    """No request of a device has failed so far."""
    said = machine.text('dmesg')
    equal(re.findall(r'.*I/O error.*', said), [], "the kernel's log")


def create_kept_pair(lab, **parameters):
    """A pair whose RAM outlives nbdkit; its parameters."""
    parameters = {**KEPT, **parameters}
    storage.create_pair(lab, **parameters)
    return parameters


def create_kept_alone(machine, **parameters):
    """One node without the other, which nothing waits for."""
    storage.start_node(machine, **{**KEPT, **parameters})
    twinlog(machine, f'create {VOLUME} --alone')
