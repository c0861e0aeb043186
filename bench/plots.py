"""Plots by gnuplot, as SVG."""
import os
import subprocess

# Okabe and Ito's palette, which the colour-blind can tell apart
COLORS = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#999999']
OURS, OTHERS = '0x0072B2', '0xAAAAAA'     # of bars


def lines(path, x, y, series):
    """Both axes logarithmic. Series are (title, points), or (title, points, 'requested'): a dashed line in the colour of
    the one before."""
    commands = ['set xlabel "%s"' % x, 'set ylabel "%s"' % y, 'set key outside right reverse Left opaque',
                'set grid back lc rgb "#dddddd" lt 1', 'set logscale xy', 'set format xy "%g"']
    parts, data, color = [], [], -1
    for number, (title, points, *style) in enumerate(series):
        data += ['$s%d << END' % number, *('%.8g %.8g' % point for point in points), 'END']
        if style == ['requested']:
            parts.append('$s%d with lines lw 1.5 dt 2 lc rgb "%s" notitle' % (number, COLORS[color]))
        else:
            color += 1
            parts.append('$s%d with linespoints lw 2 pt 7 ps 0.5 lc rgb "%s" title "%s"' %
                         (number, COLORS[color % len(COLORS)], title))
    draw(path, (820, 480), [*data, *commands, 'plot ' + ', '.join(parts)])


def bars(path, x, values, width=480):
    """Horizontal bars, in the order given: (label, value, whether it is ours)."""
    largest = max(value for _, value, _ in values)
    data = ['$bars << END']
    data += ['"%s" %.8g %d "%s"' % (label, value, ours, readable(value)) for label, value, ours in values]
    commands = ['END', 'set xlabel "%s"' % x, 'unset key', 'set style fill solid', 'set border 1',
                'set ytics scale 0 noenhanced', 'set xtics nomirror', 'set grid x back lc rgb "#dddddd" lt 1',
                'set yrange [%g:0.5]' % (0.5 - len(values)),
                'set lmargin %d' % (2 + 0.85 * max(len(label) for label, _, _ in values))]
    commands.append('set xrange [0:%g]' % (largest * 1.12))
    box = '($0 * -1):(0):2:(-$0 - 0.35):(-$0 + 0.35)'
    commands.append(
        'plot $bars using 2:%s:($3 == 1 ? %s : %s):ytic(1) with boxxyerror lc rgb variable, '
        '$bars using 2:(-$0):4 with labels noenhanced left offset char 0.6,0' % (box, OURS, OTHERS))
    draw(path, (width, 60 + 34 * len(values) + 30), data + commands)


def readable(value):
    return '%.0f' % value if value >= 100 else '%.3g' % value


def draw(path, size, commands):
    terminal = 'set terminal svg size %d,%d dynamic enhanced font "sans-serif,14" background "white"' % size
    script = '\n'.join([terminal, 'set encoding utf8', 'set output "%s"' % path, *commands, ''])
    subprocess.run(['gnuplot'], input=script.encode(), check=True, env={**os.environ, 'LC_ALL': 'C.UTF-8'})
