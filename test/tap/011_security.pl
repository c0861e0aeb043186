# The script of the extension runs as a superuser, also when somebody else
# creates the extension.  Nothing that lies in wait in its schema gets into it.

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
$node->safe_psql(
	'postgres', q{
CREATE ROLE owner LOGIN;
CREATE ROLE attacker LOGIN;
CREATE ROLE reader LOGIN;
CREATE DATABASE app OWNER owner;
});
$node->safe_psql('app',
	'CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO PUBLIC');

sub as
{
	my ($user, $query, %options) = @_;
	my ($out, $err) = ('', '');
	my $rc = $node->psql(
		'app', $query,
		stdout => \$out,
		stderr => \$err,
		extra_params => [ '-U', $user ],
		%options);

	return ($rc, $out, $err);
}

# What an ordinary user can put there: types and functions by the names that
# the script mentions, and operators that accept anything, all of them better
# matches than the right ones if names were looked up here first.
my @functions = (
	'contsel(anyelement, anyelement)', 'eqsel(anyelement, anyelement)',
	'bloom_in(text)', 'bloom_out(anyelement)', 'bloom_send(anyelement)',
	'bloom_from_bytea(anyelement)', 'bloom_to_bytea(anyelement)',
	'bloom_add(anyelement, anyelement)', 'bloom_union(anyelement, anyelement)',
	'bloom_contains(anyelement, anyelement)',
	'bloom_eq(anyelement, anyelement)', 'bloom_hashvalue(anyelement)',
	'bloom_agg_transfn(anyelement, anyelement)',
	'bloom_union_agg_transfn(anyelement, anyelement)',
	'bloom_agg_combinefn(anyelement, anyelement)',
	'bloom_agg_finalfn(anyelement)', 'textout(anyelement)');
my ($rc, $out, $err) = as(
	'attacker', join ";\n",
	'SET search_path = shared',
	(map { "CREATE DOMAIN shared.\"$_\" AS pg_catalog.xml" }
		  qw(internal anyelement anyarray cstring float8 int4 int8 text bytea bool)),
	(map {
		my $returns =
		  $_ =~ /^(?:bloom_eq|bloom_contains|contsel|eqsel)/
		  ? 'pg_catalog.bool'
		  : 'pg_catalog.text';
		my $function = s/any/pg_catalog.any/gr;
		$function =~ s/\(text\)/(pg_catalog.text)/;
		"CREATE FUNCTION shared.$function RETURNS $returns LANGUAGE plpgsql AS \$\$ BEGIN RAISE 'the attacker is called'; END \$\$"
	} @functions),
	(map {
		"CREATE OPERATOR shared.$_ (FUNCTION = shared.bloom_eq, LEFTARG = pg_catalog.anyelement, RIGHTARG = pg_catalog.anyelement)"
	} '@>', '<@', '|', '&', '=', '<>'));
is("$rc$err", '0', 'the trap is set');

# It is a superuser who falls into it.
($rc, $out, $err) = as('attacker', 'CREATE EXTENSION bloomfilter SCHEMA shared');
like($err, qr/permission denied/, 'an ordinary user cannot create it');
$node->safe_psql('app', 'CREATE EXTENSION bloomfilter SCHEMA shared');
pass('the script runs through');

# What the objects of the extension refer to is theirs or PostgreSQL's, which
# has no entries here.
my $references = q{
SELECT pg_describe_object(d.classid, d.objid, 0), pg_describe_object(d.refclassid, d.refobjid, 0)
FROM pg_depend m
JOIN pg_depend d ON d.classid = m.classid AND d.objid = m.objid
WHERE m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e'
	AND m.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
	AND d.refclassid NOT IN ('pg_extension'::regclass, 'pg_namespace'::regclass)
	AND NOT EXISTS (SELECT FROM pg_depend e
					WHERE e.classid = d.refclassid AND e.objid = d.refobjid
						AND e.refclassid = 'pg_extension'::regclass AND e.refobjid = m.refobjid)
	AND NOT EXISTS (SELECT FROM pg_type t
					WHERE d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
						AND t.typnamespace = 'pg_catalog'::regnamespace)
	AND NOT EXISTS (SELECT FROM pg_depend i JOIN pg_depend e
						ON e.classid = i.refclassid AND e.objid = i.refobjid
					WHERE i.classid = d.refclassid AND i.objid = d.refobjid AND i.deptype = 'i'
						AND e.refclassid = 'pg_extension'::regclass AND e.refobjid = m.refobjid)};
is($node->safe_psql('app', $references), '', 'nothing of the trap is in it');
is( $node->safe_psql(
		'app', q{
SELECT count(*) > 60, count(*) FILTER (WHERE proowner <> 10)
	FROM pg_depend JOIN pg_proc p ON p.oid = objid
	WHERE classid = 'pg_proc'::regclass AND deptype = 'e'
		AND refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')}),
	't|0',
	'its functions belong to the superuser');
is( $node->safe_psql(
		'app', q{
SELECT shared.bloom_contains(shared.bloom_agg(i), 5), shared.bloom_agg(i) OPERATOR(shared.@>) 5
	FROM generate_series(1, 9) i}),
	't|t',
	'it works there');
$node->safe_psql('app', 'DROP EXTENSION bloomfilter');

# One that has the very name and arguments of ours stops the script: it does
# not replace what is there, and so takes over nothing of somebody else's.
as('attacker', q{
CREATE FUNCTION shared.bloom_sizing(float8, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'});
($rc, $out, $err) =
  $node->psql('app', 'CREATE EXTENSION bloomfilter SCHEMA shared');
like($err, qr/"bloom_sizing" already exists with same argument types/,
	'a function of the same name and arguments is not replaced');
is( $node->safe_psql('app',
		q{SELECT count(*) FROM pg_extension WHERE extname = 'bloomfilter'}),
	'0',
	'and nothing is left');

#
# Trusted: the owner of a database, no superuser
#
($rc, $out, $err) = as('owner',
	'CREATE SCHEMA mine; CREATE EXTENSION bloomfilter SCHEMA mine');
is("$rc$err", '0', 'the owner of a database creates it');
($rc, $out, $err) = as('owner', q{
CREATE FUNCTION mine.mine(internal, text) RETURNS internal
	LANGUAGE C AS '$libdir/bloomfilter', 'bloom_agg_transfn'});
like($err, qr/permission denied for language c/,
	'that does not let them make functions of the library');
($rc, $out, $err) = as('owner',
	'ALTER FUNCTION mine.bloom_eq(mine.bloom, mine.bloom) RENAME TO other');
like($err, qr/must be owner/, 'nor change those of the extension');

# What the functions do is done as the caller.
as('owner', q{
GRANT USAGE ON SCHEMA mine TO reader;
CREATE TABLE mine.secret AS SELECT mine.bloom_agg(i) AS f FROM generate_series(1, 9) i});
($rc, $out, $err) = as('reader', 'SELECT mine.bloom_info(f) FROM mine.secret');
like($err, qr/permission denied for table/, 'nobody reads a table by it');
is( $node->safe_psql(
		'app', q{
SELECT count(*) FROM pg_proc WHERE pronamespace = 'mine'::regnamespace AND prosecdef}),
	'0',
	'no function runs with the rights of its owner');
($rc, $out, $err) =
  as('owner', 'DROP TABLE mine.secret; DROP EXTENSION bloomfilter');
is("$rc$err", '0', 'they drop it');

is(find_crashes($node), '', 'nothing crashed');
done_testing();
