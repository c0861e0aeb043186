/*-------------------------------------------------------------------------
 *
 * start.c
 *	  Partitions that a plan with parameters need not start.
 *
 * A generic plan has a gate before the scan of each partition, as it is not for
 * one key.  PostgreSQL would start all of them, which takes longer than to look the
 * key up.  So a node above the Append asks the indexes before it starts its child,
 * and gives that a list of the partitions that may have the key.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

static Node *create_state(CustomScan *scan);

const CustomScanMethods bfp_scan_methods = {
	.CustomName = "Bloom Filter Partitions",
	.CreateCustomScanState = create_state
};

/* The parameter that a key is, or NULL. */
Param *
bfp_parameter(Node *key)
{
	while (IsA(key, RelabelType))
		key = (Node *) ((RelabelType *) key)->arg;
	return IsA(key, Param) && ((Param *) key)->paramkind == PARAM_EXTERN ?
		(Param *) key : NULL;
}

/* The call of a gate before a scan, whose key is a parameter; NULL if none. */
static FuncExpr *
find_gate(Plan *plan, Oid function)
{
	FuncExpr   *call = NULL;

	if (IsA(plan, Result) && ((Result *) plan)->resconstantqual != NULL)
		call = linitial((List *) ((Result *) plan)->resconstantqual);
	return call != NULL && IsA(call, FuncExpr) && call->funcid == function &&
		call->funcformat == BFP_GATE_FORM &&
		bfp_parameter(lsecond(call->args)) != NULL ? call : NULL;
}

static FuncExpr *
first_gate(List *scans, Oid function)
{
	FuncExpr   *gate = NULL;
	ListCell   *cell;

	foreach(cell, scans)
	{
		if ((gate = find_gate(lfirst(cell), function)) != NULL)
			break;
	}
	return gate;
}

/*
 * Put the node above each Append of scans with gates.  PostgreSQL's own pruning
 * when a plan is executed goes by the numbers of children, so these have to stay.
 */
static void
add_above(Plan **place, Oid function)
{
	Plan	   *plan = *place;
	CustomScan *scan;
	ListCell   *cell;

	if (plan == NULL)
		return;
	add_above(&plan->lefttree, function);
	add_above(&plan->righttree, function);
	if (IsA(plan, SubqueryScan))
		add_above(&((SubqueryScan *) plan)->subplan, function);
	if (!IsA(plan, Append))
		return;
	foreach(cell, ((Append *) plan)->appendplans)
		add_above((Plan **) &lfirst(cell), function);
	if (PGBLOOM_PRUNES_AT_RUN_TIME((Append *) plan) ||
		first_gate(((Append *) plan)->appendplans, function) == NULL)
		return;

	/* Its columns are those of its child, as those of the Append are. */
	scan = makeNode(CustomScan);
	scan->scan.plan = *plan;
	scan->scan.plan.type = T_CustomScan;
	scan->scan.plan.async_capable = false;
	scan->scan.plan.initPlan = NIL;
	outerPlan(scan) = plan;
	scan->methods = &bfp_scan_methods;
	*place = (Plan *) scan;
}

/*
 * The same in all of a statement.  Workers get a copy of the plan, and would ask
 * again.
 */
void
bfp_ask_at_start(PlannedStmt *plan)
{
	Oid			function = bfp_gate_function();
	ListCell   *cell;

	if (plan->parallelModeNeeded || !OidIsValid(function))
		return;
	add_above(&plan->planTree, function);
	foreach(cell, plan->subplans)
		add_above((Plan **) &lfirst(cell), function);
}

/*
 * The value of a parameter, or NULL.  One whose evaluation may raise an error is
 * not evaluated before the scan starts.
 */
static Const *
value_of(const Param *parameter, ParamListInfo params)
{
	ParamExternData space;
	ParamExternData *value;
	int16		typlen;
	bool		typbyval;

	if (params == NULL || parameter->paramid > params->numParams)
		return NULL;
	value = params->paramFetch == NULL ?
		&params->params[parameter->paramid - 1] :
		params->paramFetch(params, parameter->paramid, true, &space);
	if (value->ptype != parameter->paramtype || value->isnull)
		return NULL;
	get_typlenbyval(value->ptype, &typlen, &typbyval);
	return makeConst(value->ptype, -1, parameter->paramcollid, typlen,
					 value->value, false, typbyval);
}

/* Read the keys of a gate.  Returns false if it has to be asked itself. */
static bool
read_keys_of_gate(const FuncExpr *gate, ParamListInfo params, BfiKeys *keys)
{
	Node	   *key = lsecond(gate->args);
	Const	   *value = value_of(bfp_parameter(key), params);

	if (value == NULL)
		return false;
	value->consttype = exprType(key);
	return bfp_read_keys(value, gate->funcvariadic, gate->inputcollid, keys);
}

/* Those of the scans that may have a row; and one of them at least. */
static List *
leave_scans(List *scans, EState *estate)
{
	Oid			function = bfp_gate_function();
	FuncExpr   *first = first_gate(scans, function);
	List	   *result = NIL;
	BfiKeys		keys = {0};
	ListCell   *cell;

	if (first == NULL ||
		!read_keys_of_gate(first, estate->es_param_list_info, &keys))
		return scans;
	foreach(cell, scans)
	{
		FuncExpr   *gate = find_gate(lfirst(cell), function);

		CHECK_FOR_INTERRUPTS();
		if (gate != NULL && gate->funcvariadic == first->funcvariadic &&
			gate->inputcollid == first->inputcollid &&
			equal(lsecond(gate->args), lsecond(first->args)))
		{
			Oid			oid = DatumGetObjectId(linitial_node(Const, gate->args)->constvalue);
			BfiPartition leaf = {
				.table = IndexGetRelation(oid, true),
				.index = oid,
				.is_heap = true
			};

			if (OidIsValid(leaf.table) && !bfi_leaf_may_have(&leaf, &keys))
				continue;
		}
		result = lappend(result, lfirst(cell));
	}
	return result != NIL ? result : list_make1(linitial(scans));
}

/* Start the child.  A query that is read backward asks when each scan starts. */
static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	Append	   *append = (Append *) outerPlan(node->ss.ps.plan);
	Append		fewer;

	/* A note has no child, and is never executed. */
	if (append == NULL)
		return;
	fewer = *append;
	if (estate->es_epq_active == NULL &&
		(estate->es_top_eflags &
		 (EXEC_FLAG_EXPLAIN_ONLY | EXEC_FLAG_BACKWARD)) == 0 &&
		estate->es_snapshot != InvalidSnapshot)
	{
		PushActiveSnapshot(estate->es_snapshot);
		fewer.appendplans = leave_scans(append->appendplans, estate);
		PopActiveSnapshot();
	}
	outerPlanState(node) = ExecInitNode((Plan *) &fewer, estate, eflags);

	/* EXPLAIN tells by the list of before how many there are no longer. */
	outerPlanState(node)->plan = (Plan *) append;

	/* The rows are those of the child, in whatever kind of slot. */
	node->ss.ps.resultopsset = true;
	node->ss.ps.resultopsfixed = false;
}

static TupleTableSlot *
execute(CustomScanState *node)
{
	return ExecProcNode(outerPlanState(node));
}

static void
end(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

static void
rescan(CustomScanState *node)
{
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static Node *
create_state(CustomScan *scan)
{
	static const CustomExecMethods methods = {
		.CustomName = "Bloom Filter Partitions",
		.BeginCustomScan = begin,
		.ExecCustomScan = execute,
		.EndCustomScan = end,
		.ReScanCustomScan = rescan
	};
	CustomScanState *state = makeNode(CustomScanState);

	(void) scan;
	state->methods = &methods;
	return (Node *) state;
}
