"""What scripts/zfs-lab does once everything is built.

  lab.py run IOPS SHELL  start the machines, the pair and the pool, and take
                         commands; SHELL is a, b or empty
  lab.py attach NODE     a shell in the machine of the lab that is running
"""

import fcntl
import os
import select
import shutil
import signal
import socket
import sys
import termios
import time
import tty

import pair
import storage
from machines import Lab

CACHE = os.environ['TWINLOG_VM_CACHE']
CURRENT = os.path.join(CACHE, 'lab')  # leads to the directory of the lab
END = b'\033]twinlog:end\007'         # said by guest/usr/bin/console
LEAVE = b'\x1d'                       # Ctrl-]
CTRL_D = b'\x04'
ENDED, LEFT, DIED = range(3)
SKIPPED = 77  # of a test that this machine cannot run

WELCOME = f'''
The pool tank is on machine a, with its log on the volume {storage.VOLUME}.

  shell a | shell b    a shell in that machine; its end leads back here,
                       Ctrl-] leaves it as it is
  cut a                cut the power of a, and b can take over; there:
      twinlog-failover {storage.VOLUME} --fenced --pool tank --share "" \\
          --search "{storage.SEARCH}"
  start a              switch a on again, with a node that is filled
  cable down | cable up
  exit, or Ctrl-D      end both machines

Another terminal: scripts/zfs-lab --shell b
Worth trying in a: zpool status; zpool iostat -v tank 1; twinlog status
  fio --name=log --directory=/tank/data --rw=randwrite --bs=4k --size=16m \\
      --fsync=1 --runtime=10 --time_based
'''


class Terminal:
    """This terminal, raw while a shell has it."""

    def __init__(self):
        self.saved = None

    def __enter__(self):
        if sys.stdin.isatty():
            self.saved = termios.tcgetattr(0)
            tty.setraw(0)
        return self

    def __exit__(self, *_):
        if self.saved:
            termios.tcsetattr(0, termios.TCSADRAIN, self.saved)


def introduce(console):
    """Tell the shell what terminal this is; its echo of that is not shown."""
    size = shutil.get_terminal_size()
    term = os.environ.get('TERM', 'vt100')
    if not term.startswith(('xterm', 'linux')):
        term = 'xterm'
    console.sendall(f' stty rows {size.lines} cols {size.columns};'
                    f' TERM={term}\r'.encode())
    end = time.monotonic() + 2
    while select.select([console], [], [], end - time.monotonic())[0]:
        if b'\n' in console.recv(4096) or time.monotonic() >= end:
            return


def relay(console):
    """Between this terminal and a console, until one of them has enough."""
    inputs, seen = [console, sys.stdin], b''
    while True:
        ready = select.select(inputs, [], [])[0]
        if console in ready:
            output = console.recv(65536)
            if not output:
                return DIED
            seen = (seen + output)[-len(output) - len(END):]
            os.write(1, output.replace(END, b''))
            if END in seen:
                return ENDED
        if sys.stdin in ready:
            typed = os.read(0, 4096)
            if LEAVE in typed:
                return LEFT
            if not typed:  # a script has come to its end
                inputs.remove(sys.stdin)
            console.sendall(typed or CTRL_D)


def shell(directory, name):
    with socket.socket(socket.AF_UNIX) as console:
        try:
            console.connect(os.path.join(directory, f'{name}.console'))
        except OSError:
            print(f'machine {name} is off')
            return DIED
        with Terminal():
            introduce(console)
            how = relay(console)
    print(f'\nmachine {name} is off' if how == DIED else '')
    return how


def switch_on(machine):
    if machine.is_on():
        print(f'machine {machine.name} is on')
    else:
        machine.start()
        storage.start_node(machine)


def switch_off(machine):
    machine.power_cut()


def command(lab, words):
    """One line that was typed."""
    machines = {machine.name: machine for machine in lab.nodes}
    on_machine = {
        'shell': lambda machine: shell(lab.directory, machine.name),
        'cut': switch_off,
        'start': switch_on,
    }
    if len(words) == 2 and words[0] in on_machine and words[1] in machines:
        on_machine[words[0]](machines[words[1]])
    elif words in (['cable', 'up'], ['cable', 'down']):
        lab.cable(words[1])
    elif words:
        print(WELCOME)


def read_line(prompt):
    """A line that was typed, or that a script has; '' at the end.  Of a script
    nothing more is read: what follows may be for a shell."""
    if sys.stdin.isatty():
        try:
            return input(prompt) + '\n'
        except EOFError:
            return ''
    print(prompt, end='', flush=True)
    line = b''
    while not line.endswith(b'\n'):
        more = os.read(0, 1)
        if not more:
            break
        line += more
    return line.decode(errors='replace')


def take_commands(lab):
    while True:
        line = read_line('lab> ')
        if not line:
            print()
            return
        if line.strip() == 'exit':
            return
        try:
            command(lab, line.split())
        except pair.Failure as failure:
            print(failure)


def set_up(iops):
    def say(text):
        print(f'[{time.monotonic() - began:5.1f} s] {text}', flush=True)
    began = time.monotonic()
    say('Booting two machines')
    lab = Lab(iops=iops)
    if os.path.lexists(CURRENT):
        os.unlink(CURRENT)
    os.symlink(lab.directory, CURRENT)
    lab.start()
    say(f'Both are up; the volume {storage.VOLUME}')
    storage.create_pair(lab)
    say('Attaching it to the kernel of a; the pool tank')
    storage.attach(lab.a)
    storage.create_pool(lab.a)
    say('Ready')
    return lab


def run(iops, name):
    with open(os.path.join(CACHE, 'lab.lock'), 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit('zfs-lab: another one has just been started')
        try:
            lab = set_up(iops)
            if name and shell(lab.directory, name) == ENDED:
                return
            print(WELCOME)
            take_commands(lab)
        except pair.Failure:
            pair.show_logs()
            raise
        finally:
            pair.clean_up()
            if os.path.lexists(CURRENT):
                os.unlink(CURRENT)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    try:
        if sys.argv[1] == 'attach':
            sys.exit(shell(CURRENT, sys.argv[2]) == DIED)
        run(int(sys.argv[2]), sys.argv[3])
    except pair.Failure as failure:
        sys.exit(f'zfs-lab: {failure}')
    except SystemExit as end:
        sys.exit(1 if end.code == SKIPPED else end.code)


if __name__ == '__main__':
    main()
