/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The magic block of the library, and all hooks that it installs.
 *
 * Each hook calls the one that was there before, and what the index or the join
 * filters do at this place.  The Makefile takes PGBLOOM_VERSION from the
 * control file.
 *
 *-------------------------------------------------------------------------
 */
#include "pgbloom.h"

#include "executor/executor.h"
#include "optimizer/geqo.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"

#include "filter/filter.h"
#include "index/index.h"
#include "join/join.h"
#include "prune/prune.h"

PGBLOOM_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static planner_hook_type previous_planner;
static build_simple_rel_hook_type previous_relation;
static set_rel_pathlist_hook_type previous_rel_pathlist;
static join_search_hook_type previous_join_search;
static set_join_pathlist_hook_type previous_join_pathlist;
static ExecutorStart_hook_type previous_executor_start;
static ExecutorRun_hook_type previous_executor_run;

static PlannedStmt *
plan_once_with_filters(PGBLOOM_PLANNER_PARAMETERS)
{
	PlannedStmt *stmt = previous_planner != NULL ?
		previous_planner(PGBLOOM_PLANNER_ARGUMENTS) :
		standard_planner(PGBLOOM_PLANNER_ARGUMENTS);

	pgbloom_join_add_filters(stmt, pgbloom_join_plans_volatile());
	return stmt;
}

static PlannedStmt *
plan_with_filters(PGBLOOM_PLANNER_PARAMETERS)
{
	bool		is_volatile = pgbloom_join_filters != PGBLOOM_JOIN_OFF &&
		pgbloom_join_is_volatile(parse);
	PlannedStmt *stmt = pgbloom_join_plan_assuming(plan_once_with_filters,
												   is_volatile,
												   PGBLOOM_PLANNER_ARGUMENTS);

	if (pgbloom_join_filters != PGBLOOM_JOIN_OFF && PGBLOOM_TELLS_OF_PLANS())
		pgbloom_join_report(stmt, pgbloom_join_reasons(stmt, is_volatile));
	return stmt;
}

static PlannedStmt *
plan_pruned(PGBLOOM_PLANNER_PARAMETERS)
{
	BfpPlanning *outer = bfp_planning;
	BfpPlanning planning;
	PlannedStmt *stmt;

	bfp_begin_planning(&planning, parse, cursor_options, params);
	PG_TRY();
	{
		bfp_planning = &planning;
		stmt = plan_with_filters(PGBLOOM_PLANNER_ARGUMENTS);
	}
	PG_FINALLY();
	{
		bfp_planning = outer;
	}
	PG_END_TRY();
	bfp_add_note(stmt, &planning);
	return stmt;
}

static void
begin_relation(PGBLOOM_RELATION_PARAMETERS)
{
	if (previous_relation != NULL)
		previous_relation(PGBLOOM_RELATION_ARGUMENTS);
	bfp_prune_table(root, rel);
}

static void
add_gates(PlannerInfo *root, RelOptInfo *rel, Index number,
		  RangeTblEntry *rte)
{
	if (previous_rel_pathlist != NULL)
		previous_rel_pathlist(root, rel, number, rte);

	/* A library whose hook calls this one may yet add scans of other rows. */
	if (set_rel_pathlist_hook == add_gates)
		bfp_add_gates(root, rel, rte);
}

static RelOptInfo *
search_joins_once(PlannerInfo *root, int levels, List *relations)
{
	if (previous_join_search != NULL)
		return previous_join_search(root, levels, relations);
	if (enable_geqo && levels >= geqo_threshold)
		return geqo(root, levels, relations);
	return standard_join_search(root, levels, relations);
}

/* As in GEQO, what one search has joined is not there for the other. */
static RelOptInfo *
search_joins(PlannerInfo *root, int levels, List *relations)
{
	int			njoined = list_length(root->join_rel_list);
	RelOptInfo *rel;

	pgbloom_join_begin_search(root);
	rel = search_joins_once(root, levels, relations);
	if (!pgbloom_join_assume(root, relations, rel->cheapest_total_path))
		return rel;
	root->join_rel_list = list_truncate(root->join_rel_list, njoined);
	root->join_rel_hash = NULL;
	return search_joins_once(root, levels, relations);
}

static void
add_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer,
			   RelOptInfo *inner, JoinType type, JoinPathExtraData *extra)
{
	if (previous_join_pathlist != NULL)
		previous_join_pathlist(root, joinrel, outer, inner, type, extra);
	pgbloom_join_add_assumed_path(root, joinrel, outer, inner, type, extra);
}

static void
start_executor(QueryDesc *query, int eflags)
{
	bfp_check_plan(query, eflags);
	(previous_executor_start != NULL ? previous_executor_start :
	 standard_ExecutorStart) (query, eflags);
	pgbloom_join_start(query->planstate);
}

/* Parallel workers, which start now, see the rows of the transaction. */
static void
run_executor(PGBLOOM_RUN_PARAMETERS)
{
	BfiExecution *outer = bfi_execution;
	const PlannedStmt *plan = query->plannedstmt;
	BfiExecution execution = {
		.context = query->estate->es_query_cxt,
		.only_reads = plan->commandType == CMD_SELECT &&
		plan->rowMarks == NIL && !plan->hasModifyingCTE
	};

	if (query->plannedstmt->parallelModeNeeded)
		bfi_flush();
	PG_TRY();
	{
		bfi_execution = &execution;
		(previous_executor_run != NULL ? previous_executor_run :
		 standard_ExecutorRun) (PGBLOOM_RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		bfi_execution = outer;
	}
	PG_END_TRY();
	bfi_forget(&execution);
}

void
_PG_init(void)
{
	bfi_init();
	pgbloom_stored_init();
	bfp_define_setting();
	pgbloom_join_define_settings();
	RegisterCustomScanMethods(&pgbloom_join_scan_methods);
	pgbloom_join_install_explain();
	bfp_install_explain();

	previous_planner = planner_hook;
	planner_hook = plan_pruned;
	previous_relation = build_simple_rel_hook;
	build_simple_rel_hook = begin_relation;
	previous_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_gates;
	previous_join_search = join_search_hook;
	join_search_hook = search_joins;
	previous_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = add_join_paths;
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = start_executor;
	previous_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = run_executor;
}
