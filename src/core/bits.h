/*-------------------------------------------------------------------------
 *
 * bits.h
 *	  The bits of a layer: one key in its block (bits.c), and whole layers
 *	  (bitmap.c).  Checks for interrupts in long loops.
 *
 * These functions know the geometry of a layer and nothing of filters.  A
 * layer is nblocks blocks of 2^block_log2 bits each, without gaps and without
 * alignment.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_BITS_H
#define BF_BITS_H

#include "bf.h"

/*
 * Hashes to work on between two checks for interrupts.  Each costs at most a
 * few cache misses, so this is well below a millisecond, and a check in each
 * turn would show in the profile.
 */
#define BF_INTERRUPT_SPACING	4096

/* The same where each hash is looked up in many layers. */
#define BF_MANY_LAYERS			8
#define BF_MANY_LAYERS_SPACING	4

static inline void
bf_check_interrupts(const BfInterrupts *interrupts)
{
	interrupts->check(interrupts->context);
}

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

/* Bytes that a processor loads at once; a block is a multiple of it. */
#define BF_CACHE_LINE	64

/* Bytes of a block that are prefetched. */
#define BF_MAX_PREFETCH	(8 * BF_CACHE_LINE)

/*
 * So many keys ahead.  Fetching a block from memory takes as long as adding
 * several keys.
 */
#define BF_PREFETCH_DISTANCE	16

/* Offset of the block of a key in its layer. */
static inline size_t
bf_block_at(const BfGeometry *geometry, uint64_t hash)
{
	return bf_blocks_size(geometry, bf_block_number(geometry, hash));
}

/*
 * Prefetch the block of a key, for writing if that is going to be added.  Of a
 * large block, only the beginning: a processor serves only a few requests at a
 * time, and more of them would delay those that are needed first.
 *
 * It must be inlined early: gcc takes a function that does nothing but
 * prefetch for one without effect, and removes calls of it.
 */
#ifdef __GNUC__
__attribute__((always_inline))
#endif
static inline void
bf_bits_prefetch(const BfGeometry *geometry, const uint8_t *bits,
				 uint64_t hash, bool write)
{
#ifdef __GNUC__
	const uint8_t *block = bits + bf_block_at(geometry, hash);
	size_t		size = bf_blocks_size(geometry, 1);
	size_t		i;

	for (i = 0; i < size && i < BF_MAX_PREFETCH; i += BF_CACHE_LINE)
	{
		if (write)
			__builtin_prefetch(block + i, 1);
		else
			__builtin_prefetch(block + i, 0);
	}
#else
	(void) geometry;
	(void) bits;
	(void) hash;
	(void) write;
#endif
}

/* Are all bits of a key set? */
static inline bool
bf_bits_contain(const BfGeometry *geometry, const uint8_t *bits, uint64_t hash)
{
	return bf_block_contains(geometry, bits + bf_block_at(geometry, hash),
							 hash);
}

/* Set the bits of a key; returns how many of them were not set before. */
static inline unsigned
bf_bits_add(const BfGeometry *geometry, uint8_t *bits, uint64_t hash)
{
	return bf_block_add(geometry, bits + bf_block_at(geometry, hash), hash);
}

/*
 * Does any layer report a hash as a member?  The last one is the largest and
 * holds the most keys, so it is probed first.
 */
static inline bool
bf_layers_contain(const BfLayer *layers, int nlayers, uint64_t hash)
{
	while (nlayers-- > 0)
	{
		if (bf_bits_contain(&layers[nlayers].geometry, layers[nlayers].bits,
							hash))
			return true;
	}
	return false;
}

#pragma GCC visibility push(hidden)

/* bits.c; also bf_block_contains, bf_block_add */
extern void bf_bits_add_all(const BfInterrupts *interrupts,
							const BfGeometry *geometry, uint8_t *bits,
							const uint64_t *hashes, size_t n,
							uint64_t *bits_set);
extern bool bf_bits_add_within(const BfGeometry *geometry, uint8_t *bits,
							   uint64_t hash, uint64_t full,
							   uint64_t *bits_set);

/* bitmap.c; also bf_blocks_bits_set.  These check for interrupts. */
extern uint64_t bf_bitmap_count_union(const BfInterrupts *interrupts,
									  const BfLayer *layers, int n);
extern uint64_t bf_bitmap_combine(const BfInterrupts *interrupts, bool both,
								  uint8_t *to, const uint8_t *x,
								  const uint8_t *y, size_t size);
extern void bf_bitmap_fold(const BfInterrupts *interrupts, uint8_t *to,
						   const uint8_t *from, uint32_t nblocks,
						   uint32_t factor, size_t block_size);

#pragma GCC visibility pop

#endif							/* BF_BITS_H */
