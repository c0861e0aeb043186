-- Keys cannot be deleted from a filter, but whole filters can: one filter per day, and the union of the last seven.
-- doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

-- All sized for a week's keys: filters with the same parameters are ORed, and the union is as large as one of them.
CREATE TABLE seen (day date PRIMARY KEY, visitors bloom NOT NULL);
INSERT INTO seen
SELECT date '2025-06-01' + day, bloom_agg(10000 * day + i, 0.001, 7 * 2000)
  FROM generate_series(0, 9) day, generate_series(1, 2000) i GROUP BY day;

-- The union is stored, and computed again at the end of each day.
CREATE TABLE last_week (until date NOT NULL, visitors bloom NOT NULL);
INSERT INTO last_week
SELECT max(day), bloom_union_agg(visitors) FROM seen WHERE day > date '2025-06-10' - 7;
DELETE FROM seen WHERE day <= date '2025-06-10' - 7;

SELECT until, bloom_cardinality(visitors) AS visitors, bloom_fpp(visitors)::numeric(6, 5) AS rate,
       pg_size_pretty(pg_column_size(visitors)::bigint) AS size
  FROM last_week;

DO $$
DECLARE
    n bigint;
BEGIN
    ASSERT (SELECT count(*) FROM seen) = 7, 'seven days are left';
    ASSERT (SELECT bool_and(visitors @> (10000 * day + i))
              FROM last_week, generate_series(3, 9) day, generate_series(1, 2000) i), 'all of the week are found';
    SELECT count(*) INTO n FROM last_week, generate_series(0, 2) day, generate_series(1, 2000) i
     WHERE visitors @> (10000 * day + i);
    ASSERT n <= 6 + 4 * sqrt(6), n || ' of 6,000 earlier ones are';
    ASSERT (SELECT layers = 1 AND i.bytes < 1.01 * z.bytes
              FROM last_week, bloom_info(visitors) i, bloom_sizing(0.001, 14000) z), 'the union has one layer';
    ASSERT (SELECT abs(bloom_cardinality(visitors) - 14000) < 300 FROM last_week), 'and counts the week';
END $$;
