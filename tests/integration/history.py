"""A client that keeps many requests in flight and remembers what it did.

Every write has a number, and its blocks are filled with that number and the
block's own, so that a block read back tells which write it came from and
whether it is whole.  The history says which writes a block may hold: one that
was not certainly overwritten, that is, for which there is no acknowledged
write that was issued after the first one's acknowledgement.  A write that was
never acknowledged may appear or not; once read, it stays.
"""

import random
import struct

import nbd

from pair import BLOCK, MIB, Failure, check

ZEROES = bytes(BLOCK)


def pattern(number, block):
    """What write NUMBER puts into BLOCK; number 0 is the state of birth."""
    if number == 0:
        return ZEROES
    return struct.pack('>QQ', number, block) * (BLOCK // 16)


class Write:
    __slots__ = ('number', 'zero', 'issued', 'ended')

    def __init__(self, number, zero, issued, ended):
        self.number = number
        self.zero = zero
        self.issued = issued
        self.ended = ended  # moment of its acknowledgement, None: none yet


class Reading:
    """A read in flight, with what each of its blocks may hold."""

    def __init__(self, first, legal):
        self.first = first
        self.legal = legal


class History:
    """Per block, the writes whose content it may hold now."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.moment = 0  # a clock of issues and acknowledgements
        self.numbers = 0
        self.issued = 0
        self.acknowledged = 0
        self.lost = []
        self.readers = []  # the reads in flight
        birth = Write(0, True, 0, 0)
        self.candidates = [[birth] for _ in range(blocks)]

    def tick(self):
        self.moment += 1
        return self.moment

    def issue(self, first, count, zero):
        self.numbers += 1
        self.issued += 1
        write = Write(self.numbers, zero, self.tick(), None)
        for block in range(first, first + count):
            self.candidates[block].append(write)
        for reader in self.readers:
            for i, legal in enumerate(reader.legal):
                if first <= reader.first + i < first + count:
                    legal.append(write)
        return write

    def begin_read(self, first, count):
        """A read is issued: what it may return, kept up to date from now."""
        reader = Reading(first, [list(self.candidates[block])
                                 for block in range(first, first + count)])
        self.readers.append(reader)
        return reader

    def end_read(self, reader, content):
        """It ended; CONTENT is None where it failed."""
        self.readers.remove(reader)
        if content is None:
            return
        for i, legal in enumerate(reader.legal):
            block = reader.first + i
            part = content[i * BLOCK:(i + 1) * BLOCK]
            write = self.identify(legal, block, part)
            if write is None:
                self.lost.append('read: ' + self.describe(block, part))
            elif not write.zero:
                # Read, so it took effect, acknowledged or not.
                if write.ended is None:
                    write.ended = self.tick()
                self.overwritten(block, write)

    def acknowledge(self, write, first, count):
        if write.ended is None:
            write.ended = self.tick()
        self.acknowledged += 1
        for block in range(first, first + count):
            self.overwritten(block, write)

    def fail(self, write):
        """WRITE may have taken effect or not: it stays as if under way."""

    def overwritten(self, block, write):
        """WRITE took effect: drop what was certainly there before it."""
        self.candidates[block] = [
            old for old in self.candidates[block]
            if old.ended is None or old.ended >= write.issued]

    @staticmethod
    def identify(candidates, block, content):
        """The newest candidate that CONTENT is, or None."""
        for write in reversed(candidates):
            if content == pattern(0 if write.zero else write.number, block):
                return write
        return None

    def describe(self, block, content):
        number, where = struct.unpack('>QQ', content[:16])
        whole = content == pattern(number, where)
        wanted = [f'{write.number}{"z" if write.zero else ""}'
                  f'{"" if write.ended else "?"}'
                  for write in self.candidates[block]]
        return f'block {block} holds write {number} of block {where}' \
               f'{"" if whole else ", torn"}; may hold {" ".join(wanted)}'

    def settle(self, first, content):
        """Everything is quiet: what is there now is what stays there."""
        for i in range(len(content) // BLOCK):
            block = first + i
            part = content[i * BLOCK:(i + 1) * BLOCK]
            write = self.identify(self.candidates[block], block, part)
            if write is None:
                self.lost.append(self.describe(block, part))
                # Go on from what is there, so that it counts once.
                number = struct.unpack('>Q', part[:8])[0]
                write = Write(number, number == 0, self.tick(), None)
            if write.ended is None:
                write.ended = self.tick()
            self.candidates[block] = [write]


class Client:
    """DEPTH requests at a time against one node, recorded in a history."""

    def __init__(self, node, history, depth=16, seed=0):
        self.handle = node.connect()
        self.history = history
        self.depth = depth
        self.random = random.Random(seed)
        self.in_flight = 0
        self.failed = 0
        self.completed = 0
        self.problem = None  # an exception in a callback

    def range(self):
        # Most traffic goes to a few blocks, so that writes overlap.
        count = self.random.choice((1, 1, 1, 2, 4, 8))
        area = self.history.blocks
        if self.random.random() < 0.5:
            area = min(area, 64)
        return self.random.randrange(area - count), count

    def issue(self):
        first, count = self.range()
        kind = self.random.random()
        if kind < 0.1:
            self.issue_read(first, count)
        else:
            self.issue_write(first, count, kind < 0.2, kind > 0.8)
        self.in_flight += 1

    def issue_read(self, first, count):
        # Not an nbd.Buffer: libnbd 1.14 never frees those.
        buffer = bytearray(count * BLOCK)
        reader = self.history.begin_read(first, count)

        def done(failed):
            self.history.end_read(
                reader, None if failed else bytes(buffer))
        self.handle.aio_pread(buffer, first * BLOCK, self.ending(done))

    def issue_write(self, first, count, zero, fua):
        write = self.history.issue(first, count, zero)

        def done(failed):
            if failed:
                self.history.fail(write)
            else:
                self.history.acknowledge(write, first, count)
        ending = self.ending(done)
        flags = nbd.CMD_FLAG_FUA if fua else 0
        if zero:
            self.handle.aio_zero(count * BLOCK, first * BLOCK, ending,
                                 flags)
            return
        content = b''.join(pattern(write.number, block)
                           for block in range(first, first + count))
        self.handle.aio_pwrite(bytearray(content), first * BLOCK, ending,
                               flags)

    def ending(self, done):
        """The callback of a request, which ends with DONE (FAILED).

        An exception in it would be lost in libnbd: it is kept for work.
        """
        def ended(error):
            failed = bool(getattr(error, 'value', error))
            self.in_flight -= 1
            if failed:
                self.failed += 1
            else:
                self.completed += 1
            try:
                done(failed)
            except Exception as problem:
                self.problem = problem
            return 1
        return ended

    def alive(self):
        return not (self.handle.aio_is_dead() or self.handle.aio_is_closed())

    def work(self, until, refill=True):
        """Go on until UNTIL () is true or the server is gone.

        How many requests the death of the server left without an answer:
        whether those took effect is unknown.
        """
        failed = self.failed
        try:
            while not until():
                while refill and self.in_flight < self.depth:
                    self.issue()
                self.handle.poll(20)
        except nbd.Error:
            check(not self.alive(), 'an error on a connection that lives')
        if self.problem:
            raise self.problem
        return self.failed - failed

    def drain(self):
        """Wait until nothing is in flight."""
        self.work(lambda: self.in_flight == 0, refill=False)

    def close(self):
        if self.alive():
            self.drain()
            self.handle.shutdown()


def settle(handle, history):
    """Read the whole device and compare; nothing else may be in flight.

    How many blocks are not what they may be.
    """
    before = len(history.lost)
    size = history.blocks * BLOCK
    for offset in range(0, size, MIB):
        length = min(MIB, size - offset)
        history.settle(offset // BLOCK, bytes(handle.pread(length, offset)))
    return len(history.lost) - before


def nothing_lost(history):
    if history.lost:
        raise Failure(f'{len(history.lost)} blocks lost: '
                      + '; '.join(history.lost[:5]))
