/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  Evaluation of probes without the expression interpreter.
 *
 * A scan that had no qual before pays for one with each row, also when its
 * filter lets all rows pass: the interpreter's steps take longer than the
 * probe.  So where a qual has nothing but probes of columns, its evaluation
 * function is replaced, like those of very simple expressions are by
 * PostgreSQL itself.  Other quals are evaluated as usual.  In sequential scans,
 * the rows of a page are then probed ahead, see page.c; without the two, a count
 * of a join with a million keys takes 9 % more time.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

/* The probes of a qual. */
typedef struct DirectQual
{
	ScanState  *pages;			/* the scan, if it knows the rows of a page */
	int			n;
	PgBloomJoinProbe probes[FLEXIBLE_ARRAY_MEMBER];
} DirectQual;

/* Probe the columns of the row in the slot. */
static bool
probe_slot(PgBloomJoinProbe *probe, TupleTableSlot *slot)
{
	NullableDatum keys[PGBLOOM_MAX_JOIN_KEYS];
	int			i;

	for (i = 0; i < probe->nkeys; i++)
		keys[i].value = slot_getattr(slot, probe->columns[i],
									 &keys[i].isnull);
	return pgbloom_join_contains(probe->filter, keys);
}

static Datum
eval_probes(ExprState *state, ExprContext *econtext, bool *isnull)
{
	DirectQual *qual = state->evalfunc_private;
	TupleTableSlot *slot = econtext->ecxt_scantuple;
	PgBloomJoinProbe *previous = NULL;
	int			i;

	*isnull = false;
	for (i = 0; i < qual->n; i++)
	{
		PgBloomJoinProbe *probe = &qual->probes[i];
		PgBloomJoinFilter *filter = probe->filter;
		PgBloomJoinRow row = PGBLOOM_JOIN_UNKNOWN;
		bool		found;

		if (probe->between != NULL &&
			!pgbloom_join_between_started(probe->between))
			continue;
		if (filter->skip > 0)
		{
			filter->skip--;
			continue;
		}
		if (qual->pages != NULL && filter->bits != NULL && !filter->sampling)
		{
			row = pgbloom_join_probe_ahead(probe, previous, qual->pages, slot);
			previous = probe;
		}
		found = row == PGBLOOM_JOIN_UNKNOWN ? probe_slot(probe, slot) :
			pgbloom_join_count_row(filter, row == PGBLOOM_JOIN_FOUND);
		if (!found)
			return BoolGetDatum(false);
	}
	return BoolGetDatum(true);
}

/* Fill in a probe from its call; returns false if the qual is another one. */
static bool
init_probe(PgBloomJoinProbe *probe, Node *qual, MemoryContext query)
{
	FuncExpr   *call = (FuncExpr *) qual;
	ListCell   *lc;

	probe->block = InvalidBlockNumber;
	probe->filter = pgbloom_join_find(query, qual);
	if (!OidIsValid(probe->filter->function))
		return false;
	probe->between = pgbloom_join_find_between(probe->filter, qual);
	for_each_from(lc, call->args, 1)
	{
		AttrNumber	column = pgbloom_join_column(lfirst(lc));

		if (column == 0)
			return false;
		probe->columns[probe->nkeys++] = column;
	}
	return true;
}

static void
replace_evaluation(PlanState *state)
{
	List	   *quals = state->plan->qual;
	DirectQual *direct;
	ListCell   *lc;

	direct = palloc0(offsetof(DirectQual, probes) +
					 sizeof(PgBloomJoinProbe) * list_length(quals));
	if (pgbloom_join_has_pages(state))
		direct->pages = (ScanState *) state;
	foreach(lc, quals)
	{
		if (!init_probe(&direct->probes[direct->n++], lfirst(lc),
						state->state->es_query_cxt))
			break;
	}
	if (lc == NULL)
	{
		state->qual->evalfunc = eval_probes;
		state->qual->evalfunc_private = direct;
	}
	else
		pfree(direct);
}

/* A node, and which nodes have been prepared, by plan_node_id. */
typedef struct Preparation
{
	PgBloomJoinAncestor node;
	Bitmapset **prepared;
} Preparation;

/*
 * Prepare the probes of a plan.  A subplan in the condition of a partitioned
 * table is reached from each of its partitions, but is one.  The number 0 is that
 * of the top, and of nodes that other extensions have added to the finished plan.
 */
static bool
prepare_probes(PlanState *state, void *context)
{
	const Preparation *above = context;
	Preparation here = {{above->node.state != NULL ? &above->node : NULL, state},
	above->prepared};
	int			id = state->plan->plan_node_id;
	ListCell   *lc;

	if (id != 0 && bms_is_member(id, *here.prepared))
		return false;
	*here.prepared = bms_add_member(*here.prepared, id);
	if (state->plan->qual != NIL && state->qual != NULL)
	{
		foreach(lc, state->plan->qual)
			pgbloom_join_note_between(&here.node, lfirst(lc));
		replace_evaluation(state);
		pgbloom_join_gate_scan(&here.node);
	}
	return planstate_tree_walker(state, prepare_probes, &here);
}

/* Prepare the probes of a plan whose execution has been started. */
void
pgbloom_join_start(PlanState *plan)
{
	MemoryContext context = plan->state->es_query_cxt;
	Bitmapset  *prepared = NULL;
	Preparation top = {{NULL, NULL}, &prepared};

	if (pgbloom_join_has_filters(context))
	{
		context = MemoryContextSwitchTo(context);
		prepare_probes(plan, &top);
		MemoryContextSwitchTo(context);
	}
}
