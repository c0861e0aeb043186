# A read replica answers as the primary does: stored filters, aggregates, join
# filters and indexes, while the primary changes their tables, and after
# promotion.  The primary knows nothing of the snapshots on this replica
# (hot_standby_feedback is off), and replay waits for no row that they see.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;
use Time::HiRes qw(usleep);

# A small first layer, so that the index grows all the time; a filter that is
# inline, and one of 1.2 MB.
my $primary = new_node('primary', allows_streaming => 'logical');
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
wal_consistency_checking = 'generic'
});
$primary->start;
$primary->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE SEQUENCE ids;
CREATE TABLE item (id bigint, kind int, note text);
CREATE INDEX item_ids ON item USING bloomfilter (id) WITH (expected = 100);
INSERT INTO item SELECT nextval('ids'), i % 100, 'first' FROM generate_series(1, 20000) i;
CREATE TABLE kind (kind int, name text);
INSERT INTO kind SELECT i, 'kind ' || i FROM generate_series(0, 99) i;
CREATE TABLE filter (name text, f bloom NOT NULL);
INSERT INTO filter SELECT 'small', bloom_agg(id) FROM item WHERE id <= 100;
INSERT INTO filter SELECT 'large', bloom_agg(id, 0.01, 1e6) FROM item;
CREATE TABLE few (id int);
CREATE INDEX few_ids ON few USING bloomfilter (id);
ANALYZE;
});
$primary->backup('base');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($primary, 'base', has_streaming => 1);
$replica->append_conf(
	'postgresql.conf', q{
max_standby_streaming_delay = -1
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
});
$replica->start;

sub catch_up
{
	$primary->wait_for_catchup($replica, 'replay', $primary->lsn('insert'));
	return;
}

# Pages that a query reads
sub pages_read
{
	my ($query) = @_;
	my $plan = $replica->safe_psql('postgres',
		"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) $query");

	$plan =~ /"Shared Hit Blocks": (\d+).*?"Shared Read Blocks": (\d+)/s
	  or die "no buffers: $plan";
	return $1 + $2;
}

#
# Stored filters
#
catch_up();
my $lookup = q{SELECT f @> %s::bigint FROM filter WHERE name = '%s'};
foreach my $name ('small', 'large')
{
	my $query = sprintf $lookup, 100, $name;

	is($replica->safe_psql('postgres', $query), 't', "$name filter: a key");
	is($replica->safe_psql('postgres', sprintf $lookup, -1, $name),
		'f', "$name filter: an absent key");

	# All of the large one are 150 pages of TOAST.
	cmp_ok(pages_read($query), '<', 100, "$name filter: pages of a lookup");
}
is($replica->safe_psql('postgres', q{
SELECT count(*) FROM item, filter WHERE name = 'large' AND NOT f @> id}),
	0, 'large filter: all keys, with a cached copy');

#
# Filters that queries of the replica build
#
my %aggregates = (
	'bloom_agg' => 'bloom_agg(id)',
	'bloom_agg, sized' => 'bloom_agg(id, 0.001, 30000)',
	'bloom_agg_hash' => 'bloom_agg_hash(bloom_hash(id), 0.01, 30000)');

foreach my $name (sort keys %aggregates)
{
	my $query = "SELECT md5($aggregates{$name}::bytea) FROM item";

	like($replica->safe_psql('postgres', "EXPLAIN $query"),
		qr/Partial Aggregate/, "$name: the replica's plan is parallel");
	is($replica->safe_psql('postgres', $query),
		$primary->safe_psql('postgres', $query), "$name: the same filter on the replica");
}
my $combined = q{
SELECT md5(bloom_union_agg(f)::bytea), md5(bloom_intersection_agg(f)::bytea)
	FROM (SELECT bloom_agg(id, 0.01, 30000) AS f FROM item GROUP BY kind) AS kinds};
is($replica->safe_psql('postgres', $combined),
	$primary->safe_psql('postgres', $combined),
	'unions and intersections are the same on the replica');

#
# Join filters
#
my $join_settings = q{
LOAD 'bloomfilter';
SET bloomfilter.join_filter_min_rows = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
};
my $join = q{
FROM item JOIN kind USING (kind) WHERE name IN ('kind 7', 'kind 77')};
foreach my $workers (0, 2)
{
	my $plan = $replica->safe_psql('postgres', qq{
$join_settings
SET max_parallel_workers_per_gather = $workers;
SET bloomfilter.join_filters = on;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) $join});

	like($plan, qr/Gather/, 'the join is parallel') if $workers;
	like($plan, qr/Removed: 1\d{4}  State: active/,
		"join filters remove rows, $workers workers")
	  or diag($plan);
}

#
# While the primary changes all of these tables, every key that a snapshot of
# the replica sees is found in the same snapshot.  The slot keeps the primary
# from pruning its catalogs: replay would wait there until the snapshot is gone,
# with locks for which the snapshot's session may wait.
#
$primary->safe_psql('postgres',
	q{SELECT pg_create_logical_replication_slot('catalogs', 'pgoutput')});
my $dir = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file(
	"$dir/load", q{
BEGIN;
LOCK filter IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO item SELECT nextval('ids'), i, 'new' FROM generate_series(0, 99) i;
UPDATE filter SET f = f | (SELECT bloom_agg(id, 0.01, 1e6) FROM item WHERE note = 'new')
	WHERE name = 'large';
UPDATE item SET id = nextval('ids'), note = 'new' WHERE note = 'new' AND kind = 5;
UPDATE filter SET f = f | (SELECT bloom_agg(id, 0.01, 1e6) FROM item WHERE note = 'new')
	WHERE name = 'large';
UPDATE item SET note = 'old' WHERE note = 'new' AND kind > 5;
DELETE FROM item WHERE kind = 3;
COMMIT;
REINDEX INDEX item_ids;
REINDEX INDEX CONCURRENTLY item_ids;
});
my $output = '';
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 1, '-T', 600, '-f', "$dir/load",
		$primary->connstr('postgres') ],
	'>', \$output, '2>&1');
my $found = q{
SELECT count(*) AS rows,
	   count(*) FILTER (WHERE NOT bloom_index_contains('item_ids', id)),
	   (SELECT count(*) FROM unnest(bloom_index_contains_each('item_ids',
			ARRAY(SELECT id FROM item))) AS found WHERE NOT found),
	   count(*) FILTER (WHERE NOT (SELECT f FROM filter WHERE name = 'large') @> id)
	FROM item};
my $session = BloomTest::Session->new($replica, 'postgres');
my %results;
my %differences;
$session->query($join_settings);
for (1 .. 10)
{
	$session->query('BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE kind');
	usleep(150_000);
	my ($rows) = $session->query($found);

	$results{$1}++ if $rows =~ /^(\d+)\|0\|0\|0$/;
	$differences{"keys: $rows"} = 1 if $rows !~ /^\d+\|0\|0\|0$/;

	my ($off) = $session->query("SELECT count(*), sum(id) $join");
	my ($on) = $session->query("SET LOCAL bloomfilter.join_filters = on; SELECT count(*), sum(id) $join");
	$differences{"join: $off $on"} = 1 if $off ne $on;
	$session->query('COMMIT');
}
$load->kill_kill;
is(join("\n", keys %differences), '', 'the replica finds every row while the primary writes');
cmp_ok(scalar(keys %results), '>', 2, 'it has seen the primary write');
$session->quit;

# Of another snapshot, an index may be too new; of a new one it is not.
catch_up();
is($replica->safe_psql('postgres', q{
SELECT bloom_index_check('item_ids');
SELECT count(*) FROM item WHERE NOT bloom_index_filter('item_ids') @> id;
SELECT layers >= 1 FROM bloom_index_info('item_ids')}), "\n0\nt", 'functions of the index on the replica');

#
# A snapshot of the replica sees rows that the primary deleted before it built
# an index.
#
my $create = 'ON few USING bloomfilter (id)';
my @rebuilds = (
	'REINDEX INDEX few_ids',
	'REINDEX INDEX CONCURRENTLY few_ids',
	"DROP INDEX few_ids; CREATE INDEX few_ids $create",
	"DROP INDEX few_ids; CREATE INDEX CONCURRENTLY few_ids $create");
my $few = q{
SELECT count(*), count(*) FILTER (WHERE bloom_index_contains('few_ids', id)),
	   (SELECT count(*) FROM unnest(bloom_index_contains_each('few_ids',
			ARRAY(SELECT id FROM few))) AS found WHERE found),
	   bloom_index_contains('few_ids', -1)
	FROM few};
my $hundred =
  'TRUNCATE few; INSERT INTO few SELECT generate_series(1, 100)';
my $old = BloomTest::Session->new($replica, 'postgres');

# Take a snapshot after a change.
sub take_snapshot
{
	my ($change) = @_;

	$primary->safe_psql('postgres', $change);
	catch_up();
	$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE kind');
	return;
}

# Delete 90 of 100 rows and build the index.
sub rebuild
{
	my ($server, $how) = @_;

	$server->safe_psql('postgres', $_)
	  for 'DELETE FROM few WHERE id > 10', split /; /, $how;
	return;
}

# What a query writes, without errors
sub result_of
{
	my ($out, $err) = $old->query($_[0]);
	return $out . $err;
}

foreach my $how (@rebuilds)
{
	take_snapshot($hundred);
	rebuild($primary, $how);
	catch_up();
	is(result_of($few), '100|100|100|t', "an older snapshot finds every row: $how");
	foreach my $call ('check', 'filter')
	{
		like(
			result_of(
				"SAVEPOINT s; SELECT bloom_index_$call('few_ids') IS NULL; ROLLBACK TO s"
			),
			qr/^psql:.*ERROR:  55000$/, "bloom_index_$call: the index is too new: $how");
	}
	$old->query('COMMIT');
	catch_up();
	is(result_of($few), '10|10|10|f', "a new snapshot finds its rows and no other: $how");
}
# Nor may a join filter leave out blocks by a BRIN index whose ranges the primary
# summarized without such rows.  Blocks that are all-visible have none.
$primary->safe_psql('postgres', q{
CREATE TABLE logged (k int, pad text);
INSERT INTO logged SELECT i, repeat('x', 500) FROM generate_series(1, 1000) i;
CREATE INDEX logged_k ON logged USING brin (k) WITH (pages_per_range = 1);
CREATE TABLE keys AS SELECT 500 AS k;
ANALYZE logged, keys});
$old->query(
	"$join_settings SET bloomfilter.join_filters = force; SET max_parallel_workers_per_gather = 0"
);
my $logged = 'SELECT count(*) FROM logged JOIN keys USING (k)';
my $plan_logged = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $logged";
take_snapshot('VACUUM logged');
$primary->safe_psql('postgres', 'CREATE TABLE later ()');
catch_up();
like(
	result_of($plan_logged),
	qr/Blocks Read: 1 of/, 'an older snapshot needs no block that is all-visible');
$primary->safe_psql('postgres', $_)
  for 'DELETE FROM logged WHERE k BETWEEN 400 AND 600',
  q{SELECT brin_desummarize_range('logged_k', n) FROM generate_series(0, 60) n},
  q{SELECT brin_summarize_new_values('logged_k')};
catch_up();
is(result_of($logged), 1, 'an older snapshot joins a row of such a range');
$old->query('COMMIT');
like(
	result_of("$logged; $plan_logged"),
	qr/^0\n.*Blocks Read: 0 of/s, 'a new snapshot reads none of them');

# The primary drops such an index while a cached plan, which does not lock it,
# reads its inner side.
my $holder = BloomTest::Session->new($replica, 'postgres');
$old->query(q{
SET plan_cache_mode = force_generic_plan;
PREPARE waiting AS SELECT count(*) FROM logged
	JOIN (SELECT k FROM keys WHERE pg_advisory_xact_lock_shared(1)::text || k <> '') k USING (k);
EXECUTE waiting});
$holder->query('SELECT pg_advisory_lock(1)');
$old->send('EXECUTE waiting');
$replica->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
$primary->safe_psql('postgres', 'DROP INDEX CONCURRENTLY logged_k');
catch_up();
$holder->quit;
my ($joined, $error) = $old->finish;
is($joined . $error, 0, 'an index that is gone when the keys are known');

# A snapshot that sees the index, before CREATE INDEX CONCURRENTLY has read the
# table, for which it waits for another transaction.
my $other = BloomTest::Session->new($primary, 'postgres');
my $builder = BloomTest::Session->new($primary, 'postgres');

$primary->safe_psql('postgres', 'DROP INDEX few_ids');
$other->query('BEGIN; LOCK few IN ROW EXCLUSIVE MODE');
$builder->send("CREATE INDEX CONCURRENTLY few_ids $create");
$primary->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_class WHERE relname = 'few_ids'});
take_snapshot('INSERT INTO few SELECT generate_series(1, 100)');
$primary->safe_psql('postgres', 'DELETE FROM few');
$other->query('COMMIT');
$builder->finish;
catch_up();
is(result_of($few), '110|110|110|t',
	'an older snapshot finds every row of an index that was not valid');
$old->query('COMMIT');
is(result_of($few), '0|0|0|f', 'a new snapshot finds none');

# A plan of a transaction of the replica names an index that the primary drops
# or replaces concurrently, and rows come that it lacks.
$primary->safe_psql('postgres',
	"DROP INDEX IF EXISTS few_ids; CREATE INDEX few_ids $create; INSERT INTO few SELECT generate_series(1, 100)"
);
foreach my $how ('REINDEX INDEX CONCURRENTLY few_ids',
	'DROP INDEX CONCURRENTLY few_ids')
{
	catch_up();
	$old->query(q{
SET plan_cache_mode = force_generic_plan;
PREPARE not_found AS SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('few_ids', id)) FROM few;
BEGIN});
	my ($before) = $old->query('EXECUTE not_found');
	like($before, qr/^\d+\|0$/, "a plan before $how");

	# The builder waits for one, marks the index as dead, and waits for the other.
	$other->query('BEGIN; LOCK few IN ACCESS SHARE MODE');
	$builder->send($how);
	my $waits = q{SELECT count(*) = 1 FROM pg_locks
		WHERE locktype = 'virtualxid' AND NOT granted AND mode = 'ShareLock'};
	my $is_dead = q{SELECT count(*) = 1 FROM pg_index
		WHERE indrelid = 'few'::regclass AND NOT indislive};
	my $last = BloomTest::Session->new($primary, 'postgres');
	$primary->poll_query_until('postgres', $waits);
	$last->query('BEGIN; LOCK few IN ACCESS SHARE MODE');
	$other->query('COMMIT');
	$primary->poll_query_until('postgres', $is_dead);
	$primary->safe_psql('postgres', 'INSERT INTO few SELECT generate_series(1001, 2000)');
	catch_up();
	my ($after) = $old->query('EXECUTE not_found');
	like($after, qr/^1\d{3}\|0$|^2\d{3}\|0$/, "the plan after $how");
	$last->query('COMMIT');
	$old->query('COMMIT; DEALLOCATE not_found');
	$builder->finish;
	$last->quit;
}
$primary->safe_psql('postgres', "CREATE INDEX few_ids $create");
$_->quit for $other, $builder;

#
# Promotion, with a snapshot from before
#
take_snapshot($hundred);
$primary->stop('immediate');
$replica->promote;
rebuild($replica, $rebuilds[0]);
is(result_of($few), '100|100|100|t', 'after promotion: an older snapshot finds every row');
$old->query('COMMIT');
is(result_of($few), '10|10|10|f', 'after promotion: a new snapshot finds its rows and no other');
$old->quit;
$replica->safe_psql('postgres',
	q{INSERT INTO item SELECT nextval('ids'), 1, 'promoted' FROM generate_series(1, 20000)});
is($replica->safe_psql('postgres', q{
SELECT count(*) FROM item WHERE NOT bloom_index_contains('item_ids', id);
SELECT bloom_index_check('item_ids')}), "0\n", 'after promotion: the index goes on');

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  foreach $primary, $replica;
done_testing();
