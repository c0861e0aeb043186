--
-- INDEX
-- Indexes of access method bloomfilter: creation, content, lookups, functions, growth, WAL.
--
\pset format unaligned
\pset tuples_only

\set ECHO none
-- Rows that an index does not find: there must never be one.
CREATE FUNCTION missing(index regclass, rows text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM (%s) rows (key) WHERE NOT bloom_index_contains($1, key)', rows) INTO n USING index;
  RETURN n;
END
$$;
\set ECHO all

-- Built, and filled by inserts: the same bits.
CREATE TABLE items (id bigint, url text);
INSERT INTO items SELECT i, 'https://example.com/' || i FROM generate_series(1, 20000) i;
CREATE INDEX built ON items USING bloomfilter (id) WITH (fpp = 0.001, expected = 40000);
CREATE TABLE filled (id bigint);
CREATE INDEX filled_id ON filled USING bloomfilter (id) WITH (fpp = 0.001, expected = 40000);
INSERT INTO filled SELECT id FROM items WHERE id % 3 = 0;
INSERT INTO filled SELECT id FROM items WHERE id % 3 > 0 ORDER BY id DESC;
SELECT bloom_index_filter('built') = bloom_index_filter('filled_id') AS same_bits;
-- The layer is made for half of the rate: others may follow. It has fewer hash functions, for which it takes some more bits.
SELECT i.block_bits, i.hashes, v.hashes AS hashes_of_value, round(i.bits / v.bits::numeric, 2) AS bits_per_bit_of_value
FROM bloom_info(bloom_index_filter('built')) i, bloom_info((SELECT bloom_agg(id, 0.0005, 40000) FROM items)) v;
SELECT missing('built', 'SELECT id FROM items') AS missing_built, missing('filled_id', 'SELECT id FROM items') AS missing_filled;
SELECT count(*) <= 50 AS rate FROM generate_series(1000001, 1050000) i WHERE bloom_index_contains('built', i);
SELECT bloom_index_check('built'), bloom_index_check('filled_id');

-- What it tells about itself.
SELECT key_type, fpp, expected, seed, layers, pages, bytes, bits, hashes, block_bits, bits_set, cardinality, keys_since_build
FROM bloom_index_info('built');
INSERT INTO items SELECT i, 'https://example.com/' || i FROM generate_series(20001, 25000) i;
SELECT cardinality BETWEEN 24900 AND 25100 AS cardinality, keys_since_build BETWEEN 4900 AND 5100 AS keys_since_build
FROM bloom_index_info('built');

-- Far more keys than expected: layers, and still the rate asked for.
CREATE TABLE growing (id bigint) WITH (autovacuum_enabled = off);
CREATE INDEX growing_id ON growing USING bloomfilter (id) WITH (fpp = 0.01, expected = 3000);
INSERT INTO growing SELECT generate_series(1, 2900);
SELECT layers FROM bloom_index_info('growing_id');
DO $$
BEGIN
  FOR i IN 0 .. 27 LOOP
    INSERT INTO growing SELECT generate_series(2901 + i * 1000, 3900 + i * 1000);
    COMMIT;
  END LOOP;
END
$$;
SELECT layers FROM bloom_index_info('growing_id');
SELECT missing('growing_id', 'SELECT id FROM growing') AS missing;
SELECT count(*) < 1000 AS rate FROM generate_series(1000001, 1100000) i WHERE bloom_index_contains('growing_id', i);
INSERT INTO growing SELECT generate_series(30901, 200000);
SELECT missing('growing_id', 'SELECT id FROM growing') AS missing;
SELECT count(*) < 1000 AS rate FROM generate_series(1000001, 1100000) i WHERE bloom_index_contains('growing_id', i);
SELECT layers, over_capacity FROM bloom_info(bloom_index_filter('growing_id'));
-- Each layer has positions of its own: its generation, at offset 6 of its entry in the directory.
SELECT array_agg(get_byte(f, 44 + 32 * i + 6) ORDER BY i) AS generations
  FROM (SELECT bloom_index_filter('growing_id')::bytea AS f) x, generate_series(0, get_byte(f, 16) - 1) i;
SELECT cardinality BETWEEN 198000 AND 202000 AS cardinality FROM bloom_index_info('growing_id');
SELECT bloom_cardinality(bloom_index_filter('growing_id')) BETWEEN 198000 AND 202000 AS cardinality;
SELECT bloom_index_check('growing_id');
REINDEX INDEX growing_id;
SELECT layers, keys_since_build BETWEEN 0 AND 1000 AS about_none FROM bloom_index_info('growing_id');

-- A batch far larger than the layer that it comes to: all blocks of a page are filled alike.
CREATE TABLE flooded (id bigint);
CREATE INDEX flooded_id ON flooded USING bloomfilter (id) WITH (fpp = 0.01, expected = 1000);
INSERT INTO flooded VALUES (0);
INSERT INTO flooded SELECT generate_series(1, 50000);
SELECT layers FROM bloom_index_info('flooded_id');
SELECT missing('flooded_id', 'SELECT id FROM flooded') AS missing;
SELECT count(*) < 1000 AS rate FROM generate_series(1000001, 1100000) i WHERE bloom_index_contains('flooded_id', i);
DROP TABLE flooded;

-- Chosen keys raise the rate of their pages; the check tells.
CREATE TABLE crowded (id bigint);
CREATE INDEX crowded_id ON crowded USING bloomfilter (id) WITH (expected = 10000);
INSERT INTO crowded SELECT i FROM generate_series(1::bigint, 20000) i WHERE bloom_hash(i) < 0;
SELECT bloom_index_check('crowded_id');
ALTER INDEX crowded_id SET (seed = 5);
REINDEX INDEX crowded_id;
SELECT bloom_index_check('crowded_id');
DROP TABLE crowded;

-- Keys that somebody has chosen for one page do not make the index grow.
CREATE TABLE chosen (id bigint);
CREATE INDEX chosen_id ON chosen USING bloomfilter (id) WITH (fpp = 0.01, expected = 200000);
INSERT INTO chosen SELECT i FROM generate_series(1::bigint, 800000) i
WHERE bloom_hash(i) BETWEEN 0 AND 9223372036854775807 / 32;
SELECT count(*) > 12000 AS keys, (SELECT layers FROM bloom_index_info('chosen_id')) AS layers FROM chosen;
SELECT missing('chosen_id', 'SELECT id FROM chosen') AS missing;
SELECT count(*) BETWEEN 100 AND 3000 AS of_one_page FROM generate_series(1000001, 1100000) i WHERE bloom_index_contains('chosen_id', i);
DROP TABLE chosen;

-- A copy as a value is a filter like any other.
SELECT count(*) AS missing FROM items WHERE NOT bloom_index_filter('built') @> id;
SELECT bloom_index_filter('built')::text::bloom = bloom_index_filter('built') AS valid;
SELECT count(*) AS missing FROM (SELECT bloom_index_filter('built') | bloom_index_filter('growing_id') AS both OFFSET 0) u, items
WHERE NOT u.both @> id;

-- Also of one that expects more keys than a value can.
CREATE TABLE few (id int);
INSERT INTO few SELECT generate_series(1, 1000);
CREATE INDEX few_id ON few USING bloomfilter (id) WITH (fpp = 0.5, expected = 4000000000);
SELECT bloom_index_filter('few_id')::text::bloom = bloom_index_filter('few_id') AS valid;
DROP TABLE few;

-- An index on an empty table has no layer until the first key.
CREATE TABLE empty (key text);
CREATE INDEX empty_key ON empty USING bloomfilter (key);
SELECT layers, pages, bits, fill, cardinality, current_fpp FROM bloom_index_info('empty_key');
SELECT bloom_index_contains('empty_key', 'x'), bloom_cardinality(bloom_index_filter('empty_key')), bloom_index_check('empty_key');
INSERT INTO empty VALUES (NULL);
SELECT layers FROM bloom_index_info('empty_key');
INSERT INTO empty VALUES ('x');
SELECT layers FROM bloom_index_info('empty_key');
SELECT bloom_index_contains('empty_key', 'x'), bloom_index_contains('empty_key', 'y'), bloom_index_contains('empty_key', NULL::text);

-- Keys: across the types of a family; without a type, as the index's key type.
SELECT bloom_index_contains('built', 5), bloom_index_contains('built', 5::smallint), bloom_index_contains('built', '5'),
  bloom_index_contains('built', ' 5 '), bloom_index_contains('built', '2000000000005');
SELECT bloom_index_contains('built', 'five');
SELECT bloom_index_contains('built', 5::numeric);
SELECT bloom_index_contains('built', 5::text);
SELECT bloom_index_contains('built', ARRAY[5, 6]);
SELECT bloom_index_contains('built', '{5,6}');
SELECT bloom_index_contains_each('built', '{5,six}');
SELECT bloom_index_contains_each('built', ARRAY[5.0]);
PREPARE untyped AS SELECT bloom_index_contains('built', $1), bloom_index_contains_each('built', $2);
EXECUTE untyped('7', '{7,8,20000000,NULL}');
DEALLOCATE untyped;
SELECT bloom_index_contains_each('built', ARRAY[1, 2000000000, NULL, 3]),
  bloom_index_contains_each('built', ARRAY[[1, 2000000000], [3, 4]]), bloom_index_contains_each('built', ARRAY[]::int[]),
  bloom_index_contains_each('built', NULL::int[]);
SELECT bool_and(r) AS all_found FROM unnest(bloom_index_contains_each('built', ARRAY(SELECT id FROM items))) r;

-- Expressions and predicates.
CREATE INDEX items_lower ON items USING bloomfilter (lower(url)) WHERE id % 2 = 0;
SELECT bloom_index_contains('items_lower', lower('HTTPS://example.com/2')), bloom_index_contains('items_lower', 'https://example.com/3');
INSERT INTO items VALUES (30000, 'HTTPS://Example.com/30000'), (30001, 'HTTPS://Example.com/30001');
SELECT bloom_index_contains('items_lower', 'https://example.com/30000'), bloom_index_contains('items_lower', 'https://example.com/30001');
SELECT bloom_index_check('items_lower');

-- Types: what can be a key of a filter can be a key of an index.
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE typed (b bytea, u uuid, d positive, m mood, a int[], n numeric, t timestamptz, f float4, c char(5), x int4range, o boolean);
INSERT INTO typed VALUES ('\x01', '00000000-0000-0000-0000-000000000001', 5, 'happy', '{1,2}', 1.0,
  '2020-01-01 00:00Z', '-0', 'ab', '[1,5)', true);
DO $$
DECLARE
  c text;
BEGIN
  FOREACH c IN ARRAY string_to_array('b u d m a n t f c x o', ' ') LOOP
    EXECUTE format('CREATE INDEX typed_%s ON typed USING bloomfilter (%s)', c, c);
  END LOOP;
END
$$;
SELECT bloom_index_contains('typed_b', '\x01'::bytea), bloom_index_contains('typed_u', '00000000-0000-0000-0000-000000000001'),
  bloom_index_contains('typed_d', 5), bloom_index_contains('typed_m', 'happy'), bloom_index_contains('typed_m', 'happy'::mood),
  bloom_index_contains('typed_a', ARRAY[1, 2]), bloom_index_contains('typed_n', 1.00);
SELECT bloom_index_contains('typed_t', '2020-01-01 01:00+01'::timestamptz), bloom_index_contains('typed_f', 0::float8),
  bloom_index_contains('typed_c', 'ab   '), bloom_index_contains('typed_x', '[1,4]'::int4range), bloom_index_contains('typed_o', true);
-- Without a type, as the column's type, also where a filter knows less.
SELECT bloom_index_contains('typed_t', '2020-01-01 01:00+01'), bloom_index_contains('typed_f', '-0'), bloom_index_contains('typed_f', '0.1'),
  bloom_index_contains('typed_x', '[1,4]'), bloom_index_contains('typed_a', '{1,2}'),
  bloom_index_contains_each('typed_c', '{"ab   ",ab,x}');
SELECT bloom_index_contains('typed_m', 'angry');
-- Trailing spaces do not count where char(n) is compared with varchar.
SELECT bloom_index_contains('typed_c', 'ab   '::varchar) AS key, bloom_index_contains('typed_c', 'x  '::varchar) AS absent,
  bloom_index_contains_each('typed_c', '{"ab  ",x}'::varchar[]) AS each;
CREATE TABLE padded (v varchar(5));
CREATE INDEX padded_v ON padded USING bloomfilter (v);
INSERT INTO padded VALUES ('ab   ');
SELECT bloom_index_contains('padded_v', 'ab   ') AS key, bloom_index_contains('padded_v', 'ab'::char(5)) AS padded,
  bloom_index_contains_each('padded_v', '{ab,cd}'::char(5)[]) AS each;
DROP TABLE padded;
SELECT bloom_index_contains('typed_m', 'sad'), bloom_index_contains('typed_a', ARRAY[2, 1]), bloom_index_contains('typed_o', false);

-- Another index for each row.
SELECT count(*) FILTER (WHERE bloom_index_contains(index, '1')) AS found
FROM generate_series(1, 1000) i, LATERAL (SELECT CASE i % 2 WHEN 0 THEN 'typed_n' ELSE 'typed_c' END::regclass AS index) x;

-- Options.
CREATE INDEX ON items USING bloomfilter (id) WITH (fpp = 0);
CREATE INDEX ON items USING bloomfilter (id) WITH (fpp = 'NaN');
CREATE INDEX ON items USING bloomfilter (id) WITH (fpp = 1);
CREATE INDEX ON items USING bloomfilter (id) WITH (fpp = x);
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 0);
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = -1);
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 'inf');
CREATE INDEX ON items USING bloomfilter (id) WITH (fpp = '-inf');
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 'NaN');
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 1e16);
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 1e14);
CREATE INDEX ON items USING bloomfilter (id) WITH (expected = 9007199254740992, fpp = 1e-9);
CREATE INDEX ON items USING bloomfilter (id) WITH (seed = 1.5);
CREATE INDEX ON items USING bloomfilter (id) WITH (seed = 9223372036854775808);
CREATE INDEX ON items USING bloomfilter (id) WITH (fillfactor = 90);
-- Space for many keys is taken when some of them are there.
CREATE TABLE ahead (id bigint) PARTITION BY RANGE (id);
CREATE INDEX ON ahead USING bloomfilter (id) WITH (expected = 1e14);
CREATE INDEX ahead_id ON ahead USING bloomfilter (id) WITH (expected = 5e10);
CREATE TABLE ahead_1 PARTITION OF ahead DEFAULT;
SELECT pg_relation_size('ahead_1_id_idx') / 8192 AS pages;
INSERT INTO ahead VALUES (1);
SELECT layers, pages < 1000 AS few_pages, expected FROM bloom_index_info('ahead_1_id_idx');
DROP TABLE ahead;
CREATE INDEX seeded ON items USING bloomfilter (id) WITH (seed = -9223372036854775808);
SELECT seed, bloom_index_contains('seeded', 7) AS found FROM bloom_index_info('seeded');
SELECT pg_get_indexdef('seeded'::regclass);
-- They take effect at the next REINDEX.
ALTER INDEX seeded SET (seed = 5, fpp = 0.1);
INSERT INTO items VALUES (40000, NULL);
SELECT seed, fpp, bloom_index_contains('seeded', 7), bloom_index_contains('seeded', 40000) FROM bloom_index_info('seeded');
BEGIN;
INSERT INTO items VALUES (40001, NULL);
REINDEX INDEX seeded;
SELECT seed, fpp, bloom_index_contains('seeded', 7), bloom_index_contains('seeded', 40001) FROM bloom_index_info('seeded');
INSERT INTO items VALUES (40002, NULL);
COMMIT;
SELECT bloom_index_contains('seeded', 40001), bloom_index_contains('seeded', 40002), bloom_index_check('seeded');

-- What is not possible.
CREATE INDEX ON items USING bloomfilter (id, url);
CREATE UNIQUE INDEX ON items USING bloomfilter (id);
CREATE INDEX ON items USING bloomfilter (id) INCLUDE (url);
DO $$
BEGIN
  CREATE INDEX ON items USING bloomfilter (id DESC);
EXCEPTION WHEN feature_not_supported THEN
  RAISE NOTICE '%', sqlerrm;
END
$$;
ALTER TABLE items ADD EXCLUDE USING bloomfilter (id WITH =);
CREATE TABLE unsuitable (j json, r regclass, p point, k bloom_key, ks bloom_keys);
CREATE INDEX ON unsuitable USING bloomfilter (j);
CREATE INDEX ON unsuitable USING bloomfilter (r);
CREATE INDEX ON unsuitable USING bloomfilter (p);
\set VERBOSITY sqlstate
CREATE INDEX ON unsuitable USING bloomfilter (k);
CREATE INDEX ON unsuitable USING bloomfilter (ks);
\set VERBOSITY default
CLUSTER items USING built;
SELECT bloom_index_contains('items', 1);
CREATE INDEX items_btree ON items (id);
SELECT bloom_index_contains('items_btree', 1);
SELECT bloom_index_contains(0, 1), bloom_index_contains_each(0, '{1,2}'::int[]);
SELECT bloom_index_info(0);
SELECT bloom_index_contains('no_such_index', 1);
SELECT bloom_index_info('items'), bloom_index_filter('items_btree'), bloom_index_check('items_btree');

-- The planner never uses it for a scan.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN ' || query;
END
$$;
SET enable_seqscan = off;
SELECT bool_or(line ~ 'Seq Scan') AS scanned, bool_or(line ~ 'Index|Bitmap') AS by_index
FROM plan('SELECT * FROM filled WHERE id = 5') line;
RESET enable_seqscan;

DROP TABLE items, filled, growing, empty, typed, unsuitable;
DROP DOMAIN positive;
DROP TYPE mood;
DROP FUNCTION missing, plan;

--
-- How large an index is that grows, and how many pages a lookup reads.
--

\set ECHO none
-- Let a table with indexes grow from first to last keys, by 2 % at a time. With a small work_mem, keys come to an index a
-- few at a time. Returns the largest size after 100,000 keys, in multiples of bloom_sizing, and the most pages that a lookup
-- of an absent key has read.
CREATE FUNCTION grow(first bigint, last bigint, OUT index name, OUT size float8, OUT pages bigint)
RETURNS SETOF record LANGUAGE plpgsql SET work_mem = '64kB' AS $$
DECLARE
  n bigint := first;
  more bigint;
  before bigint;
  i record;
BEGIN
  CREATE TEMP TABLE seen (index name, size float8, pages bigint);
  WHILE n < last LOOP
    more := least(n / 50, last - n);
    INSERT INTO grown SELECT generate_series(n + 1, n + more);
    n := n + more;
    FOR i IN SELECT indexrelid::regclass AS index, info.bytes / sizing.bytes::float8 AS size
               FROM pg_index, bloom_index_info(indexrelid) info, bloom_sizing(info.fpp, n) sizing
              WHERE indrelid = 'grown'::regclass LOOP
      before := pg_stat_get_xact_blocks_fetched(i.index);
      PERFORM bloom_index_contains(i.index, -n);
      INSERT INTO seen VALUES (i.index, CASE WHEN n >= 100000 THEN i.size END,
                               pg_stat_get_xact_blocks_fetched(i.index) - before);
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT s.index, max(s.size), max(s.pages) FROM seen s GROUP BY s.index ORDER BY s.index;
  DROP TABLE seen;
END
$$;
\set ECHO all

-- From empty.
CREATE TABLE grown (id bigint);
CREATE INDEX grown_1 ON grown USING bloomfilter (id) WITH (fpp = 0.1);
CREATE INDEX grown_3 ON grown USING bloomfilter (id) WITH (fpp = 0.001);
CREATE INDEX grown_6 ON grown USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO grown SELECT generate_series(1, 10000);
SELECT index, size < CASE index WHEN 'grown_1' THEN 9 ELSE 7 END AS size, pages FROM grow(10000, 300000);

-- From built, with room for half as many keys again.
TRUNCATE grown;
DROP INDEX grown_3, grown_6;
INSERT INTO grown SELECT generate_series(1, 100000);
REINDEX TABLE grown;
CREATE INDEX grown_expected ON grown USING bloomfilter (id) WITH (fpp = 0.001, expected = 120000);
SELECT index, size < CASE index WHEN 'grown_1' THEN 9 ELSE 7 END AS size, pages FROM grow(100000, 200000);

-- REINDEX makes one layer of all.
REINDEX TABLE grown;
SELECT index, size < 2.5 AS size, pages FROM grow(200000, 200001);
DROP TABLE grown;
DROP FUNCTION grow;

-- A small table has a small index: a page for its keys and the meta page, also if it was empty.
CREATE TABLE small (id bigint, part int) PARTITION BY LIST (part);
CREATE TABLE small_1 PARTITION OF small FOR VALUES IN (1);
CREATE TABLE small_2 PARTITION OF small FOR VALUES IN (2);
INSERT INTO small SELECT i, 1 FROM generate_series(1, 1000) i;
CREATE INDEX small_id ON small USING bloomfilter (id) WITH (fpp = 1e-5);
INSERT INTO small SELECT i, 2 FROM generate_series(1, 1000) i;
SELECT relname, pages, layers, current_fpp < 1e-6 AS rate
  FROM pg_class, bloom_index_info(oid) WHERE relname ~ '^small_._id' ORDER BY relname;
-- Its layer is filled, and has a successor then.
INSERT INTO small SELECT i, 2 FROM generate_series(1001, 2000) i;
SELECT pages, layers, current_fpp < 0.5e-5 AS rate FROM bloom_index_info('small_2_id_idx');
INSERT INTO small SELECT i, 2 FROM generate_series(2001, 3000) i;
SELECT pages < 40 AS pages, layers, current_fpp < 0.75e-5 AS rate FROM bloom_index_info('small_2_id_idx');
DROP TABLE small;

--
-- Adding a key logs the bytes of a page that change.  Where this fails on a new
-- major of PostgreSQL, whole pages are logged, since it is not in
-- PGBLOOM_KNOWS_GENERIC_WAL: add it there if src/index/wal.c writes records as
-- its GenericXLogFinish() does.  The least of some keys counts, since a
-- checkpoint may come in between, after which pages are logged as a whole.
--
CREATE TABLE wal_keys (k int);
CREATE INDEX wal_keys_k ON wal_keys USING bloomfilter (k) WITH (expected = 100);
DO $$
DECLARE
	start pg_lsn;
	bytes numeric := 'infinity';
BEGIN
	FOR i IN 1 .. 10 LOOP
		start := pg_current_wal_insert_lsn();
		INSERT INTO wal_keys VALUES (i);
		COMMIT;
		bytes := least(bytes, pg_current_wal_insert_lsn() - start);
	END LOOP;
	RAISE NOTICE 'less than 1 kB of WAL for a row and its key: %', bytes < 1000;
END $$;
DROP TABLE wal_keys;
