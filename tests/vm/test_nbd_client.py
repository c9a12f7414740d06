"""Plain nbd-client on the export, as the manual has it: the volume is a log
device of ZFS, which is in use, and comes away in order."""

import pair
import storage
from machines import Lab
from pair import check, equal


def test_nbd_client():
    lab = Lab().start()
    storage.create_pair(lab)
    storage.attach(lab.a)
    equal(lab.a.text('blockdev --getsize64 /dev/nbd0'), str(256 * pair.MIB),
          'size of the device')
    refused = lab.b.run(f'nbd-client -unix {storage.SOCKET} /dev/nbd0',
                        may_fail=True)
    check(refused.status != 0, 'a secondary was attached')
    storage.create_pool(lab.a)
    check(storage.pool_is_healthy(lab.a), 'the pool is healthy')

    before = storage.log_writes(lab.a)
    lab.a.run('fio --name=log --directory=/tank/data --rw=randwrite --bs=4k'
              ' --size=4m --io_size=1m --fsync=1 --verify=crc32c', 120)
    check(storage.log_writes(lab.a) - before >= 256,
          f'{storage.log_writes(lab.a) - before} writes reached the log device')

    lab.a.run('zpool export tank', 120)
    storage.detach(lab.a)
    check(lab.a.run('nbd-client -c /dev/nbd0', may_fail=True).status == 1,
          'the device is still attached')
    storage.twinlog(lab.a, 'switchover')
    storage.attach(lab.b)
    storage.import_pool(lab.b)
    check(storage.pool_is_healthy(lab.b), 'the pool is healthy on b')
    equal(lab.b.text('stat -c %s /tank/data/log.0.0'), str(4 * pair.MIB),
          'size of the file')


if __name__ == '__main__':
    pair.main(test_nbd_client)
