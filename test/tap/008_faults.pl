# A statement ends early, because its process or the server is killed or it is
# cancelled: stored filters keep their bytes, and can be extended as before.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;

# Filters of all forms: inline lists, lists and bits out of line, layers.
$node->safe_psql(
	'postgres', q{
SET client_min_messages = error;	-- one filter warns that it had to grow
CREATE EXTENSION bloomfilter;
CREATE EXTENSION amcheck;
CREATE TABLE key AS
	SELECT id, id || ' key ' || i AS k
	FROM generate_series(1, 20) id, generate_series(1, 150 * id) i;
CREATE TABLE filter (id int PRIMARY KEY, f bloom NOT NULL, note text);
INSERT INTO filter
	SELECT id, CASE id % 3 WHEN 0 THEN bloom_agg(k)
						   WHEN 1 THEN bloom_agg(k, 1e-4, 3000)
						   ELSE bloom_agg(k, 0.01, 50) END
	FROM key GROUP BY id ORDER BY id;
CREATE INDEX ON filter (bloom_cardinality(f));
CREATE SEQUENCE progress;
});
is( $node->safe_psql(
		'postgres', q{
SELECT count(DISTINCT (bloom_info(f)).layers) > 2, min(pg_column_size(f)) < 2000,
	   max(pg_column_size(f)) > 7000 FROM filter}),
	't|t|t',
	'filters of different forms and sizes');

my $fingerprint = q{
SELECT id, md5(f::bytea), note FROM filter ORDER BY id};
my $lost = q{
SELECT count(*), count(*) FILTER (WHERE NOT f @> k)
	FROM key JOIN filter USING (id)};

# A file to copy from: one row, over and over.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $endless = "$dir/endless";
$node->safe_psql('postgres',
	"\\copy (SELECT 1000, f FROM filter WHERE id = 20) to '$endless.row'");
$node->safe_psql('postgres', 'CREATE TABLE copied (id int, f bloom)');

# Statements that do not end by themselves.  Each counts what it has done; the
# number tells when it is in the middle.
my %statements = (
	'a union into all rows' => [
		18, q{
WITH other AS MATERIALIZED (
	SELECT bloom_agg(i::text, 1e-4, 50000) AS f FROM generate_series(1, 50000) i)
UPDATE filter
	SET f = filter.f | bloom_add(filter.f, 'other') | other.f,
		note = CASE WHEN nextval('progress') < 18 THEN 'changed'
					ELSE pg_sleep(3600)::text END
	FROM other}
	],
	'bloom_agg' => [
		200_000, q{
INSERT INTO filter
	SELECT 21, bloom_agg(i)
	FROM (SELECT nextval('progress') AS i, generate_series(1, 2000000000)) AS i}
	],
	'bloom_agg of many groups' => [
		100_000, q{
SET LOCAL work_mem = '64kB';
INSERT INTO filter
	SELECT 1000 + g, bloom_agg(i)
	FROM (SELECT nextval('progress') AS i, generate_series(1, 2000000000) % 5000
		AS g) AS i GROUP BY g}
	],
	'COPY' => [
		300, qq{
COPY copied FROM PROGRAM 'while cat $endless.row; do :; done'
	WHERE nextval('progress') > 0}
	],
	'bloom_add' => [
		500, q{
DO $$
BEGIN
	LOOP
		UPDATE filter SET f = bloom_add(f, nextval('progress')::text);
	END LOOP;
END $$}
	]);

# What ends them, given the session and another one, and the SQLSTATE if the
# session is still there to tell.
my %faults = (
	'kill -9' => [
		sub { kill 'KILL', $_[0]->pid; }
	],
	'immediate stop' => [
		sub { $node->stop('immediate'); $node->start; }
	],
	'pg_terminate_backend' => [
		sub { $_[1]->query('SELECT pg_terminate_backend(' . $_[0]->pid . ')') }
	],
	'pg_cancel_backend' => [
		sub { $_[1]->query('SELECT pg_cancel_backend(' . $_[0]->pid . ')') },
		'57014'
	],
	'statement_timeout' => [ undef, '57014' ]);

my $expected = $node->safe_psql('postgres', $fingerprint);
my ($nkeys) = split /\|/, $node->safe_psql('postgres', $lost);
my $kills = 0;

foreach my $fault (sort keys %faults)
{
	foreach my $statement (sort keys %statements)
	{
		my ($act, $state) = @{ $faults{$fault} };
		my ($middle, $query) = @{ $statements{$statement} };
		my $what = "$fault during $statement";
		my $session = BloomTest::Session->new($node, 'postgres');
		my $watcher = BloomTest::Session->new($node, 'postgres');

		$watcher->query('ALTER SEQUENCE progress RESTART');
		my $timeout = $act ? 0 : '2s';
		$session->send("BEGIN; SET LOCAL statement_timeout = '$timeout'; $query");
		my $progress = 0;
		while ($progress < $middle && !$session->ended)
		{
			usleep(10_000);
			($progress) = $watcher->query('SELECT last_value FROM progress');
		}
		cmp_ok($progress, '>=', $act ? $middle : 1, "$what: in the middle");
		$act->($session, $watcher) if $act;
		if ($state)
		{
			my ($out, $err) = $session->finish;
			like($err, qr/ERROR:  $state/, "$what: the error is $state");
			($out, $err) = $session->query("ROLLBACK; $lost");
			is("$out$err", "$nkeys|0", "$what: the same session finds every key");
			$session->quit;
			$watcher->quit;
		}
		else
		{
			$_->abandon foreach $session, $watcher;
			$kills++ if $fault eq 'kill -9';
			$node->poll_query_until('postgres',
				'SELECT count(*) = 0 FROM pg_stat_activity WHERE '
				  . "query LIKE '%progress%' AND pid <> pg_backend_pid()")
			  or die "$what: the server did not come back";
		}
		is($node->safe_psql('postgres', $fingerprint),
			$expected, "$what: filters are the same");
		is($node->safe_psql('postgres', "$lost; SELECT count(*) FROM copied"),
			"$nkeys|0\n0", "$what: every key is found");
	}

	# The next fault finds other filters.
	$node->safe_psql(
		'postgres', qq{
INSERT INTO key SELECT id, '$fault ' || id FROM filter;
UPDATE filter SET f = bloom_add(f, '$fault ' || id), note = '$fault'});
	$nkeys += 20;
	my $before = $expected;
	$expected = $node->safe_psql('postgres', $fingerprint);
	isnt($expected, $before, "after $fault: filters can be extended");
	is($node->safe_psql('postgres', $lost),
		"$nkeys|0", "after $fault: every key is found");
}

$node->command_ok(
	[ 'pg_amcheck', '--heapallindexed', 'postgres' ],
	'pg_amcheck finds nothing');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
is(scalar(() = $log =~ /terminated by signal 9/g),
	$kills, 'processes that were killed are in the log');
unlike($log, qr/terminated by signal (?!9)|PANIC:|TRAP:/,
	'nothing else crashed');
done_testing();
