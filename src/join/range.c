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
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type_d.h"
#include "join/hash.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "pgbloom.h"
#include "utils/catcache.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
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

/* May each role call all operators of a family? */
static bool
is_public_family(Oid family)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY,
											  ObjectIdGetDatum(family));
	bool		is_public = true;
	int			i;

	for (i = 0; i < members->n_members && is_public; i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);
		Oid			unequal = member->amopstrategy == BTEqualStrategyNumber ?
			get_negator(member->amopopr) : InvalidOid;

		is_public = pgbloom_join_is_public(get_opcode(member->amopopr)) &&
			(!OidIsValid(unequal) ||
			 pgbloom_join_is_public(get_opcode(unequal)));
	}
	ReleaseSysCacheList(members);
	return is_public;
}

/*
 * May each role call all operators of the btree families of an equality?  A
 * proof may call any of them.
 */
static bool
are_public_families(Oid equality)
{
	CatCList   *members = SearchSysCacheList1(AMOPOPID,
											  ObjectIdGetDatum(equality));
	bool		are_public = true;
	int			i;

	for (i = 0; i < members->n_members && are_public; i++)
	{
		Form_pg_amop member = (Form_pg_amop)
			GETSTRUCT(&members->members[i]->tuple);

		are_public = member->amopmethod != BTREE_AM_OID ||
			is_public_family(member->amopfamily);
	}
	ReleaseSysCacheList(members);
	return are_public;
}

/*
 * Find the default btree operators of the type if they agree with the join's
 * equality.  The order of a type whose components have none cannot be used, nor
 * one by functions that are not in C, which may fail.  Without a collation that
 * it needs, it would fail at once, but the join only with the first key.  Under
 * one that is not deterministic, other operators of the family, or of another
 * one with the same equality, may distinguish keys that the join does not.
 */
static void
find_order(Range *range)
{
	TypeCacheEntry *entry = lookup_type_cache(range->type,
											  TYPECACHE_BTREE_OPFAMILY |
											  TYPECACHE_CMP_PROC);
	Oid			family = entry->btree_opf;

	if (!OidIsValid(entry->cmp_proc) ||
		!pgbloom_join_is_in_c(entry->cmp_proc) ||
		type_is_rowtype(range->type) ||
		(OidIsValid(range->order.ssup_collation) &&
		 !get_collation_isdeterministic(range->order.ssup_collation)) ||
		pgbloom_join_hash_may_fail(range->equality, range->order.ssup_collation,
								   range->type) ||
		get_op_opfamily_strategy(range->equality,
								 family) != BTEqualStrategyNumber ||
		!find_bounds(range, family, range->bounds) ||
		!pgbloom_join_is_in_c(get_opcode(range->bounds[0])) ||
		!pgbloom_join_is_in_c(get_opcode(range->bounds[1])) ||
		!are_public_families(range->equality))
		return;
	range->less = get_opfamily_member(family, range->right, range->right,
									  BTLessStrategyNumber);
}

/* A range of keys of this type, which the join compares by this operator. */
Range *
pgbloom_join_make_range(Oid equality, Oid collation, Oid type)
{
	Range	   *range = palloc0(sizeof(Range));

	range->equality = equality;
	op_input_types(equality, &range->left, &range->right);
	range->order.ssup_cxt = CurrentMemoryContext;
	range->order.ssup_collation = collation;
	range->type = type;
	get_typlenbyval(type, &range->len, &range->byval);
	find_order(range);
	pgbloom_join_clear_range(range);
	return range;
}

/* Forget all keys, whose memory has been released. */
void
pgbloom_join_clear_range(Range *range)
{
	range->unknown = !OidIsValid(range->less);
	range->nlisted = 0;
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

static Const *
make_key_const(const Range *range, Datum key)
{
	return makeConst(range->type, -1, range->order.ssup_collation, range->len,
					 key, false, range->byval);
}

/* outer key OPERATOR key */
static Expr *
make_key_clause(const Range *range, Expr *outer, Oid operator, Datum key)
{
	Expr	   *value = (Expr *) make_key_const(range, key);
	Expr	   *clause = make_opclause(operator, BOOLOID, false, outer, value,
									   InvalidOid,
									   range->order.ssup_collation);

	set_opfuncid((OpExpr *) clause);
	return clause;
}

static Datum
last_key(const Range *range)
{
	return range->keys[range->nlisted == ONLY_ENDS ? 1 : range->nlisted - 1];
}

/*
 * What is true of the outer key of each row that may have a match: a list of
 * conditions, or NIL if nothing is known.
 */
List *
pgbloom_join_range_bounds(const Range *range, Expr *outer)
{
	if (range->unknown || range->nlisted == 0)
		return NIL;
	return list_make2(make_key_clause(range, outer, range->bounds[0],
									  range->keys[0]),
					  make_key_clause(range, outer, range->bounds[1],
									  last_key(range)));
}

/*
 * The same as outer key = one OR another, or NULL if they are not listed, or
 * more than most.
 */
Expr *
pgbloom_join_range_list(const Range *range, Expr *outer, double most)
{
	List	   *clauses = NIL;
	int			i;

	if (range->unknown || range->nlisted <= 0 || range->nlisted > most)
		return NULL;
	for (i = 0; i < range->nlisted; i++)
		clauses = lappend(clauses, make_key_clause(range, outer,
												   range->equality,
												   range->keys[i]));
	return make_orclause(clauses);
}

/* The listed keys as constants, or NIL if the keys are not listed. */
List *
pgbloom_join_range_consts(const Range *range)
{
	List	   *consts = NIL;
	int			i;

	if (range->unknown)
		return NIL;
	for (i = 0; i < range->nlisted; i++)
		consts = lappend(consts, make_key_const(range, range->keys[i]));
	return consts;
}

/* Do hash operators of this family and collation include the join's? */
bool
pgbloom_join_range_equal_in(const Range *range, Oid family, Oid collation)
{
	return collation == range->order.ssup_collation &&
		op_in_opfamily(range->equality, family);
}

/* Do operators of this family and collation have the order of the range? */
bool
pgbloom_join_range_agrees(const Range *range, Oid family, Oid collation)
{
	Oid			bounds[2];

	return !range->unknown && collation == range->order.ssup_collation &&
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

/* A range in shared memory, followed by its keys. */
typedef struct SharedRange
{
	bool		unknown;
	int			nlisted;
} SharedRange;

/* Write a range for other processes, without the list if that is too long. */
void
pgbloom_join_write_range(const Range *range, void *place)
{
	SharedRange *shared = place;
	char	   *to = (char *) (shared + 1);
	int			n = range->nlisted == ONLY_ENDS ? 2 : range->nlisted;
	Size		size = sizeof(SharedRange);
	int			i;

	shared->unknown = range->unknown;
	shared->nlisted = range->nlisted;
	if (range->unknown)
		return;
	for (i = 0; i < n; i++)
		size += datumEstimateSpace(range->keys[i], false, range->byval,
								   range->len);
	if (size > PGBLOOM_SHARED_RANGE_SIZE)
		shared->nlisted = ONLY_ENDS;
	for (i = 0; i < n; i++)
	{
		if (size <= PGBLOOM_SHARED_RANGE_SIZE || i == 0 || i == n - 1)
			datumSerialize(range->keys[i], false, range->byval, range->len,
						   &to);
	}
}

/* Add the keys that another process has written. */
void
pgbloom_join_read_range(Range *range, void *place, MemoryContext context)
{
	SharedRange *shared = place;
	char	   *from = (char *) (shared + 1);
	int			n = shared->nlisted == ONLY_ENDS ? 2 : shared->nlisted;
	int			i;

	range->unknown |= shared->unknown;
	if (range->unknown)
		return;
	for (i = 0; i < n; i++)
	{
		bool		isnull;
		Datum		key = datumRestore(&from, &isnull);

		pgbloom_join_add_to_range(range, key, NULL, context);
		release_key(range, key);
	}
	if (shared->nlisted == ONLY_ENDS && range->nlisted > 0)
		drop_list(range);
}
