/*-------------------------------------------------------------------------
 *
 * key_type_name.c
 *	  Names of key types: composed, split, and compared in error messages.
 *
 * A key type with a name records the bare name of the SQL type, so that a type
 * can be in different schemas of different databases, and what its hashes depend
 * on.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/*
 * Set the name of a key type, given in the encoding of the database.  Raises
 * an error if the name cannot be recorded, or returns false with noerror.
 */
bool
pgbloom_set_key_type_name(BfKeyType *key_type, const char *name, bool noerror)
{
	char	   *utf8 = pgbloom_convert(name, strlen(name),
									   GetDatabaseEncoding(), PG_UTF8);
	size_t		length = utf8 == NULL ? 0 : strlen(utf8);

	if (noerror && (utf8 == NULL || length > BF_MAX_KEY_TYPE_NAME ||
					!bf_valid_key_type_name(utf8, length)))
		return false;
	if (utf8 == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type cannot be converted from encoding %s to UTF8.",
						   GetDatabaseEncodingName()),
				 errhint("Rename the type, or cast the key to text.")));
	if (length > BF_MAX_KEY_TYPE_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type, with the locale by which it hashes, takes %zu bytes, the maximum is %d.",
						   length, BF_MAX_KEY_TYPE_NAME),
				 errhint("Cast the key to text.")));
	if (!bf_valid_key_type_name(utf8, length))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of type \"%s\" cannot be recorded in a Bloom filter",
						name),
				 errdetail("The name of the type contains control characters."),
				 errhint("Rename the type, or cast the key to text.")));
	memcpy(key_type->name, utf8, length + 1);
	key_type->namelen = (uint8_t) length;
	return true;
}

/*
 * Name of a libc locale with its codeset spelled as glibc lists it, because
 * C.utf8 and C.UTF-8 are the same locale.
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

/* The locale of the database, which maps upper case to lower case. */
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
 * Set the name of an opclass-hashed key type: the name of the type, or of the
 * element type of an array; "[]" for an array; "@" and the locale of the
 * database, if values may hash by it.  Each "[" and "@" in the name of the type
 * is doubled, so that no two types get one name.
 */
bool
pgbloom_set_opclass_name(BfKeyType *key_type, const char *type_name,
						 bool array, bool by_locale, bool noerror)
{
	StringInfoData name;

	initStringInfo(&name);
	for (; *type_name != '\0'; type_name++)
	{
		if (strchr("[@", *type_name) != NULL)
			appendStringInfoChar(&name, *type_name);
		appendStringInfoChar(&name, *type_name);
	}
	if (array)
		appendStringInfoString(&name, "[]");
	if (by_locale)
		appendStringInfo(&name, "@%s", database_locale());
	return pgbloom_set_key_type_name(key_type, name.data, noerror);
}

/* The parts of a key type's name, in the encoding of the database. */
typedef struct KeyTypeName
{
	char	   *type;
	const char *locale;			/* or "" */
	bool		array;
} KeyTypeName;

/* Split a name that pgbloom_set_opclass_name composed, or any other name. */
static void
split_key_type_name(const BfKeyType *key_type, KeyTypeName *parts)
{
	char	   *name = pstrdup(bf_key_type_name(key_type));
	const char *from = name;
	char	   *to = name;

	parts->locale = "";
	parts->array = false;
	while (key_type->code == BF_KEY_OPCLASS && *from != '\0')
	{
		bool		special = strchr("[@", *from) != NULL;

		if (special && from[1] != *from)
		{
			if (*from == '@')
			{
				parts->locale = pgbloom_utf8_to_server(from + 1);
				break;
			}
			parts->array = true;
		}
		*to++ = *from;
		from += special && from[1] == *from ? 2 : 1;
	}
	if (key_type->code == BF_KEY_OPCLASS)
		*to = '\0';
	parts->type = pgbloom_utf8_to_server(name);
	pfree(name);
}

/*
 * Name of the keys' SQL type in the encoding of the database, for users to
 * read.  NULL if the filter has no key type yet.
 */
char *
pgbloom_key_type_name(const BfKeyType *key_type)
{
	KeyTypeName name;

	if (key_type->code == BF_KEY_NONE)
		return NULL;
	split_key_type_name(key_type, &name);
	return name.type;
}

/* The key type with the platform and locale by which its keys are hashed. */
static char *
describe_key_type(const BfKeyType *key_type)
{
	KeyTypeName name;

	split_key_type_name(key_type, &name);
	return psprintf("%s (%s%s%s%s)", name.type,
					key_type->byte_order == BF_LITTLE_ENDIAN ?
					"little-endian, " :
					key_type->byte_order == BF_BIG_ENDIAN ? "big-endian, " : "",
					pg_encoding_to_char(key_type->code != BF_KEY_OPCLASS ?
										PG_UTF8 : key_type->encoding),
					name.locale[0] != '\0' ? ", locale " : "", name.locale);
}

/* Why two key types are not equal. */
typedef enum Difference
{
	DIFFERENT_TYPES,
	DIFFERENT_LOCALES,
	DIFFERENT_PLATFORMS
} Difference;

static Difference
compare_key_types(const BfKeyType *a, const BfKeyType *b,
				  KeyTypeName *a_name, KeyTypeName *b_name)
{
	split_key_type_name(a, a_name);
	split_key_type_name(b, b_name);
	if (a->code != b->code || a_name->array != b_name->array ||
		strcmp(a_name->type, b_name->type) != 0)
		return DIFFERENT_TYPES;
	if (strcmp(a_name->locale, b_name->locale) != 0)
		return DIFFERENT_LOCALES;
	return DIFFERENT_PLATFORMS;
}

/* The SQL type to which a key is cast for lookups in a filter. */
static char *
type_to_cast(const BfKeyType *key_type, const KeyTypeName *name)
{
	Oid			type = pgbloom_widest_type(key_type);
	size_t		length = strlen(name->type) - (name->array ? 2 : 0);

	if (OidIsValid(type))
		return format_type_be(type);
	return psprintf("%s%s", quote_identifier(pnstrdup(name->type, length)),
					name->type + length);
}

/* Report that a key is not of the filter's key type. */
void
pgbloom_key_type_mismatch(const BfKeyType *key_type, const BfKeyType *other)
{
	KeyTypeName name;
	KeyTypeName other_name;
	Difference	difference = compare_key_types(key_type, other, &name,
											   &other_name);

	if (difference == DIFFERENT_TYPES)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("Bloom filter holds keys of type %s, not of type %s",
						name.type, other_name.type),
				 errdetail("Keys of different types hash differently, so the answer would be wrong."),
				 other_name.array && !name.array ?
				 errhint("To look up the elements of an array, use bloom_contains_any or bloom_contains_all; to add them, bloom_add_all.") :
				 errhint("Cast the key to the type of the filter's keys, as in $1::%s.",
						 type_to_cast(key_type, &name))));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 difference == DIFFERENT_PLATFORMS ?
			 errmsg("Bloom filter holds keys of type %s hashed on another platform",
					name.type) :
			 errmsg("Bloom filter holds keys of type %s hashed under another locale",
					name.type),
			 errdetail("The keys of the filter are %s, those given are %s.",
					   describe_key_type(key_type), describe_key_type(other)),
			 errhint("Build the filter again in this database, or from keys cast to text.")));
}

/* Report two filters with different key types. */
void
pgbloom_filter_mismatch(const BfKeyType *a, const BfKeyType *b)
{
	KeyTypeName a_name;
	KeyTypeName b_name;
	Difference	difference = compare_key_types(a, b, &a_name, &b_name);

	if (difference == DIFFERENT_TYPES)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot combine Bloom filters with keys of types %s and %s",
						a_name.type, b_name.type),
				 errdetail("Keys of different types hash differently."),
				 errhint("Build both filters from keys of one type.")));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 difference == DIFFERENT_PLATFORMS ?
			 errmsg("cannot combine Bloom filters with keys of type %s hashed on different platforms",
					a_name.type) :
			 errmsg("cannot combine Bloom filters with keys of type %s hashed under different locales",
					a_name.type),
			 errdetail("The keys of one filter are %s, those of the other are %s.",
					   describe_key_type(a), describe_key_type(b)),
			 errhint("Build both filters in one database, or from keys cast to text.")));
}
