/*-------------------------------------------------------------------------
 *
 * stored.c
 *	  Probing stored filters by slices, and a cache of detoasted ones.
 *
 * An inline filter is probed in place, and an expanded one by its builder.
 * A filter that is stored out of line is probed by slices: its header first,
 * then the block of each key.  As soon as the slices of a filter have cost as
 * much as reading the whole value, it is detoasted.  This costs at most twice
 * as much as the better of the two would have, had the number of keys been
 * known (ski rental; Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy
 * Caching, Algorithmica 3, 1988).  Compressed values cannot be sliced, and
 * small ones need not be: they are detoasted at once.
 *
 * Each call site has a cache of CACHE_ENTRIES filters in fn_extra, and evicts
 * the least recently used.  The key of an entry is the datum in the row: a
 * TOAST pointer, or a value that is compressed in the row.  A TOAST value is
 * immutable, and its OID cannot be reused within a transaction unless the OID
 * counter wraps, so all entries are evicted when a transaction begins.
 *
 * Detoasted values take at most work_mem.  A single larger one is cached as
 * long as no other filter is probed.
 *
 * check_cache() states the invariants.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "access/detoast.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Approximate size of a TOAST chunk, the unit of costs. */
#define CHUNK_SIZE		(BLCKSZ / 4)

/* Cost of a slice: an index scan, and the one or two chunks it finds. */
#define SLICE_COST		3

/* Below this size, two slices cost more than the whole value. */
#define MIN_SLICED_SIZE	(2 * SLICE_COST * CHUNK_SIZE)

/*
 * Enough for the shards of a large filter.  When more filters than this are
 * probed in turn, each probe reads the header again: two slices, not one.
 */
#define CACHE_ENTRIES	64

typedef struct CacheEntry
{
	MemoryContext context;		/* of this entry only; NULL: unused */
	struct varlena *key;		/* copy of the datum in the row */
	Size		size;			/* of the detoasted value */
	uint8_t    *header;			/* either this: slices are read, */
	struct varlena *detoasted;	/* or the whole value */
	uint64		cost;			/* of slices in earlier runs */
	uint64		last_used;		/* PgBloomFilterCache.clock; 0: unused */
} CacheEntry;

struct PgBloomFilterCache
{
	BfView		view;			/* of the filter that is probed: */
	CacheEntry *current;		/* that of this entry, */
	const uint8_t *image;		/* or an inline one with its image here */
	uint8_t		header[BF_MAX_HEADER];	/* and this header, or none */
	size_t		header_size;

	LocalTransactionId lxid;	/* of all entries */
	Size		limit;			/* of total: work_mem */
	Size		total;			/* size of all detoasted values */
	uint64		clock;			/* number of uses */
	uint64		run_cost;		/* of slices since current was set */
	CacheEntry	entries[CACHE_ENTRIES];

	uint32		slice[1 + BF_MAX_SLICE / 4];	/* the last one, a varlena */
};

StaticAssertDecl(BF_MAX_HEADER <= BF_MAX_SLICE, "a header is one slice");

/*
 * Find the entry of a datum, or NULL.  The search begins at the current entry
 * because the next probe is often of the same filter, or, where filters are
 * probed in turn, of the one that was entered after it.
 */
static CacheEntry *
find_entry(PgBloomFilterCache *cache, const struct varlena *key)
{
	int			start = 0;
	int			i;

	if (cache->current != NULL)
		start = cache->current - cache->entries;
	for (i = 0; i < CACHE_ENTRIES; i++)
	{
		CacheEntry *entry = &cache->entries[(start + i) % CACHE_ENTRIES];

		if (entry->context != NULL &&
			VARSIZE_ANY(entry->key) == VARSIZE_ANY(key) &&
			memcmp(entry->key, key, VARSIZE_ANY(key)) == 0)
			return entry;
	}
	return NULL;
}

/* Check what holds whenever no function of this file is at work. */
static void
check_cache(PgBloomFilterCache *cache)
{
#ifdef USE_ASSERT_CHECKING
	const CacheEntry *current = cache->current;
	Size		total = 0;
	int			i;

	for (i = 0; i < CACHE_ENTRIES; i++)
	{
		const CacheEntry *entry = &cache->entries[i];

		/* Unused entries are replaced first. */
		Assert((entry->context == NULL) == (entry->last_used == 0));
		if (entry->context == NULL)
			continue;

		/* A filter has one entry, with its header or with all of it. */
		Assert(find_entry(cache, entry->key) == entry);
		Assert((entry->header == NULL) != (entry->detoasted == NULL));
		total += entry->detoasted != NULL ? entry->size : 0;
	}

	/* Detoasted values fit into work_mem, or the current one is alone. */
	Assert(cache->total == total);
	Assert(total <= cache->limit ||
		   (current != NULL && current->detoasted != NULL &&
			current->size == total));

	/* The view is that of the current entry, or of an inline filter. */
	Assert(current == NULL || cache->image == NULL);
	if (cache->image != NULL)
		Assert(cache->view.image == cache->image);
	if (current != NULL)
	{
		Assert(current->context != NULL && current->last_used == cache->clock);
		Assert(cache->view.size == current->size - VARHDRSZ);
		Assert(cache->view.image == (current->detoasted == NULL ? NULL :
									 (uint8_t *) VARDATA(current->detoasted)));
	}
#endif
}

static void
evict(PgBloomFilterCache *cache, CacheEntry *entry)
{
	if (entry->context == NULL)
		return;
	if (entry->detoasted != NULL)
		cache->total -= entry->size;
	if (entry == cache->current)
		cache->current = NULL;
	MemoryContextDelete(entry->context);
	memset(entry, 0, sizeof(*entry));
}

/* Evict the entry, or the detoasted value, that was not used for longest. */
static CacheEntry *
evict_oldest(PgBloomFilterCache *cache, bool detoasted)
{
	CacheEntry *oldest = NULL;
	int			i;

	for (i = 0; i < CACHE_ENTRIES; i++)
	{
		CacheEntry *entry = &cache->entries[i];

		if ((!detoasted || entry->detoasted != NULL) &&
			(oldest == NULL || entry->last_used < oldest->last_used))
			oldest = entry;
	}
	evict(cache, oldest);
	return oldest;
}

/* The view is going to be that of another filter. */
static void
unset_view(PgBloomFilterCache *cache)
{
	if (cache->total > cache->limit)
		evict(cache, cache->current);
	if (cache->current != NULL)
		cache->current->cost += cache->run_cost;
	cache->run_cost = 0;
	cache->current = NULL;
	cache->image = NULL;
}

static void
open_inline(PgBloomFilterCache *cache, const struct varlena *value)
{
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);

	/*
	 * There may be another value at this address now, but the view depends on
	 * nothing but address, size and header.
	 */
	if (cache->image == image && cache->view.size == size &&
		memcmp(image, cache->header, cache->header_size) == 0)
		return;

	unset_view(cache);
	pgbloom_open(value, &cache->view);
	cache->header_size = bf_header_size(&cache->view.params,
										cache->view.nlayers);
	memcpy(cache->header, image, cache->header_size);
	cache->image = image;
}

/* Read a slice of the stored filter that is probed. */
static const uint8_t *
read_slice(void *context, size_t at, size_t length)
{
	PgBloomProbe *probe = context;
	struct varlena *slice = (struct varlena *) probe->cache->slice;
	struct varatt_external pointer;

	VARATT_EXTERNAL_GET_POINTER(pointer, probe->stored);
	if (probe->toast == NULL)
		probe->toast = table_open(pointer.va_toastrelid, AccessShareLock);
	probe->cache->run_cost += SLICE_COST;
	SET_VARSIZE(slice, VARHDRSZ + length);
	table_relation_fetch_toast_slice(probe->toast, pointer.va_valueid,
									 VARATT_EXTERNAL_GET_EXTSIZE(pointer),
									 (int32) at, (int32) length, slice);
	return (const uint8_t *) VARDATA(slice);
}

/* Is reading slices of this value possible, and cheaper than all of it? */
static bool
is_sliceable(const struct varlena *value)
{
	struct varatt_external pointer;
	size_t		size;

	if (!VARATT_IS_EXTERNAL_ONDISK(value))
		return false;
	VARATT_EXTERNAL_GET_POINTER(pointer, value);
	size = VARATT_EXTERNAL_GET_EXTSIZE(pointer);
	return size + VARHDRSZ == (size_t) pointer.va_rawsize &&	/* plain */
		size >= MIN_SLICED_SIZE;
}

/* Fill in an entry with the header or the whole value, and open that. */
static void
read_entry(PgBloomProbe *probe, CacheEntry *entry, bool sliced)
{
	PgBloomFilterCache *cache = probe->cache;
	BfView	   *view = &cache->view;

	entry->key = palloc(VARSIZE_ANY(probe->stored));
	memcpy(entry->key, probe->stored, VARSIZE_ANY(probe->stored));
	entry->size = toast_raw_datum_size(PointerGetDatum(entry->key));
	if (sliced)
	{
		const uint8_t *slice = read_slice(probe, 0, BF_MAX_HEADER);
		size_t		size;

		pgbloom_open_header(slice, entry->size - VARHDRSZ, view);
		size = bf_header_size(&view->params, view->nlayers);
		entry->header = palloc(size);
		memcpy(entry->header, slice, size);
	}
	else
	{
		while (cache->total > 0 && cache->total + entry->size > cache->limit)
			evict_oldest(cache, true);
		entry->detoasted = detoast_attr(entry->key);
		pgbloom_open(entry->detoasted, view);
	}
}

/*
 * Create the entry of a stored filter that has none, and make it current.  It
 * is complete before it comes into the cache.  After an error, its memory is
 * freed with that of the row or query.
 */
static void
create_entry(PgBloomProbe *probe, bool sliced)
{
	PgBloomFilterCache *cache = probe->cache;
	CacheEntry	created = {0};
	CacheEntry *entry;
	MemoryContext old;

	created.context = AllocSetContextCreate(CurrentMemoryContext,
											"stored Bloom filter",
											ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(created.context);
	read_entry(probe, &created, sliced);
	MemoryContextSwitchTo(old);

	entry = evict_oldest(cache, false);
	*entry = created;
	MemoryContextSetParent(entry->context, GetMemoryChunkContext(cache));
	if (!sliced)
		cache->total += entry->size;
	entry->last_used = ++cache->clock;
	cache->current = entry;
}

static void
open_stored(PgBloomProbe *probe)
{
	PgBloomFilterCache *cache = probe->cache;
	CacheEntry *entry;
	int			i;

	if (cache->lxid != MY_LOCAL_TRANSACTION_ID)
	{
		for (i = 0; i < CACHE_ENTRIES; i++)
			evict(cache, &cache->entries[i]);
		cache->lxid = MY_LOCAL_TRANSACTION_ID;
		cache->limit = (Size) work_mem * 1024;
	}

	entry = find_entry(cache, probe->stored);
	if (entry != NULL && entry == cache->current)
		return;
	unset_view(cache);
	if (entry == NULL)
		create_entry(probe, is_sliceable(probe->stored));
	else
	{
		if (entry->detoasted != NULL)
			pgbloom_open(entry->detoasted, &cache->view);
		else
			pgbloom_open_header(entry->header, entry->size - VARHDRSZ,
								&cache->view);
		entry->last_used = ++cache->clock;
		cache->current = entry;
	}
}

/* Prepare to probe a filter argument. */
void
pgbloom_probe_open(FunctionCallInfo fcinfo, int argno, PgBloomProbe *probe)
{
	Datum		argument = PG_GETARG_DATUM(argno);
	struct varlena *value = (struct varlena *) DatumGetPointer(argument);
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	probe->toast = NULL;
	probe->builder = pgbloom_expanded(argument);
	if (probe->builder != NULL)
	{
		probe->params = &probe->builder->params;
		return;
	}

	if (fn_cache->cache == NULL)
		fn_cache->cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
												 sizeof(PgBloomFilterCache));
	probe->cache = fn_cache->cache;
	probe->params = &probe->cache->view.params;
	if (VARATT_IS_EXTERNAL_INDIRECT(value))
	{
		struct varatt_indirect indirect;

		VARATT_EXTERNAL_GET_POINTER(indirect, value);
		value = indirect.pointer;
	}
	probe->stored = value;

	check_cache(probe->cache);
	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
		open_stored(probe);
	else if (VARATT_IS_EXTERNAL(value))
		open_inline(probe->cache, detoast_attr(value));
	else
		open_inline(probe->cache, value);
	check_cache(probe->cache);
}

/* Are slices read of the filter that is probed? */
static inline bool
is_sliced(const PgBloomProbe *probe)
{
	return probe->builder == NULL && probe->cache->view.image == NULL;
}

/*
 * Detoast the current filter if that is cheaper than slices of this cost in
 * the next step, and more of them later.  If it does not fit into memory next
 * to the others, only its costs of this run count: where many filters are
 * probed in turn, each would be evicted before it is probed again.
 */
static void
detoast_if_cheaper(PgBloomProbe *probe, uint64 cost)
{
	PgBloomFilterCache *cache = probe->cache;
	uint64		whole = cache->view.size / CHUNK_SIZE + 1;

	cost += cache->run_cost;
	if (cache->total + cache->current->size <= cache->limit)
		cost += cache->current->cost;
	if (cost > whole)
	{
		evict(cache, cache->current);
		create_entry(probe, false);
		check_cache(cache);
	}
}

/* Look up a key by its hash. */
bool
pgbloom_probe_contains(PgBloomProbe *probe, uint64 hash)
{
	if (probe->builder != NULL)
		return bf_builder_contains(probe->builder, hash);
	if (is_sliced(probe))
		detoast_if_cheaper(probe, SLICE_COST);
	if (is_sliced(probe))
		return bf_contains_sliced(&probe->cache->view, hash, read_slice,
								  probe);
	return bf_contains(&probe->cache->view, hash);
}

/*
 * Plan a batch of lookups.  Returns true if slices are read, which is cheaper
 * in the order of the hashes.
 */
bool
pgbloom_probe_batch(PgBloomProbe *probe, int nkeys)
{
	if (is_sliced(probe))
		detoast_if_cheaper(probe, (uint64) nkeys * SLICE_COST);
	return is_sliced(probe);
}

/* Open only the header of a filter; the view has no pointer to the rest. */
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
