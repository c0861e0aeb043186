/*-------------------------------------------------------------------------
 *
 * set_functions.c
 *	  Functions of whole filters: set operations and compaction.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_intersection);
PG_FUNCTION_INFO_V1(bloom_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloom_difference_cardinality);
PG_FUNCTION_INFO_V1(bloom_compact);

typedef BfStatus (*FilterOperation) (BfBuilder *result, const BfEnv *env,
									 const BfView *a, const BfView *b);

static Datum
combine_filters(FunctionCallInfo fcinfo, FilterOperation operation)
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

/* The number of keys that n filters have in common. */
static double
count_common(int n, const BfView *const *filters)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	double		common;
	int			pair[2];
	BfStatus	status = bf_common_keys(&env.interrupts, n, filters, &common,
										pair);

	pgbloom_check(status, &filters[pair[0]]->params,
				  &filters[pair[1]]->params);
	return common;
}

/* bloom_intersection_cardinality(VARIADIC filters bloom[]) */
Datum
bloom_intersection_cardinality(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	const BfView *views[BF_MAX_COMMON];
	Datum	   *filters;
	bool	   *nulls;
	int			n;
	int			i;

	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE,
					  &filters, &nulls, &n);
	if (n < 1 || n > BF_MAX_COMMON)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot count the common keys of %d Bloom filters", n),
				 errdetail("The number of filters must be between 1 and %d.",
						   BF_MAX_COMMON)));
	for (i = 0; i < n; i++)
	{
		BfView	   *view = palloc(sizeof(BfView));

		if (nulls[i])
			PG_RETURN_NULL();
		pgbloom_open(PG_DETOAST_DATUM_PACKED(filters[i]), view);
		views[i] = view;
	}
	PG_RETURN_INT64((int64) rint(count_common(n, views)));
}

Datum
bloom_difference_cardinality(PG_FUNCTION_ARGS)
{
	BfView		a;
	BfView		b;
	const BfView *views[] = {&a, &b};
	int64		rest;

	pgbloom_open(PG_GETARG_BLOOM_PP(0), &a);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &b);
	rest = pgbloom_count_distinct(PG_GETARG_DATUM(0), &a) -
		(int64) rint(count_common(2, views));
	PG_RETURN_INT64(Max(0, rest));
}

/*
 * An unsized filter is sized for the keys it holds; an oversized one becomes
 * the filter that would have been built at the smaller size.  What is compact
 * may fold once more, because the number of keys is estimated from fewer bits
 * then, or because hashes are not spread evenly.
 */
Datum
bloom_compact(PG_FUNCTION_ARGS)
{
	Bloom	   *result = PG_GETARG_BLOOM_PP(0);
	Size		size;

	do
	{
		BfView		view;
		BfBuilder	builder;

		size = VARSIZE_ANY_EXHDR(result);
		pgbloom_open(result, &view);
		pgbloom_load(&builder, &view);
		result = pgbloom_result(&builder, true);
		bf_builder_free(&builder);
	} while (VARSIZE_ANY_EXHDR(result) < size);
	PG_RETURN_BLOOM_P(result);
}
