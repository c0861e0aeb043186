"""The report: Markdown from what the sections have measured.

    python3 bench/report.py DIR      writes DIR/REPORT.md again from results.json and scenarios.json in DIR
"""
import collections
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys

# What the extension is held against: ratios of CPU time (of wall time where that is said) in one run
Target = collections.namedtuple('Target', 'what against at_most')

TARGETS = {
    'scan': Target('scan with `bloom_contains(f, url)`, 1 million keys, 1 %, a row', 'the scan with `hashtextextended`', 1.25),
    'stored': Target('the same scan, the filter stored in a table', 'the filter in memory', 1.05),
    'large': Target('scan with a 120 MB filter (100 million keys)', 'the scan with 1.2 MB', 2.5),
    'probe 16 MiB': Target('core probe, 16 MiB, 1 %', 'one random cache line read', 1.5),
    'probe 1 GiB': Target('core probe, 1 GiB, 1 %', 'one random cache line read', 1.5),
    'sized': Target('`bloom_agg(url, 0.01, 10000000)`, 10 million rows', '`hll_add_agg(hll_hash_text(url))`', 1.3),
    'self-sizing': Target('`bloom_agg(url)`, which sizes itself', 'sized', 1.05),
    'parallel': Target('`bloom_agg` in two processes, wall time', 'in one', 0.57),
    'parallel memory': Target('its memory, for each process', 'the filter', 2.2),
    'union': Target('`bloom_union_agg` of 1,000 filters of 1.2 MB', 'OR of the same words', 1.5),
    'spilling join': Target('join of 10 million URLs × 1 million, 1 % of them matching, `work_mem` 4 MB, by hand', 'the plain hash join, which spills', 0.5),
    'join in memory': Target('the same in memory, by hand', 'the plain hash join', 0.7),
    'foreign': Target('the join of 10 million × 1 million rows, 1 % matching, by hand, with the small side on another '
                      'server than the large one (postgres_fdw)', 'without the filter', 0.2),
    'auto spilling': Target('join of 10 million URLs × 1 million, 1 % of them matching, `work_mem` 4 MB',
                            'off; the join spills', 0.40),
    'auto memory': Target('the same join in memory', 'off', 0.38),
    'auto parallel': Target('the same join with two workers and Parallel Hash', 'off', 0.50),
    'auto grouping': Target('10 million rows grouped below a join that keeps 0.1 % of the groups', 'off', 0.30),
    'auto partitions': Target('fact in 100 partitions, join by another column than the partition key, 1 % match',
                              'off', 0.60),
    'auto star': Target('star: fact of 10 million rows of 100 bytes, four dimensions, 10 % of each', 'off', 0.70),
    'auto match': Target('10 million rows join 1 million, every one matches', 'off', 1.03),
    'auto small match': Target('10 million narrow rows join a small table, every one matches', 'off', 1.05),
    'auto wide': Target('a condition on the first of 102 columns, the key in the last, every one matches', 'off', 1.05),
    'auto planning': Target('planning of a join of ten tables', 'off', 1.05),
    'auto analytic': Target('20 analytic queries over 1 GB, the sum', 'off', 0.78),
    'auto worst': Target('the worst single one of these queries', 'off', 1.05),
    'skip year': Target('one year of seven, calendar and fact in 84 monthly partitions', 'off', 0.20),
    'skip year blocks': Target('one year of seven, calendar and fact in order with a BRIN index', 'off', 0.20),
    'skip month': Target('one month of these, partitions', 'off', 0.05),
    'skip month blocks': Target('one month of these, BRIN', 'off', 0.05),
    'skip week': Target('one week of these, partitions', 'off', 0.03),
    'skip week blocks': Target('one week of these, BRIN', 'off', 0.03),
    'skip planned': Target('one month, which PostgreSQL joins last: partitions', 'off', 0.05),
    'skip planned blocks': Target('one month, which PostgreSQL joins last: BRIN', 'off', 0.05),
    'skip none': Target('days of all months, all partitions read', 'off', 1.02),
    'skip none blocks': Target('days of all months, all blocks read', 'off', 1.02),
    'skip foreign': Target('remote queries for one of eight foreign partitions', 'off', 0.125),
    'months analytic': Target('20 analytic queries on facts partitioned by month, the sum', 'off', 0.70),
    'months worst': Target('the worst single one of these by month', 'off', 1.05),
    'retail': Target('40 queries of a retailer with a calendar of 200 years, the sum', 'off', 0.65),
    'retail worst': Target('the worst single one of the 40', 'off', 1.25),
    'retail memory': Target('the 40 queries with `random_page_cost` 1.1, the sum', 'off', 0.65),
    'retail memory worst': Target('the worst single one of the 40 with `random_page_cost` 1.1', 'off', 1.25),
    'retail months': Target('the same queries, facts partitioned by month, the sum', 'off', 0.45),
    'retail months worst': Target('the worst single one of the 40 by month', 'off', 1.25),
    'retail dates': Target('the same queries, facts in the order of days with BRIN indexes, the sum', 'off', 0.55),
    'retail dates worst': Target('the worst single one of the 40 with BRIN indexes', 'off', 1.25),
    'plan none': Target('planning with `join_planning`, six tables below `join_planning_cost`',
                        'filters without `join_planning`', 1.02),
    'plan large': Target('planning with `join_planning`, the same above it, nothing to leave unread',
                         'filters without `join_planning`', 2.0),
    'plan above': Target('planning with `join_planning`, 84 partitions, above `join_planning_cost`',
                         'filters without `join_planning`', 2.0),
    'plan below': Target('planning with `join_planning`, 84 partitions, below `join_planning_cost`',
                         'filters without `join_planning`', 1.02),
    'skip start': Target('executing a cached plan of 1,000 partitions without joins, filters on', 'without the library',
                         1.02),
    'key literal': Target('one row by id in 1,000 partitions, unprepared', 'off, btrees', 0.05),
    'key absent': Target('the same, an id that is not there', 'off, btrees', 0.03),
    'key custom': Target('the same, prepared, custom plan', 'off, btrees', 0.10),
    'key generic': Target('the same, prepared, generic plan', 'off, btrees', 0.60),
    'key list': Target('a list of 20 ids', 'off, btrees', 0.10),
    'key update': Target('UPDATE of one row by id', 'off, btrees', 0.05),
    'key dropped': Target('one row by id, only the filters', 'off, btrees', 0.10),
    'key pruned': Target('a query that prunes by the partition key anyway', 'off', 1.02),
    'key none': Target('a query of a table without an index of access method `bloomfilter`', 'off', 1.01),
    'key primary': Target('a lookup by primary key in one table', 'off', 1.03),
    'key join': Target('a join of 50 ids with the 1,000 partitions', 'off, btrees', 0.15),
    'key locks': Target('locks that such a lookup holds', '20', 1.0),
    'key pages': Target('pages read for an absent key in one table without a btree', '5', 1.0),
    'key probe': Target('the time for each partition of a lookup of an absent key', '0.7 µs', 1.0),
    'lookup': Target('one lookup in a stored 120 MB filter', 'one btree lookup by primary key', 2.0),
    'index size': Target('size of an index at fpp 0.001, 10 million URLs', 'a btree', 0.05),
    'index build': Target('building that index, wall time', 'building the btree', 0.5),
    'index insert': Target('INSERT of 1 million rows in batches, random keys, btree larger than shared_buffers',
                           'the same with a btree', 0.7),
    'index wal': Target('WAL of those rows, beyond the table\'s', 'the btree\'s', 0.5),
    'index clients': Target('time for a key that 16 clients add to one set', 'that of one client, wall time', 1.0),
    'index waits': Target('99th percentile of the latency of 16 clients, beyond that without an index', '1 ms', 1.0),
    'index add': Target('a single add: prepared INSERT, `synchronous_commit = off`, unix socket',
                        'the Redis script, k = 14, over loopback', 1.5),
    'index lookup': Target('lookup of an absent key, prepared, cached', 'a btree lookup', 1.0),
    'index cold': Target('lookups of absent keys from disk, the btree ten times larger than memory', 'a btree', 0.3),
    'rebuild': Target('CPU time of a VACUUM that only rebuilds an index', 'REINDEX', 1.1),
    'rebuild wal': Target('its WAL', 'that of REINDEX', 1.2),
    'rebuild meanwhile INSERT': Target('INSERT of one row while VACUUM rebuilds the index', 'an equal one meanwhile', 1.05),
    'rebuild meanwhile lookup': Target('a lookup in it', 'in the other one', 1.05),
    'lookups': Target('1,000 keys looked up in that filter in one statement', '1,000 btree lookups', 1.0),
}


def is_met(key, ratios):
    """Without ratios something took too long to be measured, so it is not."""
    return ratios is not None and ratios[0] <= TARGETS[key].at_most


def output_of(*command):
    """What a program writes; nothing if it is not there."""
    return subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True).stdout \
        if shutil.which(command[0]) else ''


def first_line(*command):
    return output_of(*command).strip().split('\n')[0]


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ''


def about(bench, arguments):
    """The machine and the versions, as rows of two tables."""
    cpu = dict(re.findall(r'^(.+?):\s+(.+)$', output_of('lscpu'), re.M))
    memory = int(re.search(r'MemTotal:\s+(\d+)', read('/proc/meminfo')).group(1)) / 2 ** 20
    pages = re.search(r'\[(\w+)\]', read('/sys/kernel/mm/transparent_hugepage/enabled'))
    distribution = re.search(r'PRETTY_NAME="(.*)"', read('/etc/os-release'))
    with bench.session() as session:
        version = session.value('SHOW server_version')
        extension = session.value("SELECT extversion FROM pg_extension WHERE extname = 'bloomfilter'")
        buffers = session.value('SHOW shared_buffers')
        hll = session.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'hll'")
    return {
        'date': datetime.date.today().isoformat(),
        'command': arguments.command,
        'quick': bench.quick,
        'rows': bench.rows,
        'rounds': bench.rounds,
        'machine': [
            ['processor', '%s, %s cores%s' % (cpu.get('Model name', platform.machine()), os.cpu_count(),
                                              ', virtual' if 'Hypervisor vendor' in cpu else '')],
            ['caches', ', '.join('%s %s' % (level, cpu[level + ' cache']) for level in ('L1d', 'L2', 'L3')
                                 if level + ' cache' in cpu)],
            ['memory', '%.0f GB; transparent huge pages: %s' % (memory, pages.group(1) if pages else 'none')],
            ['system', '%s, Linux %s' % (distribution.group(1) if distribution else '', platform.release())],
            ['PostgreSQL', '%s; jit off, no parallel workers unless said, shared_buffers %s, locale C' % (
                version, buffers)],
            ['bloomfilter', '%s, %s' % (extension, arguments.revision)],
            ['built by', '%s, %s' % (first_line(os.environ.get('CC', 'gcc'), '--version'),
                                     first_line(arguments.pg_config, '--cflags').split(' -g')[-1].strip() or '')],
            ['peers', 'postgresql-hll ' + hll[0][0] if hll else ''],
        ],
    }


def table(header, rows):
    def cells(row):
        return '| ' + ' | '.join(str(cell).replace('|', '\\|') for cell in row) + ' |'
    return [cells(header), '|' + '---|' * len(header), *map(cells, rows), '']


def targets_table(sections):
    held = {target['key']: target['ratios'] for section in sections for target in section['targets']}
    rows = []
    for key, target in TARGETS.items():
        if key not in held:
            continue
        ratios = held[key]
        outcome = 'met' if is_met(key, ratios) else '**missed**'
        rows.append([target.what, target.against, '%g' % target.at_most,
                     '%.2f' % ratios[0] if ratios else 'took too long',
                     '%.2f to %.2f' % tuple(ratios[1:]) if ratios else '', outcome])
    return table(['what', 'against', 'at most', 'measured', 'single rounds', ''], rows) if rows else []


def block(item):
    if item['kind'] == 'text':
        return [item['text'], '']
    if item['kind'] == 'table':
        return table(item['header'], item['rows'])
    if item['kind'] == 'code':
        return ['```' + item['language'], item['code'], '```', '']
    return ['![%s](%s.svg)' % (item['caption'], item['name']), '', '*%s*' % item['caption'], '']


def markdown(results, scenarios):
    if results is None:
        return '\n'.join(['# Benchmarks', '', *jobs(scenarios, [])]).rstrip('\n') + '\n'
    run, sections = results['run'], results['sections']
    lines = ['# Benchmarks', '']
    if run['quick']:
        lines += ['**A quick run, on %s rows: it shows that the benchmark works, its figures mean little.**' %
                  '{:,}'.format(run['rows']), '']
    runs = {section['run'] for section in sections}
    lines += ['Written by `%s` on %s; bench/README.md tells how.%s' % (run['command'], run['date'],
                           ' Sections are from different runs, which stand below their titles.' if len(runs) > 1
                           else ''),
              'CPU time is user and system time of the server processes that did the work. Variants ran in turns; a '
              'figure is the median of %d rounds, a ratio the median of the ratios of the rounds.' % run['rounds'], '']
    held = targets_table(sections)
    if held:
        lines += ['## Targets', '', *held]
    lines += ['## The machine', '', *table(['', ''], run['machine'])]
    for section in sections:
        lines += ['## ' + section['title'], '']
        lines += ['Measured by %s%s.' % (section['run'], load_average(section)), '']
        for item in section['blocks']:
            lines += block(item)
    lines += jobs(scenarios, run['machine'])
    return '\n'.join(lines).rstrip('\n') + '\n'


def jobs(scenarios, machine):
    """What scripts/scenario has measured; `machine` is what stands in the report already."""
    if not scenarios:
        return []
    lines = ['## Jobs at their real size', '',
             'The recipes of doc/COOKBOOK.md done by `scripts/scenario`, once each; a wrong result would have ended '
             'it. Memory is the most that the backend and its parallel workers had at one time, without '
             'shared_buffers: what each has for itself, and the segments that they share.', '']
    for scenario in scenarios:
        lines += ['### ' + scenario['title'], '',
                  '%sMeasured by `%s` on %s, %s, in %s, with %.1f GB of disk%s.' % (
                      '' if scenario['scale'] == 1 else
                      '**At %g of the real size: it shows that the job works, its figures mean little.** ' %
                      scenario['scale'],
                      scenario['command'], scenario['date'], scenario['revision'],
                      '%d s' % scenario['seconds'] if scenario['seconds'] < 90 else
                      '%d min' % round(scenario['seconds'] / 60), scenario['disk'] / 1e9, load_average(scenario)), '']
        others = [row for row in scenario['machine']
                  if row[0] in ('processor', 'memory', 'system', 'PostgreSQL') and row not in machine]
        if others:
            lines += [*('%s: %s  ' % tuple(row) for row in others), '']
        for item in scenario['blocks']:
            lines += block(item)
    return lines


def load_average(measured):
    return '; load average of the minute before the command %.2f, before this part %.2f, at its end %.2f' % tuple(
        measured['load'])


def keep_others(results, directory, order):
    """The sections of this run, and of the last report in this place those that were not measured again."""
    sections = {section['name']: section for section in results['sections']}
    last = read_json(directory, 'results')
    if last is not None and last['run']['quick'] == results['run']['quick']:
        sections = {**{section['name']: section for section in last['sections']}, **sections}
    return [sections[name] for name in order if name in sections]


def add_scenario(directory, scenario):
    """Put what scripts/scenario has measured in the place of what is there of the same job, and keep the others."""
    os.makedirs(directory, exist_ok=True)
    scenarios = {other['name']: other for other in read_json(directory, 'scenarios') or []}
    scenarios[scenario['name']] = scenario
    write_json([scenarios[name] for name in sorted(scenarios)], directory, 'scenarios')
    render(directory)


def read_json(directory, name):
    path = os.path.join(directory, name + '.json')
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def write_json(what, directory, name):
    with open(os.path.join(directory, name + '.json'), 'w', encoding='utf-8') as file:
        json.dump(what, file, indent=1, ensure_ascii=False)
        file.write('\n')


def write(results, directory):
    write_json(results, directory, 'results')
    render(directory)


def render(directory):
    text = markdown(read_json(directory, 'results'), read_json(directory, 'scenarios'))
    with open(os.path.join(directory, 'REPORT.md'), 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    render(sys.argv[1])
