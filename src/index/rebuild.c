/*-------------------------------------------------------------------------
 *
 * rebuild.c
 *	  VACUUM rebuilds an index that holds much more than its table.
 *
 * The meta page names a next set of layers first, at the end of the file.  From
 * then on, who writes keys writes them to both sets.  Then the table is read, and
 * its keys are added to the next set.  Then the next set takes the place of the
 * current one, under a number that is greater by one, and its pages are moved to
 * the beginning of the file.  They are logged only now; so the next set is gone
 * with its VACUUM, whose lock tells that it is there.  README.md tells why no key
 * is lost.
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
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "postmaster/autovacuum.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplesort.h"

/* An index has room for so many times its keys after a rebuild. */
#define ROOM			1.2

/* A lookup may read so many layers before they are merged. */
#define MAX_LAYERS		2

/* An index may have so many times the pages that it would have after it. */
#define MAX_GROWTH		4

/* A next set may be so many times as large as it should be, or as small. */
#define MAX_EXCESS		1.15

/* So many hashes are added at once. */
#define MAX_BATCH		(1 << 20)

/* What VACUUM knows of an index, and what it would be after a rebuild. */
typedef struct State
{
	Relation	index;
	double		keys;			/* that the index holds, by estimate, or
								 * HUGE_VAL */
	double		live;			/* of which the table has so many */
	uint32		number;			/* of the next set, which is even */
	uint64		distinct;		/* keys of the table */
	TimestampTz begun;			/* when the next set was */
	BfiScan		scan;
} State;

/*
 * How many keys a row has, at most one; 0 if there are no rows.  An index has
 * the keys of all versions of rows, so they count as rows.
 */
double
bfi_keys_per_row(double keys, double rows)
{
	return rows > 0 ? fmin(keys / rows, 1) : 0;
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

/* The layer for so many keys after a rebuild, with room for some more. */
static void
rebuilt_geometry(const BfiMeta *meta, double keys, BfGeometry *geometry)
{
	uint64		n = (uint64) (keys * ROOM);

	bfi_first_geometry(meta, n, n, geometry);
}

/* The pages that an index takes after a rebuild. */
static double
pages_for(const BfiMeta *meta, double keys)
{
	BfiLayer	layer;

	rebuilt_geometry(meta, keys, &layer.geometry);
	bfi_set_layer(&layer, &meta->current, 0, 0);
	return layer.npages;
}

/*
 * Is it time to rebuild an index, if its table has so many of its keys?  One that
 * lacks pages is rebuilt, whatever its parameter says of growth and deletion.
 */
static bool
is_due(State *state, const BfiMeta *meta, double live)
{
	double		factor = bfi_rebuild_scale_factor(state->index);

	state->live = live;
	if (meta->current.nlayers == 0 ||
		bfi_is_too_large(meta->fpp, (uint64) (state->live * ROOM)))
		return false;
	if (meta->partial || factor <= 0)
		return meta->partial || factor == 0;
	return meta->current.nlayers > MAX_LAYERS ||
		state->keys - state->live > factor * state->keys ||
		bfi_end(meta) - 1 > MAX_GROWTH * pages_for(meta, state->live);
}

/*
 * Drop the next set, if there is one.  Who still adds keys to it finds that it
 * is gone when its pages are used again.  If all of its pages have been moved, the
 * current set lacks none.
 */
static void
drop_next(Relation index, bool is_moved)
{
	BfiMeta		meta;

	LockPage(index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(index, &meta);
	if (meta.next.number != 0)
	{
		memset(&meta.next, 0, sizeof(meta.next));
		if (is_moved)
			meta.partial = false;
		bfi_change_meta(index, &meta);
	}
	UnlockPage(index, BFI_META_BLOCK, ExclusiveLock);
}

/*
 * Begin a next set, for so many keys.  PostgreSQL cancels an autovacuum that keeps
 * others waiting, so the lock is released after some pages.  If others append a
 * layer there meanwhile, the pages are made again behind it.
 */
static void
begin_next(State *state, double keys)
{
	BfiMeta		meta;
	BfiLayer	layer = {0};
	BlockNumber made = 0;

	state->begun = GetCurrentTimestamp();
	for (;;)
	{
		BlockNumber first = layer.first;

		LockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
		bfi_read_meta(state->index, &meta);
		rebuilt_geometry(&meta, keys, &layer.geometry);
		state->number = meta.next.number = meta.last_set + 1;
		bfi_set_layer(&layer, &meta.next, 0, bfi_end(&meta));
		if (layer.first != first)
			made = 0;
		if (layer.npages - made <= BFI_PAGES_AT_ONCE)
			break;
		bfi_make_layer_pages(state->index, &layer, made,
							 made + BFI_PAGES_AT_ONCE);
		made += BFI_PAGES_AT_ONCE;
		UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
		PGBLOOM_VACUUM_DELAY_POINT();
	}
	meta.last_set += 2;
	bfi_append_geometry(state->index, &meta, &meta.next, &layer.geometry,
						made);
	UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
}

/*
 * Hash and sort the keys of the table, and count them.  Those of writers are added
 * to the next set, which has begun.
 */
static void
read_table(State *state, Relation heap, BfiKeySort *sort)
{
	IndexInfo  *info = BuildIndexInfo(state->index);
	BfiMeta		meta;

	bfi_read_meta(state->index, &meta);
	bfi_begin_keys(sort, state->index, meta.seed, PGBLOOM_VACUUM_MEMORY);
	bfi_set_expressions(state->index, info);
	bfi_scan_versions(heap, state->index, info, sort, &state->scan);
	tuplesort_performsort(sort->sort);
	state->distinct = bfi_count_keys(sort);
}

/*
 * Has the first layer of the next set room for the keys of the table and some
 * more, and not much more?  It was made by an estimate, and rows may have more
 * different keys than before, or fewer.
 */
static bool
next_set_fits(State *state)
{
	const BfiLayer *layer;
	BfiMeta		meta;

	bfi_read_meta(state->index, &meta);
	layer = &meta.next.layers[0];
	return bfi_is_too_large(meta.fpp, (uint64) (state->distinct * ROOM)) ||
		(layer->geometry.capacity * MAX_EXCESS >= state->distinct * ROOM &&
		 layer->npages - 1 <=
		 MAX_EXCESS * pages_for(&meta, (double) state->distinct));
}

/*
 * Add sorted keys to the next set, or only as far as their pages have their share
 * of bits, if those that are left are taken.
 */
static void
add_sorted(State *state, BfiKeySort *keys, BfiKeySort *left)
{
	uint64	   *batch = palloc(MAX_BATCH * sizeof(uint64));
	uint64		hash = 0;
	bool		more = bfi_next_key(keys, &hash, true);

	while (more)
	{
		BfiMeta		meta;
		int			n = 0;

		for (; more && n < MAX_BATCH; more = bfi_next_key(keys, &hash, false))
			batch[n++] = hash;
		PGBLOOM_VACUUM_DELAY_POINT();
		if (left == NULL)
		{
			bfi_read_meta(state->index, &meta);
			bfi_add_to_set(state->index, &meta, state->number, batch, n);
			continue;
		}
		n = bfi_add_to_shares(state->index, state->number, batch, n);
		while (n > 0)
			bfi_take_hash(left, batch[--n]);
	}
	pfree(batch);
}

/*
 * Add sorted keys to the next set.  Those for which a page has no room wait until
 * others have filled their pages.
 */
static void
fill_next(State *state, BfiKeySort *keys)
{
	BfiKeySort	left;

	bfi_begin_keys(&left, state->index, keys->seed,
				   PGBLOOM_VACUUM_MEMORY / 8);
	add_sorted(state, keys, &left);
	tuplesort_performsort(left.sort);
	add_sorted(state, &left, NULL);
	bfi_end_keys(&left);
}

/* Let the next set take the place of the current one, from the first page on. */
static void
begin_moving(State *state, BfiMeta *meta)
{
	BlockNumber first = BFI_META_BLOCK + 1;
	int			i;

	LockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(state->index, meta);
	Assert(meta->next.number == state->number);
	meta->current = meta->next;
	meta->current.number = meta->last_set;
	for (i = 0; i < meta->current.nlayers; i++)
	{
		bfi_set_layer(&meta->current.layers[i], &meta->current, i, first);
		first += meta->current.layers[i].npages;
	}
	meta->partial = true;
	meta->keys_built = state->distinct;
	meta->keys_per_row = bfi_keys_per_row((double) state->distinct,
										  state->scan.versions);
	meta->complete_from = state->scan.complete_from;
	meta->rebuilt = state->begun;
	bfi_change_meta(state->index, meta);
	UnlockPage(state->index, BFI_META_BLOCK, ExclusiveLock);
}

/* Move the pages of a layer, all of which are nearer to the end of the file. */
static void
move_layer(Relation index, const BfiLayer *from, const BfiLayer *to)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_VACUUM);
	BlockNumber i;

	for (i = 0; i < from->npages; i++)
	{
		BfiPage		page;
		Buffer		buffer;
		Page		moved;

		bfi_read_layer_page(index, from, i, strategy, &page);
		LockBuffer(page.buffer, BUFFER_LOCK_UNLOCK);
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, to->first + i,
									RBM_ZERO_AND_LOCK, strategy);
		LockBuffer(page.buffer, BUFFER_LOCK_EXCLUSIVE);
		moved = BufferGetPage(buffer);
		memcpy(moved, BufferGetPage(page.buffer), BLCKSZ);
		BfiPageGetOpaque(moved)->set = to->set;
		bfi_finish_new_page(index, MAIN_FORKNUM, buffer);
		bfi_empty_page(&page);
		bfi_mark_unlogged(index, page.buffer);
		UnlockReleaseBuffer(page.buffer);
	}
	FreeAccessStrategy(strategy);
}

/*
 * Make the next set the only one.  Without interrupts, as one that came while
 * pages are moved would leave an index that lacks the others, until all is read
 * again; to move them takes some 20 microseconds each.
 */
static void
finish_next(State *state)
{
	BfiMeta		meta;
	int			i;

	HOLD_INTERRUPTS();
	begin_moving(state, &meta);
	for (i = 0; i < meta.next.nlayers; i++)
		move_layer(state->index, &meta.next.layers[i],
				   &meta.current.layers[i]);
	drop_next(state->index, true);
	RESUME_INTERRUPTS();
}

/*
 * Build a next set, and exchange it.  If it does not fit, it is begun again, once:
 * keys of others may come all the time.  Returns false if the index stays as it
 * is, as the table has more of its keys than the estimate.
 */
static bool
rebuild(State *state, Relation heap, const BfiMeta *meta)
{
	BfiKeySort	sort;

	LockDatabaseObject(RelationRelationId, RelationGetRelid(state->index), 0,
					   ShareUpdateExclusiveLock);
	begin_next(state, state->live);
	read_table(state, heap, &sort);
	if (!next_set_fits(state))
	{
		bfi_end_keys(&sort);
		drop_next(state->index, false);
		if (!is_due(state, meta, (double) state->distinct))
			return false;
		begin_next(state, state->live);
		read_table(state, heap, &sort);
	}
	fill_next(state, &sort);
	finish_next(state);
	bfi_end_keys(&sort);
	return true;
}

/*
 * May versions be read while others write?  They may not with an access method
 * whose versions PostgreSQL reads for us, or if pages may have lost versions
 * that a snapshot sees.  What reads other tables would see them as they were
 * when VACUUM began, or not at all, as nothing keeps others from removing those
 * rows; and VACUUM has other settings than who looks up keys.  Keys that are
 * hashed differently now take a REINDEX.  A VACUUM against wraparound must not
 * fail, as this may.
 */
static bool
can_rebuild(Relation index, Relation heap, const BfiMeta *meta)
{
	return (MyProc->statusFlags & PROC_VACUUM_FOR_WRAPAROUND) == 0 &&
		index->rd_index->indisvalid &&
		bfi_key_info(index, CurrentMemoryContext)->key_type.code ==
		meta->key_type &&
		table_slot_callbacks(heap) == &TTSOpsBufferHeapTuple &&
		!PGBLOOM_SNAPSHOTS_GET_TOO_OLD && !bfi_key_may_change(index);
}

/* Remember how many keys a row has. */
static void
learn_keys_per_row(Relation index, double keys, double rows)
{
	BfiMeta		meta;

	LockPage(index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(index, &meta);
	meta.keys_per_row = bfi_keys_per_row(keys, rows);
	if (meta.keys_per_row > 0)
		bfi_change_meta(index, &meta);
	UnlockPage(index, BFI_META_BLOCK, ExclusiveLock);
}

/*
 * Rebuild an index if it is time.  What VACUUM knows of the number of rows may
 * be wrong by far, and a rebuild keeps the keys of deleted rows that somebody
 * may see, so the versions that there are have to agree.
 *
 * An index that was built without rows knows how many keys a row has from the
 * first VACUUM on, of which versions that were replaced have none.  If some are
 * gone by then, that is too many, at most one.
 */
static void
rebuild_if_due(IndexVacuumInfo *vacuum, IndexBulkDeleteResult *stats)
{
	Relation	index = vacuum->index;
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	double		rows = fmax(vacuum->num_heap_tuples, 0);
	State		state = {.index = index};
	BfiMeta		meta;
	BfView		view;

	bfi_read_meta(index, &meta);
	if (!meta.partial)
		bfi_measure(index, &meta, &view);
	state.keys = meta.partial ? HUGE_VAL : bf_cardinality(&view);
	if (is_due(&state, &meta, bfi_live_keys(&meta, rows, state.keys)) &&
		can_rebuild(index, heap, &meta) &&
		is_due(&state, &meta, bfi_live_keys(&meta, bfi_count_versions(heap, true),
											state.keys)))
	{
		RestrictSearchPath();
		if (!rebuild(&state, heap, &meta))
			learn_keys_per_row(index, (double) state.distinct,
							   state.scan.versions);
		else
		{
			if (!meta.partial)
				stats->tuples_removed = fmax(state.keys - (double) state.distinct, 0);
			stats->pages_newly_deleted = bfi_end(&meta) - 1;
		}
	}
	else if (meta.keys_per_row == 0 && state.keys > 0)
		learn_keys_per_row(index, state.keys,
						   fmin(rows, bfi_count_versions(heap, false)));
	bfi_return_free_pages(heap, index);
	table_close(heap, NoLock);
}

/*
 * The end of a VACUUM.  An index holds no row pointers, so there is nothing to
 * remove before that.
 */
IndexBulkDeleteResult *
bfi_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	BfiMeta		meta;

	if (info->analyze_only)
		return stats;
	if (stats == NULL)
		stats = palloc0(sizeof(*stats));
	drop_next(info->index, false);
	rebuild_if_due(info, stats);
	bfi_read_meta(info->index, &meta);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->pages_free = stats->pages_deleted =
		stats->num_pages - bfi_end(&meta);
	stats->num_index_tuples = Max(info->num_heap_tuples, 0);
	stats->estimated_count = info->estimated_count;
	return stats;
}
