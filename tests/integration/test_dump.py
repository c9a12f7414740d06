"""What `nbdkit --dump-plugin` and `--help` tell of the plugin."""

import pair


def dump():
    result = pair.run(['nbdkit', '--dump-plugin', pair.PLUGIN],
                      env=pair.environment())
    pair.equal(result.returncode, 0, f'--dump-plugin: {result.stderr}')
    pair.equal(result.stderr, '', '--dump-plugin on stderr')
    return dict(line.split('=', 1) for line in result.stdout.splitlines()
                if '=' in line)


def test_keys():
    keys = dump()
    pair.equal(keys.get('name'), 'twinlog', 'name')
    pair.equal(keys.get('thread_model'), 'parallel', 'thread_model')
    pair.equal(keys.get('magic_config_key'), 'size', 'magic_config_key')
    own = {key: value for key, value in keys.items()
           if key.startswith('twinlog_')}
    pair.check(own, f'no keys of our own: {sorted(keys)}')
    for key in ('twinlog_protocol_min', 'twinlog_protocol_max'):
        pair.check(own.get(key, '').isdigit(), f'{key}: {own}')
    for callback in ('pread', 'pwrite', 'zero', 'trim', 'flush', 'extents',
                     'cache', 'can_multi_conn', 'can_fua', 'cleanup',
                     'after_fork', 'get_ready'):
        pair.equal(keys.get(f'has_{callback}'), '1', f'has_{callback}')


def test_help():
    result = pair.run(['nbdkit', pair.PLUGIN, '--help'],
                      env=pair.environment())
    pair.equal(result.returncode, 0, f'--help: {result.stderr}')
    for key in ('size', 'name', 'node', 'listen', 'peer', 'control', 'state',
                'store', 'lock', 'flush', 'on-partner-loss', 'arbiter',
                'deadline', 'config'):
        pair.check(f'{key}=' in result.stdout, f'--help does not tell {key}=')


if __name__ == '__main__':
    pair.main(test_keys, test_help)
