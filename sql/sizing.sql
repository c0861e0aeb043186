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
