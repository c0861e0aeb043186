# Calls through one FmgrInfo, after an error or in the next transaction, give
# right answers: what is cached in fn_extra is complete, and no stored filter
# is taken for another one.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The extension as made by "make FAIL_ALLOC=1", see test/fault/callers.c
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $library;

my $node = new_node('main');
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;

# In a session of its own: no session loads both libraries.
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
$node->safe_psql(
	'postgres', qq{
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter';
CREATE FUNCTION set_function(function regprocedure, filter regtype, key regtype)
	RETURNS void AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION call_again(filter bloom, key anyelement) RETURNS text
	AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION call_again(filter bloom, key bloom_key) RETURNS text
	AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION fail_allocation(n bigint) RETURNS boolean
	AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION forge(bytea) RETURNS bloom
	LANGUAGE internal IMMUTABLE STRICT AS 'byteasend';
});

#
# Transactions.  The OID of a TOAST value that is gone can be that of another
# value as soon as the counter of OIDs wraps, so the TOAST pointer is the same.
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE stored (f bloom);
INSERT INTO stored SELECT bloom_agg(i, 0.01, 2000) FROM generate_series(1, 2000) i;
});
my $toast = $node->safe_psql('postgres',
	q{SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'stored'::regclass}
);
my $value =
  $node->safe_psql('postgres', "SELECT DISTINCT chunk_id FROM $toast");
$node->stop;
command_ok(
	[ 'pg_resetwal', '--next-oid=4294967000', '-D', $node->data_dir ],
	'the counter of OIDs is about to wrap');
$node->start;

my $session = BloomTest::Session->new($node, 'postgres');
$session->query(
	q{SELECT set_function('bloom_contains(bloom, anyelement)', 'bloom', 'int')}
);
is( ($session->query('SELECT call_again(f, 1), call_again(f, -1) FROM stored'))[0],
	'true|false',
	'a stored filter is probed');
$session->query('DELETE FROM stored');
$session->query('VACUUM stored');
$session->query(
	qq{
DO \$\$ BEGIN
	LOOP
		EXIT WHEN lo_create(0) = $value - 1;
	END LOOP;
	INSERT INTO stored SELECT bloom_agg(-i, 0.01, 2000) FROM generate_series(1, 2000) i;
END \$\$});
is(($session->query("SELECT DISTINCT chunk_id FROM $toast"))[0],
	$value, 'another value has its OID');
is( ($session->query('SELECT call_again(f, 1), call_again(f, -1) FROM stored'))[0],
	'false|true',
	'the other filter is probed in the next transaction');
$session->quit;

#
# Filters in each way of storage, two of each.  Filters that are hardly filled
# compress.
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE plain (form text, side int, f bloom);
CREATE TABLE compressed (LIKE plain);
ALTER TABLE compressed ALTER f SET STORAGE extended;
INSERT INTO plain SELECT form, side, f
	FROM (VALUES (1), (-1)) AS sides(side),
		LATERAL (
			SELECT 'short', bloom_agg(side * i) FROM generate_series(1, 5) i
			UNION ALL
			SELECT 'inline', bloom_agg(side * i, 0.1, 1000) FROM generate_series(1, 1000) i
			UNION ALL
			SELECT 'small', bloom_agg(side * i, 0.01, 2000) FROM generate_series(1, 2000) i
			UNION ALL
			SELECT 'sliced', bloom_agg(side * i, 0.01, 12000) FROM generate_series(1, 12000) i
			UNION ALL
			SELECT 'list', bloom_agg(side * i, 1e-9, 3000) FROM generate_series(1, 2000) i
		) AS filters(form, f);
INSERT INTO compressed
	SELECT 'compressed', side,
		bloom_agg(side * i, 0.1, 60000) | bloom_agg(side * i) FILTER (WHERE i <= 100)
	FROM (VALUES (1), (-1)) AS sides(side), generate_series(1, 6000) i GROUP BY side;
INSERT INTO compressed
	SELECT 'compressed inline', side,
		bloom_agg(side * i, 0.1, 12000) & bloom_agg(-side * i, 0.1, 12000)
	FROM (VALUES (1), (-1)) AS sides(side), generate_series(1, 1000) i GROUP BY side;
CREATE VIEW filters AS SELECT * FROM plain UNION ALL SELECT * FROM compressed;

-- Wrong answers, errors included
CREATE FUNCTION wrong_answers(which text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(format('[%s: %s]', side * k, answer), '' ORDER BY side, k), '')
	FROM (SELECT side, k, call_again(f, k) AS answer, bloom_contains(f::bytea::bloom, k) AS expected
		  FROM filters, unnest(ARRAY[1, 2, 5, -1, -2, -5]) k WHERE form = which) AS probed
	WHERE answer <> expected::text $$;

-- Each allocation fails in turn, with a new FmgrInfo or one that was used for
-- the other filter of this form.  So many lookups that slices are read first, and
-- then the whole value.
CREATE FUNCTION fail_each(which text, probed boolean, OUT times int, OUT wrong text)
LANGUAGE plpgsql AS $$
DECLARE
	errors text;
BEGIN
	times := 0;
	wrong := '';
	LOOP
		PERFORM set_function('bloom_contains(bloom, anyelement)', 'bloom', 'int');
		IF probed THEN
			PERFORM call_again(f, k) FROM filters, generate_series(1, 10) k
				WHERE form = which AND side = 1;
		END IF;
		PERFORM fail_allocation(times + 1);
		SELECT string_agg(answer, ',') FILTER (WHERE answer NOT IN ('true', 'false')) INTO errors
			FROM filters, generate_series(1, 40) k, call_again(f, -k) AS answer
			WHERE form = which AND side = -1;
		EXIT WHEN NOT fail_allocation(0);
		times := times + 1;
		IF errors IS DISTINCT FROM '53200' THEN
			wrong := wrong || format('[%s: %s]', times, errors);
		END IF;
		wrong := wrong || wrong_answers(which);
	END LOOP;
	wrong := wrong || wrong_answers(which);
END $$;
});

# How often it fails at least, with a new FmgrInfo and with a used one.  The two
# filters that are compressed in their rows are the same.
my %forms = (
	'short' => [ 3, 0 ],
	'inline' => [ 3, 0 ],
	'small' => [ 4, 1 ],
	'sliced' => [ 6, 3 ],
	'list' => [ 6, 3 ],
	'compressed' => [ 4, 1 ],
	'compressed inline' => [ 4, 0 ]);
foreach my $form (sort keys %forms)
{
	foreach my $probed (0, 1)
	{
		my ($times, $wrong) = split /\|/,
		  $node->safe_psql('postgres',
			"SELECT * FROM fail_each('$form', ${probed}::boolean)"), 2;
		my $state = $probed ? 'used before' : 'new';

		is($wrong, '',
			"right answers after a failed allocation: $form, $state");
		cmp_ok($times, '>=', $forms{$form}[$probed], "it fails $times times");
	}
}

#
# Damaged filters, each byte of the header in turn.  An inline one is at the
# address of those that are probed before and after it.
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE damaged (form text, at int, byte int, f bloom);
INSERT INTO damaged
	SELECT form, at, byte, forge(set_byte(f::bytea, at, byte))
	FROM plain, generate_series(0, 75) at, unnest(ARRAY[0, 1, 255]) byte
	WHERE side = -1;
CREATE FUNCTION probe_damaged(which text, OUT times int, OUT wrong text)
LANGUAGE plpgsql AS $$
DECLARE
	i int;
	j int;
	answer text;
BEGIN
	times := 0;
	wrong := '';
	FOR i, j IN SELECT at, byte FROM damaged WHERE form = which LOOP
		PERFORM set_function('bloom_contains(bloom, anyelement)', 'bloom', 'int');
		PERFORM call_again(f, 1) FROM filters WHERE form = which AND side = 1;
		SELECT call_again(f, -1) INTO answer FROM damaged WHERE form = which AND at = i AND byte = j;
		CONTINUE WHEN answer IN ('true', 'false');
		times := times + 1;
		IF answer NOT IN ('XX001', '42804') THEN
			wrong := wrong || format('[byte %s = %s: %s]', i, j, answer);
		END IF;
		wrong := wrong || wrong_answers(which);
	END LOOP;
END $$;
});
foreach my $form ('short', 'inline', 'small', 'sliced', 'list')
{
	my ($times, $wrong) = split /\|/,
	  $node->safe_psql('postgres', "SELECT * FROM probe_damaged('$form')"), 2;

	is($wrong, '', "right answers after a damaged filter: $form");
	cmp_ok($times, '>=', 50, "$times of them are rejected");
}

#
# Keys without a type are read as the key type of each filter, which may fail.
#
is( $node->safe_psql(
		'postgres', q{
SELECT set_function('bloom_contains(bloom, bloom_key)', 'bloom', 'bloom_key');
WITH typed(f) AS MATERIALIZED (
	VALUES (bloom_add(bloom_empty(), 5)), (bloom_add(bloom_empty(), '5'::text)),
		(bloom_add(bloom_empty(), ARRAY[5])), (bloom_add(bloom_empty(), true)),
		(bloom_add(bloom_empty(), 5.0)))
SELECT string_agg(call_again(f, '5'), ' ') || ' ' || string_agg(call_again(f, '{5}'), ' ') || ' '
	|| string_agg(call_again(f, '6'), ' ') || ' ' || string_agg(call_again(f, '5'), ' ')
FROM typed, generate_series(1, 2) turn}) =~ s/^\n//r,
	join(' ',
		map { "$_ $_" }
		  'true true 42804 22P02 true',
		'22P02 false 42804 22P02 22P02',
		'false false 42804 22P02 false',
		'true true 42804 22P02 true'),
	'keys without a type');

is(find_crashes($node), '', 'nothing crashed');
done_testing();
