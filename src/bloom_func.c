/*-------------------------------------------------------------------------
 *
 * bloom_func.c
 *	  Functions of SQL that construct, extend, ask and describe a filter.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloom_empty);
PG_FUNCTION_INFO_V1(bloom_add);
PG_FUNCTION_INFO_V1(bloom_contains);
PG_FUNCTION_INFO_V1(bloom_contained_by);
PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_cardinality);
PG_FUNCTION_INFO_V1(bloom_fpp);
PG_FUNCTION_INFO_V1(bloom_info);

Datum
bloom_empty(PG_FUNCTION_ARGS)
{
	BfParams	params;
	BfHost		host = pgbloom_host(CurrentMemoryContext);
	BfBuilder	builder;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						PG_ARGISNULL(0) ? "false-positive rate" : "seed")));
	pgbloom_init_params(&params, PG_GETARG_FLOAT8(0), !PG_ARGISNULL(1),
						PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1),
						PG_GETARG_INT64(2));
	pgbloom_check(bf_builder_init(&builder, &host, &params), &params, NULL);
	PG_RETURN_POINTER(pgbloom_result(&builder, false));
}

Datum
bloom_add(PG_FUNCTION_ARGS)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	struct varlena *result;
	BfView		view;
	BfKind		kind;
	uint64		hash;
	BfHost		host = pgbloom_host(CurrentMemoryContext);
	BfBuilder	builder;

	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_type(fcinfo, 1), PG_GETARG_DATUM(1),
							&view.params, &kind);
	if (bf_contains(&view, hash))
		PG_RETURN_POINTER(filter);

	/* With room in the bits, a copy of the value is the result. */
	if (view.nlayers > 0 && bf_kind_equal(&view.params.kind, &kind))
	{
		result = palloc(VARHDRSZ + view.size);
		SET_VARSIZE(result, VARHDRSZ + view.size);
		memcpy(VARDATA(result), view.image, view.size);
		if (bf_add_in_place((uint8_t *) VARDATA(result), &view,
							hash) == BF_OK)
			PG_RETURN_POINTER(result);
		pfree(result);
	}

	pgbloom_check(bf_builder_init(&builder, &host, &view.params),
				  &view.params, NULL);
	pgbloom_check(bf_builder_merge(&builder, &view), &builder.params,
				  &view.params);
	bf_builder_set_kind(&builder, &kind);
	pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

static bool
contains(FunctionCallInfo fcinfo, int filter_argno, int key_argno)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(filter_argno);
	BfView		view;
	BfKind		kind;
	uint64		hash;
	bool		found;

	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_type(fcinfo, key_argno),
							PG_GETARG_DATUM(key_argno), &view.params, &kind);
	found = bf_contains(&view, hash);
	PG_FREE_IF_COPY(filter, filter_argno);
	return found;
}

Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 0, 1));
}

/* bloom_contains with its arguments exchanged, for the operator <@ */
Datum
bloom_contained_by(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 1, 0));
}

Datum
bloom_union(PG_FUNCTION_ARGS)
{
	struct varlena *a = PG_GETARG_VARLENA_PP(0);
	struct varlena *b = PG_GETARG_VARLENA_PP(1);
	struct varlena *result;
	BfView		a_view;
	BfView		b_view;
	BfHost		host = pgbloom_host(CurrentMemoryContext);
	BfBuilder	builder;

	pgbloom_open(a, &a_view);
	pgbloom_open(b, &b_view);
	pgbloom_check(bf_union(&builder, &host, &a_view, &b_view),
				  &a_view.params, &b_view.params);
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

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
