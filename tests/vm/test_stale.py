"""A partner whose copy is behind is not promoted when the active machine loses
its power, also not by --fenced.  Forced, it serves a log that imports cleanly
and has lost files: the check of the power cuts can fail."""

import pair
import storage
from machines import SLOW, Lab
from pair import REFUSED, check, contains, wait_for

STORE = '/run/slog0.ram'
BEHIND = 30  # acknowledged without the partner


def leave_behind(lab):
    """Files are acknowledged by `a` alone, and `b` has its old copy back."""
    lab.b.run('kill -9 $(pidof nbdkit)')
    storage.await_states(lab.a, 'Connecting')
    lab.cable('down')
    storage.twinlog(lab.a, 'degrade --fenced')
    before = storage.acknowledged(lab.a)
    storage.start_node(lab.b, store=STORE)
    wait_for(lambda: storage.acknowledged(lab.a) >= before + BEHIND,
             'files are acknowledged by one node', SLOW, 0.05)


def test_stale():
    lab = Lab().start()
    # Nothing fails before `degrade`: it has minutes.
    storage.create_pair(lab, store=STORE, deadline=300)
    storage.attach(lab.a)
    storage.create_pool(lab.a)
    storage.start_writer(lab.a, 'stale')
    wait_for(lambda: storage.acknowledged(lab.a) >= 10,
             'files are acknowledged by both', SLOW, 0.05)
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
