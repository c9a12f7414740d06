"""The pair beside what else there is, in one run: see scripts/bench."""

import argparse
import datetime
import os
import platform
import subprocess
import sys

import pair
import peers
import shaped
from figures import Figures, Report, around_marks, progress

KIB = 1 << 10
# Through qemu-img: (size, depth)
POINTS = ((4 * KIB, 1), (4 * KIB, 16), (128 * KIB, 4))
# Measured on more than one connection, too.
MANY = (peers.PAIR, peers.MEMORY, peers.BARE_MIRROR)


def bench(peer, arguments, ping, figures, *points):
    """One run of twinlog bench."""
    answer = peers.bench(peer.uri, arguments.seconds, *points,
                         *(['--ping', ping] if ping else []))
    for row in answer['rows']:
        if row['pattern'] == 'writes':
            key = (peer.name, row['size'], row['depth'], row['connections'])
            figures.add(('iops', *key), row['iops'])
            figures.add(('p50', *key), row['p50-us'])
    if ping:
        for entry in answer['link']['pings']:
            figures.add(('ping', entry['size']), entry['p50-us'])
        figures.add(('link',), answer['link']['bytes-per-second'])


def grids(arguments, peer):
    """The points that PEER is measured at, a run for each."""
    if arguments.full:
        return [('--size', '4K,8K,32K,128K,1M', '--depth', '1,4,10,16,32',
                 '--connections', '1,4,16')]
    return [('--size', '4K,8K,128K', '--depth', '1,4,16', '--connections',
             '1')] + \
        ([('--size', '4K,128K', '--depth', '16', '--connections', '4,16')]
         if peer.name in MANY else [])


def start_all(arguments):
    """In the order in which they are shown."""
    both = pair.Pair(size=peers.SIZE).create()
    started = peers.Peers()
    found = [peers.Peer(peers.PAIR, both.a.uri(),
                        peers.unix_image(both.a.socket)),
             started.memory(), started.bare(), started.memory_tcp(),
             started.quorum(), started.quorum_direct()]
    if arguments.tgt:
        ram = pair.make_directory('/dev/shm')
        found.append(started.iscsi(arguments.tgt, ram))
    return found


def start_answer():
    """What answers the pings of raw TCP."""
    place = f'127.0.0.1:{pair.free_port()}'
    process = subprocess.Popen(
        [pair.TWINLOG, 'bench', '--answer', place], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        preexec_fn=pair.die_with_parent)
    pair.contains(process.stdout.readline(), ['answering'], 'twinlog bench')
    return place, process


def measure(found, arguments, figures):
    place, process = start_answer()
    counts = {}
    try:
        for number in range(arguments.pairs):
            order = found if number % 2 == 0 else found[::-1]
            for peer in order:
                progress(f'round {number + 1}: {peer.name}')
                for points in grids(arguments, peer) if peer.uri else []:
                    bench(peer, arguments,
                          place if peer.name == peers.PAIR else None, figures,
                          *points)
                for size, depth in POINTS:
                    figures.add(
                        ('qemu', peer.name, size, depth), peers.qemu_bench(
                            peer, size, depth, arguments.seconds, counts))
    finally:
        process.kill()
        process.communicate()


# ---- What is shown ----

def show_machine(arguments, report):
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file
                      if line.startswith('model name')), 'unknown')
    report.say(f'{datetime.datetime.now():%Y-%m-%d %H:%M}, {model},\n'
               f'{len(os.sched_getaffinity(0))} CPUs, Linux '
               f'{platform.release()}; load {os.getloadavg()[0]:.1f}; medians '
               f'of {arguments.pairs}')


def show_nbd(found, figures, report):
    report.say('\nThrough libnbd: writes a second (p50 in us)\n')
    points = sorted({key[2:] for key in figures.lists if key[0] == 'iops'})
    columns = [peer for peer in found if peer.uri]
    report.say(f'{"KiB":>3} {"depth":>5} {"conn":>4}' +
               ''.join(f'{peer.column:>13}' for peer in columns))
    for point in points:
        size, depth, connections = point
        cells = [f'{figures.of("iops", peer.name, *point):.0f} '
                 f'({figures.of("p50", peer.name, *point):.0f})'
                 if figures.has('iops', peer.name, *point) else '-'
                 for peer in columns]
        report.say(f'{size // KIB:>3} {depth:5} {connections:4}' +
                   ''.join(f'{cell:>13}' for cell in cells))


def show_qemu(found, figures, report):
    report.say('\nThrough qemu-img bench: writes a second, and the pair\'s '
               'share\n')
    for size, depth in POINTS:
        ours = figures.of('qemu', peers.PAIR, size, depth)
        for peer in found:
            rate = figures.of('qemu', peer.name, size, depth)
            report.say(f'{size // KIB:>4} KiB {depth:5} {peer.name:>27} '
                       f'{rate:9.0f}  {ours / rate:5.2f} x')
    report.say('\nRaw TCP, 16 bytes back: ' + ', '.join(
        f'{key[1] // KIB} KiB {figures.of(*key):.1f} us'
        for key in sorted(key for key in figures.lists if key[0] == 'ping')) +
        f';\n{figures.of("link") / 1e6:.0f} MB/s')


def judge(figures, report):
    ours, memory = peers.PAIR, peers.MEMORY
    quorum, direct = peers.QUORUM, peers.DIRECT
    for size in (4 * KIB, 8 * KIB):
        floor = figures.of('p50', memory, size, 1, 1) + \
            figures.of('ping', size)
        report.verdict(f'{size // KIB} KiB, depth 1: p50 to memory + raw TCP',
                       figures.of('p50', ours, size, 1, 1) / floor, 1.1,
                       most=True)
    for size, depth, times in ((4 * KIB, 16, 4), (128 * KIB, 4, 3)):
        what = f'{size // KIB} KiB, depth {depth}'
        point = (size, depth, 1)
        rate = figures.of('iops', ours, *point)
        report.verdict(f'{what} to memory',
                       rate / figures.of('iops', memory, *point), 0.5)
        # Each through the same client as the pair; its better one counts.
        share = min(rate / figures.of('iops', quorum, *point),
                    figures.of('qemu', ours, size, depth) /
                    figures.of('qemu', direct, size, depth))
        report.verdict(f'{what} to quorum at its better', share, times)
    for size in (4 * KIB, 128 * KIB):
        few, some, many = (figures.of('iops', ours, size, 16, connections)
                           for connections in (1, 4, 16))
        what = f'{size // KIB} KiB, depth 16'
        report.verdict(f'{what}: 4 connections to 1', some / few, 1)
        report.verdict(f'{what}: 16 connections to 4', many / some, 1)


def main():
    parser = argparse.ArgumentParser(usage='see scripts/bench --help')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.4)
    parser.add_argument('--tgt')
    parser.add_argument('--pod')
    arguments = parser.parse_args()
    command = 'scripts/bench' + ''.join(
        f' --{name} {getattr(arguments, name)}' for name in
        ('pairs', 'seconds') if getattr(arguments, name) !=
        parser.get_default(name)) + ' --full' * arguments.full
    sys.argv[1:] = []
    # All alike: two CPUs for everything, as where there are no more.
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))

    def run():
        figures, report = Figures(), Report()
        if arguments.pod:
            around_marks(arguments.pod)  # before all the work
        show_machine(arguments, report)
        found = start_all(arguments)
        measure(found, arguments, figures)
        progress('')
        show_nbd(found, figures, report)
        show_qemu(found, figures, report)
        judge(figures, report)
        linked = shaped.measure(arguments, figures)
        progress('')
        if linked:
            shaped.show(figures, report)
        else:
            report.say('\nThe link of 1 Gbit/s was left out: it takes root '
                       'and network namespaces')
        report.say_verdicts()
        if arguments.pod:
            report.write_pod(arguments.pod, command)
    pair.main(run)


if __name__ == '__main__':
    main()
