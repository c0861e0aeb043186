/*-------------------------------------------------------------------------
 *
 * info.c
 *	  Statistics of a filter, and the size of one that is to be built.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "utils/builtins.h"

/* Upper limit of bloom_sizing, so that no result overflows. */
#define MAX_SIZING	INT64CONST(1000000000000000)

PG_FUNCTION_INFO_V1(bloom_cardinality);
PG_FUNCTION_INFO_V1(bloom_fpp);
PG_FUNCTION_INFO_V1(bloom_info);
PG_FUNCTION_INFO_V1(bloom_sizing);

/*
 * The cardinality is likely to be read in a PL/pgSQL loop that adds keys, so
 * it is computed from an expanded filter without flattening it.  Keys that are
 * pending in one that does not expect such a loop, such as the state of an
 * aggregate, may be there several times.
 */
Datum
bloom_cardinality(PG_FUNCTION_ARGS)
{
	BfBuilder  *builder = pgbloom_expanded(PG_GETARG_DATUM(0));
	BfView		view;
	size_t		size;

	if (builder != NULL && !builder->expects_probes)
		pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	if (builder != NULL)
		PG_RETURN_INT64((int64)
						rint(bf_count_distinct(&builder->env.interrupts,
											   builder->nhashes,
											   builder->layers,
											   builder->nlayers)));
	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	PG_RETURN_INT64(pgbloom_count_distinct(PG_GETARG_DATUM(0), &view));
}

Datum
bloom_fpp(PG_FUNCTION_ARGS)
{
	BfView		view;

	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	PG_RETURN_FLOAT8(bf_current_fpp(&view));
}

/* The columns of bloom_info, in the order of its SQL definition. */
enum
{
	INFO_KEY_TYPE, INFO_FORM, INFO_FPP, INFO_EXPECTED, INFO_SEED, INFO_LAYERS,
	INFO_BITS, INFO_HASHES, INFO_BLOCK_BITS, INFO_BITS_SET, INFO_FILL,
	INFO_CARDINALITY, INFO_CURRENT_FPP, INFO_BYTES, INFO_OVER_CAPACITY,
	NINFO
};

Datum
bloom_info(PG_FUNCTION_ARGS)
{
	Datum		values[NINFO];
	bool		nulls[NINFO] = {false};
	BfView		view;
	const BfParams *params = &view.params;

	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	if (params->key_type.code == BF_KEY_NONE)
		nulls[INFO_KEY_TYPE] = true;
	else
		values[INFO_KEY_TYPE] =
			CStringGetTextDatum(pgbloom_key_type_name(&params->key_type));
	values[INFO_FORM] =
		CStringGetTextDatum(view.nlayers > 0 ? "dense" : "sparse");
	values[INFO_FPP] = Float8GetDatum(params->fpp);
	values[INFO_EXPECTED] = Int64GetDatum((int64) params->expected);
	nulls[INFO_EXPECTED] = params->expected == 0;
	values[INFO_SEED] = Int64GetDatum((int64) params->seed);
	values[INFO_LAYERS] = Int32GetDatum(view.nlayers);
	pgbloom_set_bits_columns(&view, &values[INFO_BITS], &nulls[INFO_BITS]);
	values[INFO_CARDINALITY] =
		Int64GetDatum(pgbloom_count_distinct(PG_GETARG_DATUM(0), &view));
	values[INFO_CURRENT_FPP] = Float8GetDatum(bf_current_fpp(&view));
	values[INFO_BYTES] = Int64GetDatum((int64) (VARHDRSZ + view.size));
	values[INFO_OVER_CAPACITY] = BoolGetDatum(view.nlayers > 1);
	return pgbloom_row(fcinfo, NINFO, values, nulls);
}

/*
 * Compute the size for a number of keys without building a filter.  More keys
 * than one filter can hold are distributed over several of equal size.
 */
Datum
bloom_sizing(PG_FUNCTION_ARGS)
{
	enum
	{
		SIZING_BITS, SIZING_BYTES, SIZING_BITS_PER_KEY, SIZING_HASHES,
		SIZING_BLOCK_BITS, SIZING_FILTERS, SIZING_STANDARD_BITS,
		SIZING_STANDARD_HASHES, SIZING_MAX_KEYS, SIZING_MAX_GROWN_KEYS, NSIZING
	};
	double		fpp = PG_GETARG_FLOAT8(0);
	double		nkeys = PG_GETARG_FLOAT8(1);
	Datum		values[NSIZING];
	bool		nulls[NSIZING] = {false};
	BfParams	params;
	BfGeometry	geometry;
	int64		expected;
	int64		filters;
	int64		keys;			/* of each filter */
	int64		bits;
	int64		header_size;

	pgbloom_init_params(&params, fpp, false, 0, 0);

	/* Written so that NaN fails. */
	if (!(nkeys >= 0 && nkeys <= (double) MAX_SIZING))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of expected keys %.16g is out of range",
						nkeys),
				 errdetail("The number must be between 0 and %lld.",
						   (long long) MAX_SIZING)));
	expected = (int64) fmax(ceil(nkeys), 1);

	filters = (expected - 1) / (int64) bf_max_keys(fpp) + 1;
	keys = (expected + filters - 1) / filters;
	if (bf_geometry_for(fpp, false, keys, &geometry) != BF_OK)
		elog(ERROR, "no layer geometry for one of " INT64_FORMAT " filters",
			 filters);
	bits = filters * (int64) bf_geometry_bits(&geometry);
	header_size = (int64) (VARHDRSZ + bf_header_size(&params, 1));

	values[SIZING_BITS] = Int64GetDatum(bits);
	values[SIZING_BYTES] = Int64GetDatum(bits / 8 + filters * header_size);
	values[SIZING_BITS_PER_KEY] = Float8GetDatum((double) bits / expected);
	values[SIZING_HASHES] = Int32GetDatum(geometry.k);
	values[SIZING_BLOCK_BITS] = Int32GetDatum(1 << geometry.block_log2);
	values[SIZING_FILTERS] = Int32GetDatum((int32) filters);
	values[SIZING_STANDARD_BITS] =
		Int64GetDatum((int64) ceil(expected * bf_standard_bits_per_key(fpp)));
	values[SIZING_STANDARD_HASHES] = Int32GetDatum(bf_standard_hashes(fpp));
	values[SIZING_MAX_KEYS] = Int64GetDatum(filters *
											(int64) geometry.capacity);
	values[SIZING_MAX_GROWN_KEYS] =
		Int64GetDatum(filters * (int64) bf_max_grown_keys(fpp, keys));
	return pgbloom_row(fcinfo, NSIZING, values, nulls);
}
