/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Probing the filter of a join; the SQL function that stands for that in a
 *	  plan, and how the planner finds it.
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

/* Can a row have a match in the inner side? */
bool
pgbloom_join_contains(PgBloomJoinFilter *filter,
					  const PgBloomJoinReader *reader,
					  TupleTableSlot *slot, ExprContext *econtext)
{
	Datum		keys[PGBLOOM_MAX_JOIN_KEYS];
	uint64		hash;
	bool		found = pgbloom_join_hash_row(reader, filter->outer, slot,
											  econtext, keys, &hash);

	if (found)
		found = bf_bits_contain(&filter->geometry, filter->bits, hash);
	return pgbloom_join_count_row(filter, found);
}

/*
 * bloom_join_probe(filter integer, VARIADIC keys "any") returns boolean
 *
 * Can the row with these keys have a match in the join whose filter has this
 * number?  A scan of a plan with filters probes them without this function, see
 * direct.c.  Everywhere else the answer is true: in a call by a user, and in
 * EvalPlanQual, which executes a part of a plan without its filters.
 */
Datum
bloom_join_probe(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_BOOL(true);
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
