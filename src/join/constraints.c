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

#include "access/detoast.h"
#include "access/relation.h"
#include "access/sysattr.h"
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
 * any table, for each block of it, and of a foreign table, which takes longer
 * to ask.  TEXT_OF_PROOF is the number of bytes of a constraint's text that take
 * as long to parse as one comparison.
 */
#define MOST_PROOFS			100
#define PROOFS_PER_BLOCK	4
#define MOST_FOREIGN_PROOFS	10000
#define TEXT_OF_PROOF		32

/* A smaller table is read at once. */
#define MIN_BLOCKS			8

/* What takes as long as so many comparisons */
#define PROOFS_OF_HASH		2	/* a key in a hash partition */
#define PROOFS_OF_SIBLING	10	/* the bound of another partition */

static double
most_proofs(Relation relation)
{
	return RELKIND_HAS_STORAGE(relation->rd_rel->relkind) ?
		MOST_PROOFS + PROOFS_PER_BLOCK *
		(double) RelationGetNumberOfBlocks(relation) : MOST_FOREIGN_PROOFS;
}

/* The longest text of a constraint that is read. */
static double
longest_text(Relation relation)
{
	return TEXT_OF_PROOF * most_proofs(relation);
}

/*
 * Does the snapshot see this row of a catalog?  Rows that an older snapshot
 * sees may violate a constraint that was added, validated or attached later,
 * also by this transaction, which checks only rows that it would see then.
 */
static bool
snapshot_sees_row(Snapshot snapshot, int cache, Oid oid)
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
		if (!snapshot_sees_row(snapshot, RELOID, lfirst_oid(lc)))
			return false;
	}
	return true;
}

/* The constraint by which a table is a partition, in terms of the relation. */
static List *
partition_bound(Relation relation, Relation parent, Oid partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
	PartitionBoundSpec *spec = NULL;
	bool		isnull;
	Datum		bound;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	if (!isnull && toast_raw_datum_size(bound) <= longest_text(relation))
		spec = stringToNode(TextDatumGetCString(bound));
	ReleaseSysCache(tuple);
	return spec == NULL ? NIL :
		map_partition_varattnos(get_qual_from_partbound(parent, spec), 1,
								relation, parent);
}

/* Does the constraint of a default partition hold, and not take long to make? */
static bool
can_use_default(Relation relation, Relation parent, Snapshot snapshot)
{
	return RelationGetPartitionDesc(parent, true)->boundinfo->ndatums *
		PROOFS_OF_SIBLING <= most_proofs(relation) &&
		snapshot_sees_tables(snapshot,
							 find_inheritance_children(RelationGetRelid(parent),
													   NoLock));
}

/*
 * The constraints by which the relation is a partition, at all levels up to one
 * that is not for this snapshot.  That of a default partition depends on all
 * other partitions.  rd_partcheck is not used: when another partition is
 * dropped, it stays what it was in the partitions of a default partition.
 *
 * A query of a partition does not lock the tables above it, whose definition
 * is read here.  So this does not wait for their locks, and *locked receives
 * those that are to be unlocked.
 */
static List *
partition_constraints(Relation relation, Snapshot snapshot, List **locked)
{
	Oid			table = RelationGetRelid(relation);
	List	   *constraints = NIL;
	List	   *ancestors;

	while (get_rel_relispartition(table) &&
		   (ancestors = get_partition_ancestors(table)) != NIL &&
		   ConditionalLockRelationOid(linitial_oid(ancestors), AccessShareLock))
	{
		Oid			above = linitial_oid(ancestors);
		Relation	parent = try_relation_open(above, NoLock);

		*locked = lappend_oid(*locked, above);
		if (parent == NULL)
			break;

		/* It may have been attached to another table before the lock. */
		ancestors = get_partition_ancestors(table);
		if (ancestors == NIL || linitial_oid(ancestors) != above ||
			!snapshot_sees_row(snapshot, RELOID, table))
		{
			relation_close(parent, NoLock);
			break;
		}
		if (get_default_partition_oid(above) != table ||
			can_use_default(relation, parent, snapshot))
			constraints = list_concat(constraints,
									  partition_bound(relation, parent, table));
		relation_close(parent, NoLock);
		table = above;
	}
	return constraints;
}

/*
 * Is this a function of a user, or one that not every role may call?  In the
 * constraint of a partition, those in C are trusted.  A CHECK constraint that
 * calls satisfies_hash_partition() was written by a user, with any arguments.
 */
static bool
is_not_trusted(Oid function, void *context)
{
	const bool *of_partition = context;
	bool		of_user = function >= FirstNormalObjectId;

	return (*of_partition ? of_user && !pgbloom_join_is_in_c(function) :
			of_user || function == F_SATISFIES_HASH_PARTITION) ||
		!pgbloom_join_is_public(function);
}

static bool
is_not_trusted_walker(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, is_not_trusted, context) ||
		 expression_tree_walker(node, is_not_trusted_walker, context));
}

/*
 * Does the expression depend on a setting, or could a part of it that has no
 * columns raise an error?  Some functions that are declared immutable do, such
 * as float8out().  PostgreSQL may never have evaluated it, or under other
 * settings.
 */
static bool
constraint_may_fail_walker(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, CoerceViaIO))
		return true;
	if (!contain_var_clause(node))
		return pgbloom_join_may_fail((Expr *) node);
	return expression_tree_walker(node, constraint_may_fail_walker, context);
}

/*
 * The constraints of the relation that all rows satisfy which the snapshot
 * sees, with Vars of varno 1.  One with a function of a user is left out: it
 * would be called for constants, and may fail or be forbidden to the user.
 * Those of partition keys that are in C are trusted.  A CHECK constraint that is
 * not valid, or whose functions are not immutable, is left out, too.
 */
static List *
relation_constraints(Relation relation, Snapshot snapshot, List **locked)
{
	TupleConstr *constr = RelationGetDescr(relation)->constr;
	List	   *constraints = NIL;
	bool		of_partition = true;
	ListCell   *lc;
	int			i;

	foreach(lc, partition_constraints(relation, snapshot, locked))
	{
		if (!is_not_trusted_walker(lfirst(lc), &of_partition) &&
			!constraint_may_fail_walker(lfirst(lc), NULL))
			constraints = lappend(constraints, lfirst(lc));
	}
	of_partition = false;
	for (i = 0; constr != NULL && i < constr->num_check; i++)
	{
		Node	   *check;

		if (!constr->check[i].ccvalid ||
			strlen(constr->check[i].ccbin) > longest_text(relation) ||
			!snapshot_sees_row(snapshot, CONSTROID,
							   get_relation_constraint_oid(RelationGetRelid(relation),
														   constr->check[i].ccname,
														   true)))
			continue;
		check = stringToNode(constr->check[i].ccbin);
		if (is_not_trusted_walker(check, &of_partition) ||
			constraint_may_fail_walker(check, NULL))
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

/* What comes before the number of a column in the text of an expression. */
#define COLUMN_LABEL	":varattno "

/*
 * May a constraint of the relation contradict keys of these columns?  Does any
 * have one of them?  Those of partitions have, for the most part.  The text of an
 * expression is not parsed, as that may take longer than the query.
 */
bool
pgbloom_join_are_constrained(Relation relation, const Bitmapset *columns)
{
	TupleConstr *constr = RelationGetDescr(relation)->constr;
	bool		found = relation->rd_rel->relispartition;
	int			i;

	for (i = 0; !found && constr != NULL && i < constr->num_check; i++)
	{
		const char *text = constr->check[i].ccbin;

		while (!found && (text = strstr(text, COLUMN_LABEL)) != NULL)
		{
			text += strlen(COLUMN_LABEL);
			found = bms_is_member(atoi(text) - FirstLowInvalidHeapAttributeNumber,
								  columns);
		}
	}
	return found;
}

/*
 * Is it certain that a hash partition has none of the keys?  Keys that the join
 * takes for equal must be in the same one, by a function that does not fail.
 */
static bool
hash_partition_refuted(Relation relation, FuncExpr *call, Expr *key,
					   const PgBloomJoinRange *range)
{
	List	   *values = pgbloom_join_range_consts(range);
	Relation	parent;
	PartitionKey by;
	uint64		modulus,
				remainder;
	bool		refuted;
	ListCell   *lc;

	if (!IsA(call, FuncExpr) || call->funcid != F_SATISFIES_HASH_PARTITION ||
		list_length(call->args) != 4 ||
		!equal(pgbloom_join_strip_relabel(lfourth(call->args)),
			   pgbloom_join_strip_relabel(key)) ||
		values == NIL ||
		exprType((Node *) key) != exprType(linitial(values)) ||
		list_length(values) * PROOFS_OF_HASH > most_proofs(relation))
		return false;

	/* It is locked, as it is an ancestor of the relation. */
	parent = relation_open(DatumGetObjectId(linitial_node(Const, call->args)->constvalue),
						   NoLock);
	by = RelationGetPartitionKey(parent);
	modulus = DatumGetInt32(lsecond_node(Const, call->args)->constvalue);
	remainder = DatumGetInt32(lthird_node(Const, call->args)->constvalue);
	refuted = pgbloom_join_is_in_c(by->partsupfunc[0].fn_oid) &&
		pgbloom_join_range_equal_in(range, by->partopfamily[0],
									by->partcollation[0]);
	foreach(lc, values)
	{
		bool		isnull = false;

		refuted = refuted &&
			compute_partition_hash_value(1, by->partsupfunc, by->partcollation,
										 &lfirst_node(Const, lc)->constvalue,
										 &isnull) % modulus != remainder;
	}
	relation_close(parent, NoLock);
	return refuted;
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
 * Do the constraints of the relation contradict all keys of the filter?  keys
 * are those of the relation, or NULL for one that is not among its columns.
 *
 * A small relation is read faster than it is proved to be empty.  Each constant
 * of the constraints is compared with each key, in about a microsecond, so that
 * a proof may take longer than the scan.
 */
bool
pgbloom_join_constraints_refute(Relation relation, Snapshot snapshot,
								const PgBloomJoinFilter *filter, List *keys)
{
	double		most = most_proofs(relation);
	double		nconstants = 0;
	List	   *locked = NIL;
	List	   *constraints;
	List	   *bounds = NIL;
	List	   *lists = NIL;
	bool		refuted = false;
	ListCell   *lc;
	int			i;

	if (RELKIND_HAS_STORAGE(relation->rd_rel->relkind) &&
		RelationGetNumberOfBlocks(relation) <
		(pgbloom_join_filters == PGBLOOM_JOIN_FORCE ? 1 : MIN_BLOCKS))
		return false;
	constraints = relation_constraints(relation, snapshot, &locked);
	count_constants_walker((Node *) constraints, &nconstants);
	for (i = 0; i < filter->nkeys && !refuted; i++)
	{
		const PgBloomJoinRange *range = filter->ranges[i];
		Expr	   *key = list_nth(keys, i);
		Expr	   *list;

		refuted = pgbloom_join_range_is_empty(range);
		if (key == NULL)
			continue;
		foreach(lc, constraints)
			refuted |= hash_partition_refuted(relation, lfirst(lc), key, range);
		bounds = list_concat(bounds, pgbloom_join_range_bounds(range, key));
		list = pgbloom_join_range_list(range, key, most / nconstants);
		if (list != NULL)
			lists = lappend(lists, list);
	}
	refuted = refuted ||
		(list_length(bounds) * nconstants <= most &&
		 predicate_refuted_by(constraints, bounds, false)) ||
		predicate_refuted_by(constraints, lists, false);
	foreach(lc, locked)
		UnlockRelationOid(lfirst_oid(lc), AccessShareLock);
	return refuted;
}
