/*-------------------------------------------------------------------------
 *
 * set_functions.c
 *	  Set operations on two filters.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_intersection);
PG_FUNCTION_INFO_V1(bloom_intersection_cardinality);

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
