--
-- JOIN_PLANS
-- Plans that count on join filters.
--
CREATE SCHEMA join_plans;
SET search_path = join_plans, public;
\pset format unaligned
\pset tuples_only
LOAD 'bloomfilter';
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set functions :abs_srcdir '/sql/join_skip.psql'
\i :functions

-- The same for plans that count on filters: is something left unread with
-- filters on, with join_planning as well, and with filters forced?
CREATE FUNCTION report_plans(query text, OUT filters boolean, OUT planned boolean, OUT forced boolean, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
	expected text[];
BEGIN
	SET LOCAL bloomfilter.join_filters = off;
	expected := rows_of(query);
	SET LOCAL bloomfilter.join_filters = on;
	SET LOCAL bloomfilter.join_planning = off;
	filters := skips(query);
	SET LOCAL bloomfilter.join_planning = on;
	planned := skips(query);
	same := expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_filters = force;
	forced := skips(query);
	same := same AND expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_planning = off;
END $$;

-- Is a query planned with join_planning as it is not without it? With the limit,
-- only the estimates of joins with partitioned tables are corrected.
CREATE FUNCTION counts_on_filters(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	first json;
	second json;
BEGIN
	SET LOCAL bloomfilter.join_filters = on;
	SET LOCAL bloomfilter.join_planning = on;
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO second;
	SET LOCAL bloomfilter.join_planning_cost = 1e10;
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO first;
	SET LOCAL bloomfilter.join_planning = off;
	SET LOCAL bloomfilter.join_planning_cost = 100;
	RETURN (second->0->'Plan'->>'Total Cost')::float < (first->0->'Plan'->>'Total Cost')::float;
END $$;
\set ECHO all
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
SET bloomfilter.join_planning_cost = 100;

-- Ten years, and facts of one of them
CREATE TABLE calendar (day date PRIMARY KEY, year int, month int, ym int, weekday int, name text);
INSERT INTO calendar SELECT d, extract(year FROM d), extract(month FROM d), to_char(d, 'YYYYMM')::int, extract(isodow FROM d), to_char(d, 'DDMMYYYY')
  FROM (SELECT d::date FROM generate_series(date '2016-01-01', '2025-12-31', '1 day') d) d;
CREATE TABLE products (product int PRIMARY KEY, brand int);
INSERT INTO products SELECT i, i % 200 FROM generate_series(0, 999) i;
CREATE TABLE stores (store int PRIMARY KEY, region int);
INSERT INTO stores SELECT i, i % 5 FROM generate_series(0, 49) i;
CREATE TABLE facts (day date, product int, store int, amount int) PARTITION BY RANGE (day);
SELECT count(run(format('CREATE TABLE facts_%s PARTITION OF facts FOR VALUES FROM (%L) TO (%L)', m,
	make_date(2025, m, 1), make_date(2025, m, 1) + interval '1 month'))) FROM generate_series(1, 12) m;
INSERT INTO facts SELECT day, (n * 7 + extract(doy FROM day)::int) % 1000, n % 50, n
  FROM calendar, generate_series(1, 150) n WHERE year = 2025;
CREATE TABLE plain (LIKE facts);
INSERT INTO plain SELECT * FROM facts ORDER BY day;
CREATE INDEX plain_day ON plain USING brin (day) WITH (pages_per_range = 4);
VACUUM ANALYZE calendar, products, stores, facts, plain;

-- PostgreSQL joins the calendar last, by its index
CREATE VIEW star AS SELECT day, amount, region, brand, year, month, ym, weekday, name
  FROM facts JOIN products USING (product) JOIN stores USING (store) JOIN calendar USING (day);
CREATE VIEW plain_star AS SELECT day, amount, region, brand, year, month, ym, weekday, name
  FROM plain JOIN products USING (product) JOIN stores USING (store) JOIN calendar USING (day);
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT * FROM report_plans('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region');
-- a filter without another search
SELECT * FROM report_plans('SELECT * FROM facts JOIN calendar USING (day) WHERE ym = 202503');
-- few days, wherever they are
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE name = ''04032025'' AND brand = 7 GROUP BY region');
-- days of each month
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE weekday = 3 AND brand = 7 GROUP BY region');
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE brand = 7 GROUP BY region');
-- not below the least cost
SET bloomfilter.join_planning_cost = 100000;
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
-- nor for a scan that costs less, whatever the rest of the plan costs
SET bloomfilter.join_planning_cost = 3000;
SELECT * FROM report_plans('SELECT region, sum(amount), (SELECT count(*) FROM generate_series(1, 400000)) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SET bloomfilter.join_planning_cost = 100;
-- the cheapest plan of all: an index finds the few rows
CREATE INDEX facts_amount ON facts (amount, product);
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 AND amount = 7 GROUP BY region');
DROP INDEX facts_amount;

CREATE FUNCTION checks(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE DOMAIN checked AS int CHECK (checks(VALUE));
-- Volatile functions are called as often as in the plan without filters
CREATE FUNCTION noisy(int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN true; END';
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 AND noisy(amount) GROUP BY region');
CREATE FUNCTION by_default(int, boolean DEFAULT noisy(1)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 % 200; END';
CREATE FUNCTION lag_by(anyelement, int DEFAULT noisy(0)::int) RETURNS anyelement IMMUTABLE WINDOW LANGUAGE internal AS 'window_lag_with_offset';
CREATE FUNCTION first_of(checked) RETURNS SETOF products LANGUAGE sql STABLE AS 'SELECT * FROM products WHERE product = $1 ORDER BY brand LIMIT 1';
SELECT query, counts_on_filters('SELECT * FROM ' || query) AS counts, is_corrected('SELECT * FROM ' || query) AS corrected
  FROM unnest('{
	star WHERE ym = 202503 AND brand = 7,
	star WHERE ym = 202503 AND brand = 7 AND noisy(amount),
	star WHERE ym = 202503 AND brand = 7 AND (SELECT noisy(1)),
	star JOIN (SELECT by_default(product) AS brand FROM products OFFSET 0) x USING (brand) WHERE ym = 202503 AND brand = 7,
	star WHERE ym = 202503 AND brand = 7 AND 7 <> (SELECT brand FROM products UNION ALL SELECT by_default(amount) FROM products OFFSET 1),
	"star WHERE ym = 202503 AND brand = 7 AND (SELECT max(by) FROM (SELECT lag_by(product) OVER () AS by FROM products) x) > 0",
	star WHERE ym = 202503 AND brand = 7 AND make_interval(days => amount) IS NOT NULL,
	"facts JOIN products p USING (product) JOIN calendar USING (day), first_of(1) WHERE ym = 202503 AND p.brand = 7"}'::text[]) AS query;
-- outer and semi joins, and a calendar on the side that may be NULL
SELECT * FROM report_plans('SELECT region, sum(amount) FROM facts f LEFT JOIN stores USING (store) JOIN products USING (product)
	JOIN calendar USING (day) WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT * FROM report_plans('SELECT day, amount, ym FROM facts f JOIN products USING (product) LEFT JOIN calendar USING (day) WHERE brand = 7');
SELECT * FROM report_plans('SELECT day, amount, ym FROM products JOIN facts f USING (product) FULL JOIN (SELECT * FROM calendar WHERE ym = 202503) c USING (day) WHERE brand = 7');
SELECT * FROM report_plans('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND EXISTS (SELECT FROM calendar c JOIN stores s ON s.store = c.month
	WHERE c.day = f.day AND c.ym = 202503 AND s.region > 1)');
SELECT * FROM report_plans('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND day IN (SELECT day FROM calendar WHERE ym = 202503)');
SELECT * FROM report_plans('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND day NOT IN (SELECT day FROM calendar WHERE ym = 202503)');
-- two facts with a calendar each
SELECT * FROM report_plans('SELECT f.amount, p.amount FROM facts f JOIN calendar c USING (day) JOIN products USING (product)
	JOIN plain p ON p.amount = f.amount AND p.product = f.product JOIN calendar d ON p.day = d.day
	WHERE c.ym = 202503 AND d.ym = 202504 AND brand = 7');
-- nothing is assumed that the finished plan cannot have
BEGIN;
REVOKE EXECUTE ON FUNCTION bloom_join_probe FROM PUBLIC;
SELECT counts_on_filters('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS revoked;
ROLLBACK;
-- LATERAL, subqueries and CTEs
SELECT * FROM report_plans('SELECT region, n FROM stores, LATERAL (SELECT count(*) AS n FROM star WHERE ym = 202503 AND brand = 7 AND region = stores.region) x');
SELECT * FROM report_plans('WITH x AS MATERIALIZED (SELECT region, amount FROM star WHERE ym = 202503 AND brand = 7) SELECT * FROM x');
SELECT * FROM report_plans('SELECT amount, ym FROM star WHERE ym = 202503 AND brand = 7 UNION ALL SELECT amount, ym FROM plain_star WHERE ym = 202504 AND brand = 7');
SELECT * FROM report_plans('SELECT * FROM stores WHERE EXISTS (SELECT FROM star WHERE ym = 202503 AND brand = 7 AND region = store)');
-- other ways to search
SET join_collapse_limit = 2;
SELECT same FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT * FROM report_plans('SELECT region, amount FROM star WHERE ym = 202503 AND brand = 7');
RESET join_collapse_limit;
SET geqo_threshold = 2;
SELECT planned, same FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT counts_on_filters('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7::checked GROUP BY region') AS checked;
RESET geqo_threshold;
SET enable_partitionwise_join = on;
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET enable_partitionwise_join;
SET enable_hashjoin = off;
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET enable_hashjoin;
-- a plan that does what is disabled is not the cheaper one
CREATE INDEX facts_day ON facts (day);
SET enable_sort = off;
SELECT planned, same FROM report_plans('SELECT day, amount FROM facts JOIN calendar USING (day) WHERE ym = 202503 ORDER BY day');
RESET enable_sort;
DROP INDEX facts_day;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SET max_parallel_workers_per_gather = 0;

-- Lists
CREATE TABLE listed (place int, product int, amount int) PARTITION BY LIST (place);
SELECT count(run(format('CREATE TABLE listed_%s PARTITION OF listed FOR VALUES IN (%s)', p, p))) FROM generate_series(0, 9) p;
INSERT INTO listed SELECT n % 10, n * 7 % 1000, n FROM generate_series(1, 50000) n;
CREATE TABLE places AS SELECT i AS place, 'place ' || i AS name FROM generate_series(0, 2999) i;
ALTER TABLE places ADD PRIMARY KEY (place);
VACUUM ANALYZE listed, places;
SELECT * FROM report_plans('SELECT amount FROM listed JOIN products USING (product) JOIN places USING (place) WHERE name = ''place 3'' AND brand = 7');
-- not by another collation or order, nor by hash
ALTER TABLE places ADD wide bigint UNIQUE, ADD named text UNIQUE COLLATE "C";
UPDATE places SET wide = place, named = place;
CREATE TABLE hashed (LIKE listed) PARTITION BY HASH (place);
SELECT count(run(format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 10, REMAINDER %s)', p, p))) FROM generate_series(0, 9) p;
INSERT INTO hashed SELECT * FROM listed;
CREATE TABLE collated (named text COLLATE "C", product int, amount int) PARTITION BY LIST (named COLLATE "POSIX");
SELECT count(run(format('CREATE TABLE collated_%s PARTITION OF collated FOR VALUES IN (%s)', p, p))) FROM generate_series(0, 9) p;
INSERT INTO collated SELECT * FROM listed;
CREATE TABLE texts (LIKE collated) PARTITION BY RANGE (named);
CREATE TABLE patterns (LIKE collated) PARTITION BY RANGE (named text_pattern_ops);
SELECT count(run(format('CREATE TABLE %s_%s PARTITION OF %1$s FOR VALUES FROM (%2$L) TO (%L)', t, p, p || 'x'))) FROM generate_series(0, 9) p, unnest('{texts, patterns}'::text[]) t;
INSERT INTO texts SELECT * FROM listed;
INSERT INTO patterns SELECT * FROM listed;
CREATE TABLE long_lists (LIKE listed) PARTITION BY LIST (place);
DO $$ BEGIN FOR p IN 0 .. 9 LOOP
	EXECUTE format('CREATE TABLE long_lists_%s PARTITION OF long_lists FOR VALUES IN (%s)', p,
		(SELECT string_agg((p + 10 * i)::text, ', ') FROM generate_series(0, 109) i));
END LOOP; END $$;
INSERT INTO long_lists SELECT * FROM listed;
VACUUM ANALYZE places, hashed, collated, texts, patterns, long_lists;
SELECT key, counts_on_filters('SELECT amount FROM ' || key || ' JOIN products USING (product) WHERE name = ''place 3'' AND brand = 7')
  FROM unnest('{hashed JOIN places USING (place),
	collated JOIN places USING (named), texts JOIN places USING (named), patterns JOIN places USING (named),
	long_lists JOIN places USING (place)}'::text[]) AS key;
-- nor of a sample, by the ninth of nine keys, of which a filter has eight, and by a key that may fail
CREATE TABLE nine (a int, b int, c int, d int, e int, f int, g int, h int, place int, product int) PARTITION BY LIST (place);
SELECT count(run(format('CREATE TABLE nine_%s PARTITION OF nine FOR VALUES IN (%s)', p, p))) FROM generate_series(0, 9) p;
INSERT INTO nine SELECT 1, 1, 1, 1, 1, 1, 1, 1, place, product FROM listed;
CREATE TABLE nine_places AS SELECT 1 AS a, 1 AS b, 1 AS c, 1 AS d, 1 AS e, 1 AS f, 1 AS g, 1 AS h, place, place + 1 AS after, name FROM places;
CREATE UNIQUE INDEX ON nine_places (place);
CREATE UNIQUE INDEX ON nine_places (after);
CREATE TABLE later (LIKE listed) PARTITION BY RANGE ((place + 1));
SELECT count(run(format('CREATE TABLE later_%s PARTITION OF later FOR VALUES FROM (%s) TO (%s)', p, p, p + 1))) FROM generate_series(1, 10) p;
INSERT INTO later SELECT * FROM listed;
VACUUM ANALYZE nine, nine_places, later;
SELECT key, counts_on_filters('SELECT product FROM ' || key || ' JOIN products USING (product) WHERE name = ''place 3'' AND brand = 7')
  FROM unnest('{listed JOIN places USING (place), listed TABLESAMPLE BERNOULLI (100) JOIN places USING (place),
	"nine JOIN nine_places USING (place)", "nine JOIN nine_places USING (a, b, c, d, e, f, g, h, place)",
	later JOIN nine_places ON after = later.place + 1}'::text[]) AS key;
-- but by the keys of a partitioned table
CREATE TABLE parted_calendar (LIKE calendar) PARTITION BY RANGE (day);
CREATE TABLE parted_calendar_1 PARTITION OF parted_calendar FOR VALUES FROM ('2016-01-01') TO ('2025-03-15');
CREATE TABLE parted_calendar_2 PARTITION OF parted_calendar FOR VALUES FROM ('2025-03-15') TO ('2026-01-01');
INSERT INTO parted_calendar SELECT day, year, month, ym, weekday, repeat(name, 30) FROM calendar;
ALTER TABLE parted_calendar ADD PRIMARY KEY (day);
ANALYZE parted_calendar;
SELECT counts_on_filters('SELECT region, sum(amount) FROM facts JOIN products USING (product) JOIN stores USING (store) JOIN parted_calendar USING (day)
	WHERE ym = 202503 AND brand = 7 GROUP BY region') AS parted;
-- nor if PostgreSQL's plan has the filter
SELECT counts_on_filters('SELECT amount FROM facts JOIN parted_calendar c USING (day) WHERE c.day BETWEEN ''2025-03-01'' AND ''2025-03-31''') AS has_it;
DROP TABLE parted_calendar;
-- nor by a BRIN index of other operators
DROP INDEX plain_day;
CREATE INDEX plain_bloom ON plain USING brin (day date_bloom_ops) WITH (pages_per_range = 4);
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS bloom;
DROP INDEX plain_bloom;
CREATE INDEX plain_day ON plain USING brin (day) WITH (pages_per_range = 4);
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS minmax;
-- nor if a row came late, as of more that do, all blocks may have one
CREATE TABLE late (LIKE facts);
INSERT INTO late SELECT * FROM facts ORDER BY day;
UPDATE late SET day = '2025-01-01' WHERE day = '2025-09-09' AND product < 300;
CREATE INDEX ON late USING brin (day) WITH (pages_per_range = 4);
VACUUM ANALYZE late;
SELECT counts_on_filters('SELECT region, sum(amount) FROM late JOIN products USING (product) JOIN stores USING (store) JOIN calendar USING (day)
	WHERE ym = 202503 AND brand = 7 GROUP BY region') AS late;
-- but where PostgreSQL reads by the BRIN index itself
SET random_page_cost = 1;
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE name = ''04032025'' AND brand = 7 GROUP BY region') AS by_brin;
RESET random_page_cost;
-- nor where PostgreSQL reads less than the table without it, nor if most rows are in one partition
BEGIN;
CREATE INDEX ON plain (product);
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS by_index;
CREATE INDEX facts_product ON facts (product);
SELECT counts_on_filters('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS parted_by_index;
DROP INDEX facts_product;
INSERT INTO facts SELECT '2025-12-31', n % 1000, n % 50, n FROM generate_series(1, 200000) n;
ANALYZE facts;
SELECT counts_on_filters('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS uneven;
ROLLBACK;
VACUUM facts;

SET bloomfilter.join_filters = on;
-- Prepared statements: with parameters, and after a partition has been added
SET plan_cache_mode = force_generic_plan;
PREPARE month AS SELECT count(*), sum(amount) FROM star WHERE ym = $1 AND brand = 7;
SELECT skips('EXECUTE month (202503)');
EXECUTE month (202503);
EXECUTE month (202512);
CREATE TABLE facts_later PARTITION OF facts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO calendar VALUES ('2026-02-01', 2026, 2, 202602, 7, 'x');
INSERT INTO facts VALUES ('2026-02-01', 7, 1, 1000);
EXECUTE month (202602);
EXECUTE month (202503);
DROP TABLE facts_later;
EXECUTE month (202602);
RESET plan_cache_mode;
-- cursors
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT amount FROM star WHERE ym = 202503 AND brand = 7 ORDER BY amount;
FETCH 2 FROM c;
MOVE ABSOLUTE 20 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
-- INSERT, UPDATE, and rows that are locked
CREATE TABLE kept AS SELECT amount FROM star WHERE ym = 202503 AND brand = 7;
INSERT INTO kept SELECT amount FROM star WHERE ym = 202504 AND brand = 7;
SELECT count(*), sum(amount) FROM kept;
BEGIN;
UPDATE facts SET amount = 0 FROM calendar, products WHERE calendar.day = facts.day AND products.product = facts.product AND ym = 202503 AND brand = 7;
SELECT sum(amount) FROM star WHERE ym = 202503 AND brand = 7;
ROLLBACK;
SELECT count(*) FROM (SELECT amount FROM facts JOIN calendar USING (day) JOIN products USING (product) WHERE ym = 202503 AND brand = 7 FOR UPDATE OF facts) x;

-- Planning within planning, and one that ends by an error
CREATE FUNCTION planned_month() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM plain_star WHERE ym = 202504 AND brand = 7;
	RETURN 202503;
END $$;
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = planned_month() AND brand = 7 GROUP BY region');
CREATE FUNCTION planned_error() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM plain_star WHERE ym = 202504 AND brand = 7;
	RAISE 'no month';
END $$;
SELECT count(*) FROM star WHERE ym = planned_error() AND brand = 7;
SELECT skips('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
-- Texts of two collations cannot be compared, and without a row they are not.
SET enable_mergejoin = off;
CREATE TABLE in_c AS SELECT ('x' || i) COLLATE "C" AS t, i FROM generate_series(1, 1000) i;
CREATE TABLE in_posix AS SELECT t COLLATE "POSIX" AS t, i FROM in_c;
ANALYZE in_c, in_posix;
DELETE FROM in_c;
SELECT count(*) FROM in_c JOIN in_posix USING (t) WHERE in_posix.i < 10;

SET client_min_messages = warning;
DROP SCHEMA join_plans CASCADE;
