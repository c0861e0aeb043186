/*-------------------------------------------------------------------------
 *
 * agg_call.c
 *	  Parameters of an aggregate over keys, without a row.
 *
 * An aggregate over no rows has no state, and its final function gets no
 * arguments.  They are read from the expression of the call in the plan:
 *
 * - An aggregate has its Aggref.  In a plan that combines partial states, that
 *	 has a column of them as its argument, so the Aggref of the partial node is
 *	 looked up.
 * - A window function cannot be told from others of the same node.  All of them
 *	 that have the same final function must have the same arguments.
 *
 * What an argument consists of is the same for all rows of a group: constants,
 * parameters, functions of these that are not volatile, and columns of the
 * GROUP BY clause.  Else it is not known.
 *
 *-------------------------------------------------------------------------
 */
#include "sql/agg.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PGDLLEXPORT extern Datum bloom_agg_transfn(PG_FUNCTION_ARGS);
PGDLLEXPORT extern Datum bloom_agg_hash_transfn(PG_FUNCTION_ARGS);

#define MAX_ARGS	(SEED_ARG + 1)

/* The expression of a call. */
typedef struct CallExpr
{
	List	   *args;			/* key, fpp, expected, seed */
	Oid			key_type;		/* InvalidOid for a hash */
	Oid			collation;
	Agg		   *agg;			/* node to whose input the columns refer */
} CallExpr;

typedef struct GroupContext
{
	AggState   *state;			/* whose groups are finished */
	Agg		   *agg;			/* as in CallExpr */
	bool		known;
} GroupContext;

/*
 * Does this aggregate have one of the transition functions of this library, with
 * its arguments?  A user-defined one with another transition function may have
 * our final function.
 */
static bool
is_over_keys(Oid aggregate, Oid finalfn, bool *hashes)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID,
										ObjectIdGetDatum(aggregate));
	Form_pg_aggregate form;
	FmgrInfo	transfn;
	bool		found = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	if (form->aggfinalfn == finalfn)
	{
		fmgr_info(form->aggtransfn, &transfn);
		*hashes = transfn.fn_addr == bloom_agg_hash_transfn;
		found = *hashes || transfn.fn_addr == bloom_agg_transfn;
	}
	ReleaseSysCache(tuple);
	return found;
}

/* The node from which a node has the columns with this varno; NULL if none. */
static Plan *
input_of(Plan *plan, int varno)
{
	if (varno == INNER_VAR)
		return innerPlan(plan);
	if (varno != OUTER_VAR)
		return NULL;
	if (IsA(plan, Append))
		return linitial(((Append *) plan)->appendplans);
	if (IsA(plan, MergeAppend))
		return linitial(((MergeAppend *) plan)->mergeplans);
	return outerPlan(plan);
}

/*
 * What column attno of a node is in the partial aggregation below it, which is
 * returned in *agg; NULL if it is not found.  There may be joins between them,
 * from PostgreSQL 19 on.
 */
static Expr *
find_partial_column(Plan *plan, AttrNumber attno, Agg **agg)
{
	while (plan != NULL && attno >= 1 &&
		   attno <= list_length(plan->targetlist))
	{
		Expr	   *expr = ((TargetEntry *) list_nth(plan->targetlist,
													 attno - 1))->expr;

		if (IsA(plan, Agg))
		{
			*agg = (Agg *) plan;
			return expr;
		}
		if (!IsA(expr, Var))
			return NULL;
		attno = ((Var *) expr)->varattno;
		plan = input_of(plan, ((Var *) expr)->varno);
	}
	return NULL;
}

/* The expressions of a list of target entries, up to the number of arguments. */
static List *
argument_exprs(List *entries, int n)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, entries)
	{
		if (list_length(result) < n)
			result = lappend(result, ((TargetEntry *) lfirst(cell))->expr);
	}
	return result;
}

/* Find the call of an aggregate. */
static bool
find_agg_call(FunctionCallInfo fcinfo, CallExpr *call)
{
	AggState   *state = (AggState *) fcinfo->context;
	Aggref	   *aggref = AggGetAggref(fcinfo);
	bool		hashes;
	Expr	   *partial;

	if (aggref == NULL ||
		!is_over_keys(aggref->aggfnoid, fcinfo->flinfo->fn_oid, &hashes))
		return false;
	call->key_type = hashes ? InvalidOid : linitial_oid(aggref->aggargtypes);
	call->collation = aggref->inputcollid;
	call->agg = (Agg *) state->ss.ps.plan;
	if (DO_AGGSPLIT_COMBINE(state->aggsplit))
	{
		partial = ((TargetEntry *) linitial(aggref->args))->expr;
		if (IsA(partial, Var))
			partial = find_partial_column(outerPlan(call->agg),
										  ((Var *) partial)->varattno,
										  &call->agg);
		aggref = partial != NULL && IsA(partial, Aggref) ?
			(Aggref *) partial : NULL;
	}
	call->args = aggref == NULL ? NIL :
		argument_exprs(aggref->args, list_length(aggref->aggargtypes));
	return true;
}

/* Find the call of a window function. */
static bool
find_window_call(FunctionCallInfo fcinfo, CallExpr *call)
{
	WindowAggState *state = (WindowAggState *) fcinfo->context;
	bool		found = false;
	ListCell   *cell;

	foreach(cell, state->funcs)
	{
		WindowFunc *function = ((WindowFuncExprState *) lfirst(cell))->wfunc;
		bool		hashes;
		Oid			key_type;

		if (!function->winagg ||
			!is_over_keys(function->winfnoid, fcinfo->flinfo->fn_oid, &hashes))
			continue;
		key_type = hashes ? InvalidOid : exprType(linitial(function->args));
		if (!found)
		{
			call->key_type = key_type;
			call->collation = function->inputcollid;
			call->args = function->args;
			call->agg = NULL;
			found = true;
			continue;
		}
		if (key_type != call->key_type ||
			function->inputcollid != call->collation)
			call->key_type = InvalidOid;
		if (!equal(list_copy_tail(function->args, 1),
				   list_copy_tail(call->args, 1)))
			call->args = NIL;
	}
	return found;
}

/*
 * The column of the input of the groups that is this one in the input of the
 * partial aggregation, if it is one by which rows are grouped, else 0.
 */
static AttrNumber
find_group_column(const GroupContext *context, AttrNumber attno)
{
	Agg		   *agg = (Agg *) context->state->ss.ps.plan;
	int			i;

	/* Of grouping sets, the columns of the one that is finished. */
	if (agg->groupingSets != NIL || agg->chain != NIL)
		return agg == context->agg &&
			bms_is_member(attno, context->state->grouped_cols) ? attno : 0;
	for (i = 0; i < agg->numCols; i++)
	{
		AttrNumber	column = agg->grpColIdx[i];
		Agg		   *partial;
		Expr	   *expr;

		if (agg == context->agg)
		{
			if (column == attno)
				return column;
			continue;
		}
		expr = find_partial_column(outerPlan(agg), column, &partial);
		if (expr != NULL && partial == context->agg && IsA(expr, Var) &&
			((Var *) expr)->varno == OUTER_VAR &&
			((Var *) expr)->varattno == attno)
			return column;
	}
	return 0;
}

/* The value of a column of the GROUP BY clause, or NULL. */
static Node *
read_column(const GroupContext *context, const Var *var)
{
	AttrNumber	column = context->agg == NULL || var->varno != OUTER_VAR ? 0 :
		find_group_column(context, var->varattno);
	TupleTableSlot *slot;
	Datum		value;
	bool		isnull;
	int16		typlen;
	bool		typbyval;

	if (column == 0)
		return NULL;
	slot = context->state->ss.ps.ps_ExprContext->ecxt_outertuple;
	if (TupIsNull(slot))
		return NULL;
	value = slot_getattr(slot, column, &isnull);
	get_typlenbyval(var->vartype, &typlen, &typbyval);
	return (Node *) makeConst(var->vartype, var->vartypmod, var->varcollid,
							  typlen, value, isnull, typbyval);
}

/* Put values of the group in place of columns; *known tells if that is all. */
static Node *
replace_columns(Node *node, void *data)
{
	GroupContext *context = data;
	Node	   *value;

	if (node == NULL)
		return NULL;
	switch (nodeTag(node))
	{
		case T_Var:
			value = read_column(context, (Var *) node);
			context->known &= value != NULL;
			return value == NULL ? node : value;
		case T_Aggref:
		case T_GroupingFunc:
		case T_WindowFunc:
		case T_SubPlan:
		case T_AlternativeSubPlan:
		case T_CurrentOfExpr:
		case T_PlaceHolderVar:
			context->known = false;
			return node;
		default:
			return expression_tree_mutator(node, replace_columns, data);
	}
}

/* Evaluate an argument.  Returns false if it may differ between rows. */
static bool
evaluate_argument(FunctionCallInfo fcinfo, const CallExpr *call, Expr *expr,
				  NullableDatum *result)
{
	ScanState  *state = (ScanState *) fcinfo->context;
	GroupContext context;
	Node	   *replaced;
	ExprState  *program;

	context.state = (AggState *) state;
	context.agg = call->agg;
	context.known = true;
	replaced = replace_columns((Node *) expr, &context);
	if (!context.known || contain_volatile_functions(replaced))
		return false;
	program = ExecInitExpr((Expr *) replaced, NULL);
	result->value = ExecEvalExpr(program, state->ps.ps_ExprContext,
								 &result->isnull);
	return true;
}

static bool
find_call(FunctionCallInfo fcinfo, CallExpr *call)
{
	if (fcinfo->flinfo->fn_expr == NULL)
		return false;
	return IsA(fcinfo->context, AggState) ? find_agg_call(fcinfo, call) :
		find_window_call(fcinfo, call);
}

static bool
read_key_type(const CallExpr *call, BfKeyType *key_type)
{
	PgBloomKeyInfo *info = !OidIsValid(call->key_type) ? NULL :
		pgbloom_make_key_info(call->key_type, call->collation,
							  CurrentMemoryContext, false);

	if (info == NULL)
		return false;
	*key_type = info->key_type;
	return true;
}

/*
 * The key type of the aggregate whose final function this is.  Returns false if
 * that is not known, or cannot be a key.
 */
bool
pgbloom_agg_call_key_type(FunctionCallInfo fcinfo, BfKeyType *key_type)
{
	CallExpr	call;

	return find_call(fcinfo, &call) && read_key_type(&call, key_type);
}

/*
 * Read the parameters, which may be out of range: an error.  Returns false if
 * they are not known; then *unknown tells whether the call has some.
 */
bool
pgbloom_agg_call_params(FunctionCallInfo fcinfo, BfParams *params,
						bool *unknown)
{
	LOCAL_FCINFO(arguments, MAX_ARGS);
	CallExpr	call;
	int			nargs;
	int			i;

	*unknown = false;
	if (!find_call(fcinfo, &call))
		return false;

	nargs = list_length(call.args);
	*unknown = nargs == 0;
	for (i = 1; i < nargs && !*unknown; i++)
		*unknown = !evaluate_argument(fcinfo, &call, list_nth(call.args, i),
									  &arguments->args[FPP_ARG + i - 1]);
	if (*unknown)
		return false;
	arguments->nargs = FPP_ARG + nargs - 1;
	pgbloom_get_params(arguments, FPP_ARG, params);
	(void) read_key_type(&call, &params->key_type);
	return true;
}
