/*-------------------------------------------------------------------------
 *
 * access.c
 *	  Opening an index for a function.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_inherits.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* The type of the indexed column or expression. */
Oid
bfi_key_sql_type(Relation index)
{
	return TupleDescAttr(RelationGetDescr(index), 0)->atttypid;
}

/* How to hash the keys of an index. */
PgBloomKeyInfo *
bfi_key_info(Relation index, MemoryContext context)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	PgBloomKeyInfo *info;

	info = pgbloom_make_key_info(bfi_key_sql_type(index),
								 index->rd_indcollation[0], context, false);
	MemoryContextSwitchTo(old_context);
	return info;
}

/*
 * An index records what decides how its keys are hashed.  Other than a value,
 * it cannot be used in another database, and its type may be renamed.
 */
void
bfi_set_key_type(BfiMeta *meta, const PgBloomKeyInfo *info)
{
	meta->key_type = info->key_type.code;
	meta->definition = info->definition;
}

/*
 * An index may have been built by a version that hashed its keys otherwise, or
 * over a composite type that has changed since.
 */
void
bfi_check_key_type(Relation index, const BfiMeta *meta,
				   const PgBloomKeyInfo *info)
{
	if (meta->key_type != info->key_type.code)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built for keys that are hashed differently",
						RelationGetRelationName(index)),
				 errdetail("The code of its key type is %d, that of the column is %d.",
						   meta->key_type, info->key_type.code),
				 errhint("Rebuild the index by REINDEX.")));
	if (meta->definition != info->definition)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built for keys that are hashed differently",
						RelationGetRelationName(index)),
				 errdetail("Type %s has been changed since.",
						   format_type_be_qualified(bfi_key_sql_type(index))),
				 errhint("Rebuild the index by REINDEX.")));
}

/* Is the index maintained, and does it have all rows of earlier transactions? */
static bool
is_valid(Relation index)
{
	Form_pg_index form = index->rd_index;

	return form->indisvalid && form->indisready && form->indislive;
}

/* Is the snapshot from this transaction on, or later?  0 is the first one. */
static bool
snapshot_is_from(uint64 transaction)
{
	uint64		next;
	uint64		epoch;

	if (transaction == 0)
		return true;
	next = U64FromFullTransactionId(ReadNextFullTransactionId());
	epoch = next >> 32;
	if (TransactionXmin > (uint32) next)
		epoch--;
	return (epoch << 32 | TransactionXmin) >= transaction;
}

/*
 * Does the snapshot see the transactions that built the index and made it
 * valid?  A snapshot of a standby may be older, and see rows that were deleted
 * before the index was built: the primary keeps such rows for its own
 * snapshots only.  REINDEX writes a new row of pg_class, and what sets
 * indisvalid one of pg_index.
 */
static bool
standby_snapshot_sees_build(Relation index)
{
	Snapshot	snapshot = GetActiveSnapshot();
	HeapTuple	tuple;
	TransactionId built;
	TransactionId validated;

	if (!snapshot->takenDuringRecovery)
		return true;
	tuple = SearchSysCache1(RELOID,
							ObjectIdGetDatum(RelationGetRelid(index)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u",
			 RelationGetRelid(index));
	built = HeapTupleHeaderGetXmin(tuple->t_data);
	validated = HeapTupleHeaderGetXmin(index->rd_indextuple->t_data);
	ReleaseSysCache(tuple);
	return !XidInMVCCSnapshot(built, snapshot) &&
		!XidInMVCCSnapshot(validated, snapshot);
}

/*
 * Indexes that this session has opened by OID.  A plan names an index so, and
 * nothing makes it a new plan if REINDEX CONCURRENTLY replaces the index after
 * the transaction has begun.  Parallel workers execute such plans as well, and
 * do not know what the session has opened.
 */
static List *known_indexes = NIL;

void
bfi_remember(Oid oid)
{
	static Oid	last = InvalidOid;
	MemoryContext old_context;

	if (oid == last)
		return;
	old_context = MemoryContextSwitchTo(TopMemoryContext);
	known_indexes = list_append_unique_oid(known_indexes, oid);
	MemoryContextSwitchTo(old_context);
	last = oid;
}

/* Raise an error unless this was an index, which has been replaced. */
static void
check_was_index(Oid oid)
{
	char	   *name = get_rel_name(oid);

	if (name != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"bloomfilter\"",
						name)));
	if (!OidIsValid(oid) ||
		(!IsParallelWorker() && !list_member_oid(known_indexes, oid)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
}

/* Raise an error if the pages of an index cannot be read here. */
static void
check_is_readable(Relation index)
{
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (RelationUsesLocalBuffers(index) && IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary index \"%s\" in a parallel worker",
						RelationGetRelationName(index)),
				 errhint("Set max_parallel_workers_per_gather to 0.")));
	if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED &&
		RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access unlogged index \"%s\" during recovery",
						RelationGetRelationName(index))));
}

/* Lock the table of an index and the index; NULL if it is not there. */
static Relation
lock_index(Oid oid)
{
	Oid			table = IndexGetRelation(oid, true);

	if (!OidIsValid(table))
		return NULL;
	LockRelationOid(table, AccessShareLock);
	return try_relation_open(oid, AccessShareLock);
}

/*
 * Open an index.  Returns false if it may lack rows; then the meta data must
 * not be used.  The relation is NULL if the index has been replaced.
 *
 * The lock on the table is held until the end of the transaction, as that of a
 * query is.  DROP INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for it, so
 * that an index on which the transaction relies does not go away.
 *
 * Serializable transactions read all of the index.
 */
bool
bfi_open(BfiIndex *index, Oid oid)
{
	index->partitioned = false;
	index->relation = lock_index(oid);
	if (index->relation == NULL || index->relation->rd_indam == NULL ||
		index->relation->rd_indam->ambuild != bfi_build)
	{
		check_was_index(oid);
		return false;
	}
	index->partitioned =
		index->relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	check_is_readable(index->relation);
	if (!is_valid(index->relation))
		return false;
	if (index->partitioned)
		return true;
	PredicateLockRelation(index->relation, GetActiveSnapshot());
	bfi_read_meta(index->relation, &index->meta);
	return snapshot_is_from(index->meta.complete_from) &&
		standby_snapshot_sees_build(index->relation);
}

void
bfi_close(BfiIndex *index)
{
	if (index->relation != NULL)
		relation_close(index->relation, AccessShareLock);
}

/*
 * Open an index that must be complete and not partitioned, and check the
 * user's privileges.
 */
void
bfi_open_plain(BfiIndex *index, Oid oid)
{
	bool		usable = bfi_open(index, oid);

	if (index->relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
	bfi_check_privileges(index->relation);
	if (index->partitioned)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" is partitioned",
						RelationGetRelationName(index->relation)),
				 errhint("Call the function for the index of each partition: see pg_partition_tree.")));
	if (!usable)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid, or too new for this transaction",
						RelationGetRelationName(index->relation)),
				 errhint("Wait until it is built, use a new transaction, or rebuild it by REINDEX.")));
}

/* Foreign tables have no indexes, so nothing tells what is in them. */
static void
check_foreign_partitions(const BfiIndex *index)
{
	List	   *tables = find_all_inheritors(index->relation->rd_index->indrelid,
											 AccessShareLock, NULL);
	ListCell   *cell;

	foreach(cell, tables)
	{
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot look up keys in index \"%s\"",
							RelationGetRelationName(index->relation)),
					 errdetail("Partition \"%s\" is a foreign table, which has no index.",
							   get_rel_name(lfirst_oid(cell))),
					 errhint("Look up keys in the indexes of the other partitions.")));
	}
	list_free(tables);
}

/* The indexes of the partitions of a partitioned index. */
List *
bfi_partitions(const BfiIndex *index)
{
	List	   *partitions = NIL;
	List	   *all;
	ListCell   *cell;

	check_foreign_partitions(index);
	all = find_all_inheritors(RelationGetRelid(index->relation),
							  AccessShareLock, NULL);
	foreach(cell, all)
	{
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_INDEX)
			partitions = lappend_oid(partitions, lfirst_oid(cell));
	}
	list_free(all);
	return partitions;
}
