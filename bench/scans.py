"""Scans that keep the rows of which the key is in a set."""
import statistics

import data
import plots
from lib import settings_text

TITLE = 'Scans'
SECONDS = (420, 50)
SETTINGS = {'work_mem': '1GB'}


def run(bench, section):
    large = ['12 MB', '120 MB']
    bench.fill('urls', 'numbers', 'some_urls', 'few_urls', 'some_numbers',
                  *('url filter ' + name for name in ('1.2 MB', *large)), 'number filter 1.2 MB')
    with bench.session(**SETTINGS) as session:
        section.text('''A scan of {:,} rows counts those whose key is in a set of {:,} keys, one row in ten. *In
            memory*: the filter is the result of an aggregate in the same statement, which copies it from a table and is
            counted. *Stored*: it is in a table, and the function reads it there. The larger filters are made for 10
            and 100 million keys and have {:g} and {:g} million, the same tenth of the rows among them.'''.format(
                bench.rows, bench.rows // 10, *(data.filter_keys(name, bench)[1] / 1e6 for name in large)))
        urls(bench, section, session)
        numbers(bench, section, session)


def in_memory(key_type, name):
    return '(SELECT bloom_union_agg(f) FROM %s)' % data.filter_table(key_type, name)


def stored(key_type, name):
    return '(SELECT f FROM %s)' % data.filter_table(key_type, name)


def literals(session, sql):
    return ', '.join("'%s'" % row[0] for row in session.execute(sql))


def urls(bench, section, session):
    where = {
        'count(*)': None,
        'the URL read': "url <> ''",
        'hashtextextended': 'hashtextextended(url, 0) <> 0',
        'filter in memory, 1.2 MB': 'bloom_contains(%s, url)' % in_memory('url', '1.2 MB'),
        'filter in memory, 12 MB': 'bloom_contains(%s, url)' % in_memory('url', '12 MB'),
        'filter in memory, 120 MB': 'bloom_contains(%s, url)' % in_memory('url', '120 MB'),
        'filter stored, 1.2 MB': 'bloom_contains(%s, url)' % stored('url', '1.2 MB'),
        'filter stored, 12 MB': 'bloom_contains(%s, url)' % stored('url', '12 MB'),
        'filter stored, 120 MB': 'bloom_contains(%s, url)' % stored('url', '120 MB'),
        'hash semi-join, %s keys' % short(bench.rows // 10): 'url IN (SELECT url FROM some_urls)',
        'hash semi-join, %s keys' % short(bench.rows // 100): 'url IN (SELECT url FROM few_urls)',
        'IN (list) of 10k keys': 'url IN (%s)' % literals(session, 'SELECT url FROM few_urls LIMIT 10000'),
    }
    queries = {name: 'SELECT count(*) FROM urls' + (' WHERE ' + condition if condition else '')
               for name, condition in where.items()}
    # The table of the filter joined instead: another way to write the same.
    queries['filter stored, 1.2 MB, joined'] = (
        'SELECT count(*) FROM urls, %s WHERE bloom_contains(f, url)' % data.filter_table('url', '1.2 MB'))
    session.execute(queries['count(*)'])
    timings = bench.in_turns({name: measuring(session, sql) for name, sql in queries.items()})
    show(bench, section, timings, queries, 'URLs of 64 bytes', 'scans', 'hashtextextended')

    section.target('scan', timings['filter in memory, 1.2 MB'], timings['hashtextextended'],
                   profile=(session, queries['filter in memory, 1.2 MB']))
    section.target('stored', timings['filter stored, 1.2 MB'], timings['filter in memory, 1.2 MB'],
                   profile=(session, queries['filter stored, 1.2 MB']))
    section.target('large', timings['filter in memory, 120 MB'], timings['filter in memory, 1.2 MB'],
                   profile=(session, queries['filter in memory, 120 MB']))
    section.plan('scan, filter in memory', session, queries['filter in memory, 1.2 MB'],
                 ['InitPlan', 'Seq Scan on public.urls'])
    section.plan('hash semi-join', session, 'SELECT count(*) FROM urls WHERE url IN (SELECT url FROM some_urls)',
                 ['Hash (Semi )?Join', 'Seq Scan on public.urls'])


def numbers(bench, section, session):
    where = {
        'count(*)': None,
        'hashint8extended': 'hashint8extended(id, 0) <> 0',
        'filter in memory, 1.2 MB': 'bloom_contains(%s, id)' % in_memory('number', '1.2 MB'),
        'filter stored, 1.2 MB': 'bloom_contains(%s, id)' % stored('number', '1.2 MB'),
        'hash semi-join, %s keys' % short(bench.rows // 10): 'id IN (SELECT id FROM some_numbers)',
        'IN (list) of 10k keys': 'id IN (%s)' % ', '.join(str(i * 10) for i in range(10_000)),
    }
    queries = {name: 'SELECT count(*) FROM numbers' + (' WHERE ' + condition if condition else '')
               for name, condition in where.items()}
    session.execute(queries['count(*)'])
    timings = bench.in_turns({name: measuring(session, sql) for name, sql in queries.items()})
    show(bench, section, timings, queries, 'bigint', 'scans-bigint', 'hashint8extended')


def measuring(session, sql):
    return lambda: session.measure(sql)


def show(bench, section, timings, queries, what, plot, builtin):
    section.code('sql', '\n'.join([settings_text(**SETTINGS) + ';'] + [
        '%s;    -- %s' % (sql if len(sql) < 300 else sql[:sql.index('(', 30)] + '(…)', name)
        for name, sql in queries.items()]))
    section.timing_table(what, timings, bench.rows, 'count(*)', (builtin,))
    plots.bars(section.plot(plot, 'CPU time of a scan per row, %s' % what), 'ns per row', [
        (name, statistics.median(t.cpu for t in series) * 1e9 / bench.rows, 'filter' in name)
        for name, series in timings.items() if None not in series])


def short(number):
    return '%gM' % (number / 1e6) if number >= 1_000_000 else '%gk' % (number / 1e3)
