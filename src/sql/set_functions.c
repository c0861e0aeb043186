/*-------------------------------------------------------------------------
 *
 * set_functions.c
 *	  Functions of whole filters: set operations and compaction.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_intersection);
PG_FUNCTION_INFO_V1(bloom_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloom_compact);

typedef BfStatus (*SetOperation) (BfBuilder *result, const BfEnv *env,
								  const BfView *a, const BfView *b);

static Datum
combine_filters(FunctionCallInfo fcinfo, SetOperation operation)
{
	BfView		a;
	BfView		b;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	pgbloom_open(PG_GETARG_BLOOM_PP(0), &a);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &b);
	pgbloom_check(operation(&builder, &env, &a, &b), &a.params, &b.params);
	PG_RETURN_BLOOM_P(pgbloom_finish(&builder));
}

/* A NULL filter leaves the other one as it is. */
Datum
bloom_union(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
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
