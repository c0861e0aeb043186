#!/usr/bin/python3
"""Writes filters.jsonl and keys.jsonl: golden vectors by a running server.

No check runs it: from release 1.0 on, lines may be added, but none may
change.  test/reader/check_reader.py compares the files with a server and with
the reader.  To add lines, extend KEYS or filters() and run it with PGHOST and
PGDATABASE of a server that has the extension; needs python3-xxhash.
"""
import base64
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, 'reader'))

from bloomfilter_reader import Filter, hash_bytes, i64  # noqa
from check_reader import build_recipe  # noqa
from harness import rows  # noqa


def i64_hex(*numbers):
    return b''.join(i64(number) for number in numbers).hex()


# key type: SQL of a key and its canonical bytes
KEYS = {
    'text': [
        ("''::text", ''), ("'a'::text", '61'), ("' a'::text", '2061'),
        ("'日本語'::text", '日本語'.encode().hex()),
        ("'ab'::char(5)", '6162'), ("'ab  '::varchar", '6162'),
        ("'pg_class'::name", b'pg_class'.hex()),
        ("repeat('x', 300)", (b'x' * 300).hex())],
    'bytea': [("'\\x'::bytea", ''), ("'\\x00ff'::bytea", '00ff')],
    'integer': [
        ('0', i64_hex(0)), ('5::smallint', i64_hex(5)), ('-1', i64_hex(-1)),
        ('9223372036854775807', i64_hex(2**63 - 1)),
        ('(-9223372036854775808)', i64_hex(-2**63))],
    'float': [
        ("float8 '0'", i64_hex(0)), ("float8 '1.5'", '000000000000f83f'),
        ("real '0.1'", '000000a09999b93f'),
        ("float8 '0.1'", '9a9999999999b93f'),
        ("float8 'Infinity'", '000000000000f07f'),
        ("float8 'NaN'", '000000000000f87f')],
    'numeric': [
        (text, canonical.encode().hex()) for text, canonical in (
            ('0.00', '0'), ('1.50', '1.5'), ('-100.0', '-100'),
            ('1e20::numeric', '1' + '0' * 20), ('0.000001', '0.000001'),
            ("numeric 'NaN'", 'NaN'), ("numeric 'Infinity'", 'Infinity'),
            ("numeric '-Infinity'", '-Infinity'))],
    'boolean': [('false', i64_hex(0)), ('true', i64_hex(1))],
    'char': [('\'a\'::"char"', i64_hex(97)),
             ('(-1)::"char"', i64_hex(255))],
    'oid': [('0::oid', i64_hex(0)), ('4294967295::oid', i64_hex(2**32 - 1))],
    'uuid': [("uuid '00112233-4455-6677-8899-aabbccddeeff'",
              '00112233445566778899aabbccddeeff')],
    'date': [("date '2000-01-02'", i64_hex(1)),
             ("date '1999-12-31'", i64_hex(-1)),
             ("date 'infinity'", i64_hex(2**31 - 1)),
             ("date '-infinity'", i64_hex(-2**31))],
    'time': [("time '00:00:01'", i64_hex(10**6)),
             ("time '24:00'", i64_hex(86400 * 10**6))],
    'timetz': [("timetz '12:00:00+02'", i64_hex(43200 * 10**6, -7200)),
               ("timetz '12:00:00-08'", i64_hex(43200 * 10**6, 28800))],
    'timestamp': [("timestamp '2000-01-01 00:00:01'", i64_hex(10**6)),
                  ("timestamp '1999-12-31 23:59:59.999999'", i64_hex(-1)),
                  ("timestamp 'infinity'", i64_hex(2**63 - 1)),
                  ("timestamp '-infinity'", i64_hex(-2**63))],
    'timestamptz': [("timestamptz '2000-01-01 00:00:01+00'", i64_hex(10**6)),
                    ("timestamptz '2000-01-01 02:00:00+02'", i64_hex(0)),
                    ("timestamptz 'infinity'", i64_hex(2**63 - 1))],
    'interval': [
        ("interval '0'", i64_hex(0, 0)),
        ("interval '1 month'", i64_hex(30, 0)),
        ("interval '36 hours'", i64_hex(1, 43200 * 10**6)),
        ("interval '1 month -1 second'", i64_hex(29, 86399 * 10**6))],
    'inet': [("inet '10.1.2.3/8'", '04080a010203'),
             ("inet '10.1.2.3'", '04200a010203'),
             ("cidr '2001:db8::/32'", '062020010db8' + '00' * 12)],
    'macaddr': [("macaddr '08:00:2b:01:02:03'", '08002b010203')],
    'macaddr8': [("macaddr8 '08:00:2b:01:02:03:04:05'", '08002b0102030405')],
    'pg_lsn': [("pg_lsn '16/B374D848'", i64_hex(0x16B374D848))],
    'xid8': [("xid8 '7'", i64_hex(7)),
             ("xid8 '18446744073709551615'", i64_hex(2**64 - 1))],
    'enum': [("'sad'::vector_mood", b'sad'.hex()),
             ("'ä'::vector_mood", 'ä'.encode().hex())],
}
CREATE_ENUM = ("CREATE TYPE pg_temp.vector_mood AS ENUM ('sad', 'ä'); "
               "SET search_path TO pg_temp, public; ")


def recipe_of(first, last, fpp=0.01, expected=None, seed=0):
    return {'key_type': 'integer', 'fpp': fpp, 'expected': expected,
            'seed': seed, 'keys': {'from': first, 'to': last}}


def integers(first, last, fpp=0.01, expected=None, seed=0):
    """SQL and recipe of a filter of integers."""
    sql = ('(SELECT bloom_agg(i, %r, %s, %d) FROM generate_series(%d, %d) i)'
           % (fpp, expected or 'NULL', seed, first, last))
    return sql, recipe_of(first, last, fpp, expected, seed)


def empty(fpp=0.01, expected=None, seed=0):
    return ('bloom_empty(%r, %s, %d)' % (fpp, expected or 'NULL', seed),
            {'key_type': None, 'fpp': fpp, 'expected': expected, 'seed': seed,
             'keys': []})


def hashes(first, last, fpp=0.01):
    """The same without a size, which stays sparse."""
    return ('bloom_add_all(bloom_empty(%r), '
            'ARRAY(SELECT generate_series(%d, %d)))' % (fpp, first, last),
            None)


def intersection(x, y):
    return '%s & %s' % (x[0], y[0]), None


def union(x, y, recipe=None):
    return '%s | %s' % (x[0], y[0]), recipe


def compact(x):
    """One layer is that of a filter for the keys it now expects."""
    sql = 'bloom_compact(%s)' % x[0]
    return sql, x[1] and dict(x[1], expected=fetch(sql).expected)


def fetch(sql):
    return Filter.load(rows('SELECT (%s)::text;' % sql)[0][0])


def filters():
    """Name, SQL and recipe, keys in it, keys not in it."""
    def vector(name, made, first, last, absent=()):
        return (name, made, {'from': first, 'to': last},
                [[str(i), i64_hex(i)] for i in absent])

    yield vector('empty', empty(), 1, 0, [1, 2])
    yield vector('empty, sized, with a seed', empty(1e-5, 1000, -7), 1, 0, [1])
    for n in (1, 13, 128, 129, 1000):
        yield vector('sizes itself, %d keys' % n, integers(1, n), 1, n,
                     [-10, -11])
    for fpp in (0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7,
                1e-9):
        made = integers(1, 300, fpp, 300, 42)
        f = build_recipe(made[1])
        absent = [i for i in range(-50, 0) if i not in f][:5]
        yield vector('dense, fpp %g, 300 of 300 keys' % fpp, made, 1, 300,
                     absent)
    yield vector('sparse, sized, 50 of 1,000 keys',
                 integers(1, 50, 0.01, 1000), 1, 50, [0, 51])
    yield vector('dense, 200 of 1,000 keys', integers(1, 200, 0.01, 1000),
                 1, 200, [0])
    yield vector('a block less than the list', integers(1, 12, 0.01, 40),
                 1, 12)
    yield vector('a list longer than a block', integers(1, 13, 0.01, 40),
                 1, 13)
    yield vector('two k need the same bits: the larger one',
                 integers(1, 300, 0.089, 300), 1, 300)
    yield vector('a number of blocks rounded to 8 digits',
                 integers(1, 2100, 0.01, 13150), 1, 2100)
    yield vector('union, ORed', union(
        integers(1, 200, 0.01, 500), integers(150, 400, 0.01, 500),
        recipe_of(1, 400, 0.01, 500)), 1, 400)
    yield vector('compact, from hashes', compact(
        integers(1, 300, 0.01, 20000)), 1, 300)
    yield vector('folded, from 100,000 to 700 keys',
                 compact(integers(1, 700, 0.01, 100000)), 1, 700)
    for key_type, keys in KEYS.items():
        # Some have more keys than make sense in SQL types of one column.
        recipe = {'key_type': key_type, 'fpp': 0.01, 'expected': None,
                  'seed': 42, 'keys': keys}
        if key_type == 'enum':
            recipe['name'] = 'vector_mood'
        sql = 'bloom_empty(seed => 42)'
        for key, _ in keys:
            sql = 'bloom_add(%s, %s)' % (sql, key)
        yield 'keys of type ' + key_type, (sql, recipe), keys, []

    # No recipe: to be read, not built.  Their layers are up to the extension.
    def only_read(name, made, *keys):
        return vector(name, (made[0], None), *keys)

    yield only_read('grown to several layers', integers(1, 1500, 0.05, 50),
                    1, 1500, [0])
    yield only_read('more than half of the keys are false positives before',
                    integers(1, 3000, 0.5, 20), 1, 3000)
    yield only_read('union side by side, too full together', union(
        integers(1, 300, 0.01, 300), integers(301, 600, 0.01, 300)), 1, 600)
    yield only_read('union side by side, other layer parameters', union(
        integers(1, 300, 0.01, 300), integers(200, 800, 0.001, 1000)), 1, 800)
    yield only_read('union of sparse and dense', union(
        integers(1, 5), integers(5, 300, 0.01, 500)), 1, 300)
    yield only_read(
        'more layers than growth makes', (
            '(SELECT bloom_union_agg(f ORDER BY g) FROM (SELECT g, '
            'bloom_agg(1000 * g + i, 0.01, 40) AS f FROM generate_series(1, 34) g, '
            'generate_series(1, 40) i GROUP BY g) x)', None), 34001, 34040)

    yield only_read('folded in several layers', compact(union(
        integers(1, 300, 0.01, 2000), integers(1, 500, 0.001, 60000))),
        1, 500)
    yield only_read('intersection of hashes', intersection(
        hashes(1, 20), integers(11, 310, 0.01, 300)), 11, 20)
    yield only_read('intersection of bits', intersection(
        integers(1, 300, 0.01, 500), integers(200, 500, 0.01, 500)),
        200, 300)


# Larger images that have a recipe are given by their digest.
MAX_BYTES = 4000


def write(name, vectors):
    with open(os.path.join(HERE, name), 'w', encoding='utf-8') as file:
        for vector in vectors:
            file.write(json.dumps(vector, ensure_ascii=False) + '\n')


def main():
    made = []
    for name, (sql, recipe), present, absent in filters():
        prepare = CREATE_ENUM if name.endswith('type enum') else ''
        text, cardinality, fpp = rows(
            '%sSELECT f::text, bloom_cardinality(f), bloom_fpp(f) '
            'FROM (SELECT %s) x (f);' % (prepare, sql))[-1]
        if recipe and build_recipe(recipe).text() != text:
            raise SystemExit('%s: the server makes\n%s\nthe reader\n%s' % (
                name, text, build_recipe(recipe).text()))
        image = base64.b64decode(text)
        vector = {'name': name, 'sql': 'SELECT ' + sql, 'recipe': recipe,
                  'present': present, 'absent': absent,
                  'cardinality': int(cardinality), 'current_fpp': float(fpp)}
        if recipe and len(image) > MAX_BYTES:
            vector['image_sha256'] = hashlib.sha256(image).hexdigest()
        else:
            vector['image'] = text
        if prepare:
            vector['prepare'] = prepare
        made.append(vector)
    write('filters.jsonl', made)

    write('keys.jsonl', [
        {'key_type': key_type, 'sql': sql, 'seed': seed, 'bytes': data,
         'hash': '%016x' % hash_bytes(bytes.fromhex(data), seed),
         'shard_of_1000': hash_bytes(
             i64(hash_bytes(bytes.fromhex(data))), 0x7368617264) * 1000 >> 64}
        for key_type, keys in KEYS.items() if key_type != 'enum'
        for sql, data in keys for seed in (0, 42, -1)])


if __name__ == '__main__':
    main()
