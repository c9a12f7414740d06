"""No room for the state file, on either node, when it is to be told who
serves: what cannot be recorded does not happen, no request waits beyond the
deadline and a second, and with room again the pair goes on by itself.
"""

import os

import pair
from history import Client, History
from rounds import (Longest, check_history, serving, work_for,
                    work_until)
from test_state_file import fill, on_tiny_disk

BLOCKS = 1024
DEADLINE = 1.0


class FullDisk:
    """A busy pair, and the disk of the state file of one of its nodes."""

    def __init__(self, name, **parameters):
        self.both = both = pair.Pair(size=BLOCKS * pair.BLOCK,
                                     deadline=DEADLINE, **parameters)
        for node in both.nodes:
            if node.name == name:
                self.directory = on_tiny_disk(node)
            else:
                node.start()
        for node in both.nodes:
            node.wait(connection_state='Connected')
        both.a.twinlog('create', expect=pair.DONE)
        both.wait_complete(both.a)
        self.history = History(BLOCKS)
        self.longest = Longest()
        self.client = self.attach(both.a)
        work_for(self.client, 0.1)

    def attach(self, node):
        return self.longest.watch(Client(node, self.history))

    def fill(self):
        self.filler = fill(self.directory)

    def make_room(self):
        os.unlink(self.filler)

    def end(self, primary, name):
        work_until(self.client, lambda: primary.get('copies') == 2
                   and primary.get('peer-disk-state') == 'UpToDate',
                   f'{name}: two copies')
        self.client.close()
        self.both.wait_complete(primary)
        check_history(primary, self.history)
        print(f'  {name}: longest request {self.longest.seconds:.2f} s of'
              f' {DEADLINE + 1:.2f}, {self.client.failed} failed,'
              f' acknowledged {self.history.acknowledged}, lost 0',
              flush=True)
        # The node's bound, and the client's own delay on a busy machine.
        pair.check(self.longest.seconds <= DEADLINE + 1 + 0.5,
                   f'a request took {self.longest.seconds:.2f} s')
        self.both.stop()


def test_primary_goes_on():
    """Its partner is killed, and it cannot record that it is alone: it
    acknowledges nothing, however long that lasts.
    """
    for arbiter in (True, False):
        disk = FullDisk('a', arbiter=arbiter)
        a, client = disk.both.a, disk.client
        disk.fill()
        view = a.get('view')
        disk.both.b.kill()
        work_until(client, lambda: client.failed >= client.depth,
                   'the requests in flight failed')
        if not arbiter:
            answer = a.twinlog('degrade', '--fenced')
            pair.check(answer.returncode != pair.DONE, 'degrade was done')
            pair.contains(answer.stderr, ['state'], 'degrade')
        client.drain()
        written = [write.number for block in disk.history.candidates
                   for write in block if write.ended]
        work_for(client, DEADLINE)
        client.drain()
        pair.equal([write.number for block in disk.history.candidates
                    for write in block if write.ended], written,
                   'what was acknowledged')
        pair.equal((a.get('view'), a.get('role')), (view, 'Primary'),
                   'view and role')
        pair.contains(a.get('trouble'), ['state'], 'trouble')
        disk.make_room()
        if not arbiter:
            a.twinlog('degrade', '--fenced', expect=pair.DONE)
        work_until(client, lambda: a.get('copies') == 1
                   and not a.get('suspended'), 'it goes on alone')
        disk.both.b.spawn()
        disk.end(a, 'primary, ' + ('arbiter' if arbiter else 'error'))


def test_promotion():
    """The primary is killed, and the other cannot record that it is the new
    one: it serves nobody.
    """
    for arbiter in (True, False):
        disk = FullDisk('b', arbiter=arbiter)
        a, b = disk.both.nodes
        disk.fill()
        a.kill()
        disk.client.work(lambda: not disk.client.alive())
        b.wait(5, connection_state='Connecting')
        options = () if arbiter else ('--fenced',)
        answer = b.twinlog('promote', *options)
        pair.check(answer.returncode != pair.DONE, 'promote was done')
        pair.contains(answer.stderr, ['state'], 'promote')
        pair.equal(b.get('role'), 'Secondary', 'role')
        try:
            b.connect()
        except pair.nbd.Error:
            pass
        else:
            raise pair.Failure('a client was let in')
        disk.make_room()
        pair.wait_for(lambda: b.twinlog('promote', *options).returncode
                      == pair.DONE, 'promoted')
        check_history(b, disk.history)
        disk.client = disk.attach(b)
        a.spawn()
        disk.end(b, 'promotion, ' + ('arbiter' if arbiter else 'error'))


def test_switchover():
    """Neither node can be told to change sides while it cannot record that:
    the primary stays what it is, and serves.
    """
    for name in 'ab':
        disk = FullDisk(name)
        a, b = disk.both.nodes
        disk.client.close()
        pair.wait_for(lambda: a.get('clients') == 0, 'the client left')
        disk.fill()
        answer = a.twinlog('switchover')
        pair.check(answer.returncode != pair.DONE, 'switchover was done')
        pair.check(answer.stderr.strip(), 'no reason')
        if name == 'a':
            pair.contains(answer.stderr, ['state'], 'switchover')
            pair.equal(a.get('role'), 'Primary', 'role')
            disk.client = disk.attach(a)
            work_for(disk.client, 0.2)
            pair.equal(disk.client.failed, 0, 'failed requests')
            disk.client.close()
        disk.make_room()
        primary = pair.wait_for(lambda: serving(disk.both), 'one serves', 20)
        disk.client = disk.attach(primary)
        disk.end(primary, f'switchover, full disk of {name}')


def test_join():
    """A partner that was left behind is filled and cannot record that it is a
    member again: it is none, and costs the client nothing.
    """
    disk = FullDisk('b')
    a, b = disk.both.nodes
    b.pause()
    work_until(disk.client, lambda: a.get('copies') == 1
               and not a.get('suspended'), 'a is alone')
    disk.fill()
    b.resume()
    work_until(disk.client, lambda: b.get('trouble'), 'b tells its trouble')
    pair.contains(b.get('trouble'), ['state'], 'trouble')
    for _ in range(6):
        work_for(disk.client, DEADLINE / 2)
        pair.equal((a.get('copies'), a.get('view')['members']), (1, ['a']),
                   'copies and members')
    pair.equal(disk.client.failed, 0, 'failed requests')
    disk.make_room()
    disk.end(a, 'join')


if __name__ == '__main__':
    pair.requires_root()
    pair.main(test_primary_goes_on, test_promotion, test_switchover,
              test_join)
