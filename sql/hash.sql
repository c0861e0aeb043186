--
-- Hashes as keys, and shards
--

-- A key and its hash have the same result.
SELECT bloom_contains_hash(bloom_add(bloom_empty(seed => s), k), bloom_hash(k, s)) AS probe,
	bloom_contains(bloom_add_hash(bloom_empty(seed => s), bloom_hash(k, s)), k) AS add,
	bloom_contains_hash(bloom_add(bloom_empty(seed => s), k), bloom_hash(k, s + 1)) AS other_seed
  FROM (VALUES (0, 'a'::text), (42, 'b'), (-1, '')) x (s, k);
SELECT bloom_hash('a') = bloom_hash('a'::varchar) AS literal, bloom_hash(5::int2) = bloom_hash(5::int8) AS widths,
	bloom_hash(1.0) = bloom_hash(1.00) AS numerics, bloom_hash(5) <> bloom_hash(5, 1) AS seeds,
	bloom_hash(NULL::text) IS NULL AS null;
-- The value of another type's hash function is hashed like a number.
SELECT s AS seed, bloom_hash(j, s) = bloom_hash(jsonb_hash_extended(j, s), s) AS jsonb,
	bloom_hash(a, s) = bloom_hash(hash_array_extended(a, s), s) AS array
  FROM (VALUES (0), (42), (-1)) x (s), (VALUES (jsonb '{"a": 1}', ARRAY[1, 2])) y (j, a);
-- values that have to stay what they are
SELECT bloom_hash(''), bloom_hash('bloom'), bloom_hash(1), bloom_hash(-1), bloom_hash(1, 1);

-- A filter of hashes gets the key type of the first key with a key type.
SELECT (bloom_info(f)).key_type, bloom_cardinality(f), f @> 1, f @> 'x'
  FROM bloom_add_hash(bloom_empty(), bloom_hash(1)) f;
SELECT (bloom_info(bloom_add(f, 1))).key_type, bloom_cardinality(bloom_add(f, 1))
  FROM bloom_add_hash(bloom_empty(), bloom_hash(1)) f;
SELECT bloom_add(f, 'x'::text) | bloom_add(f, 2)
  FROM bloom_add_hash(bloom_empty(), bloom_hash(1)) f;
-- Dense ones, too
SELECT count(*) AS keys, count(*) FILTER (WHERE f @> i) AS by_key,
	count(*) FILTER (WHERE bloom_contains_hash(f, bloom_hash(i))) AS by_hash
  FROM generate_series(1, 1000) i,
	(SELECT bloom_agg(i) AS f FROM generate_series(1, 1000) i) x;
SELECT bloom_contains_hash(NULL, 1) IS NULL AS null;

-- Shards: equal keys agree.
SELECT bloom_shard(5::int2, 64) = bloom_shard(5::int8, 64) AS widths,
	bloom_shard('a', 64) = bloom_shard('a'::char(3), 64) AS texts,
	bloom_shard(7, 1) AS only, bloom_shard(NULL::int, 5) IS NULL AS null,
	bloom_shard(1, 2147483647) BETWEEN 0 AND 2147483646 AS most;
-- values that have to stay what they are
SELECT array_agg(bloom_shard(i, 100)) FROM generate_series(1, 10) i;

SELECT bloom_shard(1, 0);
SELECT bloom_shard(1, -5);
SELECT bloom_hash('1'::json);

-- The aggregate of hashes is that of the keys, except that its key type is unset.
CREATE TABLE hashed AS SELECT i AS k, 'key ' || i AS t FROM generate_series(1, 3000) i;
INSERT INTO hashed VALUES (NULL, NULL);
SELECT (bloom_info(h)).key_type IS NULL AS open, h | bloom_empty(key_type => 'int') = f AS integers, h | f = f AS united
FROM (SELECT bloom_agg_hash(bloom_hash(k)) AS h, bloom_agg(k) AS f FROM hashed) x;
SELECT bloom_agg_hash(bloom_hash(t), 0.001) | bloom_empty(0.001, key_type => 'text') = bloom_agg(t, 0.001) AS fpp,
  bloom_agg_hash(bloom_hash(t), 0.001, 5000) | bloom_empty(0.001, 5000, 0, 'text') = bloom_agg(t, 0.001, 5000) AS sized,
  bloom_agg_hash(bloom_hash(t, 7), 0.01, NULL, 7) | bloom_empty(seed => 7, key_type => 'text') = bloom_agg(t, 0.01, NULL, 7) AS seed
FROM hashed;
SELECT bloom_agg_hash(NULL) = bloom_empty() AS no_key, bloom_agg_hash(bloom_hash(k)) FILTER (WHERE k < 0) = bloom_empty() AS no_row FROM hashed;
-- of another type
SELECT (h | bloom_empty(key_type => 'text')) @> 5 FROM (SELECT bloom_agg_hash(bloom_hash(k)) AS h FROM hashed) x;
-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT bloom_agg_hash(bloom_hash(k), 0.01, 3000) = (SELECT bloom_agg_hash(bloom_hash(k), 0.01, 3000 ORDER BY k) FROM hashed) AS parallel
FROM hashed;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SELECT bloom_agg_hash(k, 0.1 / k) FROM hashed WHERE k < 5;
DROP TABLE hashed;
