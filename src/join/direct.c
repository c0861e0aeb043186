/*-------------------------------------------------------------------------
 *
 * direct.c
 *	  Evaluation of probes without the expression interpreter.
 *
 * A scan that had no qual before pays for one with each row, also when its
 * filter lets all rows pass: the interpreter's steps take longer than the
 * probe.  So where a qual has nothing but probes of columns, its evaluation
 * function is replaced, like those of very simple expressions are by
 * PostgreSQL itself.  Other quals are evaluated as usual.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

typedef struct Probe
{
	PgBloomJoinFilter *filter;
	int			nkeys;
	AttrNumber	columns[PGBLOOM_MAX_JOIN_KEYS];
} Probe;

/* The probes of a qual. */
typedef struct DirectQual
{
	int			n;
	Probe		probes[FLEXIBLE_ARRAY_MEMBER];
} DirectQual;

static ExecutorStart_hook_type previous_start;

static Datum
eval_probes(ExprState *state, ExprContext *econtext, bool *isnull)
{
	DirectQual *qual = state->evalfunc_private;
	int			i,
				j;

	*isnull = false;
	for (i = 0; i < qual->n; i++)
	{
		Probe	   *probe = &qual->probes[i];
		NullableDatum keys[PGBLOOM_MAX_JOIN_KEYS];

		if (probe->filter->skip > 0)
		{
			probe->filter->skip--;
			continue;
		}
		for (j = 0; j < probe->nkeys; j++)
			keys[j].value = slot_getattr(econtext->ecxt_scantuple,
										 probe->columns[j], &keys[j].isnull);
		if (!pgbloom_join_contains(probe->filter, keys))
			return BoolGetDatum(false);
	}
	return BoolGetDatum(true);
}

/* Fill in a probe from its call; returns false if the qual is another one. */
static bool
init_probe(Probe *probe, Node *qual, MemoryContext query)
{
	FuncExpr   *call = (FuncExpr *) qual;
	ListCell   *lc;

	probe->filter = pgbloom_join_find(query, qual);
	if (!OidIsValid(probe->filter->function))
		return false;
	for_each_from(lc, call->args, 1)
	{
		Expr	   *key = lfirst(lc);

		while (IsA(key, RelabelType))
			key = ((RelabelType *) key)->arg;
		if (!IsA(key, Var) || ((Var *) key)->varattno <= 0)
			return false;
		probe->columns[probe->nkeys++] = ((Var *) key)->varattno;
	}
	return true;
}

static bool
replace_evaluation(PlanState *state, void *context)
{
	List	   *quals = state->plan->qual;
	DirectQual *direct;
	ListCell   *lc;

	if (quals != NIL && state->qual != NULL)
	{
		direct = palloc0(offsetof(DirectQual, probes) +
						 sizeof(Probe) * list_length(quals));
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
	return planstate_tree_walker(state, replace_evaluation, context);
}

static void
start_executor(QueryDesc *query, int eflags)
{
	MemoryContext context;

	if (previous_start != NULL)
		previous_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	context = query->estate->es_query_cxt;
	if (pgbloom_join_has_filters(context))
	{
		context = MemoryContextSwitchTo(context);
		replace_evaluation(query->planstate, NULL);
		MemoryContextSwitchTo(context);
	}
}

void
pgbloom_join_install_executor(void)
{
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
}
