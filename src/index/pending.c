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
#include "storage/sinval.h"
#include "utils/memutils.h"

/* Halves of a hash, so that there is no gap behind the index. */
typedef struct PendingKey
{
	Oid			index;
	uint32		high;
	uint32		low;
} PendingKey;

typedef struct PendingEntry
{
	PendingKey	key;
	uint32		status;
} PendingEntry;

static inline uint64
hash_of(PendingKey key)
{
	return (uint64) key.high << 32 | key.low;
}

static inline PendingKey
pending_key(Oid index, uint64 hash)
{
	PendingKey	key = {index, (uint32) (hash >> 32), (uint32) hash};

	return key;
}

static inline bool
is_same_key(PendingKey a, PendingKey b)
{
	return a.low == b.low && a.high == b.high && a.index == b.index;
}

/* Secret and odd, so that nobody can choose keys that meet in the hash table. */
static uint64 multiplier;

/*
 * A hash table of hashes, which users may choose.  The low bits of its own hashes
 * are the high bits of a product, which depend on all bits of the factors.
 */
#define SH_PREFIX pending
#define SH_ELEMENT_TYPE PendingEntry
#define SH_KEY_TYPE PendingKey
#define SH_KEY key
#define SH_HASH_KEY(table, key) \
	pg_bswap32((uint32) ((hash_of(key) ^ (key).index) * multiplier >> 32))
#define SH_EQUAL(table, a, b) is_same_key(a, b)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define ST_SORT sort_pending
#define ST_ELEMENT_TYPE PendingKey
#define ST_COMPARE(a, b) compare_pending(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE

/* By index, and by page. */
static inline int
compare_pending(const PendingKey *a, const PendingKey *b)
{
	uint64		left = hash_of(*a);
	uint64		right = hash_of(*b);

	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return (left > right) - (left < right);
}

#include "lib/sort_template.h"

/* So many take no more memory than a few rows. */
#define INITIAL_ROOM	16

/*
 * So many hashes are added to an index at once.  Others may wait for that, so
 * it is a fraction of a second.
 */
#define MAX_BATCH		(1 << 17)

/* So many times, a set is taken for one that VACUUM is still filling. */
#define MAX_USES		64

/*
 * Of all indexes, in any order and with repetitions, in the memory of the
 * transaction; or NULL.
 */
static PendingKey *pending = NULL;
static size_t npending = 0;
static size_t pending_room = 0;

/* The first of them in a hash table, which the first lookup makes; or NULL. */
static pending_hash * searched = NULL;
static size_t nsearched = 0;

/* Where the first of them was inserted. */
static SubTransactionId first_subtransaction;

/*
 * Is VACUUM filling a next set that the meta page has named?  To add keys to one
 * that was left behind does no harm, but takes time, and more pages.  So after it
 * was there, the lock of VACUUM is looked for only now and then.
 */
static bool
is_being_filled(Relation index, uint32 set)
{
	static Oid	last_index = InvalidOid;
	static uint32 last_set;
	static int	uses;

	if (last_index != RelationGetRelid(index) || last_set != set ||
		uses == MAX_USES)
	{
		last_index = bfi_is_being_rebuilt(index) ? RelationGetRelid(index) :
			InvalidOid;
		last_set = set;
		uses = 0;
	}
	uses++;
	return last_index == RelationGetRelid(index);
}

/*
 * Add ascending hashes of rows that are in the table.
 *
 * A set that VACUUM is filling needs them as well, and so does what it becomes if
 * that takes the place of the current one before all are added.  A set that comes
 * later does not, because VACUUM reads the table after the meta page has named it.
 * Nor does a set that was left behind.
 */
static void
add_to_sets(Relation index, const uint64 *hashes, int n)
{
	Buffer		buffer = bfi_read_buffer(index, BFI_META_BLOCK, NULL);
	BfiMeta		meta;
	uint32		current;
	uint32		next;

	do
	{
		IncrBufferRefCount(buffer);
		bfi_read_meta_in(index, buffer, &meta);
		current = meta.current.number;
		next = meta.next.number;
		if (next > current && is_being_filled(index, next))
			bfi_add_to_set(index, &meta, next, hashes, n);
		bfi_add_to_set(index, &meta, current, hashes, n);
	} while (next != 0 && bfi_current_set(buffer) != current);
	ReleaseBuffer(buffer);
}

/*
 * Write hashes to an index.  Serializable transactions that have looked up one
 * of them before it was written hold a predicate lock, so they are told after
 * that.  Most errors come before it, so that the keys are not found when the
 * transaction is tried again.
 */
void
bfi_write(Relation index, const uint64 *hashes, int n)
{
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	add_to_sets(index, hashes, n);
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
}

/*
 * Write the ascending hashes of an index.  Between two batches, others may
 * measure how full its pages are, so each batch goes to all of them alike.
 */
static void
write_batches(const PendingKey *sorted, size_t n, uint64 *batch)
{
	Relation	index = try_relation_open(sorted->index, RowExclusiveLock);
	size_t		batches = (n - 1) / MAX_BATCH + 1;
	size_t		first;

	/* The subtransaction may be aborted that created it. */
	if (index == NULL)
		return;
	for (first = 0; first < batches; first++)
	{
		int			size = 0;
		size_t		i;

		for (i = first; i < n; i += batches)
			batch[size++] = hash_of(sorted[i]);
		bfi_write(index, batch, size);
	}
	relation_close(index, RowExclusiveLock);
}

static void
forget_searched(void)
{
	if (searched != NULL)
		pending_destroy(searched);
	searched = NULL;
	nsearched = 0;
}

static void
forget_pending(void)
{
	forget_searched();
	npending = 0;
	if (pending_room > INITIAL_ROOM)
	{
		pfree(pending);
		pending = NULL;
		pending_room = 0;
	}
}

/* Sort the pending hashes, and remove repetitions. */
static void
sort_and_unite(void)
{
	size_t		n = 1;
	size_t		i;

	forget_searched();
	sort_pending(pending, npending);
	for (i = 1; i < npending; i++)
	{
		if (!is_same_key(pending[i], pending[n - 1]))
			pending[n++] = pending[i];
	}
	npending = n;
}

/*
 * Write all pending hashes.  They are forgotten only after that, because
 * writing them may fail in a subtransaction.  In an aborted one, which may end
 * a statement, nothing can be written.
 */
void
bfi_flush(void)
{
	uint64	   *batch;
	size_t		first,
				end;

	if (npending == 0 || !IsTransactionState())
		return;
	sort_and_unite();
	batch = palloc(Min(npending, MAX_BATCH) * sizeof(uint64));
	for (first = 0; first < npending; first = end)
	{
		end = first + 1;
		while (end < npending && pending[end].index == pending[first].index)
			end++;
		write_batches(pending + first, end - first, batch);
	}
	pfree(batch);
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
 * Tell other sessions of changes to relations before they see the rows of the
 * transaction, which PostgreSQL does after that.  Until it ends, it has what it
 * has changed locked, so that nobody remembers it again.  Messages of relations
 * are those that make sessions forget.
 */
static void
tell_sessions(void)
{
	SharedInvalidationMessage *messages;
	bool		init_file;
	int			all = xactGetCommittedInvalidationMessages(&messages,
														   &init_file);
	int			n = 0;
	int			i;

	for (i = 0; i < all; i++)
	{
		if (messages[i].id == SHAREDINVALRELCACHE_ID)
			messages[n++] = messages[i];
	}
	if (n > 0)
		SendSharedInvalidMessages(messages, n);
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
	{
		bfi_flush();
		tell_sessions();
	}
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE ||
			 event == XACT_EVENT_ABORT)
	{
		pending = NULL;
		searched = NULL;
		npending = pending_room = nsearched = 0;
	}
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
	if (event == SUBXACT_EVENT_ABORT_SUB && npending > 0 &&
		first_subtransaction >= ended)
		forget_pending();
}

/* Arrange that pending hashes are written in time. */
void
bfi_init(void)
{
	multiplier = pg_prng_uint64(&pg_global_prng_state) | 1;
	bfi_count_relation_changes();
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}

/* Do the hashes fill work_mem? */
static bool
is_full(void)
{
	size_t		size = npending * sizeof(PendingKey);

	if (searched != NULL)
		size += searched->size * sizeof(PendingEntry);
	return size >= (size_t) work_mem * 1024;
}

static void
make_room_for_pending(void)
{
	size_t		room = Max(2 * pending_room, INITIAL_ROOM);

	if (pending == NULL)
		pending = MemoryContextAlloc(TopTransactionContext,
									 room * sizeof(PendingKey));
	else
		pending = repalloc_huge(pending, room * sizeof(PendingKey));
	pending_room = room;
}

/* Let a hash wait until the end of the statement, or until there are too many. */
void
bfi_pend(Relation index, uint64 hash)
{
	if (is_full())
		bfi_flush();
	if (npending == pending_room)
		make_room_for_pending();
	if (npending == 0)
		first_subtransaction = GetCurrentSubTransactionId();
	pending[npending++] = pending_key(RelationGetRelid(index), hash);
}

/*
 * Bring all pending hashes into the hash table.  It has its new size before it
 * gets the memory, so it is made again if there was none: a subtransaction may
 * end with that error.
 */
static void
search_all(void)
{
	bool		found;

	PG_TRY();
	{
		if (searched == NULL)
			searched = pending_create(TopTransactionContext, INITIAL_ROOM,
									  NULL);
		for (; nsearched < npending; nsearched++)
		{
			CHECK_FOR_INTERRUPTS();
			pending_insert(searched, pending[nsearched], &found);
		}
	}
	PG_CATCH();
	{
		forget_searched();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* Which of these hashes are pending for an index?  Sets found for them. */
void
bfi_find_pending(Oid index, const uint64 *hashes, int n, bool *found)
{
	int			i;

	if (npending == 0)
		return;
	if (nsearched < npending)
		search_all();
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!found[i])
			found[i] = pending_lookup(searched,
									  pending_key(index, hashes[i])) != NULL;
	}
}
