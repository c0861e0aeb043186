/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  EXPLAIN (JOIN_FILTERS): each hash join without filters says why.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#ifdef PGBLOOM_REGISTER_EXPLAIN_OPTION

#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"

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
		explained->unfiltered = pgbloom_join_unfiltered(es->pstmt);
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
