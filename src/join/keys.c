/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  Hashing the keys of a join.
 *
 * Two keys that the join's operator calls equal must have the same hash, also
 * if they are of different types.  The hash operator family of the operator
 * guarantees that for its support functions.  The most common of these
 * functions are replaced by faster ones that hash the same values alike.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "join/hash.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Support functions whose values are hashed without calling them.  What
 * matters is how the function reads its argument: values that an operator of
 * PostgreSQL itself finds equal are the same number, or the same bytes.  An
 * operator of a user may use these functions, too, and compare otherwise.
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

/* A key without changes of type that leave its value as it is. */
Expr *
pgbloom_join_strip_relabel(Expr *key)
{
	while (IsA(key, RelabelType))
		key = ((RelabelType *) key)->arg;
	return key;
}

/* The column that the key is, or 0 if it is another expression. */
AttrNumber
pgbloom_join_column(Expr *key)
{
	Var		   *var = (Var *) pgbloom_join_strip_relabel(key);

	return IsA(var, Var) && var->varattno > 0 ? var->varattno : 0;
}

bool
pgbloom_join_is_in_c(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language == INTERNALlanguageId || language == ClanguageId;
}

/* May each role call this function? */
bool
pgbloom_join_is_public(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		is_public;
	Datum		acl;

	if (!HeapTupleIsValid(tuple))
		return false;
	acl = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proacl, &is_public);
	if (!is_public)
		is_public = aclmask(DatumGetAclP(acl), ACL_ID_PUBLIC,
							((Form_pg_proc) GETSTRUCT(tuple))->proowner,
							ACL_EXECUTE, ACLMASK_ANY) != 0;
	ReleaseSysCache(tuple);
	return is_public;
}

/*
 * Are the elements compared or hashed by functions that are not in C?  Or do
 * they have no extended hash function, as hash partitions need it?
 */
static bool
elements_may_fail(Oid type)
{
	Oid			element = get_element_type(type);
	TypeCacheEntry *entry;

	if (!OidIsValid(element))
		return false;
	entry = lookup_type_cache(element,
							  TYPECACHE_CMP_PROC | TYPECACHE_HASH_PROC |
							  TYPECACHE_HASH_EXTENDED_PROC);
	return (OidIsValid(entry->cmp_proc) &&
			!pgbloom_join_is_in_c(entry->cmp_proc)) ||
		(OidIsValid(entry->hash_proc) &&
		 (!pgbloom_join_is_in_c(entry->hash_proc) ||
		  !OidIsValid(entry->hash_extended_proc)));
}

/*
 * Could it raise an error to hash a key of this type for this operator, or to
 * compare it with another one?  Functions in C are taken not to if they have the
 * collation that they need.  Arrays and the like, which have operators of
 * PostgreSQL's own, call the functions of what they consist of.
 */
bool
pgbloom_join_hash_may_fail(Oid operator, Oid collation, Oid type)
{
	Oid			left,
				right;

	if (!OidIsValid(collation) && type_is_collatable(type))
		return true;
	if (operator < FirstNormalObjectId)
		return type == RECORDOID || type == RECORDARRAYOID ||
			(type >= FirstNormalObjectId && !type_is_enum(type)) ||
			elements_may_fail(type);
	return !get_op_hash_functions(operator, &left, &right) ||
		!pgbloom_join_is_in_c(left) ||
		!pgbloom_join_is_in_c(right);
}

static bool
find_direct_method(Oid function, Oid collation, PgBloomJoinKeyMethod *method)
{
	int			i;

	for (i = 0; i < (int) lengthof(direct_methods); i++)
	{
		if (direct_methods[i].function == function)
		{
			*method = direct_methods[i].method;
			return *method != PGBLOOM_JOIN_TEXT ||
				(OidIsValid(collation) &&
				 get_collation_isdeterministic(collation));
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
 * Look up how to hash the values that the operator compares.
 *
 * The standard support functions are those that the join itself calls.  The
 * extended ones may fail where these do not, as for arrays whose elements have
 * no extended hash function.
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
	if (operator < FirstNormalObjectId &&
		find_direct_method(left_function, collation, &outer->method) &&
		find_direct_method(right_function, collation, &inner->method) &&
		(outer->method == inner->method ||
		 (is_number(outer->method) && is_number(inner->method))))
		return;
	outer->method = inner->method = PGBLOOM_JOIN_FUNCTION;
	fmgr_info(left_function, &outer->function);
	fmgr_info(right_function, &inner->function);
}
