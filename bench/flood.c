/*-------------------------------------------------------------------------
 *
 * flood.c
 *	  What somebody can do to a filter who chooses keys.
 *
 * Two filters get the same keys, one with seed 0, which everybody knows, the
 * other with a secret seed.  The keys are crafted for seed 0.  Prints the
 * table of SECURITY.md; the core alone does it, no server is needed:
 *
 *	 gcc -O2 -I src/core -o /tmp/flood bench/flood.c src/core/*.c -lm
 *	 /tmp/flood
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bf.h"

#define NKEYS		100000
#define NCRAFTED	10000
#define NPROBES		2000000
#define RATE		0.01
#define SECRET		UINT64_C(0x243F6A8885A308D3)

static uint64_t next_key;

static void *
env_alloc(void *context, size_t size)
{
	(void) context;
	return malloc(size);
}

static void
env_free(void *context, void *pointer)
{
	(void) context;
	free(pointer);
}

static void
env_check_interrupts(void *context)
{
	(void) context;
}

static const BfEnv env = {env_alloc, env_free, NULL,
{env_check_interrupts, NULL}};

static uint64_t
hash_of(uint64_t i, uint64_t seed)
{
	char		key[64];
	int			length = snprintf(key, sizeof(key), "user-%" PRIu64, i);

	return bf_hash_bytes(key, (size_t) length, seed);
}

static void
require(BfStatus status)
{
	if (status != BF_OK)
	{
		fprintf(stderr, "status %d\n", (int) status);
		exit(EXIT_FAILURE);
	}
}

static void
start(BfBuilder *b, uint64_t seed)
{
	BfParams	params = {0};

	params.fpp = RATE;
	params.expected = NKEYS;
	params.seed = seed;
	bf_builder_init(b, &env, &params);
}

/* The rate of keys that nobody chose. */
static double
rate_of(const BfBuilder *b)
{
	uint64_t	hits = 0;
	uint64_t	i;

	for (i = 0; i < NPROBES; i++)
		hits += bf_builder_contains(b, hash_of((UINT64_C(1) << 50) + i,
											   b->params.seed));
	return (double) hits / NPROBES;
}

/*
 * The next key whose hash with seed 0 is below a limit: it falls into a block
 * of the first ones.
 */
static uint64_t
below(uint64_t limit)
{
	while (hash_of(next_key, 0) > limit)
		next_key++;
	return next_key++;
}

static void
report(const char *what, double open, double secret)
{
	printf("| %s | %.4f | %.4f |\n", what, open, secret);
}

int
main(void)
{
	BfBuilder	open,
				secret;
	BfGeometry	geometry;
	uint64_t	one_block;
	uint64_t	tried;
	uint64_t	hits = 0;
	uint64_t	n;
	uint64_t	i;

	require(bf_geometry_for(RATE, NKEYS, &geometry));
	one_block = UINT64_MAX / geometry.nblocks;

	/* Ordinary content; keys are sought that test positive. */
	start(&open, 0);
	start(&secret, SECRET);
	for (i = 0; i < NKEYS; i++, next_key++)
	{
		require(bf_builder_add(&open, hash_of(next_key, 0)));
		require(bf_builder_add(&secret, hash_of(next_key, SECRET)));
	}
	printf("| | seed 0 | secret seed |\n|---|---|---|\n");
	report("keys that nobody chose", rate_of(&open), rate_of(&secret));
	tried = next_key;
	for (i = 0; i < NCRAFTED; i++)
	{
		while (!bf_builder_contains(&open, hash_of(next_key, 0)))
			next_key++;
		hits += bf_builder_contains(&secret, hash_of(next_key++, SECRET));
	}
	report("keys chosen to test positive", 1, (double) hits / NCRAFTED);
	fprintf(stderr, "%.0f tries for each key that tests positive\n",
			(double) (next_key - tried) / NCRAFTED);

	/* All of one block, next to the others. */
	tried = next_key;
	for (i = 0; i < 1000; i++)
	{
		uint64_t	key = below(one_block);

		require(bf_builder_add(&open, hash_of(key, 0)));
		require(bf_builder_add(&secret, hash_of(key, SECRET)));
	}
	fprintf(stderr, "%.0f tries for each key of one block of %u; "
			"layers: %d, %d\n",
			(double) (next_key - tried) / 1000, geometry.nblocks, open.nlayers,
			secret.nlayers);
	report("any key, after 1,000 more were added to one block",
		   rate_of(&open), rate_of(&secret));
	hits = n = 0;
	for (i = 0; i < 1000; i++)
	{
		uint64_t	key = below(one_block);

		n += bf_builder_contains(&open, hash_of(key, 0));
		hits += bf_builder_contains(&secret, hash_of(key, SECRET));
	}
	report("keys of that block, never added", (double) n / 1000,
		   (double) hits / 1000);
	bf_builder_free(&open);
	bf_builder_free(&secret);

	/* Every key chosen: one half of the blocks, until it grows. */
	start(&open, 0);
	start(&secret, SECRET);
	for (n = 0; open.nlayers < 2; n++)
	{
		uint64_t	key = below(UINT64_MAX / 2);

		require(bf_builder_add(&open, hash_of(key, 0)));
		require(bf_builder_add(&secret, hash_of(key, SECRET)));
	}
	fprintf(stderr, "%" PRIu64 " keys of one half fill the filter for %d; "
			"layers: %d, %d\n",
			n, NKEYS, open.nlayers, secret.nlayers);
	report("any key, after all keys were added to half of the blocks",
		   rate_of(&open), rate_of(&secret));
	bf_builder_free(&open);
	bf_builder_free(&secret);
	return EXIT_SUCCESS;
}
