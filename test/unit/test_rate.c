/*-------------------------------------------------------------------------
 *
 * test_rate.c
 *	  The promise of a Bloom filter: the requested rate.
 *
 * Filters are probed with keys that were never added, and what tests
 * positive is counted.  Of N probes at a rate r, Nr hits are to be expected
 * with a standard deviation of sqrt(N r (1 - r)).  A measured rate passes if
 * it is at most
 *
 *		r + 3 sqrt(r (1 - r) / N),		where r = 1.1 p,
 *
 * p being the requested rate; after ten times the keys, with r = 2.2 p.  The
 * keys are the same in each run, so this passes always or never.
 *
 * A filter of few blocks has a rate of its own, which differs from that of
 * another one by more than sampling can explain: at a thousand keys by ten
 * per cent and more.  It is the design that is tested here, so the probes are
 * shared out among several filters there, each of other keys.
 *
 * While hits are few, they say little: N is large enough for thousands of
 * them where that takes less than a second, and for hundreds at 1e-5.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

/* Probes are numbers from here on; keys are below. */
#define NEVER_ADDED	(UINT64_C(1) << 40)

static const double rates[] = {0.1, 0.01, 1e-3, 1e-4, 1e-5};
static const uint64_t numbers[] = {10, 1000, 100000, 1000000};

typedef struct Tally
{
	double		probes;
	double		hits;
	double		told;			/* hits to expect from bf_current_fpp() */
	double		keys;
	double		estimated;		/* by bf_cardinality() */
	int			lists;
	int			filters;
	int			max_layers;
} Tally;

/* At least 100 hits, or 10^7 probes. */
static uint64_t
probes_for(double p, double hits, double max)
{
	if (!is_long())
		return (uint64_t) fmin(200 / p, 1e5);
	return (uint64_t) fmin(hits / p, max);
}

/* Build one filter, look for its keys, and probe it. */
static void
probe_one(Tally *tally, double p, uint64_t expected, uint64_t n, bool compact,
		  uint64_t set, uint64_t probes)
{
	Image		image;

	forget_images(nkept);
	image_build(&image, p, expected, 0, n, set, compact);
	image_has(&image, 0, n, set);
	tally->probes += (double) probes;
	tally->hits += (double) count_hits(&image.view, NEVER_ADDED, probes, set);
	tally->told += bf_current_fpp(&image.view) * (double) probes;
	tally->keys += (double) n;
	tally->estimated += bf_cardinality(&image.view);
	tally->filters++;
	tally->lists += image.view.nlayers == 0;
	if (image.view.nlayers > tally->max_layers)
		tally->max_layers = image.view.nlayers;

	/* A list holds just its keys, and knows how many. */
	if (image.view.nlayers == 0)
		EQUAL(bf_cardinality(&image.view), (double) n);
}

static Tally
probe(double p, uint64_t expected, uint64_t n, bool compact, uint64_t probes)
{
	Tally		tally = {0};
	uint64_t	filters = n > 10000 ? 1 : scaled(40, 10);

	/* Only an equal hash can hit a list: few probes tell as much as many. */
	if (n <= 10)
		probes = 100000;
	for (uint64_t set = 1; set <= filters; set++)
		probe_one(&tally, p, expected, n, compact, set, probes / filters);
	return tally;
}

/* The largest rate that passes for one of r. */
static double
allowed(double r, double probes)
{
	return r + 3 * sqrt(r * (1 - r) / probes);
}

static void
judge(const Tally *tally, const char *what, double p, double factor,
	  uint64_t n)
{
	tap_case("%s, %g, %llu keys: %.0f hits of %.0f", what, p,
			 (unsigned long long) n, tally->hits, tally->probes);
	HOLDS(tally->hits / tally->probes <= allowed(factor * p, tally->probes));

	/*
	 * What the filters tell of themselves is right to 5 % and the sampling
	 * error, four standard deviations of it.
	 */
	HOLDS(fabs(tally->hits - tally->told) <
		  0.05 * tally->told + 4 * sqrt(tally->told) + 1);
}

static void
test_within(void)
{
	for (size_t p = 0; p < LENGTH(rates); p++)
		for (size_t n = 0; n < LENGTH(numbers); n++)
		{
			if (!is_long() && numbers[n] > 100000)
				continue;
			for (int sized = 0; sized < 2; sized++)
			{
				Tally		tally = probe(rates[p], sized ? numbers[n] : 0,
										  numbers[n], !sized,
										  probes_for(rates[p], 5000, 2e7));

				judge(&tally, sized ? "sized" : "unsized", rates[p], 1.1,
					  numbers[n]);
				HOLDS(tally.max_layers <= 1);
				EQUAL(tally.lists, (numbers[n] > 10 ? 0 : tally.filters));
				if (numbers[n] >= 1000000)
					HOLDS(fabs(tally.estimated / tally.keys - 1) < 0.01);
			}
		}
}

/*
 * What full filters tell of themselves, and what was requested, to half a per
 * cent: a formula that takes all blocks with equal keys to have equal
 * bits is off by more.  Of one filter, the chance that keys fall into its
 * blocks decides as much; the mean of 128 leaves 0.15 % of it.
 */
static void
test_full(void)
{
	const double fpp = 0.01;
	uint64_t	filters = scaled(128, 4);
	Tally		tally = {0};
	BfGeometry	geometry;

	bf_geometry_for(fpp, false, 100000, &geometry);
	for (uint64_t set = 1; set <= filters; set++)
		probe_one(&tally, fpp, geometry.capacity, geometry.capacity, false, set,
				  scaled(1600000, 10000));
	EQUAL(tally.max_layers, 1);
	HOLDS(fabs(tally.hits - tally.told) < 0.003 * tally.told + 3 *
		  sqrt(tally.told));
	HOLDS(tally.hits < fpp * tally.probes + 3 * sqrt(fpp * tally.probes));
}

static void
test_ten_times(void)
{
	static const uint64_t expected[] = {10, 51, 1000, 100000, 1000000};

	for (size_t p = 0; p < LENGTH(rates); p++)
		for (size_t e = 0; e < LENGTH(expected); e++)
		{
			Tally		tally;

			if (expected[e] > scaled(1000000, 10000))
				continue;

			/* Ten million keys take seconds to add: at one rate. */
			if (expected[e] == 1000000 && rates[p] != 0.01)
				continue;
			tally = probe(rates[p], expected[e], 10 * expected[e], false,
						  probes_for(rates[p], 1000, 1e7));
			judge(&tally, "ten times", rates[p], 2.2, 10 * expected[e]);
			CHECK(tally.max_layers <= 6, "%d layers", tally.max_layers);
		}
}

/* What has gone on in layers of bits and is folded at the end. */
static void
test_beyond_list(void)
{
	Tally		tally = {0};

	probe_one(&tally, 0.01, 0, 5000000, true, 1, scaled(2000000, 100000));
	judge(&tally, "5 million", 0.01, 1.1, 5000000);
	HOLDS(fabs(tally.estimated / tally.keys - 1) < 0.01);
}

/* Keys as people have them: running numbers, and texts that differ little. */
static uint64_t
natural_key(int sort, uint64_t i)
{
	char		text[64];

	if (sort == 0)
		return bf_hash_u64(i, 0);
	if (sort == 1)
		snprintf(text, sizeof(text), "https://www.example.com/shop/item/%llu",
				 (unsigned long long) i);
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long) i);
	return bf_hash_bytes(text, strlen(text), 0);
}

static void
test_natural_keys(void)
{
	static const char *const sorts[] = {"numbers", "URLs", "short texts"};
	static const double requested[] = {0.01, 1e-3};
	const uint64_t n = scaled(100000, 20000);
	const uint64_t probes = scaled(3000000, 200000);

	for (int sort = 0; sort < 3; sort++)
		for (size_t p = 0; p < LENGTH(requested); p++)
		{
			Tally		tally = {0};
			TestEnv		env;
			BfBuilder	b;
			Image		image;

			start(&b, &env, requested[p], n);
			for (uint64_t i = 0; i < n; i++)
				if (!EQUAL(bf_builder_add(&b, natural_key(sort, i)), BF_OK))
					break;
			image_write(&image, &b, false);
			for (uint64_t i = 0; i < n; i++)
				if (!HOLDS(bf_contains(&image.view, natural_key(sort, i))))
					break;
			for (uint64_t i = n; i < n + probes; i++)
				tally.hits += bf_contains(&image.view,
										  natural_key(sort, i));
			tally.probes = (double) probes;
			tally.told = bf_current_fpp(&image.view) * (double) probes;
			judge(&tally, sorts[sort], requested[p], 1.1, n);
			finish(&b, &env);
		}
}

int
main(void)
{
	tap_run("within capacity: at most 1.1 p, nothing lost", test_within);
	tap_run("a full filter has the rate that it tells", test_full);
	tap_run("ten times the keys: below 2.2 p, nothing lost",
			test_ten_times);
	tap_run("five million keys in a filter without a size",
			test_beyond_list);
	tap_run("running numbers and texts", test_natural_keys);
	return tap_done();
}
