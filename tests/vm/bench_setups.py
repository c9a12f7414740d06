"""What scripts/bench-zfs compares: the log devices that the pool `tank` of
machine a can have.  Each is made, used and taken away again, and the next one
finds the machines as they were.
"""

from collections import namedtuple
from contextlib import contextmanager

import storage

SIZE_MIB = 512
SIZE = f'{SIZE_MIB}M'
NEAR = '/run/memory.sock'  # the memory plugin on this machine
FAR = '10.0.0.2'           # and on the other one, at NBD's own port
SECOND = '/dev/nbd1'

Setup = namedtuple('Setup', 'what make')
SETUPS = {}


def setup(name, what):
    """The function makes this set-up in a lab, and yields the words that
    `zpool add tank log` takes: none, a device, or a mirror of two."""
    def add(function):
        SETUPS[name] = Setup(what, contextmanager(function))
        return function
    return add


# ---- Servers ----

def serve_memory(machine, where):
    """nbdkit's memory plugin, at a socket or an address."""
    machine.spawn(f'nbdkit -f {where} memory {SIZE}', storage.NODE_LOG)


def serve_near(lab):
    lab.a.run(f'rm -f {NEAR}')
    serve_memory(lab.a, f'--unix {NEAR}')
    lab.a.wait(f'test -S {NEAR}')


def serve_far(lab):
    serve_memory(lab.b, f'-i {FAR}')
    lab.a.wait(f'nbdinfo --size nbd://{FAR}')


def end_servers(*machines):
    for machine in machines:
        machine.run('kill $(pidof nbdkit) && '
                    'while pidof nbdkit; do usleep 10000; done')


def connect(machine, words, device=storage.DEVICE):
    machine.run(f'nbd-client {words} {device} -timeout 10')


def disconnect(machine, device=storage.DEVICE):
    """Then nothing is left of it for the next one who attaches there."""
    machine.run(f'nbd-client -d {device}')
    machine.wait(f'! nbd-client -c {device}')


def forget_volume(*machines):
    end_servers(*machines)
    for machine in machines:
        machine.run(f'rm -f /var/lib/twinlog/{storage.VOLUME}.*')


# ---- Set-ups, from none to the pair ----

@setup('no-log', 'no log device: the disk itself')
def no_log(_):
    yield []


@setup('zil-off', 'sync=disabled: nothing is safe')
def zil_off(lab):
    lab.a.run('zfs set sync=disabled tank/data')
    yield []
    lab.a.run('zfs set sync=always tank/data')


@setup('ram-disk', 'a RAM disk of this machine (brd)')
def ram_disk(lab):
    lab.a.run(f'modprobe brd rd_nr=1 rd_size={SIZE_MIB << 10}')
    yield ['/dev/ram0']
    lab.a.run('rmmod brd')


@setup('memory', "nbdkit's memory plugin, this machine, Unix socket")
def memory(lab):
    serve_near(lab)
    connect(lab.a, f'-unix {NEAR}')
    yield [storage.DEVICE]
    disconnect(lab.a)
    end_servers(lab.a)


@setup('memory-link', 'the same on the other machine, over the link')
def memory_link(lab):
    serve_far(lab)
    connect(lab.a, FAR)
    yield [storage.DEVICE]
    disconnect(lab.a)
    end_servers(lab.b)


@setup('memory-link-no-flush', 'the same, and the kernel is told not to flush')
def memory_link_no_flush(lab):
    serve_far(lab)
    connect(lab.a, FAR)
    lab.a.run('echo write through >/sys/block/nbd0/queue/write_cache')
    yield [storage.DEVICE]
    disconnect(lab.a)
    end_servers(lab.b)


@setup('zfs-mirror', "ZFS's mirror of memory and memory-link: two NBDs")
def zfs_mirror(lab):
    serve_near(lab)
    serve_far(lab)
    connect(lab.a, f'-unix {NEAR}')
    connect(lab.a, FAR, SECOND)
    yield ['mirror', storage.DEVICE, SECOND]
    disconnect(lab.a)
    disconnect(lab.a, SECOND)
    end_servers(lab.a, lab.b)


@setup('zfs-mirror-ram', "ZFS's mirror of ram-disk and memory-link: one NBD")
def zfs_mirror_ram(lab):
    lab.a.run(f'modprobe brd rd_nr=1 rd_size={SIZE_MIB << 10}')
    serve_far(lab)
    connect(lab.a, FAR)
    yield ['mirror', '/dev/ram0', storage.DEVICE]
    disconnect(lab.a)
    end_servers(lab.b)
    lab.a.run('rmmod brd')


def alone(lab, flush):
    storage.start_node(lab.a, SIZE, flush=flush)
    storage.twinlog(lab.a, f'create {storage.VOLUME} --alone')
    connect(lab.a, f'-unix {storage.SOCKET}')
    yield [storage.DEVICE]
    disconnect(lab.a)
    forget_volume(lab.a)


def pair_of_nodes(lab, flush):
    storage.create_pair(lab, size=SIZE, flush=flush)
    connect(lab.a, f'-unix {storage.SOCKET}')
    yield [storage.DEVICE]
    disconnect(lab.a)
    forget_volume(lab.a, lab.b)


@setup('alone-flush', 'twinlog without a partner, flush=on')
def alone_flush(lab):
    yield from alone(lab, 'on')


@setup('alone', 'twinlog without a partner')
def alone_auto(lab):
    yield from alone(lab, 'auto')


@setup('pair-flush', 'the pair, flush=on')
def pair_flush(lab):
    yield from pair_of_nodes(lab, 'on')


@setup('pair', 'the pair: twinlog on both machines')
def pair_auto(lab):
    yield from pair_of_nodes(lab, 'auto')
