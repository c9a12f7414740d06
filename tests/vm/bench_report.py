"""The results of scripts/bench-zfs as text, and what they are measured by.

Pure.  RESULTS has for each set-up, by its name, and each load a list, one
entry a round.
"""

import statistics
from collections import namedtuple

WRITES = ('4k-1', '4k-8', '128k-1', '128k-8')
SMALL, LARGE = '4k-1', '128k-1'

median = statistics.median

# LOAD of set-up ABOVE divided by that of BELOW; what is wanted is at least a
# target of writes, and at most one of seconds. None: it is only told.
Ratio = namedtuple('Ratio', 'above below load target')

RATIOS = [
    Ratio('pair', 'memory-link', SMALL, 1.0),
    Ratio('pair', 'memory-link', LARGE, 1.0),
    Ratio('pair', 'memory', SMALL, 1.0),
    Ratio('pair', 'memory', LARGE, 1.0),
    Ratio('pair', 'zfs-mirror', SMALL, 2.0),
    Ratio('pair', 'zfs-mirror', LARGE, 2.0),
    Ratio('pair', 'zil-off', 'untar', 1.25),
] + [Ratio(above, below, load, None) for above, below, loads in [
    ('pair', 'zfs-mirror-ram', WRITES),
    ('pair', 'ram-disk', WRITES),
    ('pair', 'no-log', WRITES + ('untar',)),
    ('pair', 'memory-link', ('4k-8', '128k-8', 'untar')),
    ('pair', 'memory', ('4k-8', '128k-8', 'untar')),
    ('pair', 'zfs-mirror', ('4k-8', '128k-8', 'untar')),
    ('pair', 'pair-flush', WRITES),
    ('alone', 'alone-flush', WRITES),
    ('memory-link-no-flush', 'memory-link', WRITES),
    ('pair', 'memory-link-no-flush', WRITES),
    ('alone', 'memory', WRITES),
    ('alone', 'pair', ('untar',)),
] for load in loads]


def value_of(load):
    return {'untar': 'seconds'}.get(load, 'iops')


def middle(results, name, load, key=None):
    """The median of a set-up's rounds, or None where there is none."""
    rounds = results.get(name, {}).get(load)
    return rounds and median([each[key or value_of(load)] for each in rounds])


def by_round(results, name, load):
    rounds = results.get(name, {}).get(load, [])
    return [each[value_of(load)] for each in rounds]


def ratios(results):
    """Each ratio of which both sides were measured, the median of those within
    a round, since a machine is not the same in each; and how it turned out:
    'reached', 'missed', or '' where there is no target."""
    found = []
    for ratio in RATIOS:
        rounds = [above / below for above, below in zip(
            by_round(results, ratio.above, ratio.load),
            by_round(results, ratio.below, ratio.load))]
        if not rounds:
            continue
        value, outcome = median(rounds), ''
        if ratio.target is not None:
            reached = value <= ratio.target if ratio.load == 'untar' \
                else value >= ratio.target
            outcome = 'reached' if reached else 'missed'
        found.append({**ratio._asdict(), 'ratio': value, 'outcome': outcome,
                      'least': min(rounds), 'most': max(rounds)})
    return found


# ---- Text ----

def cell(value, form='{:.0f}', width=8):
    return (form.format(value) if value is not None else '-').rjust(width)


def per_commit(results, name, key):
    """How many writes or flushes reached a device for one commit."""
    rounds = results[name].get(SMALL)
    return rounds and median([each[key] / max(each['commits'], 1)
                              for each in rounds])


def writes_table(results):
    lines = ['Synchronous writes a second, the median of the rounds:', '',
             ' ' * 22 + ''.join(load.rjust(8) for load in WRITES)]
    for name in results:
        lines.append(f'{name:22}' + ''.join(
            cell(middle(results, name, load)) for load in WRITES))
    return lines


def spread_table(results):
    lines = ['The slowest and the fastest round:', '',
             ' ' * 22 + ''.join(load.rjust(14) for load in WRITES)]
    for name in results:
        lines.append(f'{name:22}' + ''.join(
            (f'{min(values):.0f}-{max(values):.0f}' if values else '-')
            .rjust(14) for values in (
                [each['iops'] for each in results[name].get(load, [])]
                for load in WRITES)))
    return lines


def commit_table(results):
    lines = ['A commit of 4 KiB, one job: its mean time in microseconds, and',
             'what 99 % keep; writes and flushes of NBD devices for each; and the',
             'time of 8 KiB written to the log device by itself:', '',
             ' ' * 22 + '    mean     p99  writes flushes  device']
    for name in results:
        lines.append(f'{name:22}' + cell(middle(results, name, SMALL,
                                                'mean-us'))
                     + cell(middle(results, name, SMALL, 'p99-us'))
                     + cell(per_commit(results, name, 'writes'), '{:.2f}')
                     + cell(per_commit(results, name, 'flushes'), '{:.2f}')
                     + cell(middle(results, name, 'device', 'mean-us')))
    return lines


def untar_table(results):
    off = middle(results, 'zil-off', 'untar')
    lines = ['Unpacking 2,000 files, 138 MB: seconds, how often the time with',
             'the ZIL off, and commits:', '',
             ' ' * 22 + ' seconds   times commits']
    for name in results:
        took = middle(results, name, 'untar')
        if took is not None:
            lines.append(f'{name:22}' + cell(took, '{:.1f}')
                         + cell(off and took / off, '{:.2f}')
                         + cell(middle(results, name, 'untar', 'commits')))
    return lines


def ratio_table(found):
    lines = ['Ratios: the median of those of each round, the least and the',
             'most; less is better of untar, more of everything else:', '',
             f'{"":35}{"load":7} ratio  from    to  target']
    for each in found:
        both = f'{each["above"]} / {each["below"]}'
        sign = '<=' if each['load'] == 'untar' else '>='
        target = '' if each['target'] is None else \
            f'{sign} {each["target"]:.2f} {each["outcome"]}'
        lines.append(f'{both:35}{each["load"]:7}' + ''.join(
            cell(each[key], '{:.2f}', 6) for key in ('ratio', 'least', 'most'))
            + f'  {target}'.rstrip())
    return lines


def text(report):
    results = report['set-ups']
    parts = []
    if any(load in found for found in results.values() for load in WRITES):
        parts += [writes_table(results), spread_table(results),
                  commit_table(results)]
    if any('untar' in found for found in results.values()):
        parts.append(untar_table(results))
    if report['ratios']:
        parts.append(ratio_table(report['ratios']))
    how = [f'{report["date"]}, {report["cores"]} cores; load average before'
           f' {report["load before"]}, after {report["load after"]}']
    if 'ping-us' in report:
        how.append(f'ping over the link: {report["ping-us"]:.0f} us')
    parts.append(how)
    return '\n\n'.join('\n'.join(part) for part in parts)
