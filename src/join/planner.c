/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Adding join filters to a finished plan.
 *
 * For each suitable hash join, a node that builds filters is put below the
 * Hash node, and a call of bloom_join_probe() is appended to the quals of the
 * scans that the join's outer keys come from.  Nothing else changes: the
 * shape, the costs and the order of the plan are those that the planner chose.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "pg/pgbloom.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define PROBE_FUNCTION	"bloom_join_probe"

/*
 * The largest inner side, relative to the outer rows.  Building costs about
 * as much for each row as probing.
 */
#define MAX_INNER_RATIO	2

/* If the planner expects a larger share of outer rows to match: no filter. */
#define MAX_MATCHING	0.9

/* Where a call of the probe function is going to be added. */
typedef struct Consumer
{
	Plan	   *scan;
	Expr	   *qual;
	double		matching;		/* estimated share of rows that pass */
} Consumer;

/* What is above a part of the plan. */
typedef struct Surroundings
{
	bool		rescanned;		/* may be executed more than once */
	bool		parallel;		/* below Gather */
	Bitmapset  *gathers;		/* parameters that make Gather start again */
} Surroundings;

typedef struct Planning
{
	PlannedStmt *stmt;
	Oid			function;		/* bloom_join_probe */
	int			last_node_id;
	int			last_number;
	List	   *consumers;
	bool		checked;		/* the next one is set */
	bool		volatile_subplans;
} Planning;

static planner_hook_type previous_planner;

/* May every role call the function? */
static bool
is_public(HeapTuple function)
{
	bool		isnull;
	Datum		acl = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_proacl,
									  &isnull);
	Oid			owner = ((Form_pg_proc) GETSTRUCT(function))->proowner;

	return isnull || aclmask(DatumGetAclP(acl), ACL_ID_PUBLIC, owner,
							 ACL_EXECUTE, ACLMASK_ANY) != 0;
}

/*
 * The extension's function, or InvalidOid if the extension is not in this
 * database.  A query must not fail for want of a privilege that it does not
 * need without filters, so a function that not all roles may call is not used.
 * The last one found is remembered, because looking up its extension reads a
 * catalog.
 */
static Oid
find_probe_function(void)
{
	static Oid	last_found = InvalidOid;
	CatCList   *candidates = SearchSysCacheList1(PROCNAMEARGSNSP,
												 CStringGetDatum(PROBE_FUNCTION));
	Oid			found = InvalidOid;
	int			i;

	for (i = 0; i < candidates->n_members && !OidIsValid(found); i++)
	{
		HeapTuple	tuple = &candidates->members[i]->tuple;
		Oid			oid = ((Form_pg_proc) GETSTRUCT(tuple))->oid;

		if (is_public(tuple) &&
			(oid == last_found || pgbloom_is_ours(ProcedureRelationId, oid)))
			found = last_found = oid;
	}
	ReleaseSysCacheList(candidates);
	return found;
}

/*
 * Could filters change the result of the statement?  Where rows are locked,
 * changed or deleted, EvalPlanQual may evaluate a part of the plan again with
 * rows that the filter has not seen.
 */
static bool
is_suitable(PlannedStmt *stmt)
{
	const char *builtin = GetConfigOption("enable_hashjoin_bloom", true, false);

	return (stmt->commandType == CMD_SELECT ||
			stmt->commandType == CMD_INSERT) &&
		!stmt->hasModifyingCTE && stmt->rowMarks == NIL &&
		(builtin == NULL || strcmp(builtin, "on") != 0);
}

/* Does the join drop outer rows without a match, and show no trace of them? */
static bool
drops_outer_rows(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT ||
		PGBLOOM_IS_RIGHT_SEMI_OR_ANTI(type);
}

/*
 * The hash operator family of each key of the join, or InvalidOid for a key
 * that no filter can use.  The join evaluates and hashes a key only if those
 * before it are not NULL, so after the first one, a key must not be able to
 * fail.  A key is never volatile, because PostgreSQL does not hash those.
 */
static Oid *
key_families(HashJoin *join)
{
	List	   *inner_keys = ((Hash *) innerPlan(join))->hashkeys;
	Oid		   *families = palloc(sizeof(Oid) * list_length(inner_keys));
	int			i;

	for (i = 0; i < list_length(inner_keys); i++)
	{
		Node	   *key = list_nth(inner_keys, i);
		Oid			operator = list_nth_oid(join->hashoperators, i);

		families[i] = op_strict(operator) &&
			(i == 0 ||
			 (!pgbloom_join_may_fail((Expr *) key) &&
			  !pgbloom_join_hash_may_fail(operator, exprType(key)))) &&
			!contain_subplans(key) ?
			pgbloom_join_hash_family(operator) : InvalidOid;
	}
	return families;
}

/*
 * The share of outer rows that the planner expects to match.  The estimate of
 * a join tells it only if no outer row can match twice.
 */
static double
estimate_matching(HashJoin *join)
{
	double		outer_rows = Max(outerPlan(join)->plan_rows, 1);

	if (join->join.jointype != JOIN_SEMI &&
		!(join->join.jointype == JOIN_INNER && join->join.inner_unique))
		return Min(join->join.plan.plan_rows / outer_rows, MAX_MATCHING);
	return join->join.plan.plan_rows / outer_rows;
}

/* Is a filter of this scan likely to save more than it costs? */
static bool
is_worthwhile(HashJoin *join, PgBloomJoinTarget *target)
{
	double		inner_rows = innerPlan(join)->plan_rows;

	if (pgbloom_join_filters == PGBLOOM_JOIN_FORCE)
		return true;
	return target->rows >= pgbloom_join_filter_min_rows &&
		inner_rows <= target->rows * MAX_INNER_RATIO &&
		inner_rows * PGBLOOM_JOIN_BITS_PER_KEY / 8 <=
		pgbloom_join_filter_limit() / 4.0 * 3 &&
		estimate_matching(join) <= MAX_MATCHING;
}

/*
 * The filter of these keys among those that the join has so far, or a new
 * one.  A filter is a list of its number and its keys.
 */
static List *
find_filter(Planning *planning, List **filters, Bitmapset *keys)
{
	List	   *filter;
	ListCell   *lc;
	int			key = -1;

	foreach(lc, *filters)
	{
		List	   *other = lfirst(lc);
		Bitmapset  *other_keys = NULL;
		int			i;

		for (i = 1; i < list_length(other); i++)
			other_keys = bms_add_member(other_keys, list_nth_int(other, i));
		if (bms_equal(keys, other_keys))
			return other;
	}
	filter = list_make1_int(++planning->last_number);
	while ((key = bms_next_member(keys, key)) >= 0)
		filter = lappend_int(filter, key);
	*filters = lappend(*filters, filter);
	return filter;
}

/* A call of the probe function for a filter, perhaps without keys. */
static Expr *
make_probe(Planning *planning, int number, List *keys)
{
	Const	   *constant = makeConst(INT4OID, -1, InvalidOid, sizeof(int32),
									 Int32GetDatum(number), false, true);

	return (Expr *) makeFuncExpr(planning->function, BOOLOID,
								 lcons(constant, keys), InvalidOid, InvalidOid,
								 PGBLOOM_PROBE_FORM);
}

/*
 * The join does not evaluate the key of the first outer row, which it may
 * fetch early, if its inner side turns out to be empty.  So a key that may
 * fail is evaluated only if the filter is complete.
 */
static void
add_consumer(Planning *planning, HashJoin *join, List *filter,
			 PgBloomJoinTarget *target)
{
	Consumer   *consumer = palloc(sizeof(Consumer));
	int			number = linitial_int(filter);

	consumer->scan = target->scan;
	consumer->qual = make_probe(planning, number, target->keys);
	if (target->guarded)
		consumer->qual = make_orclause(list_make2(make_probe(planning, number,
															 NIL),
												  consumer->qual));
	consumer->matching = estimate_matching(join);
	planning->consumers = lappend(planning->consumers, consumer);
}

/*
 * A target list that returns the columns of a plan unchanged, as Vars of this
 * kind.
 */
static List *
pass_on(Plan *plan, int varno)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		TargetEntry *entry = lfirst(lc);
		Node	   *expr = (Node *) entry->expr;
		Var		   *var = makeVar(varno, entry->resno, exprType(expr),
								  exprTypmod(expr), exprCollation(expr), 0);

		result = lappend(result, makeTargetEntry((Expr *) var, entry->resno,
												 entry->resname,
												 entry->resjunk));
	}
	return result;
}

/* An identifier that no node of the statement has. */
static int
new_node_id(Planning *planning)
{
	ListCell   *lc;

	if (planning->last_node_id == 0)
	{
		planning->last_node_id = pgbloom_max_node_id(planning->stmt->planTree);
		foreach(lc, planning->stmt->subplans)
		{
			int			id = lfirst(lc) == NULL ? 0 : pgbloom_max_node_id(lfirst(lc));

			planning->last_node_id = Max(planning->last_node_id, id);
		}
	}
	return ++planning->last_node_id;
}

/*
 * Put the node that builds the filters between Hash and its child.  Everything
 * that other parts of PostgreSQL want to know of it, such as costs and
 * parameters, is as of the child.  Below Gather it is parallel-aware, so that
 * it gets shared memory.
 */
static void
add_builder(Planning *planning, HashJoin *join, List *filters, bool parallel,
			bool adaptive)
{
	Hash	   *hash = (Hash *) innerPlan(join);
	Plan	   *child = outerPlan(hash);
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;

	*plan = *child;
	plan->type = T_CustomScan;
	plan->plan_node_id = new_node_id(planning);
	plan->parallel_aware = parallel;
	plan->async_capable = false;
	plan->targetlist = pass_on(child, INDEX_VAR);
	plan->qual = NIL;
	plan->lefttree = child;
	plan->righttree = NULL;
	plan->initPlan = NIL;
	scan->custom_scan_tlist = pass_on(child, OUTER_VAR);
	scan->custom_exprs = copyObject(hash->hashkeys);
	scan->custom_private = list_make4(list_copy(join->hashoperators),
									  list_copy(join->hashcollations),
									  list_make2_int(hash->plan.parallel_aware,
													 adaptive),
									  filters);
	scan->custom_private = lappend(scan->custom_private,
								   list_make1_oid(planning->function));
	scan->methods = &pgbloom_join_scan_methods;
	outerPlan(hash) = plan;
}

/*
 * Where the results of subplans are used, parameters stand for them.  It may
 * depend on the rows whether they are executed.
 */
static bool
has_volatile_subplans(Planning *planning)
{
	ListCell   *lc;

	if (planning->checked)
		return planning->volatile_subplans;
	planning->checked = true;
	foreach(lc, planning->stmt->subplans)
	{
		if (lfirst(lc) != NULL &&
			pgbloom_has_volatile_subtree(planning->stmt, lfirst(lc)))
			planning->volatile_subplans = true;
	}
	return planning->volatile_subplans;
}

static void
consider_join(Planning *planning, HashJoin *join, const Surroundings *above)
{
	List	   *filters = NIL;
	bool		adaptive = pgbloom_join_filters != PGBLOOM_JOIN_FORCE;
	ListCell   *lc;

	if (!drops_outer_rows(join->join.jointype) ||
		(above->rescanned &&
		 !pgbloom_is_repeatable(planning->stmt, innerPlan(join),
								above->gathers)))
		return;
	foreach(lc, pgbloom_join_targets(planning->stmt, join, key_families(join),
									 above->rescanned))
	{
		PgBloomJoinTarget *target = lfirst(lc);

		if (!is_worthwhile(join, target) || has_volatile_subplans(planning))
			continue;
		if (!OidIsValid(planning->function))
			planning->function = find_probe_function();
		if (!OidIsValid(planning->function))
			return;
		add_consumer(planning, join,
					 find_filter(planning, &filters, target->key_numbers),
					 target);
		adaptive &= !target->grouped;
	}
	if (filters != NIL)
		add_builder(planning, join, filters, above->parallel, adaptive);
}

/* What is above a child of this plan. */
static Surroundings
above_child(Plan *plan, Plan *child, const Surroundings *above)
{
	Surroundings result = *above;
	int			gather = -1;

	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_RecursiveUnion:
			result.rescanned |= child == innerPlan(plan);
			break;
		case T_CustomScan:
			/* Builders that were added here execute their child once. */
			result.rescanned |= ((CustomScan *) plan)->methods !=
				&pgbloom_join_scan_methods;
			break;
		case T_Gather:
			result.parallel = true;
			gather = ((Gather *) plan)->rescan_param;
			break;
		case T_GatherMerge:
			result.parallel = true;
			gather = ((GatherMerge *) plan)->rescan_param;
			break;
		default:
			break;
	}
	if (gather >= 0)
		result.gathers = bms_add_member(bms_copy(above->gathers), gather);
	return result;
}

/*
 * Consider the joins of a plan from the top down: a filter of an upper join
 * may go below a lower one, whose Hash node has no builder then.
 */
static void
visit(Planning *planning, Plan *plan, const Surroundings *above)
{
	ListCell   *lc;

	check_stack_depth();
	if (IsA(plan, HashJoin))
		consider_join(planning, (HashJoin *) plan, above);
	foreach(lc, pgbloom_plan_children(plan))
	{
		Surroundings child_above = above_child(plan, lfirst(lc), above);

		visit(planning, lfirst(lc), &child_above);
	}
}

static int
compare_consumers(const ListCell *a, const ListCell *b)
{
	const Consumer *x = lfirst(a);
	const Consumer *y = lfirst(b);

	return (x->matching > y->matching) - (x->matching < y->matching);
}

/* Add the calls to the quals, those that let the fewest rows pass first. */
static void
add_quals(Planning *planning)
{
	ListCell   *lc;

	list_sort(planning->consumers, compare_consumers);
	foreach(lc, planning->consumers)
	{
		Consumer   *consumer = lfirst(lc);

		consumer->scan->qual = lappend(list_copy(consumer->scan->qual),
									   consumer->qual);
	}
}

/* A cached plan is planned again when the function is dropped or changed. */
static void
depend_on_function(Planning *planning)
{
	PlanInvalItem *item = makeNode(PlanInvalItem);

	item->cacheId = PROCOID;
	item->hashValue = GetSysCacheHashValue1(PROCOID,
											ObjectIdGetDatum(planning->function));
	planning->stmt->invalItems = lappend(planning->stmt->invalItems, item);
}

static void
add_filters(PlannedStmt *stmt)
{
	Planning	planning = {.stmt = stmt};
	Surroundings top = {0};
	ListCell   *lc;

	visit(&planning, stmt->planTree, &top);
	top.rescanned = true;
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			visit(&planning, lfirst(lc), &top);
	}
	if (planning.consumers != NIL)
	{
		add_quals(&planning);
		depend_on_function(&planning);
	}
}

static PlannedStmt *
plan_with_filters(PGBLOOM_PLANNER_PARAMETERS)
{
	PlannedStmt *stmt;

	stmt = (previous_planner != NULL ? previous_planner : standard_planner)
		(PGBLOOM_PLANNER_ARGUMENTS);
	if (pgbloom_join_filters != PGBLOOM_JOIN_OFF && is_suitable(stmt))
		add_filters(stmt);
	return stmt;
}

void
pgbloom_join_install_planner(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_with_filters;
}
