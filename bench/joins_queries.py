"""Parts of the section on joins: many queries, of which the sum and the worst count, and the time of planning.

The analytic ones have a schema of their own. Of the generated ones, most gain nothing from a filter, and some are made
so that one costs much: expensive keys, estimates that are wrong, rows that all match. Tables and queries are the same
in each run.
"""
import os
import random
import re
import statistics
import subprocess

from lib import (OFF, ON, PLANNED, Timing, filter_session, keep_analysis, log, measure_equal, median_ratio, settings_text,
                 significant)
from report import TARGETS

ROUNDS = (7, 1)
ANALYTIC_SCALE = ('1', '0.02')
ANALYTIC_SETTINGS = {'search_path': 'analytic', 'work_mem': "'64MB'"}

PLANNING = '''SELECT count(*) FROM wide_facts f, {dims}, {outer}
 WHERE {joins}
   AND d1.kind = 1 AND d2.kind = 2 AND o3.kind = 3'''


def queries(bench):
    """{name: SQL} of joins_queries.sql, after its tables."""
    with open(os.path.join(bench.sources, 'bench', 'joins_queries.sql')) as file:
        parts = re.split(r'^-- (.+)\n', file.read().partition('\n\\q\n')[2], flags=re.M)
    return {name: sql.strip().rstrip(';') for name, sql in zip(parts[1::2], parts[2::2])}


def fill(bench):
    log('    filling the analytic schema')
    server = bench.server
    with server.until_ended():
        subprocess.run([os.path.join(server.programs, 'psql'), '-X', '-q', '-h', server.socket_dir, '-U', 'postgres',
                        '-d', server.database, '-v', 'scale=' + bench.scale(*ANALYTIC_SCALE),
                        '-f', os.path.join(bench.sources, 'bench', 'joins_queries.sql')],
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
    section.text('''**{} analytic queries{}** over {:.2g} GB, the data and the queries of `bench/joins_queries.sql`; {}. Filters are those in the plan. Without one, both variants run the same
        plan, so the ratio tells only how quiet the machine was; the worst query is one with a filter. *Planned* is
        `bloomfilter.join_planning`, of which the worst is one of all.'''.format(
            len(queries(bench)), ', orders, sales and visits partitioned by month' if by_month else '',
            size(bench) / 1e9, settings_text(**ANALYTIC_SETTINGS)))
    keys = {'planned': ('months analytic', 'months worst')} if by_month else {
        'on': ('auto analytic', 'auto worst'), 'planned': ('planned analytic', 'planned worst')}
    measured, filters = {}, {}
    with filter_session(bench, ANALYTIC_SETTINGS) as session:
        for name, sql in queries(bench).items():
            log('    ' + name)
            measured[name] = measure_equal(bench, session, variants_of(sql), bench.scale(*ROUNDS))
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
        report(section, measured, filters, keys)
        for variant, (_, worst) in keys.items():
            for name, sql in queries(bench).items():
                if (is_compared(filters[name], variant) and is_complete(measured[name]) and
                        ratio(measured[name], variant)[0] > TARGETS[worst].at_most):
                    keep_analysis(section, worst, session, variants_of(sql), variant, name)
        session.execute('DROP SCHEMA analytic CASCADE')


def variants_of(sql):
    return {'off': (OFF, sql), 'on': (ON, sql), 'planned': (PLANNED, sql)}


def is_compared(filters, variant):
    """Without filters the plan is the same, but not if it is made for estimates that differ."""
    return filters > 0 or variant == 'planned'


def size(bench):
    with bench.session() as session:
        return int(session.value("SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                                 "WHERE relnamespace = 'analytic'::regnamespace AND relkind = 'r'"))


def is_complete(timings):
    """Was no variant stopped by statement_timeout?"""
    return not any(None in series for series in timings.values())


def ratio(timings, variant):
    return median_ratio([t.cpu for t in timings[variant]], [t.cpu for t in timings['off']])


def total(measured, variant):
    """The sums of each round."""
    return [Timing(sum(t.wall for t in of_round), sum(t.cpu for t in of_round))
            for of_round in zip(*(timings[variant] for timings in measured.values()))]


def report(section, measured, filters, keys):
    measured = {name: timings for name, timings in measured.items() if is_complete(timings)}
    sums = {variant: total(measured, variant) for variant in variants_of('')}
    rows = []
    for name, timings in [*measured.items(), ('**sum**', sums)]:
        rows.append([name, filters.get(name, sum(filters.values())),
                     *(significant(1000 * statistics.median(t.cpu for t in series)) for series in timings.values()),
                     *(form % figures for variant in ('on', 'planned') for form, figures in (
                         ('%.2f', ratio(timings, variant)[0]), ('%.2f to %.2f', ratio(timings, variant)[1:])))])
    section.table(['query', 'filters', *('CPU %s, ms' % variant for variant in sums),
                   'on / off', 'single rounds', 'planned / off', 'single rounds'], rows)
    missing = [name for name in filters if name not in measured]
    if missing:
        section.text('Stopped by statement_timeout: ' + ', '.join(missing))
    for variant, (of_sum, of_worst) in keys.items():
        worst = max((timings for name, timings in measured.items() if is_compared(filters[name], variant)),
                    key=lambda timings, variant=variant: ratio(timings, variant))
        section.target(of_sum, *((None,) if missing else sums[name] for name in (variant, 'off')))
        section.target(of_worst, *((None,) if missing else worst[name] for name in (variant, 'off')))


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


# The part "generated"
GENERATED = (200, 20)
GENERATED_ROWS = (500_000, 20_000)
GENERATED_SETTINGS = {'search_path': 'generated', 'work_mem': "'64MB'", 'max_parallel_workers_per_gather': 0, 'jit': 'off'}

# k is one of as many keys as a tenth of the rows; a key of the inner side is one of them if part is one of the smallest.
GENERATED_TABLES = '''
CREATE SCHEMA generated;
SET search_path = generated;
CREATE FUNCTION slow(i bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN i * 2 / 2; END';
CREATE UNLOGGED TABLE facts AS
SELECT i AS id, i * 7919 %% {keys} AS k, (i %% 97)::int AS g, 'key ' || i * 7919 %% {keys} AS t,
    jsonb_build_object('k', 'key ' || i * 7919 %% {keys}, 'g', i %% 97) AS j, repeat('x', (i %% 200)::int) AS filler
  FROM generate_series(1::bigint, {rows}) AS i;
CREATE UNLOGGED TABLE dims AS
SELECT i AS k, (i * 7907 %% 1000)::int AS part, 'key ' || i AS t, 'name ' || i AS name FROM generate_series(0::bigint, {keys} - 1) AS i;
CREATE UNLOGGED TABLE copies AS SELECT * FROM dims, generate_series(1, 3) AS copy;
CREATE UNLOGGED TABLE seen AS SELECT i AS id FROM generate_series(1::bigint, {rows}) AS i WHERE i %% 100 > 0;
CREATE UNLOGGED TABLE documents (id bigint, k bigint, t text);
ALTER TABLE documents ALTER t SET STORAGE EXTERNAL;
INSERT INTO documents SELECT id, k, repeat(md5(k::text), 150) FROM facts WHERE id <= {rows} / 20;
CREATE UNLOGGED TABLE document_keys (k bigint, part int, t text);
ALTER TABLE document_keys ALTER t SET STORAGE EXTERNAL;
INSERT INTO document_keys SELECT k, part, repeat(md5(k::text), 150) FROM dims WHERE k %% 10 = 0;
VACUUM (FREEZE, ANALYZE) facts, dims, copies, seen, documents, document_keys
'''

# The outer side, f: its text, and the factor of its rows to those of facts.
OUTER_SIDES = {
    'facts': 'facts f',
    'grouped': '(SELECT k, max(t) AS t, count(*) AS n, max(j::text)::jsonb AS j FROM facts GROUP BY k) f',
    'grouped by join': '(SELECT x.k, max(x.t) AS t, count(*) AS n FROM facts x JOIN dims USING (k) GROUP BY x.k) f',
    'distinct': '(SELECT DISTINCT k, t, j FROM facts) f',
    'anti': '(SELECT * FROM facts x WHERE NOT EXISTS (SELECT FROM seen WHERE seen.id = x.id)) f',
    'joined': '(SELECT x.* FROM facts x JOIN seen USING (id)) f',
    'half': '(SELECT * FROM facts WHERE g < 48) f',
    'union': '(SELECT k, t, j FROM facts WHERE g < 30 UNION ALL SELECT k, t, j FROM facts WHERE g > 60) f',
    'sorted': '(SELECT k, t, j, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM facts) f',
    'documents': 'documents f',
    'new documents': '(SELECT * FROM documents x WHERE NOT EXISTS (SELECT FROM seen WHERE seen.id = x.id)) f',
}

# The key of f and of d, the inner side.
KEY_PAIRS = {
    'number': ('f.k', 'd.k'), 'integer': ('f.k', 'd.k::int'), 'text': ('f.t', 'd.t'), 'slow': ('slow(f.k)', 'd.k'),
    'lower': ('lower(f.t)', 'd.t'), 'jsonb': ("f.j ->> 'k'", 'd.t'), 'sum': ('f.k + 1', 'd.k + 1'),
}

# Conditions on d, of which the planner knows the share of rows, and others of which it expects a third or less.
CONDITIONS = ('d.part < {n}', 'd.part + 0 < {n}', 'd.part < {n} AND length(d.t) > 0', 'd.part + 0 < {n} AND d.part + 1 < 1001',
              'd.part = {n} / 10')
PARTS = (1, 10, 50, 200, 500, 900, 1000, 1000)

# Queries that were slower with filters, some of them much.
NAMED = {
    'a TOASTed key below an anti-join': 'SELECT count(*) FROM {new documents} JOIN document_keys d USING (t)',
    'five EXISTS on a slow key': 'SELECT count(*) FROM facts f WHERE ' + ' AND '.join(
        'EXISTS (SELECT FROM dims d WHERE d.k = slow(f.k) AND d.part + %d >= 0)' % n for n in range(5)),
    'a jsonb key': "SELECT count(*) FROM facts f JOIN dims d ON f.j ->> 'k' = d.t WHERE d.part + 0 < 900",
    'GROUP BY, all match': 'SELECT count(*), sum(n) FROM {grouped} JOIN copies d USING (k)',
    'more inner rows than outer ones': 'SELECT count(*) FROM seen f JOIN facts d USING (id)',
}


def generate(number):
    """{name: SQL} of the named queries, and of random ones up to so many."""
    rng = random.Random(20)
    queries = {name: sql.replace('{new documents}', OUTER_SIDES['new documents']).replace('{grouped}', OUTER_SIDES['grouped'])
               for name, sql in NAMED.items()}
    while len(queries) < number:
        name, sql = generate_one(rng)
        queries.setdefault(name, sql)
    return queries


def generate_one(rng):
    outer = rng.choice(list(OUTER_SIDES))
    wide = 'documents' in outer
    key = rng.choice(['number', 'text', 'text', 'slow'] if wide else ['number', 'number', *KEY_PAIRS])
    if outer == 'grouped by join' and key == 'jsonb':
        key = 'text'
    inner = 'document_keys' if wide else rng.choice(['dims', 'dims', 'copies', '(SELECT * FROM dims OFFSET 0)'])
    condition = rng.choice(CONDITIONS).format(n=rng.choice(PARTS))
    kind = rng.choice(['join', 'join', 'exists', 'exists twice', 'grouped above', 'right'])
    outer_key, inner_key = KEY_PAIRS[key]
    name = ', '.join((outer, key, inner.strip('()').replace('SELECT * FROM ', '').replace(' OFFSET 0', ' as a subquery'),
                      condition, kind))
    return name, join(kind, OUTER_SIDES[outer], '%s = %s' % (outer_key, inner_key), inner, condition)


def join(kind, outer, equality, inner, condition):
    exists = 'EXISTS (SELECT FROM %s d WHERE %s AND %s)' % (inner, equality, condition)
    if kind == 'exists':
        return 'SELECT count(*) FROM %s WHERE %s' % (outer, exists)
    if kind == 'exists twice':
        return 'SELECT count(*) FROM %s WHERE %s AND %s' % (outer, exists, exists.replace('d.part', '(d.part - 0)'))
    if kind == 'grouped above':
        return 'SELECT d.part, count(*) FROM %s JOIN %s d ON %s WHERE %s GROUP BY d.part' % (outer, inner, equality, condition)
    if kind == 'right':
        return 'SELECT count(*), count(f.k) FROM %s RIGHT JOIN (SELECT * FROM %s d WHERE %s) d ON %s' % (
            outer, inner, condition, equality)
    return 'SELECT count(*), max(d.part) FROM %s JOIN %s d ON %s WHERE %s' % (outer, inner, equality, condition)


def fill_generated(session, rows):
    for statement in GENERATED_TABLES.format(rows=rows, keys=rows // 10).replace('%%', '%').split(';\n'):
        session.execute(statement)


def run_generated(bench, section):
    queries = generate(bench.scale(*GENERATED))
    log('    filling the schema of generated queries')
    with bench.session(statement_timeout=0) as session:
        fill_generated(session, bench.scale(*GENERATED_ROWS))
    with filter_session(bench, GENERATED_SETTINGS) as session:
        measured, filters = {}, {}
        for name, sql in queries.items():
            log('    ' + name)
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
            if filters[name] > 0:
                measured[name] = measure_equal(bench, session, {'off': (OFF, sql), 'on': (ON, sql)},
                                               bench.scale(*ROUNDS))
        worst_first = sorted(measured, key=lambda name: -ratio(measured[name], 'on')[0])
        section.text('''**%d generated queries** over %d rows, of `bench/joins_queries.py`, %s. %d of them have filters;
            these are the worst.''' % (len(queries), bench.scale(*GENERATED_ROWS), settings_text(**GENERATED_SETTINGS), len(measured)))
        section.table(['query', 'filters', 'CPU on / off'],
                      [[name, filters[name], '%.2f' % ratio(measured[name], 'on')[0]] for name in worst_first[:10]])
        worst = worst_first[0]
        section.target('auto generated', measured[worst]['on'], measured[worst]['off'])
        if ratio(measured[worst], 'on')[0] > TARGETS['auto generated'].at_most:
            sql = queries[worst]
            keep_analysis(section, 'auto generated', session, {'off': (OFF, sql), 'on': (ON, sql)}, 'on', worst)
        session.execute('DROP SCHEMA generated CASCADE')
