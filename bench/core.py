"""The core without a server: what one lookup costs in filters from 64 KiB to 1 GiB."""
import collections
import statistics
import subprocess

from lib import log, median_ratio, significant

TITLE = 'One lookup in filters of all sizes, without a server'
SECONDS = (150, 8)
FPP = 0.01
LOOPS = ['none', 'floor', 'absent', 'member']


def run(bench, section):
    program = bench.compile('core')
    sizes = bench.scale([64 << 2 * i for i in range(8)], [64, 1024, 16384])
    keys = bench.scale(1_000_000, 50_000)
    command = [program, str(FPP), str(bench.rounds), str(keys), *map(str, sizes)]
    series = collections.defaultdict(list)
    with subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as process:
        for line in process.stdout:
            kib, loop, _, ns = line.rstrip('\n').split('\t')
            series[int(kib), loop].append(float(ns))
            if loop == 'none' and len(series[int(kib), loop]) == 1:
                log('    ' + size_name(int(kib)))
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)

    section.text('''Keys come one at a time, each after about 40 ns of other work (a chain of multiplications), as the
        rows of a scan do: ns of CPU time per key with that work, in filters of p = %g that hold what they are made for.
        The floor reads one random cache line of as much memory in the same loop. A filter has at most 512 MiB, so 1 GiB
        is two, and each key goes to one. Blocks begin where cache lines do, as those of a stored filter that is read
        into memory; pages have 4 KiB. In brackets: the ratio to the floor.''' % FPP)
    section.code('sh', 'bench/core %g %d %d SIZE-IN-KIB...' % (FPP, bench.rounds, keys))
    medians = {key: statistics.median(values) for key, values in series.items()}
    section.table(['size', 'other work', *LOOPS[1:]], [
        [size_name(kib), significant(medians[kib, 'none']),
         *('%s (%.2f)' % (significant(medians[kib, loop]), ratio(series, kib, loop)[0]) for loop in LOOPS[1:])]
        for kib in sizes])
    for kib, key in ((16384, 'probe 16 MiB'), (1 << 20, 'probe 1 GiB')):
        if kib in sizes:
            worst = max(('absent', 'member'), key=lambda loop: ratio(series, kib, loop)[0])
            section.target(key, series[kib, worst], series[kib, 'floor'])


def size_name(kib):
    return '%d KiB' % kib if kib < 1024 else '%d MiB' % (kib // 1024) if kib < 1 << 20 else '%d GiB' % (kib >> 20)


def ratio(series, kib, loop):
    return median_ratio(series[kib, loop], series[kib, 'floor'])
