/*-------------------------------------------------------------------------
 *
 * union.c
 *	  Uniting filters, against ORing as many words, without a server.
 *
 *	  union ROUNDS EXPECTED UNIONS
 *
 * The filters have one layer each, for the expected keys at a rate of 0.01,
 * and half of the keys, so that their union has room in one layer.  There are
 * so many of them that they come from memory and not from a cache.  One line
 * per measurement: union or or, round, ns of CPU time per filter.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#define FILTERS		64
#define FPP			0.01

static BfView filters[FILTERS];

static void
make_filters(uint64_t expected)
{
	int			i;
	uint64_t	key;

	for (i = 0; i < FILTERS; i++)
	{
		BfBuilder	b;

		start(&b, FPP, expected);
		for (key = 0; key < expected; key++)
		{
			if ((mix(key) >> i & 1) != 0)
				add(&b, mix(~key));
		}
		finish(&b, false, &filters[i]);
		bf_builder_free(&b);
		if (filters[i].nlayers != 1)
			fail("a filter is not what it should be");
	}
}

static double
measure_union(uint64_t expected, int n)
{
	BfBuilder	b;
	double		begin;
	double		ns;
	int			i;

	start(&b, FPP, expected);
	if (bf_builder_merge(&b, &filters[0]) != BF_OK)
		fail("bf_builder_merge failed");
	begin = cpu_ns();
	for (i = 1; i <= n; i++)
	{
		if (bf_builder_merge(&b, &filters[i % FILTERS]) != BF_OK)
			fail("bf_builder_merge failed");
	}
	ns = cpu_ns() - begin;
	if (b.nlayers != 1)
		fail("the union has more than one layer");
	bf_builder_free(&b);
	return ns / n;
}

static double
measure_or(int n)
{
	size_t		words = bf_geometry_size(&filters[0].layers[0].geometry) / 8;
	uint64_t   *to = bench_alloc(words * 8);
	double		begin;
	double		ns;
	size_t		j;
	int			i;

	memset(to, 0, words * 8);
	begin = cpu_ns();
	for (i = 1; i <= n; i++)
	{
		const uint8_t *from = filters[i % FILTERS].layers[0].bits;

		for (j = 0; j < words; j++)
		{
			uint64_t	word;

			memcpy(&word, from + 8 * j, 8);
			to[j] |= word;
		}
	}
	ns = cpu_ns() - begin;

	/* An effect, or the loop might be removed. */
	if (to[words / 2] == 0)
		fail("no bits");
	bench_free(to);
	return ns / n;
}

int
main(int argc, char **argv)
{
	uint64_t	expected;
	int			rounds,
				n,
				i;

	if (argc != 4)
		fail("usage: union ROUNDS EXPECTED UNIONS");
	rounds = atoi(argv[1]);
	expected = strtoull(argv[2], NULL, 10);
	n = atoi(argv[3]);
	make_filters(expected);
	for (i = 0; i < rounds; i++)
	{
		printf("union\t%d\t%.0f\n", i, measure_union(expected, n));
		printf("or\t%d\t%.0f\n", i, measure_or(n));
		fflush(stdout);
	}
	return 0;
}
