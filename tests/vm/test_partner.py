"""The partner of the active machine loses its power under fsync load, with the
policy `error`: ZFS goes on through its main pool, answers, and gives the log
device up or takes it back; nothing that was acknowledged is lost."""

import time

import pair
import storage
from machines import Lab
from pair import check, contains, equal, wait_for

DEADLINE = 5
ENOUGH = 30  # acknowledged before something is done, and after it


def more_files(machine, what, seconds=180):
    enough = storage.acknowledged(machine) + ENOUGH
    wait_for(lambda: storage.acknowledged(machine) >= enough,
             f'files are acknowledged {what}', seconds, 0.05)


def pool_under_load():
    lab = Lab().start()
    storage.create_pair(lab, deadline=DEADLINE)
    storage.attach(lab.a, 2 * DEADLINE)
    storage.create_pool(lab.a)
    storage.start_writer(lab.a, 'partner')
    more_files(lab.a, 'by the pair')
    return lab


def lose_partner(lab):
    """Power cut of `b`; until the node of `a` has given it up."""
    lab.b.power_cut()
    began = time.monotonic()
    lab.a.run('zpool status tank', 2 * DEADLINE + 10)
    print(f'zpool status took {time.monotonic() - began:.1f} s')
    storage.await_states(lab.a, 'Connecting')
    more_files(lab.a, 'without the partner')
    print(f'longest stall {storage.longest_stall(lab.a):.1f} s')
    contains(storage.twinlog(lab.a, 'status'), ['suspended'], 'status')


def test_partner_returns():
    lab = pool_under_load()
    lose_partner(lab)
    lab.b.start()
    storage.start_node(lab.b, deadline=DEADLINE)
    storage.await_pair(lab.a)
    lab.a.run(f'zpool clear tank {storage.DEVICE}')
    wait_for(lambda: storage.pool_is_healthy(lab.a), 'the pool is healthy')
    before = storage.log_writes(lab.a)
    more_files(lab.a, 'by the pair that is whole again')
    check(storage.log_writes(lab.a) > before, 'the log device is used again')
    lab.a.power_cut()
    storage.fail_over(lab.b)
    equal(storage.judge(lab.b)[1], 0, 'lost files')


def test_remove_log():
    lab = pool_under_load()
    lose_partner(lab)
    lab.a.run(f'zpool remove tank {storage.DEVICE}', 60)
    check('logs' not in lab.a.text('zpool status tank'), 'the log is removed')
    more_files(lab.a, 'without a log device')
    lab.a.power_cut()
    lab.b.start()
    storage.import_pool(lab.b)
    equal(storage.judge(lab.b)[1], 0, 'lost files')


if __name__ == '__main__':
    pair.main(test_partner_returns, test_remove_log)
