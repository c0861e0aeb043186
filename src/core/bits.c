/*-------------------------------------------------------------------------
 *
 * bits.c
 *	  Kernels on the blocks of one layer.
 *
 * The block of a key is the high word of hash * nblocks.  Its bits are the
 * top bits of hash * G^(64 g + i) modulo 2^64, i = 1 ... k, where G is
 * BF_GOLDEN and g the generation of the layer.  Both use the whole hash from
 * its top down; the positions must not come from what the block leaves over,
 * or folding would move them.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "internal.h"

/* Bits tested before a branch: a wrong guess costs more than a few tests. */
#define GROUP	4

#define PREFETCHED	(8 * BF_CACHE_LINE)

/* What is multiplied by BF_GOLDEN for each position of a key. */
static inline uint64_t
first_factor(const BfGeometry *geometry, uint64_t hash)
{
	unsigned	g;

	for (g = geometry->generation; g > 0; g--)
		hash *= BF_GOLDEN_64;
	return hash;
}

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

/*
 * Ask for the cache lines of a block that is going to be written.  More than
 * a few requests at a time are not served at once.
 */
void
bf_bits_prefetch(const BfGeometry *geometry, const uint8_t *bits, uint64_t hash)
{
#ifdef __GNUC__
	const uint8_t *block = bits + bf_block_at(geometry, hash);
	size_t		size = (size_t) 1 << (geometry->block_log2 - 3);
	size_t		i;

	for (i = 0; i < size && i < PREFETCHED; i += BF_CACHE_LINE)
		__builtin_prefetch(block + i, 1);
#else
	(void) geometry;
	(void) bits;
	(void) hash;
#endif
}

/* Returns how many bits were not set before. */
unsigned
bf_bits_add(const BfGeometry *geometry, uint8_t *bits, uint64_t hash)
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

/*
 * Add a hash to a layer with this many bits set, unless more than full would
 * be: whether it is full depends on its content, not on the key that came
 * last.  Returns false, and leaves the bits alone, if there is no room.
 */
bool
bf_bits_add_within(const BfGeometry *geometry, uint8_t *bits, uint64_t hash,
				   uint64_t full, uint64_t *bits_set)
{
	uint8_t		before[1 << (BF_MAX_BLOCK_LOG2 - 3)];
	size_t		size = (size_t) 1 << (geometry->block_log2 - 3);
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

/*
 * The kernels below walk through whole words: a block is a multiple of 64
 * bytes.  Compilers make good code of them for any processor, except that
 * the instruction which counts bits is not in the baseline of x86-64.
 */
#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_POPCNT		__builtin_cpu_supports("popcnt")
#define WITH_POPCNT		__attribute__((target("popcnt")))
#endif

/* Bytes to walk through between two check for interrupts: less than a millisecond. */
#define CHUNK		((size_t) 1 << 20)

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

static inline uint64_t
count_words(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
		count += count_word(load_word(bits + i));
	return count;
}

static inline uint64_t
count_union_words(const uint8_t *x, const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
		count += count_word(load_word(x + i) | load_word(y + i));
	return count;
}

static inline void
unite_words(uint8_t *to, const uint8_t *from, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) | load_word(from + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

static inline void
intersect_words(uint8_t *to, const uint8_t *with, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) & load_word(with + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

#ifdef HAVE_POPCNT
WITH_POPCNT static uint64_t
count_by_popcnt(const uint8_t *bits, size_t size)
{
	return count_words(bits, size);
}

WITH_POPCNT static uint64_t
count_union_by_popcnt(const uint8_t *x, const uint8_t *y, size_t size)
{
	return count_union_words(x, y, size);
}
#endif

/* Poll, and return the length of the next chunk. */
static size_t
next_chunk(const BfEnv *env, size_t left)
{
	env->check_interrupts(env->context);
	return left < CHUNK ? left : CHUNK;
}

uint64_t
bf_bits_count(const uint8_t *bits, size_t size)
{
#ifdef HAVE_POPCNT
	if (HAVE_POPCNT)
		return count_by_popcnt(bits, size);
#endif
	return count_words(bits, size);
}

/*
 * Rate of a layer by its content: a key falls into any of the blocks, and its
 * k positions there upon any of the bits.
 */
double
bf_bits_fpp(const BfGeometry *geometry, const uint8_t *bits)
{
	size_t		size = (size_t) 1 << (geometry->block_log2 - 3);
	double		sum = 0;
	uint32_t	i;
	unsigned	j;

	for (i = 0; i < geometry->nblocks; i++, bits += size)
	{
		double		set = (double) bf_bits_count(bits, size) /
			(double) (8 * size);
		double		fpp = 1;

		for (j = 0; j < geometry->k; j++)
			fpp *= set;
		sum += fpp;
	}
	return sum / geometry->nblocks;
}

uint64_t
bf_bits_count_union(const BfEnv *env, const uint8_t *x, const uint8_t *y,
					size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(env, size - at);
#ifdef HAVE_POPCNT
		if (HAVE_POPCNT)
		{
			count += count_union_by_popcnt(x + at, y + at, n);
			continue;
		}
#endif
		count += count_union_words(x + at, y + at, n);
	}
	return count;
}

void
bf_bits_unite(const BfEnv *env, uint8_t *to, const uint8_t *from,
			  size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(env, size - at);
		unite_words(to + at, from + at, n);
	}
}

void
bf_bits_intersect(const BfEnv *env, uint8_t *to, const uint8_t *with,
				  size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(env, size - at);
		intersect_words(to + at, with + at, n);
	}
}

void
bf_bits_copy(const BfEnv *env, uint8_t *to, const uint8_t *from,
			 size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(env, size - at);
		memcpy(to + at, from + at, n);
	}
}

/*
 * Write the union of each run of factor blocks as one block.  A key's block
 * number in the folded layer is its old one divided by factor, because
 * floor(floor(hN / 2^64) / f) = floor(h(N/f) / 2^64) where f divides N.
 */
void
bf_bits_fold(const BfEnv *env, uint8_t *to, const uint8_t *from,
			 uint32_t nblocks, uint32_t factor, size_t block_size)
{
	uint32_t	i;

	for (i = 0; i < nblocks; i++)
	{
		if (i % (CHUNK / block_size) == 0)
			env->check_interrupts(env->context);
		if (i % factor == 0)
		{
			if (i > 0)
				to += block_size;
			memcpy(to, from, block_size);
		}
		else
			unite_words(to, from, block_size);
		from += block_size;
	}
}

/* The bits of a word ORed in pairs, as the low half of a word. */
static inline uint32_t
halve_word(uint64_t x)
{
	x = (x | x >> 1) & UINT64_C(0x5555555555555555);
	x = (x | x >> 1) & UINT64_C(0x3333333333333333);
	x = (x | x >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	x = (x | x >> 4) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x | x >> 8) & UINT64_C(0x0000FFFF0000FFFF);
	return (uint32_t) (x | x >> 16);
}

/*
 * OR a layer into another one of the same generation, with blocks not larger
 * and no more hash functions: whatever the one contains, the other does.
 *
 * A block is an interval of hashes, so its keys belong into the blocks of the
 * other layer that overlap this interval, and it is ORed into all of them.
 * Key by key, the positions are the same up to the number of their bits: a
 * position in a block of half the size is the old one without its last bit.
 */
void
bf_bits_unite_into(const BfEnv *env, const BfGeometry *geometry, uint8_t *to,
				   const BfGeometry *from_geometry, const uint8_t *from)
{
	uint8_t		block[1 << (BF_MAX_BLOCK_LOG2 - 3)];
	size_t		from_size = (size_t) 1 << (from_geometry->block_log2 - 3);
	size_t		to_size = (size_t) 1 << (geometry->block_log2 - 3);
	uint64_t	nfrom = from_geometry->nblocks;
	uint64_t	nto = geometry->nblocks;
	uint64_t	i,
				j;

	for (i = 0; i < nfrom; i++)
	{
		uint64_t	last = ((i + 1) * nto - 1) / nfrom;
		size_t		size = from_size;

		bf_check_interrupts(env, i);
		memcpy(block, from + i * from_size, size);
		for (; size > to_size; size /= 2)
		{
			size_t		at;

			for (at = 0; at < size; at += 8)
				bf_store32(block + at / 2, halve_word(bf_load64(block + at)));
		}
		for (j = i * nto / nfrom; j <= last; j++)
			unite_words(to + j * to_size, block, to_size);
	}
}
