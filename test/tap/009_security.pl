# What users cannot do to others by means of the extension: by objects that they
# leave where it is created, by what they add to it, by expressions of indexes.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# The script of the extension runs as a superuser, also when somebody else
# creates the extension.  No object that another user left in its schema is called.
#
my $node = new_node('main');
$node->start;
$node->safe_psql('postgres', q{
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
	'bloom_eq(anyelement, anyelement)', 'hash_bloom(anyelement)',
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
is($node->safe_psql('app', q{
SELECT count(*) > 60, count(*) FILTER (WHERE proowner <> 10)
	FROM pg_depend JOIN pg_proc p ON p.oid = objid
	WHERE classid = 'pg_proc'::regclass AND deptype = 'e'
		AND refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')}),
	't|0', 'its functions belong to the superuser');
is($node->safe_psql('app', q{
SELECT shared.bloom_contains(shared.bloom_agg(i), 5), shared.bloom_agg(i) OPERATOR(shared.@>) 5
	FROM generate_series(1, 9) i}), 't|t', 'it works there');
$node->safe_psql('app', 'DROP EXTENSION bloomfilter');

# One that has the very name and arguments of ours stops the script: it does
# not replace what is there, and so takes over nothing of somebody else's.
as('attacker', q{
CREATE FUNCTION shared.bloom_sizing(float8, float8) RETURNS bigint LANGUAGE sql AS 'SELECT 1'});
($rc, $out, $err) =
  $node->psql('app', 'CREATE EXTENSION bloomfilter SCHEMA shared');
like($err, qr/"bloom_sizing" already exists with same argument types/,
	'a function of the same name and arguments is not replaced');
is($node->safe_psql('app',
		q{SELECT count(*) FROM pg_extension WHERE extname = 'bloomfilter'}), '0', 'and nothing is left');

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
($rc, $out, $err) = as('owner',
	'CREATE SCHEMA other; ALTER EXTENSION bloomfilter SET SCHEMA other');
like($err, qr/must be owner of/, 'nor move them to another schema');

# SECURITY.md gives a reason for each function.
my $security =
  PostgreSQL::Test::Utils::slurp_file("$FindBin::RealBin/../../SECURITY.md");
my %justified = map { $_ => 1 } $security =~ /`(\w*bloom\w*)`/g;
my @members = split /\n/, $node->safe_psql('app', q{
SELECT DISTINCT proname FROM pg_depend JOIN pg_proc p ON p.oid = objid
	WHERE classid = 'pg_proc'::regclass AND deptype = 'e'
		AND refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
	ORDER BY proname});
cmp_ok(scalar @members, '>', 50, 'there are functions to be justified');
is(join(' ', grep { !$justified{$_} } @members), '', 'SECURITY.md justifies every function');

#
# What an ordinary user may try with what is there
#
as('owner', 'GRANT USAGE ON SCHEMA mine TO PUBLIC');
($rc, $out, $err) = as('attacker', q{
SET search_path = shared, mine;
CREATE TYPE dress AS ENUM ('plain');
CREATE FUNCTION always(bloom, anyelement) RETURNS boolean LANGUAGE sql AS 'SELECT true'});
is("$rc$err", '0', 'an ordinary user has types and functions');
foreach my $case (
	[
		'an aggregate with our states', 'cannot be internal', q{
CREATE AGGREGATE stolen(anyelement) (SFUNC = bloom_agg_transfn,
	STYPE = internal, FINALFUNC = bloom_agg_finalfn)}
	],
	[
		'an aggregate with our states in its windows', 'cannot be internal', q{
CREATE AGGREGATE stolen(text) (SFUNC = textcat, STYPE = text,
	MSFUNC = bloom_agg_transfn, MINVFUNC = bloom_agg_transfn, MSTYPE = internal)}
	],
	[
		'an aggregate serialized by our functions',
		'may be specified only when', q{
CREATE AGGREGATE stolen(text) (SFUNC = textcat, STYPE = text,
	SERIALFUNC = bloom_agg_serialfn, DESERIALFUNC = bloom_agg_deserialfn)}
	],
	[
		'a function with our support function', 'must be superuser', q{
CREATE FUNCTION stolen(bloom, int) RETURNS boolean LANGUAGE sql
	AS 'SELECT true' SUPPORT bloom_contains_support}
	],
	[
		'a type with our functions', 'must be superuser', q{
CREATE TYPE stolen (INPUT = bloom_in, OUTPUT = bloom_out)}
	],
	[
		'bytes taken for something else', 'must be superuser', q{
CREATE CAST (bloom AS dress) WITHOUT FUNCTION}
	],
	[
		'a cast between types of others', 'must be owner of type', q{
CREATE CAST (text AS bloom) WITH INOUT AS IMPLICIT}
	],
	[
		'a function that returns bytes as a filter',
		'permission denied for language internal', q{
CREATE FUNCTION forge(bytea) RETURNS bloom LANGUAGE internal AS 'byteasend'}
	],
	[
		'other storage of the type', 'must be owner of type', q{
ALTER TYPE bloom SET (STORAGE = main)}
	],
	[
		'an operator class', 'must be superuser', q{
CREATE OPERATOR CLASS stolen FOR TYPE dress USING hash AS
	FUNCTION 1 hash_bloom(bloom)}
	],
	[
		'a negator for our operator', 'must be owner of operator', q{
CREATE OPERATOR shared.!@> (FUNCTION = always, LEFTARG = bloom,
	RIGHTARG = anyelement, NEGATOR = OPERATOR(mine.@>))}
	],
	[
		'other estimators for our operator', 'must be owner of operator', q{
ALTER OPERATOR mine.@> (bloom, anyelement) SET (RESTRICT = contsel)}
	],
	[
		'a member of the extension', 'must be owner of extension', q{
ALTER EXTENSION bloomfilter ADD FUNCTION always(bloom, anyelement)}
	])
{
	my ($what, $error, $query) = @$case;

	(undef, undef, $err) =
	  as('attacker', "SET search_path = shared, mine; $query");
	like($err, qr/ERROR:  .*$error/, "rejected: $what");
}

# SQL has no value of type internal, not even NULL: no such function, say some
# minor releases, no such input, say others.
my @calls = split /\n/, $node->safe_psql('app', q{
SELECT format('SELECT mine.%I(%s)', proname, (
		SELECT string_agg(CASE type::regtype::text
			WHEN 'internal' THEN 'NULL'
			WHEN 'anyelement' THEN '5'
			WHEN 'mine.bloom_key' THEN '''x'''
			WHEN 'mine.bloom_keys' THEN '''{x}'''
			WHEN 'mine.bloom' THEN 'mine.bloom_empty()'
			WHEN 'bytea' THEN 'mine.bloom_empty()::bytea'
			ELSE format('1::%s', type::regtype) END, ', ' ORDER BY i)
		FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS argument (type, i)))
	FROM pg_proc
	WHERE pronamespace = 'mine'::regnamespace AND 'internal'::regtype = ANY (proargtypes)});
cmp_ok(scalar @calls, '>', 15, 'there are functions with arguments of type internal');
(undef, $out, $err) = as(
	'attacker', "\\set VERBOSITY sqlstate\n" . join(";\n", @calls),
	on_error_stop => 0);
is(scalar(() = $err =~ /ERROR:  (?:42883|0A000)/g),
	scalar @calls, 'none of them can be called') || diag($err);
is($out, '', 'nor does any return something');

# Nor can they be by the protocol, where arguments are just bytes or NULL.
my $wire = BloomTest::Wire->new($node, 'app');
my %outcome;
foreach (
	split /\n/, $node->safe_psql('app', q{
SELECT oid::int8, pronargs, 'internal'::regtype = ANY (proargtypes)
	FROM pg_proc WHERE pronamespace = 'mine'::regnamespace AND prokind = 'f'}))
{
	my ($oid, $nargs, $has_internal) = split /\|/;

	my ($state) = $wire->call($oid, (undef) x $nargs);

	$outcome{$has_internal}{$state}++;
}
is(join(' ', keys %{ $outcome{t} }), '0A000', 'none of them can be called by the protocol');
is(join(' ', sort keys %{ $outcome{f} }),
	'0A000 22004 ok',
	'others do nothing with NULLs, or raise an error outside an aggregate');

# Those of keys learn types from the query, of which there is none then.
my ($empty, $add_hash, $contains_hash, $add_all) =
  map { $node->safe_psql('app', "SELECT $_") }
  'mine.bloom_empty()', "'mine.bloom_add_hash'::regproc::oid",
  "'mine.bloom_contains_hash'::regproc::oid",
  "'mine.bloom_add_all(mine.bloom, anyarray)'::regprocedure::oid";
my ($state, $filter) = $wire->call($add_hash, $empty, 5);
is($state, 'ok', 'a function of hashes can be called by the protocol');
is_deeply([ $wire->call($contains_hash, $filter, 5) ],
	[ 'ok', 't' ], 'and works');
is_deeply([ $wire->call($contains_hash, $filter, 6) ],
	[ 'ok', 'f' ], 'in either case');
isnt(($wire->call($add_all, $empty, '{1}'))[0], 'ok', 'one of keys cannot');
$wire->quit;

# An array of which nobody has said the type
(undef, $out, $err) = as('attacker', q{
CREATE TABLE shared.seen AS SELECT i % 3 AS i FROM generate_series(1, 100) i;
ANALYZE shared.seen;
SELECT mine.bloom_contains_any(mine.bloom_empty(), most_common_vals) FROM pg_stats
	WHERE tablename = 'seen'});
like($err, qr/ERROR:/, 'an array of no type is an error');

# What the functions do is done as the caller.
as('owner', q{
GRANT USAGE ON SCHEMA mine TO reader;
CREATE TABLE mine.secret AS SELECT mine.bloom_agg(i) AS f FROM generate_series(1, 9) i});
($rc, $out, $err) = as('reader', 'SELECT mine.bloom_info(f) FROM mine.secret');
like($err, qr/permission denied for table/, 'nobody reads a table by it');
is($node->safe_psql('app', q{
SELECT count(*) FROM pg_proc WHERE pronamespace = 'mine'::regnamespace AND prosecdef}),
	'0', 'no function runs with the rights of its owner');
($rc, $out, $err) = as('attacker', 'DROP OWNED BY attacker');
is("$rc$err", '0', 'the attacker gives up');
($rc, $out, $err) =
  as('owner', 'DROP TABLE mine.secret; DROP EXTENSION bloomfilter');
is("$rc$err", '0', 'they drop it');

is(find_crashes($node), '', 'nothing crashed');

#
# Ordinary users do not get others to run their functions: not where indexes
# evaluate expressions as the owner of the table, and not by functions and
# types that they add to the extension.
#
$node->stop;
$node = new_node('escalation');
$node->start;
$node->safe_psql('postgres', q{
CREATE ROLE attacker LOGIN;
CREATE ROLE victim LOGIN;
CREATE DATABASE app OWNER attacker;
});

# The attacker owns the database, and so may create the extension, which is
# trusted.  Functions of theirs tell who calls them.
my (undef, undef, $error) = as('attacker', q{
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
	my (undef, $callers) = as('attacker',
		q{WITH c AS (DELETE FROM evil.calls RETURNING who)
SELECT string_agg(DISTINCT who, ' ') FROM c});

	return $callers;
}

#
# Expressions and predicates of indexes are evaluated as the owner of the
# table.
#
(undef, undef, $error) = as('victim', q{
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
is(callers(), 'attacker', 'the function is found by the search path');
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
	(undef, undef, $error) = as('attacker', "$path\n;EXPLAIN SELECT FROM names;\n$query");
	is($error, '', $query);
	is(callers(), '', "$query runs no function of its caller");
}
as('attacker',
	"$path\n;INSERT INTO names VALUES ('Three');\nSELECT bloom_index_check('by_name')"
);
is(callers(), 'attacker', 'nor does a plan that its caller has cached');

# A simplified expression may lack a column.
as('victim', 'REVOKE SELECT ON names FROM attacker; GRANT SELECT (id) ON names TO attacker');
(undef, undef, $error) = as('attacker', q{
DROP FUNCTION evil.lower(text);
CREATE FUNCTION evil.lower(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ''x''::text';
SET search_path = evil, pg_catalog, public;
EXPLAIN SELECT id FROM names;
SELECT bloom_index_contains('by_number', 'one1')});
like($error, qr/permission denied for table names/, 'all columns take the privilege');
is((as('victim', q{SELECT bloom_index_contains('by_name', 'one')}))[1], 't', 'the indexes work');

#
# A key without a type is read as the type of the column, without the constraints of its domains.
#
(undef, undef, $error) = as('attacker', q{
CREATE FUNCTION evil.check(text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.record()';
CREATE DOMAIN evil.word AS text CHECK (evil.check(value));
CREATE DOMAIN evil.words AS evil.word[];
CREATE TABLE evil.texts (word evil.word, words evil.word[], all_words evil.words);
CREATE INDEX by_word ON evil.texts USING bloomfilter (word);
CREATE INDEX by_words ON evil.texts USING bloomfilter (words);
CREATE INDEX by_all_words ON evil.texts USING bloomfilter (all_words);
INSERT INTO evil.texts VALUES ('a', '{a}', '{a}')});
is($error, '', 'the attacker has indexes of domains');
is(callers(), 'attacker', 'the constraint is evaluated for a row');
foreach my $lookup (
	q{bloom_index_contains('evil.by_word', 'a')},
	q{bloom_index_contains('evil.by_words', '{a}')},
	q{bloom_index_contains('evil.by_all_words', '{a}')},
	q{(bloom_index_contains_each('evil.by_words', '{"{a}"}'))[1]},
	q{bloom_index_partitions('evil.by_words', '{a}') IS NOT NULL})
{
	is($node->safe_psql('app', "SELECT $lookup"), 't', $lookup);
	is(callers(), '', "$lookup evaluates no constraint");
}

#
# Whoever has created the extension may add objects to it, by the names of ours.
#
(undef, undef, $error) = as('attacker', q{
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
$node->safe_psql('app', q{
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
	qr/Filter: bloom_join_probe\(1, a\.a\)/, 'the join of a superuser has a filter');
is($node->safe_psql('app', sprintf $join, ''), '10', 'the result is right');
is(callers(), '', 'the filter runs no function of the attacker');

foreach my $query (
	"INSERT INTO evil.keys VALUES ('x', 'x', 'x')",
	"SELECT bloom_contains(bloom_add(NULL, 'x'::evil.bloom_key), 'x'::evil.bloom_key)",
	"SELECT bloom_contains(bloom_add(NULL, 'x'::evil.bloom_keys), 'x'::evil.bloom_keys)",
	"SELECT bloom_contains(bloom_agg(a), 'x'::evil.bloom) FROM evil.keys",
	"SELECT FROM pg_class WHERE relpages OPERATOR(evil.@@) 'x'::evil.bloom LIMIT 0")
{
	(undef, undef, $error) = as('attacker', $query);
	is($error, '', $query);
}
is($node->safe_psql('app',
		q{SELECT bloom_hash('x'::evil.bloom_key) = bloom_hash('x'::text), bloom_hash('x') = bloom_hash('x'::text)}
	),
	't|t', 'an enum is hashed as such, and keys without a type as text');
is(find_crashes($node), '', 'nothing crashed');

done_testing();
