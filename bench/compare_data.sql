-- Tables for bench/compare.
CREATE EXTENSION bloomfilter;
CREATE TABLE keys AS SELECT i AS id, 'https://example.com/page/' || i AS url FROM generate_series(1, 2000000) i;
CREATE TABLE stored (f bloom NOT NULL);
ALTER TABLE stored ALTER f SET STORAGE EXTERNAL;
INSERT INTO stored SELECT bloom_agg(i) FROM generate_series(1, 1000000) i;
CREATE TABLE shards (shard int, f bloom NOT NULL);
ALTER TABLE shards ALTER f SET STORAGE EXTERNAL;
INSERT INTO shards SELECT i % 10, bloom_agg(i) FROM generate_series(1, 1000000) i GROUP BY 1;
CREATE TABLE small AS SELECT i / 20 AS id, bloom_agg(i, 0.01, 100000) AS f FROM generate_series(0, 99999) i GROUP BY 1;
VACUUM ANALYZE;
