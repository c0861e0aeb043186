/*-------------------------------------------------------------------------
 *
 * meta.c
 *	  The meta page: the parameters of an index and the directory of its
 *	  layers.
 *
 * A directory that is out of date would miss the keys of a new layer, so the page
 * is read at each use of an index, or remembered until somebody changes it.  With
 * a wrong seed or geometry, all keys would be missed, so it has a checksum, which
 * is verified each time.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/lock.h"
#include "storage/sinval.h"

#define META_MAGIC		0xB100F117
#define META_VERSION	1
#define SCHEME_XXH3_GOLDEN	1	/* as in an image: see core/image.c */

/* Of BfiMeta, which is the same on the page. */
#define HEAD_SIZE	offsetof(BfiMeta, current)

StaticAssertDecl(HEAD_SIZE == 64, "BfiMeta has padding");

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

typedef struct DiskSet
{
	uint32		number;
	uint32		nlayers;
	DiskLayer	layers[BFI_MAX_LAYERS];
} DiskSet;

typedef struct DiskMeta
{
	uint32		magic;
	pg_crc32c	crc;			/* from here to the last layer of each set */
	uint8		head[HEAD_SIZE];
	DiskSet		current;
	DiskSet		next;
} DiskMeta;

#define PageGetMeta(page)	((DiskMeta *) PageGetContents(page))
#define META_LOWER	(MAXALIGN(SizeOfPageHeaderData) + sizeof(DiskMeta))

StaticAssertDecl(META_LOWER <= BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)),
				 "the meta page has no room for the directory of layers");

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
bfi_set_layer(BfiLayer *layer, const BfiSet *set, int number,
			  BlockNumber first)
{
	layer->set = set->number;
	layer->number = number;
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

static size_t
set_size(const DiskSet *set)
{
	return offsetof(DiskSet, layers) + set->nlayers * sizeof(DiskLayer);
}

static pg_crc32c
meta_crc(const DiskMeta *meta)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, meta->head, HEAD_SIZE);
	COMP_CRC32C(crc, &meta->current, set_size(&meta->current));
	COMP_CRC32C(crc, &meta->next, set_size(&meta->next));
	FIN_CRC32C(crc);
	return crc;
}

/* The set of this number, or NULL.  A next set that is being moved is gone. */
BfiSet *
bfi_find_set(BfiMeta *meta, uint32 number)
{
	return meta->current.number == number ? &meta->current :
		meta->next.number == number && number > meta->current.number ?
		&meta->next : NULL;
}

/* Where VACUUM moves the pages of a layer from, or NULL. */
const BfiLayer *
bfi_layer_source(const BfiMeta *meta, const BfiLayer *layer)
{
	return layer->set == meta->current.number &&
		meta->next.number < layer->set && layer->number < meta->next.nlayers ?
		&meta->next.layers[layer->number] : NULL;
}

/* The first block behind a set.  A new layer is behind all that there are. */
static BlockNumber
end_of_set(const BfiSet *set)
{
	const BfiLayer *last;

	if (set->nlayers == 0)
		return BFI_META_BLOCK + 1;
	last = &set->layers[set->nlayers - 1];
	return last->first + last->npages;
}

/* The first block behind all layers. */
BlockNumber
bfi_end(const BfiMeta *meta)
{
	return Max(end_of_set(&meta->current), end_of_set(&meta->next));
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

static void
write_meta_set(DiskSet *to, const BfiSet *from)
{
	int			i;

	to->number = from->number;
	to->nlayers = (uint32) from->nlayers;
	for (i = 0; i < from->nlayers; i++)
		write_meta_layer(&to->layers[i], &from->layers[i]);
}

/* Write the content of the meta page. */
static void
write_meta(Page page, const BfiMeta *meta)
{
	DiskMeta   *to = PageGetMeta(page);

	memset(to, 0, sizeof(*to));
	to->magic = META_MAGIC;
	memcpy(to->head, meta, HEAD_SIZE);
	write_meta_set(&to->current, &meta->current);
	write_meta_set(&to->next, &meta->next);
	to->crc = meta_crc(to);
}

/* Initialize the meta page of a new index. */
void
bfi_init_meta(Page page, BfiMeta *meta)
{
	meta->version = META_VERSION;
	meta->scheme = SCHEME_XXH3_GOLDEN;
	PageInit(page, BLCKSZ, sizeof(BfiPageOpaque));
	BfiPageGetOpaque(page)->page_id = BFI_PAGE_ID;
	write_meta(page, meta);
	((PageHeader) page)->pd_lower = META_LOWER;
}

/* Does a directory entry lack what every layer has?  If so, returns why. */
static const char *
read_meta_layer(const DiskLayer *from, const BfiSet *set, int number,
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
	bfi_set_layer(layer, set, number, from->first);
	if (from->first <= BFI_META_BLOCK || from->first > MaxBlockNumber ||
		layer->npages > MaxBlockNumber - from->first)
		return "A layer begins at a wrong block.";
	return NULL;
}

/* Read a set.  Returns what is wrong with it, or NULL. */
static const char *
read_meta_set(const DiskSet *from, BfiSet *set)
{
	const char *reason = NULL;

	set->number = from->number;
	set->nlayers = 0;
	while (set->nlayers < (int) from->nlayers && reason == NULL)
	{
		reason = read_meta_layer(&from->layers[set->nlayers], set,
								 set->nlayers, &set->layers[set->nlayers]);
		set->nlayers++;
	}
	return reason;
}

/* Read the meta page.  Returns what is wrong with it, or NULL. */
static const char *
read_meta(Page page, BfiMeta *meta)
{
	DiskMeta   *from = PageGetMeta(page);
	const char *reason;

	if (PageIsNew(page))
		return "The page is empty.";
	if (PageGetPageSize(page) != BLCKSZ ||
		((PageHeader) page)->pd_lower != META_LOWER ||
		((PageHeader) page)->pd_special !=
		BLCKSZ - MAXALIGN(sizeof(BfiPageOpaque)) ||
		BfiPageGetOpaque(page)->page_id != BFI_PAGE_ID ||
		from->magic != META_MAGIC)
		return "The page is not the meta page of an index of access method \"bloomfilter\".";
	memcpy(meta, from->head, HEAD_SIZE);
	if (meta->version != META_VERSION || meta->scheme != SCHEME_XXH3_GOLDEN)
		return "Its format version is unknown.";
	if (from->current.nlayers > BFI_MAX_LAYERS ||
		from->next.nlayers > BFI_MAX_LAYERS)
		return "The number of layers is out of range.";
	if (from->crc != meta_crc(from))
		return "The checksum of the meta page does not match its content.";
	if (!BFI_IS_LOGGED(from->current.number))
		return "The number of the current set is even.";
	/* Written so that NaN fails. */
	if (!(meta->fpp >= BF_FPP_MIN && meta->fpp <= BF_FPP_MAX))
		return "The false-positive rate is out of range.";
	reason = read_meta_set(&from->current, &meta->current);
	return reason != NULL ? reason :
		read_meta_set(&from->next, &meta->next);
}

/* Is a transaction filling a next set, or moving it? */
bool
bfi_is_being_rebuilt(Relation index)
{
	LOCKTAG		tag;
	int			n;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, RelationRelationId,
					   RelationGetRelid(index), 0);
	pfree(GetLockConflicts(&tag, ShareUpdateExclusiveLock, &n));
	return n > 0 || PGBLOOM_HOLDS_LOCK(&tag, ShareUpdateExclusiveLock);
}

/*
 * Read the meta page, without a next set that was left behind.  The meta page is
 * read after the lock was looked at, so it names no next set of before that is
 * taken for one of a later VACUUM, which drops it before it takes the lock.  Who
 * finds nobody there and a next set that has begun since needs not know it.
 */
void
bfi_read_live_meta(Relation index, BfiMeta *meta)
{
	bool		live;

	bfi_read_meta(index, meta);
	if (meta->next.number == 0)
		return;
	live = bfi_is_being_rebuilt(index);
	bfi_read_meta(index, meta);
	if (!live)
		memset(&meta->next, 0, sizeof(meta->next));
}

/* Read and check the meta page. */
void
bfi_read_meta(Relation index, BfiMeta *meta)
{
	bfi_read_meta_in(index, bfi_read_buffer(index, BFI_META_BLOCK, NULL), meta);
}

/* The same in a buffer, which is released. */
void
bfi_read_meta_in(Relation index, Buffer buffer, BfiMeta *meta)
{
	const char *reason;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	reason = read_meta(BufferGetPage(buffer), meta);
	if (reason != NULL)
		bfi_report_damage(index, BFI_META_BLOCK, reason);
	UnlockReleaseBuffer(buffer);
}

/* The number of the current set by now, after the meta page has been read. */
uint32
bfi_current_set(Buffer buffer)
{
	uint32		number;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	number = PageGetMeta(BufferGetPage(buffer))->current.number;
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return number;
}

/*
 * Change the meta page.  The pages of new layers have been logged before, so
 * after a crash there is either no such layer or a complete one.  The pages of
 * layers that are gone may get another content at once, so this is flushed.
 * Others are told before anybody can read the change.
 */
void
bfi_change_meta(Relation index, const BfiMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, BFI_META_BLOCK);
	GenericXLogState *state;
	SharedInvalidationMessage message;
	XLogRecPtr	lsn;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = MyDatabaseId;
	message.rc.relId = RelationGetRelid(index);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	state = GenericXLogStart(index);
	write_meta(GenericXLogRegisterBuffer(state, buffer, 0), meta);
	START_CRIT_SECTION();
	SendSharedInvalidMessages(&message, 1);
	lsn = GenericXLogFinish(state);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	if (RelationNeedsWAL(index))
		XLogFlush(lsn);
}
