/*-------------------------------------------------------------------------
 *
 * key_type_name.c
 *	  Names of key types for users to read, and errors for types that differ.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

/*
 * Convert UTF-8 to the encoding of the database.  Characters that the encoding
 * lacks are escaped, as \u00E9 or \U0001F600.  Never fails.
 */
static char *
utf8_to_server(const char *utf8)
{
	int			encoding = GetDatabaseEncoding();
	StringInfoData result;
	int			length;

	initStringInfo(&result);
	for (; *utf8 != '\0'; utf8 += length)
	{
		const unsigned char *c = (const unsigned char *) utf8;
		char	   *converted;

		length = pg_utf_mblen(c);
		converted = pgbloom_convert(utf8, length, PG_UTF8, encoding);
		if (converted != NULL)
		{
			appendStringInfoString(&result, converted);
			pfree(converted);
		}
		else
		{
			unsigned	code = (unsigned) utf8_to_unicode(c);

			appendStringInfo(&result, code > 0xFFFF ? "\\U%08X" : "\\u%04X",
							 code);
		}
	}
	return result.data;
}

/* The parts of a key type's name, in the encoding of the database. */
typedef struct KeyTypeName
{
	char	   *type;
	const char *locale;			/* or "" */
	bool		array;			/* the type ends with [] */
} KeyTypeName;

/*
 * Split the name of a key type.  key_info.c composes those with parts; in one
 * that was forged, a [ may be neither doubled nor part of a [] at the end.
 */
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
				parts->locale = utf8_to_server(from + 1);
				break;
			}
			parts->array = strcmp(from, "[]") == 0 ||
				(strncmp(from, "[]@", 3) == 0 && from[3] != '@');
		}
		*to++ = *from;
		from += special && from[1] == *from ? 2 : 1;
	}
	if (key_type->code == BF_KEY_OPCLASS)
		*to = '\0';
	parts->type = utf8_to_server(name);
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
describe_key_type(const BfKeyType *key_type, const KeyTypeName *name)
{
	return psprintf("%s (%s%s%s%s)", name->type,
					key_type->byte_order == BF_LITTLE_ENDIAN ?
					"little-endian, " :
					key_type->byte_order == BF_BIG_ENDIAN ? "big-endian, " : "",
					pg_encoding_to_char(key_type->code != BF_KEY_OPCLASS ?
										PG_UTF8 : key_type->encoding),
					name->locale[0] != '\0' ? ", locale " : "", name->locale);
}

/*
 * Set the names of two key types that are not equal.  Returns whether they are
 * of one SQL type: then the locale or else the platform is another one.
 */
static bool
same_sql_type(const BfKeyType *a, const BfKeyType *b,
			  KeyTypeName *a_name, KeyTypeName *b_name)
{
	split_key_type_name(a, a_name);
	split_key_type_name(b, b_name);
	return a->code == b->code && a_name->array == b_name->array &&
		strcmp(a_name->type, b_name->type) == 0;
}

/*
 * The expression by which a key $1 of another type becomes one of the filter's
 * key type.  A cast between text and bytea is not the conversion that is meant,
 * and there is none from a number or a date to an array.
 */
static char *
cast_of_key(const BfKeyType *filter, const KeyTypeName *name,
			const BfKeyType *key)
{
	Oid			type = pgbloom_widest_type(filter);
	size_t		length = strlen(name->type) - (name->array ? 2 : 0);

	if (filter->code == BF_KEY_TEXT && key->code == BF_KEY_BYTEA)
		return "convert_from($1, 'UTF8')";
	if (filter->code == BF_KEY_BYTEA && key->code == BF_KEY_TEXT)
		return "convert_to($1, 'UTF8')";
	if (OidIsValid(type))
		return psprintf("$1::%s", format_type_be(type));
	return psprintf("%s::%s%s",
					name->array && key->code != BF_KEY_TEXT &&
					key->code < BF_KEY_ENUM ? "ARRAY[$1]" : "$1",
					quote_identifier(pnstrdup(name->type, length)),
					name->type + length);
}

/*
 * Report that a key, or another filter, is not of the filter's key type: of
 * another SQL type, or hashed under another locale or else on another platform.
 */
void
pgbloom_key_type_mismatch(const BfKeyType *a, const BfKeyType *b, bool filters)
{
	KeyTypeName a_name;
	KeyTypeName b_name;
	bool		platform;

	if (!same_sql_type(a, b, &a_name, &b_name))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg(filters ?
						"cannot combine Bloom filters with keys of types %s and %s" :
						"Bloom filter holds keys of type %s, not of type %s",
						a_name.type, b_name.type),
				 filters ?
				 errdetail("Keys of different types hash differently.") :
				 errdetail("Keys of different types hash differently, so the answer would be wrong."),
				 filters ?
				 errhint("Build both filters from keys of one type.") :
				 b_name.array && !a_name.array ?
				 errhint("To look up the elements of an array, use bloom_contains_any or bloom_contains_all; to add them, bloom_add_all.") :
				 errhint("Cast the key to the type of the filter's keys, as in %s.",
						 cast_of_key(a, &a_name, b))));
	platform = strcmp(a_name.locale, b_name.locale) == 0;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg(filters && platform ?
					"cannot combine Bloom filters with keys of type %s hashed on different platforms" :
					filters ?
					"cannot combine Bloom filters with keys of type %s hashed under different locales" :
					platform ?
					"Bloom filter holds keys of type %s hashed on another platform" :
					"Bloom filter holds keys of type %s hashed under another locale",
					a_name.type),
			 errdetail(filters ?
					   "The keys of one filter are %s, those of the other are %s." :
					   "The keys of the filter are %s, those given are %s.",
					   describe_key_type(a, &a_name),
					   describe_key_type(b, &b_name)),
			 filters ?
			 errhint(platform ?
					 "Build both filters in one database, or from keys cast to text." :
					 "Build both filters in one database and under one collation, or from keys cast to text.") :
			 errhint(platform ?
					 "Build the filter again in this database, or from keys cast to text." :
					 "Apply the collation of the filter's keys, as in $1 COLLATE \"C\", or build the filter again in this database, or from keys cast to text.")));
}
