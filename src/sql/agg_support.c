/*-------------------------------------------------------------------------
 *
 * agg_support.c
 *	  Planner support for the aggregates: the size of a state.
 *
 * The planner decides by it between hashing and sorting, and how many groups
 * a hash table may have at a time.  An aggregate declares one size for all its
 * calls (SSPACE), which suits a filter of a thousand keys.  A call with a
 * constant number of expected keys has a state of the size of such a filter.
 *
 * PostgreSQL asks for the cost of the transition function just before it reads
 * the size of the state, which it has in a list of its own.  So the support
 * function of the transition function, and of the combine function, corrects
 * the sizes there.  It leaves the cost to the declaration.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg.h"

#include "catalog/pg_type_d.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"

/*
 * Bytes of a state besides its bits: the structures, and what is left of the
 * lists that it had before, of twice the length each.  PostgreSQL gives back
 * the memory of the long ones.
 */
#define STATE_OVERHEAD		(sizeof(PgBloomExpanded) + sizeof(BfLayer) + 128)
#define MAX_LISTS			16384

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

/* Set the sizes of all states that a function changes. */
static void
set_state_sizes(PlannerInfo *root, Oid function)
{
	ListCell   *cell;

	foreach(cell, root->aggtransinfos)
	{
		AggTransInfo *info = (AggTransInfo *) lfirst(cell);
		double		fpp;
		double		expected;
		BfGeometry	geometry;

		/* Invalid arguments are for the execution to report. */
		if ((info->transfn_oid == function || info->combinefn_oid == function) &&
			get_constant(root, info->args, FPP_ARG - 1, &fpp) &&
			get_constant(root, info->args, EXPECTED_ARG - 1, &expected) &&
			fpp >= BF_FPP_MIN && fpp <= BF_FPP_MAX && expected >= 0 &&
			expected <= (double) BF_MAX_BITS &&
			bf_geometry_for(fpp, false, Max((uint64) expected, 1),
							&geometry) == BF_OK)
		{
			size_t		size = bf_geometry_size(&geometry);

			info->aggtransspace = (int32)
				(STATE_OVERHEAD + size + Min(4 * size, MAX_LISTS));
		}
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
