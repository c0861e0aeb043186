/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Whether a hash is in an image, which is in memory or read in slices.
 *
 * A sparse filter contains its hashes.  A dense filter contains what any of
 * its layers contains.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"
#include "image.h"
#include "list.h"

/* Is the hash in the filter?  The view must not be that of a header. */
bool
bf_contains(const BfView *view, uint64_t hash)
{
	int			i;

	if (view->nlayers == 0)
		return bf_list_contains(view->hashes, view->nhashes, hash);
	for (i = 0; i < view->nlayers; i++)
	{
		if (bf_bits_contain(&view->layers[i].geometry, view->layers[i].bits,
							hash))
			return true;
	}
	return false;
}

/*
 * The same for an image of which only the header is in memory.  The last layer
 * is the largest and holds the most keys, so it is probed first.
 */
bool
bf_contains_sliced(const BfView *view, uint64_t hash,
				   BfReadSlice read, void *context)
{
	int			i;

	if (view->nlayers == 0)
		return bf_list_contains_sliced(view->list_at, view->nhashes, hash,
									   read, context);

	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfViewLayer *layer = &view->layers[i];
		size_t		at = layer->at + bf_block_at(&layer->geometry, hash);
		const uint8_t *bits = read(context, at,
								   bf_block_size(&layer->geometry));

		if (bf_block_contains(&layer->geometry, bits, hash))
			return true;
	}
	return false;
}
