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

#include "miscadmin.h"
#include "pgbloom.h"

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

/* Is this child of the node executed again and again? */
static bool
is_repeated(const Plan *plan, const Plan *child)
{
	return IsA(plan, CustomScan) ||
		((IsA(plan, NestLoop) || IsA(plan, RecursiveUnion)) &&
		 child == innerPlan(plan));
}

/*
 * The share of its child's rows that a node is expected to ask for, if this one
 * of its own is asked for.
 */
static double
share_asked_for(const Plan *plan, double share)
{
	if (IsA(plan, Sort) || IsA(plan, Agg) || IsA(plan, Hash))
		return 1;
	return !IsA(plan, Limit) ? share :
		share * Min(plan->plan_rows / Max(outerPlan(plan)->plan_rows, 1), 1);
}

static void
walk_plan(PgBloomPlanWalk *walk, Plan *plan, bool repeated, bool parallel,
		  double share)
{
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	walk->last_node_id = Max(walk->last_node_id, plan->plan_node_id);
	walk->filtered |= outerPlan(plan) != NULL &&
		pgbloom_is_builder(outerPlan(plan));
	foreach(lc, plan->initPlan)
	{
		SubPlan    *subplan = lfirst(lc);

		walk->init_plans = bms_add_member(walk->init_plans, subplan->plan_id);
		if (subplan->subLinkType == EXISTS_SUBLINK)
			walk->exists_plans = bms_add_member(walk->exists_plans,
												subplan->plan_id);
	}
	if (IsA(plan, HashJoin))
	{
		PgBloomPlannedJoin *join = palloc0(sizeof(PgBloomPlannedJoin));

		join->join = (HashJoin *) plan;
		join->repeated = repeated;
		join->parallel = parallel;
		join->share = share;
		walk->joins = lappend(walk->joins, join);
	}
	parallel |= IsA(plan, Gather) || IsA(plan, GatherMerge);
	foreach(lc, pgbloom_plan_children(plan))
		walk_plan(walk, lfirst(lc), repeated || is_repeated(plan, lfirst(lc)),
				  parallel, share_asked_for(plan, share));
}

/*
 * Walk over all nodes of a statement, each of them once: subplans are in a list,
 * where each comes after those that it uses, and not looked for in the
 * expressions that use them.  Those of expressions may be executed more than
 * once, also if they are hashed: by each partition that has the expression.
 */
void
pgbloom_walk_plan(PlannedStmt *stmt, PgBloomPlanWalk *walk)
{
	int			id;

	memset(walk, 0, sizeof(*walk));
	walk_plan(walk, stmt->planTree, false, false, 1);
	for (id = list_length(stmt->subplans); id > 0; id--)
	{
		Plan	   *subplan = list_nth(stmt->subplans, id - 1);

		if (subplan != NULL)
			walk_plan(walk, subplan, !bms_is_member(id, walk->init_plans) ||
					  !bms_is_empty(subplan->extParam), false,
					  bms_is_member(id, walk->exists_plans) ?
					  1 / Max(subplan->plan_rows, 1) : 1);
	}
}

/*
 * What is below a security barrier is not known, because the plan may have no
 * node for it, and it may be in subplans.  Conditions of a parent hide rows of
 * its partitions.  PlannedStmt.dependsOnRole does not tell it.
 */
const PgBloomStatement *
pgbloom_look_up_statement(PlannedStmt *stmt)
{
	PgBloomStatement *result = palloc0(sizeof(PgBloomStatement));
	ListCell   *lc;

	result->stmt = stmt;
	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		result->barrier |= rte->security_barrier;
		result->hides_rows |= rte->security_barrier ||
			(rte->rtekind == RTE_RELATION &&
			 pgbloom_relation_row(rte->relid).relrowsecurity);
	}
	result->parents = palloc0(sizeof(AppendRelInfo *) *
							  (list_length(stmt->rtable) + 1));
	foreach(lc, stmt->appendRelations)
	{
		AppendRelInfo *child = lfirst(lc);

		result->parents[child->child_relid] = child;
	}
	return result;
}

/*
 * The number of the relation that a node of the plan scans, or of what that is a
 * partition of; 0 if there is none.  A column of it gets its number there, or 0.
 */
Index
pgbloom_scanned_column(const PgBloomStatement *statement, const Plan *scan,
					   int *column)
{
	Index		relid = nodeTag(scan) >= T_SeqScan &&
		nodeTag(scan) <= T_CustomScan ? ((const Scan *) scan)->scanrelid : 0;

	while (statement->parents[relid] != NULL)
	{
		AppendRelInfo *child = statement->parents[relid];

		*column = *column > 0 && *column <= child->num_child_cols ?
			child->parent_colnos[*column - 1] : 0;
		relid = child->parent_relid;
	}
	return relid;
}
