-- A stored filter as a condition of a scan: as a scalar subquery, not as a table in FROM. doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TABLE clients (id bigint PRIMARY KEY, vip boolean NOT NULL);
INSERT INTO clients SELECT i, i % 100 = 0 FROM generate_series(1, 20000) i;
CREATE TABLE calls (id bigint NOT NULL, client bigint NOT NULL);
INSERT INTO calls SELECT i, i % 20000 + 1 FROM generate_series(1, 200000) i;
CREATE TABLE filters (name text PRIMARY KEY, f bloom NOT NULL);
INSERT INTO filters SELECT 'vip', bloom_agg(id) FROM clients WHERE vip;
ANALYZE clients, calls, filters;

CREATE VIEW unfiltered AS
SELECT calls.id FROM calls JOIN clients ON clients.id = calls.client WHERE vip;
CREATE VIEW subquery AS
SELECT calls.id FROM calls JOIN clients ON clients.id = calls.client
 WHERE vip AND (SELECT f FROM filters WHERE name = 'vip') @> calls.client;
CREATE VIEW from_list AS
SELECT calls.id FROM calls JOIN clients ON clients.id = calls.client, filters
 WHERE vip AND filters.name = 'vip' AND filters.f @> calls.client;
CREATE VIEW from_cte AS
WITH vip AS MATERIALIZED (SELECT f FROM filters WHERE name = 'vip')
SELECT calls.id FROM calls JOIN clients ON clients.id = calls.client, vip
 WHERE clients.vip AND f @> calls.client;
CREATE VIEW from_subquery AS
SELECT calls.id
  FROM calls JOIN clients ON clients.id = calls.client, (SELECT f FROM filters WHERE name = 'vip' OFFSET 0) vip
 WHERE clients.vip AND f @> calls.client;

-- A plan without costs, one row per line
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;

SELECT plan('TABLE subquery') AS "a scalar subquery";
SELECT plan('TABLE from_list') AS "a table in FROM";

-- The number of rows that the scan of calls returns
CREATE FUNCTION scanned(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN (SELECT node ->> 'Actual Rows'
              FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Relation Name" == "calls")') node)::numeric;
END $$;

SELECT query, scanned('TABLE ' || query) AS "rows that reach the join"
  FROM unnest(ARRAY['unfiltered', 'from_list', 'subquery']) query;

DO $$
BEGIN
    -- The plans: Filter below the join, or Join Filter above it
    ASSERT EXISTS (SELECT FROM plan('TABLE subquery') line WHERE line ~ '^ +Filter: .*@> client\)'),
        'the subquery is a filter of a scan';
    ASSERT NOT EXISTS (SELECT FROM plan('TABLE subquery') line WHERE line ~ 'Join Filter'), 'and no join filter';
    ASSERT EXISTS (
        SELECT FROM plan('TABLE from_list') line WHERE line ~ 'Join Filter: \(filters\.f @> calls\.client\)'),
        'the table in FROM is a join filter';
    ASSERT NOT EXISTS (SELECT FROM plan('TABLE from_list') line WHERE line ~ '^ +Filter: .*@>'),
        'and no filter of a scan';

    ASSERT (SELECT count(*) = 2 FROM plan('TABLE from_cte') line WHERE line ~ 'Join Filter|-> +CTE Scan on vip'),
        'so is a CTE';
    ASSERT EXISTS (SELECT FROM plan('TABLE from_subquery') line WHERE line ~ 'Join Filter'), 'and a subquery in FROM';

    -- The rows that they process
    ASSERT scanned('TABLE from_list') = 200000, 'every row reaches the join';
    ASSERT scanned('TABLE subquery') BETWEEN 2000 AND 2000 + 0.02 * 200000, scanned('TABLE subquery') || ' rows';
    ASSERT NOT EXISTS (TABLE unfiltered EXCEPT ALL TABLE subquery)
        AND NOT EXISTS (TABLE subquery EXCEPT ALL TABLE unfiltered),
        'the result is the same';

    -- In a parallel plan the scan filters in the workers. In version 15 the join filter is above Gather, in the leader.
    SET LOCAL max_parallel_workers_per_gather = 2;
    SET LOCAL parallel_setup_cost = 0;
    SET LOCAL parallel_tuple_cost = 0;
    SET LOCAL min_parallel_table_scan_size = 0;
    ASSERT (SELECT min(n) FILTER (WHERE line ~ 'Gather') < min(n) FILTER (WHERE line ~ ' Filter: .*@> client\)')
              FROM plan('SELECT count(*) FROM subquery') WITH ORDINALITY p (line, n)), 'the workers filter';
    ASSERT current_setting('server_version_num')::int >= 160000
        OR (SELECT min(n) FILTER (WHERE line ~ 'Join Filter') < min(n) FILTER (WHERE line ~ 'Gather')
              FROM plan('SELECT count(*) FROM from_list') WITH ORDINALITY p (line, n)), 'the leader filters';
END $$;

-- Finds the new rows of a batch exactly and adds the batch to the filter; data: the home pages of Debian's packages.
-- doc/COOKBOOK.md explains it. Run in demo/.
RESET ALL;
CREATE SCHEMA batch;
SET search_path = batch, public;
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
