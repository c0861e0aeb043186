/*-------------------------------------------------------------------------
 *
 * lookup.c
 *	  The function that gates call.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bloom_index_gate);

/*
 * bloom_index_gate(index regclass, key "any") returns boolean
 *
 * May a row of the table have the key, or with VARIADIC one of an array?  Only
 * the planner makes calls of it.
 */
Datum
bloom_index_gate(PG_FUNCTION_ARGS)
{
	FuncExpr   *call = (FuncExpr *) fcinfo->flinfo->fn_expr;
	PgBloomKeyArray array;
	Datum		key = PG_GETARG_DATUM(1);
	BfiKeys		keys = {.context = CurrentMemoryContext};
	BfiIndex	index;
	bool		result;

	if (call == NULL || !IsA(call, FuncExpr) ||
		call->funcformat != BFP_GATE_FORM)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function bloom_index_gate cannot be called in a query"),
				 errdetail("The planner adds it to queries of indexed tables."),
				 errhint("Use bloom_index_contains.")));
	if (call->funcvariadic)
	{
		keys.info = pgbloom_element_info(fcinfo, 1);
		pgbloom_get_key_array(fcinfo, 1, &array);
		if (array.nkeys > BFP_MAX_KEYS)
			PG_RETURN_BOOL(true);
		keys.values = array.values;
		keys.n = array.nkeys;
	}
	else
	{
		keys.info = pgbloom_key_info(fcinfo, 1);
		keys.values = &key;
		keys.n = 1;
	}
	bfi_open_for_query(&index, PG_GETARG_OID(0));
	result = bfi_may_have(&index, &keys);
	bfi_close(&index);
	PG_RETURN_BOOL(result);
}

/*
 * The function that is called by gates, or InvalidOid.  A query must not fail
 * for want of a privilege that it does not need without gates, so all roles
 * have to be allowed to call it.
 */
Oid
bfp_gate_function(void)
{
	static PgBloomSymbol symbol =
	{
		"bloom_index_gate", bloom_index_gate, InvalidOid
	};
	CatCList   *candidates = SearchSysCacheList1(PROCNAMEARGSNSP,
												 CStringGetDatum("bloom_index_gate"));
	Oid			function = InvalidOid;
	int			i;

	for (i = 0; i < candidates->n_members && !OidIsValid(function); i++)
	{
		Form_pg_proc form = (Form_pg_proc)
			GETSTRUCT(&candidates->members[i]->tuple);

		if (form->prorettype == BOOLOID && form->provariadic == ANYOID &&
			form->pronargs == 2 &&
			form->proargtypes.values[0] == REGCLASSOID &&
			pgbloom_calls(form->oid, &symbol) &&
			PGBLOOM_FUNCTION_ACLCHECK(form->oid, ACL_ID_PUBLIC) == ACLCHECK_OK)
			function = form->oid;
	}
	ReleaseSysCacheList(candidates);
	return function;
}
