/*-------------------------------------------------------------------------
 *
 * list.c
 *	  Ascending lists of distinct hashes, the sparse form of a filter.
 *
 * Hashes are spread evenly over 64 bits, so a radix sort from the top byte
 * down is done after two or three bytes.  It also sorts lists that somebody
 * made up: no input makes it slower than eight passes.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "internal.h"

/* Below this length, insertion is faster than another pass. */
#define SHORT_LIST		48

/* From this length on, a pass may take a millisecond. */
#define MANY			65536

/* Hashes in one part of a list that is read in parts. */
#define PART			128

/* Parts that are looked for by interpolation before the rest is halved. */
#define INTERPOLATIONS	6

static void
insertion_sort(uint64_t *list, size_t n)
{
	size_t		i,
				j;

	for (i = 1; i < n; i++)
	{
		uint64_t	hash = list[i];

		for (j = i; j > 0 && list[j - 1] > hash; j--)
			list[j] = list[j - 1];
		list[j] = hash;
	}
}

/*
 * American flag sort by the byte at shift and, within equal bytes, by those
 * below (McIlroy, Bostic, McIlroy: Engineering Radix Sort, 1993).
 */
static void
radix_sort(const BfEnv *env, uint64_t *list, size_t n, unsigned shift)
{
	size_t		start[256],
				end[256];
	size_t		position = 0;
	size_t		i;
	unsigned	byte;

	/* Now and between two buckets, no hash is in hand: all are in the list. */
	if (n >= MANY)
		env->check_interrupts(env->context);
	memset(end, 0, sizeof(end));
	for (i = 0; i < n; i++)
		end[list[i] >> shift & 0xFF]++;
	for (byte = 0; byte < 256; byte++)
	{
		start[byte] = position;
		position += end[byte];
		end[byte] = position;
	}

	for (byte = 0; byte < 256; byte++)
	{
		while (start[byte] < end[byte])
		{
			uint64_t	hash = list[start[byte]];
			unsigned	home;

			while ((home = hash >> shift & 0xFF) != byte)
			{
				uint64_t	other = list[start[home]];

				list[start[home]++] = hash;
				hash = other;
			}
			list[start[byte]++] = hash;
		}
		if (n >= MANY)
			env->check_interrupts(env->context);
	}

	if (shift == 0)
		return;
	position = 0;
	for (byte = 0; byte < 256; byte++)
	{
		size_t		length = end[byte] - position;

		if (length > SHORT_LIST)
			radix_sort(env, list + position, length, shift - 8);
		else
			insertion_sort(list + position, length);
		position = end[byte];
	}
}

/* Sort a list, which may be sorted already. */
void
bf_list_sort(const BfEnv *env, uint64_t *list, size_t n)
{
	size_t		i = 1;

	while (i < n && list[i - 1] <= list[i])
		i++;
	if (i >= n)
		return;
	if (n > SHORT_LIST)
		radix_sort(env, list, n, 56);
	else
		insertion_sort(list, n);
}

/* Keep one of each run of equal hashes; returns how many are left. */
size_t
bf_list_dedup(uint64_t *list, size_t n)
{
	size_t		cache = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		if (cache == 0 || list[cache - 1] != list[i])
			list[cache++] = list[i];
	}
	return cache;
}

/*
 * Merge an ascending tail, which lies elsewhere, into an ascending list that
 * has room for both, from the back.
 */
void
bf_list_merge(uint64_t *list, size_t n, const uint64_t *tail, size_t ntail)
{
	while (ntail > 0)
	{
		size_t		to = n + ntail - 1;

		if (n > 0 && list[n - 1] > tail[ntail - 1])
			list[to] = list[--n];
		else
			list[to] = tail[--ntail];
	}
}

/* Where a hash is in a list, or would have to be inserted. */
size_t
bf_list_find(const uint64_t *list, size_t n, uint64_t hash)
{
	size_t		low = 0;

	while (low < n)
	{
		size_t		middle = low + (n - low) / 2;

		if (list[middle] < hash)
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* Binary search in the list of an image. */
bool
bf_list_contains(const uint8_t *list, size_t n, uint64_t hash)
{
	while (n > 0)
	{
		size_t		half = n / 2;
		uint64_t	middle = bf_load64(list + 8 * half);

		if (middle == hash)
			return true;
		if (middle < hash)
		{
			list += 8 * (half + 1);
			n -= half + 1;
		}
		else
			n = half;
	}
	return false;
}

/*
 * The same in a list of which parts are read one at a time, from offset at
 * on.  Hashes are spread evenly, so interpolation finds the right part of
 * millions in two or three reads.  A list that somebody made up is halved
 * from some turn on, as in any binary search.
 */
bool
bf_list_contains_sliced(size_t at, size_t n, uint64_t hash,
						  BfReadSlice read, void *context)
{
	size_t		low = 0;
	size_t		high = n;
	uint64_t	below = 0;			/* no hash from low on is less */
	uint64_t	above = UINT64_MAX; /* and none before high is more */
	int			turn;

	for (turn = 0; low < high; turn++)
	{
		size_t		length = high - low;
		size_t		start = low;
		const uint8_t *part;
		uint64_t	first;
		uint64_t	last;

		if (length > PART)
		{
			double		fraction = 0.5;

			if (turn < INTERPOLATIONS)
				fraction = (double) (hash - below) / (double) (above - below);
			start += (size_t) (fraction * (double) length);
			start = start - low < PART / 2 ? low : start - PART / 2;
			if (start > high - PART)
				start = high - PART;
			length = PART;
		}

		part = read(context, at + 8 * start, 8 * length);
		first = bf_load64(part);
		last = bf_load64(part + 8 * (length - 1));
		if (hash < first)
		{
			high = start;
			above = first;
		}
		else if (hash > last)
		{
			low = start + length;
			below = last;
		}
		else
			return bf_list_contains(part, length, hash);
	}
	return false;
}
