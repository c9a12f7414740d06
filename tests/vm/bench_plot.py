"""The results of scripts/bench-zfs as a picture, drawn by gnuplot."""

import subprocess

import bench_report
from pair import check

LOOK = '''
set encoding utf8
set terminal svg size 900,{height} font "sans-serif,13" background "white"
set output '{path}'
set style data histogram
set style fill solid 0.9 border -1
set style histogram clustered gap 1
set boxwidth 0.9
set xtics rotate by -35 nomirror scale 0
set ytics nomirror
set grid ytics
set border 3
set key top right
set multiplot layout {panels},1
'''


def block(name, rows):
    lines = [' '.join(f'"{value}"' if isinstance(value, str) else
                      'NaN' if value is None else f'{value:.2f}'
                      for value in row) for row in rows]
    return f'${name} << END\n' + '\n'.join(lines) + '\nEND\n'


def writes_panel(results, size):
    loads = [f'{size}-1', f'{size}-8']
    rows = [[name] + [bench_report.middle(results, name, load)
                      for load in loads] for name in results]
    kept = [row for row in rows if any(row[1:])]
    if not kept:
        return ''
    return block(f'w{size}', kept) + f'''
set title "Synchronous writes of {size[:-1]} KiB a second: more is better"
set logscale y
set yrange [10:*]
plot $w{size} using 2:xtic(1) title "1 job" lc rgb "#1b6ca8", \\
  '' using 3 title "8 jobs" lc rgb "#9cc9e8"
'''


def untar_panel(results):
    rows = [[name, bench_report.middle(results, name, 'untar')]
            for name in results]
    kept = [row for row in rows if row[1]]
    if not kept:
        return ''
    return block('untar', kept) + '''
set title "Unpacking 2,000 files, 138 MB, in seconds: less is better"
unset logscale y
set yrange [0:*]
plot $untar using 2:xtic(1) notitle lc rgb "#c2703d"
'''


def draw(results, path):
    panels = [panel for panel in (
        writes_panel(results, '4k'), writes_panel(results, '128k'),
        untar_panel(results)) if panel]
    script = LOOK.format(path=path.replace("'", "''"), panels=len(panels),
                         height=450 * len(panels)) \
        + ''.join(panels) + 'unset multiplot\n'
    try:
        drawn = subprocess.run(['gnuplot'], input=script, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               check=False)
    except FileNotFoundError:
        check(False, 'gnuplot is not installed; without --plot it is not used')
    check(drawn.returncode == 0, f'gnuplot: {drawn.stderr.strip()}')
