/*-------------------------------------------------------------------------
 *
 * test_list.c
 *	  Ascending lists of hashes, against qsort() and linear search.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bytes.h"
#include "internal.h"

/* Stands before and after each list. */
#define SENTINEL	UINT64_C(0xDEADBEEFDEADBEEF)

typedef enum Order
{
	RANDOM,
	SORTED,
	REVERSED,
	ALL_EQUAL,
	FEW_DISTINCT,
	SAWTOOTH,
	ONLY_BYTE_0,				/* these eight differ in one byte alone */
	ONLY_BYTE_7 = ONLY_BYTE_0 + 7,
	LOW_HALF,
	HIGH_HALF,
	SORTED_BUT_LAST,
	EXTREMES,
	ORDERS
} Order;

static int
compare(const void *x, const void *y)
{
	uint64_t	a = *(const uint64_t *) x;
	uint64_t	b = *(const uint64_t *) y;

	return a < b ? -1 : a > b;
}

static uint64_t
item(Order order, size_t i, size_t n, uint64_t *state)
{
	uint64_t	random = random64(state);

	switch (order)
	{
		case SORTED:
			return i * UINT64_C(1000003);
		case REVERSED:
			return UINT64_MAX - i * UINT64_C(1000003);
		case ALL_EQUAL:
			return UINT64_C(0x0123456789ABCDEF);
		case FEW_DISTINCT:
			return random % 5 * UINT64_C(0x3333333333333333);
		case SAWTOOTH:
			return (uint64_t) (i % 17) << 56 | (uint64_t) (i % 31) << 24;
		case LOW_HALF:
			return random & 0xFFFFFFFF;
		case HIGH_HALF:
			return random | 0xFFFFFFFF;
		case SORTED_BUT_LAST:
			return i + 1 < n ? (uint64_t) i << 40 : 1;
		case EXTREMES:
			return random % 3 == 0 ? 0 : random % 3 == 1 ? UINT64_MAX : random;
		default:
			if (order >= ONLY_BYTE_0 && order <= ONLY_BYTE_7)
				return UINT64_C(0x4242424242424242) ^
					(random & 0xFF) << 8 * (order - ONLY_BYTE_0);
			return random;
	}
}

static uint64_t *
guarded(size_t n)
{
	uint64_t   *list = exactly((n + 2) * sizeof(uint64_t));

	list[0] = list[n + 1] = SENTINEL;
	return list + 1;
}

static void
release(uint64_t *list, size_t n)
{
	HOLDS(list[-1] == SENTINEL && list[n] == SENTINEL);
	free(list - 1);
}

/* Distinct items of a sorted list, by the plainest loop. */
static size_t
reference_dedup(uint64_t *list, size_t n)
{
	size_t		cache = n > 0;

	for (size_t i = 1; i < n; i++)
		if (list[i] != list[i - 1])
			list[cache++] = list[i];
	return cache;
}

static void
sort_and_dedup(Order order, size_t n, uint64_t *state)
{
	uint64_t   *list = guarded(n);
	uint64_t   *expected = exactly(n * sizeof(uint64_t));
	TestEnv		env;
	size_t		cache;
	size_t		distinct;

	for (size_t i = 0; i < n; i++)
		list[i] = expected[i] = item(order, i, n, state);
	qsort(expected, n, sizeof(uint64_t), compare);

	env_init(&env, SIZE_MAX);
	bf_list_sort(&env.env.interrupts, list, n);
	EQUAL(memcmp(list, expected, n * sizeof(uint64_t)), 0);

	cache = bf_list_dedup(&no_interrupts, list, n);
	distinct = n == 0 ? 0 : reference_dedup(expected, n);
	EQUAL(cache, distinct);
	EQUAL(memcmp(list, expected, distinct * sizeof(uint64_t)), 0);
	release(list, n);
	free(expected);
}

static void
test_sort(void)
{
	static const size_t sizes[] = {
		255, 256, 257, 500, 1000, 4095, 4096, 4097, 10000, 65536
	};
	uint64_t	state = 1;

	for (int order = 0; order < ORDERS; order++)
	{
		/* All sizes around the change from insertion to radix sort. */
		for (size_t i = 0; i < 130; i++)
			sort_and_dedup((Order) order, i, &state);
		for (size_t i = 0; i < LENGTH(sizes); i++)
			sort_and_dedup((Order) order, sizes[i], &state);
	}
}

/* Large enough for several levels of a radix sort of random hashes. */
static void
test_sort_large(void)
{
	uint64_t	state = 2;

	for (int order = 0; order < ORDERS; order++)
		sort_and_dedup((Order) order, (size_t) scaled(300000, 30000), &state);
	sort_and_dedup(RANDOM, (size_t) scaled(3000000, 200000), &state);
}

typedef struct Sorted
{
	const uint64_t *list;
	size_t		n;
	uint64_t	sum;
	long		polls;
} Sorted;

static uint64_t
sum_of(const uint64_t *list, size_t n)
{
	uint64_t	sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i] * list[i];
	return sum;
}

static void
poll_sort(void *context)
{
	Sorted	   *sorted = context;

	sorted->polls++;
	EQUAL(sum_of(sorted->list, sorted->n), sorted->sum);
}

/* A check for interrupts may be the end: then no hash must be lost. */
static void
test_sort_polls(void)
{
	size_t		n = 300000;
	uint64_t   *list = exactly(n * sizeof(uint64_t));
	uint64_t	state = 3;
	Sorted		sorted = {0};
	BfInterrupts interrupts;

	for (size_t i = 0; i < n; i++)
		list[i] = item(RANDOM, i, n, &state);
	sorted.list = list;
	sorted.n = n;
	sorted.sum = sum_of(list, n);
	interrupts.check = poll_sort;
	interrupts.context = &sorted;
	bf_list_sort(&interrupts, list, n);
	CHECK(sorted.polls > 200, "%ld polls", sorted.polls);

	/* What is sorted already is left alone. */
	sorted.polls = 0;
	bf_list_sort(&interrupts, list, n);
	CHECK(sorted.polls == (long) (n / 4096), "%ld polls", sorted.polls);
	free(list);
}

static void
poll_dedup(void *context)
{
	Sorted	   *sorted = context;
	uint64_t   *copy = exactly(sorted->n * sizeof(uint64_t));

	sorted->polls++;
	memcpy(copy, sorted->list, sorted->n * sizeof(uint64_t));
	qsort(copy, sorted->n, sizeof(uint64_t), compare);
	EQUAL(sum_of(copy, reference_dedup(copy, sorted->n)), sorted->sum);
	free(copy);
}

/* The same for duplicates that are dropped: each hash is once or more. */
static void
test_dedup_polls(void)
{
	size_t		n = 20000;
	uint64_t   *list = exactly(n * sizeof(uint64_t));
	Sorted		sorted = {0};
	BfInterrupts interrupts;

	for (size_t i = 0; i < n; i++)
	{
		list[i] = i % 4 < 3 ? i : i - 1;
		if (i % 4 < 3)
			sorted.sum += i * i;
	}
	sorted.list = list;
	sorted.n = n;
	interrupts.check = poll_dedup;
	interrupts.context = &sorted;
	CHECK(bf_list_dedup(&interrupts, list, n) == n / 4 * 3, "duplicates");
	CHECK(sorted.polls == (long) (n / 4096) + 1, "%ld polls", sorted.polls);
	free(list);
}

static void
merge_lists(size_t n, size_t ntail, int overlap, uint64_t *state)
{
	uint64_t   *list = guarded(n + ntail);
	uint64_t   *tail = exactly(ntail * sizeof(uint64_t));
	uint64_t   *expected = exactly((n + ntail) * sizeof(uint64_t));

	for (size_t i = 0; i < n; i++)
		list[i] = random64(state) >> (overlap == 3 ? 58 : 1);
	for (size_t i = 0; i < ntail; i++)
	{
		/* In between, all before, all after, many equal. */
		uint64_t	hash = random64(state);

		tail[i] = overlap == 0 ? hash >> 1 :
			overlap == 1 ? hash >> 40 :
			overlap == 2 ? hash | (uint64_t) 1 << 63 : hash >> 58;
	}
	qsort(list, n, sizeof(uint64_t), compare);
	qsort(tail, ntail, sizeof(uint64_t), compare);
	if (n > 0)
		memcpy(expected, list, n * sizeof(uint64_t));
	memcpy(expected + n, tail, ntail * sizeof(uint64_t));
	qsort(expected, n + ntail, sizeof(uint64_t), compare);

	bf_list_merge(list, n, tail, ntail);
	EQUAL(memcmp(list, expected, (n + ntail) * sizeof(uint64_t)), 0);
	release(list, n + ntail);
	free(tail);
	free(expected);
}

static void
test_merge(void)
{
	uint64_t	state = 3;

	for (int overlap = 0; overlap < 4; overlap++)
	{
		for (size_t n = 0; n < 12; n++)
			for (size_t ntail = 0; ntail < 12; ntail++)
				merge_lists(n, ntail, overlap, &state);
		merge_lists(1000, 1, overlap, &state);
		merge_lists(1, 1000, overlap, &state);
		merge_lists(1000, 1000, overlap, &state);
	}
}

static bool
linear_search(const uint64_t *list, size_t n, uint64_t hash)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == hash)
			return true;
	return false;
}

static void
search(const uint64_t *list, size_t n, size_t at)
{
	uint8_t    *bytes = exactly(at + 8 * n);

	for (size_t i = 0; i < n; i++)
		bf_store64(bytes + at + 8 * i, list[i]);
	for (size_t i = 0; i < n; i++)
		for (int by = -1; by <= 1; by++)
		{
			uint64_t	hash = list[i] + (uint64_t) by;

			EQUAL(bf_list_contains(bytes + at, n, hash), linear_search(list, n,
																	   hash));
		}
	EQUAL(bf_list_contains(bytes + at, n, 0), linear_search(list, n, 0));
	EQUAL(bf_list_contains(bytes + at, n, UINT64_MAX), linear_search(list, n,
																	 UINT64_MAX));
	free(bytes);
}

static void
test_search(void)
{
	uint64_t	state = 4;
	uint64_t	list[300];

	for (size_t n = 0; n < LENGTH(list); n++)
	{
		for (size_t i = 0; i < n; i++)
			list[i] = random64(&state) >> (n % 3 == 0 ? 54 : 0);

		/* With the first and the last hash there is. */
		if (n > 1 && n % 2 == 0)
		{
			list[0] = 0;
			list[1] = UINT64_MAX;
		}
		qsort(list, n, sizeof(uint64_t), compare);
		search(list, n > 0 ? reference_dedup(list, n) : 0, n % 8);
	}
}

int
main(void)
{
	tap_run("sorting and dropping duplicates, all orders and sizes",
			test_sort);
	tap_run("sorting long lists", test_sort_large);
	tap_run("a sort that is left loses no hash", test_sort_polls);
	tap_run("dropping duplicates that is left loses no hash",
			test_dedup_polls);
	tap_run("merging", test_merge);
	tap_run("searching, with the neighbours of each item", test_search);
	return tap_done();
}
