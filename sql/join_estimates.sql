--
-- JOIN_ESTIMATES
-- Estimates of joins of columns whose values have different ranges, by
-- join_planning.
--
CREATE SCHEMA join_estimates;
SET search_path = join_estimates, public;
\pset format unaligned
\pset tuples_only
LOAD 'bloomfilter';
SET bloomfilter.join_planning_cost = 0;
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/join_skip.psql'
\i :functions

-- Rows that the first join is expected to return
CREATE FUNCTION estimated(query text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'Join' THEN
			RETURN substring(line FROM 'rows=(\d+)');
		END IF;
	END LOOP;
END $$;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text = '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;

-- How many times too few or too many rows, as a power of two
CREATE FUNCTION errors(query text, OUT "off" int, OUT "on" int) LANGUAGE plpgsql AS $$
DECLARE
	rows float;
BEGIN
	EXECUTE 'SELECT count(*) FROM (' || query || ') x' INTO rows;
	SET LOCAL bloomfilter.join_filters = on;
	SET LOCAL bloomfilter.join_planning = off;
	"off" := round(log(2, (estimated(query) / greatest(rows, 1))::numeric));
	SET LOCAL bloomfilter.join_planning = on;
	"on" := round(log(2, (estimated(query) / greatest(rows, 1))::numeric));
END $$;
\set ECHO all
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET datestyle = 'ISO';
-- all rows are in the sample
SET default_statistics_target = 300;

-- 200 years, and facts of five of them
CREATE TABLE calendar (day date PRIMARY KEY, year int, weekday int, number bigint, name text COLLATE "C");
INSERT INTO calendar SELECT d, extract(year FROM d), extract(dow FROM d), d - date '1900-01-01', to_char(d, 'YYYYMMDD')
  FROM (SELECT d::date FROM generate_series(date '1900-01-01', '2099-12-31', '1 day') d) d;
CREATE TABLE facts (day date, at timestamp, number int, name text COLLATE "C", amount int);
INSERT INTO facts SELECT day, day, number, name, n FROM calendar, generate_series(1, 20) n WHERE year BETWEEN 2000 AND 2004;
ANALYZE calendar, facts;

-- one year
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
-- one day, of which all conditions leave less than a row, by estimate
SELECT * FROM errors('SELECT day FROM facts JOIN calendar USING (day) WHERE year = 2002 AND calendar.number BETWEEN 37300 AND 37306 AND weekday = 3');
-- also if the relation that comes first has the larger number
SELECT * FROM errors('SELECT * FROM (SELECT * FROM facts) f JOIN calendar USING (day) WHERE year = 2002');
-- also with a foreign key, which PostgreSQL estimates in another way
ALTER TABLE facts ADD CONSTRAINT facts_day FOREIGN KEY (day) REFERENCES calendar;
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
ALTER TABLE facts DROP CONSTRAINT facts_day;
-- not if no scan has enough rows for a filter
SET bloomfilter.join_filter_min_rows = 100000;
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
RESET bloomfilter.join_filter_min_rows;
-- other types, and of two types
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c ON f.number = c.number WHERE year = 2002');
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c USING (name) WHERE year = 2002');
-- a plan without a filter, here as the types differ, as nearly all rows match, and of a merge join, is PostgreSQL's
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c ON f.at = c.day WHERE year = 2002');
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c USING (day) WHERE year > 1000 AND year < 2004');
SET enable_hashjoin = off;
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
RESET enable_hashjoin;
-- all years; conditions that leave no piece of the order of days, for which PostgreSQL's estimate is right; and both
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day)');
SELECT condition, (errors('SELECT * FROM facts JOIN calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{weekday = 1, extract(month FROM day) = 3, year % 2 = 0, year < 1000 OR weekday = 2,
	weekday = 1 AND year = 2002, year BETWEEN 2001 AND 2002, year IN (2001\, 2002), day < ''2002-01-01'', ''2002-01-01'' < calendar.day}'::text[]) AS condition;
-- most rows have no key
CREATE TABLE sparse AS SELECT CASE WHEN amount < 3 THEN day END AS day FROM facts;
CREATE TABLE sparse_calendar AS SELECT CASE WHEN number % 16 = 0 THEN day END AS day, year FROM calendar;
ANALYZE sparse, sparse_calendar;
SELECT condition, (errors('SELECT * FROM sparse JOIN calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{year = 2002, year BETWEEN 2001 AND 2004, calendar.day > ''2001-01-01''}'::text[]) AS condition;
SELECT condition, (errors('SELECT * FROM facts JOIN sparse_calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{year = 2002, year BETWEEN 2001 AND 2004, sparse_calendar.day > ''2001-01-01''}'::text[]) AS condition;
-- columns that are in the order of the key but for NULLs, and but for a few rows
CREATE TABLE orders AS SELECT n AS id, CASE WHEN n % 50 = 0 THEN n END AS returned,
	CASE WHEN n > 80000 THEN 'open' WHEN n % 33 = 0 THEN 'returned' ELSE 'delivered' END AS status FROM generate_series(1, 100000) n;
CREATE TABLE lines AS SELECT n / 2 AS id FROM generate_series(1, 200000) n;
ANALYZE orders, lines;
SELECT condition, (errors('SELECT * FROM lines JOIN orders USING (id) WHERE ' || condition)).*
  FROM unnest('{returned > 50000, id > 70000 AND status = ''returned''}'::text[]) AS condition;
-- a value that most rows have is not in the histogram
CREATE TABLE cancelled AS SELECT CASE WHEN amount < 20 THEN '1970-01-01' ELSE day END AS day FROM facts, generate_series(1, 3);
ANALYZE cancelled;
SELECT condition, (errors('SELECT * FROM cancelled JOIN calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{year = 2002, year >= 2002, year = 1970}'::text[]) AS condition;
-- nor is it in a piece that ends where few rows are
CREATE TABLE bulk AS SELECT CASE WHEN n < 10 THEN '1999-05-05' WHEN n < 40000 THEN '2003-03-01' ELSE date '2003-01-01' + n / 40 END AS day
  FROM generate_series(1, 80000) n;
CREATE TABLE twenty_years AS SELECT * FROM calendar WHERE year BETWEEN 1998 AND 2017;
ANALYZE bulk, twenty_years;
SELECT * FROM errors('SELECT * FROM bulk JOIN twenty_years USING (day) WHERE year < 2000');
-- few rows, most of them at the beginning
CREATE TABLE early AS SELECT date '2000-01-01' + (1826 * power(n / 60000.0, 4))::int AS day FROM generate_series(1, 60000) n;
ANALYZE early;
SELECT * FROM errors('SELECT * FROM early JOIN calendar USING (day) WHERE year = 2003');
-- few at the beginning, without repeated ones, in any order of FROM
CREATE TABLE more_and_more AS SELECT DISTINCT date '1990-01-01' + (18000 * sqrt(n / 20000.0))::int AS day FROM generate_series(1, 20000) n;
ANALYZE more_and_more;
SELECT * FROM errors('SELECT * FROM calendar c JOIN more_and_more m USING (day) WHERE c.year = 1992');
SELECT * FROM errors('SELECT * FROM more_and_more m JOIN calendar c USING (day) WHERE c.year = 1992');
-- few different values, most rows of one of them
CREATE TABLE versions AS SELECT n AS version, n / 10 AS major FROM generate_series(1, 400) n;
CREATE TABLE events AS SELECT 400 - floor(60 * power(n / 60001.0, 6))::int AS version FROM generate_series(1, 60000) n;
-- more and more rows a day, fewer than those of a table that has each third day four times
CREATE TABLE thirds AS SELECT day FROM calendar, generate_series(1, 4) WHERE number % 3 = 0 ORDER BY day;
CREATE TABLE faster AS SELECT date '2000-01-01' + (1826 * power(n / 30000.0, 0.3))::int AS day FROM generate_series(1, 30000) n;
-- a condition on each side, which tell nearly the same, in any form
CREATE TABLE shipped AS SELECT n / 2 AS id, n / 2 + n * 7919 % 1500 AS ship, CASE WHEN n % 7 > 0 THEN n / 2 + n * 7919 % 1500 END AS may_ship
  FROM generate_series(150001, 200000) n;
ANALYZE versions, events, thirds, faster, shipped;
SELECT * FROM errors('SELECT * FROM events JOIN versions USING (version) WHERE major = 35');
SELECT * FROM errors('SELECT * FROM faster JOIN thirds USING (day) WHERE thirds.day BETWEEN ''2000-01-01'' AND ''2000-12-31''');
SELECT condition, (errors('SELECT * FROM shipped JOIN orders USING (id) WHERE orders.id BETWEEN 80000 AND 85000 AND ' || condition)).*
  FROM unnest('{ship >= 84800, may_ship >= 84800, (ship + 0 >= 84800), (ship >= 84800 OR ship IS NULL), may_ship IS NOT NULL}'::text[]) AS condition;
-- also if rows are in another order, or few are neither NULL nor a default; nor does anything tell that items are independent
CREATE TABLE shuffled AS SELECT id, ship FROM shipped ORDER BY hashint4(id * 9 + ship);
CREATE TABLE defaults AS SELECT id, CASE WHEN id % 4 < 2 THEN id % 4 * 1000000 ELSE ship END AS ship, CASE WHEN ship % 10 < 4 THEN ship END AS may_ship,
	(hashint4(ship) & 1023) AS item FROM shipped;
CREATE TABLE visits AS SELECT day + time '12:00' AS visited FROM facts;
CREATE INDEX ON visits ((visited::date));
ANALYZE shuffled, defaults, visits;
SELECT * FROM errors('SELECT * FROM shuffled JOIN orders USING (id) WHERE orders.id BETWEEN 80000 AND 85000 AND ship >= 84800');
SELECT condition, (errors('SELECT * FROM defaults JOIN orders USING (id) WHERE orders.id BETWEEN 80000 AND 85000 AND ' || condition)).*
  FROM unnest('{ship >= 84800 AND ship < 1000000, may_ship >= 84800, item < 500}'::text[]) AS condition;
-- nor is one corrected by an expression, or if conditions limit another one, by whatever it is joined
SELECT is_corrected('SELECT * FROM visits JOIN calendar ON day = visited::date WHERE year = 2002') AS expression,
	is_corrected('SELECT * FROM shipped JOIN orders a ON a.id = shipped.id JOIN orders b ON b.id = ship WHERE a.id BETWEEN 80000 AND 85000') AS one,
	is_corrected('SELECT * FROM shipped JOIN orders a ON a.id = shipped.id JOIN orders b ON b.id = ship WHERE a.id BETWEEN 80000 AND 85000 AND b.id >= 84800') AS two,
	is_corrected('SELECT * FROM shipped JOIN orders a ON a.id = shipped.id JOIN orders b ON b.id = ship + 0 WHERE a.id BETWEEN 80000 AND 85000 AND b.id >= 84800') AS two_by_expression,
	is_corrected('SELECT * FROM shipped JOIN orders a ON a.id = shipped.id JOIN orders b ON b.id = ship WHERE a.id BETWEEN 80000 AND 85000 AND b.id >= (SELECT 84800)') AS two_of_unknown;
-- few rows in a piece, beside which there are many
CREATE TABLE dated AS SELECT n AS id, n / 100 AS day FROM generate_series(1, 100000) n;
CREATE TABLE late AS SELECT CASE WHEN n < 1000 THEN 70000 + n * 20 ELSE 90000 + n / 8 END AS id FROM generate_series(1, 80000) n;
ANALYZE dated, late;
SELECT "on" <= greatest("off", 0) AS "right" FROM errors('SELECT * FROM late JOIN dated USING (id) WHERE day BETWEEN 870 AND 898');
-- a flag that few rows have is in nearly any order
CREATE TABLE flagged AS SELECT day, year, (number % 35 = 0)::int AS flag FROM calendar;
ANALYZE flagged;
SELECT * FROM errors('SELECT * FROM facts JOIN flagged USING (day) WHERE year = 2002 AND flag = 0');
-- conditions on partitioned tables
CREATE TABLE orders_by_id (id int) PARTITION BY RANGE (id);
SELECT count(run(format('CREATE TABLE orders_by_id_%s PARTITION OF orders_by_id FOR VALUES FROM (%s) TO (%s)', i, i * 5000, (i + 1) * 5000))) FROM generate_series(0, 20) i;
INSERT INTO orders_by_id SELECT id FROM orders;
CREATE TABLE lines_by_hash (id int, item int) PARTITION BY HASH (id);
CREATE TABLE lines_by_hash_0 PARTITION OF lines_by_hash FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO lines_by_hash SELECT 80000 + (random() * 19999)::int, n % 100 FROM generate_series(1, 60000) n;
ANALYZE orders_by_id, lines_by_hash;
SET bloomfilter.join_filter_min_rows = 1000;
SELECT abs("on") <= abs("off") AS "right" FROM errors('SELECT * FROM orders_by_id o JOIN lines_by_hash USING (id) WHERE o.id >= 90000 AND item = 10');
RESET bloomfilter.join_filter_min_rows;
-- nor of tables that cost less to read than join_planning_cost; children, and a table that was never analyzed, count as large
CREATE TABLE small_parted (n int) PARTITION BY LIST (n);
CREATE TABLE never_analyzed (n int) WITH (autovacuum_enabled = off);
CREATE VIEW joined AS SELECT day, year, amount FROM facts JOIN calendar USING (day);
SELECT above, rest, set_config('bloomfilter.join_planning_cost', (cost + above / 10.0)::text, false) <> '' AS is_set, is_corrected('SELECT * FROM joined WHERE year = 2002' || rest)
  FROM (SELECT sum(relpages + reltuples / 100)::float AS cost FROM pg_class WHERE oid IN ('facts'::regclass, 'calendar'::regclass)) sizes
	CROSS JOIN (VALUES (-1), (1)) v (above) CROSS JOIN unnest('{"", " AND 0 NOT IN (SELECT n FROM never_analyzed)", " AND 0 NOT IN (SELECT n FROM small_parted)"}'::text[]) AS rest
  ORDER BY above, rest;
SET bloomfilter.join_planning_cost = 0;
-- of three columns that are equal, none is corrected
SELECT is_corrected('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002') AS two,
	is_corrected('SELECT * FROM facts JOIN calendar USING (day) JOIN early USING (day) WHERE year = 2002') AS three;
ALTER TABLE calendar ADD week int, ADD holiday boolean;
UPDATE calendar SET week = number / 7, holiday = number % 35 = 0;
VACUUM FULL calendar;
ANALYZE calendar;
-- most days are none, and the correlation is high, but tells nothing
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE holiday');
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE holiday = true');
-- A condition that reaches another table by another column in the order of the key, of which the estimates of its joins
-- would not tell, leaves all of them as they are.
SELECT is_corrected('SELECT * FROM facts JOIN calendar c USING (day) JOIN calendar d ON c.holiday = d.holiday WHERE c.year = 2002') AS holiday,
	is_corrected('SELECT * FROM facts JOIN calendar c USING (day) JOIN calendar d ON c.week = d.week WHERE c.year = 2002') AS week,
	is_corrected('SELECT * FROM facts JOIN calendar c USING (day) JOIN calendar d ON c.week + 0 = d.week WHERE c.year = 2002') AS expression,
	is_corrected('SELECT * FROM facts JOIN calendar c USING (day) LEFT JOIN calendar d ON c.week = d.week WHERE c.year = 2002') AS outer_join;
-- subqueries and CTEs
SELECT * FROM errors('SELECT * FROM (SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002 OFFSET 0) x');
SELECT * FROM errors('WITH x AS MATERIALIZED (SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002) SELECT * FROM x');
SELECT * FROM errors('SELECT * FROM facts f JOIN (SELECT * FROM calendar WHERE year = 2002 OFFSET 0) c USING (day)');
-- each pair is corrected once, also if the search is made in parts
SET join_collapse_limit = 2;
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c USING (day) JOIN (VALUES (0), (1), (2), (3), (4), (5), (6)) v (weekday) ON c.weekday = v.weekday WHERE year = 2002');
RESET join_collapse_limit;
SET geqo_threshold = 2;
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
RESET geqo_threshold;
-- of more than 8 relations, pairs are not looked at
SET join_collapse_limit = 1;
SELECT n, (errors('SELECT * FROM facts JOIN calendar USING (day)' ||
	(SELECT string_agg(format(' LEFT JOIN generate_series(1, 1) g%s ON true', i), '') FROM generate_series(3, n) i) ||
	' WHERE year = 2002'))."on" FROM unnest('{8, 9}'::int[]) n;
RESET join_collapse_limit;
-- outer joins are as before, a semi join with a unique key is an inner one
SELECT * FROM errors('SELECT * FROM facts f LEFT JOIN calendar c ON f.day = c.day AND year = 2002');
SELECT * FROM errors('SELECT * FROM facts f WHERE day IN (SELECT day FROM calendar WHERE year = 2002)');
-- no more than PostgreSQL's own without join filters
SELECT estimated('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002') < 1000 AS as_postgresql;
-- at the end of the facts and beyond it, and where they grow
CREATE TABLE growing AS SELECT day, number FROM facts WHERE amount <= 4 * (extract(year FROM day) - 2000);
ANALYZE growing;
SELECT condition, (errors('SELECT * FROM facts JOIN calendar USING (day) WHERE ' || condition)).*,
	(errors('SELECT * FROM growing JOIN calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{year = 1999, year = 2000, year = 2001, year = 2004, year = 2005, year >= 2004, calendar.day >= ''2004-12-25'',
	calendar.day BETWEEN ''1999-06-01'' AND ''2000-01-10'', calendar.number < 1000}'::text[]) AS condition;
-- at the end of a calendar, and conditions that tell the same twice
CREATE TABLE until_now AS SELECT * FROM calendar WHERE day BETWEEN '1990-01-01' AND '2005-01-02';
ANALYZE until_now;
SELECT condition, (errors('SELECT * FROM facts JOIN until_now d USING (day) WHERE ' || condition)).*
  FROM unnest('{year > 2004, 2004 < year, year >= 2005, year > 2003, d.day > ''2004-12-31'',
	year = 2002 AND d.day BETWEEN ''2002-03-05'' AND ''2002-03-06''}'::text[]) AS condition;
-- a value that is not known
SELECT is_corrected('SELECT * FROM facts JOIN calendar USING (day) WHERE year = (SELECT 2002)');
-- only the first rows, or all for the first ones
CREATE INDEX ON facts (day);
SET enable_mergejoin = off;
SELECT rest, is_corrected('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002 ' || rest)
  FROM unnest('{"", LIMIT 10, OFFSET 10, ORDER BY amount LIMIT 10, ORDER BY day LIMIT 10, ORDER BY day}'::text[]) AS rest;
RESET enable_mergejoin;
SELECT is_corrected('SELECT day, count(*) FROM facts JOIN calendar USING (day) WHERE year = 2002 GROUP BY day LIMIT 10') AS grouped_by_day,
	is_corrected('SELECT amount, count(*) FROM facts JOIN calendar USING (day) WHERE year = 2002 GROUP BY amount LIMIT 10') AS by_another,
	is_corrected('SELECT count(*) FROM facts JOIN calendar USING (day) WHERE year = 2002 LIMIT 10') AS counted,
	is_corrected('SELECT EXISTS (SELECT FROM facts JOIN calendar USING (day) WHERE year = 2002)') AS exists,
	is_corrected('DECLARE c CURSOR FOR SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002') AS cursor;
DROP INDEX facts_day_idx;
CREATE TABLE parted (number int, amount int) PARTITION BY RANGE (number);
SELECT count(run(format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%s) TO (%s)', n, 36500 + 31 * n, 36531 + 31 * n)))
  FROM generate_series(0, 59) n;
INSERT INTO parted SELECT number, (number * 7919 + n * 104729) % 10000 FROM calendar, generate_series(1, 110) n WHERE year BETWEEN 2000 AND 2004;
CREATE INDEX ON parted (amount);
ANALYZE parted;
RESET enable_nestloop;
SET enable_mergejoin = off;
SET bloomfilter.join_filters = on;
-- a partitioned table without rows, of which the planner makes no paths of partitions
SET constraint_exclusion = on;
SELECT plan ~ 'One-Time Filter: false' AS no_rows
  FROM plan_of('SELECT count(*) FROM facts JOIN parted p USING (number) JOIN calendar c ON c.number = p.number WHERE p.number > 37000 AND p.number < 36900') AS plan;
RESET constraint_exclusion;
RESET bloomfilter.join_filters;
RESET enable_mergejoin;
SET enable_nestloop = off;
-- ranges without a common value
CREATE TABLE later AS SELECT day + 100000 AS day FROM facts;
ANALYZE later;
SELECT * FROM errors('SELECT * FROM later JOIN calendar USING (day) WHERE year BETWEEN 2000 AND 2004');

SET client_min_messages = warning;
DROP SCHEMA join_estimates CASCADE;
