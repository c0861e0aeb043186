--
-- CONTAINS_EACH
-- bloom_contains_each returns a result for each key of an array.
--

CREATE TABLE filters (form text PRIMARY KEY, f bloom NOT NULL);
INSERT INTO filters VALUES
	('empty', bloom_empty()),
	('sparse', bloom_add_all(bloom_empty(), ARRAY[1, 2, 3])),
	('dense', (SELECT bloom_agg(i, 1e-6, 2000) FROM generate_series(1, 2000) i)),
	('stored', (SELECT bloom_agg(i, 1e-6, 100000) FROM generate_series(1, 100000) i)),
	('stored list', (SELECT bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 100000) i)),
	('layers', (SELECT bloom_add_all(bloom_empty(1e-6, 5000), array_agg(i)) FROM generate_series(1, 60000) i));
SELECT filters.form, layers, bytes > 14000 AS large FROM filters, bloom_info(f) ORDER BY filters.form;

-- One result per key, in order; NULL for NULL
SELECT form, bloom_contains_each(f, ARRAY[3, -1, NULL, 1, 3, -2]) FROM filters ORDER BY form;

-- The results of bloom_contains, for any number of keys
SELECT form, n, bool_and(answers IS NOT DISTINCT FROM (SELECT array_agg(f @> k ORDER BY o) FROM unnest(keys) WITH ORDINALITY u (k, o))) AS same,
	count(*)
  FROM filters,
	(SELECT n, array_agg(CASE WHEN i % 7 > 0 THEN i * 7919 % 100003 - 50 * (i % 3) END ORDER BY i) AS keys
	   FROM (VALUES (1), (2), (9), (100), (5000)) v (n), generate_series(1, n) i GROUP BY n) k,
	bloom_contains_each(f, keys) answers
 GROUP BY form, n ORDER BY form, n;

-- Dimensions and lower bounds are those of the keys.
SELECT bloom_contains_each(f, ARRAY[[1, 9001], [NULL, 2]]) AS nested, bloom_contains_each(f, '[5:6]={1,9001}'::int[]) AS bounds,
	bloom_contains_each(f, '[-1:0][2:2]={{9001},{3}}'::int[]) AS both, bloom_contains_each(f, '{}'::int[]) AS empty,
	bloom_contains_each(f, ARRAY[NULL, NULL]::int[]) AS nulls, bloom_contains_each(f, ARRAY[[[NULL]]]::int[]) AS one_null,
	bloom_contains_each(f, ARRAY[1, 2]::bigint[]) AS widths, array_dims(bloom_contains_each(f, ARRAY[[1], [2]])) AS dims
  FROM filters WHERE form = 'sparse';
SELECT bloom_contains_each(bloom_add(bloom_empty(), 'a'), ARRAY['a', 'b', NULL]) AS texts,
	bloom_contains_each(bloom_add(bloom_empty(), 1.0), ARRAY[1.00, 2]) AS numerics;
-- The null bitmap has 8 elements per byte.
SELECT answers = array_agg(CASE WHEN i % 3 > 0 THEN i <= 3 END ORDER BY i) AS same, cardinality(answers)
  FROM filters, generate_series(1, 41) i,
	bloom_contains_each(f, (SELECT array_agg(CASE WHEN i % 3 > 0 THEN i END ORDER BY i) FROM generate_series(1, 41) i)) answers
 WHERE form = 'sparse' GROUP BY answers;

-- As a join: the new keys of a batch
SELECT key FROM filters, ROWS FROM (unnest('{5,1,7}'::int[]), unnest(bloom_contains_each(f, '{5,1,7}'::int[]))) AS u (key, known)
 WHERE form = 'sparse' AND NOT known;

-- NULL for NULL
SELECT bloom_contains_each(NULL, ARRAY[1]) IS NULL AS filter, bloom_contains_each(f, NULL::int[]) IS NULL AS keys
  FROM filters WHERE form = 'sparse';

-- An expanded filter of PL/pgSQL
DO $$
DECLARE
	f bloom := bloom_empty();
BEGIN
	f := bloom_add(f, 1);
	f := bloom_add(f, 2);
	RAISE INFO '%', bloom_contains_each(f, ARRAY[2, 3, 1]);
END $$;

-- Errors
SELECT bloom_contains_each(f, ARRAY['a'::text]) FROM filters WHERE form = 'stored';
SELECT bloom_contains_each(bloom_empty(), ARRAY['1'::json]);

DROP TABLE filters;
