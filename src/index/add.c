/*-------------------------------------------------------------------------
 *
 * add.c
 *	  Adding hashes to the pages of an index.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "miscadmin.h"

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
	uint64		full;			/* set bits beyond which it takes no more */
	Buffer		buffer;
} Group;

/*
 * Add the hashes of a group to a page that is locked exclusively, until the
 * next one might exceed the limit.  Returns false if that changes nothing.
 */
static bool
add_to_page(Page page, const BfiLayer *layer, Group *group)
{
	uint64		before = bfi_page_bits_set(page, layer);
	uint64		bits_set = before;
	unsigned	k = layer->geometry.k;

	while (group->n > 0 && bits_set + k <= group->full)
		group->n = add_some(page, layer, (group->full - bits_set) / k,
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
add_groups(Relation index, const BfiLayer *layer, BfiChange *changes,
		   Group *groups, int n)
{
	int			nchanges = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		Page		page;

		LockBuffer(groups[i].buffer, BUFFER_LOCK_EXCLUSIVE);
		page = bfi_begin_change(&changes[nchanges], groups[i].buffer);
		if (add_to_page(page, layer, &groups[i]))
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
 * Add ascending hashes to a layer.  If it is limited, pages that are filled as
 * the layer was designed take no more; moves the hashes for which there is no
 * room to the front, and returns their number.
 */
static int
add_to_layer(Relation index, const BfiMeta *meta, int layer, bool limited,
			 uint64 *hashes, int n)
{
	const BfiLayer *to = &meta->layers[layer];
	BfiChange  *changes = palloc(BFI_MAX_CHANGES * sizeof(BfiChange));
	uint64		full[2];		/* of the last page, and of any other */
	int			left = 0;
	int			next = 0;

	full[0] = bf_blocks_full(&to->geometry,
							 bfi_page_nblocks(to, to->npages - 1));
	full[1] = bf_blocks_full(&to->geometry, bfi_page_nblocks(to, 0));
	while (next < n)
	{
		Group		groups[BFI_MAX_CHANGES];
		int			ngroups = 0;
		int			i;

		while (ngroups < BFI_MAX_CHANGES && next < n)
		{
			Group	   *group = &groups[ngroups];
			bool		last = bfi_page_number(to, hashes[next]) == to->npages - 1;

			group->full = limited ? full[last ? 0 : 1] : BFI_NO_LIMIT;
			next += make_group(index, meta, layer, hashes + next, n - next,
							   group);
			ngroups += group->n > 0;
		}
		add_groups(index, to, changes, groups, ngroups);
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
 * Add ascending hashes to an index.  The array is overwritten.
 *
 * A page without room tells that the layer may be full.  If it is not, because
 * keys are distributed unevenly, or if another process is appending a layer,
 * the page takes more than its share: the rate of one page rises, but no key
 * waits, and keys that somebody chose for one page cannot make the index grow.
 */
void
bfi_add(Relation index, uint64 *hashes, int n)
{
	BfiMeta		meta;

	while (n > 0)
	{
		int			last;

		CHECK_FOR_INTERRUPTS();
		bfi_read_meta(index, &meta);
		last = meta.nlayers - 1;
		if (meta.nlayers > 1)
			n = remove_contained(index, &meta, hashes, n);
		if (meta.nlayers > 0)
			n = add_to_layer(index, &meta, last, true, hashes, n);
		if (n == 0 || bfi_grow(index, &meta, n))
			continue;
		n = add_to_layer(index, &meta, last, false, hashes, n);
	}
}
