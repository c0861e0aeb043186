/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  Adding many hashes to a builder.
 *
 * Adding a key to a layer larger than the CPU caches waits for memory.  So
 * keys for such a layer are added in batches.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#define LARGE_LAYER			((uint64) 1 << 21)	/* bits */
#define MAX_PENDING			1024

static void
add_pending(PgBloomBatch *batch)
{
	BfBuilder  *builder = &batch->builder;

	pgbloom_check(bf_builder_add_all(builder, batch->pending,
									 batch->npending),
				  &builder->params, NULL);

	/* Not earlier: after an error, they are added again. */
	batch->npending = 0;
}

/* The builder, with all hashes added. */
BfBuilder *
pgbloom_batch_builder(PgBloomBatch *batch)
{
	if (batch->builder.incomplete)
		pgbloom_check(BF_INCOMPLETE, &batch->builder.params, NULL);
	if (batch->npending > 0)
		add_pending(batch);
	return &batch->builder;
}

/* Add a hash for which pgbloom_batch_add has no room. */
void
pgbloom_batch_add_slowly(PgBloomBatch *batch, uint64 hash)
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
	{
		batch->pending = MemoryContextAlloc(builder->env.context,
											MAX_PENDING * sizeof(uint64));
		batch->room = MAX_PENDING;
	}
	else
		add_pending(batch);
	batch->pending[batch->npending++] = hash;
}
