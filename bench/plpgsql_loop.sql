-- Adding 100,000 keys one by one in a loop of PL/pgSQL to a filter of 1.2 MB, against collecting them and adding
-- them in one call. From PostgreSQL 18 on, bloom_add changes the variable in place; before, it copies the filter,
-- so the loop is 100 times shorter there, and its time is multiplied.
--
--   psql -X -q -f bench/plpgsql_loop.sql      in a database with the extension
\set QUIET on
\pset footer off
SET client_min_messages = warning;
SET jit = off;

CREATE FUNCTION pg_temp.seconds_of(way text, f bloom, turns int) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz := clock_timestamp();
	keys int[] := '{}';
	news int := 0;
BEGIN
	CASE way
		WHEN 'collect, add_all' THEN
			FOR i IN 1 .. turns LOOP
				keys := array_append(keys, i);
			END LOOP;
			f := bloom_add_all(f, keys);
		WHEN 'add' THEN
			FOR i IN 1 .. turns LOOP
				f := bloom_add(f, i);
			END LOOP;
		WHEN 'add_hash' THEN
			FOR i IN 1 .. turns LOOP
				f := bloom_add_hash(f, bloom_hash(i));
			END LOOP;
		WHEN 'add_all of ten' THEN
			FOR i IN 0 .. turns / 10 - 1 LOOP
				f := bloom_add_all(f, ARRAY[10 * i + 1, 10 * i + 2, 10 * i + 3, 10 * i + 4, 10 * i + 5,
					10 * i + 6, 10 * i + 7, 10 * i + 8, 10 * i + 9, 10 * i + 10]);
			END LOOP;
		WHEN 'if not contained, add' THEN
			FOR i IN 1 .. turns LOOP
				IF NOT bloom_contains(f, i) THEN
					f := bloom_add(f, i);
				END IF;
			END LOOP;
		WHEN 'add, then cardinality' THEN
			FOR i IN 1 .. turns LOOP
				f := bloom_add(f, i);
				news := bloom_cardinality(f);
			END LOOP;
	END CASE;
	RETURN extract(epoch FROM clock_timestamp() - began);
END $$;

-- Keys are a list of hashes at first, and bits when that would be larger.
CREATE TEMP TABLE starts (name text, f bloom);
INSERT INTO starts VALUES ('empty', bloom_empty(0.01, 1000000));
INSERT INTO starts SELECT '200,000 keys', bloom_agg(-i, 0.01, 1000000) FROM generate_series(1, 200000) i;

CREATE TEMP TABLE times AS
SELECT s.name AS start, way, turns,
	pg_temp.seconds_of(way, f, CASE WHEN way LIKE 'collect%' THEN 100000 ELSE turns END) *
	CASE WHEN way LIKE 'collect%' THEN 1 ELSE 100000 / turns END AS seconds
  FROM starts s,
	(SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 100000 ELSE 1000 END) t (turns),
	generate_series(1, 5),
	unnest(ARRAY['collect, add_all', 'add', 'add_hash', 'add_all of ten', 'if not contained, add',
		'add, then cardinality']) way;
SELECT start, way, round(min(seconds)::numeric * 1000, 1) AS "ms for 100,000 keys",
	round((min(seconds) / (SELECT min(seconds) FROM times b WHERE b.start = t.start AND way LIKE 'collect%'))::numeric, 1) AS ratio
  FROM times t GROUP BY start, way ORDER BY start DESC, min(seconds);

-- Elsewhere bloom_add copies once, as ever: rows of a table, small and large.
CREATE TEMP TABLE rows AS
SELECT i, bloom_add(bloom_empty(), i) AS small FROM generate_series(1, 200000) i;
\timing on
\echo 200,000 small filters in a table, one key added to each
SELECT count(bloom_add(small, -1)) FROM rows;
SELECT count(bloom_add(small, -1)) FROM rows;
\echo 1,000 copies of 1.2 MB
SELECT count(bloom_add(f, i))
  FROM (SELECT bloom_agg(-i, 0.01, 1000000) AS f FROM generate_series(1, 200000) i OFFSET 0) s,
	generate_series(1000001, 1001000) i;

-- A parameter in a statement of many rows is no variable that could be changed in place.
CREATE FUNCTION pg_temp.copies(f bloom) RETURNS bigint LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	RETURN (SELECT count(bloom_add(f, i)) FROM generate_series(1000001, 1001000) i);
END $$;
\echo the same with the filter as a parameter
SELECT pg_temp.copies(f) FROM (SELECT bloom_agg(-i, 0.01, 1000000) AS f FROM generate_series(1, 200000) i OFFSET 0) s;
