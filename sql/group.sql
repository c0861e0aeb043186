--
-- GROUP
-- A million small filters at the same time, with the default memory settings
-- of PostgreSQL.
--

-- Group g has the keys 5g to 5g + 4; rows of a group are far apart.
SET work_mem = '4MB';
SELECT count(*) AS groups, sum(bloom_cardinality(f)) AS keys, bool_and(octet_length(f::bytea) = 44 + 5 * 8) AS size,
  count(*) FILTER (WHERE NOT (f @> (5 * g) AND f @> (5 * g + 1) AND f @> (5 * g + 2) AND f @> (5 * g + 3) AND f @> (5 * g + 4))) AS lost,
  count(*) FILTER (WHERE f @> (5 * g - 1) OR f @> (5 * g + 5)) AS wrong
FROM (SELECT k % 1000000 AS g, bloom_agg(5 * (k % 1000000) + k / 1000000) AS f
      FROM generate_series(0, 4999999) k GROUP BY k % 1000000) groups;
RESET work_mem;
