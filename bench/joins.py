"""Filters ahead of a join: the same query without one, with one, and with a perfect one.

The perfect one is an expression that knows without a set which rows will be joined: what no filter can beat.
"""
import data
from lib import settings_text

TITLE = 'Ahead of a join'
SECONDS = (480, 40)

JOIN = '''SELECT count(*), sum(score), max(id) FROM urls JOIN pages USING (url)'''
JOIN_FILTER = 'bloom_contains((SELECT bloom_agg(url, 0.01, {tenth}) FROM pages), urls.url)'

GROUPING = '''SELECT count(*), sum(n), max(total) FROM kept_pages JOIN
  (SELECT url, count(*) AS n, sum(ms) AS total FROM visits{where} GROUP BY url) v USING (url)'''
GROUPING_FILTER = 'bloom_contains((SELECT bloom_agg(url) FROM kept_pages), url)'

THREE_WAY = '''SELECT region, count(*), sum(amount)
  FROM {sales} s JOIN products USING (product) JOIN customers USING (customer)
 WHERE category = 3{filter} GROUP BY region'''
THREE_WAY_FILTER = 'bloom_contains((SELECT bloom_agg(product) FROM products WHERE category = 3), s.product)'


def run(bench, section):
    bench.provide('urls', 'pages', 'visits', 'kept_pages', 'sales', 'customers', 'products')
    section.text('''Times of whole queries per row of the largest table; the filter is built in the same statement and its
        time is included. *Perfect* puts an arithmetic expression in the place of the filter that is true for just the
        rows which will be joined: no filter can do better. The plans are at the end.''')
    tenth = bench.rows // 10
    filtered = JOIN_FILTER.format(tenth=tenth)
    join = {'plain': JOIN, 'with the filter': '%s WHERE %s' % (JOIN, filtered),
            'perfect': JOIN + ' WHERE id % 100 = 0'}
    hash_join = [r'Hash Join']
    compare(bench, section, 'spilling join', '{:,} × {:,} rows, 1 % match, hash join that spills'.format(bench.rows, tenth),
            join, {'work_mem': "'4MB'"}, hash_join)
    compare(bench, section, 'join in memory', 'The same, all in memory', join, {'work_mem': "'1GB'"}, hash_join)

    grouping = {'plain': GROUPING.format(where=''), 'with the filter': GROUPING.format(where=' WHERE ' + GROUPING_FILTER),
                'perfect': GROUPING.format(where=' WHERE page % 1000 = 0')}
    compare(bench, section, 'grouping', '{:,} rows grouped below a join that keeps 0.1 % of {:,} groups'.format(
        bench.rows, tenth), grouping, {'work_mem': "'512MB'"}, [r'Aggregate.*Seq Scan on public\.visits'])

    three_way = three_way_queries('sales')
    compare(bench, section, 'three-way', 'Three-way join, fact of {:,} rows, 10 % kept'.format(bench.rows),
            three_way, {'work_mem': "'256MB'"}, [r'Hash Join.*Hash Join'])
    make_foreign_table(bench)
    compare(bench, section, 'foreign', 'The same, the fact on another server (postgres_fdw)',
            three_way_queries('foreign_sales'), {'work_mem': "'256MB'"}, [r'Hash Join', r'Foreign Scan'],
            r'Remote SQL: [^\n]*bloom_contains', foreign=True)


def three_way_queries(sales):
    return {'plain': THREE_WAY.format(sales=sales, filter=''),
            'with the filter': THREE_WAY.format(sales=sales, filter='\n   AND ' + THREE_WAY_FILTER),
            'perfect': THREE_WAY.format(sales=sales, filter='\n   AND s.product % 10 = 3')}


def make_foreign_table(bench):
    """The throwaway server seen from itself through postgres_fdw: the rows cross a socket as from any other."""
    with bench.session() as session:
        session.execute('''CREATE EXTENSION IF NOT EXISTS postgres_fdw;
            CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS
                (host '%s', dbname 'bench', extensions 'bloomfilter', fetch_size '10000');
            CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres');
            CREATE FOREIGN TABLE foreign_sales (customer bigint, product bigint, amount int) SERVER other
                OPTIONS (table_name 'sales')''' % bench.server.socket_dir)


def compare(bench, section, key, title, queries, settings, expected, expected_of_filter=None, foreign=False):
    from lib import log
    log('    ' + title)
    with bench.session() as session:
        for name, value in settings.items():
            session.execute('SET %s = %s' % (name, value))
        if foreign:
            session.execute('SELECT product FROM foreign_sales LIMIT 1')    # connects
        others = [pid for pid, in session.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'postgres_fdw'")] if foreign else []
        timings = bench.in_turns({name: measuring(session, sql, others) for name, sql in queries.items()})
        section.text('**%s**' % title)
        section.code('sql', '\n'.join(
            [settings_text(**settings) + ';', queries['with the filter'] + ';',
             '-- perfect: ' + queries['perfect'][-60:].split('WHERE')[-1].split('AND')[-1].strip()]))
        section.timing_table('query', timings, bench.rows, 'plain')
        section.target(key, timings['with the filter'], timings['plain'],
                       profile=(session, queries['with the filter']))
        for name in ('plain', 'with the filter'):
            patterns = expected + ([expected_of_filter] if expected_of_filter and name != 'plain' else [])
            section.plan('%s: %s' % (title, name), session, queries[name], patterns)


def measuring(session, sql, others):
    return lambda: session.measure(sql, others)
