/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Which keys of a join a filter can have, and how they are hashed.
 *
 * A filter evaluates and hashes keys of rows for which the join might not do
 * so, and this must not fail.  So a key is a column, or a cast of a column by
 * one of some functions, and is compared and hashed by functions of PostgreSQL
 * itself.
 *
 * Two keys that the join's operator calls equal must have the same hash, also
 * if they are of different types.  The hash operator family of the operator
 * guarantees that for its support functions.  The most common of these
 * functions are replaced by faster ones that hash the same values alike.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/transam.h"
#include "catalog/pg_type_d.h"
#include "join/run/hash.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Casts that cannot fail. */
static const Oid casts[] = {
	F_INT4_INT2, F_INT8_INT2, F_INT8_INT4,
	F_NUMERIC_INT2, F_NUMERIC_INT4, F_NUMERIC_INT8,
	F_FLOAT8_INT2, F_FLOAT8_INT4, F_FLOAT8_INT8, F_FLOAT8_FLOAT4,
	F_TEXT_NAME, F_TEXT_BPCHAR, F_DATE_TIMESTAMP
};

/*
 * Support functions whose values are hashed without calling them.  What
 * matters is how the function reads its argument: values that the operator
 * finds equal are the same number, or the same bytes.
 */
static const struct
{
	Oid			function;
	PgBloomJoinKeyMethod method;
}			direct_methods[] =

{
	{F_HASHINT2, PGBLOOM_JOIN_INT16},
	{F_HASHINT4, PGBLOOM_JOIN_INT32},
	{F_HASHOID, PGBLOOM_JOIN_INT32},
	{F_HASHDATE, PGBLOOM_JOIN_INT32},
	{F_HASHINT8, PGBLOOM_JOIN_INT64},
	{F_TIMESTAMP_HASH, PGBLOOM_JOIN_INT64},
	{F_TIMESTAMPTZ_HASH, PGBLOOM_JOIN_INT64},
	{F_HASHTEXT, PGBLOOM_JOIN_TEXT},
	{F_UUID_HASH, PGBLOOM_JOIN_UUID}
};

/*
 * The column that the key is, apart from changes of type that leave its value
 * as it is, or 0 if it is another expression.  What a foreign server sends may
 * have numbers of its own.
 */
AttrNumber
pgbloom_join_column(Expr *key)
{
	Var		   *var;

	while (IsA(key, RelabelType))
		key = ((RelabelType *) key)->arg;
	var = (Var *) key;
	return IsA(var, Var) && var->varno != INDEX_VAR && var->varattno > 0 ?
		var->varattno : 0;
}

static bool
is_cast(Oid function)
{
	int			i;

	for (i = 0; i < (int) lengthof(casts); i++)
	{
		if (casts[i] == function)
			return true;
	}
	return false;
}

/* What a change of type or a cast is of, or NULL if the key is neither. */
static Expr *
argument_of(Expr *key)
{
	if (IsA(key, RelabelType))
		return ((RelabelType *) key)->arg;
	if (IsA(key, FuncExpr) && is_cast(((FuncExpr *) key)->funcid))
		return linitial(((FuncExpr *) key)->args);
	return NULL;
}

/* Is a key no more than casts of a column? */
bool
pgbloom_join_is_key(Expr *key)
{
	while (key != NULL && !IsA(key, Var))
		key = argument_of(key);
	return key != NULL;
}

/*
 * Express a key by what is below a node with this target list, to which Vars of
 * varno refer, or return NULL if that is not possible.
 */
Expr *
pgbloom_join_translate(Expr *key, int varno, List *targetlist)
{
	Var		   *var = (Var *) key;
	TargetEntry *entry;
	Expr	   *argument;
	Expr	   *result;

	if (IsA(key, Var))
	{
		entry = var->varno != varno ? NULL :
			get_tle_by_resno(targetlist, var->varattno);
		return entry != NULL && pgbloom_join_is_key(entry->expr) ?
			entry->expr : NULL;
	}
	argument = pgbloom_join_translate(argument_of(key), varno, targetlist);
	if (argument == NULL)
		return NULL;
	result = copyObject(key);
	if (IsA(result, RelabelType))
		((RelabelType *) result)->arg = argument;
	else
		((FuncExpr *) result)->args = list_make1(argument);
	return result;
}

/*
 * Is this operator PostgreSQL's own, which cannot fail?  Arrays, ranges and
 * records call functions of what they consist of, and text needs a collation.
 */
bool
pgbloom_join_is_own(Oid operator, Oid collation)
{
	Oid			left,
				right;

	op_input_types(operator, &left, &right);
	return operator < FirstNormalObjectId &&
		(left == ANYENUMOID || get_typtype(left) == TYPTYPE_BASE) &&
		(OidIsValid(collation) || !type_is_collatable(left));
}

/*
 * So are its hash functions.  Those of a collation that is not deterministic
 * make a sort key, which takes longer than what a filter saves.
 */
bool
pgbloom_join_can_hash(Oid operator, Oid collation)
{
	Oid			left,
				right;

	return pgbloom_join_is_own(operator, collation) &&
		(!OidIsValid(collation) || get_collation_isdeterministic(collation)) &&
		get_op_hash_functions(operator, &left, &right) &&
		left < FirstNormalObjectId && right < FirstNormalObjectId;
}

static bool
find_direct_method(Oid function, PgBloomJoinKeyMethod *method)
{
	int			i;

	for (i = 0; i < (int) lengthof(direct_methods); i++)
	{
		if (direct_methods[i].function == function)
		{
			*method = direct_methods[i].method;
			return true;
		}
	}
	return false;
}

static bool
is_number(PgBloomJoinKeyMethod method)
{
	return method <= PGBLOOM_JOIN_INT64;
}

/*
 * Look up how to hash the values that the operator compares: by the support
 * functions that the join itself calls.
 */
void
pgbloom_join_key_init(PgBloomJoinKey *outer, PgBloomJoinKey *inner,
					  Oid operator, Oid collation)
{
	Oid			left_function,
				right_function;

	if (!get_op_hash_functions(operator, &left_function, &right_function))
		elog(ERROR, "operator %u has no hash functions", operator);

	outer->collation = inner->collation = collation;
	if (find_direct_method(left_function, &outer->method) &&
		find_direct_method(right_function, &inner->method) &&
		(outer->method == inner->method ||
		 (is_number(outer->method) && is_number(inner->method))))
		return;
	outer->method = inner->method = PGBLOOM_JOIN_FUNCTION;
	fmgr_info(left_function, &outer->function);
	fmgr_info(right_function, &inner->function);
}

/* Prepare to read one more key of the rows of a node. */
void
pgbloom_join_add_key(PgBloomJoinReader *reader, Expr *key, PlanState *parent)
{
	AttrNumber	column = pgbloom_join_column(key);

	if (column == 0)
		reader->exprs[reader->n] = ExecInitExpr(key, parent);
	reader->columns[reader->n++] = column;
	reader->last = Max(reader->last, column);
}
