--
-- INDEX_GROWTH
-- How large an index is that grows, and how many pages a lookup reads.
--

-- Let a table with indexes grow from first to last keys, by 2 % at a time. With a small work_mem, keys come to an index a
-- few at a time. Returns the largest size after 100,000 keys, in multiples of bloom_sizing, and the most pages that a lookup
-- of an absent key has read.
CREATE FUNCTION grow(first bigint, last bigint, OUT index name, OUT size float8, OUT pages bigint)
RETURNS SETOF record LANGUAGE plpgsql SET work_mem = '64kB' AS $$
DECLARE
  n bigint := first;
  more bigint;
  before bigint;
  i record;
BEGIN
  CREATE TEMP TABLE seen (index name, size float8, pages bigint);
  WHILE n < last LOOP
    more := least(n / 50, last - n);
    INSERT INTO grown SELECT generate_series(n + 1, n + more);
    n := n + more;
    FOR i IN SELECT indexrelid::regclass AS index, info.bytes / sizing.bytes::float8 AS size
               FROM pg_index, bloom_index_info(indexrelid) info, bloom_sizing(info.fpp, n) sizing
              WHERE indrelid = 'grown'::regclass LOOP
      before := pg_stat_get_xact_blocks_fetched(i.index);
      PERFORM bloom_index_contains(i.index, -n);
      INSERT INTO seen VALUES (i.index, CASE WHEN n >= 100000 THEN i.size END,
                               pg_stat_get_xact_blocks_fetched(i.index) - before);
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT s.index, max(s.size), max(s.pages) FROM seen s GROUP BY s.index ORDER BY s.index;
  DROP TABLE seen;
END
$$;

-- From empty.
CREATE TABLE grown (id bigint);
CREATE INDEX grown_1 ON grown USING bloomfilter (id) WITH (fpp = 0.1);
CREATE INDEX grown_3 ON grown USING bloomfilter (id) WITH (fpp = 0.001);
CREATE INDEX grown_6 ON grown USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO grown SELECT generate_series(1, 10000);
SELECT index, size < CASE index WHEN 'grown_1' THEN 5 ELSE 4 END AS size, pages FROM grow(10000, 300000);

-- From built, with room for half as many keys again.
TRUNCATE grown;
DROP INDEX grown_3, grown_6;
INSERT INTO grown SELECT generate_series(1, 100000);
REINDEX TABLE grown;
CREATE INDEX grown_expected ON grown USING bloomfilter (id) WITH (fpp = 0.001, expected = 120000);
SELECT index, size < CASE index WHEN 'grown_1' THEN 5 ELSE 4 END AS size, pages FROM grow(100000, 200000);

-- REINDEX makes one layer of all.
REINDEX TABLE grown;
SELECT index, size < 2.5 AS size, pages FROM grow(200000, 200001);
DROP TABLE grown;
DROP FUNCTION grow;
