# Filters survive pg_dump, to the byte, and every key is still found afterwards:
# also enum values, whose OIDs are others then, and text in a database of
# another encoding.  Keys that hash by the locale of the database are found
# under the same locale; under another one, a probe is an error.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# Filters of every key type and form, and what has to be the same afterwards
my $setup = "$FindBin::RealBin/../exchange/filters.sql";
my $fingerprint = 'SELECT fingerprint()';

# These hash by functions of PostgreSQL's, which depend on the encoding.
my $opclass_hashed = join '|', map { quotemeta }
  qw(citext jsonb int[] text[] float8[] int8range numrange);

my $enum_oids = q{
SELECT oid FROM pg_enum
	WHERE enumtypid = (SELECT atttypid FROM pg_attribute
		WHERE attrelid = '"keys: enum"'::regclass AND attname = 'k')};

my $node = new_node('main');
$node->start;

my $dir = PostgreSQL::Test::Utils::tempdir();

sub psql_file
{
	my ($db, $file, @options) = @_;

	return [
		'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', @options, '-d',
		$node->connstr($db), '-f', $file
	];
}

sub make_filters
{
	my ($db, $encoding) = @_;

	create_database($node, $db, $encoding);
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	$node->command_ok(psql_file($db, $setup), "filters are made in $encoding");
	return $node->safe_psql($db, $fingerprint);
}

# Every key of every filter is found, of those types that are wanted.  Where the
# others were hashed in another encoding, a probe is an error.
sub check_keys
{
	my ($db, $what, $wanted) = @_;

	$wanted //= 'true';
	like($node->safe_psql($db, qq{
SELECT count(*), sum(lost), min(probed) > 4000 FROM lost_keys('filters', \$\$$wanted\$\$)}),
		qr/^[23]\d\|0\|t$/, "$what: keys are found");
	like($node->safe_psql($db, q{SELECT * FROM probes_answered('filters')}),
		qr/^\d{3}\|0$/, "$what: other keys are an error")
	  if $wanted eq 'NOT opclass_hashed';
	return;
}

#
# The database that is dumped
#
my $original = make_filters('original', 'UTF8');

cmp_ok($original =~ tr/\n//, '>', 600, 'they are there');
check_keys('original', 'before the dump');

# A dump is restored with an empty search_path, and what a constraint answers
# must not depend on that: also where the type of a key is found by its name.
my ($status, $out, $err) = $node->psql('original', q{
SET search_path = '';
SELECT count(*) > 10, bool_and(f OPERATOR(public.@>) 'KEY 1')
	FROM public.filters WHERE key_type = 'citext' AND low = 1 AND high > 0});
is("$out$err", 't|t', 'keys without a type are found with an empty search_path');

my %dumps = (
	plain => ['--format=plain'],
	custom => ['--format=custom'],
	directory => [ '--format=directory', '--jobs=2' ]);
foreach my $format (sort keys %dumps)
{
	$node->command_ok(
		[
			'pg_dump', @{ $dumps{$format} },
			'--file', "$dir/$format",
			'--dbname', $node->connstr('original')
		],
		"pg_dump, $format format");
}

# An object with an OID in the target beforehand, so that those that follow
# cannot by chance be the old ones.
my $shift =
  'CREATE TYPE shift AS ENUM (' . join(', ', map { "'$_'" } 1 .. 500) . ')';

sub restore
{
	my ($db, $dump, @options) = @_;

	return $dump eq 'plain'
	  ? psql_file($db, "$dir/$dump")
	  : [
		'pg_restore', '--exit-on-error', @options,
		'--dbname', $node->connstr($db), "$dir/$dump"
	  ];
}

sub check_restored
{
	my ($db, $what, $wanted) = @_;

	is($node->safe_psql($db, $fingerprint), $original, "$what: filters are the same");
	my %oids = map { $_ => 1 } split /\n/,
	  $node->safe_psql('original', $enum_oids);
	my @oids = split /\n/, $node->safe_psql($db, $enum_oids);
	is(@oids . ', ' . grep({ $oids{$_} } @oids),
		'400, 0', "$what: all enum values have other OIDs");
	check_keys($db, $what, $wanted);
	return;
}

foreach my $format (sort keys %dumps)
{
	create_database($node, $format, 'UTF8');
	$node->safe_psql($format, $shift);
	$node->command_ok(
		restore($format, $format, $format eq 'directory' ? '--jobs=2' : ()),
		"restore, $format format");
	check_restored($format, "$format format");
}

#
# Somebody who owns a database restores it without a superuser's help.
#
$node->safe_psql('postgres', 'CREATE ROLE landlord LOGIN');
create_database($node, 'owned', 'UTF8', 'OWNER landlord');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--no-owner', '--dbname',
		$node->connstr('owned') . ' user=landlord', "$dir/custom" ],
	'restore by the owner of a database');
is($node->safe_psql('owned', q{
SELECT extowner::regrole FROM pg_extension WHERE extname = 'bloomfilter'}),
	'landlord', 'the extension belongs to the owner of the database');
check_restored('owned', 'restored by an owner');

# CREATE on the database is all that the extension takes.
$node->safe_psql('postgres', q{
CREATE ROLE tenant LOGIN;
CREATE DATABASE rented;
GRANT CREATE ON DATABASE rented TO tenant;
});
($status, $out, $err) = $node->psql('rented', q{
CREATE SCHEMA flat;
CREATE EXTENSION bloomfilter SCHEMA flat;
SELECT flat.bloom_contains(flat.bloom_add(flat.bloom_empty(), 'key'), 'key')},
	extra_params => [ '-U', 'tenant' ]);
is("$status, $out, $err", '0, t, ',
	'a user who may create in a database can install the extension');

#
# Another encoding: there and back
#
create_database($node, 'latin', 'LATIN1');
$node->safe_psql('latin', $shift);
$node->command_ok(restore('latin', 'custom'), 'restore, UTF8 to LATIN1');
check_restored('latin', 'UTF8 to LATIN1', 'NOT opclass_hashed');

# A database that knows no encoding keeps the bytes.
create_database($node, 'ascii', 'SQL_ASCII');
$node->command_ok(restore('ascii', 'custom'), 'restore, UTF8 to SQL_ASCII');
check_restored('ascii', 'UTF8 to SQL_ASCII', 'NOT opclass_hashed');

# The same keys make the same filters in both encodings, except for the key
# types that record it.
my $born_latin = make_filters('born_latin', 'LATIN1');
my ($expected, $got) = map {
	join "\n", grep { !/^(?:$opclass_hashed)\|(?!empty)/ } split /\n/, $_
} ($original, $born_latin);
is($got, $expected, 'the same keys make the same filters in LATIN1');
check_keys('born_latin', 'built in LATIN1');

$node->command_ok([ 'pg_dump', '--format=custom', '--file', "$dir/latin", '--dbname',
		$node->connstr('born_latin') ], 'pg_dump of a LATIN1 database');
create_database($node, 'from_latin', 'UTF8');
$node->command_ok(restore('from_latin', 'latin'), 'restore, LATIN1 to UTF8');
is($node->safe_psql('from_latin', $fingerprint),
	$born_latin, 'LATIN1 to UTF8: filters are the same');
check_keys('from_latin', 'LATIN1 to UTF8', 'NOT opclass_hashed');

#
# Another locale: citext hashes the lower case in the database's locale.
#
SKIP:
{
	my $create = q{
CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'
	LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'};
	my ($failed) = $node->psql('postgres', sprintf $create, 'lower');

	skip 'this system has no locale C.UTF-8', 11 if $failed;

	$node->safe_psql('lower', $shift);
	$node->command_ok(restore('lower', 'custom'), 'restore, C to C.UTF-8');
	check_restored('lower', 'C to C.UTF-8', q{key_type <> 'citext'});
	($status, $out, $err) = $node->psql('lower', q{
SELECT f @> 'KEY 1' FROM filters WHERE key_type = 'citext' AND form = 'dense'});
	like(
		$err,
		qr/citext hashed under another locale\n.*, locale C\), .*, locale C\.utf8\)/,
		'C to C.UTF-8: the error names both locales');

	$node->safe_psql('lower', q{
CREATE TABLE cities AS SELECT bloom_agg(U&'Z\00DCRICH'::citext) AS f});
	$node->command_ok([ 'pg_dump', '--format=custom', '--file', "$dir/lower", '--dbname',
			$node->connstr('lower') ], 'pg_dump of a C.UTF-8 database');
	$node->safe_psql('postgres', sprintf $create, 'same');
	$node->command_ok(restore('same', 'lower'), 'restore, C.UTF-8 to C.UTF-8');
	is($node->safe_psql('same', q{
SELECT f @> U&'z\00FCrich'::citext, f @> U&'Z\00FCRICH' FROM cities}),
		't|t', 'C.UTF-8 to C.UTF-8: a key of other case is found');
	create_database($node, 'upper', 'UTF8');
	$node->command_ok(restore('upper', 'lower'), 'restore, C.UTF-8 to C');
	foreach my $key (q{U&'Z\00DCRICH'::citext}, q{U&'Z\00DCRICH'})
	{
		($status, $out, $err) = $node->psql('upper', "SELECT f @> $key FROM cities");
		like($err, qr/under another locale/, "C.UTF-8 to C: an error: $key");
	}
}

done_testing();
