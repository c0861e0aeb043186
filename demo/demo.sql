-- Demonstrates bloomfilter on 59,227 package descriptions. scripts/demo runs this in a temporary server. To run it in
-- your database: cd demo && psql -X -f demo.sql. It creates tables and a function in the current schema.
\set QUIET on
\set ON_ERROR_STOP on
\pset pager off
\pset border 2
\pset linestyle unicode
\pset footer off
\pset null '(null)'
\if :{?bold} \else \set bold '' \set plain '' \endif
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;    -- for plans that are easy to read
SET jit = off;

CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE FUNCTION holds(claim boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF claim IS NOT TRUE THEN
        RAISE EXCEPTION 'a claim of this demo does not hold';
    END IF;
    RETURN claim;
END $$;
\set QUIET off
\set ECHO queries

\echo
\echo A Bloom filter tells whether a key was added, from about ten bits per key, for keys of any length.
\echo '"No" is certain; "yes" is wrong at a rate that you choose, 1 % by default.'
\echo
\echo Each statement is printed before its result. The argument of holds(...) is a claim: the demo stops
\echo with an error if it is not true.
\echo
\echo
\echo :bold'1. A column and its filter':plain
\echo
\echo The packages of Debian 12 that have a home page: name, section, URL.
\echo
CREATE TABLE packages (name text, section text, url text);
\echo '\\copy packages FROM PROGRAM \'gzip -dc debian-packages.tsv.gz\''
\set ECHO none
\copy packages FROM PROGRAM 'gzip -dc debian-packages.tsv.gz'
\set QUIET on
ANALYZE packages;
\set QUIET off
\set ECHO queries
\echo
SELECT count(*), count(DISTINCT url) AS urls, count(DISTINCT section) AS sections
  FROM packages;

\echo
\echo An aggregate builds the filter. It counts the distinct keys and sizes the filter for them.
\echo
CREATE TABLE filters (urls bloom NOT NULL);
INSERT INTO filters SELECT bloom_agg(url) FROM packages;
\echo
CREATE INDEX packages_url ON packages (url);
\echo
SELECT (SELECT pg_size_pretty(sum(pg_column_size(url))) FROM packages) AS the_column,
       pg_size_pretty(pg_relation_size('packages_url')) AS its_btree_index,
       pg_size_pretty(pg_column_size(urls)::bigint) AS its_filter
  FROM filters;

\echo
\echo The properties of the filter:
\echo
SELECT (bloom_info(urls)).* FROM filters
\gx

\echo
\echo The filter estimates the number of distinct keys, and it finds every one of them.
\echo
SELECT bloom_cardinality(f.urls) AS estimated, e.n AS exact,
       round(100.0 * (bloom_cardinality(f.urls) - e.n) / e.n, 2) AS "off by %",
       holds(abs(bloom_cardinality(f.urls) - e.n) < 0.02 * e.n) AS "within 2 %"
  FROM filters f, (SELECT count(DISTINCT url) AS n FROM packages) e;
\echo
SELECT count(*) FILTER (WHERE f.urls @> p.url) AS found, count(*) AS of,
       holds(bool_and(f.urls @> p.url)) AS "every one"
  FROM filters f, packages p;

\echo
\echo
\echo :bold'2. Which of these URLs are new?':plain
\echo
\echo A crawl list: each known URL, and for each of them one new URL.
\echo
CREATE TABLE crawl AS
  SELECT url, true AS known FROM packages GROUP BY url
  UNION ALL
  SELECT url || '?page=2', false FROM packages GROUP BY url;
\echo
SELECT c.known, count(*) AS urls,
       count(*) FILTER (WHERE NOT f.urls @> c.url) AS "certainly new",
       count(*) FILTER (WHERE f.urls @> c.url) AS "look up to be sure"
  FROM crawl c, filters f
 GROUP BY c.known ORDER BY c.known DESC;

\echo
\echo No known URL is reported as new, and 99 of 100 new ones never reach the index. The rest are false
\echo positives: no more than requested, within four standard deviations.
\echo
SELECT count(*) FILTER (WHERE f.urls @> c.url) AS false_positives,
       round(avg((f.urls @> c.url)::int), 4) AS rate, 0.01 AS requested,
       holds(avg((f.urls @> c.url)::int) <= 0.01 + 4 * sqrt(0.01 * 0.99 / count(*)))
       AS "no more than that"
  FROM crawl c, filters f
 WHERE NOT c.known;

\echo
\echo
\echo :bold'3. A filter ahead of a join':plain
\echo
\echo A log of visits to all these pages. The query selects the home pages of databases, a few hundred.
\echo
CREATE TABLE visits AS SELECT url, visitor FROM crawl, generate_series(1, 10) AS visitor;
\set ECHO none
\set QUIET on
ANALYZE visits;
\set QUIET off
\set ECHO queries
\echo
\echo The plain query groups the whole log, then joins:
\echo
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF)
SELECT p.name, v.visits
  FROM packages p
  JOIN (SELECT url, count(*) AS visits FROM visits GROUP BY url) v USING (url)
 WHERE p.section = 'database';

\echo
\echo 'With a filter of the few wanted keys, built in the query, most of the log is dropped in the scan:'
\echo
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF)
SELECT p.name, v.visits
  FROM packages p
  JOIN (SELECT url, count(*) AS visits FROM visits
         WHERE bloom_contains((SELECT bloom_agg(url) FROM packages WHERE section = 'database'), url)
         GROUP BY url) v USING (url)
 WHERE p.section = 'database';

\echo
\echo 'The join removes the false positives, so the result is the same:'
\echo
CREATE TEMP TABLE plain AS
SELECT p.name, v.visits
  FROM packages p
  JOIN (SELECT url, count(*) AS visits FROM visits GROUP BY url) v USING (url)
 WHERE p.section = 'database';
\echo
CREATE TEMP TABLE filtered AS
SELECT p.name, v.visits
  FROM packages p
  JOIN (SELECT url, count(*) AS visits FROM visits
         WHERE bloom_contains((SELECT bloom_agg(url) FROM packages WHERE section = 'database'), url)
         GROUP BY url) v USING (url)
 WHERE p.section = 'database';
\echo
SELECT (SELECT count(*) FROM plain) AS plain, (SELECT count(*) FROM filtered) AS filtered,
       holds(NOT EXISTS ((TABLE plain EXCEPT ALL TABLE filtered)
                         UNION ALL
                         (TABLE filtered EXCEPT ALL TABLE plain))) AS "same rows";

\echo
\echo
\echo :bold'4. Filters stored in a table':plain
\echo
\echo 'One filter per day, all sized for 40,000 keys so that they can be ORed. The days overlap.'
\echo
CREATE TABLE seen (day date PRIMARY KEY, urls bloom NOT NULL);
\echo
INSERT INTO seen
SELECT '2025-06-01', bloom_agg(url, 0.01, 40000) FROM packages WHERE name < 'm';
\echo
INSERT INTO seen
SELECT '2025-06-02', bloom_agg(url, 0.01, 40000) FROM packages WHERE name > 'l';
\echo
\echo Filters with the same fpp and expected are ORed: the union is no larger than its parts.
\echo
SELECT day::text, bloom_cardinality(urls) AS urls, round(bloom_fpp(urls)::numeric, 5) AS rate_now,
       pg_size_pretty(pg_column_size(urls)::bigint) AS size
  FROM seen
 UNION ALL
SELECT 'both', bloom_cardinality(u), round(bloom_fpp(u)::numeric, 5),
       pg_size_pretty(pg_column_size(u)::bigint)
  FROM (SELECT bloom_union_agg(urls) AS u FROM seen) s
 ORDER BY 1;
\echo
\echo The union of both days has the same bytes as a filter built from all URLs.
\echo
SELECT holds((a.urls | b.urls) = (SELECT bloom_agg(url, 0.01, 40000) FROM packages))
       AS "same bytes"
  FROM seen a, seen b
 WHERE a.day = '2025-06-01' AND b.day = '2025-06-02';

\echo
\echo Add a key to the second day, and look up the days on which a URL was seen:
\echo
UPDATE seen SET urls = bloom_add(urls, 'https://www.postgresql.org/docs/')
 WHERE day = '2025-06-02';
\echo
SELECT day, urls @> 'https://www.postgresql.org/docs/' AS docs,
       urls @> 'https://jdbc.postgresql.org/' AS jdbc,
       'https://odbc.postgresql.org/' <@ urls AS odbc,
       'https://www.postgresql.org/never/seen' <@ urls AS never
  FROM seen ORDER BY day;

\echo
\echo
\echo :bold'5. A filter for each group':plain
\echo
\echo The hosts of each section: small groups have small filters, all of them in a few pages.
\echo
CREATE TABLE hosts (section text, hosts bloom NOT NULL);
INSERT INTO hosts
SELECT section, bloom_agg(substring(url FROM '://([^/:]+)'))
  FROM packages GROUP BY section;
\echo
SELECT count(*) AS filters, sum(bloom_cardinality(hosts)) AS keys,
       pg_size_pretty(sum(pg_column_size(hosts))) AS together
  FROM hosts;
\echo
\echo The sections that contain this host:
\echo
SELECT section FROM hosts WHERE hosts @> 'www.w3.org' ORDER BY section;
\echo
\echo The table gives the same result, only slower. A false positive would add a section; none is ever
\echo missing.
\echo
SELECT DISTINCT section, holds(h.hosts @> 'www.w3.org') AS "in the filter"
  FROM packages JOIN hosts h USING (section)
 WHERE url LIKE '%://www.w3.org/%' ORDER BY section;
\echo

\echo
\echo :bold'6. New keys, and common keys of two days':plain
\echo
\echo A batch of candidates: bloom_new_keys returns those that are certainly new, each once. bloom_add_all
\echo adds all of them in one call.
\echo
CREATE TABLE batch AS
  SELECT array_agg(url ORDER BY url) AS candidates
    FROM (SELECT url FROM crawl ORDER BY md5(url) LIMIT 10000) c;
\echo
SELECT cardinality(candidates) AS candidates,
       cardinality(bloom_new_keys(urls, candidates)) AS "certainly new",
       holds(bloom_contains_all(bloom_add_all(urls, candidates), candidates)) AS "all in afterwards"
  FROM batch, filters;

\echo
\echo For one key, bloom_try_add returns the new filter and whether the key was new:
\echo
SELECT added, filter @> 'https://example.org/' AS known_now
  FROM filters, bloom_try_add(urls, 'https://example.org/');

\echo
\echo The number of URLs seen on both days; the filters estimate it to within a few percent.
\echo
SELECT bloom_intersection_cardinality(a.urls, b.urls) AS estimated,
       (SELECT count(*) FROM (SELECT url FROM packages WHERE name < 'm'
                              INTERSECT
                              SELECT url FROM packages WHERE name > 'l') both_days) AS exact
  FROM seen a, seen b
 WHERE a.day = '2025-06-01' AND b.day = '2025-06-02';

\echo
\echo The space for ten billion URLs at a rate of 0.0001, as a number of filters:
\echo
SELECT filters, pg_size_pretty(bytes) AS together, round(bits_per_key::numeric, 2) AS bits_per_key,
       round(standard_bits / 1e10, 2) AS standard, bloom_shard('https://example.org/', filters) AS shard
  FROM bloom_sizing(0.0001, 10000000000);
\echo

\echo
\echo :bold'7. Joins that filter by themselves':plain
\echo
\echo The URLs of the crawler that belong to packages of one section. With this setting, the join builds
\echo a filter of the section, and the scan of the URLs drops the others.
\echo
ANALYZE;
SET bloomfilter.join_filters = off;
SELECT count(*) AS without_filter FROM crawl
 WHERE url IN (SELECT url FROM packages WHERE section = 'games') \gset
SET bloomfilter.join_filters = on;
SELECT count(*), holds(count(*) = :without_filter) AS "same as without"
  FROM crawl WHERE url IN (SELECT url FROM packages WHERE section = 'games');
\echo
EXPLAIN (COSTS OFF)
SELECT count(*) FROM crawl WHERE url IN (SELECT url FROM packages WHERE section = 'games');

\echo
\echo :bold'8. A filter that maintains itself':plain
\echo
\echo An index of access method bloomfilter is a filter of a column. Every INSERT, by any number of sessions,
\echo adds to it; functions and queries look keys up.
\echo
CREATE TABLE pages (url text);
\echo
CREATE INDEX visited ON pages USING bloomfilter (url) WITH (fpp = 0.001);
\echo
INSERT INTO pages SELECT DISTINCT url FROM packages WHERE name < 'm';
\echo
SELECT bloom_index_contains('visited', 'https://git-scm.com/') AS git,
       bloom_index_contains('visited', 'https://www.postgresql.org/never/seen') AS never,
       bool_and(holds(bloom_index_contains('visited', url))) AS "all found"
  FROM pages;
\echo
\echo A crawler adds what is new. No statement waits for another, and there is nothing to rewrite.
\echo
WITH added AS (
  INSERT INTO pages
  SELECT DISTINCT url FROM packages WHERE NOT bloom_index_contains('visited', url)
  RETURNING url)
SELECT count(*) AS added,
       holds(count(*) BETWEEN 0.995 * (SELECT count(DISTINCT url) FROM packages
                                        WHERE url NOT IN (SELECT url FROM packages WHERE name < 'm'))
                      AND 30088) AS "nearly all of the others"
  FROM added;
\echo
SELECT layers, pages, cardinality, current_fpp < 0.001 AS "within fpp" FROM bloom_index_info('visited');
\echo
\echo Queries by a key ask it, too: of a table with a partition for each section, only those partitions are
\echo planned and read that may have the key.
\echo
CREATE TABLE by_section (LIKE packages) PARTITION BY LIST (section);
\set ECHO none
\set QUIET on
SELECT format('CREATE TABLE by_section_%s PARTITION OF by_section FOR VALUES IN (%L)', row_number() OVER (), section)
  FROM packages GROUP BY section ORDER BY section \gexec
\set QUIET off
\set ECHO queries
INSERT INTO by_section SELECT * FROM packages;
\echo
CREATE INDEX ON by_section USING bloomfilter (url) WITH (fpp = 0.0001);
\echo
EXPLAIN (COSTS OFF) SELECT name, section FROM by_section WHERE url = 'https://jdbc.postgresql.org/';
\echo
SELECT name, section, holds(section IN ('java', 'doc')) AS "of two partitions"
  FROM by_section WHERE url = 'https://jdbc.postgresql.org/';
\echo
\echo Recipes for whole jobs are in doc/INDEX.md and doc/COOKBOOK.md.
