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

#include <limits.h>

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What is above a part of the plan. */
typedef struct Surroundings
{
	bool		rescanned;		/* may be executed more than once */
	bool		parallel;		/* below Gather */
	Bitmapset  *gathers;		/* parameters that make Gather start again */
} Surroundings;

typedef struct Planning
{
	PlannedStmt *stmt;
	PgBloomReason reason;		/* why no join of the statement has filters */
	bool		only_reasons;	/* the plan stays as it is */
	List	   *unfiltered;		/* of PgBloomUnfiltered, then */
	Oid			function;		/* bloom_join_probe */
	int			last_number;
	List	   *targets;		/* whose scans are going to probe filters */
	PgBloomJoinNodes *nodes;	/* NULL until a join is worth looking at them */
	Bitmapset  *once;			/* subplans that are executed once, from 1 on */
} Planning;

/*
 * Why has the whole statement no filters?  Where rows are locked, changed or
 * deleted, EvalPlanQual may evaluate a part of the plan again with rows that
 * the filter has not seen.  Nor are there filters where PostgreSQL puts filters
 * of its own into scans; one that stays within the hash join, for which there
 * is the same setting, drops rows later and does not matter.
 */
static PgBloomReason
statement_reason(PlannedStmt *stmt, bool is_volatile)
{
	const char *builtin;

	if (pgbloom_join_filters == PGBLOOM_JOIN_OFF)
		return PGBLOOM_REASON_OFF;
	if ((stmt->commandType != CMD_SELECT && stmt->commandType != CMD_INSERT) ||
		stmt->hasModifyingCTE || stmt->rowMarks != NIL)
		return PGBLOOM_REASON_STATEMENT;
	if (is_volatile)
		return PGBLOOM_REASON_VOLATILE;
	builtin = GetConfigOption("enable_hashjoin_bloom", true, false);
	if (builtin != NULL && strcmp(builtin, "on") == 0 &&
		GetConfigOption("bloom_filter_pushdown_threshold", true, false) != NULL)
		return PGBLOOM_REASON_CORE_FILTERS;
	return PGBLOOM_NO_REASON;
}

/* Does the join drop outer rows without a match, and show no trace of them? */
static bool
drops_outer_rows(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT ||
		PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type);
}

/*
 * The filter of these keys among those that the join has so far, or a new
 * one.  A filter is a list of its number and its keys.
 */
static List *
find_filter(Planning *planning, List **filters, List *keys)
{
	ListCell   *lc;

	foreach(lc, *filters)
	{
		if (equal(list_copy_tail(lfirst(lc), 1), keys))
			return lfirst(lc);
	}
	*filters = lappend(*filters,
					   lcons_int(++planning->last_number, list_copy(keys)));
	return llast(*filters);
}

/* The condition that probes a filter. */
static Expr *
make_probe(Planning *planning, int number, List *keys)
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
		TargetEntry *entry = lfirst(lc);
		Node	   *expr = (Node *) entry->expr;
		Var		   *var = makeVar(varno, entry->resno, exprType(expr),
								  exprTypmod(expr), exprCollation(expr), 0);

		result = lappend(result, makeTargetEntry((Expr *) var, entry->resno,
												 entry->resname,
												 entry->resjunk));
	}
	return result;
}

/*
 * Can the inner side be read where the join, without an outer row, would not
 * read it?  It must not be noticed by an error.
 */
static bool
is_inner_side_harmless(HashJoin *join)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	ListCell   *key,
			   *operator,
			   *collation;

	forthree(key, hash->hashkeys, operator, join->hashoperators,
			 collation, join->hashcollations)
	{
		if (pgbloom_join_may_fail(lfirst(key)) ||
			!pgbloom_join_can_hash(lfirst_oid(operator),
								   lfirst_oid(collation)))
			return false;
	}
	return !pgbloom_plan_may_fail(outerPlan(hash));
}

/*
 * Put the node that builds filters for these targets between Hash and its
 * child, and remember the targets.  Everything that other parts of PostgreSQL
 * want to know of it, such as costs and parameters, is as of the child.  Below
 * Gather it is parallel-aware, so that it gets shared memory.
 */
static void
add_filters(Planning *planning, HashJoin *join, List *targets, bool parallel)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	List	   *filters = NIL;
	List	   *properties;
	double		most_passed = 0;
	double		most_keys = INT_MAX;
	bool		grouped = false;
	ListCell   *lc;

	foreach(lc, targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);
		List	   *filter = find_filter(planning, &filters,
										 target->key_numbers);

		target->qual = make_probe(planning, linitial_int(filter), target->keys);
		most_passed = Max(most_passed, target->most_passed);
		most_keys = Min(most_keys, target->most_keys);
		grouped |= target->grouped;
	}
	planning->targets = list_concat(planning->targets, targets);
	pgbloom_join_note_filters(planning->stmt, planning->nodes, join, targets);

	*plan = *child;
	plan->type = T_CustomScan;
	plan->plan_node_id = ++planning->nodes->last_node_id;
	plan->parallel_aware = parallel;
	plan->async_capable = false;
	plan->targetlist = pass_on(child, INDEX_VAR);
	plan->qual = NIL;
	plan->lefttree = child;
	plan->righttree = NULL;
	plan->initPlan = NIL;
	scan->custom_scan_tlist = pass_on(child, OUTER_VAR);
	scan->custom_exprs = copyObject(hash->hashkeys);
	properties = list_make5_int(hash->plan.parallel_aware,
								(int) (most_passed * 100), (int) most_keys,
								grouped,
								is_inner_side_harmless(join));
	properties = lappend_int(properties, planning->nodes->hides_rows);
	scan->custom_private = list_make5(list_copy(join->hashoperators),
									  list_copy(join->hashcollations),
									  properties, filters,
									  list_make1_oid(planning->function));
	scan->methods = &pgbloom_join_scan_methods;
	outerPlan(hash) = plan;
}

/*
 * Find the targets of the filters of a join, or return why it has none.
 *
 * A join that is executed repeatedly may read an outer row before its inner
 * side starts again for new values of parameters, or below a Gather without
 * workers, and would probe the filter of the time before.  So the inner side
 * must return the same rows.
 */
static PgBloomReason
find_targets(Planning *planning, HashJoin *join, const Surroundings *above,
			 List **targets)
{
	PgBloomReason reason = planning->reason;

	if (reason == PGBLOOM_NO_REASON && !drops_outer_rows(join->join.jointype))
		reason = PGBLOOM_REASON_JOIN_TYPE;
	if (reason == PGBLOOM_NO_REASON)
		reason = pgbloom_join_never_worthwhile(join);
	if (reason == PGBLOOM_NO_REASON && above->rescanned &&
		!bms_is_subset(innerPlan(join)->extParam, above->gathers))
		reason = PGBLOOM_REASON_REPEATED;
	if (reason != PGBLOOM_NO_REASON)
		return reason;
	if (planning->nodes == NULL)
		planning->nodes = pgbloom_examine_nodes(planning->stmt);
	if (planning->nodes->filtered && !planning->only_reasons)
		return PGBLOOM_REASON_EARLIER_PLAN;
	reason = pgbloom_join_targets(planning->nodes, join, above->rescanned,
								  targets);
	if (reason == PGBLOOM_NO_REASON)
		reason = pgbloom_join_worthwhile(join, targets);
	if (reason == PGBLOOM_NO_REASON && !OidIsValid(planning->function))
		reason = planning->reason =
			pgbloom_join_find_probe_function(&planning->function);
	return reason;
}

/* Note why this join has no filter, unless it has one. */
static void
note_reason(Planning *planning, HashJoin *join, PgBloomReason reason)
{
	PgBloomUnfiltered *unfiltered;

	if (pgbloom_is_builder(outerPlan(innerPlan(join))))
		return;
	unfiltered = palloc(sizeof(PgBloomUnfiltered));
	unfiltered->join = join;
	unfiltered->reason = reason != PGBLOOM_NO_REASON ?
		reason : PGBLOOM_REASON_EARLIER_PLAN;
	planning->unfiltered = lappend(planning->unfiltered, unfiltered);
}

static void
consider_join(Planning *planning, HashJoin *join, const Surroundings *above)
{
	List	   *targets = NIL;
	PgBloomReason reason = find_targets(planning, join, above, &targets);

	if (planning->only_reasons)
		note_reason(planning, join, reason);
	else if (reason == PGBLOOM_NO_REASON)
		add_filters(planning, join, targets, above->parallel);
}

static Surroundings
above_child(Plan *plan, Plan *child, const Surroundings *above)
{
	Surroundings result = *above;
	int			gather = -1;

	result.rescanned |= IsA(plan, CustomScan) ||
		((IsA(plan, NestLoop) || IsA(plan, RecursiveUnion)) &&
		 child == innerPlan(plan));
	if (IsA(plan, Gather))
		gather = ((Gather *) plan)->rescan_param;
	else if (IsA(plan, GatherMerge))
		gather = ((GatherMerge *) plan)->rescan_param;
	else
		return result;
	result.parallel = true;
	if (gather >= 0)
		result.gathers = bms_add_member(bms_copy(above->gathers), gather);
	return result;
}

/*
 * Note which subplans are executed once: CTEs and others whose results are
 * parameters of this node and what is below it, if they have no parameters
 * from outside.
 */
static void
note_init_plans(Planning *planning, Plan *plan)
{
	ListCell   *lc;

	foreach(lc, plan->initPlan)
	{
		int			id = ((SubPlan *) lfirst(lc))->plan_id;
		Plan	   *subplan = list_nth(planning->stmt->subplans, id - 1);

		if (bms_is_empty(subplan->extParam))
			planning->once = bms_add_member(planning->once, id);
	}
}

/*
 * Consider the joins of a plan from the top down: a filter of an upper join
 * may go below a lower one, whose Hash node has no builder then.
 */
static void
visit_plan(Planning *planning, Plan *plan, const Surroundings *above)
{
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	note_init_plans(planning, plan);
	if (IsA(plan, HashJoin))
		consider_join(planning, (HashJoin *) plan, above);
	foreach(lc, pgbloom_plan_children(plan))
	{
		Surroundings child_above = above_child(plan, lfirst(lc), above);

		visit_plan(planning, lfirst(lc), &child_above);
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
add_quals(Planning *planning)
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

static void
visit_statement(Planning *planning)
{
	PlannedStmt *stmt = planning->stmt;
	Surroundings top = {0};
	int			id;

	visit_plan(planning, stmt->planTree, &top);

	/* A subplan comes after those that it uses. */
	for (id = list_length(stmt->subplans); id > 0; id--)
	{
		Plan	   *subplan = list_nth(stmt->subplans, id - 1);

		top.rescanned = !bms_is_member(id, planning->once);
		if (subplan != NULL)
			visit_plan(planning, subplan, &top);
	}
}

/*
 * Why have hash joins of a finished statement no filters?  Returns a list of
 * PgBloomUnfiltered.  is_volatile is false if it is not known.
 */
List *
pgbloom_join_unfiltered(PlannedStmt *stmt, bool is_volatile)
{
	Planning	planning = {
		.stmt = stmt,
		.reason = statement_reason(stmt, is_volatile),
		.only_reasons = true
	};

	visit_statement(&planning);
	return planning.unfiltered;
}

/* Add filters to a finished plan, where they are a gain. */
void
pgbloom_join_add_filters(PlannedStmt *stmt, bool is_volatile)
{
	Planning	planning = {.stmt = stmt};

	if (statement_reason(stmt, is_volatile) == PGBLOOM_NO_REASON)
		visit_statement(&planning);
	if (planning.targets != NIL)
		add_quals(&planning);
}
