# Stored filters survive crashes, killed processes, and the way through
# replication, backup and recovery, to the byte.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;
use Time::HiRes qw(usleep);

#
# Filters survive a crash, and replicas have the same filters.
#
# Keys of a batch, and the filters that follow them: changed in place by
# union, one key at a time, and built at once; inline and out of line.
my $setup = q{
CREATE EXTENSION bloomfilter;
CREATE TABLE key (batch int, k text, PRIMARY KEY (batch, k));
CREATE TABLE filter (name text PRIMARY KEY, note text, f bloom);
INSERT INTO filter VALUES
	('united', '', bloom_empty(0.001, 20000)),
	('grown', '', bloom_empty(0.01, 1000)),
	('added', '', bloom_empty());

-- Without a key, logical replication finds a row by all its columns.
CREATE TABLE keyless (f bloom);
ALTER TABLE keyless REPLICA IDENTITY FULL;
};

sub batch
{
	my ($batch) = @_;

	return qq{
INSERT INTO key SELECT $batch, 'key ' || i
	FROM generate_series(${batch}000, ${batch}999) i;
UPDATE filter
	SET f = f | (SELECT bloom_agg(k, 0.001, 20000) FROM key WHERE batch = $batch)
	WHERE name = 'united';
DO \$\$
DECLARE
	key text;
BEGIN
	FOR key IN SELECT k FROM key WHERE batch = $batch LOOP
		UPDATE filter SET f = bloom_add(f, key) WHERE name = 'grown';
	END LOOP;
END \$\$;
UPDATE filter SET f = f | (SELECT bloom_agg(k) FROM key WHERE batch = $batch)
	WHERE name = 'added';
INSERT INTO filter
	SELECT 'batch $batch', '', bloom_agg(k) FROM key WHERE batch = $batch;
UPDATE filter SET note = 'batch $batch';
INSERT INTO keyless SELECT bloom_agg(k) FROM key WHERE batch = $batch;
UPDATE keyless SET f = bloom_add(f, 'another key');
};
}

my $fingerprint = q{
SELECT name, note, md5(f::bytea) FROM filter ORDER BY name COLLATE "C";
SELECT md5(f::bytea) FROM keyless ORDER BY 1};

# Every key is in the filters that have all, and in that of its batch.  All
# the keys are looked up in one filter after another, not the other way round:
# a replica has to step over all the row versions that an update leaves.
my $lost = q{
SELECT sum(probed), sum(found)
	FROM filter, LATERAL (
		SELECT count(*) AS probed, count(*) FILTER (WHERE f @> k) AS found
			FROM key
			WHERE name IN ('united', 'grown', 'added', 'batch ' || batch)) AS keys};

my $primary = new_node('primary', allows_streaming => 'logical');
$primary->start;
$primary->safe_psql('postgres', $setup);
$primary->safe_psql('postgres', batch(1));
is($primary->safe_psql('postgres', q{
SELECT DISTINCT pg_column_size(f) > 2000 FROM filter ORDER BY 1}),
	"f\nt", 'some filters are out of line, others are not');

# A streaming replica, and a subscriber for each way in which logical
# replication carries values.
$primary->backup('base');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($primary, 'base', has_streaming => 1);
$replica->start;

my $subscriber = new_node('subscriber', allows_streaming => 'logical');
$subscriber->start;
$primary->safe_psql('postgres', 'CREATE PUBLICATION filters FOR ALL TABLES');
my @subscribers = ('as_text', 'as_binary');
foreach my $db (@subscribers)
{
	my $binary = $db eq 'as_binary' ? 'true' : 'false';

	create_database($subscriber, $db, 'UTF8');
	$subscriber->safe_psql($db, "$setup TRUNCATE filter");
	$subscriber->safe_psql($db,
		"CREATE SUBSCRIPTION $db CONNECTION '"
		  . $primary->connstr
		  . " dbname=postgres' PUBLICATION filters WITH (binary = $binary)");
}

sub check
{
	my ($what) = @_;
	my $expected = $primary->safe_psql('postgres', $fingerprint);
	my $nkeys =
	  $primary->safe_psql('postgres', 'SELECT 4 * count(*) FROM key');

	is($primary->safe_psql('postgres', $lost), "$nkeys|$nkeys", "$what: keys are found");

	$primary->wait_for_catchup($replica);
	is($replica->safe_psql('postgres', $fingerprint),
		$expected, "$what: filters of the replica are the same");
	is($replica->safe_psql('postgres', $lost),
		"$nkeys|$nkeys", "$what: keys are found on the replica");

	foreach my $db (@subscribers)
	{
		ok( $subscriber->poll_query_until($db, q{
SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel}),
			"$what: subscription $db has its tables");
		$primary->wait_for_catchup($db);
		is($subscriber->safe_psql($db, $fingerprint),
			$expected, "$what: filters of the subscriber $db are the same");
		is($subscriber->safe_psql($db, $lost),
			"$nkeys|$nkeys", "$what: keys are found by the subscriber $db");
	}
	return;
}

check('before the crash');

# What was committed is there after a crash; what was not, is not.
$primary->safe_psql('postgres', batch(2));
my $expected = $primary->safe_psql('postgres', $fingerprint);
my $session = BloomTest::Session->new($primary, 'postgres');
$session->query('BEGIN; ' . batch(3));
$primary->stop('immediate');
$primary->start;
is($primary->safe_psql('postgres', $fingerprint),
	$expected, 'after the crash: filters are the same');
check('after the crash');

$primary->safe_psql('postgres', batch(4));
check('after another batch');

# The replica takes over.
$primary->wait_for_catchup($replica);
$expected = $primary->safe_psql('postgres', $fingerprint);
$primary->stop('immediate');
$replica->promote;
is($replica->safe_psql('postgres', $fingerprint),
	$expected, 'after promotion: filters are the same');
$replica->safe_psql('postgres', batch(5));
is($replica->safe_psql('postgres', $lost), '16000|16000', 'after promotion: filters go on growing');

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  foreach $primary, $replica, $subscriber;
$_->stop foreach $replica, $subscriber;

#
# A statement ends early, because its process or the server is killed or it is
# cancelled: stored filters keep their bytes, and can be extended as before.
#
my $node = new_node('main');
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;

# Filters of all forms: inline lists, lists and bits out of line, layers.
$node->safe_psql('postgres', q{
SET client_min_messages = error;	-- one filter warns that it had to grow
CREATE EXTENSION bloomfilter;
CREATE EXTENSION amcheck;
CREATE TABLE key AS
	SELECT id, id || ' key ' || i AS k
	FROM generate_series(1, 20) id, generate_series(1, 150 * id) i;
CREATE TABLE filter (id int PRIMARY KEY, f bloom NOT NULL, note text);
INSERT INTO filter
	SELECT id, CASE id % 3 WHEN 0 THEN bloom_agg(k)
						   WHEN 1 THEN bloom_agg(k, 1e-4, 3000)
						   ELSE bloom_agg(k, 0.01, 50) END
	FROM key GROUP BY id ORDER BY id;
CREATE INDEX ON filter (bloom_cardinality(f));
CREATE SEQUENCE progress;
});
is($node->safe_psql('postgres', q{
SELECT count(DISTINCT (bloom_info(f)).layers) > 2, min(pg_column_size(f)) < 2000,
	   max(pg_column_size(f)) > 7000 FROM filter}), 't|t|t', 'filters of different forms and sizes');

$fingerprint = q{
SELECT id, md5(f::bytea), note FROM filter ORDER BY id};
$lost = q{
SELECT count(*), count(*) FILTER (WHERE NOT f @> k)
	FROM key JOIN filter USING (id)};

# A file to copy from: one row, over and over.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $endless = "$dir/endless";
$node->safe_psql('postgres',
	"\\copy (SELECT 1000, f FROM filter WHERE id = 20) to '$endless.row'");
$node->safe_psql('postgres', 'CREATE TABLE copied (id int, f bloom)');

# Statements that do not end by themselves.  Each counts what it has done; the
# number tells when it is in the middle.
my %statements = (
	'a union into all rows' => [
		18, q{
WITH other AS MATERIALIZED (
	SELECT bloom_agg(i::text, 1e-4, 50000) AS f FROM generate_series(1, 50000) i)
UPDATE filter
	SET f = filter.f | bloom_add(filter.f, 'other') | other.f,
		note = CASE WHEN nextval('progress') < 18 THEN 'changed'
					ELSE pg_sleep(3600)::text END
	FROM other}
	],
	'bloom_agg' => [
		200_000, q{
INSERT INTO filter
	SELECT 21, bloom_agg(i)
	FROM (SELECT nextval('progress') AS i, generate_series(1, 2000000000)) AS i}
	],
	'bloom_agg of many groups' => [
		100_000, q{
SET LOCAL work_mem = '64kB';
INSERT INTO filter
	SELECT 1000 + g, bloom_agg(i)
	FROM (SELECT nextval('progress') AS i, generate_series(1, 2000000000) % 5000
		AS g) AS i GROUP BY g}
	],
	'COPY' => [
		300, qq{
COPY copied FROM PROGRAM 'while cat $endless.row; do :; done'
	WHERE nextval('progress') > 0}
	],
	'bloom_add' => [
		500, q{
DO $$
BEGIN
	LOOP
		UPDATE filter SET f = bloom_add(f, nextval('progress')::text);
	END LOOP;
END $$}
	]);

# What ends them, given the session and another one, and the SQLSTATE if the
# session is still there to tell.
my %faults = (
	'kill -9' => [
		sub { kill 'KILL', $_[0]->pid; }
	],
	'immediate stop' => [
		sub { $node->stop('immediate'); $node->start; }
	],
	'pg_terminate_backend' => [
		sub { $_[1]->query('SELECT pg_terminate_backend(' . $_[0]->pid . ')') }
	],
	'pg_cancel_backend' => [
		sub { $_[1]->query('SELECT pg_cancel_backend(' . $_[0]->pid . ')') },
		'57014'
	],
	'statement_timeout' => [ undef, '57014' ]);

$expected = $node->safe_psql('postgres', $fingerprint);
my ($nkeys) = split /\|/, $node->safe_psql('postgres', $lost);
my $kills = 0;

# Each fault meets two of the statements and each statement two of the faults;
# with BF_LONG, all of them.
my @meeting = sort keys %statements;
foreach my $fault (sort keys %faults)
{
	push @meeting, shift @meeting;
	foreach my $statement ($ENV{BF_LONG} ? @meeting : @meeting[ 0, 1 ])
	{
		my ($act, $state) = @{ $faults{$fault} };
		my ($middle, $query) = @{ $statements{$statement} };
		my $what = "$fault during $statement";
		my $session = BloomTest::Session->new($node, 'postgres');
		my $watcher = BloomTest::Session->new($node, 'postgres');

		$watcher->query('ALTER SEQUENCE progress RESTART');
		my $timeout = $act ? 0 : '2s';
		$session->send("BEGIN; SET LOCAL statement_timeout = '$timeout'; $query");
		my $progress = 0;
		while ($progress < $middle && !$session->ended)
		{
			usleep(10_000);
			($progress) = $watcher->query('SELECT last_value FROM progress');
		}
		cmp_ok($progress, '>=', $act ? $middle : 1, "$what: in the middle");
		$act->($session, $watcher) if $act;
		if ($state)
		{
			my ($out, $err) = $session->finish;
			like($err, qr/ERROR:  $state/, "$what: the error is $state");
			($out, $err) = $session->query("ROLLBACK; $lost");
			is("$out$err", "$nkeys|0", "$what: the same session finds every key");
			$session->quit;
			$watcher->quit;
		}
		else
		{
			$_->abandon foreach $session, $watcher;
			$kills++ if $fault eq 'kill -9';
			$node->poll_query_until('postgres',
				'SELECT count(*) = 0 FROM pg_stat_activity WHERE '
				  . "query LIKE '%progress%' AND pid <> pg_backend_pid()")
			  or die "$what: the server did not come back";
		}
		is($node->safe_psql('postgres', $fingerprint), $expected, "$what: filters are the same");
		is($node->safe_psql('postgres', "$lost; SELECT count(*) FROM copied"),
			"$nkeys|0\n0", "$what: every key is found");
	}

	# The next fault finds other filters.
	$node->safe_psql('postgres', qq{
INSERT INTO key SELECT id, '$fault ' || id FROM filter;
UPDATE filter SET f = bloom_add(f, '$fault ' || id), note = '$fault'});
	$nkeys += 20;
	my $before = $expected;
	$expected = $node->safe_psql('postgres', $fingerprint);
	isnt($expected, $before, "after $fault: filters can be extended");
	is($node->safe_psql('postgres', $lost), "$nkeys|0", "after $fault: every key is found");
}

$node->command_ok(
	[ 'pg_amcheck', '--heapallindexed', 'postgres' ], 'pg_amcheck finds nothing');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
is(scalar(() = $log =~ /terminated by signal 9/g),
	$kills, 'processes that were killed are in the log');
unlike($log, qr/terminated by signal (?!9)|PANIC:|TRAP:/, 'nothing else crashed');
$node->stop;

#
# A base backup that was taken while filters changed, recovered to its end and
# to a point in time, and a dump in tar format: the filters are those of that
# moment, to the byte, and every key is found.
#
$primary = new_node('archiving', has_archiving => 1, allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE EXTENSION amcheck;
CREATE TABLE key (batch int, k text);
CREATE TABLE filter (name text PRIMARY KEY, f bloom);
INSERT INTO filter VALUES
	('sized', bloom_empty(0.001, 20000)),
	('unsized', bloom_empty()),
	('layers', bloom_empty(0.01, 100));

-- bits that lie in their row
CREATE TABLE small AS SELECT bloom_agg(i, 0.3, 1000) AS f FROM generate_series(1, 500) i;

-- keys, and in the same transaction the filters that have them all
CREATE PROCEDURE extend(first int, last int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		INSERT INTO key SELECT i, i || ' key ' || g FROM generate_series(1, 40) g;
		UPDATE filter
			SET f = f | (SELECT bloom_agg(k, 0.001, 20000) FROM key WHERE batch = i)
			WHERE name = 'sized';
		UPDATE filter
			SET f = bloom_add_all(f, (SELECT array_agg(k) FROM key WHERE batch = i))
			WHERE name <> 'sized';
		COMMIT;
	END LOOP;
END $$;
});

$fingerprint = q{
SELECT name, md5(f::bytea), (SELECT count(*) FROM key)
	FROM filter ORDER BY name COLLATE "C";
SELECT md5(f::bytea) FROM small};
$lost = q{
SELECT count(*) > 0, count(*) FILTER (WHERE NOT f @> k) FROM key, filter};

sub check_keys
{
	my ($node, $what, $db) = @_;

	is($node->safe_psql($db // 'postgres', $lost), 't|0', "$what: every key is found");
	return;
}

#
# The backup, while another session goes on extending
#
$session = BloomTest::Session->new($primary, 'postgres');
$primary->safe_psql('postgres', 'CALL extend(1, 20)');
$session->send('CALL extend(21, 1000000)');
$primary->poll_query_until('postgres',
	'SELECT max(batch) > 25 FROM key')
  or die 'nothing is extended';
my $first = $primary->safe_psql('postgres', 'SELECT max(batch) FROM key');
$primary->backup('base');
my $last = $primary->safe_psql('postgres', 'SELECT max(batch) FROM key');
$primary->safe_psql('postgres',
	'SELECT pg_cancel_backend(' . $session->pid . ')');
$session->finish;
$session->quit;
cmp_ok($last, '>', $first, 'filters changed during the backup');
check_keys($primary, 'primary');
command_ok(
	[ 'pg_verifybackup', '--no-parse-wal', $primary->backup_dir . '/base' ],
	'the backup is as its manifest says');

# What is rolled back leaves nothing behind, here or there.  WAL has all of a
# page that changes for the first time, so this is the second.
$primary->safe_psql('postgres', q{
UPDATE small SET f = f;
BEGIN;
UPDATE small SET f = bloom_add(f, (SELECT min(k) FROM generate_series(501, 600) k WHERE NOT f @> k));
ROLLBACK});

#
# A point to go back to, and the disaster after it
#
my $good = $primary->safe_psql('postgres', $fingerprint);
$primary->safe_psql('postgres',
	q{SELECT pg_create_restore_point('before the disaster')});
$primary->safe_psql('postgres', q{UPDATE filter SET f = bloom_empty(0.5)});
$primary->safe_psql('postgres', q{CALL extend(2000000, 2000010)});
my $end = $primary->safe_psql('postgres', $fingerprint);
isnt($end, $good, 'the disaster changed the filters');

my $wal = $primary->safe_psql('postgres',
	'SELECT pg_walfile_name(pg_current_wal_lsn())');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$primary->poll_query_until('postgres',
	"SELECT last_archived_wal >= '$wal' FROM pg_stat_archiver")
  or die 'WAL was not archived';

sub recover
{
	my ($name, $target) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf',
		"$target\nrecovery_target_action = promote\narchive_mode = off\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
	  or die "$name: no end of recovery";
	return $node;
}

my $restored =
  recover('restored', "recovery_target_name = 'before the disaster'");
is($restored->safe_psql('postgres', $fingerprint),
	$good, 'recovered to the point: filters are the same');
check_keys($restored, 'recovered to the point');
$restored->safe_psql('postgres', 'CALL extend(3000000, 3000003)');
check_keys($restored, 'recovered to the point and extended');
$restored->command_ok([ 'pg_amcheck', '--heapallindexed', 'postgres' ],
	'recovered to the point: pg_amcheck finds nothing');

my $latest = recover('latest', '');
is($latest->safe_psql('postgres', $fingerprint),
	$end, 'recovered to the end: filters are the same');

#
# The format of pg_dump that the tests of dumps leave out
#
my $tar = PostgreSQL::Test::Utils::tempdir() . '/dump.tar';
my $dumped = $restored->safe_psql('postgres', $fingerprint);
$restored->command_ok([ 'pg_dump', '--format=tar', '--file', $tar, 'postgres' ],
	'pg_dump, tar format');
create_database($restored, 'again', 'UTF8');
$restored->command_ok([ 'pg_restore', '--dbname', 'again', $tar ], 'pg_restore, tar format');
is($restored->safe_psql('again', $fingerprint), $dumped, 'tar format: filters are the same');
check_keys($restored, 'tar format', 'again');

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  foreach $primary, $restored, $latest;

done_testing();
