/*-------------------------------------------------------------------------
 *
 * assume.c
 *	  Plans that count on filters.
 *
 * The planner does not know that a filter of a calendar leaves one of many
 * partitions of a fact, and may join the calendar last, in a nested loop that
 * has no filter.  So the joins of a statement that is expensive are searched a
 * second time, under assumptions: that of two relations, one is filtered by the
 * keys of the other and only partly read.  These are joined first, by a hash
 * join of which the outer scan costs less by what is not read.  All other
 * estimates are those of PostgreSQL, which chooses among the paths of both
 * searches.
 *
 * Whether the filter of each assumption is there is seen when filters are
 * added to the finished plan.  If one is missing, the statement is planned again
 * as PostgreSQL does.  So it is if estimates were corrected (estimate.c) and the
 * plan has no filter: they make other errors of the planner's costs count, and
 * nothing would make up for it.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

/* If a larger share of a relation is read, nothing is assumed. */
#define MAX_SHARE	0.7

/* The join of the two relations, while joins are searched. */
typedef struct AssumedJoin
{
	PgBloomAssumption assumption;	/* first: what remains of it afterwards */
	RelOptInfo *filtered;
	RelOptInfo *by;
	double		share;			/* of the scan that is read */
	Cost		saved;
	Path	   *scan;			/* of the filtered relation, as assumed */
	HashPath   *path;			/* of the join */
} AssumedJoin;

/* The planning of one statement. */
typedef struct Planning
{
	Query	   *parse;			/* NULL if nothing can be assumed */
	bool		is_volatile;	/* it calls a volatile function */
	bool		may_change;		/* estimates may be corrected */
	List	   *assumptions;	/* of AssumedJoin; paths have been added */
	AssumedJoin *joining;		/* while its two relations are joined */
} Planning;

static Planning *current = NULL;

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

/* Is this a scan of a base relation that is worth another search? */
static bool
is_worth_filtering(const RelOptInfo *rel)
{
	Path	   *scan = rel->cheapest_total_path;

	return rel->relid != 0 && scan->param_info == NULL &&
		!IS_DUMMY_REL((RelOptInfo *) rel) &&
		!IsA(scan, GatherPath) && !IsA(scan, GatherMergePath) &&
		(pgbloom_join_filters == PGBLOOM_JOIN_FORCE ||
		 scan->total_cost >= pgbloom_join_planning_cost);
}

static int
compare_saved(const ListCell *a, const ListCell *b)
{
	Cost		x = ((AssumedJoin *) lfirst(a))->saved;
	Cost		y = ((AssumedJoin *) lfirst(b))->saved;

	return (x < y) - (x > y);
}

/*
 * All that can be assumed of two relations, what saves most first.  Statistics do
 * not tell how many ranges of a BRIN index have a key, as a few rows that came
 * late change them; and of few keys, index lookups read less than what a filter
 * leaves.  So nothing is assumed where PostgreSQL's own plan reads by an index.
 */
static List *
find_assumptions(PlannerInfo *root, List *relations, Path *without)
{
	List	   *result = NIL;
	ListCell   *x,
			   *y;

	foreach(x, relations)
	{
		RelOptInfo *filtered = lfirst(x);
		Path	   *scan = filtered->cheapest_total_path;

		if (!is_worth_filtering(filtered) ||
			pgbloom_join_reads_by_index(without, filtered))
			continue;
		foreach(y, relations)
		{
			RelOptInfo *by = lfirst(y);
			AssumedJoin *join;
			AttrNumber	column;
			double		share;

			if (by == filtered || by->relid == 0 ||
				by->cheapest_total_path->param_info != NULL ||
				!is_free(root, filtered, by))
				continue;
			share = pgbloom_join_share_read(root, filtered, by, &column);
			if (share > MAX_SHARE)
				continue;
			join = palloc0(sizeof(AssumedJoin));
			join->assumption.filtered = filtered->relid;
			join->assumption.by = by->relid;
			join->assumption.column = column;
			join->assumption.partitioned = filtered->part_scheme != NULL;
			join->filtered = filtered;
			join->by = by;
			join->share = share;
			join->saved = (1 - share) *
				(scan->total_cost - scan->startup_cost);
			result = lappend(result, join);
		}
	}
	list_sort(result, compare_saved);
	return result;
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
	AssumedJoin *join = current != NULL ? current->joining : NULL;
	JoinCostWorkspace workspace;
	List	   *clauses;

	if (join == NULL || outer != join->filtered || inner != join->by ||
		type != JOIN_INNER || (clauses = hash_clauses(extra, outer)) == NIL)
		return;
	initial_cost_hashjoin(root, &workspace, type, clauses, join->scan,
						  inner->cheapest_total_path, extra, false);
	join->path = create_hashjoin_path(root, joinrel, type, &workspace, extra,
									  join->scan, inner->cheapest_total_path,
									  false, extra->restrictlist, NULL,
									  clauses);
}

/*
 * Join two relations as assumed, or return NULL if that is not possible.  The
 * scan, a copy of the path with other costs, returns fewer rows for the join,
 * but keeps its rows in the plan, where worth.c compares them with those that
 * match.
 */
static RelOptInfo *
join_as_assumed(PlannerInfo *root, AssumedJoin *join)
{
	RelOptInfo *filtered = join->filtered;
	Path	   *scan = filtered->cheapest_total_path;
	int			njoined = list_length(root->join_rel_list);
	RelOptInfo *joined;

	join->scan = (Path *) create_projection_path(root, filtered, scan,
												 scan->pathtarget);
	join->scan->total_cost -= join->saved;
	join->scan->rows = clamp_row_est(scan->rows * join->share);
	current->joining = join;
	joined = make_join_rel(root, filtered, join->by);
	current->joining = NULL;
	join->scan->rows = scan->rows;
	if (joined == NULL || join->path == NULL)
	{
		root->join_rel_list = list_truncate(root->join_rel_list, njoined);
		root->join_rel_hash = NULL;
		return NULL;
	}
	joined->pathlist = list_make1(join->path);
	joined->partial_pathlist = NIL;
	PGBLOOM_FORGET_GROUPED(joined);
	set_cheapest(joined);
	return joined;
}

/*
 * Join relations as assumed, and put each two of them in the place of both.
 * Returns these joins.
 */
static List *
join_all_as_assumed(PlannerInfo *root, List **relations, Path *without)
{
	List	   *result = NIL;
	Relids		used = NULL;
	ListCell   *lc;

	foreach(lc, find_assumptions(root, *relations, without))
	{
		AssumedJoin *join = lfirst(lc);
		Relids		both = bms_union(join->filtered->relids,
									 join->by->relids);
		RelOptInfo *joined;

		if (bms_overlap(both, used) ||
			(joined = join_as_assumed(root, join)) == NULL)
			continue;
		*relations = list_delete_ptr(list_copy(*relations), join->filtered);
		*relations = list_delete_ptr(*relations, join->by);
		*relations = lappend(*relations, joined);
		used = bms_add_members(used, both);
		result = lappend(result, join);
	}
	return result;
}

/*
 * Add the paths of a relation that was joined as assumed to those of the same
 * relation.  Returns whether any of them is cheap enough to be kept.
 */
static bool
add_assumed_paths(RelOptInfo *rel, const RelOptInfo *assumed)
{
	List	   *before = rel->pathlist;
	ListCell   *lc;

	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		rel->pathlist = rel->partial_pathlist = NIL;
	foreach(lc, assumed->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath))
		{
			path->parent = rel;
			path->pathtarget = rel->reltarget;
			if (path->param_info == NULL)
				path->rows = rel->rows;
			add_path(rel, path);
		}
	}
	if (rel->pathlist == NIL)
		rel->pathlist = before;
	set_cheapest(rel);
	return list_length(list_difference_ptr(rel->pathlist,
										   assumed->pathlist)) <
		list_length(rel->pathlist);
}

/*
 * Assume that the plan has a filter, whichever: without one, it is to be that of
 * PostgreSQL's estimates.
 */
void
pgbloom_join_assume_filter(void)
{
	current->assumptions = lappend(current->assumptions,
								   palloc0(sizeof(AssumedJoin)));
}

/* What the paths of the statement that is being planned assume. */
List *
pgbloom_join_assumptions(void)
{
	return current != NULL ? current->assumptions : NIL;
}

/* Does the statement that is being planned call a volatile function? */
bool
pgbloom_join_plans_volatile(void)
{
	return current != NULL && current->is_volatile;
}

/*
 * May the query have another plan than that of PostgreSQL's estimates?  Not if
 * the statement calls a volatile function, perhaps more often than before, or no
 * scan has enough rows for a filter: planning must not take longer for these.
 */
bool
pgbloom_join_may_change_plan(PlannerInfo *root)
{
	int			i = -1;

	while (current != NULL && current->may_change &&
		   (i = bms_next_member(root->all_baserels, i)) >= 0)
	{
		if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE ||
			root->simple_rel_array[i]->rows >= pgbloom_join_filter_min_rows)
			return !pgbloom_join_reads_some(root);
	}
	return false;
}

/*
 * Search the joins of relations, in the outermost query a second time as
 * assumed, if something can be assumed and the first search has found nothing
 * cheap.  As in GEQO, what one search has joined is not there for the other.
 * Not if rows of a part of the query may be grouped early: add_path() would free
 * paths of which those of the groups are made.
 */
RelOptInfo *
pgbloom_join_search(join_search_hook_type search, PlannerInfo *root,
					int levels, List *relations)
{
	int			njoined = list_length(root->join_rel_list);
	RelOptInfo *rel = search(root, levels, relations);
	List	   *joined = root->join_rel_list;
	struct HTAB *hash = root->join_rel_hash;
	List	   *initial = root->initial_rels;
	List	   *joins;
	RelOptInfo *assumed;

	if (current == NULL || current->parse != root->parse ||
		root->parent_root != NULL || root->hasLateralRTEs ||
		!enable_hashjoin || enable_partitionwise_join ||
		PGBLOOM_GROUPS_EARLY(root, rel) ||
		(pgbloom_join_filters != PGBLOOM_JOIN_FORCE &&
		 rel->cheapest_total_path->total_cost < pgbloom_join_planning_cost))
		return rel;
	root->join_rel_list = list_truncate(list_copy(joined), njoined);
	root->join_rel_hash = NULL;
	joins = join_all_as_assumed(root, &relations, rel->cheapest_total_path);
	if (joins != NIL)
	{
		root->initial_rels = relations;
		assumed = search(root, list_length(relations), relations);
		if (add_assumed_paths(rel, assumed))
			current->assumptions = list_concat(current->assumptions, joins);
	}
	root->join_rel_list = joined;
	root->join_rel_hash = hash;
	root->initial_rels = initial;
	return rel;
}

/* May a statement have filters, by what it does with rows? */
static bool
may_have_filters(const Query *parse)
{
	return (parse->commandType == CMD_SELECT ||
			parse->commandType == CMD_INSERT) &&
		!parse->hasModifyingCTE && parse->rowMarks == NIL;
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

static bool
all_fulfilled(const Planning *planning)
{
	ListCell   *lc;

	foreach(lc, planning->assumptions)
	{
		if (!((PgBloomAssumption *) lfirst(lc))->fulfilled)
			return false;
	}
	return true;
}

/*
 * Plan a statement, and again as PostgreSQL does if an assumption is not
 * fulfilled.  Others who have hooks of the planner see both, but only one has the
 * number by which pg_stat_statements counts.  The planner changes the Query, so
 * the first one has a copy.
 */
PlannedStmt *
pgbloom_join_plan_assuming(planner_hook_type plan, bool is_volatile,
						   PGBLOOM_PLANNER_PARAMETERS)
{
	Planning	planning = {.is_volatile = is_volatile};
	Planning	assuming = planning;
	Query	   *original = parse;
	Query	   *copy;
	bool		has_candidate;
	PlannedStmt *stmt;

	if (!pgbloom_join_planning || is_volatile ||
		pgbloom_join_filters == PGBLOOM_JOIN_OFF || !may_have_filters(parse) ||
		pgbloom_join_has_no_join(parse) ||
		!pgbloom_join_reads_much(parse, &has_candidate))
		return plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
	parse = copy = copyObject(original);
	assuming.may_change = true;
	if (has_candidate)
		assuming.parse = parse;
	stmt = plan_as(&assuming, plan, PGBLOOM_PLANNER_ARGUMENTS);
	if (all_fulfilled(&assuming))
		return stmt;
	parse = original;
	parse->queryId = 0;
	stmt = plan_as(&planning, plan, PGBLOOM_PLANNER_ARGUMENTS);
	stmt->queryId = parse->queryId = copy->queryId;
	return stmt;
}
