/*-------------------------------------------------------------------------
 *
 * index_probe.c
 *	  Looking up hashes in the pages of an index.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "miscadmin.h"

/*
 * Look up ascending hashes in one layer, but not those that are found already.
 * Blocks are intervals of hashes, so each page is read once.  Returns how many
 * were found.
 */
static int
probe_layer(Relation index, const BfiMeta *meta, int layer,
			const uint64 *hashes, int n, bool *found)
{
	const BfiLayer *of = &meta->layers[layer];
	Buffer		buffer = InvalidBuffer;
	BlockNumber number = 0;
	int			count = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (found[i])
			continue;
		if (buffer == InvalidBuffer ||
			number != bfi_page_number(of, hashes[i]))
		{
			if (buffer != InvalidBuffer)
				UnlockReleaseBuffer(buffer);
			CHECK_FOR_INTERRUPTS();
			number = bfi_page_number(of, hashes[i]);
			buffer = bfi_read_page(index, meta, layer, number,
								   BUFFER_LOCK_SHARE, NULL);
		}
		found[i] = bf_block_contains(&of->geometry,
									 bfi_block_on_page(BufferGetPage(buffer),
													   of, hashes[i]),
									 hashes[i]);
		count += found[i];
	}
	if (buffer != InvalidBuffer)
		UnlockReleaseBuffer(buffer);
	return count;
}

/*
 * Look up ascending hashes in the layers first to end - 1.  Sets found[i] for
 * those that some layer contains, and returns their number.  The last layer
 * holds the most keys, so it is probed first.
 */
int
bfi_probe_layers(Relation index, const BfiMeta *meta, int first, int end,
				 const uint64 *hashes, int n, bool *found)
{
	int			count = 0;
	int			i;

	memset(found, false, n * sizeof(bool));
	for (i = end - 1; i >= first && count < n; i--)
		count += probe_layer(index, meta, i, hashes, n, found);
	return count;
}

/* Does the index contain a hash? */
bool
bfi_contains(Relation index, const BfiMeta *meta, uint64 hash)
{
	bool		found;

	return bfi_probe_layers(index, meta, 0, meta->nlayers, &hash, 1,
							&found) > 0;
}
