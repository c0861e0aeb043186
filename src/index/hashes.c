/*-------------------------------------------------------------------------
 *
 * hashes.c
 *	  Looking up hashes in the layers of an index, and adding them.
 *
 * Blocks are intervals of hashes.  So with ascending hashes, each page is read
 * once, and pages are locked in ascending order.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "miscadmin.h"
#include "storage/lmgr.h"

/*
 * So many keys go to pages while another process may measure how full their
 * layer is: too few to make a difference.
 */
#define MAX_UNMEASURED	64

/* Standard deviations of the number of keys of a page. */
#define GRANT_DEVIATIONS	4

static inline BlockNumber
page_of_hash(const BfiLayer *layer, uint64 hash)
{
	return bf_block_number(&layer->geometry, hash) / layer->page_blocks;
}

/*
 * Read the page of a hash: of an index, or as far as it is remembered.  Returns
 * false if it is gone.
 */
static bool
read_page_of_hash(Relation index, BfiCache *known, const BfiLayer *layer,
				  uint64 hash, BfiPage *page)
{
	BlockNumber number = page_of_hash(layer, hash);

	CHECK_FOR_INTERRUPTS();
	return known != NULL ? bfi_read_recent_page(known, layer, number, page) :
		bfi_read_page(index, layer, number, BUFFER_LOCK_SHARE, NULL, page);
}

/*
 * Look up ascending hashes in one layer, but not those that are found already.
 * A page that is gone contains every key.
 */
static void
probe_layer(Relation index, BfiCache *known, const BfiLayer *layer,
			const uint64 *hashes, int n, bool *found)
{
	BfiPage		page = {.layer = layer};
	int			i;

	for (i = 0; i < n; i++)
	{
		const uint8 *block;

		if (found[i])
			continue;
		block = bfi_block_on_page(&page, hashes[i]);
		if (block == NULL)
		{
			if (page.buffer != InvalidBuffer)
				UnlockReleaseBuffer(page.buffer);
			if (read_page_of_hash(index, known, layer, hashes[i], &page))
				block = bfi_block_on_page(&page, hashes[i]);
		}
		found[i] = block == NULL ||
			bf_block_contains(&layer->geometry, block, hashes[i]);
		if (known != NULL && found[i])
			break;
	}
	if (page.buffer != InvalidBuffer)
		UnlockReleaseBuffer(page.buffer);
}

/*
 * Look up ascending hashes in the first layers of a set.  Sets found[i] for
 * those that some layer contains.  The last layer holds the most keys, so it is
 * probed first.  Of what is remembered, one found, or not remembered, is enough.
 */
void
bfi_probe(Relation index, BfiCache *known, const BfiSet *set, int nlayers,
		  const uint64 *hashes, int n, bool *found)
{
	memset(found, false, n * sizeof(bool));
	while (nlayers-- > 0 && (known == NULL || !memchr(found, true, n)))
		probe_layer(index, known, &set->layers[nlayers], hashes, n, found);
}

/* Hashes that a page lacks, and the page, which is pinned. */
typedef struct PageHashes
{
	BfiPage		page;
	uint64	   *hashes;
	int			n;
} PageHashes;

/*
 * Read the page of the first hash, and take those that it lacks; most keys of
 * an update are there already.  Returns the number of hashes that are done
 * with; a page that is gone needs none of them.  If the page lacks none, it is
 * not pinned.
 */
static int
take_hashes_of_page(Relation index, const BfiLayer *layer, uint64 *hashes,
					int n, PageHashes *lacking)
{
	BlockNumber number = page_of_hash(layer, hashes[0]);
	const uint8 *block;
	int			i;

	lacking->hashes = hashes;
	lacking->n = 0;
	if (!read_page_of_hash(index, NULL, layer, hashes[0], &lacking->page))
	{
		for (i = 1; i < n && page_of_hash(layer, hashes[i]) == number; i++)
			;
		return i;
	}
	for (i = 0; i < n; i++)
	{
		block = bfi_block_on_page(&lacking->page, hashes[i]);
		if (block == NULL)
			break;
		if (!bf_block_contains(&layer->geometry, block, hashes[i]))
			hashes[lacking->n++] = hashes[i];
	}
	LockBuffer(lacking->page.buffer, BUFFER_LOCK_UNLOCK);
	if (lacking->n == 0)
		ReleaseBuffer(lacking->page.buffer);
	return i;
}

/*
 * How far keys may fill the pages of a layer: up to their share of the bits of a
 * full layer, with the grants of each page, or, if there is room on others, by
 * so many bits beyond.
 */
typedef struct Limit
{
	bool		with_grants;
	uint64		extra;			/* 0, or bits beyond the share or what is set */
} Limit;

/*
 * The bits of a grant: so many that it is worth the pages that it takes to
 * measure the layer, and that nearly all pages need no more than one.
 */
static uint64
grant_bits(const BfiLayer *layer)
{
	double		keys = (double) layer->geometry.capacity / layer->npages;
	double		bits = (double) bf_geometry_full(&layer->geometry) / layer->npages;
	double		sampled = Min(layer->npages, BFI_MAX_SAMPLE);
	double		grant = GRANT_DEVIATIONS * bits / sqrt(keys) *
		sampled / BFI_MAX_SAMPLE;

	return (uint64) fmax(layer->geometry.k, fmin(grant, BFI_NO_LIMIT));
}

/*
 * What a page may have beyond its share.  A layer that is measured by a sample
 * takes the most pages for that, but it has so many of them that some exceed
 * half a grant before it is full.
 */
static uint64
granted_bits(Page image, const BfiLayer *layer)
{
	uint64		halves = 2 * (uint64) BfiPageGetOpaque(image)->grants +
		(layer->npages > BFI_MAX_SAMPLE);

	return halves * grant_bits(layer) / 2;
}

/* Grant a page what it has beyond its share, and room for more keys. */
static void
grant(Page image, const BfiLayer *layer, uint64 beyond)
{
	BfiPageOpaque *opaque = BfiPageGetOpaque(image);
	uint64		grants = (beyond + layer->geometry.k) / grant_bits(layer) + 1;

	opaque->grants = (uint8) Min(Max(grants, opaque->grants), UINT8_MAX);
}

/*
 * Add hashes to the image of their page, until the next one might exceed the
 * limit.  Hashes that find no room move to the front.  Returns false if nothing
 * changes.
 */
static bool
add_to_page(PageHashes *lacking, Page image, Limit limit)
{
	BfiPage    *page = &lacking->page;
	const BfGeometry *geometry = &page->layer->geometry;
	uint64		share = bf_blocks_full(geometry, page->nblocks);
	uint64		full = share;
	uint64		before = BfiPageGetOpaque(image)->bits_set;
	uint64		bits_set = before;

	page->blocks = (uint8 *) PageGetContents(image);
	if (limit.extra > 0)
		full = Max(share, before) + limit.extra;
	else if (limit.with_grants && before + lacking->n * geometry->k > share)
		full += granted_bits(image, page->layer);
	while (lacking->n > 0 && bits_set + geometry->k <= full)
	{
		/* As many as fit, evenly spaced: all blocks get their share. */
		uint64		n = lacking->n;
		uint64		some = Min((full - bits_set) / geometry->k, n);
		uint64		i;

		lacking->n = 0;
		for (i = 0; i < n; i++)
		{
			uint64		hash = lacking->hashes[i];

			if ((i + 1) * some / n > i * some / n)
				bits_set += bf_block_add(geometry,
										 bfi_block_on_page(page, hash), hash);
			else
				lacking->hashes[lacking->n++] = hash;
		}
	}
	if (bits_set == before)
		return false;
	if (limit.extra > 0 && bits_set > share)
		grant(image, page->layer, bits_set - share);
	bfi_record_bits_set(image, page->layer, (uint32) bits_set);
	return true;
}

/* Where the block of a hash begins on its page. */
static int
block_offset(const BfiPage *page, uint64 hash)
{
	return (int) (bfi_block_on_page(page, hash) - page->blocks +
				  MAXALIGN(SizeOfPageHeaderData));
}

/*
 * Add hashes to ascending pages in one WAL record.  Pages are locked in
 * ascending order, so that processes that do this do not wait for each other
 * in a circle.  A page may have been given to another set, or moved, since it was
 * read.
 */
static void
add_to_pages(Relation index, PageHashes *pages, int n, Limit limit)
{
	static BfiChange changes[BFI_MAX_CHANGES];
	int			nchanges = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		const BfiPage *page = &pages[i].page;
		Buffer		buffer = page->buffer;

		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		if (bfi_is_page_of(page))
		{
			BfiChange  *change = &changes[nchanges];

			bfi_begin_change(change, buffer,
							 block_offset(page, pages[i].hashes[0]),
							 block_offset(page, pages[i].hashes[pages[i].n - 1]) +
							 (int) bf_blocks_size(&page->layer->geometry, 1));
			nchanges += add_to_page(&pages[i], (Page) change->image.data,
									limit);
		}
	}
	if (nchanges > 0)
		bfi_finish_changes(index, changes, nchanges);
	for (i = 0; i < n; i++)
		UnlockReleaseBuffer(pages[i].page.buffer);
}

/*
 * Add ascending hashes to a layer.  Moves those for which there is no room to
 * the front, and returns their number.
 *
 * VACUUM moves pages in ascending order, so those that it has yet to move are
 * behind the others.  But the next page may have been moved since this one was
 * read, so this one is the last of its record.
 */
static int
add_to_layer(Relation index, const BfiLayer *layer, Limit limit,
			 uint64 *hashes, int n)
{
	int			left = 0;
	int			next = 0;

	while (next < n)
	{
		PageHashes	pages[BFI_MAX_CHANGES];
		int			npages = 0;
		int			i;

		while (npages < BFI_MAX_CHANGES && next < n)
		{
			next += take_hashes_of_page(index, layer, hashes + next, n - next,
										&pages[npages]);
			if (pages[npages].n > 0 &&
				pages[npages++].page.set != layer->set)
				break;
		}
		add_to_pages(index, pages, npages, limit);
		for (i = 0; i < npages; i++)
		{
			memmove(hashes + left, pages[i].hashes,
					pages[i].n * sizeof(uint64));
			left += pages[i].n;
		}
	}
	return left;
}

/* Remove those of ascending hashes that layers before the last contain. */
static int
remove_contained(Relation index, const BfiSet *set, uint64 *hashes, int n)
{
	bool	   *found = palloc(n * sizeof(bool));
	int			left = 0;
	int			i;

	bfi_probe(index, NULL, set, set->nlayers - 1, hashes, n, found);
	for (i = 0; i < n; i++)
	{
		if (!found[i])
			hashes[left++] = hashes[i];
	}
	pfree(found);
	return left;
}

/*
 * Add ascending hashes whose pages have their share of bits: beyond it, as far
 * as others have less, or append a layer.  Returns the number of hashes that
 * are left, which are at the front then.
 *
 * One process at a time does this, so that all together add no more than there
 * is room for.  The others wait.  The lock is taken while no page is locked, so
 * it cannot be part of a circle with those of pages.
 */
static int
add_beyond_share(Relation index, uint32 number, int nlayers, uint64 *hashes,
				 int n)
{
	BfiMeta		meta;
	BfiSet	   *set;

	LockPage(index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(index, &meta);
	set = bfi_find_set(&meta, number);
	if (set != NULL && set->nlayers == nlayers)
	{
		Limit		limit = {.extra = bfi_extra_bits(index, set)};

		if (limit.extra > 0)
			n = add_to_layer(index, &set->layers[nlayers - 1], limit, hashes,
							 n);
		else
			bfi_append_layer(index, &meta, set, n);
	}
	UnlockPage(index, BFI_META_BLOCK, ExclusiveLock);
	return n;
}

/*
 * Add ascending hashes to a set that the meta page has named, as far as their
 * pages have their share, or grants.  Returns the number of hashes that are
 * left.
 */
static int
add_to_last_layer(Relation index, const BfiSet *set, Limit limit,
				  uint64 *hashes, int n)
{
	if (set->nlayers > 1)
		n = remove_contained(index, set, hashes, n);
	if (set->nlayers > 0)
		n = add_to_layer(index, &set->layers[set->nlayers - 1], limit, hashes,
						 n);
	return n;
}

/*
 * Add ascending hashes to a set, as far as their pages have their share.  The
 * hashes that are left are at the front; returns their number.
 */
int
bfi_add_to_shares(Relation index, uint32 number, uint64 *hashes, int n)
{
	Limit		limit = {.with_grants = false};
	BfiMeta		meta;
	BfiSet	   *set;

	LockPage(index, BFI_META_BLOCK, ShareLock);
	bfi_read_meta(index, &meta);
	set = bfi_find_set(&meta, number);
	if (set != NULL)
		n = add_to_last_layer(index, set, limit, hashes, n);
	UnlockPage(index, BFI_META_BLOCK, ShareLock);
	return n;
}

/*
 * Add ascending hashes to a set of the meta page.
 *
 * Each page of the last layer takes keys up to its share of the bits of a full
 * layer.  Keys are distributed unevenly, so some pages come to it before the
 * layer is full.  Then the layer decides: keys that somebody chose for one page
 * cannot make the index grow.
 *
 * To measure a layer takes many pages.  So if it has room, the page is granted
 * more bits than the key needs, which further keys may take without asking.
 * Many keys at once leave the grants alone, as they would fill all of them.
 *
 * Many keys fill the first pages of a layer before they come to the last ones,
 * which would look like room for keys beyond the share of the first.  So they
 * are all written before anybody measures that, or appends a layer.
 *
 * A set that is gone needs the keys no more: see pending.c.  The meta page is
 * read again after a round, in case that some are left.
 */
void
bfi_add_to_set(Relation index, BfiMeta *meta, uint32 number,
			   const uint64 *hashes, int n)
{
	size_t		size = n * sizeof(uint64);
	uint64	   *left = MemoryContextAllocHuge(CurrentMemoryContext, size);
	BfiSet	   *set;

	memcpy(left, hashes, size);
	while (n > 0 && (set = bfi_find_set(meta, number)) != NULL)
	{
		bool		is_measured = n > MAX_UNMEASURED;
		Limit		limit = {.with_grants = !is_measured};

		CHECK_FOR_INTERRUPTS();
		if (is_measured)
			LockPage(index, BFI_META_BLOCK, ShareLock);
		n = add_to_last_layer(index, set, limit, left, n);
		if (is_measured)
			UnlockPage(index, BFI_META_BLOCK, ShareLock);
		if (n > 0)
			n = add_beyond_share(index, number, set->nlayers, left, n);
		if (n > 0)
			bfi_read_meta(index, meta);
	}
	pfree(left);
}
