/*-------------------------------------------------------------------------
 *
 * blocks.c
 *	  A layer of which single blocks are in memory.
 *
 * A block is a layer of one block.  These functions serve layers that are
 * read in slices, or that are distributed over pages.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bits.h"
#include "rate.h"

#define LN_4_PI		2.5310242469692907

/* The number of the block of a key in its layer. */
uint32_t
bf_block_number(const BfGeometry *geometry, uint64_t hash)
{
	return (uint32_t) bf_scale(hash, geometry->nblocks);
}

/* So many blocks in bytes. */
size_t
bf_blocks_size(const BfGeometry *geometry, uint32_t nblocks)
{
	return nblocks * bf_block_size(geometry);
}

/* Are all bits of a key set in its block? */
bool
bf_block_contains(const BfGeometry *geometry, const uint8_t *block,
				  uint64_t hash)
{
	BfGeometry	one = *geometry;

	one.nblocks = 1;
	return bf_bits_contain(&one, block, hash);
}

/*
 * Set the bits of a key in its block; returns how many of them were not set
 * before.
 */
unsigned
bf_block_add(const BfGeometry *geometry, uint8_t *block, uint64_t hash)
{
	BfGeometry	one = *geometry;

	one.nblocks = 1;
	return bf_bits_add(&one, block, hash);
}

/* The number of set bits in blocks of so many bytes together. */
uint64_t
bf_blocks_bits_set(const uint8_t *blocks, size_t size)
{
	return bf_bitmap_count(blocks, size);
}

/*
 * A number of set bits in nblocks blocks of a layer that some part of the
 * layer of this size is expected to reach when the layer becomes full, but not
 * earlier.
 *
 * The layer has P such parts.  The numbers of keys in them follow a Poisson
 * distribution; the largest of P normal deviates is, on average,
 * sqrt(2 ln P) - (ln ln P + ln 4 pi) / (2 sqrt(2 ln P)) standard deviations
 * above the mean (Cramer: Mathematical Methods of Statistics, 28.6).
 */
uint64_t
bf_blocks_full(const BfGeometry *geometry, uint32_t nblocks)
{
	double		parts = (double) geometry->nblocks / nblocks;
	double		bits = ldexp(nblocks, geometry->block_log2);
	double		keys = (double) geometry->capacity / parts;
	double		full = (double) bf_geometry_full(geometry) / parts;
	double		a = geometry->k * keys / bits;
	double		by_load = geometry->k * exp(-a) * sqrt(keys);
	double		by_bits = bf_deviation(bits, geometry->k, keys);
	double		root = sqrt(2 * log(parts));
	double		deviations = 0;

	if (parts >= 2)
		deviations = fmax(0, root - (log(log(parts)) + LN_4_PI) /
						  (2 * root));
	full += deviations * sqrt(by_load * by_load + by_bits * by_bits);
	return (uint64_t) fmin(full, bits);
}
