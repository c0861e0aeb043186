# Lookups in filters of a table: memory of the fn_extra cache of one call for
# many of them, and values of which a part is missing.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q{
shared_buffers = 1MB
max_parallel_workers_per_gather = 0
autovacuum = off
});
$node->start;

# Filters of 2.6 kB, which are read as a whole, of 14 kB, by slices at first,
# and some of 1.2 MB.
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE small AS
	SELECT g AS id, bloom_add(f, -g) AS f
	FROM (SELECT bloom_agg(i, 0.01, 2000) AS f FROM generate_series(1, 2000) i) AS filter,
		 generate_series(1, 20000) g;
CREATE TABLE medium AS
	SELECT g AS id, bloom_add(f, -g) AS f
	FROM (SELECT bloom_agg(i, 0.01, 12000) AS f FROM generate_series(1, 12000) i) AS filter,
		 generate_series(1, 5000) g;
CREATE TABLE large AS
	SELECT g AS id, bloom_agg(g * 1000000 + i, 0.01, 1000000) AS f
	FROM generate_series(1, 200000) i, generate_series(1, 20) g GROUP BY g;
});
is($node->safe_psql('postgres', q{
SELECT (SELECT min(pg_column_size(f)) BETWEEN 2000 AND 10000 FROM small),
	   (SELECT min(pg_column_size(f)) BETWEEN 12300 AND 20000 FROM medium),
	   (SELECT min(pg_column_size(f)) > 1000000 FROM large)}),
	't|t|t', 'filters have the sizes they should have');

SKIP:
{
	skip 'memory is measured by /proc', 1 unless can_measure_memory();

	my @tests = ([ '20,000 small filters, once each', '1MB', 4,
			'SELECT count(*) FROM small WHERE f @> -id', 20000 ],
		[
			'5,000 filters by slices, once each', '1MB', 4,
			'SELECT count(*) FROM medium WHERE f @> -id', 5000
		],
		[
			'2,000 filters, twelve keys each', '1MB', 4, q{
SELECT count(*) FROM (SELECT f, id, k FROM medium, generate_series(1, 12) k
		WHERE id <= 2000 ORDER BY id OFFSET 0) AS probed
	WHERE f @> -id AND f @> k}, 24000
		],
		[
			'200 filters in turn', '1MB', 4, q{
SELECT count(*) FROM (SELECT f, id, k FROM medium, generate_series(1, 30) k
		WHERE id <= 200 ORDER BY k, id OFFSET 0) AS probed
	WHERE f @> -id AND f @> k}, 6000
		],
		[
			'20 large filters, a run of keys each', '4MB', 12, q{
SELECT count(*) FROM (SELECT f, id, k FROM large, generate_series(1, 1000) k
		ORDER BY id OFFSET 0) AS probed
	WHERE f @> id * 1000000 + k}, 20000
		],
		[
			'20 large filters in turn', '4MB', 10, q{
SELECT count(*) FROM (SELECT f, id, k FROM large, generate_series(1, 1000) k
		ORDER BY k, id OFFSET 0) AS probed
	WHERE f @> id * 1000000 + k}, 20000
		],
		[
			'20 large filters larger than work_mem', '1MB', 6, q{
SELECT count(*) FROM (SELECT f, id, k FROM large, generate_series(1, 1000) k
		ORDER BY id OFFSET 0) AS probed
	WHERE f @> id * 1000000 + k}, 20000
		]);
	foreach my $test (@tests)
	{
		my ($what, $work_mem, $limit, $query, $count) = @$test;
		my $few = $query =~ s/WHERE f/WHERE id = 1 AND f/r;

		# A new one has not yet touched memory that it might keep.
		my $session = BloomTest::Session->new($node, 'postgres');
		$session->query("SET work_mem = '$work_mem'");
		$session->query($few);
		my ($base) = $session->query_memory($few);
		my ($peak, $out, $err) = $session->query_memory($query);

		is("$out$err", $count, "all keys are found: $what");
		cmp_ok($peak - $base, '<', $limit * 1024,
			"less than $limit MB with $work_mem of work_mem: $what");
		note sprintf '%s: %.1f MB over %.1f MB', $what,
		  ($peak - $base) / 1024, $base / 1024;
		$session->quit;
	}
}

# A value that has lost a chunk: the server's own error where that is needed,
# and right answers where it is not.
SKIP:
{
	skip 'the module pg_surgery is not installed', 1
	  unless $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_surgery'}
	  );

	my $toast = $node->safe_psql('postgres', q{
CREATE EXTENSION pg_surgery;
CREATE TABLE lost AS SELECT f FROM large WHERE id = 1;
SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'lost'::regclass});
	my $ctid = $node->safe_psql('postgres',
		"SELECT ctid FROM $toast WHERE chunk_seq = 300");
	$node->safe_psql('postgres', "SELECT heap_force_kill('$toast', ARRAY['$ctid'::tid])");

	my $session = BloomTest::Session->new($node, 'postgres');
	my ($states) = $session->query(q{
CREATE FUNCTION try(f bloom, k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN f @> k;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT regexp_replace(try(f, 1000000 + k), 'value \d+ in \w+', 'value'), min(k) <= 100, count(*)
	FROM lost, generate_series(1, 150) k GROUP BY 1 ORDER BY 1});
	like($states,
		qr/^(?:XX001 (?:missing|unexpected) chunk number .* for toast value\|[tf]\|[1-9]\n)?true\|t\|1[45]\d$/,
		'by slices, only keys in it fail');
	my (undef, $error) = $session->query(
		'SELECT count(*) FROM lost, generate_series(1, 1000) k WHERE f @> 1000000 + k'
	);
	like($error, qr/XX001/, 'the whole cannot be read');
	my ($answer) =
	  $session->query('SELECT bloom_cardinality(f) > 100000 FROM lost');
	is($answer, 't', 'the header is still there');
	$session->quit;
}

is(find_crashes($node), '', 'nothing crashed');
done_testing();
