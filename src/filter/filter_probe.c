/*-------------------------------------------------------------------------
 *
 * filter_probe.c
 *	  Probing a filter argument, in whatever form it comes.
 *
 * An expanded filter is probed by its builder and an inline one in place.  For
 * one that is stored out of line or compressed, see stored.c.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "access/detoast.h"

/*
 * View of an inline filter.  Memory at its address may hold another value in
 * the next call, but a view depends on nothing but address, size and header,
 * of which a copy follows the layers of the view.  Without it, a lookup of an
 * integer takes 20 % longer.
 */
struct PgBloomInlineCache
{
	Size		room;			/* allocated */
	const uint8_t *image;		/* NULL: the view is not valid */
	size_t		header_size;
	uint8_t    *header;
	BfView		view;
};

/* Open another inline filter, in a cache that has room for its layers. */
static PgBloomInlineCache *
fill_inline_cache(FunctionCallInfo fcinfo, const struct varlena *value)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	PgBloomInlineCache *cache = fn_cache->inline_cache;
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);
	int			nlayers;
	size_t		header_size = bf_peek_header(image, VARSIZE_ANY_EXHDR(value),
											 &nlayers);
	Size		front = offsetof(PgBloomInlineCache, view) +
		BF_VIEW_SIZE(nlayers);

	if (cache == NULL || cache->room < front + header_size)
	{
		fn_cache->inline_cache = NULL;
		if (cache != NULL)
			pfree(cache);
		cache = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt,
								   front + header_size);
		cache->room = front + header_size;
		fn_cache->inline_cache = cache;
	}
	cache->image = NULL;
	pgbloom_open(value, &cache->view);
	cache->header_size = header_size;
	cache->header = (uint8_t *) cache + front;
	memcpy(cache->header, image, header_size);
	cache->image = image;
	return cache;
}

static void
open_inline(FunctionCallInfo fcinfo, const struct varlena *value,
			PgBloomProbe *probe)
{
	PgBloomInlineCache *cache = pgbloom_fn_cache(fcinfo)->inline_cache;
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);

	if (cache == NULL || cache->image != image ||
		cache->view.size != VARSIZE_ANY_EXHDR(value) ||
		memcmp(image, cache->header, cache->header_size) != 0)
		cache = fill_inline_cache(fcinfo, value);
	probe->view = &cache->view;
}

/* Prepare to probe a filter argument. */
void
pgbloom_probe_open(FunctionCallInfo fcinfo, int argno, PgBloomProbe *probe)
{
	Datum		argument = PG_GETARG_DATUM(argno);
	struct varlena *value = (struct varlena *) DatumGetPointer(argument);

	probe->builder = pgbloom_expanded(argument);
	if (probe->builder != NULL)
	{
		bf_builder_sort_for_probes(probe->builder);
		probe->params = &probe->builder->params;
		return;
	}

	if (VARATT_IS_EXTERNAL_INDIRECT(value))
	{
		struct varatt_indirect indirect;

		VARATT_EXTERNAL_GET_POINTER(indirect, value);
		value = indirect.pointer;
	}
	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
		pgbloom_stored_open(fcinfo, value, probe);
	else if (VARATT_IS_EXTERNAL(value)) /* an expanded object of others */
		open_inline(fcinfo, detoast_attr(value), probe);
	else
		open_inline(fcinfo, value, probe);
	probe->params = &probe->view->params;
}

/* The current false-positive rate of the filter. */
double
pgbloom_probe_fpp(const PgBloomProbe *probe)
{
	const BfBuilder *builder = probe->builder;

	return builder == NULL ? bf_current_fpp(probe->view) :
		bf_fpp(builder->list_fpp, builder->nhashes, builder->layers,
			   builder->nlayers);
}

/* Look up a key by its hash. */
bool
pgbloom_probe_contains(PgBloomProbe *probe, uint64 hash)
{
	if (probe->builder != NULL)
		return bf_builder_contains(probe->builder, hash);
	if (probe->view->image == NULL && pgbloom_stored_plan(probe, 1))
		return pgbloom_stored_contains(probe, hash);
	return bf_contains(probe->view, hash);
}

/*
 * Plan a batch of lookups.  Returns true if slices are read, which is cheaper
 * in the order of the hashes.
 */
bool
pgbloom_probe_batch(PgBloomProbe *probe, int nkeys)
{
	return probe->builder == NULL && probe->view->image == NULL &&
		pgbloom_stored_plan(probe, nkeys);
}
