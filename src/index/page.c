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

#define PAGE_VERSION	1

/* Bytes for blocks on a page. */
#define PAGE_ROOM \
	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(BfiPageOpaque)))

void
bfi_report_damage(Relation index, BlockNumber block, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u",
					RelationGetRelationName(index), block),
			 errdetail_internal("%s", reason),
			 errhint("Rebuild the index by REINDEX.")));
}

/* Compute where the blocks of a layer are, from its geometry. */
void
bfi_set_layer(BfiLayer *layer, BlockNumber first)
{
	layer->first = first;
	layer->page_blocks = (uint32) (PAGE_ROOM /
								   bf_blocks_size(&layer->geometry, 1));
	if (layer->page_blocks == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("pages of %d bytes are too small for a Bloom filter index at this rate",
						BLCKSZ)));
	layer->npages = (layer->geometry.nblocks - 1) / layer->page_blocks + 1;
}

/* The number of blocks on a page. */
uint32
bfi_page_nblocks(const BfiLayer *layer, BlockNumber number)
{
	return number < layer->npages - 1 ? layer->page_blocks :
		layer->geometry.nblocks - number * layer->page_blocks;
}

static inline LocationIndex
used_lower(const BfiLayer *layer)
{
	return (LocationIndex) (MAXALIGN(SizeOfPageHeaderData) +
							bf_blocks_size(&layer->geometry,
										   layer->page_blocks));
}

/* Initialize a page without keys. */
void
bfi_init_page(Page page, int layer, BlockNumber number)
{
	BfiPageOpaque *opaque;

	PageInit(page, BLCKSZ, sizeof(BfiPageOpaque));
	opaque = BfiPageGetOpaque(page);
	opaque->number = number;
	opaque->layer = (uint16) layer;
	opaque->version = PAGE_VERSION;
	opaque->page_id = BFI_PAGE_ID;
}

static inline uint32
bits_in_units(uint64 bits_set)
{
	return (uint32) ((bits_set + BFI_BITS_UNIT - 1) / BFI_BITS_UNIT);
}

/* Record the number of set bits of a page with keys. */
void
bfi_record_bits_set(Page page, const BfiLayer *layer, uint64 bits_set)
{
	((PageHeader) page)->pd_lower = used_lower(layer);
	BfiPageGetOpaque(page)->bits_set = bits_in_units(bits_set);
}

/* The number of set bits of a page. */
uint64
bfi_page_bits_set(Page page, const BfiLayer *layer)
{
	return bf_blocks_bits_set(BfiPageGetBlocks(page),
							  bf_blocks_size(&layer->geometry,
											 layer->page_blocks));
}

/* Does the recorded number match the bits? */
bool
bfi_page_bits_match(Page page, const BfiLayer *layer)
{
	return BfiPageGetOpaque(page)->bits_set ==
		bits_in_units(bfi_page_bits_set(page, layer));
}

/* Does a page lack what every page of a layer has?  If so, returns why. */
static const char *
check_page(Page page, const BfiLayer *layer, int layer_number,
		   BlockNumber number)
{
	PageHeader	header = (PageHeader) page;
	BfiPageOpaque *opaque;

	if (PageIsNew(page))
		return "The page is empty.";
	if (PageGetPageSize(page) != BLCKSZ ||
		header->pd_special != BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)) ||
		header->pd_upper != header->pd_special)
		return "The page has a wrong structure.";
	opaque = BfiPageGetOpaque(page);
	if (opaque->page_id != BFI_PAGE_ID)
		return "The page does not belong to an index of access method \"bloomfilter\".";
	if (opaque->version != PAGE_VERSION || opaque->unused != 0)
		return "The page has an unknown version.";
	if (opaque->layer != layer_number || opaque->number != number)
		return "The page belongs elsewhere.";
	if (header->pd_lower != (opaque->bits_set > 0 ? used_lower(layer) :
							 SizeOfPageHeaderData))
		return "The page has a wrong structure.";
	if (opaque->bits_set > bits_in_units(8 * bf_blocks_size(&layer->geometry,
															bfi_page_nblocks(layer, number))))
		return "The number of set bits of the page is out of range.";
	return NULL;
}

/* Read, lock and check a page of a layer. */
Buffer
bfi_read_page(Relation index, const BfiMeta *meta, int layer,
			  BlockNumber number, int lock_mode,
			  BufferAccessStrategy strategy)
{
	const BfiLayer *of = &meta->layers[layer];
	Buffer		buffer = ReadBufferExtended(index, MAIN_FORKNUM,
											of->first + number, RBM_NORMAL,
											strategy);
	const char *reason;

	LockBuffer(buffer, lock_mode);
	reason = check_page(BufferGetPage(buffer), of, layer, number);
	if (reason != NULL)
		bfi_report_damage(index, of->first + number, reason);
	return buffer;
}
