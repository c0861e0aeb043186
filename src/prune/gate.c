/*-------------------------------------------------------------------------
 *
 * gate.c
 *	  Gates: a scan that an index of ours rules out is not executed.
 *
 * The condition "column = key" implies that the index may have the key, so the
 * planner may add that condition.  It does not depend on the row, so PostgreSQL
 * evaluates it once, in a Result node above the scan, before it starts.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/table.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "rewrite/rewriteManip.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/selfuncs.h"

/*
 * The least cost of a scan that has a gate: that of a table by itself, and of
 * one of several partitions or children.  A lookup costs about as much as one
 * in a btree, of which PostgreSQL expects 8 to 9 if it finds a row.  To start the
 * scan costs more than either.
 */
#define MIN_COST			100
#define MIN_COST_OF_CHILD	10

/* What a lookup costs, and how often it finds a key that is not there. */
#define LOOKUP_COST			(50 * cpu_operator_cost)
#define LOOKUP_FPP			0.01


void
bfp_define_setting(void)
{
	DefineCustomBoolVariable("bloomfilter.index_pruning",
							 "Scans of tables and partitions are left out if an index rules out the key.",
							 NULL,
							 &bfi_asked_by_queries, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
}

/*
 * Read a condition as one of a column, or expression, and a key.  Only the
 * order of the sides is told: what they are is for the caller to see.
 */
static bool
read_equality(Node *clause, bool key_first, BfpEquality *equality)
{
	List	   *sides;

	equality->is_array = IsA(clause, ScalarArrayOpExpr);
	if (IsA(clause, OpExpr))
	{
		sides = ((OpExpr *) clause)->args;
		equality->operator = ((OpExpr *) clause)->opno;
		equality->collation = ((OpExpr *) clause)->inputcollid;
	}
	else if (equality->is_array && !key_first &&
			 ((ScalarArrayOpExpr *) clause)->useOr)
	{
		sides = ((ScalarArrayOpExpr *) clause)->args;
		equality->operator = ((ScalarArrayOpExpr *) clause)->opno;
		equality->collation = ((ScalarArrayOpExpr *) clause)->inputcollid;
	}
	else
		return false;
	if (list_length(sides) != 2)
		return false;
	equality->column = list_nth(sides, key_first ? 1 : 0);
	equality->key = list_nth(sides, key_first ? 0 : 1);
	return true;
}

/*
 * Does an index of this key type and collation tell for certain that no row
 * fulfils the condition?
 */
static bool
can_look_up(const BfpEquality *equality, Oid key_type, Oid collation)
{
	Oid			type = exprType(equality->key);

	if (equality->is_array)
		type = get_element_type(getBaseType(type));
	return OidIsValid(type) &&
		bfi_can_look_up(equality->operator, equality->collation, type,
						key_type, collation);
}

/* Is a parameter the column of a row of an outer query? */
static bool
is_outer_column(PlannerInfo *root, int id)
{
	ListCell   *cell;

	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		foreach(cell, root->plan_params)
		{
			PlannerParamItem *item = lfirst(cell);

			if (item->paramId == id)
				return IsA(item->item, Var);
		}
	}
	return false;
}

/*
 * Is a key a constant, a parameter of the statement, or the column of an outer
 * query?  Evaluating another one may raise an error, and it is not sure that
 * PostgreSQL would evaluate it.
 */
static bool
is_given(PlannerInfo *root, Node *key)
{
	ListCell   *cell;

	while (IsA(key, RelabelType))
		key = (Node *) ((RelabelType *) key)->arg;
	if (IsA(key, Param))
		return ((Param *) key)->paramkind == PARAM_EXTERN ||
			(((Param *) key)->paramkind == PARAM_EXEC &&
			 is_outer_column(root, ((Param *) key)->paramid));
	if (!IsA(key, ArrayExpr) || ((ArrayExpr *) key)->multidims)
		return IsA(key, Const);
	foreach(cell, ((ArrayExpr *) key)->elements)
	{
		if (!is_given(root, lfirst(cell)))
			return false;
	}
	return true;
}

/*
 * Find the first condition of a table whose keys are such ones and can be looked
 * up in an index with keys of this type.
 */
bool
bfp_find_equality(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
				  Oid key_type, bool (*is_key) (PlannerInfo *, Node *),
				  BfpEquality *equality)
{
	ListCell   *cell;
	int			side;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		for (side = 0; side < 2; side++)
		{
			if (read_equality((Node *) info->clause, side == 1, equality) &&
				is_key(root, equality->key) &&
				match_index_to_operand(equality->column, 0, index) &&
				can_look_up(equality, key_type, index->indexcollations[0]))
				return true;
		}
	}
	return false;
}

/*
 * Could the answer tell somebody about rows that are hidden from him?  A qual
 * of a security barrier view comes from a query outside of it.
 */
bool
bfp_has_barrier(PlannerInfo *root)
{
	if (root->qual_security_level > 0)
		return true;
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		if (root->qual_security_level > 0)
			return true;
		foreach(cell, root->parse->rtable)
		{
			RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

			if (rte->security_barrier || rte->securityQuals != NIL)
				return true;
		}
	}
	return false;
}

/*
 * Among how many siblings a partition is, at all levels together: those that
 * are not pruned.  1 if it is none.  0 if it is a child by inheritance, or of
 * UNION ALL.
 */
static double
count_siblings(PlannerInfo *root, RelOptInfo *rel)
{
	double		n = 1;
	Index		child = rel->relid;

	while (root->append_rel_array != NULL &&
		   root->append_rel_array[child] != NULL)
	{
		RelOptInfo *parent;

		child = root->append_rel_array[child]->parent_relid;
		parent = root->simple_rel_array[child];
		if (parent == NULL || parent->part_scheme == NULL)
			return 0;
		n *= Max(bms_num_members(parent->live_parts), 1);
	}
	return n;
}

/*
 * The chance that a scan is executed: of several partitions, one has a key that
 * is unique in them.
 */
static double
chance(PlannerInfo *root, RelOptInfo *rel, const BfpEquality *equality,
	   double siblings)
{
	VariableStatData column;
	double		distinct;
	bool		is_default;
	double		keys = equality->is_array ?
		PGBLOOM_ARRAY_LENGTH(root, equality->key) : 1;

	if (siblings <= 1)
		return 1;
	examine_variable(root, equality->column, 0, &column);
	distinct = get_variable_numdistinct(&column, &is_default);
	ReleaseVariableStats(column);
	if (is_default || distinct < 0.9 * rel->tuples)
		return 1;
	return Min(1, keys * (1 / siblings + LOOKUP_FPP));
}

static void
multiply_costs(List *paths, double chance)
{
	ListCell   *cell;

	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		path->startup_cost = path->startup_cost * chance + LOOKUP_COST;
		path->total_cost = path->total_cost * chance + LOOKUP_COST;
	}
}

/*
 * Are all paths scans of the table itself, none cheaper than this?  Those of
 * other extensions may return rows of other tables.
 */
static bool
all_scan_table(RelOptInfo *rel, List *paths, Cost min_cost)
{
	ListCell   *cell;

	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		if (path->parent != rel || IsA(path, CustomPath) ||
			IsA(path, ForeignPath) || path->total_cost < min_cost)
			return false;
	}
	return true;
}

/* Are the rows of a table in PostgreSQL's heap, and nowhere else? */
static bool
is_plain_table(RelOptInfo *rel, RangeTblEntry *rte)
{
	Relation	table;
	bool		result;

	if (rel->rtekind != RTE_RELATION || rte->inh ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
		return false;
	table = table_open(rte->relid, NoLock);
	result = table->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!bfi_is_citus_table(table);
	table_close(table, NoLock);
	return result;
}

static RestrictInfo *
make_gate(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index,
		  const BfpEquality *equality, Oid function)
{
	Const	   *oid = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
								ObjectIdGetDatum(index->indexoid), false, true);
	FuncExpr   *call = makeFuncExpr(function, BOOLOID,
									list_make2(oid, copyObject(equality->key)),
									InvalidOid, index->indexcollations[0],
									BFP_GATE_FORM);

	call->funcvariadic = equality->is_array;
	return PGBLOOM_MAKE_PSEUDOCONSTANT(root, (Expr *) call, rel->relids);
}

/* Add a condition to a table, also where its indexes have lists of their own. */
static void
add_condition(PlannerInfo *root, RelOptInfo *rel, RestrictInfo *condition)
{
	List	   *old = rel->baserestrictinfo;
	ListCell   *cell;

	rel->baserestrictinfo = lappend(list_copy(old), condition);
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		index->indrestrictinfo = index->indrestrictinfo == old ?
			rel->baserestrictinfo :
			lappend(list_copy(index->indrestrictinfo), condition);
	}
	root->hasPseudoConstantQuals = true;
}

static bool
has_index(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		if (bfi_is_bloomfilter(lfirst_node(IndexOptInfo, cell)))
			return true;
	}
	return false;
}

/*
 * Why a table that has an index of ours has no gate whatever the conditions
 * are; NULL if it may have one.
 */
static const char *
reason_for_none(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte,
				double siblings, Oid *function)
{
	if (bfp_has_barrier(root))
		return "row-level security or a security barrier applies";
	if (!is_plain_table(rel, rte))
		return "it is not a plain table";
	if (!all_scan_table(rel, rel->pathlist,
						siblings == 1 ? MIN_COST : 0) ||
		!all_scan_table(rel, rel->partial_pathlist, 0))
		return "its scan is cheap, or that of another extension";
	*function = bfp_gate_function();
	return OidIsValid(*function) ? NULL :
		"not every role may execute bloom_index_gate()";
}

/*
 * Is the gate of a partition asked before the scan is started?  Then it is worth
 * more than a cheap scan, unless each partition has the key.
 */
static bool
is_asked_at_start(Node *key)
{
	return bfp_parameter(key) != NULL && bfp_planning != NULL &&
		bfp_planning->query != NULL;
}

/*
 * Add gates to a table whose paths have been made: one for each index of ours
 * that can look up the keys of a condition.
 */
void
bfp_add_gates(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	List	   *gates = NIL;
	double		least = 1;
	double		siblings;
	bool		is_cheap;
	Oid			function;
	const char *reason;
	ListCell   *cell;

	if (!bfi_asked_by_queries || !IS_SIMPLE_REL(rel) ||
		rel->baserestrictinfo == NIL || IS_DUMMY_REL(rel) || !has_index(rel) ||
		(bfp_planning != NULL && bfp_planning->asks_no_index))
		return;
	siblings = count_siblings(root, rel);
	reason = reason_for_none(root, rel, rte, siblings, &function);
	is_cheap = !all_scan_table(rel, rel->pathlist, MIN_COST_OF_CHILD);
	foreach(cell, reason == NULL ? rel->indexlist : NIL)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);
		BfpEquality equality;
		double		of_index;

		if (!bfi_is_bloomfilter(index) || index->hypothetical ||
			(index->indpred != NIL && !index->predOK) ||
			!bfp_find_equality(root, rel, index,
							   exprType((Node *) linitial_node(TargetEntry, index->indextlist)->expr),
							   is_given, &equality))
			continue;
		of_index = chance(root, rel, &equality, siblings);
		if (is_asked_at_start(equality.key) && !(is_cheap && of_index == 1))
			bfp_planning->asks_at_start = true;
		else if (is_cheap)
			continue;
		gates = lappend(gates,
						make_gate(root, rel, index, &equality, function));
		least = Min(least, of_index);
	}

	/* Partitions and children may be many. */
	if (gates == NIL && rel->reloptkind == RELOPT_BASEREL)
		ereport(DEBUG1,
				(errmsg_internal("no index rules out scans of table \"%s\": %s",
								 get_rel_name(rte->relid), reason != NULL ? reason :
								 "no condition compares an indexed column with a key that is known")));
	foreach(cell, gates)
		add_condition(root, rel, lfirst(cell));
	if (least < 1)
	{
		multiply_costs(rel->pathlist, least);
		multiply_costs(rel->partial_pathlist, least);
	}
}
