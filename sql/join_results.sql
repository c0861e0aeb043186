--
-- Join filters: the rows, the errors, the calls and what users learn are those
-- of the query without filters, also where functions read settings, rows are
-- hidden, or something fails; at the end, queries that once had another result
--
\pset format unaligned
\pset tuples_only
LOAD 'bloomfilter';
CREATE SCHEMA join_results;
SET search_path = join_results, public;
SET bloomfilter.join_filters = force;
-- Filters are added to the plans that PostgreSQL makes.
SET bloomfilter.join_planning = off;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;

\set ECHO none
-- The conditions of scans that probe filters
CREATE FUNCTION probes(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN QUERY SELECT (node ->> 'Node Type') || ': ' || (node ->> 'Filter')
    FROM jsonb_path_query(plan, 'strict $.** ? (@.Filter like_regex "bloom_join_probe")') node;
END $$;
\set ECHO all

CREATE TABLE one WITH (autovacuum_enabled = off) AS SELECT 1 AS o;
CREATE TABLE flags WITH (autovacuum_enabled = off) AS SELECT i AS k, i = 1 AS flag, ARRAY[[i]] AS f FROM generate_series(0, 1) i;
CREATE TABLE few WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(0, 99) i;
CREATE TABLE large WITH (autovacuum_enabled = off) AS SELECT i AS id, i / 2 AS k, i % 2 AS v, 1 AS o, i % 100 AS g
  FROM generate_series(0, 39999) i;
ANALYZE;

--
-- The inner side changes from one execution to the next: by a setting that the statement changes. The hash table is
-- built again, because it has several batches.
--
CREATE TABLE shared WITH (autovacuum_enabled = off) AS SELECT i % 4 AS tenant, i AS k FROM generate_series(0, 19999) i;
ANALYZE shared;
SET work_mem = '64kB';
SET enable_material = off;
SET app.tenant = 0;
CREATE VIEW rented AS SELECT k FROM shared WHERE tenant = current_setting('app.tenant')::int;
\set ECHO none
-- The rows of a source that have a match, for each tenant
CREATE FUNCTION of_tenants(source text) RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT n::int FROM (SELECT set_config(%L, tenant::text, false),
    (SELECT count(*) + 0 * tenant FROM %s s WHERE EXISTS (SELECT FROM rented WHERE rented.k = s.k)) AS n
    FROM generate_series(0, 3) tenant OFFSET 0) r', 'app.tenant', source);
END $$;
\set ECHO all
SELECT * FROM of_tenants('few');
-- Nodes that keep rows, which an earlier filter would have reduced: hash tables of grouping, of set operations, of a
-- join, and a sort. They cost more than the inner side, so that this is read first.
SELECT * FROM of_tenants('(SELECT DISTINCT g AS k FROM large)');
SELECT * FROM of_tenants('(SELECT g AS k FROM large EXCEPT SELECT o FROM one WHERE o = 0)');
SELECT * FROM of_tenants('(SELECT b.g AS k FROM large a JOIN large b USING (id) WHERE b.id < 100)');
SELECT tenant, count(k) FROM (SELECT tenant, set_config('app.tenant', tenant::text, false) FROM generate_series(0, 3) tenant OFFSET 0) t
  LEFT JOIN (SELECT k FROM (SELECT g AS k FROM large WHERE id < 100 ORDER BY -g OFFSET 0) s
    WHERE EXISTS (SELECT FROM rented WHERE rented.k = s.k)) s ON true
  GROUP BY tenant ORDER BY tenant;
-- A subplan that is hashed is executed by each partition that has it in its condition.
CREATE TABLE tenants (tenant int) PARTITION BY LIST (tenant);
CREATE TABLE tenant_0 PARTITION OF tenants FOR VALUES IN (0);
CREATE TABLE tenant_1 PARTITION OF tenants FOR VALUES IN (1);
CREATE TABLE tenant_2 PARTITION OF tenants FOR VALUES IN (2);
INSERT INTO tenants VALUES (0), (1), (2);
ANALYZE tenants;
SET app.tenant = 0;
SELECT tenant, set_config('app.tenant', (tenant + 1)::text, false) FROM tenants
  WHERE tenant < 0 OR tenant IN (SELECT s.k FROM (SELECT DISTINCT g AS k FROM large) s WHERE EXISTS (SELECT FROM rented WHERE rented.k = s.k));
RESET enable_material;
RESET work_mem;

--
-- Security barriers: rows that a view hides are not counted, and no function sees them.
--
CREATE TABLE papers WITH (autovacuum_enabled = off) AS SELECT i % 2 AS owner, i::numeric AS tag FROM generate_series(1, 1000) i;
CREATE TABLE guesses WITH (autovacuum_enabled = off) AS SELECT 2.0 AS tag;
ANALYZE papers, guesses;
CREATE VIEW readable WITH (security_barrier) AS SELECT owner, tag FROM papers JOIN one ON owner = o;
-- The plan has a node for the barrier ...
SELECT probes('SELECT count(*) FROM readable JOIN guesses USING (tag) WHERE owner + 0 > 0');
-- ... or not.
SELECT probes('SELECT count(*) FROM readable JOIN guesses USING (tag)');
-- The conditions of the scan come first.
CREATE VIEW even WITH (security_barrier) AS SELECT owner, tag FROM papers WHERE owner = 1;
SELECT probes('SELECT count(*) FROM even JOIN guesses USING (tag)');
-- Joins below a barrier have filters of rows that they see.
CREATE VIEW joined WITH (security_barrier) AS
  SELECT papers.* FROM (papers LEFT JOIN one ON papers.owner = o) JOIN guesses ON papers.tag = guesses.tag WHERE o > 0;
SET join_collapse_limit = 1;
SELECT probes('SELECT * FROM joined WHERE owner + 0 > 0');
SELECT probes('SELECT * FROM joined');
RESET join_collapse_limit;
RESET max_parallel_workers_per_gather;
-- Below subqueries and common table expressions of the view, too
CREATE VIEW counted WITH (security_barrier) AS SELECT o FROM one WHERE o <= (SELECT count(*)
  FROM (papers LEFT JOIN one ON papers.owner = o) JOIN guesses ON papers.tag = guesses.tag WHERE o > 0);
SELECT probes('SELECT * FROM counted WHERE o + 0 > 0');
CREATE VIEW listed WITH (security_barrier) AS WITH list AS MATERIALIZED (SELECT papers.*
  FROM (papers LEFT JOIN one ON papers.owner = o) JOIN guesses ON papers.tag = guesses.tag WHERE o > 0) SELECT * FROM list;
CREATE FUNCTION seen(int) RETURNS boolean STABLE LANGUAGE plpgsql AS $$BEGIN RETURN true; END$$;
SELECT probes('SELECT * FROM listed WHERE seen(owner)');
-- Without a barrier they may.
CREATE VIEW open AS SELECT owner, tag FROM papers JOIN one ON owner = o OFFSET 0;
SELECT probes('SELECT count(*) FROM open JOIN guesses USING (tag)');

--
-- All rows of a group or none: its computation may fail for some of them.
--
SET bloomfilter.join_filters = on;
-- Append of scans of which only one is large
CREATE TABLE tens WITH (autovacuum_enabled = off) AS SELECT 10 * i AS k FROM generate_series(1, 50) i;
CREATE TABLE zeros WITH (autovacuum_enabled = off) AS SELECT k, 0 AS v, 1 AS o FROM few;
ANALYZE tens, zeros;
CREATE VIEW ratios AS SELECT k, 10 / sum(v) AS ratio FROM (SELECT k, v FROM large LEFT JOIN one USING (o) UNION ALL
  SELECT k, v FROM zeros LEFT JOIN one USING (o)) AS both_kinds GROUP BY k;
SELECT count(*), sum(ratio) FROM ratios JOIN tens USING (k);
-- Together they are worth it.
SET bloomfilter.join_filter_min_rows = 50;
SELECT probes('SELECT count(*), sum(ratio) FROM ratios JOIN tens USING (k)');
SELECT count(*), sum(ratio) FROM ratios JOIN tens USING (k);
RESET bloomfilter.join_filter_min_rows;
-- A row that no scan returns
SELECT count(*), sum(ratio) FROM (SELECT k, 10 / sum(v) AS ratio FROM (SELECT k, v FROM large UNION ALL SELECT 7, 0) AS l GROUP BY k) AS ratios
  JOIN tens USING (k);
RESET bloomfilter.join_filter_min_rows;
SET bloomfilter.join_filters = force;

--
-- A plan that is cached keeps its filters until it is planned again.
--
SET plan_cache_mode = force_generic_plan;
PREPARE cached AS SELECT * FROM large JOIN tens USING (k);
SELECT probes('EXECUTE cached');
SET bloomfilter.join_filters = off;
SELECT probes('EXECUTE cached');
DISCARD PLANS;
SELECT probes('EXECUTE cached');
DEALLOCATE cached;
RESET plan_cache_mode;
SET bloomfilter.join_filters = force;

--
-- A subplan in a key that no filter uses is not among those of the node that builds the filters.
--
\set ECHO none
CREATE FUNCTION subplans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN QUERY SELECT node ->> 'Node Type'
    FROM jsonb_path_query(plan, 'strict $.** ? (@.Plans[*]."Parent Relationship" == "SubPlan")') node;
END $$;
\set ECHO all
SELECT subplans('SELECT * FROM large JOIN tens ON large.k = tens.k AND large.v = (SELECT tens.k)');

--
-- Planning looks at each node once, and ends: of common table expressions that each read the one before twice.
--
\set ECHO none
CREATE FUNCTION has_filter(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  plan text;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN plan LIKE '%bloom_join_probe%';
END $$;
\set ECHO all
SELECT has_filter('WITH c0 AS MATERIALIZED (SELECT k FROM few)' ||
    string_agg(format(', c%s AS MATERIALIZED (SELECT a.k FROM c%s a JOIN c%s b USING (k))', i, i - 1, i - 1), '' ORDER BY i) ||
    'SELECT count(*) FROM c40')
  FROM generate_series(1, 40) i;
SET client_min_messages = warning;
DROP SCHEMA join_results CASCADE;
RESET client_min_messages;
RESET bloomfilter.join_filters;
RESET max_parallel_workers_per_gather;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET search_path;

--
-- Queries that once had another result
--
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

-- An aggregate sees all rows of a group or none, so that
-- what fails for a part of a group, here for one row of two, does not fail.
CREATE TABLE pairs WITH (autovacuum_enabled = off) AS SELECT i / 2 AS k, i % 2 AS n FROM generate_series(0, 19999) AS i;
CREATE INDEX ON pairs (k);
VACUUM ANALYZE pairs;
SET enable_hashagg = off;
SET enable_sort = off;
SET enable_seqscan = off;
SELECT count(*), sum(r) FROM small JOIN (SELECT k, 10 / (count(*) - 1) AS r FROM pairs GROUP BY k) AS p ON p.k = small.i;
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
-- Nor does what fails for another first row of a node that reads all of its input, where the join above would have ended.
CREATE TABLE divisors WITH (autovacuum_enabled = off) AS
  SELECT i % 5000 AS k, CASE WHEN i % 5000 IN (7, 8, 9) THEN 0 ELSE 1 END AS n FROM generate_series(1, 50000) AS i;
CREATE TABLE others WITH (autovacuum_enabled = off) AS
  SELECT i AS k, CASE i WHEN 100 THEN 0 ELSE 1 END AS n, '1'::xid AS one FROM generate_series(0, 200000) AS i;
CREATE INDEX others_k ON others (k);
CREATE TABLE no_row WITH (autovacuum_enabled = off) AS SELECT i % 500 AS x, (i % 500)::text::xid AS one, i AS y FROM generate_series(1, 300000) AS i;
CREATE TABLE wanted (k int);
INSERT INTO wanted VALUES (7), (8), (9);
VACUUM ANALYZE divisors, others, no_row, wanted;
SET join_collapse_limit = 1;
SET max_parallel_workers_per_gather = 0;
SET bloomfilter.join_filters = on;
SET enable_mergejoin = off;
SELECT count(*) FROM (SELECT k, 10 / sum(n) AS q FROM divisors GROUP BY k) AS d
  JOIN no_row ON x = q AND y + 0 < 0 JOIN wanted USING (k);
SET bloomfilter.join_filters = force;
SELECT count(*) FROM (SELECT k, 10 / sum(n) AS q FROM divisors GROUP BY k) AS d
  JOIN no_row ON x = q AND y + 0 < 0 JOIN wanted USING (k);
SET enable_mergejoin = on;
UPDATE wanted SET k = k + 2993;
SELECT count(*) FROM (others AS o JOIN divisors AS d ON d.k = o.k AND 10 / o.n <> 3)
  JOIN no_row USING (one) JOIN wanted AS w ON w.k = d.k WHERE y + 0 < 0 AND y + 1 < 0;
RESET join_collapse_limit;
RESET max_parallel_workers_per_gather;
-- The time of planning is not exponential in the depth of the plan.
SET statement_timeout = '2min';
SELECT 'EXPLAIN (COSTS OFF) SELECT count(*) FROM large t0' || string_agg(format(' LEFT JOIN large t%s USING (i)', n), '' ORDER BY n) ||
	' JOIN small USING (i)' AS deep FROM generate_series(1, 30) AS n \gset
SET client_min_messages = error;
\set ECHO none
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
\set ECHO all
SELECT lines(:'deep') > 0 AS filtered;
-- Nor is that of starting the execution: a subplan is prepared once, though each of eight partitions has it.
CREATE TABLE parted (i int, j int) PARTITION BY LIST (i);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES IN (%s)', n, n) FROM generate_series(1, 8) AS n \gexec
SELECT 'SELECT FROM parted t0 JOIN small USING (i) WHERE true' ||
	string_agg(format(' AND EXISTS (SELECT FROM parted t%s WHERE t%s.j + t%s.j = 1', n, n - 1, n), '' ORDER BY n) ||
	repeat(' OFFSET 0)', 12) AS nested FROM generate_series(1, 12) AS n \gset
BEGIN;
DECLARE nested CURSOR FOR :nested;
COMMIT;
RESET statement_timeout;

SET client_min_messages = warning;
DROP SCHEMA join_found CASCADE;
RESET ALL;
