/*-------------------------------------------------------------------------
 *
 * agg_support.c
 *	  Planner support for the aggregates: the size of a state.
 *
 * The planner decides by it between hashing and sorting, and how many groups
 * a hash table may have at a time.  Groups grow after they came into the table,
 * so it should be the size that they end with: that of a list of the distinct
 * keys that the planner estimates in a group, or of a filter for the expected
 * keys, if these are a constant and that is smaller.  Where nothing is known,
 * the size is the one that the aggregate declares (SSPACE), that of a list of a
 * thousand keys.
 *
 * PostgreSQL asks for the cost of the transition function just before it reads
 * the size of the state, which it has in a list of its own.  So the support
 * function of the transition function, and of the combine function, corrects
 * the sizes there.  It leaves the cost to the declaration.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

/*
 * Bytes of a state besides its keys: the structures, and what is left of the
 * lists that it had before it became bits, of twice the length each.
 * PostgreSQL gives back the memory of the long ones.
 */
#define STATE_OVERHEAD		(sizeof(PgBloomExpanded) + sizeof(BfLayer) + 128)
#define MAX_LISTS			16384

/* A list has room for up to twice as many hashes as it has. */
#define LIST_BYTES_PER_KEY	(2 * sizeof(uint64))

/* A list of more keys becomes bits, of at least as many bytes. */
#define MAX_LIST_KEYS		4194304.0

PG_FUNCTION_INFO_V1(bloom_agg_support);

/*
 * The value of an argument, of those that are aggregated, if it is a constant
 * of type double precision.
 */
static bool
get_constant(PlannerInfo *root, List *args, int number, double *value)
{
	Node	   *expression;
	Const	   *constant;

	if (list_length(args) <= number)
		return false;
	expression = (Node *) lfirst_node(TargetEntry,
									  list_nth_cell(args, number))->expr;
	constant = (Const *) estimate_expression_value(root, expression);
	if (!IsA(constant, Const) || constant->consttype != FLOAT8OID ||
		constant->constisnull)
		return false;
	*value = DatumGetFloat8(constant->constvalue);
	return true;
}

/* What is aggregated: the rows of the query before they are grouped. */
static double
input_rows(PlannerInfo *root)
{
	Relids		relids = PGBLOOM_QUERY_RELS(root);
	RelOptInfo *input;
	int			relid;

	if (bms_get_singleton_member(relids, &relid))
		input = root->simple_rel_array[relid];
	else
		input = find_join_rel(root, relids);
	return input == NULL ? 0 : input->rows;
}

/* Estimated number of distinct values of key in a group by these clauses. */
static double
keys_in_group(PlannerInfo *root, List *clauses, Expr *key, double rows)
{
	List	   *exprs = get_sortgrouplist_exprs(clauses, root->processed_tlist);
	double		groups = estimate_num_groups(root, exprs, rows, NULL, NULL);

	exprs = lappend(exprs, key);
	return estimate_num_groups(root, exprs, rows, NULL, NULL) / groups;
}

/*
 * Estimated number of distinct keys in a group, or 0 if it is not known; that
 * of rows, if each has another hash.  Of grouping sets, the one with the largest
 * groups counts; all rows are one group without a hash table.
 */
static double
estimate_keys(PlannerInfo *root, const AggTransInfo *info)
{
	double		rows = input_rows(root);
	List	   *clauses = root->parse->groupClause;
	double		keys = 0;
	Expr	   *key;
	ListCell   *set,
			   *number;

	if (rows < 1 || clauses == NIL || info->args == NIL)
		return 0;
	key = linitial_node(TargetEntry, info->args)->expr;
	if (root->parse->groupingSets == NIL)
		return keys_in_group(root, clauses, key, rows);
	foreach(set, root->parse->groupingSets)
	{
		List	   *of_set = NIL;

		foreach(number, (List *) lfirst(set))
			of_set = lappend(of_set, get_sortgroupref_clause(lfirst_int(number),
															 clauses));
		if (of_set != NIL)
			keys = fmax(keys, keys_in_group(root, of_set, key, rows));
	}
	return keys;
}

/* The size of a filter for a constant number of expected keys, or 0. */
static double
expected_size(PlannerInfo *root, const AggTransInfo *info)
{
	double		fpp;
	double		expected;
	BfGeometry	geometry;
	size_t		size;

	/* Invalid arguments are for the execution to report. */
	if (!get_constant(root, info->args, FPP_ARG - 1, &fpp) ||
		!get_constant(root, info->args, EXPECTED_ARG - 1, &expected) ||
		!(fpp >= BF_FPP_MIN && fpp <= BF_FPP_MAX && expected >= 0 &&
		  expected <= (double) BF_MAX_BITS) ||
		bf_geometry_for(fpp, false, Max((uint64) expected, 1),
						&geometry) != BF_OK)
		return 0;
	size = bf_geometry_size(&geometry);
	return size + Min(4 * size, MAX_LISTS);
}

/*
 * Set the sizes of all states that a function changes.  Those that have been
 * set are odd, so that each is computed once, though PostgreSQL asks for each
 * aggregate.
 */
static void
set_state_sizes(PlannerInfo *root, Oid function)
{
	ListCell   *cell;

	foreach(cell, root->aggtransinfos)
	{
		AggTransInfo *info = (AggTransInfo *) lfirst(cell);
		double		list_size;
		double		size;

		if ((info->transfn_oid != function && info->combinefn_oid != function) ||
			(info->aggtransspace & 1) != 0)
			continue;
		list_size = LIST_BYTES_PER_KEY *
			fmin(ceil(estimate_keys(root, info)), MAX_LIST_KEYS);
		size = expected_size(root, info);
		if (size == 0 || (list_size > 0 && list_size < size))
			size = list_size;
		if (size > 0)
			info->aggtransspace = (int32) (STATE_OVERHEAD + size) | 1;
	}
}

/* Support function of the transition and combine functions of bloom_agg */
Datum
bloom_agg_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestCost))
	{
		SupportRequestCost *cost = (SupportRequestCost *) request;

		if (cost->root != NULL)
			set_state_sizes(cost->root, cost->funcid);
	}
	PG_RETURN_POINTER(NULL);
}
