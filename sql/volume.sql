--
-- VOLUME
-- A million keys of each of five types: none is lost, with any function that
-- adds keys, and the false-positive rate is the requested one.  Other tests
-- with millions of keys are here, too, so that they can be skipped on slow
-- servers.
--

CREATE UNLOGGED TABLE volume AS
  SELECT n, 'https://example.org/items/' || n AS t, n * 7919::bigint AS b, lpad(to_hex(n), 32, '0')::uuid AS u, n * 0.025 AS x,
    to_timestamp(946684800 + n * 61.5::float8) AS z
  FROM generate_series(1, 1000000) n;
ANALYZE volume;
SELECT count(*) AS keys, count(DISTINCT b) AS distinct_keys FROM volume;

-- By aggregate
SET max_parallel_workers_per_gather = 0;
CREATE TABLE serial AS
  SELECT bloom_agg(t, 0.01, 1000000) AS t, bloom_agg(b, 0.01, 1000000) AS b, bloom_agg(u, 0.01, 1000000) AS u,
    bloom_agg(x, 0.01, 1000000) AS x, bloom_agg(z, 0.01, 1000000) AS z FROM volume;
CREATE TABLE self_sized AS
  SELECT bloom_agg(t) AS t, bloom_agg(b) AS b, bloom_agg(u) AS u, bloom_agg(x) AS x, bloom_agg(z) AS z FROM volume;
-- a union of one filter is that filter, here in memory
SELECT count(*) AS tested,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(t) FROM serial) @> t) AS lost_text,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(b) FROM serial) @> b) AS lost_bigint,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(u) FROM serial) @> u) AS lost_uuid,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(x) FROM serial) @> x) AS lost_numeric,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(z) FROM serial) @> z) AS lost_timestamptz
FROM volume;
SELECT count(*) AS tested,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(t) FROM self_sized) @> t) AS lost_text,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(b) FROM self_sized) @> b) AS lost_bigint,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(u) FROM self_sized) @> u) AS lost_uuid,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(x) FROM self_sized) @> x) AS lost_numeric,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(z) FROM self_sized) @> z) AS lost_timestamptz
FROM volume;

-- By parallel aggregate: the same bytes
RESET max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT bloom_agg(t, 0.01, 1000000), bloom_agg(b, 0.01, 1000000) FROM volume;
SELECT p.t::bytea = s.t::bytea AS text, p.b::bytea = s.b::bytea AS bigint, p.u::bytea = s.u::bytea AS uuid,
  p.x::bytea = s.x::bytea AS numeric, p.z::bytea = s.z::bytea AS timestamptz
FROM serial s, (SELECT bloom_agg(t, 0.01, 1000000) AS t, bloom_agg(b, 0.01, 1000000) AS b, bloom_agg(u, 0.01, 1000000) AS u,
  bloom_agg(x, 0.01, 1000000) AS x, bloom_agg(z, 0.01, 1000000) AS z FROM volume) p;
SELECT p.t::bytea = s.t::bytea AS text, p.b::bytea = s.b::bytea AS bigint, p.u::bytea = s.u::bytea AS uuid,
  p.x::bytea = s.x::bytea AS numeric, p.z::bytea = s.z::bytea AS timestamptz
FROM self_sized s, (SELECT bloom_agg(t) AS t, bloom_agg(b) AS b, bloom_agg(u) AS u, bloom_agg(x) AS x, bloom_agg(z) AS z FROM volume) p;
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- By union of parts: again the same
CREATE TABLE parts AS
  SELECT n % 4 AS part, bloom_agg(t, 0.01, 1000000) AS t, bloom_agg(b, 0.01, 1000000) AS b, bloom_agg(u, 0.01, 1000000) AS u,
    bloom_agg(x, 0.01, 1000000) AS x, bloom_agg(z, 0.01, 1000000) AS z FROM volume GROUP BY n % 4;
SELECT p.t::bytea = s.t::bytea AS text, p.b::bytea = s.b::bytea AS bigint, p.u::bytea = s.u::bytea AS uuid,
  p.x::bytea = s.x::bytea AS numeric, p.z::bytea = s.z::bytea AS timestamptz
FROM serial s, (SELECT bloom_union_agg(t) AS t, bloom_union_agg(b) AS b, bloom_union_agg(u) AS u, bloom_union_agg(x) AS x,
  bloom_union_agg(z) AS z FROM parts) p;
SELECT ((p0.t | p1.t) | (p2.t | p3.t))::bytea = s.t::bytea AS operator
FROM serial s, parts p0, parts p1, parts p2, parts p3 WHERE (p0.part, p1.part, p2.part, p3.part) = (0, 1, 2, 3);

-- By bloom_add, key by key: into 1,000 filters of 1,000 keys
SELECT bloom_empty(0.01, 1000) AS empty \gset
CREATE AGGREGATE add_all(anyelement) (SFUNC = bloom_add, STYPE = bloom, INITCOND = :'empty');
CREATE TABLE added AS
  SELECT (n - 1) / 1000 AS part, add_all(t) AS t, add_all(b) AS b, add_all(u) AS u, add_all(x) AS x, add_all(z) AS z FROM volume GROUP BY (n - 1) / 1000;
SELECT count(*) AS filters, bool_and((bloom_info(t)).form = 'dense' AND (bloom_info(z)).form = 'dense') AS dense FROM added;
SET work_mem = '64MB';
WITH filters AS MATERIALIZED (SELECT part, t | t AS t, b | b AS b, u | u AS u, x | x AS x, z | z AS z FROM added)
SELECT count(*) AS tested, count(*) FILTER (WHERE NOT a.t @> v.t) AS lost_text, count(*) FILTER (WHERE NOT a.b @> v.b) AS lost_bigint,
  count(*) FILTER (WHERE NOT a.u @> v.u) AS lost_uuid, count(*) FILTER (WHERE NOT a.x @> v.x) AS lost_numeric,
  count(*) FILTER (WHERE NOT a.z @> v.z) AS lost_timestamptz
FROM volume v JOIN filters a ON (v.n - 1) / 1000 = a.part;
RESET work_mem;
-- the aggregate of a part has the same result
SELECT count(*) AS parts, bool_and(a.t::bytea = g.t::bytea AND a.b::bytea = g.b::bytea) AS equal
FROM added a JOIN (SELECT (n - 1) / 1000 AS part, bloom_agg(t, 0.01, 1000) AS t, bloom_agg(b, 0.01, 1000) AS b FROM volume
  WHERE n <= 100000 GROUP BY (n - 1) / 1000) g USING (part);
DROP AGGREGATE add_all(anyelement);

-- A filter of more than 4 MB, which is probed in huge pages if the system has
-- them: read into them when it is stored, moved there between two probes when
-- it is in memory.
CREATE TABLE large AS SELECT bloom_agg(b, 0.01, 4000000) AS f FROM volume;
SELECT count(*) AS tested, count(*) FILTER (WHERE NOT (SELECT f FROM large) @> b) AS lost_stored,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(f) FROM large) @> b) AS lost,
  count(*) FILTER (WHERE (SELECT f FROM large) @> -b) < 1000 AS few_others_stored,
  count(*) FILTER (WHERE (SELECT bloom_union_agg(f) FROM large) @> -b) < 1000 AS few_others
FROM volume;
SELECT bytes > 4 * 1024 * 1024 AS large, layers FROM large, bloom_info(f);
DROP TABLE volume, serial, self_sized, parts, added, large;

--
-- The rate: false positives are at most 1.1 times as many as requested plus
-- three standard deviations, and not much fewer, which would be a waste of
-- bits.
--
CREATE FUNCTION hits(p float8, n int, expected bigint, probes int) RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM generate_series(-probes, -1) k
  WHERE (SELECT bloom_agg(k, p, expected) FROM generate_series(1, n) k) @> k
$$;
SELECT p, n, expected, probes, hits <= 1.1 * p * probes + 3 * sqrt(1.1 * p * probes) AS not_above,
  hits >= 0.8 * p * probes - 3 * sqrt(p * probes) AS not_far_below
FROM (VALUES (0.1, 1000, 1000, 100000), (0.1, 100000, NULL, 100000), (0.01, 1000, NULL, 200000), (0.01, 100000, 100000, 200000),
  (0.01, 1000000, 1000000, 1000000), (0.001, 100000, NULL, 1000000), (0.001, 1000000, 1000000, 1000000),
  (1e-4, 100000, 100000, 2000000)) v(p, n, expected, probes), hits(p, n, expected, probes);
-- few keys are stored as hashes
SELECT p, hits(p, 10, expected, 100000) FROM (VALUES (0.1, 10), (0.01, NULL), (0.001, 10)) v(p, expected);
-- ten times as many keys as expected: at most 2.2 times the rate
SET client_min_messages = error;
SELECT p, n, expected, probes, hits <= 2.2 * p * probes AS not_above
FROM (VALUES (0.1, 10000, 1000, 100000), (0.01, 10000, 1000, 200000), (0.01, 1000000, 100000, 500000),
  (0.001, 100000, 10000, 1000000)) v(p, n, expected, probes), hits(p, n, expected, probes);
RESET client_min_messages;
DROP FUNCTION hits;

--
-- One million keys: size, estimates and the reported rate for every requested
-- rate, with and without expected.  A standard filter takes -ln p / (ln 2)^2
-- bits per key, and ours, including the header, at most 1.06 times as many.
--
CREATE TABLE made AS
  SELECT bloom_agg(k, 0.1, 1000000) AS p1, bloom_agg(k, 0.01, 1000000) AS p2, bloom_agg(k, 0.001, 1000000) AS p3,
    bloom_agg(k, 1e-4, 1000000) AS p4, bloom_agg(k, 1e-5, 1000000) AS p5, bloom_agg(k, 1e-6, 1000000) AS p6,
    bloom_agg(k, 1e-7, 1000000) AS p7, bloom_agg(k) AS s2, bloom_agg(k, 1e-5) AS s5, count(*) AS n
  FROM generate_series(1, 1000000) k;
SELECT p, expected, layers, octet_length(f::bytea) * 8 <= 1.06 * n * -ln(p) / ln(2) ^ 2 AS size,
  octet_length(f::bytea) * 8 >= 0.99 * n * -ln(p) / ln(2) ^ 2 AS not_below_the_standard,
  abs(bloom_cardinality(f) - n) <= 0.01 * n AS cardinality,
  bloom_fpp(f) <= 1.05 * p AS rate, bloom_fpp(f) >= 0.9 * p AS not_wasteful, over_capacity
FROM made, LATERAL (VALUES (0.1, p1), (0.01, p2), (0.001, p3), (1e-4, p4), (1e-5, p5), (1e-6, p6), (1e-7, p7), (0.01, s2), (1e-5, s5)) v(p, f),
  bloom_info(f);
DROP TABLE made;

--
-- Two sets of a million keys with a tenth in common, within 5 %
--
SELECT n, abs(n - 100000) <= 5000 AS close
  FROM (SELECT bloom_intersection_cardinality(
			(SELECT bloom_agg(i, 0.001, 1000000) FROM generate_series(1, 1000000) i),
			(SELECT bloom_agg(i, 0.001, 1000000) FROM generate_series(900001, 1900000) i)) AS n) x;

--
-- A million keys in one call have the same result as the aggregate.
--
SELECT bloom_add_all(bloom_empty(0.01, 1000000), array_agg(i)) =
	bloom_agg(i, 0.01, 1000000) AS same
  FROM generate_series(1, 1000000) i;

--
-- All shards are used evenly. The sum of the squared deviations follows
-- chi-square with 63 degrees of freedom, which exceeds 118 once in 10^5.
--
SELECT pattern, sum(n) AS keys, count(*) AS shards, sum((n - 15625) ^ 2 / 15625) < 118 AS even
  FROM (SELECT 'sequential' AS pattern, bloom_shard(i, 64), count(*) AS n
		  FROM generate_series(1, 1000000) i GROUP BY 2
		UNION ALL
		SELECT 'text', bloom_shard('https://example.org/' || i, 64), count(*)
		  FROM generate_series(1, 1000000) i GROUP BY 2) x
 GROUP BY pattern ORDER BY pattern;
-- In the filter of one shard, the rate is as in any other: 200,000 probes at
-- 0.01 have a standard deviation of 45, and ten filters of 10,000 keys vary
-- by themselves.
SELECT count(*) AS probes, count(*) FILTER (WHERE f @> i) BETWEEN 1700 AND 2250 AS as_requested
  FROM (SELECT bloom_agg(i, 0.01, 10000) AS f
		  FROM (SELECT i FROM generate_series(1, 200000) i WHERE bloom_shard(i, 16) = 3 LIMIT 10000) x) x,
	(SELECT i FROM generate_series(1000000, 5000000) i WHERE bloom_shard(i, 16) = 3 LIMIT 200000) y;

-- Keys that were chosen for pages at even distances do not make an index grow: it looks at others.
CREATE TABLE sampled (id bigint);
CREATE INDEX sampled_id ON sampled USING bloomfilter (id) WITH (fpp = 1e-9, expected = 1000000);
INSERT INTO sampled VALUES (0);
INSERT INTO sampled
SELECT i FROM (SELECT (pages - 1)::int AS pages, bits / block_bits AS blocks, 8152 * 8 / block_bits AS page_blocks FROM bloom_index_info('sampled_id')) x,
  generate_series(1::bigint, 1300000) i,
  LATERAL (SELECT floor((bloom_hash(i) / 2 ^ 64 + CASE WHEN bloom_hash(i) < 0 THEN 1 ELSE 0 END) * blocks)::int / page_blocks AS page) p
WHERE page = ceil(page * 256.0 / pages)::int * pages / 256;
SELECT count(*) > 300000 AS keys, (SELECT layers FROM bloom_index_info('sampled_id')) AS layers FROM sampled;
DROP TABLE sampled;
