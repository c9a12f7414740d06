"""Prints what meson noted of each test, one a line, separated by tabs:
result, name, seconds, and the last line of its output, which says why where
the test was skipped."""
import json
import sys

with open(sys.argv[1], encoding='utf-8') as log:
    for line in log:
        test = json.loads(line)
        said = (test.get('stdout') or '') + (test.get('stderr') or '')
        last = said.strip().splitlines()[-1:] or ['']
        print(test['result'], test['name'].replace('twinlog:', ''),
              f"{test['duration']:.1f}", last[0].replace('\t', ' '), sep='\t')
