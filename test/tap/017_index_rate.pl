# An index keeps its false-positive rate while it grows, however many sessions
# add keys at once, one by one or in large transactions.
#
# BF_LONG=1 runs the whole matrix, which takes a quarter of an hour.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $all = $ENV{BF_LONG};
my @rates = $all ? qw(1e-1 1e-2 1e-3 1e-4 1e-5 1e-6) : qw(1e-2 1e-5);
my @sessions = $all ? (1, 8, 16) : (8);
my %keys = $all ? (single => 15_000, bulk => 500_000) : (single => 2_000, bulk => 60_000);

my $node = new_node('main');
$node->append_conf(
	'postgresql.conf', q{
autovacuum = off
synchronous_commit = off
work_mem = 64MB
max_wal_size = 4GB
});
$node->start;
$node->safe_psql('postgres', q{
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

				$node->safe_psql('postgres', qq{
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

				my ($rows, $layers, $current_fpp, $found) = split /\|/, $node->safe_psql('postgres', qq{
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
# pages tell how full it is.  While it is nearly full, and when it grows, a commit
# reads few pages.
#
my $pages_read = q{
SELECT pg_stat_force_next_flush();
SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'i'};
foreach my $case ([ 1e-9, 400_000 ], [ 1e-3, 1_400_000 ])
{
	my ($fpp, $expected) = @$case;
	my $percent = $expected / 100;
	my $keys = 0.96 * $expected;
	my $most = 0;

	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS t;
CREATE TABLE t (id bigint);
CREATE INDEX i ON t USING bloomfilter (id) WITH (fpp = $fpp, expected = $expected);
INSERT INTO t SELECT generate_series(1, $keys)});
	while ($keys < 1.05 * $expected)
	{
		my $singles = $percent < 4000 ? $percent : 4000;
		my $bulk = $percent - $singles;
		my $before;

		is($node->safe_psql('postgres', q{SELECT layers, pages > 256 FROM bloom_index_info('i')}),
			'1|t', "fpp $fpp: as many keys as expected, $keys") if $keys <= $expected;
		$node->safe_psql('postgres', "INSERT INTO t SELECT generate_series($keys + 1, $keys + $bulk)") if $bulk > 0;
		$keys += $bulk;
		$before = (split /\n/, $node->safe_psql('postgres', $pages_read))[-1];
		$node->safe_psql('postgres', "CALL add_each($keys + 1, $singles); SELECT pg_stat_force_next_flush()");
		$keys += $singles;
		my $pages = ((split /\n/, $node->safe_psql('postgres', $pages_read))[-1] - $before) / $singles;
		cmp_ok($pages, '<=', 6, "fpp $fpp, $keys keys: $pages pages a commit");
		$most = $pages if $pages > $most;
	}
	note("fpp $fpp: at most $most pages a commit");
	is($node->safe_psql('postgres', qq{SELECT layers, current_fpp < 1.06 * 0.75 * $fpp FROM bloom_index_info('i')}),
		'2|t', "fpp $fpp: grown, at its rate");
}

#
# Keys that somebody has chosen for one page cost few pages, too, and the index
# does not grow.
#
$node->safe_psql('postgres', q{
DROP TABLE IF EXISTS t;
CREATE TABLE t (id bigint);
CREATE INDEX i ON t USING bloomfilter (id) WITH (fpp = 0.001, expected = 2000000);
INSERT INTO t SELECT generate_series(1, 200000);
CREATE TABLE chosen AS SELECT i AS id, row_number() OVER () AS n FROM generate_series(10000000::bigint, 14000000) i
 WHERE bloom_hash(i) BETWEEN 0 AND 18446744073709551616 / 600;
INSERT INTO t SELECT id FROM chosen WHERE n <= 4500;
CREATE PROCEDURE add_chosen() LANGUAGE plpgsql AS $$
DECLARE
	chosen_id bigint;
BEGIN
	FOR chosen_id IN SELECT id FROM chosen WHERE n BETWEEN 4501 AND 5500 LOOP
		INSERT INTO t VALUES (chosen_id);
		COMMIT;
	END LOOP;
END
$$});
my $chosen_before = (split /\n/, $node->safe_psql('postgres', $pages_read))[-1];
$node->safe_psql('postgres', 'CALL add_chosen(); SELECT pg_stat_force_next_flush()');
my $chosen_pages = ((split /\n/, $node->safe_psql('postgres', $pages_read))[-1] - $chosen_before) / 1000;
cmp_ok($chosen_pages, '<=', 12, "keys of one page: $chosen_pages pages a commit");
is($node->safe_psql('postgres', q{SELECT layers FROM bloom_index_info('i')}), '1', 'keys of one page do not make it grow');
$node->stop;

done_testing();
