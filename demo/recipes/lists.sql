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

-- Weak passwords, known by their seeded hashes only. doc/COOKBOOK.md explains it. There the words are
-- read from a file; here they are generated from stems and common suffixes.
RESET ALL;
CREATE SCHEMA passwords;
SET search_path = passwords, public;

-- The seed is known only to those who build the filter and those who test passwords.
\set seed 8123746519204

CREATE TEMP TABLE words AS
SELECT stem || ending AS word
  FROM unnest(ARRAY['password', 'Password', 'qwerty', 'letmein', 'dragon', 'monkey', 'sunshine', 'welcome',
                    'iloveyou', 'football', 'princess', 'admin', 'secret', 'master', 'summer', 'hello']) stem,
       unnest(ARRAY['', '1', '12', '123', '1234', '!', '1!', '123!', '2023', '2024', '2025', '@123', '#1', '99',
                    '007', '69', '666', '777', '_1', '.']) ending;

-- The words are hashed where they are stored; the filter is built from hashes only.
CREATE TABLE weak_hashes AS SELECT bloom_hash(word, :seed) AS hash FROM words;
CREATE TABLE weak (passwords bloom NOT NULL);
INSERT INTO weak VALUES (bloom_empty(1e-6, 20000, :seed));
DO $$
DECLARE
    filter bloom := (SELECT passwords FROM weak);
    h bigint;
BEGIN
    FOR h IN SELECT hash FROM weak_hashes LOOP
        filter := bloom_add_hash(filter, h);
    END LOOP;
    UPDATE weak SET passwords = filter;
END $$;

CREATE FUNCTION is_weak(password_hash bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT bloom_contains_hash(passwords, password_hash) FROM weak
$$;

-- The client computes the hash (here with bloom_hash) and sends only the hash.
SELECT word, is_weak(bloom_hash(word, :seed))
  FROM unnest(ARRAY['summer2024', 'correct horse battery staple']) word;

SELECT set_config('recipe.seed', :'seed', false) \gset
DO $$
DECLARE
    seed bigint := current_setting('recipe.seed');
BEGIN
    ASSERT (SELECT count(*) FROM words) = 320, 'words';
    ASSERT (SELECT bool_and(is_weak(bloom_hash(word, seed))) FROM words), 'every weak password is found';
    ASSERT (SELECT count(*) = 0 FROM generate_series(1, 10000) i WHERE is_weak(bloom_hash('good' || i, seed))),
        'others are not';
    ASSERT (SELECT count(*) = 0 FROM words WHERE is_weak(bloom_hash(word))), 'nor is one by another seed';
    -- If the words are available, bloom_agg builds the same filter directly, and sets the key type text.
    ASSERT (SELECT bool_and(bloom_contains_hash(f, hash))
              FROM weak_hashes, (SELECT bloom_agg(word, 1e-6, 20000, seed) AS f FROM words) x), 'the same hashes';
END $$;

-- Keys cannot be deleted from a filter, but whole filters can: one filter per day, and the union of the last seven.
-- doc/COOKBOOK.md explains it.
RESET ALL;
CREATE SCHEMA expiry;
SET search_path = expiry, public;

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
