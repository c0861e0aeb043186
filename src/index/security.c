/*-------------------------------------------------------------------------
 *
 * security.c
 *	  Who may look up keys in an index, and what is evaluated for its rows.
 *
 * An answer tells something about the rows of the table, so it takes what a
 * query of the indexed columns takes.
 *
 * Expression and predicate are taken as they are stored.  What relcache has of
 * them is simplified, once in a session, under the search_path that somebody
 * had then: bodies of SQL functions are put in place of their calls.  So it may
 * call functions that the owner of the index did not mean, and lack columns.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
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

/* Do values of a type consist of rows, which have attributes with names? */
static bool
has_attributes(Oid type)
{
	while (OidIsValid(type))
	{
		Oid			part;

		type = getBaseType(type);
		if (type_is_rowtype(type))
			return true;
		part = get_element_type(type);
		if (!OidIsValid(part))
			part = get_range_subtype(type);
		if (!OidIsValid(part))
			part = get_multirange_range(type);
		type = part;
	}
	return false;
}

/*
 * Has an expression a row as a whole, and not only a column of it?  ROW() of no
 * type has the columns that it names.  Other nodes return what these do.  The
 * planner has yet to add the defaults of arguments.
 */
static bool
has_row_walker(Node *node, void *context)
{
	Node	   *row = node;

	if (node == NULL)
		return false;
	while (IsA(row, FieldSelect))
		row = (Node *) ((FieldSelect *) row)->arg;
	if (IsA(row, Var))
		return has_attributes(exprType(node));
	if (IsA(node, RowExpr) && ((RowExpr *) node)->row_typeid != RECORDOID)
		return true;
	if ((IsA(node, Const) || IsA(node, FuncExpr) || IsA(node, OpExpr) ||
		 IsA(node, CoerceViaIO) || PGBLOOM_IS_JSON_EXPR(node)) &&
		has_attributes(exprType(node)))
		return true;
	if (IsA(node, FuncExpr) &&
		has_row_walker(pgbloom_default_arguments(((FuncExpr *) node)->funcid,
												 ((FuncExpr *) node)->args),
					   context))
		return true;
	return expression_tree_walker(node, has_row_walker, context);
}

/*
 * Raise an error if the key or predicate of an index may become another one
 * without an UPDATE, because a column of a row, or an attribute of a composite
 * value, is added or dropped.
 */
void
bfi_check_expressions(Relation index)
{
	if (has_row_walker(stored_tree(index, Anum_pg_index_indexprs), NULL) ||
		has_row_walker(stored_tree(index, Anum_pg_index_indpred), NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot depend on whole rows",
						RelationGetRelationName(index)),
				 errdetail("An added or dropped column changes them, and does not rebuild the index."),
				 errhint("Name the columns, as in ARRAY[a, b] or a || ' ' || b.")));
}

static bool
is_not_in_c(Oid function, void *context)
{
	(void) context;
	return !pgbloom_is_in_c(function);
}

/*
 * What else there is finds functions when it is executed, as a cast to a domain
 * does, or depends on settings, as many texts of values do.
 */
static bool
may_change_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			break;
		case T_Var:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_ArrayCoerceExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CoalesceExpr:
		case T_ArrayExpr:
		case T_RelabelType:
		case T_CollateExpr:
			if (exprType(node) >= FirstNormalObjectId ||
				check_functions_in_node(node, is_not_in_c, context) ||
				(IsA(node, FuncExpr) &&
				 may_change_walker(pgbloom_default_arguments(((FuncExpr *) node)->funcid,
															 ((FuncExpr *) node)->args),
								   context)))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, may_change_walker, context);
}

/*
 * May the key or predicate of an index change without an UPDATE of the row?  Not
 * if it is of columns and functions in C, on PostgreSQL's own types.
 */
bool
bfi_key_may_change(Relation index)
{
	return may_change_walker(stored_tree(index, Anum_pg_index_indexprs),
							 NULL) ||
		may_change_walker(stored_tree(index, Anum_pg_index_indpred), NULL) ||
		!bfi_is_hashed_in_c(bfi_key_sql_type(index));
}

/* The columns that an index reads, as pull_varattnos numbers them. */
Bitmapset *
bfi_indexed_columns(Relation index)
{
	AttrNumber	column = index->rd_index->indkey.values[0];
	Bitmapset  *columns = NULL;

	if (column != InvalidAttrNumber)
		columns = bms_make_singleton(column -
									 FirstLowInvalidHeapAttributeNumber);
	pull_varattnos(stored_tree(index, Anum_pg_index_indexprs), 1, &columns);
	pull_varattnos(stored_tree(index, Anum_pg_index_indpred), 1, &columns);
	return columns;
}

static bool
may_select_columns(Oid table, Bitmapset *columns)
{
	int			i = -1;

	while ((i = bms_next_member(columns, i)) >= 0)
	{
		AttrNumber	column = (AttrNumber) (i +
										   FirstLowInvalidHeapAttributeNumber);

		/* A whole row takes the privilege for the table. */
		if (column == InvalidAttrNumber ||
			pg_attribute_aclcheck(table, column, GetUserId(),
								  ACL_SELECT) != ACLCHECK_OK)
			return false;
	}
	return columns != NULL;
}

/*
 * Raise an error if the user may not read the indexed columns of all rows, and
 * in which partition they are.
 */
void
bfi_check_privileges(Relation index, bool tells_partition)
{
	Oid			table = index->rd_index->indrelid;

	if (pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
	{
		Bitmapset  *columns = bfi_indexed_columns(index);

		if (tells_partition)
			columns = bms_add_member(columns, TableOidAttributeNumber -
									 FirstLowInvalidHeapAttributeNumber);
		if (!may_select_columns(table, columns))
			aclcheck_error(ACLCHECK_NO_PRIV,
						   get_relkind_objtype(get_rel_relkind(table)),
						   get_rel_name(table));
	}
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("index \"%s\" tells about rows that row-level security hides",
						RelationGetRelationName(index)),
				 errdetail("Row-level security of table \"%s\" applies to user \"%s\".",
						   get_rel_name(table),
						   GetUserNameFromId(GetUserId(), false)),
				 errhint("Call the function in a SECURITY DEFINER function of the owner of the table.")));
}
