/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  What a path reads, and whether a finished plan has the filters that its
 *	  planning has assumed.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

/* Does a path read a relation, or each partition of it, by an index? */
bool
pgbloom_join_reads_by_index(Path *path, const RelOptInfo *rel)
{
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return pgbloom_join_reads_by_index(((JoinPath *) path)->outerjoinpath, rel) ||
				pgbloom_join_reads_by_index(((JoinPath *) path)->innerjoinpath, rel);
		case T_MaterialPath:
			return pgbloom_join_reads_by_index(((MaterialPath *) path)->subpath, rel);
		case T_MemoizePath:
			return pgbloom_join_reads_by_index(((MemoizePath *) path)->subpath, rel);
		case T_GatherPath:
			return pgbloom_join_reads_by_index(((GatherPath *) path)->subpath, rel);
		case T_GatherMergePath:
			return pgbloom_join_reads_by_index(((GatherMergePath *) path)->subpath, rel);
		default:
			return path->parent == rel &&
				(path->param_info != NULL || IsA(path, IndexPath) ||
				 IsA(path, BitmapHeapPath));
	}
}

/* Does this part of the plan scan the relation, or a part of it? */
static bool
plan_scans(const PgBloomStatement *statement, Plan *plan, Index relid)
{
	int			column = 0;
	ListCell   *lc;

	if (pgbloom_scanned_column(statement, plan, &column) == relid)
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (plan_scans(statement, lfirst(lc), relid))
			return true;
	}
	return false;
}

/*
 * Is this scan filtered as assumed, by the column by which something is left
 * unread, and of a kind that skip.c skips?
 */
static bool
fulfils(const PgBloomAssumption *assumption,
		const PgBloomStatement *statement, const PgBloomJoinTarget *target)
{
	ListCell   *lc;

	if (target->grouping != NULL ||
		(!IsA(target->scan, SeqScan) && !IsA(target->scan, ForeignScan)) ||
		(!assumption->partitioned &&
		 (target->scan->parallel_aware || statement->hides_rows)))
		return false;
	foreach(lc, target->keys)
	{
		int			column = pgbloom_join_column(lfirst(lc));

		if (pgbloom_scanned_column(statement, target->scan,
								   &column) == assumption->filtered &&
			(assumption->column == 0 || assumption->column == column))
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
pgbloom_join_note_filters(const PgBloomStatement *statement, HashJoin *join,
						  List *targets)
{
	List	   *assumptions = pgbloom_join_assumptions();
	ListCell   *x,
			   *y;

	if (assumptions == NIL || innerPlan(join)->parallel_aware)
		return;
	foreach(x, assumptions)
	{
		PgBloomAssumption *assumption = lfirst(x);

		if (assumption->fulfilled ||
			!plan_scans(statement, innerPlan(join), assumption->by))
			continue;
		foreach(y, targets)
			assumption->fulfilled |= fulfils(assumption, statement, lfirst(y));
	}
}
