"""How fast the log is beside what it is compared with.  These machines are
emulated, so that the ratios are printed, and none of them is a failure; what
has to hold is that every write ends well and that status shows the times."""

import json

import pair
import storage
from attached import kernel_is_quiet
from machines import SLOW, Lab
from pair import MIB, check, equal, wait_for
from storage import NAME, PATIENT, VOLUME, twinlog

SECONDS = 5
IOPS = 150  # of the disk of the main pool
OUTPUT = '/var/log/fio'


def fio(machine, options, meanwhile=None):
    """KiB written per second, in a run in which no write fails."""
    machine.spawn(f'fio --name=load {options} --time_based'
                  f' --runtime={SECONDS} --group_reporting'
                  f' --output-format=json >{OUTPUT}.json; echo ended $?',
                  OUTPUT)

    def ended():
        if meanwhile:
            meanwhile()
        return 'ended' in machine.text(f'cat {OUTPUT}')
    wait_for(ended, 'fio ends', SLOW, 0.5)
    said = machine.text(f'cat {OUTPUT}')
    equal(said.splitlines()[-1], 'ended 0', f'fio: {said}')
    text = machine.text(f'cat {OUTPUT}.json')
    job = json.loads(text[text.index('{'):])['jobs'][0]
    equal(job['error'], 0, 'error of fio')
    check(job['write']['io_bytes'] > 0, 'nothing was written')
    return job['write']['bw']


def status(machine):
    return json.loads(twinlog(machine, f'status {VOLUME} --json'))


def processor(machine):
    """How long it was busy and idle so far, in ticks."""
    ticks = [int(word) for word
             in machine.text('head -n 1 /proc/stat').split()[1:9]]
    idle = ticks[3] + ticks[4]  # with nothing to do, and waiting for a disk
    return sum(ticks) - idle, idle


def files(jobs, size):
    return f'--directory=/tank/data --rw=randwrite --sync=1 --numjobs={jobs}' \
        f' --bs={size} --size=4m'


def say(what, one, other):
    print(f'{what}: {one} KiB/s and {other} KiB/s, {one / other:.2f} times',
          flush=True)


def create_pool(machine):
    machine.run('zpool create -o cachefile=none -o ashift=12 tank /dev/vda1 &&'
                ' zfs create tank/data')


def use_log(machine, device):
    machine.run(f'zpool add -f tank log {device}')


def drop_log(machine, device):
    machine.run(f'zpool remove tank {device}')


def many_large(machine, what, without):
    """32 writers of 1 MiB: how fast beside WITHOUT, and what they wait for."""
    seen = []
    before, began = processor(machine), storage.log_writes(machine)
    with_log = fio(machine, files(32, '1m'), lambda: seen.append(
        status(machine)))
    busy, idle = (b - a for a, b in zip(before, processor(machine)))
    say(f'32 writers of 1 MiB, {what}', with_log, without)
    write = seen[-1]['latency-us']['write']
    busiest = max(each['ap-in-flight'] for each in seen)
    print(f'{storage.log_writes(machine) - began} writes to the log, at most'
          f' {busiest} in flight, {write}; the processor was busy for'
          f' {100 * busy / (busy + idle):.0f} %', flush=True)
    check(busiest > 0 and 0 < write['p50'] <= write['p99'],
          'status does not show what they waited for')


def test_many_large():
    """32 writers of 1 MiB, without a log and with it."""
    lab = Lab(iops=IOPS).start()
    storage.create_pair(lab, size='256M', **PATIENT)
    storage.attach(lab.a)
    create_pool(lab.a)
    without = fio(lab.a, files(32, '1m'))
    use_log(lab.a, NAME)
    many_large(lab.a, 'with and without the log', without)
    # Commits above this go to the log behind all else, two writes at a time:
    # 768 KiB in the OpenZFS of these machines, 64 MiB in newer ones.
    lab.a.run(f'echo {64 * MIB} >{storage.PARAMETERS}/zil_slog_bulk')
    many_large(lab.a, 'the same with zil_slog_bulk as in newer ones', without)
    equal(status(lab.a)['counters']['failed'], 0, 'failed requests')
    storage.log_is_whole(lab.a)
    kernel_is_quiet(lab.a)


def test_ram_disk():
    """4 KiB, one writer: the pair, and a RAM disk of this machine, as log."""
    lab = Lab(iops=IOPS).start()
    storage.create_pair(lab, **PATIENT)
    storage.attach(lab.a)
    lab.a.run('modprobe brd rd_nr=1 rd_size=131072')
    create_pool(lab.a)
    use_log(lab.a, '/dev/ram0')
    ram = fio(lab.a, files(1, '4k'))
    drop_log(lab.a, '/dev/ram0')
    use_log(lab.a, NAME)
    say('4 KiB with one writer, the pair and a RAM disk as log',
        fio(lab.a, files(1, '4k')), ram)
    kernel_is_quiet(lab.a)


def test_depth_32():
    """4 KiB straight to the device: two copies, and one."""
    lab = Lab().start()
    storage.create_pair(lab, **PATIENT)
    storage.attach(lab.a)
    options = f'--filename={NAME} --direct=1 --rw=randwrite --bs=4k' \
        ' --numjobs=32 --size=64m'
    mirrored = fio(lab.a, options)
    storage.twinlog(lab.a, 'status')
    lab.b.power_cut()
    storage.await_states(lab.a, 'Connecting')
    twinlog(lab.a, f'degrade {VOLUME} --fenced')
    say('4 KiB with 32 in flight, two copies and one', mirrored,
        fio(lab.a, options))


if __name__ == '__main__':
    pair.main(test_many_large, test_ram_disk, test_depth_32)
