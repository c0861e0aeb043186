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

typedef struct Correction
{
	RestrictInfo *clauses[2];	/* the same, for each order of its relations */
	double		factor;
} Correction;

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
 * Find what to correct in the joins of two relations, of which the first one has
 * the smaller number.  Returns false if one of them has such a join by another
 * column, too, as conditions on the two others may tell the same.
 */
static bool
find_corrections(PlannerInfo *root, RelOptInfo *a, RelOptInfo *b,
				 Relids *joined, List **corrections)
{
	Relids		both = bms_union(a->relids, b->relids);
	ListCell   *x,
			   *y;

	forboth(x, PGBLOOM_IMPLIED_EQUALITIES(root, both, a, b),
			y, PGBLOOM_IMPLIED_EQUALITIES(root, both, b, a))
	{
		Correction *correction;
		double		factor;

		if (!is_of_two(((RestrictInfo *) lfirst(x))->parent_ec) ||
			(factor = pgbloom_join_factor(root, lfirst(x))) == 0)
			continue;
		if (bms_overlap(both, *joined))
			return false;
		*joined = bms_add_members(*joined, both);
		if (factor < LEAST_FACTOR)
			continue;
		correction = palloc(sizeof(Correction));
		correction->clauses[0] = lfirst(x);
		correction->clauses[1] = lfirst(y);
		correction->factor = factor;
		*corrections = lappend(*corrections, correction);
	}
	return true;
}

/*
 * Do conditions limit two of the columns by which one relation is joined?  Then
 * corrected estimates of its joins would tell half of it.  If not, returns the
 * relations that have one.
 */
static bool
are_limited_twice(PlannerInfo *root, Relids *limited)
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
			if (bms_is_subset(rel->attr_needed[j - rel->min_attr], own) ||
				pgbloom_join_left_of_order(root, rel, j, &piece) >= 1)
				continue;
			if (bms_is_member(i, *limited))
				return true;
			*limited = bms_add_member(*limited, i);
		}
	}
	return false;
}

/*
 * Correct the joins of pairs of base relations of a query before the first
 * search of its joins.  Not where partitions are joined one by one, whose
 * clauses are others.
 */
void
pgbloom_join_correct_pairs(PlannerInfo *root)
{
	Relids		all = root->all_baserels,
				limited = NULL,
				joined = NULL;
	List	   *corrections = NIL;
	ListCell   *lc;
	int			i,
				j;

	if (root->join_rel_list != NIL || enable_partitionwise_join ||
		bms_num_members(all) > MAX_RELATIONS ||
		are_limited_twice(root, &limited))
		return;
	for (i = -1; (i = bms_next_member(all, i)) >= 0;)
		for (j = i; (j = bms_next_member(all, j)) >= 0;)
			if ((bms_is_member(i, limited) || bms_is_member(j, limited)) &&
				!find_corrections(root, root->simple_rel_array[i],
								  root->simple_rel_array[j], &joined,
								  &corrections))
				return;
	if (corrections == NIL)
		return;
	foreach(lc, corrections)
	{
		Correction *correction = lfirst(lc);

		correct_clause(root, correction->clauses[0], correction->factor);
		if (correction->clauses[1] != correction->clauses[0])
			correct_clause(root, correction->clauses[1], correction->factor);
	}
	pgbloom_join_assume_filter();
	for (i = -1; (i = bms_next_member(all, i)) >= 0;)
		pgbloom_join_cost_pruned(root->simple_rel_array[i]);
}
