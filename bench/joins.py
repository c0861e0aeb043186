"""Filters ahead of a join: the same query without one, with one, and with a perfect one.

The perfect one is an expression that knows without a set which rows will be joined: what no filter can beat.
"""
import collections
import re

from lib import log, settings_text

TITLE = 'Ahead of a join'
SECONDS = (480, 40)

# A query with a place for one more condition, what the place begins with, and two conditions for it.
Query = collections.namedtuple('Query', 'text joint filter perfect')

JOIN = Query('SELECT count(*), sum(score), max(id) FROM urls JOIN pages USING (url){}', ' WHERE ',
             'bloom_contains((SELECT bloom_agg(url, 0.01, %d) FROM pages), urls.url)', 'id % 100 = 0')

GROUPING = Query('''SELECT count(*), sum(n), max(total) FROM kept_pages JOIN
  (SELECT url, count(*) AS n, sum(ms) AS total FROM visits{} GROUP BY url) v USING (url)''', ' WHERE ',
                 'bloom_contains((SELECT bloom_agg(url) FROM kept_pages), url)', 'page % 1000 = 0')

THREE_WAY = Query('''SELECT region, count(*), sum(amount)
  FROM sales s JOIN products USING (product) JOIN customers USING (customer)
 WHERE category = 3{} GROUP BY region''', '\n   AND ',
                  'bloom_contains((SELECT bloom_agg(product) FROM products WHERE category = 3), s.product)',
                  's.product % 10 = 3')


def run(bench, section):
    bench.provide('urls', 'pages', 'visits', 'kept_pages', 'sales', 'customers', 'products')
    make_foreign_tables(bench)
    section.text('''Times of whole queries per row of the largest table; the filter is built in the same statement and
        its time is included. *Perfect* puts an arithmetic expression in the place of the filter that is true for just
        the rows which will be joined: no filter can do better. The plans are at the end.''')
    pages = bench.rows // 10
    join = JOIN._replace(filter=JOIN.filter % pages)
    compare(bench, section, 'spilling join',
            '{:,} × {:,} rows, 1 % match, with a hash join that spills'.format(bench.rows, pages),
            join, {'work_mem': "'4MB'"}, ['Hash Join'])
    compare(bench, section, 'join in memory', 'The same, all in memory', join, {'work_mem': "'1GB'"}, ['Hash Join'])
    compare(bench, section, 'grouping',
            '{:,} rows grouped below a join that keeps 0.1 % of {:,} groups'.format(bench.rows, pages),
            GROUPING, {'work_mem': "'512MB'"}, [r'Aggregate.*Seq Scan on public\.visits'])
    compare(bench, section, 'three-way', 'Three-way join, fact of {:,} rows, 10 % kept'.format(bench.rows),
            THREE_WAY, {'work_mem': "'256MB'"}, ['Hash Join.*Hash Join'])

    shipped = r'Remote SQL: [^\n]*bloom_contains'
    compare(bench, section, 'foreign', 'The first join, the large side on another server (postgres_fdw)',
            on_another_server(join, 'urls'), {'work_mem': "'1GB'"}, ['Hash Join.*Foreign Scan'], shipped)
    compare(bench, section, None, 'The three-way join, the fact on another server',
            on_another_server(THREE_WAY, 'sales'), {'work_mem': "'256MB'"}, ['Hash Join.*Foreign Scan'], shipped)


def on_another_server(query, table):
    return Query(*(re.sub(r'\b%s\b' % table, 'foreign_' + table, field) for field in query))


def make_foreign_tables(bench):
    """The throwaway server seen from itself through postgres_fdw: rows cross a socket as from any other."""
    with bench.session() as session:
        session.execute('''CREATE EXTENSION IF NOT EXISTS postgres_fdw;
            CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS
                (host '%s', dbname 'bench', extensions 'bloomfilter');
            CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres');
            CREATE FOREIGN TABLE foreign_sales (customer bigint, product bigint, amount int) SERVER other
                OPTIONS (table_name 'sales');
            CREATE FOREIGN TABLE foreign_urls (id bigint, url text) SERVER other OPTIONS (table_name 'urls');
            ANALYZE foreign_sales, foreign_urls''' % bench.server.socket_dir)


def compare(bench, section, key, title, query, settings, expected, expected_of_filter=None):
    """Measure, for a target if there is a key, and look whether the plans match the regular expressions."""
    log('    ' + title)
    plain = query.text.format('')
    filtered = query.text.format(query.joint + query.filter)
    perfect = query.text.format(query.joint + query.perfect)
    with bench.session() as session:
        for name, value in settings.items():
            session.execute('SET %s = %s' % (name, value))
        others = []
        if 'foreign_' in plain:
            session.execute('SELECT FROM foreign_sales LIMIT 1')
            others = [pid for pid, in session.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'postgres_fdw'")]
        timings = bench.in_turns({'plain': lambda: session.measure(plain, others),
                                  'with the filter': lambda: session.measure(filtered, others),
                                  'perfect': lambda: session.measure(perfect, others)})
        section.text('**%s**' % title)
        section.code('sql', '%s;\n%s;\n-- perfect: %s' % (settings_text(**settings), filtered, query.perfect))
        section.timing_table('query', timings, bench.rows, 'plain')
        if key is not None:
            section.target(key, timings['with the filter'], timings['plain'], profile=(session, filtered))
        section.plan(title + ': plain', session, plain, expected)
        section.plan(title + ': with the filter', session, filtered,
                     expected + ([expected_of_filter] if expected_of_filter else []))
