/*-------------------------------------------------------------------------
 *
 * worth.c
 *	  Is a filter likely to save more than it costs?
 *
 * A probe costs about as much as a few operators.  While rows are dropped it
 * saves more than that, and otherwise it is only sampled.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <limits.h>

/*
 * The largest inner side, relative to the outer rows.  Building costs about
 * as much for each row as probing.
 */
#define MAX_INNER_RATIO	2

/*
 * If a larger share of the rows matches, a filter is of no use.  A binary
 * fraction: where registers are more precise than memory, as on i386, 0.9 would
 * differ from a stored 0.9.
 */
#define MAX_MATCHING	(29 / 32.0)

/* Does a plan return a row for each group? */
static bool
is_grouping(Plan *plan)
{
	while (IsA(plan, SubqueryScan))
		plan = ((SubqueryScan *) plan)->subplan;
	return IsA(plan, Agg) && ((Agg *) plan)->numCols > 0;
}

/*
 * The share of outer rows that the planner expects to match, or a larger one
 * if rows match several times.  Of a join that returns the rows of its inner
 * side, the estimate tells nothing unless it is larger than that.  Columns of
 * groups have no statistics, so the planner takes all groups to have one of the
 * inner keys; but an inner row has the key of one group, or of few.
 */
static double
share_matching(HashJoin *join)
{
	JoinType	type = join->join.jointype;
	double		rows = join->join.plan.plan_rows;
	double		outer = Max(outerPlan(join)->plan_rows, 1);
	double		share = rows / outer;

	if (type == JOIN_INNER && is_grouping(outerPlan(join)))
		share = Min(share, innerPlan(join)->plan_rows / outer);
	if (type == JOIN_INNER || type == JOIN_SEMI ||
		(type == JOIN_RIGHT && rows > innerPlan(join)->plan_rows))
		return share;
	return Min(share, MAX_MATCHING);
}

/* Why could no filter of the join save more than it costs? */
PgBloomReason
pgbloom_join_never_worthwhile(HashJoin *join)
{
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	if (innerPlan(join)->plan_rows * PGBLOOM_JOIN_BITS_PER_KEY / 8 >
		pgbloom_join_filter_limit() / 4.0 * 3)
		return PGBLOOM_REASON_LARGE_INNER;
	return share_matching(join) > MAX_MATCHING ?
		PGBLOOM_REASON_MATCHING : PGBLOOM_NO_REASON;
}

/* Why is a filter of this scan not likely to do so? */
static PgBloomReason
not_worthwhile(HashJoin *join, PgBloomJoinTarget *target)
{
	target->matching = share_matching(join);
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	if (target->rows < pgbloom_join_filter_min_rows)
		return PGBLOOM_REASON_FEW_ROWS;
	return innerPlan(join)->plan_rows > target->rows * MAX_INNER_RATIO ?
		PGBLOOM_REASON_LARGE_INNER : PGBLOOM_NO_REASON;
}

/* If the inner side has more rows than these, nearly all outer rows match. */
int
pgbloom_join_most_keys(HashJoin *join)
{
	double		share = Max(share_matching(join), MAX_MATCHING / INT_MAX);

	return (int) Min(innerPlan(join)->plan_rows * MAX_MATCHING / share,
					 INT_MAX);
}

/*
 * Keep the targets that are worthwhile together with all that they need, or
 * return why there are none.
 */
PgBloomReason
pgbloom_join_worthwhile(HashJoin *join, List **targets)
{
	PgBloomReason reason = PGBLOOM_NO_REASON;
	Bitmapset  *left_out = NULL;
	ListCell   *lc;

	foreach(lc, *targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);
		PgBloomReason why = not_worthwhile(join, target);

		if (why != PGBLOOM_NO_REASON)
			left_out = bms_add_member(left_out, target->together);
		reason = Max(reason, why);
	}
	foreach(lc, *targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);

		if (bms_is_member(target->together, left_out))
			*targets = foreach_delete_current(*targets, lc);
	}
	return *targets == NIL ? reason : PGBLOOM_NO_REASON;
}
