"""Scans that keep the rows of which the key is in a set."""
import data
from lib import settings_text

TITLE = 'Scans'
SECONDS = (300, 40)
SETTINGS = {'work_mem': '1GB'}
SIZES = ('1.2 MB', '12 MB', '120 MB')


def run(bench, section):
    bench.fill('urls', 'some_urls', *('url filter ' + size for size in SIZES))
    where = {
        'count(*)': None,
        'the URL read': "url <> ''",
        'hashtextextended': 'hashtextextended(url, 0) <> 0',
    }
    for size in SIZES:
        where['filter in memory, ' + size] = member('SELECT bloom_union_agg(f)', size)
    for size in SIZES:
        where['filter stored, ' + size] = member('SELECT f', size)
    where['hash semi-join'] = 'url IN (SELECT url FROM some_urls)'
    with bench.session(**SETTINGS) as session:
        queries = {name: 'SELECT count(*) FROM urls' + (' WHERE ' + condition if condition else '')
                   for name, condition in where.items()}
        session.execute(queries['count(*)'])
        timings = bench.in_turns({name: lambda sql=sql: session.measure(sql) for name, sql in queries.items()})
        show(bench, section, timings, queries)
        for name, sql, *expected in (
                ('scan, filter in memory', queries['filter in memory, 1.2 MB'], 'InitPlan', 'Seq Scan on public.urls'),
                ('hash semi-join', queries['hash semi-join'], 'Hash (Semi )?Join', 'Seq Scan on public.urls')):
            section.plan(name, session, sql, expected)


def member(select, size):
    return 'bloom_contains((%s FROM %s), url)' % (select, data.filter_table('url', size))


def show(bench, section, timings, queries):
    section.text('''A scan of {:,} rows counts those whose URL, of 64 bytes, is in a set of {:,}, one row in ten. *In
        memory*: the filter is the result of an aggregate in the same statement, which copies it from a table and is
        counted. *Stored*: it is in a table, and the function reads it there. The larger filters are made for 10 and 100
        million keys and have {:g} and {:g} million, the same tenth of the rows among them.'''.format(
            bench.rows, bench.rows // 10, *(data.filter_keys(size, bench)[1] / 1e6 for size in SIZES[1:])))
    section.code('sql', '\n'.join([settings_text(**SETTINGS) + ';'] + [
        '%s;    -- %s' % (sql, name) for name, sql in queries.items()]))
    section.timing_table('scan', timings, bench.rows, 'count(*)', ('hashtextextended',))
    section.target('scan', timings['filter in memory, 1.2 MB'], timings['hashtextextended'])
    section.target('stored', timings['filter stored, 1.2 MB'], timings['filter in memory, 1.2 MB'])
    section.target('large', timings['filter in memory, 120 MB'], timings['filter in memory, 1.2 MB'])
