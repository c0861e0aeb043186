/*-------------------------------------------------------------------------
 *
 * assume.c
 *	  Plans that count on filters.
 *
 * The planner does not know that a filter of a calendar leaves one of many
 * partitions of a fact, and may join the calendar last, in a nested loop that
 * has no filter.  So a statement that is expensive is planned a second time,
 * under assumptions: that of two relations, one is filtered by the keys of the
 * other and only partly read.  These are joined first, by a hash join of which
 * the outer scan costs less by what is not read.  All other estimates are
 * those of PostgreSQL.
 *
 * Whether the filter of each assumption is there is seen when filters are
 * added to the finished plan.  Otherwise the assumption is dropped, and the
 * statement is planned once more.  Of the first plan and one of which all
 * assumptions hold, the cheaper one is taken.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include <math.h>

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* If a larger share of a relation is read, a second plan is not worthwhile. */
#define MAX_SHARE	0.7

/* The share that is assumed of any relation for tests. */
#define FORCED_SHARE	0.5

/* Columns with this correlation to the order of the rows are in one order. */
#define ORDERED		0.9

/* Of so many keys, a filter knows each, and not only the range. */
#define MAX_LISTED	100

/* How often a statement is planned again, at most. */
#define MAX_ATTEMPTS	3

/* One relation is filtered by the keys of another one. */
typedef struct Assumption
{
	RelOptInfo *filtered;
	RelOptInfo *by;
	double		share;			/* of the scan that is read */
	Cost		saved;
	bool		fulfilled;		/* the plan has the filter */
	HashPath   *path;
} Assumption;

/* The planning of one statement. */
typedef struct Planning
{
	Query	   *parse;			/* NULL if nothing can be assumed */
	bool		assuming;		/* the second time */
	List	   *assumptions;	/* or what could be assumed, the first time */
	Bitmapset  *denied;			/* relations without the filter assumed */
	Assumption *joining;		/* while its two relations are joined */
} Planning;

static Planning *current = NULL;

/* Are the values of a column in the order of the table's rows? */
static bool
is_ordered(PlannerInfo *root, Index relid, AttrNumber column)
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
	ReleaseSysCache(tuple);
	return result;
}

/* The column of a relation that an expression is, or 0. */
static AttrNumber
column_of(Node *expr, const RelOptInfo *rel)
{
	Var		   *var = (Var *) pgbloom_join_strip_relabel((Expr *) expr);

	return IsA(var, Var) && (Index) var->varno == rel->relid ? var->varattno : 0;
}

/*
 * How much of the range of the filtered column lies between the smallest and
 * the largest key of the other relation?  Only those of its conditions count
 * that leave keys next to each other: on the key itself, or on a column in the
 * same order, such as the year of a day.
 */
static double
share_of_range(PlannerInfo *root, RestrictInfo *clause, RelOptInfo *by,
			   AttrNumber key)
{
	bool		ordered = key > 0 && is_ordered(root, by->relid, key);
	List	   *conditions = NIL;
	double		left;
	ListCell   *lc;

	foreach(lc, by->baserestrictinfo)
	{
		RestrictInfo *condition = lfirst(lc);
		Bitmapset  *columns = NULL;
		int			column;

		pull_varattnos((Node *) condition->clause, by->relid, &columns);
		if (!bms_get_singleton_member(columns, &column))
			continue;
		column += FirstLowInvalidHeapAttributeNumber;
		if (column == key ||
			(ordered && column > 0 && is_ordered(root, by->relid, column)))
			conditions = lappend(conditions, condition);
	}
	if (conditions == NIL || key <= 0)
		return 1;
	left = clauselist_selectivity(root, conditions, by->relid, JOIN_INNER,
								  NULL);
	return left / Max(left, pgbloom_join_share_in_range(root, clause, by));
}

/* Has the relation a BRIN index on this column, or on any if it is 0? */
static bool
has_brin(const RelOptInfo *rel, AttrNumber column)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);
		int			i;

		for (i = 0; i < index->nkeycolumns && index->relam == BRIN_AM_OID; i++)
		{
			if (index->indpred == NIL &&
				(column == 0 || index->indexkeys[i] == column))
				return true;
		}
	}
	return false;
}

static bool
is_partition_key(const RelOptInfo *rel, Node *key, Oid operator)
{
	return rel->part_scheme != NULL && rel->nparts > 0 &&
		rel->partexprs != NULL && list_member(rel->partexprs[0], key) &&
		op_in_opfamily(operator, rel->part_scheme->partopfamily[0]);
}

/* How much of a relation is read with a filter by this clause? */
static double
share_by_clause(PlannerInfo *root, RestrictInfo *clause, RelOptInfo *filtered,
				RelOptInfo *by)
{
	OpExpr	   *op = (OpExpr *) clause->clause;
	bool		is_left = bms_is_member(filtered->relid, clause->left_relids);
	int			live;
	bool		in_order;
	double		parts;
	Node	   *key,
			   *other;

	if (!clause->can_join || !OidIsValid(clause->hashjoinoperator) ||
		!clause->is_pushed_down)
		return 1;
	key = list_nth(op->args, is_left ? 0 : 1);
	other = list_nth(op->args, is_left ? 1 : 0);

	/* what lies between the first and the last of some keys */
	if (filtered->cheapest_total_path->pathtype == T_SeqScan &&
		has_brin(filtered, column_of(key, filtered)) &&
		is_ordered(root, filtered->relid, column_of(key, filtered)))
		return share_of_range(root, clause, by, column_of(other, by)) *
			Max(by->rows - 1, 0.1) / (by->rows + 1);
	if (!is_partition_key(filtered, key, op->opno))
		return 1;
	live = bms_num_members(filtered->live_parts);
	in_order = filtered->part_scheme->strategy == PARTITION_STRATEGY_RANGE;
	parts = !in_order ? live :
		Min(live, 1 + filtered->nparts *
			share_of_range(root, clause, by, column_of(other, by)));
	if (by->rows <= MAX_LISTED)
		parts *= 1 - pow(1 - 1 / Max(parts, 1), by->rows);
	else if (!in_order)
		return 1;
	return Max(parts, 1) / Max(live, 1);
}

/* What can be assumed of two relations, or NULL. */
static Assumption *
consider_pair(PlannerInfo *root, RelOptInfo *filtered, RelOptInfo *by)
{
	Path	   *scan = filtered->cheapest_total_path;
	Assumption *result;
	double		share = 1;
	bool		force = pgbloom_join_filters == PGBLOOM_JOIN_FORCE;
	List	   *clauses;
	ListCell   *lc;

	if (filtered == by || filtered->relid == 0 || by->relid == 0 ||
		scan->param_info != NULL || IsA(scan, GatherPath) ||
		IsA(scan, GatherMergePath) ||
		by->cheapest_total_path->param_info != NULL ||
		bms_is_member(filtered->relid, current->denied) ||
		(!force && filtered->part_scheme == NULL && !has_brin(filtered, 0)))
		return NULL;
	clauses = pgbloom_join_clauses(root, filtered, by);
	foreach(lc, clauses)
	{
		share = share_by_clause(root, lfirst(lc), filtered, by);
		if (share <= MAX_SHARE)
			break;
	}
	if (force && clauses != NIL)
		share = Min(share, FORCED_SHARE);
	if (share > MAX_SHARE)
		return NULL;
	result = palloc0(sizeof(Assumption));
	result->filtered = filtered;
	result->by = by;
	result->share = share;
	result->saved = (1 - share) * (scan->total_cost - scan->startup_cost);
	return result;
}

/*
 * Is the order of their join with others free?  Not if one of them is on the
 * side of an outer or semi join that the other is not on.
 */
static bool
is_free(PlannerInfo *root, const RelOptInfo *x, const RelOptInfo *y)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		Relids		side = ((SpecialJoinInfo *) lfirst(lc))->syn_righthand;

		if (bms_is_member(x->relid, side) != bms_is_member(y->relid, side))
			return false;
	}
	return true;
}

/* The assumption that saves most, of relations that are not in others. */
static Assumption *
find_assumption(PlannerInfo *root, List *relations, Relids used)
{
	Assumption *best = NULL;
	ListCell   *x,
			   *y;

	foreach(x, relations)
	{
		foreach(y, relations)
		{
			RelOptInfo *filtered = lfirst(x);
			RelOptInfo *by = lfirst(y);
			Assumption *assumption;

			if (bms_overlap(filtered->relids, used) ||
				bms_overlap(by->relids, used))
				continue;
			assumption = consider_pair(root, filtered, by);
			if (assumption != NULL && is_free(root, filtered, by) &&
				(best == NULL || assumption->saved > best->saved))
				best = assumption;
		}
	}
	return best;
}

/*
 * The clauses of a join of two base relations by which it can hash, with the
 * side told that is outside.
 */
static List *
hash_clauses(JoinPathExtraData *extra, RelOptInfo *outer)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, extra->restrictlist)
	{
		RestrictInfo *clause = lfirst(lc);

		if (!clause->can_join || !OidIsValid(clause->hashjoinoperator))
			continue;
		clause->outer_is_left = bms_is_member(outer->relid,
											  clause->left_relids);
		result = lappend(result, clause);
	}
	return result;
}

/* Make the path of an assumption while its relations are joined. */
void
pgbloom_join_add_assumed_path(PlannerInfo *root, RelOptInfo *joinrel,
							  RelOptInfo *outer, RelOptInfo *inner,
							  JoinType type, JoinPathExtraData *extra)
{
	Assumption *assumption = current != NULL ? current->joining : NULL;
	JoinCostWorkspace workspace;
	List	   *clauses;

	if (assumption == NULL || outer != assumption->filtered ||
		inner != assumption->by || type != JOIN_INNER ||
		(clauses = hash_clauses(extra, outer)) == NIL)
		return;
	initial_cost_hashjoin(root, &workspace, type, clauses,
						  outer->cheapest_total_path,
						  inner->cheapest_total_path, extra, false);
	assumption->path = create_hashjoin_path(root, joinrel, type, &workspace,
											extra, outer->cheapest_total_path,
											inner->cheapest_total_path, false,
											extra->restrictlist, NULL,
											clauses);
}

/*
 * Join two relations as assumed, or return NULL if that is not possible.  The
 * scan costs and returns less for the join, but keeps its rows in the plan,
 * where worth.c compares them with those that match.
 */
static RelOptInfo *
join_as_assumed(PlannerInfo *root, Assumption *assumption)
{
	Path	   *scan = assumption->filtered->cheapest_total_path;
	double		rows = scan->rows;
	int			njoined = list_length(root->join_rel_list);
	struct HTAB *hash = root->join_rel_hash;
	RelOptInfo *joined;

	scan->total_cost -= assumption->saved;
	scan->rows = clamp_row_est(rows * assumption->share);

	/* As GEQO does, so that it can be as if it had not been joined. */
	root->join_rel_hash = NULL;
	current->joining = assumption;
	joined = make_join_rel(root, assumption->filtered, assumption->by);
	current->joining = NULL;
	scan->rows = rows;
	if (joined == NULL || assumption->path == NULL)
	{
		scan->total_cost += assumption->saved;
		root->join_rel_list = list_truncate(root->join_rel_list, njoined);
		root->join_rel_hash = hash;
		return NULL;
	}
	joined->pathlist = list_make1(assumption->path);
	joined->partial_pathlist = NIL;
	PGBLOOM_FORGET_GROUPED(joined);
	set_cheapest(joined);
	return joined;
}

/*
 * Before the join search of the outermost query: note what could be assumed,
 * or join relations as assumed.  Returns the relations that are to be joined.
 */
List *
pgbloom_join_assume(PlannerInfo *root, List *relations)
{
	Relids		used = NULL;
	Assumption *assumption;

	if (current == NULL || current->parse != root->parse ||
		root->parent_root != NULL || root->hasLateralRTEs ||
		!enable_hashjoin || enable_partitionwise_join)
		return relations;
	while ((assumption = find_assumption(root, relations, used)) != NULL)
	{
		RelOptInfo *joined = NULL;

		used = bms_add_members(used, assumption->filtered->relids);
		if (current->assuming)
		{
			joined = join_as_assumed(root, assumption);
			if (joined == NULL)
				continue;
			relations = list_delete_ptr(list_copy(relations),
										assumption->filtered);
			relations = list_delete_ptr(relations, assumption->by);
			relations = lappend(relations, joined);
		}
		used = bms_add_members(used, assumption->by->relids);
		current->assumptions = lappend(current->assumptions, assumption);
	}
	root->initial_rels = relations;
	return relations;
}

/* Does this part of the plan scan the relation? */
static bool
scans(Plan *plan, Index relid)
{
	ListCell   *lc;

	if (nodeTag(plan) >= T_SeqScan && nodeTag(plan) <= T_CustomScan &&
		((Scan *) plan)->scanrelid == relid)
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (scans(lfirst(lc), relid))
			return true;
	}
	return false;
}

/* The relation of the query that this one is, or a partition or child of. */
static Index
topmost_parent(PlannedStmt *stmt, Index relid)
{
	ListCell   *lc;

	foreach(lc, stmt->appendRelations)
	{
		AppendRelInfo *child = lfirst(lc);

		if (child->child_relid == relid)
			return topmost_parent(stmt, child->parent_relid);
	}
	return relid;
}

/*
 * A scan below this join is going to probe its filter.  Note whether that is
 * what was assumed, and whether skip.c can skip it.  The relations of the
 * outermost query have the same numbers in the plan.
 */
void
pgbloom_join_note_filter(PlannedStmt *stmt, bool hides_rows, HashJoin *join,
						 Scan *scan)
{
	ListCell   *lc;

	if (current == NULL ||
		contain_volatile_functions((Node *) scan->plan.qual) ||
		scan->plan.async_capable)
		return;
	foreach(lc, current->assumptions)
	{
		Assumption *assumption = lfirst(lc);

		if (!assumption->fulfilled &&
			scans(innerPlan(join), assumption->by->relid) &&
			topmost_parent(stmt, scan->scanrelid) ==
			assumption->filtered->relid)
			assumption->fulfilled = assumption->filtered->part_scheme != NULL ||
				!(scan->plan.parallel_aware || hides_rows);
	}
}

/* Is there a table that a filter could leave partly unread? */
static bool
has_candidate(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->cteList)
	{
		Node	   *cte = ((CommonTableExpr *) lfirst(lc))->ctequery;

		if (has_candidate(castNode(Query, cte)))
			return true;
	}
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);
		Relation	table;
		bool		found;

		if (rte->rtekind == RTE_SUBQUERY && has_candidate(rte->subquery))
			return true;
		if (rte->rtekind != RTE_RELATION)
			continue;
		if (rte->relkind == RELKIND_PARTITIONED_TABLE)
			return true;
		if (rte->relkind != RELKIND_RELATION)
			continue;
		table = table_open(rte->relid, NoLock);
		found = pgbloom_join_has_brin(table);
		table_close(table, NoLock);
		if (found)
			return true;
	}
	return false;
}

/*
 * Can filters be assumed?  A cursor wants its first rows soon, and another plan
 * may call a volatile function more or less often.
 */
static bool
may_assume(Query *parse, int cursor_options)
{
	return pgbloom_join_planning &&
		pgbloom_join_filters != PGBLOOM_JOIN_OFF &&
		(parse->commandType == CMD_SELECT ||
		 parse->commandType == CMD_INSERT) &&
		!parse->hasModifyingCTE && parse->rowMarks == NIL &&
		!(cursor_options & CURSOR_OPT_FAST_PLAN) &&
		(pgbloom_join_filters == PGBLOOM_JOIN_FORCE || has_candidate(parse)) &&
		!contain_volatile_functions((Node *) parse);
}

/*
 * Plan a statement by a function that adds filters.  Functions that are
 * evaluated meanwhile may plan others.
 */
static PlannedStmt *
plan_as(Planning *planning, planner_hook_type plan, PGBLOOM_PLANNER_PARAMETERS)
{
	Planning   *previous = current;
	PlannedStmt *stmt;

	current = planning;
	PG_TRY();
	{
		stmt = plan(PGBLOOM_PLANNER_ARGUMENTS);
	}
	PG_FINALLY();
	{
		current = previous;
	}
	PG_END_TRY();
	return stmt;
}

/*
 * The filtered relations of which the plan has no filter as assumed.  What the
 * others save is added up.
 */
static Bitmapset *
unfulfilled(const Planning *planning, Cost *saved)
{
	Bitmapset  *result = NULL;
	ListCell   *lc;

	*saved = 0;
	foreach(lc, planning->assumptions)
	{
		Assumption *assumption = lfirst(lc);

		if (assumption->fulfilled)
			*saved += assumption->saved;
		else
			result = bms_add_member(result, assumption->filtered->relid);
	}
	return result;
}

/*
 * Plan a statement, and once more if there is something to assume that the
 * first plan does not have.  The planner changes the Query, and so may its
 * hooks, so each plan is made of a copy.
 */
PlannedStmt *
pgbloom_join_plan_assuming(planner_hook_type plan, PGBLOOM_PLANNER_PARAMETERS)
{
	bool		force = pgbloom_join_filters == PGBLOOM_JOIN_FORCE;
	Query	   *original = may_assume(parse, cursor_options) ?
		copyObject(parse) : NULL;
	Planning	planning = {.parse = original != NULL ? parse : NULL};
	PlannedStmt *first = plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
	Cost		saved;
	Bitmapset  *missing = unfulfilled(&planning, &saved);
	Cost		cost = first->planTree->total_cost - saved;
	int			i;

	if (!force && cost < pgbloom_join_planning_cost)
		return first;
	planning.assuming = true;
	for (i = 0; i < MAX_ATTEMPTS && !bms_is_empty(missing); i++)
	{
		PlannedStmt *second;

		parse = planning.parse = copyObject(original);
		planning.assumptions = NIL;
		second = plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
		missing = unfulfilled(&planning, &saved);
		if (bms_is_empty(missing) && planning.assumptions != NIL &&
			(force || second->planTree->total_cost < cost))
			return second;
		planning.denied = bms_add_members(planning.denied, missing);
	}
	return first;
}
