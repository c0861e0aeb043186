/*-------------------------------------------------------------------------
 *
 * bloom_kind.c
 *	  Kinds of keys that are known by the name of their type: enums, and
 *	  foreign kinds, which are hashed by a function of their own.
 *
 * The hashes of a foreign kind may depend on the byte order of the machine,
 * on the encoding of the database and, for types like citext, on its locale,
 * so these are recorded as part of the kind.  Types whose hashes do not even
 * survive a dump are rejected.
 *
 * The name is recorded without the schema, so that a type may be in different
 * schemas of different databases.  Types of one name must not be confused:
 * those that consist of other types have a hash of these added to the name,
 * and a base type that has a namesake cannot be a key.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/tupdesc.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
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
 * Whether deterministic collation makes equal strings equal bytes.  This and
 * the following checks raise an error if that is not so, or, with noerror,
 * return false.
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
refuse_type(Oid type, Oid key_type, bool noerror)
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

/* What is found out about the type of a key on the way through its parts. */
typedef struct Walk
{
	Oid			key_type;		/* for messages */
	bool		by_locale;		/* some part may hash by the locale */
	bool		composed;		/* it consists of other types */
	StringInfoData parts;		/* unambiguous, in the database's encoding */
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

/* Markers in the parts; a name follows the first and ends in a null byte. */
#define PART_NAME		'\1'
#define PART_RANGE		'\2'
#define PART_COMPOSITE	'\3'
#define PART_ARRAY		'\4'
#define PART_END		'\5'

static bool check_foreign(Walk *walk, Oid type, Oid collation);

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

/* A type that does not consist of others. */
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

		if (!attribute->attisdropped &&
			!check_foreign(walk, attribute->atttypid,
						   attribute->attcollation))
			return false;
	}
	return true;
}

/*
 * Reject types whose hashes do not outlive the database, wherever they occur
 * inside the type of a key.  by_locale is set where there is one that may
 * hash by the locale of the database: any type of strings that is not
 * PostgreSQL's.
 */
static bool
check_foreign(Walk *walk, Oid type, Oid collation)
{
	bool		valid;
	Oid			part;

	check_stack_depth();
	type = getBaseType(type);
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
			return refuse_type(type, walk->key_type, walk->noerror);
	}

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
		case TYPTYPE_ENUM:
			return refuse_type(type, walk->key_type, walk->noerror);
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
			return check_foreign(walk, get_range_subtype(type),
								 get_range_collation(type));
		case TYPTYPE_MULTIRANGE:
			appendStringInfoChar(&walk->parts, PART_ARRAY);
			return check_foreign(walk, get_multirange_range(type),
								 InvalidOid);
		default:
			part = element_type(type);
			if (!OidIsValid(part))
				return check_simple(walk, type, collation);
			appendStringInfoChar(&walk->parts, PART_ARRAY);
			return check_foreign(walk, part, collation);
	}
}

static bool
set_kind_name(BfKind *kind, const char *name, bool noerror)
{
	char	   *utf8 = pgbloom_convert(name, strlen(name),
									   GetDatabaseEncoding(), PG_UTF8);
	size_t		length = utf8 == NULL ? 0 : strlen(utf8);

	if (noerror && (utf8 == NULL || length > BF_MAX_KIND_NAME ||
					!bf_valid_kind_name(utf8, length)))
		return false;
	if (utf8 == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type cannot be converted from encoding %s to UTF8.",
						   GetDatabaseEncodingName()),
				 errhint("Rename the type, or cast the key to text.")));
	if (length > BF_MAX_KIND_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type, with the locale by which it hashes, takes %zu bytes, the maximum is %d.",
						   length, BF_MAX_KIND_NAME),
				 errhint("Cast the key to text.")));
	if (!bf_valid_kind_name(utf8, length))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type contains control characters."),
				 errhint("Rename the type, or cast the key to text.")));
	memcpy(kind->name, utf8, length + 1);
	kind->namelen = (uint8_t) length;
	return true;
}

/*
 * The name of a locale of libc, with the one spelling of its codeset that
 * glibc lists: C.utf8 and C.UTF-8 are the same.
 */
static char *
normalize_locale(const char *name)
{
	char	   *result = pstrdup(strcmp(name, "POSIX") == 0 ? "C" : name);
	char	   *to = result;
	const char *from;
	bool		codeset = false;

	for (from = result; *from != '\0'; from++)
	{
		if (*from == '.' || *from == '@')
			codeset = *from == '.';
		else if (codeset && (*from == '-' || *from == '_'))
			continue;
		*to++ = codeset ? pg_ascii_tolower((unsigned char) *from) : *from;
	}
	*to = '\0';
	return result;
}

/* What decides in this database which letters are the same but for case. */
static char *
database_locale(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID,
										ObjectIdGetDatum(MyDatabaseId));
	char		provider;
	Datum		locale;
	bool		isnull;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
	locale = SysCacheGetAttr(DATABASEOID, tuple,
							 provider == COLLPROVIDER_LIBC ?
							 Anum_pg_database_datctype :
							 Anum_pg_database_datlocale, &isnull);
	if (isnull)
		elog(ERROR, "database %u has no locale", MyDatabaseId);
	if (provider == COLLPROVIDER_LIBC)
		name = normalize_locale(TextDatumGetCString(locale));
	else
		name = psprintf("%s:%s",
						provider == COLLPROVIDER_ICU ? "icu" : "builtin",
						TextDatumGetCString(locale));
	ReleaseSysCache(tuple);
	return name;
}

/*
 * The name of a foreign kind: the type's, or for an array its element type's;
 * then "#" and a hash of the parts, if the type consists of other types; "[]"
 * for an array; "@" and the locale, if some part may hash by it.  Each #, [
 * and @ of the type's own name is doubled, so that no two types get one name.
 */
static bool
set_foreign_name(BfKind *kind, Oid type, const Walk *walk)
{
	Oid			element = element_type(type);
	bool		array = OidIsValid(element);
	char	   *bare = type_name(array ? getBaseType(element) : type);
	StringInfoData name;

	initStringInfo(&name);
	for (; *bare != '\0'; bare++)
	{
		if (strchr("#[@", *bare) != NULL)
			appendStringInfoChar(&name, *bare);
		appendStringInfoChar(&name, *bare);
	}
	if (walk->composed)
		appendStringInfo(&name, "#%016llx",
						 (unsigned long long) bf_hash_bytes(walk->parts.data,
															walk->parts.len,
															0));
	if (array)
		appendStringInfoString(&name, "[]");
	if (walk->by_locale)
		appendStringInfo(&name, "@%s", database_locale());
	return set_kind_name(kind, name.data, walk->noerror);
}

/* The kind of an enum: hashed by its labels, in canonical bytes. */
bool
pgbloom_enum_kind(BfKind *kind, Oid type, bool noerror)
{
	kind->code = BF_KIND_ENUM;
	pgbloom_set_text_encoding(kind);
	return set_kind_name(kind, type_name(type), noerror);
}

/* The kind of a type that is hashed by its own function. */
bool
pgbloom_foreign_kind(BfKind *kind, Oid type, Oid collation, bool noerror)
{
	Walk		walk;

	walk.key_type = type;
	walk.by_locale = false;
	walk.composed = false;
	walk.noerror = noerror;
	initStringInfo(&walk.parts);
	if (!check_foreign(&walk, type, collation))
		return false;
	kind->code = BF_KIND_FOREIGN;
#ifdef WORDS_BIGENDIAN
	kind->byte_order = BF_BIG_ENDIAN;
#else
	kind->byte_order = BF_LITTLE_ENDIAN;
#endif
	kind->encoding = (uint8_t) GetDatabaseEncoding();
	return set_foreign_name(kind, type, &walk);
}
