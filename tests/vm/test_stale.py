"""A partner whose copy is behind is not promoted when the active machine loses
its power, also not by --fenced.  Forced, it serves a log that imports cleanly
and has lost files: the check of the power cuts can fail."""

import pair
import storage
from machines import Lab
from pair import REFUSED, check, contains

STORE = '/run/slog0.ram'


def leave_behind(lab):
    """Files are acknowledged by `a` alone, and `b` has its old copy back."""
    # All that is acknowledged from now on is in the log only.
    lab.a.run(f'echo 3600 >{storage.PARAMETERS}/zfs_txg_timeout')
    lab.b.run('kill -9 $(pidof nbdkit)')
    storage.await_states(lab.a, 'Connecting')
    lab.cable('down')
    storage.twinlog(lab.a, 'degrade --fenced')
    storage.start_node(lab.b, store=STORE)
    storage.more_files(lab.a, 'by one node')


def test_stale():
    lab = Lab().start()
    # Nothing fails before `degrade`: it has minutes.
    storage.pool_under_load(lab, 'stale', store=STORE, deadline=300)
    leave_behind(lab)
    lab.a.power_cut()
    lab.cable('up')

    refusal = storage.twinlog(lab.b, 'promote --fenced', expect=REFUSED)
    print(refusal.strip())
    contains(refusal, ['it cannot know that it has everything'], 'refusal')
    storage.twinlog(lab.b, f'promote {storage.VOLUME} --force')
    storage.attach(lab.b)
    storage.import_pool(lab.b)
    count, lost = storage.judge(lab.b)
    print(f'forced: {count} acknowledged, {lost} lost')
    check(lost > 0, 'a stale log lost nothing: the check is blind')


if __name__ == '__main__':
    pair.main(test_stale)
