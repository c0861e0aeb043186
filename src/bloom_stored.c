/*-------------------------------------------------------------------------
 *
 * bloom_stored.c
 *	  From a filter argument to something that can be asked, without fetching
 *	  the whole filter for each row.
 *
 * A filter in memory is used where it lies, and an expanded one as it is.
 * One that is stored out of line is asked by slices at first: its front,
 * which the call site remembers, and then the block of the key.  When the
 * slices of one value have cost as much as it costs to read all of it, it is
 * read as a whole and kept.  While there is memory for it, this costs at most
 * twice of what would have been best, had the number of keys been known (the
 * ski-rental problem).  What is stored compressed cannot be read in slices,
 * and is kept at once.
 *
 * What is kept belongs to the call site.  It is found by its TOAST pointer:
 * values of TOAST tables are never changed, and while the transaction lasts
 * none that it has seen gives its identifier away to another, short of four
 * billion new values.  In the next transaction everything is forgotten.
 *
 * The memory of a call site stays within work_mem; a filter that is larger
 * than that is kept only as long as no other is asked.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "access/detoast.h"
#include "access/tableam.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Size of a TOAST chunk, roughly; the unit of what reading costs. */
#define CHUNK_SIZE	(BLCKSZ / 4)

/* What a slice costs, in chunks of a value that is read as a whole. */
#define SLICE_COST	3

/* A filter of fewer chunks costs less than two slices of it. */
#define SMALL_CHUNKS	(2 * SLICE_COST)

/* A filter that is stored out of line. */
typedef struct Stored
{
	struct varatt_external pointer; /* key of the hash table */
	dlist_node	node;			/* in PgBloomKept.recent */
	uint8	   *front;			/* or NULL: the whole is kept */
	struct varlena *whole;
	MemoryContext context;		/* of the whole, nothing else in it */
	Size		charged;		/* its part of PgBloomKept.charged */
	uint64		spent;			/* on slices of it */
} Stored;

struct PgBloomKept
{
	BfView		view;			/* of the filter asked last, which is */
	Stored	   *current;		/* either this one, */
	const uint8_t *plain;		/* or one in memory, with its image here, */
	uint8_t		front[BF_MAX_FRONT];	/* which begins like this */
	size_t		front_size;

	MemoryContext context;		/* of all that is stored, or NULL */
	LocalTransactionId lxid;	/* and seen in this transaction */
	HTAB	   *stored;
	dlist_head	recent;			/* the one asked last comes first */
	Size		charged;		/* for all of them */
	uint64		run;			/* spent since the current one came */

	struct varlena *compressed; /* a value that was compressed in its row */
	struct varlena *decompressed;

	/* A slice with its length word. */
	union
	{
		int32		alignment;
		struct varlena value;
		char		bytes[VARHDRSZ + BF_MAX_PART];
	}			slice;
};

StaticAssertDecl(BF_MAX_FRONT <= BF_MAX_PART, "no room for a front");

static Size
memory_limit(void)
{
	return (Size) work_mem * 1024;
}

static void
drop(PgBloomKept *kept, Stored *stored)
{
	dlist_delete(&stored->node);
	kept->charged -= stored->charged;
	if (stored->front != NULL)
		pfree(stored->front);
	if (stored->whole != NULL)
		MemoryContextDelete(stored->context);
	hash_search(kept->stored, &stored->pointer, HASH_REMOVE, NULL);
}

/*
 * Account for what the current filter takes, unless it is larger than all
 * that is allowed.  Others make room for it.
 */
static void
charge(PgBloomKept *kept, Stored *stored)
{
	Size		size = sizeof(Stored);

	if (stored->whole == NULL)
		size += bf_header_size(&kept->view.params, kept->view.nlayers);
	else if (kept->view.size <= memory_limit())
		size += kept->view.size;
	kept->charged += size - stored->charged;
	stored->charged = size;

	while (kept->charged > memory_limit())
	{
		Stored	   *oldest = dlist_tail_element(Stored, node, &kept->recent);

		if (oldest == stored)
			break;
		drop(kept, oldest);
	}
}

/*
 * Another filter is going to be asked.  What does not fit into memory beside
 * it is not kept.
 */
static void
leave(PgBloomKept *kept)
{
	Stored	   *stored = kept->current;

	kept->current = NULL;
	kept->plain = NULL;
	if (stored != NULL && stored->whole != NULL &&
		kept->view.size > memory_limit())
		drop(kept, stored);
}

static void
forget_all(PgBloomKept *kept)
{
	HASHCTL		control;

	kept->current = NULL;
	kept->lxid = InvalidLocalTransactionId;
	kept->charged = 0;
	dlist_init(&kept->recent);
	if (kept->context == NULL)
		kept->context = AllocSetContextCreate(GetMemoryChunkContext(kept),
											  "stored Bloom filters",
											  ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(kept->context);

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(struct varatt_external);
	control.entrysize = sizeof(Stored);
	control.hcxt = kept->context;
	kept->stored = hash_create("stored filters of bloomfilter", 16, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	kept->lxid = MY_LOCAL_TRANSACTION_ID;
}

/* Look into a filter in memory, unless it is the one seen last. */
static void
open_plain(PgBloomKept *kept, const struct varlena *value)
{
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);

	/* Other values may have come to lie here since. */
	if (kept->plain == image && kept->view.size == size &&
		memcmp(image, kept->front, kept->front_size) == 0)
		return;

	leave(kept);
	pgbloom_open(value, &kept->view);
	kept->front_size = bf_header_size(&kept->view.params,
									  kept->view.nlayers);
	memcpy(kept->front, image, kept->front_size);
	kept->plain = image;
}

/*
 * A value that is compressed in its row has nothing to be known by but its
 * bytes, of which there is less than a page.  One of them is kept.
 */
static struct varlena *
decompress(PgBloomKept *kept, struct varlena *value)
{
	MemoryContext old;

	if (kept->compressed != NULL)
	{
		if (VARSIZE_ANY(kept->compressed) == VARSIZE_ANY(value) &&
			memcmp(kept->compressed, value, VARSIZE_ANY(value)) == 0)
			return kept->decompressed;
		pfree(kept->compressed);
		kept->compressed = NULL;
		pfree(kept->decompressed);
	}

	old = MemoryContextSwitchTo(GetMemoryChunkContext(kept));
	kept->decompressed = detoast_attr(value);
	kept->compressed = palloc(VARSIZE_ANY(value));
	memcpy(kept->compressed, value, VARSIZE_ANY(value));
	MemoryContextSwitchTo(old);
	return kept->decompressed;
}

/* Read a slice of the current value into PgBloomKept.slice. */
static const uint8_t *
read_slice(PgBloomFilter *filter, size_t at, size_t length)
{
	struct varatt_external pointer;
	struct varlena *slice = &filter->parts->slice.value;

	VARATT_EXTERNAL_GET_POINTER(pointer, filter->pointer);
	if (filter->toast == NULL)
		filter->toast = table_open(pointer.va_toastrelid, AccessShareLock);
	SET_VARSIZE(slice, VARHDRSZ + length);
	table_relation_fetch_toast_slice(filter->toast, pointer.va_valueid,
									 VARATT_EXTERNAL_GET_EXTSIZE(pointer),
									 (int32) at, (int32) length, slice);
	return (const uint8_t *) VARDATA(slice);
}

static const uint8_t *
read_part(void *context, size_t at, size_t length)
{
	PgBloomFilter *filter = context;

	filter->parts->current->spent += SLICE_COST;
	filter->parts->run += SLICE_COST;
	return read_slice(filter, at, length);
}

/*
 * Read all of a value into a memory context of its own, which is kept only if
 * that succeeds.
 */
static struct varlena *
read_whole(PgBloomKept *kept, const struct varlena *pointer,
		   MemoryContext *context)
{
	MemoryContext old;
	struct varlena *whole;

	*context = AllocSetContextCreate(CurrentMemoryContext,
									 "stored Bloom filter",
									 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(*context);
	whole = detoast_attr(unconstify(struct varlena *, pointer));
	MemoryContextSwitchTo(old);
	pgbloom_open(whole, &kept->view);
	MemoryContextSetParent(*context, kept->context);
	return whole;
}

/* Go over from slices of the current filter to the whole. */
static void
keep_whole(PgBloomFilter *filter)
{
	PgBloomKept *kept = filter->parts;
	Stored	   *stored = kept->current;

	/* After an error nothing is known of the view. */
	kept->current = NULL;
	stored->whole = read_whole(kept, filter->pointer, &stored->context);
	kept->current = stored;
	pfree(stored->front);
	stored->front = NULL;
	charge(kept, stored);
	filter->parts = NULL;
}

/*
 * Whether to read the current filter as a whole, which replaces slices of
 * this cost in the next step and more of them later.  Others are driven out
 * of memory only if this one has been paid for in one run: where many are
 * asked in turn, none would be there when its turn comes again.
 */
static bool
is_whole_cheaper(const PgBloomKept *kept, uint64 cost)
{
	uint64		whole = kept->view.size / CHUNK_SIZE + 1;

	return kept->run + cost > whole ||
		(kept->current->spent + cost > whole &&
		 kept->charged + kept->view.size <= memory_limit());
}

/* Make the acquaintance of a stored filter. */
static Stored *
add_stored(PgBloomKept *kept, PgBloomFilter *filter,
		   const struct varatt_external *pointer)
{
	size_t		size = VARATT_EXTERNAL_GET_EXTSIZE(*pointer);
	struct varlena *whole = NULL;
	MemoryContext context = NULL;
	uint8_t    *front = NULL;
	Stored	   *stored;

	/* The first is VARATT_EXTERNAL_IS_COMPRESSED, of which clang warns. */
	if (size + VARHDRSZ < (size_t) pointer->va_rawsize ||
		size < SMALL_CHUNKS * CHUNK_SIZE)
		whole = read_whole(kept, filter->pointer, &context);
	else
	{
		size_t		front_size;

		pgbloom_open_front(read_slice(filter, 0, BF_MAX_FRONT), size,
						   &kept->view);
		front_size = bf_header_size(&kept->view.params, kept->view.nlayers);
		front = MemoryContextAlloc(kept->context, front_size);
		memcpy(front, VARDATA(&kept->slice.value), front_size);
	}

	stored = hash_search(kept->stored, pointer, HASH_ENTER, NULL);
	dlist_push_head(&kept->recent, &stored->node);
	stored->front = front;
	stored->whole = whole;
	stored->context = context;
	stored->charged = 0;
	stored->spent = kept->run = SLICE_COST;
	return stored;
}

/* Make a stored filter the current one. */
static void
open_stored(PgBloomKept *kept, PgBloomFilter *filter)
{
	struct varatt_external pointer;
	Stored	   *stored = kept->current;

	VARATT_EXTERNAL_GET_POINTER(pointer, filter->pointer);
	if (kept->lxid != MY_LOCAL_TRANSACTION_ID)
		forget_all(kept);
	else if (stored != NULL &&
			 memcmp(&stored->pointer, &pointer, sizeof(pointer)) == 0)
	{
		filter->parts = stored->whole == NULL ? kept : NULL;
		return;
	}

	leave(kept);
	kept->run = 0;
	filter->parts = kept;
	stored = hash_search(kept->stored, &pointer, HASH_FIND, NULL);
	if (stored == NULL)
		stored = add_stored(kept, filter, &pointer);
	else
	{
		dlist_move_head(&kept->recent, &stored->node);
		if (stored->whole != NULL)
			pgbloom_open(stored->whole, &kept->view);
		else
			pgbloom_open_front(stored->front,
							   VARATT_EXTERNAL_GET_EXTSIZE(pointer),
							   &kept->view);
	}
	kept->current = stored;
	charge(kept, stored);
	if (stored->whole != NULL)
		filter->parts = NULL;
}

/* Make a filter argument ready to be asked. */
void
pgbloom_filter_open(FunctionCallInfo fcinfo, int argno, PgBloomFilter *filter)
{
	Datum		argument = PG_GETARG_DATUM(argno);
	struct varlena *value = (struct varlena *) DatumGetPointer(argument);
	PgBloomSite *site = pgbloom_site(fcinfo);
	PgBloomKept *kept = site->kept;

	filter->parts = NULL;
	filter->toast = NULL;
	filter->builder = pgbloom_expanded(argument);
	if (filter->builder != NULL)
	{
		filter->params = &filter->builder->params;
		return;
	}

	if (kept == NULL)
		kept = site->kept = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
												   sizeof(*kept));
	filter->view = &kept->view;
	filter->params = &kept->view.params;

	if (VARATT_IS_EXTERNAL_INDIRECT(value))
	{
		struct varatt_indirect indirect;

		VARATT_EXTERNAL_GET_POINTER(indirect, value);
		value = indirect.pointer;
	}
	if (VARATT_IS_EXTERNAL_ONDISK(value))
	{
		filter->pointer = value;
		open_stored(kept, filter);
	}
	else if (VARATT_IS_COMPRESSED(value))
		open_plain(kept, decompress(kept, value));
	else if (VARATT_IS_EXTERNAL(value))
		open_plain(kept, detoast_attr(value));
	else
		open_plain(kept, value);
}

/* What bloom_contains says of a key with this hash. */
bool
pgbloom_filter_contains(PgBloomFilter *filter, uint64 hash)
{
	PgBloomKept *kept = filter->parts;

	if (filter->builder != NULL)
		return bf_builder_contains(filter->builder, hash);
	if (kept != NULL)
	{
		if (!is_whole_cheaper(kept, SLICE_COST))
			return bf_contains_by_parts(filter->view, hash, read_part,
										filter);
		keep_whole(filter);
	}
	return bf_contains(filter->view, hash);
}

/*
 * So many keys are going to be asked for.  Returns whether it is better to do
 * so in the order of their hashes, which is that of the parts to be read.
 */
bool
pgbloom_filter_expect(PgBloomFilter *filter, int nkeys)
{
	PgBloomKept *kept = filter->parts;

	if (kept == NULL)
		return false;
	if (is_whole_cheaper(kept, (uint64) nkeys * SLICE_COST))
		keep_whole(filter);
	return filter->parts != NULL;
}

/*
 * Look into a filter only for what its front tells; the view has no pointers
 * to the rest.
 */
void
pgbloom_describe(Datum filter, BfView *view)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(filter);

	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
	{
		struct varlena *front = detoast_attr_slice(value, 0, BF_MAX_FRONT);
		size_t		size = toast_raw_datum_size(filter) - VARHDRSZ;
		size_t		length = VARSIZE_ANY_EXHDR(front);

		/* Damage may have made it shorter than it says it is. */
		if (length < Min(size, BF_MAX_FRONT))
			size = length;
		pgbloom_open_front((const uint8_t *) VARDATA_ANY(front), size, view);
		pfree(front);
	}
	else
		pgbloom_open(PG_DETOAST_DATUM_PACKED(filter), view);
}
