# Filters and keys behind indirect TOAST pointers give the same answers as the
# values themselves.

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

# In a session of its own: no session loads both libraries.
$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
$node->safe_psql(
	'postgres', qq{
UPDATE pg_proc SET probin = '$library' WHERE probin = '\$libdir/bloomfilter';
CREATE FUNCTION indirect(bloom) RETURNS bloom
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
CREATE FUNCTION indirect(text) RETURNS text
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
CREATE FUNCTION indirect(numeric) RETURNS numeric
	AS '$library', 'make_indirect' LANGUAGE C STRICT;
});

#
# Filters in each way of storage.  An intersection with nothing in it
# compresses, and so does a filter that is hardly filled.
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE filters (form text, f bloom);
CREATE TABLE compressed (LIKE filters);
ALTER TABLE compressed ALTER f SET STORAGE extended;
INSERT INTO filters VALUES ('empty', bloom_empty());
INSERT INTO filters SELECT 'short', bloom_agg(i) FROM generate_series(1, 5) i;
INSERT INTO filters SELECT 'list', bloom_agg(i, 1e-9, 200) FROM generate_series(1, 100) i;
INSERT INTO filters SELECT 'bits', bloom_agg(i, 0.1, 1000) FROM generate_series(1, 1000) i;
INSERT INTO filters SELECT 'list out of line', bloom_agg(i, 1e-9, 2000) FROM generate_series(1, 1000) i;
INSERT INTO filters SELECT 'bits out of line', bloom_agg(i, 0.3, 200000) FROM generate_series(1, 100000) i;
INSERT INTO compressed
	SELECT 'nothing', bloom_agg(i, 0.1, 12000) & bloom_agg(-i, 0.1, 12000) FROM generate_series(1, 1000) i;
INSERT INTO compressed
	SELECT 'hardly filled', bloom_agg(i, 0.1, 60000) | bloom_agg(i) FILTER (WHERE i <= 100)
	FROM generate_series(1, 6000) i;
INSERT INTO filters SELECT form, f FROM compressed;
DELETE FROM filters WHERE form IN (SELECT form FROM compressed);
CREATE VIEW every AS SELECT * FROM filters UNION ALL SELECT * FROM compressed;
});
is( $node->safe_psql(
		'postgres', q{
SELECT count(*), count(*) FILTER (WHERE pg_column_size(f) < 127),
	count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) BETWEEN 128 AND 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NULL AND pg_column_size(f) > 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) < 2000),
	count(*) FILTER (WHERE pg_column_compression(f) IS NOT NULL AND pg_column_size(f) > 2000)
FROM every}),
	'8|2|2|2|1|1',
	'filters are short, plain, out of line and compressed');

# In each of these, F is the filter.
my @expressions = (
	q{(SELECT string_agg((F @> i)::int::text, '') FROM generate_series(-300, 1000) i)},
	q{(SELECT count(*) FROM generate_series(1, 99) i WHERE bloom_contains_hash(F, bloom_hash(i)))},
	'bloom_contains_any(F, ARRAY[-1, -2, 5])',
	'bloom_contains_all(F, ARRAY[1, 2, 5])',
	'bloom_contains_each(F, ARRAY[-1, NULL, -3, 4, 500])',
	'bloom_new_keys(F, ARRAY[-1, -2, -3, 4, 500])',
	'bloom_add(F, -1)',
	'bloom_add_hash(F, -1)',
	'bloom_add_all(F, ARRAY[-1, -2, -3])',
	'bloom_try_add(F, -1)',
	'bloom_add(F, NULL)',
	'bloom_try_add(F, NULL)',
	'F | NULL',
	'NULL | F',
	'bloom_compact(F)',
	'F | F',
	'F & bloom_add_all(bloom_empty(), ARRAY[1, 2, -1])',
	'bloom_intersection_cardinality(bloom_add_all(bloom_empty(), ARRAY[1, 2, -1]), F)',
	'F = F',
	'hash_bloom(F)',
	'bloom_cardinality(F)',
	'bloom_fpp(F)',
	'bloom_info(F)',
	'F::text',
	'F::bytea',
	'(SELECT bloom_union_agg(g) FROM (VALUES (bloom_empty()), (F)) v(g))',
	'(SELECT bloom_intersection_agg(g) FROM (VALUES (bloom_empty()), (F)) v(g))');
foreach my $expression (@expressions)
{
	my $direct = $expression =~ s/\bF\b/(f::bytea::bloom)/gr;
	my $indirect = $expression =~ s/\bF\b/indirect(f)/gr;

	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*), string_agg(form, ', ') FILTER (WHERE ($direct)::text IS DISTINCT FROM ($indirect)::text)
FROM every}),
		'8|',
		"by an indirect pointer: $expression");
}

#
# Keys
#
$node->safe_psql(
	'postgres', q{
CREATE TABLE keys AS
	SELECT i AS id, repeat('x', i * 40) AS t, (10::numeric ^ (i * 10)) / 7 AS n FROM generate_series(1, 300) i;
ALTER TABLE keys ALTER t SET STORAGE external;
INSERT INTO keys SELECT -id, repeat('y', id * 40), -n FROM keys;
});
foreach my $key ('t', 'n')
{
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*), count(*) FILTER (WHERE bloom_hash($key) <> bloom_hash(indirect($key))),
	count(*) FILTER (WHERE f @> indirect($key)),
	f = (SELECT bloom_agg(indirect($key)) FROM keys)
FROM keys, (SELECT bloom_agg($key) AS f FROM keys) AS filter GROUP BY f}),
		'600|0|600|t',
		"keys by an indirect pointer: $key");
}

is(find_crashes($node), '', 'nothing crashed');
done_testing();
