/*-------------------------------------------------------------------------
 *
 * pending.c
 *	  Hashes that a statement has inserted but not yet written.
 *
 * They are written by the end of the statement, sorted by page, so that many
 * rows cost one change of a page and one WAL record.  Meanwhile, lookups of the
 * own session search them as well as the pages.  Parallel workers cannot, so
 * everything is written before a parallel plan is executed.
 *
 * While a statement inserts into a table, PostgreSQL keeps its session from
 * giving the index another file or another OID, and locks keep the others.
 * What a caller leaves that never says when it is done is written before the
 * commit, to the file that the index has then.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/relation.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/pg_bswap.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

/* Halves of a hash, so that there is no gap behind the index. */
typedef struct PendingKey
{
	Oid			index;
	uint32		high;
	uint32		low;
} PendingKey;

typedef struct PendingHash
{
	PendingKey	key;
	uint32		status;
} PendingHash;

static inline uint64
hash_of(PendingKey key)
{
	return (uint64) key.high << 32 | key.low;
}

static inline PendingKey
pending_key(Relation index, uint64 hash)
{
	PendingKey	key = {RelationGetRelid(index), (uint32) (hash >> 32),
	(uint32) hash};

	return key;
}

/* Secret and odd, so that nobody can choose keys that meet in the hash table. */
static uint64 multiplier;

/*
 * A hash table of hashes, which users may choose.  The low bits of its own hashes
 * are the high bits of a product, which depend on all bits of the factors.
 */
#define SH_PREFIX pending
#define SH_ELEMENT_TYPE PendingHash
#define SH_KEY_TYPE PendingKey
#define SH_KEY key
#define SH_HASH_KEY(table, key) \
	pg_bswap32((uint32) ((hash_of(key) ^ (key).index) * multiplier >> 32))
#define SH_EQUAL(table, a, b) \
	((a).low == (b).low && (a).high == (b).high && (a).index == (b).index)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define ST_SORT sort_hashes
#define ST_ELEMENT_TYPE PendingHash
#define ST_COMPARE(a, b) compare_hashes(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE

/* By index, and by page. */
static inline int
compare_hashes(const PendingHash *a, const PendingHash *b)
{
	uint64		left = hash_of(a->key);
	uint64		right = hash_of(b->key);

	if (a->key.index != b->key.index)
		return a->key.index < b->key.index ? -1 : 1;
	return (left > right) - (left < right);
}

#include "lib/sort_template.h"

/* A table of this size takes no more memory than a few rows. */
#define INITIAL_SIZE	16

/*
 * So many hashes are added to an index at once.  Others may wait for that, so
 * it is a fraction of a second.
 */
#define MAX_BATCH		(1 << 17)

/* Of all indexes, in the memory of the transaction; or NULL. */
static pending_hash * pending = NULL;

/* Where the first of them was inserted. */
static SubTransactionId first_subtransaction;

/*
 * Write hashes to an index.  Serializable transactions that have looked up one
 * of them before it was written hold a predicate lock, so they are told after
 * that.  Most errors come before it, so that the keys are not found when the
 * transaction is tried again.
 */
void
bfi_write(Relation index, uint64 *hashes, int n)
{
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	bfi_add(index, hashes, n);
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
}

/*
 * Write the ascending hashes of an index.  Between two batches, others may
 * measure how full its pages are, so each batch goes to all of them alike.
 */
static void
write_batches(const PendingHash *sorted, int n, uint64 *batch)
{
	Relation	index = try_relation_open(sorted->key.index, RowExclusiveLock);
	int			batches = (n - 1) / MAX_BATCH + 1;
	int			first;

	/* The subtransaction may be aborted that created it. */
	if (index == NULL)
		return;
	for (first = 0; first < batches; first++)
	{
		int			size = 0;
		int			i;

		for (i = first; i < n; i += batches)
			batch[size++] = hash_of(sorted[i].key);
		bfi_write(index, batch, size);
	}
	relation_close(index, RowExclusiveLock);
}

static void
forget_pending(void)
{
	if (pending->size <= INITIAL_SIZE)
		pending_reset(pending);
	else
	{
		pending_destroy(pending);
		pending = NULL;
	}
}

/*
 * Write all pending hashes.  They are forgotten only after that, because
 * writing them may fail in a subtransaction.  In an aborted one, which may end
 * a statement, nothing can be written.
 */
void
bfi_flush(void)
{
	PendingHash *sorted;
	PendingHash *entry;
	pending_iterator iterator;
	uint64	   *batch;
	int			n = 0;
	int			first,
				end;

	if (pending == NULL || pending->members == 0 || !IsTransactionState())
		return;
	sorted = MemoryContextAllocHuge(CurrentMemoryContext,
									pending->members * sizeof(PendingHash));
	pending_start_iterate(pending, &iterator);
	while ((entry = pending_iterate(pending, &iterator)) != NULL)
		sorted[n++] = *entry;
	sort_hashes(sorted, n);
	batch = palloc(Min(n, MAX_BATCH) * sizeof(uint64));
	for (first = 0; first < n; first = end)
	{
		end = first + 1;
		while (end < n && sorted[end].key.index == sorted[first].key.index)
			end++;
		write_batches(sorted + first, end - first, batch);
	}
	pfree(batch);
	pfree(sorted);
	forget_pending();
}

/* From 17 on, the end of a statement that may have inserted into an index. */
void
bfi_insert_cleanup(Relation index, IndexInfo *info)
{
	(void) index;
	if (info->ii_AmCache != NULL)
		bfi_flush();
}

/*
 * Write what is left by callers that do not say that they are done, such as
 * CREATE INDEX CONCURRENTLY before PostgreSQL 17.
 */
static void
end_transaction(XactEvent event, void *arg)
{
	(void) arg;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		bfi_flush();
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE ||
			 event == XACT_EVENT_ABORT)
		pending = NULL;
}

/*
 * If hashes came before a subtransaction, the statement that it is part of goes
 * on when it is aborted.  Then all are written, also its own.
 */
static void
end_subtransaction(SubXactEvent event, SubTransactionId ended,
				   SubTransactionId parent, void *arg)
{
	(void) parent;
	(void) arg;
	if (event == SUBXACT_EVENT_ABORT_SUB && pending != NULL &&
		pending->members > 0 && first_subtransaction >= ended)
		forget_pending();
}

/* Arrange that pending hashes are written in time. */
void
bfi_init(void)
{
	multiplier = pg_prng_uint64(&pg_global_prng_state) | 1;
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}

/*
 * Do the hashes fill work_mem?  Beyond two thirds, the hash table may double
 * its size because of some that are far from their place.
 */
static bool
is_full(void)
{
	return pending->members * sizeof(PendingHash) / 2 * 3 >=
		Min((size_t) work_mem * 1024, MaxAllocSize);
}

/*
 * Let a hash wait until the end of the statement, or until there are too many.
 * The hash table enters its new size before it gets the memory, so it is
 * restored if there is none: a subtransaction may end with that error.
 */
void
bfi_pend(Relation index, uint64 hash)
{
	pending_hash before;
	bool		found;

	if (pending != NULL && is_full())
		bfi_flush();
	if (pending == NULL)
		pending = pending_create(TopTransactionContext, INITIAL_SIZE / 2, NULL);
	if (pending->members == 0)
		first_subtransaction = GetCurrentSubTransactionId();
	before = *pending;
	PG_TRY();
	{
		pending_insert(pending, pending_key(index, hash), &found);
	}
	PG_CATCH();
	{
		*pending = before;
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* Which of these hashes are pending for an index?  Sets found for them. */
void
bfi_find_pending(Relation index, const uint64 *hashes, int n, bool *found)
{
	int			i;

	if (pending == NULL || pending->members == 0)
		return;
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!found[i])
			found[i] = pending_lookup(pending,
									  pending_key(index, hashes[i])) != NULL;
	}
}
