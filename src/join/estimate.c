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
 * many rows.  Without conditions the estimate remains that of PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parse_type.h"
#include "utils/datum.h"
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
	Node	   *expr;
	Oid			type;
	Oid			less;			/* operator of the type */
	bool		has_range;
	Datum		smallest;
	Datum		largest;
	double		ndistinct;
	double		share;			/* of the rows, in the other's range */
} Side;

/* Extend the range of a side by values of its statistics. */
static void
extend_side(Side *side, const AttStatsSlot *slot, bool sorted)
{
	FmgrInfo	less;
	int16		typlen;
	bool		typbyval;
	Datum		smallest = side->smallest;
	Datum		largest = side->largest;
	int			i;

	fmgr_info(get_opcode(side->less), &less);
	for (i = 0; i < slot->nvalues; i += sorted ? Max(slot->nvalues - 1, 1) : 1)
	{
		Datum		value = slot->values[i];

		if (!side->has_range)
			smallest = largest = value;
		else if (DatumGetBool(FunctionCall2Coll(&less, slot->stacoll, value,
												smallest)))
			smallest = value;
		else if (DatumGetBool(FunctionCall2Coll(&less, slot->stacoll, largest,
												value)))
			largest = value;
		side->has_range = true;
	}
	if (side->has_range)
	{
		get_typlenbyval(side->type, &typlen, &typbyval);
		side->smallest = datumCopy(smallest, typbyval, typlen);
		side->largest = datumCopy(largest, typbyval, typlen);
	}
}

static void
read_range(Side *side, Oid collation)
{
	static const int kinds[] = {STATISTIC_KIND_MCV, STATISTIC_KIND_HISTOGRAM};
	AttStatsSlot slot;
	int			i;

	for (i = 0; i < (int) lengthof(kinds); i++)
	{
		bool		sorted = kinds[i] == STATISTIC_KIND_HISTOGRAM;

		if (!get_attstatsslot(&slot, side->var.statsTuple, kinds[i],
							  sorted ? side->less : InvalidOid,
							  ATTSTATSSLOT_VALUES))
			continue;
		if (slot.stacoll == collation)
			extend_side(side, &slot, sorted);
		free_attstatsslot(&slot);
	}
}

/* Has the column most common values?  PostgreSQL compares those of both. */
static bool
has_common_values(const Side *side)
{
	AttStatsSlot slot;

	return get_attstatsslot(&slot, side->var.statsTuple, STATISTIC_KIND_MCV,
							InvalidOid, 0);
}

/*
 * Look up what is known of a side.  Values that the user must not see are left
 * alone, as by PostgreSQL's own estimates.
 */
static bool
examine_side(PlannerInfo *root, Side *side, Node *expr, Oid type, Oid family)
{
	bool		is_default;

	side->expr = expr;
	side->type = type;
	examine_variable(root, expr, 0, &side->var);
	side->less = get_opfamily_member(family, type, type, BTLessStrategyNumber);
	if (side->var.rel == NULL || !HeapTupleIsValid(side->var.statsTuple) ||
		!OidIsValid(side->less) || IsPolymorphicType(type) ||
		side->var.rel->tuples <= 0 ||
		!statistic_proc_security_check(&side->var, get_opcode(side->less)))
		return false;
	side->ndistinct = get_variable_numdistinct(&side->var, &is_default);
	return !is_default;
}

static Expr *
make_side_bound(Side *side, Side *other, Datum value, StrategyNumber strategy,
				Oid family, Oid collation)
{
	Oid			operator = get_opfamily_member(family, side->type, other->type,
											   strategy);
	int16		typlen;
	bool		typbyval;

	if (!OidIsValid(operator))
		return NULL;
	get_typlenbyval(other->type, &typlen, &typbyval);
	return make_opclause(operator, BOOLOID, false, (Expr *) side->expr,
						 (Expr *) makeConst(other->type, -1, collation, typlen,
											value, false, typbyval),
						 InvalidOid, collation);
}

/* Does the range of the other side, of the same type, contain this one? */
static bool
is_contained(Side *side, Side *other, Oid collation)
{
	FmgrInfo	less;

	if (side->type != other->type)
		return false;
	fmgr_info(get_opcode(side->less), &less);
	return !DatumGetBool(FunctionCall2Coll(&less, collation, side->smallest,
										   other->smallest)) &&
		!DatumGetBool(FunctionCall2Coll(&less, collation, other->largest,
										side->largest));
}

/*
 * Which share of a side's rows is in the range of the other one?  PostgreSQL
 * may look into an index for values at the end of a histogram, so it is only
 * asked if values are out of that range.
 */
static bool
share_in_range(PlannerInfo *root, Side *side, Side *other, Oid family,
			   Oid collation)
{
	Expr	   *from,
			   *to;

	side->share = 1;
	if (is_contained(side, other, collation))
		return true;
	from = make_side_bound(side, other, other->smallest,
						   BTGreaterEqualStrategyNumber, family, collation);
	to = make_side_bound(side, other, other->largest, BTLessEqualStrategyNumber,
						 family, collation);
	if (from == NULL || to == NULL)
		return false;
	side->share = clauselist_selectivity(root, list_make2(from, to),
										 side->var.rel->relid, JOIN_INNER,
										 NULL);
	return side->share > 0;
}

/* The largest share of the rows left by conditions that is in the range. */
static double
share_of_rows(const Side *side)
{
	return Min(1, side->var.rel->tuples * side->share /
			   Max(side->var.rel->rows, 1));
}

/*
 * Find which share of the rows of each side of an equality is in the range of
 * the other one.  Returns false if it is not known.  The sides are released by
 * the caller in any case.
 */
static bool
find_shares(PlannerInfo *root, RestrictInfo *rinfo, Side *left, Side *right,
			bool compare_common)
{
	OpExpr	   *op = (OpExpr *) rinfo->clause;
	Oid			family = linitial_oid(rinfo->mergeopfamilies);
	Oid			collation = op->inputcollid;
	Oid			left_type;
	Oid			right_type;

	op_input_types(op->opno, &left_type, &right_type);
	if (!examine_side(root, left, linitial(op->args), left_type, family) ||
		!examine_side(root, right, lsecond(op->args), right_type, family) ||
		(compare_common && has_common_values(left) && has_common_values(right)))
		return false;
	read_range(left, collation);
	read_range(right, collation);
	return left->has_range && right->has_range &&
		share_in_range(root, left, right, family, collation) &&
		share_in_range(root, right, left, family, collation);
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
 * Which share of the rows of one side is in the range of the other one, as far
 * as the statistics tell?
 */
double
pgbloom_join_share_in_range(PlannerInfo *root, RestrictInfo *rinfo,
							RelOptInfo *rel)
{
	Side		left = {0};
	Side		right = {0};
	double		share = 1;

	if (!is_column_equality(rinfo))
		return 1;
	if (find_shares(root, rinfo, &left, &right, false))
		share = left.var.rel == rel ? left.share : right.share;
	ReleaseVariableStats(left.var);
	ReleaseVariableStats(right.var);
	return share;
}

/*
 * How many times as many rows as PostgreSQL estimates has the equality?  If
 * both sides have most common values, PostgreSQL compares these.
 */
static double
correction(PlannerInfo *root, RestrictInfo *rinfo)
{
	Side		left = {0};
	Side		right = {0};
	double		factor = 1;

	if (find_shares(root, rinfo, &left, &right, true))
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
			(factor = correction(root, rinfo)) <= LEAST_FACTOR)
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
	return pgbloom_join_planning &&
		bms_num_members(root->all_baserels) <= MAX_RELATIONS;
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
