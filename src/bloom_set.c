/*-------------------------------------------------------------------------
 *
 * bloom_set.c
 *	  Functions of two filters.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

PG_FUNCTION_INFO_V1(bloom_union);

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
