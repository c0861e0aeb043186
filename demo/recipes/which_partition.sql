-- Which day may contain this key? One filter per day is probed, so that only matching partitions are scanned.
-- doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

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
