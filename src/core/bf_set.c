/*-------------------------------------------------------------------------
 *
 * bf_set.c
 *	  Operations on two filters.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bf_bytes.h"
#include "bf_internal.h"

/* Whether x is to be merged before y: a total order of images. */
static bool
comes_first(const BfView *x, const BfView *y)
{
	if (x->nlayers != y->nlayers)
		return x->nlayers > y->nlayers;
	if (x->size != y->size)
		return x->size > y->size;
	return memcmp(x->image, y->image, x->size) >= 0;
}

/*
 * Make b the union of two filters.  They are merged in an order of their
 * own, so that the result does not depend on which of them is x.
 */
BfStatus
bf_union(BfBuilder *b, const BfHost *host, const BfView *x, const BfView *y)
{
	const BfView *first = comes_first(x, y) ? x : y;
	BfStatus	status;

	bf_builder_init(b, host, &first->params);
	status = bf_builder_merge(b, first);
	if (status == BF_OK)
		status = bf_builder_merge(b, first == x ? y : x);
	return status;
}

/*
 * Whether the bits of two filters correspond: both are one layer of the same
 * shape.  With several layers, a common key may lie in different ones.
 */
static bool
comparable(const BfView *x, const BfView *y)
{
	return x->nlayers == 1 && y->nlayers == 1 &&
		bf_shape_equal(&x->layers[0].shape, &y->layers[0].shape);
}

/* Where one of them is sparse, make it x; of two lists the shorter one. */
static void
sparse_first(const BfView **x, const BfView **y)
{
	const BfView *swap = *x;

	if ((*y)->nlayers == 0 &&
		((*x)->nlayers > 0 || (*y)->nhashes < (*x)->nhashes))
	{
		*x = *y;
		*y = swap;
	}
}

/*
 * Keep those exceptions of either side apart for which the bits that are
 * left still say yes: what is in one filter not is not in the intersection.
 */
static BfStatus
keep_exceptions(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;
	uint32_t	i;

	for (i = 0; status == BF_OK && i < view->nexceptions; i++)
	{
		uint64_t	hash = bf_load64(view->exceptions + 8 * (size_t) i);

		if (bf_bits_contain(&b->layers[0].shape, b->layers[0].bits, hash))
			status = bf_builder_keep_exception(b, hash);
	}
	return status;
}

/*
 * Make b the intersection of two filters, which holds at least every common
 * key: the hashes of a sparse one that the other contains, or the bits that
 * are set in both.
 */
BfStatus
bf_intersection(BfBuilder *b, const BfHost *host,
				const BfView *x, const BfView *y)
{
	BfStatus	status;
	uint32_t	i;

	bf_builder_init(b, host, &x->params);
	status = bf_builder_join_params(b, &y->params);
	if (status != BF_OK)
		return status;

	sparse_first(&x, &y);
	if (x->nlayers == 0)
	{
		/* Where the list turns dense is up to the whole of it. */
		status = bf_builder_reserve(b, x->nhashes);
		for (i = 0; status == BF_OK && i < x->nhashes; i++)
		{
			uint64_t	hash = bf_load64(x->hashes + 8 * (size_t) i);

			bf_poll(host, i);
			if (bf_contains(y, hash))
				status = bf_builder_add(b, hash);
		}
	}
	else if (comparable(x, y))
	{
		size_t		size = bf_shape_size(&x->layers[0].shape);

		status = bf_builder_merge(b, x);
		if (status == BF_OK)
		{
			bf_bits_intersect(host, b->layers[0].bits, y->layers[0].bits,
							  size);
			b->layers[0].bits_set = bf_bits_count(b->layers[0].bits, size);
			b->nexceptions = 0;
			status = keep_exceptions(b, x);
		}
		if (status == BF_OK)
			status = keep_exceptions(b, y);
	}
	else
		status = BF_SHAPE_MISMATCH;
	return status;
}

/*
 * Estimate the number of common keys by inclusion and exclusion: the bits
 * set in both tell less, since many of them are set by different keys.
 * Hashes of a sparse filter are counted in the other one, less the false
 * positives that are to be expected among them.
 */
BfStatus
bf_intersection_cardinality(const BfHost *host, const BfView *x,
							const BfView *y, double *n)
{
	double		most;
	uint32_t	i;

	if (x->params.seed != y->params.seed)
		return BF_SEED_MISMATCH;
	if (x->params.kind.code != BF_KIND_NONE &&
		y->params.kind.code != BF_KIND_NONE &&
		!bf_kind_equal(&x->params.kind, &y->params.kind))
		return BF_KIND_MISMATCH;

	sparse_first(&x, &y);
	most = bf_cardinality(x);
	if (x->nlayers == 0)
	{
		double		fpp = y->nlayers > 0 ? bf_current_fpp(y) : 0;
		double		hits = 0;

		for (i = 0; i < x->nhashes; i++)
		{
			bf_poll(host, i);
			hits += bf_contains(y, bf_load64(x->hashes + 8 * (size_t) i));
		}
		*n = fpp < 1 ? (hits - most * fpp) / (1 - fpp) : hits;
	}
	else if (comparable(x, y))
	{
		const BfShape *shape = &x->layers[0].shape;
		uint64_t	bits_set = bf_bits_count_union(host, x->layers[0].bits,
												   y->layers[0].bits,
												   bf_shape_size(shape));

		*n = most + bf_cardinality(y) -
			bf_shape_cardinality(shape, bits_set);
		most = fmin(most, bf_cardinality(y));
	}
	else
		return BF_SHAPE_MISMATCH;

	*n = fmin(fmax(*n, 0), most);
	return BF_OK;
}
