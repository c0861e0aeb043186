# Keys of indexes in random transactions, and in sessions that load the library
# in the middle of a statement.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Random transactions that give an index another file, in subtransactions that
# are rolled back or not, and insert keys meanwhile: every row that a
# transaction sees is found in it, and by others after it.
#
my $seed = $ENV{BF_SEED} // 1;
my $transactions = $ENV{BF_LONG} ? 150 : 60;
srand $seed;

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
fsync = off
allow_in_place_tablespaces = on
client_min_messages = error
});
$node->start;
$node->safe_psql('postgres', q{CREATE TABLESPACE elsewhere LOCATION ''});
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE t (id int, filler int, name varchar(10), amount numeric(20, 2)) WITH (fillfactor = 50);
CREATE INDEX t_id ON t USING bloomfilter (id);
CREATE INDEX t_name ON t USING bloomfilter (name);
CREATE INDEX t_amount ON t USING bloomfilter (amount);
CREATE INDEX t_order ON t (id);
CREATE TABLE u (id int);
CREATE INDEX u_id ON u USING bloomfilter (id);
-- An error, unless every row is found.
CREATE FUNCTION look_up(moment text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  missing int[];
BEGIN
  SELECT array_agg(id) INTO missing FROM t WHERE NOT (bloom_index_contains('t_id', id)
    AND bloom_index_contains('t_name', name) AND bloom_index_contains('t_amount', amount));
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION '%: % are missing', moment, missing;
  END IF;
END $$;
});

my $key = 0;

# A statement and whether it is about savepoints is up to the caller.
sub statement
{
	my $first = $key + 1;
	my $n = (1, 3, 20, 3000)[ int rand 4 ];
	my @statements = (
		sub { $key += $n; "INSERT INTO t SELECT i, NULL, i, i FROM generate_series($first, $key) i" },
		sub { $key += $n; "INSERT INTO t SELECT i, NULL, i, i FROM generate_series($first, $key) i" },
		sub { $key += $n; "INSERT INTO t SELECT i, NULL, i, i FROM generate_series($first, $key) i" },
		sub { 'UPDATE t SET filler = 1 WHERE id % 3 = 0' },
		sub { 'UPDATE t SET id = id + 10000000 WHERE id % 7 = 0' },
		sub { 'DELETE FROM t WHERE id % 5 = 0' },
		sub { 'TRUNCATE t' },
		sub { 'REINDEX INDEX t_id' },
		sub { 'ALTER TABLE t ALTER filler TYPE ' . (int rand 2 ? 'int' : 'bigint') },
		sub { "ALTER TABLE t ALTER name TYPE varchar(@{[10 + int rand 20]})" },
		sub { "ALTER TABLE t ALTER amount TYPE numeric(@{[20 + int rand 20]}, 2)" },
		sub { 'ALTER TABLE t ADD CONSTRAINT c UNIQUE (id, name); ALTER TABLE t DROP CONSTRAINT c' },
		sub { 'ALTER TABLE t ALTER id SET NOT NULL; ALTER TABLE t ALTER name TYPE varchar(99), ALTER amount TYPE numeric(50, 2)' },
		sub { 'DROP INDEX t_name; CREATE INDEX t_name ON t USING bloomfilter (name)' },
		sub { 'ALTER INDEX t_name SET TABLESPACE ' . (int rand 2 ? 'elsewhere' : 'pg_default') },
		sub { 'ALTER INDEX t_id SET TABLESPACE ' . (int rand 2 ? 'elsewhere' : 'pg_default') },
		sub { 'ALTER TABLE t SET ' . (int rand 2 ? 'LOGGED' : 'UNLOGGED') },
		sub { 'CLUSTER t USING t_order' },
		sub { 'SET LOCAL work_mem = ' . (64, 4096)[ int rand 2 ] },
		sub { q{SELECT look_up('within')} });

	return $statements[ int rand @statements ]->();
}

sub transaction
{
	my @script = ('BEGIN');
	my @savepoints;

	foreach my $i (1 .. 4 + int rand 14)
	{
		my $choice = rand;

		if ($choice < 0.2)
		{
			push @savepoints, "s$i";
			push @script, "SAVEPOINT s$i";
		}
		elsif ($choice < 0.35 && @savepoints)
		{
			my $which = int rand @savepoints;

			push @script,
			  ($choice < 0.28 ? 'ROLLBACK TO ' : 'RELEASE ') . $savepoints[$which];
			$#savepoints = $choice < 0.28 ? $which : $which - 1;
			push @script, q{SELECT look_up('after a savepoint')};
		}
		else
		{
			push @script, statement();
		}
	}
	push @script, q{SELECT look_up('at the end')},
	  rand() < 0.85 ? 'COMMIT' : 'ROLLBACK';
	push @script, q{SELECT look_up('afterwards')},
	  q{SELECT bloom_index_check(i::regclass) FROM (VALUES ('t_id'), ('t_name'), ('t_amount')) AS indexes (i)};
	return @script;
}

my $failed = '';
my $rolled_back = 0;
foreach my $i (1 .. $transactions)
{
	my @script = transaction();
	my ($status, $out, $err) =
	  $node->psql('postgres', join(";\n", @script) . ';', on_error_stop => 1);

	$rolled_back += grep { /^ROLLBACK TO/ } @script;
	if ($status != 0)
	{
		$failed = "seed $seed, transaction $i: $err\n" . join(";\n", @script);
		last;
	}
}
is($failed, '', "every row is found in $transactions transactions");
cmp_ok($rolled_back, '>', $transactions / 4, 'savepoints were rolled back');

# A parallel plan that is started before a row is inserted, and executed after.
# Its worker sees the row, and finds its key.
$node->safe_psql('postgres', q{
CREATE FUNCTION seen_and_found(key int) RETURNS text LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS
$$ BEGIN RETURN concat_ws(' ', EXISTS (SELECT FROM u WHERE id = key), bloom_index_contains('u_id', key)); END $$});
my $parallel = $node->safe_psql('postgres', q{
SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
$node->safe_psql('postgres', "ALTER DATABASE postgres SET $parallel = on");
my $wire = BloomTest::Wire->new($node, 'postgres');
is($wire->execute_backwards(
		'SELECT seen_and_found(4711)', 'INSERT INTO u VALUES (4711)'),
	't t', 'parallel plan of before an INSERT');
$wire->quit;

# The library is loaded by the statement that inserts a key, or by one within
# it, before parallel workers look the key up.
$node->safe_psql('postgres', qq{
ALTER DATABASE postgres RESET $parallel;
CREATE TABLE seen (id int);
CREATE INDEX seen_id ON seen USING bloomfilter (id);
CREATE TABLE seen_parts (id int, part int) PARTITION BY LIST (part);
CREATE TABLE seen_part PARTITION OF seen_parts FOR VALUES IN (1);
CREATE INDEX seen_parts_id ON seen_parts USING bloomfilter (id);
} . q{
CREATE TABLE built WITH (parallel_workers = 2) AS
	SELECT 42 AS x, repeat('x', 1000) AS pad FROM generate_series(1, 200);
CREATE FUNCTION was_seen(int) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid) THEN
		PERFORM pg_sleep(0.01);
	END IF;
	RETURN bloom_index_contains('seen_id', $1) OR bloom_index_contains('seen_parts_id', $1);
END $$;
CREATE FUNCTION see() RETURNS event_trigger LANGUAGE plpgsql SET search_path = public AS $$
DECLARE
	r record;
BEGIN
	IF NOT EXISTS (SELECT id FROM seen UNION ALL SELECT id FROM seen_part) THEN
		FOR r IN INSERT INTO seen VALUES (42) RETURNING id LOOP
		END LOOP;
	END IF;
END $$;
CREATE FUNCTION build() RETURNS void LANGUAGE sql AS 'CREATE INDEX built_x ON built (was_seen(x))';
CREATE EVENT TRIGGER see ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION see();
});
foreach my $statement (
	'SELECT build()',
	'COPY (SELECT build()) TO STDOUT',
	'BEGIN; INSERT INTO seen VALUES (42); SELECT build(); COMMIT',
	'BEGIN; INSERT INTO seen_parts VALUES (42, 1); SELECT build(); COMMIT',
	"BEGIN; COPY seen FROM stdin;\n42\n\\.\nSELECT build(); COMMIT",
	q{DO $$ BEGIN COPY seen FROM PROGRAM 'echo 42'; PERFORM build(); END $$},
	q{DO $$ BEGIN COPY seen_parts FROM PROGRAM 'printf "42\\t1\\n"'; PERFORM build(); END $$},
	q{DO $$ BEGIN INSERT INTO seen VALUES (42); COMMIT; PERFORM build(); END $$})
{
	local $ENV{PGOPTIONS} =
	  '-c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c client_min_messages=error';

	$node->safe_psql('postgres',
		'DROP INDEX IF EXISTS built_x; TRUNCATE seen, seen_parts');
	$node->safe_psql('postgres', $statement);
	is($node->safe_psql('postgres', q{
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT (SELECT count(*) FROM seen) + (SELECT count(*) FROM seen_parts), count(*) FROM built WHERE NOT was_seen(x)}),
		'1|0',
		"a key that comes in the statement that loads the library: "
		  . $statement =~ s/\n/ /gr);
}

#
# To look into many partitions takes as long when keys wait for each of them, and
# when the transaction has written some: the least CPU time of five, in
# nanoseconds, before, in the statement and after it.
#
SKIP:
{
skip 'no /proc/self/schedstat', 2 unless -r '/proc/self/schedstat';
$node->safe_psql('postgres', q{
CREATE TABLE parts (part int, id int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE parts_%1$s PARTITION OF parts FOR VALUES IN (%1$s)', i) FROM generate_series(0, 99) i \gexec
CREATE INDEX parts_id ON parts USING bloomfilter (id) WITH (fpp = 1e-9);
INSERT INTO parts SELECT i, 0 FROM generate_series(0, 99) i;
CREATE TABLE took (cpu bigint);
CREATE FUNCTION cpu() RETURNS bigint VOLATILE LANGUAGE sql AS
$$ SELECT split_part(pg_read_file('/proc/self/schedstat', 0, 100), ' ', 1)::bigint $$;
CREATE FUNCTION look_up_absent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
BEGIN
	PERFORM bloom_index_contains('parts_id', -1);
	FOR i IN 1 .. 5 LOOP
		began := cpu();
		PERFORM bloom_index_contains('parts_id', -j) FROM generate_series(1, 100) j;
		INSERT INTO took VALUES (cpu() - began);
	END LOOP;
	RETURN NULL;
END $$;
CREATE TRIGGER look AFTER INSERT ON parts FOR EACH STATEMENT EXECUTE FUNCTION look_up_absent()});
my ($before, $during, $after) = split /\n/, $node->safe_psql('postgres', q{
BEGIN;
SET LOCAL work_mem = '256MB';
INSERT INTO parts SELECT WHERE false;
SELECT min(cpu) FROM took; TRUNCATE took;
INSERT INTO parts SELECT i % 100, i FROM generate_series(1, 200000) i;
SELECT min(cpu) FROM took; TRUNCATE took;
INSERT INTO parts SELECT WHERE false;
SELECT min(cpu) FROM took;
COMMIT});
note("100 lookups in 100 partitions: $before ns, in the statement $during ns, after it $after ns");
cmp_ok($during, '<', 10 * $before, 'lookups while keys wait for each partition');
cmp_ok($after, '<', 10 * $before, 'lookups after that in the transaction');
}

# REPACK CONCURRENTLY inserts rows into a copy of the table, and then exchanges
# the files of its indexes before it says that it is done.
SKIP:
{
	skip 'no REPACK', 1
	  if $node->safe_psql('postgres', 'SHOW server_version_num') < 190000;
	$node->safe_psql('postgres', q{
ALTER SYSTEM SET wal_level = 'logical';
CREATE TABLE repacked (id int PRIMARY KEY);
CREATE INDEX repacked_id ON repacked USING bloomfilter (id);
INSERT INTO repacked SELECT generate_series(1, 1000)});
	$node->restart;
	my $writer = BloomTest::Session->new($node, 'postgres');
	my $repacker = BloomTest::Session->new($node, 'postgres');
	$writer->query('BEGIN; LOCK TABLE repacked IN ROW EXCLUSIVE MODE');
	$repacker->send('REPACK (CONCURRENTLY) repacked');
	$node->poll_query_until('postgres',
		q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'repacked'::regclass AND NOT granted});
	$writer->query(
		'INSERT INTO repacked SELECT generate_series(2001, 3000); COMMIT');
	$repacker->finish;
	is($node->safe_psql('postgres', q{SELECT count(*), bloom_index_check('repacked_id') FROM repacked}),
		'2000|', 'rows that come during REPACK CONCURRENTLY are found');
	$_->quit foreach $writer, $repacker;
}
is(find_crashes($node), '', 'nothing crashed');
$node->stop;

done_testing();
