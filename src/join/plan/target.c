/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Where the filter of a join may go.
 *
 * The keys of the join's outer side are followed down the plan by way of the
 * target lists, to the scans where they come from.  At each node, a row may
 * only be dropped if that does not change what reaches the join of the rows
 * that have a match.  The rows of one group must all pass or all be
 * dropped.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"

/* Keys of the join, as expressions over the output of one node. */
typedef struct Keys
{
	int			n;
	struct
	{
		int			number;		/* among the join's keys */
		Expr	   *expr;
	}			key[PGBLOOM_MAX_JOIN_KEYS];
	bool		reduced;		/* a node above drops rows or reads ahead */
	double		rows;			/* of the Append above, or 0 */
	double		share;			/* of them that are likely to be read */
	const Agg  *grouping;		/* above, or NULL */
} Keys;

typedef struct TargetSearch
{
	const PgBloomStatement *statement;
	HashJoin   *join;
	List	   *targets;
	PgBloomReason reason;		/* why there are no more of them */
} TargetSearch;

static bool descend_to_scan(TargetSearch *search, Plan *plan, Keys keys, int varno);

/* There is no target here, for this reason. */
static bool
no_target(TargetSearch *search, PgBloomReason reason)
{
	search->reason = Max(search->reason, reason);
	return false;
}

/*
 * Express the keys by what is below a node with this target list.  Keys for
 * which this is not possible are dropped.  varno is that of the Vars that
 * refer to the node.
 */
static void
translate_keys(Keys *keys, int varno, List *targetlist)
{
	int			n = 0;
	int			i;

	for (i = 0; i < keys->n; i++)
	{
		Expr	   *expr = pgbloom_join_translate(keys->key[i].expr, varno,
												  targetlist);

		if (expr == NULL)
			continue;
		keys->key[n].number = keys->key[i].number;
		keys->key[n++].expr = expr;
	}
	keys->n = n;
}

/*
 * Let the scan probe the filter.  A scan that drops rows goes on to others and
 * evaluates its conditions for them, and all that a subquery below it has,
 * where a node above may have stopped with the first one, such as a join whose
 * other side is empty.
 *
 * Where there is a security barrier, the join itself must see the rows: what
 * is counted and evaluated must not be of rows that a node in between hides.
 */
static bool
add_target(TargetSearch *search, Plan *scan, Keys *keys)
{
	double		rows = keys->share * (keys->rows > 0 ? keys->rows : scan->plan_rows);
	PgBloomReason reason = keys->reduced && search->statement->barrier ?
		PGBLOOM_REASON_PATH :
		pgbloom_join_not_worthwhile(search->join, scan, rows);
	PgBloomJoinTarget *target = palloc0(sizeof(PgBloomJoinTarget));
	int			i;

	target->scan = scan;
	target->grouping = keys->grouping;
	target->most_keys = pgbloom_join_filters == PGBLOOM_JOIN_FORCE ? INT_MAX :
		(int) Min(rows, INT_MAX);
	for (i = 0; i < keys->n; i++)
	{
		target->keys = lappend(target->keys, keys->key[i].expr);
		target->key_numbers = lappend_int(target->key_numbers,
										  keys->key[i].number);
	}
	if (reason == PGBLOOM_NO_REASON && keys->grouping != NULL)
		reason = pgbloom_join_groups_not_worthwhile(search->statement,
													search->join, target);
	if (reason != PGBLOOM_NO_REASON)
		return no_target(search, reason);
	search->targets = lappend(search->targets, target);
	return true;
}

/*
 * Keep only the keys that are columns by which the node groups its rows, with
 * an operator that agrees with the join's on which values are equal.  Both are
 * PostgreSQL's own.
 */
static void
keep_grouped(TargetSearch *search, Keys *keys, const Agg *agg)
{
	int			n = 0;
	int			i,
				j;

	for (i = 0; i < keys->n; i++)
	{
		int			number = keys->key[i].number;
		AttrNumber	column = pgbloom_join_column(keys->key[i].expr);

		for (j = 0; j < agg->numCols; j++)
		{
			if (agg->grpColIdx[j] == column &&
				agg->grpOperators[j] < FirstNormalObjectId &&
				equality_ops_are_compatible(agg->grpOperators[j],
											list_nth_oid(search->join->hashoperators,
														 number)) &&
				agg->grpCollations[j] == list_nth_oid(search->join->hashcollations,
													  number))
			{
				keys->key[n++] = keys->key[i];
				break;
			}
		}
	}
	keys->n = n;
}

/*
 * Grouping that reads all of its input before it returns a row; returns false
 * if the search ends here.
 *
 * It must see all rows of a group or none.  What is computed of a part of a
 * group may fail.  How many keys all processes of a Parallel Hash have is not
 * known to any of them.
 */
static bool
pass_grouping(TargetSearch *search, const Agg *agg, Keys *keys)
{
	if (!(agg->aggstrategy == AGG_HASHED ||
		  (agg->aggstrategy == AGG_SORTED && IsA(outerPlan(agg), Sort))) ||
		agg->groupingSets != NIL || agg->chain != NIL ||
		innerPlan(search->join)->parallel_aware)
		return no_target(search, PGBLOOM_REASON_PATH);
	keys->grouping = agg;
	keys->reduced = true;
	keep_grouped(search, keys, agg);
	return keys->n > 0 || no_target(search, PGBLOOM_REASON_PATH);
}

/*
 * Replace the keys that a hash join below finds equal to a column of its other
 * side by that column.  The type, the operator and the collation are those of
 * the join with the filter, so the two have the same hash.
 */
static void
equate_keys(TargetSearch *search, const HashJoin *below, bool to_outer,
			Keys *keys)
{
	int			i,
				j;

	for (i = 0; i < keys->n; i++)
	{
		Expr	   *key = keys->key[i].expr;
		int			number = keys->key[i].number;

		for (j = 0; j < list_length(below->hashclauses); j++)
		{
			OpExpr	   *clause = list_nth_node(OpExpr, below->hashclauses, j);
			Expr	   *same = list_nth(clause->args, to_outer ? 1 : 0);
			Expr	   *other = list_nth(clause->args, to_outer ? 0 : 1);

			if (clause->opno == list_nth_oid(search->join->hashoperators,
											 number) &&
				clause->inputcollid == list_nth_oid(search->join->hashcollations,
													number) &&
				equal(same, key) && pgbloom_join_is_key(other) &&
				exprType((Node *) other) == exprType((Node *) key))
			{
				keys->key[i].expr = other;
				break;
			}
		}
	}
}

/*
 * Of a join below, the sides whose rows can be dropped: those that come with
 * NULLs instead of a match for the other side's rows cannot.  Both sides of an
 * inner hash join have the same keys where it compares them, and not below a
 * grouping, where all scans would need the filter.
 */
static bool
descend_join(TargetSearch *search, Join *join, Keys keys)
{
	JoinType	type = join->jointype;
	bool		outer = type == JOIN_INNER || type == JOIN_LEFT ||
		type == JOIN_SEMI || type == JOIN_ANTI;
	bool		inner = !IsA(join, NestLoop) &&
		(type == JOIN_INNER || type == JOIN_RIGHT ||
		 PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type));
	bool		found = false;
	Keys		of_outer;

	keys.reduced = true;
	keys.rows = 0;
	of_outer = keys;
	if (IsA(join, HashJoin) && type == JOIN_INNER && keys.grouping == NULL)
	{
		equate_keys(search, (HashJoin *) join, true, &of_outer);
		equate_keys(search, (HashJoin *) join, false, &keys);
	}
	if (inner)
		found |= descend_to_scan(search, innerPlan(join), keys, INNER_VAR);
	if (outer)
		found |= descend_to_scan(search, outerPlan(join), of_outer, OUTER_VAR);
	return found || no_target(search, PGBLOOM_REASON_PATH);
}

/*
 * Of several children below a grouping, all or none must be filtered, by the
 * same keys.  A Result without a child returns a row that no filter drops.
 */
static bool
descend_children(TargetSearch *search, List *children, Keys keys)
{
	int			before = list_length(search->targets);
	bool		found = false;
	bool		all = true;
	ListCell   *lc;

	if (children == NIL)
		return no_target(search, PGBLOOM_REASON_KEYS);
	foreach(lc, children)
	{
		bool		found_here = descend_to_scan(search, lfirst(lc), keys, OUTER_VAR);

		found |= found_here;
		all &= found_here;
	}
	if (keys.grouping == NULL || list_length(children) == 1)
		return found;
	for_each_from(lc, search->targets, before)
		all &= list_length(((PgBloomJoinTarget *) lfirst(lc))->keys) == keys.n;
	if (!all)
		search->targets = list_truncate(search->targets, before);
	return all || no_target(search, PGBLOOM_REASON_PATH);
}

/*
 * Nodes between the join and a scan; keys are in terms of their children.
 * MergeJoin, MergeAppend and IncrementalSort are not among them: they may not
 * have to read all of their input, and a scan that drops all rows would.
 */
static bool
pass_through(TargetSearch *search, Plan *plan, Keys keys)
{
	if (plan->qual != NIL)
		keys.reduced = true;
	switch (nodeTag(plan))
	{
		case T_Sort:
		case T_Hash:
			keys.reduced = true;
			keys.share = 1;
			break;
		case T_Append:
			if (keys.rows == 0)
				keys.rows = plan->plan_rows;
			break;
		case T_Result:
			break;
		case T_Agg:
			keys.rows = 0;
			keys.share = 1;
			if (!pass_grouping(search, (Agg *) plan, &keys))
				return false;
			break;
		case T_NestLoop:
		case T_HashJoin:
			return descend_join(search, (Join *) plan, keys);
		default:
			return no_target(search, PGBLOOM_REASON_PATH);
	}
	return descend_children(search, pgbloom_plan_children(plan), keys);
}

/*
 * Find targets in a plan.  The keys are in terms of the plan's output, to
 * which Vars of this varno refer.  Returns whether there are any.
 */
static bool
descend_to_scan(TargetSearch *search, Plan *plan, Keys keys, int varno)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	translate_keys(&keys, varno, plan->targetlist);
	if (keys.n == 0)
		return no_target(search, PGBLOOM_REASON_KEYS);
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_TableFuncScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_ForeignScan:
			return add_target(search, plan, &keys);
		case T_SubqueryScan:
			{
				SubqueryScan *scan = (SubqueryScan *) plan;
				Keys		below = keys;

				below.reduced |= plan->qual != NIL;
				return descend_to_scan(search, scan->subplan, below,
									   (int) scan->scan.scanrelid) ||
					add_target(search, plan, &keys);
			}
		default:
			return pass_through(search, plan, keys);
	}
}

/* Can a filter use this key of the join, as it is on both sides? */
static bool
is_usable(HashJoin *join, int number)
{
	Expr	   *outer = list_nth(join->hashkeys, number);
	Expr	   *inner = list_nth(((Hash *) innerPlan(join))->hashkeys, number);

	return pgbloom_join_is_key(outer) && pgbloom_join_is_key(inner) &&
		pgbloom_join_can_hash(list_nth_oid(join->hashoperators, number),
							  list_nth_oid(join->hashcollations, number));
}

/*
 * Find the scans that a filter of this join may reduce, as a list of
 * PgBloomJoinTarget, or return why there are none.
 */
PgBloomReason
pgbloom_join_targets(const PgBloomStatement *statement,
					 const PgBloomPlannedJoin *planned, List **targets)
{
	HashJoin   *join = planned->join;
	TargetSearch search = {
		.statement = statement,
		.join = join
	};
	Keys		keys = {.share = planned->share};
	int			i;

	for (i = 0; i < list_length(join->hashkeys) &&
		 keys.n < PGBLOOM_MAX_JOIN_KEYS; i++)
	{
		if (!is_usable(join, i))
			continue;
		keys.key[keys.n].number = i;
		keys.key[keys.n++].expr = list_nth(join->hashkeys, i);
	}
	if (keys.n == 0)
		return PGBLOOM_REASON_KEYS;
	descend_to_scan(&search, outerPlan(join), keys, OUTER_VAR);
	*targets = search.targets;
	return *targets == NIL ? search.reason : PGBLOOM_NO_REASON;
}
