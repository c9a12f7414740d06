"""Plain nbd-client on the export, as the manual has it: the volume is a log
device of ZFS, which is in use, and comes away in order."""

import pair
import storage
from machines import Lab
from pair import check, equal
from storage import DEVICE, SOCKET


def attach(machine):
    """The time-out of the kernel is longer than the deadline of the node."""
    machine.run(f'nbd-client -unix {SOCKET} {DEVICE} -timeout 35')


def test_nbd_client():
    lab = Lab().start()
    storage.create_pair(lab, **storage.PATIENT)
    attach(lab.a)
    equal(lab.a.text('blockdev --getsize64 /dev/nbd0'),
          str(storage.SIZE * pair.MIB), 'size of the device')
    refused = lab.b.run(f'nbd-client -unix {SOCKET} {DEVICE}', may_fail=True)
    check(refused.status != 0, 'a secondary was attached')
    storage.create_pool(lab.a, DEVICE)
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')

    before = storage.log_writes(lab.a)
    lab.a.run('fio --name=log --directory=/tank/data --rw=randwrite --bs=4k'
              ' --size=4m --io_size=1m --fsync=1 --verify=crc32c')
    check(storage.log_writes(lab.a) - before >= 256,
          f'{storage.log_writes(lab.a) - before} writes reached the log device')

    lab.a.run('zpool export tank')
    lab.a.run(f'nbd-client -d {DEVICE}')
    check(lab.a.run(f'nbd-client -c {DEVICE}', may_fail=True).status == 1,
          'the device is still attached')
    storage.twinlog(lab.a, 'switchover')
    attach(lab.b)
    storage.import_pool(lab.b, DEVICE)
    check(storage.pool_is_healthy(lab.b), 'the pool is healthy on b')
    equal(lab.b.text('stat -c %s /tank/data/log.0.0'), str(4 * pair.MIB),
          'size of the file')


if __name__ == '__main__':
    pair.main(test_nbd_client)
