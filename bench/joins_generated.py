"""A part of the section on joins: generated queries, for which the worst ratio counts. Most of them gain nothing from a
filter, and some are made so that one costs much: expensive keys, estimates that are wrong, rows that all match.

Tables and queries are the same in each run.
"""
import random

from joins_common import OFF, ON, filter_session, keep_analysis, measure_equal
from lib import log, median_ratio, settings_text
from targets import TARGETS

QUERIES = (200, 20)
ROUNDS = (7, 1)
ROWS = (500_000, 20_000)
SETTINGS = {'search_path': 'generated', 'work_mem': "'64MB'", 'max_parallel_workers_per_gather': 0, 'jit': 'off'}

# k is one of as many keys as a tenth of the rows; a key of the inner side is one of them if part is one of the smallest.
TABLES = '''
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
OUTER = {
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
KEYS = {
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
    queries = {name: sql.replace('{new documents}', OUTER['new documents']).replace('{grouped}', OUTER['grouped'])
               for name, sql in NAMED.items()}
    while len(queries) < number:
        name, sql = generate_one(rng)
        queries.setdefault(name, sql)
    return queries


def generate_one(rng):
    outer = rng.choice(list(OUTER))
    wide = 'documents' in outer
    key = rng.choice(['number', 'text', 'text', 'slow'] if wide else ['number', 'number', *KEYS])
    if outer == 'grouped by join' and key == 'jsonb':
        key = 'text'
    inner = 'document_keys' if wide else rng.choice(['dims', 'dims', 'copies', '(SELECT * FROM dims OFFSET 0)'])
    condition = rng.choice(CONDITIONS).format(n=rng.choice(PARTS))
    kind = rng.choice(['join', 'join', 'exists', 'exists twice', 'grouped above', 'right'])
    outer_key, inner_key = KEYS[key]
    name = ', '.join((outer, key, inner.strip('()').replace('SELECT * FROM ', '').replace(' OFFSET 0', ' as a subquery'),
                      condition, kind))
    return name, join(kind, OUTER[outer], '%s = %s' % (outer_key, inner_key), inner, condition)


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


def fill(session, rows):
    for statement in TABLES.format(rows=rows, keys=rows // 10).replace('%%', '%').split(';\n'):
        session.execute(statement)


def run(bench, section):
    queries = generate(bench.scale(*QUERIES))
    log('    filling the schema of generated queries')
    with bench.session(statement_timeout=0) as session:
        fill(session, bench.scale(*ROWS))
    with filter_session(bench, SETTINGS) as session:
        measured, filters = {}, {}
        for name, sql in queries.items():
            log('    ' + name)
            session.execute(ON)
            filters[name] = session.explain(sql).count('(Bloom Filter)')
            if filters[name] > 0:
                measured[name] = measure_equal(bench, session, {'off': (OFF, sql), 'on': (ON, sql)},
                                               bench.scale(*ROUNDS))
        worst_first = sorted(measured, key=lambda name: -ratio(measured[name]))
        section.text('''**%d generated queries** over %d rows, of `bench/joins_generated.py`, %s. %d of them have filters;
            these are the worst.''' % (len(queries), bench.scale(*ROWS), settings_text(**SETTINGS), len(measured)))
        section.table(['query', 'filters', 'CPU on / off'],
                      [[name, filters[name], '%.2f' % ratio(measured[name])] for name in worst_first[:10]])
        worst = worst_first[0]
        section.target('auto generated', measured[worst]['on'], measured[worst]['off'])
        if ratio(measured[worst]) > TARGETS['auto generated'].at_most:
            sql = queries[worst]
            keep_analysis(section, 'auto generated', session, {'off': (OFF, sql), 'on': (ON, sql)}, 'on', worst)
        session.execute('DROP SCHEMA generated CASCADE')


def ratio(timings):
    return median_ratio([t.cpu for t in timings['on']], [t.cpu for t in timings['off']])[0]
