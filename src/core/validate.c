/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  The checks of an image that comes from outside.
 *
 * bf_open() makes every access safe.  A walk through the content makes sure
 * that the answers are right as well: lists are ascending, and counters match
 * the bits.
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"
#include "bytes.h"
#include "image.h"
#include "interrupts.h"

static BfStatus
reject(BfView *view, const char *reason)
{
	view->reason = reason;
	return BF_CORRUPT;
}

static bool
is_ascending(const BfInterrupts *interrupts, const uint8_t *list, uint32_t n)
{
	uint32_t	i;

	for (i = 1; i < n; i++, list += 8)
	{
		bf_check_interrupts_at(interrupts, i, 0);
		if (bf_load64(list) >= bf_load64(list + 8))
			return false;
	}
	return true;
}

/*
 * Open an image of which nothing is trusted; status and reason as those of
 * bf_open.
 */
BfStatus
bf_validate(const BfInterrupts *interrupts, const uint8_t *image, size_t size,
			BfView *view)
{
	BfStatus	status = bf_open(image, size, view);
	int			i;

	if (status != BF_OK)
		return status;

	if (!is_ascending(interrupts, view->hashes, view->nhashes))
		return reject(view, "Its hashes are not ascending.");
	for (i = 0; i < view->nlayers; i++)
	{
		const BfViewLayer *layer = &view->layers[i];

		if (bf_bitmap_count(interrupts, layer->bits,
							bf_geometry_size(&layer->geometry)) !=
			layer->bits_set)
			return reject(view,
						  "The number of set bits of a layer does not match its bits.");
	}
	if (view->params.expected > bf_max_keys(view->params.fpp))
		return reject(view, "It expects more keys than fit at its rate.");
	return BF_OK;
}
