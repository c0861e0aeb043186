-- Indexes of access method bloomfilter in place of filters that are maintained by hand: the four recipes of doc/INDEX.md, on
-- the home pages of Debian's packages. Run in demo/.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'

-- Ids that do not exist: the scan is never executed.
CREATE TABLE items (id bigint PRIMARY KEY, body text);
INSERT INTO items SELECT row_number() OVER (ORDER BY name) * 7, name FROM packages;
CREATE INDEX item_ids ON items USING bloomfilter (id) WITH (fpp = 0.001);
CREATE FUNCTION find_item(wanted bigint) RETURNS SETOF items LANGUAGE sql STABLE AS $$
    SELECT * FROM items WHERE id = wanted AND bloom_index_contains('item_ids', wanted)
$$;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;
DO $$
DECLARE
    missing bigint := (SELECT min(i) FROM generate_series(1, 100) i
                       WHERE i % 7 > 0 AND NOT bloom_index_contains('item_ids', i));
BEGIN
    ASSERT (SELECT bool_and(bloom_index_contains('item_ids', id)) FROM items), 'all ids are found';
    ASSERT EXISTS (SELECT FROM plan('SELECT * FROM find_item(' || missing || ')') line WHERE line ~ 'never executed'),
        'the scan of a missing id is not executed';
    ASSERT (SELECT count(*) <= 100 FROM generate_series(1, 60000) i WHERE bloom_index_contains('item_ids', -i)),
        'the rate';
    INSERT INTO items VALUES (-5, 'new');
    ASSERT (SELECT body = 'new' FROM find_item(-5)), 'a new item is found at once';
END $$;

-- A crawler: each URL is added once, but for the false positives.
CREATE TABLE frontier (url text NOT NULL, fetched timestamptz);
CREATE INDEX seen ON frontier USING bloomfilter (url) WITH (fpp = 0.001, expected = 40000);
CREATE FUNCTION enqueue(candidates text[]) RETURNS bigint LANGUAGE sql AS $$
    WITH added AS (
        INSERT INTO frontier
        SELECT DISTINCT url FROM unnest(candidates) url WHERE NOT bloom_index_contains('seen', url)
        RETURNING 1)
    SELECT count(*) FROM added
$$;
DO $$
DECLARE
    urls text[];
BEGIN
    FOR urls IN SELECT array_agg(url) FROM (SELECT url, row_number() OVER (ORDER BY name) AS n FROM packages) p
                GROUP BY n / 1000 ORDER BY n / 1000 LOOP
        PERFORM enqueue(urls);
        COMMIT;
    END LOOP;
    ASSERT (SELECT count(*) = count(DISTINCT url) FROM frontier), 'none twice';
    ASSERT (SELECT (SELECT count(DISTINCT url) FROM packages) - count(*) BETWEEN 0 AND 60 FROM frontier),
        'one in a thousand is missing';
    ASSERT (SELECT bool_and(bloom_index_contains('seen', url)) FROM packages), 'all are known';
END $$;

-- One prize a user; test/tap/020_index.pl runs it with concurrent requests.
CREATE TABLE prizes (campaign int, who bigint);
CREATE INDEX taken ON prizes USING bloomfilter ((campaign || ' ' || who)) WITH (fpp = 1e-6);
CREATE FUNCTION take_part(campaign int, who bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    key text := campaign || ' ' || who;
BEGIN
    PERFORM pg_advisory_xact_lock(bloom_hash(key));
    IF bloom_index_contains('taken', key) THEN
        RETURN false;
    END IF;
    INSERT INTO prizes VALUES (campaign, who);
    RETURN true;
END $$;
DO $$
BEGIN
    ASSERT (SELECT count(*) FILTER (WHERE take_part(i % 20, i)) = 2000 FROM generate_series(1, 2000) i), 'each wins';
    ASSERT (SELECT count(*) FILTER (WHERE take_part(i % 20, i)) = 0 FROM generate_series(1, 2000) i), 'but once';
END $$;

-- A blacklist: an entry that is deleted goes with the next REINDEX.
CREATE TABLE blocked (url text);
CREATE INDEX blocked_url ON blocked USING bloomfilter (url) WITH (fpp = 1e-4);
INSERT INTO blocked SELECT DISTINCT url FROM packages WHERE section = 'games';
DO $$
BEGIN
    ASSERT NOT EXISTS (SELECT FROM packages WHERE section = 'games' AND NOT bloom_index_contains('blocked_url', url)),
        'all are blocked';
    ASSERT (SELECT count(*) < 20 FROM (SELECT DISTINCT url FROM packages) p
            WHERE bloom_index_contains('blocked_url', url) AND url NOT IN (TABLE blocked)), 'hardly any other';
END $$;
DELETE FROM blocked WHERE url < 'http://m';
REINDEX INDEX CONCURRENTLY blocked_url;
DO $$
BEGIN
    ASSERT (SELECT count(*) < 20 FROM (SELECT DISTINCT url FROM packages WHERE section = 'games' AND url < 'http://m') p
            WHERE bloom_index_contains('blocked_url', url)), 'deleted entries are gone';
    ASSERT (SELECT bool_and(bloom_index_contains('blocked_url', url)) FROM blocked), 'the others are there';
END $$;
SELECT bloom_index_check('item_ids'), bloom_index_check('seen'), bloom_index_check('taken'),
       bloom_index_check('blocked_url');
