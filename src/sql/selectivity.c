/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *	  What the planner asks: how many rows have a key that a filter contains,
 *	  and what it costs to find out.
 *
 * One estimator answers for functions, by their support function, and for
 * operators, by RESTRICT.  doc/REFERENCE.md describes it for users.
 *
 * Anybody may attach these functions to operators and functions of their
 * own, and whatever is wrong with a query is for its execution to report.  So
 * nothing is taken for granted of what is asked about, least of all the types
 * of operands, and where the answer is not known it is a default, never an
 * error.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/*
 * The share of rows that a filter lets pass of which nothing is known until
 * the query runs: mostly one that a subquery builds in front of a join, which
 * is done because it drops most rows.  How many is anybody's guess between
 * 0.001 and 0.5.  Too small a guess costs more than one too large, by
 * nested loops over what turn out to be many rows, so this is not the least
 * of them.
 */
#define DEFAULT_CONTAINS_SEL	0.1

/*
 * Probes of a filter that exceeds a cache of the processor wait for memory:
 * sizes typical for the second and the last level, and measured factors
 * (bench/cost.sql).
 */
#define LARGE_FILTER			((Size) 1 << 20)
#define LARGE_FILTER_FACTOR		2
#define HUGE_FILTER				((Size) 1 << 25)
#define HUGE_FILTER_FACTOR		4

/* Integers of a column with fewer gaps than this between them are dense. */
#define DENSE_RANGE				1.25

/* What is asked about, with all that is known of it. */
typedef struct Probe
{
	BfView		view;			/* the filter */
	PgBloomKeyInfo *key_info;	/* of the values in statistics; NULL: they are
								 * hashes of keys */
	VariableStatData column;	/* the keys */
} Probe;

PG_FUNCTION_INFO_V1(bloom_contsel);
PG_FUNCTION_INFO_V1(bloom_contjoinsel);
PG_FUNCTION_INFO_V1(bloom_contains_support);
PG_FUNCTION_INFO_V1(bloom_contains_hash_support);

static bool
is_filter(Node *node)
{
	return pgbloom_type_is(getBaseType(exprType(node)), PGBLOOM_FILTER);
}

/* Tell the filter from the key, which may come in either order. */
static bool
tell_apart(List *args, Node **filter, Node **key)
{
	bool		in_order;

	if (list_length(args) != 2)
		return false;
	in_order = is_filter(linitial(args));
	*filter = in_order ? linitial(args) : lsecond(args);
	*key = in_order ? lsecond(args) : linitial(args);

	/* With two filters, it is not known which one is the key. */
	return is_filter(lsecond(args)) != in_order;
}

/*
 * Look up a value of the column.  Where its hash function raises an error,
 * the execution of the query would do so, too.
 */
static bool
contains(const Probe *probe, Datum value)
{
	const BfView *view = &probe->view;

	if (probe->key_info == NULL)
		return bf_contains(view, (uint64) DatumGetInt64(value));
	return bf_contains(view, pgbloom_key_hash(probe->key_info, value,
											  &view->params, NULL));
}

/*
 * Whether values of statistics can be looked up in the filter.  They are of
 * the type of the column, which is that of the key up to a relabelling, and
 * keys of the filter only if both types are of one key type: a varchar column
 * seen as text, but not a citext column seen as text.
 */
static bool
find_values_type(Probe *probe, Oid type, Oid collation, bool hashes)
{
	probe->key_info = NULL;
	if (hashes)
		return getBaseType(type) == INT8OID;
	probe->key_info = pgbloom_find_key_info(type, collation,
											   &probe->view.params.key_type);
	return probe->key_info != NULL;
}

static int64
get_integer(Oid type, Datum value)
{
	return type == INT2OID ? DatumGetInt16(value) :
		type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/*
 * Where integers occur without gaps, every number between two bounds of the
 * histogram is a value of the column: take any of them instead of the bound.
 * Returns whether this is such a column.
 */
static bool
scatter_integers(AttStatsSlot *histogram, double ndistinct)
{
	Oid			type = getBaseType(histogram->valuetype);
	int64		first,
				next;
	int			i;

	if (type != INT2OID && type != INT4OID && type != INT8OID)
		return false;
	first = get_integer(type, histogram->values[0]);
	next = get_integer(type, histogram->values[histogram->nvalues - 1]);
	if ((double) next - (double) first + 1 > DENSE_RANGE * ndistinct)
		return false;

	for (i = 0; i < histogram->nvalues - 1; i++)
	{
		uint64		gap;

		first = get_integer(type, histogram->values[i]);
		next = get_integer(type, histogram->values[i + 1]);
		gap = (uint64) next - (uint64) first;
		if (gap > 1)
			first += (int64) (bf_hash_u64(i, 0) % gap);
		histogram->values[i] = type == INT2OID ? Int16GetDatum(first) :
			type == INT4OID ? Int32GetDatum(first) : Int64GetDatum(first);
	}
	return true;
}

/*
 * Whether no pattern among the keys can deceive the histogram.  Its bounds
 * lie at even distances.  In a table that ANALYZE reads in full, they may all
 * fall upon keys like every tenth value, or all beside them, unless values
 * differ in frequency: the rarest of the common ones from the mean of the
 * rest.  In a larger table, they are from rows at random, 300 for each bound.
 */
static bool
is_random(const Probe *probe, AttStatsSlot *histogram,
		  double ndistinct, double rest, double rarest)
{
	const RelOptInfo *rel = probe->column.rel;

	return (rel != NULL && rel->tuples > 300.0 * histogram->nvalues) ||
		rarest > 2 * rest / ndistinct ||
		histogram->nvalues >= ndistinct ||
		scatter_integers(histogram, ndistinct);
}

/*
 * The largest share, or with a negative z the smallest, that may well have
 * led to so many hits of n: the bound of Wilson's score interval, z standard
 * deviations away.
 */
static double
likely_share(double hits, double n, double z)
{
	return (hits + z * z / 2 +
			z * sqrt(hits * (n - hits) / n + z * z / 4)) / (n + z * z);
}

/*
 * Correct the share of rows in the filter by looking up the bounds of the
 * histogram, which are values of the column as they come.  The sample is too
 * small to tell small shares, so it only excludes errors: of the shares that
 * may well have led to it, take the one next to the share expected.  If that
 * is far too large, most keys of the filter do not occur in the column at
 * all, and there is nothing but the sample to go by.  But a sample that may
 * be deceived only ever raises the share, up to a limit that is certain: too
 * large an estimate is the lesser evil.
 */
static double
correct_by_histogram(const Probe *probe, AttStatsSlot *histogram,
					 double share, double max, bool random)
{
	double		n = histogram->nvalues;
	double		hits = 0;
	double		low,
				high;
	int			i;

	for (i = 0; i < histogram->nvalues; i++)
	{
		if (contains(probe, histogram->values[i]))
			hits++;
	}
	low = likely_share(hits, n, -1);
	high = likely_share(hits, n, 1);
	if (share < low)
		return fmax(share, fmin(low, max));
	if (!random)
		return share;
	if (share > likely_share(hits, n, 2))
		return (low + high) / 2;
	return fmin(share, high);
}

/*
 * The share of rows with a key in the filter: the most common values are
 * looked up, one by one, and as many of the rest are taken for keys as the
 * filter has keys left.  readable says whether values may be looked at.
 */
static double
share_of_rows(Probe *probe, bool readable, bool hashes, Oid collation)
{
	double		nkeys = bf_cardinality(&probe->view);
	double		fpp = bf_current_fpp(&probe->view);
	HeapTuple	statistics = probe->column.statsTuple;
	bool		unknown;
	double		ndistinct = get_variable_numdistinct(&probe->column,
													 &unknown);
	double		common_hits = 0;	/* share of rows */
	double		rest = 1;		/* the same */
	double		rarest = 0;		/* the same, of one value */
	double		share;
	AttStatsSlot slot;
	int			i;

	if (nkeys < 1)
		return 0;
	if (HeapTupleIsValid(statistics))
		rest -= ((Form_pg_statistic) GETSTRUCT(statistics))->stanullfrac;
	else
		readable = false;

	if (readable &&
		get_attstatsslot(&slot, statistics, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nvalues == slot.nnumbers &&
			find_values_type(probe, slot.valuetype, collation, hashes))
		{
			for (i = 0; i < slot.nvalues; i++)
			{
				rest -= slot.numbers[i];
				rarest = slot.numbers[i];
				if (contains(probe, slot.values[i]))
				{
					common_hits += slot.numbers[i];
					nkeys--;
				}
			}
			ndistinct -= slot.nvalues;
		}
		free_attstatsslot(&slot);
	}
	nkeys = fmax(nkeys, 0);
	ndistinct = fmax(ndistinct, 1);
	rest = fmax(rest, 0);

	/* Without an idea of how many there are, it could be any share. */
	share = unknown ? DEFAULT_CONTAINS_SEL : fmin(nkeys / ndistinct, 1);
	share += (1 - share) * fpp;

	if (readable && rest > 0 &&
		get_attstatsslot(&slot, statistics, STATISTIC_KIND_HISTOGRAM,
						 InvalidOid, ATTSTATSSLOT_VALUES))
	{
		if (slot.nvalues > 0 &&
			find_values_type(probe, slot.valuetype, collation, hashes))
		{
			bool		random = is_random(probe, &slot, ndistinct, rest,
										   rarest);

			share = correct_by_histogram(probe, &slot, share,
										 fmin(nkeys * rarest / rest + fpp, 1),
										 random);
		}
		free_attstatsslot(&slot);
	}
	return common_hits + rest * fmax(share, fpp);
}

/*
 * Estimate the share of rows for which a function with these arguments says
 * that a filter contains a key, or the hash of one.
 */
static Selectivity
estimate(PlannerInfo *root, Oid function, List *args, Oid collation,
		 int varRelid, bool hashes)
{
	Selectivity selectivity = DEFAULT_CONTAINS_SEL;
	Node	   *filter;
	Node	   *key;
	Const	   *constant;
	struct varlena *image;
	Probe	probe;

	if (!tell_apart(args, &filter, &key))
		return selectivity;
	constant = (Const *) estimate_expression_value(root, filter);
	if (!IsA(constant, Const))
		return selectivity;
	if (constant->constisnull)
		return 0;

	image = PG_DETOAST_DATUM_PACKED(constant->constvalue);
	if (bf_open((const uint8_t *) VARDATA_ANY(image),
				VARSIZE_ANY_EXHDR(image), &probe.view) == BF_OK)
	{
		examine_variable(root, key, varRelid, &probe.column);
		if (find_values_type(&probe, probe.column.vartype, collation,
							 hashes))
		{
			bool		readable =
				statistic_proc_security_check(&probe.column, function);

			selectivity = share_of_rows(&probe, readable, hashes,
										collation);
		}
		ReleaseVariableStats(probe.column);
	}
	if ((Pointer) image != DatumGetPointer(constant->constvalue))
		pfree(image);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
}

/*
 * RESTRICT of @> and <@
 */
Datum
bloom_contsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			operator = PG_GETARG_OID(1);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	int			varRelid = PG_GETARG_INT32(3);

	PG_RETURN_FLOAT8(estimate(root, get_opcode(operator), args,
							  PG_GET_COLLATION(), varRelid, false));
}

/*
 * JOIN of @> and <@: filters that differ from row to row, which have no
 * statistics.
 */
Datum
bloom_contjoinsel(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_FLOAT8(DEFAULT_CONTAINS_SEL);
}

static List *
arguments_of(Node *call)
{
	if (call != NULL && IsA(call, FuncExpr))
		return ((FuncExpr *) call)->args;
	if (call != NULL && IsA(call, OpExpr))
		return ((OpExpr *) call)->args;
	return NIL;
}

/*
 * Scale the COST of a function by the size of a constant filter.  Of any
 * other the planner does not know it: COST goes as it is.
 */
static bool
set_cost(SupportRequestCost *request)
{
	Node	   *filter;
	Node	   *key;
	Size		size;
	double		factor = 1;
	HeapTuple	function;

	if (!tell_apart(arguments_of(request->node), &filter, &key) ||
		!IsA(filter, Const) || ((Const *) filter)->constisnull)
		return false;
	size = toast_raw_datum_size(((Const *) filter)->constvalue);
	if (size > HUGE_FILTER)
		factor = HUGE_FILTER_FACTOR;
	else if (size > LARGE_FILTER)
		factor = LARGE_FILTER_FACTOR;

	function = SearchSysCache1(PROCOID, ObjectIdGetDatum(request->funcid));
	if (!HeapTupleIsValid(function))
		return false;
	request->startup = 0;
	request->per_tuple = factor * cpu_operator_cost *
		((Form_pg_proc) GETSTRUCT(function))->procost;
	ReleaseSysCache(function);
	return true;
}

static Node *
support(Node *request, bool hashes)
{
	if (IsA(request, SupportRequestCost))
		return set_cost((SupportRequestCost *) request) ? request : NULL;
	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *r = (SupportRequestSelectivity *) request;

		r->selectivity = r->is_join ? DEFAULT_CONTAINS_SEL :
			estimate(r->root, r->funcid, r->args, r->inputcollid,
					 r->varRelid, hashes);
		return request;
	}
	return NULL;
}

/* Support function of bloom_contains and bloom_contained_by */
Datum
bloom_contains_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(support((Node *) PG_GETARG_POINTER(0), false));
}

/* Support function of bloom_contains_hash */
Datum
bloom_contains_hash_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(support((Node *) PG_GETARG_POINTER(0), true));
}
