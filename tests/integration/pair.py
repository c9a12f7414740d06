"""Two nodes of a volume, as real nbdkit processes, for one test.

A test makes a Pair (or several), starts its nodes, and talks to them through
the `twinlog` command, the control socket and libnbd.  Everything lives in one
directory of its own, on loopback ports of its own; at the end of the test,
however it ends, the processes are gone and the directory too.

From the environment: TWINLOG_BUILD and TWINLOG_SOURCE, the two trees;
TWINLOG_PRELOAD, libraries that nbdkit preloads (a sanitizer's runtime).
"""

import atexit
import ctypes
import errno
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

try:
    import nbd
except ImportError:
    print('skipped: python3-libnbd is not installed')
    sys.exit(77)

BUILD = os.environ.get('TWINLOG_BUILD', '')
SOURCE = os.environ.get('TWINLOG_SOURCE', '')
PLUGIN = os.path.join(BUILD, 'plugins/twinlog/nbdkit-twinlog-plugin.so')
TWINLOG = os.path.join(BUILD, 'client/twinlog')
ARBITER = os.path.join(SOURCE, 'scripts/twinlog-arbiter-file')
BLOCK = 4096
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

DONE, FAILED, USAGE, REFUSED, UNREACHABLE, TIMED_OUT = range(6)

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_pairs = []
_reserved = []


class Failure(Exception):
    """What the test is about does not hold."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(got, expected, what):
    check(got == expected, f'{what}: {short(got)}, expected {short(expected)}')


def short(value):
    text = repr(value)
    return text if len(text) < 400 else f'{text[:100]} ... {text[-40:]}'


def contains(text, words, what):
    """Is each of WORDS in TEXT, whatever the case?"""
    for word in words:
        check(word.lower() in text.lower(), f'{what}: no {word!r} in {text!r}')


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def requires_root():
    if os.geteuid() != 0:
        skip('needs root')


def requires_program(name):
    if shutil.which(name) is None:
        skip(f'{name} is not installed')


def wait_for(condition, what, seconds=10.0, pause=0.02):
    """Wait until CONDITION returns something true, and return that."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f'not within {seconds} s: {what}')
        time.sleep(pause)


def stays(condition, seconds, what, pause=0.05):
    """Check that CONDITION holds, and goes on holding for SECONDS."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check(condition(), what)
        time.sleep(pause)


def free_port(host='127.0.0.1'):
    """A port that no other test takes while this process lives.

    Below the range that outgoing connections get theirs from.  An abstract
    socket named for the port keeps other tests off it, also while the node
    that listens there is being restarted.
    """
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    for _ in range(1000):
        port = random.randrange(12000, 32000)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f'\0twinlog-test-port-{port}')
        except OSError:
            claim.close()
            continue
        with socket.socket(family) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                claim.close()
                continue
        _reserved.append(claim)
        return port
    raise Failure('no free port')


def address(host, port):
    return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'


def die_with_parent():
    """Between fork and exec: this process does not outlive the test."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def environment():
    env = dict(os.environ)
    if env.get('TWINLOG_PRELOAD'):
        env['LD_PRELOAD'] = env['TWINLOG_PRELOAD']
    return env


def run(arguments, **keywords):
    """Run a program to its end, at most a minute; its output as text."""
    keywords.setdefault('timeout', 60)
    keywords.setdefault('stdin', subprocess.DEVNULL)
    return subprocess.run([str(word) for word in arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=die_with_parent, **keywords)


class Node:
    """One nbdkit process, and where everything of it lies."""

    def __init__(self, directory, volume, name, listen, peer, parameters):
        self.name = name
        self.volume = volume
        self.directory = os.path.join(directory, f'{volume}-{name}')
        os.mkdir(self.directory)
        self.socket = self.path('nbd.sock')
        self.control = self.path('node.ctl')
        self.state = self.path('node.state')
        self.parameters = {
            'name': volume,
            'node': name,
            'listen': listen,
            'peer': peer,
            'control': self.control,
            'state': self.state,
            **parameters,
        }
        self.process = None
        self.extra_pids = set()
        self.log_path = self.path('log')
        open(self.log_path, 'w').close()

    def path(self, name):
        return os.path.join(self.directory, name)

    # ---- The process ----

    def arguments(self, options=('-f',), **changes):
        """The command line; a parameter changed to None is left out."""
        parameters = {**self.parameters, **changes}
        return ['nbdkit', *options, '--unix', self.socket, PLUGIN,
                *(f'{key.replace("_", "-")}={value}'
                  for key, value in parameters.items() if value is not None)]

    def spawn(self, arguments=None, **changes):
        """Start the process, without waiting for it to be up."""
        check(not self.running(), f'{self.name} runs already')
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        with open(self.log_path, 'a') as log:
            self.process = subprocess.Popen(
                arguments or self.arguments(**changes),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment(), preexec_fn=die_with_parent)
        return self

    def start(self, **changes):
        """Start the process and wait until it answers on both sockets."""
        self.spawn(**changes)
        self.wait_up()
        return self

    def wait_up(self, seconds=20):
        def up():
            check(self.running(),
                  f'{self.name} ended at its start: {self.log()!r}')
            return self.status() and os.path.exists(self.socket)
        wait_for(up, f'{self.name} is up', seconds)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL, and wait until it is gone."""
        if self.process is not None:
            if self.running():
                self.process.kill()
            self.process.wait()
            self.process = None

    def terminate(self, seconds=2.0):
        """SIGTERM; how long it took; fails if longer than SECONDS."""
        began = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f'{self.name} runs {seconds} s after SIGTERM')
        self.process = None
        return time.monotonic() - began

    def pause(self):
        """SIGSTOP, and wait until every thread has stopped."""
        self.signal(signal.SIGSTOP)
        tasks = f'/proc/{self.pid()}/task'

        def stopped(task):
            with open(f'{tasks}/{task}/stat') as stat:
                return stat.read().rpartition(')')[2].split()[0] == 'T'
        wait_for(lambda: all(stopped(task) for task in os.listdir(tasks)),
                 f'{self.name} has stopped', 5, 0.001)

    def resume(self):
        self.signal(signal.SIGCONT)

    def clean_up(self):
        self.kill()
        for pid in self.extra_pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # ---- What it says ----

    def log(self):
        with open(self.log_path, errors='replace') as log:
            return log.read()

    def log_lines(self, since=0):
        """The lines that were logged after the first SINCE characters."""
        return [line for line in self.log()[since:].splitlines() if line]

    def says(self, *words, since=0, seconds=10.0):
        """Wait for a line with all WORDS, whatever the case, after the first
        SINCE characters: it comes a moment after the status has changed.
        """
        wait_for(lambda: any(all(word.lower() in line.lower()
                                 for word in words)
                             for line in self.log_lines(since)),
                 f'a line with {words} in the log of {self.name}', seconds)

    def connect_control(self, control, seconds):
        end = time.monotonic() + seconds
        while True:
            try:
                return control.connect(self.control)
            except BlockingIOError:  # others wait to be let in
                check(time.monotonic() < end, 'nobody is let in')
                time.sleep(0.01)

    def ask(self, request, seconds=15.0):
        """One request on the control socket; None if there is no node."""
        text = request if isinstance(request, bytes) \
            else json.dumps(request).encode() + b'\n'
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(seconds)
            answer = b''
            try:
                self.connect_control(control, seconds)
                try:
                    control.sendall(text)
                except BrokenPipeError:
                    pass  # it was refused; the answer is there already
                while not answer.endswith(b'\n'):
                    more = control.recv(65536)
                    if not more:
                        break
                    answer += more
            except (FileNotFoundError, ConnectionRefusedError,
                    ConnectionResetError, BrokenPipeError):
                return None
            return json.loads(answer) if answer else None

    def status(self):
        """The object of `status --json`; None if there is no node."""
        answer = self.ask({'command': 'status'})
        if answer is None:
            return None
        equal(answer['status'], DONE, 'status of status')
        return answer['node']

    def get(self, key):
        status = self.status()
        return status and status[key]

    def wait(self, seconds=20.0, **states):
        """Wait until status shows these; underscores stand for '-'."""
        wanted = {key.replace('_', '-'): value
                  for key, value in states.items()}
        last = {}

        def reached():
            status = self.status() or {}
            last.clear()
            last.update({key: status.get(key) for key in wanted})
            return all(status.get(key) in (value if isinstance(value, tuple)
                                           else (value,))
                       for key, value in wanted.items())
        try:
            wait_for(reached, f'{self.name}: {wanted}', seconds)
        except Failure as failure:
            raise Failure(f'{failure}; it shows {last}') from None

    def twinlog(self, command, *options, expect=None):
        """Run `twinlog COMMAND` for this node.

        While a view is being agreed it says so, and to try again.
        """
        end = time.monotonic() + 10
        while True:
            result = run([TWINLOG, '--control', self.control, command,
                          *options])
            if result.returncode != FAILED or time.monotonic() > end \
                    or 'just being agreed' not in result.stderr:
                break
            time.sleep(0.05)
        if expect is not None:
            check(result.returncode == expect,
                  f'twinlog {command} {" ".join(options)} on {self.name}: exit'
                  f' status {result.returncode}, expected {expect}:'
                  f' {(result.stdout + result.stderr).strip()!r}')
        return result

    # ---- Its NBD clients ----

    def uri(self):
        return f'nbd+unix:///?socket={self.socket}'

    def connect(self):
        client = nbd.NBD()
        client.connect_unix(self.socket)
        return client


class Pair:
    """Nodes `a` and `b` of one volume.

    ARBITER: True for the file arbiter, False for none, or a command line.
    STORE: a directory for store= files, or None.  Other keywords are
    parameters of the plugin.
    """

    def __init__(self, size='16M', volume='slog0', arbiter=True, store=None,
                 host='127.0.0.1', names=('a', 'b'), directory=None,
                 **parameters):
        self.directory = directory or make_directory()
        self.volume = volume
        self.arbiter_directory = os.path.join(self.directory, 'arbiter')
        os.makedirs(self.arbiter_directory, exist_ok=True)
        parameters = {'size': size, **parameters}
        if arbiter is True:
            arbiter = f'{shlex.quote(ARBITER)} ' \
                      f'{shlex.quote(self.arbiter_directory)}'
        if arbiter:
            parameters['arbiter'] = arbiter
        self.ports = [free_port(host), free_port(host)]
        self.addresses = [address(host, port) for port in self.ports]
        self.nodes = []
        for i, name in enumerate(names):
            mine = dict(parameters)
            if store:
                mine['store'] = os.path.join(store, f'{volume}-{name}.ram')
            self.nodes.append(Node(self.directory, volume, name,
                                   self.addresses[i], self.addresses[1 - i],
                                   mine))
        self.a, self.b = self.nodes
        stop_at_end(self)

    def start(self):
        """Start both, wait until they are up and, if they can, connected."""
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            node.wait_up()
        for node in self.nodes:
            node.wait(connection_state='Connected')
        return self

    def create(self):
        """Start both, and create the volume with `a` as its primary."""
        self.start()
        self.a.twinlog('create', expect=DONE)
        self.wait_complete(self.a)
        return self

    def other(self, node):
        return self.nodes[1 - self.nodes.index(node)]

    def wait_complete(self, primary, seconds=15.0):
        """Wait until PRIMARY serves and both hold everything."""
        primary.wait(seconds, role='Primary', disk_state='UpToDate',
                     connection_state='Connected', peer_role='Secondary',
                     peer_disk_state='UpToDate', copies=2, suspended=False)
        self.other(primary).wait(
            seconds, role='Secondary', disk_state='UpToDate',
            connection_state='Connected', peer_role='Primary',
            peer_disk_state='UpToDate')

    def fail_over(self, dead):
        """Promote the other node of DEAD, whose process was killed."""
        other = self.other(dead)
        other.wait(5.0, connection_state='Connecting')
        other.twinlog('promote', expect=DONE)
        equal(other.get('role'), 'Primary', f'role of {other.name}')
        return other

    def stop(self):
        for node in self.nodes:
            node.clean_up()


# ---- The frame of a test ----

_directories = []


def make_directory(parent=None):
    """A directory that is removed at the end of the test."""
    directory = tempfile.mkdtemp(prefix='twinlog-test-', dir=parent)
    _directories.append(directory)
    return directory


def stop_at_end(pair):
    """PAIR has `stop` and `nodes`, whose logs tell of a failure."""
    _pairs.append(pair)


def clean_up():
    for pair in _pairs:
        pair.stop()
    _pairs.clear()
    for directory in _directories:
        # An arbiter command that a killed node had started may still write.
        for _ in range(100):
            shutil.rmtree(directory, ignore_errors=True)
            if not os.path.exists(directory):
                break
            time.sleep(0.05)
    _directories.clear()


def show_logs():
    for pair in _pairs:
        for node in pair.nodes:
            lines = node.log_lines()
            print(f'---- log of {node.volume}, node {node.name}'
                  f' ({len(lines)} lines)', file=sys.stderr)
            for line in lines[-40:]:
                print(line, file=sys.stderr)


def main(*tests):
    """Run the functions in turn, each with a clean slate.  Does not return.

    Names on the command line choose among them.
    """
    wanted = sys.argv[1:]
    failed = 0
    for path in (PLUGIN, TWINLOG):
        if not os.path.exists(path):
            print(f'{path} is missing: set TWINLOG_BUILD and TWINLOG_SOURCE,'
                  ' or run this through meson test', file=sys.stderr)
            sys.exit(1)
    requires_program('nbdkit')
    atexit.register(clean_up)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        began = time.monotonic()
        try:
            test()
        except Exception as error:
            traceback.print_exc()
            show_logs()
            print(f'FAILED {test.__name__}: {error}', flush=True)
            failed += 1
        else:
            print(f'ok {test.__name__} ({time.monotonic() - began:.1f} s)',
                  flush=True)
        clean_up()
    sys.exit(1 if failed else 0)


def expect_error(function, number, what):
    """FUNCTION of libnbd fails with this errno value."""
    try:
        function()
    except nbd.Error as error:
        check(error.errnum == number,
              f'{what}: failed with {error}, expected'
              f' {errno.errorcode[number]}')
        return
    raise Failure(f'{what}: succeeded, expected {errno.errorcode[number]}')
