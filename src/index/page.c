/*-------------------------------------------------------------------------
 *
 * page.c
 *	  The pages of a layer.
 *
 * A page holds as many whole blocks of its layer as fit.  Until the first key
 * comes to it, pd_lower tells that its content is a hole, so that WAL of new
 * layers is small; the bytes of a hole are zero.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/xloginsert.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"

/* One of so many pages is not looked for in the buffer that had it. */
#define USUAL_READS		128

/* Compute which blocks are on a page of a layer. */
void
bfi_set_page(BfiPage *page, const BfiLayer *layer, BlockNumber number,
			 Buffer buffer)
{
	page->layer = layer;
	page->number = number;
	page->set = layer->set;
	page->first = number * layer->page_blocks;
	page->nblocks = Min(layer->page_blocks,
						layer->geometry.nblocks - page->first);
	page->buffer = buffer;
	page->blocks = (uint8 *) PageGetContents(BufferGetPage(buffer));
}

static inline LocationIndex
page_used_lower(const BfiLayer *layer)
{
	return (LocationIndex) (MAXALIGN(SizeOfPageHeaderData) +
							bf_blocks_size(&layer->geometry,
										   layer->page_blocks));
}

/* Initialize a page without keys. */
void
bfi_init_page(const BfiPage *page)
{
	Page		raw = BufferGetPage(page->buffer);
	BfiPageOpaque *opaque;

	PageInit(raw, BLCKSZ, sizeof(BfiPageOpaque));
	opaque = BfiPageGetOpaque(raw);
	opaque->number = page->number;
	opaque->set = page->layer->set;
	opaque->layer = (uint8) page->layer->number;
	opaque->page_id = BFI_PAGE_ID;
}

/* Take everything from a page, so that it is a hole of no set. */
void
bfi_empty_page(const BfiPage *page)
{
	Page		raw = BufferGetPage(page->buffer);

	memset(PageGetContents(raw), 0,
		   (char *) PageGetSpecialPointer(raw) - (char *) PageGetContents(raw));
	((PageHeader) raw)->pd_lower = SizeOfPageHeaderData;
	BfiPageGetOpaque(raw)->bits_set = 0;
	BfiPageGetOpaque(raw)->set = 0;
}

/* Record the number of set bits of a page with keys. */
void
bfi_record_bits_set(Page page, const BfiLayer *layer, uint32 bits_set)
{
	((PageHeader) page)->pd_lower = page_used_lower(layer);
	BfiPageGetOpaque(page)->bits_set = bits_set;
}

/* Count the set bits of a page, which it has recorded. */
uint64
bfi_count_bits_set(const BfiPage *page)
{
	return bf_blocks_bits_set(page->blocks,
							  bf_blocks_size(&page->layer->geometry,
											 page->nblocks));
}

/* Does a page, which has the structure of one, say that it is this one? */
bool
bfi_is_page_of(const BfiPage *page)
{
	BfiPageOpaque *opaque = BfiPageGetOpaque(BufferGetPage(page->buffer));

	return opaque->set == page->set &&
		opaque->layer == page->layer->number && opaque->number == page->number;
}

/* Does a page lack what every page of a layer has?  If so, returns why. */
static const char *
page_damage(const BfiPage *page)
{
	Page		raw = BufferGetPage(page->buffer);
	PageHeader	header = (PageHeader) raw;
	BfiPageOpaque *opaque;

	if (PageIsNew(raw))
		return "The page is empty.";
	if (PageGetPageSize(raw) != BLCKSZ ||
		header->pd_special != BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)) ||
		header->pd_upper != header->pd_special)
		return "The page has a wrong structure.";
	opaque = BfiPageGetOpaque(raw);
	if (opaque->page_id != BFI_PAGE_ID)
		return "The page does not belong to an index of access method \"bloomfilter\".";
	if (!bfi_is_page_of(page))
		return "The page belongs elsewhere.";
	if (header->pd_lower != (opaque->bits_set > 0 ?
							 page_used_lower(page->layer) :
							 SizeOfPageHeaderData))
		return "The page has a wrong structure.";
	if (opaque->bits_set > 8 * bf_blocks_size(&page->layer->geometry,
											  page->nblocks))
		return "The number of set bits of the page is out of range.";
	return NULL;
}

/* Append a page, which is locked.  Nobody else extends the relation. */
Buffer
bfi_extend(Relation index, ForkNumber fork, BlockNumber block,
		   BufferAccessStrategy strategy)
{
	Buffer		buffer = PGBLOOM_EXTEND(index, fork, strategy);

	if (BufferGetBlockNumber(buffer) != block)
		elog(ERROR, "index \"%s\" was extended to block %u instead of %u",
			 RelationGetRelationName(index), BufferGetBlockNumber(buffer),
			 block);
	return buffer;
}

/* Log a page that is all new, and unlock it. */
void
bfi_finish_new_page(Relation index, ForkNumber fork, Buffer buffer)
{
	START_CRIT_SECTION();
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/*
 * The buffer of a page, or an invalid one if it is not in the last one that it
 * was in.  That does not tell the buffer manager that the page is in use, so the
 * buffer is forgotten now and then, and the page is read the usual way.
 */
static Buffer
recent_buffer(BfiCache *cache, BlockNumber block)
{
	Buffer	   *recent = &cache->recent[block % BFI_RECENT];

	if (!BufferIsValid(*recent))
		return InvalidBuffer;
	if (pg_prng_uint32(&pg_global_prng_state) % USUAL_READS == 0)
		*recent = InvalidBuffer;
	else if (ReadRecentBuffer(cache->locator, MAIN_FORKNUM, block, *recent))
		return *recent;
	return InvalidBuffer;
}

/*
 * Read a page.  Among many partitions, it takes long to find out which buffer
 * has it, so the last one is tried first.
 */
Buffer
bfi_read_buffer(Relation index, BlockNumber block,
				BufferAccessStrategy strategy)
{
	BfiCache   *cache = index->rd_amcache;
	Buffer		buffer = InvalidBuffer;

	if (cache != NULL)
	{
		cache->locator = index->rd_locator;
		buffer = recent_buffer(cache, block);
	}
	if (BufferIsValid(buffer))
	{
		pgstat_count_buffer_read(index);
		pgstat_count_buffer_hit(index);
		return buffer;
	}
	buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL,
								strategy);
	cache = index->rd_amcache;
	if (cache != NULL)
		cache->recent[block % BFI_RECENT] = buffer;
	return buffer;
}

/* Read, lock and check a page of a layer.  Returns what is wrong, or NULL. */
static const char *
lock_page(Relation index, const BfiLayer *layer, BlockNumber number,
		  int lock_mode, BufferAccessStrategy strategy, BfiPage *page)
{
	Buffer		buffer = bfi_read_buffer(index, layer->first + number, strategy);
	const char *reason;

	LockBuffer(buffer, lock_mode);
	bfi_set_page(page, layer, number, buffer);
	reason = page_damage(page);
	if (reason != NULL)
	{
		UnlockReleaseBuffer(buffer);
		page->buffer = InvalidBuffer;
		page->nblocks = 0;
	}
	return reason;
}

/*
 * Read, lock and check a page of a layer, also one that VACUUM has not moved to
 * its place yet.  Returns false if there is none, which contains every key: the
 * index has been rebuilt since its directory was read, and the page has been used
 * again, or who rebuilt it has failed.
 */
bool
bfi_read_page(Relation index, const BfiLayer *layer, BlockNumber number,
			  int lock_mode, BufferAccessStrategy strategy, BfiPage *page)
{
	const char *reason;
	bool		again = false;

	while ((reason = lock_page(index, layer, number, lock_mode, strategy,
							   page)) != NULL)
	{
		BfiMeta		meta;
		const BfiLayer *source;

		bfi_read_live_meta(index, &meta);
		source = bfi_layer_source(&meta, layer);
		if (bfi_find_set(&meta, layer->set) == NULL ||
			(source == NULL && meta.partial &&
			 layer->set == meta.current.number))
			return false;
		if (again)
			bfi_report_damage(index, layer->first + number, reason);
		if (source != NULL &&
			lock_page(index, source, number, lock_mode, strategy, page) == NULL)
		{
			page->layer = layer;
			return true;
		}
		again = true;			/* it has been moved just now */
	}
	return true;
}

/*
 * Read, lock in share mode and check a page if it is in the last buffer that it
 * was in.
 */
bool
bfi_read_recent_page(BfiCache *cache, const BfiLayer *layer, BlockNumber number,
					 BfiPage *page)
{
	Buffer		buffer = recent_buffer(cache, layer->first + number);

	page->buffer = InvalidBuffer;
	page->nblocks = 0;
	if (!BufferIsValid(buffer))
		return false;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	bfi_set_page(page, layer, number, buffer);
	if (page_damage(page) == NULL)
		return true;
	UnlockReleaseBuffer(buffer);
	page->buffer = InvalidBuffer;
	page->nblocks = 0;
	return false;
}

/* Read and check one in share mode for all that a layer has: an error if it is gone. */
void
bfi_read_layer_page(Relation index, const BfiLayer *layer, BlockNumber number,
					BufferAccessStrategy strategy, BfiPage *page)
{
	CHECK_FOR_INTERRUPTS();
	if (!bfi_read_page(index, layer, number, BUFFER_LOCK_SHARE, strategy, page))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("index \"%s\" was rebuilt while it was read",
						RelationGetRelationName(index)),
				 errhint("Call the function again.")));
}
