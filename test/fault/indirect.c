/*-------------------------------------------------------------------------
 *
 * indirect.c
 *	  Values behind indirect TOAST pointers.
 *
 * PostgreSQL hands such pointers to functions in logical decoding, and so may
 * other extensions; no SQL makes one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "utils/memutils.h"

#include "../../src/compat.h"

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
