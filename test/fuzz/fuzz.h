/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the fuzz targets share: a host with limits, and images.
 *
 * A target is a program with a function LLVMFuzzerTestOneInput, to be linked
 * with libFuzzer, or with replay.c, which runs it on files.  It ends the
 * process at whatever must not happen.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold; a failure is a crash, which the fuzzer keeps. */
#define DEMAND(condition) \
	((condition) ? (void) 0 : fuzz_fail(__FILE__, __LINE__, #condition))

static inline void
fuzz_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
	abort();
}

/*
 * A host that has only so much memory at a time, counts what it gives and
 * remembers the largest piece it was asked for.  The allocation number
 * fail_at, counted from 1, is refused.
 */
typedef struct FuzzHost
{
	BfHost		host;
	size_t		limit;
	size_t		largest_asked;
	long		allocations;
	long		fail_at;
	long		outstanding;
} FuzzHost;

/* Memory of exactly this size, so that a sanitizer sees every overrun. */
static inline void *
exactly(size_t size)
{
	void	   *pointer = malloc(size > 0 ? size : 1);

	DEMAND(pointer != NULL);
	return pointer;
}

static inline void *
fuzz_alloc(void *context, size_t size)
{
	FuzzHost   *host = context;
	uint8_t    *pointer;

	if (size > host->largest_asked)
		host->largest_asked = size;
	if (++host->allocations == host->fail_at || size > host->limit)
		return NULL;
	host->outstanding++;
	pointer = exactly(size);

	/* Nobody has promised zeros; the first and the last will tell. */
	memset(pointer, 0xA5, size < 4096 ? size : 4096);
	return pointer;
}

static inline void
fuzz_free(void *context, void *pointer)
{
	FuzzHost   *host = context;

	DEMAND(pointer != NULL);
	host->outstanding--;
	free(pointer);
}

static inline void
fuzz_poll(void *context)
{
	(void) context;
}

static inline void
fuzz_host(FuzzHost *host, size_t limit)
{
	memset(host, 0, sizeof(*host));
	host->host.alloc = fuzz_alloc;
	host->host.free = fuzz_free;
	host->host.poll = fuzz_poll;
	host->host.context = host;
	host->limit = limit;
}

static inline void
finish(BfBuilder *b, FuzzHost *host)
{
	bf_builder_free(b);
	DEMAND(host->outstanding == 0);
}

/* An image in memory of just its size. */
typedef struct Image
{
	uint8_t    *bytes;
	size_t		size;
	BfView		view;
} Image;

/* The image of a builder, which has to be valid. */
static inline BfStatus
image_write(Image *image, BfBuilder *b, bool compact)
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
		status = image_write(image, &smaller, false);
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
	DEMAND(bf_validate(image->bytes, image->size, &image->view) == BF_OK);
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
	return x->size == y->size && memcmp(x->bytes, y->bytes, x->size) == 0;
}

/* Numbers taken from the input; zeros after its end. */
typedef struct Input
{
	const uint8_t *bytes;
	size_t		left;
} Input;

static inline unsigned
take(Input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->bytes++;
}

static inline unsigned
take16(Input *input)
{
	unsigned	low = take(input);

	return low | take(input) << 8;
}

#endif							/* FUZZ_H */
