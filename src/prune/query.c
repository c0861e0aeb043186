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
#include "executor/executor.h"
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
	bool		is_forbidden;	/* if privileges were looked at */
	bool		looked_for_privileges;
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

static bool
is_forbidden_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return !PGBLOOM_IS_PERMITTED((Query *) node) ||
			query_tree_walker((Query *) node, is_forbidden_walker, context, 0);
	return expression_tree_walker(node, is_forbidden_walker, context);
}

/*
 * Does the user lack a privilege for the statement, such as one for the view
 * whose owner may read the table?
 */
static bool
is_forbidden(Statement *statement)
{
	if (!statement->looked_for_privileges)
		statement->is_forbidden = is_forbidden_walker((Node *) statement->query,
													  NULL);
	statement->looked_for_privileges = true;
	return statement->is_forbidden;
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
		!bfp_prunes_already(query, column->varno, conditions, key))
		table->index = find_index(relation, equality);
	table_close(relation, NoLock);
	if (!OidIsValid(table->index) || has_barrier(statement) ||
		is_forbidden(statement) || !bfp_may_ask(table))
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
			bfp_resolve_column(query, (Node *) entry->expr);

		if (column == NULL || ((Var *) column)->varattno <= 0 ||
			exprType(column) != outer->vartype)
			continue;
		result = bfp_append_equality(result, equality, column);
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
	List	   *conditions = bfp_conditions(query);
	List	   *equalities = list_concat(bfp_find_equalities(query, conditions,
															 statement->params),
										 translate_equalities(query, given));
	bool		is_volatile = equalities != NIL &&
		contain_volatile_functions((Node *) query->jointree);
	Index		relation = 0;
	ListCell   *cell;

	equalities = bfp_append_implied(query, conditions, equalities);
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
 * none.  Not for cursors: UPDATE ... WHERE CURRENT OF fails for partitions that
 * are not in the cursor's plan.
 */
Query *
bfp_prune(Query *query, int options, ParamListInfo params, List **tables)
{
	Statement	statement = {0};

	*tables = NIL;
	if (!bfi_asked_by_queries || !ActiveSnapshotSet() || IsParallelWorker() ||
		query->commandType == CMD_UTILITY ||
		(options & CURSOR_OPT_FAST_PLAN) != 0)
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
