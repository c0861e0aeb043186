/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  Whether a finished plan has the filters that its planning has assumed.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

/* What each relation of the range table is a partition or child of, or NULL. */
static AppendRelInfo **
find_parents(PlannedStmt *stmt)
{
	AppendRelInfo **result = palloc0(sizeof(AppendRelInfo *) *
									 (list_length(stmt->rtable) + 1));
	ListCell   *lc;

	foreach(lc, stmt->appendRelations)
	{
		AppendRelInfo *child = lfirst(lc);

		result[child->child_relid] = child;
	}
	return result;
}

/* The relation that a node of the plan scans, or 0. */
static Index
scanned_relation(const Plan *plan)
{
	return nodeTag(plan) >= T_SeqScan && nodeTag(plan) <= T_CustomScan ?
		((const Scan *) plan)->scanrelid : 0;
}

/* Does this part of the plan scan the relation, or a part of it? */
static bool
plan_scans(AppendRelInfo **parents, Plan *plan, Index relid)
{
	Index		scanned = scanned_relation(plan);
	ListCell   *lc;

	while (parents[scanned] != NULL)
		scanned = parents[scanned]->parent_relid;
	if (scanned == relid)
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (plan_scans(parents, lfirst(lc), relid))
			return true;
	}
	return false;
}

/*
 * Is the key of this scan the column by which something is left unread?  Its
 * number may be another one in a partition.
 */
static bool
is_assumed_column(const PgBloomAssumption *assumption, AppendRelInfo **parents,
				  Plan *scan, Expr *key)
{
	Index		relid = scanned_relation(scan);
	int			column = pgbloom_join_column(key);

	while (parents[relid] != NULL)
	{
		AppendRelInfo *child = parents[relid];

		column = column > 0 && column <= child->num_child_cols ?
			child->parent_colnos[column - 1] : 0;
		relid = child->parent_relid;
	}
	return relid == assumption->filtered &&
		(assumption->column == 0 || assumption->column == column);
}

/* Is this scan filtered as assumed, and of a kind that skip.c skips? */
static bool
fulfils(const PgBloomAssumption *assumption, AppendRelInfo **parents,
		const PgBloomHiddenRows *hidden, const PgBloomJoinTarget *target)
{
	ListCell   *lc;

	if (target->grouped ||
		(!IsA(target->scan, SeqScan) && !IsA(target->scan, ForeignScan)) ||
		(!assumption->partitioned &&
		 (target->scan->parallel_aware || hidden->any)))
		return false;
	foreach(lc, target->keys)
	{
		if (is_assumed_column(assumption, parents, target->scan, lfirst(lc)))
			return true;
	}
	return false;
}

/*
 * Scans below this join are going to probe its filters.  Note whether that is
 * what was assumed.  The relations of the outermost query have the same numbers
 * in the plan.  By a Parallel Hash nothing is skipped.
 */
void
pgbloom_join_note_filters(PlannedStmt *stmt, const PgBloomHiddenRows *hidden,
						  HashJoin *join, List *targets)
{
	List	   *assumptions = pgbloom_join_assumptions();
	AppendRelInfo **parents;
	ListCell   *x,
			   *y;

	if (assumptions == NIL || innerPlan(join)->parallel_aware)
		return;
	parents = find_parents(stmt);
	foreach(x, assumptions)
	{
		PgBloomAssumption *assumption = lfirst(x);

		if (assumption->fulfilled ||
			!plan_scans(parents, innerPlan(join), assumption->by))
			continue;
		foreach(y, targets)
			assumption->fulfilled |= fulfils(assumption, parents, hidden,
											 lfirst(y));
	}
	pfree(parents);
}
