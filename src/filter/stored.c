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
 * while we hold a snapshot as old as it was, unless a subtransaction inserted
 * it that has been rolled back.  Between two statements we may hold none, and
 * xmin may be the same after that, as it counts transactions of other
 * databases, which VACUUM does not.  So all entries are evicted when we have
 * held no snapshot since then, when xmin is another one, and in another
 * subtransaction.
 *
 * Detoasted values take at most work_mem.  A single larger one is cached as
 * long as no other stored filter is probed.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "access/detoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

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
	uint64		gaps;			/* of all entries, like the next four */
	bool		in_portal;		/* else while planning */
	TimestampTz statement;		/* when it began */
	SubTransactionId subid;
	TransactionId xmin;			/* of the oldest snapshot */
	Size		limit;			/* of total: work_mem at first */
	Size		total;			/* size of all detoasted values */
};

/* So often has something ended that left us without a snapshot. */
static uint64 gaps = 0;

/*
 * At the end of a portal, such as that of a statement, or a transaction, which
 * gives up its snapshot after that.  The snapshot of catalogs may end at any
 * time, so it does not count.
 */
static void
count_gap(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
		  void *arg)
{
	(void) is_commit;
	(void) arg;
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
		gaps += is_top_level || !HaveRegisteredOrActiveSnapshot();
}

void
pgbloom_stored_init(void)
{
	RegisterResourceReleaseCallback(count_gap, NULL);
}

/*
 * When the statement began that holds the snapshot.  A client may leave a
 * portal open that has ended.  There is none while planning, whose snapshot is
 * another one, nor in some processes.
 */
static TimestampTz
statement_start(void)
{
	return ActivePortal != NULL ? ActivePortal->creation_time :
		GetCurrentStatementStartTimestamp();
}

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

/* Read a slice of the stored filter that is probed. */
static const uint8_t *
read_slice(void *context, size_t at, size_t length)
{
	PgBloomProbe *probe = context;

	if (probe->slice != NULL)
		pfree(probe->slice);
	probe->slice = detoast_attr_slice((struct varlena *) probe->stored,
									  (int32) at, (int32) length);
	current_entry(probe->cache)->cost += SLICE_COST;
	return (const uint8_t *) VARDATA(probe->slice);
}

/* Is reading slices of this value possible, and cheaper than all of it? */
static bool
is_sliceable(const struct varlena *value)
{
	Size		size = toast_datum_size(PointerGetDatum(value));

	return VARATT_IS_EXTERNAL_ONDISK(value) && size >= MIN_SLICED_SIZE &&
		size + VARHDRSZ == toast_raw_datum_size(PointerGetDatum(value));
}

static BfView *
copy_view(const BfView *view)
{
	size_t		size = BF_VIEW_SIZE(view->nlayers);

	return memcpy(palloc(size), view, size);
}

/*
 * Read the whole value, and open it.  If its header is open, its blocks begin
 * where a cache line does, so that those of 512 bits are one line each, and
 * large ones are in huge pages.  detoast_attr() would choose neither.
 */
static void
read_whole(PgBloomStoredCache *cache, CacheEntry *entry)
{
	struct varlena *value;
	BfView		view;

	while (cache->total > 0 && cache->total + entry->size > cache->limit)
		evict_oldest(cache, true);
	if (entry->view == NULL)
		value = detoast_attr(entry->key);
	else
	{
		Size		front = VARHDRSZ + bf_header_size(&entry->view->params,
													  entry->view->nlayers);
		char	   *memory = palloc(entry->size + PG_CACHE_LINE_SIZE);
		char	   *blocks = (char *) TYPEALIGN(PG_CACHE_LINE_SIZE,
												memory + front);
		struct varatt_external pointer;
		Relation	toast;

		value = (struct varlena *) (blocks - front);
		pgbloom_prefer_huge_pages(value, entry->size);
		SET_VARSIZE(value, entry->size);
		VARATT_EXTERNAL_GET_POINTER(pointer, entry->key);
		toast = table_open(pointer.va_toastrelid, AccessShareLock);
		table_relation_fetch_toast_slice(toast, pointer.va_valueid,
										 (int32) (entry->size - VARHDRSZ), 0,
										 (int32) (entry->size - VARHDRSZ),
										 value);
		table_close(toast, AccessShareLock);
	}
	pgbloom_open(value, &view);
	entry->view = copy_view(&view);
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
	BfView		view;

	entry->context = context;
	entry->key_size = VARSIZE_ANY(probe->stored);
	entry->key = palloc(entry->key_size);
	memcpy(entry->key, probe->stored, entry->key_size);
	entry->size = toast_raw_datum_size(PointerGetDatum(entry->key));
	if (is_sliceable(probe->stored))
	{
		pgbloom_open_info(PointerGetDatum(entry->key), &view);
		entry->view = copy_view(&view);
		entry->cost = SLICE_COST +
			bf_header_size(&view.params, view.nlayers) / CHUNK_SIZE;
	}
	else
		read_whole(cache, entry);
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
	if (cache->gaps != gaps ||
		cache->in_portal != (ActivePortal != NULL) ||
		cache->statement != statement_start() ||
		cache->subid != GetCurrentSubTransactionId() ||
		cache->xmin != MyProc->xmin)
	{
		while (cache->nentries > 0)
			evict_oldest(cache, false);
		cache->gaps = gaps;
		cache->in_portal = ActivePortal != NULL;
		cache->statement = statement_start();
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
	probe->slice = NULL;
	set_current(probe);
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

	if (cost <= whole)
		return true;
	old = MemoryContextSwitchTo(entry->context);
	read_whole(cache, entry);
	MemoryContextSwitchTo(old);
	cache->total += entry->size;
	probe->view = entry->view;
	return false;
}

/* Look up a key by slices. */
bool
pgbloom_stored_contains(PgBloomProbe *probe, uint64 hash)
{
	return bf_contains_sliced(probe->view, hash, read_slice, probe);
}
