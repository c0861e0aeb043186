/*-------------------------------------------------------------------------
 *
 * support.h
 *	  What the unit tests share: a host for the core, keys and images.
 *
 * All randomness has a fixed seed: a test that fails, fails again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"
#include "tap.h"

/* BF_QUICK=1 asks for fewer probes, as under a sanitizer. */
static inline bool
quick(void)
{
	const char *value = getenv("BF_QUICK");

	return value != NULL && strcmp(value, "1") == 0;
}

static inline uint64_t
scaled(uint64_t full, uint64_t few)
{
	return quick() ? few : full;
}

/* Memory of exactly this size, so that a sanitizer sees every overrun. */
static inline void *
exactly(size_t size)
{
	void	   *pointer = malloc(size > 0 ? size : 1);

	if (pointer == NULL)
	{
		printf("Bail out! no memory for the test itself\n");
		exit(EXIT_FAILURE);
	}
	return pointer;
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

/*
 * A host on top of malloc, which counts what it gives and can refuse: the
 * allocation number fail_at, counted from 1, or all above a size.
 */
typedef struct TestHost
{
	BfHost		host;
	long		outstanding;
	long		allocations;
	long		fail_at;
	size_t		limit;
	size_t		largest_asked;
	long		polls;
} TestHost;

static inline void *
host_alloc(void *context, size_t size)
{
	TestHost   *host = context;
	uint8_t    *pointer;

	if (size > host->largest_asked)
		host->largest_asked = size;
	if (++host->allocations == host->fail_at || size > host->limit)
		return NULL;
	host->outstanding++;
	pointer = exactly(size);

	/* Nobody has promised zeros. */
	memset(pointer, 0xA5, size);
	return pointer;
}

static inline void
host_free(void *context, void *pointer)
{
	TestHost   *host = context;

	CHECK(pointer != NULL, "the core frees a null pointer");
	host->outstanding--;
	free(pointer);
}

static inline void
host_poll(void *context)
{
	((TestHost *) context)->polls++;
}

static inline void
host_init(TestHost *host)
{
	memset(host, 0, sizeof(*host));
	host->host.alloc = host_alloc;
	host->host.free = host_free;
	host->host.poll = host_poll;
	host->host.context = host;
	host->limit = SIZE_MAX;
}

static inline BfParams
params_of(double fpp, uint64_t expected)
{
	BfParams	params;

	memset(&params, 0, sizeof(params));
	params.fpp = fpp;
	params.expected = expected;
	params.seed = 42;
	params.kind.code = BF_KIND_INTEGER;
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
	uint64_t	i;

	for (i = first; i < first + n; i++)
	{
		BfStatus	status = bf_builder_add(b, key(i, set));

		if (!CHECK(status == BF_OK, "adding key %llu: status %d",
				   (unsigned long long) i, (int) status))
			return;
	}
}

static inline void
start(BfBuilder *b, TestHost *host, double fpp, uint64_t expected)
{
	BfParams	params = params_of(fpp, expected);

	host_init(host);
	bf_builder_init(b, &host->host, &params);
}

static inline void
finish(BfBuilder *b, TestHost *host)
{
	bf_builder_free(b);
	CHECK(host->outstanding == 0, "%ld allocations leaked",
		  host->outstanding);
}

/* An image in memory of its own, of just its size. */
typedef struct Image
{
	uint8_t    *bytes;
	size_t		size;
	BfView		view;
} Image;

/* Open as if the bytes had come from outside. */
static inline bool
image_open(Image *image)
{
	BfStatus	status = bf_validate(image->bytes, image->size, &image->view);

	return CHECK(status == BF_OK, "status %d: %s", (int) status,
				 image->view.reason == NULL ? "" : image->view.reason);
}

/* The image that a builder writes; it must be a valid one. */
static inline bool
image_write(Image *image, BfBuilder *b, bool compact)
{
	BfBuilder	smaller;
	bool		found = false;
	size_t		size;
	BfStatus	status = BF_OK;

	image->bytes = NULL;
	image->size = 0;
	if (compact)
		status = bf_builder_compact(b, &smaller, &found);
	if (!CHECK(status == BF_OK, "bf_builder_compact: status %d",
			   (int) status))
		return false;
	if (found)
	{
		bool		written = image_write(image, &smaller, false);

		bf_builder_free(&smaller);
		return written;
	}

	status = bf_builder_plan(b, &size);
	if (!CHECK(status == BF_OK, "bf_builder_plan: status %d", (int) status))
		return false;
	image->bytes = exactly(size);
	image->size = size;
	memset(image->bytes, 0x5A, size);
	bf_builder_write(b, image->bytes);
	return image_open(image);
}

/* The image of n keys of a set, from the first one on. */
static inline bool
image_build(Image *image, double fpp, uint64_t expected,
			uint64_t first, uint64_t n, uint64_t set, bool compact)
{
	TestHost	host;
	BfBuilder	b;
	bool		written;

	start(&b, &host, fpp, expected);
	add_keys(&b, first, n, set);
	written = image_write(image, &b, compact);
	finish(&b, &host);
	return written;
}

static inline void
image_free(Image *image)
{
	free(image->bytes);
	image->bytes = NULL;
}

static inline bool
image_equal(const Image *x, const Image *y)
{
	return x->bytes != NULL && y->bytes != NULL && x->size == y->size &&
		memcmp(x->bytes, y->bytes, x->size) == 0;
}

/* Every one of n keys of a set must be found. */
static inline bool
image_has(const Image *image, uint64_t first, uint64_t n, uint64_t set)
{
	uint64_t	i;

	for (i = first; i < first + n; i++)
	{
		if (!CHECK(bf_contains(&image->view, key(i, set)),
				   "key %llu of set %llu is lost",
				   (unsigned long long) i, (unsigned long long) set))
			return false;
	}
	return true;
}

/* Keys of a set that test positive, of n of them. */
static inline uint64_t
count_hits(const BfView *view, uint64_t first, uint64_t n, uint64_t set)
{
	uint64_t	hits = 0;
	uint64_t	i;

	for (i = first; i < first + n; i++)
		hits += bf_contains(view, key(i, set));
	return hits;
}

#endif							/* SUPPORT_H */
