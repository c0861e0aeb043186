/*-------------------------------------------------------------------------
 *
 * fn_extra.c
 *	  Calls through one FmgrInfo, also after errors and in later transactions.
 *
 * What a function caches in fn_extra lives as long as the FmgrInfo.  In a query
 * this is the execution of one statement, up to its first error.  C code of
 * other extensions may use an FmgrInfo for longer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "../../src/compat.h"

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
