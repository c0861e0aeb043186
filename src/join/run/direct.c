/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  Evaluation of probes, without the expression interpreter.
 *
 * A scan that had no qual before pays for one with each row, also when its
 * filter lets all rows pass: the interpreter's steps take longer than the
 * probe.  So the evaluation function of a qual with probes is replaced, like
 * those of very simple expressions are by PostgreSQL itself.  Without this, a
 * count of a join with few keys, which nearly all rows have, takes 14 % more
 * time.
 *
 * The conditions of the query come first, in an expression of their own: a row
 * that they drop is not read up to its keys.
 *
 * A filter that is larger than the processor's cache makes each probe wait for
 * memory.  A sequential scan knows the visible rows of its page beforehand, so
 * when the first of them is probed, the processor is told to fetch the bits of
 * all of them, side by side.  Without this, a count of a join with a million
 * keys takes a quarter more time.
 *
 * To find the keys of these rows must cost next to nothing.  So it is done for a
 * single number of which the place in a row is always the same, because all
 * columns before it are of fixed length; not for rows with NULLs, nor where the
 * query has conditions that drop some of the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/tupmacs.h"
#include "core/bits.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "join/run/hash.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Bits of this size, in bytes, are taken to be in the processor's cache. */
#define CACHE_SIZE	(512 * 1024)

/* A probe by a scan. */
typedef struct Probe
{
	PgBloomJoinFilter *filter;
	PgBloomJoinReader reader;

	/* for fetching ahead */
	ScanState  *scan;			/* NULL if it is not done */
	int			place;			/* of the key in the data of a row */
	int			length;
	BlockNumber block;			/* of which the bits have been fetched */
} Probe;

/* A qual with probes. */
typedef struct ProbingQual
{
	ExprState  *conditions;		/* of the query, or NULL */
	int			n;
	Probe		probes[FLEXIBLE_ARRAY_MEMBER];
} ProbingQual;

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
			HeapTupleHeaderGetNatts(row) < probe->reader.columns[0])
			continue;
		key = fetch_att((char *) row + row->t_hoff + probe->place, true,
						probe->length);
		bf_bits_prefetch(&filter->geometry, filter->bits,
						 pgbloom_join_hash(&probe->filter->outer[0], key, 0),
						 false);
	}
}

/* Do all of the filters let the row pass? */
static pg_noinline bool
probe_row(ProbingQual *qual, ExprContext *econtext)
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
		if (!pgbloom_join_contains(probe->filter, &probe->reader,
								   econtext->ecxt_scantuple, econtext))
			return false;
	}
	return true;
}

/*
 * Most rows of a filter that takes samples end here.  This way out before the
 * loop saves 2 % of a count of a join of which nearly all rows match.
 */
static Datum
eval_qual(ExprState *state, ExprContext *econtext, bool *isnull)
{
	ProbingQual *qual = state->evalfunc_private;
	PgBloomJoinFilter *first = qual->probes[0].filter;

	if (qual->conditions != NULL &&
		!DatumGetBool(ExecEvalExpr(qual->conditions, econtext, isnull)))
		return BoolGetDatum(false);
	*isnull = false;
	if (qual->n == 1 && first->skip > 0)
	{
		first->skip--;
		return BoolGetDatum(true);
	}
	return BoolGetDatum(probe_row(qual, econtext));
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

	if (!IsA(scan, SeqScanState) || probe->reader.n != 1 ||
		probe->filter->outer[0].method > PGBLOOM_JOIN_INT64 ||
		scan->ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return;
	descriptor = RelationGetDescr(scan->ss_currentRelation);
	for (i = 0; i < probe->reader.columns[0]; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);

		if (column->attlen <= 0)
			return;
		probe->place = att_align_nominal(probe->place + probe->length,
										 column->attalign);
		probe->length = column->attlen;
		if (i == probe->reader.columns[0] - 1 && column->attbyval)
			probe->scan = scan;
	}
}

/*
 * Replace the evaluation of a scan's qual if it has probes.  The expression of
 * the other conditions adds their subplans to those of the scan, which has them
 * already.  A compiled qual is not compiled twice: it is evaluated as a whole, as
 * the calls of bloom_join_probe() at its end return true.
 */
void
pgbloom_join_evaluate_directly(PlanState *state)
{
	List	   *conditions = NIL;
	int			nsubplans = list_length(state->subPlan);
	ProbingQual *qual;
	ListCell   *lc,
			   *arg;
	int			i;

	qual = palloc0(offsetof(ProbingQual, probes) +
				   sizeof(Probe) * list_length(state->plan->qual));
	foreach(lc, state->plan->qual)
	{
		Probe	   *probe = &qual->probes[qual->n];

		probe->filter = pgbloom_join_find(state->state->es_query_cxt,
										  lfirst(lc));
		if (!OidIsValid(probe->filter->function))
		{
			conditions = lappend(conditions, lfirst(lc));
			continue;
		}
		for_each_from(arg, lfirst_node(FuncExpr, lc)->args, 1)
		{
			pgbloom_join_add_key(&probe->reader, lfirst(arg), state);
			if (IsA(lfirst(arg), FuncExpr) && probe->filter->most_passed < 1)
				probe->filter->most_passed = PGBLOOM_JOIN_MOST_PASSED_SLOW;
		}
		probe->block = InvalidBlockNumber;
		qual->n++;
	}
	if (qual->n == 0)
		return;
	for (i = 0; i < qual->n && conditions == NIL; i++)
		init_ahead(&qual->probes[i], (ScanState *) state);
	if (conditions != NIL && (state->state->es_jit_flags & PGJIT_EXPR) != 0)
	{
		qual->conditions = state->qual;
		state->qual = makeNode(ExprState);
		state->qual->flags = qual->conditions->flags;
	}
	else if (conditions != NIL)
	{
		qual->conditions = ExecInitQual(conditions, state);
		state->subPlan = list_truncate(state->subPlan, nsubplans);
	}
	state->qual->evalfunc = eval_qual;
	state->qual->evalfunc_private = qual;
}
