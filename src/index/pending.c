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
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/relation.h"
#include "access/xact.h"
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

/* The pending hashes of one index. */
typedef struct PendingIndex
{
	Oid			oid;
	pending_hash *hashes;
	struct PendingIndex *next;
} PendingIndex;

/* A table of this size takes no more memory than a few statements. */
#define INITIAL_ROOM	16

/* Of this transaction, in its memory. */
static PendingIndex *pending_indexes = NULL;
static size_t npending = 0;

/* The commit has begun: what comes now must be written at once. */
static bool committing = false;

static ExecutorStart_hook_type previous_ExecutorStart = NULL;

static PendingIndex *
find_index(Oid oid)
{
	PendingIndex *index;

	for (index = pending_indexes; index != NULL; index = index->next)
	{
		if (index->oid == oid)
			return index;
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

/*
 * Write the pending hashes of an index, which may have been dropped by now.
 * They are removed only after that, because writing them may fail in a
 * subtransaction.
 */
static void
flush_index(PendingIndex *pending)
{
	Relation	index;
	uint64	   *hashes;
	PendingHash *entry;
	pending_iterator iterator;
	int			n = 0;

	if (pending->hashes->members == 0)
		return;
	index = try_relation_open(pending->oid, RowExclusiveLock);
	if (index != NULL)
	{
		hashes = MemoryContextAllocHuge(CurrentMemoryContext,
										pending->hashes->members *
										sizeof(uint64));
		pending_start_iterate(pending->hashes, &iterator);
		while ((entry = pending_iterate(pending->hashes, &iterator)) != NULL)
			hashes[n++] = entry->hash;
		sort_hashes(hashes, n);
		bfi_add(index, hashes, n);
		pfree(hashes);
		relation_close(index, RowExclusiveLock);
	}
	npending -= pending->hashes->members;
	pending_reset(pending->hashes);
}

/* Write all pending hashes of the transaction. */
void
bfi_flush(void)
{
	PendingIndex *index;

	for (index = pending_indexes; index != NULL && npending > 0;
		 index = index->next)
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
			npending = 0;
			committing = false;
			break;
		default:
			break;
	}
}

/* Parallel workers see the rows of the transaction. */
static void
at_executor_start(QueryDesc *query, int eflags)
{
	if (npending > 0 && query->plannedstmt->parallelModeNeeded)
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
	previous_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = at_executor_start;
	installed = true;
}

static PendingIndex *
make_index(Oid oid)
{
	PendingIndex *index;

	install_callbacks();
	index = MemoryContextAlloc(TopTransactionContext, sizeof(*index));
	index->oid = oid;
	index->hashes = pending_create(TopTransactionContext, INITIAL_ROOM, NULL);
	index->next = pending_indexes;
	pending_indexes = index;
	return index;
}

/* Let a hash wait until the commit, or until there are too many. */
void
bfi_pend(Relation index, uint64 hash)
{
	PendingIndex *pending;
	bool		found;

	if (committing || IsInParallelMode())
	{
		bfi_add(index, &hash, 1);
		return;
	}

	pending = pending_indexes;
	if (pending == NULL || pending->oid != RelationGetRelid(index))
		pending = find_index(RelationGetRelid(index));
	if (pending == NULL)
		pending = make_index(RelationGetRelid(index));
	pending_insert(pending->hashes, hash, &found);
	npending += !found;
	if (npending * sizeof(PendingHash) > (size_t) work_mem * 1024)
		bfi_flush();
}

/* Is this hash pending for an index? */
bool
bfi_is_pending(Oid index, uint64 hash)
{
	PendingIndex *pending = npending > 0 ? find_index(index) : NULL;

	return pending != NULL && pending_lookup(pending->hashes, hash) != NULL;
}
