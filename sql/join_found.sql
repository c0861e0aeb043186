--
-- Join filters: queries that once had another result than without them
--
LOAD 'bloomfilter';
CREATE SCHEMA join_found;
SET search_path = join_found, public;
SET bloomfilter.join_filters = force;
SET bloomfilter.join_filter_min_rows = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
CREATE TABLE large WITH (autovacuum_enabled = off) AS SELECT i, 'k' || i AS t FROM generate_series(0, 999) AS i;
CREATE TABLE small WITH (autovacuum_enabled = off) AS SELECT 10 * i AS i, 'k' || i AS t FROM generate_series(0, 50) AS i;
ANALYZE large, small;

-- A call by a user has the number of a filter, of which the keys are text.
SELECT count(*) FROM large JOIN small USING (t) WHERE bloom_join_probe(1, large.i);
SELECT count(*) FROM large JOIN small USING (t) WHERE bloom_join_probe(1, large.t || 'x') AND
	bloom_join_probe(1, large.t, large.i) AND bloom_join_probe(NULL, large.i);

-- Arrays, ranges and records of a type that has no extended hash function
SET client_min_messages = warning;
CREATE TYPE plain_int;
CREATE FUNCTION plain_in(cstring) RETURNS plain_int LANGUAGE internal STRICT IMMUTABLE AS 'int4in';
CREATE FUNCTION plain_out(plain_int) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'int4out';
CREATE TYPE plain_int (INPUT = plain_in, OUTPUT = plain_out, LIKE = int4);
RESET client_min_messages;
CREATE FUNCTION plain_hash(plain_int) RETURNS int LANGUAGE internal STRICT IMMUTABLE AS 'hashint4';
CREATE FUNCTION plain_eq(plain_int, plain_int) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4eq';
CREATE FUNCTION plain_lt(plain_int, plain_int) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4lt';
CREATE FUNCTION plain_le(plain_int, plain_int) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4le';
CREATE FUNCTION plain_ge(plain_int, plain_int) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4ge';
CREATE FUNCTION plain_gt(plain_int, plain_int) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4gt';
CREATE FUNCTION plain_cmp(plain_int, plain_int) RETURNS int LANGUAGE internal STRICT IMMUTABLE AS 'btint4cmp';
CREATE OPERATOR = (LEFTARG = plain_int, RIGHTARG = plain_int, FUNCTION = plain_eq, COMMUTATOR = =, HASHES, MERGES);
CREATE OPERATOR < (LEFTARG = plain_int, RIGHTARG = plain_int, FUNCTION = plain_lt, COMMUTATOR = >);
CREATE OPERATOR <= (LEFTARG = plain_int, RIGHTARG = plain_int, FUNCTION = plain_le, COMMUTATOR = >=);
CREATE OPERATOR >= (LEFTARG = plain_int, RIGHTARG = plain_int, FUNCTION = plain_ge, COMMUTATOR = <=);
CREATE OPERATOR > (LEFTARG = plain_int, RIGHTARG = plain_int, FUNCTION = plain_gt, COMMUTATOR = <);
CREATE OPERATOR CLASS plain_ops DEFAULT FOR TYPE plain_int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 plain_cmp(plain_int, plain_int);
CREATE OPERATOR CLASS plain_ops DEFAULT FOR TYPE plain_int USING hash AS OPERATOR 1 =, FUNCTION 1 plain_hash(plain_int);
CREATE TYPE plain_range AS RANGE (SUBTYPE = plain_int);
CREATE TYPE plain_record AS (k plain_int);
CREATE TABLE plain WITH (autovacuum_enabled = off) AS
SELECT i, p AS single, ARRAY[p] AS several, plain_range(p, p, '[]') AS range,
	plain_multirange(plain_range(p, p, '[]')) AS ranges, ROW(p)::plain_record AS record
  FROM (SELECT i, i::text::plain_int AS p FROM generate_series(0, 99) AS i) AS keys;
ANALYZE plain;
SELECT count(*) FROM plain a JOIN plain b USING (single) WHERE b.i < 10;
SELECT count(*) FROM plain a JOIN plain b USING (several) WHERE b.i < 10;
SELECT count(*) FROM plain a JOIN plain b USING (range) WHERE b.i < 10;
SELECT count(*) FROM plain a JOIN plain b USING (ranges) WHERE b.i < 10;
SELECT count(*) FROM plain a JOIN plain b USING (record) WHERE b.i < 10;

-- A key that fails is evaluated only for rows for which the join does so.
CREATE TABLE emptied WITH (autovacuum_enabled = off) AS SELECT i FROM generate_series(1, 100) AS i;
ANALYZE emptied;
DELETE FROM emptied;
SELECT count(*) FROM large JOIN emptied ON 1000 / large.i = emptied.i;
SELECT * FROM (SELECT i FROM large ORDER BY i DESC) AS l JOIN small ON 1000 / l.i = small.i + 1 LIMIT 1;
CREATE TABLE divided (x int, y int) WITH (autovacuum_enabled = off);
INSERT INTO divided VALUES (NULL, 0), (0, 100), (1, 100), (2, 10);
ANALYZE divided;
SET join_collapse_limit = 1;
SELECT a.i, b.i, divided.*
  FROM (large a JOIN small b USING (t)) JOIN divided ON a.i = divided.x AND b.i = 1000 / divided.y;
RESET join_collapse_limit;

-- Operators of a user, over hash functions of PostgreSQL: unsigned numbers
CREATE FUNCTION same(oid, bigint) RETURNS bool LANGUAGE plpgsql STRICT IMMUTABLE AS 'BEGIN RETURN $1::bigint = $2; END';
CREATE FUNCTION same(bigint, oid) RETURNS bool LANGUAGE plpgsql STRICT IMMUTABLE AS 'BEGIN RETURN $1 = $2::bigint; END';
CREATE OPERATOR === (LEFTARG = oid, RIGHTARG = bigint, FUNCTION = same, COMMUTATOR = ===, HASHES);
CREATE OPERATOR === (LEFTARG = bigint, RIGHTARG = oid, FUNCTION = same, COMMUTATOR = ===, HASHES);
CREATE OPERATOR FAMILY unsigned_ops USING hash;
ALTER OPERATOR FAMILY unsigned_ops USING hash ADD OPERATOR 1 === (oid, bigint), OPERATOR 1 === (bigint, oid),
	FUNCTION 1 (oid, oid) hashoid(oid), FUNCTION 1 (bigint, bigint) hashint8(bigint);
CREATE TABLE unsigned WITH (autovacuum_enabled = off) AS SELECT 4294967295 - i AS b, (4294967295 - i)::oid AS o FROM generate_series(0, 99) AS i;
ANALYZE unsigned;
SELECT count(*) FROM unsigned x JOIN unsigned y ON x.o === y.b;
SELECT count(*) FROM unsigned x JOIN unsigned y ON x.b === y.o;

-- An aggregate or window function sees all rows of a group or none, so that
-- what fails for a part of a group, here for one row of two, does not fail.
CREATE TABLE pairs WITH (autovacuum_enabled = off) AS SELECT i / 2 AS k, i % 2 AS n FROM generate_series(0, 19999) AS i;
CREATE INDEX ON pairs (k);
VACUUM ANALYZE pairs;
SET enable_hashagg = off;
SET enable_sort = off;
SET enable_seqscan = off;
SELECT count(*), sum(r) FROM small JOIN (SELECT k, 10 / (count(*) - 1) AS r FROM pairs GROUP BY k) AS p ON p.k = small.i;
SELECT count(*), sum(r)
  FROM small JOIN (SELECT k, 10 / (count(*) OVER (PARTITION BY k) - 1) AS r FROM pairs) AS p ON p.k = small.i;
RESET enable_sort;
RESET enable_seqscan;
RESET enable_hashagg;
DROP INDEX pairs_k_idx;
SELECT count(*), sum(r)
  FROM small JOIN (
	SELECT k, 10 / (count(*) - 1) AS r
	  FROM (
		SELECT k FROM pairs WHERE n = 0
		UNION ALL
		SELECT k + 0 * extract(day FROM now())::int FROM pairs WHERE n = 1) AS p
	 GROUP BY k) AS p ON p.k = small.i;
-- as most rows have a match, only samples are probed
SET bloomfilter.join_filters = on;
CREATE TABLE most WITH (autovacuum_enabled = off) AS SELECT k FROM generate_series(0, 9999) AS k WHERE k % 8 <> 1;
ANALYZE most;
SELECT count(*), sum(r)
  FROM (SELECT k, 10 / (count(*) - 1) AS r FROM pairs GROUP BY k) AS p
 WHERE k IN (SELECT k FROM most);
SET bloomfilter.join_filters = force;
-- The time of planning is not exponential in the depth of the plan.
SET statement_timeout = '2min';
SELECT 'EXPLAIN (COSTS OFF) SELECT count(*) FROM large t0' || string_agg(format(' LEFT JOIN large t%s USING (i)', n), '' ORDER BY n) ||
	' JOIN small USING (i)' AS deep FROM generate_series(1, 30) AS n \gset
SET client_min_messages = error;
CREATE FUNCTION lines(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n bigint := 0;
BEGIN
	FOR line IN EXECUTE query LOOP
		n := n + (line ~ 'bloom_join_probe')::int;
	END LOOP;
	RETURN n;
END $$;
SELECT lines(:'deep') > 0 AS filtered;
RESET statement_timeout;

SET client_min_messages = warning;
DROP SCHEMA join_found CASCADE;
RESET ALL;
