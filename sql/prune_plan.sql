--
-- PRUNE_PLAN
-- Partitions that may have a key are found before a query is planned.
--
\pset format unaligned
\pset tuples_only

LOAD 'bloomfilter';

\set ECHO none
-- The tables that a plan reads, or that it reads none; and who does.
CREATE FUNCTION tables(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT coalesce(string_agg(DISTINCT t #>> '{}', ', '), 'none') || CASE WHEN plan::text ~ '"Gather"' THEN ' by workers' ELSE '' END
    FROM jsonb_path_query(plan, 'strict $.** ? (@."Node Type" != "ModifyTable")."Relation Name"') t);
END $$;

\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/prune.psql'
\i :functions
\set ECHO all

CREATE TABLE days (day int, id bigint, v text) PARTITION BY RANGE (day);
DO $$
BEGIN
  FOR d IN 1 .. 30 LOOP
    EXECUTE format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%s) TO (%s)', d, d, d + 1);
  END LOOP;
END $$;
CREATE INDEX days_id ON days USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO days SELECT 1 + i % 30, i, 'v ' || i FROM generate_series(1, 3000) i;
CREATE TABLE wanted (id bigint, w text);
INSERT INTO wanted SELECT i, 'w ' || i FROM generate_series(1, 3000) i;
ANALYZE days, wanted;

-- At the top, with other conditions, in joins, subqueries, views, CTEs, UNION ALL.
CREATE VIEW view_of_days AS SELECT id AS key, upper(v) AS upper, day + 1 AS next FROM days WHERE v <> 'x';
CREATE VIEW arms AS
  SELECT day, id, v, 1 AS arm FROM days UNION ALL
  SELECT day + 1, id, upper(v), 2 FROM days UNION ALL
  SELECT 5, id, w, 3 FROM (SELECT id, w FROM wanted OFFSET 0) w UNION ALL
  SELECT 6, id, w, 4 FROM wanted UNION ALL
  SELECT day, id, v, 5 FROM (SELECT * FROM days UNION ALL SELECT * FROM days) d;
CREATE VIEW joined AS SELECT d.id, d.day, w FROM wanted LEFT JOIN days d USING (id);
SELECT tables(query), query FROM unnest(ARRAY[
  'SELECT * FROM days WHERE id = 40',
  'SELECT * FROM days WHERE 40::int = id AND v LIKE ''v%''',
  'SELECT * FROM days WHERE id = -1',
  'SELECT * FROM days WHERE id IN (40, 41, -1)',
  'SELECT * FROM days WHERE id = ANY (''{40,NULL}'')',
  'SELECT * FROM days WHERE id = 40 AND id = 41',
  'SELECT * FROM days d WHERE d.id = 40 AND EXISTS (SELECT FROM days e WHERE e.id = 42)',
  'SELECT (SELECT v FROM days WHERE id = 40), (SELECT v FROM days WHERE id = -1)',
  'SELECT * FROM view_of_days WHERE key = 40',
  'SELECT * FROM (SELECT * FROM view_of_days) v WHERE key = 40',
  'SELECT * FROM joined WHERE id = 40',
  'SELECT * FROM days a JOIN days b USING (id) WHERE id = 40',
  'SELECT * FROM days a JOIN days b ON a.id = b.id JOIN days c ON b.id = c.id WHERE c.id = 40',
  'SELECT * FROM wanted LEFT JOIN days d USING (id) WHERE d.id = 40',
  'SELECT * FROM days d RIGHT JOIN wanted w ON d.id = w.id WHERE w.id = 40 AND d.id = 40',
  'WITH c AS (SELECT * FROM days WHERE id = 40) SELECT * FROM c',
  'WITH c AS MATERIALIZED (SELECT * FROM days WHERE id = 40) SELECT * FROM c, c d',
  'WITH RECURSIVE r AS (SELECT id FROM days WHERE id = 40 UNION ALL SELECT r.id + 1 FROM r, days d WHERE d.id = 41 AND r.id < 45) SELECT * FROM r',
  'SELECT * FROM (SELECT id, v FROM days UNION ALL SELECT id, w FROM wanted) u WHERE id = 40',
  'SELECT * FROM (SELECT id, v FROM days WHERE day > 0 UNION ALL SELECT id, v FROM days) u WHERE id = 40',
  'SELECT * FROM arms WHERE id = 40',
  'SELECT * FROM arms WHERE id = 40 AND (arm < 3 OR day = 2)',
  'SELECT * FROM arms WHERE id = 40 AND (arm = 3 OR day = 2)',
  'SELECT * FROM arms WHERE id = 40 AND arm > 1 AND v > ''''',
  'SELECT * FROM arms WHERE id = 4000',
  'SELECT * FROM wanted w LEFT JOIN arms a ON w.id = a.id AND a.id = 40',
  'SELECT id FROM days WHERE id = 40 UNION SELECT id FROM days WHERE id = 41',
  'SELECT max(v) FROM days WHERE id = 40 GROUP BY day',
  'SELECT * FROM days WHERE id = 40 FOR UPDATE',
  'UPDATE days SET v = v WHERE id = 40',
  'DELETE FROM days d USING wanted w WHERE d.id = w.id AND w.id = 40',
  'INSERT INTO wanted SELECT id, v FROM days WHERE id = 40',
  'INSERT INTO days SELECT 1, 40, NULL WHERE NOT EXISTS (SELECT FROM days WHERE id = 40)',
  'WITH d AS (DELETE FROM days WHERE id = 40 RETURNING *) SELECT * FROM d']) query;

-- Where the condition says nothing of all rows, or PostgreSQL prunes by itself.
CREATE FUNCTION parts(query text) RETURNS int LANGUAGE sql AS $$
  SELECT count(*)::int FROM unnest(string_to_array(tables(query), ', ')) t WHERE t LIKE 'days%' $$;
SELECT parts(query), query FROM unnest(ARRAY[
  'SELECT * FROM days WHERE id = 40 OR v = ''x''',
  'SELECT * FROM days WHERE id <> 40',
  'SELECT * FROM days WHERE NOT id = 40',
  'SELECT * FROM days WHERE id <> ALL (''{40}'')',
  'SELECT * FROM wanted LEFT JOIN days d ON d.id = wanted.id AND d.id = 40',
  'SELECT * FROM days d FULL JOIN wanted w ON d.id = w.id AND d.id = 40',
  'SELECT * FROM days WHERE id = (SELECT max(id) FROM wanted)',
  'SELECT * FROM days WHERE id = id',
  'SELECT * FROM days WHERE id = 40 AND random() < 2',
  'SELECT * FROM days WHERE id + 0 = 40',
  'SELECT * FROM days WHERE id = 40.0',
  'SELECT * FROM days TABLESAMPLE SYSTEM (100) WHERE id = 40',
  'SELECT * FROM ONLY days WHERE id = 40',
  'SELECT * FROM days WHERE id = 40 AND day < 4',
  'SELECT * FROM days WHERE id IN (SELECT generate_series(40, 41))',
  'SELECT * FROM (SELECT id, random() FROM days) d WHERE id = 40',
  'SELECT * FROM (SELECT id FROM days LIMIT 1) d WHERE id = 40',
  'SELECT * FROM (SELECT id, count(*) FROM days GROUP BY id) d WHERE id = 40',
  'SELECT * FROM (SELECT DISTINCT ON (v) id FROM days) d WHERE id = 40',
  'SELECT * FROM (SELECT id, row_number() OVER () FROM days) d WHERE id = 40',
  'SELECT * FROM (SELECT id FROM days EXCEPT SELECT id FROM days) d WHERE id = 40',
  'SELECT * FROM (SELECT id FROM days UNION ALL SELECT id FROM days LIMIT 5) d WHERE id = 40',
  'SELECT * FROM (SELECT id + 1 AS id FROM days) d WHERE id = 40',
  'SELECT * FROM days WHERE id = ANY (ARRAY(SELECT generate_series(40, 50)))']) query;
SELECT rows_of(format(query, i)) AS rows, count(*), query
  FROM generate_series(2990, 3010) i, unnest(ARRAY[
    'SELECT * FROM days WHERE id = %s', 'SELECT * FROM days WHERE id IN (%s, 3, 5000)',
    'SELECT * FROM view_of_days WHERE key = %s', 'SELECT * FROM joined WHERE id = %s',
    'SELECT * FROM days a LEFT JOIN days b ON a.id = b.id + 1 AND b.id = 7 WHERE a.id = %s',
    'SELECT * FROM (SELECT id, v FROM days UNION ALL SELECT id, w FROM wanted) u WHERE id = %s',
    'SELECT * FROM arms WHERE id = %s', 'SELECT * FROM arms WHERE id = %s AND (arm = 3 OR day = 2)',
    'SELECT * FROM arms WHERE id IN (%s, 41) AND (arm > 1 OR NULL)', 'SELECT a, b FROM arms a JOIN arms b USING (arm) WHERE a.id = %s AND b.id = 41',
    'SELECT * FROM wanted w LEFT JOIN arms a ON w.id = a.id AND a.id = %s',
    'SELECT count(*), max(v) FROM days WHERE id = %s',
    'SELECT * FROM wanted LEFT JOIN days d ON d.id = wanted.id AND d.id = %s WHERE wanted.id < 5']) query
  GROUP BY 1, 3 ORDER BY 3, 1;

-- Parameters of custom plans; literals of kept plans; locks.
PREPARE by_id(bigint) AS SELECT v FROM days WHERE id = $1;
PREPARE by_ids(bigint[]) AS SELECT v FROM days WHERE id = ANY ($1);
PREPARE by_int(int) AS SELECT v FROM days WHERE id = $1::bigint;
SELECT tables('EXECUTE by_id(40)'), tables('EXECUTE by_ids(''{40,41}'')'), tables('EXECUTE by_int(40)'), tables('EXECUTE by_id(NULL)');
-- A generic plan is exchanged for one of what may have the key, as EXPLAIN ANALYZE shows.
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION started(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  RETURN (SELECT CASE WHEN count(*) > 4 THEN count(*)::text ELSE coalesce(string_agg(DISTINCT t #>> '{}', ', '), 'none') END
    FROM jsonb_path_query(plan, 'strict $.** ? (@."Node Type" != "ModifyTable")."Relation Name"') t);
END $$;
PREPARE generic_join(bigint) AS SELECT w, v FROM wanted LEFT JOIN days d ON d.id = $1 AND length(d.v) = length(wanted.w) WHERE wanted.id IN (40, 41);
PREPARE generic_list(bigint[]) AS SELECT v FROM days WHERE id = ANY ($1) ORDER BY v DESC LIMIT 5;
PREPARE generic_update(bigint) AS UPDATE days SET v = v WHERE id = $1 RETURNING tableoid::regclass, v;
PREPARE generic_lock(bigint) AS SELECT upper FROM view_of_days WHERE key = $1 FOR UPDATE;
PREPARE generic_arms(bigint) AS SELECT max(v) FROM (SELECT v FROM days WHERE id = $1 UNION ALL SELECT w FROM wanted WHERE id = $1) u;
PREPARE generic_sub(bigint) AS SELECT w FROM wanted WHERE id < 3 AND NOT EXISTS (SELECT FROM days WHERE id = $1 AND random() < 2);
PREPARE generic_day(bigint, int) AS SELECT v FROM days WHERE id = $1 AND day <= $2;
PREPARE generic_order(bigint) AS SELECT v FROM days WHERE id = $1 ORDER BY day DESC;
SET seq_page_cost = 10;
SELECT started(query), query FROM unnest(ARRAY['EXECUTE by_id(40)', 'EXECUTE by_id(-1)', 'EXECUTE by_id(NULL)', 'EXECUTE by_int(41)',
  'EXECUTE by_ids(''{40,NULL,-1,42}'')', 'EXECUTE by_ids(''{}'')', 'EXECUTE by_ids(NULL)', 'EXECUTE generic_join(40)', 'EXECUTE generic_list(''{40,41}'')',
  'EXECUTE generic_update(40)', 'EXECUTE generic_lock(40)', 'EXECUTE generic_arms(40)', 'EXECUTE generic_sub(-1)', 'EXECUTE generic_day(40, 12)',
  'EXECUTE generic_order(40)']) query;
-- but for lists where the scans cost no more than lookups
RESET seq_page_cost;
PREPARE of_small(bigint[]) AS SELECT v FROM days WHERE id = ANY ($1);
SELECT started('EXECUTE of_small(''{40,42}'')');
DEALLOCATE of_small;
EXECUTE by_id(40);
EXECUTE by_id(6000);
EXECUTE generic_join(40);
EXECUTE generic_list('{40,41,-1}');
EXECUTE generic_update(40);
EXECUTE generic_lock(41);
EXECUTE generic_arms(42);
EXECUTE generic_sub(43);
EXECUTE generic_sub(-1);
EXECUTE generic_day(44, 15);
EXECUTE generic_order(45);
-- What is computed of other parameters may fail, so that is left to the execution. Nothing is exchanged while it is off.
PREPARE generic_fails(bigint, int) AS SELECT v FROM days WHERE id = $1 AND length(v) < 10 / $2;
EXECUTE generic_fails(-1, 0);
SET bloomfilter.index_pruning = off;
SELECT started('EXECUTE by_id(40)');
SET bloomfilter.index_pruning = on;
-- two keys of one table; keys that are made of parameters; one of many tables, which takes longer to plan than to execute
PREPARE generic_two(bigint, bigint) AS SELECT a.v, b.v FROM days a, days b WHERE a.id = $1 AND b.id = $2;
PREPARE generic_in(bigint, bigint) AS SELECT v FROM days WHERE id IN ($1, $2, 42);
PREPARE generic_many(bigint) AS SELECT v FROM days d, (VALUES (1)) a, wanted b, wanted c, wanted e, wanted f, wanted g
  WHERE d.id = $1 AND b.id = d.id AND c.id = d.id AND e.id = d.id AND f.id = d.id AND g.id = d.id;
SELECT started(query), query FROM unnest(ARRAY['EXECUTE generic_two(40, 41)', 'EXECUTE generic_two(40, 40)', 'EXECUTE generic_two(40, -1)',
  'EXECUTE generic_in(40, NULL)', 'EXECUTE generic_many(40)']) query;
EXECUTE generic_two(40, 41);
EXECUTE generic_in(40, -1);
EXECUTE generic_many(40);
-- nothing is planned again where PostgreSQL prunes by itself, or has pruned, or where more is left than a key rules out
CREATE INDEX days_v ON days USING bloomfilter (v) WITH (fpp = 1e-6);
CREATE TABLE others (id bigint) PARTITION BY HASH (id);
DO $$
BEGIN
  FOR i IN 0 .. 9 LOOP
    EXECUTE format('CREATE TABLE others_%s PARTITION OF others FOR VALUES WITH (MODULUS 10, REMAINDER %s)', i, i);
  END LOOP;
END $$;
PREPARE generic_at(bigint, int) AS SELECT v FROM days WHERE id = $1 AND day = $2;
PREPARE generic_since(bigint) AS SELECT v FROM days WHERE id = $1 AND day > current_setting('my.day')::int;
PREPARE generic_v(bigint) AS SELECT v FROM days WHERE id = $1 AND v = 'v 40';
PREPARE generic_others(bigint) AS SELECT v FROM days, others WHERE days.id = $1;
PREPARE generic_columns(bigint, text) AS SELECT v FROM days WHERE id = $1 AND v = $2;
SET my.day = 28;
SELECT started(query), query FROM unnest(ARRAY['EXECUTE generic_at(-1, 11)', 'EXECUTE generic_since(-1)', 'EXECUTE generic_v(-1)',
  'EXECUTE generic_others(-1)', 'EXECUTE generic_columns(40, ''x'')', 'EXECUTE generic_columns(-1, ''v 40'')']) query;
-- Of two lists, one is in all partitions.
SET seq_page_cost = 10;
PREPARE generic_lists(bigint[], text[]) AS SELECT v FROM days WHERE id = ANY ($1) AND v = ANY ($2);
SELECT started(format('EXECUTE generic_lists(''{40,-1}'', %L)', array_agg('v ' || i))) FROM generate_series(1, 600) i;
RESET seq_page_cost;
-- Gates of partitions that are expensive to read are no other relations.
SET cpu_tuple_cost = 1;
PREPARE generic_gates(bigint) AS SELECT v FROM days WHERE id = $1;
SELECT started('EXECUTE generic_gates(40)');
RESET cpu_tuple_cost;
DROP TABLE others;
DROP INDEX days_v;
-- one parameter is the key of one scan, and has the keys of another one
CREATE TABLE spans (span int4range) PARTITION BY RANGE (span);
CREATE TABLE spans_1 PARTITION OF spans DEFAULT;
CREATE TABLE lists (list int4range[]);
INSERT INTO spans SELECT int4range(i, i + 5) FROM generate_series(1, 2000) i;
INSERT INTO lists SELECT ARRAY[int4range(i, i + 5), int4range(i, i + 7)] FROM generate_series(1, 2000) i;
CREATE INDEX ON spans USING bloomfilter (span);
CREATE INDEX ON lists USING bloomfilter (list);
ANALYZE spans, lists;
PREPARE both_ways(int4range[]) AS
  SELECT span::text FROM spans WHERE span = ANY ($1) UNION ALL SELECT list::text FROM lists WHERE list = $1;
SELECT started('EXECUTE both_ways(''{"[7,12)","[7,14)"}'')');
EXECUTE both_ways('{"[7,12)","[7,14)"}');
DROP TABLE spans, lists;
-- the cached plan finds rows of this transaction
BEGIN;
INSERT INTO days VALUES (9, 6000, 'own');
EXECUTE by_id(6000);
SAVEPOINT s;
INSERT INTO days VALUES (10, 6000, 'own, too');
EXECUTE by_id(6000);
ROLLBACK TO s;
EXECUTE by_id(6000);
ROLLBACK;
EXECUTE by_id(6000);
WITH added AS (INSERT INTO days VALUES (9, 6000, 'x') RETURNING id) SELECT (SELECT count(*) FROM days WHERE id = added.id) FROM added;
EXECUTE by_id(6000);
DELETE FROM days WHERE id = 6000;
-- without any EXECUTE: PL/pgSQL, and SQL that is suspended while rows are inserted
CREATE FUNCTION of_key(key bigint) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT id FROM days WHERE id = key';
CREATE FUNCTION count_of(key bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  SELECT count(*) INTO n FROM days WHERE id = key;
  INSERT INTO days VALUES (1 + n, key, 'x');
  RETURN n * 10 + (SELECT count(*) FROM days WHERE id = key);
END $$;
SELECT count_of(6001) FROM generate_series(1, 3);
INSERT INTO days SELECT 20, 6001, 'y' FROM (SELECT count_of(6001) OFFSET 0) q RETURNING (SELECT count(*) FROM days WHERE id = 6001);
SELECT count(*), sum(day) FROM days WHERE id = 6001;
INSERT INTO days VALUES (3, 6002, 'x');
BEGIN;
INSERT INTO days SELECT 20, f, 'new' FROM (SELECT of_key(6002) f OFFSET 0) q;
SELECT count(*) FROM days WHERE id = 6002;
ROLLBACK;
BEGIN;
SET LOCAL bloomfilter.index_pruning = off;
INSERT INTO days SELECT 20, f, 'new' FROM (SELECT of_key(6002) f OFFSET 0) q;
SELECT count(*) FROM days WHERE id = 6002;
ROLLBACK;
-- its plan has a gate for each partition
BEGIN;
SELECT sum(pg_stat_get_xact_numscans(inhrelid)) AS lookups FROM pg_inherits WHERE inhparent = 'days_id'::regclass \gset
SELECT count(*) FROM (SELECT of_key(i) FROM generate_series(6001, 6003) i OFFSET 0) q;
SELECT sum(pg_stat_get_xact_numscans(inhrelid)) - :lookups AS lookups FROM pg_inherits WHERE inhparent = 'days_id'::regclass;
COMMIT;
DELETE FROM days WHERE id IN (6001, 6002);
-- one parameter for several columns, of which each partition has another index
CREATE TABLE columns (day int, a int[], x int) PARTITION BY RANGE (day);
CREATE TABLE columns_1 PARTITION OF columns FOR VALUES FROM (1) TO (2);
CREATE TABLE columns_2 PARTITION OF columns FOR VALUES FROM (2) TO (3);
CREATE TABLE columns_3 PARTITION OF columns FOR VALUES FROM (3) TO (4);
CREATE INDEX ON columns_1 USING bloomfilter (a);
CREATE INDEX ON columns_2 USING bloomfilter (x);
INSERT INTO columns SELECT d, ARRAY[d, i], d FROM generate_series(1, 3) d, generate_series(1, 1000) i;
PREPARE by_columns(int[]) AS SELECT * FROM columns WHERE a = $1 AND x = ANY ($1);
EXECUTE by_columns('{1,5}');
EXECUTE by_columns('{2,5}');
EXECUTE by_columns('{3,5}');
SELECT started('EXECUTE by_columns(''{7,5}'')');
DROP TABLE columns;
DROP FUNCTION started, of_key, count_of;
RESET plan_cache_mode;
BEGIN;
SELECT v FROM days WHERE id = 40;
SELECT count(*) FILTER (WHERE relation::regclass::text LIKE 'days%') <= 6 AS few_locks FROM pg_locks WHERE pid = pg_backend_pid();
COMMIT;
CREATE FUNCTION few_locks(key bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT v FROM days WHERE id = key LOOP
    IF EXISTS (SELECT FROM days WHERE id = key) THEN
      PERFORM FROM days WHERE id = key;
      RETURN count(*) FILTER (WHERE relation::regclass::text LIKE 'days%') <= 6 FROM pg_locks WHERE pid = pg_backend_pid();
    END IF;
  END LOOP;
END $$;
SELECT few_locks(40);
DROP FUNCTION few_locks;
-- Rows that a statement inserts while its function looks for them, by a plan that is kept.
CREATE FUNCTION times_seen(key bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM days WHERE id = 9000; RETURN n; END $$;
BEGIN;
INSERT INTO days SELECT 7 + i % 3, 9000, times_seen(9000) FROM generate_series(1, 5) i RETURNING day, v;
SAVEPOINT s;
TRUNCATE days_7, days_8, days_9;
SELECT times_seen(9000);
ROLLBACK TO s;
SELECT times_seen(9000);
ROLLBACK;
SELECT times_seen(9000);
DROP FUNCTION times_seen;

-- In a transaction that has changed rows, each statement asks once.
CREATE FUNCTION run(query text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE query; END';
CREATE FUNCTION least_pages(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  result json;
  least bigint;
BEGIN
  FOR i IN 1..10 LOOP
    EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT run(%L)', query) INTO result;
    least := least(least, (result -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint);
  END LOOP;
  RETURN least;
END $$;
SELECT least_pages(q) BETWEEN 30 AND 59 AS once FROM (VALUES ('UPDATE days SET v = v WHERE id = 40'), ('SELECT * FROM days WHERE id = 40')) v (q);
DROP FUNCTION run, least_pages;
CREATE FUNCTION literal() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT v FROM days WHERE id = 5000; END $$;
CREATE FUNCTION literal_sql() RETURNS SETOF text LANGUAGE sql AS $$ SELECT v FROM days WHERE id = 5000 $$;
PREPARE literal AS SELECT v FROM days WHERE id = 5000;
EXECUTE literal;
SELECT literal();
BEGIN;
INSERT INTO days VALUES (7, 5000, 'own');
EXECUTE literal;
SELECT literal(), literal_sql();
SAVEPOINT s;
UPDATE days SET day = 8, v = 'moved' WHERE id = 5000;
EXECUTE literal;
ROLLBACK TO s;
EXECUTE literal;
ROLLBACK;
EXECUTE literal;
SELECT literal();

-- Each way to execute a plan that was kept without the key.
INSERT INTO days VALUES (9, 5000, 'committed');
EXECUTE literal;
CREATE TABLE copied AS EXECUTE literal;
SELECT * FROM copied;
SELECT count(*) FROM literal();
DELETE FROM days WHERE id = 5000;
DO $$
DECLARE
  r record;
  n int := 0;
  c CURSOR FOR SELECT v FROM days WHERE id = 6000;
BEGIN
  FOR i IN 1 .. 3 LOOP
    FOR r IN SELECT v FROM days WHERE id = 6000 LOOP
      n := n + 1;
    END LOOP;
    PERFORM v FROM days WHERE id = 6000;
    n := n + FOUND::int * 10;
    OPEN c;
    FETCH c INTO r;
    n := n + FOUND::int * 100;
    CLOSE c;
    n := n + 1000 * (SELECT count(*) FROM days WHERE id = 6000);
    UPDATE days SET v = v || 'x' WHERE id = 6000;
    n := n + FOUND::int * 10000;
    IF i = 1 THEN
      INSERT INTO days VALUES (3, 6000, 'new');
    END IF;
  END LOOP;
  RAISE NOTICE '% of 22222, %', n, (SELECT v FROM days WHERE id = 6000);
END $$;
COPY (SELECT v FROM days WHERE id = 6000) TO STDOUT;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM days WHERE id IN (6000, 40) ORDER BY id;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;

-- Plans that are started while another one is started.
CREATE FUNCTION a_day() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT min(day) FROM days WHERE id = 41); END $$;
WITH c AS MATERIALIZED (SELECT id FROM days WHERE day = a_day()) SELECT v, (SELECT count(*) FROM c) FROM days WHERE id = 40;
DROP FUNCTION a_day;

-- Rows of the statement that is being executed.
CREATE FUNCTION skip_known() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  n int;
BEGIN
  EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE known';
  PERFORM FROM days WHERE id = NEW.id;
  IF FOUND THEN RETURN NULL; END IF;
  PERFORM FROM days WHERE id = 8003;
  IF FOUND THEN NEW.v := '8003 is there'; END IF;
  EXECUTE 'EXECUTE known' INTO n;
  NEW.v := NEW.v || ', ' || n;
  RETURN NEW;
END $$;
CREATE TRIGGER skip_known BEFORE INSERT ON days FOR EACH ROW EXECUTE FUNCTION skip_known();
PREPARE known AS SELECT count(*) FROM days WHERE id = 8002;
INSERT INTO days SELECT 1 + i % 3, 8000 + i % 6, 'new' FROM generate_series(0, 11) i RETURNING id, v;
DROP TRIGGER skip_known ON days;
DELETE FROM days WHERE id BETWEEN 8000 AND 8005;

-- Cursors that are changed through, functions that insert first, temporary
-- tables, parallel workers.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM days WHERE id = 40 FOR UPDATE;
FETCH c;
UPDATE days SET v = 'current' WHERE CURRENT OF c RETURNING v;
INSERT INTO days VALUES (5, 5000, 'own');
DECLARE d CURSOR FOR SELECT v FROM days WHERE id = 5000;
FETCH d;
DELETE FROM days WHERE CURRENT OF d RETURNING v;
CREATE FUNCTION insert_first() RETURNS SETOF text LANGUAGE sql AS $$
  INSERT INTO days VALUES (6, 5001, 'first');
  SELECT v FROM days WHERE id = 5001 $$;
SELECT insert_first();
CREATE TEMP TABLE days_temp (day int, id int) PARTITION BY LIST (day) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE days_temp_1 PARTITION OF days_temp FOR VALUES IN (1) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE days_temp_2 PARTITION OF days_temp FOR VALUES IN (2) ON COMMIT DELETE ROWS;
CREATE INDEX ON days_temp USING bloomfilter (id) WITH (fpp = 1e-6);
PREPARE of_temp AS SELECT day FROM days_temp WHERE id = 1;
EXECUTE of_temp;
INSERT INTO days_temp VALUES (2, 1);
EXECUTE of_temp;
SELECT tables('SELECT day FROM days_temp WHERE id = 1');
COMMIT;
EXECUTE of_temp;
SELECT tables('SELECT day FROM days_temp WHERE id = 1');
DROP TABLE days_temp;
DELETE FROM days WHERE id = 5001;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
PREPARE by_workers AS SELECT count(*) FROM days WHERE id IN (41, 5000) AND length(v) > 1;
SELECT tables('EXECUTE by_workers');
EXECUTE by_workers;
INSERT INTO days VALUES (9, 5000, 'committed');
EXECUTE by_workers;
DELETE FROM days WHERE id = 5000;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- Types: values that are equal but not the same, other ones of the operator
-- family, domains, collations.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN ids AS bigint[];
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE days_typed (day int, i2 smallint, i8 bigint, f4 real, f8 float8, num numeric, c char(8), v varchar, na name, d positive,
  ts timestamptz, a int[], j jsonb, t text, blind text COLLATE blind) PARTITION BY RANGE (day);
DO $$
DECLARE
  c text;
BEGIN
  FOR d IN 1 .. 9 LOOP
    EXECUTE format('CREATE TABLE days_typed_%s PARTITION OF days_typed FOR VALUES FROM (%s) TO (%s)', d, d, d + 1);
  END LOOP;
  FOREACH c IN ARRAY ARRAY['i2', 'i8', 'f4', 'f8', 'num', 'c', 'v', 'na', 'd', 'ts', 'a', 'j', 't', '(blind COLLATE "C")'] LOOP
    EXECUTE format('CREATE INDEX ON days_typed USING bloomfilter (%s) WITH (fpp = 1e-6)', c);
  END LOOP;
END $$;
INSERT INTO days_typed SELECT i, i, i, i, i, i, i, i, i, i, to_timestamp(i), ARRAY[i, NULL], to_jsonb(i), i, i FROM generate_series(1, 8) i;
INSERT INTO days_typed VALUES (9, 9, NULL, 'NaN', '-0', 'NaN', 'é ', 'é ', 'é', NULL, 'infinity', '{}', 'null', 'é ', 'É');
PREPARE by_domain(positive) AS SELECT * FROM days_typed WHERE d = $1;
PREPARE by_text(text) AS SELECT * FROM days_typed WHERE v = $1;
SELECT tables('EXECUTE by_domain(5)') AS domain, tables('EXECUTE by_domain(NULL)') AS null, tables('EXECUTE by_text(''5'')') AS text,
  tables('EXECUTE by_text(''5 '')') AS spaces;
SELECT parts('SELECT * FROM days_typed WHERE ' || condition), rows_of('SELECT i8 FROM days_typed WHERE ' || condition) AS rows, condition
  FROM unnest(ARRAY[
    'i2 = 5', 'i2 = 70000', 'i2 = 5::bigint', 'i8 = 5::smallint', 'i8 = 5.0', 'i8 IN (5::int, 6::smallint)', 'i8 = ANY (''{5,6}''::ids)',
    'i8 = ANY (''{{5,6},{7,NULL}}'')', 'i8 = ANY (''{NULL}'')', 'i8 = NULL', 'i8 = ANY (NULL::int8[])', 'f4 = ''NaN''', 'f4 = 5::float8', 'f8 = 0',
    'f8 = ''-0''::real', 'f8 = 5::real', 'num = ''NaN''', 'num = 5.00', 'num = 5::bigint', 'num = 5::float8', 'c = ''5''', 'c = ''5   ''', 'c = ''5''::text',
    'c = ''é''', 'v = ''é''', 'v = ''é ''', 'v = ''5''::name', 'v = ''5''::bpchar', 'na = ''é''', 'na = ''5''::text', 'd = 5', 'd = 5::positive', 'd = 5::bigint',
    'ts = to_timestamp(5)', 'ts = ''infinity''', 'ts = ''1970-01-01 00:00:05''::timestamp', 'a = ''{5,NULL}''', 'a = ''{}''', 'a = ''[0:1]={5,NULL}''',
    'j = ''5.0''', 'j = ''null''', 't = ''5''', 't = ''5'' COLLATE "C"', 't = ''5'' COLLATE blind', 'blind = ''é''',
    'blind = ''5'' COLLATE "C"']) condition;
DEALLOCATE by_domain;
DEALLOCATE by_text;
DROP TABLE days_typed;
DROP DOMAIN positive, ids;
DROP COLLATION blind;

-- Lists, sub-partitions, DEFAULT, hash, other orders of columns, missing indexes.
CREATE TABLE tree (a int, b text, id int) PARTITION BY LIST (a);
CREATE TABLE tree_1 PARTITION OF tree FOR VALUES IN (1, 2);
CREATE TABLE tree_3 PARTITION OF tree FOR VALUES IN (3);
CREATE TABLE tree_null PARTITION OF tree FOR VALUES IN (NULL);
CREATE TABLE tree_4 (id int, dropped int, b text, a int) PARTITION BY RANGE (b, id);
ALTER TABLE tree_4 DROP COLUMN dropped;
CREATE TABLE tree_4_low PARTITION OF tree_4 FOR VALUES FROM (MINVALUE, MINVALUE) TO ('m', 5);
CREATE TABLE tree_4_high (b text, a int, id int);
ALTER TABLE tree_4 ATTACH PARTITION tree_4_high FOR VALUES FROM ('m', 5) TO (MAXVALUE, MAXVALUE);
ALTER TABLE tree ATTACH PARTITION tree_4 FOR VALUES IN (4);
CREATE TABLE tree_5 PARTITION OF tree FOR VALUES IN (5) PARTITION BY HASH (id);
CREATE TABLE tree_5_0 PARTITION OF tree_5 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE tree_5_1 PARTITION OF tree_5 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX tree_id ON tree USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO tree SELECT nullif(1 + i % 6, 6), chr(97 + i % 26), i FROM generate_series(1, 600) i;
INSERT INTO tree SELECT 3, chr(97 + i % 26), i FROM generate_series(601, 620) i;
SELECT tables(format('SELECT * FROM tree WHERE id = %s', i)), count(*), sum(rows_of(format('SELECT * FROM tree WHERE id = %s', i))) AS rows
  FROM generate_series(0, 630) i GROUP BY 1 ORDER BY 1;
CREATE TABLE tree_rest PARTITION OF tree DEFAULT;
INSERT INTO tree VALUES (100, 'default', 1000), (1, 'both', 1000);
SELECT tables(format('SELECT * FROM tree WHERE id = %s', i)), rows_of(format('SELECT * FROM tree WHERE id = %s', i))
  FROM unnest('{1000,1001,7}'::int[]) i;
SELECT sum(rows_of(format('SELECT * FROM tree WHERE id = %s', i))) FROM generate_series(0, 630, 7) i;
DROP TABLE tree;
CREATE TABLE gaps (day int, id int) PARTITION BY RANGE (day);
CREATE TABLE gaps_1 PARTITION OF gaps FOR VALUES FROM (1) TO (2);
CREATE TABLE gaps_2 PARTITION OF gaps FOR VALUES FROM (2) TO (3);
CREATE TABLE gaps_3 PARTITION OF gaps FOR VALUES FROM (3) TO (4);
CREATE INDEX gaps_id ON ONLY gaps USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX gaps_1_id ON gaps_1 USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX gaps_2_id ON gaps_2 USING bloomfilter (id) WITH (fpp = 1e-6);
ALTER INDEX gaps_id ATTACH PARTITION gaps_1_id;
INSERT INTO gaps VALUES (1, 1), (2, 2), (3, 3);
SELECT i, tables(format('SELECT * FROM gaps WHERE id = %s', i)), rows_of(format('SELECT * FROM gaps WHERE id = %s', i)) FROM generate_series(0, 4) i;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'gaps_1_id'::regclass;
SELECT tables('SELECT * FROM gaps WHERE id = 4');
CREATE FOREIGN DATA WRAPPER regress_bloom_none;
CREATE SERVER regress_bloom_none FOREIGN DATA WRAPPER regress_bloom_none;
DROP INDEX gaps_id;
CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE gaps_4 PARTITION OF gaps FOR VALUES FROM (4) TO (5) USING other_heap;
CREATE INDEX ON gaps USING bloomfilter (id) WITH (fpp = 1e-6);
SELECT tables('SELECT * FROM gaps WHERE id = 3');
CREATE FOREIGN TABLE gaps_5 PARTITION OF gaps FOR VALUES FROM (5) TO (6) SERVER regress_bloom_none;
SELECT tables('SELECT * FROM gaps WHERE id = 3');
DROP TABLE gaps;
DROP FOREIGN DATA WRAPPER regress_bloom_none CASCADE;
DROP ACCESS METHOD other_heap;
CREATE TABLE hashed (id int, other int) PARTITION BY HASH (other);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX ON hashed USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO hashed SELECT i, i FROM generate_series(1, 10) i;
SELECT tables('SELECT * FROM hashed WHERE id = 3'), tables('SELECT * FROM hashed WHERE id = 30');
DROP TABLE hashed;

-- Levels of several kinds: the first partition of each is opened, and left out.
CREATE TABLE mixed (a int, b int, id int, v text) PARTITION BY RANGE (a);
CREATE TABLE mixed_0 PARTITION OF mixed FOR VALUES FROM (0) TO (1) PARTITION BY HASH (b);
CREATE TABLE mixed_0_0 PARTITION OF mixed_0 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE mixed_0_1 PARTITION OF mixed_0 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (1) TO (2) PARTITION BY LIST (b);
CREATE TABLE mixed_1_0 PARTITION OF mixed_1 FOR VALUES IN (0);
CREATE TABLE mixed_1_1 PARTITION OF mixed_1 DEFAULT PARTITION BY HASH (id);
CREATE TABLE mixed_1_1_0 PARTITION OF mixed_1_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE mixed_1_1_1 PARTITION OF mixed_1_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE mixed_2 PARTITION OF mixed DEFAULT;
CREATE INDEX ON mixed USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO mixed SELECT i % 3, i / 3 % 2, i, 'v' FROM generate_series(0, 11) i;
SELECT id, tables(format('SELECT * FROM mixed WHERE id = %s', id)),
       tables(format('SELECT * FROM mixed JOIN mixed again USING (id, a, b) WHERE id = %s', id))
  FROM generate_series(-1, 11) id;
SELECT tables('SELECT * FROM mixed WHERE id = ANY (''{0,2,4}'')'), tables('SELECT * FROM mixed WHERE id = 4 AND a = 1');
SET enable_partitionwise_join = on;
SELECT tables('SELECT * FROM mixed m JOIN mixed n USING (a) WHERE m.id = 1 AND n.id = 4'),
       tables('SELECT * FROM mixed m LEFT JOIN mixed n ON m.a = n.a AND n.id = 4 WHERE m.id = 2');
RESET enable_partitionwise_join;
UPDATE mixed SET v = 'moved', a = 0 WHERE id = 11 RETURNING tableoid::regclass, *;
UPDATE mixed SET v = 'none' WHERE id = 12 RETURNING *;
DELETE FROM mixed WHERE id = ANY ('{3,11,12}') RETURNING tableoid::regclass, id;
SELECT id FROM mixed WHERE id = ANY ('{3,5}') FOR UPDATE;
DROP TABLE mixed;
CREATE TABLE expressions (t text, id int) PARTITION BY RANGE (lower(t));
CREATE TABLE expressions_1 PARTITION OF expressions FOR VALUES FROM ('a') TO ('n');
CREATE TABLE expressions_2 PARTITION OF expressions FOR VALUES FROM ('n') TO ('z');
CREATE INDEX ON expressions USING bloomfilter (id);
SELECT tables('SELECT * FROM expressions WHERE id = 3');
DROP TABLE expressions;

-- The bounds by which it is pruned do not change the estimate of a table that was
-- never analyzed, nor are they evaluated for its rows.
CREATE TABLE days_new (day int, id int) PARTITION BY RANGE (day);
CREATE TABLE days_new_1 PARTITION OF days_new FOR VALUES FROM (1) TO (2) PARTITION BY RANGE (day);
CREATE TABLE days_new_1_1 PARTITION OF days_new_1 FOR VALUES FROM (1) TO (2);
CREATE TABLE days_new_2 PARTITION OF days_new FOR VALUES FROM (2) TO (3);
CREATE TABLE days_new_rest PARTITION OF days_new DEFAULT;
CREATE INDEX ON days_new USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO days_new VALUES (1, 1), (2, 2), (3, 3);
DO $$
DECLARE
  line text;
BEGIN
  FOR i IN 1 .. 3 LOOP
    FOR line IN EXECUTE format('EXPLAIN SELECT * FROM days_new WHERE id = %s', i) LOOP
      CONTINUE WHEN line ~ 'Index Pruning';
      RAISE NOTICE '%', line;
    END LOOP;
  END LOOP;
END $$;
SELECT i, rows_of(format('SELECT * FROM days_new WHERE id = %s', i)), rows_of(format('SELECT * FROM (SELECT day, id FROM days_new UNION ALL SELECT day, id FROM days_new) u WHERE id = %s AND day < 3', i)) AS arms
  FROM generate_series(0, 4) i;
DROP TABLE days_new;

-- More partitions than a list of bounds is good for.
CREATE TABLE days_many (day int, id int) PARTITION BY RANGE (day);
DO $$
BEGIN
  FOR d IN 1 .. 50 LOOP
    EXECUTE format('CREATE TABLE days_many_%s PARTITION OF days_many FOR VALUES FROM (%s) TO (%s)', d, d, d + 1);
  END LOOP;
END $$;
CREATE INDEX days_many_id ON days_many USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO days_many SELECT i, i FROM generate_series(1, 50) i;
SELECT n, parts(format('SELECT * FROM days_many WHERE id = ANY (%L)', ARRAY(SELECT generate_series(1, n)))) FROM unnest('{39,40,41}'::int[]) n;

-- What is said, and what not: privileges, views, row-level security, barriers.
SELECT count(*) FROM days_many WHERE id > 0;
SELECT count(*) FROM days WHERE id = 40;
SELECT count(*) FROM days_many WHERE id = ANY (ARRAY(SELECT generate_series(1, 41)));
SET client_min_messages = debug1;
SELECT count(*) FROM days WHERE id = 40;
SELECT count(*) FROM days_many WHERE id = ANY (ARRAY[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41]);
RESET client_min_messages;
CREATE ROLE regress_bloom_reader;
CREATE VIEW days_barrier WITH (security_barrier) AS SELECT * FROM days WHERE day > 0;
CREATE VIEW days_view AS SELECT * FROM days;
GRANT SELECT ON days_view, days_barrier TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT parts('SELECT * FROM days_view WHERE id = 40') AS view, parts('SELECT * FROM days_barrier WHERE id = 40') AS barrier;
SET client_min_messages = debug1;
EXPLAIN (COSTS OFF) SELECT * FROM days WHERE id = -1;
RESET client_min_messages;
RESET ROLE;
SELECT parts('SELECT * FROM days_view v JOIN days_barrier USING (id) WHERE v.id = 40') AS beside_barrier;
REVOKE SELECT ON days_view FROM regress_bloom_reader;
SET ROLE regress_bloom_reader;
SET client_min_messages = debug1;
SELECT count(*) FROM days_view WHERE id = 40;
RESET client_min_messages;
RESET ROLE;
GRANT SELECT ON days_view TO regress_bloom_reader;
GRANT SELECT (id) ON days TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT id FROM days WHERE id = 40;
SELECT tables('SELECT id FROM days WHERE id = 40');
RESET ROLE;
GRANT SELECT ON days TO regress_bloom_reader;
CREATE FUNCTION kept() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT v FROM days WHERE id = 7000; END $$;
SELECT kept();
REVOKE SELECT ON days FROM regress_bloom_reader;
REVOKE SELECT (id) ON days FROM regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT kept();
RESET ROLE;
CREATE FUNCTION silent(bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET enable_nestloop = off SET enable_mergejoin = off SET bloomfilter.join_filters = on AS $$ BEGIN
  UPDATE days d SET v = m.day FROM days_many m WHERE d.id = $1 AND d.day + 0 = m.day + 0; PERFORM FROM days_1 WHERE id > 0;
END $$;
SET ROLE regress_bloom_reader;
SET client_min_messages = debug1;
SELECT silent(40);
RESET client_min_messages;
RESET ROLE;
GRANT SELECT ON days TO regress_bloom_reader;
ALTER TABLE days ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON days USING (id % 2 = 1);
SET ROLE regress_bloom_reader;
SELECT parts('SELECT * FROM days WHERE id = 40') AS row_security, parts('SELECT * FROM days_view WHERE id = 40') AS of_owner;
RESET ROLE;
ALTER TABLE days DISABLE ROW LEVEL SECURITY;

-- A kept plan that lacks a partition is made again once, not at each execution.
PREPARE kept_plan AS SELECT count(*) FROM days WHERE id = 8001;
EXECUTE kept_plan;
INSERT INTO days SELECT day + 1, 8001, 'x' FROM days WHERE id = 40;
SET client_min_messages = debug1;
EXECUTE kept_plan;
EXECUTE kept_plan;
EXECUTE kept_plan;
EXECUTE kept_plan;
RESET client_min_messages;
DEALLOCATE kept_plan;

-- A function in SQL is suspended while the statement around it inserts rows that it sees.
CREATE FUNCTION found() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT id FROM days WHERE id = 8002';
INSERT INTO days VALUES (3, 8002, 'x');
BEGIN;
INSERT INTO days SELECT 20, f, 'new' FROM (SELECT found() f OFFSET 0) q RETURNING id;
ROLLBACK;
SELECT count(*) FROM (SELECT found() FROM generate_series(1, 3)) q;
DROP FUNCTION found;
-- One that returns a single row is not.
CREATE FUNCTION times_found() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM days WHERE id = 8003';
BEGIN;
INSERT INTO days SELECT 19 + i, 8003, times_found() FROM generate_series(1, 3) i RETURNING day, v;
ROLLBACK;
DROP FUNCTION times_found;

-- Off.
SET bloomfilter.index_pruning = off;
SELECT parts('SELECT * FROM days WHERE id = 40') AS off;
RESET bloomfilter.index_pruning;

DROP OWNED BY regress_bloom_reader;
DROP ROLE regress_bloom_reader;
DROP TABLE days, days_many, wanted, copied CASCADE;
DROP FUNCTION tables, rows_of, parts, literal, literal_sql, kept, silent, skip_known, insert_first;
