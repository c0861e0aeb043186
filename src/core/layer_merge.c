/*-------------------------------------------------------------------------
 *
 * layer_merge.c
 *	  Merging two layers of a builder that has too many.
 *
 * A filter has at most BF_MAX_LAYERS layers.  Growth alone stays below that,
 * as capacities double; combining filters of different parameters may not.
 * Two layers of one generation have the same bit positions up to the number of
 * their bits, so they can be ORed into one that holds all their keys.  The
 * rate of the result is above the sum of theirs, so the pair is chosen that
 * costs the least.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bits.h"
#include "builder.h"

/* The layer that has room for what two layers of one generation contain. */
static BfGeometry
merged_geometry(const BfBuildLayer *x, const BfBuildLayer *y)
{
	BfGeometry	geometry = x->geometry;
	double		keys = bf_geometry_keys(&x->geometry, x->bits_set) +
		bf_geometry_keys(&y->geometry, y->bits_set);

	if (geometry.nblocks < y->geometry.nblocks)
		geometry.nblocks = y->geometry.nblocks;
	if (geometry.block_log2 > y->geometry.block_log2)
		geometry.block_log2 = y->geometry.block_log2;
	if (geometry.k > y->geometry.k)
		geometry.k = y->geometry.k;
	geometry.merged = true;
	geometry.capacity = keys < 1 ? 1 :
		keys > (double) BF_MAX_KEYS ? BF_MAX_KEYS : (uint64_t) keys;
	return geometry;
}

/*
 * Approximate share of bits not set in what becomes of the blocks of a layer
 * in a merged layer.  Two bits become one where blocks get half the size.
 * Where the numbers of blocks differ, most blocks receive two of the layer's.
 */
static double
share_unset(const BfBuildLayer *layer, const BfGeometry *merged)
{
	double		unset = 1 - (double) layer->bits_set /
		(double) bf_geometry_bits(&layer->geometry);
	int			log2;

	for (log2 = layer->geometry.block_log2; log2 > merged->block_log2; log2--)
		unset *= unset;
	return layer->geometry.nblocks == merged->nblocks ? unset : unset * unset;
}

/* The rate of a layer by this share, as if it had no blocks. */
static double
share_positive(double unset, unsigned k)
{
	double		result = 1;

	while (k-- > 0)
		result *= 1 - unset;
	return result;
}

/*
 * The share of absent keys that are still reported as absent after two layers
 * are merged, from 0 to 1: the more, the better.
 */
static double
merge_benefit(const BfBuildLayer *x, const BfBuildLayer *y)
{
	BfGeometry	geometry = merged_geometry(x, y);
	double		before = (1 - share_positive(share_unset(x, &x->geometry),
											 x->geometry.k)) *
		(1 - share_positive(share_unset(y, &y->geometry), y->geometry.k));
	double		after = 1 - share_positive(share_unset(x, &geometry) *
										   share_unset(y, &geometry),
										   geometry.k);

	return before > 0 ? after / before : 1;
}

/* Find the best pair.  Of BF_MAX_LAYERS layers, there always is one. */
static void
choose_two(const BfBuilder *b, int *best_i, int *best_j)
{
	double		best = -1;
	int			i,
				j;

	*best_i = *best_j = 0;
	for (i = 0; i < b->nlayers; i++)
	{
		for (j = i + 1; j < b->nlayers; j++)
		{
			double		benefit;

			if (b->layers[i].geometry.generation !=
				b->layers[j].geometry.generation)
				continue;
			benefit = merge_benefit(&b->layers[i], &b->layers[j]);
			if (benefit > best)
			{
				best = benefit;
				*best_i = i;
				*best_j = j;
			}
		}
	}
}

/*
 * Merge those two layers of one generation of which it costs the least.  The
 * layers must be BF_MAX_LAYERS.  BF_NO_MEMORY leaves them as they are.
 */
BfStatus
bf_build_layers_merge_two(BfBuilder *b)
{
	const BfInterrupts *interrupts = &b->env.interrupts;
	BfBuildLayer merged;
	BfBuildLayer *x;
	BfBuildLayer *y;
	BfGeometry	geometry;
	int			i,
				j;

	choose_two(b, &i, &j);
	x = &b->layers[i];
	y = &b->layers[j];
	geometry = merged_geometry(x, y);
	if (bf_build_layer_make(b, &geometry, &merged) != BF_OK)
		return BF_NO_MEMORY;
	bf_bitmap_or_into(interrupts, &geometry, merged.bits,
					  &x->geometry, x->bits);
	bf_bitmap_or_into(interrupts, &geometry, merged.bits,
					  &y->geometry, y->bits);
	merged.bits_set = bf_bitmap_count(merged.bits,
									  bf_geometry_size(&geometry));
	merged.geometry.fpp = fmax(bf_bitmap_fpp(&geometry, merged.bits),
							   BF_LAYER_FPP_MIN);

	b->env.free(b->env.context, x->memory);
	b->env.free(b->env.context, y->memory);
	*x = merged;
	b->nlayers--;
	memmove(y, y + 1, (b->nlayers - j) * sizeof(BfBuildLayer));
	bf_build_layers_sort(b);
	return BF_OK;
}
