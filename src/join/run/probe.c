/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Probing the filter of a join: the SQL function that does so, and how the
 *	  planner finds it.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "core/bits.h"
#include "join/run/hash.h"
#include "pgbloom.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bloom_join_probe);

/*
 * Can a row with these keys have a match in the inner side?  A row with a
 * NULL has none, because the operators are strict.
 */
bool
pgbloom_join_contains(PgBloomJoinFilter *filter, NullableDatum *keys)
{
	uint64		hash = 0;
	bool		found = true;
	int			i;

	for (i = 0; i < filter->nkeys && found; i++)
	{
		found = !keys[i].isnull;
		if (found)
			hash = pgbloom_join_hash(&filter->outer[i], keys[i].value, hash);
	}
	filter->changes += hash != filter->last_hash;
	filter->last_hash = hash;
	if (found)
		found = bf_bits_contain(&filter->geometry, filter->bits, hash);
	return pgbloom_join_count_row(filter, found);
}

/*
 * bloom_join_probe(filter integer, VARIADIC keys "any") returns boolean
 *
 * Can the row with these keys have a match in the join whose filter has this
 * number?  Where there is no such filter, as in a call by a user, the answer
 * is true.
 *
 * An expression of a plan is initialized in the memory context of its
 * execution, so fn_mcxt identifies the execution whose filter it is.
 */
Datum
bloom_join_probe(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	PgBloomJoinFilter *filter = flinfo->fn_extra;

	if (filter == NULL)
		flinfo->fn_extra = filter =
			pgbloom_join_find(flinfo->fn_mcxt, flinfo->fn_expr);
	if (filter->skip > 0)
	{
		filter->skip--;
		PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(pgbloom_join_contains(filter, &fcinfo->args[1]));
}

/*
 * Is this the extension's function?  Its signature is part of that: others may
 * have the same name.
 */
static bool
is_probe_function(HeapTuple tuple)
{
	static PgBloomSymbol symbol =
	{
		"bloom_join_probe", bloom_join_probe, InvalidOid
	};
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);

	return form->prorettype == BOOLOID && form->provariadic == ANYOID &&
		form->pronargs == 2 && form->proargtypes.values[0] == INT4OID &&
		pgbloom_calls(form->oid, &symbol);
}

/*
 * Find the extension's function.  A query must not fail for want of a privilege
 * that it does not need without filters, so a function that not all roles may
 * call is not used.
 */
PgBloomReason
pgbloom_join_find_probe_function(Oid *function)
{
	CatCList   *candidates = SearchSysCacheList1(PROCNAMEARGSNSP,
												 CStringGetDatum("bloom_join_probe"));
	PgBloomReason reason = PGBLOOM_REASON_EXTENSION;
	int			i;

	for (i = 0; i < candidates->n_members && reason != PGBLOOM_NO_REASON; i++)
	{
		HeapTuple	tuple = &candidates->members[i]->tuple;

		if (!is_probe_function(tuple))
			continue;
		*function = ((Form_pg_proc) GETSTRUCT(tuple))->oid;
		if (PGBLOOM_FUNCTION_ACLCHECK(*function, ACL_ID_PUBLIC) == ACLCHECK_OK)
			reason = PGBLOOM_NO_REASON;
	}
	ReleaseSysCacheList(candidates);
	return reason;
}
