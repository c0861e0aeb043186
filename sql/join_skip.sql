--
-- JOIN_SKIP
-- Scans that join filters keep from being read: partitions and tables whose
-- constraints contradict the keys, and blocks by BRIN indexes.  Then plans that
-- count on it, and their estimates.
--
\pset format unaligned
\pset footer off
LOAD 'bloomfilter';
CREATE SCHEMA join_skip;
SET search_path = join_skip, public;

-- What EXPLAIN ANALYZE says of it
CREATE FUNCTION skipped(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scans Skipped|Blocks Read' THEN
			RETURN NEXT btrim(line);
		END IF;
	END LOOP;
END $$;

-- Is something left unread?
CREATE FUNCTION skips(query text) RETURNS boolean LANGUAGE sql AS $$
	SELECT EXISTS (SELECT FROM skipped(query) AS line WHERE line ~ 'Scans Skipped: [1-9]' OR
		substring(line FROM 'Blocks Read: (\d+)')::int < substring(line FROM 'Blocks Read: \d+ of (\d+)')::int)
$$;

-- The rows of a query in order. As a subquery, it may have parallel workers; as
-- it is, it is read through a cursor, without them.
CREATE FUNCTION rows_of(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	line record;
	lines text[] := '{}';
	rows text[];
BEGIN
	EXECUTE 'SELECT array_agg(entry::text ORDER BY entry::text) FROM (' || query || ') entry' INTO rows;
	FOR line IN EXECUTE query LOOP
		lines := lines || line::text;
	END LOOP;
	IF rows IS DISTINCT FROM (SELECT array_agg(x ORDER BY x) FROM unnest(lines) x) THEN
		RAISE 'other rows without workers: %', query;
	END IF;
	RETURN rows;
END $$;

-- What forced filters skip, and are the rows those of the query without filters?
CREATE FUNCTION report(query text, OUT skipped text, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	expected text[];
BEGIN
	SET LOCAL bloomfilter.join_filters = off;
	expected := rows_of(query);
	SET LOCAL bloomfilter.join_filters = force;
	skipped := (SELECT string_agg(regexp_replace(s, '(Scans.*)  Blocks.*', '\1'), '; ') FROM skipped(query) s);
	same := expected IS NOT DISTINCT FROM rows_of(query);
END $$;

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
	filters := skips(query);
	SET LOCAL bloomfilter.join_planning = on;
	planned := skips(query);
	same := expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_filters = force;
	forced := skips(query);
	same := same AND expected IS NOT DISTINCT FROM rows_of(query);
	SET LOCAL bloomfilter.join_planning = off;
END $$;

-- Is a query planned with join_planning as it is not without it? The limit
-- leaves the estimates of joins corrected in both cases.
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

-- Does join_planning correct estimates of a query?
CREATE FUNCTION is_corrected(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	first json;
	second json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO first;
	SET LOCAL bloomfilter.join_planning = on;
	SET LOCAL bloomfilter.join_planning_cost = 1e10;
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO second;
	SET LOCAL bloomfilter.join_planning = off;
	SET LOCAL bloomfilter.join_planning_cost = 100;
	RETURN first::text <> second::text;
END $$;

--
-- Scans
--
CREATE SCHEMA scans;
SET search_path = scans, join_skip, public;
SET bloomfilter.join_filters = force;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET datestyle = 'ISO';

CREATE TABLE days (day date, month int, n int);
INSERT INTO days SELECT d, extract(month FROM d), extract(doy FROM d)
  FROM generate_series(date '2025-01-01', '2025-12-31', '1 day') d;
ANALYZE days;

-- Ranges
CREATE TABLE facts (day date, amount int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE facts_%s PARTITION OF facts FOR VALUES FROM (%L) TO (%L)', m,
	make_date(2025, m, 1), make_date(2025, m, 1) + interval '1 month') FROM generate_series(1, 12) m \gexec
INSERT INTO facts SELECT day, n FROM days, generate_series(1, 10);
ANALYZE facts;
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE n IN (5, 350)');
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 13');
-- the first partition
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 1');
-- a list of more keys than are remembered leaves only its ends
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE n <= 2 OR n >= 180 AND n < 300');
-- a key of another type, and an expression that the partitions are not by
SELECT * FROM report('SELECT * FROM facts JOIN (SELECT day::timestamp AS at, n FROM days WHERE month = 3) d ON day = at');
SELECT * FROM report('SELECT * FROM facts f JOIN days d ON f.day + 1 = d.day WHERE month = 3');
-- keys that no partition is by are not kept in order
SELECT * FROM report('SELECT facts.* FROM facts JOIN days ON amount = n WHERE month = 3');
-- index scans read what they would
CREATE INDEX facts_amount ON facts (amount, day);
VACUUM ANALYZE facts;
SET enable_seqscan = off;
SELECT * FROM report('SELECT facts.day FROM facts JOIN days ON facts.day = days.day WHERE month = 3 AND amount < 100');
RESET enable_seqscan;
DROP INDEX facts_amount;
-- rows of a group pass together, so nothing is skipped below a grouping
SELECT * FROM report('SELECT * FROM (SELECT day, sum(amount) FROM facts GROUP BY day) f JOIN days USING (day) WHERE month = 3');
-- a target below a grouping does not keep another one from skipping: 1 of 2 in both
CREATE TABLE halves (k int, x int) PARTITION BY RANGE (k);
CREATE TABLE half_1 PARTITION OF halves FOR VALUES FROM (0) TO (50000);
CREATE TABLE half_2 PARTITION OF halves FOR VALUES FROM (50000) TO (100000);
INSERT INTO halves SELECT 20 * i % 100000, i % 1000 FROM generate_series(1, 10000) i;
CREATE TABLE grouped AS SELECT i % 1000 AS x FROM generate_series(1, 5000) i;
CREATE TABLE few AS SELECT 20 * i AS k, i % 1000 AS x FROM generate_series(1, 200) i;
ANALYZE halves, grouped, few;
SET join_collapse_limit = 1;
SET from_collapse_limit = 1;
SELECT * FROM report('SELECT h.k FROM (halves h JOIN (SELECT x, count(*) FROM grouped GROUP BY x) g ON g.x = h.x) JOIN few ON few.k = h.k AND few.x = g.x');
SELECT * FROM report('SELECT h.k FROM (halves h JOIN (SELECT x, count(*) FROM grouped GROUP BY x) g ON g.x = h.x) JOIN few ON few.k = h.k');
RESET join_collapse_limit;
RESET from_collapse_limit;
-- in a subplan that is hashed, and so executed once
SELECT * FROM report('SELECT amount FROM facts f WHERE day NOT IN (SELECT day FROM facts JOIN days USING (day) WHERE month = 3)');

-- Lists with NULL and a default partition; several levels; several columns
CREATE TABLE places (place text, area int);
INSERT INTO places SELECT 'p' || i, i % 4 FROM generate_series(0, 99) i;
INSERT INTO places VALUES (NULL, 0), ('', 1);
CREATE TABLE sold (place text, area int, price int) PARTITION BY LIST (place);
CREATE TABLE sold_a PARTITION OF sold FOR VALUES IN ('p1', 'p2', 'p3');
CREATE TABLE sold_null PARTITION OF sold FOR VALUES IN (NULL);
CREATE TABLE sold_empty PARTITION OF sold FOR VALUES IN ('');
CREATE TABLE sold_rest PARTITION OF sold DEFAULT PARTITION BY RANGE (area, price);
CREATE TABLE sold_rest_1 PARTITION OF sold_rest FOR VALUES FROM (0, MINVALUE) TO (2, 50);
CREATE TABLE sold_rest_2 PARTITION OF sold_rest FOR VALUES FROM (2, 50) TO (9, 0);
INSERT INTO sold SELECT place, area, i FROM places, generate_series(1, 100) i;
ANALYZE places, sold;
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.place = p.place WHERE p.place IN (''p1'', ''p3'')');
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.place = p.place WHERE p.place LIKE ''%1''');
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.place = p.place AND s.area = p.area WHERE p.area = 3');
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.area = p.area WHERE p.area > 2');
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.area = p.area WHERE p.place IS NULL');
-- another collation has another order
SELECT * FROM report('SELECT * FROM sold s JOIN places p ON s.place COLLATE "C" = p.place COLLATE "C" WHERE p.place = ''p7''');
-- a partition of a default partition may have what another one had that is dropped
CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
CREATE TABLE parted_5 PARTITION OF parted FOR VALUES IN (5);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT PARTITION BY LIST (v);
CREATE TABLE parted_rest_1 PARTITION OF parted_rest FOR VALUES IN (1);
INSERT INTO parted SELECT i, 1 FROM generate_series(1, 1000) i;
CREATE TABLE five AS SELECT 5 AS k;
ANALYZE parted, five;
SELECT * FROM report('SELECT * FROM parted JOIN five USING (k)');
DROP TABLE parted_5;
INSERT INTO parted VALUES (5, 1);
SELECT * FROM report('SELECT * FROM parted JOIN five USING (k)');
DROP TABLE parted, five;

-- Bounds of all kinds: what is skipped are the partitions in which no row has one of the keys, apart from defaults.
CREATE TABLE ranges (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE ranges_1 PARTITION OF ranges FOR VALUES FROM (MINVALUE) TO (1);
CREATE TABLE ranges_2 PARTITION OF ranges FOR VALUES FROM (1) TO (3);
CREATE TABLE ranges_3 PARTITION OF ranges FOR VALUES FROM (4) TO (5);
CREATE TABLE ranges_4 PARTITION OF ranges FOR VALUES FROM (5) TO (MAXVALUE);
CREATE TABLE ranges_default PARTITION OF ranges DEFAULT;
CREATE TABLE pairs (b int, a int) PARTITION BY RANGE (a, b);
CREATE TABLE pairs_1 PARTITION OF pairs FOR VALUES FROM (0, MINVALUE) TO (1, 3);
CREATE TABLE pairs_2 PARTITION OF pairs FOR VALUES FROM (1, 3) TO (3, 2);
CREATE TABLE pairs_3 PARTITION OF pairs FOR VALUES FROM (3, 2) TO (5, 1);
CREATE TABLE pairs_4 PARTITION OF pairs FOR VALUES FROM (5, 1) TO (MAXVALUE, MAXVALUE);
CREATE TABLE lists (a int, b int) PARTITION BY LIST (a);
CREATE TABLE lists_1 PARTITION OF lists FOR VALUES IN (0, 3, 5);
CREATE TABLE lists_2 PARTITION OF lists FOR VALUES IN (2);
CREATE TABLE lists_null PARTITION OF lists FOR VALUES IN (NULL);
CREATE TABLE lists_default PARTITION OF lists DEFAULT;
CREATE TABLE levels (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE levels_1 (gone int, b int, a int) PARTITION BY LIST (a);
ALTER TABLE levels_1 DROP COLUMN gone;
ALTER TABLE levels ATTACH PARTITION levels_1 FOR VALUES FROM (0) TO (4);
CREATE TABLE levels_1_1 PARTITION OF levels_1 FOR VALUES IN (0, 2);
CREATE TABLE levels_1_2 PARTITION OF levels_1 FOR VALUES IN (1, 3);
CREATE TABLE levels_2 PARTITION OF levels FOR VALUES FROM (4) TO (9) PARTITION BY HASH (b);
CREATE TABLE levels_2_1 PARTITION OF levels_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
INSERT INTO ranges SELECT a, b FROM generate_series(0, 5) a, generate_series(0, 5) b;
INSERT INTO pairs (a, b) SELECT a, b FROM ranges;
INSERT INTO lists SELECT a, b FROM ranges UNION ALL SELECT NULL, 1;
INSERT INTO levels SELECT a, b FROM ranges;
CREATE TABLE sets AS SELECT s AS set, a, a::bigint AS big FROM generate_series(0, 63) s, generate_series(0, 5) a WHERE s >> a & 1 = 1;
ANALYZE ranges, pairs, lists, levels, sets;
CREATE FUNCTION unmatched(name text, set int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	skipped int;
	total int;
BEGIN
	EXECUTE format('SELECT count(*) FILTER (WHERE NOT found AND partition !~ ''default''), count(*) FROM (
		SELECT tableoid::regclass::text AS partition, bool_or(a IN (SELECT a FROM sets WHERE set = %1$s)) IS TRUE AS found
		FROM %2$s GROUP BY 1) p', set, name) INTO skipped, total;
	RETURN format('Scans Skipped: %s of %s', skipped, total);
END $$;
SET enable_partition_pruning = off;
SELECT name, key, count(*), bool_and(same) AS same, bool_and(skipped = unmatched(name, set)) AS exact
  FROM unnest('{ranges,pairs,lists,levels}'::text[]) AS name, unnest('{a,big}'::text[]) AS key, generate_series(1, 62) AS set,
	report(format('SELECT t.a, t.b FROM %s t JOIN (SELECT * FROM sets WHERE set = %s) s ON t.a = s.%s', name, set, key))
  GROUP BY name, key ORDER BY name, key;
-- more keys than are listed, of which only the ends are known
INSERT INTO ranges SELECT a, b FROM ranges, generate_series(1, 30);
INSERT INTO lists SELECT a, b FROM lists, generate_series(1, 30);
ANALYZE ranges, lists;
SELECT * FROM report('SELECT * FROM ranges JOIN (SELECT 4 - n AS a FROM days WHERE n > 200 OFFSET 0) d USING (a)');
SELECT * FROM report('SELECT * FROM lists JOIN (SELECT n + 3 AS a FROM days WHERE n > 0 OFFSET 0) d USING (a)');
RESET enable_partition_pruning;
-- Neither partitions by an expression, nor by operators that a user has put together
CREATE FUNCTION compare_numbers(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN ASSERT $1 > 0; RETURN btint4cmp($1, $2); END';
CREATE OPERATOR CLASS compared FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 compare_numbers(int, int);
CREATE TABLE compared (a int) PARTITION BY RANGE (a compared);
CREATE TABLE compared_1 PARTITION OF compared FOR VALUES FROM (1) TO (9);
CREATE TABLE negated (a int) PARTITION BY LIST ((-a));
CREATE TABLE negated_1 PARTITION OF negated FOR VALUES IN (-1);
INSERT INTO compared SELECT 1 FROM generate_series(1, 1000);
INSERT INTO negated SELECT 1 FROM generate_series(1, 1000);
ANALYZE compared, negated;
SELECT * FROM report('SELECT * FROM compared JOIN (SELECT -n AS a FROM days WHERE n <= 5 OFFSET 0) d USING (a)');
SELECT * FROM report('SELECT * FROM negated JOIN (SELECT -n AS a FROM days WHERE n <= 5 OFFSET 0) d USING (a)');

-- Floating-point numbers and numeric
CREATE TABLE numbers (x float8, n numeric) PARTITION BY RANGE (x);
CREATE TABLE numbers_1 PARTITION OF numbers FOR VALUES FROM ('-Infinity') TO (0);
CREATE TABLE numbers_2 PARTITION OF numbers FOR VALUES FROM (0) TO ('Infinity');
CREATE TABLE numbers_3 PARTITION OF numbers FOR VALUES FROM ('Infinity') TO (MAXVALUE);
INSERT INTO numbers SELECT x, n FROM unnest('{-0.0,0,1,-1,Infinity,-Infinity,NaN}'::float8[]) x, generate_series(0, 4) n;
INSERT INTO numbers VALUES ('NaN', 'NaN'), (5, 9.5);
CREATE TABLE wanted (case_number int, x float8, r real, n numeric);
INSERT INTO wanted VALUES (1, -0.0, -0.0, 0.0), (2, 'NaN', 'NaN', 'NaN'), (3, 'Infinity', 'Infinity', 7.00), (4, -1, -1, 5);
ANALYZE numbers, wanted;
SELECT f.x, skipped, same
  FROM wanted f, report('SELECT s.* FROM numbers s JOIN wanted w USING (x) WHERE case_number = ' || case_number) ORDER BY case_number;
SELECT f.r, skipped, same
  FROM wanted f, report('SELECT s.* FROM numbers s JOIN wanted w ON s.x = w.r WHERE case_number = ' || case_number) ORDER BY case_number;
-- Text that is equal under a collation, and not for operators that compare bytes
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE any_spelling (t text COLLATE any_case) PARTITION BY RANGE (t text_pattern_ops);
CREATE TABLE any_spelling_1 PARTITION OF any_spelling FOR VALUES FROM ('A') TO ('B');
CREATE TABLE any_spelling_2 PARTITION OF any_spelling FOR VALUES FROM ('a') TO ('b');
INSERT INTO any_spelling SELECT CASE WHEN i % 2 = 0 THEN 'A' ELSE 'a' END || i % 7 FROM generate_series(1, 2000) i;
CREATE TABLE one_spelling AS SELECT 'A1' COLLATE any_case AS t;
ANALYZE any_spelling, one_spelling;
SELECT * FROM report('SELECT t FROM any_spelling JOIN one_spelling USING (t)');
-- The tables above a partition are not locked any longer
CREATE TABLE locked (n int) PARTITION BY RANGE (n);
CREATE TABLE locked_1 PARTITION OF locked FOR VALUES FROM (-100) TO (0);
CREATE TABLE locked_2 PARTITION OF locked FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (n);
CREATE TABLE locked_2_1 PARTITION OF locked_2 FOR VALUES FROM (0) TO (12);
CREATE TABLE locked_2_2 PARTITION OF locked_2 FOR VALUES FROM (12) TO (1000);
INSERT INTO locked SELECT generate_series(-100, 999);
ANALYZE locked;
BEGIN;
SELECT * FROM report('SELECT * FROM locked_1 JOIN (SELECT * FROM days WHERE n < 5 OFFSET 0) d USING (n)');
SELECT n IN (SELECT n FROM locked_2_1) AS there, skipped, same
	FROM (VALUES (11), (12)) v (n), report('SELECT * FROM locked_2_1 JOIN (SELECT * FROM days WHERE n = ' || n || ' OFFSET 0) d USING (n)');
SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text ~ 'locked' ORDER BY 1;
COMMIT;

-- Blocks that a BRIN index leaves; rows of 88 bytes, also where they are aligned at 4
CREATE TABLE log (at int, day date, pad text) WITH (fillfactor = 10);
INSERT INTO log SELECT i, date '2025-01-01' + i / 20, repeat('x', 55) FROM generate_series(0, 7299) i;
CREATE INDEX log_day ON log USING brin (day) WITH (pages_per_range = 4);
ANALYZE log;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
-- the first blocks, and none
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE n < 10');
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 13');
-- rows that came after, in ranges that are summarized, and that are not
INSERT INTO log SELECT -i, date '2025-12-01', 'late' FROM generate_series(1, 50) i;
UPDATE log SET day = '2025-12-02' WHERE at = 5;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE n = 335 OR n = 336');
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
SELECT brin_desummarize_range('log_day', 0);
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
SELECT brin_summarize_new_values('log_day') > 0 AS summarized;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
-- not by an index that is partial, of other operators, or not valid
DROP INDEX log_day;
CREATE INDEX log_partial ON log USING brin (day) WITH (pages_per_range = 4) WHERE at > 100;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
DROP INDEX log_partial;
CREATE INDEX log_bloom ON log USING brin (day date_bloom_ops);
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
DROP INDEX log_bloom;
CREATE INDEX log_day ON log USING brin (at, day) WITH (pages_per_range = 4);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'log_day'::regclass;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'log_day'::regclass;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
-- the number of blocks would tell of rows that a view or a policy hides, also in a partition
CREATE VIEW even WITH (security_barrier) AS SELECT * FROM log WHERE at % 2 = 0;
SELECT * FROM report('SELECT * FROM even JOIN days USING (day) WHERE month = 3');
CREATE TABLE parted (LIKE log) PARTITION BY LIST (at);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT * FROM log;
CREATE INDEX ON parted_rest USING brin (day) WITH (pages_per_range = 4);
ANALYZE parted;
SELECT skips('SELECT * FROM parted JOIN days USING (day) WHERE month = 3');
ALTER TABLE log ENABLE ROW LEVEL SECURITY;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON log USING (at % 2 = 0);
CREATE POLICY even ON parted USING (at % 2 = 0);
CREATE ROLE regress_bloom_even;
GRANT USAGE ON SCHEMA scans, join_skip TO regress_bloom_even;
GRANT SELECT ON log, parted, days TO regress_bloom_even;
SET ROLE regress_bloom_even;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
SELECT skips('SELECT * FROM parted JOIN days USING (day) WHERE month = 3');
RESET ROLE;
DROP VIEW even;
DROP TABLE log, parted;
DROP OWNED BY regress_bloom_even;
DROP ROLE regress_bloom_even;

-- An error of a comparison that nobody makes
CREATE TABLE collated (k text COLLATE "C") PARTITION BY LIST (k);
CREATE TABLE collated_a PARTITION OF collated FOR VALUES IN ('a');
INSERT INTO collated SELECT 'a' FROM generate_series(1, 10000);
CREATE TABLE collated_otherwise (k text COLLATE "POSIX");
SELECT * FROM report('SELECT * FROM collated a JOIN collated_otherwise b ON a.k = b.k');

-- Parallel plans: all processes skip, but not below a Parallel Hash, where each has only some of the keys
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT skipped ~ 'Scans Skipped: [1-9]' AS skipped, same
  FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');
SET enable_parallel_hash = off;
SELECT skipped ~ 'Scans Skipped: [1-9]' AS skipped, same
  FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');

SET client_min_messages = warning;
DROP SCHEMA scans CASCADE;
RESET ALL;

--
-- Plans that count on filters
--
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
SET bloomfilter.join_planning_cost = 100;
CREATE SCHEMA plans;
SET search_path = plans, join_skip, public;

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

CREATE FUNCTION join_skip.checks(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE DOMAIN join_skip.checked AS int CHECK (checks(VALUE));
-- Volatile functions are called as often as in the plan without filters
CREATE FUNCTION noisy(int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN true; END';
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 AND noisy(amount) GROUP BY region');
CREATE FUNCTION by_default(int, boolean DEFAULT noisy(1)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 % 200; END';
CREATE FUNCTION lag_by(anyelement, int DEFAULT noisy(0)::int) RETURNS anyelement IMMUTABLE WINDOW LANGUAGE internal AS 'window_lag_with_offset';
CREATE FUNCTION first_of(checked) RETURNS SETOF products LANGUAGE sql STABLE AS 'SELECT * FROM plans.products WHERE product = $1 ORDER BY brand LIMIT 1';
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
SELECT format('CREATE TABLE listed_%s PARTITION OF listed FOR VALUES IN (%s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO listed SELECT n % 10, n * 7 % 1000, n FROM generate_series(1, 50000) n;
CREATE TABLE places AS SELECT i AS place, 'place ' || i AS name FROM generate_series(0, 2999) i;
ALTER TABLE places ADD PRIMARY KEY (place);
VACUUM ANALYZE listed, places;
SELECT * FROM report_plans('SELECT amount FROM listed JOIN products USING (product) JOIN places USING (place) WHERE name = ''place 3'' AND brand = 7');
-- not by another collation or order, nor by hash
ALTER TABLE places ADD wide bigint UNIQUE, ADD named text UNIQUE COLLATE "C";
UPDATE places SET wide = place, named = place;
CREATE TABLE hashed (LIKE listed) PARTITION BY HASH (place);
SELECT format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 10, REMAINDER %s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO hashed SELECT * FROM listed;
CREATE TABLE collated (named text COLLATE "C", product int, amount int) PARTITION BY LIST (named COLLATE "POSIX");
SELECT format('CREATE TABLE collated_%s PARTITION OF collated FOR VALUES IN (%s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO collated SELECT * FROM listed;
CREATE TABLE texts (LIKE collated) PARTITION BY RANGE (named);
CREATE TABLE patterns (LIKE collated) PARTITION BY RANGE (named text_pattern_ops);
SELECT format('CREATE TABLE %s_%s PARTITION OF %1$s FOR VALUES FROM (%2$L) TO (%L)', t, p, p || 'x') FROM generate_series(0, 9) p, unnest('{texts, patterns}'::text[]) t \gexec
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
SELECT format('CREATE TABLE nine_%s PARTITION OF nine FOR VALUES IN (%s)', p, p) FROM generate_series(0, 9) p \gexec
INSERT INTO nine SELECT 1, 1, 1, 1, 1, 1, 1, 1, place, product FROM listed;
CREATE TABLE nine_places AS SELECT 1 AS a, 1 AS b, 1 AS c, 1 AS d, 1 AS e, 1 AS f, 1 AS g, 1 AS h, place, place + 1 AS after, name FROM places;
CREATE UNIQUE INDEX ON nine_places (place);
CREATE UNIQUE INDEX ON nine_places (after);
CREATE TABLE later (LIKE listed) PARTITION BY RANGE ((place + 1));
SELECT format('CREATE TABLE later_%s PARTITION OF later FOR VALUES FROM (%s) TO (%s)', p, p, p + 1) FROM generate_series(1, 10) p \gexec
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
INSERT INTO parted_calendar SELECT * FROM calendar;
ANALYZE parted_calendar;
SELECT counts_on_filters('SELECT amount FROM facts JOIN parted_calendar c USING (day) WHERE c.day BETWEEN ''2025-03-01'' AND ''2025-03-31''') AS parted;
DROP TABLE parted_calendar;
-- nor by a BRIN index of other operators
DROP INDEX plain_day;
CREATE INDEX plain_bloom ON plain USING brin (day date_bloom_ops) WITH (pages_per_range = 4);
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS bloom;
DROP INDEX plain_bloom;
CREATE INDEX plain_day ON plain USING brin (day) WITH (pages_per_range = 4);
SELECT counts_on_filters('SELECT region, sum(amount) FROM plain_star WHERE ym = 202503 AND brand = 7 GROUP BY region') AS minmax;

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
SELECT * FROM report_plans('SELECT region, sum(amount) FROM star WHERE ym = planned_month() AND brand = 7 GROUP BY region');
CREATE FUNCTION planned_error() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM plain_star WHERE ym = 202504 AND brand = 7;
	RAISE 'no month';
END $$;
SET bloomfilter.join_planning = on;
SELECT count(*) FROM star WHERE ym = planned_error() AND brand = 7;
SELECT skips('SELECT region, sum(amount) FROM star WHERE ym = 202503 AND brand = 7 GROUP BY region');
-- Texts of two collations cannot be compared, and without a row they are not.
SET enable_mergejoin = off;
CREATE TABLE in_c AS SELECT ('x' || i) COLLATE "C" AS t, i FROM generate_series(1, 1000) i;
CREATE TABLE in_posix AS SELECT t COLLATE "POSIX" AS t, i FROM in_c;
ANALYZE in_c, in_posix;
DELETE FROM in_c;
SELECT count(*) FROM in_c JOIN in_posix USING (t) WHERE in_posix.i < 10;

DROP SCHEMA plans CASCADE;
RESET ALL;

--
-- Estimates of joins of columns whose values have different ranges
--
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET datestyle = 'ISO';
-- all rows are in the sample
SET default_statistics_target = 300;
CREATE SCHEMA estimates;
SET search_path = estimates, join_skip, public;

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

-- How many times too few or too many rows, as a power of two
CREATE FUNCTION errors(query text, OUT "off" int, OUT "on" int) LANGUAGE plpgsql AS $$
DECLARE
	rows float;
BEGIN
	EXECUTE 'SELECT count(*) FROM (' || query || ') x' INTO rows;
	SET LOCAL bloomfilter.join_planning = off;
	"off" := round(log(2, (estimated(query) / greatest(rows, 1))::numeric));
	SET LOCAL bloomfilter.join_planning = on;
	"on" := round(log(2, (estimated(query) / greatest(rows, 1))::numeric));
END $$;

-- 200 years, and facts of five of them
CREATE TABLE calendar (day date PRIMARY KEY, year int, weekday int, number bigint, name text COLLATE "C");
INSERT INTO calendar SELECT d, extract(year FROM d), extract(dow FROM d), d - date '1900-01-01', to_char(d, 'YYYYMMDD')
  FROM (SELECT d::date FROM generate_series(date '1900-01-01', '2099-12-31', '1 day') d) d;
CREATE TABLE facts (day date, at timestamp, number int, name text COLLATE "C", amount int);
INSERT INTO facts SELECT day, day, number, name, n FROM calendar, generate_series(1, 20) n WHERE year BETWEEN 2000 AND 2004;
ANALYZE calendar, facts;

-- one year
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
-- also with a foreign key, which PostgreSQL estimates in another way
ALTER TABLE facts ADD CONSTRAINT facts_day FOREIGN KEY (day) REFERENCES calendar;
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002');
ALTER TABLE facts DROP CONSTRAINT facts_day;
-- other types, and of two types
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c ON f.number = c.number WHERE year = 2002');
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c ON f.at = c.day WHERE year = 2002');
SELECT * FROM errors('SELECT * FROM facts f JOIN calendar c USING (name) WHERE year = 2002');
-- all years; conditions that leave no piece of the order of days, for which PostgreSQL's estimate is right; and both
SELECT * FROM errors('SELECT * FROM facts JOIN calendar USING (day)');
SELECT condition, (errors('SELECT * FROM facts JOIN calendar USING (day) WHERE ' || condition)).*
  FROM unnest('{weekday = 1, extract(month FROM day) = 3, year % 2 = 0, year < 1000 OR weekday = 2,
	weekday = 1 AND year = 2002, year BETWEEN 2001 AND 2002, year IN (2001\, 2002), day < ''2002-01-01'', ''2002-01-01'' < calendar.day}'::text[]) AS condition;
-- all members of an equivalence class or none: one of which nothing is known leaves PostgreSQL's estimates
CREATE TABLE unknown (day date);
INSERT INTO unknown VALUES ('2002-05-05');
SELECT is_corrected('SELECT * FROM facts JOIN calendar USING (day) WHERE year = 2002') AS known,
	is_corrected('SELECT * FROM facts JOIN calendar USING (day) JOIN unknown USING (day) WHERE year = 2002') AS with_unknown;
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
-- of more than 64 relations, pairs are not looked at
SET join_collapse_limit = 1;
SELECT n, (errors('SELECT * FROM facts JOIN calendar USING (day)' ||
	(SELECT string_agg(format(' CROSS JOIN generate_series(1, 1) g%s', i), '') FROM generate_series(3, n) i) ||
	' WHERE year = 2002'))."on" FROM unnest('{64, 65}'::int[]) n;
RESET join_collapse_limit;
-- outer joins are as before, a semi join with a unique key is an inner one
SELECT * FROM errors('SELECT * FROM facts f LEFT JOIN calendar c ON f.day = c.day AND year = 2002');
SELECT * FROM errors('SELECT * FROM facts f WHERE day IN (SELECT day FROM calendar WHERE year = 2002)');
-- ranges without a common value
CREATE TABLE later AS SELECT day + 100000 AS day FROM facts;
ANALYZE later;
SELECT * FROM errors('SELECT * FROM later JOIN calendar USING (day) WHERE year BETWEEN 2000 AND 2004');

SET client_min_messages = warning;
DROP SCHEMA estimates, join_skip CASCADE;
RESET ALL;
