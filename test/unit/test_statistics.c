/*-------------------------------------------------------------------------
 *
 * test_statistics.c
 *	  Questions to an image, and adding to it in place: what filters, also of
 *	  many layers, tell about themselves.
 *
 * A told rate is compared with the one that is measured with keys that were
 * never added; a told number of keys with the number that was added.  The
 * content of a small filter varies, so both are means over several filters.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

/* A list knows its number of keys; a layer of bits estimates it. */
static void
test_cardinality(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 1000, 100000};
	static const double rates[] = {0.1, 0.01, 1e-3, 1e-4, 1e-5};
	uint64_t	n = scaled(1000000, 300000);

	for (size_t i = 0; i < LENGTH(numbers); i++)
	{
		Image		image = built(0.01, 0, 0, numbers[i], 1, false);

		EQUAL(bf_cardinality(&image.view), (double) numbers[i]);
	}
	for (size_t i = 0; i < LENGTH(rates); i++)
		for (int compact = 0; compact < 2; compact++)
		{
			Image		image = built(rates[i], compact ? 0 : n, 0, n, 1,
									  compact != 0);

			EQUAL(image.view.nlayers, 1);
			HOLDS(fabs(bf_cardinality(&image.view) / (double) n - 1) < 0.01);
		}
}

static void
test_current_fpp(void)
{
	Image		image = built(0.01, 0, 0, 0, 1, false);
	double		none = 1;
	double		keys = 0;

	CHECK(bf_current_fpp(&image.view) == 0, "an empty list");
	image_build(&image, 0.01, 0, 0, 1000, 1, false);
	EQUAL(bf_current_fpp(&image.view), ldexp(1000, -64));

	/* Of several layers: one minus the chance that none says yes. */
	image_build(&image, 0.2, 50, 0, 3000, 1, false);
	CHECK(image.view.nlayers > 3, "%d layers", image.view.nlayers);
	for (int i = 0; i < image.view.nlayers; i++)
	{
		const BfLayer *layer = &image.view.layers[i];

		none *= 1 - bf_geometry_fpp(&layer->geometry, layer->bits_set);
		keys += bf_geometry_cardinality(&layer->geometry, layer->bits_set);
	}
	HOLDS(fabs(bf_current_fpp(&image.view) - (1 - none)) < 1e-12);
	HOLDS(bf_cardinality(&image.view) >= keys * (1 - 1e-12));

	/* Small rates keep their digits. */
	image_build(&image, 1e-9, 1000, 0, 900, 1, false);
	EQUAL(image.view.nlayers, 1);
	EQUAL(bf_current_fpp(&image.view),
		  bf_geometry_fpp(&image.view.layers[0].geometry,
						  image.view.layers[0].bits_set));
	HOLDS(bf_current_fpp(&image.view) > 0);
}

/*
 * A key in layers of one geometry counts once, also where so many of them have
 * all bits set that only some are compared; else it counts in each.
 */
static void
test_distinct(void)
{
	static const struct
	{
		uint64_t	parts;
		uint64_t	step;		/* of the first key */
		double		most;		/* counted for each key */
	}			cases[] = {{2, 0, 1}, {2, 5000, 1}, {2, 10000, 1}, {10, 1000, 1},
	{10, 10000, 1}, {32, 100, 1.02}, {32, 10000, 1.02}};
	static const double rates[] = {0.5, 0.1, 0.01, 1e-4};

	for (size_t i = 0; i < LENGTH(cases) * LENGTH(rates); i++)
	{
		double		fpp = rates[i % LENGTH(rates)];
		uint64_t	step = cases[i / LENGTH(rates)].step;
		uint64_t	parts = cases[i / LENGTH(rates)].parts;
		double		keys = (double) (10000 + (parts - 1) * step);
		double		counted;
		TestEnv		env;
		BfBuilder	b;
		Image		image;

		forget_images(0);
		tap_case("%g, %.0f keys, %d parts", fpp, keys, (int) parts);
		start(&b, &env, fpp, 10000);
		for (size_t j = 0; j < parts; j++)
		{
			image_build(&image, fpp, 10000, j * step, 10000, 1, false);
			merge(&b, &image);
		}
		image_write(&image, &b, false);
		counted = bf_count_distinct(&env.env.interrupts, 0, image.view.layers,
									image.view.nlayers);
		HOLDS(counted > 0.96 * keys);
		HOLDS(counted < 1.04 * cases[i / LENGTH(rates)].most * keys);
		EQUAL(counted, bf_count_distinct(&b.env.interrupts, b.nhashes,
										 b.layers, b.nlayers));
		CHECK(counted <= bf_cardinality(&image.view), "not a better bound");
		finish(&b, &env);
	}
}

/* Rate and keys told of a union to which keys are added are right within 5 %. */
static void
test_added_to_union(void)
{
	static const double rates[] = {0.1, 0.01};
	uint64_t	nprobes = scaled(1000000, 200000);

	for (size_t i = 0; i < LENGTH(rates) * 3; i++)
	{
		double		fpp = rates[i % LENGTH(rates)];
		uint64_t	parts = 2 + i / LENGTH(rates);
		uint64_t	nkeys = parts * 14000 + 20000;
		uint64_t	hits = 0;
		TestEnv		env;
		BfBuilder	b;
		Image		image;

		forget_images(0);
		tap_case("%g, %d parts", fpp, (int) parts);
		start(&b, &env, fpp, 20000);
		for (uint64_t j = 0; j < parts; j++)
		{
			image_build(&image, fpp, 20000, 14000 * j, 14000, 1, false);
			merge(&b, &image);
		}
		add_keys(&b, parts * 14000, 20000, 1);
		image_write(&image, &b, false);
		for (uint64_t j = 0; j < nprobes; j++)
			hits += bf_contains(&image.view, key(j, 2));
		HOLDS(fabs(bf_current_fpp(&image.view) *
				   (double) nprobes / (double) hits - 1) < 0.05);
		HOLDS(fabs(bf_count_distinct(&env.env.interrupts, 0, image.view.layers,
									 image.view.nlayers) / (double) nkeys - 1) < 0.05);
		finish(&b, &env);
	}
}

/*
 * A filter that expects far more keys than it holds grows by steps: a small one
 * from elsewhere does not take much memory for one key.
 */
static void
test_expects_many(void)
{
	static const double rates[] = {0.5, 0.1, 0.01};

	for (size_t i = 0; i < LENGTH(rates); i++)
	{
		TestEnv		env;
		BfBuilder	b;
		Image		grown;
		Image		full = built(rates[i], 20, 0, 20, 1, true);
		Image		many = built(rates[i], bf_max_keys(rates[i]), 0, 0, 1, false);

		start(&b, &env, rates[i], 20);
		merge(&b, &full);
		merge(&b, &many);
		add_keys(&b, 20, 1000, 1);
		image_write(&grown, &b, false);
		HOLDS(grown.view.nlayers > 1 && grown.size < 128 * 1024);
		HOLDS(env.largest_requested < 128 * 1024);
		finish(&b, &env);
	}
}

/* Keys that are never added. */
#define ABSENT		UINT64_C(1) << 40

static bool
is_near(double told, double measured, double tolerance)
{
	return fabs(told - measured) <= tolerance * measured;
}

/*
 * Unions of many filters, of equal and of different sizes and rates, in layers
 * of any order: all keys are found, the rate is as told, the number of keys
 * nearly so.
 */
static void
test_many(void)
{
	static const struct
	{
		const char *name;
		int			nfilters;
		uint64_t	expected;	/* of the first one */
		uint64_t	step;		/* more of each following */
		double		fpp;
		double		next_fpp;	/* of every other one */
	}			cases[] = {
		{"33 of 40 keys", 33, 0, 0, 0.01, 0.01},
		{"33 of 1000 keys", 33, 1000, 0, 0.001, 0.001},
		{"60 of 40 to 640 keys", 60, 40, 10, 0.01, 0.01},
		{"40 of 500 to 4400 keys", 40, 500, 100, 1e-3, 1e-3},
		{"50 of two rates", 50, 300, 20, 0.01, 1e-4},
		/* No growth of one another */
		{"two of rates related by a power of two", 2, 10000, 0, 0.5, 0.25}
	};

	for (size_t c = 0; c < LENGTH(cases); c++)
	{
		TestEnv		env;
		BfBuilder	b;
		Image		image;
		uint64_t	total = 0;
		double		told,
					measured;

		tap_case("%s", cases[c].name);
		start(&b, &env, cases[c].fpp, 0);
		for (int i = 0; i < cases[c].nfilters; i++)
		{
			uint64_t	n = cases[c].expected > 0 ?
				cases[c].expected + (uint64_t) i * cases[c].step : 40;
			Image		next = built(i % 2 ? cases[c].next_fpp : cases[c].fpp,
									 cases[c].expected > 0 ? n : 0, 0, n, 50 + (uint64_t) i,
									 cases[c].expected == 0);

			EQUAL(next.view.nlayers, 1);
			merge(&b, &next);
			total += n;
		}
		image_write(&image, &b, false);
		EQUAL(image.view.nlayers, cases[c].nfilters);
		for (int i = 0; i < cases[c].nfilters; i++)
			image_has(&image, 0, cases[c].expected > 0 ?
					  cases[c].expected + (uint64_t) i * cases[c].step :
					  40, 50 + (uint64_t) i);
		told = bf_current_fpp(&image.view);
		measured = (double) count_hits(&image.view, ABSENT, 200000, 9) /
			200000;
		HOLDS(is_near(told, measured, 0.05));
		HOLDS(is_near(bf_cardinality(&image.view), (double) total, 0.05));
		finish(&b, &env);
	}
}

/* A filter has as many layers as there can be, and no more. */
static void
test_layer_limit(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		image,
				next;
	double		told,
				measured;

	start(&b, &env, 0.001, 0);
	for (int i = 0; i < BF_MAX_LAYERS; i++)
	{
		image_build(&next, 0.001, 100, 0, 100, (uint64_t) i, false);
		CHECK(bf_builder_merge(&b, &next.view) == BF_OK, "filter %d", i);
	}
	EQUAL(b.nlayers, BF_MAX_LAYERS);
	image_write(&image, &b, false);
	for (int i = 0; i < BF_MAX_LAYERS; i++)
		image_has(&image, 0, 100, (uint64_t) i);
	told = bf_current_fpp(&image.view);
	measured = (double) count_hits(&image.view, ABSENT, 100000, 5000) /
		100000;
	HOLDS(is_near(told, measured, 0.05));

	/* What is in it needs no layer. */
	image_build(&next, 0.001, 100, 0, 100, 7, false);
	merge(&b, &next);
	EQUAL(b.nlayers, BF_MAX_LAYERS);
	image_build(&next, 0.001, 100, 0, 100, BF_MAX_LAYERS, false);
	EQUAL(bf_builder_merge(&b, &next.view), BF_TOO_MANY_LAYERS);
	finish(&b, &env);
}

/* Large layers are ORed as small ones are, though not all of each is read. */
static void
test_large_layers(void)
{
	static const struct
	{
		uint64_t	first;
		uint64_t	n;
		int			nlayers;	/* of the union with keys 0 to 39,999 */
	}			others[] = {
		{0, 40000, 1}, {100, 30000, 1}, {39000, 1000, 1}, {40000, 40000, 2},
		{20000, 40000, 2}
	};

	for (size_t i = 0; i < LENGTH(others); i++)
	{
		Image		both;
		TestEnv		env;
		BfBuilder	b;
		Image		x = built(0.01, 40000, 0, 40000, 1, false);
		Image		y = built(0.01, 40000, others[i].first, others[i].n, 1, false);

		env_init(&env, SIZE_MAX);
		EQUAL(bf_union(&b, &env.env, &x.view, &y.view), BF_OK);
		image_write(&both, &b, false);
		EQUAL(both.view.nlayers, others[i].nlayers);
		finish(&b, &env);
	}
}

/*
 * Filters that grew, from very small ones on and at large rates, too, tell
 * rate and number of keys within 5 %.
 */
static void
test_told_by_growth(void)
{
	static const double rates[] = {0.5, 0.3, 0.1, 0.01};
	static const uint64_t expected[] = {1, 10, 1000, 10000};
	static const int times[] = {2, 5, 30};

	for (size_t r = 0; r < LENGTH(rates); r++)
		for (size_t e = 0; e < LENGTH(expected); e++)
			for (size_t t = 0; t < LENGTH(times); t++)
			{
				/* One block holds hundreds of keys. */
				uint64_t	n = (expected[e] < 1000 ? 500 : expected[e]) *
					(uint64_t) times[t];
				int			nfilters = n > 100000 ? 2 : n > 20000 ? 10 :
					is_long() ? 100 : 30;
				uint64_t	probes = n > 20000 ? 100000 : 20000;
				double		told = 0;
				double		keys = 0;
				uint64_t	hits = 0;

				if (!is_long() && n > 20000)
					continue;
				tap_case("fpp %g, expected %llu, %llu keys", rates[r],
						 (unsigned long long) expected[e], (unsigned long long) n);
				for (int i = 0; i < nfilters; i++)
				{
					Image		image;

					forget_images(0);

					image_build(&image, rates[r], expected[e], 0, n,
								(uint64_t) i + 1000 * r, false);
					HOLDS(image.view.nlayers > 1);
					told += bf_current_fpp(&image.view);
					keys += bf_cardinality(&image.view);
					hits += count_hits(&image.view, ABSENT, probes,
									   (uint64_t) i);
				}
				HOLDS(is_near(told / nfilters,
							  (double) hits / (double) probes / nfilters, 0.05));
				HOLDS(is_near(keys / nfilters, (double) n, 0.05));
			}
}

int
main(void)
{
	tap_run("cardinality: exact in a list, within 1 % of a million",
			test_cardinality);
	tap_run("a key counts once in layers of one geometry", test_distinct);
	tap_run("the current rate of lists and layers", test_current_fpp);
	tap_run("rate and keys of a union that more are added to",
			test_added_to_union);
	tap_run("a filter that expects many keys grows by steps",
			test_expects_many);
	tap_run("unions of many filters", test_many);
	tap_run("1,024 layers and no more", test_layer_limit);
	tap_run("large layers are ORed", test_large_layers);
	tap_run("grown filters tell rate and keys", test_told_by_growth);
	return tap_done();
}
