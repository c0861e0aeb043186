/*-------------------------------------------------------------------------
 *
 * bf_filter.c
 *	  Questions to an image where it lies or comes from in parts, and adding
 *	  to it in place.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bf_internal.h"

/* Whether the bits of any layer say yes. */
bool
bf_bits_say(const BfView *view, uint64_t hash)
{
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		if (bf_bits_contain(&view->layers[i].shape, view->layers[i].bits,
							hash))
			return true;
	}
	return false;
}

static bool
is_exception(const BfView *view, uint64_t hash)
{
	return view->nexceptions > 0 &&
		bf_list_contains(view->exceptions, view->nexceptions, hash);
}

bool
bf_contains(const BfView *view, uint64_t hash)
{
	if (view->nlayers == 0)
		return bf_list_contains(view->hashes, view->nhashes, hash);
	return bf_bits_say(view, hash) && !is_exception(view, hash);
}

/*
 * The same for an image of which only the front is at hand.  The last layer
 * is the largest and holds most keys, so it is asked first.
 */
bool
bf_contains_by_parts(const BfView *view, uint64_t hash,
					 BfRead read, void *context)
{
	int			i;

	if (view->nlayers == 0)
		return bf_list_contains_by_parts(view->list_at, view->nhashes, hash,
										 read, context);

	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfViewLayer *layer = &view->layers[i];
		BfShape		block = layer->shape;

		/* A block by itself is a layer of one block. */
		block.nblocks = 1;
		if (bf_bits_contain(&block,
							read(context,
								 layer->at + bf_block_at(&layer->shape, hash),
								 bf_shape_size(&block)),
							hash))
			return !bf_list_contains_by_parts(view->list_at,
											  view->nexceptions, hash,
											  read, context);
	}
	return false;
}

/*
 * Whether growth made the layer a successor of the other one, at half its
 * rate, or a successor of such a one.
 */
static bool
descends(const BfViewLayer *layer, const BfViewLayer *from)
{
	int			exponent;

	return layer->shape.fpp < from->shape.fpp &&
		frexp(layer->shape.fpp, &exponent) ==
		frexp(from->shape.fpp, &exponent);
}

/*
 * The rate at which keys that were never added test positive: in all layers,
 * or in those that one descends from.  They do where at least one says so.
 */
static double
layers_fpp(const BfView *view, const BfViewLayer *descendant)
{
	double		negative = 1;
	double		sum = 0;
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		const BfViewLayer *layer = &view->layers[i];
		double		fpp;

		if (descendant != NULL && !descends(descendant, layer))
			continue;
		fpp = bf_shape_fpp(&layer->shape, layer->bits_set);

		/* 1 - (1 - a)(1 - b), without losing the digits of small rates */
		sum += negative * fpp;
		negative *= 1 - fpp;
	}
	return fmin(sum, 1);
}

/*
 * Number of distinct keys: exact in the sparse form (but for equal hashes of
 * different keys, a chance of n^2 / 2^65), else estimated from the bits that
 * are set.  Keys in several layers, which a union can bring about, count in
 * each.  Of the keys on their way to a layer that came by growth, those that
 * tested positive in the layers before it never arrived.
 */
double
bf_cardinality(const BfView *view)
{
	double		n = view->nhashes;
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		const BfViewLayer *layer = &view->layers[i];

		n += bf_shape_cardinality(&layer->shape, layer->bits_set) /
			fmax(1 - layers_fpp(view, layer), 0.5);
	}
	return n;
}

/* The false-positive rate that the filter has now. */
double
bf_current_fpp(const BfView *view)
{
	/* In the sparse form, the chance to hit one of n hashes of 2^64. */
	if (view->nlayers == 0)
		return view->nhashes / 18446744073709551616.0;
	return layers_fpp(view, NULL);
}

/*
 * Add a hash to an image, which is the one that view shows or a copy of it;
 * afterwards the view is out of date.  BF_NO_ROOM tells that the image would
 * have to grow, or to lose an exception, which takes a builder.
 */
BfStatus
bf_add_in_place(uint8_t *image, const BfView *view, uint64_t hash)
{
	int			i;

	if (bf_contains(view, hash))
		return BF_OK;
	if (is_exception(view, hash))
		return BF_NO_ROOM;

	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfViewLayer *layer = &view->layers[i];
		uint64_t	full = bf_shape_full(&layer->shape);
		uint64_t	bits_set = layer->bits_set;

		if (bf_bits_add_within(&layer->shape,
							   image + (layer->bits - view->image),
							   hash, full, &bits_set))
		{
			bf_update_bits_set(image, view, i, bits_set);
			return BF_OK;
		}
	}
	return BF_NO_ROOM;
}
