# Damaged pages of an index raise an error that names the index and the block;
# the check finds what lookups cannot notice; a full disk or a lack of memory
# leaves the index as it was.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('main');
$node->append_conf('postgresql.conf', "autovacuum = off\n");
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION bloomfilter;
CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 60000) i;
CREATE INDEX i ON t USING bloomfilter (id) WITH (expected = 30000);
INSERT INTO t SELECT generate_series(60001, 200000);
CREATE TABLE lost (id int);
CREATE INDEX lost_id ON lost USING bloomfilter (id) WITH (expected = 30000);
INSERT INTO lost VALUES (1);
});
is( $node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('i')}),
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
# number, layer 8184, version 8188, id 8190.
my @damages = (
	[ 'meta page of zeros', 0, 0, "\0" x $size, 'contains|info|filter|check|insert' ],
	[ 'magic', 0, 24, "\1\2\3\4", 'contains|info|filter|check|insert' ],
	[ 'page of zeros', 1, 0, "\0" x $size, 'all|check' ],
	[ 'page of another number', 1, 8180, pack('L', 1), 'all|check' ],
	[ 'page of another layer', 1, 8184, "\1", 'all|check' ],
	[ 'page id', 1, 8190, "\0", 'all|check' ],
	[ 'page version', 1, 8188, "\2", 'all|check' ],
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
my ($status, $out, $err) = $node->psql('postgres', $statements{check});
like($err, qr/index "i" is damaged at block @{[$pages - 1]}/,
	'check: missing page');
($status, $out, $err) = $node->psql('postgres', $statements{all});
like($err, qr/could not read block/, 'lookup: missing page');
$node->stop;

# Each byte of the meta page in turn, in an index of its own: an error, or no
# row is missed.  Up to the third entry of the directory, all matter.
my $content = 24 + 56;
my @offsets = (0 .. $content + 3 * 32 - 1, map { $_ * 91 } 3 .. 89);
$node->start;
$node->safe_psql(
	'postgres', qq{
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
is( $node->safe_psql('postgres', q{SELECT bloom_index_check('lost_id')}),
	'', 'REINDEX repairs it');

# A full disk, which is a limit of the size of files here: growth fails, and
# leaves an index that is valid and can grow later.
$node->safe_psql(
	'postgres', q{
CREATE TABLE f (id bigint);
CREATE INDEX f_id ON f USING bloomfilter (id) WITH (fpp = 1e-9, expected = 1.5e6);
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
	skip 'the size of files cannot be limited', 4 if $start->($limit) != 0;
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
	is( $node->safe_psql('postgres', q{SELECT bloom_index_check('f_id')}),
		'', 'the check passes after that');
	(undef, undef, $error) = $node->psql('postgres', q{
BEGIN;
SAVEPOINT s;
INSERT INTO f SELECT generate_series(90000000, 90200000);
ROLLBACK TO s;
COMMIT});
	unlike($error, qr/:6: ERROR/,
		'keys of a rolled-back subtransaction need no room');
	$node->stop;
	$node->start;
	$node->safe_psql('postgres',
		'INSERT INTO f SELECT generate_series(100000000, 101500000)');
	is( $node->safe_psql('postgres', q{SELECT bloom_index_check('f_id')}),
		'', 'the check passes when there is room again');
	cmp_ok(
		$node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('f_id')}),
		'>', 1, 'the index has grown');
}

# No memory for the keys of a subtransaction: those of the transaction are
# found, and written.
SKIP:
{
	my $session = BloomTest::Session->new($node, 'postgres');
	my $set_limit = sub {
		return system('prlimit', '--pid', $session->pid, "--as=$_[0]:");
	};

	skip 'the memory of a process cannot be limited', 4
	  if $set_limit->('unlimited') != 0;
	$session->query(q{
SET work_mem = '1GB';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE m (id int);
CREATE INDEX m_id ON m USING bloomfilter (id);
BEGIN;
INSERT INTO m SELECT generate_series(1, 200000);
SAVEPOINT s});
	my ($size) =
	  PostgreSQL::Test::Utils::slurp_file('/proc/' . $session->pid . '/status')
	  =~ /^VmSize:\s+(\d+) kB/m;
	$set_limit->(1024 * ($size + 50 * 1024));
	(undef, $error) =
	  $session->query('INSERT INTO m SELECT generate_series(500001, 3000000)');
	like($error, qr/53200/, 'there is no memory for so many keys');
	($out) = $session->query(q{
ROLLBACK TO s;
SELECT count(*) FROM m WHERE NOT bloom_index_contains('m_id', id)});
	is($out, 0, 'the keys of the transaction are found');
	$set_limit->('unlimited');
	$session->query(q{INSERT INTO m VALUES (-1); COMMIT});
	is( $node->safe_psql('postgres', q{SELECT bloom_index_check('m_id')}),
		'', 'the check passes after the commit');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM m'),
		200001, 'all rows of it are there');
}
is(find_crashes($node), '', 'nothing crashed');
$node->stop;

done_testing();
