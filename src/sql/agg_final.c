/*-------------------------------------------------------------------------
 *
 * agg_final.c
 *	  Final functions of the aggregates, and their warnings.
 *
 * A final function must not change what the state contains, because window
 * frames finish a state repeatedly.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg.h"

#include <math.h>

#include "access/xact.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(bloom_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_finalfn);

/*
 * The result of a filter that sizes itself, of a frame that may be about to
 * grow.  To size it for its keys takes time in proportion to them, which would
 * be spent for each row.  So the state keeps the bits of the last result, to
 * which the keys that follow are added (pgbloom_expanded_add_slowly).  They
 * serve until a layer for all keys has another size, at most 128 times while
 * the number of keys doubles.  A state to which anything but keys of rows is
 * added, by a user-defined aggregate, has none.
 */
static Bloom *
make_running_result(PgBloomExpanded *expanded)
{
	BfBuilder  *builder = &expanded->builder;
	bool		dense;
	size_t		size;

	if (expanded->packed == NULL)
	{
		/* Sort and drop duplicates; from now on, none are added. */
		pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
		bf_builder_expect_probes(builder);
		expanded->packed = MemoryContextAlloc(builder->env.context,
											  sizeof(BfBuilder));
		bf_builder_init(expanded->packed, &builder->env, &builder->params);
	}
	if (builder->nlayers > 0)
		return pgbloom_result(builder, true);
	pgbloom_check(bf_builder_pack(builder, expanded->packed, &dense),
				  &builder->params, NULL);
	return pgbloom_result(dense ? expanded->packed : builder, false);
}

/*
 * The result of bloom_agg.  A filter without a number of expected keys is
 * sized for its keys, but few keys stay exact.
 */
static Bloom *
make_key_result(FunctionCallInfo fcinfo)
{
	BfBuilder  *builder = pgbloom_agg_builder(fcinfo);
	bool		in_window = AggCheckCallContext(fcinfo, NULL) ==
		AGG_CONTEXT_WINDOW;
	PgBloomExpanded *expanded;
	size_t		size;

	bf_builder_keep_hashes(builder, false);
	if (builder->params.expected > 0)
		return in_window ? pgbloom_result(builder, false) :
			pgbloom_agg_write_in_place(builder);
	if (in_window && pgbloom_expanded(PG_GETARG_DATUM(0)) != NULL)
	{
		expanded = (PgBloomExpanded *) DatumGetEOHP(PG_GETARG_DATUM(0));
		if (expanded->from_rows)
			return make_running_result(expanded);
	}
	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	return pgbloom_result(builder, builder->nlayers > 0 ||
						  builder->nhashes > BF_MAX_EXACT);
}

/*
 * The result of an aggregate over filters, or NULL without a state.  That of an
 * ordinary aggregate is used before the state goes away; a window frame may add
 * to the state before that.
 */
static Bloom *
make_filter_result(FunctionCallInfo fcinfo)
{
	BfBuilder  *builder;

	(void) pgbloom_agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		return NULL;
	builder = pgbloom_agg_builder(fcinfo);
	bf_builder_keep_hashes(builder, false);
	return AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_AGGREGATE ?
		pgbloom_agg_write_in_place(builder) : pgbloom_result(builder, false);
}

/* Warn, once a query, of a filter that outgrew its number of expected keys. */
static void
warn_of_growth(FunctionCallInfo fcinfo, const BfView *view)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);

	if (view->params.expected == 0 || view->nlayers < 2)
		return;
	pgbloom_fn_cache(fcinfo)->warned = true;
	ereport(WARNING,
			(errmsg("Bloom filter received about %.0f distinct keys, but %lld were expected",
					rint(bf_count_distinct(&env.interrupts, view->nhashes,
										   view->layers, view->nlayers)),
					(long long) view->params.expected),
			 errdetail("The filter grew to %d layers and has a false-positive rate of %.3g; %s was requested.",
					   view->nlayers, bf_current_fpp(view),
					   float8out_internal(view->params.fpp)),
			 errhint("Raise \"expected\", or leave it out for a filter that sizes itself.")));
}

/*
 * Warn, once a query, of a union whose false-positive rate is much higher
 * than the fpp of any of the filters.
 */
static void
warn_of_rate(FunctionCallInfo fcinfo, const BfView *view)
{
	double		fpp = bf_largest_fpp(view);
	bool		is_bound = view->nlayers == 0 || view->list_fpp > fpp;

	if (bf_current_fpp(view) <= 2 * fpp)
		return;
	pgbloom_fn_cache(fcinfo)->warned = true;
	ereport(WARNING,
			(errmsg("union of Bloom filters has a false-positive rate of %.3g instead of %s",
					bf_current_fpp(view), float8out_internal(fpp)),
			 is_bound ?
			 errdetail("It is a bound, as the rates of intersections of lists add up.") :
			 view->nlayers > 1 ?
			 errdetail("Filters are merged into one layer only while it keeps its rate. The number of layers is %d. A key may count in each, so the cardinality is an upper bound.",
					   view->nlayers) :
			 errdetail("A layer of the filters has more keys than it is made for."),
			 is_bound ? 0 :
			 errhint("Build the filters with the same \"fpp\" and the same \"expected\", large enough for the union.")));
}

/*
 * An empty filter with the parameters of the call.  If they are not known, it
 * has default ones, and a warning, once a query.
 */
static Bloom *
make_empty_result(FunctionCallInfo fcinfo)
{
	BfParams	params;
	bool		unknown;

	if (pgbloom_agg_call_params(fcinfo, &params, &unknown))
		return pgbloom_empty(&params);

	/* Citus does not pass the call, and looks up the function for each group. */
	if (fcinfo->flinfo->fn_expr == NULL)
	{
		static TimestampTz warned_at = 0;

		unknown = warned_at != GetCurrentStatementStartTimestamp();
		warned_at = GetCurrentStatementStartTimestamp();
	}
	if (unknown && !pgbloom_fn_cache(fcinfo)->warned)
	{
		pgbloom_fn_cache(fcinfo)->warned = true;
		ereport(WARNING,
				(errmsg("Bloom filter of no rows has default parameters"),
				 errdetail("The arguments for its false-positive rate, number of expected keys and seed are not known without a row."),
				 errhint("Use constants, or columns of the GROUP BY clause, or unite the result with bloom_empty(fpp, expected, seed).")));
	}
	return pgbloom_empty(NULL);
}

/* Give a state without keys, and without a key type, that of the call. */
static void
settle_key_type(FunctionCallInfo fcinfo)
{
	BfBuilder  *builder = pgbloom_expanded(PG_GETARG_DATUM(0));
	BfKeyType	key_type;

	if (builder != NULL && builder->params.key_type.code == BF_KEY_NONE &&
		builder->nhashes == 0 && builder->nlayers == 0 &&
		pgbloom_agg_call_key_type(fcinfo, &key_type))
		pgbloom_check(bf_builder_set_key_type(builder, &key_type),
					  &builder->params, NULL);
}

/* Return the result of a final function, with a warning if there is one. */
static Datum
return_with_warning(FunctionCallInfo fcinfo, Bloom *result,
					void (*warn) (FunctionCallInfo, const BfView *))
{
	BfView		view;

	if (!pgbloom_fn_cache(fcinfo)->warned)
	{
		pgbloom_open(result, &view);
		warn(fcinfo, &view);
	}
	PG_RETURN_BLOOM_P(result);
}

Datum
bloom_agg_finalfn(PG_FUNCTION_ARGS)
{
	(void) pgbloom_agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_BLOOM_P(make_empty_result(fcinfo));
	settle_key_type(fcinfo);
	return return_with_warning(fcinfo, make_key_result(fcinfo), warn_of_growth);
}

/* Nothing is known of a union of no filters, so it is the neutral one. */
Datum
bloom_union_agg_finalfn(PG_FUNCTION_ARGS)
{
	Bloom	   *result = make_filter_result(fcinfo);

	if (result == NULL)
		PG_RETURN_BLOOM_P(pgbloom_empty(NULL));
	return return_with_warning(fcinfo, result, warn_of_rate);
}

/* The intersection of no filters would contain every key, so it is NULL. */
Datum
bloom_intersection_agg_finalfn(PG_FUNCTION_ARGS)
{
	Bloom	   *result = make_filter_result(fcinfo);

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BLOOM_P(result);
}
