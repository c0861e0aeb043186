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
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "pgbloom.h"
#include "utils/ruleutils.h"

static const char *const state_names[] = {
	[PGBLOOM_JOIN_NEVER_USED] = "never used",
	[PGBLOOM_JOIN_OVER_LIMIT] = "over limit",
	[PGBLOOM_JOIN_SAMPLING] = "sampling",
	[PGBLOOM_JOIN_ACTIVE] = "active"
};

/* The keys of a filter, as the columns or expressions of the child. */
static char *
keys_of(CustomScanState *node, List *description, List *ancestors,
		ExplainState *es)
{
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan,
												   ancestors);
	bool		prefix = es->verbose || list_length(es->rtable) > 1;
	StringInfoData keys;
	int			i;

	initStringInfo(&keys);
	for (i = 1; i < list_length(description); i++)
	{
		Node	   *key = list_nth(scan->custom_exprs,
								   list_nth_int(description, i));

		appendStringInfo(&keys, "%s%s", i > 1 ? ", " : "",
						 deparse_expression(key, context, prefix, false));
	}
	return keys.data;
}

/*
 * Numbers of keys and rows, and in a line of their own, those of scans that
 * were skipped and blocks that a BRIN index left.
 */
static void
explain_counts(const PgBloomJoinFilter *filter, ExplainState *es)
{
	const PgBloomJoinCounts *counts = filter->counts;
	uint64		kilobytes = (counts->size + 1023) / 1024;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Keys", NULL, counts->keys, es);
		ExplainPropertyUInteger("Memory", "kB", kilobytes, es);
		ExplainPropertyUInteger("Checked", NULL, counts->checked, es);
		ExplainPropertyUInteger("Removed", NULL, counts->removed, es);
		ExplainPropertyText("State", state_names[counts->state], es);
		ExplainPropertyInteger("Scans", NULL, filter->nscans, es);
		ExplainPropertyUInteger("Scans Skipped", NULL, counts->skipped, es);
		ExplainPropertyUInteger("Blocks", NULL, counts->blocks, es);
		ExplainPropertyUInteger("Blocks Read", NULL, counts->blocks_read, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "  Keys: " UINT64_FORMAT "  Memory: "
					 UINT64_FORMAT "kB  Checked: " UINT64_FORMAT
					 "  Removed: " UINT64_FORMAT "  State: %s\n",
					 counts->keys, kilobytes, counts->checked,
					 counts->removed, state_names[counts->state]);
	if (filter->nscans == 0 && counts->blocks == 0)
		return;
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (filter->nscans > 0)
		appendStringInfo(es->str, "  Scans Skipped: " UINT64_FORMAT " of %d",
						 counts->skipped, filter->nscans);
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
	List	   *descriptions = lfourth(scan->custom_private);
	int			i;

	ExplainOpenGroup("Bloom Filters", "Bloom Filters", false, es);
	for (i = 0; i < build->nfilters; i++)
	{
		List	   *description = list_nth(descriptions, i);
		char	   *keys = keys_of(node, description, ancestors, es);

		ExplainOpenGroup("Bloom Filter", NULL, true, es);
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			appendStringInfoSpaces(es->str, es->indent * 2);
			appendStringInfo(es->str, "Bloom Filter %d: %s\n",
							 linitial_int(description), keys);
		}
		else
		{
			ExplainPropertyInteger("Number", NULL, linitial_int(description),
								   es);
			ExplainPropertyText("Keys of Rows", keys, es);
		}
		if (es->analyze && build->columns != NULL)
		{
			pgbloom_join_count(&build->filters[i]);
			pgbloom_join_count_skipped(&build->filters[i]);
			explain_counts(&build->filters[i], es);
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
	List	   *unfiltered;
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
		explained->unfiltered = pgbloom_join_unfiltered(es->pstmt, false);
	}
	foreach(lc, explained->unfiltered)
	{
		PgBloomUnfiltered *one = lfirst(lc);

		if (&one->join->join.plan == state->plan)
			ExplainPropertyText("No Bloom Filter",
								pgbloom_join_reason_text(one->reason), es);
	}
}

void
pgbloom_join_install_explain(void)
{
	extension_id = GetExplainExtensionId("bloomfilter");
	PGBLOOM_REGISTER_EXPLAIN_OPTION("join_filters", set_option);
	previous_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else

/* EXPLAIN has no options of extensions. */
void
pgbloom_join_install_explain(void)
{
}

#endif
