--
-- KEY TYPES
-- Types of one key type have equal hashes; all others are distinguished,
-- independent of their names and schemas.  The extension's own types are
-- recognized after changes of its functions and its schema.
--

SET client_min_messages = warning;
CREATE EXTENSION citext;
RESET client_min_messages;

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

--
-- Every type in the catalog that can be a key.  Types with the same recorded
-- key type find each other's keys, so their hashes must be equal.
--

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
SELECT outcome($$bloom_agg('1 2'::oidvector) @> '{1,2}'::oid[]$$);
SELECT outcome($$bloom_agg('{1,2}'::oid[]) @> '1 2'::oidvector$$);
SELECT outcome($$bloom_agg('1 2'::oidvector) @> '1 2'::oidvector$$);

--
-- Types of one name in two schemas, and types that change.  The schema is not
-- recorded, so that a type can move; the components of a type are.
--

CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE TYPE a.pair AS (x int, y text);
CREATE TYPE b.pair AS (x int, z text);
CREATE TYPE b.other AS (x int);
CREATE TABLE pairs AS SELECT bloom_agg(ROW(1, 'a')::a.pair) AS f, bloom_agg(ARRAY[ROW(1, 'a')::a.pair]) AS arrays;
SELECT (bloom_info(f)).key_type AS composite, (bloom_info(arrays)).key_type AS array FROM pairs;
-- equal except for the name of an attribute, which does not matter
SELECT outcome($$f @> ROW(1, 'a')::b.pair FROM pairs$$);
-- another type in another schema
DROP TYPE b.pair;
CREATE TYPE b.pair AS (x int8, z text);
SELECT outcome($$f @> ROW(1, 'a')::b.pair FROM pairs$$);
SELECT outcome($$f | bloom_agg(ROW(1, 'a')::b.pair) FROM pairs GROUP BY f$$);
SELECT outcome($$arrays @> ARRAY[ROW(1, 'a')::b.pair] FROM pairs$$);
-- the type itself, after it moved, and after it changed
ALTER TYPE a.pair SET SCHEMA public;
SELECT outcome($$f @> ROW(1, 'a')::pair FROM pairs$$);
ALTER TYPE pair ADD ATTRIBUTE more int;
SELECT outcome($$f @> ROW(1, 'a', NULL)::pair FROM pairs$$);
ALTER TYPE pair DROP ATTRIBUTE more;
SELECT outcome($$f @> ROW(1, 'a')::pair FROM pairs$$);
ALTER TYPE pair ALTER ATTRIBUTE x TYPE numeric;
SELECT outcome($$f @> ROW(1, 'a')::pair FROM pairs$$);
-- nested components count at any depth
CREATE TYPE a.outer AS (r b.other, s int4range[]);
CREATE TABLE nested AS SELECT bloom_agg(ROW(ROW(1), '{"[1,2)"}')::a.outer) AS f;
SELECT outcome($$f @> ROW(ROW(1), '{"[1,2)"}')::a.outer FROM nested$$);
ALTER TYPE b.other ADD ATTRIBUTE y int;
SELECT outcome($$f @> ROW(ROW(1, NULL), '{"[1,2)"}')::a.outer FROM nested$$);
CREATE TYPE a.vector AS (v oidvector);
CREATE TYPE b.vector AS (v oid[]);
SELECT outcome($$bloom_agg(ROW('1 2')::a.vector) @> ROW('{1,2}')::b.vector$$);
-- ranges
CREATE TYPE a.span AS RANGE (subtype = int4);
CREATE TYPE b.span AS RANGE (subtype = text);
CREATE TYPE b.int4range AS RANGE (subtype = text);
SELECT outcome($$bloom_agg('[1,2)'::a.span) @> '[1,2)'::a.span$$);
SELECT outcome($$bloom_agg('[1,2)'::a.span) @> '[1,2)'::b.span$$);
SELECT outcome($$bloom_agg('{[1,2)}'::a.span_multirange) @> '{[1,2)}'::b.span_multirange$$);
SELECT outcome($$bloom_agg('[1,2)'::int4range) @> '[1,2)'::b.int4range$$);
-- no name equals that of another type with its components
CREATE TYPE a."#x" AS (x int);
CREATE TYPE a."##x" AS (x int);
SELECT outcome($$bloom_agg(ROW(1)::a."#x") @> ROW(1)::a."##x"$$);
SELECT key_type FROM (SELECT bloom_agg(ROW(1)::a."##x") AS f) x, bloom_info(f);

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
CREATE TYPE a.with_tag AS (t a.tag);
CREATE TABLE tags AS SELECT bloom_agg('1'::a.tag) AS f;
SELECT outcome($$f @> '1'::a.tag FROM tags$$);
CREATE FUNCTION b.eq(b.tag, b.tag) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION b.hash(b.tag) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE FUNCTION b.hash(b.tag, int8) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT AS 'hashint4extended';
CREATE OPERATOR b.= (FUNCTION = b.eq, LEFTARG = b.tag, RIGHTARG = b.tag);
CREATE OPERATOR CLASS b.tag_ops DEFAULT FOR TYPE b.tag USING hash AS OPERATOR 1 b.=, FUNCTION 1 b.hash(b.tag),
  FUNCTION 2 b.hash(b.tag, int8);
SELECT outcome($$f @> '1'::a.tag FROM tags$$);
SELECT outcome($$f @> '1'::b.tag FROM tags$$);
SELECT outcome($$bloom_agg(ROW('1')::a.with_tag)$$);
-- a literal does not choose between the two
SELECT outcome($$f @> '1' FROM tags$$);
SET client_min_messages = warning;
DROP TABLE pairs, nested, tags;
DROP TYPE pair;
DROP SCHEMA a, b CASCADE;
RESET client_min_messages;

--
-- A filter is no key.
--

CREATE TABLE filters AS SELECT bloom_agg(i) AS f FROM generate_series(1, 3) i;
SELECT outcome($$bloom_agg(f) FROM filters$$);
SELECT outcome($$f @> f FROM filters$$);
SELECT outcome($$bloom_add(f, f) FROM filters$$);
SELECT outcome($$bloom_add_all(f, ARRAY[f]) FROM filters$$);
SELECT outcome($$bloom_contains_any(f, ARRAY[f]) FROM filters$$);
SELECT outcome($$bloom_agg(ARRAY[f]) FROM filters$$);
CREATE TYPE with_filter AS (n int, f bloom);
SELECT outcome($$bloom_agg(ROW(1, f)::with_filter) FROM filters$$);
DROP TABLE filters;
DROP TYPE with_filter;

--
-- Two filters of different key types
--

SELECT outcome($$bloom_union(bloom_agg(1), bloom_agg('a'::text))$$);
SELECT outcome($$bloom_agg(1) & bloom_agg('a'::text)$$);
SELECT outcome($$bloom_union_agg(f) FROM (VALUES (bloom_add(bloom_empty(), 1)), (bloom_add(bloom_empty(), 1.0))) v(f)$$);
SELECT outcome($$bloom_intersection_cardinality(bloom_agg(1), bloom_agg(ARRAY[1]))$$);

--
-- Renamed labels of an enum.  Lookups of the new label do not find the hash of
-- the old one in a filter, in an index on bloom_hash and in a generated column
-- until these are rebuilt.
--

CREATE TYPE size AS ENUM ('small', 'large');
CREATE TABLE shirts (s size, hash bigint GENERATED ALWAYS AS (bloom_hash(s)) STORED);
INSERT INTO shirts VALUES ('small'), ('large');
CREATE INDEX shirts_hash ON shirts (bloom_hash(s));
CREATE TABLE sizes AS SELECT bloom_agg(s) AS f FROM shirts;
ALTER TYPE size RENAME VALUE 'large' TO 'big';
SELECT f @> 'big'::size AS new_label, f @> 'large' AS old_label FROM sizes;
SET enable_seqscan = off;
SELECT count(*) AS by_index FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
RESET enable_seqscan;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*) AS by_scan FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
SELECT count(*) AS by_column FROM shirts WHERE hash = bloom_hash('big'::size);
RESET enable_indexscan;
RESET enable_bitmapscan;
REINDEX INDEX shirts_hash;
UPDATE shirts SET s = s;
UPDATE sizes SET f = (SELECT bloom_agg(s) FROM shirts);
SET enable_seqscan = off;
SELECT count(*) AS by_index FROM shirts WHERE bloom_hash(s) = bloom_hash('big'::size);
RESET enable_seqscan;
SELECT count(*) AS by_column FROM shirts WHERE hash = bloom_hash('big'::size);
SELECT f @> 'big'::size AS new_label, f @> 'large' AS old_label FROM sizes;
DROP TABLE shirts, sizes;
DROP TYPE size;

--
-- The extension's types are recognized by their properties.
--

-- A function with a SET clause is called through a wrapper.
CREATE TABLE words AS SELECT 'w' || i % 1000 AS word FROM generate_series(1, 10000) i;
ANALYZE words;
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
CREATE TYPE bloom AS (x int);
SELECT elsewhere.bloom_contains(elsewhere.bloom_agg('w1'::bloom_key), 'x'::bloom_key) AS found,
  elsewhere.bloom_contains(elsewhere.bloom_agg(ROW(1)::bloom), ROW(1)::bloom) AS composite;
DROP TYPE bloom_key, bloom;
ALTER EXTENSION bloomfilter SET SCHEMA public;
SELECT :'f'::bloom @> 'w1' AS found, is_estimated(:'f') AS estimated;
DEALLOCATE probe;
DROP SCHEMA elsewhere;

-- A composite type that is changed while a function or a cursor goes on is another key type from then on.
CREATE TYPE changing AS (a int);
DO $$
DECLARE
  f bloom := bloom_agg(ROW(1)::changing);
  r changing;
BEGIN
  r := ROW(1);
  FOR i IN 1 .. 2 LOOP
    RAISE INFO '%: found %, %', i, f @> r, f @> ROW(1)::changing;
    IF i = 1 THEN
      EXECUTE 'ALTER TYPE changing ADD ATTRIBUTE b int';
    END IF;
  END LOOP;
END $$;
SELECT bloom_agg(ROW(1)::changing) AS changing \gset
BEGIN;
DECLARE c CURSOR FOR SELECT :'changing'::bloom @> ROW(1 + 0 * i)::changing AS found FROM generate_series(1, 3) i;
FETCH c;
ALTER TYPE changing ADD ATTRIBUTE b int;
FETCH c;
ROLLBACK;
-- Also if keys are added, and in arrays.
DO $$
DECLARE
  f bloom := bloom_agg(ROW(1)::changing);
BEGIN
  FOR i IN 1 .. 2 LOOP
    f := bloom_add_all(f, ARRAY[ROW(i)]::changing[]);
    RAISE INFO '%', bloom_cardinality(f);
    EXECUTE 'ALTER TYPE changing ADD ATTRIBUTE b int';
  END LOOP;
END $$;
DROP TYPE changing;

-- It is dropped and created again.
DROP FUNCTION recorded;
DROP EXTENSION bloomfilter;
CREATE TYPE bloom_key AS ENUM ('w1');
DROP TYPE bloom_key;
CREATE EXTENSION bloomfilter;
SELECT :'f'::bloom @> 'w1' AS found, is_estimated(:'f') AS estimated,
  outcome($$bloom_agg(bloom_empty())$$) AS filter_as_key;

DROP TABLE words;
DROP FUNCTION outcome, is_estimated;
DROP EXTENSION citext;
