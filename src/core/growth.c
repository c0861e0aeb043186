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

/* Times the capacity of the largest layer that a successor has for expected. */
#define MAX_GROWTH	16

/*
 * Append a layer with no bit set.  BF_TOO_MANY_LAYERS or BF_TOO_LARGE if the
 * filter would exceed BF_MAX_LAYERS or BF_MAX_BITS.
 */
BfStatus
bf_build_layers_append(BfBuilder *b, const BfGeometry *geometry)
{
	if (b->nlayers == BF_MAX_LAYERS)
		return BF_TOO_MANY_LAYERS;
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
 * Append the successor of full layers: for expected keys, but at most 16 times
 * the capacity of the largest layer, for twice that capacity, or for the keys
 * that are known to remain, whichever is most, at half of the lowest rate.  The
 * limit is there because expected may come from an image that holds little.
 */
static BfStatus
grow(BfBuilder *b, uint32_t remaining)
{
	uint64_t	largest = 1;
	double		fpp = b->params.fpp;
	unsigned	generation = 0;
	uint64_t	wanted;
	BfGeometry	geometry;
	BfStatus	status;
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		const BfGeometry *layer = &b->layers[i].geometry;

		if (layer->generation > generation)
			generation = layer->generation;
		if (layer->capacity > largest)
			largest = layer->capacity;
		if (layer->fpp < fpp)
			fpp = layer->fpp;
	}

	fpp = fpp / 2 > BF_LAYER_FPP_MIN ? fpp / 2 : BF_LAYER_FPP_MIN;
	wanted = b->params.expected < MAX_GROWTH * largest ?
		b->params.expected : MAX_GROWTH * largest;
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

	if (b->nlayers == 1 && bf_build_layer_has_room(layer, n))
	{
		bf_bits_add_all(&b->env.interrupts, &layer->geometry, layer->bits,
						hashes, n, &layer->bits_set);
		return BF_OK;
	}
	for (i = 0; i < n; i++)
	{
		BfStatus	status;

		bf_check_interrupts_at(&b->env.interrupts, i, b->nlayers);
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
 * Bytes at the start of a layer that stand for all of it: as many hashes as
 * fall there set their bits in it, so that its share of set bits is within an
 * eighth of that of the layer, by more than six standard deviations.
 */
#define SAMPLE			8192

/*
 * Does the start of two large layers of equal geometry show that neither is a
 * subset of the other, and that one ORed into the other would be over full?
 * This spares the union of many full filters from reading all layers of each
 * for each other one.
 */
static bool
seems_over_full(const BfInterrupts *interrupts, const BfBuildLayer *layer,
				const uint8_t *bits)
{
	double		m = (double) bf_geometry_bits(&layer->geometry);
	uint64_t	set;

	if (bf_geometry_size(&layer->geometry) < 4 * SAMPLE)
		return false;
	set = bf_bitmap_count_or(interrupts, layer->bits, bits, SAMPLE);
	return (double) set / (8 * SAMPLE) >
		(double) layer->bits_full / m + 1.0 / 8 &&
		set > bf_bitmap_count(interrupts, layer->bits, SAMPLE) &&
		set > bf_bitmap_count(interrupts, bits, SAMPLE);
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
	BfBuildLayer *best = NULL;
	uint64_t	best_added = 0;
	int			nequal = 0;
	int			i;

	*total = 0;
	for (i = 0; i < b->nlayers; i++)
	{
		if (bf_geometry_equal(&b->layers[i].geometry, geometry))
		{
			best = &b->layers[i];
			nequal++;
		}
	}

	/* Often there is one with room in any case: no need to read the bits. */
	if (nequal == 1 && best->bits_set + bits_set <= best->bits_full)
		return best;

	best = NULL;
	for (i = 0; i < b->nlayers; i++)
	{
		BfBuildLayer *layer = &b->layers[i];
		uint64_t	set;
		uint64_t	added;

		if (!bf_geometry_equal(&layer->geometry, geometry) ||
			seems_over_full(interrupts, layer, bits))
			continue;
		set = bf_bitmap_count_or(interrupts, layer->bits, bits, size);
		added = set - layer->bits_set;

		/* If one is a subset of the other, the result is no fuller. */
		if (set > layer->bits_full && added > 0 && set > bits_set)
			continue;
		if (best == NULL || added < best_added)
		{
			best = layer;
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
