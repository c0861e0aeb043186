/*-------------------------------------------------------------------------
 *
 * rebuild.c
 *	  VACUUM rebuilds an index that holds much more than its table.
 *
 * The meta page names a next set of layers first.  From then on, who writes
 * keys writes them to both sets.  Then the table is read, and its keys are added
 * to the next set.  Then the next set is the only one.  README.md tells why no
 * key is lost.
 *
 * VACUUM holds a lock on the table that keeps out another one, and all that
 * gives the index another file.  So nobody else begins or ends a set; a next set
 * that is there at the beginning was left behind by one that failed.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "postmaster/autovacuum.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplesort.h"

/* A lookup may read so many layers before they are merged. */
#define MAX_LAYERS		2

/* An index may have so many times the pages that it would have after it. */
#define MAX_GROWTH		4

/* And its file so many times these pages that are free. */
#define MAX_FREE		1.5

/* Below so many pages, size is no reason. */
#define SMALL_INDEX		8

/* So many hashes are added at once. */
#define MAX_BATCH		(1 << 20)

/* What VACUUM knows of an index, and what it would be after a rebuild. */
typedef struct State
{
	Relation	index;
	double		rows;			/* of the table */
	double		keys;			/* that the index holds, by estimate */
	double		live;			/* of which the table has so many */
	uint32		number;			/* of the next set */
	uint64		made_for;		/* keys */
	uint64		distinct;		/* keys of the table */
	uint64		complete_from;
} State;

/* How many keys a row has, if it is known that all are of rows; else 0. */
double
bfi_keys_per_row(double keys, double rows)
{
	return rows > 0 ? keys / rows : 0;
}

/*
 * The keys that a table of so many rows has, of those that an index holds: as
 * many a row as there were when it was built.
 */
double
bfi_live_keys(const BfiMeta *meta, double rows, double keys)
{
	if (meta->keys_per_row > 0)
		rows *= meta->keys_per_row;
	return fmin(rows, keys);
}

/* The pages that an index takes after a rebuild. */
static double
pages_for(const BfiMeta *meta, double keys)
{
	BfiLayer	layer;

	bfi_first_geometry(meta, (uint64) keys, (uint64) (keys + keys / 4),
					   &layer.geometry);
	bfi_set_layer(&layer, &meta->current, 0, 0);
	return layer.npages;
}

/* Is it time to rebuild an index of this state? */
static bool
is_due(const State *state, const BfiMeta *meta)
{
	double		factor = bfi_rebuild_scale_factor(state->index);
	double		file = RelationGetNumberOfBlocks(state->index) - 1;
	double		used = 0;
	double		fresh;
	int			i;

	if (factor < 0 || meta->current.nlayers == 0)
		return false;
	if (factor == 0 || meta->current.nlayers > MAX_LAYERS ||
		state->keys - state->live > factor * state->keys)
		return true;
	for (i = 0; i < meta->current.nlayers; i++)
		used += meta->current.layers[i].npages;
	fresh = pages_for(meta, state->live);
	return file > SMALL_INDEX &&
		(used > MAX_GROWTH * fresh || file - used > MAX_FREE * fresh);
}

/* Estimate the keys of an index. */
static double
estimate_keys(Relation index, const BfiMeta *meta)
{
	BfView		view;
	int			i;

	memset(&view, 0, offsetof(BfView, layers));
	view.params.fpp = meta->fpp;
	view.nlayers = meta->current.nlayers;
	for (i = 0; i < view.nlayers; i++)
	{
		memset(&view.layers[i], 0, sizeof(BfLayer));
		view.layers[i].geometry = meta->current.layers[i].geometry;
	}
	if (!bfi_measure(index, &meta->current, &view))
		elog(ERROR, "index \"%s\" is being rebuilt by somebody else",
			 RelationGetRelationName(index));
	return bf_cardinality(&view);
}

/*
 * Drop the next set, if there is one.  Who still adds keys to it finds that it
 * is gone when its pages are used again.
 */
static void
drop_next(Relation index)
{
	BfiMeta		meta;

	bfi_read_meta(index, &meta);
	if (meta.next.number == 0)
		return;
	LockPage(index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(index, &meta);
	if (meta.next.number != 0)
	{
		memset(&meta.next, 0, sizeof(meta.next));
		bfi_change_meta(index, &meta);
	}
	UnlockPage(index, BFI_META_BLOCK, ExclusiveLock);
}

/* Begin a next set, for so many keys. */
static void
begin_next(State *state, uint64 keys)
{
	BfiMeta		meta;
	BfGeometry	geometry;

	LockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(state->index, &meta);
	bfi_first_geometry(&meta, keys, keys + keys / 4, &geometry);
	state->made_for = geometry.capacity;
	state->number = meta.next.number = ++meta.last_set;
	bfi_append_geometry(state->index, &meta, &meta.next, &geometry);
	UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
}

/* Add sorted keys to the next set. */
static void
fill_next(State *state, BfiKeySort *keys)
{
	Relation	index = state->index;
	uint64	   *batch = palloc(MAX_BATCH * sizeof(uint64));
	uint64	   *left = NULL;
	size_t		nleft = 0;
	size_t		done;
	uint64		hash = 0;
	bool		more = bfi_next_key(keys, &hash, true);

	while (more)
	{
		int			n = 0;

		for (; more && n < MAX_BATCH; more = bfi_next_key(keys, &hash, false))
			batch[n++] = hash;
		PGBLOOM_VACUUM_DELAY_POINT();
		n = bfi_add_to_shares(index, state->number, batch, n);
		if (n == 0)
			continue;

		/* Others have to fill their pages before these may exceed theirs. */
		left = left == NULL ?
			MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64)) :
			repalloc_huge(left, (nleft + n) * sizeof(uint64));
		memcpy(left + nleft, batch, n * sizeof(uint64));
		nleft += n;
	}
	for (done = 0; done < nleft; done += MAX_BATCH)
		bfi_add_to_set(index, state->number, left + done,
					   (int) Min(nleft - done, MAX_BATCH));
	pfree(batch);
	if (left != NULL)
		pfree(left);
}

/* Make the next set the only one. */
static void
finish_next(State *state)
{
	BfiMeta		meta;

	LockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(state->index, &meta);
	if (meta.next.number != state->number)
		elog(ERROR, "index \"%s\" is being rebuilt by somebody else",
			 RelationGetRelationName(state->index));
	meta.current = meta.next;
	memset(&meta.next, 0, sizeof(meta.next));
	meta.keys_built = state->distinct;
	meta.keys_per_row = bfi_keys_per_row((double) state->distinct,
										 state->rows);
	meta.complete_from = state->complete_from;
	meta.rebuilt = GetCurrentTimestamp();
	bfi_change_meta(state->index, &meta);
	UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
}

/*
 * Has the next set room for the keys of the table, and not far too much?  That
 * was an estimate.  Too few for them would become several layers.
 */
static bool
fits(const State *state)
{
	BfiMeta		meta;

	bfi_read_meta(state->index, &meta);
	return state->distinct <= state->made_for &&
		meta.next.layers[0].npages <=
		2 * pages_for(&meta, (double) state->distinct);
}

/*
 * Build a next set for so many keys, and exchange it.  Returns false if it does
 * not fit, unless that must be.
 */
static bool
rebuild_for(State *state, Relation heap, uint64 keys, bool must)
{
	IndexInfo  *info = BuildIndexInfo(state->index);
	BfiKeySort	sort;
	BfiMeta		meta;
	bool		done;

	begin_next(state, keys);
	bfi_read_meta(state->index, &meta);
	bfi_begin_keys(&sort, state->index, meta.seed, PGBLOOM_VACUUM_MEMORY);
	bfi_set_expressions(state->index, info);
	state->rows = bfi_scan_versions(heap, state->index, info, bfi_take_key,
									&sort, &state->complete_from);
	tuplesort_performsort(sort.sort);
	state->distinct = bfi_count_keys(&sort);
	done = must || fits(state);
	if (done)
	{
		fill_next(state, &sort);
		finish_next(state);
	}
	else
		drop_next(state->index);
	bfi_end_keys(&sort);
	return done;
}

/*
 * May versions be read while others write?  They may not with an access method
 * whose versions PostgreSQL reads for us, or if pages may have lost versions
 * that a snapshot sees.  Keys that are hashed differently now take a REINDEX.
 */
static bool
can_rebuild(Relation index, Relation heap, const BfiMeta *meta)
{
	return index->rd_index->indisvalid &&
		bfi_key_info(index, CurrentMemoryContext)->key_type.code ==
		meta->key_type &&
		table_slot_callbacks(heap) == &TTSOpsBufferHeapTuple &&
		!PGBLOOM_SNAPSHOTS_GET_TOO_OLD;
}

/*
 * Return free pages at the end of the file, unless somebody uses the index just
 * now.  The lock takes a transaction ID.
 */
static void
return_free_pages(Relation index)
{
	BfiMeta		meta;
	BlockNumber end;

	bfi_read_meta(index, &meta);
	if (RelationGetNumberOfBlocks(index) <= bfi_end(&meta) ||
		IsInParallelMode() ||
		!ConditionalLockRelation(index, AccessExclusiveLock))
		return;
	bfi_read_meta(index, &meta);
	end = bfi_end(&meta);
	if (RelationGetNumberOfBlocks(index) > end)
		RelationTruncate(index, end);
	UnlockRelation(index, AccessExclusiveLock);
}

/*
 * An index that was built without rows knows how many keys a row has from the
 * first VACUUM on.  If some are gone by then, that is too many, at most one.
 */
static void
learn_keys_per_row(const State *state)
{
	BfiMeta		meta;

	LockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(state->index, &meta);
	meta.keys_per_row = fmin(bfi_keys_per_row(state->keys, state->rows), 1);
	if (meta.keys_per_row > 0)
		bfi_change_meta(state->index, &meta);
	UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
}

/* Rebuild an index if it is time. */
static void
rebuild_if_due(IndexVacuumInfo *vacuum, IndexBulkDeleteResult *stats)
{
	Relation	index = vacuum->index;
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	State		state = {.index = index};
	BfiMeta		meta;

	state.rows = fmax(vacuum->num_heap_tuples, 0);
	bfi_read_meta(index, &meta);
	state.keys = estimate_keys(index, &meta);
	state.live = bfi_live_keys(&meta, state.rows, state.keys);
	if (can_rebuild(index, heap, &meta) && is_due(&state, &meta))
	{
		BlockNumber before = RelationGetNumberOfBlocks(index);

		RestrictSearchPath();
		if (!rebuild_for(&state, heap, (uint64) state.live, false))
			(void) rebuild_for(&state, heap, state.distinct, true);
		return_free_pages(index);
		ereport(vacuum->message_level,
				(errmsg("rebuilt index \"%s\", which had %.0f keys, with %llu",
						RelationGetRelationName(index), state.keys,
						(unsigned long long) state.distinct),
				 errdetail("Its file had %u pages and has %u.", before,
						   RelationGetNumberOfBlocks(index))));
		stats->tuples_removed = fmax(state.keys - (double) state.distinct, 0);
	}
	else
	{
		if (meta.keys_per_row == 0)
			learn_keys_per_row(&state);
		return_free_pages(index);
	}
	table_close(heap, NoLock);
}

/* Count the pages that no layer has. */
static BlockNumber
count_free_pages(Relation index)
{
	BfiMeta		meta;
	BlockNumber pages = RelationGetNumberOfBlocks(index) - 1;
	int			i;

	bfi_read_meta(index, &meta);
	for (i = 0; i < meta.current.nlayers; i++)
		pages -= meta.current.layers[i].npages;
	return pages;
}

/*
 * The end of a VACUUM.  An index holds no row pointers, so there is nothing to
 * remove before that.
 */
IndexBulkDeleteResult *
bfi_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(*stats));
	drop_next(info->index);
	rebuild_if_due(info, stats);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->pages_free = count_free_pages(info->index);
	stats->num_index_tuples = Max(info->num_heap_tuples, 0);
	stats->estimated_count = info->estimated_count;
	return stats;
}
