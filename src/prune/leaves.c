/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  The leaves of a partitioned table that may have a key, and the condition
 *	  that rows of them fulfil.
 *
 *-------------------------------------------------------------------------
 */
#include "prune/prune.h"

#include "access/relation.h"
#include "catalog/partition.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "partitioning/partprune.h"
#include "rewrite/rewriteManip.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

/* Read the keys.  Returns false if they are too many, or hash in another way. */
static bool
read_keys(const BfpTable *table, Oid collation, BfiKeys *keys)
{
	Oid			type = table->key->consttype;
	Datum	   *values = (Datum *) &table->key->constvalue;
	bool	   *nulls = NULL;
	int			n = 1;
	int			i;

	if (table->is_array)
	{
		ArrayType  *array = DatumGetArrayTypeP(table->key->constvalue);
		int16		typlen;
		bool		typbyval;
		char		typalign;

		type = ARR_ELEMTYPE(array);
		if (ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > BFP_MAX_KEYS)
			return false;
		get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
		deconstruct_array(array, type, typlen, typbyval, typalign, &values,
						  &nulls, &n);
	}
	keys->values = palloc(n * sizeof(Datum));
	keys->n = 0;
	keys->context = CurrentMemoryContext;
	for (i = 0; i < n; i++)
	{
		if (nulls == NULL || !nulls[i])
			keys->values[keys->n++] = values[i];
	}
	keys->info = pgbloom_make_key_info(type, collation, CurrentMemoryContext,
									   false);
	return keys->info != NULL && !keys->info->untyped;
}

/*
 * Find the leaves that may have a key.  Returns false if they are too many, or
 * the index does not tell.
 */
bool
bfp_find_leaves(BfpTable *table)
{
	BfiIndex	index;
	BfiKeys		keys = {0};
	BfiPartition *leaves = NULL;
	bool		few = false;
	int			i;

	table->leaves = NIL;
	bfi_open_for_query(&index, table->index);
	if (index.relation != NULL && index.partitioned &&
		read_keys(table, index.relation->rd_indcollation[0], &keys))
	{
		leaves = bfi_leaves(index.relation, &table->nleaves);
		few = true;
	}
	bfi_close(&index);
	for (i = 0; few && i < table->nleaves; i++)
	{
		CHECK_FOR_INTERRUPTS();
		bfi_open_leaf(&index, &leaves[i]);
		if (!leaves[i].is_heap || bfi_may_have(&index, &keys))
		{
			table->leaves = lappend_oid(table->leaves, leaves[i].table);
			few = list_length(table->leaves) <=
				Min(BFP_MAX_LEAVES, table->nleaves - 1);
		}
		bfi_close(&index);
	}
	return few;
}

/* How many partitions does PostgreSQL leave of a table by these conditions? */
int
bfp_count_left(RelOptInfo *rel, List *conditions)
{
	int			n;

	rel->baserestrictinfo = conditions;
	n = bms_num_members(prune_append_rel_partitions(rel));
	rel->baserestrictinfo = NIL;
	return n;
}

/*
 * A condition that is true for all rows of these leaves, as a single one, also
 * of a single leaf; NULL if PostgreSQL does not prune by it, as for DEFAULT.  The
 * planner locks the leaves later, so their locks are held until then.  A lock is
 * never waited for, as PostgreSQL by itself might prune that leaf.
 */
Expr *
bfp_bounds(PlannerInfo *root, RelOptInfo *rel, Relation table, List *leaves)
{
	LOCKMODE	mode = root->simple_rte_array[rel->relid]->rellockmode;
	List	   *alternatives = NIL;
	ListCell   *cell;

	foreach(cell, leaves)
	{
		List	   *bounds = NIL;
		Relation	leaf;

		if (!ConditionalLockRelationOid(lfirst_oid(cell), mode))
			return NULL;
		leaf = try_relation_open(lfirst_oid(cell), NoLock);
		if (leaf == NULL)
			return NULL;
		if (list_member_oid(get_partition_ancestors(lfirst_oid(cell)),
							RelationGetRelid(table)))
			bounds = map_partition_varattnos(RelationGetPartitionQual(leaf), 1,
											 table, leaf);
		relation_close(leaf, NoLock);
		bounds = (List *) eval_const_expressions(root, (Node *) bounds);
		ChangeVarNodes((Node *) bounds, 1, rel->relid, 0);
		if (bounds == NIL ||
			(rel->nparts > 1 && bfp_count_left(rel, bounds) == rel->nparts))
			return NULL;
		alternatives = lappend(alternatives, make_ands_explicit(bounds));
	}
	return makeBoolExpr(OR_EXPR, alternatives, -1);
}
