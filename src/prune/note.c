/*-------------------------------------------------------------------------
 *
 * note.c
 *	  What a pruned plan must know when it is executed, and what happens then.
 *
 * A plan outlives its probe: a key may have been committed since, and a kept
 * plan is executed again.  So the indexes are asked again under the snapshot of
 * each execution, unless it is that of the probe.  If a partition that is not
 * in the plan may have a key now, the statement is planned again, under this
 * snapshot.  Once the indexes have been asked, no row that the snapshot sees
 * can get there any more.  A kept plan is then made again for later executions,
 * too: it depends on a number that stands for no catalog entry, which is
 * reported as changed.
 *
 * The statement and its keys travel with the plan, through the plan cache, as
 * the private data of a subplan that nothing refers to.  It is started with
 * the plan, and raises an error if somebody has started that without the hook.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#ifdef PGBLOOM_EXPLAIN_PLAN_HOOK
#include "commands/explain.h"
#include "commands/explain_state.h"
#include PGBLOOM_EXPLAIN_HEADER
#endif

/* The plan that is being started and has been checked. */
const PlannedStmt *bfp_checked_plan = NULL;

static Node *create_note_state(CustomScan *scan);

const CustomScanMethods bfp_note_methods = {
	.CustomName = "Bloom filter index pruning",
	.CreateCustomScanState = create_note_state
};

/*
 * The snapshot under which indexes were asked last, which is often that of the
 * execution that follows.
 */
typedef struct LastProbe
{
	int			number;
	TransactionId xmin;
	TransactionId xmax;
	bool		in_recovery;
	bool		suboverflowed;
	uint32		nxids;
	int32		nsubxids;
	Size		allocated;
	TransactionId *xids;		/* and subtransactions */
} LastProbe;

static LastProbe last_probe;

/* Remember the active snapshot, and return its number. */
int
bfp_remember_snapshot(void)
{
	Snapshot	snapshot = GetActiveSnapshot();
	Size		n = (Size) snapshot->xcnt + snapshot->subxcnt;

	last_probe.number = (last_probe.number + 1) & PG_INT32_MAX;
	last_probe.xmin = InvalidTransactionId;
	if (n > last_probe.allocated)
	{
		if (last_probe.xids != NULL)
			pfree(last_probe.xids);
		last_probe.xids = NULL;
		last_probe.allocated = 0;
		last_probe.xids = MemoryContextAlloc(TopMemoryContext,
											 n * sizeof(TransactionId));
		last_probe.allocated = n;
	}
	last_probe.xmin = snapshot->xmin;
	last_probe.xmax = snapshot->xmax;
	last_probe.in_recovery = snapshot->takenDuringRecovery;
	last_probe.suboverflowed = snapshot->suboverflowed;
	last_probe.nxids = snapshot->xcnt;
	last_probe.nsubxids = snapshot->subxcnt;
	if (snapshot->xcnt > 0)
		memcpy(last_probe.xids, snapshot->xip,
			   snapshot->xcnt * sizeof(TransactionId));
	if (snapshot->subxcnt > 0)
		memcpy(last_probe.xids + snapshot->xcnt, snapshot->subxip,
			   snapshot->subxcnt * sizeof(TransactionId));
	return last_probe.number;
}

/*
 * Does a snapshot see the same rows as the one of this number?  A snapshot of a
 * transaction that writes may see more and more of its own, as triggers do.  A
 * serializable one has to ask by itself: a probe locks what it has read.
 */
static bool
is_same_snapshot(int number, Snapshot snapshot)
{
	return number == last_probe.number &&
		!IsolationIsSerializable() &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny()) &&
		last_probe.xmin == snapshot->xmin &&
		last_probe.xmax == snapshot->xmax &&
		last_probe.in_recovery == snapshot->takenDuringRecovery &&
		last_probe.suboverflowed == snapshot->suboverflowed &&
		last_probe.nxids == snapshot->xcnt &&
		last_probe.nsubxids == snapshot->subxcnt &&
		(snapshot->xcnt == 0 ||
		 memcmp(last_probe.xids, snapshot->xip,
				snapshot->xcnt * sizeof(TransactionId)) == 0) &&
		(snapshot->subxcnt <= 0 ||
		 memcmp(last_probe.xids + snapshot->xcnt, snapshot->subxip,
				snapshot->subxcnt * sizeof(TransactionId)) == 0);
}

/* A table as a list of nodes, which can be copied. */
static List *
table_to_list(const BfpTable *table)
{
	List	   *oids = list_make3_oid(table->table, table->index, table->user);
	List	   *numbers = list_make4_int(table->column, table->is_array,
										 table->nleaves, table->probe);

	return list_make4(oids, numbers, copyObject(table->key), table->leaves);
}

static void
list_to_table(const List *list, BfpTable *table)
{
	List	   *oids = linitial(list);
	List	   *numbers = lsecond(list);

	table->table = linitial_oid(oids);
	table->index = lsecond_oid(oids);
	table->user = lthird_oid(oids);
	table->column = linitial_int(numbers);
	table->is_array = lsecond_int(numbers) != 0;
	table->nleaves = lthird_int(numbers);
	table->probe = lfourth_int(numbers);
	table->key = lthird(list);
	table->leaves = lfourth(list);
}

/*
 * Note in a plan for which statement and under which options it was made, and
 * what was pruned.
 */
void
bfp_add_note(PlannedStmt *plan, Query *query, int options, List *tables)
{
	CustomScan *note = makeNode(CustomScan);
	PlanInvalItem *dependency = makeNode(PlanInvalItem);
	List	   *lists = NIL;
	ListCell   *cell;

	foreach(cell, tables)
		lists = lappend(lists, table_to_list(lfirst(cell)));
	dependency->cacheId = PROCOID;
	dependency->hashValue = pg_prng_uint32(&pg_global_prng_state) | 1;
	note->custom_private = list_make4(query, makeInteger(options), lists,
									  dependency);
	note->methods = &bfp_note_methods;
	plan->subplans = lappend(plan->subplans, note);
	plan->invalItems = lappend(plan->invalItems, dependency);
}

static CustomScan *
find_note(const PlannedStmt *plan)
{
	ListCell   *cell;

	foreach(cell, plan->subplans)
	{
		CustomScan *note = lfirst(cell);

		if (note != NULL && IsA(note, CustomScan) &&
			note->methods == &bfp_note_methods)
			return note;
	}
	return NULL;
}

/* Has the plan all partitions that may have a key under this snapshot? */
static bool
is_valid(const CustomScan *note, Snapshot snapshot)
{
	ListCell   *cell;

	foreach(cell, (List *) lthird(note->custom_private))
	{
		BfpTable	table;

		list_to_table(lfirst(cell), &table);
		if (!is_same_snapshot(table.probe, snapshot) &&
			(!bfp_may_ask(&table) || !bfp_leaves_are_valid(&table)))
			return false;
	}
	return true;
}

/*
 * Plan a statement again, for an execution that begins.  Who executes it may
 * have found that the plan can be read backward.
 */
static PlannedStmt *
plan_again(const CustomScan *note, const QueryDesc *query)
{
	const PlannedStmt *old = query->plannedstmt;
	Query	   *statement = copyObject(linitial_node(Query,
													 note->custom_private));
	int			options = intVal(lsecond(note->custom_private));
	PlannedStmt *plan;

	if (statement->commandType == CMD_SELECT && statement->rowMarks == NIL &&
		!statement->hasModifyingCTE)
		options |= CURSOR_OPT_SCROLL;
	plan = PGBLOOM_PLAN(statement, query->sourceText, options, query->params);
	plan->queryId = old->queryId;
	plan->canSetTag = old->canSetTag;
	plan->stmt_location = old->stmt_location;
	plan->stmt_len = old->stmt_len;
	return plan;
}

/*
 * Before a plan is executed: if a partition that it does not have may have a
 * key, exchange it.
 */
void
bfp_check_plan(QueryDesc *query, int eflags)
{
	CustomScan *note = find_note(query->plannedstmt);
	MemoryContext old_context;

	bfp_checked_plan = note == NULL ? query->plannedstmt : NULL;
	if (note == NULL || query->snapshot == InvalidSnapshot ||
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;

	/* The plan must live as long as the query. */
	old_context = MemoryContextSwitchTo(GetMemoryChunkContext(query));
	PushActiveSnapshot(query->snapshot);
	if (!is_valid(note, query->snapshot))
	{
		PlanInvalItem *dependency = lfourth(note->custom_private);

		query->plannedstmt = plan_again(note, query);
		CallSyscacheCallbacks(dependency->cacheId, dependency->hashValue);
	}
	PopActiveSnapshot();
	MemoryContextSwitchTo(old_context);
	bfp_checked_plan = query->plannedstmt;
}

static void
begin_note(CustomScanState *node, EState *estate, int eflags)
{
	(void) node;

	/* To check a row again, a plan that is being executed is started again. */
	if (estate->es_plannedstmt != bfp_checked_plan &&
		estate->es_epq_active == NULL &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("plan was pruned by an index that has not been asked again"),
				 errdetail("The plan is started without the hooks of ExecutorStart."),
				 errhint("Set bloomfilter.index_pruning to off.")));
}

static TupleTableSlot *
execute_note(CustomScanState *node)
{
	(void) node;
	return NULL;
}

static void
end_note(CustomScanState *node)
{
	(void) node;
}

static Node *
create_note_state(CustomScan *scan)
{
	static const CustomExecMethods methods = {
		.CustomName = "Bloom filter index pruning",
		.BeginCustomScan = begin_note,
		.ExecCustomScan = execute_note,
		.EndCustomScan = end_note,
		.ReScanCustomScan = end_note
	};
	CustomScanState *state = makeNode(CustomScanState);

	(void) scan;
	state->methods = &methods;
	return (Node *) state;
}

#ifdef PGBLOOM_EXPLAIN_PLAN_HOOK
static explain_per_plan_hook_type previous_explain_plan;

static void
explain_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es,
			 const char *query, ParamListInfo params,
			 QueryEnvironment *environment)
{
	CustomScan *note = find_note(plan);
	ListCell   *cell;

	if (previous_explain_plan != NULL)
		previous_explain_plan(plan, into, es, query, params, environment);
	if (note == NULL)
		return;
	foreach(cell, (List *) lthird(note->custom_private))
	{
		BfpTable	table;
		char	   *name;

		list_to_table(lfirst(cell), &table);
		name = get_rel_name(table.index);
		ExplainPropertyText("Index Pruning",
							psprintf("%d of %d partitions left by %s",
									 list_length(table.leaves), table.nleaves,
									 name == NULL ? "a dropped index" : name),
							es);
	}
}
#endif

void
bfp_install_explain(void)
{
#ifdef PGBLOOM_EXPLAIN_PLAN_HOOK
	previous_explain_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
#endif
}
