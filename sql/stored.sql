--
-- STORED
-- Filters in tables are probed by slices or cached in fn_extra: the same
-- results as from a filter in memory, never stale ones, with few buffers.
--
\pset format unaligned
\pset tuples_only

SET max_parallel_workers_per_gather = 0;
SET work_mem = '4MB';

-- Filters of all forms and block sizes, from empty to some hundred chunks,
-- with the numbers 1 to n.  Each is stored with every storage option.
CREATE TABLE filters (form text, n int, f bloom);
INSERT INTO filters VALUES ('empty', 0, bloom_empty());
INSERT INTO filters SELECT 'one', 1, bloom_agg(i) FROM generate_series(1, 1) i;
INSERT INTO filters SELECT 'sparse, short', 5, bloom_agg(i) FROM generate_series(1, 5) i;
INSERT INTO filters SELECT 'sparse, small', 1000, bloom_agg(i, 1e-9, 2000) FROM generate_series(1, 1000) i;
INSERT INTO filters SELECT 'sparse', 40000, bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 40000) i;
SET client_min_messages = error;
INSERT INTO filters SELECT format('dense, %s', fpp), n, bloom_agg(i, fpp, n)
  FROM (VALUES (0.5, 150000), (0.1, 50000), (0.01, 30000), (1e-3, 20000), (1e-4, 15000), (1e-6, 10000), (1e-9, 10000)) v(fpp, n),
    generate_series(1, n) i GROUP BY fpp, n;
INSERT INTO filters SELECT 'layers', 60000, bloom_agg(i, 0.01, 1000) FROM generate_series(1, 60000) i;
RESET client_min_messages;
CREATE TABLE stored (form text, n int, storage text, f bloom);
CREATE TABLE s_main (LIKE stored); ALTER TABLE s_main ALTER f SET STORAGE main;
CREATE TABLE s_extended (LIKE stored); ALTER TABLE s_extended ALTER f SET STORAGE extended;
CREATE TABLE s_external (LIKE stored); ALTER TABLE s_external ALTER f SET STORAGE external;
INSERT INTO s_main SELECT form, n, 'main', f FROM filters;
INSERT INTO s_extended SELECT form, n, 'extended', f FROM filters;
-- compressible filters: sized for far more keys than they hold
INSERT INTO s_extended SELECT 'hardly filled', 100, 'extended', bloom_agg(i, 0.1, 60000) | bloom_agg(i) FILTER (WHERE i <= 100)
  FROM generate_series(1, 6000) i;
INSERT INTO s_main SELECT format('emptied, %s', e), 0, 'main', bloom_agg(i, 0.1, e) & bloom_agg(-i, 0.1, e)
  FROM (VALUES (16000), (12000)) v(e), generate_series(1, e / 12) i GROUP BY e;
INSERT INTO s_extended SELECT format('emptied, %s', e), 0, 'extended', bloom_agg(i, 0.1, e) & bloom_agg(-i, 0.1, e)
  FROM (VALUES (16000), (12000), (300000)) v(e), generate_series(1, e / 12) i GROUP BY e;
INSERT INTO s_external SELECT form, n, 'external', f FROM filters;
INSERT INTO s_external SELECT form, n, 'was ' || storage, f::bytea::bloom FROM s_extended WHERE form LIKE 'emptied%' OR form = 'hardly filled';
CREATE VIEW every AS SELECT * FROM s_main UNION ALL SELECT * FROM s_extended UNION ALL SELECT * FROM s_external;
SELECT storage, count(*), count(*) FILTER (WHERE pg_column_size(f) < 200) AS short,
  count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) < 2000) > 0 AS compressed_inline,
  count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) > 2000) > 0 AS compressed_external,
  count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) > 12300) AS sliced,
  count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) BETWEEN 2000 AND 12300) AS external_small
FROM every GROUP BY storage ORDER BY storage;

--
-- The fast path and the simple path: the right side of each comparison is a
-- filter in memory, a CTE without TOAST pointers.  By slices, then across the
-- point where the whole filter is read, and from the cache.
--
CREATE TABLE answers AS
  WITH plain AS MATERIALIZED (SELECT form, n, storage, f::bytea::bloom AS f FROM every)
  SELECT form, storage, n, k, bloom_contains(f, k) AS yes, bloom_contains_hash(f, bloom_hash(k)) AS by_hash
  FROM plain, LATERAL (SELECT i AS k FROM generate_series(1, n, n / 300 + 1) i
    UNION ALL SELECT -i FROM generate_series(1, 400) i) k;
CREATE INDEX ON answers (form, storage, k);
VACUUM ANALYZE answers;
SELECT count(*) AS probes, count(*) FILTER (WHERE NOT yes AND k > 0) AS lost, count(*) FILTER (WHERE yes AND k < 0) > 500 AS some_false,
  count(*) FILTER (WHERE yes <> by_hash) AS by_hash_differs FROM answers;
-- One call gets one filter after the other, with many keys each...
SELECT storage, count(*) AS probes, count(*) FILTER (WHERE (f @> k) <> yes) AS differ,
  count(*) FILTER (WHERE bloom_contained_by(k, f) <> yes) AS commuted, count(*) FILTER (WHERE bloom_contains_hash(f, bloom_hash(k)) <> yes) AS by_hash
FROM (SELECT storage, f, k, yes FROM every JOIN answers USING (form, storage, n) ORDER BY storage, form, n, octet_length(f::bytea), k OFFSET 0) a
GROUP BY storage ORDER BY storage;
-- ... all of them in turn, for each key...
SELECT count(*) AS probes, count(*) FILTER (WHERE (f @> k) <> yes) AS differ
FROM (SELECT f, k, yes FROM every JOIN answers USING (form, storage, n) ORDER BY k, form, storage OFFSET 0) a;
-- ... in turn without enough memory for them...
SET work_mem = '64kB';
SELECT count(*) AS probes, count(*) FILTER (WHERE (f @> k) <> yes) AS differ
FROM (SELECT f, k, yes FROM every JOIN answers USING (form, storage, n) ORDER BY k, form, storage OFFSET 0) a;
-- ... in random order, some of them inline...
SELECT count(*) AS probes, count(*) FILTER (WHERE (f @> k) <> yes) AS differ
FROM (SELECT CASE WHEN hashint4(k) % 3 = 0 THEN bloom_union(f, f) ELSE f END AS f, k, yes
  FROM every JOIN answers USING (form, storage, n) WHERE k % 29 = 0 ORDER BY hashtext(k || storage || form) OFFSET 0) a;
RESET work_mem;
\set ECHO none
-- ... or one key each time.
CREATE FUNCTION probe_once(form text, storage text, n int, k int) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  result bool;
BEGIN
  EXECUTE 'SELECT bool_and(f @> $4) FROM every WHERE form = $1 AND storage = $2 AND n = $3' INTO result USING form, storage, n, k;
  RETURN result;
END $$;
\set ECHO all
SELECT count(*) AS probes, count(*) FILTER (WHERE probe_once(form, storage, n, k) <> yes) AS differ
FROM (SELECT form, storage, n, k, bool_and(yes) AS yes FROM answers WHERE k % 41 = 0 GROUP BY form, storage, n, k) a;

-- Arrays, from one key to enough keys to read the whole filter
SELECT size, count(*) AS arrays, count(*) FILTER (WHERE bloom_contains_any(f, keys) <> any_yes) AS "any",
  count(*) FILTER (WHERE bloom_contains_all(f, keys) <> all_yes) AS "all",
  count(*) FILTER (WHERE bloom_new_keys(f, keys || keys) <> new_keys) AS new_keys
FROM (VALUES (1), (3), (10), (100), (3000)) s(size), LATERAL (
  SELECT form, storage, n, bool_or(yes) AS any_yes, bool_and(yes) AS all_yes, array_agg(k ORDER BY r) AS keys,
    coalesce(array_agg(k ORDER BY r) FILTER (WHERE NOT yes), '{}') AS new_keys
  FROM (SELECT *, row_number() OVER (PARTITION BY form, storage, n ORDER BY hashint4(k)) AS r
    FROM (SELECT form, storage, n, k, bool_and(yes) AS yes FROM answers WHERE k % 5 = 0 GROUP BY form, storage, n, k) a) a
  WHERE r / size < 20 GROUP BY form, storage, n, r / size) a JOIN every USING (form, storage, n)
GROUP BY size ORDER BY size;
SELECT bloom_contains_any(f, '{}'::int[]) AS "any", bloom_contains_all(f, '{}'::int[]) AS "all", bloom_new_keys(f, '{}'::int[]) AS new_keys,
  bloom_contains_any(f, '{NULL}'::int[]) AS any_null
FROM s_external WHERE form = 'dense, 0.01';

-- Functions that read the header
WITH plain AS MATERIALIZED (SELECT form, n, storage, f::bytea::bloom AS f FROM every)
SELECT count(*) AS filters, count(*) FILTER (WHERE bloom_info(e.f) = bloom_info(p.f) AND bloom_fpp(e.f) = bloom_fpp(p.f)
    AND bloom_cardinality(e.f) = bloom_cardinality(p.f)) AS agree
FROM every e JOIN plain p USING (form, n, storage);

-- Values in memory at the address of an earlier value
SELECT count(*) AS probes, count(*) FILTER (WHERE bloom_add(bloom_empty(0.01, NULL, i % 3), i) @> i) AS found FROM generate_series(1, 1000) i;

-- Values compressed to the same size, one after the other
CREATE TABLE alike (s int, f bloom);
ALTER TABLE alike ALTER f SET STORAGE main;
INSERT INTO alike SELECT s, bloom_agg(CASE WHEN i > 20 THEN i * 1000 ELSE s * 100 + i END, 0.1, 12000) &
    bloom_agg(CASE WHEN i > 20 THEN -i * 1000 ELSE s * 100 + i END, 0.1, 12000)
  FROM generate_series(1, 60) s, generate_series(1, 1000) i GROUP BY s;
SELECT count(*) AS filters, count(DISTINCT pg_column_size(f)) < 60 AS of_equal_size, bool_and(pg_column_compression(f) IS NOT NULL) AS compressed
  FROM alike;
SELECT count(*) AS probes, count(*) FILTER (WHERE f @> k) AS found FROM (
  SELECT f, s * 100 + i AS k FROM alike, generate_series(1, 20) i ORDER BY i, pg_column_size(f), s OFFSET 0) a;

-- Filters of another seed or key type in one call, and keys of another
-- key type
CREATE TABLE typed (id int, f bloom);
INSERT INTO typed SELECT 1, bloom_agg(i, 0.01, 50000, 1) FROM generate_series(1, 50000) i;
INSERT INTO typed SELECT 2, bloom_agg(i, 0.01, 50000, 2) FROM generate_series(1, 50000) i;
INSERT INTO typed SELECT 3, bloom_agg(i::text, 0.01, 50000) FROM generate_series(1, 50000) i;
SELECT id, count(*) FROM (SELECT * FROM typed, generate_series(1, 1000) k WHERE id < 3 ORDER BY k, id OFFSET 0) k WHERE f @> k GROUP BY id ORDER BY id;
SELECT count(*) FROM typed, generate_series(1, 1000) k WHERE id = 3 AND f @> k;
SELECT bloom_new_keys(f, ARRAY['1', '50000', 'x']) FROM typed WHERE id = 3;
SELECT bloom_contains_any(f, ARRAY[1]) FROM typed WHERE id = 3;

--
-- Few buffers, for bits and for a list
--
CREATE TABLE big (id int PRIMARY KEY, f bloom);
INSERT INTO big SELECT 1, bloom_agg(i, 0.01, 1000000) FROM generate_series(1, 200000) i;
INSERT INTO big SELECT 2, bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 200000) i;
VACUUM ANALYZE big;
SELECT id, pg_relation_size(reltoastrelid) / 8192 > 200 AS many_pages, octet_length(f::bytea) / 1996 > 90 AS many_chunks
  FROM big, pg_class WHERE pg_class.oid = 'big'::regclass ORDER BY id;
\set ECHO none
CREATE FUNCTION buffers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  FOR i IN 1 .. 2 LOOP		-- catalogs are cached the second time
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
  END LOOP;
  plan := plan -> 0 -> 'Plan';
  RETURN (plan ->> 'Shared Hit Blocks')::int + (plan ->> 'Shared Read Blocks')::int;
END $$;
\set ECHO all
-- A chunk takes an index descent and a page; four chunks at most.
SELECT id, buffers(format('SELECT bloom_contains(f, 1) FROM big WHERE id = %s', id)) <= CASE id WHEN 1 THEN 20 ELSE 30 END AS present,
  buffers(format('SELECT f @> -1 FROM big WHERE id = %s', id)) <= CASE id WHEN 1 THEN 20 ELSE 30 END AS absent,
  buffers(format('SELECT bloom_contains_all(f, ARRAY[1, 2, 3]) FROM big WHERE id = %s', id)) <= 80 AS three,
  buffers(format('SELECT bloom_cardinality(f) FROM big WHERE id = %s', id)) <= 10 AS cardinality,
  buffers(format('SELECT bloom_fpp(f) FROM big WHERE id = %s', id)) <= 10 AS fpp,
  buffers(format('SELECT bloom_info(f) FROM big WHERE id = %s', id)) <= 10 AS info
FROM big ORDER BY id;
-- Many keys read the whole filter once, not once per key, nor slice by slice.
SELECT buffers('SELECT count(*) FROM big, generate_series(1, 20000) k WHERE id = 1 AND f @> k') < 5000 AS whole_once,
  buffers('SELECT count(*) FROM generate_series(1, 20000) k WHERE (SELECT f FROM big WHERE id = 1) @> k') < 5000 AS initplan,
  buffers('SELECT bloom_contains_all(f, (SELECT array_agg(k) FROM generate_series(1, 20000) k)) FROM big WHERE id = 1') < 2500 AS array,
  buffers('SELECT count(*) FROM (SELECT f, k FROM big, generate_series(1, 20000) k ORDER BY k, id OFFSET 0) a WHERE f @> k') < 15000 AS in_turn;
-- So do compressed filters, in each call.
SELECT pg_column_compression(f) IS NOT NULL AND pg_column_size(f) > 2000 AS compressed,
  buffers($$SELECT count(*) FROM s_extended, generate_series(1, 5000) k WHERE form = 'hardly filled' AND f @> k$$) < 200 AS whole_once
  FROM s_extended WHERE form = 'hardly filled';

-- The memory of many filters is released when they are evicted: two that are
-- probed alternately after them, for some keys each time, stay cached.
CREATE TABLE sixty AS SELECT g AS id, bloom_add(f, -g) AS f
  FROM (SELECT bloom_agg(i, 0.01, 20000) AS f FROM generate_series(1, 20000) i) base, generate_series(1, 60) g;
VACUUM ANALYZE sixty;
SET work_mem = '256kB';
SELECT buffers('SELECT count(*) FROM (SELECT f, id, k FROM sixty, generate_series(1, 100) k ORDER BY id OFFSET 0) a WHERE f @> k') < 3000 AS each_once,
  buffers('SELECT count(*) FROM (SELECT f, id, k FROM sixty, generate_series(1, 100) k WHERE id > 2
      UNION ALL SELECT f, 1000 + k / 50 * 10 + id, k FROM sixty, generate_series(1, 10000) k WHERE id <= 2 ORDER BY 2 OFFSET 0) a WHERE f @> k') < 3000 AS two_in_turn,
  buffers('SELECT count(*) FROM (SELECT f, id, k FROM sixty, generate_series(1, 40) k ORDER BY k, id OFFSET 0) a WHERE f @> k') < 9000 AS all_in_turn;
RESET work_mem;

-- A filter that takes exactly the available memory stays cached while probed.
SET work_mem = '64kB';
CREATE TABLE fits AS SELECT bloom_add_all(bloom_empty(), array_agg(i)) AS f FROM generate_series(1, 8186) i;
VACUUM ANALYZE fits;
SELECT octet_length(f::bytea) <= 65536 AND octet_length(f::bytea) > 65536 - 8 AS fits FROM fits;
SELECT count(*) AS probes, count(*) FILTER (WHERE f @> k) AS found FROM fits, generate_series(1, 8186) k;
SELECT buffers('SELECT count(*) FROM fits, generate_series(1, 8186) k WHERE f @> k') < 400 AS whole_once;
RESET work_mem;

--
-- Never a stale result
--

-- In PL/pgSQL, a simple expression has one FmgrInfo in all statements of a
-- transaction.  The variable holds a TOAST pointer.
CREATE TABLE changing (id int PRIMARY KEY, f bloom);
\set ECHO none
CREATE FUNCTION numbers(first int, last int) RETURNS bloom LANGUAGE sql AS 'SELECT bloom_agg(i, 1e-9, 50000) FROM generate_series(first, last) i';
CREATE FUNCTION count_in(f bloom, first int, last int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  n int := 0;
BEGIN
  FOR k IN first .. last LOOP
    IF f @> k THEN
      n := n + 1;
    END IF;
  END LOOP;
  RETURN n;
END $$;
CREATE FUNCTION changes(nkeys int) RETURNS TABLE (step text, old int, new int) LANGUAGE plpgsql AS $$
DECLARE
  g bloom;
  c refcursor;
BEGIN
  FOREACH step IN ARRAY '{insert,update,again,rollback,truncate,delete,cursor,end}'::text[] LOOP
    CASE step
      WHEN 'insert' THEN
        INSERT INTO changing VALUES (1, numbers(1, 20000));
      WHEN 'update' THEN
        UPDATE changing SET f = numbers(100001, 120000);
      WHEN 'again' THEN
        UPDATE changing SET f = numbers(1, 20000);
      WHEN 'rollback' THEN
        BEGIN
          UPDATE changing SET f = numbers(100001, 120000);
          SELECT f INTO g FROM changing;
          RAISE INFO 'before it: % %', count_in(g, 1, nkeys), count_in(g, 100001, 100000 + nkeys);
          RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
        END;
      WHEN 'truncate' THEN
        TRUNCATE changing;
        INSERT INTO changing VALUES (1, numbers(100001, 120000));
      WHEN 'delete' THEN
        DELETE FROM changing;
        INSERT INTO changing VALUES (1, numbers(1, 20000));
      WHEN 'cursor' THEN
        OPEN c FOR SELECT f FROM changing;
        UPDATE changing SET f = numbers(100001, 120000);
        FETCH c INTO g;
        CLOSE c;
        RAISE INFO 'by the cursor: % %', count_in(g, 1, nkeys), count_in(g, 100001, 100000 + nkeys);
      ELSE
        TRUNCATE changing;
        RETURN;
    END CASE;
    SELECT f INTO g FROM changing;
    old := count_in(g, 1, nkeys);
    new := count_in(g, 100001, 100000 + nkeys);
    RETURN NEXT;
  END LOOP;
END $$;
\set ECHO all
SELECT * FROM changes(1);
SELECT * FROM changes(1000);

-- The same across transactions, by a prepared statement and by a procedure,
-- with the table rewritten in between
SET plan_cache_mode = force_generic_plan;
INSERT INTO changing VALUES (1, numbers(1, 20000));
PREPARE probe AS SELECT count(*) FILTER (WHERE f @> k) AS old, count(*) FILTER (WHERE f @> k + 100000) AS new FROM changing, generate_series(1, 1000) k;
EXECUTE probe;
UPDATE changing SET f = numbers(100001, 120000);
EXECUTE probe;
VACUUM FULL changing;
EXECUTE probe;
BEGIN;
SAVEPOINT s;
UPDATE changing SET f = numbers(1, 20000);
EXECUTE probe;
ROLLBACK TO s;
EXECUTE probe;
COMMIT;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT f @> k AS old, f @> k + 100000 AS new, k FROM changing, generate_series(1, 20000, 10000) k;
FETCH 1 FROM c;
UPDATE changing SET f = numbers(1, 20000);
COMMIT;
TRUNCATE changing;
FETCH ALL FROM c;
CLOSE c;
EXECUTE probe;
RESET plan_cache_mode;
\set ECHO none
CREATE PROCEDURE across() LANGUAGE plpgsql AS $$
DECLARE
  g bloom;
BEGIN
  FOR i IN 0 .. 3 LOOP
    TRUNCATE changing;
    INSERT INTO changing VALUES (i, CASE WHEN i % 2 = 0 THEN numbers(1, 20000) ELSE numbers(100001, 120000) END);
    SELECT f INTO g FROM changing;
    RAISE INFO '% %', count_in(g, 1, 100), count_in(g, 100001, 100100);
    COMMIT;
    RAISE INFO '% % after it', count_in(g, 1, 100), count_in(g, 100001, 100100);
  END LOOP;
END $$;
\set ECHO all
CALL across();

-- In parallel, each worker separately
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE TABLE keys AS SELECT i AS k FROM generate_series(1, 30000) i;
ANALYZE keys;
\set ECHO none
CREATE FUNCTION is_parallel(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan::text LIKE '%Workers Planned%';
END $$;
\set ECHO all
SELECT is_parallel('SELECT count(*) FROM keys WHERE (SELECT f FROM big WHERE id = 1) @> k') AS initplan,
  is_parallel('SELECT count(*) FROM keys, big WHERE id = 2 AND f @> k') AS "join";
SELECT count(*) FROM keys WHERE (SELECT f FROM big WHERE id = 1) @> k;
SELECT count(*) FROM keys, big WHERE id = 2 AND f @> k;
-- PostgreSQL's workers cannot read what a temporary table has out of line.
CREATE TEMP TABLE own AS SELECT * FROM big WHERE id = 1;
SELECT is_parallel('SELECT count(*) FROM keys WHERE (SELECT f | bloom_empty() FROM own) @> k') AS parallel;
SELECT count(*) FROM keys WHERE (SELECT f | bloom_empty() FROM own) @> k;
DROP TABLE own;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;

--
-- Stored values that are damaged: built by a function that returns bytea
-- unchanged and is declared to return a filter.
--
\set ECHO none
CREATE FUNCTION forge(bytea) RETURNS bloom LANGUAGE internal IMMUTABLE STRICT AS 'byteasend';
CREATE FUNCTION sqlstate_of(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE query;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
\set ECHO all
CREATE TABLE forged (damage text, f bloom);
INSERT INTO forged
  SELECT 'magic', forge(overlay(image PLACING '\x00' FROM 1)) FROM (SELECT f::bytea AS image FROM big WHERE id = 1) i
  UNION ALL SELECT 'directory', forge(overlay(image PLACING '\x00ff' FROM 49)) FROM (SELECT f::bytea AS image FROM big WHERE id = 1) i
  UNION ALL SELECT 'shorter', forge(substr(image, 1, octet_length(image) - 8)) FROM (SELECT f::bytea AS image FROM big WHERE id = 1) i
  UNION ALL SELECT 'longer', forge(image || '\x00'::bytea) FROM (SELECT f::bytea AS image FROM big WHERE id = 2) i;
CREATE TABLE forged_small (LIKE forged);
INSERT INTO forged_small
  SELECT 'small', forge(substr(f::bytea, 1, 8000)) FROM s_external WHERE form = 'sparse, small'
  UNION ALL SELECT 'short', forge(substr(f::bytea, 1, 50)) FROM s_external WHERE form = 'sparse, short';
ALTER TABLE forged_small ALTER f SET STORAGE extended;
INSERT INTO forged_small SELECT 'compressed', forge(substr(f::bytea, 1, 6000)) FROM s_main WHERE form = 'emptied, 16000';
SELECT damage, sqlstate_of(format('SELECT f @> 1 FROM %s WHERE damage = %L', "table", damage)) AS contains,
  sqlstate_of(format('SELECT bloom_new_keys(f, ARRAY[1, 2]) FROM %s WHERE damage = %L', "table", damage)) = sqlstate_of('SELECT forge(''x'') @> 1') AS new_keys,
  sqlstate_of(format('SELECT bloom_info(f) FROM %s WHERE damage = %L', "table", damage)) = sqlstate_of('SELECT forge(''x'') @> 1') AS info
FROM (SELECT damage, 'forged' AS "table" FROM forged UNION ALL SELECT damage, 'forged_small' FROM forged_small) d ORDER BY damage;
\set ECHO none
-- After an error, a call continues with the next filter, and reports the
-- damage again.
CREATE FUNCTION survive(f bloom, k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN f @> k;
EXCEPTION WHEN data_corrupted THEN
  RETURN 'damaged';
END $$;
\set ECHO all
SELECT answer, count(*) FROM (
  SELECT survive(f, k) AS answer FROM (
    SELECT damage, f, k FROM (SELECT * FROM forged UNION ALL SELECT * FROM forged_small UNION ALL SELECT form, f FROM every UNION ALL SELECT id::text, f FROM big) f,
      generate_series(200, 202) k ORDER BY k, damage OFFSET 0) a) a
GROUP BY answer ORDER BY answer;
-- The filter that was probed before it is found again as it was.
SELECT damage, count(*) FILTER (WHERE answer = 'true') AS found, count(*) FILTER (WHERE answer = 'damaged') AS damaged FROM (
  SELECT damage, survive(f, k) AS answer FROM (
    SELECT damage, k, CASE WHEN k % 2 = 0 THEN d.f ELSE b.f END AS f
    FROM (SELECT * FROM forged UNION ALL SELECT * FROM forged_small) d, big b, generate_series(1, 20) k
    WHERE b.id = 1 ORDER BY damage, k OFFSET 0) a) a
GROUP BY damage ORDER BY damage;

DROP VIEW every;
DROP TABLE filters, stored, s_main, s_extended, s_external, answers, alike, typed, big, sixty, fits, changing, keys, forged, forged_small;
DROP FUNCTION probe_once, buffers, is_parallel, numbers, count_in, changes, forge, sqlstate_of, survive;
DROP PROCEDURE across;
