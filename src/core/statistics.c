/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  What the bits of a layer, or of all layers of a filter, tell about its
 *	  number of keys and its false-positive rate.
 *
 * Except for those that count distinct keys, these functions read the numbers
 * of set bits, not the bits, so they work on the view of a header.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"

/*
 * With so few unset bits, the estimate of the number of keys has a standard
 * error of 3 % or less.
 */
#define MIN_UNSET	1000

/*
 * Estimated number of distinct keys in a layer with this many bits set, by
 * rate.c.  A layer with all bits set tells only a lower bound: the estimate is
 * that of one unset bit.
 */
double
bf_geometry_cardinality(const BfGeometry *geometry, uint64_t bits_set)
{
	double		m = (double) bf_geometry_bits(geometry);

	return bf_expected_keys(geometry, fmin((double) bits_set, m - 1));
}

/*
 * Estimated number of distinct keys that a layer accounts for.
 *
 * A key that is a false positive of earlier layers is not added to a successor
 * layer, so its estimate is divided by 1 - fpp of each of those.  They were
 * full when it was appended, so they have the rates that they are made for:
 * twice the rate of the layer, four times, and so on, because layers.c halves
 * the rate each time.
 */
static double
layer_keys(const BfGeometry *geometry, uint64_t bits_set)
{
	double		n = bf_geometry_cardinality(geometry, bits_set);
	double		fpp = geometry->fpp;
	int			i;

	for (i = 0; i < geometry->generation; i++)
	{
		fpp = fmin(2 * fpp, BF_FPP_MAX);
		n /= 1 - fpp;
	}
	return n;
}

/* The false-positive rate of a layer with this many bits set. */
double
bf_geometry_fpp(const BfGeometry *geometry, uint64_t bits_set)
{
	double		n;

	if (bits_set == 0)
		return 0;
	n = fmax(1, rint(bf_geometry_cardinality(geometry, bits_set)));
	return bf_mean_fpp(geometry->block_log2, geometry->k,
					   n / geometry->nblocks, n, geometry->nblocks);
}

/*
 * Number of distinct keys in a filter.  In the sparse form it is exact but
 * for different keys of equal hash, which have a chance of n^2 / 2^65; else it
 * is estimated.  A key in several layers, which a union can cause, counts in
 * each: see bf_count_distinct.
 */
double
bf_cardinality(const BfView *view)
{
	double		n = view->nhashes;
	int			i;

	for (i = 0; i < view->nlayers; i++)
		n += layer_keys(&view->layers[i].geometry,
						view->layers[i].bits_set);
	return n;
}

/*
 * Number of distinct keys in n layers of one geometry, by the bits that are set
 * in any of them.  If these are nearly all, they tell little: then of each half
 * of the layers.
 */
static double
distinct_keys_of_equal(const BfInterrupts *interrupts, const BfLayer *layers,
					   int n)
{
	const BfGeometry *geometry = &layers[0].geometry;
	double		sum = 0;
	double		most = 0;
	uint64_t	set;
	int			i;

	for (i = 0; i < n; i++)
	{
		double		keys = layer_keys(geometry, layers[i].bits_set);

		sum += keys;
		most = fmax(most, keys);
	}
	if (n == 1)
		return sum;

	set = bf_bitmap_count_union(interrupts, layers, n);
	if (bf_geometry_bits(geometry) - set >= MIN_UNSET)
		return fmin(fmax(layer_keys(geometry, set), most), sum);
	return distinct_keys_of_equal(interrupts, layers, n / 2) +
		distinct_keys_of_equal(interrupts, layers + n / 2, n - n / 2);
}

/*
 * As bf_cardinality, for a filter of so many hashes or of these layers, but a
 * key in layers of one geometry counts once.  This is an upper bound, since the
 * key may be in layers of others; neighbours are compared, because equal layers
 * are next to each other in an image.  Returns -1 if there are such layers, but
 * no bits to compare.
 */
double
bf_count_distinct(const BfInterrupts *interrupts, uint32_t nhashes,
				  const BfLayer *layers, int nlayers)
{
	double		keys = nhashes;
	int			first = 0;
	int			i;

	for (i = 1; i <= nlayers; i++)
	{
		if (i == nlayers ||
			!bf_geometry_equal(&layers[i].geometry, &layers[first].geometry))
		{
			if (i - first > 1 && layers[first].bits == NULL)
				return -1;
			keys += distinct_keys_of_equal(interrupts, layers + first,
										   i - first);
			first = i;
		}
	}
	return keys;
}

/* Has a filter no key? */
bool
bf_is_empty(const BfView *view)
{
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		if (view->layers[i].bits_set > 0)
			return false;
	}
	return view->nhashes == 0;
}

/* Is it the result of an intersection, or were such results added to it? */
bool
bf_is_intersection(const BfView *view)
{
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		if (view->layers[i].bits_cut > 0)
			return true;
	}
	return view->list_fpp > 0;
}

/*
 * The false-positive rate that a filter has now, from 0 to 1: in the sparse
 * form the chance to hit one of n hashes of 2^64, else the chance that at
 * least one of its layers reports an absent key as a member.  That of an
 * intersection is an upper bound, for the keys of some of its operands.
 */
double
bf_fpp(double list_fpp, uint32_t nhashes, const BfLayer *layers, int nlayers)
{
	double		negative = 1 - list_fpp;
	double		sum = list_fpp;
	int			i;

	if (nlayers == 0)
		return fmin(sum + nhashes / 18446744073709551616.0, 1);
	for (i = 0; i < nlayers; i++)
	{
		double		fpp = layers[i].bits_set == 0 ? 0 :
			bf_geometry_fpp(&layers[i].geometry,
							bf_layer_fullness(&layers[i]));

		/* 1 - (1 - a)(1 - b), without losing the digits of small rates */
		sum += negative * fpp;
		negative *= 1 - fpp;
	}
	return fmin(sum, 1);
}

double
bf_current_fpp(const BfView *view)
{
	return bf_fpp(view->list_fpp, view->nhashes, view->layers, view->nlayers);
}

/* The largest rate for which a filter, or one of its layers, was made. */
double
bf_largest_fpp(const BfView *view)
{
	double		fpp = view->params.fpp;
	int			i;

	for (i = 0; i < view->nlayers; i++)
		fpp = fmax(fpp, view->layers[i].geometry.fpp);
	return fpp;
}
