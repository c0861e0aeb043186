/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  What the system catalogs say of types, functions and relations.
 *
 * Types and functions that the extension creates have no fixed OIDs and no
 * fixed schema.  Names do not tell them, nor does membership in the extension:
 * whoever has created the extension may add objects of their own to it.  What
 * does is the function of this library that they call, because only superusers
 * can create functions in C and types with input functions.
 *
 *-------------------------------------------------------------------------
 */
#include "pgbloom.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bloom_key_in);
PG_FUNCTION_INFO_V1(bloom_keys_in);

/* In src/sql/io.c, named here because it tells what type it is. */
extern PGDLLEXPORT Datum bloom_in(PG_FUNCTION_ARGS);

/* In the order of PgBloomType. */
static PgBloomSymbol inputs[] =
{
	{"bloom_in", bloom_in, InvalidOid},
	{"bloom_key_in", bloom_key_in, InvalidOid},
	{"bloom_keys_in", bloom_keys_in, InvalidOid},
};

static char *
get_text(HeapTuple function, AttrNumber column)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, function, column, &isnull);

	return isnull ? "" : TextDatumGetCString(value);
}

/* Is a function in C?  Others may read tables. */
bool
pgbloom_is_in_c(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result = !OidIsValid(function);

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId ||
			((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Does the SQL function call this one of the library?  fn_addr of an FmgrInfo
 * does not tell if the function has a SET clause.
 *
 * The last one found is cached, because looking for a symbol takes system
 * calls.  It need not be the same function as long as it is one in C with the
 * symbol.
 */
bool
pgbloom_calls(Oid function, PgBloomSymbol *called)
{
	HeapTuple	tuple;
	bool		result;

	if (function < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId &&
		strcmp(get_text(tuple, Anum_pg_proc_prosrc), called->name) == 0;
	if (result && function != called->found)
		result = load_external_function(get_text(tuple, Anum_pg_proc_probin),
										called->name, false,
										NULL) == called->function;
	if (result)
		called->found = function;
	ReleaseSysCache(tuple);
	return result;
}

/* Is this the extension's type?  A domain over it is not. */
bool
pgbloom_type_is(Oid type, PgBloomType which)
{
	HeapTuple	tuple;
	Oid			input;

	if (type < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		return false;
	input = ((Form_pg_type) GETSTRUCT(tuple))->typinput;
	ReleaseSysCache(tuple);
	return pgbloom_calls(input, &inputs[which]);
}

/* What pg_class has of a relation; all of it is 0 if there is none. */
FormData_pg_class
pgbloom_relation_row(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	FormData_pg_class row = {0};

	if (HeapTupleIsValid(tuple))
	{
		memcpy(&row, GETSTRUCT(tuple), CLASS_TUPLE_SIZE);
		ReleaseSysCache(tuple);
	}
	return row;
}

/*
 * The defaults of a function's arguments, if a call lacks some of these, which
 * the planner has yet to add; or NULL.  Those of PostgreSQL's own functions are
 * constants.
 */
Node *
pgbloom_default_arguments(Oid function, List *arguments)
{
	HeapTuple	tuple;
	Node	   *result;

	if (function < FirstNormalObjectId ||
		list_length(arguments) >= get_func_nargs(function))
		return NULL;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	result = stringToNode(get_text(tuple, Anum_pg_proc_proargdefaults));
	ReleaseSysCache(tuple);
	return result;
}

/* Keys without a type are text; their type tells how to read it. */
Datum
bloom_key_in(PG_FUNCTION_ARGS)
{
	return textin(fcinfo);
}

Datum
bloom_keys_in(PG_FUNCTION_ARGS)
{
	return textin(fcinfo);
}
