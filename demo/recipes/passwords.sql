-- Weak passwords, known by their seeded hashes only. doc/COOKBOOK.md explains it. There the words are
-- read from a file; here they are generated from stems and common suffixes.
CREATE EXTENSION IF NOT EXISTS bloomfilter;

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
