/*-------------------------------------------------------------------------
 *
 * test_in_place.c
 *	  Builders that are probed while keys are added, and that are taken up
 *	  again from their image: neither may tell in the bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const double rates[] = {0.5, 0.01, 1e-9};
static const uint64_t expected[] = {0, 1, 300, 30000};

/* Ask an image and the builder that wrote it for added and other keys. */
static void
compare_answers(BfBuilder *b, uint64_t n, uint64_t set)
{
	Image		image;
	uint64_t	i;
	uint64_t	wrong = 0;

	/* Before the image, which sorts. */
	for (i = 0; i < n; i++)
		wrong += !bf_builder_contains(b, key(i, set));
	CHECK(wrong == 0, "%llu of %llu keys not contained",
		  (unsigned long long) wrong, (unsigned long long) n);

	if (image_write(&image, b, false))
	{
		for (i = 0; i < 2 * n + 100; i++)
			wrong += bf_builder_contains(b, key(i, set)) !=
				bf_contains(&image.view, key(i, set));
		CHECK(wrong == 0, "%llu other answers than those of the image",
			  (unsigned long long) wrong);
		CHECK(bf_builder_cardinality(b) == bf_cardinality(&image.view),
			  "%g keys, %g in the image", bf_builder_cardinality(b),
			  bf_cardinality(&image.view));
	}
	image_free(&image);
}

static void
test_contains(void)
{
	TestEnv		env;
	BfBuilder	b;
	size_t		p,
				e;
	uint64_t	i;

	for (p = 0; p < LENGTH(rates); p++)
	{
		for (e = 0; e < LENGTH(expected); e++)
		{
			start(&b, &env, rates[p], expected[e]);
			CHECK(!bf_builder_contains(&b, 1), "an empty one contains");
			for (i = 0; i < 6000; i++)
			{
				uint64_t	hash = key(i, 7);
				bool		found = bf_builder_contains(&b, hash);

				if (!found)
					add_keys(&b, i, 1, 7);
				CHECK(bf_builder_contains(&b, hash), "key not contained");
				if (i % 1500 == 1499)
					compare_answers(&b, i, 7);
			}
			finish(&b, &env);
		}
	}
}

/* What there is room for changes no form, and there mostly is some. */
static void
test_has_room(void)
{
	static const uint32_t steps[] = {1, 2, 10, 100};
	TestEnv		env;
	BfBuilder	b;
	size_t		p,
				e,
				s;
	uint64_t	i,
				j;
	int			without;

	for (p = 0; p < LENGTH(rates); p++)
	{
		for (e = 0; e < LENGTH(expected); e++)
		{
			for (s = 0; s < LENGTH(steps); s++)
			{
				start(&b, &env, rates[p], expected[e]);
				without = 0;
				for (i = 0; i < 10000; i += steps[s])
				{
					bool		room = bf_builder_has_room(&b, steps[s]);
					int			nlayers = b.nlayers;
					size_t		size;

					for (j = i; j < i + steps[s]; j++)
					{
						if (!bf_builder_contains(&b, key(j, 3)))
							add_keys(&b, j, 1, 3);
					}
					if (!room)
					{
						without++;
						CHECK(bf_builder_plan(&b, &size) == BF_OK,
							  "plan");
					}
					CHECK(!room || (b.nlayers == nlayers &&
									(nlayers > 0 ||
									 b.nhashes <= b.max_hashes)),
						  "%g, %llu keys: %u at %llu changed the form",
						  rates[p], (unsigned long long) expected[e],
						  (unsigned) steps[s], (unsigned long long) i);
				}
				CHECK(without <= 20 * (b.nlayers + 1),
					  "%g, %llu keys, %u at once: %d times no room, %d layers",
					  rates[p], (unsigned long long) expected[e],
					  (unsigned) steps[s], without, b.nlayers);
				finish(&b, &env);
			}
		}
	}
}

/*
 * Layers side by side are sorted when they come together.  Later, the one
 * that was emptier may get as full as the other: the order is that of the
 * image.
 */
static void
test_load(void)
{
	int			alike = 0;
	uint64_t	set;
	uint64_t	i;

	for (set = 0; set < 10; set++)
	{
		Image		x,
					y,
					both,
					again;
		TestEnv		env;
		BfBuilder	b;

		if (!image_build(&x, 0.01, 1000, 0, 1000, set, false) ||
			!image_build(&y, 0.01, 1000, 2000, 900, set, false))
			return;
		env_init(&env, SIZE_MAX);
		CHECK(bf_union(&b, &env.env, &x.view, &y.view) == BF_OK, "union");
		if (image_write(&both, &b, false))
			CHECK(both.view.nlayers == 2, "%d layers", both.view.nlayers);
		finish(&b, &env);

		for (i = 10000; i < 12000; i++)
		{
			if (bf_add_in_place(both.bytes, &both.view,
								key(i, set)) != BF_OK)
				continue;
			if (!image_open(&both))
				break;
			alike += both.view.layers[0].bits_set >=
				both.view.layers[1].bits_set;

			start(&b, &env, 0.01, 1000);
			CHECK(bf_builder_merge(&b, &both.view) == BF_OK, "merge");
			if (image_write(&again, &b, false))
				CHECK(image_equal(&again, &both),
					  "other bytes after key %llu of set %llu",
					  (unsigned long long) i, (unsigned long long) set);
			image_free(&again);
			finish(&b, &env);
		}
		image_free(&x);
		image_free(&y);
		image_free(&both);
	}
	CHECK(alike > 0, "layers never came close to another order");
}

int
main(void)
{
	tap_run("a builder answers as its image does", test_contains);
	tap_run("where there is room, the form stays", test_has_room);
	tap_run("taken up again, the same bytes", test_load);
	return tap_done();
}
