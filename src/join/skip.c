/*-------------------------------------------------------------------------
 *
 * skip.c
 *	  Scans that are not started, because no row of them can have a match.
 *
 * The keys of a join filter are known before the outer side is read.  If the
 * bounds of a partition contradict them, the scan returns no row and reads
 * nothing; nor does it ask a foreign server.
 *
 * PlanState.ExecProcNodeReal of the scan is replaced by a gate.  The gate
 * decides when the filter is complete.  Then it either restores the real
 * function, or stays, until the filter is built again: it returns no row, or
 * lets some blocks be read, which have to be set again for each rescan.
 *
 * Rows of a group below aggregates must all pass or all be dropped.  A row
 * that the bits let pass by mistake may be in a scan that is read, and another
 * one of its group in a scan that is skipped.  So these scans have no gates.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "executor/execAsync.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "foreign/fdwapi.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "storage/bufmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A filter that may close a gate. */
typedef struct GateFilter
{
	PgBloomJoinFilter *filter;
	List	   *between;		/* NIL if there are none */
	List	   *keys;			/* of the relation, or NULL for one that is
								 * not */
	int			number;			/* among the scans of the filter, or -1 if it
								 * is not that of a partition */
	uint32		decided;		/* for this build of the filter; 0 for none */
	bool		refuted;
} GateFilter;

/* A scan that may not have to be read, or not as a whole. */
typedef struct Gate
{
	ScanState  *scan;			/* the key of the hash table */
	bool		closed;
	ExecProcNodeMtd read_scan;	/* the real function */
	ForeignAsyncRequest_function request;	/* that of an asynchronous scan */
	List	   *filters;		/* of GateFilter */
	bool		has_brin;		/* the relation has a BRIN index */
	int			nreturned;		/* rows before all filters were complete */
	ItemPointerData returned;	/* the last of them */
	bool		again;			/* it may come again */
	bool		limited;		/* to these blocks */
	BlockNumber first;
	BlockNumber nblocks;
	bool		rebuilt;		/* a filter, since the blocks were chosen */
} Gate;

static HTAB *gates = NULL;		/* of the backend, by their scan */
static Gate *last_gate = NULL;	/* that was looked up */

static TupleTableSlot *exec_gate(PlanState *state);
static void request_gate(AsyncRequest *request);

/* The key of a probe in terms of the relation, as constraints are, or NULL. */
static Expr *
relation_key(ScanState *state, Expr *key)
{
	Scan	   *scan = (Scan *) state->ps.plan;

	if (IsA(scan, IndexOnlyScan))
	{
		Var		   *var = (Var *) pgbloom_join_strip_relabel(key);
		TargetEntry *entry;

		if (!IsA(var, Var) || (Expr *) var != key)
			return NULL;
		entry = get_tle_by_resno(((IndexOnlyScan *) scan)->indextlist,
								 var->varattno);
		if (entry == NULL)
			return NULL;
		key = entry->expr;
	}
	key = copyObject(key);
	ChangeVarNodes((Node *) key, scan->scanrelid, 1, 0);
	return key;
}

/* A filter of the scan that this condition probes, or NULL. */
static GateFilter *
make_gate_filter(ScanState *scan, Node *qual, const Bitmapset *limiting)
{
	FuncExpr   *call = (FuncExpr *) qual;
	PgBloomJoinFilter *filter = pgbloom_join_find(scan->ps.state->es_query_cxt,
												  qual);
	GateFilter *result;
	List	   *keys = NIL;
	Bitmapset  *columns = NULL;
	bool		constrained;
	ListCell   *lc;

	if (!OidIsValid(filter->function) || filter->grouped)
		return NULL;
	for_each_from(lc, call->args, 1)
		keys = lappend(keys, relation_key(scan, lfirst(lc)));
	pull_varattnos((Node *) keys, 1, &columns);
	constrained = scan->ss_currentRelation->rd_rel->relispartition;
	if (!constrained &&
		(filter->hides_rows || !bms_overlap(columns, limiting)))
		return NULL;
	result = palloc0(sizeof(GateFilter));
	result->filter = filter;
	result->between = pgbloom_join_find_between(filter, (Node *) call);
	result->keys = keys;
	result->number = constrained ? filter->nscans++ : -1;
	pgbloom_join_want_ranges(filter);
	return result;
}

static void
close_gate(Gate *gate)
{
	gate->closed = true;
	if (gate->request != NULL)
		((ForeignScanState *) gate->scan)->fdwroutine->ForeignAsyncRequest =
			request_gate;
	else
	{
		gate->read_scan = gate->scan->ps.ExecProcNodeReal;
		ExecSetExecProcNode(&gate->scan->ps, exec_gate);
	}
}

/*
 * The filter is going to be built again, so decide again.  This may come in the
 * middle of the scan, before or after the one that starts the scan again.  Until
 * then no row must be forgotten that has been returned, and the blocks remain
 * right, since the filter is built of the same rows.
 */
void
pgbloom_join_close_gates(PgBloomJoinFilter *filter)
{
	ListCell   *lc;

	foreach(lc, filter->gates)
	{
		Gate	   *gate = lfirst(lc);

		gate->rebuilt = gate->limited;
		if (gate->closed)
			continue;
		gate->nreturned = 2;	/* at least, for what is known */
		close_gate(gate);
	}
}

/* Restore the real function, in the middle of a call of the gate. */
static void
open_gate(Gate *gate)
{
	PlanState  *state = &gate->scan->ps;

	gate->closed = false;
	if (gate->request != NULL)
		((ForeignScanState *) state)->fdwroutine->ForeignAsyncRequest =
			gate->request;
	else
	{
		state->ExecProcNodeReal = gate->read_scan;
		if (state->ExecProcNode == exec_gate)
			state->ExecProcNode = gate->read_scan;
	}
}

static Gate *
find_gate(PlanState *scan)
{
	if (gates != NULL &&
		(last_gate == NULL || &last_gate->scan->ps != scan))
		last_gate = hash_search(gates, &scan, HASH_FIND, NULL);
	return last_gate;
}

static void
forget_gate(void *scan)
{
	last_gate = NULL;
	hash_search(gates, &scan, HASH_REMOVE, NULL);
}

/* Keep a copy of the gate while the execution lasts. */
static Gate *
remember_gate(const Gate *gate)
{
	MemoryContext query = gate->scan->ps.state->es_query_cxt;
	MemoryContextCallback *callback = MemoryContextAlloc(query,
														 sizeof(*callback));
	HASHCTL		control;
	Gate	   *result;

	control.keysize = sizeof(ScanState *);
	control.entrysize = sizeof(Gate);
	if (gates == NULL)
		gates = hash_create("join filter gates", 64, &control,
							HASH_ELEM | HASH_BLOBS);
	result = hash_search(gates, &gate->scan, HASH_ENTER, NULL);
	*result = *gate;
	callback->func = forget_gate;
	callback->arg = gate->scan;
	MemoryContextRegisterResetCallback(query, callback);
	return result;
}

/* Is this a scan that can be skipped? */
static bool
is_table_scan(PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_SeqScanState:
		case T_IndexScanState:
		case T_IndexOnlyScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
		case T_ForeignScanState:
			return ((ScanState *) state)->ss_currentRelation != NULL;
		default:
			return false;
	}
}

/*
 * Append does not execute an asynchronous scan, but sends it requests, by a
 * function that is replaced instead.
 */
static void
prepare_async_requests(Gate *gate)
{
	ForeignScanState *scan = (ForeignScanState *) gate->scan;
	FdwRoutine *routine = palloc(sizeof(FdwRoutine));

	*routine = *scan->fdwroutine;
	scan->fdwroutine = routine;
	gate->request = routine->ForeignAsyncRequest;
}

/*
 * Put a gate before the scan, at the start of an execution, if there is a
 * filter that may close it.
 */
void
pgbloom_join_gate_scan(const PgBloomJoinAncestor *node)
{
	PlanState  *state = node->state;
	Gate		new_gate = {.scan = (ScanState *) state};
	Gate	   *gate;
	Bitmapset  *limiting;
	ListCell   *lc;

	/* A scan that another extension has added may be met again. */
	if (!is_table_scan(state) || find_gate(state) != NULL)
		return;
	limiting = pgbloom_join_limiting_columns(new_gate.scan);
	new_gate.has_brin = limiting != NULL;
	if (!new_gate.has_brin &&
		!new_gate.scan->ss_currentRelation->rd_rel->relispartition)
		return;
	foreach(lc, state->plan->qual)
	{
		GateFilter *filter = make_gate_filter(new_gate.scan, lfirst(lc),
											  limiting);

		if (filter != NULL)
			new_gate.filters = lappend(new_gate.filters, filter);
	}
	if (new_gate.filters == NIL)
		return;
	gate = remember_gate(&new_gate);
	foreach(lc, gate->filters)
	{
		PgBloomJoinFilter *filter = ((GateFilter *) lfirst(lc))->filter;

		/* The number of blocks tells of the values of hidden rows. */
		gate->has_brin &= !filter->hides_rows;

		filter->gates = lappend(filter->gates, gate);
		if (IsA(state, ForeignScanState))
			pgbloom_join_read_inner_sides_first(node, filter);
	}
	if (state->plan->async_capable)
		prepare_async_requests(gate);
	close_gate(gate);
}

/*
 * Decide whether the filter closes the gate; returns false if it is too early.
 */
static bool
decide_gate(Gate *gate, GateFilter *filter)
{
	MemoryContext context,
				caller;

	if (!pgbloom_join_is_complete(filter->filter) ||
		(filter->between != NIL &&
		 !pgbloom_join_between_started(filter->between)))
		return false;
	if (filter->decided == filter->filter->generation)
		return true;
	filter->refuted = false;
	if (filter->number >= 0)
	{
		context = AllocSetContextCreate(CurrentMemoryContext,
										"join filter gate",
										ALLOCSET_DEFAULT_SIZES);
		caller = MemoryContextSwitchTo(context);
		filter->refuted =
			pgbloom_join_partition_refuted(gate->scan->ss_currentRelation,
										   gate->scan->ps.state->es_snapshot,
										   filter->filter, filter->keys);
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
		pgbloom_join_count_scan(filter->filter, filter->number,
								filter->refuted);
	}
	filter->decided = filter->filter->generation;
	return true;
}

/*
 * Let the scan read only the blocks that may have a match.
 *
 * A row may have been read before the filters were complete.  Then the scan
 * begins again, and that row must not be returned a second time.
 */
static void
limit_blocks(Gate *gate)
{
	Relation	table = gate->scan->ss_currentRelation;
	EState	   *estate = gate->scan->ps.state;
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	BlockNumber first = 0;
	BlockNumber last = nblocks - 1;
	ListCell   *lc;

	if (nblocks == 0 || gate->nreturned > 1)
		return;
	foreach(lc, gate->filters)
	{
		GateFilter *filter = lfirst(lc);

		if (!pgbloom_join_brin_blocks(gate->scan, filter->filter, filter->keys,
									  &first, &last))
			continue;
		filter->filter->counts->blocks += nblocks;
		if (first <= last)
			filter->filter->counts->blocks_read += last - first + 1;
	}
	if (first == 0 && last == nblocks - 1)
		return;
	gate->limited = true;
	gate->first = first;
	gate->nblocks = first > last ? 0 : last - first + 1;
	if (gate->nblocks == 0)
		return;
	if (gate->scan->ss_currentScanDesc != NULL)
		table_endscan(gate->scan->ss_currentScanDesc);
	gate->scan->ss_currentScanDesc =
		table_beginscan_strat(table, estate->es_snapshot, 0, NULL, true,
							  false);
	gate->again = gate->nreturned == 1 &&
		ItemPointerGetBlockNumber(&gate->returned) >= first &&
		ItemPointerGetBlockNumber(&gate->returned) <= last;
}

/* Read some blocks, without a row that has been returned. */
static TupleTableSlot *
read_limited(Gate *gate)
{
	PlanState  *state = &gate->scan->ps;
	HeapScanDesc scan = (HeapScanDesc) gate->scan->ss_currentScanDesc;
	TupleTableSlot *slot;

	if (gate->nblocks == 0)
		return NULL;
	if (scan->rs_numblocks == InvalidBlockNumber)
		heap_setscanlimits(&scan->rs_base, gate->first, gate->nblocks);
	slot = gate->read_scan(state);
	if (gate->again && !TupIsNull(slot) &&
		ItemPointerEquals(&gate->scan->ss_ScanTupleSlot->tts_tid,
						  &gate->returned))
	{
		gate->again = false;
		slot = gate->read_scan(state);
	}
	return slot;
}

/* Let the scan return a row before all of its filters are complete. */
static TupleTableSlot *
read_early(Gate *gate)
{
	TupleTableSlot *slot = gate->read_scan(&gate->scan->ps);

	if (!TupIsNull(slot))
	{
		gate->nreturned = Min(gate->nreturned + 1, 2);
		gate->returned = gate->scan->ss_ScanTupleSlot->tts_tid;
	}
	return slot;
}

/* Does a filter refute all rows?  If not, sets whether all are decided. */
static bool
is_refuted(Gate *gate, bool *all)
{
	ListCell   *lc;

	*all = true;
	foreach(lc, gate->filters)
	{
		GateFilter *filter = lfirst(lc);

		if (!decide_gate(gate, filter))
			*all = false;
		else if (filter->refuted)
			return true;
	}
	return false;
}

/* The scan's ForeignAsyncRequest until all of its filters have been asked. */
static void
request_gate(AsyncRequest *request)
{
	Gate	   *gate = find_gate(request->requestee);
	bool		all;

	if (is_refuted(gate, &all))
	{
		ExecAsyncRequestDone(request, NULL);
		return;
	}
	if (all)
		open_gate(gate);
	gate->request(request);
}

/* The scan's ExecProcNode until all of its filters have been asked. */
static TupleTableSlot *
exec_gate(PlanState *state)
{
	Gate	   *gate = find_gate(state);
	bool		all;

	/* A rescan has cleared the slot: no row of this one has been returned. */
	if (TTS_EMPTY(gate->scan->ss_ScanTupleSlot))
	{
		gate->nreturned = 0;
		gate->again = false;
		gate->limited &= !gate->rebuilt;
		gate->rebuilt = false;
	}
	if (!gate->limited)
	{
		if (is_refuted(gate, &all))
			return NULL;
		if (!all)
			return read_early(gate);
		if (gate->has_brin)
			limit_blocks(gate);
	}
	if (gate->limited)
		return read_limited(gate);
	open_gate(gate);
	return gate->read_scan(state);
}
