/*-------------------------------------------------------------------------
 *
 * bf_bits.c
 *	  Kernels on the blocks of one layer.
 *
 * The block of a key is the high word of hash * nblocks.  Its bits are the
 * top bits of hash * G^i modulo 2^64, i = 1 ... k, G = BF_GOLDEN.  Both use the whole hash
 * from its top down; the positions must not come from what the block leaves
 * over, or folding would move them.
 *
 *-------------------------------------------------------------------------
 */
#include "bf_bytes.h"
#include "bf_internal.h"

/* Bits tested before a branch: a wrong guess costs more than a few tests. */
#define GROUP	4

static size_t
block_offset(const BfShape *shape, uint64_t hash)
{
	uint64_t	block = bf_scale(hash, shape->nblocks);

	return (size_t) block << (shape->block_log2 - 3);
}

bool
bf_bits_contain(const BfShape *shape, const uint8_t *bits, uint64_t hash)
{
	const uint8_t *block = bits + block_offset(shape, hash);
	unsigned	shift = 64 - shape->block_log2;
	unsigned	left = shape->k;
	uint64_t	x = hash;

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

/* Returns how many bits were not set before. */
unsigned
bf_bits_add(const BfShape *shape, uint8_t *bits, uint64_t hash)
{
	uint8_t    *block = bits + block_offset(shape, hash);
	unsigned	shift = 64 - shape->block_log2;
	unsigned	left;
	unsigned	added = 0;
	uint64_t	x = hash;

	for (left = shape->k; left > 0; left--)
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

/*
 * Add a hash to a layer with this many bits set, unless more than full would
 * be: whether it is full depends on its content, not on the key that came
 * last.  Returns false, and leaves the bits alone, if there is no room.
 */
bool
bf_bits_add_within(const BfShape *shape, uint8_t *bits, uint64_t hash,
				   uint64_t full, uint64_t *bits_set)
{
	uint8_t		before[1 << (BF_MAX_BLOCK_LOG2 - 3)];
	size_t		size = (size_t) 1 << (shape->block_log2 - 3);
	uint8_t    *block = bits + block_offset(shape, hash);
	unsigned	added;

	if (*bits_set + shape->k <= full)
	{
		*bits_set += bf_bits_add(shape, bits, hash);
		return true;
	}

	memcpy(before, block, size);
	added = bf_bits_add(shape, bits, hash);
	if (added > 0 && *bits_set + added > full)
	{
		memcpy(block, before, size);
		return false;
	}
	*bits_set += added;
	return true;
}

static inline uint64_t
load_word(const uint8_t *p)
{
	uint64_t	word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static inline unsigned
count_word(uint64_t x)
{
#if defined(__GNUC__)
	return (unsigned) __builtin_popcountll(x);
#else
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
		(x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	return (unsigned) (x * UINT64_C(0x0101010101010101) >> 56);
#endif
}

/* The kernels below take whole words: a block is a multiple of 64 bytes. */

uint64_t
bf_bits_count(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
		count += count_word(load_word(bits + i));
	return count;
}

uint64_t
bf_bits_count_union(const uint8_t *x, const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
		count += count_word(load_word(x + i) | load_word(y + i));
	return count;
}

void
bf_bits_unite(uint8_t *to, const uint8_t *from, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) | load_word(from + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

void
bf_bits_intersect(uint8_t *to, const uint8_t *with, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) & load_word(with + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

/*
 * Write the union of each run of factor blocks as one block.  A key's block
 * number in the folded layer is its old one divided by factor, because
 * floor(floor(hN / 2^64) / f) = floor(h(N/f) / 2^64) where f divides N.
 */
void
bf_bits_fold(uint8_t *to, const uint8_t *from, uint32_t nblocks,
			 uint32_t factor, size_t block_size)
{
	uint32_t	i,
				j;

	for (i = 0; i < nblocks / factor; i++)
	{
		memcpy(to, from, block_size);
		from += block_size;
		for (j = 1; j < factor; j++)
		{
			bf_bits_unite(to, from, block_size);
			from += block_size;
		}
		to += block_size;
	}
}
