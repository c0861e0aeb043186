/*-------------------------------------------------------------------------
 *
 * filter.h
 *	  Values of type bloom: reading, probing and making them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_FILTER_H
#define PGBLOOM_FILTER_H

#include "key/key.h"

#include "utils/expandeddatum.h"

/* An expanded filter, to which hashes are added in batches. */
typedef struct PgBloomExpanded
{
	ExpandedObjectHeader header;
	BfBuilder	builder;
	uint32		npending;
	uint32		room;			/* of pending */
	uint64	   *pending;		/* hashes not yet added, or NULL */
	bool		from_rows;		/* only keys of rows are added, each by
								 * bloom_agg */
	BfBuilder  *packed;			/* bits of a result so far, or NULL */
	PgBloomFnCache *fn_cache;	/* for a caller that keeps none, or NULL */
} PgBloomExpanded;

/* An open filter argument. */
typedef struct PgBloomProbe
{
	const BfParams *params;
	BfBuilder  *builder;		/* of an expanded filter, or NULL */
	const BfView *view;			/* of any other filter; of its header only, if
								 * slices are read */
	PgBloomStoredCache *cache;	/* of a stored filter */
	const struct varlena *stored;	/* its datum in the row */
	struct varlena *slice;		/* the last one that was read, or NULL */
} PgBloomProbe;

#pragma GCC visibility push(hidden)

/* error.c */
extern void pgbloom_check_fpp(double fpp, bool is_argument);
extern void pgbloom_check_index_expected(double expected);
extern bool pgbloom_is_expected(const BfParams *params, double expected);
extern void pgbloom_init_params(BfParams *params, double fpp,
								bool sized, double expected, int64 seed);
extern void pgbloom_get_params(FunctionCallInfo fcinfo, int argno,
							   BfParams *params);
extern void pgbloom_check(BfStatus status, const BfParams *params,
						  const BfParams *other);

/* value.c */
extern void pgbloom_open(const struct varlena *filter, BfView *view);
extern void pgbloom_open_info(Datum filter, BfView *view);
extern int64 pgbloom_count_distinct(Datum filter, const BfView *header);
extern bool pgbloom_validate(const uint8_t *image, size_t size,
							 int sqlerrcode, Node *escontext);
extern void pgbloom_merge(BfBuilder *builder, const BfView *view);
extern void pgbloom_load(BfBuilder *builder, const BfView *view);
extern void pgbloom_add_to_copy(BfBuilder *builder, const BfKeyType *key_type,
								const uint64 *hashes, int n);
extern struct varlena *pgbloom_result(BfBuilder *builder, bool compact);
extern struct varlena *pgbloom_finish(BfBuilder *builder);
extern struct varlena *pgbloom_empty(const BfParams *params);
extern Datum pgbloom_unchanged(FunctionCallInfo fcinfo);
extern Datum pgbloom_row(FunctionCallInfo fcinfo, int ncolumns, Datum *values,
						 bool *nulls);
extern void pgbloom_set_bits_columns(const BfView *view, Datum *values,
									 bool *nulls);

/* filter_probe.c */
extern void pgbloom_probe_open(FunctionCallInfo fcinfo, int argno,
							   PgBloomProbe *probe);
extern bool pgbloom_probe_contains(PgBloomProbe *probe, uint64 hash);
extern double pgbloom_probe_fpp(const PgBloomProbe *probe);
extern bool pgbloom_probe_batch(PgBloomProbe *probe, int nkeys);

/* stored.c */
extern void pgbloom_stored_init(void);
extern void pgbloom_stored_open(FunctionCallInfo fcinfo,
								const struct varlena *value,
								PgBloomProbe *probe);
extern bool pgbloom_stored_plan(PgBloomProbe *probe, int nkeys);
extern bool pgbloom_stored_contains(PgBloomProbe *probe, uint64 hash);

/* expanded.c */
extern const ExpandedObjectMethods pgbloom_expanded_methods;
extern void pgbloom_expanded_add_slowly(PgBloomExpanded *expanded,
										uint64 hash);

extern BfBuilder *pgbloom_expanded(Datum filter);
extern Datum pgbloom_make_state(MemoryContext aggregate,
								const BfParams *params);
extern Datum pgbloom_writable(FunctionCallInfo fcinfo);
extern Datum pgbloom_add_hashes(Datum filter, const BfKeyType *key_type,
								const uint64 *hashes, int n);

#pragma GCC visibility pop

#endif							/* PGBLOOM_FILTER_H */
