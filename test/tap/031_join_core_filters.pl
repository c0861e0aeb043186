# Join filters of a later PostgreSQL: those of this extension stay off where it
# pushes its own down to scans, and not where these stay within the join.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The extension as made by "make FAIL_ALLOC=1", see test/fault/core_setting.c
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $library;

my $node = new_node('main');
$node->start;
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION bloomfilter;
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter'});
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION define_core_setting(text) RETURNS void AS '$library' LANGUAGE C;
CREATE TABLE facts AS SELECT i % 1000 AS k FROM generate_series(1, 20000) i;
CREATE TABLE dims AS SELECT i AS k FROM generate_series(1, 10) i;
ANALYZE facts, dims});

# Does a join have a filter in a session that has these settings?
sub has_filter
{
	my @settings = @_;
	my $define = join '', map { "SELECT define_core_setting('$_');" } @settings;

	return $node->safe_psql('postgres',
		"LOAD '$library'; $define SET bloomfilter.join_filters = force;"
		  . 'EXPLAIN SELECT FROM facts JOIN dims USING (k)') =~
	  /bloom_join_probe/ ? 1 : 0;
}

is(has_filter(), 1, 'without settings of PostgreSQL');
is(has_filter('enable_hashjoin_bloom'), 1, 'a filter within the join');
is( has_filter('enable_hashjoin_bloom', 'bloom_filter_pushdown_threshold'),
	0, 'a filter that is pushed down');

$node->stop;
done_testing();
