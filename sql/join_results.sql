--
-- Join filters: the rows, the errors, the calls and what users learn are those
-- of the query without filters, also where functions read settings, rows are
-- hidden, or something fails
--
LOAD 'bloomfilter';
CREATE SCHEMA join_results;
SET search_path = join_results, public;
SET bloomfilter.join_filters = force;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;

-- The conditions of scans that probe filters
CREATE FUNCTION probes(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN QUERY SELECT (node ->> 'Node Type') || ': ' || (node ->> 'Filter')
    FROM jsonb_path_query(plan, 'strict $.** ? (@.Filter like_regex "bloom_join_probe")') node;
END $$;

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
-- The rows of a source that have a match, for each tenant
CREATE FUNCTION of_tenants(source text) RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT n::int FROM (SELECT set_config(%L, tenant::text, false),
    (SELECT count(*) + 0 * tenant FROM %s s WHERE EXISTS (SELECT FROM rented WHERE rented.k = s.k)) AS n
    FROM generate_series(0, 3) tenant OFFSET 0) r', 'app.tenant', source);
END $$;
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
-- Volatile functions in VALUES, and below a subquery, when a join in between may stop the scan
--
CREATE SEQUENCE calls;
SET join_collapse_limit = 1;
SELECT probes('SELECT * FROM ((VALUES ' || string_agg(format('(%s, nextval(''calls''))', i), ', ') || ') v (k, n)
    LEFT JOIN one ON k = o) JOIN flags USING (k)') FROM generate_series(1, 50) i;
SELECT probes($$SELECT * FROM ((SELECT k FROM (SELECT k, nextval('calls') FROM large OFFSET 0) l OFFSET 0) v
    LEFT JOIN one ON k = o) JOIN flags USING (k)$$);
-- Without a join in between, all rows are read anyway.
SELECT probes($$SELECT * FROM (SELECT k FROM (SELECT k, nextval('calls') FROM large OFFSET 0) l OFFSET 0) v JOIN flags USING (k)$$);

--
-- Keys that may fail are evaluated only where the join does so, and the inner side of these has NULL as its first key.
--
CREATE TABLE nothing (a int, b text, x int[], y int[]) WITH (autovacuum_enabled = off);
INSERT INTO nothing VALUES (NULL, 'b', '{1}', '{1,2}');
ANALYZE nothing;
-- A stable function, even if it has no argument that changes
SET app.setting = 'b';
PREPARE setting AS SELECT * FROM few JOIN flags USING (k) JOIN nothing ON few.k = a AND flag = (b = current_setting('app.setting'));
SET plan_cache_mode = force_generic_plan;
EXECUTE setting;
RESET plan_cache_mode;
SELECT probes('EXECUTE setting');
-- Arrays of different dimensions
SELECT * FROM few JOIN flags USING (k) JOIN nothing ON few.k = a AND f = ARRAY[x, y];
-- Also on the outer side, where a join in between drops the rows.
SELECT n.a FROM (nothing n JOIN few ON n.a = few.k) JOIN flags ON ARRAY[n.x, n.y] = flags.f;
-- A subplan that is executed when it is needed, and not before
SELECT * FROM few JOIN flags USING (k) JOIN nothing ON few.k = a AND flag = (b = (SELECT max(k)::text FROM few WHERE 1 / (SELECT count(*) - 100 FROM few) = 1));
RESET join_collapse_limit;
DEALLOCATE setting;

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
-- The first row of each key; where most keys have a match, samples would find another one.
CREATE TABLE most WITH (autovacuum_enabled = off) AS SELECT i AS k FROM generate_series(0, 19999) i WHERE i % 20 > 2;
ANALYZE most;
SET enable_hashagg = off;
CREATE VIEW firsts AS SELECT DISTINCT ON (k) k, v FROM large ORDER BY k, v DESC;
SELECT probes('SELECT sum(ratio) FROM (SELECT k, 10 / v AS ratio FROM firsts OFFSET 0) f JOIN most USING (k)');
SELECT sum(ratio) FROM (SELECT k, 10 / v AS ratio FROM firsts OFFSET 0) f JOIN most USING (k);
RESET enable_hashagg;
-- A key that EXCEPT removes
SELECT sum(q) FROM (SELECT k, 10 / k AS q FROM (SELECT k FROM zeros LEFT JOIN one USING (o) EXCEPT SELECT k FROM large LEFT JOIN one USING (o)) e OFFSET 0) f
  JOIN one ON k = o;
SET bloomfilter.join_filters = force;
SELECT probes('SELECT k FROM (SELECT k FROM few EXCEPT SELECT k FROM large) e JOIN one ON k = o');
SET enable_hashagg = off;
SELECT probes('SELECT k FROM (SELECT k FROM few EXCEPT SELECT k FROM large) e JOIN one ON k = o');
RESET enable_hashagg;

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
CREATE FUNCTION subplans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN QUERY SELECT node ->> 'Node Type'
    FROM jsonb_path_query(plan, 'strict $.** ? (@.Plans[*]."Parent Relationship" == "SubPlan")') node;
END $$;
SELECT subplans('SELECT * FROM large JOIN tens ON large.k = tens.k AND large.v = (SELECT tens.k)');

--
-- Planning looks at each node once, and ends: of common table expressions that each read the one before twice, and of
-- expressions that each use the one before twice.
--
CREATE FUNCTION has_filter(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  plan text;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN plan LIKE '%bloom_join_probe%';
END $$;
SELECT has_filter('WITH c0 AS MATERIALIZED (SELECT k FROM few)' ||
    string_agg(format(', c%s AS MATERIALIZED (SELECT a.k FROM c%s a JOIN c%s b USING (k))', i, i - 1, i - 1), '' ORDER BY i) ||
    'SELECT count(*) FROM c40')
  FROM generate_series(1, 40) i;
SELECT has_filter('SELECT count(*) FROM ' || repeat('(SELECT k * k AS k FROM ', 40) || 'large' || repeat(' OFFSET 0) l', 40) ||
  ' JOIN tens USING (k)');

SET client_min_messages = warning;
DROP SCHEMA join_results CASCADE;
RESET client_min_messages;
RESET bloomfilter.join_filters;
RESET max_parallel_workers_per_gather;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET search_path;
