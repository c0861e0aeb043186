/*-------------------------------------------------------------------------
 *
 * worth.c
 *	  Is a filter likely to save more than it costs?
 *
 * A probe costs about as much as a few operators.  While rows are dropped it
 * saves more than that, and otherwise it is only sampled.  But a filter also
 * evaluates the join's keys once more: for each row of the inner side, and for
 * each row of the scan that passes or that a node in between would have
 * dropped.  If the keys are expensive, the share of rows that the filter must
 * drop follows from the planner's costs.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <float.h>
#include <limits.h>

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

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

/* If a larger share of the rows passes, it is only sampled. */
#define MAX_PASSED		0.8

/* Keys of no more than so many operators count as free. */
#define FREE_OPERATORS	4

/*
 * PostgreSQL's functions cost one operator each by their declaration, but take
 * longer for values of variable length.
 */
#define VARLENA_OPERATORS	10

/* Values that are wider on average are likely to be compressed. */
#define WIDE	1024

/* Does a plan return a row for each group? */
static bool
is_grouping(Plan *plan)
{
	while (IsA(plan, SubqueryScan))
		plan = ((SubqueryScan *) plan)->subplan;
	return IsA(plan, Group) || (IsA(plan, Agg) && ((Agg *) plan)->numCols > 0);
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

/*
 * Are the values of a column likely to be out of line, or compressed?  The
 * width in the statistics is that of the pointers for values out of line.  But
 * ANALYZE leaves wide values out of the most common values and the histogram,
 * and has neither if all are wide.
 */
static bool
is_wide(PlannedStmt *stmt, Var *column)
{
	RangeTblEntry *rte;
	HeapTuple	tuple;
	Form_pg_statistic statistic;
	bool		wide;

	if (IS_SPECIAL_VARNO(column->varno) || column->varattno <= 0)
		return false;
	rte = rt_fetch(column->varno, stmt->rtable);
	if (rte->rtekind != RTE_RELATION)
		return false;
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
							Int16GetDatum(column->varattno),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return false;
	statistic = (Form_pg_statistic) GETSTRUCT(tuple);
	wide = statistic->stawidth >= WIDE ||
		(statistic->stakind1 == 0 && statistic->stanullfrac < 1 &&
		 OidIsValid(lookup_type_cache(column->vartype,
									  TYPECACHE_LT_OPR)->lt_opr));
	ReleaseSysCache(tuple);
	return wide;
}

/*
 * What it costs to evaluate a key for one row, with what the values of columns
 * of variable length cost.
 */
static Cost
key_cost(PlannedStmt *stmt, Expr *expr)
{
	bool		bare = pgbloom_join_column(expr) != 0;
	QualCost	functions;
	Cost		cost;
	ListCell   *lc;

	cost_qual_eval_node(&functions, (Node *) expr, NULL);
	cost = functions.per_tuple;
	foreach(lc, pull_var_clause((Node *) expr, 0))
	{
		Var		   *column = lfirst(lc);

		if (get_typlen(column->vartype) != -1)
			continue;
		if (!bare)
			cost += VARLENA_OPERATORS * cpu_operator_cost;
		if (is_wide(stmt, column))
			cost += seq_page_cost;
	}
	return cost;
}

/*
 * The share of matching rows up to which the filter saves more than it costs.
 *
 * The keys of the inner side are taken to be as wide as those of the scan.
 */
static double
most_matching(PlannedStmt *stmt, HashJoin *join, PgBloomJoinTarget *target)
{
	List	   *inner_keys = ((Hash *) innerPlan(join))->hashkeys;
	Cost		outer = 0,
				inner = 0,
				saved;
	ListCell   *lc;

	foreach(lc, target->keys)
		outer += key_cost(stmt, lfirst(lc));
	foreach(lc, target->key_numbers)
		inner += key_cost(stmt, list_nth(inner_keys, lfirst_int(lc)));
	if (outer + inner <= FREE_OPERATORS * cpu_operator_cost)
		return MAX_MATCHING;
	target->guarded = true;

	/* What dropping all rows saves: nodes above, and keys that they evaluate */
	saved = target->rows * cpu_tuple_cost + target->above +
		outer * outerPlan(join)->plan_rows;
	return Min(MAX_MATCHING,
			   1 - (outer * target->rows +
					Max(inner, outer) * innerPlan(join)->plan_rows) / saved);
}

/* Why could no filter of the join save more than it costs? */
PgBloomReason
pgbloom_join_never_worthwhile(HashJoin *join)
{
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	if (innerPlan(join)->plan_rows * PGBLOOM_JOIN_BITS_PER_KEY / 8 >
		pgbloom_join_filter_limit() / 4.0 * 3)
		return PGBLOOM_REASON_MEMORY;
	return share_matching(join) > MAX_MATCHING ?
		PGBLOOM_REASON_MATCHING : PGBLOOM_NO_REASON;
}

/* Why is a filter of this scan not likely to do so? */
static PgBloomReason
not_worthwhile(PlannedStmt *stmt, HashJoin *join, PgBloomJoinTarget *target)
{
	double		most;

	target->matching = share_matching(join);
	target->most_passed = 1;
	target->most_keys = DBL_MAX;
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return PGBLOOM_NO_REASON;
	if (target->rows < pgbloom_join_filter_min_rows)
		return PGBLOOM_REASON_FEW_ROWS;
	if (innerPlan(join)->plan_rows > target->rows * MAX_INNER_RATIO)
		return PGBLOOM_REASON_LARGE_INNER;
	most = most_matching(stmt, join, target);
	if (!target->grouped)
		target->most_passed = Min(most, MAX_PASSED);
	else
		target->most_keys = innerPlan(join)->plan_rows * most /
			Max(target->matching, MAX_MATCHING / INT_MAX);
	return target->matching <= most ?
		PGBLOOM_NO_REASON : PGBLOOM_REASON_EXPENSIVE;
}

/*
 * Keep the targets that are worthwhile together with all that they need, or
 * return why there are none.
 */
PgBloomReason
pgbloom_join_worthwhile(PlannedStmt *stmt, HashJoin *join, List **targets)
{
	PgBloomReason reason = PGBLOOM_NO_REASON;
	Bitmapset  *left_out = NULL;
	ListCell   *lc;

	foreach(lc, *targets)
	{
		PgBloomJoinTarget *target = lfirst(lc);
		PgBloomReason why = not_worthwhile(stmt, join, target);

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
