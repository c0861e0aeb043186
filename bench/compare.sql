-- The statements that bench/compare times. Each name is echoed before its statement.
\set ON_ERROR_STOP 1
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB';
SELECT count(*) FROM keys WHERE bloom_contains((SELECT f FROM stored), id) \g /dev/null
\timing on
\echo # bloom_agg of 2 million integers
SELECT bloom_agg(id) FROM keys \g /dev/null
\echo # bloom_agg of 2 million texts
SELECT bloom_agg(url) FROM keys \g /dev/null
\echo # bloom_agg with expected
SELECT bloom_agg(id, 0.01, 2000000) FROM keys \g /dev/null
\echo # bloom_agg in groups of 20
SELECT count(f) FROM (SELECT bloom_agg(id) f FROM keys GROUP BY id / 20) g \g /dev/null
\timing off
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
\timing on
\echo # bloom_agg, 2 workers
SELECT bloom_agg(id) FROM keys \g /dev/null
\echo # bloom_agg with expected, 2 workers
SELECT bloom_agg(id, 0.01, 2000000) FROM keys \g /dev/null
\echo # bloom_agg with expected 1 million, 2 workers
SELECT bloom_agg(id, 0.01, 1000000) FROM keys WHERE id <= 1000000 \g /dev/null
\timing off
SET max_parallel_workers_per_gather = 0;
\timing on
\echo # 2 million lookups, filter in memory
SELECT count(*) FROM keys WHERE bloom_contains((SELECT bloom_union_agg(f) FROM stored), id) \g /dev/null
\echo # 2 million lookups, stored filter
SELECT count(*) FROM keys WHERE bloom_contains((SELECT f FROM stored), id) \g /dev/null
\echo # 10 stored filters, 1,000 keys each
SELECT count(*) FROM shards, generate_series(1, 1000) i WHERE f @> i \g /dev/null
\echo # 5,000 filters of 20 keys, one lookup each
SELECT count(*) FROM small WHERE f @> id \g /dev/null
\echo # bloom_union_agg of 5,000 filters of 20 keys
SELECT bloom_union_agg(f) FROM small \g /dev/null
\echo # bloom_union_agg of 10 filters of 100,000
SELECT bloom_union_agg(f) FROM shards \g /dev/null
\echo # bloom_new_keys of 200,000 keys
SELECT count(*) FROM stored, bloom_new_keys(f, (SELECT array_agg(id) FROM keys WHERE id > 1800000)) \g /dev/null
\echo # bloom_info of 5,000 filters
SELECT count(*) FROM small, bloom_info(f) \g /dev/null
