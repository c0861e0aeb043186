-- Finds the new rows of a batch exactly and adds the batch to the filter; data: the home pages of Debian's packages.
-- doc/COOKBOOK.md explains it. Run in demo/.
CREATE EXTENSION IF NOT EXISTS bloomfilter;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
CREATE TABLE visited AS SELECT DISTINCT url FROM packages WHERE name < 'p';     -- without an index
CREATE TABLE batch AS SELECT DISTINCT url FROM packages WHERE name > 'o';
CREATE TABLE seen (urls bloom NOT NULL);
INSERT INTO seen SELECT bloom_agg(url, 0.01, 50000) FROM visited;
ANALYZE visited, batch, seen;

CREATE VIEW with_or AS
SELECT url FROM batch
 WHERE NOT (SELECT urls FROM seen) @> url OR NOT EXISTS (SELECT FROM visited v WHERE v.url = batch.url);
CREATE VIEW in_two_parts AS
SELECT url FROM batch WHERE NOT (SELECT urls FROM seen) @> url
UNION ALL
SELECT url FROM batch
 WHERE (SELECT urls FROM seen) @> url AND NOT EXISTS (SELECT FROM visited v WHERE v.url = batch.url);

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;

SET work_mem = '64kB';                  -- less than the hash table of a subplan takes
SELECT plan('TABLE with_or') AS "OR";
SELECT plan('TABLE in_two_parts') AS "UNION ALL";

DO $$
DECLARE
    new bigint := (SELECT count(*) FROM batch WHERE url NOT IN (TABLE visited));
    unseen bigint := (SELECT count(*) FROM batch, seen WHERE NOT urls @> url);
    before bloom := (SELECT urls FROM seen);
BEGIN
    -- OR: the subquery runs once for each row that the filter reports
    ASSERT EXISTS (SELECT FROM plan('TABLE with_or') line WHERE line ~ 'OR \(NOT .*SubPlan'), 'a subplan';
    ASSERT NOT EXISTS (SELECT FROM plan('TABLE with_or') line WHERE line ~ 'Anti Join|hashed'),
        'neither joined nor hashed';
    -- UNION ALL: the subquery is joined
    ASSERT EXISTS (SELECT FROM plan('TABLE in_two_parts') line WHERE line ~ 'Anti Join'), 'an anti join';
    ASSERT NOT EXISTS (SELECT FROM plan('TABLE in_two_parts') line WHERE line ~ 'SubPlan'), 'no subplan';

    -- Both parts together are the new rows; the first part has nearly all of them.
    ASSERT (SELECT count(*) = new FROM in_two_parts), 'as many as there are';
    ASSERT NOT EXISTS (TABLE in_two_parts INTERSECT TABLE visited), 'none was visited';
    ASSERT unseen BETWEEN 0.98 * new AND new, unseen || ' of ' || new;

    -- A join adds one key of the batch.
    UPDATE seen SET urls = bloom_add(urls, batch.url) FROM batch WHERE NOT before @> batch.url;
    ASSERT (SELECT count(*) BETWEEN 1 AND 3 FROM batch, seen WHERE urls @> url AND NOT before @> url),
        'one key was added, which may bring a false positive';

    UPDATE seen SET urls = bloom_add_all(urls, ARRAY(SELECT url FROM batch));
    ASSERT (SELECT bool_and(urls @> url) FROM batch, seen), 'all keys are there';
    UPDATE seen SET urls = before | (SELECT bloom_agg(url, 0.01, 50000) FROM batch);
    ASSERT (SELECT bool_and(urls @> url) FROM batch, seen), 'all keys are there';
END $$;
