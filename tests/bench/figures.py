"""What was measured, and what is shown of it: see scripts/bench."""

import datetime
import os
import statistics
import sys

import pair

MARKS = ('=for comment scripts/bench --pod writes from here',
         '=for comment to here')


def progress(text):
    """On a terminal: what is measured now, in place of what was before."""
    if sys.stderr.isatty():
        print(f'\r{text:60}\r', end='', file=sys.stderr, flush=True)


class Figures:
    """Medians over the rounds, by what each figure is of."""

    def __init__(self):
        self.lists = {}

    def add(self, key, value):
        self.lists.setdefault(key, []).append(value)

    def of(self, *key):
        return statistics.median(self.lists[key])

    def has(self, *key):
        return key in self.lists


class Report:
    """Lines that are printed, and kept for a manual page."""

    def __init__(self):
        self.lines = []
        self.verdicts = []

    def say(self, text=''):
        print(text, flush=True)
        self.lines += text.split('\n')

    def verdict(self, what, value, bound, most=False):
        """For the end: reached or missed; at least BOUND, or at MOST."""
        reached = value <= bound if most else value >= bound
        self.verdicts.append(
            f'{"reached" if reached else "MISSED ":8} {what}: {value:.2f} x, '
            f'{"<=" if most else ">="} {bound}')

    def say_verdicts(self):
        self.say('\nTargets\n')
        for line in self.verdicts:
            self.say(line)

    def write_pod(self, path, command):
        """Put it all between the two marks in the page at PATH."""
        before, after = around_marks(path)
        text = '\n'.join(f' {line}'.rstrip() for line in self.lines)
        fresh = f'{path}.new'
        with open(fresh, 'w', encoding='utf-8') as file:
            file.write(f'{before}{MARKS[0]}\n\nOn '
                       f'{datetime.date.today():%Y-%m-%d}, by '
                       f'C<{command}>:\n\n{text}\n\n{MARKS[1]}{after}')
        os.replace(fresh, path)


def around_marks(path):
    """What is before the marks in the page at PATH, and what behind them."""
    with open(path, encoding='utf-8') as file:
        before, begin, rest = file.read().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    pair.check(begin and end, f'{path} lacks the lines {MARKS}')
    return before, after
