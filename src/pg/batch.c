/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  Adding many hashes to a builder.
 *
 * Adding a key to a layer larger than the CPU caches waits for memory.  So
 * keys for such a layer are added in batches, and the memory of each key is
 * prefetched some keys ahead.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#define LARGE_LAYER			((uint64) 1 << 21)	/* bits */
#define MAX_PENDING			256
#define PREFETCH_DISTANCE	16

static void
add_pending(PgBloomBatch *batch)
{
	BfBuilder  *builder = &batch->builder;
	int			n = batch->npending;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (i + PREFETCH_DISTANCE < n)
			bf_builder_prefetch(builder,
								batch->pending[i + PREFETCH_DISTANCE]);
		pgbloom_check(bf_builder_add(builder, batch->pending[i]),
					  &builder->params, NULL);
	}
	batch->npending = 0;
}

/* The builder, with all hashes added. */
BfBuilder *
pgbloom_batch_builder(PgBloomBatch *batch)
{
	if (batch->npending > 0)
		add_pending(batch);
	return &batch->builder;
}

/* Add a hash, immediately or with a batch. */
void
pgbloom_batch_add(PgBloomBatch *batch, uint64 hash)
{
	BfBuilder  *builder = &batch->builder;

	if (builder->nlayers == 0 ||
		bf_geometry_bits(&builder->layers[builder->nlayers - 1].geometry) <
		LARGE_LAYER)
	{
		pgbloom_check(bf_builder_add(builder, hash), &builder->params, NULL);
		return;
	}
	if (batch->pending == NULL)
		batch->pending = MemoryContextAlloc(builder->env.context,
											MAX_PENDING * sizeof(uint64));
	batch->pending[batch->npending++] = hash;
	if (batch->npending == MAX_PENDING)
		add_pending(batch);
}
