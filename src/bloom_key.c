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
 * A key without a type (bloom_key, or an element of bloom_keys) is text that
 * is read as the filter's key type, as PostgreSQL reads the literal in
 * id = '5'.  This takes an immutable input function, because functions of
 * Bloom filters are immutable.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

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

struct PgBloomKeyType
{
	BfKind		kind;
	PgBloomHashFunction hash;	/* NULL for foreign types */
	FmgrInfo	extended_hash;	/* of foreign types */
	Oid			collation;
	MemoryContext context;		/* of this struct and what it points to */
	bool		untyped;		/* a literal or parameter without a type */
	bool		array_text;		/* keys are elements of the text of an array */
	PgBloomKeyType *resolved;	/* what an untyped key was last read as */
	bool		from_text;		/* convert text by the input function */
	FmgrInfo	input;
	Oid			ioparam;
};

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

	key_type->array_text = pgbloom_type_is(base, PGBLOOM_KEYS);
	if (key_type->array_text || pgbloom_type_is(base, PGBLOOM_KEY))
	{
		key_type->kind.code = BF_KIND_TEXT;
		pgbloom_set_text_encoding(&key_type->kind);
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

	if (!pgbloom_element_type(fcinfo, argno)->array_text)
		return PG_GETARG_ARRAYTYPE_P(argno);
	string = TextDatumGetCString(PG_GETARG_DATUM(argno));
	return DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, string,
												   TEXTOID, -1));
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
	PgBloomKeyType *key_type;

	if (!SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type with OID %u does not exist", type)));
	key_type = make_key_type(type, get_typcollation(type),
							 CurrentMemoryContext, false);
	if (key_type->untyped)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(type)),
				 errhint("Name the type that the keys have, for example text.")));
	*kind = key_type->kind;
}

/*
 * The base type that has the name in this kind, preferably one that has the
 * kind.  If another one is found, the kinds differ in platform or locale, and
 * the caller reports it.  All schemas are searched: what a filter contains
 * must not depend on the search path.  InvalidOid if there is none, or more
 * than one.
 */
static Oid
find_named_type(const BfKind *kind)
{
	static const BfKind any_kind = {.code = BF_KIND_NONE};
	char	   *name = pgbloom_kind_name(kind);
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
			pgbloom_find_key_type(type->oid, type->typcollation,
								  &any_kind) != NULL)
		{
			found = type->oid;
			nfound++;
		}
	}
	ReleaseSysCacheList(list);
	return nfound == 1 ? found : InvalidOid;
}

/*
 * The type to read an untyped key as for a filter with keys of this kind:
 * text, if there is none with an immutable input function.
 */
static Oid
find_type_to_read(const BfKind *kind)
{
	Oid			type = kind->code == BF_KIND_FOREIGN ?
		find_named_type(kind) : pgbloom_widest_type(kind);
	Oid			input;
	Oid			ioparam;

	if (!OidIsValid(type))
		return TEXTOID;
	getTypeInputInfo(type, &input, &ioparam);
	return func_volatile(input) == PROVOLATILE_IMMUTABLE ? type : TEXTOID;
}

static PgBloomKeyType *
make_resolved(const PgBloomKeyType *untyped, const BfKind *kind)
{
	PgBloomKeyType *result;
	Oid			type;
	Oid			input;

	/* Labels are hashed as text, also when the enum type is gone. */
	if (kind->code == BF_KIND_ENUM &&
		kind->encoding == untyped->kind.encoding)
	{
		result = MemoryContextAllocZero(untyped->context, sizeof(*result));
		result->kind = *kind;
		result->hash = pgbloom_text_hash();
		return result;
	}

	type = find_type_to_read(kind);
	result = make_key_type(type,
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

/* What an untyped key is read as for a filter with keys of this kind. */
static PgBloomKeyType *
resolve_untyped(PgBloomKeyType *untyped, const BfKind *kind)
{
	PgBloomKeyType *resolved = untyped->resolved;

	if (resolved != NULL &&
		(kind->code == BF_KIND_NONE ? resolved->kind.code == BF_KIND_TEXT :
		 bf_kind_equal(&resolved->kind, kind)))
		return resolved;
	if (resolved != NULL)
	{
		untyped->resolved = NULL;
		pfree(resolved);
	}
	untyped->resolved = make_resolved(untyped, kind);
	return untyped->resolved;
}

/*
 * Real and double precision are one kind, but text such as 0.1 is another
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
read_key(PgBloomKeyType *type, Datum key)
{
	char	   *string = TextDatumGetCString(key);
	ErrorContextCallback callback;
	Datum		result;

	callback.callback = add_array_hint;
	callback.arg = string;
	callback.previous = error_context_stack;

	/* Values of opclass-hashed types may begin with a brace. */
	if (type->kind.code != BF_KIND_FOREIGN)
		error_context_stack = &callback;
	result = InputFunctionCall(&type->input, string, type->ioparam, -1);
	error_context_stack = callback.previous;

	if (type->kind.code == BF_KIND_FLOAT)
		check_float(DatumGetFloat8(result), string);
	pfree(string);
	return result;
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
	if (type->untyped)
		type = resolve_untyped(type, &params->kind);
	if (params->kind.code != BF_KIND_NONE &&
		!bf_kind_equal(&type->kind, &params->kind))
		pgbloom_kind_mismatch(&params->kind, &type->kind);
	if (kind != NULL)
		copy_kind(kind, &type->kind);
	if (type->from_text)
		key = read_key(type, key);
	return type->hash != NULL ? type->hash(key, params->seed) :
		hash_foreign(type, key, params->seed);
}
