/*-------------------------------------------------------------------------
 *
 * rates.c
 *	  The false-positive rate that filters really have, also with crafted keys,
 *	  and how many keys a filter takes until it has BF_MAX_BITS.
 *
 *	  rates FPP EXPECTED PROBES KEYS...
 *	  rates limits
 *	  rates flood
 *	  rates scatter
 *
 * Filters are built of as many keys as each of the ascending numbers says,
 * and probed with keys that were never added.  With EXPECTED = 0 each sizes
 * itself at the end, as bloom_agg does; else one is made for EXPECTED keys
 * and grows on from one number to the next.  One line per number: keys,
 * probes, those that tested positive, layers, bytes.
 *
 * With "limits", prints the limits of doc/REFERENCE.md, in millions of keys: of
 * a filter with the largest "expected", of one without that grows key by key,
 * and of one that an aggregate builds.  Takes seven minutes and 2 GB.
 *
 * With "flood", prints the table of SECURITY.md: what somebody can do to a
 * filter who chooses keys.  Two filters get the same keys, one with seed 0,
 * which everybody knows, the other with a secret seed.  The keys are crafted for
 * seed 0.
 *
 * With "scatter", prints how much the true rates of small filters scatter around
 * what they tell, for doc/REFERENCE.md: the standard deviation of the quotient.
 *
 * The core alone does all this, no server is needed:
 *
 *	 gcc -O2 -I src/core -o /tmp/rates bench/rates.c src/core/[a-z]*.c -lm
 *	 /tmp/rates limits
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>

#include "bench.h"
#include "internal.h"

/* Of filters that get crafted keys */
#define FLOODED_KEYS	100000
#define CRAFTED_KEYS	10000
#define FLOOD_PROBES	2000000
#define FLOOD_RATE		0.01
#define SECRET_SEED		UINT64_C(0x243F6A8885A308D3)

static void
probe(BfBuilder *b, bool compact, uint64_t nkeys, uint64_t probes)
{
	BfView		view;
	uint64_t	positive = 0;
	uint64_t	i;

	finish(b, compact, &view);
	for (i = 0; i < probes; i++)
		positive += bf_contains(&view, mix(NEVER_ADDED + i));
	printf("%llu\t%llu\t%llu\t%d\t%zu\n", (unsigned long long) nkeys,
		   (unsigned long long) probes, (unsigned long long) positive,
		   view.nlayers, view.size);
	bench_free((void *) view.image);
}

static void
begin(BfBuilder *b, double fpp, uint64_t expected)
{
	start(b, fpp, expected);
	if (expected == 0)
		b->compact_at_end = true;
}

/* How many keys fit, in millions. */
static double
keys_until_full(double fpp, bool aggregate)
{
	BfBuilder	b;
	uint64_t	n = 0;

	start(&b, fpp, 0);
	if (aggregate)
		b.compact_at_end = true;
	while (bf_builder_add(&b, bf_hash_u64(n, 0)) == BF_OK)
		n++;
	bf_builder_free(&b);
	return (double) n / 1e6;
}

static void
print_limits(void)
{
	static const double fpps[] = {0.01, 1e-4};
	int			i;

	printf("| fpp | expected | without | aggregate |\n|---|---|---|---|\n");
	for (i = 0; i < 2; i++)
		printf("| %g | %.1f | %.1f | %.1f |\n", fpps[i],
			   (double) bf_max_keys(fpps[i]) / 1e6,
			   keys_until_full(fpps[i], false),
			   keys_until_full(fpps[i], true));
}

/* The next crafted key */
static uint64_t next_key;

static uint64_t
text_hash(uint64_t i, uint64_t seed)
{
	char		key[64];
	int			length = snprintf(key, sizeof(key), "user-%" PRIu64, i);

	return bf_hash_bytes(key, (size_t) length, seed);
}

/* The rate of keys that nobody chose. */
static double
rate_of(const BfBuilder *b, uint64_t seed)
{
	uint64_t	hits = 0;
	uint64_t	i;

	for (i = 0; i < FLOOD_PROBES; i++)
		hits += bf_builder_contains(b, text_hash((UINT64_C(1) << 50) + i,
												 seed));
	return (double) hits / FLOOD_PROBES;
}

/*
 * The next key whose hash with seed 0 is below a limit: it falls into a block
 * of the first ones.
 */
static uint64_t
below(uint64_t limit)
{
	while (text_hash(next_key, 0) > limit)
		next_key++;
	return next_key++;
}

static void
report(const char *what, double open, double secret)
{
	printf("| %s | %.4f | %.4f |\n", what, open, secret);
}

static void
print_flood(void)
{
	BfBuilder	open,
				secret;
	BfGeometry	geometry;
	uint64_t	one_block;
	uint64_t	tried;
	uint64_t	hits = 0;
	uint64_t	n;
	uint64_t	i;

	if (bf_geometry_for(FLOOD_RATE, false, FLOODED_KEYS, &geometry) != BF_OK)
		fail("bf_geometry_for failed");
	one_block = UINT64_MAX / geometry.nblocks;

	/* Ordinary content; keys are sought that test positive. */
	start(&open, FLOOD_RATE, FLOODED_KEYS);
	start(&secret, FLOOD_RATE, FLOODED_KEYS);
	for (i = 0; i < FLOODED_KEYS; i++, next_key++)
	{
		add(&open, text_hash(next_key, 0));
		add(&secret, text_hash(next_key, SECRET_SEED));
	}
	printf("| | seed 0 | secret seed |\n|---|---|---|\n");
	report("keys that nobody chose", rate_of(&open, 0), rate_of(&secret, SECRET_SEED));
	tried = next_key;
	for (i = 0; i < CRAFTED_KEYS; i++)
	{
		while (!bf_builder_contains(&open, text_hash(next_key, 0)))
			next_key++;
		hits += bf_builder_contains(&secret, text_hash(next_key++, SECRET_SEED));
	}
	report("keys chosen to test positive", 1, (double) hits / CRAFTED_KEYS);
	fprintf(stderr, "%.0f tries for each key that tests positive\n",
			(double) (next_key - tried) / CRAFTED_KEYS);

	/* All of one block, next to the others. */
	tried = next_key;
	for (i = 0; i < 1000; i++)
	{
		uint64_t	key = below(one_block);

		add(&open, text_hash(key, 0));
		add(&secret, text_hash(key, SECRET_SEED));
	}
	fprintf(stderr, "%.0f tries for each key of one block of %u; "
			"layers: %d, %d\n",
			(double) (next_key - tried) / 1000, geometry.nblocks, open.nlayers,
			secret.nlayers);
	report("any key, after 1,000 more were added to one block",
		   rate_of(&open, 0), rate_of(&secret, SECRET_SEED));
	hits = n = 0;
	for (i = 0; i < 1000; i++)
	{
		uint64_t	key = below(one_block);

		n += bf_builder_contains(&open, text_hash(key, 0));
		hits += bf_builder_contains(&secret, text_hash(key, SECRET_SEED));
	}
	report("keys of that block, never added", (double) n / 1000,
		   (double) hits / 1000);
	bf_builder_free(&open);
	bf_builder_free(&secret);

	/* Every key chosen: one half of the blocks, until it grows. */
	start(&open, FLOOD_RATE, FLOODED_KEYS);
	start(&secret, FLOOD_RATE, FLOODED_KEYS);
	for (n = 0; open.nlayers < 2; n++)
	{
		uint64_t	key = below(UINT64_MAX / 2);

		add(&open, text_hash(key, 0));
		add(&secret, text_hash(key, SECRET_SEED));
	}
	fprintf(stderr, "%" PRIu64 " keys of one half fill the filter for %d; "
			"layers: %d, %d\n",
			n, FLOODED_KEYS, open.nlayers, secret.nlayers);
	report("any key, after all keys were added to half of the blocks",
		   rate_of(&open, 0), rate_of(&secret, SECRET_SEED));
	bf_builder_free(&open);
	bf_builder_free(&secret);
}

#define SCATTERED	2000

/*
 * The rate of a filter of one layer: on average over its blocks, k bits at
 * random places of a block are all set.
 */
static double
true_rate(const BfView *view)
{
	const BfLayer *layer = &view->layers[0];
	const uint8_t *byte = layer->bits;
	size_t		size = bf_blocks_size(&layer->geometry, 1);
	double		sum = 0;
	uint32_t	i;

	for (i = 0; i < layer->geometry.nblocks; i++)
	{
		int			set = 0;
		size_t		left;

		for (left = size; left > 0; left--)
			set += __builtin_popcount(*byte++);
		sum += pow((double) set / (8 * (double) size), layer->geometry.k);
	}
	return sum / layer->geometry.nblocks;
}

/* Build filters of as many blocks, each of the most keys that it is for. */
static double
scatter(double fpp, uint32_t nblocks)
{
	BfGeometry	geometry;
	uint64_t	expected = 0;
	uint64_t	key = 0;
	double		squares = 0;
	int			i;

	while (bf_geometry_for(fpp, false, expected + 1, &geometry) == BF_OK &&
		   geometry.nblocks <= nblocks)
		expected++;
	for (i = 0; i < SCATTERED; i++)
	{
		BfBuilder	b;
		BfView		view;
		double		quotient;
		uint64_t	n;

		start(&b, fpp, expected);
		for (n = 0; n < expected; n++)
			add(&b, mix(key++));
		finish(&b, false, &view);
		quotient = true_rate(&view) / bf_current_fpp(&view);
		squares += (quotient - 1) * (quotient - 1);
		bench_free((void *) view.image);
		bf_builder_free(&b);
	}
	return sqrt(squares / SCATTERED);
}

static void
print_scatter(void)
{
	static const uint32_t nblocks[] = {5, 100};
	size_t		i;

	printf("| blocks | 0.01 | 1e-6 |\n|---|---|---|\n");
	for (i = 0; i < sizeof(nblocks) / sizeof(nblocks[0]); i++)
		printf("| %u | %.3f | %.3f |\n", nblocks[i],
			   scatter(0.01, nblocks[i]), scatter(1e-6, nblocks[i]));
}

int
main(int argc, char **argv)
{
	BfBuilder	b;
	double		fpp;
	uint64_t	expected;
	uint64_t	added = 0;
	int			i;

	if (argc == 2 && strcmp(argv[1], "limits") == 0)
	{
		print_limits();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "flood") == 0)
	{
		print_flood();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "scatter") == 0)
	{
		print_scatter();
		return 0;
	}
	if (argc < 5)
		fail("usage: rates FPP EXPECTED PROBES KEYS..., or limits, flood, scatter");
	fpp = atof(argv[1]);
	expected = strtoull(argv[2], NULL, 10);
	begin(&b, fpp, expected);
	for (i = 4; i < argc; i++)
	{
		uint64_t	nkeys = strtoull(argv[i], NULL, 10);

		if (expected == 0 && i > 4)
		{
			bf_builder_free(&b);
			begin(&b, fpp, expected);
			added = 0;
		}
		while (added < nkeys)
			add(&b, mix(added++));
		probe(&b, expected == 0, nkeys, strtoull(argv[3], NULL, 10));
	}
	bf_builder_free(&b);
	return 0;
}
