# Aggregates whose functions are called by another aggregate, as Citus calls
# them to build a part of a filter on each server: the same filters, and no
# key that is hashed by another type or collation.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The extension as made by "make FAIL_ALLOC=1", see test/fault/callers.c
my $library = $ENV{BLOOM_FAIL_ALLOC_LIBRARY};
plan skip_all => 'BLOOM_FAIL_ALLOC_LIBRARY names no library'
  unless $library;

my $node = new_node('main');
$node->start;

# 20,000 rows in 12 shards, 8,000 distinct keys that are in several shards.
# Combine functions are those of ordinary aggregates.
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
$node->safe_psql(
	'postgres', qq{
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter';
CREATE FUNCTION wrapped_transfn(internal, regprocedure, anyelement)
	RETURNS internal AS '$library' LANGUAGE C;
CREATE FUNCTION wrapped_finalfn(internal) RETURNS bytea
	AS '$library' LANGUAGE C;
CREATE AGGREGATE wrapped(regprocedure, anyelement) (SFUNC = wrapped_transfn,
	STYPE = internal, FINALFUNC = wrapped_finalfn);
CREATE AGGREGATE combine_hashes(bloom) (SFUNC = bloom_agg_hash_combinefn,
	STYPE = bloom, FINALFUNC = bloom_agg_hash_finalfn);
CREATE TABLE visits AS
	SELECT i % 12 AS shard, 'page ' || i * 7919 % 8000 AS url
	FROM generate_series(1, 20000) i;
});

# A filter that is built of all shards, and its parts
sub combined
{
	my ($combine, $transfn, $arguments) = @_;

	return "(SELECT $combine(part::bloom) FROM (SELECT wrapped("
	  . "'$transfn', $arguments) AS part FROM visits GROUP BY shard) parts)";
}

my %arguments = (
	'one argument' => ['', ''],
	'two arguments' => [', 0.001::float8', ', double precision'],
	'three arguments' =>
	  [', 0.01::float8, 10000::float8', ', double precision, double precision'],
	'four arguments' => [
		', 0.01::float8, 100000::float8, 7::bigint',
		', double precision, double precision, bigint'
	]);
foreach my $what (sort keys %arguments)
{
	my ($values, $types) = @{ $arguments{$what} };
	my $seed = $what =~ /^four/ ? ', 7' : '';
	my $row = $values eq '' ? '' : 'ROW';
	my $hashes = combined('combine_hashes',
		"bloom_agg_hash_transfn(bloom, bigint$types)",
		"$row(bloom_hash(url$seed)$values)");
	my $keys = combined('combine_hashes',
		"bloom_agg_key_transfn(bloom, bloom_key$types)",
		"$row(url::bloom_key$values)");

	is( $node->safe_psql('postgres', qq{
SELECT ${hashes}::bytea = bloom_agg_hash(bloom_hash(url$seed)$values)::bytea,
	   ${keys}::bytea = bloom_agg(url$values)::bytea FROM visits}),
		't|t', "parts are combined to the same bytes, $what");
}

# More keys than expected: the rate is that of one server.
foreach my $expected (100, 1000, 5000)
{
	my $hashes = combined('combine_hashes',
		'bloom_agg_hash_transfn(bloom, bigint, double precision, double precision)',
		"ROW(bloom_hash(url), 0.01::float8, $expected\::float8)");
	my $keys = combined('bloom_union_agg',
		'bloom_union_agg_transfn(bloom, bloom)',
		"bloom_add(bloom_empty(0.01, $expected), url)");

	is( $node->safe_psql('postgres', qq{
SET client_min_messages = error;
SELECT abs(bloom_fpp($hashes) / bloom_fpp(f) - 1) < 0.1,
	   abs(bloom_fpp($keys) / bloom_fpp(f) - 1) < 0.1,
	   abs(bloom_cardinality($hashes) / 8000.0 - 1) < 0.05,
	   (SELECT bool_and($hashes @> url) FROM visits WHERE shard = 1)
	FROM (SELECT bloom_agg_hash(bloom_hash(url), 0.01, $expected) AS f
		  FROM visits) x}),
		't|t|t|t', "the rate of one server, $expected keys expected");
}
is( $node->safe_psql('postgres', "SELECT "
		. combined('bloom_union_agg',
			'bloom_union_agg_transfn(bloom, bloom)',
			'bloom_add(bloom_empty(0.01, 10000), url)')
		. "::bytea = bloom_agg(url, 0.01, 10000)::bytea FROM visits"),
	't', 'a union of filters of one key keeps the key type');
is( $node->safe_psql('postgres', "SELECT "
		. combined('bloom_intersection_agg',
			'bloom_intersection_agg_transfn(bloom, bloom)',
			'bloom_add(bloom_add(bloom_empty(0.01, 10000), url), text \'all\')')
		. " = bloom_add(bloom_empty(0.01, 10000), text 'all')"),
	't', 'an intersection');

# A union of filters of other sizes has the same layers.
is( $node->safe_psql('postgres', q{
CREATE TABLE mixed AS
	SELECT 1 AS n, bloom_add(bloom_empty(0.01, 500), url) AS f
	FROM (SELECT DISTINCT url FROM visits LIMIT 400) x
	UNION ALL SELECT 2, bloom_agg(url, 0.01, 5000) FROM visits WHERE shard < 2;
SET client_min_messages = error;
SELECT (bloom_info(bloom_union_agg(f ORDER BY n))).layers,
	   wrapped('bloom_union_agg_transfn(bloom, bloom)', f ORDER BY n)
		= bloom_union_agg(f ORDER BY n)::bytea FROM mixed}),
	'2|t', 'a union of filters of different sizes');

# The type of a key that is declared as any type is not known.
my ($status, $out, $err) = $node->psql('postgres', q{
SELECT wrapped('bloom_agg_transfn(internal, anyelement)', url) FROM visits});
like(
	$err,
	qr/could not determine the data type of the key\nHINT:  Cast the key to bloom_key, or hash it/,
	'a polymorphic key is an error with a hint');

# Equal keys under a nondeterministic collation are not the same bytes.
SKIP:
{
	skip 'a nondeterministic collation needs ICU', 6
	  unless $node->safe_psql('postgres',
		"SELECT count(*) > 0 FROM pg_collation WHERE collprovider = 'i'") eq 't';

	$node->safe_psql('postgres', q{
CREATE COLLATION ignoring_case
	(PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false);
CREATE TABLE names (name text COLLATE ignoring_case, key bloom_key COLLATE ignoring_case);
INSERT INTO names VALUES ('Ann', 'Ann'), ('ann', 'ann')});
	my $aggregate =
	  'bloom_agg_key_transfn(bloom, bloom_key, double precision)';
	foreach my $key ('name::bloom_key', 'key', '(name || name)::bloom_key')
	{
		($status, $out, $err) = $node->psql('postgres',
			"SELECT wrapped('$aggregate', ROW($key, 0.01::float8)) FROM names");
		like($err, qr/do not support nondeterministic collations/,
			"a nondeterministic collation is rejected, $key");
	}
	($status, $out, $err) = $node->psql('postgres',
		"SELECT wrapped('bloom_agg_key_transfn(bloom, bloom_key)', key) FROM names"
	);
	like($err, qr/do not support nondeterministic collations/,
		'and as the only argument');
	($status, $out, $err) = $node->psql('postgres',
		"SELECT wrapped('$aggregate', r) FROM (SELECT ROW(key, 0.01::float8) AS r FROM names OFFSET 0) x"
	);
	like(
		$err,
		qr/could not determine which collation to use/,
		'so is one that is not known');
	is( $node->safe_psql('postgres',
			qq{SELECT wrapped('$aggregate', ROW(key COLLATE "C", 0.01::float8))::bloom @> 'Ann' FROM names}
		),
		't',
		'a deterministic one is chosen');
}

$node->stop;
done_testing();
