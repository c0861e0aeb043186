/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  The nodes of a finished plan: their children, and security barriers.
 *
 * PostgreSQL has no walker for finished plans, so the kinds of nodes that have
 * children of their own are listed here.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/syscache.h"

bool
pgbloom_is_builder(Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((CustomScan *) plan)->methods == &pgbloom_join_scan_methods;
}

/*
 * The plans that a plan executes, apart from those in its expressions.  Nodes
 * that build join filters are left out.
 */
List *
pgbloom_plan_children(Plan *plan)
{
	List	   *result = NIL;
	Plan	   *outer = outerPlan(plan);

	switch (nodeTag(plan))
	{
		case T_Append:
			result = list_copy(((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			result = list_copy(((MergeAppend *) plan)->mergeplans);
			break;
		case T_SubqueryScan:
			result = list_make1(((SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			result = list_copy(((CustomScan *) plan)->custom_plans);
			break;
		case T_BitmapAnd:
			result = list_copy(((BitmapAnd *) plan)->bitmapplans);
			break;
		case T_BitmapOr:
			result = list_copy(((BitmapOr *) plan)->bitmapplans);
			break;
		default:
			break;
	}
	if (outer != NULL)
		result = lappend(result, pgbloom_is_builder(outer) ?
						 outerPlan(outer) : outer);
	if (innerPlan(plan) != NULL)
		result = lappend(result, innerPlan(plan));
	return result;
}

/* Enter the nodes of a plan. */
static void
examine_plan(PgBloomJoinNodes *nodes, Plan *plan)
{
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	nodes->filtered |= outerPlan(plan) != NULL &&
		pgbloom_is_builder(outerPlan(plan));
	nodes->last_node_id = Max(nodes->last_node_id, plan->plan_node_id);
	foreach(lc, pgbloom_plan_children(plan))
		examine_plan(nodes, lfirst(lc));
}

static bool
has_row_security(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relrowsecurity;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Examine all nodes of a statement, each of them once: subplans are in a list,
 * and not looked for in the expressions that use them.
 *
 * What is below a security barrier is not known, because the plan may have no
 * node for it, and it may be in subplans.  Conditions of a parent hide rows of
 * its partitions.  PlannedStmt.dependsOnRole does not tell it.
 */
PgBloomJoinNodes *
pgbloom_examine_nodes(PlannedStmt *stmt)
{
	PgBloomJoinNodes *nodes = palloc0(sizeof(PgBloomJoinNodes));
	ListCell   *lc;

	examine_plan(nodes, stmt->planTree);
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			examine_plan(nodes, lfirst(lc));
	}
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		nodes->barrier |= rte->security_barrier;
		nodes->hides_rows |= rte->security_barrier ||
			(rte->rtekind == RTE_RELATION && has_row_security(rte->relid));
	}
	return nodes;
}
