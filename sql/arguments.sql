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

-- Out of range: not a number, infinite, less than 1, more than 2^53
CREATE PROCEDURE try(query text) LANGUAGE plpgsql AS $$
DECLARE
	result text;
	code text; message text; detail text; hint text;
BEGIN
	EXECUTE query INTO result;
	RAISE INFO '%', COALESCE(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RAISE INFO '%', concat_ws(E'\n', format('%s: %s', code, message), NULLIF(detail, ''), NULLIF(hint, ''));
END
$$;
CALL try($$SELECT bloom_empty(0.01, 'NaN')$$);
CALL try($$SELECT bloom_empty(0.01, 'Infinity')$$);
CALL try($$SELECT bloom_empty(0.01, '-Infinity')$$);
CALL try('SELECT bloom_empty(0.01, 0.5)');
CALL try('SELECT bloom_empty(0.01, -1000.5)');
CALL try('SELECT bloom_empty(0.01, 1e300)');
CALL try('SELECT bloom_empty(0.01, 9007199254740993)');
CALL try('SELECT bloom_empty(0.01, 9007199254740994)');
CALL try('SELECT bloom_empty(0.01, 9007199254740992)');
CALL try('SELECT expected FROM bloom_info(bloom_empty(0.01, 1.0000001))');
CALL try($$SELECT bloom_agg(id, 0.01, 'NaN') FROM words$$);
CALL try('SELECT bloom_agg(id, 0.01, 0.9) FROM words');
CALL try('SELECT bloom_agg(id, 0.01, CASE WHEN id = 1 THEN 1000 ELSE float8 ''NaN'' END) FROM words');
CALL try('SELECT bloom_agg(id, 0.01, CASE WHEN id > 1 THEN 0 END) FROM words');
CALL try($$SELECT bloom_sizing(0.01, 'NaN')$$);
CALL try($$SELECT bloom_sizing(0.01, 'Infinity')$$);
CALL try('SELECT bloom_sizing(0.01, 0.5)');
CALL try('SELECT bloom_sizing(0.01, 1.1e15)');

-- Swapped: the error states the order.  A rate that is merely too large or
-- too small has another hint.
CALL try('SELECT bloom_empty(1000, 0.01)');
CALL try('SELECT bloom_empty(1000)');
CALL try('SELECT bloom_empty(1)');
CALL try('SELECT bloom_sizing(1000000, 0.01)');
CALL try('SELECT bloom_agg(word, 1000000, 0.01) FROM words');
CALL try('SELECT bloom_agg(word, 1000000) FROM words');
CALL try('SELECT bloom_empty(0.6)');
CALL try('SELECT bloom_empty(1e-12)');
CALL try('SELECT bloom_empty(-1)');
CALL try($$SELECT bloom_empty('NaN')$$);

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
CALL try($$SELECT bloom_empty(key_type => 'json')$$);
CALL try($$SELECT bloom_empty(key_type => 'point')$$);
CALL try($$SELECT bloom_empty(key_type => 'regclass')$$);
CALL try($$SELECT bloom_empty(key_type => 'record')$$);
CALL try($$SELECT bloom_empty(key_type => 'anyelement')$$);
CALL try($$SELECT bloom_empty(key_type => 'anyenum')$$);
CALL try($$SELECT bloom_empty(key_type => 'mood[]')$$);
CALL try($$SELECT bloom_empty(key_type => 'unknown')$$);
CALL try($$SELECT bloom_empty(key_type => '-')$$);
CALL try($$SELECT bloom_empty(key_type => 4294967295::oid)$$);
CALL try($$SELECT bloom_empty(key_type => 'no_such_type')$$);
SELECT bloom_empty(fpp => 0, key_type => 'json');

-- The key before the filter: an untyped literal is read as a filter, and
-- rejected also if it is base64 or has the right length.
CREATE TABLE filters (f bloom NOT NULL);
INSERT INTO filters VALUES (bloom_add(bloom_empty(), 'x'));
CALL try($$SELECT bloom_contains('x', f) FROM filters$$);
CALL try($$SELECT bloom_contains('user', f) FROM filters$$);
CALL try($$SELECT bloom_contains('', f) FROM filters$$);
CALL try($$SELECT bloom_contains('https://example.org/', f) FROM filters$$);
CALL try($$SELECT bloom_contains(repeat('abcd', 1000)::bloom, f) FROM filters$$);
CALL try($$SELECT bloom_add('x', f) FROM filters$$);
CALL try($$SELECT bloom_add_all('{a,b}', ARRAY[f]) FROM filters$$);
CALL try($$SELECT f | 'x' FROM filters$$);
CALL try($$SELECT 'x' @> f FROM filters$$);
CALL try($$SELECT 'x' <@ f FROM filters$$);
-- For a damaged filter the error states the damage instead.
CALL try($$SELECT left(f::text, -4)::bloom FROM filters$$);
CALL try($$SELECT 'QkxNRgE='::bloom$$);
CALL try($$SELECT 'QkxNRv8='::bloom$$);
-- Binary input is never typed by hand, so it has no hint.
CALL try($$SELECT 'x'::bytea::bloom$$);
DROP TABLE filters;

DROP PROCEDURE try;
DROP TABLE words;
DROP DOMAIN smaller, small;
DROP TYPE mood;

-- Types that cannot be keys, and those of keys without a type
SELECT bloom_empty(key_type => 'bloom');
SELECT bloom_empty(key_type => 'bloom_key');
SELECT bloom_empty(key_type => 'bloom_keys');
SELECT bloom_add(bloom_empty(key_type => 'bigint'), '42') = bloom_add(bloom_empty(), 42) AS integer,
  bloom_add_all(bloom_empty(key_type => 'uuid'), '{00000000-0000-0000-0000-000000000001}') @> uuid '00000000-0000-0000-0000-000000000001' AS uuid;
