"""A node on each machine of a lab, the kernel's NBD client, and the pool
`tank` on the shared disk, whose log device is the volume.

These are the commands that an administrator would give.
"""

import shlex
import time

import pair
from machines import SLOW
from pair import DONE, check, equal, wait_for

VOLUME = 'slog0'
SOCKET = f'/run/twinlog/{VOLUME}.sock'
DEVICE = '/dev/nbd0'  # the first one that is free
NAME = f'/dev/disk/by-id/twinlog-{VOLUME}'
SEARCH = f'/dev/vda1 {NAME}'  # where the devices of the pool are
DATA = '/tank/data'
RECORDS = '/dev/virtio-ports/records'
ADDRESSES = {'a': '10.0.0.1:10810', 'b': '10.0.0.2:10810'}
# Of nodes with which nothing is to fail, however slow this machine is.
PATIENT = {'deadline': 30}
NODE_LOG = '/var/log/nbdkit'
SIZE = 96  # MiB; a log device has 64 at least
PARAMETERS = '/sys/module/zfs/parameters'  # of ZFS


def start_node(machine, size=f'{SIZE}M', **parameters):
    """Start nbdkit on MACHINE, and wait until the node answers."""
    other = machine.lab.other(machine)
    words = ['nbdkit', '-f', '--unix', SOCKET, 'twinlog', size,
             f'name={VOLUME}', f'node={machine.name}',
             f'listen={ADDRESSES[machine.name]}',
             f'peer={ADDRESSES[other.name]}']
    words += [f'{key.replace("_", "-")}={value}'
              for key, value in parameters.items()]
    machine.run(f'rm -f {SOCKET}')
    machine.spawn(shlex.join(words), NODE_LOG)
    try:
        machine.wait(f'test -S {SOCKET} && twinlog status')
    except pair.Failure as failure:
        log = machine.text(f'cat {NODE_LOG}')
        raise pair.Failure(f'{failure}: {log}') from None


def twinlog(machine, command, expect=DONE, seconds=SLOW):
    """The command twinlog on MACHINE; its output."""
    result = machine.run(f'twinlog {command}', seconds, may_fail=True)
    output = result.output.decode(errors='replace')
    equal(result.status, expect,
          f'exit status of twinlog {command} on {machine.name}, which said'
          f' {output.strip()!r}')
    return output


def await_states(machine, *states, seconds=SLOW):
    for state in states:
        twinlog(machine, f'wait {VOLUME} --for {state} --timeout {seconds}',
                seconds=seconds + 30)


def await_pair(primary):
    """Until both copies are complete."""
    await_states(primary, 'Primary', 'Connected', 'UpToDate', 'peer:UpToDate')


def create_pair(lab, **parameters):
    """A node on each machine, and the volume, with `a` as its primary."""
    for machine in lab.nodes:
        start_node(machine, **parameters)
    await_states(lab.a, 'Connected')
    twinlog(lab.a, f'create {VOLUME}')
    await_pair(lab.a)


def attach(machine, options='', expect=DONE):
    """The volume as a block device; what the command said."""
    return twinlog(machine, f'attach {VOLUME} {options}', expect)


def detach(machine, options='', expect=DONE):
    return twinlog(machine, f'detach {VOLUME} {options}', expect)


def create_pool(machine, log=NAME):
    """The pool, with the volume as its log device, and a file system."""
    machine.run('zpool create -o cachefile=none -o ashift=12 tank /dev/vda1'
                f' log {log}')
    machine.run('zfs create tank/data')


def import_pool(machine, log=NAME):
    """After the other machine died: never with -m, which does without a log.
    """
    machine.run('zpool import -f -o cachefile=none -d /dev/vda1'
                f' -d {log} tank')


def fail_over(survivor):
    """SURVIVOR serves the pool after the other one's power cut: as an
    administrator, or a cluster manager that has fenced, would do it.  What the
    script said."""
    return survivor.text(
        f'twinlog-failover {VOLUME} --fenced --pool tank --share ""'
        f' --search "{SEARCH}" 2>&1')


def pool_is_healthy(machine):
    return machine.text('zpool list -H -o health tank') == 'ONLINE'


def log_of_pool(machine):
    """State of the log device, and its errors (read, write, checksum)."""
    said = machine.text('zpool status -p tank')
    lines = [line.split() for line in said.splitlines()
             if f'twinlog-{VOLUME}' in line]
    check(len(lines) == 1, f'one log device: {said}')
    return lines[0][1:5]


def log_is_whole(machine):
    """No request to the log device has failed."""
    equal(log_of_pool(machine), ['ONLINE', '0', '0', '0'],
          'state and errors of the log device')


def time_of_status(machine, seconds=SLOW):
    """How long `zpool status` takes; not to answer at all is a failure."""
    began = time.monotonic()
    machine.run('zpool status tank', seconds)
    return time.monotonic() - began


def log_writes(machine):
    """How many writes the kernel has sent to the volume so far."""
    return int(machine.text('cat /sys/block/nbd0/stat').split()[4])


# ---- Records ----

def received(machine):
    """The whole lines that MACHINE sent out, whatever became of it."""
    with open(machine.records, 'rb') as file:
        lines = file.read().splitlines(keepends=True)
    return [line for line in lines if line.endswith(b'\n')]


def acknowledged(machine):
    return sum(line.startswith(b'done ') for line in received(machine))


def longest_stall(machine):
    """The longest time, in seconds, in which MACHINE acknowledged nothing."""
    times = [int(line.split()[3]) for line in received(machine)
             if line.startswith(b'done ')]
    return max(b - a for a, b in zip(times, times[1:])) / 1e6


def start_writer(machine, prefix, threads=2):
    """Files, each made durable with fsync; each is noted outside before it is
    begun, and again when its last fsync has returned."""
    machine.spawn(f'fsync-writer write {DATA} {prefix} {RECORDS} {threads}',
                  '/var/log/writer')


def more_files(machine, what, count=30, seconds=SLOW):
    """Until so many more are acknowledged."""
    enough = acknowledged(machine) + count
    wait_for(lambda: acknowledged(machine) >= enough,
             f'{count} files are acknowledged {what}', seconds, 0.05)


def write_files(machine, prefix, count=30):
    """The writer, until it has so many files acknowledged; it goes on."""
    start_writer(machine, prefix)
    more_files(machine, f'of {prefix}', count)


def pool_under_load(lab, prefix, **parameters):
    """The pair, attached to `a`, as the log of the pool, and the writer."""
    create_pair(lab, **parameters)
    attach(lab.a)
    create_pool(lab.a)
    write_files(lab.a, prefix)


def end_writer(machine):
    machine.run('kill $(pidof fsync-writer); '
                'while pidof fsync-writer; do usleep 10000; done')


def judge(machine):
    """Compare what is on MACHINE with the notes of both; how many files were
    acknowledged, and how many of them are lost."""
    notes = b''.join(line for each in machine.lab.nodes
                     for line in received(each))
    machine.run('cat >/tmp/notes', data=notes)
    result = machine.run(f'fsync-writer verify {DATA} /tmp/notes',
                         may_fail=True)
    output = result.output.decode(errors='replace').strip()
    check(result.status in (0, 1), f'fsync-writer verify: {output}')
    print(output)
    count, lost = output.splitlines()[-1].split()
    return int(count), int(lost)


def nothing_is_lost(machine):
    """Every acknowledged file is on MACHINE; how many these are."""
    count, lost = judge(machine)
    equal(lost, 0, 'lost files')
    return count
