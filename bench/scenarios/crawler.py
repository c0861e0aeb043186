# job|crawler|12|6|3|no page fetched twice: 35,267 real candidates, then 10 million URLs in batches
"""A crawler that fetches no page twice: what it need not look up, and what that saves."""
import gzip
import os

from lib import as_bytes, significant

TITLE = "A crawler's URLs"
STEPS = 5

# The same without a filter: each candidate of a batch is looked up.
PLAIN = '''CREATE FUNCTION enqueue_plain(candidates text[], OUT added int, OUT looked_up int) LANGUAGE plpgsql AS $$
DECLARE
    rest text[] := ARRAY(SELECT DISTINCT unnest(candidates));
BEGIN
    looked_up := cardinality(rest);
    rest := ARRAY(SELECT url FROM unnest(rest) AS u (url)
                   WHERE NOT EXISTS (SELECT FROM visited v WHERE v.url = u.url)
                     AND NOT EXISTS (SELECT FROM frontier f WHERE f.url = u.url));
    INSERT INTO frontier SELECT unnest(rest);
    added := cardinality(rest);
END $$'''

# Half of what a batch brought is fetched before the next one comes.
FETCH = '''WITH fetched AS (DELETE FROM frontier USING unnest((SELECT urls FROM {0} WHERE batch = %s)) u
                         WHERE url = u AND hashtext(url) %% 2 = 0 RETURNING url)
INSERT INTO visited SELECT DISTINCT url FROM fetched'''

# A candidate is a page not seen before, or as likely one of those so far, which then is known or is not.
SYNTHETIC = '''SELECT (i - 1) / {batch}, 'https://www.example.org/' || md5(page::text) || lpad(to_hex(page), 8, '0')
  FROM (SELECT i, CASE WHEN hashint8(i) % 2 = 0 THEN i ELSE 1 + (hashint8extended(i, 1) & 2147483647) % i END AS page
          FROM (SELECT generate_series(1::bigint, {rows}) AS i) n) p'''


def run(job, section):
    with job.session() as session:
        for statement in ('CREATE TABLE visited', 'CREATE TABLE frontier', 'CREATE TABLE crawler',
                          'CREATE FUNCTION enqueue'):
            session.execute(job.recipe('crawler.sql', statement))
        session.execute(PLAIN)

        rows, batch = job.size(10_000_000), job.size(100_000, 100)
        with job.step('two streams of candidates: of real URLs, and {:,} synthetic ones'.format(rows)):
            real_candidates(job, session)
            job.fill({'synthetic_candidates (batch bigint, url text)': SYNTHETIC.format(rows=rows, batch=batch)})
            for name in ('real', 'synthetic'):
                session.execute('''CREATE UNLOGGED TABLE {0} AS
                    SELECT batch, array_agg(url) AS urls FROM {0}_candidates GROUP BY batch;
                    ALTER TABLE {0} ADD PRIMARY KEY (batch); ANALYZE {0}'''.format(name))

    results = []
    for name, expected in (('real', 40_000), ('synthetic', rows * 2 // 3)):
        with job.session() as session:
            urls = session.value('SELECT count(DISTINCT url) FROM %s_candidates' % name)
        for how in ('enqueue', 'enqueue_plain'):
            results.append(crawl(job, name, expected, how, urls))
    section.text('''Home pages of Debian's packages in batches of 1,000 by name; and {:,} synthetic URLs of 64 bytes in
        batches of {:,}, half of them pages not met before and half drawn from all that came so far, of which some are
        known. Half of what a batch adds is visited before the next comes. *Without*: the same tables, and each
        candidate looked up in them. *Saved* is the share of the lookups that it then takes which the filter
        makes needless, of all and of those for new URLs. Times are those of `enqueue`, per candidate; to fetch is
        not in them.'''.format(rows, batch))
    section.table(['', 'candidates', 'new', 'looked up', 'of them in vain', 'saved of all', 'saved of the new',
                   'filter', 'CPU, µs', 'without', 'wall, µs', 'without'], list(table(job, results)))


def real_candidates(job, session):
    with gzip.open(os.path.join(job.sources, 'demo', 'debian-packages.tsv.gz'), 'rt', encoding='utf-8') as file, \
            session.connection.cursor() as cursor:
        session.execute('CREATE UNLOGGED TABLE packages (name text, section text, url text)')
        cursor.copy_expert('COPY packages FROM STDIN', file)
    session.execute('''CREATE UNLOGGED TABLE real_candidates AS
        SELECT (row_number() OVER (ORDER BY name) - 1) / 1000 AS batch, url
          FROM (SELECT * FROM packages ORDER BY name LIMIT %s) p; ANALYZE real_candidates''',
                        [100_000 if job.factor == 1 else job.size(100_000, 5000)])


def crawl(job, name, expected, how, urls):
    """All batches through one function; what came of it, which has to be right."""
    added = looked_up = distinct = 0
    wall = cpu = 0.0
    with job.session() as session:
        session.execute('TRUNCATE visited, frontier, crawler')
        session.execute('INSERT INTO crawler VALUES (bloom_empty(0.01, %s))', [expected])
        session.execute('VACUUM ANALYZE visited, frontier')
        batches = session.execute('''SELECT batch, (SELECT count(DISTINCT u) FROM unnest(urls) u)
                                       FROM %s ORDER BY 1''' % name)
        with job.step('%s URLs, %d batches, %s' % (
                name, len(batches), 'with the filter' if how == 'enqueue' else 'without')):
            for number, (batch, candidates) in enumerate(batches):
                timing, row = job.timed(session, 'SELECT e.* FROM %s, %s(urls) e WHERE batch = %d' % (name, how, batch))
                added, looked_up, distinct = added + row[0][0], looked_up + row[0][1], distinct + candidates
                wall, cpu = wall + timing.wall, cpu + timing.cpu
                session.execute(FETCH.format(name), [batch])
                if number % 10 == 9:
                    session.execute('VACUUM crawler')
                    session.execute('ANALYZE visited, frontier')
        rows, twice = session.execute('''SELECT (SELECT count(*) FROM frontier) + (SELECT count(*) FROM visited),
                                                 (SELECT count(*) FROM frontier JOIN visited USING (url))''')[0]
        job.check(urls == rows == added and twice == 0, '%s, %s: %d URLs, %d in the tables, %d twice, %d counted' % (
            name, how, urls, rows, twice, added))
        size = session.value('SELECT pg_column_size(known) FROM crawler')
        if how == 'enqueue':
            job.check(session.value('''SELECT bool_and(known @> url) FROM %s_candidates, crawler''' % name),
                      'the filter knows all')
    return {'name': name, 'how': how, 'candidates': distinct, 'added': added, 'looked_up': looked_up,
            'wall': wall, 'cpu': cpu, 'size': size}


def table(job, results):
    for with_filter, plain in zip(results[::2], results[1::2]):
        vain = with_filter['looked_up'] - (with_filter['candidates'] - with_filter['added'])
        new = with_filter['added']
        job.check(vain <= 0.01 * new + 4 * (0.01 * new) ** 0.5, '%d of %d new URLs were looked up' % (vain, new))
        yield [with_filter['name'], '{:,}'.format(with_filter['candidates']), '{:,}'.format(new),
               '{:,}'.format(with_filter['looked_up']), '{:,}'.format(vain),
               '%.1f %%' % (100 - 100 * with_filter['looked_up'] / with_filter['candidates']),
               '%.2f %%' % (100 - 100 * vain / new), as_bytes(with_filter['size']),
               *(significant(r[what] / r['candidates'] * 1e6)
                 for what in ('cpu', 'wall') for r in (with_filter, plain))]
