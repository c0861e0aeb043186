/*-------------------------------------------------------------------------
 *
 * range.c
 *	  The keys of a join filter: all of them while they are few, and after that
 *	  the smallest and the largest.
 *
 * Bits tell whether one key is there; a scan that is to be skipped needs to
 * know what all keys have in common.  Keys are collected only for filters that
 * some scan may be skipped by, see skip.c, and compared only if their order is
 * of use to one.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/detoast.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "index/index.h"
#include "join/run/hash.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

/* The most keys that are listed, and slots of the hash table of their places. */
#define MAX_LISTED		1000
#define NSLOTS			2048

/* A key of more bytes is not remembered, and so no key is. */
#define MAX_KEY_SIZE	1024

/* The value of nlisted if only the smallest and the largest are known. */
#define ONLY_ENDS		-1

struct PgBloomJoinRange
{
	Oid			equality;		/* the join's operator */
	Oid			left;			/* types that it compares */
	Oid			right;
	Oid			bounds[2];		/* the operators >= and <= */
	Oid			type;			/* of the inner keys */
	int16		len;
	bool		byval;
	Oid			less;			/* the operator < of their order, or invalid */
	SortSupportData order;
	bool		unknown;		/* a key is not remembered */
	int			nlisted;
	int			nsorted;		/* so many of them are in order */
	Datum		keys[MAX_LISTED];	/* listed; or the two ends */
	uint16		slots[NSLOTS];	/* numbers of listed keys from 1 on, by hash */
	BfiKeys		lookup;			/* the listed keys, once an index is asked */
};
typedef struct PgBloomJoinRange Range;

/* The operators >= and <= of a btree family for the types of the equality. */
static bool
find_bounds(const Range *range, Oid family, Oid bounds[2])
{
	bounds[0] = get_opfamily_member(family, range->left, range->right,
									BTGreaterEqualStrategyNumber);
	bounds[1] = get_opfamily_member(family, range->left, range->right,
									BTLessEqualStrategyNumber);
	return OidIsValid(bounds[0]) && OidIsValid(bounds[1]);
}

/*
 * Find the default btree operators of the type if they agree with the join's
 * equality.
 */
static void
find_order(Range *range)
{
	Oid			family = lookup_type_cache(getBaseType(range->type),
										   TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (family >= FirstNormalObjectId ||
		get_op_opfamily_strategy(range->equality,
								 family) != BTEqualStrategyNumber ||
		!find_bounds(range, family, range->bounds))
		return;
	range->less = get_opfamily_member(family, range->right, range->right,
									  BTLessStrategyNumber);
}

/* A range of keys of this type, which the join compares by this operator. */
static Range *
make_range(Oid equality, Oid collation, Oid type)
{
	Range	   *range = palloc0(sizeof(Range));

	range->equality = equality;
	op_input_types(equality, &range->left, &range->right);
	range->order.ssup_cxt = CurrentMemoryContext;
	range->order.ssup_collation = collation;
	range->type = type;
	get_typlenbyval(type, &range->len, &range->byval);
	find_order(range);
	return range;
}

/*
 * Collect the keys, too, in the memory of the execution.  Is their order of
 * use?
 */
void
pgbloom_join_want_ranges(PgBloomJoinRanges *ranges, bool ordered)
{
	MemoryContext caller;
	int			i;

	ranges->ordered |= ordered;
	if (ranges->context != NULL)
		return;
	ranges->context = AllocSetContextCreate(CurrentMemoryContext,
											"join filter ranges",
											ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(ranges->context);
	for (i = 0; i < ranges->nkeys; i++)
		ranges->ranges[i] = make_range(ranges->operators[i],
									   ranges->collations[i],
									   ranges->types[i]);
	MemoryContextSwitchTo(caller);
}

static int
compare_keys(Range *range, Datum a, Datum b)
{
	/* not earlier: this opens a locale, which may fail */
	if (range->order.comparator == NULL)
		PrepareSortSupportFromOrderingOp(range->less, &range->order);
	return ApplySortComparator(a, false, b, false, &range->order);
}

static int
compare_listed(const void *a, const void *b, void *range)
{
	return compare_keys(range, *(const Datum *) a, *(const Datum *) b);
}

/* Put the listed keys, all of which are known now, in their order. */
static void
sort_list(Range *range)
{
	if (range->nsorted < range->nlisted)
		qsort_arg(range->keys, range->nlisted, sizeof(Datum), compare_listed,
				  range);
	range->nsorted = range->nlisted;
}

/* Copy a key into this memory, unless it is too large. */
static bool
copy_key(const Range *range, Datum key, MemoryContext context, Datum *copy)
{
	MemoryContext caller;
	Size		size;

	*copy = key;
	if (range->byval)
		return true;
	size = range->len == -1 ? toast_raw_datum_size(key) :
		datumGetSize(key, false, range->len);
	if (size > MAX_KEY_SIZE)
		return false;
	caller = MemoryContextSwitchTo(context);
	if (range->len == -1)
		*copy = PointerGetDatum(PG_DETOAST_DATUM_COPY(key));
	else
		*copy = datumCopy(key, false, range->len);
	MemoryContextSwitchTo(caller);
	return true;
}

static void
release_key(const Range *range, Datum key)
{
	if (!range->byval)
		pfree(DatumGetPointer(key));
}

/*
 * The slot of a listed key, or one that is empty.  Comparing texts or numbers
 * takes longer than all else that is done with a row, so keys are the same here
 * if their bytes are.  Equal ones may be listed twice.
 */
static uint16 *
find_slot(Range *range, Datum key, uint64 hash)
{
	uint32		i = hash % NSLOTS;

	while (range->slots[i] != 0 &&
		   !datum_image_eq(key, range->keys[range->slots[i] - 1],
						   range->byval, range->len))
		i = (i + 1) % NSLOTS;
	return &range->slots[i];
}

/* Remember the ends of a full list only. */
static void
keep_ends(Range *range)
{
	Datum		least = range->keys[0];
	Datum		greatest = range->keys[0];
	int			i;

	for (i = 1; i < range->nlisted; i++)
	{
		if (compare_keys(range, range->keys[i], least) < 0)
			least = range->keys[i];
		else if (compare_keys(range, range->keys[i], greatest) > 0)
			greatest = range->keys[i];
	}
	for (i = 0; i < range->nlisted; i++)
	{
		if (range->keys[i] != least && range->keys[i] != greatest)
			release_key(range, range->keys[i]);
	}
	range->keys[0] = least;
	range->keys[1] = greatest;
	range->nlisted = ONLY_ENDS;
}

/* Replace an end by a key that is beyond it. */
static void
replace_range_end(Range *range, int end, Datum key, MemoryContext context)
{
	Datum		copy;

	if (!copy_key(range, key, context, &copy))
		range->unknown = true;
	else
	{
		if (range->keys[0] != range->keys[1])
			release_key(range, range->keys[end]);
		range->keys[end] = copy;
	}
}

/* Add a key of a column, which is copied into this memory. */
void
pgbloom_join_add_to_range(PgBloomJoinRanges *ranges, int column, Datum key,
						  PgBloomJoinKey *hash_by)
{
	Range	   *range = ranges->ranges[column];
	uint16	   *slot;

	if (range->unknown)
		return;
	if (range->nlisted != ONLY_ENDS)
	{
		slot = find_slot(range, key, pgbloom_join_hash(hash_by, key, 0));
		if (*slot != 0)
			return;
		if (range->nlisted < MAX_LISTED)
		{
			if (copy_key(range, key, ranges->context,
						 &range->keys[range->nlisted]))
				*slot = (uint16) ++range->nlisted;
			else
				range->unknown = true;
			return;
		}
		range->unknown = !ranges->ordered || !OidIsValid(range->less);
		if (range->unknown)
			return;
		keep_ends(range);
	}
	if (compare_keys(range, key, range->keys[0]) < 0)
		replace_range_end(range, 0, key, ranges->context);
	else if (compare_keys(range, key, range->keys[1]) > 0)
		replace_range_end(range, 1, key, ranges->context);
}

bool
pgbloom_join_range_is_empty(const Range *range)
{
	return !range->unknown && range->nlisted == 0;
}

/* The type of the keys, as operators and functions take them. */
Oid
pgbloom_join_range_type(const Range *range)
{
	return range->right;
}

/*
 * Is a key, or could be if they are not listed, between two values?  Either of
 * them is NULL if there is no such bound; the upper one may be a part of what is
 * between.  The function compares a value with a key.
 */
bool
pgbloom_join_range_meets(Range *range, FmgrInfo *compare,
						 const Datum *low, const Datum *high, bool with_high)
{
	Oid			collation = range->order.ssup_collation;
	int			first = 0;
	int			end = range->nlisted == ONLY_ENDS ? 2 : range->nlisted;
	int			n = end;
	int			order;

	if (range->unknown)
		return true;
	sort_list(range);

	/* the first key that is not below the lower value */
	while (low != NULL && first < end)
	{
		int			middle = (first + end) / 2;

		if (DatumGetInt32(FunctionCall2Coll(compare, collation, *low,
											range->keys[middle])) > 0)
			first = middle + 1;
		else
			end = middle;
	}
	if (first == n)
		return false;
	if (high == NULL || (first > 0 && range->nlisted == ONLY_ENDS))
		return true;
	order = DatumGetInt32(FunctionCall2Coll(compare, collation, *high,
											range->keys[first]));
	return order > 0 || (with_high && order == 0);
}

/* Are there keys, and have operators of this family and collation their order? */
bool
pgbloom_join_range_agrees(const Range *range, Oid family, Oid collation)
{
	Oid			bounds[2];

	return !range->unknown && range->nlisted != 0 &&
		OidIsValid(range->less) && family < FirstNormalObjectId &&
		collation == range->order.ssup_collation &&
		find_bounds(range, family, bounds) &&
		bounds[0] == range->bounds[0] && bounds[1] == range->bounds[1];
}

/* Put the keys in their order; returns how many are listed, 0 if not all are. */
int
pgbloom_join_range_sort(Range *range)
{
	if (range->nlisted == ONLY_ENDS)
		return 0;
	sort_list(range);
	return range->nlisted;
}

/*
 * Conditions on a column of an index, whose strategies are those of btree: the
 * column is a listed key, or with number -1, neither below the smallest nor above
 * the largest.
 */
void
pgbloom_join_range_scan_keys(Range *range, int number, AttrNumber column,
							 ScanKey keys)
{
	int			first = Max(number, 0);
	int			last = number >= 0 ? number :
		range->nlisted == ONLY_ENDS ? 1 : range->nlisted - 1;

	ScanKeyEntryInitialize(&keys[0], 0, column, BTGreaterEqualStrategyNumber,
						   range->right, range->order.ssup_collation,
						   get_opcode(range->bounds[0]), range->keys[first]);
	ScanKeyEntryInitialize(&keys[1], 0, column, BTLessEqualStrategyNumber,
						   range->right, range->order.ssup_collation,
						   get_opcode(range->bounds[1]), range->keys[last]);
}

/* May an index that is complete have one of the keys? */
bool
pgbloom_join_range_may_be_in(Range *range, const BfiIndex *index)
{
	Oid			collation = range->order.ssup_collation;
	BfiKeys    *lookup = &range->lookup;

	if (range->unknown || range->nlisted == ONLY_ENDS ||
		!bfi_can_look_up(range->equality, collation, range->type,
						 bfi_key_sql_type(index->relation),
						 index->relation->rd_indcollation[0]))
		return true;
	if (lookup->info == NULL)
	{
		lookup->context = range->order.ssup_cxt;
		lookup->values = range->keys;
		lookup->n = range->nlisted;
		lookup->info = pgbloom_make_key_info(range->type, collation,
											 lookup->context, true);
	}
	return bfi_may_have(index, lookup);
}
