# A base backup that was taken while filters changed, recovered to its end and
# to a point in time, and a dump in tar format: the filters are those of that
# moment, to the byte, and every key is found.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $primary = new_node('primary', has_archiving => 1, allows_streaming => 1);
$primary->start;
$primary->safe_psql(
	'postgres', q{
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

my $fingerprint = q{
SELECT name, md5(f::bytea), (SELECT count(*) FROM key)
	FROM filter ORDER BY name COLLATE "C";
SELECT md5(f::bytea) FROM small};
my $lost = q{
SELECT count(*) > 0, count(*) FILTER (WHERE NOT f @> k) FROM key, filter};

sub check_keys
{
	my ($node, $what, $db) = @_;

	is($node->safe_psql($db // 'postgres', $lost),
		't|0', "$what: every key is found");
	return;
}

#
# The backup, while another session goes on extending
#
my $session = BloomTest::Session->new($primary, 'postgres');
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
$primary->safe_psql(
	'postgres', q{
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
$restored->command_ok([ 'pg_restore', '--dbname', 'again', $tar ],
	'pg_restore, tar format');
is($restored->safe_psql('again', $fingerprint),
	$dumped, 'tar format: filters are the same');
check_keys($restored, 'tar format', 'again');

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  foreach $primary, $restored, $latest;
done_testing();
