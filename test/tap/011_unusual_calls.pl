# Calls that SQL alone does not make, by functions of test/fault/callers.c.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The extension as made by "make FAIL_ALLOC=1"
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $library;

# A server that runs, with the extension of that library and what calls it.  The
# extension is made in a session of its own: no session loads both libraries.
sub start_node
{
	my ($name) = @_;
	my $node = new_node($name);

	$node->append_conf('postgresql.conf', 'autovacuum = off');
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
	$node->safe_psql('postgres', qq{
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter';
CREATE FUNCTION set_function(function regprocedure, filter regtype, key regtype)
	RETURNS void AS '$library' LANGUAGE C STRICT;
CREATE FUNCTION call_again(filter bloom, key anyelement) RETURNS text
	AS '$library' LANGUAGE C STRICT});
	return $node;
}

#
# Filters and keys behind indirect TOAST pointers give the same answers as the
# values themselves.
#
my $node = start_node('calls');
$node->safe_psql('postgres', qq{
CREATE FUNCTION indirect(bloom) RETURNS bloom
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
CREATE FUNCTION indirect(text) RETURNS text
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
CREATE FUNCTION indirect(numeric) RETURNS numeric
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
});

#
# Filters in each way of storage, two of each.  Filters that are hardly filled
# compress.
#
$node->safe_psql('postgres', q{
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
});
is($node->safe_psql('postgres', q{
SELECT count(*), count(*) FILTER (WHERE pg_column_size(f) < 127),
	count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) BETWEEN 128 AND 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) > 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) < 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) > 2000)
FROM filters}), '14|2|2|6|2|2', 'filters are short, plain, out of line and compressed');

# In each of these, F is the filter.
my @expressions = (
	q{(SELECT string_agg((F @> i)::int::text, '') FROM generate_series(-300, 1000) i)},
	q{(SELECT count(*) FROM generate_series(1, 99) i WHERE bloom_contains_hash(F, bloom_hash(i)))},
	'bloom_contains_any(F, ARRAY[-1, -2, 5])',
	'bloom_contains_all(F, ARRAY[1, 2, 5])',
	'bloom_contains_each(F, ARRAY[-1, NULL, -3, 4, 500])',
	'bloom_new_keys(F, ARRAY[-1, -2, -3, 4, 500])',
	'bloom_add(F, -1)',
	'bloom_add_hash(F, -1)',
	'bloom_add_all(F, ARRAY[-1, -2, -3])',
	'bloom_try_add(F, -1)',
	'bloom_add(F, NULL)',
	'bloom_try_add(F, NULL)',
	'F | NULL',
	'NULL | F',
	'bloom_compact(F)',
	'F | F',
	'F & bloom_add_all(bloom_empty(), ARRAY[1, 2, -1])',
	"CASE WHEN form <> 'compressed inline' THEN bloom_intersection_cardinality(bloom_add_all(bloom_empty(), ARRAY[1, 2, -1]), F) END",
	'bloom_empty_like(F)',
	'F = F',
	'F > bloom_empty()',
	'hash_bloom(F)',
	'bloom_cardinality(F)',
	'bloom_fpp(F)',
	'bloom_info(F)',
	'F::text',
	'F::bytea',
	'(SELECT bloom_union_agg(g) FROM (VALUES (bloom_empty()), (F)) v(g))',
	'(SELECT bloom_intersection_agg(g) FROM (VALUES (bloom_empty()), (F)) v(g))');
foreach my $expression (@expressions)
{
	my $direct = $expression =~ s/\bF\b/(f::bytea::bloom)/gr;
	my $indirect = $expression =~ s/\bF\b/indirect(f)/gr;

	is($node->safe_psql('postgres', qq{
SELECT count(*), string_agg(form, ', ') FILTER (WHERE ($direct)::text IS DISTINCT FROM ($indirect)::text)
FROM filters}), '14|', "by an indirect pointer: $expression");
}

#
# Keys
#
$node->safe_psql('postgres', q{
CREATE TABLE keys AS
	SELECT i AS id, repeat('x', i * 40) AS t, (10::numeric ^ (i * 10)) / 7 AS n FROM generate_series(1, 300) i;
ALTER TABLE keys ALTER t SET STORAGE external;
INSERT INTO keys SELECT -id, repeat('y', id * 40), -n FROM keys;
});
foreach my $key ('t', 'n')
{
	is($node->safe_psql('postgres', qq{
SELECT count(*), count(*) FILTER (WHERE bloom_hash($key) <> bloom_hash(indirect($key))),
	count(*) FILTER (WHERE f @> indirect($key)),
	f = (SELECT bloom_agg(indirect($key)) FROM keys)
FROM keys, (SELECT bloom_agg($key) AS f FROM keys) AS filter GROUP BY f}),
		'600|0|600|t', "keys by an indirect pointer: $key");
}

#
# Calls through one FmgrInfo, after an error or in the next transaction, give
# right answers: what is cached in fn_extra is complete, and no stored filter
# is taken for another one.
#
$node->safe_psql('postgres', qq{
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
$node->safe_psql('postgres', q{
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
$session->query(q{SELECT set_function('bloom_contains(bloom, anyelement)', 'bloom', 'int')}
);
is( ($session->query('SELECT call_again(f, 1), call_again(f, -1) FROM stored'))[0],
	'true|false', 'a stored filter is probed');
$session->query('DELETE FROM stored');
$session->query('VACUUM stored');
$session->query(qq{
DO \$\$ BEGIN
	LOOP
		EXIT WHEN lo_create(0) = $value - 1;
	END LOOP;
	INSERT INTO stored SELECT bloom_agg(-i, 0.01, 2000) FROM generate_series(1, 2000) i;
END \$\$});
is(($session->query("SELECT DISTINCT chunk_id FROM $toast"))[0],
	$value, 'another value has its OID');
is( ($session->query('SELECT call_again(f, 1), call_again(f, -1) FROM stored'))[0],
	'false|true', 'the other filter is probed in the next transaction');
$session->quit;

$node->safe_psql('postgres', q{
-- Wrong answers, errors included
CREATE FUNCTION wrong_answers(which text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(format('[%s: %s]', side * k, answer), '' ORDER BY side, k), '')
	FROM (SELECT side, k, call_again(f, k) AS answer, bloom_contains(f::bytea::bloom, k) AS expected
		  FROM filters, unnest(ARRAY[1, 2, 5, -1, -2, -5]) k WHERE form = which) AS probed
	WHERE answer <> expected::text $$;

-- Each allocation fails in turn, with a new FmgrInfo or one that was used for
-- the other filter of this form.  So many lookups that slices are read first, and
-- then the whole value.  Pruning would allocate memory while the query is planned,
-- outside the calls.
CREATE FUNCTION fail_each(which text, probed boolean, OUT times int, OUT wrong text)
LANGUAGE plpgsql SET bloomfilter.index_pruning = off AS $$
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

		is($wrong, '', "right answers after a failed allocation: $form, $state");
		cmp_ok($times, '>=', $forms{$form}[$probed], "it fails $times times");
	}
}

#
# Damaged filters, each byte of the header in turn.  An inline one is at the
# address of those that are probed before and after it.
#
$node->safe_psql('postgres', q{
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
is($node->safe_psql('postgres', q{
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
		'true true 42804 22P02 true'), 'keys without a type');

is(find_crashes($node), '', 'nothing crashed');

#
# A caller of an index that never says that it is done: its keys are written
# before the commit, or before the transaction is prepared.
#
$node->append_conf('postgresql.conf', 'max_prepared_transactions = 1');
$node->restart;
$node->safe_psql('postgres', qq{
CREATE FUNCTION insert_key(regclass, bigint) RETURNS void AS '$library', 'insert_key' LANGUAGE C STRICT;
CREATE TABLE keys_left (id bigint);
CREATE INDEX keys_left_id ON keys_left USING bloomfilter (id) WITH (fpp = 1e-9)});
is($node->safe_psql('postgres', q{
SELECT FROM insert_key('keys_left_id', 1);
BEGIN; SELECT FROM insert_key('keys_left_id', 2); SELECT bloom_index_contains('keys_left_id', 2); COMMIT;
BEGIN; SELECT FROM insert_key('keys_left_id', 3); PREPARE TRANSACTION 'left'; COMMIT PREPARED 'left';
SELECT bloom_index_contains_each('keys_left_id', '{0,1,2,3}');
BEGIN; SELECT FROM insert_key('keys_left_id', 4); TRUNCATE keys_left; COMMIT;
BEGIN; SAVEPOINT s; SELECT FROM insert_key('keys_left_id', 5); ROLLBACK TO s; COMMIT;
CREATE INDEX keys_dropped ON keys_left USING bloomfilter (id);
BEGIN; SELECT FROM insert_key('keys_dropped', 6); DROP INDEX keys_dropped; COMMIT;
BEGIN; SELECT FROM insert_key('keys_left_id', 7); ALTER TABLE keys_left ALTER id TYPE text; COMMIT;
DROP TABLE keys_left})
	=~ s/^\n+//mgr, "t\n{f,t,t,t}", 'keys that a caller leaves are written before the commit');

# Who waits to measure an index, or for its growth, gets the lock before a large
# statement has written all of its keys, 100,000 at a time.
$node->safe_psql('postgres', qq{
CREATE FUNCTION lock_index(regclass) RETURNS void AS '$library', 'lock_index' LANGUAGE C STRICT;
CREATE TABLE many (id int);
CREATE INDEX many_id ON many USING bloomfilter (id) WITH (fpp = 1e-6, expected = 300000);
INSERT INTO many VALUES (0)});
my ($holder, $large, $waiter) =
  map { BloomTest::Session->new($node, 'postgres') } 1 .. 3;

# Wait until the session waits for the lock, or its query has ended.
sub wait_for_page_lock
{
	my ($session) = @_;
	my $waits = 0;

	$waits = $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_locks WHERE locktype = 'page' AND NOT granted AND pid = } . $session->pid)
	  until $session->ended || $waits;
	return $waits;
}

$holder->query(q{BEGIN; SELECT FROM lock_index('many_id')});
$large->send(q{SET work_mem = '64MB'; INSERT INTO many SELECT generate_series(1, 300000)});
ok(wait_for_page_lock($large), 'a large statement waits to write its keys');
$waiter->send(q{BEGIN; SELECT FROM lock_index('many_id')});
ok(wait_for_page_lock($waiter), 'another session waits behind it');
$holder->query('COMMIT');
$waiter->finish;
ok(wait_for_page_lock($large), 'the statement waits for that session in turn');
my $written = $node->safe_psql('postgres', q{
SELECT count(*) FILTER (WHERE found)
FROM unnest(bloom_index_contains_each('many_id', ARRAY(SELECT generate_series(1, 300000)))) found});
cmp_ok(abs($written - 100_000), '<', 10, "it has written $written keys of 300,000");
$waiter->query('COMMIT');
is(join('', $large->finish), '', 'the statement ends');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE NOT bloom_index_contains('many_id', id)) FROM many}),
	'0', 'all keys are found');

# Serializable: who looks up a key just before it is written comes before the
# transaction that writes it.  If it writes one that this has not found, one fails.
$holder->query(q{BEGIN; SELECT FROM lock_index('many_id')});
is(join('', $large->query(q{
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT bloom_index_contains('many_id', -1)})), 'f', 'a key is not there');
$large->send('INSERT INTO many SELECT generate_series(-200, -101)');
ok(wait_for_page_lock($large), 'the statement waits to write its keys');
is(join('', $waiter->query(q{
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT bloom_index_contains('many_id', -150); INSERT INTO many VALUES (-1)})),
	'f', 'another session looks one of them up, and writes the first');
$holder->query('COMMIT');
my @errors = ($large->finish, $large->query(q{COMMIT}));
push @errors, $waiter->query('COMMIT');
is(scalar(grep { /40001/ } @errors), 1, 'one of them fails');
$_->quit foreach $holder, $large, $waiter;

$node->stop;

#
# Aggregates whose functions are called by another aggregate, as Citus calls
# them to build a part of a filter on each server: the same filters, and no
# key that is hashed by another type or collation.
#
$node = start_node('aggregates');

# 20,000 rows in 12 shards, 8,000 distinct keys that are in several shards.
# Combine functions are those of ordinary aggregates.
$node->safe_psql('postgres', qq{
CREATE FUNCTION wrapped_transfn(internal, regprocedure, anyelement)
	RETURNS internal AS '$library' LANGUAGE C;
CREATE FUNCTION wrapped_finalfn(internal) RETURNS bytea
	AS '$library' LANGUAGE C;
CREATE AGGREGATE wrapped(regprocedure, anyelement) (SFUNC = wrapped_transfn,
	STYPE = internal, FINALFUNC = wrapped_finalfn);
CREATE AGGREGATE combine_hashes(bloom) (SFUNC = bloom_agg_hash_combinefn,
	STYPE = bloom, FINALFUNC = bloom_agg_hash_finalfn);
CREATE TABLE visits AS
	SELECT i % 12 AS shard, 'page ' || i * 7919 % 8000 AS url
	FROM generate_series(1, 20000) i;
});

# A filter that is built of all shards, and its parts
sub combined
{
	my ($combine, $transfn, $arguments) = @_;

	return "(SELECT $combine(part::bloom) FROM (SELECT wrapped("
	  . "'$transfn', $arguments) AS part FROM visits GROUP BY shard) parts)";
}

my %arguments = (
	'one argument' => ['', ''],
	'two arguments' => [', 0.001::float8', ', double precision'],
	'three arguments' =>
	  [', 0.01::float8, 10000::float8', ', double precision, double precision'],
	'four arguments' => [
		', 0.01::float8, 100000::float8, 7::bigint',
		', double precision, double precision, bigint'
	]);
foreach my $what (sort keys %arguments)
{
	my ($values, $types) = @{ $arguments{$what} };
	my $seed = $what =~ /^four/ ? ', 7' : '';
	my $row = $values eq '' ? '' : 'ROW';
	my $hashes = combined('combine_hashes',
		"bloom_agg_hash_transfn(bloom, bigint$types)",
		"$row(bloom_hash(url$seed)$values)");
	my $keys = combined('combine_hashes',
		"bloom_agg_key_transfn(bloom, bloom_key$types)", "$row(url::bloom_key$values)");

	is($node->safe_psql('postgres', qq{
SELECT ${hashes}::bytea = bloom_agg_hash(bloom_hash(url$seed)$values)::bytea,
	   ${keys}::bytea = bloom_agg(url$values)::bytea FROM visits}),
		't|t', "parts are combined to the same bytes, $what");
}

# More keys than expected: the rate is that of one server.
foreach my $expected (100, 1000, 5000)
{
	my $hashes = combined('combine_hashes',
		'bloom_agg_hash_transfn(bloom, bigint, double precision, double precision)',
		"ROW(bloom_hash(url), 0.01::float8, $expected\::float8)");
	my $keys = combined('bloom_union_agg',
		'bloom_union_agg_transfn(bloom, bloom)',
		"bloom_add(bloom_empty(0.01, $expected), url)");

	is($node->safe_psql('postgres', qq{
SET client_min_messages = error;
SELECT abs(bloom_fpp($hashes) / bloom_fpp(f) - 1) < 0.1,
	   abs(bloom_fpp($keys) / bloom_fpp(f) - 1) < 0.1,
	   abs(bloom_cardinality($hashes) / 8000.0 - 1) < 0.05,
	   (SELECT bool_and($hashes @> url) FROM visits WHERE shard = 1)
	FROM (SELECT bloom_agg_hash(bloom_hash(url), 0.01, $expected) AS f
		  FROM visits) x}), 't|t|t|t', "the rate of one server, $expected keys expected");
}
is($node->safe_psql('postgres', "SELECT "
		. combined('bloom_union_agg',
			'bloom_union_agg_transfn(bloom, bloom)',
			'bloom_add(bloom_empty(0.01, 10000), url)')
		. "::bytea = bloom_agg(url, 0.01, 10000)::bytea FROM visits"),
	't', 'a union of filters of one key keeps the key type');
is($node->safe_psql('postgres', "SELECT "
		. combined('bloom_intersection_agg',
			'bloom_intersection_agg_transfn(bloom, bloom)',
			'bloom_add(bloom_add(bloom_empty(0.01, 10000), url), text \'all\')')
		. " = bloom_add(bloom_empty(0.01, 10000), text 'all')"),
	't', 'an intersection');

# A union of filters of other sizes has the same layers.
is($node->safe_psql('postgres', q{
CREATE TABLE mixed AS
	SELECT 1 AS n, bloom_add(bloom_empty(0.01, 500), url) AS f
	FROM (SELECT DISTINCT url FROM visits LIMIT 400) x
	UNION ALL SELECT 2, bloom_agg(url, 0.01, 5000) FROM visits WHERE shard < 2;
SET client_min_messages = error;
SELECT (bloom_info(bloom_union_agg(f ORDER BY n))).layers,
	   wrapped('bloom_union_agg_transfn(bloom, bloom)', f ORDER BY n)
		= bloom_union_agg(f ORDER BY n)::bytea FROM mixed}), '2|t', 'a union of filters of different sizes');

# The type of a key that is declared as any type is not known.
my ($status, $out, $err) = $node->psql('postgres', q{
SELECT wrapped('bloom_agg_transfn(internal, anyelement)', url) FROM visits});
like(
	$err,
	qr/could not determine the data type of the key\nHINT:  Cast the key to bloom_key, or hash it/,
	'a polymorphic key is an error with a hint');

# Equal keys under a nondeterministic collation are not the same bytes.
SKIP:
{
	skip 'a nondeterministic collation needs ICU', 6
	  unless $node->safe_psql('postgres',
		"SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'") eq 't';

	$node->safe_psql('postgres', q{
CREATE COLLATION ignoring_case
	(PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);
CREATE TABLE names (name text COLLATE ignoring_case, key bloom_key COLLATE ignoring_case);
INSERT INTO names VALUES ('Ann', 'Ann'), ('ann', 'ann')});
	my $aggregate =
	  'bloom_agg_key_transfn(bloom, bloom_key, double precision)';
	foreach my $key ('name::bloom_key', 'key', '(name || name)::bloom_key')
	{
		($status, $out, $err) = $node->psql('postgres',
			"SELECT wrapped('$aggregate', ROW($key, 0.01::float8)) FROM names");
		like($err, qr/do not support nondeterministic collations/,
			"a nondeterministic collation is rejected, $key");
	}
	($status, $out, $err) = $node->psql('postgres',
		"SELECT wrapped('bloom_agg_key_transfn(bloom, bloom_key)', key) FROM names"
	);
	like($err, qr/do not support nondeterministic collations/, 'and as the only argument');
	($status, $out, $err) = $node->psql('postgres',
		"SELECT wrapped('$aggregate', r) FROM (SELECT ROW(key, 0.01::float8) AS r FROM names OFFSET 0) x"
	);
	like(
		$err,
		qr/could not determine which collation to use/, 'so is one that is not known');
	is($node->safe_psql('postgres',
			qq{SELECT wrapped('$aggregate', ROW(key COLLATE "C", 0.01::float8))::bloom @> 'Ann' FROM names}
		),
		't', 'a deterministic one is chosen');
}

$node->stop;

#
# A TOAST value is removed between two statements of a transaction, and another
# one gets its OID.  A transaction in another database keeps xmin, which does
# not keep VACUUM from it.
#
$node = start_node('toast');
$node->safe_psql('postgres', qq{
CREATE FUNCTION set_next_oid(oid) RETURNS void AS '$library' LANGUAGE C;
CREATE DATABASE other;
CREATE TABLE stored (f bloom);
INSERT INTO stored SELECT bloom_agg(i) FROM generate_series(1, 3000) i;
CREATE FUNCTION is_stored(k int) RETURNS boolean LANGUAGE plpgsql AS \$\$
DECLARE v bloom;
BEGIN SELECT f INTO v FROM stored; RETURN v @> k; END \$\$;
CREATE FUNCTION toast_oid() RETURNS oid LANGUAGE plpgsql AS \$\$
DECLARE v oid;
BEGIN
	EXECUTE format('SELECT min(chunk_id) FROM %s', reltoastrelid::regclass)
		FROM pg_class WHERE relname = 'stored' INTO v;
	RETURN v;
END \$\$;
});
my $toast_oid = $node->safe_psql('postgres', 'SELECT toast_oid()');
my $other = BloomTest::Session->new($node, 'other');
$other->query('BEGIN; CREATE TABLE t ()');
my $cached = BloomTest::Session->new($node, 'postgres');
is( ($cached->query(
			'BEGIN; SELECT count(*) FROM generate_series(1, 50) k WHERE is_stored(k)'
	))[0],
	'50', 'a stored filter is cached');
$node->safe_psql('postgres', $_)
  for 'DELETE FROM stored',
  'VACUUM (INDEX_CLEANUP on) stored',
  "SELECT set_next_oid($toast_oid); INSERT INTO stored SELECT bloom_agg(i) FROM generate_series(3001, 6000) i";
is($node->safe_psql('postgres', 'SELECT toast_oid()'), $toast_oid, 'another value has its OID');
is( ($cached->query(
			'SELECT count(*) FROM generate_series(3001, 6000) k WHERE is_stored(k)'
	))[0],
	'3000', 'the other value is found');

# So it is between two queries of a procedure, while it waits for a lock.  The
# first one leaves a snapshot of catalogs, which ends while it waits.
$node->safe_psql('postgres', q{
CREATE TABLE first_lock ();
CREATE TABLE second_lock ();
CREATE FUNCTION count_stored(first int) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	SELECT count(*) INTO n FROM generate_series(first, first + 2999) k WHERE is_stored(k);
	RETURN n || coalesce(to_regclass('missing' || md5(clock_timestamp()::text))::text, '');
END $$;
CREATE PROCEDURE look_up_twice() LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	COMMIT;
	FOR r IN SELECT set_config('found.first', count_stored(3001), false) LOOP
	END LOOP;
	LOCK TABLE first_lock;
	LOCK TABLE second_lock;
	FOR r IN SELECT set_config('found.second', count_stored(6001), false) LOOP
	END LOOP;
END $$;
CREATE PROCEDURE look_up_and_commit() LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	COMMIT;
	FOR r IN SELECT set_config('found.first', call_again(f, 6001), false) FROM stored LOOP
	END LOOP;
	COMMIT;
	LOCK TABLE first_lock;
	LOCK TABLE second_lock;
	FOR r IN SELECT set_config('found.second', call_again(f, 9001), false) FROM stored LOOP
	END LOOP;
END $$;
});
my $waits = q{SELECT count(*) = 1 FROM pg_locks WHERE relation = '%s'::regclass AND NOT granted};
my @lockers = map { BloomTest::Session->new($node, 'postgres') } 1, 2;
$cached->query('COMMIT');
$cached->query(q{SELECT set_function('bloom_contains(bloom, anyelement)', 'bloom', 'int')});

# Calls a procedure, and puts a filter of these keys in the place of the other one
# while it waits.
sub replace_meanwhile
{
	my ($procedure, $keys) = @_;

	$cached->query("CALL $procedure()");    # fills the caches of catalogs
	$lockers[0]->query('BEGIN; LOCK TABLE first_lock');
	$lockers[1]->query('BEGIN; LOCK TABLE second_lock');
	$cached->send("CALL $procedure()");
	$node->poll_query_until('postgres', sprintf($waits, 'first_lock'));
	$node->safe_psql('postgres', 'CREATE TABLE invalidating (); DROP TABLE invalidating');
	$lockers[0]->query('COMMIT');
	$node->poll_query_until('postgres', sprintf($waits, 'second_lock'));
	$toast_oid = $node->safe_psql('postgres', 'SELECT toast_oid()');
	$node->safe_psql('postgres', $_)
	  for 'DELETE FROM stored',
	  'VACUUM (INDEX_CLEANUP on, TRUNCATE off) stored',
	  "SELECT set_next_oid($toast_oid); INSERT INTO stored SELECT bloom_agg(i) FROM generate_series($keys) i";
	is($node->safe_psql('postgres', 'SELECT toast_oid()'),
		$toast_oid, "$procedure: another value has its OID");
	$lockers[1]->query('COMMIT');
	$cached->finish;
	return ($cached->query(q{SELECT current_setting('found.first'), current_setting('found.second')}
	))[0];
}
is(replace_meanwhile('look_up_twice', '6001, 9000'),
	'3000|3000', 'the other value is found in the same transaction');
$cached->query(q{SET default_transaction_isolation = 'repeatable read'});
is(replace_meanwhile('look_up_and_commit', '9001, 12000'),
	'true|true', 'the other value is found in the next transaction');
$_->quit for $cached, $other, @lockers;
is(find_crashes($node), '', 'nothing crashed');
$node->stop;

#
# Cursors of other languages and extensions, while the statement around them
# inserts rows that they see: the first of four rows opens the cursor, the second
# one has the key, and the last one reads the cursor.  Each time by another key,
# since an index keeps those that are rolled back.
#
$node = start_node('cursor');
$node->safe_psql('postgres', qq{
CREATE FUNCTION open_cursor(name text, query text) RETURNS void AS '$library' LANGUAGE C;
CREATE TABLE days (day int, id bigint, v text) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (1) TO (2);
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (2) TO (3);
CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM (3) TO (4);
CREATE INDEX ON days USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO days SELECT 1 + i % 3, i FROM generate_series(1, 30000) i;
CREATE TABLE one (id bigint, v text);
CREATE INDEX ON one USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO one SELECT i FROM generate_series(1, 30000) i;
ANALYZE days, one;
CREATE FUNCTION step(query text, first text, last text, i int) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	found text := 'row ' || i;
BEGIN
	IF i = 1 THEN
		PERFORM open_cursor('c', query);
		EXECUTE first || ' c';
	ELSIF i = 4 THEN
		EXECUTE last || ' c' INTO found;
	END IF;
	RETURN found;
END \$\$;
});
my $key = 50000;

foreach my $case (
	[ 'MOVE 0', 'FETCH', 'SELECT v FROM days WHERE id = %s' ],
	[ 'MOVE 0', 'FETCH', 'SELECT v FROM days WHERE id = ANY (ARRAY[%s, -1])' ],
	[ 'MOVE 1', 'FETCH', 'SELECT v FROM days WHERE id IN (7, %s)' ],
	[ 'MOVE 0', 'FETCH', 'SELECT v FROM days WHERE id = %s FOR UPDATE' ],
	[ 'MOVE 0', 'FETCH', 'SELECT v FROM generate_series(1, 1) LEFT JOIN days ON id = %s' ],
	[ 'MOVE 0', 'FETCH', 'SELECT v FROM one WHERE id = %s' ],
	[ 'MOVE ALL', 'FETCH BACKWARD 1 FROM', 'SELECT v FROM days WHERE id IN (7, %s)' ])
{
	my ($first, $last, $query) = @$case;
	my ($table) = $query =~ /(one)/;

	$table = $table ? 'one (id, v) SELECT' : 'days SELECT 3,';
	foreach my $pruning ('off', 'on')
	{
		my $asked = sprintf($query, ++$key);

		is($node->safe_psql('postgres', qq{
LOAD '$library';
SET bloomfilter.index_pruning = $pruning;
BEGIN;
INSERT INTO $table CASE i WHEN 2 THEN $key ELSE i END, step('$asked', '$first', '$last', i)
	FROM generate_series(1, 4) i RETURNING v;
}), "row 1\nrow 2\nrow 3\nrow 2", "pruning $pruning: $first, $last: $query");
	}
}
is(find_crashes($node), '', 'nothing crashed');
$node->stop;

done_testing();
