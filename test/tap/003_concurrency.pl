# Many sessions at once on one filter, and lookups in an index whose partitions
# come and go.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# Many sessions at once on one filter, by pgbench.
#
my $node = new_node('one_filter');
$node->start;

# errors that pgbench notices
my $create_verify = q{
CREATE FUNCTION verify(boolean, text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF $1 IS NOT TRUE THEN
		RAISE 'not true: %', $2;
	END IF;
END $$;
};
$node->safe_psql(
	'postgres', $create_verify . q{
CREATE EXTENSION bloomfilter;
CREATE TABLE key (k bigserial);
CREATE TABLE one (f bloom);
INSERT INTO one VALUES (bloom_empty(0.001, 500));
});

my $dir = PostgreSQL::Test::Utils::tempdir();

sub script
{
	my ($name, $content) = @_;
	my $file = "$dir/$name.sql";

	open my $handle, '>', $file or die "$file: $!";
	print $handle $content;
	close $handle or die "$file: $!";
	return $file;
}

sub pgbench
{
	my ($what, @options) = @_;

	$node->command_ok([ 'pgbench', '--no-vacuum', '--host', $node->host, '--port', $node->port,
			@options, 'postgres' ],
		$what);
	return;
}

#
# Writers wait for each other and then work on what the other one left; no
# key gets lost.  A reader finds every key that it can see.
#
my $add = script(
	'add', q{
BEGIN;
INSERT INTO key DEFAULT VALUES RETURNING k \gset
UPDATE one SET f = bloom_add(f, :k::bigint);
COMMIT;
});
my $unite = script(
	'unite', q{
BEGIN;
WITH new AS (INSERT INTO key SELECT FROM generate_series(1, 5) RETURNING k)
UPDATE one SET f = f | (SELECT bloom_agg(k, 0.001, 500) FROM new);
COMMIT;
});
my $read = script(
	'read', q{
SELECT verify(count(*) FILTER (WHERE NOT f @> k) = 0, 'keys are found') FROM one, key;
});
pgbench(
	'sessions that add, unite and read at the same time',
	'--client=8', '--transactions=80', "--file=$add\@2", "--file=$unite\@1",
	"--file=$read\@1");
my ($nkeys, $found, $layers) = split /\|/,
  $node->safe_psql('postgres', q{
SELECT count(*), count(*) FILTER (WHERE f @> k), max((bloom_info(f)).layers)
	FROM one, key});
cmp_ok($nkeys, '>', 600, 'the filter had to grow');
cmp_ok($layers, '>', 1, 'the filter has grown');
is($found, $nkeys, 'no key got lost');

#
# Lookups in the index of a partitioned table, while a partition comes and
# goes, lock tables before their indexes, as DETACH does.
#
$node->safe_psql('postgres', q{
CREATE TABLE parted (part int, k int) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE INDEX parted_k ON parted USING bloomfilter (k);
INSERT INTO parted VALUES (1, 7), (2, 8);
});
pgbench(
	'lookups while a partition is detached',
	'--client=4',
	'--transactions=100',
	'--file=' . script(
		'detach', q{
\set detaches :client_id = 0
\if :detaches
ALTER TABLE parted DETACH PARTITION parted_2 CONCURRENTLY;
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
\else
SELECT verify(bloom_index_contains('parted_k', 7), 'partition');
SELECT verify(count(*) > 0, 'list') FROM bloom_index_partitions('parted_k', 7);
\endif
}));

is(find_crashes($node), '', 'nothing crashed');
$node->stop;

done_testing();
