--
-- PARAMS
-- Valid parameters, and the errors for invalid ones: SQLSTATE, the value
-- given, the limit and a workaround.
--

-- Run a query that returns one value; return the value or the full error.
CREATE PROCEDURE try(query text) LANGUAGE plpgsql AS $$
DECLARE
  result text;
  code text; message text; detail text; hint text;
BEGIN
  EXECUTE query INTO result;
  RAISE INFO '%', COALESCE(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
    detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RAISE INFO '%', concat_ws(E'\n', format('%s: %s', code, message),
    NULLIF(detail, ''), NULLIF(hint, ''));
END
$$;

-- Defaults, and each parameter by position and by name.
SELECT fpp, expected, seed, form, key_type, cardinality, current_fpp FROM bloom_info(bloom_empty());
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001, 50000));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.001, 50000, -7));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(expected => 50000));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(seed => 42, fpp => 0.2));
SELECT fpp, expected, seed FROM bloom_info(bloom_empty(0.1, NULL, 5));

-- The false-positive rate: both ends of the range are within it.
CALL try('SELECT fpp FROM bloom_info(bloom_empty(0.5))');
CALL try('SELECT fpp FROM bloom_info(bloom_empty(1e-9))');
CALL try('SELECT bloom_empty(0)');
CALL try($$SELECT bloom_empty('-0')$$);
CALL try('SELECT bloom_empty(-0.01)');
CALL try('SELECT bloom_empty(1)');
CALL try('SELECT bloom_empty(0.99, 3)');
CALL try('SELECT bloom_empty(0.51)');
CALL try('SELECT bloom_empty(0.5000000001)');
CALL try('SELECT bloom_empty(0.9999999999999998e-9)');
CALL try('SELECT bloom_agg(i, 0.01 + i * 1e-12) FROM generate_series(0, 1) i');
CALL try('SELECT bloom_empty(0.99e-9)');
CALL try('SELECT bloom_empty(1e-300)');
CALL try('SELECT bloom_empty(4.9e-324)');
CALL try('SELECT bloom_empty(1e300)');
CALL try($$SELECT bloom_empty('NaN')$$);
CALL try($$SELECT bloom_empty('Infinity')$$);
CALL try($$SELECT bloom_empty('-Infinity')$$);
CALL try('SELECT bloom_empty(NULL)');

-- The number of keys.
CALL try('SELECT expected FROM bloom_info(bloom_empty(0.01, 1))');
CALL try('SELECT expected FROM bloom_info(bloom_empty(0.01, NULL))');
CALL try('SELECT bloom_empty(0.01, 0)');
CALL try('SELECT bloom_empty(0.01, -1)');
CALL try('SELECT bloom_empty(0.01, -9223372036854775808)');
CALL try('SELECT bloom_empty(0.01, 9223372036854775807)');
CALL try('SELECT bloom_empty(0.01, 1000000000000000000)');
CALL try('SELECT bloom_empty(0.01, 500000000)');
CALL try('SELECT bloom_empty(1e-9, 430000000)');
CALL try('SELECT bloom_empty(0.5, 4294967296)');

-- The maximum.  A filter takes memory as keys are added, so these are small.
CREATE TABLE limits (fpp float8, expected bigint);
INSERT INTO limits VALUES
  (0.5, 2900000000), (0.1, 880000000), (0.01, 430000000), (0.0001, 215000000),
  (1e-6, 142000000), (1e-9, 90000000);
SELECT fpp, l.expected, octet_length(empty::bytea) AS empty,
  octet_length(bloom_add(empty, 1)::bytea) AS with_one_key,
  (bloom_info(bloom_add(empty, 1))).expected = l.expected AS recorded
FROM limits l, bloom_empty(fpp, expected) empty
ORDER BY fpp DESC;
SELECT count(*) AS limits, count(f) AS made, max(octet_length(f::bytea)) AS bytes
FROM (SELECT bloom_agg(k, fpp, expected) AS f
      FROM limits, generate_series(1, 10) k GROUP BY fpp, expected) agg;

-- The seed: any number.
CALL try('SELECT seed FROM bloom_info(bloom_empty(seed => 9223372036854775807))');
CALL try('SELECT seed FROM bloom_info(bloom_empty(seed => -9223372036854775808))');
CALL try('SELECT bloom_empty(seed => NULL)');

-- Hashes differ between seeds and are consistent for one seed.
SELECT count(DISTINCT f::text) AS filters, count(*) AS seeds, bool_and(f @> 'key' AND NOT f @> 'other') AS right
FROM (SELECT bloom_add(bloom_empty(seed => s), 'key') AS f
      FROM unnest('{0,1,-1,2,4294967296,9223372036854775807,-9223372036854775808}'::bigint[]) s) seeded;

-- The same in the aggregate.
CALL try('SELECT bloom_agg(k, 0) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 1) FROM generate_series(1, 3) k');
CALL try($$SELECT bloom_agg(k, 'NaN') FROM generate_series(1, 3) k$$);
CALL try('SELECT bloom_agg(k, NULL) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.01, 0) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.01, -5) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.01, 1000000000000000000) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.01, 10, NULL) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, NULL, NULL, NULL) FROM generate_series(1, 3) k');
CALL try($$SELECT bloom_agg('literal', 2) FROM generate_series(1, 3) k$$);
CALL try('SELECT expected FROM bloom_info((SELECT bloom_agg(k, 0.01, NULL) FROM generate_series(1, 3) k))');
CALL try('SELECT seed FROM bloom_info((SELECT bloom_agg(k, 0.01, 10, -3) FROM generate_series(1, 3) k))');

-- Without a key, no filter is built and no memory is allocated.
CALL try('SELECT bloom_agg(k, 0) FROM generate_series(1, 0) k');

-- Parameters that differ from row to row.
CALL try('SELECT bloom_agg(k, 0.1 / k) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.1, 10 * k) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.1, 10, k) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, CASE WHEN k < 3 THEN 0.1 END) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.1, CASE WHEN k < 3 THEN 10 END) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.1, CASE WHEN k = 3 THEN 10 END) FROM generate_series(1, 3) k');
CALL try('SELECT bloom_agg(k, 0.1, 10, CASE WHEN k < 3 THEN 1 END) FROM generate_series(1, 3) k');
CALL try($$SELECT bloom_agg(k, CASE WHEN k < 3 THEN 0.1 ELSE 'NaN' END) FROM generate_series(1, 3) k$$);

-- They can differ between groups.
SELECT k % 3 AS g, i.fpp, i.expected, i.seed
FROM (SELECT bloom_agg(k, 0.1 / (1 + k % 3), 10 * (1 + k % 3), k % 3) AS f, min(k) AS k
      FROM generate_series(1, 30) k GROUP BY k % 3) groups, bloom_info(f) i
ORDER BY g;

-- A filter of 64 MB that is full except for its last block, with expected
-- equal to its number of bits: its next layer exceeds the maximum.
CREATE TABLE full_up AS SELECT (decode('424c4d46010101000000000000000000' || '01000000' || repeat('00', 8) || '7b14ae47e17a843f' || repeat('00', 8) ||
    '0000100009060000' || '0000002000000000' || 'ac43d2d15d72323c' || '00feff1f00000000', 'hex') ||
    decode(repeat('ff', (x'100000'::int - 1) * 64) || repeat('00', 64), 'hex'))::bloom AS f;
SELECT bloom_contains_hash(f, 1) AS first, bloom_contains_hash(f, -1) AS last FROM full_up;
CALL try('SELECT bloom_contains_hash(bloom_add_hash(f, -1), -1) FROM full_up');
DROP TABLE full_up;

-- The session remains usable.
SELECT bloom_empty() @> 1 AS found;

DROP TABLE limits;
DROP PROCEDURE try;
