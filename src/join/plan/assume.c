/*-------------------------------------------------------------------------
 *
 * assume.c
 *	  Plans that count on filters.
 *
 * The planner does not know that a filter of a calendar leaves one of many
 * partitions of a fact, and may join the calendar last, in a nested loop that
 * has no filter.  So if, of two relations, one is filtered by the keys of the
 * other and only partly read, the joins of a statement that is expensive are
 * searched again.  Where these two are joined, there is one more path then: a
 * hash join of which the outer scan costs less by what is not read.  All other
 * estimates are those of PostgreSQL, which chooses among all paths.
 *
 * Whether the filters of such joins are there is seen when filters are added to
 * the finished plan.  If one is missing, the statement is planned again as
 * PostgreSQL does.  So it is if estimates were corrected (correct.c) and the plan
 * has no filter: they make other errors of the planner's costs count, and nothing
 * would make up for it.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/rel.h"

/* If a larger share of a relation is read, nothing is assumed. */
#define MAX_SHARE	0.7

/*
 * How much is read of one relation with a filter by the keys of another one.
 * These are their numbers in the range table.
 */
typedef struct Assumption
{
	Index		filtered;
	Index		by;
	AttrNumber	column;			/* by which the rest is ruled out; 0 for any */
	bool		partitioned;
	double		share;			/* of the scan that is read */
} Assumption;

/* The planning of one statement. */
typedef struct Planning
{
	Query	   *parse;			/* NULL if its plan is PostgreSQL's */
	bool		is_volatile;	/* it calls a volatile function */
	bool		corrected;		/* estimates were */
	bool		has_filter;		/* the finished plan */
	bool		lacks_filter;	/* one that was assumed */
	List	   *assumptions;
} Planning;

static Planning *current = NULL;

/*
 * May the query have another plan than that of PostgreSQL's estimates?  Not if
 * the statement calls a volatile function, perhaps more often than before, or no
 * scan has enough rows for a filter: planning must not take longer for these.
 */
static bool
may_change_plan(PlannerInfo *root)
{
	int			i = -1;

	while (current != NULL && current->parse != NULL &&
		   (i = bms_next_member(root->all_baserels, i)) >= 0)
	{
		if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE ||
			root->simple_rel_array[i]->rows >= pgbloom_join_filter_min_rows)
			return !pgbloom_join_reads_some(root);
	}
	return false;
}

/* Correct estimates before the first search of the joins of a query. */
void
pgbloom_join_begin_search(PlannerInfo *root)
{
	if (may_change_plan(root))
		current->corrected |= pgbloom_join_correct(root);
}

/* How a path reads a relation without another search. */
#define BY_INDEX	1			/* or each partition of it */
#define FILTERED	2			/* outside of a hash join with the keys */

/*
 * How does a path read a relation that may be filtered by the keys of another
 * one?  By a BRIN index and these keys, it reads what a filter leaves.
 */
static int
how_read(Path *path, const RelOptInfo *rel, const RelOptInfo *by)
{
	Path	   *outer = NULL,
			   *inner = NULL;
	int			result = 0;
	ListCell   *lc;

	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			outer = ((JoinPath *) path)->outerjoinpath;
			inner = ((JoinPath *) path)->innerjoinpath;
			if (IsA(path, HashPath) &&
				bms_is_member(rel->relid, outer->parent->relids) &&
				bms_is_member(by->relid, inner->parent->relids))
				result = FILTERED;
			if (IsA(path, NestPath) && IsA(inner, BitmapHeapPath) &&
				inner->parent == rel && outer->parent == by &&
				IsA(((BitmapHeapPath *) inner)->bitmapqual, IndexPath) &&
				((IndexPath *) ((BitmapHeapPath *) inner)->bitmapqual)->indexinfo->relam == BRIN_AM_OID)
				return result;
			return result | how_read(outer, rel, by) | how_read(inner, rel, by);
		case T_MaterialPath:
			return how_read(((MaterialPath *) path)->subpath, rel, by);
		case T_MemoizePath:
			return how_read(((MemoizePath *) path)->subpath, rel, by);
		case T_GatherPath:
			return how_read(((GatherPath *) path)->subpath, rel, by);
		case T_GatherMergePath:
			return how_read(((GatherMergePath *) path)->subpath, rel, by);
		case T_AppendPath:
			foreach(lc, path->parent == rel ? ((AppendPath *) path)->subpaths : NIL)
				result |= how_read(lfirst(lc), ((Path *) lfirst(lc))->parent, by);
			if (path->parent != rel || path->param_info == NULL)
				return result;
			return BY_INDEX;
		default:
			return path->parent == rel &&
				(path->param_info != NULL || IsA(path, IndexPath) ||
				 IsA(path, BitmapHeapPath)) ? BY_INDEX : 0;
	}
}

/* Is a scan of the relation worth another search? */
static bool
is_worth_filtering(const RelOptInfo *rel)
{
	Path	   *scan = rel->cheapest_total_path;

	return !IsA(scan, GatherPath) && !IsA(scan, GatherMergePath) &&
		(pgbloom_join_filters == PGBLOOM_JOIN_FORCE ||
		 scan->total_cost >= pgbloom_join_planning_cost);
}

/* Does the plan scan this relation by its number, without parameters? */
static bool
is_scanned(const RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->rtekind != RTE_SUBQUERY &&
		rel->cheapest_total_path->param_info == NULL;
}

/*
 * Find what can be assumed of these relations, whose joins PostgreSQL would make
 * so.  Only of the outermost query, whose relations have the same numbers in the
 * plan.  Statistics do not tell how many ranges of a BRIN index have a key, as a
 * few rows that came late change them; and of few keys, index lookups read less
 * than what a filter leaves.  So nothing is assumed where PostgreSQL's own plan
 * reads by an index.  Returns whether the joins are to be searched again, as this
 * plan lacks something.
 */
bool
pgbloom_join_assume(PlannerInfo *root, List *relations, Path *without)
{
	int			before;
	bool		lacks = false;
	ListCell   *x,
			   *y;

	if (!may_change_plan(root) || current->parse != root->parse ||
		root->parent_root != NULL || !enable_hashjoin ||
		(pgbloom_join_filters != PGBLOOM_JOIN_FORCE &&
		 without->total_cost < pgbloom_join_planning_cost))
		return false;
	before = list_length(current->assumptions);
	foreach(x, relations)
	{
		RelOptInfo *filtered = lfirst(x);

		if (!is_scanned(filtered) || !is_worth_filtering(filtered))
			continue;
		foreach(y, relations)
		{
			RelOptInfo *by = lfirst(y);
			Assumption *assumption = palloc0(sizeof(Assumption));
			int			read = how_read(without, filtered, by);

			if (by == filtered || !is_scanned(by) || (read & BY_INDEX))
				continue;
			assumption->filtered = filtered->relid;
			assumption->by = by->relid;
			assumption->partitioned = filtered->part_scheme != NULL;
			assumption->share = pgbloom_join_share_read(root, filtered, by,
														&assumption->column);
			if (assumption->share > MAX_SHARE)
				continue;
			current->assumptions = lappend(current->assumptions, assumption);
			lacks |= !(read & FILTERED) ||
				pgbloom_join_filters == PGBLOOM_JOIN_FORCE;
		}
	}
	if (!lacks)
		current->assumptions = list_truncate(current->assumptions, before);
	return lacks;
}

/*
 * Add the path of a hash join of two relations of which one is assumed to be read
 * in part.  The scan, a copy with other costs, returns fewer rows for the join, but
 * keeps its rows in the plan, where worth.c compares them with those that match.
 * Below Gather each process would read all of it.  Grouped relations have the
 * number of what they group (19), and are others.
 */
void
pgbloom_join_add_assumed_path(PlannerInfo *root, RelOptInfo *joinrel,
							  RelOptInfo *outer, RelOptInfo *inner,
							  JoinType type, JoinPathExtraData *extra)
{
	Path	   *scan = outer->cheapest_total_path;
	Path	   *keys = inner->cheapest_total_path;
	JoinCostWorkspace workspace;
	HashPath   *path;
	const Assumption *assumption = NULL;
	List	   *clauses = NIL;
	ListCell   *lc;

	if (current == NULL || current->parse != root->parse ||
		root->parent_root != NULL || type != JOIN_INNER ||
		joinrel->lateral_relids != NULL)
		return;
	foreach(lc, current->assumptions)
	{
		assumption = lfirst(lc);
		if (find_base_rel(root, assumption->filtered) == outer &&
			find_base_rel(root, assumption->by) == inner)
			break;
	}
	if (lc == NULL)
		return;
	foreach(lc, extra->restrictlist)
	{
		RestrictInfo *clause = lfirst(lc);

		if (clause->can_join && OidIsValid(clause->hashjoinoperator))
			clauses = lappend(clauses, clause);
	}
	if (clauses == NIL)
		return;
	scan = (Path *) create_projection_path(root, outer, scan,
										   scan->pathtarget);
	scan->total_cost -= (1 - assumption->share) *
		(scan->total_cost - scan->startup_cost);
	scan->rows = clamp_row_est(outer->rows * assumption->share);
	initial_cost_hashjoin(root, &workspace, type, clauses, scan, keys, extra,
						  false);
	path = create_hashjoin_path(root, joinrel, type, &workspace, extra, scan,
								keys, false, extra->restrictlist, NULL,
								clauses);
	scan->rows = outer->rows;
	path->jpath.path.parallel_safe = false;
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		path->jpath.path.startup_cost = path->jpath.path.total_cost = 0;
	add_path(joinrel, (Path *) path);
}

/* Does the statement that is being planned call a volatile function? */
bool
pgbloom_join_plans_volatile(void)
{
	return current != NULL && current->is_volatile;
}

/* The relation that a side of a join scans, or 0 if that is a join itself. */
static Index
scanned_relation(const PgBloomStatement *statement, Plan *plan)
{
	int			column = 0;
	Index		result;

	while ((result = pgbloom_scanned_column(statement, plan, &column)) == 0 &&
		   !IsA(plan, HashJoin) && !IsA(plan, NestLoop) &&
		   !IsA(plan, MergeJoin) && pgbloom_plan_children(plan) != NIL)
		plan = linitial(pgbloom_plan_children(plan));
	return result;
}

/*
 * Is this scan filtered as assumed, by the column by which something is left
 * unread, and of a kind that skip.c skips?
 */
static bool
fulfils(const Assumption *assumption, const PgBloomStatement *statement,
		const PgBloomJoinTarget *target)
{
	ListCell   *lc;

	if ((!IsA(target->scan, SeqScan) && !IsA(target->scan, ForeignScan)) ||
		(!assumption->partitioned && statement->hides_rows))
		return false;
	foreach(lc, target->keys)
	{
		int			column = pgbloom_join_column(lfirst(lc));

		if (pgbloom_scanned_column(statement, target->scan,
								   &column) == assumption->filtered &&
			(assumption->column == 0 || assumption->column == column))
			return true;
	}
	return false;
}

/*
 * Scans below this join are going to probe filters for these targets.  Note
 * whether these are what was assumed, if the join is one of which a scan costs
 * less.
 */
void
pgbloom_join_note_filters(const PgBloomStatement *statement, HashJoin *join,
						  List *targets)
{
	Index		filtered = scanned_relation(statement, outerPlan(join));
	Index		by = scanned_relation(statement, innerPlan(join));
	ListCell   *x,
			   *y;

	current->has_filter |= targets != NIL;
	foreach(x, current->assumptions)
	{
		const Assumption *assumption = lfirst(x);
		bool		fulfilled = false;

		if (assumption->filtered != filtered || assumption->by != by ||
			outerPlan(join)->parallel_aware)
			continue;
		foreach(y, targets)
			fulfilled |= fulfils(assumption, statement, lfirst(y));
		current->lacks_filter |= !fulfilled;
	}
}

/*
 * Add up the cost of reading the tables of a query and of its subqueries, which may
 * be pulled up.  Tables with children, and those that were never analyzed, are
 * large.
 */
static bool
cost_of_tables_walker(Node *node, void *context)
{
	RangeTblEntry *rte = (RangeTblEntry *) node;
	Cost	   *cost = context;
	Relation	table;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		/* Most queries have no subqueries in expressions. */
		if (query->hasSubLinks)
			return query_tree_walker(query, cost_of_tables_walker, context,
									 QTW_EXAMINE_RTES_BEFORE);
		return range_table_walker(query->rtable, cost_of_tables_walker, context,
								  QTW_EXAMINE_RTES_BEFORE |
								  QTW_IGNORE_JOINALIASES) ||
			cost_of_tables_walker((Node *) query->cteList, context);
	}
	if (!IsA(node, RangeTblEntry))
		return expression_tree_walker(node, cost_of_tables_walker, context);
	/* The target of INSERT is not read, nor is a view itself. */
	if (rte->rtekind != RTE_RELATION || rte->relkind == RELKIND_VIEW ||
		rte->rellockmode != AccessShareLock)
		return false;
	table = table_open(rte->relid, NoLock);
	if (table->rd_rel->relhassubclass || table->rd_rel->reltuples < 0)
		*cost += pgbloom_join_planning_cost;
	else
		*cost += seq_page_cost * table->rd_rel->relpages +
			cpu_tuple_cost * table->rd_rel->reltuples;
	table_close(table, NoLock);
	return false;
}

/* Does a statement read so much that another plan may pay? */
static bool
reads_much(Query *parse)
{
	Cost		cost = 0;

	cost_of_tables_walker((Node *) parse, &cost);
	return pgbloom_join_filters == PGBLOOM_JOIN_FORCE ||
		cost >= pgbloom_join_planning_cost;
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
 * Plan a statement, and again as PostgreSQL does if it lacks a filter.  Others who
 * have hooks of the planner see both, but only one has the number by which
 * pg_stat_statements counts.  The planner changes the Query, so the first one has
 * a copy.
 */
PlannedStmt *
pgbloom_join_plan_assuming(planner_hook_type plan, bool is_volatile,
						   PGBLOOM_PLANNER_PARAMETERS)
{
	Planning	planning = {.is_volatile = is_volatile};
	Planning	assuming = planning;
	Query	   *original = parse;
	PlannedStmt *stmt;

	if (!pgbloom_join_planning ||
		pgbloom_join_statement_reason(parse->commandType,
									  parse->hasModifyingCTE, parse->rowMarks,
									  is_volatile) != PGBLOOM_NO_REASON ||
		pgbloom_join_has_no_join(parse) || !reads_much(parse))
		return plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
	assuming.parse = parse = copyObject(original);
	stmt = plan_as(&assuming, plan, PGBLOOM_PLANNER_ARGUMENTS);
	if (!assuming.lacks_filter && (assuming.has_filter || !assuming.corrected))
		return stmt;
	parse = original;
	parse->queryId = 0;
	stmt = plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
	stmt->queryId = parse->queryId = assuming.parse->queryId;
	return stmt;
}
