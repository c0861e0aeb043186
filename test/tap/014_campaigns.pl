# The recipe for who has taken part in which campaign (demo/recipes/
# registered.sql): of many requests at the same time, one for each user and
# campaign wins.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('main');
$node->start;
$node->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1',
		'-d', $node->connstr('postgres'),
		'-f', "$FindBin::RealBin/../../demo/recipes/registered.sql"
	],
	'the recipe runs');
$node->safe_psql(
	'postgres', q{
UPDATE campaigns SET taken = bloom_empty(1e-6);
CREATE TABLE won (campaign int, who bigint);
});

# Few campaigns and users, so that clients meet.
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file(
	"$dir/take_part.sql", q{
\set campaign random(1, 5)
\set who random(1, 100)
BEGIN;
SELECT take_part(:campaign, :who) AS won \gset
\if :won
INSERT INTO won VALUES (:campaign, :who);
\endif
COMMIT;
});
$node->command_ok(
	[
		'pgbench', '--no-vacuum', '--random-seed=1', '--client=16',
		'--transactions=250', '--host', $node->host, '--port', $node->port,
		"--file=$dir/take_part.sql", 'postgres'
	],
	'16 clients');
my ($wins, $winners, $found) = split /\|/,
  $node->safe_psql(
	'postgres', q{
SELECT count(*), count(DISTINCT (campaign, who)),
	   count(*) FILTER (WHERE taken @> who)
	FROM won JOIN campaigns ON id = campaign});
is($wins, $winners, 'nobody wins twice');
is($found, $wins, 'and whoever won is recorded');
is( $node->safe_psql(
		'postgres', 'SELECT sum(bloom_cardinality(taken)) FROM campaigns'),
	$winners,
	'nobody else is');
cmp_ok($winners, '>', 490, 'nearly all of 500 won once');

is(find_crashes($node), '', 'nothing crashed');
done_testing();
