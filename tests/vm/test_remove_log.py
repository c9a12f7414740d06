"""`zpool remove` takes the volume out of a pool under fsync load, also while
the partner is away; nothing that was acknowledged is lost."""

import pair
import storage
from machines import Lab
from pair import check
from storage import NAME, PATIENT, more_files

DEADLINE = 5


def remove(machine):
    machine.run(f'zpool remove tank {NAME}')
    check('logs' not in machine.text('zpool status tank'), 'the log is removed')
    more_files(machine, 'without a log device')


def judge_after_power_cut(lab):
    """The log is not needed for the import any more."""
    lab.a.power_cut()
    lab.b.run('zpool import -f -o cachefile=none -d /dev/vda1 tank')
    storage.nothing_is_lost(lab.b)


def test_normal():
    """And back again, on a device that has been a log before."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'remove', **PATIENT)
    remove(lab.a)
    before = storage.log_writes(lab.a)
    lab.a.run(f'zpool add -f tank log {NAME}')
    more_files(lab.a, 'with the log device again')
    check(storage.log_writes(lab.a) > before, 'the log device is used again')
    storage.log_is_whole(lab.a)
    remove(lab.a)
    storage.detach(lab.a)
    judge_after_power_cut(lab)


def test_degraded():
    """The partner lost its power, and the log fails."""
    lab = Lab().start()
    storage.pool_under_load(lab, 'remove', deadline=DEADLINE)
    lab.b.power_cut()
    storage.await_states(lab.a, 'Connecting')
    more_files(lab.a, 'without the partner')
    remove(lab.a)
    lab.b.start()
    judge_after_power_cut(lab)


if __name__ == '__main__':
    pair.main(test_normal, test_degraded)
