/*-------------------------------------------------------------------------
 *
 * agg_state.c
 *	  Transition state of the aggregates, and what carries it between the
 *	  processes of a parallel plan.
 *
 * A state is a builder of the core in the memory context of the aggregate.
 * A partial state is serialized as the image of its builder.  The process
 * that combines partial states keeps each of them as this image: it is merged
 * into another state, and never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg_state.h"

PG_FUNCTION_INFO_V1(bloom_agg_serialfn);
PG_FUNCTION_INFO_V1(bloom_agg_deserialfn);

#define STATE_MAGIC		0x626C6D66

/*
 * Adding a key to a layer larger than the CPU caches waits for memory.  So
 * keys for such a layer are added in batches, and the memory of each key is
 * prefetched this many keys ahead.
 */
#define LARGE_LAYER			((uint64) 1 << 21)	/* bits */
#define MAX_PENDING			256
#define PREFETCH_DISTANCE	16

/* The memory context of the aggregate that calls this function. */
MemoryContext
pgbloom_agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("support function of a Bloom filter aggregate called outside an aggregate"),
				 errhint("Use bloom_agg, bloom_agg_hash, bloom_union_agg or bloom_intersection_agg.")));
	return context;
}

/* The state in an argument, or NULL. */
PgBloomAggState *
pgbloom_agg_get_state(FunctionCallInfo fcinfo, int argno)
{
	PgBloomAggState *state;

	if (PG_ARGISNULL(argno))
		return NULL;
	state = (PgBloomAggState *) PG_GETARG_POINTER(argno);
	if (state->magic != STATE_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("not the state of a Bloom filter aggregate")));
	return state;
}

PgBloomAggState *
pgbloom_agg_make_state(MemoryContext context, const BfParams *params)
{
	PgBloomAggState *state = MemoryContextAllocZero(context, sizeof(*state));
	BfEnv		env = pgbloom_env(context);

	state->magic = STATE_MAGIC;
	bf_builder_init(&state->builder, &env, params);
	return state;
}

static void
add_pending(PgBloomAggState *state)
{
	BfBuilder  *builder = &state->builder;
	int			n = state->npending;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (i + PREFETCH_DISTANCE < n)
			bf_builder_prefetch(builder,
								state->pending[i + PREFETCH_DISTANCE]);
		pgbloom_check(bf_builder_add(builder, state->pending[i]),
					  &builder->params, NULL);
	}
	state->npending = 0;
}

/* The builder of a state that may be changed, with all its keys added. */
BfBuilder *
pgbloom_agg_builder(PgBloomAggState *state)
{
	if (state->image != NULL)
		elog(ERROR, "unexpected state of a Bloom filter aggregate");
	if (state->npending > 0)
		add_pending(state);
	return &state->builder;
}

/* Add a hash, immediately or with a batch. */
void
pgbloom_agg_add_hash(PgBloomAggState *state, uint64 hash)
{
	BfBuilder  *builder = &state->builder;

	if (builder->nlayers == 0 ||
		bf_geometry_bits(&builder->layers[builder->nlayers - 1].geometry) <
		LARGE_LAYER)
	{
		pgbloom_check(bf_builder_add(builder, hash), &builder->params, NULL);
		return;
	}
	if (state->pending == NULL)
		state->pending = MemoryContextAlloc(builder->env.context,
											MAX_PENDING * sizeof(uint64));
	state->pending[state->npending++] = hash;
	if (state->npending == MAX_PENDING)
		add_pending(state);
}

void
pgbloom_agg_merge(PgBloomAggState *state, const BfView *view)
{
	BfBuilder  *builder = pgbloom_agg_builder(state);

	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/* Open a state as a filter.  A builder is written to an image first. */
void
pgbloom_agg_open(PgBloomAggState *state, BfView *view)
{
	if (state->image == NULL)
	{
		pgbloom_open(pgbloom_result(pgbloom_agg_builder(state), false), view);
		return;
	}
	if (bf_open((const uint8_t *) VARDATA_ANY(state->image),
				VARSIZE_ANY_EXHDR(state->image), view) != BF_OK)
		elog(ERROR, "invalid state of a Bloom filter aggregate");
}

/*
 * Combine functions: (internal, internal) returns internal
 */
Datum
pgbloom_agg_combine(FunctionCallInfo fcinfo, PgBloomAggOperation operation,
					bool compact_at_end)
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
	pgbloom_agg_open(other, &view);
	if (state == NULL)
	{
		state = pgbloom_agg_make_state(context, &view.params);
		if (compact_at_end)
			bf_builder_compact_at_end(&state->builder);
		pgbloom_agg_merge(state, &view);
	}
	else
		operation(state, &view);
	PG_RETURN_POINTER(state);
}

/*
 * bloom_agg_serialfn(internal) returns bytea
 *
 * The state is not changed, because it may be serialized again: by another
 * aggregate that shares it, or when a plan is rescanned and its hash table is
 * still valid.
 */
Datum
bloom_agg_serialfn(PG_FUNCTION_ARGS)
{
	PgBloomAggState *state;

	pgbloom_agg_context(fcinfo);
	state = pgbloom_agg_get_state(fcinfo, 0);
	PG_RETURN_BYTEA_P(pgbloom_result(pgbloom_agg_builder(state), false));
}

/*
 * bloom_agg_deserialfn(bytea, internal) returns internal
 */
Datum
bloom_agg_deserialfn(PG_FUNCTION_ARGS)
{
	bytea	   *image;
	PgBloomAggState *state;

	pgbloom_agg_context(fcinfo);
	image = PG_GETARG_BYTEA_PP(0);
	pgbloom_validate((uint8_t *) VARDATA_ANY(image),
					 VARSIZE_ANY_EXHDR(image),
					 ERRCODE_INVALID_BINARY_REPRESENTATION, NULL);
	state = palloc0(sizeof(*state));
	state->magic = STATE_MAGIC;
	state->image = image;
	PG_RETURN_POINTER(state);
}

/* What bloom_empty() returns: the result of an aggregate without input. */
Bloom *
pgbloom_agg_empty_filter(void)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfParams	params;
	BfBuilder	builder;

	pgbloom_init_params(&params, BF_FPP_DEFAULT, false, 0, 0);
	bf_builder_init(&builder, &env, &params);
	return pgbloom_result(&builder, false);
}
