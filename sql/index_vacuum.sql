--
-- VACUUM rebuilds an index that holds much more than its table.
--
-- Tables are temporary, so that no other session may still see what was deleted.
--
\pset format unaligned
\pset tuples_only
CREATE TEMP TABLE t (id bigint, part int, name text);
CREATE INDEX t_id ON t USING bloomfilter (id) WITH (fpp = 1e-4);
SELECT deleted, last_rebuild FROM bloom_index_info('t_id');
INSERT INTO t SELECT i, i % 2, 'name ' || i / 5 FROM generate_series(1, 50000) i;
SELECT layers, cardinality BETWEEN 49500 AND 50500 AS cardinality, deleted, last_rebuild FROM bloom_index_info('t_id');
VACUUM t;
SELECT layers, deleted < 0.02 AS deleted, last_rebuild IS NULL AS never FROM bloom_index_info('t_id');

-- Less than half of the keys are gone, then more.
DELETE FROM t WHERE id <= 20000;
VACUUM t;
SELECT round(deleted::numeric, 1) AS deleted, last_rebuild FROM bloom_index_info('t_id');
DELETE FROM t WHERE id <= 30000;
VACUUM t;
SELECT round(deleted::numeric, 1) AS deleted, last_rebuild BETWEEN now() - interval '1 hour' AND now() AS rebuilt, layers,
       cardinality BETWEEN 19800 AND 20200 AS cardinality, keys_since_build, current_fpp < 1e-4 AS rate
  FROM bloom_index_info('t_id');
SELECT count(*) FILTER (WHERE bloom_index_contains('t_id', id)) < 20 AS forgotten FROM generate_series(1::bigint, 30000) id;
SELECT count(*) AS lost FROM t WHERE NOT bloom_index_contains('t_id', id);
SELECT bloom_index_check('t_id');

-- The file is as small as its keys at once.
SELECT index.bytes < 1.6 * sizing.bytes + 2 * 8192 AS size FROM bloom_index_info('t_id') index, bloom_sizing(1e-4, 20000) sizing;
-- Not if a parameter of the table forbids it; else those of all its indexes are.
CREATE INDEX t_more ON t USING bloomfilter (id) WITH (fpp = 1e-4, rebuild_scale_factor = 0);
ALTER INDEX t_id SET (rebuild_scale_factor = 0);
ALTER TABLE t SET (vacuum_truncate = off);
VACUUM t;
SELECT name, pages > 1.8 * sizing.bytes / 8192 AS with_free_pages
  FROM unnest('{t_id, t_more}'::text[]) name, bloom_index_info(name::regclass) index, bloom_sizing(1e-4, 20000) sizing;
ALTER TABLE t RESET (vacuum_truncate);
VACUUM t;
SELECT name, pages > 1.8 * sizing.bytes / 8192 AS with_free_pages
  FROM unnest('{t_id, t_more}'::text[]) name, bloom_index_info(name::regclass) index, bloom_sizing(1e-4, 20000) sizing;
DROP INDEX t_more;
ALTER INDEX t_id RESET (rebuild_scale_factor);
VACUUM t;
SELECT keys_since_build, deleted < 0.02 AS deleted FROM bloom_index_info('t_id');
SELECT bloom_index_check('t_id');

\set ECHO none
-- Growth is merged, also if there are only inserts.
CREATE FUNCTION insert_each(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 100 LOOP
    INSERT INTO t SELECT 1000000 + i * 1000 + j, 0, 'new' FROM generate_series(1, n / 100) j;
  END LOOP;
END $$;
\set ECHO all
SELECT insert_each(90000);
SELECT layers > 1 AS layers FROM bloom_index_info('t_id');
ALTER INDEX t_id SET (rebuild_scale_factor = -1);
VACUUM t;
SELECT layers > 1 AS layers FROM bloom_index_info('t_id');
ALTER INDEX t_id SET (rebuild_scale_factor = 0);
VACUUM t;
SELECT layers FROM bloom_index_info('t_id');
SELECT count(*) AS lost FROM t WHERE NOT bloom_index_contains('t_id', id);
ALTER INDEX t_id RESET (rebuild_scale_factor);

-- Nothing is left; then there are keys again.
DELETE FROM t;
VACUUM t;
SELECT cardinality, deleted, bloom_index_contains('t_id', 40000) FROM bloom_index_info('t_id');
INSERT INTO t SELECT i, 0, 'again' FROM generate_series(1, 3000) i;
SELECT count(*) AS lost FROM t WHERE NOT bloom_index_contains('t_id', id);
VACUUM t;
SELECT count(*) AS lost FROM t WHERE NOT bloom_index_contains('t_id', id);
SELECT bloom_index_check('t_id');
TRUNCATE t;
SELECT last_rebuild, bloom_index_contains('t_id', 1) FROM bloom_index_info('t_id');
VACUUM t;

-- Rows that share keys, an expression, a predicate, NULL, and room for keys that are expected
DROP INDEX t_id;
CREATE INDEX t_name ON t USING bloomfilter (lower(name)) WITH (fpp = 1e-4);
CREATE INDEX t_part ON t USING bloomfilter (id) WITH (fpp = 1e-4) WHERE part = 1;
CREATE INDEX t_expected ON t USING bloomfilter (id) WITH (fpp = 1e-4, expected = 100000);
INSERT INTO t SELECT i, i % 4, CASE WHEN i % 3 > 0 THEN 'Name ' || i / 10 END FROM generate_series(1, 40000) i;
VACUUM t;
DELETE FROM t WHERE id <= 30000;
VACUUM t;
SELECT name, deleted < 0.05 AS deleted, last_rebuild IS NOT NULL AS rebuilt, layers, cardinality BETWEEN keys * 0.98 - 1 AND keys * 1.02 + 1 AS keys
  FROM (VALUES ('t_name', (SELECT count(DISTINCT name) FROM t)), ('t_part', (SELECT count(*) FROM t WHERE part = 1)),
               ('t_expected', (SELECT count(*) FROM t))) v (name, keys), bloom_index_info(name::regclass) ORDER BY name;
SELECT count(*) AS lost FROM t
 WHERE NOT bloom_index_contains('t_name', lower(name)) OR NOT bloom_index_contains('t_expected', id)
    OR part = 1 AND NOT bloom_index_contains('t_part', id);
SELECT bloom_index_contains('t_name', 'name 2000'), bloom_index_contains('t_part', 20001), bloom_index_contains('t_expected', 20001);
SELECT bloom_index_check('t_name'), bloom_index_check('t_part'), bloom_index_check('t_expected');
INSERT INTO t SELECT i, 1, 'x' || i FROM generate_series(100001, 150000) i;
SELECT layers FROM bloom_index_info('t_expected');
DROP TABLE t;
DROP FUNCTION insert_each;

-- Rows shared their keys; new ones do not.
CREATE TEMP TABLE u (name text);
CREATE INDEX u_name ON u USING bloomfilter (name) WITH (fpp = 1e-4);
INSERT INTO u SELECT i % 10 FROM generate_series(1, 50000) i;
VACUUM u;
INSERT INTO u SELECT 'name ' || i FROM generate_series(1, 50000) i;
VACUUM u;
SELECT layers, cardinality BETWEEN 49500 AND 50500 AS cardinality, deleted < 0.05 AS deleted, last_rebuild IS NOT NULL AS rebuilt FROM bloom_index_info('u_name');
SELECT count(*) AS lost FROM u WHERE NOT bloom_index_contains('u_name', name);
-- New ones do again.
UPDATE u SET name = 'same';
ALTER INDEX u_name SET (rebuild_scale_factor = 0);
VACUUM u;
SELECT layers, pages <= 3 AS pages, cardinality FROM bloom_index_info('u_name');
SELECT count(*) AS lost FROM u WHERE NOT bloom_index_contains('u_name', name);
SELECT bloom_index_check('u_name');
DROP TABLE u;

-- A rebuild that fails halfway leaves a next set, which counts for nothing.
CREATE FUNCTION setting(name text) RETURNS text IMMUTABLE LANGUAGE internal AS 'show_config_by_name';
SET test.divisor = '1';
CREATE TABLE n (id int) WITH (autovacuum_enabled = off);
CREATE INDEX n_id ON n USING bloomfilter ((id / length(setting('test.divisor')))) WITH (fpp = 1e-6, rebuild_scale_factor = 0);
INSERT INTO n SELECT generate_series(1, 3000);
CREATE FUNCTION insert_and_check(n int) RETURNS TABLE (lost bigint, layers int) LANGUAGE sql AS $$
  INSERT INTO n SELECT generate_series(100000, 100000 + n);
  SELECT bloom_index_check('n_id');
  SELECT (SELECT count(*) FROM n WHERE NOT bloom_index_contains('n_id', id)), layers FROM bloom_index_info('n_id');
$$;
SET test.divisor = '';
VACUUM n;
SET test.divisor = '1';
SELECT * FROM insert_and_check(1000);
-- Growth, a VACUUM of another index, and a new one
SELECT lost, layers > 1 AS grown FROM insert_and_check(60000);
CREATE INDEX CONCURRENTLY n_other ON n USING bloomfilter (id);
VACUUM n;
SELECT * FROM insert_and_check(0);
SELECT bloom_index_check('n_other');
SET test.divisor = '';
VACUUM n;
SET test.divisor = '1';
REINDEX INDEX CONCURRENTLY n_id;
SELECT * FROM insert_and_check(1000);
SET test.divisor = '';
VACUUM n;
SET test.divisor = '1';
TRUNCATE n;
SELECT * FROM insert_and_check(1000);
SET test.divisor = '';
VACUUM n;
SET test.divisor = '1';
ALTER INDEX n_id SET (rebuild_scale_factor = -1);
VACUUM n;
SELECT * FROM insert_and_check(1000);
DROP TABLE n;
DROP FUNCTION insert_and_check, setting;

-- An index is rebuilt if its key is a column, or of columns and functions in C, on PostgreSQL's own types: others may read
-- rows that others remove meanwhile, and texts of values depend on settings of who runs VACUUM.
CREATE FUNCTION in_plpgsql(name text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN name; END';
CREATE FUNCTION in_sql(name text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT name';
CREATE FUNCTION in_c(name text, other text DEFAULT in_plpgsql('x')) RETURNS text IMMUTABLE LANGUAGE internal AS 'textcat';
CREATE DOMAIN name_domain AS text CHECK (value <> '');
CREATE TYPE name_kind AS ENUM ('known');
CREATE TABLE w (name text, price int, rate float8, data bytea, kind name_kind, short varchar) WITH (autovacuum_enabled = off);
CREATE FUNCTION create_indexes(how text, VARIADIC definitions text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cardinality(definitions) LOOP
    EXECUTE format('CREATE INDEX %I ON w USING bloomfilter (%s) WITH (rebuild_scale_factor = 0) %s', how || '_' || i,
      split_part(definitions[i], ' WHERE ', 1), substring(definitions[i] FROM ' WHERE .*'));
  END LOOP;
END $$;
SELECT create_indexes('rebuilt', 'kind', 'name', 'lower(name)', '(name COLLATE "C")', '(ARRAY[name, ''x''])', 'in_c(name, ''x'')',
  'name WHERE price > 0 AND name <> ''y''', 'name WHERE price IS NOT NULL OR (price = 5) IS TRUE', 'coalesce(name, ''x'') WHERE price = ANY (''{1,2}'')',
  'nullif(name, '''') WHERE short IN (''a'', ''b'') OR NOT price IS DISTINCT FROM 1', '(CASE price WHEN 1 THEN name ELSE ''x'' END)');
SELECT create_indexes('built', 'in_plpgsql(name)', 'in_sql(name)', 'name WHERE in_plpgsql(name) <> ''y''', 'in_c(name)', '(name::name_domain)',
  'least(name, ''z'')', '(price::text)', '(rate::text)', '(data::text)', '(rate || '''')', 'name WHERE (price, name) > (1, ''1'')',
  'name WHERE kind IS NOT NULL');
DO $$ BEGIN
  IF current_setting('server_version_num')::int >= 160000 THEN
    PERFORM create_indexes('json', '(json_array(name RETURNING text))');
  END IF;
END $$;
INSERT INTO w SELECT i, i, i / 7.0, convert_to(i::text, 'UTF8'), 'known' FROM generate_series(1, 1000) i;
DELETE FROM w WHERE price = 7;
SET extra_float_digits = -3;
VACUUM (PARALLEL 0) w;
RESET extra_float_digits;
SELECT relname, last_rebuild IS NOT NULL AS rebuilt
  FROM pg_index JOIN pg_class ON indexrelid = oid, bloom_index_info(oid)
 WHERE indrelid = 'w'::regclass AND relname <> 'json_1' AND (relname ^@ 'rebuilt') <> (last_rebuild IS NOT NULL) ORDER BY oid;
SELECT count(*) AS indexes, count(last_rebuild) AS rebuilt
  FROM pg_index JOIN pg_class ON indexrelid = oid, bloom_index_info(oid)
 WHERE indrelid = 'w'::regclass AND relname <> 'json_1';
SELECT count(last_rebuild) AS json FROM pg_class, bloom_index_info(oid) WHERE relname = 'json_1';
SELECT count(*) AS lost FROM w WHERE NOT bloom_index_contains('rebuilt_3', lower(name)) OR NOT bloom_index_contains('rebuilt_7', name)
	OR NOT bloom_index_contains('rebuilt_6', in_c(name, 'x')) OR NOT bloom_index_contains('built_8', rate::text);
REINDEX INDEX built_2;
SELECT bloom_index_contains('built_2', '7') AS forgotten_by_reindex, bloom_index_contains('built_1', '7') AS by_vacuum;
DROP TABLE w;
DROP DOMAIN name_domain;
DROP TYPE name_kind;
DROP FUNCTION in_c, in_sql, in_plpgsql, create_indexes;

-- Versions that were replaced are no rows whose keys are gone, nor if that is not committed, or before the first VACUUM.
CREATE TABLE k (id int, n int) WITH (autovacuum_enabled = off);
INSERT INTO k SELECT i, 0 FROM generate_series(1, 1000) i;
BEGIN;
UPDATE k SET n = 1;
CREATE INDEX k_id ON k USING bloomfilter (id);
COMMIT;
ANALYZE k;
SELECT deleted < 0.01 AS deleted FROM bloom_index_info('k_id');
-- A version whose UPDATE was rolled back is a row.
TRUNCATE k;
INSERT INTO k SELECT i % 1000, i FROM generate_series(1, 20000) i;
BEGIN;
UPDATE k SET n = 0 WHERE n > 1000;
ROLLBACK;
VACUUM k;
DELETE FROM k WHERE id >= 100;
VACUUM k;
SELECT cardinality < 110 AS rebuilt FROM bloom_index_info('k_id');
DROP TABLE k;

-- Partitions, of which each is rebuilt by itself
CREATE TEMP TABLE p (id int, part int) PARTITION BY LIST (part);
CREATE TEMP TABLE p_1 PARTITION OF p FOR VALUES IN (1);
CREATE TEMP TABLE p_2 PARTITION OF p FOR VALUES IN (2);
CREATE INDEX p_id ON p USING bloomfilter (id) WITH (fpp = 1e-5);
INSERT INTO p SELECT i, 1 + i % 2 FROM generate_series(1, 4000) i;
SELECT deleted FROM bloom_index_info('p_id');
DELETE FROM p WHERE part = 1 AND id > 500;
VACUUM p;
SELECT deleted < 0.02 AS deleted, last_rebuild IS NOT NULL AS rebuilt FROM bloom_index_info('p_id');
SELECT last_rebuild IS NOT NULL AS rebuilt FROM bloom_index_info('p_2_id_idx');
SELECT bloom_index_contains_each('p_id', '{2,3,3000,3001}');
DROP TABLE p;

-- A key that is deleted in the own transaction, which another snapshot may still see
CREATE TABLE l (id int) WITH (autovacuum_enabled = off);
CREATE INDEX l_id ON l USING bloomfilter (id) WITH (rebuild_scale_factor = 0.1, fpp = 1e-6);
INSERT INTO l SELECT generate_series(1, 1000);
VACUUM l;
DELETE FROM l WHERE id % 2 = 0;
VACUUM (INDEX_CLEANUP off) l;
SELECT last_rebuild FROM bloom_index_info('l_id');
VACUUM l;
SELECT last_rebuild IS NOT NULL AS rebuilt FROM bloom_index_info('l_id');
SELECT count(*) AS lost FROM l WHERE NOT bloom_index_contains('l_id', id);
SELECT reloptions FROM pg_class WHERE relname = 'l_id';
DROP TABLE l;

-- VACUUM does not know how many rows there are.
CREATE TEMP TABLE c (id int);
CREATE INDEX c_id ON c USING bloomfilter (id) WITH (expected = 10000);
BEGIN;
TRUNCATE c;
\copy c FROM PROGRAM 'seq 1 10000' WITH (FREEZE)
COMMIT;
VACUUM c;
SELECT last_rebuild FROM bloom_index_info('c_id');
BEGIN;
TRUNCATE c;
ANALYZE c;
\copy c FROM PROGRAM 'seq 1 10000' WITH (FREEZE)
COMMIT;
VACUUM c;
SELECT last_rebuild FROM bloom_index_info('c_id');
DROP TABLE c;

-- Its parameter
CREATE TEMP TABLE o (id int);
CREATE INDEX ON o USING bloomfilter (id) WITH (rebuild_scale_factor = 1.5);
CREATE INDEX ON o USING bloomfilter (id) WITH (rebuild_scale_factor = 'often');
CREATE INDEX o_id ON o USING bloomfilter (id) WITH (rebuild_scale_factor = 1);
ALTER INDEX o_id SET (rebuild_scale_factor = -2);
DROP TABLE o;
