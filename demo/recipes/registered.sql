-- Is this phone number registered? doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

-- Sizes in MiB, compared with a standard Bloom filter
SELECT n, fpp, round(bytes / 1048576.0, 2) AS size, round(standard_bits / 8388608.0, 2) AS standard
  FROM unnest(ARRAY[1000000, 10000000, 100000000]) n, unnest(ARRAY[1e-4, 1e-7]) fpp, bloom_sizing(fpp, n)
 ORDER BY fpp DESC, n;

-- Phone numbers as integers, +49 150 1xxxxxxx: every third one is registered.
CREATE TABLE subscribers (phone bigint PRIMARY KEY);
INSERT INTO subscribers SELECT 491501000000000 + 3 * i FROM generate_series(1, 50000) i;
CREATE TABLE phones (fpp float8, registered bloom NOT NULL);
INSERT INTO phones
SELECT 1e-4, bloom_agg(phone, 1e-4) FROM subscribers
UNION ALL
SELECT 1e-7, bloom_agg(phone, 1e-7) FROM subscribers;

SELECT fpp, pg_size_pretty(pg_column_size(registered)::bigint) AS filter,
       pg_size_pretty(pg_relation_size('subscribers_pkey')) AS index
  FROM phones;

DO $$
DECLARE
    p record;
    n bigint;
BEGIN
    ASSERT (SELECT max(bytes / (standard_bits / 8)) < 1.06 AND min(bytes / (standard_bits / 8)) >= 1
              FROM unnest(ARRAY[1000000, 10000000, 100000000]) keys, unnest(ARRAY[1e-4, 1e-7]) rate,
                   bloom_sizing(rate, keys)), 'sizes are within 6 % of a standard filter';
    FOR p IN SELECT * FROM phones LOOP
        ASSERT (SELECT bool_and(p.registered @> phone) FROM subscribers), 'every number is found';
        SELECT count(*) INTO n FROM generate_series(491501000000000, 491501000300000) AS g (phone)
         WHERE p.registered @> phone AND NOT EXISTS (SELECT FROM subscribers s WHERE s.phone = g.phone);
        ASSERT n <= 250000 * p.fpp + 4 * sqrt(250000 * p.fpp), n || ' of 250,000 others are found at ' || p.fpp;
    END LOOP;
END $$;
