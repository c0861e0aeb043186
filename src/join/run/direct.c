/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  Evaluation of probes without the expression interpreter.
 *
 * A scan that had no qual before pays for one with each row, also when its
 * filter lets all rows pass: the interpreter's steps take longer than the
 * probe.  So where a qual has nothing but probes of columns, its evaluation
 * function is replaced, like those of very simple expressions are by
 * PostgreSQL itself.  Other quals are evaluated as usual.  Without this, a
 * count of a join with few keys, which nearly all rows have, takes 14 % more
 * time.
 *
 * A filter that is larger than the processor's cache makes each probe wait for
 * memory.  A sequential scan knows the visible rows of its page beforehand, so
 * when the first of them is probed, the processor is told to fetch the bits of
 * all of them, side by side.  Without this, a count of a join with a million
 * keys takes a quarter more time.
 *
 * To find the keys of these rows must cost next to nothing.  So it is done for a
 * single number of which the place in a row is always the same, because all
 * columns before it are of fixed length; not for rows with NULLs.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/tupmacs.h"
#include "core/bits.h"
#include "executor/executor.h"
#include "join/run/hash.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Bits of this size, in bytes, are taken to be in the processor's cache. */
#define CACHE_SIZE	(512 * 1024)

/* A probe of columns of a scan. */
typedef struct Probe
{
	PgBloomJoinFilter *filter;
	AttrNumber	columns[PGBLOOM_MAX_JOIN_KEYS];
	int			nkeys;
	AttrNumber	last;			/* of the columns */

	/* for fetching ahead */
	ScanState  *scan;			/* NULL if it is not done */
	int			place;			/* of the key in the data of a row */
	int			length;
	BlockNumber block;			/* of which the bits have been fetched */
} Probe;

/* The probes of a qual. */
typedef struct DirectQual
{
	int			n;
	Probe		probes[FLEXIBLE_ARRAY_MEMBER];
} DirectQual;

/*
 * Fetch the bits that the visible rows of the scan's page need, once for each
 * page.
 */
static void
fetch_ahead(Probe *probe)
{
	const PgBloomJoinFilter *filter = probe->filter;
	HeapScanDesc scan = (HeapScanDesc) probe->scan->ss_currentScanDesc;
	Page		page;
	int			i;

	if (scan->rs_cblock == probe->block)
		return;
	probe->block = scan->rs_cblock;
	if ((scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) == 0 ||
		bf_geometry_size(&filter->geometry) <= CACHE_SIZE)
		return;
	page = BufferGetPage(scan->rs_cbuf);
	for (i = 0; i < (int) scan->rs_ntuples; i++)
	{
		ItemId		item = PageGetItemId(page, scan->rs_vistuples[i]);
		HeapTupleHeader row = (HeapTupleHeader) PageGetItem(page, item);
		Datum		key;

		if ((row->t_infomask & HEAP_HASNULL) != 0 ||
			HeapTupleHeaderGetNatts(row) < probe->columns[0])
			continue;
		key = fetch_att((char *) row + row->t_hoff + probe->place, true,
						probe->length);
		bf_bits_prefetch(&filter->geometry, filter->bits,
						 pgbloom_join_hash(&probe->filter->outer[0], key, 0),
						 false);
	}
}

/* All columns are read at once, which is faster than one by one. */
static bool
probe_slot(Probe *probe, TupleTableSlot *slot)
{
	NullableDatum keys[PGBLOOM_MAX_JOIN_KEYS];
	int			i;

	slot_getsomeattrs(slot, probe->last);
	for (i = 0; i < probe->nkeys; i++)
		keys[i].value = slot_getattr(slot, probe->columns[i],
									 &keys[i].isnull);
	return pgbloom_join_contains(probe->filter, keys);
}

/* Do all of the filters let the row pass? */
static pg_noinline bool
probe_row(DirectQual *qual, TupleTableSlot *slot)
{
	int			i;

	for (i = 0; i < qual->n; i++)
	{
		Probe	   *probe = &qual->probes[i];

		if (probe->filter->skip > 0)
		{
			probe->filter->skip--;
			continue;
		}
		if (probe->scan != NULL && !probe->filter->sampling)
			fetch_ahead(probe);
		if (!probe_slot(probe, slot))
			return false;
	}
	return true;
}

/*
 * Most rows of a filter that takes samples end here.  This way out before the
 * loop saves 2 % of a count of a join of which nearly all rows match.
 */
static Datum
eval_probes(ExprState *state, ExprContext *econtext, bool *isnull)
{
	DirectQual *qual = state->evalfunc_private;
	PgBloomJoinFilter *first = qual->probes[0].filter;

	*isnull = false;
	if (qual->n == 1 && first->skip > 0)
	{
		first->skip--;
		return BoolGetDatum(true);
	}
	return BoolGetDatum(probe_row(qual, econtext->ecxt_scantuple));
}

/*
 * Prepare to fetch ahead, if the key is a number at the same place in all rows
 * of a heap, apart from those with NULLs.
 */
static void
init_ahead(Probe *probe, ScanState *scan)
{
	TupleDesc	descriptor;
	int			i;

	if (!IsA(scan, SeqScanState) || probe->nkeys != 1 ||
		probe->filter->outer[0].method > PGBLOOM_JOIN_INT64 ||
		scan->ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return;
	descriptor = RelationGetDescr(scan->ss_currentRelation);
	for (i = 0; i < probe->columns[0]; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);

		if (column->attlen <= 0)
			return;
		probe->place = att_align_nominal(probe->place + probe->length,
										 column->attalign);
		probe->length = column->attlen;
		if (i == probe->columns[0] - 1 && column->attbyval)
			probe->scan = scan;
	}
}

/* Fill in a probe from its call; returns false if the qual is another one. */
static bool
init_probe(Probe *probe, Node *qual, MemoryContext query)
{
	FuncExpr   *call = (FuncExpr *) qual;
	ListCell   *lc;

	probe->block = InvalidBlockNumber;
	probe->filter = pgbloom_join_find(query, qual);
	if (!OidIsValid(probe->filter->function))
		return false;
	for_each_from(lc, call->args, 1)
	{
		AttrNumber	column = pgbloom_join_column(lfirst(lc));

		if (column == 0)
			return false;
		probe->columns[probe->nkeys++] = column;
		probe->last = Max(probe->last, column);
	}
	return true;
}

/* Replace the evaluation of a scan's qual if it has nothing but probes. */
void
pgbloom_join_evaluate_directly(PlanState *state)
{
	List	   *quals = state->plan->qual;
	DirectQual *direct;
	ListCell   *lc;

	direct = palloc0(offsetof(DirectQual, probes) +
					 sizeof(Probe) * list_length(quals));
	foreach(lc, quals)
	{
		Probe	   *probe = &direct->probes[direct->n++];

		if (!init_probe(probe, lfirst(lc), state->state->es_query_cxt))
		{
			pfree(direct);
			return;
		}
		init_ahead(probe, (ScanState *) state);
	}
	state->qual->evalfunc = eval_probes;
	state->qual->evalfunc_private = direct;
}
