/*-------------------------------------------------------------------------
 *
 * agg_state.h
 *	  Transition states of the aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_AGG_STATE_H
#define PGBLOOM_AGG_STATE_H

#include "filter/filter.h"

#define PGBLOOM_AGG_MAGIC	0x626C6D66

/* A state of type internal. */
typedef struct PgBloomAggState
{
	uint32		magic;			/* guards against other states */
	Bloom	   *image;			/* of a partial state, which is read-only */
	PgBloomBatch batch;			/* of any other state */
} PgBloomAggState;

/* Combines the builder of a state with a filter. */
typedef void (*PgBloomAggOperation) (BfBuilder *builder, const BfView *view);

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern MemoryContext pgbloom_agg_context(FunctionCallInfo fcinfo);
pg_noreturn extern void pgbloom_agg_reject_state(void);
extern PgBloomAggState *pgbloom_agg_make_state(MemoryContext context,
											   const BfParams *params);
extern PgBloomBatch *pgbloom_agg_batch(PgBloomAggState *state);
extern void pgbloom_agg_prepare(FunctionCallInfo fcinfo, BfBuilder *builder,
								bool compact_at_end);
extern Datum pgbloom_agg_writable(FunctionCallInfo fcinfo,
								  MemoryContext context, Datum state,
								  bool compact_at_end);
extern Datum pgbloom_agg_combine(FunctionCallInfo fcinfo,
								 PgBloomAggOperation operation,
								 bool compact_at_end);
extern void pgbloom_agg_merge(BfBuilder *builder, const BfView *view);
extern BfBuilder *pgbloom_agg_result_builder(FunctionCallInfo fcinfo,
											 BfBuilder *copy);
extern Bloom *pgbloom_agg_result(FunctionCallInfo fcinfo, BfBuilder *builder,
								 bool compact);

/* The state of type internal in an argument, or NULL. */
static inline PgBloomAggState *
pgbloom_agg_get_state(FunctionCallInfo fcinfo, int argno)
{
	PgBloomAggState *state;

	if (PG_ARGISNULL(argno))
		return NULL;
	state = (PgBloomAggState *) PG_GETARG_POINTER(argno);
	if (state->magic != PGBLOOM_AGG_MAGIC)
		pgbloom_agg_reject_state();
	return state;
}

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_AGG_STATE_H */
