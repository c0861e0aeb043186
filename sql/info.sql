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
