/*-------------------------------------------------------------------------
 *
 * repeatable.c
 *	  Does a part of a plan have side effects, and does it return the same
 *	  rows each time?
 *
 * PostgreSQL has no walker for finished plans, so the children and the
 * expressions of each kind of node are listed here.  Nodes that are not known
 * count as volatile.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

typedef struct Check
{
	PlannedStmt *stmt;
	bool		repeatable;		/* look for rows that may change, too */
} Check;

static bool is_bad_subtree(Plan *plan, Check *check);

/* The plans that a plan executes, apart from those in its expressions. */
List *
pgbloom_plan_children(Plan *plan)
{
	List	   *result = NIL;

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
	if (outerPlan(plan) != NULL)
		result = lappend(result, outerPlan(plan));
	if (innerPlan(plan) != NULL)
		result = lappend(result, innerPlan(plan));
	return result;
}

/* The largest identifier of a node of the plan. */
int
pgbloom_max_node_id(Plan *plan)
{
	int			result = plan->plan_node_id;
	ListCell   *lc;

	check_stack_depth();
	foreach(lc, pgbloom_plan_children(plan))
	{
		int			id = pgbloom_max_node_id(lfirst(lc));

		result = Max(result, id);
	}
	return result;
}

/* A function, or a plan in a SubPlan, that is bad. */
static bool
is_bad_walker(Node *node, void *context)
{
	Check	   *check = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) &&
		is_bad_subtree(list_nth(check->stmt->subplans,
								((SubPlan *) node)->plan_id - 1), check))
		return true;
	return expression_tree_walker(node, is_bad_walker, context);
}

static bool
is_bad(void *expressions, Check *check)
{
	return contain_volatile_functions(expressions) ||
		is_bad_walker(expressions, check);
}

/* Is this node bad, apart from its children? */
static bool
is_bad_node(Plan *plan, Check *check)
{
	if (is_bad(plan->targetlist, check) || is_bad(plan->qual, check))
		return true;
	switch (nodeTag(plan))
	{
		case T_NestLoop:
			return is_bad(((Join *) plan)->joinqual, check);
		case T_MergeJoin:
			return is_bad(((Join *) plan)->joinqual, check) ||
				is_bad(((MergeJoin *) plan)->mergeclauses, check);
		case T_HashJoin:
			return is_bad(((Join *) plan)->joinqual, check) ||
				is_bad(((HashJoin *) plan)->hashclauses, check);
		case T_SampleScan:
			return check->repeatable ||
				is_bad(((SampleScan *) plan)->tablesample, check);
		case T_IndexScan:
			return is_bad(((IndexScan *) plan)->indexqual, check) ||
				is_bad(((IndexScan *) plan)->indexorderby, check);
		case T_IndexOnlyScan:
			return is_bad(((IndexOnlyScan *) plan)->indexqual, check) ||
				is_bad(((IndexOnlyScan *) plan)->indexorderby, check);
		case T_BitmapIndexScan:
			return is_bad(((BitmapIndexScan *) plan)->indexqual, check);
		case T_TidScan:
			return is_bad(((TidScan *) plan)->tidquals, check);
		case T_TidRangeScan:
			return is_bad(((TidRangeScan *) plan)->tidrangequals, check);
		case T_FunctionScan:
			return is_bad(((FunctionScan *) plan)->functions, check);
		case T_ValuesScan:
			return is_bad(((ValuesScan *) plan)->values_lists, check);
		case T_TableFuncScan:
			return is_bad(((TableFuncScan *) plan)->tablefunc, check);
		case T_ForeignScan:
			return check->repeatable ||
				is_bad(((ForeignScan *) plan)->fdw_exprs, check);
		case T_CteScan:
			return is_bad_subtree(list_nth(check->stmt->subplans,
										   ((CteScan *) plan)->ctePlanId - 1),
								  check);
		case T_Limit:
			return check->repeatable ||
				is_bad(((Limit *) plan)->limitOffset, check) ||
				is_bad(((Limit *) plan)->limitCount, check);
		case T_Result:
			return is_bad(((Result *) plan)->resconstantqual, check);
		case T_WindowAgg:
			return is_bad(((WindowAgg *) plan)->startOffset, check) ||
				is_bad(((WindowAgg *) plan)->endOffset, check);
		case T_ProjectSet:
		case T_Append:
		case T_MergeAppend:
		case T_RecursiveUnion:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_SubqueryScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_Material:
		case T_Memoize:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_Gather:
		case T_GatherMerge:
		case T_Hash:
		case T_SetOp:
			return false;
		default:
			return true;
	}
}

static bool
is_bad_subtree(Plan *plan, Check *check)
{
	ListCell   *lc;

	check_stack_depth();
	if (is_bad_node(plan, check))
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (is_bad_subtree(lfirst(lc), check))
			return true;
	}
	return false;
}

/* Does an expression, or a plan in it, contain a volatile function? */
bool
pgbloom_is_volatile(PlannedStmt *stmt, void *expressions)
{
	Check		check = {.stmt = stmt};

	return is_bad(expressions, &check);
}

/* Does this node evaluate a volatile function?  Its children are ignored. */
bool
pgbloom_has_volatile(PlannedStmt *stmt, Plan *plan)
{
	Check		check = {.stmt = stmt};

	return is_bad_node(plan, &check);
}

bool
pgbloom_has_volatile_subtree(PlannedStmt *stmt, Plan *plan)
{
	Check		check = {.stmt = stmt};

	return is_bad_subtree(plan, &check);
}

/*
 * Does a plan return the same rows each time it is executed within one
 * execution of the statement?  It does not if it depends on parameters, other
 * than those of the Gather nodes above it: they only tell parallel scans to
 * start again.  LIMIT may pick other rows.  The plan is a Hash node, so that
 * the parameters of the keys are counted, too.
 */
bool
pgbloom_is_repeatable(PlannedStmt *stmt, Plan *plan, Bitmapset *gathers)
{
	Check		check = {stmt, true};

	return bms_is_subset(plan->extParam, gathers) &&
		!is_bad_subtree(plan, &check);
}
