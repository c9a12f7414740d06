"""Both nodes live and do not hear each other: one of them at most goes on,
nothing that was acknowledged is lost, and they find together again.
"""

import os
import random
import shlex
import threading
import time

import pair
from history import Client, History, nothing_lost, settle
from link import LinkedPair

BLOCKS = 2048
ROUNDS = 4


def work_for(client, seconds):
    end = time.monotonic() + seconds
    client.work(lambda: time.monotonic() > end)


def linked(**parameters):
    return LinkedPair(size=BLOCKS * pair.BLOCK, **parameters).create(), \
        History(BLOCKS)


def handicap(both):
    """Each node's way to the arbiter is slow while a file of its name is
    there: so that now this one, now the other wins.
    """
    script = os.path.join(both.directory, 'way-to-arbiter')
    with open(script, 'w') as file:
        file.write('#!/bin/sh\n[ ! -e "$0.$1" ] || sleep 0.5\nshift\n'
                   f'exec {shlex.quote(pair.ARBITER)} "$@"\n')
    os.chmod(script, 0o755)
    for node in both.nodes:
        node.parameters['arbiter'] = \
            f'{script} {node.name} {both.arbiter_directory}'
    return script


def healed(both, primary, history):
    """After light (): complete again, and what it shows is right."""
    both.wait_complete(primary)
    client = primary.connect()
    settle(client, history)
    client.shutdown()
    nothing_lost(history)


def primaries(both):
    return [node for node in both.nodes if node.get('role') == 'Primary']


def test_race_for_the_arbiter():
    """Both want to go on alone; whoever wins, the other acknowledges nothing
    more, whichever way the link is cut.
    """
    both = LinkedPair(size=BLOCKS * pair.BLOCK, deadline=0.5)
    script = handicap(both)
    both.create()
    history = History(BLOCKS)
    chance = random.Random()
    outcomes = set()
    primary = both.a
    for number in range(ROUNDS):
        other = both.other(primary)
        old = Client(primary, history, seed=number)
        work_for(old, 0.1)
        slow = f'{script}.{(primary, other)[number % 2].name}'
        open(slow, 'w').close()
        both.dark(towards=(None, primary, other)[number % 3])
        took_over = threading.Event()
        give_up = time.monotonic() + chance.uniform(1.0, 1.5)

        def take_over():
            while time.monotonic() < give_up:
                if other.twinlog('promote').returncode == pair.DONE:
                    took_over.set()
                    return
        thread = threading.Thread(target=take_over)
        thread.start()
        old.work(lambda: not thread.is_alive() or not old.alive())
        thread.join()
        if took_over.is_set():
            new = Client(other, history, seed=-number)
            work_for(new, 0.1)
            # The one that was overtaken may not know it yet.
            completed = history.acknowledged
            work_for(old, 0.3)
            pair.equal(history.acknowledged, completed,
                       'acknowledged by the old primary')
            new.close()
        else:
            primary.wait(role='Primary', suspended=False, copies=1)
            work_for(old, 0.1)
        print(f'  round {number}: '
              f'{"taken over" if took_over.is_set() else "kept"}', flush=True)
        outcomes.add(took_over.is_set())
        os.unlink(slow)
        both.light()
        if took_over.is_set():
            primary = other
        pair.wait_for(lambda: primaries(both) == [primary],
                      'one primary is left', 10)
        old.close()
        healed(both, primary, history)
    pair.equal(len(outcomes), 2, 'both outcomes were seen')


def test_no_stale_read():
    """A primary that was overtaken and does not know it yet (it is the more
    patient one) answers no read with what was overwritten.
    """
    both = LinkedPair(size=BLOCKS * pair.BLOCK, deadline=0.5)
    both.a.parameters['deadline'] = 5
    both.create()
    old = both.a.connect()
    old.pwrite(b'1' * 4096, 0)
    both.dark()
    both.b.wait(5, connection_state='Connecting')
    both.b.twinlog('promote', expect=pair.DONE)
    both.b.connect().pwrite(b'2' * 4096, 0)
    pair.equal(both.a.get('role'), 'Primary', 'role of the one overtaken')
    buffer = pair.nbd.Buffer(4096)
    errors = []

    def done(error):
        errors.append(getattr(error, 'value', error))
        return 1
    old.aio_pread(buffer, 0, done)
    lit = time.monotonic() + 0.3
    end = lit + 10
    while not errors and time.monotonic() < end:
        if lit and time.monotonic() > lit:
            both.light()
            lit = None
        old.poll(50)
    pair.check(errors, 'a read without an end')
    if errors == [0]:
        pair.equal(bytes(buffer.to_bytearray()), b'2' * 4096,
                   'read from the one overtaken')
    both.wait_complete(both.b)


def test_cut_without_arbiter():
    """Writes fail at the deadline; when the link is back they go on, and only
    what was in doubt is copied.
    """
    both, history = linked(arbiter=False, deadline=0.5)
    for towards in (None, both.a, both.b):
        client = Client(both.a, history)
        work_for(client, 0.1)
        failed = client.failed
        both.dark(towards=towards)
        end = time.monotonic() + 10
        client.work(lambda: client.failed > failed
                    or time.monotonic() > end)
        pair.check(client.failed > failed, 'nothing failed')
        both.light()
        client.drain()
        client.close()
        healed(both, both.a, history)
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   'full resyncs')
    pair.equal(both.a.get('copies'), 2, 'copies')


def test_short_cut():
    """Shorter than the deadline: no client hears of it."""
    both, history = linked(deadline=5)
    client = Client(both.a, history)
    for _ in range(10):
        work_for(client, 0.05)
        both.dark()
        work_for(client, 0.02)
        both.light()
    client.drain()
    pair.equal(client.failed, 0, 'failed requests')
    client.close()
    healed(both, both.a, history)


def test_cut_during_resync():
    """Cut again and again while a node is being filled: it finishes."""
    both, history = linked(deadline=1)
    client = Client(both.a, history)
    work_for(client, 0.3)
    for number in range(10):
        if number % 3 == 0:
            both.b.kill()
            both.a.wait(copies=1, suspended=False)
            both.b.start()
        both.dark(towards=(None, both.a, both.b)[number % 3])
        work_for(client, 0.02)
        both.light()
        work_for(client, 0.02 * number / 10)
    client.drain()
    pair.equal(client.failed, 0, 'failed requests')
    client.close()
    healed(both, both.a, history)


if __name__ == '__main__':
    pair.main(test_race_for_the_arbiter, test_no_stale_read,
              test_cut_without_arbiter, test_short_cut,
              test_cut_during_resync)
