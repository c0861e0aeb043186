/*-------------------------------------------------------------------------
 *
 * compact_function.c
 *	  The smallest filter with the same keys.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

PG_FUNCTION_INFO_V1(bloom_compact);

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
	pgbloom_load(&builder, CurrentMemoryContext, &view);
	result = pgbloom_result(&builder, true);
	bf_builder_free(&builder);
	PG_RETURN_BLOOM_P(result);
}
