# Text that has an equivalent in UTF-8 has the same hash in databases of all
# encodings, and other text is an error that names it.  Names of types that an encoding lacks do not
# make an error of another one.

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

	my @keys = map { "chars('$_')" } grep { defined }
	  $name eq 'ascii' ? $lone : undef, $common;
	my $filter =
	  'bloom_add_all(bloom_empty(), ARRAY[' . join(', ', @keys) . '])';
	foreach my $key (@keys)
	{
		is(outcome($name, "$filter @> $key"), 'true', "$encoding: $key is found");
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
	next if !defined $lone || $name eq 'ascii';
	my $error = $name eq 'mule' ? qr/^0A000\|Bloom filters do not support text in encoding "MULE_INTERNAL"\|/
	  : qr/^22P05\|key "[^"]*\\x[0-9a-f]{2}[^"]*" of a Bloom filter has no equivalent in encoding "UTF8"\|/;
	like(outcome($name, "bloom_agg($_)"), $error, "$encoding: $_ is an error")
	  foreach "chars('$lone')", "chars('$lone')::char(20)", "chars('$lone')::name", "chars('$lone')::bloom_key";
}

# A label of an enum without an equivalent
$node->safe_psql('win1252', q{
DO $$
BEGIN
	EXECUTE format('CREATE TYPE letters AS ENUM (%L, %L)', chars('\x81'), 'a');
END
$$});
like( outcome(
		'win1252', q{
(SELECT bloom_agg(l) @> l FROM (SELECT enum_first(NULL::letters)) x (l)
	GROUP BY l)}),
	qr/^22P05\|/, 'WIN1252: a label without an equivalent is an error');

# Names of types that the encoding lacks
my $names = $node->safe_psql('utf8', q{
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
	'true', 'EUC_JP: what it has is not escaped');

# The planner looks up values in statistics whose rows may be gone.
$node->safe_psql('win1252', q{
CREATE TABLE gone AS SELECT chars('\x81') AS k FROM generate_series(1, 100);
ANALYZE gone;
DELETE FROM gone});
is($node->safe_psql('win1252', q{SELECT count(*) FROM gone WHERE bloom_add(NULL, 'a'::text) @> k}),
	'0', 'a value in statistics without an equivalent is no error');

# A query by a key without an equivalent asks no index, by a constant or not.
$node->safe_psql('win1252', q{
CREATE TABLE known (day int, k text) PARTITION BY RANGE (day);
CREATE TABLE known_1 PARTITION OF known FOR VALUES FROM (1) TO (2);
CREATE TABLE known_2 PARTITION OF known FOR VALUES FROM (2) TO (3);
CREATE INDEX ON known USING bloomfilter (k);
INSERT INTO known SELECT 1 + i % 2, i FROM generate_series(1, 20000) i;
ANALYZE known;
CREATE TABLE wanted AS SELECT chars('\x81') AS k;
CREATE FUNCTION rows_with(key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	partitioned int;
	by_parameter int;
	joined int;
BEGIN
	EXECUTE format('SELECT count(*) FROM known WHERE k = %L', key) INTO partitioned;
	PERFORM set_config('plan_cache_mode', 'force_generic_plan', true);
	by_parameter := (SELECT count(*) FROM known_1 WHERE k = key);
	joined := (SELECT count(*) FROM known JOIN wanted USING (k));
	RETURN concat_ws(',', partitioned, by_parameter, joined);
END $$});
is(outcome('win1252', "rows_with(chars('\\x81'))"),
	'0,0,0', 'a query by a key without an equivalent is no error');
is(outcome('win1252', "rows_with('1')"), '1,0,0', 'a query by a key with one');

# A type whose name cannot be recorded
$node->safe_psql('win1252', q{
DO $$
BEGIN
	EXECUTE format('CREATE TYPE %I AS ENUM (''x'')', chars('\x81'));
	EXECUTE format('CREATE DOMAIN odd AS %I', chars('\x81'));
END
$$});
like(
	outcome('win1252', q{bloom_agg('x'::odd)}),
	qr/^0A000\|keys of type ".*" cannot be recorded in a Bloom filter\|The name of the type cannot be converted from encoding WIN1252 to UTF8\.$/,
	'WIN1252: a type whose name cannot be recorded is rejected');

is(find_crashes($node), '', 'no process died');
$node->stop;
done_testing();
