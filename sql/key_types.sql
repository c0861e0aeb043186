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
SELECT outcome($$f @> '1'::a.tag FROM tags$$);
CREATE FUNCTION b.eq(b.tag, b.tag) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION b.hash(b.tag) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE FUNCTION b.hash(b.tag, int8) RETURNS int8 LANGUAGE internal IMMUTABLE STRICT AS 'hashint4extended';
CREATE OPERATOR b.= (FUNCTION = b.eq, LEFTARG = b.tag, RIGHTARG = b.tag);
CREATE OPERATOR CLASS b.tag_ops DEFAULT FOR TYPE b.tag USING hash AS OPERATOR 1 b.=, FUNCTION 1 b.hash(b.tag),
  FUNCTION 2 b.hash(b.tag, int8);
SELECT outcome($$f @> '1'::a.tag FROM tags$$);
SELECT outcome($$f @> '1'::b.tag FROM tags$$);
SELECT outcome($$bloom_agg(ARRAY['1'::a.tag])$$);
-- a literal does not choose between the two
SELECT outcome($$f @> '1' FROM tags$$);
SET client_min_messages = warning;
DROP TABLE tags;
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
DROP TABLE filters;

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
SELECT f @> 'big'::size AS new_label FROM sizes;
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
REINDEX INDEX shirts_hash;
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
DROP FUNCTION outcome, is_estimated;
DROP EXTENSION citext;
