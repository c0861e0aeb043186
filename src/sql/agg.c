/*-------------------------------------------------------------------------
 *
 * agg.c
 *	  Aggregates: bloom_agg over keys, bloom_agg_hash over their hashes,
 *	  bloom_union_agg and bloom_intersection_agg over filters.
 *
 * All collect in a builder of the core, which lives in the memory of the
 * aggregate, and share the functions that carry it between the processes of
 * a parallel plan.  A partial result travels as the image of the builder.
 * In the process that combines, it stays an image: it is merged and never
 * changed or kept.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include <math.h>

#include "nodes/execnodes.h"

PG_FUNCTION_INFO_V1(bloom_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_hash_transfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_transfn);
PG_FUNCTION_INFO_V1(bloom_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_union_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_combinefn);
PG_FUNCTION_INFO_V1(bloom_agg_serialfn);
PG_FUNCTION_INFO_V1(bloom_agg_deserialfn);
PG_FUNCTION_INFO_V1(bloom_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_union_agg_finalfn);
PG_FUNCTION_INFO_V1(bloom_intersection_agg_finalfn);

#define STATE_MAGIC		0x626C6D66

typedef struct PgBloomState
{
	uint32		magic;			/* guards against states of others */
	bool		received;		/* an image from another process: read-only */
	struct varlena *image;		/* all there is of a received state */
	BfBuilder	builder;		/* of any other state */
	int			npending;
	uint64	   *pending;		/* hashes on their way into bits, or NULL */
} PgBloomState;

/*
 * Bits of a layer that caches do not hold are set in batches of this many
 * keys, and asked for so many keys ahead.
 */
#define LARGE_LAYER		((uint64) 8 << 18)	/* bits */
#define MAX_PENDING		256
#define LOOK_AHEAD		16

/* Arguments of bloom_agg behind the key. */
#define FPP_ARG			2
#define EXPECTED_ARG	3
#define SEED_ARG		4

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("support function of a Bloom filter aggregate called outside an aggregate"),
				 errhint("Use bloom_agg, bloom_agg_hash, bloom_union_agg or bloom_intersection_agg.")));
	return context;
}

/* Is the state going to be combined with those of other processes? */
static bool
is_partial(FunctionCallInfo fcinfo)
{
	return IsA(fcinfo->context, AggState) &&
		DO_AGGSPLIT_SKIPFINAL(((AggState *) fcinfo->context)->aggsplit);
}

static PgBloomState *
get_state(FunctionCallInfo fcinfo, int argno)
{
	PgBloomState *state;

	if (PG_ARGISNULL(argno))
		return NULL;
	state = (PgBloomState *) PG_GETARG_POINTER(argno);
	if (state->magic != STATE_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("not the state of a Bloom filter aggregate")));
	return state;
}

static PgBloomState *
make_state(MemoryContext context, const BfParams *params)
{
	PgBloomState *state = MemoryContextAllocZero(context, sizeof(*state));
	BfEnv		env = pgbloom_env(context);

	state->magic = STATE_MAGIC;
	bf_builder_init(&state->builder, &env, params);
	return state;
}

static void
add_pending(PgBloomState *state)
{
	BfBuilder  *builder = &state->builder;
	int			n = state->npending;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (i + LOOK_AHEAD < n)
			bf_builder_prefetch(builder, state->pending[i + LOOK_AHEAD]);
		pgbloom_check(bf_builder_add(builder, state->pending[i]),
					  &builder->params, NULL);
	}
	state->npending = 0;
}

/* The builder of a state that this process works on, with all its keys. */
static BfBuilder *
get_builder(PgBloomState *state)
{
	if (state->received)
		elog(ERROR, "unexpected state of a Bloom filter aggregate");
	if (state->npending > 0)
		add_pending(state);
	return &state->builder;
}

/* Add a hash, at once or, to a large layer, with some others. */
static void
add_hash(PgBloomState *state, uint64 hash)
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

static void
merge(PgBloomState *state, const BfView *view)
{
	BfBuilder  *builder = get_builder(state);

	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/* The parameters that rows ask for; NaN stands for one that is null. */
typedef struct AskedParams
{
	double		fpp;
	double		expected;		/* -1: not given */
	double		seed;
} AskedParams;

static char *
describe_params(const AskedParams *params)
{
	return psprintf("fpp %g, %s expected keys and seed %.0f", params->fpp,
					params->expected < 0 ? "no" :
					psprintf("%.0f", params->expected), params->seed);
}

pg_noreturn static void
reject_different_params(const AskedParams *one, const AskedParams *other)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("parameters of a Bloom filter must be the same for all rows"),
			 errdetail("One row has %s, another one has %s.",
					   describe_params(one), describe_params(other)),
			 errhint("Use constants, or columns of the GROUP BY clause.")));
}

static AskedParams
asked_params(const BfParams *params)
{
	AskedParams asked = {params->fpp,
		params->expected > 0 ? (double) params->expected : -1,
	(double) (int64) params->seed};

	return asked;
}

/* Check that this row asks for the same filter as the first one. */
static void
check_arguments(FunctionCallInfo fcinfo, const BfParams *params)
{
	int			nargs = PG_NARGS();
	AskedParams first;
	AskedParams row;

	if ((nargs <= FPP_ARG ||
		 (!PG_ARGISNULL(FPP_ARG) &&
		  PG_GETARG_FLOAT8(FPP_ARG) == params->fpp)) &&
		(nargs <= EXPECTED_ARG ||
		 (PG_ARGISNULL(EXPECTED_ARG) ? params->expected == 0 :
		  params->expected != 0 &&
		  ceil(PG_GETARG_FLOAT8(EXPECTED_ARG)) ==
		  (double) params->expected)) &&
		(nargs <= SEED_ARG ||
		 (!PG_ARGISNULL(SEED_ARG) &&
		  PG_GETARG_INT64(SEED_ARG) == (int64) params->seed)))
		return;

	first = row = asked_params(params);
	row.fpp = PG_ARGISNULL(FPP_ARG) ? NAN : PG_GETARG_FLOAT8(FPP_ARG);
	if (nargs > EXPECTED_ARG)
		row.expected = PG_ARGISNULL(EXPECTED_ARG) ? -1 :
			ceil(PG_GETARG_FLOAT8(EXPECTED_ARG));
	if (nargs > SEED_ARG)
		row.seed = PG_ARGISNULL(SEED_ARG) ? NAN :
			(double) PG_GETARG_INT64(SEED_ARG);
	reject_different_params(&first, &row);
}

static PgBloomState *
first_state(FunctionCallInfo fcinfo, MemoryContext context)
{
	int			nargs = PG_NARGS();
	bool		sized = nargs > EXPECTED_ARG && !PG_ARGISNULL(EXPECTED_ARG);
	PgBloomState *state;
	BfParams	params;

	if ((nargs > FPP_ARG && PG_ARGISNULL(FPP_ARG)) ||
		(nargs > SEED_ARG && PG_ARGISNULL(SEED_ARG)))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						PG_ARGISNULL(FPP_ARG) ? "false-positive rate" : "seed")));
	pgbloom_init_params(&params,
						nargs > FPP_ARG ? PG_GETARG_FLOAT8(FPP_ARG) :
						BF_FPP_DEFAULT,
						sized, sized ? PG_GETARG_FLOAT8(EXPECTED_ARG) : 0,
						nargs > SEED_ARG ? PG_GETARG_INT64(SEED_ARG) : 0);
	state = make_state(context, &params);
	bf_builder_compact_at_end(&state->builder);
	if (is_partial(fcinfo))
		bf_builder_keep_hashes(&state->builder);
	return state;
}

/*
 * The state to which a row is to be added.  A row without a key tells the
 * parameters, too.
 */
static PgBloomState *
state_for_row(FunctionCallInfo fcinfo)
{
	MemoryContext context = aggregate_context(fcinfo);
	PgBloomState *state = get_state(fcinfo, 0);

	if (state == NULL)
		state = first_state(fcinfo, context);
	if (state->received)
		elog(ERROR, "unexpected state of a Bloom filter aggregate");
	check_arguments(fcinfo, &state->builder.params);
	return state;
}

/*
 * bloom_agg_transfn(internal, key [, fpp [, expected [, seed]]])
 */
Datum
bloom_agg_transfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state = state_for_row(fcinfo);
	BfBuilder  *builder = &state->builder;
	BfKeyType		key_type;
	uint64		hash;

	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&builder->params, &key_type);
	if (builder->params.key_type.code == BF_KEY_NONE)
		bf_builder_set_key_type(builder, &key_type);
	add_hash(state, hash);
	PG_RETURN_POINTER(state);
}

/*
 * bloom_agg_hash_transfn(internal, hash [, fpp [, expected [, seed]]])
 *
 * A hash says nothing of the type of its key: that of the filter stays open.
 */
Datum
bloom_agg_hash_transfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state = state_for_row(fcinfo);

	if (!PG_ARGISNULL(1))
		add_hash(state, (uint64) PG_GETARG_INT64(1));
	PG_RETURN_POINTER(state);
}

/* Open the image of a state, which has to be written first in some cases. */
static void
open_state(PgBloomState *state, BfView *view)
{
	struct varlena *image;

	if (state->received)
	{
		if (bf_open((const uint8_t *) VARDATA_ANY(state->image),
					VARSIZE_ANY_EXHDR(state->image), view) != BF_OK)
			elog(ERROR, "invalid state of a Bloom filter aggregate");
		return;
	}
	image = pgbloom_result(get_builder(state), false);
	pgbloom_open(image, view);
}

/* What becomes of a state when a filter comes to it. */
typedef void (*FilterOperation) (PgBloomState *state, const BfView *view);

static void
intersect(PgBloomState *state, const BfView *view)
{
	BfBuilder  *builder = get_builder(state);
	BfEnv		env = builder->env;
	BfBuilder	result;
	BfView		mine;

	open_state(state, &mine);
	pgbloom_check(bf_intersection(&result, &env, &mine, view),
				  &mine.params, &view->params);
	bf_builder_free(builder);
	*builder = result;
}

/* Transition functions of filters: (internal, bloom) */
static Datum
filter_transition(FunctionCallInfo fcinfo, FilterOperation operation)
{
	MemoryContext context = aggregate_context(fcinfo);
	PgBloomState *state = get_state(fcinfo, 0);
	BfView		view;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	pgbloom_open(PG_GETARG_VARLENA_PP(1), &view);
	if (state == NULL)
	{
		state = make_state(context, &view.params);
		merge(state, &view);
	}
	else
		operation(state, &view);
	PG_RETURN_POINTER(state);
}

Datum
bloom_union_agg_transfn(PG_FUNCTION_ARGS)
{
	return filter_transition(fcinfo, merge);
}

Datum
bloom_intersection_agg_transfn(PG_FUNCTION_ARGS)
{
	return filter_transition(fcinfo, intersect);
}

/* The rows of all processes have to ask for the same filter. */
static void
merge_partial(PgBloomState *state, const BfView *view)
{
	const BfParams *params = &state->builder.params;

	if (view->params.fpp != params->fpp ||
		view->params.expected != params->expected ||
		view->params.seed != params->seed)
	{
		AskedParams one = asked_params(params);
		AskedParams other = asked_params(&view->params);

		reject_different_params(&one, &other);
	}
	merge(state, view);
}

/* Combine functions: (internal, internal) */
static Datum
combine(FunctionCallInfo fcinfo, FilterOperation operation, bool compact_at_end)
{
	MemoryContext context = aggregate_context(fcinfo);
	PgBloomState *state = get_state(fcinfo, 0);
	PgBloomState *other = get_state(fcinfo, 1);
	BfView		view;

	if (other == NULL)
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	open_state(other, &view);
	if (state == NULL)
	{
		state = make_state(context, &view.params);
		if (compact_at_end)
			bf_builder_compact_at_end(&state->builder);
		merge(state, &view);
	}
	else
		operation(state, &view);
	PG_RETURN_POINTER(state);
}

Datum
bloom_agg_combinefn(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, merge_partial, true);
}

Datum
bloom_union_agg_combinefn(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, merge, false);
}

Datum
bloom_intersection_agg_combinefn(PG_FUNCTION_ARGS)
{
	return combine(fcinfo, intersect, false);
}

/*
 * bloom_agg_serialfn(internal) returns bytea
 *
 * The state stays as it is: it is serialized again where aggregates share it,
 * and where a plan is run again upon a hash table that is there already.
 */
Datum
bloom_agg_serialfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state;

	aggregate_context(fcinfo);
	state = get_state(fcinfo, 0);
	PG_RETURN_BYTEA_P(pgbloom_result(get_builder(state), false));
}

/*
 * bloom_agg_deserialfn(bytea, internal)
 */
Datum
bloom_agg_deserialfn(PG_FUNCTION_ARGS)
{
	bytea	   *bytes;
	PgBloomState *state;

	aggregate_context(fcinfo);
	bytes = PG_GETARG_BYTEA_PP(0);
	pgbloom_validate((uint8_t *) VARDATA_ANY(bytes),
					 VARSIZE_ANY_EXHDR(bytes),
					 ERRCODE_INVALID_BINARY_REPRESENTATION, NULL);
	state = palloc0(sizeof(*state));
	state->magic = STATE_MAGIC;
	state->received = true;
	state->image = bytes;
	PG_RETURN_POINTER(state);
}

/*
 * Tell, once a query, that a filter had to grow beyond what it was made for.
 */
static void
warn_of_growth(FunctionCallInfo fcinfo, const struct varlena *filter)
{
	BfView		view;

	if (fcinfo->flinfo->fn_extra != NULL)
		return;
	pgbloom_open(filter, &view);
	if (view.params.expected == 0 || view.nlayers < 2)
		return;

	fcinfo->flinfo->fn_extra = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, 1);
	ereport(WARNING,
			(errmsg("Bloom filter received about %.0f distinct keys, but %lld were expected",
					rint(bf_cardinality(&view)),
					(long long) view.params.expected),
			 errdetail("The filter grew to %d layers and has a false-positive rate of %.3g instead of %g.",
					   view.nlayers, bf_current_fpp(&view), view.params.fpp),
			 errhint("Raise \"expected\", or leave it out for a filter that sizes itself.")));
}

/*
 * Tell, once a query, that the union of filters has a much higher rate than
 * any of them was asked for.
 */
static void
warn_of_rate(FunctionCallInfo fcinfo, const struct varlena *filter)
{
	BfView		view;
	double		asked;

	if (fcinfo->flinfo->fn_extra != NULL)
		return;
	pgbloom_open(filter, &view);
	asked = bf_largest_fpp(&view);
	if (bf_current_fpp(&view) <= 2 * asked)
		return;

	fcinfo->flinfo->fn_extra = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, 1);
	ereport(WARNING,
			(errmsg("union of Bloom filters has a false-positive rate of %.3g instead of %g",
					bf_current_fpp(&view), asked),
			 errdetail("Filters are put into one layer only as long as it keeps its rate. The number of layers is %d.",
					   view.nlayers),
			 errhint("Build filters that are to be united with the same \"fpp\" and the same \"expected\", large enough for the union.")));
}

/* What bloom_empty() returns: nothing is known but that there is no key. */
static struct varlena *
empty_filter(void)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfParams	params;
	BfBuilder	builder;

	pgbloom_init_params(&params, BF_FPP_DEFAULT, false, 0, 0);
	bf_builder_init(&builder, &env, &params);
	return pgbloom_result(&builder, false);
}

/*
 * bloom_agg_finalfn(internal): a filter that sizes itself gets its size now.
 */
Datum
bloom_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state;
	BfBuilder  *builder;
	struct varlena *result;

	aggregate_context(fcinfo);
	state = get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_POINTER(empty_filter());
	builder = get_builder(state);
	result = pgbloom_result(builder, builder->params.expected == 0);
	warn_of_growth(fcinfo, result);
	PG_RETURN_POINTER(result);
}

/*
 * bloom_union_agg_finalfn(internal)
 */
Datum
bloom_union_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state;
	struct varlena *result;

	aggregate_context(fcinfo);
	state = get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_POINTER(empty_filter());
	result = pgbloom_result(get_builder(state), false);
	warn_of_rate(fcinfo, result);
	PG_RETURN_POINTER(result);
}

/*
 * bloom_intersection_agg_finalfn(internal): the intersection of no filters
 * would contain every key, so it is NULL.
 */
Datum
bloom_intersection_agg_finalfn(PG_FUNCTION_ARGS)
{
	PgBloomState *state;

	aggregate_context(fcinfo);
	state = get_state(fcinfo, 0);
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(pgbloom_result(get_builder(state), false));
}
