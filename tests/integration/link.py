"""The network between two nodes, as a process that passes bytes on.

kill -9 of a process loses nothing that it had sent: the kernel still delivers
it.  The death of a machine, or of a link, does.  A Link stands before the
mirror port of a node and can go dark: whatever arrives is dropped, and the
connections stay open, until it is told to close them and to go on.
"""

import os
import selectors
import signal
import socket

import pair

BOTH, TO_NODE, FROM_NODE, NOWHERE = 'both', 'to', 'from', 'nowhere'


class Link:
    """Passes connections to PORT of 127.0.0.1 on, from a port of its own."""

    def __init__(self, port):
        self.target = port
        self.port = pair.free_port()
        listener = socket.create_server(('127.0.0.1', self.port))
        orders, self.orders = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                pair.die_with_parent()
                self.orders.close()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                Forwarder(listener, orders, self.target).run()
            finally:
                os._exit(1)
        listener.close()
        orders.close()

    def order(self, word):
        self.orders.sendall(word + b'\n')
        pair.equal(self.orders.recv(1), b'.', 'answer of a link')

    def dark(self, direction=BOTH):
        """From now on drop what arrives; open connections stay open."""
        self.order(b'dark ' + direction.encode())

    def light(self):
        """Close the connections that were there, and pass on new ones."""
        self.order(b'light')

    def stop(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.orders.close()
            self.pid = 0


class Forwarder:
    """What runs in the process of a link."""

    def __init__(self, listener, orders, target):
        self.listener = listener
        self.orders = orders
        self.target = target
        self.dark = NOWHERE
        self.others = {}  # socket: (the one at the other end, direction)
        self.selector = selectors.DefaultSelector()
        for source in (listener, orders):
            self.selector.register(source, selectors.EVENT_READ)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.orders:
                    self.obey()
                elif key.fileobj in self.others:
                    self.forward(key.fileobj)

    def accept(self):
        near, _ = self.listener.accept()
        if self.dark != NOWHERE:
            near.close()
            return
        try:
            far = socket.create_connection(('127.0.0.1', self.target), 5)
        except OSError:
            near.close()
            return
        for one, other, direction in ((near, far, TO_NODE),
                                      (far, near, FROM_NODE)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.settimeout(5)
            self.others[one] = other, direction
            self.selector.register(one, selectors.EVENT_READ)

    def forward(self, source):
        other, direction = self.others[source]
        try:
            data = source.recv(1 << 18)
            if data and self.dark not in (BOTH, direction):
                other.sendall(data)
        except OSError:
            data = b''
        if not data:
            if self.dark == NOWHERE:
                self.close(source)
            else:  # nobody hears of the end
                self.selector.unregister(source)
                self.others[source] = other, NOWHERE

    def close(self, source):
        for one in (source, self.others[source][0]):
            if self.others.pop(one)[1] != NOWHERE:
                self.selector.unregister(one)
            one.close()

    def obey(self):
        words = self.orders.recv(100).decode().split()
        if not words:
            os._exit(0)
        if words[0] == 'dark':
            self.dark = words[1]
        else:
            self.dark = NOWHERE
            while self.others:
                self.close(next(iter(self.others)))
        self.orders.sendall(b'.')


class LinkedPair(pair.Pair):
    """A pair whose two nodes reach each other through links."""

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.links = [Link(port) for port in self.ports]
        self.a.parameters['peer'] = f'127.0.0.1:{self.links[1].port}'
        self.b.parameters['peer'] = f'127.0.0.1:{self.links[0].port}'

    def dark(self, towards=None):
        """Drop everything, or only what goes to the node TOWARDS."""
        for node, link in zip(self.nodes, self.links):
            if towards is None:
                link.dark()
            else:
                link.dark(TO_NODE if node is towards else FROM_NODE)

    def light(self):
        for link in self.links:
            link.light()

    def stop(self):
        super().stop()
        for link in self.links:
            link.stop()
