--
-- bloom_try_add
--
SELECT added, filter @> 'a' AS contains FROM bloom_try_add(bloom_empty(), 'a');
SELECT added, filter = f AS unchanged
  FROM (SELECT bloom_add(bloom_empty(), 1) AS f) x, bloom_try_add(f, 1::bigint);
SELECT bloom_try_add(bloom_add(bloom_empty(), 1), 'a'::text);

-- in a loop: every new key is reported as new, except false positives
DO $$
DECLARE
	f bloom := bloom_empty(0.001, 3000);
	new bool;
	news int := 0;
	news_again int := 0;
BEGIN
	FOR i IN 1 .. 3000 LOOP
		SELECT * INTO f, new FROM bloom_try_add(f, i);
		news := news + new::int;
	END LOOP;
	FOR i IN 1 .. 3000 LOOP
		SELECT * INTO f, new FROM bloom_try_add(f, i);
		news_again := news_again + new::int;
	END LOOP;
	RAISE INFO 'at least 2980: %, again: %', news >= 2980, news_again;
END $$;
