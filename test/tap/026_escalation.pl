# Ordinary users do not get others to run their functions: not where indexes
# evaluate expressions as the owner of the table, and not by functions and
# types that they add to the extension.

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
CREATE ROLE attacker LOGIN;
CREATE ROLE victim LOGIN;
CREATE DATABASE app OWNER attacker;
});

sub as
{
	my ($user, $query) = @_;
	my ($out, $err) = ('', '');

	$node->psql(
		'app', $query,
		stdout => \$out,
		stderr => \$err,
		extra_params => [ '-U', $user ]);
	return ($out, $err);
}

# The attacker owns the database, and so may create the extension, which is
# trusted.  Functions of theirs tell who calls them.
my (undef, $error) = as('attacker', q{
CREATE EXTENSION bloomfilter;
CREATE SCHEMA evil;
CREATE TABLE evil.calls (who text);
GRANT USAGE ON SCHEMA evil TO PUBLIC;
GRANT INSERT ON evil.calls TO PUBLIC;
GRANT CREATE ON SCHEMA public TO victim;
CREATE FUNCTION evil.record() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO evil.calls VALUES (current_user);
	RETURN true;
END $$;
CREATE FUNCTION evil.lower(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM evil.record();
	RETURN pg_catalog.lower($1);
END $$});
is($error, '', 'the attacker has functions');

sub callers
{
	return as('attacker',
		q{WITH c AS (DELETE FROM evil.calls RETURNING who)
SELECT string_agg(DISTINCT who, ' ') FROM c});
}

#
# Expressions and predicates of indexes are evaluated as the owner of the
# table.
#
(undef, $error) = as('victim', q{
CREATE TABLE names (name text, id int);
INSERT INTO names VALUES ('One', 1);
CREATE FUNCTION fold(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN lower($1); END $$;
CREATE FUNCTION inlined(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT lower($1)';
CREATE FUNCTION is_small(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN lower($1) IS NOT NULL; END $$;
CREATE INDEX by_name ON names USING bloomfilter (fold(name));
CREATE INDEX by_inlined ON names USING bloomfilter (inlined(name));
CREATE INDEX by_number ON names USING bloomfilter ((inlined(name) || id));
CREATE INDEX small_name ON names USING bloomfilter (name) WHERE is_small(name);
GRANT SELECT, INSERT ON names TO attacker});
is($error, '', 'the victim has indexes');

my $path = 'SET search_path = evil, pg_catalog, public;';
as('attacker', "$path INSERT INTO names VALUES ('Two')");
is((callers())[0], 'attacker', 'the function is found by the search path');
# Planning a query puts the bodies of SQL functions in place of their calls.
foreach my $query (
	"SELECT bloom_index_check('by_name')",
	"SELECT bloom_index_check('small_name')",
	"SELECT bloom_index_check('by_inlined')",
	"SELECT bloom_index_info('by_name')",
	"SELECT bloom_index_filter('small_name')",
	"SELECT bloom_index_contains('by_name', 'one')",
	"SELECT bloom_index_contains_each('small_name', '{One,Two}')",
	'REINDEX SCHEMA public',
	'VACUUM names')
{
	(undef, $error) = as('attacker', "$path\n;EXPLAIN SELECT FROM names;\n$query");
	is($error, '', $query);
	is((callers())[0], '', "$query runs no function of its caller");
}
as('attacker',
	"$path\n;INSERT INTO names VALUES ('Three');\nSELECT bloom_index_check('by_name')"
);
is((callers())[0], 'attacker', 'nor does a plan that its caller has cached');

# A simplified expression may lack a column.
as('victim', 'REVOKE SELECT ON names FROM attacker; GRANT SELECT (id) ON names TO attacker');
(undef, $error) = as('attacker', q{
DROP FUNCTION evil.lower(text);
CREATE FUNCTION evil.lower(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''x''::text';
SET search_path = evil, pg_catalog, public;
EXPLAIN SELECT id FROM names;
SELECT bloom_index_contains('by_number', 'one1')});
like($error, qr/permission denied for table names/, 'all columns take the privilege');
is((as('victim', q{SELECT bloom_index_contains('by_name', 'one')}))[0],
	't', 'the indexes work');

#
# Whoever has created the extension may add objects to it, by the names of ours.
#
(undef, $error) = as('attacker', q{
CREATE FUNCTION evil.bloom_join_probe(integer) RETURNS boolean
	LANGUAGE sql AS 'SELECT evil.record()';
CREATE FUNCTION evil.bloom_join_probe(integer, VARIADIC integer[]) RETURNS boolean
	LANGUAGE sql AS 'SELECT evil.record()';
CREATE TYPE evil.bloom AS ENUM ('x');
CREATE TYPE evil.bloom_key AS ENUM ('x');
CREATE TYPE evil.bloom_keys AS ENUM ('x');
ALTER EXTENSION bloomfilter ADD FUNCTION evil.bloom_join_probe(integer);
ALTER EXTENSION bloomfilter ADD FUNCTION evil.bloom_join_probe(integer, integer[]);
ALTER EXTENSION bloomfilter ADD TYPE evil.bloom;
ALTER EXTENSION bloomfilter ADD TYPE evil.bloom_key;
ALTER EXTENSION bloomfilter ADD TYPE evil.bloom_keys;
CREATE TABLE evil.keys (a evil.bloom, b evil.bloom_key, c evil.bloom_keys);
CREATE INDEX ON evil.keys USING bloomfilter (a);
CREATE INDEX ON evil.keys USING bloomfilter (b);
CREATE INDEX ON evil.keys USING bloomfilter (c);
CREATE FUNCTION evil.is_in(integer, evil.bloom) RETURNS boolean LANGUAGE sql AS 'SELECT true'});
is($error, '', 'the attacker adds objects to the extension');

# Some releases let only superusers use an estimator.
$node->safe_psql(
	'app', q{
CREATE OPERATOR evil.@@ (FUNCTION = evil.is_in, RESTRICT = bloom_contsel,
	LEFTARG = integer, RIGHTARG = evil.bloom)});

my $join = q{
LOAD 'bloomfilter';
SET bloomfilter.join_filters = force;
SET enable_mergejoin = off;
SET enable_nestloop = off;
%s SELECT count(*) FROM generate_series(1, 1000) a JOIN generate_series(1, 10) b ON a = b};
like(
	$node->safe_psql('app', sprintf $join, 'EXPLAIN VERBOSE'),
	qr/Filter: bloom_join_probe\(1, a\.a\)/,
	'the join of a superuser has a filter');
is($node->safe_psql('app', sprintf $join, ''), '10', 'the result is right');
is((callers())[0], '', 'the filter runs no function of the attacker');

foreach my $query (
	"INSERT INTO evil.keys VALUES ('x', 'x', 'x')",
	"SELECT bloom_contains(bloom_add(NULL, 'x'::evil.bloom_key), 'x'::evil.bloom_key)",
	"SELECT bloom_contains(bloom_add(NULL, 'x'::evil.bloom_keys), 'x'::evil.bloom_keys)",
	"SELECT bloom_contains(bloom_agg(a), 'x'::evil.bloom) FROM evil.keys",
	"SELECT FROM pg_class WHERE relpages OPERATOR(evil.@@) 'x'::evil.bloom LIMIT 0")
{
	(undef, $error) = as('attacker', $query);
	is($error, '', $query);
}
is( $node->safe_psql('app',
		q{SELECT bloom_hash('x'::evil.bloom_key) = bloom_hash('x'::text), bloom_hash('x') = bloom_hash('x'::text)}
	),
	't|t',
	'an enum is hashed as such, and keys without a type as text');
is(find_crashes($node), '', 'nothing crashed');
done_testing();
