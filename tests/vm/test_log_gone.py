"""The node of the active machine ends and does not come back: the kernel keeps
requests as long as it was told, ZFS answers all the time and goes on through
its main pool, and takes the log back once the node is there again."""

import pair
import storage
from attached import KEPT, kill_node, write_block
from machines import SLOW, Lab
from pair import check, wait_for
from storage import NAME, more_files

RECONNECT = 10  # seconds


def uptime(machine):
    """Seconds, by the clock that the kernel's time-outs are of."""
    return float(machine.text('cut -d " " -f 1 /proc/uptime'))


def test_times():
    """A request waits as long as `--reconnect` says, and no shorter."""
    lab = Lab().start()
    storage.create_pair(lab, **KEPT)
    storage.attach(lab.a, f'--reconnect {RECONNECT}')
    write_block(lab.a)
    kill_node(lab.a)
    began = uptime(lab.a)
    written = write_block(lab.a, seconds=SLOW, may_fail=True)
    took = uptime(lab.a) - began
    check(written.status != 0 and b'error' in written.output,
          f'written without a node: {written}')
    print(f'a write without a node failed after {took:.1f} s')
    check(took >= RECONNECT - 1, f'it failed after {took:.1f} s')
    storage.start_node(lab.a, **KEPT)
    lab.a.wait(f'dd if=/dev/zero of={NAME} bs=4096 count=1 oflag=direct'
               ' conv=notrunc')


def test_pool():
    lab = Lab().start()
    parameters = {**KEPT, 'deadline': 5}
    storage.create_pair(lab, **parameters)
    storage.attach(lab.a, f'--reconnect {RECONNECT}')
    storage.create_pool(lab.a)
    storage.write_files(lab.a, 'gone')
    kill_node(lab.a)
    enough = storage.acknowledged(lab.a) + 30
    times = []

    def goes_on():
        times.append(storage.time_of_status(lab.a))
        return storage.acknowledged(lab.a) >= enough
    wait_for(goes_on, 'files are acknowledged without the node', SLOW, 0.5)
    print(f'zpool status took at most {max(times):.1f} s of {len(times)} times;'
          f' longest stall {storage.longest_stall(lab.a):.1f} s')
    lab.a.run('zpool list tank')

    storage.start_node(lab.a, **parameters)
    storage.await_pair(lab.a)
    lab.a.wait(f'dd if={NAME} of=/dev/null bs=4096 count=1 iflag=direct')
    lab.a.run(f'zpool clear tank {NAME}')
    wait_for(lambda: storage.pool_is_healthy(lab.a), 'the pool is healthy',
             SLOW)
    before = storage.log_writes(lab.a)
    more_files(lab.a, 'with the node again')
    check(storage.log_writes(lab.a) > before, 'the log device is used again')
    lab.a.power_cut()
    storage.fail_over(lab.b)
    storage.nothing_is_lost(lab.b)


if __name__ == '__main__':
    pair.main(test_times, test_pool)
