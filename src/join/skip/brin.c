/*-------------------------------------------------------------------------
 *
 * brin.c
 *	  The blocks of a table that may have rows with keys of a filter, by a BRIN
 *	  index.
 *
 * A table in the order of a column has rows of some keys in few blocks.  A
 * BRIN index of type minmax knows the smallest and the largest value in each
 * range of blocks, so it says in which blocks the keys can be.  Ranges that are
 * not summarized are among them.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/brin.h"
#include "access/brin_internal.h"
#include "access/genam.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgbloom.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* Fewer blocks are read rather than left out between others. */
#define LEAST_GAP		128

/* Of more keys, none is looked for by itself. */
#define MOST_SINGLE		8

/* To read so many ranges takes less than a tenth of the time of a block. */
#define RANGES_A_BLOCK	2

/* A BRIN index tells the number of blocks as if each had so many rows. */
#define ROWS_A_BLOCK	10

static Bitmapset *
add_index_columns(Bitmapset *columns, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	int			i;

	if (!HeapTupleIsValid(tuple))
		return columns;
	form = (Form_pg_index) GETSTRUCT(tuple);
	for (i = 0; i < form->indnatts; i++)
		columns = bms_add_member(columns, form->indkey.values[i] -
								 FirstLowInvalidHeapAttributeNumber);
	ReleaseSysCache(tuple);
	return columns;
}

/* The columns of a table that have BRIN indexes, like pull_varattnos(). */
static Bitmapset *
brin_columns(Relation table)
{
	List	   *indexes = table->rd_rel->relhasindex ?
		RelationGetIndexList(table) : NIL;
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (pgbloom_relation_row(lfirst_oid(lc)).relam == BRIN_AM_OID)
			columns = add_index_columns(columns, lfirst_oid(lc));
	}
	list_free(indexes);
	return columns;
}

/* The same for the planner: is there such an index on a column? */
bool
pgbloom_join_has_brin(const RelOptInfo *rel, AttrNumber column,
					  Oid collation)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);
		int			i;

		for (i = 0; i < index->nkeycolumns && index->relam == BRIN_AM_OID; i++)
		{
			Oid			type = index->opcintype[i];

			if (index->indpred == NIL && index->indexkeys[i] == column &&
				index->indexcollations[i] == collation &&
				get_opfamily_proc(index->opfamily[i], type, type,
								  BRIN_PROCNUM_OPCINFO) ==
				F_BRIN_MINMAX_OPCINFO)
				return true;
		}
	}
	return false;
}

/*
 * The columns whose values may reduce the scan to some blocks.  The blocks of a
 * parallel scan are handed out by the table's access method.
 */
Bitmapset *
pgbloom_join_limiting_columns(ScanState *scan)
{
	if (!IsA(scan, SeqScanState) || scan->ps.plan->parallel_aware ||
		IsParallelWorker() ||
		scan->ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return NULL;
	return brin_columns(scan->ss_currentRelation);
}

/* Is this a BRIN index of all rows for the snapshot? */
static bool
is_usable_index(Relation index)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relam == BRIN_AM_OID &&
		form->indisvalid && form->indisready && form->indislive &&
		RelationGetIndexPredicate(index) == NIL &&
		(!form->indcheckxmin ||
		 TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin));
}

/*
 * The number of a column of the index, from 1 on, whose order is that of the
 * range, or 0.
 */
static AttrNumber
find_index_column(Relation index, AttrNumber column,
				  const PgBloomJoinRange *range)
{
	int			i;

	for (i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		if (index->rd_index->indkey.values[i] == column &&
			index_getprocinfo(index, i + 1, BRIN_PROCNUM_OPCINFO)->fn_oid ==
			F_BRIN_MINMAX_OPCINFO &&
			pgbloom_join_range_agrees(range, index->rd_opfamily[i],
									  index->rd_indcollation[i]))
			return i + 1;
	}
	return 0;
}

/*
 * The blocks that the index leaves.  Of few keys that are far apart, each is looked
 * for by itself, if that takes much less time than to read what is between them.
 */
static TIDBitmap *
scan_index(Relation index, AttrNumber column, PgBloomJoinRange *range,
		   Snapshot snapshot, BlockNumber nblocks)
{
	IndexScanDesc scan = PGBLOOM_BEGINSCAN_BITMAP(index, snapshot, 2);
	int			nlisted = pgbloom_join_range_sort(range);
	TIDBitmap  *bitmap = tbm_create(work_mem * (Size) 1024, NULL);
	ScanKeyData keys[2];
	int64		left;
	int			i;

	pgbloom_join_range_scan_keys(range, -1, column, keys);
	index_rescan(scan, keys, 2, NULL, 0);
	left = index_getbitmap(scan, bitmap) / ROWS_A_BLOCK;
	if (nlisted > 1 && nlisted <= MOST_SINGLE && nlisted * (double) nblocks <
		RANGES_A_BLOCK * (double) left * BrinGetPagesPerRange(index))
	{
		tbm_free(bitmap);
		bitmap = tbm_create(work_mem * (Size) 1024, NULL);
		for (i = 0; i < nlisted; i++)
		{
			pgbloom_join_range_scan_keys(range, i, column, keys);
			index_rescan(scan, keys, 2, NULL, 0);
			index_getbitmap(scan, bitmap);
		}
	}
	index_endscan(scan);
	return bitmap;
}

/*
 * The blocks that may have rows whose value of a column is one of the range, of
 * those that are left; NULL for all.  The scan alone locks no index, and so does
 * not wait for one that is locked, as by REINDEX.  On a replica the index may be
 * gone.
 */
static TIDBitmap *
column_blocks(Relation table, AttrNumber column, PgBloomJoinRange *range,
			  Snapshot snapshot, BlockNumber nblocks, TIDBitmap *left)
{
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = pgbloom_join_try_open(lfirst_oid(lc));
		AttrNumber	index_column;

		if (index == NULL)
			continue;
		index_column = !is_usable_index(index) ? 0 :
			find_index_column(index, column, range);
		if (index_column > 0)
		{
			TIDBitmap  *here = scan_index(index, index_column, range, snapshot,
										  nblocks);

			if (left != NULL)
				tbm_intersect(here, left);
			left = here;
		}
		relation_close(index, AccessShareLock);
	}
	return left;
}

/*
 * Has no transaction ended since the snapshot was taken, and has this one
 * changed nothing?
 */
static bool
is_latest(Snapshot snapshot)
{
	Snapshot	latest;

	InvalidateCatalogSnapshot();
	latest = GetCatalogSnapshot(RelationRelationId);
	return snapshot->xmax == latest->xmax && snapshot->xcnt == latest->xcnt &&
		snapshot->subxcnt == latest->subxcnt &&
		snapshot->curcid == latest->curcid;
}

/* Add a block to the last piece, unless that ends long before it. */
static List *
add_block(List *pieces, BlockNumber block)
{
	PgBloomJoinPiece *piece = pieces == NIL ? NULL : llast(pieces);

	if (piece == NULL || block - piece->end >= LEAST_GAP)
	{
		piece = palloc(sizeof(PgBloomJoinPiece));
		piece->first = block;
		pieces = lappend(pieces, piece);
	}
	piece->end = block + 1;
	return pieces;
}

/*
 * The blocks of some pieces that are in the bitmap, or may have rows which the
 * indexes have not.
 *
 * What summarizes a range, or builds an index, leaves out versions of rows that
 * only older snapshots see: on a primary those that a HOT update has replaced,
 * which may change the column from 16 on; on a replica all that the primary no
 * longer needs.  A block that is still all-visible after the indexes have been
 * read had no such row until then.
 */
static List *
reduce_pieces(List *pieces, TIDBitmap *bitmap, Relation table,
			  bool all_visible_only)
{
	PgBloomBitmapIterator *iterator = PGBLOOM_BITMAP_BEGIN(bitmap);
	TBMIterateResult space;
	TBMIterateResult *page = PGBLOOM_BITMAP_NEXT(iterator, &space);
	List	   *left = NIL;
	Buffer		map = InvalidBuffer;
	ListCell   *lc;

	foreach(lc, pieces)
	{
		PgBloomJoinPiece *piece = lfirst(lc);
		BlockNumber block;

		for (block = piece->first; block < piece->end; block++)
		{
			CHECK_FOR_INTERRUPTS();
			while (page != NULL && page->blockno < block)
				page = PGBLOOM_BITMAP_NEXT(iterator, &space);
			if ((page != NULL && page->blockno == block) ||
				(all_visible_only && !VM_ALL_VISIBLE(table, block, &map)))
				left = add_block(left, block);
		}
	}
	PGBLOOM_BITMAP_END(iterator);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return left;
}

/*
 * The same for the keys of a filter, in terms of the table: returns whether
 * indexes tell something of the pieces, and what they leave of them.  Scans of
 * indexes leave some memory.
 */
bool
pgbloom_join_brin_blocks(ScanState *scan, const PgBloomJoinRanges *filter,
						 List *keys, BlockNumber nblocks, List **pieces)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "join filter blocks",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Relation	table = scan->ss_currentRelation;
	Snapshot	snapshot = scan->ps.state->es_snapshot;
	TIDBitmap  *left = NULL;
	int			i;

	for (i = 0; i < filter->nkeys; i++)
	{
		AttrNumber	column = pgbloom_join_column(list_nth(keys, i));

		if (column > 0)
			left = column_blocks(table, column, filter->ranges[i], snapshot,
								 nblocks, left);
	}
	MemoryContextSwitchTo(caller);
	if (left != NULL)
		*pieces = reduce_pieces(*pieces, left, table,
								(PGBLOOM_HOT_CHANGES_BRIN ||
								 snapshot->takenDuringRecovery) &&
								!is_latest(snapshot));
	MemoryContextDelete(context);
	return left != NULL;
}
