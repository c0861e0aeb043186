/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From an argument of an SQL function to the hash of a key.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

/*
 * The type of an argument.  A caller that is not the executor, such as Citus,
 * does not pass the expression of the call.  Then it is the declared type,
 * unless that is polymorphic.
 */
static Oid
get_argument_type(FunctionCallInfo fcinfo, int argno)
{
	FmgrInfo   *function = fcinfo->flinfo;
	Oid			type = get_fn_expr_argtype(function, argno);
	Oid		   *types;
	int			ntypes;

	if (OidIsValid(type) || function->fn_expr != NULL)
		return type;
	(void) get_func_signature(function->fn_oid, &types, &ntypes);
	type = argno < ntypes ? types[argno] : InvalidOid;
	return IsPolymorphicType(type) ? InvalidOid : type;
}

/* Set *context, an Oid, to the collation of the first key without a type. */
static bool
find_key_collation(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (!IsA(node, TargetEntry) && !IsA(node, List) &&
		pgbloom_type_is(exprType(node), PGBLOOM_KEY))
	{
		*(Oid *) context = exprCollation(node);
		return true;
	}
	return expression_tree_walker(node, find_key_collation, context);
}

/*
 * The collation of the key.  An aggregate that calls the functions of another
 * one, as those of Citus do, may take several arguments as one row.  A row has
 * no collation, so it is looked up in the expression of the key.
 */
static Oid
get_key_collation(FunctionCallInfo fcinfo)
{
	Oid			collation = PG_GET_COLLATION();
	Aggref	   *aggref;

	if (OidIsValid(collation) || fcinfo->flinfo->fn_expr != NULL)
		return collation;
	aggref = AggGetAggref(fcinfo);
	if (aggref != NULL)
		(void) find_key_collation((Node *) aggref->args, &collation);
	return collation;
}

/* Look up a type once for all calls from one place in a query. */
static PgBloomKeyInfo *
lookup_once(FunctionCallInfo fcinfo, Oid type)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the data type of the key"),
				 fcinfo->flinfo->fn_expr == NULL ?
				 errhint("Cast the key to bloom_key, or hash it as in bloom_agg_hash(bloom_hash(key), 0.01, 1000000).") : 0));
	fn_cache->key_info = pgbloom_make_key_info(type,
											   get_key_collation(fcinfo),
											   fn_cache->context, true);
	return fn_cache->key_info;
}

/* What pgbloom_key_info looks up in the first call. */
PgBloomKeyInfo *
pgbloom_lookup_key_info(FunctionCallInfo fcinfo, int argno)
{
	return lookup_once(fcinfo, get_argument_type(fcinfo, argno));
}

/* How to hash the keys in an argument that is an array. */
PgBloomKeyInfo *
pgbloom_element_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	PgBloomKeyInfo *info;
	Oid			array;

	if (fn_cache->key_info != NULL)
		return fn_cache->key_info;
	array = get_argument_type(fcinfo, argno);
	if (OidIsValid(array) &&
		pgbloom_type_is(getBaseType(array), PGBLOOM_KEYS))
		return lookup_once(fcinfo, array);
	info = lookup_once(fcinfo, get_base_element_type(array));

	/* Here, bloom_keys is the type of a key. */
	info->array_text = false;
	return info;
}

/*
 * Hash a key for a filter with these parameters.  Sets *key_type, unless it is
 * NULL, to the key type that the filter has with this key, which is valid until
 * the next call.  Raises an error if the key is not of the filter's key type.
 */
uint64
pgbloom_key_hash(PgBloomKeyInfo *info, Datum key, const BfParams *params,
				 const BfKeyType **key_type)
{
	if (info->untyped)
		info = pgbloom_resolve_untyped(info, &params->key_type);
	if (params->key_type.code != BF_KEY_NONE &&
		!bf_key_type_equal(&info->key_type, &params->key_type))
		pgbloom_key_type_mismatch(&params->key_type, &info->key_type,
								  false);
	if (key_type != NULL)
		*key_type = &info->key_type;
	if (info->from_text)
		key = pgbloom_read_untyped(info, key);
	return pgbloom_hash_value(info, key, params->seed);
}
