"""A node that was away comes back: it gets what it missed, all of it.  And a
node that is alone serves alone.
"""

import os
import random
import time

import pair
from rounds import all_equal, same_stores

SECTOR = 512
SIZE = 16 * pair.MIB


def kept_pair(**parameters):
    return pair.Pair(size=SIZE, store=pair.make_directory('/dev/shm'),
                     deadline=1, **parameters).create()


def at_rest(both):
    pair.wait_for(lambda: all_equal(both.a.status()), 'at rest')
    both.wait_complete(both.a)
    same_stores(both)
    pair.equal(both.a.status()['counters']['resyncs-full'], 0,
               'full resyncs')


def test_one_sector():
    """linux md/raid1, missed bitmap bits: degrade, write one sector, rejoin:
    equal byte for byte.  The first and the last one too.
    """
    for arbiter in (True, False):
        both = kept_pair(arbiter=arbiter)
        client = both.a.connect()
        client.pwrite(os.urandom(pair.MIB), 0)
        client.pwrite(os.urandom(pair.MIB), SIZE - pair.MIB)
        sectors = SIZE // SECTOR
        for sector in (0, sectors - 1, random.randrange(sectors),
                       random.randrange(sectors)):
            both.b.kill()
            both.a.wait(connection_state='Connecting')
            if not arbiter:
                both.a.twinlog('degrade', '--fenced', expect=pair.DONE)
            both.a.wait(copies=1, suspended=False)
            content = os.urandom(SECTOR)
            client.pwrite(content, sector * SECTOR)
            both.b.start()
            at_rest(both)
            pair.equal(bytes(client.pread(SECTOR, sector * SECTOR)), content,
                       f'sector {sector}')
        both.stop()


def test_zeroes():
    """Zeroed and trimmed while the other was away."""
    both = kept_pair()
    client = both.a.connect()
    client.pwrite(os.urandom(8 * pair.MIB), 0)
    at_rest(both)
    for act in (lambda: client.trim(pair.MIB, pair.MIB),
                lambda: client.zero(pair.MIB, 4 * pair.MIB),
                lambda: client.zero(SECTOR, 6 * pair.MIB + SECTOR)):
        both.b.kill()
        both.a.wait(copies=1, suspended=False)
        act()
        both.b.start()
        at_rest(both)
    pair.equal(bytes(client.pread(pair.MIB, 4 * pair.MIB)),
               bytes(pair.MIB), 'zeroes')


def test_fenced_alone():
    """longhorn 5650: a node that was fenced alone starts and serves, with its
    kept RAM and without the other, as often as it likes.
    """
    for arbiter in (True, False):
        both = kept_pair(arbiter=arbiter)
        both.a.connect().pwrite(b'1' * 4096, 0)
        both.a.kill()
        both.b.wait(connection_state='Connecting')
        both.b.twinlog('promote', *([] if arbiter else ['--fenced']),
                       expect=pair.DONE)
        for number in range(3):
            client = both.b.connect()
            client.pwrite(bytes([number]) * 4096, 4096)
            both.b.kill()
            began = time.monotonic()
            both.b.start()
            both.b.wait(5, role='Primary', copies=1, suspended=False)
            client = both.b.connect()
            took = time.monotonic() - began
            pair.equal(bytes(client.pread(8192, 0)),
                       b'1' * 4096 + bytes([number]) * 4096, 'content')
            client.shutdown()
        print(f'  serves {took:.2f} s after its start', flush=True)
        both.stop()


def test_left_behind():
    """Both are killed, and only the one that was left behind starts, with
    its RAM and state as they were: it does not serve what is old.  Once the
    other starts, that one serves, and it follows.
    """
    for arbiter in (True, False):
        both = kept_pair(arbiter=arbiter)
        client = both.a.connect()
        client.pwrite(b'1' * 4096, 0)
        both.b.kill()
        both.a.wait(connection_state='Connecting')
        if not arbiter:
            both.a.twinlog('degrade', '--fenced', expect=pair.DONE)
        client.pwrite(b'2' * 4096, 0)
        both.a.kill()
        both.b.start()
        for options in ((), ('--fenced',)):
            both.b.twinlog('promote', *options, expect=pair.REFUSED)
        pair.equal(both.b.get('role'), 'Secondary', 'role')
        both.a.start()
        at_rest(both)
        client = both.a.connect()
        pair.equal(bytes(client.pread(4096, 0)), b'2' * 4096, 'content')
        both.stop()


def test_cut_before_flush():
    """openzfs 17065, 16314: the partner is gone between a write and its flush:
    the flush ends, and what was acknowledged is on the partner.
    """
    for arbiter in (True, False):
        both = kept_pair(arbiter=arbiter, flush='on')
        client = both.a.connect()
        pair.check(client.can_flush(), 'no flush is offered')
        for number in range(5):
            client.pwrite(bytes([number + 1]) * 4096, 4096 * number)
            both.b.pause()
            began = time.monotonic()
            try:
                client.flush()
            except pair.nbd.Error as error:
                pair.equal(error.errnum, pair.errno.EIO, 'error of a flush')
            pair.check(time.monotonic() - began < 2, 'the flush is late')
            with open(both.b.parameters['store'], 'rb') as store:
                store.seek(4096 * number)
                pair.equal(store.read(4096), bytes([number + 1]) * 4096,
                           'what the partner has')
            both.b.resume()
            both.wait_complete(both.a)
        both.stop()


if __name__ == '__main__':
    pair.main(test_one_sector, test_zeroes, test_fenced_alone,
              test_left_behind, test_cut_before_flush)
