"""Wrong parameters: one clear line, a nonzero status, nothing left behind."""

import os
import socket

import pair


def refused(at, words, arguments=None, **changes):
    """Start a node with CHANGES: it must refuse, with WORDS in its one line."""
    before = snapshot(at)
    if os.path.exists(at.socket) and not at.running():
        os.unlink(at.socket)  # nbdkit leaves it behind
    result = pair.run(arguments or at.arguments(**changes), timeout=20,
                      env=pair.environment())
    lines = [line for line in result.stderr.splitlines() if line]
    pair.check(result.returncode > 0,
               f'{changes}: exit status {result.returncode}: {lines}')
    pair.check(len(lines) == 1, f'{changes}: not one line: {lines}')
    pair.contains(lines[0], words, f'{changes}')
    pair.equal(snapshot(at), before, f'{changes}: left behind')
    return lines[0]


def snapshot(node):
    """What is on disk of a node, names and contents, and its NBD socket."""
    found = {}
    for name in sorted(os.listdir(node.directory)):
        path = node.path(name)
        if name in ('log', 'nbd.sock', 'node.state.lock'):
            continue
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                found[name] = file.read()
        else:
            found[name] = None
    return found


def test_size():
    node = pair.Pair().a
    for size in ('0', '-4096'):
        refused(node, ['size'], size=size)
    for size in ('4097', '1M1', '511', '16777215'):
        refused(node, ['size'], size=size)
    pair.contains(refused(node, ['size'], size='1000000'), ['4096'],
                  'what a size must be')
    refused(node, ['memory', 'size'], size='64T')
    refused(node, ['size'], size='9E')
    refused(node, ['size'], size='rubbish')
    refused(node, ['size'], size=None)


def test_memory_limits():
    """The figure that is too small is named."""
    node = pair.Pair().a
    with open('/proc/meminfo') as meminfo:
        total = int(meminfo.readline().split()[1]) * 1024
    size = total // pair.BLOCK * pair.BLOCK + pair.GIB
    line = refused(node, ['memory'], size=size)
    pair.check(any(word.strip('(),:;.').isdigit() or word[0].isdigit()
                   for word in line.split()), f'no figure in {line!r}')
    # A file system that is too small for the store.
    if os.geteuid() == 0:
        script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
        small = node.path('small')
        os.mkdir(small)
        refused(node, ['small/ram', 'free'], arguments=[
            'unshare', '-m', '--propagation', 'private', 'sh', '-c', script,
            small, *node.arguments(store=os.path.join(small, 'ram'))])


def test_lock_limit():
    """Not privileged and with a limit of 8 MiB: refused, lock=off starts."""
    pair.requires_root()
    both = pair.Pair(size='64M')
    node = both.a
    os.chmod(both.directory, 0o711)
    os.chown(node.directory, 65534, 65534)
    plugin = pair.PLUGIN
    if pair.run(['setpriv', '--reuid=65534', '--regid=65534',
                 '--clear-groups', 'test', '-r', plugin]).returncode != 0:
        print('the build tree is not readable by others: not tried')
        return
    other_user = ['setpriv', '--reuid=65534', '--regid=65534',
                  '--clear-groups', 'prlimit', '--memlock=8388608:8388608']
    refused(node, ['lock', 'RLIMIT_MEMLOCK', '8192 KiB'],
            arguments=[*other_user, *node.arguments()])
    node.spawn(arguments=[*other_user, *node.arguments(lock='off')])
    node.wait_up()


def test_names():
    node = pair.Pair().a
    refused(node, ['name'], name=None)
    refused(node, ['node'], node=None)
    for bad in ('', '.a', '-a', 'a/b', 'a b', 'x' * 64, 'a\nb'):
        refused(node, ['name'], name=bad)
        refused(node, ['node'], node=bad)


def test_addresses():
    both = pair.Pair()
    node = both.a
    refused(node, ['listen'], listen=None)
    refused(node, ['peer'], peer=None)
    for bad in ('', '127.0.0.1', 'localhost:10810', '127.0.0.1:0',
                '127.0.0.1:65536', '127.0.0.1:x', ':10810', '1.2.3:10810',
                '::1:10810', '[::1]', '[::1:10810', '127.0.0.1:10810:1'):
        refused(node, ['listen'], listen=bad)
        refused(node, ['peer'], peer=bad)
    # Not an address of this machine.
    refused(node, ['192.0.2.1'], listen='192.0.2.1:10810')
    # In use.
    with socket.socket() as other:
        other.bind(('127.0.0.1', both.ports[0]))
        other.listen()
        refused(node, [str(both.ports[0]), 'in use'])


def test_choices():
    node = pair.Pair(arbiter=False).a
    refused(node, ['on-partner-loss'], on_partner_loss='shrug')
    refused(node, ['on-partner-loss', 'arbiter'], on_partner_loss='arbiter')
    refused(node, ['on-partner-loss', 'continue', 'arbiter'],
            on_partner_loss='continue', arbiter='true')
    for bad in ('0', '0.1', '301', '-1', 'soon', '5x', '', 'nan', 'inf'):
        refused(node, ['deadline'], deadline=bad)
    for key in ('lock', 'flush'):
        refused(node, [key], **{key: 'perhaps'})
    refused(node, ['colour'], colour='red')
    refused(node, ['arbiter'], arbiter='')


def test_config_file():
    """The same words in a file; the command line wins over it."""
    both = pair.Pair()
    node = both.a
    path = node.path('node.conf')
    words = dict(node.parameters)

    def arguments(**changes):
        full = node.arguments()
        here = full.index(pair.PLUGIN)
        return [*full[:here + 1], f'config={path}',
                *(f'{key.replace("_", "-")}={value}'
                  for key, value in changes.items())]

    def write(words, extra=''):
        with open(path, 'w') as file:
            file.write('; a comment\n[slog0]\n')
            for key, value in words.items():
                file.write(f'{key} = {value}\n')
            file.write(extra)

    write({**words, 'size': '32M', 'deadline': '2.5'})
    node.spawn(arguments=arguments(size='16M'))
    node.wait_up()
    status = node.status()
    pair.equal(status['size'], 16 * pair.MIB, 'size')
    pair.equal(status['deadline-seconds'], 2.5, 'deadline-seconds')
    pair.equal(status['name'], 'slog0', 'name')
    node.kill()
    os.unlink(node.control)

    write(words, 'colour = red\n')
    refused(node, ['colour', path], arguments=arguments())
    write(words, 'this is no setting\n')
    line = refused(node, [path], arguments=arguments())
    number = 3 + len(words)
    pair.contains(line, [str(number)], 'line number')
    write({**words, 'size': '4095'})
    refused(node, ['size'], arguments=arguments())
    path = node.path('missing.conf')
    refused(node, [path], arguments=arguments())


def test_bare_size():
    node = pair.Pair().a
    full = node.arguments(size=None)
    here = full.index(pair.PLUGIN)
    node.spawn(arguments=[*full[:here + 1], '8M', *full[here + 1:]])
    node.wait_up()
    pair.equal(node.get('size'), 8 * pair.MIB, 'size')


def test_paths():
    both = pair.Pair()
    node = both.a
    long = '/tmp/' + 'x' * 200 + '/ctl'
    refused(node, ['control'], control=long)
    plain = node.path('plain')
    open(plain, 'w').close()
    refused(node, ['plain'], control=plain + '/ctl')
    refused(node, ['plain'], state=plain + '/state')
    refused(node, ['plain'], store=plain + '/store')
    refused(node, [node.directory], store=node.directory)
    # A file that is there is not taken for a stale socket.
    refused(node, [plain], control=plain)
    pair.check(os.path.isfile(plain), 'a file was removed for a socket')
    # Directories are made where they are missing, for the node alone.
    control, state = node.path('run/ctl'), node.path('lib/state')
    node.control = control
    node.start(control=control, state=state)
    for path in ('run', 'lib'):
        pair.equal(os.stat(node.path(path)).st_mode & 0o777, 0o700,
                   f'mode of {path}')


def test_same_place_twice():
    """A second node on the same control socket, state or store."""
    both = pair.Pair(store=pair.make_directory('/dev/shm'))
    both.a.start()
    other = pair.free_port()
    node = both.b
    common = {'node': 'a', 'listen': f'127.0.0.1:{other}'}
    refused(node, [both.a.control], control=both.a.control, **common)
    refused(node, [both.a.state], state=both.a.state, **common)
    refused(node, [both.a.parameters['store']],
            store=both.a.parameters['store'], **common)
    pair.check(both.a.status() is not None, 'the first node still answers')
    # What a killed node left does not keep its successor from starting.
    both.a.kill()
    pair.check(os.path.exists(both.a.control), 'no stale socket to try')
    both.a.start()


if __name__ == '__main__':
    pair.main(test_size, test_memory_limits, test_lock_limit, test_names,
              test_addresses, test_choices, test_config_file, test_bare_size,
              test_paths, test_same_place_twice)
