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
#include <math.h>

#include "catalog/pg_statistic.h"
#include "parser/parsetree.h"
#include "pgbloom.h"
#include "utils/syscache.h"

/*
 * If a larger share of the rows matches, a filter is of no use.  A binary
 * fraction: where registers are more precise than memory, as on i386, 0.9 would
 * differ from a stored 0.9.
 */
#define MAX_MATCHING	(29 / 32.0)

/*
 * In a partition of fewer rows it takes longer to prepare the probe, except that
 * a foreign server may not be asked.
 */
#define MIN_SCAN_ROWS	100

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
double
pgbloom_join_share_matching(HashJoin *join)
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
	return pgbloom_join_share_matching(join) > MAX_MATCHING ?
		PGBLOOM_REASON_MATCHING : PGBLOOM_NO_REASON;
}

/*
 * Why is a filter of this scan, one of several of so many rows, not likely to do
 * so?  To build it costs more for each row than to probe it.
 */
PgBloomReason
pgbloom_join_not_worthwhile(HashJoin *join, const Plan *scan, double rows)
{
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	if (rows < pgbloom_join_filter_min_rows ||
		(scan->plan_rows < Min(MIN_SCAN_ROWS, pgbloom_join_filter_min_rows) &&
		 !IsA(scan, ForeignScan)))
		return PGBLOOM_REASON_FEW_ROWS;
	return innerPlan(join)->plan_rows > rows / 2 ?
		PGBLOOM_REASON_LARGE_INNER : PGBLOOM_NO_REASON;
}

/*
 * How many keys so many rows of the table of a scan have by its statistics, or 0
 * if that is not known; of a partition, the whole table.
 */
static double
keys_of_rows(const PgBloomStatement *statement, const Plan *scan, Expr *key,
			 double rows)
{
	int			column = pgbloom_join_column(key);
	Index		relid = pgbloom_scanned_column(statement, scan, &column);
	double		result = 0;
	double		all;
	RangeTblEntry *rte;
	HeapTuple	statistics;

	if (relid == 0 || column == 0)
		return 0;
	rte = rt_fetch(relid, statement->stmt->rtable);
	all = pgbloom_relation_row(rte->relid).reltuples;
	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
								 Int16GetDatum(column),
								 BoolGetDatum(rte->inh));
	if (HeapTupleIsValid(statistics))
	{
		result = ((Form_pg_statistic) GETSTRUCT(statistics))->stadistinct;
		if (result < 0)
			result *= -all;
		ReleaseSysCache(statistics);
	}
	return all > 0 ? result * Min(rows / all, 1) : 0;
}

/*
 * Below a grouping, each row is probed, without a sample of what passes.  So it
 * must be known that few do: that the inner side has at most half of the keys.
 * The planner takes conditions to leave rows of nearly all keys, and multiplies
 * the numbers of values of several columns by which rows are grouped, also if
 * one depends on the other.  Here, they leave as large a share of the keys as of
 * the rows.
 */
PgBloomReason
pgbloom_join_groups_not_worthwhile(const PgBloomStatement *statement,
								   HashJoin *join, PgBloomJoinTarget *target)
{
	const Plan *grouping = &target->grouping->plan;
	double		keys = 0;
	ListCell   *lc;

	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	foreach(lc, target->keys)
		keys = fmax(keys, keys_of_rows(statement, target->scan, lfirst(lc),
									   outerPlan(grouping)->plan_rows));
	target->most_keys = (int) Min(Min(grouping->plan_rows, keys) / 2, INT_MAX);
	return innerPlan(join)->plan_rows > target->most_keys ?
		PGBLOOM_REASON_MATCHING : PGBLOOM_NO_REASON;
}
