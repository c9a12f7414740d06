"""Both nodes acknowledged what the other never had, as the policy `continue`
and a wrong assertion allow: nothing is overwritten until an operator says
whose data is lost.  And a machine that is replaced by another.
"""

import pair
from proxy import ProxiedPair


def stand_alone(both):
    for node in both.nodes:
        node.wait(10, connection_state='StandAlone')


def split(**parameters):
    """Two primaries; block 0 has the letter of the node."""
    both = ProxiedPair(size='4M', arbiter=False, deadline=1,
                       on_partner_loss='continue', **parameters).create()
    client = both.a.connect()
    client.pwrite(b'1' * 8192, 0)
    client.shutdown()
    both.proxy.close()
    both.b.wait(5, connection_state='Connecting')
    both.b.twinlog('promote', '--fenced', expect=pair.DONE)
    clients = []
    for node in both.nodes:
        client = node.connect()
        client.pwrite(node.name.encode() * 4096, 0)
        clients.append(client)
        pair.equal(node.get('role'), 'Primary', f'role of {node.name}')
        pair.equal(node.get('copies'), 1, f'copies of {node.name}')
    return both, clients


def holds(client, node):
    pair.equal(bytes(client.pread(8192, 0)),
               node.name.encode() * 4096 + b'1' * 4096,
               f'what {node.name} holds')


def test_nothing_is_overwritten():
    both, clients = split()
    both.proxy.open = True
    stand_alone(both)

    def as_before():
        for node, client in zip(both.nodes, clients):
            holds(client, node)
        return all(node.get('connection-state') == 'StandAlone'
                   for node in both.nodes)
    pair.stays(as_before, 2, 'StandAlone')
    for node in both.nodes:
        node.says('split brain')
        node.says('discard')
        pair.contains(node.get('disconnect-reason'), ['split brain'],
                      f'disconnect-reason of {node.name}')
    # A restart of one, with nothing kept, decides nothing by itself: it has
    # no data any more, so that it may be filled.
    both.b.kill()
    both.b.start()
    both.wait_complete(both.a)
    holds(clients[0], both.a)


def test_discard():
    """mantechnology/wdrbd 6, miroir 145: on the loser; the winner stays
    UpToDate and the loser is filled from it.
    """
    for loser_name in 'ab':
        both, clients = split()
        loser = both.a if loser_name == 'a' else both.b
        winner = both.other(loser)
        # Before the two have met there is nothing to give up.
        loser.twinlog('discard', loser.volume, expect=pair.REFUSED)
        both.proxy.open = True
        stand_alone(both)
        loser.twinlog('discard', loser.volume, expect=pair.DONE)
        both.wait_complete(winner)
        winner.twinlog('discard', winner.volume, expect=pair.REFUSED)
        holds(clients[both.nodes.index(winner)], winner)
        # The loser's client of the time before gets nothing more.
        try:
            clients[both.nodes.index(loser)].pread(4096, 0)
        except pair.nbd.Error:
            pass
        else:
            raise pair.Failure('the loser serves its old client')
        clients[both.nodes.index(winner)].pwrite(b'n' * 4096, 4096)
        winner.kill()
        loser.wait(5, connection_state='Connecting')
        loser.twinlog('promote', '--fenced', expect=pair.DONE)
        client = loser.connect()
        pair.equal(bytes(client.pread(8192, 0)),
                   winner.name.encode() * 4096 + b'n' * 4096,
                   'what the loser has after it was filled')
        both.stop()


def test_replaced_machine():
    """Another node's name is not let in until forget-peer, and forget-peer
    not while the old one is a member.
    """
    for arbiter in (True, False):
        both = pair.Pair(size='4M', arbiter=arbiter, deadline=1).create()
        client = both.a.connect()
        client.pwrite(b'1' * 4096, 0)
        answer = both.a.twinlog('forget-peer', expect=pair.REFUSED)
        pair.contains(answer.stderr, ['connected'], 'forget-peer')
        both.b.kill()
        if not arbiter:
            both.a.wait(connection_state='Connecting')
            answer = both.a.twinlog('forget-peer', expect=pair.REFUSED)
            pair.contains(answer.stderr, ['member', 'degrade'],
                          'forget-peer')
            both.a.twinlog('degrade', '--fenced', expect=pair.DONE)
        both.a.wait(copies=1, suspended=False)
        client.pwrite(b'2' * 4096, 4096)
        fresh = pair.Node(both.directory, both.volume, 'c',
                          both.addresses[1], both.addresses[0],
                          {key: value for key, value in
                           both.b.parameters.items()
                           if key in ('size', 'deadline', 'arbiter')})
        both.nodes[1] = both.b = fresh
        fresh.start()
        pair.wait_for(lambda: fresh.get('disconnect-reason'), 'a reason')
        pair.contains(fresh.get('disconnect-reason'),
                      ['partner of a is node b, not c'], 'reason')
        pair.equal(fresh.get('disk-state'), 'Empty', 'data of c')
        pair.equal(both.a.get('role'), 'Primary', 'role of a')
        both.a.twinlog('forget-peer', expect=pair.DONE)
        both.wait_complete(both.a)
        pair.equal(fresh.get('uuid'), both.a.get('uuid'), 'UUID of c')
        client.pwrite(b'3' * 4096, 8192)
        both.a.kill()
        fresh.wait(5, connection_state='Connecting')
        fresh.twinlog('promote', *([] if arbiter else ['--fenced']),
                      expect=pair.DONE)
        pair.equal(bytes(fresh.connect().pread(12288, 0)),
                   b'1' * 4096 + b'2' * 4096 + b'3' * 4096, 'content')
        both.stop()


if __name__ == '__main__':
    pair.main(test_nothing_is_overwritten, test_discard,
              test_replaced_machine)
