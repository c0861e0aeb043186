-- Sizes of indexes, as doc/INDEX.md states them, in a database with the extension.
--
-- growth: what growth costs an index: its size in multiples of bloom_sizing, and the pages that a lookup reads with the
-- meta page, while it grows to 10 million keys, a few at a time. These are counts, the same on each machine. Takes up to
-- an hour.
-- large: an index over 200 million keys, more than one value of type bloom can have, with maintenance_work_mem 256 MB.
-- Takes 16 GB of disk and several minutes.
--
--   psql -X -q -v part=growth -f bench/index_sizes.sql
--   psql -X -q -v part=large -f bench/index_sizes.sql
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SELECT :'part' = 'growth' AS growth, :'part' = 'large' AS large \gset

\if :growth
CREATE TEMP TABLE growth (start text, fpp float8, keys bigint, size float8, pages int);

-- Keys come by 2 % at a time, and to the indexes a few at a time, because work_mem is small.
CREATE FUNCTION pg_temp.grow(start text, n bigint, last bigint) RETURNS void LANGUAGE plpgsql SET work_mem = '64kB' AS $$
DECLARE
  more bigint;
BEGIN
  WHILE n < last LOOP
    more := least(n / 50, last - n);
    INSERT INTO growing_keys SELECT generate_series(n + 1, n + more);
    n := n + more;
    INSERT INTO growth
    SELECT start, info.fpp, n, info.bytes / sizing.bytes::float8, layers + 1
      FROM pg_index, bloom_index_info(indexrelid) info, bloom_sizing(info.fpp, n) sizing
     WHERE indrelid = 'growing_keys'::regclass;
  END LOOP;
END
$$;

CREATE UNLOGGED TABLE growing_keys (k bigint);
SELECT format('CREATE INDEX ON growing_keys USING bloomfilter (k) WITH (fpp = %s)', fpp)
  FROM unnest('{0.1,0.01,0.001,0.0001,0.00001,0.000001}'::text[]) fpp \gexec
INSERT INTO growing_keys SELECT generate_series(1, 9000);
SELECT pg_temp.grow('empty', 9000, 10000000) \g /dev/null
TRUNCATE growing_keys;
INSERT INTO growing_keys SELECT generate_series(1, 300000);
REINDEX TABLE growing_keys;
INSERT INTO growth
SELECT 'just built', info.fpp, 300000, info.bytes / sizing.bytes::float8, layers + 1
  FROM pg_index, bloom_index_info(indexrelid) info, bloom_sizing(info.fpp, 300000) sizing
 WHERE indrelid = 'growing_keys'::regclass;
SELECT pg_temp.grow('built with 300,000', 300000, 10000000) \g /dev/null

SELECT start, fpp, round((max(size) FILTER (WHERE keys >= 100000))::numeric, 1) AS "largest size",
       round((avg(size) FILTER (WHERE keys >= 100000))::numeric, 1) AS "mean size",
       max(pages) FILTER (WHERE keys <= 100000) AS "pages to 100,000",
       max(pages) FILTER (WHERE keys <= 1000000) AS "to 1 million", max(pages) AS "to 10 million"
  FROM growth GROUP BY 1, 2 ORDER BY 1 DESC, 2 DESC;
DROP TABLE growing_keys;
\endif

\if :large
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
DROP TABLE large_keys;
\endif
