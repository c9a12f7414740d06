"""The command of notify= is told of each change, one at a time, and the last
one knows what is.
"""

import os

import pair

WORDS = ('VOLUME', 'NODE', 'PEER_NODE', 'CONTROL', 'VIEW', 'ROLE',
         'DISK_STATE', 'CONNECTION_STATE', 'PEER_ROLE', 'PEER_DISK_STATE',
         'COPIES', 'OLD_ROLE', 'OLD_DISK_STATE', 'OLD_CONNECTION_STATE',
         'OLD_PEER_ROLE', 'OLD_PEER_DISK_STATE', 'OLD_COPIES')


class Told:
    """A command that notes what it is told, a line for each run."""

    def __init__(self, before='', after=''):
        directory = pair.make_directory()
        self.path = os.path.join(directory, 'told')
        script = os.path.join(directory, 'notify')
        words = ' '.join(f'{word}=$TWINLOG_{word}' for word in WORDS)
        with open(script, 'w') as file:
            file.write(f'{before}\necho "{words}" >>{self.path}\n{after}\n')
        self.command = f'sh {script}'

    def lines(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            return [dict(word.split('=', 1) for word in line.split())
                    for line in file]

    def last(self, **expected):
        lines = self.lines()
        return lines and expected.items() <= lines[-1].items()


def test_told():
    """A failover as the other node sees it, change by change."""
    both = pair.Pair()
    told = Told()
    both.b.parameters['notify'] = told.command
    both.create()
    pair.wait_for(lambda: told.last(
        ROLE='Secondary', DISK_STATE='UpToDate', CONNECTION_STATE='Connected',
        PEER_ROLE='Primary', PEER_DISK_STATE='UpToDate', COPIES='2',
        VOLUME=both.a.volume, NODE='b', PEER_NODE='a', VIEW='1',
        CONTROL=both.b.control), 'told of the volume')
    first = told.lines()[0]
    pair.equal([first[f'OLD_{word}'] for word in
                ('ROLE', 'DISK_STATE', 'CONNECTION_STATE', 'PEER_ROLE')],
               ['Secondary', 'Empty', 'Connecting', 'Unknown'], 'at start')
    both.a.kill()
    pair.wait_for(lambda: told.last(
        CONNECTION_STATE='Connecting', DISK_STATE='Consistent',
        PEER_ROLE='Unknown', OLD_CONNECTION_STATE='Connected'),
        'told of the loss')
    both.b.twinlog('promote', expect=pair.DONE)
    pair.wait_for(lambda: told.last(
        ROLE='Primary', DISK_STATE='UpToDate', COPIES='1',
        OLD_ROLE='Secondary'), 'told of the promotion')
    both.a.start()
    both.wait_complete(both.b)
    pair.wait_for(lambda: told.last(COPIES='2', PEER_DISK_STATE='UpToDate'),
                  'told of the partner')
    lines = told.lines()
    for before, line in zip(lines, lines[1:]):
        for word in ('ROLE', 'DISK_STATE', 'CONNECTION_STATE', 'COPIES'):
            pair.equal(line[f'OLD_{word}'], before[word], f'old {word}')


def test_one_at_a_time():
    """A slow one misses what comes and goes, and not what is."""
    both = pair.Pair()
    gate = os.path.join(pair.make_directory(), 'gate')
    os.mkfifo(gate)
    ended = gate + '-passed'
    told = Told(after=f'timeout 20 sh -c "read line <{gate}"; echo >>{ended}')
    both.b.parameters['notify'] = told.command
    both.create()
    both.a.kill()
    both.b.twinlog('promote', expect=pair.DONE)
    pair.equal(len(told.lines()), 1, 'commands that have run')
    with open(gate, 'w') as file:
        file.write('go on\n')
    pair.wait_for(lambda: told.last(ROLE='Primary', COPIES='1'), 'the rest')
    pair.equal(len(told.lines()), 2, 'commands that have run')
    # The node does not wait for the second one, nor take it along.
    both.b.terminate()
    with open(gate, 'w') as file:
        file.write('go on\n')
    pair.wait_for(lambda: os.path.getsize(ended) == 2, 'the last one ends')


def test_failure():
    """Its status is logged, and nothing else comes of it."""
    both = pair.Pair()
    both.a.parameters['notify'] = '/nonexistent/command'
    both.b.parameters['notify'] = 'kill -9 $$'
    both.create()
    both.a.says('notify= ended with status 127')
    both.b.says('notify= was killed by signal 9')
    both.a.twinlog('switchover', expect=pair.DONE)
    both.wait_complete(both.b)


if __name__ == '__main__':
    pair.main(test_told, test_one_at_a_time, test_failure)
