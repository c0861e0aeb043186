/*-------------------------------------------------------------------------
 *
 * constraints.c
 *	  Whether the constraints of a table contradict all keys of a filter.
 *
 * The proof is that of PostgreSQL's planner (predtest.c), for the constraints
 * of partitions and CHECK constraints.  Hash partitions have no order; there,
 * the keys are tried one by one while they are listed.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/*
 * The most comparisons of constants by which a scan is proved to be empty: of
 * any table, for each block of it, and of a foreign table.
 */
#define MOST_PROOFS			100
#define PROOFS_PER_BLOCK	4
#define MOST_FOREIGN_PROOFS	10000

static double
most_proofs(Relation relation)
{
	return RELKIND_HAS_STORAGE(relation->rd_rel->relkind) ?
		MOST_PROOFS + PROOFS_PER_BLOCK *
		(double) RelationGetNumberOfBlocks(relation) : MOST_FOREIGN_PROOFS;
}

/*
 * Does the snapshot see this row of a catalog?  Rows that an older snapshot
 * sees may violate a constraint that was added, validated or attached later,
 * also by this transaction, which checks only rows that it would see then.
 */
static bool
snapshot_sees(Snapshot snapshot, int cache, Oid oid)
{
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(oid));
	TransactionId xmin;
	bool		sees;

	if (!HeapTupleIsValid(tuple))
		return false;
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	sees = !TransactionIdIsCurrentTransactionId(xmin) &&
		!XidInMVCCSnapshot(xmin, snapshot);
	ReleaseSysCache(tuple);
	return sees;
}

static bool
snapshot_sees_tables(Snapshot snapshot, List *tables)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		if (!snapshot_sees(snapshot, RELOID, lfirst_oid(lc)))
			return false;
	}
	return true;
}

/* The constraint of a partition of this table, in terms of the table. */
static List *
partition_bound(Relation parent, Oid partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
	List	   *constraint = NIL;
	bool		isnull;
	Datum		bound;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (!isnull)
		constraint = get_qual_from_partbound(parent,
											 stringToNode(TextDatumGetCString(bound)));
	ReleaseSysCache(tuple);
	return constraint;
}

/*
 * The constraints by which the relation is a partition, at all levels up to one
 * that is not for this snapshot.  That of a default partition depends on all
 * other partitions.  rd_partcheck is not used: when another partition is
 * dropped, it stays what it was in the partitions of a default partition.
 *
 * A query of a partition does not lock the tables above it, whose definition
 * is read here, and so does not wait for their locks.
 */
static List *
partition_constraints(Relation relation, Snapshot snapshot)
{
	Oid			table = RelationGetRelid(relation);
	List	   *constraints = NIL;
	List	   *ancestors;

	while (get_rel_relispartition(table) &&
		   (ancestors = get_partition_ancestors(table)) != NIL &&
		   ConditionalLockRelationOid(linitial_oid(ancestors), AccessShareLock))
	{
		Oid			above = linitial_oid(ancestors);
		Relation	parent = relation_open(above, NoLock);
		PartitionDesc parts = RelationGetPartitionDesc(parent, true);
		bool		is_default = get_default_partition_oid(above) == table;
		bool		sees = snapshot_sees(snapshot, RELOID, table);

		/* That of one beside many others takes long to make. */
		if (!is_default || parts->nparts <= most_proofs(relation))
		{
			sees = sees &&
				(!is_default ||
				 snapshot_sees_tables(snapshot,
									  find_inheritance_children(above,
																NoLock)));
			if (sees)
				constraints = list_concat(constraints,
										  map_partition_varattnos(partition_bound(parent,
																				  table),
																  1, relation,
																  parent));
		}
		relation_close(parent, NoLock);
		if (!sees)
			break;
		table = above;
	}
	return constraints;
}

/* Is this a function of a user, and not one in C if these are trusted? */
static bool
is_of_user(Oid function, void *context)
{
	const bool *trust_c = context;

	return function >= FirstNormalObjectId &&
		!(*trust_c && pgbloom_join_is_in_c(function));
}

static bool
calls_user_walker(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, is_of_user, context) ||
		 expression_tree_walker(node, calls_user_walker, context));
}

/*
 * Without rows, a CHECK constraint may have an expression that always fails.
 */
static bool
is_empty(Relation relation)
{
	return RELKIND_HAS_STORAGE(relation->rd_rel->relkind) &&
		RelationGetNumberOfBlocks(relation) == 0;
}

/* Is this a CHECK constraint that PostgreSQL never evaluates, and may fail? */
static bool
fails_unnoticed(Relation relation, Node *check)
{
	return !RELKIND_HAS_STORAGE(relation->rd_rel->relkind) &&
		pgbloom_join_may_fail((Expr *) check);
}

/*
 * The constraints of the relation that all rows satisfy which the snapshot
 * sees, with Vars of varno 1.  One with a function of a user is left out: it
 * would be called for constants, and may fail or be forbidden to the user.
 * Those of partition keys that are in C are trusted.  A CHECK constraint that is
 * not valid, or whose functions are not immutable, is left out, too.
 */
static List *
relation_constraints(Relation relation, Snapshot snapshot)
{
	TupleConstr *constr = RelationGetDescr(relation)->constr;
	List	   *constraints = NIL;
	bool		trust_c = true;
	ListCell   *lc;
	int			i;

	foreach(lc, partition_constraints(relation, snapshot))
	{
		if (!calls_user_walker(lfirst(lc), &trust_c))
			constraints = lappend(constraints, lfirst(lc));
	}
	trust_c = false;
	if (constr == NULL || is_empty(relation))
		return constraints;
	for (i = 0; i < constr->num_check; i++)
	{
		Node	   *check;

		if (!constr->check[i].ccvalid ||
			!snapshot_sees(snapshot, CONSTROID,
						   get_relation_constraint_oid(RelationGetRelid(relation),
													   constr->check[i].ccname,
													   true)))
			continue;
		check = stringToNode(constr->check[i].ccbin);
		if (calls_user_walker(check, &trust_c) ||
			fails_unnoticed(relation, check))
			continue;
		check = eval_const_expressions(NULL, check);
		if (contain_mutable_functions(check))
			continue;
		check = (Node *) canonicalize_qual((Expr *) check, true);
		constraints = list_concat(constraints,
								  make_ands_implicit((Expr *) check));
	}
	return constraints;
}

bool
pgbloom_join_has_constraints(Relation relation)
{
	TupleConstr *constr = RelationGetDescr(relation)->constr;

	return relation->rd_rel->relispartition ||
		(constr != NULL && constr->num_check > 0);
}

/*
 * Are keys that the join takes for equal in the same hash partition, by a
 * function that does not fail?
 */
static bool
hash_partition_agrees(const Const *parent, const PgBloomJoinRange *range)
{
	Relation	relation = relation_open(DatumGetObjectId(parent->constvalue),
										 AccessShareLock);
	PartitionKey by = RelationGetPartitionKey(relation);
	bool		agrees = pgbloom_join_is_in_c(by->partsupfunc[0].fn_oid) &&
		pgbloom_join_range_equal_in(range, by->partopfamily[0],
									by->partcollation[0]);

	relation_close(relation, AccessShareLock);
	return agrees;
}

/* Is it certain that a hash partition has none of the keys? */
static bool
hash_partition_refuted(FuncExpr *call, Expr *key,
					   const PgBloomJoinRange *range)
{
	List	   *values;
	ListCell   *lc;

	if (!IsA(call, FuncExpr) || call->funcid != F_SATISFIES_HASH_PARTITION ||
		list_length(call->args) != 4 ||
		!equal(pgbloom_join_strip_relabel(lfourth(call->args)),
			   pgbloom_join_strip_relabel(key)))
		return false;
	values = pgbloom_join_range_consts(range);
	if (values == NIL ||
		exprType((Node *) key) != exprType(linitial(values)) ||
		!hash_partition_agrees(linitial(call->args), range))
		return false;
	foreach(lc, values)
	{
		FuncExpr   *with_value = copyObject(call);
		Const	   *result;

		/* Of the partition key's own type, which may be varchar. */
		lfirst_node(Const, lc)->consttype = exprType(lfourth(call->args));
		lfirst(list_nth_cell(with_value->args, 3)) = lfirst(lc);
		result = (Const *) eval_const_expressions(NULL, (Node *) with_value);
		if (!IsA(result, Const) || result->constisnull ||
			DatumGetBool(result->constvalue))
			return false;
	}
	return true;
}

/* Add up the constants of an expression, and the elements of arrays. */
static bool
count_constants_walker(Node *node, void *context)
{
	const Const *constant = (const Const *) node;
	double	   *n = context;

	if (node == NULL)
		return false;
	if (!IsA(node, Const))
		return expression_tree_walker(node, count_constants_walker, context);
	if (!constant->constisnull && type_is_array(constant->consttype))
	{
		ArrayType  *array = DatumGetArrayTypeP(constant->constvalue);

		*n += ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	}
	else
		*n += 1;
	return false;
}

/*
 * Do the constraints contradict these conditions?  Each constant of the ones is
 * compared with each of the others, in about a microsecond, so that a proof may
 * take longer than the scan.  A query of another server takes longer in any case.
 */
static bool
is_refuted(Relation relation, List *constraints, List *conditions)
{
	double		theirs = 0;
	double		ours = 0;

	count_constants_walker((Node *) constraints, &theirs);
	count_constants_walker((Node *) conditions, &ours);
	return theirs * ours <= most_proofs(relation) &&
		predicate_refuted_by(constraints, conditions, false);
}

/*
 * Do the constraints of the relation contradict all keys of the filter?  keys
 * are those of the relation, or NULL for one that is not among its columns.
 */
bool
pgbloom_join_constraints_refute(Relation relation, Snapshot snapshot,
								const PgBloomJoinFilter *filter, List *keys)
{
	List	   *constraints = relation_constraints(relation, snapshot);
	List	   *bounds = NIL;
	List	   *lists = NIL;
	ListCell   *lc;
	int			i;

	for (i = 0; i < filter->nkeys; i++)
	{
		const PgBloomJoinRange *range = filter->ranges[i];
		Expr	   *key = list_nth(keys, i);
		Expr	   *list;

		if (pgbloom_join_range_is_empty(range))
			return true;
		if (key == NULL)
			continue;
		foreach(lc, constraints)
		{
			if (hash_partition_refuted(lfirst(lc), key, range))
				return true;
		}
		bounds = list_concat(bounds, pgbloom_join_range_bounds(range, key));
		list = pgbloom_join_range_list(range, key);
		if (list != NULL)
			lists = lappend(lists, list);
	}
	return is_refuted(relation, constraints, bounds) ||
		is_refuted(relation, constraints, lists);
}
