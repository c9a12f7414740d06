"""After each resync both RAMs are equal byte for byte, compared from outside:
both nodes keep them in files on tmpfs, writes are stopped, cmp.
"""

import filecmp
import os
import time

import pair
from history import Client, History, nothing_lost, settle

BLOCKS = 4096
ROUNDS = 3


def compare(both, what):
    paths = [node.parameters['store'] for node in both.nodes]
    for path in paths:
        pair.equal(os.path.getsize(path), BLOCKS * pair.BLOCK, 'size of store')
    result = pair.run(['cmp', *paths])
    pair.equal(result.returncode, 0, f'{what}: cmp: {result.stdout}')
    pair.check(filecmp.cmp(*paths, shallow=False), f'{what}: files differ')


def work_for(client, seconds):
    end = time.monotonic() + seconds
    client.work(lambda: time.monotonic() > end)
    pair.check(client.alive(), 'the connection is gone')


def start_round():
    store = pair.make_directory('/dev/shm')
    both = pair.Pair(size=BLOCKS * pair.BLOCK, store=store).create()
    history = History(BLOCKS)
    return both, history


def rounds(under_load):
    both, history = start_round()
    primary = both.a
    client = Client(primary, history)
    work_for(client, 0.3)
    client.drain()
    compare(both, 'mirrored')
    for number in range(ROUNDS):
        # The secondary loses its RAM, then the primary its own.
        for killed in (both.other(primary), primary):
            was_primary = killed is primary
            if was_primary:
                client.drain()
            killed.kill()
            if was_primary:
                primary = both.fail_over(killed)
                client = Client(primary, history, seed=number)
            else:
                primary.wait(role='Primary', copies=1, suspended=False)
            work_for(client, 0.2)
            if not under_load:
                client.drain()
            killed.start()
            if under_load:
                end = time.monotonic() + 30
                client.work(lambda: primary.get('copies') == 2
                            or time.monotonic() > end)
            both.wait_complete(primary)
            client.drain()
            compare(both, f'round {number}, {killed.name} was killed')
            work_for(client, 0.2)
            client.drain()
            compare(both, f'round {number}, mirrored after the resync')
    pair.equal(client.failed, 0, 'failed requests')
    settle(client.handle, history)
    nothing_lost(history)
    client.close()


def test_quiet():
    rounds(under_load=False)


def test_under_load():
    rounds(under_load=True)


def test_stale_content_is_discarded():
    """What a store file holds at start does not survive a resync."""
    both, history = start_round()
    client = Client(both.a, history)
    work_for(client, 0.2)
    client.drain()
    both.b.kill()
    both.a.wait(copies=1, suspended=False)
    # Everything goes from the survivor; the file of the other still has it.
    client.handle.zero(BLOCKS * pair.BLOCK, 0)
    both.b.start()
    both.wait_complete(both.a)
    compare(both, 'after the resync of an emptied device')
    with open(both.b.parameters['store'], 'rb') as store:
        pair.check(not any(store.read()), 'stale content in the store')


def test_cut_without_loss():
    """A pause of the secondary beyond the deadline, without a restart: its
    RAM is intact, only what is in doubt is copied, and both are equal.
    """
    store = pair.make_directory('/dev/shm')
    both = pair.Pair(size=BLOCKS * pair.BLOCK, store=store, arbiter=False,
                     deadline=0.5).create()
    history = History(BLOCKS)
    client = Client(both.a, history)
    work_for(client, 0.2)
    both.b.pause()
    end = time.monotonic() + 10
    client.work(lambda: client.failed > 0 or time.monotonic() > end)
    pair.check(client.failed > 0, 'nothing failed without a partner')
    both.b.resume()
    client.drain()
    both.wait_complete(both.a)
    compare(both, 'after a pause')
    settle(client.handle, history)
    nothing_lost(history)


if __name__ == '__main__':
    pair.main(test_quiet, test_under_load, test_stale_content_is_discarded,
              test_cut_without_loss)
