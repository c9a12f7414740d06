"""What `twinlog attach` and `detach` refuse where the kernel has no part in it;
tests/vm has the rest.  Nothing is left behind by a refusal."""

import os
import subprocess

import pair

RUN = '/run/twinlog'


def left(volume):
    return [name for name in (os.listdir(RUN) if os.path.isdir(RUN) else ())
            if name.startswith(f'{volume}.attach')]


def refused(node, expect, words, *options):
    answer = node.twinlog('attach', node.volume, '--socket', node.socket,
                          *options, expect=expect)
    pair.contains(answer.stderr, words, 'attach')
    pair.equal(answer.stderr.count('\n'), 1, 'lines')
    pair.equal(answer.stdout, '', 'output')
    pair.equal(left(node.volume), [], 'files left behind')


def test_attach():
    pair.requires_root()
    if os.path.exists('/sys/module/nbd'):
        pair.skip('the kernel of this machine has NBD: tests/vm has these')
    both = pair.Pair(volume=f'attach-{os.getpid()}')
    refused(both.a, pair.UNREACHABLE, ['no node'])
    both.create()
    refused(both.b, pair.REFUSED, ['node b', 'primary', 'other machine'])
    refused(both.a, pair.FAILED, ['modprobe nbd'])
    refused(both.a, pair.FAILED, ['modprobe nbd'], '--foreground')
    both.a.wait(clients=0)


def test_detach():
    volume = f'attach-{os.getpid()}'
    for words, status, said in (
            ([volume], pair.DONE, f'{volume} is not attached\n'),
            ([volume, '--device', '/dev/nbd99'], pair.DONE,
             f'{volume} is not attached\n'),
            (['--device', '/dev/nbd99'], pair.REFUSED, ''),
            ([], pair.USAGE, '')):
        answer = subprocess.run([pair.TWINLOG, 'detach', *words], text=True,
                                capture_output=True, timeout=30)
        pair.equal(answer.returncode, status, f'status of detach {words}')
        pair.equal(answer.stdout, said, f'output of detach {words}')
        pair.equal(bool(answer.stderr), bool(status), f'detach {words}')
    pair.equal(left(volume), [], 'files left behind')


if __name__ == '__main__':
    pair.main(test_attach, test_detach)
