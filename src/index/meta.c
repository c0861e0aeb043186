/*-------------------------------------------------------------------------
 *
 * meta.c
 *	  The meta page: the parameters of an index and the directory of its
 *	  layers.
 *
 * It is read at each use of an index, because a directory that is out of date
 * would miss the keys of a new layer.  With a wrong seed or geometry, all keys
 * would be missed, so it has a checksum, which is verified each time.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "port/pg_crc32c.h"

#define META_MAGIC		0xB100F117
#define META_VERSION	1
#define SCHEME_XXH3_GOLDEN	1	/* as in an image: see core/image.c */

typedef struct DiskLayer
{
	uint64		capacity;
	double		fpp;
	BlockNumber first;
	uint32		nblocks;
	uint8		block_log2;
	uint8		k;
	uint8		generation;
	uint8		unused[5];
} DiskLayer;

typedef struct DiskMeta
{
	uint32		magic;
	pg_crc32c	crc;			/* from here to the last layer */
	uint8		version;
	uint8		scheme;
	uint8		key_type;
	uint8		nlayers;
	uint32		unused;
	double		fpp;
	uint64		expected;
	uint64		seed;
	uint64		keys_built;
	uint64		complete_from;
	DiskLayer	layers[BFI_MAX_LAYERS];
} DiskMeta;

#define PageGetMeta(page)	((DiskMeta *) PageGetContents(page))
#define META_LOWER	(MAXALIGN(SizeOfPageHeaderData) + sizeof(DiskMeta))

StaticAssertDecl(META_LOWER <= BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)),
				 "the meta page has no room for the directory of layers");

static pg_crc32c
meta_crc(const DiskMeta *meta)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, (const char *) meta + offsetof(DiskMeta, version),
				offsetof(DiskMeta, layers) - offsetof(DiskMeta, version) +
				meta->nlayers * sizeof(DiskLayer));
	FIN_CRC32C(crc);
	return crc;
}

/* The first block behind all layers. */
BlockNumber
bfi_end(const BfiMeta *meta)
{
	const BfiLayer *last;

	if (meta->nlayers == 0)
		return BFI_META_BLOCK + 1;
	last = &meta->layers[meta->nlayers - 1];
	return last->first + last->npages;
}

static void
write_meta_layer(DiskLayer *to, const BfiLayer *from)
{
	memset(to, 0, sizeof(*to));
	to->capacity = from->geometry.capacity;
	to->fpp = from->geometry.fpp;
	to->first = from->first;
	to->nblocks = from->geometry.nblocks;
	to->block_log2 = from->geometry.block_log2;
	to->k = from->geometry.k;
	to->generation = from->geometry.generation;
}

/* Initialize the meta page of a new index. */
void
bfi_init_meta(Page page, const BfiMeta *meta)
{
	DiskMeta   *to;
	int			i;

	PageInit(page, BLCKSZ, sizeof(BfiPageOpaque));
	BfiPageGetOpaque(page)->page_id = BFI_PAGE_ID;
	to = PageGetMeta(page);
	memset(to, 0, sizeof(*to));
	to->magic = META_MAGIC;
	to->version = META_VERSION;
	to->scheme = SCHEME_XXH3_GOLDEN;
	to->key_type = meta->key_type;
	to->nlayers = (uint8) meta->nlayers;
	to->fpp = meta->fpp;
	to->expected = meta->expected;
	to->seed = meta->seed;
	to->keys_built = meta->keys_built;
	to->complete_from = meta->complete_from;
	for (i = 0; i < meta->nlayers; i++)
		write_meta_layer(&to->layers[i], &meta->layers[i]);
	to->crc = meta_crc(to);
	((PageHeader) page)->pd_lower = META_LOWER;
}

/* Does a directory entry lack what every layer has?  If so, returns why. */
static const char *
read_meta_layer(const DiskLayer *from, int number, BlockNumber first,
				BfiLayer *layer)
{
	BfGeometry *geometry = &layer->geometry;

	geometry->nblocks = from->nblocks;
	geometry->block_log2 = from->block_log2;
	geometry->k = from->k;
	geometry->capacity = from->capacity;
	geometry->fpp = from->fpp;
	geometry->generation = from->generation;

	if (geometry->block_log2 < BF_MIN_BLOCK_LOG2 ||
		geometry->block_log2 > BF_MAX_BLOCK_LOG2 ||
		geometry->k < 1 || geometry->k > BF_MAX_HASHES ||
		geometry->generation > BF_MAX_GENERATION ||
		geometry->nblocks < 1 || geometry->capacity < 1 ||
		geometry->capacity > bf_geometry_bits(geometry))
		return "A layer has wrong parameters.";
	/* Written so that NaN fails. */
	if (!(geometry->fpp >= BF_LAYER_FPP_MIN && geometry->fpp <= BF_FPP_MAX))
		return "A layer has a wrong false-positive rate.";
	bfi_set_layer(layer, number, from->first);
	if (from->first != first || layer->npages > MaxBlockNumber - first)
		return "A layer begins at a wrong block.";
	return NULL;
}

/* Is this not a meta page?  If so, returns why. */
static const char *
meta_damage(Page page)
{
	DiskMeta   *from = PageGetMeta(page);

	if (PageIsNew(page))
		return "The page is empty.";
	if (PageGetPageSize(page) != BLCKSZ ||
		((PageHeader) page)->pd_lower != META_LOWER ||
		((PageHeader) page)->pd_special !=
		BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)) ||
		BfiPageGetOpaque(page)->page_id != BFI_PAGE_ID ||
		from->magic != META_MAGIC)
		return "The page is not the meta page of an index of access method \"bloomfilter\".";
	if (from->version != META_VERSION || from->scheme != SCHEME_XXH3_GOLDEN)
		return "Its format version is unknown.";
	if (from->nlayers > BFI_MAX_LAYERS)
		return "The number of layers is out of range.";
	if (from->crc != meta_crc(from))
		return "The checksum of the meta page does not match its content.";
	/* Written so that NaN fails. */
	if (!(from->fpp >= BF_FPP_MIN && from->fpp <= BF_FPP_MAX))
		return "The false-positive rate is out of range.";
	return NULL;
}

/* Read and check the meta page. */
void
bfi_read_meta(Relation index, BfiMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, BFI_META_BLOCK);
	Page		page = BufferGetPage(buffer);
	DiskMeta   *from = PageGetMeta(page);
	const char *reason;
	int			i;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	reason = meta_damage(page);
	if (reason == NULL)
	{
		meta->fpp = from->fpp;
		meta->expected = from->expected;
		meta->seed = from->seed;
		meta->keys_built = from->keys_built;
		meta->complete_from = from->complete_from;
		meta->key_type = from->key_type;
		meta->nlayers = 0;
		for (i = 0; i < from->nlayers && reason == NULL; i++)
		{
			reason = read_meta_layer(&from->layers[i], i, bfi_end(meta),
									 &meta->layers[i]);
			meta->nlayers++;
		}
	}
	if (reason != NULL)
		bfi_report_damage(index, BFI_META_BLOCK, reason);
	UnlockReleaseBuffer(buffer);
}

/*
 * Enter a layer into the directory.  Its pages have been logged before, so
 * after a crash there is either no such layer or a complete one.
 */
void
bfi_enter_layer(Relation index, const BfiLayer *layer)
{
	Buffer		buffer = ReadBuffer(index, BFI_META_BLOCK);
	GenericXLogState *state;
	DiskMeta   *meta;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	meta = PageGetMeta(GenericXLogRegisterBuffer(state, buffer, 0));
	write_meta_layer(&meta->layers[meta->nlayers], layer);
	meta->nlayers++;
	meta->crc = meta_crc(meta);
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}
