"""What the pair is compared with: each is started, measured through one of two
clients, and gone at the end.  Every peer has a URI for libnbd, or the words
that name it to qemu-img, or both.
"""

import json
import os
import re
import socket
import subprocess

import pair

SIZE = '128M'
BARE = os.path.join(pair.BUILD, 'tests/bench/nbdkit-bare-plugin.so')
TARGET = 'iqn.2026-01.invalid.twinlog:ram'

# Names of peers that others ask for.
PAIR = 'the pair'
MEMORY = 'memory, Unix socket'
BARE_MIRROR = 'bare mirror'
QUORUM = 'quorum, through its daemon'
DIRECT = 'quorum, direct'


class Peer:
    def __init__(self, name, uri=None, image=None, column=None):
        self.name = name
        self.column = column or name  # short
        self.uri = uri      # of an NBD export, for twinlog bench
        self.image = image  # words for qemu-img bench


class Peers:
    """Starts them; `stop` ends what was started."""

    def __init__(self):
        self.nodes = []
        self.directory = pair.make_directory()
        self.processes = []
        pair.stop_at_end(self)

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, words, up, environment=None):
        with open(self.path('log'), 'a') as log:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment, preexec_fn=pair.die_with_parent)
        self.processes.append(process)

        def ready():
            pair.check(process.poll() is None, f'{words[0]} ended: '
                                               f'{self.log()}')
            return up()
        pair.wait_for(ready, f'{words[0]} is up', 20)

    def log(self):
        with open(self.path('log')) as log:
            return log.read()[-400:]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    # ---- nbdkit's memory plugin, not mirrored ----

    def start_memory(self, name):
        path = self.path(name)
        self.start(['nbdkit', '-f', '-U', path, 'memory', SIZE],
                   lambda: os.path.exists(path))
        return path

    def memory(self):
        path = self.start_memory('memory')
        return Peer(MEMORY, f'nbd+unix:///?socket={path}',
                    unix_image(path), 'memory, Unix')

    def memory_tcp(self):
        port = pair.free_port()
        self.start(['nbdkit', '-f', '-i', '127.0.0.1', '-p', str(port),
                    'memory', SIZE], lambda: answers(port))
        return Peer('memory, TCP', f'nbd://127.0.0.1:{port}',
                    ['-f', 'raw', f'nbd://127.0.0.1:{port}'])

    def bare(self):
        """Memory that is mirrored to another process, and nothing else."""
        path = self.path('bare')
        self.start(['nbdkit', '-f', '-U', path, BARE],
                   lambda: os.path.exists(path))
        return Peer(BARE_MIRROR, f'nbd+unix:///?socket={path}',
                    unix_image(path))

    # ---- QEMU's quorum of two of them ----

    def quorum(self):
        """Through the daemon of its own."""
        children = [self.start_memory(f'child{i}') for i in (0, 1)]
        path = self.path('quorum')
        words = ['qemu-storage-daemon']
        for i, child in enumerate(children):
            words += ['--blockdev', f'driver=nbd,node-name=c{i},'
                      f'server.type=unix,server.path={child}']
        self.start([*words, '--blockdev', 'driver=quorum,node-name=q,'
                    'vote-threshold=2,children.0=c0,children.1=c1',
                    '--nbd-server', f'addr.type=unix,addr.path={path}',
                    '--export', 'type=nbd,id=e,node-name=q,name=,'
                    'writable=on'], lambda: os.path.exists(path))
        return Peer(QUORUM, f'nbd+unix:///?socket={path}', unix_image(path),
                    'quorum')

    def quorum_direct(self):
        """Within qemu-img, without that hop."""
        words = 'driver=quorum,vote-threshold=2'
        for i in (0, 1):
            child = self.start_memory(f'direct{i}')
            words += f',children.{i}.driver=nbd,children.{i}.server.type=' \
                     f'unix,children.{i}.server.path={child}'
        return Peer(DIRECT, image=['--image-opts', words])

    # ---- An iSCSI RAM disk ----

    def iscsi(self, root, ram):
        """tgt, unpacked in ROOT, with a file in RAM, a folder on tmpfs."""
        port = pair.free_port()
        disk = os.path.join(ram, 'disk')
        with open(disk, 'wb') as file:
            file.truncate(128 << 20)
        environment = {**os.environ, 'TGT_IPC_SOCKET': self.path('tgt')}
        self.start([f'{root}/usr/sbin/tgtd', '-f', '--iscsi',
                    f'portal=127.0.0.1:{port}'], lambda: answers(port),
                   environment)
        for words in (
                ['--op', 'new', '--mode', 'target', '--tid', '1', '-T',
                 TARGET],
                ['--op', 'new', '--mode', 'logicalunit', '--tid', '1',
                 '--lun', '1', '-b', disk],
                ['--op', 'bind', '--mode', 'target', '--tid', '1', '-I',
                 'ALL']):
            result = pair.run([f'{root}/usr/sbin/tgtadm', '--lld', 'iscsi',
                               *words], env=environment)
            pair.equal(result.returncode, 0, f'tgtadm: {result.stderr}')
        return Peer('iSCSI RAM disk', image=[
            '-f', 'raw', f'iscsi://127.0.0.1:{port}/{TARGET}/1'])


def unix_image(path):
    return ['--image-opts', 'driver=nbd,server.type=unix,'
            f'server.path={path}']


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


def bench(uri, seconds, *words, inside=list):
    """What twinlog bench says of it, run by the words that INSIDE makes of its
    own."""
    result = pair.run(inside([
        pair.TWINLOG, 'bench', '--uri', uri, '--overwrite', '--json',
        '--seconds', str(seconds), *words]), timeout=600)
    pair.equal(result.returncode, 0, f'bench of {uri}: {result.stderr}')
    return json.loads(result.stdout)


def qemu_bench(peer, size, depth, seconds, counts):
    """Writes a second through qemu-img bench.  COUNTS keeps how many writes
    take about SECONDS."""
    key = (peer.name, size, depth)
    count = counts.get(key, 200)
    while True:
        result = pair.run(['qemu-img', 'bench', '-w', '-t', 'writeback',
                           '-c', count, '-d', depth, '-s', size, *peer.image])
        pair.equal(result.returncode, 0,
                   f'qemu-img bench of {peer.name}: {result.stderr}')
        took = float(re.search(r'completed in ([0-9.]+) seconds',
                               result.stdout).group(1))
        rate = count / max(took, 1e-3)
        known = key in counts
        counts[key] = max(50, int(rate * seconds))
        if known or took >= seconds / 2:
            return rate
        count = counts[key]
