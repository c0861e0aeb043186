/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  The SQL function in the qual of a scan that a join filter reduces.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "fmgr.h"

PG_FUNCTION_INFO_V1(bloom_join_probe);

/*
 * bloom_join_probe(filter integer, VARIADIC keys "any") returns boolean
 *
 * Can the row with these keys have a match in the join whose filter has this
 * number?  Where there is no such filter, as in a call by a user, the answer
 * is true.
 *
 * Without keys, the call returns whether the filter lets all rows pass because
 * it is not complete yet.
 *
 * An expression of a plan is initialized in the memory context of its
 * execution, so fn_mcxt identifies the execution whose filter it is.
 */
Datum
bloom_join_probe(PG_FUNCTION_ARGS)
{
	PgBloomJoinFilter *filter = fcinfo->flinfo->fn_extra;

	if (filter == NULL)
	{
		filter = pgbloom_join_find(fcinfo->flinfo->fn_mcxt,
								   fcinfo->flinfo->fn_expr);
		fcinfo->flinfo->fn_extra = filter;
	}
	if (PG_NARGS() == 1)
		PG_RETURN_BOOL(filter->bits == NULL && filter->shared_bits == NULL);
	if (filter->skip > 0)
	{
		filter->skip--;
		PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(pgbloom_join_contains(filter, &fcinfo->args[1]));
}
