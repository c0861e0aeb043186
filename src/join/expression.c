/*-------------------------------------------------------------------------
 *
 * expression.c
 *	  Whether the evaluation of an expression could raise an error.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

static bool
is_not_leakproof(Oid function, void *context)
{
	(void) context;
	return !get_func_leakproof(function);
}

static bool
is_collatable_walker(Node *node, void *context)
{
	if (node != NULL && IsA(node, List))
		return expression_tree_walker(node, is_collatable_walker, context);
	return node != NULL && type_is_collatable(exprType(node));
}

/*
 * May a function raise an error because of the collation of its arguments, also
 * if it is leakproof?  It may need one, or one that is deterministic.
 */
static bool
collation_may_fail(Node *call)
{
	Oid			collation = exprInputCollation(call);

	return OidIsValid(collation) ? !get_collation_isdeterministic(collation) :
		expression_tree_walker(call, is_collatable_walker, NULL);
}

/*
 * Functions that are leakproof raise no errors that depend on their arguments,
 * apart from those about collations.
 * PostgreSQL's contain_leaked_vars() is about something else: it passes
 * functions without columns among their arguments, and expressions whose
 * errors tell nothing, such as ARRAY[] of arrays with different dimensions.
 * Parameters may be results of a subplan that is executed for them, or fields
 * of a record of PL/pgSQL that is not assigned.
 */
static bool
may_fail_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_ArrayCoerceExpr:
		case T_List:
		case T_TargetEntry:
			break;
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
			if (check_functions_in_node(node, is_not_leakproof, context) ||
				collation_may_fail(node))
				return true;
			break;
		case T_ArrayExpr:
			if (((ArrayExpr *) node)->multidims)
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, may_fail_walker, context);
}

bool
pgbloom_join_may_fail(Expr *key)
{
	return may_fail_walker((Node *) key, NULL);
}
