--
-- LOOKUP
-- Lookups in one filter, and adding to it: NULLs, forms, storage, contexts.
--
\pset format unaligned
\pset tuples_only

-- Filters of every form with the numbers 1 to n.
CREATE TABLE filters (form text, n int, f bloom);
INSERT INTO filters VALUES ('empty', 0, bloom_empty()), ('empty, sized', 0, bloom_empty(0.001, 1000));
INSERT INTO filters SELECT 'one', 1, bloom_agg(i) FROM generate_series(1, 1) i;
INSERT INTO filters SELECT 'sparse', 8, bloom_agg(i) FROM generate_series(1, 8) i;
INSERT INTO filters SELECT 'sparse, sized', 100, bloom_agg(i, 0.001, 1000) FROM generate_series(1, 100) i;
INSERT INTO filters SELECT 'dense', 1000, bloom_agg(i, 0.001, 1000) FROM generate_series(1, 1000) i;
INSERT INTO filters SELECT 'self-sized', 1000, bloom_agg(i) FROM generate_series(1, 1000) i;
INSERT INTO filters SELECT 'one block', 20, bloom_agg(i, 0.01, 20) FROM generate_series(1, 20) i;
INSERT INTO filters SELECT 'large blocks', 5000, bloom_agg(i, 1e-7, 5000) FROM generate_series(1, 5000) i;
SET client_min_messages = error;
INSERT INTO filters SELECT 'layers', 3000, bloom_agg(i, 0.001, 100) FROM generate_series(1, 3000) i;
RESET client_min_messages;
SELECT i.form, layers, block_bits, hashes, f.form AS filter FROM filters f, bloom_info(f) i ORDER BY n, f.form COLLATE "C";

-- Every key is found, by each of the three lookup forms, and of the next 1,000
-- no more than a rate of 0.01 allows.
SELECT form, count(*) AS keys,
  count(*) FILTER (WHERE bloom_contains(f, k)) AS contains,
  count(*) FILTER (WHERE f @> k) AS operator,
  count(*) FILTER (WHERE k <@ f) AS commuted
FROM filters, generate_series(1, n) k GROUP BY form, n ORDER BY n, form COLLATE "C";
SELECT form, count(*) AS others,
  count(*) FILTER (WHERE f @> k) <= 20 AS contains,
  bool_and(bloom_contains(f, k) = (f @> k) AND (k <@ f) = (f @> k)) AS agree
FROM filters, generate_series(n + 1, n + 1000) k GROUP BY form, n ORDER BY n, form COLLATE "C";

--
-- NULL for NULL: neither true nor false
--
SELECT bloom_contains(f, NULL::int) AS key, bloom_contains(NULL, 1) AS filter, bloom_contains(f, NULL) AS untyped,
  f @> NULL::int AS op_key, NULL::bloom @> 1 AS op_filter, NULL::int <@ f AS commuted_key, 1 <@ NULL::bloom AS commuted_filter
FROM filters WHERE form = 'dense';
SELECT bloom_cardinality(NULL) AS cardinality, bloom_fpp(NULL) AS fpp, bloom_info(NULL) IS NULL AS info,
  NULL::bloom::text AS text, NULL::bloom::bytea AS bytea, NULL::bytea::bloom AS bloom, bloom_send(NULL) AS send;
-- A row with a NULL result passes neither the condition nor its negation.
SELECT count(*) FILTER (WHERE f @> k) AS in, count(*) FILTER (WHERE NOT f @> k) AS not_in, count(*)
FROM filters, (VALUES (1), (NULL)) v(k) WHERE form = 'dense';

--
-- Adding
--

-- Added keys and earlier keys are found, and the argument of the function is
-- unchanged.
SELECT form, count(*) AS added,
  count(*) FILTER (WHERE bloom_add(f, k) @> k) AS found,
  count(*) FILTER (WHERE n = 0 OR bloom_add(f, k) @> n AND bloom_add(f, k) @> 1) AS others,
  count(*) FILTER (WHERE f @> k) <= 20 AS untouched
FROM filters, generate_series(n + 1, n + 1000) k GROUP BY form, n ORDER BY n, form COLLATE "C";
SELECT form, count(*) AS added_again, bool_and(bloom_add(f, k)::bytea = f::bytea) AS unchanged
FROM filters, generate_series(1, n) k GROUP BY form, n HAVING n > 0 ORDER BY n, form COLLATE "C";

\set ECHO none
-- One by one from empty to several layers: no key is lost, each form occurs,
-- and the reported numbers increase.
CREATE FUNCTION grow(fpp float8, expected bigint, n int,
  OUT lost int, OUT forms text, OUT shrinks int, OUT valid bool) LANGUAGE plpgsql AS $$
DECLARE
  f bloom := bloom_empty(fpp, expected);
  i record;
  last record := bloom_info(f);
BEGIN
  lost := 0; shrinks := 0; valid := true; forms := 'empty';
  FOR k IN 1 .. n LOOP
    f := bloom_add(f, k);
    i := bloom_info(f);
    IF NOT f @> k OR NOT f @> (1 + (k * 7919::bigint) % k)::int THEN
      lost := lost + 1;
    END IF;
    IF i.form = last.form AND (i.cardinality < last.cardinality OR i.bytes < last.bytes OR i.layers < last.layers) THEN
      shrinks := shrinks + 1;
    END IF;
    IF (i.form, i.layers) <> (last.form, last.layers) THEN
      forms := forms || format(' %s%s', i.form, NULLIF(i.layers, 0));
      -- filters that were not built by an aggregate are valid, too
      valid := valid AND f::text::bloom::bytea = f::bytea;
    END IF;
    last := i;
  END LOOP;
  FOR k IN 1 .. n LOOP
    IF NOT f @> k THEN
      lost := lost + 1;
    END IF;
  END LOOP;
END
$$;
\set ECHO all
SELECT fpp, expected, n, g.*
FROM (VALUES (0.01, NULL, 3000), (0.01, 1000, 1000), (0.01, 20, 1000), (0.5, 1, 1500), (1e-9, 10, 1000)) v(fpp, expected, n),
  grow(fpp, expected, n) g;
DROP FUNCTION grow;

--
-- Storage: a filter in a column, short, plain, compressed, out of line, and
-- as part of other values.
--

CREATE TABLE stored (flag bool, n int, form text, f bloom, pad char, f_main bloom, f_extended bloom, f_plain bloom);
ALTER TABLE stored ALTER f_main SET STORAGE main, ALTER f_extended SET STORAGE extended, ALTER f_plain SET STORAGE plain;
INSERT INTO stored SELECT true, n, form, f, 'x', f, f, CASE WHEN octet_length(f::bytea) < 2000 THEN f END FROM filters;
-- sparsely filled bits: these do compress
INSERT INTO stored SELECT true, 100, 'hardly filled', f, 'x', f, f, NULL
  FROM (SELECT bloom_agg(i, 0.1, 16000) | bloom_agg(i) FILTER (WHERE i <= 100) AS f FROM generate_series(1, 1500) i) f;
SELECT count(*) AS filters,
  count(*) FILTER (WHERE pg_column_size(f) < octet_length(f::bytea) + 4) AS short_header,
  count(*) FILTER (WHERE pg_column_size(f) >= 2000 AND pg_column_compression(f) IS NULL) AS external,
  count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL) AS compressed,
  count(*) FILTER (WHERE pg_column_compression(f_main) IS NOT NULL) > 0 AS main_compressed,
  count(*) FILTER (WHERE pg_column_compression(f_extended) IS NOT NULL) > 0 AS extended_compressed
FROM stored;
SELECT count(*) AS keys,
  count(*) FILTER (WHERE f @> k) AS f,
  count(*) FILTER (WHERE f_main @> k) AS f_main,
  count(*) FILTER (WHERE k <@ f_extended) AS f_extended,
  count(*) FILTER (WHERE f_plain @> k IS NOT false) AS f_plain
FROM stored, generate_series(1, LEAST(n, 1000)) k;
SELECT bool_and(f::bytea = f_main::bytea AND f_main::bytea = f_extended::bytea AND
    COALESCE(f_plain::bytea = f::bytea, true)) AS equal,
  bool_and((f_extended | f_main)::bytea = (f | f)::bytea) AS union,
  bool_and(bloom_add(f_extended, 1)::bytea = bloom_add(f, 1)::bytea) AS add,
  bool_and(bloom_cardinality(f_extended) = bloom_cardinality(f)) AS cardinality,
  bool_and(bloom_fpp(f_main) = bloom_fpp(f)) AS fpp,
  bool_and(bloom_info(f_main) = bloom_info(f)) AS info,
  bool_and(f_main::text = f::text) AS text
FROM stored;

-- Adding to a stored filter, in one transaction after the other.
UPDATE stored SET f = bloom_add(f, -1);
UPDATE stored SET f = bloom_add(bloom_add(f, -2), -3) WHERE NOT f @> -2;
SELECT count(*), bool_and(f @> -1 AND f @> -2 AND f @> -3) AS found, bool_and(f @> 1) AS still_there
FROM stored WHERE n > 0;
BEGIN;
UPDATE stored SET f = bloom_add(f, -4);
ROLLBACK;
SELECT count(*) FILTER (WHERE f @> -4) <= 1 AS rolled_back FROM stored;

-- In arrays, composites, defaults, generated columns and checks.
CREATE TYPE pair AS (label text, filter bloom);
CREATE TABLE parts (k int,
  f bloom DEFAULT bloom_empty(0.01, 100),
  g bloom GENERATED ALWAYS AS (bloom_add(bloom_empty(), k)) STORED,
  a bloom[], c pair,
  CHECK (bloom_cardinality(f) < 100), CHECK (g @> k));
INSERT INTO parts (k, a, c) SELECT k, ARRAY[bloom_add(bloom_empty(), k), NULL, f], ROW('x', f)::pair
  FROM generate_series(1, 3) k, filters WHERE form = 'large blocks';
SELECT k, f @> k AS f, g @> k AS g, a[1] @> k AS a1, a[2] @> k AS a2, a[3] @> k AS a3, (c).filter @> k AS c,
  bloom_add(f, k) @> k AS added FROM parts ORDER BY k;
UPDATE parts SET k = k + 10;
SELECT k, g @> k AS found, g @> (k - 10) AS stale FROM parts ORDER BY k;
DROP TABLE parts;
DROP TYPE pair;

--
-- Contexts: all of them count the same 1,000 keys.
--

CREATE TABLE numbers AS SELECT k FROM generate_series(-999, 9000) k;
ANALYZE numbers;
CREATE VIEW known AS SELECT f FROM filters WHERE form = 'dense';
CREATE FUNCTION is_known(k int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT f @> k FROM known';
-- their number, including false positives
SELECT count(*) AS n FROM numbers, known WHERE f @> k \gset
SELECT :n BETWEEN 1000 AND 1020 AS within_rate;
SELECT count(*) - :n AS subquery FROM numbers WHERE (SELECT f FROM known) @> k;
SELECT count(*) - :n AS commuted FROM numbers WHERE k <@ (SELECT f FROM known);
SELECT count(*) - :n AS built FROM numbers WHERE (SELECT bloom_agg(i, 0.001, 1000) FROM generate_series(1, 1000) i) @> k;
SELECT count(*) - :n AS joined FROM numbers JOIN known ON f @> k;
SELECT count(*) - :n AS outer FROM numbers LEFT JOIN known ON k <@ f WHERE f IS NOT NULL;
SELECT count(*) - :n AS lateral FROM numbers, LATERAL (SELECT f @> k AS hit FROM known OFFSET 0) l WHERE hit;
SELECT count(*) - :n AS semijoin FROM numbers WHERE EXISTS (SELECT FROM known WHERE f @> k);
SELECT count(*) + :n - 10000 AS antijoin FROM numbers WHERE NOT EXISTS (SELECT FROM known WHERE f @> k);
WITH cte AS MATERIALIZED (SELECT f FROM known) SELECT count(*) - :n AS cte FROM numbers, cte WHERE f @> k;
SELECT count(*) FILTER (WHERE is_known(k)) - :n AS function FROM numbers;
SELECT f AS constant FROM known \gset
SELECT count(*) - :n AS constant FROM numbers WHERE :'constant'::bloom @> k;
SELECT count(*) - :n AS constant FROM numbers WHERE bloom_contains(:'constant', k);
PREPARE parameter(bloom) AS SELECT count(*) - $2 AS parameter FROM numbers WHERE $1 @> k;
EXECUTE parameter(:'constant', :n);
SET plan_cache_mode = force_generic_plan;
EXECUTE parameter(:'constant', :n);
RESET plan_cache_mode;
DEALLOCATE parameter;
DO $$
DECLARE
  f bloom := (SELECT f FROM known);
  hits int := 0;
BEGIN
  FOR i IN -999 .. 9000 LOOP
    IF f @> i THEN hits := hits + 1; END IF;
  END LOOP;
  IF hits <> (SELECT count(*) FROM numbers, known WHERE k <@ known.f) THEN
    RAISE WARNING 'plpgsql found %', hits;
  END IF;
END
$$;
-- indexes on lookups
CREATE INDEX partial ON numbers (k) WHERE bloom_contains('QkxNRgEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAHsUrkfheoQ/AAAAAAAAAAA=', k);
CREATE INDEX expression ON numbers ((bloom_add(bloom_empty(), 5) @> k));
SELECT count(*) FROM numbers WHERE bloom_add(bloom_empty(), 5) @> k;
-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
SELECT count(*) - :n AS constant_in_workers FROM numbers WHERE :'constant'::bloom @> k;
SELECT count(*) - :n AS subquery_in_workers FROM numbers WHERE (SELECT f FROM known) @> k;
SELECT count(*) - :n AS literals_in_workers FROM numbers,
  (SELECT bloom_agg(k::text) AS f FROM numbers WHERE k BETWEEN 1 AND :n) f WHERE f @> k::text AND k BETWEEN 1 AND :n;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;

DROP FUNCTION is_known;
DROP VIEW known;
DROP TABLE filters, stored, numbers;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA contains_each;
SET search_path = contains_each, public;
--
-- CONTAINS_EACH
-- bloom_contains_each returns a result for each key of an array.
--

CREATE TABLE filters (form text PRIMARY KEY, f bloom NOT NULL);
INSERT INTO filters VALUES
	('empty', bloom_empty()),
	('sparse', bloom_add_all(bloom_empty(), ARRAY[1, 2, 3])),
	('dense', (SELECT bloom_agg(i, 1e-6, 2000) FROM generate_series(1, 2000) i)),
	('stored', (SELECT bloom_agg(i, 1e-6, 100000) FROM generate_series(1, 100000) i)),
	('stored list', (SELECT bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 100000) i)),
	('layers', (SELECT bloom_add_all(bloom_empty(1e-6, 5000), array_agg(i)) FROM generate_series(1, 60000) i));
SELECT filters.form, layers, bytes > 14000 AS large FROM filters, bloom_info(f) ORDER BY filters.form;

-- One result per key, in order; NULL for NULL
SELECT form, bloom_contains_each(f, ARRAY[3, -1, NULL, 1, 3, -2]) FROM filters ORDER BY form;

-- The results of bloom_contains, for any number of keys
SELECT form, n, bool_and(answers IS NOT DISTINCT FROM (SELECT array_agg(f @> k ORDER BY o) FROM unnest(keys) WITH ORDINALITY u (k, o))) AS same,
	count(*)
  FROM filters,
	(SELECT n, array_agg(CASE WHEN i % 7 > 0 THEN i * 7919 % 100003 - 50 * (i % 3) END ORDER BY i) AS keys
	   FROM (VALUES (1), (2), (9), (100), (5000)) v (n), generate_series(1, n) i GROUP BY n) k,
	bloom_contains_each(f, keys) answers
 GROUP BY form, n ORDER BY form, n;

-- Dimensions and lower bounds are those of the keys.
SELECT bloom_contains_each(f, ARRAY[[1, 9001], [NULL, 2]]) AS nested, bloom_contains_each(f, '[5:6]={1,9001}'::int[]) AS bounds,
	bloom_contains_each(f, '[-1:0][2:2]={{9001},{3}}'::int[]) AS both, bloom_contains_each(f, '{}'::int[]) AS empty,
	bloom_contains_each(f, ARRAY[NULL, NULL]::int[]) AS nulls, bloom_contains_each(f, ARRAY[[[NULL]]]::int[]) AS one_null,
	bloom_contains_each(f, ARRAY[1, 2]::bigint[]) AS widths, array_dims(bloom_contains_each(f, ARRAY[[1], [2]])) AS dims
  FROM filters WHERE form = 'sparse';
SELECT bloom_contains_each(bloom_add(bloom_empty(), 'a'), ARRAY['a', 'b', NULL]) AS texts,
	bloom_contains_each(bloom_add(bloom_empty(), 1.0), ARRAY[1.00, 2]) AS numerics;
-- The null bitmap has 8 elements per byte.
SELECT answers = array_agg(CASE WHEN i % 3 > 0 THEN i <= 3 END ORDER BY i) AS same, cardinality(answers)
  FROM filters, generate_series(1, 41) i,
	bloom_contains_each(f, (SELECT array_agg(CASE WHEN i % 3 > 0 THEN i END ORDER BY i) FROM generate_series(1, 41) i)) answers
 WHERE form = 'sparse' GROUP BY answers;

-- As a join: the new keys of a batch
SELECT key FROM filters, ROWS FROM (unnest('{5,1,7}'::int[]), unnest(bloom_contains_each(f, '{5,1,7}'::int[]))) AS u (key, known)
 WHERE form = 'sparse' AND NOT known;

-- NULL for NULL
SELECT bloom_contains_each(NULL, ARRAY[1]) IS NULL AS filter, bloom_contains_each(f, NULL::int[]) IS NULL AS keys
  FROM filters WHERE form = 'sparse';

-- An expanded filter of PL/pgSQL
DO $$
DECLARE
	f bloom := bloom_empty();
BEGIN
	f := bloom_add(f, 1);
	f := bloom_add(f, 2);
	RAISE INFO '%', bloom_contains_each(f, ARRAY[2, 3, 1]);
END $$;

-- Errors
SELECT bloom_contains_each(f, ARRAY['a'::text]) FROM filters WHERE form = 'stored';
SELECT bloom_contains_each(bloom_empty(), ARRAY['1'::json]);

DROP TABLE filters;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA novelty;
SET search_path = novelty, public;
--
-- bloom_try_add
--
SELECT added, filter @> 'a' AS contains FROM bloom_try_add(bloom_empty(), 'a');
SELECT added, filter = f AS unchanged
  FROM (SELECT bloom_add(bloom_empty(), 1) AS f) x, bloom_try_add(f, 1::bigint);
SELECT bloom_try_add(bloom_add(bloom_empty(), 1), 'a'::text);

-- in a loop: every new key is reported as new, except false positives
DO $$
DECLARE
	f bloom := bloom_empty(0.001, 3000);
	new bool;
	news int := 0;
	news_again int := 0;
BEGIN
	FOR i IN 1 .. 3000 LOOP
		SELECT * INTO f, new FROM bloom_try_add(f, i);
		news := news + new::int;
	END LOOP;
	FOR i IN 1 .. 3000 LOOP
		SELECT * INTO f, new FROM bloom_try_add(f, i);
		news_again := news_again + new::int;
	END LOOP;
	RAISE INFO 'at least 2980: %, again: %', news >= 2980, news_again;
END $$;

-- How many elements are found, and how many of them were probably added
SELECT contained BETWEEN 990 AND 1300 AS found, abs(estimate - 100) < 100 AS estimate
  FROM bloom_contains_count((SELECT bloom_agg(i, 0.1, 1000) FROM generate_series(1, 1000) i),
	ARRAY(SELECT generate_series(901, 10900)));
SELECT keys, c.* FROM (VALUES ('{1,2,2,NULL,7}'::int[]), ('{}'), ('{NULL}'), ('{7,8}'), ('{{1,2},{3,9}}')) k (keys),
	bloom_contains_count(bloom_add_all(bloom_empty(), ARRAY[1, 2, 3]), keys) c;
SELECT * FROM bloom_contains_count(bloom_add_all(bloom_empty(), ARRAY[1, 2, 3]), '{1,3,5}');
SELECT * FROM bloom_contains_count(bloom_empty(), ARRAY['a']);
SELECT * FROM bloom_contains_count(NULL, ARRAY['a']);
SELECT * FROM bloom_contains_count(bloom_add(bloom_empty(), 1), ARRAY['a']);
-- An estimate is between 0 and what is found, also with a rate of nearly 1.
SELECT c.contained > 900 AS found, c.estimate BETWEEN 0 AND c.contained AS estimate, bloom_fpp(f) > 0.9 AS rate
  FROM (SELECT bloom_union_agg(g) AS f FROM (SELECT bloom_agg(i, 0.5, 300) AS g FROM generate_series(1, 2700) i GROUP BY i % 9) x) y,
	bloom_contains_count(f, ARRAY(SELECT generate_series(5001, 6000))) c;
CREATE TABLE counted AS SELECT bloom_agg(i, 0.01, 100000) AS f FROM generate_series(1, 100000) i;
SELECT c.contained BETWEEN 100 AND 120 AS found, c.estimate BETWEEN 90 AND 110 AS estimate
  FROM counted, bloom_contains_count(f, ARRAY(SELECT generate_series(99901, 100900))) c;
DO $$
DECLARE
  f bloom := bloom_empty(0.1, 1000);
  n bigint;
BEGIN
  FOR i IN 1 .. 200 LOOP
    f := bloom_add(f, i);
  END LOOP;
  SELECT contained INTO n FROM bloom_contains_count(f, ARRAY(SELECT generate_series(101, 200)));
  RAISE INFO '%', n;
END
$$;
DROP TABLE counted;
