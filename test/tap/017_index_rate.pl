# An index keeps its false-positive rate while it grows, however many sessions
# add keys at once, one by one or in large transactions.
#
# BLOOM_RATES=all runs the whole matrix, which takes a quarter of an hour.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $all = ($ENV{BLOOM_RATES} // '') eq 'all';
my @rates = $all ? qw(1e-1 1e-2 1e-3 1e-4 1e-5 1e-6) : qw(1e-1 1e-3 1e-6);
my @sessions = $all ? (1, 8, 16) : (1, 8);
my %keys = $all ? (single => 15_000, bulk => 500_000) : (single => 4_000, bulk => 100_000);

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
synchronous_commit = off
work_mem = 64MB
max_wal_size = 4GB
});
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION bloomfilter;
CREATE PROCEDURE add_each(first bigint, n bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. first + n - 1 LOOP
		INSERT INTO t VALUES (i);
		COMMIT;
	END LOOP;
END
$$;
});
my @open = map { BloomTest::Session->new($node, 'postgres') } 1 .. $sessions[-1];

# Send each session its query, and wait for all of them.
sub query_all
{
	my ($n, $query) = @_;

	$open[$_]->send($query->($_ * 1_000_000)) foreach 0 .. $n - 1;
	my @errors = map { ($open[$_]->finish)[1] } 0 .. $n - 1;
	return join '', @errors;
}

foreach my $fpp (@rates)
{
	# Millions of absent keys; of the whole matrix, 20 are to be found.
	my $absent = $all && $fpp < 2e-5 ? 2e-5 / $fpp : 1;

	foreach my $n (@sessions)
	{
		foreach my $how (qw(single bulk))
		{
			foreach my $built (0, $keys{$how} / 2)
			{
				my $name = "fpp $fpp, sessions $n, $how, built with $built";
				my $error;

				$node->safe_psql(
					'postgres', qq{
DROP TABLE IF EXISTS t;
CREATE TABLE t AS SELECT -i AS id FROM generate_series(1::bigint, $built) i;
CREATE INDEX i ON t USING bloomfilter (id) WITH (fpp = $fpp)});
				if ($how eq 'single')
				{
					$error = query_all($n, sub { "CALL add_each($_[0], $keys{$how})" });
				}
				else
				{
					$error = query_all($n, sub { "BEGIN; INSERT INTO t SELECT generate_series($_[0]::bigint, $_[0] + $keys{$how} - 1)" });
					$error .= query_all($n, sub { 'COMMIT' });
				}
				is($error, '', "$name: no error");

				my ($rows, $layers, $current_fpp, $found) = split /\|/, $node->safe_psql(
					'postgres', qq{
SELECT (SELECT count(*) FROM t), layers, current_fpp, (
	SELECT sum((SELECT count(*) FILTER (WHERE found)
				FROM unnest(bloom_index_contains_each('i', ARRAY(
					SELECT 1000000000000 + 1000000 * part + i FROM generate_series(1, 1000000) i))) found))
	FROM generate_series(1, $absent) part)
FROM bloom_index_info('i')});
				my $rate = $found / ($absent * 1e6);
				my $expected = $absent * 1e6 * $fpp;
				is($rows, $built + $n * $keys{$how}, "$name: all rows");
				# The sum of what the layers are made for, and what its estimate may miss.
				cmp_ok($current_fpp, '<', 1.06 * (1 - 0.5**$layers) * $fpp, "$name: current_fpp");
				cmp_ok($found, '<', 1.1 * $expected + 4 * sqrt($expected), "$name: rate $rate");
				my ($status, $out, $err) =
				  $node->psql('postgres', q{SELECT bloom_index_check('i')});
				is($err, '', "$name: check");
				note("$name: current_fpp / fpp = "
					  . sprintf('%.2f, counted / fpp = %.2f', $current_fpp / $fpp, $rate / $fpp));
			}
		}
	}
}
$_->quit foreach @open;

#
# An index of as many keys as were expected does not grow, also if samples of its
# pages tell how full it is, and it is nearly full for many transactions.
#
$node->safe_psql(
	'postgres', q{
DROP TABLE t;
CREATE TABLE t (id bigint);
CREATE INDEX i ON t USING bloomfilter (id) WITH (fpp = 1e-9, expected = 400000);
INSERT INTO t SELECT generate_series(1, 396000);
CALL add_each(396001, 4000)});
is( $node->safe_psql('postgres', q{SELECT layers, pages > 256 FROM bloom_index_info('i')}),
	'1|t', 'as many keys as expected');
$node->stop;

done_testing();
