# Many sessions at once: on one filter, and in the recipes of the cookbook for
# ids that do not exist and for campaigns.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Many sessions at once on one filter, by pgbench.
#
my $node = new_node('one_filter');
$node->start;

# errors that pgbench notices
my $create_verify = q{
CREATE FUNCTION verify(boolean, text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF $1 IS NOT TRUE THEN
		RAISE 'not true: %', $2;
	END IF;
END $$;
};
$node->safe_psql(
	'postgres', $create_verify . q{
CREATE EXTENSION bloomfilter;
CREATE TABLE key (k bigserial);
CREATE TABLE one (f bloom);
INSERT INTO one VALUES (bloom_empty(0.001, 500));
});

my $dir = PostgreSQL::Test::Utils::tempdir();

sub script
{
	my ($name, $content) = @_;
	my $file = "$dir/$name.sql";

	open my $handle, '>', $file or die "$file: $!";
	print $handle $content;
	close $handle or die "$file: $!";
	return $file;
}

sub pgbench
{
	my ($what, @options) = @_;

	$node->command_ok(
		[
			'pgbench', '--no-vacuum', '--host', $node->host,
			'--port', $node->port, @options, 'postgres'
		],
		$what);
	return;
}

#
# Writers wait for each other and then work on what the other one left; no
# key gets lost.  A reader finds every key that it can see.
#
my $add = script(
	'add', q{
BEGIN;
INSERT INTO key DEFAULT VALUES RETURNING k \gset
UPDATE one SET f = bloom_add(f, :k::bigint);
COMMIT;
});
my $unite = script(
	'unite', q{
BEGIN;
WITH new AS (INSERT INTO key SELECT FROM generate_series(1, 5) RETURNING k)
UPDATE one SET f = f | (SELECT bloom_agg(k, 0.001, 500) FROM new);
COMMIT;
});
my $read = script(
	'read', q{
SELECT verify(count(*) FILTER (WHERE NOT f @> k) = 0, 'keys are found') FROM one, key;
});
pgbench(
	'sessions that add, unite and read at the same time',
	'--client=8', '--transactions=80', "--file=$add\@2", "--file=$unite\@1",
	"--file=$read\@1");
my ($nkeys, $found, $layers) = split /\|/,
  $node->safe_psql(
	'postgres', q{
SELECT count(*), count(*) FILTER (WHERE f @> k), max((bloom_info(f)).layers)
	FROM one, key});
cmp_ok($nkeys, '>', 600, 'the filter had to grow');
cmp_ok($layers, '>', 1, 'the filter has grown');
is($found, $nkeys, 'no key got lost');

#
# Lookups in the index of a partitioned table, while a partition comes and
# goes, lock tables before their indexes, as DETACH does.
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE parted (part int, k int) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE INDEX parted_k ON parted USING bloomfilter (k);
INSERT INTO parted VALUES (1, 7), (2, 8);
});
pgbench(
	'lookups while a partition is detached',
	'--client=4',
	'--transactions=100',
	'--file=' . script(
		'detach', q{
\set detaches :client_id = 0
\if :detaches
ALTER TABLE parted DETACH PARTITION parted_2 CONCURRENTLY;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
\else
SELECT verify(bloom_index_contains('parted_k', 7), 'partition');
SELECT verify(count(*) > 0, 'list') FROM bloom_index_partitions('parted_k', 7);
\endif
}));

is(find_crashes($node), '', 'nothing crashed');
$node->stop;

#
# The recipe for lookups of ids that do not exist (demo/recipes/missing_ids.sql)
# under concurrent sessions: while new ids go to the delta, are merged into the
# filter, and the filter is rebuilt, no lookup misses an item that it can see,
# and only the two jobs wait for each other.
#
$node = new_node('missing_ids');
$node->append_conf('postgresql.conf', q{
autovacuum_naptime = 1s
lock_timeout = 20s
});
$node->start;
$node->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1',
		'-d', $node->connstr('postgres'),
		'-f', "$FindBin::RealBin/../../demo/recipes/missing_ids.sql"
	],
	'the recipe runs');

# Items that a lookup of their id would not find, in the snapshot of one
# statement; the condition is that of find_item.
$node->safe_psql(
	'postgres', $create_verify . q{
CREATE VIEW missed AS
	SELECT id FROM items, item_filter
	WHERE NOT (filter @> id
			   OR EXISTS (SELECT FROM item_delta d WHERE d.id = items.id));
});

my @sessions = map { BloomTest::Session->new($node, 'postgres') } 1 .. 3;
my ($writer, $job, $reader) = @sessions;

my %jobs = (
	'a merge' => 'SELECT merge_items()',
	'a rebuild' => 'SELECT rebuild_items(30000)');
my $id = 1_000_000;

# Whether a session comes to wait for a lock, by the server's own word.  One
# that does not has ended long before the patience has.
sub waits
{
	my ($session) = @_;
	my $pid = $session->pid;

	foreach (1 .. 100)
	{
		return 1
		  if $node->safe_psql('postgres',
			"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid"
		  ) eq 't';
		return 0 if $session->ended;
		usleep(50_000);
	}
	return 0;
}

sub found
{
	my ($session, $wanted) = @_;
	my ($out, $err) =
	  $session->query("SELECT count(*) FROM find_item($wanted)");

	return $err || $out;
}

foreach my $what (sort keys %jobs)
{
	my ($out, $err);

	# A row that is there but not committed when the job runs
	$id++;
	$writer->query("BEGIN; INSERT INTO items VALUES ($id, 'uncommitted')");
	is(join('', $job->query($jobs{$what})),
		'', "$what does not wait for a writer");
	is(found($reader, $id), 0, 'nobody sees what is not committed');
	is(found($writer, $id), 1, 'but its own transaction');
	$writer->query('COMMIT');
	is(found($reader, $id), 1, "an id committed after $what is found");
	is( $node->safe_psql('postgres', 'SELECT count(*) FROM missed'),
		0, 'so is every other');

	# While the job is at work, its result not committed
	$writer->query("INSERT INTO items VALUES ($id + 100, 'before')");
	$job->query("BEGIN; $jobs{$what}");
	is(found($reader, "$id + 100"), 1, "a reader does not wait for $what");
	is( join('',
			$writer->query("INSERT INTO items VALUES ($id + 200, 'meanwhile')")
		),
		'', "a writer does not wait for $what");
	is(found($reader, "$id + 200"), 1, 'what it wrote is found at once');
	$job->query('COMMIT');
	is(found($reader, "$id + $_"), 1, "found after $what: $_") for 100, 200;

	# A snapshot from before the job
	$reader->query(
		'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM items LIMIT 1');
	$job->query($jobs{$what});
	is(found($reader, "$id + 200"),
		1, "found after $what in a snapshot from before");
	is(($reader->query('SELECT count(*) FROM missed'))[0],
		0, 'so is every other');
	$reader->query('COMMIT');

	# A job that is rolled back
	$writer->query("INSERT INTO items VALUES ($id + 300, 'rolled back')");
	$job->query("BEGIN; $jobs{$what}; ROLLBACK");
	is(found($reader, "$id + 300"), 1, "found after $what was rolled back");

	# Two jobs: the second waits for the first, then sees what it left.
	foreach my $other (sort keys %jobs)
	{
		$job->query("BEGIN; $jobs{$what}");
		$writer->query("INSERT INTO items VALUES ($id + 400, 'late')");
		$reader->send($jobs{$other});
		ok(waits($reader), "$other waits for $what");
		$job->query('COMMIT');
		is(join('', $reader->finish), '', "$other follows");
		is(found($reader, "$id + 400"), 1, "$other after $what loses nothing");
		is($node->safe_psql('postgres', 'SELECT count(*) FROM item_delta'),
			0, 'and leaves no delta');
		$writer->query("DELETE FROM items WHERE id = $id + 400");
	}
	is($node->safe_psql('postgres', 'SELECT count(*) FROM missed'),
		0, "no item is missed after $what");
}
$_->quit for @sessions;

# All at once: writers of one and of many rows, in transactions of different
# length; lookups; and the jobs, one after the other.
my %scripts = (
	write => q{
\set n random(1, 20)
BEGIN;
INSERT INTO items SELECT nextval('new_id'), 'new' FROM generate_series(1, :n);
\sleep :n ms
SELECT verify(EXISTS (SELECT FROM find_item(lastval())), 'an own item is found');
COMMIT;
SELECT verify(EXISTS (SELECT FROM find_item(lastval())), 'a committed item is found');
},
	look => q{
SELECT verify(count(*) = 0, 'no item is missed') FROM missed;
},
	snapshot => q{
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT FROM items LIMIT 1;
\sleep 20 ms
SELECT verify(count(*) = 0, 'no item is missed in a snapshot') FROM missed;
COMMIT;
},
	forget => q{
DELETE FROM items WHERE id = (SELECT min(id) FROM items WHERE id > 0);
},
	merge => 'SELECT merge_items();',
	rebuild => 'SELECT rebuild_items(30000);');
my %weight = (write => 20, look => 4, snapshot => 4, forget => 2, merge => 8, rebuild => 2);
my @files;

foreach my $name (sort keys %scripts)
{
	push @files, '--file=' . script($name, $scripts{$name}) . "\@$weight{$name}";
}
$node->safe_psql('postgres',
	q{CREATE SEQUENCE new_id START 2000000;
	DELETE FROM items WHERE id BETWEEN 0 AND 60000});
pgbench('writers, lookups, merges and rebuilds at the same time',
	'--random-seed=1', '--client=8', '--transactions=60', @files);
cmp_ok(
	$node->safe_psql(
		'postgres', 'SELECT count(*) FROM items WHERE id >= 2000000'),
	'>', 1000,
	'many items came');
is($node->safe_psql('postgres', 'SELECT count(*) FROM missed'),
	0, 'every item is found in the end');

is(find_crashes($node), '', 'nothing crashed');
$node->stop;

#
# The recipe for who has taken part in which campaign (demo/recipes/
# registered.sql): of many requests at the same time, one for each user and
# campaign wins.
#
$node = new_node('campaigns');
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
pgbench(
	'16 clients',
	'--random-seed=1',
	'--client=16',
	'--transactions=250',
	'--file=' . script(
		'take_part', q{
\set campaign random(1, 5)
\set who random(1, 100)
BEGIN;
SELECT take_part(:campaign, :who) AS won \gset
\if :won
INSERT INTO won VALUES (:campaign, :who);
\endif
COMMIT;
}));
my ($wins, $winners, $recorded) = split /\|/,
  $node->safe_psql(
	'postgres', q{
SELECT count(*), count(DISTINCT (campaign, who)),
	   count(*) FILTER (WHERE taken @> who)
	FROM won JOIN campaigns ON id = campaign});
is($wins, $winners, 'nobody wins twice');
is($recorded, $wins, 'and whoever won is recorded');
is( $node->safe_psql(
		'postgres', 'SELECT sum(bloom_cardinality(taken)) FROM campaigns'),
	$winners,
	'nobody else is');
cmp_ok($winners, '>', 490, 'nearly all of 500 won once');

is(find_crashes($node), '', 'nothing crashed');

done_testing();
