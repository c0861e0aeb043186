/*-------------------------------------------------------------------------
 *
 * test_statistics.c
 *	  Questions to an image, and adding to it in place.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

/* A list knows its number of keys; a layer of bits estimates it. */
static void
test_cardinality(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 1000, 100000};
	static const double rates[] = {0.1, 0.01, 1e-3, 1e-4, 1e-5};
	uint64_t	n = scaled(1000000, 300000);
	size_t		i;
	int			compact;

	for (i = 0; i < LENGTH(numbers); i++)
	{
		Image		image;

		image_build(&image, 0.01, 0, 0, numbers[i], 1, false);
		CHECK(bf_cardinality(&image.view) == (double) numbers[i],
			  "a list of %llu: %g", (unsigned long long) numbers[i],
			  bf_cardinality(&image.view));
		image_free(&image);
	}
	for (i = 0; i < LENGTH(rates); i++)
	{
		for (compact = 0; compact < 2; compact++)
		{
			Image		image;

			image_build(&image, rates[i], compact ? 0 : n, 0, n, 1,
						compact != 0);
			CHECK(image.view.nlayers == 1, "%d layers", image.view.nlayers);
			CHECK(fabs(bf_cardinality(&image.view) / (double) n - 1) < 0.01,
				  "%g, %llu keys: estimated as %.0f", rates[i],
				  (unsigned long long) n, bf_cardinality(&image.view));
			image_free(&image);
		}
	}
}

static void
test_current_fpp(void)
{
	Image		image;
	double		none = 1;
	double		keys = 0;
	int			i;

	image_build(&image, 0.01, 0, 0, 0, 1, false);
	CHECK(bf_current_fpp(&image.view) == 0, "an empty list");
	image_free(&image);
	image_build(&image, 0.01, 0, 0, 1000, 1, false);
	CHECK(bf_current_fpp(&image.view) == ldexp(1000, -64), "a list: %g",
		  bf_current_fpp(&image.view));
	image_free(&image);

	/* Of several layers: one minus the chance that none says yes. */
	image_build(&image, 0.2, 50, 0, 3000, 1, false);
	CHECK(image.view.nlayers > 3, "%d layers", image.view.nlayers);
	for (i = 0; i < image.view.nlayers; i++)
	{
		const BfLayer *layer = &image.view.layers[i];

		none *= 1 - bf_geometry_fpp(&layer->geometry, layer->bits_set);
		keys += bf_geometry_cardinality(&layer->geometry, layer->bits_set);
	}
	CHECK(fabs(bf_current_fpp(&image.view) - (1 - none)) < 1e-12,
		  "%.15g, should be %.15g", bf_current_fpp(&image.view), 1 - none);
	CHECK(bf_cardinality(&image.view) >= keys * (1 - 1e-12),
		  "%g keys in all layers, %g in the filter", keys,
		  bf_cardinality(&image.view));
	image_free(&image);

	/* Small rates keep their digits. */
	image_build(&image, 1e-9, 1000, 0, 900, 1, false);
	CHECK(image.view.nlayers == 1 &&
		  bf_current_fpp(&image.view) ==
		  bf_geometry_fpp(&image.view.layers[0].geometry,
						  image.view.layers[0].bits_set) &&
		  bf_current_fpp(&image.view) > 0, "%g",
		  bf_current_fpp(&image.view));
	image_free(&image);
}

/* A key of any layer is found, whichever layers there are next to it. */
static void
test_layers(void)
{
	Image		image;
	int			only,
				i;
	uint64_t	k;

	image_build(&image, 0.01, 100, 0, 2000, 1, false);
	CHECK(image.view.nlayers > 2, "%d layers", image.view.nlayers);
	for (k = 0; k < 3000; k++)
	{
		bool		found = false;

		for (only = 0; only < image.view.nlayers; only++)
		{
			BfView		view = image.view;

			view.nlayers = 1;
			view.layers[0] = image.view.layers[only];
			found |= bf_contains(&view, key(k, 1));
		}
		CHECK(found == bf_contains(&image.view, key(k, 1)), "key %llu",
			  (unsigned long long) k);
	}

	/* Layers may stand in any order. */
	for (i = 0; i < image.view.nlayers / 2; i++)
	{
		BfLayer		layer = image.view.layers[i];
		int			other = image.view.nlayers - 1 - i;

		image.view.layers[i] = image.view.layers[other];
		image.view.layers[other] = layer;
	}
	image_has(&image, 0, 2000, 1);
	image_free(&image);
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
	size_t		i,
				j;

	for (i = 0; i < LENGTH(cases) * LENGTH(rates); i++)
	{
		double		fpp = rates[i % LENGTH(rates)];
		uint64_t	step = cases[i / LENGTH(rates)].step;
		uint64_t	parts = cases[i / LENGTH(rates)].parts;
		double		keys = (double) (10000 + (parts - 1) * step);
		double		counted;
		TestEnv		env;
		BfBuilder	b;
		Image		image;

		start(&b, &env, fpp, 10000);
		for (j = 0; j < parts; j++)
		{
			image_build(&image, fpp, 10000, j * step, 10000, 1, false);
			CHECK(bf_builder_merge(&b, &image.view) == BF_OK, "merge");
			image_free(&image);
		}
		image_write(&image, &b, false);
		counted = bf_count_distinct(&env.env.interrupts, &image.view);
		CHECK(counted > 0.96 * keys &&
			  counted < 1.04 * cases[i / LENGTH(rates)].most * keys,
			  "%g, %d layers: %.0f for %.0f keys", fpp, image.view.nlayers,
			  counted, keys);
		CHECK(counted == bf_builder_cardinality(&b), "another in the builder");
		CHECK(counted <= bf_cardinality(&image.view), "not a better bound");
		image_free(&image);
		finish(&b, &env);
	}
}

/* Rate and keys told of a union to which keys are added are right within 5 %. */
static void
test_added_to_union(void)
{
	static const double rates[] = {0.1, 0.01};
	uint64_t	nprobes = scaled(1000000, 200000);
	size_t		i;
	uint64_t	j;

	for (i = 0; i < LENGTH(rates) * 3; i++)
	{
		double		fpp = rates[i % LENGTH(rates)];
		uint64_t	parts = 2 + i / LENGTH(rates);
		uint64_t	nkeys = parts * 14000 + 20000;
		uint64_t	hits = 0;
		TestEnv		env;
		BfBuilder	b;
		Image		image;

		start(&b, &env, fpp, 20000);
		for (j = 0; j < parts; j++)
		{
			image_build(&image, fpp, 20000, 14000 * j, 14000, 1, false);
			CHECK(bf_builder_merge(&b, &image.view) == BF_OK, "merge");
			image_free(&image);
		}
		add_keys(&b, parts * 14000, 20000, 1);
		image_write(&image, &b, false);
		for (j = 0; j < nprobes; j++)
			hits += bf_contains(&image.view, key(j, 2));
		CHECK(fabs(bf_current_fpp(&image.view) * (double) nprobes /
				   (double) hits - 1) < 0.05, "%g: %g told, %g measured", fpp,
			  bf_current_fpp(&image.view), (double) hits / (double) nprobes);
		CHECK(fabs(bf_count_distinct(&env.env.interrupts, &image.view) /
				   (double) nkeys - 1) < 0.05, "%g: %g of %g keys", fpp,
			  bf_count_distinct(&env.env.interrupts, &image.view),
			  (double) nkeys);
		image_free(&image);
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
	size_t		i;

	for (i = 0; i < LENGTH(rates); i++)
	{
		TestEnv		env;
		BfBuilder	b;
		Image		full,
					many,
					grown;

		image_build(&full, rates[i], 20, 0, 20, 1, true);
		image_build(&many, rates[i], bf_max_keys(rates[i]), 0, 0, 1, false);
		start(&b, &env, rates[i], 20);
		CHECK(bf_builder_merge(&b, &full.view) == BF_OK &&
			  bf_builder_merge(&b, &many.view) == BF_OK, "merge");
		add_keys(&b, 20, 1000, 1);
		image_write(&grown, &b, false);
		CHECK(grown.view.nlayers > 1 && grown.size < 128 * 1024,
			  "%g: %d layers, %zu bytes", rates[i], grown.view.nlayers,
			  grown.size);
		CHECK(env.largest_requested < 128 * 1024, "%zu bytes requested",
			  env.largest_requested);
		image_free(&full);
		image_free(&many);
		image_free(&grown);
		finish(&b, &env);
	}
}

/* No filter of the extension expects more keys than fit. */
static void
test_validate_expected(void)
{
	Image		image;
	uint64_t	max = bf_max_keys(0.01);
	BfView		view;

	image_build(&image, 0.01, 1000, 0, 1000, 1, false);
	view = image.view;
	view.params.expected = max;
	bf_write_header(image.bytes, &view.params, 0, view.layers, view.nlayers);
	CHECK(bf_validate(&no_interrupts, image.bytes, image.size, &view) == BF_OK, "the most");
	view.params.expected = max + 1;
	bf_write_header(image.bytes, &view.params, 0, view.layers, view.nlayers);
	CHECK(bf_validate(&no_interrupts, image.bytes, image.size, &view) == BF_CORRUPT,
		  "one more");
	image_free(&image);
}

int
main(void)
{
	tap_run("cardinality: exact in a list, within 1 % of a million",
			test_cardinality);
	tap_run("a key counts once in layers of one geometry", test_distinct);
	tap_run("the current rate of lists and layers", test_current_fpp);
	tap_run("a key is found in whichever layer it is", test_layers);
	tap_run("rate and keys of a union that more are added to",
			test_added_to_union);
	tap_run("a filter that expects many keys grows by steps",
			test_expects_many);
	tap_run("no image expects more keys than fit", test_validate_expected);
	return tap_done();
}
