"""Fsync load on the pool while the memory of the active machine is nearly used
up: the log device, whose node lives in that memory, answers in time."""

import json

import pair
import storage
from machines import Lab
from pair import check, equal
from storage import more_files

DEADLINE = 20
TIME_OUT = DEADLINE + 5  # of the kernel
USED = 95                # percent


def memory(machine):
    """Total and available, in KiB."""
    lines = machine.text("awk '/^Mem(Total|Available):/ { print $2 }'"
                         ' /proc/meminfo').split()
    return int(lines[0]), int(lines[1])


def fill(machine):
    """Nothing can push these pages out: there is no swap."""
    machine.run('mkdir /tmp/fill && mount -t tmpfs -o size=100% fill /tmp/fill')
    total, available = memory(machine)
    pieces = 0
    while available > total * (100 - USED) // 100:
        pieces += 1
        check(pieces < 1000, f'{pieces} pieces, and {available} KiB available')
        megabytes = max(1, (available - total * (100 - USED) // 100) // 2048)
        machine.run(f'dd if=/dev/zero of=/tmp/fill/{pieces} bs=1M'
                    f' count={megabytes}')
        total, available = memory(machine)
    print(f'{available // 1024} MiB of {total // 1024} MiB are available')


def test_pressure():
    lab = Lab(memory=1024).start()
    storage.pool_under_load(lab, 'memory', deadline=DEADLINE)
    node = lab.a.text('pidof nbdkit')
    fill(lab.a)
    filled = storage.longest_stall(lab.a)
    more_files(lab.a, 'with little memory', 200)
    stall = storage.longest_stall(lab.a)
    print(f'longest stall {filled:.1f} s while it was filled, {stall:.1f} s'
          ' until the end')
    check(stall < TIME_OUT, f'a stall of {stall:.1f} s')
    equal(lab.a.text('pidof nbdkit'), node, 'process of the node')
    status = json.loads(storage.twinlog(lab.a, 'status --json'))
    equal((status['copies'], status['counters']['failed']), (2, 0),
          'copies, and requests that failed')
    storage.log_is_whole(lab.a)
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')
    lab.a.power_cut()
    storage.fail_over(lab.b)
    storage.nothing_is_lost(lab.b)


if __name__ == '__main__':
    pair.main(test_pressure)
