"""The partner of the active machine loses its power under fsync load, for each
policy: the pool stays online, ZFS answers, nothing that was acknowledged is
lost; the partner comes back and is filled under the same load."""

import time

import pair
import storage
from machines import SLOW, Lab
from pair import check, contains, stays, wait_for
from storage import more_files

DEADLINE = 5
FROZEN = 10  # seconds


def say_stall(lab, when):
    """The longest one that the writer has seen so far."""
    print(f'longest stall {storage.longest_stall(lab.a):.1f} s {when}',
          flush=True)


def lose_partner(lab):
    """Power cut of `b`; until the node of `a` has noticed."""
    lab.b.power_cut()
    print(f'zpool status took {storage.time_of_status(lab.a):.1f} s')
    storage.await_states(lab.a, 'Connecting')


def partner_returns(lab, **parameters):
    """Filled while the load goes on."""
    before = storage.acknowledged(lab.a)
    began = time.monotonic()
    lab.b.start()
    storage.start_node(lab.b, **parameters)
    storage.await_pair(lab.a)
    print(f'UpToDate {time.monotonic() - began:.1f} s after power on,'
          f' {storage.acknowledged(lab.a) - before} files meanwhile')


def fail_over(lab):
    """The pair that is whole again is one: `b` has everything."""
    before = storage.log_writes(lab.a)
    more_files(lab.a, 'by the pair that is whole again')
    check(storage.log_writes(lab.a) > before, 'the log device is used again')
    say_stall(lab, 'until the partner was back')
    lab.a.power_cut()
    storage.fail_over(lab.b)
    storage.nothing_is_lost(lab.b)


def goes_on(**parameters):
    """With a policy with which nothing fails."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'partner', deadline=DEADLINE, **parameters)
    lose_partner(lab)
    more_files(lab.a, 'without the partner')
    contains(storage.twinlog(lab.a, 'status'), ['ONE COPY ONLY'], 'status')
    say_stall(lab, 'without the partner')
    partner_returns(lab, deadline=DEADLINE, **parameters)
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')
    storage.log_is_whole(lab.a)
    fail_over(lab)


def test_error():
    """ZFS goes on through its main pool, and takes the log back."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'partner', deadline=DEADLINE)
    lose_partner(lab)
    more_files(lab.a, 'without the partner')
    say_stall(lab, 'without the partner')
    contains(storage.twinlog(lab.a, 'status'), ['suspended'], 'status')
    partner_returns(lab, deadline=DEADLINE)
    lab.a.run(f'zpool clear tank {storage.NAME}')
    wait_for(lambda: storage.pool_is_healthy(lab.a), 'the pool is healthy',
             SLOW)
    fail_over(lab)


def test_arbiter():
    goes_on(arbiter='arbiter')


def test_continue():
    goes_on(on_partner_loss='continue')


def test_freeze():
    """Nothing ends, and nothing fails, until the partner is back."""
    lab = Lab().start()
    parameters = {'deadline': DEADLINE, 'on_partner_loss': 'freeze'}
    storage.pool_under_load(lab, 'partner', **parameters)
    lose_partner(lab)
    before = storage.acknowledged(lab.a)
    stays(lambda: storage.acknowledged(lab.a) == before, FROZEN,
          'nothing is acknowledged while the node is frozen')
    print(f'zpool status took {storage.time_of_status(lab.a):.1f} s')
    partner_returns(lab, **parameters)
    more_files(lab.a, 'after the freeze')
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')
    storage.log_is_whole(lab.a)
    fail_over(lab)


if __name__ == '__main__':
    pair.main(test_error, test_arbiter, test_continue, test_freeze)
