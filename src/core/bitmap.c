/*-------------------------------------------------------------------------
 *
 * bitmap.c
 *	  The bits of whole layers: count, OR, AND, fold.
 *
 * The loops walk through words of 64 bits: a block is a multiple of 64
 * bytes.  Compilers make good code of them for any processor, except that the
 * instruction which counts bits is not in the baseline of x86-64; there it is
 * chosen at run time.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"

/* Bytes between two checks for interrupts: a few microseconds. */
#define CHUNK		((size_t) 1 << 14)

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

/* x & y, or x | y: stored if to is not NULL.  Returns how many bits are set. */
static inline uint64_t
combine_words(bool both, uint8_t *to, const uint8_t *x, const uint8_t *y,
			  size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = both ? load_word(x + i) & load_word(y + i) :
			load_word(x + i) | load_word(y + i);

		if (to != NULL)
			memcpy(to + i, &word, sizeof(word));
		count += count_word(word);
	}
	return count;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static uint64_t
combine_by_popcnt(bool both, uint8_t *to, const uint8_t *x, const uint8_t *y,
				  size_t size)
{
	/* A loop for each of them, without branches */
	if (both)
		return combine_words(true, to, x, y, size);
	return to == NULL ? combine_words(false, NULL, x, y, size) :
		combine_words(false, to, x, y, size);
}
#endif

static uint64_t
combine_chunk(bool both, uint8_t *to, const uint8_t *x, const uint8_t *y,
			  size_t size)
{
#if defined(__x86_64__) && defined(__GNUC__)
	if (__builtin_cpu_supports("popcnt"))
		return combine_by_popcnt(both, to, x, y, size);
#endif
	return combine_words(both, to, x, y, size);
}

/*
 * The bits that are set in x or in y, or only those that are set in both;
 * stored if to is not NULL.  Returns how many these are: with y the same as x,
 * the number of bits set.
 */
uint64_t
bf_bitmap_combine(const BfInterrupts *interrupts, bool both, uint8_t *to,
				  const uint8_t *x, const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		bf_check_interrupts(interrupts);
		n = size - at < CHUNK ? size - at : CHUNK;
		count += combine_chunk(both, to == NULL ? NULL : to + at, x + at,
							   y + at, n);
	}
	return count;
}

/* The number of bits set in blocks of so many bytes, without checks. */
uint64_t
bf_blocks_bits_set(const uint8_t *blocks, size_t size)
{
	return combine_chunk(false, NULL, blocks, blocks, size);
}

/* The number of bits set in at least one of n layers of equal geometry. */
uint64_t
bf_bitmap_count_union(const BfInterrupts *interrupts, const BfLayer *layers,
					  int n)
{
	uint8_t		bits[BF_MAX_BLOCK_SIZE];
	size_t		size = bf_geometry_size(&layers[0].geometry);
	uint64_t	count = 0;
	size_t		at;
	int			i;

	for (at = 0; at < size; at += sizeof(bits))
	{
		size_t		length = size - at < sizeof(bits) ? size - at :
			sizeof(bits);

		bf_check_interrupts(interrupts);
		memcpy(bits, layers[0].bits + at, length);
		for (i = 1; i < n; i++)
			(void) combine_chunk(false, bits, bits, layers[i].bits + at,
								 length);
		count += bf_blocks_bits_set(bits, length);
	}
	return count;
}

/*
 * OR each run of factor blocks into one block of to, which may be from itself;
 * factor divides nblocks.
 *
 * The block number of a key in the folded layer is its old one divided by
 * factor, because floor(floor(hN / 2^64) / f) = floor(h(N/f) / 2^64) where f
 * divides N.
 */
void
bf_bitmap_fold(const BfInterrupts *interrupts, uint8_t *to,
			   const uint8_t *from, uint32_t nblocks, uint32_t factor,
			   size_t block_size)
{
	uint32_t	i;

	for (i = 0; i < nblocks; i++, from += block_size)
	{
		if (i % (CHUNK / block_size) == 0)
			bf_check_interrupts(interrupts);
		if (i % factor != 0)
			(void) combine_chunk(false, to, to, from, block_size);
		else
		{
			to += i > 0 ? block_size : 0;
			memmove(to, from, block_size);
		}
	}
}
