"""Measured rates against keys added, and what they cost in bits."""
import math
import subprocess

import plots
from lib import log

TITLE = 'The rate, and the bits it takes'
SECONDS = (150, 12)


def run(bench, section):
    program = bench.compile('rates')
    expected = bench.scale(1_000_000, 50_000)
    growth = [expected * share // 20 for share in (2, 4, 8, 12, 16, 20, 24, 30, 40, 60, 80, 100, 150, 200)]
    sizes = [1000, 3000, 10_000, 30_000, 100_000, 300_000]
    sizes += bench.scale([1_000_000, 3_000_000, 5_000_000, 10_000_000], [])
    rates = bench.scale([0.1, 0.01, 1e-3, 1e-4, 1e-5], [0.1, 0.01, 1e-3])

    section.text('''Filters are probed with keys that were never added. A filter that was made for %s keys keeps the
        requested rate up to there; with more it grows, and stays below twice the rate however far. As long as a
        list of hashes takes less than its bits it is one, without false positives that could be drawn. A filter
        without `expected` sizes itself for what it got. The table has measured / requested.''' % '{:,}'.format(expected))
    section.code('sh', 'bench/rates FPP EXPECTED PROBES KEYS...')
    rows, drawn_growth, drawn_sizes = [], [], []
    for fpp in rates:
        log('    p = %g' % fpp)
        probes = round(min(3000 / fpp, bench.scale(4e7, 1e6)))
        growth_rates = measure(program, fpp, expected, probes, growth)
        sized = measure(program, fpp, 0, probes, sizes)
        drawn_growth += [(power_of_ten(fpp), [(n, r) for n, r, _, _ in growth_rates if r > 0]),
                         ('', [(growth[0], fpp), (growth[-1], fpp)], 'requested')]
        drawn_sizes += [(power_of_ten(fpp), [(n, r) for n, r, _, _ in sized if r > 0]),
                        ('', [(sizes[0], fpp), (sizes[-1], fpp)], 'requested')]
        at = {n: r / fpp for n, r, _, _ in growth_rates}
        rows.append(['%g' % fpp, '{:,}'.format(probes)] + ['%.2f' % at[expected * times] for times in (1, 2, 5, 10)] +
                    ['%d' % growth_rates[-1][2]] + ['%.2f' % (r / fpp) for _, r, _, _ in (sized[3], sized[-1])])
    section.table(['requested', 'probes', 'expected keys', 'twice', 'five times', 'ten times', 'layers then',
                   'self-sizing, {:,}'.format(sizes[3]), 'self-sizing, {:,}'.format(sizes[-1])], rows)
    plots.lines(section.plot('rate', 'Measured rate of filters made for %s keys; dashed: the requested rate' %
                             '{:,}'.format(expected)),
                x='keys added', y='measured rate', log_x=True, log_y=True, series=drawn_growth, key='outside right')
    plots.lines(section.plot('rate-self-sizing', 'Measured rate of filters that size themselves; dashed: requested'),
                x='keys added', y='measured rate', log_x=True, log_y=True, series=drawn_sizes, key='outside right')
    bits(bench, section)


def measure(program, fpp, expected, probes, numbers):
    """Keys, rate, layers and bytes for each number of keys."""
    output = subprocess.run([program, repr(fpp), str(expected), str(probes), *map(str, numbers)],
                            stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    rows = [list(map(int, line.split('\t'))) for line in output.splitlines()]
    return [(n, positive / probes, layers, size) for n, probes, positive, layers, size in rows]


def bits(bench, section):
    keys = 10_000_000
    sql = '''SELECT p, s.bits_per_key, s.standard_bits / %d.0, s.hashes, s.block_bits, s.standard_hashes
  FROM unnest(%%s::float8[]) p, bloom_sizing(p, %d) s ORDER BY p DESC''' % (keys, keys)
    steps = [0.5 * 10 ** (-i / 6) for i in range(int(6 * math.log10(0.5 / 1e-9)) + 1)] + [1e-9]
    with bench.session() as session:
        drawn = session.execute(sql, [steps])
        shown = session.execute(sql, [[10.0 ** -i for i in range(1, 10)]])
    section.text('''What a key takes in a filter for %s of them, by `bloom_sizing`: a standard filter is the best there
        can be without blocks, and no structure at all can do with less than log₂ 1/p bits.''' % '{:,}'.format(keys))
    section.table(['p', 'bits a key', 'k', 'bits in a block', 'standard bits (k)', '× standard', 'log₂ 1/p'],
                  [['%g' % p, '%.2f' % ours, k, block, '%.2f (%d)' % (standard, standard_k),
                    '%.3f' % (float(ours) / float(standard)), '%.2f' % -math.log2(p)]
                   for p, ours, standard, k, block, standard_k in shown])
    plots.lines(section.plot('bits', 'Bits per key against the rate'), x='false-positive rate', y='bits per key',
                log_x=True, key='right top',
                series=[('bloomfilter', [(p, ours) for p, ours, *_ in drawn]),
                        ('standard', [(p, standard) for p, _, standard, *_ in drawn]),
                        ('information limit', [(p, -math.log2(p)) for p, *_ in drawn])])


def power_of_ten(fpp):
    return 'p = 10^{%d}' % round(math.log10(fpp))
