/*-------------------------------------------------------------------------
 *
 * expression.c
 *	  The keys of a join as expressions: what they are below a node, and
 *	  whether their evaluation could raise an error.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

/*
 * A key in which more columns than this are replaced is given up, because it
 * could double its size at each node.
 */
#define MAX_REPLACED	32

/* For replacing the Vars of one kind by what a target list has for them. */
typedef struct Translation
{
	int			varno;
	List	   *targetlist;
	bool		failed;
	int			replaced;
} Translation;

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

static Node *
translate_mutator(Node *node, void *context)
{
	Translation *translation = context;

	if (node == NULL || translation->failed)
		return node;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		TargetEntry *entry = var->varno != translation->varno ? NULL :
			get_tle_by_resno(translation->targetlist, var->varattno);

		if (entry == NULL || ++translation->replaced > MAX_REPLACED)
		{
			translation->failed = true;
			return node;
		}
		return (Node *) copyObject(entry->expr);
	}
	return expression_tree_mutator(node, translate_mutator, context);
}

/* Nodes that cannot be evaluated in another place than where they are. */
static bool
is_fixed_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Param:
		case T_SubPlan:
		case T_AlternativeSubPlan:
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
			return true;
		default:
			return expression_tree_walker(node, is_fixed_walker, context);
	}
}

/*
 * Express a key by what is below a node with this target list, or return NULL
 * if this is not possible.  varno is that of the Vars that refer to the node.
 */
Expr *
pgbloom_join_translate(Expr *key, int varno, List *targetlist)
{
	Translation translation = {0};
	Node	   *expr;

	translation.varno = varno;
	translation.targetlist = targetlist;
	expr = translate_mutator((Node *) key, &translation);
	if (translation.failed || translation.replaced == 0 ||
		(!IsA(pgbloom_join_strip_relabel((Expr *) expr), Var) &&
		 (is_fixed_walker(expr, NULL) || expression_returns_set(expr) ||
		  contain_mutable_functions(expr))))
		return NULL;
	return (Expr *) expr;
}
