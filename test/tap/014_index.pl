# Indexes after kill -9, on replicas, after point-in-time recovery, while they
# are rebuilt; with damaged pages, and on a full disk.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;
use Time::HiRes qw(usleep);

#
# Indexes of access method bloomfilter find every committed row: after kill -9
# of the server during inserts and growth, of prepared transactions, on a
# replica while it replays, after promotion and point-in-time recovery, and
# while they are rebuilt concurrently.
#
my $rounds = $ENV{BF_LONG} ? 5 : 2;
my $clients = 4;

my $node = new_node('main', allows_streaming => 'logical', has_archiving => 1);
$node->append_conf(
	'postgresql.conf', q{
max_prepared_transactions = 10
wal_consistency_checking = 'generic'
checkpoint_timeout = 30s
max_wal_size = 64MB
shared_buffers = 4MB
restart_after_crash = on
});
$node->start;

# Only what follows the base backup is archived.
$node->safe_psql('postgres', q{ALTER SYSTEM SET archive_command = 'true'});
$node->reload;

# A small first layer, so that there is growth all the time; and a large one,
# in which each key is on a page of its own.
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE SEQUENCE ids;
CREATE TABLE t (id bigint, note text);
CREATE INDEX small ON t USING bloomfilter (id) WITH (expected = 100);
CREATE INDEX large ON t USING bloomfilter (md5(id::text)) WITH (expected = 3e5);
CREATE UNLOGGED TABLE u (id bigint);
CREATE INDEX unlogged ON u USING bloomfilter (id);
});

my $dir = PostgreSQL::Test::Utils::tempdir();

sub script
{
	my ($name, $sql) = @_;
	PostgreSQL::Test::Utils::append_to_file("$dir/$name", $sql);
	return ('-f', "$dir/$name");
}

# Single rows, batches that grow, subtransactions, prepared transactions.
my @single = script('single', q{
INSERT INTO t SELECT nextval('ids'), 'single';
});
my @batch = script('batch', q{
\set n random(1, 250)
BEGIN;
INSERT INTO t SELECT nextval('ids'), 'batch' FROM generate_series(1, :n);
SAVEPOINT s;
INSERT INTO t SELECT nextval('ids'), 'aborted' FROM generate_series(1, 10);
ROLLBACK TO s;
INSERT INTO u SELECT currval('ids');
UPDATE t SET note = 'updated' WHERE ctid = '(1,1)';
COMMIT;
});
my @prepared = script('prepared', q{
BEGIN;
INSERT INTO t SELECT nextval('ids'), 'prepared' FROM generate_series(1, 100);
PREPARE TRANSACTION 'client :client_id';
COMMIT PREPARED 'client :client_id';
});

# pgbench in the background, until the server dies or it is stopped.
sub start_load
{
	my ($server, @scripts) = @_;
	my %load = (out => '');
	$load{run} = IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-j', 2, '-T', 600, @scripts,
			$server->connstr('postgres') ],
		'>', \$load{out}, '2>&1');
	return \%load;
}

sub end_load
{
	my ($load) = @_;
	$load->{run}->kill_kill;
	return $load->{out};
}

# Where process 1 reaps no orphans, as in some containers, a postmaster that was
# killed remains as a zombie, and its lock files seem to be in use.
sub remove_lock_files_of_zombie
{
	my ($server, $pid) = @_;
	my $directory = $server->data_dir;

	return
	  unless -r "/proc/$pid/stat" && slurp_file("/proc/$pid/stat") =~ /\) Z /;
	return if grep { (readlink("$_/cwd") // '') eq $directory } glob '/proc/[0-9]*';
	unlink "$directory/postmaster.pid",
	  $server->host . '/.s.PGSQL.' . $server->port . '.lock';
	return;
}

# Kill the server, and start it when all of its processes are gone.
sub crash
{
	my ($server, $load) = @_;
	my ($pid) = slurp_file($server->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	$server->kill9;
	end_load($load) if $load;
	for (1 .. 100)
	{
		usleep(100_000);
		remove_lock_files_of_zombie($server, $pid);
		return if $server->start(fail_ok => 1);
		$server->{_pid} = undef;
	}
	die 'the server does not start';
}

# Commit what the load has left prepared.
sub commit_prepared
{
	$node->safe_psql('postgres', "COMMIT PREPARED '$_'")
	  foreach split /\n/,
	  $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	return;
}

sub check
{
	my ($server) = @_;
	my ($status, $out, $err) = $server->psql('postgres', q{
SELECT bloom_index_check('small');
SELECT bloom_index_check('large');
});
	return $err;
}

for my $round (1 .. $rounds)
{
	# Each time at another moment.
	my $load = start_load($node, @single, @batch, @prepared);
	usleep(300_000 + 170_000 * $round);
	crash($node, $load);
	commit_prepared();
	is(check($node), '', "every row is found after kill -9, round $round");
}
is($node->safe_psql('postgres', q{
SELECT (SELECT count(*) FROM t) > 1000, (bloom_index_info('small')).layers > 2,
	   (SELECT count(*) FROM t WHERE note = 'prepared') > 0}), 't|t|t', 'the load was what it should be');
is($node->safe_psql('postgres', q{
SELECT count(*) FROM u;
SELECT layers FROM bloom_index_info('unlogged');
INSERT INTO u VALUES (1);
SELECT bloom_index_check('unlogged')}), "0\n0\n", 'an unlogged index is empty after a crash, and usable');

# A backend that dies takes the others along.
my $load = start_load($node, @batch);
usleep(700_000);
my $clients_of_load =
  q{FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()};
$node->poll_query_until('postgres', "SELECT count(*) > 0 $clients_of_load");
my $pid = $node->safe_psql('postgres', "SELECT min(pid) $clients_of_load");
kill 'KILL', $pid;
end_load($load);

# Not by a query: a psql that cannot connect does not read it.
for (1 .. 600)
{
	last if PostgreSQL::Test::Utils::run_log([ 'pg_isready', '-d', $node->connstr('postgres') ]);
	usleep(100_000);
}
is(check($node), '', 'every row is found after kill -9 of a backend');

# A transaction that was prepared before a crash and committed after it.
$node->safe_psql('postgres', q{
BEGIN;
INSERT INTO t SELECT nextval('ids'), 'before crash' FROM generate_series(1, 5000);
PREPARE TRANSACTION 'before crash'});
crash($node);
$node->safe_psql('postgres', q{COMMIT PREPARED 'before crash'});
is(check($node), '', 'every row of a prepared transaction is found');

# A replica: what is visible there is found there, while it replays.
$node->safe_psql('postgres',
	q{SELECT pg_create_physical_replication_slot('replica', true)});
$node->safe_psql('postgres', 'ALTER SYSTEM RESET archive_command');
$node->reload;
$node->poll_query_until('postgres',
	q{SELECT current_setting('archive_command') <> 'true'});
$node->backup('base');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($node, 'base', has_streaming => 1);
$replica->append_conf('postgresql.conf',
	"hot_standby_feedback = on\nmax_standby_streaming_delay = -1\n"
	  . "primary_slot_name = 'replica'\narchive_mode = off\n");
$replica->start;
$node->safe_psql('postgres', 'TRUNCATE t');
$node->wait_for_catchup($replica, 'replay', $node->lsn('insert'));
$load = start_load($node, @single, @batch, @prepared, '-R', 150);
my $lost = 0;
my $seen = 0;
for (1 .. 8)
{
	usleep(100_000);
	my ($rows, $missed) = split /\|/,
	  $replica->safe_psql('postgres', q{
SELECT count(*), count(*) FILTER (WHERE NOT bloom_index_contains('small', id)
		OR NOT bloom_index_contains('large', md5(id::text))) FROM t});
	$lost += $missed;
	$seen = $rows;
}
end_load($load);
commit_prepared();
is($lost, 0, 'every row that a replica sees is found there');
cmp_ok($seen, '>', 100, 'the replica has seen rows');
$node->wait_for_catchup($replica, 'replay', $node->lsn('insert'));
is(check($replica), '', 'the check passes on a replica');

# A layer for a million keys, of which it has one: more pages than are logged at once.
$node->safe_psql('postgres', q{
CREATE TABLE sparse (id bigint);
CREATE INDEX sparse_id ON sparse USING bloomfilter (id) WITH (expected = 1e6);
INSERT INTO sparse VALUES (1)});
$node->wait_for_catchup($replica, 'replay', $node->lsn('insert'));
my ($status, $out, $err) = $replica->psql('postgres', q{
SELECT pages > 128, bloom_index_check('sparse_id') FROM bloom_index_info('sparse_id')});
is("$out$err", 't|', 'a replica has pages without keys');
is($replica->safe_psql('postgres', q{SELECT md5(bloom_index_filter('small')::bytea)}),
	$node->safe_psql('postgres', q{SELECT md5(bloom_index_filter('small')::bytea)}),
	'a replica has the same bits');
($status, $out, $err) =
  $replica->psql('postgres', q{SELECT bloom_index_contains('unlogged', 1)});
like($err, qr/cannot access unlogged index "unlogged" during recovery/,
	'an unlogged index cannot be used on a replica');

# Promotion, and growth after it.
$replica->promote;
$replica->safe_psql('postgres',
	q{INSERT INTO t SELECT -i, 'promoted' FROM generate_series(1, 300000) i});
is(check($replica), '', 'the check passes after promotion');
$replica->stop;
$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('replica')});

# Point-in-time recovery to the middle of the load.
$load = start_load($node, @single, @batch, '-R', 150);
usleep(400_000);
$node->safe_psql('postgres', q{SELECT pg_create_restore_point('middle')});
usleep(400_000);
end_load($load);
my $wal = $node->safe_psql('postgres',
	'SELECT pg_walfile_name(pg_current_wal_lsn())');
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$node->poll_query_until('postgres',
	"SELECT last_archived_wal >= '$wal' FROM pg_stat_archiver");
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'base', has_restoring => 1);
$restored->append_conf(
	'postgresql.conf', q{
recovery_target_name = 'middle'
recovery_target_action = 'promote'
archive_mode = off
});
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
  or die 'the recovery does not end';
is(check($restored), '', 'the check passes after point-in-time recovery');
cmp_ok($restored->safe_psql('postgres', 'SELECT count(*) FROM t'), '>', 1000, 'rows were restored');
$restored->stop;

# Logical replication: an index on the subscriber follows.
my $subscriber = new_node('subscriber');
$subscriber->start;
my $source = $node->connstr . ' dbname=postgres';
$node->safe_psql('postgres', q{
CREATE TABLE published (id int PRIMARY KEY, note text);
INSERT INTO published SELECT i, 'copied ' || i FROM generate_series(1, 2000) i;
CREATE PUBLICATION p FOR TABLE published});
$subscriber->safe_psql('postgres', qq{
CREATE EXTENSION bloomfilter;
CREATE TABLE published (id int PRIMARY KEY, note text);
CREATE INDEX notes ON published USING bloomfilter (note) WITH (expected = 100);
CREATE SUBSCRIPTION s CONNECTION '$source' PUBLICATION p});
$subscriber->poll_query_until('postgres',
	q{SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel});
$node->safe_psql('postgres', q{
INSERT INTO published SELECT i, 'inserted ' || i FROM generate_series(2001, 4000) i;
UPDATE published SET note = 'updated ' || id WHERE id % 10 = 0});
$node->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', q{
SELECT bloom_index_contains('notes', 'copied 1'), bloom_index_contains('notes', 'inserted 3999'),
	   bloom_index_contains('notes', 'updated 4000'), count(*) FROM published;
SELECT bloom_index_check('notes')}), "t|t|t|4000\n", 'an index on a subscriber follows');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->stop;

# Rebuilding concurrently: each session finds the key that it has committed,
# and no statement fails.
$node->safe_psql('postgres', q{
TRUNCATE t;
CREATE INDEX rebuilt ON t USING bloomfilter (id)});
my @probe = script('probe', q{
SELECT nextval('ids') AS id \gset
INSERT INTO t VALUES (:id, 'probe');
SELECT 1 / bloom_index_contains('rebuilt', :id)::int;
BEGIN;
SELECT 1 / bloom_index_contains('rebuilt', :id)::int;
INSERT INTO t VALUES (-(:id::bigint), 'probe');
SELECT 1 / bloom_index_contains('rebuilt', -(:id::bigint))::int;
COMMIT;
SELECT 1 / bloom_index_contains('rebuilt', -(:id::bigint))::int;
});
$load = start_load($node, @probe, '-M', 'prepared');
for (1 .. 8)
{
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY rebuilt');
	$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY another ON t USING bloomfilter (id)');
	$node->safe_psql('postgres', q{SELECT bloom_index_check('another')});
	$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY another');
}
$load->{run}->pump_nb;
my $output = end_load($load);
unlike($output, qr/ERROR|aborted/, 'no lookup fails while an index is rebuilt');
is($node->safe_psql('postgres', q{SELECT bloom_index_check('rebuilt')}),
	'', 'the check passes after rebuilding');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM t WHERE note = 'probe'}),
	'>', 100, 'there were lookups');

# A snapshot that is imported while an index is built concurrently, so that
# nobody waits for it: it sees a row that was deleted before.
$node->safe_psql('postgres', q{
CREATE TABLE imports (id int);
INSERT INTO imports SELECT generate_series(1, 1000)});
my $exporter = BloomTest::Session->new($node, 'postgres');
my $builder = BloomTest::Session->new($node, 'postgres');
my $importer = BloomTest::Session->new($node, 'postgres');
my ($snapshot) = $exporter->query(
	'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_export_snapshot()');
$node->safe_psql('postgres', 'DELETE FROM imports WHERE id = 1');
$builder->send('CREATE INDEX CONCURRENTLY imported ON imports USING bloomfilter (id)');
$node->poll_query_until('postgres',
	q{SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'virtualxid' AND NOT granted});
$importer->query(
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '$snapshot'; SELECT 1"
);
$exporter->query('COMMIT');
$builder->finish;
my ($imported) = $importer->query(q{SELECT id, bloom_index_contains('imported', id) FROM imports WHERE id = 1});
is($imported, '1|t', 'a row that an imported snapshot sees is found');
$_->quit foreach $exporter, $builder, $importer;

# The recipe for one prize a user (demo/recipes/indexes.sql): of concurrent
# requests, one wins.
my ($recipe) =
  slurp_file("$FindBin::RealBin/../../demo/recipes/indexes.sql") =~
  /^(CREATE TABLE prizes .*?^END \$\$;)/ms;
$node->safe_psql('postgres', $recipe);
my @prize = script('prize', q{
\set who random(1, 40)
\set campaign random(1, 40)
SELECT take_part(:campaign, :who);
});
PostgreSQL::Test::Utils::run_log(
	[
		'pgbench', '-n', '-c', 8, '-j', 2, '-t', 500, '-M', 'prepared',
		@prize, $node->connstr('postgres')
	]);
is($node->safe_psql('postgres', q{
SELECT count(*) > 1000, count(*) = count(DISTINCT (campaign, who)) FROM prizes}
	),
	't|t', 'one prize a user');

is(find_crashes($node) =~ s/.*terminated by signal 9.*\n?//rg, '', 'nothing else crashed');
$node->stop;

#
# Damaged pages of an index raise an error that names the index and the block;
# the check finds what lookups cannot notice; a full disk or a lack of memory
# leaves the index as it was.
#
$node = new_node('damage');
$node->append_conf('postgresql.conf', "autovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 60000) i;
CREATE INDEX i ON t USING bloomfilter (id) WITH (expected = 30000);
INSERT INTO t SELECT generate_series(60001, 200000);
CREATE TABLE lost (id int);
CREATE INDEX lost_id ON lost USING bloomfilter (id) WITH (expected = 30000);
INSERT INTO lost VALUES (1);
});
is($node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('i')}),
	2, 'the index has two layers');
my $path = $node->safe_psql('postgres', q{SELECT pg_relation_filepath('i')});
my $pages =
  $node->safe_psql('postgres', q{SELECT pages FROM bloom_index_info('i')});
my $file = $node->data_dir . "/$path";

sub read_file
{
	open my $in, '<:raw', $file or die "$file: $!";
	local $/;
	return scalar <$in>;
}

sub write_file
{
	my ($content) = @_;
	open my $out, '>:raw', $file or die "$file: $!";
	print $out $content;
	close $out or die "$file: $!";
	return;
}

$node->stop;
my $good = read_file();
my $size = 8192;
is(length $good, $pages * $size, 'the file has the pages');

# Offsets: content 24, on the meta page: magic; at the end 8176: bits set,
# number 8180, set 8184, layer 8189, id 8190.
my @damages = (
	[ 'meta page of zeros', 0, 0, "\0" x $size, 'contains|info|filter|check|insert' ],
	[ 'magic', 0, 24, "\1\2\3\4", 'contains|info|filter|check|insert' ],
	[ 'page of zeros', 1, 0, "\0" x $size, 'all|check' ],
	[ 'page of another number', 1, 8180, pack('L', 1), 'all|check' ],
	[ 'page of another set', 1, 8184, "\2", 'all|check' ],
	[ 'page of another layer', 1, 8189, "\1", 'all|check' ],
	[ 'page id', 1, 8190, "\0", 'all|check' ],
	[ 'set bits out of range', 1, 8176, "\xff" x 4, 'all|check' ],
	[ 'page without keys', 1, 8176, "\0" x 4, 'all|check' ],
	[ 'bits that vanished', 1, 24, "\0" x 200, 'check' ],
	[ 'bits that came', 1, 24, "\xff" x 200, 'check' ],
	[ 'bits behind the last block', $pages - 1, 8160, "\1", 'check' ],
);

my %statements = (
	contains => q{SELECT bloom_index_contains('i', 1)},
	all => q{SELECT bloom_index_contains_each('i', ARRAY(SELECT id FROM t))},
	info => q{SELECT bloom_index_info('i')},
	filter => q{SELECT length(bloom_index_filter('i')::bytea)},
	check => q{SELECT bloom_index_check('i')},
	insert => q{INSERT INTO t VALUES (-1)});

foreach my $damage (@damages)
{
	my ($name, $block, $offset, $bytes, $raised) = @$damage;
	my $content = $good;
	my $wrong = '';

	substr($content, $block * $size + $offset, length $bytes) = $bytes;
	write_file($content);
	$node->start;
	foreach my $statement (split /\|/, $raised)
	{
		my ($status, $out, $err) = $node->psql('postgres',
			"\\set VERBOSITY verbose\n$statements{$statement}");
		$wrong .= "$statement: $out $err\n"
		  unless $err =~ /XX00[12]: (?:index "i" is damaged at block $block\b|invalid page in block $block )/;
	}
	$node->stop;
	is($wrong, '', "$name: error");
}

# Pages that are missing.
write_file(substr $good, 0, $size * ($pages - 1));
$node->start;
($status, $out, $err) = $node->psql('postgres', $statements{check});
like($err, qr/index "i" is damaged at block @{[$pages - 1]}/, 'check: missing page');
($status, $out, $err) = $node->psql('postgres', $statements{all});
like($err, qr/could not read block/, 'lookup: missing page');
$node->stop;

# Each byte of the meta page in turn, in an index of its own: an error, or no
# row is missed.  Up to the third entry of the directory, all matter.
my $content = 24 + 56;
my @offsets = (0 .. $content + 3 * 32 - 1, map { $_ * 91 } 3 .. 89);
$node->start;
$node->safe_psql('postgres', qq{
CREATE TABLE flip AS SELECT i AS id FROM generate_series(1, 300) i;
DO \$\$
BEGIN
	FOR i IN 0 .. $#offsets LOOP
		EXECUTE format('CREATE INDEX flip_%s ON flip USING bloomfilter (id) WITH (expected = 300, seed = 7)', i);
	END LOOP;
END
\$\$;
INSERT INTO flip SELECT generate_series(301, 3000);
INSERT INTO flip SELECT generate_series(3001, 8000);
CREATE FUNCTION look_up(index regclass) RETURNS text LANGUAGE plpgsql AS \$\$
BEGIN
	RETURN (SELECT count(*) FROM flip WHERE NOT bloom_index_contains(index, id)) || ' missed';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlerrm;
END
\$\$});
is($node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('flip_0')}),
	3, 'the index has three layers');
my @files = split /\n/, $node->safe_psql('postgres',
	qq{SELECT pg_relation_filepath(format('flip_%s', i)::regclass) FROM generate_series(0, $#offsets) i});
$node->stop;
foreach my $i (0 .. $#offsets)
{
	$file = $node->data_dir . '/' . $files[$i];
	my $flipped = read_file();
	substr($flipped, $offsets[$i], 1) ^= "\x10";
	write_file($flipped);
}
$node->start;
my @answers = split /\n/, $node->safe_psql('postgres',
	qq{SELECT look_up(format('flip_%s', i)::regclass) FROM generate_series(0, $#offsets) i});
my $silent = '';
foreach my $i (0 .. $#offsets)
{
	my $matters = $offsets[$i] >= 24 && $offsets[$i] < $content + 3 * 32;
	$silent .= "byte $offsets[$i]: $answers[$i]\n"
	  unless $answers[$i] =~ /(?:damaged at|invalid page in) block 0\b/
	  || !$matters && $answers[$i] eq '0 missed';
}
is($silent, '', 'no byte of the meta page changes silently');
$node->stop;

# A row that is not in the index: the whole index is that of before.
$file = $node->data_dir . '/';
$node->start;
$file .= $node->safe_psql('postgres', q{SELECT pg_relation_filepath('lost_id')});
$node->stop;
my $before = read_file();
$node->start;
$node->safe_psql('postgres', 'INSERT INTO lost VALUES (2)');
$node->stop;
write_file($before);
$node->start;
($status, $out, $err) =
  $node->psql('postgres', q{\set VERBOSITY verbose
SELECT bloom_index_check('lost_id')});
like(
	$err,
	qr/XX002: index "lost_id" lacks a row of its table\nDETAIL:  The key of row \(0,2\) is not found/,
	'check: a row that is missing');
$node->safe_psql('postgres', 'REINDEX INDEX lost_id');
is($node->safe_psql('postgres', q{SELECT bloom_index_check('lost_id')}), '', 'REINDEX repairs it');

# A full disk, which is a limit of the size of files here: growth and a rebuild
# by VACUUM fail, and leave an index that is valid and can grow later.
$node->safe_psql('postgres', q{
CREATE TABLE f (id bigint);
CREATE INDEX f_id ON f USING bloomfilter (id) WITH (fpp = 1e-9, expected = 1.5e6, rebuild_scale_factor = -1);
INSERT INTO f SELECT generate_series(1, 400000);
});
$node->stop;
my $limit = 17 * 1024;    # kB: more than a WAL file
my $start = sub {
	return system('bash', '-c',
			"ulimit -f $_[0] && exec pg_ctl -w -D '"
		  . $node->data_dir
		  . "' -l '"
		  . $node->logfile
		  . "' start >/dev/null 2>&1");
};
my $error;
SKIP:
{
	skip 'the size of files cannot be limited', 8 if $start->($limit) != 0;
	$node->_update_pid(1);
	my $loads = 0;
	$error = '';
	while ($error eq '' && $loads++ < 30)
	{
		(undef, undef, $error) = $node->psql('postgres', qq{
DELETE FROM f;
VACUUM f;
INSERT INTO f SELECT generate_series($loads * 1000000, $loads * 1000000 + 200000)});
	}
	like($error, qr/could not (?:extend|write)/, 'growth fails');
	is($node->safe_psql('postgres', q{SELECT bloom_index_check('f_id')}), '', 'the check passes after that');
	$node->safe_psql('postgres', 'ALTER INDEX f_id SET (rebuild_scale_factor = 0)');
	(undef, undef, $error) = $node->psql('postgres', 'VACUUM f');
	like($error, qr/could not (?:extend|write)/, 'a rebuild fails');
	is($node->safe_psql('postgres', q{SELECT bloom_index_check('f_id')}), '', 'the check passes after that, too');
	$node->stop;
	$node->start;
	$node->safe_psql('postgres',
		'INSERT INTO f SELECT generate_series(100000000, 101500000)');
	is($node->safe_psql('postgres', q{SELECT bloom_index_check('f_id')}),
		'', 'the check passes when there is room again');
	cmp_ok(
		$node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('f_id')}),
		'>', 1, 'the index has grown');
	is( $node->safe_psql('postgres', q{VACUUM f; SELECT bloom_index_check('f_id')}),
		'', 'and after a rebuild');
	is($node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('f_id')}),
		1, 'which merges the layers');
}

is(find_crashes($node), '', 'nothing crashed');
$node->stop;

done_testing();
