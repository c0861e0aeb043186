/*-------------------------------------------------------------------------
 *
 * agg_state.h
 *	  Transition state of the aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_AGG_STATE_H
#define PGBLOOM_AGG_STATE_H

#include "pg/pgbloom.h"

typedef struct PgBloomAggState
{
	uint32		magic;			/* guards against other states */
	Bloom	   *image;			/* of a partial state, which is read-only */
	BfBuilder	builder;		/* of any other state */
	int			npending;
	uint64	   *pending;		/* hashes not yet added, or NULL */
} PgBloomAggState;

/* Merges a filter into a state. */
typedef void (*PgBloomAggOperation) (PgBloomAggState *state,
									 const BfView *view);

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern MemoryContext pgbloom_agg_context(FunctionCallInfo fcinfo);
extern PgBloomAggState *pgbloom_agg_get_state(FunctionCallInfo fcinfo,
											  int argno);
extern PgBloomAggState *pgbloom_agg_make_state(MemoryContext context,
											   const BfParams *params);
extern BfBuilder *pgbloom_agg_builder(PgBloomAggState *state);
extern void pgbloom_agg_add_hash(PgBloomAggState *state, uint64 hash);
extern void pgbloom_agg_merge(PgBloomAggState *state, const BfView *view);
extern void pgbloom_agg_open(PgBloomAggState *state, BfView *view);
extern Datum pgbloom_agg_combine(FunctionCallInfo fcinfo,
								 PgBloomAggOperation operation,
								 bool compact_at_end);
extern Bloom *pgbloom_agg_empty_filter(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_AGG_STATE_H */
