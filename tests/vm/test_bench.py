"""scripts/bench-zfs measures what it says: each set-up has the log device that
it should, and leaves the next one nothing."""

import json
import os

import bench_report
import pair
from pair import check, contains, equal

BENCH = os.path.join(pair.SOURCE, 'scripts/bench-zfs')
SETUPS = ('no-log', 'ram-disk', 'memory-link', 'memory-link-no-flush',
          'zfs-mirror', 'pair-flush', 'pair')
NBD_WRITES = {'zfs-mirror': 2, 'no-log': 0, 'ram-disk': 0}
NBD_FLUSHES = {'memory-link': 1, 'zfs-mirror': 2, 'pair-flush': 1}


def per_commit(results, name, key, expected):
    """None where there must be none; else so many for each commit at least,
    since the pool writes to its devices now and then, too."""
    value = bench_report.per_commit(results, name, key)
    right = value > expected - 0.5 if expected else value == 0
    check(right, f'{name}: {value:.2f} {key} of NBD for a commit')


def test_bench():
    pair.requires_root()
    directory = pair.make_directory()
    path = os.path.join(directory, 'results.json')
    ended = pair.run([BENCH, '--built', pair.BUILD, '--rounds', '1',
                      '--seconds', '1', '--untar-rounds', '0', '--set-ups',
                      ','.join(SETUPS), '--json', path], timeout=3600,
                     env={**os.environ, 'TMPDIR': directory})
    if ended.returncode != 0 and 'skipped:' in ended.stdout:
        pair.skip(ended.stdout.split('skipped:')[1].strip())
    equal(ended.returncode, 0, f'exit status: {ended.stderr}')
    with open(path, encoding='utf-8') as file:
        report = json.load(file)
    results = report['set-ups']
    equal(tuple(results), SETUPS, 'set-ups')
    for name in SETUPS:
        per_commit(results, name, 'writes', NBD_WRITES.get(name, 1))
        per_commit(results, name, 'flushes', NBD_FLUSHES.get(name, 0))
        for load in bench_report.WRITES:
            equal(len(results[name][load]), 1, f'rounds of {name}, {load}')
    contains(ended.stdout, ['pair / memory-link', 'pair / zfs-mirror'],
             'its ratios')
    print(ended.stdout)


if __name__ == '__main__':
    pair.main(test_bench)
