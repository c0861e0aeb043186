/*-------------------------------------------------------------------------
 *
 * bits.h
 *	  The bits of a layer: one key in its block (bits.c), and whole layers
 *	  (bitmap.c).
 *
 * These functions know the geometry of a layer and nothing of filters.  A
 * layer is nblocks blocks of 2^block_log2 bits each, without gaps and without
 * alignment.  Those that may run for long check for interrupts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_BITS_H
#define BF_BITS_H

#include "bf.h"

/* 2^64 divided by the golden ratio, made odd (Knuth, TAOCP 3, 6.4). */
#define BF_GOLDEN	UINT64_C(0x9E3779B97F4A7C15)

/* Its 64th power: k is at most 64, so no two generations share a power. */
#define BF_GOLDEN_64	UINT64_C(0x66C0333B9C3B3301)

/* Bytes that a processor loads at once; a block is a multiple of it. */
#define BF_CACHE_LINE	64

/* Bytes of a block that are prefetched. */
#define BF_MAX_PREFETCH	(8 * BF_CACHE_LINE)

/*
 * So many keys ahead.  Fetching a block from memory takes as long as adding
 * several keys.
 */
#define BF_PREFETCH_DISTANCE	16

/* The high word of hash * n: a number from 0 to n - 1, for n up to 2^32. */
static inline uint64_t
bf_scale(uint64_t hash, uint32_t n)
{
	uint64_t	low = (hash & 0xFFFFFFFF) * n;
	uint64_t	high = (hash >> 32) * n;

	return (high + (low >> 32)) >> 32;
}

/* Bytes in a block. */
static inline size_t
bf_block_size(const BfGeometry *geometry)
{
	return (size_t) 1 << (geometry->block_log2 - 3);
}

/* Offset of the block of a key in its layer. */
static inline size_t
bf_block_at(const BfGeometry *geometry, uint64_t hash)
{
	return (size_t) bf_scale(hash, geometry->nblocks) <<
		(geometry->block_log2 - 3);
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
	size_t		size = bf_block_size(geometry);
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

BF_HIDE_BEGIN

/* bits.c */
extern bool bf_bits_contain(const BfGeometry *geometry, const uint8_t *bits,
							uint64_t hash);
extern unsigned bf_bits_add(const BfGeometry *geometry, uint8_t *bits,
							uint64_t hash);
extern void bf_bits_add_all(const BfInterrupts *interrupts,
							const BfGeometry *geometry, uint8_t *bits,
							const uint64_t *hashes, size_t n,
							uint64_t *bits_set);
extern bool bf_bits_add_within(const BfGeometry *geometry, uint8_t *bits,
							   uint64_t hash, uint64_t full,
							   uint64_t *bits_set);

/* bitmap.c; also bf_blocks_bits_set */
extern uint64_t bf_bitmap_count(const BfInterrupts *interrupts,
								const uint8_t *bits, size_t size);
extern uint64_t bf_bitmap_count_or(const BfInterrupts *interrupts,
								   const uint8_t *x, const uint8_t *y,
								   size_t size);
extern uint64_t bf_bitmap_count_union(const BfInterrupts *interrupts,
									  const BfBits *layers, int n);
extern uint64_t bf_bitmap_or_and_count(const BfInterrupts *interrupts,
									   uint8_t *to, const uint8_t *from,
									   size_t size);
extern void bf_bitmap_or(const BfInterrupts *interrupts, uint8_t *to,
						 const uint8_t *from, size_t size);
extern void bf_bitmap_and(const BfInterrupts *interrupts, uint8_t *to,
						  const uint8_t *with, size_t size);
extern void bf_bitmap_copy(const BfInterrupts *interrupts, uint8_t *to,
						   const uint8_t *from, size_t size);
extern int	bf_bitmap_compare(const BfInterrupts *interrupts,
							  const uint8_t *x, const uint8_t *y,
							  size_t size);
extern void bf_bitmap_fold(const BfInterrupts *interrupts, uint8_t *to,
						   const uint8_t *from, uint32_t nblocks,
						   uint32_t factor, size_t block_size);

BF_HIDE_END

#endif							/* BF_BITS_H */
