/*-------------------------------------------------------------------------
 *
 * support.c
 *	  The planner support function of lookups in an index.
 *
 * A lookup whose arguments do not depend on rows is evaluated once for each
 * scan, as a condition that gates it.  In a query of a partitioned table, that
 * is once for each partition, and each time all partitions may be probed.  So
 * the lookup becomes a subquery, of which PostgreSQL makes an InitPlan: it is
 * evaluated once, when its result is first needed.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/genam.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bloom_index_support);

/*
 * Does an expression depend on a row of its query, or on an expression that it
 * is part of?  The placeholders of those that have such are their own; they are
 * rare.
 */
static bool
depends_on_place(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			return ((Var *) node)->varlevelsup == 0;
		case T_PlaceHolderVar:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_CurrentOfExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_ArrayCoerceExpr:
		case T_CoerceToDomainValue:
		case T_SetToDefault:
			return true;
		case T_Param:
			return ((Param *) node)->paramkind != PARAM_EXTERN;
		default:
			return expression_tree_walker(node, depends_on_place, context);
	}
}

/* Do the arguments of a lookup have the same values for all rows of a query? */
static bool
is_same_for_all(PlannerInfo *root, FuncExpr *lookup)
{
	Node	   *arguments = (Node *) lookup->args;
	Index		level;

	/* Subqueries may have columns of this query, and aggregates of any. */
	for (level = 0; level < root->query_level; level++)
	{
		if (contain_aggs_of_level(arguments, (int) level))
			return false;
	}
	return !contain_vars_of_level(arguments, 0) &&
		!depends_on_place(arguments, NULL) &&
		!expression_returns_set(arguments) &&
		!contain_volatile_functions(arguments);
}

static bool
has_exists(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) && ((SubLink *) node)->subLinkType == EXISTS_SUBLINK)
		return true;
	return expression_tree_walker(node, has_exists, context);
}

static bool
is_no_builtin(Oid function, void *context)
{
	(void) context;
	return function >= FirstNormalObjectId;
}

/* Does it call functions that may be lookups, or have them in their bodies? */
static bool
may_look_up(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, is_no_builtin, context) ||
		 expression_tree_walker(node, may_look_up, context));
}

/*
 * May lookups in a query become subqueries?  The planner simplifies the
 * conditions of a subquery of EXISTS as if they were of the query around it, and
 * then finds no subqueries in them.  With grouping sets, an expression of the
 * result is NULL where it is equal to one that is not grouped by; no two
 * subqueries are equal.
 */
static bool
may_get_subqueries(PlannerInfo *root)
{
	Query	   *query = root->parse;

	if (query->groupingSets != NIL &&
		(may_look_up((Node *) query->targetList, NULL) ||
		 may_look_up(query->havingQual, NULL) ||
		 range_table_walker(query->rtable, may_look_up, NULL,
							QTW_IGNORE_RT_SUBQUERIES)))
		return false;
	return !has_exists((Node *) root->append_rel_list, NULL) &&
		!query_tree_walker(query, has_exists, NULL,
						   QTW_IGNORE_RT_SUBQUERIES |
						   QTW_IGNORE_CTE_SUBQUERIES);
}

/* Has a query a FROM clause?  The planner puts a row in place of an empty one. */
static bool
has_from(Query *query)
{
	List	   *from = query->jointree == NULL ? NIL : query->jointree->fromlist;
	RangeTblRef *first = from == NIL ? NULL : linitial(from);

	return list_length(from) > 1 ||
		(first != NULL &&
		 !(IsA(first, RangeTblRef) &&
		   rt_fetch(first->rtindex, query->rtable)->rtekind == RTE_RESULT));
}

/* May the index of a lookup be partitioned? */
static bool
may_be_partitioned(FuncExpr *lookup)
{
	Node	   *index = linitial(lookup->args);

	return !IsA(index, Const) ||
		(!((Const *) index)->constisnull &&
		 get_rel_relkind(DatumGetObjectId(((Const *) index)->constvalue)) ==
		 RELKIND_PARTITIONED_INDEX);
}

/* The subquery that returns the result of a lookup. */
static Node *
make_subquery(FuncExpr *lookup)
{
	Query	   *query = makeNode(Query);
	SubLink    *subquery = makeNode(SubLink);

	lookup = copyObject(lookup);
	IncrementVarSublevelsUp((Node *) lookup->args, 1, 0);
	query->commandType = CMD_SELECT;
	query->canSetTag = true;
	query->hasSubLinks = checkExprHasSubLink((Node *) lookup->args);
	query->jointree = makeFromExpr(NIL, NULL);
	query->targetList = list_make1(makeTargetEntry((Expr *) lookup, 1, NULL,
												   false));
	subquery->subLinkType = EXPR_SUBLINK;
	subquery->subselect = (Node *) query;
	subquery->location = -1;
	return (Node *) subquery;
}

Datum
bloom_index_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);
	PlannerInfo *root;
	FuncExpr   *lookup;

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL)
		PG_RETURN_POINTER(NULL);
	root = request->root;
	lookup = request->fcall;

	/*
	 * The subquery itself is one without tables.  When the planner has made
	 * an array of the tables, it simplifies conditions again, those of
	 * partitions, but plans no more subqueries.
	 */
	if (root->simple_rel_array != NULL || !has_from(root->parse) ||
		!may_be_partitioned(lookup) || !is_same_for_all(root, lookup) ||
		!may_get_subqueries(root))
		PG_RETURN_POINTER(NULL);
	root->parse->hasSubLinks = true;
	PG_RETURN_POINTER(make_subquery(lookup));
}
