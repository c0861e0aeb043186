/*-------------------------------------------------------------------------
 *
 * note.c
 *	  What a pruned plan must know when it is executed, and what happens then.
 *
 * A plan outlives its probe: README.md says when it is exchanged.  The statement
 * and its keys travel with the plan, through the plan cache, as an entry of its
 * range table that nothing refers to, whose data parallel workers do not get.
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
#include "tcop/pquery.h"
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

/* A relation is planned in the time in which so many scans are started. */
#define SCANS_STARTED		5

/* A plan whose tables have changed meanwhile is made again, so many times. */
#define MAX_PLANNED			10

BfpPlanning *bfp_planning = NULL;

static List *
add_to(List *range_table, List *note)
{
	RangeTblEntry *entry = makeNode(RangeTblEntry);

	entry->rtekind = RTE_RESULT;
	entry->eref = makeAlias("index pruning", NIL);
	entry->values_lists = note;
	return lappend(range_table, entry);
}

/* The entry that was added, or NULL.  No other one of this kind has values. */
static RangeTblEntry *
find_note(List *range_table)
{
	ListCell   *cell;

	foreach(cell, range_table)
	{
		RangeTblEntry *entry = lfirst(cell);

		if (entry->rtekind == RTE_RESULT && entry->values_lists != NIL)
			return entry;
	}
	return NULL;
}

/* Nodes alone can be copied with a plan or a query. */
static List *
write_table(const BfpTable *table)
{
	return list_make5(table->key, table->value, table->leaves,
					  lcons_oid(table->index, table->indexes),
					  list_make3_int(table->is_array, table->nleaves,
									 table->prunes));
}

static BfpTable *
read_table(List *list)
{
	BfpTable   *table = palloc0(sizeof(*table));
	List	   *numbers = llast(list);

	table->key = linitial(list);
	table->value = lsecond(list);
	table->leaves = lthird(list);
	table->index = linitial_oid(lfourth(list));
	table->indexes = list_copy_tail(lfourth(list), 1);
	table->is_array = linitial_int(numbers) != 0;
	table->nleaves = lsecond_int(numbers);
	table->prunes = lthird_int(numbers) != 0;
	return table;
}

/* When indexes are asked, and the oldest transaction that is not seen. */
static List *
current_moment(Snapshot snapshot)
{
	uint64		count = bfi_moment();

	return list_make3_oid((Oid) (count >> 32), (Oid) count, snapshot->xmin);
}

/*
 * Does a snapshot see no more rows than were there at a moment?  A serializable
 * transaction asks by itself, since a probe locks what it has read.  For an older
 * snapshot, the indexes may not be complete.
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
	{
		Query	   *query = (Query *) node;

		return query->hasSubLinks || query->cteList != NIL ?
			query_tree_walker(query, has_partitions_walker, context,
							  QTW_EXAMINE_RTES_BEFORE) :
			range_table_walker(query->rtable, has_partitions_walker, context,
							   QTW_EXAMINE_RTES_BEFORE | QTW_IGNORE_JOINALIASES);
	}
	return expression_tree_walker(node, has_partitions_walker, context);
}

/*
 * Has who executes it the privileges for a query and for those around it, or the
 * owner of a view; or else for a plan, or an error?  PostgreSQL checks this later
 * than the index is asked.  The hook is called for the execution alone, as before
 * that pgaudit's crashes.
 */
bool
bfp_is_permitted(const PlannerInfo *root, const PlannedStmt *plan)
{
	ExecutorCheckPerms_hook_type hook = ExecutorCheckPerms_hook;
	bool		result;

	ExecutorCheckPerms_hook = NULL;
	PG_TRY();
	{
		const PlannerInfo *level = root;

		result = plan == NULL || PGBLOOM_CHECK_PERMISSIONS(plan);
		for (; level != NULL && result; level = level->parent_root)
			result = PGBLOOM_IS_PERMITTED(level->parse);
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
	RangeTblEntry *note = find_note(query->rtable);
	ListCell   *cell;

	memset(planning, 0, sizeof(*planning));
	planning->options = options;
	planning->has_params = params != NULL;
	query->rtable = list_delete_ptr(query->rtable, note);
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
		planning->changes = bfi_relation_changes;
		foreach(cell, note == NULL ? NIL : note->values_lists)
			planning->tables = lappend(planning->tables,
									   read_table(lfirst(cell)));
	}
}

/*
 * Does it take longer to start the scans of so many partitions of a plan than to
 * plan the rest of it?
 */
static bool
is_worth_planning(const PlannedStmt *plan, int npartitions)
{
	int			rest = -npartitions;
	ListCell   *cell;

	foreach(cell, plan->rtable)
	{
		RangeTblEntry *entry = lfirst(cell);

		rest += entry->rtekind == RTE_RELATION &&
			entry->relkind != RELKIND_VIEW;
	}
	return npartitions > SCANS_STARTED * rest;
}

/* Has a partitioned table of a plan changed since there were so many changes? */
static bool
has_changed(const PlannedStmt *plan, uint64 changes)
{
	List	   *tables = NIL;
	ListCell   *cell;

	foreach(cell, plan->rtable)
	{
		RangeTblEntry *entry = lfirst(cell);

		if (entry->rtekind == RTE_RELATION &&
			entry->relkind == RELKIND_PARTITIONED_TABLE)
			tables = lappend_oid(tables, entry->relid);
	}
	return bfi_have_changed(tables, changes);
}

/* Note in the plan which tables were pruned, or may be when keys are known. */
void
bfp_add_note(PlannedStmt *plan, const BfpPlanning *planning)
{
	PlanInvalItem *dependency;
	List	   *tables = NIL;
	ListCell   *cell;

	foreach(cell, planning->tables)
	{
		BfpTable   *table = lfirst(cell);

		if (table->prunes || (!IsA(table->key, Const) &&
							  (!table->is_array || table->pays) &&
							  is_worth_planning(plan, planning->nopened)))
			tables = lappend(tables, write_table(table));
	}
	if (tables == NIL)
		return;

	/* A number that stands for no catalog entry makes the plan obsolete. */
	dependency = makeNode(PlanInvalItem);
	dependency->cacheId = PROCOID;
	dependency->hashValue = pg_prng_uint32(&pg_global_prng_state) | 1;
	plan->invalItems = lappend(plan->invalItems, dependency);
	plan->rtable = add_to(plan->rtable,
						  list_make5(planning->query,
									 list_make4_int(planning->options,
													planning->has_params,
													planning->nopened,
													has_changed(plan, planning->changes)),
									 tables, dependency, planning->moment));
}

/* What a key is, for a planner that knows these parameters. */
static Node *
value_of(Node *key, ParamListInfo params)
{
	PlannerInfo *root = makeNode(PlannerInfo);

	root->glob = makeNode(PlannerGlobal);
	root->glob->boundParams = params;
	return eval_const_expressions(root, key);
}

/*
 * Plan a statement again, for an execution that begins.  The planner need not ask
 * again what has just been asked.  It knows the values of parameters only if it
 * did before: what it computes of them may fail.
 */
static PlannedStmt *
plan_again(Query *statement, const QueryDesc *query, int options,
		   bool has_params, List *tables)
{
	const PlannedStmt *old = query->plannedstmt;
	PlannedStmt *plan;

	statement->rtable = add_to(statement->rtable, tables);
	plan = PGBLOOM_PLAN(statement, query->sourceText, options,
						has_params ? query->params : NULL);
	plan->queryId = old->queryId;
	plan->canSetTag = old->canSetTag;
	plan->stmt_location = old->stmt_location;
	plan->stmt_len = old->stmt_len;
	return plan;
}

/*
 * Ask the indexes of a plan again, and plan the statement again if a partition
 * that is not in the plan may have a key; or, for a plan that has all partitions,
 * if enough of them are ruled out.  Returns NULL if the plan is right.
 *
 * PostgreSQL passes over rows of other partitions if it learns between planning a
 * table and its execution that one was attached.  It seldom does, but learns of it
 * by what we ask.  So if it has learned of a change to a partitioned table of the
 * plan, the statement is planned again.
 */
static PlannedStmt *
exchange_plan(List *note, const QueryDesc *query, int options,
			  bool suspended)
{
	Query	   *statement = linitial_node(Query, note);
	PlanInvalItem *dependency = lfourth(note);
	uint64		changes = bfi_relation_changes;
	bool		asked = is_asked(llast(note), query->snapshot);
	bool		is_stale = lfourth_int(lsecond(note)) != 0;
	bool		is_wrong = false;
	int			ruled_out = 0;
	int			i;
	PlannedStmt *plan;
	List	   *tables = NIL;
	ListCell   *cell;

	(void) bfp_is_permitted(NULL, query->plannedstmt);
	foreach(cell, (List *) lthird(note))
	{
		BfpTable   *table = read_table(lfirst(cell));
		List	   *planned = table->leaves;
		bool		is_generic = table->value == NULL;

		if (is_generic && bfi_asked_by_queries)
			table->value = value_of(table->key, query->params);
		if (table->value == NULL || !IsA(table->value, Const) ||
			((Const *) table->value)->constisnull ||
			(is_generic ? suspended : asked && !suspended))
			continue;
		bfp_find_leaves(table, is_generic ? SCANS_STARTED + 1 : 1);
		tables = lappend(tables, write_table(table));
		if (!is_generic)
			is_wrong |= suspended || !table->prunes ||
				list_difference_oid(table->leaves, planned) != NIL;
		else if (table->prunes)
			ruled_out += table->nleaves - list_length(table->leaves);
	}
	is_stale |= has_changed(query->plannedstmt, changes);
	ruled_out = Min(ruled_out, lthird_int(lsecond(note)));
	if (!is_wrong && !is_stale &&
		!is_worth_planning(query->plannedstmt, ruled_out))
		return NULL;
	if (is_stale || (is_wrong && !suspended))
		CallSyscacheCallbacks(dependency->cacheId, dependency->hashValue);
	for (i = 0; i < MAX_PLANNED; i++)
	{
		changes = bfi_relation_changes;
		plan = plan_again(copyObject(statement), query,
						  linitial_int(lsecond(note)) | options,
						  lsecond_int(lsecond(note)) != 0, tables);
		if (!has_changed(plan, changes))
			break;
	}
	return plan;
}

/*
 * Is a query that the planner has taken for one that is read at once that of a
 * cursor of the protocol?  Only its portal, which begins, tells by its name.
 */
static bool
is_of_cursor(const QueryDesc *query, int options)
{
	return (options & CURSOR_OPT_NO_SCROLL) == 0 && ActivePortal != NULL &&
		ActivePortal->status == PORTAL_DEFINED && ActivePortal->visible &&
		ActivePortal->name[0] != '\0' &&
		linitial(ActivePortal->stmts) == query->plannedstmt;
}

/*
 * Before a plan is executed: exchange it if another one is needed.  Until 17,
 * nothing tells the planner of a function in SQL.  If this is suspended after a
 * row, its plan is made again for all calls.
 */
void
bfp_check_plan(QueryDesc *query, int eflags)
{
	RangeTblEntry *note = find_note(query->plannedstmt->rtable);
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context;
	bool		is_of_function;
	bool		suspended;
	int			options;
	PlannedStmt *plan;

	if (note == NULL || query->snapshot == InvalidSnapshot ||
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	is_of_function = query->dest->mydest == DestSQLFunction &&
		(eflags & EXEC_FLAG_SKIP_TRIGGERS) != 0;
	suspended = is_of_function ||
		is_of_cursor(query, linitial_int(lsecond(note->values_lists)));
	options = (suspended ? CURSOR_OPT_NO_SCROLL : 0) |
		((eflags & EXEC_FLAG_BACKWARD) != 0 ? CURSOR_OPT_SCROLL : 0);
	context = AllocSetContextCreate(caller, "index pruning",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	PushActiveSnapshot(query->snapshot);
	plan = exchange_plan(note->values_lists, query, options, suspended);
	PopActiveSnapshot();
	MemoryContextSwitchTo(GetMemoryChunkContext(is_of_function ?
												(void *) query->plannedstmt :
												(void *) query));
	plan = copyObject(plan);
	if (plan != NULL && is_of_function)
		*query->plannedstmt = *plan;
	else if (plan != NULL)
		query->plannedstmt = plan;
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
	RangeTblEntry *note = find_note(es->pstmt->rtable); /* as executed */
	ListCell   *cell;

	if (previous_explain_plan != NULL)
		previous_explain_plan(plan, into, es, query, params, environment);
	if (note == NULL)
		return;
	foreach(cell, (List *) lthird(note->values_lists))
	{
		BfpTable   *table = read_table(lfirst(cell));
		char	   *name = get_rel_name(table->index);

		if (table->value != NULL && table->prunes && name != NULL)
			ExplainPropertyText("Index Pruning",
								psprintf("%d of %d partitions left by %s",
										 list_length(table->leaves),
										 table->nleaves, name),
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
