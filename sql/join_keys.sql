--
-- JOIN_KEYS
-- Scans that join filters keep from being read, because an index of access
-- method bloomfilter has none of the keys.
--
CREATE SCHEMA join_keys;
SET search_path = join_keys, public;
\pset format unaligned
\pset tuples_only
LOAD 'bloomfilter';
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/join_skip.psql'
\i :functions

-- What is skipped, and are the rows those of the query without filters?
CREATE FUNCTION report(query text, OUT skipped text, OUT matches int, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	mode text := current_setting('bloomfilter.join_filters');
	expected text[];
	line text;
BEGIN
	SET LOCAL bloomfilter.join_filters = off;
	expected := rows_of(query);
	PERFORM set_config('bloomfilter.join_filters', mode, true);
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scans Skipped' THEN
			skipped := concat_ws('; ', skipped, substring(line FROM 'Skipped: (.*)  Blocks'));
		END IF;
	END LOOP;
	matches := coalesce(cardinality(expected), 0);
	same := expected IS NOT DISTINCT FROM rows_of(query);
END $$;

CREATE FUNCTION numbers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN substring(plan::text FROM '"Scans Skipped": \d+') || '; ' || substring(plan::text FROM '"Scans Skipped by Index": \d+');
END $$;
\set ECHO all
SET datestyle = 'ISO';
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET bloomfilter.join_filters = force;
SET bloomfilter.join_planning = off;

CREATE TABLE wanted (kind text, id int);
INSERT INTO wanted SELECT 'two', i FROM unnest('{3,7,13,3}'::int[]) i;
INSERT INTO wanted SELECT 'absent', i FROM generate_series(-40, -1) i;
INSERT INTO wanted VALUES ('null', NULL), ('nulls', NULL), ('null', 25), ('none', NULL);
INSERT INTO wanted SELECT 'listed', i FROM generate_series(-1000, -1) i;
INSERT INTO wanted SELECT 'too many', i FROM generate_series(-1001, -1) i;
ALTER TABLE wanted SET (parallel_workers = 0);
ANALYZE wanted;

-- Partitions by another column: 1 of 10 has ids that end with the same digit
CREATE TABLE events (day int, id bigint, name text) PARTITION BY RANGE (day);
SELECT count(run(format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%s) TO (%s)', d, d, d + 1))) FROM generate_series(0, 9) d;
INSERT INTO events SELECT i % 10, i, 'event ' || i FROM generate_series(1, 1000) i;
CREATE INDEX events_id ON events USING bloomfilter (id) WITH (fpp = 1e-9);
ANALYZE events;
SELECT * FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''two''');
SELECT * FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''absent''');
SELECT * FROM report('SELECT * FROM events WHERE id IN (SELECT id FROM wanted WHERE kind = ''null'')');
-- bounds first
SELECT * FROM report('SELECT * FROM events e JOIN (SELECT id AS day, id + 1 AS id FROM wanted WHERE kind = ''two'' OFFSET 0) w USING (day, id)');
SELECT * FROM report('SELECT * FROM events e JOIN (SELECT id AS day, id + 10 AS id FROM wanted WHERE kind = ''two'' OFFSET 0) w USING (day, id)');
-- a key that is too long to be listed
CREATE INDEX events_name ON events USING bloomfilter (name) WITH (fpp = 1e-9);
SELECT * FROM report('SELECT * FROM events e JOIN (SELECT ''event '' || id AS name FROM wanted WHERE kind = ''two'' OFFSET 0) w USING (name)');
SELECT * FROM report('SELECT * FROM events e JOIN (SELECT repeat(''k'', 500 + 10 * id) AS name FROM wanted WHERE kind = ''two'' OFFSET 0) w USING (name)');
SELECT * FROM report('SELECT * FROM events e JOIN (SELECT repeat(''k'', 1000 + 10 * id) AS name FROM wanted WHERE kind = ''two'' OFFSET 0) w USING (name)');
-- not asked
SET bloomfilter.index_pruning = off;
SELECT * FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''absent''');
RESET bloomfilter.index_pruning;
-- an index that is missing, and one that is not valid
DROP INDEX events_name;
DROP INDEX events_id;
CREATE INDEX events_id ON ONLY events USING bloomfilter (id);
SELECT count(run(format('CREATE INDEX events_%s_id ON events_%1$s USING bloomfilter (id) WITH (fpp = 1e-9)', d))) FROM generate_series(1, 9) d;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'events_2_id'::regclass;
SELECT * FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''absent''');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'events_2_id'::regclass;
-- parallel workers, of which each decides
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_parallel_hash = off;
SELECT matches, same FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''two''');
SELECT skipped ~ 'By Index', matches, same FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''absent''');
RESET enable_parallel_hash;
SET max_parallel_workers_per_gather = 0;

-- Hash partitions; children; tables by themselves
CREATE TABLE hashed (id int, x int) PARTITION BY HASH (x);
SELECT count(run(format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 4, REMAINDER %1$s)', r))) FROM generate_series(0, 3) r;
INSERT INTO hashed SELECT i, i % 4 FROM generate_series(1, 1000) i;
CREATE INDEX ON hashed USING bloomfilter (id) WITH (fpp = 1e-9);
CREATE TABLE parent (id int);
CREATE TABLE child_1 (x int) INHERITS (parent);
CREATE TABLE child_2 () INHERITS (parent);
INSERT INTO parent SELECT i FROM generate_series(1, 300, 3) i;
INSERT INTO child_1 SELECT i FROM generate_series(2, 300, 3) i;
INSERT INTO child_2 SELECT i FROM generate_series(3, 300, 3) i;
CREATE INDEX ON parent USING bloomfilter (id) WITH (fpp = 1e-9);
CREATE INDEX ON child_1 USING bloomfilter (id) WITH (fpp = 1e-9);
CREATE INDEX ON child_2 USING bloomfilter (id) WITH (fpp = 1e-9);
ANALYZE hashed, parent, child_1, child_2;
SELECT * FROM report('SELECT * FROM hashed JOIN wanted w USING (id) WHERE kind = ''two''');
SELECT * FROM report('SELECT * FROM hashed JOIN wanted w USING (id) WHERE kind = ''absent''');
SELECT * FROM report('SELECT * FROM parent JOIN wanted w USING (id) WHERE kind = ''two''');
SELECT * FROM report('SELECT * FROM parent JOIN wanted w USING (id) WHERE kind = ''null''');
SELECT * FROM report('SELECT * FROM ONLY parent JOIN wanted w USING (id) WHERE kind = ''absent''');
SELECT * FROM report('SELECT * FROM child_1 JOIN wanted w USING (id) WHERE kind = ''null''');
-- what remains by another index is read by blocks
CREATE TABLE ordered (id int, n int);
INSERT INTO ordered SELECT i, i FROM generate_series(1, 10000) i;
CREATE INDEX ON ordered USING bloomfilter (id) WITH (fpp = 1e-9);
CREATE INDEX ON ordered USING brin (id) WITH (pages_per_range = 1);
ANALYZE ordered;
SELECT * FROM report('SELECT * FROM ordered JOIN wanted w USING (id) WHERE kind = ''absent''');
SELECT * FROM report('SELECT * FROM ordered JOIN wanted w USING (id) WHERE kind = ''two''');
-- as many keys as are listed, and more
CREATE INDEX ON ordered USING bloomfilter (n) WITH (fpp = 1e-9);
SELECT * FROM report('SELECT n FROM ordered o JOIN wanted w ON o.n = w.id WHERE kind = ''listed''');
SELECT * FROM report('SELECT n FROM ordered o JOIN wanted w ON o.n = w.id WHERE kind = ''too many''');
-- with join_filters = on, a table of a few blocks is read
SET bloomfilter.join_filters = on;
SET bloomfilter.join_filter_min_rows = 0;
SELECT * FROM report('SELECT * FROM child_1 JOIN wanted w USING (id) WHERE kind = ''null''');
SELECT * FROM report('SELECT * FROM ordered JOIN wanted w USING (id) WHERE kind = ''absent''');
SET bloomfilter.join_filters = force;
SET bloomfilter.join_planning = off;

-- Types: what is skipped has no match, and all else has one
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE typed (i2 int2, i4 int, i8 bigint, dom positive, f4 real, f8 float8, num numeric, tx text, vc varchar(20), bp char(20),
	nm name, c_tx text COLLATE "C", dt date, ts timestamptz, iv interval, uu uuid, jb jsonb, by bytea, en colour, part int, expr int);
INSERT INTO typed SELECT i, i, i, i, i, i, i, 'k' || i, 'k' || i, 'k' || i, 'k' || i, 'k' || i, date '2026-01-01' + i,
	timestamptz '2026-01-01 UTC' + i * interval '1 hour', i * interval '24 hours', md5('k' || i)::uuid, to_jsonb(i),
	decode(md5('k' || i), 'hex'), CASE WHEN i > 5 THEN 'green' ELSE 'red' END::colour, i, i FROM generate_series(1, 100) i;
INSERT INTO typed (f4, f8, num) VALUES ('NaN', 'NaN', 'NaN'), ('-0', '-0', '-0');
SELECT format('CREATE INDEX ON typed USING bloomfilter (%I) WITH (fpp = 1e-9)', attname) FROM pg_attribute
  WHERE attrelid = 'typed'::regclass AND attnum > 0 AND attname NOT IN ('part', 'expr') \gexec
CREATE INDEX ON typed USING bloomfilter (part) WHERE part > 0;
CREATE INDEX ON typed USING bloomfilter ((expr + 0));
CREATE TABLE other (absent boolean, LIKE typed);
INSERT INTO other SELECT false, * FROM typed WHERE i4 = 50 OR i4 IS NULL;
UPDATE other SET num = 50.00, iv = '1 mon 20 days' WHERE i4 = 50;
INSERT INTO other SELECT true, -1, -1, -1, 1000, -1, -1, -1.0, 'x', 'x', 'x', 'x', 'x', '2000-01-01', '2000-01-01', '1 hour', md5('x')::uuid, '[]', 'x', 'blue', -1, -1;
ANALYZE typed, other;
SELECT a, b, found.matches, found.skipped, absent.skipped AS absent, found.same AND absent.same AS same FROM
	(VALUES ('i2', 'i2'), ('i4', 'i4'), ('i8', 'i8'), ('i8', 'i4'), ('i8', 'i2'), ('i4', 'i8'), ('i2', 'i8'), ('dom', 'i4'), ('i4', 'dom'),
		('f4', 'f4'), ('f8', 'f8'), ('f8', 'f4'), ('f4', 'f8'), ('num', 'num'), ('num', 'i4'), ('f8', 'i4'), ('i4', 'num'), ('tx', 'tx'), ('tx', 'vc'), ('vc', 'tx'),
		('bp', 'bp'), ('tx', 'bp'), ('bp', 'tx'), ('nm', 'nm'), ('tx', 'nm'), ('c_tx', 'c_tx'), ('dt', 'dt'), ('ts', 'ts'), ('iv', 'iv'),
		('uu', 'uu'), ('jb', 'jb'), ('by', 'by'), ('en', 'en'), ('part', 'part'), ('expr', 'expr'), ('expr', 'i4')) AS pairs (a, b),
	report(format('SELECT t.* FROM typed t JOIN other o ON t.%I = o.%I WHERE NOT absent', a, b)) AS found,
	report(format('SELECT t.* FROM typed t JOIN other o ON t.%I = o.%I WHERE absent', a, b)) AS absent;
-- another collation than that of the index
SELECT * FROM report('SELECT t.* FROM typed t JOIN other o ON t.tx COLLATE "C" = o.tx COLLATE "C" WHERE absent');
SELECT * FROM report('SELECT t.* FROM typed t JOIN other o ON t.c_tx COLLATE "ucs_basic" = o.c_tx COLLATE "ucs_basic" WHERE absent');

-- Hidden rows: nothing is told of them
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
SELECT * FROM report('SELECT * FROM events JOIN wanted w USING (id) WHERE kind = ''two''');
ALTER TABLE events DISABLE ROW LEVEL SECURITY;
CREATE VIEW visible WITH (security_barrier) AS SELECT * FROM hashed WHERE x <> 3;
SELECT * FROM report('SELECT * FROM visible JOIN wanted w USING (id) WHERE kind = ''two''');

-- Own rows, and those of a subtransaction
BEGIN;
INSERT INTO hashed VALUES (-1, 1);
SAVEPOINT s;
INSERT INTO hashed VALUES (-2, 2);
SELECT * FROM report('SELECT * FROM hashed JOIN wanted w USING (id) WHERE kind = ''absent''');
ROLLBACK TO s;
SELECT * FROM report('SELECT * FROM hashed JOIN wanted w USING (id) WHERE kind = ''absent''');
ROLLBACK;
-- of a statement whose triggers run the join
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% %: %', TG_WHEN, NEW.id,
		(SELECT array_agg(h.id ORDER BY h.id) FROM hashed h JOIN wanted w USING (id) WHERE kind = 'absent');
	RETURN NEW;
END $$;
CREATE TRIGGER before BEFORE INSERT ON hashed FOR EACH ROW EXECUTE FUNCTION look();
CREATE TRIGGER after AFTER INSERT ON hashed FOR EACH ROW EXECUTE FUNCTION look();
BEGIN;
INSERT INTO hashed VALUES (-1, 1), (-2, 1);
ROLLBACK;
DROP TRIGGER before ON hashed;
DROP TRIGGER after ON hashed;
-- cursors see what there was, whatever happens to the index meanwhile
BEGIN;
INSERT INTO hashed VALUES (-1, 1), (-2, 2), (-3, 3);
DECLARE c CURSOR WITH HOLD FOR SELECT h.* FROM hashed h JOIN wanted w USING (id) WHERE kind = 'absent';
DECLARE d CURSOR FOR SELECT h.* FROM hashed h JOIN wanted w USING (id) WHERE kind = 'absent';
DELETE FROM hashed WHERE id = -1;
UPDATE hashed SET id = -5 WHERE id = -2;
REINDEX INDEX hashed_1_id_idx;
FETCH ALL d;
COMMIT;
FETCH ALL c;
CLOSE c;
DELETE FROM hashed WHERE id < 0;
-- plans that are kept
PREPARE by_kind(text) AS SELECT h.* FROM hashed h JOIN wanted w USING (id) WHERE kind = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_kind('absent');
INSERT INTO hashed VALUES (-7, 3);
EXECUTE by_kind('absent');
DROP INDEX hashed_id_idx;
INSERT INTO hashed VALUES (-8, 2);
EXECUTE by_kind('absent');
RESET plan_cache_mode;

-- EXPLAIN of another format
CREATE INDEX ON hashed USING bloomfilter (id) WITH (fpp = 1e-9);
SELECT numbers('SELECT * FROM hashed JOIN wanted w USING (id) WHERE kind = ''absent''');

SET client_min_messages = warning;
DROP SCHEMA join_keys CASCADE;
