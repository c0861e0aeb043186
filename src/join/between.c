/*-------------------------------------------------------------------------
 *
 * between.c
 *	  The joins between a scan that probes a filter and the join that built it.
 *
 * A hash join may fetch a row of its outer side before it reads its inner
 * side, and it ends after that row if the inner side is empty.  If a filter
 * dropped rows meanwhile, the scan below would go on to the first row that
 * passes, perhaps to its end.  So a probe lets all rows pass until each of
 * these joins has read its inner side.  Where a foreign server would be asked
 * too early, the joins read their inner sides before an outer row.
 *
 * So it is with a node in between that reads all of its input at once: its own
 * first row is another one then, and what is evaluated of it, or read for it on
 * other sides of joins, may fail.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/xact.h"
#include "nodes/nodeFuncs.h"

/* The node that builds filters of the join's inner side, or NULL. */
static PgBloomJoinBuild *
find_builder(HashJoinState *join)
{
	PlanState  *child = outerPlanState(innerPlanState(join));

	return pgbloom_is_builder(child->plan) ? (PgBloomJoinBuild *) child : NULL;
}

static bool
builds_filter(HashJoinState *join, const PgBloomJoinFilter *filter)
{
	PgBloomJoinBuild *build = find_builder(join);

	return build != NULL &&
		filter >= build->filters && filter < build->filters + build->nfilters;
}

/*
 * Note the joins between this scan and the join that builds the filter, at
 * the start of an execution, if the qual of the scan probes it.
 */
void
pgbloom_join_note_between(const PgBloomJoinAncestor *scan, Node *qual)
{
	PgBloomJoinFilter *filter =
		pgbloom_join_find(scan->state->state->es_query_cxt, qual);
	const PgBloomJoinAncestor *below = scan;
	const PgBloomJoinAncestor *node;
	List	   *joins = NIL;

	if (!OidIsValid(filter->function))
		return;
	for (node = below->parent; node != NULL; below = node, node = node->parent)
	{
		HashJoinState *join = (HashJoinState *) node->state;

		if (!IsA(join, HashJoinState))
			continue;
		if (builds_filter(join, filter))
			break;
		if (below->state == outerPlanState(join) &&
			(join->js.jointype == JOIN_INNER ||
			 join->js.jointype == JOIN_SEMI))
			joins = lappend(joins, join);
	}
	filter->between = lappend(filter->between, lcons(qual, joins));
}

/*
 * The call with the joins that it has to wait for, or NIL if there are none.
 * Scans of many partitions ask in the order in which their calls were noted.
 */
List *
pgbloom_join_find_between(PgBloomJoinFilter *filter, const Node *call)
{
	int			n = list_length(filter->between);
	int			i;

	for (i = 0; i < n; i++)
	{
		List	   *between = list_nth(filter->between, filter->between_found);

		if (linitial(between) == call)
			return list_length(between) > 1 ? between : NIL;
		filter->between_found = (filter->between_found + 1) % n;
	}
	return NIL;
}

/* Have they all read their inner side? */
bool
pgbloom_join_between_started(const List *between)
{
	ListCell   *lc;

	for_each_from(lc, between, 1)
	{
		if (((HashJoinState *) lfirst(lc))->hj_HashTable == NULL)
			return false;
	}
	return true;
}

/*
 * Let the join read its inner side before it fetches an outer row.  A join that
 * has none then does not notice that it need not read its inner side, so that
 * must do no harm.  A predicate lock would: another transaction may then fail.
 */
static void
read_inner_first(HashJoinState *join)
{
	PgBloomJoinBuild *build = find_builder(join);

	if (build == NULL || !build->never_fails || IsolationIsSerializable())
		return;
	build->inner_first = join;
	join->hj_OuterNotEmpty = true;
}

/*
 * A foreign server must not be asked before the filter is complete, so the
 * joins from the scan to the one that builds the filter read their inner sides
 * first.
 */
void
pgbloom_join_read_inner_sides_first(const PgBloomJoinAncestor *scan,
									const PgBloomJoinFilter *filter)
{
	const PgBloomJoinAncestor *below = scan;
	const PgBloomJoinAncestor *node;

	for (node = scan->parent; node != NULL; below = node, node = node->parent)
	{
		HashJoinState *join = (HashJoinState *) node->state;

		if (!IsA(join, HashJoinState) || below->state != outerPlanState(join))
			continue;
		read_inner_first(join);
		if (builds_filter(join, filter))
			return;
	}
}
