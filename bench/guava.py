"""Guava's BloomFilter in a JVM, and ours without a server, on equal keys at equal n and p."""
import contextlib
import os
import statistics
import subprocess

import plots
from lib import as_bytes, log, median_ratio, significant

TITLE = "Guava's BloomFilter"
SECONDS = (120, 20)
FPP = 0.01
WARMING_UP = 2      # rounds that the JVM gets to compile what is hot


def run(bench, section):
    ours = bench.compile('guava')
    classes = os.path.join(bench.work, 'classes')
    jar = '/usr/share/java/guava.jar'
    subprocess.run(['javac', '-cp', jar, '-d', classes, os.path.join(bench.sources, 'bench', 'Guava.java')], check=True)
    java = ['java', '-XX:+UseSerialGC', '-Xmx3g', '-cp', '%s:%s' % (jar, classes), 'Guava']

    section.text('''The same keys in a JVM and in the core, in one thread: CPU time per key, with hashing, one key right
        after the other; p = %g. The JVM has %d rounds to warm up. In brackets: the ratio to Guava.''' %
                 (FPP, WARMING_UP))
    section.code('sh', '%s {long|string} %g KEYS\nbench/guava {long|string} %g KEYS' % (
        ' '.join(java).replace(classes, 'CLASSES'), FPP, FPP))
    rows, bars = [], []
    for key_type, keys in (('long', bench.scale(1_000_000, 100_000)), ('long', bench.scale(10_000_000, 200_000)),
                       ('string', bench.scale(1_000_000, 100_000))):
        log('    %s, %d keys' % (key_type, keys))
        arguments = [key_type, str(FPP), str(keys)]
        what = '%s, %s keys' % ('integers' if key_type == 'long' else 'texts of 64 bytes', '{:,}'.format(keys))
        guava, core = measure(bench, [*java, *arguments], [ours, *arguments])
        rows += [[what, 'Guava', *figures(guava, keys)], ['', 'bloomfilter', *figures(core, keys, guava)]]
        label = what.replace(' keys', '').replace(' of 64 bytes', '')
        for number, name in enumerate(('add', 'member', 'absent')):
            for who, series in (('Guava', guava), ('bloomfilter', core)):
                median = statistics.median(result[number] for result in series)
                bars.append(('%s: %s, %s' % (label, name, who), median, who != 'Guava'))
    section.table(['keys', '', 'add, ns', 'member, ns', 'absent, ns', 'size', 'measured rate'], rows)
    plots.bars(section.plot('guava', 'Guava in a JVM, the core in C: CPU time per key'), 'ns per key', bars)


def measure(bench, *commands):
    """The rounds of programs that run one for each line they read."""
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                         universal_newlines=True, bufsize=1)) for command in commands]
        results = [[] for _ in programs]
        for turn in range(bench.rounds + WARMING_UP):
            for program, result in zip(programs, results):
                program.stdin.write('\n')
                program.stdin.flush()
                line = program.stdout.readline()
                if not line:
                    raise RuntimeError('%s ended early' % program.args[0])
                if turn >= WARMING_UP:
                    result.append([float(field) for field in line.split()])
        for program in programs:
            program.stdin.close()
    return results


def figures(series, keys, to=None):
    """Times, with their ratios to a peer in brackets, size and rate."""
    cells = []
    for number in range(3):
        values = [result[number] for result in series]
        cell = significant(statistics.median(values))
        if to is not None:
            cell += ' (%.2f)' % median_ratio(values, [result[number] for result in to])[0]
        cells.append(cell)
    return cells + [as_bytes(series[0][3]), '%.3f %%' % (series[0][4] / keys * 100)]
