# job|citus|6|3|1|one filter of a table that Citus distributes: what is pushed down, what travels
"""One filter of a table that Citus distributes: which forms are pushed down, that the results are the same, and what
travels. One server with all shards plans as many do."""
import re

import psycopg2

from lib import significant

TITLE = 'One filter from the shards of Citus'
STEPS = 15
ROWS, DISTINCT, SHARDS = 5_000_000, 2_000_000, 12
PULL = 'citus.allow_aggregate_worker_combine_on_internal_types'

# Forms of a filter of the table: what they take, and whether the shards send parts of the filter or rows.
FORMS = {
    'hashes': ('SELECT bloom_agg_hash(bloom_hash(url), 0.01, {0}) | bloom_empty(0.01, {0}, 0, \'text\') FROM visits',
               'parts'),
    'text': ('SELECT bloom_agg(url::bloom_key, 0.01, {0}) FROM visits', 'parts'),
    'filters of one key': ('SELECT bloom_union_agg(bloom_add(bloom_empty(0.01, {0}), url)) FROM visits', 'parts'),
    'by bucket': ('SELECT bloom_union_agg(f) FROM (SELECT bucket, bloom_agg(url, 0.01, {0}) AS f '
                  'FROM visits_by_bucket GROUP BY bucket) x', 'filters'),
    'by hand': ("SELECT bloom_union_agg(nullif(result, '')::bloom) FROM run_command_on_shards('visits', "
                "'SELECT bloom_agg(url, 0.01, {0}) FROM %s')", None),
    'rows': ('SELECT bloom_agg(url, 0.01, {0}) FROM visits', 'rows')}


def run(job, section):
    rows, distinct = job.size(ROWS, 2000), job.size(DISTINCT, 800)
    with job.session(client_min_messages='error') as session:
        with job.step('{:,} rows with {:,} URLs in {} shards'.format(rows, distinct, SHARDS)):
            make_tables(job, session, rows, distinct)
        with job.step('a filter of the same rows without Citus', session):
            session.execute('CREATE TABLE local AS SELECT bloom_agg(url, 0.01, %s) AS f, bloom_agg(url) AS unsized, '
                            'bloom_agg(url, 0.01, %s) AS overfull FROM local_visits', [distinct, distinct // 3])
        figures = [one_form(job, session, name, distinct) for name in FORMS]
        check_unsized(job, session)
        check_overfull(job, session, distinct)
        check_errors(job, session)
        lookups = check_lookups(job, session, distinct)
    section.text('''{:,} rows with {:,} URLs, in {} shards of one server. All filters are equal byte for byte to that
        of a local table with the same rows. Version of Citus: {}.'''.format(rows, distinct, SHARDS, job.citus))
    section.table(['form', 'the shards send', 'received', 'wall, s'], figures)
    for query, *_ in FORMS.values():
        section.code('sql', query.format(distinct) + ';')
    section.text('A join on a column by which the tables are not distributed:')
    section.table(['', 'wall, s'], lookups)


def make_tables(job, session, rows, distinct):
    session.execute('CREATE EXTENSION citus')
    job.citus = session.value("SELECT extversion FROM pg_extension WHERE extname = 'citus'")
    session.execute("SELECT citus_set_coordinator_host(%s, current_setting('port')::int)", [job.server.socket_dir])
    session.execute("SELECT citus_set_node_property(%s, current_setting('port')::int, 'shouldhaveshards', true)",
                    [job.server.socket_dir])
    session.execute('SET citus.shard_count = %d' % SHARDS)
    for name, column in ('visits', 'id'), ('visits_by_bucket', 'bucket'), ('pages', 'id'), ('nothing', 'id'):
        session.execute('CREATE TABLE {0} (id bigint, url text, bucket int)'.format(name))
        session.execute("SELECT create_distributed_table('{}', '{}')".format(name, column))
    session.execute('''CREATE TABLE local_visits AS
        SELECT i AS id, 'https://example.org/page/' || i * 7919 %% %s AS url, (i %% 32)::int AS bucket
          FROM generate_series(1::bigint, %s) i''', [distinct, rows])
    session.execute('INSERT INTO visits SELECT * FROM local_visits')
    session.execute('INSERT INTO visits_by_bucket SELECT * FROM local_visits')
    session.execute('INSERT INTO pages SELECT DISTINCT ON (url) * FROM local_visits WHERE id <= %s',
                    [max(100, distinct // 100)])
    session.execute('CREATE TABLE filters (name text PRIMARY KEY, f bloom NOT NULL)')
    session.execute("SELECT create_reference_table('filters')")
    # Or else the form that is measured first sets the hint bits of all rows, and connects to the shards.
    session.execute('VACUUM ANALYZE')
    session.execute('SELECT count(url) FROM visits')


def has_pull_setting(session):
    return session.value('SELECT current_setting(%s, true) IS NOT NULL', [PULL])


def one_form(job, session, name, expected):
    query, sends = FORMS[name]
    query = query.format(expected)
    if sends == 'rows' and has_pull_setting(session):
        check_push_down_of_any_type(job, session, query)
        session.execute('SET %s = off' % PULL)
    with job.step(name) as step:
        same = session.value('SELECT (%s)::bytea = f::bytea FROM local' % query)
    job.check(same, 'the filter from %s is not the local one' % name)
    received = ''
    if sends:
        plan = session.explain(query, 'ANALYZE, TIMING OFF')
        received = re.search(r'Tuple data received from nodes: (.*)', plan).group(1)
        on_shards = plan[plan.index('->  Task'):]
        job.check((sends == 'rows') == ('Aggregate' not in on_shards), '%s: %s' % (name, plan))
    if sends == 'rows' and has_pull_setting(session):
        session.execute('RESET %s' % PULL)
    return [name, sends or 'filters', received, significant(step.wall)]


def check_push_down_of_any_type(job, session, query):
    """Citus 15 plans it, and then compares anyelement with the actual type."""
    try:
        session.execute(query)
    except psycopg2.Error as error:
        job.check('could not confirm type correctness' in str(error), str(error))
    else:
        job.check(False, 'the setting %s is not needed' % PULL)


def check_unsized(job, session):
    with job.step('filters that size themselves'):
        same = session.value('SELECT (SELECT bloom_agg(url::bloom_key) FROM visits)::bytea = unsized::bytea FROM local')
    job.check(same, 'a filter that sizes itself is not the local one')


def check_overfull(job, session, distinct):
    with job.step('a third of the expected keys'):
        for name in 'hashes', 'text', 'filters of one key':
            query = FORMS[name][0].format(distinct // 3)
            ratio = session.value('SELECT bloom_fpp((%s)) / bloom_fpp(overfull) FROM local' % query)
            job.check(0.9 < ratio < 1.1, 'the rate of %s is %g of the local one' % (name, ratio))


def check_errors(job, session):
    """Why the result is cast, and success is not looked at."""
    with job.step('shards that are empty or fail'):
        empty = session.value("SELECT bloom_union_agg(nullif(result, '')::bloom) = bloom_empty() FROM "
                              "run_command_on_shards('nothing', 'SELECT bloom_agg(url) FROM %s GROUP BY bucket')")
        job.check(empty, 'empty shards give an empty filter')
        try:
            session.execute("SELECT bloom_union_agg(nullif(result, '')::bloom) FROM "
                            "run_command_on_shards('visits', 'SELECT bloom_agg(missing) FROM %s')")
        except psycopg2.errors.InvalidTextRepresentation:
            return
        job.check(False, 'a shard that fails is an error')


def check_lookups(job, session, distinct):
    session.execute("INSERT INTO filters SELECT 'pages', "
                    "bloom_agg_hash(bloom_hash(url), 0.01, %s) | bloom_empty(0.01, %s, 0, 'text') FROM pages",
                    [distinct, distinct])
    session.execute('SET citus.enable_repartition_joins = on')
    member = "(SELECT f FROM filters WHERE name = 'pages') @> url"
    with job.step('a lookup on the workers'):
        plan = session.explain('SELECT count(*) FROM visits WHERE ' + member, 'COSTS OFF')
        job.check('Filter: ' in plan[plan.index('->  Task'):], plan)
        # Citus does not plan a function in SQL with parameters over distributed tables.
        session.execute('''CREATE FUNCTION is_page(url text) RETURNS boolean LANGUAGE plpgsql STABLE AS
            $$ BEGIN RETURN (SELECT f @> is_page.url FROM filters WHERE name = 'pages'); END $$''')
        url = session.value('SELECT url FROM pages LIMIT 1')
        job.check(session.value('SELECT is_page(%s)', [url]), 'a page is found')
    joins = {'repartition join': 'SELECT count(*) FROM visits v JOIN pages p USING (url)',
             'filter from a reference table':
                 'SELECT count(*) FROM visits v JOIN pages p USING (url), filters f '
                 "WHERE f.name = 'pages' AND f.f @> v.url",
             'filter in a materialized CTE':
                 'WITH v AS MATERIALIZED (SELECT url FROM visits WHERE %s) '
                 'SELECT count(*) FROM v JOIN pages p USING (url)' % member}
    counts, times = set(), []
    for name, query in joins.items():
        with job.step(name) as step:
            counts.add(session.value(query))
        times.append([name, significant(step.wall)])
    job.check(len(counts) == 1, 'the joins have different results: %s' % counts)
    return times
