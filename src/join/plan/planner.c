/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Adding join filters to a finished plan.
 *
 * For each suitable hash join, a node that builds filters is put below the
 * Hash node, and a call of bloom_join_probe() is appended to the quals of the
 * scans that the join's outer keys come from.  Nothing else changes: the
 * shape, the costs and the order of the plan are those that the planner chose.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "catalog/pg_type_d.h"
#include "jit/jit.h"
#include "nodes/makefuncs.h"
#include "utils/syscache.h"

/* The filters of a statement that are being planned. */
typedef struct FilterPlanning
{
	PlannedStmt *stmt;
	PgBloomReason reason;		/* why no join of the statement has filters */
	bool		only_reasons;	/* the plan stays as it is */
	Oid			function;		/* bloom_join_probe */
	int			last_number;
	List	   *targets;		/* whose scans are going to probe filters */
	PgBloomPlanWalk walk;
	const PgBloomStatement *statement;
} FilterPlanning;

/*
 * Why has a whole statement no filters, by these of its properties?  Where rows
 * are locked, changed or deleted, EvalPlanQual may evaluate a part of the plan
 * again with rows that the filter has not seen.
 */
PgBloomReason
pgbloom_join_statement_reason(CmdType command, bool has_modifying_cte,
							  const List *row_marks, bool is_volatile)
{
	if (pgbloom_join_filters == PGBLOOM_JOIN_OFF)
		return PGBLOOM_REASON_OFF;
	if ((command != CMD_SELECT && command != CMD_INSERT) ||
		has_modifying_cte || row_marks != NIL || is_volatile)
		return PGBLOOM_REASON_STATEMENT;
	return PGBLOOM_NO_REASON;
}

/* The same of a finished plan. */
static PgBloomReason
plan_reason(const PlannedStmt *stmt, bool is_volatile)
{
	return pgbloom_join_statement_reason(stmt->commandType,
										 stmt->hasModifyingCTE,
										 stmt->rowMarks, is_volatile);
}

/* Does the join drop outer rows without a match, and show no trace of them? */
static bool
drops_outer_rows(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT ||
		PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type);
}

/* The first of the targets that has the filter of this one, by its keys. */
static PgBloomJoinTarget *
first_with_filter(List *targets, const PgBloomJoinTarget *target)
{
	ListCell   *lc;

	foreach(lc, targets)
	{
		PgBloomJoinTarget *other = lfirst(lc);

		if ((other->grouping == NULL) == (target->grouping == NULL) &&
			equal(other->key_numbers, target->key_numbers))
			return other;
	}
	pg_unreachable();
}

/* What the executor is told has a name. */
static DefElem *
property(const char *name, void *value)
{
	return makeDefElem(unconstify(char *, name), value, -1);
}

static List *
describe_filter(const PgBloomJoinTarget *target)
{
	return list_make4(property("number", makeInteger(target->number)),
					  property("keys", list_copy(target->key_numbers)),
					  property("grouped", makeBoolean(target->grouping != NULL)),
					  property("most_keys", makeInteger(target->most_keys)));
}

/* The condition that probes a filter. */
static Expr *
make_probe(FilterPlanning *planning, int number, List *keys)
{
	Const	   *constant = makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
									 Int32GetDatum(number), false, true);

	return (Expr *) makeFuncExpr(planning->function, BOOLOID,
								 lcons(constant, keys), InvalidOid, InvalidOid,
								 PGBLOOM_PROBE_FORM);
}

/*
 * A target list that returns the columns of a plan unchanged, as Vars of this
 * kind.
 */
static List *
pass_on(Plan *plan, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(lc));

		entry->expr = (Expr *) makeVarFromTargetEntry(varno, entry);
		result = lappend(result, entry);
	}
	return result;
}

/*
 * Put the node that builds filters for these targets between Hash and its
 * child, and remember the targets.  Everything that other parts of PostgreSQL
 * want to know of it, such as costs and parameters, is as of the child.  Below
 * Gather it is parallel-aware, so that it gets shared memory.
 */
static void
add_filters(FilterPlanning *planning, HashJoin *join, List *targets, bool parallel)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	List	   *filters = NIL;
	bool		shared_hash = hash->plan.parallel_aware;
	ListCell   *lc;

	foreach(lc, targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);
		PgBloomJoinTarget *first = first_with_filter(targets, target);

		if (first == target)
			target->number = ++planning->last_number;
		target->number = first->number;
		first->most_keys = Max(first->most_keys, target->most_keys);
		target->matching = pgbloom_join_share_matching(join);
		target->qual = make_probe(planning, target->number, target->keys);
	}
	foreach(lc, targets)
	{
		if (first_with_filter(targets, lfirst(lc)) == lfirst(lc))
			filters = lappend(filters, describe_filter(lfirst(lc)));
	}
	planning->targets = list_concat(planning->targets, targets);

	*plan = *child;
	plan->type = T_CustomScan;
	plan->plan_node_id = ++planning->walk.last_node_id;
	plan->parallel_aware = parallel;
	plan->async_capable = false;
	plan->targetlist = pass_on(child, INDEX_VAR);
	plan->qual = NIL;
	plan->lefttree = child;
	plan->righttree = NULL;
	plan->initPlan = NIL;
	scan->custom_scan_tlist = pass_on(child, OUTER_VAR);
	scan->custom_exprs = copyObject(hash->hashkeys);
	scan->custom_private =
		list_make5(property("operators", list_copy(join->hashoperators)),
				   property("collations", list_copy(join->hashcollations)),
				   property("function", makeInteger((int) planning->function)),
				   property("shared_hash", makeBoolean(shared_hash)),
				   property("hides_rows",
							makeBoolean(planning->statement->hides_rows)));
	scan->custom_private = lappend(scan->custom_private,
								   property("filters", filters));
	scan->methods = &pgbloom_join_scan_methods;
	outerPlan(hash) = plan;
}

/* Find the targets of the filters of a join, or return why it has none. */
static PgBloomReason
find_targets(FilterPlanning *planning, const PgBloomPlannedJoin *planned,
			 List **targets)
{
	HashJoin   *join = planned->join;
	PgBloomReason reason = planning->reason;

	if (reason == PGBLOOM_NO_REASON && !drops_outer_rows(join->join.jointype))
		reason = PGBLOOM_REASON_JOIN_TYPE;
	if (reason == PGBLOOM_NO_REASON)
		reason = pgbloom_join_never_worthwhile(join);
	if (reason == PGBLOOM_NO_REASON && planned->repeated)
		reason = PGBLOOM_REASON_REPEATED;
	if (reason == PGBLOOM_NO_REASON && planning->walk.filtered &&
		!planning->only_reasons)
		reason = PGBLOOM_REASON_EARLIER_PLAN;
	if (reason != PGBLOOM_NO_REASON)
		return reason;
	reason = pgbloom_join_targets(planning->statement, planned, targets);
	if (reason == PGBLOOM_NO_REASON && !OidIsValid(planning->function))
		reason = planning->reason =
			pgbloom_join_find_probe_function(&planning->function);
	return reason;
}

/*
 * Consider the joins of a statement from the top down: a filter of an upper join
 * may go below a lower one, whose Hash node has no builder then.
 */
static void
consider_joins(FilterPlanning *planning)
{
	ListCell   *lc;

	pgbloom_walk_plan(planning->stmt, &planning->walk);
	if (planning->walk.joins != NIL)
		planning->statement = pgbloom_look_up_statement(planning->stmt);
	foreach(lc, planning->walk.joins)
	{
		PgBloomPlannedJoin *join = lfirst(lc);
		List	   *targets = NIL;
		PgBloomReason reason = find_targets(planning, join, &targets);

		if (!planning->only_reasons && reason == PGBLOOM_NO_REASON)
			add_filters(planning, join->join, targets, join->parallel);
		if (!planning->only_reasons)
			pgbloom_join_note_filters(planning->statement, join->join,
									  reason == PGBLOOM_NO_REASON ? targets : NIL);
		if (!pgbloom_is_builder(outerPlan(innerPlan(join->join))))
			join->reason = reason != PGBLOOM_NO_REASON ?
				reason : PGBLOOM_REASON_EARLIER_PLAN;
	}
}

static int
compare_matching(const ListCell *a, const ListCell *b)
{
	const PgBloomJoinTarget *x = lfirst(a);
	const PgBloomJoinTarget *y = lfirst(b);

	return (x->matching > y->matching) - (x->matching < y->matching);
}

/*
 * Add the calls to the quals, those that let the fewest rows pass first.  A
 * cached plan is planned again when the function is dropped or changed.
 */
static void
add_quals(FilterPlanning *planning)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);
	ListCell   *lc;

	list_sort(planning->targets, compare_matching);
	foreach(lc, planning->targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);

		target->scan->qual = lappend(list_copy(target->scan->qual),
									 target->qual);
	}
	item->cacheId = PROCOID;
	item->hashValue = GetSysCacheHashValue1(PROCOID,
											ObjectIdGetDatum(planning->function));
	planning->stmt->invalItems = lappend(planning->stmt->invalItems, item);
}

/* What it costs to compile a probe, in shares of the limits. */
#define COMPILED	0.05

/*
 * Each scan with a filter has an expression that would be compiled, so a
 * statement must cost the more above PostgreSQL's limits to be compiled.
 */
static void
limit_jit(PlannedStmt *stmt, int nscans)
{
	double		cost = stmt->planTree->total_cost / (1 + nscans * COMPILED);

	if (cost <= jit_above_cost)
		stmt->jitFlags = PGJIT_NONE;
	if (cost <= jit_optimize_above_cost)
		stmt->jitFlags &= ~PGJIT_OPT3;
	if (cost <= jit_inline_above_cost)
		stmt->jitFlags &= ~PGJIT_INLINE;
}

/*
 * The hash joins of a finished statement, each with the reason why it has no
 * filter, as a list of PgBloomPlannedJoin.  is_volatile is false if it is not
 * known.
 */
List *
pgbloom_join_reasons(PlannedStmt *stmt, bool is_volatile)
{
	FilterPlanning planning = {
		.stmt = stmt,
		.reason = plan_reason(stmt, is_volatile),
		.only_reasons = true
	};

	consider_joins(&planning);
	return planning.walk.joins;
}

/* Add filters to a finished plan, where they are a gain. */
void
pgbloom_join_add_filters(PlannedStmt *stmt, bool is_volatile)
{
	FilterPlanning planning = {
		.stmt = stmt,
		.reason = plan_reason(stmt, is_volatile)
	};

	if (planning.reason != PGBLOOM_REASON_OFF)
		consider_joins(&planning);
	if (planning.targets != NIL)
	{
		add_quals(&planning);
		limit_jit(stmt, list_length(planning.targets));
	}
}
