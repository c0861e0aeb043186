/*-------------------------------------------------------------------------
 *
 * builder_node.c
 *	  The plan node that builds the filters of a hash join.
 *
 * It is the child of the Hash node and passes the rows of its own child on.
 * When these have ended, its filters are complete.  That is before the join
 * reads its outer side, apart from the first outer row, which may come
 * earlier; until then filters let all rows pass.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "executor/executor.h"
#include "join/hash.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/*
 * Prepare to evaluate a key, unless another filter has it, too.  Most keys are
 * columns of the child, which are read from its slot.
 */
static void
init_key(PgBloomJoinBuild *build, int key, Expr *expr)
{
	if (build->columns[key] != 0 || build->keys[key] != NULL)
		return;
	build->columns[key] = pgbloom_join_column(expr);
	if (build->columns[key] == 0)
		build->keys[key] = ExecInitExpr(expr, &build->css.ss.ps);
}

static void
init_filter(PgBloomJoinBuild *build, PgBloomJoinFilter *filter,
			List *description, EState *estate)
{
	CustomScan *scan = (CustomScan *) build->css.ss.ps.plan;
	List	   *operators = linitial(scan->custom_private);
	List	   *collations = lsecond(scan->custom_private);
	int			i;

	filter->number = linitial_int(description);
	filter->function = linitial_oid(list_nth(scan->custom_private, 4));
	filter->nkeys = list_length(description) - 1;
	for (i = 0; i < filter->nkeys; i++)
	{
		int			key = list_nth_int(description, i + 1);

		filter->key_at[i] = key;
		init_key(build, key, list_nth(scan->custom_exprs, key));
		pgbloom_join_key_init(&filter->outer[i], &filter->inner[i],
							  list_nth_oid(operators, key),
							  list_nth_oid(collations, key));
		filter->operators[i] = list_nth_oid(operators, key);
		filter->types[i] = exprType(list_nth(scan->custom_exprs, key));
	}
	filter->limit = pgbloom_join_filter_limit();
	filter->query = estate->es_query_cxt;
	filter->context = AllocSetContextCreate(estate->es_query_cxt,
											"join filter",
											ALLOCSET_DEFAULT_SIZES);
	filter->counts = &filter->local_counts;
	pgbloom_join_reset(filter);
	pgbloom_join_register(filter);
}

static void
begin_build(CustomScanState *node, EState *estate, int eflags)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *flags = lthird(scan->custom_private);
	List	   *descriptions = lfourth(scan->custom_private);
	int			i;

	outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);

	/* The rows are those of the child, in whatever kind of slot. */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	node->ss.ps.scanopsset = true;
	node->ss.ps.scanopsfixed = false;
	node->ss.ps.outeropsset = true;
	node->ss.ps.outeropsfixed = false;

	build->shared_hash = linitial_int(flags) != 0;
	build->never_fails = list_nth_int(flags, 4) != 0;
	build->nfilters = list_length(descriptions);
	build->filters = palloc0(sizeof(PgBloomJoinFilter) * build->nfilters);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	build->keys = palloc0(sizeof(ExprState *) * list_length(scan->custom_exprs));
	build->columns = palloc0(sizeof(AttrNumber) *
							 list_length(scan->custom_exprs));
	for (i = 0; i < build->nfilters; i++)
	{
		init_filter(build, &build->filters[i], list_nth(descriptions, i),
					estate);
		build->filters[i].most_passed = lsecond_int(flags) / 100.0;
		build->filters[i].most_keys = lthird_int(flags);
		build->filters[i].grouped = lfourth_int(flags) != 0;
		build->filters[i].hides_rows = list_nth_int(flags, 5) != 0;
	}
}

/* The value of a key of the row in the slot. */
static inline Datum
key_value(PgBloomJoinBuild *build, int i, TupleTableSlot *slot, bool *isnull)
{
	ExprContext *econtext = build->css.ss.ps.ps_ExprContext;

	if (build->keys[i] == NULL)
		return slot_getattr(slot, build->columns[i], isnull);
	econtext->ecxt_outertuple = slot;
	return ExecEvalExpr(build->keys[i], econtext, isnull);
}

/* Rows with a NULL among their keys have no match. */
static void
collect_row(PgBloomJoinBuild *build, PgBloomJoinFilter *filter,
			TupleTableSlot *slot)
{
	uint64		hash = 0;
	int			i;

	for (i = 0; i < filter->nkeys; i++)
	{
		bool		isnull;
		Datum		key = key_value(build, filter->key_at[i], slot, &isnull);

		if (isnull)
			return;
		hash = pgbloom_join_hash(&filter->inner[i], key, hash);
		if (filter->ranges[i] != NULL)
			pgbloom_join_add_to_range(filter->ranges[i], key,
									  &filter->inner[i],
									  filter->range_context);
	}
	if (filter->collecting)
		pgbloom_join_collect(filter, hash);
}

static TupleTableSlot *
exec_build(CustomScanState *node)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = ExecProcNode(outerPlanState(node));
	MemoryContext caller;
	int			i;

	if (TupIsNull(slot))
	{
		for (i = 0; i < build->nfilters; i++)
			pgbloom_join_publish(&build->filters[i]);
		return slot;
	}

	ResetExprContext(econtext);
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (i = 0; i < build->nfilters; i++)
	{
		if (build->filters[i].collecting || build->filters[i].ranges[0] != NULL)
			collect_row(build, &build->filters[i], slot);
	}
	MemoryContextSwitchTo(caller);
	return slot;
}

static void
end_build(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

/* The child is going to return its rows again, so collect them again. */
static void
rescan_build(CustomScanState *node)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	int			i;

	for (i = 0; i < build->nfilters; i++)
	{
		pgbloom_join_reset(&build->filters[i]);
		pgbloom_join_close_gates(&build->filters[i]);
	}
	if (build->inner_first != NULL)
		build->inner_first->hj_OuterNotEmpty = true;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Bloom Filter",
	.BeginCustomScan = begin_build,
	.ExecCustomScan = exec_build,
	.EndCustomScan = end_build,
	.ReScanCustomScan = rescan_build,
	.EstimateDSMCustomScan = pgbloom_join_estimate_dsm,
	.InitializeDSMCustomScan = pgbloom_join_initialize_dsm,
	.ReInitializeDSMCustomScan = pgbloom_join_reinitialize_dsm,
	.InitializeWorkerCustomScan = pgbloom_join_initialize_worker,
	.ShutdownCustomScan = pgbloom_join_shutdown,
	.ExplainCustomScan = pgbloom_join_explain
};

static Node *
create_state(CustomScan *scan)
{
	PgBloomJoinBuild *build = palloc0(sizeof(PgBloomJoinBuild));

	(void) scan;
	NodeSetTag(build, T_CustomScanState);
	build->css.methods = &exec_methods;
	return (Node *) build;
}

const CustomScanMethods pgbloom_join_scan_methods = {
	.CustomName = "Bloom Filter",
	.CreateCustomScanState = create_state
};
