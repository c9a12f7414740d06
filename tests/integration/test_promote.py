"""Promotions that would risk data are refused with exit status 3, a reason,
and nothing changed; those that are safe are done, again and again.
"""

import time

import pair


def is_refused(node, command, *options, words=()):
    """COMMAND is refused, with one line, and changes nothing."""
    def seen():
        status = node.status()
        return [status[key] for key in ('role', 'view', 'disk-state')]
    before = seen()
    answer = node.twinlog(command, *options, expect=pair.REFUSED)
    lines = answer.stderr.strip().splitlines()
    pair.equal(len(lines), 1, f'lines of {answer.stderr!r}')
    pair.equal(answer.stdout, '', 'output of a refusal')
    pair.contains(lines[0], words, f'{command} {" ".join(options)}')
    pair.equal(seen(), before, f'state after a refused {command}')
    if command == 'promote' and not options:
        status = node.status()
        pair.equal(status['may-promote'], False, 'may-promote')
        pair.check(status['may-promote-reason'], 'no may-promote-reason')


def test_not_created():
    for arbiter in (True, False):
        both = pair.Pair(arbiter=arbiter).start()
        is_refused(both.a, 'promote', words=['create'])
        is_refused(both.a, 'promote', '--fenced', words=['create'])
        both.stop()


def test_peer_is_primary():
    for arbiter in (True, False):
        both = pair.Pair(arbiter=arbiter).create()
        is_refused(both.b, 'promote', words=['primary'])
        is_refused(both.b, 'promote', '--fenced', words=['primary'])
        both.stop()


def test_without_assertion():
    """No arbiter: the other may be alive behind a broken link."""
    both = pair.Pair(arbiter=False).create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    both.a.kill()
    both.b.wait(connection_state='Connecting')
    is_refused(both.b, 'promote', words=['fenced'])
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    pair.equal(both.b.connect().pread(4096, 0), b'1' * 4096, 'content')
    pair.equal(both.b.get('copies'), 1, 'copies')


def test_empty():
    """RAM lost: neither an arbiter's consent nor an assertion helps."""
    for arbiter in (True, False):
        both = pair.Pair(arbiter=arbiter).create()
        both.a.connect().pwrite(b'1' * 4096, 0)
        for node in both.nodes:
            node.kill()
        both.b.start()
        pair.equal(both.b.get('disk-state'), 'Empty', 'disk-state')
        is_refused(both.b, 'promote', words=['empty'])
        is_refused(both.b, 'promote', '--fenced', words=['empty'])
        is_refused(both.b, 'create')
        is_refused(both.b, 'create', '--alone')
        both.stop()


def test_outdated():
    """A node that was overtaken and then lost sight of the other."""
    both = pair.Pair(deadline=1).create()
    both.a.connect().pwrite(b'1' * 4096, 0)
    both.b.pause()
    client = both.a.connect()
    client.pwrite(b'2' * 4096, 0)  # alone now, by the arbiter
    pair.equal(both.a.get('copies'), 1, 'copies')
    both.a.kill()
    both.b.resume()
    both.b.wait(connection_state='Connecting')
    answer = both.b.twinlog('promote', expect=pair.REFUSED)
    pair.check(answer.stderr.strip(), 'no reason')
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    both.b.wait(disk_state='Outdated')
    is_refused(both.b, 'promote', words=['outdated'])
    is_refused(both.b, 'promote', '--fenced', words=['outdated'])


def test_force():
    """By name, an operator may; then the content is what there is."""
    both = pair.Pair(deadline=1).create()
    both.a.connect().pwrite(b'1' * 4096, 0)
    both.b.pause()
    both.a.connect().pwrite(b'2' * 4096, 0)
    both.a.kill()
    both.b.resume()
    both.b.wait(connection_state='Connecting')
    both.b.twinlog('promote', expect=pair.REFUSED)
    both.b.twinlog('promote', '--force', expect=pair.USAGE)
    pair.equal(both.b.get('role'), 'Secondary', 'role')
    both.b.twinlog('promote', 'slog0', '--force', expect=pair.DONE)
    pair.equal(both.b.connect().pread(4096, 0), b'1' * 4096, 'content')


def test_secondary_refuses_clients():
    both = pair.Pair().create()
    fresh = pair.Pair(volume='slog1').start()
    for node in (both.b, fresh.a):
        since = len(node.log())
        try:
            node.connect()
        except pair.nbd.Error:
            pass
        else:
            raise pair.Failure(f'{node.name} let a client in')
        node.says('refused', since=since)
        pair.check(node.status() is not None, 'the node answers')
    pair.equal(both.b.get('clients'), 0, 'clients')


def test_promote_twice():
    """On a primary it is done already; twice in a row too."""
    both = pair.Pair().create()
    view = both.a.get('view')
    both.a.twinlog('promote', expect=pair.DONE)
    pair.equal(both.a.get('view'), view, 'view')


def test_demote_and_promote():
    """A planned change of sides, many times, each below 2 s."""
    both = pair.Pair().create()
    primary = both.a
    client = primary.connect()
    client.pwrite(b'0' * 4096, 0)
    client.shutdown()
    pair.wait_for(lambda: primary.get('clients') == 0, 'the client left')
    for number in range(1, 21):
        began = time.monotonic()
        primary.twinlog('demote', expect=pair.DONE)
        primary.wait(role='Secondary')
        other = both.other(primary)
        other.wait(peer_role='Secondary')
        other.twinlog('promote', expect=pair.DONE)
        both.wait_complete(other)
        took = time.monotonic() - began
        pair.check(took < 2, f'change {number} took {took:.1f} s')
        client = other.connect()
        content = str(number % 10).encode() * 4096
        client.pwrite(content, 4096 * number)
        pair.equal(client.pread(4096, 0), b'0' * 4096, 'first block')
        client.shutdown()
        pair.wait_for(lambda: other.get('clients') == 0, 'the client left')
        primary = other
    for number in range(1, 21):
        pair.equal(primary.connect().pread(4096, 4096 * number),
                   str(number % 10).encode() * 4096, f'block {number}')
    for node in both.nodes:
        pair.equal(node.status()['counters']['resyncs-full'], 0,
                   'full resyncs')


def test_demote_without_arbiter():
    both = pair.Pair(arbiter=False).create()
    both.a.twinlog('demote', expect=pair.DONE)
    both.b.wait(peer_role='Secondary', connection_state='Connected')
    both.b.twinlog('promote', expect=pair.DONE)
    both.wait_complete(both.b)
    both.b.twinlog('demote', expect=pair.DONE)
    both.b.wait(peer_role='Secondary')
    both.b.twinlog('promote', expect=pair.DONE)
    both.wait_complete(both.b)


def test_demote_in_use():
    """Refused while a client is attached, unless told to disconnect."""
    both = pair.Pair().create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    is_refused(both.a, 'demote', words=['client'])
    client.pwrite(b'2' * 4096, 0)
    began = time.monotonic()
    both.a.twinlog('demote', '--disconnect', expect=pair.DONE)
    pair.check(time.monotonic() - began < 2, 'demote took too long')
    both.a.wait(role='Secondary')
    # The idle client that is still attached gets no success any more.
    try:
        client.pwrite(b'3' * 4096, 0)
    except pair.nbd.Error:
        pass
    else:
        raise pair.Failure('a demoted node acknowledged')
    both.b.wait(peer_role='Secondary')
    both.b.twinlog('promote', expect=pair.DONE)
    pair.equal(both.b.connect().pread(4096, 0), b'2' * 4096, 'content')


def test_old_client_after_return():
    """A client from before a change of sides is not served again when its
    node becomes primary once more.
    """
    both = pair.Pair().create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    both.a.twinlog('demote', '--disconnect', expect=pair.DONE)
    both.b.wait(peer_role='Secondary')
    both.b.twinlog('promote', expect=pair.DONE)
    both.wait_complete(both.b)
    other = both.b.connect()
    other.pwrite(b'2' * 4096, 0)
    other.shutdown()
    pair.wait_for(lambda: both.b.get('clients') == 0, 'the client left')
    both.b.twinlog('demote', expect=pair.DONE)
    both.a.wait(peer_role='Secondary')
    both.a.twinlog('promote', expect=pair.DONE)
    both.wait_complete(both.a)
    try:
        client.pwrite(b'3' * 4096, 0)
    except pair.nbd.Error:
        pass
    else:
        raise pair.Failure('a client of another time was served')
    pair.equal(both.a.connect().pread(4096, 0), b'2' * 4096, 'content')


if __name__ == '__main__':
    pair.main(test_not_created, test_peer_is_primary, test_without_assertion,
              test_empty, test_outdated, test_force,
              test_secondary_refuses_clients, test_promote_twice,
              test_demote_and_promote, test_demote_without_arbiter,
              test_demote_in_use, test_old_client_after_return)
