/*-------------------------------------------------------------------------
 *
 * set.c
 *	  Operations on two filters.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bytes.h"
#include "internal.h"

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
bf_union(BfBuilder *b, const BfEnv *env, const BfView *x, const BfView *y)
{
	const BfView *first = comes_first(x, y) ? x : y;
	BfStatus	status;

	bf_builder_init(b, env, &first->params);
	status = bf_builder_merge(b, first);
	if (status == BF_OK)
		status = bf_builder_merge(b, first == x ? y : x);
	return status;
}

/*
 * Whether the bits of two filters correspond: both are one layer of the same
 * geometry.  With several layers, a common key may lie in different ones.
 */
static bool
comparable(const BfView *x, const BfView *y)
{
	return x->nlayers == 1 && y->nlayers == 1 &&
		bf_geometry_equal(&x->layers[0].geometry, &y->layers[0].geometry);
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
 * Keep those exclusions of either side apart for which the bits that are
 * left still say yes: what is in one filter not is not in the intersection.
 */
static BfStatus
keep_exclusions(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;
	uint32_t	i;

	for (i = 0; status == BF_OK && i < view->nexclusions; i++)
	{
		uint64_t	hash = bf_load64(view->exclusions + 8 * (size_t) i);

		if (bf_bits_contain(&b->layers[0].geometry, b->layers[0].bits, hash))
			status = bf_builder_keep_exclusion(b, hash);
	}
	return status;
}

/*
 * Make b the intersection of two filters, which holds at least every common
 * key: the hashes of a sparse one that the other contains, or the bits that
 * are set in both.
 */
BfStatus
bf_intersection(BfBuilder *b, const BfEnv *env,
				const BfView *x, const BfView *y)
{
	BfStatus	status;
	uint32_t	i;

	bf_builder_init(b, env, &x->params);
	status = bf_builder_join_params(b, &y->params);
	if (status != BF_OK)
		return status;

	sparse_first(&x, &y);
	if (x->nlayers == 0)
	{
		/* Where the list becomes dense is up to the whole of it. */
		status = bf_builder_reserve(b, x->nhashes);
		for (i = 0; status == BF_OK && i < x->nhashes; i++)
		{
			uint64_t	hash = bf_load64(x->hashes + 8 * (size_t) i);

			bf_check_interrupts(env, i);
			if (bf_contains(y, hash))
				status = bf_builder_add(b, hash);
		}
	}
	else if (comparable(x, y))
	{
		size_t		size = bf_geometry_size(&x->layers[0].geometry);

		status = bf_builder_merge(b, x);
		if (status == BF_OK)
		{
			bf_bits_intersect(env, b->layers[0].bits, y->layers[0].bits,
							  size);
			b->layers[0].bits_set = bf_bits_count(b->layers[0].bits, size);
			b->nexclusions = 0;
			status = keep_exclusions(b, x);
		}
		if (status == BF_OK)
			status = keep_exclusions(b, y);
	}
	else
		status = BF_GEOMETRY_MISMATCH;
	return status;
}

/*
 * Estimate the number of common keys by inclusion and exclusion: the bits
 * set in both tell less, since many of them are set by different keys.
 * Hashes of a sparse filter are counted in the other one, less the false
 * positives that are to be expected among them.
 */
BfStatus
bf_intersection_cardinality(const BfEnv *env, const BfView *x,
							const BfView *y, double *n)
{
	double		max;
	uint32_t	i;

	if (x->params.seed != y->params.seed)
		return BF_SEED_MISMATCH;
	if (x->params.key_type.code != BF_KEY_NONE &&
		y->params.key_type.code != BF_KEY_NONE &&
		!bf_key_type_equal(&x->params.key_type, &y->params.key_type))
		return BF_KEY_TYPE_MISMATCH;

	sparse_first(&x, &y);
	max = bf_cardinality(x);
	if (x->nlayers == 0)
	{
		double		fpp = y->nlayers > 0 ? bf_current_fpp(y) : 0;
		double		hits = 0;

		for (i = 0; i < x->nhashes; i++)
		{
			bf_check_interrupts(env, i);
			hits += bf_contains(y, bf_load64(x->hashes + 8 * (size_t) i));
		}
		*n = fpp < 1 ? (hits - max * fpp) / (1 - fpp) : hits;
	}
	else if (comparable(x, y))
	{
		const BfGeometry *geometry = &x->layers[0].geometry;
		uint64_t	bits_set = bf_bits_count_union(env, x->layers[0].bits,
												   y->layers[0].bits,
												   bf_geometry_size(geometry));

		*n = max + bf_cardinality(y) -
			bf_geometry_cardinality(geometry, bits_set);
		max = fmin(max, bf_cardinality(y));
	}
	else
		return BF_GEOMETRY_MISMATCH;

	*n = fmin(fmax(*n, 0), max);
	return BF_OK;
}
