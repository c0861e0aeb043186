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
#include "bits.h"

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

/*
 * The share of nblocks blocks in the number of set bits at which their layer is
 * full.
 */
uint64_t
bf_blocks_full(const BfGeometry *geometry, uint32_t nblocks)
{
	return (uint64_t) ((double) bf_geometry_full(geometry) /
					   geometry->nblocks * nblocks);
}
