/*-------------------------------------------------------------------------
 *
 * bloom_func.c
 *	  One filter and one key: to construct, to add, to ask.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

PG_FUNCTION_INFO_V1(bloom_empty);
PG_FUNCTION_INFO_V1(bloom_add);
PG_FUNCTION_INFO_V1(bloom_contains);
PG_FUNCTION_INFO_V1(bloom_contained_by);

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
