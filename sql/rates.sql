--
-- RATES
-- The rate is the requested one, and so are size, estimates, and what a filter reports of itself; also of one with more
-- keys than expected, in parallel plans and in unions.
--
\pset format unaligned
\pset tuples_only

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
  (0.001, 100000, NULL, 500000), (1e-4, 100000, 100000, 1000000)) v(p, n, expected, probes), hits(p, n, expected, probes);
-- few keys are stored as hashes
SELECT p, hits(p, 10, expected, 100000) FROM (VALUES (0.1, 10), (0.01, NULL), (0.001, 10)) v(p, expected);
-- ten times as many keys as expected: at most 2.2 times the rate
SET client_min_messages = error;
SELECT p, n, expected, probes, hits <= 2.2 * p * probes AS not_above
FROM (VALUES (0.1, 10000, 1000, 100000), (0.01, 10000, 1000, 200000), (0.001, 100000, 10000, 300000)) v(p, n, expected, probes), hits(p, n, expected, probes);
RESET client_min_messages;
DROP FUNCTION hits;

--
-- Size, estimates and the reported rate for every requested rate, with and
-- without expected.  A standard filter takes -ln p / (ln 2)^2 bits per key,
-- and ours, including the header, at most 1.06 times as many.
--
CREATE TABLE made AS
  SELECT bloom_agg(k, 0.1, 200000) AS p1, bloom_agg(k, 0.01, 200000) AS p2, bloom_agg(k, 0.001, 200000) AS p3,
    bloom_agg(k, 1e-4, 200000) AS p4, bloom_agg(k, 1e-5, 200000) AS p5, bloom_agg(k, 1e-6, 200000) AS p6,
    bloom_agg(k, 1e-7, 200000) AS p7, bloom_agg(k) AS s2, bloom_agg(k, 1e-5) AS s5, count(*) AS n
  FROM generate_series(1, 200000) k;
SELECT p, expected, layers, octet_length(f::bytea) * 8 <= 1.06 * n * -ln(p) / ln(2) ^ 2 AS size,
  octet_length(f::bytea) * 8 >= 0.99 * n * -ln(p) / ln(2) ^ 2 AS not_below_the_standard,
  abs(bloom_cardinality(f) - n) <= 0.01 * n AS cardinality,
  bloom_fpp(f) <= 1.05 * p AS rate, bloom_fpp(f) >= 0.9 * p AS not_wasteful, over_capacity
FROM made, LATERAL (VALUES (0.1, p1), (0.01, p2), (0.001, p3), (1e-4, p4), (1e-5, p5), (1e-6, p6), (1e-7, p7), (0.01, s2), (1e-5, s5)) v(p, f),
  bloom_info(f);
DROP TABLE made;

--
-- More keys than expected, and more layers than a filter can have
--
CREATE TABLE many_keys AS SELECT i AS k, i % 4 AS part FROM generate_series(1, 50000) i;
ANALYZE many_keys;

\set ECHO none
-- Keys that are not found, and the rate of those never added
CREATE FUNCTION lost(f bloom) RETURNS bigint LANGUAGE sql AS
  'SELECT count(*) FROM (SELECT $1 AS f OFFSET 0) x, many_keys WHERE NOT f @> k';
CREATE FUNCTION rate(f bloom) RETURNS float8 LANGUAGE sql AS
  'SELECT count(*) / 100000.0::float8 FROM (SELECT $1 AS f OFFSET 0) x, generate_series(-100000, -1) k WHERE f @> k';

-- The reported rate and number of keys
CREATE FUNCTION report(f bloom, requested float8, OUT lost bigint, OUT within_two boolean, OUT rate_is_told boolean,
  OUT keys_are_told boolean, OUT at_most_32_layers boolean) LANGUAGE sql AS $$
  SELECT lost(f), rate(f) <= 2.05 * requested, abs(rate(f) - bloom_fpp(f)) <= 0.05 * rate(f) + 0.001,
    abs(bloom_cardinality(f) - 50000) <= 2500, (bloom_info(f)).layers <= 32
$$;
\set ECHO all

SET client_min_messages = error;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE serial AS SELECT bloom_agg(k, 0.01, 10) AS tiny, bloom_agg(k, 0.01, 5000) AS tenth, bloom_agg(k, 0.3, 1000) AS lax,
  bloom_agg(k, 0.5, 1) AS least, bloom_agg(k, 0.01, 50000 ORDER BY k DESC) AS enough FROM many_keys;
SELECT r.* FROM serial, report(tiny, 0.01) r;
SELECT r.* FROM serial, report(tenth, 0.01) r;
SELECT r.* FROM serial, report(lax, 0.3) r;
SELECT r.* FROM serial, report(least, 0.5) r;

-- In parallel plans the rate is the same with any number of processes.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers = 8;
\set ECHO none
CREATE FUNCTION by_workers(workers int, fpp float8, expected float8) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
  f bloom;
  line text;
  planned text;
BEGIN
  EXECUTE format('ALTER TABLE many_keys SET (parallel_workers = %s)', workers);
  EXECUTE format('SET LOCAL max_parallel_workers_per_gather = %s', workers);
  FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT bloom_agg(k, %s, %s) FROM many_keys', fpp, expected) LOOP
    planned := coalesce(planned, substring(line FROM 'Workers Planned: (\d+)'));
  END LOOP;
  IF planned IS DISTINCT FROM workers::text THEN
    RAISE EXCEPTION 'planned % workers', planned;
  END IF;
  EXECUTE format('SELECT bloom_agg(k, %s, %s) FROM many_keys', fpp, expected) INTO f;
  RETURN f;
END
$$;
\set ECHO all
SELECT workers, r.* FROM unnest(ARRAY[1, 2, 8]) workers, by_workers(workers, 0.01, 10) f, report(f, 0.01) r;
SELECT workers, r.* FROM unnest(ARRAY[1, 2, 8]) workers, by_workers(workers, 0.01, 5000) f, report(f, 0.01) r;
SELECT workers, r.* FROM unnest(ARRAY[2, 8]) workers, by_workers(workers, 0.3, 1000) f, report(f, 0.3) r;
-- within capacity the bytes are the same
SELECT workers, by_workers(workers, 0.01, 50000) = enough AS same FROM serial, unnest(ARRAY[1, 2, 8]) workers;

-- Rows with different parameters are an error, also if each process sees rows
-- with the same parameters only.
CREATE TABLE halves (k int, p float8, n float8) PARTITION BY LIST (n);
CREATE TABLE halves_1 PARTITION OF halves FOR VALUES IN (1000);
CREATE TABLE halves_2 PARTITION OF halves FOR VALUES IN (2000);
INSERT INTO halves SELECT i, 0.1 / (1 + i % 2), 1000 * (1 + i % 2) FROM generate_series(1, 20000) i;
ANALYZE halves;
SET enable_partitionwise_aggregate = on;
SET max_parallel_workers_per_gather = 0;
DO $$
DECLARE
  line text;
  partial int := 0;
BEGIN
  FOR line IN EXPLAIN (COSTS OFF) SELECT bloom_agg(k, 0.01, n) FROM halves LOOP
    partial := partial + (line ~ 'Partial Aggregate')::int;
  END LOOP;
  RAISE INFO '% partial aggregates', partial;
END
$$;
SELECT bloom_agg(k, 0.01, n) FROM halves;
SELECT bloom_agg(k, p, 5000) FROM halves;
SELECT bloom_agg(k, 0.01, NULL, n::bigint) FROM halves;
RESET enable_partitionwise_aggregate;
RESET max_parallel_workers_per_gather;
RESET client_min_messages;

-- A union warns if its rate is more than twice the largest requested one.
SELECT bloom_fpp(bloom_union_agg(f)) > 0.02 AS more FROM (SELECT bloom_agg(k, 0.01, 2500) AS f FROM many_keys WHERE k <= 10000 GROUP BY k % 4) x;
SELECT bloom_fpp(bloom_union_agg(f)) > 0.02 AS more FROM (SELECT bloom_agg(k, 0.01, 10000) AS f FROM many_keys WHERE k <= 10000 GROUP BY k % 4) x;
SELECT bloom_fpp(bloom_union_agg(f)) > 0.02 AS more FROM (VALUES ((SELECT bloom_agg(k, 0.1) FROM many_keys WHERE k <= 1000)),
  ((SELECT bloom_agg(k, 0.01) FROM many_keys WHERE k > 49000))) v (f);
-- once per query, here for the first part, whose filters come in order
SET enable_hashagg = off;
SELECT count(u) FROM (SELECT bloom_union_agg(f) AS u FROM
  (SELECT part, bloom_agg(k, 0.01, 500) AS f FROM many_keys WHERE k <= 8000 GROUP BY part, k % 16) x GROUP BY part) y;
RESET enable_hashagg;
-- self-sized filters of many days
SELECT (bloom_info(u)).layers, lost(u | (SELECT tenth FROM serial)) AS lost, abs(bloom_fpp(u) - rate(u)) < 0.05 * rate(u) AS told
FROM (SELECT bloom_union_agg(f ORDER BY day) AS u FROM (SELECT k / 400 AS day, bloom_agg(k) AS f FROM many_keys WHERE k <= 400 * 50 GROUP BY day) x) y;

-- A union of filters with related rates is not growth.
SELECT abs(bloom_cardinality(a | b) - 20000) < 600 AS keys
FROM (SELECT bloom_agg(k, 0.5, 10000) FILTER (WHERE k <= 10000) AS a, bloom_agg(k, 0.25, 10000) FILTER (WHERE k > 40000) AS b FROM many_keys) x;

DROP TABLE many_keys, serial, halves;
DROP FUNCTION lost, rate, report, by_workers;
