"""The pair over a link of 1 Gbit/s, beside raw TCP over the same link: writes,
writes that compress, a resync, and writes over two such links at once.  Each
node has a network namespace of its own, and what leaves it goes through a token
bucket.
"""

import os
import subprocess
import time

import pair
import peers
from figures import progress
from network import NetworkPair, has_mptcp, requires_network

MTUS = (1500, 9000)
PLACE = '192.0.2.2:10900'  # where raw TCP is answered, beside node b
SIZE = 128 * pair.MIB
LARGE, DEPTHS = 128 * pair.KIB, (4, 16)
LONGER = 2.5  # times the seconds of other figures
LONGEST = 60  # seconds of a resync, at most
SKIPPED = 77  # exit status of a test that cannot run here


class Shaped:
    """A pair at the two ends of the link, or of two, and what answers raw TCP.
    """

    def __init__(self, mtu, cables=1, **parameters):
        self.both = NetworkPair(size=SIZE, **parameters)
        if cables == 2:
            self.both.add_second_cable()
        for name, hosts in list(self.both.cables.items()):
            for space, host in zip(self.both.spaces, hosts):
                self.shape(space, name, host, mtu)
        self.both.create()
        self.answer = subprocess.Popen(
            self.both.spaces[1].inside([pair.TWINLOG, 'bench', '--answer',
                                        PLACE]),
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            preexec_fn=pair.die_with_parent)
        pair.contains(self.answer.stdout.readline(), ['answering'], 'answer')

    @staticmethod
    def shape(space, name, host, mtu):
        # What leaves at once is less than the bucket holds, and that less than
        # a frame of the mirror may be long: as on a wire.
        space.run('ip', 'link', 'set', name, 'mtu', str(mtu), 'gso_max_size',
                  '16384')
        network = host[:host.rindex('.')] + '.0/24'
        space.run('ip', 'route', 'change', network, 'dev', name, 'src', host,
                  'congctl', 'cubic')
        space.run('tc', 'qdisc', 'replace', 'dev', name, 'root', 'tbf', 'rate',
                  '1gbit', 'burst', '32kb', 'latency', '50ms')

    def stop(self):
        self.answer.kill()
        self.answer.communicate()
        self.both.stop()

    def writes(self, seconds, *words):
        """Bytes a second: of the link, and of writes by depth."""
        answer = peers.bench(
            self.both.a.uri(), seconds, '--size', str(LARGE), '--depth',
            ','.join(map(str, DEPTHS)), '--connections', '1', '--ping', PLACE,
            *words, inside=self.both.spaces[0].inside)
        return answer['link']['bytes-per-second'], {
            row['depth']: row['bytes-per-second'] for row in answer['rows']
            if row['pattern'] == 'writes'}

    def lose_b(self):
        """Node b starts without its RAM; all of the volume is to be copied."""
        both = self.both
        both.b.kill()
        both.a.wait(role='Primary', copies=1, suspended=False)
        both.b.spawn()
        pair.wait_for(lambda: both.a.get('connection-state') == 'SyncSource',
                      'a resync begins', 20, 0.005)

    def resync(self):
        """Bytes a second of a resync, from its first acknowledged bytes to
        its last."""
        self.lose_b()
        meter = Meter(self.both.a)
        pair.wait_for(meter.done, 'the resync ends', LONGEST, 0.005)
        self.both.wait_complete(self.both.a)
        return meter.rate()

    def resync_under_load(self, seconds):
        """p99 in us of 4 KiB at a time before a resync and during it; bytes a
        second of that."""
        client = self.both.a.connect()
        end = time.monotonic() + seconds
        before = write(client, lambda: time.monotonic() > end
                       or not self.both.a.status())
        self.lose_b()
        meter = Meter(self.both.a)
        during = write(client, meter.done)
        client.shutdown()
        self.both.wait_complete(self.both.a)
        return before, during, meter.rate()


class Meter:
    """Watches what is out of sync fall."""

    def __init__(self, node):
        self.node = node
        self.total = node.get('out-of-sync')
        self.samples = []

    def done(self):
        status = self.node.status()
        left = status['out-of-sync']
        if status['copies'] == 2:
            return True
        if 0 < left < self.total:
            self.samples.append((time.monotonic(), left))
        return False

    def rate(self):
        pair.check(len(self.samples) > 1, 'the resync was not seen')
        (began, first), (ended, last) = self.samples[0], self.samples[-1]
        pair.check(first > last, 'the resync did not proceed')
        return (first - last) / (ended - began)


def write(client, done):
    """p99 in microseconds of writes of 4 KiB, one after the other, until DONE,
    which is asked every 50 ms between two of them."""
    block = os.urandom(pair.BLOCK)
    times, number = [], 0
    begun = asked = time.monotonic()
    while True:
        if time.monotonic() > asked + 0.05:
            if done():
                break
            pair.check(time.monotonic() < begun + LONGEST, 'it does not end')
            asked = time.monotonic()
        number = number * 1103515245 + 12345 & 0x7fffffff
        offset = number % (SIZE // pair.BLOCK) * pair.BLOCK
        began = time.perf_counter()
        client.pwrite(block, offset)
        times.append(time.perf_counter() - began)
    pair.check(times, 'nothing was written')
    times.sort()
    return times[len(times) * 99 // 100] * 1e6


def knows(parameter):
    """Does the plugin take it?"""
    result = pair.run(['nbdkit', pair.PLUGIN, '--help'])
    return f'{parameter}=' in result.stdout


def compressible(directory):
    """The path of a file of which a quarter is random, within each block."""
    path = os.path.join(directory, 'content')
    with open(path, 'wb') as file:
        for _ in range(2048):
            file.write(os.urandom(pair.KIB) + bytes(3 * pair.KIB))
    return path


def measure_plain(mtu, arguments, figures):
    link = Shaped(mtu)
    seconds = LONGER * arguments.seconds
    for number in range(arguments.pairs):
        progress(f'round {number + 1}: 1 Gbit/s, MTU {mtu}')
        raw, rates = link.writes(seconds)
        figures.add(('raw', mtu), raw)
        for depth, rate in rates.items():
            figures.add(('writes', mtu, depth), rate)
        figures.add(('resync', mtu), link.resync())
        before, during, rate = link.resync_under_load(seconds)
        figures.add(('before', mtu), before)
        figures.add(('during', mtu), during)
        figures.add(('slowed', mtu), during / before)
        figures.add(('loaded', mtu), rate)
    link.stop()


def measure_lz4(mtu, arguments, figures):
    link = Shaped(mtu, compress='lz4')
    content = compressible(pair.make_directory())
    for number in range(arguments.pairs):
        progress(f'round {number + 1}: compress=lz4, MTU {mtu}')
        _, rates = link.writes(LONGER * arguments.seconds, '--content',
                               content)
        for depth, rate in rates.items():
            figures.add(('lz4', mtu, depth), rate)
    link.stop()


def measure_mptcp(mtu, arguments, figures):
    link = Shaped(mtu, cables=2, mptcp='on')
    for number in range(arguments.pairs):
        progress(f'round {number + 1}: two cables, MTU {mtu}')
        _, rates = link.writes(LONGER * arguments.seconds)
        for depth, rate in rates.items():
            figures.add(('mptcp', mtu, depth), rate)
    link.stop()


def measure(arguments, figures):
    """False, with a line that says why, where this machine cannot."""
    try:
        requires_network()
        for mtu in MTUS:
            measure_plain(mtu, arguments, figures)
            if knows('compress'):
                measure_lz4(mtu, arguments, figures)
        if knows('mptcp') and has_mptcp():
            measure_mptcp(MTUS[0], arguments, figures)
    except SystemExit as end:
        if end.code != SKIPPED:
            raise
        return False
    return True


def show(figures, report):
    for mtu in MTUS:
        raw = figures.of('raw', mtu)

        def row(what, rate):
            report.say(f'  {what:50} {rate / 1e6:7.1f} {rate / raw:7.2f} x')
        report.say(f'\nOver a link of 1 Gbit/s, MTU {mtu}: MB/s, and the '
                   'share of raw TCP\n')
        row('raw TCP', raw)
        for depth in DEPTHS:
            row(f'the pair, 128 KiB, depth {depth}',
                figures.of('writes', mtu, depth))
        for depth in DEPTHS:
            if figures.has('lz4', mtu, depth):
                row(f'with compress=lz4, a quarter random, depth {depth}',
                    figures.of('lz4', mtu, depth))
        for depth in DEPTHS:
            if figures.has('mptcp', mtu, depth):
                row(f'over two such links, mptcp=on, depth {depth}',
                    figures.of('mptcp', mtu, depth))
        row('resync', figures.of('resync', mtu))
        row('resync under writes of 4 KiB, depth 1',
            figures.of('loaded', mtu))
        report.say(f'  {"p99 of these writes in us, before and during it":50} '
                   f'{figures.of("before", mtu):7.0f} '
                   f'{figures.of("during", mtu):7.0f}')

        where = f'1 Gbit/s, MTU {mtu}'
        writes = figures.of('writes', mtu, 16)
        report.verdict(f'{where}: 128 KiB, depth 16, to raw TCP',
                       writes / raw, 0.97)
        if figures.has('lz4', mtu, 16):
            report.verdict(f'{where}: compress=lz4 to that',
                           figures.of('lz4', mtu, 16) / writes, 2)
        if figures.has('mptcp', mtu, 16):
            report.verdict(f'{where}: two links, mptcp=on, to raw TCP over one',
                           figures.of('mptcp', mtu, 16) / raw, 1.94)
        report.verdict(f'{where}: resync to raw TCP',
                       figures.of('resync', mtu) / raw, 0.9)
        report.verdict(f'{where}: p99 of 4 KiB in a resync to before',
                       figures.of('slowed', mtu), 2, most=True)
    if not figures.has('lz4', MTUS[0], DEPTHS[0]):
        report.say('\ncompress=lz4 is left out: the plugin does not know it')
    if not figures.has('mptcp', MTUS[0], DEPTHS[0]):
        report.say('\nmptcp=on is left out: the plugin or the kernel does not '
                   'know it')
