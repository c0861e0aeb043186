--
-- One filter and an array of keys
--

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
