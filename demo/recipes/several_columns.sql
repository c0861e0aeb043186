-- Keys of several columns: arrays of columns of one type, texts of others. doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

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
