--
-- Variables of PL/pgSQL: from PostgreSQL 18 on, keys are added to them in
-- place. Only the speed may differ.
--
\pset format unaligned
\pset tuples_only

\set ECHO none
-- The results of bloom_add for values in rows, which it always copies.
CREATE FUNCTION copied(filter bloom, keys int[]) RETURNS bloom LANGUAGE sql AS $$
	WITH RECURSIVE steps (i, f) AS (
		SELECT 0, filter
		UNION ALL
		SELECT i + 1, bloom_add(f, keys[i + 1]) FROM steps WHERE i < cardinality(keys))
	SELECT f FROM steps ORDER BY i DESC LIMIT 1;
$$;
CREATE FUNCTION in_loop(f bloom, keys int[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
	k int;
BEGIN
	FOREACH k IN ARRAY keys LOOP
		f := bloom_add(f, k);
	END LOOP;
	RETURN f;
END $$;
CREATE FUNCTION if_new(f bloom, keys int[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
	k int;
BEGIN
	FOREACH k IN ARRAY keys LOOP
		IF NOT bloom_contains(f, k) THEN
			f := bloom_add(f, k);
		END IF;
		ASSERT f @> k AND k <@ f AND bloom_contains_hash(f, bloom_hash(k, (bloom_info(f)).seed));
	END LOOP;
	RETURN f;
END $$;
CREATE FUNCTION by_tens(f bloom, keys int[]) RETURNS bloom LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. (cardinality(keys) - 1) / 10 LOOP
		f := bloom_add_all(f, keys[10 * i + 1 : 10 * i + 10]);
	END LOOP;
	RETURN f;
END $$;
CREATE FUNCTION by_hash(f bloom, keys int[]) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
	n bigint := -1;
BEGIN
	FOR i IN 1 .. cardinality(keys) LOOP
		f := bloom_add_hash(f, bloom_hash(keys[i], 42));
		ASSERT bloom_cardinality(f) >= n;
		n := bloom_cardinality(f);
	END LOOP;
	RETURN f;
END $$;
\set ECHO all

-- All functions produce the same bytes: as a list of hashes, during
-- conversion to dense, in one or several layers, and with separate
-- layers of a union, which takes keys that it reports.
CREATE TEMP TABLE starts (name text, f bloom);
INSERT INTO starts VALUES
	('unsized', bloom_add(bloom_empty(0.01, NULL, 42), 0)),
	('sized', bloom_add(bloom_empty(0.01, 5000, 42), 0)),
	('sized for some', bloom_add(bloom_empty(0.001, 300, 42), 0)),
	('sized for few', bloom_add(bloom_empty(0.01, 10, 42), 0)),
	('sized for one', bloom_add(bloom_empty(0.5, 1, 42), 0)),
	('strict', bloom_add(bloom_empty(1e-9, 100, 42), 0));
INSERT INTO starts
	SELECT 'side by side', a | b | c
	  FROM (SELECT bloom_agg(i, 0.01, 200, 42) FROM generate_series(-200, -1) i) a (a),
		(SELECT bloom_agg(i, 0.01, 200, 42) FROM generate_series(-400, -201) i) b (b),
		(SELECT bloom_agg(i, 0.1, 600, 42) FROM generate_series(-500, -401) i) c (c);
SELECT name, (bloom_info(expected)).layers, in_loop(f, keys) = expected AS in_loop,
	if_new(f, keys) = expected AS if_new, by_tens(f, keys) = expected AS by_tens,
	by_hash(f, keys) = expected AS by_hash
  FROM (SELECT name, f, keys, copied(f, keys) AS expected
		  FROM starts, (SELECT array_agg(i * 7 % 1999) AS keys FROM generate_series(1, 2500) i) k) x
 ORDER BY name;
-- In an empty filter, the first key sets the key type.
SELECT in_loop(bloom_empty(), '{3,1,2,3}') = copied(bloom_empty(), '{3,1,2,3}') AS in_loop,
	by_tens(bloom_empty(), '{3,1,2,3}') = copied(bloom_empty(), '{3,1,2,3}') AS by_tens,
	(bloom_info(by_hash(bloom_empty(0.01, NULL, 42), '{3,1,2,3}'))).key_type;

-- A copy is independent.
DO $$
DECLARE
	f bloom := bloom_empty();
	g bloom;
	h bloom;
	k int;
BEGIN
	f := bloom_add(f, 1);
	g := f;
	f := bloom_add(f, 2);
	h := bloom_add(f, 3);
	g := bloom_add(g, 4);
	RAISE INFO 'assigned: % % %', bloom_cardinality(f), bloom_cardinality(g), bloom_cardinality(h);
	RAISE INFO 'f: % % % %', f @> 1, f @> 2, f @> 3, f @> 4;
	RAISE INFO 'g: % % % %', g @> 1, g @> 2, g @> 3, g @> 4;
	RAISE INFO 'h: % % % %', h @> 1, h @> 2, h @> 3, h @> 4;
	f := f;
	f := bloom_add(f, 5);
	h := coalesce(f, g);
	h := bloom_add(h, 6);
	g := CASE WHEN true THEN f END;
	g := bloom_add(g, 7);
	RAISE INFO 'passed on: % % %', bloom_cardinality(f), bloom_cardinality(g), bloom_cardinality(h);
	SELECT bloom_add(f, 8) INTO h;
	RAISE INFO 'selected: % %', bloom_cardinality(f), bloom_cardinality(h);
	PERFORM bloom_add(f, 9), bloom_add_all(f, ARRAY[10, 11]), bloom_add_hash(f, 12);
	EXECUTE 'SELECT bloom_add($1, 13), 14' INTO h, k USING f;
	RAISE INFO 'executed: % %', bloom_cardinality(f), bloom_cardinality(h);
	h := f | bloom_add(f, 15);
	RAISE INFO 'united: % %', bloom_cardinality(f), bloom_cardinality(h);
END $$;

-- Nested calls, and the variable among the other arguments.
DO $$
DECLARE
	f bloom := bloom_empty();
	g bloom;
BEGIN
	f := bloom_add(bloom_add(f, 1), 2);
	f := bloom_add_all(bloom_add_hash(f, bloom_hash(3)), ARRAY[4, 5]);
	f := bloom_add(f, bloom_cardinality(f));
	f := bloom_add(f, bloom_cardinality(bloom_add(bloom_add(f, 100), 101)));
	f := bloom_add_all(f, ARRAY[bloom_cardinality(f), bloom_cardinality(f) + 1, NULL, 1]);
	RAISE INFO '% keys: % % % % % %, not %', bloom_cardinality(f), f @> 1, f @> 2, f @> 3, f @> 4, f @> 5, f @> 7, f @> 100;
	f := bloom_add_all(f, '{}'::int[]);
	f := bloom_add_all(f, ARRAY[NULL]::int[]);
	f := f | f;
	f := f & f;
	f := bloom_compact(f);
	f := bloom_add(f, 10);
	RAISE INFO '% keys', bloom_cardinality(f);
	-- the text of filters as keys of a filter
	g := bloom_add(bloom_empty(), f::text);
	g := bloom_add(g, g::text);
	f := bloom_add(f, 11);
	g := bloom_add_all(g, ARRAY[f, g, f]::text[]);
	RAISE INFO '% filters: % %', bloom_cardinality(g), g @> f::text, g @> g::text;
	f := bloom_add(f, NULL::int);
	RAISE INFO 'after NULL: % keys', bloom_cardinality(f);
	f := bloom_add(f, 12);
	RAISE INFO '% keys', bloom_cardinality(f);
END $$;

\set ECHO none
-- Errors leave the filter unchanged, also if they are caught.
CREATE FUNCTION failing(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i > 2 THEN
		RAISE EXCEPTION 'no key %', i;
	END IF;
	RETURN i;
END $$;
\set ECHO all
DO $$
DECLARE
	f bloom := bloom_empty(0.01, 100);
	g bloom;
BEGIN
	f := bloom_add(f, 1);
	g := f;
	BEGIN
		f := bloom_add(f, 'a'::text);
	EXCEPTION WHEN datatype_mismatch THEN
		RAISE INFO '% %', SQLERRM, f = g;
	END;
	BEGIN
		f := bloom_add_all(f, ARRAY['a', 'b']);
	EXCEPTION WHEN datatype_mismatch THEN
		RAISE INFO '% %', SQLERRM, f = g;
	END;
	BEGIN
		f := bloom_add(bloom_add(f, 2), 'a'::text);
	EXCEPTION WHEN datatype_mismatch THEN
		RAISE INFO '% %', SQLERRM, f = g;
	END;
	BEGIN
		f := bloom_add(bloom_add(f, 2), failing(3));
	EXCEPTION WHEN raise_exception THEN
		RAISE INFO '% %', SQLERRM, f = g;
	END;
	BEGIN
		f := bloom_add_all(f, ARRAY[failing(2), failing(3)]);
	EXCEPTION WHEN raise_exception THEN
		RAISE INFO '% %', SQLERRM, f = g;
	END;
	-- What was added before the error stays: variables are not rolled back.
	BEGIN
		FOR i IN 1 .. 1000 LOOP
			f := bloom_add(f, i);
		END LOOP;
		f := bloom_add(f, failing(1001));
	EXCEPTION WHEN raise_exception THEN
		RAISE INFO '% %', SQLERRM, f = in_loop(g, (SELECT array_agg(i ORDER BY i) FROM generate_series(1, 1000) i));
	END;
	f := bloom_add(f, 1001);
	RAISE INFO 'used on: % %', f @> 1001, f @> 500;
END $$;

-- All functions accept the variable between two changes.
DO $$
DECLARE
	f bloom := bloom_empty(0.01, 100);
	g bloom := copied(f, '{1,2,3}');
	x record;
BEGIN
	FOR i IN 1 .. 3 LOOP
		f := bloom_add(f, i);
	END LOOP;
	RAISE INFO 'equal: % % % %', f = g, f <> g, hash_bloom(f) = hash_bloom(g),
		hash_bloom_extended(f, 1) = hash_bloom_extended(g, 1);
	RAISE INFO 'out: % % %', f::text = g::text, f::bytea = g::bytea, bloom_send(f) = bloom_send(g);
	RAISE INFO 'in: % %', f::text::bloom = g, f::bytea::bloom = g;
	RAISE INFO 'info: % % %', bloom_info(f) = bloom_info(g), bloom_cardinality(f), bloom_fpp(f) = bloom_fpp(g);
	RAISE INFO 'keys: % % % %', f @> 3, 4 <@ f, bloom_contains(f, 1::bigint), bloom_contains_hash(f, bloom_hash(2));
	RAISE INFO 'arrays: % % %', bloom_contains_any(f, ARRAY[5, 3]), bloom_contains_all(f, ARRAY[5, 3]),
		bloom_new_keys(f, ARRAY[3, 4]);
	RAISE INFO 'sets: % % %', f | g = g, f & g = g, bloom_intersection_cardinality(f, g);
	RAISE INFO 'others: % %', bloom_compact(f) = bloom_compact(g), pg_column_size(f) > 0;
	SELECT * INTO x FROM bloom_try_add(f, 4);
	RAISE INFO 'try: % % %', x.added, x.filter @> 4, f @> 4;
	SELECT bloom_union_agg(f) = g AS united, bloom_intersection_agg(f) = g AS intersected,
		bloom_agg(f::bytea) @> g::bytea AS keys INTO x FROM generate_series(1, 3);
	RAISE INFO 'aggregates: %, distinct: %', x, (SELECT count(*) FROM (SELECT f UNION SELECT g UNION SELECT f) x);
	RAISE INFO 'still: %', f = g;
	BEGIN
		RAISE INFO '%', f @> 'a'::text;
	EXCEPTION WHEN datatype_mismatch THEN
		RAISE INFO '%', SQLERRM;
	END;
END $$;

-- Records, arrays, domains, rows of tables and of results, triggers
CREATE TYPE labeled AS (label text, f bloom);
CREATE DOMAIN filter_of_some AS bloom CHECK (bloom_cardinality(VALUE) < 4);
CREATE TEMP TABLE saved (i int, f bloom);
DO $$
DECLARE
	f bloom := bloom_empty();
	r record;
	l labeled;
	a bloom[];
	d filter_of_some := bloom_empty();
	n bloom NOT NULL := bloom_empty();
BEGIN
	f := bloom_add(f, 1);
	SELECT f AS f INTO r;
	l := ROW('one', f);
	a := ARRAY[f, f];
	INSERT INTO saved VALUES (1, f);
	f := bloom_add(f, 2);
	INSERT INTO saved VALUES (2, f);
	r.f := bloom_add(r.f, 3);
	l.f := bloom_add(bloom_add(l.f, 3), 4);
	a[2] := bloom_add(a[1], 5);
	a := a || f;
	f := bloom_add(f, 6);
	RAISE INFO '% % % % % %', bloom_cardinality(f), bloom_cardinality(r.f), bloom_cardinality(l.f),
		bloom_cardinality(a[1]), bloom_cardinality(a[2]), bloom_cardinality(a[3]);
	BEGIN
		FOR i IN 1 .. 10 LOOP
			d := bloom_add(d, i);
		END LOOP;
	EXCEPTION WHEN check_violation THEN
		RAISE INFO '% %', SQLERRM, bloom_cardinality(d);
	END;
	n := bloom_add(n, 1);
	BEGIN
		n := nullif(n | NULL, n);
	EXCEPTION WHEN null_value_not_allowed THEN
		RAISE INFO '% %', SQLERRM, bloom_cardinality(n);
	END;
	UPDATE saved SET f = bloom_add(saved.f, 7) WHERE i = 1;
END $$;
SELECT i, bloom_cardinality(f), f @> 7 AS seven FROM saved ORDER BY i;

\set ECHO none
CREATE FUNCTION on_update() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	f bloom := NEW.f;
BEGIN
	FOR i IN 10 .. 20 LOOP
		f := bloom_add(f, i);
		NEW.f := bloom_add(NEW.f, i);
	END LOOP;
	ASSERT f = NEW.f;
	RAISE INFO '% to %', bloom_cardinality(OLD.f), bloom_cardinality(NEW.f);
	RETURN NEW;
END $$;
\set ECHO all
CREATE TRIGGER on_update BEFORE UPDATE ON saved FOR EACH ROW EXECUTE FUNCTION on_update();
UPDATE saved SET i = 3 WHERE i = 2;
SELECT i, bloom_cardinality(f) FROM saved ORDER BY i;

\set ECHO none
CREATE FUNCTION stages(f bloom) RETURNS SETOF bloom LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 3 LOOP
		f := bloom_add(f, i);
		RETURN NEXT f;
		RETURN QUERY SELECT bloom_add(f, 100);
	END LOOP;
END $$;
\set ECHO all
SELECT bloom_cardinality(f), f @> 100 AS hundred FROM stages(bloom_empty()) f;

-- The result of a function is changed by one of its users only.
SELECT bloom_cardinality(f), bloom_cardinality(bloom_add(f, 3)) AS one_more,
	bloom_cardinality(bloom_add_all(bloom_add(f, 4), ARRAY[5, 6])) AS three_more, bloom_cardinality(f) AS same
  FROM (SELECT in_loop(bloom_empty(), ARRAY[1, 2]) AS f OFFSET 0) x;
SELECT bloom_cardinality(bloom_add(in_loop(bloom_empty(), '{1,2}'), 3));
CREATE FUNCTION two(INOUT f bloom, OUT g bloom) LANGUAGE plpgsql AS $$
BEGIN
	f := bloom_add(f, 1);
	g := f;
	g := bloom_add(g, 2);
END $$;
SELECT bloom_cardinality(f), bloom_cardinality(g) FROM two(bloom_empty());
\set ECHO none
CREATE FUNCTION recursive(f bloom, depth int) RETURNS bloom LANGUAGE plpgsql AS $$
DECLARE
	g bloom;
BEGIN
	f := bloom_add(f, depth);
	IF depth > 0 THEN
		g := recursive(f, depth - 1);
		ASSERT bloom_cardinality(g) = bloom_cardinality(f) + 2 * depth - 1;
		f := bloom_add(g, -depth);
		ASSERT NOT g @> -depth;
	END IF;
	RETURN f;
END $$;
\set ECHO all
SELECT bloom_cardinality(recursive(bloom_empty(), 10));
CREATE FUNCTION with_sql(f bloom, i int) RETURNS bloom LANGUAGE sql AS 'SELECT bloom_add(bloom_add(f, i), i + 1)';
DO $$
DECLARE
	f bloom := bloom_empty();
	g bloom;
BEGIN
	f := bloom_add(f, 1);
	g := with_sql(f, 5);
	f := with_sql(f, 7);
	f := recursive(f, -3);
	RAISE INFO '% %', bloom_cardinality(f), bloom_cardinality(g);
END $$;

\set ECHO none
-- A variable outlives transactions, and a prepared statement has parameters.
CREATE PROCEDURE across() LANGUAGE plpgsql AS $$
DECLARE
	f bloom := bloom_empty();
BEGIN
	FOR i IN 1 .. 4 LOOP
		f := bloom_add(f, i);
		IF i % 2 = 0 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
	RAISE INFO '% keys', bloom_cardinality(f);
END $$;
\set ECHO all
CALL across();
SET plan_cache_mode = force_generic_plan;
PREPARE adding(bloom, int) AS SELECT bloom_cardinality(bloom_add($1, $2)), bloom_cardinality($1), bloom_add($1, $2) = copied($1, ARRAY[$2]) AS equal;
EXECUTE adding(bloom_empty(), 1);
EXECUTE adding(bloom_add(bloom_empty(), 1), 1);
EXECUTE adding(bloom_add(bloom_empty(), 1), 2);
RESET plan_cache_mode;

DROP TABLE saved, starts;
DROP FUNCTION copied, in_loop, if_new, by_tens, by_hash, failing, on_update, stages, two, recursive, with_sql;
DROP PROCEDURE across;
DROP TYPE labeled;
DROP DOMAIN filter_of_some;
