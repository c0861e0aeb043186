--
-- INDEX_FILES
-- Keys wait for the commit while their index gets another OID, another file, or the same file under another OID.
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
