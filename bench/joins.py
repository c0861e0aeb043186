"""Joins with filters: unmodified queries with bloomfilter.join_filters off and on, and filters written by hand.

Some queries have a perfect filter, too: an expression that knows without a set which rows will be joined. No filter
can be faster.
"""
import collections
import re

import joins_analytic
import joins_generated
import joins_skipped
from joins_common import OFF, ON, filter_session, hold, keep_analysis, measure_equal
from lib import log, median_ratio, settings_text
from targets import TARGETS

TITLE = 'Joins'
SECONDS = (2300, 75)

ROUNDS = (7, 1)
FOREIGN_ROUNDS = (3, 1)

# A query with a place for one more condition, what the place begins with, and two conditions for it, or None.
Query = collections.namedtuple('Query', 'text joint filter perfect', defaults=('', None, None))

# What to measure: targets are keys of targets.py for the variants "on" and "by hand"; expected are regular expressions
# for each plan.
Case = collections.namedtuple('Case', 'part title query settings expected targets without rounds',
                              defaults=((), ROUNDS))

JOIN = Query('SELECT count(*), sum(score), max(id) FROM urls JOIN pages USING (url){}', ' WHERE ',
             'bloom_contains((SELECT bloom_agg(url, 0.01, {tenth}) FROM pages), urls.url)', 'id % 100 = 0')

GROUPING = Query('''SELECT count(*), sum(n), max(total) FROM kept_pages JOIN
  (SELECT url, count(*) AS n, sum(ms) AS total FROM visits{} GROUP BY url) v USING (url)''', ' WHERE ',
                 'bloom_contains((SELECT bloom_agg(url) FROM kept_pages), url)', 'page % 1000 = 0')

THREE_WAY = Query('''SELECT region, count(*), sum(amount)
  FROM sales s JOIN products USING (product) JOIN customers USING (customer)
 WHERE category = 3{} GROUP BY region''', '\n   AND ',
                  'bloom_contains((SELECT bloom_agg(product) FROM products WHERE category = 3), s.product)',
                  's.product % 10 = 3')

PARTITIONED = Query('SELECT plan, count(*), sum(ms) FROM events JOIN subscribers USING (visitor){} GROUP BY plan',
                    ' WHERE ', 'bloom_contains((SELECT bloom_agg(visitor) FROM subscribers), events.visitor)',
                    'events.visitor % 100 = 0')

DIMENSIONS = ('day', 'store', 'product', 'customer')
STAR = Query('SELECT s.region, count(*), sum(amount) FROM star_facts f\n  ' +
             '\n  '.join('JOIN star_%ss %s USING (%s)' % (name, name[0], name) for name in DIMENSIONS) +
             '\n WHERE ' + ' AND '.join('%s.part = 3' % name[0] for name in DIMENSIONS) + '{} GROUP BY s.region',
             '', ''.join('\n   AND bloom_contains((SELECT bloom_agg({0}) FROM star_{0}s WHERE part = 3), f.{0})'
                         .format(name) for name in DIMENSIONS))

# The planner expects a third of the rows to match, but all do.
ALL_MATCH = Query('SELECT count(*), sum(amount), max(region) FROM sales JOIN customers USING (customer)'
                  ' WHERE length(name) > 0{}')
ALL_MATCH_SMALL = Query('SELECT count(*), sum(customer), max(name) FROM sales JOIN amounts USING (amount)'
                        ' WHERE length(name) > 0{}')

PARALLEL = {'work_mem': "'1GB'", 'max_parallel_workers_per_gather': 2, 'parallel_setup_cost': 0,
            'parallel_tuple_cost': 0, 'min_parallel_table_scan_size': 0}


def run(bench, section):
    rounds = bench.forced_rounds or bench.scale(*ROUNDS)
    section.text('''Times of whole queries per row of the largest table; a filter is built in the same statement and its
        time is included. *Off* and *on* are the values of `bloomfilter.join_filters` for the unmodified query. *By
        hand* is the query below with `bloom_contains`. *Perfect* puts an arithmetic expression in the place of the
        filter that is true for just the rows which will be joined: no filter can do better. All variants return the
        same rows. Ratios are medians of {} rounds. The plans are at the end.'''.format(rounds))
    by_hand = []
    for case, tables in cases(bench):
        if not bench.wants(case.part):
            continue
        bench.fill(*tables)
        if case.part == 'foreign':
            make_foreign_tables(bench)
        compare(bench, section, case, by_hand)
        bench.drop(*{'visits', 'kept_pages', 'events', 'subscribers', 'star_facts'}.intersection(tables))
    if by_hand:
        section.target('auto by hand', *max(by_hand, key=lambda timings: against_hand(*timings)))
    if bench.wants('planning'):
        joins_analytic.planning(bench, section)
    if bench.wants('analytic'):
        joins_analytic.run(bench, section)
    if bench.wants('months'):
        joins_analytic.run(bench, section, by_month=True)
    if bench.wants('calendar'):
        joins_skipped.run(bench, section)
    if bench.wants('generated'):
        joins_generated.run(bench, section)


def cases(bench):
    """All that is to be measured, each with its tables. Those of one table are neighbours, so it can be dropped."""
    rows, tenth = '{:,}'.format(bench.rows), '{:,}'.format(bench.rows // 10)
    join = JOIN._replace(filter=JOIN.filter.format(tenth=bench.rows // 10))
    urls, sales = ('urls', 'pages'), ('sales', 'customers', 'products')
    fact = 'a fact of %s rows' % rows
    return [
        (Case('spilling', '%s × %s rows, 1 %% match, with a hash join that spills' % (rows, tenth), join,
              {'work_mem': "'4MB'"}, ['Hash Join'], {'on': 'auto spilling', 'by hand': 'spilling join'}), urls),
        (Case('memory', 'The same, all in memory', join, {'work_mem': "'1GB'"}, ['Hash Join'],
              {'on': 'auto memory', 'by hand': 'join in memory'}), urls),
        (Case('parallel', 'The same with two workers and Parallel Hash', join, PARALLEL,
              ['Workers Planned: 2.*Parallel Hash Join.*Parallel Hash'], {'on': 'auto parallel'},
              ('perfect',)), urls),
        (Case('grouping', '%s rows grouped below a join that keeps 0.1 %% of %s groups' % (rows, tenth), GROUPING,
              {'work_mem': "'512MB'"}, [r'Aggregate.*Seq Scan on public\.visits'],
              {'on': 'auto grouping', 'by hand': 'grouping'}), ('visits', 'kept_pages')),
        (Case('partitions', 'A fact of %s rows in 100 partitions, joined by another column, 1 %% match' % rows,
              PARTITIONED, {'work_mem': "'64MB'"}, ['Hash Join.*Append'], {'on': 'auto partitions'}),
         ('events', 'subscribers')),
        (Case('star', 'Star: %s of 100 bytes, four dimensions, 10 %% of each' % fact, STAR, {'work_mem': "'64MB'"},
              [], {'on': 'auto star'}),
         ('star_facts', *('star_%ss' % name for name in DIMENSIONS))),
        (Case('three-way', 'Three-way join, %s, 10 %% match' % fact, THREE_WAY, {'work_mem': "'256MB'"},
              ['Hash Join.*Hash Join'], {'by hand': 'three-way'}), sales),
        (Case('match', 'Every one of %s rows matches one of %s' % (rows, tenth), ALL_MATCH,
              {'work_mem': "'256MB'"}, ['Hash Join'], {'on': 'auto match'}), sales),
        (Case('match', 'Every one of %s narrow rows matches one of 997' % rows, ALL_MATCH_SMALL,
              {'work_mem': "'64MB'"}, ['Hash Join'], {'on': 'auto small match'}), ('sales', 'amounts')),
        (Case('foreign', 'The first join, the large side on another server (postgres_fdw)',
              on_another_server(join, 'urls'), {'work_mem': "'1GB'"}, ['Hash Join.*Foreign Scan'],
              {'by hand': 'foreign'}, ('on',), FOREIGN_ROUNDS), (*urls, 'sales')),
        (Case('foreign', 'The three-way join, the fact on another server', on_another_server(THREE_WAY, 'sales'),
              {'work_mem': "'256MB'"}, ['Hash Join.*Foreign Scan'], {}, (), FOREIGN_ROUNDS), (*urls, *sales)),
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
            CREATE FOREIGN TABLE foreign_sales (customer bigint, product bigint, amount int) SERVER other
                OPTIONS (table_name 'sales');
            CREATE FOREIGN TABLE foreign_urls (id bigint, url text) SERVER other OPTIONS (table_name 'urls');
            ANALYZE foreign_sales, foreign_urls''' % bench.server.socket_dir)


def variants_of(case):
    """The statements of each variant: a setting and the query."""
    query = case.query
    plain = query.text.format('')
    variants = {'off': (OFF, plain), 'on': (ON, plain)}
    if query.filter is not None:
        variants['by hand'] = OFF, query.text.format(query.joint + query.filter)
    if query.perfect is not None:
        variants['perfect'] = OFF, query.text.format(query.joint + query.perfect)
    return {name: variant for name, variant in variants.items() if name not in case.without}


def compare(bench, section, case, by_hand):
    """Measure the variants, hold them against targets, and look whether the plans are the expected ones."""
    log('    ' + case.title)
    variants = variants_of(case)
    # The backends of postgres_fdw end after the session.
    with bench.server.until_ended(), filter_session(bench, case.settings) as session:
        others = []
        if case.part == 'foreign':
            session.execute('SELECT FROM foreign_sales LIMIT 1')
            others = [pid for pid, in session.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'postgres_fdw'")]
        timings = measure_equal(bench, session, variants, bench.scale(*case.rounds), others)
        show(section, case, variants)
        section.timing_table('query', timings, bench.rows, 'off', ('by hand',) if 'by hand' in timings else ())
        for name, key in case.targets.items():
            hold(section, key, timings[name], timings['off'], session, variants, name)
        automatic, written = timings.get('on', [None]), timings.get('by hand', [None])
        if case.part != 'foreign' and None not in automatic + written:
            by_hand.append((automatic, written))
            if against_hand(automatic, written) > TARGETS['auto by hand'].at_most:
                keep_analysis(section, 'auto by hand', session, variants, 'on', case.title)
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
    """The query as it is written by hand, if it is, and the perfect filter."""
    shown = [variants['by hand' if 'by hand' in variants else 'on'][1]]
    if 'perfect' in variants:
        shown.append('-- perfect: ' + case.query.perfect)
    section.text('**%s**' % case.title)
    section.code('sql', settings_text(**case.settings) + ';\n' + ';\n'.join(shown))


def keep_plans(section, session, case, variants):
    needed = {'on': [r'Custom Scan \(Bloom Filter\)']}
    if case.part == 'star':
        needed['on'] = [r'Bloom Filter 4: ']
    if case.part == 'foreign':
        needed['by hand'] = [r'Remote SQL: [^\n]*bloom_contains']
    for name, (setting, sql) in variants.items():
        if name != 'perfect':
            session.execute(setting)
            section.plan('%s: %s' % (case.title, name), session, sql, case.expected + needed.get(name, []))


def against_hand(automatic, by_hand):
    return median_ratio([t.cpu for t in automatic], [t.cpu for t in by_hand])[0]
