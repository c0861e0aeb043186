# Text that has no equivalent in UTF-8 is a key as any other, in databases of
# encodings that have such text.  Names of types that an encoding lacks do not
# make an error of another one.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

my $node = new_node('main');
$node->start;

# The value of an expression or its SQLSTATE, message and hint.  Clients are
# ASCII only: whatever is not is made of bytes by convert_from.
my $setup = q{
CREATE EXTENSION bloomfilter;
CREATE EXTENSION citext;
CREATE FUNCTION outcome(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	detail text;
BEGIN
	EXECUTE 'SELECT ' || expression INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws('|', SQLSTATE, SQLERRM, NULLIF(detail, ''));
END
$$;
CREATE FUNCTION chars(bytes bytea) RETURNS text LANGUAGE sql
	AS 'SELECT convert_from(bytes, getdatabaseencoding())';
};

sub outcome
{
	my ($dbname, $expression) = @_;

	$expression =~ s/'/''/g;
	return $node->safe_psql($dbname, "SELECT outcome('$expression')");
}

# Databases, and the bytes of text that has no equivalent in UTF-8, of text
# that has one, and the latter in UTF-8.
my %texts = (
	win1252 => [ 'WIN1252', '\x61812062', '\x5ae472696368', '\x5ac3a472696368' ],
	win1251 => [ 'WIN1251', '\x9862', '\xcaeee4', '\xd09ad0bed0b4' ],
	eucjp => [ 'EUC_JP', '\xada3adb7f5a1', '\xc6fccbdc', '\xe697a5e69cac' ],
	latin7 => [ 'LATIN7', undef, '\xe4', '\xc3a4' ],
	ascii => [ 'SQL_ASCII', '\x61ff', '\x61', '\x61' ],
	mule => [ 'MULE_INTERNAL', '\x61818e81e462', '\x61', '\x61' ]);

# Not all versions of PostgreSQL have this one.
my $has_mule = $node->safe_psql('postgres',
	"SELECT pg_char_to_encoding('MULE_INTERNAL') = 7") eq 't';
delete $texts{mule} unless $has_mule;

create_database($node, 'utf8', 'UTF8');
$node->safe_psql('utf8', $setup);

foreach my $name (sort keys %texts)
{
	my ($encoding, $lone, $common, $utf8) = @{ $texts{$name} };

	create_database($node, $name, $encoding);
	$node->safe_psql($name, $setup);

	# The filter of a column with text of either sort
	my @keys = map { "chars('$_')" } grep { defined } $lone, $common;
	my $filter =
	  'bloom_add_all(bloom_empty(), ARRAY[' . join(', ', @keys) . '])';
	foreach my $key (@keys)
	{
		is(outcome($name, "$filter @> $key"),
			'true', "$encoding: $key is found");
		is(outcome($name, "bloom_agg($key) @> ($key)::char(20)"),
			'true', "$encoding: $key is found as char(n)");
		is( outcome($name, "bloom_agg($key) @> ($key)::bloom_key"),
			'true', "$encoding: $key is found as an untyped key");
		is( outcome($name, "bloom_hash(($key)::name) = bloom_hash($key)"),
			'true', "$encoding: $key hashes alike as a name");
		is(outcome($name, "$filter @> ($key || 'x')"),
			'false', "$encoding: text beginning with $key is not found");
	}
	is( outcome($name, "bloom_hash(chars('$common'))"),
		outcome('utf8', "bloom_hash(convert_from('$utf8', 'UTF8'))"),
		"$encoding: text that converts has the hash that it has in UTF8");
}

# A label of an enum without an equivalent
$node->safe_psql(
	'win1252', q{
DO $$
BEGIN
	EXECUTE format('CREATE TYPE letters AS ENUM (%L, %L)', chars('\x81'), 'a');
END
$$});
is( outcome(
		'win1252', q{
(SELECT bloom_agg(l) @> l FROM (SELECT enum_first(NULL::letters)) x (l)
	GROUP BY l)}),
	'true',
	'WIN1252: a label without an equivalent is found');

# A filter of text from a MULE_INTERNAL database
SKIP:
{
	skip 'this server has no MULE_INTERNAL', 9 unless $has_mule;

	my $mule = $node->safe_psql('mule', "SELECT bloom_agg('a'::text)");
	my $text = $node->safe_psql('utf8', "SELECT bloom_agg('a'::text)");
	is(outcome('mule', "'$mule'::bloom @> 'a'"),
		'true', 'MULE_INTERNAL: the filter is found again from text');
	like(
		outcome('utf8', "'$mule'::bloom @> 'a'"),
		qr/^42804\|Bloom filter holds keys of type text hashed on another platform\|The keys of the filter are text \(MULE_INTERNAL\), those given are text \(UTF8\)\.$/,
		'MULE_INTERNAL to UTF8: looking up is an error');
	like(
		outcome('utf8', "'$mule'::bloom @> 'a'::text"),
		qr/^42804\|/, 'MULE_INTERNAL to UTF8: also with a type');
	like(outcome('mule', "'$text'::bloom @> 'a'"),
		qr/^42804\|.*\(UTF8\).*\(MULE_INTERNAL\)/, 'UTF8 to MULE_INTERNAL: an error, too');
	like(
		outcome('utf8', "'$mule'::bloom | '$text'::bloom"),
		qr/^42804\|cannot combine .* hashed on different platforms\|/,
		'MULE_INTERNAL and UTF8: a union is an error');
	$node->safe_psql($_, "CREATE TYPE mood AS ENUM ('sad', 'ok')")
	  foreach 'mule', 'utf8';
	my $moods = outcome('mule', "bloom_agg('ok'::mood)");
	is(outcome('mule', "'$moods'::bloom @> 'ok'"),
		'true', 'MULE_INTERNAL: a label is found');
	like(outcome('utf8', "'$moods'::bloom @> $_"),
		qr/^42804\|/, "MULE_INTERNAL to UTF8: label $_ is an error")
	  foreach "'ok'", "'ok'::mood";
	is( outcome(
			'mule', "'"
			  . $node->safe_psql('utf8', 'SELECT bloom_agg(5)')
			  . "'::bloom @> '5'"),
		'true',
		'MULE_INTERNAL: numbers are the same');
}

# Names of types that the encoding lacks
my $names = $node->safe_psql(
	'utf8', q{
CREATE TYPE U&"\65E5a\+01F600" AS ENUM ('x');
SELECT bloom_agg('x'::U&"\65E5a\+01F600")});
foreach my $name ('win1252', $has_mule ? 'mule' : ())
{
	is(outcome($name, "key_type FROM bloom_info('$names')"),
		'\u65E5a\U0001F600', "$name: a name in bloom_info is escaped");
	is( outcome($name, "'$names'::bloom @> 1"),
		'42804|Bloom filter holds keys of type \u65E5a\U0001F600, not of type integer'
		  . '|Keys of different types hash differently, so the answer would be wrong.',
		"$name: a name in a message is escaped");
}
is( outcome('eucjp', "key_type = chars('\\xc6fc61') || '\\U0001F600' FROM bloom_info('$names')"),
	'true',
	'EUC_JP: what it has is not escaped');

# A type whose name cannot be recorded
$node->safe_psql(
	'win1252', q{
DO $$
BEGIN
	EXECUTE format('CREATE TYPE %I AS (x int)', chars('\x81'));
	EXECUTE format('CREATE DOMAIN odd AS %I', chars('\x81'));
END
$$});
like(
	outcome('win1252', 'bloom_agg(ROW(1)::odd)'),
	qr/^0A000\|keys of type ".*" cannot be recorded in a Bloom filter\|The name of the type cannot be converted from encoding WIN1252 to UTF8\.$/,
	'WIN1252: a type whose name cannot be recorded is rejected');

is(find_crashes($node), '', 'no process died');
$node->stop;
done_testing();
