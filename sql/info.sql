--
-- INFO
-- The reported properties of a filter, compared with independent values.
--

-- All properties of an empty filter, a sparse and a dense one.  The numbers
-- for 2,000 keys at 0.01 follow from doc/FORMAT.md.
\pset null '(null)'
\x on
SELECT * FROM bloom_info(bloom_empty());
SELECT * FROM bloom_info(bloom_empty(0.001, 5000, -42));
SELECT i.* FROM (SELECT bloom_agg('key ' || k, 0.05, 100, 3) AS f FROM generate_series(1, 3) k) s, bloom_info(f) i;
SELECT key_type, form, i.fpp, expected, seed, layers, bits, hashes, block_bits, bits_set, round(fill::numeric, 3) AS fill,
  cardinality, round(current_fpp::numeric, 4) AS current_fpp, bytes, over_capacity
FROM (SELECT bloom_agg(k, 0.01, 2000) AS f FROM generate_series(1, 2000) k) d, bloom_info(f) i;
\x off

-- bloom_info agrees with each accessor, bits_set with the bits, and bytes with
-- the size of the value.
CREATE TABLE filters (n int, f bloom);
INSERT INTO filters VALUES (0, bloom_empty()), (0, bloom_empty(0.5, 1));
INSERT INTO filters SELECT n, bloom_agg(k, fpp, expected)
  FROM (VALUES (1, 0.01, NULL), (12, 0.01, 100), (100, 0.01, 100), (100, 0.5, 100), (1000, 1e-9, 1000), (1000, 0.1, NULL),
    (5000, 1e-5, 200000), (2000, 0.001, 2000)) v(n, fpp, expected), generate_series(1, n) k GROUP BY n, fpp, expected;
SET client_min_messages = error;
INSERT INTO filters SELECT 5000, bloom_agg(k, 0.01, 100) FROM generate_series(1, 5000) k;
RESET client_min_messages;
SELECT count(*) AS filters,
  bool_and(i.cardinality = bloom_cardinality(f)) AS cardinality,
  bool_and(i.current_fpp = bloom_fpp(f)) AS current_fpp,
  bool_and(i.bytes = octet_length(f::bytea) + 4) AS bytes,
  bool_and(i.layers > 0 OR i.bytes = 48 + 8 * n) AS sparse_bytes,
  bool_and(i.layers = 0 OR i.bytes = 48 + 32 * layers + bits / 8) AS dense_bytes,
  bool_and(i.layers = 0 OR bits_set = (SELECT sum(length(replace(get_byte(image, b)::bit(8)::text, '0', '')))
    FROM (SELECT f::bytea || '' AS image OFFSET 0) in_memory, generate_series(44 + 32 * layers, octet_length(image) - 1) b)) AS bits_set,
  bool_and(fill IS NOT DISTINCT FROM bits_set::float8 / bits) AS fill,
  bool_and(bits % block_bits = 0) AS blocks,
  bool_and((form = 'sparse') = (layers = 0) AND (form = 'sparse') = (bits IS NULL)) AS form,
  bool_and(over_capacity = (layers > 1)) AS over_capacity
FROM filters, bloom_info(f) i;
DROP TABLE filters;

--
-- Cardinality: exact while sparse, also with duplicates
--
SELECT n, bloom_cardinality(f) AS cardinality, (bloom_info(f)).form
FROM unnest('{0,1,2,10,1000,20000}'::int[]) n,
  LATERAL (SELECT bloom_add_all(bloom_empty(), COALESCE(array_agg(k % n), '{}')) AS f FROM generate_series(1, 3 * n) k) f;
SELECT n, bloom_cardinality(f) AS cardinality, (bloom_info(f)).form
FROM unnest('{1,2,10,1000,20000}'::int[]) n,
  LATERAL (SELECT bloom_agg(k % n, 0.01, 1000000) AS f FROM generate_series(1, 3 * n) k) f;
-- an estimate within 1 % for many keys
SELECT n, p, abs(bloom_cardinality(f) - n) <= 0.01 * n AS within_one_percent, (bloom_info(f)).form
FROM (VALUES (20000, 0.1), (20000, 0.01), (20000, 1e-6), (100000, 0.01)) v(n, p),
  LATERAL (SELECT bloom_agg(k, p) AS f FROM generate_series(1, n) k) f;
-- and for several layers
SET client_min_messages = error;
SELECT bloom_cardinality(f) BETWEEN 47500 AND 52500 AS within_five_percent, (bloom_info(f)).layers
FROM (SELECT bloom_agg(k, 0.01, 1000) AS f FROM generate_series(1, 50000) k) f;
RESET client_min_messages;

-- The current rate: 0 when empty, increasing with each key, the requested one
-- with the expected keys, and at most twice that with any number of keys.
SELECT bloom_fpp(bloom_empty()) AS empty, bloom_fpp(bloom_empty(0.1, 1000)) AS empty_sized,
  bloom_fpp(bloom_add(bloom_empty(0.1, 1000), 1)) BETWEEN 1e-20 AND 1e-19 AS one_hash;
SET client_min_messages = error;
SELECT p, bool_and(fpp > last) AS rising, bool_and(fpp <= 1.1 * p) FILTER (WHERE n <= 1000) AS within,
  bool_and(fpp <= 2 * p) AS at_most_twice, max(layers) > 1 AS grown
FROM (SELECT p, n, bloom_fpp(f) AS fpp, lag(bloom_fpp(f), 1, 0::float8) OVER (PARTITION BY p ORDER BY n) AS last, (bloom_info(f)).layers
      FROM (SELECT p, n, bloom_agg(k, p, 1000) AS f
            FROM unnest('{0.1,0.001,1e-5}'::float8[]) p, unnest('{1,10,100,250,500,750,1000,2000,4000,10000}'::int[]) n,
              generate_series(1, n) k GROUP BY p, n) f) f
GROUP BY p ORDER BY p;
RESET client_min_messages;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA sizing;
SET search_path = sizing, public;
--
-- bloom_sizing and bloom_compact
--

-- The result of bloom_sizing is the size of a filter.
SELECT p, n, s.bits = i.bits AS bits, s.bytes = i.bytes AS bytes, s.hashes = i.hashes AS hashes,
	s.block_bits = i.block_bits AS block_bits, s.filters
  FROM (SELECT p, n, (SELECT bloom_agg(i, p, n) FROM generate_series(1, n) i) AS f
		  FROM (VALUES (0.1), (0.01), (0.0001), (1e-7)) p (p), (VALUES (1000), (100000)) n (n)) x,
	bloom_sizing(p, n) s, bloom_info(f) i
 ORDER BY n, p;
SELECT fpp, round((s.bits / n / (-ln(fpp) / ln(2) ^ 2))::numeric, 2) AS over_real_standard,
	s.standard_hashes, round(s.standard_bits / n, 2) AS standard, round(s.bits_per_key::numeric, 2) AS bits_per_key
  FROM (VALUES (0.1), (0.01), (0.001), (0.0001), (1e-5), (1e-6), (1e-7)) p (fpp), (VALUES (1000000.0)) n (n),
	bloom_sizing(fpp, n::bigint) s;
-- Several filters: ten billion URLs at 0.0001 in less than 26 GB
SELECT filters, bytes < 26e9 AS fits FROM bloom_sizing(0.0001, 10000000000);
SELECT bloom_sizing(NULL, 1) IS NULL AS null, filters FROM bloom_sizing(0.01, 430000000);
SELECT bloom_sizing(0, 1);
SELECT bloom_sizing(0.01, 0);
SELECT bloom_sizing(0.01, 1000000000000001);

-- A list of hashes without expected becomes the filter that bloom_agg builds.
SELECT (bloom_info(f)).form, (bloom_info(bloom_compact(f))).form AS compact,
	bloom_compact(f) = (SELECT bloom_agg(i) FROM generate_series(1, 1000) i) AS same
  FROM (SELECT bloom_add_all(bloom_empty(), array_agg(i)) AS f FROM generate_series(1, 1000) i) x;
-- An oversized filter becomes the one that is built with the smaller size, and
-- keeps its keys and its rate.
CREATE TABLE oversized AS
SELECT n, f, bloom_compact(f) AS c
  FROM (SELECT n, (SELECT bloom_agg(i, 0.01, 655360) FROM generate_series(1, n) i) AS f
		  FROM (VALUES (20000), (163000)) v (n)) x;
SELECT n, (bloom_info(f)).form, length(c::bytea) * 8.0 / n < 12 AS small, (bloom_info(c)).expected >= n AS enough,
	c = (SELECT bloom_agg(i, 0.01, (SELECT (bloom_info(c)).expected)) FROM generate_series(1, n) i) AS as_built,
	(SELECT bloom_contains_all(c, array_agg(i)) FROM generate_series(1, n) i) AS all_found,
	bloom_fpp(c) <= 0.0101 AS rate, bloom_compact(c) = c AS done
  FROM oversized ORDER BY n;
DROP TABLE oversized;
-- Nothing to save
SELECT bloom_compact(f) = f AS same FROM (VALUES (bloom_empty()), (bloom_empty(0.01, 1000)),
	(bloom_add(bloom_empty(), 1)), ((SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 990) i)),
	((SELECT bloom_agg(i) FROM generate_series(1, 990) i))) v (f);
SELECT bloom_compact(NULL) IS NULL AS null;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA equality;
SET search_path = equality, public;
--
-- Equality of filters
--
CREATE TABLE filters (id int, f bloom);
INSERT INTO filters
SELECT g, bloom_agg(i) FROM generate_series(1, 6) g, generate_series(1, 1000) i
 WHERE i % 3 = g % 3 GROUP BY g;
INSERT INTO filters VALUES (7, bloom_empty()), (8, bloom_empty()), (9, bloom_empty(0.02)),
	(10, bloom_empty(seed => 1)), (11, NULL);

SELECT a.id, array_agg(b.id ORDER BY b.id) AS equal
  FROM filters a JOIN filters b ON a.f = b.f GROUP BY a.id ORDER BY a.id;
SELECT count(*) FROM filters a, filters b WHERE a.f <> b.f;
SELECT count(DISTINCT f::bytea) AS truth, (SELECT count(*) FROM (SELECT DISTINCT f FROM filters WHERE f IS NOT NULL) x) AS distinct
  FROM filters;
SELECT count(*) AS groups, max(n) AS largest FROM (SELECT f, count(*) AS n FROM filters GROUP BY f) x;
SELECT count(*) AS united FROM (SELECT f FROM filters UNION SELECT f FROM filters) x;
SELECT count(*) AS remaining FROM (SELECT f FROM filters EXCEPT SELECT f FROM filters WHERE id <= 3) x;

-- by a hash join, also of values stored out of line
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM filters a JOIN filters b ON a.f = b.f;
SELECT count(*) FROM filters a JOIN filters b ON a.f = b.f;
CREATE TABLE large AS
SELECT g, bloom_agg(i, 0.001) AS f FROM generate_series(1, 4) g, generate_series(1, 20000) i
 WHERE i % 2 = g % 2 GROUP BY g;
SELECT a.g, b.g FROM large a JOIN large b ON a.f = b.f ORDER BY 1, 2;
RESET enable_nestloop;
RESET enable_mergejoin;

-- The extended hash function with seed 0 is the other one in 64 bits.
SELECT bool_and(hash_bloom(f) = (hash_bloom_extended(f, 0) & 4294967295)::bit(32)::int) AS agree,
	count(DISTINCT hash_bloom(f)) AS values
  FROM filters WHERE f IS NOT NULL;

-- a hash index, and hash partitions
CREATE INDEX ON filters USING hash (f);
SET enable_seqscan = off;
SELECT id FROM filters WHERE f = (SELECT f FROM filters WHERE id = 2) ORDER BY id;
RESET enable_seqscan;
CREATE TABLE partitioned (f bloom) PARTITION BY HASH (f);
CREATE TABLE partitioned_0 PARTITION OF partitioned FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE partitioned_1 PARTITION OF partitioned FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO partitioned SELECT f FROM filters WHERE f IS NOT NULL;
SELECT count(*) FROM partitioned;

DROP TABLE filters, large, partitioned;
