/*-------------------------------------------------------------------------
 *
 * agg.c
 *	  Aggregates over keys, bloom_agg and bloom_agg_hash, and over filters,
 *	  bloom_union_agg and bloom_intersection_agg.
 *
 * The state of all of them is an expanded filter in the memory of the
 * aggregate, which is changed in place (filter/expanded.c).  Where it leaves
 * the process, in a parallel plan or between servers, it becomes an image.
 * Combine functions take images; they never change or keep their second
 * argument.
 *
 * In SQL, the state is of type bloom, but that of bloom_agg over keys of any
 * type is internal.  The two are the same datum.  Two types are declared only
 * for Citus 14.  It computes an aggregate on the workers if its state is of an
 * ordinary type, which is wanted, and then raises an error if an argument is
 * not of the type that is declared, as anyelement never is.  With a state of
 * type internal, it collects the rows instead.  Were internal the type of all
 * states, it would collect rows for all aggregates.  (Citus 15 also computes
 * those on the workers whose state is internal and serialized, unless
 * citus.allow_aggregate_worker_combine_on_internal_types is off.)
 *
 * Arguments of the aggregates over keys are (key or hash [, fpp [, expected
 * [, seed]]]).  A transition function serves all variants of an aggregate: it
 * checks the number of its arguments.  All rows must have the same parameters.
 * Without rows, they are read from the expression of the call (agg_call.c).
 * Final functions are in agg_final.c.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg.h"

#include <math.h>

#include "nodes/execnodes.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(bloom_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_hash_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_agg_serialfn);
PG_FUNCTION_INFO_V1(bloom_agg_deserialfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_transfn);

/* Combines the builder of a state with a filter. */
typedef void (*StateOperation) (BfBuilder *builder, const BfView *view);

static char *
format_params(const BfParams *params)
{
	return psprintf("fpp %s, %s expected keys and seed %lld",
					float8out_internal(params->fpp),
					params->expected == 0 ? "no" :
					psprintf("%lld", (long long) params->expected),
					(long long) params->seed);
}

pg_noreturn static void
reject_different_params(const BfParams *params, const BfParams *other)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("parameters of a Bloom filter must be the same for all rows"),
			 errdetail("One row has %s, another one has %s.",
					   format_params(params), format_params(other)),
			 errhint("Use constants, or columns of the GROUP BY clause.")));
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
			!pgbloom_is_expected(params, PG_GETARG_FLOAT8(EXPECTED_ARG)))
			return false;
	}
	return nargs <= SEED_ARG ||
		(!PG_ARGISNULL(SEED_ARG) &&
		 PG_GETARG_INT64(SEED_ARG) == (int64) params->seed);
}

pg_noreturn static void
reject_arguments(FunctionCallInfo fcinfo, const BfParams *params)
{
	BfParams	other;

	pgbloom_get_params(fcinfo, FPP_ARG, &other);
	reject_different_params(params, &other);
}

/*
 * The memory context of the aggregate that calls this function.  There is no
 * inverse transition function for a filter.  What another one returns may be
 * the state itself, in a context that PostgreSQL resets.
 */
MemoryContext
pgbloom_agg_context(FunctionCallInfo fcinfo)
{
	WindowAggState *window = (WindowAggState *) fcinfo->context;
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("support function of a Bloom filter aggregate called outside an aggregate"),
				 errhint("Use bloom_agg, bloom_agg_hash, bloom_union_agg or bloom_intersection_agg.")));

	/* If one takes rows out of a state, that has a context of its own. */
	if (IsA(window, WindowAggState) &&
		window->curaggcontext != window->aggcontext)
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

/* A new state without keys. */
static Datum
make_agg_state(FunctionCallInfo fcinfo, const BfParams *params,
			   bool compact_at_end)
{
	Datum		state = pgbloom_make_state(pgbloom_agg_context(fcinfo), params);
	BfBuilder  *builder = pgbloom_expanded(state);

	builder->compact_at_end = compact_at_end;
	if (is_partial(fcinfo))
		bf_builder_keep_hashes(builder, true);
	return state;
}

/* A new state with the content of a filter. */
static Datum
make_state_from(FunctionCallInfo fcinfo, const BfView *view,
				bool compact_at_end)
{
	Datum		state = make_agg_state(fcinfo, &view->params, compact_at_end);

	pgbloom_merge(pgbloom_expanded(state), view);
	return state;
}

/*
 * Open a state that is an image, such as the initial one of a user-defined
 * aggregate.  The type internal does not tell whose state it is.
 */
static void
open_state(FunctionCallInfo fcinfo, BfView *view)
{
	struct varlena *image = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));

	if (bf_open((const uint8_t *) VARDATA_ANY(image),
				VARSIZE_ANY_EXHDR(image), view) != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("not the state of a Bloom filter aggregate")));
}

/* A state that may be changed, made from one that is an image. */
static pg_noinline Datum
load_state(FunctionCallInfo fcinfo, bool compact_at_end)
{
	BfView		view;

	open_state(fcinfo, &view);
	return make_state_from(fcinfo, &view, compact_at_end);
}

/* The state for the first row. */
static pg_noinline Datum
make_row_state(FunctionCallInfo fcinfo)
{
	BfParams	params;
	Datum		state;

	if (!PG_ARGISNULL(0))
		state = load_state(fcinfo, true);
	else
	{
		pgbloom_get_params(fcinfo, FPP_ARG, &params);
		state = make_agg_state(fcinfo, &params, true);
	}
	((PgBloomExpanded *) DatumGetEOHP(state))->from_rows = true;
	return state;
}

/* Add a hash, immediately or with a batch. */
static inline void
add_to_state(PgBloomExpanded *expanded, uint64 hash)
{
	if (bf_builder_collect(&expanded->builder, hash))
		return;
	if (expanded->npending < expanded->room)
		expanded->pending[expanded->npending++] = hash;
	else
		pgbloom_expanded_add_slowly(expanded, hash);
}

/*
 * An expanded filter that may be changed; NULL for any other value.  Aggregates
 * ask for each row, hence no calls.
 */
static inline PgBloomExpanded *
writable_state(Datum filter)
{
	Pointer		pointer = DatumGetPointer(filter);
	varatt_expanded expanded;

	if (!VARATT_IS_EXTERNAL_EXPANDED_RW(pointer))
		return NULL;
	memcpy(&expanded, VARDATA_EXTERNAL(pointer), sizeof(expanded));
	return expanded.eohptr->eoh_methods == &pgbloom_expanded_methods ?
		(PgBloomExpanded *) expanded.eohptr : NULL;
}

/*
 * The state to which a row is added, and its datum.  A row with a NULL key has
 * parameters as well, so it makes the state and is checked.
 */
static pg_always_inline PgBloomExpanded *
get_row_state(FunctionCallInfo fcinfo, Datum *state)
{
	PgBloomExpanded *expanded;

	/* The usual caller is checked without a call. */
	if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
		(void) pgbloom_agg_context(fcinfo);
	*state = PG_GETARG_DATUM(0);
	expanded = PG_ARGISNULL(0) ? NULL : writable_state(*state);
	if (expanded == NULL)
	{
		*state = make_row_state(fcinfo);
		expanded = writable_state(*state);
	}
	if (!arguments_match(fcinfo, &expanded->builder.params))
		reject_arguments(fcinfo, &expanded->builder.params);
	return expanded;
}

/*
 * A caller that does not pass the expression of the call, such as Citus, looks
 * up the function for each row, so the function finds no cache of the row
 * before.  The state keeps it.
 */
static void
take_cache_from_state(FunctionCallInfo fcinfo, PgBloomExpanded *expanded)
{
	if (expanded->fn_cache == NULL)
		expanded->fn_cache =
			pgbloom_make_fn_cache(expanded->builder.env.context);
	fcinfo->flinfo->fn_extra = expanded->fn_cache;
}

/* bloom_agg_transfn(state, key [, fpp [, expected [, seed]]]) */
Datum
bloom_agg_transfn(PG_FUNCTION_ARGS)
{
	Datum		state;
	PgBloomExpanded *expanded = get_row_state(fcinfo, &state);
	BfBuilder  *builder = &expanded->builder;
	const BfKeyType *key_type;
	uint64		hash;

	if (fcinfo->flinfo->fn_expr == NULL)
		take_cache_from_state(fcinfo, expanded);
	if (PG_ARGISNULL(1))
		return state;
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&builder->params, &key_type);
	if (builder->params.key_type.code == BF_KEY_NONE)
		bf_builder_set_key_type(builder, key_type);
	add_to_state(expanded, hash);
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
	Datum		state;
	PgBloomExpanded *expanded = get_row_state(fcinfo, &state);

	if (!PG_ARGISNULL(1))
		add_to_state(expanded, (uint64) PG_GETARG_INT64(1));
	return state;
}

/* Combine the state with the second argument: a filter, or a partial state. */
static Datum
combine_state(FunctionCallInfo fcinfo, StateOperation operation,
			  bool compact_at_end)
{
	Datum		state;
	BfView		view;

	(void) pgbloom_agg_context(fcinfo);
	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	pgbloom_open(PG_GETARG_BLOOM_PP(1), &view);
	if (PG_ARGISNULL(0))
		return make_state_from(fcinfo, &view, compact_at_end);
	state = PG_GETARG_DATUM(0);
	if (writable_state(state) == NULL)
		state = load_state(fcinfo, compact_at_end);
	operation(pgbloom_expanded(state), &view);
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
		reject_different_params(params, &view->params);
	pgbloom_merge(builder, view);
}

Datum
bloom_agg_combinefn(PG_FUNCTION_ARGS)
{
	return combine_state(fcinfo, merge_partial, true);
}

/* Also combines partial states, which are filters like those aggregated. */
Datum
bloom_union_agg_transfn(PG_FUNCTION_ARGS)
{
	return combine_state(fcinfo, pgbloom_merge, false);
}

static void
intersect_filter(BfBuilder *builder, const BfView *view)
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

/* The same for intersections. */
Datum
bloom_intersection_agg_transfn(PG_FUNCTION_ARGS)
{
	return combine_state(fcinfo, intersect_filter, false);
}

/*
 * The builder of the state.  It must not change what the state contains,
 * because window frames finish a state repeatedly, and it may be serialized
 * repeatedly: by aggregates that share it, or when a plan is rescanned and its
 * hash table is still valid.
 */
BfBuilder *
pgbloom_agg_builder(FunctionCallInfo fcinfo)
{
	BfBuilder  *builder = pgbloom_expanded(PG_GETARG_DATUM(0));
	BfView		view;

	if (builder == NULL)
	{
		open_state(fcinfo, &view);
		builder = palloc(sizeof(BfBuilder));
		pgbloom_load(builder, &view);
	}
	return builder;
}

/*
 * Write a builder as a value.  It is part of the builder's memory, if that is
 * possible, and valid as long as the state is neither changed nor freed.
 */
Bloom *
pgbloom_agg_write_in_place(BfBuilder *builder)
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

/* bloom_agg_serialfn(internal) returns bytea */
Datum
bloom_agg_serialfn(PG_FUNCTION_ARGS)
{
	(void) pgbloom_agg_context(fcinfo);
	PG_RETURN_BLOOM_P(pgbloom_agg_write_in_place(pgbloom_agg_builder(fcinfo)));
}

/* bloom_agg_deserialfn(bytea, internal) returns internal */
Datum
bloom_agg_deserialfn(PG_FUNCTION_ARGS)
{
	bytea	   *image;

	(void) pgbloom_agg_context(fcinfo);
	image = PG_GETARG_BYTEA_PP(0);
	pgbloom_validate((uint8_t *) VARDATA_ANY(image),
					 VARSIZE_ANY_EXHDR(image),
					 ERRCODE_INVALID_BINARY_REPRESENTATION, NULL);
	PG_RETURN_POINTER(image);
}
