/*-------------------------------------------------------------------------
 *
 * core.c
 *	  What a lookup costs in a filter of a given size, and what a union costs,
 *	  without a server.
 *
 *	  core FPP ROUNDS KEYS SIZE...		SIZE in KiB, up to 1 GiB
 *	  core union ROUNDS EXPECTED UNIONS
 *
 * Keys come one at a time, with about 40 ns of other work before each, as
 * the rows of a scan do.  The loop is the same for all:
 *
 * - none: the other work alone
 * - floor: one random cache line of memory of the filter's size is read
 * - absent, member: bf_contains() with a key that was never or that was added
 *
 * Filters are as full as they are made to be.  A filter has at most 512 MiB,
 * so 1 GiB is two of them, and each key goes to one.  One line per
 * measurement: KiB, what, round, ns of CPU time per key.
 *
 * The filters of a union have one layer each, for the expected keys at a rate of
 * 0.01, and half of the keys, so that their union has room in one layer.  There
 * are so many of them that they come from memory and not from a cache.  They are
 * held against ORing as many words.  One line per measurement: union or or,
 * round, ns of CPU time per filter.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#define OTHER_WORK_NS	40
#define MAX_FILTERS	2

/* A part of a filter, in bytes, that caches and page tables still help with. */
#define FILLED_TOGETHER	((size_t) 64 << 20)

typedef enum Loop
{
	NONE, FLOOR, ABSENT, MEMBER,
	LOOPS
} Loop;

static const char *const loop_names[LOOPS] = {"none", "floor", "absent", "member"};

typedef struct Setup
{
	size_t		bytes;			/* of all filters together */
	unsigned	nfilters;
	uint64_t	nkeys;			/* of all of them */
	BfView		views[MAX_FILTERS];
	uint8_t    *memory;			/* of the same size */
} Setup;

static double fpp;
static unsigned work_turns;
static uint64_t work_state = 1;
static volatile uint64_t sink;

/* A chain of multiplications, whose end is the next random number. */
static inline uint64_t
other_work(void)
{
	unsigned	i;

	for (i = 0; i < work_turns; i++)
		work_state = work_state * UINT64_C(0xD1342543DE82EF95) + 1;
	return mix(work_state);
}

/* Keys go to the filters in turn. */
static inline unsigned
filter_of(const Setup *setup, uint64_t hash)
{
	return (unsigned) hash & (setup->nfilters - 1);
}

static inline bool
contains(const Setup *setup, uint64_t hash)
{
	return bf_contains(&setup->views[filter_of(setup, hash)], hash);
}

static inline uint64_t
absent(void)
{
	return mix(other_work() | NEVER_ADDED);
}

#define TURNS(n, expression) \
	for (i = 0; i < (n); i++) \
		sum += (expression)

/* CPU time per key of n turns of a loop. */
static double
measure(const Setup *setup, Loop loop, uint64_t n)
{
	uint64_t	lines = setup->bytes / CACHE_LINE;
	uint64_t	sum = 0;
	uint64_t	i;
	double		began = cpu_ns();

	switch (loop)
	{
		case NONE:
			TURNS(n, absent());
			break;
		case FLOOR:
			TURNS(n, setup->memory[scale(absent(), lines) * CACHE_LINE]);
			break;
		case ABSENT:
			TURNS(n, contains(setup, absent()));
			break;
		case MEMBER:
			TURNS(n, contains(setup, mix(scale(other_work(), setup->nkeys))));
			break;
		case LOOPS:
			break;
	}
	sink = sum;
	return (cpu_ns() - began) / (double) n;
}

static void
calibrate_other_work(void)
{
	Setup		none = {0};

	work_turns = 256;
	(void) measure(&none, NONE, 20000);
	work_turns = (unsigned) (OTHER_WORK_NS * 256 /
							 measure(&none, NONE, 100000));
}

/* The most keys that a filter of at most this many bits is made for. */
static uint64_t
capacity_of(double bits)
{
	uint64_t	n = (uint64_t) (bits / bf_bits_per_key(fpp));
	BfGeometry	geometry;

	while (bf_geometry_for(fpp, false, n, &geometry) != BF_OK ||
		   (double) bf_geometry_bits(&geometry) > bits)
		n -= n / 1000 + 1;
	return n;
}

/*
 * Add the keys, those of one part of the memory after those of another: a key
 * alone misses caches and page tables, which a thousand million of them would
 * take minutes for.
 */
static void
fill_filters(Setup *setup, BfBuilder *builders)
{
	uint64_t	parts = setup->bytes / FILLED_TOGETHER + 1;
	uint64_t	part;
	uint64_t	i;

	for (part = 0; part < parts; part++)
	{
		for (i = 0; i < setup->nkeys; i++)
		{
			uint64_t	hash = mix(i);

			if (scale(hash, parts) == part)
				add(&builders[filter_of(setup, hash)], hash);
		}
	}
}

static void
setup_filters(Setup *setup, size_t bytes)
{
	BfBuilder	builders[MAX_FILTERS];
	uint64_t	capacity;
	unsigned	i;

	setup->bytes = bytes;
	setup->memory = bench_alloc(bytes);
	memset(setup->memory, 1, bytes);
	setup->nfilters = bytes * 8 > BF_MAX_BITS ? 2 : 1;
	capacity = capacity_of((double) bytes * 8 / setup->nfilters);
	for (i = 0; i < setup->nfilters; i++)
		start(&builders[i], fpp, capacity);

	/* Of two filters, one may get some more than the other. */
	setup->nkeys = capacity * setup->nfilters;
	if (setup->nfilters > 1)
		setup->nkeys -= setup->nkeys / 1000;
	fill_filters(setup, builders);
	for (i = 0; i < setup->nfilters; i++)
	{
		finish(&builders[i], false, &setup->views[i]);
		if (setup->views[i].nlayers != 1)
			fail("a filter is not what it should be");
		bf_builder_free(&builders[i]);
	}
}

static void
measure_size(size_t bytes, int rounds, uint64_t nkeys)
{
	Setup		setup;
	unsigned	i;
	int			round;
	int			loop;

	setup_filters(&setup, bytes);
	for (round = 0; round < rounds; round++)
	{
		for (loop = 0; loop < LOOPS; loop++)
		{
			(void) measure(&setup, (Loop) loop, nkeys / 10);
			printf("%zu\t%s\t%d\t%.2f\n", bytes / 1024, loop_names[loop],
				   round, measure(&setup, (Loop) loop, nkeys));
			fflush(stdout);
		}
	}
	for (i = 0; i < setup.nfilters; i++)
		bench_free((void *) setup.views[i].image);
	bench_free(setup.memory);
}

#define UNITED_FILTERS		64
#define UNION_FPP			0.01

static BfView united[UNITED_FILTERS];

static void
make_united(uint64_t expected)
{
	int			i;
	uint64_t	key;

	for (i = 0; i < UNITED_FILTERS; i++)
	{
		BfBuilder	b;

		start(&b, UNION_FPP, expected);
		for (key = 0; key < expected; key++)
		{
			if ((mix(key) >> i & 1) != 0)
				add(&b, mix(~key));
		}
		finish(&b, false, &united[i]);
		bf_builder_free(&b);
		if (united[i].nlayers != 1)
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

	start(&b, UNION_FPP, expected);
	if (bf_builder_merge(&b, &united[0]) != BF_OK)
		fail("bf_builder_merge failed");
	begin = cpu_ns();
	for (i = 1; i <= n; i++)
	{
		if (bf_builder_merge(&b, &united[i % UNITED_FILTERS]) != BF_OK)
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
	size_t		words = bf_geometry_size(&united[0].layers[0].geometry) / 8;
	uint64_t   *to = bench_alloc(words * 8);
	double		begin;
	double		ns;
	size_t		j;
	int			i;

	memset(to, 0, words * 8);
	begin = cpu_ns();
	for (i = 1; i <= n; i++)
	{
		const uint8_t *from = united[i % UNITED_FILTERS].layers[0].bits;

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

static void
measure_unions(int rounds, uint64_t expected, int n)
{
	int			i;

	make_united(expected);
	for (i = 0; i < rounds; i++)
	{
		printf("union\t%d\t%.0f\n", i, measure_union(expected, n));
		printf("or\t%d\t%.0f\n", i, measure_or(n));
		fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	int			i;

	if (argc == 5 && strcmp(argv[1], "union") == 0)
	{
		measure_unions(atoi(argv[2]), strtoull(argv[3], NULL, 10),
					   atoi(argv[4]));
		return 0;
	}
	if (argc < 5)
		fail("usage: core FPP ROUNDS KEYS SIZE..., or union ROUNDS EXPECTED UNIONS");
	fpp = atof(argv[1]);
	calibrate_other_work();
	for (i = 4; i < argc; i++)
	{
		measure_size((size_t) strtoul(argv[i], NULL, 10) * 1024,
					 atoi(argv[2]), strtoull(argv[3], NULL, 10));
	}
	return 0;
}
