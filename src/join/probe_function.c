/*-------------------------------------------------------------------------
 *
 * probe_function.c
 *	  The SQL function in the qual of a scan that a join filter reduces.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "fmgr.h"

PG_FUNCTION_INFO_V1(bloom_join_probe);

/* What a call remembers. */
typedef struct ProbeCall
{
	PgBloomJoinFilter *filter;
	struct PgBloomJoinsBetween *between;	/* NULL if there are none */
} ProbeCall;

static ProbeCall *
init_call(FmgrInfo *flinfo)
{
	ProbeCall  *call = MemoryContextAlloc(flinfo->fn_mcxt, sizeof(ProbeCall));

	call->filter = pgbloom_join_find(flinfo->fn_mcxt, flinfo->fn_expr);
	call->between = pgbloom_join_find_between(call->filter, flinfo->fn_expr);
	flinfo->fn_extra = call;
	return call;
}

/*
 * bloom_join_probe(filter integer, VARIADIC keys "any") returns boolean
 *
 * Can the row with these keys have a match in the join whose filter has this
 * number?  Where there is no such filter, as in a call by a user, the answer
 * is true.
 *
 * Without keys, the call returns whether the row passes whatever its keys are:
 * the filter is not complete yet, or takes samples.
 *
 * An expression of a plan is initialized in the memory context of its
 * execution, so fn_mcxt identifies the execution whose filter it is.
 */
Datum
bloom_join_probe(PG_FUNCTION_ARGS)
{
	ProbeCall  *call = fcinfo->flinfo->fn_extra;
	PgBloomJoinFilter *filter;

	if (call == NULL)
		call = init_call(fcinfo->flinfo);
	filter = call->filter;
	if (call->between != NULL && !pgbloom_join_between_started(call->between))
		PG_RETURN_BOOL(true);
	if (filter->skip > 0)
	{
		filter->skip--;
		PG_RETURN_BOOL(true);
	}
	if (PG_NARGS() == 1)
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(pgbloom_join_contains(filter, &fcinfo->args[1]));
}
