/*-------------------------------------------------------------------------
 *
 * bloom_key.c
 *	  From an SQL datum to the kind of a key and its 64-bit hash.
 *
 * Keys that SQL calls equal must hash alike, wherever and whenever: across
 * the types of one hash operator family, inline or TOASTed, on every CPU,
 * in every version of PostgreSQL and after dump and restore.  The common
 * types are therefore hashed by canonical bytes of our own
 * (bloom_canonical.c).  Any other type goes through the extended hash
 * function of its hash operator class, with what that depends on recorded in
 * the kind (bloom_kind.c).
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

struct PgBloomKeyType
{
	BfKind		kind;
	PgBloomHashFunction hash;	/* NULL for foreign types */
	FmgrInfo	extended_hash;	/* of foreign types */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	PgBloomKeyType *reading;	/* what it was last read as */
};

PG_FUNCTION_INFO_V1(bloom_key_in);

/*
 * bloom_key is the type that literals and parameters without a type take
 * where a key is expected; its values are those of text.
 */
Datum
bloom_key_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(PG_GETARG_CSTRING(0)));
}

/*
 * Whether this is the type with our input function.  The extension's types
 * have no fixed OIDs, may be in any schema and have namesakes in others; what
 * makes them ours is that this library made their values.
 */
bool
pgbloom_type_is(Oid type, PGFunction input)
{
	Oid			typinput;
	Oid			ioparam;
	FmgrInfo	function;

	if (type < FirstNormalObjectId || get_typtype(type) != TYPTYPE_BASE)
		return false;
	getTypeInputInfo(type, &typinput, &ioparam);
	fmgr_info(typinput, &function);
	return function.fn_addr == input;
}

static uint64
hash_foreign(PgBloomKeyType *type, Datum key, uint64 seed)
{
	Datum		hash;

	hash = FunctionCall2Coll(&type->extended_hash, type->collation, key,
							 UInt64GetDatum(seed));
	return bf_hash_u64(DatumGetUInt64(hash), seed);
}

/* Hash keys of any other type by the function of its operator class. */
static bool
set_foreign(PgBloomKeyType *key_type, Oid type, bool noerror)
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
	fmgr_info_cxt(entry->hash_extended_proc, &key_type->extended_hash,
				  key_type->context);
	return pgbloom_foreign_kind(&key_type->kind, type, key_type->collation,
								noerror);
}

static PgBloomKeyType *
make_key_type(Oid type, Oid collation, MemoryContext context, bool noerror)
{
	PgBloomKeyType *key_type = MemoryContextAllocZero(context,
													  sizeof(*key_type));
	Oid			base = getBaseType(type);

	key_type->collation = collation;
	key_type->context = context;

	key_type->hash = pgbloom_canonical_hash(base, &key_type->kind);
	if (key_type->hash != NULL)
	{
		if (type_is_collatable(base) &&
			!pgbloom_check_collation(collation, noerror))
			return NULL;
		return key_type;
	}

	if (pgbloom_type_is(base, bloom_key_in))
	{
		key_type->kind.code = BF_KIND_TEXT;
		key_type->hash = pgbloom_text_hash();
		key_type->untyped = true;
	}
	else if (get_typtype(base) == TYPTYPE_ENUM)
	{
		key_type->hash = pgbloom_hash_enum;
		if (!pgbloom_enum_kind(&key_type->kind, base, noerror))
			return NULL;
	}
	else if (!set_foreign(key_type, base, noerror))
		return NULL;
	return key_type;
}

/* Look up a type once for all calls from one site. */
static PgBloomKeyType *
lookup_once(FunctionCallInfo fcinfo, Oid type)
{
	PgBloomSite *site = pgbloom_site(fcinfo);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the data type of the key")));
	site->key_type = make_key_type(type, PG_GET_COLLATION(),
								   fcinfo->flinfo->fn_mcxt, false);
	return site->key_type;
}

/* The type of the key that is an argument. */
PgBloomKeyType *
pgbloom_key_type(FunctionCallInfo fcinfo, int argno)
{
	PgBloomSite *site = pgbloom_site(fcinfo);

	if (site->key_type != NULL)
		return site->key_type;
	return lookup_once(fcinfo, get_fn_expr_argtype(fcinfo->flinfo, argno));
}

/* The type of the keys in an argument that is an array. */
PgBloomKeyType *
pgbloom_element_type(FunctionCallInfo fcinfo, int argno)
{
	PgBloomSite *site = pgbloom_site(fcinfo);
	Oid			array;

	if (site->key_type != NULL)
		return site->key_type;
	array = get_fn_expr_argtype(fcinfo->flinfo, argno);
	return lookup_once(fcinfo, get_base_element_type(array));
}

/*
 * The type of keys of this SQL type, for a filter with keys of this kind, or
 * NULL if they are no keys of such a filter.
 */
PgBloomKeyType *
pgbloom_find_key_type(Oid type, Oid collation, const BfKind *kind)
{
	PgBloomKeyType *key_type = make_key_type(type, collation,
											 CurrentMemoryContext, true);

	if (key_type == NULL ||
		(kind->code != BF_KIND_NONE && !bf_kind_equal(&key_type->kind, kind)))
		return NULL;
	return key_type;
}

/* The kind of keys of this SQL type, under the collation of the type. */
void
pgbloom_type_kind(Oid type, BfKind *kind)
{
	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	*kind = make_key_type(type, get_typcollation(type), CurrentMemoryContext,
						  false)->kind;
}

/*
 * The type with this name whose values are text to all but its operators.
 * It is looked for in all schemas: what a filter contains must not depend on
 * the search path.
 */
static Oid
find_text_like_type(const char *name)
{
	CatCList   *list = SearchSysCacheList1(TYPENAMENSP,
										   CStringGetDatum(name));
	Oid			found = InvalidOid;
	int			i;

	for (i = 0; i < list->n_members; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);

		/* A domain of that name would be its base type. */
		if (type->typtype == TYPTYPE_BASE &&
			IsBinaryCoercible(type->oid, TEXTOID))
		{
			found = type->oid;
			break;
		}
	}
	ReleaseSysCacheList(list);
	return found;
}

/*
 * What a key without a type is taken for beside keys of this kind: the label
 * of an enum value, or a value of a type that is text to all but its own
 * operators, like citext.  Otherwise it remains text.
 */
static PgBloomKeyType *
read_untyped(PgBloomKeyType *type, const BfKind *kind)
{
	Oid			found;

	if (type->reading != NULL)
	{
		if (bf_kind_equal(&type->reading->kind, kind))
			return type->reading;
		pfree(type->reading);
		type->reading = NULL;
	}

	if (kind->code == BF_KIND_ENUM)
	{
		type->reading = MemoryContextAllocZero(type->context, sizeof(*type));
		type->reading->kind = *kind;
		type->reading->hash = pgbloom_text_hash();
	}
	else if (kind->code == BF_KIND_FOREIGN)
	{
		found = find_text_like_type(pgbloom_kind_name(kind));
		if (OidIsValid(found))
			type->reading = make_key_type(found, get_typcollation(found),
										  type->context, false);
	}
	return type->reading != NULL ? type->reading : type;
}

/* Most kinds have no name, of which the room need not be copied. */
static inline void
copy_kind(BfKind *to, const BfKind *from)
{
	if (from->namelen == 0)
		memcpy(to, from, offsetof(BfKind, name) + 1);
	else
		*to = *from;
}

/*
 * Hash a key for a filter with these parameters.  *kind, unless it is NULL,
 * receives the kind that the filter has with this key in it; a key of another
 * kind than the filter's is an error.
 */
uint64
pgbloom_key_hash(PgBloomKeyType *type, Datum key, const BfParams *params,
				 BfKind *kind)
{
	if (params->kind.code != BF_KIND_NONE &&
		!bf_kind_equal(&type->kind, &params->kind))
	{
		if (type->untyped)
			type = read_untyped(type, &params->kind);
		if (!bf_kind_equal(&type->kind, &params->kind))
			pgbloom_kind_mismatch(&params->kind, &type->kind);
	}
	if (kind != NULL)
		copy_kind(kind, &type->kind);
	return type->hash != NULL ? type->hash(key, params->seed) :
		hash_foreign(type, key, params->seed);
}
