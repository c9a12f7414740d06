"""A network between two nodes that knows frames: a rule decides for each frame
of the mirror protocol what becomes of it.

A rule is a function of a Frame.  It answers PASS, DROP, CUT (the connection
ends instead of the frame), CUT_AFTER, or the bytes that go on instead.  It may
sleep: then whatever follows in that direction is late too, as on a network.
Rules run in threads of the proxy, one at a time.
"""

import collections
import socket
import struct
import threading

import frames
import pair

PASS, DROP, CUT, CUT_AFTER = 'pass', 'drop', 'cut', 'cut after'

NAMES = ('', 'hello', 'welcome', 'write', 'zero', 'ack', 'bitmap',
         'sync-begin', 'sync-chunk', 'sync-done', 'view', 'view-ack',
         'handover', 'ping', 'pong', 'bye')

Frame = collections.namedtuple('Frame', 'kind source data')


def kind(frame):
    number = frame[4]
    return NAMES[number] if number < len(NAMES) else f'type {number}'


def pass_all(frame):
    return PASS


class Connection:
    """One connection through the proxy, with a thread for each direction."""

    def __init__(self, proxy, near, far, dialler, listener):
        self.sockets = (near, far)
        for one in self.sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.running = 2
        self.threads = [
            threading.Thread(target=self.carry, args=way, daemon=True)
            for way in ((proxy, near, far, dialler),
                        (proxy, far, near, listener))]

    def cut(self):
        """Both ways; they may be closed already."""
        for one in self.sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def carry(self, proxy, source, target, name):
        data = b''
        try:
            while True:
                more = source.recv(1 << 18)
                if not more:
                    break
                data += more
                while len(data) >= frames.SIZE:
                    length = frames.SIZE + struct.unpack('>I', data[44:48])[0]
                    if len(data) < length:
                        break
                    frame, data = data[:length], data[length:]
                    verdict = proxy.judge(Frame(kind(frame), name, frame))
                    if verdict in (PASS, CUT_AFTER):
                        target.sendall(frame)
                    elif isinstance(verdict, bytes):
                        target.sendall(verdict)
                    if verdict in (CUT, CUT_AFTER):
                        return
        except OSError:
            pass
        finally:
            self.cut()
            proxy.ended(self)


class Proxy:
    """Stands between the two nodes of a pair, whichever dials."""

    def __init__(self, both):
        self.rule = pass_all
        self.open = True
        self.lock = threading.Lock()
        self.rules = threading.Lock()
        self.connections = []
        self.listeners = []
        self.threads = []
        for node, other, port in zip(both.nodes, reversed(both.nodes),
                                     both.ports):
            listener = socket.create_server(('127.0.0.1', pair.free_port()))
            other.parameters['peer'] = '127.0.0.1:%d' \
                % listener.getsockname()[1]
            self.listeners.append(listener)
            self.threads.append(threading.Thread(
                target=self.accept, daemon=True,
                args=(listener, port, other.name, node.name)))
        for thread in self.threads:
            thread.start()

    def judge(self, frame):
        with self.rules:
            return self.rule(frame)

    def accept(self, listener, port, dialler, name):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                if not self.open:
                    raise OSError
                far = socket.create_connection(('127.0.0.1', port), 5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            connection = Connection(self, near, far, dialler, name)
            with self.lock:
                self.connections.append(connection)
                if not self.open:
                    connection.cut()
                for thread in connection.threads:
                    thread.start()

    def ended(self, connection):
        """One of its directions; its descriptors go with the second."""
        with self.lock:
            connection.running -= 1
            if connection.running == 0:
                self.connections.remove(connection)
                for one in connection.sockets:
                    one.close()

    def cut(self):
        """End the connections that are there."""
        with self.lock:
            gone = list(self.connections)
            for connection in gone:
                connection.cut()
        for connection in gone:
            for thread in connection.threads:
                thread.join(10)

    def close(self):
        """No connection from now on."""
        self.open = False
        self.cut()

    def stop(self):
        self.close()
        while self.listeners:
            listener = self.listeners.pop()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self.threads:
            thread.join(10)


class ProxiedPair(pair.Pair):
    """A pair whose nodes reach each other through a Proxy."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.proxy = Proxy(self)

    def stop(self):
        super().stop()
        self.proxy.stop()
