"""Measures OpenZFS on various log devices, in the machines of tests/vm; see
scripts/bench-zfs, which calls it.

  bench.py ROUNDS SECONDS UNTAR_ROUNDS SETUPS JSON PLOT

SETUPS are names with commas between them, or empty for all; JSON and PLOT are
files that are written, where they are not empty.
"""

import datetime
import json
import os
import signal
import sys
import time

import bench_loads
import bench_plot
import bench_report
import pair
from bench_setups import SETUPS
from machines import Lab
from pair import check

MEMORY = 3072  # MiB of each machine
IOPS = 150     # of the disk that the archive is unpacked to
CLOCK_ERROR = 0.02
SKIPPED = 77   # of a test that this machine cannot run
# What unpacking compares; the others tell nothing more there.
UNTAR = ('no-log', 'zil-off', 'ram-disk', 'memory', 'memory-link',
         'zfs-mirror', 'alone', 'pair')


def say(text):
    print(f'[{time.monotonic() - BEGAN:6.1f} s] {text}', file=sys.stderr,
          flush=True)


def create_pool(machine):
    machine.run('zpool create -o cachefile=none -o ashift=12 tank /dev/vda1',
                120)
    machine.run('zfs create -o sync=always tank/data')


def add_log(machine, words):
    if words:
        machine.run(f'zpool add -f -o ashift=12 tank log {" ".join(words)}',
                    120)


def remove_log(machine, words):
    """A mirror is taken apart first: then it has a name."""
    if words[:1] == ['mirror']:
        machine.run(f'zpool detach tank {words[2]}', 120)
    if words:
        device = [word for word in words if word.startswith('/dev')][0]
        machine.run(f'zpool remove tank {device}', 300)
    machine.run('zpool sync tank', 300)


def used_the_log(name, words, result):
    """A result counts only if the commits went where they should."""
    took = result['log-blocks']
    check((took > 0) == bool(words),
          f'{name}: {took} blocks went to a log device')
    check(name == 'zil-off' or result['commits'] > 0, f'{name}: no commit')


def measure(lab, name, loads):
    """One set-up under each of LOADS, functions of the words of its log.  The
    device by itself is written to before the pool has it."""
    results = {}
    with SETUPS[name].make(lab) as words:
        if len(words) == 1 and 'device' in loads:
            results['device'] = loads['device'](words)
        add_log(lab.a, words)
        for load in loads:
            if load != 'device':
                results[load] = loads[load](words)
                used_the_log(name, words, results[load])
        remove_log(lab.a, words)
    return results


def in_rounds(lab, names, rounds, loads, results):
    """Every set-up in each round, every other round backwards."""
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            say(f'round {number + 1} of {rounds}: {name}')
            for load, result in measure(lab, name, loads).items():
                results[name].setdefault(load, []).append(result)


def clock_of(machine):
    """Seconds by the clock of MACHINE, and by that of the world outside before
    and after it was read."""
    before = time.monotonic()
    inside = float(machine.text('cut -d" " -f1 /proc/uptime'))
    return inside, before, time.monotonic()


def clock_is_right(began, ended):
    """A rate by a clock that is too fast or too slow is none."""
    passed = ended[0] - began[0]
    least, most = ended[1] - began[2], ended[2] - began[1]
    check(least * (1 - CLOCK_ERROR) <= passed <= most * (1 + CLOCK_ERROR),
          f'the clock of the machine is wrong: {passed:.1f} s passed there in'
          f' {least:.1f} s')


def with_lab(iops, work):
    say(f'booting two machines, {iops or "any number of"} operations a second')
    lab = Lab(memory=MEMORY, iops=iops).start()
    create_pool(lab.a)
    began = clock_of(lab.a)
    result = work(lab)
    clock_is_right(began, clock_of(lab.a))
    pair.clean_up()
    return result


def writes(machine, seconds):
    """The loads of synchronous writes, and the device by itself."""
    def load_of(name):
        return lambda _: bench_loads.write(machine, name, seconds)
    loads = {name: load_of(name) for name in bench_loads.WRITES}
    loads['device'] = lambda words: bench_loads.write_device(machine, words[0])
    return loads


def link_of(lab):
    """The median time, in microseconds, of a ping to the other machine."""
    lines = lab.a.text('ping -c 51 -i 0.02 10.0.0.2').splitlines()
    times = [float(line.split('time=')[1].split()[0]) for line in lines
             if 'time=' in line]
    return bench_report.median(times) * 1000


def all_writes(rounds, seconds, names, results):
    def work(lab):
        bench_loads.lay_out(lab.a)
        in_rounds(lab, names, rounds, writes(lab.a, seconds), results)
        return link_of(lab)
    return with_lab(0, work)


def all_unpacking(rounds, names, results):
    def work(lab):
        bench_loads.send_archive(lab.a)
        in_rounds(lab, [name for name in names if name in UNTAR], rounds,
                  {'untar': lambda _: bench_loads.unpack(lab.a)}, results)
    with_lab(IOPS, work)


def load_of_this_machine():
    return [round(value, 2) for value in os.getloadavg()]


def run(rounds, seconds, untar_rounds, names, json_path, plot_path):
    results = {name: {} for name in names}
    report = {'date': datetime.date.today().isoformat(),
              'cores': os.cpu_count(), 'seconds': seconds,
              'load before': load_of_this_machine(), 'set-ups': results}
    if rounds:
        report['ping-us'] = all_writes(rounds, seconds, names, results)
    if untar_rounds:
        all_unpacking(untar_rounds, names, results)
    report['load after'] = load_of_this_machine()
    report['ratios'] = bench_report.ratios(results)
    if json_path:
        with open(json_path, 'w', encoding='utf-8') as file:
            json.dump(report, file, indent=1)
    print(bench_report.text(report))
    if plot_path:
        bench_plot.draw(results, plot_path)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    rounds, seconds, untar_rounds = map(int, sys.argv[1:4])
    names = sys.argv[4].split(',') if sys.argv[4] else list(SETUPS)
    for name in names:
        if name not in SETUPS:
            print(f'bench-zfs: there is no set-up {name}; there are'
                  f' {", ".join(SETUPS)}', file=sys.stderr)
            sys.exit(2)
    try:
        run(rounds, seconds, untar_rounds, names, *sys.argv[5:7])
    except pair.Failure as failure:
        pair.show_logs()
        sys.exit(f'bench-zfs: {failure}')
    except SystemExit as end:
        sys.exit(1 if end.code == SKIPPED else end.code)
    finally:
        pair.clean_up()


BEGAN = time.monotonic()
if __name__ == '__main__':
    main()
