/*-------------------------------------------------------------------------
 *
 * filter_agg.c
 *	  Aggregates over filters: bloom_union_agg and bloom_intersection_agg.
 *
 * A partial state is a filter like those that are aggregated, so the
 * transition functions combine partial states, too.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg_state.h"

#include "utils/float.h"

PG_FUNCTION_INFO_V1(bloom_union_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_finalfn);

static void
intersect_state(BfBuilder *builder, const BfView *view)
{
	BfEnv		env = builder->env;
	BfBuilder	result;
	BfView		state_view;

	pgbloom_open(pgbloom_result(builder, false), &state_view);
	pgbloom_check(bf_intersection(&result, &env, &state_view, view),
				  &state_view.params, &view->params);
	bf_builder_free(builder);
	*builder = result;
}

/*
 * bloom_union_agg_transfn(bloom, bloom) returns bloom
 */
Datum
bloom_union_agg_transfn(PG_FUNCTION_ARGS)
{
	return pgbloom_agg_combine(fcinfo, pgbloom_agg_merge, false);
}

/*
 * bloom_intersection_agg_transfn(bloom, bloom) returns bloom
 */
Datum
bloom_intersection_agg_transfn(PG_FUNCTION_ARGS)
{
	return pgbloom_agg_combine(fcinfo, intersect_state, false);
}

/*
 * Warn, once a query, of a union whose false-positive rate is much higher
 * than the fpp of any of the filters.
 */
static void
warn_of_rate(FunctionCallInfo fcinfo, const Bloom *filter)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	BfView		view;
	double		fpp;

	if (fn_cache->warned)
		return;
	pgbloom_open(filter, &view);
	fpp = bf_largest_fpp(&view);
	if (bf_current_fpp(&view) <= 2 * fpp)
		return;

	fn_cache->warned = true;
	ereport(WARNING,
			(errmsg("union of Bloom filters has a false-positive rate of %.3g instead of %s",
					bf_current_fpp(&view), float8out_internal(fpp)),
			 errdetail("Filters are merged into one layer only while it keeps its rate. The number of layers is %d.",
					   view.nlayers),
			 errhint("Build the filters with the same \"fpp\" and the same \"expected\", large enough for the union.")));
}

/*
 * bloom_union_agg_finalfn(bloom) returns bloom
 */
Datum
bloom_union_agg_finalfn(PG_FUNCTION_ARGS)
{
	BfBuilder	copy;
	BfBuilder  *builder = pgbloom_agg_result_builder(fcinfo, &copy);
	Bloom	   *result;

	if (builder == NULL)
		PG_RETURN_BLOOM_P(pgbloom_empty(NULL));
	result = pgbloom_agg_result(fcinfo, builder, false);
	warn_of_rate(fcinfo, result);
	PG_RETURN_BLOOM_P(result);
}

/*
 * bloom_intersection_agg_finalfn(bloom) returns bloom
 *
 * The intersection of no filters would contain every key, so it is NULL.
 */
Datum
bloom_intersection_agg_finalfn(PG_FUNCTION_ARGS)
{
	BfBuilder	copy;
	BfBuilder  *builder = pgbloom_agg_result_builder(fcinfo, &copy);

	if (builder == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BLOOM_P(pgbloom_result(builder, false));
}
