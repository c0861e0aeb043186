/*-------------------------------------------------------------------------
 *
 * filter_agg.c
 *	  Aggregates over filters: bloom_union_agg and bloom_intersection_agg.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg_state.h"

PG_FUNCTION_INFO_V1(bloom_union_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_union_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_finalfn);

static void
intersect(PgBloomAggState *state, const BfView *view)
{
	BfBuilder  *builder = pgbloom_agg_builder(state);
	BfEnv		env = builder->env;
	BfBuilder	result;
	BfView		state_view;

	pgbloom_agg_open(state, &state_view);
	pgbloom_check(bf_intersection(&result, &env, &state_view, view),
				  &state_view.params, &view->params);
	bf_builder_free(builder);
	*builder = result;
}

/*
 * Transition functions: (internal, bloom) returns internal
 */
static Datum
transition(FunctionCallInfo fcinfo, PgBloomAggOperation operation)
{
	MemoryContext context = pgbloom_agg_context(fcinfo);
	PgBloomAggState *state = pgbloom_agg_get_state(fcinfo, 0);
	BfView		view;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &view);
	if (state == NULL)
	{
		state = pgbloom_agg_make_state(context, &view.params);
		pgbloom_agg_merge(state, &view);
	}
	else
		operation(state, &view);
	PG_RETURN_POINTER(state);
}

Datum
bloom_union_agg_transfn(PG_FUNCTION_ARGS)
{
	return transition(fcinfo, pgbloom_agg_merge);
}

Datum
bloom_intersection_agg_transfn(PG_FUNCTION_ARGS)
{
	return transition(fcinfo, intersect);
}

Datum
bloom_union_agg_combinefn(PG_FUNCTION_ARGS)
{
	return pgbloom_agg_combine(fcinfo, pgbloom_agg_merge, false);
}

Datum
bloom_intersection_agg_combinefn(PG_FUNCTION_ARGS)
{
	return pgbloom_agg_combine(fcinfo, intersect, false);
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
			(errmsg("union of Bloom filters has a false-positive rate of %.3g instead of %g",
					bf_current_fpp(&view), fpp),
			 errdetail("Filters are merged into one layer only while it keeps its rate. The number of layers is %d.",
					   view.nlayers),
			 errhint("Build the filters with the same \"fpp\" and the same \"expected\", large enough for the union.")));
}

/*
 * bloom_union_agg_finalfn(internal) returns bloom
 */
Datum
bloom_union_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomAggState *state;
	Bloom	   *result;

	pgbloom_agg_context(fcinfo);
	state = pgbloom_agg_get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_BLOOM_P(pgbloom_agg_empty_filter());
	result = pgbloom_result(pgbloom_agg_builder(state), false);
	warn_of_rate(fcinfo, result);
	PG_RETURN_BLOOM_P(result);
}

/*
 * bloom_intersection_agg_finalfn(internal) returns bloom
 *
 * The intersection of no filters would contain every key, so it is NULL.
 */
Datum
bloom_intersection_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomAggState *state;

	pgbloom_agg_context(fcinfo);
	state = pgbloom_agg_get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BLOOM_P(pgbloom_result(pgbloom_agg_builder(state), false));
}
