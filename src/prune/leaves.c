/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  The leaves of a partitioned table that may have a key, and the condition
 *	  that rows of them fulfil.
 *
 * Leaves are looked up one by one, without a lock on their tables, and with one
 * on an index only as long as that is read.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "partitioning/partbounds.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/syscache.h"

/*
 * May whoever executes the query read the column?  PostgreSQL checks this when
 * the query starts, which is later than the index is asked.
 */
bool
bfp_may_ask(const BfpTable *table)
{
	Oid			user = OidIsValid(table->user) ? table->user : GetUserId();

	return pg_class_aclcheck(table->table, user, ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck(table->table, table->column, user,
							  ACL_SELECT) == ACLCHECK_OK;
}

/* How to hash the keys; NULL if they cannot be looked up. */
static BfiKeys *
make_keys(const BfpTable *table, Oid collation)
{
	BfiKeys    *keys = palloc0(sizeof(*keys));
	Oid			type = table->key->consttype;

	keys->context = CurrentMemoryContext;
	if (table->is_array)
	{
		ArrayType  *array = DatumGetArrayTypeP(table->key->constvalue);
		int16		typlen;
		bool		typbyval;
		char		typalign;
		bool	   *nulls;
		int			n;
		int			i;

		type = ARR_ELEMTYPE(array);
		get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
		deconstruct_array(array, type, typlen, typbyval, typalign,
						  &keys->values, &nulls, &n);
		for (i = 0; i < n; i++)
		{
			if (!nulls[i])
				keys->values[keys->n++] = keys->values[i];
		}
	}
	else
	{
		keys->values = palloc(sizeof(Datum));
		keys->values[keys->n++] = table->key->constvalue;
	}
	keys->info = pgbloom_make_key_info(type, collation, CurrentMemoryContext,
									   false);
	return keys->info == NULL || keys->info->untyped ? NULL : keys;
}

/*
 * Call a function for each leaf that may have a key, until it returns false.
 * Returns false if it did, or if the index does not tell.
 */
static bool
for_each_leaf(const BfpTable *table, int *nleaves,
			  bool (*callback) (Oid leaf, void *state), void *state)
{
	Relation	index;
	BfiKeys    *keys;
	BfiPartition *leaves;
	bool		goes_on = true;
	int			i;

	AcceptInvalidationMessages();
	if (!ConditionalLockRelationOid(table->index, AccessShareLock))
		return false;
	index = try_relation_open(table->index, NoLock);
	if (index == NULL || index->rd_index == NULL ||
		index->rd_index->indrelid != table->table)
	{
		if (index != NULL)
			relation_close(index, NoLock);
		UnlockRelationOid(table->index, AccessShareLock);
		return false;
	}
	keys = make_keys(table, index->rd_indcollation[0]);
	leaves = bfi_leaves(index, nleaves);
	for (i = 0; i < *nleaves && keys != NULL && goes_on; i++)
	{
		BfiIndex	leaf;

		CHECK_FOR_INTERRUPTS();
		bfi_open_leaf(&leaf, &leaves[i]);
		if (!leaves[i].is_heap || bfi_may_have(&leaf, keys))
			goes_on = callback(leaves[i].table, state);
		bfi_close(&leaf);
	}
	relation_close(index, AccessShareLock);
	return keys != NULL && goes_on;
}

/*
 * Planning takes time in proportion to the square of the number of leaves, as
 * each is compared with the bounds of all.
 */
static bool
append_leaf(Oid leaf, void *state)
{
	BfpTable   *table = state;
	int			n;

	table->leaves = lappend_oid(table->leaves, leaf);
	n = list_length(table->leaves);
	return n <= BFP_MAX_LEAVES && n < table->nleaves &&
		n * n <= 2 * table->nleaves;
}

/* Find the leaves that may have a key.  Returns false if they are too many. */
bool
bfp_find_leaves(BfpTable *table)
{
	table->leaves = NIL;
	return for_each_leaf(table, &table->nleaves, append_leaf, table);
}

static bool
is_known(Oid leaf, void *state)
{
	return list_member_oid(state, leaf);
}

/* Have no other leaves a key now? */
bool
bfp_leaves_are_valid(const BfpTable *table)
{
	int			nleaves;

	return for_each_leaf(table, &nleaves, is_known, table->leaves);
}

/* Columns of a partition become those of the table that a query names. */
typedef struct Mapping
{
	Oid			from;
	Oid			to;
	const Var  *column;			/* of the table */
} Mapping;

static Node *
map_columns(Node *node, void *context)
{
	Mapping    *mapping = context;

	if (node != NULL && IsA(node, Var))
	{
		Var		   *var = copyObject((Var *) mapping->column);
		AttrNumber	column = get_attnum(mapping->to,
										get_attname(mapping->from,
													((Var *) node)->varattno,
													false));

		var->varattno = var->varattnosyn = column;
		get_atttypetypmodcoll(mapping->to, column, &var->vartype,
							  &var->vartypmod, &var->varcollid);
		return (Node *) var;
	}
	return expression_tree_mutator(node, map_columns, context);
}

/* The parent of a partition, or InvalidOid if it is none any more. */
static Oid
parent_of(Oid partition)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			parent = InvalidOid;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(partition));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL,
							  1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		parent = ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent;
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return parent;
}

static PartitionBoundSpec *
bound_of(Oid partition)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(partition));
	Datum		bound;
	bool		isnull = true;
	PartitionBoundSpec *result = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound,
							&isnull);
	if (!isnull)
		result = stringToNode(TextDatumGetCString(bound));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The bounds of a partition in its parent, as conditions of columns that are
 * certain to be true for its rows; NIL if it has none by which PostgreSQL
 * prunes, or they are of expressions.
 */
static List *
bounds_in_parent(Oid partition, Relation parent)
{
	PartitionKey key = RelationGetPartitionKey(parent);
	PartitionBoundSpec *bound = bound_of(partition);
	List	   *result = NIL;
	ListCell   *cell;

	if (bound == NULL || bound->is_default || key->partexprs != NIL ||
		(key->strategy != PARTITION_STRATEGY_RANGE &&
		 key->strategy != PARTITION_STRATEGY_LIST))
		return NIL;
	foreach(cell, get_qual_from_partbound(parent, bound))
	{
		NullTest   *test = lfirst(cell);

		/* That a column is not null does not prune, but is checked for rows. */
		if (!IsA(test, NullTest) || test->nulltesttype != IS_NOT_NULL)
			result = lappend(result, lfirst(cell));
	}
	return result;
}

/*
 * The conditions of all levels that a leaf fulfils; NIL if there is none.  Sets
 * *found to false if it is no leaf of the table any more.
 */
static List *
leaf_bounds(Oid leaf, const BfpTable *table, const Var *column, bool *found)
{
	List	   *bounds = NIL;
	Oid			oid = leaf;

	*found = true;
	while (oid != table->table)
	{
		Oid			parent_oid = parent_of(oid);
		Relation	parent = OidIsValid(parent_oid) ?
			try_relation_open(parent_oid, AccessShareLock) : NULL;
		Mapping		mapping;

		if (parent == NULL ||
			parent->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		{
			if (parent != NULL)
				relation_close(parent, NoLock);
			*found = false;
			return NIL;
		}
		mapping.from = parent_oid;
		mapping.to = table->table;
		mapping.column = column;
		bounds = list_concat(bounds, (List *)
							 map_columns((Node *) bounds_in_parent(oid, parent),
										 &mapping));
		relation_close(parent, NoLock);
		oid = parent_oid;
	}
	return bounds;
}

/*
 * The condition that rows in the leaves of a table fulfil, by which PostgreSQL
 * prunes all others; NULL if there is none.  The column of the query tells what
 * columns of the table look like there.
 */
Node *
bfp_bounds(const BfpTable *table, const Var *column)
{
	List	   *alternatives = NIL;
	ListCell   *cell;

	if (table->leaves == NIL)
		return makeBoolConst(false, false);
	foreach(cell, table->leaves)
	{
		bool		found;
		List	   *bounds = leaf_bounds(lfirst_oid(cell), table, column,
										 &found);

		if (!found || bounds == NIL)
			return NULL;
		alternatives = list_append_unique(alternatives,
										  make_ands_explicit(bounds));
	}
	return list_length(alternatives) == 1 ? linitial(alternatives) :
		(Node *) makeBoolExpr(OR_EXPR, alternatives, -1);
}
