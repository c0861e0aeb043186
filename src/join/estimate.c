/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  Estimates of joins of columns whose values have different ranges.
 *
 * PostgreSQL takes each value of the column with fewer distinct values to be
 * in the other one, and the rows of a relation that its conditions leave to be
 * spread over all values.  A calendar of 200 years joined with facts of five
 * years is estimated 40 times too low if one of these years is asked for.
 *
 * Before the join search, the selectivity of an equality of columns is
 * corrected: only distinct values in the range of the other side count, and
 * the rows that conditions leave are taken to be in it as far as it has so
 * many rows.  Without conditions the estimate remains that of PostgreSQL, and so
 * it does in a statement that calls a volatile function.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* Smaller errors than this factor are left as they are. */
#define LEAST_FACTOR	1.2

/*
 * The most relations of which each pair is looked at.  Of many more, with a
 * common key, that would take longer than the search itself.
 */
#define MAX_RELATIONS	64

/* One side of an equality. */
typedef struct Side
{
	VariableStatData var;
	double		ndistinct;
	double		share;			/* of the rows, in the other's range */
} Side;

static bool
has_common_values(const Side *side)
{
	AttStatsSlot slot;

	return get_attstatsslot(&slot, side->var.statsTuple, STATISTIC_KIND_MCV,
							InvalidOid, 0);
}

/* Look up what is known of a side. */
static bool
examine_side(PlannerInfo *root, Side *side, Node *expr)
{
	bool		is_default;

	examine_variable(root, expr, 0, &side->var);
	if (side->var.rel == NULL || !HeapTupleIsValid(side->var.statsTuple) ||
		side->var.rel->tuples <= 0)
		return false;
	side->ndistinct = get_variable_numdistinct(&side->var, &is_default);
	return !is_default;
}

/* The largest share of the rows left by conditions that is in the range. */
static double
share_of_rows(const Side *side)
{
	return Min(1, side->var.rel->tuples * side->share /
			   Max(side->var.rel->rows, 1));
}

/*
 * Can the values be compared without an error, by PostgreSQL's own functions?
 * If it does not plan a merge join, PostgreSQL compares none.
 */
static bool
compares_safely(OpExpr *clause, Oid family)
{
	Oid			left,
				right,
				order;

	op_input_types(clause->opno, &left, &right);
	order = get_opfamily_member(family, left, right,
								BTLessEqualStrategyNumber);
	return OidIsValid(order) && order < FirstNormalObjectId &&
		pgbloom_join_is_own(clause->opno, clause->inputcollid);
}

/*
 * Find which share of the rows of each side of an equality is in the range of
 * the other one: it is what a merge join would read, all of them if statistics
 * do not tell.  PostgreSQL finds it there when it plans that join.  Returns
 * false if it is not known.
 */
static bool
find_shares(PlannerInfo *root, RestrictInfo *rinfo, double *left,
			double *right)
{
	MergeScanSelCache *scan;

	if (!compares_safely((OpExpr *) rinfo->clause,
						 linitial_oid(rinfo->mergeopfamilies)))
		return false;
	if (rinfo->scansel_cache == NIL)
	{
		scan = palloc(sizeof(MergeScanSelCache));
		scan->opfamily = linitial_oid(rinfo->mergeopfamilies);
		scan->collation = ((OpExpr *) rinfo->clause)->inputcollid;
		scan->cmptype = BTLessStrategyNumber;
		scan->nulls_first = false;
		mergejoinscansel(root, (Node *) rinfo->clause, scan->opfamily,
						 scan->cmptype, scan->nulls_first,
						 &scan->leftstartsel, &scan->leftendsel,
						 &scan->rightstartsel, &scan->rightendsel);
		rinfo->scansel_cache = list_make1(scan);
	}
	scan = linitial(rinfo->scansel_cache);
	*left = scan->leftendsel - scan->leftstartsel;
	*right = scan->rightendsel - scan->rightstartsel;
	return *left > 0 && *right > 0;
}

/* The clauses of outer joins have a selectivity of their own. */
static bool
is_column_equality(RestrictInfo *rinfo)
{
	return rinfo->is_pushed_down && rinfo->mergeopfamilies != NIL &&
		is_opclause(rinfo->clause) &&
		get_oprjoin(((OpExpr *) rinfo->clause)->opno) == F_EQJOINSEL;
}

/* Which share of the rows of a relation is in the range of the other side? */
double
pgbloom_join_share_in_range(PlannerInfo *root, RestrictInfo *rinfo,
							RelOptInfo *rel)
{
	double		left,
				right;

	if (!is_column_equality(rinfo) ||
		!find_shares(root, rinfo, &left, &right))
		return 1;
	return bms_is_member(rel->relid, rinfo->left_relids) ? left : right;
}

/*
 * How many times as many rows as PostgreSQL estimates has the equality?  If
 * both sides have most common values, PostgreSQL compares these.
 */
static double
pair_correction(PlannerInfo *root, RestrictInfo *rinfo)
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	Side		left = {0};
	Side		right = {0};
	double		factor = 1;

	if (examine_side(root, &left, linitial(op->args)) &&
		examine_side(root, &right, lsecond(op->args)) &&
		!(has_common_values(&left) && has_common_values(&right)) &&
		find_shares(root, rinfo, &left.share, &right.share))
		factor = Max(left.ndistinct, right.ndistinct) /
			Max(left.ndistinct * left.share, right.ndistinct * right.share) *
			share_of_rows(&left) * share_of_rows(&right);
	ReleaseVariableStats(left.var);
	ReleaseVariableStats(right.var);
	return factor;
}

/*
 * Correct the selectivity of a clause.  Without a join, it would be estimated
 * as a condition of one relation.
 */
static void
correct_clause(PlannerInfo *root, RestrictInfo *rinfo, RelOptInfo *a,
			   RelOptInfo *b, double factor)
{
	SpecialJoinInfo *join = makeNode(SpecialJoinInfo);

	join->min_lefthand = join->syn_lefthand = a->relids;
	join->min_righthand = join->syn_righthand = b->relids;
	join->jointype = JOIN_INNER;
	clause_selectivity(root, (Node *) rinfo, 0, JOIN_INNER, join);
	if (rinfo->norm_selec >= 0 && rinfo->norm_selec <= 1)
		rinfo->norm_selec = Min(1, rinfo->norm_selec * factor);
}

/* The clauses of two relations, of implied equalities in one order of sides. */
List *
pgbloom_join_clauses(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b)
{
	Relids		both = bms_union(a->relids, b->relids);
	List	   *clauses = NIL;
	ListCell   *lc;

	foreach(lc, a->joininfo)
	{
		if (bms_equal(((RestrictInfo *) lfirst(lc))->clause_relids, both))
			clauses = lappend(clauses, lfirst(lc));
	}
	return list_concat(clauses, PGBLOOM_IMPLIED_EQUALITIES(root, both, a, b));
}

/* Is the relation without conditions? */
static bool
is_whole(const RelOptInfo *rel)
{
	return rel->rows + 1 > rel->tuples;
}

/* A foreign key would be estimated instead of the clause that it implies. */
static void
forget_foreign_key(PlannerInfo *root, RestrictInfo *rinfo, RelOptInfo *a,
				   RelOptInfo *b)
{
	ListCell   *lc;

	foreach(lc, root->fkey_list)
	{
		ForeignKeyOptInfo *key = lfirst(lc);

		if (key->nkeys == 1 && key->eclass[0] == rinfo->parent_ec &&
			((key->con_relid == a->relid && key->ref_relid == b->relid) ||
			 (key->con_relid == b->relid && key->ref_relid == a->relid)))
			root->fkey_list = foreach_delete_current(root->fkey_list, lc);
	}
}

/*
 * Correct the clauses of two relations.  PostgreSQL may keep one for each order
 * of the sides of an implied equality.
 */
static void
correct_pair(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b)
{
	Relids		both = bms_union(a->relids, b->relids);
	ListCell   *lc;

	if (is_whole(a) && is_whole(b))
		return;
	foreach(lc, pgbloom_join_clauses(root, a, b))
	{
		RestrictInfo *rinfo = lfirst(lc);
		double		factor;
		ListCell   *other;

		if (!is_column_equality(rinfo) ||
			(factor = pair_correction(root, rinfo)) <= LEAST_FACTOR)
			continue;
		correct_clause(root, rinfo, a, b, factor);
		forget_foreign_key(root, rinfo, a, b);
		if (rinfo->parent_ec == NULL)
			continue;
		foreach(other, PGBLOOM_IMPLIED_EQUALITIES(root, both, b, a))
		{
			if (lfirst(other) != rinfo &&
				((RestrictInfo *) lfirst(other))->parent_ec == rinfo->parent_ec)
				correct_clause(root, lfirst(other), a, b, factor);
		}
	}
}

/* Are the joins of this query to be looked at before they are planned? */
bool
pgbloom_join_examines_pairs(PlannerInfo *root)
{
	return bms_num_members(root->all_baserels) <= MAX_RELATIONS;
}

/*
 * Correct the pairs of base relations that this search joins.  Those within a
 * joined one have been corrected by the search that has made it.
 */
void
pgbloom_join_correct_pairs(PlannerInfo *root, List *relations)
{
	ListCell   *x;
	ListCell   *y;

	foreach(x, relations)
	{
		for_each_cell(y, relations, lnext(relations, x))
		{
			int			i = -1;

			while ((i = bms_next_member(((RelOptInfo *) lfirst(x))->relids, i)) >= 0)
			{
				int			j = -1;

				while ((j = bms_next_member(((RelOptInfo *) lfirst(y))->relids, j)) >= 0)
				{
					/* outer joins have members, too, but no relation */
					RelOptInfo *a = root->simple_rel_array[i];
					RelOptInfo *b = root->simple_rel_array[j];

					if (a != NULL && b != NULL &&
						a->reloptkind == RELOPT_BASEREL &&
						b->reloptkind == RELOPT_BASEREL)
						correct_pair(root, a, b);
				}
			}
		}
	}
}
