/*-------------------------------------------------------------------------
 *
 * test_exclude.c
 *	  Known false positives: kept apart as long as nobody can be wrong.
 *
 * The filter of most tests has 1,000 keys at a rate of 0.1, so that one key
 * in ten of those that were never added can be excluded.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

#define FPP			0.1
#define NKEYS		1000
#define SET			7
#define NEXCLUDED	300

/* False positives of the filter, in ascending order of their numbers. */
static uint64_t positives[8000];
static size_t npositives;

static void
load(BfBuilder *b, TestEnv *env, const Image *image)
{
	env_init(env, SIZE_MAX);
	bf_builder_init(b, &env->env, &image->view.params);
	CHECK(bf_builder_merge(b, &image->view) == BF_OK, "merge");
}

/* The filter without exclusions, or with n of them from the first one on. */
static bool
build(Image *image, size_t first, size_t n)
{
	TestEnv		env;
	BfBuilder	b;
	bool		written;
	size_t		i;

	start(&b, &env, FPP, NKEYS);
	add_keys(&b, 0, NKEYS, SET);
	for (i = first; i < first + n; i++)
		CHECK(bf_builder_exclude(&b, key(positives[i], SET)) == BF_OK,
			  "exclude");
	written = image_write(image, &b, false);
	finish(&b, &env);
	return written;
}

static void
find_positives(void)
{
	Image		image;
	uint64_t	i;

	if (!build(&image, 0, 0))
		return;
	for (i = NKEYS; npositives < sizeof(positives) / sizeof(positives[0]); i++)
	{
		if (bf_contains(&image.view, key(i, SET)))
			positives[npositives++] = i;
	}
	image_free(&image);
}

static void
test_contains(void)
{
	Image		plain,
				image;
	size_t		i;

	if (!build(&plain, 0, 0) || !build(&image, 0, NEXCLUDED))
		return;
	CHECK(image.view.nexclusions == NEXCLUDED, "%u",
		  image.view.nexclusions);
	CHECK(image.size == plain.size + 8 * NEXCLUDED, "%zu bytes", image.size);
	image_has(&image, 0, NKEYS, SET);
	for (i = 0; i < npositives; i++)
		CHECK(bf_contains(&image.view, key(positives[i], SET)) ==
			  (i >= NEXCLUDED), "positive %zu", i);
	image_free(&plain);
	image_free(&image);
}

/* Each exclusion goes when its key comes, in place or in a builder. */
static void
test_add(void)
{
	Image		image;
	size_t		i;

	if (!build(&image, 0, NEXCLUDED))
		return;
	for (i = 0; i < NEXCLUDED; i++)
	{
		uint64_t	hash = key(positives[i], SET);
		TestEnv		env;
		BfBuilder	b;
		Image		grown;

		CHECK(bf_add_in_place(image.bytes, &image.view, hash) == BF_NO_ROOM,
			  "an exclusion cannot go in place");
		load(&b, &env, &image);
		CHECK(bf_builder_add(&b, hash) == BF_OK, "add");
		if (image_write(&grown, &b, false))
		{
			CHECK(bf_contains(&grown.view, hash), "positive %zu is lost", i);
			CHECK(grown.view.nexclusions == NEXCLUDED - 1, "%u",
				  grown.view.nexclusions);
		}
		finish(&b, &env);
		image_free(&grown);
	}
	image_free(&image);
}

/*
 * Exclusions [0, 200) on one side and [100, 300) on the other, of which the
 * other one really has the keys of [0, 50).
 */
static void
test_union(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		left,
				right,
				both;
	size_t		i;
	int			order;

	start(&b, &env, FPP, NKEYS);
	add_keys(&b, 0, NKEYS - 100, SET);
	for (i = 0; i < 50; i++)
		CHECK(bf_builder_add(&b, key(positives[i], SET)) == BF_OK, "add");
	for (i = 100; i < 300; i++)
		CHECK(bf_builder_exclude(&b, key(positives[i], SET)) == BF_OK,
			  "exclude");
	if (!build(&left, 0, 200) || !image_write(&right, &b, false))
		return;
	finish(&b, &env);

	for (order = 0; order < 2; order++)
	{
		env_init(&env, SIZE_MAX);
		CHECK(bf_union(&b, &env.env,
					   order == 0 ? &left.view : &right.view,
					   order == 0 ? &right.view : &left.view) == BF_OK,
			  "union");
		if (image_write(&both, &b, false))
		{
			image_has(&both, 0, NKEYS, SET);
			for (i = 0; i < 50; i++)
				CHECK(bf_contains(&both.view, key(positives[i], SET)),
					  "member %zu is lost", i);
			for (i = 50; i < 300; i++)
			{
				uint64_t	hash = key(positives[i], SET);
				bool		either = bf_contains(&left.view, hash) ||
					bf_contains(&right.view, hash);

				CHECK(bf_contains(&both.view, hash) == either,
					  "positive %zu", i);
			}
		}
		finish(&b, &env);
		image_free(&both);
	}
	image_free(&left);
	image_free(&right);
}

/* A sparse filter is exact; a key that tests negative is no exclusion. */
static void
test_no_exclusion(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		plain,
				image;
	uint64_t	i;

	start(&b, &env, FPP, 0);
	add_keys(&b, 0, 10, SET);
	CHECK(bf_builder_exclude(&b, key(3, SET)) == BF_IS_MEMBER, "a member");
	CHECK(bf_builder_exclude(&b, key(33, SET)) == BF_OK, "no member");
	CHECK(b.nexclusions == 0, "%u exclusions", b.nexclusions);
	finish(&b, &env);

	if (!build(&plain, 0, 0))
		return;
	load(&b, &env, &plain);
	for (i = NKEYS; i < 2 * NKEYS; i++)
	{
		if (!bf_contains(&plain.view, key(i, SET)))
			CHECK(bf_builder_exclude(&b, key(i, SET)) == BF_OK, "exclude");
	}
	if (image_write(&image, &b, false))
		CHECK(image_equal(&plain, &image), "negatives became exclusions");
	finish(&b, &env);
	image_free(&plain);
	image_free(&image);
}

static void
test_limit(void)
{
	TestEnv		env;
	BfBuilder	b;
	Image		image;
	size_t		i;
	BfStatus	status = BF_OK;

	if (!build(&image, 0, 0))
		return;
	load(&b, &env, &image);
	for (i = 0; status == BF_OK && i < npositives; i++)
		status = bf_builder_exclude(&b, key(positives[i], SET));
	CHECK(status == BF_TOO_MANY_EXCLUSIONS && i == BF_MAX_EXCLUSIONS + 1,
		  "status %d at %zu", (int) status, i);
	image_free(&image);
	if (image_write(&image, &b, false))
		CHECK(image.view.nexclusions == BF_MAX_EXCLUSIONS, "%u",
			  image.view.nexclusions);
	finish(&b, &env);
	image_free(&image);
}

/* What the validator has to reject. */
static void
test_format(void)
{
	const size_t count_at = 16;
	Image		image;
	BfView		view;
	uint8_t    *list,
			   *copy;
	uint64_t	i;

	if (!build(&image, 0, 3))
		return;
	copy = exactly(image.size);
	list = copy + image.size - 3 * 8;

	memcpy(copy, image.bytes, image.size);
	memmove(list, list + 8, 8);
	CHECK(bf_validate(copy, image.size, &view) == BF_CORRUPT, "twice");
	memcpy(copy, image.bytes, image.size);
	memcpy(list, image.bytes + image.size - 16, 8);
	memcpy(list + 8, image.bytes + image.size - 24, 8);
	CHECK(bf_validate(copy, image.size, &view) == BF_CORRUPT, "descending");

	/* The last one becomes a key that tests negative. */
	memcpy(copy, image.bytes, image.size);
	memset(list + 16, 0xFF, 8);
	for (i = 0; bf_open(copy, image.size, &view) == BF_OK && i < 256; i++)
	{
		view.nexclusions = 0;
		if (!bf_contains(&view, UINT64_C(0xFFFFFFFFFFFFFF00) + i))
			break;
	}
	list[16] = (uint8_t) i;
	CHECK(bf_validate(copy, image.size, &view) == BF_CORRUPT, "negative");

	for (i = 0; i < 256; i++)
	{
		memcpy(copy, image.bytes, image.size);
		copy[count_at] = (uint8_t) i;
		CHECK((bf_open(copy, image.size, &view) == BF_OK) == (i == 3),
			  "%d exclusions", (int) i);
		memcpy(copy, image.bytes, image.size);
		copy[count_at + 3] = (uint8_t) i;
		CHECK((bf_open(copy, image.size, &view) == BF_OK) == (i == 0),
			  "%d * 2^24 + 3 exclusions", (int) i);
	}
	free(copy);
	image_free(&image);
}

static void
test_no_memory(void)
{
	Image		image;
	long		n;
	bool		failed = true;

	if (!build(&image, 0, 0))
		return;
	for (n = 1; failed; n++)
	{
		TestEnv		env;
		BfBuilder	b;
		BfStatus	status;

		env_init(&env, SIZE_MAX);
		env.fail_at = n;
		bf_builder_init(&b, &env.env, &image.view.params);
		status = bf_builder_merge(&b, &image.view);
		if (status == BF_OK)
			status = bf_builder_exclude(&b, key(positives[0], SET));
		failed = env.allocations >= n;
		CHECK(status == (failed ? BF_NO_MEMORY : BF_OK), "status %d",
			  (int) status);
		finish(&b, &env);
	}
	CHECK(n > 3, "%ld allocations", n - 1);
	image_free(&image);

	/* From a list, of which a part is sorted and a part is not. */
	failed = true;
	for (n = 1; failed; n++)
	{
		TestEnv		env;
		BfBuilder	b;
		BfStatus	status = BF_OK;
		uint64_t	i;

		start(&b, &env, 0.01, 1000);
		env.fail_at = n;
		for (i = 0; status == BF_OK && i < 10; i++)
			status = bf_builder_add(&b, key(i, SET));
		if (status == BF_OK)
			status = bf_builder_exclude(&b, key(i, SET));
		failed = env.allocations >= n;
		CHECK(status == (failed ? BF_NO_MEMORY : BF_OK),
			  "allocation %ld of a list: status %d", n, (int) status);
		finish(&b, &env);
	}
	CHECK(n > 4, "%ld allocations of a list", n - 1);
}

int
main(void)
{
	find_positives();
	tap_run("excluded keys test negative, all others as before",
			test_contains);
	tap_run("adding a key takes its exclusion away", test_add);
	tap_run("a union keeps what neither side contains", test_union);
	tap_run("members of a list and negatives are no exclusions",
			test_no_exclusion);
	tap_run("at most 4096", test_limit);
	tap_run("images with wrong exclusions are rejected", test_format);
	tap_run("no memory", test_no_memory);
	return tap_done();
}
