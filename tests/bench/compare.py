"""The pair beside what else there is, in one run: see scripts/bench."""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

import pair
import peers

KIB = 1 << 10
FULL_SIZES, FULL_DEPTHS = '4K,8K,32K,128K,1M', '1,4,10,16,32'
# Through qemu-img: (size, depth)
POINTS = ((4 * KIB, 1), (4 * KIB, 16), (128 * KIB, 4))


class Figures:
    """Medians over the rounds, by (client, peer, size, depth, conn)."""

    def __init__(self):
        self.lists = {}

    def add(self, key, value):
        self.lists.setdefault(key, []).append(value)

    def of(self, *key):
        return statistics.median(self.lists[key])

    def has(self, *key):
        return key in self.lists


def bench(uri, arguments, ping, figures, name):
    """One run of twinlog bench."""
    result = pair.run(
        [pair.TWINLOG, 'bench', '--uri', uri, '--overwrite', '--json',
         '--seconds', arguments.seconds, *grid(arguments),
         *(['--ping', ping] if ping else [])], timeout=600)
    pair.equal(result.returncode, 0, f'bench of {name}: {result.stderr}')
    answer = json.loads(result.stdout)
    for row in answer['rows']:
        if row['pattern'] == 'writes':
            key = (name, row['size'], row['depth'], row['connections'])
            figures.add(('iops', *key), row['iops'])
            figures.add(('p50', *key), row['p50-us'])
    if ping:
        for entry in answer['link']['pings']:
            figures.add(('ping', entry['size']), entry['p50-us'])
        figures.add(('link',), answer['link']['bytes-per-second'])


def grid(arguments):
    if arguments.full:
        return ['--size', FULL_SIZES, '--depth', FULL_DEPTHS,
                '--connections', '1,4,16']
    return ['--size', '4K,8K,128K', '--depth', '1,4,16', '--connections', '1']


def start_all(arguments):
    """The pair first; whatever has a URI, and whatever qemu-img can name."""
    both = pair.Pair(size=peers.SIZE).create()
    started = peers.Peers()
    found = [peers.Peer('the pair', both.a.uri(),
                        peers.unix_image(both.a.socket)),
             started.memory(), started.memory_tcp(), started.quorum(),
             started.quorum_direct()]
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
                if sys.stderr.isatty():
                    print(f'\rround {number + 1}: {peer.name:40}', end='',
                          file=sys.stderr)
                if peer.uri:
                    bench(peer.uri, arguments,
                          place if peer is found[0] else None, figures,
                          peer.name)
                for size, depth in POINTS:
                    figures.add(
                        ('qemu', peer.name, size, depth), peers.qemu_bench(
                            peer, size, depth, arguments.seconds, counts))
    finally:
        process.kill()
        process.communicate()


# ---- What is shown ----

def show_machine(arguments):
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file
                      if line.startswith('model name')), 'unknown')
    print(f'{datetime.datetime.now():%Y-%m-%d %H:%M}, {model}, '
          f'{len(os.sched_getaffinity(0))} CPUs, Linux {platform.release()}; '
          f'load {os.getloadavg()[0]:.1f}; medians of {arguments.pairs}')


def show_nbd(found, figures):
    print('\nThrough libnbd: writes a second (p50 in us)\n')
    points = sorted({key[2:] for key in figures.lists if key[0] == 'iops'})
    names = [peer.name for peer in found if peer.uri]
    print(f'{"size":>8} {"depth":>5} {"conn":>4} ' +
          ' '.join(f'{name:>27}' for name in names))
    for size, depth, connections in points:
        cells = []
        for name in names:
            point = (name, size, depth, connections)
            cells.append(f'{figures.of("iops", *point):.0f} '
                         f'({figures.of("p50", *point):.0f})')
        print(f'{size // KIB:>4} KiB {depth:5} {connections:4} ' +
              ' '.join(f'{cell:>27}' for cell in cells))


def show_qemu(found, figures):
    print('\nThrough qemu-img bench: writes a second, and the pair\'s share\n')
    for size, depth in POINTS:
        ours = figures.of('qemu', found[0].name, size, depth)
        for peer in found:
            rate = figures.of('qemu', peer.name, size, depth)
            print(f'{size // KIB:>4} KiB {depth:5} {peer.name:>27} '
                  f'{rate:9.0f}  {ours / rate:5.2f} x')
    print('\nRaw TCP, 16 bytes back: ' + ', '.join(
        f'{key[1] // KIB} KiB {figures.of(*key):.1f} us'
        for key in sorted(key for key in figures.lists if key[0] == 'ping')) +
        f'; {figures.of("link") / 1e6:.0f} MB/s')


def verdict(what, value, bound, most):
    """One line: reached or missed."""
    reached = value <= bound if most else value >= bound
    print(f'{"reached" if reached else "MISSED ":8} {what}: {value:.2f} x, '
          f'{"at most" if most else "at least"} {bound} x')


def show_targets(found, figures):
    ours, memory, quorum, direct = (found[0].name, found[1].name,
                                    found[3].name, found[4].name)
    print('\nTargets\n')
    for size in (4 * KIB, 8 * KIB):
        floor = figures.of('p50', memory, size, 1, 1) + \
            figures.of('ping', size)
        verdict(f'{size // KIB} KiB, depth 1: p50 to that of memory plus raw '
                'TCP', figures.of('p50', ours, size, 1, 1) / floor, 1.1, True)
    for size, depth, times in ((4 * KIB, 16, 4), (128 * KIB, 4, 3)):
        what = f'{size // KIB} KiB, depth {depth}: IOPS'
        point = (size, depth, 1)
        rate = figures.of('iops', ours, *point)
        verdict(f'{what} to memory', rate / figures.of('iops', memory, *point),
                0.5, False)
        # Each through the same client as the pair; its better one counts.
        share = min(rate / figures.of('iops', quorum, *point),
                    figures.of('qemu', ours, size, depth) /
                    figures.of('qemu', direct, size, depth))
        verdict(f'{what} to quorum at its better', share, times, False)
    for size in (4 * KIB, 128 * KIB):
        rates = [figures.of('iops', ours, size, 16, connections)
                 for connections in (1, 4, 16)
                 if figures.has('iops', ours, size, 16, connections)]
        for few, many, names in zip(rates, rates[1:], ('4 to 1', '16 to 4')):
            verdict(f'{size // KIB} KiB, depth 16: IOPS of {names} '
                    'connections', many / few, 1, False)


def main():
    parser = argparse.ArgumentParser(usage='see scripts/bench --help')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.4)
    parser.add_argument('--tgt')
    arguments = parser.parse_args()
    sys.argv[1:] = []
    # All alike: two CPUs for everything, as where there are no more.
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))

    def run():
        figures = Figures()
        found = start_all(arguments)
        measure(found, arguments, figures)
        if sys.stderr.isatty():
            print(f'\r{"":60}\r', end='', file=sys.stderr)
        show_machine(arguments)
        show_nbd(found, figures)
        show_qemu(found, figures)
        show_targets(found, figures)
    pair.main(run)


if __name__ == '__main__':
    main()
