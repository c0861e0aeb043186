"""Rows looked up by a key in a partitioned table, with the index of all partitions asked and not."""
import statistics

import plots
from lib import as_bytes, significant

TITLE = 'Looking for a key'
SECONDS = (700, 60)

PREPARED = 'PREPARE by_id(bigint) AS SELECT * FROM events WHERE id = $1'
DAY = "day = '2020-01-02'"
# Target, statement for a key that is there or not, how many in one measurement, settings.
STATEMENTS = (
    ('key literal', 'literal, key present', 'SELECT * FROM events WHERE id = {present}', 5, {}),
    ('key absent', 'literal, key absent', 'SELECT * FROM events WHERE id = {absent}', 5, {}),
    ('key custom', 'prepared, custom plan', 'EXECUTE by_id({present})', 5, {'plan_cache_mode': 'force_custom_plan'}),
    ('key generic', 'prepared, generic plan', 'EXECUTE by_id({present})', 20, {'plan_cache_mode': 'force_generic_plan'}),
    ('key list', 'list of 20', 'SELECT * FROM events WHERE id IN ({list})', 5, {}),
    ('key update', 'UPDATE of one row', 'UPDATE events SET what = what WHERE id = {present}', 5, {}),
    ('key pruned', 'with the partition key', 'SELECT * FROM events WHERE id = {present} AND ' + DAY, 5000, {}),
    ('key none', 'a table without the index', 'SELECT * FROM no_filter WHERE id = {present}', 5000, {}),
    ('key primary', 'primary key of one table', 'SELECT * FROM one WHERE id = {present}', 5000, {}),
    ('key join', 'join with 50 ids', 'SELECT * FROM events JOIN wanted USING (id)', 5, {}),
)
FEWER = ('key literal', 'key absent', 'key custom', 'key list')


def run(bench, section):
    measure_table(bench, section, bench.scale(1000, 60), bench.scale(10000, 200), STATEMENTS)
    measure_table(bench, section, bench.scale(384, 40), bench.scale(100000, 500),
                  [statement for statement in STATEMENTS if statement[0] in FEWER])
    by_partitions(bench, section, bench.scale((10, 30, 100, 300, 1000), (10, 30)))


def by_partitions(bench, section, numbers):
    """What one lookup takes by the number of partitions, which have 1,000 rows each."""
    points = {'off': [], 'on': []}
    with bench.session(statement_timeout=0) as session:
        session.execute("LOAD 'bloomfilter'")
        for partitions in numbers:
            fill_events(session, partitions, 1000 * partitions)
            session.execute('ANALYZE events')
            timings = measure(bench, session, 1000 * partitions, STATEMENTS[0][2], 5, {})
            for mode, series in timings.items():
                points[mode].append((partitions, cpu(series)))
            session.execute('DROP TABLE events')
    plots.lines(section.plot('keys', 'One row by id, planned and executed, in partitions of 1,000 rows'),
                x='partitions', y='CPU time, ms', series=[
                    ('btrees', points['off']), ('filters and btrees', points['on'])])


def measure_table(bench, section, partitions, rows_each, what):
    """Only the table for which all statements are measured is held against the targets."""
    rows = partitions * rows_each
    with bench.session(statement_timeout=0, maintenance_work_mem='512MB') as session:
        fill(session, partitions, rows)
        sizes = {name: session.value("SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('events_%s')" % name)
                 for name in ('btree', 'filter')}
        session.execute("LOAD 'bloomfilter'; " + PREPARED)
        timings = {key: measure(bench, session, rows, sql, number, settings)
                   for key, _, sql, number, settings in what}
        held = locks(session)
        pages = pages_read(session, 'SELECT * FROM bare WHERE id = -1')
        session.execute('DROP INDEX events_btree; ANALYZE events')
        timings['key dropped'] = against(bench, session, rows, STATEMENTS[0][2], 5, timings['key literal']['off'])
        session.execute('DROP TABLE events, no_filter, one, bare, wanted')
    probes = [t.cpu / partitions * 1e6 for t in timings['key absent']['on']]
    section.text('''{:,} rows in {:,} partitions by day, each with a btree ({}) and a filter ({}). Planning and execution
        together, with `bloomfilter.index_pruning` off and on. A lookup holds {} locks, {:,} without pruning. An absent key
        takes {} µs for each partition. In a table of 100,000 rows without a btree, it reads {} pages.'''.format(
            rows, partitions, as_bytes(sizes['btree']), as_bytes(sizes['filter']), held['on'], held['off'],
            significant(statistics.median(probes)), pages))
    names = {key: name for key, name, *_ in STATEMENTS}
    names['key dropped'] = 'literal, without the btrees, against off with them'
    section.table(['', 'off, CPU ms', 'on, CPU ms', 'on / off', 'on, wall ms'], [
        [names[key], *(significant(value) for value in (
            cpu(series['off']), cpu(series['on']), cpu(series['on']) / (cpu(series['off']) or 1e-9),
            statistics.median(t.wall * 1e3 for t in series['on'])))] for key, series in timings.items()])
    if what is not STATEMENTS:
        return
    for key, series in timings.items():
        section.target(key, series['on'], series['off'])
    section.target('key locks', [held['on']], [20])
    section.target('key pages', [pages], [5])
    section.target('key probe', probes, [0.7] * len(probes))


def cpu(series):
    return statistics.median(t.cpu * 1e3 for t in series)


def pages_read(session, sql):
    plan = session.value('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' + sql)[0]['Plan']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


def fill_events(session, partitions, rows):
    session.execute('CREATE TABLE events (day date, id bigint, what text) PARTITION BY RANGE (day)')
    for day in range(partitions):
        session.execute("DO $$ BEGIN EXECUTE format('CREATE TABLE events_%d PARTITION OF events FOR VALUES FROM (%%L)"
                        " TO (%%L)', date '2020-01-01' + %d, date '2020-01-01' + %d); END $$" % (day, day, day + 1))
    session.execute("INSERT INTO events SELECT date '2020-01-01' + (i %% %d)::int, i, 'event ' || i"
                    ' FROM generate_series(1, %d::bigint) i' % (partitions, rows))
    session.execute('CREATE INDEX events_btree ON events (id)')
    session.execute('CREATE INDEX events_filter ON events USING bloomfilter (id) WITH (fpp = 1e-5)')


def fill(session, partitions, rows):
    fill_events(session, partitions, rows)
    session.execute('CREATE TABLE no_filter AS SELECT id FROM events LIMIT 100000; CREATE INDEX ON no_filter (id)')
    session.execute('CREATE TABLE one AS SELECT id FROM events LIMIT 100000; ALTER TABLE one ADD PRIMARY KEY (id);'
                    ' CREATE INDEX ON one USING bloomfilter (id)')
    session.execute('CREATE TABLE bare AS SELECT id FROM events LIMIT 100000;'
                    ' CREATE INDEX ON bare USING bloomfilter (id) WITH (fpp = 1e-5)')
    session.execute('CREATE TABLE wanted AS SELECT i * %d + 1 AS id FROM generate_series(0, 49) i' % (rows // 50 - 7))
    session.execute('ANALYZE events, no_filter, one, bare, wanted')


def statements(rows, sql, number):
    """So many of them, each with other keys."""
    for i in range(number):
        present = i * 7919 % rows + 1
        yield sql.format(present=present, absent=-present,
                         list=', '.join(str((present + j * 104729) % rows + 1) for j in range(20)))


def one_measurement(session, rows, sql, number, mode):
    session.execute('SET bloomfilter.index_pruning = {0}; SET bloomfilter.join_filters = {0}'.format(mode))
    if sql.startswith('EXECUTE'):
        session.execute('DEALLOCATE by_id; ' + PREPARED)
    for statement in statements(rows, sql, 2):
        session.execute(statement)
    timing = session.measure('; '.join(statements(rows, sql, number)))
    return timing._replace(wall=timing.wall / number, cpu=timing.cpu / number)


def measure(bench, session, rows, sql, number, settings):
    for name, value in settings.items():
        session.execute('SET %s = %s' % (name, value))
    timings = bench.in_turns({mode: lambda mode=mode: one_measurement(session, rows, sql, number, mode)
                              for mode in ('off', 'on')})
    for name in settings:
        session.execute('RESET ' + name)
    return timings


def against(bench, session, rows, sql, number, off):
    """With pruning, against what was measured before without."""
    on = bench.in_turns({'on': lambda: one_measurement(session, rows, sql, number, 'on')})['on']
    return {'off': off, 'on': on}


def locks(session):
    held = {}
    for mode in ('off', 'on'):
        session.execute('SET bloomfilter.index_pruning = ' + mode)
        session.execute('BEGIN; SELECT * FROM events WHERE id = 42')
        held[mode] = session.value('SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()')
        session.execute('COMMIT')
    return held
