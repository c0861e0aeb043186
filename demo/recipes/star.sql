-- A star schema with monthly partitions, and the same facts in one table with a BRIN index: of one month, a filter of the
-- calendar leaves one partition, or few blocks, to be read. doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;
LOAD 'bloomfilter';
SET max_parallel_workers_per_gather = 0;

CREATE TABLE calendar AS
SELECT day::date, extract(year FROM day)::int AS year, date_trunc('month', day)::date AS month,
       extract(isodow FROM day)::int AS weekday
  FROM generate_series('1976-01-01', '2025-12-31', '1 day'::interval) day;
ALTER TABLE calendar ADD PRIMARY KEY (day);
CREATE TABLE products AS SELECT i AS product, i % 200 AS brand FROM generate_series(0, 999) i;
ALTER TABLE products ADD PRIMARY KEY (product);

CREATE TABLE store_sales (day date, product int, amount bigint) PARTITION BY RANGE (day);
DO $$
BEGIN
    FOR m IN 1 .. 12 LOOP
        EXECUTE format('CREATE TABLE store_sales_%s PARTITION OF store_sales FOR VALUES FROM (%L) TO (%L)', m,
                       make_date(2025, m, 1), make_date(2025, m, 1) + interval '1 month');
    END LOOP;
END $$;
INSERT INTO store_sales
SELECT day, (n * 7 + extract(doy FROM day)::int) % 1000, n FROM calendar, generate_series(1, 200) n WHERE year = 2025;

-- In the order of days, which the index needs to be of use
CREATE TABLE sales_log AS SELECT * FROM store_sales ORDER BY day;
CREATE INDEX ON sales_log USING brin (day) WITH (pages_per_range = 8);
VACUUM ANALYZE calendar, products, store_sales, sales_log;

-- What a query leaves unread, as EXPLAIN ANALYZE tells it
CREATE FUNCTION unread(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
        IF line ~ 'Scans Skipped: [1-9]' OR line ~ 'Blocks Read' THEN
            RETURN btrim(line);
        END IF;
    END LOOP;
    RETURN 'nothing';
END $$;

SET bloomfilter.join_filters = on;
SET bloomfilter.join_planning_cost = 1000;
DO $$
DECLARE
    star text := 'SELECT count(*), sum(amount) FROM %s JOIN products USING (product) JOIN calendar USING (day)
                   WHERE month = ''2025-03-01'' AND brand = 7';
    fact text;
    said text;
    counted bigint;
    expected bigint;
BEGIN
    -- A join of the two alone is a hash join, and the filter is there.
    said := unread('SELECT sum(amount) FROM store_sales JOIN calendar USING (day) WHERE month = ''2025-03-01''');
    ASSERT said ~ '^Scans Skipped: 1[01] of 12\M', said;

    FOREACH fact IN ARRAY '{store_sales,sales_log}'::text[] LOOP
        SET LOCAL bloomfilter.join_planning = off;
        ASSERT unread(format(star, fact)) = 'nothing', fact;
        EXECUTE format(star, fact) INTO expected;

        SET LOCAL bloomfilter.join_planning = on;
        said := unread(format(star, fact));
        ASSERT said <> 'nothing', fact;
        RAISE NOTICE '%: %', fact, said;
        EXECUTE format(star, fact) INTO counted;
        ASSERT counted = expected, fact;
    END LOOP;

    -- Wednesdays are in each month.
    ASSERT unread(format(replace(star, 'month = ''2025-03-01''', 'weekday = 3'), 'store_sales')) = 'nothing';
END $$;
