/*-------------------------------------------------------------------------
 *
 * range.c
 *	  The keys of a join filter in their order: the smallest, the largest, and
 *	  all of them while they are few.
 *
 * Bits tell whether one key is there; a scan that is to be skipped needs to
 * know what all keys have in common.  Ranges are collected only for filters
 * that some scan may be skipped by, see skip.c.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/detoast.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "join/run/hash.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/typcache.h"

/* The most keys that are listed. */
#define MAX_LISTED		100

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
	Datum		keys[MAX_LISTED];	/* in order; or the two ends */
	uint8		recent[4096];	/* where a key of this hash was last */
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
 * equality.  Under a collation that is not deterministic, other operators of the
 * family may distinguish keys that the join does not.
 */
static void
find_order(Range *range)
{
	Oid			family = lookup_type_cache(getBaseType(range->type),
										   TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if ((OidIsValid(range->order.ssup_collation) &&
		 !get_collation_isdeterministic(range->order.ssup_collation)) ||
		family >= FirstNormalObjectId ||
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
	range->unknown = !OidIsValid(range->less);
	return range;
}

/* Collect the keys in their order, too, in the memory of the execution. */
void
pgbloom_join_want_ranges(PgBloomJoinRanges *ranges)
{
	MemoryContext caller;
	int			i;

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
	return ApplySortComparator(a, false, b, false, &range->order);
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
 * The place of a key in the list; returns whether it is there.  Comparing texts
 * or numbers takes longer than all else that is done with a row, and most
 * rows have a key that is listed.  So the bytes are first compared with those of
 * the key that is where the last one of this hash was.
 */
static bool
find_key(Range *range, Datum key, PgBloomJoinKey *hash_by, int *place)
{
	uint64		hash = hash_by == NULL ? 0 : pgbloom_join_hash(hash_by, key, 0);
	uint8	   *recent = &range->recent[hash % lengthof(range->recent)];
	int			low = 0;
	int			high = range->nlisted;

	if (*recent < range->nlisted &&
		datum_image_eq(key, range->keys[*recent], range->byval, range->len))
		return true;
	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			order = compare_keys(range, key, range->keys[middle]);

		if (order == 0)
		{
			*recent = (uint8) middle;
			return true;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	*place = low;
	return false;
}

/* Remember the ends of the list only. */
static void
drop_list(Range *range)
{
	int			i;

	for (i = 1; i < range->nlisted - 1; i++)
		release_key(range, range->keys[i]);
	if (range->nlisted == 1)
		range->keys[1] = range->keys[0];
	else
		range->keys[1] = range->keys[range->nlisted - 1];
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

/* Add a key, which is copied into this memory. */
void
pgbloom_join_add_to_range(Range *range, Datum key, PgBloomJoinKey *hash_by,
						  MemoryContext context)
{
	int			place;
	Datum		copy;

	if (range->unknown)
		return;

	/* not earlier: this opens a locale, which may fail */
	if (range->order.comparator == NULL)
		PrepareSortSupportFromOrderingOp(range->less, &range->order);
	if (range->nlisted != ONLY_ENDS)
	{
		if (find_key(range, key, hash_by, &place))
			return;
		if (range->nlisted == MAX_LISTED)
			drop_list(range);
	}
	if (range->nlisted == ONLY_ENDS)
	{
		if (compare_keys(range, key, range->keys[0]) < 0)
			replace_range_end(range, 0, key, context);
		else if (compare_keys(range, key, range->keys[1]) > 0)
			replace_range_end(range, 1, key, context);
		return;
	}
	if (!copy_key(range, key, context, &copy))
	{
		range->unknown = true;
		return;
	}
	memmove(&range->keys[place + 1], &range->keys[place],
			sizeof(Datum) * (range->nlisted - place));
	range->keys[place] = copy;
	range->nlisted++;
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
pgbloom_join_range_meets(const Range *range, FmgrInfo *compare,
						 const Datum *low, const Datum *high, bool with_high)
{
	Oid			collation = range->order.ssup_collation;
	int			first = 0;
	int			end = range->nlisted == ONLY_ENDS ? 2 : range->nlisted;
	int			n = end;
	int			order;

	if (range->unknown)
		return true;

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

static Datum
last_key(const Range *range)
{
	return range->keys[range->nlisted == ONLY_ENDS ? 1 : range->nlisted - 1];
}

/* Do operators of this family and collation have the order of the range? */
bool
pgbloom_join_range_agrees(const Range *range, Oid family, Oid collation)
{
	Oid			bounds[2];

	return !range->unknown && family < FirstNormalObjectId &&
		collation == range->order.ssup_collation &&
		find_bounds(range, family, bounds) &&
		bounds[0] == range->bounds[0] && bounds[1] == range->bounds[1];
}

/*
 * Conditions on a column of an index, whose strategies are those of btree:
 * the column is not below the smallest key, nor above the largest.  Returns
 * false if there are no keys.
 */
bool
pgbloom_join_range_scan_keys(const Range *range, AttrNumber column,
							 ScanKey keys)
{
	if (range->unknown || range->nlisted == 0)
		return false;
	ScanKeyEntryInitialize(&keys[0], 0, column, BTGreaterEqualStrategyNumber,
						   range->right, range->order.ssup_collation,
						   get_opcode(range->bounds[0]), range->keys[0]);
	ScanKeyEntryInitialize(&keys[1], 0, column, BTLessEqualStrategyNumber,
						   range->right, range->order.ssup_collation,
						   get_opcode(range->bounds[1]), last_key(range));
	return true;
}
