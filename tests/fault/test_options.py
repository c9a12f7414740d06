"""piraeusdatastore/piraeus 249: two nodes whose parameters differ either work
together or say, both of them, what must be the same.
"""

import pair


def test_may_differ():
    """What a node does for itself is its own affair."""
    both = pair.Pair(size='4M', arbiter=False)
    both.a.parameters.update(on_partner_loss='error', deadline=1, lock='off',
                             flush='on')
    both.b.parameters.update(on_partner_loss='freeze', deadline=3, lock='on',
                             flush='off',
                             store=f'{pair.make_directory("/dev/shm")}/b.ram')
    both.create()
    client = both.a.connect()
    client.pwrite(b'1' * 4096, 0)
    client.shutdown()
    both.a.kill()
    both.b.wait(5, connection_state='Connecting')
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    client = both.b.connect()
    pair.equal(bytes(client.pread(4096, 0)), b'1' * 4096, 'content')
    client.pwrite(b'2' * 4096, 0)
    both.a.start()
    both.wait_complete(both.b)


def test_arbiter_on_one():
    """Only one of them would ask: refused, in the log and the status."""
    both = pair.Pair(size='4M', arbiter=True)
    del both.b.parameters['arbiter']
    for node in both.nodes:
        node.start()
    for node in both.nodes:
        pair.wait_for(lambda: node.get('disconnect-reason'), 'a reason')
        pair.contains(node.get('disconnect-reason'),
                      ['a has an arbiter', 'b has none', 'arbiter='],
                      f'disconnect-reason of {node.name}')
        node.says('a has an arbiter')
    pair.stays(lambda: all(node.get('connection-state') == 'Connecting'
                           for node in both.nodes), 0.5, 'not connected')
    both.a.twinlog('create', expect=pair.FAILED)
    pair.equal(both.b.get('view')['number'], 0, 'view')


if __name__ == '__main__':
    pair.main(test_may_differ, test_arbiter_on_one)
