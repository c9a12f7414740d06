"""The judgement of what clients saw: what may be passes, what may not is seen.
"""

import pair
from history import pattern
from judge import Record


class Script:
    """Acts out a record of one block: words such as `write x`."""

    def __init__(self):
        self.record = Record(1)
        self.writes = {}

    def issue(self, name):
        """A name that begins with z is of a zero request."""
        self.writes[name] = self.record.issue(0, 1, name.startswith('z'))

    def done(self, name):
        self.record.acknowledge(self.writes[name], 0, 1)

    def failed(self, name):
        self.record.fail(self.writes[name])

    def write(self, name):
        self.issue(name)
        self.done(name)

    def read(self, name):
        write = self.writes.get(name)
        self.record.settle(0, pattern(
            0 if write is None or write.zero else write.number, 0))

    def torn(self):
        self.record.settle(0, pattern(1, 0)[:2048] + bytes(2048))

    def rest(self):
        self.record.judge()
        pair.equal(self.record.lost, [], 'wrong before the rest')

    def wrong(self, steps):
        for step in steps:
            act, *names = step.split()
            getattr(self, act)(*names)
        self.record.judge()
        return self.record.lost


def possible(*steps):
    pair.equal(Script().wrong(steps), [], ', '.join(steps))


def impossible(*steps):
    pair.check(Script().wrong(steps), f'not seen: {", ".join(steps)}')


def test_writes():
    possible('write x', 'read x', 'write y', 'read y')
    impossible('write x', 'write y', 'read x')
    impossible('write x', 'torn')
    possible('issue x', 'issue y', 'done x', 'done y', 'read x')
    impossible('issue x', 'issue y', 'done x', 'done y', 'read x', 'read y',
               'read x')
    impossible('write x', 'issue y', 'read y', 'read x')


def test_failed_writes():
    possible('write x', 'issue y', 'failed y', 'read x')
    possible('write x', 'issue y', 'failed y', 'read y')
    impossible('write x', 'issue y', 'failed y', 'read x', 'read y')
    impossible('issue x', 'failed x', 'write y', 'read x')


def test_zeroes():
    possible('read birth', 'write x')
    impossible('write x', 'read birth')
    possible('write x', 'write z', 'read z')
    impossible('write x', 'write z', 'read x')
    impossible('write z', 'write x', 'read z')
    possible('issue x', 'issue z', 'done z', 'done x', 'read z')
    possible('write x', 'issue z', 'failed z', 'read z')


def test_over_a_rest():
    possible('write x', 'read x', 'rest', 'read x')
    possible('issue x', 'issue z', 'done z', 'done x', 'read z', 'rest',
             'read z')
    impossible('write x', 'read x', 'rest', 'read birth')
    impossible('write x', 'write y', 'read y', 'rest', 'read x')


if __name__ == '__main__':
    pair.main(test_writes, test_failed_writes, test_zeroes, test_over_a_rest)
