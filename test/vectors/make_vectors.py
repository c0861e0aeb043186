#!/usr/bin/python3
"""Writes filters.jsonl and keys.jsonl: golden vectors by a running server.

Not part of any check: the files are to stay as they are from release 1.0 on,
and only new lines may come.  test/reader/check_reader.py compares them with
today's server and with the reader.  Called as that is.
"""
import base64
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, 'reader'))

from bloomfilter_reader import Filter, Layer, hash_bytes, i64  # noqa
from check_reader import cook  # noqa
from harness import rows  # noqa


def i64_hex(*numbers):
    return b''.join(i64(number) for number in numbers).hex()


# kind: SQL of a key and its canonical bytes
KEYS = {
    'text': [
        ("''::text", ''), ("'a'::text", '61'),
        ("'日本語'::text", '日本語'.encode().hex()),
        ("'ab'::char(5)", '6162'), ("'ab  '::varchar", '61622020'),
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


def integers(first, last, fpp=0.01, expected=None, seed=0):
    """SQL and recipe of a filter of integers, as bloom_agg makes it."""
    recipe = {'kind': 'integer', 'fpp': fpp, 'expected': expected,
              'seed': seed, 'keys': {'from': first, 'to': last}}
    sql = ('(SELECT bloom_agg(i, %r, %s, %d) FROM generate_series(%d, %d) i)'
           % (fpp, expected or 'NULL', seed, first, last))
    return sql, recipe if expected else {'compact': recipe}


def empty(fpp=0.01, expected=None, seed=0):
    return ('bloom_empty(%r, %s, %d)' % (fpp, expected or 'NULL', seed),
            {'kind': None, 'fpp': fpp, 'expected': expected, 'seed': seed,
             'keys': []})


def hashes(first, last, fpp=0.01):
    """The same without a size, which stays sparse."""
    return ('bloom_add_all(bloom_empty(%r), '
            'ARRAY(SELECT generate_series(%d, %d)))' % (fpp, first, last),
            {'kind': 'integer', 'fpp': fpp, 'expected': None, 'seed': 0,
             'keys': {'from': first, 'to': last}})


def foreign(first, last, *shape, fpp=0.01):
    """One layer that the extension would not make: N, log2 B, k, n and p."""
    f = Filter('integer', fpp)
    f.add(first)
    f.layers, f.hashes = [Layer(*shape)], set()
    for i in range(first, last + 1):
        f.layers[0].set(f.hash(i))
    return "'%s'::bloom" % f.text(), {'image': f.text()}


def stacked(*filters):
    """The layers of foreign filters in one, in this order."""
    f, *others = [cook(recipe) for _, recipe in filters]
    for other in others:
        f.layers += other.layers
    return "'%s'::bloom" % f.text(), {'image': f.text()}


def merge(*filters):
    return ('(SELECT bloom_union_agg(f ORDER BY n) FROM (VALUES %s) v (n, f))'
            % ', '.join('(%d, %s)' % (i, sql)
                        for i, (sql, _) in enumerate(filters, 1)),
            {'merge': [recipe for _, recipe in filters]})


def intersection(x, y):
    return '%s & %s' % (x[0], y[0]), {'intersection': [x[1], y[1]]}


def union(x, y):
    return '%s | %s' % (x[0], y[0]), {'union': [x[1], y[1]]}


def compact(x):
    return 'bloom_compact(%s)' % x[0], {'compact': x[1]}


def exclude(x, n, first=1000000):
    """Without the first n false positives from a number on."""
    f = cook(x[1])
    false = []
    i = first
    while len(false) < n:
        if f.contains_hash(hash_bytes(i64(i), f.seed)):
            false.append(i)
        i += 1
    return without(x, false)


def without(x, false):
    sql = x[0]
    for i in false:
        sql = 'bloom_exclude(%s, %d)' % (sql, i)
    return sql, {'exclude': x[1],
                 'keys': [[str(i), i64_hex(i)] for i in false]}


def filters():
    """Name, note, SQL, recipe, keys in it, keys not in it."""
    def range_vector(name, made, first, last, absent=()):
        return (name, made, {'from': first, 'to': last},
                [[str(i), i64_hex(i)] for i in absent])

    yield range_vector('empty', empty(), 1, 0, [1, 2])
    yield range_vector('empty, sized, with a seed', empty(1e-5, 1000, -7),
                       1, 0, [1])
    for n in (1, 12, 13, 100, 1000):
        yield range_vector('sizes itself, %d keys' % n, integers(1, n),
                           1, n, [-10, -11])
    for fpp in (0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7,
                1e-9):
        made = integers(1, 300, fpp, 300, 42)
        f = cook(made[1])
        absent = [i for i in range(-50, 0)
                  if not f.contains_hash(hash_bytes(i64(i), 42))][:5]
        yield range_vector('dense, fpp %g, 300 of 300 keys' % fpp, made,
                           1, 300, absent)
    yield range_vector('sparse, sized, 50 of 1,000 keys',
                       integers(1, 50, 0.01, 1000), 1, 50, [0, 51])
    yield range_vector('dense, 200 of 1,000 keys',
                       integers(1, 200, 0.01, 1000), 1, 200, [0])
    yield range_vector('grown to several layers', integers(1, 1500, 0.05, 50),
                       1, 1500, [0])
    yield range_vector('union, ORed', union(
        integers(1, 200, 0.01, 500), integers(150, 400, 0.01, 500)), 1, 400)
    yield range_vector('union side by side, too full together', union(
        integers(1, 300, 0.01, 300), integers(301, 600, 0.01, 300)), 1, 600)
    yield range_vector('union side by side, other shape', union(
        integers(1, 300, 0.01, 300), integers(200, 800, 0.001, 1000)), 1, 800)
    yield range_vector('union of sparse and dense', union(
        integers(1, 5), integers(5, 300, 0.01, 500)), 1, 300)
    twice = exclude(integers(1, 300, 0.1, 300), 3)
    yield range_vector('exceptions', twice, 1, 300,
                       [int(sql) for sql, _ in twice[1]['keys']])
    again = union(twice, integers(int(twice[1]['keys'][0][0]),
                                  int(twice[1]['keys'][0][0])))
    yield range_vector('exceptions, one taken back by a union', again, 1, 300,
                       [int(sql) for sql, _ in twice[1]['keys'][1:]])
    yield range_vector('folded, from 100,000 to 700 keys',
                       compact(integers(1, 700, 0.01, 100000)), 1, 700)
    yield range_vector('folded in several layers', compact(union(
        integers(1, 300, 0.01, 2000), integers(1, 500, 0.001, 60000))),
        1, 500)
    yield range_vector('compact, from hashes', compact(
        integers(1, 300, 0.01, 20000)), 1, 300)
    for kind, keys in KEYS.items():
        # Some have more keys than make sense in SQL types of one column.
        recipe = {'kind': kind, 'fpp': 0.01, 'expected': None, 'seed': 42,
                  'keys': keys}
        if kind == 'enum':
            recipe['name'] = 'vector_mood'
        sql = 'bloom_empty(seed => 42)'
        for key, _ in keys:
            sql = 'bloom_add(%s, %s)' % (sql, key)
        yield 'keys of kind ' + kind, (sql, recipe), keys, []


def rules():
    """The same, each for a rule that no filter above would tell of."""
    def vector(name, made, first, last):
        return name, made, {'from': first, 'to': last}, []

    yield vector('a block less than the list', integers(1, 12, 0.01, 40),
                 1, 12)
    yield vector('a list longer than a block', integers(1, 13, 0.01, 40),
                 1, 13)
    yield vector('two k need the same bits: the larger one',
                 integers(1, 300, 0.089, 300), 1, 300)
    yield vector('a number of blocks rounded to 8 digits',
                 integers(1, 2100, 0.01, 13150), 1, 2100)
    yield vector('more than half of the keys test positive before',
                 integers(1, 3000, 0.5, 20), 1, 3000)

    roomy = integers(1, 700, 0.01, 3000)
    yield vector('folded, from 60 blocks to 15', compact(roomy), 1, 700)
    yield vector('folded, from 8 blocks to 4, then to 2',
                 compact(integers(1, 646, 0.5, 2400)), 1, 646)
    yield vector('folded, then sorted', compact(union(
        roomy, integers(1, 500, 0.005, 2000))), 1, 700)
    yield vector('folded, then united', compact(union(
        integers(1, 300, 0.01, 1560), integers(200, 750, 0.01, 3140))),
        1, 750)
    yield vector('folded, with an exception',
                 compact(exclude(integers(1, 120, 0.5, 600), 1)), 1, 120)
    for k, log2 in ((5, 9), (6, 10)):
        yield vector('not folded: k = %d, B = %d' % (k, 1 << log2), compact(
            foreign(1, 20, 4, log2, k, 180, 0.01)), 1, 20)
    yield vector('not folded: one of two layers', compact(union(
        roomy, foreign(701, 720, 4, 9, 5, 180, 0.01))), 1, 720)

    full = integers(1, 295, 0.01, 300)
    yield vector('a list, to layers that have no room for it',
                 union(full, hashes(1001, 1100)), 1001, 1100)
    yield vector('a list, to a layer for as many as are still coming',
                 union(integers(1, 150, 0.01, 300), hashes(1001, 2000)),
                 1001, 2000)
    yield vector('a list, to a layer for the keys expected',
                 union(full, integers(1001, 1100, 0.01, 1000)), 1001, 1100)
    two = union(integers(1, 100, 0.01, 500), integers(101, 300, 0.01, 1000))
    yield vector('a list, to the last layer that has room',
                 union(two, hashes(1001, 1010)), 1001, 1010)
    yield vector('a list, too long for other parameters',
                 merge(hashes(1, 50), empty(0.01, 20)), 1, 50)
    yield vector('a list, too long for itself, before parameters change',
                 merge(integers(1, 10, 0.01, 40), integers(11, 20, 0.01, 40),
                       hashes(21, 25, 0.001)), 1, 25)
    yield vector('a list, too long for itself, before layers come',
                 merge(integers(1, 10, 0.01, 40), integers(11, 20, 0.01, 40),
                       integers(21, 60, 0.01, 40)), 1, 60)
    yield vector('a list, too long for parameters that come with layers',
                 merge(hashes(1001, 1050), integers(1, 40, 0.01, 20)),
                 1001, 1050)
    yield vector('a list, added after the layers', merge(
        integers(1001, 1030, 0.01, 300), full), 1001, 1030)

    other = integers(301, 600, 0.01, 300)
    both = union(integers(1, 300, 0.01, 300), other)
    yield vector('union, the one with more layers first',
                 union(both, integers(380, 520, 0.01, 300)), 1, 600)
    x, y = cook(both[1]).layers
    equal = next(i for i in range(5001, 6000) if 0 < len(
        x.missing(hash_bytes(i64(i)))) == len(y.missing(hash_bytes(i64(i)))))
    yield vector('union, the first of layers that gain the same',
                 union(both, foreign(equal, equal, *x.shape())), equal, equal)
    for i in 295, 595:
        yield vector('union, the layer that gains less, %d to %d' % (i, i + 9),
                     union(both, foreign(i, i + 9, *x.shape())), i, i + 9)
    small = 1, 9, 6, 5, 0.01
    yield vector('union, a full layer that contains the other',
                 union(foreign(1, 40, *small), foreign(1, 20, *small)), 1, 40)
    yield vector('union, sorted by bits_set', union(
        integers(1, 296, 0.01, 300), integers(601, 900, 0.01, 300)), 601, 900)
    yield vector('union, sorted by all else', merge(*(
        foreign(i, i, *shape) for i, shape in enumerate((
            (2, 10, 6, 90, 0.01), (2, 9, 6, 90, 0.02), (2, 9, 6, 90, 0.01),
            (1, 10, 6, 90, 0.01), (2, 9, 5, 90, 0.01), (1, 9, 7, 91, 0.01),
            (3, 9, 6, 89, 0.01)), 1))), 1, 7)
    yield vector('union, sorted by k before bits_set', union(
        foreign(1, 2, 2, 9, 6, 90, 0.01), foreign(3, 3, 2, 9, 7, 90, 0.01)),
        1, 3)
    yield vector('union with hashes, not sorted', union(
        stacked(foreign(1, 1, 2, 9, 6, 90, 0.01),
                foreign(2, 2, 1, 9, 6, 45, 0.01)), hashes(3, 3)), 1, 3)
    yield vector('union, sorted by their bytes', merge(*(
        foreign(i, i, 1, 9, 6, 1, 0.01) for i in range(1, 6))), 1, 5)
    yield vector('union, the expected keys cut to what is possible',
                 union(empty(0.5, 2900000000), hashes(1, 3, 1e-9)), 1, 3)

    x = exclude(integers(1, 300, 0.1, 300), 3)
    false = [int(sql) for sql, _ in x[1]['keys']]
    y = integers(false[0] - 249, false[0], 0.1, 300)
    name, made, present, _ = vector(
        'union, of exceptions those that neither contains',
        union(x, exclude(y, 1, 1)), false[0], false[0])
    yield name, made, present, [[str(i), i64_hex(i)] for i in false[1:]]

    yield vector('intersection of hashes', intersection(
        hashes(1, 20), integers(11, 310, 0.01, 300)), 11, 20)
    yield vector('intersection of bits', intersection(
        integers(1, 300, 0.01, 500), integers(200, 500, 0.01, 500)),
        200, 300)
    yield vector('intersection with exceptions', intersection(
        x, exclude(integers(100, 380, 0.1, 300), 2, 2000000)), 100, 300)

    # Which layers are merged is up to the extension.
    yield vector('more layers than there can be, some of them merged', (
        '(SELECT bloom_union_agg(f ORDER BY g) FROM (SELECT g, '
        'bloom_agg(1000 * g + i) AS f FROM generate_series(1, 34) g, '
        'generate_series(1, 40) i GROUP BY g) x)', None), 34001, 34040)


# Images of more bytes are given by their digest.
MOST_BYTES = 2000


def write(name, vectors):
    with open(os.path.join(HERE, name), 'w', encoding='utf-8') as file:
        for vector in vectors:
            file.write(json.dumps(vector, ensure_ascii=False) + '\n')


def main():
    made = []
    old = [(vector, False) for vector in filters()]
    new = [(vector, True) for vector in rules()]
    for (name, (sql, recipe), present, absent), brief in old + new:
        prepare = CREATE_ENUM if name.endswith('kind enum') else ''
        text, cardinality, fpp = rows(
            '%sSELECT f::text, bloom_cardinality(f), bloom_fpp(f) '
            'FROM (SELECT %s) x (f);' % (prepare, sql))[-1]
        recipe = recipe or {'image': text}
        mine = cook(recipe).text()
        if mine != text:
            raise SystemExit('%s: the server makes\n%s\nthe reader\n%s' %
                             (name, text, mine))
        image = base64.b64decode(text)
        vector = {'name': name, 'sql': 'SELECT ' + sql, 'recipe': recipe,
                  'present': present, 'absent': absent,
                  'cardinality': int(cardinality), 'current_fpp': float(fpp)}
        if brief and len(image) > MOST_BYTES and recipe != {'image': text}:
            vector['image_sha256'] = hashlib.sha256(image).hexdigest()
        else:
            vector['image'] = text
        if prepare:
            vector['prepare'] = prepare
        made.append(vector)
    write('filters.jsonl', made)

    write('keys.jsonl', [
        {'kind': kind, 'sql': sql, 'seed': seed, 'bytes': data,
         'hash': '%016x' % hash_bytes(bytes.fromhex(data), seed),
         'shard_of_1000': hash_bytes(
             i64(hash_bytes(bytes.fromhex(data))), 0x7368617264) * 1000 >> 64}
        for kind, keys in KEYS.items() if kind != 'enum'
        for sql, data in keys for seed in (0, 42, -1)])


if __name__ == '__main__':
    main()
