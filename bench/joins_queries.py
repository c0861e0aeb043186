"""Parts of the section on joins: analytic queries, of which the sum and the worst count, and the time of planning."""
import os
import re
import statistics
import subprocess

from lib import OFF, ON, Timing, filter_session, log, measure_equal, median_ratio, settings_text, significant

ROUNDS = (7, 1)
ANALYTIC_SCALE = ('1', '0.02')
ANALYTIC_SETTINGS = {'search_path': 'analytic', 'work_mem': "'64MB'"}

PLANNING = '''SELECT count(*) FROM wide_facts f, {dims}, {outer}
 WHERE {joins}
   AND d1.kind = 1 AND d2.kind = 2 AND o3.kind = 3'''


def queries(bench, script='joins_queries.sql'):
    """{name: SQL} of a script, after its tables."""
    with open(os.path.join(bench.sources, 'bench', script)) as file:
        parts = re.split(r'^-- (.+)\n', file.read().partition('\n\\q\n')[2], flags=re.M)
    return {name: sql.strip().rstrip(';') for name, sql in zip(parts[1::2], parts[2::2])}


def fill(bench, script='joins_queries.sql', scale=ANALYTIC_SCALE):
    log('    filling the tables of ' + script)
    server = bench.server
    with server.until_ended():
        subprocess.run([os.path.join(server.programs, 'psql'), '-X', '-q', '-h', server.socket_dir, '-U', 'postgres',
                        '-d', server.database, '-v', 'scale=' + bench.scale(*scale),
                        '-f', os.path.join(bench.sources, 'bench', script)],
                       check=True, stdout=subprocess.DEVNULL)


def divide(bench):
    """Put the facts with a day into a partition for each month."""
    with bench.session(statement_timeout=0) as session:
        for table, day, key in (('sales', 'day', None), ('visits', 'day', None), ('orders', 'ordered', 'order_id')):
            session.execute('''SET search_path = analytic;
                ALTER TABLE {0} RENAME TO whole_{0};
                CREATE TABLE {0} (LIKE whole_{0}) PARTITION BY RANGE ({1});
                DO $$ BEGIN FOR i IN 0..83 LOOP
                    EXECUTE format('CREATE UNLOGGED TABLE {0}_%s PARTITION OF {0} FOR VALUES FROM (%L) TO (%L)', i,
                        date '2018-01-01' + i * interval '1 month', date '2018-01-01' + (i + 1) * interval '1 month');
                END LOOP; END $$;
                INSERT INTO {0} SELECT * FROM whole_{0};
                DROP TABLE whole_{0}'''.format(table, day))
            if key is not None:
                session.execute('ALTER TABLE {0} ADD PRIMARY KEY ({1}, {2})'.format(table, key, day))
            session.execute('VACUUM (FREEZE, ANALYZE) ' + table)


def run_analytic(bench, section, by_month=False):
    fill(bench)
    if by_month:
        divide(bench)
    section.text('''**{} analytic queries{}** over {:.2g} GB, the data and the queries of `bench/joins_queries.sql`; {}. Filters are those in the plan.'''.format(
            len(queries(bench)), ', orders, sales and visits partitioned by month' if by_month else '',
            size(bench) / 1e9, settings_text(**ANALYTIC_SETTINGS)))
    targets = ('months analytic', 'months worst') if by_month else ('auto analytic', 'auto worst')
    measured, filters = {}, {}
    with filter_session(bench, ANALYTIC_SETTINGS) as session:
        for name, sql in queries(bench).items():
            log('    ' + name)
            measured[name] = measure_equal(bench, session, variants_of(sql), bench.scale(*ROUNDS))
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
        report(section, measured, filters, targets)
        session.execute('DROP SCHEMA analytic CASCADE')


def variants_of(sql):
    return {'off': (OFF, sql), 'on': (ON, sql)}


def size(bench, schema='analytic'):
    with bench.session() as session:
        return int(session.value("SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                                 "WHERE relnamespace = %s::regnamespace AND relkind = 'r'", [schema]))


def is_complete(timings):
    """Was no variant stopped by statement_timeout?"""
    return not any(None in series for series in timings.values())


def ratio(timings):
    return median_ratio([t.cpu for t in timings['on']], [t.cpu for t in timings['off']])


def total(measured, variant):
    """The sums of each round."""
    return [Timing(sum(t.wall for t in of_round), sum(t.cpu for t in of_round))
            for of_round in zip(*(timings[variant] for timings in measured.values()))]


def report(section, measured, filters, targets):
    """The table, and the targets of the sum and of the worst query."""
    measured = {name: timings for name, timings in measured.items() if is_complete(timings)}
    sums = {variant: total(measured, variant) for variant in ('off', 'on')}
    rows = []
    for name, timings in [*measured.items(), ('**sum**', sums)]:
        rows.append([name, filters.get(name, sum(filters.values())),
                     *(significant(1000 * statistics.median(t.cpu for t in series)) for series in timings.values()),
                     '%.2f' % ratio(timings)[0], '%.2f to %.2f' % ratio(timings)[1:]])
    section.table(['query', 'filters', 'CPU off, ms', 'CPU on, ms', 'on / off', 'single rounds'], rows)
    section.text('Geometric mean: %.2f' % statistics.geometric_mean(
        ratio(timings)[0] for timings in measured.values()))
    missing = [name for name in filters if name not in measured]
    if missing:
        section.text('Stopped by statement_timeout: ' + ', '.join(missing))
    for target, timings in zip(targets, (sums, max(measured.values(), key=ratio))):
        section.target(target, *((None,) if missing else timings[variant] for variant in ('on', 'off')))


def planning(bench, section):
    """A measurement is the median of many plans."""
    log('    planning')
    times = bench.scale(100, 10)
    sql = make_planning_tables(bench)
    with filter_session(bench, {}) as session:
        planning_time(session, ON, sql, times)      # fills the caches of the system catalogs
        series = bench.in_turns({name: (lambda setting=setting: planning_time(session, setting, sql, times))
                                 for name, setting in (('off', OFF), ('on', ON))}, bench.scale(*ROUNDS))
        section.text('**Planning of a join of ten tables**, CPU time as by log_planner_stats, median of %d times' % times)
        section.code('sql', sql)
        section.table(['join filters', 'CPU, ms a plan', 'CPU, × off'],
                      [[name, significant(statistics.median(values)), '%.3f' % median_ratio(values, series['off'])[0]]
                       for name, values in series.items()])
        session.execute(ON)
        section.target('auto planning', series['on'], series['off'])
        section.plan('Ten tables', session, sql, [r'Custom Scan \(Bloom Filter\).*Custom Scan \(Bloom Filter\)'])


def planning_time(session, setting, sql, times):
    """Of the user and system time that log_planner_stats reports, in ms."""
    session.execute(setting + '; SET log_planner_stats = on; SET client_min_messages = log')
    values = []
    for _ in range(times):
        del session.connection.notices[:]
        session.explain(sql)
        message = ''.join(session.connection.notices)
        user, system = re.search(r'PLANNER STATISTICS.*?([0-9.]+) s user, ([0-9.]+) s system', message, re.S).groups()
        values.append(1000 * (float(user) + float(system)))
    session.execute('RESET log_planner_stats; RESET client_min_messages')
    return statistics.median(values)


def make_planning_tables(bench):
    """A fact with six dimensions, of which three have a table further out. Returns the query."""
    inner, outer = range(1, 7), range(1, 4)
    with bench.session() as session:
        for name in [*('d%d' % i for i in inner), *('o%d' % i for i in outer)]:
            session.execute('''CREATE UNLOGGED TABLE {0} AS
                SELECT i AS id, i % 50 AS outer_id, i % 10 AS kind FROM generate_series(0, 999) AS i;
                ALTER TABLE {0} ADD PRIMARY KEY (id); ANALYZE {0}'''.format(name))
        session.execute('''CREATE UNLOGGED TABLE wide_facts AS SELECT %s FROM generate_series(1, 100000) AS i;
            ANALYZE wide_facts''' % ', '.join('i * %d %% 1000 AS d%d' % (7 + 2 * i, i) for i in inner))
    return PLANNING.format(dims=', '.join('d%d' % i for i in inner), outer=', '.join('o%d' % i for i in outer),
                           joins='\n   AND '.join([*('f.d{0} = d{0}.id'.format(i) for i in inner),
                                                   *('d{0}.outer_id = o{0}.id'.format(i) for i in outer)]))
