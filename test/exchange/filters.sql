--
-- A database whose filters have to be the same in another server: of every
-- key type and form, built in every way, and in every place where a database
-- can have them.  Every server makes the same filters.
--
-- fingerprint() describes them.  lost_keys() and probes_answered() probe them,
-- or filters from another server, with keys that are made here.
--

SET client_min_messages = error;	-- of filters that grow
CREATE EXTENSION IF NOT EXISTS bloomfilter;
CREATE EXTENSION citext;

CREATE TYPE colour AS ENUM ();
DO $$
BEGIN
	FOR i IN 1 .. 400 LOOP
		EXECUTE format('ALTER TYPE colour ADD VALUE %L', 'grün ' || i);
	END LOOP;
END $$;
CREATE DOMAIN word AS text;

-- Key types, and the i-th key.
CREATE TABLE key_types (key_type text PRIMARY KEY, key text, opclass_hashed boolean);
INSERT INTO key_types VALUES
	('text', $$CASE WHEN i % 2 = 0 THEN 'Zürich ' || i ELSE 'key ' || i END$$, false),
	('char(n)', $$('key ' || i)::char(20)$$, false),
	('name', $$('key ' || i)::name$$, false),
	('domain', $$('key ' || i)::word$$, false),
	('long text', $$repeat('key ' || i, 1000)$$, false),
	('smallint', $$(i - 200)::smallint$$, false),
	('integer', $$(i - 200) * 10000019$$, false),
	('bigint', $$(i - 200) * 10000000000000019$$, false),
	('real', $$((i - 200) / 7.0)::real$$, false),
	('double precision', $$(i - 200) / 7.0::float8$$, false),
	('numeric', $$i * 1.50 - 200$$, false),
	('boolean', $$i % 2 = 0$$, false),
	('"char"', $$(i % 200 - 100)::"char"$$, false),
	('oid', $$(i * 10000000::bigint)::oid$$, false),
	('bytea', $$decode(md5(i::text), 'hex')$$, false),
	('uuid', $$md5(i::text)::uuid$$, false),
	('date', $$date '1999-06-01' + i$$, false),
	('time', $$time '0:00' + i * interval '1 s'$$, false),
	('timetz', $$timetz '0:00+02' + i * interval '1 s'$$, false),
	('timestamp', $$timestamp '1999-12-31' + i * interval '1 h'$$, false),
	('timestamptz', $$timestamptz '1999-12-31 UTC' + i * interval '1 h'$$, false),
	('interval', $$(i - 200) * interval '1 month 3 days 4 s'$$, false),
	('inet', $$inet '10.0.0.0' + i$$, false),
	('cidr', $$set_masklen(cidr 'fe80::/64' + i * 65536, 128)::cidr$$, false),
	('macaddr', $$left(md5(i::text), 12)::macaddr$$, false),
	('macaddr8', $$left(md5(i::text), 16)::macaddr8$$, false),
	('pg_lsn', $$pg_lsn '1/0' + i::numeric$$, false),
	('xid8', $$(i * 10000000000)::text::xid8$$, false),
	('enum', $$(enum_range(NULL::colour))[i]$$, false),
	('citext', $$('Key ' || i)::citext$$, true),
	('jsonb', $$jsonb_build_object('Zürich', i, 'list', ARRAY[i, -i])$$, true),
	('int[]', $$ARRAY[i, -i]$$, true),
	('text[]', $$ARRAY['Zürich', 'key ' || i]$$, true),
	('float8[]', $$ARRAY[i / 7.0::float8]$$, true),
	('int8range', $$int8range(i, i * 100000000000)$$, true),
	('numrange', $$numrange(i * 0.5, NULL)$$, true);

CREATE TABLE filters (key_type text, form text, low int, high int, f bloom);

-- Forms, and how to make them of the keys k with numbers i from low to high.
-- Each is probed for all these keys afterwards.
CREATE TEMP TABLE forms (form text, low int, high int, query text);
INSERT INTO forms VALUES
	('sparse', 1, 20, $$SELECT bloom_agg(k, 0.01, 400) FROM keys$$),
	('dense', 1, 400, $$SELECT bloom_agg(k, 0.001, 400) FROM keys$$),
	('large blocks', 1, 400, $$SELECT bloom_agg(k, 1e-9, 400) FROM keys$$),
	('seeded', 1, 400, $$SELECT bloom_agg(k, 0.001, 400, -77) FROM keys$$),
	('self-sized', 1, 400, $$SELECT bloom_agg(k) FROM keys$$),
	('compact', 1, 400,
	 $$SELECT bloom_compact(bloom_agg(k, 0.01, 100000)) FROM keys$$),
	('grown', 1, 400, $$SELECT bloom_agg(k, 0.01, 40) FROM keys$$),
	('added', 1, 100,
	 $$WITH RECURSIVE added (n, f) AS (
		SELECT 0, bloom_empty(0.05, 50)
		UNION ALL
		SELECT i, bloom_add(f, k) FROM added JOIN keys ON i = n + 1)
	 SELECT f FROM added ORDER BY n DESC LIMIT 1$$),
	('added at once', 1, 400,
	 $$SELECT bloom_add_all(bloom_empty(0.02, 300), array_agg(k)) FROM keys$$),
	('ORed', 1, 400,
	 $$SELECT (SELECT bloom_agg(k, 0.02, 400) FROM keys WHERE i <= 250)
		| (SELECT bloom_agg(k, 0.02, 400) FROM keys WHERE i > 150)$$),
	('side by side', 1, 400,
	 $$SELECT (SELECT bloom_agg(k, 0.01, 100) FROM keys WHERE i <= 100)
		| (SELECT bloom_agg(k, 0.05, 300) FROM keys WHERE i > 100)$$),
	('united', 1, 400,
	 $$SELECT bloom_union_agg(f ORDER BY n)
		FROM (SELECT i / 90 AS n, bloom_agg(k, 0.03, 60) AS f
			FROM keys GROUP BY 1) parts$$),
	('intersection', 150, 250,
	 $$SELECT bloom_agg(k, 0.02, 400) FILTER (WHERE i <= 250)
		& bloom_agg(k, 0.02, 400) FILTER (WHERE i >= 150) FROM all_keys$$),
	('room for more', 1, 400,
	 $$SELECT bloom_agg(k, 1e-5, 100000) FROM keys$$),
	('empty', 1, 0, $$SELECT bloom_empty()$$),
	('empty, sized', 1, 0, $$SELECT bloom_empty(0.25, 1000000, 5)$$);

CREATE FUNCTION keys_of(key_type text) RETURNS text LANGUAGE sql AS
$$ SELECT quote_ident('keys: ' || key_type) $$;

DO $$
DECLARE
	key_type record;
	form record;
BEGIN
	FOR key_type IN SELECT * FROM key_types LOOP
		EXECUTE format('CREATE TABLE %s AS SELECT i, %s AS k'
					   ' FROM generate_series(1, 400) i',
					   keys_of(key_type.key_type), key_type.key);
		EXECUTE 'CREATE TEMP VIEW all_keys AS SELECT * FROM '
			|| keys_of(key_type.key_type);
		FOR form IN SELECT * FROM forms LOOP
			-- an array of arrays is an array of their elements
			CONTINUE WHEN form.form = 'added at once' AND key_type.key_type LIKE '%[]';
			EXECUTE format('CREATE TEMP VIEW keys AS SELECT * FROM all_keys'
						   ' WHERE i BETWEEN %s AND %s', form.low, form.high);
			EXECUTE format('INSERT INTO filters VALUES ($1, $2, $3, $4, (%s))',
						   form.query)
				USING key_type.key_type, form.form, form.low, form.high;
			DROP VIEW keys;
		END LOOP;
		DROP VIEW all_keys;
	END LOOP;
END $$;

-- So large that it is stored in many pieces.
INSERT INTO filters
	SELECT 'text', 'large', 1, 400, bloom_agg(k, 0.01, 200000)
		FROM (SELECT k FROM "keys: text"
			UNION ALL SELECT 'other ' || i FROM generate_series(1, 200000) i) u;
INSERT INTO filters
	SELECT 'jsonb', 'large', 1, 400, bloom_agg(k)
		FROM (SELECT k FROM "keys: jsonb"
			UNION ALL SELECT to_jsonb(i) FROM generate_series(1, 50000) i) u;

-- What filters are made for at many rates: computed in floating point, and yet
-- the same on all machines.
CREATE TABLE sizes AS
	SELECT rate, n, bits, hashes, block_bits, filters, standard_hashes
		FROM (SELECT (digits || 'e-' || exponent)::float8 AS rate
			FROM generate_series(10, 49, 3) digits,
				 generate_series(2, 10) exponent
			WHERE (digits || 'e-' || exponent)::float8 >= 1e-9) rates,
		unnest(ARRAY[1, 2, 10, 100, 1000, 1234, 54321, 1000000, 4194304,
					 99999999, 400000000]) n,
		bloom_sizing(rate, n);

-- Other places where a filter can stand.
CREATE TYPE named_filter AS (name text, f bloom);
-- Not VALUE::bytea: pg_upgrade restores casts of extensions after domains.
CREATE DOMAIN small_filter AS bloom
	CHECK (octet_length(bloom_to_bytea(VALUE)) < 10000
		AND bloom_fpp(VALUE) < 0.5);
CREATE TABLE places (
	id int,
	one bloom DEFAULT bloom_add(bloom_empty(0.05, 77), 'by default'),
	many bloom[],
	named named_filter,
	small small_filter,
	cardinality bigint GENERATED ALWAYS AS (bloom_cardinality(one)) STORED,
	CHECK (id = 0 OR one @> 'by default'));
INSERT INTO places (id, many, named, small)
	SELECT row_number() OVER (ORDER BY form COLLATE "C"),
		   ARRAY[f, NULL, bloom_empty()], ROW(form, f)::named_filter, f
		FROM filters WHERE key_type = 'text' AND form <> 'large';
DO $$
BEGIN
	EXECUTE format('ALTER TABLE places ALTER small SET DEFAULT %L',
				   (SELECT f FROM filters WHERE key_type = 'enum' AND form = 'dense'));
END $$;
CREATE INDEX ON places (bloom_cardinality(one)) WHERE one @> 'by default';
CREATE INDEX filters_f ON filters USING hash (f);
CREATE MATERIALIZED VIEW stored AS
	SELECT key_type, bloom_union_agg(f ORDER BY form COLLATE "C") AS f FROM filters
		WHERE form IN ('dense', 'grown', 'large') GROUP BY key_type;
CREATE UNIQUE INDEX ON stored (key_type);
CREATE VIEW known AS
	SELECT k FROM "keys: text"
		WHERE k <@ (SELECT f FROM filters WHERE key_type = 'text' AND form = 'dense');
-- Of several layers; pg_upgrade keeps them, restoring a dump builds one layer.
CREATE TABLE indexed (k int);
CREATE INDEX indexed_k ON indexed USING bloomfilter (k) WITH (fpp = 0.001);
INSERT INTO indexed SELECT generate_series(1, 1000);
INSERT INTO indexed SELECT generate_series(1001, 30000);

-- What has to be the same in another database.
CREATE FUNCTION fingerprint() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT concat_ws('|', key_type, form, low, high, md5(f::bytea),
								  (bloom_info(f)).layers)
		FROM filters ORDER BY key_type COLLATE "C", form COLLATE "C";
	RETURN QUERY SELECT concat_ws('|', id, md5(one::bytea),
								  md5(many[1]::bytea), many[2] IS NULL,
								  md5(many[3]::bytea), (named).name,
								  md5((named).f::bytea), md5(small::bytea),
								  cardinality)
		FROM places ORDER BY id;
	RETURN QUERY SELECT concat_ws('|', key_type, md5(f::bytea))
		FROM stored ORDER BY key_type COLLATE "C";
	INSERT INTO places (id) VALUES (-1);
	RETURN QUERY SELECT concat_ws('|', md5(one::bytea), md5(small::bytea))
		FROM places WHERE id = -1;
	DELETE FROM places WHERE id = -1;
	RETURN QUERY SELECT count(*)::text FROM known;
	RETURN QUERY SELECT concat_ws('|', bloom_index_check('indexed_k'),
								  count(*) FILTER (WHERE k <= 30000 AND NOT answer),
								  count(*) FILTER (WHERE k > 30000 AND answer) < 100)
		FROM (SELECT k, bloom_index_contains('indexed_k', k) AS answer
			FROM generate_series(1, 60000) k) x;
	RETURN QUERY SELECT md5(string_agg(s::text, ';' ORDER BY rate, n))
		FROM sizes s;
END $$;

-- How many of its own keys each filter of a table was probed for, and how many
-- it did not find; by key type, of those that are wanted.
CREATE FUNCTION lost_keys(source regclass, wanted text DEFAULT 'true',
						  OUT key_type text, OUT probed bigint, OUT lost bigint)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	FOR key_type IN EXECUTE 'SELECT key_type FROM key_types WHERE ' || wanted LOOP
		EXECUTE format('SELECT count(*), count(*) FILTER (WHERE NOT f @> k)'
					   ' FROM %s JOIN %s ON i BETWEEN low AND high'
					   ' WHERE key_type = %L', source, keys_of(key_type), key_type)
			INTO probed, lost;
		RETURN NEXT;
	END LOOP;
END $$;

-- How many probes of filters of opclass-hashed types were answered.  Each has
-- to be an error if they were hashed in another byte order.
CREATE FUNCTION probes_answered(source regclass,
							  OUT probed bigint, OUT answered bigint)
LANGUAGE plpgsql AS $$
DECLARE
	part record;
	query text;
BEGIN
	probed := 0;
	answered := 0;
	FOR part IN EXECUTE format('SELECT key_type, f FROM %s JOIN key_types USING (key_type)'
							   ' WHERE opclass_hashed AND low <= high', source)
	LOOP
		FOREACH query IN ARRAY ARRAY[
			'SELECT $1 @> k FROM %s LIMIT 1',
			'SELECT bloom_add($1, k) FROM %s LIMIT 1',
			'SELECT $1 | bloom_agg(k, 0.01, NULL, $2) FROM %s']
		LOOP
			probed := probed + 1;
			BEGIN
				EXECUTE format(query, keys_of(part.key_type))
					USING part.f, (bloom_info(part.f)).seed;
				answered := answered + 1;
			EXCEPTION WHEN datatype_mismatch THEN
			END;
		END LOOP;
	END LOOP;
END $$;
