--
-- Exclusions of known false positives
--
CREATE TABLE filters (f bloom);
INSERT INTO filters SELECT bloom_agg(i, 0.1, 10000) FROM generate_series(1, 10000) i;
CREATE TABLE hits AS SELECT i FROM filters, generate_series(10001, 60000) i WHERE f @> i;
SELECT count(*) BETWEEN 4500 AND 5500 AS about_a_tenth FROM hits;

CREATE FUNCTION exclude(f bloom, keys int[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
	key int;
BEGIN
	FOREACH key IN ARRAY keys LOOP
		f := bloom_exclude(f, key);
	END LOOP;
	RETURN f;
END $$;

-- Excluded keys are not reported as members; members and other false
-- positives are.
CREATE TABLE excluded AS
SELECT exclude(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 1000)) AS e, f FROM filters;
SELECT (bloom_info(e)).excluded, (bloom_info(f)).excluded AS before, pg_column_size(e) - pg_column_size(f) AS bytes,
	(SELECT count(*) FROM (SELECT i FROM hits ORDER BY i LIMIT 1000) x WHERE e @> i) AS still_positive,
	(SELECT count(*) FROM (SELECT i FROM hits ORDER BY i OFFSET 1000) x WHERE NOT e @> i) AS lost_positives,
	(SELECT count(*) FROM generate_series(1, 10000) i WHERE NOT e @> i) AS lost_keys
  FROM excluded;
-- also by hash, in arrays and for the loop of a crawler
SELECT bloom_contains_hash(e, bloom_hash(i)) AS hash, bloom_contains_any(e, ARRAY[i]) AS any,
	bloom_new_keys(e, ARRAY[i, 1]) = ARRAY[i] AS new, (bloom_try_add(e, i)).added
  FROM excluded, (SELECT i FROM hits ORDER BY i LIMIT 1) x;

-- The order of exclusions does not matter, and duplicates have no effect.
SELECT exclude(f, ARRAY(SELECT i FROM hits WHERE i < 10100 ORDER BY i)) =
	exclude(f, ARRAY(SELECT i FROM hits WHERE i < 10100 ORDER BY i DESC)) AS order,
	exclude(e, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 10)) = e AS again
  FROM excluded;
-- An array has the same result as single calls, also with other keys in it.
SELECT bloom_exclude_all(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 1000)) = e AS all,
	bloom_exclude_all(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 1000) || NULL ||
		ARRAY(SELECT i FROM generate_series(-1000, 0) i WHERE NOT f @> i) ||
		ARRAY(SELECT i FROM hits ORDER BY i LIMIT 1000)) = e AS others,
	bloom_exclude_all(bloom_exclude_all(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 900)),
		ARRAY(SELECT i::bigint FROM hits ORDER BY i OFFSET 800 LIMIT 200)) = e AS in_turn,
	bloom_exclude_all(e, '{}'::int[]) = e AS none, bloom_exclude_all(e, ARRAY[NULL, NULL]::int[]) = e AS nulls,
	bloom_exclude_all(f, '{}'::text[]) = f AS none_of_text
  FROM excluded;
-- A key that is not reported as a member changes nothing.
SELECT bloom_exclude(f, i) = f AS same FROM filters, generate_series(-1000, 0) i WHERE NOT f @> i LIMIT 1;
-- Text, binary and bytea forms
SELECT e::text::bloom = e AS text, e::bytea::bloom = e AS bytea, bloom_compact(e) = e AS compact FROM excluded;

-- Adding the key removes the exclusion, by any function.
CREATE TABLE paths (path text, f bloom, key int);
INSERT INTO paths
SELECT path, g, i
  FROM excluded, (SELECT i FROM hits ORDER BY i LIMIT 1) x,
	LATERAL (VALUES
		('bloom_add', bloom_add(e, i)),
		('bloom_add_all', bloom_add_all(e, ARRAY[0, i])),
		('bloom_add_hash', bloom_add_hash(e, bloom_hash(i))),
		('bloom_try_add', (bloom_try_add(e, i)).filter),
		('union with a sparse filter', e | bloom_add(bloom_empty(), i)),
		('union with a dense filter', (SELECT bloom_agg(j, 0.1, 10000) FROM generate_series(i - 5000, i) j) | e),
		('union with another geometry', e | (SELECT bloom_agg(j) FROM generate_series(i, i + 500) j)),
		('union with the filter without exclusions', e | excluded.f),
		('bloom_union_agg', (SELECT bloom_union_agg(u) FROM (VALUES (e), (bloom_add(bloom_empty(), i))) u (u)))) p (path, g);
SELECT path, f @> key AS found,
	(SELECT count(*) FROM generate_series(1, 10000) i WHERE NOT f @> i) AS lost
  FROM paths;
-- Other exclusions remain.
SELECT (bloom_info(e | e)).excluded, (e | e) = e AS idempotent,
	(bloom_info(bloom_add(e, 0))).excluded AS other_key,
	(bloom_info(e | bloom_add(bloom_empty(), 0))).excluded AS other_filter,
	(bloom_info(e & f)).excluded AS intersection,
	(SELECT count(*) FROM (SELECT i FROM hits ORDER BY i LIMIT 1000) x WHERE (e & f) @> i) AS still_positive
  FROM excluded;
-- A union keeps the exclusions that both filters have: a filter without the
-- exclusion has the bits set and may contain the key.
SELECT (bloom_info(exclude(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 20)) |
	exclude(f, ARRAY(SELECT i FROM hits ORDER BY i OFFSET 10 LIMIT 20)))).excluded
  FROM filters;

-- A sparse filter is exact.
SELECT bloom_exclude(bloom_add(bloom_empty(), 1), 2) = bloom_add(bloom_empty(), 1) AS absent;
SELECT bloom_exclude(bloom_add(bloom_empty(), 1), 1);
SELECT bloom_exclude(bloom_add(bloom_empty(), 1), 'a'::text);
SELECT cardinality(ARRAY(SELECT i FROM hits)) > 4096 AS too_many;
SELECT exclude(f, ARRAY(SELECT i FROM hits ORDER BY i)) FROM filters;
SELECT bloom_exclude_all(f, ARRAY(SELECT i FROM hits)) FROM filters;
SELECT (bloom_info(bloom_exclude_all(f, ARRAY(SELECT i FROM hits LIMIT 4096)))).excluded FROM filters;
SELECT bloom_exclude_all(bloom_add_all(bloom_empty(), ARRAY[1, 2]), ARRAY[3, 4]) =
	bloom_add_all(bloom_empty(), ARRAY[1, 2]) AS absent;
SELECT bloom_exclude_all(bloom_add_all(bloom_empty(), ARRAY[1, 2]), ARRAY[3, 2]);
SELECT bloom_exclude_all(f, ARRAY['a'::text]) FROM filters;
SELECT bloom_exclude_all(f, ARRAY['1'::json]) FROM filters;
SELECT bloom_exclude_all(bloom_empty(), ARRAY['a'::text]) = bloom_empty() AS empty;

-- A union has at most 4,096 exclusions: the others are false positives again.
CREATE TABLE two AS
SELECT bloom_exclude_all(f, ARRAY(SELECT i FROM hits ORDER BY i LIMIT 4000)) AS f,
	bloom_exclude_all(g, ARRAY(SELECT i FROM generate_series(10001, 60000) i WHERE g @> i ORDER BY i LIMIT 4000)) AS g
  FROM filters, (SELECT bloom_agg(i, 0.1, 10000) AS g FROM generate_series(1000001, 1010000) i) x;
SELECT (bloom_info(f)).excluded AS left, (bloom_info(g)).excluded AS right, (bloom_info(f | g)).excluded AS union, f | g = g | f AS commutative,
	(SELECT (bloom_info(bloom_union_agg(x))).excluded FROM (VALUES (f), (g)) v (x)) AS aggregate,
	(SELECT count(*) FROM (SELECT f | g AS u OFFSET 0) x, generate_series(1, 10000) i WHERE NOT u @> i OR NOT u @> i + 1000000) AS lost
  FROM two;
DROP TABLE two;

DROP TABLE filters, hits, excluded, paths;
DROP FUNCTION exclude;
