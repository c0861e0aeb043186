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

-- A filter of more than 4 MB, which is built, and read when it is stored, in
-- huge pages if the system has them.
CREATE TABLE large AS SELECT bloom_agg(b, 0.01, 4000000) AS f FROM volume;
SELECT count(*) AS tested, count(*) FILTER (WHERE NOT (SELECT f FROM large) @> b) AS lost_stored,
  count(*) FILTER (WHERE NOT (SELECT bloom_union_agg(f) FROM large) @> b) AS lost,
  count(*) FILTER (WHERE (SELECT f FROM large) @> -b) < 1000 AS few_others_stored,
  count(*) FILTER (WHERE (SELECT bloom_union_agg(f) FROM large) @> -b) < 1000 AS few_others
FROM volume;
SELECT bytes > 4 * 1024 * 1024 AS large, layers FROM large, bloom_info(f);
DROP TABLE volume, serial, self_sized, parts, added, large;

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
-- The text of the largest filter is the longest; 32 bits of address space are too few.
SELECT version() !~ '64-bit' OR (WITH zeros AS MATERIALIZED (SELECT decode(repeat('00', 268435456), 'hex') AS z), largest AS MATERIALIZED (
	SELECT (decode('424c4d460101010000000000000000000100000000000000000000007b14ae47e17a843f000000000000000000008000090600000084d717000000007b14ae47e17a843f0000000000000000', 'hex')
		|| z || z)::bloom AS f FROM zeros)
  SELECT (bloom_info(f)).bits = 2::numeric ^ 32 AND length(f::text) = 715827984 FROM largest) AS written;

--
-- GROUP
-- A million small filters at the same time, with the default memory settings
-- of PostgreSQL.
--

-- Group g has the keys 5g to 5g + 4; rows of a group are far apart.
SET work_mem = '4MB';
SELECT count(*) AS groups, sum(bloom_cardinality(f)) AS keys, bool_and(octet_length(f::bytea) = 44 + 5 * 8) AS size,
  count(*) FILTER (WHERE NOT (f @> (5 * g) AND f @> (5 * g + 1) AND f @> (5 * g + 2) AND f @> (5 * g + 3) AND f @> (5 * g + 4))) AS lost,
  count(*) FILTER (WHERE f @> (5 * g - 1) OR f @> (5 * g + 5)) AS wrong
FROM (SELECT k % 1000000 AS g, bloom_agg(5 * (k % 1000000) + k / 1000000) AS f
      FROM generate_series(0, 4999999) k GROUP BY k % 1000000) groups;
RESET work_mem;
