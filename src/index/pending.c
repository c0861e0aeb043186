/*-------------------------------------------------------------------------
 *
 * pending.c
 *	  Hashes that a transaction has inserted but not yet written.
 *
 * Nobody else sees the rows of a transaction before it commits, so their keys
 * may wait until then.  Sorted by page, many of them cost one change of a page
 * and one WAL record.  Lookups of the own session search the pending hashes as
 * well as the pages.  Parallel workers cannot, so everything is written before
 * a parallel plan starts.
 *
 * After an abort of the transaction the hashes are forgotten.  Those of an
 * aborted subtransaction are written, which does no harm.
 *
 * A subtransaction may give an index another file, by TRUNCATE or REINDEX, or
 * drop it, and be rolled back.  Then the index has its previous file again,
 * which lacks the hashes that were written to the new one.  So hashes stay
 * pending until they are in the file that the index had when they were
 * inserted, or until that file can only return in a rollback that removes
 * their rows, too.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

typedef struct PendingHash
{
	uint64		hash;
	char		status;
} PendingHash;

/* A hash table of hashes, each of which is its own hash. */
#define SH_PREFIX pending
#define SH_ELEMENT_TYPE PendingHash
#define SH_KEY_TYPE uint64
#define SH_KEY hash
#define SH_HASH_KEY(table, key) ((uint32) (key))
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* The pending hashes of one index that were inserted while it had one file. */
typedef struct PendingIndex
{
	Oid			oid;
	RelFileLocator file;
	RelFileLocator written;		/* another file that has the hashes */
	SubTransactionId inserted;	/* the outermost one that inserted hashes */
	SubTransactionId replaced;	/* that gave the index a new file, or invalid */
	pending_hash *hashes;
	size_t		nwaiting;		/* since the last attempt to write */
	struct PendingIndex *next;
} PendingIndex;

/* A table of this size takes no more memory than a few statements. */
#define INITIAL_ROOM	16

/* Of this transaction, in its memory. */
static PendingIndex *pending_indexes = NULL;
static size_t nwaiting = 0;

/* The commit has begun: what comes now must be written at once. */
static bool committing = false;

static ExecutorStart_hook_type previous_ExecutorStart = NULL;

static PendingIndex *
find_index(Relation index)
{
	PendingIndex *pending;

	for (pending = pending_indexes; pending != NULL; pending = pending->next)
	{
		if (pending->oid == RelationGetRelid(index) &&
			RelFileLocatorEquals(pending->file, index->rd_locator))
			return pending;
	}
	return NULL;
}

static int
compare_hashes(uint64 a, uint64 b)
{
	return a < b ? -1 : a > b;
}

#define ST_SORT sort_hashes
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) compare_hashes(*(a), *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* Write pending hashes to the file that the index has. */
static void
write_hashes(Relation index, pending_hash * pending)
{
	uint64	   *hashes = MemoryContextAllocHuge(CurrentMemoryContext,
												pending->members *
												sizeof(uint64));
	PendingHash *entry;
	pending_iterator iterator;
	int			n = 0;

	pending_start_iterate(pending, &iterator);
	while ((entry = pending_iterate(pending, &iterator)) != NULL)
		hashes[n++] = entry->hash;
	sort_hashes(hashes, n);
	bfi_add(index, hashes, n);
	pfree(hashes);
}

/*
 * Write the pending hashes of an index, which may have been dropped.
 *
 * Hashes are removed only after that, because writing them may fail in a
 * subtransaction.
 */
static void
write_pending(PendingIndex *pending)
{
	Relation	index = try_relation_open(pending->oid, RowExclusiveLock);
	bool		same;

	if (index == NULL)
		return;
	same = RelFileLocatorEquals(pending->file, index->rd_locator);
	if (same || !RelFileLocatorEquals(pending->written, index->rd_locator))
		write_hashes(index, pending->hashes);
	if (same)
		pending_reset(pending->hashes);
	else
		pending->written = index->rd_locator;
	relation_close(index, RowExclusiveLock);
}

/* While an index is rebuilt, it has no pages yet. */
static void
flush_index(PendingIndex *pending)
{
	if (pending->hashes->members > 0 &&
		!ReindexIsProcessingIndex(pending->oid))
		write_pending(pending);
	nwaiting -= pending->nwaiting;
	pending->nwaiting = 0;
}

/* Write all pending hashes of the transaction. */
void
bfi_flush(void)
{
	PendingIndex *index;

	for (index = pending_indexes; index != NULL; index = index->next)
		flush_index(index);
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	(void) arg;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			bfi_flush();
			committing = true;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			pending_indexes = NULL;
			nwaiting = 0;
			committing = false;
			break;
		default:
			break;
	}
}

/* Forget hashes whose file cannot come back unless their rows are gone. */
static void
discard_replaced(void)
{
	PendingIndex **link = &pending_indexes;
	PendingIndex *pending;

	while ((pending = *link) != NULL)
	{
		if (pending->replaced != pending->inserted)
		{
			link = &pending->next;
			continue;
		}
		*link = pending->next;
		nwaiting -= pending->nwaiting;
		pending_destroy(pending->hashes);
		pfree(pending);
	}
}

static void
at_subtransaction_event(SubXactEvent event, SubTransactionId id,
						SubTransactionId parent, void *arg)
{
	PendingIndex *pending;

	(void) arg;
	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	for (pending = pending_indexes; pending != NULL; pending = pending->next)
	{
		if (pending->inserted == id)
			pending->inserted = parent;
		if (pending->replaced == id)
			pending->replaced = event == SUBXACT_EVENT_COMMIT_SUB ? parent :
				InvalidSubTransactionId;
	}
	discard_replaced();
}

/* A file of the index has been built, from all rows of the table. */
void
bfi_note_build(Relation index)
{
	PendingIndex *pending;

	for (pending = pending_indexes; pending != NULL; pending = pending->next)
	{
		if (pending->oid != RelationGetRelid(index) ||
			RelFileLocatorEquals(pending->file, index->rd_locator))
			continue;
		pending->written = index->rd_locator;
		if (pending->replaced == InvalidSubTransactionId)
			pending->replaced = GetCurrentSubTransactionId();
	}
	discard_replaced();
}

/* Parallel workers see the rows of the transaction. */
static void
at_executor_start(QueryDesc *query, int eflags)
{
	if (query->plannedstmt->parallelModeNeeded)
		bfi_flush();
	if (previous_ExecutorStart != NULL)
		previous_ExecutorStart(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/* Arrange that pending hashes are written in time. */
static void
install_callbacks(void)
{
	static bool installed = false;

	if (installed)
		return;
	RegisterXactCallback(at_transaction_event, NULL);
	RegisterSubXactCallback(at_subtransaction_event, NULL);
	previous_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = at_executor_start;
	installed = true;
}

static PendingIndex *
make_index(Relation index)
{
	PendingIndex *pending;

	install_callbacks();
	pending = MemoryContextAllocZero(TopTransactionContext, sizeof(*pending));
	pending->oid = RelationGetRelid(index);
	pending->file = index->rd_locator;
	pending->hashes = pending_create(TopTransactionContext, INITIAL_ROOM, NULL);
	pending->next = pending_indexes;
	pending_indexes = pending;
	return pending;
}

/*
 * Insert a hash; returns false if it was there.  The hash table enters its new
 * size before it gets the memory, so it must be restored if there is none: a
 * subtransaction may end with that error, and the transaction go on.
 */
static bool
insert_hash(pending_hash * hashes, uint64 hash)
{
	pending_hash before = *hashes;
	bool		found;

	PG_TRY();
	{
		pending_insert(hashes, hash, &found);
	}
	PG_CATCH();
	{
		*hashes = before;
		PG_RE_THROW();
	}
	PG_END_TRY();
	return !found;
}

/* Let a hash wait until the commit, or until there are too many. */
void
bfi_pend(Relation index, uint64 hash)
{
	PendingIndex *pending;

	if (committing || IsInParallelMode())
	{
		bfi_add(index, &hash, 1);
		return;
	}

	pending = find_index(index);
	if (pending == NULL)
		pending = make_index(index);
	if (pending->hashes->members == 0)
		pending->inserted = GetCurrentSubTransactionId();
	if (insert_hash(pending->hashes, hash))
	{
		pending->nwaiting++;
		nwaiting++;
	}
	if (nwaiting * sizeof(PendingHash) >
		Min((size_t) work_mem * 1024, MaxAllocSize))
		bfi_flush();
}

/* Is this hash pending for an index? */
bool
bfi_is_pending(Oid index, uint64 hash)
{
	PendingIndex *pending;

	for (pending = pending_indexes; pending != NULL; pending = pending->next)
	{
		if (pending->oid == index &&
			pending_lookup(pending->hashes, hash) != NULL)
			return true;
	}
	return false;
}
