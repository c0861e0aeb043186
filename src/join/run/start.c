/*-------------------------------------------------------------------------
 *
 * start.c
 *	  What is done when the execution of a plan with join filters starts.
 *
 * A join with a filter reads its inner side before an outer row, so that its
 * filter is complete before a scan below is started.  The hash joins between it
 * and the scan that have the scan on their outer side do so, too: one that
 * fetched an outer row first would end there if its inner side is empty, but the
 * scan would go on to the first row that passes.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "nodes/nodeFuncs.h"

/* A node of a plan that is executed, and the nodes above it. */
typedef struct Ancestor
{
	const struct Ancestor *parent;	/* NULL at the top */
	PlanState  *state;
	Bitmapset **prepared;		/* plan_node_id of nodes that have been */
} Ancestor;

/*
 * Let the join whose filter this condition of a scan probes, and the hash joins
 * between the two, read their inner sides first, see ExecHashJoinImpl().
 */
static void
read_inner_sides_first(const Ancestor *scan, Node *qual)
{
	PgBloomJoinFilter *filter;
	const Ancestor *below = scan;
	const Ancestor *above;

	filter = pgbloom_join_find(scan->state->state->es_query_cxt, qual);
	if (filter->builder == NULL)
		return;
	for (above = scan->parent; above != NULL;
		 below = above, above = above->parent)
	{
		HashJoinState *join = (HashJoinState *) above->state;

		if (!IsA(join, HashJoinState) ||
			below->state != outerPlanState(join))
			continue;
		join->hj_OuterNotEmpty = true;
		if (outerPlanState(innerPlanState(join)) == filter->builder)
			return;
	}
}

/*
 * Prepare the scans of a plan that probe filters.  A subplan in the condition of
 * a partitioned table is reached from each of its partitions, but is one.  The
 * number 0 is that of the top, and of nodes that other extensions have added to
 * the finished plan.
 */
static bool
prepare_scans(PlanState *state, void *context)
{
	const Ancestor *parent = context;
	Ancestor	here = {parent->state != NULL ? parent : NULL, state,
	parent->prepared};
	int			id = state->plan->plan_node_id;
	ListCell   *lc;

	if (id != 0 && bms_is_member(id, *here.prepared))
		return false;
	*here.prepared = bms_add_member(*here.prepared, id);
	if (state->plan->qual != NIL && state->qual != NULL)
	{
		foreach(lc, state->plan->qual)
			read_inner_sides_first(&here, lfirst(lc));
		pgbloom_join_evaluate_directly(state);
		pgbloom_join_gate_scan((ScanState *) state);
	}
	return planstate_tree_walker(state, prepare_scans, &here);
}

/* Prepare a plan whose nodes have been started, if it has filters. */
void
pgbloom_join_start(PlanState *plan)
{
	MemoryContext query = plan->state->es_query_cxt;
	Bitmapset  *prepared = NULL;
	Ancestor	top = {NULL, NULL, &prepared};

	if (pgbloom_join_recall(query, 0) != NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(query);

		prepare_scans(plan, &top);
		MemoryContextSwitchTo(caller);
	}
}
