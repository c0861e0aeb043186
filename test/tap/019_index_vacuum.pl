# VACUUM rebuilds an index while others write, delete and look up keys, at all
# isolation levels and on a standby: no key of a visible row is ever lost, also
# if the server crashes at any moment, and deleted keys are forgotten.
#
# BF_LONG=1 runs each part ten times as long, and goes on until a hundred million
# keys of visible rows have been looked up.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;
use Time::HiRes qw(time usleep);

my $factor = $ENV{BF_LONG} ? 10 : 1;
my $wanted = $ENV{BF_LONG} ? 100_000_000 : 0;
my $primary = new_node('primary', allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
autovacuum = off
synchronous_commit = off
max_prepared_transactions = 5
maintenance_work_mem = 1MB
wal_consistency_checking = 'generic'
wal_keep_size = 2GB
checkpoint_timeout = 30s
restart_after_crash = on
});
$primary->start;

# Each VACUUM rebuilds the index; it also grows, since it has no room for many.
$primary->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE t (id bigint, x int DEFAULT 0) WITH (fillfactor = 70);
CREATE INDEX i ON t USING bloomfilter (id) WITH (fpp = 1e-5, rebuild_scale_factor = 0);
CREATE SEQUENCE ids;
CREATE TABLE over (x int);
INSERT INTO t SELECT nextval('ids') FROM generate_series(1, 5000);

-- How many of these keys does the index lack?
CREATE FUNCTION count_lost(keys bigint[]) RETURNS bigint LANGUAGE sql
AS $$ SELECT count(*) FROM unnest(bloom_index_contains_each('i', keys)) f (hit) WHERE NOT hit $$;

-- Inserts, and deletes and updates half of the rows, until all is over; returns the number of own keys that were lost.
CREATE PROCEDURE write_on(part int, INOUT lost bigint) LANGUAGE plpgsql AS $$
DECLARE
  inserted bigint[];
BEGIN
  WHILE NOT EXISTS (SELECT FROM over) LOOP
    WITH new AS (INSERT INTO t SELECT nextval('ids') FROM generate_series(1, 1 + (random() * random() * 400)::int) RETURNING id)
    SELECT array_agg(id) INTO inserted FROM new;
    lost := lost + count_lost(inserted);
    DELETE FROM t WHERE id = ANY (ARRAY(SELECT id FROM t TABLESAMPLE SYSTEM (5) WHERE id % 2 = part LIMIT 90));
    UPDATE t SET id = nextval('ids') WHERE id = ANY (ARRAY(SELECT id FROM t TABLESAMPLE SYSTEM (5) WHERE id % 2 = part LIMIT 20));
    UPDATE t SET x = x + 1 WHERE id = ANY (ARRAY(SELECT id FROM t TABLESAMPLE SYSTEM (5) WHERE id % 2 = part LIMIT 20));
    IF random() < 0.2 THEN
      ROLLBACK;
    ELSE
      COMMIT;
    END IF;
  END LOOP;
END $$;

-- Looks up the keys of all visible rows, many times in each transaction.
CREATE PROCEDURE read_for(seconds float8, wanted bigint, INOUT lookups bigint, INOUT lost bigint) LANGUAGE plpgsql AS $$
DECLARE
  ending timestamptz := clock_timestamp() + seconds * interval '1 s';
  keys bigint[];
BEGIN
  COMMIT;
  WHILE clock_timestamp() < ending OR lookups < wanted LOOP
    FOR k IN 1 .. 2 LOOP
      lost := lost + (SELECT count(*) FROM t WHERE NOT bloom_index_contains('i', id));
      keys := ARRAY(SELECT id FROM t);
      FOR m IN 1 .. 20 LOOP
        lost := lost + count_lost(keys);
        lookups := lookups + cardinality(keys);
        PERFORM pg_sleep(random() * 0.01);
      END LOOP;
    END LOOP;
    COMMIT;
  END LOOP;
END $$});
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('standby', true)});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nmax_standby_streaming_delay = 2s\nhot_standby_feedback = off\n");
$standby->start;

# The standby has no procedures that commit: it reads by transactions of psql.
my $read_standby = q{
SELECT count(*) || '|' || count(*) FILTER (WHERE NOT bloom_index_contains('i', id)) FROM t};

my @levels = ('read committed', 'repeatable read', 'serializable');

sub open_sessions
{
	my @writers = map { BloomTest::Session->new($primary, 'postgres') } 1 .. 2;
	my @readers = map { BloomTest::Session->new($primary, 'postgres') } @levels;
	$readers[$_]->query("SET default_transaction_isolation = '$levels[$_]'") foreach 0 .. $#levels;
	return (\@writers, \@readers);
}

#
# All at once
#
my $seconds = 12 * $factor;
my ($writers, $readers) = open_sessions();
my $far = BloomTest::Session->new($standby, 'postgres');
$writers->[$_]->send("CALL write_on($_, 0)") foreach 0 .. 1;
$_->send("CALL read_for($seconds, $wanted / 3, 0, 0)") foreach @$readers;
my ($vacuums, $far_lookups, $far_lost) = (0, 0, 0);
my $vacuum = BloomTest::Session->new($primary, 'postgres');
while (grep { !$_->ended } @$readers)
{
	$_->{deadline} = time + 180 foreach @$writers, @$readers;

	# As one message: replay may cancel it, but would end a session that waits.
	$far->send("BEGIN ISOLATION LEVEL REPEATABLE READ\\; $read_standby\\; SELECT pg_sleep(0.2)\\; $read_standby\\; COMMIT; ROLLBACK");
	$vacuum->send('VACUUM t');
	my ($out) = $far->finish(sub {
		return unless $vacuum->ended;
		my ($done, $err) = $vacuum->finish;
		die $err if $err ne '';
		$vacuums++;
		$vacuum->send('VACUUM t');
	});
	$vacuum->finish;
	foreach (grep { /^\d+\|\d+$/ } split /\n/, $out)
	{
		my ($n, $lost) = split /\|/;
		$far_lookups += $n;
		$far_lost += $lost;
	}
}
$primary->safe_psql('postgres', 'INSERT INTO over VALUES (1)');
foreach my $writer (@$writers)
{
	my ($out, $err) = $writer->finish;
	is("$out$err", '0', 'own keys are found');
}
my $lookups = 0;
foreach my $k (0 .. $#levels)
{
	my ($out, $err) = $readers->[$k]->finish;
	my ($n, $lost) = split /\|/, $out;
	is("$lost$err", '0', "no key is lost, $levels[$k]");
	$lookups += $n;
}
is($far_lost, 0, 'no key is lost on the standby');
cmp_ok($far_lookups, '>', 0, 'keys were looked up on the standby');
note("$vacuums times VACUUM, $lookups lookups, $far_lookups on the standby");
$_->quit foreach @$writers, @$readers, $far, $vacuum;

is($primary->safe_psql('postgres', q{VACUUM t; SELECT bloom_index_check('i')}), '', 'check');
is($primary->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('i')}), '1', 'one layer');
my (undef, undef, $verbose) = $primary->psql('postgres', 'VACUUM (VERBOSE) t');
like($verbose, qr/index "i": pages: \d+ in total, [1-9]\d* newly deleted/, 'VERBOSE tells of the rebuild');
my ($rows, $deleted) = split /\|/, $primary->safe_psql('postgres', q{
SELECT (SELECT count(*) FROM t), count(*) FILTER (WHERE bloom_index_contains('i', id))
  FROM generate_series(1, (SELECT last_value FROM ids)) g (id) WHERE id NOT IN (SELECT id FROM t)});
cmp_ok($deleted, '<', 10, "deleted keys are forgotten: $deleted are found");

# Keys that are lost after a crash, after some more, and after a VACUUM.
sub look_after_crash
{
	my ($table, $index) = @_;
	my $lost = "SELECT count(*) FROM $table WHERE NOT bloom_index_contains('$index', id);";

	my $found = $primary->safe_psql('postgres', qq{
$lost INSERT INTO $table SELECT nextval('ids') FROM generate_series(1, 100); $lost VACUUM $table; $lost
SELECT bloom_index_check('$index')});
	return join '|', split /\n/, $found;
}

#
# Crashes at any moment
#
$primary->safe_psql('postgres', 'TRUNCATE over');
foreach my $round (1 .. 6 * $factor)
{
	($writers, $readers) = open_sessions();
	$writers->[0]->send('CALL write_on(0, 0)');
	$readers->[0]->send('VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t; VACUUM t');
	usleep(50_000 + rand(400_000));
	$primary->stop('immediate');
	$_->{psql}->kill_kill foreach @$writers, @$readers;
	$primary->start;
	is(look_after_crash('t', 'i'), "0|0|0", "no key is lost in a crash, round $round");
}
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $read_standby), $primary->safe_psql('postgres', $read_standby), 'the standby follows');

#
# VACUUM is cancelled or killed while pages are moved, which a session sees begin.
# The index has many.
#
$primary->safe_psql('postgres', q{
CREATE EXTENSION pg_walinspect;
CREATE TABLE m (id bigint);
CREATE INDEX m_i ON m USING bloomfilter (id) WITH (fpp = 1e-6, expected = 3000000, rebuild_scale_factor = 0);
INSERT INTO m SELECT nextval('ids') FROM generate_series(1, 30000);
CREATE PROCEDURE write_meanwhile() LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    INSERT INTO m SELECT nextval('ids') FROM generate_series(1, 10);
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE execute_while_moving(statement text, before text, INOUT after pg_lsn) LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    BEGIN
      EXIT WHEN before <> (SELECT coalesce(last_rebuild::text, '') FROM bloom_index_info('m_i'));
    EXCEPTION WHEN object_in_use THEN  -- moving has begun while it read pages
      EXIT;
    END;
    COMMIT;
  END LOOP;
  EXECUTE statement;
  after := pg_current_wal_insert_lsn();
END $$});

# Sessions of which one runs VACUUM, two write, and one executes a statement about
# the first when it moves pages.
sub execute_while_moving
{
	my ($statement) = @_;
	my @sessions = map { BloomTest::Session->new($primary, 'postgres') } 1 .. 4;

	$sessions[0]->query('DELETE FROM m WHERE random() < 0.3');
	$sessions[$_]->send('CALL write_meanwhile()') foreach 1, 2;
	my ($before) = $sessions[0]->query(q{SELECT last_rebuild FROM bloom_index_info('m_i')});
	$sessions[0]->send('VACUUM m');
	$sessions[3]->send('CALL execute_while_moving($$' . sprintf($statement, $sessions[0]->pid) . "\$\$, '$before', NULL)");
	return @sessions;
}

# All pages are moved nevertheless if it is cancelled.
my $moved_later = 0;
foreach my $round (1 .. 50 * $factor)
{
	my @sessions = execute_while_moving('SELECT pg_cancel_backend(%d)');
	my ($at) = $sessions[3]->finish;
	my (undef, $err) = $sessions[0]->finish;
	$primary->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $_->pid . ')') foreach @sessions[ 1, 2 ];
	$_->{psql}->kill_kill foreach @sessions;
	my $moved = $primary->safe_psql('postgres', qq{
SELECT pg_switch_wal() \\gset
SELECT count(*) FROM pg_get_wal_records_info('$at', pg_current_wal_flush_lsn()) WHERE resource_manager = 'XLOG' AND record_type = 'FPI'});
	note("$moved pages were moved after the request: $err");
	$moved_later++ if $moved > 0;
	is($primary->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('m_i')}), '1', "no page is lacking, round $round");
	is(look_after_crash('m', 'm_i'), "0|0|0", "no key is lost when moving pages is cancelled, round $round");
	last if $round >= 3 * $factor && $moved_later > 0;
}
cmp_ok($moved_later, '>', 0, "$moved_later times, pages were moved after the request");

my $lacking = 0;
foreach my $round (1 .. 50 * $factor)
{
	my @sessions = execute_while_moving(q{COPY (SELECT) TO PROGRAM 'kill -9 %d'});
	foreach my $session (@sessions)
	{
		usleep(5_000) until eval { $session->ended } // 1;
	}
	my $killed = () = slurp_file($primary->logfile) =~ /was terminated by signal 9/g;
	is($killed, $round, "VACUUM is killed, round $round");
	$_->{psql}->kill_kill foreach @sessions;
	usleep(50_000) until eval { $primary->safe_psql('postgres', 'SELECT 1') };
	my (undef, undef, $message) = $primary->psql('postgres', q{SELECT bloom_index_info('m_i')});
	$lacking++ if $message =~ /index "m_i" lacks pages/;
	is(look_after_crash('m', 'm_i'), "0|0|0", "no key is lost in a crash while pages are moved, round $round");
	last if $round >= 5 * $factor && $lacking > 0;
}
cmp_ok($lacking, '>', 0, "$lacking times, pages were lacking");

#
# Queries by a key, which ask the indexes of partitions that are rebuilt: each key
# is in one partition, from which it moves to the next one.
#
$primary->safe_psql(
	'postgres', q{
CREATE TABLE moving (part int, id int) PARTITION BY LIST (part);
CREATE TABLE moving_0 PARTITION OF moving FOR VALUES IN (0);
CREATE TABLE moving_1 PARTITION OF moving FOR VALUES IN (1);
CREATE TABLE moving_2 PARTITION OF moving FOR VALUES IN (2);
CREATE INDEX moving_id ON moving USING bloomfilter (id) WITH (fpp = 1e-5, rebuild_scale_factor = 0);
INSERT INTO moving SELECT i % 3, i FROM generate_series(1, 3000) i;
CREATE PROCEDURE move_for(seconds float8) LANGUAGE plpgsql AS $$
DECLARE
  k int := 0;
  ending timestamptz := clock_timestamp() + seconds * interval '1 s';
BEGIN
  WHILE clock_timestamp() < ending LOOP
    k := (k + 1) % 100;
    UPDATE moving SET part = (part + 1) % 3 WHERE id % 100 = k;
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE query_for(seconds float8, INOUT queries bigint, INOUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
  ending timestamptz := clock_timestamp() + seconds * interval '1 s';
  key int;
  by_plan bigint;
  by_text bigint;
BEGIN
  COMMIT;
  WHILE clock_timestamp() < ending LOOP
    FOR k IN 1 .. 10 LOOP
      key := ceil(random() * 3000);
      SELECT count(*) INTO by_plan FROM moving WHERE id = key;
      EXECUTE format('SELECT count(*) FROM moving WHERE id = %s', key) INTO by_text;
      queries := queries + 2;
      wrong := wrong + (by_plan <> 1)::int + (by_text <> 1)::int;
    END LOOP;
    COMMIT;
  END LOOP;
END $$});
$seconds = 3 * $factor;
($writers, $readers) = open_sessions();
$writers->[0]->send("CALL move_for($seconds)");
$_->send("SET plan_cache_mode = force_generic_plan; CALL query_for($seconds, 0, 0)") foreach @$readers;
my $rebuilt = 0;
until ($writers->[0]->ended)
{
	$primary->safe_psql('postgres', 'VACUUM moving');
	$rebuilt++;
}
foreach my $k (0 .. $#levels)
{
	my ($out, $err) = $readers->[$k]->finish;
	my ($n, $wrong) = split /\|/, $out;
	is("$wrong$err", '0', "queries by a key while indexes are rebuilt, $levels[$k]");
	note("$n queries, $rebuilt times VACUUM");
}
$_->quit foreach @$writers, @$readers;

#
# A rebuild that is cancelled, and the writers after it
#
foreach my $round (1 .. 5)
{
	$vacuum = BloomTest::Session->new($primary, 'postgres');
	$vacuum->send('VACUUM t; VACUUM t; VACUUM t; VACUUM t');
	usleep(10_000 + rand(60_000));
	$primary->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $vacuum->pid . ')');
	$vacuum->finish;
	$vacuum->quit;
	is($primary->safe_psql('postgres', q{
INSERT INTO t SELECT nextval('ids') FROM generate_series(1, 1000);
SELECT count(*) FROM t WHERE NOT bloom_index_contains('i', id);
SELECT bloom_index_check('i')}), "0\n", "no key is lost when VACUUM is cancelled, round $round");
}

#
# A transaction that is prepared before a rebuild, and commits after it
#
is($primary->safe_psql('postgres', q{
BEGIN; INSERT INTO t SELECT -i FROM generate_series(1, 1000) i; DELETE FROM t WHERE id > 0; PREPARE TRANSACTION 'p';
VACUUM t;
SELECT count(*) FROM t WHERE NOT bloom_index_contains('i', id);
COMMIT PREPARED 'p';
SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('i', id)) FROM t;
VACUUM t;
SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('i', id)) FROM t;
SELECT cardinality BETWEEN 990 AND 1010 FROM bloom_index_info('i')}), "0\n1000|0\n1000|0\nt", 'a prepared transaction');

#
# A snapshot of the standby sees rows that VACUUM leaves out, because a cursor
# keeps it from removing them: the index tells nothing to that snapshot.
#
$primary->safe_psql('postgres', q{TRUNCATE t; INSERT INTO t SELECT generate_series(1, 100)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$far = BloomTest::Session->new($standby, 'postgres');
$far->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
my $near = BloomTest::Session->new($primary, 'postgres');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id <= 50');
$near->query('BEGIN; DECLARE c CURSOR FOR SELECT * FROM t; FETCH c');
$primary->safe_psql('postgres', 'VACUUM t');
is($primary->safe_psql('postgres', q{SELECT bloom_index_contains('i', 1), bloom_index_contains('i', 51)}), 'f|t', 'rows that are dead are left out');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(($far->query(q{SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('i', id)), bloom_index_contains('i', -1) FROM t}))[0],
	'100|0|t', 'an older snapshot of the standby finds its rows');
is($standby->safe_psql('postgres', q{SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('i', id)), bloom_index_contains('i', 1) FROM t}),
	'50|0|f', 'a new one does not');
$_->quit foreach $far, $near;

#
# What a deleted row has stored outside of it is removed while VACUUM reads the
# table.  A snapshot that still sees such a row finds every key.
#
$primary->safe_psql('postgres', q{
CREATE FUNCTION wait(bigint) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'pg_advisory_xact_lock_shared_int8';
CREATE TABLE outside (n int, k text);
ALTER TABLE outside ALTER k SET STORAGE EXTERNAL;
INSERT INTO outside SELECT i, repeat('x', 3000) || i FROM generate_series(0, 20) i;
CREATE INDEX outside_k ON outside USING bloomfilter ((k || left('', wait(1 + length(k) * 0)))) WITH (rebuild_scale_factor = 0)});
my $toast = $primary->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'outside'});
my $count = q{SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('outside_k', k)), bloom_index_contains('outside_k', '') FROM outside};
my $older = BloomTest::Session->new($primary, 'postgres');
$older->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
my $holder = BloomTest::Session->new($primary, 'postgres');
$holder->query('SELECT pg_advisory_lock(1)');
$primary->safe_psql('postgres', 'DELETE FROM outside WHERE n > 10');
$vacuum = BloomTest::Session->new($primary, 'postgres');
$vacuum->send('VACUUM outside');
ok($primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), 'VACUUM reads a row');
$older->query('COMMIT');
$primary->safe_psql('postgres', "VACUUM $toast");
my $now = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
$holder->query('SELECT pg_advisory_unlock(1)');
is(join('|', $vacuum->finish), '|', 'VACUUM does not need what is removed meanwhile');
is($primary->safe_psql('postgres', "SELECT last_rebuild < '$now' FROM bloom_index_info('outside_k')"), 't',
	'what was deleted before last_rebuild is forgotten, not all that was deleted before its end');
is($primary->safe_psql('postgres', $count), '11|0|f', 'keys that are left');
$older->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', 'DELETE FROM outside WHERE n > 5; VACUUM outside');
is(($older->query($count))[0], '11|0|t', 'an older snapshot finds every key');
is($primary->safe_psql('postgres', $count), '6|0|f', 'a new one does not');
$_->quit foreach $older, $holder, $vacuum;

#
# Autovacuum does it, and logs it.
#
$primary->safe_psql(
	'postgres', q{
CREATE FUNCTION may_fail(int, int) RETURNS int IMMUTABLE LANGUAGE internal AS 'int4pl';
CREATE TYPE own;
CREATE FUNCTION own_in(cstring) RETURNS own IMMUTABLE LANGUAGE internal AS 'int8in';
CREATE FUNCTION own_out(own) RETURNS cstring IMMUTABLE LANGUAGE internal AS 'int8out';
CREATE TYPE own (INPUT = own_in, OUTPUT = own_out, LIKE = int8);
CREATE FUNCTION own_equal(own, own) RETURNS boolean IMMUTABLE LANGUAGE internal AS 'int8eq';
CREATE FUNCTION own_hash(own) RETURNS int IMMUTABLE LANGUAGE internal AS 'hashint8';
CREATE FUNCTION own_hash(own, bigint) RETURNS bigint IMMUTABLE LANGUAGE internal AS 'hashint8extended';
CREATE OPERATOR = (LEFTARG = own, RIGHTARG = own, FUNCTION = own_equal, HASHES);
CREATE OPERATOR CLASS own DEFAULT FOR TYPE own USING hash AS OPERATOR 1 =, FUNCTION 1 own_hash(own), FUNCTION 2 own_hash(own, bigint);
CREATE TABLE old (id int, own own DEFAULT '1') WITH (autovacuum_vacuum_threshold = 2000000000, autovacuum_freeze_max_age = 100000,
  autovacuum_freeze_min_age = 0);
CREATE INDEX old_id ON old USING bloomfilter (may_fail(1, id)) WITH (rebuild_scale_factor = 0);
CREATE INDEX old_own ON old USING bloomfilter (own) WITH (rebuild_scale_factor = 0);
INSERT INTO old VALUES (1), (0);
DROP OPERATOR FAMILY own USING hash CASCADE;
CREATE OR REPLACE FUNCTION may_fail(int, int) RETURNS int IMMUTABLE LANGUAGE internal AS 'int4div';
CREATE TABLE a (id int) WITH (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0, log_autovacuum_min_duration = 0);
CREATE INDEX a_id ON a USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO a SELECT generate_series(1, 20000);
DELETE FROM a WHERE id > 1000;
ALTER SYSTEM SET autovacuum = on;
ALTER SYSTEM SET autovacuum_naptime = 1;
SELECT pg_reload_conf()});
ok($primary->poll_query_until('postgres', q{SELECT last_rebuild IS NOT NULL AND NOT bloom_index_contains('a_id', 20000) FROM bloom_index_info('a_id')}),
	'autovacuum rebuilds an index');
ok($primary->poll_query_until('postgres', q{SELECT last_autovacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'a'}), 'and ends');

# It is not cancelled as one that keeps others waiting, however many pages it makes.
$primary->safe_psql('postgres', q{
CREATE TABLE large (id bigint) WITH (autovacuum_vacuum_insert_threshold = 1, autovacuum_vacuum_insert_scale_factor = 0);
CREATE INDEX large_id ON large USING bloomfilter (id) WITH (fpp = 1e-6, expected = 100000000, rebuild_scale_factor = 0);
INSERT INTO large SELECT generate_series(1, 100000);
CREATE PROCEDURE insert_many() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1000 .. 100000 LOOP
    INSERT INTO large SELECT i * 1000::bigint + j FROM generate_series(1, 200) j;
    COMMIT;
    PERFORM pg_sleep(0.005);
    EXIT WHEN (SELECT last_rebuild IS NOT NULL FROM bloom_index_info('large_id'));
  END LOOP;
END $$});
my $writer = BloomTest::Session->new($primary, 'postgres');
$writer->query(q{SET deadlock_timeout = '30ms'});
is(join('|', $writer->query('CALL insert_many()')), '|', 'many rows are inserted meanwhile');
$writer->quit;
unlike(slurp_file($primary->logfile), qr/canceling autovacuum task(?s:.{0,200}large_id)/, 'no autovacuum is cancelled by who waits for it');

$primary->safe_psql('postgres', q{DO $$ BEGIN FOR i IN 1 .. 100001 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$});
ok($primary->poll_query_until('postgres', q{SELECT age(relfrozenxid) < 100000 FROM pg_class WHERE relname = 'old'}),
	'a VACUUM against wraparound evaluates no expression and hashes no key');
like(slurp_file($primary->logfile), qr/index "a_id": pages: \d+ in total, [1-9]\d* newly deleted/, 'which the log tells');

is(find_crashes($standby), '', 'nothing crashed on the standby');
$standby->stop;

# Where snapshots may get too old, nothing is rebuilt.
SKIP:
{
	skip 'snapshots never get too old', 1 if $primary->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
	$primary->append_conf('postgresql.conf', 'old_snapshot_threshold = 1min');
	$primary->restart;
	is($primary->safe_psql('postgres', q{
CREATE TABLE snapshots (id int);
CREATE INDEX snapshots_id ON snapshots USING bloomfilter (id) WITH (rebuild_scale_factor = 0);
INSERT INTO snapshots SELECT generate_series(1, 1000);
DELETE FROM snapshots;
VACUUM snapshots;
SELECT last_rebuild IS NULL FROM bloom_index_info('snapshots_id')}), 't', 'no rebuild with old_snapshot_threshold');
}
$primary->stop;

#
# With checksums, a page of a next set is logged before its first change after a
# checkpoint, as a crash may leave half of it in the file.
#
my $checked = new_node('checked', allows_streaming => 1, extra => [ '--encoding=UTF8', '--locale=C', '--data-checksums' ]);
$checked->append_conf('postgresql.conf', 'autovacuum = off');
$checked->start;
$checked->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE FUNCTION setting(text) RETURNS text IMMUTABLE LANGUAGE internal AS 'show_config_by_name';
CREATE FUNCTION wait(bigint) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'pg_advisory_xact_lock_shared_int8';
CREATE TABLE d (id int);
INSERT INTO d SELECT generate_series(1, 20000);
CREATE INDEX d_i ON d USING bloomfilter ((id + wait(2 - (setting('application_name') = 'vacuum')::int))) WITH (rebuild_scale_factor = 0)});
my ($file, $first) = split /\|/, $checked->safe_psql('postgres', q{SELECT pg_relation_filepath('d_i'), pages FROM bloom_index_info('d_i')});
$holder = BloomTest::Session->new($checked, 'postgres');
$holder->query('SELECT pg_advisory_lock(1)');
$vacuum = BloomTest::Session->new($checked, 'postgres');
$vacuum->query(q{SET application_name = 'vacuum'});
$vacuum->send('VACUUM d');
ok($checked->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), 'VACUUM has begun a next set');
$checked->safe_psql('postgres', 'CHECKPOINT');
$checked->safe_psql('postgres', 'INSERT INTO d SELECT generate_series(20001, 30000)');
my $last = $checked->safe_psql('postgres', q{SELECT pages - 1 FROM bloom_index_info('d_i')});
$checked->stop('immediate');
$_->abandon foreach $holder, $vacuum;
cmp_ok($last, '>', $first, "blocks $first to $last are of the next set");
open(my $handle, '+<:raw', $checked->data_dir . "/$file") or die;
foreach my $block ($first .. $last)
{
	seek($handle, $block * 8192 + 4096, 0);
	print $handle 'x' x 4096;
}
close($handle);
$checked->start;
is($checked->safe_psql('postgres', q{SELECT count(*) FROM d WHERE NOT bloom_index_contains('d_i', id)}), '0', 'no key is lost');
$checked->stop;
command_ok([ 'pg_checksums', '--check', '-D', $checked->data_dir ], 'all pages are intact');

#
# An index that lacks pages is rebuilt by the next VACUUM, also with -1, and fits
# the keys that came since.  A standby is promoted after half of the pages.
#
$checked->start;
$checked->backup('base');
$checked->safe_psql('postgres', q{
CREATE EXTENSION pg_walinspect;
CREATE TABLE g (id int);
INSERT INTO g SELECT generate_series(1, 50000);
CREATE INDEX g_i ON g USING bloomfilter ((id + wait(2 - (setting('application_name') = 'vacuum')::int)))
  WITH (fpp = 1e-6, rebuild_scale_factor = 0)});
my ($half, $pages) = split /\|/, $checked->safe_psql('postgres', q{
SELECT pg_current_wal_insert_lsn() AS start \gset
VACUUM g;
SELECT pg_switch_wal() \gset
SELECT start_lsn, pages
  FROM bloom_index_info('g_i'), pg_get_wal_records_info(:'start', pg_current_wal_flush_lsn())
 WHERE resource_manager = 'XLOG' AND record_type = 'FPI' AND block_ref ~ format('/%s .*blk %s\M', pg_relation_filenode('g_i'), pages / 2)
 ORDER BY start_lsn DESC LIMIT 1});
my $promoted = PostgreSQL::Test::Cluster->new('promoted');
$promoted->init_from_backup($checked, 'base', has_streaming => 1);
$promoted->append_conf('postgresql.conf', "recovery_target_lsn = '$half'\nrecovery_target_action = 'promote'");
$promoted->start;
ok($promoted->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), "promoted after half of $pages pages");
my (undef, undef, $message) = $promoted->psql('postgres', q{SELECT bloom_index_info('g_i')});
like($message, qr/index "g_i" lacks pages/, 'pages are lacking');
$promoted->safe_psql('postgres', q{
INSERT INTO g SELECT generate_series(50001, 80000);
ALTER INDEX g_i SET (rebuild_scale_factor = -1)});
$holder = BloomTest::Session->new($promoted, 'postgres');
$holder->query('SELECT pg_advisory_lock(1)');
$vacuum = BloomTest::Session->new($promoted, 'postgres');
$vacuum->query(q{SET application_name = 'vacuum'});
$vacuum->send('VACUUM g');
ok($promoted->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}), 'VACUUM reads the table');
(undef, undef, $message) = $promoted->psql('postgres', q{SELECT bloom_index_info('g_i')});
like($message, qr/index "g_i" lacks pages/, 'they lack until it has');
$holder->query('SELECT pg_advisory_unlock(1)');
is(join('|', $vacuum->finish), '|', 'VACUUM ends');
$_->quit foreach $holder, $vacuum;
is($promoted->safe_psql('postgres', q{
SELECT layers, index.bytes < 1.6 * sizing.bytes + 2 * 8192 AS size FROM bloom_index_info('g_i') index, bloom_sizing(1e-6, 80000) sizing;
SELECT count(*) FROM g WHERE NOT bloom_index_contains('g_i', id);
SELECT bloom_index_contains('g_i', 80001), bloom_index_check('g_i')}), "1|t\n0\nf|", 'VACUUM has rebuilt it');
$_->stop foreach $promoted, $checked;

done_testing();
