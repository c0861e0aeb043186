-- One filter of a table distributed over several servers: each builds a filter of its part, and these are united.
-- doc/COOKBOOK.md explains it. Here a server is a schema; test/tap/013_fdw.pl has three servers. Run in demo/.
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
