/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Pruning before planning: which partitioned tables of a query are looked
 *	  up by keys that are known, and the conditions that make PostgreSQL open
 *	  only the partitions that may have them.
 *
 * The condition that a row is in one of these partitions is implied by the
 * condition on its key, as long as no other partition has it.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/clauses.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* A statement that is being pruned. */
typedef struct Statement
{
	Query	   *query;
	Query	   *original;		/* NULL as long as it is that */
	ParamListInfo params;
	List	   *tables;			/* BfpTable */
	bool		has_barrier;	/* if it was looked at */
	bool		looked_for_barrier;
} Statement;

static void prune_query(Statement *statement, Query *query, List *given);

static bool
has_barrier_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
		return ((RangeTblEntry *) node)->security_barrier ||
			((RangeTblEntry *) node)->securityQuals != NIL;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_barrier_walker, context,
								 QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, has_barrier_walker, context);
}

/* Could what is planned tell about rows that are hidden from the user? */
static bool
has_barrier(Statement *statement)
{
	if (!statement->looked_for_barrier)
		statement->has_barrier = has_barrier_walker((Node *) statement->query,
													NULL);
	statement->looked_for_barrier = true;
	return statement->has_barrier;
}

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
evaluate_key(Statement *statement, Node *key)
{
	Node	   *value;

	if (!bfp_is_safe_key(NULL, key))
		return NULL;
	value = eval_const_expressions(NULL,
								   replace_parameters(key, statement->params));
	return IsA(value, Const) && !((Const *) value)->constisnull ?
		(Const *) value : NULL;
}

/* Columns of joins are those of the tables, as far as they are the same. */
static Node *
resolve_column(Query *query, Node *node)
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
static List *
append_equality(List *equalities, const BfpEquality *equality, Node *column)
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
static List *
find_equalities(Statement *statement, Query *query, List *conditions)
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
			equality.column = resolve_column(query, equality.column);
			if (equality.column == NULL ||
				((Var *) equality.column)->varattno <= 0)
				continue;
			key = evaluate_key(statement, equality.key);
			if (key == NULL)
				continue;
			equality.key = (Node *) key;
			equalities = append_equality(equalities, &equality,
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
			implied = append_equality(implied, equality, to);
	}
	return list_concat(equalities, implied);
}

/*
 * Append equalities of columns that conditions make equal to one that has an
 * equality, until there are no more.
 */
static List *
append_implied(Query *query, List *conditions, List *equalities)
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
			left = resolve_column(query, join.column);
			right = resolve_column(query, join.key);
			if (left == NULL || right == NULL ||
				exprType(left) != exprType(right) ||
				!bfp_is_equality(&join, exprType(left)))
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
	column = (Var *) resolve_column(columns->query, node);
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
static bool
prunes_already(Query *query, Index relation, List *conditions,
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

/* The partitioned index that can look up the keys, or InvalidOid. */
static Oid
find_index(Relation table, const BfpEquality *equality)
{
	Oid			result = InvalidOid;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(table))
	{
		Relation	index = relation_open(lfirst_oid(cell), AccessShareLock);

		if (bfi_is_open_bloomfilter(index) &&
			index->rd_index->indkey.values[0] ==
			((Var *) equality->column)->varattno &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
			bfp_can_look_up(equality, bfi_key_sql_type(index),
							index->rd_indcollation[0]))
			result = RelationGetRelid(index);
		relation_close(index, AccessShareLock);
		if (OidIsValid(result))
			break;
	}
	return result;
}

/* Add a condition to a query that is being changed from now on. */
static void
add_condition(Query *query, Node *condition)
{
	query->jointree->quals = make_and_qual(query->jointree->quals, condition);
}

/* Prune a table of a query by a key, unless its conditions do already. */
static bool
prune_table(Statement *statement, Query *query, const BfpEquality *equality,
			List *conditions)
{
	Var		   *column = (Var *) equality->column;
	RangeTblEntry *rte = rt_fetch(column->varno, query->rtable);
	Relation	relation = table_open(rte->relid, NoLock);
	PartitionKey key = RelationGetPartitionKey(relation);
	BfpTable   *table = palloc0(sizeof(*table));
	Node	   *bounds = NULL;

	table->table = rte->relid;
	table->column = column->varattno;
	table->user = PGBLOOM_CHECK_AS_USER(query, rte);
	table->is_array = equality->is_array;
	table->key = (Const *) equality->key;
	if (key->partexprs == NIL && !bfi_is_citus_table(relation) &&
		!prunes_already(query, column->varno, conditions, key))
		table->index = find_index(relation, equality);
	table_close(relation, NoLock);
	if (!OidIsValid(table->index) || has_barrier(statement) ||
		!bfp_may_ask(table))
		return false;
	if (bfp_find_leaves(table))
		bounds = bfp_bounds(table, column);
	ereport(DEBUG1,
			(bounds != NULL ?
			 errmsg_internal("index \"%s\" leaves %d of %d partitions of table \"%s\"",
							 get_rel_name(table->index),
							 list_length(table->leaves), table->nleaves,
							 get_rel_name(table->table)) :
			 errmsg_internal("index \"%s\" does not prune table \"%s\" before planning: too many partitions may have the key, or they have no bounds",
							 get_rel_name(table->index),
							 get_rel_name(table->table))));
	if (bounds == NULL)
		return false;
	if (statement->original == NULL)
		statement->original = copyObject(statement->query);
	add_condition(query, bounds);
	statement->tables = lappend(statement->tables, table);
	return true;
}

/*
 * Are rows that lack a key in an output column of no effect on the others?  Then
 * a condition on the column may as well be one inside of the subquery.
 */
static bool
is_transparent(Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL &&
		query->groupClause == NIL && query->groupingSets == NIL &&
		query->havingQual == NULL && !query->hasAggs &&
		!query->hasWindowFuncs && !query->hasTargetSRFs &&
		query->distinctClause == NIL && query->limitCount == NULL &&
		query->limitOffset == NULL && query->rowMarks == NIL &&
		!query->hasModifyingCTE &&
		!contain_volatile_functions((Node *) query->targetList);
}

/* Equalities of output columns of a subquery, as those of columns inside. */
static List *
translate_equalities(Query *query, List *given)
{
	List	   *result = NIL;
	ListCell   *cell;

	if (!is_transparent(query))
		return NIL;
	foreach(cell, given)
	{
		BfpEquality *equality = lfirst(cell);
		Var		   *outer = (Var *) equality->column;
		TargetEntry *entry = get_tle_by_resno(query->targetList,
											  outer->varattno);
		Node	   *column = entry == NULL || entry->resjunk ? NULL :
			resolve_column(query, (Node *) entry->expr);

		if (column == NULL || ((Var *) column)->varattno <= 0 ||
			exprType(column) != outer->vartype)
			continue;
		result = append_equality(result, equality, column);
	}
	return result;
}

/* Those of a list that are of one relation. */
static List *
equalities_of(List *equalities, Index relation)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, equalities)
	{
		BfpEquality *equality = lfirst(cell);

		if (((Var *) equality->column)->varno == (int) relation)
			result = lappend(result, equality);
	}
	return result;
}

static bool
is_union_all(Node *node)
{
	SetOperationStmt *operation = (SetOperationStmt *) node;

	return !IsA(node, SetOperationStmt) ||
		(operation->op == SETOP_UNION && operation->all &&
		 is_union_all(operation->larg) && is_union_all(operation->rarg));
}

/* Prune what a set operation consists of. */
static void
prune_set_operation(Statement *statement, Query *query, List *given)
{
	ListCell   *cell;
	bool		passes = is_union_all(query->setOperations) &&
		query->limitCount == NULL && query->limitOffset == NULL;

	foreach(cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind == RTE_SUBQUERY)
			prune_query(statement, rte->subquery, passes ? given : NIL);
	}
}

/* Prune queries within expressions, and not those of the range table. */
static bool
prune_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		prune_query(context, (Query *) node, NIL);
		return false;
	}
	return expression_tree_walker(node, prune_walker, context);
}

/* Prune the relations of a query by its conditions, and those from outside. */
static void
prune_relations(Statement *statement, Query *query, List *given)
{
	List	   *conditions = append_conditions(NIL, (Node *) query->jointree);
	List	   *equalities = list_concat(find_equalities(statement, query,
														 conditions),
										 translate_equalities(query, given));
	bool		is_volatile = equalities != NIL &&
		contain_volatile_functions((Node *) query->jointree);
	Index		relation = 0;
	ListCell   *cell;

	equalities = append_implied(query, conditions, equalities);
	foreach(cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);
		List	   *of_relation = equalities_of(equalities, ++relation);
		ListCell   *equality;

		if (is_volatile)
			of_relation = NIL;
		if (rte->rtekind == RTE_SUBQUERY)
			prune_query(statement, rte->subquery, of_relation);
		if (rte->rtekind != RTE_RELATION || !rte->inh ||
			rte->relkind != RELKIND_PARTITIONED_TABLE ||
			rte->tablesample != NULL)
			continue;
		foreach(equality, of_relation)
		{
			if (prune_table(statement, query, lfirst(equality), conditions))
				break;
		}
	}
}

/*
 * Prune the tables of a query.  Output columns are compared with keys as given
 * by the query around it.
 */
static void
prune_query(Statement *statement, Query *query, List *given)
{
	ListCell   *cell;

	check_stack_depth();
	if (query->commandType != CMD_SELECT && query->commandType != CMD_UPDATE &&
		query->commandType != CMD_DELETE && query->commandType != CMD_INSERT)
		return;
	if (query->setOperations != NULL)
		prune_set_operation(statement, query, given);
	else
		prune_relations(statement, query, given);
	foreach(cell, query->cteList)
	{
		CommonTableExpr *cte = lfirst_node(CommonTableExpr, cell);

		if (IsA(cte->ctequery, Query))
			prune_query(statement, (Query *) cte->ctequery, NIL);
	}
	if (query->hasSubLinks)
		(void) query_tree_walker(query, prune_walker, statement,
								 QTW_IGNORE_RT_SUBQUERIES |
								 QTW_IGNORE_CTE_SUBQUERIES);
}

/*
 * Prune the partitioned tables of a statement before it is planned.  Returns
 * the statement as it was, and the tables that are pruned; or NULL if there are
 * none.
 */
Query *
bfp_prune(Query *query, ParamListInfo params, List **tables)
{
	Statement	statement = {0};

	*tables = NIL;
	if (!bfp_enabled || !ActiveSnapshotSet() || IsParallelWorker() ||
		query->commandType == CMD_UTILITY)
		return NULL;
	statement.query = query;
	statement.params = params;
	prune_query(&statement, query, NIL);
	if (statement.original != NULL)
	{
		int			probe = bfp_remember_snapshot();
		ListCell   *cell;

		foreach(cell, statement.tables)
			((BfpTable *) lfirst(cell))->probe = probe;
	}
	*tables = statement.tables;
	return statement.original;
}
