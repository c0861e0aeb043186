-- PostgreSQL's Bloom filters, contrib/bloom and the bloom operator classes of BRIN, compared with a filter of this
-- extension: verifies the statements of doc/REFERENCE.md, "What others do better".
CREATE EXTENSION IF NOT EXISTS bloomfilter;
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
