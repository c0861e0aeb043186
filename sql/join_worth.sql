--
-- JOIN_WORTH
-- What a query reads and computes with join filters is no more than without,
-- counted in rows, calls and errors; and why a hash join has none.
--
\pset format unaligned
\pset tuples_only
LOAD 'bloomfilter';
CREATE SCHEMA join_cost;
SET search_path = join_cost, public;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET join_collapse_limit = 1;
SET jit = off;

\set ECHO none
-- The rows that the scans of a table read in an execution of the query.
CREATE FUNCTION rows_read(query text, alias text, mode text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	PERFORM set_config('bloomfilter.join_filters', mode, true);
	EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
	RETURN sum((node ->> 'Actual Rows')::numeric + COALESCE((node ->> 'Rows Removed by Filter')::numeric, 0))
	  FROM jsonb_path_query(plan, 'strict $.** ? (exists(@.Alias))') node WHERE node ->> 'Alias' = alias;
END $$;

-- The rows that a scan returns, and the number of filters in the plan.
CREATE FUNCTION rows_passed(query text, alias text, mode text DEFAULT 'force', OUT filters bigint, OUT passed bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	PERFORM set_config('bloomfilter.join_filters', mode, true);
	EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
	filters := (SELECT count(*) FROM jsonb_path_query(plan, 'strict $.**."Bloom Filters"[*]'));
	passed := (SELECT sum((node ->> 'Actual Rows')::numeric)
	             FROM jsonb_path_query(plan, 'strict $.** ? (exists(@.Alias))') node WHERE node ->> 'Alias' = alias);
END $$;
\set ECHO all

--
-- A filter goes to both sides of an inner hash join below that finds them equal,
-- to whichever of the two the key of the upper join belongs.
--
CREATE TABLE sold WITH (autovacuum_enabled = off) AS SELECT i % 1000 AS k, (i % 1000)::bigint AS b, i % 20 AS g FROM generate_series(1, 20000) AS i;
CREATE TABLE item WITH (autovacuum_enabled = off) AS SELECT i AS k, i::bigint AS b, i % 50 AS g FROM generate_series(0, 999) AS i;
CREATE TABLE rare WITH (autovacuum_enabled = off) AS SELECT i AS k, i::bigint AS b, i - 500 AS g FROM generate_series(500, 504) AS i;
ANALYZE sold, item, rare;
SELECT alias, (rows_passed('SELECT FROM (sold JOIN item ON sold.k = item.k) JOIN rare ON ' || key || ' = rare.k', alias)).*
  FROM unnest(ARRAY['sold', 'item']) AS alias, unnest(ARRAY['sold.k', 'item.k']) AS key;
-- three columns, of which the lowest join compares two
SELECT alias, (rows_passed('SELECT FROM (sold JOIN item ON sold.k = item.k JOIN item AS i ON i.k = item.k) JOIN rare ON i.k = rare.k', alias)).*
  FROM unnest(ARRAY['sold', 'item', 'i']) AS alias;
-- not by an equality of other types, whose hash may be another; nor of other columns
SELECT alias, (rows_passed('SELECT FROM (sold JOIN item ON sold.k = item.b) JOIN rare ON item.b = rare.b', alias)).*
  FROM unnest(ARRAY['sold', 'item']) AS alias;
SELECT alias, (rows_passed('SELECT FROM (sold JOIN item ON sold.k = item.k) JOIN rare ON item.g = rare.g', alias)).*
  FROM unnest(ARRAY['sold', 'item']) AS alias;
-- nor where a row without a match remains
SELECT alias, (rows_passed('SELECT FROM (sold LEFT JOIN item ON sold.k = item.k) JOIN rare ON sold.k = rare.k', alias)).*
  FROM unnest(ARRAY['sold', 'item']) AS alias;
-- nor below a grouping, where there is one key in all scans or none
SELECT alias, (rows_passed('SELECT FROM (SELECT sold.k FROM sold JOIN item ON sold.k = item.k GROUP BY sold.k) AS s JOIN rare ON s.k = rare.k', alias)).*
  FROM unnest(ARRAY['sold', 'item']) AS alias;

--
-- A scan does not read on where the query would have stopped: a hash join in
-- between would read one row of its outer side, and end if its inner side is
-- empty.  With a filter it reads its inner side first.
--
CREATE TABLE fact WITH (autovacuum_enabled = off) AS
SELECT i AS id, i % 1000 AS k, i % 50 AS g, 0 AS pad FROM generate_series(1, 20000) AS i;
CREATE TABLE dim WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(900, 910) AS i;
CREATE TABLE emptied WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(1, 1000) AS i;
ANALYZE fact, dim, emptied;
DELETE FROM emptied;
SELECT mode, rows_read('SELECT * FROM (fact JOIN emptied ON fact.g = emptied.k) JOIN dim ON fact.k = dim.k', 'fact', mode)
  FROM unnest(ARRAY['off', 'force']) AS mode;
-- with another condition, which the expression interpreter evaluates, and which fails for the tenth row
SELECT mode, rows_read('SELECT * FROM (fact JOIN emptied ON fact.g = emptied.k) JOIN dim ON fact.k = dim.k WHERE 1 / (10 - fact.id) < 5', 'fact', mode)
  FROM unnest(ARRAY['off', 'force']) AS mode;
-- two joins, of which the second one is empty
CREATE TABLE half WITH (autovacuum_enabled = off) AS SELECT i AS g FROM generate_series(25, 49) AS i;
ANALYZE half;
SELECT mode, rows_read('SELECT * FROM (fact JOIN half ON fact.g = half.g JOIN emptied ON fact.g = emptied.k) JOIN dim ON fact.k = dim.k', 'fact', mode)
  FROM unnest(ARRAY['off', 'force']) AS mode;
SELECT mode, rows_read('SELECT * FROM (fact JOIN half ON fact.g + 25 = half.g) JOIN dim ON fact.k = dim.k LIMIT 5', 'fact', mode)
  FROM unnest(ARRAY['off', 'force']) AS mode;
SELECT rows_passed('SELECT * FROM (fact JOIN half ON fact.g + 25 = half.g) JOIN dim ON fact.k = dim.k', 'fact');
-- a scan that is hashed below the outer side has fewer rows
CREATE TABLE tagged WITH (autovacuum_enabled = off) AS SELECT i AS g, i AS tag FROM generate_series(25, 49) AS i;
CREATE TABLE tags AS SELECT 49 AS tag;
ANALYZE tagged, tags;
SELECT mode, rows_read('SELECT * FROM (fact JOIN tagged ON fact.g = tagged.g JOIN emptied ON fact.g = emptied.k) JOIN tags USING (tag)', 'fact', mode)
  FROM unnest(ARRAY['off', 'force']) AS mode;
-- Below aggregates, too, all rows are probed.
SET bloomfilter.join_filters = force;
SELECT count(*), sum(r) FROM (
	SELECT f.k, 10 / (count(*) - 1) AS r FROM (SELECT id % 10000 AS k, g + 25 AS g FROM fact OFFSET 0) AS f JOIN half USING (g) GROUP BY f.k) AS f
  JOIN dim USING (k);
RESET bloomfilter.join_filters;
-- A grouping has a filter before it reads its input, although the inner side takes longer to read.
CREATE TABLE many_groups WITH (autovacuum_enabled = off) AS SELECT i % 10000 AS k FROM generate_series(1, 20000) AS i;
CREATE TABLE wide_dim WITH (autovacuum_enabled = off) AS SELECT i AS k, repeat('x', 1000) AS pad FROM generate_series(1, 10000) AS i;
ANALYZE many_groups, wide_dim;
SELECT mode, rows_passed('SELECT * FROM (SELECT k, count(*) FROM many_groups GROUP BY k) AS f JOIN wide_dim USING (k) WHERE left(pad, 2) = ''x''', 'many_groups', mode)
  FROM unnest(ARRAY['on', 'force']) AS mode;
-- 19 can aggregate before the join
DO $$ BEGIN PERFORM set_config(name, 'off', false) FROM pg_settings WHERE name = 'enable_eager_aggregate'; END $$;
SELECT rows_passed('SELECT sum(n) FROM (SELECT fact.k, count(*) AS n FROM fact JOIN half USING (g) GROUP BY fact.k) AS f JOIN dim USING (k)', 'fact');
-- also below a left join
SELECT rows_passed('SELECT sum(n) FROM (SELECT fact.k, count(*) AS n FROM fact LEFT JOIN half USING (g) GROUP BY fact.k) AS f JOIN dim USING (k)', 'fact');

--
-- CTEs and scalar subqueries are executed once: their joins have filters as
-- those of the query, also below nodes that keep rows.
--
SELECT rows_passed('WITH c AS MATERIALIZED (SELECT s.k FROM (SELECT * FROM fact ORDER BY g, id OFFSET 0) AS s JOIN dim USING (k))
  SELECT count(*) FROM c AS a JOIN c AS b USING (k)', 'fact');
SELECT rows_passed('SELECT (SELECT count(*) FROM (SELECT * FROM fact ORDER BY g, id OFFSET 0) AS s JOIN dim USING (k)) FROM generate_series(1, 3)', 'fact');
-- with an inner side that could be another one in another execution
SELECT rows_passed('SELECT (SELECT count(*) FROM fact JOIN (SELECT * FROM dim LIMIT 5) AS d USING (k)) FROM generate_series(1, 3)', 'fact');
-- in a subquery of a subquery, and in one that is executed for each row
SELECT rows_passed('SELECT (WITH c AS MATERIALIZED (SELECT s.k FROM (SELECT * FROM fact ORDER BY g, id OFFSET 0) AS s JOIN dim USING (k))
  SELECT count(*) FROM c WHERE c.k > i) FROM generate_series(1, 3) AS i', 'fact');
SELECT rows_passed('SELECT (SELECT count(*) FROM (SELECT * FROM fact ORDER BY g, id OFFSET 0) AS s JOIN dim USING (k) WHERE s.g > i) FROM generate_series(1, 3) AS i', 'fact');
SELECT rows_passed('SELECT i > ALL (SELECT s.k + 1 FROM (SELECT * FROM fact ORDER BY g, id OFFSET 0) AS s JOIN dim USING (k)) FROM generate_series(1, 3) AS i', 'fact');

--
-- Where the planner expects all rows to match, there is no filter, also if
-- nothing unique says that they match only once.
--
SELECT rows_passed('SELECT count(*) FROM fact a JOIN fact b ON a.k = b.k AND b.id <= 2000', 'a', 'on');
SELECT rows_passed('SELECT count(*) FROM (SELECT id, count(*) FROM fact GROUP BY id) AS a JOIN fact AS b USING (id)', 'fact', 'on');
SELECT rows_passed('SELECT count(*) FROM fact JOIN (SELECT DISTINCT k FROM fact AS f WHERE id <= 20) AS b USING (k)', 'fact', 'on');

-- nor if the inner side turns out to have so many rows that all match: below
-- grouping, where there is no sampling
CREATE TABLE every WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(0, 999) AS i;
ANALYZE every;
SELECT rows_passed('SELECT sum(n) FROM (SELECT k, count(*) AS n FROM fact GROUP BY k) AS f JOIN every USING (k) WHERE every.k + 0 < 980', 'fact', 'on');
SELECT rows_passed('SELECT sum(n) FROM (SELECT k, count(*) AS n FROM fact GROUP BY k) AS f JOIN every USING (k) WHERE every.k + 0 < 500', 'fact', 'on');

-- nor are more than half of the keys of the table, by the statistics of one column, and by the share of its rows that
-- a condition leaves: the number of groups by several is not known. Of a partition, all keys of its table count.
CREATE TABLE lines WITH (autovacuum_enabled = off) AS SELECT i / 20 AS id, i / 2000 AS day FROM generate_series(0, 39999) AS i;
CREATE TABLE orders WITH (autovacuum_enabled = off) AS SELECT i AS id, i / 100 AS day FROM generate_series(0, 1999) AS i;
ANALYZE lines, orders;
SELECT days, rows_passed(format('SELECT count(*) FROM (SELECT id FROM lines WHERE day >= 14 GROUP BY id) AS l JOIN orders USING (id) WHERE orders.day IN (%s)', days), 'lines', 'on')
  FROM unnest(ARRAY['14, 15, 16, 17, 18, 19', '17']) AS days;
CREATE TABLE named (k int, t text) PARTITION BY RANGE (k);
CREATE TABLE named_1 PARTITION OF named FOR VALUES FROM (0) TO (750);
CREATE TABLE named_2 PARTITION OF named FOR VALUES FROM (750) TO (1500);
INSERT INTO named SELECT i / 20, 'n' || i / 20 FROM generate_series(0, 29999) AS i;
CREATE TABLE early WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(0, 999) AS i;
ANALYZE named, early;
CREATE VIEW by_name AS SELECT k, t, count(*) AS n FROM named GROUP BY k, t;
SELECT rows_passed('SELECT sum(n) FROM by_name AS f JOIN early USING (k)', 'named_1', 'on');
SELECT rows_passed('SELECT sum(n) FROM by_name AS f JOIN early USING (k) WHERE early.k + 0 < 1000', 'named_1', 'on');
SELECT rows_passed('SELECT sum(n) FROM by_name AS f JOIN early USING (k) WHERE early.k < 500', 'named_1', 'on');
SELECT rows_passed('SELECT sum(n) FROM (SELECT int8(k) AS k, t, count(*) AS n FROM named GROUP BY 1, 2) AS f JOIN early USING (k) WHERE early.k < 500', 'named_1', 'on');

-- A partition of few rows has none.
CREATE TABLE uneven (k int, part int) PARTITION BY LIST (part);
CREATE TABLE uneven_1 PARTITION OF uneven FOR VALUES IN (1);
CREATE TABLE uneven_2 PARTITION OF uneven FOR VALUES IN (2);
INSERT INTO uneven SELECT i % 1000, 1 + (i < 50)::int FROM generate_series(0, 19999) AS i;
ANALYZE uneven;
SELECT alias, (rows_passed('SELECT FROM uneven JOIN early USING (k) WHERE early.k < 10', alias, 'on')).* FROM unnest(ARRAY['uneven_1', 'uneven_2']) AS alias;

-- 40 % of the rows pass: worth it for columns of numbers alone, whose hash takes next to no time
CREATE TABLE numbers WITH (autovacuum_enabled = off) AS SELECT i % 1000 AS k, (i % 1000)::numeric AS n, i % 50 AS g FROM generate_series(1, 20000) AS i;
CREATE TABLE lower WITH (autovacuum_enabled = off) AS SELECT k, n FROM numbers WHERE k < 400 LIMIT 400;
ANALYZE numbers, lower;
SELECT query, filters, passed < 12000 AS probed FROM unnest(ARRAY['numbers JOIN lower USING (k)', 'numbers JOIN lower USING (n)', 'numbers JOIN early ON int8(numbers.k) = early.k WHERE early.k < 400']) AS query, rows_passed('SELECT FROM ' || query, 'numbers', 'on');

SET client_min_messages = warning;
DROP SCHEMA join_cost CASCADE;
RESET ALL;

--
-- Why a hash join has none
--
CREATE SCHEMA join_reasons;
SET search_path = join_reasons, public;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET join_collapse_limit = 1;
SET jit = off;
SET bloomfilter.join_filters = on;

\set ECHO none
-- Plans a query, and shows the messages.
CREATE PROCEDURE why(query text) LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL client_min_messages = debug1;
  EXECUTE 'EXPLAIN ' || query;
  SET LOCAL client_min_messages = notice;
END $$;
\set ECHO all

CREATE TABLE fact WITH (autovacuum_enabled = off) AS SELECT i AS id, i % 1000 AS k, i % 50 AS g, 0 AS pad FROM generate_series(1, 20000) i;
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
CREATE TABLE wide WITH (autovacuum_enabled = off) AS SELECT i AS k, repeat('x', 1000) AS pad FROM generate_series(1, 10000) i;
ANALYZE wide;
CALL why('SELECT FROM (SELECT id FROM fact GROUP BY id) AS fact JOIN wide ON fact.id = wide.k WHERE left(pad, 2) = ''x''');
CALL why('SELECT FROM (SELECT k FROM fact FULL JOIN dim USING (k)) AS fact JOIN dim USING (k)');
CALL why('SELECT FROM visible JOIN dim USING (k)');
-- Not worth it
CALL why('SELECT FROM fact a JOIN fact b USING (k)');
-- The planner has no statistics of groups. Few have a key of few inner rows.
CREATE TABLE few_ids WITH (autovacuum_enabled = off) AS SELECT id FROM fact WHERE id <= 500;
ANALYZE few_ids;
CALL why('SELECT FROM (SELECT id, g, count(*) FROM fact GROUP BY id, g) AS a JOIN few_ids USING (id)');
CALL why('SELECT FROM (SELECT k FROM fact WHERE id < 2000) AS fact JOIN dim USING (k)');
-- LIMIT and EXISTS end the join early, unless all is sorted, or there are few rows.
CALL why('SELECT FROM fact JOIN dim USING (k) LIMIT 10');
CALL why('SELECT EXISTS (SELECT FROM fact JOIN dim USING (k))');
CALL why('SELECT FROM (SELECT FROM fact JOIN dim USING (k) ORDER BY id LIMIT 10) AS first');
CALL why('SELECT FROM fact JOIN dim USING (k) LIMIT 20000');
SET bloomfilter.join_filter_memory = 0;
CALL why('SELECT FROM fact JOIN dim USING (k)');
RESET bloomfilter.join_filter_memory;
SET bloomfilter.join_filter_min_rows = 0;
CALL why('SELECT FROM (dim LEFT JOIN fact AS f USING (g)) JOIN (SELECT k, g FROM fact WHERE id < 5000) AS i ON dim.k = i.k AND dim.g = i.g');
RESET bloomfilter.join_filter_min_rows;
-- A statement is compiled if its cost is above the limit, the more scans have a filter, the more.
CREATE FUNCTION is_compiled(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	PERFORM set_config('jit_above_cost', ((plan #>> '{0,Plan,Total Cost}')::float * 0.9)::text, true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 ? 'JIT';
END $$;
SET jit = on;
SELECT pg_jit_available() = is_compiled('SELECT FROM fact JOIN dim USING (k)') AS one_scan,
       pg_jit_available() AND is_compiled('SELECT FROM (SELECT k FROM fact UNION ALL SELECT k FROM fact UNION ALL SELECT k FROM fact) AS f JOIN dim USING (k)') AS three;
-- Its conditions are compiled once.
CREATE FUNCTION compiled(mode text, query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	SET LOCAL jit_above_cost = 0;
	PERFORM set_config('bloomfilter.join_filters', mode, true);
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN plan #>> '{0,JIT,Functions}';
END $$;
SELECT compiled('force', query) IS NOT DISTINCT FROM compiled('off', query) AS once
  FROM (VALUES ('SELECT count(*) FROM fact JOIN dim USING (k) WHERE id > 100 AND id < 1000000')) q (query);
SET jit = off;

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

\set ECHO none
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
\set ECHO all
SELECT explains('SELECT FROM fact JOIN dim USING (k)', NULL);
SELECT explains('SELECT FROM fact LEFT JOIN dim USING (k)', 'it keeps outer rows without a match');
SELECT explains('SELECT FROM (SELECT k FROM fact LIMIT 15000) AS fact JOIN dim USING (k)', 'a node between the scan and the join must see all rows, or a security barrier may hide some');
-- Of two joins, one has a filter, or both.
SELECT explains('SELECT FROM (SELECT k FROM fact JOIN dim USING (k) LIMIT 15000) AS fact JOIN dim USING (k)', 'a node between the scan and the join must see all rows, or a security barrier may hide some');
SELECT explains('SELECT FROM fact JOIN dim USING (k) JOIN dim AS d ON fact.id = d.k', NULL);
SET plan_cache_mode = force_generic_plan;
PREPARE cached AS SELECT FROM fact JOIN dim USING (k);
SET bloomfilter.join_filters = off;
SELECT explains('EXECUTE cached', 'bloomfilter.join_filters is off');
SET bloomfilter.join_filters = on;
SELECT explains('EXECUTE cached', 'the statement calls a volatile function, or the plan was made with other settings or changed afterwards');
DEALLOCATE cached;
RESET plan_cache_mode;

-- More keys than the scan has rows, which the planner did not expect
CREATE TABLE few AS SELECT i FROM generate_series(1, 20000) i;
CREATE TABLE many AS SELECT i FROM generate_series(1, 50000) i;
ANALYZE few, many;
CREATE FUNCTION built(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
  RETURN QUERY SELECT concat_ws(' ', f -> 'Keys', f ->> 'State') FROM jsonb_path_query(plan, 'strict $.**."Bloom Filters"[*]') AS f;
END $$;
SELECT * FROM built('SELECT count(*) FROM few JOIN many USING (i) WHERE many.i + 0 = many.i');

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
