"""Synchronous load that the main pool cannot keep up with, on a log of the
recommended size: no write of the log falls back to the pool.

TWINLOG_LOG_SECONDS: how long (20).
"""

import math
import os

import pair
import storage
from attached import kernel_is_quiet
from machines import SLOW, Lab
from pair import MIB, check, equal, wait_for
from storage import PARAMETERS

SECONDS = int(os.environ.get('TWINLOG_LOG_SECONDS', '20'))
IOPS = 150           # of the disk of the main pool
# What ZFS lets be unwritten: less than it would in 2 GiB, so that the load
# reaches it.
DIRTY = 32 * MIB
WRITE_LOG = 2 * DIRTY
KSTAT = '/proc/spl/kstat/zfs/zil'
FILES = 4
FIO = 'fio --name=load --directory=/tank/data --rw=randwrite --sync=1' \
    f' --numjobs={FILES} --bsrange=4k-128k --size=32m'


def recommended():
    """Of a log for that much, in MiB: the labels, and with small writes one at
    a time twice what the transaction groups hold."""
    return math.ceil(4.5 + 2 * 1.3 * WRITE_LOG / MIB)


def counts(machine):
    """Writes of the log so far: to the main pool, and to the log device."""
    values = dict(line.split()[::2] for line
                  in machine.text(f'cat {KSTAT}').splitlines()
                  if len(line.split()) == 3)
    return (int(values['zil_itx_metaslab_normal_count']),
            int(values['zil_itx_metaslab_slog_count']))


def allocated(machine):
    """Bytes of the log device that are in use."""
    for line in machine.text('zpool list -v -H -p tank').splitlines():
        words = line.split()
        if words[0].startswith('twinlog-'):
            return int(words[2])
    raise pair.Failure('the pool has no log device')


def test_recommended():
    lab = Lab(iops=IOPS).start()
    size = recommended()
    lab.a.run(f'echo {DIRTY} >{PARAMETERS}/zfs_dirty_data_max &&'
              f' echo {WRITE_LOG} >{PARAMETERS}/zfs_wrlog_data_max')
    storage.create_pair(lab, size=f'{size}M', **storage.PATIENT)
    storage.attach(lab.a)
    storage.create_pool(lab.a)
    to_pool, to_log = counts(lab.a)
    lab.a.spawn(f'{FIO} --time_based --runtime={SECONDS}; echo ended $?',
                '/var/log/load')
    used = []

    def ended():
        used.append(allocated(lab.a))
        said = lab.a.text('tail -n 1 /var/log/load')
        return said.startswith('ended') and said
    said = wait_for(ended, 'the load ends', 10 * SECONDS + SLOW, 1)
    equal(said, 'ended 0', lab.a.text('cat /var/log/load'))
    pool, log = counts(lab.a)
    print(f'{SECONDS} s on {size} MiB: {log - to_log} writes to the log,'
          f' {pool - to_pool} to the pool, at most {max(used) // MIB} MiB in'
          ' use')
    check(log - to_log > 0, 'the load wrote to the log')
    equal(pool - to_pool, 0, 'writes that fell back to the pool')
    storage.log_is_whole(lab.a)
    kernel_is_quiet(lab.a)

    # That is how it looks where there is no room.
    lab.a.run(f'zpool remove tank {storage.NAME}')
    lab.a.run(f'{FIO} --io_size=256k')
    check(counts(lab.a)[0] > pool, 'without a log nothing is counted')


if __name__ == '__main__':
    pair.main(test_recommended)
