--
-- INDEX_TRANSACTIONS
-- Keys of an index are written by the end of the statement that inserts their rows, and found before.
--
\pset format unaligned
\pset tuples_only

SET jit = off;

CREATE TABLE visits (url text, n int);
CREATE INDEX visited ON visits USING bloomfilter (url);

-- The own transaction finds its keys at once; after a rollback they remain.
BEGIN;
INSERT INTO visits VALUES ('a', 1);
SELECT bloom_index_contains('visited', 'a') AS a, bloom_index_contains('visited', 'b') AS b,
  bloom_index_contains_each('visited', ARRAY['a', 'b']) AS each;
ROLLBACK;
SELECT layers FROM bloom_index_info('visited');
INSERT INTO visits VALUES ('a', 1);
SELECT bloom_index_contains('visited', 'a') AS a;

-- Subtransactions
BEGIN;
INSERT INTO visits VALUES ('before', 1);
SAVEPOINT s;
INSERT INTO visits VALUES ('before', 1), ('aborted', 1), ('after', 1);
ROLLBACK TO s;
SAVEPOINT s2;
INSERT INTO visits VALUES ('released', 1);
RELEASE s2;
SAVEPOINT s3;
INSERT INTO visits VALUES ('released', 1);
ROLLBACK TO s3;
INSERT INTO visits VALUES ('after', 1);
COMMIT;
SELECT bloom_index_contains_each('visited', ARRAY['before', 'released', 'after']);
SELECT bloom_index_check('visited');

-- A statement sees keys of rows that it inserted before.
INSERT INTO visits SELECT url, 2 FROM (VALUES ('twice'), ('twice'), ('once')) v (url)
WHERE NOT bloom_index_contains('visited', url);
SELECT url, count(*) FROM visits WHERE n = 2 GROUP BY url ORDER BY url COLLATE "C";

-- More keys than wait in work_mem.
SET work_mem = '64kB';
BEGIN;
INSERT INTO visits SELECT 'many ' || i, 3 FROM generate_series(1, 20000) i;
SELECT count(*) FROM visits WHERE n = 3 AND NOT bloom_index_contains('visited', url);
COMMIT;
RESET work_mem;
SELECT count(*) FROM visits WHERE n = 3 AND NOT bloom_index_contains('visited', url);

-- What hashing a key leaves behind, such as a detoasted range, does not stay until the end of the statement.
CREATE TABLE ranges (r int4range);
INSERT INTO ranges SELECT int4range(i, i + 1) FROM generate_series(1, 100000) i;
CREATE TABLE more_ranges (r int4range, bytes bigint);
CREATE INDEX more_ranges_r ON more_ranges USING bloomfilter (r);
SET work_mem = '64kB';
CREATE FUNCTION session_bytes() RETURNS bigint LANGUAGE sql AS 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts';
INSERT INTO more_ranges SELECT r, CASE WHEN lower(r) % 50000 = 1 THEN session_bytes() END FROM ranges;
RESET work_mem;
SELECT max(bytes) - min(bytes) < 1000000 AS bounded FROM more_ranges;
SELECT bloom_index_check('more_ranges_r');
DROP TABLE ranges, more_ranges;
DROP FUNCTION session_bytes();

-- Keys of all indexes together wait in work_mem.
CREATE TABLE spread (id int, part int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE spread_%s PARTITION OF spread FOR VALUES IN (%1$s)', i) FROM generate_series(1, 8) i \gexec
CREATE INDEX spread_id ON spread USING bloomfilter (id);
SET work_mem = '1MB';
BEGIN;
INSERT INTO spread SELECT i, 1 + i / 55000 FROM generate_series(0, 439999) i;
SELECT total_bytes < 2000000 AS bounded FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
INSERT INTO spread SELECT i, 1 + i % 8 FROM generate_series(440000, 500000) i;
SELECT total_bytes < 2000000 AS bounded FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
COMMIT;
RESET work_mem;
SELECT count(*) FROM spread WHERE id % 8 = 5 AND NOT bloom_index_contains('spread_id', id);
DROP TABLE spread;

-- Keys that a statement repeats take room once.
CREATE TABLE repeated (id int);
CREATE INDEX repeated_id ON repeated USING bloomfilter (id);
INSERT INTO repeated SELECT i % 10 FROM generate_series(1, 100000) i;
SELECT layers, pages, round(cardinality) AS keys FROM bloom_index_info('repeated_id');
DROP TABLE repeated;

-- A trigger looks up the rows before its own, which wait, or fill work_mem and are written.
CREATE TABLE chain (id int, missing int);
CREATE INDEX chain_id ON chain USING bloomfilter (id);
CREATE FUNCTION look_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*) INTO NEW.missing FROM generate_series(greatest(NEW.id - 3, 1), NEW.id - 1) i
    WHERE NOT bloom_index_contains('chain_id', i);
  RETURN NEW;
END
$$;
CREATE TRIGGER look_back BEFORE INSERT ON chain FOR EACH ROW WHEN (NEW.id % 3 = 0) EXECUTE FUNCTION look_back();
SET work_mem = '64kB';
INSERT INTO chain SELECT generate_series(1, 15000);
RESET work_mem;
SELECT sum(missing) AS missing, count(missing) AS lookups, bloom_index_check('chain_id') FROM chain;
DROP TABLE chain;
DROP FUNCTION look_back();

\set ECHO none
-- A deferred trigger inserts a row at the commit.
CREATE FUNCTION add_visit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 4 THEN
    INSERT INTO visits VALUES (NEW.url || ' deferred', 5);
  END IF;
  RETURN NULL;
END
$$;
\set ECHO all
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON visits DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION add_visit();
INSERT INTO visits VALUES ('trigger', 4);
SELECT bloom_index_contains('visited', 'trigger') AS key, bloom_index_contains('visited', 'trigger deferred') AS deferred;
DROP TRIGGER deferred ON visits;
DROP FUNCTION add_visit();

-- A function that rolls back and goes on.
DO $$
BEGIN
  INSERT INTO visits VALUES ('committed in procedure', 6);
  COMMIT;
  INSERT INTO visits VALUES ('rolled back in procedure', 6);
  ROLLBACK;
  INSERT INTO visits VALUES ('outer', 6);
  BEGIN
    INSERT INTO visits VALUES ('inner', 6);
    PERFORM 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    INSERT INTO visits VALUES ('handler', 6);
  END;
END
$$;
SELECT bloom_index_contains_each('visited', ARRAY['committed in procedure', 'outer', 'handler']);
SELECT bloom_index_check('visited');

-- UPDATE, ON CONFLICT, MERGE, COPY, a view.
CREATE UNIQUE INDEX visits_url ON visits (url) WHERE n > 99;
INSERT INTO visits VALUES ('conflict', 100);
INSERT INTO visits VALUES ('conflict', 101) ON CONFLICT (url) WHERE n > 99 DO UPDATE SET url = 'after conflict';
INSERT INTO visits VALUES ('after conflict', 101) ON CONFLICT DO NOTHING;
UPDATE visits SET url = 'updated' WHERE url = 'a';
MERGE INTO visits v USING (VALUES ('updated', 'merged'), ('x', 'merge inserted')) s (url, new) ON v.url = s.url
WHEN MATCHED THEN UPDATE SET url = s.new
WHEN NOT MATCHED THEN INSERT VALUES (s.new, 7);
COPY visits FROM stdin;
copied 1	8
copied 2	8
\.
CREATE VIEW visit_view AS SELECT url FROM visits;
INSERT INTO visit_view VALUES ('by view');
WITH moved AS (DELETE FROM visits WHERE url = 'copied 1' RETURNING n) INSERT INTO visits SELECT 'by with', n FROM moved;
SELECT bloom_index_contains_each('visited', ARRAY['conflict', 'after conflict', 'updated', 'merged', 'merge inserted',
  'copied 1', 'copied 2', 'by view', 'by with']);
SELECT bloom_index_check('visited');
DROP VIEW visit_view;

-- HOT updates of other columns; from PostgreSQL 16 on, also of the column.
UPDATE visits SET n = n + 1 WHERE n < 10;
SELECT bloom_index_check('visited');
CREATE TABLE hot (url text) WITH (fillfactor = 50);
CREATE INDEX hot_url ON hot USING bloomfilter (url);
INSERT INTO hot VALUES ('a');
BEGIN;
UPDATE hot SET url = 'b';
SELECT (pg_stat_get_xact_tuples_hot_updated('hot'::regclass) > 0) = (current_setting('server_version_num')::int >= 160000) AS hot;
COMMIT;
SELECT bloom_index_contains('hot_url', 'b'), bloom_index_check('hot_url');
DROP TABLE hot;

-- Objects that go away before the commit.
BEGIN;
INSERT INTO visits VALUES ('index dropped', 9);
DROP INDEX visited;
COMMIT;
CREATE INDEX visited ON visits USING bloomfilter (url);
BEGIN;
INSERT INTO visits VALUES ('before truncate', 9);
TRUNCATE visits;
INSERT INTO visits VALUES ('after truncate', 9);
COMMIT;
SELECT bloom_index_contains('visited', 'after truncate'), bloom_index_check('visited');
BEGIN;
INSERT INTO visits VALUES ('before alter', 10);
ALTER TABLE visits ALTER url TYPE varchar(100);
INSERT INTO visits VALUES ('after alter', 10);
COMMIT;
SELECT bloom_index_contains_each('visited', ARRAY['after truncate', 'before alter', 'after alter']), bloom_index_check('visited');
BEGIN;
INSERT INTO visits VALUES ('before rewrite', 11);
ALTER TABLE visits ADD added float8 DEFAULT random();
INSERT INTO visits VALUES ('after rewrite', 11);
COMMIT;
SELECT bloom_index_contains_each('visited', ARRAY['before rewrite', 'after rewrite']), bloom_index_check('visited');
BEGIN;
CREATE TABLE short_lived (url text);
CREATE INDEX ON short_lived USING bloomfilter (url);
INSERT INTO short_lived VALUES ('x');
SELECT bloom_index_contains('short_lived_url_idx', 'x');
DROP TABLE short_lived;
COMMIT;
BEGIN;
CREATE TABLE new_table (url text);
CREATE INDEX new_table_url ON new_table USING bloomfilter (url);
INSERT INTO new_table SELECT 'url ' || i FROM generate_series(1, 30000) i;
TRUNCATE new_table;
SELECT bloom_index_contains('new_table_url', 'url 1');
INSERT INTO new_table VALUES ('x');
COMMIT;
SELECT bloom_index_contains('new_table_url', 'x'), bloom_index_check('new_table_url');
VACUUM FULL visits;
SELECT bloom_index_check('visited');
CREATE INDEX visits_order ON visits (url);
CLUSTER visits USING visits_order;
SELECT bloom_index_check('visited');
REINDEX INDEX CONCURRENTLY visited;
SELECT bloom_index_check('visited');
REINDEX TABLE visits;
SELECT bloom_index_check('visited');
CREATE INDEX CONCURRENTLY visited_too ON visits USING bloomfilter (url);
SELECT bloom_index_check('visited_too');
VACUUM visits;
ANALYZE visits;
SELECT relname, reltuples, relpages > 0 AS has_pages FROM pg_class WHERE relname IN ('visits', 'visited') ORDER BY 1;

-- Prepared transactions need max_prepared_transactions: see test/tap.

-- Temporary and unlogged tables.
CREATE TEMP TABLE temporary (id int) ON COMMIT DELETE ROWS;
CREATE INDEX temporary_id ON temporary USING bloomfilter (id) WITH (expected = 1000);
BEGIN;
INSERT INTO temporary SELECT generate_series(1, 5000);
SELECT count(*) FROM temporary WHERE NOT bloom_index_contains('temporary_id', id);
SELECT bloom_index_check('temporary_id');
COMMIT;
SELECT bloom_index_contains('temporary_id', 1);
-- A commit that truncates a table evaluates nothing, as there is no snapshot for that.
CREATE INDEX temporary_constant ON temporary USING bloomfilter (bit_length('')) WHERE bit_length('') = 0;
BEGIN;
INSERT INTO temporary VALUES (1);
SELECT bloom_index_contains('temporary_constant', 0) AS key, bloom_index_contains('temporary_constant', 1) AS other;
COMMIT;
CREATE UNLOGGED TABLE unlogged (id int);
CREATE INDEX unlogged_id ON unlogged USING bloomfilter (id);
INSERT INTO unlogged SELECT generate_series(1, 20000);
SELECT count(*) FROM unlogged WHERE NOT bloom_index_contains('unlogged_id', id);
ALTER TABLE unlogged SET LOGGED;
SELECT bloom_index_check('unlogged_id');

-- Parallel workers find what their transaction has inserted.
CREATE TABLE big AS SELECT i AS id FROM generate_series(1, 20000) i;
ANALYZE big;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
BEGIN;
CREATE TABLE target (id int);
CREATE INDEX target_id ON target USING bloomfilter (id);
INSERT INTO target SELECT id FROM big;
EXPLAIN (COSTS OFF) SELECT count(*) FROM big WHERE NOT bloom_index_contains('target_id', id);
SELECT count(*) FROM big WHERE NOT bloom_index_contains('target_id', id);
COMMIT;
-- But they cannot read a temporary index.
CREATE TEMP TABLE temporary_target (id int);
CREATE INDEX temporary_target_id ON temporary_target USING bloomfilter (id);
INSERT INTO temporary_target SELECT id FROM big;
SET parallel_leader_participation = off;
SELECT count(*) FROM big WHERE NOT bloom_index_contains('temporary_target_id', id);
-- One that is not there contains every key.
SELECT count(*) FROM big WHERE bloom_index_contains(999999999, -id);
SET max_parallel_workers_per_gather = 0;
RESET parallel_leader_participation;
SELECT count(*) FROM big WHERE NOT bloom_index_contains('temporary_target_id', id);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- Lookups count as scans of the index, so that it is not taken for unused.
SELECT pg_stat_force_next_flush();
SELECT idx_scan > 0 AS counted FROM pg_stat_user_indexes WHERE indexrelname = 'unlogged_id';

DROP TABLE visits, new_table, temporary, unlogged, big, target;

--
-- Statements within a statement that inserts rows
--

CREATE TABLE events (id int PRIMARY KEY, what text);
CREATE INDEX events_id ON events USING bloomfilter (id);
CREATE INDEX events_what ON events USING bloomfilter (what);
CREATE TABLE log_of_events (id int REFERENCES events ON UPDATE CASCADE, at int);
CREATE INDEX log_of_events_id ON log_of_events USING bloomfilter (id);
\set ECHO none
CREATE FUNCTION missing_events() RETURNS text LANGUAGE sql AS $$
SELECT string_agg(format('%s %s', id, what), ', ') FROM events
WHERE NOT bloom_index_contains('events_id', id) OR NOT bloom_index_contains('events_what', what)
$$;

-- Before each row: more rows, some of which are undone, and rows that are skipped.
CREATE FUNCTION before_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.what = 'twice' THEN
    INSERT INTO events VALUES (NEW.id + 1000, 'by trigger');
  ELSIF NEW.what = 'countdown' AND NEW.id % 10 > 0 THEN
    INSERT INTO events VALUES (NEW.id - 1, 'countdown');
  ELSIF NEW.what = 'undone' THEN
    BEGIN
      INSERT INTO events VALUES (NEW.id + 2000, 'undone within');
      PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO log_of_events VALUES (1, NEW.id);
    END;
  ELSIF NEW.what IN ('caught', 'written') THEN
    BEGIN
      PERFORM CASE NEW.what WHEN 'written' THEN bloom_index_filter('events_id') END;
      PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
    END;
  ELSIF NEW.what = 'skipped' THEN
    RETURN NULL;
  ELSIF NEW.what = 'known' THEN
    RAISE NOTICE '% is known: %', NEW.id - 1, bloom_index_contains('events_id', NEW.id - 1);
  END IF;
  RETURN NEW;
END
$$;
\set ECHO all
CREATE TRIGGER before BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION before_event();
INSERT INTO events SELECT row_number() OVER (), what FROM unnest(ARRAY['first', 'twice', 'undone', 'known', 'written', 'skipped',
  'plain', 'undone', 'known', 'plain', 'caught', 'last']) what;
INSERT INTO events VALUES (15, 'plain'), (29, 'countdown');
SELECT count(*), missing_events() FROM events;
SELECT id, bloom_index_contains('log_of_events_id', id) FROM log_of_events;
BEGIN;
SAVEPOINT s;
INSERT INTO events VALUES (30, 'twice'), (31, 'undone'), (32, 'undone');
RELEASE s;
SELECT count(*), missing_events() FROM events;
COMMIT;

-- What a failed statement leaves waiting is forgotten.
CREATE TABLE failing (id int);
CREATE INDEX failing_id ON failing USING bloomfilter (id);
DO $$
BEGIN
  FOR i IN 1 .. 3 LOOP
    BEGIN
      INSERT INTO failing SELECT 1 / (1000 - j) + j FROM generate_series(1, 1000) j;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO failing VALUES (-i);
    END;
  END LOOP;
END
$$;
SELECT cardinality, bloom_index_contains_each('failing_id', '{-1,-2,-3}') FROM bloom_index_info('failing_id');
DROP TABLE failing;

-- After the rows: triggers look up keys, in workers, too. The process that leads these is slow, so that they have rows. Nobody
-- gives the index another file.
CREATE TABLE looked (id int, pad text) WITH (parallel_workers = 2);
INSERT INTO looked SELECT 50 + i % 2, repeat('x', 500) FROM generate_series(1, 400) i;
\set ECHO none
CREATE FUNCTION event_is_known(int) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid) THEN
    PERFORM pg_sleep(0.002);
  END IF;
  RETURN bloom_index_contains('events_id', $1);
END
$$;
CREATE FUNCTION after_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'known: %, by workers: %, missing: %', bloom_index_contains('events_id', NEW.id),
    (SELECT count(*) FILTER (WHERE event_is_known(id)) FROM looked), missing_events();
  RETURN NULL;
END
$$;
CREATE FUNCTION after_events() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  statement text;
BEGIN
  FOREACH statement IN ARRAY ARRAY['TRUNCATE events CASCADE', 'REINDEX INDEX events_id', 'ALTER TABLE events ALTER what TYPE varchar',
    'ALTER INDEX events_id SET TABLESPACE pg_default', 'CLUSTER events USING events_pkey', 'DROP INDEX events_id'] LOOP
    BEGIN
      EXECUTE statement;
      RAISE NOTICE '%: done', statement;
    EXCEPTION WHEN object_in_use THEN
      RAISE NOTICE '%: in use', statement;
    END;
  END LOOP;
  RETURN NULL;
END
$$;
\set ECHO all
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
CREATE TRIGGER after_row AFTER INSERT ON events FOR EACH ROW WHEN (NEW.id = 51) EXECUTE FUNCTION after_event();
INSERT INTO events VALUES (50, 'fifty'), (51, 'one more');
DROP TRIGGER after_row ON events;
UPDATE looked SET id = id + 10;
CREATE TRIGGER after_rows AFTER INSERT ON events EXECUTE FUNCTION after_events();
INSERT INTO events VALUES (60, 'sixty'), (61, 'one more');
DROP TRIGGER after_rows ON events;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;
SELECT count(*), missing_events() FROM events;

-- Statements that are not read to the end, and that other statements execute
CREATE FUNCTION add_events(first int, n int) RETURNS SETOF int LANGUAGE sql AS $$
INSERT INTO events SELECT i, 'by function' FROM generate_series(first, first + n - 1) i RETURNING id
$$;
SELECT add_events(100, 5) LIMIT 1;
WITH added AS (INSERT INTO events SELECT i, 'by with' FROM generate_series(110, 115) i RETURNING id), none AS (SELECT add_events(120, 3))
SELECT count(*) FROM added WHERE id < 112;
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN INSERT INTO events VALUES (130, 'by cursor'), (131, 'by cursor') RETURNING id LOOP
    RAISE NOTICE '%', missing_events();
    EXIT;
  END LOOP;
END
$$;
BEGIN;
DECLARE c CURSOR FOR SELECT add_events(i, 2) FROM generate_series(140, 148, 2) i;
FETCH 3 FROM c;
SELECT missing_events();
COMMIT;
DO $$ BEGIN EXECUTE 'EXPLAIN ANALYZE INSERT INTO events VALUES (150, ''explained'')'; END $$;
PREPARE add_event AS INSERT INTO events VALUES ($1, 'prepared');
EXECUTE add_event(151);
UPDATE events SET id = -id WHERE id = 1;
SELECT id, bloom_index_contains('log_of_events_id', id) FROM log_of_events ORDER BY id;
SELECT count(*), missing_events() FROM events;
SELECT bloom_index_check('events_id'), bloom_index_check('events_what'), bloom_index_check('log_of_events_id');

-- Partitions: routing, moving, and a trigger that looks into all of them
CREATE TABLE sorted (id int, part int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE sorted_%s PARTITION OF sorted FOR VALUES IN (%1$s)', i) FROM generate_series(0, 19) i \gexec
CREATE INDEX sorted_id ON sorted USING bloomfilter (id);
CREATE FUNCTION after_sorted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '%: % are missing', TG_OP, (SELECT count(*) FROM sorted WHERE NOT bloom_index_contains('sorted_id', id));
  RETURN NULL;
END
$$;
CREATE TRIGGER after AFTER INSERT OR UPDATE ON sorted EXECUTE FUNCTION after_sorted();
INSERT INTO sorted SELECT i, i % 20 FROM generate_series(1, 500) i;
UPDATE sorted SET id = id + 1000, part = (part + 7) % 20;
COPY sorted FROM stdin;
-1	1
-2	2
-3	3
-4	1
\.
MERGE INTO sorted_3 s USING (VALUES (-3, 3), (-23, 3)) v (id, part) ON s.id = v.id
WHEN MATCHED THEN UPDATE SET id = -13 WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.part);
SELECT count(*) FROM sorted WHERE NOT bloom_index_contains('sorted_id', id);
SELECT bloom_index_check('sorted_id');

-- A materialized view that is refreshed concurrently
CREATE MATERIALIZED VIEW newest AS SELECT id, what FROM events;
CREATE UNIQUE INDEX newest_id ON newest (id);
CREATE INDEX newest_filter ON newest USING bloomfilter (id);
BEGIN;
INSERT INTO events VALUES (160, 'refreshed');
REFRESH MATERIALIZED VIEW CONCURRENTLY newest;
SELECT bloom_index_contains('newest_filter', 160);
COMMIT;
SELECT bloom_index_check('newest_filter');

DROP MATERIALIZED VIEW newest;
DROP TABLE events, log_of_events, looked, sorted;
DROP FUNCTION before_event, after_event, after_events, event_is_known, missing_events, add_events, after_sorted;
SET client_min_messages = warning;

-- Parallel workers look keys up, too: those that build an index, those of a query that builds the index, and while an
-- index of the table waits for being rebuilt. The process that leads them is slow, so that they have rows.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE seen (id int);
CREATE INDEX seen_id ON seen USING bloomfilter (id);
CREATE TABLE built (x int, pad text) WITH (parallel_workers = 2);
INSERT INTO built SELECT 42, repeat('x', 1000) FROM generate_series(1, 200);
\set ECHO none
CREATE FUNCTION was_seen(int) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid) THEN
    PERFORM pg_sleep(0.002);
  END IF;
  RETURN bloom_index_contains('seen_id', $1);
END $$;
\set ECHO all
BEGIN;
INSERT INTO seen VALUES (42);
CREATE INDEX built_x ON built (was_seen(x));
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*) FROM built WHERE NOT was_seen(x);
ROLLBACK;

-- A key that comes in the statement itself
CREATE FUNCTION sees_another() RETURNS event_trigger LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  INSERT INTO seen VALUES (43);
END $$;
BEGIN;
CREATE EVENT TRIGGER seen ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION sees_another();
CREATE INDEX built_x ON built (was_seen(x + 1));
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*) FROM built WHERE NOT was_seen(x + 1);
ROLLBACK;

\set ECHO none
-- A key that the expression of one index adds, in a statement that builds another one afterwards
CREATE FUNCTION add_seen(int) RETURNS int LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF current_setting('bloom.adding', true) = 'on' AND NOT EXISTS (SELECT FROM seen WHERE id = $1) THEN
    INSERT INTO seen VALUES ($1);
  END IF;
  RETURN $1;
END $$;
CREATE FUNCTION adds_seen(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  RETURN add_seen($1);
END $$;
\set ECHO all
CREATE INDEX built_adds ON built (adds_seen(x));
CREATE INDEX built_after ON built (was_seen(x));
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
TRUNCATE seen;
SET bloom.adding = on;
REINDEX TABLE built;
SET bloom.adding = off;
SELECT (SELECT count(*) FROM seen) AS seen, count(*) FROM built WHERE NOT was_seen(x);
TRUNCATE seen;
SET bloom.adding = on;
VACUUM FULL built;
SET bloom.adding = off;
SELECT (SELECT count(*) FROM seen) AS seen, count(*) FROM built WHERE NOT was_seen(x);
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET max_parallel_workers_per_gather;
TRUNCATE seen;
DROP INDEX built_adds, built_after;
DROP FUNCTION adds_seen, add_seen;

-- A lookup without a snapshot
CREATE DOMAIN looked_up AS int CHECK (VALUE IS NULL OR bloom_index_contains('seen_id', VALUE) IS NOT NULL);
DO $$
DECLARE
  x looked_up;
BEGIN
  COMMIT;
  FOR x IN SELECT 5 LOOP
    RAISE WARNING '%', x;
  END LOOP;
END $$;

SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 2;
\set ECHO none
CREATE FUNCTION looks_up(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  PERFORM FROM built WHERE NOT bloom_index_contains('seen_looks_up', x);
  IF FOUND THEN
    RAISE 'missed';
  END IF;
  RETURN $1;
END $$;
\set ECHO all
INSERT INTO seen VALUES (1);
ANALYZE built;
CREATE INDEX seen_looks_up ON seen USING bloomfilter (looks_up(id));
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;

CREATE TABLE clustered (id int);
\set ECHO none
CREATE FUNCTION is_found(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF $1 = 42 AND current_setting('bloom.clustering', true) = 'on' THEN
    RAISE NOTICE 'found: %, in a copy: %', bloom_index_contains('clustered_id', 42), bloom_contains(bloom_index_filter('clustered_id'), 42);
  END IF;
  RETURN $1;
END $$;
\set ECHO all
CREATE INDEX clustered_first ON clustered (is_found(id));
CREATE INDEX clustered_id ON clustered USING bloomfilter (id);
BEGIN;
INSERT INTO clustered VALUES (42);
SET LOCAL bloom.clustering = on;
SET LOCAL client_min_messages = notice;
CLUSTER clustered USING clustered_first;
COMMIT;
SELECT bloom_index_contains('clustered_id', 42);

DROP DOMAIN looked_up;
DROP TABLE seen, built, clustered;
DROP FUNCTION was_seen, sees_another, looks_up, is_found;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
