/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From an SQL datum to the key type of a key and its 64-bit hash.
 *
 * Keys that SQL calls equal must hash alike, wherever and whenever: across
 * the types of one hash operator family, inline or TOASTed, on every CPU,
 * in every version of PostgreSQL and after dump and restore.  The common
 * types are therefore hashed by canonical bytes of our own
 * (bloom_canonical.c).  Any other type goes through the extended hash
 * function of its hash operator class, with what that depends on recorded in
 * the key type (bloom_kind.c).
 *
 * A key without a type (bloom_key, or an element of bloom_keys) is text that
 * is read as the filter's key type, as PostgreSQL reads the literal in
 * id = '5'.  This takes an immutable input function, because functions of
 * Bloom filters are immutable.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

struct PgBloomKeyInfo
{
	BfKeyType		key_type;
	PgBloomHashFunction hash;	/* NULL for opclass-hashed types */
	FmgrInfo	extended_hash;	/* of opclass-hashed types */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	bool		array_text;		/* keys are elements of the text of an array */
	PgBloomKeyInfo *resolved;	/* what an untyped key was last read as */
	bool		from_text;		/* convert text by the input function */
	FmgrInfo	input;
	Oid			ioparam;
};

static uint64
hash_by_opclass(PgBloomKeyInfo *type, Datum key, uint64 seed)
{
	Datum		hash;

	hash = FunctionCall2Coll(&type->extended_hash, type->collation, key,
							 UInt64GetDatum(seed));
	return bf_hash_u64(DatumGetUInt64(hash), seed);
}

/* Hash keys of any other type by the function of its operator class. */
static bool
set_opclass_hash(PgBloomKeyInfo *key_info, Oid type, bool noerror)
{
	TypeCacheEntry *entry;

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
	fmgr_info_cxt(entry->hash_extended_proc, &key_info->extended_hash,
				  key_info->context);
	return pgbloom_opclass_key_type(&key_info->key_type, type, key_info->collation,
								noerror);
}

static PgBloomKeyInfo *
make_key_info(Oid type, Oid collation, MemoryContext context, bool noerror)
{
	PgBloomKeyInfo *key_info = MemoryContextAllocZero(context,
													  sizeof(*key_info));
	Oid			base = getBaseType(type);

	key_info->collation = collation;
	key_info->context = context;

	key_info->hash = pgbloom_canonical_hash(base, &key_info->key_type);
	if (key_info->hash != NULL)
	{
		if (type_is_collatable(base) &&
			!pgbloom_check_collation(collation, noerror))
			return NULL;
		return key_info;
	}

	key_info->array_text = pgbloom_type_is(base, PGBLOOM_KEYS);
	if (key_info->array_text || pgbloom_type_is(base, PGBLOOM_KEY))
	{
		key_info->key_type.code = BF_KEY_TEXT;
		pgbloom_set_text_encoding(&key_info->key_type);
		key_info->untyped = true;
	}
	else if (get_typtype(base) == TYPTYPE_ENUM)
	{
		key_info->hash = pgbloom_hash_enum;
		if (!pgbloom_enum_key_type(&key_info->key_type, base, noerror))
			return NULL;
	}
	else if (!set_opclass_hash(key_info, base, noerror))
		return NULL;
	return key_info;
}

/* Look up a type once for all calls from one site. */
static PgBloomKeyInfo *
lookup_once(FunctionCallInfo fcinfo, Oid type)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the data type of the key")));
	fn_cache->key_info = make_key_info(type, PG_GET_COLLATION(),
								   fcinfo->flinfo->fn_mcxt, false);
	return fn_cache->key_info;
}

/* The type of the key that is an argument. */
PgBloomKeyInfo *
pgbloom_key_info(FunctionCallInfo fcinfo, int argno)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (fn_cache->key_info != NULL)
		return fn_cache->key_info;
	return lookup_once(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* The type of the keys in an argument that is an array. */
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

/*
 * The array of keys in an argument.  The elements of one without a type are
 * text, each of them a key without a type.
 */
ArrayType *
pgbloom_key_array(FunctionCallInfo fcinfo, int argno)
{
	char	   *string;

	if (!pgbloom_element_info(fcinfo, argno)->array_text)
		return PG_GETARG_ARRAYTYPE_P(argno);
	string = TextDatumGetCString(PG_GETARG_DATUM(argno));
	return DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, string,
												   TEXTOID, -1));
}

/*
 * The type of keys of this SQL type, for a filter with keys of this key type, or
 * NULL if they are no keys of such a filter.
 */
PgBloomKeyInfo *
pgbloom_find_key_info(Oid type, Oid collation, const BfKeyType *key_type)
{
	PgBloomKeyInfo *key_info = make_key_info(type, collation,
											 CurrentMemoryContext, true);

	if (key_info == NULL ||
		(key_type->code != BF_KEY_NONE && !bf_key_type_equal(&key_info->key_type, key_type)))
		return NULL;
	return key_info;
}

/* The key type of this SQL type, under the collation of the type. */
void
pgbloom_key_type_of(Oid type, BfKeyType *key_type)
{
	PgBloomKeyInfo *key_info;

	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	key_info = make_key_info(type, get_typcollation(type),
							 CurrentMemoryContext, false);
	if (key_info->untyped)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errhint("Name the type that the keys have, for example text.")));
	*key_type = key_info->key_type;
}

/*
 * The base type that has the name in this key type, preferably one that has the
 * key type.  If another one is found, the key types differ in platform or locale, and
 * the caller reports it.  All schemas are searched: what a filter contains
 * must not depend on the search path.  InvalidOid if there is none, or more
 * than one.
 */
static Oid
find_named_type(const BfKeyType *key_type)
{
	static const BfKeyType any_key_type = {.code = BF_KEY_NONE};
	char	   *name = pgbloom_key_type_name(key_type);
	CatCList   *list = SearchSysCacheList1(TYPENAMENSP,
										   CStringGetDatum(name));
	Oid			found = InvalidOid;
	int			nfound = 0;
	int			i;

	for (i = 0; i < list->n_members; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);

		if (type->typtype == TYPTYPE_BASE && type->typisdefined &&
			pgbloom_find_key_info(type->oid, type->typcollation,
								  &any_key_type) != NULL)
		{
			found = type->oid;
			nfound++;
		}
	}
	ReleaseSysCacheList(list);
	return nfound == 1 ? found : InvalidOid;
}

/*
 * The type to read an untyped key as for a filter with keys of this key type:
 * text, if there is none with an immutable input function.
 */
static Oid
find_type_to_read(const BfKeyType *key_type)
{
	Oid			type = key_type->code == BF_KEY_OPCLASS ?
		find_named_type(key_type) : pgbloom_widest_type(key_type);
	Oid			input;
	Oid			ioparam;

	if (!OidIsValid(type))
		return TEXTOID;
	getTypeInputInfo(type, &input, &ioparam);
	return func_volatile(input) == PROVOLATILE_IMMUTABLE ? type : TEXTOID;
}

static PgBloomKeyInfo *
make_resolved(const PgBloomKeyInfo *untyped, const BfKeyType *key_type)
{
	PgBloomKeyInfo *result;
	Oid			type;
	Oid			input;

	/* Labels are hashed as text, also when the enum type is gone. */
	if (key_type->code == BF_KEY_ENUM &&
		key_type->encoding == untyped->key_type.encoding)
	{
		result = MemoryContextAllocZero(untyped->context, sizeof(*result));
		result->key_type = *key_type;
		result->hash = pgbloom_text_hash();
		return result;
	}

	type = find_type_to_read(key_type);
	result = make_key_info(type,
						   type_is_collatable(type) ? untyped->collation :
						   InvalidOid, untyped->context, false);
	if (type != TEXTOID)
	{
		getTypeInputInfo(type, &input, &result->ioparam);
		fmgr_info_cxt(input, &result->input, untyped->context);
		result->from_text = true;
	}
	return result;
}

/* What an untyped key is read as for a filter with keys of this key type. */
static PgBloomKeyInfo *
resolve_untyped(PgBloomKeyInfo *untyped, const BfKeyType *key_type)
{
	PgBloomKeyInfo *resolved = untyped->resolved;

	if (resolved != NULL &&
		(key_type->code == BF_KEY_NONE ? resolved->key_type.code == BF_KEY_TEXT :
		 bf_key_type_equal(&resolved->key_type, key_type)))
		return resolved;
	if (resolved != NULL)
	{
		untyped->resolved = NULL;
		pfree(resolved);
	}
	untyped->resolved = make_resolved(untyped, key_type);
	return untyped->resolved;
}

/*
 * Real and double precision are one key type, but text such as 0.1 is another
 * number in each of them.  Reject it, because a filter does not record which
 * of the two its keys are.
 */
static void
check_float(double value, const char *string)
{
	if (isnan(value) || isinf(value) ||
		(fabs(value) <= FLT_MAX && (double) (float) value == value))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("could not determine whether key \"%s\" is of type real or double precision",
					string),
			 errdetail("The Bloom filter can hold keys of both types, and the number is not the same in both."),
			 errhint("Cast the key to real or to double precision.")));
}

/* The text may be an array, by mistake. */
static void
add_array_hint(void *arg)
{
	const char *string = arg;

	if (string[0] == '{' &&
		geterrcode() == ERRCODE_INVALID_TEXT_REPRESENTATION)
		errhint("To look up the elements of an array, use bloom_contains_any or bloom_contains_all; to add them, bloom_add_all.");
}

/* Convert the text of an untyped key to the type that it is read as. */
static Datum
read_key(PgBloomKeyInfo *type, Datum key)
{
	char	   *string = TextDatumGetCString(key);
	ErrorContextCallback callback;
	Datum		result;

	callback.callback = add_array_hint;
	callback.arg = string;
	callback.previous = error_context_stack;

	/* Values of opclass-hashed types may begin with a brace. */
	if (type->key_type.code != BF_KEY_OPCLASS)
		error_context_stack = &callback;
	result = InputFunctionCall(&type->input, string, type->ioparam, -1);
	error_context_stack = callback.previous;

	if (type->key_type.code == BF_KEY_FLOAT)
		check_float(DatumGetFloat8(result), string);
	pfree(string);
	return result;
}

/* Most key types have no name, of which the room need not be copied. */
static inline void
copy_key_type(BfKeyType *to, const BfKeyType *from)
{
	if (from->namelen == 0)
		memcpy(to, from, offsetof(BfKeyType, name) + 1);
	else
		*to = *from;
}

/*
 * Hash a key for a filter with these parameters.  *key type, unless it is NULL,
 * receives the key type that the filter has with this key in it; a key of another
 * key type than the filter's is an error.
 */
uint64
pgbloom_key_hash(PgBloomKeyInfo *type, Datum key, const BfParams *params,
				 BfKeyType *key_type)
{
	if (type->untyped)
		type = resolve_untyped(type, &params->key_type);
	if (params->key_type.code != BF_KEY_NONE &&
		!bf_key_type_equal(&type->key_type, &params->key_type))
		pgbloom_key_type_mismatch(&params->key_type, &type->key_type);
	if (key_type != NULL)
		copy_key_type(key_type, &type->key_type);
	if (type->from_text)
		key = read_key(type, key);
	return type->hash != NULL ? type->hash(key, params->seed) :
		hash_by_opclass(type, key, params->seed);
}
