/*-------------------------------------------------------------------------
 *
 * versions.c
 *	  Reading the keys of a table from which an index is built, and counting its
 *	  versions of rows.
 *
 * The index has no row pointers, so it takes the keys of all versions of rows
 * that any snapshot may see, also of those inside of a HOT chain, which
 * PostgreSQL's own scan for an index leaves out.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "access/genam.h"
#include "access/heapam.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/procarray.h"
#include "utils/sampling.h"
#include "utils/snapmgr.h"

/* So many pages of the table, at most, tell how many rows it has. */
#define SAMPLED_PAGES	3000

typedef struct Versions
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	TransactionId horizon;		/* deleters before it are seen by all */
	EState	   *estate;
	ExprState  *predicate;
	Bitmapset  *columns;		/* of keys and predicate */
	BfiKeySort *keys;
	BfiScan    *scan;
	TupleTableSlot *successor;	/* of a version that is left out */
} Versions;

/*
 * Has an UPDATE put another version in the place of one, in the same table?  One
 * that is only locked may still name what an aborted one had put there.  The
 * caller holds a lock on the page.
 */
static bool
is_replaced(HeapTupleHeader tuple, ItemPointer tid)
{
	return (tuple->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		!HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask) &&
		!ItemPointerEquals(&tuple->t_ctid, tid) &&
		!HeapTupleHeaderIndicatesMovedPartitions(tuple) &&
		!TransactionIdDidAbort(HeapTupleHeaderGetUpdateXid(tuple));
}

/* The state of the version in a slot, and whether another one has replaced it. */
static HTSV_Result
version_state(TupleTableSlot *slot, TransactionId horizon, bool *replaced)
{
	Buffer		buffer = ((BufferHeapTupleTableSlot *) slot)->buffer;
	HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, NULL);
	HTSV_Result state;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	state = HeapTupleSatisfiesVacuum(tuple, horizon, buffer);
	*replaced = state != HEAPTUPLE_DEAD &&
		is_replaced(tuple->t_data, &slot->tts_tid);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return state;
}

/* Is a value that the index needs stored outside of the row? */
static bool
is_stored_outside(const Versions *versions, TupleTableSlot *slot)
{
	int			i = -1;

	if (!HeapTupleHasExternal(ExecFetchSlotHeapTuple(slot, false, NULL)))
		return false;
	while ((i = bms_next_member(versions->columns, i)) >= 0)
	{
		AttrNumber	column = (AttrNumber) (i +
										   FirstLowInvalidHeapAttributeNumber);
		bool		isnull;
		Datum		value;

		if (column <= 0 ||
			TupleDescAttr(slot->tts_tupleDescriptor, column - 1)->attlen != -1)
			continue;
		value = slot_getattr(slot, column, &isnull);
		if (!isnull && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			return true;
	}
	return false;
}

/*
 * Others may remove what a deleted version has stored outside of the row while
 * this one is read: VACUUM holds back nobody, and CREATE INDEX only who is not
 * older than its snapshot.  Snapshots that may see it, as they do not see its
 * deleter, do not get a complete index then.
 *
 * A HOT update may have put the successor of a version that is left out on a
 * line pointer that the scan has passed.  So it is read here.  It cannot be
 * pruned meanwhile, as the scan's slot keeps the page pinned.
 */
static void
take_version(Versions *versions, TupleTableSlot *slot)
{
	ExprContext *econtext = GetPerTupleExprContext(versions->estate);
	bool		replaced,
				ignored;
	HTSV_Result state = version_state(slot, versions->horizon, &replaced);
	BfiScan    *scan = versions->scan;
	bool		is_row;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (state == HEAPTUPLE_DEAD)
		return;
	is_row = state == HEAPTUPLE_LIVE || state == HEAPTUPLE_INSERT_IN_PROGRESS;
	scan->rows += is_row;
	while (state == HEAPTUPLE_RECENTLY_DEAD &&
		   is_stored_outside(versions, slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, NULL);
		TransactionId deleter = HeapTupleHeaderGetUpdateXid(tuple->t_data);
		ItemPointerData next = tuple->t_data->t_ctid;

		scan->complete_from = Max(scan->complete_from,
								  bfi_full_transaction_id(deleter) + 1);
		if (!HeapTupleHeaderIsHotUpdated(tuple->t_data) ||
			!table_tuple_fetch_row_version(versions->heap, &next, SnapshotAny,
										   versions->successor))
			return;
		slot = versions->successor;
		state = version_state(slot, versions->horizon, &ignored);
	}
	if (state == HEAPTUPLE_DEAD)
		return;
	scan->versions += !replaced;
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	if (!ExecQual(versions->predicate, econtext))
		return;
	FormIndexDatum(versions->info, slot, versions->estate, values, isnull);
	bfi_take_key(versions->index, &slot->tts_tid, values, isnull,
				 state == HEAPTUPLE_LIVE, versions->keys);
}

/* Read a table whose rows are those of PostgreSQL's heap. */
static void
scan_heap(Versions *versions)
{
	Relation	heap = versions->heap;
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TableScanDesc scan = table_beginscan_strat(heap, SnapshotAny, 0, NULL,
											   true, false);
	BlockNumber block = 0;

	versions->successor = table_slot_create(heap, NULL);
	versions->estate = CreateExecutorState();
	versions->predicate = ExecPrepareQual(versions->info->ii_Predicate,
										  versions->estate);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
								 RelationGetNumberOfBlocks(heap));
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (ItemPointerGetBlockNumber(&slot->tts_tid) != block)
		{
			block = ItemPointerGetBlockNumber(&slot->tts_tid);
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block);
			PGBLOOM_VACUUM_DELAY_POINT();
		}
		take_version(versions, slot);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(versions->successor);
	FreeExecutorState(versions->estate);
	versions->info->ii_ExpressionsState = NIL;
	versions->info->ii_PredicateState = NULL;
}

/*
 * Deleters before it are seen by all snapshots of rows of a table.  It is not
 * newer than the xmin of any snapshot, also where PostgreSQL leaves out the
 * transactions of other databases, or of other sessions for temporary tables.
 */
static TransactionId
visible_horizon(Relation heap)
{
	TransactionId active = PGBLOOM_OLDEST_ACTIVE_TRANSACTION();
	TransactionId horizon = GetOldestNonRemovableTransactionId(heap);

	return TransactionIdPrecedes(active, horizon) ? active : horizon;
}

/*
 * Take the key of each version of a row that a snapshot may see whose xmin is
 * not below scan->complete_from.  The snapshots of this server are such ones,
 * unless versions had to be left out.
 *
 * CREATE INDEX CONCURRENTLY inserts later what its snapshot does not see.
 */
void
bfi_scan_versions(Relation heap, Relation index, IndexInfo *info,
				  BfiKeySort *keys, BfiScan *scan)
{
	Versions	versions = {
		.heap = heap,
		.index = index,
		.info = info,
		.keys = keys,
		.scan = scan
	};

	memset(scan, 0, sizeof(*scan));
	if (!info->ii_Concurrent &&
		table_slot_callbacks(heap) == &TTSOpsBufferHeapTuple)
	{
		versions.horizon = visible_horizon(heap);
		scan->complete_from = bfi_full_transaction_id(versions.horizon);
		versions.columns = bfi_indexed_columns(index);
		scan_heap(&versions);
		return;
	}
	scan->rows = scan->versions =
		table_index_build_scan(heap, index, info, true, true, bfi_take_key,
							   keys, NULL);
	if (info->ii_BrokenHotChain)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot build index \"%s\" while older snapshots see other versions of rows",
						RelationGetRelationName(index)),
				 errhint("Use CREATE INDEX CONCURRENTLY or REINDEX INDEX CONCURRENTLY.")));
}

/*
 * Count the versions of rows of a table, or those that no other version has
 * replaced, by some of its pages if it has many; of other access methods, too many.
 * VACUUM reads only pages that have changed, and takes the others for alike.
 */
double
bfi_count_versions(Relation heap, bool replaced)
{
	BlockNumber npages = RelationGetNumberOfBlocks(heap);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_VACUUM);
	BlockSamplerData sampler;
	double		n = 0;

	if (table_slot_callbacks(heap) != &TTSOpsBufferHeapTuple)
		return HUGE_VAL;
	BlockSampler_Init(&sampler, npages, SAMPLED_PAGES,
					  pg_prng_uint32(&pg_global_prng_state));
	while (BlockSampler_HasMore(&sampler))
	{
		Buffer		buffer = ReadBufferExtended(heap, MAIN_FORKNUM,
												BlockSampler_Next(&sampler),
												RBM_NORMAL, strategy);
		Page		page = BufferGetPage(buffer);
		OffsetNumber i;

		PGBLOOM_VACUUM_DELAY_POINT();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		for (i = FirstOffsetNumber; i <= PageGetMaxOffsetNumber(page); i++)
		{
			ItemId		item = PageGetItemId(page, i);
			ItemPointerData tid;

			ItemPointerSet(&tid, BufferGetBlockNumber(buffer), i);
			n += ItemIdIsNormal(item) &&
				(replaced ||
				 !is_replaced((HeapTupleHeader) PageGetItem(page, item), &tid));
		}
		UnlockReleaseBuffer(buffer);
	}
	return n / Max(sampler.m, 1) * npages;
}
