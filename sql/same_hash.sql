--
-- SAME_HASH
-- Different keys with equal hashes: bloom_new_keys distinguishes them by the
-- equality operator of their type.
--

-- A type whose hash function is constant, with case-insensitive equality
SET client_min_messages = warning;
CREATE TYPE tag;
CREATE FUNCTION tag_in(cstring) RETURNS tag LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION tag_out(tag) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE tag (INPUT = tag_in, OUTPUT = tag_out, LIKE = text, COLLATABLE = true);
RESET client_min_messages;
CREATE CAST (tag AS text) WITHOUT FUNCTION;
CREATE FUNCTION tag_eq(tag, tag) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT lower($1::text) = lower($2::text)';
CREATE OPERATOR = (FUNCTION = tag_eq, LEFTARG = tag, RIGHTARG = tag);
CREATE FUNCTION tag_hash(tag) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 42';
CREATE FUNCTION tag_hash(tag, int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS 'SELECT 42::int8';
CREATE OPERATOR CLASS tag_ops DEFAULT FOR TYPE tag USING hash AS OPERATOR 1 =, FUNCTION 1 tag_hash(tag),
	FUNCTION 2 tag_hash(tag, int8);
CREATE DOMAIN short_tag AS tag;

SELECT bloom_hash('a'::tag) = bloom_hash('b'::tag) AS same_hash;
SELECT bloom_new_keys(bloom_empty(), '{a,b,A,c,NULL,b,B}'::tag[]) AS tags,
	bloom_new_keys(bloom_empty(), '{c,c,C,a,A,c,b,a,B,c,d}'::tag[]) AS repeated,
	bloom_new_keys(bloom_empty(), '{b,a,B,b}'::short_tag[]) AS domain,
	bloom_new_keys(bloom_empty(), '{{x,y},{X,NULL}}'::tag[]) AS nested,
	bloom_new_keys(bloom_empty(), '{a,b,A}'::tag[] COLLATE "C") AS collated,
	bloom_new_keys(bloom_add(bloom_empty(), 'z'::tag), '{a,b,z}'::tag[]) AS positive;
-- A loop that counts new keys before it adds them loses none.
SELECT cardinality(bloom_new_keys(bloom_empty(), array_agg(('t' || i)::tag))) AS new FROM generate_series(1, 200) i;

-- Composite types hash and compare by their columns.
CREATE TYPE pair AS (t tag, i int);
SELECT bloom_new_keys(bloom_empty(), ARRAY[ROW('a', 1), ROW('b', 1), ROW('A', 1), ROW('a', 2)]::pair[]);

-- The types hashed by the extension itself: equal keys of different bytes
SELECT bloom_new_keys(bloom_empty(), ARRAY[1.0, 1.00, 2]) AS numerics, bloom_new_keys(bloom_empty(), ARRAY['a', 'a ']::char(3)[]) AS chars,
	bloom_new_keys(bloom_empty(), ARRAY[0.0, -0.0, 'NaN', 'NaN']::float8[]) AS floats,
	bloom_new_keys(bloom_empty(), ARRAY['1 mon', '30 days', '1 day']::interval[]) AS intervals,
	bloom_new_keys(bloom_empty(), ARRAY['x', 'y', 'x']::name[]) AS names,
	bloom_new_keys(bloom_empty(), ARRAY['x', 'y', 'x']::varchar[]) AS varchars,
	bloom_new_keys(bloom_empty(), ARRAY['x', 'y', 'x']::"char"[]) AS "char";

DROP TYPE pair;
DROP DOMAIN short_tag;
SET client_min_messages = warning;
DROP TYPE tag CASCADE;
