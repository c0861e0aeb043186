/*-------------------------------------------------------------------------
 *
 * start.c
 *	  What is done when the execution of a plan with join filters starts; and
 *	  what the backend knows of such executions.
 *
 * A join with a filter reads its inner side before an outer row, so that its
 * filter is complete before a scan below is started.  The hash joins between it
 * and the scan that have the scan on their outer side do so, too: one that
 * fetched an outer row first would end there if its inner side is empty, but the
 * scan would go on to the first row that passes.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "nodes/nodeFuncs.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/*
 * What is known of an execution, whose memory is the owner: its filters by their
 * numbers from 1 on, and as number 0, that there are any.  Of a scan, which
 * is its own owner, number 0 is the gate before it.
 */
typedef struct Key
{
	void	   *owner;
	intptr_t	number;			/* as wide as a pointer: there is no gap */
} Key;

typedef struct Entry
{
	Key			key;
	void	   *thing;
} Entry;

static HTAB *entries = NULL;

static void
forget(void *key)
{
	hash_search(entries, key, HASH_REMOVE, NULL);
}

/* Enter a thing, until the memory of the execution is released. */
void
pgbloom_join_remember(MemoryContext query, void *owner, int number,
					  void *thing)
{
	struct
	{
		MemoryContextCallback callback;
		Key			key;
	}		   *memory = MemoryContextAlloc(query, sizeof(*memory));
	Entry	   *entry;

	if (entries == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Key),
			.entrysize = sizeof(Entry)
		};

		entries = hash_create("join filters", 64, &control,
							  HASH_ELEM | HASH_BLOBS);
	}
	memory->key.owner = owner;
	memory->key.number = number;
	entry = hash_search(entries, &memory->key, HASH_ENTER, NULL);
	entry->thing = thing;
	memory->callback.func = forget;
	memory->callback.arg = &memory->key;
	MemoryContextRegisterResetCallback(query, &memory->callback);
}

/* What has been entered, or NULL. */
void *
pgbloom_join_recall(void *owner, int number)
{
	Key			key = {owner, number};
	Entry	   *entry = entries == NULL ? NULL :
		hash_search(entries, &key, HASH_FIND, NULL);

	return entry == NULL ? NULL : entry->thing;
}

/*
 * Find the filter of a call of the probe function by the execution that it
 * belongs to.  An execution without the filter's node gets a filter that lets
 * all rows pass: EvalPlanQual executes a part of a plan that way.  So does a
 * call that is not by the planner.
 */
PgBloomJoinFilter *
pgbloom_join_find(MemoryContext query, const Node *node)
{
	static PgBloomJoinFilter none = {.skip = PG_INT64_MAX};
	const FuncExpr *call = (const FuncExpr *) node;
	PgBloomJoinFilter *filter;

	if (node == NULL || !IsA(node, FuncExpr) ||
		call->funcformat != PGBLOOM_PROBE_FORM || call->args == NIL ||
		!IsA(linitial(call->args), Const))
		return &none;
	filter = pgbloom_join_recall(query,
								 DatumGetInt32(linitial_node(Const, call->args)->constvalue));
	return filter != NULL && filter->function == call->funcid ? filter : &none;
}

/* A node of a plan that is executed, and the nodes above it. */
typedef struct Ancestor
{
	const struct Ancestor *parent;	/* NULL at the top */
	PlanState  *state;
	Bitmapset **prepared;		/* plan_node_id of nodes that have been */
} Ancestor;

/*
 * Let the join whose filter this condition of a scan probes, and the hash joins
 * between the two, read their inner sides first, see ExecHashJoinImpl().
 */
static void
read_inner_sides_first(const Ancestor *scan, Node *qual)
{
	PgBloomJoinFilter *filter;
	const Ancestor *below = scan;
	const Ancestor *above;

	filter = pgbloom_join_find(scan->state->state->es_query_cxt, qual);
	if (filter->builder == NULL)
		return;
	for (above = scan->parent; above != NULL;
		 below = above, above = above->parent)
	{
		HashJoinState *join = (HashJoinState *) above->state;

		if (!IsA(join, HashJoinState) ||
			below->state != outerPlanState(join))
			continue;
		join->hj_OuterNotEmpty = true;
		if (outerPlanState(innerPlanState(join)) == filter->builder)
			return;
	}
}

/*
 * Prepare the scans of a plan that probe filters.  A subplan in the condition of
 * a partitioned table is reached from each of its partitions, but is one.  The
 * number 0 is that of the top, and of nodes that other extensions have added to
 * the finished plan.
 */
static bool
prepare_scans(PlanState *state, void *context)
{
	const Ancestor *parent = context;
	Ancestor	here = {parent->state != NULL ? parent : NULL, state,
	parent->prepared};
	int			id = state->plan->plan_node_id;
	ListCell   *lc;

	if (id != 0 && bms_is_member(id, *here.prepared))
		return false;
	*here.prepared = bms_add_member(*here.prepared, id);
	if (state->plan->qual != NIL && state->qual != NULL)
	{
		foreach(lc, state->plan->qual)
			read_inner_sides_first(&here, lfirst(lc));
		pgbloom_join_evaluate_directly(state);
		pgbloom_join_gate_scan((ScanState *) state);
	}
	return planstate_tree_walker(state, prepare_scans, &here);
}

/* Prepare a plan whose nodes have been started, if it has filters. */
void
pgbloom_join_start(PlanState *plan)
{
	MemoryContext query = plan->state->es_query_cxt;
	Bitmapset  *prepared = NULL;
	Ancestor	top = {NULL, NULL, &prepared};

	if (pgbloom_join_recall(query, 0) != NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(query);

		prepare_scans(plan, &top);
		MemoryContextSwitchTo(caller);
	}
}
