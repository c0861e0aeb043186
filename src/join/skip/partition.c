/*-------------------------------------------------------------------------
 *
 * partition.c
 *	  Whether a partition can have rows with keys of a filter.
 *
 * The bounds of a partition by range or list are compared with the keys, at
 * all levels up to the partitioned table.  Of several columns of a partition
 * key, the first one counts.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

#include "access/nbtree.h"
#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "nodes/nodeFuncs.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Does the snapshot see the table as it is?  Rows that an older snapshot sees
 * may be beyond the bounds of a partition that was attached later, also by this
 * transaction, which checks only rows that it would see then.
 */
static bool
snapshot_sees_table(Snapshot snapshot, Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
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

/* The keys of the filter that are in this column, or NULL. */
static PgBloomJoinRange *
find_range(const PgBloomJoinRanges *filter, List *keys, AttrNumber column)
{
	int			i;

	for (i = 0; i < filter->nkeys; i++)
	{
		if (column > 0 && pgbloom_join_column(list_nth(keys, i)) == column)
			return filter->ranges[i];
	}
	return NULL;
}

/* A bound of a partition by range, or NULL if there is none. */
static const Datum *
range_bound(PartitionBoundInfo bounds, int i)
{
	return bounds->kind[i][0] == PARTITION_RANGE_DATUM_VALUE ?
		&bounds->datums[i][0] : NULL;
}

/* Can this partition have a key of the range? */
static bool
partition_meets(PartitionKey by, PartitionBoundInfo bounds, int partition,
				PgBloomJoinRange *range, FmgrInfo *compare)
{
	int			i;

	for (i = 0; i < bounds->ndatums; i++)
	{
		if (bounds->indexes[i] != partition)
			continue;
		if (by->strategy == PARTITION_STRATEGY_RANGE)
			return pgbloom_join_range_meets(range, compare,
											range_bound(bounds, i - 1),
											range_bound(bounds, i),
											by->partnatts > 1);
		if (pgbloom_join_range_meets(range, compare, &bounds->datums[i][0],
									 &bounds->datums[i][0], true))
			return true;
	}

	/* values of a list are none of the keys, and NULL has no match */
	return by->strategy != PARTITION_STRATEGY_LIST;
}

/*
 * The column of a relation by which this table above it is partitioned, or 0 if
 * there is none, or its bounds tell nothing of it.
 */
static AttrNumber
partitioning_column(Relation parent, Relation relation)
{
	PartitionKey by = RelationGetPartitionKey(parent);

	if (by->strategy == PARTITION_STRATEGY_HASH || by->partattrs[0] == 0)
		return 0;
	return get_attnum(RelationGetRelid(relation),
					  NameStr(TupleDescAttr(RelationGetDescr(parent),
											by->partattrs[0] - 1)->attname));
}

/*
 * Do the bounds of a partition of this parent contradict all keys?  The
 * columns of the keys are those of the relation, which is the partition or below
 * it.
 */
static bool
is_refuted(Relation parent, PartitionBoundInfo bounds, int partition,
		   Relation relation, const PgBloomJoinRanges *filter, List *keys)
{
	PartitionKey by = RelationGetPartitionKey(parent);
	PgBloomJoinRange *range;
	Oid			function;
	FmgrInfo	compare;

	if (bounds->default_index == partition)
		return false;
	range = find_range(filter, keys, partitioning_column(parent, relation));
	if (range == NULL ||
		!pgbloom_join_range_agrees(range, by->partopfamily[0],
								   by->partcollation[0]))
		return false;
	function = get_opfamily_proc(by->partopfamily[0], by->partopcintype[0],
								 pgbloom_join_range_type(range), BTORDER_PROC);
	if (!OidIsValid(function))
		return false;
	fmgr_info(function, &compare);
	return !partition_meets(by, bounds, partition, range, &compare);
}

/* Open a relation, or return NULL if it is locked or gone. */
Relation
pgbloom_join_try_open(Oid oid)
{
	Relation	relation;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return NULL;
	relation = try_relation_open(oid, NoLock);
	if (relation == NULL)
		UnlockRelationOid(oid, AccessShareLock);
	return relation;
}

/*
 * Open the table above a partition, and find the partition's number in its
 * bounds.  NULL if it is no longer there.  A query of a partition does not lock the
 * tables above it.  So this does not wait for their locks, and keeps none.  The
 * table may get other bounds meanwhile; these last until it is closed.
 */
static Relation
open_parent(Oid oid, Oid partition, PartitionBoundInfo *bounds, int *number)
{
	Relation	parent = pgbloom_join_try_open(oid);
	PartitionDesc partitions;

	if (parent == NULL)
		return NULL;
	partitions = RelationGetPartitionDesc(parent, true);
	*bounds = partitions->boundinfo;
	for (*number = 0; *number < partitions->nparts; (*number)++)
	{
		if (partitions->oids[*number] == partition)
			return parent;
	}
	relation_close(parent, AccessShareLock);
	return NULL;
}

/*
 * Is a relation a partition by the column of one of these keys?  *ancestors are
 * the tables above the relation that was asked before, from its parent on, and
 * become those of this one.  Mostly they are the same, which takes no catalog scan.
 */
bool
pgbloom_join_is_partition_by(Relation relation, List *keys, List **ancestors)
{
	Oid			partition = RelationGetRelid(relation);
	Relation	parent = NULL;
	PartitionBoundInfo bounds;
	int			number;
	ListCell   *x,
			   *y;

	if (!relation->rd_rel->relispartition)
		return false;
	if (*ancestors != NIL)
		parent = open_parent(linitial_oid(*ancestors), partition, &bounds,
							 &number);
	if (parent != NULL)
		relation_close(parent, AccessShareLock);
	else
		*ancestors = get_partition_ancestors(partition);
	foreach(x, *ancestors)
	{
		AttrNumber	column;

		parent = pgbloom_join_try_open(lfirst_oid(x));
		if (parent == NULL)
			break;
		column = partitioning_column(parent, relation);
		relation_close(parent, AccessShareLock);
		foreach(y, keys)
		{
			if (column > 0 && pgbloom_join_column(lfirst(y)) == column)
				return true;
		}
	}
	return false;
}

/*
 * The same for the planner: is the table partitioned by a key, in the order that
 * range.c compares keys in?
 */
bool
pgbloom_join_is_partition_key(const RelOptInfo *rel, Node *key,
							  const OpExpr *op)
{
	PartitionScheme scheme = rel->part_scheme;

	return scheme != NULL && scheme->strategy != PARTITION_STRATEGY_HASH &&
		rel->nparts > 0 && list_member(rel->partexprs[0], key) &&
		op_in_opfamily(op->opno, scheme->partopfamily[0]) &&
		op->inputcollid == scheme->partcollation[0] &&
		scheme->partopfamily[0] ==
		lookup_type_cache(exprType(key), TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

/* The share of the largest partition in what reading all of them costs. */
double
pgbloom_join_largest_part(const RelOptInfo *rel)
{
	Cost		largest = 0,
				all = 1e-9;
	int			i = -1;

	while ((i = bms_next_member(rel->live_parts, i)) >= 0)
	{
		Cost		cost = rel->part_rels[i]->cheapest_total_path->total_cost;

		largest = Max(largest, cost);
		all += cost;
	}
	return largest / all;
}

/*
 * Can no row of the relation have a key of the filter?  keys are those of the
 * relation.
 */
bool
pgbloom_join_partition_refuted(Relation relation, List *ancestors,
							   Snapshot snapshot,
							   const PgBloomJoinRanges *filter, List *keys)
{
	Oid			partition = RelationGetRelid(relation);
	bool		refuted = false;
	ListCell   *lc;
	int			i;

	for (i = 0; i < filter->nkeys; i++)
		refuted |= pgbloom_join_range_is_empty(filter->ranges[i]);
	foreach(lc, refuted ? NIL : ancestors)
	{
		PartitionBoundInfo bounds;
		int			number;
		Relation	parent = open_parent(lfirst_oid(lc), partition, &bounds,
										 &number);
		bool		sees = parent != NULL &&
			snapshot_sees_table(snapshot, partition);

		refuted = sees && is_refuted(parent, bounds, number, relation, filter,
									 keys);
		if (parent != NULL)
			relation_close(parent, AccessShareLock);
		if (!sees || refuted)
			break;
		partition = lfirst_oid(lc);
	}
	return refuted;
}
