"""Frames of the mirror protocol, twinlog-protocol(7), made by hand."""

import struct

try:
    import xxhash
except ImportError:
    xxhash = None

MAGIC = 0x54574e4c
SIZE = 64
HELLO, WELCOME, WRITE = 1, 2, 3
BYE = 15


def frame(kind, payload=b'', flags=0, session=0, view=0, sequence=0,
          offset=0, length=0, magic=MAGIC, checksum=None):
    """A frame with its payload; CHECKSUM replaces that of the payload."""
    if checksum is None:
        checksum = xxhash.xxh3_64_intdigest(payload) if payload else 0
    header = struct.pack('>IBBHQQQQIIQ', magic, kind, flags, 0, session, view,
                         sequence, offset, length, len(payload), checksum)
    return header + struct.pack('>Q', xxhash.xxh3_64_intdigest(header)) \
        + payload


def name(text):
    return text.encode().ljust(64, b'\0')


def hello(volume='slog0', node='b', size=16 << 20, version_min=1,
          version_max=1, uuid=bytes(16), incarnation=1, role=0, data=0,
          member=0, arbiter=1, features=0):
    """The hello of a node that has no view yet."""
    no_view = struct.pack('>QQQ', 0, 0, 0) + name('') + struct.pack('>I', 0)
    payload = struct.pack('>IIQ', version_min, version_max, features) \
        + name(volume) + name(node) + uuid \
        + struct.pack('>QQBBBB', size, incarnation, role, data, member,
                      arbiter) \
        + no_view + struct.pack('>I', 0)
    return frame(HELLO, payload)


def parse(data):
    """The first whole frame of DATA as (kind, payload, rest), or None."""
    if len(data) < SIZE:
        return None
    kind = data[4]
    length = struct.unpack('>I', data[44:48])[0]
    if len(data) < SIZE + length:
        return None
    return kind, data[SIZE:SIZE + length], data[SIZE + length:]
