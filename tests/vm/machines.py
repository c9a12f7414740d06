"""Two virtual machines, a and b, with a disk that both share and a private
link between them, for one test.

A Lab lives in one directory and one network namespace of its own.  A Machine
is one qemu process (TCG: nothing of this machine's kernel is used); commands
run inside it through its agent.  However the test ends, the processes, the
namespace and the directory are gone.

In a machine 10.0.0.1 is a and 10.0.0.2 is b, /dev/vda1 is a partition of the
shared disk, and what is in /var/lib/twinlog outlives a power cut.  At port 1 of
10.0.2.100 is tests/vm/arbiter, outside of both.
"""

import ctypes
import os
import signal
import socket
import struct
import subprocess
import threading
from collections import namedtuple

import network
import pair
from pair import MIB, Failure, check

ARBITER = os.path.join(pair.SOURCE, 'tests/vm/arbiter')
TSC = os.path.join(pair.BUILD, 'tests/vm/tsc')
BUILDER = os.path.join(pair.SOURCE, 'tests/vm/build')
QEMU = 'qemu-system-x86_64'
AGENT_PORT = 1          # in each machine
WAYS_IN = {'a': 1001, 'b': 1002}  # to it, in the namespace
READY = b'twinlog-agent: ready'
SECTOR = 512
SLOW = 600  # seconds for what takes a few where nothing else runs
CLONE_NEWNET = 0x40000000

Result = namedtuple('Result', 'status output')
_libc = ctypes.CDLL(None, use_errno=True)


def write_partition(path, size):
    """A new disk image: one partition from the first MiB to the end."""
    first = MIB // SECTOR
    entry = struct.pack('<B3sB3sII', 0, b'\xfe\xff\xff', 0x83, b'\xfe\xff\xff',
                        first, size // SECTOR - first)
    with open(path, 'wb') as disk:
        disk.truncate(size)
        disk.seek(446)
        disk.write(entry)
        disk.seek(510)
        disk.write(b'\x55\xaa')


class Machine:
    """One virtual machine; between start and power_cut it runs."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.volume = 'machine'  # for those who show logs
        self.process = None
        self.console = lab.path(f'{name}.console')
        self.log_path = lab.path(f'{name}.log')
        self.records = lab.path(f'{name}.records')
        self.disk = lab.path(f'{name}.disk')
        for path in (self.log_path, self.records):
            open(path, 'wb').close()
        with open(self.disk, 'wb') as disk:
            disk.truncate(64 * MIB)
        made = pair.run(['/usr/sbin/mke2fs', '-q', '-F', '-t', 'ext4',
                         self.disk])
        check(made.returncode == 0, f'mke2fs: {made.stderr.strip()}')

    def arguments(self):
        lab, name = self.lab, self.name
        shared = f'file={lab.shared},format=raw,if=none,id=shared,' \
                 'cache=writeback,file.locking=off'
        if lab.iops:
            shared += f',throttling.iops-total={lab.iops}'
        return [
            QEMU, '-name', f'twinlog-{name}', '-machine', 'pc',
            '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '1',
            '-m', str(lab.memory), '-nodefaults', '-no-user-config',
            '-no-reboot', '-display', 'none',
            '-kernel', lab.path('vmlinuz'), '-initrd', lab.path('initrd'),
            '-append', 'console=ttyS0 quiet panic=-1 tsc=reliable'
                       ' clocksource=tsc no_timer_check net.ifnames=0'
                       f' ipv6.disable=1{lab.clock} twinlog.node={name}',
            '-chardev', f'socket,id=console,path={self.console},server=on,'
                        f'wait=off,logfile={self.log_path},logappend=on',
            '-serial', 'chardev:console',
            '-netdev', f'tap,id=link,ifname=link-{name},script=no,'
                       'downscript=no',
            '-device', f'virtio-net-pci,netdev=link,romfile=,'
                       f'mac=02:00:00:00:00:0{name}',
            '-netdev', 'user,id=agent,restrict=on,hostfwd='
                       f'tcp:127.0.0.1:{WAYS_IN[name]}-10.0.2.15:{AGENT_PORT},'
                       'guestfwd=tcp:10.0.2.100:1-cmd:'
                       f'{ARBITER} {lab.arbiter}',
            '-device', 'virtio-net-pci,netdev=agent,romfile=',
            '-device', 'virtio-serial-pci',
            '-chardev', f'file,id=records,path={self.records},append=on',
            '-device', 'virtserialport,chardev=records,name=records',
            '-drive', shared,
            '-device', 'virtio-blk-pci,drive=shared,share-rw=on',
            '-drive', f'file={self.disk},format=raw,if=none,id=own,'
                      'cache=writeback',
            '-device', 'virtio-blk-pci,drive=own',
        ]

    # ---- Power ----

    def switch_on(self):
        """Start it; `wait_ready` waits until it takes commands."""
        self.started_at = os.path.getsize(self.log_path)
        with open(self.lab.path(f'{self.name}.qemu'), 'ab') as log:
            self.process = subprocess.Popen(
                self.lab.space.inside(self.arguments()),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=pair.die_with_parent)

    def wait_ready(self, seconds=SLOW):
        def ready():
            self.must_run()
            return READY in self.console_since(self.started_at)
        pair.wait_for(ready, f'machine {self.name} is up', seconds, 0.05)

    def start(self):
        self.switch_on()
        self.wait_ready()

    def is_on(self):
        return self.process is not None and self.process.poll() is None

    def must_run(self):
        if not self.is_on():
            with open(self.lab.path(f'{self.name}.qemu')) as log:
                raise Failure(f'machine {self.name} has ended:'
                              f' {log.read().strip()}')

    def power_cut(self):
        """At once, in the middle of whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    clean_up = power_cut

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    # ---- Commands ----

    def run(self, command, seconds=SLOW, data=b'', may_fail=False):
        """Run a shell command inside, which reads DATA; its status and all
        that it wrote.  A status but 0 is a failure unless it may fail."""
        script = command.encode()
        request = b'%d %d\n' % (seconds, len(script)) + script + data
        output = b''
        self.must_run()
        with self.lab.socket_inside() as agent:
            agent.settimeout(seconds + 30)
            try:
                agent.connect(('127.0.0.1', WAYS_IN[self.name]))
                agent.sendall(request)
                agent.shutdown(socket.SHUT_WR)
                while True:
                    more = agent.recv(1 << 16)
                    if not more:
                        break
                    output += more
            except OSError as error:
                raise Failure(f'machine {self.name}, {command!r}: {error}') \
                    from None
        check(output[-4:-1].isdigit() and output.endswith(b'\n'),
              f'machine {self.name} died during {command!r}')
        result = Result(int(output[-4:]), output[:-4])
        check(may_fail or result.status == 0,
              f'machine {self.name}, {command!r}: exit status {result.status}:'
              f' {result.output.decode(errors="replace").strip()}')
        return result

    def text(self, command, seconds=SLOW):
        """What a command writes, without the white space around it."""
        return self.run(command, seconds).output.decode().strip()

    def spawn(self, command, log):
        """Run a command in the background; what it writes goes into LOG."""
        self.run(f'({command}) >{log} 2>&1 </dev/null &')

    def wait(self, command, seconds=SLOW):
        """Wait until a command inside succeeds."""
        pair.wait_for(lambda: self.run(command, may_fail=True).status == 0,
                      f'machine {self.name}: {command}', seconds, 0.1)

    # ---- What it says ----

    def console_since(self, offset=0):
        with open(self.log_path, 'rb') as log:
            log.seek(offset)
            return log.read()

    def log_lines(self):
        text = self.console_since().decode(errors='replace')
        return [line for line in text.splitlines() if line.strip()]


class Lab:
    """Machines `a` and `b`.

    MEMORY of each in MiB; IOPS is the limit of the shared disk, 0 for none.
    """

    def __init__(self, memory=2048, size=4096 * MIB, iops=0, directory=None):
        pair.requires_root()
        for program in (QEMU, 'cpio', 'ip', 'nsenter'):
            pair.requires_program(program)
        if not os.path.exists('/dev/net/tun'):
            pair.skip('there is no /dev/net/tun')
        emulators = pair.run([QEMU, '-accel', 'help'])
        if 'tcg' not in emulators.stdout:
            pair.skip(f'{QEMU} does not run here: {emulators.stderr.strip()}')
        self.directory = directory or pair.make_directory()
        self.memory = memory
        self.iops = iops
        self.nodes = []
        self.space = None
        pair.stop_at_end(self)
        built = pair.run([BUILDER, '--built', pair.BUILD, self.directory],
                         timeout=3600)
        check(built.returncode == 0, f'tests/vm/build: {built.stderr.strip()}')
        ticks = pair.run([TSC]).stdout.strip()
        self.clock = f' tsc_early_khz={ticks}' if int(ticks) else ''
        self.arbiter = self.path('arbiter')
        os.mkdir(self.arbiter)
        self.shared = self.path('shared.disk')
        write_partition(self.shared, size)
        self.a, self.b = self.nodes = [Machine(self, name) for name in 'ab']
        self.space = network.Namespace()
        self.space.run('ip', 'link', 'set', 'lo', 'up')
        self.space.run('ip', 'link', 'add', 'cable', 'type', 'bridge')
        self.space.run('ip', 'link', 'set', 'cable', 'up')
        for machine in self.nodes:
            tap = f'link-{machine.name}'
            self.space.run('ip', 'tuntap', 'add', 'dev', tap, 'mode', 'tap')
            self.space.run('ip', 'link', 'set', tap, 'master', 'cable', 'up')

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self):
        """Both at once, until both take commands."""
        for machine in self.nodes:
            machine.switch_on()
        for machine in self.nodes:
            machine.wait_ready()
        return self

    def other(self, machine):
        return self.nodes[1 - self.nodes.index(machine)]

    def cable(self, state):
        """The link between the two: 'up' or 'down'."""
        self.space.run('ip', 'link', 'set', 'cable', state)

    def socket_inside(self):
        """A TCP socket in the namespace of the lab."""
        made = []

        def make():
            path = f'/proc/{self.space.pid}/ns/net'
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if _libc.setns(descriptor, CLONE_NEWNET) == 0:
                made.append(socket.socket())
            os.close(descriptor)
        # A thread of its own: the rest of this process stays where it is.
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        check(made, 'no socket in the namespace of the lab')
        return made[0]

    def stop(self):
        for machine in self.nodes:
            machine.power_cut()
        if self.space is not None:
            self.space.stop()
            self.space = None
