"""Aggregates over a column: a filter of it, and what else is made of its keys."""
import collections
import statistics
import subprocess

from lib import as_bytes, settings_text

TITLE = 'Aggregates'
SECONDS = (330, 20)
HLL = 'hll_cardinality(hll_add_agg(hll_hash_text(url)))'
TWO_PROCESSES = {'max_parallel_workers_per_gather': 1, 'parallel_setup_cost': 0, 'parallel_tuple_cost': 0,
                 'min_parallel_table_scan_size': 0}


def run(bench, section):
    bench.fill('urls')
    sized = 'bloom_cardinality(bloom_agg(url, 0.01, %d))' % bench.rows
    results = {
        'count(url)': 'count(url)',
        'bloom_agg, sized': sized,
        'bloom_agg, self-sizing': 'bloom_cardinality(bloom_agg(url))',
        'hll_add_agg': HLL,
    }
    queries = {name: 'SELECT %s FROM urls' % result for name, result in results.items()}
    parallel = [name for name in queries if name in ('bloom_agg, sized', 'bloom_agg, self-sizing', 'hll_add_agg')]

    with bench.session() as serial, bench.session(**TWO_PROCESSES) as two:
        serial.execute('CREATE EXTENSION IF NOT EXISTS hll')
        serial.execute(queries['count(url)'])
        variants = {name: measuring(serial, sql) for name, sql in queries.items()}
        variants.update((name + ', two processes', measuring(two, queries[name])) for name in parallel)
        timings = bench.in_turns(variants)

        section.text('''{:,} distinct URLs of 64 bytes; `work_mem` is PostgreSQL's 4 MB. hll only counts and cannot be
            probed for a key.'''.format(bench.rows))
        section.code('sql', '\n'.join(
            ['%s;    -- %s' % (sql, name) for name, sql in queries.items()] +
            ['-- two processes:', settings_text(**TWO_PROCESSES) + ';']))
        section.timing_table('aggregate', timings, bench.rows, 'count(url)', ('hll_add_agg',))

        section.target('sized', timings['bloom_agg, sized'], timings['hll_add_agg'])
        section.target('self-sizing', timings['bloom_agg, self-sizing'], timings['bloom_agg, sized'])
        section.target('parallel', timings['bloom_agg, sized, two processes'], timings['bloom_agg, sized'], 'wall')
        parallel_memory(bench, section, sized)
        section.plan('bloom_agg, two processes', two, queries['bloom_agg, sized'],
                     ['Finalize Aggregate', 'Gather', 'Workers Planned: 1', 'Partial Aggregate'])
    unite(bench, section)


def measuring(session, sql):
    return lambda: session.measure(sql)


def parallel_memory(bench, section, aggregate):
    """A process that collects partial filters has its own one, the one that arrives, and the union."""
    with bench.session(**TWO_PROCESSES) as session:
        peaks = session.peak_memories('SELECT %s FROM urls' % aggregate)
        size = session.value('SELECT bits / 8 FROM bloom_sizing(0.01, %d)' % bench.rows)
        leader = peaks.pop(session.pid)
    section.text('With two processes, the one that returns the result takes %s at the most, the other one %s; the '
                 'filter takes %s.' % (as_bytes(leader), ' and '.join(map(as_bytes, peaks.values())), as_bytes(size)))
    section.target('parallel memory', [(leader + sum(peaks.values())) / (1 + len(peaks))], [size])


def unite(bench, section):
    program = bench.compile('core')
    expected, unions = bench.scale(1_000_000, 50_000), bench.scale(1000, 100)
    command = [program, 'union', str(bench.rounds), str(expected), str(unions)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    series = collections.defaultdict(list)
    for line in output.splitlines():
        what, _, ns = line.split('\t')
        series[what].append(float(ns))
    section.text('Uniting filters for %s keys each, in the core without a server, takes %.0f µs for each; ORing as '
                 'many words takes %.0f µs.' % ('{:,}'.format(expected),
                                                *(statistics.median(series[what]) / 1000 for what in ('union', 'or'))))
    section.code('sh', 'bench/core union %d %d %d' % (bench.rounds, expected, unions))
    section.target('union', series['union'], series['or'])
