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
 * does, is taken to leave it in the range of the other side, as far as that has
 * so many rows.  All others, such as a weekday, are taken to be independent of
 * it, as PostgreSQL does.  find_sides() tells this of both sides of an equality.
 * By it, selectivities are corrected before joins are searched, and assume.c
 * knows how much of a relation is read with a filter.
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

/* Smaller errors than this factor are left as they are. */
#define LEAST_FACTOR	1.2

/* Of more relations, with a common key, all pairs would take too long. */
#define MAX_RELATIONS	16

#define ORDERED		0.9			/* correlation of a column in table order */

typedef struct Side				/* of an equality */
{
	RelOptInfo *rel;
	double		ndistinct;
	bool		has_common;		/* most common values are known */
	double		left;			/* of its rows, by conditions on the order */
	double		nonnull;		/* of its rows */
	double		share;			/* of these, in the range of the other side */
} Side;

/*
 * Are the values of a column in the order of the table's rows?  Where nearly all
 * rows have one value, the correlation tells nothing of the others.
 */
static bool
is_ordered(PlannerInfo *root, const RelOptInfo *rel, AttrNumber column)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	HeapTuple	tuple = NULL;
	AttStatsSlot slot;
	bool		result = false;

	if (rte->rtekind == RTE_RELATION && !rte->inh)
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
								Int16GetDatum(column), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return false;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		result = fabs(slot.numbers[0]) >= ORDERED;
		free_attstatsslot(&slot);
	}
	if (result && get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
								   ATTSTATSSLOT_NUMBERS))
	{
		result = slot.numbers[0] < ORDERED;
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The share of rows that is left by conditions that compare the column, or one
 * in its order, with a value.
 */
static double
left_of_order(PlannerInfo *root, const RelOptInfo *rel, AttrNumber column)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	foreach(lc, column > 0 ? rel->baserestrictinfo : NIL)
	{
		RestrictInfo *rinfo = lfirst(lc);
		OpExpr	   *op = (OpExpr *) rinfo->clause;
		bool		value_is_left = bms_is_empty(rinfo->left_relids);
		TypeCacheEntry *type;
		AttrNumber	compared;
		Expr	   *key;

		/* both are empty unless it is an operator of two arguments */
		if (value_is_left == bms_is_empty(rinfo->right_relids))
			continue;
		key = list_nth(op->args, value_is_left);
		compared = pgbloom_join_column(key);
		type = lookup_type_cache(exprType((Node *) key),
								 TYPECACHE_BTREE_OPFAMILY);
		if (compared > 0 && op_in_opfamily(op->opno, type->btree_opf) &&
			(compared == column || (is_ordered(root, rel, column) &&
									is_ordered(root, rel, compared))))
			conditions = lappend(conditions, rinfo);
	}
	return clauselist_selectivity(root, conditions, 0, JOIN_INNER, NULL);
}

/* Find what is known of a side by itself; returns false if that is too little. */
static bool
examine_side(PlannerInfo *root, Side *side, Node *expr)
{
	VariableStatData var;
	AttStatsSlot slot;
	bool		is_default = true;

	examine_variable(root, expr, 0, &var);
	side->rel = var.rel;
	if (var.rel != NULL && var.rel->tuples > 0 &&
		HeapTupleIsValid(var.statsTuple))
	{
		side->ndistinct = get_variable_numdistinct(&var, &is_default);
		side->nonnull = 1 -
			((Form_pg_statistic) GETSTRUCT(var.statsTuple))->stanullfrac;
		side->has_common = get_attstatsslot(&slot, var.statsTuple,
											STATISTIC_KIND_MCV, InvalidOid, 0);
	}
	ReleaseVariableStats(var);
	return !is_default && side->nonnull > 0;
}

/*
 * How much of its sides would a merge join by the clause pass over before the
 * first match, in this direction?  PostgreSQL asks it, too, and remembers it in
 * the clause.
 */
static MergeScanSelCache *
scan_range(PlannerInfo *root, RestrictInfo *rinfo, int strategy)
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	MergeScanSelCache *scan;
	ListCell   *lc;

	foreach(lc, rinfo->scansel_cache)
	{
		scan = lfirst(lc);
		if ((int) scan->cmptype == strategy && !scan->nulls_first)
			return scan;
	}
	scan = palloc0(sizeof(MergeScanSelCache));
	scan->opfamily = linitial_oid(rinfo->mergeopfamilies);
	scan->collation = op->inputcollid;
	scan->cmptype = strategy;
	mergejoinscansel(root, (Node *) op, scan->opfamily, scan->cmptype, false,
					 &scan->leftstartsel, &scan->leftendsel,
					 &scan->rightstartsel, &scan->rightendsel);
	rinfo->scansel_cache = lappend(rinfo->scansel_cache, scan);
	return scan;
}

/*
 * Find what is known of both sides of an equality; returns false if something
 * is not, or there is no condition on their order.  In the range of the other
 * side is what a merge join would read, all rows if statistics do not tell.
 * PostgreSQL finds it there when it plans that join; if it does not, values are
 * compared by its own functions only, which cannot fail.
 */
static bool
find_sides(PlannerInfo *root, RestrictInfo *rinfo, Side sides[2])
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	MergeScanSelCache *up,
			   *down;
	int			i;

	if (rinfo->mergeopfamilies == NIL ||
		get_oprjoin(op->opno) != F_EQJOINSEL ||
		linitial_oid(rinfo->mergeopfamilies) >= FirstNormalObjectId ||
		!pgbloom_join_is_own(op->opno, op->inputcollid))
		return false;
	for (i = 0; i < 2; i++)
	{
		if (!examine_side(root, &sides[i], list_nth(op->args, i)))
			return false;
		sides[i].left = left_of_order(root, sides[i].rel,
									  pgbloom_join_column(list_nth(op->args, i)));
	}
	if (sides[0].left >= 1 && sides[1].left >= 1)
		return false;
	up = scan_range(root, rinfo, BTLessStrategyNumber);
	down = scan_range(root, rinfo, BTGreaterStrategyNumber);
	sides[0].share = 1 - (up->leftstartsel + down->leftstartsel) / sides[0].nonnull;
	sides[1].share = 1 - (up->rightstartsel + down->rightstartsel) / sides[1].nonnull;
	return sides[0].share > 0 && sides[1].share > 0;
}

/*
 * How many times as many rows as PostgreSQL estimates has the equality?  If
 * both sides have most common values, PostgreSQL compares these.
 */
static double
factor_of(const Side *a, const Side *b)
{
	return a->has_common && b->has_common ? 1 :
		Max(a->ndistinct, b->ndistinct) /
		Max(a->ndistinct * a->share, b->ndistinct * b->share) *
		Min(1, a->share / Max(a->left, 1e-9)) *
		Min(1, b->share / Max(b->left, 1e-9));
}

/*
 * Is each member of the class known?  If not all equalities were corrected, the
 * planner would choose one that is estimated too low.
 */
static bool
is_known_class(PlannerInfo *root, const EquivalenceClass *class)
{
	ListCell   *lc;

	foreach(lc, class != NULL ? class->ec_members : NIL)
	{
		EquivalenceMember *member = lfirst(lc);
		Side		side;

		if (!member->em_is_child &&
			!examine_side(root, &side, (Node *) member->em_expr))
			return false;
	}
	return true;
}

/*
 * Correct the selectivity of a clause.  Without a join, it would be estimated
 * as a condition of one relation, and with a foreign key, not at all.
 */
static void
correct_clause(PlannerInfo *root, RestrictInfo *rinfo, double factor)
{
	SpecialJoinInfo *join = makeNode(SpecialJoinInfo);
	ListCell   *lc;

	join->min_lefthand = join->syn_lefthand = rinfo->left_relids;
	join->min_righthand = join->syn_righthand = rinfo->right_relids;
	join->jointype = JOIN_INNER;
	clause_selectivity(root, (Node *) rinfo, 0, JOIN_INNER, join);
	if (rinfo->norm_selec >= 0 && rinfo->norm_selec <= 1)
		rinfo->norm_selec = Min(1, rinfo->norm_selec * factor);
	foreach(lc, root->fkey_list)
	{
		ForeignKeyOptInfo *key = lfirst(lc);

		if (key->nkeys == 1 &&
			bms_is_member(key->con_relid, rinfo->clause_relids) &&
			bms_is_member(key->ref_relid, rinfo->clause_relids))
			root->fkey_list = foreach_delete_current(root->fkey_list, lc);
	}
}

/*
 * Correct the joins of two relations, of which the first one has the smaller
 * number.  PostgreSQL has one clause of each class for each order of the two.
 */
static void
correct_pair(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b)
{
	Relids		both = bms_union(a->relids, b->relids);
	ListCell   *x,
			   *y;

	forboth(x, PGBLOOM_IMPLIED_EQUALITIES(root, both, a, b),
			y, PGBLOOM_IMPLIED_EQUALITIES(root, both, b, a))
	{
		RestrictInfo *rinfo = lfirst(x);
		Side		sides[2];
		double		factor;

		if (!find_sides(root, rinfo, sides) ||
			(factor = factor_of(&sides[0], &sides[1])) < LEAST_FACTOR ||
			!is_known_class(root, rinfo->parent_ec))
			continue;
		correct_clause(root, rinfo, factor);
		if (lfirst(y) != rinfo)
			correct_clause(root, lfirst(y), factor);
	}
}

/*
 * Correct the joins of pairs of base relations of a query before the first
 * search of its joins.  Not where partitions are joined one by one, whose
 * clauses are others.  If conditions limit two of the columns by which a
 * relation is joined, the estimates of its joins would tell half of it.
 */
void
pgbloom_join_correct_pairs(PlannerInfo *root)
{
	Relids		all = root->all_baserels,
				limited = NULL;
	int			i,
				j;

	if (root->join_rel_list != NIL || enable_partitionwise_join ||
		bms_num_members(all) > MAX_RELATIONS)
		return;
	for (i = -1; (i = bms_next_member(all, i)) >= 0;)
	{
		RelOptInfo *rel = root->simple_rel_array[i];
		Relids		own = bms_union(rel->relids, bms_make_singleton(0));

		for (j = 1; j <= rel->max_attr && rel->baserestrictinfo != NIL; j++)
		{
			if (bms_is_subset(rel->attr_needed[j - rel->min_attr], own) ||
				left_of_order(root, rel, j) >= 1)
				continue;
			if (bms_is_member(i, limited))
				return;
			limited = bms_add_member(limited, i);
		}
	}
	for (i = -1; (i = bms_next_member(all, i)) >= 0;)
		for (j = i; (j = bms_next_member(all, j)) >= 0;)
			if (bms_is_member(i, limited) || bms_is_member(j, limited))
				correct_pair(root, root->simple_rel_array[i],
							 root->simple_rel_array[j]);
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
	double		range = 1;
	Side		sides[2];

	/* Samples are not skipped. */
	*column = pgbloom_join_column((Expr *) key);
	if (*column == 0 || !pgbloom_join_can_hash(op->opno, op->inputcollid) ||
		planner_rt_fetch(filtered->relid, root)->tablesample != NULL)
		return 1;
	if (find_sides(root, clause, sides))
		range = Min(1, sides[1 - at].left /
					(sides[1 - at].share * sides[1 - at].nonnull));
	if (filtered->cheapest_total_path->pathtype == T_SeqScan &&
		pgbloom_join_has_brin(filtered, *column, op->inputcollid) &&
		is_ordered(root, filtered, *column))
		return range * Max(by->rows - 1, 0.1) / (by->rows + 1);
	if (!pgbloom_join_is_partition_key(filtered, key, op))
		return 1;
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
