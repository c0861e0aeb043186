/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From an argument of an SQL function to the hash of a key.
 *
 * Keys that are equal in SQL must have equal hashes: across the types of one
 * hash operator family, inline or TOASTed, on every CPU, in every version of
 * PostgreSQL, and after dump and restore.  The common types are hashed by
 * canonical bytes (canonical.c), enums by their labels.  Any other type is
 * hashed by the extended hash function of its hash operator class, and the
 * key type records what that depends on (key_type.c).
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Hash a value of an opclass-hashed type.  The seed goes into both steps: into
 * the hash function of the operator class and into the hash of its result.
 */
uint64
pgbloom_opclass_hash(PgBloomKeyInfo *info, Datum value, uint64 seed)
{
	Datum		hash;

	hash = FunctionCall2Coll(&info->extended_hash, info->collation, value,
							 UInt64GetDatum(seed));
	return bf_hash_u64(DatumGetUInt64(hash), seed);
}

/* Hash values by the function of the type's default hash operator class. */
static bool
set_opclass_hash(PgBloomKeyInfo *info, Oid type, bool noerror)
{
	TypeCacheEntry *entry;

	if (!pgbloom_opclass_key_type(info, type, noerror))
		return false;
	entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC);
	if (!OidIsValid(entry->hash_extended_proc))
	{
		if (noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errdetail("It has no default hash operator class with an extended hash function."),
				 errhint("Cast the key to a type that has one, for example text.")));
	}
	fmgr_info_cxt(entry->hash_extended_proc, &info->extended_hash,
				  info->context);
	return true;
}

/*
 * Find out how to hash values of a type, in a memory context.  Raises an error
 * for a type that cannot be a key, or returns NULL with noerror.
 */
PgBloomKeyInfo *
pgbloom_make_key_info(Oid type, Oid collation, MemoryContext context,
					  bool noerror)
{
	PgBloomKeyInfo *info = MemoryContextAllocZero(context, sizeof(*info));
	Oid			base = getBaseType(type);

	info->collation = collation;
	info->context = context;

	info->hash = pgbloom_canonical_hash(base, &info->key_type);
	if (info->hash != NULL)
	{
		if (type_is_collatable(base) &&
			!pgbloom_check_collation(collation, noerror))
			return NULL;
		return info;
	}

	info->array_text = pgbloom_type_is(base, PGBLOOM_KEYS);
	if (info->array_text || pgbloom_type_is(base, PGBLOOM_KEY))
	{
		info->key_type.code = BF_KEY_TEXT;
		info->untyped = true;
	}
	else if (get_typtype(base) == TYPTYPE_ENUM)
	{
		info->hash = pgbloom_hash_enum;
		if (!pgbloom_enum_key_type(&info->key_type, base, noerror))
			return NULL;
	}
	else if (!set_opclass_hash(info, base, noerror))
		return NULL;
	return info;
}

/*
 * The same for looking up values in a filter of this key type.  Returns NULL
 * if values of the type are not keys of such a filter.
 */
PgBloomKeyInfo *
pgbloom_find_key_info(Oid type, Oid collation, const BfKeyType *key_type)
{
	PgBloomKeyInfo *info = pgbloom_make_key_info(type, collation,
												 CurrentMemoryContext, true);

	if (info == NULL ||
		(key_type->code != BF_KEY_NONE &&
		 !bf_key_type_equal(&info->key_type, key_type)))
		return NULL;
	return info;
}

/* The key type of this SQL type, under the collation of the type. */
void
pgbloom_key_type_of(Oid type, BfKeyType *key_type)
{
	PgBloomKeyInfo *info;

	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	info = pgbloom_make_key_info(type, get_typcollation(type),
								 CurrentMemoryContext, false);
	if (info->untyped)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errhint("Name the type that the keys have, for example text.")));
	*key_type = info->key_type;
}

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
											   fn_cache->context, false);
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
	Oid			array;

	if (fn_cache->key_info != NULL)
		return fn_cache->key_info;
	array = get_argument_type(fcinfo, argno);
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

/*
 * A filter of text does not record whether its keys are of type char(n), which
 * are hashed without their padding.  Drivers send them padded, and without a
 * type.  So such a key with this hash may be in the filter under another one,
 * which is returned; any other key has one hash.
 */
uint64
pgbloom_unpadded_hash(const PgBloomKeyInfo *info, Datum key,
					  const BfParams *params, uint64 hash)
{
	if (!info->untyped || info->resolved->key_type.code != BF_KEY_TEXT)
		return hash;
	return pgbloom_hash_bpchar(key, params->seed);
}
