/*-------------------------------------------------------------------------
 *
 * index_add.c
 *	  Adding hashes to the pages of an index.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "miscadmin.h"
#include "storage/lmgr.h"

#include "index/wal.h"

/*
 * Remove those hashes that are on a page already; returns how many are left.
 */
static int
remove_present(Page page, const BfiLayer *layer, uint64 *hashes, int n)
{
	int			left = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (!bf_block_contains(&layer->geometry,
							   bfi_block_on_page(page, layer, hashes[i]),
							   hashes[i]))
			hashes[left++] = hashes[i];
	}
	return left;
}

/*
 * Add some of these hashes to a page, evenly spaced, so that all blocks of the
 * page get their share.  Moves the others to the front of hashes, and returns
 * their number.
 */
static int
add_some(Page page, const BfiLayer *layer, uint64 some, uint64 *hashes, int n,
		 uint64 *bits_set)
{
	int			left = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (some >= (uint64) n || (i + 1) * some / n > i * some / n)
			*bits_set += bf_block_add(&layer->geometry,
									  bfi_block_on_page(page, layer, hashes[i]),
									  hashes[i]);
		else
			hashes[left++] = hashes[i];
	}
	return left;
}

/* Hashes of one page, and the page, which is pinned. */
typedef struct Group
{
	uint64	   *hashes;
	int			n;
	uint64		share;			/* of the page in the bits of a full layer */
	Buffer		buffer;
} Group;

/*
 * Add the hashes of a group to a page that is locked exclusively, until the
 * next one might exceed its share of bits.  With extra, so many bits more than
 * that, or more than it has.  Returns false if that changes nothing.
 */
static bool
add_to_page(Page page, const BfiLayer *layer, uint64 extra, Group *group)
{
	uint64		before = bfi_page_bits_set(page, layer);
	uint64		bits_set = before;
	uint64		full = group->share;
	unsigned	k = layer->geometry.k;

	if (extra > 0)
		full = Max(full, before) + extra;
	while (group->n > 0 && bits_set + k <= full)
		group->n = add_some(page, layer, (full - bits_set) / k,
							group->hashes, group->n, &bits_set);
	if (bits_set == before)
		return false;
	bfi_record_bits_set(page, layer, bits_set);
	return true;
}

/*
 * Add groups of ascending pages in one WAL record.  Their hashes that find no
 * room move to the front of the group.  Pages are locked in ascending order,
 * so that processes that do this do not wait for each other in a circle.
 */
static void
add_groups(Relation index, const BfiLayer *layer, uint64 extra,
		   BfiChange *changes, Group *groups, int n)
{
	int			nchanges = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		Page		page;

		LockBuffer(groups[i].buffer, BUFFER_LOCK_EXCLUSIVE);
		page = bfi_begin_change(&changes[nchanges], groups[i].buffer);
		if (add_to_page(page, layer, extra, &groups[i]))
			nchanges++;
	}
	if (nchanges > 0)
		bfi_finish_changes(index, changes, nchanges);
	for (i = 0; i < n; i++)
		UnlockReleaseBuffer(groups[i].buffer);
}

/*
 * Read the page of the first hashes and make a group of those that it lacks;
 * most keys of an update are there already.  Returns the number of hashes that
 * belong to the page.  If it lacks none, the group is empty, and not pinned.
 */
static int
make_group(Relation index, const BfiMeta *meta, int layer, uint64 *hashes,
		   int n, Group *group)
{
	const BfiLayer *to = &meta->layers[layer];
	BlockNumber number = bfi_page_number(to, hashes[0]);
	int			end = 1;

	while (end < n && bfi_page_number(to, hashes[end]) == number)
		end++;
	CHECK_FOR_INTERRUPTS();
	group->share = bf_blocks_full(&to->geometry, bfi_page_nblocks(to, number));
	group->buffer = bfi_read_page(index, meta, layer, number,
								  BUFFER_LOCK_SHARE, NULL);
	group->hashes = hashes;
	group->n = remove_present(BufferGetPage(group->buffer), to, hashes, end);
	LockBuffer(group->buffer, BUFFER_LOCK_UNLOCK);
	if (group->n == 0)
		ReleaseBuffer(group->buffer);
	return end;
}

/*
 * Add ascending hashes to the last layer, with so many extra bits for each
 * page.  Moves the hashes for which there is no room to the front, and returns
 * their number.
 */
static int
add_to_layer(Relation index, const BfiMeta *meta, uint64 extra,
			 uint64 *hashes, int n)
{
	int			layer = meta->nlayers - 1;
	BfiChange  *changes = palloc(BFI_MAX_CHANGES * sizeof(BfiChange));
	int			left = 0;
	int			next = 0;

	while (next < n)
	{
		Group		groups[BFI_MAX_CHANGES];
		int			ngroups = 0;
		int			i;

		while (ngroups < BFI_MAX_CHANGES && next < n)
		{
			next += make_group(index, meta, layer, hashes + next, n - next,
							   &groups[ngroups]);
			ngroups += groups[ngroups].n > 0;
		}
		add_groups(index, &meta->layers[layer], extra, changes, groups,
				   ngroups);
		for (i = 0; i < ngroups; i++)
		{
			memmove(hashes + left, groups[i].hashes,
					groups[i].n * sizeof(uint64));
			left += groups[i].n;
		}
	}
	pfree(changes);
	return left;
}

/* Remove those of ascending hashes that layers before the last contain. */
static int
remove_contained(Relation index, const BfiMeta *meta, uint64 *hashes, int n)
{
	bool	   *found = palloc(n * sizeof(bool));
	int			left = 0;
	int			i;

	bfi_probe_layers(index, meta, 0, meta->nlayers - 1, hashes, n, found);
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
add_beyond_share(Relation index, const BfiMeta *meta, uint64 *hashes, int n)
{
	BfiMeta		now;

	LockPage(index, BFI_META_BLOCK, ExclusiveLock);
	bfi_read_meta(index, &now);
	if (now.nlayers == meta->nlayers)
	{
		uint64		extra = bfi_extra_bits(index, &now);

		if (extra > 0)
			n = add_to_layer(index, &now, extra, hashes, n);
		else
			bfi_append_layer(index, &now, n);
	}
	UnlockPage(index, BFI_META_BLOCK, ExclusiveLock);
	return n;
}

/*
 * Add ascending hashes to an index.  The array is overwritten.
 *
 * Each page of the last layer takes keys up to its share of the bits of a full
 * layer.  Keys are distributed unevenly, so some pages come to it before the
 * layer is full.  Then the layer decides: keys that somebody chose for one page
 * cannot make the index grow.
 */
void
bfi_add(Relation index, uint64 *hashes, int n)
{
	while (n > 0)
	{
		BfiMeta		meta;

		CHECK_FOR_INTERRUPTS();
		bfi_read_meta(index, &meta);
		if (meta.nlayers > 1)
			n = remove_contained(index, &meta, hashes, n);
		if (meta.nlayers > 0)
			n = add_to_layer(index, &meta, 0, hashes, n);
		if (n > 0)
			n = add_beyond_share(index, &meta, hashes, n);
	}
}
