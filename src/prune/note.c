/*-------------------------------------------------------------------------
 *
 * note.c
 *	  What a pruned plan must know when it is executed, and what happens then.
 *
 * A plan outlives its probe: a key may have been committed since, and a kept
 * plan is executed again.  So the indexes are asked again under the snapshot of
 * each execution.  If a partition that is not in the plan may have a key now, the
 * statement is planned again, under this snapshot.  Once the indexes have been
 * asked, no row that the snapshot sees can get there any more.
 *
 * The statement and its keys travel with the plan, through the plan cache, as
 * the private data of a subplan that nothing refers to.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class_d.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "storage/lwlock.h"
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

/* From 18 on, functions in SQL plan their queries with these options. */
#define PARALLEL_OR_FORWARD	(CURSOR_OPT_PARALLEL_OK | CURSOR_OPT_NO_SCROLL)

BfpPlanning *bfp_planning = NULL;

/*
 * When indexes are asked: how many transactions that wrote something are over,
 * and what this one may see without that, as one number that only grows; and the
 * oldest transaction that the snapshot does not see.
 */
static List *
current_moment(Snapshot snapshot)
{
	uint64		count;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	count = PGBLOOM_COMPLETION_COUNT;
	LWLockRelease(ProcArrayLock);
	count += bfi_keys_inserted + bfi_relation_changes;
	return list_make3_oid((Oid) (count >> 32), (Oid) count, snapshot->xmin);
}

/*
 * Does a snapshot see no more rows than were there at a moment?  No transaction
 * has committed any since, and this one has inserted none, nor changed a table.
 * A serializable one has to ask by itself, since a probe locks what it has read.
 * For a snapshot that is older than the one at that moment, the indexes may not
 * be complete.
 */
static bool
is_asked(List *moment, Snapshot snapshot)
{
	List	   *now = current_moment(snapshot);

	return linitial_oid(now) == linitial_oid(moment) &&
		lsecond_oid(now) == lsecond_oid(moment) &&
		TransactionIdFollowsOrEquals(snapshot->xmin, lthird_oid(moment)) &&
		!IsolationIsSerializable();
}

static bool
has_partitions_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return ((RangeTblEntry *) node)->relkind == RELKIND_PARTITIONED_TABLE &&
			((RangeTblEntry *) node)->rtekind == RTE_RELATION &&
			((RangeTblEntry *) node)->inh;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_partitions_walker,
								 context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, has_partitions_walker, context);
}

/*
 * Has the user the privileges for a query; or else for a plan, or an error?  The
 * hook is called for the execution alone, as before that pgaudit's crashes.
 */
bool
bfp_is_permitted(const Query *query, const PlannedStmt *plan)
{
	ExecutorCheckPerms_hook_type hook = ExecutorCheckPerms_hook;
	bool		result;

	ExecutorCheckPerms_hook = NULL;
	PG_TRY();
	{
		result = query != NULL ? PGBLOOM_IS_PERMITTED(query) :
			PGBLOOM_CHECK_PERMISSIONS(plan);
	}
	PG_FINALLY();
	{
		ExecutorCheckPerms_hook = hook;
	}
	PG_END_TRY();
	return result;
}

/*
 * Is a query read to its end before the statement around it goes on?  So is what
 * may be parallel, except in functions in SQL, and what PL/pgSQL, which alone has
 * such parameters, reads itself.  Any other query may be that of a cursor.
 */
static bool
is_read_at_once(int options, ParamListInfo params)
{
	options &= PARALLEL_OR_FORWARD;
	return options == CURSOR_OPT_PARALLEL_OK ||
		(options != 0 && params != NULL && params->paramFetch != NULL);
}

/*
 * A statement is going to be planned.  A cursor may be read while a statement
 * goes on to insert rows, which it sees.  A gate before a scan sees what the scan
 * would see, unless this is read backward after its end.
 */
void
bfp_begin_planning(BfpPlanning *planning, Query *query, int options,
				   ParamListInfo params)
{
	memset(planning, 0, sizeof(*planning));
	planning->options = options;
	planning->context = CurrentMemoryContext;
	planning->asks_no_index = !bfi_asked_by_queries ||
		(options & CURSOR_OPT_FAST_PLAN) != 0 ||
		((options & PARALLEL_OR_FORWARD) == 0 &&
		 query->commandType == CMD_SELECT && query->rowMarks == NIL);
	if (!planning->asks_no_index && is_read_at_once(options, params) &&
		ActiveSnapshotSet() && !IsParallelWorker() &&
		has_partitions_walker((Node *) query, NULL))
	{
		planning->query = copyObject(query);
		planning->moment = current_moment(GetActiveSnapshot());
	}
}

/*
 * If a table was pruned, or partitions are when the plan starts, note in the plan
 * what, for which statement and under which options it was made.
 */
void
bfp_add_note(PlannedStmt *plan, const BfpPlanning *planning)
{
	CustomScan *note;
	PlanInvalItem *dependency;
	List	   *tables = NIL;
	ListCell   *cell;

	foreach(cell, planning->tables)
	{
		BfpTable   *table = lfirst(cell);

		if (!table->prunes)
			continue;
		tables = lappend(tables,
						 list_make4(table->key, table->leaves,
									list_make1_oid(table->index),
									list_make2_int(table->is_array,
												   table->nleaves)));
	}

	if (tables == NIL && !planning->asks_at_start)
		return;

	/* A number that stands for no catalog entry makes the plan obsolete. */
	dependency = makeNode(PlanInvalItem);
	dependency->cacheId = PROCOID;
	dependency->hashValue = pg_prng_uint32(&pg_global_prng_state) | 1;
	plan->invalItems = lappend(plan->invalItems, dependency);
	note = makeNode(CustomScan);
	note->custom_private = list_make5(planning->query,
									  makeInteger(planning->options), tables,
									  dependency, planning->moment);
	note->methods = &bfp_scan_methods;
	plan->subplans = lappend(plan->subplans, note);
}

static BfpTable
read_table(List *list)
{
	BfpTable	table = {
		.key = linitial(list),
		.leaves = lsecond(list),
		.index = linitial_oid(lthird(list)),
		.is_array = linitial_int(lfourth(list)) != 0,
		.nleaves = lsecond_int(lfourth(list))
	};

	return table;
}

static CustomScan *
find_note(const PlannedStmt *plan)
{
	ListCell   *cell;

	foreach(cell, plan->subplans)
	{
		CustomScan *note = lfirst(cell);

		if (note != NULL && IsA(note, CustomScan) &&
			note->methods == &bfp_scan_methods && outerPlan(note) == NULL)
			return note;
	}
	return NULL;
}

/* Has the plan all partitions that may have a key now? */
static bool
is_valid(const CustomScan *note)
{
	ListCell   *cell;

	foreach(cell, (List *) lthird(note->custom_private))
	{
		BfpTable	table = read_table(lfirst(cell));
		List	   *known = table.leaves;

		if (!bfp_find_leaves(&table) ||
			list_difference_oid(table.leaves, known) != NIL)
			return false;
	}
	return true;
}

/* Plan a statement again, for an execution that begins. */
static PlannedStmt *
plan_again(const CustomScan *note, const QueryDesc *query, int eflags,
		   int more_options)
{
	const PlannedStmt *old = query->plannedstmt;
	Query	   *statement = copyObject(linitial_node(Query,
													 note->custom_private));
	int			options = intVal(lsecond(note->custom_private)) | more_options;
	PlannedStmt *plan;

	if ((eflags & EXEC_FLAG_BACKWARD) != 0)
		options |= CURSOR_OPT_SCROLL;
	plan = PGBLOOM_PLAN(statement, query->sourceText, options, query->params);
	plan->queryId = old->queryId;
	plan->canSetTag = old->canSetTag;
	plan->stmt_location = old->stmt_location;
	plan->stmt_len = old->stmt_len;
	return plan;
}

/*
 * Plan a query of a function in SQL without pruning, for all calls.  Until 17,
 * nothing tells the planner of such a function.  Nor has it gates then that are
 * only worth it if all are asked when the plan starts.
 */
static void
unprune_for_function(const CustomScan *note, const QueryDesc *query, int eflags)
{
	PlannedStmt *plan = plan_again(note, query, eflags, CURSOR_OPT_NO_SCROLL);
	MemoryContext old_context =
		MemoryContextSwitchTo(GetMemoryChunkContext(query->plannedstmt));

	*query->plannedstmt = *(PlannedStmt *) copyObject(plan);
	MemoryContextSwitchTo(old_context);
}

/*
 * Before a plan is executed: if a partition that it does not have may have a
 * key, exchange it.
 */
void
bfp_check_plan(QueryDesc *query, int eflags)
{
	CustomScan *note = find_note(query->plannedstmt);
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context;
	bool		in_function;
	bool		valid;

	if (note == NULL || query->snapshot == InvalidSnapshot ||
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	in_function = query->dest->mydest == DestSQLFunction;
	if (lthird(note->custom_private) == NIL && !in_function)
		return;
	(void) bfp_is_permitted(NULL, query->plannedstmt);
	context = AllocSetContextCreate(caller, "index pruning",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	PushActiveSnapshot(query->snapshot);
	if (in_function)
		unprune_for_function(note, query, eflags);
	valid = in_function ||
		is_asked(llast(note->custom_private), query->snapshot) ||
		is_valid(note);
	if (!valid)
	{
		PlanInvalItem *dependency = lfourth(note->custom_private);

		/* The plan must live as long as the query. */
		MemoryContextSwitchTo(GetMemoryChunkContext(query));
		query->plannedstmt = plan_again(note, query, eflags, 0);
		CallSyscacheCallbacks(dependency->cacheId, dependency->hashValue);
	}
	PopActiveSnapshot();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

#ifdef PGBLOOM_EXPLAIN_PLAN_HOOK
static explain_per_plan_hook_type previous_explain_plan;

static void
explain_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es,
			 const char *query, ParamListInfo params,
			 QueryEnvironment *environment)
{
	CustomScan *note = find_note(es->pstmt);	/* as it was executed */
	ListCell   *cell;

	if (previous_explain_plan != NULL)
		previous_explain_plan(plan, into, es, query, params, environment);
	if (note == NULL)
		return;
	foreach(cell, (List *) lthird(note->custom_private))
	{
		BfpTable	table = read_table(lfirst(cell));
		char	   *name = get_rel_name(table.index);

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
