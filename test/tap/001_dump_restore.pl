# Filters survive pg_dump, to the byte, and every key is still found afterwards:
# also enum values, whose OIDs are others then, and text in a database of
# another encoding.  Keys that hash by the locale of the database are found
# under the same locale; under another one, a probe is an error.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# Key types: SQL type, and the i-th key.  Non-ASCII characters are written as
# escapes, which mean the same in every encoding.
my %key_types = (
	text => [
		'text',
		q{CASE WHEN i % 2 = 0 THEN U&'Z\00FCrich ' || i ELSE 'key ' || i END}
	],
	integer => [ 'int', 'i - 500' ],
	numeric => [ 'numeric', 'i * 1.50' ],
	uuid => [ 'uuid', 'md5(i::text)::uuid' ],
	timestamptz =>
	  [ 'timestamptz', q{timestamptz '2000-01-01 UTC' + i * interval '1 h'} ],
	enum => [
		qq{U&"gr\\00F6\\00DFe"},
		qq{(enum_range(NULL::U&"gr\\00F6\\00DFe"))[i]}
	],
	citext => [ 'citext', q{(U&'Z\00FCrich ' || i)::citext} ],
	jsonb => [ 'jsonb', q{jsonb_build_object(U&'Z\00FCrich', i)} ],
	array => [ 'text[]', q{ARRAY[U&'Z\00FCrich', i::text]} ]);

# These hash by functions of PostgreSQL's, which depend on the encoding.
my @opclass_hashed = qw(array citext jsonb);

# Forms of filters: how to build one from keys k with numbers i, and up to
# which i it has keys.  Enums have the fewest keys, 400.
my %forms = (
	sparse => [ 20, 'bloom_agg(k, 0.01, 400) FILTER (WHERE i <= 20)' ],
	dense => [ 400, 'bloom_agg(k, 0.001, 400)' ],
	seeded => [ 400, 'bloom_agg(k, 0.001, 400, -77)' ],
	self_sized => [ 400, 'bloom_agg(k)' ],
	layers => [ 400, 'bloom_agg(k, 0.01, 40)' ],
	side_by_side => [
		400,
		'bloom_agg(k, 0.01, 100) FILTER (WHERE i <= 100)'
		  . ' | bloom_agg(k, 0.05, 300) FILTER (WHERE i > 100)'
	],
	empty => [ 0, 'bloom_empty()' ],
	empty_sized => [ 0, 'bloom_empty(0.25, 1000000, 5)' ]);

my $setup = q{
SET client_min_messages = error;	-- layers warn that they had to grow
CREATE EXTENSION IF NOT EXISTS bloomfilter;
CREATE EXTENSION IF NOT EXISTS citext;
DO $$
BEGIN
	EXECUTE (SELECT format('CREATE TYPE %I AS ENUM (%s)',
						   U&'gr\00F6\00DFe',
						   string_agg(quote_literal(U&'gr\00FCn ' || i), ', '))
			 FROM generate_series(1, 400) i);
END $$;
CREATE TABLE filters (key_type text, form text, n int, f bloom);

-- 'ok', or the SQLSTATE that the query ends with
CREATE FUNCTION sqlstate_of(query text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
};

foreach my $key_type (sort keys %key_types)
{
	my ($type, $key) = @{ $key_types{$key_type} };

	$setup .= "CREATE TABLE keys_$key_type AS SELECT i, ($key)::$type AS k"
	  . " FROM generate_series(1, 400) i;\n";
	foreach my $form (sort keys %forms)
	{
		my ($n, $filter) = @{ $forms{$form} };

		$setup .= "INSERT INTO filters SELECT '$key_type', '$form', $n, $filter"
		  . " FROM keys_$key_type LIMIT 1;\n";
	}
}

# Large enough to be out of line in many chunks
$setup .= q{
INSERT INTO filters
	SELECT 'text', 'large', 400, bloom_agg(k) | (
			SELECT bloom_agg('other ' || i) FROM generate_series(1, 100000) i)
		FROM keys_text;
};

# Other places where a database can have a filter.  The restored database
# computes constraint, generated column and index again, with an empty
# search_path.
$setup .= q{
CREATE TYPE named_filter AS (name text, f bloom);
CREATE DOMAIN small_filter AS bloom CHECK (octet_length(VALUE::bytea) < 10000);
CREATE TABLE places (
	id int,
	form text,
	one bloom DEFAULT bloom_add(bloom_empty(0.05, 77), 'by default'),
	many bloom[],
	named named_filter,
	small small_filter,
	cardinality bigint GENERATED ALWAYS AS (bloom_cardinality(one)) STORED,
	CHECK (id = 0 OR one @> 'by default'));
CREATE INDEX ON places (bloom_cardinality(one)) WHERE one @> 'by default';
INSERT INTO places (id, form, many, named, small)
	SELECT row_number() OVER (ORDER BY form), form,
		   ARRAY[f, NULL, bloom_empty(), f], ROW(form, f)::named_filter, f
	FROM filters WHERE key_type = 'text' AND form <> 'large';
DO $$
BEGIN
	EXECUTE format('ALTER TABLE places ALTER small SET DEFAULT %L',
				   (SELECT f FROM filters WHERE key_type = 'enum' AND form = 'dense'));
END $$;
INSERT INTO places (id) VALUES (100);
};

# Everything that has to be the same afterwards.
my $fingerprint = q{
SELECT key_type, form, n, md5(f::bytea), (bloom_info(f)).layers
	FROM filters ORDER BY key_type COLLATE "C", form COLLATE "C";
SELECT id, form, md5(one::bytea), array_length(many, 1), many[2] IS NULL,
	   md5(many[1]::bytea), md5(many[3]::bytea), md5(many[4]::bytea),
	   (named).name, md5((named).f::bytea), md5(small::bytea), cardinality
	FROM places ORDER BY id;
INSERT INTO places (id, form) VALUES (-1, 'from the defaults');
DELETE FROM places WHERE id = -1
	RETURNING md5(one::bytea), md5(small::bytea);
};

my $enum_oids = q{
SELECT oid FROM pg_enum
	WHERE enumtypid = (SELECT atttypid FROM pg_attribute
		WHERE attrelid = 'keys_enum'::regclass AND attname = 'k')};

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

# Every key of every filter is found.  For key types in @rejected, which were
# hashed in another encoding, a probe is an error instead.
sub check_keys
{
	my ($db, $what, @rejected) = @_;
	my %rejected = map { $_ => 1 } @rejected;
	my @queries;
	my @expected;

	foreach my $key_type (sort keys %key_types)
	{
		if ($rejected{$key_type})
		{
			push @queries, qq{
SELECT '$key_type', string_agg(DISTINCT sqlstate_of(format(query, f)), ', ')
	FROM filters, (VALUES
		('SELECT %L::bloom \@> k FROM keys_$key_type LIMIT 1'),
		('SELECT bloom_add(%L::bloom, k) FROM keys_$key_type LIMIT 1')) AS v (query)
	WHERE key_type = '$key_type' AND n > 0};
			push @expected, "$key_type|42804";
		}
		else
		{
			push @queries, qq{
SELECT '$key_type', count(*) FILTER (WHERE NOT f \@> k),
	   count(*) = (SELECT sum(n) FROM filters WHERE key_type = '$key_type')
	FROM filters JOIN keys_$key_type ON i <= n WHERE key_type = '$key_type'};
			push @expected, "$key_type|0|t";
		}
	}
	is($node->safe_psql($db, join ';', @queries),
		join("\n", @expected),
		"$what: "
		  . (@rejected
			? 'keys are found, or probing them is an error'
			: 'keys are found'));
	return;
}

#
# The database that is dumped
#
create_database($node, 'original', 'UTF8');
$node->safe_psql('original', $setup);
my $original = $node->safe_psql('original', $fingerprint);

like($original, qr/^text\|layers\|400\|\w+\|[2-9]$/m,
	'one form has several layers');
like($original, qr/^text\|side_by_side\|400\|\w+\|2$/m,
	'one form has two layers side by side');
is($node->safe_psql('original', q{
SELECT count(f) FROM filters;
SELECT count(*) FROM places WHERE num_nonnulls(one, many, named, small) = 4}),
	"73\n8", 'no filter is missing');
check_keys('original', 'before the dump');

# A dump is restored with an empty search_path, and what a constraint answers
# must not depend on that: also where the type of a key is found by its name.
my ($status, $out, $err) = $node->psql('original', q{
SET search_path = '';
SELECT count(*), count(*) FILTER (WHERE f OPERATOR(public.@>) U&'z\00FCRICH 1')
	FROM public.filters WHERE key_type = 'citext' AND n > 0});
is("$out$err", '6|6',
	'keys without a type are found with an empty search_path');

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
	my ($db, $what, @rejected) = @_;

	is($node->safe_psql($db, $fingerprint),
		$original, "$what: filters are the same");
	my %oids = map { $_ => 1 } split /\n/,
	  $node->safe_psql('original', $enum_oids);
	my @oids = split /\n/, $node->safe_psql($db, $enum_oids);
	is(@oids . ', ' . grep({ $oids{$_} } @oids),
		'400, 0', "$what: all enum values have other OIDs");
	check_keys($db, $what, @rejected);
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
$node->command_ok(
	[
		'pg_restore', '--exit-on-error', '--no-owner',
		'--dbname', $node->connstr('owned') . ' user=landlord',
		"$dir/custom"
	],
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
check_restored('latin', 'UTF8 to LATIN1', @opclass_hashed);

# A database that knows no encoding keeps the bytes.
create_database($node, 'ascii', 'SQL_ASCII');
$node->command_ok(restore('ascii', 'custom'), 'restore, UTF8 to SQL_ASCII');
check_restored('ascii', 'UTF8 to SQL_ASCII', @opclass_hashed);

# The same keys make the same filters in both encodings, except for the key
# types that record it.
create_database($node, 'born_latin', 'LATIN1');
$node->safe_psql('born_latin', $setup);
my $born_latin = $node->safe_psql('born_latin', $fingerprint);
my $opclass_hashed = join '|', @opclass_hashed;
my ($expected, $got) = map {
	join "\n", grep { !/^(?:$opclass_hashed)\|(?!empty)/ } split /\n/, $_
} ($original, $born_latin);
is($got, $expected, 'the same keys make the same filters in LATIN1');
check_keys('born_latin', 'built in LATIN1');

$node->command_ok(
	[
		'pg_dump', '--format=custom', '--file', "$dir/latin",
		'--dbname', $node->connstr('born_latin')
	],
	'pg_dump of a LATIN1 database');
create_database($node, 'from_latin', 'UTF8');
$node->command_ok(restore('from_latin', 'latin'), 'restore, LATIN1 to UTF8');
is($node->safe_psql('from_latin', $fingerprint),
	$born_latin, 'LATIN1 to UTF8: filters are the same');
check_keys('from_latin', 'LATIN1 to UTF8', @opclass_hashed);

# A filter of opclass-hashed keys stays one of the other encoding: keys of this
# encoding are not added, and filters not united.
is($node->safe_psql('from_latin', q{
SELECT sqlstate_of('SELECT f | (SELECT bloom_agg(k) FROM keys_citext)'
	' FROM filters WHERE key_type = ''citext'' AND form = ''dense''')}),
	'42804', 'filters of opclass-hashed keys from two encodings cannot be united');

#
# Another locale: citext hashes the lower case in the database's locale.
#
SKIP:
{
	my $create = q{
CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'
	LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'};
	my ($failed) = $node->psql('postgres', sprintf $create, 'lower');

	skip 'this system has no locale C.UTF-8', 10 if $failed;

	$node->safe_psql('lower', $shift);
	$node->command_ok(restore('lower', 'custom'), 'restore, C to C.UTF-8');
	check_restored('lower', 'C to C.UTF-8', 'citext');
	($status, $out, $err) = $node->psql('lower', q{
SELECT f @> U&'Z\00DCRICH 1' FROM filters WHERE key_type = 'citext' LIMIT 1});
	like(
		$err,
		qr/citext hashed under another locale\n.*, locale C\), .*, locale C\.utf8\)/,
		'C to C.UTF-8: the error names both locales');

	$node->safe_psql('lower', q{
CREATE TABLE cities AS SELECT bloom_agg(U&'Z\00DCRICH'::citext) AS f});
	$node->command_ok(
		[
			'pg_dump', '--format=custom', '--file', "$dir/lower",
			'--dbname', $node->connstr('lower')
		],
		'pg_dump of a C.UTF-8 database');
	$node->safe_psql('postgres', sprintf $create, 'same');
	$node->command_ok(restore('same', 'lower'), 'restore, C.UTF-8 to C.UTF-8');
	is($node->safe_psql('same', q{
SELECT f @> U&'z\00FCrich'::citext, f @> U&'Z\00FCRICH' FROM cities}),
		't|t', 'C.UTF-8 to C.UTF-8: a key of other case is found');
	create_database($node, 'upper', 'UTF8');
	$node->command_ok(restore('upper', 'lower'), 'restore, C.UTF-8 to C');
	is($node->safe_psql('upper', q{
SELECT sqlstate_of('SELECT f @> U&''Z\00DCRICH''::citext FROM cities'),
	   sqlstate_of('SELECT f @> U&''Z\00DCRICH'' FROM cities')}),
		'42804|42804', 'C.UTF-8 to C: a probe is an error');
}

done_testing();
