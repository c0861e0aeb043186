# Filters survive a crash, and replicas have the same filters.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# Keys of a batch, and the filters that follow them: changed in place by
# union, one key at a time, and built at once; inline and out of line.
my $setup = q{
CREATE EXTENSION bloomfilter;
CREATE TABLE key (batch int, k text, PRIMARY KEY (batch, k));
CREATE TABLE filter (name text PRIMARY KEY, note text, f bloom);
INSERT INTO filter VALUES
	('united', '', bloom_empty(0.001, 20000)),
	('grown', '', bloom_empty(0.01, 1000)),
	('added', '', bloom_empty());

-- Without a key, logical replication finds a row by all its columns.
CREATE TABLE keyless (f bloom);
ALTER TABLE keyless REPLICA IDENTITY FULL;
};

sub batch
{
	my ($batch) = @_;

	return qq{
INSERT INTO key SELECT $batch, 'key ' || i
	FROM generate_series(${batch}000, ${batch}999) i;
UPDATE filter
	SET f = f | (SELECT bloom_agg(k, 0.001, 20000) FROM key WHERE batch = $batch)
	WHERE name = 'united';
DO \$\$
DECLARE
	key text;
BEGIN
	FOR key IN SELECT k FROM key WHERE batch = $batch LOOP
		UPDATE filter SET f = bloom_add(f, key) WHERE name = 'grown';
	END LOOP;
END \$\$;
UPDATE filter SET f = f | (SELECT bloom_agg(k) FROM key WHERE batch = $batch)
	WHERE name = 'added';
INSERT INTO filter
	SELECT 'batch $batch', '', bloom_agg(k) FROM key WHERE batch = $batch;
UPDATE filter SET note = 'batch $batch';
INSERT INTO keyless SELECT bloom_agg(k) FROM key WHERE batch = $batch;
UPDATE keyless SET f = bloom_add(f, 'another key');
};
}

my $fingerprint = q{
SELECT name, note, md5(f::bytea) FROM filter ORDER BY name COLLATE "C";
SELECT md5(f::bytea) FROM keyless ORDER BY 1};

# Every key is in the filters that have all, and in that of its batch.  All
# the keys are looked up in one filter after another, not the other way round:
# a replica has to step over all the row versions that an update leaves.
my $lost = q{
SELECT sum(probed), sum(found)
	FROM filter, LATERAL (
		SELECT count(*) AS probed, count(*) FILTER (WHERE f @> k) AS found
			FROM key
			WHERE name IN ('united', 'grown', 'added', 'batch ' || batch)) AS keys};

my $primary = new_node('primary', allows_streaming => 'logical');
$primary->start;
$primary->safe_psql('postgres', $setup);
$primary->safe_psql('postgres', batch(1));
is( $primary->safe_psql(
		'postgres', q{
SELECT DISTINCT pg_column_size(f) > 2000 FROM filter ORDER BY 1}),
	"f\nt",
	'some filters are out of line, others are not');

# A streaming replica, and a subscriber for each way in which logical
# replication carries values.
$primary->backup('base');
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init_from_backup($primary, 'base', has_streaming => 1);
$replica->start;

my $subscriber = new_node('subscriber', allows_streaming => 'logical');
$subscriber->start;
$primary->safe_psql('postgres', 'CREATE PUBLICATION filters FOR ALL TABLES');
my @subscribers = ('as_text', 'as_binary');
foreach my $db (@subscribers)
{
	my $binary = $db eq 'as_binary' ? 'true' : 'false';

	create_database($subscriber, $db, 'UTF8');
	$subscriber->safe_psql($db, "$setup TRUNCATE filter");
	$subscriber->safe_psql($db,
		"CREATE SUBSCRIPTION $db CONNECTION '"
		  . $primary->connstr
		  . " dbname=postgres' PUBLICATION filters WITH (binary = $binary)");
}

sub check
{
	my ($what) = @_;
	my $expected = $primary->safe_psql('postgres', $fingerprint);
	my $nkeys =
	  $primary->safe_psql('postgres', 'SELECT 4 * count(*) FROM key');

	is($primary->safe_psql('postgres', $lost),
		"$nkeys|$nkeys", "$what: keys are found");

	$primary->wait_for_catchup($replica);
	is($replica->safe_psql('postgres', $fingerprint),
		$expected, "$what: filters of the replica are the same");
	is($replica->safe_psql('postgres', $lost),
		"$nkeys|$nkeys", "$what: keys are found on the replica");

	foreach my $db (@subscribers)
	{
		ok( $subscriber->poll_query_until(
				$db, q{
SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel}),
			"$what: subscription $db has its tables");
		$primary->wait_for_catchup($db);
		is($subscriber->safe_psql($db, $fingerprint),
			$expected, "$what: filters of the subscriber $db are the same");
		is($subscriber->safe_psql($db, $lost),
			"$nkeys|$nkeys", "$what: keys are found by the subscriber $db");
	}
	return;
}

check('before the crash');

# What was committed is there after a crash; what was not, is not.
$primary->safe_psql('postgres', batch(2));
my $expected = $primary->safe_psql('postgres', $fingerprint);
my $session = BloomTest::Session->new($primary, 'postgres');
$session->query('BEGIN; ' . batch(3));
$primary->stop('immediate');
$primary->start;
is($primary->safe_psql('postgres', $fingerprint),
	$expected, 'after the crash: filters are the same');
check('after the crash');

$primary->safe_psql('postgres', batch(4));
check('after another batch');

# The replica takes over.
$primary->wait_for_catchup($replica);
$expected = $primary->safe_psql('postgres', $fingerprint);
$primary->stop('immediate');
$replica->promote;
is($replica->safe_psql('postgres', $fingerprint),
	$expected, 'after promotion: filters are the same');
$replica->safe_psql('postgres', batch(5));
is($replica->safe_psql('postgres', $lost),
	'16000|16000', 'after promotion: filters go on growing');

is(find_crashes($_), '', 'nothing crashed: ' . $_->name)
  foreach $primary, $replica, $subscriber;
done_testing();
