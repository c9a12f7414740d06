"""Frames of the mirror protocol that are lost, late or damaged, and a link
that is cut after each kind of them: nothing that was acknowledged is lost, no
request waits beyond the deadline and a second, and after the next connection
the resync finishes by itself.
"""

import os
import random
import time

import pair
from frames import SIZE
from history import Client, History
from proxy import CUT, CUT_AFTER, DROP, PASS, ProxiedPair, pass_all
from rounds import (Longest, all_equal, check_history, same_stores, work_for,
                    work_until)

BLOCKS = 1024
DEADLINE = 1.0
RESYNC = ('hello', 'welcome', 'bitmap', 'sync-begin', 'sync-chunk',
          'sync-done', 'ack', 'view', 'view-ack')


def proxied(**parameters):
    parameters.setdefault('deadline', DEADLINE)
    return ProxiedPair(size=BLOCKS * pair.BLOCK,
                       store=pair.make_directory('/dev/shm'),
                       **parameters).create()


def at_rest(both, history=None):
    pair.wait_for(lambda: all_equal(both.a.status()), 'at rest', 20)
    both.wait_complete(both.a)
    same_stores(both)
    if history:
        check_history(both.a, history)


def go_alone(both, client):
    """The link ends, the primary goes on; what it writes is dirty."""
    both.proxy.close()
    work_until(client, lambda: both.a.get('copies') == 1
               and not both.a.get('suspended'), 'alone')
    done = client.completed
    work_until(client, lambda: client.completed > done + 50, 'it goes on')


# ---- Lost ----

def lose(kind, arbiter, reason=None):
    """Nothing of KIND arrives for a while; later connections are good."""
    both = proxied(arbiter=arbiter)
    history = History(BLOCKS)
    longest = Longest()
    client = longest.watch(Client(both.a, history))
    work_for(client, 0.1)
    if kind != 'ack' and arbiter:
        go_alone(both, client)
    lost = []

    def rule(frame):
        if frame.kind != kind:
            return PASS
        lost.append(frame.source)
        return DROP
    both.proxy.rule = rule
    both.proxy.open = True
    if kind != 'ack' and not arbiter:
        both.proxy.cut()
    work_until(client, lambda: lost, f'a {kind} frame is sent')
    work_for(client, 1.2 * DEADLINE)
    if reason:
        both.a.says(reason)
    both.proxy.rule = pass_all
    both.proxy.cut()
    work_until(client, lambda: both.a.get('copies') == 2
               and both.a.get('out-of-sync') == 0, f'mended after {kind}')
    if arbiter:
        pair.equal(client.failed, 0, f'failed requests, {kind}')
    pair.check(longest.seconds <= DEADLINE + 1,
               f'{kind}: a request took {longest.seconds:.2f} s')
    client.close()
    at_rest(both, history)
    print(f'  {kind}, {"arbiter" if arbiter else "error"}: {len(lost)} lost,'
          f' longest request {longest.seconds:.2f} s,'
          f' {client.failed} failed', flush=True)
    both.stop()


def test_acks_are_lost():
    """Heartbeats go on, so that only the age of a frame tells."""
    for arbiter in (False, True):
        lose('ack', arbiter, 'did not acknowledge within the deadline')


def test_resync_frames_are_lost():
    for kind in ('bitmap', 'sync-begin', 'sync-chunk', 'sync-done', 'view',
                 'view-ack'):
        lose(kind, True)
    for kind in ('bitmap', 'sync-done'):
        lose(kind, False)


def test_heartbeats_are_lost():
    """Of a pair that is idle: nothing else tells that the other is there."""
    for lost in (('ping',), ('ping', 'pong')):
        both = proxied()
        view = both.a.get('view')
        both.proxy.rule = lambda frame: DROP if frame.kind in lost else PASS
        pair.wait_for(lambda: 'no word from the peer' in both.a.log()
                      or 'no word from the peer' in both.b.log(),
                      f'without {lost} the session ends', DEADLINE + 2)
        both.proxy.rule = pass_all
        at_rest(both)
        pair.check(both.a.get('view')['number'] >= view['number'], 'view')
        both.stop()


def test_handshake_is_lossy():
    """LINBIT/drbd 116: of each ten frames of the handshake three are lost."""
    both = proxied()
    history = History(BLOCKS)
    longest = Longest()
    client = longest.watch(Client(both.a, history))
    chance = random.Random()
    lost = []

    def rule(frame):
        if frame.kind in ('hello', 'welcome') and chance.random() < 0.3:
            lost.append(frame.kind)
            return chance.choice((DROP, CUT))
        return PASS
    both.proxy.rule = rule
    for _ in range(3):
        work_for(client, 0.05)
        both.proxy.cut()
        work_until(client, lambda: both.a.get('copies') == 2,
                   'they find each other', 60)
    pair.check(lost, 'nothing was lost')
    pair.equal(client.failed, 0, 'failed requests')
    pair.check(longest.seconds <= DEADLINE + 1,
               f'a request took {longest.seconds:.2f} s')
    client.close()
    at_rest(both, history)
    print(f'  {len(lost)} lost, longest request {longest.seconds:.2f} s',
          flush=True)


# ---- Cut ----

def forget_ram(node):
    """Of one that was killed."""
    for suffix in ('', '.header'):
        os.unlink(node.parameters['store'] + suffix)


class CutAt:
    """A rule: the connection ends at the Nth frame of KIND, once."""

    def __init__(self, kind, number, verdict):
        self.kind = kind
        self.left = number
        self.verdict = verdict

    def __call__(self, frame):
        if frame.kind != self.kind or self.left == 0:
            return PASS
        self.left -= 1
        return PASS if self.left else self.verdict


def cut_everywhere(verdict, full):
    """LINBIT/drbd 40: a link cut at each kind of frame of a resync in turn,
    at the first one and at later ones.
    """
    both = proxied()
    history = History(BLOCKS)
    client = Client(both.a, history, depth=2)
    cuts = 0
    for kind, number in ((kind, number) for number in (1, 3)
                         for kind in RESYNC):
        if full:
            both.b.kill()
            both.proxy.close()
            forget_ram(both.b)
            work_until(client, lambda: both.a.get('copies') == 1, 'alone')
        else:
            go_alone(both, client)
        both.proxy.rule = rule = CutAt(kind, number, verdict)
        both.proxy.open = True
        if full:
            both.b.spawn()
        work_until(client, lambda: both.a.get('copies') == 2
                   and both.a.get('peer-disk-state') == 'UpToDate',
                   f'mended after a cut at {kind} {number}')
        pair.check(number > 1 or rule.left == 0, f'no {kind} was seen')
        cuts += rule.left == 0
    pair.equal(client.failed, 0, 'failed requests')
    client.close()
    both.proxy.rule = pass_all
    at_rest(both, history)
    print(f'  {verdict}, {"full" if full else "partial"}: {cuts} cuts',
          flush=True)
    both.stop()


def test_cut_after_each_frame():
    cut_everywhere(CUT_AFTER, False)
    cut_everywhere(CUT_AFTER, True)


def test_cut_before_each_frame():
    cut_everywhere(CUT, False)
    cut_everywhere(CUT, True)


# ---- Late ----

def test_late():
    """Late by less than the deadline: nobody hears of it.  By more: the
    session ends, and the next one mends.
    """
    both = proxied()
    history = History(BLOCKS)
    longest = Longest()
    client = longest.watch(Client(both.a, history))
    view = both.a.get('view')
    last = {}

    def pauses(frame):
        now = time.monotonic()
        if frame.kind == 'ack' and now > last.get('ack', 0) + DEADLINE / 2:
            time.sleep(DEADLINE / 3)
            last['ack'] = time.monotonic()
        return PASS
    both.proxy.rule = pauses
    work_for(client, 2 * DEADLINE)
    pair.equal(client.failed, 0, 'failed requests')
    pair.equal(both.a.get('view'), view, 'view')
    pair.check(longest.seconds >= DEADLINE / 4, 'nothing was late')

    late = []

    def stalls(frame):
        if frame.kind == 'ack' and not late:
            late.append(frame)
            time.sleep(1.5 * DEADLINE)
        return PASS
    both.proxy.rule = stalls
    work_until(client, lambda: late, 'an ack')
    work_for(client, 1.5 * DEADLINE)
    work_until(client, lambda: both.a.get('copies') == 2, 'two copies')
    pair.check(both.a.get('view') != view, 'the view is the same')
    pair.equal(client.failed, 0, 'failed requests')
    pair.check(longest.seconds <= DEADLINE + 1,
               f'a request took {longest.seconds:.2f} s')
    client.close()
    at_rest(both, history)


# ---- Damaged ----

def damage(place, kind, source):
    """One bit of one frame flips: the connection ends with a line that says
    why, the store that it was for is untouched, and a resync mends.
    """
    both = proxied()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 8192)
    at_rest(both)
    receiver = both.b if source == 'a' else both.a
    flipped = []

    def rule(frame):
        if flipped:
            return CUT  # nothing is mended yet
        if (frame.kind, frame.source) != (kind, source):
            return PASS
        flipped.append(frame)
        both.proxy.open = False
        data = bytearray(frame.data)
        data[place] ^= 0x10
        return bytes(data)
    since = len(receiver.log())
    both.proxy.rule = rule
    results = []
    client.aio_pwrite(
        pair.nbd.Buffer.from_bytearray(bytearray(b'2' * 4096)), 8192,
        lambda error: results.append(getattr(error, 'value', error)) or 1)
    pair.wait_for(lambda: client.poll(0) >= 0 and flipped, f'a {kind} frame')
    pair.wait_for(lambda: any(
        'checksum' in line or 'not a twinlog frame' in line
        for line in receiver.log_lines(since)), 'a line that says why')
    if kind == 'write':
        with open(both.b.parameters['store'], 'rb') as store:
            store.seek(8192)
            pair.equal(store.read(4096), b'1' * 4096, 'the store of b')
    both.proxy.rule = pass_all
    both.proxy.open = True
    pair.wait_for(lambda: client.poll(20) >= 0 and results, 'the write ends')
    pair.equal(results, [0], 'result of the write')
    at_rest(both)
    pair.equal(bytes(client.pread(4096, 8192)), b'2' * 4096, 'content')
    client.shutdown()
    both.stop()


def test_damaged():
    for place in (SIZE + 4095, 4, 26, 45):
        damage(place, 'write', 'a')
    for place in (0, 26):
        damage(place, 'ack', 'b')


if __name__ == '__main__':
    pair.main(test_acks_are_lost, test_resync_frames_are_lost,
              test_heartbeats_are_lost, test_handshake_is_lossy,
              test_cut_after_each_frame, test_cut_before_each_frame,
              test_late, test_damaged)
