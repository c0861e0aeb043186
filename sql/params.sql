--
-- PARAMS
-- Valid parameters, and the errors for invalid ones: SQLSTATE, the value
-- given, the limit and a workaround; and the properties that a filter reports.
--
\pset format unaligned
\pset tuples_only

\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/try.psql'
\i :functions
\set ECHO all

-- Defaults, and each parameter by position and by name.
SELECT fpp, expected, seed, form, key_type, cardinality, current_fpp FROM bloom_info(bloom_empty());
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001, 50000));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001, 50000, -7));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(expected => 50000));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(seed => 42, fpp => 0.2));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.1, NULL, 5));

-- The false-positive rate: both ends of the range are within it.
CALL try_each('SELECT fpp FROM bloom_info(bloom_empty(%s))', '0.5', '1e-9', 'NULL');
CALL try_each('SELECT bloom_empty(%s)', '0', $$'-0'$$, '-0.01', '0.99, 3', '0.51', '0.5000000001', '0.9999999999999998e-9', '0.99e-9', '1e-300',
  '4.9e-324', '0.6', '1e-12', '-1', $$'-Infinity'$$, $$'NaN'$$, '1', '1e300', $$'Infinity'$$);
CALL try('SELECT bloom_agg(i, 0.01 + i * 1e-12) FROM generate_series(0, 1) i');

-- The number of keys.
CALL try_each('SELECT expected FROM bloom_info(bloom_empty(0.01, %s))', '1', 'NULL', '0');
CALL try_each('SELECT bloom_empty(0.01, %s)', '-1', '-9223372036854775808', '9223372036854775807', '1000000000000000000', '500000000');
CALL try_each('SELECT bloom_empty(%s)', '1e-9, 430000000', '0.5, 4294967296');

-- The maximum.  A filter takes memory as keys are added, so these are small.
CREATE TABLE limits (fpp float8, expected bigint);
INSERT INTO limits VALUES
  (0.5, 2900000000), (0.1, 880000000), (0.01, 430000000), (0.0001, 215000000),
  (1e-6, 142000000), (1e-9, 90000000);
SELECT fpp, l.expected, octet_length(empty::bytea) AS empty,
  octet_length(bloom_add(empty, 1)::bytea) AS with_one_key,
  (bloom_info(bloom_add(empty, 1))).expected = l.expected AS recorded
FROM limits l, bloom_empty(fpp, expected) empty
ORDER BY fpp DESC;
SELECT count(*) AS limits, count(f) AS made, max(octet_length(f::bytea)) AS bytes
FROM (SELECT bloom_agg(k, fpp, expected) AS f
      FROM limits, generate_series(1, 10) k GROUP BY fpp, expected) agg;

-- The seed: any number.
CALL try_each('SELECT seed FROM bloom_info(bloom_empty(seed => %s))', '9223372036854775807', '-9223372036854775808', 'NULL');

-- Hashes differ between seeds and are consistent for one seed.
SELECT count(DISTINCT f::text) AS filters, count(*) AS seeds, bool_and(f @> 'key' AND NOT f @> 'other') AS right
FROM (SELECT bloom_add(bloom_empty(seed => s), 'key') AS f
      FROM unnest('{0,1,-1,2,4294967296,9223372036854775807,-9223372036854775808}'::bigint[]) s) seeded;

-- The same in the aggregate.
CALL try_each('SELECT bloom_agg(%s) FROM generate_series(1, 3) k', 'k, 0', $$k, 'NaN'$$, 'k, 1', $$'literal', 2$$, 'k, NULL', 'k, NULL, NULL, NULL',
  'k, 0.01, 0', 'k, 0.01, -5', 'k, 0.01, 1000000000000000000', 'k, 0.01, 10, NULL');
CALL try('SELECT expected FROM bloom_info((SELECT bloom_agg(k, 0.01, NULL) FROM generate_series(1, 3) k))');
CALL try('SELECT seed FROM bloom_info((SELECT bloom_agg(k, 0.01, 10, -3) FROM generate_series(1, 3) k))');

-- Without a row, parameters are those of the call.
CALL try('SELECT bloom_agg(k, 0) FROM generate_series(1, 0) k');
CALL try('SELECT seed FROM bloom_info((SELECT bloom_agg(k, 0.01, 10, -3) FROM generate_series(1, 0) k))');

-- Parameters that differ from row to row.
CALL try_each('SELECT bloom_agg(k, %s) FROM generate_series(1, 3) k', '0.1 / k', '0.1, 10 * k', '0.1, 10, k', 'CASE WHEN k < 3 THEN 0.1 END',
  '0.1, CASE WHEN k < 3 THEN 10 END', '0.1, CASE WHEN k = 3 THEN 10 END', '0.1, 10, CASE WHEN k < 3 THEN 1 END',
  '0.1, 10, CASE WHEN k < 3 THEN -1 - (1::bigint << 62) ELSE -2 END', $$CASE WHEN k < 3 THEN 0.1 ELSE 'NaN' END$$);

-- They can differ between groups.
SELECT k % 3 AS g, i.fpp, i.expected, i.seed
FROM (SELECT bloom_agg(k, 0.1 / (1 + k % 3), 10 * (1 + k % 3), k % 3) AS f, min(k) AS k
      FROM generate_series(1, 30) k GROUP BY k % 3) groups, bloom_info(f) i
ORDER BY g;

-- A filter of 64 MB that is full except for its last block, with expected
-- equal to its number of bits: its next layer exceeds the maximum.
CREATE TABLE full_up AS SELECT (decode('424c4d46010101000000000000000000' || '01000000' || repeat('00', 8) || '7b14ae47e17a843f' || repeat('00', 8) ||
    '0000100009060000' || '0000002000000000' || 'ac43d2d15d72323c' || '00feff1f00000000', 'hex') ||
    decode(repeat('ff', (x'100000'::int - 1) * 64) || repeat('00', 64), 'hex'))::bloom AS f;
SELECT bloom_contains_hash(f, 1) AS first, bloom_contains_hash(f, -1) AS last FROM full_up;
CALL try('SELECT bloom_contains_hash(bloom_add_hash(f, -1), -1) FROM full_up');
DROP TABLE full_up;

-- The session remains usable.
SELECT bloom_empty() @> 1 AS found;

DROP TABLE limits;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA arguments;
SET search_path = arguments, public;
--
-- ARGUMENTS
-- Common ways to write arguments, and the hints for likely mistakes.
--

-- The number of expected keys is of any numeric type.
SELECT n, (bloom_info(bloom_empty(0.01, n))).expected FROM (VALUES (1000.0), (1000.2), (1e3)) v (n);
SELECT (bloom_info(bloom_empty(0.01, 1e6))).expected AS literal,
	(bloom_info(bloom_empty(0.01, 1000000))).expected AS integer,
	(bloom_info(bloom_empty(0.01, 1000000::bigint))).expected AS bigint,
	(bloom_info(bloom_empty(0.01, 1000::smallint))).expected AS smallint,
	(bloom_info(bloom_empty(0.01, 1000.2))).expected AS fraction,
	(bloom_info(bloom_empty(0.01, 1000.2::real))).expected AS "real",
	(bloom_info(bloom_empty(0.01, '5e4'))).expected AS untyped,
	(bloom_info(bloom_empty(expected => 1e5))).expected AS named;
CREATE TABLE words AS SELECT i AS id, 'word ' || i AS word FROM generate_series(1, 1000) i;
ANALYZE words;
SELECT (bloom_info(bloom_empty(0.01, (SELECT count(*) * 1.1 FROM words)))).expected AS counted,
	(bloom_info(bloom_empty(0.01, (SELECT reltuples FROM pg_class WHERE relname = 'words')))).expected AS reltuples;
SELECT a.expected AS fraction, b.expected AS literal, c.expected AS seeded, d.expected AS untyped, e.expected AS open
  FROM (SELECT bloom_agg(word, 0.01, 1000.2) AS a, bloom_agg(word, 0.01, 2e3) AS b, bloom_agg(word, 0.01, 2e3, 7) AS c,
			bloom_agg('x', 0.01, 1e3) AS d, bloom_agg(word, 0.01, NULL) AS e FROM words) x,
	bloom_info(a) a, bloom_info(b) b, bloom_info(c) c, bloom_info(d) d, bloom_info(e) e;
SELECT bloom_sizing(0.01, 1e6) = bloom_sizing(0.01, 1000000) AS literal,
	bloom_sizing(0.01, 999999.5) = bloom_sizing(0.01, 1000000) AS fraction,
	(bloom_sizing(0.01, 1e15)).filters;
PREPARE sized(float8) AS SELECT (bloom_info(bloom_empty(0.01, $1))).expected;
EXECUTE sized(12345.6);
DEALLOCATE sized;

-- Arguments that differ only before rounding are the same.
SELECT bloom_cardinality(bloom_agg(id, 0.01, 1999 + id / 1000.0)) > 0 AS same FROM words;
SELECT bloom_agg(id, 0.01, 1999.5 + id / 1000.0) FROM words;

-- Out of range: not a number, infinite, negative, more than 2^53; none at all is one
CALL try_each('SELECT bloom_empty(0.01, %s)', $$'NaN'$$, $$'Infinity'$$, $$'-Infinity'$$, '-0.5', '-1000.5', '1e300', '9007199254740994',
  '9007199254740993', '9007199254740992');
CALL try_each('SELECT expected FROM bloom_info(%s)', 'bloom_empty(0.01, (SELECT count(*) FROM words WHERE false))', 'bloom_empty(0.01, 0.5)',
  '(SELECT bloom_agg(k, 0.01, 0) FROM generate_series(1, 1) k)', '(SELECT bloom_agg(k, 0.01, k) FROM generate_series(0, 1) k)',
  '(SELECT bloom_agg(k, 0.01, e) FROM (VALUES (1, 1.0::float8), (2, 0.5)) v (k, e))', 'bloom_empty(0.01, 1.0000001)');
SELECT bloom_sizing(0.01, 0) = bloom_sizing(0.01, 1) AS same;
CALL try_each('SELECT bloom_agg(id, 0.01, %s) FROM words', $$'NaN'$$, '-0.9', $$CASE WHEN id = 1 THEN 1000 ELSE float8 'NaN' END$$,
  'CASE WHEN id > 1 THEN 0 END');
CALL try_each('SELECT bloom_sizing(0.01, %s)', $$'NaN'$$, $$'Infinity'$$, '-0.5', '1.1e15');

-- Swapped: the error states the order.
CALL try_each('SELECT %s', 'bloom_empty(1000, 0.01)', 'bloom_empty(1000)', 'bloom_empty(1)', 'bloom_sizing(1000000, 0.01)',
  'bloom_agg(word, 1000000, 0.01) FROM words', 'bloom_agg(word, 1000000) FROM words');

-- An empty filter with the parameters and the key type of another one, also of a type whose name takes quotes
CREATE TYPE "a ""b" AS ENUM ('x');
CREATE TABLE models (name text, f bloom);
INSERT INTO models VALUES ('default', bloom_empty()), ('sized', bloom_empty(0.001, 1000, 42, 'uuid'));
INSERT INTO models SELECT 'labels', bloom_agg('x'::"a ""b", 0.1, NULL, -1);
INSERT INTO models SELECT 'arrays', bloom_agg(ARRAY[i], 1e-5) FROM generate_series(1, 100) i;
INSERT INTO models SELECT 'stored', bloom_agg(i, 0.001, 20000, 7) FROM generate_series(1, 20000) i;
INSERT INTO models SELECT 'layers', bloom_add_all(bloom_empty(0.01, 20), ARRAY(SELECT generate_series(1, 500)));
SELECT name, a.key_type, a.fpp, a.expected, a.seed, a.form, a.cardinality, a.bytes < 80 AS small,
	(a.key_type, a.fpp, a.expected, a.seed) IS NOT DISTINCT FROM (b.key_type, b.fpp, b.expected, b.seed) AS same,
	bloom_empty_like(f) | f = f AS neutral, bloom_empty_like(bloom_empty_like(f)) = bloom_empty_like(f) AS again
  FROM models, bloom_info(bloom_empty_like(f)) a, bloom_info(f) b;
SELECT bloom_empty_like(f) = bloom_empty() AS default FROM models WHERE name = 'default';
SELECT bloom_add(bloom_empty_like(f), 5) FROM models WHERE name = 'labels';
SELECT bloom_empty_like(NULL) IS NULL AS nothing;
DROP TABLE models;
DROP TYPE "a ""b";

-- An empty filter of a key type: the first key without a type has this type.
SELECT (bloom_info(bloom_empty(key_type => 'int'))).key_type AS integer, (bloom_info(bloom_empty(key_type => NULL))).key_type AS open,
	(bloom_info(bloom_empty(0.001, 1000, 42, 'text'))).key_type AS positional;
SELECT name, i.key_type, i.fpp, i.expected, i.seed, i.cardinality
  FROM unnest('{int2,bigint,text,varchar,"char(5)",uuid,numeric,"timestamp with time zone",interval,bytea,bool,int4[],jsonb,int8range}'::text[]) name,
	bloom_info(bloom_empty(key_type => name::regtype)) i;
SELECT bloom_add(bloom_empty(key_type => 'bigint'), 5) = bloom_add(bloom_empty(), 5::smallint) AS same,
	bloom_empty(key_type => 'bigint') = bloom_empty(key_type => 'smallint') AS one_family,
	bloom_empty(key_type => 'bigint') <> bloom_empty() AS recorded,
	bloom_empty(key_type => 'bigint') @> 5 AS contains,
	(bloom_info(bloom_add_hash(bloom_empty(key_type => 'bigint'), bloom_hash(5)))).key_type AS by_hash,
	bloom_add_hash(bloom_empty(key_type => 'bigint'), bloom_hash(5)) @> 5 AS found;
SELECT bloom_add(bloom_empty(key_type => 'bigint'), 'five'::text);
SELECT bloom_add_all(bloom_empty(key_type => 'text'), ARRAY[5]);
SELECT bloom_empty(key_type => 'text') @> 5;
SELECT bloom_empty(key_type => 'text') | bloom_add(bloom_empty(), 5);
-- It keeps its type through text, compaction and union.
SELECT i.key_type AS text, j.key_type AS compact, k.key_type AS "union"
  FROM (SELECT bloom_empty(key_type => 'uuid') AS f) x, bloom_info(f::text::bloom) i, bloom_info(bloom_compact(f)) j,
	bloom_info(f | bloom_empty()) k;
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE DOMAIN smaller AS small;
CREATE TYPE mood AS ENUM ('sad', 'ok');
SELECT (bloom_info(bloom_empty(key_type => 'smaller'))).key_type AS domain, (bloom_info(bloom_empty(key_type => 'mood'))).key_type AS enum,
	bloom_add(bloom_empty(key_type => 'mood'), 'sad') = bloom_add(bloom_empty(), 'sad'::mood) AS label;
-- As a default of a column
CREATE TABLE visits (day int, visitors bloom NOT NULL DEFAULT bloom_empty(0.001, key_type => 'bigint'));
INSERT INTO visits VALUES (1);
UPDATE visits SET visitors = bloom_add(visitors, 7);
SELECT day, visitors @> 7::bigint AS found, (bloom_info(visitors)).key_type FROM visits;
DROP TABLE visits;
-- Types that cannot be keys, and types that do not exist
CALL try_each('SELECT bloom_empty(key_type => %s)', $$'json'$$, $$'point'$$, $$'regclass'$$, $$'record'$$, $$'anyelement'$$, $$'anyenum'$$,
  $$'mood[]'$$, $$'unknown'$$, $$'-'$$, '4294967295::oid', $$'no_such_type'$$);
SELECT bloom_empty(fpp => 0, key_type => 'json');

-- The key before the filter: an untyped literal is read as a filter, and
-- rejected also if it is base64 or has the right length.
CREATE TABLE filters (f bloom NOT NULL);
INSERT INTO filters VALUES (bloom_add(bloom_empty(), 'x'));
CALL try_each('SELECT %s FROM filters', $$bloom_contains('x', f)$$, $$bloom_add('x', f)$$, $$bloom_add_all('{a,b}', ARRAY[f])$$, $$f | 'x'$$, $$'x' @> f$$,
  $$bloom_contains('https://example.org/', f)$$, $$bloom_contains('user', f)$$, $$bloom_contains('', f)$$,
  $$bloom_contains(repeat('abcd', 1000)::bloom, f)$$, $$'x' <@ f$$);
-- For a damaged filter the error states the damage instead.
CALL try($$SELECT left(f::text, -4)::bloom FROM filters$$);
CALL try($$SELECT 'QkxNRgE='::bloom$$);
CALL try($$SELECT 'QkxNRv8='::bloom$$);
-- Binary input is never typed by hand, so it has no hint.
CALL try($$SELECT 'x'::bytea::bloom$$);
DROP TABLE filters;

DROP PROCEDURE try, try_each, create_ignoring_case;
DROP TABLE words;
DROP DOMAIN smaller, small;
DROP TYPE mood;

-- Types that cannot be keys, and those of keys without a type
SELECT bloom_empty(key_type => 'bloom');
SELECT bloom_empty(key_type => 'bloom_key');
SELECT bloom_empty(key_type => 'bloom_keys');
SELECT bloom_add(bloom_empty(key_type => 'bigint'), '42') = bloom_add(bloom_empty(), 42) AS integer,
  bloom_add_all(bloom_empty(key_type => 'uuid'), '{00000000-0000-0000-0000-000000000001}') @> uuid '00000000-0000-0000-0000-000000000001' AS uuid;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA nulls;
SET search_path = nulls, public;
--
-- NULLS
-- Functions that add or combine ignore NULL, so that no UPDATE erases a
-- filter.  Lookup functions return NULL for NULL.
--

CREATE TABLE filters (form text PRIMARY KEY, f bloom NOT NULL);
ALTER TABLE filters ALTER f SET STORAGE external;
INSERT INTO filters VALUES
	('empty', bloom_empty()),
	('sparse', bloom_add_all(bloom_empty(), ARRAY[1, 2, 3])),
	('dense', (SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 1000) i)),
	('stored', (SELECT bloom_agg(i, 0.01, 50000) FROM generate_series(1, 50000) i));

-- A NULL key or array changes nothing.
SELECT form, bloom_add(f, NULL::int) = f AS key, bloom_add(f, NULL) = f AS untyped,
	bloom_add_all(f, NULL::int[]) = f AS keys, bloom_add_hash(f, NULL) = f AS hash
  FROM filters ORDER BY form;
SELECT form, t.filter = f AS same, t.added, u.filter = f AS untyped, u.added
  FROM filters, bloom_try_add(f, NULL::int) t, bloom_try_add(f, NULL) u ORDER BY form;

-- A NULL filter counts as an empty one.
SELECT bloom_add(NULL, 1) = bloom_add(bloom_empty(), 1) AS key,
	bloom_add(NULL, 'a') = bloom_add(bloom_empty(), 'a') AS untyped,
	bloom_add_all(NULL, ARRAY[1, NULL, 2]) = bloom_add_all(bloom_empty(), ARRAY[1, 2]) AS keys,
	bloom_add_all(NULL, '{}'::int[]) = bloom_empty() AS no_keys,
	bloom_add_hash(NULL, 42) = bloom_add_hash(bloom_empty(), 42) AS hash;
SELECT t.filter = bloom_add(bloom_empty(), 1) AS key, t.added, u.filter = bloom_add(bloom_empty(), 'a') AS untyped, u.added
  FROM bloom_try_add(NULL, 1) t, bloom_try_add(NULL, 'a') u;

-- The arguments of a call can be constants, which are set up once.
SELECT i, bloom_add(NULL, i) = bloom_add(bloom_empty(), i) AS filter, bloom_add(f, CASE WHEN i > 1 THEN i END) @> 2 AS key
  FROM bloom_empty() f, generate_series(1, 3) i;

-- NULL with NULL is NULL.
SELECT bloom_add(NULL, NULL::int) IS NULL AS key, bloom_add(NULL, NULL) IS NULL AS untyped,
	bloom_add_all(NULL, NULL::int[]) IS NULL AS keys, bloom_add_hash(NULL, NULL) IS NULL AS hash,
	bloom_try_add(NULL, NULL::int) IS NULL AS try_add, bloom_try_add(NULL, NULL) IS NULL AS try_add_untyped,
	bloom_union(NULL, NULL) IS NULL AS union, NULL::bloom | NULL IS NULL AS op;

-- The union of a filter and NULL is the filter.
SELECT form, bloom_union(f, NULL) = f AS "right", bloom_union(NULL, f) = f AS "left", f | NULL = f AS op_right, NULL | f = f AS op_left
  FROM filters ORDER BY form;

-- An intersection with NULL is NULL: no set is known to have anything in common.
SELECT form, bloom_intersection(f, NULL) IS NULL AS "right", bloom_intersection(NULL, f) IS NULL AS "left",
	f & NULL IS NULL AS op_right, NULL & f IS NULL AS op_left, (NULL::bloom & NULL) IS NULL AS nulls
  FROM filters ORDER BY form;

-- The type of a NULL key is ignored, that of any other key is not.
SELECT bloom_add(f, NULL::text) = f AS text, bloom_add_all(f, NULL::text[]) = f AS texts, bloom_add(f, NULL::json) = f AS json
  FROM filters WHERE form = 'sparse';
SELECT bloom_add(NULL, '{}'::json);

-- No statement erases a filter that is NOT NULL.
BEGIN;
CREATE TEMP TABLE queue (key int);
UPDATE filters SET f = f | (SELECT bloom_agg(key) FROM queue);
UPDATE filters SET f = bloom_add_all(f, (SELECT array_agg(key) FROM queue));
UPDATE filters SET f = bloom_add(f, (SELECT key FROM queue));
INSERT INTO filters VALUES ('sparse', bloom_empty())
	ON CONFLICT (form) DO UPDATE SET f = filters.f | (SELECT q.f FROM filters q WHERE q.form = 'no such');
SELECT form, bloom_cardinality(f) > 0 AS has_keys FROM filters ORDER BY form;

-- A nullable column is filled, too.
CREATE TEMP TABLE days (day int, f bloom);
INSERT INTO days VALUES (1, NULL), (2, NULL), (3, bloom_empty(0.001));
UPDATE days SET f = bloom_add(f, day) WHERE day <> 2;
UPDATE days SET f = f | bloom_add(bloom_empty(), 10 * day);
SELECT day, bloom_cardinality(f) AS keys, f @> (10 * day) AS last FROM days ORDER BY day;
ROLLBACK;

-- Variables of PL/pgSQL, which PostgreSQL 18 and later change in place
DO $$
DECLARE
	f bloom;
	g bloom;
	h bloom;
	e bloom := bloom_empty();
BEGIN
	f := bloom_add(f, NULL::int);
	RAISE INFO 'both NULL: %', f IS NULL;
	FOR i IN 1 .. 100 LOOP
		f := bloom_add(f, i);
		f := bloom_add(f, NULL::int);
		g := bloom_add_all(g, ARRAY[i, -i]);
		g := bloom_add_all(g, NULL::int[]);
		h := bloom_add_hash(h, bloom_hash(i));
		h := bloom_add_hash(h, NULL);
		e := bloom_add(e, nullif(i % 2, 0));
	END LOOP;
	RAISE INFO 'keys: % % % %', bloom_cardinality(f), bloom_cardinality(g), bloom_cardinality(h), bloom_cardinality(e);
	RAISE INFO 'same: %', f = bloom_add_all(bloom_empty(), ARRAY(SELECT generate_series(1, 100)));
	f := f | NULL;
	RAISE INFO 'union: % %', bloom_cardinality(f), bloom_cardinality(NULL | g);
	f := bloom_add(f, 101);
	SELECT filter INTO f FROM bloom_try_add(f, NULL::int);
	RAISE INFO 'last: % %', bloom_cardinality(f), f @> 101;
END $$;

-- As transition functions: of aggregates with and without initial state
CREATE AGGREGATE collect(int) (SFUNC = bloom_add, STYPE = bloom);
CREATE AGGREGATE unite(bloom) (SFUNC = bloom_union, STYPE = bloom, COMBINEFUNC = bloom_union);
SELECT collect(i) = bloom_add_all(bloom_empty(), ARRAY[1, 2, 3]) AS collect, collect(NULL) IS NULL AS nothing
  FROM (VALUES (NULL), (1), (2), (NULL), (3)) v (i);
SELECT bloom_cardinality(unite(f)) AS unite FROM (SELECT f FROM filters WHERE form <> 'stored' UNION ALL SELECT NULL) x;
DROP AGGREGATE collect(int);
DROP AGGREGATE unite(bloom);

-- Lookup functions, and functions of one filter
SELECT bloom_contains(f, NULL::int) AS key, bloom_contains(NULL, 1) AS filter, f @> NULL AS op, NULL <@ f AS commuted,
	bloom_contains_any(f, NULL::int[]) AS "any", bloom_contains_all(NULL, ARRAY[1]) AS "all", bloom_new_keys(NULL, ARRAY[1]) AS new,
	bloom_contains_hash(f, NULL) AS hash, bloom_cardinality(NULL) AS cardinality, bloom_fpp(NULL) AS fpp,
	bloom_intersection_cardinality(f, NULL) AS common, bloom_compact(NULL) IS NULL AS compact
  FROM filters WHERE form = 'sparse';

DROP TABLE filters;

-- Arrays without a type
SELECT bloom_add_all(f, NULL) = f AS null_keys, bloom_add_all(NULL, NULL) IS NULL AS nulls,
  bloom_add_all(NULL, '{a,NULL}') = bloom_add(bloom_empty(), 'a'::text) AS null_filter,
  bloom_contains_each(f, '{1,NULL,5,7}') AS each, bloom_contains_any(f, NULL) IS NULL AS any
FROM (SELECT bloom_agg(i) FROM generate_series(1, 5) i) x (f);

-- A first run of a dedup: nothing is known yet, so everything is new.
CREATE TABLE known (k int);
INSERT INTO known SELECT k FROM generate_series(1, 3) k WHERE NOT (SELECT bloom_agg(k) FROM known) @> k;
INSERT INTO known SELECT k FROM generate_series(2, 5) k WHERE NOT (SELECT bloom_agg(k) FROM known) @> k;
SELECT count(*), max(k) FROM known;
DROP TABLE known;
--
-- The reported properties of a filter, compared with independent values.
--

-- All properties of an empty filter, a sparse and a dense one.  The numbers
-- for 2,000 keys at 0.01 follow from doc/FORMAT.md.
\pset null '(null)'
\x on
SELECT * FROM bloom_info(bloom_empty());
SELECT * FROM bloom_info(bloom_empty(0.001, 5000, -42));
SELECT i.* FROM (SELECT bloom_agg('key ' || k, 0.05, 100, 3) AS f FROM generate_series(1, 3) k) s, bloom_info(f) i;
SELECT key_type, form, i.fpp, expected, seed, layers, bits, hashes, block_bits, bits_set, round(fill::numeric, 3) AS fill,
  cardinality, round(current_fpp::numeric, 4) AS current_fpp, bytes, over_capacity
FROM (SELECT bloom_agg(k, 0.01, 2000) AS f FROM generate_series(1, 2000) k) d, bloom_info(f) i;
\x off

-- bloom_info agrees with each accessor, bits_set with the bits, and bytes with
-- the size of the value.
CREATE TABLE filters (n int, f bloom);
INSERT INTO filters VALUES (0, bloom_empty()), (0, bloom_empty(0.5, 1));
INSERT INTO filters SELECT n, bloom_agg(k, fpp, expected)
  FROM (VALUES (1, 0.01, NULL), (12, 0.01, 100), (100, 0.01, 100), (100, 0.5, 100), (1000, 1e-9, 1000), (1000, 0.1, NULL),
    (5000, 1e-5, 200000), (2000, 0.001, 2000)) v(n, fpp, expected), generate_series(1, n) k GROUP BY n, fpp, expected;
SET client_min_messages = error;
INSERT INTO filters SELECT 5000, bloom_agg(k, 0.01, 100) FROM generate_series(1, 5000) k;
RESET client_min_messages;
SELECT count(*) AS filters,
  bool_and(i.cardinality = bloom_cardinality(f)) AS cardinality,
  bool_and(i.current_fpp = bloom_fpp(f)) AS current_fpp,
  bool_and(i.bytes = octet_length(f::bytea) + 4) AS bytes,
  bool_and(i.layers > 0 OR i.bytes = 48 + 8 * n) AS sparse_bytes,
  bool_and(i.layers = 0 OR i.bytes = 48 + 32 * layers + bits / 8) AS dense_bytes,
  bool_and(i.layers = 0 OR bits_set = (SELECT sum(length(replace(get_byte(image, b)::bit(8)::text, '0', '')))
    FROM (SELECT f::bytea || '' AS image OFFSET 0) in_memory, generate_series(44 + 32 * layers, octet_length(image) - 1) b)) AS bits_set,
  bool_and(fill IS NOT DISTINCT FROM bits_set::float8 / bits) AS fill,
  bool_and(bits % block_bits = 0) AS blocks,
  bool_and((form = 'sparse') = (layers = 0) AND (form = 'sparse') = (bits IS NULL)) AS form,
  bool_and(over_capacity = (layers > 1)) AS over_capacity
FROM filters, bloom_info(f) i;
DROP TABLE filters;

--
-- Cardinality: exact while sparse, also with duplicates
--
SELECT n, bloom_cardinality(f) AS cardinality, (bloom_info(f)).form
FROM unnest('{0,1,2,10,1000,20000}'::int[]) n,
  LATERAL (SELECT bloom_add_all(bloom_empty(), COALESCE(array_agg(k % n), '{}')) AS f FROM generate_series(1, 3 * n) k) f;
SELECT n, bloom_cardinality(f) AS cardinality, (bloom_info(f)).form
FROM unnest('{1,2,10,1000,20000}'::int[]) n,
  LATERAL (SELECT bloom_agg(k % n, 0.01, 1000000) AS f FROM generate_series(1, 3 * n) k) f;
-- an estimate within 1 % for many keys
SELECT n, p, abs(bloom_cardinality(f) - n) <= 0.01 * n AS within_one_percent, (bloom_info(f)).form
FROM (VALUES (20000, 0.1), (20000, 0.01), (20000, 1e-6), (100000, 0.01)) v(n, p),
  LATERAL (SELECT bloom_agg(k, p) AS f FROM generate_series(1, n) k) f;
-- and for several layers
SET client_min_messages = error;
SELECT bloom_cardinality(f) BETWEEN 47500 AND 52500 AS within_five_percent, (bloom_info(f)).layers
FROM (SELECT bloom_agg(k, 0.01, 1000) AS f FROM generate_series(1, 50000) k) f;
RESET client_min_messages;

-- The current rate: 0 when empty, increasing with each key, the requested one
-- with the expected keys, and at most twice that with any number of keys.
SELECT bloom_fpp(bloom_empty()) AS empty, bloom_fpp(bloom_empty(0.1, 1000)) AS empty_sized,
  bloom_fpp(bloom_add(bloom_empty(0.1, 1000), 1)) BETWEEN 1e-20 AND 1e-19 AS one_hash;
SET client_min_messages = error;
SELECT p, bool_and(fpp > last) AS rising, bool_and(fpp <= 1.1 * p) FILTER (WHERE n <= 1000) AS within,
  bool_and(fpp <= 2 * p) AS at_most_twice, max(layers) > 1 AS grown
FROM (SELECT p, n, bloom_fpp(f) AS fpp, lag(bloom_fpp(f), 1, 0::float8) OVER (PARTITION BY p ORDER BY n) AS last, (bloom_info(f)).layers
      FROM (SELECT p, n, bloom_agg(k, p, 1000) AS f
            FROM unnest('{0.1,0.001,1e-5}'::float8[]) p, unnest('{1,10,100,250,500,750,1000,2000,4000,10000}'::int[]) n,
              generate_series(1, n) k GROUP BY p, n) f) f
GROUP BY p ORDER BY p;
RESET client_min_messages;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA sizing;
SET search_path = sizing, public;
--
-- bloom_sizing and bloom_compact
--

-- The result of bloom_sizing is the size of a filter.
SELECT p, n, s.bits = i.bits AS bits, s.bytes = i.bytes AS bytes, s.hashes = i.hashes AS hashes,
	s.block_bits = i.block_bits AS block_bits, s.filters
  FROM (SELECT p, n, (SELECT bloom_agg(i, p, n) FROM generate_series(1, n) i) AS f
		  FROM (VALUES (0.1), (0.01), (0.0001), (1e-7)) p (p), (VALUES (1000), (100000)) n (n)) x,
	bloom_sizing(p, n) s, bloom_info(f) i
 ORDER BY n, p;
SELECT fpp, round((s.bits / n / (-ln(fpp) / ln(2) ^ 2))::numeric, 2) AS over_real_standard,
	s.standard_hashes, round(s.standard_bits / n, 2) AS standard, round(s.bits_per_key::numeric, 2) AS bits_per_key
  FROM (VALUES (0.1), (0.01), (0.001), (0.0001), (1e-5), (1e-6), (1e-7)) p (fpp), (VALUES (1000000.0)) n (n),
	bloom_sizing(fpp, n::bigint) s;
-- Several filters: ten billion URLs at 0.0001 in less than 26 GB
SELECT filters, bytes < 26e9 AS fits FROM bloom_sizing(0.0001, 10000000000);
SELECT bloom_sizing(NULL, 1) IS NULL AS null, filters FROM bloom_sizing(0.01, 430000000);
SELECT bloom_sizing(0, 1);
SELECT bloom_sizing(0.01, 0);
SELECT bloom_sizing(0.01, 1000000000000001);

-- A list of hashes without expected becomes the filter that bloom_agg builds.
SELECT (bloom_info(f)).form, (bloom_info(bloom_compact(f))).form AS compact,
	bloom_compact(f) = (SELECT bloom_agg(i) FROM generate_series(1, 1000) i) AS same
  FROM (SELECT bloom_add_all(bloom_empty(), array_agg(i)) AS f FROM generate_series(1, 1000) i) x;
-- An oversized filter becomes the one that is built with the smaller size, and
-- keeps its keys and its rate.
CREATE TABLE oversized AS
SELECT n, f, bloom_compact(f) AS c
  FROM (SELECT n, (SELECT bloom_agg(i, 0.01, 655360) FROM generate_series(1, n) i) AS f
		  FROM (VALUES (20000), (163000)) v (n)) x;
SELECT n, (bloom_info(f)).form, length(c::bytea) * 8.0 / n < 12 AS small, (bloom_info(c)).expected >= n AS enough,
	c = (SELECT bloom_agg(i, 0.01, (SELECT (bloom_info(c)).expected)) FROM generate_series(1, n) i) AS as_built,
	(SELECT bloom_contains_all(c, array_agg(i)) FROM generate_series(1, n) i) AS all_found,
	bloom_fpp(c) <= 0.0101 AS rate, bloom_compact(c) = c AS done
  FROM oversized ORDER BY n;
DROP TABLE oversized;
-- Nothing to save
SELECT bloom_compact(f) = f AS same FROM (VALUES (bloom_empty()), (bloom_empty(0.01, 1000)),
	(bloom_add(bloom_empty(), 1)), ((SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 990) i)),
	((SELECT bloom_agg(i) FROM generate_series(1, 990) i))) v (f);
SELECT bloom_compact(NULL) IS NULL AS null;
-- What follows has objects of its own.
RESET ALL;
CREATE SCHEMA equality;
SET search_path = equality, public;
--
-- Equality of filters
--
CREATE TABLE filters (id int, f bloom);
INSERT INTO filters
SELECT g, bloom_agg(i) FROM generate_series(1, 6) g, generate_series(1, 1000) i
 WHERE i % 3 = g % 3 GROUP BY g;
INSERT INTO filters VALUES (7, bloom_empty()), (8, bloom_empty()), (9, bloom_empty(0.02)),
	(10, bloom_empty(seed => 1)), (11, NULL);

SELECT a.id, array_agg(b.id ORDER BY b.id) AS equal
  FROM filters a JOIN filters b ON a.f = b.f GROUP BY a.id ORDER BY a.id;
SELECT count(*) FROM filters a, filters b WHERE a.f <> b.f;
SELECT count(DISTINCT f::bytea) AS truth, (SELECT count(*) FROM (SELECT DISTINCT f FROM filters WHERE f IS NOT NULL) x) AS distinct
  FROM filters;
SELECT count(*) AS groups, max(n) AS largest FROM (SELECT f, count(*) AS n FROM filters GROUP BY f) x;
SELECT count(*) AS united FROM (SELECT f FROM filters UNION SELECT f FROM filters) x;
SELECT count(*) AS remaining FROM (SELECT f FROM filters EXCEPT SELECT f FROM filters WHERE id <= 3) x;

-- by a hash join, also of values stored out of line
SET enable_nestloop = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM filters a JOIN filters b ON a.f = b.f;
SELECT count(*) FROM filters a JOIN filters b ON a.f = b.f;
CREATE TABLE large AS
SELECT g, bloom_agg(i, 0.001) AS f FROM generate_series(1, 4) g, generate_series(1, 20000) i
 WHERE i % 2 = g % 2 GROUP BY g;
SELECT a.g, b.g FROM large a JOIN large b ON a.f = b.f ORDER BY 1, 2;
RESET enable_nestloop;
RESET enable_mergejoin;

-- The extended hash function with seed 0 is the other one in 64 bits.
SELECT bool_and(hash_bloom(f) = (hash_bloom_extended(f, 0) & 4294967295)::bit(32)::int) AS agree,
	count(DISTINCT hash_bloom(f)) AS values
  FROM filters WHERE f IS NOT NULL;

-- a hash index, and hash partitions
CREATE INDEX ON filters USING hash (f);
SET enable_seqscan = off;
SELECT id FROM filters WHERE f = (SELECT f FROM filters WHERE id = 2) ORDER BY id;
RESET enable_seqscan;
CREATE TABLE partitioned (f bloom) PARTITION BY HASH (f);
CREATE TABLE partitioned_0 PARTITION OF partitioned FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE partitioned_1 PARTITION OF partitioned FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO partitioned SELECT f FROM filters WHERE f IS NOT NULL;
SELECT count(*) FROM partitioned;

DROP TABLE filters, large, partitioned;

-- The keys that a filter holds at its rate, and when it can grow no more
SELECT fpp, expected, max_keys >= expected AS enough, max_grown_keys FROM (VALUES (0.01, 1), (0.01, 1e6), (0.01, 4e8),
	(0.01, 1e9), (0.0001, 1e5), (0.5, 1e3), (1e-9, 10)) v(fpp, expected), bloom_sizing(fpp, expected);
SELECT bool_and(bloom_fpp(f) <= fpp) AS rate, bool_and((bloom_info(f)).layers = 1) AS one_layer
  FROM (SELECT v.fpp, bloom_agg(i, v.fpp, v.expected) AS f
		  FROM (VALUES (0.01, 1000), (0.01, 20000), (0.1, 5000), (0.001, 3000)) v(fpp, expected),
			bloom_sizing(v.fpp, v.expected) s, LATERAL generate_series(1, s.max_keys) i GROUP BY v.fpp, v.expected) x;
-- A filter that does not grow
CREATE DOMAIN bloom_1pct AS bloom CHECK (bloom_fpp(VALUE) <= 0.01);
CREATE TABLE limited (f bloom_1pct);
INSERT INTO limited SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 1000) i;
UPDATE limited SET f = bloom_add_all(f, ARRAY(SELECT generate_series(1001, 3000)));
SELECT bloom_cardinality(f) BETWEEN 950 AND 1050 AS kept FROM limited;
DROP TABLE limited;
DROP DOMAIN bloom_1pct;

-- What is compact stays as it is, also of hashes that are not spread evenly.
SELECT bool_and(bloom_compact(c) = c) AS compact, count(*)
  FROM (SELECT bloom_compact(bloom_agg_hash(i * step, fpp, 1000000)) AS c
		  FROM (VALUES (0.01), (0.0001)) r(fpp), unnest(ARRAY[1, 1000, 1::bigint << 40, 1::bigint << 50]) step,
			generate_series(1, 3000) i GROUP BY fpp, step
		UNION ALL SELECT bloom_compact(bloom_add_all(bloom_empty(), array_agg(i)))
		  FROM generate_series(30, 110) n, generate_series(1, n) i GROUP BY n) x;
