/*-------------------------------------------------------------------------
 *
 * info.c
 *	  What a filter knows about itself, and what one would be like.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

/* Most keys that bloom_sizing counts with, far beyond any use. */
#define MAX_SIZING	INT64CONST(1000000000000000)

PG_FUNCTION_INFO_V1(bloom_cardinality);
PG_FUNCTION_INFO_V1(bloom_fpp);
PG_FUNCTION_INFO_V1(bloom_info);
PG_FUNCTION_INFO_V1(bloom_sizing);
PG_FUNCTION_INFO_V1(bloom_compact);

Datum
bloom_cardinality(PG_FUNCTION_ARGS)
{
	BfBuilder  *builder = pgbloom_expanded(PG_GETARG_DATUM(0));
	BfView		view;

	if (builder != NULL)
		PG_RETURN_INT64((int64) rint(bf_builder_cardinality(builder)));
	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	PG_RETURN_INT64((int64) rint(bf_cardinality(&view)));
}

Datum
bloom_fpp(PG_FUNCTION_ARGS)
{
	BfView		view;

	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	PG_RETURN_FLOAT8(bf_current_fpp(&view));
}

/* The row type of the result, which SQL declares. */
static TupleDesc
row_type(FunctionCallInfo fcinfo, int ncolumns)
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
		EXCLUDED, NCOLUMNS
	};
	BfView		view;
	TupleDesc	descriptor;
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS] = {false};
	uint64		bits = 0;
	uint64		bits_set = 0;
	int			i;

	descriptor = row_type(fcinfo, NCOLUMNS);
	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	for (i = 0; i < view.nlayers; i++)
	{
		bits += bf_geometry_bits(&view.layers[i].geometry);
		bits_set += view.layers[i].bits_set;
	}

	if (view.params.key_type.code == BF_KEY_NONE)
		nulls[KEY_TYPE] = true;
	else
		values[KEY_TYPE] =
			CStringGetTextDatum(pgbloom_key_type_name(&view.params.key_type));
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
	values[EXCLUDED] = Int32GetDatum((int32) view.nexclusions);

	if (view.nlayers > 0)
	{
		const BfGeometry *last = &view.layers[view.nlayers - 1].geometry;

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

/*
 * What keys would take, before anything is built: more of them than one
 * filter holds are spread over several of equal size.
 */
Datum
bloom_sizing(PG_FUNCTION_ARGS)
{
	enum
	{
		BITS, BYTES, BITS_PER_KEY, HASHES, BLOCK_BITS, FILTERS,
		STANDARD_BITS, STANDARD_HASHES, NCOLUMNS
	};
	double		fpp = PG_GETARG_FLOAT8(0);
	double		asked = PG_GETARG_FLOAT8(1);
	int64		expected;
	TupleDesc	descriptor = row_type(fcinfo, NCOLUMNS);
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS] = {false};
	BfParams	params;
	BfGeometry		geometry;
	int64		filters;
	int64		bits;

	pgbloom_init_params(&params, fpp, false, 0, 0);

	/* Written so that NaN fails. */
	if (!(asked >= 1 && asked <= (double) MAX_SIZING))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of expected keys %.16g is out of range",
						asked),
				 errdetail("The number must be between 1 and %lld.",
						   (long long) MAX_SIZING)));
	expected = (int64) ceil(asked);

	filters = (expected - 1) / (int64) bf_max_keys(fpp) + 1;
	if (bf_geometry_for(fpp, (expected + filters - 1) / filters,
					 &geometry) != BF_OK)
		elog(ERROR, "no shape for one of " INT64_FORMAT " filters", filters);
	bits = filters * (int64) bf_geometry_bits(&geometry);

	values[BITS] = Int64GetDatum(bits);
	values[BYTES] = Int64GetDatum(bits / 8 + filters *
								  (int64) (VARHDRSZ +
										   bf_header_size(&params, 1)));
	values[BITS_PER_KEY] = Float8GetDatum((double) bits / expected);
	values[HASHES] = Int32GetDatum(geometry.k);
	values[BLOCK_BITS] = Int32GetDatum(1 << geometry.block_log2);
	values[FILTERS] = Int32GetDatum((int32) filters);
	values[STANDARD_BITS] =
		Int64GetDatum((int64) ceil(expected * bf_standard_bits_per_key(fpp)));
	values[STANDARD_HASHES] = Int32GetDatum(bf_standard_hashes(fpp));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}

/*
 * The smallest filter that keeps the rate asked for.
 */
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	struct varlena *result;
	BfView		view;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	pgbloom_open(filter, &view);
	pgbloom_load(&builder, &env, &view);
	result = pgbloom_result(&builder, true);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}
