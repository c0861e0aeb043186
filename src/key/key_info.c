/*-------------------------------------------------------------------------
 *
 * key_info.c
 *	  How to hash the values of an SQL type as keys, and the name by which a
 *	  key type is known.
 *
 * Keys that are equal in SQL must have equal hashes: across the types of one
 * hash operator family, inline or TOASTed, on every CPU, in every version of
 * PostgreSQL, and after dump and restore.  The common types are hashed by
 * canonical bytes (canonical.c), enums by their labels.  Arrays and jsonb are
 * hashed by what they consist of (composed.c), and any other type by the
 * extended hash function of its hash operator class; the key type records what
 * that depends on.
 *
 * The hashes of an operator class may depend on the byte order of the machine,
 * on the encoding of the database and, for types like citext, on its locale and
 * that of the collation.  All of these are recorded.  Types whose hashes do not
 * survive a dump are rejected.
 *
 * The name is recorded without the schema.  Two types of one name must not be
 * confused: a type that has a namesake cannot be a key, nor can a type that
 * consists of others, such as a composite type, which may change.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

StaticAssertDecl(PG_ENCODING_BE_LAST <= BF_MAX_ENCODING,
				 "a database can have an encoding that the format lacks");

/*
 * The functions that check a type return this if it cannot be a key.  With
 * raise, it is an error.
 */
static bool
reject_key(bool raise, int sqlerrcode, const char *message, const char *detail,
		   const char *hint)
{
	if (raise)
		ereport(ERROR,
				(errcode(sqlerrcode),
				 errmsg_internal("%s", message),
				 detail != NULL ? errdetail_internal("%s", detail) : 0,
				 errhint("%s", hint)));
	return false;
}

static bool
reject_type(bool raise, Oid type, const char *detail, const char *hint)
{
	return reject_key(raise, ERRCODE_FEATURE_NOT_SUPPORTED,
					  psprintf("type %s cannot be the key of a Bloom filter",
							   format_type_be(type)), detail, hint);
}

/*
 * Check that a collation is deterministic, so that equal strings have equal
 * bytes.
 */
static bool
check_collation(Oid collation, bool raise)
{
	if (!OidIsValid(collation))
		return reject_key(raise, ERRCODE_INDETERMINATE_COLLATION,
						  "could not determine which collation to use for string hashing",
						  NULL,
						  "Use the COLLATE clause to set the collation explicitly.");
	if (!get_collation_isdeterministic(collation))
		return reject_key(raise, ERRCODE_FEATURE_NOT_SUPPORTED,
						  "Bloom filters do not support nondeterministic collations",
						  psprintf("Strings that are equal under collation \"%s\" may differ in their bytes.",
								   get_collation_name(collation)),
						  "Apply a deterministic collation to the key, for example COLLATE \"C\".");
	return true;
}

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
opclass_hash_function(Oid type)
{
	return lookup_type_cache(type,
							 TYPECACHE_HASH_EXTENDED_PROC)->hash_extended_proc;
}

/*
 * A type of the same name in another schema that hashes otherwise; InvalidOid if
 * there is none.  One of PostgreSQL's own does so at least in arrays.
 */
static Oid
find_namesake(Oid type, const char *name)
{
	CatCList   *list = SearchSysCacheList1(TYPENAMENSP,
										   CStringGetDatum(name));
	Oid			function = opclass_hash_function(type);
	Oid			found = InvalidOid;
	int			i;

	for (i = 0; i < list->n_members && !OidIsValid(found); i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type other = (Form_pg_type) GETSTRUCT(tuple);
		Oid			other_function;

		if (other->oid == type || other->typtype != TYPTYPE_BASE)
			continue;
		other_function = opclass_hash_function(other->oid);
		if (OidIsValid(other_function) &&
			(other_function != function || other->oid < FirstNormalObjectId))
			found = other->oid;
	}
	ReleaseSysCacheList(list);
	return found;
}

/* Do values of this type hash by identifiers of other objects? */
static bool
hashes_by_oid(Oid type)
{
	switch (type == OIDOID ? InvalidOid : opclass_hash_function(type))
	{
		case F_HASHOIDEXTENDED:
		case F_HASHENUMEXTENDED:
		case F_HASH_ACLITEM_EXTENDED:
			return true;
		default:
			return false;
	}
}

/*
 * Check the type of a key, or of the elements of one: reject types whose
 * hashes do not survive a dump, and types that a name does not identify.
 */
static bool
check_opclass_type(Oid key_type, Oid type, bool raise)
{
	Oid			namesake;

	if (hashes_by_oid(type))
		return reject_type(raise, key_type,
						   psprintf("Values of type %s hash by object identifiers, which do not survive dump and restore.",
									format_type_be(type)),
						   "Cast the key to text.");
	if (type_is_rowtype(type) || type == RECORDARRAYOID)
		return reject_type(raise, key_type,
						   "A filter records the name of a type, but not its attributes, which may change.",
						   "Use an array of the columns, as in ARRAY[a, b], or one text of them, as in a || ' ' || b.");
	if (type >= FirstNormalObjectId &&
		(type_is_range(type) || type_is_multirange(type)))
		return reject_type(raise, key_type,
						   "A filter records the name of a type, but not its subtype.",
						   "Use an array of the bounds, as in ARRAY[lower(key), upper(key)], or cast the key to text.");
	if (pgbloom_type_is(type, PGBLOOM_FILTER))
		return reject_type(raise, key_type, NULL,
						   "To combine filters, use bloom_union_agg for a column of them, bloom_union for two.");
	namesake = type < FirstNormalObjectId ? InvalidOid :
		find_namesake(type, type_name(type));
	if (OidIsValid(namesake))
		return reject_type(raise, key_type,
						   psprintf("Filters record the name of a type without its schema, and there are types %s and %s.",
									format_type_be_qualified(type),
									format_type_be_qualified(namesake)),
						   "Rename one of the types, or cast the key to text.");
	return true;
}

/*
 * Set the name of a key type, given in the encoding of the database, if it can
 * be recorded.
 */
static bool
set_key_type_name(BfKeyType *key_type, const char *name, bool raise)
{
	char	   *utf8 = pgbloom_convert(name, strlen(name),
									   GetDatabaseEncoding(), PG_UTF8);
	size_t		length = utf8 == NULL ? 0 : strlen(utf8);
	const char *detail;

	if (utf8 == NULL)
		detail = psprintf("The name of the type cannot be converted from encoding %s to UTF8.",
						  GetDatabaseEncodingName());
	else if (length > BF_MAX_KEY_TYPE_NAME)
		detail = psprintf("The name of the type, with the locales by which it hashes, takes %zu bytes, the maximum is %d.",
						  length, BF_MAX_KEY_TYPE_NAME);
	else if (!bf_valid_key_type_name(utf8, length))
		detail = "The name of the type contains control characters.";
	else
	{
		memcpy(key_type->name, utf8, length + 1);
		key_type->namelen = (uint8_t) length;
		return true;
	}
	return reject_key(raise, ERRCODE_FEATURE_NOT_SUPPORTED,
					  psprintf("keys of type \"%s\" cannot be recorded in a Bloom filter",
							   name),
					  detail,
					  length > BF_MAX_KEY_TYPE_NAME ? "Cast the key to text." :
					  "Rename the type, or cast the key to text.");
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

/*
 * The locale of a collation, by which it maps upper case to lower case: of the
 * default one, that of the database.
 */
static char *
collation_locale(Oid collation)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	Oid			object = is_default ? MyDatabaseId : collation;
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
	char		provider;
	AttrNumber	column;
	Datum		locale;
	bool		isnull;
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for locale of %u", object);
	if (is_default)
	{
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
		column = provider == COLLPROVIDER_LIBC ? Anum_pg_database_datctype :
			Anum_pg_database_datlocale;
	}
	else
	{
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		column = provider == COLLPROVIDER_LIBC ? Anum_pg_collation_collctype :
			Anum_pg_collation_colllocale;
	}
	locale = SysCacheGetAttr(cache, tuple, column, &isnull);
	if (isnull)
		elog(ERROR, "database or collation %u has no locale", object);
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
 * Append the locales by which values may hash.  citext maps to lower case by
 * that of the database, whatever the collation is; other types may use that of
 * the collation.  No name of a locale has a slash.
 */
static void
append_locales(StringInfo name, Oid collation)
{
	char	   *database = collation_locale(DEFAULT_COLLATION_OID);
	char	   *key = collation_locale(collation);

	appendStringInfo(name, "@%s", database);
	if (strcmp(key, database) != 0)
		appendStringInfo(name, "/%s", key);
}

/*
 * Set the key type of a type that is hashed by its operator class.  A collatable
 * type that is not PostgreSQL's own may hash by locales.
 *
 * The name is that of the type, or of the element type of an array; "[]" for an
 * array; "@" and the locales, if values may hash by them.  Each "[" and "@" in
 * the name of the type is doubled, so that no two types get one name.
 */
static bool
opclass_key_type(PgBloomKeyInfo *info, Oid type, bool raise)
{
	BfKeyType  *key_type = &info->key_type;
	Oid			element = element_type(type);
	Oid			part = type;
	bool		collatable;
	StringInfoData name;
	const char *from;

	/* The elements of an array may be of a domain over arrays. */
	while (OidIsValid(element_type(part)))
		part = getBaseType(element_type(part));
	if (!check_opclass_type(type, part, raise))
		return false;
	if (OidIsValid(element) && OidIsValid(element_type(getBaseType(element))) &&
		element_type(getBaseType(element)) != part)
		return reject_type(raise, type,
						   "A filter records the name of a domain in such a type, but not of what type it is.",
						   "Cast the key to text.");
	collatable = type_is_collatable(part);
	if (collatable && !check_collation(info->collation, raise))
		return false;

	key_type->code = BF_KEY_OPCLASS;
#ifdef WORDS_BIGENDIAN
	key_type->byte_order = BF_BIG_ENDIAN;
#else
	key_type->byte_order = BF_LITTLE_ENDIAN;
#endif
	key_type->encoding = (uint8_t) GetDatabaseEncoding();

	initStringInfo(&name);
	from = type_name(OidIsValid(element) ? getBaseType(element) : type);
	for (; *from != '\0'; from++)
	{
		if (strchr("[@", *from) != NULL)
			appendStringInfoChar(&name, *from);
		appendStringInfoChar(&name, *from);
	}
	if (OidIsValid(element))
		appendStringInfoString(&name, "[]");
	if (collatable && part >= FirstNormalObjectId)
		append_locales(&name, info->collation);
	return set_key_type_name(key_type, name.data, raise);
}

/* How to find the number of a value of this type, which can be a key. */
static PgBloomNumber *
make_number(Oid type, MemoryContext context)
{
	PgBloomNumber *number = MemoryContextAllocZero(context, sizeof(*number));
	Oid			element = element_type(type);

	check_stack_depth();
	number->hash = pgbloom_number_hash(type);
	if (number->hash != NULL)
		return number;
	if (OidIsValid(element))
		number->element = make_number(getBaseType(element), context);
	else
		fmgr_info_cxt(opclass_hash_function(type), &number->extended_hash,
					  context);
	return number;
}

/*
 * Hash values of a type with a default hash operator class.  That of an array
 * has a hash function if that of the elements does.
 */
static bool
set_opclass_hash(PgBloomKeyInfo *info, Oid type, bool raise)
{
	if (!opclass_key_type(info, type, raise))
		return false;
	if (!OidIsValid(opclass_hash_function(type)))
		return reject_type(raise, type,
						   "It has no default hash operator class with an extended hash function.",
						   "Cast the key to a type that has one, for example text.");
	info->number = make_number(type, info->context);
	return true;
}

/* Find out how to hash values of a base type, unless it cannot be a key. */
static bool
set_hash(PgBloomKeyInfo *info, Oid type, bool raise)
{
	info->hash = pgbloom_canonical_hash(type, &info->key_type);
	if (info->hash != NULL)
		return !type_is_collatable(type) ||
			check_collation(info->collation, raise);

	info->array_text = pgbloom_type_is(type, PGBLOOM_KEYS);
	if (info->array_text || pgbloom_type_is(type, PGBLOOM_KEY))
	{
		info->key_type.code = BF_KEY_TEXT;
		info->untyped = true;
		return true;
	}
	if (type_is_enum(type))
	{
		info->hash = pgbloom_hash_enum;
		info->key_type.code = BF_KEY_ENUM;
		return set_key_type_name(&info->key_type, type_name(type), raise);
	}
	return set_opclass_hash(info, type, raise);
}

/*
 * Find out how to hash values of a type, in a memory context.  For a type that
 * cannot be a key, raises an error, or returns NULL.
 */
PgBloomKeyInfo *
pgbloom_make_key_info(Oid type, Oid collation, MemoryContext context,
					  bool raise)
{
	PgBloomKeyInfo *info = MemoryContextAllocZero(context, sizeof(*info));

	info->collation = collation;
	info->context = context;
	return set_hash(info, getBaseType(type), raise) ? info : NULL;
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
								 CurrentMemoryContext, true);
	if (info->untyped)
		(void) reject_type(true, type, NULL,
						   "Name the type that the keys have, for example text.");
	*key_type = info->key_type;
}
