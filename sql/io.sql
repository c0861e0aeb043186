--
-- IO
-- Text, binary and bytea forms have the same image; all input is checked.
--
\pset format unaligned
\pset tuples_only

SET bytea_output = hex;

-- Filters of every form, many of which contain the key 'k1'.
CREATE TYPE weekday AS ENUM ('Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su');
CREATE TABLE filters (name text, f bloom);
INSERT INTO filters VALUES
  ('empty', bloom_empty()),
  ('empty sized', bloom_empty(0.001, 1000, -1)),
  ('one key', bloom_add(bloom_empty(), 'k1')),
  ('empty string', bloom_add(bloom_empty(), ''));
INSERT INTO filters
  SELECT 'sparse', bloom_agg('k' || i) FROM generate_series(1, 3) i UNION ALL
  SELECT 'sparse, sized', bloom_agg('k' || i, 0.001, 1000, 7) FROM generate_series(1, 3) i UNION ALL
  SELECT 'dense', bloom_agg('k' || i, 0.01, 20) FROM generate_series(1, 20) i UNION ALL
  SELECT 'dense, self-sized', bloom_agg('k' || i) FROM generate_series(1, 1000) i UNION ALL
  SELECT 'numbers', bloom_agg(i, 0.01, 20) FROM generate_series(1, 20) i UNION ALL
  SELECT 'opclass keys', bloom_agg(ARRAY[i]) FROM generate_series(1, 3) i UNION ALL
  SELECT 'opclass keys, dense', bloom_compact(bloom_agg(ARRAY[i])) FROM generate_series(1, 100) i;
-- More keys than expected: several layers.
SET client_min_messages = error;
INSERT INTO filters SELECT 'layers', bloom_agg('k' || i, 0.01, 20) FROM generate_series(1, 500) i;
RESET client_min_messages;
INSERT INTO filters SELECT 'labels', bloom_agg(day) FROM unnest(enum_range(NULL::weekday)) day;
ALTER TYPE weekday ADD VALUE 'k1';
ALTER TYPE weekday ADD VALUE 'one more';
SELECT name, key_type, form, layers, bytes - 4 AS image FROM filters, bloom_info(f);

--
-- Order: that of the bytes
--

SELECT bool_and((a.f < b.f) = (a.f::bytea < b.f::bytea) AND (a.f <= b.f) = (a.f::bytea <= b.f::bytea) AND
    (a.f > b.f) = (a.f::bytea > b.f::bytea) AND (a.f >= b.f) = (a.f::bytea >= b.f::bytea) AND
    (bloom_cmp(a.f, b.f) < 0) = (a.f < b.f) AND (bloom_cmp(a.f, b.f) = 0) = (a.f = b.f)) AS as_bytea
FROM filters a, filters b;
SELECT (SELECT array_agg(name ORDER BY f) FROM filters) = (SELECT array_agg(name ORDER BY f::bytea) FROM filters) AS sorted,
  (SELECT count(*) FROM (SELECT DISTINCT ON (f) f FROM filters, generate_series(1, 2)) x) AS distinct_on,
  (SELECT count(DISTINCT f) FROM filters, generate_series(1, 2)) AS distinct_count,
  (SELECT count(*) FROM filters WHERE (1, f) IN (SELECT 1, f FROM filters)) AS "in",
  (SELECT count(*) FROM filters a WHERE (a.name, a.f) <= (SELECT name, f FROM filters WHERE name = 'sparse')) > 0 AS compared,
  (SELECT bloom_cardinality(bloom_union_agg(DISTINCT f)) FROM filters, generate_series(1, 2) WHERE name ~ '^dense') AS "union",
  (SELECT count(*) FROM (SELECT f FROM filters INTERSECT SELECT f FROM filters) x) AS intersect;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*) AS merged FROM filters a JOIN filters b USING (f);
RESET enable_hashjoin;
RESET enable_nestloop;
CREATE INDEX filters_f ON filters (f) WHERE octet_length(f::bytea) < 1000;
SET enable_seqscan = off;
SELECT name FROM filters WHERE octet_length(f::bytea) < 1000 AND f = bloom_empty();
RESET enable_seqscan;
DROP INDEX filters_f;
ANALYZE filters;
SELECT count(*) AS rows FROM filters WHERE f >= bloom_empty();

--
-- Round trips
--

SELECT count(*) AS filters,
  bool_and(f::text::bloom::text = f::text) AS text,
  bool_and(f::bytea::bloom::bytea = f::bytea) AS bytea,
  bool_and(bloom_send(f) = f::bytea) AS send,
  bool_and(decode(f::text, 'base64') = f::bytea) AS base64,
  bool_and(f::text !~ '[^A-Za-z0-9+/=]') AS alphabet
FROM filters;

-- COPY in both formats, through a file in the data directory.
SELECT current_setting('data_directory') || '/bloomfilter_regress.copy' AS path \gset
CREATE TABLE copies (name text, f bloom);
COPY filters TO :'path';
COPY copies FROM :'path';
SELECT count(*), bool_and(c.f::bytea = o.f::bytea) AS equal FROM filters o JOIN copies c USING (name);
TRUNCATE copies;
COPY filters TO :'path' (FORMAT binary);
COPY copies FROM :'path' (FORMAT binary);
SELECT count(*), bool_and(c.f::bytea = o.f::bytea) AS equal FROM filters o JOIN copies c USING (name);
SELECT name, bloom_contains(f, 'k1') AS k1, bloom_contains(f, '') AS empty_string
FROM copies WHERE name !~ 'opclass|numbers|labels' ORDER BY name COLLATE "C";

-- As part of other values, in text and binary format.
CREATE DOMAIN sparse_bloom AS bloom CHECK ((bloom_info(VALUE)).form = 'sparse');
CREATE TYPE labelled AS (label text, filter bloom);
CREATE TABLE containers (a bloom[], c labelled, d sparse_bloom);
INSERT INTO containers
  SELECT array_agg(f ORDER BY name COLLATE "C"), ROW('x', max(f::text)::bloom)::labelled,
    bloom_add(bloom_empty(), 'k1')
  FROM filters;
INSERT INTO containers (d) SELECT f FROM filters WHERE name = 'dense';
CREATE TABLE container_copies (LIKE containers);
COPY containers TO :'path' (FORMAT binary);
COPY container_copies FROM :'path' (FORMAT binary);
SELECT o.a::text = c.a::text AS arrays, o.c::text = c.c::text AS composites, o.d::text = c.d::text AS domains,
  o.a::text::bloom[]::text = o.a::text AS array_text,
  cardinality(c.a) AS elements, (SELECT bool_or(e::text = (c.c).filter::text) FROM unnest(c.a) e) AS found
FROM containers o, container_copies c;
DROP TABLE containers, container_copies;
DROP TYPE labelled;
DROP DOMAIN sparse_bloom;

-- Casts from and to bytea are explicit; there are no others.
CREATE TABLE assigned (b bytea, f bloom);
INSERT INTO assigned (b) SELECT f FROM filters;
INSERT INTO assigned (f) SELECT f::bytea FROM filters;
SELECT f::jsonb FROM filters;
DROP TABLE assigned;

--
-- Invalid input
--

\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/try.psql'
\i :functions
\set ECHO all

CALL try_each('SELECT (%s)::bloom', $$''$$, $$' '$$, $$'QkxN'$$, $$'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='$$,
  $$repeat('A', 1000000)$$, $$'x'$$, $$'hello, world'$$, $$'{1,2,3}'$$, $$repeat('=', 1000)$$, $$'\x424c4d46'$$);
-- base64 with line breaks and other white space, as encode() writes it
SELECT count(*) AS filters, bool_and(encode(f::bytea, 'base64')::bloom::text = f::text) AS encoded,
  bool_and(regexp_replace(f::text, '(.)', E' \\1\t\r\n', 'g')::bloom::text = f::text) AS spaced
FROM filters;
CALL try($$SELECT replace(f::text, 'A', E'A\u00a0')::bloom FROM filters WHERE name = 'dense'$$);
-- hexadecimal digits, as bytea prints them
SELECT count(*) AS filters, bool_and(('\x' || encode(f::bytea, 'hex'))::bloom = f) AS encoded,
  bool_and(f::bytea::text::bloom = f) AS bytea, bool_and(('\x' || upper(encode(f::bytea, 'hex')))::bloom = f) AS upper,
  bool_and(regexp_replace(f::bytea::text, '(.)', E' \\1\r\n', 'g')::bloom = f) AS spaced
FROM filters;
SELECT ('\x' || encode(bloom_agg(i)::bytea, 'hex'))::bloom @> 5 AS found FROM generate_series(1, 10) i;
CALL try_each('SELECT (%s)::bloom FROM filters WHERE name = ''dense''', $$'\x'$$, $$'\x4'$$, $$'\x4z'$$, $$'\x424c4d46\x'$$, $$'\X424c4d46'$$, $$'x424c4d46'$$,
  $$left(f::bytea::text, -1)$$, $$left(f::bytea::text, -2)$$, $$f::bytea::text || '00'$$);
-- text longer than one decoded chunk; data after the padding, in the next chunk
CREATE TEMP TABLE long AS SELECT bloom_agg(i, 0.01, 300000) AS f FROM generate_series(1, 60000) i;
SELECT length(f::text) > 262144 AS long, f::text = replace(encode(f::bytea, 'base64'), E'\n', '') AS text,
  f::text::bloom = f AS read, encode(f::bytea, 'base64')::bloom = f AS read_encoded, f::bytea::text::bloom = f AS read_hex
FROM long;
CALL try($$SELECT (left(f::text, 262142) || '==' || f::text)::bloom FROM long$$);
CALL try($$SELECT (left(f::text, 262142) || '==' || E' \n')::bloom FROM long$$);
CALL try($$SELECT (left(f::text, 262144) || '=')::bloom FROM long$$,
  $$SELECT (f::text || ' %')::bloom FROM long$$);
DROP TABLE long;
-- base64 of a filter with a different end
CALL try($$SELECT left(f::text, -1)::bloom FROM filters WHERE name = 'empty'$$);
CALL try($$SELECT left(f::text, -4)::bloom FROM filters WHERE name = 'empty'$$);
CALL try($$SELECT (f::text || 'AAAA')::bloom FROM filters WHERE name = 'dense'$$);
CALL try($$SELECT (f::text || f::text)::bloom FROM filters WHERE name = 'sparse'$$);
CALL try($$SELECT ''::bytea::bloom$$,
  $$SELECT 'hello'::bytea::bloom$$);
-- a gigabyte of zeros would be the next step
CALL try($$SELECT decode(repeat('00', 10000000), 'hex')::bloom$$);

-- From PostgreSQL 16 on, input functions can report soft errors.
DO $$
DECLARE
  ok bool;
  code text;
BEGIN
  IF current_setting('server_version_num')::int >= 160000 THEN
    EXECUTE $q$SELECT pg_input_is_valid('garbage', 'bloom') OR pg_input_is_valid('QkxN', 'bloom') OR
      pg_input_is_valid('\xgg', 'bloom') OR NOT pg_input_is_valid(bloom_empty()::bytea::text, 'bloom') OR
      NOT pg_input_is_valid(bloom_empty()::text, 'bloom')$q$ INTO ok;
    EXECUTE $q$SELECT string_agg(sql_error_code, ',') FROM unnest('{garbage,QkxN}'::text[]) t,
      pg_input_error_info(t, 'bloom')$q$ INTO code;
    IF ok OR code <> '22P02,22P02' THEN
      RAISE WARNING 'input is not soft: %, %', ok, code;
    END IF;
  END IF;
END
$$;

\set ECHO none
-- The fields of an image, one by one.  Offsets are those of doc/FORMAT.md:
-- 44 bytes of header, the name of the key type if it is not built in, for a
-- dense filter 32 bytes for each layer, then hashes or bits.
CREATE FUNCTION patch(name text, at int, bytes text) RETURNS bytea LANGUAGE sql AS $$
  SELECT overlay(f::bytea PLACING decode(bytes, 'hex') FROM at + 1)
  FROM filters WHERE filters.name = patch.name
$$;
CREATE FUNCTION rejection(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  detail text; hint text;
BEGIN
  PERFORM image::bloom;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' ', SQLSTATE || ':', detail, NULLIF(hint, ''));
END
$$;
\set ECHO all
SELECT what, name, at, bytes, rejection(patch(name, at, bytes))
FROM (VALUES
  (1, 'magic', 'dense', 0, '626c6d66'),
  (2, 'version', 'dense', 4, '00'),
  (3, 'version', 'dense', 4, '02'),
  (4, 'version', 'sparse', 4, 'ff'),
  (5, 'form', 'dense', 5, '02'),
  (6, 'form', 'dense', 5, '00'),
  (7, 'form', 'sparse', 5, '01'),
  (8, 'hashing scheme', 'dense', 6, '00'),
  (9, 'hashing scheme', 'dense', 6, '02'),
  (10, 'layers', 'dense', 16, '00'),
  (11, 'layers', 'dense', 16, '02'),
  (12, 'layers', 'dense', 16, '0104'),
  (13, 'layers', 'dense', 16, 'ff'),
  (14, 'layers', 'sparse', 16, '01'),
  (15, 'type of keys', 'dense', 8, '15'),
  (16, 'type of keys', 'dense', 8, 'ff'),
  (17, 'enum without name', 'dense', 8, '40'),
  (18, 'length of name', 'dense', 9, '01'),
  (19, 'length of name', 'labels', 9, '00'),
  (20, 'length of name', 'labels', 9, '06'),
  (21, 'length of name', 'labels', 9, 'ff'),
  (22, 'name', 'labels', 44, '00'),
  (23, 'name', 'labels', 44, '0a'),
  (24, 'name', 'labels', 44, 'ff'),
  (25, 'byte order', 'dense', 10, '01'),
  (26, 'byte order', 'opclass keys', 10, '00'),
  (27, 'byte order', 'opclass keys', 10, '03'),
  (28, 'encoding', 'dense', 11, '06'),
  (29, 'hashes', 'dense', 12, '01'),
  (30, 'hashes', 'sparse', 12, '00000000'),
  (31, 'hashes', 'sparse', 12, 'ffffffff'),
  (32, 'hashes, big-endian', 'sparse', 12, '00000003'),
  (33, 'flags', 'dense', 7, '01'),
  (34, 'layers', 'sparse', 19, '80'),
  (35, 'rate 0', 'dense', 28, '0000000000000000'),
  (36, 'rate NaN', 'dense', 28, '000000000000f87f'),
  (37, 'rate infinite', 'dense', 28, '000000000000f07f'),
  (38, 'rate denormal', 'dense', 28, '0100000000000000'),
  (39, 'rate 1', 'dense', 28, '000000000000f03f'),
  (40, 'rate -0.01', 'sparse', 28, '7b14ae47e17a84bf'),
  (41, 'rate 0.01, big-endian', 'dense', 28, '3f847ae147ae147b'),
  (42, 'expected', 'dense', 36, 'ffffffffffffffff'),
  (43, 'expected', 'dense', 36, '0000000000000080'),
  (44, 'expected', 'sparse', 36, '0100000001000000'),
  (45, 'more than possible', 'sparse', 36, '0000000001000000'),
  (46, 'more than possible', 'dense', 36, '0000008000000000'),
  (47, 'blocks', 'dense', 44, '00000000'),
  (48, 'blocks', 'dense', 44, '02000000'),
  (49, 'blocks', 'dense', 44, '00000001'),
  (50, 'blocks, wrap in 32 bits', 'dense', 44, '00008000'),
  (51, 'blocks', 'dense', 44, 'ffffffff'),
  (52, 'bits in a block', 'dense', 48, '00'),
  (53, 'bits in a block', 'dense', 48, '08'),
  (54, 'bits in a block', 'dense', 48, '0a'),
  (55, 'bits in a block', 'dense', 48, '0f'),
  (56, 'bits in a block', 'dense', 48, '3f'),
  (57, 'bits in a block', 'dense', 48, 'ff'),
  (58, 'hash functions', 'dense', 49, '00'),
  (59, 'hash functions', 'dense', 49, '41'),
  (60, 'generation', 'dense', 50, '18'),
  (61, 'flags', 'dense', 51, '02'),
  (62, 'capacity', 'dense', 52, '0000000000000000'),
  (63, 'capacity', 'dense', 52, '0102000000000000'),
  (64, 'capacity', 'dense', 52, 'ffffffffffffffff'),
  (65, 'rate of layer 0', 'dense', 60, '0000000000000000'),
  (66, 'rate of layer NaN', 'dense', 60, '000000000000f87f'),
  (67, 'rate of layer 1', 'dense', 60, '000000000000f03f'),
  (68, 'bits set', 'dense', 68, '0000000000000000'),
  (69, 'bits set', 'dense', 68, '0102000000000000'),
  (70, 'bits set', 'dense', 68, 'ffffffffffffffff'),
  (71, 'bits', 'dense', 76, '0000000000000000'),
  (72, 'bits', 'dense', 139, 'ff'),
  (73, 'hashes descend', 'sparse', 44, 'ffffffffffffffff'),
  (74, 'layers, negative', 'dense', 16, 'ffffffff'),
  (79, 'encoding', 'opclass keys', 11, '23'),
  (80, 'name, DEL', 'labels', 44, '7f'),
  (81, 'name, C1 control', 'labels', 44, 'c285'),
  (82, 'name, surrogate', 'labels', 44, 'eda080')
) patches (n, what, name, at, bytes)
ORDER BY n;
SELECT rejection(overlay(f::bytea PLACING substr(f::bytea, 45, 8) FROM 53)) AS equal_hashes
FROM filters WHERE name = 'sparse';

-- A few bytes that declare half a gigabyte: no memory is allocated for it.
SELECT rejection(substr(f::bytea, 1, 44) ||
  '\x000080000906000001000000000000007b14ae47e17a843f0000000000000000') AS short_of_half_a_gigabyte
FROM filters WHERE name = 'dense';

--
-- Images that are damaged systematically.  Each is rejected with 22P03, or it
-- is a filter with which all functions work.
--

CREATE TABLE damage (name text, how text, outcome text);

\set ECHO none
-- The SQLSTATE with which the cast rejects an image, or the results of all
-- functions on the filter.  The damage may have changed the key type; then
-- 42804 is the right result of a probe.
CREATE FUNCTION outcome_of(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  f bloom;
  outcome text := 'accepted';
BEGIN
  BEGIN
    f := image::bloom;
  EXCEPTION WHEN OTHERS THEN
    RETURN 'rejected, ' || SQLSTATE;
  END;
  BEGIN
    IF f::bytea <> image OR f::text::bloom::bytea <> image THEN
      RETURN 'accepted, but written differently';
    END IF;
    IF bloom_cardinality(f) < 0 OR NOT bloom_fpp(f) BETWEEN 0 AND 1 OR
      (bloom_info(f)).cardinality <> bloom_cardinality(f) THEN
      RETURN 'accepted, but answers are out of range';
    END IF;
    PERFORM f | f, f & f, bloom_compact(f), bloom_intersection_cardinality(f, f), f = f, bloom_union(f, bloom_empty(seed => (bloom_info(f)).seed)),
      bloom_union_agg(g) FROM unnest(ARRAY[f, f]) g;
    BEGIN
      PERFORM f @> 'k1';
      IF NOT bloom_add(f, 'one more') @> 'one more' THEN
        RETURN 'accepted, but loses keys';
      END IF;
    EXCEPTION WHEN datatype_mismatch OR invalid_text_representation THEN
      outcome := 'accepted, other type of keys';
    END;
  EXCEPTION WHEN OTHERS THEN
    RETURN format('accepted, but %s: %s', SQLSTATE, SQLERRM);
  END;
  RETURN outcome;
END
$$;
\set ECHO all

-- Every truncation of five of them.
INSERT INTO damage
  SELECT name, 'truncated', outcome_of(substr(f::bytea, 1, n))
  FROM filters, generate_series(0, octet_length(f::bytea) - 1) n
  WHERE name IN ('empty', 'sparse', 'dense', 'layers', 'labels');
-- Data after the end.
INSERT INTO damage
  SELECT name, 'extended', outcome_of(f::bytea || bytes)
  FROM filters, unnest('{"\\x00","\\xff","\\x0000000000000000",
    "\\xfffffffffffffffe","\\xffffffffffffffffffffffffffffffff"}'::bytea[]) bytes
  WHERE name IN ('empty', 'sparse', 'dense', 'layers', 'labels');
INSERT INTO damage SELECT 'all', 'doubled', outcome_of(f::bytea || f::bytea) FROM filters;
-- Every single bit.
INSERT INTO damage
  SELECT name, CASE WHEN n < 44 * 8 THEN 'bit of header'
      WHEN name = 'dense' AND n < 76 * 8 THEN 'bit of directory'
      WHEN name = 'dense' THEN 'bit of filter'
      WHEN name = 'labels' AND n < 52 * 8 THEN 'bit of name' ELSE 'bit of hashes' END,
    outcome_of(set_bit(f::bytea, n, 1 - get_bit(f::bytea, n)))
  FROM filters, generate_series(0, octet_length(f::bytea) * 8 - 1) n
  WHERE name IN ('sparse', 'dense', 'labels');
-- For hashes that depend on the machine, the bits of header and name.
INSERT INTO damage
  SELECT name, 'bit of header or name', outcome_of(set_bit(f::bytea, n, 1 - get_bit(f::bytea, n)))
  FROM filters, generate_series(0, 52 * 8 - 1) n
  WHERE name = 'opclass keys';
-- Every byte of header and directory set to its extremes.
INSERT INTO damage
  SELECT name, 'byte of header or directory', outcome_of(set_byte(f::bytea, n, byte))
  FROM filters, generate_series(0, 75) n, unnest('{0,1,127,128,255}'::int[]) byte
  WHERE name = 'dense' AND get_byte(f::bytea, n) <> byte;
SELECT how, name, outcome, count(*) FROM damage
GROUP BY name, how, outcome ORDER BY how COLLATE "C", name COLLATE "C", outcome COLLATE "C";

\set ECHO none
-- The same bytes through the binary protocol: COPY writes bytea unchanged,
-- and reads the file as filters.
CREATE FUNCTION receive(path text, image bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COPY (SELECT %L::text, %L::bytea) TO %L (FORMAT binary)', 'received', image, path);
  EXECUTE format('COPY copies FROM %L (FORMAT binary)', path);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN 'rejected, ' || SQLSTATE;
END
$$;
\set ECHO all
TRUNCATE copies;
SELECT receive(:'path', f::bytea) AS outcome, count(*) FROM filters GROUP BY 1;
SELECT receive(:'path', substr(f::bytea, 1, n)) AS outcome, count(*)
FROM filters, generate_series(0, octet_length(f::bytea) - 1) n WHERE name IN ('sparse', 'dense') GROUP BY 1;
SELECT receive(:'path', f::bytea || '\x00') AS outcome, count(*) FROM filters GROUP BY 1;
SELECT receive(:'path', set_byte(f::bytea, 4, 2)) AS outcome, count(*) FROM filters GROUP BY 1;
SELECT count(*) FROM copies;

--
-- Stored values that are damaged: XX001 in every function.
--

-- A function of PostgreSQL that returns its first argument as a filter.
CREATE FUNCTION forge(bytea, bytea DEFAULT '') RETURNS bloom
  LANGUAGE internal IMMUTABLE STRICT AS 'byteacat';
SELECT bloom_contains(forge(f::bytea), 'k1') AS found FROM filters WHERE name = 'sparse';
CREATE TABLE damaged (name text, f bloom);
INSERT INTO damaged SELECT 'version', forge(set_byte(f::bytea, 4, 2)) FROM filters WHERE name = 'sparse';
INSERT INTO damaged SELECT 'length', forge(substr(f::bytea, 1, 60)) FROM filters WHERE name = 'sparse';
CALL try($$SELECT bloom_contains(f, 'k1') FROM damaged WHERE name = 'version'$$);
CALL try_each('SELECT %s FROM damaged WHERE name = ''length''', $$bloom_contains(f, 'k1')$$, $$bloom_add(f, 'k1')$$, $$f @> 'k1'$$, $$'k1' <@ f$$,
  'f | f', 'bloom_empty() | f', 'bloom_cardinality(f)', 'bloom_fpp(f)', 'bloom_info(f)');
CALL try($$SELECT bloom_union_agg(f) FROM damaged$$);

-- Damage to the content is not detected at each use, but is harmless: no
-- crash here, and an error when the value is dumped and restored.
SELECT f @> 'k1' IS NOT NULL AS contains, bloom_cardinality(f) >= 0 AS cardinality,
  bloom_fpp(f) >= 0 AS fpp, (f | f) @> 'k1' IS NOT NULL AS union, bloom_add(f, 'z') @> 'z' AS add
FROM (SELECT forge(overlay(f::bytea PLACING '\xffffffffffffffff' FROM 45)) AS f FROM filters WHERE name = 'sparse'
      UNION ALL
      SELECT forge(overlay(f::bytea PLACING '\xffffffffffffffff' FROM 77)) FROM filters WHERE name = 'dense'
      UNION ALL
      SELECT forge(overlay(f::bytea PLACING '\x0002000000000000' FROM 69)) FROM filters WHERE name = 'dense'
      UNION ALL
      SELECT forge(overlay(f::bytea PLACING '\x0000000000000000' FROM 69)) FROM filters WHERE name = 'dense') f;

-- The session and all filters remain usable.
SELECT count(*) FROM filters WHERE bloom_cardinality(f) >= 0;

COPY (SELECT) TO PROGRAM 'cat >/dev/null; rm bloomfilter_regress.copy';
DROP FUNCTION patch, rejection, outcome_of, receive, forge;
DROP PROCEDURE try, try_each, create_ignoring_case;
DROP TABLE filters, copies, damage, damaged;
DROP TYPE weekday;
