/*-------------------------------------------------------------------------
 *
 * test_builder.c
 *	  Filters under construction: canonical content, growth, limits.
 *
 * test_set.c has what concerns several filters.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "internal.h"

static const double rates[] = {0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-7};

#define NRATES	LENGTH(rates)

static bool
image_from(Image *image, double fpp, uint64_t expected,
		   const uint64_t *hashes, size_t n, bool compact)
{
	TestEnv		env;
	BfBuilder	b;
	bool		written;

	start(&b, &env, fpp, expected);
	add_list(&b, hashes, n);
	written = image_write(image, &b, compact);
	finish(&b, &env);
	return written;
}

/*
 * Adding hashes in batches of any length, through the change to the dense form
 * and through growth, is adding them one by one.
 */
static void
test_add_all(void)
{
	enum
	{
		N = 30000
	};
	static const uint64_t expected[] = {0, 1, 3000, 29000, 1000000};
	uint64_t   *hashes = malloc(N * sizeof(uint64_t));
	uint64_t	random = 5;

	for (size_t i = 0; i < N; i++)
		hashes[i] = key(i, 3);
	for (size_t i = 0; i < LENGTH(expected); i++)
	{
		TestEnv		env;
		BfBuilder	b;
		Image		one_by_one,
					batches;
		uint32_t	at = 0;

		if (!image_from(&one_by_one, 0.01, expected[i], hashes, N, false))
			break;
		start(&b, &env, 0.01, expected[i]);
		while (at < N)
		{
			uint32_t	n = (uint32_t) (random64(&random) % 300);

			if (n > N - at)
				n = N - at;
			if (!EQUAL(bf_builder_add_all(&b, hashes + at, n), BF_OK))
				break;
			at += n;
		}
		image_write(&batches, &b, false);
		HOLDS(image_equal(&batches, &one_by_one));
		finish(&b, &env);
	}
	free(hashes);
}

/* The image around the bits of a builder is the one that is written. */
static void
check_in_place(BfBuilder *b)
{
	size_t		size;
	uint8_t    *in_place,
			   *written;

	EQUAL(bf_builder_plan(b, &size), BF_OK);
	written = malloc(size);
	bf_builder_write(b, written);
	in_place = bf_builder_write_in_place(b, 32);
	HOLDS(in_place != NULL);
	HOLDS(in_place >= (uint8_t *) b->layers[0].memory + 32);
	HOLDS(in_place == NULL || memcmp(in_place, written, size) == 0);
	free(written);
}

static void
test_write_in_place(void)
{
	TestEnv		env;
	BfBuilder	b;
	BfParams	params = params_of(0.01, 1000000);
	size_t		size;

	/* With the longest name of a key type, and again after more keys. */
	params.key_type.code = BF_KEY_OPCLASS;
	params.key_type.byte_order = BF_LITTLE_ENDIAN;
	params.key_type.namelen = BF_MAX_KEY_TYPE_NAME;
	memset(params.key_type.name, 'x', BF_MAX_KEY_TYPE_NAME);
	start_with(&b, &env, &params);
	add_keys(&b, 0, 100000, 1);
	HOLDS(bf_builder_plan(&b, &size) == BF_OK && b.nlayers == 0);
	HOLDS(bf_builder_write_in_place(&b, 32) == NULL);
	add_keys(&b, 100000, 500000, 1);
	check_in_place(&b);
	add_keys(&b, 600000, 300000, 1);
	check_in_place(&b);

	/* A second layer would not be part of it. */
	add_keys(&b, 900000, 300000, 1);
	HOLDS(b.nlayers == 2 && bf_builder_plan(&b, &size) == BF_OK);
	HOLDS(bf_builder_write_in_place(&b, 32) == NULL);
	finish(&b, &env);

	/* A small filter has no room for it. */
	start(&b, &env, 0.01, 1000);
	add_keys(&b, 0, 900, 1);
	HOLDS(b.nlayers == 1 && bf_builder_write_in_place(&b, 4) == NULL);
	finish(&b, &env);
}

/* Three parts, between bounds, merged in a certain order. */
static void
image_of_parts(Image *image, double fpp, uint64_t expected,
			   const uint64_t *hashes, const size_t *bounds,
			   const int *order, bool compact)
{
	TestEnv		env;
	BfBuilder	b;

	start(&b, &env, fpp, expected);
	for (int i = 0; i < 3; i++)
	{
		Image		part;

		image_from(&part, fpp, expected, hashes + bounds[order[i]],
				   bounds[order[i] + 1] - bounds[order[i]], false);
		merge(&b, &part);
	}
	image_write(image, &b, compact);
	finish(&b, &env);
}

static uint64_t *
hash_list(size_t n, uint64_t set)
{
	uint64_t   *hashes = exactly(n * sizeof(uint64_t));

	for (size_t i = 0; i < n; i++)
		hashes[i] = key(i, set);
	return hashes;
}

/* All ways to the same content give the same bytes. */
static void
same_bytes(double fpp, uint64_t expected, size_t n, bool compact)
{
	static const int orders[][3] = {
		{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}
	};
	uint64_t	state = n;
	uint64_t   *hashes = hash_list(n, 7);
	uint64_t   *many = exactly(3 * n * sizeof(uint64_t));
	const size_t bounds[][4] = {
		{0, n / 3, 2 * n / 3, n}, {0, n - n / 10, n - n / 20, n},
		{0, 0, n, n}, {0, n, 2 * n, 3 * n}
	};
	Image		image,
				other;

	forget_images(nkept);
	tap_case("%g, expected %llu, %zu keys, compact: %d", fpp,
			 (unsigned long long) expected, n, compact);
	image_from(&image, fpp, expected, hashes, n, compact);
	for (size_t i = 0; i < n; i++)
		HOLDS(bf_contains(&image.view, hashes[i]));

	/* Each three times, in order, and not */
	for (size_t i = 0; i < 3; i++)
		memcpy(many + i * n, hashes, n * sizeof(uint64_t));
	for (int shuffled = 0; shuffled < 2; shuffled++)
	{
		image_from(&other, fpp, expected, many, 3 * n, compact);
		HOLDS(image_equal(&image, &other));
		shuffle(many, 3 * n, &state);
	}

	/* Ascending, and descending */
	bf_list_sort(&no_interrupts, hashes, n);
	for (int reversed = 0; reversed < 2; reversed++)
	{
		image_from(&other, fpp, expected, hashes, n, compact);
		HOLDS(image_equal(&image, &other));
		for (size_t i = 0; i < n / 2; i++)
		{
			uint64_t	last = hashes[n - 1 - i];

			hashes[n - 1 - i] = hashes[i];
			hashes[i] = last;
		}
	}

	/* By parts, of which the last ones have keys in common */
	shuffle(hashes, n, &state);
	for (size_t j = 0; j < LENGTH(bounds); j++)
		for (size_t i = 0; i < LENGTH(orders); i++)
		{
			image_of_parts(&other, fpp, expected, j < 3 ? hashes : many,
						   bounds[j], orders[i], compact);
			CHECK(image_equal(&image, &other), "parts %zu, order %zu", j, i);
		}
	free(hashes);
	free(many);
}

static void
test_canonical(void)
{
	static const uint64_t expected[] = {1, 10, 100, 1000, 20000};
	static const size_t unsized[] = {0, 1, 2, 9, 100, 1000, 30000};

	for (size_t p = 0; p < NRATES; p++)
		for (int compact = 0; compact < 2; compact++)
		{
			for (size_t i = 0; i < LENGTH(expected); i++)
			{
				same_bytes(rates[p], expected[i], 0, compact);
				same_bytes(rates[p], expected[i], expected[i] / 2, compact);
				same_bytes(rates[p], expected[i], expected[i], compact);
			}
			for (size_t i = 0; i < LENGTH(unsized); i++)
				same_bytes(rates[p], 0, unsized[i], compact);
		}
}

/* A sized filter is a list as long as that is not larger than its bits. */
static void
test_sized_limit(void)
{
	static const uint64_t expected[] = {1, 10, 100, 1000, 20000};

	for (size_t p = 0; p < NRATES; p++)
		for (size_t i = 0; i < LENGTH(expected); i++)
		{
			BfGeometry	geometry;
			size_t		dense;
			size_t		max;
			uint64_t   *hashes;
			Image		image;

			bf_geometry_for(rates[p], false, expected[i], &geometry);
			dense = HEADER + ENTRY + (size_t) bf_geometry_bits(&geometry) / 8;
			max = (dense - HEADER) / 8;
			hashes = hash_list(max + 1, 3);
			for (size_t n = max - 1; n <= max + 1; n++)
			{
				image_from(&image, rates[p], expected[i], hashes, n,
						   false);
				tap_case("%g, %zu hashes, at most %zu", rates[p], n, max);
				EQUAL((image.view.nlayers == 0), (n <= max));
				HOLDS(image.size <= dense);
				EQUAL(image.size, (n <= max ? HEADER + 8 * n : dense));
			}

			/* The number of distinct ones decides, and so does each way. */
			for (size_t n = max; n <= max + 1; n++)
				same_bytes(rates[p], expected[i], n, false);
			free(hashes);
		}
}

/* The same for a filter without a size, whose limit is a number. */
static void
test_unsized_limit(void)
{
	const size_t max = 1 << 22;
	uint64_t	state = 11;
	uint64_t   *hashes = hash_list(max + 1, 5);
	TestEnv		env;
	BfBuilder	b;
	Image		serial,
				more,
				shuffled,
				more_shuffled;
	BfGeometry	first;

	/* Full of duplicates, which are no keys, then one key more. */
	start(&b, &env, 0.01, 0);
	add_list(&b, hashes, max);
	add_list(&b, hashes, 1000);
	image_write(&serial, &b, false);
	add_list(&b, hashes, max / 4);
	add_list(&b, hashes + max, 1);
	image_write(&more, &b, false);
	finish(&b, &env);

	HOLDS(serial.view.nlayers == 0 && serial.view.nhashes == max);
	bf_geometry_for(0.01, false, 1 << 24, &first);
	EQUAL(more.view.nlayers, 1);
	EQUAL(more.view.layers[0].geometry.nblocks, first.nblocks);
	EQUAL(more.view.layers[0].geometry.capacity, first.capacity);

	shuffle(hashes, max, &state);
	start(&b, &env, 0.01, 0);
	add_list(&b, hashes, max);
	image_write(&shuffled, &b, false);
	finish(&b, &env);
	CHECK(image_equal(&serial, &shuffled), "2^22 keys, shuffled");

	shuffle(hashes, max + 1, &state);
	start(&b, &env, 0.01, 0);
	add_list(&b, hashes, max + 1);
	image_write(&more_shuffled, &b, false);
	finish(&b, &env);
	CHECK(image_equal(&more, &more_shuffled), "one key more, shuffled");

	free(hashes);
}

/*
 * Beyond 2^22 keys, parts give the same bytes as all keys, plain and compact.
 * A filter that is going to be made compact comes nearer to the size of its
 * keys.
 */
static void
test_unsized_beyond(void)
{
	const size_t n = 4600000;
	static const size_t bounds[] = {
		0,						/* one filter for all */
		4300000,				/* the first part is dense already */
		2300000					/* they are dense only together */
	};
	uint64_t   *hashes = hash_list(n, 6);
	size_t		nparts = is_long() ? LENGTH(bounds) * 2 - 1 : 2;
	BfGeometry	whole;
	Image		first[2];

	bf_geometry_to_fold(0.01, &whole);
	for (size_t i = 0; i < 2 * nparts; i++)
	{
		bool		at_end = i >= nparts;
		size_t		bound = bounds[(i % nparts + 1) / 2];
		TestEnv		env[3];
		BfBuilder	b[3];

		tap_case("compact at the end: %d, a part of %zu", at_end, bound);
		for (int p = 0; p < 3; p++)
		{
			start(&b[p], &env[p], 0.01, 0);
			b[p].compact_at_end = at_end;
		}
		add_list(&b[1], hashes, bound);
		add_list(&b[2], hashes + bound, n - bound);
		for (int p = 0; p < 2; p++)
		{
			Image		part;

			image_write(&part, &b[(int) (i % 2) == p ? 1 : 2], false);
			HOLDS(!at_end || part.view.nlayers == 0 ||
				  part.view.layers[0].geometry.nblocks == whole.nblocks);
			merge(&b[0], &part);
		}
		for (int compact = 0; compact < 2; compact++)
		{
			Image		image;

			image_write(&image, &b[0], compact);
			if (i % nparts == 0)
				first[compact] = image;
			HOLDS(image_equal(&image, &first[compact]));
			EQUAL(image.view.nlayers, 1);
		}
		for (int p = 0; p < 3; p++)
			finish(&b[p], &env[p]);
		for (size_t j = 0; j < n && i % nparts == 0; j++)
			if (!HOLDS(bf_contains(&first[0].view, hashes[j]) &&
					   bf_contains(&first[1].view, hashes[j])))
				break;
	}
	HOLDS((double) bf_geometry_bits(&first[1].view.layers[0].geometry) <
		  1.34 * bf_needed_bits(0.01, false, n));
	HOLDS(bf_current_fpp(&first[1].view) <= 0.01);
	free(hashes);
}

/* The layer that n hashes make if they go there directly. */
static bool
layer_equal(const BfLayer *layer, const BfGeometry *geometry,
			const uint64_t *hashes, size_t n)
{
	size_t		size = bf_geometry_size(geometry);
	uint8_t    *bits = memset(exactly(size), 0, size);
	bool		equal;

	for (size_t i = 0; i < n; i++)
		bf_bits_add(geometry, bits, hashes[i]);
	equal = layer->geometry.nblocks == geometry->nblocks &&
		layer->geometry.block_log2 == geometry->block_log2 &&
		layer->geometry.k == geometry->k && layer->geometry.fpp == geometry->fpp &&
		layer->geometry.capacity == geometry->capacity &&
		memcmp(layer->bits, bits, size) == 0;
	free(bits);
	return equal;
}

/* Compact, the hashes of an unsized filter go into a layer of their size. */
static void
test_compact_list(void)
{
	static const size_t numbers[] = {
		0, 1, 5, 9, 10, 11, 20, 40, 41, 50, 51, 52, 100, 127, 128, 500, 1000,
		2741, 10000, 100000
	};

	for (size_t p = 0; p < NRATES; p++)
		for (size_t i = 0; i < LENGTH(numbers); i++)
		{
			size_t		n = numbers[i];
			uint64_t   *hashes = hash_list(n, 8);
			Image		image,
						sized;
			BfGeometry	geometry;
			bool		smaller;

			forget_images(nkept);
			tap_case("%g, %zu keys", rates[p], n);
			bf_geometry_for(rates[p], false, n > 0 ? n : 1, &geometry);
			smaller = n > 0 && ENTRY + bf_geometry_size(&geometry) < 8 * n;
			image_from(&image, rates[p], 0, hashes, n, true);
			EQUAL(image.view.nlayers, (smaller ? 1 : 0));
			EQUAL(image.size, (smaller ?
							   HEADER + ENTRY + bf_geometry_size(&geometry) :
							   HEADER + 8 * n));
			if (image.view.nlayers == 1)
				HOLDS(layer_equal(&image.view.layers[0], &geometry, hashes,
								  n));
			EQUAL(image.view.params.expected, 0);
			EQUAL(image.view.params.fpp, rates[p]);

			/* As if the number had been known, but for that record. */
			if (smaller && image_from(&sized, rates[p], n, hashes, n, false))
			{
				EQUAL(sized.size, image.size);
				EQUAL(memcmp(sized.bytes + HEADER, image.bytes + HEADER,
							 image.size - HEADER), 0);
			}
			free(hashes);
		}
}

/*
 * What a layer is to be folded to: again and again, as long as its keys, by
 * the bits that are left, need less.  Returns whether it is at all.
 */
static bool
fold_of(const BfLayer *layer, BfGeometry *folded)
{
	size_t		size = bf_geometry_size(&layer->geometry);
	uint8_t    *bits = memcpy(exactly(size), layer->bits, size);
	BfGeometry	geometry = layer->geometry;
	TestEnv		env;

	env_init(&env, SIZE_MAX);
	while (bf_geometry_fold(&geometry, bf_blocks_bits_set(bits,
														  bf_geometry_size(&geometry)),
							folded))
	{
		uint8_t    *smaller = exactly(bf_geometry_size(folded));

		bf_bitmap_fold(&env.env.interrupts, smaller, bits, geometry.nblocks,
					   geometry.nblocks / folded->nblocks,
					   (size_t) 1 << (geometry.block_log2 - 3));
		free(bits);
		bits = smaller;
		geometry = *folded;
	}
	free(bits);
	return geometry.nblocks < layer->geometry.nblocks;
}

/* A sized filter that got fewer keys folds to what they need. */
static void
test_compact_fold(void)
{
	static const size_t parts[] = {1, 2, 3, 4, 5, 8, 16, 60, 100};

	for (size_t p = 0; p < NRATES; p++)
		for (size_t i = 0; i < LENGTH(parts); i++)
		{
			const uint64_t expected = 20000;
			size_t		n = (size_t) expected / parts[i];
			uint64_t   *hashes = hash_list(n, 9);
			uint64_t	smaller;
			Image		plain,
						image,
						sized;
			BfGeometry	folded;

			forget_images(nkept);
			tap_case("%g, %zu keys", rates[p], n);
			image_from(&plain, rates[p], expected, hashes, n, false);
			image_from(&image, rates[p], expected, hashes, n, true);
			if (plain.view.nlayers == 1)
			{
				bool		fits = fold_of(&plain.view.layers[0], &folded);

				HOLDS(layer_equal(&image.view.layers[0], &folded, hashes, n));
				EQUAL(fits, (image.size < plain.size));
				HOLDS(parts[i] < 10 || fits);
				smaller = fits ? folded.capacity : expected;
			}
			else
			{
				BfGeometry	geometry;

				bf_geometry_for(rates[p], false, n, &geometry);
				EQUAL(image.view.nlayers,
					  (ENTRY + bf_geometry_size(&geometry) < 8 * n ? 1 : 0));
				smaller = image.view.nlayers > 0 ? n : expected;
			}

			/* It is what asking for the smaller size gives, to the byte. */
			image_from(&sized, rates[p], smaller, hashes, n, false);
			HOLDS(image_equal(&image, &sized));
			free(hashes);
		}
}

/*
 * What is compact cannot be made smaller again, and merging it with nothing
 * leaves it as it is.
 */
static void
test_compact_stable(void)
{
	static const double few[] = {0.1, 0.01, 0.005};
	const unsigned rounds = (unsigned) scaled(4000, 1500);
	unsigned	folded = 0,
				united = 0,
				sorted = 0;
	uint64_t	state = 21;
	Image		twice;

	/* From 8 blocks to 4, and by what is counted there, on to 2. */
	image_build(&twice, 0.5, 2400, 1, 646, 0, true);
	HOLDS(twice.view.nlayers == 1 &&
		  twice.view.layers[0].geometry.nblocks == 2);

	for (unsigned r = 0; r < rounds; r++)
	{
		int			nparts = 1 + (int) (random64(&state) % 4);
		uint64_t	first = 0;
		BfBuilder	b,
					again;
		TestEnv		env;
		Image		image,
					same;
		bool		found;
		int			nlayers;
		uint64_t	last = 0;
		bool		ascending = true;

		for (int i = 0; i < nparts; i++)
		{
			double		fpp = few[random64(&state) % LENGTH(few)];
			uint64_t	expected = 20 + random64(&state) % 3000;
			uint64_t	n = expected / 5 + random64(&state) % expected;
			Image		part;

			if (i == 0)
				start(&b, &env, fpp, expected);
			image_build(&part, fpp, expected, first, n, 13, false);
			merge(&b, &part);
			first += n;
		}

		nlayers = b.nlayers;
		for (int i = 0; i < nlayers; i++)
		{
			BfGeometry	geometry;

			(void) bf_geometry_fold(&b.layers[i].geometry, b.layers[i].bits_set,
									&geometry);
			ascending = ascending && geometry.capacity >= last;
			last = geometry.capacity;
		}
		EQUAL(bf_builder_compact(&b, &again, &found), BF_OK);
		if (!found)
		{
			finish(&b, &env);
			continue;
		}
		folded += nlayers > 0;
		united += again.nlayers < nlayers;
		sorted += !ascending;
		for (int i = 1; i < again.nlayers; i++)
			HOLDS(again.layers[i - 1].geometry.capacity <=
				  again.layers[i].geometry.capacity);
		image_write(&image, &again, false);
		image_has(&image, 0, first, 13);
		bf_builder_free(&again);
		finish(&b, &env);

		start(&b, &env, 0.5, 0);
		b.params = image.view.params;
		merge(&b, &image);
		image_write(&same, &b, false);
		CHECK(image_equal(&image, &same), "round %u: merged, it differs", r);
		image_write(&same, &b, true);
		HOLDS(image_equal(&image, &same));
		finish(&b, &env);
	}
	HOLDS(folded > rounds / 20 && united > 0 && sorted > 0);
}

/* The fold of what has outgrown the list, and the second layer. */
static void
test_compact_millions(void)
{
	static const uint64_t stops[] = {5000000, 9000000, 17000000};
	TestEnv		env;
	BfBuilder	b;
	uint64_t	done = 0;

	start(&b, &env, 0.01, 0);
	for (size_t s = 0; s < (is_long() ? LENGTH(stops) : 1); s++)
	{
		Image		plain,
					image;
		double		rate;

		add_keys(&b, done, stops[s] - done, 10);
		done = stops[s];
		if (!image_write(&plain, &b, false) || !image_write(&image, &b, true))
			break;
		/* Little of the second layer is left, which makes it the first. */
		EQUAL(plain.view.nlayers, (done > 16900000 ? 2 : 1));
		EQUAL(image.view.nlayers, plain.view.nlayers);
		for (int i = 0; i < image.view.nlayers; i++)
		{
			const BfLayer *before = &plain.view.layers[i];
			const BfLayer *after =
				&image.view.layers[image.view.nlayers - 1 - i];
			BfGeometry	folded;

			fold_of(before, &folded);
			EQUAL(after->geometry.nblocks, folded.nblocks);
			EQUAL(after->geometry.capacity, folded.capacity);
		}
		image_has(&image, 0, done, 10);
		HOLDS(fabs(bf_cardinality(&image.view) / (double) done - 1) < 0.002);
		rate = bf_current_fpp(&image.view);
		HOLDS(rate < (image.view.nlayers == 1 ? 0.01 : 0.0155));

		/* 5 of 16.8 million fold by 3, 9 million not at all. */
		HOLDS(s != 0 || image.size * 3 <= plain.size + 1024);
	}
	finish(&b, &env);
}

/* Planning and writing in between leave no trace. */
static void
test_plan_leaves_no_trace(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n;
	}			cases[] = {
		{0.01, 0, 3000}, {0.01, 1000, 1000}, {0.1, 100, 95}, {1e-5, 50, 50},
		{0.01, 100, 5000}, {1e-3, 1, 2000}
	};

	for (size_t i = 0; i < LENGTH(cases); i++)
	{
		size_t		mark;
		Image		image = built(cases[i].fpp, cases[i].expected, 0, cases[i].n, 4,
								  false);

		mark = nimages;
		for (int step = 1; step <= 400; step *= 7)
			for (int mode = 0; mode < 3; mode++)
			{
				TestEnv		env;
				BfBuilder	b;
				Image		other;

				forget_images(mark);
				tap_case("case %zu, each %d keys, mode %d", i, step, mode);
				start(&b, &env, cases[i].fpp, cases[i].expected);
				for (uint64_t done = 0; done < cases[i].n; done++)
				{
					add_keys(&b, done, 1, 4);
					if (done % (uint64_t) step == 0)
					{
						image_write(&other, &b, mode == 2 ? done % 2 == 0
									: mode == 1);
						HOLDS(other.view.nlayers > 0 ||
							  other.view.nhashes == done + 1);
					}
				}
				image_write(&other, &b, false);
				HOLDS(image_equal(&image, &other));
				finish(&b, &env);
			}
	}
}

typedef struct Part
{
	double		fpp;
	uint64_t	expected;
	uint64_t	first;
	uint64_t	n;
} Part;

/*
 * Whether the list of a builder that merges these filters is ever longer than
 * the sparse form may be.  Settling it after each filter makes no difference.
 */
static bool
merge_parts(const Part *parts, int nparts)
{
	TestEnv		env,
				other;
	BfBuilder	b,
				converted;
	Image		x,
				y;
	bool		late = false;

	start(&b, &env, parts[0].fpp, parts[0].expected);
	start(&converted, &other, parts[0].fpp, parts[0].expected);
	for (int i = 0; i < nparts; i++)
	{
		size_t		size;
		Image		part = built(parts[i].fpp, parts[i].expected,
								 parts[i].first, parts[i].n, 17, false);

		merge(&b, &part);
		EQUAL(bf_builder_merge(&converted, &part.view), BF_OK);
		EQUAL(bf_builder_plan(&converted, &size), BF_OK);
		late = late || (converted.nlayers > 0 && b.nlayers == 0);
	}
	image_write(&x, &b, false);
	image_write(&y, &converted, false);
	HOLDS(image_equal(&x, &y));
	finish(&b, &env);
	finish(&converted, &other);
	return late;
}

/* Whatever the forms and parameters of filters are, and the room they get. */
static void
test_merge_converts(void)
{
	/* The room of a long list, of which other parameters leave little. */
	static const Part cut[] = {
		{0.01, 0, 0, 1000}, {0.01, 0, 1000, 600}, {0.01, 0, 1600, 10},
		{0.01, 1, 2000, 5}, {0.01, 1, 3000, 12}
	};

	/* The same, and more hashes than the first layer takes. */
	static const Part full[] = {
		{1e-9, 0, 0, 170}, {1e-9, 0, 170, 80}, {1e-9, 0, 250, 8},
		{1e-9, 1, 258, 10}, {1e-9, 1, 268, 105}
	};
	static const double few[] = {0.1, 0.01, 1e-4, 1e-9};
	static const uint64_t sizes[] = {0, 0, 1, 12, 40, 40, 200, 1000};
	const unsigned rounds = (unsigned) scaled(10000, 1000);
	unsigned	late = 0;
	uint64_t	state = 22;

	merge_parts(cut, LENGTH(cut));
	merge_parts(full, LENGTH(full));
	for (unsigned r = 0; r < rounds; r++)
	{
		int			nparts = 2 + (int) (random64(&state) % 5);
		Part		parts[6];

		for (int i = 0; i < nparts; i++)
		{
			parts[i].fpp = few[random64(&state) % LENGTH(few)];
			parts[i].expected = sizes[random64(&state) % LENGTH(sizes)];
			parts[i].first = random64(&state) % 2000;
			parts[i].n = random64(&state) %
				(random64(&state) % 4 == 0 ? 2000 : 30);
		}
		late += merge_parts(parts, nparts);
	}
	CHECK(late > 0, "never put off");
}

/* Layers double and halve; nothing is lost; the rates stay below 2p. */
static void
test_growth(void)
{
	static const uint64_t expected[] = {10, 1000, 30000};

	for (size_t p = 0; p < NRATES; p++)
		for (size_t e = 0; e < LENGTH(expected); e++)
		{
			uint64_t	n = expected[e] * (expected[e] > 1000 ? 10 : 100);
			Image		image;

			forget_images(nkept);
			tap_case("%g, expected %llu", rates[p],
					 (unsigned long long) expected[e]);
			image_build(&image, rates[p], expected[e], 0, n, 1, false);
			image_has(&image, 0, n, 1);
			HOLDS(image.view.nlayers > 2 || expected[e] == 10);
			for (int i = 0; i < image.view.nlayers; i++)
			{
				const BfGeometry *geometry = &image.view.layers[i].geometry;
				uint64_t	full = bf_geometry_full(geometry);
				uint64_t	wanted = expected[e];
				BfGeometry	designed;

				if (i > 0)
					wanted = BF_GROWTH * image.view.layers[i - 1].geometry.capacity;
				bf_geometry_for(ldexp(rates[p], -i), false, wanted, &designed);
				EQUAL(geometry->fpp, ldexp(rates[p], -i));
				EQUAL(geometry->nblocks, designed.nblocks);
				EQUAL(geometry->k, designed.k);
				EQUAL(geometry->block_log2, designed.block_log2);
				EQUAL(geometry->capacity, designed.capacity);
				HOLDS(image.view.layers[i].bits_set < full + geometry->k);

				/* The next one is not begun before. */
				if (i + 1 < image.view.nlayers)
					HOLDS(image.view.layers[i].bits_set + geometry->k >= full);
			}
			HOLDS(bf_current_fpp(&image.view) < 2.2 * rates[p]);

			/* Keys that an earlier layer takes for its own leave no bits. */
			HOLDS(fabs(bf_cardinality(&image.view) / (double) n - 1) < 2 *
				  rates[p] + (n > 10000 ? 0.01 : 0.04));
			EQUAL(image.view.params.expected, expected[e]);
			EQUAL(image.view.params.fpp, rates[p]);
		}
}

/*
 * Keys that a filter has already do not make it grow, and neither do those
 * that some layer takes for its own.
 */
static void
test_growth_by_known_keys(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		before,
				after;

	start(&b, &env, 0.01, 100);
	add_keys(&b, 0, 3000, 1);
	image_write(&before, &b, false);
	add_keys(&b, 0, 3000, 1);
	add_keys(&b, 1000, 1000, 1);
	image_write(&after, &b, false);
	finish(&b, &env);
	CHECK(before.view.nlayers > 1, "%d layers", before.view.nlayers);
	CHECK(image_equal(&before, &after), "adding keys again changes bytes");
}

/*
 * A filter never grows a second layer with just the keys it was made for,
 * not even if its blocks hold those and no key more.
 */
static void
test_exactly_expected(void)
{
	static const double nblocks[] = {1, 2, 3, 4, 7, 10, 20, 50, 200, 1000};
	static const uint64_t numbers[] = {
		1, 10, 50, 100, 500, 1000, 5000, 10000, 100000, 1000000
	};
	long		filters = 0;
	long		grown = 0;

	for (size_t p = 0; p < NRATES; p++)
		for (size_t i = 0; i < LENGTH(nblocks) + LENGTH(numbers); i++)
		{
			BfGeometry	one;
			uint64_t	n;
			uint64_t	sets;

			bf_geometry_for(rates[p], false, 1, &one);
			n = i < LENGTH(nblocks)
				? (uint64_t) (ldexp(nblocks[i], one.block_log2) /
							  bf_bits_per_key(rates[p]))
				: numbers[i - LENGTH(nblocks)];
			sets = scaled(1000000, 100000) / n + 1;
			if (sets > scaled(500, 50))
				sets = scaled(500, 50);
			for (uint64_t set = 0; set < sets; set++)
			{
				TestEnv		env;
				BfBuilder	b;
				size_t		size;

				start(&b, &env, rates[p], n);
				add_keys(&b, 0, n, 100 + set);
				bf_builder_plan(&b, &size);
				filters++;
				if (!HOLDS(b.nlayers < 2))
					grown++;
				finish(&b, &env);
			}
		}
	printf("# %ld of %ld filters have grown\n", grown, filters);
}

static void
test_mismatch(void)
{
	BfParams	params = params_of(0.01, 0);
	TestEnv		env;
	BfBuilder	b;
	BfKeyType	key_type;
	Image		other,
				before,
				after;

	env_init(&env, SIZE_MAX);
	params.seed = 43;
	bf_builder_init(&b, &env.env, &params);
	add_keys(&b, 0, 10, 1);
	image_write(&other, &b, false);
	finish(&b, &env);

	start(&b, &env, 0.01, 0);
	add_keys(&b, 0, 20, 1);
	image_write(&before, &b, false);
	EQUAL(bf_builder_merge(&b, &other.view), BF_SEED_MISMATCH);
	other.view.params.seed = 42;
	other.view.params.key_type.code = BF_KEY_TEXT;
	EQUAL(bf_builder_merge(&b, &other.view), BF_KEY_TYPE_MISMATCH);

	memset(&key_type, 0, sizeof(key_type));
	EQUAL(bf_builder_set_key_type(&b, &key_type), BF_OK);
	CHECK(b.params.key_type.code == BF_KEY_INTEGER,
		  "the key type is forgotten");
	key_type.code = BF_KEY_INTEGER;
	EQUAL(bf_builder_set_key_type(&b, &key_type), BF_OK);
	key_type.code = BF_KEY_UUID;
	EQUAL(bf_builder_set_key_type(&b, &key_type), BF_KEY_TYPE_MISMATCH);
	image_write(&after, &b, false);
	CHECK(image_equal(&before, &after), "a rejected merge leaves a trace");
	finish(&b, &env);

	/* An open key type takes the first one it meets, with its name. */
	env_init(&env, SIZE_MAX);
	memset(&params.key_type, 0, sizeof(params.key_type));
	bf_builder_init(&b, &env.env, &params);
	memset(&key_type, 0, sizeof(key_type));
	key_type.code = BF_KEY_ENUM;
	key_type.namelen = 4;
	strcpy(key_type.name, "mood");
	EQUAL(bf_builder_set_key_type(&b, &key_type), BF_OK);
	CHECK(bf_key_type_equal(&b.params.key_type, &key_type),
		  "it is not taken over");
	key_type.name[0] = 'f';
	EQUAL(bf_builder_set_key_type(&b, &key_type), BF_KEY_TYPE_MISMATCH);
	finish(&b, &env);
}

static void
test_too_large(void)
{
	BfParams	params = params_of(0.01, 430000000);
	TestEnv		env;
	BfBuilder	b;
	BfGeometry	geometry;
	BfStatus	status = BF_OK;
	uint64_t	left;

	env_init(&env, SIZE_MAX);

	/* As long as it is empty, the largest filter takes no memory. */
	bf_builder_init(&b, &env.env, &params);
	env.limit = 4096;
	add_keys(&b, 0, 100, 1);
	CHECK(env.outstanding == 1, "%ld allocations", env.outstanding);
	finish(&b, &env);

	/*
	 * A full layer of 3.6 of the 4.3 billion bits.  It is never allocated:
	 * small hashes fall in its first block, which is, with all bits set but
	 * some.
	 */
	start(&b, &env, 0.01, 1);
	add_keys(&b, 0, 40, 1);
	HOLDS(b.nlayers == 1 && b.layers[0].geometry.block_log2 == 9);
	bf_geometry_for(0.01, false, 360000000, &geometry);
	b.layers[0].geometry = geometry;
	b.layers[0].bits_set = b.layers[0].bits_full = bf_geometry_full(&geometry);
	left = BF_MAX_BITS - bf_geometry_bits(&geometry);
	env.limit = 4096;
	env.largest_requested = 0;
	for (uint64_t i = 1; i < 1000 && status == BF_OK; i++)
		status = bf_builder_add(&b, i);
	CHECK(status == BF_NO_MEMORY, "status %d", (int) status);
	HOLDS(env.largest_requested <= left / 8);
	HOLDS(env.largest_requested > left / 8 * 9 / 10);

	/* So little is left that another layer would hardly be worth it. */
	bf_geometry_for(0.01, false, 425000000, &geometry);
	b.layers[0].geometry = geometry;
	env.largest_requested = 0;
	status = BF_OK;
	for (uint64_t i = 1; i < 1000 && status == BF_OK; i++)
		status = bf_builder_add(&b, i);
	HOLDS(status == BF_TOO_LARGE && env.largest_requested == 0);

	/* Nor is there room for a layer that comes from another filter. */
	{
		Image		other = built(0.01, 1000, 0, 1000, 1, false);
		uint64_t	beyond = (uint64_t) 1 << 23;

		EQUAL(other.view.nlayers, 1);
		b.layers[0].geometry.nblocks = (uint32_t)
			(beyond - other.view.layers[0].geometry.nblocks + 1);
		EQUAL(bf_builder_merge(&b, &other.view), BF_TOO_LARGE);
		b.layers[0].geometry.nblocks--;
		b.incomplete = false;
		env.limit = SIZE_MAX;
		HOLDS(b.nlayers == 1 && bf_builder_merge(&b, &other.view) == BF_OK);
		EQUAL(b.nlayers, 2);
	}
	finish(&b, &env);
}

/*
 * Probes between adds: few hashes are pending at any time, and the image is
 * the one without them.
 */
static void
test_expect_probes(void)
{
	static const size_t n = 30000;
	TestEnv		env;
	BfBuilder	b;
	Image		other;
	uint64_t	pending = 0;
	uint64_t	worst = 0;
	uint64_t	wrong = 0;
	Image		image = built(0.01, 0, 0, n, 1, false);

	start(&b, &env, 0.01, 0);
	add_keys(&b, 0, n / 2, 1);
	CHECK(b.nsorted < n / 2, "sorted before it is needed");
	bf_builder_expect_probes(&b);
	CHECK(b.nsorted == n / 2, "%u of %zu are sorted", b.nsorted, n / 2);
	for (size_t i = n / 2; i < n; i++)
	{
		wrong += bf_builder_contains(&b, key(i, 1));
		add_keys(&b, i, 1, 1);
		wrong += !bf_builder_contains(&b, key(i, 1));
		wrong += !bf_builder_contains(&b, key(i / 2, 1));
		pending = b.nhashes - b.nsorted;
		if (pending > worst)
			worst = pending;
	}
	CHECK(wrong == 0, "%llu wrong answers", (unsigned long long) wrong);
	HOLDS(worst * worst < 9 * (n + 64));
	image_write(&other, &b, false);
	CHECK(image_equal(&image, &other), "other bytes");
	finish(&b, &env);

	/* Sorted for a loop that probes and does not add. */
	start(&b, &env, 0.01, 0);
	add_keys(&b, 0, n, 1);
	bf_builder_sort_for_probes(&b);
	CHECK(b.nsorted == n, "%u of %zu are sorted", b.nsorted, n);
	add_keys(&b, n, 10, 1);
	bf_builder_sort_for_probes(&b);
	CHECK(b.nsorted == n, "sorted for ten hashes");
	finish(&b, &env);

	/* The same after a list was taken in. */
	start(&b, &env, 0.01, 0);
	bf_builder_expect_probes(&b);
	merge(&b, &image);
	CHECK(b.nsorted == n, "%u of %zu are sorted", b.nsorted, n);
	finish(&b, &env);
}

/*
 * One of several partial filters keeps hashes beyond what makes others dense,
 * unless so many keys are expected that they would outweigh the filter.  It
 * never keeps fewer than others do.
 */
static void
test_keep_hashes(void)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		bool		keeps;
	}			cases[] =
	{
		{0.01, 1, true},
		{0.01, 1000000, true},
		{0.01, BF_MAX_UNSIZED_HASHES, true},
		{0.01, BF_MAX_UNSIZED_HASHES + 1, false},
		{0.01, 10000000, false},
		{1e-15, BF_MAX_UNSIZED_HASHES, false},
	};

	for (size_t i = 0; i < LENGTH(cases); i++)
	{
		TestEnv		env;
		BfBuilder	b;
		uint32_t	otherwise;

		start(&b, &env, cases[i].fpp, cases[i].expected);
		otherwise = b.max_hashes;
		bf_builder_keep_hashes(&b, true);
		HOLDS(b.max_hashes == (cases[i].keeps ? BF_MAX_UNSIZED_HASHES :
							   otherwise));
		CHECK(b.max_hashes >= otherwise, "case %zu", i);
		bf_builder_keep_hashes(&b, false);
		EQUAL(b.max_hashes, otherwise);
		finish(&b, &env);
	}
}

/*
 * Hashes of which each sets k bits in a layer that none before it has set,
 * until a full layer has too few bits for the last 50 of them.
 */
static size_t
colliding_with_none(const BfGeometry *geometry, uint64_t *hashes)
{
	size_t		size = bf_geometry_size(geometry);
	uint8_t    *bits = calloc(2, size);
	uint64_t	set = 0;
	size_t		n = 0;

	for (uint64_t i = 0; set < bf_geometry_full(geometry) + 50 * geometry->k; i++)
	{
		uint64_t	hash = key(i, 8);

		memcpy(bits + size, bits, size);
		if (bf_bits_add(geometry, bits, hash) == geometry->k)
		{
			hashes[n++] = hash;
			set += geometry->k;
		}
		else
			memcpy(bits, bits + size, size);
	}
	free(bits);
	return n;
}

/*
 * A list with no more hashes than the capacity of a layer, whose bits it cannot
 * take.  They are tried in ascending order, and then added in another one.
 */
static void
test_over_full_list(void)
{
	uint64_t	hashes[1000];
	TestEnv		env;
	BfBuilder	b;
	BfGeometry	geometry;
	size_t		n;
	size_t		left = 0;
	size_t		left_low = 0;
	size_t		size;

	bf_geometry_for(0.01, false, LENGTH(hashes), &geometry);
	n = colliding_with_none(&geometry, hashes);
	CHECK(n <= geometry.capacity, "%zu hashes", n);

	start(&b, &env, 0.01, LENGTH(hashes));
	bf_builder_keep_hashes(&b, true);
	add_list(&b, hashes, n);
	CHECK(b.nlayers == 0 && b.nhashes == n, "%d layers", b.nlayers);
	bf_builder_keep_hashes(&b, false);
	EQUAL(bf_builder_plan(&b, &size), BF_OK);
	EQUAL(b.nlayers, 2);
	HOLDS(b.layers[0].bits_set <= b.layers[0].bits_full);
	EQUAL(b.layers[0].bits_set, bf_blocks_bits_set(b.layers[0].bits,
												   bf_geometry_size(&geometry)));
	for (size_t i = 0; i < n; i++)
	{
		CHECK(bf_builder_contains(&b, hashes[i]), "hash %zu is lost", i);
		if (!bf_bits_contain(&geometry, b.layers[0].bits, hashes[i]))
		{
			left++;
			left_low += hashes[i] >> 63 == 0;
		}
	}
	HOLDS(left_low > 10 && left - left_low > 10);
	finish(&b, &env);
}

int
main(void)
{
	tap_run("the same keys give the same bytes", test_canonical);
	tap_run("an image around the bits", test_write_in_place);
	tap_run("batches of hashes", test_add_all);
	tap_run("a sized filter turns dense when bits are smaller",
			test_sized_limit);
	tap_run("an unsized filter turns dense beyond 2^22 keys",
			test_unsized_limit);
	tap_run("a partial filter keeps hashes", test_keep_hashes);
	tap_run("a list whose bits a layer cannot take", test_over_full_list);
	tap_run("beyond 2^22 keys, in parts", test_unsized_beyond);
	tap_run("compact: a layer for just the keys", test_compact_list);
	tap_run("compact: an oversized layer folds", test_compact_fold);
	tap_run("compact: what is compact stays as it is", test_compact_stable);
	tap_run("compact: 5, 9 and 17 million keys", test_compact_millions);
	tap_run("merging filters one after the other", test_merge_converts);
	tap_run("probes between adds", test_expect_probes);
	tap_run("a plan in between leaves no trace", test_plan_leaves_no_trace);
	tap_run("layers double in capacity and halve in rate", test_growth);
	tap_run("known keys do not make a filter grow",
			test_growth_by_known_keys);
	tap_run("the expected keys never grow a second layer",
			test_exactly_expected);
	tap_run("other seeds and key types are rejected", test_mismatch);
	tap_run("the limit of 512 MiB", test_too_large);
	return tap_done();
}
