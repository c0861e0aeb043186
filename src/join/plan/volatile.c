/*-------------------------------------------------------------------------
 *
 * volatile.c
 *	  Whether a statement calls volatile functions.
 *
 * A filter drops rows for which such a function would have been called, and
 * join_planning may lead to another plan.  So the statement is asked before it
 * is planned, when all of its expressions are still in it.  The functions of its
 * outermost target list are called for the rows of the result, which are the
 * same.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "pgbloom.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

static bool volatile_walker(Node *node, void *context);

static bool
is_volatile(Oid function, void *context)
{
	(void) context;
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * Is one of the functions that make up an aggregate volatile?  None of those of
 * PostgreSQL's own is.
 */
static bool
is_volatile_aggregate(Oid aggregate)
{
	HeapTuple	tuple;
	Form_pg_aggregate form;
	bool		result = false;
	int			i;

	if (aggregate < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
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
			result = OidIsValid(functions[i]) && is_volatile(functions[i], NULL);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * May a value of this type, which is not the result of a cast to a domain, have
 * to satisfy the constraints of one?  They may call any function.  Ranges of
 * PostgreSQL's own have none.
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

/* Are default arguments volatile, which the planner has yet to add? */
static bool
defaults_are_volatile(Oid function, List *arguments)
{
	return volatile_walker(pgbloom_default_arguments(function, arguments),
						   NULL);
}

static bool
volatile_walker(Node *node, void *context)
{
	if (node == NULL || IsA(node, Var) || IsA(node, Const))
		return false;
	if (check_functions_in_node(node, is_volatile, NULL))
		return true;
	if ((IsA(node, CoerceViaIO) || PGBLOOM_IS_JSON_EXPR(node)) &&
		may_be_checked(exprType(node)))
		return true;
	switch (nodeTag(node))
	{
		case T_Query:
			return query_tree_walker((Query *) node, volatile_walker, context,
									 0);
		case T_NextValueExpr:
			return true;
		case T_CoerceToDomain:
			if (PGBLOOM_DOMAIN_IS_CHECKED(((CoerceToDomain *) node)->resulttype))
				return true;
			break;
		case T_FuncExpr:
			if (defaults_are_volatile(((FuncExpr *) node)->funcid,
									  ((FuncExpr *) node)->args))
				return true;
			break;
		case T_Aggref:
			if (is_volatile_aggregate(((Aggref *) node)->aggfnoid))
				return true;
			break;
		case T_WindowFunc:
			if (defaults_are_volatile(((WindowFunc *) node)->winfnoid,
									  ((WindowFunc *) node)->args) ||
				(((WindowFunc *) node)->winagg &&
				 is_volatile_aggregate(((WindowFunc *) node)->winfnoid)))
				return true;
			break;
		case T_TableFunc:
			if (one_may_be_checked(((TableFunc *) node)->coltypes))
				return true;
			break;
		case T_RangeTblFunction:
			if (one_may_be_checked(((RangeTblFunction *) node)->funccoltypes))
				return true;
			break;
		default:
			break;
	}
	return expression_tree_walker(node, volatile_walker, context);
}

/*
 * The parts of the outermost target list that may be evaluated for other rows
 * than those of the result: subqueries, which may have joins of their own, and
 * aggregates, which may be computed before a join.
 */
static bool
part_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink) || IsA(node, Aggref))
		return volatile_walker(node, context);
	return expression_tree_walker(node, part_walker, context);
}

/* The subquery whose rows INSERT adds, or NULL. */
static RangeTblEntry *
source_of(const Query *query)
{
	List	   *from = query->jointree->fromlist;
	RangeTblEntry *rte;

	if (query->commandType != CMD_INSERT || list_length(from) != 1 ||
		!IsA(linitial(from), RangeTblRef))
		return NULL;
	rte = rt_fetch(linitial_node(RangeTblRef, from)->rtindex, query->rtable);
	return rte->rtekind == RTE_SUBQUERY ? rte : NULL;
}

/* Has the query a single table, and nothing that could become a join? */
bool
pgbloom_join_has_no_join(const Query *query)
{
	return list_length(query->rtable) == 1 && !query->hasSubLinks &&
		linitial_node(RangeTblEntry, query->rtable)->rtekind == RTE_RELATION;
}

/*
 * Does a statement that is to be planned call a volatile function, apart from
 * its outermost target list, and that of the source of INSERT?
 */
bool
pgbloom_join_is_volatile(const Query *query)
{
	Query		rest = *query;
	RangeTblEntry *source = source_of(query);

	if (pgbloom_join_has_no_join(query))
		return false;
	rest.targetList = NIL;
	if (source != NULL)
		rest.rtable = list_delete_ptr(list_copy(query->rtable), source);
	return volatile_walker((Node *) &rest, NULL) ||
		part_walker((Node *) query->targetList, NULL) ||
		(source != NULL && pgbloom_join_is_volatile(source->subquery));
}
