--
-- PRUNE
-- Queries by a key ask indexes before they read tables.
--
\pset format unaligned
\pset tuples_only

\set ECHO none
-- The gates in the plan of a query, and the scans behind them that were not
-- executed.
CREATE FUNCTION gates(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  gates int := 0;
  closed int := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    CONTINUE WHEN line !~ 'bloom_index_gate|never executed';
    IF line ~ 'bloom_index_gate' THEN
      gates := gates + 1;
      IF gates <= 2 THEN
        RETURN NEXT regexp_replace(trim(line), '\$0|\(InitPlan 1\)\.col1', 'a subquery');
      END IF;
    ELSE
      closed := closed + (line ~ 'Scan')::int;
    END IF;
  END LOOP;
  RETURN NEXT format('%s gates, %s scans not executed', gates, closed);
END $$;

\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/prune.psql'
\i :functions
\set ECHO all

SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;

-- One table.
CREATE TABLE one (id int, name text, n int);
INSERT INTO one SELECT i * 2, 'name ' || i * 2, i FROM generate_series(1, 20000) i;
CREATE INDEX one_id ON one USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX one_name ON one USING bloomfilter (name) WITH (fpp = 1e-6);
ANALYZE one;
SELECT gates('SELECT * FROM one WHERE id = 5');
SELECT gates('SELECT * FROM one WHERE 6 = id');
SELECT gates('SELECT * FROM one WHERE id = 5::bigint');
SELECT gates('SELECT * FROM one WHERE id IN (1, 3, 5)');
SELECT gates('SELECT * FROM one WHERE id IN (1, 4, NULL)');
SELECT gates($$SELECT * FROM one WHERE id = 6 AND name = 'name 5'$$);
SELECT gates('SELECT * FROM one a JOIN one b USING (id) WHERE a.id = 7');
SELECT gates('SELECT * FROM one a LEFT JOIN one b ON a.n = b.n AND b.id = 7 WHERE a.id = 6');
SELECT gates('UPDATE one SET n = 0 WHERE id = 5');
SELECT gates('DELETE FROM one WHERE id = 5');
SELECT gates('SELECT * FROM one WHERE id = 5 FOR UPDATE');
SELECT gates('SELECT min(n) FROM one WHERE id = 5');
SELECT gates('SELECT (SELECT count(*) FROM one WHERE id = o) FROM generate_series(5, 6) o');
SELECT rows_of(format('SELECT * FROM one WHERE id = %s', i)) AS rows, count(*)
  FROM generate_series(-3, 60) i GROUP BY 1;
SELECT rows_of('SELECT * FROM one WHERE id = ANY (''{}'')') AS empty,
  rows_of('SELECT * FROM one WHERE id = ANY (NULL)') AS null_array,
  rows_of('SELECT * FROM one WHERE id = ANY (''{NULL}'')') AS array_of_null,
  rows_of('SELECT * FROM one WHERE id = ANY (''{{NULL,3},{4,5}}'')') AS nested,
  rows_of('SELECT * FROM one WHERE id = NULL') AS null_key,
  rows_of('SELECT * FROM one WHERE id <> 4 AND id < 10') AS other_operators,
  rows_of('SELECT * FROM one WHERE ?- lseg(point(0, id), point(1, 4))') AS prefix_operator,
  rows_of('SELECT * FROM one WHERE id = 4 OR id = 5') AS alternatives,
  rows_of('SELECT * FROM one WHERE id <> ALL (''{4}'') AND id < 10') AS all_of,
  rows_of('SELECT * FROM one WHERE NOT id = 4 AND id < 10') AS negated,
  rows_of('SELECT 1 WHERE EXISTS (SELECT FROM one WHERE id = 4)') AS existing,
  rows_of('SELECT 1 WHERE NOT EXISTS (SELECT FROM one WHERE id = 5)') AS not_existing;

-- Parameters: of custom and generic plans, and none.
PREPARE by_id(int) AS SELECT * FROM one WHERE id = $1;
PREPARE by_ids(int[]) AS SELECT * FROM one WHERE id = ANY ($1);
PREPARE by_two(int, int) AS SELECT * FROM one WHERE id IN ($1, $2, 9);
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE by_id(5)');
SELECT gates('EXECUTE by_id(6)');
SELECT gates('EXECUTE by_id(NULL)');
SELECT gates('EXECUTE by_ids(''{5,7,NULL}'')');
SELECT gates('EXECUTE by_ids(NULL)');
SELECT gates('EXECUTE by_two(5, 7)');
EXECUTE by_two(5, 8);
SET plan_cache_mode = force_custom_plan;
SELECT gates('EXECUTE by_id(5)');
RESET plan_cache_mode;
DEALLOCATE ALL;

-- A gate asks each time that it is executed: own rows, also of a kept plan, of
-- subtransactions, in cursors.
PREPARE by_id(int) AS SELECT n FROM one WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_id(5);
BEGIN;
INSERT INTO one VALUES (5, 'name 5', 5);
EXECUTE by_id(5);
SAVEPOINT s;
INSERT INTO one VALUES (7, 'name 7', 7);
DECLARE c CURSOR WITH HOLD FOR SELECT n FROM one WHERE id = 7;
EXECUTE by_id(7);
ROLLBACK TO s;
EXECUTE by_id(7);
DECLARE c CURSOR WITH HOLD FOR SELECT n FROM one WHERE id = 5;
DELETE FROM one WHERE id = 5;
COMMIT;
FETCH ALL FROM c;
EXECUTE by_id(5);
CLOSE c;
DEALLOCATE by_id;
RESET plan_cache_mode;
WITH added AS (INSERT INTO one VALUES (9, 'name 9', 9) RETURNING id) SELECT id FROM added WHERE id NOT IN (SELECT id FROM one WHERE id = 9);
WITH added AS (INSERT INTO one VALUES (11, 'name 11', 11) RETURNING id) DELETE FROM one WHERE id = 9 RETURNING n;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM one WHERE id = 11 FOR UPDATE;
FETCH c;
UPDATE one SET n = 12 WHERE CURRENT OF c;
COMMIT;
SELECT n FROM one WHERE id = 11;

-- Types: other ones of the operator family, those with values that are equal
-- but not the same, domains, collations.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE types (i2 smallint, i8 bigint, f4 real, f8 float8, num numeric, c char(8), v varchar, na name, d positive, m mood,
  ts timestamptz, a int[], j jsonb, blind text COLLATE blind, u uuid);
INSERT INTO types
  SELECT i, i, i, i, i, i, i, i, i, CASE i WHEN 1 THEN 'sad'::mood END, to_timestamp(i), ARRAY[i, NULL], to_jsonb(i), i, gen_random_uuid()
  FROM generate_series(1, 20000) i;
UPDATE types SET f4 = 'NaN', f8 = '-0', num = 'NaN' WHERE i2 = 3;
DO $$
DECLARE c text;
BEGIN
  FOREACH c IN ARRAY ARRAY['i2', 'i8', 'f4', 'f8', 'num', 'c', 'v', 'na', 'd', 'm', 'ts', 'a', 'j', 'u', '(blind COLLATE "C")'] LOOP
    EXECUTE format('CREATE INDEX ON types USING bloomfilter (%s) WITH (fpp = 1e-6)', c);
  END LOOP;
END $$;
ANALYZE types;
SELECT condition, rows_of('SELECT i8 FROM types WHERE ' || condition) AS rows, gates('SELECT i8 FROM types WHERE ' || condition)
  FROM unnest(ARRAY[
    'i2 = 5', 'i2 = 30000::bigint', 'i2 = 5.0', 'i8 = 5::smallint', 'i8 = -5::smallint', 'f4 = 5::float8', 'f4 = ''NaN''::float8',
    'f8 = 0', 'f8 = 5.5::real', 'num = ''NaN''', 'num = 5.00', 'num = 5.5', 'num = 50000', 'c = ''5''', 'c = ''5   ''', 'c = ''x''',
    'c = ''x''::text', 'v = ''5''', 'v = ''x''', 'v = ''x''::name', 'na = ''5''', 'na = ''x''', 'na = ''x''::text', 'd = 5', 'd = 50000', 'd = 50000::positive',
    'm = ''sad''', 'm = ''glad''', 'ts = to_timestamp(5)', 'ts = ''epoch''', 'a = ''{5,NULL}''', 'a = ''{5}''', 'j = ''5.0''', 'j = ''"5"''',
    'blind = ''x''', 'blind = ''x'' COLLATE "C"', 'blind COLLATE "C" = ''x''', 'v = ''x'' COLLATE blind',
    'v = ''x'' COLLATE "C"', 'v::bpchar = ''x''::bpchar', 'i8::numeric = 0.5', 'u = ''00000000-0000-0000-0000-000000000000''']) condition;
PREPARE by_num(int) AS SELECT num FROM types WHERE num = $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE by_num(50000)');
SELECT gates('EXECUTE by_num(4)');
RESET plan_cache_mode;
DEALLOCATE by_num;
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
SELECT rows_of('SELECT i8 FROM types WHERE m = ''blue''');
DROP TABLE types;
DROP TYPE mood;
DROP COLLATION blind;

-- Keys that are evaluated when the scan starts, as those of index scans are, and
-- one that is of the row.
SELECT query, gates(query) FROM unnest(ARRAY[
  'SELECT * FROM one WHERE id = (SELECT max(n) FROM one)',
  'SELECT * FROM one WHERE id = current_setting(''server_version_num'')::int',
  'SELECT * FROM one WHERE id = n',
  'SELECT * FROM one WHERE id = 5 AND random() < 2',
  'SELECT * FROM one TABLESAMPLE SYSTEM (100) WHERE id = 5']) query;
PREPARE quotient(int) AS SELECT * FROM one WHERE id = 1 / $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE quotient(1)');
-- no error that the scan would not have
PREPARE never(int) AS SELECT count(*) FROM one WHERE n > 1000000 AND id = 1 / $1;
EXECUTE never(0);
RESET plan_cache_mode;
DEALLOCATE quotient;
DEALLOCATE never;

-- Scans that cost no more than a lookup.
CREATE TABLE small AS SELECT i AS id FROM generate_series(1, 100) i;
CREATE INDEX ON small USING bloomfilter (id);
ANALYZE small;
SELECT gates('SELECT * FROM small WHERE id = 500');
DELETE FROM one WHERE id IN (5, 7, 9, 11);
CREATE UNIQUE INDEX one_unique ON one (n);
CREATE INDEX one_n ON one USING bloomfilter (n);
SET enable_indexscan = on;
SELECT gates('SELECT * FROM one WHERE n = 50000');
SET enable_indexscan = off;
DROP INDEX one_unique, one_n;

-- Expressions and predicates.
CREATE INDEX one_lower ON one USING bloomfilter (lower(name)) WITH (fpp = 1e-6);
CREATE INDEX one_partial ON one USING bloomfilter (n) WITH (fpp = 1e-6) WHERE id > 10000;
ANALYZE one;
SELECT gates('SELECT * FROM one WHERE lower(name) = ''x''');
SELECT gates('SELECT * FROM one WHERE lower(name) = ''name 8''');
SELECT gates('SELECT * FROM one WHERE n = 7 AND id > 20000');
SET client_min_messages = debug1;
SELECT gates('SELECT * FROM one WHERE n = 7');
RESET client_min_messages;
SELECT gates('SELECT * FROM one WHERE n = 7 AND id > 20');
SELECT rows_of('SELECT * FROM one WHERE n = 7');
DROP INDEX one_lower, one_partial;

-- The setting, and what is said about tables without a gate.
SET bloomfilter.index_pruning = off;
SELECT gates('SELECT * FROM one WHERE id = 5');
RESET bloomfilter.index_pruning;
CREATE INDEX one_btree ON one (id);
SET enable_indexscan = on;
SET client_min_messages = debug1;
SELECT count(*) FROM one WHERE n < 5;
SELECT count(*) FROM small WHERE id = 500;
SELECT count(*) FROM one WHERE id = 50000;
RESET client_min_messages;
SET enable_indexscan = off;
DROP INDEX one_btree;

-- The function is for plans, and a query does not fail for want of it.
SELECT bloom_index_gate('one_id', 5);
SELECT bloom_index_gate('one_id', VARIADIC ARRAY[5]);
PREPARE by_id(int) AS SELECT * FROM one WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE by_id(5)');
REVOKE EXECUTE ON FUNCTION bloom_index_gate FROM PUBLIC;
SELECT gates('EXECUTE by_id(5)');
GRANT EXECUTE ON FUNCTION bloom_index_gate TO PUBLIC;
RESET plan_cache_mode;
DEALLOCATE by_id;

-- Privileges are those of the query.
CREATE ROLE regress_bloom_reader;
CREATE VIEW one_view AS SELECT id, n FROM one;
CREATE VIEW one_barrier WITH (security_barrier) AS SELECT id, n FROM one WHERE n > 10;
GRANT SELECT ON one_view, one_barrier TO regress_bloom_reader;
GRANT EXECUTE ON FUNCTION gates TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT gates('SELECT * FROM one_view WHERE id = 5');
SELECT gates('SELECT * FROM one_barrier WHERE id = 5');
SELECT gates('SELECT * FROM one WHERE id = 5');
SELECT bloom_index_contains('one_id', 5);
RESET ROLE;
GRANT SELECT (name, n) ON one TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT n FROM one WHERE id = 5;
RESET ROLE;
GRANT SELECT ON one TO regress_bloom_reader;
ALTER TABLE one ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON one USING (n % 2 = 1);
SET ROLE regress_bloom_reader;
SELECT gates('SELECT * FROM one WHERE id = 5');
SELECT gates('SELECT * FROM (SELECT id FROM one OFFSET 0) q WHERE id = 5');
SET client_min_messages = debug1;
SELECT count(*) FROM one WHERE id = 5;
RESET client_min_messages;
RESET ROLE;
SELECT gates('SELECT * FROM one WHERE id = 5');
ALTER TABLE one DISABLE ROW LEVEL SECURITY;
DROP VIEW one_view, one_barrier;

-- Partitions: one that has no index, of several levels, DEFAULT and hash.
RESET enable_indexscan;
RESET enable_bitmapscan;
CREATE TABLE parts (day int, id bigint, v text) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (2);
CREATE TABLE parts_2 (v text, dropped int, id bigint, day int);
ALTER TABLE parts_2 DROP COLUMN dropped;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (2) TO (3);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (3) TO (4) PARTITION BY HASH (v);
CREATE TABLE parts_3a PARTITION OF parts_3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_3b PARTITION OF parts_3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
CREATE INDEX parts_id ON ONLY parts USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON parts_1 USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON parts_2 USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON parts_3 USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO parts SELECT i % 5, i, i FROM generate_series(1, 20000) i;
ANALYZE parts;
SELECT gates('SELECT * FROM parts WHERE id = 7');
SELECT gates('SELECT * FROM parts WHERE id = 50000');
SELECT gates('SELECT * FROM parts WHERE id IN (7, 50000, 8)');
SELECT gates('SELECT * FROM parts WHERE id = 50000 AND day = 2');
SELECT gates('UPDATE parts SET v = v || ''x'' WHERE id = 7');
SELECT gates('DELETE FROM parts WHERE id = 8');
SELECT gates('SELECT * FROM parts a JOIN parts b USING (id) WHERE id = 9');
SELECT rows_of(format('SELECT * FROM parts WHERE id = %s', i)) AS rows, count(*)
  FROM generate_series(19970, 20030) i GROUP BY 1 ORDER BY 1;
UPDATE parts SET day = 3 WHERE id = 19;
SELECT * FROM parts WHERE id = 19;
MERGE INTO parts p USING (VALUES (21, 4), (30000, 2)) n (id, day) ON p.id = n.id AND p.id = 30000
  WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (n.day, n.id, 'merged');
SELECT * FROM parts WHERE v = 'merged' ORDER BY id;
CREATE INDEX parts_btree ON parts (id);
SELECT gates('SELECT * FROM parts WHERE id = 7');

-- A chance of one in so many partitions: no workers are started for it.
CREATE FUNCTION total_cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan #>> '{0,Plan,Total Cost}';
END $$;
DROP INDEX parts_btree;
SET bloomfilter.index_pruning = off;
CREATE TEMP TABLE costs AS SELECT total_cost('SELECT * FROM parts WHERE id = 7') AS without;
RESET bloomfilter.index_pruning;
SELECT total_cost('SELECT * FROM parts WHERE id = 7') < 0.7 * without AS cheaper FROM costs;
DROP TABLE parts;
-- A leaf of which planning has asked the index has no gate for that key.
CREATE TABLE asked (id int, part int) PARTITION BY LIST (part);
CREATE TABLE asked_0 PARTITION OF asked FOR VALUES IN (0);
CREATE TABLE asked_1 PARTITION OF asked FOR VALUES IN (1);
INSERT INTO asked SELECT i, i % 2 FROM generate_series(1, 20000) i;
CREATE INDEX ON asked USING bloomfilter (id) WITH (fpp = 1e-6);
ANALYZE asked;
SELECT gates('SELECT * FROM asked WHERE id IN (1, 2)');
SELECT gates('SELECT * FROM asked WHERE id IN (1, 3)');
PREPARE asked_by(int[]) AS SELECT * FROM asked WHERE id = ANY ($1);
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE asked_by(''{1,2}'')');
RESET plan_cache_mode;
DEALLOCATE asked_by;
DROP TABLE asked;

-- Children by inheritance, each with an index of its own, and a parent with rows.
CREATE TABLE family (id bigint, v text);
CREATE TABLE child_1 () INHERITS (family);
CREATE TABLE child_2 (extra int) INHERITS (family);
INSERT INTO family SELECT i, repeat('parent', 20) FROM generate_series(1, 2000) i;
INSERT INTO child_1 SELECT i, repeat('one', 40) FROM generate_series(1001, 3000) i;
INSERT INTO child_2 SELECT i, repeat('two', 40) FROM generate_series(2001, 4000) i;
CREATE INDEX ON family USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON child_1 USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON child_2 USING bloomfilter (id) WITH (fpp = 1e-6);
ANALYZE family, child_1, child_2;
SELECT gates('SELECT * FROM family WHERE id = 3500');
SELECT gates('SELECT * FROM family WHERE id = 1500');
SELECT gates('SELECT * FROM ONLY family WHERE id = 3500');
SELECT rows_of(format('SELECT * FROM family WHERE id = %s', i * 250)) AS rows, count(*) FROM generate_series(0, 20) i GROUP BY 1 ORDER BY 1;
SELECT gates('SELECT * FROM (SELECT id FROM child_1 UNION ALL SELECT id FROM child_2) u WHERE id = 3500');
DROP TABLE family CASCADE;

-- Scans of rows that each partition is expected to have; by an index, that are executed for
-- certain; that cost less than to look up a list; and of another access method.
SET plan_cache_mode = force_generic_plan;
CREATE TABLE cheap (part int, v int, common int, id int, each int, often int, seldom int, near int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE cheap_%s PARTITION OF cheap FOR VALUES IN (%1$s)', i) FROM generate_series(0, 8) i \gexec
-- whose columns have other numbers
CREATE TABLE cheap_9 (part int, v int, id int, common int, seldom int, each int, often int, near int);
ALTER TABLE cheap ATTACH PARTITION cheap_9 FOR VALUES IN (9);
INSERT INTO cheap SELECT i % 10, i / 10 % 100, i / 10 % 101, i, i / 10,
  CASE WHEN i % 50 < 10 THEN 0 ELSE i END, CASE WHEN i % 47 = 0 THEN i END, i / 50 * 10 + i % 10 FROM generate_series(1, 50000) i;
CREATE INDEX ON cheap (v);
CREATE INDEX ON cheap USING bloomfilter (each);
CREATE INDEX ON cheap USING bloomfilter (often);
CREATE INDEX ON cheap USING bloomfilter (near) WITH (fpp = 1e-6);
CREATE INDEX ON cheap USING bloomfilter (seldom) WITH (fpp = 1e-6);
CREATE INDEX ON cheap USING bloomfilter (common);
CREATE INDEX ON cheap USING bloomfilter (id) WITH (fpp = 1e-6);
ANALYZE cheap;
PREPARE by_common(int, int) AS SELECT * FROM cheap WHERE v = $1 AND common = $2;
PREPARE by_cheap_id(int, int) AS SELECT * FROM cheap WHERE v = $1 AND id = $2;
SELECT gates('EXECUTE by_common(5, 2)');
SELECT gates('EXECUTE by_cheap_id(5, 5)');
-- of a key of five rows in one partition; of a column that is NULL in most rows; of a common value among unique ones
SELECT gates('SELECT * FROM cheap WHERE v = 5 AND part < 9 AND near = -1');
SELECT gates('SELECT * FROM cheap WHERE v = 5 AND part < 9 AND seldom = -1');
SELECT gates('SELECT * FROM cheap WHERE v = 5 AND part < 9 AND often = -1');
SELECT gates('SELECT * FROM cheap WHERE v = 5 AND part < 9 AND often = 0');
-- of a key that each partition has one row of; of whatever column if statistics do not tell of the whole table
PREPARE by_each(int, int) AS SELECT * FROM cheap WHERE v = $1 AND each = $2;
SELECT gates('EXECUTE by_each(5, 5)');
DELETE FROM pg_statistic WHERE starelid = 'cheap'::regclass;
PREPARE by_id_alone(int, int) AS SELECT * FROM cheap WHERE v = $1 AND id = $2;
SELECT gates('EXECUTE by_id_alone(5, 5)');
-- a scan that costs enough for one lookup, but not for two
CREATE TABLE two AS SELECT i AS a, i AS b FROM generate_series(1, 3000) i;
CREATE INDEX ON two USING bloomfilter (a);
CREATE INDEX ON two USING bloomfilter (b);
ANALYZE two;
SELECT gates('SELECT * FROM two WHERE a = -1 AND b = -1');
DROP TABLE two;
SELECT gates('SELECT * FROM cheap_0 WHERE v = 5 AND id = -1');
SELECT gates(format('SELECT * FROM cheap_0 WHERE id = ANY (%L)', array_agg(-i))) FROM generate_series(1, 5) i;
SET client_min_messages = debug1;
SELECT gates(format('SELECT * FROM cheap_0 WHERE id = ANY (%L)', array_agg(-i))) FROM generate_series(1, 400) i;
SET cpu_tuple_cost = 1;
SELECT gates(format('SELECT * FROM cheap_0 WHERE id = ANY (%L)', array_agg(-i))) FROM generate_series(1, 1001) i;
RESET cpu_tuple_cost;
RESET client_min_messages;
DROP TABLE cheap;
RESET plan_cache_mode;
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE elsewhere (id int) USING other_heap;
INSERT INTO elsewhere SELECT generate_series(1, 20000);
CREATE INDEX ON elsewhere USING bloomfilter (id);
SELECT gates('SELECT * FROM elsewhere WHERE id = -1');
DROP TABLE elsewhere;
DROP ACCESS METHOD other_heap;
-- An index that has a key is asked once for a query.
BEGIN;
SELECT pg_stat_get_xact_numscans('one_id'::regclass) AS lookups \gset
SELECT sum((SELECT count(*) FROM one WHERE id = 6 AND n > o)) FROM generate_series(1, 5) o;
SELECT pg_stat_get_xact_numscans('one_id'::regclass) - :lookups;
-- It is not asked after it has been switched off, by no gate of a cached plan.
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE cached(int) AS SELECT n FROM one WHERE id = $1;
EXECUTE cached(5);
SET LOCAL bloomfilter.index_pruning = off;
EXECUTE cached(5);
SELECT pg_stat_get_xact_numscans('one_id'::regclass) - :lookups;
COMMIT;
DEALLOCATE cached;

-- Parallel workers.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
BEGIN;
INSERT INTO one VALUES (13, 'name 13', 13);
SELECT count(*) FROM one WHERE id = 13;
SELECT count(*) FROM one WHERE id = 15;
COMMIT;
SELECT gates('SELECT count(*) FROM one WHERE id = 15') ~ '1 gates' AS has_gate;
RESET max_parallel_workers_per_gather;

-- Triggers and foreign keys without an index of their own.
CREATE TABLE keys (id int PRIMARY KEY);
INSERT INTO keys SELECT i FROM generate_series(1, 20000) i;
CREATE TABLE refs (id int REFERENCES keys DEFERRABLE INITIALLY DEFERRED, v int);
CREATE INDEX ON refs USING bloomfilter (id);
INSERT INTO refs SELECT i, i FROM generate_series(1, 20000, 2) i;
ANALYZE refs;
DELETE FROM keys WHERE id = 1002;
DELETE FROM keys WHERE id = 1001;
BEGIN;
INSERT INTO refs VALUES (1004, 0);
DELETE FROM keys WHERE id = 1004;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DELETE FROM keys WHERE id = 1001;
COMMIT;
DROP TABLE refs, keys;

-- Lookups are counted, and the pages that they read, also those that are found where they were before.
CREATE TABLE counted (id int, part int) PARTITION BY LIST (part);
CREATE TABLE counted_1 PARTITION OF counted FOR VALUES IN (1);
CREATE TABLE counted_2 PARTITION OF counted FOR VALUES IN (2);
INSERT INTO counted SELECT i, 1 + i % 2 FROM generate_series(1, 20000) i;
CREATE INDEX counted_id ON counted USING bloomfilter (id);
ANALYZE counted;
\connect
LOAD 'bloomfilter';
DO $$
BEGIN
  FOR i IN 1 .. 50 LOOP
    EXECUTE format('SELECT FROM counted WHERE id = %s', 2 * i + 1);
  END LOOP;
END
$$;
SELECT FROM pg_stat_force_next_flush();
SELECT idx_scan >= 50 AS lookups, idx_blks_read + idx_blks_hit >= 2 * idx_scan AS pages
FROM pg_statio_user_indexes JOIN pg_stat_user_indexes USING (indexrelid)
WHERE pg_statio_user_indexes.indexrelname = 'counted_1_id_idx';
DROP TABLE counted;

DROP TABLE one, small;
DROP DOMAIN positive;
DROP FUNCTION gates, rows_of, total_cost;
DROP OWNED BY regress_bloom_reader;
DROP ROLE regress_bloom_reader;
