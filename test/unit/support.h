/*-------------------------------------------------------------------------
 *
 * support.h
 *	  What the unit tests share: reports in the Test Anything Protocol, sizes
 *	  of tests, keys and filters of them.
 *
 * A test is a function that calls CHECK(), HOLDS() and EQUAL() as often as it
 * likes.  tap_run() runs it and prints one line, "ok" if every check held.
 * What a failed check has to say stands in lines with a "#" before that line,
 * the first few of them: a broken loop fails a million times.  tap_case() says
 * what a loop is at.
 *
 * An image lives until its test ends, or until forget_images().
 *
 * All randomness has a fixed seed: a test that fails, fails again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../env.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

/* Lengths in an image: of its header without a name, of an entry for a layer. */
#define HEADER	44
#define ENTRY	32

#define TAP_MOST_COMPLAINTS	5

static int	tap_tests;
static int	tap_failures;
static long tap_complaints;
static char tap_case_text[200];

static uint8_t **images;
static size_t nimages;
static size_t nkept;			/* of those, for all tests */

/* Frees the images that were made since there were so many. */
static inline void
forget_images(size_t keep)
{
	while (nimages > keep)
		free(images[--nimages]);
}

/* Not just "true": then compilers complain of values that nobody uses. */
static inline bool
tap_agree(void)
{
	return true;
}

/*
 * Evaluates to the condition, so that a test can stop at the first failure.
 * What it says is evaluated after the condition, and only if that fails.
 */
#define CHECK(condition, ...) \
	((condition) ? tap_agree() \
	 : tap_complain(__LINE__, #condition, __VA_ARGS__))

/* A condition that says all. */
#define HOLDS(condition) \
	((condition) ? tap_agree() \
	 : tap_complain(__LINE__, #condition, "%s", "does not hold"))

/* Numbers of any types. */
#define EQUAL(x, y) \
	((x) == (y) ? tap_agree() \
	 : tap_complain(__LINE__, #x " == " #y, "%.17g and %.17g", \
					(double) (x), (double) (y)))

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static inline void
tap_case(const char *format,
		 ...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(tap_case_text, sizeof(tap_case_text), format, args);
	va_end(args);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline bool
tap_complain(int line, const char *condition, const char *format,
			 ...)
{
	va_list		args;

	if (++tap_complaints <= TAP_MOST_COMPLAINTS)
	{
		printf("# line %d: failed: %s\n#   %s: ", line, condition,
			   tap_case_text);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	return false;
}

static inline void
tap_run(const char *name, void (*test) (void))
{
	tap_complaints = 0;
	tap_case("%s", name);
	test();
	forget_images(nkept);
	if (tap_complaints > TAP_MOST_COMPLAINTS)
		printf("# and %ld more\n", tap_complaints - TAP_MOST_COMPLAINTS);
	if (tap_complaints > 0)
		tap_failures++;
	printf("%s %d - %s\n", tap_complaints > 0 ? "not ok" : "ok",
		   ++tap_tests, name);

	/* If the next test crashes, this one has still been heard. */
	fflush(stdout);
}

/* Prints the plan; returns what main() is to return. */
static inline int
tap_done(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* BF_LONG, as set by scripts/check --long, makes more cases and probes. */
static inline bool
is_long(void)
{
	const char *value = getenv("BF_LONG");

	return value != NULL && value[0] != '\0';
}

static inline uint64_t
scaled(uint64_t full, uint64_t few)
{
	return is_long() ? full : few;
}

/* Sebastiano Vigna's splitmix64, which has nothing in common with XXH3. */
static inline uint64_t
random64(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static inline void
shuffle(uint64_t *list, size_t n, uint64_t *state)
{
	for (; n > 1; n--)
	{
		size_t		other = (size_t) (random64(state) % n);
		uint64_t	last = list[n - 1];

		list[n - 1] = list[other];
		list[other] = last;
	}
}

static inline BfParams
params_of(double fpp, uint64_t expected)
{
	BfParams	params;

	memset(&params, 0, sizeof(params));
	params.fpp = fpp;
	params.expected = expected;
	params.seed = 42;
	params.key_type.code = BF_KEY_INTEGER;
	return params;
}

/* The hash of key i of a set of keys. */
static inline uint64_t
key(uint64_t i, uint64_t set)
{
	return bf_hash_u64(i, set);
}

static inline void
add_keys(BfBuilder *b, uint64_t first, uint64_t n, uint64_t set)
{
	for (uint64_t i = first; i < first + n; i++)
		if (!EQUAL(bf_builder_add(b, key(i, set)), BF_OK))
			return;
}

static inline void
add_list(BfBuilder *b, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!EQUAL(bf_builder_add(b, hashes[i]), BF_OK))
			return;
}

static inline void
merge(BfBuilder *b, const Image *image)
{
	EQUAL(bf_builder_merge(b, &image->view), BF_OK);
}

static inline void
start_with(BfBuilder *b, TestEnv *env, const BfParams *params)
{
	env_init(env, SIZE_MAX);
	bf_builder_init(b, &env->env, params);
}

static inline void
start(BfBuilder *b, TestEnv *env, double fpp, uint64_t expected)
{
	BfParams	params = params_of(fpp, expected);

	start_with(b, env, &params);
}

static inline void
finish(BfBuilder *b, TestEnv *env)
{
	bf_builder_free(b);
	EQUAL(env->outstanding, 0);
}

/* Open as if the bytes had come from outside. */
static inline bool
image_open(Image *image)
{
	BfStatus	status = bf_validate(&no_interrupts, image->bytes, image->size, &image->view);

	return CHECK(status == BF_OK, "status %d: %s", (int) status,
				 image->view.reason == NULL ? "" : image->view.reason);
}

/* The image that a builder writes; it must be a valid one. */
static inline bool
image_write(Image *image, BfBuilder *b, bool compact)
{
	if (!EQUAL(image_of(image, b, compact), BF_OK))
		return false;
	images = realloc(images, (nimages + 1) * sizeof(uint8_t *));
	assert(images != NULL);
	images[nimages++] = image->bytes;
	return image_open(image);
}

/* The image of n keys of a set, from the first one on. */
static inline bool
image_build(Image *image, double fpp, uint64_t expected,
			uint64_t first, uint64_t n, uint64_t set, bool compact)
{
	TestEnv		env;
	BfBuilder	b;
	bool		written;

	start(&b, &env, fpp, expected);
	add_keys(&b, first, n, set);
	written = image_write(image, &b, compact);
	finish(&b, &env);
	return written;
}

static inline Image
built(double fpp, uint64_t expected,
	  uint64_t first, uint64_t n, uint64_t set, bool compact)
{
	Image		image;

	image_build(&image, fpp, expected, first, n, set, compact);
	return image;
}

/* Every one of n keys of a set must be found. */
static inline bool
image_has(const Image *image, uint64_t first, uint64_t n, uint64_t set)
{
	for (uint64_t i = first; i < first + n; i++)
		if (!CHECK(bf_contains(&image->view, key(i, set)), "key %llu of set %llu",
				   (unsigned long long) i, (unsigned long long) set))
			return false;
	return true;
}

/* Keys of a set that test positive, of n of them. */
static inline uint64_t
count_hits(const BfView *view, uint64_t first, uint64_t n, uint64_t set)
{
	uint64_t	hits = 0;

	for (uint64_t i = first; i < first + n; i++)
		hits += bf_contains(view, key(i, set));
	return hits;
}

#endif							/* SUPPORT_H */
