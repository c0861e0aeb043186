/*-------------------------------------------------------------------------
 *
 * share.c
 *	  How much of a relation is read with a filter, by estimate.
 *
 * This follows what skip.c does: a filter rules out partitions, and with a BRIN
 * index, blocks.  What remains follows from the range of the keys, which
 * estimate.c knows, and from their number.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <math.h>

#include "access/brin_internal.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_statistic.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* The share that is assumed of any relation for tests. */
#define FORCED_SHARE	0.5

/* Columns with this correlation to the order of the rows are in one order. */
#define ORDERED		0.9

/*
 * Are the values of a column in the order of the table's rows?  Where nearly all
 * rows have one value, the correlation tells nothing of the others.
 */
bool
pgbloom_join_is_ordered(PlannerInfo *root, Index relid, AttrNumber column)
{
	RangeTblEntry *rte = planner_rt_fetch(relid, root);
	HeapTuple	tuple;
	AttStatsSlot slot;
	bool		result = false;

	if (rte->rtekind != RTE_RELATION || rte->inh)
		return false;
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

/* The column of a relation that an expression is, or 0. */
AttrNumber
pgbloom_join_column_of(Node *expr, const RelOptInfo *rel)
{
	Var		   *var = (Var *) pgbloom_join_strip_relabel((Expr *) expr);

	return IsA(var, Var) && (Index) var->varno == rel->relid ? var->varattno : 0;
}

/* Has the relation a BRIN index on this column that brin.c can make use of? */
static bool
has_brin_on(const RelOptInfo *rel, AttrNumber column, Oid collation)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);
		int			i;

		for (i = 0; i < index->nkeycolumns && index->relam == BRIN_AM_OID; i++)
		{
			Oid			type = index->opcintype[i];

			if (index->indpred == NIL && index->indexkeys[i] == column &&
				index->indexcollations[i] == collation &&
				get_opfamily_proc(index->opfamily[i], type, type,
								  BRIN_PROCNUM_OPCINFO) ==
				F_BRIN_MINMAX_OPCINFO)
				return true;
		}
	}
	return false;
}

/*
 * Is the table partitioned by this key, as partition.c can make use of?  The
 * order of the keys must be that of the partitions.
 */
static bool
is_partition_key(const RelOptInfo *rel, Node *key, const OpExpr *op)
{
	PartitionScheme scheme = rel->part_scheme;
	Oid			left,
				right;

	if (scheme == NULL || scheme->strategy == PARTITION_STRATEGY_HASH ||
		rel->nparts <= 0 || rel->partexprs == NULL ||
		!list_member(rel->partexprs[0], key) ||
		!op_in_opfamily(op->opno, scheme->partopfamily[0]) ||
		op->inputcollid != scheme->partcollation[0])
		return false;
	op_input_types(op->opno, &left, &right);
	return scheme->partopfamily[0] ==
		lookup_type_cache(left, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

/*
 * How much of a relation is read with a filter by this clause, and which column
 * rules out the rest?  Of partitions, each key is in one.
 */
static double
share_by_clause(PlannerInfo *root, RestrictInfo *clause, RelOptInfo *filtered,
				RelOptInfo *by, AttrNumber *column)
{
	OpExpr	   *op = (OpExpr *) clause->clause;
	bool		is_left = bms_is_member(filtered->relid, clause->left_relids);
	Node	   *key = list_nth(op->args, is_left ? 0 : 1);
	double		live,
				parts;

	/* Samples are not skipped, nor are keys without an order, see range.c. */
	*column = pgbloom_join_column_of(key, filtered);
	if (*column <= 0 ||
		planner_rt_fetch(filtered->relid, root)->tablesample != NULL ||
		(OidIsValid(op->inputcollid) &&
		 !get_collation_isdeterministic(op->inputcollid)))
		return 1;

	/* what lies between the first and the last of some keys */
	if (filtered->cheapest_total_path->pathtype == T_SeqScan &&
		has_brin_on(filtered, *column, op->inputcollid) &&
		pgbloom_join_is_ordered(root, filtered->relid, *column))
		return pgbloom_join_share_of_range(root, clause, by) *
			Max(by->rows - 1, 0.1) / (by->rows + 1);
	if (!is_partition_key(filtered, key, op))
		return 1;
	parts = live = Max(bms_num_members(filtered->live_parts), 1);
	if (filtered->part_scheme->strategy == PARTITION_STRATEGY_RANGE)
		parts = Min(live, 1 + filtered->nparts *
					pgbloom_join_share_of_range(root, clause, by));
	return Max(parts * (1 - pow(1 - 1 / parts, by->rows)), 1) / live;
}

/*
 * The share of a base relation that is read with a filter by the keys of another
 * one, or 1 if there is none, and the column that rules out the rest.  To force
 * filters, any column does, which is 0.
 */
double
pgbloom_join_share_read(PlannerInfo *root, RelOptInfo *filtered,
						RelOptInfo *by, AttrNumber *column)
{
	double		share = 1;
	ListCell   *lc;

	*column = 0;
	foreach(lc, pgbloom_join_clauses(root, filtered, by))
	{
		RestrictInfo *clause = lfirst(lc);
		AttrNumber	clause_column;
		double		by_clause;

		if (!clause->can_join || !clause->is_pushed_down ||
			!OidIsValid(clause->hashjoinoperator))
			continue;
		by_clause = share_by_clause(root, clause, filtered, by,
									&clause_column);
		if (by_clause < share)
		{
			share = by_clause;
			*column = clause_column;
		}
		if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
			share = Min(share, FORCED_SHARE);
	}
	return share;
}
