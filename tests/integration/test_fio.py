"""The pair under other people's clients: fio verifies what it wrote, nbdcopy
takes an image there and back, nbdinfo sees the capabilities.
"""

import filecmp
import json
import os
import random

import pair


def test_fio_verify():
    pair.requires_program('fio')
    if 'nbd' not in pair.run(['fio', '--enghelp']).stdout:
        pair.skip('fio has no nbd engine')
    both = pair.Pair(size='64M').create()
    for pattern in ('randwrite', 'write', 'randrw'):
        result = pair.run(
            ['fio', '--name=verify', '--ioengine=nbd',
             f'--uri={both.a.uri()}', f'--rw={pattern}',
             '--bsrange=512-64k', '--iodepth=32', '--size=32M',
             '--verify=crc32c', '--verify_fatal=1', '--do_verify=1',
             '--output-format=json'],
            cwd=both.directory)
        pair.equal(result.returncode, 0,
                   f'fio {pattern}: {result.stdout[-500:]}{result.stderr}')
        job = json.loads(result.stdout[result.stdout.index('{'):])['jobs'][0]
        pair.equal(job['error'], 0, 'error of fio')
        pair.check(job['read']['io_bytes'] > 0, 'fio verified nothing')
    status = both.a.status()
    pair.equal(status['copies'], 2, 'copies after fio')
    pair.equal(status['counters']['failed'], 0, 'failed requests')

    # The same bytes are on the other node: verify there, too.
    before = both.directory + '/before'
    after = both.directory + '/after'
    pair.equal(pair.run(['nbdcopy', both.a.uri(), before]).returncode, 0,
               'nbdcopy')
    both.a.kill()
    both.fail_over(both.a)
    pair.equal(pair.run(['nbdcopy', both.b.uri(), after]).returncode, 0,
               'nbdcopy')
    pair.check(filecmp.cmp(before, after, shallow=False),
               'the other node serves other bytes')


def test_image_round_trip():
    both = pair.Pair(size='64M', flush='on').create()
    image = os.path.join(both.directory, 'image')
    back = os.path.join(both.directory, 'back')
    chance = random.Random(1)
    with open(image, 'wb') as out:  # content and holes
        out.truncate(64 * pair.MIB)
        for _ in range(40):
            out.seek(chance.randrange(62 * pair.MIB))
            out.write(chance.randbytes(chance.randrange(1, pair.MIB)))
    for arguments in ([image, both.a.uri()], [both.a.uri(), back]):
        result = pair.run(['nbdcopy', '--flush', *arguments])
        pair.equal(result.returncode, 0, f'nbdcopy: {result.stderr}')
    result = pair.run(['cmp', image, back])
    pair.equal(result.returncode, 0, f'cmp: {result.stdout}')
    # Over several connections, to a device that has content already.
    chance.seed(2)
    with open(image, 'r+b') as out:
        out.seek(chance.randrange(32 * pair.MIB))
        out.write(chance.randbytes(16 * pair.MIB))
    for arguments in ([image, both.a.uri()], [both.a.uri(), back]):
        result = pair.run(['nbdcopy', '--connections=4', *arguments])
        pair.equal(result.returncode, 0, f'nbdcopy: {result.stderr}')
    pair.equal(pair.run(['cmp', image, back]).returncode, 0, 'cmp')


def export(node):
    result = pair.run(['nbdinfo', '--json', node.uri()])
    pair.equal(result.returncode, 0, f'nbdinfo: {result.stderr}')
    exports = json.loads(result.stdout)['exports']
    pair.equal(len(exports), 1, 'number of exports')
    return exports[0]


def description(node):
    """The export's description, that a secondary shows too."""
    client = pair.nbd.NBD()
    client.set_opt_mode(True)
    client.connect_unix(node.socket)
    found = []
    client.opt_list(lambda name, text: found.append(text) and 0 or 0)
    client.opt_abort()
    pair.equal(len(found), 1, 'number of exports listed')
    return found[0]


def test_capabilities():
    both = pair.Pair().create()
    shown = export(both.a)
    pair.equal(shown['export-size'], 16 * pair.MIB, 'size')
    pair.equal(shown['is_read_only'], False, 'is_read_only')
    for capability in ('can_multi_conn', 'can_fua', 'can_zero',
                       'can_fast_zero', 'can_trim', 'can_cache'):
        if capability == 'can_fast_zero' and capability not in shown:
            continue
        pair.equal(shown[capability], True, capability)
    pair.check('base:allocation' in shown['contexts'], 'no extents')
    pair.contains(description(both.a), ['primary', 'slog0'], 'description')
    pair.contains(description(both.b), ['secondary', 'slog0'], 'description')


def test_flush_parameter():
    """`flush=` chooses; mirrored writes need none, so `auto` offers none."""
    for value, offered in (('on', True), ('off', False), ('auto', False)):
        both = pair.Pair(flush=value).create()
        pair.equal(export(both.a)['can_flush'], offered, f'flush={value}')
        client = both.a.connect()
        client.pwrite(b'x' * 4096, 0)
        if offered:
            client.flush()
            pair.check(both.a.status()['counters']['flushes'] >= 1,
                       'no flush was counted')
        client.shutdown()
        both.stop()


def test_all_requests():
    """Each kind of request does what NBD says, at odd offsets too."""
    both = pair.Pair(flush='on').create()
    client = both.a.connect()
    flag = pair.nbd
    image = bytearray(16 * pair.MIB)
    chance = random.Random(3)

    def put(offset, content, flags=0):
        client.pwrite(content, offset, flags)
        image[offset:offset + len(content)] = content

    put(0, chance.randbytes(10000))
    put(511, chance.randbytes(1), flag.CMD_FLAG_FUA)
    put(5 * pair.MIB + 3, chance.randbytes(3 * pair.MIB + 5))
    put(16 * pair.MIB - 4097, chance.randbytes(4097))
    for offset, length, flags in (
            (100, 5000, 0), (4096, 8192, 0),
            (6 * pair.MIB + 1, 70000, flag.CMD_FLAG_FUA),
            (7 * pair.MIB, 65536, flag.CMD_FLAG_NO_HOLE)):
        client.zero(length, offset, flags)
        image[offset:offset + length] = bytes(length)
    client.cache(65536, 0)
    client.flush()
    offset, length = 5 * pair.MIB + 8192, 65536
    client.trim(length, offset)
    image[offset:offset + length] = bytes(length)
    for offset in range(0, len(image), pair.MIB):
        pair.check(client.pread(pair.MIB, offset)
                   == image[offset:offset + pair.MIB],
                   f'content of the MiB at {offset}')
    pair.check(client.pread(1, 511) == image[511:512], 'one byte')
    client.shutdown()
    both.a.kill()
    both.fail_over(both.a)
    client = both.b.connect()
    for offset in range(0, len(image), pair.MIB):
        pair.check(client.pread(pair.MIB, offset)
                   == image[offset:offset + pair.MIB],
                   f'content on the other node of the MiB at {offset}')


def test_large_requests():
    """One request of 32 MiB, beyond what one frame carries."""
    both = pair.Pair(size='64M').create()
    client = both.a.connect()
    content = random.Random(4).randbytes(32 * pair.MIB)
    client.pwrite(content, 12345)
    pair.check(client.pread(len(content), 12345) == content, 'large read')
    client.zero(64 * pair.MIB, 0)
    pair.check(not any(client.pread(32 * pair.MIB, 0)), 'zeroed')
    client.shutdown()


if __name__ == '__main__':
    pair.main(test_fio_verify, test_image_round_trip, test_capabilities,
              test_flush_parameter, test_all_requests, test_large_requests)
