/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Pruning of a partitioned table that is looked up by keys which the planner
 *	  knows, before it opens the partitions.
 *
 * When the planner begins with a table, it has simplified the conditions, has
 * put the values of parameters into them, and has pulled up subqueries.  So here
 * is the place where a condition for the table can be added by which PostgreSQL
 * prunes: that a row is in one of the leaves that may have a key.  It is implied
 * by the condition on the key, as long as no other leaf has one.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_index.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

/* The condition by which a table is pruned: fdw_private of its RelOptInfo. */
typedef struct Condition
{
	List	   *clauses;		/* or what it becomes in a partition */
	List	   *all;			/* conditions of the table */
	List	   *rest;			/* those without it */
} Condition;

/* A column of a table that is to be compared with a key. */
typedef struct Search
{
	Index		relation;
	AttrNumber	column;
	BfpEquality equality;		/* that is found, with a constant key */
	Node	  **quals;			/* of the query, where its condition is */
	List	   *conditions;		/* that hold there */
} Search;

static bool
is_column(Node *node, int relation, AttrNumber column)
{
	while (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Var) && ((Var *) node)->varlevelsup == 0 &&
		((Var *) node)->varno == relation &&
		((Var *) node)->varattno == column && !PGBLOOM_IS_NULLABLE(node);
}

/*
 * Find a comparison of a column with a constant, or with a column that is
 * compared with one by other conditions.  Those that have been tried are
 * removed from the list.
 */
static bool
find_equality(List **conditions, int relation, AttrNumber column,
			  BfpEquality *equality)
{
	List	   *all = *conditions;
	ListCell   *cell;
	int			side;

	foreach(cell, all)
	{
		for (side = 0; side < 2; side++)
		{
			BfpEquality join;
			Var		   *other;

			if (!list_member_ptr(*conditions, lfirst(cell)) ||
				!bfp_read_equality(lfirst(cell), side == 1, equality) ||
				!is_column(equality->column, relation, column))
				continue;
			*conditions = list_delete_ptr(list_copy(*conditions), lfirst(cell));
			if (IsA(equality->key, Const) &&
				!((Const *) equality->key)->constisnull)
				return true;
			join = *equality;
			for (other = (Var *) join.key; IsA(other, RelabelType);)
				other = (Var *) ((RelabelType *) other)->arg;
			if (IsA(other, Var) && other->varlevelsup == 0 && !join.is_array &&
				bfi_is_equality(join.operator, other->vartype) &&
				find_equality(conditions, other->varno, other->varattno,
							  equality) &&
				equality->collation == join.collation &&
				exprType(equality->column) == exprType(join.column))
				return true;
		}
	}
	return false;
}

/*
 * Is there an equality of the column among these conditions?  Those from above
 * hold for all rows of the result, and equalities are strict, so it is there
 * for rows of outer joins, too.
 */
static void
search_quals(Search *search, Node **quals, List *above)
{
	List	   *conditions = list_concat_copy((List *) *quals, above);
	List	   *left = conditions;

	if (search->quals != NULL ||
		!find_equality(&left, search->relation, search->column,
					   &search->equality))
		return;
	search->quals = quals;
	search->conditions = conditions;
}

/*
 * Search conditions of joins that apply to the relation, those next to it first.
 * Returns false if it is not in this part of the join tree.
 */
static bool
search_join_tree(Search *search, Node *node, List *above)
{
	if (IsA(node, RangeTblRef))
		return ((RangeTblRef *) node)->rtindex == (int) search->relation;
	if (IsA(node, FromExpr))
	{
		FromExpr   *from = (FromExpr *) node;
		List	   *conditions = list_concat_copy((List *) from->quals, above);
		ListCell   *cell;

		foreach(cell, from->fromlist)
		{
			if (search_join_tree(search, lfirst(cell), conditions))
			{
				search_quals(search, &from->quals, above);
				return true;
			}
		}
		return false;
	}
	else
	{
		JoinExpr   *join = castNode(JoinExpr, node);
		bool		is_inner = join->jointype == JOIN_INNER;
		List	   *conditions = is_inner ?
			list_concat_copy((List *) join->quals, above) : above;
		bool		is_left = search_join_tree(search, join->larg, conditions);

		if (!is_left && !search_join_tree(search, join->rarg, conditions))
			return false;
		if (is_inner || (!is_left && join->jointype != JOIN_FULL))
			search_quals(search, &join->quals, above);
		return true;
	}
}

/* Does PostgreSQL itself leave so few partitions that nobody need be asked? */
static bool
is_pruned_already(RelOptInfo *rel, List *conditions)
{
	int			nleft = bfp_count_left(rel, conditions);

	return nleft < rel->nparts && nleft <= BFP_MAX_LEAVES;
}

/*
 * Which leaves of a table may have a key, by an index that is asked once for a
 * statement?  NULL if they are too many.
 */
static BfpTable *
ask_index(Oid index, const BfpEquality *equality)
{
	BfpTable   *table;
	ListCell   *cell;

	foreach(cell, bfp_planning->tables)
	{
		table = lfirst(cell);
		if (table->index == index && equal(table->key, equality->key) &&
			table->is_array == equality->is_array)
			return table;
	}
	table = palloc0(sizeof(*table));
	table->index = index;
	table->key = copyObject((Const *) equality->key);
	table->is_array = equality->is_array;
	return bfp_find_leaves(table) ? table : NULL;
}

/*
 * Prune a table by a column of this index, and add the condition to its place in
 * the join tree.  Returns false if it is of no use.
 */
static bool
prune_by_index(PlannerInfo *root, RelOptInfo *rel, Node *join_tree,
			   Relation relation, Relation index)
{
	Search		search = {
		.relation = rel->relid,
		.column = index->rd_index->indkey.values[0]
	};
	MemoryContext old_context;
	BfpTable   *table;
	Expr	   *bounds = NULL;

	if (search.column <= 0 ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	(void) search_join_tree(&search, join_tree, NIL);
	if (search.quals == NULL ||
		!bfp_can_look_up(&search.equality, bfi_key_sql_type(index),
						 index->rd_indcollation[0]) ||
		is_pruned_already(rel, search.conditions))
		return false;
	old_context = MemoryContextSwitchTo(bfp_planning->context);
	table = ask_index(RelationGetRelid(index), &search.equality);
	if (table != NULL)
		bounds = bfp_bounds(root, rel, relation, table->leaves);
	if (bounds != NULL)
		bfp_planning->tables = list_append_unique_ptr(bfp_planning->tables,
													  table);
	MemoryContextSwitchTo(old_context);
	ereport(DEBUG1,
			(bounds != NULL ?
			 errmsg_internal("index \"%s\" leaves %d of %d partitions of table \"%s\"",
							 RelationGetRelationName(index),
							 list_length(table->leaves), table->nleaves,
							 RelationGetRelationName(relation)) :
			 errmsg_internal("index \"%s\" does not prune table \"%s\" before planning: too many partitions may have the key, or they have no bounds",
							 RelationGetRelationName(index),
							 RelationGetRelationName(relation))));
	if (bounds == NULL)
		return false;
	if (table->leaves == NIL)
		rel->nparts = 0;
	else
	{
		Condition  *condition = palloc0(sizeof(*condition));

		condition->clauses = list_make1(bounds);
		rel->fdw_private = condition;
		*search.quals = (Node *) lappend(list_copy((List *) *search.quals),
										 bounds);
	}
	return true;
}

static void
prune_table(PlannerInfo *root, RelOptInfo *rel, Oid table, Node *join_tree)
{
	Relation	relation = table_open(table, NoLock);
	bool		done = bfi_is_citus_table(relation);
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(relation))
	{
		Relation	index;

		if (done)
			break;
		index = relation_open(lfirst_oid(cell), AccessShareLock);
		done = bfi_is_open_bloomfilter(index) &&
			prune_by_index(root, rel, join_tree, relation, index);
		relation_close(index, AccessShareLock);
	}
	table_close(relation, NoLock);
}

/*
 * Prune a table that is an arm of UNION ALL.  It is about to get the conditions of
 * that, and those of a security barrier of its own, of which it has none.
 */
static void
prune_arm(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte,
		  RelOptInfo *parent, AppendRelInfo *info)
{
	RangeTblRef *reference = makeNode(RangeTblRef);
	Node	   *quals = (Node *) extract_actual_clauses(parent->baserestrictinfo,
														false);
	FromExpr   *from = makeFromExpr(list_make1(reference),
									eval_const_expressions(root, adjust_appendrel_attrs(root, quals, 1, &info)));
	Condition  *condition;

	reference->rtindex = rel->relid;
	prune_table(root, rel, rte->relid, (Node *) from);
	condition = rel->fdw_private;
	if (condition == NULL)
		return;
	if (bfp_count_left(rel, (List *) from->quals) == 0)
	{
		rel->nparts = 0;
		return;
	}
	rte->securityQuals = list_make1(condition->clauses);
	root->qual_security_level = 1;
}

static List *
without_clauses(List *conditions, List *clauses)
{
	List	   *rest = NIL;
	ListCell   *cell;

	foreach(cell, conditions)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (!list_member(clauses, info->clause))
			rest = lappend(rest, info);
	}
	return rest;
}

/*
 * A partition is about to get the conditions of its table.  The one by which
 * that was pruned is for partitions that are pruned, too.  Others need not
 * evaluate it for their rows, nor take it for one that leaves few of them.
 */
static void
pass_conditions(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *table,
				AppendRelInfo *info)
{
	Condition  *condition = table->fdw_private;

	if (condition == NULL)
		return;

	/* An arm of UNION ALL has its condition by now. */
	root->simple_rte_array[table->relid]->securityQuals = NIL;
	root->qual_security_level = 0;
	if (condition->all == NIL)
	{
		condition->all = table->baserestrictinfo;
		condition->rest = without_clauses(condition->all, condition->clauses);
	}
	table->baserestrictinfo = condition->rest;
	if (rel->part_scheme != NULL)
	{
		Node	   *clause = adjust_appendrel_attrs(root, (Node *) make_ands_explicit(condition->clauses),
													1, &info);

		table->baserestrictinfo = condition->all;
		condition = palloc0(sizeof(*condition));
		condition->clauses = make_ands_implicit((Expr *)
												eval_const_expressions(root, clause));
		rel->fdw_private = condition;
	}
}

/*
 * Does whoever executes the query lack a privilege for it, or for the view whose
 * owner may read the table?  PostgreSQL checks this when the query is executed,
 * which is later than the index is asked.
 */
static bool
is_forbidden(PlannerInfo *root)
{
	while (root != NULL && bfp_is_permitted(root->parse, NULL))
		root = root->parent_root;
	return root != NULL;
}

/* The planner begins with a relation, of which it knows what catalogs say. */
void
bfp_prune_relation(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	AppendRelInfo *info = root->append_rel_array == NULL ? NULL :
		root->append_rel_array[rel->relid];
	RelOptInfo *parent = info == NULL ? NULL :
		root->simple_rel_array[info->parent_relid];

	if (bfp_planning == NULL || bfp_planning->query == NULL ||
		rte->rtekind != RTE_RELATION)
		return;
	if (parent != NULL && parent->part_scheme != NULL)
		pass_conditions(root, rel, parent, info);
	else if (rel->part_scheme == NULL || rel->nparts == 0 ||
			 rel->part_scheme->strategy == PARTITION_STRATEGY_HASH ||
			 !enable_partition_pruning || bfp_has_barrier(root) ||
			 is_forbidden(root))
		return;
	else if (parent == NULL)
		prune_table(root, rel, rte->relid, (Node *) root->parse->jointree);
	else if (parent->rtekind == RTE_SUBQUERY)
		prune_arm(root, rel, rte, parent, info);
}
