--
-- INDEX_TRANSACTIONS
-- Keys of an index wait for the commit of their transaction, also while their index gets another OID, another file, or
-- the same file under another OID.
--

CREATE TABLE visits (url text, n int);
CREATE INDEX visited ON visits USING bloomfilter (url);

-- The own transaction finds its keys at once; after a rollback they may remain.
BEGIN;
INSERT INTO visits VALUES ('a', 1);
SELECT bloom_index_contains('visited', 'a') AS a, bloom_index_contains('visited', 'b') AS b,
  bloom_index_contains_each('visited', ARRAY['a', 'b']) AS each;
ROLLBACK;
SELECT layers FROM bloom_index_info('visited');
INSERT INTO visits VALUES ('a', 1);
SELECT bloom_index_contains('visited', 'a') AS a;

-- Subtransactions: what an aborted one inserted is not written, unless another
-- one inserted it, too.
BEGIN;
INSERT INTO visits VALUES ('before', 1);
SAVEPOINT s;
INSERT INTO visits VALUES ('before', 1), ('aborted', 1), ('after', 1);
SAVEPOINT s1;
INSERT INTO visits VALUES ('aborted within', 1);
RELEASE s1;
SELECT bloom_index_contains('visited', 'aborted within') AS own;
ROLLBACK TO s;
SELECT bloom_index_contains('visited', 'aborted within') AS own;
SAVEPOINT s2;
INSERT INTO visits VALUES ('released', 1);
RELEASE s2;
SAVEPOINT s3;
INSERT INTO visits VALUES ('released', 1);
ROLLBACK TO s3;
INSERT INTO visits VALUES ('after', 1);
COMMIT;
SELECT bloom_index_contains_each('visited', ARRAY['before', 'released', 'after', 'aborted', 'aborted within']);
SELECT bloom_index_check('visited');

-- What gives the index another file, in a subtransaction that is rolled back,
-- does not lose keys that are written meanwhile.
CREATE TABLE again (id int);
CREATE INDEX again_id ON again USING bloomfilter (id);
CREATE INDEX again_other ON again USING bloomfilter (id);
-- Writes the pending keys.
CREATE FUNCTION write_keys() RETURNS void LANGUAGE sql SET search_path = public AS $$
SELECT bloom_index_filter('again_other')
$$;
BEGIN;
INSERT INTO again VALUES (1);
SAVEPOINT s;
TRUNCATE again;
SELECT write_keys();
ROLLBACK TO s;
SAVEPOINT s2;
DROP INDEX again_id;
SELECT write_keys();
ROLLBACK TO s2;
INSERT INTO again VALUES (2);
SAVEPOINT s3;
REINDEX INDEX again_id;
INSERT INTO again VALUES (3);
SELECT write_keys();
ROLLBACK TO s3;
INSERT INTO again VALUES (4);
DO $$
BEGIN
  ALTER TABLE again ADD n float8 DEFAULT random();
  PERFORM write_keys();
  RAISE EXCEPTION 'undone';
EXCEPTION WHEN raise_exception THEN
END
$$;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT bloom_index_contains('again_id', id)) AS missing FROM again;
COMMIT;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT bloom_index_contains('again_id', id)) AS missing FROM again;
SELECT bloom_index_check('again_id');
-- Also twice, and if the last one stays.
BEGIN;
INSERT INTO again VALUES (11);
SAVEPOINT s;
REINDEX INDEX again_id;
INSERT INTO again VALUES (12);
SAVEPOINT s2;
REINDEX INDEX again_id;
INSERT INTO again VALUES (13);
SELECT write_keys();
ROLLBACK TO s2;
INSERT INTO again VALUES (14);
SELECT write_keys();
RELEASE s;
REINDEX INDEX again_id;
INSERT INTO again VALUES (15);
COMMIT;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT bloom_index_contains('again_id', id)) AS missing FROM again;
SELECT bloom_index_check('again_id');

-- Keys that can only come back together with the rows are forgotten.
SET work_mem = '64kB';
DO $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    BEGIN
      TRUNCATE again;
      INSERT INTO again SELECT i * 10000 + j FROM generate_series(1, 5000) j;
      IF i % 7 = 0 THEN
        RAISE EXCEPTION 'undone';
      END IF;
    EXCEPTION WHEN raise_exception THEN
    END;
  END LOOP;
END
$$;
RESET work_mem;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT bloom_index_contains('again_id', id)) AS missing FROM again;
SELECT cardinality BETWEEN 4900 AND 10100 AS few FROM bloom_index_info('again_id');
TRUNCATE again;
INSERT INTO again VALUES (1), (2), (3), (4), (5), (6), (7);

-- A copy of the file in another tablespace lacks keys that were pending.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_bloom_space LOCATION '';
BEGIN;
INSERT INTO again VALUES (21);
ALTER INDEX again_id SET TABLESPACE regress_bloom_space;
SAVEPOINT s;
INSERT INTO again VALUES (22);
ALTER INDEX again_id SET TABLESPACE pg_default;
SELECT write_keys();
ROLLBACK TO s;
INSERT INTO again VALUES (23);
COMMIT;
SELECT count(*) AS rows, count(*) FILTER (WHERE NOT bloom_index_contains('again_id', id)) AS missing FROM again;
SELECT bloom_index_check('again_id');

-- Keys are not written to an index that is just being built.
CREATE FUNCTION writing(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  PERFORM public.write_keys();
  RETURN n;
END
$$;
CREATE TABLE writing_keys (n int);
CREATE INDEX writing_keys_n ON writing_keys USING bloomfilter (writing(n));
BEGIN;
INSERT INTO writing_keys VALUES (1), (2);
REINDEX INDEX writing_keys_n;
INSERT INTO writing_keys VALUES (3);
COMMIT;
SELECT bloom_index_contains_each('writing_keys_n', ARRAY[1, 2, 3, 4]);
SELECT bloom_index_check('writing_keys_n');

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

-- Keys of all indexes together wait in work_mem; one of their hash tables may have doubled.
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
SELECT count(*) FROM spread WHERE NOT bloom_index_contains('spread_id', id);
DROP TABLE spread;

-- Constraint triggers run before the keys are written, callbacks of others
-- maybe after that.
CREATE FUNCTION add_visit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 4 THEN
    INSERT INTO visits VALUES (NEW.url || ' deferred', 5);
  END IF;
  RETURN NULL;
END
$$;
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

DROP TABLE visits, new_table, temporary, unlogged, big, target, again, writing_keys;
DROP FUNCTION writing, write_keys;
DROP TABLESPACE regress_bloom_space;

--
-- Another OID, another file, or the same file under another OID
--

SET client_min_messages = warning;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_bloom_files LOCATION '';
CREATE TABLE files_parted (id int, s varchar(10), n numeric(10, 2), t timestamp(3)) PARTITION BY LIST (id);

CREATE PROCEDURE make_files(kind text) LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS files;
  EXECUTE format('CREATE %s TABLE files (id int NOT NULL, s varchar(10), n numeric(10, 2), t timestamp(3))', kind);
  CREATE INDEX files_id ON files (id);
  CREATE INDEX files_s ON files USING bloomfilter (s);
  CREATE INDEX files_lower ON files USING bloomfilter (lower(s)) WHERE id > 0;
  CREATE INDEX files_n ON files USING bloomfilter (n);
  CREATE INDEX files_t ON files USING bloomfilter (t);
  CALL add_file(1000);
END
$$;
CREATE PROCEDURE add_file(id int) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO files VALUES (%s, ''S%1$s'', %1$s, timestamp ''2001-01-01'' + interval ''1 day'' * %1$s)', id);
END
$$;
CREATE FUNCTION missing_files() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  missing text;
BEGIN
  EXECUTE 'SELECT string_agg(id::text, '' '') FROM files WHERE NOT (bloom_index_contains(''files_s'', s) AND
    bloom_index_contains(''files_lower'', lower(s)) AND bloom_index_contains(''files_n'', n) AND
    bloom_index_contains(''files_t'', t))' INTO missing;
  RETURN missing;
END
$$;

-- What a transaction does besides: i inserts a row, c is the change, ( ) a subtransaction that is committed, [ ] one that
-- is rolled back, w writes the keys that wait.
CREATE PROCEDURE do_all(what text, change text, INOUT id int) LANGUAGE plpgsql AS $$
DECLARE
  pos int := 1;
  close int;
  depth int;
  undone boolean;
BEGIN
  WHILE pos <= length(what) LOOP
    CASE substr(what, pos, 1)
      WHEN 'i' THEN
        id := id + 1;
        CALL add_file(id);
      WHEN 'c' THEN EXECUTE change;
      WHEN 'w' THEN PERFORM bloom_index_filter('files_s');
      ELSE
        close := pos;
        depth := 1;
        WHILE depth > 0 LOOP
          close := close + 1;
          depth := depth + CASE WHEN substr(what, close, 1) IN ('(', '[') THEN 1 WHEN substr(what, close, 1) IN (')', ']') THEN -1 ELSE 0 END;
        END LOOP;
        BEGIN
          CALL do_all(substr(what, pos + 1, close - pos - 1), change, id);
          IF substr(what, pos, 1) = '[' THEN
            RAISE EXCEPTION 'undone';
          END IF;
        EXCEPTION WHEN raise_exception THEN
          IF missing_files() IS NOT NULL THEN
            RAISE WARNING '%: % are missing after [%]', change, missing_files(), what;
          END IF;
          id := id + 10;
        END;
        pos := close;
    END CASE;
    pos := pos + 1;
  END LOOP;
END
$$;
CREATE PROCEDURE try_changes(kind text, changes text[]) LANGUAGE plpgsql AS $$
DECLARE
  change text;
  what text;
  id int;
  missing text;
BEGIN
  FOREACH change IN ARRAY changes LOOP
    FOREACH what IN ARRAY ARRAY['ici', 'i[ci]i', '(ic)i', 'i([ci]i)', 'i[(ci)iw]iw', '[i(c)]ic'] LOOP
      CALL make_files(kind);
      COMMIT;
      id := 0;
      CALL do_all(what, change, id);
      missing := missing_files();
      IF missing IS NOT NULL THEN
        RAISE WARNING '% %, %: % are missing before the commit', kind, what, change, missing;
      END IF;
      COMMIT;
      missing := missing_files();
      IF missing IS NOT NULL THEN
        RAISE WARNING '% %, %: % are missing', kind, what, change, missing;
      END IF;
    END LOOP;
  END LOOP;
END
$$;

-- The same file under another OID.
DO $$
DECLARE
  kind text;
BEGIN
  FOREACH kind IN ARRAY ARRAY['', 'TEMP'] LOOP
    CALL try_changes(kind, ARRAY[
      'ALTER TABLE files ALTER s TYPE varchar(20)',
      'ALTER TABLE files ALTER n TYPE numeric(12, 2), ALTER t TYPE timestamp(6)',
      'ALTER TABLE files ALTER s TYPE varchar(20); ALTER TABLE files ALTER s TYPE varchar(30)',
      'ALTER TABLE files ALTER s TYPE varchar(20); ALTER INDEX files_s SET TABLESPACE regress_bloom_files',
      'ALTER INDEX files_s SET TABLESPACE regress_bloom_files; ALTER TABLE files ALTER s TYPE varchar(20); ALTER INDEX files_s SET TABLESPACE pg_default']);
  END LOOP;
END
$$;
-- Another file of the same index, which is built or copied; another index; none.
DO $$
BEGIN
  CALL try_changes('', ARRAY[
    'ALTER TABLE files ALTER s TYPE text', 'ALTER TABLE files ALTER n TYPE numeric(12, 3)', 'ALTER TABLE files ADD r float8 DEFAULT random()',
    'ALTER INDEX files_s SET TABLESPACE regress_bloom_files', 'ALTER TABLE files SET TABLESPACE regress_bloom_files',
    'ALTER INDEX ALL IN TABLESPACE pg_default OWNED BY CURRENT_USER SET TABLESPACE regress_bloom_files; ALTER TABLE files_parted SET TABLESPACE pg_default',
    'ALTER TABLE files SET UNLOGGED', 'ALTER TABLE files SET UNLOGGED; ALTER TABLE files SET LOGGED',
    'ALTER TABLE files ADD CONSTRAINT u UNIQUE (id); ALTER TABLE files DROP CONSTRAINT u',
    'ALTER TABLE files ADD PRIMARY KEY (id)', 'TRUNCATE files', 'REINDEX INDEX files_s', 'REINDEX TABLE files',
    'ALTER INDEX files_s SET (seed = 7); REINDEX INDEX files_s',
    'CLUSTER files USING files_id', 'ALTER TABLE files_parted ATTACH PARTITION files DEFAULT; ALTER TABLE files_parted DETACH PARTITION files',
    'CREATE INDEX ON files USING bloomfilter (s)', 'ALTER TABLE files RENAME TO renamed; ALTER TABLE renamed RENAME TO files',
    'DROP INDEX files_s; CREATE INDEX files_s ON files USING bloomfilter (s)']);
  CALL try_changes('TEMP', ARRAY['TRUNCATE files', 'REINDEX TABLE files', 'CLUSTER files USING files_id', 'ALTER TABLE files ALTER s TYPE text',
    'ALTER INDEX files_s SET TABLESPACE regress_bloom_files']);
END
$$;

-- Rows that a trigger inserts while the statement goes on.
CREATE FUNCTION add_by_trigger() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN CALL add_file(500); END $$;
CREATE EVENT TRIGGER regress_bloom_start ON ddl_command_start WHEN TAG IN ('ALTER TABLE', 'ALTER INDEX') EXECUTE FUNCTION add_by_trigger();
DO $$
BEGIN
  CALL try_changes('', ARRAY['ALTER TABLE files ALTER s TYPE varchar(20)', 'ALTER INDEX files_s SET TABLESPACE regress_bloom_files']);
  CALL try_changes('TEMP', ARRAY['ALTER TABLE files ALTER s TYPE varchar(20)', 'ALTER INDEX files_s SET TABLESPACE regress_bloom_files']);
END
$$;
DROP EVENT TRIGGER regress_bloom_start;

-- Extensions such as pg_repack exchange the files of two tables by changing pg_class.
CALL make_files('');
CREATE TABLE other_files (id int, s varchar(10));
CREATE INDEX other_files_s ON other_files USING bloomfilter (s);
CREATE FUNCTION exchange(a regclass, b regclass) RETURNS void LANGUAGE sql AS $$
  UPDATE pg_class c SET relfilenode = o.relfilenode FROM pg_class o WHERE c.oid IN (a, b) AND o.oid IN (a, b) AND c.oid <> o.oid
$$;
SET allow_system_table_mods = on;
BEGIN;
INSERT INTO other_files VALUES (1, 'exchanged');
SELECT exchange('files', 'other_files'), exchange('files_s', 'other_files_s');
SELECT bloom_index_contains('files_s', 'exchanged') AS own;
COMMIT;
SELECT id, s, bloom_index_contains('files_s', s) FROM files;
RESET allow_system_table_mods;

DROP TABLE files, other_files, files_parted;
DROP PROCEDURE make_files, add_file, do_all, try_changes;
DROP FUNCTION missing_files, add_by_trigger, exchange;
DROP TABLESPACE regress_bloom_files;

-- Parallel workers look keys up, too: those that build an index, those of a query that builds the index, and while an
-- index of the table waits for being rebuilt. The process that leads them is slow, so that they have rows.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE seen (id int);
CREATE INDEX seen_id ON seen USING bloomfilter (id);
CREATE TABLE built (x int, pad text) WITH (parallel_workers = 2);
INSERT INTO built SELECT 42, repeat('x', 1000) FROM generate_series(1, 200);
CREATE FUNCTION was_seen(int) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid) THEN
    PERFORM pg_sleep(0.002);
  END IF;
  RETURN bloom_index_contains('seen_id', $1);
END $$;
BEGIN;
INSERT INTO seen VALUES (42);
CREATE INDEX built_x ON built (was_seen(x));
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*) FROM built WHERE NOT was_seen(x);
ROLLBACK;

-- Of options that contradict each other, REINDEX takes the last one.
TRUNCATE seen;
CREATE INDEX built_x ON built (was_seen(x));
BEGIN;
INSERT INTO seen VALUES (42);
REINDEX (CONCURRENTLY on, CONCURRENTLY off) INDEX built_x;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT count(*) FROM built WHERE NOT was_seen(x);
ROLLBACK;
DROP INDEX built_x;

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
CREATE FUNCTION looks_up(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  PERFORM FROM built WHERE NOT bloom_index_contains('seen_looks_up', x);
  IF FOUND THEN
    RAISE 'missed';
  END IF;
  RETURN $1;
END $$;
INSERT INTO seen VALUES (1);
ANALYZE built;
CREATE INDEX seen_looks_up ON seen USING bloomfilter (looks_up(id));
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;

CREATE TABLE clustered (id int);
CREATE FUNCTION is_found(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
  IF $1 = 42 AND current_setting('bloom.clustering', true) = 'on' THEN
    RAISE NOTICE 'found: %, in a copy: %', bloom_index_contains('clustered_id', 42), bloom_contains(bloom_index_filter('clustered_id'), 42);
  END IF;
  RETURN $1;
END $$;
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
