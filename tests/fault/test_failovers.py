"""Failovers with random faults, and a client that outlives them: what it was
told is linearizable, nothing that was acknowledged is lost, no request takes
longer than it may, and at rest both nodes hold the same.

TWINLOG_ROUNDS: how many rounds (12).  TWINLOG_SEED: of the random choices; the
sequence of faults depends on it and on the number of rounds only.
"""

import collections
import os
import random

import pair
from stay import Stay

ROUNDS = int(os.environ.get('TWINLOG_ROUNDS', '12'))
SEED = int(os.environ.get('TWINLOG_SEED', str(random.randrange(1 << 32))))
LONGEST_STAY = 25  # rounds, then another pair

# How its pair is set up.
SETUPS = ({'arbiter': True},
          {'arbiter': False, 'kept': True},
          {'arbiter': True, 'kept': True},
          {'arbiter': True, 'auto-promote': True},
          {'arbiter': False},
          {'arbiter': True, 'auto-promote': True, 'kept': True})


def test_rounds():
    print(f'  seed {SEED}', flush=True)
    counts = collections.Counter()
    longest = {True: 0.0, False: 0.0}
    overdue = {True: 0, False: 0}
    stays = max(min(ROUNDS, len(SETUPS)), -(-ROUNDS // LONGEST_STAY))
    number = changes = acknowledged = failed = checked = 0
    for i in range(stays):
        stay = Stay(SETUPS[i % len(SETUPS)], SEED)
        while number < ROUNDS * (i + 1) // stays:
            number += 1
            try:
                stay.round(number)
            except BaseException:
                print(f'  in round {number} of {ROUNDS}, seed {SEED}, '
                      f'{stay.setup()}', flush=True)
                stay.show()
                stay.stop()
                raise
        stay.end()
        counts += stay.counts
        changes += stay.changes
        acknowledged += stay.record.acknowledged
        failed += stay.client.failed
        checked += stay.record.checked
        longest[stay.arbitrated] = max(longest[stay.arbitrated],
                                       stay.client.longest)
        overdue[stay.arbitrated] += stay.client.overdue
    print('  ' + ', '.join(f'{name} {count}'
                           for name, count in sorted(counts.items())))
    print(f'  rounds {number}, changes of the primary {changes}, requests'
          f' judged {checked}, acknowledged {acknowledged}, failed {failed},'
          ' lost 0, not linearizable 0')
    for arbitrated, seconds in longest.items():
        print(f'  longest request {"with" if arbitrated else "without"}'
              f' arbiter {seconds:.2f} s; longer than the deadline and a'
              f' second: {overdue[arbitrated]}', flush=True)
    pair.check(failed > 0, 'no fault met a request in flight')


if __name__ == '__main__':
    pair.main(test_rounds)
