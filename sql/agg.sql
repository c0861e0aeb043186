--
-- AGG
-- bloom_agg in every execution mode of aggregates.
--
\pset format unaligned
\pset tuples_only

-- 6,000 rows, 2,000 distinct keys, not sorted; some NULL.
CREATE TABLE items AS
  SELECT i % 7 AS g, i % 3 AS h, CASE WHEN i % 10 > 0 THEN (i * 7919) % 2000 END AS k
  FROM generate_series(1, 6000) i;
INSERT INTO items VALUES (7, 0, NULL), (7, 1, NULL);
ANALYZE items;
SELECT count(*) AS rows, count(k) AS keys, count(DISTINCT k) AS distinct_keys, count(DISTINCT g) AS groups FROM items;

--
-- One to four arguments
--
SELECT key_type, form, fpp, expected, seed, layers, cardinality BETWEEN 1780 AND 1820 AS cardinality
FROM (SELECT bloom_agg(k) AS f FROM items UNION ALL
      SELECT bloom_agg(k, 0.001) FROM items UNION ALL
      SELECT bloom_agg(k, 0.001, 2000) FROM items UNION ALL
      SELECT bloom_agg(k, 0.001, 2000, 5) FROM items UNION ALL
      SELECT bloom_agg(k, 0.001, NULL, 5) FROM items) f, bloom_info(f);
SELECT count(DISTINCT k) AS keys,
  count(DISTINCT k) FILTER (WHERE f1 @> k) AS one, count(DISTINCT k) FILTER (WHERE f2 @> k) AS two,
  count(DISTINCT k) FILTER (WHERE f3 @> k) AS three, count(DISTINCT k) FILTER (WHERE f4 @> k) AS four
FROM items, (SELECT bloom_agg(k) AS f1, bloom_agg(k, 0.001) AS f2, bloom_agg(k, 0.001, 2000) AS f3,
               bloom_agg(k, 0.001, 2000, 5) AS f4 FROM items) f;

--
-- NULL keys are skipped; without keys the filter is empty
--
SELECT bloom_agg(k) = bloom_empty(key_type => 'int') AS no_rows FROM items WHERE false;
SELECT bloom_agg(k) = bloom_empty(key_type => 'int') AS only_nulls, bloom_agg(k, 0.01, 5, 1) = bloom_empty(0.01, 5, 1, 'int') AS four FROM items WHERE g = 7;
SELECT g, bloom_agg(k) = bloom_empty(key_type => 'int') AS empty FROM items WHERE g > 4 GROUP BY g ORDER BY g;
SELECT bloom_agg(NULL) = bloom_empty(key_type => 'text') AS untyped,
  bloom_agg(NULL::text) = bloom_empty(key_type => 'text') AS typed FROM items;
SELECT bloom_agg(k)::bytea = (SELECT bloom_agg(k)::bytea FROM items WHERE k IS NOT NULL) AS nulls_leave_no_trace FROM items;
SELECT bloom_cardinality(bloom_agg(v)) AS keys FROM (VALUES (NULL), (1), (NULL), (1), (2), (NULL)) t(v);

--
-- Canonical: the same bytes whatever the plan, the order and the repetitions.
-- Three filters: sparse, dense with expected, and dense without expected; and
-- two whose state is of type bloom.
--
\set ECHO none
CREATE FUNCTION images(source text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('SELECT md5(bloom_agg(k, 0.001, 1000000)::bytea) || md5(bloom_agg(k, 0.01, 2000, 7)::bytea)
    || md5(bloom_agg(k)::bytea) || md5(bloom_agg_hash(bloom_hash(k), 0.01, 2000)::bytea)
    || md5(bloom_union_agg(bloom_add(bloom_empty(0.01, 2000), k))::bytea) FROM (%s) source', source) INTO result;
  RETURN result;
END
$$;
\set ECHO all
SELECT images('SELECT k FROM items') AS image \gset
SELECT images('SELECT k FROM items ORDER BY k') = :'image' AS ascending,
  images('SELECT k FROM items ORDER BY k DESC') = :'image' AS descending,
  images('SELECT k FROM items ORDER BY md5(k::text)') = :'image' AS shuffled,
  images('SELECT k FROM items ORDER BY md5(g || k::text || h)') = :'image' AS reshuffled,
  images('SELECT DISTINCT k FROM items') = :'image' AS distinct,
  images('SELECT k FROM items UNION ALL SELECT k FROM items') = :'image' AS doubled,
  images('SELECT k::int8 AS k FROM items') = :'image' AS int8,
  images('SELECT k::int2 AS k FROM items') = :'image' AS int2,
  images('SELECT k + 1 AS k FROM items') = :'image' AS others;
SELECT bloom_agg(DISTINCT k, 0.01, 2000)::bytea = image AS distinct,
  bloom_agg(k, 0.01, 2000 ORDER BY k)::bytea = image AS ordered,
  bloom_agg(k, 0.01, 2000 ORDER BY k DESC, g)::bytea = image AS descending,
  bloom_agg(k, 0.01, 2000) FILTER (WHERE k IS NOT NULL)::bytea = image AS filter,
  bloom_agg(k, 0.01, 2000) FILTER (WHERE g < 6)::bytea = image AS fewer,
  bloom_agg(k, 0.01, 2000) FILTER (WHERE g > 7) = bloom_empty(0.01, 2000, 0, 'int') AS none
FROM items, (SELECT bloom_agg(k, 0.01, 2000)::bytea AS image FROM items) i GROUP BY image;

-- Aggregates over groups by hashing and by sorting
CREATE TABLE grouped AS
  SELECT g, bloom_agg(k)::bytea AS f1, bloom_agg(k, 0.01, 1000)::bytea AS f2, bloom_agg(k, 0.01, 100000)::bytea AS f3
  FROM items GROUP BY g;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT g, bloom_agg(k) FROM items GROUP BY g;
SELECT count(*) AS groups, bool_and((f1, f2, f3) IS NOT DISTINCT FROM (a, b, c)) AS hashed
FROM grouped JOIN (SELECT g, bloom_agg(k)::bytea AS a, bloom_agg(k, 0.01, 1000)::bytea AS b,
    bloom_agg(k, 0.01, 100000)::bytea AS c FROM items GROUP BY g) i USING (g);
RESET enable_sort;
SET enable_hashagg = off;
EXPLAIN (COSTS OFF) SELECT g, bloom_agg(k) FROM items GROUP BY g;
SELECT count(*) AS groups, bool_and((f1, f2, f3) IS NOT DISTINCT FROM (a, b, c)) AS sorted
FROM grouped JOIN (SELECT g, bloom_agg(k)::bytea AS a, bloom_agg(k, 0.01, 1000)::bytea AS b,
    bloom_agg(k, 0.01, 100000)::bytea AS c FROM items GROUP BY g) i USING (g);
RESET enable_hashagg;
-- each group gives the result of a separate query
SELECT count(*) AS groups, bool_and(f2 IS NOT DISTINCT FROM (SELECT bloom_agg(k, 0.01, 1000)::bytea FROM items i WHERE i.g = o.g)) AS alone
FROM grouped o;

\set ECHO none
-- Whether a line of a plan matches; versions plan differently
CREATE FUNCTION plan_has(query text, pattern text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ pattern THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END
$$;
\set ECHO all

-- In parallel: workers build partial states, which are serialized and combined.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT bloom_agg(k) FROM items;
SELECT images('SELECT k FROM items') = :'image' AS parallel;
SET parallel_leader_participation = off;
SELECT images('SELECT k FROM items') = :'image' AS by_workers_alone;
-- make parallel plans cheap for few rows
SET parallel_tuple_cost = 0.1;
SET cpu_operator_cost = 0;
SET enable_sort = off;
SELECT plan_has('SELECT g, bloom_agg(k) FROM items GROUP BY g', 'Partial HashAggregate') AS partial;
SELECT count(*) AS groups, bool_and((f1, f2, f3) IS NOT DISTINCT FROM (a, b, c)) AS parallel
FROM grouped JOIN (SELECT g, bloom_agg(k)::bytea AS a, bloom_agg(k, 0.01, 1000)::bytea AS b,
    bloom_agg(k, 0.01, 100000)::bytea AS c FROM items GROUP BY g) i USING (g);
RESET enable_sort;
SET enable_hashagg = off;
SELECT plan_has('SELECT g, bloom_agg(k) FROM items GROUP BY g', 'Partial GroupAggregate') AS partial;
SELECT count(*) AS groups, bool_and((f1, f2, f3) IS NOT DISTINCT FROM (a, b, c)) AS parallel_and_sorted
FROM grouped JOIN (SELECT g, bloom_agg(k)::bytea AS a, bloom_agg(k, 0.01, 1000)::bytea AS b,
    bloom_agg(k, 0.01, 100000)::bytea AS c FROM items GROUP BY g) i USING (g);
RESET enable_hashagg;
RESET cpu_operator_cost;
SET parallel_tuple_cost = 0;
-- workers without rows, and workers with NULL only
SELECT bloom_agg(k) = bloom_empty(key_type => 'int') AS no_rows FROM items WHERE g = 8;
SELECT bloom_agg(k) = bloom_empty(key_type => 'int') AS only_nulls FROM items WHERE g = 7;
-- keys of other types: by reference, and with a key type that has a name
SELECT bool_and(f @> k::text AND f2 @> ARRAY[k]) AS found, count(*) FROM items,
  (SELECT bloom_agg(k::text) AS f, bloom_agg(ARRAY[k]) AS f2 FROM items WHERE k IS NOT NULL) f WHERE k IS NOT NULL;
-- errors in workers
DO $$
BEGIN
  PERFORM bloom_agg(k, 0.1 / (1 + h)) FROM items;
EXCEPTION WHEN OTHERS THEN
  RAISE INFO '%: %', SQLSTATE, SQLERRM;
END
$$;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;

-- Partition by partition
CREATE TABLE parted (g int, h int, k int) PARTITION BY LIST (h);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted SELECT g, h, k FROM items;
ANALYZE parted;
SET enable_partitionwise_aggregate = on;
SET max_parallel_workers_per_gather = 0;
SELECT plan_has('SELECT bloom_agg(k) FROM parted', 'Partial Aggregate') AS partial,
  plan_has('SELECT bloom_agg(k) FROM parted', 'Finalize Aggregate') AS finalize;
SELECT images('SELECT k FROM parted') = :'image' AS partitionwise;
SELECT count(*) AS groups, bool_and((f1, f2, f3) IS NOT DISTINCT FROM (a, b, c)) AS partitionwise
FROM grouped JOIN (SELECT g, bloom_agg(k)::bytea AS a, bloom_agg(k, 0.01, 1000)::bytea AS b,
    bloom_agg(k, 0.01, 100000)::bytea AS c FROM parted GROUP BY g) i USING (g);
SELECT h, bloom_cardinality(bloom_agg(k, 0.01, 100000)) AS keys FROM parted GROUP BY h ORDER BY h;
-- Partitions without rows have no state: all but one of them, or all.
SELECT plan_has('SELECT bloom_agg(k) FROM parted WHERE h + 0 NOT IN (0, 2)', 'Partial Aggregate') AS partial;
SELECT (SELECT bloom_agg(k) FROM parted WHERE h + 0 NOT IN (1, 2)) = (SELECT bloom_agg(k) FROM parted_0) AS first,
  (SELECT bloom_agg(k) FROM parted WHERE h + 0 NOT IN (0, 2)) = (SELECT bloom_agg(k) FROM parted_1) AS middle,
  (SELECT bloom_agg(k) FROM parted WHERE h + 0 NOT IN (0, 1)) = (SELECT bloom_agg(k) FROM parted_2) AS last,
  (SELECT bloom_agg(k) FROM parted WHERE h + 0 NOT IN (0, 1, 2)) = bloom_empty(key_type => 'int') AS none;
RESET enable_partitionwise_aggregate;
RESET max_parallel_workers_per_gather;

--
-- GROUPING SETS, ROLLUP, CUBE: each set gives the result of a separate query
--
CREATE TABLE few AS SELECT row_number() OVER (ORDER BY g, h, k) AS n, * FROM items WHERE k < 100 OR g = 7;
CREATE FUNCTION alone(g0 int, h0 int) RETURNS bytea LANGUAGE sql AS $$
  SELECT bloom_agg(k, 0.01, 300)::bytea FROM few WHERE (g = g0 OR g0 IS NULL) AND (h = h0 OR h0 IS NULL)
$$;
SELECT count(*) AS sets, count(f) AS filters, bool_and(f IS NOT DISTINCT FROM alone(g, h)) AS rollup
FROM (SELECT g, h, bloom_agg(k, 0.01, 300)::bytea AS f FROM few GROUP BY ROLLUP (g, h)) s;
SELECT count(*) AS sets, count(f) AS filters, bool_and(f IS NOT DISTINCT FROM alone(g, h)) AS cube
FROM (SELECT g, h, bloom_agg(k, 0.01, 300)::bytea AS f FROM few GROUP BY CUBE (g, h)) s;
SELECT count(*) AS sets, count(f) AS filters, bool_and(f IS NOT DISTINCT FROM alone(g, h)) AS sets
FROM (SELECT g, h, bloom_agg(k, 0.01, 300)::bytea AS f FROM few GROUP BY GROUPING SETS ((g), (h), ())) s;
SET enable_hashagg = off;
SELECT count(*) AS sets, count(f) AS filters, bool_and(f IS NOT DISTINCT FROM alone(g, h)) AS sorted_cube
FROM (SELECT g, h, bloom_agg(k, 0.01, 300)::bytea AS f FROM few GROUP BY CUBE (g, h)) s;
RESET enable_hashagg;
SELECT count(*) AS sets, bloom_agg(k) = bloom_empty(key_type => 'int') AS empty FROM few WHERE false GROUP BY GROUPING SETS ((), ());
SELECT g, bloom_cardinality(bloom_agg(k, 0.01, 300)) AS keys FROM few GROUP BY g
HAVING bloom_agg(k) @> (SELECT min(k) FROM few WHERE g = 3) ORDER BY bloom_cardinality(bloom_agg(k, 0.01, 300)), g;
DROP FUNCTION alone;

-- Many groups with little memory
SET work_mem = '64kB';
SET enable_sort = off;
SELECT count(*) AS groups, sum(bloom_cardinality(f)) AS keys, bool_and(f @> 2 * g AND f @> (2 * g + 1)) AS found
FROM (SELECT k / 2 AS g, bloom_agg(k) AS f FROM generate_series(0, 19999) k GROUP BY k / 2) g;
RESET enable_sort;
RESET work_mem;

--
-- Windows: a frame gives the result of a separate query, and computing an
-- intermediate result does not change later ones.
--
CREATE FUNCTION between_rows(first bigint, last bigint, fpp float8, expected bigint) RETURNS bytea LANGUAGE sql AS $$
  SELECT bloom_agg(k, fpp, expected)::bytea FROM few WHERE n BETWEEN first AND last
$$;
SELECT count(*) AS rows, max(n) AS last, count(DISTINCT k) AS keys FROM few;
SELECT count(*) AS frames, count(f1) AS filters,
  bool_and(f1 IS NOT DISTINCT FROM between_rows(1, n, 0.01, NULL)) AS self_sized,
  bool_and(f2 IS NOT DISTINCT FROM between_rows(1, n, 0.01, 250)) AS sized,
  bool_and(f3 IS NOT DISTINCT FROM between_rows(1, n, 0.001, 100000)) AS sparse
FROM (SELECT n, bloom_agg(k) OVER w::bytea AS f1, bloom_agg(k, 0.01, 250) OVER w::bytea AS f2,
        bloom_agg(k, 0.001, 100000) OVER w::bytea AS f3
      FROM few WINDOW w AS (ORDER BY n)) running;
-- also if the state is of type bloom
SELECT count(*) AS frames, bool_and(hashes = (between_rows(1, n, 0.01, 250)::bloom | typed)) AS hashes,
  bool_and(united = between_rows(1, n, 0.01, 250)::bloom) AS united
FROM (SELECT n, typed, bloom_agg_hash(bloom_hash(k), 0.01, 250) OVER w | typed AS hashes,
        bloom_union_agg(bloom_add(bloom_empty(0.01, 250), k)) OVER w AS united
      FROM few, bloom_empty(key_type => 'int') typed WINDOW w AS (ORDER BY n)) running;
SELECT count(*) AS frames, count(f) AS filters,
  bool_and(f IS NOT DISTINCT FROM between_rows(n - 2, n, 0.01, NULL)) AS moving,
  bool_and(f2 IS NOT DISTINCT FROM between_rows(n - 40, n + 3, 0.01, 30)) AS moving_dense
FROM (SELECT n, bloom_agg(k) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)::bytea AS f,
        bloom_agg(k, 0.01, 30) OVER (ORDER BY n ROWS BETWEEN 40 PRECEDING AND 3 FOLLOWING)::bytea AS f2
      FROM few) moving;
SELECT count(*) AS frames, count(f) AS filters,
  bool_and(f IS NOT DISTINCT FROM between_rows(n + 1, 100000, 0.01, 250)) AS following
FROM (SELECT n, bloom_agg(k, 0.01, 250) OVER (ORDER BY n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)::bytea AS f
      FROM few) following;
SELECT count(*) AS rows, bool_and(f IS NOT DISTINCT FROM (SELECT bloom_agg(k)::bytea FROM few WHERE g = w.g AND h <= w.h)) AS range,
  bool_and(f2 IS NOT DISTINCT FROM (SELECT bloom_agg(k)::bytea FROM few WHERE g = w.g AND h BETWEEN w.h - 1 AND w.h AND n <> w.n)) AS groups
FROM (SELECT n, g, h, bloom_agg(k) OVER (PARTITION BY g ORDER BY h)::bytea AS f,
        bloom_agg(k) OVER (PARTITION BY g ORDER BY h GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW)::bytea AS f2
      FROM few) w;
SELECT count(*) AS rows, bool_and(f IS NOT DISTINCT FROM (SELECT bloom_agg(k)::bytea FROM few WHERE g = w.g AND k % 2 = 0)) AS filtered
FROM (SELECT g, bloom_agg(k) FILTER (WHERE k % 2 = 0) OVER (PARTITION BY g)::bytea AS f FROM few) w;
-- more keys than expected: no key is lost
SET client_min_messages = error;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT f @> k) AS lost, max((bloom_info(f)).layers) > 1 AS layers,
  count(*) FILTER (WHERE NOT f @> first) AS lost_first
FROM (SELECT k, bloom_agg(k, 0.01, 5) OVER w AS f, first_value(k) OVER w AS first FROM few WHERE k IS NOT NULL WINDOW w AS (ORDER BY n)) w;
RESET client_min_messages;
DROP FUNCTION between_rows;

--
-- More keys than expected: one warning per query
--
SELECT (bloom_info(bloom_agg(k, 0.01, 100))).over_capacity FROM generate_series(1, 100) k;
SELECT (bloom_info(bloom_agg(k, 0.01, 10))).over_capacity FROM generate_series(1, 200) k;
SET enable_sort = off;
SELECT count(*) AS groups, bool_and((bloom_info(f)).over_capacity) AS over_capacity
FROM (SELECT bloom_agg(k, 0.01, 10) AS f FROM generate_series(1, 3) g, generate_series(1, 200) k GROUP BY g) g;
RESET enable_sort;
SELECT count(bloom_agg) AS frames FROM (SELECT bloom_agg(k % 200, 0.01, 10) OVER (PARTITION BY k / 200) FROM generate_series(0, 599) k) w;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
-- in parallel the layers, and its numbers, depend on the distribution of rows
SET client_min_messages = error;
SELECT (bloom_info(f)).over_capacity, found
FROM (SELECT bloom_agg(k, 0.01, 10) AS f FROM items) a, LATERAL (SELECT bool_and(f @> k) AS found FROM items) b;
RESET client_min_messages;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;
-- no warning without expected
SELECT (bloom_info(bloom_agg(k))).over_capacity FROM generate_series(1, 10000) k;

--
-- bloom_agg and repeated bloom_add
--
SELECT bloom_empty(0.01, 100) AS empty \gset
CREATE AGGREGATE add_all(anyelement) (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'empty', PARALLEL = SAFE);
CREATE AGGREGATE add_all_in_parallel(anyelement)
  (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'empty', COMBINEFUNC = bloom_union, PARALLEL = SAFE);
CREATE AGGREGATE add_labels(bloom_key) (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'empty');
SELECT n, add_all(k)::bytea = bloom_agg(k, 0.01, 100)::bytea AS equal, (bloom_info(add_all(k))).form,
  bool_and(k = 0 OR f @> k) AS found
FROM unnest('{0,1,12,13,100}'::int[]) n, generate_series(LEAST(n, 1), n) k,
  LATERAL (SELECT add_all(i) AS f FROM generate_series(1, n) i) f
GROUP BY n ORDER BY n;
SELECT add_all(k)::bytea = :'empty'::bloom::bytea AS nothing FROM items WHERE g = 7;
SELECT count(*) AS groups, bool_and(f @> g AND f @> (g + 70) AND NOT f @> (g + 1)) AS right
FROM (SELECT k % 7 AS g, add_all(k) AS f FROM generate_series(0, 699) k GROUP BY k % 7) g;
SELECT count(*) AS frames, bool_and(f @> n) AS found, bool_and(f::bytea = (SELECT add_all(i)::bytea FROM generate_series(1, n) i)) AS equal
FROM (SELECT n, add_all(n) OVER (ORDER BY n) AS f FROM generate_series(1, 60) n) w;
SELECT add_labels('x') @> 'x' AS found FROM generate_series(1, 2);
SELECT add_all(c) @> 'ABC' AS found, add_all(c ORDER BY c DESC) @> 'd' AS other FROM unnest('{abc,d}'::name[]) c;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan_has('SELECT add_all_in_parallel(k) FROM items', 'Partial Aggregate') AS partial;
SELECT count(*) FILTER (WHERE NOT f @> k) AS lost, count(k) AS keys FROM items, (SELECT add_all_in_parallel(k) AS f FROM items) f;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP AGGREGATE add_all(anyelement);
DROP AGGREGATE add_all_in_parallel(anyelement);
DROP AGGREGATE add_labels(bloom_key);

--
-- User-defined aggregates from our functions, and our functions elsewhere
--
CREATE AGGREGATE doubled(anyelement, float8) (SFUNC = bloom_agg_transfn, STYPE = internal, FINALFUNC = bloom_agg_finalfn,
  COMBINEFUNC = bloom_agg_combinefn, SERIALFUNC = bloom_agg_serialfn, DESERIALFUNC = bloom_agg_deserialfn, PARALLEL = SAFE);
SELECT doubled(k, 0.01) @> 1 AS found FROM generate_series(1, 100) k;
-- two aggregates share a state, which is then serialized twice
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT plan_has('SELECT bloom_agg(k, 0.01::float8), doubled(k, 0.01::float8) FROM items', 'Partial Aggregate') AS partial;
SELECT count(*) FILTER (WHERE NOT (a @> k AND b @> k)) AS lost, count(k) AS keys
FROM items, (SELECT bloom_agg(k, 0.01::float8) AS a, doubled(k, 0.01::float8) AS b FROM items) f;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP AGGREGATE doubled(anyelement, float8);
-- the state of another aggregate
CREATE AGGREGATE confused(anynonarray) (SFUNC = array_agg_transfn, STYPE = internal, FINALFUNC = bloom_agg_finalfn);
SELECT confused(k) FROM generate_series(1, 100) k;
DROP AGGREGATE confused(anynonarray);
-- a state that begins as an image
CREATE AGGREGATE add_hashes(bigint) (SFUNC = bloom_agg_hash_transfn, STYPE = bloom, INITCOND = :'empty',
  FINALFUNC = bloom_agg_hash_finalfn);
SELECT add_hashes(bloom_hash(k))::bytea = bloom_agg_hash(bloom_hash(k), 0.01, 100)::bytea AS equal,
  add_hashes(bloom_hash(k)) FILTER (WHERE k > 100) = :'empty'::bloom AS nothing FROM generate_series(1, 100) k;
SELECT count(*) AS groups, bool_and(bloom_contains_hash(f, bloom_hash(g + 70)) AND bloom_cardinality(f) = 10) AS right
FROM (SELECT k % 70 AS g, add_hashes(bloom_hash(k)) AS f FROM generate_series(0, 699) k GROUP BY k % 70) g;
DROP AGGREGATE add_hashes(bigint);
-- the state as the result, with a batch of hashes that are not yet added
CREATE AGGREGATE hash_state(bigint, float8, float8) (SFUNC = bloom_agg_hash_transfn, STYPE = bloom);
SELECT count(*) AS keys, count(*) FILTER (WHERE NOT bloom_contains_hash(f, bloom_hash(k))) AS lost
FROM (SELECT hash_state(bloom_hash(k), 0.01, 300000) AS f FROM generate_series(1, 70100) k OFFSET 0) x, generate_series(69000, 70100) k;
SELECT hash_state(bloom_hash(k), 0.01, 300000)::bytea = bloom_agg_hash(bloom_hash(k), 0.01, 300000)::bytea AS equal
FROM generate_series(1, 70100) k;
-- hashes that are not yet sorted, and duplicates among them
SELECT bloom_cardinality(hash_state(bloom_hash(k % 3), 0.01, 100)) AS keys FROM generate_series(1, 20) k;
SELECT bloom_contains_all(f, keys) AS "all", bloom_contains_any(f, ARRAY(SELECT -unnest(keys))) AS "any"
FROM (SELECT hash_state(bloom_hash(k), 0.01, 1e7) AS f, array_agg(k) AS keys FROM generate_series(1, 100000) k OFFSET 0) x;
SELECT k, bloom_contains_hash(f, bloom_hash(k / 2)) AS found, bloom_cardinality(f) AS keys
FROM (SELECT k, hash_state(bloom_hash(k / 2), 0.01, 100) OVER (ORDER BY k) AS f FROM generate_series(1, 4) k) x;
DROP AGGREGATE hash_state(bigint, float8, float8);
-- The states of all groups are in one memory context: hash aggregation visits
-- all contexts for each new group.
SET enable_sort = off;
SELECT DISTINCT (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'states of Bloom filter aggregates' AND f IS NOT NULL) AS contexts
FROM (SELECT g, bloom_agg_hash(g) AS f FROM generate_series(1, 20) g GROUP BY g OFFSET 0) x;
RESET enable_sort;
-- Support functions outside an aggregate
SELECT bloom_agg_hash_transfn(NULL, 1);
SELECT bloom_agg_key_transfn(bloom_empty(), '1');
SELECT bloom_agg_hash_combinefn(bloom_empty(), bloom_empty());
SELECT bloom_union_agg_transfn(NULL, bloom_empty());
SELECT bloom_intersection_agg_finalfn(bloom_empty());
-- SQL has no value of type internal, so this requires a superuser who redefines
-- them.
SELECT current_setting('data_directory') || '/bloomfilter_regress.copy' AS path \gset
CREATE TABLE received (f bloom);
COPY (SELECT bloom_empty()) TO :'path' (FORMAT binary);
BEGIN;
ALTER TYPE bloom SET (RECEIVE = bloom_agg_finalfn);
\set VERBOSITY terse
COPY received FROM :'path' (FORMAT binary);
ROLLBACK;
BEGIN;
ALTER TYPE bloom SET (RECEIVE = bloom_set_agg_finalfn);
COPY received FROM :'path' (FORMAT binary);
ROLLBACK;
\set VERBOSITY default
COPY received FROM :'path' (FORMAT binary);
SELECT count(*) AS received FROM received;
COPY (SELECT) TO PROGRAM 'cat >/dev/null; rm bloomfilter_regress.copy';
DROP TABLE received;

--
-- A plan that is run again reads its hash tables of partial states again, where
-- they were not too large for work_mem, as the one that finalizes them is.
--
CREATE TABLE ranges (g int, k int) PARTITION BY RANGE (k);
DO $$
BEGIN
  FOR i IN 0 .. 15 LOOP
    EXECUTE format('CREATE TABLE ranges_%s PARTITION OF ranges FOR VALUES FROM (%s) TO (%s)', i, i * 1000, i * 1000 + 1000);
  END LOOP;
END
$$;
INSERT INTO ranges SELECT i / 20, i FROM generate_series(0, 15999) i;
ANALYZE ranges;
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_partitionwise_aggregate = on;
SET LOCAL work_mem = '64kB';
SET LOCAL enable_material = off;
SET LOCAL enable_sort = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL cpu_tuple_cost = 1;
SELECT o, count(*) AS groups, count(*) FILTER (WHERE NOT f @> g * 20) AS lost
FROM generate_series(1, 3) o LEFT JOIN LATERAL
  (SELECT g, bloom_agg(k) AS f FROM ranges GROUP BY g HAVING bloom_cardinality(bloom_agg(k)) > o) x ON true
GROUP BY o ORDER BY o;
COMMIT;
DROP TABLE ranges;

--
-- Aggregates of users.  None takes rows out of a filter; the keys of a state
-- are counted once, also while they wait in it.
--
CREATE FUNCTION take_out(bloom, bigint) RETURNS bloom LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CREATE AGGREGATE moving(bigint) (SFUNC = bloom_agg_hash_transfn, STYPE = bloom,
  MSFUNC = bloom_agg_hash_transfn, MINVFUNC = take_out, MSTYPE = bloom);
SELECT moving(i) OVER (ORDER BY i ROWS 1 PRECEDING) IS NULL FROM generate_series(1, 9) i;
SELECT bloom_cardinality(moving(i)) FROM generate_series(1, 9) i;
SELECT i, bloom_cardinality(moving(i) OVER (ORDER BY i)) AS n FROM generate_series(1, 3) i;
DROP AGGREGATE moving(bigint);
DROP FUNCTION take_out;
CREATE AGGREGATE count_keys(bigint) (SFUNC = bloom_agg_hash_transfn, STYPE = bloom, FINALFUNC = bloom_cardinality);
SELECT count_keys(bloom_hash(i % 3)) FROM generate_series(1, 30) i;
SELECT i, count_keys(bloom_hash(i % 2)) OVER (ORDER BY i) AS n FROM generate_series(1, 4) i;
DROP AGGREGATE count_keys(bigint);
-- A state that is an image is loaded for each result, and released.
CREATE AGGREGATE unite(bloom) (SFUNC = bloom_union, STYPE = bloom, FINALFUNC = bloom_union_agg_finalfn);
CREATE FUNCTION memory(int) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT sum(total_bytes) FROM pg_backend_memory_contexts);
END $$;
SELECT max(memory) - min(memory) < 10000000 AS bounded, min(keys), max(keys)
FROM (SELECT bloom_cardinality(unite(f) OVER (ORDER BY i)) AS keys, memory(i)
  FROM (SELECT bloom_agg(k, 0.01, 100000) AS f FROM generate_series(1, 20000) k) f, generate_series(1, 300) i OFFSET 0) w;
DROP AGGREGATE unite(bloom);
DROP FUNCTION memory;
-- Frames of filters that are sized for their keys have all of them.
CREATE AGGREGATE unite(bloom) (SFUNC = bloom_union_agg_transfn, STYPE = bloom, FINALFUNC = bloom_agg_hash_finalfn);
CREATE AGGREGATE collect(bloom) (SFUNC = bloom_agg_hash_combinefn, STYPE = bloom, FINALFUNC = bloom_agg_hash_finalfn);
SELECT count(*) AS frames, bool_and(united @> i AND collected @> i) AS found, bool_and(united = whole AND collected = whole) AS same
FROM (SELECT i, unite(bloom_add(bloom_empty(), i)) OVER w AS united, collect(bloom_add(bloom_empty(), i)) OVER w AS collected,
    bloom_agg(i) OVER w AS whole
  FROM generate_series(1, 400) i WINDOW w AS (ORDER BY i)) w;
-- Of several processes, a key counts once in the warning.
SELECT bloom_cardinality(collect(f)) AS keys
FROM (SELECT bloom_agg(k, 0.01, 1000) AS f FROM generate_series(1, 1500) k, generate_series(0, 2) part WHERE k % 3 <> part GROUP BY part) parts;
DROP AGGREGATE unite(bloom);
DROP AGGREGATE collect(bloom);

DROP FUNCTION images, plan_has;
DROP TABLE items, few, grouped, parted;

-- Small sets are exact, and what they take; bloom_compact, or expected, makes
-- them small.
SELECT n, i.form, i.cardinality, i.bytes, c.form AS compact_form, c.bytes AS compact_bytes
  FROM (SELECT n, bloom_agg(i) AS f FROM unnest(ARRAY[1, 20, 100, 127, 128, 129, 200]) n, generate_series(1, n) i GROUP BY n) x,
	bloom_info(f) i, bloom_info(bloom_compact(f)) c ORDER BY n;
SELECT bloom_agg(i) = bloom_add_all(bloom_empty(), array_agg(i)) AS hashes FROM generate_series(1, 128) i;
SELECT count(*) AS groups, count(*) FILTER (WHERE n <> c) AS wrong
  FROM (SELECT g % 128 + 1 AS n, bloom_cardinality(bloom_agg(g * 1000 + i)) AS c
		  FROM generate_series(1, 1000) g, generate_series(1, g % 128 + 1) i GROUP BY g) x;
SELECT (bloom_info(bloom_agg(i, 0.01, 100))).form FROM generate_series(1, 100) i;

-- The rate of one small filter scatters around what it tells.
SELECT blocks, avg(rate / told) BETWEEN 0.9 AND 1.1 AS mean, stddev(rate / told) BETWEEN low AND high AS deviation
  FROM (SELECT i.bits / i.block_bits AS blocks, low, high, i.current_fpp AS told,
			(SELECT avg(found::int) FROM unnest(bloom_contains_each(f, ARRAY(SELECT generate_series(-20000, -1)))) found) AS rate
		  FROM (SELECT g, low, high, bloom_agg(g * 10000 + i, 0.01, n) AS f
				  FROM (VALUES (200, 0.12, 0.22), (5000, 0.02, 0.12)) v(n, low, high), generate_series(1, 60) g,
					generate_series(1, n) i GROUP BY g, n, low, high) x, bloom_info(f) i) y
 GROUP BY blocks, low, high ORDER BY blocks;

-- A frame that grows has the filter of its keys in each row, duplicates or not,
-- in time that is not quadratic.
SELECT count(*) AS rows, count(*) FILTER (WHERE f = g) AS same
  FROM (SELECT bloom_agg(u % 700) OVER (ORDER BY u) AS f, (SELECT bloom_agg(v % 700) FROM generate_series(1, u) v) AS g
		  FROM generate_series(1, 1000) u) x;
SELECT count(*) AS rows, count(*) FILTER (WHERE f = g) AS same
  FROM (SELECT bloom_agg(k, 1e-6) OVER (ORDER BY u) AS f,
			(SELECT bloom_agg(NULLIF((v * 7919) % 900, 5)::text, 1e-6) FROM generate_series(1, u) v) AS g
		  FROM generate_series(1, 800) u, LATERAL (SELECT NULLIF((u * 7919) % 900, 5)::text) k(k)) x;
SELECT count(*) AS rows, count(*) FILTER (WHERE f = g) AS same
  FROM (SELECT bloom_agg_hash(bloom_hash(u)) OVER (PARTITION BY u % 3 ORDER BY u) AS f,
			(SELECT bloom_agg_hash(bloom_hash(v)) FROM generate_series(1, u) v WHERE v % 3 = u % 3) AS g
		  FROM generate_series(1, 900) u) x;
SELECT count(*) AS rows, count(*) FILTER (WHERE f = g) AS same
  FROM (SELECT bloom_agg(u) OVER (ORDER BY u ROWS BETWEEN 200 PRECEDING AND CURRENT ROW) AS f,
			(SELECT bloom_agg(v) FROM generate_series(greatest(1, u - 200), u) v) AS g
		  FROM generate_series(1, 600) u) x;
DO $$
DECLARE
  start timestamptz;
  sized interval;
  unsized interval;
BEGIN
  start := clock_timestamp();
  PERFORM max(c) FROM (SELECT bloom_cardinality(bloom_agg(u, 0.01, 40000) OVER (ORDER BY u)) FROM generate_series(1, 20000) u) x(c);
  sized := clock_timestamp() - start;
  start := clock_timestamp();
  PERFORM max(c) FROM (SELECT bloom_cardinality(bloom_agg(u) OVER (ORDER BY u)) FROM generate_series(1, 20000) u) x(c);
  unsized := clock_timestamp() - start;
  -- about 1; quadratic it was 50
  RAISE INFO 'time in proportion to the rows: %', unsized < 10 * sized;
END
$$;

\set ECHO none
-- The planner knows how large states are: by the distinct keys that it
-- estimates in a group, and by the expected ones.
CREATE FUNCTION groups_hashed(call text, input text, groups text DEFAULT 'sets.g') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE format('EXPLAIN (FORMAT JSON) SELECT %s FROM %s GROUP BY %s', call, input, groups) INTO plan;
  RETURN CASE WHEN plan -> 0 -> 'Plan' ->> 'Strategy' <> 'Hashed' THEN lower(plan -> 0 -> 'Plan' ->> 'Strategy')
    WHEN (plan -> 0 -> 'Plan' ->> 'Planned Partitions')::int > 0 THEN 'hashed in parts' ELSE 'hashed' END;
END
$$;
\set ECHO all
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL work_mem = '1500kB';
SET LOCAL hash_mem_multiplier = 1;
CREATE TABLE sets AS SELECT i % 1000 AS g, i AS u, i % 5 AS v, i % 300 AS h FROM generate_series(1, 100000) i;
ANALYZE sets;
SELECT call, string_agg(DISTINCT groups_hashed(call, input), ', ') AS plans
  FROM unnest(ARRAY['bloom_agg(sets.u)', 'bloom_agg(sets.u, 0.01, NULL)', 'bloom_agg(sets.u, 0.01, 10 + 10)', 'bloom_agg(sets.u, 0.01, 1000000)',
	'bloom_agg(sets.v, 0.01, 1000000)', 'bloom_agg_hash(sets.u)', 'bloom_agg_hash(sets.u, 0.01, 20, 5)', 'bloom_agg_hash(sets.v)', 'bloom_agg(''a'')',
	'bloom_agg(sets.u, 0.01, sets.v)', 'bloom_agg(sets.u, 7, 20)', 'bloom_agg(sets.u, 0.01, 1e300)', 'bloom_agg(sets.u, 0.01, ''NaN'')',
	'bloom_union_agg(bloom_add(bloom_empty(), sets.u))', 'bloom_intersection_agg(bloom_empty())']) call,
	unnest(ARRAY['sets', 'sets LEFT JOIN sets b ON b.u = sets.u + 0', '(SELECT * FROM sets OFFSET 0) sets']) input
 GROUP BY call ORDER BY call COLLATE "C";
SELECT groups_hashed('bloom_agg(sets.u)', 'sets', 'GROUPING SETS ((g), (h))') AS "groups of 100 and 333 keys";
SET LOCAL work_mem = '64MB';
SELECT groups_hashed('bloom_agg(sets.u)', 'sets', 'GROUPING SETS ((g, v), (h, v))') AS "groups of 20 and 67 keys";
ROLLBACK;
DROP FUNCTION groups_hashed;
