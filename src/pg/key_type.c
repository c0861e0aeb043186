/*-------------------------------------------------------------------------
 *
 * key_type.c
 *	  Key types that are known by the name of an SQL type: enums, and types
 *	  that are hashed by the function of their operator class.
 *
 * The hashes of an operator class may depend on the byte order of the machine,
 * on the encoding of the database and, for types like citext, on its locale.
 * All of these are recorded.  Types whose hashes do not survive a dump are
 * rejected.
 *
 * The name is recorded without the schema.  Two types of one name must not be
 * confused: for a type that consists of other types, a hash of its definition
 * is added to the name; a base type that has a namesake cannot be a key.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

StaticAssertDecl(PG_ENCODING_BE_LAST <= BF_MAX_ENCODING,
				 "a database can have an encoding that the format lacks");

/*
 * Check that a collation is deterministic, so that equal strings have equal
 * bytes.  This and the following checks raise an error, or return false with
 * noerror.
 */
bool
pgbloom_check_collation(Oid collation, bool noerror)
{
	if (OidIsValid(collation) && get_collation_isdeterministic(collation))
		return true;
	if (noerror)
		return false;
	if (!OidIsValid(collation))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_COLLATION),
				 errmsg("could not determine which collation to use for string hashing"),
				 errhint("Use the COLLATE clause to set the collation explicitly.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("Bloom filters do not support nondeterministic collations"),
			 errdetail("Strings that are equal under collation \"%s\" may differ in their bytes.",
					   get_collation_name(collation)),
			 errhint("Apply a deterministic collation to the key, for example COLLATE \"C\".")));
	return false;
}

static bool
reject_type(Oid type, Oid key_type, bool noerror)
{
	if (noerror)
		return false;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("type %s cannot be the key of a Bloom filter",
					format_type_be(key_type)),
			 errdetail("Values of type %s hash by object identifiers, which do not survive dump and restore.",
					   format_type_be(type)),
			 errhint("Cast the key to text.")));
	return false;
}

/* Properties of a type, collected from all types that it consists of. */
typedef struct Walk
{
	Oid			key_type;		/* for messages */
	bool		by_locale;		/* some part may hash by the locale */
	bool		composed;		/* it consists of other types */
	StringInfoData parts;		/* its definition, unambiguous */
	StringInfoData numbers;		/* of attributes, by which they are stored */
	bool		noerror;
} Walk;

/*
 * The element type of an array type; InvalidOid for any other type, also for
 * oidvector and int2vector.
 */
static Oid
element_type(Oid type)
{
	Oid			element = get_element_type(type);

	return OidIsValid(element) && get_array_type(element) == type ?
		element : InvalidOid;
}

/* Markers in the definition; PART_NAME precedes a null-terminated name. */
#define PART_NAME		'\1'
#define PART_RANGE		'\2'
#define PART_COMPOSITE	'\3'
#define PART_ARRAY		'\4'
#define PART_END		'\5'

static bool check_opclass_type(Walk *walk, Oid type, Oid collation);

/* The name without the schema, so that a type may change its schema. */
static char *
type_name(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	name = pstrdup(NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname));
	ReleaseSysCache(tuple);
	return name;
}

static Oid
hash_function(Oid type)
{
	return lookup_type_cache(type,
							 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
}

/*
 * A type of the same name in another schema that hashes by another function;
 * InvalidOid if there is none.
 */
static Oid
find_namesake(Oid type, const char *name)
{
	CatCList   *list = SearchSysCacheList1(TYPENAMENSP,
										   CStringGetDatum(name));
	Oid			function = hash_function(type);
	Oid			found = InvalidOid;
	int			i;

	for (i = 0; i < list->n_members && !OidIsValid(found); i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type other = (Form_pg_type) GETSTRUCT(tuple);
		Oid			other_function;

		if (other->oid == type || other->typtype != TYPTYPE_BASE)
			continue;
		other_function = hash_function(other->oid);
		if (OidIsValid(other_function) && other_function != function)
			found = other->oid;
	}
	ReleaseSysCacheList(list);
	return found;
}

/* Check a type that does not consist of others. */
static bool
check_simple(Walk *walk, Oid type, Oid collation)
{
	char	   *name = type_name(type);
	Oid			namesake;

	appendStringInfoChar(&walk->parts, PART_NAME);
	appendBinaryStringInfo(&walk->parts, name, strlen(name) + 1);

	if (pgbloom_type_is(type, PGBLOOM_FILTER))
	{
		if (walk->noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(walk->key_type)),
				 errhint("To combine filters, use bloom_union_agg for a column of them, bloom_union for two.")));
	}

	namesake = type < FirstNormalObjectId ? InvalidOid :
		find_namesake(type, name);
	if (OidIsValid(namesake))
	{
		if (walk->noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(walk->key_type)),
				 errdetail("Filters record the name of a type without its schema, and there are types %s and %s.",
						   format_type_be_qualified(type),
						   format_type_be_qualified(namesake)),
				 errhint("Rename one of the types, or cast the key to text.")));
	}

	if (!type_is_collatable(type))
		return true;
	if (type >= FirstNormalObjectId)
		walk->by_locale = true;
	return pgbloom_check_collation(collation, walk->noerror);
}

static bool
check_attributes(Walk *walk, TupleDesc descriptor)
{
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (attribute->attisdropped)
			continue;
		appendBinaryStringInfo(&walk->numbers, (char *) &attribute->attnum,
							   sizeof(attribute->attnum));
		if (!check_opclass_type(walk, attribute->atttypid,
								attribute->attcollation))
			return false;
	}
	return true;
}

/* Do values of this type hash by object identifiers? */
static bool
hashes_by_oid(Oid type)
{
	switch (type)
	{
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGCOLLATIONOID:
		case REGTYPEOID:
		case REGROLEOID:
		case REGNAMESPACEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case ACLITEMOID:
#ifdef REGDATABASEOID
		case REGDATABASEOID:
#endif
			return true;
		default:
			return get_typtype(type) == TYPTYPE_ENUM;
	}
}

/*
 * Reject types whose hashes do not survive a dump, wherever they occur inside
 * the type of a key.  Sets by_locale if there is a type that may hash by the
 * locale of the database: any collatable type that is not PostgreSQL's own.
 */
static bool
check_opclass_type(Walk *walk, Oid type, Oid collation)
{
	bool		valid;
	Oid			part;

	check_stack_depth();
	type = getBaseType(type);
	if (hashes_by_oid(type))
		return reject_type(type, walk->key_type, walk->noerror);

	/* Within a key, a record might be of any type. */
	if (type == RECORDOID || type == RECORDARRAYOID)
	{
		if (walk->noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(walk->key_type)),
				 errdetail("It contains records of no particular type."),
				 errhint("Cast the records to a named composite type.")));
	}

	switch (get_typtype(type))
	{
		case TYPTYPE_COMPOSITE:
			{
				TupleDesc	descriptor = lookup_rowtype_tupdesc(type, -1);

				walk->composed = true;
				appendStringInfoChar(&walk->parts, PART_COMPOSITE);
				valid = check_attributes(walk, descriptor);
				appendStringInfoChar(&walk->parts, PART_END);
				ReleaseTupleDesc(descriptor);
				return valid;
			}
		case TYPTYPE_RANGE:
			if (type >= FirstNormalObjectId)
				walk->composed = true;
			appendStringInfoChar(&walk->parts, PART_RANGE);
			return check_opclass_type(walk, get_range_subtype(type),
									  get_range_collation(type));
		case TYPTYPE_MULTIRANGE:
			appendStringInfoChar(&walk->parts, PART_ARRAY);
			return check_opclass_type(walk, get_multirange_range(type),
									  InvalidOid);
		default:
			part = element_type(type);
			if (!OidIsValid(part))
				return check_simple(walk, type, collation);
			appendStringInfoChar(&walk->parts, PART_ARRAY);
			return check_opclass_type(walk, part, collation);
	}
}

/* Set the key type of an enum, whose labels are hashed as text. */
bool
pgbloom_enum_key_type(BfKeyType *key_type, Oid type, bool noerror)
{
	key_type->code = BF_KEY_ENUM;
	pgbloom_set_text_encoding(key_type);
	return pgbloom_set_key_type_name(key_type, type_name(type), noerror);
}

/*
 * Set the key type of a type that is hashed by its operator class.  It does not
 * depend on the numbers of attributes, which are not the same everywhere; the
 * definition does.
 */
bool
pgbloom_opclass_key_type(PgBloomKeyInfo *info, Oid type, bool noerror)
{
	BfKeyType  *key_type = &info->key_type;
	Oid			element = element_type(type);
	bool		array = OidIsValid(element);
	Walk		walk;

	walk.key_type = type;
	walk.by_locale = false;
	walk.composed = false;
	walk.noerror = noerror;
	initStringInfo(&walk.parts);
	initStringInfo(&walk.numbers);
	if (!check_opclass_type(&walk, type, info->collation))
		return false;
	/* The last bit is set, because 0 stands for types that cannot change. */
	if (walk.numbers.len > 0)
		info->definition = bf_hash_bytes(walk.numbers.data, walk.numbers.len,
										 bf_hash_bytes(walk.parts.data,
													   walk.parts.len, 0)) | 1;

	key_type->code = BF_KEY_OPCLASS;
#ifdef WORDS_BIGENDIAN
	key_type->byte_order = BF_BIG_ENDIAN;
#else
	key_type->byte_order = BF_LITTLE_ENDIAN;
#endif
	key_type->encoding = (uint8_t) GetDatabaseEncoding();
	return pgbloom_set_opclass_name(key_type,
									type_name(array ? getBaseType(element) :
											  type),
									walk.composed ? &walk.parts : NULL,
									array, walk.by_locale, noerror);
}
