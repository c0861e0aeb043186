/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Columns in a statement that is not planned yet, and the keys that its
 *	  conditions compare them with.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

/* Replace parameters whose values the planner would use, too. */
static Node *
replace_parameters(Node *node, void *context)
{
	ParamListInfo params = context;

	if (node != NULL && IsA(node, Param))
	{
		Param	   *param = (Param *) node;
		ParamExternData space;
		ParamExternData *value;
		int16		typlen;
		bool		typbyval;

		if (params == NULL || param->paramkind != PARAM_EXTERN ||
			param->paramid <= 0 || param->paramid > params->numParams)
			return node;
		value = params->paramFetch != NULL ?
			params->paramFetch(params, param->paramid, true, &space) :
			&params->params[param->paramid - 1];
		if (value->ptype != param->paramtype ||
			(value->pflags & PARAM_FLAG_CONST) == 0)
			return node;
		get_typlenbyval(param->paramtype, &typlen, &typbyval);
		return (Node *) makeConst(param->paramtype, param->paramtypmod,
								  param->paramcollid, typlen,
								  value->isnull || typbyval ? value->value :
								  datumCopy(value->value, typbyval, typlen),
								  value->isnull, typbyval);
	}
	return expression_tree_mutator(node, replace_parameters, context);
}

/* The value of a key; NULL if it is not known, or is NULL. */
static Const *
evaluate_key(ParamListInfo params, Node *key)
{
	Node	   *value;

	if (!bfp_is_safe_key(NULL, key))
		return NULL;
	value = eval_const_expressions(NULL,
								   replace_parameters(key, params));
	return IsA(value, Const) && !((Const *) value)->constisnull ?
		(Const *) value : NULL;
}

/* Columns of joins are those of the tables, as far as they are the same. */
Node *
bfp_resolve_column(Query *query, Node *node)
{
	Var		   *outer = NULL;

	for (;;)
	{
		RangeTblEntry *rte;
		Var		   *var;

		while (IsA(node, RelabelType))
			node = (Node *) ((RelabelType *) node)->arg;
		if (!IsA(node, Var) || ((Var *) node)->varlevelsup != 0)
			return NULL;
		var = copyObject((Var *) node);
		if (outer != NULL)
			PGBLOOM_ADD_NULLINGRELS(var, outer);
		rte = rt_fetch(var->varno, query->rtable);
		if (rte->rtekind != RTE_JOIN)
			return (Node *) var;
		if (var->varattno <= 0)
			return NULL;
		outer = var;
		node = list_nth(rte->joinaliasvars, var->varattno - 1);
		if (node == NULL)
			return NULL;
	}
}

/* Append the conditions that all rows of the join tree fulfil. */
static List *
append_conditions(List *conditions, Node *node)
{
	ListCell   *cell;

	if (node == NULL)
		return conditions;
	if (IsA(node, FromExpr))
	{
		foreach(cell, ((FromExpr *) node)->fromlist)
			conditions = append_conditions(conditions, lfirst(cell));
		return append_conditions(conditions, ((FromExpr *) node)->quals);
	}
	if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		if (join->jointype != JOIN_INNER)
			return conditions;
		conditions = append_conditions(conditions, join->larg);
		conditions = append_conditions(conditions, join->rarg);
		return append_conditions(conditions, join->quals);
	}
	if (is_andclause(node))
	{
		foreach(cell, ((BoolExpr *) node)->args)
			conditions = append_conditions(conditions, lfirst(cell));
		return conditions;
	}
	return IsA(node, RangeTblRef) ? conditions : lappend(conditions, node);
}

/* Append an equality, as one of this column, which has the same type. */
List *
bfp_append_equality(List *equalities, const BfpEquality *equality, Node *column)
{
	BfpEquality *copy = palloc(sizeof(*copy));

	*copy = *equality;
	copy->column = column;
	return lappend(equalities, copy);
}

/*
 * The comparisons of a column with a key in conditions.  The column is one of a
 * table, without casts, and the key a constant.
 */
List *
bfp_find_equalities(Query *query, List *conditions, ParamListInfo params)
{
	List	   *equalities = NIL;
	ListCell   *cell;
	int			side;

	foreach(cell, conditions)
	{
		for (side = 0; side < 2; side++)
		{
			BfpEquality equality;
			Const	   *key;

			if (!bfp_read_equality(lfirst(cell), side == 1, &equality))
				continue;
			equality.column = bfp_resolve_column(query, equality.column);
			if (equality.column == NULL ||
				((Var *) equality.column)->varattno <= 0)
				continue;
			key = evaluate_key(params, equality.key);
			if (key == NULL)
				continue;
			equality.key = (Node *) key;
			equalities = bfp_append_equality(equalities, &equality,
											 equality.column);
		}
	}
	return equalities;
}

/* Append an equality for one side of a join, if the other side has it. */
static List *
append_other_side(List *equalities, const BfpEquality *join, Node *from,
				  Node *to)
{
	List	   *implied = NIL;
	ListCell   *cell;

	foreach(cell, equalities)
	{
		BfpEquality *equality = lfirst(cell);

		if (equal(equality->column, to))
			return equalities;
		if (equal(equality->column, from) &&
			equality->collation == join->collation)
			implied = bfp_append_equality(implied, equality, to);
	}
	return list_concat(equalities, implied);
}

/*
 * Append equalities of columns that conditions make equal to one that has an
 * equality, until there are no more.
 */
List *
bfp_append_implied(Query *query, List *conditions, List *equalities)
{
	int			before;
	ListCell   *cell;

	if (equalities == NIL)
		return NIL;
	do
	{
		before = list_length(equalities);
		foreach(cell, conditions)
		{
			BfpEquality join;
			Node	   *left;
			Node	   *right;

			if (!IsA(lfirst(cell), OpExpr) ||
				!bfp_read_equality(lfirst(cell), false, &join))
				continue;
			left = bfp_resolve_column(query, join.column);
			right = bfp_resolve_column(query, join.key);
			if (left == NULL || right == NULL ||
				exprType(left) != exprType(right) ||
				!bfi_is_equality(join.operator, exprType(left)))
				continue;
			equalities = append_other_side(equalities, &join, left, right);
			equalities = append_other_side(equalities, &join, right, left);
		}
	} while (list_length(equalities) > before);
	return equalities;
}

/* What columns an expression has. */
typedef struct Columns
{
	Query	   *query;
	Index		relation;
	PartitionKey key;			/* of the relation */
	bool		has_key;
	bool		has_other;		/* of another relation */
} Columns;

static bool
find_columns_walker(Node *node, void *context)
{
	Columns    *columns = context;
	Var		   *column;
	int			i;

	if (node == NULL)
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, find_columns_walker, context);
	column = (Var *) bfp_resolve_column(columns->query, node);
	if (column == NULL || column->varno != (int) columns->relation)
	{
		columns->has_other = true;
		return false;
	}
	for (i = 0; i < columns->key->partnatts; i++)
		columns->has_key |= columns->key->partattrs[i] == column->varattno;
	return false;
}

/* Does PostgreSQL prune by a condition of a partition key alone? */
bool
bfp_prunes_already(Query *query, Index relation, List *conditions,
				   PartitionKey key)
{
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Columns		columns = {query, relation, key, false, false};

		(void) find_columns_walker(lfirst(cell), &columns);
		if (columns.has_key && !columns.has_other)
			return true;
	}
	return false;
}

/* The conditions that all rows of a query fulfil. */
List *
bfp_conditions(Query *query)
{
	return append_conditions(NIL, (Node *) query->jointree);
}
