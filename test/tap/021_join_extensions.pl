# Join filters and index pruning beside extensions that look at plans: also at
# those that were started and not executed, or not to their end; and beside one
# that makes paths by itself.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $query = 'SELECT count(*) FROM large JOIN small USING (k)';
my %explain = (
	'plan' => 'COSTS OFF',
	'buffers' => 'COSTS OFF, BUFFERS',
	'verbose' => 'VERBOSE, SETTINGS',
	'analyze' => 'ANALYZE',
	'all' => 'ANALYZE, BUFFERS, VERBOSE, WAL, FORMAT json');

sub is_installed
{
	my ($library) = @_;
	my $directory = `pg_config --pkglibdir`;

	chomp $directory;
	return -e "$directory/$library.so";
}

# A server that loads these libraries in this order, with tables of which a join
# has a filter.
sub start_node
{
	my ($name, $libraries, $settings) = @_;
	my $node = new_node($name);

	$node->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = '$libraries'
log_min_messages = log
enable_nestloop = off
enable_mergejoin = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers_per_gather = 0
$settings});
	$node->start;
	$node->safe_psql('postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE TABLE large (k int) PARTITION BY RANGE (k);
CREATE TABLE large_1 PARTITION OF large FOR VALUES FROM (0) TO (500);
CREATE TABLE large_2 PARTITION OF large FOR VALUES FROM (500) TO (1000);
INSERT INTO large SELECT i FROM generate_series(0, 999) i;
CREATE TABLE small AS SELECT generate_series(0, 50) AS k;
CREATE INDEX ON small (k);
ANALYZE large, small;
CREATE TABLE keyed (day int, id int) PARTITION BY RANGE (day);
CREATE TABLE keyed_1 PARTITION OF keyed FOR VALUES FROM (1) TO (2);
CREATE TABLE keyed_2 PARTITION OF keyed FOR VALUES FROM (2) TO (3);
CREATE TABLE keyed_3 PARTITION OF keyed FOR VALUES FROM (3) TO (4);
CREATE INDEX ON keyed USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX ON keyed (id);
INSERT INTO keyed SELECT i % 3 + 1, i FROM generate_series(1, 3000) i;
ANALYZE keyed;
CREATE FUNCTION explain_within() RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	line text;
BEGIN
	EXECUTE 'EXPLAIN (BUFFERS, FORMAT json) $query' INTO line;
	RETURN line;
END \$\$;
CREATE FUNCTION count_within() RETURNS bigint LANGUAGE sql AS '$query';
ALTER DATABASE postgres SET bloomfilter.join_filters = force});
	return $node;
}

# All that may become of a plan.
sub try_plans
{
	my ($node, $with) = @_;

	foreach my $workers (0, 2)
	{
		my $set = "SET max_parallel_workers_per_gather = $workers;";

		foreach my $options (sort keys %explain)
		{
			like(
				$node->safe_psql('postgres',
					"$set EXPLAIN ($explain{$options}) $query"),
				qr/Bloom Filter/, "EXPLAIN ($options) with $workers workers, $with");
		}
		is($node->safe_psql('postgres', "$set $query"),
			51, "the join with $workers workers, $with");
	}
	like($node->safe_psql('postgres', 'SELECT explain_within()'),
		qr/Bloom Filter/, "EXPLAIN in a function, $with");
	is($node->safe_psql('postgres', 'SELECT count_within()'), 51, "the join in a function, $with");
	is($node->safe_psql('postgres', qq{
BEGIN;
DECLARE never_read CURSOR FOR SELECT * FROM large JOIN small USING (k);
DECLARE read_once CURSOR FOR SELECT * FROM large JOIN small USING (k);
FETCH read_once;
COMMIT;
PREPARE p AS $query;
EXPLAIN (COSTS OFF) EXECUTE p;
EXECUTE p;
} ) =~ /\n51$/ ? 1 : 0,
		1, "cursors and prepared plans, $with");
	foreach my $hint ('SeqScan(keyed)', 'IndexScan(keyed)', 'Set(enable_seqscan off)')
	{
		is( $node->safe_psql(
				'postgres', qq{
SET seq_page_cost = 1000;
/*+ $hint */ PREPARE pruned AS SELECT count(*) FROM keyed WHERE id = -1;
/*+ $hint */ PREPARE gate(int) AS SELECT count(*) FROM keyed WHERE id = \$1;
SET plan_cache_mode = force_generic_plan;
EXECUTE pruned; EXECUTE gate(-1);
INSERT INTO keyed VALUES (2, -1);
EXECUTE pruned; EXECUTE gate(-1);
DELETE FROM keyed WHERE id = -1;
EXECUTE pruned; EXECUTE gate(-1)}),
			"0\n0\n1\n1\n0\n0",
			"kept plans of queries by a key, hint $hint, $with");
	}
	unlike(
		$node->safe_psql('postgres',
			"SET seq_page_cost = 1000; EXPLAIN /*+ SeqScan(keyed) */ SELECT FROM keyed WHERE id = 1"),
		qr/keyed_[13]/,
		"a query by a key is pruned, $with");
	my ($rc, $out, $err) = $node->psql('postgres',
		'SELECT sum(1 / (large.k - 7)) FROM large JOIN small USING (k)');
	like($err, qr/division by zero/, "an error in the middle, $with");
	is($node->safe_psql('postgres', $query), 51, "and afterwards, $with");
	is(find_crashes($node), '', "no crash, $with");
	return;
}

#
# auto_explain prints plans when their execution ends, with numbers if it finds
# that they were collected, which EXPLAIN (BUFFERS) does without an execution,
# and pg_qualstats for each statement.
#
my @others = grep { is_installed($_) } (
	'pg_stat_statements', 'pg_qualstats',
	'pg_stat_kcache', 'pg_wait_sampling',
	'hypopg', 'pgaudit', 'pg_hint_plan');
my $settings = join '', map { "auto_explain.$_\n" } (
	'log_min_duration = 0', 'log_analyze = on',
	'log_buffers = on', 'log_wal = on',
	'log_timing = on', 'log_triggers = on',
	'log_verbose = on', 'log_settings = on', 'log_nested_statements = on');

$settings .= "pg_qualstats.sample_rate = 1\npgaudit.log = all\n"
  . "pg_stat_statements.track_planning = on\n";
foreach my $order ('first', 'last')
{
	my @libraries = ('auto_explain', @others);
	my @formats = $order eq 'first' ? ('text', 'json', 'xml', 'yaml') : 'text';
	my $node = start_node(
		"loaded_$order",
		join(', ',
			$order eq 'first' ? ('bloomfilter', @libraries) :
			  (@libraries, 'bloomfilter')), $settings);

	note "with @libraries";
	foreach my $extension (@others)
	{
		$node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS $extension CASCADE");
	}
	foreach my $format (@formats)
	{
		$node->safe_psql('postgres',
			"ALTER DATABASE postgres SET auto_explain.log_format = $format");
		try_plans($node, "loaded $order, as $format");
	}
	$node->safe_psql('postgres',
		'ALTER DATABASE postgres SET auto_explain.log_analyze = off');

	# A plan that counts on a filter, which is there, and which is not: a
	# sample is not skipped.
	if (grep { $_ eq 'pg_stat_statements' } @others)
	{
		$node->safe_psql('postgres', "SELECT pg_stat_statements_reset();
SET bloomfilter.join_planning = on;
SELECT count(*) AS planned FROM large JOIN small USING (k);
SELECT count(*) AS planned FROM large TABLESAMPLE BERNOULLI (100) JOIN small USING (k);");
		is($node->safe_psql('postgres',
				"SELECT plans, calls FROM pg_stat_statements WHERE query ~ '^SELECT count.* AS planned'"),
			"1|1\n1|1", "one planning of a statement, loaded $order");
	}
	try_plans($node, "loaded $order, without ANALYZE");
	like(
		PostgreSQL::Test::Utils::slurp_file($node->logfile),
		qr/bloom_join_probe/, "auto_explain printed filters, loaded $order");
	$node->stop;
}

done_testing();
