--
-- Intersection
--
\pset format unaligned
\pset tuples_only

-- Every common key is found, for all forms that can be intersected.
CREATE TABLE forms (form text, a bloom, b bloom);
INSERT INTO forms
SELECT 'sparse, sparse', bloom_add_all(bloom_empty(), a), bloom_add_all(bloom_empty(), b)
  FROM (SELECT array_agg(i) AS a FROM generate_series(1, 600) i) a,
	(SELECT array_agg(i) AS b FROM generate_series(401, 1000) i) b;
INSERT INTO forms
SELECT 'sized', bloom_agg(i, 0.001, 1000) FILTER (WHERE i <= 600),
	bloom_agg(i, 0.001, 1000) FILTER (WHERE i > 400)
  FROM generate_series(1, 1000) i;
INSERT INTO forms
SELECT 'sparse, sized', s.a, d.b FROM forms s, forms d
 WHERE s.form = 'sparse, sparse' AND d.form = 'sized';
INSERT INTO forms
SELECT 'sparse, layers', s.a, bloom_add_all(bloom_empty(0.001, 100), array_agg(i))
  FROM forms s, generate_series(401, 1000) i
 WHERE s.form = 'sparse, sparse' GROUP BY s.a;
SELECT form, (bloom_info(a)).layers AS layers_a, (bloom_info(b)).layers AS layers_b,
	(SELECT count(*) FROM generate_series(401, 600) i WHERE NOT (SELECT a & b) @> i) AS lost,
	(SELECT count(*) FROM generate_series(401, 600) i WHERE NOT (SELECT bloom_intersection(b, a)) @> i) AS lost_too,
	(SELECT count(*) < 50 FROM generate_series(1, 400) i WHERE (SELECT a & b) @> i) AS only_in_a_out,
	(SELECT count(*) < 50 FROM generate_series(601, 1000) i WHERE (SELECT a & b) @> i) AS only_in_b_out,
	(SELECT count(*) < 50 FROM generate_series(1001, 2000) i WHERE (SELECT a & b) @> i) AS others_out,
	(a & b) = (b & a) AS commutative,
	(a & a) = a AS idempotent,
	bloom_intersection_cardinality(a, b) BETWEEN 190 AND 210 AS estimate
  FROM forms ORDER BY form COLLATE "C";
SELECT form, bloom_intersection_cardinality(a, b) AS exact FROM forms WHERE form = 'sparse, sparse';

-- The aggregate agrees with the operator, in all plans.
SELECT bloom_intersection_agg(f) = (SELECT a & b FROM forms WHERE form = 'sized') AS same
  FROM (SELECT a AS f FROM forms WHERE form = 'sized'
		UNION ALL SELECT b FROM forms WHERE form = 'sized'
		UNION ALL SELECT NULL) filters;
SELECT bloom_intersection_agg(f) IS NULL AS none FROM (SELECT NULL::bloom) x (f);
CREATE TABLE parts AS
SELECT g, bloom_agg(i, 0.01, 2000) AS f
  FROM generate_series(1, 40) g, generate_series(1, 1000) i
 WHERE i >= g GROUP BY g;
ALTER TABLE parts SET (parallel_workers = 2);
ANALYZE parts;
CREATE TABLE serial AS SELECT bloom_intersection_agg(f) AS f FROM parts;
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT bloom_intersection_agg(f) FROM parts;
CREATE TABLE parallel AS SELECT bloom_intersection_agg(f) AS f FROM parts;
COMMIT;
SELECT s.f = p.f AS same, (SELECT count(*) FROM generate_series(40, 1000) i WHERE NOT s.f @> i) AS lost
  FROM serial s, parallel p;
-- Partition by partition, with any distribution over workers
CREATE TABLE spread (LIKE parts) PARTITION BY HASH (g);
CREATE TABLE spread_0 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE spread_1 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO spread SELECT * FROM parts;
ANALYZE spread;
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_partitionwise_aggregate = on;
SET LOCAL cpu_tuple_cost = 1;
DO $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) SELECT bloom_intersection_agg(f) FROM spread' INTO plan;
  RAISE INFO '%', plan -> 0 -> 'Plan' ->> 'Partial Mode';
END
$$;
CREATE TABLE partitionwise AS SELECT bloom_intersection_agg(f) AS f FROM spread;
COMMIT;
SELECT s.f = p.f AS same FROM serial s, partitionwise p;

-- nothing in common, everything in common
SELECT bloom_intersection_cardinality(a, c) BETWEEN 0 AND 30 AS nothing,
	bloom_intersection_cardinality(a, a) = bloom_cardinality(a) AS everything
  FROM (SELECT bloom_agg(i, 0.001, 10000) AS a, bloom_agg(-i, 0.001, 10000) AS c
		  FROM generate_series(1, 10000) i) x;

-- With an empty filter, whatever its seed, size and form, the result is empty.
SELECT bloom_cardinality(e & a) + bloom_cardinality(a & e) + bloom_intersection_cardinality(e, a) AS common,
	(e & a) = (a & e) AS commutative, (bloom_info(e & a)).seed,
	(SELECT bloom_cardinality(bloom_intersection_agg(f)) FROM (VALUES (a), (e), (NULL), (a)) v (f)) AS agg
  FROM forms,
	(VALUES (bloom_empty()), (bloom_empty(0.001, 1000)), (bloom_empty(seed => 5)), (bloom_empty(1e-6, 5000, 7))) v (e)
 WHERE form IN ('sized', 'sparse, sparse');
SELECT bloom_cardinality(bloom_agg(u, 0.01, 100, 7) FILTER (WHERE u < 50)
		& bloom_agg(u, 0.01, 100, 7) FILTER (WHERE u > 99)) AS common
  FROM generate_series(1, 99) u;
SELECT (bloom_info(bloom_empty(seed => 1) & bloom_empty(seed => 2))).cardinality AS both_empty;
SELECT bloom_empty(key_type => 'text') & a FROM forms WHERE form = 'sized';

-- NULL is no set; the aggregate ignores it.
SELECT NULL & a IS NULL AS null_left, a & NULL IS NULL AS null_right,
	bloom_intersection_cardinality(a, NULL) IS NULL AS no_number
  FROM forms WHERE form = 'sized';

-- Sizes that divide: 8 and 24 blocks.  One side's keys pass at the other's rate.
CREATE TABLE sizes AS
SELECT bloom_agg(i, 0.01, 368) FILTER (WHERE i <= 360) AS a, bloom_agg(i, 0.01, 1155) FILTER (WHERE i > 260) AS b
  FROM generate_series(1, 1360) i;
SELECT (bloom_info(a)).bits / 512 AS a, (bloom_info(b)).bits / 512 AS b, (bloom_info(a & b)).bits / 512 AS both,
	(a & b) = (b & a) AS commutative, bloom_intersection_cardinality(a, b) BETWEEN 80 AND 120 AS about_100,
	bloom_intersection_cardinality(a, b) = bloom_intersection_cardinality(b, a) AS same,
	(SELECT count(*) FROM generate_series(261, 360) i WHERE NOT (SELECT a & b) @> i) AS lost,
	(SELECT count(*) < 15 FROM generate_series(1, 260) i WHERE (SELECT a & b) @> i) AS only_in_a_out,
	(SELECT count(*) < 30 FROM generate_series(361, 1360) i WHERE (SELECT a & b) @> i) AS only_in_b_out
  FROM sizes;
DROP TABLE sizes;

-- Errors: layer parameters, number of layers, key types, seeds
SELECT bloom_agg(i, 0.01, 1000) & bloom_agg(i, 0.01, 2500) FROM generate_series(1, 1000) i;
SELECT bloom_intersection_cardinality(bloom_agg(i, 0.01, 1000), bloom_agg(i, 0.02, 1000))
  FROM generate_series(1, 1000) i;
SELECT b & b FROM forms WHERE form = 'sparse, layers';
SELECT bloom_agg(i) & bloom_agg(i::text) FROM generate_series(1, 10) i;
SELECT bloom_intersection_cardinality(bloom_agg(i), bloom_agg(i::text)) FROM generate_series(1, 10) i;
SELECT bloom_agg(i, 0.01, NULL, 1) & bloom_agg(i, 0.01, NULL, 2) FROM generate_series(1, 10) i;

-- The rate of an intersection is that of a key of one side: of bits, and of
-- hashes that were looked up in bits, also after keys were added.
CREATE TABLE sides AS
SELECT bloom_agg(i, 0.01, 10000) FILTER (WHERE i <= 10000) AS a,
	bloom_agg(i, 0.01, 10000) FILTER (WHERE i > 10000) AS b,
	bloom_agg(i) FILTER (WHERE i BETWEEN 15001 AND 19000) AS c,
	bloom_add_all(bloom_empty(), array_agg(i) FILTER (WHERE i > 15000)) AS list
  FROM generate_series(1, 20000) i;
SELECT form, round(bloom_fpp(f)::numeric, 4) AS told,
	(SELECT count(*) FROM generate_series(1, 20000) i WHERE f @> i) / 10000.0 < 0.026 AS kept,
	bloom_fpp(bloom_add_all(f, ARRAY(SELECT generate_series(100001, 101000)))) >= bloom_fpp(f) AS grows,
	bloom_fpp(f | bloom_empty()) = bloom_fpp(f) AS neutral, bloom_fpp(f::text::bloom) = bloom_fpp(f) AS text,
	bloom_fpp(bloom_compact(f)) <= 0.0201 AS compact, bloom_cardinality(f) < 4000 AS bound
  FROM (SELECT 'bits' AS form, a & b AS f FROM sides
		UNION ALL SELECT 'bits and hashes', a & list FROM sides
		UNION ALL SELECT 'hashes and bits', list & a FROM sides
		UNION ALL SELECT 'three', a & b & list FROM sides
		UNION ALL SELECT 'hashes', list & bloom_agg(i) FROM sides, generate_series(1, 200) i GROUP BY list
		UNION ALL SELECT 'with itself', a & a FROM sides) x ORDER BY form COLLATE "C";

-- Common keys of several filters, of like and unlike sizes, and with hashes
SELECT bloom_intersection_cardinality(a, b) < 200 AS none, bloom_intersection_cardinality(a) BETWEEN 9800 AND 10200 AS one,
	bloom_intersection_cardinality(b, list) BETWEEN 4950 AND 5050 AS listed,
	bloom_intersection_cardinality(b, c) BETWEEN 3900 AND 4100 AS unlike,
	bloom_intersection_cardinality(b, c, list) BETWEEN 3950 AND 4050 AS three,
	bloom_intersection_cardinality(a, b, c, list) < 40 AS four,
	bloom_intersection_cardinality(a, bloom_empty(seed => 5)) AS empty,
	bloom_intersection_cardinality(a, NULL) IS NULL AS null,
	bloom_difference_cardinality(b, c) BETWEEN 5850 AND 6150 AS difference,
	bloom_difference_cardinality(list, b) < 40 AS all_there,
	bloom_difference_cardinality(list, a) BETWEEN 4960 AND 5000 AS none_there,
	bloom_difference_cardinality(a, bloom_empty(0.1, seed => 5)) = bloom_cardinality(a) AS all,
	bloom_difference_cardinality(bloom_empty(), a) AS nothing
  FROM sides;
WITH s AS MATERIALIZED (SELECT bloom_agg(i, 0.01, 100000) FILTER (WHERE i <= 100000) a,
	bloom_agg(i, 0.01, 100000) FILTER (WHERE i BETWEEN 50001 AND 150000) b,
	bloom_agg(i, 0.01, 100000) FILTER (WHERE i BETWEEN 80001 AND 180000) c,
	bloom_agg(i, 0.01, 100000) FILTER (WHERE i BETWEEN 100001 AND 200000) d FROM generate_series(1, 200000) i)
SELECT bloom_intersection_cardinality(a, b, c) BETWEEN 20000 - 5400 AND 20000 + 5400 AS "20000",
	bloom_intersection_cardinality(a, b, d) < 2000 AS "0"
  FROM s;
SELECT bloom_intersection_cardinality(bloom_agg(u) FILTER (WHERE u <= 5000), bloom_agg(u)) BETWEEN 4900 AND 5000 AS "5000"
  FROM generate_series(1, 5501) u;
SELECT bloom_intersection_cardinality(a & b, c) FROM sides;
SELECT bloom_difference_cardinality(a & list, c) FROM sides;
SELECT bloom_intersection_cardinality(VARIADIC array_fill(a, ARRAY[9])) FROM sides;
SELECT bloom_intersection_cardinality(VARIADIC '{}');
SELECT bloom_intersection_cardinality(a, bloom_agg(i, 0.001, 10000)) FROM sides, generate_series(1, 10000) i GROUP BY a;
DROP TABLE sides;

DROP TABLE forms, parts, serial, parallel, spread, partitionwise;

-- the rates of lists that were looked up in a filter add up
SELECT bloom_fpp(bloom_union_agg(list & filter)) > 0.02 AS told
  FROM (SELECT bloom_agg(i) FILTER (WHERE i <= 100), bloom_agg(i, 0.01, 10000) FROM generate_series(1, 10000) i) x (list, filter),
	generate_series(1, 3);

-- keys that are added to an intersection, or united with it, leave the rate of its operands' keys below twice that asked for
SELECT name, bloom_fpp(f) < 0.02 AS told, (bloom_contains_count(f, ARRAY(SELECT generate_series(1, 10000)))).contained < 200 AS measured,
	(bloom_info(f)).layers
  FROM (SELECT bloom_agg(i, 0.01, 10000) FILTER (WHERE i <= 10000) & bloom_agg(i, 0.01, 10000) FILTER (WHERE i > 10000)
		  FROM generate_series(1, 20000) i) x (both_have),
	LATERAL (VALUES ('add', bloom_add_all(both_have, ARRAY(SELECT generate_series(30001, 36000)))),
		('union', both_have | (SELECT bloom_agg(i, 0.01, 10000) FROM generate_series(30001, 36000) i))) y (name, f);
-- united with the filter that it is a part of, it is told no fuller than the fuller operand
SELECT bloom_fpp(a | (a & b)) < 1.1 * bloom_fpp(a) AS told, length(bloom_add(a | (a & b), -1)::bytea) = length((a | (a & b))::bytea) AS room
  FROM (SELECT bloom_agg(i, 0.01, 10000) FILTER (WHERE i <= 5000), bloom_agg(i, 0.01, 10000) FILTER (WHERE i > 15000)
		  FROM generate_series(1, 20000) i) x (a, b);
