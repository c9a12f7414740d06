"""mptcp=on, two cables between the machines: both carry the mirror, the loss of
one fails no write and changes no view, and a path that the kernel has given up
comes back as the manual says.  Where one node, one kernel or one cable only
takes part there is one path, as with plain TCP.
"""

import pair
from load import Load
from network import NetworkPair, has_mptcp, requires_network
from rounds import work_for, work_until

SOON = 20.0  # s


def two_cables(**parameters):
    """A busy pair whose mirror has two paths."""
    load = Load(NetworkPair.add_second_cable, arbiter=False, deadline=4,
                mptcp='on', **parameters)
    paths(load, 2)
    return load


def paths(load, number):
    """Wait until each node says so."""
    work_until(load.client,
               lambda: all(node.get('paths') == number
                           for node in load.both.nodes),
               f'{number} paths', SOON)


def sent(load):
    """Bytes that each cable has carried from node a."""
    counts = []
    for name in load.both.cables:
        file = f'/sys/class/net/{name}/statistics/tx_bytes'
        # A namespace sees its own /sys only where that is mounted anew.
        shown = load.both.spaces[0].run(
            'unshare', '--mount', 'sh', '-c',
            f'mount -t sysfs sysfs /sys && cat {file}')
        counts.append(int(shown.stdout))
    return counts


def nothing_happened(load, view, name):
    pair.equal(load.client.failed, 0, 'failed requests')
    pair.equal(load.both.a.get('view'), view, 'view')
    pair.equal(load.both.a.status()['counters']['resyncs'], 0, 'resyncs')
    load.end(name)


def test_each_is_cut():
    """One after the other, so that each has been the only one."""
    load = two_cables()
    view = load.both.a.get('view')
    said = [0, 0]
    for name in 2 * list(load.both.cables):
        said = says(load, said, 'paths of the mirror: 2')
        before = sent(load)
        work_until(load.client,
                   lambda: all(now > then + 100000 for now, then
                               in zip(sent(load), before)),
                   'both cables carry', SOON)
        load.both.cable('down', name)
        paths(load, 1)
        done = load.client.completed
        work_until(load.client, lambda: load.client.completed > done + 100,
                   'one cable carries', SOON)
        said = says(load, said, 'paths of the mirror: 1 of 2: look')
        load.both.cable('up', name)
        paths(load, 2)
    nothing_happened(load, view, 'each of two cables cut')


def says(load, since, words):
    """Wait until each log has WORDS beyond its first lines, so many as SINCE
    says; how many there are then.
    """
    work_until(load.client,
               lambda: all(any(words in line for line in node.log_lines(n))
                           for node, n in zip(load.both.nodes, since)),
               f'both say: {words}', SOON)
    return [len(node.log_lines()) for node in load.both.nodes]


def test_given_up():
    """The kernel ends a path that was dead for long, here soon."""
    load = two_cables()
    view = load.both.a.get('view')
    both = load.both
    for space in both.spaces:
        space.run('sysctl', '-q', '-w', 'net.ipv4.tcp_retries2=3')
    for name, hosts in both.cables.items():
        both.cable('down', name)
        work_until(load.client,
                   lambda: all(one_is_left(space) for space in both.spaces),
                   'the path is given up', SOON)
        both.cable('up', name)
        for space, host in zip(both.spaces, hosts):
            announce_again(space, host, name)
        paths(load, 2)
    nothing_happened(load, view, 'paths that were given up')


def one_is_left(space):
    return len(space.run('ss', '-tnH').stdout.splitlines()) == 1


def announce_again(space, host, name):
    """The commands of the manual page."""
    for line in space.run('ip', 'mptcp', 'endpoint').stdout.splitlines():
        words = line.split()
        if words[0] == host and 'signal' in words:
            space.run('ip', 'mptcp', 'endpoint', 'delete', 'id',
                      words[words.index('id') + 1])
    space.run('ip', 'mptcp', 'endpoint', 'add', host, 'dev', name, 'signal')


def test_one_path():
    """Only one node has it on, or none has a second cable."""
    for a, b in (('on', 'off'), ('off', 'on'), ('on', 'on')):
        def prepare(both):
            for node, value in zip(both.nodes, (a, b)):
                node.parameters['mptcp'] = value
            if a != b:
                both.add_second_cable()
        load = Load(prepare, arbiter=False)
        work_for(load.client, 1.0)
        paths(load, 1)
        load.both.b.kill()
        work_until(load.client, lambda: load.both.a.get('paths') == 0,
                   'no path', SOON)
        load.both.b.spawn()
        load.whole()
        paths(load, 1)
        load.at_rest(f'mptcp {a} and {b}')
        load.both.stop()


def test_kernel_without():
    """One line, and a node that has not begun."""
    both = NetworkPair(arbiter=False, mptcp='on')
    both.spaces[0].run('sysctl', '-q', '-w', 'net.mptcp.enabled=0')
    result = pair.run(both.a.arguments())
    pair.check(result.returncode != 0, 'it has started')
    pair.contains(result.stderr, ['mptcp=on', 'no multipath TCP',
                                  'net.mptcp.enabled'], 'what it says')
    both.a.parameters['mptcp'] = 'off'
    both.create()
    both.stop()


if __name__ == '__main__':
    requires_network()
    if not has_mptcp():
        pair.skip('the kernel has no multipath TCP, or it is switched off')
    pair.main(test_each_is_cut, test_given_up, test_one_path,
              test_kernel_without)
