"""The loads of scripts/bench-zfs, in machine a, and what is counted meanwhile.
"""

import io
import json
import random
import tarfile

from pair import KIB, MIB, check

# Each is fio's bs and numjobs.
WRITES = {'4k-1': ('4k', 1), '4k-8': ('4k', 8),
          '128k-1': ('128k', 1), '128k-8': ('128k', 8)}
FILES = f'--directory=/tank/data --size={16 * MIB} --name=log'
ARCHIVE = '/tmp/archive.tar'
ARCHIVE_FILES = 2000
ARCHIVE_BYTES = 138 * 1000 * 1000


# ---- Counters ----

def counters(machine):
    """What the kernel has counted so far: commits, blocks of the log, and
    those of them that went to a log device; writes and flushes that reached
    devices which keep such a count."""
    text = machine.text('cat /proc/spl/kstat/zfs/zil; echo --;'
                        ' cat /sys/block/nbd[01]/stat')
    zil, _, devices = text.partition('--')
    values = {line.split()[0]: int(line.split()[2])
              for line in zil.splitlines()[2:]}
    rows = [[int(word) for word in line.split()]
            for line in devices.strip().splitlines()]
    flushes = sum(row[15] for row in rows)  # and each counts as a write, too
    return {'commits': values['zil_commit_count'],
            'log-blocks': values['zil_itx_metaslab_slog_count'],
            'pool-blocks': values['zil_itx_metaslab_normal_count'],
            'writes': sum(row[4] for row in rows) - flushes,
            'flushes': flushes}


def counted(machine, work):
    """The result of WORK, and how far it took the counters."""
    before = counters(machine)
    result = work()
    after = counters(machine)
    return {**result, **{key: after[key] - before[key] for key in after}}


# ---- Synchronous writes ----

def lay_out(machine):
    """The files that are written to; no load finds a hole."""
    machine.run(f'fio {FILES} --rw=write --bs=128k --numjobs=8 --end_fsync=1',
                300)


def fio(machine, options, seconds):
    output = machine.text(f'fio --ioengine=psync --time_based'
                          f' --runtime={seconds} --group_reporting'
                          f' --output-format=json {options}', seconds + 120)
    # fio tells of what it does before the braces.
    job = json.loads(output[output.index('{'):])['jobs'][0]
    check(job['error'] == 0, f'fio: error {job["error"]}')
    write = job['write']
    latency = write['clat_ns']
    return {'iops': write['iops'], 'mean-us': latency['mean'] / 1000,
            'p99-us': latency['percentile']['99.000000'] / 1000}


def write(machine, load, seconds):
    """Synchronous writes, a commit each."""
    size, jobs = WRITES[load]
    return counted(machine, lambda: fio(
        machine, f'{FILES} --rw=randwrite --bs={size} --numjobs={jobs}'
                 ' --sync=1 --invalidate=0', seconds))


def write_device(machine, device):
    """The log device by itself: blocks of 8 KiB, which is what ZFS makes of a
    single write of 4 KiB, without a flush."""
    return fio(machine, f'--name=device --filename={device} --direct=1'
                        ' --rw=write --bs=8k --size=64m', 1)


# ---- Many files ----

def make_archive():
    """An archive of many small and some large files, always the same."""
    chance = random.Random(2000)
    sizes = [chance.lognormvariate(10, 1.3) for _ in range(ARCHIVE_FILES)]
    scale = ARCHIVE_BYTES / sum(sizes)
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode='w',
                      format=tarfile.USTAR_FORMAT) as archive:
        for number, size in enumerate(sizes):
            entry = tarfile.TarInfo(f'{number // 100:02}/{number:04}')
            entry.size = round(size * scale)
            archive.addfile(entry, io.BytesIO(chance.randbytes(entry.size)))
    return output.getvalue()


def send_archive(machine):
    archive = make_archive()
    machine.run(f'cat >{ARCHIVE}', 300, data=archive)
    said = int(machine.text(f'stat -c %s {ARCHIVE}'))
    check(said == len(archive), f'{said} bytes of the archive arrived')


def unpack(machine):
    """Unpack the archive where every change is committed before it returns, as
    behind an NFS server; the seconds that tar takes."""
    def work():
        times = machine.text(
            'cd /tank/data/new && cut -d" " -f1 /proc/uptime &&'
            f' tar -xf {ARCHIVE} && cut -d" " -f1 /proc/uptime', 1800).split()
        return {'seconds': float(times[1]) - float(times[0])}
    machine.run('zfs create tank/data/new')
    result = counted(machine, work)
    count, used = machine.text(
        'cd /tank/data/new; find . -type f | wc -l;'
        ' find . -type f -exec stat -c %s {} + |'
        " awk '{ n += $1 } END { print n }'", 300).split()
    check(int(count) == ARCHIVE_FILES, f'{count} files were unpacked')
    check(abs(int(used) - ARCHIVE_BYTES) < 64 * KIB, f'of {used} bytes')
    machine.run('zfs destroy tank/data/new; zpool sync tank', 600)
    return result
