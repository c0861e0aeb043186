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

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/*
 * A lookup takes as long as an index scan that costs 10, or 4 for each key of a
 * list.  All lookups before a scan are to spare what they cost, but for 2 % of the
 * scan.  Of a lookup in a btree that finds a row, PostgreSQL expects 8 to 9, or 4
 * if it is one of many.  A sequential scan takes ten times as long as one by an
 * index that costs as much and finds its pages in memory.
 */
#define MIN_COST			10
#define MIN_COST_OF_KEY		4
#define TOLERANCE			0.02
#define WEIGHT_OF_SEQ_SCAN	10

#define LOOKUP_COST			(50 * cpu_operator_cost)
#define LOOKUP_FPP			0.01	/* it finds a key that is not there */

PG_FUNCTION_INFO_V1(bloom_index_gate);

/*
 * bloom_index_gate(index regclass, key "any") returns boolean
 *
 * May a row of the table have the key, or with VARIADIC one of an array?  Only
 * the planner makes calls of it.  True stays so for the execution of a query, in
 * which the key is the same: a subquery may scan the table for each outer row.
 */
Datum
bloom_index_gate(PG_FUNCTION_ARGS)
{
	FuncExpr   *call = (FuncExpr *) fcinfo->flinfo->fn_expr;
	BfiKeys		keys;
	BfiIndex	index;
	bool		result = true;

	if (call == NULL || !IsA(call, FuncExpr) ||
		call->funcformat != BFP_GATE_FORM)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function bloom_index_gate cannot be called in a query"),
				 errdetail("The planner adds it to queries of indexed tables."),
				 errhint("Use bloom_index_contains.")));
	if (fcinfo->flinfo->fn_extra != NULL || !bfi_asked_by_queries)
		PG_RETURN_BOOL(true);
	if (bfi_read_keys(PG_GETARG_DATUM(1),
					  get_fn_expr_argtype(fcinfo->flinfo, 1),
					  call->funcvariadic, PG_GET_COLLATION(), &keys))
	{
		bfi_open_for_query(&index, PG_GETARG_OID(0));
		result = bfi_may_have(&index, &keys);
		bfi_close(&index);
	}
	if (result)
		fcinfo->flinfo->fn_extra = call;
	PG_RETURN_BOOL(result);
}

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
 * Is any part of a key neither a constant nor a parameter of the statement?  To
 * evaluate it, which PostgreSQL might not do, may raise an error.
 */
static bool
is_computed_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind != PARAM_EXTERN;
	if (IsA(node, ArrayExpr) ? ((ArrayExpr *) node)->multidims :
		!IsA(node, Const) && !IsA(node, RelabelType) && !IsA(node, List))
		return true;
	return expression_tree_walker(node, is_computed_walker, context);
}

/* Read a condition as one of a key and a column, or whatever is not a key. */
static bool
read_equality(Node *clause, BfpEquality *equality)
{
	const OpExpr *op = (OpExpr *) clause;
	const ScalarArrayOpExpr *any = (ScalarArrayOpExpr *) clause;
	List	   *sides;

	equality->is_array = IsA(clause, ScalarArrayOpExpr);
	if (equality->is_array ? !any->useOr : !IsA(clause, OpExpr))
		return false;
	sides = equality->is_array ? any->args : op->args;
	equality->operator = equality->is_array ? any->opno : op->opno;
	equality->collation = equality->is_array ? any->inputcollid : op->inputcollid;
	if (list_length(sides) != 2)
		return false;
	equality->column = linitial(sides);
	equality->key = lsecond(sides);
	if (!equality->is_array && !is_computed_walker(equality->column, NULL))
	{
		equality->column = lsecond(sides);
		equality->key = linitial(sides);
	}
	return !is_computed_walker(equality->key, NULL);
}

/*
 * Find the first condition of a table of which an index with keys of this type
 * tells for certain that no row fulfils it.
 */
bool
bfp_find_equality(RelOptInfo *rel, IndexOptInfo *index, Oid key_type,
				  BfpEquality *equality)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);
		Oid			type;

		equality->condition = info;
		if (!read_equality((Node *) info->clause, equality) ||
			!match_index_to_operand(equality->column, 0, index))
			continue;
		type = exprType(equality->key);
		if (equality->is_array)
			type = get_element_type(getBaseType(type));
		if (OidIsValid(type) &&
			bfi_can_look_up(equality->operator, equality->collation, type,
							key_type, index->indexcollations[0]))
			return true;
	}
	return false;
}

/*
 * Could the answer tell somebody about rows that are hidden from him?  So it may
 * in a query with a security barrier, and in one below that.
 */
bool
bfp_has_barrier(PlannerInfo *root)
{
	for (; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->parse->rtable)
		{
			RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);
			AppendRelInfo *info = root->append_rel_array == NULL ? NULL :
				root->append_rel_array[foreach_current_index(cell) + 1];

			/* Partitions come last, and have none of their own. */
			if (info != NULL && planner_rt_fetch(info->parent_relid,
												 root)->rtekind == RTE_RELATION)
				break;
			if (rte->security_barrier || rte->securityQuals != NIL)
				return true;
		}
	}
	return false;
}

/*
 * How many siblings a partition has that are not pruned, at all levels together,
 * with itself.  1 if it is none.
 */
static double
count_siblings(PlannerInfo *root, RelOptInfo *rel)
{
	double		n = 1;

	while ((rel = bfp_table_of(root, rel)) != NULL)
		n *= Max(bms_num_members(rel->live_parts), 1);
	return n;
}

/* What a lookup of so many keys costs, as a scan by an index. */
static Cost
lookup_cost(double keys)
{
	return Max(MIN_COST, MIN_COST_OF_KEY * keys);
}

/* Do lookups spare what they cost if this part of such scans is executed? */
static bool
is_worth_lookups(Cost lookups, Cost scan, double executed)
{
	return lookups <= scan * (1 + TOLERANCE - executed);
}

/*
 * How many rows a partitioned table has of a key of a column, on average, by the
 * statistics that ANALYZE makes of the whole table; 0 if there are none.
 */
static double
rows_of_key(Oid table, AttrNumber column)
{
	HeapTuple	class = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
										Int16GetDatum(column),
										BoolGetDatum(true));
	double		rows = 0;

	if (HeapTupleIsValid(class) && HeapTupleIsValid(tuple))
	{
		Form_pg_statistic statistics = (Form_pg_statistic) GETSTRUCT(tuple);
		double		distinct = statistics->stadistinct;

		rows = distinct == 0 ? 0 : distinct < 0 ? -1 / distinct :
			((Form_pg_class) GETSTRUCT(class))->reltuples / distinct;
		rows *= 1 - statistics->stanullfrac;
	}
	if (HeapTupleIsValid(class))
		ReleaseSysCache(class);
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return rows;
}

/*
 * The part of so many partitions that has a key, at most, and those that seem to:
 * one for each row of a key in the whole table.  All of them if this one is
 * expected to have more rows, of a common key; if there are no statistics of the
 * whole table, as those of a partition do not tell a key of one partition from one
 * that is in each; and for expressions.
 */
static double
part_with_key(PlannerInfo *root, RelOptInfo *rel, const BfpEquality *equality,
			  double keys, double siblings)
{
	Node	   *column = equality->column;
	AttrNumber	number;
	RelOptInfo *top = rel;
	RelOptInfo *above;
	double		rows;

	if (IsA(column, RelabelType))
		column = (Node *) ((RelabelType *) column)->arg;
	number = IsA(column, Var) ? ((Var *) column)->varattno : 0;
	if (siblings == 1 || number <= 0)
		return 1;
	while ((above = bfp_table_of(root, top)) != NULL)
	{
		number = root->append_rel_array[top->relid]->parent_colnos[number - 1];
		top = above;
	}
	rows = rows_of_key(planner_rt_fetch(top->relid, root)->relid, number);
	if (rows <= 0)
		return 1;
	rows = keys * Max(rows, 1);
	return rel->tuples * clause_selectivity(root,
											(Node *) equality->condition, 0,
											JOIN_INNER, NULL) > 1.1 * rows ?
		1 : Min(1, rows / siblings + keys * LOOKUP_FPP);
}

/*
 * What the cheapest scan of a table costs, as one by an index.  0 if there are
 * scans by other extensions, which may return rows of other tables.
 */
static Cost
scan_cost(RelOptInfo *rel, List *paths)
{
	Cost		least = get_float8_infinity();
	ListCell   *cell;

	foreach(cell, paths)
	{
		Path	   *path = lfirst(cell);

		if (path->parent != rel || IsA(path, CustomPath) ||
			IsA(path, ForeignPath))
			return 0;
		least = Min(least, path->total_cost * (path->pathtype == T_SeqScan ?
											   WEIGHT_OF_SEQ_SCAN : 1));
	}
	return least;
}

/* Are the rows of an indexed table in PostgreSQL's heap, and nowhere else? */
static bool
is_plain_table(RangeTblEntry *rte)
{
	Relation	table = table_open(rte->relid, NoLock);
	bool		result = !rte->inh &&
		table->rd_rel->relam == HEAP_TABLE_AM_OID &&
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

/*
 * The function that is called by gates, which is in the schema of the access
 * method's, or InvalidOid.  A query must not fail for want of a privilege that
 * it does not need without gates, so all roles have to be allowed to call it.
 */
static Oid
find_function(Oid access_method)
{
	const Oid	types[] = {REGCLASSOID, ANYOID};
	HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(access_method));
	Oid			schema = get_func_namespace(((Form_pg_am) GETSTRUCT(tuple))->amhandler);
	Oid			function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
										   CStringGetDatum("bloom_index_gate"),
										   PointerGetDatum(buildoidvector(types, 2)),
										   ObjectIdGetDatum(schema));

	ReleaseSysCache(tuple);
	return OidIsValid(function) &&
		PGBLOOM_FUNCTION_ACLCHECK(function, ACL_ID_PUBLIC) == ACLCHECK_OK ?
		function : InvalidOid;
}

/*
 * Why a table that has an index of ours has no gate whatever the conditions
 * are; NULL if it may have one.
 */
static const char *
reason_for_none(PlannerInfo *root, RangeTblEntry *rte, Cost cost,
				double siblings, Oid access_method, Oid *function)
{
	if (bfp_has_barrier(root))
		return "row-level security or a security barrier applies";
	if (!is_worth_lookups(MIN_COST, cost, siblings == 1 ? 1 : 0))
		return "a possible scan is cheap, or that of another extension";
	if (!is_plain_table(rte))
		return "it is not a plain table";
	*function = find_function(access_method);
	return OidIsValid(*function) ? NULL :
		"not every role may execute bloom_index_gate()";
}

/*
 * Add gates to a table whose paths have been made: one for each index of ours
 * that can look up the keys of a condition.
 */
void
bfp_add_gates(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	List	   *indexes = NIL;
	List	   *gates = NIL;
	double		least = 1;
	double		siblings;
	Cost		cost;
	Cost		spent = 0;
	Oid			function;
	const char *reason;
	ListCell   *cell;

	if (!bfi_asked_by_queries || !IS_SIMPLE_REL(rel) ||
		rel->baserestrictinfo == NIL || IS_DUMMY_REL(rel) ||
		(bfp_planning != NULL && bfp_planning->asks_no_index))
		return;
	foreach(cell, rel->indexlist)
	{
		if (bfi_is_bloomfilter(lfirst_node(IndexOptInfo, cell)))
			indexes = lappend(indexes, lfirst(cell));
	}
	if (indexes == NIL)
		return;
	siblings = count_siblings(root, rel);
	cost = scan_cost(rel, rel->partial_pathlist) == 0 ? 0 :
		scan_cost(rel, rel->pathlist);
	reason = reason_for_none(root, rte, cost, siblings,
							 linitial_node(IndexOptInfo, indexes)->relam,
							 &function);
	foreach(cell, reason == NULL ? indexes : NIL)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);
		BfpEquality equality;
		double		keys;
		double		executed;

		if (index->hypothetical ||
			!bfp_find_equality(rel, index,
							   exprType((Node *) linitial_node(TargetEntry, index->indextlist)->expr),
							   &equality) ||
			bfp_has_key(root, rel, index->indexoid, equality.key))
			continue;
		if (index->indpred != NIL && !index->predOK)
		{
			reason = "the predicate of an index is not implied";
			continue;
		}
		keys = equality.is_array ? PGBLOOM_ARRAY_LENGTH(root, equality.key) : 1;
		if (keys > BFI_MAX_KEYS)
		{
			reason = "too many keys";
			continue;
		}
		if (equality.is_array && is_worth_lookups(lookup_cost(keys), cost, 0))
			bfp_list_pays(equality.key);
		executed = part_with_key(root, rel, &equality, keys, siblings);
		if (!is_worth_lookups(spent + lookup_cost(keys), cost, executed))
		{
			reason = "its scan is cheap for so many keys";
			continue;
		}
		spent += lookup_cost(keys);
		gates = lappend(gates,
						make_gate(root, rel, index, &equality, function));
		least = Min(least, executed);
	}

	/* Partitions and children may be many. */
	if (gates == NIL && rel->reloptkind == RELOPT_BASEREL &&
		PGBLOOM_TELLS_OF_PLANS())
		ereport(DEBUG1,
				(errmsg_internal("no index rules out scans of table \"%s\": %s",
								 get_rel_name(rte->relid), reason != NULL ? reason :
								 "no condition compares an indexed column with a key that is known")));
	foreach(cell, gates)
		add_condition(root, rel, lfirst(cell));
	if (least == 1)
		return;
	foreach(cell, list_concat_copy(rel->pathlist, rel->partial_pathlist))
	{
		Path	   *path = lfirst(cell);

		path->startup_cost = path->startup_cost * least + LOOKUP_COST;
		path->total_cost = path->total_cost * least + LOOKUP_COST;
	}
}
