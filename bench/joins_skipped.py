"""Parts of the section on joins: what filters leave unread, partitions and blocks, and plans that count on it."""
import re

from joins_analytic import planning_time
from joins_common import OFF, ON, PLANNED, filter_session, hold, measure_equal
from lib import log, median_ratio, significant

ROUNDS = (7, 1)
SETTINGS = {'work_mem': "'64MB'"}
FACTS = {'partitions': 'month_facts', 'blocks': 'dated_facts'}

ALONE = 'SELECT count(*), sum(amount) FROM {fact} JOIN calendar USING (day) WHERE {condition}'
STAR = '''SELECT region, count(*), sum(amount)
  FROM {fact} JOIN brands USING (product) JOIN shops USING (shop) JOIN calendar USING (day)
 WHERE brand = 7 AND {condition} GROUP BY region'''
MONTH = 'year = 2021 AND month = 3'

# What a query is called, the query, the condition on the calendar, the variant that a target is for, and its name.
CASES = [
    ('one year of seven', ALONE, 'year = 2021', 'on', 'skip year'),
    ('one month', ALONE, MONTH, 'on', 'skip month'),
    ('one week', ALONE, 'year = 2021 AND week = 11', 'on', 'skip week'),
    ('one month, which PostgreSQL joins last', STAR, MONTH, 'planned', 'skip planned'),
    ('days of all months, all read', ALONE, 'weekday < 7', 'on', 'skip none'),
]

TABLES = '''
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
FOREIGN = '''
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

PLANNING = '''SELECT count(*) FROM brands a JOIN shops s ON s.shop = a.brand JOIN calendar c ON c.month = s.region
  JOIN brands b ON b.product = a.product JOIN shops t ON t.shop = s.shop JOIN calendar d ON d.day = c.day
 WHERE a.brand = 7 AND d.year = 2021'''


def run(bench, section):
    rows = bench.rows * 6 // 10
    fill(bench, rows)
    section.text('''**What is not read**: a fact of {:,} rows of seven years, in 84 monthly partitions and in one table
        in the order of days with a BRIN index, joined with a calendar of 100 years. *Planned* is
        `bloomfilter.join_planning`.'''.format(rows))
    for case in CASES:
        for what, fact in FACTS.items():
            compare(bench, section, rows, what, fact, *case)
    remote_queries(bench, section)
    planning(bench, section)
    executor_start(bench, section)
    with bench.session() as session:
        session.execute('DROP TABLE month_facts, dated_facts, thousand, remote_facts')


def fill(bench, rows):
    log('    filling facts by month')
    with bench.session(statement_timeout=0) as session:
        session.execute(TABLES.format(rows=rows))
        session.execute('VACUUM (FREEZE, ANALYZE) calendar, brands, shops, dated_facts, month_facts, thousand')


def compare(bench, section, rows, what, fact, title, query, condition, held, key):
    """One query with filters off and on, and planned if that is what the target is for."""
    title = '%s: %s' % (title, what)
    log('    ' + title)
    sql = query.format(fact=fact, condition=condition)
    variants = {'off': (OFF, sql), 'on': (ON, sql)}
    if held == 'planned':
        variants['planned'] = (PLANNED + bench.scale('', '; SET bloomfilter.join_planning_cost = 100'), sql)
    with filter_session(bench, SETTINGS) as session:
        timings = measure_equal(bench, session, variants, bench.scale(*ROUNDS))
        section.text('**%s**' % title)
        section.code('sql', sql)
        section.timing_table('query', timings, rows, 'off')
        hold(section, key + (' blocks' if what == 'blocks' else ''), timings[held], timings['off'], session, variants,
             held, title)
        for name, (setting, _) in variants.items():
            session.execute(setting)
            expected = {'off': [r'Nested Loop.*calendar'] if held == 'planned' else [],
                        'on': [r'Custom Scan \(Bloom Filter\)'],
                        'planned': [r'Hash Cond: [^\n]*day = [^\n]*day']}
            section.plan('%s, %s' % (title, name), session, sql, expected[name])
            read = name == 'on' and query == ALONE and key != 'skip none' and re.search(
                r'Blocks Read: (\d+) of (\d+)', session.explain(sql, 'ANALYZE, COSTS OFF, TIMING OFF'))
            if read:
                blocks = section.facts.setdefault('blocks', [['without filter', int(read[2]), False]])
                blocks.append([title.split(':')[0], int(read[1]), True])


def remote_queries(bench, section):
    """How many of eight servers are asked?"""
    log('    foreign partitions')
    sql = ALONE.format(fact='remote_facts', condition='year = 2018 AND month = 3')
    asked = {}
    with bench.server.until_ended(), filter_session(bench, SETTINGS) as session:
        session.execute(FOREIGN % bench.server.socket_dir)
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


def planning(bench, section):
    """CPU time of planning with join_planning against that without it, filters on in both."""
    log('    planning again')
    times = bench.scale(100, 10)
    star = STAR.format(fact='month_facts', condition=MONTH)
    cost = '; SET bloomfilter.join_planning_cost = %s'
    rows = []
    with filter_session(bench, SETTINGS) as session:
        for title, key, sql, setting in (
                ('no candidate', 'plan none', PLANNING, PLANNED + cost % 0),
                ('above join_planning_cost', 'plan above', star, PLANNED + cost % 0),
                ('below it', 'plan below', star, PLANNED + cost % '1e10')):
            planning_time(session, ON, sql, times)
            series = bench.in_turns({name: (lambda sql=sql, of=of: planning_time(session, of, sql, times))
                                     for name, of in (('on', ON), ('planned', setting))}, bench.scale(*ROUNDS))
            rows.append([title, *(significant(sorted(values)[len(values) // 2]) for values in series.values()),
                         '%.3f' % median_ratio(series['planned'], series['on'])[0]])
            section.target(key, series['planned'], series['on'])
    section.text('**Planning**, CPU time as by log_planner_stats, median of %d times' % times)
    section.table(['query', 'on, ms', 'planned, ms', 'planned / on'], rows)


def executor_start(bench, section):
    """A query without joins of 1,000 empty partitions, by sessions without the library and with filters on."""
    log('    1,000 partitions')
    sql = 'DO $$ BEGIN FOR i IN 1..%d LOOP PERFORM count(*) FROM thousand; END LOOP; END $$' % bench.scale(50, 2)
    with bench.session(plan_cache_mode='force_generic_plan') as plain, \
            filter_session(bench, {'plan_cache_mode': 'force_generic_plan'}) as session:
        session.execute(PLANNED)
        sessions = {'without the library': plain, 'on': session}
        for other in sessions.values():
            other.execute(sql)
        timings = bench.in_turns({name: (lambda other=other: other.measure(sql)) for name, other in sessions.items()},
                                 bench.scale(*ROUNDS))
    section.text('**1,000 empty partitions**, cached plan, without joins')
    section.timing_table('session', timings, bench.scale(50, 2), 'without the library', unit='µs a query')
    section.target('skip start', timings['on'], timings['without the library'])
