-- A filter of spam senders that excludes known customers. doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE spammers AS
SELECT 'user' || i || '@spam' || i % 97 || '.example' AS address FROM generate_series(1, 20000) i;
CREATE TABLE customers AS
SELECT 'user' || i || '@customer' || i % 89 || '.example' AS address FROM generate_series(1, 20000) i;
INSERT INTO customers VALUES ('user5@spam5.example');   -- a customer who does send spam

-- Finds the false positives among known customers by the exact list, and excludes them.
CREATE FUNCTION spam_filter() RETURNS bloom LANGUAGE sql AS $$
    SELECT bloom_exclude_all(f, ARRAY(
               SELECT address FROM customers c
                WHERE f @> address AND NOT EXISTS (SELECT FROM spammers s WHERE s.address = c.address)))
      FROM (SELECT bloom_agg(address, 0.001, 25000) AS f FROM spammers) x
$$;
CREATE TABLE mail (spam bloom NOT NULL);
INSERT INTO mail SELECT spam_filter();

SELECT excluded, current_fpp::numeric(6, 5), pg_size_pretty(bytes) AS size FROM mail, bloom_info(spam);

DO $$
DECLARE
    n bigint;
    innocent text;
BEGIN
    ASSERT (SELECT bool_and(spam @> address) FROM spammers, mail), 'every spammer is found';
    ASSERT (SELECT count(*) = 1 FROM customers, mail WHERE spam @> address), 'one customer is, and rightly';
    SELECT excluded INTO n FROM mail, bloom_info(spam);
    ASSERT n BETWEEN 1 AND 20 + 4 * sqrt(20), n || ' exclusions';
    -- Adding the address of a customer who sends spam removes its exclusion.
    SELECT address INTO innocent
      FROM customers, (SELECT bloom_agg(address, 0.001, 25000) AS f FROM spammers) x, mail
     WHERE f @> address AND NOT spam @> address LIMIT 1;
    UPDATE mail SET spam = bloom_add(spam, innocent);
    ASSERT (SELECT spam @> innocent FROM mail), 'added, it is found';
    ASSERT (SELECT excluded = n - 1 FROM mail, bloom_info(spam)), 'one exclusion fewer';
END $$;
