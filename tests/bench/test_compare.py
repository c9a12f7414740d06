"""scripts/bench, a short run: every peer has its figures, nothing stays."""

import os
import re
import shutil

import pair

PEERS = ('the pair', 'memory, Unix socket', 'bare mirror', 'memory, TCP',
         'quorum, through its daemon', 'quorum, direct')


def script(*words, expect, environment=None):
    result = pair.run([os.path.join(pair.SOURCE, 'scripts/bench'), *words],
                      env=environment, timeout=220)
    pair.equal(result.returncode, expect,
               f'scripts/bench: {result.stdout[-800:]}{result.stderr}')
    return result


def test_short():
    for program in ('qemu-img', 'qemu-storage-daemon'):
        pair.requires_program(program)
    directory = os.path.join(pair.make_directory(), 'tmp')
    os.mkdir(directory)
    page = os.path.join(pair.make_directory(), 'page.pod')
    shutil.copy(os.path.join(pair.SOURCE, 'man/twinlog-results.pod'), page)
    result = script('--pairs', '1', '--seconds', '0.05', '--pod', page,
                    '--built', pair.BUILD, expect=pair.DONE,
                    environment={**os.environ, 'TMPDIR': directory})
    peers = PEERS
    if 'no iSCSI' not in result.stderr:
        peers += ('iSCSI RAM disk',)
    for size, depth in ((4, 1), (4, 16), (128, 4)):
        for peer in peers:
            pair.check(re.search(
                rf'^ +{size} KiB +{depth} +{peer} +[1-9][0-9]* +[0-9.]+ x$',
                result.stdout, re.M), f'{peer} in {result.stdout}')
    targets = len(re.findall(r'^(?:reached|MISSED )  ', result.stdout, re.M))
    links = result.stdout.count('Over a link of 1 Gbit/s')
    lz4 = result.stdout.count('with compress=lz4') // 2
    pair.equal(links, 0 if 'skipped: ' in result.stdout else 2, 'links')
    mptcp = result.stdout.count('two such links, mptcp=on') // 2
    pair.equal(targets, 10 + 3 * links + lz4 + mptcp,
               f'targets in {result.stdout}')
    with open(page) as file:
        between = file.read().split('=for comment')[1]
    for line in result.stdout.splitlines():
        pair.check(line.startswith(('ok ', 'skipped: '))
                   or f' {line}'.rstrip() in between, f'{line!r} in {page}')
    pair.equal(os.listdir(directory), [], 'left behind')


def test_usage():
    for words in (('--pairs', '0'), ('--seconds', 'x'), ('--built',),
                  ('--pod', '/none'), ('--fast',)):
        script(*words, expect=pair.USAGE)


if __name__ == '__main__':
    pair.main(test_short, test_usage)
