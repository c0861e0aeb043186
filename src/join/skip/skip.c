/*-------------------------------------------------------------------------
 *
 * skip.c
 *	  Scans that are not started, because no row of them can have a match.
 *
 * A join with a filter reads its inner side first, so all keys are known when
 * the scan is asked for its first row.  If the bounds of a partition contradict
 * them, or an index of the table has none of them, the scan returns no row and
 * reads nothing; nor does it ask a foreign server.
 *
 * PlanState.ExecProcNodeReal of the scan is replaced by a gate.  When it is
 * called, it either restores the real function, after it may have set which
 * blocks are read, or it stays, and returns no row while the filter lasts.
 *
 * Rows of a group below aggregates must all pass or all be dropped.  A row
 * that the bits let pass by mistake may be in a scan that is read, and another
 * one of its group in a scan that is skipped.  So these scans have no gates.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/heapam.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "executor/execAsync.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "nodes/nodeFuncs.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#define MIN_BLOCKS			8

/* A filter that may close a gate. */
typedef struct GateFilter
{
	PgBloomJoinFilter *filter;
	List	   *keys;			/* of the relation */
	List	   *ancestors;		/* if the relation is a partition */
	Oid		   *indexes;		/* to be asked for the keys; NULL if none */
} GateFilter;

/* A scan that may not have to be read, or not as a whole. */
typedef struct Gate
{
	ScanState  *scan;
	ExecProcNodeMtd read_scan;	/* the real function */
	ForeignAsyncRequest_function request;	/* that of an asynchronous scan */
	List	   *filters;		/* of GateFilter */
	bool		has_brin;		/* the relation has a BRIN index */
	List	   *pieces;			/* of blocks that are still to be read */
	PgBloomJoinFilter *closed_by;	/* NULL if the scan has to be read */
} Gate;

static TupleTableSlot *exec_gate(PlanState *state);
static void request_gate(AsyncRequest *request);

/*
 * A filter of the scan that this condition probes, or NULL if it leaves nothing
 * unread.  What an index has would tell of hidden rows.
 */
static GateFilter *
make_gate_filter(ScanState *scan, Node *qual, const Bitmapset *limiting)
{
	PgBloomJoinFilter *filter = pgbloom_join_find(scan->ps.state->es_query_cxt,
												  qual);
	PgBloomJoinRanges *ranges = &filter->ranges;
	GateFilter *result;
	List	   *keys;
	Oid		   *indexes = NULL;
	bool		ordered;
	ListCell   *lc;

	if (!ranges->usable)
		return NULL;
	keys = list_copy_tail(((FuncExpr *) qual)->args, 1);
	ordered = pgbloom_join_is_partition_by(scan->ss_currentRelation, keys,
										   &ranges->ancestors);
	foreach(lc, keys)
		ordered |= !ranges->hides_rows &&
		bms_is_member(pgbloom_join_column(lfirst(lc)) -
					  FirstLowInvalidHeapAttributeNumber, limiting);
	if (!ranges->hides_rows)
		indexes = pgbloom_join_find_indexes(scan, keys);
	if (!ordered && indexes == NULL)
		return NULL;
	result = palloc0(sizeof(GateFilter));
	result->filter = filter;
	result->keys = keys;
	result->ancestors = ranges->ancestors;
	result->indexes = indexes;
	pgbloom_join_want_ranges(ranges, ordered);
	return result;
}

/*
 * Append does not execute an asynchronous scan, but sends it requests, by a
 * function that is replaced instead.
 */
static void
close_gate(Gate *gate)
{
	ForeignScanState *scan = (ForeignScanState *) gate->scan;

	if (gate->scan->ps.plan->async_capable)
	{
		FdwRoutine *routine = palloc(sizeof(FdwRoutine));

		*routine = *scan->fdwroutine;
		scan->fdwroutine = routine;
		gate->request = routine->ForeignAsyncRequest;
		routine->ForeignAsyncRequest = request_gate;
	}
	gate->read_scan = gate->scan->ps.ExecProcNodeReal;
	ExecSetExecProcNode(&gate->scan->ps, exec_gate);
}

/* Restore the real function, in the middle of a call of the gate. */
static void
open_gate(Gate *gate)
{
	PlanState  *state = &gate->scan->ps;

	if (gate->request != NULL)
		((ForeignScanState *) state)->fdwroutine->ForeignAsyncRequest =
			gate->request;
	state->ExecProcNodeReal = gate->read_scan;
	if (state->ExecProcNode == exec_gate)
		state->ExecProcNode = gate->read_scan;
}

/*
 * Is a table read faster than it is proved to have no match?  If it was large
 * when it was analyzed, its file is not opened before it is read.
 */
static bool
is_small(Relation table)
{
	int			least = pgbloom_join_filters == PGBLOOM_JOIN_FORCE ? 1 : MIN_BLOCKS;

	return RELKIND_HAS_STORAGE(table->rd_rel->relkind) &&
		table->rd_rel->relpages < least &&
		RelationGetNumberOfBlocks(table) < (BlockNumber) least;
}

/*
 * Put a gate before the scan, at the start of an execution, if there is a
 * filter that may close it.  A scan that another extension has added may be met
 * again.
 */
void
pgbloom_join_gate_scan(ScanState *scan)
{
	MemoryContext query = scan->ps.state->es_query_cxt;
	Bitmapset  *limiting;
	List	   *filters = NIL;
	Gate	   *gate;
	ListCell   *lc;

	if ((!IsA(scan, SeqScanState) && !IsA(scan, ForeignScanState)) ||
		scan->ss_currentRelation == NULL ||
		pgbloom_join_recall(scan, 0) != NULL)
		return;
	if (is_small(scan->ss_currentRelation) ||
		(!scan->ss_currentRelation->rd_rel->relhasindex &&
		 !scan->ss_currentRelation->rd_rel->relispartition))
		return;
	limiting = pgbloom_join_limiting_columns(scan);
	foreach(lc, scan->ps.plan->qual)
	{
		GateFilter *filter = make_gate_filter(scan, lfirst(lc), limiting);

		if (filter != NULL)
			filters = lappend(filters, filter);
	}
	if (filters == NIL)
		return;
	gate = palloc0(sizeof(Gate));
	gate->scan = scan;
	gate->filters = filters;

	/* The number of blocks tells of the values of hidden rows. */
	gate->has_brin = limiting != NULL &&
		!((GateFilter *) linitial(filters))->filter->ranges.hides_rows;
	pgbloom_join_remember(query, scan, 0, gate);
	close_gate(gate);
}

/*
 * Do the keys of this filter contradict the bounds of the partition, or has the
 * table none of them by its indexes?
 */
static bool
is_ruled_out(Gate *gate, GateFilter *filter)
{
	MemoryContext row = gate->scan->ps.ps_ExprContext->ecxt_per_tuple_memory;
	MemoryContext caller = MemoryContextSwitchTo(row);
	PgBloomJoinRanges *ranges = &filter->filter->ranges;
	PgBloomJoinCounts *counts = filter->filter->counts;
	Relation	table = gate->scan->ss_currentRelation;
	bool		result = ranges->ordered &&
		pgbloom_join_partition_refuted(table, filter->ancestors,
									   gate->scan->ps.state->es_snapshot,
									   ranges, filter->keys);

	if (!result && filter->indexes != NULL)
	{
		result = pgbloom_join_indexes_refute(gate->scan, ranges,
											 filter->indexes);
		counts->by_index += result;
	}
	counts->scans++;
	counts->skipped += result;
	MemoryContextSwitchTo(caller);
	MemoryContextReset(row);
	return result;
}

static uint64
count_blocks(List *pieces)
{
	uint64		n = 0;
	ListCell   *lc;

	foreach(lc, pieces)
	{
		PgBloomJoinPiece *piece = lfirst(lc);

		n += piece->end - piece->first;
	}
	return n;
}

/*
 * Ask the filters whether there is anything to read, and for the blocks that may
 * have a match.
 */
static bool
is_left(Gate *gate)
{
	Relation	table = gate->scan->ss_currentRelation;
	PgBloomJoinPiece all = {0, RELKIND_HAS_STORAGE(table->rd_rel->relkind) ?
	RelationGetNumberOfBlocks(table) : 0};
	List	   *pieces = list_make1(&all);
	ListCell   *lc;

	foreach(lc, gate->filters)
	{
		GateFilter *filter = lfirst(lc);
		PgBloomJoinCounts *counts = filter->filter->counts;
		uint64		before = count_blocks(pieces);
		bool		asked = table->rd_rel->relispartition ||
			filter->indexes != NULL;

		if (!filter->filter->ranges.complete)
			continue;
		if (asked && is_ruled_out(gate, filter))
			pieces = NIL;
		else if (gate->has_brin && all.end > 0)
			asked |= pgbloom_join_brin_blocks(gate->scan,
											  &filter->filter->ranges,
											  filter->keys, all.end, &pieces);
		if (asked)
		{
			counts->blocks += before;
			counts->blocks_read += count_blocks(pieces);
		}
		if (pieces == NIL)
		{
			gate->closed_by = filter->filter;
			return false;
		}
	}
	if (count_blocks(pieces) < all.end)
		gate->pieces = pieces;
	return true;
}

/* Let the scan read the next piece of its blocks. */
static void
read_next_piece(Gate *gate)
{
	ScanState  *scan = gate->scan;
	PgBloomJoinPiece *piece = linitial(gate->pieces);

	gate->pieces = list_delete_first(gate->pieces);
	if (scan->ss_currentScanDesc != NULL)
		table_endscan(scan->ss_currentScanDesc);
	scan->ss_currentScanDesc =
		table_beginscan_strat(scan->ss_currentRelation,
							  scan->ps.state->es_snapshot, 0, NULL, true, false);
	heap_setscanlimits(scan->ss_currentScanDesc, piece->first,
					   piece->end - piece->first);
}

/* Does the scan read a piece?  One that is repeated has no limits. */
static bool
reads_piece(const Gate *gate)
{
	return ((HeapScanDesc) gate->scan->ss_currentScanDesc)->rs_numblocks !=
		InvalidBlockNumber;
}

/*
 * May the scan return rows?  A gate that is closed stays so while its filter
 * lasts.  One that is open is not asked again: when the scan is repeated, it
 * reads all blocks.
 */
static bool
pass_gate(Gate *gate)
{
	if (gate->pieces != NIL)
		return true;
	if (gate->closed_by != NULL && gate->closed_by->ranges.complete)
		return false;
	if (gate->closed_by == NULL && !is_left(gate))
		return false;
	if (gate->pieces != NIL)
		read_next_piece(gate);
	if (gate->pieces == NIL)
		open_gate(gate);
	return true;
}

/* The scan's ForeignAsyncRequest until it is read. */
static void
request_gate(AsyncRequest *request)
{
	Gate	   *gate = pgbloom_join_recall(request->requestee, 0);

	if (pass_gate(gate))
		gate->request(request);
	else
		ExecAsyncRequestDone(request, NULL);
}

/*
 * The scan's ExecProcNode until its last piece is read.  Hash joins are not
 * executed backward, nor what is below them.
 */
static TupleTableSlot *
exec_gate(PlanState *state)
{
	Gate	   *gate = pgbloom_join_recall(state, 0);
	TupleTableSlot *slot;

	if (!pass_gate(gate))
		return NULL;
	slot = gate->read_scan(state);
	while (TupIsNull(slot) && gate->pieces != NIL && reads_piece(gate))
	{
		read_next_piece(gate);
		if (gate->pieces == NIL)
			open_gate(gate);
		slot = gate->read_scan(state);
	}
	return slot;
}
