# Several servers, and postgres_fdw between them.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Filters between servers: joins where postgres_fdw sends the filter and only
# the rows that pass come back, and filters that each server builds of its part
# of a table and the coordinator unites.
#
my $here = new_node('coordinator');
my $north = new_node('north');
my $south = new_node('south');
$here->append_conf('postgresql.conf', 'enable_partitionwise_aggregate = on');
$_->start for $here, $north, $south;

if (!$here->safe_psql(
		'postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}
	))
{
	plan skip_all => 'the module postgres_fdw is not installed';
}

# Each server has half of the visits, by region; every tenth of 2,000 visits
# is to a page that the coordinator knows.
foreach my $node ($north, $south)
{
	my $region = $node->name;

	$node->safe_psql('postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE TABLE visits (region text, page text, visitor int);
INSERT INTO visits
	SELECT '$region',
		   CASE WHEN i % 10 = 0 THEN 'known ' || i ELSE '$region ' || i END, i
	FROM generate_series(1, 2000) i;
ANALYZE visits;
});
}
$here->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE EXTENSION postgres_fdw;
CREATE TABLE pages AS
	SELECT 'known ' || i AS page, i % 4 AS kind FROM generate_series(1, 2000) i;
ANALYZE pages;
CREATE TABLE visits (region text, page text, visitor int)
	PARTITION BY LIST (region);
});
foreach my $node ($north, $south)
{
	my $region = $node->name;
	my ($host, $port) = ($node->host, $node->port);

	$here->safe_psql('postgres', qq{
CREATE SERVER $region FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres',
			 extensions 'bloomfilter');
CREATE USER MAPPING FOR CURRENT_USER SERVER $region;
CREATE FOREIGN TABLE visits_$region PARTITION OF visits
	FOR VALUES IN ('$region') SERVER $region OPTIONS (table_name 'visits');
});
}

# What the nodes of a plan say under a key, in order.
sub plan_of
{
	my ($query, $options, $key) = @_;
	my $plan = $here->safe_psql('postgres',
		"EXPLAIN (VERBOSE, FORMAT json$options) $query");

	return join "\n", $plan =~ /"$key": "?(.*?)"?,?$/mg;
}

# Rows that came from the other servers
sub rows_travelled
{
	my ($query) = @_;
	my $plan = $here->safe_psql(
		'postgres',
		"EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"
	);
	my $rows = 0;

	$rows += $1
	  while $plan =~ /Foreign Scan[^\n]*\(actual rows=(\d+)/g;
	return $rows;
}

# Half of the known pages that a server has: i % 10 = 0 and i % 4 = 2
my $wanted = q{(SELECT bloom_agg(page, 0.001) FROM pages WHERE kind = 2)};
my %conditions = (
	'' => 'true',
	'bloom_contains' => "bloom_contains($wanted, v.page)",
	'@>' => "$wanted \@> v.page",
	'<@' => "v.page <\@ $wanted");
my %remote = (
	'bloom_contains' => qr/bloom_contains\(\$\d::public\.bloom, page\)/,
	'@>' => qr/\$\d::public\.bloom OPERATOR\(public\.@>\) page/,
	'<@' => qr/page OPERATOR\(public\.<@\) \$\d::public\.bloom/);

foreach my $table ('visits_north', 'visits')
{
	my $servers = $table eq 'visits' ? 2 : 1;
	my (%result, %travelled);

	foreach my $by (sort keys %conditions)
	{
		my $join = qq{
FROM $table v JOIN pages p USING (page) WHERE p.kind = 2 AND $conditions{$by}};
		my $query = "SELECT v.region, v.page, v.visitor $join";

		$result{$by} = $here->safe_psql('postgres',
			"SELECT count(*), sum(v.visitor), min(v.page) $join");
		$travelled{$by} = rows_travelled($query);
		next unless $by;

		my $sql = plan_of($query, '', 'Remote SQL');
		my $sent = () = $sql =~ /$remote{$by}/g;
		is($sent, $servers, "$table: $by is in the remote SQL") or diag($sql);
		is($result{$by}, $result{''}, "$table: $by leaves the result as it is");
		cmp_ok($travelled{$by}, '>=', 100 * $servers, "$table: $by lets pass what matches");
		cmp_ok($travelled{$by}, '<=', (100 + 10) * $servers, "$table: $by stops what does not");
	}
	is($result{''} =~ s/\|.*//sr, 100 * $servers, "$table: rows that match");
	is($travelled{''}, 2000 * $servers, "$table: without a filter, every row travels");
}

# Without the option, the other server does not probe, and the result is right.
$here->safe_psql('postgres', 'ALTER SERVER north OPTIONS (DROP extensions)');
unlike(
	plan_of("SELECT page FROM visits_north v WHERE $conditions{'@>'}",
		'', 'Remote SQL'),
	qr/bloom|@>/, 'nothing is sent to a server that is not said to have the extension');
is($here->safe_psql('postgres',
		"SELECT count(*) BETWEEN 100 AND 110 FROM visits_north v WHERE $conditions{'@>'}"
	),
	't', 'then the coordinator applies the filter');
$here->safe_psql('postgres',
	"ALTER SERVER north OPTIONS (ADD extensions 'bloomfilter')");

# Parameters of a prepared statement, also in a generic plan
$here->safe_psql('postgres',
	'CREATE TABLE stored AS SELECT bloom_agg(page, 0.001) AS f FROM pages WHERE kind = 2'
);
foreach my $mode ('force_custom_plan', 'force_generic_plan')
{
	is($here->safe_psql('postgres', qq{
SET plan_cache_mode = $mode;
PREPARE probe (bloom) AS SELECT count(*) FROM visits WHERE \$1 \@> page;
SELECT format('EXECUTE probe (%L)', f) FROM stored \\gexec
}),
		$here->safe_psql('postgres',
			"SELECT count(*) FROM visits, stored WHERE f \@> page"),
		"a filter as a parameter, $mode");
}

#
# A filter of the whole table: each server makes one of its part, both at the
# same time.  The planner has to know how many rows there are, to see that it
# is cheaper there.
#
foreach my $node ($north, $south)
{
	my $region = $node->name;

	$node->safe_psql('postgres', q{
CREATE TABLE daily AS
	SELECT region, visitor % 200 AS day, bloom_agg(page, 0.001, 5000) AS pages,
		   bloom_agg(visitor) AS visitors
	FROM visits GROUP BY 1, 2;
ANALYZE daily});
	$here->safe_psql('postgres',
		"ALTER SERVER $region OPTIONS (ADD async_capable 'true')");
}
$here->safe_psql('postgres', q{
CREATE TABLE daily (region text, day int, pages bloom, visitors bloom)
	PARTITION BY LIST (region);
CREATE FOREIGN TABLE daily_north PARTITION OF daily
	FOR VALUES IN ('north') SERVER north OPTIONS (table_name 'daily');
CREATE FOREIGN TABLE daily_south PARTITION OF daily
	FOR VALUES IN ('south') SERVER south OPTIONS (table_name 'daily');
ANALYZE visits_north, visits_south, daily_north, daily_south});
my %tables = (
	'bloom_agg(page, 0.001, 5000)' => 'visits',
	'bloom_agg_hash(bloom_hash(page), 0.001, 5000)' => 'visits',
	'bloom_union_agg(pages)' => 'daily');
foreach my $aggregate (sort keys %tables)
{
	my $table = $tables{$aggregate};
	my $whole = "SELECT $aggregate AS f FROM $table";
	my %parts = (
		'UNION ALL' => "SELECT $aggregate AS f FROM ${table}_north"
		  . " UNION ALL SELECT $aggregate FROM ${table}_south",
		'GROUP BY' => "$whole GROUP BY region");
	my ($name) = $aggregate =~ /^(\w+)/;

	# To the planner, few rows travel cheaply, however wide they are.
	delete $parts{'GROUP BY'} if $table eq 'daily';

	foreach my $how (sort keys %parts)
	{
		my $query =
		  "SELECT bloom_union_agg(f) AS f FROM ($parts{$how}) AS parts";
		my $sql = plan_of($query, '', 'Remote SQL');
		my $remote = () = $sql =~ /$name\(/g;
		my $async = () = plan_of($query, '', 'Async Capable') =~ /true/g;

		is($remote, 2, "each server builds its filter: $name, $how")
		  or diag($sql);
		is($async, 2, "both at the same time: $name, $how");
		is(rows_travelled($query), 2, "only filters travel: $name, $how");
		is($here->safe_psql('postgres', "SELECT f = ($whole) FROM ($query) AS united"),
			't', "their union is the filter of all: $name, $how");
	}

	# postgres_fdw does not send partial aggregates.
	unlike(plan_of($whole, '', 'Remote SQL'), qr/$name/, "of the whole table, $name is not sent");
}

# Nor does it send aggregates by other columns than the partition key, and
# functions in a select list.
unlike(
	plan_of(
		'SELECT day, bloom_union_agg(pages) FROM daily GROUP BY day',
		'', 'Remote SQL'),
	qr/bloom/, 'by another column, bloom_union_agg is not sent');
unlike(
	plan_of('SELECT bloom_cardinality(pages) FROM daily', '', 'Remote SQL'),
	qr/bloom/, 'a function in a select list is not sent');

# Filters that the servers keep are probed there, if the key has no collation.
# Both have two visits of that day, to two pages.
my %probes = (
	q{bloom_contains_hash(pages, bloom_hash('known 110'::text))} =>
	  qr/bloom_contains_hash\(pages, '?-?\d+'?::bigint\)/,
	q{visitors @> 110} => qr/visitors OPERATOR\(public\.@>\) 110/,
	q{pages @> 'known 110'::text} => undef);
foreach my $probe (sort keys %probes)
{
	my $query = "SELECT region, day FROM daily WHERE $probe";
	my $sql = plan_of($query, '', 'Remote SQL');

	if (defined $probes{$probe})
	{
		my $sent = () = $sql =~ /$probes{$probe}/g;
		is($sent, 2, "$probe is in the remote SQL") or diag($sql);
	}
	else
	{
		unlike($sql, qr/bloom|@>/, "$probe is not sent");
	}
	is($here->safe_psql('postgres', "$query ORDER BY region"),
		"north|110\nsouth|110", "$probe finds the day on each server");
}

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  for $here, $north, $south;

#
# Join filters and foreign partitions: a server is asked only for partitions
# that may have a match, whether Append waits for each scan or asks several at
# once.
#
$_->stop foreach $here, $north, $south;
$here = new_node('partitioned');
my $remote = new_node('remote');
$remote->append_conf('postgresql.conf', 'log_statement = all');
$_->start for $here, $remote;

# Eight partitions of 1,000 rows each, on the other server.  To read the keys
# costs more than to start a remote query, so PostgreSQL would begin with the
# latter.
my ($host, $port) = ($remote->host, $remote->port);
$here->safe_psql('postgres', qq{
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
	$here->safe_psql('postgres', qq{
CREATE FOREIGN TABLE facts_$part PARTITION OF facts FOR VALUES FROM ($from) TO ($to) SERVER remote;
ANALYZE facts_$part;
});
}

# Returns the rows of a query, and how many scans the other server executed
sub run_query
{
	my ($query, $mode) = @_;
	my $offset = -s $remote->logfile;
	my $rows = $here->safe_psql('postgres', qq{
LOAD 'bloomfilter';
SET bloomfilter.join_filters = $mode;
SET bloomfilter.join_planning = off;
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
		'SELECT count(*) FROM facts JOIN keys USING (k) WHERE part = 5', 'off');
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
		24, "$form, repeatedly, which has no filters");
}

# It does not matter what the inner side consists of, nor that it costs more
# than to start a remote query.  Other than by a column, there is no filter.
$here->safe_psql('postgres',
	"ALTER SERVER remote OPTIONS (SET async_capable 'false', ADD fdw_startup_cost '0')"
);
my %inner = (
	'keys USING (k) WHERE part = (SELECT 5)' => 1,
	'keys USING (k) WHERE part_number = 5' => 1,
	'generate_series(5000, 5999) k USING (k)' => 1,
	'(SELECT k, part FROM keys UNION ALL SELECT k, part FROM keys) u USING (k) WHERE part = 5'
	  => 1,
	'keys ON f.k = keys.k AND f.g = keys.k % 10 WHERE part = 5' => 1,
	'keys ON f.k = keys.k + 0 WHERE part = 5' => 8);
check_scans("SELECT count(*), sum(f.g) FROM facts f JOIN $_",
	$inner{$_}, "inner side $_")
  foreach sort keys %inner;
check_scans(
	q{SET default_transaction_isolation = 'serializable';
SELECT count(*), sum(f.g) FROM facts f JOIN keys USING (k) WHERE part = 5},
	1, 'SERIALIZABLE');

done_testing();
