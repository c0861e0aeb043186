/*-------------------------------------------------------------------------
 *
 * agg_state.c
 *	  Transition states of the aggregates, and what carries them between
 *	  processes.
 *
 * A state of type bloom is an expanded filter, which the transition function
 * changes in place (filter/expanded.c).  Where the state leaves the process, in a
 * parallel plan or between servers, PostgreSQL flattens it to an ordinary
 * value.  Distributed versions of PostgreSQL take no other states, and compare
 * the declared types of the arguments with the actual ones.
 *
 * The aggregates over keys of any type fail that comparison, so their state is
 * of type internal, for which rows are collected instead.  It is a builder in
 * the memory context of the aggregate.  A partial state is serialized as the
 * image of its builder.  The process that combines partial states keeps each
 * of them as this image: it is merged into another state, and never changed.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg_state.h"

#include "nodes/execnodes.h"
#include "utils/expandeddatum.h"

PG_FUNCTION_INFO_V1(bloom_agg_serialfn);
PG_FUNCTION_INFO_V1(bloom_agg_deserialfn);

/*
 * Does an inverse transition function take rows out of the state?  Then it has
 * a memory context of its own.
 */
static bool
is_moving(FunctionCallInfo fcinfo)
{
	WindowAggState *window = (WindowAggState *) fcinfo->context;

	return IsA(window, WindowAggState) &&
		window->curaggcontext != window->aggcontext;
}

/*
 * The memory context of the aggregate that calls this function.  There is no
 * inverse transition function for a filter.  What another one returns may be
 * the state itself, in a context that PostgreSQL resets.
 */
MemoryContext
pgbloom_agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("support function of a Bloom filter aggregate called outside an aggregate"),
				 errhint("Use bloom_agg, bloom_agg_hash, bloom_union_agg or bloom_intersection_agg.")));
	if (is_moving(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("support function of a Bloom filter aggregate called in moving-aggregate mode"),
				 errhint("Define the aggregate without MSFUNC and MINVFUNC.")));
	return context;
}

/*
 * Is the state going to be combined with those of other processes?  The
 * executor tells.  Another caller, which does not pass the expression of the
 * call, is the aggregate with which Citus builds and combines partial states.
 */
static bool
is_partial(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_expr == NULL)
		return true;
	return IsA(fcinfo->context, AggState) &&
		DO_AGGSPLIT_SKIPFINAL(((AggState *) fcinfo->context)->aggsplit);
}

/* Prepare the empty builder of a new state for what becomes of it. */
void
pgbloom_agg_prepare(FunctionCallInfo fcinfo, BfBuilder *builder,
					bool compact_at_end)
{
	if (compact_at_end)
		bf_builder_compact_at_end(builder);
	if (is_partial(fcinfo))
		bf_builder_keep_hashes(builder);
}

/* Reject what is not a state. */
void
pgbloom_agg_reject_state(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("not the state of a Bloom filter aggregate")));
}

PgBloomAggState *
pgbloom_agg_make_state(MemoryContext context, const BfParams *params)
{
	PgBloomAggState *state = MemoryContextAllocZero(context, sizeof(*state));
	BfEnv		env = pgbloom_env(context);

	state->magic = PGBLOOM_AGG_MAGIC;
	bf_builder_init(&state->batch.builder, &env, params);
	return state;
}

/* The batch of a state of type internal that may be changed. */
PgBloomBatch *
pgbloom_agg_batch(PgBloomAggState *state)
{
	if (state->image != NULL)
		elog(ERROR, "unexpected state of a Bloom filter aggregate");
	return &state->batch;
}

/*
 * Write a builder as a value.  It is part of the builder's memory, if that is
 * possible, and valid as long as the state is neither changed nor freed.
 */
static Bloom *
get_image(BfBuilder *builder)
{
	size_t		size;
	uint8_t    *in_place;
	Bloom	   *image;

	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	in_place = bf_builder_write_in_place(builder, VARHDRSZ);
	if (in_place == NULL)
		return pgbloom_result(builder, false);
	image = (Bloom *) (in_place - VARHDRSZ);
	Assert(image == (Bloom *) MAXALIGN(image));
	SET_VARSIZE(image, VARHDRSZ + size);
	return image;
}

/*
 * The result of a final function.  That of an ordinary aggregate is used
 * before the state goes away; a window frame may add to the state before that.
 */
Bloom *
pgbloom_agg_result(FunctionCallInfo fcinfo, BfBuilder *builder, bool compact)
{
	bf_builder_end_keep(builder);
	if (!compact &&
		AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_AGGREGATE)
		return get_image(builder);
	return pgbloom_result(builder, compact);
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
	PG_RETURN_BLOOM_P(get_image(pgbloom_batch_builder(pgbloom_agg_batch(state))));
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
	state->magic = PGBLOOM_AGG_MAGIC;
	state->image = image;
	PG_RETURN_POINTER(state);
}

/* A new state of type bloom with the content of a filter. */
static Datum
start_from(FunctionCallInfo fcinfo, MemoryContext context, const BfView *view,
		   bool compact_at_end)
{
	Datum		state = pgbloom_make_state(context, &view->params);
	BfBuilder  *builder = pgbloom_expanded(state);

	pgbloom_agg_prepare(fcinfo, builder, compact_at_end);
	pgbloom_agg_merge(builder, view);
	return state;
}

/*
 * A state of type bloom that may be changed: the state itself, or a copy of
 * one that is an image, such as the initial state of a user-defined aggregate.
 */
Datum
pgbloom_agg_writable(FunctionCallInfo fcinfo, MemoryContext context,
					 Datum state, bool compact_at_end)
{
	BfView		view;

	if (pgbloom_expanded_batch(state) != NULL)
		return state;
	pgbloom_open(PG_DETOAST_DATUM_PACKED(state), &view);
	return start_from(fcinfo, context, &view, compact_at_end);
}

/*
 * Combine a state of type bloom with the second argument, which is a filter or
 * a partial state and is not changed: (bloom, bloom) returns bloom
 */
Datum
pgbloom_agg_combine(FunctionCallInfo fcinfo, PgBloomAggOperation operation,
					bool compact_at_end)
{
	MemoryContext context = pgbloom_agg_context(fcinfo);
	Datum		state;
	BfView		view;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &view);
	if (PG_ARGISNULL(0))
		return start_from(fcinfo, context, &view, compact_at_end);
	state = pgbloom_agg_writable(fcinfo, context, PG_GETARG_DATUM(0),
								 compact_at_end);
	operation(pgbloom_expanded(state), &view);
	return state;
}

void
pgbloom_agg_merge(BfBuilder *builder, const BfView *view)
{
	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/*
 * The builder of the state of type bloom from which a final function makes the
 * result, or NULL.  The state is not changed, because window frames finish it
 * repeatedly.  An image is loaded into *copy.
 */
BfBuilder *
pgbloom_agg_result_builder(FunctionCallInfo fcinfo, BfBuilder *copy)
{
	BfBuilder  *builder;
	BfView		view;

	pgbloom_agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		return NULL;
	builder = pgbloom_expanded(PG_GETARG_DATUM(0));
	if (builder != NULL)
		return builder;
	pgbloom_open(PG_GETARG_BLOOM_PP(0), &view);
	pgbloom_load(copy, CurrentMemoryContext, &view);
	return copy;
}
