-- Plans that count on filters
LOAD 'bloomfilter';
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
SET bloomfilter.join_planning_cost = 100;
CREATE SCHEMA join_planning;
SET search_path = join_planning, public;

-- Does a filter leave something unread, and are the rows those of other plans?
CREATE FUNCTION skips(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scans Skipped: [1-9]' OR
			substring(line FROM 'Blocks Read: (\d+)')::int < substring(line FROM 'Blocks Read: \d+ of (\d+)')::int THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;

CREATE FUNCTION rows_of(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	line record;
	rows text[] := '{}';
BEGIN
	FOR line IN EXECUTE query LOOP
		rows := rows || line::text;
	END LOOP;
	RETURN (SELECT array_agg(x ORDER BY x) FROM unnest(rows) x);
END $$;

CREATE FUNCTION report(query text, OUT filters boolean, OUT planned boolean, OUT forced boolean, OUT same boolean)
LANGUAGE plpgsql AS $$
DECLARE
	expected text[];
BEGIN
	SET LOCAL bloomfilter.join_filters = off;
	expected := rows_of(query);
	SET LOCAL bloomfilter.join_filters = on;
	filters := skips(query);
	SET LOCAL bloomfilter.join_planning = on;
	planned := skips(query);
	same := expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_filters = force;
	forced := skips(query);
	same := same AND expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_planning = off;
END $$;

-- Ten years, and facts of one of them
CREATE TABLE calendar (day date PRIMARY KEY, year int, month int, ym int, weekday int, name text);
INSERT INTO calendar SELECT d, extract(year FROM d), extract(month FROM d), to_char(d, 'YYYYMM')::int, extract(isodow FROM d), to_char(d, 'DDMMYYYY')
  FROM (SELECT d::date FROM generate_series(date '2016-01-01', '2025-12-31', '1 day') d) d;
CREATE TABLE products (product int PRIMARY KEY, brand int);
INSERT INTO products SELECT i, i % 200 FROM generate_series(0, 999) i;
CREATE TABLE stores (store int PRIMARY KEY, region int);
INSERT INTO stores SELECT i, i % 5 FROM generate_series(0, 49) i;
CREATE TABLE facts (day date, product int, store int, amount int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE facts_%s PARTITION OF facts FOR VALUES FROM (%L) TO (%L)', m,
	make_date(2025, m, 1), make_date(2025, m, 1) + interval '1 month') FROM generate_series(1, 12) m \gexec
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
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT * FROM report('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region');
-- the first plan has the filter
SELECT * FROM report('SELECT * FROM facts JOIN calendar USING (day) WHERE ym = 202503');
-- few days, wherever they are
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE name = ''04032025'' AND brand = 7 GROUP BY region');
-- days of each month
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE weekday = 3 AND brand = 7 GROUP BY region');
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE brand = 7 GROUP BY region');
-- not below the least cost
SET bloomfilter.join_planning_cost = 100000;
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SET bloomfilter.join_planning_cost = 100;
-- the cheaper plan of both: an index finds the few rows
CREATE INDEX facts_amount ON facts (amount, product);
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 AND amount = 7 GROUP BY region');
DROP INDEX facts_amount;

-- Volatile functions are called as often as in the plan without filters
CREATE FUNCTION noisy(int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN true; END';
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 AND noisy(amount) GROUP BY region');
-- outer and semi joins, and a calendar on the side that may be NULL
SELECT * FROM report('SELECT region, sum(amount) FROM facts f LEFT JOIN stores USING (store) JOIN products USING (product)
	JOIN calendar USING (day) WHERE ym = 202503 AND brand = 7 GROUP BY region');
SELECT * FROM report('SELECT day, amount, ym FROM facts f JOIN products USING (product) LEFT JOIN calendar USING (day) WHERE brand = 7');
SELECT * FROM report('SELECT day, amount, ym FROM products JOIN facts f USING (product) FULL JOIN (SELECT * FROM calendar WHERE ym = 202503) c USING (day) WHERE brand = 7');
SELECT * FROM report('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND EXISTS (SELECT FROM calendar c JOIN stores s ON s.store = c.month
	WHERE c.day = f.day AND c.ym = 202503 AND s.region > 1)');
SELECT * FROM report('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND day IN (SELECT day FROM calendar WHERE ym = 202503)');
SELECT * FROM report('SELECT day, amount FROM facts f JOIN products USING (product) WHERE brand = 7 AND day NOT IN (SELECT day FROM calendar WHERE ym = 202503)');
-- two facts with a calendar each
SELECT * FROM report('SELECT f.amount, p.amount FROM facts f JOIN calendar c USING (day) JOIN products USING (product)
	JOIN plain p ON p.amount = f.amount AND p.product = f.product JOIN calendar d ON p.day = d.day
	WHERE c.ym = 202503 AND d.ym = 202504 AND brand = 7');
-- LATERAL, subqueries and CTEs
SELECT * FROM report('SELECT region, n FROM stores, LATERAL (SELECT count(*) AS n FROM star WHERE ym = 202503 AND brand = 7 AND region = stores.region) x');
SELECT * FROM report('WITH x AS MATERIALIZED (SELECT region, amount FROM star WHERE ym = 202503 AND brand = 7) SELECT * FROM x');
SELECT * FROM report('SELECT amount, ym FROM star WHERE ym = 202503 AND brand = 7 UNION ALL SELECT amount, ym FROM plain_star WHERE ym = 202504 AND brand = 7');
-- other ways to search
SET join_collapse_limit = 2;
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET join_collapse_limit;
SET geqo_threshold = 2;
SELECT planned, same FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET geqo_threshold;
SET enable_partitionwise_join = on;
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET enable_partitionwise_join;
SET enable_hashjoin = off;
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
RESET enable_hashjoin;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT same FROM report('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
SET max_parallel_workers_per_gather = 0;

-- Lists and hashes
CREATE TABLE listed (place int, product int, amount int) PARTITION BY LIST (place);
SELECT format('CREATE TABLE listed_%s PARTITION OF listed FOR VALUES IN (%s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO listed SELECT n % 10, n * 7 % 1000, n FROM generate_series(1, 50000) n;
CREATE TABLE hashed (place int, product int, amount int) PARTITION BY HASH (place);
SELECT format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 10, REMAINDER %s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO hashed SELECT * FROM listed;
CREATE TABLE places AS SELECT i AS place, 'place ' || i AS name FROM generate_series(0, 2999) i;
ALTER TABLE places ADD PRIMARY KEY (place);
VACUUM ANALYZE listed, hashed, places;
SELECT * FROM report('SELECT amount FROM listed JOIN products USING (product) JOIN places USING (place) WHERE name = ''place 3'' AND brand = 7');
SELECT * FROM report('SELECT amount FROM hashed JOIN products USING (product) JOIN places USING (place) WHERE name = ''place 3'' AND brand = 7');

SET bloomfilter.join_filters = on;
SET bloomfilter.join_planning = on;
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

RESET bloomfilter.join_planning;
-- Planning within planning, and one that ends by an error
CREATE FUNCTION planned_month() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM plain_star WHERE ym = 202504 AND brand = 7;
	RETURN 202503;
END $$;
SELECT * FROM report('SELECT region, sum(amount) FROM star WHERE ym = planned_month() AND brand = 7 GROUP BY region');
CREATE FUNCTION planned_error() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM plain_star WHERE ym = 202504 AND brand = 7;
	RAISE 'no month';
END $$;
SET bloomfilter.join_planning = on;
SELECT count(*) FROM star WHERE ym = planned_error() AND brand = 7;
SELECT skips('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');

DROP SCHEMA join_planning CASCADE;
