"""piraeusdatastore/linstor-csi 172: 100 promotions in a row, each under 2 s.
The primary is killed each time, the other promoted, and the killed one, whose
RAM was kept, rejoins.  ydb-platform/nbs 5386: the volume serves again each
time.

TWINLOG_PROMOTIONS: how many (100).
"""

import os
import statistics
import time

import pair

PROMOTIONS = int(os.environ.get('TWINLOG_PROMOTIONS', '100'))


def content(number):
    return number.to_bytes(4, 'big') * 1024


def test_in_a_row():
    both = pair.Pair(size='4M', store=pair.make_directory('/dev/shm')) \
        .create()
    primary = both.a
    took = []
    for number in range(1, PROMOTIONS + 1):
        client = primary.connect()
        client.pwrite(content(number), number * pair.BLOCK)
        killed, other = primary, both.other(primary)
        killed.kill()
        other.wait(5, connection_state='Connecting')
        began = time.monotonic()
        other.twinlog('promote', expect=pair.DONE)
        client = other.connect()
        got = client.pread(pair.BLOCK, number * pair.BLOCK)
        took.append(time.monotonic() - began)
        pair.equal(bytes(got), content(number), f'content {number}')
        client.shutdown()
        killed.start()
        both.wait_complete(other)
        primary = other
        pair.check(took[-1] < 2, f'promotion {number} took {took[-1]:.2f} s')
    client = primary.connect()
    for number in range(1, PROMOTIONS + 1):
        pair.equal(bytes(client.pread(pair.BLOCK, number * pair.BLOCK)),
                   content(number), f'content {number} in the end')
    client.shutdown()
    print(f'  {PROMOTIONS} promotions with the first read: median'
          f' {statistics.median(took) * 1000:.0f} ms, worst'
          f' {max(took) * 1000:.0f} ms', flush=True)


if __name__ == '__main__':
    pair.main(test_in_a_row)
