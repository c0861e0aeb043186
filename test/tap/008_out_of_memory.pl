# Each allocation fails in turn: the statement ends in an error, and tables and
# server stay as they were.  A read of the state of an aggregate or of a
# variable that fails there, or at a check for interrupts, loses no key, nor does
# an index whose pending keys are being written.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The extension as made by "make FAIL_ALLOC=1", see test/fault/fail_alloc.c
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $library;

my $node = new_node('main');
$node->start;
my $started =
  $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# In a session of its own: no session loads both libraries.
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
$node->safe_psql('postgres', qq{
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter';
CREATE FUNCTION fail_allocation(n bigint) RETURNS boolean
	AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION fail_check(n bigint) RETURNS boolean
	AS '$library' LANGUAGE C STRICT;
});
$node->safe_psql('postgres', q{
SET client_min_messages = error;
CREATE TABLE filters (id int, f bloom);
INSERT INTO filters VALUES
	(0, bloom_empty(0.01, 100)),
	(1, (SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 90) i)),
	(2, (SELECT bloom_agg(i, 0.01, 1000) FROM generate_series(1, 900) i)),
	(3, (SELECT bloom_agg(i, 0.01, 50) FROM generate_series(1, 900) i)),
	(4, (SELECT bloom_agg(i, 0.1, 3000) FROM generate_series(1, 3000) i)),
	(5, (SELECT bloom_add_all(bloom_empty(), array_agg(i)) FROM generate_series(1, 900) i));
CREATE TABLE keys AS SELECT i FROM generate_series(1, 20000) i;
ALTER TABLE keys SET (parallel_workers = 1);
CREATE TABLE built (f bloom);
CREATE FUNCTION content() RETURNS text LANGUAGE sql AS $$
	SELECT md5(string_agg(id || f::text, ',' ORDER BY id)) || (SELECT count(*) FROM built)
	FROM filters $$;

-- How often the statement fails, and what else than it should do comes up
CREATE FUNCTION fail_each(statement text, OUT times int, OUT wrong text)
LANGUAGE plpgsql AS $$
DECLARE
	before text := content();
	state text;
BEGIN
	times := 0;
	wrong := '';
	LOOP
		BEGIN
			PERFORM fail_allocation(times + 1);
			EXECUTE statement;
			RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ000';
		EXCEPTION WHEN OTHERS THEN
			state := SQLSTATE;
		END;
		EXIT WHEN NOT fail_allocation(0);
		times := times + 1;
		IF state <> '53200' OR content() <> before THEN
			wrong := wrong || format('[%s: %s]', times, state);
		END IF;
		EXIT WHEN times > 2000;
	END LOOP;
	IF state <> 'ZZ000' THEN
		wrong := wrong || 'at last ' || state;
	END IF;
END $$;
});

# Statements, and how many allocations of ours they make at least.  They are
# undone when they succeed at last.
my @statements = (
	[ 'UPDATE filters SET f = bloom_add(f, -1)', 10 ],
	[ 'UPDATE filters SET f = bloom_add_hash(f, -1)', 10 ],
	[
		'UPDATE filters SET f = bloom_add_all(f, ARRAY(SELECT -i FROM generate_series(1, 2000) i))',
		20
	],
	[ 'UPDATE filters SET f = (bloom_try_add(f, -1)).filter', 10 ],
	[ 'UPDATE filters SET f = bloom_compact(f)', 10 ],
	[ 'UPDATE filters x SET f = bloom_union(x.f, y.f) FROM filters y WHERE y.id = 5 - x.id',
		10 ],
	[ 'UPDATE filters SET f = bloom_intersection(f, f) WHERE id <> 3', 10 ],
	[ q{UPDATE filters SET f = f::text::bloom}, 10 ],
	[ q{UPDATE filters SET f = f::bytea::bloom}, 6 ],
	[ 'INSERT INTO built SELECT bloom_agg(i) FROM keys', 10 ],
	[ 'INSERT INTO built SELECT bloom_agg(i, 0.01, 100) FROM keys', 10 ],
	[ 'INSERT INTO built SELECT bloom_agg(i::text) FROM keys GROUP BY i % 5', 20 ],
	[ 'INSERT INTO built SELECT bloom_agg(i::numeric) FROM keys WHERE i < 99', 5 ],
	[ 'INSERT INTO built SELECT bloom_agg(ARRAY[i]) FROM keys WHERE i < 99', 5 ],
	[ 'INSERT INTO built SELECT bloom_union_agg(f) FROM filters', 8 ],
	[ 'INSERT INTO built SELECT bloom_intersection_agg(f) FROM filters WHERE id IN (1, 2)',
		4 ],
	[ 'INSERT INTO built SELECT bloom_empty(0.01, 1000)', 1 ],
	[ q{INSERT INTO built SELECT bloom_empty(key_type => 'int[]')}, 2 ],
	[ 'INSERT INTO built SELECT bloom_add(NULL, i) FROM keys WHERE i < 9', 2 ],
	[ 'SELECT bloom_new_keys(f, ARRAY[-1, -2, 3]) FROM filters', 1 ],
	[ 'SELECT bloom_contains_any(f, ARRAY[-1, -2, 3]) FROM filters', 1 ],
	[ 'SELECT bloom_contains_each(f, ARRAY[-1, NULL, 3]) FROM filters', 1 ],
	[ 'SELECT bloom_contains(f, i) FROM filters, keys WHERE i < 9', 1 ],
	[ 'SELECT bloom_hash(1.5), bloom_hash(ARRAY[1]), bloom_shard(date \'today\', 5)',
		3 ],
	[
		'DO $$ DECLARE f bloom := bloom_empty(0.01, 9);
		BEGIN FOR i IN 1..50 LOOP f := bloom_add(f, i); END LOOP; END $$', 10
	]);
foreach my $case (@statements)
{
	my ($statement, $least) = @$case;
	my ($times, $wrong) = split /\|/,
	  $node->safe_psql('postgres', qq{
SET client_min_messages = error;
SET max_parallel_workers_per_gather = 0;
SELECT * FROM fail_each(\$s\$$statement\$s\$)}),
	  2;

	is($wrong, '', "error 53200 and nothing else: $statement");
	cmp_ok($times, '>=', $least, "it fails $times times");
}

# With workers: the states are combined by the leader.
my ($times, $wrong) = split /\|/,
  $node->safe_psql('postgres', q{
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SELECT * FROM fail_each('SELECT bloom_agg(i), bloom_agg(i, 0.1, 9000) FROM keys')}),
  2;
is($wrong, '', 'error 53200 and nothing else: a parallel aggregate');
cmp_ok($times, '>=', 5, "it fails $times times");

# States and variables that are used after an error of a read
$node->safe_psql('postgres', q{
-- A final function that goes on after an error: it reads the state, which fails
-- at an allocation or a check for interrupts.  Returns the number of keys that
-- are lost then, or NULL if it has not failed.
CREATE FUNCTION read_on(f bloom) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	failed boolean;
BEGIN
	BEGIN
		EXECUTE current_setting('test.fail');
		EXECUTE 'SELECT ' || current_setting('test.read') USING f;
	EXCEPTION WHEN query_canceled OR out_of_memory THEN
		NULL;
	END;
	EXECUTE regexp_replace(current_setting('test.fail'), '\d+', '0') INTO failed;
	RETURN CASE WHEN failed THEN (SELECT count(*) FROM generate_series(1, current_setting('test.keys')::int) i
		WHERE NOT f @> i OR NOT bloom_from_bytea(f::bytea) @> i) END;
END $$;
CREATE AGGREGATE careful(bigint, float8, float8) (SFUNC = bloom_agg_hash_transfn, STYPE = bloom, FINALFUNC = read_on);
-- How often reads fail, and what else comes up than no lost key
CREATE FUNCTION fail_each_read(keys int, expected float8, OUT times int, OUT wrong text) LANGUAGE plpgsql AS $$
DECLARE
	failing text;
	reading text;
	lost text;
BEGIN
	times := 0;
	wrong := '';
	PERFORM set_config('test.keys', keys::text, false);
	FOREACH failing IN ARRAY '{fail_check,fail_allocation}'::text[] LOOP
		FOREACH reading IN ARRAY '{$1 @> 1,bloom_cardinality($1),$1::text,bloom_compact($1),$1 | $1}'::text[] LOOP
			PERFORM set_config('test.read', reading, false);
			FOR n IN 1 .. 100 LOOP
				PERFORM set_config('test.fail', format('SELECT %s(%s)', failing, n), false);
				BEGIN
					SELECT careful(bloom_hash(i), 0.01, expected) INTO lost FROM generate_series(1, keys) i;
				EXCEPTION WHEN OTHERS THEN
					lost := SQLERRM;
				END;
				EXIT WHEN lost IS NULL;
				times := times + 1;
				IF lost <> '0' THEN
					wrong := wrong || format('[%s %s, %s: %s]', failing, n, reading, lost);
				END IF;
			END LOOP;
		END LOOP;
	END LOOP;
END $$;

-- The same for a variable to which keys are added: all of them, or none
CREATE FUNCTION fail_each_addition(keys int[], expected float8, more int[], OUT times int, OUT wrong text)
LANGUAGE plpgsql AS $$
DECLARE
	f bloom;
	failing text;
	failed boolean;
	before bigint;
	state bigint;
BEGIN
	times := 0;
	wrong := '';
	FOREACH failing IN ARRAY '{fail_check,fail_allocation}'::text[] LOOP
		FOR n IN 1 .. 100 LOOP
			f := bloom_empty(0.01, expected);
			f := bloom_add_all(f, keys);
			f := bloom_add_all(f, keys);
			before := (SELECT count(*) FROM unnest(more) k WHERE f @> k);
			EXECUTE format('SELECT %s(%s)', failing, n);
			BEGIN
				f := bloom_add_all(f, more);
			EXCEPTION WHEN query_canceled OR out_of_memory THEN
				NULL;
			END;
			EXECUTE format('SELECT %s(0)', failing) INTO failed;
			EXIT WHEN NOT failed;
			times := times + 1;
			state := (SELECT count(*) FROM unnest(more) k WHERE f @> k);
			IF state NOT IN (before, cardinality(more)) OR NOT bloom_contains_all(f, keys) THEN
				wrong := wrong || format('[%s %s: %s of %s keys]', failing, n, state, cardinality(more));
			END IF;
		END LOOP;
	END LOOP;
END $$;
});
foreach my $case (
	'fail_each_read(3200, 20000)', 'fail_each_read(40000, 220000)',
	'fail_each_read(900, 50)',
	'fail_each_addition(ARRAY(SELECT generate_series(1, 100)), 100000, ARRAY(SELECT generate_series(101, 9000)))',
	'fail_each_addition(ARRAY(SELECT generate_series(1, 9000)), 10000, ARRAY(SELECT generate_series(9001, 9500)))'
  )
{
	($times, $wrong) = split /\|/,
	  $node->safe_psql('postgres', "SELECT * FROM $case"), 2;
	is($wrong, '', "no key is lost: $case");
	cmp_ok($times, '>=', 2, "it fails $times times");
}

# Keys of an index: a statement that writes them fails, in
# a subtransaction, and the transaction goes on.
$node->safe_psql('postgres', q{
CREATE TABLE pending (k int);
CREATE INDEX pending_k ON pending USING bloomfilter (k) WITH (fpp = 0.001, expected = 20000);
CREATE FUNCTION lost_keys() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM pending WHERE NOT bloom_index_contains('pending_k', k) $$;
CREATE FUNCTION look_back(i int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF NOT bloom_index_contains('pending_k', i - 1) THEN
		RAISE EXCEPTION 'key % is lost', i - 1;
	END IF;
	RETURN true;
EXCEPTION WHEN query_canceled OR out_of_memory THEN
	RETURN true;
END $$;
CREATE PROCEDURE fail_each_write(failing text, statement text, INOUT times int, INOUT wrong text)
LANGUAGE plpgsql AS $$
DECLARE
	n int := 1;
	failed boolean;
	lost bigint;
BEGIN
	LOOP
		TRUNCATE pending;
		COMMIT;
		INSERT INTO pending SELECT generate_series(1, 1000);
		EXECUTE format('SELECT %s(%s)', failing, n);
		BEGIN
			EXECUTE statement;
		EXCEPTION WHEN query_canceled OR out_of_memory THEN
			NULL;
		END;
		EXECUTE format('SELECT %s(0)', failing) INTO failed;
		lost := lost_keys();
		INSERT INTO pending SELECT generate_series(1001, 1100);
		lost := lost + lost_keys();
		COMMIT;
		PERFORM bloom_index_check('pending_k');
		lost := lost + lost_keys();
		IF lost > 0 THEN
			wrong := wrong || format('[%s: %s]', n, lost);
		END IF;
		EXIT WHEN NOT failed;
		times := times + 1;
		n := n + 1 + n / 20;
	END LOOP;
END $$;
});
foreach my $failing ('fail_check', 'fail_allocation')
{
	foreach my $statement ('INSERT INTO pending SELECT generate_series(1001, 6000)',
		'INSERT INTO pending SELECT i FROM generate_series(1001, 6000) i WHERE i % 16 > 0 OR look_back(i)')
	{
		($times, $wrong) = split /\|/,
		  $node->safe_psql('postgres', qq{
LOAD '$library';
SET work_mem = '64kB';
CALL fail_each_write('$failing', \$s\$$statement\$s\$, 0, '')}),
		  2;
		is($wrong, '', "$failing, no pending key is lost: $statement");
		cmp_ok($times, '>=', 4, "it fails $times times");
	}
}

# Without a subtransaction, the error takes the statement with it.
my $session = BloomTest::Session->new($node, 'postgres');
my ($before) = $session->query('SELECT content()');
foreach my $n (1 .. 10)
{
	$session->query("SELECT fail_allocation($n)");
	my (undef, $err) = $session->query(
		'UPDATE filters SET f = bloom_union(f, bloom_add(f, -1))');
	like($err, qr/53200/, "an update fails at allocation $n");
}
$session->query('SELECT fail_allocation(0)');
is(($session->query('SELECT content()'))[0], $before, 'the table is unchanged');
$session->quit;

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$started, 'the server was not restarted');
is(find_crashes($node), '', 'nothing crashed');
done_testing();
