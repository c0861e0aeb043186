# A transaction gives the index of a partition another file and inserts a row of
# its own, or exchanges the partitions of one, or adds one.  A session that has
# remembered what was there is told before the row is visible.  While the
# transaction is prepared, it waits for its locks in vain, or it does not remember.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('prune_file');
$node->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 1
allow_in_place_tablespaces = on
autovacuum = off
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION ''");

my $lookups = q{(SELECT sum(pg_stat_get_xact_numscans(oid)) FROM pg_class WHERE relname ~ '^part_[12]_id_idx$')};
my $asks = qq{BEGIN; SELECT $lookups AS before \\gset
EXECUTE pruned; SELECT $lookups - :before; COMMIT};

# A session that remembers, and what it answers during another one's
# transaction and after that.
sub check
{
	my ($what, $change, $waits, $committed) = @_;
	my $session;

	$node->safe_psql('postgres', q{
CREATE TABLE part (day int, id int, v text) PARTITION BY RANGE (day);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (1) TO (2);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (2) TO (3);
CREATE INDEX part_id ON part USING bloomfilter (id) WITH (fpp = 1e-6);
CREATE INDEX part_day ON part (day);
INSERT INTO part SELECT 1 + i % 2, i, 'old' FROM generate_series(1, 100) i;
CREATE TABLE part_3 PARTITION OF part FOR VALUES FROM (3) TO (5) PARTITION BY RANGE (day);
CREATE TABLE part_3_1 PARTITION OF part_3 FOR VALUES FROM (3) TO (4);
CREATE TABLE loose (LIKE part);
CREATE TABLE late (LIKE part);
INSERT INTO loose VALUES (3, 500, 'loose');
INSERT INTO late VALUES (4, 500, 'late')});
	$session = BloomTest::Session->new($node, 'postgres');
	$session->query(q{LOAD 'bloomfilter'; SET lock_timeout = '200ms';
PREPARE pruned AS SELECT v FROM part WHERE id = 500; EXECUTE pruned; EXECUTE pruned; EXECUTE pruned});
	is(($session->query($asks))[0], '0', "$what: what is remembered answers");
	$node->safe_psql('postgres', "BEGIN; $change; PREPARE TRANSACTION 'change'");
	like(($session->query('EXECUTE pruned'))[1], $waits ? qr/55P03/ : qr/^$/, "$what: prepared");
	is(($session->query($asks))[0], '2', "$what: prepared, the indexes answer") unless $waits;
	$node->safe_psql('postgres', "COMMIT PREPARED 'change'");
	is(($session->query('EXECUTE pruned'))[0], $committed, "$what: committed");
	$session->quit;
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS part, loose, late, part_3_1');
	return;
}

my $insert = q{INSERT INTO part VALUES (2, 500, 'new')};

check('tablespace', "ALTER INDEX part_2_id_idx SET TABLESPACE other; $insert", 1, 'new');
check('a subtransaction',
	"ALTER INDEX part_2_id_idx SET TABLESPACE other; SAVEPOINT s; ALTER INDEX part_2_id_idx SET TABLESPACE pg_default; ROLLBACK TO s; $insert",
	1, 'new');
check('reindex', "REINDEX INDEX part_2_id_idx; $insert", 1, 'new');
check('truncate', "TRUNCATE part_2; $insert", 1, 'new');
check('cluster', "CLUSTER part_2 USING part_2_day_idx; $insert", 1, 'new');
check('exchange',
	'ALTER TABLE part_3 DETACH PARTITION part_3_1; ALTER TABLE part_3 ATTACH PARTITION loose FOR VALUES FROM (3) TO (4)',
	1, 'loose');

# Readers of the table above do not wait.
check('attach', 'ALTER TABLE part_3 ATTACH PARTITION late FOR VALUES FROM (4) TO (5)', 0, 'late');

done_testing();
