/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the fuzz targets share: a way to fail, and numbers from the input.
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

#include "../env.h"

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

static inline void
finish(BfBuilder *b, TestEnv *env)
{
	bf_builder_free(b);
	DEMAND(env->outstanding == 0);
}

/* The image of a builder, which has to be valid. */
static inline BfStatus
image_write(Image *image, BfBuilder *b, bool compact)
{
	BfStatus	status = image_of(image, b, compact);

	if (status == BF_OK)
		DEMAND(bf_validate(&no_interrupts, image->bytes, image->size,
						   &image->view) == BF_OK);
	return status;
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
