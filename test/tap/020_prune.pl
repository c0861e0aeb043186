# Queries by a key under preload, of prepared transactions, behind logical
# replication and on a standby; of partitions that are merged and split; what
# EXPLAIN tells of pruning from PostgreSQL 18 on; plans of many partitions hold
# few locks and little memory; pages that are probed stay in memory.

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

my $primary = new_node('primary', allows_streaming => 'logical');
$primary->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 5
max_locks_per_transaction = 256
shared_buffers = 64MB
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

# Of partitions that PostgreSQL's own pruning leaves, few are opened without asking
# all indexes.
for my $n (125, 126)
{
	my $query = "EXPLAIN (COSTS OFF) SELECT FROM part WHERE day BETWEEN 1 AND $n AND id = 15";
	my $scans = () = $primary->safe_psql('postgres', "LOAD 'bloomfilter'; $query") =~ /Scan on part_/g;

	is($scans, $n == 125 ? 125 : 1, "$n of 1,000 partitions");
}

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

# A cursor of the protocol.  The first call loads the library.
my $wire = BloomTest::Wire->new($primary, 'postgres');
my @current = ('UPDATE part SET day = day WHERE CURRENT OF p1 RETURNING id', 'SELECT day FROM part WHERE id = 5432 FOR UPDATE');
$wire->execute_backwards(@current);
is($wire->execute_backwards(@current), "543\n5432", 'an UPDATE by a cursor of the protocol');
$wire->quit;

# What EXPLAIN tells.
SKIP:
{
	skip 'EXPLAIN has no hook', 2 if $primary->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	like(
		$primary->safe_psql('postgres', "LOAD 'bloomfilter'; EXPLAIN (COSTS OFF) SELECT day FROM part WHERE id IN (17, -1)"),
		qr/Index Pruning: 1 of 1000 partitions left by part_id/,
		'EXPLAIN tells how many partitions are left');
	$session->query('PREPARE explained AS SELECT day FROM part WHERE id = 25000; EXECUTE explained');
	$primary->safe_psql('postgres', 'INSERT INTO part VALUES (7, 25000)');
	like(ask($session, 'EXPLAIN (ANALYZE) EXECUTE explained'),
		qr/Index Pruning: 1 of 1000 partitions left by part_id/,
		'of a plan that is made again when it is executed');
}

# Rows that logical replication applies, by columns that have no other index.
my $applied = q{
CREATE TABLE applied (day int, id int, v text) PARTITION BY RANGE (day);
CREATE TABLE applied_1 PARTITION OF applied FOR VALUES FROM (1) TO (2);
CREATE TABLE applied_2 PARTITION OF applied FOR VALUES FROM (2) TO (3);
CREATE TABLE applied_3 PARTITION OF applied FOR VALUES FROM (3) TO (4);
ALTER TABLE applied REPLICA IDENTITY FULL;
ALTER TABLE applied_1 REPLICA IDENTITY FULL;
ALTER TABLE applied_2 REPLICA IDENTITY FULL;
ALTER TABLE applied_3 REPLICA IDENTITY FULL;
};
$primary->safe_psql('postgres', "$applied CREATE INDEX ON applied USING bloomfilter (id) WITH (fpp = 1e-6)");
create_database($primary, 'source', 'UTF8');
$primary->safe_psql('source', $applied);
$primary->safe_psql('source', 'CREATE PUBLICATION p FOR TABLE applied WITH (publish_via_partition_root)');
$primary->safe_psql('source', q{SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
$primary->safe_psql('postgres',
	    "CREATE SUBSCRIPTION s CONNECTION '"
	  . $primary->connstr('source') =~ s/'/''/gr
	  . "' PUBLICATION p WITH (create_slot = false, copy_data = false)");
$session->query(q{PREPARE applied AS SELECT string_agg(day || v, ', ' ORDER BY v) FROM applied WHERE id = 500});
is(ask($session, 'EXECUTE applied'), '', 'nothing was replicated');
foreach my $change (
	[ q{INSERT INTO applied VALUES (2, 500, 'a')}, '2a' ],
	[ q{UPDATE applied SET v = 'b' WHERE id = 500}, '2b' ],
	[ q{UPDATE applied SET day = 3 WHERE id = 500}, '3b' ],
	[ q{INSERT INTO applied VALUES (1, 500, 'c'), (3, 7, 'd')}, '3b, 1c' ],
	[ q{UPDATE applied SET id = 500 WHERE id = 7}, '3b, 1c, 3d' ],
	[ q{DELETE FROM applied WHERE day = 3}, '1c' ])
{
	$primary->safe_psql('source', $change->[0]);
	$primary->wait_for_catchup('s');
	is(ask($session, 'EXECUTE applied'), $change->[1], "replicated: $change->[0]");
}
$primary->safe_psql('postgres', 'DROP SUBSCRIPTION s');

# Partitions that become others, with the list of partitions that the session
# remembers.
SKIP:
{
	my $partitions = q{SELECT string_agg(t::text, ',') FROM bloom_index_partitions('part_id', 105) t};
	my $splits = q{PARTITION part_10 FOR VALUES FROM (10) TO (11), PARTITION part_11 FOR VALUES FROM (11) TO (12)};

	$session->query('PREPARE merged AS SELECT day FROM part WHERE id = 105');
	is(ask($session, "EXECUTE merged; $partitions"), "10\npart_10", 'before partitions are merged');
	my ($rc, $out, $err) =
	  $primary->psql('postgres', 'ALTER TABLE part MERGE PARTITIONS (part_10, part_11) INTO part_10_11');
	skip 'PostgreSQL does not merge partitions', 2 if $err =~ /syntax error/;
	is(ask($session, "EXECUTE merged; $partitions"), "10\npart_10_11", 'partitions that were merged');
	$primary->safe_psql('postgres', "ALTER TABLE part SPLIT PARTITION part_10_11 INTO ($splits)");
	is(ask($session, "EXECUTE merged; $partitions"), "10\npart_10", 'a partition that was split');
}

# More partitions than PostgreSQL can lock here.
SKIP:
{
	skip 'BF_LONG is not set', 2 unless $ENV{BF_LONG};
	$primary->safe_psql(
		'postgres', q{
CREATE TABLE wide (a int, b int, id int) PARTITION BY RANGE (a);
CREATE INDEX ON wide USING bloomfilter (id) WITH (fpp = 1e-6);
DO $$
BEGIN
	FOR a IN 0 .. 99 LOOP
		EXECUTE format('CREATE TABLE wide_%s PARTITION OF wide FOR VALUES FROM (%s) TO (%s) PARTITION BY RANGE (b)',
			a, a, a + 1);
		FOR b IN 0 .. 99 LOOP
			EXECUTE format('CREATE TABLE wide_%s_%s PARTITION OF wide_%s FOR VALUES FROM (%s) TO (%s)',
				a, b, a, b, b + 1);
		END LOOP;
		INSERT INTO wide SELECT a, i, a + i * 100 FROM generate_series(0, 99) i;
		COMMIT;
	END LOOP;
END $$;
});
	my $wide = BloomTest::Session->new($primary, 'postgres');
	is(ask($wide, q{
LOAD 'bloomfilter';
BEGIN;
SELECT a, b FROM wide WHERE id = 7777;
SELECT count(*) <= 20 FROM pg_locks WHERE pid = pg_backend_pid();
SELECT sum(total_bytes) < 100000000 FROM pg_backend_memory_contexts;
COMMIT}), "77|77\nt\nt", 'a lookup in 10,000 partitions holds few locks and takes little memory');
	my ($out, $err) = $wide->query('SET bloomfilter.index_pruning = off; SELECT a, b FROM wide WHERE id = 7777');
	like($err, qr/53200/, 'and is not possible without pruning');
}

# The buffer manager learns that pages are in use.
my $node = new_node('buffers');
$node->start;
SKIP:
{
	skip 'pg_buffercache is not installed', 1
	  if $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'}) eq '0';
	is($node->safe_psql('postgres', q{
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
CREATE EXTENSION pg_buffercache;
CREATE TABLE used (day int, id int) PARTITION BY RANGE (day);
DO $$
BEGIN
	FOR d IN 0 .. 9 LOOP
		EXECUTE format('CREATE TABLE used_%s PARTITION OF used FOR VALUES FROM (%s) TO (%s)', d, d, d + 1);
	END LOOP;
END $$;
INSERT INTO used SELECT i / 10, i FROM generate_series(0, 99) i;
CREATE INDEX ON used USING bloomfilter (id) WITH (fpp = 1e-6);
DO $$
BEGIN
	FOR i IN 1 .. 3000 LOOP
		EXECUTE 'SELECT day FROM used WHERE id = ' || -i;
	END LOOP;
END $$;
SELECT count(*), min(usagecount) FROM pg_buffercache WHERE relblocknumber > 0 AND relfilenode IN
	(SELECT pg_relation_filenode(indexrelid) FROM pg_index
	WHERE indrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'used'::regclass));
}), '10|5', 'pages that are probed are in use');
}
$node->stop;

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
is(ask($reader, 'SELECT count(*) FROM part WHERE id = 30003'), '0', 'standby: a key that is not there yet');
$primary->safe_psql('postgres', q{
INSERT INTO part SELECT 9, i FROM generate_series(40000, 45000) i;
INSERT INTO part VALUES (9, 30003);
});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(ask($reader, 'SELECT count(*) FROM part WHERE id = 30003'), '1', 'standby: a layer that was replayed');

# A join that has all of its locks already.  On the primary, an index is dropped
# concurrently, which waits for sessions there and not for those of a standby:
# once it is dead, it lacks new keys.
my ($first_wait, $second_wait, $dropping) = map { BloomTest::Session->new($primary, 'postgres') } 1 .. 3;
my $wait_for = sub {
	my ($condition) = @_;
	$primary->poll_query_until('postgres', "SELECT $condition FROM pg_index WHERE indexrelid = 'joined_id'::regclass");
};
$primary->safe_psql('postgres', q{
CREATE TABLE joined AS SELECT i AS id FROM generate_series(1, 20000) i;
CREATE INDEX joined_id ON joined USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE TABLE wanted AS SELECT 1000000 AS id;
ANALYZE joined, wanted;
});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$reader->query(q{SET bloomfilter.join_filters = force; SET enable_nestloop = off; SET enable_mergejoin = off;
PREPARE joins AS SELECT id FROM joined JOIN wanted USING (id); BEGIN});
is(ask($reader, 'EXECUTE joins'), '', 'standby: a join');
$first_wait->query('BEGIN; LOCK TABLE joined IN ACCESS SHARE MODE');
$dropping->send('DROP INDEX CONCURRENTLY joined_id');
$wait_for->('NOT indisvalid');
$second_wait->query('BEGIN; LOCK TABLE joined IN ACCESS SHARE MODE');
$first_wait->query('COMMIT');
$wait_for->('NOT indislive');
$primary->safe_psql('postgres', 'INSERT INTO joined VALUES (1000000)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(ask($reader, 'EXECUTE joins'), '1000000', 'standby: a join does not ask a dead index');
$reader->query('COMMIT');
$second_wait->query('COMMIT');
$dropping->finish;
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO part VALUES (9, 30000)');
is(ask($reader, 'EXECUTE kept'), "8\n9", 'after promotion');

is(find_crashes($_), '', 'no crash') for $primary, $standby;
done_testing();
