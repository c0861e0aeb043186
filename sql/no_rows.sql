--
-- Aggregates over no rows: the result has the parameters of the call
--
\pset format unaligned
\pset tuples_only

CREATE FUNCTION params(f bloom) RETURNS text LANGUAGE sql PARALLEL SAFE AS $$
SELECT concat_ws(' ', coalesce(key_type, '-'), fpp, coalesce(expected::text, '-'), seed, cardinality) FROM bloom_info(f)
$$;
CREATE TABLE words (word text, n int, hash bigint, fpp float8, size numeric, seed bigint);

-- The arguments, and the type of the key
CREATE TABLE weak AS SELECT bloom_agg(word, 1e-6, 100000, 42) AS f FROM words;
UPDATE weak SET f = bloom_add(f, 'letmein'::text);
SELECT bloom_contains_hash(f, bloom_hash('letmein', 42)) AS found, i.fpp, i.expected, i.seed FROM weak, bloom_info(f) i;
SELECT bloom_add(bloom_agg(word, 0.01, 1000, 3), 5) FROM words;
SELECT params(bloom_agg(word)) AS no_argument, params(bloom_agg(n, 0.1)) AS fpp, params(bloom_agg(n::int2, 0.1, 50.5)) AS expected,
	params(bloom_agg(word::varchar, 0.1, NULL, -1)) AS seed, params(bloom_agg('5')) AS literal,
	params(bloom_agg(word::bloom_key, 0.02, 7, 8)) AS bloom_key FROM words;
SELECT params(bloom_agg_hash(hash)) AS no_argument, params(bloom_agg_hash(hash, 0.1, 5, 6)) AS all FROM words;
SELECT params(bloom_agg(ARRAY[n])) AS array, params(bloom_agg(word::jsonb)) AS jsonb, params(bloom_agg(word::json)) AS json FROM words;
SELECT params(bloom_agg(NULL::date, 0.1, 5, 6)) AS nulls, params(bloom_agg_hash(NULL, 0.1, 5, 6)) AS null_hashes
  FROM generate_series(1, 3);

-- Groups that FILTER empties; arguments that are columns of the GROUP BY clause, also in expressions
CREATE TABLE groups AS
SELECT g, 0.1 / g AS fpp, g * 100::numeric AS size, g + 0::bigint AS seed, i AS n
  FROM generate_series(1, 3) g, generate_series(1, 5) i;
ANALYZE groups;
SELECT g, params(bloom_agg(n, 1e-6, 1000, 77) FILTER (WHERE g = 2)) FROM groups GROUP BY g ORDER BY g;
SELECT g, params(bloom_agg(n, fpp::float8, size * 2, seed) FILTER (WHERE g = 2)) FROM groups GROUP BY seed, g, size, fpp ORDER BY g;
SET enable_hashagg = off;
SELECT g, params(bloom_agg(n, fpp::float8, size * 2, seed) FILTER (WHERE g = 2)) FROM groups GROUP BY seed, g, size, fpp ORDER BY g;
RESET enable_hashagg;
SELECT g, params(bloom_agg(n, 0.1, 5, 6)) FROM groups GROUP BY g HAVING bloom_agg(n, 0.1, 5, 6) FILTER (WHERE n < 0) @> 5;

SELECT params(bloom_agg(n, 0.1, 5, seed * 10 + 1) FILTER (WHERE false)) FROM groups GROUP BY seed * 10 ORDER BY 1;
-- Groups that are spilled to disk
SET work_mem = '64kB';
SET enable_sort = off;
SELECT count(*) AS groups, bool_and(params(f) = 'integer 0.1 5 ' || s || ' 0') AS known
  FROM (SELECT s, bloom_agg(i, 0.1, 5, s) FILTER (WHERE i < 0) AS f
		  FROM (SELECT i, i % 10000 + 0::bigint AS s FROM generate_series(1, 20000) i) x GROUP BY s) y;
RESET work_mem;
RESET enable_sort;

-- Grouping sets: a column is known in those that have it
SELECT params(bloom_agg(n, 0.1, 5, 6)) FROM words GROUP BY ROLLUP (word);
SELECT seed, params(bloom_agg(n, 0.1, 5, seed) FILTER (WHERE false)) FROM groups GROUP BY ROLLUP (seed) ORDER BY seed;
SELECT seed, g, params(bloom_agg(n, 0.1, 5, seed) FILTER (WHERE false)) FROM groups WHERE g < 3
 GROUP BY GROUPING SETS ((seed), (g), (seed, g)) ORDER BY seed, g;

-- Parameters of all kinds
PREPARE by_parameter (float8, int, bigint) AS SELECT params(bloom_agg(word, $1 / 2, $2, $3)) FROM words;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_parameter(0.1, 50, 60);
EXECUTE by_parameter(0.2, NULL, 61);
EXECUTE by_parameter(2, 50, 60);
EXECUTE by_parameter(NULL, 50, 60);
DEALLOCATE by_parameter;
DO $$
DECLARE
	rate float8 := 0.03;
BEGIN
	RAISE INFO '%', (SELECT params(bloom_agg(word, rate, 5, 6)) FROM words);
END $$;
RESET plan_cache_mode;
SELECT params(bloom_agg(word, 0.1, (SELECT count(*) + 1 FROM words), (SELECT max(seed) FROM groups))) AS subqueries FROM words;
SELECT s, f FROM generate_series(1, 2) s, LATERAL (SELECT params(bloom_agg(word, 0.1, s, s)) AS f FROM words WHERE n = s) x;
SELECT params(bloom_agg(word, 0.1, length(current_setting('server_encoding')), 5)) AS stable FROM words;

SELECT g, (SELECT params(bloom_agg(word, 0.1, groups.g * 10, groups.seed)) FROM words WHERE n = g) FROM groups WHERE n = 1 ORDER BY g;
CREATE FUNCTION inlined(rate float8, s bigint) RETURNS text LANGUAGE sql STABLE AS
'SELECT params(bloom_agg(word, rate, 5, s)) FROM words';
CREATE FUNCTION not_inlined(rate float8, s bigint) RETURNS text LANGUAGE sql STABLE SET work_mem = '4MB' AS
'SELECT params(bloom_agg(word, rate, 5, s)) FROM words';
SELECT inlined(0.2, 7), not_inlined(0.3, 8), inlined(fpp, seed) = not_inlined(fpp, seed) AS same FROM groups WHERE n = 1 AND g = 2;
SELECT params(bloom_agg(word, 0.1, 5, 6 ORDER BY n, seed)) AS ordered, params(bloom_agg(DISTINCT word, 0.1, 5, 6)) AS distinct FROM words;
CREATE DOMAIN whole AS int;
CREATE TYPE mood AS ENUM ('ok');
SELECT params(bloom_agg(n::whole)) AS domain, params(bloom_agg(word::mood)) AS enum FROM words;
DROP DOMAIN whole;
DROP TYPE mood;

-- What may differ between rows is not known: default parameters, and a warning
SELECT params(bloom_agg(word, fpp, 5, 6)) FROM words;
SELECT params(bloom_agg(word, 0.1, 5, seed)) AS f FROM words;
SELECT params(bloom_agg(n, 0.1, 5, seed) FILTER (WHERE false)) FROM groups WHERE seed < 3 GROUP BY g;
SELECT params(bloom_agg(word, 0.1, 5, (random() * 10)::int)) FROM words;
SELECT params(bloom_agg(word, 0.1, 5, (SELECT max(g.seed) FROM groups g WHERE g.n = words.n))) FROM words;

-- Window frames without rows
SELECT n, params(bloom_agg(n, 0.1, 5, 6) OVER (ORDER BY n ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING)) FROM groups WHERE g = 1;
SELECT n, params(bloom_agg(n, 0.1, 5, 6) FILTER (WHERE n > 4) OVER (ORDER BY n)) AS a, params(bloom_agg(n, 0.1, 5, 6) OVER w) AS b
  FROM groups WHERE g = 1 WINDOW w AS (ORDER BY n ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING);
SELECT n, params(bloom_agg(n, 0.1, 5, 6) OVER w) AS a, params(bloom_agg_hash(n, 0.1, 5, 7) OVER w) AS b,
	params(bloom_agg(n, 0.1, 5, seed) OVER w) AS c
  FROM groups WHERE g = 1 WINDOW w AS (ORDER BY n ROWS BETWEEN 4 FOLLOWING AND 5 FOLLOWING);

-- Parallel plans, and partition by partition
CREATE TABLE spread (LIKE groups) PARTITION BY HASH (n);
CREATE TABLE spread_0 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE spread_1 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO spread SELECT g.* FROM groups g, generate_series(1, 100);
INSERT INTO groups SELECT g.* FROM groups g, generate_series(1, 99);
ALTER TABLE groups SET (parallel_workers = 2);
ALTER TABLE words SET (parallel_workers = 2);
ANALYZE spread, groups;
PREPARE empty_parallel AS SELECT params(bloom_agg(word, 0.1, 5, 6)) AS a, params(bloom_agg_hash(hash, 0.1, 5, 7)) AS b,
	params(bloom_agg(word::bloom_key, 0.1, 5, 8)) AS c, params(bloom_agg(n, 0.1, (SELECT max(g) FROM groups), 9)) AS d FROM words;
PREPARE grouped_parallel AS SELECT g, params(bloom_agg(n, fpp::float8, size * 2, seed) FILTER (WHERE g = 2)) FROM groups
 GROUP BY seed, g, size, fpp ORDER BY g;
PREPARE grouped_partitions AS SELECT g, params(bloom_agg(n, fpp::float8, size * 2, seed) FILTER (WHERE g = 2)) FROM spread
 GROUP BY seed, g, size, fpp ORDER BY g;
PREPARE empty_partitions AS SELECT params(bloom_agg(n, 0.1, 5, 6) FILTER (WHERE n < 0)) FROM spread;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
\set ECHO none
CREATE FUNCTION is_partial(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE ' || statement LOOP
		IF line LIKE '%Partial%Aggregate' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;
\set ECHO all
SELECT is_partial('empty_parallel');
EXECUTE empty_parallel;
SET cpu_tuple_cost = 1;
SET cpu_operator_cost = 0;
SET parallel_tuple_cost = 1;
SELECT is_partial('grouped_parallel');
EXECUTE grouped_parallel;
SET enable_sort = off;
SELECT is_partial('grouped_parallel');
EXECUTE grouped_parallel;
RESET enable_sort;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_aggregate = on;
SELECT is_partial('grouped_partitions'), is_partial('empty_partitions');
EXECUTE grouped_partitions;
EXECUTE empty_partitions;
RESET ALL;

-- Aggregates of which PostgreSQL 19 computes parts below a join, on its inner or outer side
CREATE TABLE few AS SELECT i % 50 AS id, i % 5 AS g FROM generate_series(1, 250) i;
CREATE TABLE many AS SELECT i % 50 AS id, i % 4 AS seed, i AS n FROM generate_series(1, 2000) i;
CREATE TABLE most AS SELECT i % 50 AS id, i % 5 AS g FROM generate_series(1, 20000) i;
ANALYZE few, many, most;
SET cpu_operator_cost = 0;
SELECT g, params(bloom_agg(n, 0.1, 5, 6) FILTER (WHERE n < 0)) FROM many JOIN few USING (id) GROUP BY g ORDER BY g;
SELECT g, params(bloom_agg(n, 0.1, 5, 6) FILTER (WHERE n < 0)) FROM many JOIN most USING (id) GROUP BY g ORDER BY g;
SELECT g, seed, params(bloom_agg(n, 0.1, 5, seed) FILTER (WHERE n < 0)) FROM many JOIN most USING (id)
 WHERE g < 2 GROUP BY g, seed ORDER BY g, seed;
RESET cpu_operator_cost;

-- Of no filters, nothing is known: the union is neutral, the intersection is not there.
SELECT bloom_union_agg(f) = bloom_empty() AS neutral, bloom_intersection_agg(f) IS NULL AS none FROM weak WHERE false;

-- An aggregate with another transition function and our final function has other arguments.
CREATE FUNCTION transition(bloom, text, float8) RETURNS bloom LANGUAGE sql AS 'SELECT bloom_add($1, $2)';
CREATE AGGREGATE weighted(text, float8) (SFUNC = transition, STYPE = bloom, FINALFUNC = bloom_agg_hash_finalfn);
SELECT weighted(word, 2) = bloom_empty() AS neutral FROM words;

DROP AGGREGATE weighted(text, float8);
DROP FUNCTION params, is_partial, transition, inlined, not_inlined;
DROP TABLE words, weak, groups, spread, few, many, most;
