/*-------------------------------------------------------------------------
 *
 * stored.c
 *	  Probing stored filters by slices, and a cache of detoasted ones.
 *
 * A filter that is stored out of line is probed by slices: its header first,
 * then the block of each key.  As soon as the slices of a filter have cost as
 * much as reading the whole value, it is detoasted.  This costs at most twice
 * as much as the better of the two would have, had the number of keys been
 * known (ski rental; Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy
 * Caching, Algorithmica 3, 1988).  Compressed values cannot be sliced, and
 * small ones need not be: they are detoasted at once.
 *
 * Each FmgrInfo has a cache of CACHE_ENTRIES filters in fn_extra, which evicts
 * the least recently used.  The key of an entry is the datum in the row: a
 * TOAST pointer, or a value that is compressed in the row.  A TOAST value is
 * immutable, and its OID cannot be reused within a transaction unless the OID
 * counter wraps, so all entries are evicted when a transaction begins.
 *
 * Detoasted values take at most work_mem.  A single larger one is cached as
 * long as no other stored filter is probed.  check_cache() has the invariants.
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
	Size		key_size;
	Size		size;			/* of the detoasted value */
	uint8_t    *header;			/* either this: slices are read, */
	struct varlena *detoasted;	/* or the whole value */
	uint64		cost;			/* of slices in earlier runs */
	uint64		last_used;		/* PgBloomStoredCache.clock; 0: unused */
} CacheEntry;

struct PgBloomStoredCache
{
	CacheEntry *current;		/* probed last, or NULL */
	BfView		view;			/* of its header or value */
	LocalTransactionId lxid;	/* of all entries */
	Size		limit;			/* of total: work_mem at first */
	Size		total;			/* size of all detoasted values */
	uint64		clock;			/* number of times current was set */
	uint64		run_cost;		/* of slices since then */
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
find_entry(PgBloomStoredCache *cache, const struct varlena *key)
{
	Size		size = VARSIZE_ANY(key);
	int			start = 0;
	int			i;

	if (cache->current != NULL)
		start = cache->current - cache->entries;
	for (i = 0; i < CACHE_ENTRIES; i++)
	{
		CacheEntry *entry = &cache->entries[(start + i) % CACHE_ENTRIES];

		if (entry->key_size == size && memcmp(entry->key, key, size) == 0)
			return entry;
	}
	return NULL;
}

/* Check what holds whenever no function of this file is at work. */
static void
check_cache(PgBloomStoredCache *cache PG_USED_FOR_ASSERTS_ONLY)
{
#ifdef USE_ASSERT_CHECKING
	const CacheEntry *current = cache->current;
	Size		total = 0;
	int			i;

	for (i = 0; i < CACHE_ENTRIES; i++)
	{
		const CacheEntry *entry = &cache->entries[i];

		/* Unused entries are replaced first, and never found. */
		Assert((entry->context == NULL) == (entry->last_used == 0));
		Assert((entry->context == NULL) == (entry->key_size == 0));
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

	/* The view is that of the current entry. */
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
evict(PgBloomStoredCache *cache, CacheEntry *entry)
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
evict_oldest(PgBloomStoredCache *cache, bool detoasted)
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

/* Fetch length bytes of the stored filter that is probed, from at on. */
static void
fetch_slice(PgBloomProbe *probe, size_t at, size_t length,
			struct varlena *slice)
{
	struct varatt_external pointer;

	VARATT_EXTERNAL_GET_POINTER(pointer, probe->stored);
	if (probe->toast == NULL)
		probe->toast = table_open(pointer.va_toastrelid, AccessShareLock);
	SET_VARSIZE(slice, VARHDRSZ + length);
	table_relation_fetch_toast_slice(probe->toast, pointer.va_valueid,
									 VARATT_EXTERNAL_GET_EXTSIZE(pointer),
									 (int32) at, (int32) length, slice);
}

/* Read a slice of the stored filter that is probed. */
static const uint8_t *
read_slice(void *context, size_t at, size_t length)
{
	PgBloomProbe *probe = context;
	struct varlena *slice = (struct varlena *) probe->cache->slice;

	probe->cache->run_cost += SLICE_COST;
	fetch_slice(probe, at, length, slice);
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

/*
 * Read the whole value of a filter whose header is open.  Its blocks begin
 * where a cache line does, so that those of 512 bits are one line each, and
 * large ones are in huge pages.  detoast_attr() would choose neither.
 */
static struct varlena *
read_aligned(PgBloomProbe *probe, Size size)
{
	const BfView *view = probe->view;
	Size		front = VARHDRSZ + bf_header_size(&view->params, view->nlayers);
	char	   *memory = palloc(size + PG_CACHE_LINE_SIZE);
	char	   *blocks = (char *) TYPEALIGN(PG_CACHE_LINE_SIZE, memory + front);
	struct varlena *value = (struct varlena *) (blocks - front);

	pgbloom_prefer_huge_pages(value, size);
	fetch_slice(probe, 0, size - VARHDRSZ, value);
	return value;
}

/* Fill in an entry with the header or the whole value, and open that. */
static void
read_entry(PgBloomProbe *probe, CacheEntry *entry, bool sliced)
{
	PgBloomStoredCache *cache = probe->cache;
	BfView	   *view = &cache->view;

	entry->key_size = VARSIZE_ANY(probe->stored);
	entry->key = palloc(entry->key_size);
	memcpy(entry->key, probe->stored, entry->key_size);
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
		entry->detoasted = is_sliceable(probe->stored) ?
			read_aligned(probe, entry->size) : detoast_attr(entry->key);
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
	PgBloomStoredCache *cache = probe->cache;
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

/* Make the entry of a stored filter current. */
static void
set_current(PgBloomProbe *probe)
{
	PgBloomStoredCache *cache = probe->cache;
	CacheEntry *entry;
	int			i;

	/* A TOAST pointer of another transaction may be that of another value. */
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

	/* A value larger than work_mem is not cached next to another filter. */
	if (cache->total > cache->limit)
		evict(cache, cache->current);
	if (cache->current != NULL)
		cache->current->cost += cache->run_cost;
	cache->run_cost = 0;
	cache->current = NULL;

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

/* Prepare to probe a filter that is stored out of line or compressed. */
void
pgbloom_stored_open(FunctionCallInfo fcinfo, const struct varlena *value,
					PgBloomProbe *probe)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);

	if (fn_cache->stored_cache == NULL)
		fn_cache->stored_cache =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
								   sizeof(PgBloomStoredCache));
	probe->cache = fn_cache->stored_cache;
	probe->view = &probe->cache->view;
	probe->stored = value;
	check_cache(probe->cache);
	set_current(probe);
	check_cache(probe->cache);
}

/*
 * Detoast the current filter if that is cheaper than the slices read so far
 * and one for each of the next keys.  If it does not fit into work_mem next to
 * the others, only the slices of this run count: where many filters are probed
 * in turn, each would be evicted before it is probed again.
 */
void
pgbloom_stored_plan(PgBloomProbe *probe, int nkeys)
{
	PgBloomStoredCache *cache = probe->cache;
	uint64		whole = cache->view.size / CHUNK_SIZE + 1;
	uint64		cost = cache->run_cost + (uint64) nkeys * SLICE_COST;

	/* No other filter was opened since this one. */
	Assert(find_entry(cache, probe->stored) == cache->current);

	if (cache->total + cache->current->size <= cache->limit)
		cost += cache->current->cost;
	if (cost > whole)
	{
		evict(cache, cache->current);
		create_entry(probe, false);
		check_cache(cache);
	}
}

/* Look up a key by slices. */
bool
pgbloom_stored_contains(PgBloomProbe *probe, uint64 hash)
{
	return bf_contains_sliced(probe->view, hash, read_slice, probe);
}
