/*-------------------------------------------------------------------------
 *
 * core.c
 *	  What one key costs in a filter of a given size, and what a union costs,
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
 * - add: bf_builder_add() with a key that is new
 * - standard absent, member, add: a filter without blocks, its k positions
 *	 spread over all bits
 *
 * Filters are as full as they are made to be.  A filter has at most 512 MiB,
 * so 1 GiB is two of them, and each key goes to one.  All is done in pages of
 * 4 KiB and in huge pages.  One line per measurement: pages, KiB, what, round,
 * ns of CPU time per key.
 *
 * The filters of a union have one layer each, for the expected keys at a rate of
 * 0.01, and half of the keys, so that their union has room in one layer.  There
 * are so many of them that they come from memory and not from a cache.  They are
 * held against ORing as many words.  One line per measurement: union or or,
 * round, ns of CPU time per filter.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bench.h"

#define OTHER_WORK_NS	40
#define MAX_FILTERS	2

/* A part of a filter, in bytes, that caches and page tables still help with. */
#define FILLED_TOGETHER	((size_t) 64 << 20)

/* Keys of a standard filter that are added one by one. */
#define STANDARD_KEYS	UINT64_C(4000000)

typedef enum Loop
{
	NONE, FLOOR, ABSENT, MEMBER, ADD,
	STANDARD_ABSENT, STANDARD_MEMBER, STANDARD_ADD,
	LOOPS
} Loop;

static const char *const loop_names[LOOPS] = {
	"none", "floor", "absent", "member", "add",
	"standard absent", "standard member", "standard add"
};

/* A standard Bloom filter: each key has k positions among all bits. */
typedef struct StandardFilter
{
	uint64_t	nbits;
	unsigned	k;
	uint64_t	nkeys;			/* that were added one by one */
	uint8_t    *bits;
} StandardFilter;

typedef struct Setup
{
	size_t		bytes;			/* of all filters together */
	unsigned	nfilters;
	uint64_t	nkeys;			/* added so far to all of them */
	BfBuilder	builders[MAX_FILTERS];
	BfView		views[MAX_FILTERS];
	StandardFilter standard;
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

/*
 * Position i of a standard filter, by double hashing with a term of third
 * order (Dillinger, Manolios 2004), over 2^33 bits and more.
 */
static inline uint64_t
standard_position(const StandardFilter *filter, uint64_t *x, uint64_t *y, unsigned i)
{
	uint64_t	position = scale(*x, filter->nbits);

	*x += *y;
	*y += i;
	return position;
}

static inline bool
standard_contains(const StandardFilter *filter, uint64_t hash)
{
	uint64_t	x = hash;
	uint64_t	y = mix(hash);
	unsigned	i;

	for (i = 1; i <= filter->k; i++)
	{
		uint64_t	bit = standard_position(filter, &x, &y, i);

		if (!(filter->bits[bit >> 3] >> (bit & 7) & 1))
			return false;
	}
	return true;
}

static inline void
standard_add(StandardFilter *filter, uint64_t hash)
{
	uint64_t	x = hash;
	uint64_t	y = mix(hash);
	unsigned	i;

	for (i = 1; i <= filter->k; i++)
	{
		uint64_t	bit = standard_position(filter, &x, &y, i);

		filter->bits[bit >> 3] |= (uint8_t) (1u << (bit & 7));
	}
}

/* Keys go to the filters in turn. */
static inline unsigned
filter_of(const Setup *setup, uint64_t hash)
{
	return (unsigned) hash & (setup->nfilters - 1);
}

/* One of the first n keys. */
static inline uint64_t
member(uint64_t n)
{
	return mix(scale(other_work(), n));
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
measure(Setup *setup, Loop loop, uint64_t n)
{
	uint64_t	lines = setup->bytes / 64;
	uint64_t	sum = 0;
	uint64_t	hash;
	uint64_t	i;
	double		began = cpu_ns();

	switch (loop)
	{
		case NONE:
			TURNS(n, absent());
			break;
		case FLOOR:
			TURNS(n, setup->standard.bits[scale(absent(), lines) << 6]);
			break;
		case ABSENT:
			TURNS(n, (hash = absent(),
					  bf_contains(&setup->views[filter_of(setup, hash)],
								  hash)));
			break;
		case MEMBER:
			TURNS(n, (hash = member(setup->nkeys),
					  bf_contains(&setup->views[filter_of(setup, hash)],
								  hash)));
			break;
		case ADD:
			TURNS(n, (hash = mix(setup->nkeys++),
					  add(&setup->builders[filter_of(setup, hash)], hash),
					  other_work()));
			break;
		case STANDARD_ABSENT:
			TURNS(n, standard_contains(&setup->standard, absent()));
			break;
		case STANDARD_MEMBER:
			TURNS(n, standard_contains(&setup->standard,
									   member(setup->standard.nkeys)));
			break;
		case STANDARD_ADD:
			TURNS(n, (standard_add(&setup->standard,
								   member(setup->standard.nkeys)), 0));
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
 * Set bits at random and independently, each with this chance to 1/256: what
 * many keys leave behind.
 */
static void
set_bits_at_random(StandardFilter *filter, double chance)
{
	uint64_t   *words = (uint64_t *) filter->bits;
	unsigned	digits = (unsigned) (chance * 256 + 0.5);
	uint64_t	i;
	unsigned	digit;

	for (i = 0; i < filter->nbits / 64; i++)
	{
		/* From the last binary digit of the chance to the first. */
		for (digit = 0; digit < 8; digit++)
		{
			uint64_t	random = mix(NEVER_ADDED + i * 8 + digit);

			if (digits >> digit & 1)
				words[i] |= random;
			else
				words[i] &= random;
		}
	}
}

static void
fill_standard(StandardFilter *filter, size_t bytes)
{
	uint64_t	n;
	uint64_t	i;

	filter->bits = bench_alloc(bytes);
	filter->nbits = (uint64_t) bytes * 8;
	filter->k = bf_standard_hashes(fpp);
	n = (uint64_t) ((double) filter->nbits / bf_standard_bits_per_key(fpp));
	filter->nkeys = n < STANDARD_KEYS ? n : STANDARD_KEYS;
	if (n > filter->nkeys)
		set_bits_at_random(filter, 1 - exp(-(double) filter->k *
										   (double) (n - filter->nkeys) /
										   (double) filter->nbits));
	for (i = 0; i < filter->nkeys; i++)
		standard_add(filter, mix(i));
}

/*
 * Add the first n keys, those of one part of the memory after those of
 * another: a key alone misses caches and page tables, which a thousand
 * million of them would take minutes for.
 */
static void
fill_filters(Setup *setup, uint64_t n)
{
	uint64_t	parts = setup->bytes / FILLED_TOGETHER + 1;
	uint64_t	part;
	uint64_t	i;

	for (part = 0; part < parts; part++)
	{
		for (i = 0; i < n; i++)
		{
			uint64_t	hash = mix(i);

			if (scale(hash, parts) == part)
				add(&setup->builders[filter_of(setup, hash)], hash);
		}
	}
	setup->nkeys = n;
}

static void
setup_filters(Setup *setup, size_t bytes, uint64_t last)
{
	uint64_t	capacity;
	unsigned	i;

	memset(setup, 0, sizeof(*setup));
	setup->bytes = bytes;
	setup->nfilters = bytes * 8 > BF_MAX_BITS ? 2 : 1;
	capacity = capacity_of((double) bytes * 8 / setup->nfilters);
	for (i = 0; i < setup->nfilters; i++)
		start(&setup->builders[i], fpp, capacity);

	/*
	 * Room is left for the keys whose adding is going to be measured, and
	 * where there are two filters, for one to get some more than the other.
	 */
	capacity *= setup->nfilters;
	if (setup->nfilters > 1)
		capacity -= capacity / 1000;
	fill_filters(setup, capacity - last);
}

static void
write_images(Setup *setup)
{
	unsigned	i;

	for (i = 0; i < setup->nfilters; i++)
	{
		finish(&setup->builders[i], false, &setup->views[i]);
		if (setup->views[i].nlayers != 1)
			fail("a filter is not what it should be");
		bf_builder_free(&setup->builders[i]);
	}
}

static void
free_images(Setup *setup)
{
	unsigned	i;

	for (i = 0; i < setup->nfilters; i++)
		bench_free((void *) setup->views[i].image);
}

static void
report(size_t bytes, Loop loop, int round, double ns)
{
	printf("%s\t%zu\t%s\t%d\t%.2f\n", huge_pages ? "huge" : "4 KiB",
		   bytes / 1024, loop_names[loop], round, ns);
	fflush(stdout);
}

/* Each round adds the next keys to a filter that is full after the last. */
static void
measure_adds(Setup *setup, size_t bytes, int rounds, uint64_t nkeys)
{
	int			round;

	setup_filters(setup, bytes, nkeys * (uint64_t) rounds);
	for (round = 0; round < rounds; round++)
		report(bytes, ADD, round, measure(setup, ADD, nkeys));
	write_images(setup);
}

/* A filter too small for that takes its second half over and over again. */
static void
measure_adds_repeatedly(Setup *setup, size_t bytes, int rounds,
						uint64_t nkeys, uint64_t half)
{
	int			round;

	for (round = 0; round < rounds; round++)
	{
		double		ns = 0;
		uint64_t	times = nkeys / half + 1;
		uint64_t	i;

		for (i = 0; i < times; i++)
		{
			if (round > 0 || i > 0)
				free_images(setup);
			setup_filters(setup, bytes, half);
			ns += measure(setup, ADD, half);
			write_images(setup);
		}
		report(bytes, ADD, round, ns / (double) times);
	}
}

static void
measure_size(size_t bytes, int rounds, uint64_t nkeys)
{
	static Setup setup;
	uint64_t	half = (uint64_t) ((double) bytes * 4 / bf_bits_per_key(fpp));
	int			round;
	int			loop;

	if (half > nkeys * (uint64_t) rounds)
		measure_adds(&setup, bytes, rounds, nkeys);
	else
		measure_adds_repeatedly(&setup, bytes, rounds, nkeys, half);
	fill_standard(&setup.standard, bytes);

	for (round = 0; round < rounds; round++)
	{
		for (loop = 0; loop < LOOPS; loop++)
		{
			if (loop == ADD)
				continue;
			(void) measure(&setup, (Loop) loop, nkeys / 10);
			report(bytes, (Loop) loop, round,
				   measure(&setup, (Loop) loop, nkeys));
		}
	}
	free_images(&setup);
	bench_free(setup.standard.bits);
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
		size_t		bytes = (size_t) strtoul(argv[i], NULL, 10) * 1024;

		for (huge_pages = false;; huge_pages = true)
		{
			measure_size(bytes, atoi(argv[2]), strtoull(argv[3], NULL, 10));
			if (huge_pages)
				break;
		}
	}
	return 0;
}
