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

/* The same where each hash is looked up in many layers. */
#define BF_MANY_LAYERS			8
#define BF_MANY_LAYERS_SPACING	4

/*
 * Check in turn i of a loop over hashes, if it is one of those that do.  A
 * hash is looked up in this many layers, 0 if in a list.
 */
static inline void
bf_check_interrupts_at(const BfInterrupts *interrupts, size_t i, int nlayers)
{
	if ((nlayers < BF_MANY_LAYERS ? i % BF_INTERRUPT_SPACING :
		 i % BF_MANY_LAYERS_SPACING) == 0)
		bf_check_interrupts(interrupts);
}

#endif							/* BF_INTERRUPTS_H */
