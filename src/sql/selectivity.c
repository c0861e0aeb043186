/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *	  Planner support for lookups: selectivity.
 *
 * One estimator serves functions, through their support function, and
 * operators, through RESTRICT.  doc/REFERENCE.md describes it for users.
 *
 * Users may attach these functions to operators and functions of their own,
 * and errors in a query are for its execution to report.  So the estimator
 * checks everything it is given, in particular the types of operands, and
 * returns a default where it cannot estimate; it does not raise errors.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/*
 * Default selectivity when the filter is not known at plan time, usually
 * because a subquery builds it.  Underestimates lead to nested loops over
 * many rows, so err on the high side.
 */
#define DEFAULT_CONTAINS_SEL	0.1

PGDLLEXPORT extern Datum bloom_contains_hash(PG_FUNCTION_ARGS);

/* A condition "filter contains key" whose filter is known. */
typedef struct Condition
{
	BfView		filter;
	VariableStatData key;		/* the key, and its statistics */
	bool		by_hash;		/* the key is a hash made by bloom_hash */
	Oid			collation;
	PgBloomKeyInfo *key_info;	/* of values in statistics, unless by_hash */
} Condition;

PG_FUNCTION_INFO_V1(bloom_contsel);
PG_FUNCTION_INFO_V1(bloom_contjoinsel);
PG_FUNCTION_INFO_V1(bloom_contains_support);

static bool
is_filter(Node *node)
{
	return pgbloom_type_is(getBaseType(exprType(node)), PGBLOOM_FILTER);
}

/*
 * Get the filter and the key of two arguments in either order.  Returns false
 * if there are not exactly one of each.
 */
static bool
get_filter_and_key(List *args, Node **filter, Node **key)
{
	bool		filter_first;

	if (list_length(args) != 2)
		return false;
	filter_first = is_filter(linitial(args));
	*filter = filter_first ? linitial(args) : lsecond(args);
	*key = filter_first ? lsecond(args) : linitial(args);
	return is_filter(lsecond(args)) != filter_first;
}

/*
 * Can values of this type be looked up in the filter?  Sets key_info.
 *
 * Statistics have values of the type of the column, which may differ from
 * that of the key by a relabelling.  Both types must have the key type of the
 * filter: values of a varchar column can be looked up as text, those of a
 * citext column cannot.
 */
static bool
resolve_type(Condition *condition, Oid type)
{
	const BfKeyType *key_type = &condition->filter.params.key_type;

	if (condition->by_hash)
		return getBaseType(type) == INT8OID;
	condition->key_info =
		pgbloom_make_key_info(type, condition->collation,
							  CurrentMemoryContext, false);
	return condition->key_info != NULL &&
		(key_type->code == BF_KEY_NONE ||
		 bf_key_type_equal(&condition->key_info->key_type, key_type));
}

/*
 * May hashing a value raise an error?  Text in encodings other than UTF-8 may
 * have no equivalent in it.  The execution may never meet that value, because
 * its rows are gone or fail another condition.
 */
static bool
hash_may_fail(const Condition *condition)
{
	return !condition->by_hash && !pgbloom_text_is_utf8() &&
		(condition->key_info->key_type.code == BF_KEY_TEXT ||
		 condition->key_info->key_type.code == BF_KEY_ENUM);
}

/*
 * Look up the most common values.  *sum_all receives their share of the rows,
 * *sum_found the share of those that the filter contains, *nfound their
 * number.  Returns the number of most common values; 0 if there are none or
 * they cannot be looked up.
 */
static int
look_up_common_values(Condition *condition, double *sum_all,
					  double *sum_found, int *nfound)
{
	AttStatsSlot slot;
	int			nvalues = 0;
	int			i;

	*sum_all = *sum_found = 0;
	*nfound = 0;
	if (!get_attstatsslot(&slot, condition->key.statsTuple,
						  STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		return 0;
	if (slot.nvalues == slot.nnumbers &&
		resolve_type(condition, slot.valuetype) && !hash_may_fail(condition))
	{
		nvalues = slot.nvalues;
		for (i = 0; i < nvalues; i++)
		{
			uint64		hash = condition->by_hash ?
				(uint64) DatumGetInt64(slot.values[i]) :
				pgbloom_key_hash(condition->key_info, slot.values[i],
								 &condition->filter.params, NULL);

			*sum_all += slot.numbers[i];
			if (bf_contains(&condition->filter, hash))
			{
				*sum_found += slot.numbers[i];
				(*nfound)++;
			}
		}
	}
	free_attstatsslot(&slot);
	return nvalues;
}

/*
 * Estimate the share of rows whose key is in the filter.
 *
 * The most common values are looked up if the user may read them.  For the
 * other values, assume that all keys that remain in the filter occur in the
 * column, each as often as any other value.  Keys that do not occur make this
 * an overestimate, which does less harm than an underestimate.
 */
static double
contained_share(Condition *condition, bool readable)
{
	HeapTuple	statistics = condition->key.statsTuple;
	double		nkeys = bf_cardinality(&condition->filter);
	double		fpp = bf_current_fpp(&condition->filter);
	bool		is_default;
	double		ndistinct = get_variable_numdistinct(&condition->key,
													 &is_default);
	double		sum_common = 0;
	double		sum_found = 0;
	int			nfound = 0;
	double		rest = 1;
	double		share;

	if (nkeys < 1)
		return 0;
	if (HeapTupleIsValid(statistics))
	{
		rest -= ((Form_pg_statistic) GETSTRUCT(statistics))->stanullfrac;
		if (readable)
			ndistinct -= look_up_common_values(condition, &sum_common,
											   &sum_found, &nfound);
	}
	rest = fmax(rest - sum_common, 0);
	nkeys = fmax(nkeys - nfound, 0);
	ndistinct = fmax(ndistinct, 1);

	share = is_default ? DEFAULT_CONTAINS_SEL : fmin(nkeys / ndistinct, 1);
	share += (1 - share) * fpp;
	return sum_found + rest * share;
}

/*
 * Look up a key in a filter from the statistics of a column.  Returns false if
 * it cannot be looked up.  A key without a type is read as that of the filter;
 * as text, without an error.
 */
static bool
look_up_in_sample(Datum filter, const Const *key, Oid collation, bool by_hash,
				  bool *found)
{
	Bloom	   *image = (Bloom *) PG_DETOAST_DATUM_PACKED(filter);
	Condition	condition = {.by_hash = by_hash};
	Oid			type = key->consttype;

	condition.collation = collation;
	if (bf_open((const uint8_t *) VARDATA_ANY(image),
				VARSIZE_ANY_EXHDR(image), &condition.filter) != BF_OK)
		return false;
	if (condition.filter.params.key_type.code == BF_KEY_TEXT &&
		pgbloom_type_is(type, PGBLOOM_KEY))
		type = TEXTOID;
	if (!resolve_type(&condition, type) ||
		hash_may_fail(&condition) || (!by_hash && condition.key_info->untyped))
		return false;
	*found = bf_contains(&condition.filter, by_hash ?
						 (uint64) DatumGetInt64(key->constvalue) :
						 pgbloom_key_hash(condition.key_info, key->constvalue,
										  &condition.filter.params, NULL));
	return true;
}

/*
 * Look up a key in the filters of one kind of statistics.  *sum_all receives
 * the share of the rows that they stand for, *sum_found that of those which
 * contain the key.  A bound of a histogram stands for as many rows as any other.
 * That none contains the key does not say that no row does.
 */
static bool
look_up_in_samples(HeapTuple statistics, int kind, double rest,
				   const Const *key, Oid collation, bool by_hash,
				   double *sum_all, double *sum_found)
{
	bool		is_common = kind == STATISTIC_KIND_MCV;
	AttStatsSlot slot;
	bool		known;
	int			i;

	*sum_all = *sum_found = 0;
	if (!get_attstatsslot(&slot, statistics, kind, InvalidOid,
						  ATTSTATSSLOT_VALUES |
						  (is_common ? ATTSTATSSLOT_NUMBERS : 0)))
		return false;
	known = slot.nvalues > 0 && (!is_common || slot.nvalues == slot.nnumbers);
	for (i = 0; known && i < slot.nvalues; i++)
	{
		double		share = is_common ? slot.numbers[i] : rest / slot.nvalues;
		bool		found = false;

		known = look_up_in_sample(slot.values[i], key, collation, by_hash,
								  &found);
		*sum_all += share;
		*sum_found += found ? share : 0;
	}
	if (!is_common && known)
		*sum_found = fmax(*sum_found, rest / slot.nvalues / 2);
	free_attstatsslot(&slot);
	return known;
}

/*
 * Estimate the share of rows whose filter, in a column, contains a known key.
 * Statistics have filters of at most 1 kB.
 */
static double
containing_share(VariableStatData *column, const Const *key, Oid collation,
				 bool by_hash)
{
	double		rest;
	double		common,
				common_found,
				others,
				others_found;

	if (!HeapTupleIsValid(column->statsTuple))
		return DEFAULT_CONTAINS_SEL;
	rest = 1 - ((Form_pg_statistic) GETSTRUCT(column->statsTuple))->stanullfrac;
	if (!look_up_in_samples(column->statsTuple, STATISTIC_KIND_MCV, rest, key,
							collation, by_hash, &common, &common_found))
		common = common_found = 0;
	rest = fmax(rest - common, 0);
	if (look_up_in_samples(column->statsTuple, STATISTIC_KIND_HISTOGRAM, rest,
						   key, collation, by_hash, &others, &others_found))
		return common_found + others_found;
	return common_found + rest * DEFAULT_CONTAINS_SEL;
}

/* The same for a filter that is not known, but may be a column. */
static double
estimate_column(PlannerInfo *root, Oid function, Node *filter, Node *key,
				Oid collation, int varRelid, bool by_hash)
{
	Const	   *constant = (Const *) estimate_expression_value(root, key);
	double		share = DEFAULT_CONTAINS_SEL;
	VariableStatData column;

	if (!IsA(constant, Const))
		return share;
	if (constant->constisnull)
		return 0;
	examine_variable(root, filter, varRelid, &column);
	if (statistic_proc_security_check(&column, function))
		share = containing_share(&column, constant, collation, by_hash);
	ReleaseVariableStats(column);
	return share;
}

/* Estimate the selectivity of a function with these arguments. */
static Selectivity
estimate_contains(PlannerInfo *root, Oid function, List *args, Oid collation,
				  int varRelid, bool by_hash)
{
	Selectivity selectivity = DEFAULT_CONTAINS_SEL;
	Node	   *filter;
	Node	   *key;
	Const	   *constant;
	Bloom	   *image;
	Condition	condition;

	if (!get_filter_and_key(args, &filter, &key))
		return selectivity;
	constant = (Const *) estimate_expression_value(root, filter);
	if (!IsA(constant, Const))
	{
		selectivity = estimate_column(root, function, filter, key, collation,
									  varRelid, by_hash);
		CLAMP_PROBABILITY(selectivity);
		return selectivity;
	}
	if (constant->constisnull)
		return 0;

	/* makeConst() has detoasted it, but for a short header. */
	image = (Bloom *) PG_DETOAST_DATUM_PACKED(constant->constvalue);
	if (bf_open((const uint8_t *) VARDATA_ANY(image),
				VARSIZE_ANY_EXHDR(image), &condition.filter) == BF_OK)
	{
		condition.by_hash = by_hash;
		condition.collation = collation;
		condition.key_info = NULL;
		examine_variable(root, key, varRelid, &condition.key);
		if (resolve_type(&condition, condition.key.vartype))
			selectivity =
				contained_share(&condition,
								statistic_proc_security_check(&condition.key,
															  function));
		ReleaseVariableStats(condition.key);
	}
	if ((Pointer) image != DatumGetPointer(constant->constvalue))
		pfree(image);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
}

/* RESTRICT of @> and <@ */
Datum
bloom_contsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			operator = PG_GETARG_OID(1);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	int			varRelid = PG_GETARG_INT32(3);

	PG_RETURN_FLOAT8(estimate_contains(root, get_opcode(operator), args,
									   PG_GET_COLLATION(), varRelid, false));
}

/*
 * JOIN of @> and <@: the filter differs from row to row and has no
 * statistics.
 */
Datum
bloom_contjoinsel(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_FLOAT8(DEFAULT_CONTAINS_SEL);
}

/* Does a function take a hash?  Those of users look up keys. */
static bool
takes_hash(Oid function)
{
	FmgrInfo	info;

	fmgr_info(function, &info);
	return info.fn_addr == bloom_contains_hash;
}

/* Support function of bloom_contains, _contained_by and _contains_hash */
Datum
bloom_contains_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *r = (SupportRequestSelectivity *) request;

		r->selectivity = r->is_join ? DEFAULT_CONTAINS_SEL :
			estimate_contains(r->root, r->funcid, r->args, r->inputcollid,
							  r->varRelid, takes_hash(r->funcid));
		PG_RETURN_POINTER(request);
	}
	PG_RETURN_POINTER(NULL);
}
