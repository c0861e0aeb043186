--
-- UNION
-- bloom_union, | and bloom_union_agg: no key is lost, no bit is wasted, and
-- the order does not matter.
--
\pset format unaligned
\pset tuples_only

-- Filters of the keys lo to hi, with all combinations of parameters.  Those
-- built by bloom_add_all without expected keep their hashes; those built by
-- bloom_agg without expected have the size they need.
CREATE TABLE filters (n serial, family text, lo int, hi int, f bloom);
\set ECHO none
CREATE FUNCTION keep(family text, lo int, hi int, fpp float8, expected bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO filters (family, lo, hi, f)
    SELECT family, lo, hi, COALESCE(bloom_agg(k, fpp, expected), bloom_empty(fpp, expected)) FROM generate_series(lo, hi) k
$$;
CREATE FUNCTION keep_hashes(family text, lo int, hi int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO filters (family, lo, hi, f)
    SELECT family, lo, hi, bloom_add_all(bloom_empty(), COALESCE(array_agg(k), '{}')) FROM generate_series(lo, hi) k
$$;
\set ECHO all
-- one size for all, which holds the union of them all: some sparse, some dense
SELECT count(keep('sized', lo, hi, 0.01, 1000))
FROM (VALUES (1, 0), (1, 40), (30, 120), (500, 500), (101, 400), (351, 650), (600, 1000)) v(lo, hi);
-- no size, as hashes
SELECT count(keep_hashes('hashes', lo, hi))
FROM (VALUES (1, 0), (1, 1), (1, 40), (30, 120), (500, 1000)) v(lo, hi);
-- no size, each as large as necessary
SELECT count(keep('self-sized', lo, hi, 0.01, NULL))
FROM (VALUES (1, 0), (1, 10), (1, 100), (90, 500), (1001, 2000), (1, 2000), (5001, 9000)) v(lo, hi);
-- various sizes and rates
SELECT count(keep('various', lo, hi, fpp, expected))
FROM (VALUES (1, 0, 0.5, 1), (1, 300, 0.01, 300), (1, 300, 0.001, 300), (200, 400, 0.001, 300), (1, 20, 1e-6, 100000),
  (300, 2000, 1e-6, 2000), (1, 900, 0.3, 900)) v(lo, hi, fpp, expected);
-- filters that have grown beyond the number expected
SET client_min_messages = error;
SELECT count(keep('grown', lo, hi, 0.01, expected)) FROM (VALUES (1, 1000, 20), (501, 2000, 100), (1, 300, 20)) v(lo, hi, expected);
RESET client_min_messages;
SELECT family, count(*) AS filters, count(*) FILTER (WHERE form = 'sparse') AS sparse,
  count(*) FILTER (WHERE layers = 1) AS one_layer, count(*) FILTER (WHERE layers > 1) AS more_layers
FROM filters, bloom_info(f) GROUP BY family ORDER BY min(n);

-- The keys that a filter should contain but does not; a stored filter is read
-- only once.
CREATE FUNCTION lost(f bloom, lo int, hi int) RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM (SELECT f::bytea::bloom AS g OFFSET 0) x, generate_series(lo, hi) k WHERE NOT g @> k
$$;

--
-- Every pair: no key is lost, in either order; the properties of the union
-- agree with those of its parts.
--
CREATE TABLE unions AS
  SELECT a.n, b.n AS m, a.family = b.family AS alike, a.f | b.f AS u, bloom_union(b.f, a.f) AS v, a.f AS a, b.f AS b,
    a.lo, a.hi, b.lo AS lo2, b.hi AS hi2
  FROM filters a, filters b;
SELECT count(*) AS unions,
  sum(lost(u, lo, hi) + lost(u, lo2, hi2)) AS lost, sum(GREATEST(hi - lo + 1, 0) + GREATEST(hi2 - lo2 + 1, 0)) AS keys,
  count(*) FILTER (WHERE u::bytea = v::bytea) AS commutative,
  count(*) FILTER (WHERE u::text::bloom::bytea = u::bytea) AS valid
FROM unions;
SELECT count(*) AS unions,
  bool_and(i.fpp = LEAST(a.fpp, b.fpp) OR bloom_empty() IN (unions.a, unions.b)) AS smaller_rate,
  bool_and(i.expected IS NOT DISTINCT FROM GREATEST(a.expected, b.expected)) AS larger_number,
  bool_and(i.key_type IS NOT DISTINCT FROM COALESCE(a.key_type, b.key_type)) AS type,
  bool_and(i.cardinality <= 1.05 * (a.cardinality + b.cardinality) + 2) AS at_most_both,
  bool_and(i.cardinality >= 0.95 * GREATEST(a.cardinality, b.cardinality) - 2) AS at_least_either,
  -- hashes can take a layer in addition to full ones, and two where few keys are expected
  max(i.layers - a.layers - b.layers) AS more_layers
FROM unions, bloom_info(u) i, bloom_info(unions.a) a, bloom_info(unions.b) b;
-- the rate is the sum of both, or within the requested one
SELECT count(*) AS unions,
  bool_and(bloom_fpp(u) <= GREATEST(1.02 * (bloom_fpp(a) + bloom_fpp(b)), 2 * (bloom_info(u)).fpp)) AS not_worse,
  bool_and(bloom_fpp(u) >= 0.9999 * GREATEST(bloom_fpp(a), bloom_fpp(b))) AS not_better
FROM unions WHERE (bloom_info(a)).form = 'dense' AND (bloom_info(b)).form = 'dense';
-- a layer next to a layer: the rates of absent keys add up
SELECT count(*) AS side_by_side, bool_and(abs(bloom_fpp(u) - (1 - (1 - bloom_fpp(a)) * (1 - bloom_fpp(b)))) < 1e-12) AS sum
FROM unions WHERE (bloom_info(u)).layers = (bloom_info(a)).layers + (bloom_info(b)).layers AND
  LEAST((bloom_info(a)).layers, (bloom_info(b)).layers) > 0;

-- With itself, a part of itself, an empty filter: the same bytes.
SELECT count(*) AS filters,
  count(*) FILTER (WHERE (f | f)::bytea = f::bytea) AS idempotent,
  count(*) FILTER (WHERE (f | (f | f))::bytea = f::bytea) AS again,
  count(*) FILTER (WHERE (f | bloom_empty((bloom_info(f)).fpp, (bloom_info(f)).expected))::bytea = f::bytea) AS with_nothing
FROM filters;
SELECT count(*) AS unions, count(*) FILTER (WHERE (u | a)::bytea = u::bytea AND (b | u)::bytea = u::bytea) AS absorb
FROM unions;

--
-- With equal parameters, a union within expected equals bloom_agg of all keys.
--
SELECT count(*) AS unions, count(*) FILTER (WHERE alike AND m > n) > 0 AS pairs,
  bool_and(u::bytea = (SELECT COALESCE(bloom_agg(k, 0.01, 1000), bloom_empty(0.01, 1000))::bytea
    FROM (SELECT generate_series(lo, hi) UNION ALL SELECT generate_series(lo2, hi2)) x(k))) AS equal_bloom_agg
FROM unions WHERE alike AND n <= 7;
SELECT family, count(*) AS triples, bool_and(((a.f | b.f) | c.f)::bytea = (a.f | (b.f | c.f))::bytea) AS associative,
  bool_and(((a.f | b.f) | c.f)::bytea = ((c.f | a.f) | b.f)::bytea) AS in_any_order
FROM filters a JOIN filters b USING (family) JOIN filters c USING (family)
WHERE family IN ('sized', 'hashes') GROUP BY family ORDER BY family DESC;
-- Other unions keep all keys, in any combination.
SELECT count(*) AS triples, sum(lost(u, a.lo, a.hi) + lost(u, b.lo, b.hi) + lost(u, c.lo, c.hi) +
    lost(v, a.lo, a.hi) + lost(v, b.lo, b.hi) + lost(v, c.lo, c.hi)) AS lost
FROM filters a, filters b, filters c, LATERAL (SELECT (a.f | b.f) | c.f AS u, a.f | (b.f | c.f) AS v OFFSET 0) x
WHERE a.n % 4 = 1 AND b.n % 4 = 2 AND c.n % 4 = 3;

-- More keys than one layer holds: there are several layers, and further keys
-- can be added.
SELECT (bloom_info(u)).layers, lost(u, 1, 3000) AS lost, bloom_fpp(u) < 0.02 AS rate,
  lost(bloom_add_all(u, ARRAY(SELECT generate_series(3001, 4000))), 1, 4000) AS lost_later
FROM (SELECT bloom_agg(k, 0.01, 1500) | (SELECT bloom_agg(k, 0.01, 1500) FROM generate_series(1501, 3000) k) AS u
      FROM generate_series(1, 1500) k) u;

--
-- bloom_union_agg is repeated |
--
SELECT family, count(*) AS filters, sum(lost(u, lo, hi) + lost(v, lo, hi)) AS lost
FROM filters JOIN (SELECT family, bloom_union_agg(f ORDER BY n) AS u, bloom_union_agg(f ORDER BY n DESC) AS v
  FROM filters GROUP BY family) a USING (family)
GROUP BY family ORDER BY min(n);
SELECT family, bloom_union_agg(f ORDER BY n)::bytea = bloom_union_agg(f ORDER BY n DESC)::bytea AS any_order,
  bloom_union_agg(f)::bytea = (SELECT bloom_union_agg(d)::bytea FROM (SELECT DISTINCT f FROM filters i, generate_series(1, 2)
    WHERE i.family = filters.family) x(d)) AS distinct
FROM filters WHERE family IN ('sized', 'hashes') GROUP BY family ORDER BY min(n);
CREATE AGGREGATE repeated(bloom) (SFUNC = bloom_union, STYPE = bloom);
SELECT family, bloom_union_agg(f)::bytea = repeated(f)::bytea AS equal FROM filters
WHERE family IN ('sized', 'hashes', 'self-sized', 'various') GROUP BY family ORDER BY min(n);
SELECT count(*) AS filters, bloom_union_agg(f)::bytea = (SELECT bloom_agg(k, 0.01, 1000)::bytea
  FROM generate_series(1, 1000) k WHERE k <= 650 OR k >= 600) AS equal_bloom_agg
FROM filters WHERE family = 'sized';
DROP AGGREGATE repeated(bloom);

-- NULL is skipped; no filters give an empty one; one filter gives that one.
SELECT bloom_union_agg(f) = bloom_empty() AS no_rows FROM filters WHERE false;
SELECT bloom_union_agg(NULL) = bloom_empty() AS nulls FROM filters;
SELECT bloom_union_agg(f)::bytea = bloom_union_agg(CASE WHEN i = 1 THEN f END)::bytea AS skipped
FROM filters, generate_series(1, 2) i WHERE family = 'sized';
SELECT count(*) AS filters, bool_and(same) AS same
FROM (SELECT bloom_union_agg(f)::bytea = min(f::text)::bloom::bytea AS same FROM filters GROUP BY n) one;
SELECT bloom_union_agg(f) FILTER (WHERE lo = 1 AND hi < 41)::bytea = (SELECT bloom_agg(k, 0.01, 1000)::bytea FROM generate_series(1, 40) k) AS filter
FROM filters WHERE family = 'sized';

-- Running and moving windows
SELECT count(*) AS frames, bool_and(running = (SELECT bloom_union_agg(f)::bytea FROM filters WHERE n <= w.n AND family = w.family)) AS running,
  bool_and(moving = (SELECT bloom_union_agg(f)::bytea FROM filters WHERE n BETWEEN w.n - 1 AND w.n AND family = w.family)) AS moving
FROM (SELECT n, family, bloom_union_agg(f) OVER (PARTITION BY family ORDER BY n)::bytea AS running,
        bloom_union_agg(f) OVER (PARTITION BY family ORDER BY n ROWS 1 PRECEDING)::bytea AS moving FROM filters) w;

-- In parallel
CREATE TABLE days AS
  SELECT d, bloom_agg(d * 100 + k, 0.01, 20000) AS f FROM generate_series(0, 199) d, generate_series(1, 100 - d % 2 * 99) k GROUP BY d;
ANALYZE days;
SELECT bloom_union_agg(f)::bytea AS serial FROM days \gset
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT bloom_union_agg(f) FROM days;
SELECT bloom_union_agg(f)::bytea = :'serial' AS parallel, (bloom_info(bloom_union_agg(f))).form FROM days;
SELECT bloom_union_agg(f)::bytea = (SELECT bloom_add_all(bloom_empty(0.01, 20000), ARRAY(SELECT d * 100 + 1 FROM generate_series(1, 199, 2) d))::bytea) AS sparse
FROM days WHERE d % 2 = 1;
SELECT bloom_union_agg(f) = bloom_empty() AS nothing FROM days WHERE d > 500;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;
DROP TABLE days;

-- Filters of filters: a union for each group
SELECT lo = 1 AS from_one, count(*) AS filters, bloom_union_agg(f) @> 1 AS has_one FROM filters
WHERE family = 'sized' GROUP BY lo = 1 ORDER BY lo = 1;

--
-- Filters that cannot be united
--
SELECT bloom_empty(seed => 1) | bloom_empty(seed => 2);
SELECT bloom_union(bloom_agg(k, 0.01, 100, 1), bloom_agg(k, 0.01, 100, -1)) FROM generate_series(1, 100) k;
SELECT bloom_union_agg(bloom_empty(seed => k)) FROM generate_series(1, 2) k;
SELECT bloom_agg(k) | bloom_agg(k::text) FROM generate_series(1, 3) k;
SELECT bloom_agg(k, 0.01, 100) | bloom_agg(k::float8, 0.01, 100) FROM generate_series(1, 100) k;
SELECT bloom_union_agg(f) FROM (SELECT bloom_agg('a'::text) UNION ALL SELECT bloom_agg('a'::bytea)) v(f);
-- an empty filter has no key type yet, but a seed
SELECT (bloom_info(bloom_empty() | bloom_agg('x'))).key_type;
SELECT bloom_empty(seed => 1) | bloom_agg('x');

-- 33 filters of which no two share a layer
CREATE TABLE many AS
  SELECT d, bloom_agg(d * 10000 + k) AS f FROM generate_series(1, 33) d, generate_series(1, 100 * d) k GROUP BY d;
SELECT (bloom_info(u)).layers, (bloom_info(u)).over_capacity, bloom_fpp(u) < 0.33 AS rate,
  (SELECT sum(lost(u, d * 10000 + 1, d * 10100)) FROM many WHERE d <= 32) AS lost
FROM (SELECT bloom_union_agg(f ORDER BY d) AS u FROM many WHERE d <= 32) u;
SELECT (bloom_info(u)).layers, (SELECT sum(lost(u, d * 10000 + 1, d * 10100)) FROM many) AS lost
FROM (SELECT bloom_union_agg(f) AS u FROM many OFFSET 0) u;
SELECT (bloom_info(u)).layers, (SELECT sum(lost(u, d * 10000 + 1, d * 10100)) FROM many) AS lost
FROM (SELECT (SELECT bloom_union_agg(f) FROM many WHERE d <= 32) | f AS u FROM many WHERE d = 33 OFFSET 0) u;
-- it takes further keys
SELECT (bloom_info(u)).layers, (SELECT sum(lost(u, d * 10000 + 1, d * 10100)) FROM many) AS lost, lost(u, 1, 2000) AS new_lost
FROM (SELECT bloom_add_all(bloom_union_agg(f), ARRAY(SELECT generate_series(1, 2000))) AS u FROM many OFFSET 0) u;
-- the workaround in the hint
SELECT (bloom_info(u)).layers FROM (SELECT bloom_union_agg(f) AS u
  FROM (SELECT bloom_agg(d * 10000 + k, 0.01, 60000) AS f FROM generate_series(1, 33) d, generate_series(1, 100 * d) k GROUP BY d) f) u;
-- 1,024 layers, and no more; the header of a stored one is read in two slices
CREATE TABLE most AS
  SELECT d, bloom_agg(d * 100 + k, 0.0001) AS f FROM generate_series(1, 1025) d, generate_series(1, 60) k GROUP BY d;
SET client_min_messages = error;
CREATE TABLE united AS SELECT bloom_union_agg(f) AS f FROM most WHERE d <= 1024;
RESET client_min_messages;
SELECT layers, bits / 8 + 44 + 32 * layers + 4 = bytes AS bytes, round(current_fpp::numeric, 2) AS fpp, round(cardinality, -3) AS keys,
  (SELECT count(*) FROM most, generate_series(1, 60) k WHERE d <= 1024 AND NOT f @> d * 100 + k) AS lost
  FROM united, bloom_info(f);
SELECT f @> 140 AS found, f | f = f AS idempotent, f::text::bloom = f AS text, f::bytea::bloom @> 102440 AS bytea FROM united;
SELECT octet_length((united.f | most.f)::bytea) FROM united, most WHERE d = 1025;
SELECT octet_length(bloom_union_agg(f)::bytea) FROM most;
DROP TABLE most, united;

-- A key of both sides counts once where layers have the same parameters.
SELECT bloom_cardinality(a | b) BETWEEN 1450 AND 1550 AS both, (bloom_info(a | b)).cardinality = bloom_cardinality(a | b) AS info
FROM (SELECT bloom_agg(i, 0.01, 1000) FILTER (WHERE i <= 1000), bloom_agg(i, 0.01, 1000) FILTER (WHERE i > 500)
  FROM generate_series(1, 1500) i) x (a, b);
-- Sets that grew are compared layer by layer, so this is an upper bound.
SET client_min_messages = error;
SELECT bloom_cardinality(f) BETWEEN 1600 AND 3300 AS bound
FROM (SELECT bloom_union_agg(part) AS f FROM generate_series(0, 9) s,
  LATERAL (SELECT bloom_agg(i, 0.01, 100) AS part FROM generate_series(1 + s, 1640 - s) i) x) y;
RESET client_min_messages;

--
-- bloom_empty() with default parameters is neutral: its union with any other
-- filter has the bytes of the other one, whatever its parameters.
--
CREATE TABLE others AS
  SELECT 'seed' AS what, bloom_agg(i, 0.01, NULL, 7) AS f FROM generate_series(1, 100) i
  UNION ALL SELECT 'larger fpp', bloom_agg(i, 0.3) FROM generate_series(1, 100) i
  UNION ALL SELECT 'expected', bloom_agg(i, 0.001, 5000) FROM generate_series(1, 5000) i
  UNION ALL SELECT 'text', bloom_agg(i::text) FROM generate_series(1, 10) i
  UNION ALL SELECT 'empty, with a seed', bloom_empty(seed => 42)
  UNION ALL SELECT 'empty, of a rate', bloom_empty(0.2)
  UNION ALL SELECT 'empty', bloom_empty();
SELECT what, bloom_empty() | f = f AS left, f | bloom_empty() = f AS right,
  (SELECT bloom_union_agg(g) FROM (VALUES (1, bloom_empty()), (2, f), (3, bloom_empty())) v (n, g)) = f AS aggregate,
  (SELECT bloom_union_agg(g) FROM (VALUES (1, f), (2, bloom_empty())) v (n, g)) = f AS first
FROM others;
-- the result of an aggregate over no rows does not change a filter
SELECT what, f | (SELECT bloom_agg(1, 0.5, 10) WHERE false) = f AS no_row FROM others;
-- an empty filter with other parameters is not neutral
SELECT bloom_agg(1) | bloom_empty(0.001) = bloom_agg(1) AS rate, bloom_agg(1) | bloom_empty(expected => 50) = bloom_agg(1) AS expected;
SELECT bloom_agg(1) | bloom_empty(seed => 42);
DROP TABLE others;

DROP TABLE filters, unions, many;
DROP FUNCTION keep, keep_hashes, lost;

-- Keys that are added to a union count, also those that it reports already.  It
-- takes its own ones at most once.
SET client_min_messages = error;
CREATE TABLE added AS
SELECT fpp, n * 200 AS had, f
  FROM (VALUES (0.1, 32), (0.5, 2), (0.01, 5)) v (fpp, n),
	LATERAL (SELECT bloom_union_agg(f) FROM (SELECT bloom_agg(i, fpp, 200) AS f
		  FROM generate_series(1, n * 200) i GROUP BY i % n) x) y (f);
RESET client_min_messages;
SELECT fpp, bloom_cardinality(bloom_add_all(f, keys)) / (had + 3000.0) BETWEEN 0.97 AND 1.1 AS array,
	bloom_cardinality(f | bloom_add_all(bloom_empty(), keys)) / (had + 3000.0) BETWEEN 0.97 AND 1.1 AS list,
	(bloom_info(again)).layers - (bloom_info(f)).layers AS layers, bloom_add_all(again, ARRAY(SELECT generate_series(1, had))) = again AS once
  FROM added, LATERAL (SELECT ARRAY(SELECT had + generate_series(1, 3000)), bloom_add_all(f, ARRAY(SELECT generate_series(1, had)))) x (keys, again)
 ORDER BY fpp;
DO $$
DECLARE
	g bloom := f FROM added WHERE fpp = 0.5;
BEGIN
	FOR i IN 401 .. 1400 LOOP
		g := bloom_add(g, i);
	END LOOP;
	RAISE INFO 'one by one: %', bloom_cardinality(g) BETWEEN 1350 AND 1500;
END $$;
DROP TABLE added;
SELECT bloom_cardinality(bloom_union_agg(f)) > 1100 AS sized_for_each,
	bloom_cardinality(bloom_union_agg(g)) BETWEEN 1050 AND 1150 AS sized_for_all
  FROM (SELECT bloom_agg(u) AS f, bloom_agg(u, 0.01, 2000) AS g
		  FROM generate_series(1, 30) d, generate_series(1, 800 + d * 10) u GROUP BY d) x;
