/*-------------------------------------------------------------------------
 *
 * equality.c
 *	  Which conditions compare an indexed column with a key that the index can
 *	  look up, so that the answer "false" means that no row fulfils them.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/stratnum.h"
#include "catalog/pg_language_d.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

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
 * Do values of a type hash by what they are, by functions that do not fail?
 * Enums hash by labels, which may be renamed.  A function that is not in C may
 * do anything.
 */
static bool
hashes_reliably(Oid type)
{
	Oid			element;
	HeapTuple	tuple;
	Oid			function;
	bool		result;

	for (type = getBaseType(type);
		 OidIsValid(element = get_element_type(type));
		 type = getBaseType(element))
		;
	if (type_is_enum(type))
		return false;
	if (type < FirstNormalObjectId)
		return true;
	function = lookup_type_cache(type,
								 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId ||
		((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Does the operator compare values for equality, so that those of this type that
 * are equal have equal hashes?
 */
bool
bfp_is_equality(const BfpEquality *equality, Oid type)
{
	Oid			family = lookup_type_cache(type,
										   TYPECACHE_HASH_OPFAMILY)->hash_opf;

	return OidIsValid(family) &&
		get_op_opfamily_strategy(equality->operator, family) == HTEqualStrategyNumber &&
		op_strict(equality->operator);
}

/*
 * Does an index of this key type and collation tell for certain that no row
 * fulfils the condition?  Values that are equal by the operator must have equal
 * hashes: it is an equality of the hash operator family of the key type, under
 * the same collation, and both sides hash as the same type of keys.
 */
bool
bfp_can_look_up(const BfpEquality *equality, Oid key_type, Oid collation)
{
	Oid			type = exprType(equality->key);
	PgBloomKeyInfo *index_info;
	PgBloomKeyInfo *info;

	if (equality->collation != collation ||
		!bfp_is_equality(equality, key_type))
		return false;
	if (equality->is_array)
		type = get_element_type(getBaseType(type));
	if (!OidIsValid(type) || !hashes_reliably(key_type) ||
		!hashes_reliably(type))
		return false;
	index_info = pgbloom_make_key_info(key_type, collation,
									   CurrentMemoryContext, false);
	info = type == key_type ? index_info :
		pgbloom_make_key_info(type, collation, CurrentMemoryContext, false);
	return index_info != NULL && info != NULL && !index_info->untyped &&
		!info->untyped &&
		bf_key_type_equal(&index_info->key_type, &info->key_type);
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
