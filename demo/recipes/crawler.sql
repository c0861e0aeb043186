-- A crawler that fetches no page twice: only URLs that the filter cannot rule out are looked up in the visited pages.
-- doc/COOKBOOK.md explains it. Run in demo/, where the URLs are.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE visited (url text PRIMARY KEY, fetched timestamptz NOT NULL DEFAULT now());
CREATE TABLE frontier (url text PRIMARY KEY);
CREATE TABLE crawler (known bloom NOT NULL);            -- one row: visited and frontier
INSERT INTO crawler VALUES (bloom_empty(0.01, 40000));

-- Adds the unknown ones of these URLs to the frontier; returns the numbers of URLs added and looked up.
CREATE FUNCTION enqueue(candidates text[], OUT added int, OUT looked_up int) LANGUAGE plpgsql AS $$
DECLARE
    filter bloom;
    new text[];
    rest text[];
BEGIN
    SELECT known INTO filter FROM crawler FOR UPDATE;   -- one batch at a time
    new := bloom_new_keys(filter, candidates);
    INSERT INTO frontier SELECT unnest(new);
    added := cardinality(new);

    rest := ARRAY(SELECT DISTINCT url FROM unnest(candidates) url WHERE filter @> url);
    looked_up := cardinality(rest);
    rest := ARRAY(SELECT url FROM unnest(rest) AS u (url)
                   WHERE NOT EXISTS (SELECT FROM visited v WHERE v.url = u.url)
                     AND NOT EXISTS (SELECT FROM frontier f WHERE f.url = u.url));
    INSERT INTO frontier SELECT unnest(rest);           -- the false positives
    added := added + cardinality(rest);

    UPDATE crawler SET known = bloom_add_all(filter, new);
END $$;

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
ANALYZE packages;

-- Every package's home page in batches of 1,000 by name. Half of each batch is fetched before the next batch.
CREATE TABLE batches AS
SELECT n / 1000 AS batch, array_agg(url) AS urls
  FROM (SELECT url, row_number() OVER (ORDER BY name) - 1 AS n FROM packages) p
 GROUP BY 1;
CREATE TABLE log (batch int, candidates int, added int, looked_up int);
DO $$
DECLARE
    b batches;
BEGIN
    FOR b IN SELECT * FROM batches ORDER BY batch LOOP
        INSERT INTO log SELECT b.batch, (SELECT count(DISTINCT u) FROM unnest(b.urls) u), added, looked_up
          FROM enqueue(b.urls);
        WITH fetched AS (DELETE FROM frontier WHERE md5(url) < '8' RETURNING url)
        INSERT INTO visited SELECT url FROM fetched;
    END LOOP;
END $$;

SELECT sum(candidates) AS candidates, sum(added) AS new, sum(looked_up) AS looked_up,
       round(100 - 100.0 * sum(looked_up) / sum(candidates), 1) AS "lookups saved, %",
       sum(looked_up) - (sum(candidates) - sum(added)) AS "looked up in vain"
  FROM log;

DO $$
DECLARE
    urls bigint := (SELECT count(DISTINCT url) FROM packages);
    n bigint;
BEGIN
    ASSERT urls = (SELECT count(*) FROM (TABLE frontier UNION ALL SELECT url FROM visited) x), 'each URL once';
    ASSERT urls = (SELECT sum(added) FROM log), 'as many as were added';
    ASSERT (SELECT bool_and(known @> url) FROM packages, crawler), 'all of them known';
    ASSERT (SELECT count(*) FROM visited) BETWEEN 10000 AND 20000, 'half of them visited';
    -- New URLs were looked up at no more than the rate of a full filter plus four standard deviations.
    SELECT sum(looked_up) - (sum(candidates) - sum(added)) INTO n FROM log;
    ASSERT n <= 0.01 * urls + 4 * sqrt(0.01 * urls), n || ' new URLs were looked up';
    ASSERT (SELECT sum(looked_up) < 0.5 * sum(candidates) FROM log), 'lookups were saved';
    ASSERT (SELECT added = 0 AND looked_up = 1000 FROM batches, LATERAL enqueue(
                (SELECT array_agg(DISTINCT url) FROM (SELECT DISTINCT url FROM visited LIMIT 1000) x)) LIMIT 1),
        'what is visited is looked up and not added';
END $$;
