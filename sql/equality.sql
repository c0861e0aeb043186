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
