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
#include "access/table.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
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
 * An index records what decides how its keys are hashed, and may have been
 * built by a version that hashed them otherwise.  Other than a value, it cannot
 * be used in another database, and its type may be renamed.
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
 * the transaction has begun.
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

/*
 * Does the snapshot see an index of this OID?  Parallel workers do not know
 * what the session has opened.
 */
static bool
snapshot_sees_index(Oid oid)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(oid));
	scan = systable_beginscan(pg_class, ClassOidIndexId, true,
							  GetActiveSnapshot(), 1, &key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple) &&
		((Form_pg_class) GETSTRUCT(tuple))->relkind == RELKIND_INDEX;
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	return found;
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
						name),
				 errhint("Name an index that was created USING bloomfilter, not its table.")));
	if (!(IsParallelWorker() ? snapshot_sees_index(oid) :
		  list_member_oid(known_indexes, oid)))
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

/*
 * Lock the table of an index and the index; NULL if it is not there.
 *
 * DROP INDEX CONCURRENTLY and REINDEX CONCURRENTLY on the primary do not wait
 * for locks of a standby.  What they have done to the index must be known, also
 * if the lock on it is held already.
 */
static Relation
lock_index(Oid oid)
{
	Oid			table;

	if (RecoveryInProgress())
		AcceptInvalidationMessages();
	table = IndexGetRelation(oid, true);
	if (!OidIsValid(table))
		return NULL;
	LockRelationOid(table, AccessShareLock);
	return try_relation_open(oid, AccessShareLock);
}

/*
 * Open an index of which the user may read the table, or has passed the check
 * for the partitioned one.  If it is not complete, it may lack rows, and the
 * meta data must not be used.  The relation is NULL if the index has been
 * replaced.
 *
 * The lock on the table is held until the end of the transaction, as that of a
 * query is.  DROP INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for it, so
 * that an index on which the transaction relies does not go away.
 *
 * Serializable transactions read all of the index.
 */
void
bfi_open(BfiIndex *index, Oid oid, bool is_partition)
{
	index->partitioned = false;
	index->complete = false;
	index->relation = lock_index(oid);
	if (index->relation == NULL || index->relation->rd_indam == NULL ||
		index->relation->rd_indam->ambuild != bfi_build)
	{
		check_was_index(oid);
		return;
	}
	if (!is_partition)
		bfi_check_privileges(index->relation, false);
	index->partitioned =
		index->relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	check_is_readable(index->relation);
	if (!index->relation->rd_index->indisvalid ||
		!index->relation->rd_index->indisready ||
		!index->relation->rd_index->indislive)
		return;
	if (!index->partitioned)
	{
		PredicateLockRelation(index->relation, GetActiveSnapshot());
		bfi_read_meta(index->relation, &index->meta);
	}
	index->complete = index->partitioned ||
		(snapshot_is_from(index->meta.complete_from) &&
		 standby_snapshot_sees_build(index->relation));
}

void
bfi_close(BfiIndex *index)
{
	if (index->relation != NULL)
		relation_close(index->relation, AccessShareLock);
}

/*
 * Open an index that must be complete, or a partition of one for which this
 * has been checked.
 */
void
bfi_open_complete(BfiIndex *index, Oid oid, bool is_partition)
{
	bfi_open(index, oid, is_partition);
	if (index->relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
	if (!index->complete)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid, or too new for this transaction",
						RelationGetRelationName(index->relation)),
				 errhint("Wait until it is built, use a new transaction, or rebuild it by REINDEX.")));
}

/*
 * Does Citus keep the rows of the table in other tables?  It marks such tables
 * by a trigger, also where it turns a table into one by itself, because of a
 * foreign key.
 */
static bool
is_citus_table(Relation table)
{
	TriggerDesc *triggers = table->trigdesc;
	int			i;

	if (triggers == NULL || !triggers->trig_truncate_after_statement)
		return false;
	for (i = 0; i < triggers->numtriggers; i++)
	{
		char	   *name = get_func_name(triggers->triggers[i].tgfoid);

		if (name != NULL && strcmp(name, "citus_truncate_trigger") == 0)
			return true;
	}
	return false;
}

/* Raise an error if a query of the table returns rows of other tables. */
void
bfi_check_has_all_rows(Relation index)
{
	Relation	table = table_open(index->rd_index->indrelid, NoLock);
	List	   *children = NIL;

	if (is_citus_table(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" does not have the rows of table \"%s\"",
						RelationGetRelationName(index),
						RelationGetRelationName(table)),
				 errdetail("The rows are in shards, which Citus manages."),
				 errhint("Look up keys in the indexes of the shards, by run_command_on_shards.")));

	/* Those of a partitioned table have indexes that belong to this one. */
	if (table->rd_rel->relhassubclass &&
		table->rd_rel->relkind == RELKIND_RELATION)
		children = find_inheritance_children(RelationGetRelid(table), NoLock);
	if (children != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" does not have all rows of table \"%s\"",
						RelationGetRelationName(index),
						RelationGetRelationName(table)),
				 errdetail("Rows of table \"%s\", which inherits from it, are not in the index.",
						   get_rel_name(linitial_oid(children))),
				 errhint("Look up keys in the indexes of the children, and keep no rows in the parent.")));
	table_close(table, NoLock);
}

/*
 * The index, or the indexes of the partitions of a partitioned one, if the user
 * may read them.
 */
List *
bfi_index_parts(Oid oid)
{
	BfiIndex	index;
	List	   *parts;

	bfi_open_complete(&index, oid, false);
	parts = index.partitioned ? bfi_partitions(&index) : list_make1_oid(oid);
	bfi_close(&index);
	return parts;
}

static int
compare_oid_cells(const void *a, const void *b)
{
	return list_oid_cmp(a, b);
}

/*
 * The indexes that belong to a partitioned index, or this itself, of tables
 * that are locked.  Not of others: a partition that is being detached is none
 * for queries, and to lock its index before its table might be a deadlock.
 */
List *
bfi_indexes_of(Oid index, const List *tables)
{
	List	   *locked = list_copy(tables);
	List	   *indexes = NIL;
	ListCell   *cell;

	list_sort(locked, list_oid_cmp);
	foreach(cell, find_all_inheritors(index, NoLock, NULL))
	{
		ListCell	table;

		lfirst_oid(&table) = IndexGetRelation(lfirst_oid(cell), true);
		if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_INDEX &&
			bsearch(&table, list_head(locked), list_length(locked),
					sizeof(ListCell), compare_oid_cells) != NULL)
			indexes = lappend_oid(indexes, lfirst_oid(cell));
	}
	list_free(locked);
	return indexes;
}

/* The indexes of the partitions of a partitioned index. */
List *
bfi_partitions(const BfiIndex *index)
{
	List	   *tables = find_all_inheritors(index->relation->rd_index->indrelid,
											 AccessShareLock, NULL);
	ListCell   *cell;

	/* Foreign tables have no indexes, so nothing tells what is in them. */
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
	return bfi_indexes_of(RelationGetRelid(index->relation), tables);
}
