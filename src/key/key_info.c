/*-------------------------------------------------------------------------
 *
 * key_info.c
 *	  How to hash the values of an SQL type as keys.
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
