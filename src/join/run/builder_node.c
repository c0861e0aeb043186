/*-------------------------------------------------------------------------
 *
 * builder_node.c
 *	  The plan node that builds the filters of a hash join.
 *
 * It is the child of the Hash node and passes the rows of its own child on.
 * When these have ended, its filters are complete.  That is before the join
 * reads its outer side, see start.c.
 *
 * A filter is for the first execution of the join.  When the inner side is read
 * again, its rows may be others, so filters are withdrawn.  A join that is
 * executed again with the hash table that it has keeps its filters.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "executor/executor.h"
#include "join/run/hash.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

/* What the planner tells by this name. */
Node *
pgbloom_join_property(List *properties, const char *name)
{
	ListCell   *lc;

	foreach(lc, properties)
	{
		DefElem    *property = lfirst(lc);

		if (strcmp(property->defname, name) == 0)
			return property->arg;
	}
	elog(ERROR, "join filter has no property \"%s\"", name);
	return NULL;
}

static void
init_filter(PgBloomJoinBuild *build, int which, List *properties,
			EState *estate)
{
	CustomScan *scan = (CustomScan *) build->css.ss.ps.plan;
	List	   *of_all = scan->custom_private;
	List	   *operators = (List *) pgbloom_join_property(of_all, "operators");
	List	   *collations = (List *) pgbloom_join_property(of_all, "collations");
	PgBloomJoinFilter *filter = &build->filters[which];
	PgBloomJoinCollector *collector = &build->collectors[which];
	PgBloomJoinRanges *ranges = &filter->ranges;
	List	   *keys = (List *) pgbloom_join_property(properties, "keys");
	bool		grouped = boolVal(pgbloom_join_property(properties, "grouped"));
	bool		numbers = true;
	int			i;

	ranges->nkeys = list_length(keys);
	for (i = 0; i < ranges->nkeys; i++)
	{
		int			key = list_nth_int(keys, i);

		pgbloom_join_add_key(&collector->reader,
							 list_nth(scan->custom_exprs, key),
							 &build->css.ss.ps);
		pgbloom_join_key_init(&filter->outer[i], &collector->inner[i],
							  list_nth_oid(operators, key),
							  list_nth_oid(collations, key));
		numbers &= filter->outer[i].method <= PGBLOOM_JOIN_INT64;
		ranges->operators[i] = list_nth_oid(operators, key);
		ranges->collations[i] = list_nth_oid(collations, key);
		ranges->types[i] = exprType(list_nth(scan->custom_exprs, key));
	}
	filter->skip = PG_INT64_MAX;

	/*
	 * If more rows pass, a join with a small hash table takes longer with the
	 * filter than without.
	 */
	filter->most_passed = numbers ? 0.5 : PGBLOOM_JOIN_MOST_PASSED_SLOW;
	if (grouped || pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		filter->most_passed = 1;
	filter->function = intVal(pgbloom_join_property(of_all, "function"));
	filter->builder = &build->css.ss.ps;
	filter->counts = &filter->local_counts;
	pgbloom_join_start_window(filter);

	/* Each process of a Parallel Hash sees only some of the keys. */
	ranges->usable = !build->shared_hash && !grouped;
	ranges->hides_rows = boolVal(pgbloom_join_property(of_all, "hides_rows"));

	collector->filter = filter;
	collector->collecting = true;
	collector->limit = pgbloom_join_filter_limit();
	collector->most_keys = intVal(pgbloom_join_property(properties,
														"most_keys"));
	collector->context = AllocSetContextCreate(estate->es_query_cxt,
											   "join filter",
											   ALLOCSET_DEFAULT_SIZES);
	pgbloom_join_remember(estate->es_query_cxt, estate->es_query_cxt,
						  intVal(pgbloom_join_property(properties, "number")),
						  filter);
}

static void
begin_build(CustomScanState *node, EState *estate, int eflags)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *filters = (List *) pgbloom_join_property(scan->custom_private,
														 "filters");
	int			i;

	outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);

	/* The rows are those of the child, in whatever kind of slot. */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
	node->ss.ps.scanopsset = true;
	node->ss.ps.scanopsfixed = false;
	node->ss.ps.outeropsset = true;
	node->ss.ps.outeropsfixed = false;

	/* A plan that is only explained is never executed. */
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	build->shared_hash = boolVal(pgbloom_join_property(scan->custom_private,
													   "shared_hash"));
	build->nfilters = list_length(filters);
	build->filters = palloc0(sizeof(PgBloomJoinFilter) * build->nfilters);
	build->collectors = palloc0(sizeof(PgBloomJoinCollector) *
								build->nfilters);
	for (i = 0; i < build->nfilters; i++)
		init_filter(build, i, list_nth(filters, i), estate);

	/* Number 0 is that there are filters. */
	pgbloom_join_remember(estate->es_query_cxt, estate->es_query_cxt, 0,
						  build);
}

static void
collect_row(PgBloomJoinCollector *collector, TupleTableSlot *slot,
			ExprContext *econtext)
{
	PgBloomJoinRanges *ranges = &collector->filter->ranges;
	Datum		keys[PGBLOOM_MAX_JOIN_KEYS];
	uint64		hash;
	int			i;

	if (!pgbloom_join_hash_row(&collector->reader, collector->inner, slot,
							   econtext, keys, &hash))
		return;
	for (i = 0; i < ranges->nkeys; i++)
	{
		if (ranges->ranges[i] != NULL)
			pgbloom_join_add_to_range(ranges, i, keys[i],
									  &collector->inner[i]);
	}
	if (collector->collecting)
		pgbloom_join_collect(collector, hash);
}

static TupleTableSlot *
exec_build(CustomScanState *node)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	TupleTableSlot *slot;
	MemoryContext caller;
	int			i;

	slot = ExecProcNode(outerPlanState(node));
	if (TupIsNull(slot))
	{
		for (i = 0; i < build->nfilters; i++)
			pgbloom_join_publish(&build->collectors[i]);
		return slot;
	}

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	for (i = 0; i < build->nfilters; i++)
	{
		PgBloomJoinCollector *collector = &build->collectors[i];

		if (collector->collecting ||
			collector->filter->ranges.ranges[0] != NULL)
			collect_row(collector, slot, econtext);
	}
	MemoryContextSwitchTo(caller);
	return slot;
}

static void
end_build(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

/*
 * Only scroll cursors and extensions execute a join with a filter again, and not
 * in parallel, so no process withdraws what others probe.
 */
static void
rescan_build(CustomScanState *node)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	int			i;

	if (build->shared != NULL)
		elog(ERROR, "parallel join with a filter is executed again");
	for (i = 0; i < build->nfilters; i++)
		pgbloom_join_withdraw(&build->collectors[i]);
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
