"""The active machine stands still, the other one is promoted although nobody
fenced: when the old primary goes on, its writes fail, and those of the new one
are what stays."""

import pair
import storage
from attached import create_kept_pair
from machines import SLOW, Lab
from pair import check, equal
from storage import NAME

BLOCK = 4096


def write(machine, letter, may_fail=False):
    """One block of that letter, straight to the device."""
    return machine.run(f'dd of={NAME} bs={BLOCK} count=1 oflag=direct'
                       ' iflag=fullblock conv=notrunc 2>&1', SLOW,
                       letter * BLOCK, may_fail)


def read(machine):
    return machine.run(f'dd if={NAME} bs={BLOCK} count=1 iflag=direct'
                       ' 2>/dev/null', SLOW, may_fail=True).output


def test_write_fails():
    lab = Lab().start()
    create_kept_pair(lab, deadline=5)
    storage.attach(lab.a, '--reconnect 5')
    write(lab.a, b'a')
    lab.a.pause()
    try:
        storage.await_states(lab.b, 'Connecting')
        storage.twinlog(lab.b, f'promote {storage.VOLUME} --fenced')
        storage.attach(lab.b)
        equal(read(lab.b), b'a' * BLOCK, 'the block on b')
        write(lab.b, b'b')
    finally:
        lab.a.resume()
    written = write(lab.a, b'o', may_fail=True)
    check(written.status != 0, f'the old primary wrote: {written}')
    print(written.output.decode(errors='replace').strip())
    check(b'a' * BLOCK != read(lab.a), 'the old primary read what is overtaken')
    # It finds out and becomes the target of the new one.
    storage.await_pair(lab.b)
    equal(read(lab.b), b'b' * BLOCK, 'the block on b')
    storage.twinlog(lab.b, f'verify {storage.VOLUME}')


if __name__ == '__main__':
    pair.main(test_write_fails)
