--
-- ARRAY_HASH
-- Keys as elements of arrays, and hashes as keys
--
\pset format unaligned
\pset tuples_only

-- All elements are added, whatever the form of the array.
CREATE VIEW forms AS
SELECT * FROM (VALUES
	('sparse', bloom_empty()),
	('sized', bloom_empty(0.001, 1000)),
	('dense', (SELECT bloom_agg(i) FROM generate_series(1001, 2000) i))) f (form, filter);
SELECT form,
	bloom_contains_all(bloom_add_all(filter, ARRAY[1, 2, 3]), ARRAY[3, 2, 1]) AS plain,
	bloom_contains_all(bloom_add_all(filter, ARRAY[[1, 2], [3, NULL]]), ARRAY[1, 2, 3]) AS nested,
	bloom_contains_all(bloom_add_all(filter, '[5:6]={1,2}'::int[]), ARRAY[1, 2]) AS bounds,
	bloom_contains_all(bloom_add_all(filter, ARRAY[1, 2]::bigint[]), ARRAY[1, 2]::smallint[]) AS widths
  FROM forms;

-- One call has the same result as adding the elements one by one.
SELECT form, bloom_add_all(filter, ARRAY[7, NULL, 8, 7]) =
	bloom_add(bloom_add(filter, 7), 8) AS same
  FROM forms;

-- Nothing to add: the filter is unchanged, and no key type is recorded.
SELECT form, bloom_add_all(filter, '{}'::int[]) = filter AS empty,
	bloom_add_all(filter, ARRAY[NULL, NULL]::int[]) = filter AS nulls
  FROM forms;

-- Empty arrays and null elements
SELECT bloom_contains_any(f, '{}'::int[]) AS any_of_none,
	bloom_contains_all(f, '{}'::int[]) AS all_of_none,
	bloom_contains_any(f, ARRAY[NULL]::int[]) AS any_null,
	bloom_contains_all(f, ARRAY[NULL]::int[]) AS all_null,
	bloom_contains_any(f, ARRAY[NULL, 9, 2]) AS any_hit,
	bloom_contains_any(f, ARRAY[NULL, 9, 8]) AS any_miss,
	bloom_contains_all(f, ARRAY[NULL, 1, 2]) AS all_hit,
	bloom_contains_all(f, ARRAY[NULL, 1, 9]) AS all_miss
  FROM bloom_add_all(bloom_empty(), ARRAY[1, 2, 3]) f;
SELECT bloom_contains_any(bloom_empty(), NULL::int[]) IS NULL AS any_nulls,
	bloom_contains_all(NULL, ARRAY[1]) IS NULL AS all_null,
	bloom_new_keys(NULL, ARRAY[1]) IS NULL AS new_null;

-- By-reference elements: text long enough to be compressed, numeric, uuid
SELECT bool_and(f @> t) AS found, count(*)
  FROM (SELECT bloom_add_all(bloom_empty(), array_agg(repeat('x', i * 100))) AS f
		  FROM generate_series(1, 100) i) a,
	(SELECT repeat('x', i * 100) AS t FROM generate_series(1, 100) i) b;
SELECT bloom_contains_all(bloom_add_all(bloom_empty(), ARRAY[1.0, 2.50]), ARRAY[1.000, 2.5]) AS numerics;

-- New keys are returned once each, in order.
SELECT bloom_new_keys(f, ARRAY[5, 1, 4, 5, NULL, 2, 4, 6]) AS new,
	bloom_new_keys(f, ARRAY[1, 2, 3]) AS nothing_new,
	bloom_new_keys(f, '{}'::int[]) AS of_none,
	pg_typeof(bloom_new_keys(f, ARRAY[5]::bigint[])) AS type
  FROM bloom_add_all(bloom_empty(), ARRAY[1, 2, 3]) f;
SELECT bloom_new_keys(bloom_add(bloom_empty(), 'a'::text), ARRAY['a', 'b', 'b', 'c']);
SELECT bloom_contains_each(f, ARRAY['x', '{a}', '{b}']::bloom_keys[]) AS of_arrays, bloom_contains_each(f, ARRAY['x', 'a']::bloom_key[]) AS of_keys
  FROM bloom_add_all(bloom_empty(), ARRAY['x', '{a}']) f;
-- Keys without a type are compared as what they are read as.
SELECT bloom_new_keys(bloom_empty(key_type => 'int'), '{5,05,+5,6}') AS int,
	bloom_new_keys(bloom_empty(key_type => 'numeric'), '{1.0,1.00,2}') AS numeric,
	bloom_new_keys(bloom_empty(key_type => 'jsonb'), '{"{\"a\": 1}","{\"a\":1}",1}') AS jsonb,
	bloom_new_keys(bloom_empty(), '{5,05,5}') AS text;

-- The loop of a crawler: only certainly new keys are counted, each once.
SELECT count(*) AS rounds, sum(cardinality(new)) >= 970 AS most, sum(cardinality(new)) <= 1000 AS none_twice
  FROM (SELECT bloom_new_keys(f, keys) AS new
		  FROM (SELECT r, array_agg(i) AS keys,
					(SELECT bloom_agg(j) FROM generate_series(1, (r - 1) * 100) j) AS f
				  FROM generate_series(1, 10) r,
					generate_series(greatest((r - 2) * 100, 1), r * 100) i
				 WHERE r > 1 GROUP BY r) batches
		UNION ALL
		SELECT array_agg(i) FROM generate_series(1, 100) i) rounds;

-- Errors
SELECT bloom_add_all(bloom_add(bloom_empty(), 1), ARRAY['a'::text]);
SELECT bloom_contains_any(bloom_add(bloom_empty(), 1), ARRAY['a'::text]);
SELECT bloom_new_keys(bloom_add(bloom_empty(), 1), ARRAY['a'::text]);
-- Types whose values are arrays, but not empty ones
SELECT bloom_new_keys(f, '1 2'::int2vector) FROM bloom_add_all(NULL, '1 2'::int2vector) f;
SELECT bloom_new_keys(f, '1 2'::oidvector::oid[]) FROM bloom_add_all(NULL, '1 2'::oidvector) f;
SELECT bloom_add_all(bloom_empty(), ARRAY['1'::json]);

DROP VIEW forms;

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
SELECT s AS seed, bloom_hash(r, s) = bloom_hash(hash_range_extended(r, s), s) AS range,
	bloom_hash(m, s) = bloom_hash(hash_multirange_extended(m, s), s) AS multirange
  FROM (VALUES (0), (42), (-1)) x (s), (VALUES (int4range(1, 5), '{[1,5),[7,8)}'::int4multirange)) y (r, m);
-- values that have to stay what they are
SELECT bloom_hash(''), bloom_hash('bloom'), bloom_hash(1), bloom_hash(-1), bloom_hash(1, 1);
SELECT to_hex(bloom_hash('{}'::text[])) AS empty, to_hex(bloom_hash('{1,NULL}'::int[])) AS numbers,
	to_hex(bloom_hash('{a,"b "}'::text[], 42)) AS texts, to_hex(bloom_hash(jsonb '1.0')) AS scalar,
	to_hex(bloom_hash(jsonb '{"b": [true, null], "a": "x"}', 42)) AS object;
SELECT to_hex(bloom_hash(ARRAY(SELECT generate_series(1, n)))) AS array, to_hex(bloom_hash(jsonb_agg(i))) AS jsonb
  FROM unnest('{14,15,16,29,30,31,1000}'::int[]) n, generate_series(1, n) i GROUP BY n ORDER BY n;

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
