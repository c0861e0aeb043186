# Join filters and foreign partitions: a server is asked only for partitions
# that may have a match, whether Append waits for each scan or asks several at
# once.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $here = new_node('coordinator');
my $remote = new_node('remote');
$remote->append_conf('postgresql.conf', 'log_statement = all');
$_->start for $here, $remote;

if (!$here->safe_psql(
		'postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}
	))
{
	plan skip_all => 'the module postgres_fdw is not installed';
}

# Eight partitions of 1,000 rows each, on the other server.  To read the keys
# costs more than to start a remote query, so PostgreSQL would begin with the
# latter.
my ($host, $port) = ($remote->host, $remote->port);
$here->safe_psql(
	'postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE EXTENSION postgres_fdw;
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres');
CREATE USER MAPPING FOR PUBLIC SERVER remote;
CREATE TABLE facts (k int, g int) PARTITION BY RANGE (k);
CREATE TABLE keys AS
	SELECT i AS k, i / 1000 AS part, (i / 1000)::numeric AS part_number, repeat('x', 200) AS filler
	FROM generate_series(0, 7999) i;
CREATE TABLE groups AS SELECT i AS g, i % 2 AS odd FROM generate_series(0, 9) i;
ANALYZE keys, groups;
});
foreach my $part (0 .. 7)
{
	my ($from, $to) = (1000 * $part, 1000 * ($part + 1));

	$remote->safe_psql('postgres',
		"CREATE TABLE facts_$part AS SELECT i AS k, i % 10 AS g FROM generate_series($from, $to - 1) i"
	);
	$here->safe_psql(
		'postgres', qq{
CREATE FOREIGN TABLE facts_$part PARTITION OF facts FOR VALUES FROM ($from) TO ($to) SERVER remote;
ANALYZE facts_$part;
});
}

# Returns the rows of a query, and how many scans the other server executed
sub run_query
{
	my ($query, $mode) = @_;
	my $offset = -s $remote->logfile;
	my $rows = $here->safe_psql(
		'postgres', qq{
LOAD 'bloomfilter';
SET bloomfilter.join_filters = $mode;
SET enable_nestloop = off;
SET enable_mergejoin = off;
$query});
	my $log = slurp_file($remote->logfile, $offset);
	my $scans = () = $log =~ /DECLARE c\d+ CURSOR/g;

	return ($rows, $scans);
}

sub check_scans
{
	my ($query, $expected, $name) = @_;
	my ($rows) = run_query($query, 'off');
	my ($filtered, $scans) = run_query($query, 'force');

	is($filtered, $rows, "$name: same result");
	is($scans, $expected, "$name: scans of the other server");
}

foreach my $async ('false', 'true')
{
	$here->safe_psql('postgres',
		"ALTER SERVER remote OPTIONS ("
		  . ($async eq 'true' ? 'SET' : 'ADD')
		  . " async_capable '$async')");
	my $form = $async eq 'true' ? 'asynchronous' : 'one after the other';
	my ($rows, $scans) = run_query(
		'SELECT count(*) FROM facts JOIN keys USING (k) WHERE part = 5',
		'off');
	is("$rows, $scans", '1000, 8', "$form: without filters all are asked");

	check_scans(
		'SELECT count(*), sum(k) FROM facts JOIN keys USING (k) WHERE part = 5',
		1, "$form, one partition of eight");
	check_scans(
		'SELECT count(*), sum(k) FROM facts JOIN keys USING (k) WHERE part = 0',
		1, "$form, the first one");
	check_scans(
		'SELECT count(*), sum(k) FROM facts JOIN keys USING (k) WHERE part = 9',
		0, "$form, none");
	check_scans(
		'SELECT count(*), sum(k) FROM facts JOIN groups USING (g) JOIN keys USING (k) WHERE part = 5 AND odd = 0',
		1, "$form, below another join");
	check_scans(
		q{SELECT x, (SELECT sum(g) FROM facts JOIN keys USING (k) WHERE part IN (3, 4) AND g > x) FROM generate_series(1, 3) x},
		6, "$form, repeatedly");

	# Another partition's server is asked first where the inner side may fail
	check_scans(
		'SELECT count(*), sum(k) FROM facts JOIN keys USING (k) WHERE part_number = 5',
		$async eq 'true' ? 8 : 2,
		"$form, by a condition that may fail");
	check_scans(
		'SELECT count(*) FROM facts JOIN keys USING (k) WHERE g * 2 < 0 AND part = 0 AND 1 / part_number > 0',
		8,
		"$form, no outer row and an error in the inner side");
}

done_testing();
