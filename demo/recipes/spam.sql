-- A filter of spam senders, and a whitelist of the known customers that it matches. doc/COOKBOOK.md explains it.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE spammers AS
SELECT 'user' || i || '@spam' || i % 97 || '.example' AS address FROM generate_series(1, 20000) i;
CREATE TABLE customers AS
SELECT 'user' || i || '@customer' || i % 89 || '.example' AS address FROM generate_series(1, 20000) i;
INSERT INTO customers VALUES ('user5@spam5.example');   -- a customer who does send spam

CREATE TABLE mail (spam bloom NOT NULL);
INSERT INTO mail SELECT bloom_agg(address, 0.001, 25000) FROM spammers;

-- The false positives among known customers, by the exact list.
CREATE TABLE whitelist (address text PRIMARY KEY);
INSERT INTO whitelist
SELECT address FROM customers, mail WHERE spam @> address
EXCEPT SELECT address FROM spammers;

CREATE FUNCTION is_spam(a text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT spam @> a AND NOT EXISTS (SELECT FROM whitelist WHERE address = a) FROM mail
$$;

-- The same with an index in place of the filter.
CREATE TABLE senders AS SELECT address, true AS is_spam FROM spammers UNION ALL SELECT address, false FROM customers;
CREATE INDEX spam_senders ON senders USING bloomfilter (address) WITH (fpp = 0.001) WHERE is_spam;

SELECT count(*) AS whitelisted FROM whitelist;

DO $$
DECLARE
    n bigint := (SELECT count(*) FROM whitelist);
    innocent text := (SELECT min(address) FROM whitelist);
BEGIN
    ASSERT (SELECT bool_and(is_spam(address)) FROM spammers), 'every spammer is found';
    ASSERT (SELECT count(*) = 1 FROM customers WHERE is_spam(address)), 'one customer is, and rightly';
    ASSERT n BETWEEN 1 AND 20 + 4 * sqrt(20), n || ' whitelisted';
    ASSERT (SELECT bool_and(bloom_index_contains('spam_senders', address)) FROM spammers), 'in the index, too';
    ASSERT (SELECT count(*) FROM customers WHERE bloom_index_contains('spam_senders', address)) < 20 + 4 * sqrt(20),
        'and few customers';
    -- A customer who starts to send spam is no longer whitelisted.
    ASSERT NOT is_spam(innocent), 'whitelisted';
    UPDATE mail SET spam = bloom_add(spam, innocent);
    DELETE FROM whitelist WHERE address = innocent;
    ASSERT is_spam(innocent), 'added, it is found';
END $$;
