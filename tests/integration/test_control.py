"""The control socket: who may use it, and what it makes of bad requests."""

import json
import os
import socket
import stat

import pair


def as_nobody(function):
    """What FUNCTION returns (a str) in a process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.write(writing, function().encode())
            code = 0
        except Exception as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_another_user():
    pair.requires_root()
    both = pair.Pair()
    node = both.a.start()
    os.chmod(both.directory, 0o711)
    os.chmod(node.directory, 0o711)
    mode = stat.S_IMODE(os.stat(node.control).st_mode)
    pair.equal(mode, 0o600, 'mode of the control socket')
    pair.equal(as_nobody(lambda: str(node.ask({'command': 'status'}, 5)))[:15],
               'PermissionError', 'connecting as another user')
    # Somebody opened it wide: the node still looks who asks.
    os.chmod(node.control, 0o666)
    for request in ('status', 'create', 'promote'):
        answer = json.loads(as_nobody(
            lambda: json.dumps(node.ask({'command': request}, 5))))
        pair.equal(answer['status'], pair.REFUSED, f'status of {request}')
        pair.contains(answer['text'], ['user'], 'text')
        pair.check('node' not in answer, 'status told to another user')
    pair.equal(node.get('view')['number'], 0, 'view')


def test_bad_requests():
    node = pair.Pair().a.start()
    before = node.status()
    deep = b'[' * 3000 + b']' * 3000
    for request in (b'\n', b'rubbish\n', b'{}\n', b'[]\n', b'"status"\n',
                    b'{"command":7}\n', b'{"command":null}\n',
                    b'{"command":"dance"}\n',
                    b'{"command":"status","loud":true}\n',
                    b'{"command":"promote","fenced":"yes"}\n',
                    b'{"command":"promote","alone":true}\n',
                    b'{"command":"create","alone":1}\n',
                    b'{"command":"status"} {"command":"status"}\n',
                    b'\xff\xfe\n', deep + b'\n'):
        answer = node.ask(request, 5)
        pair.check(answer is not None, f'no answer to {request[:60]}')
        pair.equal(answer['status'], pair.USAGE, f'answer to {request[:60]}')
        pair.check(answer['text'] and '\n' not in answer['text'],
                   f'text for {request[:60]}: {answer["text"]!r}')
    after = node.status()
    for key in ('role', 'disk-state', 'view'):
        pair.equal(after[key], before[key], key)


def test_endless_line():
    """A line without an end is cut off, and costs no memory."""
    node = pair.Pair().a.start()
    with socket.socket(socket.AF_UNIX) as control:
        control.settimeout(10)
        control.connect(node.control)
        sent = 0
        try:
            while sent < 64 * pair.MIB:
                sent += control.send(b'x' * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
        pair.check(sent < 8 * pair.MIB, f'{sent} bytes of a line were taken')
    pair.check(node.status() is not None, 'the node answers')


def test_idle_and_many():
    """Idle connections keep nobody out, and no descriptor leaks."""
    node = pair.Pair().a.start()

    def descriptors():
        return len(os.listdir(f'/proc/{node.pid()}/fd'))
    before = descriptors()
    idle = []
    for _ in range(10):
        control = socket.socket(socket.AF_UNIX)
        control.connect(node.control)
        control.sendall(b'{"command":')
        idle.append(control)
    pair.check(node.status() is not None, 'the node answers')
    for control in idle:
        control.close()
    for _ in range(200):
        pair.check(node.status() is not None, 'the node answers')
    pair.wait_for(lambda: descriptors() <= before, 'descriptors are closed')


def test_client_leaves_early():
    """A client that does not wait for its answer harms nobody."""
    node = pair.Pair().a.start()
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(node.control)
            control.sendall(b'{"command":"status"}\n')
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(node.control)
            control.sendall(b'{"command":"create"}\n')
    pair.check(node.status() is not None, 'the node answers')


if __name__ == '__main__':
    pair.main(test_another_user, test_bad_requests, test_endless_line,
              test_idle_and_many, test_client_leaves_early)
