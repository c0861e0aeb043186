/*-------------------------------------------------------------------------
 *
 * row_type.c
 *	  The results of functions that return several columns.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "access/htup_details.h"
#include "funcapi.h"

/*
 * The result of a function that returns a row of so many columns.  The library
 * may be newer than the SQL definition, or older.
 */
Datum
pgbloom_row(FunctionCallInfo fcinfo, int ncolumns, Datum *values, bool *nulls)
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
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
											 values, nulls));
}

/*
 * Fill in the columns that bloom_info() and bloom_index_info() have about
 * bits: bits, hashes, block_bits, bits_set and fill.  They are NULL while
 * there is no layer.
 */
void
pgbloom_set_bits_columns(const BfView *view, Datum *values, bool *nulls)
{
	const BfGeometry *last;
	uint64		bits = 0;
	uint64		bits_set = 0;
	int			i;

	if (view->nlayers == 0)
	{
		memset(nulls, true, 5 * sizeof(bool));
		return;
	}
	for (i = 0; i < view->nlayers; i++)
	{
		bits += bf_geometry_bits(&view->layers[i].geometry);
		bits_set += view->layers[i].bits_set;
	}
	last = &view->layers[view->nlayers - 1].geometry;
	values[0] = Int64GetDatum((int64) bits);
	values[1] = Int32GetDatum(last->k);
	values[2] = Int32GetDatum(1 << last->block_log2);
	values[3] = Int64GetDatum((int64) bits_set);
	values[4] = Float8GetDatum((double) bits_set / (double) bits);
}
