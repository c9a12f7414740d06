"""scripts/zfs-lab: what a person types, in two terminals, and the end of it."""

import os
import subprocess
import sys

import pair
from machines import BUILDER, SLOW
from pair import check, contains, equal, wait_for

LAB = os.path.join(pair.SOURCE, 'scripts/zfs-lab')
STEPS = os.path.join(pair.SOURCE, 'scripts/lib/steps.sh')


class Terminal:
    """One run of scripts/zfs-lab, with what it has printed."""

    nodes = ()  # nothing but its output is shown after a failure

    def __init__(self, directory, cache, name, *options):
        self.path = os.path.join(directory, name)
        with open(self.path, 'wb') as output:
            self.process = subprocess.Popen(
                [LAB, '--built', pair.BUILD, *options],
                stdin=subprocess.PIPE, stdout=output, stderr=output,
                env={**os.environ, 'TWINLOG_VM_CACHE': cache,
                     'TMPDIR': directory},
                preexec_fn=pair.die_with_parent)
        pair.stop_at_end(self)

    def type(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def shown(self):
        with open(self.path, errors='replace') as output:
            return output.read()

    def wait_shown(self, text, seconds=SLOW):
        def seen():
            if text in self.shown():
                return True
            check(self.process.poll() is None,
                  f'zfs-lab ended without {text!r}: {self.shown()}')
            return False
        wait_for(seen, f'zfs-lab shows {text!r}', seconds, 0.1)

    def wait_prompt(self, number, seconds=SLOW):
        """Until it takes a command for so many times."""
        wait_for(lambda: self.shown().count('lab> ') >= number,
                 f'prompt {number}', seconds, 0.1)

    def end(self):
        """Its input ends; its exit status."""
        self.process.stdin.close()
        return self.process.wait(60)

    def stop(self):
        if self.process.poll() is None:
            print(self.shown(), file=sys.stderr)
            self.process.terminate()
            self.process.wait(60)


def machines_of(directory):
    """Processes that have this directory in their arguments."""
    return [line for line in pair.run(['ps', '-eo', 'args']).stdout.split('\n')
            if 'qemu-system' in line and directory in line]


def test_lab():
    pair.requires_root()
    directory = pair.make_directory()
    # What is built is taken from the usual place; another lab may be running.
    built = pair.run([BUILDER], timeout=3600)
    check(built.returncode == 0, f'tests/vm/build: {built.stderr}')
    usual = pair.run(['bash', '-euc', f'. "{STEPS}"; vm_cache']).stdout.strip()
    cache = os.path.join(directory, 'cache')
    os.mkdir(cache)
    for name in os.listdir(usual):
        if name.startswith('base-'):
            os.symlink(os.path.join(usual, name), os.path.join(cache, name))

    first = Terminal(directory, cache, 'first')
    first.wait_prompt(1, 600)
    second = Terminal(directory, cache, 'second', '--shell', 'b')
    second.type('twinlog status; nproc; echo "it is $(hostname)"')
    second.wait_shown('it is b')
    equal(second.end(), 0, 'exit status of the shell in b')
    contains(second.shown(), ['role:Secondary', 'copies:2'], 'status of b')

    first.type('shell a')
    first.type('zpool status tank')
    first.wait_shown('errors: No known data errors')
    first.type('exit')
    first.wait_prompt(2)
    first.type('cut b')
    first.type('shell b')
    first.wait_shown('machine b is off')
    equal(len(machines_of(directory)), 1, 'machines that are on')
    equal(first.end(), 0, 'exit status of zfs-lab')
    equal(machines_of(directory), [], 'machines that are left')
    equal(sorted(os.listdir(directory)), ['cache', 'first', 'second'],
          'what is left')


if __name__ == '__main__':
    pair.main(test_lab)
