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
import string
import struct
import sys
import uuid

from bloomfilter_reader import (
    Filter, FormatError, MASK, hash_bytes, i64, key_bytes, shard)
from harness import Tap, copy_data, rows

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       os.pardir, 'vectors')
# BF_QUICK=1 asks for fewer, as for a machine that is emulated.
NPROBES = 1000 if os.environ.get('BF_QUICK') else 10000


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


def cook(recipe):
    """Build a filter by the recipe of a vector."""
    if 'union' in recipe:
        x, y = map(cook, recipe['union'])
        return x | y
    if 'merge' in recipe:
        first, *others = map(cook, recipe['merge'])
        result = first.merged_into_empty()
        for other in others:
            result.merge(other)
        return result
    if 'intersection' in recipe:
        x, y = map(cook, recipe['intersection'])
        return x & y
    if 'image' in recipe:
        return Filter.load(recipe['image'])
    if 'compact' in recipe:
        result = cook(recipe['compact'])
        result.compact()
        return result
    if 'exclude' in recipe:
        result = cook(recipe['exclude'])
        for key_hash in vector_hashes(recipe['keys'], result.seed):
            result.exclude_hash(key_hash)
        return result
    result = Filter(recipe['kind'], recipe['fpp'], recipe['expected'],
                    recipe['seed'], recipe.get('name', ''))
    keys = recipe['keys']
    if isinstance(keys, dict) and keys['to'] - keys['from'] > 500:
        result.update(range(keys['from'], keys['to'] + 1))
    else:
        for key_hash in vector_hashes(keys, result.seed):
            result.add_hash(key_hash)
    return result


def is_golden(vector, image):
    """Whether an image is that of a vector, which may have its digest."""
    if 'image' in vector:
        return image == base64.b64decode(vector['image'])
    return hashlib.sha256(image).hexdigest() == vector['image_sha256']


def differences(vector):
    golden = cook(vector['recipe'])
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
        for key_hash in vector_hashes(vector[what], golden.seed):
            if golden.contains_hash(key_hash) != answer:
                yield 'hash %016x is not %s' % (key_hash, what)


def check_vectors(tap):
    for vector in read_vectors('filters.jsonl'):
        tap.run('vector %s: the reader loads, builds and asks it' %
                vector['name'], lambda: '\n'.join(differences(vector)))
    for kind, keys in keys_by_kind().items():
        wrong = [key['sql'] for key in keys
                 if '%016x' % hash_bytes(bytes.fromhex(key['bytes']),
                                         key['seed']) != key['hash']]
        tap.ok(not wrong, 'vectors of kind %s: %d hashes of canonical bytes' %
               (kind, len(keys)), '\n'.join(wrong))


def keys_by_kind():
    result = {}
    for key in read_vectors('keys.jsonl'):
        result.setdefault(key['kind'], []).append(key)
    return result


def check_vectors_live(tap):
    """Today's server makes the golden bytes."""
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

    for kind, keys in keys_by_kind().items():
        made = rows(''.join(
            'SELECT bloom_hash(%s, %d), bloom_shard(%s, 1000);\n' %
            (key['sql'], key['seed'], key['sql']) for key in keys))
        wrong = [key['sql'] for key, (key_hash, number) in zip(keys, made)
                 if '%016x' % (int(key_hash) & MASK) != key['hash'] or
                 int(number) != key['shard_of_1000']]
        tap.ok(not wrong, 'vectors of kind %s: %d hashes and shards by the '
               'server' % (kind, len(keys)), '\n'.join(wrong))


# --- Keys of every kind -----------------------------------------------------

def words(rng):
    letters = string.ascii_letters + string.digits + ' äßжя日本語🐘'
    return ''.join(rng.choice(letters) for _ in range(rng.randrange(1, 40)))


def make_text(rng):
    word = words(rng)
    return word, word


def make_unpadded(rng):
    word = words(rng)[:30].rstrip()
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

# kind, the key in SQL from its text k, what makes a text and the same key
# for the reader, and keys at the borders
KINDS = [
    ('text', 'k', make_text, [('', ''), ('x' * 5000, 'x' * 5000),
                              (' a ', ' a '), ('\\N \n', '\\N \n')]),
    ('text', 'k::varchar', make_text, []),
    ('text', 'k::char(50)', make_unpadded, [('', '')]),
    ('text', 'k::name', make_unpadded, []),
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


def distinct_keys(kind, make, borders):
    """Keys and probes, as text and value; none is equal to another one."""
    rng = random.Random(kind)
    wanted = max(n for _, _, _, n in PARAMETERS) + NPROBES
    found = {}
    for text, value in borders:
        found.setdefault(key_bytes(kind, value), (text, value))
    tries = 0
    # Some kinds have but a few keys.
    while len(found) < wanted and tries < 3 * wanted:
        text, value = make(rng)
        found.setdefault(key_bytes(kind, value), (text, value))
        tries += 1
    keys = list(found.values())
    nkeys = wanted - NPROBES if len(keys) == wanted else (len(keys) + 1) // 2
    return keys[:nkeys], keys[nkeys:]


def build(keys, kind, name, fpp, expected, seed):
    result = Filter(kind, fpp, expected, seed, name)
    result.update(value for _, value in keys)
    if not expected:
        result.compact()
    return result


def compare(built, answers, keys, probes):
    """What differs between a filter of the reader and the server's row."""
    made, equal, taken, said, cardinality, fpp = answers
    loaded = Filter.load(made)
    if made != built.text():
        yield 'other bytes'
    if equal != 't':
        yield "the server does not find the reader's filter equal to its own"
    if taken != 't':
        yield "the server writes the reader's filter otherwise"
    lost = [text for text, value in keys if value not in loaded]
    if lost:
        yield 'not found: %s' % lost[:3]
    mine = ''.join('01'[value in loaded] for _, value in probes)
    if mine != said:
        yield 'other answers to %d of %d probes' % (
            sum(x != y for x, y in zip(mine, said)), len(probes))
    if loaded.cardinality() != int(cardinality):
        yield 'cardinality %d, not %s' % (loaded.cardinality(), cardinality)
    if not math.isclose(loaded.current_fpp(), float(fpp), rel_tol=1e-9,
                        abs_tol=1e-30):
        yield 'rate %r, not %s' % (loaded.current_fpp(), fpp)


def check_kind(tap, kind, expression, make, borders):
    keys, probes = distinct_keys(kind, make, borders)
    name = 'reader_label' if kind == 'enum' else ''
    built = [build(keys[:n], kind, name, fpp, expected, seed)
             for fpp, expected, seed, n in PARAMETERS]
    script = (
        'CREATE TEMP TABLE keys (n int, k text);\n'
        'CREATE TEMP TABLE probes (n int, k text);\n'
        'CREATE TEMP TABLE built (n int, f text);\n')
    if kind == 'enum':
        script += CREATE_ENUM
    script += copy_data('keys', ((i, key[0]) for i, key in enumerate(keys)))
    script += copy_data('probes', (
        (i, key[0]) for i, key in enumerate(probes)))
    script += copy_data('built', ((i, f.text()) for i, f in enumerate(built)))
    for i, (fpp, expected, seed, n) in enumerate(PARAMETERS):
        script += """
            WITH made AS MATERIALIZED (
                SELECT bloom_agg({key}, {fpp}, {expected}, {seed} ORDER BY n)
                    AS f FROM keys WHERE n < {n}),
            asked AS (
                SELECT string_agg((f @> {key})::int::text, '' ORDER BY n) AS a
                  FROM made, probes)
            SELECT made.f::text, built.f::bloom = made.f,
                built.f::bloom::text = built.f, coalesce(a, ''),
                bloom_cardinality(made.f), bloom_fpp(made.f)
              FROM made, built, asked WHERE built.n = {i};
            """.format(key=expression, fpp=fpp, seed=seed, n=n, i=i,
                       expected=expected or 'NULL')
    answers = rows(script)
    for f, answer, (fpp, expected, seed, n) in zip(built, answers, PARAMETERS):
        form = ('sparse' if not f.layers else 'one layer'
                if len(f.layers) == 1 else '%d layers' % len(f.layers))
        tap.run('%s as %s, fpp %g, expected %s, seed %d, %d keys, %s: '
                'same bytes, all keys, same answers to %d others' %
                (expression if len(expression) < 30 else kind, kind, fpp,
                 expected, seed, len(keys[:n]), form, len(probes)),
                lambda: '\n'.join(compare(f, answer, keys[:n], probes)))


def check_foreign(tap):
    """Kinds that PostgreSQL hashes: the reader is given these hashes."""
    encoding = int(rows('SELECT encoding FROM pg_database '
                        'WHERE datname = current_database();')[0][0])
    byte_order = 1 if sys.byteorder == 'little' else 2
    for name, function, expression in (
            ('jsonb', 'jsonb_hash_extended',
             "jsonb_build_object('key', i)"),
            ('int4[]', 'hash_array_extended', 'ARRAY[i, i + 1]'),
            ('int4range', 'hash_range_extended', 'int4range(i, i + 5)')):
        for seed, n in ((0, 5), (-5, 1000)):
            def test():
                answers = rows(
                    'SELECT bloom_agg(%s, 0.01, 1000, %d)::text '
                    'FROM generate_series(1, %d) i;'
                    'SELECT %s(%s, %d) FROM generate_series(1, %d) i;' %
                    (expression, seed, n, function, expression, seed, n))
                mine = Filter('foreign', 0.01, 1000, seed, name, byte_order,
                              encoding)
                mine.update(int(value) for value, in answers[1:])
                if mine.text() != answers[0][0]:
                    return 'the server makes ' + answers[0][0]
            tap.run('foreign kind %s, seed %d, %d keys: same bytes' %
                    (name, seed, n), test)


# --- Set operations and damage ----------------------------------------------

ZOO = """
    bloom_agg(i) FROM generate_series(1, 10) i
    bloom_agg(i) FROM generate_series(5, 500) i
    bloom_agg(i, 0.01, 500) FROM generate_series(1, 400) i
    bloom_agg(i, 0.01, 500) FROM generate_series(300, 700) i
    bloom_agg(i, 0.01, 500) FROM generate_series(300, 3000) i
    bloom_agg(i, 0.001, 20000) FROM generate_series(1, 300) i
    bloom_agg(i, 0.001, 20000) FROM generate_series(1, 3000) i
    bloom_exclude(bloom_exclude(bloom_agg(i, 0.5, 60), 77), 87)
        FROM generate_series(1, 60) i
    bloom_exclude(bloom_exclude(bloom_agg(i, 0.5, 60), 73), 87)
        FROM generate_series(1000, 1060) i
    bloom_exclude(bloom_exclude(bloom_agg(i, 0.4, 20), 105), 107)
        FROM generate_series(1, 100) i
    bloom_agg(i, 0.01, 1000) FROM generate_series(1, 400) i
    bloom_agg(i, 0.01, 1000) FROM generate_series(1, 80) i
    bloom_add_all(bloom_empty(), ARRAY(SELECT generate_series(1, 2000)))
    bloom_empty(0.0001)
    bloom_empty(0.1, 1000)
    bloom_empty(0.01, 10)
"""


def zoo():
    """The expressions of ZOO: a line that is indented more goes on."""
    return ['SELECT ' + item.replace('\n        ', ' ') for item in
            ZOO.strip().replace('\n    bloom', '\n\fbloom').split('\n\f')]


def check_sets(tap):
    queries = zoo()
    rng = random.Random(2)
    orders = [list(range(len(queries)))] + [
        rng.sample(range(len(queries)), 5) for _ in range(200)]
    answers = rows(
        'CREATE TEMP TABLE zoo (n int, f bloom);\n' +
        ''.join('INSERT INTO zoo SELECT %d, (%s);\n' % (n, query)
                for n, query in enumerate(queries)) +
        'SELECT f::text, bloom_compact(f)::text FROM zoo ORDER BY n;\n'
        'SELECT (x.f | y.f)::text FROM zoo x, zoo y ORDER BY x.n, y.n;\n'
        'CREATE FUNCTION pg_temp.common(x bloom, y bloom) RETURNS text '
        'LANGUAGE plpgsql AS $$ BEGIN RETURN (x & y)::text; '
        "EXCEPTION WHEN feature_not_supported THEN RETURN 'none'; END $$;\n"
        'SELECT pg_temp.common(x.f, y.f) FROM zoo x, zoo y '
        'ORDER BY x.n, y.n;\n' +
        ''.join('SELECT bloom_union_agg(f ORDER BY i)::text '
                "FROM unnest('{%s}'::int[]) WITH ORDINALITY o (n, i) "
                'JOIN zoo USING (n);\n' % ','.join(map(str, order))
                for order in orders))
    texts = [row[0] for row in answers[:len(queries)]]
    excluded = [len(Filter.load(text).exceptions) for text in texts]
    tap.ok(sum(n > 0 for n in excluded) == 3,
           'set operations have filters with exceptions', excluded)
    for query, text, (_, compact) in zip(queries, texts, answers):
        def test():
            f = Filter.load(text)
            f.compact()
            if f.text() != compact:
                return 'the server makes ' + compact
            f.compact()
            if f.text() != compact:
                return 'compact again, it has other bytes'
        tap.run('bloom_compact of %s: same bytes' % query, test)
    unions = iter(answers[len(queries):])
    for query, x in zip(queries, texts):
        def test():
            for other, y in zip(queries, texts):
                united, = next(unions)
                if (Filter.load(x) | Filter.load(y)).text() != united:
                    yield 'with %s the server makes %s' % (other, united)
        tap.run('unions of %s with %d filters: same bytes' %
                (query, len(texts)), lambda: '\n'.join(test()))
    common = []
    for query, x in zip(queries, texts):
        def test():
            for other, y in zip(queries, texts):
                made, = next(unions)
                try:
                    mine = (Filter.load(x) & Filter.load(y)).text()
                    common.append(mine)
                except ValueError:
                    mine = 'none'
                if mine != made:
                    yield 'with %s the server makes %s' % (other, made)
        tap.run('intersections of %s with %d filters: same bytes' %
                (query, len(texts)), lambda: '\n'.join(test()))
    tap.ok(any(Filter.load(text).layers for text in common),
           'some intersections are of bits')

    def test_merging():
        for order, (made,) in zip(orders, unions):
            united = Filter.load(texts[order[0]]).merged_into_empty()
            for n in order[1:]:
                united.merge(Filter.load(texts[n]))
            if united.text() != made:
                yield 'of %s the server makes %s' % (order, made)
    tap.run('bloom_union_agg in %d orders: same bytes' % len(orders),
            lambda: '\n'.join(test_merging()))
    return texts


def damage(image, rng):
    """Copies of an image with something wrong, most of them."""
    front = min(len(image), 44 + 16 + 2 * 32)
    for at in range(front):
        for value in (0, 1, 2, 31, 64, 65, 127, 255, image[at] ^ 1):
            yield image[:at] + bytes([value]) + image[at + 1:]
    for size in list(range(front)) + [len(image) - 8, len(image) - 1]:
        yield image[:size]
    for more in (b'\0', bytes(8), image):
        yield image + more
    for _ in range(100):
        broken = bytearray(image)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        yield bytes(broken)


def refuses(image):
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
    foreign = Filter('foreign', name='int4[]', byte_order=1, encoding=6)
    foreign.add(1)
    broken = [copy for image in
              [enum.image(), foreign.image()] +
              [image for image in images if len(image) < 1000]
              for copy in damage(image, rng)]

    # pg_input_is_valid would do from PostgreSQL 16 on
    answers = rows("""
        CREATE FUNCTION pg_temp.refused(image text) RETURNS boolean
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
                   'SELECT pg_temp.refused(image)::int FROM broken '
                   'ORDER BY n;\n')
    wrong = [copy.hex() for copy, (answer,) in zip(broken, answers)
             if refuses(copy) != (answer == '1')]
    refused = sum(answer == '1' for answer, in answers)
    tap.ok(not wrong, 'damaged images: of %d, the server and the reader '
           'refuse the same %d' % (len(broken), refused), '\n'.join(wrong[:5]))


def check_shards(tap):
    answers = rows('SELECT bloom_shard(i, 1 << (i % 31)) '
                   'FROM generate_series(1, 1000) i;')
    tap.ok([shard('integer', i, 1 << (i % 31)) for i in range(1, 1001)] ==
           [int(answer) for answer, in answers],
           'bloom_shard of 1,000 keys: same numbers')


def main():
    tap = Tap()
    check_vectors(tap)
    if '--vectors' not in sys.argv[1:]:
        tap.require_server()
        check_vectors_live(tap)
        for kind, expression, make, borders in KINDS:
            try:
                check_kind(tap, kind, expression, make, borders)
            except Exception as error:
                tap.ok(False, 'keys of kind %s as %s' % (kind, expression),
                       error)
        check_foreign(tap)
        check_shards(tap)
        check_damage(tap, check_sets(tap))
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
