--
-- KEY_TYPES
-- Types of one key type have equal hashes; all others are distinguished,
-- independent of their names and schemas.  The extension's own types are
-- recognized after changes of its functions and its schema.  Below, keys without
-- a type, which are read as the filter's key type.
--
\pset format unaligned
\pset tuples_only

SET client_min_messages = warning;
CREATE EXTENSION citext;
RESET client_min_messages;

\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/try.psql'
\i :functions

-- The value of an expression, or the error in full.
CREATE FUNCTION outcome(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
  detail text; hint text;
BEGIN
  EXECUTE 'SELECT ' || expression INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n', SQLSTATE || ': ' || SQLERRM, NULLIF(detail, ''), NULLIF(hint, ''));
END
$$;

-- The key type that a filter records, byte for byte: bytes 8 to 11 of the
-- image and the name.
CREATE FUNCTION recorded(f bloom) RETURNS bytea LANGUAGE sql AS
  'SELECT substr(f::bytea, 9, 4) || substr(f::bytea, 45, get_byte(f::bytea, 9))';
\set ECHO all

--
-- Every type in the catalog that can be a key.  Types with the same recorded
-- key type find each other's keys, so their hashes must be equal.
--

\set ECHO none
-- The first of these literals that is a valid value of the type and a key.
CREATE FUNCTION recorded_for(type regtype) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
  literal text;
  result bytea;
BEGIN
  FOREACH literal IN ARRAY ARRAY['1', '{}', '(,)', '(0,1)', '2020-01-01', '01:00', '0/1', '1.2.3.4', '08:00:2b:01:02:03',
    '00000000-0000-0000-0000-000000000001', '1:1:', 'happy', '{"a": 1}'] LOOP
    BEGIN
      EXECUTE format('SELECT recorded(bloom_add(bloom_empty(), %L::%s))', literal, type) INTO result;
      RETURN result;
    EXCEPTION WHEN OTHERS THEN
      CONTINUE;
    END;
  END LOOP;
  RETURN NULL;
END
$$;
\set ECHO all
CREATE TABLE key_types AS
  SELECT t.oid::regtype AS type, recorded_for(t.oid) AS recorded FROM pg_type t
  WHERE typtype IN ('b', 'e', 'r', 'm') AND typname NOT IN ('bloom_key', 'bloom_keys');
SELECT count(*) > 90 AS many_types, bool_or(type = 'citext'::regtype) AS citext FROM key_types WHERE recorded IS NOT NULL;
SELECT string_agg(type::text, ', ' ORDER BY type::text COLLATE "C") AS one_key_type
FROM key_types WHERE recorded IS NOT NULL GROUP BY recorded HAVING count(*) > 1
ORDER BY min(type::text COLLATE "C");
DROP TABLE key_types;
DROP FUNCTION recorded_for;

-- An oidvector is not an array of oid, which has other hashes.
CALL try($$SELECT bloom_agg('1 2'::oidvector) @> '{1,2}'::oid[]$$);
CALL try($$SELECT bloom_agg('{1,2}'::oid[]) @> '1 2'::oidvector$$);
CALL try($$SELECT bloom_agg('1 2'::oidvector) @> '1 2'::oidvector$$);

--
-- Types of one name in two schemas.  The schema is not recorded, so that a type
-- can move.
--

CREATE SCHEMA a;
CREATE SCHEMA b;
-- Enums of one name are one key type: their labels are hashed, and equal
-- labels are equal keys.
CREATE TYPE a.state AS ENUM ('new', 'done');
CREATE TYPE b.state AS ENUM ('done', 'new');
SELECT outcome($$bloom_agg('new'::a.state) @> 'new'::b.state$$) AS found,
  outcome($$bloom_agg('new'::a.state) @> 'done'::b.state$$) AS not_found;

-- A base type is rejected if a type of the same name has another hash function.
SET client_min_messages = warning;
CREATE TYPE a.tag;
CREATE FUNCTION a.tag_in(cstring) RETURNS a.tag LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION a.tag_out(a.tag) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE a.tag (INPUT = a.tag_in, OUTPUT = a.tag_out, LIKE = text);
CREATE TYPE b.tag;
CREATE FUNCTION b.tag_in(cstring) RETURNS b.tag LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION b.tag_out(b.tag) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE b.tag (INPUT = b.tag_in, OUTPUT = b.tag_out, LIKE = int4);
RESET client_min_messages;
CREATE FUNCTION a.eq(a.tag, a.tag) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'byteaeq';
CREATE FUNCTION a.hash(a.tag) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashvarlena';
CREATE FUNCTION a.hash(a.tag, int8) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT AS 'hashvarlenaextended';
CREATE OPERATOR a.= (FUNCTION = a.eq, LEFTARG = a.tag, RIGHTARG = a.tag);
CREATE OPERATOR CLASS a.tag_ops DEFAULT FOR TYPE a.tag USING hash AS OPERATOR 1 a.=, FUNCTION 1 a.hash(a.tag),
  FUNCTION 2 a.hash(a.tag, int8);
CREATE TABLE tags AS SELECT bloom_agg('1'::a.tag) AS f;
CALL try($$SELECT f @> '1'::a.tag FROM tags$$);
CREATE FUNCTION b.eq(b.tag, b.tag) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION b.hash(b.tag) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE FUNCTION b.hash(b.tag, int8) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT AS 'hashint4extended';
CREATE OPERATOR b.= (FUNCTION = b.eq, LEFTARG = b.tag, RIGHTARG = b.tag);
CREATE OPERATOR CLASS b.tag_ops DEFAULT FOR TYPE b.tag USING hash AS OPERATOR 1 b.=, FUNCTION 1 b.hash(b.tag),
  FUNCTION 2 b.hash(b.tag, int8);
CALL try($$SELECT f @> '1'::a.tag FROM tags$$);
CALL try($$SELECT f @> '1'::b.tag FROM tags$$);
CALL try($$SELECT bloom_agg(ARRAY['1'::a.tag])$$);
-- a literal does not choose between the two
CALL try($$SELECT f @> '1' FROM tags$$);
-- an array of a type that has the name and the hash function of one of PostgreSQL, whose elements hash otherwise
SET client_min_messages = warning;
CREATE FUNCTION a.in(cstring) RETURNS a.int8 LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION a.out(a.int8) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE a.int8 (INPUT = a.in, OUTPUT = a.out, LIKE = pg_catalog.int8);
RESET client_min_messages;
CREATE FUNCTION a.eq(a.int8, a.int8) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int8eq';
CREATE FUNCTION a.hash(a.int8) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint8';
CREATE OPERATOR a.= (FUNCTION = a.eq, LEFTARG = a.int8, RIGHTARG = a.int8, HASHES);
CREATE OPERATOR CLASS a.int8_ops DEFAULT FOR TYPE a.int8 USING hash AS OPERATOR 1 a.=, FUNCTION 1 a.hash(a.int8),
  FUNCTION 2 (a.int8, a.int8) hashint8extended(pg_catalog.int8, pg_catalog.int8);
CALL try($$SELECT bloom_agg('{1,2}'::a.int8[]) @> '{1,2}'::pg_catalog.int8[]$$,
  $$SELECT bloom_agg('1'::a.int8) @> '1'::pg_catalog.int8$$);
-- an array of domains over arrays of a domain, whose name does not say of what type that is
CREATE DOMAIN a.list AS int[];
CREATE DOMAIN a.lists AS a.list[];
CREATE DOMAIN b.list AS text[];
CREATE DOMAIN b.lists AS b.list[];
CALL try($$SELECT bloom_agg(ARRAY['{"{1,2}"}'::a.lists]) @> ARRAY['{"{1,2}"}'::b.lists]$$);
CALL try($$SELECT bloom_agg(ARRAY['{1,2}'::a.list]) @> ARRAY['{1,2}'::b.list]$$);
SET client_min_messages = warning;
DROP TABLE tags;
DROP SCHEMA a, b CASCADE;
RESET client_min_messages;

--
-- A filter is no key.
--

CREATE TABLE filters AS SELECT bloom_agg(i) AS f FROM generate_series(1, 3) i;
CALL try($$SELECT bloom_agg(f) FROM filters$$,
  $$SELECT f @> f FROM filters$$,
  $$SELECT bloom_add(f, f) FROM filters$$,
  $$SELECT bloom_add_all(f, ARRAY[f]) FROM filters$$,
  $$SELECT bloom_contains_any(f, ARRAY[f]) FROM filters$$,
  $$SELECT bloom_agg(ARRAY[f]) FROM filters$$);
DROP TABLE filters;

--
-- Two filters of different key types
--

CALL try($$SELECT bloom_union(bloom_agg(1), bloom_agg('a'::text))$$,
  $$SELECT bloom_agg(1) & bloom_agg('a'::text)$$,
  $$SELECT bloom_union_agg(f) FROM (VALUES (bloom_add(bloom_empty(), 1)), (bloom_add(bloom_empty(), 1.0))) v(f)$$,
  $$SELECT bloom_intersection_cardinality(bloom_agg(1), bloom_agg(ARRAY[1]))$$);

--
-- Renamed labels of an enum.  Lookups of the new label do not find the hash of
-- the old one in a filter, in an index, in one on bloom_hash and in a generated
-- column until these are rebuilt.
--

CREATE TYPE size AS ENUM ('small', 'large');
CREATE TABLE shirts (s size, hash bigint GENERATED ALWAYS AS (bloom_hash(s)) STORED);
INSERT INTO shirts VALUES ('small'), ('large');
CREATE INDEX shirts_hash ON shirts (bloom_hash(s));
CREATE INDEX shirts_s ON shirts USING bloomfilter (s);
CREATE TABLE sizes AS SELECT bloom_agg(s) AS f FROM shirts;
ALTER TYPE size RENAME VALUE 'large' TO 'big';
SELECT f @> 'big'::size AS new_label FROM sizes;
SELECT bloom_index_contains_each('shirts_s', '{small,big}');
SELECT f @> 'large' AS old_label FROM sizes;
SET enable_seqscan = off;
SELECT count(*) AS by_index FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) AS by_scan FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
SELECT count(*) AS by_column FROM shirts WHERE hash = bloom_hash('big'::size);
RESET enable_indexscan;
RESET enable_bitmapscan;
REINDEX TABLE shirts;
SELECT bloom_index_contains_each('shirts_s', '{small,big}');
UPDATE shirts SET s = s;
UPDATE sizes SET f = (SELECT bloom_agg(s) FROM shirts);
SET enable_seqscan = off;
SELECT count(*) AS by_index FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
RESET enable_seqscan;
SELECT count(*) AS by_column FROM shirts WHERE hash = bloom_hash('big'::size);
SELECT f @> 'big'::size AS new_label FROM sizes;
DROP TABLE shirts, sizes;
DROP TYPE size;

--
-- The extension's types are recognized by their properties.
--

-- A function with a SET clause is called through a wrapper.
CREATE TABLE words AS SELECT 'w' || i % 1000 AS word FROM generate_series(1, 10000) i;
ANALYZE words;
\set ECHO none
-- Is the filter, which 130 rows pass, compared with statistics?  The default
-- estimate is 1000 rows.
CREATE FUNCTION is_estimated(f text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE format('EXPLAIN (FORMAT json) SELECT FROM words WHERE %L::bloom @> word', f) INTO plan;
  RETURN (plan #>> '{0,Plan,Plan Rows}')::numeric BETWEEN 50 AND 500;
END
$$;
\set ECHO all
SELECT bloom_agg(DISTINCT word) AS f FROM words WHERE word < 'w11' \gset
SELECT outcome(format('%L::bloom @> %L', :'f', 'w1')) AS literal,
  is_estimated(:'f') AS estimated;
ALTER FUNCTION bloom_key_in(cstring) SET search_path = pg_catalog;
ALTER FUNCTION bloom_in(cstring) SET search_path = pg_catalog;
SELECT outcome(format('%L::bloom @> %L', :'f', 'w1')) AS literal,
  outcome(format('bloom_agg(%L) @> %L', 'x', 'x')) AS aggregate,
  is_estimated(:'f') AS estimated;
ALTER FUNCTION bloom_key_in(cstring) RESET ALL;
ALTER FUNCTION bloom_in(cstring) RESET ALL;

-- The extension changes its schema, also with prepared statements.
CREATE SCHEMA elsewhere;
PREPARE probe(text) AS SELECT $1::bloom @> 'w1' AS found;
EXECUTE probe(:'f');
ALTER EXTENSION bloomfilter SET SCHEMA elsewhere;
SELECT :'f'::elsewhere.bloom OPERATOR(elsewhere.@>) 'w1' AS found,
  elsewhere.bloom_contains_any(:'f'::elsewhere.bloom, '{w1}'::text[]) AS found_any;
-- Types of the same names in its former schema are not its own.
CREATE TYPE bloom_key AS ENUM ('w1', 'x');
SELECT elsewhere.bloom_contains(elsewhere.bloom_agg('w1'::bloom_key), 'x'::bloom_key) AS found;
DROP TYPE bloom_key;
ALTER EXTENSION bloomfilter SET SCHEMA public;
SELECT :'f'::bloom @> 'w1' AS found, is_estimated(:'f') AS estimated;
DEALLOCATE probe;
DROP SCHEMA elsewhere;

-- It is dropped and created again.
DROP FUNCTION recorded;
DROP EXTENSION bloomfilter;
CREATE TYPE bloom_key AS ENUM ('w1');
DROP TYPE bloom_key;
CREATE EXTENSION bloomfilter;
SELECT :'f'::bloom @> 'w1' AS found, is_estimated(:'f') AS estimated,
  outcome($$bloom_agg(bloom_empty())$$) AS filter_as_key;

DROP TABLE words;
DROP FUNCTION is_estimated;

--
-- Keys and arrays of keys without a type, as literals and as parameters, are
-- read as the filter's key type, as in id = '5'.
--

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');

--
-- A key is found by the text of any value that is equal to it.
--

CREATE TABLE keys (n serial, type text, value text, equal text, absent text);
INSERT INTO keys (type, value, equal, absent) VALUES
  ('int2', '5', ' +5 ', '6'), ('int4', '5', '005', '6'), ('int8', '-9223372036854775808', '-9223372036854775808', '6'),
  ('numeric', '1.0', '1.00', '1.01'), ('numeric', 'NaN', 'nan', '0'),
  ('float4', '0.5', '5e-1', '0.25'), ('float8', '0.5', '+0.50', '1'), ('float8', '-0', '0', '2'),
  ('float8', 'Infinity', 'inf', '-inf'), ('float4', 'NaN', 'nan', '0'),
  ('bool', 'true', 'yes', 'no'), ('"char"', 'x', 'xyz', 'y'), ('oid', '26', ' 26', '27'),
  ('uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{A0EEBC999C0B4EF8BB6D6BB9BD380A11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'),
  ('bytea', '\x6162', 'ab', 'abc'),
  ('inet', '10.0.0.1', '10.0.0.1/32', '10.0.0.2'), ('cidr', '10.0.0.0/8', '10.0.0.0/8', '10.0.0.0/9'),
  ('macaddr', '08:00:2b:01:02:03', '08002B-010203', '08:00:2b:01:02:04'),
  ('macaddr8', '08:00:2b:ff:fe:01:02:03', '08:00:2b:01:02:03', '08:00:2b:ff:fe:01:02:04'),
  ('pg_lsn', '16/B374D848', '16/b374d848', '0/1'), ('xid8', '255', '0xff', '1'), ('xid', '7', '07', '8'),
  ('tid', '(1,2)', '(01,02)', '(1,3)'), ('jsonb', '{"a": 1.0, "b": 2}', '{"b":2,"a":1.00}', '{"a": 1}'),
  ('jsonb', '1', ' 1.0', '2'),
  ('citext', 'abc', 'ABC', 'abcd'), ('mood', 'ok', 'ok', 'sad'), ('text', 'ok', 'ok', 'OK'),
  ('varchar', '{a,b}c', '{a,b}c', 'a'), ('char(5)', 'ab', 'ab   ', 'ab x'), ('name', 'ab', 'ab', 'abc');
SELECT type, value,
  outcome(format('bloom_agg(%L::%s) @> %L', value, type, equal)) AS found,
  outcome(format('%3$L <@ bloom_agg(%1$L::%2$s)', value, type, equal)) AS commuted,
  outcome(format('bloom_contains(bloom_agg(%L::%s), %L)', value, type, absent)) AS absent,
  outcome(format('bloom_add(bloom_agg(%1$L::%2$s), %3$L) @> %3$L::%2$s', value, type, absent)) AS added,
  outcome(format('added FROM bloom_try_add((SELECT bloom_agg(%1$L::%2$s)), %3$L)', value, type, equal)) AS try_add
FROM keys ORDER BY n;

-- Arrays: an element is read as a single key is.
SELECT type, value,
  outcome(format('bloom_contains_any(bloom_agg(%1$L::%2$s), %3$L)', value, type, ARRAY[equal, absent, NULL])) AS "any",
  outcome(format('bloom_contains_all(bloom_agg(%1$L::%2$s), %3$L)', value, type, ARRAY[equal, absent])) AS "all",
  outcome(format('bloom_new_keys(bloom_agg(%1$L::%2$s), %3$L)', value, type, ARRAY[equal, absent, absent, NULL]::text)) AS new,
  outcome(format('bloom_contains_all(bloom_add_all(bloom_agg(%1$L::%2$s), %3$L), %3$L)', value, type, ARRAY[equal, absent])) AS added
FROM keys ORDER BY n;
DROP TABLE keys;

-- Drivers send char(n) padded, and a filter does not record whether its keys are
-- of this type: trailing spaces do not count in any text.
SELECT outcome(format('bloom_agg(%L::%s) @> %L', value, type, key)) AS key,
  outcome(format('bloom_contains_each(bloom_agg(%L::%s), %L)', value, type, ARRAY[key])) AS each,
  outcome(format('bloom_new_keys(bloom_agg(%L::%s), %L)', value, type, ARRAY[key])) AS new
FROM (VALUES (1, 'DE', 'char(3)', 'DE '), (2, 'DE', 'text', 'DE '), (3, 'DE ', 'text', 'DE'), (4, 'DE ', 'text', 'DE  '),
  (5, 'DE ', 'text', 'DE '), (6, 'DE', 'char(3)', 'DE '' ')) v(n, value, type, key) ORDER BY n;
SELECT bloom_contains_all(f, '{"DE ",FR}') AS "all", bloom_contains_any(f, '{"FR ",IT}') AS "any",
  f @> 'DE '::text AS typed, f @> 'DE '::char(3) AS padded
FROM (SELECT bloom_agg(k::char(3)) AS f FROM unnest('{DE,FR}'::text[]) k) x;

-- So it is where varchar is compared with char(n), whichever of them was added.
SELECT f @> 'DE '::varchar AS key, f @> 'FR '::varchar(4) AS absent,
  bloom_contains_each(f, '{"DE ","FR "}'::varchar[]) AS each, bloom_new_keys(f, '{"DE ","FR "}'::varchar[]) AS new,
  f & bloom_agg('DE  '::varchar) @> 'DE'::text AS in_both, bloom_agg('DE  '::varchar) @> 'DE'::char(3) AS padded
FROM (SELECT bloom_agg('DE'::char(3)) AS f) x GROUP BY f;
SELECT count(DISTINCT bloom_hash(k)) AS hashes, count(DISTINCT bloom_shard(k, 1000000)) AS shards,
  bool_and(bloom_hash(k) = bloom_hash('DE'::char(3)) AND bloom_hash(k) = bloom_hash('DE '::name)) AS padded
FROM unnest('{DE,"DE ","DE  "}'::varchar[]) k;

-- Types whose text depends on session settings are rejected.
SELECT type, outcome(format('bloom_agg(%1$L::%2$s) @> %1$L', value, type)) AS key,
  outcome(format('bloom_contains_any(bloom_agg(%1$L::%2$s), %3$L)', value, type, ARRAY[value])) AS keys
FROM (VALUES (1, '2020-01-01', 'date'), (2, '2020-01-01', 'timestamp'), (3, '2020-01-01', 'timestamptz'),
  (4, '01:00', 'time'), (5, '01:00+00', 'timetz'), (6, '1 hour', 'interval'), (7, '{1}', 'int[]'),
  (8, '[1,2)', 'int4range'), (9, '{[1,2)}', 'int4multirange')) v(n, value, type)
ORDER BY n;

-- Invalid text is an error of the type's input function.
CALL try($$SELECT bloom_agg(1) @> 'one'$$);
CALL try($$SELECT bloom_agg(1) @> '99999999999999999999'$$);
CALL try($$SELECT bloom_agg(1) @> ''$$);
CALL try($$SELECT bloom_agg(true) @> 'maybe'$$);
CALL try($$SELECT bloom_agg('1'::jsonb) @> '{'$$);
CALL try($$SELECT bloom_agg(1::oid) @> '-1x'$$);
SELECT outcome($$bloom_agg('ok'::mood) @> 'okay'$$), outcome($$bloom_contains_any(bloom_agg('ok'::mood), '{okay}')$$);

-- Text that real and double precision read as different numbers
SELECT key, outcome(format('bloom_agg(%1$L::float4) @> %1$L', key)) AS "real",
  outcome(format('bloom_agg(%1$L::float8) @> %1$L', key)) AS double
FROM unnest('{1,-0.75,16777216,16777217,3.4028234663852886e38}'::text[]) key;
CALL try($$SELECT bloom_agg(0.1::float8) @> '0.1'$$,
  $$SELECT bloom_agg(0.1::float4) @> '0.1'$$,
  $$SELECT bloom_agg(1e300::float8) @> '1e300'$$,
  $$SELECT bloom_agg('3.4028235e38'::float4) @> '3.4028235e38'$$,
  $$SELECT bloom_agg(1e-300::float8) @> '1e-300'$$,
  $$SELECT bloom_contains_any(bloom_agg(0.5::float8), '{0.25,0.1}')$$);

-- A filter without a key type reads text, and so does bloom_hash.
SELECT key_type FROM bloom_info(bloom_add(bloom_empty(), '5'));
SELECT key_type FROM bloom_info(bloom_add_all(bloom_empty(), '{5,6}'));
SELECT outcome($$bloom_empty() @> '5'$$) AS one, outcome($$bloom_contains_any(bloom_empty(), '{5}')$$) AS "any";
SELECT bloom_hash('5') = bloom_hash('5'::text) AS hash, bloom_shard('5', 100) = bloom_shard('5'::text, 100) AS shard;

--
-- Collations: as text or a type like it, an untyped key has one.
--

CALL create_ignoring_case();
CALL try($$SELECT bloom_agg('x'::text) @> 'X' COLLATE ignoring_case$$,
  $$SELECT bloom_empty() @> 'X' COLLATE ignoring_case$$,
  $$SELECT bloom_agg('x' COLLATE ignoring_case)$$,
  $$SELECT bloom_hash('x' COLLATE ignoring_case)$$,
  $$SELECT bloom_agg('x'::citext) @> 'X' COLLATE ignoring_case$$,
  $$SELECT bloom_contains_any(bloom_agg('x'::text), '{X}' COLLATE ignoring_case)$$);
SELECT outcome($$bloom_agg('x'::text) @> 'x' COLLATE "C"$$) AS deterministic,
  outcome($$bloom_contains_any(bloom_agg('x'::text), '{x}' COLLATE "C")$$) AS "any",
  outcome($$bloom_agg(5) @> '5' COLLATE ignoring_case$$) AS number;
CREATE TABLE cased AS SELECT 'X' COLLATE "POSIX" AS text, 'X'::citext, '{X}'::text[] AS texts, 5 AS number;
SELECT format('CREATE INDEX cased_%I ON cased USING bloomfilter (%1$I)', attname) FROM pg_attribute WHERE attrelid = 'cased'::regclass AND attnum > 0 \gexec
CALL try($$SELECT bloom_index_contains('cased_text', 'x' COLLATE ignoring_case)$$,
  $$SELECT bloom_index_contains_each('cased_text', '{x}' COLLATE ignoring_case)$$,
  $$SELECT bloom_index_partitions('cased_text', ('x' COLLATE ignoring_case)::bloom_key)$$,
  $$SELECT bloom_index_contains('cased_texts', '{x}' COLLATE ignoring_case)$$,
  $$SELECT bloom_index_contains('cased_citext', 'y' COLLATE "und-x-icu")$$,
  $$SELECT bloom_index_contains('cased_citext', 'y'::citext COLLATE "und-x-icu")$$);
SELECT bloom_index_contains('cased_text', 'X'), bloom_index_contains('cased_text', 'X' COLLATE "C"), bloom_index_contains('cased_citext', 'x'),
  bloom_index_contains('cased_texts', '{X}' COLLATE "C"), bloom_index_contains('cased_number', '5' COLLATE ignoring_case);
DROP TABLE cased;
DROP COLLATION ignoring_case;

--
-- An array where a key is expected
--

CALL try($$SELECT bloom_agg(1) @> ARRAY[1,2]$$,
  $$SELECT bloom_agg('a'::text) @> '{a}'::text[]$$,
  $$SELECT bloom_add(bloom_agg(1), ARRAY[1,2])$$);
CALL try($$SELECT bloom_agg(1) @> '{1,2}'$$,
  $$SELECT bloom_agg(1.5) @> '{1,2}'$$);
-- not if the filter holds arrays, or if it holds text
CALL try($$SELECT bloom_agg('{1}'::int8[]) @> ARRAY[1,2]$$,
  $$SELECT bloom_agg('{1}'::int8[]) @> 1$$);
CALL try($$SELECT bloom_agg('a'::text) @> '{1,2}'$$);
-- To add text that may be an array, its type must be known.
SELECT text, outcome(format('bloom_cardinality(bloom_add(bloom_agg(text %L), %L))', 'x', text))
  FROM unnest(ARRAY['{a,b}', '{}', ' {"a","b c"} ', '{{a},{NULL}}', E'{a\\,b}', '{a}']) text;
CALL try($$SELECT bloom_cardinality(bloom_add(NULL, '{a,b}'))$$,
  $$SELECT (SELECT filter FROM bloom_try_add(bloom_empty(), '{a,b}'))$$);
CALL try($$SELECT bloom_add(bloom_empty(key_type => 'bytea'), '{a,b}')$$);
CALL try($$SELECT bloom_add(bloom_empty(key_type => 'public.citext'), '{a,b}')$$);
CALL try($$SELECT bloom_add(bloom_agg('ok'::mood), '{ok}')$$);
PREPARE add_key AS SELECT bloom_add(bloom_empty(), $1);
EXECUTE add_key('{a,b}');
DEALLOCATE add_key;
SELECT outcome($$bloom_add(bloom_empty(), '{a,b}'::text) @> '{a,b}'$$) AS text, outcome($$bloom_add(bloom_empty(), 'a'::bytea) @> 'a'$$) AS bytea,
  outcome($$bloom_add(bloom_empty(key_type => 'jsonb'), '{}') @> '{}'$$) AS jsonb,
  outcome($$bloom_cardinality(bloom_add_all(bloom_empty(), '{a,b}'))$$) AS all;
SELECT text, outcome(format('bloom_add(bloom_empty(), %1$L) @> text %1$L', text)) AS added
  FROM unnest(ARRAY['{', '}', '{a', 'a}', 'a{b}', '{a}b', '{,}', '{"a"b}', '{"a": 1}', '{"a":{"b":[1,2]}}', '[1,2]', '"{a}"', '{a"b}',
    E'{a}\\', '}{']) text;
-- Casts between text and bytea are not the conversion that is meant.
SELECT outcome($$bloom_agg('a'::text) @> 'a'::bytea$$) AS to_text, outcome($$bloom_agg('a'::bytea) @> 'a'::text$$) AS to_bytea;
SELECT bloom_agg('ä'::text) @> convert_from(convert_to('ä', 'UTF8'), 'UTF8') AS to_text,
  bloom_agg(convert_to('ä', 'UTF8')) @> convert_to('ä', 'UTF8') AS to_bytea;

--
-- Arrays as text
--

CREATE TABLE f AS SELECT bloom_agg(i) AS ints, bloom_agg('k' || i) AS texts FROM generate_series(1, 100) i;
SELECT bloom_contains_any(ints, '{0,5}') AS "any", bloom_contains_any(ints, '{0}') AS not_any,
  bloom_contains_all(ints, '{1,2}') AS "all", bloom_contains_all(ints, '{1,1000}') AS not_all,
  bloom_contains_any(ints, '{}') AS any_of_none, bloom_contains_all(ints, '{}') AS all_of_none,
  bloom_contains_any(ints, '{NULL}') AS any_null, bloom_contains_any(ints, NULL) AS "null"
FROM f;
SELECT bloom_new_keys(ints, '{{1,1001},{"1002",1001}}') AS ints,
  bloom_new_keys(texts, E'[5:8]={k1,"a,b","\\"",NULL}') AS texts, bloom_new_keys(texts, '{}') AS none,
  pg_typeof(bloom_new_keys(ints, '{}')) AS type, pg_typeof(bloom_new_keys(ints, '{}'::int[])) AS typed
FROM f;
SELECT bloom_cardinality(bloom_add_all(ints, '{101,0101,7}')) AS added,
  bloom_add_all(ints, '{101}') = bloom_add_all(ints, ARRAY[101]) AS same,
  bloom_add_all(texts, '{}') = texts AS unchanged
FROM f;
CALL try($$SELECT bloom_contains_any(ints, '{1') FROM f$$);
CALL try($$SELECT bloom_contains_any(ints, '1') FROM f$$,
  $$SELECT bloom_contains_any(ints, '1,2') FROM f$$);
CALL try($$SELECT bloom_contains_any(ints, '{a}') FROM f$$);
CALL try($$SELECT bloom_add_all(ints, '{101,a}') FROM f$$);
CALL try($$SELECT bloom_new_keys(bloom_agg(ints::text::bloom), '{a}') FROM f$$);

-- Parameters without a type
PREPARE "any" AS SELECT bloom_contains_any(ints, $1) FROM f;
PREPARE "all" AS SELECT bloom_contains_all(texts, $1) FROM f;
PREPARE new AS SELECT bloom_new_keys(ints, $1) FROM f;
PREPARE add AS SELECT bloom_contains_all(bloom_add_all(ints, $1), $1) FROM f;
PREPARE one AS SELECT ints @> $1, texts @> $2 FROM f;
SELECT name, parameter_types FROM pg_prepared_statements ORDER BY name COLLATE "C";
EXECUTE "any"('{1000,3}');
EXECUTE "any"('{}');
EXECUTE "all"('{k1,k2}');
EXECUTE "all"('{k1,K2}');
EXECUTE new('{99,100,101}');
EXECUTE add('{1000,2000}');
EXECUTE one('5', 'k5');
SET plan_cache_mode = force_generic_plan;
EXECUTE "any"('{1000,3}');
EXECUTE one(' 5', ' k5');
RESET plan_cache_mode;
DEALLOCATE ALL;

-- One call gets filters of several key types.
CREATE TABLE mixed AS SELECT n, f FROM (VALUES (1, bloom_add(bloom_empty(), 5)), (2, bloom_add(bloom_empty(), '5'::text)),
  (3, bloom_empty()), (4, bloom_add(bloom_empty(), 5.00)), (5, bloom_add(bloom_empty(), '5'::jsonb)),
  (6, bloom_add(bloom_empty(), 5::float4)), (7, bloom_add(bloom_empty(), '5'::citext)), (8, bloom_add(bloom_empty(), 5))) v(n, f);
SELECT n, key_type, f @> '5' AS key, bloom_contains_any(f, '{4,5}') AS "any", bloom_add(f, '6') @> '6' AS added,
  bloom_new_keys(f, '{5,7}') AS new
FROM mixed, bloom_info(f) ORDER BY n;
SELECT n, f @> '5' AS key FROM mixed ORDER BY n DESC;
SELECT count(*) AS long FROM (SELECT bloom_agg(i) AS f FROM generate_series(1, 1000) i) x, generate_series(1, 1000) i
  WHERE bloom_contains_any(f, ARRAY[i, i + 1]::text::bloom_keys);

-- A type is found by name in any schema.
CREATE SCHEMA hidden;
ALTER EXTENSION citext SET SCHEMA hidden;
SELECT f @> '5' AS found FROM mixed WHERE n = 7;
ALTER EXTENSION citext SET SCHEMA public;
DROP SCHEMA hidden;
-- An enum need not exist any more.
CREATE TABLE moods AS SELECT bloom_agg('ok'::mood) AS f;
DROP TYPE mood;
SELECT f @> 'ok' AS found, bloom_contains_any(f, '{sad,ok}') AS "any" FROM moods;
-- If several types have its name, a label of any of them can be meant.
CREATE TYPE mood AS ENUM ('new');
CREATE SCHEMA other;
CREATE TYPE other.mood AS ENUM ('ok', 'fine');
SELECT outcome($$f @> 'ok' FROM moods$$) AS ok, outcome($$f @> 'new' FROM moods$$) AS new, outcome($$f @> 'okay' FROM moods$$) AS none;
SET client_min_messages = warning;
DROP SCHEMA other CASCADE;
RESET client_min_messages;
DROP TYPE mood;
-- Filters of others may have names that no type has here.
CREATE FUNCTION named(name text, code int DEFAULT 65) RETURNS bloom LANGUAGE sql AS $$
  SELECT (set_byte(set_byte(substr(f, 1, 44), 8, code), 9, length(utf8)) || utf8 ||
    decode(repeat('00', -length(utf8) & 7), 'hex') || substr(f, 53))::bloom
  FROM (SELECT bloom_add(bloom_empty(), tid '(1,2)')::bytea AS f, convert_to(name, 'UTF8') AS utf8) x
$$;
SELECT name, outcome(format('named(%L) @> 1', name)) FROM unnest('{tid,[,x[y,[[],x[],"[]@C","x[]@C","[]@@€"}'::text[]) WITH ORDINALITY n(name, n)
ORDER BY n;
SELECT outcome($$named('bloom_key') @> 'x'$$) AS key, outcome($$bloom_contains_any(named('bloom_keys'), '{x}')$$) AS keys,
  outcome($$named('bloom') @> 'x'$$) AS filter;
-- Names longer than those of types leave nothing in the catalog cache.
CREATE TABLE long AS SELECT set_byte(named(repeat('x', 80) || n % 2)::bytea, 10, 0) AS image FROM generate_series(1, 2) n;
UPDATE long SET image = set_byte(set_byte(image, 8, 64), 11, 0);
SELECT used_bytes AS bytes FROM pg_backend_memory_contexts WHERE name = 'CacheMemoryContext' \gset
SELECT count(*) AS found FROM long, generate_series(1, 4000) n WHERE image::bloom @> (n::text)::bloom_key;
UPDATE long SET image = named(repeat('x', 80) || ctid)::bytea;
DO $$ BEGIN
  FOR n IN 1..4000 LOOP
    PERFORM outcome(format('image::bloom @> %L FROM long', n));
  END LOOP;
END $$;
SELECT used_bytes - :bytes < 400000 AS same FROM pg_backend_memory_contexts WHERE name = 'CacheMemoryContext';

DROP TABLE f, mixed, moods, long;
DROP FUNCTION outcome, named;
DROP PROCEDURE try, try_each, create_ignoring_case;
DROP EXTENSION citext;
