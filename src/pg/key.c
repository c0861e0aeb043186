/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From an argument of an SQL function to the hash of a key.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "utils/lsyscache.h"

/* Look up a type once for all calls from one place in a query. */
static PgBloomKeyInfo *
lookup_once(FunctionCallInfo fcinfo, Oid type)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the data type of the key")));
	fn_cache->key_info = pgbloom_make_key_info(type, PG_GET_COLLATION(),
											   fcinfo->flinfo->fn_mcxt,
											   false);
	return fn_cache->key_info;
}

/* How to hash the key in an argument. */
PgBloomKeyInfo *
pgbloom_key_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (fn_cache->key_info != NULL)
		return fn_cache->key_info;
	return lookup_once(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* How to hash the keys in an argument that is an array. */
PgBloomKeyInfo *
pgbloom_element_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	Oid			array;

	if (fn_cache->key_info != NULL)
		return fn_cache->key_info;
	array = get_fn_expr_argtype(fcinfo->flinfo, argno);
	if (OidIsValid(array) &&
		pgbloom_type_is(getBaseType(array), PGBLOOM_KEYS))
		return lookup_once(fcinfo, array);
	return lookup_once(fcinfo, get_base_element_type(array));
}

/* Copy a key type, but not the memory of a name that it does not have. */
static inline void
copy_key_type(BfKeyType *to, const BfKeyType *from)
{
	if (from->namelen == 0)
		memcpy(to, from, offsetof(BfKeyType, name) + 1);
	else
		*to = *from;
}

/*
 * Hash a key for a filter with these parameters.  Sets *key_type, unless it is
 * NULL, to the key type that the filter has with this key.  Raises an error if
 * the key is not of the filter's key type.
 */
uint64
pgbloom_key_hash(PgBloomKeyInfo *info, Datum key, const BfParams *params,
				 BfKeyType *key_type)
{
	if (info->untyped)
		info = pgbloom_resolve_untyped(info, &params->key_type);
	if (params->key_type.code != BF_KEY_NONE &&
		!bf_key_type_equal(&info->key_type, &params->key_type))
		pgbloom_key_type_mismatch(&params->key_type, &info->key_type);
	if (key_type != NULL)
		copy_key_type(key_type, &info->key_type);
	if (info->from_text)
		key = pgbloom_read_untyped(info, key);
	return pgbloom_hash_value(info, key, params->seed);
}
