/*-------------------------------------------------------------------------
 *
 * untyped.c
 *	  Keys without a type: literals and parameters of type bloom_key, and
 *	  elements of bloom_keys.
 *
 * An untyped key is text that is read as the filter's key type, as PostgreSQL
 * reads the literal in id = '5'.  This takes an immutable input function,
 * because the functions of the extension are immutable.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * The types with this name, in all schemas, or NULL if no type can have it.  The
 * cache would never find a list that it has made for a name that is too long,
 * and would add another one for each call.
 */
static CatCList *
list_types(const char *name)
{
	return strlen(name) < NAMEDATALEN ?
		SearchSysCacheList1(TYPENAMENSP, CStringGetDatum(name)) : NULL;
}

/*
 * The base type with the name that this key type records.  Returns InvalidOid
 * if there is none, or more than one.  If its values hash by another locale or
 * on another platform, the caller reports that.  All schemas are searched,
 * because what a filter contains must not depend on search_path.
 */
static Oid
find_named_type(const BfKeyType *key_type)
{
	CatCList   *list = list_types(pgbloom_key_type_name(key_type));
	Oid			found = InvalidOid;
	int			nfound = 0;
	int			i;

	if (list == NULL)
		return InvalidOid;
	for (i = 0; i < list->n_members; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_type type = (Form_pg_type) GETSTRUCT(tuple);

		if (type->typtype == TYPTYPE_BASE && type->typisdefined &&
			pgbloom_make_key_info(type->oid, type->typcollation,
								  CurrentMemoryContext, false) != NULL)
		{
			found = type->oid;
			nfound++;
		}
	}
	ReleaseSysCacheList(list);
	return nfound == 1 ? found : InvalidOid;
}

/*
 * The type as which an untyped key is read for a filter of this key type: text,
 * if there is no other one with an immutable input function.
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

/* Read untyped keys as values of this type. */
void
pgbloom_set_input(PgBloomKeyInfo *info, Oid type)
{
	Oid			input;

	getTypeInputInfo(type, &input, &info->ioparam);
	fmgr_info_cxt(input, &info->input, info->context);
	info->from_text = true;
}

static PgBloomKeyInfo *
make_resolved(const PgBloomKeyInfo *untyped, const BfKeyType *key_type)
{
	PgBloomKeyInfo *result;
	Oid			type;

	/* Labels are hashed as text, so that the type need not exist here. */
	if (key_type->code == BF_KEY_ENUM)
	{
		result = MemoryContextAllocZero(untyped->context, sizeof(*result));
		result->key_type = *key_type;
		result->hash = pgbloom_hash_text;
		result->from_text = true;
		return result;
	}

	type = find_type_to_read(key_type);
	result = pgbloom_make_key_info(type,
								   type_is_collatable(type) ?
								   untyped->collation : InvalidOid,
								   untyped->context, true);
	if (type != TEXTOID)
		pgbloom_set_input(result, type);
	return result;
}

/* How to hash an untyped key for a filter of this key type. */
PgBloomKeyInfo *
pgbloom_resolve_untyped(PgBloomKeyInfo *untyped, const BfKeyType *key_type)
{
	PgBloomKeyInfo *resolved = untyped->resolved;

	if (resolved != NULL &&
		(key_type->code == BF_KEY_NONE ? resolved->key_type.code == BF_KEY_TEXT :
		 bf_key_type_equal(&resolved->key_type, key_type)))
		return resolved;
	if (resolved != NULL)
	{
		untyped->resolved = NULL;
		pgbloom_free_number(resolved->number);
		pfree(resolved);
	}
	untyped->resolved = make_resolved(untyped, key_type);
	return untyped->resolved;
}

/*
 * Real and double precision are one key type, but text such as 0.1 is another
 * number in each of them.  Reject such text, because a filter does not record
 * which of the two types its keys have.
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

/*
 * Raise an error if enum types with the name that the filter records exist,
 * but none of them has this label.
 */
static void
check_label(const BfKeyType *key_type, const char *label)
{
	char	   *name = pgbloom_key_type_name(key_type);
	CatCList   *list = list_types(name);
	bool		valid = true;
	int			i;

	for (i = 0; list != NULL && i < list->n_members; i++)
	{
		Form_pg_type type = (Form_pg_type)
			GETSTRUCT(&list->members[i]->tuple);

		if (type->typtype != TYPTYPE_ENUM)
			continue;
		valid = strlen(label) < NAMEDATALEN &&
			SearchSysCacheExists2(ENUMTYPOIDNAME, ObjectIdGetDatum(type->oid),
								  CStringGetDatum(label));
		if (valid)
			break;
	}
	if (list != NULL)
		ReleaseSysCacheList(list);
	if (!valid)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input value for enum %s: \"%s\"", name,
						label)));
	pfree(name);
}

/* Error context callback: a hint, if text is not a value of its type. */
void
pgbloom_add_hint(void *hint)
{
	if (geterrcode() == ERRCODE_INVALID_TEXT_REPRESENTATION)
		errhint("%s", (const char *) hint);
}

/* Convert the text of an untyped key to the type as which it is read. */
Datum
pgbloom_read_untyped(PgBloomKeyInfo *type, Datum key)
{
	char	   *string = TextDatumGetCString(key);
	ErrorContextCallback callback;
	Datum		result;

	if (type->key_type.code == BF_KEY_ENUM && !type->exact)
	{
		check_label(&type->key_type, string);
		pfree(string);
		return key;
	}

	/*
	 * Was an array passed as a key by mistake?  Values of opclass-hashed
	 * types may begin with a brace.
	 */
	callback.callback = pgbloom_add_hint;
	callback.arg = type->exact ?
		"To look up the elements of an array, use bloom_index_contains_each." :
		"To look up the elements of an array, use bloom_contains_any or bloom_contains_all; to add them, bloom_add_all.";
	callback.previous = error_context_stack;
	if (string[0] == '{' && type->key_type.code != BF_KEY_OPCLASS)
		error_context_stack = &callback;
	result = InputFunctionCall(&type->input, string, type->ioparam, -1);
	error_context_stack = callback.previous;

	if (type->key_type.code == BF_KEY_FLOAT && !type->exact)
		check_float(DatumGetFloat8(result), string);
	pfree(string);
	return result;
}

/* Is this text an array in the form of PostgreSQL's array types? */
static bool
is_array_text(const char *string)
{
	int			depth = 0;
	bool		quoted = false;
	bool		in_element = false; /* without quotes */
	bool		complete = false;	/* after a quoted element or an array */

	for (; *string != '\0'; string++)
	{
		if (*string == '\\' && string[1] != '\0')
		{
			in_element |= !quoted;
			string++;
		}
		else if (quoted)
		{
			quoted = *string != '"';
			complete = !quoted;
		}
		else if (*string == '"' || *string == '{')
		{
			if (complete || in_element)
				return false;
			quoted = *string == '"';
			depth += *string == '{';
		}
		else if (*string == '}')
		{
			if (--depth == 0)
				return string[1 + strspn(string + 1, " \t\n\r\v\f")] == '\0';
			complete = true;
			in_element = false;
		}
		else if (*string == ',')
		{
			if (!complete && !in_element)
				return false;
			complete = in_element = false;
		}
		else if (strchr(" \t\n\r\v\f", *string) == NULL)
		{
			if (complete || depth == 0)
				return false;
			in_element = true;
		}
	}
	return false;
}

/*
 * Raise an error if an untyped key, which has just been hashed, is to be added
 * and may have been meant as an array of keys: drivers send lists as text.  A
 * type that is not a string rejects such text, or it is a value of it.
 */
void
pgbloom_reject_array_text(const PgBloomKeyInfo *untyped, Datum key)
{
	const PgBloomKeyInfo *type = untyped->resolved;
	Oid			oid = TEXTOID;
	char	   *string;
	char		category;
	bool		preferred;

	if (type->key_type.code == BF_KEY_ENUM)
		return;
	if (type->from_text)
		oid = get_func_rettype(type->input.fn_oid);
	get_type_category_preferred(oid, &category, &preferred);
	if (oid != BYTEAOID && category != TYPCATEGORY_STRING)
		return;
	string = TextDatumGetCString(key);
	if (is_array_text(string))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("could not determine whether \"%s\" is one key or an array of keys",
						string),
				 errhint("To add the elements of an array, use bloom_add_all; to add the text as one key, cast it, as in $1::%s.",
						 format_type_be(oid))));
	pfree(string);
}
