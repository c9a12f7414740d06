"""Was what the clients saw possible?

A record of all requests of a volume, which is judged at rest.  Each block is a
register whose values are the numbers of writes, no two alike.  For those
linearizability is decided without a search (Gibbons and Korach, "Testing
shared memories", 1997): a value with its write and its reads spans from the
first of their ends to the last of their starts.  Where the end comes first,
the value must have stood all the time between (a forward zone), else at some
moment in between (a backward zone).  The record is linearizable if and only if
no two forward zones overlap, no backward zone lies within a forward one, and
no read ends before its write starts.

A request that failed may have taken effect, but only until its client heard of
the failure, and counts only where it was read: nothing that is older may come
up again over what was written later.  Zeroes have no number, so that less is
known: a zero request that succeeded and each read of zeroes is a backward zone
of its own, and a read of zeroes must not come after a write that came after
every zero request.

A Record stands where a Client of history.py expects a History.
"""

import struct

from pair import BLOCK
from history import pattern

NEVER = float('inf')
ZERO, TORN = 0, -1


class Write:
    """A write or zero request; without an end it is still under way."""
    __slots__ = ('number', 'zero', 'first', 'count', 'start', 'end', 'done')

    def __init__(self, number, zero, first, count, start):
        self.number = number
        self.zero = zero
        self.first = first
        self.count = count
        self.start = start
        self.end = NEVER
        self.done = False  # acknowledged


class Read:
    """COUNT blocks, and the numbers that were found in them."""
    __slots__ = ('first', 'count', 'start', 'end', 'seen')

    def __init__(self, first, count, start):
        self.first = first
        self.count = count
        self.start = start
        self.end = NEVER
        self.seen = None


def number_of(block, content):
    """Which write CONTENT of BLOCK comes from."""
    number, where = struct.unpack('>QQ', content[:16])
    if content != pattern(number, block) or (number and where != block):
        return TORN
    return number


class Record:
    """Every request of one volume since it was last judged at rest."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.moment = 0  # a clock of issues and ends
        self.numbers = 0
        self.issued = self.acknowledged = self.checked = 0
        self.lost = []  # what is wrong, in words
        self.birth = {}  # block: the number that it began with
        self.begin()

    def begin(self):
        self.writes = []
        self.reads = []

    def tick(self):
        self.moment += 1
        return self.moment

    # ---- What a client did ----

    def issue(self, first, count, zero):
        self.numbers += 1
        self.issued += 1
        write = Write(self.numbers, zero, first, count, self.tick())
        self.writes.append(write)
        return write

    def acknowledge(self, write, first, count):
        write.end = self.tick()
        write.done = True
        self.acknowledged += 1

    def fail(self, write):
        """The client was told that it failed, or lost its connection."""
        write.end = self.tick()

    def begin_read(self, first, count):
        return Read(first, count, self.tick())

    def end_read(self, read, content):
        """CONTENT is None where it failed."""
        if content is None:
            return
        read.end = self.tick()
        read.seen = [number_of(read.first + i,
                               content[i * BLOCK:(i + 1) * BLOCK])
                     for i in range(read.count)]
        self.reads.append(read)

    def settle(self, first, content):
        """Nothing else is in flight: CONTENT is there from FIRST on."""
        self.end_read(self.begin_read(first, len(content) // BLOCK), content)

    # ---- The judgement ----

    def judge(self):
        """All was read last, by settle: decide, and begin anew from there."""
        blocks = [Block(block, self.birth.get(block, ZERO))
                  for block in range(self.blocks)]
        for write in self.writes:
            for block in range(write.first, write.first + write.count):
                blocks[block].add_write(write)
        for read in self.reads:
            for i, number in enumerate(read.seen):
                blocks[read.first + i].add_read(read, number)
                self.birth[read.first + i] = number
        for block in blocks:
            block.judge()
            self.lost += block.wrong
        self.checked += len(self.writes) + len(self.reads)
        self.begin()


class Value:
    """One write, with the reads of it."""

    def __init__(self, start, end, counts):
        self.start = self.last_start = start
        self.first_end = end
        self.counts = counts  # it succeeded, or was read


class Block:
    """What was done to one block; it begins with the value BIRTH."""

    def __init__(self, number, birth):
        self.number = number
        self.values = {}
        self.zeroes = []
        self.zero_reads = []
        self.wrong = []
        if birth == ZERO:
            self.zeroes.append((0, 0, False))
        elif birth != TORN:
            self.values[birth] = Value(0, 0, True)

    def say(self, text):
        self.wrong.append(f'block {self.number}: {text}')

    def add_write(self, write):
        if write.zero:
            self.zeroes.append((write.start, write.end, write.done))
        else:
            self.values[write.number] = Value(write.start, write.end,
                                              write.done)

    def add_read(self, read, number):
        value = self.values.get(number)
        if number == ZERO:
            self.zero_reads.append((read.start, read.end))
        elif number == TORN:
            self.say('a read returned a torn block')
        elif value is None:
            self.say(f'write {number} was read, which is long gone')
        else:
            if read.end < value.start:
                self.say(f'write {number} was read before it began')
            value.counts = True
            value.first_end = min(value.first_end, read.end)
            value.last_start = max(value.last_start, read.start)

    def judge(self):
        self.judge_zones()
        self.judge_zero_reads()

    def judge_zones(self):
        zones = [(min(value.first_end, value.last_start),
                  max(value.first_end, value.last_start),
                  value.first_end < value.last_start, number)
                 for number, value in self.values.items() if value.counts]
        zones += [(start, end, False, ZERO)
                  for start, end, done in self.zeroes if done]
        zones += [(start, end, False, ZERO) for start, end in self.zero_reads]
        widest = None  # the forward one that ends last
        for zone in sorted(zones):
            low, high, forward, number = zone
            if widest and low > widest[0] \
                    and (low if forward else high) < widest[1]:
                self.say(f'write {widest[3]} stood from {widest[0]} to'
                         f' {widest[1]}, but {number or "zeroes"} at some'
                         f' moment from {low} to {high}')
            if forward and (widest is None or high > widest[1]):
                widest = zone

    def judge_zero_reads(self):
        for start, end in self.zero_reads:
            newest = max((value.start for value in self.values.values()
                          if value.counts and value.first_end < start),
                         default=NEVER)
            last = max((z_end for z_start, z_end, _ in self.zeroes
                        if z_start <= end), default=-1)
            if last < newest < NEVER:
                self.say(f'zeroes were read at {end}, after a write that'
                         f' began at {newest}')
