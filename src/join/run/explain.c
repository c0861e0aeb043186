/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN shows of a node that builds filters; EXPLAIN (JOIN_FILTERS),
 *	  which says of each hash join without filters why it has none.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#ifdef PGBLOOM_REGISTER_EXPLAIN_OPTION
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_state.h"
#endif
#include PGBLOOM_EXPLAIN_HEADER
#include "utils/ruleutils.h"

static const char *const state_names[] = {
	[PGBLOOM_JOIN_NEVER_USED] = "never used",
	[PGBLOOM_JOIN_OVER_LIMIT] = "over limit",
	[PGBLOOM_JOIN_SAMPLING] = "sampling",
	[PGBLOOM_JOIN_ACTIVE] = "active"
};

/* The keys of a filter, as the columns or expressions of the child. */
static char *
keys_of(CustomScanState *node, List *numbers, List *ancestors,
		ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan,
												   ancestors);
	bool		prefix = es->verbose || list_length(es->rtable) > 1;
	StringInfoData keys;
	ListCell   *lc;

	initStringInfo(&keys);
	foreach(lc, numbers)
	{
		Node	   *key = list_nth(scan->custom_exprs, lfirst_int(lc));

		appendStringInfo(&keys, "%s%s", keys.len > 0 ? ", " : "",
						 deparse_expression(key, context, prefix, false));
	}
	return keys.data;
}

/*
 * What was not read is in a line of its own.  There may be no more rows to
 * probe then, so that only samples of them are, or none.
 */
static void
explain_counts(const PgBloomJoinCounts *counts, ExplainState *es)
{
	uint64		kilobytes = (counts->size + 1023) / 1024;
	const char *state = state_names[counts->state];

	if (counts->state != PGBLOOM_JOIN_ACTIVE &&
		(counts->skipped > 0 || counts->blocks_read < counts->blocks))
		state = "skipping";
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Keys", NULL, counts->keys, es);
		ExplainPropertyUInteger("Memory", "kB", kilobytes, es);
		ExplainPropertyUInteger("Checked", NULL, counts->checked, es);
		ExplainPropertyUInteger("Removed", NULL, counts->removed, es);
		ExplainPropertyText("State", state, es);
		ExplainPropertyUInteger("Scans", NULL, counts->scans, es);
		ExplainPropertyUInteger("Scans Skipped", NULL, counts->skipped, es);
		ExplainPropertyUInteger("Scans Skipped by Index", NULL,
								counts->by_index, es);
		ExplainPropertyUInteger("Blocks", NULL, counts->blocks, es);
		ExplainPropertyUInteger("Blocks Read", NULL, counts->blocks_read, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "  Keys: " UINT64_FORMAT "  Memory: "
					 UINT64_FORMAT "kB  Checked: " UINT64_FORMAT
					 "  Removed: " UINT64_FORMAT "  State: %s\n",
					 counts->keys, kilobytes, counts->checked,
					 counts->removed, state);
	if (counts->scans == 0 && counts->blocks == 0)
		return;
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (counts->scans > 0)
		appendStringInfo(es->str, "  Scans Skipped: " UINT64_FORMAT " of "
						 UINT64_FORMAT, counts->skipped, counts->scans);
	if (counts->by_index > 0)
		appendStringInfo(es->str, "  By Index: " UINT64_FORMAT,
						 counts->by_index);
	if (counts->blocks > 0)
		appendStringInfo(es->str, "  Blocks Read: " UINT64_FORMAT " of "
						 UINT64_FORMAT, counts->blocks_read, counts->blocks);
	appendStringInfoChar(es->str, '\n');
}

/*
 * A line for each filter, and of a plan that was executed, another one of
 * numbers.  Whoever prints a plan that EXPLAIN has only started may ask for
 * numbers, too.
 */
void
pgbloom_join_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	PgBloomJoinBuild *build = (PgBloomJoinBuild *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *filters = (List *) pgbloom_join_property(scan->custom_private,
														 "filters");
	int			i;

	ExplainOpenGroup("Bloom Filters", "Bloom Filters", false, es);
	for (i = 0; i < list_length(filters); i++)
	{
		List	   *filter = list_nth(filters, i);
		int			number = intVal(pgbloom_join_property(filter, "number"));
		char	   *keys = keys_of(node,
								   (List *) pgbloom_join_property(filter, "keys"),
								   ancestors, es);

		ExplainOpenGroup("Bloom Filter", NULL, true, es);
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			appendStringInfoSpaces(es->str, es->indent * 2);
			appendStringInfo(es->str, "Bloom Filter %d: %s\n", number, keys);
		}
		else
		{
			ExplainPropertyInteger("Number", NULL, number, es);
			ExplainPropertyText("Keys of Rows", keys, es);
		}
		if (es->analyze && build->nfilters > 0)
		{
			pgbloom_join_start_window(&build->filters[i]);
			explain_counts(build->filters[i].counts, es);
		}
		ExplainCloseGroup("Bloom Filter", NULL, true, es);
	}
	ExplainCloseGroup("Bloom Filters", "Bloom Filters", false, es);
}

#ifdef PGBLOOM_REGISTER_EXPLAIN_OPTION

/* The statement that is explained. */
typedef struct Explained
{
	PlannedStmt *stmt;
	List	   *joins;			/* of PgBloomPlannedJoin */
} Explained;

static int	extension_id;
static explain_per_node_hook_type previous_per_node;

static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	(void) pstate;
	SetExplainExtensionState(es, extension_id,
							 defGetBoolean(option) ?
							 palloc0(sizeof(Explained)) : NULL);
}

static void
explain_node(PlanState *state, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	Explained  *explained = GetExplainExtensionState(es, extension_id);
	ListCell   *lc;

	if (previous_per_node != NULL)
		previous_per_node(state, ancestors, relationship, plan_name, es);
	if (explained == NULL || !IsA(state->plan, HashJoin))
		return;
	if (explained->stmt != es->pstmt)
	{
		explained->stmt = es->pstmt;
		explained->joins = pgbloom_join_reasons(es->pstmt, false);
	}
	foreach(lc, explained->joins)
	{
		PgBloomPlannedJoin *one = lfirst(lc);

		if (&one->join->join.plan == state->plan &&
			one->reason != PGBLOOM_NO_REASON)
			ExplainPropertyText("No Bloom Filter",
								pgbloom_join_reason_texts[one->reason], es);
	}
}

#endif

/* Until 17, EXPLAIN has no options of extensions. */
void
pgbloom_join_install_explain(void)
{
#ifdef PGBLOOM_REGISTER_EXPLAIN_OPTION
	extension_id = GetExplainExtensionId("bloomfilter");
	PGBLOOM_REGISTER_EXPLAIN_OPTION("join_filters", set_option);
	previous_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
#endif
}
