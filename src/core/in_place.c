/*-------------------------------------------------------------------------
 *
 * in_place.c
 *	  Adding to an image without a builder.
 *
 * A key that is added to a dense filter with room for it changes some bits
 * and a counter.  This saves the copy that a builder makes of all layers.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"
#include "image.h"
#include "list.h"

/*
 * Add a hash to an image, which is the one that view shows or a copy of it;
 * afterwards the view is out of date.  BF_NO_ROOM if a builder is needed,
 * because the image would have to grow or to lose an exclusion; then nothing
 * has changed.  The result is the image that a builder would write, apart from
 * what it would merge or correct in an image of others.
 */
BfStatus
bf_add_in_place(uint8_t *image, const BfView *view, uint64_t hash)
{
	int			i;

	if (bf_contains(view, hash))
		return BF_OK;
	if (bf_list_contains(view->exclusions, view->nexclusions, hash))
		return BF_NO_ROOM;

	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfViewLayer *layer = &view->layers[i];
		uint64_t	full = bf_geometry_full(&layer->geometry);
		uint64_t	bits_set = layer->bits_set;

		if (bf_bits_add_within(&layer->geometry, image + layer->at, hash,
							   full, &bits_set))
		{
			bf_update_bits_set(image, view, i, bits_set);
			return BF_OK;
		}
	}
	return BF_NO_ROOM;
}
