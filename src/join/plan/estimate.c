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
 * A condition that leaves a piece of the order of the key, as the year of a day
 * does, is taken to leave it in the range of the other side, as far as that has
 * so many rows.  All others, such as a weekday, are taken to be independent of
 * it, as PostgreSQL does.  find_sides() tells this of both sides of an equality.
 * Before the join search, the selectivity of equalities is corrected by it, and
 * share.c asks by it which keys a filter will have.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

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
	AttrNumber	column;			/* or 0 */
	double		ndistinct;
	double		share;			/* of its rows, in the range of the other side */
	double		left;			/* of its order, by conditions that follow it */
} Side;

/* A clause that is to be corrected. */
typedef struct Correction
{
	RestrictInfo *clause;
	RelOptInfo *rels[2];
	double		factor;
} Correction;

/*
 * Does a condition leave values of the key next to each other?  It compares the
 * key, or a column in the same order, with a value.
 */
static bool
follows_order(PlannerInfo *root, const RestrictInfo *condition,
			  const RelOptInfo *rel, AttrNumber key)
{
	OpExpr	   *op = (OpExpr *) condition->clause;
	AttrNumber	column;

	if (!is_opclause(op) || list_length(op->args) != 2)
		return false;
	switch (get_oprrest(op->opno))
	{
		case F_EQSEL:
		case F_SCALARLTSEL:
		case F_SCALARLESEL:
		case F_SCALARGTSEL:
		case F_SCALARGESEL:
			break;
		default:
			return false;
	}
	column = pgbloom_join_column_of(linitial(op->args), rel);
	if (column == 0)
		column = pgbloom_join_column_of(lsecond(op->args), rel);
	return column > 0 &&
		!(contain_var_clause(linitial(op->args)) &&
		  contain_var_clause(lsecond(op->args))) &&
		(column == key || (pgbloom_join_is_ordered(root, rel->relid, key) &&
						   pgbloom_join_is_ordered(root, rel->relid, column)));
}

/* How much of the order of a column do the conditions that follow it leave? */
static double
share_left(PlannerInfo *root, RelOptInfo *rel, AttrNumber key)
{
	List	   *conditions = NIL;
	ListCell   *lc;

	if (key <= 0)
		return 1;
	foreach(lc, rel->baserestrictinfo)
	{
		if (follows_order(root, lfirst(lc), rel, key))
			conditions = lappend(conditions, lfirst(lc));
	}
	return conditions == NIL ? 1 :
		clauselist_selectivity(root, conditions, rel->relid, JOIN_INNER, NULL);
}

static bool
has_common_values(const Side *side)
{
	AttStatsSlot slot;

	return get_attstatsslot(&slot, side->var.statsTuple, STATISTIC_KIND_MCV,
							InvalidOid, 0);
}

/* Look up what is known of a side by itself. */
static bool
examine_side(PlannerInfo *root, Side *side, Node *expr)
{
	bool		is_default;

	examine_variable(root, expr, 0, &side->var);
	if (side->var.rel == NULL || !HeapTupleIsValid(side->var.statsTuple) ||
		side->var.rel->tuples <= 0)
		return false;
	side->ndistinct = get_variable_numdistinct(&side->var, &is_default);
	side->column = pgbloom_join_column_of(expr, side->var.rel);
	side->left = share_left(root, side->var.rel, side->column);
	return !is_default;
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

/*
 * Find what is known of both sides of an equality; returns false if something
 * is not.  In either case, release_sides() is due.
 */
static bool
find_sides(PlannerInfo *root, RestrictInfo *rinfo, Side sides[2])
{
	List	   *args;

	memset(sides, 0, 2 * sizeof(Side));
	if (!is_column_equality(rinfo))
		return false;
	args = ((OpExpr *) rinfo->clause)->args;
	return examine_side(root, &sides[0], linitial(args)) &&
		examine_side(root, &sides[1], lsecond(args)) &&
		find_shares(root, rinfo, &sides[0].share, &sides[1].share);
}

static void
release_sides(Side sides[2])
{
	ReleaseVariableStats(sides[0].var);
	ReleaseVariableStats(sides[1].var);
}

/* Which share of the rows that conditions leave is in the other's range? */
static double
share_kept(const Side *side)
{
	return Min(1, side->share / Max(side->left, 1e-9));
}

/*
 * How many times as many rows as PostgreSQL estimates has the equality?  If
 * both sides have most common values, PostgreSQL compares these.
 */
static double
factor_of(const Side sides[2])
{
	if (has_common_values(&sides[0]) && has_common_values(&sides[1]))
		return 1;
	return Max(sides[0].ndistinct, sides[1].ndistinct) /
		Max(sides[0].ndistinct * sides[0].share,
			sides[1].ndistinct * sides[1].share) *
		share_kept(&sides[0]) * share_kept(&sides[1]);
}

/*
 * Is a relation joined by another column, too, which is in the same order?  Then
 * its conditions reach what it is joined with, and further, but the estimates of
 * these joins do not tell.
 */
static bool
passes_order_on(PlannerInfo *root, RelOptInfo *rel, const Side *side)
{
	Bitmapset  *columns = NULL;
	int			column = -1;
	ListCell   *x,
			   *y;

	if (side->left >= 1)
		return false;
	foreach(x, rel->joininfo)
		pull_varattnos((Node *) ((RestrictInfo *) lfirst(x))->clause,
					   rel->relid, &columns);
	foreach(x, root->eq_classes)
	{
		EquivalenceClass *class = lfirst(x);

		if (class->ec_has_const || bms_equal(class->ec_relids, rel->relids))
			continue;
		foreach(y, class->ec_members)
			pull_varattnos((Node *) ((EquivalenceMember *) lfirst(y))->em_expr,
						   rel->relid, &columns);
	}
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		int			number = column + FirstLowInvalidHeapAttributeNumber;

		if (number > 0 && number != side->column &&
			pgbloom_join_is_ordered(root, rel->relid, number))
			return true;
	}
	return false;
}

/*
 * Is a member of the class not known?  If one equality was corrected and others
 * were not, the planner would take that for the cheapest which is estimated too
 * low.
 */
static bool
has_unknown_member(PlannerInfo *root, const EquivalenceClass *class)
{
	bool		unknown = false;
	ListCell   *lc;

	if (class == NULL)
		return false;
	foreach(lc, class->ec_members)
	{
		EquivalenceMember *member = lfirst(lc);
		Side		side = {0};

		if (!member->em_is_child)
			unknown |= !examine_side(root, &side, (Node *) member->em_expr);
		ReleaseVariableStats(side.var);
	}
	return unknown;
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

		if (key->nkeys == 1 &&
			(rinfo->parent_ec != NULL ? key->eclass[0] == rinfo->parent_ec :
			 list_member_ptr(key->rinfos[0], rinfo)) &&
			((key->con_relid == a->relid && key->ref_relid == b->relid) ||
			 (key->con_relid == b->relid && key->ref_relid == a->relid)))
			root->fkey_list = foreach_delete_current(root->fkey_list, lc);
	}
}

/* Add the corrections of two relations; returns false if there must be none. */
static bool
add_corrections(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b,
				List **corrections)
{
	bool		result = true;
	ListCell   *lc;

	if (is_whole(a) && is_whole(b))
		return true;
	foreach(lc, pgbloom_join_clauses(root, a, b))
	{
		RestrictInfo *rinfo = lfirst(lc);
		Side		sides[2];
		double		factor;

		if (find_sides(root, rinfo, sides) &&
			(factor = factor_of(sides)) > LEAST_FACTOR &&
			!has_unknown_member(root, rinfo->parent_ec))
		{
			Correction *correction = palloc(sizeof(Correction));

			result &= !passes_order_on(root, sides[0].var.rel, &sides[0]) &&
				!passes_order_on(root, sides[1].var.rel, &sides[1]);
			*correction = (Correction)
			{
				rinfo,
				{
					a, b
				},
					factor
			};
			*corrections = lappend(*corrections, correction);
		}
		release_sides(sides);
	}
	return result;
}

/*
 * Correct a clause.  PostgreSQL may keep one for each order of the sides of an
 * implied equality.
 */
static void
apply_correction(PlannerInfo *root, const Correction *correction)
{
	RestrictInfo *rinfo = correction->clause;
	RelOptInfo *a = correction->rels[0];
	RelOptInfo *b = correction->rels[1];
	ListCell   *lc;

	correct_clause(root, rinfo, a, b, correction->factor);
	forget_foreign_key(root, rinfo, a, b);
	if (rinfo->parent_ec == NULL)
		return;
	foreach(lc, PGBLOOM_IMPLIED_EQUALITIES(root, bms_union(a->relids, b->relids),
										   b, a))
	{
		RestrictInfo *other = lfirst(lc);

		if (other != rinfo && other->parent_ec == rinfo->parent_ec)
			correct_clause(root, other, a, b, correction->factor);
	}
}

/*
 * Correct the joins of pairs of base relations of a query, or none of them,
 * before the first search of its joins.
 */
void
pgbloom_join_correct_pairs(PlannerInfo *root)
{
	List	   *corrections = NIL;
	ListCell   *lc;
	int			i,
				j;

	if (root->join_rel_list != NIL ||
		bms_num_members(root->all_baserels) > MAX_RELATIONS)
		return;
	for (i = 1; i < root->simple_rel_array_size; i++)
	{
		for (j = i + 1; j < root->simple_rel_array_size; j++)
		{
			RelOptInfo *a = root->simple_rel_array[i];
			RelOptInfo *b = root->simple_rel_array[j];

			if (a != NULL && b != NULL && a->reloptkind == RELOPT_BASEREL &&
				b->reloptkind == RELOPT_BASEREL &&
				!add_corrections(root, a, b, &corrections))
				return;
		}
	}
	foreach(lc, corrections)
		apply_correction(root, lfirst(lc));
}

/*
 * How much of the range of the other side lies between the smallest and the
 * largest value of this side?
 */
double
pgbloom_join_share_of_range(PlannerInfo *root, RestrictInfo *clause, const RelOptInfo *rel)
{
	Side		sides[2];
	double		share = 1;

	if (find_sides(root, clause, sides))
	{
		const Side *side = sides[0].var.rel == rel ? &sides[0] : &sides[1];

		share = Min(1, side->left / side->share);
	}
	release_sides(sides);
	return share;
}
