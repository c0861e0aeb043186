/*-------------------------------------------------------------------------
 *
 * bits.c
 *	  One key in the bits of one layer.
 *
 * The block of a key is the high word of hash * nblocks.  Its bits are the
 * top bits of hash * G^(64 g + i) modulo 2^64, i = 1 ... k, where G is
 * BF_GOLDEN and g the generation of the layer.  Both use the whole hash from
 * its top down.  The positions must not come from what the block leaves over,
 * because folding would then move them.
 *
 * This is the definition of the bits in an image: see doc/FORMAT.md.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "bits.h"
#include "interrupts.h"

/*
 * Bits tested between two branches.  A mispredicted branch costs more than
 * testing a few bits in vain.
 */
#define GROUP	4

/* The hash times G^(64 g): multiply by G for each position. */
static inline uint64_t
first_factor(const BfGeometry *geometry, uint64_t hash)
{
	unsigned	g;

	for (g = geometry->generation; g > 0; g--)
		hash *= BF_GOLDEN_64;
	return hash;
}

/* Are all bits of a key set? */
bool
bf_bits_contain(const BfGeometry *geometry, const uint8_t *bits, uint64_t hash)
{
	const uint8_t *block = bits + bf_block_at(geometry, hash);
	unsigned	shift = 64 - geometry->block_log2;
	unsigned	left = geometry->k;
	uint64_t	x = first_factor(geometry, hash);

	while (left > 0)
	{
		unsigned	group = left < GROUP ? left : GROUP;
		unsigned	all = 1;

		left -= group;
		while (group-- > 0)
		{
			x *= BF_GOLDEN;
			all &= (unsigned) block[x >> shift >> 3] >> (x >> shift & 7);
		}
		if (!(all & 1))
			return false;
	}
	return true;
}

static inline unsigned
add(const BfGeometry *geometry, uint8_t *bits, uint64_t hash)
{
	uint8_t    *block = bits + bf_block_at(geometry, hash);
	unsigned	shift = 64 - geometry->block_log2;
	unsigned	left;
	unsigned	added = 0;
	uint64_t	x = first_factor(geometry, hash);

	for (left = geometry->k; left > 0; left--)
	{
		uint8_t    *byte;
		unsigned	bit;

		x *= BF_GOLDEN;
		byte = &block[x >> shift >> 3];
		bit = (unsigned) (x >> shift & 7);
		added += ~((unsigned) *byte >> bit) & 1;
		*byte |= (uint8_t) (1u << bit);
	}
	return added;
}

/* Set the bits of a key; returns how many of them were not set before. */
unsigned
bf_bits_add(const BfGeometry *geometry, uint8_t *bits, uint64_t hash)
{
	return add(geometry, bits, hash);
}

/*
 * The same for many keys, whose blocks are prefetched.  Adds to *bits_set how
 * many bits were not set before, also before each check for interrupts.
 */
void
bf_bits_add_all(const BfInterrupts *interrupts, const BfGeometry *geometry,
				uint8_t *bits, const uint64_t *hashes, size_t n,
				uint64_t *bits_set)
{
	BfGeometry	copy = *geometry;	/* for registers: bits may be anything */
	uint64_t	added = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		if (i % BF_INTERRUPT_SPACING == 0)
		{
			*bits_set += added;
			added = 0;
			bf_check_interrupts(interrupts);
		}
		if (i + BF_PREFETCH_DISTANCE < n)
			bf_bits_prefetch(&copy, bits, hashes[i + BF_PREFETCH_DISTANCE],
							 true);
		added += add(&copy, bits, hashes[i]);
	}
	*bits_set += added;
}

/*
 * Add a key to a layer that has *bits_set bits set, unless more than full
 * would be set then.  Returns false and leaves the bits alone if there is no
 * room.  A key that sets no further bit always has room, so that whether a
 * key is in a full layer does not depend on the order in which keys came.
 */
bool
bf_bits_add_within(const BfGeometry *geometry, uint8_t *bits, uint64_t hash,
				   uint64_t full, uint64_t *bits_set)
{
	uint8_t		before[BF_MAX_BLOCK_SIZE];
	size_t		size = bf_block_size(geometry);
	uint8_t    *block = bits + bf_block_at(geometry, hash);
	unsigned	added;

	if (*bits_set + geometry->k <= full)
	{
		*bits_set += bf_bits_add(geometry, bits, hash);
		return true;
	}

	memcpy(before, block, size);
	added = bf_bits_add(geometry, bits, hash);
	if (added > 0 && *bits_set + added > full)
	{
		memcpy(block, before, size);
		return false;
	}
	*bits_set += added;
	return true;
}
