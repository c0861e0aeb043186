/*-------------------------------------------------------------------------
 *
 * list.c
 *	  Ascending lists of distinct hashes: the sparse form of a filter.
 *
 * Hashes are spread evenly over 64 bits, so a radix sort from the top byte
 * down ends after two or three bytes, and interpolation finds the right part
 * of a long list at once.  Neither depends on it: a list that an attacker
 * made up takes eight passes to sort, and a binary search to probe.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "internal.h"

/* Below this length, insertion is faster than another pass. */
#define SHORT_LIST		48

/* From this length on, a pass may take a millisecond. */
#define LONG_LIST		65536

/* Hashes in one slice of a list that is read in slices. */
#define SLICE			128

/*
 * Slices chosen by interpolation.  Two or three find a hash among millions
 * that are spread evenly; where six do not, the list is not, and binary search
 * bounds the number of the others.
 */
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
 *
 * Interrupts are checked for only where all hashes are in the list, so that a
 * long jump loses none of them.
 */
static void
radix_sort(const BfInterrupts *interrupts, uint64_t *list, size_t n,
		   unsigned shift)
{
	size_t		start[256],
				end[256];
	size_t		position = 0;
	size_t		i;
	unsigned	byte;

	if (n >= LONG_LIST)
		bf_check_interrupts(interrupts);
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
		if (n >= LONG_LIST)
			bf_check_interrupts(interrupts);
	}

	if (shift == 0)
		return;
	position = 0;
	for (byte = 0; byte < 256; byte++)
	{
		size_t		length = end[byte] - position;

		if (length > SHORT_LIST)
			radix_sort(interrupts, list + position, length, shift - 8);
		else
			insertion_sort(list + position, length);
		position = end[byte];
	}
}

/* Sort a list in place.  One that is sorted already takes a single pass. */
void
bf_list_sort(const BfInterrupts *interrupts, uint64_t *list, size_t n)
{
	size_t		i = 1;

	while (i < n && list[i - 1] <= list[i])
		bf_check_interrupts_at(interrupts, i++, 0);
	if (i >= n)
		return;
	if (n > SHORT_LIST)
		radix_sort(interrupts, list, n, 56);
	else
		insertion_sort(list, n);
}

/*
 * Drop the duplicates of a sorted list; returns how many hashes are left.  At
 * any check for interrupts, each of them is still somewhere in the list.
 */
size_t
bf_list_dedup(const BfInterrupts *interrupts, uint64_t *list, size_t n)
{
	size_t		ndistinct = 0;
	size_t		i;

	for (i = 0; i < n; i++)
	{
		uint64_t	hash = list[i];

		bf_check_interrupts_at(interrupts, i, 0);
		list[ndistinct] = hash;
		ndistinct += i + 1 == n || list[i + 1] != hash;
	}
	return ndistinct;
}

/*
 * Merge an ascending tail into an ascending list, which has room for both.
 * The two do not overlap.  The merge begins at the end and writes to the room
 * behind the list, so it must not be interrupted: a part of the hashes is in
 * the tail only.
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
 * The same in a list at offset at of an image that is read in slices.  The
 * bounds below and above are those of the hashes from low to high - 1, and
 * the slice that is read next is the one where the hash would be if those
 * were spread evenly.
 */
bool
bf_list_contains_sliced(size_t at, size_t n, uint64_t hash,
						BfReadSlice read, void *context)
{
	size_t		low = 0;
	size_t		high = n;
	uint64_t	below = 0;
	uint64_t	above = UINT64_MAX;
	int			turn;

	for (turn = 0; low < high; turn++)
	{
		size_t		length = high - low < SLICE ? high - low : SLICE;
		double		fraction = turn >= INTERPOLATIONS ? 0.5 :
			(double) (hash - below) / (double) (above - below);
		size_t		start = low +
			(size_t) (fraction * (double) (high - low - length));
		const uint8_t *slice = read(context, at + 8 * start, 8 * length);
		uint64_t	first = bf_load64(slice);
		uint64_t	last = bf_load64(slice + 8 * (length - 1));

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
			return bf_list_contains(slice, length, hash);
	}
	return false;
}
