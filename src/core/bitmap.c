/*-------------------------------------------------------------------------
 *
 * bitmap.c
 *	  The bits of whole layers: count, OR, AND, copy, compare, fold.
 *
 * The loops walk through words of 64 bits: a block is a multiple of 64
 * bytes.  Compilers make good code of them for any processor, except that the
 * instruction which counts bits is not in the baseline of x86-64; there it is
 * chosen at run time.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"

/*
 * Bytes between two checks for interrupts: a few microseconds.  bf_bitmap_and
 * goes over them twice, the second time in the nearest cache.
 */
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

static inline uint64_t
count_or_words(uint8_t *to, const uint8_t *x, const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		i;

	for (i = 0; i < size; i += 8)
	{
		uint64_t	word = load_word(x + i) | load_word(y + i);

		if (to != NULL)
			memcpy(to + i, &word, sizeof(word));
		count += count_word(word);
	}
	return count;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static uint64_t
count_or_by_popcnt(uint8_t *to, const uint8_t *x, const uint8_t *y, size_t size)
{
	return to == NULL ? count_or_words(NULL, x, y, size) :
		count_or_words(to, x, y, size);
}
#endif

/* The number of bits set in x, y or both, which are stored if to is not NULL. */
static uint64_t
count_or_chunk(uint8_t *to, const uint8_t *x, const uint8_t *y, size_t size)
{
#if defined(__x86_64__) && defined(__GNUC__)
	if (__builtin_cpu_supports("popcnt"))
		return count_or_by_popcnt(to, x, y, size);
#endif
	return count_or_words(to, x, y, size);
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

/* Check for interrupts and return the length of the next chunk. */
static inline size_t
next_chunk(const BfInterrupts *interrupts, size_t left)
{
	bf_check_interrupts(interrupts);
	return left < CHUNK ? left : CHUNK;
}

/* The number of bits set in blocks of so many bytes, without checks. */
uint64_t
bf_blocks_bits_set(const uint8_t *blocks, size_t size)
{
	return count_or_chunk(NULL, blocks, blocks, size);
}

/* The number of bits set. */
uint64_t
bf_bitmap_count(const BfInterrupts *interrupts, const uint8_t *bits,
				size_t size)
{
	return bf_bitmap_count_or(interrupts, bits, bits, size);
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
		count += count_or_chunk(NULL, x + at, y + at, n);
	}
	return count;
}

/* The number of bits set in at least one of n layers of equal geometry. */
uint64_t
bf_bitmap_count_union(const BfInterrupts *interrupts, const BfLayer *layers,
					  int n)
{
	uint8_t		bits[BF_MAX_BLOCK_SIZE];
	size_t		size = bf_geometry_size(&layers[0].geometry);
	size_t		length = bf_blocks_size(&layers[0].geometry, 1);
	size_t		unchecked = 0;
	uint64_t	count = 0;
	size_t		at;
	int			i;

	for (at = 0; at < size; at += length)
	{
		memcpy(bits, layers[0].bits + at, length);
		for (i = 1; i < n; i++)
		{
			unchecked += length;
			if (unchecked >= CHUNK)
			{
				bf_check_interrupts(interrupts);
				unchecked = 0;
			}
			or_words(bits, layers[i].bits + at, length);
		}
		count += bf_blocks_bits_set(bits, length);
	}
	return count;
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
		count += count_or_chunk(to + at, to + at, from + at, n);
	}
	return count;
}

/* The same without counting them, which is faster. */
void
bf_bitmap_or(const BfInterrupts *interrupts, uint8_t *to, const uint8_t *from,
			 size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
		or_words(to + at, from + at, n);
	}
}

/* The bits that are set in both of two layers; returns how many these are. */
uint64_t
bf_bitmap_and(const BfInterrupts *interrupts, uint8_t *to, const uint8_t *x,
			  const uint8_t *y, size_t size)
{
	uint64_t	count = 0;
	size_t		at,
				n,
				i;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
		for (i = at; i < at + n; i += 8)
		{
			uint64_t	word = load_word(x + i) & load_word(y + i);

			memcpy(to + i, &word, sizeof(word));
		}
		count += bf_blocks_bits_set(to + at, n);
	}
	return count;
}

void
bf_bitmap_copy(const BfInterrupts *interrupts, uint8_t *to,
			   const uint8_t *from, size_t size)
{
	size_t		at,
				n;

	for (at = 0; at < size; at += n)
	{
		n = next_chunk(interrupts, size - at);
		memcpy(to + at, from + at, n);
	}
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
			or_words(to, from, block_size);
		else
		{
			to += i > 0 ? block_size : 0;
			memmove(to, from, block_size);
		}
	}
}
