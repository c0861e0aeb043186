/*-------------------------------------------------------------------------
 *
 * agg.c
 *	  Aggregates over keys: bloom_agg and bloom_agg_hash.
 *
 * Their arguments are (key or hash [, fpp [, expected [, seed]]]).  A
 * transition function serves all variants of an aggregate: it checks the
 * number of its arguments.  All rows must have the same parameters.
 *
 * The state is of type bloom, except for keys of any type (agg_state.c).
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg_state.h"

#include <math.h>

#include "utils/float.h"

PG_FUNCTION_INFO_V1(bloom_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_agg_key_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_hash_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_hash_combinefn);
PG_FUNCTION_INFO_V1(bloom_agg_hash_finalfn);

/* Arguments of the transition functions after the state and the key. */
#define FPP_ARG			2
#define EXPECTED_ARG	3
#define SEED_ARG		4

/* Parameters as a message shows them; NaN stands for NULL. */
typedef struct ShownParams
{
	double		fpp;
	double		expected;		/* -1: none */
	double		seed;
} ShownParams;

static char *
format_params(const ShownParams *params)
{
	return psprintf("fpp %s, %s expected keys and seed %.0f",
					float8out_internal(params->fpp),
					params->expected < 0 ? "no" :
					psprintf("%.0f", params->expected), params->seed);
}

pg_noreturn static void
reject_different_params(const ShownParams *a, const ShownParams *b)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("parameters of a Bloom filter must be the same for all rows"),
			 errdetail("One row has %s, another one has %s.",
					   format_params(a), format_params(b)),
			 errhint("Use constants, or columns of the GROUP BY clause.")));
}

static ShownParams
show_params(const BfParams *params)
{
	ShownParams shown;

	shown.fpp = params->fpp;
	shown.expected = params->expected > 0 ? (double) params->expected : -1;
	shown.seed = (double) (int64) params->seed;
	return shown;
}

/* Does this row have the parameters of the first one? */
static inline bool
arguments_match(FunctionCallInfo fcinfo, const BfParams *params)
{
	int			nargs = PG_NARGS();

	if (nargs > FPP_ARG &&
		(PG_ARGISNULL(FPP_ARG) || PG_GETARG_FLOAT8(FPP_ARG) != params->fpp))
		return false;
	if (nargs > EXPECTED_ARG)
	{
		if (PG_ARGISNULL(EXPECTED_ARG) != (params->expected == 0))
			return false;
		if (!PG_ARGISNULL(EXPECTED_ARG) &&
			PG_GETARG_FLOAT8(EXPECTED_ARG) != (double) params->expected &&
			ceil(PG_GETARG_FLOAT8(EXPECTED_ARG)) !=
			(double) params->expected)
			return false;
	}
	return nargs <= SEED_ARG ||
		(!PG_ARGISNULL(SEED_ARG) &&
		 PG_GETARG_INT64(SEED_ARG) == (int64) params->seed);
}

pg_noreturn static void
reject_arguments(FunctionCallInfo fcinfo, const BfParams *params)
{
	int			nargs = PG_NARGS();
	ShownParams first;
	ShownParams row;

	first = row = show_params(params);
	row.fpp = PG_ARGISNULL(FPP_ARG) ? NAN : PG_GETARG_FLOAT8(FPP_ARG);
	if (nargs > EXPECTED_ARG)
		row.expected = PG_ARGISNULL(EXPECTED_ARG) ? -1 :
			ceil(PG_GETARG_FLOAT8(EXPECTED_ARG));
	if (nargs > SEED_ARG)
		row.seed = PG_ARGISNULL(SEED_ARG) ? NAN :
			(double) PG_GETARG_INT64(SEED_ARG);
	reject_different_params(&first, &row);
}

static inline void
check_arguments(FunctionCallInfo fcinfo, const BfParams *params)
{
	if (!arguments_match(fcinfo, params))
		reject_arguments(fcinfo, params);
}

/* The parameters in the arguments, which are those of the first row. */
static void
get_parameters(FunctionCallInfo fcinfo, BfParams *params)
{
	int			nargs = PG_NARGS();
	bool		sized = nargs > EXPECTED_ARG && !PG_ARGISNULL(EXPECTED_ARG);

	if ((nargs > FPP_ARG && PG_ARGISNULL(FPP_ARG)) ||
		(nargs > SEED_ARG && PG_ARGISNULL(SEED_ARG)))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						PG_ARGISNULL(FPP_ARG) ? "false-positive rate" :
						"seed")));
	pgbloom_init_params(params,
						nargs > FPP_ARG ? PG_GETARG_FLOAT8(FPP_ARG) :
						BF_FPP_DEFAULT,
						sized, sized ? PG_GETARG_FLOAT8(EXPECTED_ARG) : 0,
						nargs > SEED_ARG ? PG_GETARG_INT64(SEED_ARG) : 0);
}

/* The state of type internal for the first row. */
static PgBloomAggState *
make_row_state(FunctionCallInfo fcinfo)
{
	MemoryContext context = pgbloom_agg_context(fcinfo);
	PgBloomAggState *state;
	BfParams	params;

	get_parameters(fcinfo, &params);
	state = pgbloom_agg_make_state(context, &params);
	pgbloom_agg_prepare(fcinfo, &state->batch.builder, true);
	return state;
}

/*
 * The state of type internal to which a row is added.  A row with a NULL key
 * has parameters as well, so it creates the state and is checked.
 */
static PgBloomAggState *
get_row_state(FunctionCallInfo fcinfo)
{
	PgBloomAggState *state = pgbloom_agg_get_state(fcinfo, 0);

	if (state == NULL)
		state = make_row_state(fcinfo);
	check_arguments(fcinfo, &pgbloom_agg_batch(state)->builder.params);
	return state;
}

/* The same for a state of type bloom. */
static Datum
get_row_filter(FunctionCallInfo fcinfo)
{
	MemoryContext context = pgbloom_agg_context(fcinfo);
	BfParams	params;
	Datum		state;

	if (PG_ARGISNULL(0))
	{
		get_parameters(fcinfo, &params);
		state = pgbloom_make_state(context, &params);
		pgbloom_agg_prepare(fcinfo, pgbloom_expanded(state), true);
	}
	else
		state = pgbloom_agg_writable(fcinfo, context, PG_GETARG_DATUM(0),
									 true);
	check_arguments(fcinfo, &pgbloom_expanded_batch(state)->builder.params);
	return state;
}

/*
 * A caller that does not pass the expression of the call, such as Citus, looks
 * up the function for each row, so the function finds no cache of the row
 * before.  The state keeps it.
 */
static void
take_cache_from_state(FunctionCallInfo fcinfo, PgBloomBatch *batch)
{
	if (batch->fn_cache == NULL)
		batch->fn_cache = pgbloom_make_fn_cache(batch->builder.env.context);
	fcinfo->flinfo->fn_extra = batch->fn_cache;
}

/* Hash the first key, and record its type. */
static uint64
hash_first_key(FunctionCallInfo fcinfo, BfBuilder *builder)
{
	BfKeyType	key_type;
	uint64		hash;

	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&builder->params, &key_type);
	bf_builder_set_key_type(builder, &key_type);
	return hash;
}

/* Add the key of this row, unless it is NULL. */
static void
add_key(FunctionCallInfo fcinfo, PgBloomBatch *batch)
{
	BfBuilder  *builder = &batch->builder;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return;
	if (builder->params.key_type.code == BF_KEY_NONE)
		hash = hash_first_key(fcinfo, builder);
	else
		hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1),
								PG_GETARG_DATUM(1), &builder->params, NULL);
	pgbloom_batch_add(batch, hash);
}

/*
 * bloom_agg_transfn(internal, key [, fpp [, expected [, seed]]])
 */
Datum
bloom_agg_transfn(PG_FUNCTION_ARGS)
{
	PgBloomAggState *state = get_row_state(fcinfo);

	add_key(fcinfo, &state->batch);
	PG_RETURN_POINTER(state);
}

/*
 * bloom_agg_key_transfn(bloom, bloom_key [, fpp [, expected [, seed]]])
 */
Datum
bloom_agg_key_transfn(PG_FUNCTION_ARGS)
{
	Datum		state = get_row_filter(fcinfo);
	PgBloomBatch *batch = pgbloom_expanded_batch(state);

	if (fcinfo->flinfo->fn_expr == NULL)
		take_cache_from_state(fcinfo, batch);
	add_key(fcinfo, batch);
	return state;
}

/*
 * bloom_agg_hash_transfn(bloom, hash [, fpp [, expected [, seed]]])
 *
 * A hash does not tell the type of its key, so the filter has no key type.
 */
Datum
bloom_agg_hash_transfn(PG_FUNCTION_ARGS)
{
	Datum		state = get_row_filter(fcinfo);

	if (!PG_ARGISNULL(1))
		pgbloom_batch_add(pgbloom_expanded_batch(state),
						  (uint64) PG_GETARG_INT64(1));
	return state;
}

/* Merge a partial state, which must have the same parameters. */
static void
merge_partial(BfBuilder *builder, const BfView *view)
{
	const BfParams *params = &builder->params;

	if (view->params.fpp != params->fpp ||
		view->params.expected != params->expected ||
		view->params.seed != params->seed)
	{
		ShownParams a = show_params(params);
		ShownParams b = show_params(&view->params);

		reject_different_params(&a, &b);
	}
	pgbloom_agg_merge(builder, view);
}

/*
 * bloom_agg_combinefn(internal, internal) returns internal
 */
Datum
bloom_agg_combinefn(PG_FUNCTION_ARGS)
{
	MemoryContext context = pgbloom_agg_context(fcinfo);
	PgBloomAggState *state = pgbloom_agg_get_state(fcinfo, 0);
	PgBloomAggState *other = pgbloom_agg_get_state(fcinfo, 1);
	BfView		view;

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	pgbloom_open(other->image != NULL ? other->image :
				 pgbloom_result(pgbloom_batch_builder(&other->batch), false),
				 &view);
	if (state == NULL)
	{
		state = pgbloom_agg_make_state(context, &view.params);
		pgbloom_agg_prepare(fcinfo, &state->batch.builder, true);
	}
	merge_partial(pgbloom_batch_builder(pgbloom_agg_batch(state)), &view);
	PG_RETURN_POINTER(state);
}

/*
 * bloom_agg_hash_combinefn(bloom, bloom) returns bloom
 */
Datum
bloom_agg_hash_combinefn(PG_FUNCTION_ARGS)
{
	return pgbloom_agg_combine(fcinfo, merge_partial, true);
}

/*
 * Warn, once a query, of a filter that outgrew its number of expected keys.
 */
static void
warn_of_growth(FunctionCallInfo fcinfo, const Bloom *filter)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	BfView		view;

	if (fn_cache->warned)
		return;
	pgbloom_open(filter, &view);
	if (view.params.expected == 0 || view.nlayers < 2)
		return;

	fn_cache->warned = true;
	ereport(WARNING,
			(errmsg("Bloom filter received about %.0f distinct keys, but %lld were expected",
					rint(bf_cardinality(&view)),
					(long long) view.params.expected),
			 errdetail("The filter grew to %d layers and has a false-positive rate of %.3g; %s was requested.",
					   view.nlayers, bf_current_fpp(&view),
					   float8out_internal(view.params.fpp)),
			 errhint("Raise \"expected\", or leave it out for a filter that sizes itself.")));
}

/*
 * Make the result of a state.  A filter without a number of expected keys is
 * sized for its keys here.
 */
static Datum
key_result(FunctionCallInfo fcinfo, BfBuilder *builder)
{
	Bloom	   *result = pgbloom_agg_result(fcinfo, builder,
											builder->params.expected == 0);

	warn_of_growth(fcinfo, result);
	PG_RETURN_BLOOM_P(result);
}

/*
 * bloom_agg_finalfn(internal) returns bloom
 */
Datum
bloom_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomAggState *state;

	pgbloom_agg_context(fcinfo);
	state = pgbloom_agg_get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_BLOOM_P(pgbloom_empty(NULL));
	return key_result(fcinfo, pgbloom_batch_builder(pgbloom_agg_batch(state)));
}

/*
 * bloom_agg_hash_finalfn(bloom) returns bloom
 */
Datum
bloom_agg_hash_finalfn(PG_FUNCTION_ARGS)
{
	BfBuilder	copy;
	BfBuilder  *builder = pgbloom_agg_result_builder(fcinfo, &copy);

	if (builder == NULL)
		PG_RETURN_BLOOM_P(pgbloom_empty(NULL));
	return key_result(fcinfo, builder);
}
