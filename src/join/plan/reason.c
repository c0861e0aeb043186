/*-------------------------------------------------------------------------
 *
 * reason.c
 *	  Why hash joins have no filters: as texts, and as messages.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "miscadmin.h"
#include "parser/parsetree.h"

const char *const pgbloom_join_reason_texts[] = {
	[PGBLOOM_REASON_OFF] = "bloomfilter.join_filters is off",
	[PGBLOOM_REASON_EXTENSION] = "extension \"bloomfilter\" is not in this database, or not every role may execute bloom_join_probe()",
	[PGBLOOM_REASON_STATEMENT] = "the statement locks, changes or deletes rows, or calls a volatile function outside of its select list",
	[PGBLOOM_REASON_JOIN_TYPE] = "it keeps outer rows without a match",
	[PGBLOOM_REASON_MATCHING] = "nearly all outer rows are expected to match",
	[PGBLOOM_REASON_REPEATED] = "it may be executed more than once",
	[PGBLOOM_REASON_KEYS] = "its keys are not columns of a scan, or simple casts of columns, compared by an operator of PostgreSQL's own under a deterministic collation",
	[PGBLOOM_REASON_PATH] = "a node between the scan and the join must see all rows, or a security barrier may hide some",
	[PGBLOOM_REASON_FEW_ROWS] = "the scan has fewer rows than bloomfilter.join_filter_min_rows",
	[PGBLOOM_REASON_LARGE_INNER] = "the inner side has more than half as many rows as the scan, or its filter would exceed bloomfilter.join_filter_memory",
	[PGBLOOM_REASON_EARLIER_PLAN] = "the statement calls a volatile function, or the plan was made with other settings or changed afterwards"
};

/* Add the names of the relations that a plan scans to a list. */
static List *
add_relations(List *names, PlannedStmt *stmt, Plan *plan)
{
	List	   *children = pgbloom_plan_children(plan);
	ListCell   *lc;

	check_stack_depth();
	if (IsA(plan, SubqueryScan) || IsA(plan, BitmapHeapScan))
		children = NIL;
	else if (IsA(plan, Append) || IsA(plan, MergeAppend))
		children = list_truncate(children, 1);
	foreach(lc, children)
		names = add_relations(names, stmt, lfirst(lc));
	if (children == NIL && !IsA(plan, Result) && ((Scan *) plan)->scanrelid > 0)
		names = list_append_unique(names,
								   makeString(rt_fetch(((Scan *) plan)->scanrelid,
													   stmt->rtable)->eref->aliasname));
	return names;
}

static const char *
relations_of(PlannedStmt *stmt, Plan *plan)
{
	StringInfoData result;
	ListCell   *lc;

	initStringInfo(&result);
	foreach(lc, add_relations(NIL, stmt, plan))
		appendStringInfo(&result, "%s%s", result.len > 0 ? ", " : "",
						 strVal(lfirst(lc)));
	return result.len > 0 ? result.data : "rows";
}

void
pgbloom_join_report(PlannedStmt *stmt, List *joins)
{
	ListCell   *lc;

	foreach(lc, joins)
	{
		PgBloomPlannedJoin *one = lfirst(lc);

		if (one->reason == PGBLOOM_NO_REASON)
			continue;
		ereport(DEBUG1,
				(errmsg_internal("hash join of %s with %s has no join filter: %s",
								 relations_of(stmt, outerPlan(one->join)),
								 relations_of(stmt, innerPlan(one->join)),
								 pgbloom_join_reason_texts[one->reason])));
	}
}
