# Every long operation can be cancelled, ends soon, and leaves the session
# usable.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;
use Time::HiRes qw(time);

my $node = new_node('main');
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE SEQUENCE started;
CREATE SEQUENCE done;
});

my $session = BloomTest::Session->new($node, 'postgres');

# After an error the session answers, and keeps no memory.
my $allocated =
  'SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts';

sub check_session
{
	my ($what, $before) = @_;

	my ($out, $err) = $session->query(q{SELECT bloom_add(bloom_empty(), 'key') @> 'key'});
	is("$out$err", 't', "$what: the session lives on");
	my ($after) = $session->query($allocated);
	cmp_ok($after - $before, '<', 1024, "$what: its memory is free again");
	return;
}

check_session('first of all', 1024 * 1024);
my ($before) = $session->query($allocated);

#
# In the middle of many rows
#
foreach my $agg ('bloom_agg(i)', 'bloom_agg(i::text, 0.001, 1000000)')
{
	my $start = time;
	my ($out, $err) = $session->query(qq{
SET statement_timeout = '500ms';
SELECT $agg FROM (SELECT generate_series(1, 1000000000) AS i) AS key;
RESET statement_timeout});
	my $seconds = time - $start;

	is($out, '', "statement_timeout within $agg");
	like($err, qr/ERROR:  57014/, 'the error is 57014');
	cmp_ok($seconds, '<', 10, 'it comes soon');
	check_session($agg, $before);
}

#
# In the middle of one call.  A request to cancel is looked for by functions
# and between statements, but not between the parts of an expression: if it
# goes on behind the call, the call has not noticed.
#
# $prepare makes what $call works on, in memory; $call is a number.
sub cancel_call
{
	my ($what, $declare, $prepare, $call) = @_;
	my $block = qq{
DO \$\$
DECLARE
	$declare
	n bigint;
BEGIN
	$prepare
	PERFORM nextval('started');
	n := $call + nextval('done');
END \$\$};
	my $watcher = BloomTest::Session->new($node, 'postgres');

	# On a busy machine the call may end before the request arrives.
	my ($err, $is_done, $seconds);
	foreach my $attempt (1 .. 5)
	{
		$watcher->query(
			'ALTER SEQUENCE started RESTART; ALTER SEQUENCE done RESTART');
		$session->send($block);
		my $cancelled;
		(undef, $err) = $session->finish(
			sub {
				return if $cancelled;
				my ($is_called) =
				  $watcher->query('SELECT is_called FROM started');
				return if $is_called eq 'f';
				$watcher->query(
					'SELECT pg_cancel_backend(' . $session->pid . ')');
				$cancelled = time;
			});
		$seconds = time - ($cancelled // 0);
		($is_done) = $watcher->query('SELECT is_called FROM done');
		last if $is_done eq 'f';
	}
	like($err, qr/ERROR:  57014/, "$what: cancelled with 57014");
	is($is_done, 'f', "$what: cancelled within the call");
	note sprintf '%s: %.0f ms', $what, 1000 * $seconds;
	$watcher->quit;
	check_session($what, $before);
	return;
}

# Two lists of four million hashes, which make a list of eight million.  Four
# times, so that the cancel request comes in time on a busy machine, too.
cancel_call(
	'union of two large filters',
	'a bloom; b bloom;',
	q{
	SELECT bloom_agg(i, 1e-9, 12000000) | bloom_empty(1e-9, 12000000) INTO a
		FROM (SELECT generate_series(1, 4000000) AS i) AS key;
	SELECT bloom_agg(-i, 1e-9, 12000000) | bloom_empty(1e-9, 12000000) INTO b
		FROM (SELECT generate_series(1, 4000000) AS i) AS key;
},
	join(' + ', ('bloom_cardinality(a | b)') x 4));

# Two small filters, of which the first is full and the second expects many
# keys: their union gets a layer for as many as the first one could have.
my ($sizes) = $session->query(q{
WITH filters AS MATERIALIZED (
	SELECT (SELECT bloom_agg(i, 0.01, 1000)
			  FROM generate_series(1, 1000) i) AS a,
		bloom_add_all(bloom_empty(0.01, 240000000),
			ARRAY(SELECT generate_series(5001, 5200))) AS b)
SELECT (bloom_info(a)).bytes, (bloom_info(b)).bytes, (bloom_info(a | b)).bytes
  FROM filters});
is($sizes, '1360|1648|24688', 'a union of small filters is small');

#
# Text is read and written in chunks, with a check for interrupts between them.
# The session makes this one itself, before the call, so that it is there when
# the first chunk begins, however fast the machine.
#
sub cancel_itself
{
	my ($what, $call, $is_done) = @_;

	$session->query('ALTER SEQUENCE done RESTART');
	my (undef, $err) = $session->query(qq{
DO \$\$
DECLARE
	f bloom;
	t text;
	n bigint;
BEGIN
	SELECT bloom_agg(i, 1e-9, 300000) INTO f FROM generate_series(1, 200000) i;
	t := f;
	n := CASE WHEN pg_cancel_backend(pg_backend_pid()) THEN $call END +
		nextval('done');
END \$\$});
	like($err, qr/ERROR:  57014/, "$what: cancelled with 57014");
	is(($session->query('SELECT is_called FROM done'))[0],
		$is_done, "$what: cancelled within the call, or behind it");
	check_session($what, $before);
	return;
}

cancel_itself('text output', 'octet_length(f::text)', 'f');
cancel_itself('text input', 'bloom_cardinality(t::bloom)', 'f');
cancel_itself('neither', 'octet_length(t) + bloom_cardinality(f)', 't');

#
# A request that comes in the middle does not wait for the end.  Times vary on a
# busy machine, so one attempt of five is enough.
#
sub cancel_in_the_middle
{
	my ($what, $query) = @_;
	my ($share, $err) = (1, '');

	foreach my $attempt (1 .. 5)
	{
		my $start = time;
		$session->query($query);
		my $whole = time - $start;

		$session->query(sprintf 'SET statement_timeout = %d', 500 * $whole);
		$start = time;
		(undef, $err) = $session->query($query);
		$share = (time - $start) / $whole;
		$session->query('RESET statement_timeout');
		note sprintf '%s: cancelled after %.2f of %.2f s', $what,
		  $share * $whole, $whole;
		last if $share < 0.7 && $err =~ /57014/;
	}
	like($err, qr/ERROR:  57014/, "$what: cancelled with 57014");
	cmp_ok($share, '<', 0.7, "$what: cancelled in the middle");
	return;
}

# Sorting takes most of the time of bloom_new_keys on a large array.
$session->query(
	'CREATE TABLE large AS SELECT array_agg(i) AS keys FROM generate_series(1, 5000000) i'
);
cancel_in_the_middle('sorting',
	'SELECT cardinality(bloom_new_keys(bloom_empty(), keys)) FROM large');
$session->query('DROP TABLE large');
check_session('sorting', $before);

#
# Beneath many savepoints, it takes long to find out whether a pending key is
# still there.  PostgreSQL keeps the memory of savepoints for the next ones, so
# this comes last.
#
$session->query(q{
CREATE TABLE nested (k int);
CREATE INDEX nested_k ON nested USING bloomfilter (k) WITH (expected = 2000000);
SET work_mem = '512MB';
BEGIN;
SAVEPOINT s;
INSERT INTO nested SELECT generate_series(1, 1000000)}
	  . '; SAVEPOINT s' x 5000);
foreach my $query (
	q{SELECT bloom_index_contains_each('nested_k', keys)
		FROM (SELECT array_agg(i) AS keys FROM generate_series(1, 1000000) i) k, generate_series(1, 1000)},
	q{SELECT bloom_index_filter('nested_k') FROM generate_series(1, 1000)})
{
	my $start = time;
	my ($out, $err) = $session->query(
		"SAVEPOINT q; SET LOCAL statement_timeout = '500ms'; $query");
	my $seconds = time - $start;

	is($out, '', 'statement_timeout beneath savepoints');
	like($err, qr/ERROR:  57014/, 'the error is 57014');
	cmp_ok($seconds, '<', 10, 'it comes soon');
	$session->query('ROLLBACK TO q');
}
$session->query('ROLLBACK; RESET work_mem; DROP TABLE nested');

is(find_crashes($node), '', 'nothing crashed');
done_testing();
