/*-------------------------------------------------------------------------
 *
 * equality.c
 *	  Which conditions compare an indexed column with a key that the index can
 *	  look up, so that the answer "false" means that no row fulfils them.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/*
 * Read a condition as one of a column, or expression, and a key.  Only the
 * order of the sides is told: what they are is for the caller to see.
 */
bool
bfp_read_equality(Node *clause, bool key_first, BfpEquality *equality)
{
	List	   *sides;

	equality->is_array = IsA(clause, ScalarArrayOpExpr);
	if (IsA(clause, OpExpr))
	{
		OpExpr	   *expression = (OpExpr *) clause;

		sides = expression->args;
		equality->operator = expression->opno;
		equality->collation = expression->inputcollid;
	}
	else if (equality->is_array && !key_first &&
			 ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *expression = (ScalarArrayOpExpr *) clause;

		sides = expression->args;
		equality->operator = expression->opno;
		equality->collation = expression->inputcollid;
	}
	else
		return false;
	if (list_length(sides) != 2)
		return false;
	equality->column = list_nth(sides, key_first ? 1 : 0);
	equality->key = list_nth(sides, key_first ? 0 : 1);
	return true;
}

/*
 * Does an index of this key type and collation tell for certain that no row
 * fulfils the condition?
 */
bool
bfp_can_look_up(const BfpEquality *equality, Oid key_type, Oid collation)
{
	Oid			type = exprType(equality->key);

	if (equality->is_array)
		type = get_element_type(getBaseType(type));
	return OidIsValid(type) &&
		bfi_can_look_up(equality->operator, equality->collation, type,
						key_type, collation);
}

/* How many keys there are, as far as that is known when planning. */
int
bfp_count_keys(const BfpEquality *equality)
{
	Node	   *key = equality->key;

	if (!equality->is_array)
		return 1;
	if (IsA(key, Const) && !((Const *) key)->constisnull)
	{
		ArrayType  *array = DatumGetArrayTypeP(((Const *) key)->constvalue);

		return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	}
	if (IsA(key, ArrayExpr))
		return list_length(((ArrayExpr *) key)->elements);
	return 10;
}

/*
 * Is the parameter a value of a row of an outer query?  Others are results of
 * subqueries, which may raise an error and need not be evaluated at all.
 */
static bool
is_outer_value(PlannerInfo *root, int id)
{
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->plan_params)
		{
			PlannerParamItem *item = lfirst(cell);

			if (item->paramId == id)
				return IsA(item->item, Var);
		}
	}
	return false;
}

/* Is it a cast that cannot fail? */
static bool
is_safe_cast(Oid function)
{
	switch (function)
	{
		case F_INT8_INT2:
		case F_INT8_INT4:
		case F_INT4_INT2:
		case F_NUMERIC_INT2:
		case F_NUMERIC_INT4:
		case F_NUMERIC_INT8:
		case F_FLOAT8_FLOAT4:
		case F_TEXT_BPCHAR:
		case F_TEXT_NAME:
			return true;
		default:
			return false;
	}
}

/*
 * Is a key the same for all rows, and can it be evaluated without an error,
 * even if PostgreSQL never would?  The query may not be planned yet.
 */
bool
bfp_is_safe_key(PlannerInfo *root, Node *key)
{
	ListCell   *cell;

	while (IsA(key, RelabelType) ||
		   (IsA(key, FuncExpr) && is_safe_cast(((FuncExpr *) key)->funcid)))
		key = IsA(key, RelabelType) ? (Node *) ((RelabelType *) key)->arg :
			linitial(((FuncExpr *) key)->args);
	if (IsA(key, Const))
		return true;
	if (IsA(key, Param))
		return ((Param *) key)->paramkind == PARAM_EXTERN ||
			(root != NULL && ((Param *) key)->paramkind == PARAM_EXEC &&
			 is_outer_value(root, ((Param *) key)->paramid));
	if (!IsA(key, ArrayExpr) || ((ArrayExpr *) key)->multidims)
		return false;
	foreach(cell, ((ArrayExpr *) key)->elements)
	{
		if (!bfp_is_safe_key(root, lfirst(cell)))
			return false;
	}
	return true;
}
