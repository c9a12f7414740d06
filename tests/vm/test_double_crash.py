"""Both machines lose their power at once: the device says that its content was
lost and is not served, and ZFS imports the pool only where it is told, with
-m, to do without the log."""

import pair
import storage
from machines import Lab
from pair import REFUSED, check, contains, equal
from storage import PATIENT, VOLUME

IMPORT = 'zpool import -f -o cachefile=none -d /dev/vda1'


def test_both():
    lab = Lab().start()
    storage.pool_under_load(lab, 'double', **PATIENT)
    for machine in lab.nodes:
        machine.power_cut()
    lab.start()
    for machine in lab.nodes:
        storage.start_node(machine, **PATIENT)
    storage.await_states(lab.a, 'Connected')
    for machine in lab.nodes:
        said = storage.twinlog(machine, 'status')
        contains(said, ['disk:Empty', 'NO COPY IN REACH'], 'status')
        contains(storage.attach(machine, expect=REFUSED), ['primary'],
                 'attach')
        contains(storage.twinlog(machine, f'promote {VOLUME}', REFUSED),
                 ['empty'], 'promote')
        refused = machine.run(f'{IMPORT} tank 2>&1', may_fail=True)
        check(refused.status != 0, f'imported without its log: {refused}')
        contains(refused.output.decode(), ['missing'], 'zpool import')

    # A blank log is no log either.
    storage.twinlog(lab.a, f'promote {VOLUME} --force')
    storage.await_pair(lab.a)
    storage.attach(lab.a)
    refused = lab.a.run(f'{IMPORT} -d {storage.NAME} tank 2>&1',
                        may_fail=True)
    check(refused.status != 0, f'imported with a blank log: {refused}')

    lab.a.run(f'{IMPORT} -m tank')
    count, lost = storage.judge(lab.a)
    print(f'with -m: {count} acknowledged, {lost} lost')
    missing = lab.a.text('zpool status -P tank')
    contains(missing, ['UNAVAIL'], 'zpool status')
    guid = next(line.split()[0] for line in missing.splitlines()
                if 'UNAVAIL' in line and 'was' in line)
    lab.a.run(f'zpool remove tank {guid}')
    lab.a.run(f'zpool add -f tank log {storage.NAME}')
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')
    storage.log_is_whole(lab.a)
    storage.write_files(lab.a, 'again')
    equal(storage.pool_is_healthy(lab.a), True, 'the pool is healthy')


if __name__ == '__main__':
    pair.main(test_both)
