/*-------------------------------------------------------------------------
 *
 * host.h
 *	  What unit tests and fuzz targets run the core with: memory that is
 *	  watched, and images in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOST_H
#define HOST_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"

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

/* Memory of exactly this size, so that a sanitizer sees every overrun. */
static inline void *
exactly(size_t size)
{
	void	   *pointer = malloc(size > 0 ? size : 1);

	assert(pointer != NULL);
	return pointer;
}

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

	assert(pointer != NULL);
	host->outstanding--;
	free(pointer);
}

static inline void
host_poll(void *context)
{
	((TestHost *) context)->polls++;
}

static inline void
host_init(TestHost *host, size_t limit)
{
	memset(host, 0, sizeof(*host));
	host->host.alloc = host_alloc;
	host->host.free = host_free;
	host->host.poll = host_poll;
	host->host.context = host;
	host->limit = limit;
}

/* An image in memory of its own, of just its size. */
typedef struct Image
{
	uint8_t    *bytes;
	size_t		size;
	BfView		view;
} Image;

/*
 * What a builder writes, without a look at it; compact first fits the filter
 * to its keys.  There are bytes only if the status is BF_OK.
 */
static inline BfStatus
image_of(Image *image, BfBuilder *b, bool compact)
{
	BfBuilder	smaller;
	bool		found = false;
	size_t		size;
	BfStatus	status = BF_OK;

	memset(image, 0, sizeof(*image));
	if (compact)
		status = bf_builder_compact(b, &smaller, &found);
	if (status != BF_OK)
		return status;
	if (found)
	{
		status = image_of(image, &smaller, false);
		bf_builder_free(&smaller);
		return status;
	}

	status = bf_builder_plan(b, &size);
	if (status != BF_OK)
		return status;
	image->bytes = exactly(size);
	image->size = size;
	memset(image->bytes, 0x5A, size);
	bf_builder_write(b, image->bytes);
	return BF_OK;
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

#endif							/* HOST_H */
