"""Prints what meson noted of the tests of a suite, from its JSON log: a line
for each, the end of the output of those that failed, and last the numbers of
passed, failed and skipped ones. With --failed, only the names of these."""
import json
import sys

TAIL = 30  # lines of a failed test


def tests(path):
    with open(path, encoding='utf-8') as log:
        return [json.loads(line) for line in log]


def output(test):
    return ((test.get('stdout') or '') + (test.get('stderr') or '')).strip()


def main(path, prefix, only_failed):
    counts = {'OK': 0, 'FAIL': 0, 'SKIP': 0}
    for test in tests(path):
        result = {'OK': 'OK', 'EXPECTEDFAIL': 'OK', 'SKIP': 'SKIP'}.get(
            test['result'], 'FAIL')
        counts[result] += 1
        name = f"{prefix} {test['name'].replace('twinlog:', '')}"
        lines = output(test).splitlines()
        if only_failed:
            if result == 'FAIL':
                print(f"{name} ({test['result']})")
            continue
        note = f"{test['duration']:.1f} s"
        if result == 'SKIP':
            # A test says why at the end.
            note = lines[-1] if lines else 'it does not say why'
        elif result == 'FAIL':
            note = f"{test['result']} after {note}"
        print(f'{result:5} {name} ({note})')
        if result == 'FAIL':
            # What failed, which may stand before the logs of the nodes.
            said = [line for line in lines[:-TAIL]
                    if line.startswith('FAILED ')]
            for line in said + lines[-TAIL:]:
                print(f'      | {line}')
    if not only_failed:
        print(counts['OK'], counts['FAIL'], counts['SKIP'])


main(sys.argv[1], sys.argv[2], sys.argv[3:] == ['--failed'])
