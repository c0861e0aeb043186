# Another extension's callback executes an INSERT just before the commit, which
# may be what loads this extension: its key is found.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use File::Basename;
use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# See test/fault/before_commit.c
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
my $library =
  dirname($ENV{BLOOM_FAIL_ALLOC_LIBRARY}) . '/test/fault/before_commit';

my $node = new_node('main');
$node->start;
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE FUNCTION execute_before_commit(text) RETURNS void AS '$library' LANGUAGE C;
CREATE TABLE t (id int);
CREATE INDEX t_id ON t USING bloomfilter (id);
});

my $key = 0;
my %scripts = (
	'implicit commit' => 'SELECT execute_before_commit($$INSERT$$)',
	'COMMIT' => 'BEGIN; SELECT execute_before_commit($$INSERT$$); COMMIT',
	'COMMIT of a DO block' =>
	  'DO $do$ BEGIN PERFORM execute_before_commit($$INSERT$$); COMMIT; END $do$',
	'second COMMIT of a DO block' =>
	  'DO $do$ BEGIN COMMIT; PERFORM execute_before_commit($$INSERT$$); COMMIT; END $do$',
	'VACUUM, which commits' =>
	  'SELECT execute_before_commit($$SELECT execute_before_commit($a$INSERT$a$)$$); VACUUM');

foreach my $load ('', q{LOAD 'bloomfilter';}, 'TABLE t;')
{
	foreach my $name (sort keys %scripts)
	{
		my $script = $scripts{$name};

		$key++;
		$script =~ s/INSERT/INSERT INTO t VALUES ($key)/;
		$node->safe_psql('postgres', "$load\n$script;");
		is( $node->safe_psql(
				'postgres',
				"SELECT bloom_index_contains('t_id', id) FROM t WHERE id = $key"),
			't',
			"$load $name");
	}
}

# Whatever it is that loads the extension, keys of other statements wait.
foreach my $name ('INSERT', 'COPY', 'DO', 'CALL')
{
	my %statements = (
		INSERT => 'INSERT INTO t VALUES (1000)',
		COPY => "COPY t FROM stdin;\n1000\n\\.\n",
		DO => 'DO $$ BEGIN INSERT INTO t VALUES (1000); END $$',
		CALL => 'CALL add()');

	$node->safe_psql('postgres', q{
CREATE OR REPLACE PROCEDURE add() LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO t VALUES (1000); END $$});
	$node->safe_psql('postgres', "BEGIN; $statements{$name};\nROLLBACK");
	is( $node->safe_psql('postgres', q{SELECT bloom_index_contains('t_id', 1000)}),
		'f', "$name: rolled back in the first transaction of a session");
}

# A procedure that ends transactions, called by the extended protocol: after a
# rollback, its portal has no statements.
my $dir = PostgreSQL::Test::Utils::tempdir();
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

done_testing();
