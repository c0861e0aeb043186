"""The core without a server: what one key costs in filters from 64 KiB to 1 GiB."""
import collections
import statistics
import subprocess

import plots
from lib import log, median_ratio, significant

TITLE = 'One key in filters of all sizes, without a server'
SECONDS = (480, 25)
FPP = 0.01
LOOPS = ['absent', 'member', 'add', 'standard absent', 'standard member', 'standard add']


def run(bench, section):
    program = bench.compile('core')
    sizes = bench.scale([64 << 2 * i for i in range(8)], [64, 1024, 16384])
    keys = bench.scale(1_000_000, 50_000)
    command = [program, str(FPP), str(bench.rounds), str(keys), *map(str, sizes)]
    series = collections.defaultdict(list)
    with subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as process:
        reached = None
        for line in process.stdout:
            pages, kib, loop, _, ns = line.rstrip('\n').split('\t')
            series[pages, int(kib), loop].append(float(ns))
            if reached != (pages, kib):
                reached = pages, kib
                log('    %s, %s pages' % (size_name(int(kib)), pages))
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)

    section.text('''Keys come one at a time, each after about 40 ns of other work (a chain of multiplications), as the
        rows of a scan do: ns of CPU time per key with that work, in filters of p = %g that hold what they are made for.
        The floor reads one random cache line of as much memory in the same loop. The standard filter has the same bits
        and spreads k = 7 positions over all of them. A filter has at most 512 MiB, so 1 GiB is two, and each key goes
        to one. Blocks begin where cache lines do, as those of a stored filter that is read into memory. In brackets:
        the ratio to the floor.''' % FPP)
    section.code('sh', 'bench/core %g %d %d SIZE-IN-KIB...' % (FPP, bench.rounds, keys))
    for pages in ('4 KiB', 'huge'):
        section.text('**Pages of 4 KiB**' if pages == '4 KiB' else '**Huge pages** (`madvise`)')
        section.table(['size', 'other work', 'floor', *LOOPS],
                      [row(series, pages, kib) for kib in sizes])
    for kib, key in ((16384, 'probe 16 MiB'), (1 << 20, 'probe 1 GiB')):
        if kib in sizes:
            worst = max(('absent', 'member'), key=lambda loop: ratio(series, '4 KiB', kib, loop)[0])
            section.target(key, series['4 KiB', kib, worst], series['4 KiB', kib, 'floor'])
    section.text('The targets take the worse of absent and member, in pages of 4 KiB.')

    lines = [(name, [(kib / 1024, statistics.median(series['4 KiB', kib, loop])) for kib in sizes])
             for name, loop in (('standard, member', 'standard member'), ('standard, absent', 'standard absent'),
                                ('bloomfilter, member', 'member'), ('bloomfilter, absent', 'absent'),
                                ('floor: one cache line', 'floor'), ('other work alone', 'none'))]
    plots.lines(section.plot('probe', 'CPU time per probe against the size of the filter'),
                x='size of the filter, MiB', y='ns per key, with 40 ns of other work', log_x=True, series=lines)


def size_name(kib):
    return '%d KiB' % kib if kib < 1024 else '%d MiB' % (kib // 1024) if kib < 1 << 20 else '%d GiB' % (kib >> 20)


def ratio(series, pages, kib, loop):
    return median_ratio(series[pages, kib, loop], series[pages, kib, 'floor'])


def row(series, pages, kib):
    medians = {loop: statistics.median(series[pages, kib, loop]) for loop in ('none', 'floor', *LOOPS)}
    return ([size_name(kib), significant(medians['none']), significant(medians['floor'])] +
            ['%s (%.2f)' % (significant(medians[loop]), ratio(series, pages, kib, loop)[0]) for loop in LOOPS])
