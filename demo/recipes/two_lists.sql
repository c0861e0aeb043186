-- Which URLs are in both of two lists that do not fit into memory? doc/COOKBOOK.md explains it. Here each has 20,000
-- URLs of 64 bytes; psql -v n=... chooses another number.
CREATE EXTENSION IF NOT EXISTS bloomfilter;
\if :{?n} \else \set n 20000 \endif

-- A tenth of each list is in the other.
CREATE UNLOGGED TABLE list_a AS
SELECT 'https://www.example.org/' || md5(i::text) || lpad(to_hex(i), 8, '0') AS url FROM generate_series(1, :n) i;
CREATE UNLOGGED TABLE list_b AS
SELECT 'https://www.example.org/' || md5(i::text) || lpad(to_hex(i), 8, '0') AS url
  FROM generate_series(:n - :n / 10 + 1, 2 * :n - :n / 10) i;
ANALYZE list_a, list_b;

-- The rows of b that may be in a, then the rows of a that may be in these. The join is exact, over a tenth of the
-- rows. The second filter has another seed, because its keys have passed the first filter: those that are false
-- positives share bits with keys of a, which would then pass the second filter more often.
CREATE UNLOGGED TABLE filter_a AS SELECT bloom_agg(url, 0.01, :n) AS f FROM list_a;
ALTER TABLE filter_a ALTER f SET NOT NULL;
CREATE UNLOGGED TABLE left_b AS SELECT url FROM list_b WHERE (SELECT f FROM filter_a) @> url;
CREATE UNLOGGED TABLE filter_b AS SELECT bloom_agg(url, 0.01, NULL, 1) AS f FROM left_b;
ALTER TABLE filter_b ALTER f SET NOT NULL;
CREATE UNLOGGED TABLE left_a AS SELECT url FROM list_a WHERE (SELECT f FROM filter_b) @> url;
ANALYZE left_a, left_b;
CREATE UNLOGGED TABLE in_both AS SELECT url FROM left_a JOIN left_b USING (url);

SELECT (SELECT count(*) FROM left_a) AS left_a, (SELECT count(*) FROM left_b) AS left_b, count(*) AS in_both
  FROM in_both;

SELECT set_config('recipe.n', :'n', false) \gset
DO $$
DECLARE
    n bigint := current_setting('recipe.n');
BEGIN
    ASSERT (SELECT bool_and(length(url) = 64) FROM list_a), '64 bytes';
    ASSERT (SELECT count(*) FROM in_both) = n / 10, 'as many as there are';
    ASSERT NOT EXISTS ((SELECT url FROM list_a INTERSECT SELECT url FROM list_b) EXCEPT TABLE in_both), 'just those';
    ASSERT (SELECT count(*) FROM left_b) <= 0.109 * n + 4 * sqrt(0.009 * n), 'a tenth of b and 1 %';
    ASSERT (SELECT count(*) FROM left_a) <= 0.109 * n + 4 * sqrt(0.009 * n), 'a tenth of a and 1 %';
END $$;
