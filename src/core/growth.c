/*-------------------------------------------------------------------------
 *
 * growth.c
 *	  Adding keys and layers to the layers of a builder, which get a
 *	  successor when they are full.
 *
 * A successor has twice the capacity and half the rate of those before it,
 * so that the rates of all layers sum up to less than twice the first one
 * (Almeida, Baquero, Preguica, Hutchison: Scalable Bloom Filters, 2007).
 *
 *-------------------------------------------------------------------------
 */
#include "bits.h"
#include "builder.h"
#include "interrupts.h"

/*
 * Append a layer with no bit set; if there are too many, merge two first.
 * BF_TOO_LARGE if the filter would exceed BF_MAX_BITS.
 */
BfStatus
bf_build_layers_append(BfBuilder *b, const BfGeometry *geometry)
{
	BfStatus	status = BF_OK;

	if (b->nlayers == BF_MAX_LAYERS)
		status = bf_build_layers_merge_two(b);
	if (status != BF_OK)
		return status;
	if (bf_geometry_bits(geometry) > BF_MAX_BITS - bf_build_layers_bits(b))
		return BF_TOO_LARGE;
	return bf_build_layers_push(b, geometry);
}

/*
 * The geometry of a successor for so many keys.  If BF_MAX_BITS leaves less
 * than they need, it is for as many keys as it leaves room for, but not for
 * fewer than min: BF_TOO_LARGE.
 */
static BfStatus
successor_geometry(const BfBuilder *b, double fpp, uint64_t n, uint64_t min,
				   BfGeometry *geometry)
{
	uint64_t	left = BF_MAX_BITS - bf_build_layers_bits(b);

	if (bf_geometry_for(fpp, n, geometry) == BF_OK &&
		bf_geometry_bits(geometry) <= left)
		return BF_OK;

	/* The rest is for headroom and for rounding to whole blocks. */
	n = (uint64_t) ((double) left / bf_bits_per_key(fpp) * 125 / 128);
	if (n < min || n == 0)
		return BF_TOO_LARGE;
	return bf_geometry_for(fpp, n, geometry);
}

/*
 * Append the successor of full layers: for expected keys, twice the capacity
 * of the largest layer, or the keys that are known to remain, whichever is
 * most, at half of the lowest rate.  Merged layers do not count: what they
 * record is their content, not what they were sized for.
 */
static BfStatus
grow(BfBuilder *b, uint32_t remaining)
{
	uint64_t	largest = 1;
	double		fpp = b->params.fpp;
	unsigned	generation = 0;
	uint64_t	wanted = b->params.expected;
	BfGeometry	geometry;
	BfStatus	status;
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		const BfGeometry *layer = &b->layers[i].geometry;

		if (layer->generation > generation)
			generation = layer->generation;
		if (layer->merged)
			continue;
		if (layer->capacity > largest)
			largest = layer->capacity;
		if (layer->fpp < fpp)
			fpp = layer->fpp;
	}

	fpp = fpp / 2 > BF_LAYER_FPP_MIN ? fpp / 2 : BF_LAYER_FPP_MIN;
	if (wanted < BF_GROWTH * largest)
		wanted = BF_GROWTH * largest;
	if (wanted < remaining)
		wanted = remaining;

	/* A layer far below the largest would hardly be worth its probes. */
	status = successor_geometry(b, fpp, wanted, largest / 8, &geometry);
	if (status != BF_OK)
		return status;
	geometry.generation = (uint8_t)
		(generation < BF_MAX_GENERATION ? generation + 1 : generation);
	return bf_build_layers_append(b, &geometry);
}

/*
 * Add a hash to the layers, of which there is at least one.  remaining is the
 * number of keys that are known to come, this one included.
 */
BfStatus
bf_build_layers_add(BfBuilder *b, uint64_t hash, uint32_t remaining)
{
	BfBuildLayer *layer;
	BfStatus	status;
	int			i;

	if (b->nexclusions > 0)
		bf_exclusions_remove(b, hash);

	/* A key that some layer reports as a member takes no room in another. */
	if (b->nlayers > 1 && bf_build_layers_contain(b, hash))
		return BF_OK;

	for (i = b->nlayers - 1; i >= 0; i--)
	{
		layer = &b->layers[i];
		if (bf_bits_add_within(&layer->geometry, layer->bits, hash,
							   layer->bits_full, &layer->bits_set))
			return BF_OK;
	}

	status = grow(b, remaining);
	if (status == BF_OK)
	{
		layer = &b->layers[b->nlayers - 1];
		layer->bits_set += bf_bits_add(&layer->geometry, layer->bits, hash);
	}
	return status;
}

/*
 * Add n hashes to the layers.  The usual case is that of one layer that takes
 * them all; then nothing is asked for each of them.
 */
BfStatus
bf_build_layers_add_all(BfBuilder *b, const uint64_t *hashes, uint32_t n)
{
	BfBuildLayer *layer = &b->layers[0];
	uint32_t	i;

	if (b->nlayers == 1 && b->nexclusions == 0 &&
		bf_build_layer_has_room(layer, n))
	{
		layer->bits_set += bf_bits_add_all(&b->env.interrupts,
										   &layer->geometry, layer->bits,
										   hashes, n);
		return BF_OK;
	}
	for (i = 0; i < n; i++)
	{
		BfStatus	status;

		bf_check_interrupts_at(&b->env.interrupts, i);
		layer = &b->layers[b->nlayers - 1];
		if (i + BF_PREFETCH_DISTANCE < n)
			bf_bits_prefetch(&layer->geometry, layer->bits,
							 hashes[i + BF_PREFETCH_DISTANCE], true);
		status = bf_build_layers_add(b, hashes[i], n - i);
		if (status != BF_OK)
			return status;
	}
	return BF_OK;
}

/*
 * The layer to OR another one of equal geometry into: that which it adds the
 * fewest bits to, if the result is not over full; NULL if there is none.
 * *total is set to the number of bits set in the result, or 0 if it was not
 * needed.
 */
static BfBuildLayer *
find_room(BfBuilder *b, const BfGeometry *geometry, const uint8_t *bits,
		  uint64_t bits_set, uint64_t *total)
{
	const BfInterrupts *interrupts = &b->env.interrupts;
	size_t		size = bf_geometry_size(geometry);
	BfBuildLayer *equal[BF_MAX_LAYERS];
	BfBuildLayer *best = NULL;
	uint64_t	best_added = 0;
	int			nequal = 0;
	int			i;

	*total = 0;
	for (i = 0; i < b->nlayers; i++)
	{
		if (bf_geometry_equal(&b->layers[i].geometry, geometry))
			equal[nequal++] = &b->layers[i];
	}

	/* Often there is one with room in any case: no need to read the bits. */
	if (nequal == 1 && equal[0]->bits_set + bits_set <= equal[0]->bits_full)
		return equal[0];

	for (i = 0; i < nequal; i++)
	{
		uint64_t	set = bf_bitmap_count_or(interrupts, equal[i]->bits, bits,
											 size);
		uint64_t	added = set - equal[i]->bits_set;

		/* If one is a subset of the other, the result is no fuller. */
		if (set > equal[i]->bits_full && added > 0 && set > bits_set)
			continue;
		if (best == NULL || added < best_added)
		{
			best = equal[i];
			best_added = added;
			*total = set;
		}
	}
	return best;
}

/*
 * Take in a layer of another filter, with this many bits set.  It is ORed
 * into a layer of equal geometry that has room, or else appended.
 */
BfStatus
bf_build_layers_take_in(BfBuilder *b, const BfGeometry *geometry,
						const uint8_t *bits, uint64_t bits_set)
{
	const BfInterrupts *interrupts = &b->env.interrupts;
	size_t		size = bf_geometry_size(geometry);
	uint64_t	total;
	BfBuildLayer *layer = find_room(b, geometry, bits, bits_set, &total);

	if (layer == NULL)
	{
		BfStatus	status = bf_build_layers_append(b, geometry);

		if (status != BF_OK)
			return status;
		layer = &b->layers[b->nlayers - 1];
	}
	if (total > 0)
	{
		bf_bitmap_or(interrupts, layer->bits, bits, size);
		layer->bits_set = total;
	}
	else
		layer->bits_set = bf_bitmap_or_and_count(interrupts, layer->bits,
												 bits, size);
	return BF_OK;
}
