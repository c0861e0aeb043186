/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  The nodes of a finished plan: their children, which of them call
 *	  volatile functions, and security barriers.
 *
 * PostgreSQL has no walker for finished plans, so the kinds of nodes that have
 * children or expressions of their own are listed here.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgbloom.h"
#include "utils/lsyscache.h"
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

/* Is one of the functions that make up an aggregate volatile? */
static bool
is_volatile_aggregate(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Form_pg_aggregate form;
	bool		result = false;
	int			i;

	if (!HeapTupleIsValid(tuple))
		return true;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	{
		const Oid	functions[] = {
			form->aggtransfn, form->aggfinalfn, form->aggcombinefn,
			form->aggserialfn, form->aggdeserialfn, form->aggmtransfn,
			form->aggminvtransfn, form->aggmfinalfn
		};

		for (i = 0; i < (int) lengthof(functions) && !result; i++)
			result = OidIsValid(functions[i]) &&
				func_volatile(functions[i]) == PROVOLATILE_VOLATILE;
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Does text become a value of this type by way of constraints of a domain?
 * Ranges of PostgreSQL's own have none.
 */
static bool
may_be_checked(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		type = element;
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
		case TYPTYPE_COMPOSITE:
			return true;
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return type >= FirstNormalObjectId;
		default:
			return false;
	}
}

static bool
one_may_be_checked(List *types)
{
	ListCell   *lc;

	foreach(lc, types)
	{
		if (may_be_checked(lfirst_oid(lc)))
			return true;
	}
	return false;
}

static bool hidden_volatile_walker(Node *node, void *context);

static bool
defaults_call_volatile(Oid function, List *arguments, void *context)
{
	Node	   *defaults = pgbloom_default_arguments(function, arguments);

	return contain_volatile_functions(defaults) ||
		hidden_volatile_walker(defaults, context);
}

/*
 * Find volatile functions that contain_volatile_functions() does not see.  A
 * cast to a domain that is left in a plan checks constraints, which may call any
 * function.  With a context, the planner has yet to add default arguments.
 */
static bool
hidden_volatile_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, hidden_volatile_walker,
								 context, 0);
	if (IsA(node, CoerceToDomain))
		return true;
	if (context != NULL && IsA(node, FuncExpr) &&
		defaults_call_volatile(((FuncExpr *) node)->funcid,
							   ((FuncExpr *) node)->args, context))
		return true;
	if (context != NULL && IsA(node, WindowFunc) &&
		defaults_call_volatile(((WindowFunc *) node)->winfnoid,
							   ((WindowFunc *) node)->args, context))
		return true;
	if ((IsA(node, CoerceViaIO) || PGBLOOM_IS_JSON_EXPR(node)) &&
		may_be_checked(exprType(node)))
		return true;
	if (IsA(node, TableFunc) &&
		one_may_be_checked(((TableFunc *) node)->coltypes))
		return true;
	if (IsA(node, RangeTblFunction) &&
		one_may_be_checked(((RangeTblFunction *) node)->funccoltypes))
		return true;
	if (IsA(node, Aggref) && is_volatile_aggregate(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) && ((WindowFunc *) node)->winagg &&
		is_volatile_aggregate(((WindowFunc *) node)->winfnoid))
		return true;
	return expression_tree_walker(node, hidden_volatile_walker, context);
}

/* Do expressions call a volatile function? */
bool
pgbloom_calls_volatile(void *expressions)
{
	return contain_volatile_functions(expressions) ||
		hidden_volatile_walker(expressions, NULL);
}

/* Has a query subqueries, or functions that may become such? */
static bool
has_subqueries(const Query *query)
{
	ListCell   *lc;

	if (query->hasSubLinks || query->cteList != NIL)
		return true;
	foreach(lc, query->rtable)
	{
		RTEKind		kind = ((RangeTblEntry *) lfirst(lc))->rtekind;

		if (kind == RTE_SUBQUERY || kind == RTE_FUNCTION)
			return true;
	}
	return false;
}

/*
 * Does a statement with subqueries call a volatile function?  It has yet to be
 * planned, which moves parts of the subqueries elsewhere.
 */
bool
pgbloom_statement_calls_volatile(Query *statement)
{
	return has_subqueries(statement) &&
		(contain_volatile_functions((Node *) statement) ||
		 hidden_volatile_walker((Node *) statement, statement));
}

/*
 * Does a query that is being planned call a volatile function outside its
 * subqueries, also by functions that have been inlined?  It may have thousands
 * of partitions.
 */
bool
pgbloom_query_calls_volatile(const Query *query)
{
	Query		part = *query;
	ListCell   *lc;

	part.cteList = NIL;
	part.rtable = NIL;
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind != RTE_SUBQUERY &&
			(rte->rtekind != RTE_RELATION || rte->tablesample != NULL ||
			 rte->securityQuals != NIL))
			part.rtable = lappend(part.rtable, rte);
	}
	return pgbloom_calls_volatile(&part);
}

/* Does this node evaluate a volatile function?  Its children are ignored. */
bool
pgbloom_node_is_volatile(Plan *plan)
{
	List	   *expressions = list_make2(plan->targetlist, plan->qual);

#define EXAMINE(type, field) \
	expressions = lappend(expressions, ((type *) plan)->field)
	switch (nodeTag(plan))
	{
		case T_MergeJoin:
			EXAMINE(MergeJoin, mergeclauses);
			EXAMINE(Join, joinqual);
			break;
		case T_HashJoin:
			EXAMINE(HashJoin, hashclauses);
			EXAMINE(Join, joinqual);
			break;
		case T_NestLoop:
			EXAMINE(Join, joinqual);
			break;
		case T_Memoize:
			EXAMINE(Memoize, param_exprs);
			break;
		case T_IndexScan:
			EXAMINE(IndexScan, indexqual);
			EXAMINE(IndexScan, indexorderby);
			break;
		case T_IndexOnlyScan:
			EXAMINE(IndexOnlyScan, indexqual);
			EXAMINE(IndexOnlyScan, indexorderby);
			break;
		case T_BitmapIndexScan:
			EXAMINE(BitmapIndexScan, indexqual);
			break;
		case T_BitmapHeapScan:
			EXAMINE(BitmapHeapScan, bitmapqualorig);
			break;
		case T_TidScan:
			EXAMINE(TidScan, tidquals);
			break;
		case T_TidRangeScan:
			EXAMINE(TidRangeScan, tidrangequals);
			break;
		case T_SampleScan:
			EXAMINE(SampleScan, tablesample);
			break;
		case T_FunctionScan:
			EXAMINE(FunctionScan, functions);
			break;
		case T_ValuesScan:
			EXAMINE(ValuesScan, values_lists);
			break;
		case T_TableFuncScan:
			EXAMINE(TableFuncScan, tablefunc);
			break;
		case T_ForeignScan:
			EXAMINE(ForeignScan, fdw_exprs);
			break;
		case T_Limit:
			EXAMINE(Limit, limitOffset);
			EXAMINE(Limit, limitCount);
			break;
		case T_Result:
			EXAMINE(Result, resconstantqual);
			break;
		case T_WindowAgg:
			EXAMINE(WindowAgg, startOffset);
			EXAMINE(WindowAgg, endOffset);
			EXAMINE(WindowAgg, runCondition);
			break;
		case T_CustomScan:
			/* Nothing is known of nodes of other extensions. */
			return true;
		default:
			break;
	}
#undef EXAMINE
	return pgbloom_calls_volatile(expressions);
}

/*
 * Could an error come from the rows of this plan?  Not from scans of tables
 * whose expressions cannot fail; other nodes are not looked at.  What an index
 * scan orders its rows by is in its target list.
 */
bool
pgbloom_plan_may_fail(Plan *plan)
{
	List	   *expressions = list_make2(plan->targetlist, plan->qual);
	ListCell   *lc;

	switch (nodeTag(plan))
	{
		case T_IndexScan:
			expressions = lappend(expressions, ((IndexScan *) plan)->indexqual);
			break;
		case T_IndexOnlyScan:
			expressions = lappend(expressions,
								  ((IndexOnlyScan *) plan)->indexqual);
			break;
		case T_BitmapIndexScan:
			expressions = ((BitmapIndexScan *) plan)->indexqual;
			break;
		case T_SeqScan:
		case T_BitmapHeapScan:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_Append:
			break;
		default:
			return true;
	}
	if (pgbloom_join_may_fail((Expr *) expressions))
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (pgbloom_plan_may_fail(lfirst(lc)))
			return true;
	}
	return false;
}

/* Enter the nodes of a plan; returns whether one of them is volatile. */
static bool
examine_plan(PgBloomJoinNodes *nodes, Plan *plan)
{
	bool		result = pgbloom_node_is_volatile(plan);
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	nodes->filtered |= outerPlan(plan) != NULL &&
		pgbloom_is_builder(outerPlan(plan));
	nodes->last_node_id = Max(nodes->last_node_id, plan->plan_node_id);
	if (result)
		nodes->volatile_nodes = bms_add_member(nodes->volatile_nodes,
											   plan->plan_node_id);
	foreach(lc, pgbloom_plan_children(plan))
		result |= examine_plan(nodes, lfirst(lc));
	if (result)
		nodes->volatile_trees = bms_add_member(nodes->volatile_trees,
											   plan->plan_node_id);
	return result;
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
			nodes->volatile_subplans |= examine_plan(nodes, lfirst(lc));
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

/* Does this node evaluate a volatile function?  Its children are ignored. */
bool
pgbloom_is_volatile(const PgBloomJoinNodes *nodes, Plan *plan)
{
	return bms_is_member(plan->plan_node_id, nodes->volatile_nodes);
}

/* Does it, or a node below? */
bool
pgbloom_has_volatile(const PgBloomJoinNodes *nodes, Plan *plan)
{
	return bms_is_member(plan->plan_node_id, nodes->volatile_trees);
}
