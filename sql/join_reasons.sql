--
-- Join filters: why a hash join has none
--
LOAD 'bloomfilter';
CREATE SCHEMA join_reasons;
SET search_path = join_reasons, public;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET join_collapse_limit = 1;
SET jit = off;
SET bloomfilter.join_filters = on;

-- Plans a query, and shows the messages.
CREATE PROCEDURE why(query text) LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL client_min_messages = debug1;
  EXECUTE 'EXPLAIN ' || query;
  SET LOCAL client_min_messages = notice;
END $$;

CREATE TABLE fact WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 1000 AS k, i % 50 AS g FROM generate_series(1, 20000) i;
CREATE TABLE dim WITH (autovacuum_enabled = off) AS SELECT i AS k, i % 2 AS g FROM generate_series(1, 20) i;
ANALYZE fact, dim;

-- A filter
CALL why('SELECT FROM fact JOIN dim USING (k)');
-- The statement
CALL why('UPDATE fact SET g = 0 FROM dim WHERE fact.k = dim.k');
CALL why('SELECT FROM fact JOIN dim USING (k) FOR UPDATE');
CALL why('WITH deleted AS (DELETE FROM dim) SELECT FROM fact JOIN dim USING (k)');
-- The type of the join
CALL why('SELECT FROM fact LEFT JOIN dim USING (k)');
CALL why('SELECT FROM fact FULL JOIN dim USING (k)');
-- Executed repeatedly
CALL why('SELECT (SELECT count(*) FROM fact JOIN dim ON fact.k = dim.k AND dim.g > outside.g) FROM dim AS outside');
-- Volatile functions
CALL why('WITH random AS MATERIALIZED (SELECT random() AS r) SELECT FROM fact JOIN dim USING (k) WHERE id > (SELECT r FROM random)');
CALL why('SELECT FROM (SELECT k, random() FROM fact OFFSET 0) AS fact JOIN dim USING (k)');
-- Keys
CALL why('SELECT FROM fact JOIN dim ON fact.k = (SELECT dim.k)');
CALL why('SELECT FROM (SELECT count(*) AS k FROM fact GROUP BY id) AS fact JOIN dim USING (k)');
CALL why('SELECT FROM (fact LEFT JOIN dim AS d USING (g)) JOIN dim ON 1000 / id = dim.k');
SET bloomfilter.join_filters = force;
CALL why('SELECT FROM (SELECT 1 AS k UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS four JOIN (SELECT k FROM dim LIMIT 3) AS three USING (k)');
SET bloomfilter.join_filters = on;
-- Nodes in between
CALL why('SELECT FROM (SELECT k FROM fact LIMIT 15000) AS fact JOIN dim USING (k)');
CALL why('SELECT count FROM (SELECT k, count(*) OVER (PARTITION BY g) FROM fact) AS fact JOIN dim USING (k)');
CREATE VIEW visible WITH (security_barrier) AS SELECT fact.k FROM fact JOIN dim USING (g);
CALL why('SELECT FROM (SELECT k FROM fact FULL JOIN dim USING (k)) AS fact JOIN dim USING (k)');
CALL why('SELECT FROM visible JOIN dim USING (k)');
-- Not worth it
CALL why('SELECT FROM fact a JOIN fact b USING (k)');
CALL why('SELECT FROM (SELECT k FROM fact WHERE id < 2000) AS fact JOIN dim USING (k)');
SET bloomfilter.join_filter_memory = 0;
CALL why('SELECT FROM fact JOIN dim USING (k)');
RESET bloomfilter.join_filter_memory;
CREATE FUNCTION expensive(int) RETURNS int IMMUTABLE COST 10000 LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CALL why('SELECT FROM fact JOIN dim ON expensive(fact.k) = dim.k');
SET bloomfilter.join_filter_min_rows = 0;
CALL why('SELECT FROM (dim LEFT JOIN fact AS f USING (g)) JOIN (SELECT k, g FROM fact WHERE id < 5000) AS i ON dim.k = i.k AND dim.g = i.g');
RESET bloomfilter.join_filter_min_rows;

-- The extension
BEGIN;
REVOKE EXECUTE ON FUNCTION bloom_join_probe FROM public;
CALL why('SELECT FROM fact JOIN dim USING (k)');
ROLLBACK;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION bloomfilter CASCADE;
CALL why('SELECT FROM fact JOIN dim USING (k)');
ROLLBACK;

-- From 18 on, an option of EXPLAIN tells it, too.
CREATE FUNCTION explained(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (JOIN_FILTERS, FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT string_agg(reason #>> '{}', ', ') FROM jsonb_path_query(plan, 'strict $.**."No Bloom Filter"') AS reason);
END $$;
CREATE FUNCTION explains(query text, expected text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN current_setting('server_version_num')::int < 180000 OR explained(query) IS NOT DISTINCT FROM expected;
END $$;
SELECT explains('SELECT FROM fact JOIN dim USING (k)', NULL);
SELECT explains('SELECT FROM fact LEFT JOIN dim USING (k)', 'it keeps outer rows without a match');
SELECT explains('SELECT FROM (SELECT k FROM fact LIMIT 15000) AS fact JOIN dim USING (k)', 'a node between the scan and the join must see all rows');
-- Of two joins, one has a filter, or both.
SELECT explains('SELECT FROM (SELECT k FROM fact JOIN dim USING (k) LIMIT 15000) AS fact JOIN dim USING (k)', 'a node between the scan and the join must see all rows');
SELECT explains('SELECT FROM fact JOIN dim USING (k) JOIN dim AS d ON fact.id = d.k', NULL);
SET plan_cache_mode = force_generic_plan;
PREPARE cached AS SELECT FROM fact JOIN dim USING (k);
SET bloomfilter.join_filters = off;
SELECT explains('EXECUTE cached', 'bloomfilter.join_filters is off');
SET bloomfilter.join_filters = on;
SELECT explains('EXECUTE cached', 'the plan was made with other settings or changed afterwards');
DEALLOCATE cached;
RESET plan_cache_mode;

-- The names of what is joined
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (1000);
CREATE INDEX ON dim (k);
SET enable_seqscan = off;
CALL why('SELECT FROM (parts LEFT JOIN fact AS f USING (k)) LEFT JOIN (dim CROSS JOIN (SELECT 1) AS one) ON dim.k = parts.k AND dim.k < 10');
CALL why('SELECT FROM generate_series(1, 20000) AS n FULL JOIN (VALUES (1), (2)) AS v (n) USING (n) FULL JOIN (SELECT 1 AS n) AS one USING (n)');
RESET enable_seqscan;

SET client_min_messages = warning;
DROP SCHEMA join_reasons CASCADE;
RESET client_min_messages;
