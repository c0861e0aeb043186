# pg_upgrade, from an older major where there is one: filters are the same to
# the byte, wherever a database has them, and every key is still found.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The directory above the programs of the older server, with the extension
my $old_server = $ENV{BLOOM_OLD_SERVER} or die 'no BLOOM_OLD_SERVER';

my $old = new_node('old', install_path => $old_server);
my $new = new_node('new');

cmp_ok($old->pg_version, '<=', $new->pg_version,
	'from ' . $old->pg_version . ' to ' . $new->pg_version);

$old->start;
$old->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d',
		$old->connstr('postgres'), '-f',
		"$FindBin::RealBin/../exchange/filters.sql"
	],
	'the old server makes filters');

# A filter that is large enough for lookups to read it in parts, and to keep it
my $lookups = q{
SELECT count(*) FROM generate_series(1, 200000) i, filters
	WHERE key_type = 'text' AND form = 'large' AND f @> ('other ' || i)};
my $by_index = q{
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM filters
	WHERE f = (SELECT f FROM filters WHERE key_type = 'jsonb' AND form = 'large')};
my $lost = q{SELECT sum(probed), sum(lost) FROM lost_keys('filters')};
my $size = q{
SELECT octet_length(f::bytea) > 100000 FROM filters
	WHERE form = 'large' AND key_type = 'text'};

my $fingerprint = $old->safe_psql('postgres', 'SELECT fingerprint()');
cmp_ok($fingerprint =~ tr/\n//, '>', 600, 'it made them all');
is($old->safe_psql('postgres', $size), 't', 'one of them is large');
is($old->safe_psql('postgres', $lookups), 200000, 'which has its keys');
my $answer = $old->safe_psql('postgres', $lost);
like($answer, qr/^\d{6}\|0$/, 'all keys are found beforehand');
$old->stop;

# pg_upgrade writes where it is called.
chdir PostgreSQL::Test::Utils::tempdir_short();
command_ok(
	[
		'pg_upgrade', '--no-sync',
		'--old-datadir' => $old->data_dir,
		'--new-datadir' => $new->data_dir,
		'--old-bindir' => "$old_server/bin",
		'--new-bindir' => $new->config_data('--bindir'),
		'--socketdir' => $new->host,
		'--old-port' => $old->port,
		'--new-port' => $new->port
	],
	'pg_upgrade');

$new->start;
is($new->safe_psql('postgres', 'SELECT fingerprint()'),
	$fingerprint, 'filters are the same');
is($new->safe_psql('postgres', $lost), $answer, 'all keys are found');
is($new->safe_psql('postgres', $lookups),
	200000, 'those of a large filter, too');
is($new->safe_psql('postgres', $by_index), 1, 'an index on = finds a filter');

# What is added from here on
is( $new->safe_psql(
		'postgres', q{
UPDATE filters SET f = f | (SELECT bloom_agg('new ' || i, 0.01, 200000)
							FROM generate_series(1, 1000) i)
	WHERE key_type = 'text' AND form = 'large';
SELECT count(*) FROM generate_series(1, 1000) i, filters
	WHERE key_type = 'text' AND form = 'large' AND f @> ('new ' || i);
REFRESH MATERIALIZED VIEW CONCURRENTLY stored}),
	1000,
	'a filter is extended');
is( $new->safe_psql('postgres', 'SELECT fingerprint()') =~
	  s/^text\|.*\n//mgr,
	$fingerprint =~ s/^text\|.*\n//mgr,
	'those of other key types stay the same');
is($new->safe_psql('postgres', $lost), $answer, 'all keys are found again');
$new->command_ok(
	[ 'vacuumdb', '--all', '--analyze', '--host', $new->host, '--port', $new->port ],
	'VACUUM ANALYZE');

is(find_crashes($new), '', 'nothing crashed');
done_testing();
