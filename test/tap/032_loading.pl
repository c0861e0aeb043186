# How sessions come to load the library: an ordinary user by
# local_preload_libraries, and by calling a function, which tells of settings
# that do not exist.

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
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION bloomfilter;
CREATE ROLE ordinary LOGIN;
CREATE TABLE large AS SELECT i % 20000 AS k FROM generate_series(1, 50000) i;
CREATE TABLE small AS SELECT i AS k, i % 200 AS region FROM generate_series(1, 20000) i;
ANALYZE large, small;
GRANT SELECT ON large, small TO ordinary});

sub as_ordinary
{
	my ($query) = @_;
	my ($rc, $out, $err) =
	  $node->psql('postgres', $query, extra_params => [ '-U', 'ordinary' ]);

	return ($out, $err);
}

my $explain = q{
SET max_parallel_workers_per_gather = 0;
SET bloomfilter.join_filters = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM large JOIN small USING (k) WHERE region = 7};

my ($out, $err) = as_ordinary($explain);
unlike($out, qr/Bloom Filter/, 'a setting alone does not load the library');
is($err, '', 'nor does it warn');
my $active = q{
SET bloomfilter.join_filters = on;
SELECT setting FROM pg_settings WHERE name = 'bloomfilter.join_filters'};
is(join('', as_ordinary($active)), '', 'nor is it in pg_settings');

as_ordinary(q{ALTER ROLE ordinary SET local_preload_libraries = 'bloomfilter'});
($out, $err) = as_ordinary($explain);
like($out, qr/Bloom Filter/, 'local_preload_libraries of a role does');
is($err, '', 'without an error');
is(join('', as_ordinary($active)), 'on', 'and is in pg_settings');
($out, $err) = as_ordinary(
	q{SELECT bloom_agg(k) @> 3 FROM small; LOAD '$libdir/plugins/bloomfilter'});
is("$out$err", 't', 'it is the same library as that of the functions');
as_ordinary('ALTER ROLE ordinary RESET local_preload_libraries');

($out, $err) = as_ordinary(
	q{
SET bloomfilter.join_filter = on;
SELECT bloom_agg(1) @> 1;
SELECT bloom_agg(1) @> 1});
is($out, "t\nt", 'functions can be called with a setting that does not exist');
is(() = $err =~ /invalid configuration parameter name "bloomfilter.join_filter", removing it/g,
	1, 'the first one warns');
($out, $err) = as_ordinary(
	q{SELECT bloom_agg(1) @> 1; SET bloomfilter.join_filter = on});
like($err, qr/invalid configuration parameter name/,
	'and afterwards it cannot be set');

$node->stop;
done_testing();
