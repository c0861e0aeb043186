/*-------------------------------------------------------------------------
 *
 * environment.h
 *	  What unit tests and fuzz targets run the core with: memory that is
 *	  watched, and images in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ENV_H
#define ENV_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"

/*
 * An environment on top of malloc, which counts what it gives and can reject: the
 * allocation number fail_at, counted from 1, or all above a size.
 */
typedef struct TestEnv
{
	BfEnv		env;
	long		outstanding;
	long		allocations;
	long		fail_at;
	size_t		limit;
	size_t		largest_requested;
	long		polls;
} TestEnv;

/* Memory of exactly this size, so that a sanitizer sees every overrun. */
static inline void *
exactly(size_t size)
{
	void	   *pointer = malloc(size > 0 ? size : 1);

	assert(pointer != NULL);
	return pointer;
}

static inline void *
env_alloc(void *context, size_t size)
{
	TestEnv    *env = context;
	uint8_t    *pointer;

	if (size > env->largest_requested)
		env->largest_requested = size;
	if (++env->allocations == env->fail_at || size > env->limit)
		return NULL;
	env->outstanding++;
	pointer = exactly(size);

	/* Nobody has promised zeros. */
	memset(pointer, 0xA5, size);
	return pointer;
}

static inline void
env_free(void *context, void *pointer)
{
	TestEnv    *env = context;

	assert(pointer != NULL);
	env->outstanding--;
	free(pointer);
}

static inline void
env_check_interrupts(void *context)
{
	((TestEnv *) context)->polls++;
}

static inline void
ignore_check(void *context)
{
	(void) context;
}

/* For what allocates nothing. */
static const BfInterrupts no_interrupts = {ignore_check, NULL};

static inline void
env_init(TestEnv *env, size_t limit)
{
	memset(env, 0, sizeof(*env));
	env->env.alloc = env_alloc;
	env->env.free = env_free;
	env->env.context = env;
	env->env.interrupts.check = env_check_interrupts;
	env->env.interrupts.context = env;
	env->limit = limit;
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

#endif							/* ENV_H */
