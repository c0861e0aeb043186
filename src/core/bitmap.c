/*-------------------------------------------------------------------------
 *
 * bitmap.c
 *	  The bits of whole layers: count, OR, AND, copy, fold.
 *
 * The loops walk through words of 64 bits: a block is a multiple of 64
 * bytes.  Compilers make good code of them for any processor, except that the
 * instruction which counts bits is not in the baseline of x86-64; there it is
 * chosen at run time.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "bits.h"
#include "bytes.h"
#include "interrupts.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_POPCNT		__builtin_cpu_supports("popcnt")
#define WITH_POPCNT		__attribute__((target("popcnt")))
#endif

/* Bytes between two checks for interrupts: less than a millisecond. */
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
count_or_words(const uint8_t *x, const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
		count += count_word(load_word(x + i) | load_word(y + i));
	return count;
}

/*
 * OR as many bytes as the smallest block has.  GCC makes vector instructions
 * of this loop at -O2, too, because the number of iterations is known and the
 * two do not overlap.
 */
static inline void
or_64_bytes(uint8_t *restrict to, const uint8_t *restrict from)
{
	int			i;

	for (i = 0; i < 64; i++)
		to[i] |= from[i];
}

static inline void
or_words(uint8_t *to, const uint8_t *from, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 64)
		or_64_bytes(to + i, from + i);
}

static inline uint64_t
or_and_count_words(uint8_t *to, const uint8_t *from, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) | load_word(from + i);

		memcpy(to + i, &word, sizeof(word));
		count += count_word(word);
	}
	return count;
}

static inline void
and_words(uint8_t *to, const uint8_t *with, size_t size)
{
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(to + i) & load_word(with + i);

		memcpy(to + i, &word, sizeof(word));
	}
}

static void
copy_words(uint8_t *to, const uint8_t *from, size_t size)
{
	memcpy(to, from, size);
}

typedef void (*WordsFunction) (uint8_t *to, const uint8_t *from, size_t size);

#ifdef HAVE_POPCNT
WITH_POPCNT static uint64_t
count_by_popcnt(const uint8_t *bits, size_t size)
{
	return count_words(bits, size);
}

WITH_POPCNT static uint64_t
count_or_by_popcnt(const uint8_t *x, const uint8_t *y, size_t size)
{
	return count_or_words(x, y, size);
}

WITH_POPCNT static uint64_t
or_and_count_by_popcnt(uint8_t *to, const uint8_t *from, size_t size)
{
	return or_and_count_words(to, from, size);
}
#endif

/* Check for interrupts and return the length of the next chunk. */
static size_t
next_chunk(const BfInterrupts *interrupts, size_t left)
{
	bf_check_interrupts(interrupts);
	return left < CHUNK ? left : CHUNK;
}

/* The number of bits set in blocks of so many bytes, without checks. */
uint64_t
bf_blocks_bits_set(const uint8_t *bits, size_t size)
{
#ifdef HAVE_POPCNT
	if (HAVE_POPCNT)
		return count_by_popcnt(bits, size);
#endif
	return count_words(bits, size);
}

/* The number of bits set. */
uint64_t
bf_bitmap_count(const BfInterrupts *interrupts, const uint8_t *bits,
				size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
		count += bf_blocks_bits_set(bits + at, n);
	}
	return count;
}

/* The number of bits set in x, y or both. */
uint64_t
bf_bitmap_count_or(const BfInterrupts *interrupts, const uint8_t *x,
				   const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
#ifdef HAVE_POPCNT
		if (HAVE_POPCNT)
		{
			count += count_or_by_popcnt(x + at, y + at, n);
			continue;
		}
#endif
		count += count_or_words(x + at, y + at, n);
	}
	return count;
}

/* The number of bits set in at least one of n layers of equal geometry. */
uint64_t
bf_bitmap_count_union(const BfInterrupts *interrupts, const BfBits *layers,
					  int n)
{
	uint8_t		bits[BF_MAX_BLOCK_SIZE];
	size_t		size = bf_geometry_size(layers[0].geometry);
	size_t		length = bf_block_size(layers[0].geometry);
	uint64_t	count = 0;
	size_t		at;
	int			i;

	for (at = 0; at < size; at += length)
	{
		if (at % (CHUNK / n) < length)
			bf_check_interrupts(interrupts);
		memcpy(bits, layers[0].bits + at, length);
		for (i = 1; i < n; i++)
			or_words(bits, layers[i].bits + at, length);
		count += bf_blocks_bits_set(bits, length);
	}
	return count;
}

/* Apply an operation on two rows of words to one chunk after the other. */
static void
for_each_chunk(const BfInterrupts *interrupts, WordsFunction operation,
			   uint8_t *to, const uint8_t *from, size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
		operation(to + at, from + at, n);
	}
}

/* OR bits into others; returns how many of these are set then. */
uint64_t
bf_bitmap_or_and_count(const BfInterrupts *interrupts, uint8_t *to,
					   const uint8_t *from, size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
#ifdef HAVE_POPCNT
		if (HAVE_POPCNT)
		{
			count += or_and_count_by_popcnt(to + at, from + at, n);
			continue;
		}
#endif
		count += or_and_count_words(to + at, from + at, n);
	}
	return count;
}

void
bf_bitmap_or(const BfInterrupts *interrupts, uint8_t *to, const uint8_t *from,
			 size_t size)
{
	for_each_chunk(interrupts, or_words, to, from, size);
}

void
bf_bitmap_and(const BfInterrupts *interrupts, uint8_t *to,
			  const uint8_t *with, size_t size)
{
	for_each_chunk(interrupts, and_words, to, with, size);
}

void
bf_bitmap_copy(const BfInterrupts *interrupts, uint8_t *to,
			   const uint8_t *from, size_t size)
{
	for_each_chunk(interrupts, copy_words, to, from, size);
}

/* As memcmp. */
int
bf_bitmap_compare(const BfInterrupts *interrupts, const uint8_t *x,
				  const uint8_t *y, size_t size)
{
	int			order = 0;
	size_t		at,
				n;

	for (at = 0; at < size && order == 0; at += n)
	{
		n = next_chunk(interrupts, size - at);
		order = memcmp(x + at, y + at, n);
	}
	return order;
}

/*
 * OR each run of factor blocks into one block of to, which may be from itself;
 * factor divides nblocks.
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

	for (i = 0; i < nblocks; i++)
	{
		if (i % (CHUNK / block_size) == 0)
			bf_check_interrupts(interrupts);
		if (i % factor == 0)
		{
			if (i > 0)
				to += block_size;
			if (to != from)
				memcpy(to, from, block_size);
		}
		else
			or_words(to, from, block_size);
		from += block_size;
	}
}
