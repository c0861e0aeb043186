/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  What a statement and a path read, and whether a finished plan has the
 *	  filters that its planning has assumed.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/table.h"
#include "catalog/pg_class.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/rel.h"

typedef struct Tables			/* that a statement reads */
{
	Cost		cost;			/* of reading all of them */
	bool		has_candidate;
} Tables;

/* Find the tables of a query and its subqueries, which may be pulled up. */
static bool
find_tables_walker(Node *node, void *context)
{
	RangeTblEntry *rte = (RangeTblEntry *) node;
	Tables	   *tables = context;
	Relation	table;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		/* Most queries have no subqueries in expressions. */
		if (query->hasSubLinks)
			return query_tree_walker(query, find_tables_walker, context,
									 QTW_EXAMINE_RTES_BEFORE);
		return range_table_walker(query->rtable, find_tables_walker, context,
								  QTW_EXAMINE_RTES_BEFORE |
								  QTW_IGNORE_JOINALIASES) ||
			find_tables_walker((Node *) query->cteList, context);
	}
	if (!IsA(node, RangeTblEntry))
		return expression_tree_walker(node, find_tables_walker, context);
	/* The target of INSERT is not read, nor is a view itself. */
	if (rte->rtekind != RTE_RELATION || rte->relkind == RELKIND_VIEW ||
		rte->rellockmode != AccessShareLock)
		return false;
	table = table_open(rte->relid, NoLock);
	if (table->rd_rel->relhassubclass || table->rd_rel->reltuples < 0)
		tables->cost = get_float8_infinity();
	else
		tables->cost += seq_page_cost * table->rd_rel->relpages +
			cpu_tuple_cost * table->rd_rel->reltuples;
	tables->has_candidate |= rte->relkind == RELKIND_PARTITIONED_TABLE ||
		(rte->relkind == RELKIND_RELATION &&
		 pgbloom_join_brin_columns(table) != NULL);
	table_close(table, NoLock);
	return false;
}

/*
 * Does a statement read so much that another plan may pay, and has it a table
 * that a filter could leave partly unread?  Tables with children, and those that
 * were never analyzed, are large.
 */
bool
pgbloom_join_reads_much(Query *parse, bool *has_candidate)
{
	Tables		tables = {0};

	*has_candidate = true;
	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return true;
	find_tables_walker((Node *) parse, &tables);
	*has_candidate = tables.has_candidate;
	return tables.cost >= pgbloom_join_planning_cost;
}

/*
 * Correct what it costs to look up rows of a partitioned table by its partition
 * key.  PostgreSQL takes each to read all partitions, which matters little as
 * long as it expects too few; if only their number were corrected, it would
 * avoid them.
 */
void
pgbloom_join_cost_pruned(RelOptInfo *rel)
{
	ListCell   *x,
			   *y;

	if (rel->part_scheme == NULL || !enable_partition_pruning)
		return;
	foreach(x, rel->pathlist)
	{
		Path	   *path = lfirst(x);
		bool		pruned = false;

		if (!IsA(path, AppendPath) || path->param_info == NULL)
			continue;
		foreach(y, path->param_info->ppi_clauses)
		{
			RestrictInfo *rinfo = lfirst(y);
			OpExpr	   *op = (OpExpr *) rinfo->clause;

			pruned |= rinfo->mergeopfamilies != NIL &&
				(pgbloom_join_is_partition_key(rel, linitial(op->args), op) ||
				 pgbloom_join_is_partition_key(rel, lsecond(op->args), op));
		}
		if (pruned)
			path->total_cost = path->startup_cost +
				(path->total_cost - path->startup_cost) *
				pgbloom_join_largest_part(rel);
	}
}

/* Does a path read a relation, or each partition of it, by an index? */
bool
pgbloom_join_reads_by_index(Path *path, const RelOptInfo *rel)
{
	switch (nodeTag(path))
	{
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return pgbloom_join_reads_by_index(((JoinPath *) path)->outerjoinpath, rel) ||
				pgbloom_join_reads_by_index(((JoinPath *) path)->innerjoinpath, rel);
		case T_MaterialPath:
			return pgbloom_join_reads_by_index(((MaterialPath *) path)->subpath, rel);
		case T_MemoizePath:
			return pgbloom_join_reads_by_index(((MemoizePath *) path)->subpath, rel);
		case T_GatherPath:
			return pgbloom_join_reads_by_index(((GatherPath *) path)->subpath, rel);
		case T_GatherMergePath:
			return pgbloom_join_reads_by_index(((GatherMergePath *) path)->subpath, rel);
		default:
			return path->parent == rel &&
				(path->param_info != NULL || IsA(path, IndexPath) ||
				 IsA(path, BitmapHeapPath));
	}
}

/* Does this part of the plan scan the relation, or a part of it? */
static bool
plan_scans(const PgBloomStatement *statement, Plan *plan, Index relid)
{
	int			column = 0;
	ListCell   *lc;

	if (pgbloom_scanned_column(statement, plan, &column) == relid)
		return true;
	foreach(lc, pgbloom_plan_children(plan))
	{
		if (plan_scans(statement, lfirst(lc), relid))
			return true;
	}
	return false;
}

/*
 * Is this scan filtered as assumed, by the column by which something is left
 * unread, and of a kind that skip.c skips?
 */
static bool
fulfils(const PgBloomAssumption *assumption,
		const PgBloomStatement *statement, const PgBloomJoinTarget *target)
{
	ListCell   *lc;

	if (target->grouping != NULL ||
		(!IsA(target->scan, SeqScan) && !IsA(target->scan, ForeignScan)) ||
		(!assumption->partitioned &&
		 (target->scan->parallel_aware || statement->hides_rows)))
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
 * Scans below this join are going to probe its filters.  Note whether that is
 * what was assumed.  The relations of the outermost query have the same numbers
 * in the plan.  By a Parallel Hash nothing is skipped.
 */
void
pgbloom_join_note_filters(const PgBloomStatement *statement, HashJoin *join,
						  List *targets)
{
	ListCell   *x,
			   *y;

	foreach(x, pgbloom_join_assumptions())
	{
		PgBloomAssumption *assumption = lfirst(x);

		if (assumption->filtered == 0)
			assumption->fulfilled = true;
		if (assumption->fulfilled || innerPlan(join)->parallel_aware ||
			!plan_scans(statement, innerPlan(join), assumption->by))
			continue;
		foreach(y, targets)
			assumption->fulfilled |= fulfils(assumption, statement, lfirst(y));
	}
}
