--
-- JOIN
-- Filters in hash joins of unmodified queries: where they go, where they must
-- not go, and the same results in all cases.
--
\pset format unaligned
\pset tuples_only

-- The settings act once the library is loaded. Plans must not depend on when autovacuum comes.
LOAD 'bloomfilter';
CREATE SCHEMA join_test;
SET search_path = join_test, public;

CREATE TABLE fact (id int PRIMARY KEY, k int, g int, b bigint, t text, n numeric, u uuid) WITH (autovacuum_enabled = off);
CREATE TABLE dim (k int, c int, b bigint, t text, n numeric, u uuid) WITH (autovacuum_enabled = off);
CREATE TABLE other (k int, g int) WITH (autovacuum_enabled = off);
-- Of 1000 values of each key, dim has 20 if c = 1, and NULL.
INSERT INTO fact SELECT i, i % 1000, i % 50, i % 1000, 'k' || i % 1000, (i % 1000) / 10.0,
    md5((i % 1000)::text)::uuid FROM generate_series(1, 20000) i;
INSERT INTO fact SELECT i FROM generate_series(20001, 20100) i;
INSERT INTO dim SELECT i, i % 50, i, 'k' || i, i / 10.0, md5(i::text)::uuid FROM generate_series(1, 999) i;
INSERT INTO dim VALUES (NULL, 1);
INSERT INTO other SELECT i % 1000, i % 50 FROM generate_series(1, 3000) i;
ANALYZE;

-- Hash joins wherever they are possible, in one process.
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET jit = off;

\set ECHO none
-- The scans of a query that probe filters.
CREATE FUNCTION probes(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  SET LOCAL bloomfilter.join_filters = force;
  EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO plan;
  RETURN QUERY
    SELECT COALESCE(node ->> 'Alias', node ->> 'Node Type') || ': ' ||
      (SELECT string_agg(calls[1], ', ' ORDER BY calls[1])
       FROM regexp_matches(node ->> 'Filter', 'bloom_join_probe(\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\))', 'g') calls)
    FROM jsonb_path_query(plan, 'strict $.** ? (@.Filter like_regex "bloom_join_probe")') node;
  SET LOCAL bloomfilter.join_filters = off;
END $$;

-- The nodes of its plan, from the top.
CREATE FUNCTION nodes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT string_agg(node #>> '{}', ', ') FROM jsonb_path_query(plan, 'strict $.**."Node Type"') node);
END $$;

-- The numbers of all filters of a query after its execution.
CREATE FUNCTION counts(query text, mode text DEFAULT 'force')
RETURNS TABLE (number int, keys int, memory int, checked int, removed int, state text)
LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  PERFORM set_config('bloomfilter.join_filters', mode, true);
  EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
  RETURN QUERY
    SELECT (f ->> 'Number')::int, (f ->> 'Keys')::int, (f ->> 'Memory')::int, (f ->> 'Checked')::int, (f ->> 'Removed')::int, f ->> 'State'
    FROM jsonb_path_query(plan, 'strict $.**."Bloom Filters"[*]') f ORDER BY 1;
  SET LOCAL bloomfilter.join_filters = off;
END $$;

-- The rows of a query, with and without filters.  A loop over the rows would
-- not be a parallel plan.
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plain text[];
  filtered text[];
BEGIN
  query := 'SELECT array_agg(r ORDER BY r) FROM (SELECT row::text AS r FROM (' || query || ') row) rows';
  SET LOCAL bloomfilter.join_filters = off;
  EXECUTE query INTO plain;
  SET LOCAL bloomfilter.join_filters = force;
  EXECUTE query INTO filtered;
  SET LOCAL bloomfilter.join_filters = off;
  RETURN CASE WHEN filtered IS DISTINCT FROM plain
              THEN format('DIFFERENT: %s and %s rows', COALESCE(cardinality(plain), 0), COALESCE(cardinality(filtered), 0))
              ELSE format('equal, %s rows', COALESCE(cardinality(plain), 0)) END;
END $$;
\set ECHO all

--
-- Settings
--
SELECT name, setting, unit, context, vartype, min_val, enumvals FROM pg_settings
  WHERE name LIKE 'bloomfilter.%' ORDER BY 1;
-- Filters are added to the plans that PostgreSQL makes.
SET bloomfilter.join_planning = off;
SET bloomfilter.join_filters = sometimes;
-- Off is the default, and nothing happens.
SET bloomfilter.join_filters = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
SET bloomfilter.join_filters = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
-- A scan of few rows has none, unless the setting says so.
SET bloomfilter.join_filter_min_rows = 30000;
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
RESET bloomfilter.join_filter_min_rows;
-- The function itself knows of no filter.
RESET bloomfilter.join_filters;
SELECT bloom_join_probe(1, 5), bloom_join_probe(NULL, 'a'::text, 1);

--
-- What the filter does
--
SELECT keys, checked, removed > 19000 AS removed, state
  FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1');
-- The join reads its inner side first, so the filter is complete for the first outer row.
SELECT keys, checked, state FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1 AND id + 0 = 7');
SELECT compare('SELECT fact.*, c FROM fact JOIN dim USING (k) WHERE c = 1');
-- The keys of all batches of a hash table that spills are in it.
SET work_mem = '64kB';
CREATE TABLE wide WITH (autovacuum_enabled = off) AS SELECT 2 * i AS k, repeat('x', 1000) AS filler FROM generate_series(1, 19000) i;
CREATE TABLE wider WITH (autovacuum_enabled = off) AS SELECT i AS k, repeat('x', 1500) AS filler FROM generate_series(1, 20000) i;
ANALYZE wide, wider;
\set ECHO none
CREATE FUNCTION batches(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  SET LOCAL bloomfilter.join_filters = force;
  EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query INTO plan;
  SET LOCAL bloomfilter.join_filters = off;
  RETURN max((node ->> 'Hash Batches')::int) FROM jsonb_path_query(plan, 'strict $.** ? (exists(@."Hash Batches"))') node;
END $$;
\set ECHO all
SELECT batches('SELECT k, length(wide.filler), length(wider.filler) FROM wider JOIN wide USING (k)') >= 16 AS many;
SELECT keys, removed > 9500 AS removed
  FROM counts('SELECT k, length(wide.filler), length(wider.filler) FROM wider JOIN wide USING (k)');
SELECT compare('SELECT k, length(wide.filler), length(wider.filler) FROM wider JOIN wide USING (k)');
RESET work_mem;
-- Too many keys for the memory: the filter is given up.
SET bloomfilter.join_filter_memory = '64kB';
CREATE TABLE many WITH (autovacuum_enabled = off) AS SELECT i FROM generate_series(1, 100000) i;
CREATE TABLE more WITH (autovacuum_enabled = off) AS SELECT i FROM generate_series(90001, 290000) i;
ANALYZE many, more;
SELECT keys BETWEEN 50000 AND 99999 AS keys, checked, removed, state FROM counts('SELECT count(*) FROM more JOIN many USING (i)');
SELECT compare('SELECT count(*) FROM more JOIN many USING (i)');
-- A list that is too long becomes bits, which are folded to the size that the keys need.
SELECT keys, memory, removed > 190000 AS removed FROM counts('SELECT count(*) FROM more JOIN many USING (i) WHERE many.i > 97000');
SELECT keys, removed > 180000 AS removed FROM counts('SELECT count(*) FROM more JOIN many USING (i) WHERE many.i > 80000');
SELECT compare('SELECT count(*) FROM more JOIN many USING (i) WHERE many.i > 80000');
RESET bloomfilter.join_filter_memory;
-- A filter of few keys lets hardly any other pass.
SELECT keys, removed > 199000 AS removed FROM counts('SELECT count(*) FROM more JOIN many USING (i) WHERE many.i > 99500');
-- Where all rows have a match, and the planner expects fewer, only samples are probed; not if filters are forced.
SELECT checked < 2000 AS few, state FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE c + 0 >= 0', 'on');
SELECT checked < 2000 AS few, state FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE c + 0 >= 0');
-- In runs of rows of one key, few of which have a match, beside another condition, too; and of which most have one.
CREATE TABLE ordered WITH (autovacuum_enabled = off) AS SELECT i / 3000 AS k FROM generate_series(0, 89999) i;
ANALYZE ordered;
SELECT removed > 75000 AS removed, state FROM counts('SELECT count(*) FROM ordered JOIN dim USING (k) WHERE dim.k = 5 OR dim.k > 400', 'on');
SELECT removed > 75000 AS removed, state
  FROM counts('SELECT count(*) FROM ordered JOIN dim USING (k) WHERE (dim.k = 5 OR dim.k > 400) AND ordered.k + 1 > 0', 'on');
SELECT checked < 5000 AS sampled, state
  FROM counts('SELECT count(*) FROM ordered JOIN dim USING (k) WHERE dim.k IN (0, 1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 26, 27, 28)', 'on');
-- No key, and no row.
SELECT compare('SELECT * FROM fact JOIN dim USING (k) WHERE c > 1000');
SELECT keys, removed FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE dim.k IS NULL OR dim.c > 1000');

-- Other conditions in the form of SQL syntax are what they are.
SELECT compare($$SELECT id FROM fact JOIN dim USING (k) WHERE c = 1 AND fact.t IS NORMALIZED AND (date '2020-01-01' + id, interval '1 day') OVERLAPS (date '2020-02-01', interval '100 days')$$);

--
-- Kinds of joins
--
SELECT probes('SELECT * FROM fact JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT fact.* FROM fact WHERE EXISTS (SELECT FROM dim WHERE dim.k = fact.k AND c = 1)');
SELECT probes('SELECT * FROM fact WHERE EXISTS (SELECT FROM dim WHERE dim.k = fact.k AND c = 1)');
SELECT probes('SELECT * FROM fact WHERE k IN (SELECT k FROM dim WHERE c = 1)');
-- Not where rows without a match are part of the result.
SELECT compare('SELECT * FROM fact LEFT JOIN (SELECT * FROM dim WHERE c = 1) d USING (k)');
SELECT compare('SELECT * FROM fact FULL JOIN (SELECT * FROM dim WHERE c = 1) d USING (k)');
SELECT compare('SELECT * FROM (SELECT * FROM dim WHERE c = 1) d RIGHT JOIN fact USING (k)');
SELECT compare('SELECT * FROM (SELECT * FROM dim WHERE c = 1) d LEFT JOIN fact USING (k)');
SELECT compare('SELECT * FROM fact WHERE NOT EXISTS (SELECT FROM dim WHERE dim.k = fact.k AND c = 1)');
SELECT compare('SELECT * FROM dim WHERE c = 1 AND NOT EXISTS (SELECT FROM fact WHERE dim.k = fact.k)');
SELECT compare('SELECT * FROM fact WHERE k NOT IN (SELECT k FROM dim WHERE c = 1 AND k IS NOT NULL)');

--
-- Keys
--
-- Types, also different ones on both sides; several columns; expressions.
SELECT probes('SELECT * FROM fact JOIN dim ON fact.b = dim.k WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim ON fact.b = dim.k WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim ON fact.k = dim.b WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN (SELECT k::smallint FROM dim WHERE c = 1) d ON fact.b = d.k');
SELECT compare('SELECT id FROM fact JOIN dim USING (t) WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim USING (n) WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim USING (u) WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN (SELECT (n * 1.000) AS n FROM dim WHERE c = 1) d USING (n)');
SELECT compare('SELECT id FROM fact JOIN dim ON ARRAY[fact.k, fact.g] = ARRAY[dim.k, dim.c] WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim ON ROW(fact.k, fact.t)::text = ROW(dim.k, dim.t)::text WHERE c = 1');
SELECT removed > 19000 AS removed FROM counts('SELECT id FROM fact JOIN dim ON (fact.k, fact.t, fact.n) = (dim.k, dim.t, dim.n) WHERE c = 1');
SELECT probes('SELECT id FROM fact JOIN dim ON (fact.k, fact.t, fact.n) = (dim.k, dim.t, dim.n) WHERE c = 1');
SELECT compare('SELECT id FROM fact JOIN dim ON fact.k + 1 = dim.k + 1 AND upper(fact.t) = upper(dim.t) WHERE c = 1');
-- Negative numbers of all types are the same numbers.
CREATE TABLE negative WITH (autovacuum_enabled = off) AS SELECT (-k)::smallint AS s, -k AS i, -b AS b FROM fact WHERE k < 100;
ANALYZE negative;
SELECT compare('SELECT n.i FROM negative n JOIN (SELECT DISTINCT b FROM negative) d ON n.s = d.b');
SELECT compare('SELECT n.i FROM negative n JOIN (SELECT DISTINCT b FROM negative) d ON n.i = d.b');
SELECT compare('SELECT n.i FROM negative n JOIN (SELECT DISTINCT s FROM negative) d ON n.i = d.s');
-- Zeros of either sign are equal.
SELECT compare($$SELECT count(*) FROM (SELECT CASE WHEN id % 2 = 0 THEN '-0' ELSE '0' END::float8 AS x FROM fact) f JOIN (VALUES ('0'::float8)) v (x) USING (x)$$);
-- A column, or a cast of it that cannot fail, of a domain, too, or of an enumeration
CREATE DOMAIN number AS int CHECK (VALUE > -5);
CREATE TYPE mood AS ENUM ('good', 'bad', 'ugly');
CREATE TABLE typed WITH (autovacuum_enabled = off) AS
  SELECT id, k::smallint AS s, k::number AS d, timestamp '2020-01-01' + k * interval '1 day' AS at, t::char(8) AS c,
    t::name AS n, ((ARRAY['good', 'bad', 'ugly'])[id % 3 + 1])::mood AS m, (k || 'e0')::jsonb AS j, ARRAY[k] AS a
  FROM fact WHERE k IS NOT NULL;
CREATE TABLE types WITH (autovacuum_enabled = off) AS SELECT * FROM typed WHERE id IN (3, 1501, 2500) AND s <> 500;
ANALYZE typed, types;
SELECT key, probes(query), compare(query) FROM (
  SELECT key, format('SELECT f.id FROM typed f JOIN (SELECT DISTINCT %s AS key FROM types x) d ON %s = d.key', key, replace(key, 'x.', 'f.')) AS query
  FROM unnest(ARRAY['x.s', 'x.d', 'x.s::int', 'x.s::numeric', 'x.d::bigint', 'x.at::date', 'x.c', 'x.c::text', 'x.n::text', 'x.m',
    'x.j', 'x.a', 'x.d + 1', 'upper(x.n)', 'x.at::date::timestamp', 'x.s::text', '(x.s, x.c)::text']) AS key) AS keys;
-- Below a node that makes it of another column, it is followed, too, but not what that column is made of.
SELECT probes('SELECT * FROM (SELECT at::date AS day FROM typed OFFSET 0) f JOIN (SELECT DISTINCT at::date AS day FROM types) d USING (day)');
SELECT probes('SELECT * FROM (SELECT k + 1 AS k FROM fact OFFSET 0) f JOIN dim USING (k) WHERE c = 1');
DROP TABLE typed, types;
DROP TYPE mood;
DROP DOMAIN number;
-- An operator or a hash function that is not PostgreSQL's own could be anything.
CREATE FUNCTION lucky_equal(int, int) RETURNS boolean LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE OPERATOR ==== (LEFTARG = int, RIGHTARG = int, FUNCTION = lucky_equal, COMMUTATOR = ====, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
CREATE OPERATOR CLASS lucky FOR TYPE int USING hash AS OPERATOR 1 ====, FUNCTION 1 hashint4(int);
SELECT probes('SELECT id FROM fact JOIN dim ON fact.k ==== dim.k WHERE c = 1');
-- Text needs a collation.
SELECT probes('SELECT f.id FROM (SELECT id, t COLLATE "C" AS t FROM fact OFFSET 0) f JOIN (SELECT t COLLATE "POSIX" AS t FROM dim WHERE c = 1 OFFSET 0) d ON f.t = d.t');

--
-- The bits for the rows of a page are fetched ahead, if there are more than the processor's cache has
--
CREATE TABLE ahead (c "char", s smallint, b bigint, k int, n int) WITH (autovacuum_enabled = off);
INSERT INTO ahead SELECT CASE WHEN i % 3 > 0 THEN 'x' END, -i, -i, i, i FROM generate_series(1, 20000) i;
DELETE FROM ahead WHERE k % 7 = 0;
UPDATE ahead SET n = -n WHERE k % 11 = 0;
ALTER TABLE ahead ADD later int DEFAULT 500000;
INSERT INTO ahead SELECT 'y', i, i, i, i, i FROM generate_series(1, 1000) i;
CREATE TABLE behind WITH (autovacuum_enabled = off) AS SELECT i AS i, i::bigint AS b, i::smallint AS s FROM generate_series(1, 30000) i;
INSERT INTO behind (i, b) SELECT i, -i FROM generate_series(50000, 550000) i;
ANALYZE ahead, behind;
-- to have it hashed
UPDATE pg_class SET reltuples = 100 WHERE oid = 'behind'::regclass;
SELECT key, compare(query), memory > 512 AS large FROM (
  SELECT key, format('SELECT k, n FROM ahead JOIN behind ON ahead.%s', key) AS query
  FROM unnest('{k = i,n = i,s = i,b = behind.b,later = i}'::text[]) AS key) AS keys, counts(query);

--
-- Keys that are short, long, compressed, and external
--
-- NULLs, dead rows, a column that was added later
CREATE TABLE paged (id int, t text) WITH (autovacuum_enabled = off);
ALTER TABLE paged ALTER t SET STORAGE EXTERNAL;
INSERT INTO paged SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'k' || i % 1000 WHEN 2 THEN repeat('k' || i % 1000, 100)
    ELSE repeat('k' || i % 1000, 1000) END FROM generate_series(1, 1000) i;
ALTER TABLE paged ALTER t SET STORAGE MAIN;
INSERT INTO paged SELECT i, repeat('k' || i % 1000, 1000) FROM generate_series(1001, 2000) i;
DELETE FROM paged WHERE id % 7 = 0;
UPDATE paged SET id = id WHERE id % 11 = 0;
ALTER TABLE paged ADD k bigint DEFAULT 101, ADD l text DEFAULT 'k101';
INSERT INTO paged SELECT i, 'k' || i, i, 'k' || i FROM generate_series(1, 500) i;
CREATE TABLE few (t text, k int, l text) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT t, k, l FROM paged WHERE id % 50 = 1;
INSERT INTO few VALUES ('none', 101, 'none'), ('k7', 7, 'k7'), (NULL, NULL, NULL);
ANALYZE paged, few;
SELECT compare('SELECT id FROM paged JOIN few USING (t)');
SELECT (SELECT count(*) FROM paged) - checked AS unchecked, removed > 1000 AS removed
  FROM counts('SELECT id FROM paged JOIN few USING (t)');
SELECT compare('SELECT id FROM paged JOIN few USING (t, k, l)');
SELECT compare('SELECT id FROM paged JOIN few ON paged.l = few.l AND paged.k = few.k');
-- The second filter is asked of rows that the first one lets through, whatever it knows of them.
SELECT probes('SELECT id FROM paged JOIN (SELECT DISTINCT k FROM few) a USING (k) JOIN (SELECT DISTINCT t FROM few) b USING (t)');
SELECT compare('SELECT id FROM paged JOIN (SELECT DISTINCT k FROM few) a USING (k) JOIN (SELECT DISTINCT t FROM few) b USING (t)');
SELECT compare('SELECT id FROM paged JOIN (SELECT DISTINCT t FROM few) a USING (t) JOIN (SELECT DISTINCT k FROM few) b USING (k) JOIN (SELECT DISTINCT l FROM few) c USING (l)');

--
-- Where filters go
--
-- Below other joins, on either side, several on one scan.
SELECT probes('SELECT * FROM (fact JOIN other ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
SELECT compare('SELECT * FROM (fact JOIN other ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
SELECT compare('SELECT * FROM (fact LEFT JOIN other ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
SELECT compare('SELECT * FROM (other LEFT JOIN fact ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
-- Not to a side that returns no columns
SET join_collapse_limit = 1;
SET enable_material = off;
SELECT probes('SELECT count(*) FROM ((SELECT FROM other WHERE k = 5) o CROSS JOIN fact f) JOIN dim ON f.k = dim.k WHERE c = 1');
SELECT compare('SELECT count(*) FROM ((SELECT FROM other WHERE k = 5) o CROSS JOIN fact f) JOIN dim ON f.k = dim.k WHERE c = 1');
RESET enable_material;
RESET join_collapse_limit;
-- Not through the nullable side.
SELECT probes('SELECT * FROM (other LEFT JOIN fact ON fact.id = other.k) JOIN dim ON COALESCE(fact.k, 1) = dim.k WHERE c = 1');
SELECT compare('SELECT * FROM (other LEFT JOIN fact ON fact.id = other.k + 19990) JOIN dim ON COALESCE(fact.k, 1) = dim.k WHERE c = 1');
SELECT compare('SELECT * FROM (other FULL JOIN fact ON fact.id = other.k + 19990) JOIN dim ON COALESCE(fact.k, 1) = dim.k WHERE c = 1');
CREATE TABLE flags AS SELECT true AS missing;
ANALYZE flags;
SELECT compare('SELECT * FROM (other LEFT JOIN fact ON fact.id = other.k + 19990) JOIN flags ON (fact.k IS NULL) = flags.missing');
SELECT compare('SELECT * FROM (fact LEFT JOIN other ON fact.id = other.k + 19990) JOIN flags ON (other.k IS NULL) = flags.missing');
SELECT compare('SELECT * FROM (other FULL JOIN fact ON fact.id = other.k + 19990) JOIN flags ON (fact.k IS NULL) = flags.missing');
SELECT compare('SELECT * FROM (other FULL JOIN fact ON fact.id = other.k + 19990) JOIN flags ON (other.k IS NULL) = flags.missing');
-- Below subqueries, Append, sorting, CTEs.
SELECT probes('SELECT * FROM (SELECT k FROM fact UNION ALL SELECT k FROM other) f JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM (SELECT k FROM fact UNION ALL SELECT k FROM other) f JOIN dim USING (k) WHERE c = 1');
SELECT probes('WITH f AS MATERIALIZED (SELECT * FROM fact) SELECT * FROM f JOIN dim USING (k) WHERE c = 1');
SELECT probes('SELECT * FROM generate_series(1, 1000) k JOIN dim USING (k) WHERE c = 1');
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM fact WHERE g <> 7;
SELECT probes('SELECT * FROM barrier JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM barrier JOIN dim USING (k) WHERE c = 1');
-- Not below LIMIT: it would let other rows through.
SELECT probes('SELECT * FROM (SELECT * FROM fact ORDER BY id LIMIT 1000) f JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM (SELECT * FROM fact ORDER BY id LIMIT 1000) f JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM (SELECT * FROM fact WHERE id < 10000 ORDER BY id OFFSET 500) f JOIN dim USING (k) WHERE c = 1');
-- Below GROUP BY, DISTINCT, window functions and set operations, by the grouping columns only.
SELECT probes('SELECT * FROM (SELECT k, count(*) FROM fact GROUP BY k) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k, count(*) FROM fact GROUP BY k) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT probes('SELECT * FROM (SELECT g, max(k) AS k FROM fact GROUP BY g) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT g, max(k) AS k FROM fact GROUP BY g) f JOIN dim USING (k)');
SELECT probes('SELECT * FROM (SELECT k, g, count(*) FROM fact GROUP BY GROUPING SETS ((k, g), (g))) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k, g, count(*) FROM fact GROUP BY GROUPING SETS ((k, g), (g))) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT DISTINCT k, g FROM fact) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT DISTINCT ON (g) g, k FROM fact ORDER BY g, id) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
-- Not by a Group, Unique or WindowAgg node, nor by a set operation
SELECT probes('SELECT * FROM (SELECT DISTINCT ON (k) g, k FROM fact ORDER BY k, id) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT probes('SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) FROM fact) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) FROM fact) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k FROM fact EXCEPT SELECT k FROM other WHERE k > 500) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT probes('SELECT * FROM (SELECT k FROM fact UNION SELECT k FROM other) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k FROM fact UNION SELECT k FROM other) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
-- A sorted Agg has one if its input is sorted for it.
SET enable_hashagg = off;
SELECT probes('SELECT * FROM (SELECT k, count(*) FROM fact GROUP BY k) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT compare('SELECT * FROM (SELECT k, count(*) FROM fact GROUP BY k) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
SELECT probes('SELECT * FROM (SELECT k FROM fact GROUP BY k) f JOIN dim USING (k) WHERE dim.k % 7 = 1');
RESET enable_hashagg;
-- A group is not divided by a join that tells its rows apart by another collation.
CREATE COLLATION same_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE cased (t text COLLATE same_case);
INSERT INTO cased SELECT CASE WHEN i <= 500 THEN 'k' ELSE 'K' END || i % 100 FROM generate_series(1, 1000) i;
ANALYZE cased;
SELECT probes('SELECT * FROM (SELECT t, count(*) FROM cased GROUP BY t) f JOIN dim ON f.t COLLATE "C" = dim.t WHERE c = 1');
SELECT compare('SELECT * FROM (SELECT t, count(*) FROM cased GROUP BY t) f JOIN dim ON f.t COLLATE "C" = dim.t WHERE c = 1');
-- A collation that is not deterministic has none.
SELECT probes('SELECT * FROM cased f JOIN dim ON f.t = dim.t COLLATE same_case WHERE c = 1');
SELECT compare('SELECT * FROM cased f JOIN dim ON f.t = dim.t COLLATE same_case WHERE c = 1');

--
-- Volatile functions are called as often as without filters: a statement that calls one has none, unless it is in the
-- select list of the statement, or in that of INSERT ... SELECT.
--
CREATE SEQUENCE calls;
CREATE FUNCTION add_slowly(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1 + $2 + 0 * nextval(''calls'')';
CREATE AGGREGATE slow_sum(bigint) (SFUNC = add_slowly, STYPE = bigint, INITCOND = '0');
CREATE FUNCTION counts_call(int) RETURNS boolean LANGUAGE sql AS 'SELECT nextval(''calls'') > 0';
CREATE FUNCTION by_default(int, boolean DEFAULT counts_call(1)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1; END';
CREATE DOMAIN unchecked AS int;
CREATE DOMAIN counted AS int CHECK (counts_call(VALUE));
CREATE TYPE counted_pair AS (a counted, b int);
CREATE TYPE counted_range AS RANGE (subtype = counted);
CREATE FUNCTION few_slowly() RETURNS SETOF int LANGUAGE sql AS 'SELECT k FROM dim WHERE nextval(''calls'') > 0';
CREATE VIEW slow_fact AS SELECT * FROM fact WHERE g + nextval('calls') > 0;
CREATE TABLE added (n int DEFAULT nextval('calls'), k int);
SELECT query, (SELECT count(*) FROM probes(query)) AS probes FROM unnest(ARRAY[
    $$SELECT nextval('calls'), f.* FROM fact f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT f.k, count(*) + nextval('calls') FROM fact f JOIN dim USING (k) WHERE c = 1 GROUP BY f.k ORDER BY random() LIMIT 5$$,
    $$INSERT INTO added (k) SELECT f.k FROM fact f JOIN dim USING (k) WHERE c = 1$$,
    $$INSERT INTO added SELECT nextval('calls'), f.k FROM fact f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1::unchecked$$,
    -- and these have none
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND f.g + nextval('calls') > 0$$,
    $$SELECT * FROM (SELECT k, nextval('calls') FROM fact) f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT (SELECT count(*) FROM fact f JOIN dim USING (k) WHERE c = 1 AND f.g + nextval('calls') > 0)$$,
    $$SELECT sum(nextval('calls')) FROM fact f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT slow_sum(f.id) FROM fact f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT * FROM (SELECT k, slow_sum(id) OVER (PARTITION BY k) FROM fact) f JOIN dim USING (k) WHERE c = 1$$,
    $$INSERT INTO added SELECT 1, f.k FROM fact f JOIN dim USING (k) WHERE c = 1 AND f.g + nextval('calls') > 0$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 LIMIT nextval('calls')$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 UNION ALL SELECT nextval('calls')$$,
    $$WITH x AS (SELECT nextval('calls') AS n) SELECT f.id FROM fact f JOIN dim USING (k), x WHERE c = 1$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND g < (SELECT nextval('calls'))$$,
    $$SELECT f.id FROM slow_fact f JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) JOIN few_slowly() x ON x = k WHERE c = 1$$,
    $$SELECT f.id FROM fact f TABLESAMPLE BERNOULLI (100 + 0 * nextval('calls')) JOIN dim USING (k) WHERE c = 1$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) JOIN (VALUES (1, nextval('calls'))) v (c) USING (c)$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND by_default(f.g) > 0$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND f.g::counted > 0$$,
    $$SELECT f.id FROM fact f JOIN dim ON f.g::counted = dim.k$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND ('(' || f.g || ',1)')::counted_pair IS NOT NULL$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) WHERE c = 1 AND ('[' || f.g || ',9]')::counted_range IS NOT NULL$$,
    $$SELECT f.id FROM fact f JOIN dim USING (k) JOIN json_to_recordset('[]') r (c counted) USING (c)$$]) AS query;
DROP FUNCTION by_default, few_slowly;
DROP VIEW slow_fact;
DROP TYPE counted_pair, counted_range;
DROP DOMAIN counted, unchecked;
DROP AGGREGATE slow_sum(bigint);
DROP FUNCTION counts_call, add_slowly;
SET join_collapse_limit = 1;

-- Where a node may stop before it has read all rows, a scan that drops all of them would read on: a merge join of
-- which the other side has ended, MergeAppend and IncrementalSort below a join that does so.
BEGIN;
CREATE INDEX ON other (k);
SET LOCAL enable_mergejoin = on;
SET LOCAL enable_sort = off;
SET LOCAL enable_seqscan = off;
SELECT probes('SELECT * FROM (fact JOIN other ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
SELECT nodes('SELECT * FROM (fact JOIN other ON fact.id = other.k) JOIN dim ON fact.k = dim.k WHERE c = 1');
SELECT probes('SELECT * FROM (SELECT id, k FROM fact ORDER BY id, k OFFSET 0) f JOIN dim USING (k) WHERE c = 1');
SELECT nodes('SELECT * FROM (SELECT id, k FROM fact ORDER BY id, k OFFSET 0) f JOIN dim USING (k) WHERE c = 1');
SELECT probes('SELECT * FROM (SELECT id, k FROM fact UNION ALL SELECT id, k FROM fact ORDER BY id OFFSET 0) f JOIN dim USING (k) WHERE c = 1');
SELECT nodes('SELECT * FROM (SELECT id, k FROM fact UNION ALL SELECT id, k FROM fact ORDER BY id OFFSET 0) f JOIN dim USING (k) WHERE c = 1');
ROLLBACK;
RESET join_collapse_limit;

--
-- Statements that lock or change rows have no filters; those that add rows have.
--
SELECT probes('DELETE FROM fact USING dim WHERE fact.k = dim.k AND c = 1');
SELECT probes('MERGE INTO fact USING dim ON fact.k = dim.k AND c = 1 WHEN MATCHED THEN DELETE');
CREATE TABLE target (LIKE fact);
SELECT probes('INSERT INTO target SELECT fact.* FROM fact JOIN dim USING (k) WHERE c = 1');
SET bloomfilter.join_filters = force;
INSERT INTO target SELECT fact.* FROM fact JOIN dim USING (k) WHERE c = 1;
SELECT count(*) FROM target;
CREATE TABLE made WITH (autovacuum_enabled = off) AS SELECT fact.* FROM fact JOIN dim USING (k) WHERE c = 1;
SELECT count(*) FROM made;
RESET bloomfilter.join_filters;

--
-- Joins that may be executed more than once have no filters: below a nested loop, in a subplan with parameters or
-- whose rows are asked for again, and in recursion.
--
RESET enable_nestloop;
SET enable_memoize = off;
SELECT probes('SELECT * FROM (VALUES (1), (2)) v (x), LATERAL (SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1 AND fact.g = x) s');
SELECT probes('SELECT x, (SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = x) FROM generate_series(1, 5) x');
SELECT probes('SELECT * FROM other WHERE k > ALL (SELECT fact.id FROM fact JOIN dim USING (k) WHERE c = 1 AND g < 0)');
SELECT probes('WITH RECURSIVE r (k) AS (SELECT k FROM dim WHERE c = 1 UNION ALL SELECT other.k + 1000 FROM other JOIN r ON other.k = r.k) SELECT * FROM r');
-- Nor has a subplan that is hashed. Others have: a CTE, and one that is a parameter.
SELECT probes('SELECT * FROM other WHERE k NOT IN (SELECT fact.id FROM fact JOIN dim USING (k) WHERE c = 1)');
SELECT probes('WITH f AS MATERIALIZED (SELECT fact.id FROM fact JOIN dim USING (k) WHERE c = 1) SELECT * FROM f a, f b');
SELECT probes('SELECT x, (SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1) FROM generate_series(1, 5) x');
SELECT compare('SELECT x, (SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1) FROM generate_series(1, 5) x');
SET enable_nestloop = off;
RESET enable_memoize;

--
-- Prepared statements, cursors, errors and subtransactions
--
SET bloomfilter.join_filters = force;
SET plan_cache_mode = force_generic_plan;
PREPARE by_class(int) AS SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = $1;
EXECUTE by_class(1);
EXECUTE by_class(2);
EXECUTE by_class(1000);
EXECUTE by_class(1);
RESET plan_cache_mode;
-- Two executions of one plan at the same time.
BEGIN;
DECLARE a SCROLL CURSOR FOR SELECT id, dim.k, c FROM fact JOIN dim USING (k) WHERE c = 1 ORDER BY id;
DECLARE b SCROLL CURSOR FOR SELECT id, dim.k, c FROM fact JOIN dim USING (k) WHERE c = 2 ORDER BY id;
FETCH 2 FROM a;
FETCH 2 FROM b;
FETCH BACKWARD 1 FROM a;
FETCH LAST FROM a;
FETCH ABSOLUTE 3 FROM b;
MOVE ABSOLUTE 0 IN a;
FETCH 1 FROM a;
CLOSE a;
FETCH 1 FROM b;
-- Also with keys that the interpreter evaluates.
DECLARE c CURSOR FOR SELECT id FROM fact JOIN dim ON fact.k::numeric = dim.k::numeric WHERE c = 1 ORDER BY id;
DECLARE d CURSOR FOR SELECT id FROM fact JOIN dim ON fact.k::numeric = dim.k::numeric WHERE c = 2 ORDER BY id;
FETCH 1 FROM d;
FETCH 1 FROM c;
-- An error in the middle of one leaves the other.
SAVEPOINT s;
DECLARE broken CURSOR FOR SELECT 1 / (fact.id - 19990) FROM fact JOIN dim ON fact.k = dim.k AND c > 30;
FETCH 1 FROM broken;
MOVE ALL IN broken;
ROLLBACK TO s;
FETCH 1 FROM b;
SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
COMMIT;
-- A query within a query.
CREATE FUNCTION matches(int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = $1';
SELECT c, matches(c), count(*) FROM fact JOIN dim USING (k) WHERE c IN (1, 2) GROUP BY c ORDER BY c;
RESET bloomfilter.join_filters;

--
-- Row security comes first.
--
CREATE ROLE regress_join_reader;
GRANT USAGE ON SCHEMA join_test TO regress_join_reader;
GRANT SELECT ON fact, dim TO regress_join_reader;
ALTER TABLE fact ENABLE ROW LEVEL SECURITY;
CREATE POLICY readable ON fact USING (g <> 7);
SET ROLE regress_join_reader;
SET bloomfilter.join_filters = force;
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
SELECT count(*) FROM fact JOIN dim USING (k) WHERE c IN (1, 7);
SET bloomfilter.join_filters = off;
SELECT count(*) FROM fact JOIN dim USING (k) WHERE c IN (1, 7);
RESET ROLE;
ALTER TABLE fact DISABLE ROW LEVEL SECURITY;
-- Without the privilege to call the function there are no filters, and no errors.
SET bloomfilter.join_filters = force;
REVOKE EXECUTE ON FUNCTION bloom_join_probe FROM PUBLIC;
SET ROLE regress_join_reader;
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
RESET ROLE;
GRANT EXECUTE ON FUNCTION bloom_join_probe TO PUBLIC;
RESET bloomfilter.join_filters;

--
-- Partitions
--
CREATE TABLE parts (p int, k int) PARTITION BY LIST (p);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
CREATE TABLE parts_3 (k int, gone int, p int);
ALTER TABLE parts_3 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES IN (3);
INSERT INTO parts SELECT i % 3 + 1, i % 1000 FROM generate_series(1, 9000) i;
ANALYZE parts;
SELECT probes('SELECT * FROM parts JOIN dim USING (k) WHERE c = 1');
SELECT checked, removed > 8000 AS removed FROM counts('SELECT * FROM parts JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM parts JOIN dim USING (k) WHERE c = 1');
SELECT compare('SELECT * FROM (SELECT k, count(*) FROM parts GROUP BY k) p JOIN dim USING (k) WHERE c = 1');

--
-- Parallel plans; each process that is planned takes part.
--
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE copied WITH (autovacuum_enabled = off) AS SELECT * FROM fact;
ANALYZE copied;
SELECT compare('SELECT fact.*, c FROM fact JOIN dim USING (k) WHERE c = 1');
SELECT checked BETWEEN 20000 AND 20100 AS checked, removed > 19000 AS removed, state
  FROM counts('SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1');
SELECT keys, checked BETWEEN 20000 AND 20100 AS checked, removed BETWEEN 18500 AND 19700 AS removed, state
  FROM counts('SELECT count(*) FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1 OFFSET 0');
SELECT compare('SELECT fact.id FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1');
SELECT compare('SELECT k, count(*) FROM fact JOIN copied f USING (k) WHERE f.g = 1 GROUP BY k');
SELECT compare('SELECT * FROM parts JOIN dim USING (k) WHERE c = 1');
SET enable_parallel_hash = off;
SELECT compare('SELECT fact.id FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1');
RESET enable_parallel_hash;
SET parallel_leader_participation = off;
SELECT compare('SELECT fact.id FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1');
RESET parallel_leader_participation;
-- A subplan that is hashed is told to start again before its first execution, and each partition executes it.
SELECT compare('SELECT id FROM generate_series(1, 20000) id WHERE id NOT IN (SELECT f.id FROM fact f JOIN copied c ON f.k = c.id WHERE c.g = 1)');
SELECT compare('SELECT k FROM parts WHERE k NOT IN (SELECT f.id FROM fact f JOIN copied c ON f.k = c.id WHERE c.g = 1)');
SELECT compare('SELECT k FROM parts WHERE k < (SELECT max(f.id) / 4 FROM fact f JOIN copied c ON f.k = c.id WHERE c.g = 1)');
-- Shared bits are sized by an estimate; one that is far too high takes no more than is allowed.
BEGIN;
UPDATE pg_class SET reltuples = CASE relname WHEN 'fact' THEN 1e9 ELSE 1e7 END WHERE oid IN ('fact'::regclass, 'copied'::regclass);
SET LOCAL bloomfilter.join_filter_memory = '64kB';
SELECT keys, memory, removed BETWEEN 18500 AND 19700 AS removed, state
  FROM counts('SELECT count(*) FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1 OFFSET 0');
SELECT compare('SELECT fact.id FROM fact JOIN copied f ON fact.id = f.id WHERE f.g = 1');
ROLLBACK;
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

--
-- Without the extension there are no filters, also in plans that are cached.
--
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET bloomfilter.join_filters = force;
PREPARE cached AS SELECT count(*) FROM fact JOIN dim USING (k) WHERE c = 1;
EXPLAIN (COSTS OFF) EXECUTE cached;
EXECUTE cached;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION bloomfilter CASCADE;
EXPLAIN (COSTS OFF) EXECUTE cached;
EXECUTE cached;
ROLLBACK;
EXPLAIN (COSTS OFF) EXECUTE cached;
EXECUTE cached;

RESET bloomfilter.join_filters;
RESET enable_nestloop;
RESET enable_mergejoin;
RESET max_parallel_workers_per_gather;
RESET jit;
SET client_min_messages = warning;
DROP SCHEMA join_test CASCADE;
DROP OWNED BY regress_join_reader;
DROP ROLE regress_join_reader;
RESET client_min_messages;
RESET search_path;
