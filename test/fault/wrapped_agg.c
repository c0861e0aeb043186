/*-------------------------------------------------------------------------
 *
 * wrapped_agg.c
 *	  An aggregate that calls the transition function of another one.
 *
 * Citus builds the part of a filter that a server has with such an aggregate.
 * The transition function is called without the expression of the call, and
 * through another FmgrInfo for each row.  Several arguments come as one row,
 * which has no collation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

PGDLLEXPORT PG_FUNCTION_INFO_V1(wrapped_transfn);
PGDLLEXPORT PG_FUNCTION_INFO_V1(wrapped_finalfn);

#define MAX_ARGS	4

/* The state of the aggregate whose functions are called. */
typedef struct Wrapped
{
	Datum		value;
	bool		isnull;
} Wrapped;

/* Set the arguments of a call from the fields of a row. */
static int
deform_row(HeapTupleHeader row, NullableDatum *args)
{
	TupleDesc	descriptor =
		lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row),
							   HeapTupleHeaderGetTypMod(row));
	int			n = Min(descriptor->natts, MAX_ARGS);
	HeapTupleData tuple;
	Datum		values[MAX_ARGS];
	bool		nulls[MAX_ARGS];
	int			i;

	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	tuple.t_data = row;
	if (descriptor->natts > MAX_ARGS)
		elog(ERROR, "too many arguments");
	heap_deform_tuple(&tuple, descriptor, values, nulls);
	ReleaseTupleDesc(descriptor);
	for (i = 0; i < n; i++)
	{
		args[i].value = values[i];
		args[i].isnull = nulls[i];
	}
	return n;
}

/* What the executor does with the result of a transition function. */
static void
replace_value(Wrapped *state, Datum value, bool isnull, MemoryContext context)
{
	MemoryContext old;

	if (!isnull && !state->isnull &&
		DatumGetPointer(value) == DatumGetPointer(state->value))
		return;
	old = MemoryContextSwitchTo(context);
	if (!isnull &&
		!(DatumIsReadWriteExpandedObject(value, false, -1) &&
		  MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) == context))
		value = datumCopy(value, false, -1);
	MemoryContextSwitchTo(old);
	if (!state->isnull)
	{
		if (DatumIsReadWriteExpandedObject(state->value, false, -1))
			DeleteExpandedObject(state->value);
		else
			pfree(DatumGetPointer(state->value));
	}
	state->value = value;
	state->isnull = isnull;
}

/*
 * wrapped_transfn(internal, transition function regprocedure, anyelement)
 * returns internal
 */
Datum
wrapped_transfn(PG_FUNCTION_ARGS)
{
	Wrapped    *state = (Wrapped *) PG_GETARG_POINTER(0);
	MemoryContext context;
	FmgrInfo	transfn;
	Datum		value;
	int			nargs = 1;

	LOCAL_FCINFO(call, MAX_ARGS + 1);

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "called outside an aggregate");
	if (PG_ARGISNULL(0))
	{
		state = MemoryContextAllocZero(context, sizeof(*state));
		state->isnull = true;
	}

	if (get_fn_expr_argtype(fcinfo->flinfo, 2) == RECORDOID)
		nargs = deform_row(PG_GETARG_HEAPTUPLEHEADER(2), &call->args[1]);
	else
		call->args[1] = fcinfo->args[2];
	fmgr_info(PG_GETARG_OID(1), &transfn);
	InitFunctionCallInfoData(*call, &transfn, nargs + 1, PG_GET_COLLATION(),
							 fcinfo->context, NULL);
	call->args[0].value = state->value;
	call->args[0].isnull = state->isnull;
	value = FunctionCallInvoke(call);
	replace_value(state, value, call->isnull, context);
	PG_RETURN_POINTER(state);
}

/*
 * wrapped_finalfn(internal) returns bytea: the partial state
 */
Datum
wrapped_finalfn(PG_FUNCTION_ARGS)
{
	Wrapped    *state = (Wrapped *) PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(0) || state->isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(datumCopy(state->value, false, -1));
}
