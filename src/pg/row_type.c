/*-------------------------------------------------------------------------
 *
 * row_type.c
 *	  The row types of functions that return several columns.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "funcapi.h"

/*
 * Get the row type of the result.  The library may be newer than the SQL
 * definition, or older.
 */
TupleDesc
pgbloom_row_type(FunctionCallInfo fcinfo, int ncolumns)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (descriptor->natts != ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library and SQL definition of extension \"bloomfilter\" do not match"),
				 errdetail("A result has %d columns in the library, but %d in SQL.",
						   ncolumns, descriptor->natts),
				 errhint("Run ALTER EXTENSION bloomfilter UPDATE.")));
	return BlessTupleDesc(descriptor);
}
