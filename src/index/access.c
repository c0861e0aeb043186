/*-------------------------------------------------------------------------
 *
 * access.c
 *	  Opening an index for a function.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
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
								 index->rd_indcollation[0], context, true);
	MemoryContextSwitchTo(old_context);

	/* Only a filter gives a key without a type the one that it has. */
	if (info->untyped)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("keys of an index cannot be of type %s",
						format_type_be(bfi_key_sql_type(index))),
				 errhint("Cast them to the type that they have, for example text.")));
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

/* The parameters of an index as those of a value. */
BfParams
bfi_params(const BfiMeta *meta, const PgBloomKeyInfo *info)
{
	BfParams	params = {.fpp = meta->fpp,
		.expected = Min(meta->expected, bf_max_keys(meta->fpp)),
		.seed = meta->seed,
	.key_type = info->key_type};

	return params;
}

/* The full form of the ID of a recent transaction. */
uint64
bfi_full_transaction_id(TransactionId transaction)
{
	uint64		next = U64FromFullTransactionId(ReadNextFullTransactionId());
	uint64		epoch = next >> 32;

	if (transaction > (uint32) next)
		epoch--;
	return epoch << 32 | transaction;
}

/*
 * What it is for the xmin of the snapshot is asked for each of many partitions.
 * After 2^32 transactions, the answer of before is too low, which is harmless.
 */
static uint64
full_snapshot_xmin(TransactionId xmin)
{
	static TransactionId last = InvalidTransactionId;
	static uint64 full;

	if (xmin != last)
		full = bfi_full_transaction_id(xmin);
	last = xmin;
	return full;
}

/*
 * What the relation cache keeps of an index, until the session learns of a
 * change to its rows of pg_class and pg_index.
 */
static const BfiCache *
get_cache(Relation index)
{
	if (index->rd_amcache == NULL)
	{
		HeapTuple	tuple = SearchSysCache1(RELOID,
											ObjectIdGetDatum(RelationGetRelid(index)));
		BfiCache   *cache;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for relation %u",
				 RelationGetRelid(index));
		cache = MemoryContextAllocZero(index->rd_indexcxt,
									   offsetof(BfiCache, meta));
		cache->built = HeapTupleHeaderGetXmin(tuple->t_data);
		cache->valid = HeapTupleHeaderGetXmin(index->rd_indextuple->t_data);
		index->rd_amcache = cache;
		ReleaseSysCache(tuple);
	}
	return index->rd_amcache;
}

/* PL/pgSQL checks the constraints of a domain without a snapshot, too. */
static Snapshot
reading_snapshot(void)
{
	return ActiveSnapshotSet() ? GetActiveSnapshot() : GetTransactionSnapshot();
}

static bool
snapshot_sees(TransactionId transaction)
{
	return !XidInMVCCSnapshot(transaction, reading_snapshot()) ||
		TransactionIdIsCurrentTransactionId(transaction);
}

/*
 * Does the snapshot see the transactions that built the index and made it
 * valid?  An older one may see rows that were deleted before the index was
 * built: see README.md.  REINDEX writes a new row of pg_class, as ALTER INDEX
 * does, and what sets indisvalid one of pg_index.
 */
static bool
snapshot_sees_build(const BfiCache *cache)
{
	return snapshot_sees(cache->built) && snapshot_sees(cache->valid);
}

/*
 * Has the index the keys of all rows that the snapshot sees?  It lacks those of
 * rows that were deleted by transactions before complete_from.  Who sees the
 * transaction that built it sees these, too, unless it is the same transaction.
 */
bool
bfi_has_all_rows(const BfiCache *cache, const BfiMeta *meta)
{
	if (!snapshot_sees_build(cache))
		return false;
	return full_snapshot_xmin(reading_snapshot()->xmin) >= meta->complete_from ||
		(meta->rebuilt == 0 &&
		 !TransactionIdIsCurrentTransactionId(cache->built));
}

/* Can the pages of an index be read here?  With raise, it is an error if not. */
static bool
is_readable(Relation index, bool raise)
{
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(raise ? ERROR : DEBUG2,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	else if (RelationUsesLocalBuffers(index) && IsParallelWorker())
		ereport(raise ? ERROR : DEBUG2,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary index \"%s\" in a parallel worker",
						RelationGetRelationName(index)),
				 errhint("Set max_parallel_workers_per_gather to 0.")));
	else if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED &&
			 RecoveryInProgress())
		ereport(raise ? ERROR : DEBUG2,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access unlogged index \"%s\" during recovery",
						RelationGetRelationName(index))));
	else
		return true;
	return false;
}

/*
 * Is the transaction building the index now?  An expression of the index may
 * look up keys in it.  A parallel worker does not know which indexes are new.
 */
static bool
is_being_built(Relation index)
{
	return (IsParallelWorker() ||
			index->rd_createSubid != InvalidSubTransactionId ||
			index->rd_newRelfilelocatorSubid != InvalidSubTransactionId) &&
		index->rd_rel->relkind == RELKIND_INDEX &&
		RelationGetNumberOfBlocks(index) == 0;
}

/* Has the index all rows that are not too old for it? */
static bool
is_usable(Relation index)
{
	return !is_being_built(index) && index->rd_index->indisvalid &&
		index->rd_index->indisready && index->rd_index->indislive;
}

/*
 * Is the open index complete?  If so, read its meta page; else it must not be
 * used.  Serializable transactions read all of the index.  With raise, it is an
 * error if its pages cannot be read here.
 */
void
bfi_begin_reading(BfiIndex *index, bool raise)
{
	Relation	relation = index->relation;

	index->complete = false;
	index->partitioned = relation != NULL &&
		relation->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	if (relation == NULL)
		return;
	if (!is_readable(relation, raise) || !is_usable(relation))
		return;
	if (!index->partitioned)
	{
		const BfiCache *cache = get_cache(relation);

		PredicateLockRelation(relation, reading_snapshot());
		bfi_read_meta(relation, &index->meta);
		index->complete = bfi_has_all_rows(cache, &index->meta);
	}
	else
		index->complete = true;
}

/* Is an open relation an index of this access method?  It may be partitioned. */
bool
bfi_is_open_bloomfilter(Relation index)
{
	return index->rd_indam != NULL && index->rd_indam->ambuild == bfi_build;
}

/*
 * Open an index that a user names, if he may read its table.  The relation is
 * NULL if there is none of this OID: a plan may have that of an index that has
 * been replaced since.
 *
 * The lock on the table is held until the end of the transaction, as that of a
 * query is.  DROP INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for it, so
 * that an index on which the transaction relies does not go away.  On the
 * primary of a standby they do not wait.
 *
 * What others have done to the index must be known, also if the locks are held
 * already: a query learns of new children and partitions, which do not wait for
 * these locks, and of privileges that are gone.
 */
void
bfi_open(BfiIndex *index, Oid oid)
{
	Oid			table;

	AcceptInvalidationMessages();
	index->relation = NULL;
	index->locked_table = InvalidOid;
	table = IndexGetRelation(oid, true);
	if (OidIsValid(table))
	{
		LockRelationOid(table, AccessShareLock);
		index->relation = try_relation_open(oid, AccessShareLock);
	}
	if (index->relation == NULL ? get_rel_name(oid) != NULL :
		!bfi_is_open_bloomfilter(index->relation))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of access method \"bloomfilter\"",
						get_rel_name(oid)),
				 errhint("Name an index that was created USING bloomfilter, not its table.")));
	if (index->relation != NULL)
		bfi_check_privileges(index->relation, false);
	bfi_begin_reading(index, true);
}

/* Open the index of a partition.  The relation is NULL if it has none. */
void
bfi_open_partition(BfiIndex *index, const BfiPartition *partition)
{
	index->locked_table = InvalidOid;
	index->relation = OidIsValid(partition->index) ?
		try_relation_open(partition->index, AccessShareLock) : NULL;
	bfi_begin_reading(index, true);
}

void
bfi_close(BfiIndex *index)
{
	if (index->relation != NULL)
		relation_close(index->relation, AccessShareLock);
	if (OidIsValid(index->locked_table))
		UnlockRelationOid(index->locked_table, AccessShareLock);
}

/* Raise an error unless an index can tell about itself. */
void
bfi_check_complete(const BfiIndex *index, Oid oid)
{
	BfiMeta		meta;

	if (index->relation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", oid)));
	if (!index->complete && is_usable(index->relation))
	{
		bool		by_vacuum = index->meta.rebuilt != 0 &&
			snapshot_sees_build(get_cache(index->relation));

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is too new for this transaction",
						RelationGetRelationName(index->relation)),
				 by_vacuum ?
				 errdetail("VACUUM has rebuilt it without keys of deleted rows that the snapshot of the transaction may see.") :
				 errdetail("It was built or altered after the snapshot of the transaction was taken."),
				 by_vacuum ?
				 errhint("Call the function in a new transaction when those that are older than the DELETE have ended, or rebuild the index by REINDEX.") :
				 errhint("Call the function in a new transaction.")));
	}
	if (!index->complete)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid",
						RelationGetRelationName(index->relation)),
				 errhint("Wait until it is built, or rebuild it by REINDEX.")));
	if (index->partitioned)
		return;
	bfi_read_live_meta(index->relation, &meta);
	if (meta.partial &&
		(meta.next.number == 0 || meta.next.number > meta.current.number))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" lacks pages",
						RelationGetRelationName(index->relation)),
				 errdetail("VACUUM has not finished to rebuild it, and lookups find every key of these pages."),
				 errhint("Rebuild it by VACUUM or REINDEX.")));
}

/*
 * Does Citus keep the rows of the table in other tables?  It marks such tables
 * by a trigger, also where it turns a table into one by itself, because of a
 * foreign key.
 */
bool
bfi_is_citus_table(Relation table)
{
	TriggerDesc *triggers;
	bool		found = false;
	int			i;

	if (table->trigdesc == NULL ||
		!table->trigdesc->trig_truncate_after_statement)
		return false;

	/* Looking up a name may replace those of an open table. */
	triggers = CopyTriggerDesc(table->trigdesc);
	for (i = 0; i < triggers->numtriggers && !found; i++)
	{
		char	   *name = get_func_name(triggers->triggers[i].tgfoid);

		found = name != NULL && strcmp(name, "citus_truncate_trigger") == 0;
	}
	FreeTriggerDesc(triggers);
	return found;
}

/* Raise an error if a query of the table returns rows of other tables. */
void
bfi_check_has_all_rows(Relation index)
{
	Relation	table = table_open(index->rd_index->indrelid, NoLock);
	List	   *children = NIL;

	if (bfi_is_citus_table(table))
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
