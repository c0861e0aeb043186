# Upgrades of the server and of the extension.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

#
# pg_upgrade, from an older major where there is one: filters are the same to
# the byte, wherever a database has them, and every key is still found.
#

# The directory above the programs of the older server, with the extension
my $old_server = $ENV{BLOOM_OLD_SERVER} or die 'no BLOOM_OLD_SERVER';

my $old = new_node('old', install_path => $old_server);
my $new = new_node('new');

cmp_ok($old->pg_version, '<=', $new->pg_version,
	'from ' . $old->pg_version . ' to ' . $new->pg_version);

$old->start;
$old->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $old->connstr('postgres'), '-f',
		"$FindBin::RealBin/../exchange/filters.sql" ], 'the old server makes filters');

# A filter that is large enough for lookups to read it in parts, and to keep it
my $lookups = q{
SELECT count(*) FROM generate_series(1, 200000) i, filters
	WHERE key_type = 'text' AND form = 'large' AND f @> ('other ' || i)};
my $by_index = q{
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM filters
	WHERE f = (SELECT f FROM filters WHERE key_type = 'jsonb' AND form = 'large')};
my $lost = q{SELECT sum(probed), sum(lost) FROM lost_keys('filters')};
my $size = q{
SELECT octet_length(f::bytea) > 100000 FROM filters
	WHERE form = 'large' AND key_type = 'text'};

my $fingerprint = $old->safe_psql('postgres', 'SELECT fingerprint()');
cmp_ok($fingerprint =~ tr/\n//, '>', 600, 'it made them all');
is($old->safe_psql('postgres', $size), 't', 'one of them is large');
is($old->safe_psql('postgres', $lookups), 200000, 'which has its keys');
my $answer = $old->safe_psql('postgres', $lost);

# An index whose rebuild has failed halfway
$old->safe_psql('postgres', q{
CREATE FUNCTION setting(text, boolean) RETURNS text IMMUTABLE LANGUAGE internal AS 'show_config_by_name_missing_ok';
CREATE TABLE unfinished (id int);
CREATE INDEX unfinished_id ON unfinished USING bloomfilter ((id / length(coalesce(setting('test.divisor', true), '1')))) WITH (rebuild_scale_factor = 0);
INSERT INTO unfinished SELECT generate_series(1, 5000)});
$old->psql('postgres', q{SET test.divisor = ''; VACUUM unfinished}, stderr => \my $failed);
like($failed, qr/division by zero/, 'a rebuild fails');
$old->safe_psql('postgres', 'INSERT INTO unfinished SELECT generate_series(5001, 20000)');
like($answer, qr/^\d{6}\|0$/, 'all keys are found beforehand');
$old->stop;

# pg_upgrade writes where it is called.
chdir PostgreSQL::Test::Utils::tempdir_short();
command_ok([ 'pg_upgrade', '--no-sync', '--old-datadir' => $old->data_dir,
		'--new-datadir' => $new->data_dir, '--old-bindir' => "$old_server/bin",
		'--new-bindir' => $new->config_data('--bindir'), '--socketdir' => $new->host,
		'--old-port' => $old->port, '--new-port' => $new->port ], 'pg_upgrade');

$new->start;
is($new->safe_psql('postgres', 'SELECT fingerprint()'), $fingerprint, 'filters are the same');
is($new->safe_psql('postgres', $lost), $answer, 'all keys are found');
is($new->safe_psql('postgres', $lookups), 200000, 'those of a large filter, too');
is($new->safe_psql('postgres', $by_index), 1, 'an index on = finds a filter');
is($new->safe_psql('postgres', q{
INSERT INTO unfinished SELECT generate_series(20001, 25000);
SELECT count(*) FROM unfinished WHERE NOT bloom_index_contains('unfinished_id', id);
VACUUM unfinished;
SELECT count(*) FROM unfinished WHERE NOT bloom_index_contains('unfinished_id', id);
SELECT bloom_index_check('unfinished_id')}), "0\n0\n", 'a rebuild that had failed halfway');

# What is added from here on
is($new->safe_psql('postgres', q{
UPDATE filters SET f = f | (SELECT bloom_agg('new ' || i, 0.01, 200000)
							FROM generate_series(1, 1000) i)
	WHERE key_type = 'text' AND form = 'large';
SELECT count(*) FROM generate_series(1, 1000) i, filters
	WHERE key_type = 'text' AND form = 'large' AND f @> ('new ' || i);
REFRESH MATERIALIZED VIEW CONCURRENTLY stored}),
	1000, 'a filter is extended');
is($new->safe_psql('postgres', 'SELECT fingerprint()') =~
	  s/^text\|.*\n//mgr,
	$fingerprint =~ s/^text\|.*\n//mgr, 'those of other key types stay the same');
is($new->safe_psql('postgres', $lost), $answer, 'all keys are found again');
$new->command_ok(
	[ 'vacuumdb', '--all', '--analyze', '--host', $new->host, '--port', $new->port ],
	'VACUUM ANALYZE');

is(find_crashes($new), '', 'nothing crashed');
$new->stop;

#
# ALTER EXTENSION UPDATE, from every version that has a script to the newest.
# There always is a newer one: scripts/check stages a server with version
# "next", which is today's version with next.sql on top.
#
my $filters = "$FindBin::RealBin/../exchange/filters.sql";

# The directory above the programs of the server with that version
my $server = $ENV{BLOOM_NEXT_SERVER} or die 'no BLOOM_NEXT_SERVER';
my $dumps = PostgreSQL::Test::Utils::tempdir_short();
my $node = new_node('main', install_path => $server);

$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN');

# What a version of the extension consists of: its objects with all that
# catalogs say about them, except OIDs, schema and owner, and the members of its
# operator families.
my $objects = q{
SELECT pg_describe_object(d.classid, d.objid, 0),
	obj_description(d.objid, d.classid::regclass::name),
	to_jsonb(p) - ARRAY['oid', 'pronamespace', 'proowner', 'prorettype',
		'proargtypes', 'proallargtypes', 'provariadic'],
	pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
	to_jsonb(a) - ARRAY['aggtranstype', 'aggmtranstype', 'aggsortop'],
	a.aggtranstype::regtype,
	to_jsonb(o) - ARRAY['oid', 'oprnamespace', 'oprowner', 'oprleft',
		'oprright', 'oprresult', 'oprcom', 'oprnegate'],
	o.oprcom::regoperator, o.oprnegate::regoperator, o.oprresult::regtype,
	to_jsonb(t) - ARRAY['oid', 'typnamespace', 'typowner', 'typelem',
		'typarray'],
	c.castcontext, c.castmethod, c.castfunc::regprocedure
FROM pg_depend d
LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
LEFT JOIN pg_operator o ON d.classid = 'pg_operator'::regclass AND o.oid = d.objid
LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
LEFT JOIN pg_cast c ON d.classid = 'pg_cast'::regclass AND c.oid = d.objid
WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
	AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
ORDER BY 1;
SELECT pg_describe_object(m.classid, m.objid, 0)
FROM pg_depend e
JOIN pg_depend f ON f.refclassid = e.classid AND f.refobjid = e.objid
JOIN pg_depend m ON m.refclassid = f.classid AND m.refobjid = f.objid
WHERE e.deptype = 'e' AND e.classid IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass)
	AND e.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
	AND m.classid IN ('pg_amop'::regclass, 'pg_amproc'::regclass)
ORDER BY 1};

# Check that two databases have the same objects, and else show those that
# differ, one a line.
sub same_objects
{
	my ($got, $expected, $name) = @_;
	my %got = map { $_ => 1 } split /\n/, $got;
	my %expected = map { $_ => 1 } split /\n/, $expected;

	is( join("\n",
			(map { "not expected: $_" } grep { !$expected{$_} } sort keys %got),
			(map { "missing: $_" } grep { !$got{$_} } sort keys %expected)),
		'', $name);
	return;
}

# What is left of anything that was made after initdb
my $remains = join ' UNION ALL ',
  map { "SELECT '$_', count(*) FROM $_ WHERE oid >= 16384 HAVING count(*) > 0" }
  qw(pg_proc pg_type pg_operator pg_opclass pg_opfamily pg_amop pg_amproc
  pg_cast pg_class pg_extension);
$remains .= q{
UNION ALL SELECT 'pg_depend', count(*) FROM pg_depend
	WHERE objid >= 16384 OR refobjid >= 16384 HAVING count(*) > 0
UNION ALL SELECT 'pg_description', count(*) FROM pg_description
	WHERE objoid >= 16384 HAVING count(*) > 0
UNION ALL SELECT 'pg_init_privs', count(*) FROM pg_init_privs
	WHERE objoid >= 16384 HAVING count(*) > 0};

# The versions that lead to the newest one
my @versions = split /\n/,
  $node->safe_psql('postgres', q{
SELECT source FROM pg_extension_update_paths('bloomfilter')
	WHERE target = 'next' AND path IS NOT NULL ORDER BY source});
my $version = q{SELECT extversion FROM pg_extension WHERE extname = 'bloomfilter'};
my $new_answers = q{
SELECT bool_and(bloom_next(f |@| f, 'other ' || i))
	FROM filters, generate_series(1, 1000) i
	WHERE key_type = 'text' AND form = 'large'};

cmp_ok(scalar @versions, '>', 0, 'there are versions to update from');

$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION bloomfilter');
is($node->safe_psql('fresh', $version), 'next', 'the newest is the default');
my $fresh = $node->safe_psql('fresh', $objects);
like($fresh, qr/^function bloom_next\(bloom,anyelement\)\|new in this version/m,
	'it has what is new');

foreach my $old (@versions)
{
	my $app = "from_$old";

	# A session that is there all the time has plans and caches from before.
	$node->safe_psql('postgres', qq{CREATE DATABASE "$app"});
	$node->safe_psql($app, qq{CREATE EXTENSION bloomfilter VERSION '$old'});
	my $session = BloomTest::Session->new($node, $app);

	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($app), '-f',
			$filters ], "$old: filters are made");
	is($node->safe_psql($app, $version), $old, "$old: by that version");
	isnt($node->psql($app, $new_answers, on_error_stop => 1), 0, "$old: it lacks what is new");
	my $fingerprint = $node->safe_psql($app, 'SELECT fingerprint()');
	my $answer = $node->safe_psql($app, $lost);
	like($answer, qr/^\d{6}\|0$/, "$old: all keys are found beforehand");
	$session->query('PREPARE lost_keys AS ' . $lost);
	$session->query('EXECUTE lost_keys') for 1 .. 6;
	$node->command_ok([ 'pg_dump', '--no-sync', '-f', "$dumps/$app.sql", $node->connstr($app) ],
		"$old: pg_dump before the update");

	$node->safe_psql($app, 'ALTER EXTENSION bloomfilter UPDATE');
	is($node->safe_psql($app, $version), 'next', "$old: updated");
	same_objects($node->safe_psql($app, $objects),
		$fresh, "$old: objects are those of a fresh installation");
	is($node->safe_psql($app, 'SELECT fingerprint()'), $fingerprint, "$old: filters are the same");
	is($node->safe_psql($app, $lost), $answer, "$old: all keys are found");
	is(($session->query('EXECUTE lost_keys'))[0], $answer, "$old: in a session from before, too");
	is(($session->query($new_answers))[0], 't', "$old: it can call what is new");
	is($node->safe_psql($app, $by_index), 1, "$old: an index on = finds a filter");
	$session->quit;
	$node->command_ok([ 'pg_dump', '--no-sync', '-f', "$dumps/updated.sql", $node->connstr($app) ],
		"$old: pg_dump after the update");

	foreach my $dump ($app, 'updated')
	{
		$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS restored');
		$node->safe_psql('postgres', 'CREATE DATABASE restored');
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d',
				$node->connstr('restored'), '-f', "$dumps/$dump.sql" ],
			"$old: the dump $dump is restored");
		same_objects($node->safe_psql('restored', $objects),
			$fresh, "$old: with the objects of the newest version");
		is($node->safe_psql('restored', 'SELECT fingerprint()'),
			$fingerprint, "$old: with the same filters");
	}

	# The extension is trusted: the owner of a database may do all that.
	$node->safe_psql('postgres', qq{CREATE DATABASE "owned $old" OWNER owner});
	my ($status, $out, $err);
	foreach my $command (
		"CREATE EXTENSION bloomfilter VERSION '$old'",
		'CREATE TABLE seen AS SELECT bloom_agg(i) AS f FROM generate_series(1, 1000) i',
		'ALTER EXTENSION bloomfilter UPDATE',
		'SELECT 1 / bool_and(bloom_next(f, i))::int FROM seen, generate_series(1, 1000) i',
		'DROP TABLE seen',
		'DROP EXTENSION bloomfilter')
	{
		$status = $node->psql(
			"owned $old", $command,
			stdout => \$out,
			stderr => \$err,
			on_error_stop => 1,
			extra_params => [ '-U', 'owner' ]);
		is($status, 0, "$old, by the owner: $command") or diag($err);
	}
	is($node->safe_psql("owned $old", $remains), '', "$old: nothing is left");
}

is(find_crashes($node), '', 'nothing crashed');

done_testing();
