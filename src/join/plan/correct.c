/*-------------------------------------------------------------------------
 *
 * correct.c
 *	  Which joins of a query have other selectivities than PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

/* Smaller errors than this factor are left as they are. */
#define LEAST_FACTOR	1.2

/* Of more relations, with a common key, all pairs would take too long. */
#define MAX_RELATIONS	8

/*
 * Are no more than two columns equal to each other?  Of three, the planner may
 * join any two first, and the errors of its estimates make up for each other.
 */
static bool
is_of_two(const EquivalenceClass *class)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, class != NULL ? class->ec_members : NIL)
		n += !((EquivalenceMember *) lfirst(lc))->em_is_child;
	return n <= 2;
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
 * Find the relations of which conditions limit a column by which they are joined.
 * Returns false if they limit two columns of one relation.
 */
static bool
find_limited(PlannerInfo *root, Relids *limited)
{
	int			i = -1;

	while ((i = bms_next_member(root->all_baserels, i)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[i];
		Relids		own = bms_union(rel->relids, bms_make_singleton(0));
		PgBloomPiece piece;
		AttrNumber	j;

		for (j = 1; j <= rel->max_attr && rel->baserestrictinfo != NIL; j++)
		{
			double		left;

			if (bms_is_subset(rel->attr_needed[j - rel->min_attr], own))
				continue;
			left = pgbloom_join_left_of_order(root, rel, j, &piece);
			if (left * piece.unknown >= 1)
				continue;
			if (bms_is_member(i, *limited))
				return false;
			*limited = bms_add_member(*limited, i);
		}
	}
	return true;
}

/*
 * Correct joins of two relations each before the first search of a query's joins.
 * If conditions limit a relation, and it is joined otherwise, or by several
 * columns, they may tell the same as others do, and then corrected estimates would
 * be further from right: nothing is corrected.  Nor where partitions are joined
 * one by one, whose clauses are others.  PostgreSQL has a clause of each class for
 * each order of two relations.  Returns whether any is corrected.
 */
bool
pgbloom_join_correct(PlannerInfo *root)
{
	Relids		limited = NULL,
				joined = NULL;
	List	   *clauses = NIL;
	double		factors[MAX_RELATIONS];
	int			n = 0;
	bool		corrected = false;
	int			i,
				j;

	if (root->join_rel_list != NIL || enable_partitionwise_join ||
		bms_num_members(root->all_baserels) > MAX_RELATIONS ||
		!find_limited(root, &limited) || limited == NULL)
		return false;
	for (i = -1; (i = bms_next_member(root->all_baserels, i)) >= 0;)
	{
		for (j = i; (j = bms_next_member(root->all_baserels, j)) >= 0;)
		{
			RelOptInfo *a = root->simple_rel_array[i];
			RelOptInfo *b = root->simple_rel_array[j];
			Relids		both = bms_union(a->relids, b->relids);
			ListCell   *x,
					   *y;

			if (!bms_overlap(limited, both))
				continue;
			forboth(x, PGBLOOM_IMPLIED_EQUALITIES(root, both, a, b),
					y, PGBLOOM_IMPLIED_EQUALITIES(root, both, b, a))
			{
				RestrictInfo *rinfo = lfirst(x);

				if (!is_of_two(rinfo->parent_ec) ||
					(factors[n] = pgbloom_join_factor(root, rinfo)) == 0)
					continue;
				if (bms_overlap(joined, both))
					return false;
				joined = bms_add_members(joined, both);
				clauses = lappend(lappend(clauses, rinfo), lfirst(y));
				n++;
			}
		}
	}
	if (!bms_is_subset(limited, joined))
		return false;
	for (i = 0; i < n; i++)
	{
		RestrictInfo *clause = list_nth(clauses, 2 * i);
		RestrictInfo *mirrored = list_nth(clauses, 2 * i + 1);

		if (factors[i] < LEAST_FACTOR)
			continue;
		correct_clause(root, clause, factors[i]);
		if (mirrored != clause)
			correct_clause(root, mirrored, factors[i]);
		corrected = true;
	}
	return corrected;
}
