/*-------------------------------------------------------------------------
 *
 * grow.c
 *	  When a layer is full, and the layer that follows it.
 *
 * A layer is made for half the rate of the one before, the first one for half
 * of the rate that the index is asked for, so all of them together stay below
 * that rate, however many there are.
 *
 * How many keys a successor is made for decides between size and pages: when
 * it is new, the index has room for GROWTH times the keys that are in it, and
 * a lookup reads a page of each layer.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "access/xloginsert.h"
#include "common/pg_prng.h"
#include "miscadmin.h"

/* A successor brings the room of all layers to this multiple. */
#define GROWTH			4

/* Below this room, a few kilobytes more are better than further layers. */
#define SMALL_ROOM		260000
#define SMALL_GROWTH	16

/*
 * Nobody takes space for many expected keys before there are some: a layer is
 * made for up to UNSEEN_KEYS of them, or UNSEEN_FACTOR times the keys that are
 * there.
 */
#define UNSEEN_KEYS		((uint64) 1 << 22)
#define UNSEEN_FACTOR	256

/*
 * What a sample says of how full a layer is may be wrong by this many standard
 * deviations.  It is asked often while a layer is nearly full, and once is
 * enough to end the layer.
 */
#define SAMPLE_DEVIATIONS	5

/* For layers of which only the size is asked. */
static const BfiSet no_set;

/*
 * The layer for n keys, or for as many as one layer can have.  If only a sample
 * of its pages tells how full it is, it has room for the error: the keys of a
 * page vary by the square root of their number, and their mean in a sample by
 * that of the number in all of its pages.
 */
static void
geometry_for(double fpp, uint64 n, BfGeometry *geometry)
{
	BfiLayer	layer;
	double		sampled;

	while (bf_geometry_for(fpp, true, n, geometry) != BF_OK)
		n = n / 4 * 3;
	layer.geometry = *geometry;
	bfi_set_layer(&layer, &no_set, 0, 0);
	if (layer.npages <= BFI_MAX_SAMPLE)
		return;
	sampled = (double) n / layer.npages * BFI_MAX_SAMPLE;
	n += (uint64) (SAMPLE_DEVIATIONS * n / sqrt(sampled));
	if (bf_geometry_for(fpp, true, n, &layer.geometry) == BF_OK)
		*geometry = layer.geometry;
}

/* As many keys as a layer of one page has room for, or a few less. */
static uint64
keys_of_page(double fpp)
{
	BfiLayer	layer;
	uint64		n = UNSEEN_KEYS;

	geometry_for(fpp, n, &layer.geometry);
	bfi_set_layer(&layer, &no_set, 0, 0);
	n /= layer.npages;
	do
	{
		n -= n / 64;
		geometry_for(fpp, n, &layer.geometry);
		bfi_set_layer(&layer, &no_set, 0, 0);
	} while (layer.npages > 1);
	return n;
}

/* Can no layer have room for so many keys of an index of this rate? */
bool
bfi_is_too_large(double fpp, uint64 n)
{
	return bf_needed_bits(fpp / 2, true, n) > (double) BF_MAX_PAGED_BITS;
}

/* Raise an error if so. */
void
bfi_check_size(double fpp, uint64 n)
{
	double		bits = bf_needed_bits(fpp / 2, true, n);

	if (bfi_is_too_large(fpp, n))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("Bloom filter index for %lld keys would take %s",
						(long long) n, pgbloom_pretty_size(bits / 8)),
				 errdetail("The maximum size of one layer is %s.",
						   pgbloom_pretty_size((double) BF_MAX_PAGED_BITS / 8)),
				 errhint("Reduce \"expected\", ask for a larger \"fpp\", or partition the table.")));
}

/* As many of the expected keys as a layer is made for if there are so many. */
static uint64
expected_keys(const BfiMeta *meta, uint64 keys)
{
	return Min(meta->expected, Max(keys * UNSEEN_FACTOR, UNSEEN_KEYS));
}

/*
 * The first layer, for so many keys that are known.  Without "expected", it has
 * room for so many, and fills a page.
 */
void
bfi_first_geometry(const BfiMeta *meta, uint64 keys, uint64 room,
				   BfGeometry *geometry)
{
	double		fpp = meta->fpp / 2;
	uint64		n;

	if (meta->expected > 0)
		n = Max(keys, expected_keys(meta, keys));
	else
		n = Max(room, keys_of_page(fpp));
	bfi_check_size(meta->fpp, n);
	geometry_for(fpp, n, geometry);
}

/* The layer after the last one, for so many keys that wait. */
static void
successor_geometry(const BfiMeta *meta, const BfiSet *set, uint64 keys,
				   BfGeometry *geometry)
{
	const BfGeometry *last = &set->layers[set->nlayers - 1].geometry;
	uint64		room = 0;
	uint64		more;
	int			i;

	for (i = 0; i < set->nlayers; i++)
		room += set->layers[i].geometry.capacity;
	if (room < meta->expected)
		more = expected_keys(meta, room) - room;
	else
		more = Max((uint64) (room * GROWTH),
				   Min(room * SMALL_GROWTH, SMALL_ROOM)) - room;
	geometry_for(Max(last->fpp / 2, BF_LAYER_FPP_MIN), Max(more, 2 * keys),
				 geometry);
	geometry->generation = Min(last->generation + 1, BF_MAX_GENERATION);
}

/*
 * Estimate the number of set bits of a layer, by some of its pages if it has
 * many: one of each interval, at random, so that nobody can choose keys for
 * them.  Where pages may be lacking, the others tell.
 */
static uint64
layer_bits_set(Relation index, const BfiLayer *layer, bool may_lack)
{
	BlockNumber n = Min(layer->npages, BFI_MAX_SAMPLE);
	uint64		nblocks = 0;
	uint64		bits_set = 0;
	BlockNumber i;

	for (i = 0; i < n; i++)
	{
		uint64		offset = pg_prng_uint64_range(&pg_global_prng_state, 0,
												  layer->npages - 1);
		BlockNumber number = (BlockNumber) (((uint64) i * layer->npages + offset) / n);
		BfiPage		page;

		if (!may_lack)
			bfi_read_layer_page(index, layer, number, NULL, &page);
		else if (!bfi_read_page(index, layer, number, BUFFER_LOCK_SHARE, NULL,
								&page))
			continue;
		bits_set += BfiPageGetOpaque(BufferGetPage(page.buffer))->bits_set;
		nblocks += page.nblocks;
		UnlockReleaseBuffer(page.buffer);
	}
	if (nblocks == 0 || nblocks == layer->geometry.nblocks)
		return bits_set;
	return (uint64) ((double) bits_set / nblocks * layer->geometry.nblocks);
}

/*
 * How many bits each page of the last layer may have beyond its share, if some
 * pages have less: all of them together do not exceed what the layer was
 * designed for by more than a key on each.  0 if the layer is full, or if there
 * is none.  The caller holds the lock on the meta page.
 */
uint64
bfi_extra_bits(Relation index, const BfiSet *set)
{
	const BfiLayer *last;
	uint64		full;
	uint64		bits_set;

	if (set->nlayers == 0)
		return 0;
	if (set->nlayers == BFI_MAX_LAYERS)
		return BFI_NO_LIMIT;
	last = &set->layers[set->nlayers - 1];
	full = bf_geometry_full(&last->geometry);
	bits_set = layer_bits_set(index, last, true);
	if (bits_set + last->geometry.k > full)
		return 0;
	return Max((full - bits_set) / last->npages, last->geometry.k);
}

/*
 * Initialize pages of a layer that no directory has yet, no more than are still in
 * memory when they are logged.  Pages may exist that an attempt before a crash left
 * behind.
 */
void
bfi_make_layer_pages(Relation index, const BfiLayer *layer, BlockNumber from,
					 BlockNumber to)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKWRITE);
	BlockNumber existing = RelationGetNumberOfBlocks(index);
	BlockNumber i;

	for (i = from; i < to; i++)
	{
		BlockNumber block = layer->first + i;
		Buffer		buffer;
		BfiPage		page;

		CHECK_FOR_INTERRUPTS();
		buffer = block < existing ?
			ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK,
							   strategy) :
			bfi_extend(index, MAIN_FORKNUM, block, strategy);
		bfi_set_page(&page, layer, i, buffer);
		bfi_init_page(&page);
		if (block < existing)
		{
			bfi_finish_new_page(index, MAIN_FORKNUM, buffer);
			continue;
		}
		MarkBufferDirty(buffer);
		UnlockReleaseBuffer(buffer);
	}
	FreeAccessStrategy(strategy);
	if (RelationNeedsWAL(index) && layer->first + to > existing)
		log_newpage_range(index, MAIN_FORKNUM,
						  Max(layer->first + from, existing),
						  layer->first + to, true);
}

/*
 * Append a layer to a set, of which the first pages have been made.  Only who
 * holds the lock on the meta page changes it, and extends the index.
 */
void
bfi_append_geometry(Relation index, BfiMeta *meta, BfiSet *set,
					const BfGeometry *geometry, BlockNumber made)
{
	BfiLayer   *layer = &set->layers[set->nlayers];

	layer->geometry = *geometry;
	bfi_set_layer(layer, set, set->nlayers, 0);
	layer->first = bfi_end(meta);
	for (; made < layer->npages; made += BFI_PAGES_AT_ONCE)
		bfi_make_layer_pages(index, layer, made,
							 Min(made + BFI_PAGES_AT_ONCE, layer->npages));
	set->nlayers++;
	bfi_change_meta(index, meta);
}

/* Append a layer to a set, for at least this number of keys that wait. */
void
bfi_append_layer(Relation index, BfiMeta *meta, BfiSet *set, uint64 keys)
{
	BfGeometry	geometry;

	if (set->nlayers == 0)
		bfi_first_geometry(meta, keys, keys + keys / 2, &geometry);
	else
		successor_geometry(meta, set, keys, &geometry);
	bfi_append_geometry(index, meta, set, &geometry, 0);
}

/*
 * The view of a filter with the layers of an index and their numbers of set
 * bits.  Parameters other than the rate are not set.
 */
void
bfi_measure(Relation index, const BfiMeta *meta, BfView *view)
{
	int			i;

	memset(view, 0, offsetof(BfView, layers));
	view->params.fpp = meta->fpp;
	view->nlayers = meta->current.nlayers;
	for (i = 0; i < view->nlayers; i++)
	{
		const BfiLayer *layer = &meta->current.layers[i];

		memset(&view->layers[i], 0, sizeof(BfLayer));
		view->layers[i].geometry = layer->geometry;
		view->layers[i].bits_set = layer_bits_set(index, layer, false);
	}
}
