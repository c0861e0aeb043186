/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Probing a filter argument, in whatever form it comes.
 *
 * An expanded filter is probed by its builder and an inline one in place.  For
 * one that is stored out of line or compressed, see stored.c.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "access/detoast.h"

/*
 * A probe of a filter that is far larger than the caches costs about as much
 * less in huge pages as moving so many bytes there.  It is moved when its
 * probes would have paid for that (ski rental, see stored.c).
 */
#define MOVE_BYTES		256

/*
 * View of an inline filter.  Memory at its address may hold another value in
 * the next call, but a view depends on nothing but address, size and header.
 */
struct PgBloomInlineCache
{
	BfView		view;
	const uint8_t *image;		/* NULL: the view is not valid */
	uint64		probes;			/* since the image was opened */
	size_t		header_size;
	uint8_t		header[BF_MAX_HEADER];	/* copy of that of the image */
};

static void
open_inline(FunctionCallInfo fcinfo, const struct varlena *value,
			PgBloomProbe *probe)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	PgBloomInlineCache *cache = fn_cache->inline_cache;
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);
	BfView	   *view;

	if (cache == NULL)
		cache = fn_cache->inline_cache =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(*cache));
	view = &cache->view;
	probe->view = view;
	if (cache->image == image && view->size == VARSIZE_ANY_EXHDR(value) &&
		memcmp(image, cache->header, cache->header_size) == 0)
	{
		if (++cache->probes == view->size / MOVE_BYTES)
			pgbloom_move_to_huge_pages(image, view->size);
		return;
	}

	cache->image = NULL;
	pgbloom_open(value, view);
	cache->header_size = bf_header_size(&view->params, view->nlayers);
	memcpy(cache->header, image, cache->header_size);
	cache->image = image;
	cache->probes = 0;
}

/* Prepare to probe a filter argument. */
void
pgbloom_probe_open(FunctionCallInfo fcinfo, int argno, PgBloomProbe *probe)
{
	Datum		argument = PG_GETARG_DATUM(argno);
	struct varlena *value = (struct varlena *) DatumGetPointer(argument);

	probe->toast = NULL;
	probe->builder = pgbloom_expanded(argument);
	if (probe->builder != NULL)
	{
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

/* Is only the header in memory, so that slices are read? */
static inline bool
is_sliced(const PgBloomProbe *probe)
{
	return probe->builder == NULL && probe->view->image == NULL;
}

/* Look up a key by its hash. */
bool
pgbloom_probe_contains(PgBloomProbe *probe, uint64 hash)
{
	if (probe->builder != NULL)
		return bf_builder_contains(probe->builder, hash);
	if (is_sliced(probe))
		pgbloom_stored_plan(probe, 1);
	if (is_sliced(probe))
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
	if (is_sliced(probe))
		pgbloom_stored_plan(probe, nkeys);
	return is_sliced(probe);
}

/*
 * Open a filter for its header.  No more of a stored or compressed value is
 * read, and the view has no pointer to the rest.
 */
void
pgbloom_open_info(Datum filter, BfView *view)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(filter);

	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
	{
		struct varlena *header = detoast_attr_slice(value, 0, BF_MAX_HEADER);
		size_t		size = toast_raw_datum_size(filter) - VARHDRSZ;
		size_t		length = VARSIZE_ANY_EXHDR(header);

		/* A damaged value may be shorter than its pointer says. */
		if (length < Min(size, BF_MAX_HEADER))
			size = length;
		pgbloom_open_header((const uint8_t *) VARDATA_ANY(header), size, view);
		pfree(header);
	}
	else
		pgbloom_open(PG_DETOAST_DATUM_PACKED(filter), view);
}
