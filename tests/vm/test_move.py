"""The pool moves to the other machine and back, as planned, with
scripts/twinlog-move: every file whose fsync returned is there.

TWINLOG_MOVES: how many (2).
"""

import os
import time

import pair
import storage
from machines import Lab
from pair import check

MOVES = int(os.environ.get('TWINLOG_MOVES', '2'))
MOVE = f'twinlog-move {storage.VOLUME} --pool tank --share ""' \
    f' --search "{storage.SEARCH}"'


def move(lab, active, number):
    """From ACTIVE to the other one, once its files are written."""
    storage.write_files(active, f'move{number}')
    busy = active.run(f'{MOVE} 2>&1', may_fail=True)
    check(busy.status == 1 and b'nothing has moved' in busy.output,
          f'a move of a pool in use: {busy.output}')
    check(storage.pool_is_healthy(active), 'the pool goes on where it was')
    storage.end_writer(active)
    began = time.monotonic()
    said = active.text(f'{MOVE} 2>&1')
    check('--take' in said, f'twinlog-move: {said}')
    taker = lab.other(active)
    taker.run(f'{MOVE} --take 2>&1')
    took = time.monotonic() - began
    count = storage.nothing_is_lost(taker)
    print(f'move {number}: {taker.name} serves after {took:.1f} s,'
          f' {count} files acknowledged so far, 0 lost', flush=True)
    return taker


def test_moves():
    lab = Lab().start()
    storage.create_pair(lab, **storage.PATIENT)
    storage.attach(lab.a)
    storage.create_pool(lab.a)
    active = lab.a
    for number in range(1, MOVES + 1):
        active = move(lab, active, number)
        check(storage.pool_is_healthy(active), 'the pool is healthy')


if __name__ == '__main__':
    pair.main(test_moves)
