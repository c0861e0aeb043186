/*-------------------------------------------------------------------------
 *
 * set_functions.c
 *	  Functions of whole filters: set operations, compaction, and the operator
 *	  class bloom_ops, that is equality and hashing.
 *
 * Filters are equal if their images are.  Equal parameters and keys give
 * equal images as long as no layer overflows.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "access/detoast.h"

PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_intersection);
PG_FUNCTION_INFO_V1(bloom_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloom_compact);
PG_FUNCTION_INFO_V1(bloom_eq);
PG_FUNCTION_INFO_V1(bloom_ne);
PG_FUNCTION_INFO_V1(hash_bloom);
PG_FUNCTION_INFO_V1(hash_bloom_extended);

typedef BfStatus (*SetOperation) (BfBuilder *result, const BfEnv *env,
								  const BfView *a, const BfView *b);

/* A NULL filter leaves the other one as it is. */
static Datum
combine_filters(FunctionCallInfo fcinfo, SetOperation operation)
{
	BfView		a;
	BfView		b;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	pgbloom_open(PG_GETARG_BLOOM_PP(0), &a);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &b);
	pgbloom_check(operation(&builder, &env, &a, &b), &a.params, &b.params);
	PG_RETURN_BLOOM_P(pgbloom_finish(&builder));
}

Datum
bloom_union(PG_FUNCTION_ARGS)
{
	return combine_filters(fcinfo, bf_union);
}

Datum
bloom_intersection(PG_FUNCTION_ARGS)
{
	return combine_filters(fcinfo, bf_intersection);
}

Datum
bloom_intersection_cardinality(PG_FUNCTION_ARGS)
{
	BfView		a;
	BfView		b;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	double		cardinality;

	pgbloom_open(PG_GETARG_BLOOM_PP(0), &a);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &b);
	pgbloom_check(bf_intersection_cardinality(&env, &a, &b, &cardinality),
				  &a.params, &b.params);
	PG_RETURN_INT64((int64) rint(cardinality));
}

/*
 * An unsized filter is sized for the keys it holds; an oversized one becomes
 * the filter that would have been built at the smaller size.
 */
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	Bloom	   *result;
	BfView		view;
	BfBuilder	builder;

	pgbloom_open(PG_GETARG_BLOOM_PP(0), &view);
	pgbloom_load(&builder, &view);
	result = pgbloom_result(&builder, true);
	bf_builder_free(&builder);
	PG_RETURN_BLOOM_P(result);
}

static bool
images_equal(FunctionCallInfo fcinfo)
{
	Bloom	   *a;
	Bloom	   *b;
	bool		result;

	/* The length is known without detoasting. */
	if (toast_raw_datum_size(PG_GETARG_DATUM(0)) !=
		toast_raw_datum_size(PG_GETARG_DATUM(1)))
		return false;

	a = PG_GETARG_BLOOM_PP(0);
	b = PG_GETARG_BLOOM_PP(1);
	result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b),
					VARSIZE_ANY_EXHDR(a)) == 0;
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return result;
}

Datum
bloom_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(images_equal(fcinfo));
}

Datum
bloom_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!images_equal(fcinfo));
}

static uint64
hash_image(FunctionCallInfo fcinfo, uint64 seed)
{
	Bloom	   *filter = PG_GETARG_BLOOM_PP(0);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(filter),
									 VARSIZE_ANY_EXHDR(filter), seed);

	PG_FREE_IF_COPY(filter, 0);
	return hash;
}

/*
 * A hash operator class requires these 32 bits to be the low half of the
 * extended hash with seed 0.
 */
Datum
hash_bloom(PG_FUNCTION_ARGS)
{
	PG_RETURN_UINT32((uint32) hash_image(fcinfo, 0));
}

Datum
hash_bloom_extended(PG_FUNCTION_ARGS)
{
	PG_RETURN_UINT64(hash_image(fcinfo, (uint64) PG_GETARG_INT64(1)));
}
