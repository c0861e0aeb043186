/*-------------------------------------------------------------------------
 *
 * set.c
 *	  Union and intersection of two filters.
 *
 * Both have to have the same seed and key type: else BF_SEED_MISMATCH or
 * BF_KEY_TYPE_MISMATCH.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bits.h"
#include "builder.h"
#include "bytes.h"
#include "interrupts.h"

/* A total order of images, which tells the one that is merged first. */
static bool
comes_first(const BfInterrupts *interrupts, const BfView *x, const BfView *y)
{
	if (x->nlayers != y->nlayers)
		return x->nlayers > y->nlayers;
	if (x->size != y->size)
		return x->size > y->size;
	return bf_bitmap_compare(interrupts, x->image, y->image, x->size) >= 0;
}

/*
 * Make b the union of two filters.  It is to be freed whatever the status is;
 * for that see bf_builder_merge.
 *
 * Where layers are full, the result of merging depends on the order of the
 * filters.  It is that of comes_first, so that union is commutative to the
 * byte.
 */
BfStatus
bf_union(BfBuilder *b, const BfEnv *env, const BfView *x, const BfView *y)
{
	const BfView *first = comes_first(&env->interrupts, x, y) ? x : y;
	BfStatus	status;

	bf_builder_init(b, env, &first->params);
	status = bf_builder_merge(b, first);
	if (status == BF_OK)
		status = bf_builder_merge(b, first == x ? y : x);
	return status;
}

/*
 * Do the bits of two filters correspond?  They do if each has one layer, of
 * the same geometry.  With several layers, a common key may lie in different
 * ones.
 */
static bool
comparable(const BfView *x, const BfView *y)
{
	return x->nlayers == 1 && y->nlayers == 1 &&
		bf_geometry_equal(&x->layers[0].geometry, &y->layers[0].geometry);
}

/* Swap two filters so that x is sparse if one is; of two lists the shorter. */
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

/* The hashes of a sparse filter that the other one contains. */
static BfStatus
intersect_hashes(BfBuilder *b, const BfView *x, const BfView *y)
{
	BfStatus	status;
	uint32_t	i;

	/* All at once: the list is then converted, if at all, as a whole. */
	status = bf_builder_reserve(b, x->nhashes);
	for (i = 0; status == BF_OK && i < x->nhashes; i++)
	{
		uint64_t	hash = bf_load64(x->hashes + 8 * (size_t) i);

		bf_check_interrupts_at(&b->env.interrupts, i, y->nlayers);
		if (bf_contains(y, hash))
			status = bf_builder_add(b, hash);
	}
	return status;
}

/* The bits that are set in both of two layers. */
static BfStatus
intersect_layers(BfBuilder *b, const BfView *x, const BfView *y)
{
	const BfGeometry *geometry = &x->layers[0].geometry;
	BfStatus	status = bf_build_layers_take_in(b, geometry,
												 x->layers[0].bits,
												 x->layers[0].bits_set);
	BfBuildLayer *layer;
	size_t		size = bf_geometry_size(geometry);

	if (status != BF_OK)
		return status;
	layer = &b->layers[0];
	bf_bitmap_and(&b->env.interrupts, layer->bits, y->layers[0].bits, size);
	layer->bits_set = bf_bitmap_count(&b->env.interrupts, layer->bits, size);
	return BF_OK;
}

/*
 * Make b the intersection of two filters, which holds at least every common
 * key: the hashes of a sparse one that the other contains, or the bits that
 * are set in both.  It is to be freed whatever the status is.
 * BF_GEOMETRY_MISMATCH if both are dense and their bits do not correspond;
 * BF_NO_MEMORY and BF_TOO_LARGE as in bf_builder_add.
 */
BfStatus
bf_intersection(BfBuilder *b, const BfEnv *env,
				const BfView *x, const BfView *y)
{
	BfStatus	status;

	bf_builder_init(b, env, &x->params);
	status = bf_builder_join_params(b, &y->params);
	if (status != BF_OK)
		return status;

	sparse_first(&x, &y);
	if (x->nlayers == 0)
		return intersect_hashes(b, x, y);
	if (comparable(x, y))
		return intersect_layers(b, x, y);
	return BF_GEOMETRY_MISMATCH;
}

/*
 * Estimate the number of common keys.  Status as that of bf_intersection;
 * nothing is allocated.
 *
 * The hashes of a sparse filter are counted in the other one, less the false
 * positives that are to be expected among them: of n hashes of which c are
 * common, c + (n - c) fpp are reported.  For two layers, inclusion and
 * exclusion is used: the bits set in both tell less, since many of them are
 * set by different keys.
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
			bf_check_interrupts_at(&env->interrupts, i, y->nlayers);
			hits += bf_contains(y, bf_load64(x->hashes + 8 * (size_t) i));
		}
		*n = fpp < 1 ? (hits - max * fpp) / (1 - fpp) : hits;
	}
	else if (comparable(x, y))
	{
		const BfGeometry *geometry = &x->layers[0].geometry;
		uint64_t	bits_set = bf_bitmap_count_or(&env->interrupts,
												  x->layers[0].bits,
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
