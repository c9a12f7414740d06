"""Two network namespaces with a cable between them, one for each node.

Each namespace belongs to a process that does nothing and does not outlive the
test; with it go the namespace and the cable, whatever happens.
"""

import os
import subprocess

import pair

ADDRESSES = {4: ('192.0.2.1', '192.0.2.2'), 6: ('fd00::1', 'fd00::2')}
LENGTH = {4: 24, 6: 64}
SECOND = ('198.51.100.1', '198.51.100.2')  # of the second cable
PORT = 10810
NOBODY = '02:00:00:00:00:99'  # no interface has this address


class Namespace:
    """A network namespace, with the end of the cable in it."""

    def __init__(self):
        self.holder = subprocess.Popen(
            ['unshare', '--net', 'sleep', 'infinity'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
            preexec_fn=pair.die_with_parent)
        self.pid = self.holder.pid
        ours = os.readlink('/proc/self/ns/net')

        def parted():
            if self.holder.poll() is not None:
                pair.skip('no network namespace: '
                          + self.holder.stderr.read().strip())
            return os.readlink(f'/proc/{self.pid}/ns/net') != ours
        pair.wait_for(parted, 'a network namespace', 5, 0.005)

    def inside(self, words):
        return ['nsenter', '-t', str(self.pid), '-n', *words]

    def run(self, *words, may_fail=False):
        result = pair.run(self.inside(words))
        pair.check(may_fail or result.returncode == 0,
                   f'{" ".join(words)}: {result.stderr.strip()}')
        return result

    def stop(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stderr.close()


class NetworkPair(pair.Pair):
    """A pair whose nodes are in two namespaces; FAMILY is 4 or 6."""

    def __init__(self, family=4, **parameters):
        super().__init__(**parameters)
        self.family = family
        self.hosts = ADDRESSES[family]
        self.cables = {'cable': self.hosts}
        self.spaces = [Namespace(), Namespace()]
        first, second = self.spaces
        made = first.run('ip', 'link', 'add', 'cable', 'type', 'veth', 'peer',
                         'name', 'cable', 'netns', str(second.pid),
                         may_fail=True)
        if made.returncode != 0:
            pair.skip(f'no veth: {made.stderr.strip()}')
        for i, (node, space) in enumerate(zip(self.nodes, self.spaces)):
            space.run('ip', 'link', 'set', 'lo', 'up')
            space.run('ip', 'address', 'add',
                      f'{self.hosts[i]}/{LENGTH[family]}', 'dev', 'cable',
                      *(['nodad'] if family == 6 else []))
            space.run('ip', 'link', 'set', 'cable', 'up')
            node.parameters['listen'] = pair.address(self.hosts[i], PORT)
            node.parameters['peer'] = pair.address(self.hosts[1 - i], PORT)
            self.enter(node, space)

    @staticmethod
    def enter(node, space):
        """NODE is started inside SPACE from now on."""
        arguments = node.arguments

        def inside(*positional, **changes):
            return space.inside(arguments(*positional, **changes))
        node.arguments = inside

    def space(self, node):
        return self.spaces[self.nodes.index(node)]

    def add_second_cable(self):
        """Another one beside the first, and multipath TCP over both, as the
        manual page sets it up.
        """
        self.cables['cable2'] = SECOND
        first, second = self.spaces
        first.run('ip', 'link', 'add', 'cable2', 'type', 'veth', 'peer',
                  'name', 'cable2', 'netns', str(second.pid))
        for i, (node, space) in enumerate(zip(self.nodes, self.spaces)):
            space.run('ip', 'address', 'add', f'{SECOND[i]}/24', 'dev',
                      'cable2')
            space.run('ip', 'link', 'set', 'cable2', 'up')
            space.run('ip', 'mptcp', 'limits', 'set', 'subflows', '8',
                      'add_addr_accepted', '8')
            for name, hosts in self.cables.items():
                space.run('ip', 'mptcp', 'endpoint', 'add', hosts[i], 'dev',
                          name, 'signal')
            node.parameters['listen'] = f'0.0.0.0:{PORT}'

    def cable(self, state, name='cable'):
        """'down' or 'up'.  An IPv6 address does not survive it."""
        space = self.spaces[1]
        space.run('ip', 'link', 'set', name, state)
        if self.family == 6 and state == 'up':
            space.run('ip', 'address', 'add', f'{self.hosts[1]}/64', 'dev',
                      'cable', 'nodad')

    def deafen(self, node):
        """Whatever is sent to NODE from now on is lost."""
        i = self.nodes.index(node)
        self.spaces[1 - i].run('ip', 'neigh', 'replace', self.hosts[i],
                               'lladdr', NOBODY, 'nud', 'permanent', 'dev',
                               'cable')

    def undeafen(self, node):
        i = self.nodes.index(node)
        self.spaces[1 - i].run('ip', 'neigh', 'del', self.hosts[i], 'dev',
                               'cable')

    def limit(self, rate):
        """Bound what each node sends."""
        for space in self.spaces:
            space.run('tc', 'qdisc', 'replace', 'dev', 'cable', 'root',
                      'tbf', 'rate', rate, 'burst', '32kb', 'latency',
                      '100ms')

    def kill_connections(self):
        """Those of the mirror; the kernels of both sides hear of it."""
        result = self.spaces[0].run('ss', '-K', '-H', '-t', 'dst',
                                    f'[{self.hosts[1]}]' if self.family == 6
                                    else self.hosts[1], may_fail=True)
        if result.returncode != 0:
            pair.skip(f'ss -K: {result.stderr.strip()}')
        return len(result.stdout.splitlines())

    def stop(self):
        super().stop()
        for space in self.spaces:
            space.stop()
        self.spaces = []


def requires_network():
    pair.requires_root()
    for program in ('unshare', 'nsenter', 'ip', 'tc', 'ss'):
        pair.requires_program(program)


def has_mptcp():
    result = pair.run(['sysctl', '-n', 'net.mptcp.enabled'])
    return result.returncode == 0 and result.stdout.strip() == '1'
