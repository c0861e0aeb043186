/*-------------------------------------------------------------------------
 *
 * test_merge.c
 *	  Layers merged into one another, where a filter has too many, and what
 *	  filters with grown and merged layers tell about themselves.
 *
 * A told rate is compared with the one that is measured with keys that were
 * never added; a told number of keys with the number that was added.  The
 * content of a small filter varies, so both are means over several filters.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bits.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

/* Keys that are never added. */
#define ABSENT		UINT64_C(1) << 40

static bool
is_near(double told, double measured, double tolerance)
{
	return fabs(told - measured) <= tolerance * measured;
}

/* Rate at which bits report keys as members that were never added. */
static double
measured_rate(const BfGeometry *geometry, const uint8_t *bits, uint64_t probes,
			  uint64_t set)
{
	uint64_t	hits = 0;
	uint64_t	i;

	for (i = 0; i < probes; i++)
		hits += bf_bits_contain(geometry, bits, key((ABSENT) + i, set));
	return (double) hits / (double) probes;
}

/* A layer with n keys of a set. */
static uint8_t *
make_bits(const BfGeometry *geometry, uint64_t n, uint64_t set)
{
	uint8_t    *bits = exactly(bf_geometry_size(geometry));
	uint64_t	i;

	memset(bits, 0, bf_geometry_size(geometry));
	for (i = 0; i < n; i++)
		bf_bits_add(geometry, bits, key(i, set));
	return bits;
}

/*
 * Any two layers, whatever their numbers and sizes of blocks and their numbers
 * of hash functions: all keys of both are found in the merged one, and the
 * rate that its bits tell is the one that it has.
 */
static void
test_any_two(void)
{
	static const uint32_t nblocks[] = {1, 2, 3, 7, 64, 75, 129, 1000};
	static const int block_log2s[] = {9, 10, 12, 14};
	static const int ks[] = {1, 3, 6, 13};
	uint64_t	state = 1;
	int			round;
	int			nrated = 0;

	for (round = 0; round < (quick() ? 40 : 400); round++)
	{
		BfGeometry	geometries[2];
		BfGeometry	merged = {0, 0, 0, 1, 0.01, 0, true};
		uint8_t    *bits[2];
		uint8_t    *both;
		uint64_t	n[2];
		double		told;
		int			generation = (int) (random64(&state) % 24);
		int			i;

		merged.block_log2 = BF_MAX_BLOCK_LOG2;
		merged.k = BF_MAX_HASHES;
		merged.generation = (uint8_t) generation;
		for (i = 0; i < 2; i++)
		{
			BfGeometry *geometry = &geometries[i];

			memset(geometry, 0, sizeof(*geometry));
			geometry->nblocks = nblocks[random64(&state) % LENGTH(nblocks)];
			geometry->block_log2 = (uint8_t)
				block_log2s[random64(&state) % LENGTH(block_log2s)];
			geometry->k = (uint8_t) ks[random64(&state) % LENGTH(ks)];
			geometry->generation = (uint8_t) generation;

			/* Of its bits, a fifth to two fifths are set. */
			n[i] = bf_geometry_bits(geometry) / geometry->k *
				(4 + random64(&state) % 5) / 16 + 1;
			bits[i] = make_bits(geometry, n[i], 2 * (uint64_t) round +
								(uint64_t) i);
			if (merged.nblocks < geometry->nblocks)
				merged.nblocks = geometry->nblocks;
			if (merged.block_log2 > geometry->block_log2)
				merged.block_log2 = geometry->block_log2;
			if (merged.k > geometry->k)
				merged.k = geometry->k;
		}

		both = exactly(bf_geometry_size(&merged));
		memset(both, 0, bf_geometry_size(&merged));
		for (i = 0; i < 2; i++)
		{
			TestEnv		env;

			env_init(&env, SIZE_MAX);
			bf_bitmap_or_into(&env.env.interrupts, &merged, both, &geometries[i],
							  bits[i]);
		}
		for (i = 0; i < 2; i++)
		{
			uint64_t	j;

			for (j = 0; j < n[i]; j++)
			{
				uint64_t	hash = key(j, 2 * (uint64_t) round +
									   (uint64_t) i);

				if (!CHECK(bf_bits_contain(&merged, both, hash),
						   "round %d: key %llu of layer %d is lost", round,
						   (unsigned long long) j, i))
					break;
			}
		}

		told = bf_bitmap_fpp(&merged, both);
		if (told > 0.001)
		{
			double		measured = measured_rate(&merged, both, 400000, 7);

			nrated++;
			CHECK(is_near(told, measured, 0.05 + 4 / sqrt(measured * 400000)),
				  "round %d: %u and %u blocks of 2^%d and 2^%d, k %d and %d: "
				  "told %g, measured %g", round, geometries[0].nblocks,
				  geometries[1].nblocks, geometries[0].block_log2,
				  geometries[1].block_log2, geometries[0].k, geometries[1].k, told,
				  measured);
		}
		free(both);
		free(bits[0]);
		free(bits[1]);
	}
	CHECK(nrated > round / 4, "only %d rates were measured", nrated);
}

/* A layer that is merged into one of its own geometry is ORed into it. */
static void
test_equal_geometries(void)
{
	BfGeometry	geometry;
	TestEnv		env;
	uint8_t    *x,
			   *y,
			   *z;
	size_t		i;

	env_init(&env, SIZE_MAX);
	CHECK(bf_geometry_for(0.001, 20000, &geometry) == BF_OK, "no geometry");
	x = make_bits(&geometry, 9000, 1);
	y = make_bits(&geometry, 9000, 2);
	z = exactly(bf_geometry_size(&geometry));
	memcpy(z, x, bf_geometry_size(&geometry));
	bf_bitmap_or_into(&env.env.interrupts, &geometry, z, &geometry, y);
	for (i = 0; i < bf_geometry_size(&geometry); i++)
	{
		if (!CHECK(z[i] == (x[i] | y[i]), "byte %zu", i))
			break;
	}
	CHECK(env.polls > 0, "cannot be cancelled");
	free(x);
	free(y);
	free(z);
}

/*
 * Unions of many filters, of equal and of different sizes and rates: all keys
 * are found, the rate is as told, the number of keys nearly so.
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
		{"50 of two rates", 50, 300, 20, 0.01, 1e-4}
	};
	size_t		c;

	for (c = 0; c < LENGTH(cases); c++)
	{
		TestEnv		env;
		BfBuilder	b;
		Image		image;
		uint64_t	total = 0;
		double		told,
					measured;
		int			i;

		start(&b, &env, cases[c].fpp, 0);
		for (i = 0; i < cases[c].nfilters; i++)
		{
			uint64_t	n = cases[c].expected > 0 ?
				cases[c].expected + (uint64_t) i * cases[c].step : 40;
			Image		next;
			BfStatus	status;

			image_build(&next, i % 2 ? cases[c].next_fpp : cases[c].fpp,
						cases[c].expected > 0 ? n : 0, 0, n, 50 + (uint64_t) i,
						cases[c].expected == 0);
			CHECK(next.view.nlayers == 1, "%s: not dense", cases[c].name);
			status = bf_builder_merge(&b, &next.view);
			CHECK(status == BF_OK, "%s: status %d", cases[c].name,
				  (int) status);
			image_free(&next);
			total += n;
		}
		if (image_write(&image, &b, false))
		{
			CHECK(image.view.nlayers == BF_MAX_LAYERS, "%s: %d layers",
				  cases[c].name, image.view.nlayers);
			for (i = 0; i < cases[c].nfilters; i++)
				image_has(&image, 0, cases[c].expected > 0 ?
						  cases[c].expected + (uint64_t) i * cases[c].step :
						  40, 50 + (uint64_t) i);
			told = bf_current_fpp(&image.view);
			measured = (double) count_hits(&image.view, ABSENT, 200000, 9) /
				200000;
			CHECK(is_near(told, measured, 0.05), "%s: rate told %g, "
				  "measured %g", cases[c].name, told, measured);
			CHECK(is_near(bf_cardinality(&image.view), (double) total, 0.05),
				  "%s: %g keys told, %llu added", cases[c].name,
				  bf_cardinality(&image.view), (unsigned long long) total);
			image_free(&image);
		}
		finish(&b, &env);
	}
}

/* A filter with as many layers as there can be takes further keys. */
static void
test_add_beyond(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		image;
	int			i;

	start(&b, &env, 0.01, 0);
	for (i = 0; i < BF_MAX_LAYERS; i++)
	{
		Image		next;

		image_build(&next, 0.01, 100 + 60 * (uint64_t) i, 0,
					100 + 60 * (uint64_t) i, (uint64_t) i, false);
		CHECK(bf_builder_merge(&b, &next.view) == BF_OK, "filter %d", i);
		image_free(&next);
	}
	CHECK(b.nlayers == BF_MAX_LAYERS, "%d layers", b.nlayers);
	add_keys(&b, 0, 100000, 99);
	if (image_write(&image, &b, false))
	{
		CHECK(image.view.nlayers == BF_MAX_LAYERS, "%d layers",
			  image.view.nlayers);
		for (i = 0; i < BF_MAX_LAYERS; i++)
			image_has(&image, 0, 100 + 60 * (uint64_t) i, (uint64_t) i);
		image_has(&image, 0, 100000, 99);
		image_free(&image);
	}
	finish(&b, &env);
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
	size_t		r,
				e,
				t;

	for (r = 0; r < LENGTH(rates); r++)
	{
		for (e = 0; e < LENGTH(expected); e++)
		{
			for (t = 0; t < LENGTH(times); t++)
			{
				/* One block holds hundreds of keys. */
				uint64_t	n = (expected[e] < 1000 ? 500 : expected[e]) *
					(uint64_t) times[t];
				int			nfilters = n > 100000 ? 2 : n > 20000 ? 10 :
					quick() ? 30 : 100;
				uint64_t	probes = n > 20000 ? 100000 : 20000;
				double		told = 0;
				double		keys = 0;
				uint64_t	hits = 0;
				int			i;

				if (quick() && n > 20000)
					continue;
				for (i = 0; i < nfilters; i++)
				{
					Image		image;

					image_build(&image, rates[r], expected[e], 0, n,
								(uint64_t) i + 1000 * r, false);
					CHECK(image.view.nlayers > 1, "%d layers",
						  image.view.nlayers);
					told += bf_current_fpp(&image.view);
					keys += bf_cardinality(&image.view);
					hits += count_hits(&image.view, ABSENT, probes,
									   (uint64_t) i);
					image_free(&image);
				}
				CHECK(is_near(told / nfilters, (double) hits /
							  (double) probes / nfilters, 0.05),
					  "fpp %g, %llu expected, %llu keys: told %g, "
					  "measured %g", rates[r],
					  (unsigned long long) expected[e],
					  (unsigned long long) n, told / nfilters,
					  (double) hits / (double) probes / nfilters);
				CHECK(is_near(keys / nfilters, (double) n, 0.05),
					  "fpp %g, %llu expected: %g keys told, %llu added",
					  rates[r], (unsigned long long) expected[e],
					  keys / nfilters, (unsigned long long) n);
			}
		}
	}
}

/*
 * Two filters with rates related by a power of two are no growth of one
 * another.
 */
static void
test_told_by_union(void)
{
	Image		x,
				y,
				both;
	TestEnv		env;
	BfBuilder	b;

	image_build(&x, 0.5, 10000, 0, 10000, 1, false);
	image_build(&y, 0.25, 10000, 0, 10000, 2, false);
	env_init(&env, SIZE_MAX);
	CHECK(bf_union(&b, &env.env, &x.view, &y.view) == BF_OK, "no union");
	if (image_write(&both, &b, false))
	{
		CHECK(is_near(bf_cardinality(&both.view), 20000, 0.03),
			  "%g keys told of 20000", bf_cardinality(&both.view));
		CHECK(is_near(bf_current_fpp(&both.view),
					  (double) count_hits(&both.view, ABSENT, 200000, 3) /
					  200000, 0.03),
			  "rate told %g", bf_current_fpp(&both.view));
		image_free(&both);
	}
	finish(&b, &env);
	image_free(&x);
	image_free(&y);
}

/*
 * The union with a filter of default parameters is the other filter,
 * whatever its parameters.
 */
static void
test_neutral(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n;
	}			others[] = {
		{0.5, 0, 0}, {1e-6, 1000, 0}, {0.1, 0, 50}, {0.001, 1000, 900},
		{0.3, 10, 5000}
	};
	size_t		i;

	for (i = 0; i < LENGTH(others); i++)
	{
		BfParams	params = params_of(BF_FPP_DEFAULT, 0);
		TestEnv		env;
		BfBuilder	b;
		Image		neutral,
					other,
					both;
		int			order;

		params.seed = 0;
		params.key_type.code = BF_KEY_NONE;
		env_init(&env, SIZE_MAX);
		bf_builder_init(&b, &env.env, &params);
		image_write(&neutral, &b, false);
		finish(&b, &env);
		CHECK(bf_is_neutral(&neutral.view), "is not neutral");

		image_build(&other, others[i].fpp, others[i].expected, 0, others[i].n,
					1, false);
		CHECK(!bf_is_neutral(&other.view), "filter %zu is neutral", i);
		for (order = 0; order < 2; order++)
		{
			BfStatus	status;

			env_init(&env, SIZE_MAX);
			status = bf_union(&b, &env.env,
							  order ? &other.view : &neutral.view,
							  order ? &neutral.view : &other.view);
			CHECK(status == BF_OK, "filter %zu: status %d", i, (int) status);
			if (image_write(&both, &b, false))
			{
				CHECK(image_equal(&both, &other),
					  "filter %zu changed in a union", i);
				image_free(&both);
			}
			finish(&b, &env);
		}
		image_free(&neutral);
		image_free(&other);
	}
}

/* Allocations that fail while layers are merged: an error, nothing leaks. */
static void
test_no_memory(void)
{
	Image		all,
				next;
	TestEnv		env;
	BfBuilder	b;
	long		fail_at;
	int			i;

	start(&b, &env, 0.01, 100);
	for (i = 0; i < BF_MAX_LAYERS; i++)
	{
		image_build(&next, 0.01, 100 + 60 * (uint64_t) i, 0,
					100 + 60 * (uint64_t) i, (uint64_t) i, false);
		CHECK(bf_builder_merge(&b, &next.view) == BF_OK, "filter %d", i);
		image_free(&next);
	}
	image_write(&all, &b, false);
	finish(&b, &env);

	image_build(&next, 0.001, 5000, 0, 5000, 40, false);
	for (fail_at = 1;; fail_at++)
	{
		BfStatus	status;

		env_init(&env, SIZE_MAX);
		env.fail_at = fail_at;
		status = bf_union(&b, &env.env, &all.view, &next.view);
		finish(&b, &env);
		if (status == BF_OK)
			break;
		if (!CHECK(status == BF_NO_MEMORY, "status %d", (int) status))
			break;
	}
	CHECK(fail_at > BF_MAX_LAYERS, "only %ld allocations", fail_at);
	image_free(&all);
	image_free(&next);
}

int
main(void)
{
	tap_run("any two layers can be merged", test_any_two);
	tap_run("layers of equal geometry are ORed", test_equal_geometries);
	tap_run("unions of more than 32 filters", test_many);
	tap_run("a filter of 32 layers takes further keys", test_add_beyond);
	tap_run("grown filters tell rate and keys", test_told_by_growth);
	tap_run("unions of related rates tell their keys", test_told_by_union);
	tap_run("a filter of default parameters is neutral", test_neutral);
	tap_run("merging layers: no memory", test_no_memory);
	return tap_done();
}
