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

-- An intersection with NULL is the filter, too: nothing is known that it lacks.
SELECT form, bloom_intersection(f, NULL) = f AS "right", bloom_intersection(NULL, f) = f AS "left", f & NULL = f AS op_right,
	NULL & f = f AS op_left, (NULL::bloom & NULL) IS NULL AS nulls FROM filters ORDER BY form;

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
