/*-------------------------------------------------------------------------
 *
 * bench.h
 *	  What the benchmark programs in C share: memory, keys and time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bf.h"

#define PAGE		((size_t) 4096)
#define CACHE_LINE	64

static inline void
fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(EXIT_FAILURE);
}

/* Zeroed memory in pages of 4 KiB; its size is in the page before. */
static inline void *
bench_alloc(size_t size)
{
	size_t		reserved = size + PAGE;
	uint8_t    *start = mmap(NULL, reserved, PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
							 -1, 0);

	if (start == MAP_FAILED)
		fail("out of memory");
	(void) madvise(start, reserved, MADV_NOHUGEPAGE);
	*(size_t *) start = reserved;
	return start + PAGE;
}

/* The pointer may also be one to the first page. */
static inline void
bench_free(void *pointer)
{
	uint8_t    *start = pointer;

	start -= (uintptr_t) start % PAGE + PAGE;
	munmap(start, *(size_t *) start);
}

static inline void *
env_alloc(void *context, size_t size)
{
	(void) context;
	return bench_alloc(size);
}

static inline void
env_free(void *context, void *pointer)
{
	(void) context;
	bench_free(pointer);
}

static inline void
env_check_interrupts(void *context)
{
	(void) context;
}

static inline void
start(BfBuilder *b, double fpp, uint64_t expected)
{
	BfEnv		env = {env_alloc, env_free, NULL,
	{env_check_interrupts, NULL}};
	BfParams	params;

	memset(&params, 0, sizeof(params));
	params.fpp = fpp;
	params.expected = expected;
	params.key_type.code = BF_KEY_INTEGER;
	bf_builder_init(b, &env, &params);
}

static inline void
add(BfBuilder *b, uint64_t hash)
{
	if (bf_builder_add(b, hash) != BF_OK)
		fail("bf_builder_add failed");
}

/*
 * The image of a builder; view->image is to be freed.  The blocks of a filter
 * with one layer begin where a cache line does, as those of stored filters do
 * when they are read into memory.
 */
static inline void
finish(BfBuilder *b, bool compact, BfView *view)
{
	BfBuilder	smaller;
	bool		found = false;
	size_t		size;
	uint8_t    *image;

	if (compact && bf_builder_compact(b, &smaller, &found) != BF_OK)
		fail("bf_builder_compact failed");
	if (found)
	{
		finish(&smaller, false, view);
		bf_builder_free(&smaller);
		return;
	}
	if (bf_builder_plan(b, &size) != BF_OK)
		fail("bf_builder_plan failed");
	image = bench_alloc(size + CACHE_LINE);
	image += CACHE_LINE - bf_header_size(&b->params, 1) % CACHE_LINE;
	bf_builder_write(b, image);
	if (bf_open(image, size, view) != BF_OK)
		fail("bf_open failed");
}

/* Sebastiano Vigna's splitmix64, one to one: different keys stay different. */
static inline uint64_t
mix(uint64_t z)
{
	z += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* The hash of key i is mix(i); keys that are added are below this. */
#define NEVER_ADDED	(UINT64_C(1) << 40)

/* The high word of x * n: a number below n. */
static inline uint64_t
scale(uint64_t x, uint64_t n)
{
	return (uint64_t) ((unsigned __int128) x * n >> 64);
}

/* CPU time of this thread. */
static inline double
cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

#endif							/* BENCH_H */
