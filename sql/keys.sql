--
-- KEYS
-- Equal keys are the same key; keys of another key type are an error.
--
\pset format unaligned
\pset tuples_only

SET client_min_messages = warning;
CREATE EXTENSION citext;
RESET client_min_messages;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE colour AS ENUM ('red', 'green', 'ok', 'sad');
CREATE DOMAIN short AS int2;
CREATE DOMAIN shorter AS short CHECK (VALUE < 100);
CREATE DOMAIN word AS text;
CREATE DOMAIN code AS char(5);
CREATE DOMAIN mail AS citext;
CREATE DOMAIN weather AS mood;
CREATE DOMAIN ints AS int[];

\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/try.psql'
\i :functions

-- The value of an expression, or its SQLSTATE.
CREATE FUNCTION outcome(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE 'SELECT ' || expression INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
\set ECHO all

--
-- Pairs of values that are equal in SQL, across the types of a hash operator
-- family and across the forms of a value.  Each is found by the other, by
-- function and by operator, after bloom_add and after bloom_agg.
--

CREATE TABLE pairs (n serial, a text, b text);
INSERT INTO pairs (a, b) VALUES
  -- integers, of either sign and at the limits of each type
  ($$0::int2$$, $$0::int8$$),
  ($$5::int2$$, $$5::int4$$),
  ($$5::int2$$, $$5::int8$$),
  ($$5::int4$$, $$5::int8$$),
  ($$(-1)::int2$$, $$(-1)::int4$$),
  ($$(-1)::int2$$, $$(-1)::int8$$),
  ($$(-1)::int4$$, $$(-1)::int8$$),
  ($$(-32768)::int2$$, $$(-32768)::int8$$),
  ($$32767::int2$$, $$32767::int4$$),
  ($$(-2147483648)::int4$$, $$(-2147483648)::int8$$),
  ($$2147483647::int4$$, $$2147483647::int8$$),
  -- domains
  ($$7::short$$, $$7::int8$$),
  ($$7::shorter$$, $$7::int4$$),
  ($$(-7)::shorter$$, $$(-7)::short$$),
  ($$'a'::word$$, $$'a'::text$$),
  ($$'a'::code$$, $$'a'::word$$),
  ($$'sad'::weather$$, $$'sad'::mood$$),
  ($$'{1,2}'::ints$$, $$'{1,2}'::int[]$$),
  -- floating point: zeros, NaNs, infinities, what float4 holds exactly
  ($$'0'::float8$$, $$'-0'::float8$$),
  ($$'0'::float4$$, $$'-0'::float8$$),
  ($$'-0'::float4$$, $$'0'::float4$$),
  ($$'NaN'::float8$$, $$'NaN'::float8$$),
  ($$'NaN'::float4$$, $$'NaN'::float8$$),
  ($$'NaN'::float8$$, $$-'NaN'::float8$$),
  ($$'Infinity'::float4$$, $$'Infinity'::float8$$),
  ($$'-Infinity'::float4$$, $$'-Infinity'::float8$$),
  ($$1.5::float4$$, $$1.5::float8$$),
  ($$0.1::float4$$, $$0.1::float4::float8$$),
  ($$1e-45::float4$$, $$1e-45::float4::float8$$),
  -- numeric: of any scale, however computed
  ($$1.0::numeric$$, $$1.00::numeric$$),
  ($$1::numeric$$, $$1.000000000000000000000::numeric$$),
  ($$100::numeric$$, $$1e2::numeric$$),
  ($$0::numeric$$, $$0.000::numeric$$),
  ($$0::numeric$$, $$-0.0::numeric$$),
  ($$-12.5::numeric$$, $$-12.500::numeric(10,3)$$),
  ($$1e-30::numeric$$, $$1.0e-30::numeric$$),
  ($$1e100::numeric$$, $$(1e50::numeric * 1e50::numeric)$$),
  ($$'NaN'::numeric$$, $$'nan'::numeric$$),
  ($$'Infinity'::numeric$$, $$'inf'::numeric$$),
  ($$'-Infinity'::numeric$$, $$-'inf'::numeric$$),
  -- strings: char(n) is equal without its padding
  ($$'abc'::text$$, $$'abc'::varchar$$),
  ($$'abc'::text$$, $$'abc'::varchar(3)$$),
  ($$'abc'::text$$, $$'abc'::name$$),
  ($$'abc'::char(10)$$, $$'abc'::text$$),
  ($$'abc'::char(10)$$, $$'abc'::char(3)$$),
  ($$'abc  '::char(5)$$, $$'abc'::varchar$$),
  ($$'abc'::char(10)$$, $$'abc'::name$$),
  ($$''::char(3)$$, $$''::text$$),
  ($$''::char(3)$$, $$'   '::char(7)$$),
  ($$''::name$$, $$''::varchar$$),
  ($$repeat('x', 63)::name$$, $$repeat('x', 63)$$),
  ($$'abc' COLLATE "C"$$, $$'abc' COLLATE "POSIX"$$),
  -- citext, whatever its case
  ($$'abc'::citext$$, $$'ABC'::citext$$),
  ($$'aBc'::mail$$, $$'AbC'::citext$$),
  ($$''::citext$$, $$''::mail$$),
  -- bytea
  ($$'\x00ff'::bytea$$, $$'\000\377'::bytea$$),
  ($$''::bytea$$, $$'\x'::bytea$$),
  -- enum
  ($$'happy'::mood$$, $$enum_last(NULL::mood)$$),
  -- date and time
  ($$'2020-02-29'::date$$, $$'29 Feb 2020'::date$$),
  ($$'infinity'::date$$, $$'infinity'::date$$),
  ($$'12:00'::time$$, $$'12:00:00.000000'::time(3)$$),
  ($$'24:00'::time$$, $$'24:00:00'::time$$),
  ($$'12:00+02'::timetz$$, $$'12:00:00+02:00'::timetz$$),
  ($$'2020-01-01 12:00+02'::timestamptz$$, $$'2020-01-01 10:00+00'::timestamptz$$),
  ($$'2020-01-01'::timestamp$$, $$'2020-01-01 00:00:00.000'::timestamp(3)$$),
  ($$'-infinity'::timestamptz$$, $$'-infinity'::timestamptz$$),
  ($$'1 mon'::interval$$, $$'30 days'::interval$$),
  ($$'30 days'::interval$$, $$'720 hours'::interval$$),
  ($$'1 mon'::interval$$, $$'720 hours'::interval$$),
  ($$'1 year'::interval$$, $$'360 days'::interval$$),
  ($$'1 day -1 hour'::interval$$, $$'23:00'::interval$$),
  ($$'-1 day +1 hour'::interval$$, $$'-23:00'::interval$$),
  ($$'-1 mon'::interval$$, $$'-29 days -24:00'::interval$$),
  ($$'1 mon -30 days'::interval$$, $$'0'::interval$$),
  ($$'0.000001 s ago'::interval$$, $$'-1 day 23:59:59.999999'::interval$$),
  ($$'5000000 years'::interval$$, $$'1800000000 days'::interval$$),
  ($$'-5000000 years'::interval$$, $$'-60000000 mons'::interval$$),
  ($$'2562047788:00:54.775807'::interval$$, $$'106751991 days 04:00:54.775807'::interval$$),
  -- network
  ($$'10.0.0.1'::inet$$, $$'10.0.0.1/32'::inet$$),
  ($$'10.0.0.0/8'::inet$$, $$'10.0.0.0/8'::cidr$$),
  ($$'10.1.2.3'::inet$$, $$'10.1.2.3'::cidr$$),
  ($$'::1'::inet$$, $$'0:0:0:0:0:0:0:1/128'::inet$$),
  ($$'2001:db8::/32'::inet$$, $$'2001:0DB8::/32'::cidr$$),
  ($$'08:00:2b:01:02:03'::macaddr$$, $$'08002B-010203'::macaddr$$),
  ($$'08:00:2b:ff:fe:01:02:03'::macaddr8$$, $$'08:00:2b:01:02:03'::macaddr8$$),
  -- others of fixed length
  ($$'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid$$, $$'{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'::uuid$$),
  ($$true$$, $$'yes'::bool$$),
  ($$'x'::"char"$$, $$120::"char"$$),
  ($$(-56)::"char"$$, $$'-56'::int::"char"$$),
  ($$26::oid$$, $$'26'::oid$$),
  ($$4294967295::oid$$, $$'4294967295'::oid$$),
  ($$'16/B374D848'::pg_lsn$$, $$'16/b374d848'::pg_lsn$$),
  ($$'18446744073709551615'::xid8$$, $$'0xffffffffffffffff'::xid8$$),
  -- any other type with a hash operator class
  ($$'{"a": 1.0, "b": [true, null]}'::jsonb$$, $$'{"b":[true,null],"a":1.00}'::jsonb$$),
  ($$'{"a": 1, "a": 2}'::jsonb$$, $$'{"a": 2}'::jsonb$$),
  ($$'{1,2}'::int[]$$, $$ARRAY[1,2]$$),
  ($$'{1.0,NULL}'::numeric[]$$, $$'{1.00,NULL}'::numeric[]$$),
  ($$'{0}'::float8[]$$, $$'{-0}'::float8[]$$),
  ($$'{}'::text[]$$, $$ARRAY[]::text[]$$),
  ($$'{{1,2},{3,4}}'::int8[]$$, $$ARRAY[ARRAY[1,2],ARRAY[3,4]]::int8[]$$),
  ($$'{abc}'::citext[]$$, $$'{ABC}'::citext[]$$),
  ($$'{7}'::shorter[]$$, $$'{7}'::short[]$$),
  ($$'{ab,c}'::char(2)[]$$, $$'{ab,c}'::char(7)[]$$),
  ($$'[1,3)'::int4range$$, $$'[1,2]'::int4range$$),
  ($$'(,)'::int8range$$, $$int8range(NULL, NULL)$$),
  ($$'empty'::numrange$$, $$'[1,1)'::numrange$$),
  ($$'[1.0,2)'::numrange$$, $$'[1.00,2.0)'::numrange$$),
  ($$'[2020-01-01 12:00+02,]'::tstzrange$$, $$'[2020-01-01 10:00+00,)'::tstzrange$$),
  ($$'{[1,3),[3,5)}'::int4multirange$$, $$'{[1,4]}'::int4multirange$$),
  ($$'{}'::nummultirange$$, $$nummultirange()$$),
  ($$'(1,2)'::tid$$, $$'(01,02)'::tid$$),
  ($$'26 27'::oidvector$$, $$' 26  27 '::oidvector$$),
  -- and some that are not equal
  ($$1::int2$$, $$2::int8$$),
  ($$(-1)::int2$$, $$65535::int4$$),
  ($$(-1)::int4$$, $$4294967295::int8$$),
  ($$0.1::float4$$, $$0.1::float8$$),
  ($$1.0::numeric$$, $$1.01::numeric$$),
  ($$10::numeric$$, $$100::numeric$$),
  ($$'a'::text$$, $$'A'::text$$),
  ($$'a'::text$$, $$' a'::text$$),
  ($$E'a\t'::text$$, $$'a'::text$$),
  ($$'abc'::citext$$, $$'abcd'::citext$$),
  ($$'\x00'::bytea$$, $$'\x0000'::bytea$$),
  ($$'12:00+02'::timetz$$, $$'10:00+00'::timetz$$),
  ($$'1 mon'::interval$$, $$'31 days'::interval$$),
  ($$'23:00'::interval$$, $$'-23:00'::interval$$),
  ($$'10.0.0.0/8'::inet$$, $$'10.0.0.0/9'::cidr$$),
  ($$'10.0.0.1'::inet$$, $$'::10.0.0.1'::inet$$),
  ($$'sad'::mood$$, $$'happy'::mood$$),
  ($$'{1,2}'::int[]$$, $$'{2,1}'::int[]$$),
  ($$'empty'::int4range$$, $$'(,)'::int4range$$);

SELECT a, b, outcome(format('(%s) = (%s)', a, b)) AS equal,
  outcome(format('bloom_contains(bloom_add(bloom_empty(), %s), %s)', a, b)) AS b_in_a,
  outcome(format('(%1$s) <@ bloom_add(bloom_empty(), %2$s)', a, b)) AS a_in_b,
  outcome(format('(SELECT (bloom_agg(%1$s, 0.01, 1, 7) @> (%2$s)) = (bloom_agg(%2$s, 0.01, 1, 7) @> (%1$s)))', a, b)) AS agg_agrees,
  outcome(format('bloom_add(bloom_empty(), %s)::bytea = bloom_add(bloom_empty(), %s)::bytea', a, b)) AS same_bytes
FROM pairs ORDER BY n;
SELECT outcome(format('(%s) = (%s)', a, b)) AS equal,
  outcome(format('bloom_contains(bloom_add(bloom_empty(), %s), %s)', a, b)) AS found, count(*)
FROM pairs GROUP BY 1, 2 ORDER BY 1, 2;
DROP TABLE pairs;

-- infinite intervals, from PostgreSQL 17 on
DO $$
BEGIN
  IF current_setting('server_version_num')::int >= 170000 AND
    outcome($q$bloom_add(bloom_empty(), 'infinity'::interval) @> (-'-infinity'::interval)$q$) <> 'true' THEN
    RAISE WARNING 'infinite interval not found';
  END IF;
END
$$;

--
-- Keys of minimum and maximum length, and in every form of storage.  The
-- filter is built from one form and probed with the others.
--

CREATE TABLE stored (n int, plain text, packed text, external text, bytes bytea);
-- from 19 on, the default is lz4, which compresses differently
ALTER TABLE stored ALTER packed SET COMPRESSION pglz;
ALTER TABLE stored ALTER plain SET STORAGE plain, ALTER packed SET STORAGE extended,
  ALTER external SET STORAGE external, ALTER bytes SET STORAGE external;
INSERT INTO stored
  SELECT length, CASE WHEN length < 3000 THEN key END, key, key, key::bytea
  FROM unnest('{0,1,15,16,17,125,126,127,128,129,240,241,255,256,1000,2999,10000,1000000}'::int[]) length,
    LATERAL (SELECT left(repeat(md5(length::text), length / 32 + 1), length) AS key) k;
-- incompressible values, uncompressed out of line
INSERT INTO stored
  SELECT -length, NULL, key, key, key::bytea
  FROM unnest('{5000,20000}'::int[]) length,
    LATERAL (SELECT string_agg(md5(i::text), '') AS key FROM generate_series(1, length / 32) i) k;
SELECT count(*) AS keys, count(plain) AS plain,
  count(*) FILTER (WHERE pg_column_size(packed) <= 127 AND pg_column_compression(packed) IS NULL) AS short_header,
  count(*) FILTER (WHERE pg_column_compression(packed) IS NOT NULL) AS compressed,
  count(*) FILTER (WHERE pg_column_compression(packed) IS NULL AND octet_length(packed) > 2000) AS long_uncompressed,
  count(*) FILTER (WHERE pg_column_compression(external) IS NOT NULL) AS external_compressed,
  max(octet_length(external)) AS longest
FROM stored;
WITH filters AS MATERIALIZED (
  SELECT bloom_agg(plain) AS plain, bloom_agg(packed) AS packed, bloom_agg(external) AS external,
    bloom_agg(packed || '') AS built, bloom_agg(bytes) AS bytes, bloom_agg(external::bytea) AS bytes_built
  FROM stored)
SELECT f.packed::bytea = f.external::bytea AND f.packed::bytea = f.built::bytea AS equal,
  f.bytes::bytea = f.bytes_built::bytea AS equal_bytes,
  count(*) FILTER (WHERE f.packed @> s.plain) AS plain,
  count(*) FILTER (WHERE f.built @> s.packed) AS packed,
  count(*) FILTER (WHERE f.packed @> s.external) AS external,
  count(*) FILTER (WHERE f.external @> (s.packed || '')) AS built,
  count(*) FILTER (WHERE f.bytes_built @> s.bytes) AS bytes,
  count(*) FILTER (WHERE f.plain @> s.packed) AS packed_in_plain,
  count(*) FILTER (WHERE f.packed @> (s.packed || 'x')) AS wrong
FROM filters f, stored s GROUP BY 1, 2;
DROP TABLE stored;

-- All bits of numbers and times count in arrays, but not in ranges.
SELECT count(*) FILTER (WHERE numbers @> ARRAY[i << 32]) AS shifted, count(*) FILTER (WHERE numbers @> ARRAY[-i]) AS negative,
  count(*) FILTER (WHERE times @> ARRAY[timestamp '2020-01-01' + i * interval '1 hour', NULL]) AS earlier
FROM (SELECT bloom_agg(ARRAY[i], 0.001) AS numbers, bloom_agg(ARRAY[timestamp '2025-01-01' + i * interval '1 min', NULL], 0.001) AS times
      FROM generate_series(1, 10000::bigint) i) f, generate_series(1, 10000::bigint) i;
SELECT bloom_hash(int8range(1, 2)) = bloom_hash(int8range(1::bigint << 32, 2::bigint << 32)) AS ranges;

\set ECHO none
-- Documents and arrays whose parts repeat are different keys under every seed:
-- of 17 fields, or of 33 elements, the first and the last one are equal, and of
-- two sequences of Thue and Morse, each has a where the other one has b.
CREATE FUNCTION thue_morse(a anyelement, b anyelement) RETURNS anyarray LANGUAGE sql AS $$
  SELECT array_agg(CASE WHEN length(replace(i::bit(8)::text, '0', '')) % 2 = 0 THEN a ELSE b END ORDER BY i)
  FROM generate_series(0, 255) i
$$;
\set ECHO all
SELECT seed, count(DISTINCT bloom_hash(object, seed)) AS objects, count(DISTINCT bloom_hash(list, seed)) AS lists,
  count(DISTINCT bloom_hash(ARRAY[object, NULL], seed)) AS arrays, count(DISTINCT bloom_shard(object, 1000000000)) AS shards
FROM unnest('{0,-5,8765309234567}'::bigint[]) seed,
  (SELECT jsonb_object_agg('a' || to_char(n, '00'), CASE WHEN n IN (0, 16) THEN i ELSE n END) FILTER (WHERE n < 17) AS object,
     jsonb_agg(CASE WHEN n IN (0, 32) THEN i ELSE n END ORDER BY n) AS list
   FROM generate_series(1, 1000) i, generate_series(0, 32) n GROUP BY i) documents
GROUP BY seed ORDER BY seed;
CREATE DOMAIN pair AS bigint[];
SELECT type, bool_and(a <> b) AS different
FROM unnest('{0,-5,8765309234567}'::bigint[]) seed, LATERAL (VALUES
  (1, 'int4', bloom_hash(thue_morse(1, 2), seed), bloom_hash(thue_morse(2, 1), seed)),
  (2, 'numeric', bloom_hash(thue_morse(1.5, 2.0), seed), bloom_hash(thue_morse(2.0, 1.5), seed)),
  (3, 'text', bloom_hash(thue_morse('x'::text, 'y'), seed), bloom_hash(thue_morse('y'::text, 'x'), seed)),
  (4, 'citext', bloom_hash(thue_morse('x'::citext, 'y'), seed), bloom_hash(thue_morse('y'::citext, 'x'), seed)),
  (5, 'int4range', bloom_hash(thue_morse('[1,2)'::int4range, '[2,3)'), seed), bloom_hash(thue_morse('[2,3)'::int4range, '[1,2)'), seed)),
  (6, 'jsonb', bloom_hash(thue_morse('1'::jsonb, '{}'), seed), bloom_hash(thue_morse('{}'::jsonb, '1'), seed)),
  (7, 'list', bloom_hash(to_jsonb(thue_morse(1, 2)), seed), bloom_hash(to_jsonb(thue_morse(2, 1)), seed)),
  (8, 'pair', bloom_hash(ARRAY[thue_morse(1, 2)::pair], seed), bloom_hash(ARRAY[thue_morse(2, 1)::pair], seed)),
  (9, 'wide', bloom_hash(ARRAY['{1}'::pair], seed), bloom_hash(ARRAY['{4294967296}'::pair], seed))) v(n, type, a, b)
GROUP BY n, type ORDER BY n;
DROP FUNCTION thue_morse;

-- Values of jsonb are as many keys as SQL tells apart.  So are arrays, among
-- them those of integers whose hash could be that of what is before them.
SELECT count(*) AS values, count(DISTINCT j) AS documents, count(DISTINCT bloom_hash(j, 42)) AS keys,
  count(DISTINCT bloom_hash(ARRAY[j, 'null'], 42)) AS arrays
FROM unnest(ARRAY['1', '1.0', '1e0', '10', '[1]', '[1.00]', '[[1]]', '"1"', '["1"]', '{"a": 1}', '{"a": 1.0}', '["a", 1]', '"a"', '"a "',
  '""', '[""]', '[]', '[[]]', '[[], []]', '[[[]]]', '{}', '[{}]', 'null', '[null]', '"null"', 'true', 'false', '[true]', '[1, 2]', '[2, 1]',
  '[[1], 2]', '[1, [2]]', '[[1, 2]]', '{"a": {"b": 1}}', '{"a": {}, "b": 1}', '{"a": "b"}', '{"b": "a"}', '["a", "b"]', '["ab"]',
  '{"a": [1, {"b": -0.50}]}', '{"a": [1.0, {"b": -5e-1}]}', '{"a": [1, {"b": 0.5}]}', '0', '-0.0', '1e400', '[1, null]', '[null, 1]',
  '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a": 2, "b": 1}']::jsonb[]) j;
SELECT seed, count(DISTINCT a) AS arrays, count(DISTINCT bloom_hash(a, seed)) AS keys
FROM unnest('{0,42}'::bigint[]) seed, (VALUES (ARRAY[]::int[]), ('{0}'), ('{1}'), ('{NULL}'), ('{0,0}'), ('{NULL,NULL}'), ('{NULL,0}'),
  ('{0,NULL}'), ('{NULL,1}'), ('{NULL,1,0}'), ('{NULL,1,0,0}'), ('{1,0}'), ('{1,1}'), ('{31}'), ('{0,31}')) v(a)
GROUP BY seed ORDER BY seed;
-- Trailing spaces count as in SQL, and strings are as long as they are.
SELECT '{a}'::text[] = '{"a "}' AS text, bloom_hash('{a}'::text[]) = bloom_hash('{"a "}'::text[]) AS text_keys,
  '{a}'::varchar[] = '{"a "}' AS varchar, bloom_hash('{a}'::varchar[]) = bloom_hash('{"a "}'::varchar[]) AS varchar_keys,
  '{a}'::char(1)[] = '{"a "}'::char(2)[] AS char, bloom_hash('{a}'::char(1)[]) = bloom_hash('{"a "}'::char(2)[]) AS char_keys,
  '{a}'::name[] = '{"a "}' AS name, bloom_hash('{a}'::name[]) = bloom_hash('{"a "}'::name[]) AS name_keys,
  bloom_hash('{a,b}'::name[]) = bloom_hash(ARRAY['a'::name, 'b'::text::name]) AS names,
  bloom_hash('{a,bc}'::text[]) = bloom_hash('{ab,c}'::text[]) AS parts;
SELECT bloom_agg('{{1,2},{3,4}}'::text[]) @> '[2:5]={1,2,3,4}'::text[] AS dimensions, bloom_agg(ARRAY['{{1,2}}'::pair]) @> ARRAY['{1,2}'::pair] AS within;
DROP DOMAIN pair;

-- Storage of other types of variable length
CREATE TABLE stored AS
  SELECT n, repeat('7', n)::numeric AS num, array_agg(i) AS arr, jsonb_agg(i) AS json
  FROM unnest('{1,100,10000}'::int[]) n, generate_series(1, n) i GROUP BY n;
SELECT bool_and(bloom_agg @> num) AND bool_and(num + 0 <@ bloom_agg) AS numeric
FROM stored, (SELECT bloom_agg(num) FROM stored) f HAVING count(*) = 3;
SELECT bool_and(bloom_agg @> arr) AND bool_and(arr || '{}' <@ bloom_agg) AS array
FROM stored, (SELECT bloom_agg(arr) FROM stored) f HAVING count(*) = 3;
SELECT bool_and(bloom_agg @> json) AND bool_and(json || '[]' <@ bloom_agg) AS jsonb
FROM stored, (SELECT bloom_agg(json) FROM stored) f HAVING count(*) = 3;
SELECT bool_and(bloom_agg @> ARRAY[json, NULL, '7']) AND bool_and(ARRAY[json || '[]', NULL, '7.0'] <@ bloom_agg) AS jsonb_array
FROM stored, (SELECT bloom_agg(ARRAY[json, NULL, '7']) FROM stored) f HAVING count(*) = 3;
DROP TABLE stored;

--
-- Literals, and parameters without a type, are read as the filter's key type,
-- as text if it has none; see also key_types.sql.
--

SELECT bloom_add(bloom_empty(), 'a') @> 'a' AS found,
  bloom_contains(bloom_add(bloom_empty(), 'a'), 'b') AS not_found,
  'a' <@ bloom_add(bloom_empty(), 'a'::text) AS text,
  bloom_add(bloom_empty(), 'a') @> 'a'::varchar AS varchar,
  bloom_add(bloom_empty(), 'a') @> 'a  '::char(3) AS char;
SELECT key_type FROM bloom_info(bloom_add(bloom_empty(), 'a'));
SELECT bloom_agg('a') @> 'a' AS one, bloom_agg('a', 0.01) @> 'a' AS two,
  bloom_agg('a', 0.01, 10) @> 'a' AS three, bloom_agg('a', 0.01, 10, 0) @> 'a' AS four,
  count(*) FROM generate_series(1, 3);
SELECT bloom_contains(bloom_agg(m), 'sad') AS sad, bloom_agg(m) @> 'happy' AS happy,
  'ok' <@ bloom_agg(m) AS ok, bloom_add(bloom_agg(m), 'ok') @> 'ok'::mood AS added
FROM unnest('{sad,happy}'::mood[]) m;
SELECT bloom_contains(bloom_agg(c), 'ABC') AS upper, bloom_agg(c) @> 'abc' AS lower,
  'aBc' <@ bloom_agg(c) AS mixed, bloom_add(bloom_agg(c), 'XYZ') @> 'xyz'::citext AS added,
  bloom_agg(c) @> 'abcd' AS none
FROM unnest('{Abc,Def}'::citext[]) c;

-- One call gets filters of several key types.
CREATE TABLE mixed (n int, f bloom);
INSERT INTO mixed VALUES
  (1, bloom_add(bloom_empty(), 'ok'::text)), (2, bloom_add(bloom_empty(), 'ok'::mood)),
  (3, bloom_add(bloom_empty(), 'OK'::citext)), (4, bloom_add(bloom_empty(), 'ok'::colour)),
  (5, bloom_empty()), (6, bloom_add(bloom_empty(), 'OK'::text)),
  (7, bloom_add(bloom_empty(), 'sad'::mood)), (8, bloom_add(bloom_empty(), 'ok'::weather));
SELECT n, key_type, f @> 'ok' AS contains, 'ok' <@ f AS contained, bloom_add(f, 'ok') @> 'ok' AS added
FROM mixed, bloom_info(f) ORDER BY n;
SELECT n, f @> 'ok' AS contains FROM mixed ORDER BY n DESC;
INSERT INTO mixed VALUES (9, bloom_add(bloom_empty(), 1));
CALL try($$SELECT count(*) FILTER (WHERE f @> 'ok') FROM mixed$$);
CALL try($$SELECT count(*) FILTER (WHERE f @> 'ok'::mood) FROM mixed$$);
DELETE FROM mixed WHERE n = 9;

PREPARE contains AS SELECT n, bloom_contains(f, $1) FROM mixed ORDER BY n;
PREPARE op AS SELECT count(*) FROM mixed WHERE f @> $1;
PREPARE commuted AS SELECT count(*) FROM mixed WHERE $1 <@ f;
PREPARE add AS SELECT count(*) FILTER (WHERE bloom_add(f, $1) @> $1) AS added FROM mixed;
PREPARE agg AS SELECT (bloom_info(bloom_agg($1))).key_type, bloom_agg($1, $2, $3, $4) @> 'ok' AS found FROM mixed;
PREPARE typed(citext) AS SELECT bloom_agg(c) @> $1 AS found FROM unnest('{ab,CD}'::citext[]) c;
SELECT name, parameter_types FROM pg_prepared_statements ORDER BY name COLLATE "C";
EXECUTE contains('ok');
EXECUTE contains(NULL);
EXECUTE op('ok');
EXECUTE op('sad');
EXECUTE commuted('ok');
EXECUTE add('sad');
EXECUTE agg('ok', 0.01, 10, 1);
EXECUTE typed('AB');
EXECUTE typed('Cd');
-- Often enough for PostgreSQL to switch to a generic plan.
SET plan_cache_mode = force_generic_plan;
EXECUTE op('ok');
EXECUTE add('sad');
RESET plan_cache_mode;
DEALLOCATE ALL;
DROP TABLE mixed;

-- A parameter of a function, and a column, keep the type they have.
CREATE FUNCTION has(f bloom, key anyelement) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN bloom_contains(f, key); END';
CREATE FUNCTION has_sql(f bloom, key anyelement) RETURNS bool LANGUAGE sql AS 'SELECT f @> key';
SELECT has(f, 'ABC'::citext) AS citext, has_sql(f, 'aBC'::citext) AS inlined
FROM (SELECT bloom_agg('abc'::citext) AS f) f;
SELECT has(f, 5::int2) AS int2, has(f, 5) AS int4, has_sql(f, 5::int8) AS int8, has(f, 5::shorter) AS domain
FROM (SELECT bloom_agg(5) AS f) f;
DROP FUNCTION has, has_sql;

-- Enums hash their labels: a filter outlives the type it was made from, as it
-- does in dump and restore.
SELECT bloom_agg(m) AS f FROM unnest('{sad,happy}'::mood[]) m \gset
DROP DOMAIN weather;
DROP TYPE mood;
CREATE TYPE mood AS ENUM ('elated', 'happy', 'ok', 'sad');
SELECT m, :'f'::bloom @> m AS found FROM unnest(enum_range(NULL::mood)) m;
ALTER TYPE mood ADD VALUE 'bored' BEFORE 'happy';
SELECT bloom_add(:'f', 'bored'::mood) @> 'bored' AS found;
CREATE DOMAIN weather AS mood;

--
-- Keys of another key type: every pair of these types, by every function.
--

CREATE TABLE typed (n serial, type text, value text);
INSERT INTO typed (type, value) VALUES
  ('text', '''1'''), ('varchar', '''1'''), ('char(3)', '''1'''), ('name', '''1'''), ('word', '''1'''),
  ('bytea', '''1'''), ('int2', '1'), ('int4', '1'), ('int8', '1'), ('shorter', '1'),
  ('float4', '1'), ('float8', '1'), ('numeric', '1'), ('bool', 'true'), ('"char"', '''1'''), ('oid', '1'),
  ('uuid', '''00000000-0000-0000-0000-000000000001'''), ('date', '''2020-01-01'''),
  ('time', '''01:00'''), ('timetz', '''01:00+00'''), ('timestamp', '''2020-01-01'''),
  ('timestamptz', '''2020-01-01'''), ('interval', '''1 hour'''), ('inet', '''1.2.3.4'''), ('cidr', '''1.2.3.4'''),
  ('macaddr', '''08:00:2b:01:02:03'''), ('macaddr8', '''08:00:2b:01:02:03'''), ('pg_lsn', '''0/1'''),
  ('xid', '''1'''), ('xid8', '''1'''), ('tid', '''(0,1)'''), ('mood', '''ok'''), ('weather', '''ok'''), ('colour', '''ok'''),
  ('citext', '''1'''), ('mail', '''1'''), ('jsonb', '''1'''), ('int4[]', '''{1}'''), ('int8[]', '''{1}'''),
  ('text[]', '''{1}'''), ('ints', '''{1}'''), ('int4range', '''[1,2)'''), ('int8range', '''[1,2)'''),
  ('numrange', '''[1,2)'''), ('int4multirange', '''{[1,2)}''');
CREATE TABLE probes AS
  SELECT x.type AS filter, y.type AS key, x.n, y.n AS m,
    outcome(format('bloom_contains(bloom_agg(%s::%s), %s::%s)', x.value, x.type, y.value, y.type)) AS contains,
    outcome(format('%3$s::%4$s <@ bloom_agg(%1$s::%2$s)', x.value, x.type, y.value, y.type)) AS contained,
    outcome(format('bloom_add(bloom_agg(%1$s::%2$s), %3$s::%4$s) @> %3$s::%4$s', x.value, x.type, y.value, y.type)) AS add,
    outcome(format('(bloom_agg(%1$s::%2$s) | bloom_agg(%3$s::%4$s)) @> %3$s::%4$s', x.value, x.type, y.value, y.type)) AS union,
    outcome(format('bloom_union_agg(f) @> %3$s::%4$s FROM (SELECT bloom_agg(%1$s::%2$s) UNION ALL SELECT bloom_agg(%3$s::%4$s)) u(f)',
      x.value, x.type, y.value, y.type)) AS union_agg
  FROM typed x, typed y;
-- Either all of them find the key, or each is an error.
SELECT contains, contained, add, "union", union_agg, count(*) FROM probes
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;
-- The types of each key type.
SELECT filter, string_agg(key, ', ' ORDER BY m) AS finds FROM probes WHERE contains = 'true'
GROUP BY n, filter HAVING count(*) > 1 ORDER BY n;
-- Literals
SELECT literal, count(*), CASE WHEN literal = 'true' THEN string_agg(type, ', ' ORDER BY n) END AS filters
FROM typed, LATERAL outcome(format('bloom_agg(%s::%s) @> %L', value, type, trim(value, ''''))) literal
GROUP BY literal ORDER BY literal;
DROP TABLE typed, probes;

-- A type is identified by its name without schema, so it can change its
-- schema.  A literal finds it with any search path and with other types of
-- that name.
CREATE SCHEMA hidden;
CREATE TABLE moved AS SELECT bloom_agg('abc'::citext) AS f;
ALTER EXTENSION citext SET SCHEMA hidden;
CALL try($$SELECT f @> 'ABC'::hidden.citext FROM moved$$);
CALL try($$SELECT f @> 'ABC' FROM moved$$);
CALL try($$SELECT f @> 'ABC'::text FROM moved$$);
CREATE DOMAIN citext AS text;
CALL try($$SELECT f @> 'ABC' FROM moved$$);
DROP DOMAIN citext;
ALTER EXTENSION citext SET SCHEMA public;
DROP TABLE moved;
DROP SCHEMA hidden;

-- The messages name both types.
CALL try($$SELECT bloom_contains(bloom_agg(1), 'a'::text)$$);
CALL try($$SELECT bloom_agg(1) @> 'a'$$);
CALL try($$SELECT 1 <@ bloom_agg('a')$$);
CALL try($$SELECT bloom_add(bloom_agg('ok'::mood), 'ok'::colour)$$);
CALL try($$SELECT bloom_agg('a'::citext) @> 'a'::text$$);
CALL try($$SELECT bloom_agg('{1}'::int[]) | bloom_agg('{1}'::int8[])$$,
  $$SELECT bloom_union(bloom_agg(1), bloom_agg(1.0))$$,
  $$SELECT bloom_union_agg(f) FROM (SELECT bloom_agg(now()) UNION ALL SELECT bloom_agg(now()::date)) u(f)$$);
CREATE TYPE "odd ""type"" name" AS ENUM ('x');
CALL try($$SELECT bloom_agg('x'::"odd ""type"" name") @> 1$$);
SELECT key_type FROM bloom_info((SELECT bloom_agg('x'::"odd ""type"" name")));
DROP TYPE "odd ""type"" name";

\set ECHO none
-- Hashes that depend on the machine are an error on another machine.  Bytes
-- 10 and 11 of an image are byte order and encoding.
CREATE FUNCTION at_byte(f bloom, at int, value int) RETURNS bloom LANGUAGE sql AS
  'SELECT set_byte(f::bytea, at, CASE WHEN get_byte(f::bytea, at) = value THEN 1 ELSE value END)::bloom';
CREATE FUNCTION anywhere(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  detail text;
BEGIN
  EXECUTE query;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
  RETURN concat_ws(E'\n', SQLSTATE || ': ' || SQLERRM,
    regexp_replace(regexp_replace(detail, '(big|little)-endian', '<order>', 'g'),
      format(', (%s|LATIN1)\)', getdatabaseencoding()), ', <encoding>)', 'g'));
END
$$;
\set ECHO all
SELECT anywhere('SELECT at_byte(bloom_agg(ARRAY[1]), 10, 2) @> ARRAY[1]');
SELECT anywhere('SELECT at_byte(bloom_agg(ARRAY[1]), 11, 8) @> ARRAY[1]');
SELECT anywhere('SELECT bloom_add(at_byte(bloom_agg(ARRAY[1]), 11, 8), ARRAY[2])');
SELECT anywhere('SELECT at_byte(bloom_agg(ARRAY[1]), 10, 2) | bloom_agg(ARRAY[1])');
DROP FUNCTION at_byte, anywhere;

--
-- Types that cannot be keys
--

CREATE TYPE pair AS (n int, j json);
CREATE TYPE moodrange AS RANGE (subtype = mood);
CREATE DOMAIN pairs_of AS pair[];
-- no hash operator class
CALL try_each('SELECT %s', $$bloom_agg('{}'::json)$$, $$bloom_agg(ARRAY['{}'::json])$$, $$bloom_add(bloom_empty(), '(1,2)'::point)$$, $$bloom_empty() @> '1'::money$$,
  $$B'1' <@ bloom_empty()$$, $$bloom_agg('a b'::tsvector)$$, 'bloom_agg(bloom_empty()) @> bloom_empty()');
-- hashes of object identifiers
CALL try_each('SELECT bloom_agg(%s)', $$'pg_class'::regclass$$, $$'int4'::regtype$$, $$'{sad,ok}'::mood[]$$);
-- types that consist of others, also in arrays
CALL try_each('SELECT %s', $$bloom_agg(ROW(1, 'a'))$$, $$bloom_agg(ARRAY[ROW(1, 'a'), ROW(2, 'b')])$$, $$bloom_agg(ROW(1, '{}')::pair)$$,
  $$bloom_agg(ARRAY[ROW(1, '{}')]::pairs_of)$$, 'bloom_agg(ARRAY[NULL::pairs_of])', $$bloom_agg(typname) @> 'x', bloom_agg(t) FROM pg_type t$$,
  $$bloom_empty(key_type => 'pg_type')$$, $$bloom_agg('[ok,sad]'::moodrange)$$, $$bloom_agg('{[ok,sad]}'::moodmultirange)$$);
-- what the hint proposes
CALL try($$SELECT bloom_agg(ARRAY[1, 2]) @> ARRAY[1, 2] AND bloom_agg('a' || ' ' || 1) @> 'a 1'$$);

-- A user-defined type: its hash operator class decides, and must exist.
SET client_min_messages = warning;
CREATE TYPE tag;
CREATE FUNCTION tag_in(cstring) RETURNS tag LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION tag_out(tag) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE tag (INPUT = tag_in, OUTPUT = tag_out, LIKE = text);
RESET client_min_messages;
CREATE FUNCTION tag_eq(tag, tag) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'byteaeq';
CREATE OPERATOR = (FUNCTION = tag_eq, LEFTARG = tag, RIGHTARG = tag);
CREATE FUNCTION tag_hash(tag) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashvarlena';
CREATE FUNCTION tag_hash(tag, int8) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT AS 'hashvarlenaextended';
CALL try($$SELECT bloom_agg('a'::tag)$$);
CREATE OPERATOR CLASS tag_ops DEFAULT FOR TYPE tag USING hash AS OPERATOR 1 =, FUNCTION 1 tag_hash(tag);
CALL try($$SELECT bloom_agg('a'::tag)$$);
DROP OPERATOR FAMILY tag_ops USING hash CASCADE;
CREATE OPERATOR CLASS tag_ops DEFAULT FOR TYPE tag USING hash AS OPERATOR 1 =, FUNCTION 1 tag_hash(tag),
  FUNCTION 2 tag_hash(tag, int8);
CREATE TABLE tags AS SELECT bloom_agg(t) AS f FROM unnest('{a,b}'::tag[]) t;
SELECT key_type, f @> 'a'::tag AS a, f @> 'c'::tag AS c FROM tags, bloom_info(f);
-- a literal is read by the input function, which is immutable
CALL try($$SELECT f @> 'a' FROM tags$$);
CREATE CAST (tag AS text) WITHOUT FUNCTION AS IMPLICIT;
CALL try($$SELECT f @> 'a'::tag FROM tags$$);
CALL try($$SELECT f @> 'a' FROM tags$$);
-- without the operator class, keys can no longer be hashed
DROP CAST (tag AS text);
DROP OPERATOR FAMILY tag_ops USING hash CASCADE;
CALL try($$SELECT f @> 'a'::tag FROM tags$$);
CALL try($$SELECT f @> 'a' FROM tags$$);
SELECT key_type, f::text::bloom::text = f::text AS intact FROM tags, bloom_info(f);
DROP TABLE tags;
SET client_min_messages = warning;
DROP TYPE tag CASCADE;
RESET client_min_messages;

--
-- Collations: equal text must have equal bytes.
--

-- A nondeterministic collation, which requires ICU.  Without ICU these tests
-- use a collation that is only declared nondeterministic.
CALL create_ignoring_case();
CREATE TABLE folded (k text COLLATE ignoring_case, c char(3) COLLATE ignoring_case, i citext COLLATE ignoring_case,
  a text[] COLLATE ignoring_case);
INSERT INTO folded VALUES ('a', 'a', 'a', '{a}');
CREATE DOMAIN folded_text AS text COLLATE ignoring_case;
CALL try_each('SELECT %s FROM folded', 'bloom_agg(k)', 'bloom_agg(c)', 'bloom_agg(i)', 'bloom_agg(a)', $$bloom_agg('a'::folded_text)$$,
  'bloom_contains(bloom_empty(), k)', $$bloom_add(bloom_empty(), 'a') @> k$$, $$k <@ bloom_add(bloom_empty(), 'a')$$,
  $$bloom_add(bloom_empty(), 'b'::text COLLATE ignoring_case)$$);
-- the workaround
CALL try_each('SELECT %s FROM folded', $$bloom_agg(k COLLATE "C") @> 'a'$$, $$bloom_add(bloom_empty(), 'a') @> (k COLLATE "C")$$,
  $$bloom_agg(c COLLATE "default") @> 'a'::text$$);
-- no collation at all
CALL try($$SELECT bloom_agg(a || b) FROM (VALUES ('x' COLLATE "C", 'y' COLLATE "POSIX")) v(a, b)$$);
CALL try($$SELECT bloom_agg((a || b) COLLATE "C") @> 'xy' FROM (VALUES ('x' COLLATE "C", 'y' COLLATE "POSIX")) v(a, b)$$);
CALL try($$SELECT bloom_agg(a || b) @> 1 FROM (VALUES ('x' COLLATE "C", 'y' COLLATE "POSIX")) v(a, b)$$);
DROP TABLE folded;
DROP DOMAIN folded_text;
DROP COLLATION ignoring_case;

--
-- Types like citext hash by the locale of the database, or may hash by that of
-- the collation, so their filters record both.  Here they change during a
-- transaction.
--

\set ECHO none
CREATE PROCEDURE set_locale(name text, provider text DEFAULT 'c') LANGUAGE plpgsql AS $$
DECLARE
  version int := current_setting('server_version_num');
BEGIN
  EXECUTE format('UPDATE pg_database SET %I = %L WHERE datname = current_database()',
    CASE WHEN provider = 'c' THEN 'datctype' WHEN version < 170000 THEN 'daticulocale' ELSE 'datlocale' END, name);
  EXECUTE format('UPDATE pg_database SET datlocprovider = %L WHERE datname = current_database()', provider);
END
$$;
CREATE FUNCTION found(f bloom, key text) RETURNS text LANGUAGE sql AS
  $$SELECT outcome(format('%L::bloom @> %s', f, key))$$;
\set ECHO all

BEGIN;
CALL set_locale('aa_AA.UTF-8');
CREATE TABLE localized (n serial, key text, f bloom);
INSERT INTO localized (key) VALUES
  ($$'a'::citext$$), ($$'a'::mail$$), ($$'{a}'::citext[]$$), ($$'{a}'::mail[]$$), ($$'a'::text$$), ($$'{a}'::text[]$$),
  ($$'{a}'::name[]$$), ($$'{a}'::word[]$$), ($$'"a"'::jsonb$$), ($$'ok'::mood$$);
DO $$
DECLARE
  k text;
BEGIN
  FOR k IN SELECT key FROM localized LOOP
    EXECUTE format('UPDATE localized SET f = bloom_add(bloom_empty(), %s) WHERE key = %L', k, k);
  END LOOP;
END
$$;
SELECT count(*), count(*) FILTER (WHERE found(f, key) = 'true') AS found FROM localized;
-- the same locale
CALL set_locale('aa_AA.utf8');
SELECT count(*), count(*) FILTER (WHERE found(f, key) = 'true') AS found FROM localized;
-- another one
CALL set_locale('aa_BB.UTF-8');
SELECT key, key_type, found(f, key) FROM localized, bloom_info(f) ORDER BY n;
CALL try_each('SELECT %s FROM localized WHERE n = 1', $$f @> 'A'::citext$$, $$f @> 'A'$$, $$bloom_add(f, 'A')$$, $$bloom_contains_any(f, '{A}'::citext[])$$);
CALL try($$SELECT f | bloom_agg('A'::citext) FROM localized WHERE n = 1 GROUP BY f$$);
CALL set_locale('aa_AA.UTF-8@bb');
CALL try($$SELECT f @> 'A'::citext FROM localized WHERE n = 1$$);
CALL set_locale('aa_AA.LATIN1');
CALL try($$SELECT f @> 'A'::citext FROM localized WHERE n = 1$$);
CALL set_locale('C');
UPDATE localized SET f = bloom_add(bloom_empty(), 'a'::citext) WHERE n = 1;
-- C has another name
CALL set_locale('POSIX');
SELECT f @> 'A'::citext AS found FROM localized WHERE n = 1;
-- other providers and longer names
DO $$
BEGIN
  CALL set_locale('C', 'i');
  ASSERT (SELECT found(f, '''A''::citext') = '42804' FROM localized WHERE n = 1);
  UPDATE localized SET f = bloom_add(bloom_empty(), 'a'::citext) WHERE n = 1;
  ASSERT (SELECT found(f, '''A''::citext') = 'true' FROM localized WHERE n = 1);
  CALL set_locale('C', 'b');
  ASSERT (SELECT found(f, '''A''::citext') = '42804' FROM localized WHERE n = 1);
  CALL set_locale('C');
  ASSERT (SELECT found(f, '''A''::citext') = '42804' FROM localized WHERE n = 1);
  CALL set_locale(repeat('x', 248));
  ASSERT outcome('bloom_agg(''a''::citext) @> ''A''') = 'true';
  CALL set_locale(repeat('x', 249));
  ASSERT outcome('bloom_agg(''a''::citext) @> ''A''') = '0A000';
END
$$;
-- another collation than the default one
CALL set_locale('aa_AA.UTF-8');
CREATE COLLATION elsewhere FROM "C";
UPDATE pg_collation SET collctype = 'aa_BB.UTF-8' WHERE collname = 'elsewhere';
CALL try($$SELECT bloom_agg('a'::citext COLLATE elsewhere) @> 'a'::citext$$, $$SELECT bloom_agg('a'::citext) @> 'a'::citext COLLATE elsewhere$$,
  $$SELECT bloom_agg('a'::citext COLLATE elsewhere) @> 'a'$$, $$SELECT bloom_agg('{a}'::citext[] COLLATE elsewhere) @> '{a}'::citext[]$$,
  $$SELECT bloom_agg('a'::citext COLLATE elsewhere) | bloom_agg('a'::citext)$$,
  $$SELECT bloom_agg('a'::citext COLLATE elsewhere) @> 'A'::citext COLLATE elsewhere$$, $$SELECT bloom_agg('a'::citext COLLATE elsewhere) @> 'A' COLLATE elsewhere$$,
  $$SELECT bloom_agg('a'::text COLLATE elsewhere) @> 'a'::text$$, $$SELECT bloom_agg('{a}'::text[] COLLATE elsewhere) @> '{a}'::text[]$$);
-- citext hashes by the locale of the database under any collation
UPDATE localized SET f = bloom_add(bloom_empty(), 'a'::citext COLLATE elsewhere) WHERE n = 1;
CALL set_locale('aa_CC.UTF-8');
CALL try($$SELECT f @> 'a'::citext COLLATE elsewhere FROM localized WHERE n = 1$$);
-- of the same locale
CALL set_locale('aa_BB.utf8');
SELECT bloom_agg('a'::citext COLLATE elsewhere) @> 'A'::citext AS found, bloom_agg('a'::citext) @> 'A'::citext COLLATE elsewhere AS found;
ROLLBACK;
DROP FUNCTION found;
DROP PROCEDURE set_locale;

-- Names of types appear in messages, so control characters are rejected.
CREATE TYPE U&"bell\0007" AS ENUM ('x');
SELECT outcome($$bloom_agg('x'::U&"bell\0007")$$) AS enum;
DROP TYPE U&"bell\0007";

-- Long keys that are compressed in their row
CREATE TABLE long (c char(5000), t text);
INSERT INTO long VALUES ('abc', repeat('abc ', 1000));
SELECT pg_column_compression(c) IS NOT NULL AND pg_column_compression(t) IS NOT NULL AS compressed,
  bloom_hash(c) = bloom_hash('abc') AS padded, bloom_hash(t) = bloom_hash(repeat('abc ', 1000)) AS text FROM long;
DROP TABLE long;

-- A value without a label
CREATE FUNCTION forge(int) RETURNS mood LANGUAGE internal IMMUTABLE STRICT AS 'int4up';
SELECT outcome('bloom_hash(forge(1))') AS unknown;
DROP FUNCTION forge;

DROP DOMAIN pairs_of;
DROP TYPE pair, moodrange;
DROP DOMAIN shorter, short, word, code, mail, weather, ints;
DROP TYPE mood, colour;
DROP FUNCTION outcome;
DROP PROCEDURE try, try_each, create_ignoring_case;
DROP EXTENSION citext;
