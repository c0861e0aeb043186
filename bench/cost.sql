-- What a call costs: the measure behind the COST of every function.
--
--   psql -X -q -f bench/cost.sql      as superuser, in a scratch database with the extension, on Linux; 2 minutes
--
-- CPU time of the backend for an expression in the target list of a scan of a million rows, less that of one row
-- (what is done once), less that of the bare column; median of five interleaved rounds. COST 1 is meant to be one
-- simple built-in function, so ns are divided by the mean of the three at the top.
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;

CREATE TEMP TABLE rows AS
SELECT i AS a, 'https://example.org/' || lpad(to_hex(i * 2654435761 % 4294967296), 44, '0') AS u, f AS small, b
  FROM generate_series(1, 1000000::bigint) i, (SELECT bloom_agg(i) AS f FROM generate_series(1, 8) i) f,
	(SELECT ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]::bigint[] AS b) b;
ALTER TABLE rows SET (parallel_workers = 0);
CREATE TEMP TABLE filters (name text, f bloom);
INSERT INTO filters SELECT 'b8', bloom_agg(i) FROM generate_series(1, 8::bigint) i;
INSERT INTO filters SELECT 'b10k', bloom_agg(i, 0.01, 10000) FROM generate_series(1, 10000::bigint) i;
INSERT INTO filters SELECT 'c10k', bloom_agg(-i, 0.01, 10000) FROM generate_series(1, 5000::bigint) i;
INSERT INTO filters SELECT 'b1m', bloom_agg(i, 0.01, 1000000) FROM generate_series(1, 1000000::bigint) i;
INSERT INTO filters SELECT 'b100m', bloom_agg(i, 0.01, 100000000) FROM generate_series(1, 20000000::bigint) i;
INSERT INTO filters SELECT 't1m', bloom_agg(u, 0.01, 1000000) FROM rows;
VACUUM ANALYZE rows, filters;

CREATE FUNCTION pg_temp.cpu_ns() RETURNS float8 LANGUAGE sql AS
	$$ SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 $$;

-- {1..20} makes twenty expressions of one, for those that take no longer than what varies from run to run.
-- {name} stands for that filter in memory, {name::type} for its cast; n: rows to run it on
CREATE FUNCTION pg_temp.ns_of(expression text, n int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	began float8;
BEGIN
	IF expression LIKE '%{1..20}' THEN
		expression := (SELECT string_agg(replace(expression, '{1..20}', i::text), ', ') FROM generate_series(1, 20) i);
	END IF;
	expression := regexp_replace(expression, '\{(\w+)([^}]*)\}', '(SELECT bloom_union_agg(f)\2 FROM filters WHERE name = ''\1'')', 'g');
	began := pg_temp.cpu_ns();
	EXECUTE format('SELECT %s FROM (SELECT * FROM rows LIMIT %s) r OFFSET 100000000', expression, n);
	RETURN pg_temp.cpu_ns() - began;
END $$;

CREATE TEMP TABLE cases (id serial, subject text, expression text, base text, n int);
INSERT INTO cases (subject, expression, base, n) VALUES
	('unit', 'a < {1..20}', 'a', 1000000),
	('unit', 'a + {1..20}', 'a', 1000000),
	('unit', 'a = {1..20}', 'a', 1000000),
	('built-in', 'hashint8extended(a, 0)', 'a', 1000000),
	('built-in', 'u = ''https://example.org/42''', 'u', 1000000),
	('built-in', 'length(u)', 'u', 1000000),
	('built-in', 'hashtextextended(u, 0)', 'u', 1000000),
	('built-in', 'u LIKE ''%/42''', 'u', 1000000),
	('built-in', 'md5(u)', 'u', 1000000),
	('bloom_contains, bigint, 8 keys', 'bloom_contains({b8}, a)', 'a', 1000000),
	('bloom_contains, bigint, 12 kB', 'bloom_contains({b10k}, a)', 'a', 1000000),
	('bloom_contains, bigint, 1.2 MB', 'bloom_contains({b1m}, a)', 'a', 1000000),
	('the same, none contained', 'bloom_contains({b1m}, a + 1000000)', 'a + 1', 1000000),
	('bloom_contains, bigint, 125 MB', 'bloom_contains({b100m}, a)', 'a', 1000000),
	('the same, none contained', 'bloom_contains({b100m}, a + 100000000)', 'a + 1', 1000000),
	('bloom_contains, text, 1.2 MB', 'bloom_contains({t1m}, u)', 'u', 1000000),
	('bloom_contains, short filter column', 'bloom_contains(small, a)', 'small', 1000000),
	('bloom_contains_hash, 1.2 MB', 'bloom_contains_hash({b1m}, hashint8extended(a, 0))', 'hashint8extended(a, 0)', 1000000),
	('bloom_contains_any, 10 keys', 'bloom_contains_any({b8}, b)', 'b', 1000000),
	('bloom_contains_all, 10 keys', 'bloom_contains_all({b10k}, b)', 'b', 1000000),
	('bloom_contains_each, 10 keys', 'bloom_contains_each({b10k}, b)', 'b', 1000000),
	('bloom_new_keys, 10 keys', 'bloom_new_keys({b8}, b)', 'b', 200000),
	('bloom_hash, bigint', 'bloom_hash(a)', 'a', 1000000),
	('bloom_hash, text', 'bloom_hash(u)', 'u', 1000000),
	('bloom_shard, bigint', 'bloom_shard(a, 16)', 'a', 1000000),
	('bloom_empty', 'bloom_empty(0.01, a)', 'a', 200000),
	('bloom_add, 8 keys', 'bloom_add(small, a)', 'small', 200000),
	('bloom_add, 12 kB', 'bloom_add({b10k}, a + 10000)', 'a + 1', 100000),
	('bloom_add_hash, 12 kB', 'bloom_add_hash({b10k}, a)', 'a', 100000),
	('bloom_try_add, 12 kB', 'bloom_try_add({b10k}, a + 10000)', 'a + 1', 100000),
	('bloom_agg, bigint', 'bloom_agg(a)', 'count(a)', 1000000),
	('bloom_agg, bigint, sized', 'bloom_agg(a, 0.01, 1000000)', 'count(a)', 1000000),
	('bloom_agg, text, sized', 'bloom_agg(u, 0.01, 1000000)', 'count(u)', 1000000),
	('a group of 10 keys', '(SELECT bloom_agg(k) FROM unnest(b) k)', '(SELECT count(k) FROM unnest(b) k)', 100000),
	('bloom_union_agg, 8 keys', 'bloom_union_agg(small)', 'count(small)', 100000),
	('bloom_union_agg, 12 kB', 'bloom_union_agg(CASE WHEN a % 2 = 0 THEN {b10k} ELSE {c10k} END)', 'count(a % 2 = 0)', 20000),
	('bloom_intersection_agg, 12 kB', 'bloom_intersection_agg(CASE WHEN a % 2 = 0 THEN {b10k} ELSE {c10k} END)', 'count(a % 2 = 0)', 20000),
	('bloom_add_all, 10 keys, 8 keys', 'bloom_add_all(small, b)', 'b', 200000),
	('bloom_add_all, 10 keys, 12 kB', 'bloom_add_all({c10k}, b)', 'b', 20000),
	('bloom_union, 8 keys', 'bloom_union(small, {b8})', 'small', 200000),
	('bloom_union, 12 kB', 'bloom_union({b10k}, {c10k})', '1', 20000),
	('bloom_intersection, 12 kB', 'bloom_intersection({b10k}, {c10k})', '1', 20000),
	('bloom_intersection_cardinality, 12 kB', 'bloom_intersection_cardinality({b10k}, {c10k})', '1', 20000),
	('bloom_compact, 12 kB', 'bloom_compact({c10k})', '1', 20000),
	('bloom_eq, 8 keys', 'bloom_eq(small, {b8})', 'small', 1000000),
	('bloom_eq, 12 kB', 'bloom_eq({b10k}, {b10k})', '1', 200000),
	('hash_bloom, 8 keys', 'hash_bloom(small)', 'small', 1000000),
	('hash_bloom, 12 kB', 'hash_bloom({b10k})', '1', 200000),
	('bloom_cardinality, 8 keys', 'bloom_cardinality(small)', 'small', 1000000),
	('bloom_cardinality, 12 kB', 'bloom_cardinality({b10k})', '1', 1000000),
	('bloom_fpp, 12 kB', 'bloom_fpp({b10k})', '1', 100000),
	('bloom_info, 12 kB', 'bloom_info({b10k})', '1', 100000),
	('bloom_sizing', 'bloom_sizing(0.01, a)', 'a', 200000),
	('bloom_out, 12 kB', 'bloom_out({b10k})', '1', 20000),
	('bloom_in, 12 kB', '({b10k::text} || CASE WHEN a < 0 THEN ''x'' ELSE '''' END)::bloom', '{b10k::text} || CASE WHEN a < 0 THEN ''x'' ELSE '''' END', 20000),
	('bloom_send, 12 kB', 'bloom_send({b10k})', '1', 200000),
	('bloom_to_bytea, 12 kB', 'bloom_to_bytea({b10k})', '1', 200000),
	('bloom_from_bytea, 12 kB', 'bloom_from_bytea({b10k::bytea})', '1', 20000);
CREATE TEMP TABLE times AS
SELECT id, round, (pg_temp.ns_of(expression, n) - pg_temp.ns_of(expression, 1)
	- pg_temp.ns_of(base, n) + pg_temp.ns_of(base, 1)) / n / CASE WHEN subject = 'unit' THEN 20 ELSE 1 END AS ns
  FROM generate_series(1, 5) round, LATERAL (SELECT * FROM cases WHERE round > 0 ORDER BY id) c;
CREATE TEMP TABLE medians AS
SELECT id, subject, percentile_cont(0.5) WITHIN GROUP (ORDER BY ns) AS ns
  FROM times JOIN cases USING (id) GROUP BY id, subject;
SELECT CASE WHEN subject IN ('unit', 'built-in') THEN expression ELSE subject END AS "function",
	round(ns::numeric, 1) AS ns,
	round((ns / (SELECT avg(ns) FROM medians WHERE subject = 'unit'))::numeric, 1) AS "COST"
  FROM medians JOIN cases USING (id, subject) ORDER BY id;
