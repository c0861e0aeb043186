# Join filters of parallel plans when the server has no segment of shared memory
# left: then the leader executes the join alone, not as a parallel one.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# This server has some hundred segments.
my $node = new_node('main');
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
$node->safe_psql(
	'postgres', q{
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

done_testing();
