#!/usr/bin/python3
"""Compares bloomfilter_reader with the golden vectors and with a server.

    PGHOST=... PGDATABASE=... test/reader/check_reader.py

The database needs the extension.  Nothing is left in it.  With the argument
--vectors, only what needs no server is run.  Output: TAP.
"""
import base64
import datetime
import decimal
import hashlib
import ipaddress
import json
import math
import os
import random
import re
import string
import struct
import sys
import uuid

from bloomfilter_reader import (
    Filter, FormatError, MASK, TooLarge, array_number, hash_bytes, i64,
    jsonb_number, key_bytes, key_hash, shard)
from harness import Tap, copy_data, rows

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       os.pardir, 'vectors')
COOKBOOK = os.path.join(VECTORS, os.pardir, os.pardir, 'doc', 'COOKBOOK.md')
# BF_LONG=1 makes more filters and probes more keys.
LONG = bool(os.environ.get('BF_LONG'))
NPROBES = 10000 if LONG else 1000


# --- Golden vectors ---------------------------------------------------------

def read_vectors(name):
    with open(os.path.join(VECTORS, name), encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def vector_hashes(keys, seed):
    """The hashes of the keys of a recipe."""
    if isinstance(keys, dict):
        keys = [[None, i64(i).hex()]
                for i in range(keys['from'], keys['to'] + 1)]
    return [hash_bytes(bytes.fromhex(data), seed) for _, data in keys]


def build_recipe(recipe):
    """Build a filter of one layer, or of hashes, by the recipe of a vector."""
    result = Filter(recipe['key_type'], recipe['fpp'], recipe['expected'],
                    recipe['seed'], recipe.get('name', ''))
    for hashed in vector_hashes(recipe['keys'], result.seed):
        result.add_hash(hashed)
    if not recipe['expected']:
        result.size_to_keys()
    return result


def is_golden(vector, image):
    """Whether an image is that of a vector, which may have its digest."""
    if 'image' in vector:
        return image == base64.b64decode(vector['image'])
    return hashlib.sha256(image).hexdigest() == vector['image_sha256']


def differences(vector):
    if vector['recipe']:
        golden = build_recipe(vector['recipe'])
        if not is_golden(vector, golden.image()):
            yield 'its recipe gives other bytes'
    if 'image' in vector:
        golden = Filter.load(vector['image'])
    if not is_golden(vector, Filter.load(golden.image()).image()):
        yield 'loaded and written again, it has other bytes'
    if golden.cardinality() != vector['cardinality']:
        yield 'cardinality %d' % golden.cardinality()
    if not math.isclose(golden.current_fpp(), vector['current_fpp'],
                        rel_tol=1e-6):
        yield 'rate %r' % golden.current_fpp()
    for what, answer in (('present', True), ('absent', False)):
        for hashed in vector_hashes(vector[what], golden.seed):
            if golden.contains_hash(hashed) != answer:
                yield 'hash %016x is not %s' % (hashed, what)


def check_vectors(tap):
    for vector in read_vectors('filters.jsonl'):
        tap.run('vector %s: the reader %s it' % (
            vector['name'], 'builds, loads and probes' if vector['recipe']
            else 'loads and probes'), lambda: '\n'.join(differences(vector)))
    for key_type, keys in keys_by_type().items():
        wrong = [key['sql'] for key in keys
                 if '%016x' % hash_bytes(bytes.fromhex(key['bytes']),
                                         key['seed']) != key['hash']]
        tap.ok(not wrong, 'vectors of type %s: %d hashes of canonical bytes' %
               (key_type, len(keys)), '\n'.join(wrong))


def keys_by_type():
    result = {}
    for key in read_vectors('keys.jsonl'):
        result.setdefault(key['key_type'], []).append(key)
    return result


def check_vectors_live(tap):
    """The server makes the golden bytes."""
    for vector in read_vectors('filters.jsonl'):
        def test():
            image = ("'%s'::bloom = f" % vector['image']
                     if 'image' in vector else 'true')
            made, same, cardinality, fpp = rows(
                '%sWITH made (f) AS (%s) SELECT f::text, %s, '
                'bloom_cardinality(f), bloom_fpp(f) FROM made;' %
                (vector.get('prepare', ''), vector['sql'], image))[-1]
            if not is_golden(vector, base64.b64decode(made)) or same != 't':
                return 'the server makes ' + made
            if int(cardinality) != vector['cardinality']:
                return 'cardinality ' + cardinality
            if not math.isclose(float(fpp), vector['current_fpp'],
                                rel_tol=1e-6):
                return 'rate ' + fpp
        tap.run('vector %s: the server makes the same bytes' % vector['name'],
                test)

    for key_type, keys in keys_by_type().items():
        made = rows(''.join(
            'SELECT bloom_hash(%s, %d), bloom_shard(%s, 1000);\n' %
            (key['sql'], key['seed'], key['sql']) for key in keys))
        wrong = [key['sql'] for key, (hashed, number) in zip(keys, made)
                 if '%016x' % (int(hashed) & MASK) != key['hash'] or
                 int(number) != key['shard_of_1000']]
        tap.ok(not wrong, 'vectors of type %s: %d hashes and shards by the '
               'server' % (key_type, len(keys)), '\n'.join(wrong))


# --- Keys of every type -----------------------------------------------------

def words(rng):
    letters = string.ascii_letters + string.digits + ' äßжя日本語🐘'
    return ''.join(rng.choice(letters) for _ in range(rng.randrange(1, 40)))


def make_text(rng):
    word = words(rng)
    return word, word


def make_short(rng):
    word = words(rng)[:30]
    return word, word


def make_bytes(size):
    def make(rng):
        data = bytes(rng.randrange(256)
                     for _ in range(size or rng.randrange(40)))
        return data.hex(), data
    return make


def make_int(low, high):
    def make(rng):
        number = rng.randrange(low, high)
        return str(number), number
    return make


def make_float(rng):
    number = rng.choice((rng.uniform(-1, 1), rng.gauss(0, 1e300)))
    return repr(number), number


def make_float4(rng):
    number, = struct.unpack('<f', struct.pack('<f', rng.gauss(0, 1e9)))
    return repr(number), number


def make_numeric(rng):
    text = '%s%d.%0*d' % (rng.choice(('', '-')),
                          rng.randrange(10**rng.randrange(1, 40)),
                          rng.randrange(1, 20), rng.randrange(10**9))
    return text, decimal.Decimal(text)


def make_uuid(rng):
    value = uuid.UUID(int=rng.getrandbits(128))
    return str(value), value


def make_date(rng):
    value = datetime.date.fromordinal(rng.randrange(1, 3652059))
    return str(value), value


def make_time(rng):
    value = datetime.time(rng.randrange(24), rng.randrange(60),
                          rng.randrange(60), rng.randrange(10**6))
    return value.isoformat(), value


def make_timetz(rng):
    value = make_time(rng)[1].replace(tzinfo=datetime.timezone(
        datetime.timedelta(minutes=rng.randrange(-900, 900))))
    return value.isoformat(), value


def make_timestamp(rng):
    value = datetime.datetime.combine(make_date(rng)[1], make_time(rng)[1])
    return value.isoformat(), value


def make_timestamptz(rng):
    value = datetime.datetime(1900, 1, 1, tzinfo=datetime.timezone(
        datetime.timedelta(minutes=rng.randrange(-900, 900))))
    value += datetime.timedelta(microseconds=rng.randrange(10**16))
    return value.isoformat(), value


def make_interval(rng):
    value = (rng.randrange(-10**6, 10**6), rng.randrange(-10**6, 10**6),
             rng.randrange(-10**15, 10**15))
    return ','.join(map(str, value)), value


def make_inet(rng):
    if rng.random() < 0.5:
        text = '%s/%d' % (ipaddress.IPv4Address(rng.getrandbits(32)),
                          rng.randrange(33))
    else:
        text = '%s/%d' % (ipaddress.IPv6Address(rng.getrandbits(128)),
                          rng.randrange(129))
    return text, text


def make_cidr(rng):
    text = str(ipaddress.ip_interface(make_inet(rng)[0]).network)
    return text, text


def make_lsn(rng):
    number = rng.getrandbits(64)
    return '%X/%X' % (number >> 32, number & 0xFFFFFFFF), number


LABELS = ['label %d ä' % i for i in range(400)]


def make_label(rng):
    label = rng.choice(LABELS)
    return label, label


INTERVAL = ("(make_interval(months => split_part(k, ',', 1)::int, "
            "days => split_part(k, ',', 2)::int) + "
            "(split_part(k, ',', 3) || ' microseconds')::interval)")
INFINITE = [('infinity', math.inf), ('-infinity', -math.inf)]

# key type, the key in SQL from its text k, what makes a text and the same key
# for the reader, and keys at the borders
KEY_TYPES = [
    ('text', 'k', make_text, [('', ''), ('x' * 5000, 'x' * 5000),
                              (' a ', ' a '), ('\\N \n', '\\N \n')]),
    ('text', 'k::varchar', make_text, []),
    ('text', 'k::char(50)', make_short, [('', '')]),
    ('text', 'k::name', make_short, []),
    ('bytea', "decode(k, 'hex')", make_bytes(0), [('', b''), ('00', b'\0')]),
    ('integer', 'k::bigint', make_int(-2**63, 2**63), [
        (str(i), i) for i in (0, 1, -1, 2**63 - 1, -2**63)]),
    ('integer', 'k::int', make_int(-2**31, 2**31), []),
    ('integer', 'k::smallint', make_int(-2**15, 2**15), []),
    ('float', 'k::float8', make_float, [
        (repr(x), x) for x in (0.0, -0.0, math.nan, math.inf, -math.inf,
                               5e-324, 0.1)]),
    ('float', 'k::float8::real', make_float4, [('-0.0', -0.0),
                                               ('NaN', math.nan)]),
    ('numeric', 'k::numeric', make_numeric, [
        (x, decimal.Decimal(x))
        for x in ('0.000', '-0', '1.50', '100', '1e30', '1e-30', 'NaN',
                  'Infinity', '-Infinity')]),
    ('boolean', 'k::boolean', lambda rng: ('true', True), []),
    ('char', 'k::int::"char"',
     lambda rng: (lambda i: (str(i), i & 255))(rng.randrange(-128, 128)), []),
    ('oid', 'k::oid', make_int(0, 2**32), [('4294967295', 2**32 - 1)]),
    ('uuid', 'k::uuid', make_uuid, []),
    ('date', 'k::date', make_date, INFINITE),
    ('time', 'k::time', make_time, [('24:00', 86400000000)]),
    ('timetz', 'k::timetz', make_timetz, [
        ('00:00:00+15:59:59', (0, -57599)), ('24:00-08', (86400000000, 28800))
    ]),
    ('timestamp', 'k::timestamp', make_timestamp, INFINITE),
    ('timestamptz', 'k::timestamptz', make_timestamptz, INFINITE),
    ('interval', INTERVAL, make_interval, [
        (','.join(map(str, x)), x) for x in (
            (0, 0, 0), (1, 0, 0), (0, 0, -1), (0, -1, 86400000001))]),
    ('inet', 'k::inet', make_inet, [(x, x) for x in (
        '0.0.0.0/0', '::/0', '10.1.2.3', '::ffff:1.2.3.4')]),
    ('inet', 'k::cidr', make_cidr, []),
    ('macaddr', 'k::macaddr', make_bytes(6), []),
    ('macaddr8', 'k::macaddr8', make_bytes(8), []),
    ('pg_lsn', 'k::pg_lsn', make_lsn, [('0/0', 0)]),
    ('xid8', 'k::xid8', make_int(0, 2**64), [(str(2**64 - 1), 2**64 - 1)]),
    ('enum', 'k::reader_label', make_label, []),
]

# fpp, expected, seed, number of keys
PARAMETERS = [
    (0.01, None, 0, 10),
    (0.001, None, 42, 2000),
    (0.01, 5000, -7, 100),
    (1e-5, 2000, 2**62, 2000),
    (0.3, 1500, 1, 1500),
    (1e-9, 740, 0, 740),
    (0.05, 100, 0, 2000),
]

CREATE_ENUM = 'CREATE TYPE pg_temp.reader_label AS ENUM (%s);\n' % (
    ', '.join("'%s'" % label for label in LABELS))


def distinct_keys(key_type, make, borders):
    """Keys and probes, as text and value; none is equal to another one."""
    rng = random.Random(key_type)
    wanted = max(n for _, _, _, n in PARAMETERS) + NPROBES
    found = {}
    for text, value in borders:
        found.setdefault(key_bytes(key_type, value), (text, value))
    tries = 0
    # Some types have few keys.
    while len(found) < wanted and tries < 3 * wanted:
        text, value = make(rng)
        found.setdefault(key_bytes(key_type, value), (text, value))
        tries += 1
    keys = list(found.values())
    nkeys = wanted - NPROBES if len(keys) == wanted else (len(keys) + 1) // 2
    return keys[:nkeys], keys[nkeys:]


def build(keys, key_type, name, fpp, expected, seed):
    """The filter of the keys; None if it has more than one layer."""
    result = Filter(key_type, fpp, expected, seed, name)
    try:
        result.update(value for _, value in keys)
    except TooLarge:
        return None
    if not expected:
        result.size_to_keys()
    return result


def compare(built, answers, keys, probes):
    """What differs between a filter of the reader and the server's row."""
    made, equal, taken, said, cardinality, fpp = answers
    loaded = Filter.load(made)
    if built is None:
        if len(loaded.layers) < 2:
            yield 'the reader does not build what the server has in one layer'
    else:
        if made != built.text():
            yield 'other bytes'
        if equal != 't':
            yield "the server does not find the reader's filter equal"
        if taken != 't':
            yield "the server writes the reader's filter otherwise"
    lost = [text for text, value in keys if value not in loaded]
    if lost:
        yield 'not found: %s' % lost[:3]
    mine = ''.join('01'[value in loaded] for _, value in probes)
    if mine != said:
        yield 'other answers to %d of %d probes' % (
            sum(x != y for x, y in zip(mine, said)), len(probes))
    yield from told_differently(loaded, cardinality, fpp)


def told_differently(loaded, cardinality, fpp):
    if loaded.cardinality() != int(cardinality):
        yield 'cardinality %d, not %s' % (loaded.cardinality(), cardinality)
    if not math.isclose(loaded.current_fpp(), float(fpp), rel_tol=1e-9,
                        abs_tol=1e-30):
        yield 'rate %r, not %s' % (loaded.current_fpp(), fpp)


def check_type(tap, key_type, expression, make, borders):
    keys, probes = distinct_keys(key_type, make, borders)
    name = 'reader_label' if key_type == 'enum' else ''
    built = [build(keys[:n], key_type, name, fpp, expected, seed)
             for fpp, expected, seed, n in PARAMETERS]
    script = (
        'CREATE TEMP TABLE keys (n int, k text);\n'
        'CREATE TEMP TABLE probes (n int, k text);\n'
        'CREATE TEMP TABLE built (n int, f text);\n')
    if key_type == 'enum':
        script += CREATE_ENUM
    script += copy_data('keys', ((i, key[0]) for i, key in enumerate(keys)))
    script += copy_data('probes', (
        (i, key[0]) for i, key in enumerate(probes)))
    script += copy_data('built', ((i, f.text() if f else '')
                                  for i, f in enumerate(built)))
    for i, (fpp, expected, seed, n) in enumerate(PARAMETERS):
        script += """
            WITH made AS MATERIALIZED (
                SELECT bloom_agg({key}, {fpp}, {expected}, {seed} ORDER BY n)
                    AS f FROM keys WHERE n < {n}),
            probed AS (
                SELECT string_agg((f @> {key})::int::text, '' ORDER BY n) AS a
                  FROM made, probes)
            SELECT made.f::text, nullif(built.f, '')::bloom = made.f,
                nullif(built.f, '')::bloom::text = built.f, coalesce(a, ''),
                bloom_cardinality(made.f), bloom_fpp(made.f)
              FROM made, built, probed WHERE built.n = {i};
            """.format(key=expression, fpp=fpp, seed=seed, n=n, i=i,
                       expected=expected or 'NULL')
    answers = rows(script)
    for f, answer, (fpp, expected, seed, n) in zip(built, answers, PARAMETERS):
        form = ('several layers' if f is None else 'one layer, same bytes'
                if f.layers else 'sparse, same bytes')
        tap.run('%s as %s, fpp %g, expected %s, seed %d, %d keys: %s, '
                'all keys, same answers to %d others' %
                (expression if len(expression) < 30 else key_type, key_type,
                 fpp, expected, seed, len(keys[:n]), form, len(probes)),
                lambda: '\n'.join(compare(f, answer, keys[:n], probes)))


# Documents by the i-th key, in SQL and in Python.
DOCUMENTS = [
    ("jsonb_build_object('key', i)", lambda i: {'key': i}),
    ('to_jsonb(i)', lambda i: i),
    ("jsonb_build_object('i', i, 'ä', i * 1.50, 'list', "
     "jsonb_build_array(i, '[]'::jsonb, '{}'::jsonb, NULL, i > 3, 'x ' || i), "
     "'z', jsonb_build_object('', -i, 'a', to_jsonb('text'::text)))",
     lambda i: {'list': [i, [], {}, None, i > 3, 'x %d' % i],
                'z': {'a': 'text', '': -i}, 'ä': decimal.Decimal(i) * 3 / 2,
                'i': i}),
    ('(SELECT jsonb_agg(j) FROM generate_series(1, i % 40) j)',
     lambda i: list(range(1, i % 40 + 1)) or None)]


def opclass_keys():
    """Types, keys in SQL, and functions: the number of the i-th one with a
    seed, or the name of PostgreSQL's hash function."""
    yield ('int8[]', 'ARRAY[[NULL, i], [i::bigint << 32, 5]]',
           lambda i, seed: array_number(
               'integer', (None, i, i << 32, 5), seed))
    yield ('int4[]', 'ARRAY(SELECT generate_series(1, i % 50))',
           lambda i, seed: array_number('integer', range(1, i % 50 + 1), seed))
    yield ('text[]', "ARRAY[i::text, NULL, 'ä ']",
           lambda i, seed: array_number('text', (str(i), None, 'ä '), seed))
    yield ('bpchar[]', 'ARRAY[i::text]::char(9)[]',
           lambda i, seed: array_number('text', (str(i),), seed))
    yield ('int4range', 'int4range(i, i + 5)', 'hash_range_extended')
    for sql, value in DOCUMENTS:
        yield ('jsonb', 'coalesce(%s, jsonb \'null\')' % sql,
               lambda i, seed, value=value: jsonb_number(value(i), seed))
        yield ('jsonb[]', 'ARRAY[coalesce(%s, jsonb \'null\'), NULL]' % sql,
               lambda i, seed, value=value: array_number(
                   'opclass', (jsonb_number(value(i), seed), None), seed))


def check_opclass(tap):
    """Opclass-hashed types: the reader computes arrays and jsonb, and is given
    the other hashes of PostgreSQL."""
    encoding = int(rows('SELECT encoding FROM pg_database '
                        'WHERE datname = current_database();')[0][0])
    byte_order = 1 if sys.byteorder == 'little' else 2
    for name, expression, number in opclass_keys():
        for seed, n in ((0, 5), (-5, 1000)):
            def test():
                script = ('SELECT bloom_agg(%s, 0.01, 1000, %d)::text '
                          'FROM generate_series(1, %d) i;' %
                          (expression, seed, n))
                if isinstance(number, str):
                    script += ('SELECT %s(%s, %d) FROM generate_series(1, %d) '
                               'i;' % (number, expression, seed, n))
                answers = rows(script)
                mine = Filter('opclass', 0.01, 1000, seed, name, byte_order,
                              encoding)
                if isinstance(number, str):
                    mine.update(int(value) for value, in answers[1:])
                else:
                    mine.update(number(i, seed) for i in range(1, n + 1))
                if mine.text() != answers[0][0]:
                    return 'the server makes ' + answers[0][0]
            tap.run('%s, %s, seed %d, %d keys: same bytes' %
                    (name, expression[:40], seed, n), test)


# --- Set operations and damage ----------------------------------------------

def check_canonical(tap):
    """The filters of one layer that section 8 of FORMAT.md promises."""
    rng = random.Random(3)
    cases = []
    for _ in range(100 if LONG else 50):
        n = rng.randrange(1, 3000)
        cases.append((10 ** rng.uniform(-9, -0.31),
                      rng.choice((0, n, rng.randrange(n, 30 * n))),
                      rng.randrange(-2 ** 63, 2 ** 63), n))
    answers = rows(''.join("""
        WITH made AS (
            SELECT bloom_agg(i, {fpp!r}, {expected}, '{seed}') AS f,
                bloom_agg(i, {fpp!r}, {expected}, '{seed}')
                    FILTER (WHERE i % 3 > 0) AS part,
                bloom_agg(i, {fpp!r}, {expected}, '{seed}' ORDER BY -i)
                    FILTER (WHERE i % 3 < 2) AS others,
                bloom_add_all(bloom_empty({fpp!r}, {expected}, '{seed}'),
                              array_agg(i ORDER BY -i)) AS added
            FROM generate_series(1, {n}) i)
        SELECT f::text, added::text, bloom_compact(f)::text,
            bloom_compact(added)::text, (part | others)::text FROM made;
        """.format(fpp=fpp, expected=expected or 'NULL', seed=seed, n=n)
        for fpp, expected, seed, n in cases))
    forms = []

    def test():
        for (fpp, expected, seed, n), made in zip(cases, answers):
            def built(expected, to_keys, **exact):
                f = Filter('integer', fpp, expected, seed)
                f.update(range(1, n + 1))
                if to_keys:
                    f.size_to_keys(**exact)
                forms.append(bool(f.layers))
                return f.text()

            wanted = {'bloom_agg': built(expected, not expected),
                      'bloom_add_all': built(expected, False)}
            for name, before, after in (
                    ('bloom_compact of bloom_agg', made[0], made[2]),
                    ('bloom_compact of bloom_add_all', made[1], made[3])):
                # A layer is folded as far as the extension chooses.
                wanted[name] = built(Filter.load(after).expected if
                                     Filter.load(before).layers else expected,
                                     True, exact=0)
                # So it is if a list became a layer that folds again.
                layers = Filter.load(after).layers
                if layers and layers[0].capacity < n:
                    wanted[name] = after
            if expected:
                wanted['union'] = built(expected, False)
            for (name, text), image in zip(wanted.items(), made):
                if text != image:
                    yield '%s: fpp %r, expected %s, seed %d, %d keys' % (
                        name, fpp, expected, seed, n)

    tap.run('%d filters by bloom_agg, bloom_add_all, bloom_compact and union: '
            'same bytes' % len(cases), lambda: '\n'.join(test()))
    tap.ok(0.1 < sum(forms) / len(forms) < 0.9, 'sparse and dense ones',
           '%d of %d are dense' % (sum(forms), len(forms)))


# First and last key, and a query for a filter of the keys i in {}
POOL = [
    (1, 10, 'SELECT bloom_agg(i) FROM {}'),
    (5, 500, 'SELECT bloom_agg(i) FROM {}'),
    (1, 400, 'SELECT bloom_agg(i, 0.01, 500) FROM {}'),
    (300, 700, 'SELECT bloom_agg(i, 0.01, 500) FROM {}'),
    (300, 3000, 'SELECT bloom_agg(i, 0.01, 500) FROM {}'),
    (1, 300, 'SELECT bloom_agg(i, 0.001, 20000) FROM {}'),
    (1, 3000, 'SELECT bloom_agg(i, 0.001, 20000) FROM {}'),
    (1, 60, 'SELECT bloom_agg(i, 0.5, 60) FROM {}'),
    (1000, 1060, 'SELECT bloom_agg(i, 0.5, 60) FROM {}'),
    (1, 100, 'SELECT bloom_agg(i, 0.4, 20) FROM {}'),
    (1, 400, 'SELECT bloom_agg(i, 0.01, 1000) FROM {}'),
    (1, 80, 'SELECT bloom_agg(i, 0.01, 1000) FROM {}'),
    (1, 2000, 'SELECT bloom_add_all(bloom_empty(), array_agg(i)) FROM {}'),
    # 40 filters of up to 160 keys
    (1, 3200, 'SELECT bloom_union_agg(f) FROM '
              '(SELECT bloom_compact(bloom_agg(i)) AS f FROM {} GROUP BY floor(sqrt(i / 2))) x'),
    (1, 0, 'SELECT bloom_empty(0.0001)'),
    (1, 0, 'SELECT bloom_empty(0.1, 1000)'),
    (1, 0, 'SELECT bloom_empty(0.01, 10)'),
]
NABSENT = 500 if LONG else 100


class Measured:
    """False positives of many filters, and how many their rates predict."""

    def __init__(self):
        self.found = self.predicted = self.filters = 0

    def __str__(self):
        return '%d false positives, %d predicted' % (
            self.found, self.predicted)


def compare_probed(answers, present, measured):
    """What differs between a server's row and what the reader makes of it.

    The row: the image, what the server answers to NABSENT keys from a number
    on, this number, cardinality, and rate.
    """
    image, said, first, cardinality, fpp = answers
    loaded = Filter.load(image)
    if loaded.text() != image:
        yield 'loaded and written again, it has other bytes'
    loaded.key_type = 'integer'         # of empty filters it is not known
    lost = [i for i in sorted(present)[::1 if LONG else 7] if i not in loaded]
    if lost:
        yield 'not found: %s' % lost[:3]
    mine = ''.join('01'[int(first) + i in loaded] for i in range(NABSENT))
    if mine != said:
        yield 'other answers to %d of %d probes' % (
            sum(x != y for x, y in zip(mine, said)), NABSENT)
    yield from told_differently(loaded, cardinality, fpp)
    measured.found += mine.count('1')
    measured.predicted += NABSENT * loaded.current_fpp()
    measured.filters += 1


def check_sets(tap):
    """Unions, intersections and compact filters: the reader reads them."""
    rng = random.Random(2)
    n = len(POOL)
    orders = [list(range(n))] + [rng.sample(range(n), 5) for _ in range(40 if LONG else 10)]
    # Nobody adds the keys from 10^6 on; each filter gets others of them.
    probe = """
        SELECT f::text, said, first, bloom_cardinality(f), bloom_fpp(f)
        FROM (SELECT f, 1000000 + {0} * row_number() OVER (ORDER BY n)
              FROM (%s) x (n, f)) x (f, first),
            LATERAL (SELECT string_agg((f @> p)::int::text, '' ORDER BY p)
                     FROM generate_series(first, first + {0} - 1) p) y (said)
        ORDER BY first;
        """.format(NABSENT)
    answers = iter(rows(
        'CREATE TEMP TABLE pool (n int, f bloom);\n' +
        ''.join('INSERT INTO pool SELECT %d, (%s);\n' % (i, query.format(
            'generate_series(%d, %d) i' % (first, last)))
                for i, (first, last, query) in enumerate(POOL)) +
        """
        CREATE FUNCTION pg_temp.common(x bloom, y bloom) RETURNS bloom
        LANGUAGE plpgsql AS $$ BEGIN RETURN x & y;
        EXCEPTION WHEN feature_not_supported THEN RETURN NULL; END $$;
        CREATE TEMP TABLE common AS
            SELECT x.n AS x, y.n AS y, pg_temp.common(x.f, y.f) AS f
            FROM pool x, pool y;
        """ +
        probe % 'SELECT n, f FROM pool' +
        probe % 'SELECT n, bloom_compact(f) FROM pool' +
        probe % ('SELECT %d * x.n + y.n, x.f | y.f FROM pool x, pool y' % n) +
        probe % ('SELECT o, bloom_union_agg(f ORDER BY i) FROM (VALUES %s) '
                 'v (o, i, n) JOIN pool USING (n) GROUP BY o' % ', '.join(
                     '(%d, %d, %d)' % (o, i, k) for o, order in
                     enumerate(orders) for i, k in enumerate(order))) +
        'SELECT x, y FROM common WHERE f IS NOT NULL ORDER BY x, y;\n'
        "SELECT 'end';\n" +
        probe % ('SELECT %d * x + y, f FROM common WHERE f IS NOT NULL' % n)))
    keys = [set(range(first, last + 1)) for first, last, _ in POOL]
    measured = Measured()

    def check_rows(title, present):
        """Check a row for each set of keys."""
        made = [next(answers) for _ in present]

        def test():
            for row, those in zip(made, present):
                yield from compare_probed(row, those, measured)

        tap.run('%d %s: all keys, same answers to %d others of each' %
                (len(present), title, NABSENT), lambda: '\n'.join(test()))
        return [row[0] for row in made]

    texts = check_rows('filters', keys)
    tap.ok(any(len(Filter.load(text).layers) > 32 for text in texts),
           'set operations have filters of many layers')
    compact = check_rows('compact filters', keys)
    sizes = sum(map(len, compact)), sum(map(len, texts))
    tap.ok(sizes[0] < sizes[1], 'compact filters are smaller', sizes)
    check_rows('unions', [x | y for x in keys for y in keys])
    check_rows('unions by bloom_union_agg', [
        set().union(*(keys[i] for i in order)) for order in orders])
    tap.ok(measured.filters > 300 and measured.predicted > 1000 and
           abs(measured.found / measured.predicted - 1) < 0.1,
           '%d filters have the rate that they tell: %s' %
           (measured.filters, measured))

    pairs = []
    for pair in iter(lambda: next(answers), ['end']):
        pairs.append([keys[int(i)] for i in pair])
    common = check_rows('intersections', [x & y for x, y in pairs])
    tap.ok(len(common) > 100 and any(
        Filter.load(text).layers for text in common),
        'some intersections are of bits')
    return texts


def damage(image, rng):
    """Copies of an image, most of them not valid."""
    header = min(len(image), 44 + 16 + 2 * 32)
    for at in range(header):
        for value in (0, 1, 2, 31, 64, 65, 127, 255, image[at] ^ 1):
            yield image[:at] + bytes([value]) + image[at + 1:]
    for size in list(range(header)) + [len(image) - 8, len(image) - 1]:
        yield image[:size]
    for more in (b'\0', bytes(8), image):
        yield image + more
    for _ in range(100):
        broken = bytearray(image)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        yield bytes(broken)


def rejects(image):
    try:
        Filter.load(image)
    except FormatError:
        return True
    return False


def check_damage(tap, texts):
    rng = random.Random(1)
    images = [Filter.load(text).image() for text in texts]
    enum = Filter('enum', name='reader_label')
    enum.update(['label 1 ä'])
    opclass = Filter('opclass', name='int4[]', byte_order=1, encoding=6)
    opclass.add(1)
    broken = [copy for image in
              [enum.image(), opclass.image()] +
              [image for image in images if len(image) < 1000]
              for copy in damage(image, rng)]

    # pg_input_is_valid would do from PostgreSQL 16 on
    answers = rows("""
        CREATE FUNCTION pg_temp.rejected(image text) RETURNS boolean
            LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM decode(image, 'hex')::bloom;
            RETURN false;
        EXCEPTION WHEN invalid_binary_representation THEN
            RETURN true;
        END $$;
        CREATE TEMP TABLE broken (n int, image text);
        """ + copy_data('broken', ((i, copy.hex())
                                   for i, copy in enumerate(broken))) +
                   'SELECT pg_temp.rejected(image)::int FROM broken '
                   'ORDER BY n;\n')
    wrong = [copy.hex() for copy, (answer,) in zip(broken, answers)
             if rejects(copy) != (answer == '1')]
    rejected = sum(answer == '1' for answer, in answers)
    tap.ok(not wrong, 'damaged images: of %d, the server and the reader '
           'reject the same %d' % (len(broken), rejected), '\n'.join(wrong[:5]))


def check_shards(tap):
    answers = rows('SELECT bloom_shard(i, 1 << (i % 31)) '
                   'FROM generate_series(1, 1000) i;')
    tap.ok([shard('integer', i, 1 << (i % 31)) for i in range(1, 1001)] ==
           [int(answer) for answer, in answers],
           'bloom_shard of 1,000 keys: same numbers')


def check_cookbook(tap):
    """The expression by which the cookbook tells clients to hash a word."""
    with open(COOKBOOK, encoding='utf-8') as page:
        expression = re.search(r"`(key_hash\([^`]*password[^`]*\))`",
                               page.read()).group(1)
    passwords = ['', ' ', 'letmein', 'letmein ', '  letmein   ', 'a b ', 'tab\t',
                 'line\n', '\u00a0', 'caf\u00e9', 'cafe\u0301', '\u00e9 ',
                 '\U0001f511', '\U0001f511 \U00020000 ', 'x' * 1000 + ' ']
    made = rows('CREATE TEMP TABLE passwords (n int, password text);\n' +
                copy_data('passwords', enumerate(passwords)) +
                'SELECT bloom_hash(password, 8123746519204) FROM passwords'
                ' ORDER BY n;')
    wrong = [repr(password) for password, (number,) in zip(passwords, made)
             if int(number) != eval(expression, {
                 'key_hash': key_hash, 'password': password,
                 'seed': 8123746519204})]
    tap.ok(not wrong and len(made) == len(passwords),
           'the hash of the cookbook: %s' % expression, '\n'.join(wrong))


def check_wrong_keys(tap):
    """What is not a key is a TypeError that says so."""
    for key_type, key in (('text', None), ('text', 5), ('integer', 2**64),
                          ('integer', 'five'), ('uuid', 'a'), ('float', None),
                          ('bytea', 'a'), ('date', 'a'), ('interval', 5),
                          ('timestamp', None), ('timetz', 5)):
        f = Filter(key_type)
        for use in (f.add, f.__contains__):
            try:
                use(key)
                told = 'no error'
            except TypeError as error:
                told = str(error)
            tap.ok(told.startswith('not a key of type %s: %r, of type ' %
                                   (key_type, key)),
                   '%r is no key of type %s' % (key, key_type), told)


def main():
    tap = Tap()
    check_wrong_keys(tap)
    check_vectors(tap)
    if '--vectors' not in sys.argv[1:]:
        tap.require_server()
        check_vectors_live(tap)
        for key_type, expression, make, borders in KEY_TYPES:
            try:
                check_type(tap, key_type, expression, make, borders)
            except Exception as error:
                tap.ok(False, 'keys of type %s as %s' % (key_type, expression),
                       error)
        check_opclass(tap)
        check_shards(tap)
        check_cookbook(tap)
        check_canonical(tap)
        check_damage(tap, check_sets(tap))
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
