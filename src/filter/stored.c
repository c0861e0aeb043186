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
 * immutable, but its OID may be reused once VACUUM has removed it.  It cannot
 * while our oldest snapshot stays the same, or one as old, unless a
 * subtransaction inserted it that has been rolled back.  So all entries are
 * evicted when the snapshot, the transaction or the subtransaction is another
 * one.
 *
 * Detoasted values take at most work_mem.  A single larger one is cached as
 * long as no other stored filter is probed.  check_cache() has the invariants.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "access/detoast.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "lib/ilist.h"
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

/* Allocated in its own memory context. */
typedef struct CacheEntry
{
	dlist_node	node;			/* of PgBloomStoredCache.entries */
	MemoryContext context;		/* of this entry only */
	struct varlena *key;		/* copy of the datum in the row */
	Size		key_size;
	Size		size;			/* of the detoasted value */
	BfView	   *view;			/* of the header or the whole value */
	struct varlena *detoasted;	/* the whole value; NULL: slices are read */
	uint64		cost;			/* of the slices read of it */
} CacheEntry;

struct PgBloomStoredCache
{
	dlist_head	entries;		/* the one probed last comes first */
	int			nentries;
	LocalTransactionId lxid;	/* of all entries */
	SubTransactionId subid;		/* of all entries */
	TransactionId xmin;			/* of the oldest snapshot, for all entries */
	Size		limit;			/* of total: work_mem at first */
	Size		total;			/* size of all detoasted values */
	uint32		slice[1 + BF_MAX_BLOCK_SIZE / 4];	/* the last one, a varlena */
};

StaticAssertDecl(PGBLOOM_HEADER_SLICE <= BF_MAX_BLOCK_SIZE,
				 "the first slice is one slice");

static CacheEntry *
current_entry(PgBloomStoredCache *cache)
{
	return dlist_head_element(CacheEntry, node, &cache->entries);
}

/* Find the entry of a datum, or NULL. */
static CacheEntry *
find_entry(PgBloomStoredCache *cache, const struct varlena *key)
{
	Size		size = VARSIZE_ANY(key);
	dlist_iter	i;

	dlist_foreach(i, &cache->entries)
	{
		CacheEntry *entry = dlist_container(CacheEntry, node, i.cur);

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
	Size		total = 0;
	int			n = 0;
	dlist_iter	i;

	dlist_foreach(i, &cache->entries)
	{
		CacheEntry *entry = dlist_container(CacheEntry, node, i.cur);

		/* A filter has one entry, with a view of its header or all of it. */
		Assert(find_entry(cache, entry->key) == entry);
		Assert(entry->view->size == entry->size - VARHDRSZ);
		Assert(entry->view->image == (entry->detoasted == NULL ? NULL :
									  (uint8_t *) VARDATA(entry->detoasted)));
		total += entry->detoasted != NULL ? entry->size : 0;
		n++;
	}
	Assert(cache->nentries == n && n <= CACHE_ENTRIES);

	/* Detoasted values fit into work_mem, or the current one is alone. */
	Assert(cache->total == total);
	Assert(total <= cache->limit ||
		   (current_entry(cache)->detoasted != NULL &&
			current_entry(cache)->size == total));
#endif
}

static void
evict_entry(PgBloomStoredCache *cache, CacheEntry *entry)
{
	if (entry->detoasted != NULL)
		cache->total -= entry->size;
	dlist_delete(&entry->node);
	cache->nentries--;
	MemoryContextDelete(entry->context);
}

/* Evict the entry, or the detoasted value, that was not used for longest. */
static void
evict_oldest(PgBloomStoredCache *cache, bool detoasted)
{
	dlist_iter	i;

	dlist_reverse_foreach(i, &cache->entries)
	{
		CacheEntry *entry = dlist_container(CacheEntry, node, i.cur);

		if (!detoasted || entry->detoasted != NULL)
		{
			evict_entry(cache, entry);
			return;
		}
	}
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

	current_entry(probe->cache)->cost += SLICE_COST;
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

/* Memory for the view of an image of which this is the beginning. */
static BfView *
make_view(const uint8_t *header, size_t size)
{
	int			nlayers;

	bf_peek_header(header, size, &nlayers);
	return palloc(BF_VIEW_SIZE(nlayers));
}

/* Read the header and directory, and open them. */
static void
read_header(PgBloomProbe *probe, CacheEntry *entry)
{
	size_t		size = entry->size - VARHDRSZ;
	struct varlena *slice = (struct varlena *) probe->cache->slice;
	const uint8_t *header = (const uint8_t *) VARDATA(slice);
	int			nlayers;
	size_t		needed;

	fetch_slice(probe, 0, PGBLOOM_HEADER_SLICE, slice);
	entry->cost = SLICE_COST;
	needed = Min(bf_peek_header(header, size, &nlayers), size);
	if (needed > PGBLOOM_HEADER_SLICE)
	{
		slice = palloc(VARHDRSZ + needed);
		fetch_slice(probe, 0, needed, slice);
		entry->cost += needed / CHUNK_SIZE;
		header = (const uint8_t *) VARDATA(slice);
	}
	entry->view = make_view(header, size);
	pgbloom_open_header(header, size, entry->view);
}

/*
 * Read the whole value, and open it.  If its header is open, its blocks begin
 * where a cache line does, so that those of 512 bits are one line each, and
 * large ones are in huge pages.  detoast_attr() would choose neither.
 */
static void
read_whole(PgBloomProbe *probe, CacheEntry *entry)
{
	PgBloomStoredCache *cache = probe->cache;
	BfView	   *view = entry->view;
	struct varlena *value;

	while (cache->total > 0 && cache->total + entry->size > cache->limit)
		evict_oldest(cache, true);
	if (view == NULL)
		value = detoast_attr(entry->key);
	else
	{
		Size		front = VARHDRSZ + bf_header_size(&view->params,
													  view->nlayers);
		char	   *memory = palloc(entry->size + PG_CACHE_LINE_SIZE);
		char	   *blocks = (char *) TYPEALIGN(PG_CACHE_LINE_SIZE,
												memory + front);

		value = (struct varlena *) (blocks - front);
		pgbloom_prefer_huge_pages(value, entry->size);
		fetch_slice(probe, 0, entry->size - VARHDRSZ, value);
	}
	view = make_view((const uint8_t *) VARDATA_ANY(value),
					 VARSIZE_ANY_EXHDR(value));
	pgbloom_open(value, view);
	entry->view = view;
	entry->detoasted = value;
}

/*
 * Create the entry of a stored filter that has none, and make it current.  It
 * is complete before it comes into the cache.  After an error, its memory is
 * freed with that of the row or query.
 */
static void
create_entry(PgBloomProbe *probe)
{
	PgBloomStoredCache *cache = probe->cache;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "stored Bloom filter",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	CacheEntry *entry = palloc0(sizeof(CacheEntry));

	entry->context = context;
	entry->key_size = VARSIZE_ANY(probe->stored);
	entry->key = palloc(entry->key_size);
	memcpy(entry->key, probe->stored, entry->key_size);
	entry->size = toast_raw_datum_size(PointerGetDatum(entry->key));
	if (is_sliceable(probe->stored))
		read_header(probe, entry);
	else
		read_whole(probe, entry);
	MemoryContextSwitchTo(old);

	if (cache->nentries == CACHE_ENTRIES)
		evict_oldest(cache, false);
	MemoryContextSetParent(context, GetMemoryChunkContext(cache));
	dlist_push_head(&cache->entries, &entry->node);
	cache->nentries++;
	if (entry->detoasted != NULL)
		cache->total += entry->size;
}

/* Make the entry of a stored filter current. */
static void
set_current(PgBloomProbe *probe)
{
	PgBloomStoredCache *cache = probe->cache;
	CacheEntry *previous;
	CacheEntry *entry;

	/* A TOAST pointer may be that of another value by now. */
	if (cache->lxid != MY_LOCAL_TRANSACTION_ID ||
		cache->subid != GetCurrentSubTransactionId() ||
		cache->xmin != MyProc->xmin)
	{
		while (cache->nentries > 0)
			evict_oldest(cache, false);
		cache->lxid = MY_LOCAL_TRANSACTION_ID;
		cache->subid = GetCurrentSubTransactionId();
		cache->xmin = MyProc->xmin;
		cache->limit = (Size) work_mem * 1024;
	}

	entry = find_entry(cache, probe->stored);
	if (cache->nentries > 0 && entry != current_entry(cache))
	{
		/*
		 * A value larger than work_mem is not cached next to another filter.
		 * One that does not fit would be evicted before it is probed again.
		 */
		previous = current_entry(cache);
		if (cache->total > cache->limit)
			evict_entry(cache, previous);
		else if (cache->total + previous->size > cache->limit)
			previous->cost = 0;
	}
	if (entry == NULL)
		create_entry(probe);
	else
		dlist_move_head(&cache->entries, &entry->node);
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
	probe->stored = value;
	check_cache(probe->cache);
	set_current(probe);
	check_cache(probe->cache);
	probe->view = current_entry(probe->cache)->view;
}

/*
 * Detoast the current filter, of which slices are read, if that is cheaper than
 * those read so far and one for each of the next keys.  Else return true.
 */
bool
pgbloom_stored_plan(PgBloomProbe *probe, int nkeys)
{
	PgBloomStoredCache *cache = probe->cache;
	CacheEntry *entry = current_entry(cache);
	uint64		whole = probe->view->size / CHUNK_SIZE + 1;
	uint64		cost = entry->cost + (uint64) nkeys * SLICE_COST;
	MemoryContext old;

	/* No other filter was opened since this one. */
	Assert(find_entry(cache, probe->stored) == entry);

	if (cost <= whole)
		return true;
	old = MemoryContextSwitchTo(entry->context);
	read_whole(probe, entry);
	MemoryContextSwitchTo(old);
	cache->total += entry->size;
	check_cache(cache);
	probe->view = entry->view;
	return false;
}

/* Look up a key by slices. */
bool
pgbloom_stored_contains(PgBloomProbe *probe, uint64 hash)
{
	return bf_contains_sliced(probe->view, hash, read_slice, probe);
}
