"""The active machine loses its power under fsync load; the other one is
promoted, attaches the volume and imports the pool, and every file whose fsync
returned is there.  Then it is the other one's turn.

TWINLOG_POWER_CUTS: how many (2).
"""

import os
import random
import time

import pair
import storage
from machines import Lab
from pair import check

# A takeover waits so long for the next word of the machine that was cut.
DEADLINE = {'deadline': 10}
CUTS = int(os.environ.get('TWINLOG_POWER_CUTS', '2'))


def cut(lab, active, number):
    """One power cut of ACTIVE, at a random moment."""
    storage.write_files(active, f'cut{number}')
    time.sleep(random.random())
    active.power_cut()
    survivor = lab.other(active)
    began = time.monotonic()
    storage.fail_over(survivor)
    took = time.monotonic() - began
    count = storage.nothing_is_lost(survivor)
    print(f'cut {number}: {survivor.name} took over in {took:.1f} s,'
          f' {count} files acknowledged so far, 0 lost', flush=True)
    return survivor


def test_power_cut():
    lab = Lab().start()
    storage.create_pair(lab, **DEADLINE)
    storage.attach(lab.a)
    storage.create_pool(lab.a)
    active = lab.a
    for number in range(1, CUTS + 1):
        survivor = cut(lab, active, number)
        check(storage.pool_is_healthy(survivor), 'the pool is healthy')
        active.start()
        storage.start_node(active, **DEADLINE)
        storage.await_pair(survivor)
        active = survivor


if __name__ == '__main__':
    pair.main(test_power_cut)
