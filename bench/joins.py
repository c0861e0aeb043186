"""Joins with filters: unmodified queries with bloomfilter.join_filters off and on, and filters written by hand."""
import collections
import re

import joins_queries
import retail
from lib import OFF, ON, UNPLANNED, filter_session, log, measure_equal, median_ratio, settings_text, significant

TITLE = 'Joins'
SECONDS = (3800, 130)

ROUNDS = (7, 1)
FOREIGN_ROUNDS = (3, 1)

# A query; if it has a place for one more condition, what that is, with a filter.
Query = collections.namedtuple('Query', 'text filter', defaults=(None,))

# What to measure: targets are keys of TARGETS for the variants "on" and "by hand"; expected are regular expressions
# for each plan.
Case = collections.namedtuple('Case', 'part title query settings expected targets without rounds',
                              defaults=((), ROUNDS))

JOIN = Query('SELECT count(*), sum(score), max(id) FROM urls JOIN pages USING (url){}',
             ' WHERE bloom_contains((SELECT bloom_agg(url, 0.01, {tenth}) FROM pages), urls.url)')

GROUPING = Query('''SELECT count(*), sum(n), max(total) FROM kept_pages JOIN
  (SELECT url, count(*) AS n, sum(ms) AS total FROM visits GROUP BY url) v USING (url)''')

PARTITIONED = Query('SELECT plan, count(*), sum(ms) FROM events JOIN subscribers USING (visitor) GROUP BY plan')

DIMENSIONS = ('day', 'store', 'product', 'customer')
STAR = Query('SELECT s.region, count(*), sum(amount) FROM star_facts f\n  ' +
             '\n  '.join('JOIN star_%ss %s USING (%s)' % (name, name[0], name) for name in DIMENSIONS) +
             '\n WHERE ' + ' AND '.join('%s.part = 3' % name[0] for name in DIMENSIONS) + ' GROUP BY s.region')

# The planner expects a third of the rows to match, but all do.
ALL_MATCH = Query('SELECT count(*), sum(amount), max(region) FROM sales JOIN customers USING (customer)'
                  ' WHERE length(name) > 0')
WIDE = Query('SELECT count(*), max(name) FROM wide_sales JOIN amounts USING (amount) WHERE length(name) > 0 AND c0 % 10 < 1')
ALL_MATCH_SMALL = Query('SELECT count(*), sum(customer), max(name) FROM sales JOIN amounts USING (amount)'
                        ' WHERE length(name) > 0')

PARALLEL = {'work_mem': "'1GB'", 'max_parallel_workers_per_gather': 2, 'parallel_setup_cost': 0,
            'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0}


def run(bench, section):
    rounds = bench.forced_rounds or bench.scale(*ROUNDS)
    section.text('''Times of whole queries per row of the largest table; a filter is built in the same statement and its
        time is included. *Off* and *on* are the values of `bloomfilter.join_filters` for the unmodified query. *By
        hand* is the query below with `bloom_contains`. All variants return the same rows. Ratios are medians of {} rounds. The plans are at the end.'''.format(rounds))
    for case, tables in cases(bench):
        if not bench.wants(case.part):
            continue
        bench.fill(*tables)
        if case.part == 'foreign':
            make_foreign_tables(bench)
        compare(bench, section, case)
        bench.drop(*{'visits', 'kept_pages', 'events', 'subscribers', 'star_facts'}.intersection(tables))
    if bench.wants('planning'):
        joins_queries.planning(bench, section)
    if bench.wants('analytic'):
        joins_queries.run_analytic(bench, section)
    if bench.wants('months'):
        joins_queries.run_analytic(bench, section, by_month=True)
    for part in retail.PARTS:
        if bench.wants(part):
            retail.run(bench, section, part)
    if bench.wants('calendar'):
        run_calendar(bench, section)


def cases(bench):
    """All that is to be measured, each with its tables. Those of one table are neighbours, so it can be dropped."""
    rows, tenth = '{:,}'.format(bench.rows), '{:,}'.format(bench.rows // 10)
    join = JOIN._replace(filter=JOIN.filter.format(tenth=bench.rows // 10))
    urls, sales = ('urls', 'pages'), ('sales', 'customers')
    return [
        (Case('spilling', '%s × %s rows, 1 %% match, with a hash join that spills' % (rows, tenth), join,
              {'work_mem': "'4MB'"}, ['Hash Join'], {'on': 'auto spilling', 'by hand': 'spilling join'}), urls),
        (Case('memory', 'The same, all in memory', join, {'work_mem': "'1GB'"}, ['Hash Join'],
              {'on': 'auto memory', 'by hand': 'join in memory'}), urls),
        (Case('parallel', 'The same with two workers and Parallel Hash', join, PARALLEL,
              ['Workers Planned: 2.*Parallel Hash Join.*Parallel Hash'], {'on': 'auto parallel'}), urls),
        (Case('grouping', '%s rows grouped below a join that keeps 0.1 %% of %s groups' % (rows, tenth), GROUPING,
              {'work_mem': "'512MB'"}, [r'Aggregate.*Seq Scan on public\.visits'],
              {'on': 'auto grouping'}), ('visits', 'kept_pages')),
        (Case('partitions', 'A fact of %s rows in 100 partitions, joined by another column, 1 %% match' % rows,
              PARTITIONED, {'work_mem': "'64MB'"}, ['Hash Join.*Append'], {'on': 'auto partitions'}),
         ('events', 'subscribers')),
        (Case('star', 'Star: a fact of %s rows of 100 bytes, four dimensions, 10 %% of each' % rows, STAR, {'work_mem': "'64MB'"},
              [], {'on': 'auto star'}),
         ('star_facts', *('star_%ss' % name for name in DIMENSIONS))),
        (Case('match', 'Every one of %s rows matches one of %s' % (rows, tenth), ALL_MATCH,
              {'work_mem': "'256MB'"}, ['Hash Join'], {'on': 'auto match'}), sales),
        (Case('match', 'Every one of %s narrow rows matches one of 997' % rows, ALL_MATCH_SMALL,
              {'work_mem': "'64MB'"}, ['Hash Join'], {'on': 'auto small match'}), ('sales', 'amounts')),
        (Case('match', 'One of ten of %s rows by the first of 102 columns, the key in the last, each matches' % tenth,
              WIDE, {'work_mem': "'64MB'"}, ['Hash Join'], {'on': 'auto wide'}), ('wide_sales', 'amounts')),
        (Case('foreign', 'The first join, the large side on another server (postgres_fdw)',
              on_another_server(join, 'urls'), {'work_mem': "'1GB'"}, ['Hash Join.*Foreign Scan'],
              {'by hand': 'foreign'}, ('on',), FOREIGN_ROUNDS), urls),
    ]


def on_another_server(query, table):
    return Query(*(re.sub(r'\b%s\b' % table, 'foreign_' + table, field) for field in query))


def make_foreign_tables(bench):
    """The throwaway server seen from itself through postgres_fdw: rows cross a socket as from any other."""
    with bench.session() as session:
        if session.value("SELECT count(*) FROM pg_foreign_server WHERE srvname = 'other'") > 0:
            return
        session.execute('''CREATE EXTENSION IF NOT EXISTS postgres_fdw;
            CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS
                (host '%s', dbname 'bench', extensions 'bloomfilter');
            CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres');
            CREATE FOREIGN TABLE foreign_urls (id bigint, url text) SERVER other OPTIONS (table_name 'urls');
            ANALYZE foreign_urls''' % bench.server.socket_dir)


def variants_of(case):
    """The statements of each variant: a setting and the query."""
    query = case.query
    plain = query.text.format('')
    variants = {'off': (OFF, plain), 'on': (ON, plain)}
    if query.filter is not None:
        variants['by hand'] = OFF, query.text.format(query.filter)
    return {name: variant for name, variant in variants.items() if name not in case.without}


def compare(bench, section, case):
    """Measure the variants, hold them against targets, and look whether the plans are the expected ones."""
    log('    ' + case.title)
    variants = variants_of(case)
    # The backends of postgres_fdw end after the session.
    with bench.server.until_ended(), filter_session(bench, case.settings) as session:
        others = []
        if case.part == 'foreign':
            session.execute('SELECT FROM foreign_urls LIMIT 1')
            others = [pid for pid, in session.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'postgres_fdw'")]
        timings = measure_equal(bench, session, variants, bench.scale(*case.rounds), others)
        show(section, case, variants)
        section.timing_table('query', timings, bench.rows, 'off', ('by hand',) if 'by hand' in timings else ())
        for name, key in case.targets.items():
            section.target(key, timings[name], timings['off'])
        keep_plans(section, session, case, variants)
        if case.part == 'spilling':
            section.facts['rows'] = rows_of_the_join(session, variants)


def rows_of_the_join(session, variants):
    """How many rows are read from the large table, come to the join with filters, and are in its result."""
    setting, sql = variants['on']
    session.execute(setting)
    plan = session.explain(sql, 'ANALYZE, COSTS OFF, TIMING OFF')
    joined, passed = (int(re.search(r'%s.*?\(actual rows=(\d+)' % node, plan).group(1))
                      for node in ('Hash Join', 'Seq Scan on urls'))
    return {'read': passed + int(re.search(r'Rows Removed by Filter: (\d+)', plan).group(1)), 'passed': passed,
            'joined': joined}


def show(section, case, variants):
    """The query as it is written by hand, if it is."""
    section.text('**%s**' % case.title)
    section.code('sql', settings_text(**case.settings) + ';\n' + variants['by hand' if 'by hand' in variants else 'on'][1])


def keep_plans(section, session, case, variants):
    needed = {'on': [r'Custom Scan \(Bloom Filter\)']}
    if case.part == 'star':
        needed['on'] = [r'Bloom Filter 4: ']
    if case.part == 'foreign':
        needed['by hand'] = [r'Remote SQL: [^\n]*bloom_contains']
    for name, (setting, sql) in variants.items():
        session.execute(setting)
        section.plan('%s: %s' % (case.title, name), session, sql, case.expected + needed.get(name, []))


# The part "calendar": facts of seven years, by month or in the order of days, and a calendar of 100 years.
CALENDAR_SETTINGS = {'work_mem': "'64MB'"}
CALENDAR_FACTS = {'partitions': 'month_facts', 'blocks': 'dated_facts'}

CALENDAR_ALONE = 'SELECT count(*), sum(amount) FROM {fact} JOIN calendar USING (day) WHERE {condition}'
CALENDAR_STAR = '''SELECT region, count(*), sum(amount)
  FROM {fact} JOIN brands USING (product) JOIN shops USING (shop) JOIN calendar USING (day)
 WHERE brand = 7 AND {condition} GROUP BY region'''
MONTH = 'year = 2021 AND month = 3'

# What a query is called, the query, the condition on the calendar, and the name of its target.
CALENDAR_CASES = [
    ('one year of seven', CALENDAR_ALONE, 'year = 2021', 'skip year'),
    ('one month', CALENDAR_ALONE, MONTH, 'skip month'),
    ('one week', CALENDAR_ALONE, 'year = 2021 AND week = 11', 'skip week'),
    ('one month, which PostgreSQL joins last', CALENDAR_STAR, MONTH, 'skip planned'),
    ('days of all months, all read', CALENDAR_ALONE, 'weekday < 7', 'skip none'),
]

CALENDAR_TABLES = '''
CREATE UNLOGGED TABLE calendar AS
    SELECT day::date AS day, extract(year FROM day)::int AS year, extract(month FROM day)::int AS month,
           extract(week FROM day)::int AS week, extract(isodow FROM day)::int AS weekday
      FROM generate_series(timestamp '1950-01-01', '2049-12-31', '1 day') AS day;
ALTER TABLE calendar ADD PRIMARY KEY (day);
CREATE UNLOGGED TABLE brands AS SELECT i AS product, i % 1000 AS brand FROM generate_series(0, 19999) AS i;
ALTER TABLE brands ADD PRIMARY KEY (product);
CREATE UNLOGGED TABLE shops AS SELECT i AS shop, i % 10 AS region FROM generate_series(0, 499) AS i;
ALTER TABLE shops ADD PRIMARY KEY (shop);
CREATE UNLOGGED TABLE dated_facts AS
    SELECT date '2018-01-01' + (i * 2557 / {rows})::int AS day, (i * 7919 % 20000)::int AS product,
           (i * 31 % 500)::int AS shop, (i % 997)::int AS amount
      FROM (SELECT generate_series(0::bigint, {rows} - 1) AS i) n;
CREATE INDEX ON dated_facts USING brin (day);
CREATE TABLE month_facts (LIKE dated_facts) PARTITION BY RANGE (day);
DO $$ BEGIN FOR i IN 0..83 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE month_facts_%s PARTITION OF month_facts FOR VALUES FROM (%L) TO (%L)', i,
                   date '2018-01-01' + i * interval '1 month', date '2018-01-01' + (i + 1) * interval '1 month');
END LOOP; END $$;
INSERT INTO month_facts SELECT * FROM dated_facts;
CREATE TABLE thousand (n int) PARTITION BY RANGE (n);
DO $$ BEGIN FOR i IN 0..999 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE thousand_%s PARTITION OF thousand FOR VALUES FROM (%s) TO (%s)', i, i, i + 1);
END LOOP; END $$;
'''

# Each query that a partition's server gets takes a number of a sequence.
CALENDAR_FOREIGN = '''
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SERVER partitions FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', dbname 'bench');
CREATE USER MAPPING FOR postgres SERVER partitions OPTIONS (user 'postgres');
CREATE SEQUENCE remote_queries;
CREATE TABLE remote_facts (day date, amount int) PARTITION BY RANGE (day);
DO $$ BEGIN FOR i IN 0..7 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE remote_%%s AS SELECT day, amount FROM month_facts_%%s LIMIT 20000', i, i);
    EXECUTE format('CREATE VIEW asked_%%s AS WITH q AS MATERIALIZED (SELECT nextval(''remote_queries''))
        SELECT f.* FROM q, remote_%%s f', i, i);
    EXECUTE format('CREATE FOREIGN TABLE foreign_%%s PARTITION OF remote_facts FOR VALUES FROM (%%L) TO (%%L)
        SERVER partitions OPTIONS (table_name ''asked_%%s'')', i, date '2018-01-01' + i * interval '1 month',
        date '2018-01-01' + (i + 1) * interval '1 month', i);
END LOOP; END $$;
'''

CALENDAR_PLANNING = '''SELECT count(*) FROM brands a JOIN shops s ON s.shop = a.brand JOIN calendar c ON c.month = s.region
  JOIN brands b ON b.product = a.product JOIN shops t ON t.shop = s.shop JOIN calendar d ON d.day = c.day
 WHERE a.brand = 7 AND d.year = 2021'''


def run_calendar(bench, section):
    """What filters leave unread, partitions and blocks, and plans that count on it."""
    rows = bench.rows * 6 // 10
    fill_calendar(bench, rows)
    section.text('''**What is not read**: a fact of {:,} rows of seven years, in 84 monthly partitions and in one table
        in the order of days with a BRIN index, joined with a calendar of 100 years.'''.format(rows))
    for case in CALENDAR_CASES:
        for what, fact in CALENDAR_FACTS.items():
            compare_calendar(bench, section, rows, what, fact, *case)
    remote_queries(bench, section)
    plan_again(bench, section)
    executor_start(bench, section)
    with bench.session() as session:
        session.execute('DROP TABLE month_facts, dated_facts, thousand, remote_facts')


def fill_calendar(bench, rows):
    log('    filling facts by month')
    with bench.session(statement_timeout=0) as session:
        session.execute(CALENDAR_TABLES.format(rows=rows))
        session.execute('VACUUM (FREEZE, ANALYZE) calendar, brands, shops, dated_facts, month_facts, thousand')


def compare_calendar(bench, section, rows, what, fact, title, query, condition, key):
    """One query with filters off and on."""
    title = '%s: %s' % (title, what)
    log('    ' + title)
    sql = query.format(fact=fact, condition=condition)
    variants = {'off': (OFF, sql), 'on': (ON + bench.scale('', '; SET bloomfilter.join_planning_cost = 100'), sql)}
    with filter_session(bench, CALENDAR_SETTINGS) as session:
        timings = measure_equal(bench, session, variants, bench.scale(*ROUNDS))
        section.text('**%s**' % title)
        section.code('sql', sql)
        section.timing_table('query', timings, rows, 'off')
        section.target(key + (' blocks' if what == 'blocks' else ''), timings['on'], timings['off'])
        for name, (setting, _) in variants.items():
            session.execute(setting)
            expected = {'off': [r'Nested Loop.*calendar'] if query == CALENDAR_STAR else [],
                        'on': [r'Custom Scan \(Bloom Filter\).*Hash Cond: [^\n]*day = [^\n]*day'
                               if query == CALENDAR_STAR else r'Custom Scan \(Bloom Filter\)']}
            section.plan('%s, %s' % (title, name), session, sql, expected[name])
            read = name == 'on' and what == 'blocks' and query == CALENDAR_ALONE and key != 'skip none' and re.search(
                r'Blocks Read: (\d+) of (\d+)', session.explain(sql, 'ANALYZE, COSTS OFF, TIMING OFF'))
            if read:
                blocks = section.facts.setdefault('blocks', [['without filter', int(read[2]), False]])
                blocks.append([title.split(':')[0], int(read[1]), True])


def remote_queries(bench, section):
    """How many of eight servers are asked?"""
    log('    foreign partitions')
    sql = CALENDAR_ALONE.format(fact='remote_facts', condition='year = 2018 AND month = 3')
    asked = {}
    with bench.server.until_ended(), filter_session(bench, CALENDAR_SETTINGS) as session:
        session.execute(CALENDAR_FOREIGN % bench.server.socket_dir)
        session.execute('ANALYZE remote_facts')
        for name, setting in (('off', OFF), ('on', ON)):
            session.execute(setting + "; SELECT setval('remote_queries', 1, false)")
            result = session.execute(sql)
            asked[name] = result, session.value('SELECT last_value - 1 + is_called::int FROM remote_queries')
        if asked['off'][0] != asked['on'][0]:
            raise AssertionError('foreign partitions: %s' % asked)
        section.text('Remote queries for one month in eight foreign partitions: %d off, %d on.' %
                     (asked['off'][1], asked['on'][1]))
        section.target('skip foreign', [asked['on'][1]], [asked['off'][1]])
        section.plan('Foreign partitions', session, sql, [r'Custom Scan \(Bloom Filter\)'])


def plan_again(bench, section):
    """CPU time of planning with join_planning against that without it, filters on in both."""
    log('    planning again')
    times = bench.scale(100, 10)
    star = CALENDAR_STAR.format(fact='month_facts', condition=MONTH)
    cost = '; SET bloomfilter.join_planning_cost = %s'
    rows = []
    with filter_session(bench, CALENDAR_SETTINGS) as session:
        for title, key, sql, setting in (
                ('small tables', 'plan none', CALENDAR_PLANNING, ON),
                ('the same, as if large', 'plan large', CALENDAR_PLANNING, ON + cost % 0),
                ('84 partitions, above join_planning_cost', 'plan above', star, ON + cost % 0),
                ('84 partitions, below it', 'plan below', star, ON + cost % '1e10')):
            joins_queries.planning_time(session, UNPLANNED, sql, times)
            series = bench.in_turns({name: (lambda sql=sql, of=of: joins_queries.planning_time(session, of, sql, times))
                                     for name, of in (('filters', UNPLANNED), ('planned', setting))}, bench.scale(*ROUNDS))
            rows.append([title, *(significant(sorted(values)[len(values) // 2]) for values in series.values()),
                         '%.3f' % median_ratio(series['planned'], series['filters'])[0]])
            section.target(key, series['planned'], series['filters'])
    section.text('**Planning**, CPU time as by log_planner_stats, median of %d times' % times)
    section.table(['query', 'filters, ms', 'planned, ms', 'planned / filters'], rows)


def executor_start(bench, section):
    """
    A query without joins of 1,000 empty partitions, without the library and with filters on. Each round has sessions of
    its own, as two sessions may differ by more than what is measured.
    """
    log('    1,000 partitions')
    sql = 'DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM count(*) FROM thousand; END LOOP; END $$' % bench.scale(50, 2)
    cached = {'plan_cache_mode': 'force_generic_plan'}

    def measured(session, warm_up):
        with session:
            session.execute(warm_up)
            return session.measure(sql)

    timings = bench.in_turns({'without the library': lambda: measured(bench.session(**cached), sql),
                              'on': lambda: measured(filter_session(bench, cached),
                                                         ON + '; ' + sql)}, bench.scale(*ROUNDS))
    section.text('**1,000 empty partitions**, cached plan, without joins')
    section.timing_table('session', timings, bench.scale(50, 2), 'without the library', unit='µs a query')
    section.target('skip start', timings['on'], timings['without the library'])
