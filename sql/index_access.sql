--
-- INDEX_ACCESS
-- Who may look up keys, partitioned indexes, indexes that are not valid.
--
\pset format unaligned
\pset tuples_only

CREATE ROLE regress_bloom_reader;
CREATE TABLE secrets (id int, name text, other int, active boolean);
CREATE INDEX secrets_id ON secrets USING bloomfilter (id);
CREATE INDEX secrets_expression ON secrets USING bloomfilter (lower(name)) WHERE active;
INSERT INTO secrets VALUES (1, 'One', 1, true);

-- Privileges are checked before the index is read, or locked.
CREATE UNLOGGED TABLE secret_table (id int);
CREATE INDEX secret_index ON secret_table USING bloomfilter (id);
SET ROLE regress_bloom_reader;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT s;
SELECT bloom_index_contains('secret_index', 1);
ROLLBACK TO s;
SELECT bloom_index_info('secret_index');
ROLLBACK TO s;
SELECT count(*) AS predicate_locks FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'secret_index'::regclass;
ROLLBACK;
RESET ROLE;
DROP TABLE secret_table;

-- SELECT on the table, or on the indexed columns.
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_id', 1);
SELECT bloom_index_contains_each('secrets_id', ARRAY[1]);
SELECT bloom_index_info('secrets_id');
SELECT bloom_index_filter('secrets_id');
SELECT bloom_index_check('secrets_id');
RESET ROLE;
GRANT SELECT (other, name) ON secrets TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_id', 1);
SELECT bloom_index_contains('secrets_expression', 'one');
RESET ROLE;
GRANT SELECT (id, active) ON secrets TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_id', 1), bloom_index_contains('secrets_id', 2);
SELECT bloom_index_contains('secrets_expression', 'one'), bloom_index_contains('secrets_expression', 'two');
SELECT layers FROM bloom_index_info('secrets_id');
RESET ROLE;
GRANT SELECT ON secrets TO regress_bloom_reader;

-- Row-level security.
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
SELECT bloom_index_contains('secrets_id', 1);
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_id', 1);
SELECT bloom_index_filter('secrets_id');
SELECT bloom_index_check('secrets_id');
RESET ROLE;
DROP TABLE secrets CASCADE;

-- The check evaluates expressions as the owner of the table.
CREATE ROLE regress_bloom_owner;
CREATE FUNCTION who(int) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_user; END $$;
CREATE TABLE owned (id int);
ALTER TABLE owned OWNER TO regress_bloom_owner;
INSERT INTO owned VALUES (1);
CREATE INDEX owned_who ON owned USING bloomfilter (who(id));
SELECT bloom_index_contains('owned_who', 'regress_bloom_owner') AS built_as_owner, bloom_index_check('owned_who');
DROP TABLE owned;
DROP FUNCTION who(int);
DROP ROLE regress_bloom_owner;

-- Partitions.
CREATE TABLE parted (id int, region int) PARTITION BY LIST (region);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2) PARTITION BY RANGE (id);
CREATE TABLE parted_2_low PARTITION OF parted_2 FOR VALUES FROM (0) TO (1000);
CREATE INDEX parted_id ON parted USING bloomfilter (id) WITH (seed = 3);
INSERT INTO parted SELECT i, 1 FROM generate_series(1, 100) i;
INSERT INTO parted SELECT i, 2 FROM generate_series(101, 200) i;
CREATE TABLE parted_2_high PARTITION OF parted_2 FOR VALUES FROM (1000) TO (2000);
INSERT INTO parted VALUES (1500, 2);
SELECT count(*) FROM parted WHERE NOT bloom_index_contains('parted_id', id);
SELECT bloom_index_contains_each('parted_id', ARRAY[1, 150, 1500, 1000000]), bloom_index_contains('parted_id', '1500'),
  bloom_index_contains('parted_id', 1000000);
SELECT bloom_index_contains('parted_1_id_idx', 150), bloom_index_contains('parted_1_id_idx', 50);
-- Which partitions may have a key: no partition of a partition is left out, nor a key of the own transaction.
SELECT bloom_index_partitions('parted_id', 150), bloom_index_partitions('parted_id', '1500') AS untyped;
SELECT count(*) FROM bloom_index_partitions('parted_id', 1000000);
SELECT bloom_index_partitions('parted_2_id_idx', 1500), bloom_index_partitions('parted_1_id_idx', 50);
-- The key of a row that is rolled back stays.
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 0;
INSERT INTO parted VALUES (1000000, 1);
SELECT bloom_index_partitions('parted_id', 1000000);
ROLLBACK;
SELECT count(*) AS missing FROM parted WHERE NOT EXISTS (SELECT FROM bloom_index_partitions('parted_id', id) p WHERE p = parted.tableoid);
SELECT bloom_index_partitions('parted_id', 1::numeric);
SELECT bloom_index_partitions('parted', 1);
SELECT bloom_index_partitions('parted_id', NULL::int);
-- The partition of a key tells of other columns, so it takes what reading tableoid takes.
GRANT SELECT (id) ON parted TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('parted_id', 150);
SELECT bloom_index_partitions('parted_id', 150);
RESET ROLE;
GRANT SELECT (tableoid) ON parted TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_partitions('parted_id', 150);
SELECT bloom_index_partitions('parted_2_id_idx', 150);
RESET ROLE;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloom_reader;
SELECT bloom_index_partitions('parted_id', 150);
RESET ROLE;
ALTER TABLE parted DISABLE ROW LEVEL SECURITY;
-- The sums of all partitions, and the rate of a lookup that probes them all.
SELECT key_type, round(fpp::numeric, 6) AS fpp, expected, seed, layers, hashes, block_bits, cardinality, keys_since_build,
  current_fpp > 0 AS has_rate, bytes / pages AS page_size, fill = bits_set / bits::float8 AS has_fill
FROM bloom_index_info('parted_id');
SELECT abs(whole.current_fpp - (1 - exp(sum(ln(1 - part.current_fpp))))) < 1e-12 AS current_fpp, sum(part.bits) = whole.bits AS bits
FROM bloom_index_info('parted_id') whole, pg_partition_tree('parted_id'), bloom_index_info(relid) part
WHERE isleaf GROUP BY whole.current_fpp, whole.bits;
SELECT bloom_index_filter('parted_id');
SELECT bloom_index_check('parted_id');
-- An index of another seed can be attached.
CREATE TABLE parted_3 (id int, region int);
CREATE INDEX parted_3_seed ON parted_3 USING bloomfilter (id) WITH (seed = 4);
INSERT INTO parted_3 VALUES (9999, 3);
ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES IN (3);
SELECT (bloom_index_info(index)).seed FROM (VALUES ('parted_1_id_idx'::regclass), ('parted_3_seed')) v (index);
SELECT bloom_index_contains('parted_id', 9999), bloom_index_contains_each('parted_id', ARRAY[9999, 1500, 77777777]);
-- A partition key that moves a row.
UPDATE parted SET region = 1 WHERE id = 1500;
SELECT bloom_index_contains('parted_1_id_idx', 1500);
-- Not all partitions have the index.
CREATE TABLE half (id int) PARTITION BY RANGE (id);
CREATE TABLE half_1 PARTITION OF half FOR VALUES FROM (0) TO (10);
CREATE INDEX half_id ON ONLY half USING bloomfilter (id);
SELECT bloom_index_contains('half_id', 1), bloom_index_contains_each('half_id', ARRAY[1, 2]);
SELECT bloom_index_partitions('half_id', 1);
SELECT bloom_index_info('half_id');
SELECT bloom_index_check('half_id');
CREATE TABLE none (id int) PARTITION BY RANGE (id);
CREATE INDEX none_id ON none USING bloomfilter (id);
SELECT key_type, layers, pages, bits, cardinality, current_fpp FROM bloom_index_info('none_id');
SELECT bloom_index_contains('none_id', 1), bloom_index_check('none_id');
DROP TABLE none;
-- A partition that cannot have one.
CREATE FOREIGN DATA WRAPPER regress_wrapper;
CREATE SERVER regress_server FOREIGN DATA WRAPPER regress_wrapper;
CREATE FOREIGN TABLE parted_foreign PARTITION OF parted FOR VALUES IN (9) SERVER regress_server;
SELECT bloom_index_contains('parted_id', 1);
SELECT bloom_index_partitions('parted_id', 1);
-- An index that is not valid tells nothing; a partition that is detached is none.
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'parted_2_low_id_idx'::regclass;
SELECT bloom_index_partitions('parted_id', 1);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'parted_2_low_id_idx'::regclass;
ALTER TABLE parted DETACH PARTITION parted_1;
SELECT bloom_index_partitions('parted_id', 1);
DROP TABLE parted, parted_1, half;
DROP SERVER regress_server;
DROP FOREIGN DATA WRAPPER regress_wrapper;

-- A query of these tables returns rows of others.
CREATE TABLE parent (id int);
CREATE INDEX parent_id ON parent USING bloomfilter (id);
CREATE TABLE child () INHERITS (parent);
CREATE INDEX child_id ON child USING bloomfilter (id);
INSERT INTO child (id) VALUES (42);
SELECT FROM parent WHERE id = 42 AND bloom_index_contains('parent_id', 42);
SELECT bloom_index_contains_each('parent_id', ARRAY[42]);
SELECT bloom_index_filter('parent_id');
SELECT bool_or(bloom_index_contains(indexrelid, 42)) AS found
FROM pg_inherits JOIN pg_index ON indrelid = inhrelid WHERE inhparent = 'parent'::regclass;
SELECT cardinality, bloom_index_check('parent_id') FROM bloom_index_info('parent_id');
DROP TABLE child;
SELECT bloom_index_contains('parent_id', 42);
-- What Citus gives a table of which it keeps the rows elsewhere.
CREATE FUNCTION citus_truncate_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER truncate_trigger AFTER TRUNCATE ON parent EXECUTE FUNCTION citus_truncate_trigger();
SELECT bloom_index_contains('parent_id', 42);
SELECT bloom_index_filter('parent_id');
-- It is one of many: while their names are looked up, those of the table may be freed.
DO $$ BEGIN FOR i IN 10..40 LOOP
	EXECUTE format('CREATE FUNCTION trigger_%s() RETURNS trigger LANGUAGE plpgsql AS %L', i, 'BEGIN RETURN NULL; END');
	EXECUTE format('CREATE TRIGGER a%1$s AFTER TRUNCATE ON parent EXECUTE FUNCTION trigger_%1$s()', i);
END LOOP; END $$;
SELECT bloom_index_contains('parent_id', 42);
DROP TABLE parent;
DROP FUNCTION citus_truncate_trigger();

-- Whole rows and composite values change with their columns, but not with those that are named.
CREATE TYPE point_of_time AS (day date, hour int);
CREATE TABLE visits (id int, at point_of_time, others point_of_time[]);
INSERT INTO visits VALUES (1, ('2026-01-01', 7));
CREATE FUNCTION whole(visits) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1::text; END';
CREATE INDEX ON visits USING bloomfilter (whole(visits));
CREATE INDEX ON visits USING bloomfilter (id) WHERE visits IS NOT NULL;
CREATE INDEX ON visits USING bloomfilter (hash_record_extended(at, 0));
CREATE INDEX ON visits USING bloomfilter (array_length(others, 1));
CREATE INDEX ON visits USING bloomfilter (hash_record_extended(ROW(NULL, id)::point_of_time, 0));
CREATE FUNCTION at_hour(int) RETURNS point_of_time IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ROW(NULL::date, $1); END';
CREATE INDEX ON visits USING bloomfilter (hash_record_extended(at_hour(id), 0));
CREATE INDEX ON visits USING bloomfilter (id) WHERE at_hour(id) IS NOT NULL;
CREATE FUNCTION key_at(int, point_of_time DEFAULT ROW(NULL, 7)::point_of_time) RETURNS bigint IMMUTABLE LANGUAGE sql RETURN hash_record_extended(ROW($1, $2), 0);
CREATE INDEX ON visits USING bloomfilter (key_at(id));
CREATE TYPE times AS RANGE (subtype = point_of_time);
CREATE DOMAIN several AS times[];
CREATE TABLE ranges (several several[]);
CREATE INDEX ON ranges USING bloomfilter (cardinality(several));
DROP TABLE ranges;
DROP DOMAIN several;
DROP TYPE times;
CREATE INDEX visits_day ON visits USING bloomfilter (((at).day));
CREATE INDEX visits_row ON visits USING bloomfilter (hash_record_extended(ROW(id, (at).hour), 0));
ALTER TABLE visits ADD COLUMN c int DEFAULT 3;
SELECT bloom_index_contains('visits_day', (at).day), bloom_index_contains('visits_row', hash_record_extended(ROW(id, (at).hour), 0)) FROM visits;
DROP TABLE visits CASCADE;
DROP FUNCTION at_hour(int), key_at(int, point_of_time);
DROP TYPE point_of_time;

-- An index that failed to be built is not probed.
CREATE TABLE failing (id int);
INSERT INTO failing VALUES (0), (1);
CREATE INDEX CONCURRENTLY failed ON failing USING bloomfilter ((1 / id));
SELECT indisvalid FROM pg_index WHERE indexrelid = 'failed'::regclass;
SELECT bloom_index_contains('failed', 12345);
SELECT bloom_index_info('failed');
SELECT bloom_index_check('failed');
DROP TABLE failing;

-- A view has the OID of an index, which REINDEX CONCURRENTLY changes, so that it names nothing.
CREATE TABLE viewed (id int);
CREATE INDEX viewed_id ON viewed USING bloomfilter (id);
CREATE VIEW lookups AS
  SELECT bloom_index_contains('viewed_id', 1) AS by_oid, bloom_index_contains('viewed_id'::text::regclass, 1) AS by_name;
SELECT * FROM lookups;
REINDEX INDEX CONCURRENTLY viewed_id;
SELECT * FROM lookups;
DROP VIEW lookups;
DROP TABLE viewed;

-- Both versions of a row, of which the index gets one inside of a HOT chain
CREATE TABLE chained (id int) WITH (fillfactor = 50);
INSERT INTO chained VALUES (1);
BEGIN;
UPDATE chained SET id = 2;
CREATE INDEX chained_id ON chained USING bloomfilter (id);
SELECT bloom_index_contains_each('chained_id', '{1,2,3}');
SELECT bloom_index_check('chained_id');
ROLLBACK;
DROP TABLE chained;

-- A lookup in a partitioned index is made once a query for each key, wherever it is written.
SET max_parallel_workers_per_gather = 0;        -- workers count for themselves
CREATE TABLE parts (part int, id bigint) PARTITION BY LIST (part);
CREATE INDEX parts_id ON parts USING bloomfilter (id) WITH (fpp = 1e-6);
SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', i, i) FROM generate_series(1, 5) i \gexec
INSERT INTO parts SELECT i % 5 + 1, i FROM generate_series(1, 100) i;
\set ECHO none
CREATE FUNCTION scans(query text, OUT rows bigint, OUT scans numeric) LANGUAGE plpgsql AS $$
DECLARE
  before numeric := (SELECT sum(pg_stat_get_xact_numscans(inhrelid)) FROM pg_inherits WHERE inhparent = 'parts_id'::regclass);
BEGIN
  EXECUTE query;
  GET DIAGNOSTICS rows = ROW_COUNT;
  scans := (SELECT sum(pg_stat_get_xact_numscans(inhrelid)) FROM pg_inherits WHERE inhparent = 'parts_id'::regclass) - before;
END
$$;
\set ECHO all
PREPARE by_parameter(bigint) AS SELECT FROM parts WHERE bloom_index_contains('parts_id', $1);
SET plan_cache_mode = force_generic_plan;
SELECT query, s.*
  FROM unnest(ARRAY[
    $$SELECT FROM parts WHERE bloom_index_contains('parts_id', -5::bigint)$$,
    $$SELECT FROM parts WHERE NOT bloom_index_contains('parts_id', '-5')$$,
    $$SELECT FROM parts WHERE bloom_index_contains('parts_id'::text::regclass, -5::bigint)$$,
    $$EXECUTE by_parameter(-5)$$,
    $$SELECT FROM parts WHERE part = 3 OR bloom_index_contains('parts_id', -5::bigint)$$,
    $$SELECT bloom_index_contains('parts_id', -5::bigint) FROM parts$$,
    $$SELECT FROM parts WHERE '{f,f}' = bloom_index_contains_each('parts_id', '{-5,-6}')$$,
    $$SELECT FROM parts WHERE bloom_index_contains('parts_id', (SELECT -max(id) FROM parts))$$,
    $$WITH w AS MATERIALIZED (SELECT -5::bigint AS id) SELECT FROM parts WHERE bloom_index_contains('parts_id', (SELECT id FROM w))$$,
    $$SELECT FROM (SELECT * FROM parts WHERE bloom_index_contains('parts_id', -5::bigint)) p JOIN parts q USING (id)$$,
    $$SELECT FROM parts p WHERE EXISTS (SELECT FROM parts q WHERE q.id = p.id AND bloom_index_contains('parts_id', -5::bigint))$$,
    $$SELECT FROM parts p WHERE bloom_index_contains('parts_id', -5::bigint) AND (part = 1 OR EXISTS (SELECT FROM parts q WHERE q.id = -p.id))$$,
    $$UPDATE parts SET part = part WHERE bloom_index_contains('parts_id', -5::bigint)$$,
    $$DELETE FROM parts WHERE bloom_index_contains('parts_id', -5::bigint)$$,
    $$INSERT INTO parts SELECT part, id FROM parts WHERE bloom_index_contains('parts_id', -5::bigint)$$,
    $$SELECT part FROM parts GROUP BY part HAVING bloom_index_contains('parts_id', -5::bigint)$$,
    $$SELECT part FROM parts WHERE bloom_index_contains('parts_id', -5::bigint) GROUP BY ROLLUP (part)$$,
    $$SELECT part, bloom_index_contains('parts_id', -5::bigint) FROM parts
       WHERE NOT bloom_index_contains('parts_id', -5::bigint)
       GROUP BY ROLLUP (part, bloom_index_contains('parts_id', -5::bigint))$$,
    $$SELECT FROM parts p WHERE part = 1 OR EXISTS (SELECT FROM parts q WHERE q.id = -p.id AND NOT bloom_index_contains('parts_id', -5::bigint))$$,
    $$SELECT FROM parts WHERE bloom_index_contains('parts_id', '-5') OR bloom_index_contains('parts_id', '-6')$$,
    $$SELECT FROM parts WHERE bloom_index_contains_each('parts_id', '{-5,-6}') = '{t,f}' OR bloom_index_contains_each('parts_id', '{-6,-5}') = '{f,t}'$$,
    $$SELECT (SELECT count(*) FROM parts WHERE bloom_index_contains('parts_id', -i::bigint)) FROM generate_series(1, 2) i$$,
    $$SELECT part FROM parts GROUP BY part HAVING bloom_index_contains('parts_id', -max(id))$$,
    $$SELECT FROM parts WHERE bloom_index_contains('parts_id', -id)$$,
    $$SELECT FROM parts p WHERE part = 1 AND EXISTS (SELECT FROM parts q WHERE q.part = 2 AND bloom_index_contains('parts_id', -p.id) OFFSET 0)$$,
    $$WITH p AS (INSERT INTO parts SELECT 1, -7 FROM parts WHERE part < 3 AND NOT bloom_index_contains('parts_id', -7::bigint)
                 RETURNING bloom_index_contains('parts_id', -7::bigint) AS found)
      SELECT FROM p WHERE found$$]) query, scans(query) s;
DELETE FROM parts WHERE id = -7;
RESET max_parallel_workers_per_gather;
RESET plan_cache_mode;
DEALLOCATE by_parameter;

-- But keys and partitions that the query itself adds are found, and so are those between two fetches of a cursor.
SELECT bloom_index_contains('parts_id', generate_series(99, 101)::bigint) FROM parts WHERE id = 1;
CREATE FUNCTION run(command text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; RETURN true; END $$;
CREATE TABLE parts_6 AS SELECT 6 AS part, -18::bigint AS id;
SELECT CASE i WHEN 3 THEN run('INSERT INTO parts VALUES (5, -17)')
              WHEN 4 THEN run('ALTER TABLE parts ATTACH PARTITION parts_6 FOR VALUES IN (6)') END AS runs,
       bloom_index_contains('parts_id', '-16'), bloom_index_contains('parts_id', '-17'), bloom_index_contains('parts_id', '-18'),
       bloom_index_contains_each('parts_id', '{-17,-18}')
  FROM generate_series(1, 4) i;
BEGIN;
DECLARE found CURSOR FOR SELECT bloom_index_contains('parts_id', '-19') FROM parts;
FETCH found;
INSERT INTO parts VALUES (1, -19);
FETCH found;
ROLLBACK;
-- The same text is another key in another time zone.
CREATE TABLE times (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE all_times PARTITION OF times DEFAULT;
CREATE INDEX times_at ON times USING bloomfilter (at) WITH (fpp = 1e-6);
INSERT INTO times VALUES ('2026-01-01 00:00+02');
CREATE FUNCTION found_at(zone text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('timezone', zone, true);
  RETURN bloom_index_contains('times_at', '2026-01-01 00:00');
END $$;
SELECT found_at('<east>-1'), found_at('<east>-2');
SELECT set_config('timezone', zone, true) AS zone, bloom_index_contains('times_at', '2026-01-01 00:00') FROM unnest(ARRAY['<east>-1', '<east>-2']) AS zone;
DROP TABLE times;
DROP FUNCTION scans, run, found_at;
DROP TABLE parts;

-- An index that is being built, and an expression that looks into it
CREATE TABLE building (id int);
INSERT INTO building VALUES (1);
CREATE FUNCTION looks_itself_up(id int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN public.bloom_index_contains('public.building_id'::text::regclass, id) THEN id END;
END $$;
CREATE INDEX building_id ON building USING bloomfilter (looks_itself_up(id));
SELECT bloom_index_contains('building_id', 1);
REINDEX INDEX building_id;
SELECT bloom_index_contains('building_id', 1);
DROP TABLE building;
DROP FUNCTION looks_itself_up;

-- The extension cannot go while an index uses it, nor the schema be confused.
CREATE TABLE uses (id int);
CREATE INDEX uses_id ON uses USING bloomfilter (id);
DROP EXTENSION bloomfilter;
DROP TABLE uses;
DROP ROLE regress_bloom_reader;
