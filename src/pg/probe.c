/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  From a filter argument to something that can be asked, without fetching
 *	  the whole filter for each row.
 *
 * A filter in memory is used where it lies, and an expanded one as it is.
 * One that is stored out of line is asked by slices at first: its header,
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
#include "pg/pgbloom.h"

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
	dlist_node	node;			/* in PgBloomFilterCache.recent */
	uint8	   *header;			/* or NULL: the whole is kept */
	struct varlena *whole;
	MemoryContext context;		/* of the whole, nothing else in it */
	Size		accounted;		/* its part of PgBloomFilterCache.charged */
	uint64		cost;			/* on slices of it */
} Stored;

struct PgBloomFilterCache
{
	BfView		view;			/* of the filter asked last, which is */
	Stored	   *current;		/* either this one, */
	const uint8_t *plain;		/* or one in memory, with its image here, */
	uint8_t		header[BF_MAX_HEADER];	/* which begins like this */
	size_t		header_size;

	MemoryContext context;		/* of all that is stored, or NULL */
	LocalTransactionId lxid;	/* and seen in this transaction */
	HTAB	   *stored;
	dlist_head	recent;			/* the one asked last comes first */
	Size		accounted;		/* for all of them */
	uint64		run;			/* spent since the current one came */

	struct varlena *compressed; /* a value that was compressed in its row */
	struct varlena *decompressed;

	/* A slice with its length word. */
	union
	{
		int32		alignment;
		struct varlena value;
		char		bytes[VARHDRSZ + BF_MAX_SLICE];
	}			slice;
};

StaticAssertDecl(BF_MAX_HEADER <= BF_MAX_SLICE, "no room for a front");

static Size
memory_limit(void)
{
	return (Size) work_mem * 1024;
}

static void
drop(PgBloomFilterCache *cache, Stored *stored)
{
	dlist_delete(&stored->node);
	cache->accounted -= stored->accounted;
	if (stored->header != NULL)
		pfree(stored->header);
	if (stored->whole != NULL)
		MemoryContextDelete(stored->context);
	hash_search(cache->stored, &stored->pointer, HASH_REMOVE, NULL);
}

/*
 * Account for what the current filter takes, unless it is larger than all
 * that is allowed.  Others make room for it.
 */
static void
account(PgBloomFilterCache *cache, Stored *stored)
{
	Size		size = sizeof(Stored);

	if (stored->whole == NULL)
		size += bf_header_size(&cache->view.params, cache->view.nlayers);
	else if (cache->view.size <= memory_limit())
		size += cache->view.size;
	cache->accounted += size - stored->accounted;
	stored->accounted = size;

	while (cache->accounted > memory_limit())
	{
		Stored	   *oldest = dlist_tail_element(Stored, node, &cache->recent);

		if (oldest == stored)
			break;
		drop(cache, oldest);
	}
}

/*
 * Another filter is going to be asked.  What does not fit into memory beside
 * it is not kept.
 */
static void
leave(PgBloomFilterCache *cache)
{
	Stored	   *stored = cache->current;

	cache->current = NULL;
	cache->plain = NULL;
	if (stored != NULL && stored->whole != NULL &&
		cache->view.size > memory_limit())
		drop(cache, stored);
}

static void
forget_all(PgBloomFilterCache *cache)
{
	HASHCTL		control;

	cache->current = NULL;
	cache->lxid = InvalidLocalTransactionId;
	cache->accounted = 0;
	dlist_init(&cache->recent);
	if (cache->context == NULL)
		cache->context = AllocSetContextCreate(GetMemoryChunkContext(cache),
											  "stored Bloom filters",
											  ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(cache->context);

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(struct varatt_external);
	control.entrysize = sizeof(Stored);
	control.hcxt = cache->context;
	cache->stored = hash_create("stored filters of bloomfilter", 16, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cache->lxid = MY_LOCAL_TRANSACTION_ID;
}

/* Look into a filter in memory, unless it is the one seen last. */
static void
open_plain(PgBloomFilterCache *cache, const struct varlena *value)
{
	const uint8_t *image = (const uint8_t *) VARDATA_ANY(value);
	size_t		size = VARSIZE_ANY_EXHDR(value);

	/* Other values may have come to lie here since. */
	if (cache->plain == image && cache->view.size == size &&
		memcmp(image, cache->header, cache->header_size) == 0)
		return;

	leave(cache);
	pgbloom_open(value, &cache->view);
	cache->header_size = bf_header_size(&cache->view.params,
									  cache->view.nlayers);
	memcpy(cache->header, image, cache->header_size);
	cache->plain = image;
}

/*
 * A value that is compressed in its row has nothing to be known by but its
 * bytes, of which there is less than a page.  One of them is kept.
 */
static struct varlena *
decompress(PgBloomFilterCache *cache, struct varlena *value)
{
	MemoryContext old;

	if (cache->compressed != NULL)
	{
		if (VARSIZE_ANY(cache->compressed) == VARSIZE_ANY(value) &&
			memcmp(cache->compressed, value, VARSIZE_ANY(value)) == 0)
			return cache->decompressed;
		pfree(cache->compressed);
		cache->compressed = NULL;
		pfree(cache->decompressed);
	}

	old = MemoryContextSwitchTo(GetMemoryChunkContext(cache));
	cache->decompressed = detoast_attr(value);
	cache->compressed = palloc(VARSIZE_ANY(value));
	memcpy(cache->compressed, value, VARSIZE_ANY(value));
	MemoryContextSwitchTo(old);
	return cache->decompressed;
}

/* Read a slice of the current value into PgBloomFilterCache.slice. */
static const uint8_t *
read_slice(PgBloomProbe *filter, size_t at, size_t length)
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
read_block_slice(void *context, size_t at, size_t length)
{
	PgBloomProbe *filter = context;

	filter->parts->current->cost += SLICE_COST;
	filter->parts->run += SLICE_COST;
	return read_slice(filter, at, length);
}

/*
 * Read all of a value into a memory context of its own, which is kept only if
 * that succeeds.
 */
static struct varlena *
read_whole(PgBloomFilterCache *cache, const struct varlena *pointer,
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
	pgbloom_open(whole, &cache->view);
	MemoryContextSetParent(*context, cache->context);
	return whole;
}

/* Go over from slices of the current filter to the whole. */
static void
keep_whole(PgBloomProbe *filter)
{
	PgBloomFilterCache *cache = filter->parts;
	Stored	   *stored = cache->current;

	/* After an error nothing is known of the view. */
	cache->current = NULL;
	stored->whole = read_whole(cache, filter->pointer, &stored->context);
	cache->current = stored;
	pfree(stored->header);
	stored->header = NULL;
	account(cache, stored);
	filter->parts = NULL;
}

/*
 * Whether to read the current filter as a whole, which replaces slices of
 * this cost in the next step and more of them later.  Others are driven out
 * of memory only if this one has been paid for in one run: where many are
 * asked in turn, none would be there when its turn comes again.
 */
static bool
is_whole_cheaper(const PgBloomFilterCache *cache, uint64 cost)
{
	uint64		whole = cache->view.size / CHUNK_SIZE + 1;

	return cache->run + cost > whole ||
		(cache->current->cost + cost > whole &&
		 cache->accounted + cache->view.size <= memory_limit());
}

/* Make the acquaintance of a stored filter. */
static Stored *
add_stored(PgBloomFilterCache *cache, PgBloomProbe *filter,
		   const struct varatt_external *pointer)
{
	size_t		size = VARATT_EXTERNAL_GET_EXTSIZE(*pointer);
	struct varlena *whole = NULL;
	MemoryContext context = NULL;
	uint8_t    *header = NULL;
	Stored	   *stored;

	/* The first is VARATT_EXTERNAL_IS_COMPRESSED, of which clang warns. */
	if (size + VARHDRSZ < (size_t) pointer->va_rawsize ||
		size < SMALL_CHUNKS * CHUNK_SIZE)
		whole = read_whole(cache, filter->pointer, &context);
	else
	{
		size_t		header_size;

		pgbloom_open_header(read_slice(filter, 0, BF_MAX_HEADER), size,
						   &cache->view);
		header_size = bf_header_size(&cache->view.params, cache->view.nlayers);
		header = MemoryContextAlloc(cache->context, header_size);
		memcpy(header, VARDATA(&cache->slice.value), header_size);
	}

	stored = hash_search(cache->stored, pointer, HASH_ENTER, NULL);
	dlist_push_head(&cache->recent, &stored->node);
	stored->header = header;
	stored->whole = whole;
	stored->context = context;
	stored->accounted = 0;
	stored->cost = cache->run = SLICE_COST;
	return stored;
}

/* Make a stored filter the current one. */
static void
open_stored(PgBloomFilterCache *cache, PgBloomProbe *filter)
{
	struct varatt_external pointer;
	Stored	   *stored = cache->current;

	VARATT_EXTERNAL_GET_POINTER(pointer, filter->pointer);
	if (cache->lxid != MY_LOCAL_TRANSACTION_ID)
		forget_all(cache);
	else if (stored != NULL &&
			 memcmp(&stored->pointer, &pointer, sizeof(pointer)) == 0)
	{
		filter->parts = stored->whole == NULL ? cache : NULL;
		return;
	}

	leave(cache);
	cache->run = 0;
	filter->parts = cache;
	stored = hash_search(cache->stored, &pointer, HASH_FIND, NULL);
	if (stored == NULL)
		stored = add_stored(cache, filter, &pointer);
	else
	{
		dlist_move_head(&cache->recent, &stored->node);
		if (stored->whole != NULL)
			pgbloom_open(stored->whole, &cache->view);
		else
			pgbloom_open_header(stored->header,
							   VARATT_EXTERNAL_GET_EXTSIZE(pointer),
							   &cache->view);
	}
	cache->current = stored;
	account(cache, stored);
	if (stored->whole != NULL)
		filter->parts = NULL;
}

/* Make a filter argument ready to be asked. */
void
pgbloom_probe_open(FunctionCallInfo fcinfo, int argno, PgBloomProbe *filter)
{
	Datum		argument = PG_GETARG_DATUM(argno);
	struct varlena *value = (struct varlena *) DatumGetPointer(argument);
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	PgBloomFilterCache *cache = fn_cache->cache;

	filter->parts = NULL;
	filter->toast = NULL;
	filter->builder = pgbloom_expanded(argument);
	if (filter->builder != NULL)
	{
		filter->params = &filter->builder->params;
		return;
	}

	if (cache == NULL)
		cache = fn_cache->cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
												   sizeof(*cache));
	filter->view = &cache->view;
	filter->params = &cache->view.params;

	if (VARATT_IS_EXTERNAL_INDIRECT(value))
	{
		struct varatt_indirect indirect;

		VARATT_EXTERNAL_GET_POINTER(indirect, value);
		value = indirect.pointer;
	}
	if (VARATT_IS_EXTERNAL_ONDISK(value))
	{
		filter->pointer = value;
		open_stored(cache, filter);
	}
	else if (VARATT_IS_COMPRESSED(value))
		open_plain(cache, decompress(cache, value));
	else if (VARATT_IS_EXTERNAL(value))
		open_plain(cache, detoast_attr(value));
	else
		open_plain(cache, value);
}

/* What bloom_contains says of a key with this hash. */
bool
pgbloom_probe_contains(PgBloomProbe *filter, uint64 hash)
{
	PgBloomFilterCache *cache = filter->parts;

	if (filter->builder != NULL)
		return bf_builder_contains(filter->builder, hash);
	if (cache != NULL)
	{
		if (!is_whole_cheaper(cache, SLICE_COST))
			return bf_contains_sliced(filter->view, hash, read_block_slice,
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
pgbloom_probe_batch(PgBloomProbe *filter, int nkeys)
{
	PgBloomFilterCache *cache = filter->parts;

	if (cache == NULL)
		return false;
	if (is_whole_cheaper(cache, (uint64) nkeys * SLICE_COST))
		keep_whole(filter);
	return filter->parts != NULL;
}

/*
 * Look into a filter only for what its header tells; the view has no pointers
 * to the rest.
 */
void
pgbloom_open_info(Datum filter, BfView *view)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(filter);

	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
	{
		struct varlena *header = detoast_attr_slice(value, 0, BF_MAX_HEADER);
		size_t		size = toast_raw_datum_size(filter) - VARHDRSZ;
		size_t		length = VARSIZE_ANY_EXHDR(header);

		/* Damage may have made it shorter than it says it is. */
		if (length < Min(size, BF_MAX_HEADER))
			size = length;
		pgbloom_open_header((const uint8_t *) VARDATA_ANY(header), size, view);
		pfree(header);
	}
	else
		pgbloom_open(PG_DETOAST_DATUM_PACKED(filter), view);
}
