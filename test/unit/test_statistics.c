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
		const BfViewLayer *layer = &image.view.layers[i];

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
		BfViewLayer layer = image.view.layers[i];
		int			other = image.view.nlayers - 1 - i;

		image.view.layers[i] = image.view.layers[other];
		image.view.layers[other] = layer;
	}
	image_has(&image, 0, 2000, 1);
	image_free(&image);
}

/* What a builder makes of an image and one key more. */
static bool
add_by_builder(Image *result, const Image *image, uint64_t hash)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;
	bool		written;

	env_init(&env, SIZE_MAX);
	bf_builder_init(&b, &env.env, &image->view.params);
	status = bf_builder_merge(&b, &image->view);
	if (status == BF_OK)
		status = bf_builder_add(&b, hash);
	CHECK(status == BF_OK, "status %d", (int) status);
	written = image_write(result, &b, false);
	finish(&b, &env);
	return written;
}

static void
test_add_in_place(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n;
	}			cases[] = {
		{0.01, 0, 0}, {0.01, 0, 20}, {0.01, 1000, 10}, {0.01, 1000, 300},
		{0.1, 30, 30}, {0.01, 100, 400}, {1e-5, 200, 900}, {1e-3, 1, 100}
	};
	long		in_place = 0;
	long		no_room = 0;
	size_t		c;

	for (c = 0; c < LENGTH(cases); c++)
	{
		Image		image;
		uint64_t	i;

		image_build(&image, cases[c].fpp, cases[c].expected, 0, cases[c].n,
					1, false);
		for (i = 0; i < 500; i++)
		{
			/* Now and then one that is there already. */
			uint64_t	hash = i % 5 == 0 && cases[c].n > 0 ?
				key(i % cases[c].n, 1) : key(i, 2);
			bool		known = bf_contains(&image.view, hash);
			Image		expected;
			uint8_t    *copy = exactly(image.size);
			BfStatus	status;

			if (!add_by_builder(&expected, &image, hash))
				return;

			/* The view may be of another copy than the one written to. */
			memcpy(copy, image.bytes, image.size);
			status = bf_add_in_place(copy, &image.view, hash);
			if (status == BF_OK)
			{
				in_place++;
				CHECK(expected.size == image.size &&
					  memcmp(copy, expected.bytes, image.size) == 0,
					  "case %zu, key %llu: a builder gives other bytes", c,
					  (unsigned long long) i);
			}
			else
			{
				no_room++;
				CHECK(status == BF_NO_ROOM && !known,
					  "case %zu, key %llu: status %d", c,
					  (unsigned long long) i, (int) status);
				CHECK(memcmp(copy, image.bytes, image.size) == 0,
					  "case %zu, key %llu: rejected, but written", c,
					  (unsigned long long) i);

				/* Then there is none: the builder takes more, too. */
				CHECK(expected.size > image.size ||
					  expected.view.nlayers != image.view.nlayers,
					  "case %zu, key %llu: rejected for no reason", c,
					  (unsigned long long) i);
			}
			CHECK(!known || memcmp(copy, image.bytes, image.size) == 0,
				  "case %zu, key %llu: known, but written", c,
				  (unsigned long long) i);
			CHECK(bf_contains(&expected.view, hash),
				  "case %zu: key %llu is lost", c, (unsigned long long) i);
			free(copy);

			/* Where it stands. */
			if (status == BF_OK)
			{
				status = bf_add_in_place(image.bytes, &image.view, hash);
				CHECK(status == BF_OK && image_open(&image) &&
					  image_equal(&image, &expected),
					  "case %zu, key %llu: where it stands", c,
					  (unsigned long long) i);
				image_free(&expected);
			}
			else
			{
				image_free(&image);
				image = expected;
			}
		}
		image_has(&image, 0, cases[c].n, 1);
		image_free(&image);
	}
	CHECK(in_place > 1000 && no_room > 500,
		  "%ld in place, %ld not: not much of a test", in_place, no_room);
}

int
main(void)
{
	tap_run("cardinality: exact in a list, within 1 % of a million",
			test_cardinality);
	tap_run("the current rate of lists and layers", test_current_fpp);
	tap_run("a key is found in whichever layer it is", test_layers);
	tap_run("adding in place gives what a builder gives",
			test_add_in_place);
	return tap_done();
}
