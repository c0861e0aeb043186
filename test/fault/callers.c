/*-------------------------------------------------------------------------
 *
 * callers.c
 *	  Calls of the extension that no SQL makes, but C code of others may.
 *
 *-------------------------------------------------------------------------
 */

#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "../../src/compat.h"

#if PG_VERSION_NUM < 170000
#define TransamVariables ShmemVariableCache
#endif

/*
 *	  Values behind indirect TOAST pointers.
 *
 * PostgreSQL hands such pointers to functions in logical decoding, and so may
 * other extensions; no SQL makes one.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(make_indirect);

/*
 * The argument as it comes, be it short, compressed or out of line, copied to
 * where it lasts as long as the transaction, and a pointer to it.
 */
Datum
make_indirect(PG_FUNCTION_ARGS)
{
	struct varlena *value = (struct varlena *) PG_GETARG_POINTER(0);
	Size		size = VARSIZE_ANY(value);
	struct varlena *result = palloc(INDIRECT_POINTER_SIZE);
	struct varatt_indirect indirect;

	indirect.pointer = MemoryContextAlloc(TopTransactionContext, size);
	memcpy(indirect.pointer, value, size);
	SET_VARTAG_EXTERNAL(result, VARTAG_INDIRECT);
	memcpy(VARDATA_EXTERNAL(result), &indirect, sizeof(indirect));
	PG_RETURN_POINTER(result);
}

/*
 *	  A caller of an index that never says that it is done.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(insert_key);

/* insert_key(regclass, bigint) returns void: a key without a row. */
Datum
insert_key(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), RowExclusiveLock);
	Relation	table = table_open(index->rd_index->indrelid, RowExclusiveLock);
	MemoryContext old_context = MemoryContextSwitchTo(TopTransactionContext);
	Datum		key = Int64GetDatum(PG_GETARG_INT64(1));
	bool		isnull = false;
	ItemPointerData row;

	ItemPointerSet(&row, 0, 1);
	index_insert(index, &key, &isnull, &row, table, UNIQUE_CHECK_NO, false,
				 BuildIndexInfo(index));
	MemoryContextSwitchTo(old_context);
	table_close(table, NoLock);
	index_close(index, NoLock);
	PG_RETURN_VOID();
}

PGDLLEXPORT PG_FUNCTION_INFO_V1(lock_index);

/*
 * lock_index(regclass) returns void: the page lock under which an index is
 * measured and grows, until the end of the transaction.
 */
Datum
lock_index(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);

	LockPage(index, 0, ExclusiveLock);
	index_close(index, NoLock);
	PG_RETURN_VOID();
}

/*
 *	  OIDs that are used again.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(set_next_oid);

/*
 * set_next_oid(oid) returns void: what happens once the counter has come around.
 */
Datum
set_next_oid(PG_FUNCTION_ARGS)
{
	LWLockAcquire(OidGenLock, LW_EXCLUSIVE);
	TransamVariables->nextOid = PG_GETARG_OID(0);
	LWLockRelease(OidGenLock);
	PG_RETURN_VOID();
}

/*
 *	  Calls through one FmgrInfo, also after errors and in later transactions.
 *
 * What a function caches in fn_extra lives as long as the FmgrInfo.  In a query
 * this is the execution of one statement, up to its first error.  C code of
 * other extensions may use an FmgrInfo for longer.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(set_function);
PGDLLEXPORT PG_FUNCTION_INFO_V1(call_again);

/* Room for an inline filter, which is copied to the same address each time. */
#define MAX_INLINE	8192

static MemoryContext context = NULL;
static FmgrInfo *flinfo;
static uint64 place[MAX_INLINE / 8];

/*
 * set_function(function regprocedure, filter regtype, key regtype): make a new
 * FmgrInfo for calls of a function (filter, key) returns boolean.
 */
Datum
set_function(PG_FUNCTION_ARGS)
{
	Oid			function = PG_GETARG_OID(0);
	MemoryContext old;
	List	   *args;
	int			i;

	if (context != NULL)
		MemoryContextDelete(context);
	context = AllocSetContextCreate(TopMemoryContext, "function to call",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	args = NIL;
	for (i = 1; i <= 2; i++)
		args = lappend(args, makeNullConst(PG_GETARG_OID(i), -1, InvalidOid));
	flinfo = palloc0(sizeof(*flinfo));
	fmgr_info_cxt(function, flinfo, context);
	fmgr_info_set_expr((Node *) makeFuncExpr(function, BOOLOID, args,
											 InvalidOid, DEFAULT_COLLATION_OID,
											 COERCE_EXPLICIT_CALL), flinfo);
	MemoryContextSwitchTo(old);
	PG_RETURN_VOID();
}

/*
 * call_again(filter, key) returns text: call that function.  Returns its
 * result, or the SQLSTATE of the error that it raised.
 */
Datum
call_again(PG_FUNCTION_ARGS)
{
	struct varlena *filter = (struct varlena *) PG_GETARG_POINTER(0);
	MemoryContext old = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	LOCAL_FCINFO(call, 2);
	const char *volatile result;

	InitFunctionCallInfoData(*call, flinfo, 2, DEFAULT_COLLATION_OID, NULL,
							 NULL);
	if (!VARATT_IS_EXTERNAL(filter) && VARSIZE_ANY(filter) <= MAX_INLINE)
		filter = memcpy(place, filter, VARSIZE_ANY(filter));
	call->args[0].value = PointerGetDatum(filter);
	call->args[0].isnull = false;
	call->args[1].value = PG_GETARG_DATUM(1);
	call->args[1].isnull = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(old);
	PG_TRY();
	{
		result = DatumGetBool(FunctionCallInvoke(call)) ? "true" : "false";
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(old);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		result = pstrdup(unpack_sql_state(error->sqlerrcode));
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	CurrentResourceOwner = owner;
	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/*
 *	  An aggregate that calls the transition function of another one.
 *
 * Citus builds the part of a filter that a server has with such an aggregate.
 * The transition function is called without the expression of the call, and
 * through another FmgrInfo for each row.  Several arguments come as one row,
 * which has no collation.
 */

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

/*
 *	  Plans that are executed again.
 *
 * PostgreSQL itself executes no plan again whose joins have filters.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(execute_twice);

static uint64
run(QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once)
{
	(void) execute_once;
	ExecutorRun(PGBLOOM_RUN_ARGUMENTS);
	return query->estate->es_processed;
}

/*
 * execute_twice(query text, statement text) returns text: how many rows the
 * query has, and has again, by the same plan, after the statement.
 */
Datum
execute_twice(PG_FUNCTION_ARGS)
{
	const char *query_string = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *statement = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			cursor_options = 0;
	ParamListInfo params = NULL;
	struct ExplainState *es = NULL;
	Query	   *parse =
		linitial_node(Query,
					  pg_analyze_and_rewrite_fixedparams(linitial(pg_parse_query(query_string)),
														 query_string, NULL, 0, NULL));
	QueryDesc  *query;
	uint64		first,
				second;

	(void) es;
	query = CreateQueryDesc(planner(PGBLOOM_PLANNER_ARGUMENTS), query_string,
							GetActiveSnapshot(), InvalidSnapshot,
							None_Receiver, NULL, NULL, 0);
	ExecutorStart(query, EXEC_FLAG_REWIND);
	first = run(query, ForwardScanDirection, 0, false);
	SPI_connect();
	SPI_execute(statement, false, 0);
	SPI_finish();
	ExecutorRewind(query);
	second = run(query, ForwardScanDirection, 0, false);
	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(UINT64_FORMAT ", " UINT64_FORMAT,
											  first, second)));
}

/*
 *	  A cursor as other procedural languages and extensions open it.
 */

PGDLLEXPORT PG_FUNCTION_INFO_V1(open_cursor);

/* open_cursor(name text, query text) returns void */
Datum
open_cursor(PG_FUNCTION_ARGS)
{
	const char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *query = text_to_cstring(PG_GETARG_TEXT_PP(1));

	SPI_connect();
	SPI_cursor_open(name, SPI_prepare(query, 0, NULL), NULL, NULL, false);
	SPI_finish();
	PG_RETURN_VOID();
}
