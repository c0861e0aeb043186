-- An index over 200 million keys, more than one value of type bloom can have, with maintenance_work_mem 256 MB. Takes
-- 16 GB of disk and several minutes.
--
--   psql -X -q -f bench/large_index.sql       in a database with the extension
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SET maintenance_work_mem = '256MB';
CREATE UNLOGGED TABLE large_keys AS
SELECT i * 2654435761::bigint AS k FROM (SELECT generate_series(1, 200000000) AS i) n;
SELECT temp_bytes AS before FROM pg_stat_database WHERE datname = current_database() \gset
\timing on
\echo building, with room for half as many keys again, then with room for these keys
CREATE INDEX large_keys_filter ON large_keys USING bloomfilter (k) WITH (fpp = 0.001);
CREATE INDEX large_keys_sized ON large_keys USING bloomfilter (k) WITH (fpp = 0.001, expected = 200000000);
\timing off
\c
SELECT pg_size_pretty((temp_bytes - :before) / 2) AS "temporary files of one build"
  FROM pg_stat_database WHERE datname = current_database();
SELECT n AS index, pg_size_pretty(bytes) AS size, round(bytes / 200000000.0, 2) AS "bytes a key", cardinality, current_fpp
  FROM unnest(ARRAY['large_keys_filter', 'large_keys_sized']) n, bloom_index_info(n::regclass);
SELECT count(*) FILTER (WHERE bloom_index_contains('large_keys_filter', k)) = count(*) AS "all found",
       count(*) FILTER (WHERE bloom_index_contains('large_keys_sized', k)) = count(*) AS "all found, sized"
  FROM large_keys WHERE k % 100 = 7;
SELECT count(*) FILTER (WHERE bloom_index_contains('large_keys_filter', -i)) / 1e6 AS "false positives",
       count(*) FILTER (WHERE bloom_index_contains('large_keys_sized', -i)) / 1e6 AS "false positives, sized"
  FROM generate_series(1, 1000000) i;
DROP TABLE large_keys;
