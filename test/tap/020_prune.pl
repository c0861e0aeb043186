# Queries by a key under preload, of prepared transactions and on a standby; what EXPLAIN tells of pruning from PostgreSQL 18 on; plans
# of many partitions hold few locks.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# What a session answers.
sub ask
{
	my ($session, $query) = @_;
	my ($out) = $session->query($query);

	return $out;
}

my $primary = new_node('primary', allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 5
max_locks_per_transaction = 256
autovacuum = off
});
$primary->start;

$primary->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE part (day int, id int) PARTITION BY RANGE (day);
DO $$
BEGIN
	FOR d IN 0 .. 999 LOOP
		EXECUTE format('CREATE TABLE part_%s PARTITION OF part FOR VALUES FROM (%s) TO (%s)', d, d, d + 1);
	END LOOP;
END $$;
CREATE INDEX part_id ON part USING bloomfilter (id) WITH (fpp = 1e-6);
INSERT INTO part SELECT i / 10, i FROM generate_series(0, 9999) i;
});
is($primary->safe_psql('postgres', q{
LOAD 'bloomfilter';
BEGIN;
SELECT day FROM part WHERE id = 5432;
SELECT count(*) <= 20 FROM pg_locks WHERE pid = pg_backend_pid();
COMMIT;}), "543\nt", 'a lookup in 1,000 partitions holds few locks');

# The statement that loads the library has gates: it is planned already.  With
# the library preloaded, the first one is pruned.
my $first = 'EXPLAIN (COSTS OFF) SELECT day FROM part WHERE id IN (17, -1)';
my $preloaded = "session_preload_libraries=bloomfilter";
unlike(
	$primary->safe_psql(
		'postgres', $first, extra_params => [ '-d', "dbname=postgres options='-c $preloaded'" ]),
	qr/part_2\b/,
	'the first statement of a session is pruned if the library is preloaded');

# The keys of a prepared transaction.
my $kept = q{LOAD 'bloomfilter'; PREPARE kept AS SELECT day FROM part WHERE id = 20000;};
my $session = BloomTest::Session->new($primary, 'postgres');
$session->query($kept);
is(ask($session, 'EXECUTE kept'), '', 'no such key');
$primary->safe_psql('postgres', q{BEGIN; INSERT INTO part VALUES (7, 20000); PREPARE TRANSACTION 'p'});
is(ask($session, 'EXECUTE kept'), '', 'key of a prepared transaction');
$primary->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is(ask($session, 'EXECUTE kept'), '7', 'key of a prepared transaction that was committed');

# What EXPLAIN tells.
SKIP:
{
	skip 'EXPLAIN has no hook', 1 if $primary->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	like(
		$primary->safe_psql('postgres', "LOAD 'bloomfilter'; EXPLAIN (COSTS OFF) SELECT day FROM part WHERE id IN (17, -1)"),
		qr/Index Pruning: 1 of 1000 partitions left by part_id/,
		'EXPLAIN tells how many partitions are left');
}

# On a standby, with kept plans and gates.
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
my $reader = BloomTest::Session->new($standby, 'postgres');
$reader->query($kept =~ s/20000/30000/r);
is(ask($reader, 'EXECUTE kept'), '', 'standby: no such key');
$primary->safe_psql('postgres', 'INSERT INTO part VALUES (8, 30000)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(ask($reader, 'EXECUTE kept'), '8', 'standby: a key that was replayed');
is(ask($reader, 'SELECT count(*) FROM part WHERE id = 30000'), '1', 'standby: a new plan');
is(ask($reader, 'SELECT count(*) FROM part WHERE id = 30001'), '0', 'standby: an absent key');
$primary->safe_psql('postgres', q{
CREATE TABLE later (day int, id int);
CREATE INDEX ON later USING bloomfilter (id);
INSERT INTO later VALUES (5000, 30002);
ALTER TABLE part ATTACH PARTITION later FOR VALUES FROM (5000) TO (5001);
REINDEX INDEX CONCURRENTLY part_8_id_idx;
INSERT INTO part VALUES (8, 30002);
});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(ask($reader, 'SELECT sum(day) FROM part WHERE id = 30002'), '5008', 'standby: partitions and indexes that are new');
is(ask($reader, 'EXECUTE kept'), '8', 'standby: a kept plan');
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO part VALUES (9, 30000)');
is(ask($reader, 'EXECUTE kept'), "8\n9", 'after promotion');

is(find_crashes($_), '', 'no crash') for $primary, $standby;
done_testing();
