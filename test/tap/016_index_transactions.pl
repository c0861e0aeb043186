# Keys of indexes that wait for the commit: random transactions, and another
# extension's callback before the commit.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use File::Basename;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Random transactions that give an index another file, in subtransactions that
# are rolled back or not, and insert keys meanwhile: every row that a
# transaction sees is found in it, and by others after it.
#
my $seed = $ENV{BF_SEED} // 1;
my $transactions = 150;
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
$node->safe_psql(
	'postgres', q{
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
		sub { q{SELECT bloom_index_check('u_id')} },     # writes the keys
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
is( $wire->execute_backwards(
		'SELECT seen_and_found(4711)', 'INSERT INTO u VALUES (4711)'),
	't t',
	'parallel plan of before an INSERT');
$wire->quit;


# The library is loaded within the statement, by an event trigger that adds a
# key, before parallel workers look it up.
$node->safe_psql(
	'postgres', q{
CREATE TABLE seen (id int);
CREATE INDEX seen_id ON seen USING bloomfilter (id);
CREATE TABLE built WITH (parallel_workers = 2) AS
	SELECT 42 AS x, repeat('x', 1000) AS pad FROM generate_series(1, 200);
CREATE FUNCTION was_seen(int) RETURNS boolean IMMUTABLE PARALLEL SAFE
LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid) THEN
		PERFORM pg_sleep(0.01);
	END IF;
	RETURN bloom_index_contains('seen_id', $1);
END $$;
CREATE FUNCTION see() RETURNS event_trigger LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
	INSERT INTO seen VALUES (42);
END $$;
TRUNCATE seen;
CREATE FUNCTION see_by_cursor() RETURNS event_trigger LANGUAGE plpgsql SET search_path = public AS $$
DECLARE
	r record;
BEGIN
	FOR r IN INSERT INTO seen VALUES (42) RETURNING id LOOP
	END LOOP;
END $$;
CREATE FUNCTION build() RETURNS void LANGUAGE sql AS 'CREATE INDEX built_x ON built (was_seen(x))';
CREATE PROCEDURE roll_back_and_build() LANGUAGE plpgsql AS $$
BEGIN
	ROLLBACK;
	CREATE INDEX built_x ON built (was_seen(x));
END $$;
CREATE EVENT TRIGGER see ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION see();
});
$node->safe_psql('postgres', "ALTER DATABASE postgres RESET $parallel");
my $dir = PostgreSQL::Test::Utils::tempdir();
PostgreSQL::Test::Utils::append_to_file("$dir/call", "CALL roll_back_and_build();\n");
foreach my $function ('see', 'see_by_cursor')
{
	$node->safe_psql(
		'postgres', qq{
DROP EVENT TRIGGER see;
CREATE EVENT TRIGGER see ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION $function()});
	foreach my $statement (
		'CREATE INDEX built_x ON built (was_seen(x))',
		q{DO 'BEGIN CREATE INDEX built_x ON built (was_seen(x)); END'},
		'SELECT build()',
		'COPY (SELECT build()) TO STDOUT',
		'CALL by the extended protocol')
	{
		local $ENV{PGOPTIONS} =
		  '-c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 -c parallel_tuple_cost=0 -c client_min_messages=error';

		$node->safe_psql('postgres', 'DROP INDEX IF EXISTS built_x; TRUNCATE seen');
		if ($statement =~ /^CALL/)
		{
			PostgreSQL::Test::Utils::system_or_bail('pgbench', '-n', '-M', 'extended', '-t', 1,
				'-f', "$dir/call", $node->connstr('postgres'));
		}
		else
		{
			$node->safe_psql('postgres', $statement);
		}
		is( $node->safe_psql(
				'postgres', q{
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT (SELECT count(*) FROM seen), count(*) FROM built WHERE NOT was_seen(x)}),
			'1|0',
			"a key that comes in the statement that loads the library: $function, $statement");
	}
}

is(find_crashes($node), '', 'nothing crashed');
$node->stop;

#
# Another extension's callback executes an INSERT just before the commit, which
# may be what loads this extension: its key is found.
#
SKIP:
{
	skip 'BLOOM_FAIL_ALLOC_LIBRARY names no library', 34
	  unless $ENV{BLOOM_FAIL_ALLOC_LIBRARY};

	# See test/fault/before_commit.c
	my $library =
	  dirname($ENV{BLOOM_FAIL_ALLOC_LIBRARY}) . '/test/fault/before_commit';

	$node = new_node('callback');
	$node->start;
	$node->safe_psql(
		'postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE FUNCTION execute_before_commit(text) RETURNS void AS '$library' LANGUAGE C;
CREATE TABLE t (id int);
CREATE INDEX t_id ON t USING bloomfilter (id);
CREATE PROCEDURE call_to_add(INOUT key int) LANGUAGE plpgsql AS 'BEGIN INSERT INTO t VALUES (key); END';
CREATE FUNCTION add_key(int) RETURNS void LANGUAGE sql AS 'INSERT INTO t VALUES (\$1)';
});

	$key = 0;
	my %scripts = (
		'implicit commit' => 'SELECT execute_before_commit($$INSERT$$)',
		'COMMIT' => 'BEGIN; SELECT execute_before_commit($$INSERT$$); COMMIT',
		'COMMIT of a DO block' =>
		  'DO $do$ BEGIN PERFORM execute_before_commit($$INSERT$$); COMMIT; END $do$',
		'second COMMIT of a DO block' =>
		  'DO $do$ BEGIN COMMIT; PERFORM execute_before_commit($$INSERT$$); COMMIT; END $do$',
		'by a cursor' =>
		  'SELECT execute_before_commit($$DO $d$ DECLARE r record; BEGIN FOR r IN INSERT RETURNING id LOOP END LOOP; END $d$ $$)',
		'by a cursor of CALL' =>
		  'SELECT execute_before_commit($$DO $d$ DECLARE r record; BEGIN PERFORM bloom_empty() @> 1; FOR r IN CALL call_to_add(KEY) LOOP END LOOP; END $d$ $$)',
		'VACUUM, which commits' =>
		  'SELECT execute_before_commit($$SELECT execute_before_commit($a$INSERT$a$)$$); VACUUM');

	foreach my $load ('', q{LOAD 'bloomfilter';}, 'TABLE t;')
	{
		foreach my $name (sort keys %scripts)
		{
			my $script = $scripts{$name};

			$key++;
			$script =~ s/INSERT/INSERT INTO t VALUES ($key)/;
			$script =~ s/KEY/$key/;
			$node->safe_psql('postgres', "$load\n$script;");
			is( $node->safe_psql(
					'postgres',
					"SELECT bloom_index_contains('t_id', id) FROM t WHERE id = $key"),
				't',
				"$load $name");
		}
	}

	# The keys of statements that load the extension wait, and those that come
	# after them in the transaction.
	my %statements = (
		'INSERT' => 'INSERT INTO t VALUES (1000)',
		'COPY' => "COPY t FROM stdin;\n1000\n\\.\n",
		'UPDATE' => 'UPDATE t SET id = 1000 WHERE id = 1',
		'a function' => 'SELECT add_key(1000)',
		'DO' => 'DO $$ BEGIN PERFORM add_key(1000); END $$',
		'a lookup, then INSERT' => 'SELECT bloom_empty() @> 1; INSERT INTO t VALUES (1000)',
		'a cursor, then INSERT' =>
		  'DECLARE c CURSOR FOR SELECT bloom_empty() @> i FROM generate_series(1, 2) i; FETCH c; INSERT INTO t VALUES (1000)');
	my @names = sort keys %statements;
	foreach my $trigger ('', 'CREATE EVENT TRIGGER idle ON sql_drop EXECUTE FUNCTION idle()')
	{
		$node->safe_psql(
			'postgres', qq{
CREATE OR REPLACE FUNCTION idle() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
$trigger});
		foreach my $name ($trigger eq '' ? @names : ('INSERT', 'COPY'))
		{
			$node->safe_psql('postgres', "BEGIN; $statements{$name};\nROLLBACK");
			is( $node->safe_psql('postgres', q{SELECT bloom_index_contains('t_id', 1000)}),
				'f',
				"$name: rolled back in the first transaction of a session $trigger");
		}
	}

	# A procedure that ends transactions, called by the extended protocol: after a
	# rollback, its portal has no statements.
	$node->safe_psql('postgres', q{
CREATE PROCEDURE roll_back_and_add() LANGUAGE plpgsql AS
$$ BEGIN ROLLBACK; INSERT INTO t VALUES (2000); END $$;
CREATE PROCEDURE add_and_commit() LANGUAGE plpgsql AS
$$ BEGIN ROLLBACK; PERFORM execute_before_commit('INSERT INTO t VALUES (3000)'); COMMIT; END $$});
	PostgreSQL::Test::Utils::append_to_file("$dir/$_", "CALL $_();\n")
	  for 'roll_back_and_add', 'add_and_commit';
	command_ok(
		[
			'pgbench', '-n', '-M', 'extended', '-t', 1, '-f', "$dir/$_",
			$node->connstr('postgres')
		],
		"extended protocol: $_") for 'roll_back_and_add', 'add_and_commit';
	is( $node->safe_psql(
			'postgres',
			q{SELECT id, bloom_index_contains('t_id', id) FROM t WHERE id >= 2000 ORDER BY id}),
		"2000|t\n3000|t",
		'extended protocol: keys are found');
	is(find_crashes($node), '', 'nothing crashed');
}

done_testing();
