/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  Joins of columns whose values have different ranges.
 *
 * PostgreSQL takes the rows that a condition leaves to be spread over all values
 * of a column.  A calendar of 200 years joined with facts of five years is
 * estimated 40 times too low if one of these years is asked for.
 *
 * A condition that leaves a piece of the order of the key, as the year of a day
 * does, leaves of the other side what is in that piece, by the histograms of
 * both.  All others, such as a weekday, are taken to be independent of it, as
 * PostgreSQL does.  find_sides() tells this of both sides of an equality.  By it,
 * selectivities are corrected before joins are searched, and assume.c knows how
 * much of a relation is read with a filter.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <math.h>

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

typedef struct Side				/* of an equality */
{
	RelOptInfo *rel;
	double		tuples;			/* before conditions */
	double		ndistinct;		/* of the rows that PostgreSQL knows of */
	double		values;			/* of all tuples */
	bool		has_common;		/* most common values are known */
	double		selected;		/* of its rows, by all conditions */
	double		left;			/* by those on the order; all leave a row */
	PgBloomPiece piece;			/* where in the order these are */
	double		nonnull;		/* of its rows */
	double		first;			/* of these, before the other side's range */
	double		share;			/* of these, in the range of the other side */
} Side;

/*
 * Find what is known of a side by itself; returns false if that is too little.
 * Without a histogram, nothing is: a column of few values has none, and its rows
 * may be anywhere.
 */
static bool
examine_side(PlannerInfo *root, Side *side, Node *expr)
{
	VariableStatData var;
	AttStatsSlot slot;
	bool		is_default = true;

	examine_variable(root, expr, 0, &var);
	side->rel = var.rel;
	if (var.rel != NULL && var.rel->tuples > 0 && var.acl_ok &&
		HeapTupleIsValid(var.statsTuple) &&
		get_attstatsslot(&slot, var.statsTuple, STATISTIC_KIND_HISTOGRAM,
						 InvalidOid, 0))
	{
		Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(var.statsTuple);

		side->ndistinct = get_variable_numdistinct(&var, &is_default);

		/*
		 * Tuples of a relation with children are what conditions leave, until
		 * 17, or the pruning of partitions.
		 */
		side->tuples = var.rel->tuples;
		side->selected = fmax(clauselist_selectivity(root, var.rel->baserestrictinfo,
													 0, JOIN_INNER, NULL), 1e-9);
		if (planner_rt_fetch(var.rel->relid, root)->inh)
			side->tuples = var.rel->rows / side->selected;
		side->values = form->stadistinct > 0 ? side->ndistinct :
			side->ndistinct * side->tuples / var.rel->tuples;
		side->nonnull = 1 - form->stanullfrac;
		side->has_common = get_attstatsslot(&slot, var.statsTuple,
											STATISTIC_KIND_MCV, InvalidOid, 0);
	}
	ReleaseVariableStats(var);
	return !is_default && side->nonnull > 0;
}

/* Do conditions on the order limit a side? */
static bool
is_limited(const Side *side)
{
	return side->left * side->piece.unknown < 1;
}

/*
 * Find what is known of both sides of an equality; returns false if something
 * is not, or there is no condition on their order.  In the range of the other
 * side is what a merge join would not pass over in either direction, all rows if
 * statistics do not tell.  Values are compared by PostgreSQL's own functions only,
 * which cannot fail.
 */
static bool
find_sides(PlannerInfo *root, RestrictInfo *rinfo, Side sides[2])
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	Selectivity after[2],
				unused;
	Oid			family;
	int			i;

	if (rinfo->mergeopfamilies == NIL ||
		get_oprjoin(op->opno) != F_EQJOINSEL ||
		(family = linitial_oid(rinfo->mergeopfamilies)) >= FirstNormalObjectId ||
		!pgbloom_join_is_own(op->opno, op->inputcollid))
		return false;
	for (i = 0; i < 2; i++)
	{
		AttrNumber	column = pgbloom_join_column(list_nth(op->args, i));

		if (column <= 0 ||
			!examine_side(root, &sides[i], list_nth(op->args, i)))
			return false;
		sides[i].left = fmax(pgbloom_join_left_of_order(root, sides[i].rel, column,
														&sides[i].piece),
							 sides[i].selected) /
			Min(1, sides[i].tuples * sides[i].selected);
	}
	if (!is_limited(&sides[0]) && !is_limited(&sides[1]))
		return false;
	mergejoinscansel(root, (Node *) op, family, BTLessStrategyNumber, false,
					 &sides[0].first, &unused, &sides[1].first, &unused);
	mergejoinscansel(root, (Node *) op, family, BTGreaterStrategyNumber, false,
					 &after[0], &unused, &after[1], &unused);
	for (i = 0; i < 2; i++)
	{
		sides[i].first /= sides[i].nonnull;
		sides[i].share = 1 - sides[i].first - after[i] / sides[i].nonnull;
	}
	return sides[0].share > 0 && sides[1].share > 0;
}

/*
 * Which share of the rows of a side, in its order, comes before a place in the
 * order of the other side?  The histogram of its values tells, and the most
 * common ones, which are not in it.  Common ones between the two bounds at the
 * place are before it if the most is asked for.
 */
static double
share_before(PlannerInfo *root, OpExpr *op, const Side sides[2], int at,
			 double place, bool most)
{
	VariableStatData var,
				other_var;
	Oid			types[2];
	TypeCacheEntry *type;
	Oid			less;
	AttStatsSlot slot;
	FmgrInfo	proc;
	int			low = 0,
				high,
				bound;
	double		before = 0,
				after = 1;
	double		result;
	double		common;
	double		common_before;

	op_input_types(op->opno, &types[0], &types[1]);
	type = lookup_type_cache(types[at],
							 TYPECACHE_BTREE_OPFAMILY | TYPECACHE_LT_OPR);
	less = get_opfamily_member(type->btree_opf, types[1 - at], types[at],
							   BTLessStrategyNumber);
	examine_variable(root, list_nth(op->args, at), 0, &var);
	examine_variable(root, list_nth(op->args, 1 - at), 0, &other_var);
	get_attstatsslot(&slot, var.statsTuple, STATISTIC_KIND_HISTOGRAM,
					 InvalidOid, ATTSTATSSLOT_VALUES);
	fmgr_info(get_opcode(less), &proc);
	high = slot.nvalues;
	while (low < high)
	{
		int			middle = (low + high) / 2;
		double		found = ineq_histogram_selectivity(root, &other_var, less,
													   &proc, false, false,
													   op->inputcollid,
													   slot.values[middle],
													   types[at]);

		if (found < place)
		{
			before = found;
			low = middle + 1;
		}
		else
		{
			after = found;
			high = middle;
		}
	}
	bound = most ? low : low - 1;
	if (slot.nvalues == 0)
		return place;
	fmgr_info(get_opcode(type->lt_opr), &proc);
	common_before = mcv_selectivity(&var, &proc, op->inputcollid,
									slot.values[Max(0, Min(bound, slot.nvalues - 1))],
									true, &common);
	if (bound < 0 || bound == slot.nvalues)
		common_before = bound < 0 ? 0 : common;
	result = low == 0 ? 0 : low == slot.nvalues ? 1 :
		(low - 1 + (place - before) / Max(after - before, 1e-9)) /
		(slot.nvalues - 1);
	free_attstatsslot(&slot);
	ReleaseVariableStats(var);
	ReleaseVariableStats(other_var);
	return (result * (sides[at].nonnull - common) + common_before) /
		sides[at].nonnull;
}

/*
 * The share of the rows of a side that is in both ranges, and in the piece that
 * conditions leave of either.  The other side's piece is where statistics tell, or
 * as far from there as it may be, where most rows are, or fewest.
 */
static double
share_in_both(PlannerInfo *root, OpExpr *op, const Side sides[2], int at,
			  bool most, bool may_err)
{
	const Side *side = &sides[at];
	const PgBloomPiece *other = &sides[1 - at].piece;
	double		error = may_err ? other->error : 0;
	double		result = !most;
	int			i;

	for (i = error > 0 ? -1 : 1; i <= 1; i++)
	{
		double		from = 0,
					to = 1;

		if (other->from > 0)
			from = share_before(root, op, sides, at, other->from + i * error,
								!most);
		if (other->to < 1)
			to = share_before(root, op, sides, at, other->to + i * error,
							  most);
		from = Max(from, Max(side->piece.from, side->first));
		to = Min(to, Min(side->piece.to, side->first + side->share));
		to = Max(to - from, 0);
		result = most ? Max(result, to) : Min(result, to);
	}
	return result;
}

/*
 * How many times as many rows as PostgreSQL estimates has an equality at least?
 * 0 if that is not known.  To count on rows that are not there makes worse plans
 * than PostgreSQL's, so the side with the fewest of them counts, for the larger one
 * at the worst place.  If another condition on a side may tell the same as those that
 * limit the other one, or PostgreSQL compares most common values of both, its
 * estimate stays.
 */
double
pgbloom_join_factor(PlannerInfo *root, RestrictInfo *rinfo)
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	Side		sides[2];
	const Side *a = &sides[0];
	const Side *b = &sides[1];
	bool		first_is_larger;

	if (!find_sides(root, rinfo, sides))
		return 0;
	if ((a->piece.vague && is_limited(b)) || (b->piece.vague && is_limited(a)) ||
		(a->has_common && b->has_common))
		return 1;
	first_is_larger = a->tuples >= b->tuples;
	return Max(a->ndistinct, b->ndistinct) /
		Max(a->values * a->share, b->values * b->share) *
		fmin(share_in_both(root, op, sides, 0, false, first_is_larger) * b->share,
			 share_in_both(root, op, sides, 1, false, !first_is_larger) * a->share) /
		(a->left * b->left);
}

/*
 * How much of a relation is read with a filter by this clause, and which column
 * rules out the rest?  Of blocks, what lies between the first and the last of
 * some keys; of partitions, each key is in one, perhaps in the largest.
 */
static double
share_by_clause(PlannerInfo *root, RestrictInfo *clause, RelOptInfo *filtered,
				RelOptInfo *by, AttrNumber *column)
{
	OpExpr	   *op = (OpExpr *) clause->clause;
	int			at = bms_is_member(filtered->relid, clause->right_relids);
	Node	   *key = list_nth(op->args, at);
	double		parts = Max(bms_num_members(filtered->live_parts), 1);
	bool		by_block;
	double		range = 1;
	Side		sides[2];

	/* Samples are not skipped. */
	*column = pgbloom_join_column((Expr *) key);
	if (*column == 0 || !pgbloom_join_can_hash(op->opno, op->inputcollid) ||
		planner_rt_fetch(filtered->relid, root)->tablesample != NULL)
		return 1;
	by_block = filtered->cheapest_total_path->pathtype == T_SeqScan &&
		pgbloom_join_has_brin(filtered, *column, op->inputcollid) &&
		fabs(pgbloom_join_correlation(root, filtered, *column, false)) >= PGBLOOM_SAME_ORDER;
	if (!by_block && !pgbloom_join_is_partition_key(filtered, key, op))
		return 1;
	if (find_sides(root, clause, sides))
		range = fmin(1, share_in_both(root, op, sides, at, true, true) /
					 Max(sides[at].piece.to - sides[at].piece.from, 1e-9)) *
			Min(1, sides[1 - at].piece.unknown /
				(sides[1 - at].share * sides[1 - at].nonnull));
	if (by_block)
		return range * Max(by->rows - 1, 0.1) / (by->rows + 1);
	if (filtered->part_scheme->strategy == PARTITION_STRATEGY_RANGE)
		parts = Min(parts, 1 + filtered->nparts * range);
	return pgbloom_join_largest_part(filtered) *
		Max(parts * (1 - pow(1 - 1 / parts, by->rows)), 1);
}

/*
 * The share of a base relation that is read with a filter by the keys of another
 * one, at most 1, and the column that rules out the rest, or 0 for any.
 */
double
pgbloom_join_share_read(PlannerInfo *root, RelOptInfo *filtered,
						RelOptInfo *by, AttrNumber *column)
{
	double		share = pgbloom_join_filters == PGBLOOM_JOIN_FORCE ? 0.5 : 1;
	Relids		both = bms_union(filtered->relids, by->relids);
	ListCell   *lc;

	*column = 0;
	foreach(lc, PGBLOOM_IMPLIED_EQUALITIES(root, both, filtered, by))
	{
		AttrNumber	key = 0;
		double		by_key = share_by_clause(root, lfirst(lc), filtered, by,
											 &key);

		if (by_key < share)
		{
			share = by_key;
			*column = key;
		}
	}
	return share;
}
