/*-------------------------------------------------------------------------
 *
 * set.c
 *	  Functions of two filters: set operations and equality.
 *
 * Filters are equal when their images are.  Equal parameters and keys make
 * equal images as long as no layer overflows.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <math.h>

#include "access/detoast.h"

PG_FUNCTION_INFO_V1(bloom_union);
PG_FUNCTION_INFO_V1(bloom_intersection);
PG_FUNCTION_INFO_V1(bloom_intersection_cardinality);
PG_FUNCTION_INFO_V1(bloom_eq);
PG_FUNCTION_INFO_V1(bloom_ne);
PG_FUNCTION_INFO_V1(hash_bloom);
PG_FUNCTION_INFO_V1(hash_bloom_extended);

typedef BfStatus (*SetOperation) (BfBuilder *b, const BfEnv *env,
								  const BfView *x, const BfView *y);

static Datum
combine(FunctionCallInfo fcinfo, SetOperation operation)
{
	struct varlena *result;
	BfView		a;
	BfView		b;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	pgbloom_open(PG_GETARG_VARLENA_PP(0), &a);
	pgbloom_open(PG_GETARG_VARLENA_PP(1), &b);
	pgbloom_check(operation(&builder, &env, &a, &b), &a.params, &b.params);
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

Datum
bloom_union(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	return combine(fcinfo, bf_union);
}

Datum
bloom_intersection(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, bf_intersection);
}

Datum
bloom_intersection_cardinality(PG_FUNCTION_ARGS)
{
	BfView		a;
	BfView		b;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	double		n;

	pgbloom_open(PG_GETARG_VARLENA_PP(0), &a);
	pgbloom_open(PG_GETARG_VARLENA_PP(1), &b);
	pgbloom_check(bf_intersection_cardinality(&env, &a, &b, &n),
				  &a.params, &b.params);
	PG_RETURN_INT64((int64) rint(n));
}

static bool
same_image(FunctionCallInfo fcinfo)
{
	struct varlena *a;
	struct varlena *b;
	bool		result;

	/* Different lengths tell without fetching the values. */
	if (toast_raw_datum_size(PG_GETARG_DATUM(0)) !=
		toast_raw_datum_size(PG_GETARG_DATUM(1)))
		return false;

	a = PG_GETARG_VARLENA_PP(0);
	b = PG_GETARG_VARLENA_PP(1);
	result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b),
					VARSIZE_ANY_EXHDR(a)) == 0;
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return result;
}

Datum
bloom_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(same_image(fcinfo));
}

Datum
bloom_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!same_image(fcinfo));
}

static uint64
hash_image(FunctionCallInfo fcinfo, uint64 seed)
{
	struct varlena *filter = PG_GETARG_VARLENA_PP(0);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(filter),
									 VARSIZE_ANY_EXHDR(filter), seed);

	PG_FREE_IF_COPY(filter, 0);
	return hash;
}

/* For hash joins and aggregation; with seed 0 the extended one agrees. */
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
