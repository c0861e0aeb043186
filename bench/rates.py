"""Measured rates against keys added."""
import math
import subprocess

import plots
from lib import log

TITLE = 'The rate'
SECONDS = (150, 12)


def run(bench, section):
    program = bench.compile('rates')
    expected = bench.scale(1_000_000, 50_000)
    growth = [expected * share // 20 for share in (2, 4, 8, 12, 16, 20, 24, 30, 40, 60, 80, 100, 150, 200)]
    sizes = [30_000, bench.scale(10_000_000, 300_000)]
    rates = bench.scale([0.1, 0.01, 1e-3, 1e-4, 1e-5], [0.1, 0.01, 1e-3])

    section.text('''Filters are probed with keys that were never added. A filter that was made for %s keys keeps the
        requested rate up to there; with more it grows, and stays below twice the rate however far. As long as a
        list of hashes takes less than its bits it is one, without false positives that could be drawn. A filter
        without `expected` sizes itself for what it got. The table has measured / requested.''' % '{:,}'.format(expected))
    section.code('sh', 'bench/rates FPP EXPECTED PROBES KEYS...')
    rows, drawn = [], []
    for fpp in rates:
        log('    p = %g' % fpp)
        probes = round(min(3000 / fpp, bench.scale(4e7, 1e6)))
        growth_rates = measure(program, fpp, expected, probes, growth)
        sized = measure(program, fpp, 0, probes, sizes)
        drawn += [(power_of_ten(fpp), [(n, r) for n, r, _, _ in growth_rates if r > 0]),
                  ('', [(growth[0], fpp), (growth[-1], fpp)], 'requested')]
        at = {n: r / fpp for n, r, _, _ in growth_rates}
        rows.append(['%g' % fpp, '{:,}'.format(probes)] + ['%.2f' % at[expected * times] for times in (1, 2, 5, 10)] +
                    ['%d' % growth_rates[-1][2]] + ['%.2f' % (r / fpp) for _, r, _, _ in sized])
    section.table(['requested', 'probes', 'expected keys', 'twice', 'five times', 'ten times', 'layers then',
                   *('self-sizing, {:,}'.format(size) for size in sizes)], rows)
    plots.lines(section.plot('rate', 'Measured rate of filters made for %s keys; dashed: the requested rate' %
                             '{:,}'.format(expected)),
                x='keys added', y='measured rate', series=drawn)


def measure(program, fpp, expected, probes, numbers):
    """Keys, rate, layers and bytes for each number of keys."""
    output = subprocess.run([program, repr(fpp), str(expected), str(probes), *map(str, numbers)],
                            stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    rows = [list(map(int, line.split('\t'))) for line in output.splitlines()]
    return [(n, positive / probes, layers, size) for n, probes, positive, layers, size in rows]


def power_of_ten(fpp):
    return 'p = 10^{%d}' % round(math.log10(fpp))
