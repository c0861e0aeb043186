/*-------------------------------------------------------------------------
 *
 * bloom_info.c
 *	  What a filter knows about itself, and what one would be like.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloom_cardinality);
PG_FUNCTION_INFO_V1(bloom_fpp);
PG_FUNCTION_INFO_V1(bloom_info);

Datum
bloom_cardinality(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	BfView		view;

	pgbloom_open(filter, &view);
	PG_RETURN_INT64((int64) rint(bf_cardinality(&view)));
}

Datum
bloom_fpp(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	BfView		view;

	pgbloom_open(filter, &view);
	PG_RETURN_FLOAT8(bf_current_fpp(&view));
}

/*
 * One row about a filter; the order of columns is that of the declaration in
 * SQL.
 */
Datum
bloom_info(PG_FUNCTION_ARGS)
{
	enum
	{
		KEY_TYPE, FORM, FPP, EXPECTED, SEED, LAYERS, BITS, HASHES, BLOCK_BITS,
		BITS_SET, FILL, CARDINALITY, CURRENT_FPP, BYTES, OVER_CAPACITY,
		NCOLUMNS
	};
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	BfView		view;
	TupleDesc	descriptor;
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS] = {false};
	uint64		bits = 0;
	uint64		bits_set = 0;
	int			i;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);
	if (descriptor->natts != NCOLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library and SQL definition of extension \"bloomfilter\" do not match"),
				 errdetail("bloom_info has %d columns in the library, but %d in SQL.",
						   NCOLUMNS, descriptor->natts),
				 errhint("Run ALTER EXTENSION bloomfilter UPDATE.")));

	pgbloom_open(filter, &view);
	for (i = 0; i < view.nlayers; i++)
	{
		bits += bf_shape_bits(&view.layers[i].shape);
		bits_set += view.layers[i].bits_set;
	}

	if (view.params.kind.code == BF_KIND_NONE)
		nulls[KEY_TYPE] = true;
	else
		values[KEY_TYPE] =
			CStringGetTextDatum(pgbloom_kind_name(&view.params.kind));
	values[FORM] = CStringGetTextDatum(view.nlayers > 0 ? "dense" : "sparse");
	values[FPP] = Float8GetDatum(view.params.fpp);
	values[EXPECTED] = Int64GetDatum((int64) view.params.expected);
	nulls[EXPECTED] = view.params.expected == 0;
	values[SEED] = Int64GetDatum((int64) view.params.seed);
	values[LAYERS] = Int32GetDatum(view.nlayers);
	values[CARDINALITY] = Int64GetDatum((int64) rint(bf_cardinality(&view)));
	values[CURRENT_FPP] = Float8GetDatum(bf_current_fpp(&view));
	values[BYTES] = Int64GetDatum((int64) (VARHDRSZ + view.size));
	values[OVER_CAPACITY] = BoolGetDatum(view.nlayers > 1);

	if (view.nlayers > 0)
	{
		const BfShape *last = &view.layers[view.nlayers - 1].shape;

		values[BITS] = Int64GetDatum((int64) bits);
		values[HASHES] = Int32GetDatum(last->k);
		values[BLOCK_BITS] = Int32GetDatum(1 << last->block_log2);
		values[BITS_SET] = Int64GetDatum((int64) bits_set);
		values[FILL] = Float8GetDatum((double) bits_set / (double) bits);
	}
	else
		nulls[BITS] = nulls[HASHES] = nulls[BLOCK_BITS] =
			nulls[BITS_SET] = nulls[FILL] = true;

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}
