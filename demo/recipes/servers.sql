-- One filter of a table distributed over several servers: each builds a filter of its part, and these are united.
-- doc/COOKBOOK.md explains it. Here a server is a schema; test/tap/010_fdw.pl has three servers. Run in demo/.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
ANALYZE packages;

-- On each server: the same fpp and an "expected" large enough for the union.
CREATE TABLE parts (server int PRIMARY KEY, urls bloom NOT NULL);
INSERT INTO parts
SELECT bloom_shard(name, 4), bloom_agg(url, 0.01, 40000) FROM packages GROUP BY 1;

-- Transfer by COPY, as text or binary; a driver that fetches and sends the column does the same.
CREATE TABLE arrived (LIKE parts);
\copy parts TO PROGRAM 'gzip >"${TMPDIR:-/tmp}/bloomfilter_parts.$PPID.gz"' (FORMAT binary)
\copy arrived FROM PROGRAM 'f="${TMPDIR:-/tmp}/bloomfilter_parts.$PPID.gz"; gzip -dc <"$f"; rm "$f"' (FORMAT binary)

CREATE TABLE united (urls bloom NOT NULL);
INSERT INTO united SELECT bloom_union_agg(urls) FROM arrived;
SELECT bloom_cardinality(urls) AS urls, bloom_fpp(urls)::numeric(6, 5) AS rate,
       pg_size_pretty(pg_column_size(urls)::bigint) AS size
  FROM united;

-- A serialized state of the aggregate is the image of a filter.
CREATE AGGREGATE bloom_partial(anyelement, float8, float8) (
    SFUNC = bloom_agg_transfn, STYPE = internal, FINALFUNC = bloom_agg_serialfn, PARALLEL = SAFE);

DO $$
BEGIN
    ASSERT (SELECT count(*) FROM arrived) = 4, 'four parts';
    ASSERT (SELECT bool_and(a.urls = p.urls) FROM arrived a JOIN parts p USING (server)), 'they arrive as they are';
    ASSERT (SELECT urls = (SELECT bloom_agg(url, 0.01, 40000) FROM packages) FROM united),
        'the union is, byte for byte, the filter of the whole table';
    ASSERT (SELECT bloom_union_agg(state::bloom) = (SELECT urls FROM united)
              FROM (SELECT bloom_partial(url, 0.01, 40000) AS state
                      FROM packages GROUP BY bloom_shard(name, 4)) x), 'so is that of the states';
    ASSERT (SELECT (bloom_info(bloom_union_agg(f))).layers
              FROM (SELECT bloom_agg(url) AS f FROM packages GROUP BY bloom_shard(name, 4)) x) > 1,
        'filters without expected have separate layers in a union';
END $$;

-- A join with a table on another server that transfers only the rows that pass a filter. doc/COOKBOOK.md explains
-- it. Here both servers are the same one; test/tap/010_fdw.pl has three servers. Run in demo/.
RESET ALL;
CREATE SCHEMA remote_join;
SET search_path = remote_join, public;
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'postgres_fdw' \gset
\if :missing
\echo postgres_fdw is not installed
\quit
\endif
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
DO $$
BEGIN
    EXECUTE format('CREATE SERVER archive FOREIGN DATA WRAPPER postgres_fdw
                        OPTIONS (host %L, port %L, dbname %L, extensions ''bloomfilter'')',
                   split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'),
                   current_database());
    EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER archive OPTIONS (user %L)', current_user);
END $$;

CREATE TABLE packages (name text, section text, url text);
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
ANALYZE packages;
CREATE FOREIGN TABLE archived (name text, section text, url text) SERVER archive OPTIONS (table_name 'packages');
CREATE TABLE watched AS SELECT DISTINCT url FROM packages WHERE section = 'database';
ANALYZE watched;

CREATE VIEW plain AS
SELECT a.name, url FROM archived a JOIN watched USING (url);
CREATE VIEW filtered AS
SELECT a.name, url FROM archived a JOIN watched USING (url)
 WHERE bloom_contains((SELECT bloom_agg(url) FROM watched), a.url);

EXPLAIN (VERBOSE, COSTS OFF) TABLE filtered;

-- The rows received from the other server, and the remote query
CREATE FUNCTION travel(query text, OUT n bigint, OUT remote_sql text) LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT json) ' || query INTO plan;
    SELECT sum((node ->> 'Actual Rows')::numeric), string_agg(node ->> 'Remote SQL', '; ') INTO n, remote_sql
      FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Node Type" == "Foreign Scan")') node;
END $$;

SELECT t.n AS rows, remote_sql FROM unnest(ARRAY['TABLE plain', 'TABLE filtered']) query, travel(query) t;

DO $$
DECLARE
    matching bigint := (SELECT count(*) FROM packages JOIN watched USING (url));
    n bigint;
BEGIN
    ASSERT (SELECT travel.n FROM travel('TABLE plain')) = 59227, 'without a filter, all rows travel';
    SELECT travel.n INTO n FROM travel('TABLE filtered');
    ASSERT n BETWEEN matching AND matching + 0.01 * 59227 * 2, n || ' rows for ' || matching;
    ASSERT (SELECT remote_sql LIKE '%bloom_contains(%' FROM travel('TABLE filtered')), 'the filter is probed there';
    ASSERT matching = (SELECT count(*) FROM filtered), 'no row is missing';
    ASSERT NOT EXISTS (TABLE plain EXCEPT ALL TABLE filtered), 'the result is the same';
END $$;
