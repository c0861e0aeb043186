# How much memory a backend takes: to build large filters, many small ones,
# and over many calls of each function; with BF_LONG, four times as many.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

plan skip_all => 'memory is measured by /proc'
  unless can_measure_memory();

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q{
shared_buffers = 16MB
work_mem = 4MB
max_parallel_workers_per_gather = 0
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');

use constant MB => 1024;    # in kB

# Thousands of calls, groups, and tens of keys.
my $thousands = $ENV{BF_LONG} ? 1000 : 250;

sub in_mb
{
	return sprintf '%.1f MB', $_[0] / MB;
}

#
# Large filters.  A set-returning function in the select list hands out row by
# row; in FROM it would collect them first.
#
my $n = 10_000 * $thousands;
my $urls = qq{
FROM (SELECT generate_series(1, $n) AS i) AS page};
my $url = q{'https://www.example.org/page/' || i};

my $session = BloomTest::Session->new($node, 'postgres');
my ($base, $count) = $session->query_memory("SELECT count($url) $urls");
is($count, $n, "there are $n URLs");

foreach my $filter (
	[ 'sizing itself', $ENV{BF_LONG} ? 150 : 55, "bloom_agg($url)" ],
	[ 'sized', $ENV{BF_LONG} ? 30 : 9, "bloom_agg($url, 0.01, $n)" ])
{
	my ($what, $limit, $agg) = @$filter;
	my ($peak, $out, $err) = $session->query_memory(
		"SELECT abs(bloom_cardinality(f) - $n) < 0.01 * $n,"
		  . " bloom_fpp(f) < 0.0101 FROM (SELECT $agg AS f $urls) AS filter");

	is("$out$err", 't|t', "filter of $n URLs, $what");
	cmp_ok($peak - $base, '<', $limit * MB, "$what, it takes less than $limit MB");
	note "$what: ", in_mb($peak - $base), ' over ', in_mb($base);
}
$session->quit;

#
# Many groups.  The hash table keeps to hash_mem, which is work_mem times
# hash_mem_multiplier, 1 or 2, and spills what is beyond.  The files of the
# spill take buffers of a block each, and a state is accounted for only when
# its group is complete; 32 MB is four times hash_mem and eight times
# work_mem.  Held together, the states would take more than 100 MB.
#
$session = BloomTest::Session->new($node, 'postgres');
my $ngroups = 1000 * $thousands;
my $last = 5 * $ngroups - 1;
my $groups = qq{
SELECT count(*), count(*) FILTER (WHERE bloom_cardinality(f) = 5
		AND f \@> g AND f \@> g + $ngroups AND f \@> g + 4 * $ngroups)
FROM (SELECT i % $ngroups AS g, bloom_agg(i) AS f
	  FROM (SELECT generate_series(0, $last) AS i) AS key
	  GROUP BY i % $ngroups) AS groups};
my ($plan) = $session->query("EXPLAIN $groups");
like($plan, qr/HashAggregate/, 'groups are made by hashing');
($base) = $session->query_memory($groups =~ s/$last/4999/r);
my ($peak, $out, $err) = $session->query_memory($groups);
is("$out$err", "$ngroups|$ngroups", 'filters of all groups are right');
cmp_ok($peak - $base, '<', 32 * MB, 'groups keep to the memory settings');
note "$ngroups groups: ", in_mb($peak - $base), ' over ', in_mb($base);
$session->quit;

#
# Groups that outgrow their lists of hashes after they came into the hash
# table, where nothing can be spilled any more: what each takes counts.  A
# filter has 128 bytes of bits here, and what surrounds them is of a fixed
# size.
#
$session = BloomTest::Session->new($node, 'postgres');
my $dense = q{
SELECT count(*), count(*) FILTER (WHERE (bloom_info(f)).form = 'dense'
		AND f @> g AND f @> g + 40000 AND f @> g + 1180000)
FROM (SELECT i % 20000 AS g, bloom_agg(i, 0.01, 100) AS f
	  FROM (SELECT generate_series(0, 1199999) AS i) AS key
	  GROUP BY i % 20000) AS groups};
foreach my $setting ([ '4MB', 16 ], [ '1GB', 30 ])
{
	my ($work_mem, $limit) = @$setting;

	$session->query("SET work_mem = '$work_mem'");
	($plan) = $session->query("EXPLAIN $dense");
	like($plan, qr/HashAggregate/, 'dense groups are made by hashing');
	($base) = $session->query_memory($dense =~ s/1199999/1199/r);
	($peak, $out, $err) = $session->query_memory($dense);
	is("$out$err", '20000|20000', "20,000 dense groups in $work_mem");
	cmp_ok($peak - $base, '<', $limit * MB, "they take less than $limit MB");
	note "20,000 dense groups in $work_mem: ", in_mb($peak - $base), ' over ',
	  in_mb($base);
}
$session->quit;

#
# No leaks: hundreds of thousands of calls take no more memory than a thousand.
# Within one query, memory would pile up where a function keeps something for
# each call; after it, in the caches of the session.
#
$node->safe_psql('postgres', q{
CREATE TABLE stored (key_type text, f bloom);
INSERT INTO stored
	SELECT 'text', bloom_agg(i::text, 0.01, 3000) FROM generate_series(1, 3000) i
	UNION ALL
	SELECT 'numeric', bloom_agg(i::numeric, 0.01, 3000) FROM generate_series(1, 3000) i
	UNION ALL
	SELECT 'inet', bloom_agg('10.0.0.0'::inet + i, 0.01, 3000) FROM generate_series(1, 3000) i
	UNION ALL
	SELECT 'array', bloom_agg(ARRAY[i], 0.01, 3000) FROM generate_series(1, 3000) i;
});
is($node->safe_psql('postgres', q{
SELECT count(*) FROM stored
	WHERE (bloom_info(f)).form = 'dense' AND pg_column_size(f) > 2000}),
	'4', 'stored filters are out of line');

my $add = q{
DO $$
DECLARE
	f bloom := bloom_empty(0.01, 300);
BEGIN
	FOR i IN 1..%1$d LOOP
		f := bloom_add(f, (i %% 300)::%2$s);
	END LOOP;
	IF bloom_cardinality(f) NOT BETWEEN 280 AND 320 THEN
		RAISE 'wrong';
	END IF;
END $$};
my $contains = q{
SELECT min(n) FROM (SELECT count(*) FILTER (WHERE f @> %2$s) AS n
	FROM stored, (SELECT generate_series(1, %1$d) AS i) AS key
	WHERE key_type = '%3$s') AS counted};
my $contains_flat = q{
SELECT count(*) FILTER (WHERE bloom_contains(
		(SELECT f | bloom_empty(0.01, 3000) FROM stored WHERE key_type = '%3$s'), %2$s))
	FROM (SELECT generate_series(1, %1$d) AS i) AS key};
my $unite = q{
SELECT count(bloom_union(x, y))
	FROM (SELECT bloom_agg(i) AS x, bloom_agg(-i, 0.05, 100) AS y
		  FROM generate_series(1, 80) i) AS filters,
		 (SELECT generate_series(1, %d)) AS again};
my $unite_agg = q{
SELECT bloom_cardinality(bloom_union_agg(f | bloom_empty()))
	FROM (SELECT bloom_agg(i) AS f FROM generate_series(1, 80) i) AS filter,
		 (SELECT generate_series(1, %d)) AS again};
my $intersect_agg = $unite_agg =~ s/bloom_union_agg/bloom_intersection_agg/r;
my $rest = q{
SELECT count(bloom_fpp(f)), count((bloom_info(f)).key_type),
	   count(f::text::bloom::bytea::bloom)
	FROM (SELECT bloom_add(bloom_empty(0.1, 5), i) AS f
		  FROM (SELECT generate_series(1, %d) AS i) AS key OFFSET 0) AS filter};

# Queries by a key, whose plans are kept, in a transaction that has an ID
$node->safe_psql('postgres', q{
CREATE TABLE days (day int, id bigint) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE days_%s PARTITION OF days FOR VALUES FROM (%s) TO (%s)', d, d, d + 1)
	FROM generate_series(1, 9) d \gexec
CREATE INDEX ON days USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO days SELECT 1 + i / 10000, i FROM generate_series(1, 89999) i;
ANALYZE days;
CREATE FUNCTION in_sql() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM days WHERE id = -1';
CREATE FUNCTION in_plpgsql() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT count(*) FROM days WHERE id = -1);
END $$;
});
my $in_function = q{
SELECT sum(%2$s()) FROM (SELECT pg_current_xact_id()) AS own (id), (SELECT generate_series(1, %1$d)) AS again WHERE id IS NOT NULL};
my $lookups = q{SELECT count(*) FROM (SELECT generate_series(1, %d) AS i) AS keys WHERE bloom_index_contains('days_id_idx', -i)};

my $calls = 1000 * $thousands;
my %keys = (
	text => 'i::text',
	numeric => 'i::numeric',
	inet => q{'10.0.0.0'::inet + i},
	array => 'ARRAY[i]');
my @tests;
push @tests,
  [ 'stored filter, probed for text', $calls, $contains, $keys{text}, 'text' ];
push @tests,
  [ "filter in memory, probed for $_", $calls, $contains_flat, $keys{$_}, $_ ]
  foreach sort keys %keys;
push @tests, [ "adding $_ keys in a loop", $calls, $add, $_ ]
  foreach 'text', 'numeric', 'bigint';
push @tests, [ 'union of small filters', $calls / 2, $unite ],
  [ 'union aggregate', $calls, $unite_agg ],
  [ 'intersection aggregate', $calls / 4, $intersect_agg ],
  [ 'construction, description, conversion', $calls / 4, $rest ],
  [ 'query of a function in SQL', $calls / 20, $in_function, 'in_sql' ],
  [ 'query of a function in PL/pgSQL', $calls / 20, $in_function, 'in_plpgsql' ],
  [ 'lookups in partitions', $calls / 4, $lookups ];

$session = BloomTest::Session->new($node, 'postgres');

# The session itself tells what it has allocated.
my $allocated =
  'SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts';
foreach my $test (@tests)
{
	my ($what, $n, $query, @arguments) = @$test;
	my $few = sprintf $query, 1000, @arguments;
	my $many = sprintf $query, $n, @arguments;

	# The first time, caches are filled.
	my (undef, $error) = $session->query($few);
	my ($before) = $session->query($allocated);
	my ($base) = $session->query_memory($few);
	my ($peak, $out, $err) = $session->query_memory($many);
	my ($after) = $session->query($allocated);

	is("$error$err", '', "$n calls: $what");
	cmp_ok($peak - $base, '<', 2 * MB, "no leak during a query: $what");
	cmp_ok($after - $before, '<', MB, "no leak between queries: $what");
	note "$what: ", in_mb($peak - $base), ' over ', in_mb($base), ', then ',
	  in_mb($after - $before), "; $out";
}
$session->quit;

#
# One call with many keys keeps nothing of each but its place and its hash: less
# than 64 bytes, and a copy would take more.
#
$node->safe_psql('postgres', qq{
CREATE TABLE arrays AS
	SELECT array_agg((i % 300)::text) AS text, array_agg((i % 300)::numeric) AS numeric,
		array_agg('10.0.0.0'::inet + i % 300) AS inet, array_agg(to_jsonb(i % 300)) AS jsonb
	FROM generate_series(1, $calls) i});
foreach my $type ('text', 'numeric', 'inet', 'jsonb')
{
	$session = BloomTest::Session->new($node, 'postgres');
	$session->query("SELECT bloom_cardinality(bloom_add_all(bloom_empty(), $type\[1:9])) FROM arrays");
	($base) = $session->query_memory("SELECT cardinality($type) FROM arrays");
	($peak, $out, $err) = $session->query_memory(
		"SELECT bloom_cardinality(bloom_add_all(bloom_empty(0.01, 300), $type)) BETWEEN 280 AND 320 FROM arrays");
	is("$out$err", 't', "$calls keys of type $type in one call");
	cmp_ok($peak - $base, '<', 64 * $calls / 1024, 'it keeps none of them');
	note "$calls keys of type $type: ", in_mb($peak - $base), ' over ', in_mb($base);
	$session->quit;
}

is(find_crashes($node), '', 'nothing crashed');
done_testing();
