-- Scans that join filters keep from being read: partitions and tables whose
-- constraints contradict the keys, and blocks by BRIN indexes
LOAD 'bloomfilter';
SET bloomfilter.join_filters = force;
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET datestyle = 'ISO';
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

-- The rows of a query are those without filters
CREATE FUNCTION same(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	rows text[];
	expected text[];
BEGIN
	EXECUTE 'SELECT array_agg(x::text ORDER BY x::text) FROM (' || query || ') x' INTO rows;
	SET LOCAL bloomfilter.join_filters = off;
	EXECUTE 'SELECT array_agg(x::text ORDER BY x::text) FROM (' || query || ') x' INTO expected;
	SET LOCAL bloomfilter.join_filters = force;
	RETURN rows IS NOT DISTINCT FROM expected;
END $$;

CREATE FUNCTION report(query text, OUT skipped text, OUT same boolean) LANGUAGE sql AS $$
	SELECT (SELECT string_agg(s, '; ') FROM skipped(query) s), same(query)
$$;

CREATE TABLE days (day date, month int, n int);
INSERT INTO days SELECT d, extract(month FROM d), extract(doy FROM d)
  FROM generate_series(date '2025-01-01', '2025-12-31', '1 day') d;
ANALYZE days;

-- Ranges; the first partition is asked for a row before the filter is complete
CREATE TABLE facts (day date, amount int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE facts_%s PARTITION OF facts FOR VALUES FROM (%L) TO (%L)', m,
	make_date(2025, m, 1), make_date(2025, m, 1) + interval '1 month') FROM generate_series(1, 12) m \gexec
INSERT INTO facts SELECT day, n FROM days, generate_series(1, 10);
ANALYZE facts;
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE n IN (5, 350)');
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 13');
-- the row that was read before does not come again, nor is it lost
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 1');
-- a list of more keys than are remembered leaves only its ends
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE n <= 2 OR n >= 180 AND n < 300');
-- a key of another type, and an expression that the partitions are not by
SELECT * FROM report('SELECT * FROM facts JOIN (SELECT day::timestamp AS at, n FROM days WHERE month = 3) d ON day = at');
SELECT * FROM report('SELECT * FROM facts f JOIN days d ON f.day + 1 = d.day WHERE month = 3');
-- index scans, index-only scans, bitmap scans
CREATE INDEX facts_amount ON facts (amount, day);
VACUUM ANALYZE facts;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM report('SELECT facts.day FROM facts JOIN days ON facts.day = days.day WHERE month = 3 AND amount < 100');
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3 AND amount < 100');
RESET enable_seqscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;
DROP INDEX facts_amount;
-- rows of a group pass together, so nothing is skipped below a grouping
SELECT * FROM report('SELECT * FROM (SELECT day, sum(amount) FROM facts GROUP BY day) f JOIN days USING (day) WHERE month = 3');
-- conditions with volatile functions are evaluated as often as without
SELECT * FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3 AND amount + random() > 0');
CREATE SEQUENCE samples;
CREATE FUNCTION percent() RETURNS real LANGUAGE sql AS 'SELECT 100 + 0 * nextval(''samples'')';
SELECT * FROM report('SELECT * FROM facts TABLESAMPLE SYSTEM (percent()) JOIN days USING (day) WHERE month = 3');
SELECT last_value FROM samples;
-- in a repeated join
SELECT * FROM report('SELECT (SELECT sum(amount) + x FROM facts JOIN days USING (day) WHERE month = 3) FROM generate_series(1, 3) x');
SET enable_material = off;
SET enable_nestloop = on;
SELECT * FROM report('SELECT count(*) FROM (VALUES (1), (2)) v (x) LEFT JOIN
	(SELECT day FROM facts JOIN days USING (day) WHERE month IN (3, 4)) f ON extract(month FROM day) > x');
RESET enable_material;
SET enable_nestloop = off;
-- in a subplan that several expressions have
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

-- Hash partitions: few keys are tried one by one
CREATE TABLE hashed (k bigint, v int) PARTITION BY HASH (k);
SELECT format('CREATE TABLE hashed_%s PARTITION OF hashed FOR VALUES WITH (MODULUS 8, REMAINDER %s)', r, r) FROM generate_series(0, 7) r \gexec
INSERT INTO hashed SELECT i, i FROM generate_series(1, 2000) i;
CREATE TABLE keys AS SELECT i::bigint AS k, i AS narrow, i % 100 AS part FROM generate_series(1, 200) i;
ANALYZE hashed, keys;
SELECT * FROM report('SELECT * FROM hashed JOIN keys USING (k) WHERE part = 17');
SELECT * FROM report('SELECT * FROM hashed JOIN keys USING (k)');
SELECT * FROM report('SELECT * FROM hashed h JOIN keys ON h.k = narrow WHERE part = 17');
-- not by another operator family: there, equal keys may be in different partitions
CREATE FUNCTION same_text(float8, float8) RETURNS boolean IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::text = $2::text';
CREATE FUNCTION hash_text(float8, bigint) RETURNS bigint IMMUTABLE STRICT LANGUAGE sql AS 'SELECT hashtextextended($1::text, $2)';
CREATE OPERATOR === (LEFTARG = float8, RIGHTARG = float8, FUNCTION = same_text, COMMUTATOR = ===, HASHES);
CREATE OPERATOR CLASS text_of_float8 FOR TYPE float8 USING hash AS OPERATOR 1 ===, FUNCTION 2 hash_text(float8, bigint);
CREATE TABLE by_text (x float8) PARTITION BY HASH (x text_of_float8);
SELECT format('CREATE TABLE by_text_%s PARTITION OF by_text FOR VALUES WITH (MODULUS 8, REMAINDER %s)', r, r) FROM generate_series(0, 7) r \gexec
INSERT INTO by_text SELECT i FROM generate_series(-20, 20) i;
INSERT INTO by_text VALUES ('-0');
CREATE TABLE zero AS SELECT 0::float8 AS x;
ANALYZE by_text, zero;
SELECT * FROM report('SELECT by_text.x FROM by_text JOIN zero USING (x)');
-- nor for another collation
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE lower_case (t text COLLATE "C") PARTITION BY HASH (t);
SELECT format('CREATE TABLE lower_case_%s PARTITION OF lower_case FOR VALUES WITH (MODULUS 8, REMAINDER %s)', r, r) FROM generate_series(0, 7) r \gexec
INSERT INTO lower_case SELECT 'k' || i FROM generate_series(1, 100) i;
CREATE TABLE upper_case AS SELECT 'K7' AS t;
ANALYZE lower_case, upper_case;
SELECT * FROM report('SELECT l.t FROM lower_case l RIGHT JOIN upper_case u ON l.t = u.t COLLATE any_case');

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
ALTER TABLE numbers_1 ADD CHECK (n < 5) NO INHERIT;
ALTER TABLE numbers_2 ADD CHECK (n BETWEEN 0 AND 9.99) NO INHERIT;
SELECT f.n, skipped, same
  FROM wanted f, report('SELECT s.* FROM numbers s JOIN wanted w USING (n) WHERE case_number = ' || case_number) ORDER BY case_number;

-- CHECK constraints of inheritance children; one that is not valid, and one
-- that depends on a setting, say nothing
CREATE TABLE parent (at timestamptz, v int);
CREATE TABLE child_1 (CHECK (at >= '2025-01-01 00:00+00' AND at < '2025-02-01 00:00+00')) INHERITS (parent);
CREATE TABLE child_2 (CHECK (at >= '2025-02-01 00:00+00' AND at < '2025-03-01 00:00+00')) INHERITS (parent);
CREATE TABLE child_3 () INHERITS (parent);
INSERT INTO child_1 SELECT '2025-01-01 00:00+00'::timestamptz + i * interval '1 hour', i FROM generate_series(0, 700) i;
INSERT INTO child_2 SELECT '2025-02-01 00:00+00'::timestamptz + i * interval '1 hour', i FROM generate_series(0, 600) i;
INSERT INTO child_3 SELECT * FROM child_1;
ALTER TABLE child_3 ADD CHECK (at > '2025-06-01 00:00+00') NOT VALID;
CREATE TABLE moments AS SELECT '2025-02-10 00:00+00'::timestamptz + i * interval '1 hour' AS at FROM generate_series(0, 9) i;
ANALYZE parent, child_1, child_2, child_3, moments;
SELECT * FROM report('SELECT * FROM parent JOIN moments USING (at)');
SELECT * FROM report('SELECT * FROM parent p JOIN (SELECT at::date AS day FROM moments) m ON p.at = m.day');

-- A function of a user in a constraint is not called, because it may fail.
CREATE FUNCTION bound() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1000; END';
CREATE TABLE bounded (n int CHECK (n < bound()), CHECK (n > 500));
INSERT INTO bounded SELECT i FROM generate_series(501, 900) i;
ANALYZE bounded;
CREATE OR REPLACE FUNCTION bound() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1 / 0; END';
SELECT * FROM report('SELECT * FROM bounded JOIN days USING (n)');

-- Blocks that a BRIN index leaves
CREATE TABLE log (at int, day date, pad text) WITH (fillfactor = 10);
INSERT INTO log SELECT i, date '2025-01-01' + i / 20, repeat('x', 50) FROM generate_series(0, 7299) i;
CREATE INDEX log_day ON log USING brin (day) WITH (pages_per_range = 4);
ANALYZE log;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
-- the first blocks, of which a row was read before
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE n < 10');
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 13');
-- a row that was read early by an execution that ended is not left out of the next
SET join_collapse_limit = 1;
SET bloomfilter.join_filter_min_rows = 0;
CREATE TABLE big AS SELECT i / 100 AS k, i % 100 AS g, repeat('x', 100) AS pad FROM generate_series(100, 40000) i;
CREATE INDEX ON big USING brin (k) WITH (pages_per_range = 4);
CREATE TABLE first AS SELECT generate_series(1, 2) AS k;
CREATE TABLE second AS SELECT 2 AS x, generate_series(0, 9) AS g;
ANALYZE big, first, second;
SELECT regexp_replace(skipped, ' of .*', '') AS skipped, same FROM report('SELECT n, (SELECT count(*) FROM big JOIN second s ON big.g = s.g AND s.x = n
	JOIN first USING (k)) FROM generate_series(1, 3) n');
RESET bloomfilter.join_filter_min_rows;
RESET join_collapse_limit;
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
SELECT skipped ~ 'Blocks Read' AS skipped, same FROM report('SELECT * FROM parted JOIN days USING (day) WHERE month = 3');
ALTER TABLE log ENABLE ROW LEVEL SECURITY;
ALTER TABLE parted ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON log USING (at % 2 = 0);
CREATE POLICY even ON parted USING (at % 2 = 0);
CREATE ROLE regress_bloom_even;
GRANT USAGE ON SCHEMA join_skip TO regress_bloom_even;
GRANT SELECT ON log, parted, days TO regress_bloom_even;
SET ROLE regress_bloom_even;
SELECT * FROM report('SELECT * FROM log JOIN days USING (day) WHERE month = 3');
SELECT skipped ~ 'Blocks Read' AS skipped, same FROM report('SELECT * FROM parted JOIN days USING (day) WHERE month = 3');
RESET ROLE;
DROP VIEW even;
DROP TABLE log, parted;
DROP OWNED BY regress_bloom_even;
DROP ROLE regress_bloom_even;

-- Parallel plans: all processes skip
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT skipped ~ 'Scans Skipped: 1[12] of 12' AS skipped, same
  FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');
SET enable_parallel_hash = off;
SELECT skipped ~ 'Scans Skipped: 1[12] of 12' AS skipped, same
  FROM report('SELECT * FROM facts JOIN days USING (day) WHERE month = 3');

SET client_min_messages = warning;
DROP SCHEMA join_skip CASCADE;
