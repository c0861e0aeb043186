/*-------------------------------------------------------------------------
 *
 * bloom_kind.c
 *	  Kinds of keys that are known by the name of their type: enums, and
 *	  foreign kinds, which are hashed by a function of their own.
 *
 * The hashes of a foreign kind may depend on the byte order of the machine,
 * on the encoding of the database and, for types like citext, on its locale,
 * so these are recorded as part of the kind.  Types whose hashes do not even
 * survive a dump are refused.
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

static bool check_foreign(Oid type, Oid collation, Oid key_type,
						  bool *by_locale, bool noerror);

static bool
check_attributes(TupleDesc descriptor, Oid key_type, bool *by_locale,
				 bool noerror)
{
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!attribute->attisdropped &&
			!check_foreign(attribute->atttypid, attribute->attcollation,
						   key_type, by_locale, noerror))
			return false;
	}
	return true;
}

/*
 * Refuse types whose hashes do not outlive the database, wherever they occur
 * inside the type of a key.  *by_locale is set where there is one that may
 * hash by the locale of the database: any type of strings that is not
 * PostgreSQL's.
 */
static bool
check_foreign(Oid type, Oid collation, Oid key_type, bool *by_locale,
			  bool noerror)
{
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
			return refuse_type(type, key_type, noerror);
	}

	/* Within a key, a record might be of any type. */
	if (type == RECORDOID || type == RECORDARRAYOID)
	{
		if (noerror)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be the key of a Bloom filter",
						format_type_be(key_type)),
				 errdetail("It contains records of no particular type."),
				 errhint("Cast the records to a named composite type.")));
	}

	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return refuse_type(type, key_type, noerror);
		case TYPTYPE_COMPOSITE:
			{
				TupleDesc	descriptor = lookup_rowtype_tupdesc(type, -1);
				bool		fine = check_attributes(descriptor, key_type,
													by_locale, noerror);

				ReleaseTupleDesc(descriptor);
				return fine;
			}
		case TYPTYPE_RANGE:
			return check_foreign(get_range_subtype(type),
								 get_range_collation(type), key_type,
								 by_locale, noerror);
		case TYPTYPE_MULTIRANGE:
			return check_foreign(get_multirange_range(type), InvalidOid,
								 key_type, by_locale, noerror);
		default:
			part = get_element_type(type);
			if (OidIsValid(part))
				return check_foreign(part, collation, key_type, by_locale,
									 noerror);
			if (!type_is_collatable(type))
				return true;
			if (type >= FirstNormalObjectId)
				*by_locale = true;
			return pgbloom_check_collation(collation, noerror);
	}
}

static bool
set_kind_name(BfKind *kind, const char *name, bool noerror)
{
	char	   *utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	size_t		length = strlen(utf8);

	if (noerror &&
		(length > BF_MAX_KIND_NAME || !bf_valid_kind_name(utf8, length)))
		return false;
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

/* The bare name, so that a type may change its schema. */
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
	provider = DatabaseLocaleProvider((Form_pg_database) GETSTRUCT(tuple));
	locale = SysCacheGetAttr(DATABASEOID, tuple,
							 provider == COLLPROVIDER_LIBC ?
							 Anum_pg_database_datctype :
							 Anum_pg_database_datlocale, &isnull);
	if (isnull)
		elog(ERROR, "database %u has no locale", MyDatabaseId);
	if (provider == COLLPROVIDER_LIBC)
		name = normalize_locale(DatumGetDatctype(locale));
	else
		name = psprintf("%s:%s",
						provider == COLLPROVIDER_ICU ? "icu" : "builtin",
						TextDatumGetCString(locale));
	ReleaseSysCache(tuple);
	return name;
}

/*
 * The name of a foreign kind: "type@locale", or "type" alone, with "[]" after
 * the type if it is an array.  Each @ and [ of the type's own is doubled, so
 * that no two types get one name.
 */
static bool
set_foreign_name(BfKind *kind, Oid type, bool by_locale, bool noerror)
{
	Oid			element = get_element_type(type);
	char	   *bare = type_name(OidIsValid(element) ? getBaseType(element) :
								 type);
	StringInfoData name;

	initStringInfo(&name);
	for (; *bare != '\0'; bare++)
	{
		if (*bare == '@' || *bare == '[')
			appendStringInfoChar(&name, *bare);
		appendStringInfoChar(&name, *bare);
	}
	if (OidIsValid(element))
		appendStringInfoString(&name, "[]");
	if (by_locale)
		appendStringInfo(&name, "@%s", database_locale());
	return set_kind_name(kind, name.data, noerror);
}

/* The kind of an enum: hashed by its labels, in canonical bytes. */
bool
pgbloom_enum_kind(BfKind *kind, Oid type, bool noerror)
{
	kind->code = BF_KIND_ENUM;
	return set_kind_name(kind, type_name(type), noerror);
}

/* The kind of a type that is hashed by its own function. */
bool
pgbloom_foreign_kind(BfKind *kind, Oid type, Oid collation, bool noerror)
{
	bool		by_locale = false;

	if (!check_foreign(type, collation, type, &by_locale, noerror))
		return false;
	kind->code = BF_KIND_FOREIGN;
#ifdef WORDS_BIGENDIAN
	kind->byte_order = BF_BIG_ENDIAN;
#else
	kind->byte_order = BF_LITTLE_ENDIAN;
#endif
	kind->encoding = (uint8_t) GetDatabaseEncoding();
	return set_foreign_name(kind, type, by_locale, noerror);
}
