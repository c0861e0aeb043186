/*-------------------------------------------------------------------------
 *
 * order.c
 *	  Orders of columns: which piece conditions leave, and who reads a piece.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * So far away may a piece be from where another column's statistics tell: half
 * as many rows as are between two bounds of a histogram.
 */
#define ERROR_OF_PLACE	0.005

/*
 * The correlation of a column's values, in their order, with the table's rows,
 * from -1 to 1.  Of all of them, NULLs have none.
 */
double
pgbloom_join_correlation(PlannerInfo *root, const RelOptInfo *rel,
						 AttrNumber column, bool all)
{
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	HeapTuple	tuple = NULL;
	AttStatsSlot slot;
	double		result = 0;

	if (rte->rtekind == RTE_RELATION)
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
								Int16GetDatum(column), BoolGetDatum(rte->inh));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		result = slot.numbers[0];
		if (all)
			result *= 1 - ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return result;
}

static double
selectivity(PlannerInfo *root, void *clause)
{
	return clause_selectivity(root, clause, 0, JOIN_INNER, NULL);
}

/*
 * Narrow a piece to what a condition leaves, by which a column is compared that
 * is in the same order, or in that from its end.
 */
static void
narrow(PlannerInfo *root, RestrictInfo *rinfo, Expr *key, Expr *value,
	   Oid opno, bool same, PgBloomPiece *piece)
{
	Oid			family = lookup_type_cache(exprType((Node *) key),
										   TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	int			strategy = get_op_opfamily_strategy(opno, family);
	NullTest   *test = makeNode(NullTest);
	double		nonnull;
	double		from = 0,
				to = selectivity(root, rinfo);

	test->arg = key;
	test->nulltesttype = IS_NOT_NULL;
	nonnull = Max(selectivity(root, test), 1e-9);
	if (strategy > BTEqualStrategyNumber)
	{
		from = nonnull - to;
		to = nonnull;
	}
	else if (strategy == BTEqualStrategyNumber)
	{
		Oid			types[2];
		Oid			less;

		op_input_types(opno, &types[0], &types[1]);
		less = get_opfamily_member(family, types[0], types[1],
								   BTLessStrategyNumber);
		from = selectivity(root,
						   make_opclause(less, BOOLOID, false, key, value,
										 InvalidOid,
										 ((OpExpr *) rinfo->clause)->inputcollid));
		to = from + to;
	}
	from /= nonnull;
	to /= nonnull;
	piece->from = Max(piece->from, same ? from : 1 - to);
	piece->to = Min(piece->to, same ? to : 1 - from);
}

/*
 * May a condition tell the same as those that compare the key?  Statistics do
 * not show that two columns are independent.  Only a condition that a column
 * is one value counts as independent, as PostgreSQL takes it.
 */
static bool
may_tell_same(const Expr *condition)
{
	return !IsA(condition, OpExpr) ||
		get_oprrest(((const OpExpr *) condition)->opno) != F_EQSEL;
}

/*
 * The share of rows that is left by conditions that compare the column, or one
 * in its order, with a known value, and which piece of the order it is.
 */
double
pgbloom_join_left_of_order(PlannerInfo *root, const RelOptInfo *rel,
						   AttrNumber column, PgBloomPiece *piece)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	piece->from = piece->error = 0;
	piece->to = piece->unknown = 1;
	piece->vague = false;
	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst(lc);
		OpExpr	   *op = (OpExpr *) rinfo->clause;
		bool		value_is_left = bms_is_empty(rinfo->left_relids);
		TypeCacheEntry *type;
		AttrNumber	compared;
		Expr	   *key;
		Node	   *value;
		double		order = 0;

		/* both are empty unless it is an operator of two arguments */
		if (value_is_left != bms_is_empty(rinfo->right_relids))
		{
			key = list_nth(op->args, value_is_left);
			compared = pgbloom_join_column(key);
			type = lookup_type_cache(exprType((Node *) key),
									 TYPECACHE_BTREE_OPFAMILY);
			if (compared > 0 && op_in_opfamily(op->opno, type->btree_opf))
				order = compared == column ? 1 :
					pgbloom_join_correlation(root, rel, column, true) *
					pgbloom_join_correlation(root, rel, compared, true);
		}
		if (fabs(order) < PGBLOOM_SAME_ORDER)
		{
			piece->vague |= may_tell_same(rinfo->clause);
			continue;
		}
		value = estimate_expression_value(root,
										  list_nth(op->args, !value_is_left));
		if (!IsA(value, Const))
		{
			piece->unknown *= selectivity(root, rinfo);
			continue;
		}
		conditions = lappend(conditions, rinfo);
		if (compared != column)
			piece->error = ERROR_OF_PLACE;
		narrow(root, rinfo, key, (Expr *) value,
			   value_is_left ? get_commutator(op->opno) : op->opno,
			   order > 0, piece);
	}
	return clauselist_selectivity(root, conditions, 0, JOIN_INNER, NULL);
}

/*
 * Are only some of the joined rows read, by LIMIT, a cursor or EXISTS?  PostgreSQL
 * takes them for spread evenly over what it reads, but those in a range are all at
 * one place.  To be grouped or sorted, all are read, unless a relation comes in
 * the order.
 */
bool
pgbloom_join_reads_some(PlannerInfo *root)
{
	int			i = -1;
	ListCell   *lc;

	if (root->tuple_fraction <= 0)
		return false;
	if (root->query_pathkeys == NIL)
		return !root->parse->hasAggs && root->parse->groupClause == NIL;
	while ((i = bms_next_member(root->all_baserels, i)) >= 0)
	{
		foreach(lc, root->simple_rel_array[i]->pathlist)
		{
			List	   *pathkeys = ((Path *) lfirst(lc))->pathkeys;

			if (pathkeys != NIL &&
				list_member_ptr(root->query_pathkeys, linitial(pathkeys)))
				return true;
		}
	}
	return false;
}
