/*-------------------------------------------------------------------------
 *
 * pending.c
 *	  Hashes that a transaction has inserted but not yet written.
 *
 * Nobody else sees the rows of a transaction before it commits, so their keys
 * may wait until then.  Sorted by page, many of them cost one change of a page
 * and one WAL record.  Lookups of the own session search the pending hashes as
 * well as the pages.  Parallel workers cannot, so everything is written before
 * a parallel plan is executed, and before statements that may build an index.
 *
 * Each hash has the transaction ID of its row.  Those of aborted
 * subtransactions are not written.
 *
 * Hashes belong to the file that the index has when they are inserted, which
 * may become that of another index, or be replaced, and return when a
 * subtransaction is rolled back: see README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/parallel.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/evtcache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include PGBLOOM_RELFILENUMBER_HEADER

typedef struct PendingHash
{
	uint64		hash;
	TransactionId inserter;		/* invalid if the row is of another one */
	char		status;
} PendingHash;

/* Secret and odd, so that nobody can choose keys that meet in the hash table. */
static uint64 multiplier;

/*
 * A hash table of hashes, which users may choose.  The low bits of its own hashes
 * are the high bits of a product, which depend on all bits of the factors.
 */
#define SH_PREFIX pending
#define SH_ELEMENT_TYPE PendingHash
#define SH_KEY_TYPE uint64
#define SH_KEY hash
#define SH_HASH_KEY(table, key) pg_bswap32((uint32) ((key) * multiplier >> 32))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* The pending hashes of one index that were inserted while it had one file. */
typedef struct BfiPendingIndex
{
	Oid			oid;
	RelFileLocator file;
	TransactionId locker;		/* holds the lock on the index */
	pending_hash *hashes;
	struct BfiPendingIndex *next;
} BfiPendingIndex;

/* A table of this size takes no more memory than a few statements. */
#define INITIAL_ROOM	16

/* Of this transaction, in its memory. */
static BfiPendingIndex *pending_indexes = NULL;

/* So often have some of them been removed. */
static uint64 removals = 0;

/* The size of all hash tables, and of those that could not be written. */
static size_t pending_size = 0;
static size_t unwritten_size = 0;

/*
 * The commit has begun: what comes then must be written at once.  Or, when the
 * library is loaded, it may have begun: that is asked again for each hash.
 */
static bool committing = false;
static bool committing_in_doubt = false;

/* When a statement began that loaded the library within another one, or 0. */
static TimestampTz loading_statement = 0;

/* Statements in progress that may give indexes other files. */
static int	changing_files = 0;

static size_t
pending_table_size(const pending_hash * hashes)
{
	return (size_t) hashes->size * sizeof(PendingHash);
}

/* Is this of the transaction, and not of an aborted subtransaction? */
static bool
is_alive_inserter(TransactionId inserter)
{
	return !TransactionIdIsValid(inserter) ||
		TransactionIdIsCurrentTransactionId(inserter);
}

#define ST_SORT sort_hashes
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) ((*(a) > *(b)) - (*(a) < *(b)))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * The hashes of rows that are still there, ascending; returns their number.
 * Most have the inserter of the one before, and to find out whether that is
 * alive takes as long as there are savepoints.
 */
static int
sorted_hashes(pending_hash * pending, uint64 **hashes)
{
	PendingHash *entry;
	pending_iterator iterator;
	TransactionId inserter = InvalidTransactionId;
	bool		alive = is_alive_inserter(inserter);
	int			n = 0;

	*hashes = MemoryContextAllocHuge(CurrentMemoryContext,
									 pending->members * sizeof(uint64));
	pending_start_iterate(pending, &iterator);
	while ((entry = pending_iterate(pending, &iterator)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (entry->inserter != inserter)
		{
			inserter = entry->inserter;
			alive = is_alive_inserter(inserter);
		}
		if (alive)
			(*hashes)[n++] = entry->hash;
	}
	sort_hashes(*hashes, n);
	return n;
}

/*
 * Write hashes to an index.  Serializable transactions that have looked up one
 * of them before it was written hold a predicate lock, so they are told after
 * that.  Most errors come before it, so that the keys are not found when the
 * transaction is tried again.
 */
static void
write_hashes(Relation index, uint64 *hashes, int n)
{
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	bfi_add(index, hashes, n);
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
}

/*
 * Open the index that has the file of pending hashes.  If there is none, the
 * file may return in a rollback; then that of the same OID, or NULL.
 */
static Relation
open_index_of_file(const BfiPendingIndex *pending, bool *has_file)
{
	Relation	index = try_relation_open(pending->oid, RowExclusiveLock);
	Relation	other = NULL;
	Oid			oid;

	*has_file = index != NULL &&
		RelFileLocatorEquals(pending->file, index->rd_locator);
	if (*has_file)
		return index;
	oid = RelidByRelfilenumber(pending->file.spcOid, pending->file.relNumber);
	if (OidIsValid(oid))
		other = try_relation_open(oid, RowExclusiveLock);
	if (other == NULL)
		return index;
	if (index != NULL)
		relation_close(index, RowExclusiveLock);
	*has_file = true;
	return other;
}

/*
 * Write the pending hashes of an index.  Returns false if they have to wait
 * further.  While an index is rebuilt, it has no pages; these are keys that came
 * since the statement began, which has written all others.
 */
static bool
flush_pending_index(const BfiPendingIndex *pending)
{
	Relation	index;
	uint64	   *hashes;
	int			n;
	bool		written = true;

	if (ReindexIsProcessingIndex(pending->oid))
		return false;
	n = sorted_hashes(pending->hashes, &hashes);
	if (n > 0)
	{
		index = open_index_of_file(pending, &written);
		if (index != NULL)
		{
			write_hashes(index, hashes, n);
			relation_close(index, RowExclusiveLock);
		}
	}
	pfree(hashes);
	return written;
}

/*
 * Write all pending hashes of the transaction.  They are removed only after
 * that, because writing them may fail in a subtransaction.
 */
void
bfi_flush(void)
{
	BfiPendingIndex **link = &pending_indexes;
	BfiPendingIndex *pending;

	while ((pending = *link) != NULL)
	{
		if (!flush_pending_index(pending))
		{
			link = &pending->next;
			continue;
		}
		removals++;
		*link = pending->next;
		pending_size -= pending_table_size(pending->hashes);
		pending_destroy(pending->hashes);
		pfree(pending);
	}
	unwritten_size = pending_size;
}

static void
flush_at_transaction_event(XactEvent event, void *arg)
{
	(void) arg;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			bfi_flush();
			committing = true;
			committing_in_doubt = false;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			removals++;
			pending_indexes = NULL;
			pending_size = unwritten_size = 0;
			committing = committing_in_doubt = false;
			break;
		default:
			break;
	}
}

static bool
reindexes_concurrently(const ReindexStmt * statement)
{
	bool		concurrently = false;
	ListCell   *cell;

	/* The last one counts. */
	foreach(cell, statement->params)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "concurrently") == 0)
			concurrently = defGetBoolean(option);
	}
	return concurrently;
}

/*
 * May this utility statement give an index another OID for the same file, or a
 * copy of its file?  TRUNCATE builds a file, but without the rows.  Others
 * build an index by parallel workers, which look up keys for expressions.  A
 * concurrent build inserts each row once more, after its workers have ended,
 * and these keys may wait, as those of a concurrent refresh may.
 */
static bool
changes_files(Node *statement)
{
	if (IsA(statement, IndexStmt))
		return !((IndexStmt *) statement)->concurrent;
	if (IsA(statement, ReindexStmt))
		return !reindexes_concurrently((ReindexStmt *) statement);
	if (IsA(statement, RefreshMatViewStmt))
		return !((RefreshMatViewStmt *) statement)->concurrent;
	return IsA(statement, TruncateStmt) ||
		IsA(statement, VacuumStmt) ||
		GetCommandLogLevel(statement) == LOGSTMT_DDL;
}

/*
 * Before a utility statement.  Returns what bfi_end_utility() takes afterwards,
 * also after an error.
 */
bool
bfi_begin_utility(Node *statement)
{
	bool		changes = changes_files(statement);

	if (changes)
		bfi_flush();
	changing_files += changes;
	return changes;
}

void
bfi_end_utility(bool changes)
{
	changing_files -= changes;
}

/*
 * May a transaction be committing that began before the library was loaded?
 * Its end finds no callback that is registered by one of the callbacks.  A
 * commit runs outside of statements, or in one that has given up its snapshot,
 * such as CALL, whose portal has no statements after ROLLBACK.  What a callback
 * executes may run in a cursor's portal, which has a name.
 */
static bool
may_be_committing(void)
{
	if (!IsTransactionState())
		return false;
	if (ActivePortal == NULL || ActivePortal->name[0] != '\0')
		return true;
	return ActivePortal->portalSnapshot == NULL &&
		(ActivePortal->stmts == NIL ||
		 linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt != NULL);
}

/*
 * May there be a statement in progress for which bfi_begin_utility() would have
 * been called, had the library been loaded?  It may be within others, or around
 * a cursor, whose portal has a name, as that of EXECUTE has.  What inserts keys
 * meanwhile is an event trigger, unless an expression does so.  Statements that
 * write rows may execute one in a trigger or function, but as they often write
 * many, their keys wait.  Logical decoding, which may load the library to print
 * a filter, executes none, and in some minor versions cannot fill this cache.
 */
static bool
may_be_changing_files(void)
{
	PlannedStmt *statement;

	if (!IsTransactionState() || !OidIsValid(MyDatabaseId) ||
		IsParallelWorker() || HistoricSnapshotActive())
		return false;
	if (ActivePortal != NULL && ActivePortal->name[0] != '\0')
		return true;
	if (ActivePortal != NULL && ActivePortal->stmts != NIL)
	{
		statement = linitial_node(PlannedStmt, ActivePortal->stmts);
		if (statement->utilityStmt == NULL)
		{
			if (statement->commandType != CMD_SELECT ||
				statement->hasModifyingCTE)
				return false;
		}
		else if (IsA(statement->utilityStmt, CopyStmt) &&
				 castNode(CopyStmt, statement->utilityStmt)->is_from)
			return false;
		else if (changes_files(statement->utilityStmt))
			return true;
	}
	return EventCacheLookup(EVT_DDLCommandStart) != NIL ||
		EventCacheLookup(EVT_DDLCommandEnd) != NIL ||
		EventCacheLookup(EVT_SQLDrop) != NIL ||
		EventCacheLookup(EVT_TableRewrite) != NIL;
}

/* Arrange that pending hashes are written in time. */
void
bfi_init(void)
{
	if (may_be_changing_files())
		loading_statement = GetCurrentStatementStartTimestamp();
	multiplier = pg_prng_uint64(&pg_global_prng_state) | 1;
	RegisterXactCallback(flush_at_transaction_event, NULL);
	committing = committing_in_doubt = may_be_committing();
}

static bool
is_of_index(const BfiPendingIndex *pending, Relation index)
{
	return pending->oid == RelationGetRelid(index) &&
		RelFileLocatorEquals(pending->file, index->rd_locator);
}

static BfiPendingIndex *
create_pending_index(Relation index)
{
	BfiPendingIndex *pending = MemoryContextAllocZero(TopTransactionContext,
													  sizeof(*pending));

	pending->oid = RelationGetRelid(index);
	pending->file = index->rd_locator;
	pending->hashes = pending_create(TopTransactionContext, INITIAL_ROOM,
									 NULL);
	pending->next = pending_indexes;
	pending_indexes = pending;
	pending_size += pending_table_size(pending->hashes);
	return pending;
}

/*
 * The entry of an index, which the caller has remembered, or which is found in
 * the list, or created.  The lock on the index is held until the end of the
 * transaction, so that writing the hashes waits for nobody.
 */
static BfiPendingIndex *
get_pending_index(Relation index, BfiPending *known)
{
	BfiPendingIndex *pending = known->pending;

	if (known->removals != removals)
		pending = NULL;
	if (pending == NULL || !is_of_index(pending, index))
	{
		pending = pending_indexes;
		while (pending != NULL && !is_of_index(pending, index))
			pending = pending->next;
	}
	if (pending == NULL || !is_alive_inserter(pending->locker))
	{
		LockRelationOid(RelationGetRelid(index), RowExclusiveLock);
		if (pending == NULL)
			pending = create_pending_index(index);
		pending->locker = GetCurrentTransactionIdIfAny();
	}
	known->pending = pending;
	known->removals = removals;
	return pending;
}

/* Is there room in work_mem for another hash? */
static bool
has_room_for_hash(const pending_hash * hashes)
{
	size_t		size = pending_size - unwritten_size;

	if (hashes->members >= hashes->grow_threshold)
		size += pending_table_size(hashes);
	return size <= Min((size_t) work_mem * 1024, MaxAllocSize);
}

/*
 * Insert a hash.  The hash table enters its new size before it gets the
 * memory, so it must be restored if there is none: a subtransaction may end
 * with that error, and the transaction go on.
 */
static void
insert_pending_hash(pending_hash * hashes, uint64 hash)
{
	pending_hash before = *hashes;
	PendingHash *entry = NULL;
	bool		found;

	PG_TRY();
	{
		entry = pending_insert(hashes, hash, &found);
	}
	PG_CATCH();
	{
		*hashes = before;
		PG_RE_THROW();
	}
	PG_END_TRY();
	pending_size += pending_table_size(hashes) - pending_table_size(&before);
	if (!found || !is_alive_inserter(entry->inserter))
		entry->inserter = GetCurrentTransactionIdIfAny();
}

/* Let a hash wait until the commit, or until there are too many. */
void
bfi_pend(Relation index, uint64 hash, BfiPending *known)
{
	BfiPendingIndex *pending;

	if (committing_in_doubt)
		committing = committing_in_doubt = may_be_committing();
	if (committing || changing_files > 0 || IsInParallelMode() ||
		loading_statement == GetCurrentStatementStartTimestamp())
	{
		write_hashes(index, &hash, 1);
		return;
	}
	pending = get_pending_index(index, known);
	if (!has_room_for_hash(pending->hashes))
	{
		bfi_flush();
		pending = get_pending_index(index, known);
	}
	insert_pending_hash(pending->hashes, hash);
}

/* Which of these hashes are pending for an index?  Sets found for them. */
void
bfi_find_pending(Relation index, const uint64 *hashes, int n, bool *found)
{
	BfiPendingIndex *pending;
	int			i;

	for (pending = pending_indexes; pending != NULL; pending = pending->next)
	{
		if (pending->oid != RelationGetRelid(index) &&
			!RelFileLocatorEquals(pending->file, index->rd_locator))
			continue;
		for (i = 0; i < n; i++)
		{
			PendingHash *entry = pending_lookup(pending->hashes, hashes[i]);

			CHECK_FOR_INTERRUPTS();
			found[i] = found[i] ||
				(entry != NULL && is_alive_inserter(entry->inserter));
		}
	}
}
