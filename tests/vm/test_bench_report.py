"""What scripts/bench-zfs makes of measurements, and what it refuses."""

import os

import bench_plot
import bench_report
import pair
from pair import check, contains, equal

BENCH = os.path.join(pair.SOURCE, 'scripts/bench-zfs')


def rounds(*iops):
    return [{'iops': value, 'mean-us': 1e6 / value, 'p99-us': 2e6 / value,
             'commits': 100, 'writes': 100, 'flushes': 50} for value in iops]


def unpacked(*seconds):
    return [{'seconds': value, 'commits': 6000} for value in seconds]


RESULTS = {
    'zil-off': {'untar': unpacked(4, 4, 90)},
    'memory-link': {'4k-1': rounds(500, 800, 100), '128k-1': rounds(241)},
    'zfs-mirror': {'4k-1': rounds(250.1)},
    'pair': {'4k-1': rounds(500, 400, 9000), '4k-8': rounds(700),
             '128k-1': rounds(240), '128k-8': rounds(300),
             'untar': unpacked(5, 5.2, 90)},
}


def outcome(found, below, load):
    each, = [each for each in found if (each['above'], each['below'],
                                        each['load']) == ('pair', below, load)]
    return round(each['ratio'], 3), each['outcome']


def test_ratios():
    """The median of the rounds' counts, and a target is reached at its very
    figure."""
    found = bench_report.ratios(RESULTS)
    equal(outcome(found, 'memory-link', '4k-1'), (1.0, 'reached'), 'at 1.0')
    equal(outcome(found, 'memory-link', '128k-1'), (0.996, 'missed'), 'below')
    equal(outcome(found, 'zfs-mirror', '4k-1'), (1.999, 'missed'), 'below 2')
    equal(outcome(found, 'zil-off', 'untar'), (1.25, 'reached'), 'at 1.25')
    slower = {**RESULTS, 'pair': {'untar': unpacked(5.1, 5.1, 1)}}
    equal(outcome(bench_report.ratios(slower), 'zil-off', 'untar'),
          (1.275, 'missed'), 'above 1.25')
    check(not [each for each in found if each['below'] == 'ram-disk'],
          'a ratio of what was not measured')


def test_text():
    shown = bench_report.text({
        'date': '2000-01-02', 'cores': 2, 'load before': [0], 'load after': [1],
        'ping-us': 300.4, 'set-ups': RESULTS,
        'ratios': bench_report.ratios(RESULTS)})
    contains(shown, ['2000-01-02', '1.00  0.50 90.00  >= 1.00 reached',
                     '1.25  1.00  1.30  <= 1.25 reached',
                     '2.00  2.00  2.00  >= 2.00 missed', '400-9000',
                     'link: 300 us'], 'the report')
    line, = [line for line in shown.splitlines()
             if line.startswith('memory-link ') and '241' in line and
             '-241' not in line]
    equal(line.split()[1:], ['500', '-', '241', '-'], 'its line')


def test_plot():
    pair.requires_program('gnuplot')
    directory = pair.make_directory()
    path = os.path.join(directory, 'plot.svg')
    bench_plot.draw(RESULTS, path)
    with open(path, encoding='utf-8') as file:
        contains(file.read(), ['<svg', 'zfs-mirror', '128 KiB', '138 MB'],
                 'the picture')


def test_usage():
    for options in (['--rounds', '-1'], ['--rounds'], ['--seconds', '0'],
                    ['--json', '/nowhere/at/all'], ['--set-ups', 'a b'],
                    ['--built', '/nowhere'], ['--what']):
        ended = pair.run([BENCH, *options])
        equal(ended.returncode, 2, f'exit status of {options}')
        equal(len(ended.stderr.splitlines()), 1, f'lines for {options}')
    ended = pair.run([BENCH, '--help'])
    equal((ended.returncode, ended.stderr), (0, ''), '--help')


if __name__ == '__main__':
    pair.main(test_ratios, test_text, test_plot, test_usage)
