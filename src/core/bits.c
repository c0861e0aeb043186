/*-------------------------------------------------------------------------
 *
 * bits.c
 *	  One key in the bits of one layer.
 *
 * The block of a key is the high word of hash * nblocks.  Its bits are the
 * top bits of hash * G^(64 g + i) modulo 2^64, i = 1 ... k, where G is GOLDEN
 * and g the generation of the layer.  Both use the whole hash from its top
 * down.  The positions must not come from what the block leaves over, because
 * folding would then move them.
 *
 * This is the definition of the bits in an image: see doc/FORMAT.md.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"

/* 2^64 divided by the golden ratio, made odd (Knuth, TAOCP 3, 6.4). */
#define GOLDEN		UINT64_C(0x9E3779B97F4A7C15)

/* Its 64th power: k is at most 64, so no two generations share a power. */
#define GOLDEN_64	UINT64_C(0x66C0333B9C3B3301)

/*
 * Bits tested between two branches.  A mispredicted branch costs more than
 * testing a few bits in vain.
 */
#define GROUP		4

/* The hash times G^(64 g): multiply by G for each position. */
static inline uint64_t
first_factor(const BfGeometry *geometry, uint64_t hash)
{
	unsigned	g;

	for (g = geometry->generation; g > 0; g--)
		hash *= GOLDEN_64;
	return hash;
}

/* Are all bits of a key set in its block? */
bool
bf_block_contains(const BfGeometry *geometry, const uint8_t *block,
				  uint64_t hash)
{
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
			x *= GOLDEN;
			all &= (unsigned) block[x >> shift >> 3] >> (x >> shift & 7);
		}
		if (!(all & 1))
			return false;
	}
	return true;
}

static inline unsigned
set_in_block(const BfGeometry *geometry, uint8_t *block, uint64_t hash)
{
	unsigned	shift = 64 - geometry->block_log2;
	unsigned	left;
	unsigned	added = 0;
	uint64_t	x = first_factor(geometry, hash);

	for (left = geometry->k; left > 0; left--)
	{
		uint8_t    *byte;
		unsigned	bit;

		x *= GOLDEN;
		byte = &block[x >> shift >> 3];
		bit = (unsigned) (x >> shift & 7);
		added += ~((unsigned) *byte >> bit) & 1;
		*byte |= (uint8_t) (1u << bit);
	}
	return added;
}

/*
 * Set the bits of a key in its block; returns how many of them were not set
 * before.
 */
unsigned
bf_block_add(const BfGeometry *geometry, uint8_t *block, uint64_t hash)
{
	return set_in_block(geometry, block, hash);
}

/*
 * Add many keys to a layer; their blocks are prefetched.  Adds to *bits_set how
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
		added += set_in_block(&copy, bits + bf_block_at(&copy, hashes[i]),
							  hashes[i]);
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
	size_t		size = bf_blocks_size(geometry, 1);
	uint8_t    *block = bits + bf_block_at(geometry, hash);
	bool		has_room = *bits_set + geometry->k <= full;
	unsigned	added;

	if (!has_room)
		memcpy(before, block, size);
	added = set_in_block(geometry, block, hash);
	if (!has_room && added > 0 && *bits_set + added > full)
	{
		memcpy(block, before, size);
		return false;
	}
	*bits_set += added;
	return true;
}
