# Invalid images, damaged at random or forged, by every input path.  Each is
# rejected with the right error or is a filter that all functions accept;
# nothing crashes, and a few bytes do not cause a large allocation.

use FindBin;
use lib $FindBin::RealBin;
use BloomTest;

# The same images each time, so that a failure can be looked into.  Without
# BF_LONG, a fraction of them.
srand(20260101);
my $long = $ENV{BF_LONG};

my $node = new_node('main');
$node->append_conf('postgresql.conf',
	"max_parallel_workers_per_gather = 0\n");
$node->start;
my $started =
  $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
$node->safe_psql('postgres', q{
CREATE EXTENSION bloomfilter;
CREATE EXTENSION citext;
CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
});

#
# Images as doc/FORMAT.md has them: from bytes to fields and back
#
# The number of hashes of a dense filter, and that of the layers of a sparse one,
# are the rate list_fpp.
my @header_fields = qw(magic version form scheme flags key_type namelen
  byte_order encoding nhashes nlayers seed fpp expected);
my $header_format = 'a4C8VVQ<d<Q<';
my @layer_fields =
  qw(nblocks block_log2 k generation flags capacity bits_cut fpp bits_set);
my $layer_format = 'VCCCCVVd<Q<';
my $header_size = 44;
my $layer_size = 32;

sub parse
{
	my ($image) = @_;
	my %filter;

	@filter{@header_fields} = unpack $header_format, $image;
	my $at = $header_size;
	my $padded = int(($filter{namelen} + 7) / 8) * 8;
	$filter{name} = substr $image, $at, $padded;
	$at += $padded;
	$filter{layers} = [];
	foreach my $i (1 .. $filter{nlayers})
	{
		my %layer;
		@layer{@layer_fields} = unpack $layer_format, substr $image, $at;
		$at += $layer_size;
		push @{ $filter{layers} }, \%layer;
	}
	foreach my $layer (@{ $filter{layers} })
	{
		my $size = $layer->{nblocks} << $layer->{block_log2} - 3;
		$layer->{bits} = substr $image, $at, $size;
		$at += $size;
	}

	# Of the sparse form
	$filter{hashes} = [ unpack 'Q<*', substr $image, $at ];
	return \%filter;
}

sub build
{
	my ($filter) = @_;

	return join '', pack($header_format, @$filter{@header_fields}),
	  $filter->{name},
	  (map { pack $layer_format, @$_{@layer_fields} } @{ $filter->{layers} }),
	  (map { $_->{bits} } @{ $filter->{layers} }),
	  pack('Q<*', @{ $filter->{hashes} });
}

# Build with some fields changed.
sub build_with
{
	my ($filter, $changes) = @_;

	return build({ %$filter, %$changes });
}

sub one_of
{
	return $_[ int rand @_ ];
}

sub random_bytes
{
	my $n = int shift;
	return substr pack('N*', map { int rand 2**32 } 1 .. ($n + 3) / 4), 0, $n;
}

sub random_u64
{
	return unpack 'Q<', random_bytes(8);
}

# Evenly distributed over the orders of magnitude.
sub random_magnitude
{
	my ($least, $most) = @_;
	return $least * ($most / $least)**rand;
}

#
# Real images of several forms and key types
#
my %queries = (
	empty => 'SELECT bloom_empty()',
	empty_sized => 'SELECT bloom_empty(0.25, 1000000, -5)',
	sparse => q{
SELECT bloom_agg(i::text, 0.01, 1000) FROM generate_series(1, 20) i},
	sparse_enum => q{
SELECT bloom_agg(k, 0.01, 100) FROM unnest(enum_range(NULL::colour)) k},
	sparse_citext => q{
SELECT bloom_agg(i::text::citext, 0.01, 1000) FROM generate_series(1, 9) i},
	dense => q{
SELECT bloom_agg(i::text, 0.01, 200) FROM generate_series(1, 200) i},
	dense_jsonb => q{
SELECT bloom_agg(to_jsonb(i), 0.1, 100) FROM generate_series(1, 90) i},
	wide_blocks => q{
SELECT bloom_agg(i, 1e-9, 200) FROM generate_series(1, 190) i},
	layers => q{
SELECT bloom_agg(i::text, 0.01, 20) FROM generate_series(1, 300) i},
	side_by_side => q{
SELECT bloom_agg(i::text, 0.01, 60) | bloom_agg((-i)::text, 0.05, 50)
	FROM generate_series(1, 60) i});
my %bases;
foreach my $name (sort keys %queries)
{
	my $hex = $node->safe_psql('postgres', qq{
SET client_min_messages = error;
SELECT encode(f::bytea, 'hex') FROM ($queries{$name}) AS base (f)});

	$bases{$name} = pack 'H*', $hex;
	is(unpack('H*', build(parse($bases{$name}))),
		$hex, "the format of the image is understood: $name");
}

# Class, validity and bytes of each image.  The validity is 'valid', 'invalid',
# or '' if either will do: test/unit and test/reader say which field may be what.
my @hostile;

sub add
{
	my ($class, $validity, @images) = @_;
	@images = grep { rand() < 0.4 } @images unless $long || $class eq 'real';
	push @hostile, [ $class, $validity, $_ ] foreach @images;
	return;
}

my @bytes = (0x00, 0x01, 0x7f, 0x80, 0xff);
my @list_rates = map { unpack 'V', pack 'f<', $_ } 0, 2**-126, 1e-9, 0.01, 1;

foreach my $name (sort keys %bases)
{
	my $image = $bases{$name};
	my $filter = parse($image);
	my $header_end =
	  $header_size + length($filter->{name}) + $layer_size * @{ $filter->{layers} };
	my $size = length $image;

	add('real', 'valid', $image);

	# Length
	add('truncated', 'invalid',
		map { substr $image, 0, $_ } 0 .. ($size < 250 ? $size - 1 : 249));
	add('truncated', 'invalid',
		map { substr $image, 0, 250 + int rand($size - 250) } 1 .. 50)
	  if $size > 250;
	add('overlong', 'invalid',
		map { $image . $_ } 'x', random_bytes(64), $image,
		map { "\0" x $_ } 1, 7, 8, 64, 512);

	# Each byte of the header and directory
	foreach my $at (0 .. $header_end - 1)
	{
		foreach my $byte (@bytes)
		{
			my $broken = $image;

			substr($broken, $at, 1) = chr $byte;
			add('byte of the header', '', $broken);
		}
	}

	# Bits anywhere, half of them in the header and directory
	foreach my $i (1 .. 500)
	{
		my $broken = $image;
		my $most = $i % 2 ? $header_end : $size;

		vec($broken, int rand 8 * $most, 1) ^= 1
		  foreach 0 .. int rand($i % 8);
		add('bit flips', '', $broken);
	}

	# The header of one and the content of another one
	foreach my $other (sort keys %bases)
	{
		add('spliced', '',
			map { substr($image, 0, $_) . substr($bases{$other}, $_) } 4 .. $header_end)
		  if $other ne $name && length $bases{$other} >= $header_end;
	}
}

add('noise', 'invalid', '', "\0", 'B', 'BLM', 'BLMF', "BLMF\1");
foreach my $i (1 .. 500)
{
	add('noise', 'invalid', random_bytes(random_magnitude(1, 2000)),
		"BLMF\1" . random_bytes(random_magnitude(40, 2000)));
}

# Valid images that the extension does not build: the functions have to accept
# them.
my @names = ('citext', 'jsonb', 'text', 'varchar', '_text', 'text[]', 'record',
	'cstring', 'colour', 'pg_class', 'x' x 255, "gr\xc3\xb6\xc3\x9fe", ' ', '"',
	'@', '@@', 'citext@', 'citext@C', 'citext@@C', 'citext[]@C', '@' x 255);

sub random_layer
{
	my ($log2, $nblocks) = @_;
	my $size = $nblocks << $log2 - 3;
	my $bits = one_of(
		"\0" x $size,
		"\x01" . "\0" x ($size - 1),
		random_bytes($size),
		random_bytes($size) & random_bytes($size) & random_bytes($size),
		"\xff" x $size,
		"\xff" x ($size - 1) . "\x7f");

	return {
		nblocks => $nblocks,
		block_log2 => $log2,
		k => 1 + int rand 64,
		generation => int rand 24,
		flags => 0,
		capacity => int random_magnitude(1, 8 * $size),
		bits_cut => one_of(0, int rand 8 * $size - unpack('%32b*', $bits) + 1),
		fpp => random_magnitude(1.1e-18, 0.5),
		bits_set => unpack('%32b*', $bits),
		bits => $bits
	};
}

sub random_filter
{
	my %filter = (
		magic => 'BLMF',
		version => 1,
		form => 0,
		scheme => 1,
		nlayers => one_of(0, 1, 1, 1, 2, 3, 32),
		key_type => one_of((1) x 30, 0, 2 .. 20),
		namelen => 0,
		name => '',
		byte_order => 0,
		encoding => 0,
		nhashes => 0,
		flags => 0,
		seed => one_of(0, 0, 0, 1, random_u64()),
		fpp => one_of(0.01, 0.5, 1e-9, random_magnitude(1e-9, 0.5)),
		expected => one_of(0, 1, 100, int random_magnitude(1, 1e6)),
		layers => []);
	my %hashes;

	if (rand() < 0.15)
	{
		my $name = one_of(@names);

		$filter{key_type} = one_of(64, 65);
		$filter{namelen} = length $name;
		$filter{name} = $name . "\0" x (-length($name) % 8);
		if ($filter{key_type} == 65)
		{
			$filter{byte_order} = one_of(1, 2);
			$filter{encoding} = one_of(0, 6, 8, 34);
		}
	}
	if ($filter{nlayers} == 0)
	{
		$hashes{ one_of(random_u64(), 0, ~0, int rand 100) } = 1
		  foreach 1 .. rand 50;
		$filter{nhashes} = keys %hashes;
	}
	else
	{
		my $small = $filter{nlayers} > 3;

		$filter{form} = 1;
		$filter{layers} =
		  [ map { random_layer(9 + int rand($small ? 1 : 6), 1 + int rand 2) }
			  1 .. $filter{nlayers} ];
	}
	$filter{ $filter{form} == 1 ? 'nhashes' : 'nlayers' } =
	  one_of(0, one_of(@list_rates));
	$filter{hashes} = [ sort { $a <=> $b } keys %hashes ];
	return build(\%filter);
}
add('strange', 'valid', random_filter()) foreach 1 .. 2000;

my $dense = parse($bases{dense});
my $layer = $dense->{layers}[0];

# At most 1,024 layers.
add('layers',
	$_ <= 1024 ? 'valid' : 'invalid',
	build_with($dense, { layers => [ ($layer) x $_ ], nlayers => $_ }))
  foreach 1, 32, 255, 256, 1024, 1025, 4096;

#
# In by a cast from bytea, by text and by COPY in binary format
#
my $file = PostgreSQL::Test::Utils::tempdir() . '/hostile';
open my $table, '>', $file or die "$file: $!";
foreach my $id (0 .. $#hostile)
{
	my ($class, $validity, $image) = @{ $hostile[$id] };

	print $table "$id\t$class\t$validity\t\\\\x", unpack('H*', $image), "\n";
}
close $table or die "$file: $!";

my $session = BloomTest::Session->new($node, 'postgres');
my ($peak, $base, $out, $err) = (0, 0);
my $measured = can_measure_memory();

# A query that has to succeed, and may take only so much memory.
sub run
{
	my ($query) = @_;
	my $memory = 0;

	if ($measured)
	{
		($memory, $out, $err) = $session->query_memory($query);
	}
	else
	{
		($out, $err) = $session->query($query);
	}
	fail("$query: $err") if $err ne '';
	$peak = $memory if $memory > $peak;
	return $out;
}

run(qq{
SET client_min_messages = error;
CREATE TABLE hostile (id int, class text, validity text, image bytea,
	by_cast text, by_text text);
CREATE TABLE accepted (id int, f bloom);
CREATE TABLE received (id int, f bloom);

CREATE FUNCTION try_cast(id int, image bytea) RETURNS text LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO accepted VALUES (id, image::bloom);
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END \$\$;
CREATE FUNCTION to_base64(image bytea) RETURNS text LANGUAGE sql IMMUTABLE
	AS \$\$ SELECT translate(encode(image, 'base64'), E'\\n', '') \$\$;
CREATE FUNCTION try_text(input text) RETURNS text LANGUAGE plpgsql AS \$\$
BEGIN
	RETURN CASE WHEN input::bloom::text = input
			AND to_base64(input::bloom::bytea) = input THEN 'ok'
		ELSE 'changed' END;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END \$\$;
COPY hostile (id, class, validity, image) FROM '$file'});

# The base is what a session has that has loaded the library and called
# everything once.
$session->query(q{
SELECT try_cast(-1, ''), try_text(''), bloom_fpp(bloom_empty())});
($base) = $session->query_memory('SELECT count(*) FROM hostile') if $measured;
$peak = 0;

run('UPDATE hostile SET by_cast = try_cast(id, image)');
run('UPDATE hostile SET by_text = try_text(to_base64(image))');

my $wire = BloomTest::Wire->new($node, 'postgres');
my @states = $wire->copy_binary('received (id, f)',
	map { [ pack('N', $_), $hostile[$_][2] ] } 0 .. $#hostile);
my $wire_memory = $measured ? $wire->memory : 0;
$wire->quit;
run('CREATE TABLE by_binary AS SELECT id - 1 AS id, state'
	  . " FROM unnest('{@{[join ',', @states]}}'::text[]) WITH ORDINALITY AS x (state, id)");

cmp_ok(scalar @hostile, '>', $long ? 15_000 : 6_000, 'there are thousands of images');
note scalar @hostile, ' images';
is(run(q{
SELECT class, by_cast, min(id), count(*) FROM hostile
	WHERE validity = 'invalid' AND by_cast = 'ok' GROUP BY class, by_cast}),
	'', 'what has to be rejected is rejected');
is(run(q{
SELECT class, by_cast, min(id), count(*) FROM hostile
	WHERE validity = 'valid' AND by_cast <> 'ok' GROUP BY class, by_cast}),
	'', 'what has to be accepted is accepted');
is(run(q{
SELECT DISTINCT by_cast, by_text, state
	FROM hostile FULL JOIN by_binary USING (id) ORDER BY 1}),
	"22P03|22P02|22P03\nok|ok|ok", 'all ways agree, each with its own error');
is(run(q{
SELECT count(*) = count(h.id) AND count(*) = count(r.id)
	FROM accepted a
	LEFT JOIN hostile h ON h.id = a.id AND h.image = a.f::bytea
	LEFT JOIN received r ON r.id = a.id AND r.f::bytea = a.f::bytea}),
	't', 'what is accepted keeps its bytes');

#
# Again by COPY in binary format, tens of thousands
#
my $flood = BloomTest::Wire->new($node, 'postgres');
my $flood_base = {};
foreach my $round (1 .. 6)
{
	my @again = $flood->copy_binary('received (id, f)',
		map { [ pack('N', -2), $_->[2] ] } @hostile);

	is("@again", "@states", "accepted and rejected as before, round $round");

	# The base is what a session has that has copied some.
	$flood_base = $flood->status if $measured && $round == 1;
}
my $flood_end = $measured ? $flood->status : {};
$flood->quit;

SKIP:
{
	skip 'memory is measured by /proc', 2 unless $measured;

	# A hundred bytes lost with each image would be seen.  What was requested
	# but not used counts as well: the images have a few kB, and lengths in
	# them are those of up to gigabytes.
	my %growth =
	  map { $_ => $flood_end->{$_} - $flood_base->{$_} } qw(RssAnon VmPeak);
	cmp_ok($growth{RssAnon}, '<', 3 * 1024, 'they leave no memory behind');
	cmp_ok($growth{VmPeak}, '<', 16 * 1024, 'none took more memory than its size');
	note "memory grew by $growth{RssAnon} kB, its peak by $growth{VmPeak} kB";
}

# Text that is not even base64
my $garbage = join ', ', map { "'$_'" } '', ' ', 'x', '=', '====', 'QkxNRg',
  'QkxNRg==', 'QkxNRg=', 'QkxN-_==', '\x424c4d46', '*', "Z\x{c3}\x{bc}rich",
  'A' x 100_000, '=' x 100_000;
is(run(qq{
SELECT DISTINCT try_text(input) FROM unnest(ARRAY[$garbage]) AS input}),
	'22P02', 'text that is not base64 is rejected');

SKIP:
{
	skip 'no soft errors before version 16', 2
	  if $node->safe_psql('postgres', 'SHOW server_version_num') < 160000;
	is(run(qq{
SELECT count(*), count(DISTINCT code) FILTER (WHERE valid), count(DISTINCT code), max(code)
	FROM (SELECT pg_input_is_valid(input, 'bloom') AS valid,
				 (pg_input_error_info(input, 'bloom')).sql_error_code AS code,
				 by_text = 'ok' AS expected
		  FROM hostile, to_base64(image) AS input
		  UNION ALL
		  SELECT pg_input_is_valid(input, 'bloom'),
				 (pg_input_error_info(input, 'bloom')).sql_error_code, false
		  FROM unnest(ARRAY[$garbage]) AS input) AS soft
	WHERE valid = expected AND valid = (code IS NULL)}),
		14 + @hostile . '|0|1|22P02', 'text input reports errors softly');
}

#
# Every function on what was accepted.  f is the image, g another one.
#
# Each is true if the answer is right.  The second column has the errors it may
# end with.  Those with a third one take the image as bytes.
my @operations = (
	[ q{bloom_contains(f, 'key') IS NOT NULL}, '22P02|42804' ],
	[ q{bloom_contains_any(f, '{key,42}') IS NOT NULL}, '22P02|42804' ],
	[ q{bloom_new_keys(f, '{42,key}') IS NOT NULL}, '22P02|42804' ],
	[ q{(f @> 'key'::text) IS NOT NULL}, '42804' ],
	[ q{(42 <@ f) IS NOT NULL}, '42804' ],
	[ q{(f @> to_jsonb(42)) IS NOT NULL}, '42804' ],
	[ q{(f @> 'KEY'::citext) IS NOT NULL}, '42804' ],
	[ q{(f @> 'red'::colour) IS NOT NULL}, '42804' ],
	[ q{bloom_contains_any(f, ARRAY['key', 'other']) IS NOT NULL}, '42804' ],
	[ q{bloom_contains_all(f, ARRAY[1, NULL, 2]) IS NOT NULL}, '42804' ],
	[ q{bloom_new_keys(f, ARRAY['key', 'other', 'key']) IS NOT NULL}, '42804' ],
	[
		q{bloom_contains_each(f, ARRAY['key', NULL, 'other']) = ARRAY[f @> 'key', NULL, f @> 'other']},
		'22P02|42804'
	],
	[
		q{bloom_add(f, NULL) = f AND bloom_add_all(f, NULL::int[]) = f AND bloom_add_hash(f, NULL) = f},
		'', 'bytes'
	],
	[ q{(f | NULL) = f AND (NULL | f) = f}, '', 'bytes' ],
	[ q{bloom_add(f, 'key')::bytea::bloom @> 'key'}, '22P02|42804|54000' ],
	[ q{bloom_add(f, 42)::bytea::bloom @> 42::bigint}, '42804|54000' ],
	[
		q{bloom_add(f, 'red'::colour)::bytea::bloom @> 'red'::colour},
		'42804|54000'
	],
	[
		q{(SELECT filter::bytea::bloom @> 'key' FROM bloom_try_add(f, 'key'))},
		'22P02|42804|54000'
	],
	[
		q{bloom_add_all(f, ARRAY['key', NULL, 'other'])::bytea::bloom @> 'other'},
		'42804|54000'
	],
	[ q{bloom_contains_hash(bloom_add_hash(f, 42)::bytea::bloom, 42)}, '54000' ],
	[
		q{(bloom_add(bloom_empty(0.01, 100, (bloom_info(f)).seed), 'key') | f)::bytea::bloom @> 'key'},
		'42804|54000'
	],
	[ q{bloom_compact(bloom_add(f, 'key'))::bytea::bloom @> 'key'}, '22P02|42804|54000' ],
	[ q{bloom_compact(f)::bytea::bloom IS NOT NULL}, '54000' ],
	[ q{bloom_union(f, g)::bytea::bloom IS NOT NULL}, '22023|42804|54000' ],
	[ q{(f | g)::bytea = (g | f)::bytea}, '22023|42804|54000' ],
	[ q{(f | f)::bytea::bloom IS NOT NULL}, '54000' ],
	[
		q{(SELECT bloom_union_agg(x)::bytea::bloom IS NOT NULL FROM unnest(ARRAY[f, NULL, g, f]) AS x)},
		'22023|42804|54000'
	],
	[ q{(f & g)::bytea::bloom IS NOT NULL}, '0A000|22023|42804|54000' ],
	[
		q{(SELECT bloom_intersection_agg(x)::bytea::bloom IS NOT NULL FROM unnest(ARRAY[f, NULL, g]) AS x)},
		'0A000|22023|42804|54000'
	],
	[ q{bloom_intersection_cardinality(f, g) >= 0}, '0A000|22023|42804' ],
	[ q{bloom_cardinality(bloom_empty_like(f)::bytea::bloom) = 0}, '' ],
	[ q{bloom_cardinality(f) >= 0}, '' ],
	[ q{bloom_fpp(f) BETWEEN 0 AND 1}, '' ],
	[ q{bloom_info(f)::text IS NOT NULL}, '' ],
	[
		q{(SELECT cardinality = bloom_cardinality(f) AND current_fpp = bloom_fpp(f) FROM bloom_info(f))},
		''
	],
	[ q{(f = g) = (f::bytea = g::bytea) AND f = f}, '', 'bytes' ],
	[ q{(hash_bloom(f) = hash_bloom(g)) = (f = g)}, '', 'bytes' ],
	[ q{f::text::bloom::bytea = f::bytea}, '', 'bytes' ],
	[ q{bloom_send(f) = f::bytea}, '', 'bytes' ]);

run(join ';', map {
	qq{
CREATE FUNCTION try_$_(f bloom, g bloom) RETURNS text LANGUAGE plpgsql AS \$\$
BEGIN
	RETURN CASE WHEN $operations[$_][0] THEN 'ok' ELSE 'wrong' END;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END \$\$}
} 0 .. $#operations);

foreach my $i (0 .. $#operations)
{
	my ($expression, $errors) = @{ $operations[$i] };
	my $states = run(qq{
SELECT state, count(*), min(id)
	FROM (SELECT id, try_$i(f, lag(f, 1, f) OVER (ORDER BY id)) AS state
		  FROM accepted) AS tried
	GROUP BY state});

	like($states, qr/^ok\|/m, "it is right: $expression");
	is(join("\n", grep { !/^(?:ok|$errors)\|/ } split /\n/, $states),
		'', "it ends with no other error: $expression");
}

#
# Corruption of stored values, which nothing has validated: a function that
# returns bytea as it is, declared to return a filter, makes them.  Some get
# through the check on use, which does not look at all the bits, and may give
# wrong answers then.
#
run(q{
CREATE FUNCTION forge(bytea) RETURNS bloom LANGUAGE internal
	IMMUTABLE STRICT AS 'byteasend';
CREATE TABLE forged AS
	SELECT id, class, forge(image) AS f FROM hostile
	WHERE by_cast <> 'ok' AND id % 8 = 0;
ALTER TABLE forged ALTER f SET STORAGE EXTENDED;	-- inline, compressed
INSERT INTO forged
	SELECT id, class, forge(image) FROM hostile
	WHERE by_cast <> 'ok' AND id % 8 = 1});
is(run(q{
SELECT count(*) > 500, count(*) FILTER (WHERE f.f::bytea = h.image) = count(*)
	FROM forged f JOIN hostile h USING (id)}), 't|t', 'corrupt values can be made');

foreach my $i (0 .. $#operations)
{
	my ($expression, $errors, $bytes) = @{ $operations[$i] };
	my $allowed = "ok|wrong|XX001|22P03|22P02|$errors";
	my $states = run(qq{
SELECT state, class = 'truncated', count(*), min(id)
	FROM (SELECT id, class, try_$i(f, lag(f, 1, f) OVER (ORDER BY id)) AS state
		  FROM forged) AS tried
	GROUP BY 1, 2});

	is(join("\n", grep { !/^(?:$allowed)\|/ } split /\n/, $states),
		'', "on corrupt values it ends with no other error: $expression");

	# Every function that reads a filter checks header, directory and length.
	next if $bytes;
	like($states, qr/^XX001\|f\|/m, "corruption is noticed: $expression");
	is(join("\n", grep { /\|t\|/ && !/^XX001\|/ } split /\n/, $states),
		'', "truncation is always noticed: $expression");
}

SKIP:
{
	skip 'memory is measured by /proc', 2 unless $measured;

	# The largest filters that the images can make, with up to a million
	# expected keys at a rate of 1e-9, take 6 MB.
	cmp_ok($peak - $base, '<', 64 * 1024, 'no image took much memory');
	cmp_ok($wire_memory, '<', 64 * 1024, 'nor did it on its way in');
	note "memory: $peak kB at the peak, $base kB as the base; on the way in $wire_memory kB";
}
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'),
	$started, 'the server was not restarted');
is(find_crashes($node), '', 'nothing crashed');
done_testing();
