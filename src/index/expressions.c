/*-------------------------------------------------------------------------
 *
 * expressions.c
 *	  The expression and the predicate of an index, as they are stored.
 *
 * What relcache has of them is simplified, once in a session, under the
 * search_path that somebody had then: bodies of SQL functions are put in place
 * of their calls.  So it may call functions that the owner of the index did
 * not mean, and lack columns.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/* A column of pg_index that is an expression tree, or NULL. */
static Node *
stored_tree(Relation index, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID,
										ObjectIdGetDatum(RelationGetRelid(index)));
	Node	   *tree = NULL;
	Datum		value;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u",
			 RelationGetRelid(index));
	value = SysCacheGetAttr(INDEXRELID, tuple, column, &isnull);
	if (!isnull)
		tree = stringToNode(TextDatumGetCString(value));
	ReleaseSysCache(tuple);
	return tree;
}

/* Add the columns that an index computes its keys from. */
void
bfi_pull_columns(Relation index, Bitmapset **columns)
{
	pull_varattnos(stored_tree(index, Anum_pg_index_indexprs), 1, columns);
	pull_varattnos(stored_tree(index, Anum_pg_index_indpred), 1, columns);
}

/*
 * Let an index be evaluated as it is stored, for rows of the table.  The user
 * is the owner of the table, and search_path is restricted.
 */
void
bfi_set_expressions(Relation index, IndexInfo *info)
{
	Node	   *expressions = stored_tree(index, Anum_pg_index_indexprs);
	Node	   *predicate = stored_tree(index, Anum_pg_index_indpred);

	info->ii_Expressions = (List *) expression_planner((Expr *) expressions);
	info->ii_ExpressionsState = NIL;
	info->ii_Predicate =
		make_ands_implicit(expression_planner((Expr *) predicate));
	info->ii_PredicateState = NULL;
}
