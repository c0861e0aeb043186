-- Indexes of access method bloomfilter in place of filters that are maintained by hand: recipes of doc/INDEX.md, on
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

-- One prize a user; test/tap/014_index.pl runs it with concurrent requests.
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

-- Keys of several columns: arrays of columns of one type, texts of others. doc/COOKBOOK.md explains it.
RESET ALL;
CREATE SCHEMA several_columns;
SET search_path = several_columns, public;

CREATE TABLE sales (customer int NOT NULL, product int NOT NULL, shop text NOT NULL, day date NOT NULL);
INSERT INTO sales
SELECT i % 5000, i % 997, 'shop ' || i % 13, date '2026-01-01' + i % 365 FROM generate_series(1, 10000) i;

CREATE INDEX bought ON sales USING bloomfilter ((ARRAY[customer, product]));
CREATE INDEX sold_on ON sales USING bloomfilter ((shop || '/' || product::text || '/' || (day - date '2000-01-01')::text));

DO $$
BEGIN
    ASSERT (SELECT bool_and(bloom_index_contains('bought', ARRAY[customer, product])) FROM sales), 'every pair is found';
    ASSERT (SELECT count(*) < 100 + 4 * sqrt(100) FROM generate_series(1, 10000) i
             WHERE bloom_index_contains('bought', ARRAY[i, -i])), 'and few others';
    ASSERT (SELECT bool_and(bloom_index_contains('sold_on', shop || '/' || product || '/' || (day - date '2000-01-01')))
              FROM sales), 'every text is found';
    ASSERT (SELECT f @> ARRAY[1, 1] AND NOT f @> ARRAY[1, -1]
              FROM (SELECT bloom_agg(ARRAY[customer, product]) AS f FROM sales) x), 'in a value, too';
    ASSERT NOT bloom_agg(ARRAY[1, 2]) @> ARRAY[2, 1], 'the order counts';
END $$;

-- Which day may contain this key? One filter per day is probed, so that only matching partitions are scanned.
-- doc/COOKBOOK.md explains it.
RESET ALL;
CREATE SCHEMA which_partition;
SET search_path = which_partition, public;

CREATE TABLE events (day date NOT NULL, visitor text NOT NULL, what text) PARTITION BY RANGE (day);
DO $$
BEGIN
    FOR i IN 0 .. 29 LOOP
        EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
                       i, date '2025-06-01' + i, date '2025-06-02' + i);
    END LOOP;
END $$;
INSERT INTO events
SELECT date '2025-06-01' + i % 30, md5((i % 30)::text || '-' || i % 7000), 'click' FROM generate_series(1, 45000) i;
INSERT INTO events
SELECT day, 'regular', 'visit' FROM unnest(ARRAY[date '2025-06-03', date '2025-06-17', date '2025-06-30']) day;
ANALYZE events;

-- One filter per partition; past days do not change.
CREATE TABLE event_days AS
SELECT day, bloom_agg(visitor, 0.001) AS visitors FROM events GROUP BY day;
ALTER TABLE event_days ADD PRIMARY KEY (day), ALTER visitors SET NOT NULL;
ANALYZE event_days;

-- The key is hashed once. OFFSET 0 keeps the scan inside the loop over the days, where other days are pruned.
CREATE FUNCTION events_of(who text) RETURNS SETOF events LANGUAGE sql STABLE AS $$
    SELECT e.*
      FROM (SELECT day FROM event_days, bloom_hash(who) hash WHERE bloom_contains_hash(visitors, hash)) d,
           LATERAL (SELECT * FROM events WHERE day = d.day AND visitor = who OFFSET 0) e
$$;

SELECT count(*), pg_size_pretty(sum(pg_column_size(visitors))) AS size FROM event_days;
SELECT day, what FROM events_of('regular') ORDER BY day;

-- The number of partitions that such a query scans
CREATE FUNCTION partitions_scanned(who text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE format('EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM events_of(%L)', who) INTO plan;
    RETURN (SELECT count(DISTINCT node ->> 'Relation Name')
              FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Relation Name" starts with "events_")') node
             WHERE (node ->> 'Actual Loops')::int > 0);
END $$;

DO $$
DECLARE
    n bigint;
BEGIN
    ASSERT (SELECT count(*) FROM event_days) = 30, 'thirty filters';
    ASSERT (SELECT bool_and(visitors @> visitor) FROM events JOIN event_days USING (day)), 'none is missed';
    ASSERT NOT EXISTS ((SELECT * FROM events WHERE visitor = 'regular') EXCEPT ALL (SELECT * FROM events_of('regular')))
       AND (SELECT count(*) FROM events_of('regular')) = 3, 'the answer is that of the table';
    SELECT partitions_scanned('regular') INTO n;
    ASSERT n BETWEEN 3 AND 4, n || ' partitions scanned for a key in three';
    SELECT sum(partitions_scanned('nobody ' || i)) INTO n FROM generate_series(1, 50) i;
    ASSERT n <= 2 + 4 * sqrt(2), n || ' of 1,500 partitions scanned for keys in none';
END $$;

-- PostgreSQL's Bloom filters, contrib/bloom and the bloom operator classes of BRIN, compared with a filter of this
-- extension: verifies the statements of doc/REFERENCE.md, "What others do better".
RESET ALL;
CREATE SCHEMA indexes;
SET search_path = indexes, public;
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'bloom' \gset
\if :missing
\echo contrib/bloom is not installed
\quit
\endif
CREATE EXTENSION bloom;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

-- Unsorted columns, and one sorted column
CREATE TABLE events (id int NOT NULL, day int NOT NULL, kind int NOT NULL, visitor text NOT NULL);
INSERT INTO events SELECT i, i / 10000, i % 1000, md5(i::text) FROM generate_series(1, 200000) i;
ANALYZE events;

-- The nodes of a plan: type, index, and number of blocks read
CREATE FUNCTION nodes(query text, OUT node text, OUT index text, OUT blocks bigint) RETURNS SETOF record
    LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
    RETURN QUERY
    SELECT n ->> 'Node Type', n ->> 'Index Name',
           (n ->> 'Shared Hit Blocks')::bigint + (n ->> 'Shared Read Blocks')::bigint
      FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (exists (@."Node Type"))') n;
END $$;

CREATE INDEX contrib ON events USING bloom (id, kind, visitor);
CREATE INDEX brin ON events USING brin (visitor text_bloom_ops (n_distinct_per_range = 2000), day int4_bloom_ops)
    WITH (pages_per_range = 16);
CREATE TABLE visitors (f bloom NOT NULL);
INSERT INTO visitors SELECT bloom_agg(visitor) FROM events;
SELECT pg_size_pretty(pg_relation_size('contrib')) AS "contrib/bloom", pg_size_pretty(pg_relation_size('brin')) AS brin,
       pg_size_pretty(bytes) AS filter FROM visitors, bloom_info(f);

-- contrib/bloom: one index for any subset of its columns
CREATE TABLE seen_by AS
SELECT query, nodes.*
  FROM unnest(ARRAY['SELECT FROM events WHERE kind = 5 AND visitor = ''nobody''', 'SELECT FROM events WHERE id = 77',
                    'SELECT FROM events WHERE visitor = md5(''77'')']) query, nodes(query)
 WHERE index IS NOT NULL;
TABLE seen_by;

DO $$
DECLARE
    pages bigint := pg_relation_size('contrib') / current_setting('block_size')::int;
BEGIN
    ASSERT (SELECT count(*) = 2 FROM seen_by WHERE index = 'contrib'), 'the planner uses it by itself';
    ASSERT (SELECT bool_and(blocks BETWEEN pages - 1 AND pages) FROM seen_by WHERE index = 'contrib'),
        'a search reads the whole index but its first page';
    ASSERT (SELECT array_agg(t.typname::text ORDER BY 1) = '{int4,text}'
              FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod JOIN pg_type t ON t.oid = opcintype
             WHERE amname = 'bloom'), 'of the types that it comes with';

    -- A new row is in the index immediately; it is not in the filter.
    INSERT INTO events VALUES (0, 0, 0, 'new');
    ASSERT (SELECT count(*) = 1 FROM events WHERE id = 0 AND visitor = 'new'), 'the index is kept up to date';
    ASSERT (SELECT NOT f @> 'new' FROM visitors), 'the filter is not';
END $$;

-- BRIN: a filter for each range of blocks
DROP INDEX contrib;
CREATE TABLE ranges AS SELECT nodes.* FROM nodes('SELECT FROM events WHERE day = 7');
TABLE ranges;
SET enable_seqscan = off;               -- which version 15 would choose where values are not clustered
CREATE TABLE scattered AS SELECT nodes.* FROM nodes('SELECT FROM events WHERE visitor = md5(''77'')');
TABLE scattered;
RESET enable_seqscan;

DO $$
DECLARE
    pages bigint := pg_relation_size('events') / current_setting('block_size')::int;
BEGIN
    ASSERT (SELECT count(*) = 1 FROM ranges WHERE index = 'brin'), 'the planner uses it by itself';
    ASSERT (SELECT bool_and(blocks < pages / 4) FROM (TABLE ranges UNION ALL TABLE scattered) x),
        'it skips most of the table';
    ASSERT (SELECT count(*) > 20
              FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod
             WHERE amname = 'brin' AND opcname LIKE '%bloom%'), 'it takes most types';
    ASSERT NOT EXISTS (SELECT FROM nodes('SELECT FROM events WHERE visitor < ''0''') WHERE index IS NOT NULL),
        'but no comparison other than equality';

    -- No range is skipped for a value that occurs in all of them.
    ASSERT NOT EXISTS (SELECT FROM nodes('SELECT FROM events WHERE kind = 5') WHERE index IS NOT NULL), 'no index';
    CREATE INDEX everywhere ON events USING brin (kind int4_bloom_ops) WITH (pages_per_range = 16);
    SET LOCAL enable_seqscan = off;
    ASSERT (SELECT max(blocks) >= pages FROM nodes('SELECT FROM events WHERE kind = 5') WHERE node LIKE '%Heap%'),
        'it reads the whole table';
END $$;
