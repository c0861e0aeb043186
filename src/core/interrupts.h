/*-------------------------------------------------------------------------
 *
 * interrupts.h
 *	  Checks for interrupts in long loops.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_INTERRUPTS_H
#define BF_INTERRUPTS_H

#include "bf.h"

/*
 * Hashes to work on between two checks.  Each costs at most a few cache
 * misses, so this is well below a millisecond, and a check in each turn would
 * show in the profile.
 */
#define BF_INTERRUPT_SPACING	4096

static inline void
bf_check_interrupts(const BfInterrupts *interrupts)
{
	interrupts->check(interrupts->context);
}

/* Check in turn i of a loop over hashes, if it is one of those that do. */
static inline void
bf_check_interrupts_at(const BfInterrupts *interrupts, size_t i)
{
	if (i % BF_INTERRUPT_SPACING == 0)
		bf_check_interrupts(interrupts);
}

#endif							/* BF_INTERRUPTS_H */
