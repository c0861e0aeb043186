/*-------------------------------------------------------------------------
 *
 * agg.h
 *	  What the files of the aggregates share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_AGG_H
#define PGBLOOM_AGG_H

#include "filter/filter.h"

/* Arguments of the transition functions after the state and the key. */
#define FPP_ARG			2
#define EXPECTED_ARG	3
#define SEED_ARG		4

#pragma GCC visibility push(hidden)

/* agg.c */
extern MemoryContext pgbloom_agg_context(FunctionCallInfo fcinfo);
extern BfBuilder *pgbloom_agg_builder(FunctionCallInfo fcinfo);
extern Bloom *pgbloom_agg_write_in_place(BfBuilder *builder);

/* agg_call.c */
extern bool pgbloom_agg_call_key_type(FunctionCallInfo fcinfo,
									  BfKeyType *key_type);
extern bool pgbloom_agg_call_params(FunctionCallInfo fcinfo,
									BfParams *params, bool *unknown);

#pragma GCC visibility pop

#endif							/* PGBLOOM_AGG_H */
