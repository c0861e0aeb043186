# Join filters and the server: how sessions load the library, no segment of
# shared memory is left, and a plan that is executed again.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Join filters of parallel plans when the server has no segment of shared memory
# left: then the leader executes the join alone, not as a parallel one.
#

# This server has some hundred segments.
my $node = new_node('shared_memory');
$node->append_conf(
	'postgresql.conf', q{
session_preload_libraries = 'bloomfilter'
autovacuum = off
max_connections = 5
superuser_reserved_connections = 0
max_worker_processes = 1
max_wal_senders = 0
autovacuum_max_workers = 1
enable_nestloop = off
enable_mergejoin = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers_per_gather = 1
check_function_bodies = off
bloomfilter.join_filter_min_rows = 0
});
$node->start;

# depth(n) counts the rows of a join within n parallel queries, each of which
# has a segment.  Its result is the rows of the join.
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE large AS SELECT generate_series(0, 999) AS i;
CREATE TABLE small AS SELECT generate_series(0, 50) AS i;
ANALYZE large, small;
CREATE FUNCTION depth_array(n int) RETURNS bigint[] LANGUAGE sql PARALLEL RESTRICTED
	AS 'SELECT array(SELECT * FROM depth(n))';
CREATE FUNCTION depth(n int) RETURNS SETOF bigint LANGUAGE plpgsql PARALLEL RESTRICTED COST 1 AS $$
BEGIN
	IF n = 0 THEN
		RETURN QUERY SELECT count(*) FROM large JOIN small USING (i);
	ELSE
		RETURN QUERY SELECT unnest(array_remove(depth_array(n - 1), c))
			FROM (SELECT count(*) AS c FROM large OFFSET 0) AS counted;
	END IF;
END $$;
});

for my $mode ('off', 'force')
{
	my $setting = "SET bloomfilter.join_filters = $mode;";
	my $plan = $node->safe_psql('postgres',
		"$setting EXPLAIN SELECT count(*) FROM large JOIN small USING (i)");

	like($plan, qr/Parallel Hash Join/, "a parallel join, join filters $mode");
	is($plan =~ /bloom_join_probe/ ? 1 : 0,
		$mode eq 'force' ? 1 : 0, "it has a filter if these are not off");
	foreach my $depth (0, 10, 150)
	{
		is($node->safe_psql('postgres', "$setting SELECT depth($depth)"),
			'51', "the join within $depth parallel queries, join filters $mode");
	}
}

is(find_crashes($node), '', 'no crash');
$node->stop;

#
# How sessions come to load the library: an ordinary user by
# local_preload_libraries, and by calling a function, which tells of settings
# that do not exist.
#
$node = new_node('loading');
$node->start;
$node->safe_psql('postgres', q{
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
like($err, qr/invalid configuration parameter name/, 'and afterwards it cannot be set');

$node->stop;

#
# A plan that is executed again, with other rows on the inner side if it reads
# that again, as a hash table of several batches does.
#
# The extension as made by "make FAIL_ALLOC=1", see test/fault/callers.c
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};

SKIP:
{
	skip 'BLOOM_FAIL_ALLOC_LIBRARY names no library', 4
	  unless $library;

	$node = new_node('again');
	$node->start;
	$node->safe_psql('postgres', qq{
CREATE EXTENSION bloomfilter;
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter'});
	$node->safe_psql('postgres', qq{
CREATE FUNCTION execute_twice(text, text) RETURNS text AS '$library' LANGUAGE C;
CREATE TABLE parts (k int, filler text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (1000);
INSERT INTO parts SELECT i, repeat('x', 500) FROM generate_series(0, 999) i;
ANALYZE parts});
	foreach my $work_mem ('64MB', '64kB')
	{
		foreach my $inner ('parts a WHERE k + 0 <', 'parts a WHERE 999 - k <')
		{
			my $second = $work_mem eq '64MB' ? 200 : 700;
			my $query = "SELECT a.filler, b.filler FROM (SELECT k, filler FROM $inner "
			  . "current_setting('app.n')::int OFFSET 0) a JOIN parts b USING (k)";

			is($node->safe_psql('postgres', qq{
LOAD '$library';
SET bloomfilter.join_filters = force;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
SET hash_mem_multiplier = 1;
SET work_mem = '$work_mem';
SET app.n = 200;
SELECT execute_twice(\$\$$query\$\$, 'SET app.n = 700')}),
				"200, $second",
				"a join that is executed again, $inner, work_mem $work_mem");
		}
	}
	$node->stop;
}

done_testing();
