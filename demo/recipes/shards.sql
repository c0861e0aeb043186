-- A sharded blacklist for more URLs than one filter can hold, at small size. doc/COOKBOOK.md explains it.
-- Run in demo/, where the URLs are.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

-- The layout for ten billion URLs at 0.01 %: the minimum number of filters, less than 26 GB in total.
SELECT filters, pg_size_pretty(bytes) AS size, round(bits_per_key::numeric, 2) AS bits_per_key
  FROM bloom_sizing(0.0001, 10000000000);

DO $$
DECLARE
    s record;
    shard record;
BEGIN
    SELECT * INTO s FROM bloom_sizing(0.0001, 10000000000);
    ASSERT s.bytes < 26e9, s.bytes || ' bytes';
    ASSERT s.filters BETWEEN 47 AND 64, s.filters || ' filters';
    -- Shards are not equally full: with 64 shards, each is sized for four standard deviations more than the mean.
    SELECT * INTO shard FROM bloom_sizing(0.0001, (1e10 / 64 + 4 * sqrt(1e10 / 64))::bigint);
    ASSERT shard.filters = 1 AND 64 * shard.bytes < 26e9, 64 * shard.bytes || ' bytes in 64 shards';
END $$;

-- Eight shards in four partitions; a partition can also be a foreign table.
CREATE TABLE blacklist (shard int NOT NULL, urls bloom NOT NULL) PARTITION BY HASH (shard);
CREATE TABLE blacklist_0 PARTITION OF blacklist FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE blacklist_1 PARTITION OF blacklist FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE blacklist_2 PARTITION OF blacklist FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE blacklist_3 PARTITION OF blacklist FOR VALUES WITH (MODULUS 4, REMAINDER 3);
ALTER TABLE blacklist ADD PRIMARY KEY (shard);

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
ANALYZE packages;

-- 30,088 URLs over 8 shards; "expected" is the mean of a shard plus four standard deviations.
INSERT INTO blacklist
SELECT bloom_shard(url, 8), bloom_agg(url, 0.0001, 4100) FROM packages GROUP BY 1;

CREATE FUNCTION blacklisted(url text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT urls @> url FROM blacklist WHERE shard = bloom_shard(url, 8)), false)
$$;

-- Add a list of new URLs, with one call per shard
CREATE FUNCTION blacklist(new text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE blacklist b SET urls = bloom_add_all(b.urls, n.urls)
      FROM (SELECT bloom_shard(url, 8) AS shard, array_agg(url) AS urls FROM unnest(new) url GROUP BY 1) n
     WHERE b.shard = n.shard
$$;

DO $$
DECLARE
    n bigint;
BEGIN
    ASSERT (SELECT count(*) FROM blacklist) = 8, 'eight shards';
    ASSERT NOT (SELECT bool_or(over_capacity) FROM blacklist, bloom_info(urls)), 'none is over capacity';
    ASSERT (SELECT bool_and(urls @> url) FROM packages LEFT JOIN blacklist ON shard = bloom_shard(url, 8)),
        'every URL is in its shard';
    ASSERT (SELECT bool_and(blacklisted(url)) FROM packages WHERE section = 'database'), 'and is found there';
    SELECT count(*) INTO n
      FROM (SELECT DISTINCT url || '?' AS url FROM packages) x JOIN blacklist ON shard = bloom_shard(url, 8)
     WHERE urls @> url;
    ASSERT n <= 3 + 4 * sqrt(3), n || ' of 30,088 others are found';
    ASSERT NOT blacklisted('https://example.org/'), 'not yet';
    PERFORM blacklist(ARRAY(SELECT 'https://example.org/' || i FROM generate_series(1, 100) i));
    ASSERT (SELECT bool_and(blacklisted('https://example.org/' || i)) FROM generate_series(1, 100) i), 'new ones';
END $$;
