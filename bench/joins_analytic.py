"""Parts of the section on joins: analytic queries over a schema of their own, and planning."""
import os
import re
import statistics
import subprocess

from joins_common import OFF, ON, filter_session, keep_analysis, measure_equal
from lib import Timing, log, median_ratio, settings_text, significant
from targets import TARGETS

ROUNDS = (7, 1)
SCALE = ('1', '0.02')
SETTINGS = {'search_path': 'analytic', 'work_mem': "'64MB'"}

PLANNING = '''SELECT count(*) FROM wide_facts f, {dims}, {outer}
 WHERE {joins}
   AND d1.kind = 1 AND d2.kind = 2 AND o3.kind = 3'''


def queries(bench):
    """{name: SQL} of analytic_queries.sql."""
    with open(os.path.join(bench.sources, 'bench', 'analytic_queries.sql')) as file:
        parts = re.split(r'^-- (.+)\n', file.read().partition('\n\n')[2], flags=re.M)
    return {name: sql.strip().rstrip(';') for name, sql in zip(parts[1::2], parts[2::2])}


def fill(bench):
    log('    filling the analytic schema')
    server = bench.server
    with server.until_ended():
        subprocess.run([os.path.join(server.programs, 'psql'), '-X', '-q', '-h', server.socket_dir, '-U', 'postgres',
                        '-d', server.database, '-v', 'scale=' + bench.scale(*SCALE),
                        '-f', os.path.join(bench.sources, 'bench', 'analytic_data.sql')],
                       check=True, stdout=subprocess.DEVNULL)


def run(bench, section):
    fill(bench)
    section.text('''**{} analytic queries** over {:.2g} GB, the data of `bench/analytic_data.sql` and the queries of
        `bench/analytic_queries.sql`; {}. Filters are those in the plan. Without one, both variants run the same
        plan, so the ratio tells only how quiet the machine was; the worst query is one with a filter.'''.format(
            len(queries(bench)), size(bench) / 1e9, settings_text(**SETTINGS)))
    measured, filters = {}, {}
    with filter_session(bench, SETTINGS) as session:
        for name, sql in queries(bench).items():
            log('    ' + name)
            measured[name] = measure_equal(bench, session, {'off': (OFF, sql), 'on': (ON, sql)}, bench.scale(*ROUNDS))
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
        report(section, measured, filters)
        for name, sql in queries(bench).items():
            if (filters[name] > 0 and is_complete(measured[name]) and
                    ratio(measured[name])[0] > TARGETS['auto worst'].at_most):
                keep_analysis(section, 'auto worst', session, {'off': (OFF, sql), 'on': (ON, sql)}, 'on', name)
        session.execute('DROP SCHEMA analytic CASCADE')


def size(bench):
    with bench.session() as session:
        return int(session.value("SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                                 "WHERE relnamespace = 'analytic'::regnamespace AND relkind = 'r'"))


def is_complete(timings):
    """Was no variant stopped by statement_timeout?"""
    return None not in timings['off'] + timings['on']


def ratio(timings):
    return median_ratio([t.cpu for t in timings['on']], [t.cpu for t in timings['off']])


def total(measured, variant):
    """The sums of each round."""
    return [Timing(sum(t.wall for t in of_round), sum(t.cpu for t in of_round))
            for of_round in zip(*(timings[variant] for timings in measured.values()))]


def report(section, measured, filters):
    measured = {name: timings for name, timings in measured.items() if is_complete(timings)}
    sums = {'off': total(measured, 'off'), 'on': total(measured, 'on')}
    rows = []
    for name, timings in [*measured.items(), ('**sum**', sums)]:
        rows.append([name, filters.get(name, sum(filters.values())),
                     *(significant(1000 * statistics.median(t.cpu for t in timings[variant]))
                       for variant in ('off', 'on')),
                     '%.2f' % ratio(timings)[0], '%.2f to %.2f' % ratio(timings)[1:]])
    section.table(['query', 'filters', 'CPU off, ms', 'CPU on, ms', 'on / off', 'single rounds'], rows)
    missing = [name for name in filters if name not in measured]
    if missing:
        section.text('Stopped by statement_timeout: ' + ', '.join(missing))
    worst = max((timings for name, timings in measured.items() if filters[name] > 0), key=ratio)
    section.target('auto analytic', *((None,) if missing else sums[name] for name in ('on', 'off')))
    section.target('auto worst', *((None,) if missing else worst[name] for name in ('on', 'off')))


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
        section.target('auto planning', series['on'], series['off'], profile=(session, explain_often(sql, times)))
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


def explain_often(sql, times):
    """One statement for perf."""
    return '''DO $do$ DECLARE line text; BEGIN
        FOR i IN 1..%d LOOP FOR line IN EXECUTE $$EXPLAIN (COSTS OFF) %s$$ LOOP END LOOP; END LOOP; END $do$''' % (
            times, sql)


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
