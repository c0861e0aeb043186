/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Questions to an image where it lies or comes from in parts, and adding
 *	  to it in place.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"

/* Whether the bits of any layer say yes. */
bool
bf_layers_contain(const BfView *view, uint64_t hash)
{
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		if (bf_bits_contain(&view->layers[i].geometry, view->layers[i].bits,
							hash))
			return true;
	}
	return false;
}

static bool
is_exclusion(const BfView *view, uint64_t hash)
{
	return view->nexclusions > 0 &&
		bf_list_contains(view->exclusions, view->nexclusions, hash);
}

bool
bf_contains(const BfView *view, uint64_t hash)
{
	if (view->nlayers == 0)
		return bf_list_contains(view->hashes, view->nhashes, hash);
	return bf_layers_contain(view, hash) && !is_exclusion(view, hash);
}

/*
 * The same for an image of which only the header is at hand.  The last layer
 * is the largest and holds most keys, so it is asked first.
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
		BfGeometry		block = layer->geometry;

		/* A block by itself is a layer of one block. */
		block.nblocks = 1;
		if (bf_bits_contain(&block,
							read(context,
								 layer->at + bf_block_at(&layer->geometry, hash),
								 bf_geometry_size(&block)),
							hash))
			return !bf_list_contains_sliced(view->list_at,
											  view->nexclusions, hash,
											  read, context);
	}
	return false;
}

/*
 * Is this a filter without keys, for which nothing was asked?  Its union with
 * any other filter is the other filter.
 */
bool
bf_is_neutral(const BfView *view)
{
	return view->nlayers == 0 && view->nhashes == 0 &&
		bf_params_are_neutral(&view->params);
}

/*
 * Number of distinct keys: exact in the sparse form (but for equal hashes of
 * different keys, a chance of n^2 / 2^65), else estimated from the bits that
 * are set.  Keys in several layers, which a union can bring about, count in
 * each.
 */
double
bf_cardinality(const BfView *view)
{
	double		n = view->nhashes;
	int			i;

	for (i = 0; i < view->nlayers; i++)
		n += bf_geometry_keys(&view->layers[i].geometry, view->layers[i].bits_set);
	return n;
}

/*
 * The false-positive rate that the filter has now: in the sparse form the
 * chance to hit one of n hashes of 2^64, else the chance that at least one of
 * its layers reports a key as a member.
 */
double
bf_current_fpp(const BfView *view)
{
	double		negative = 1;
	double		sum = 0;
	int			i;

	if (view->nlayers == 0)
		return view->nhashes / 18446744073709551616.0;
	for (i = 0; i < view->nlayers; i++)
	{
		double		fpp = bf_geometry_fpp(&view->layers[i].geometry,
									   view->layers[i].bits_set);

		/* 1 - (1 - a)(1 - b), without losing the digits of small rates */
		sum += negative * fpp;
		negative *= 1 - fpp;
	}
	return fmin(sum, 1);
}

/* The largest rate for which the filter, or a layer in it, was made. */
double
bf_largest_fpp(const BfView *view)
{
	double		fpp = view->params.fpp;
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		if (!view->layers[i].geometry.merged)
			fpp = fmax(fpp, view->layers[i].geometry.fpp);
	}
	return fpp;
}

/*
 * Add a hash to an image, which is the one that view shows or a copy of it;
 * afterwards the view is out of date.  BF_NO_ROOM tells that the image would
 * have to grow, or to lose an exclusion, which takes a builder.
 */
BfStatus
bf_add_in_place(uint8_t *image, const BfView *view, uint64_t hash)
{
	int			i;

	if (bf_contains(view, hash))
		return BF_OK;
	if (is_exclusion(view, hash))
		return BF_NO_ROOM;

	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfViewLayer *layer = &view->layers[i];
		uint64_t	full = bf_geometry_full(&layer->geometry);
		uint64_t	bits_set = layer->bits_set;

		if (bf_bits_add_within(&layer->geometry,
							   image + (layer->bits - view->image),
							   hash, full, &bits_set))
		{
			bf_update_bits_set(image, view, i, bits_set);
			return BF_OK;
		}
	}
	return BF_NO_ROOM;
}
