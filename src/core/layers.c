/*-------------------------------------------------------------------------
 *
 * layers.c
 *	  The layers of a builder: their memory, adding keys and layers to them,
 *	  and their order.
 *
 * When they are full, they get a successor with twice the capacity and half
 * the rate of those before it, so that the rates of all layers sum up to less
 * than twice the first one (Almeida, Baquero, Preguica, Hutchison: Scalable
 * Bloom Filters, 2007).
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"

/* Times the capacity of the largest layer that a successor has for expected. */
#define MAX_GROWTH		16

/*
 * Bytes in front of the bits of a large layer: the header of its image fits
 * there, with the longest name of a key type and some bytes of the caller, so
 * that the image can be written without a copy of the bits.
 */
#define IMAGE_FRONT		384
#define LARGE_LAYER		((size_t) 1 << 18)

/* Is there certainly room for n more keys, whatever they are? */
bool
bf_layer_has_room(const BfLayer *layer, uint32_t n)
{
	return bf_layer_fullness(layer) + (uint64_t) n * layer->geometry.k <=
		layer->bits_full;
}

/* Set the bits that intersections cut, at most those that are not set. */
void
bf_layer_set_cut(BfLayer *layer, uint64_t bits_cut)
{
	uint64_t	unset = bf_geometry_bits(&layer->geometry) - layer->bits_set;

	if (bits_cut > unset)
		bits_cut = unset;
	layer->bits_cut = bits_cut < UINT32_MAX ? (uint32_t) bits_cut : UINT32_MAX;
}

/* The number of bits that BF_MAX_BITS leaves for more layers. */
static uint64_t
bits_left(const BfBuilder *b)
{
	uint64_t	left = BF_MAX_BITS;
	int			i;

	for (i = 0; i < b->nlayers; i++)
		left -= bf_geometry_bits(&b->layers[i].geometry);
	return left;
}

/*
 * Allocate so many bytes, and move the used ones of memory there, which may be
 * NULL.  NULL if there is no memory.
 */
void *
bf_reallocate(const BfEnv *env, void *memory, size_t used, size_t size)
{
	void	   *larger = env->alloc(env->context, size);

	if (larger != NULL && memory != NULL)
	{
		memcpy(larger, memory, used);
		env->free(env->context, memory);
	}
	return larger;
}

/*
 * Append a layer with no bit set, and set *layer to it.  BF_TOO_MANY_LAYERS or
 * BF_TOO_LARGE if the filter would exceed BF_MAX_LAYERS or BF_MAX_BITS.
 *
 * Blocks of 512 bits are aligned so that each is one cache line.  A plan may
 * hold many builders, most of them with one layer, so the array of layers
 * starts with one and doubles.
 */
BfStatus
bf_builder_append_layer(BfBuilder *b, const BfGeometry *geometry,
						BfLayer **layer)
{
	size_t		size = bf_geometry_size(geometry);
	size_t		front = size < LARGE_LAYER ? 0 : IMAGE_FRONT;
	size_t		allocated = front + size + BF_CACHE_LINE - 1;
	void	   *memory;

	if (b->nlayers == BF_MAX_LAYERS)
		return BF_TOO_MANY_LAYERS;
	if (bf_geometry_bits(geometry) > bits_left(b))
		return BF_TOO_LARGE;
	if (b->nlayers == b->layer_room)
	{
		int			room = b->nlayers > 0 ? 2 * b->nlayers : 1;
		BfLayer    *layers = bf_reallocate(&b->env, b->layers,
										   b->nlayers * sizeof(BfLayer),
										   room * sizeof(BfLayer));

		if (layers == NULL)
			return BF_NO_MEMORY;
		b->layers = layers;
		b->layer_room = room;
	}
	memory = b->env.alloc(b->env.context, allocated);
	if (memory == NULL)
		return BF_NO_MEMORY;
	memset(memory, 0, allocated);

	b->first_asked = -1;
	*layer = &b->layers[b->nlayers++];
	(*layer)->geometry = *geometry;
	(*layer)->bits_set = 0;
	(*layer)->bits_cut = 0;
	(*layer)->bits_full = bf_geometry_full(geometry);
	(*layer)->memory = memory;
	(*layer)->bits = (uint8_t *) (((uintptr_t) memory + front +
								   BF_CACHE_LINE - 1) &
								  ~(uintptr_t) (BF_CACHE_LINE - 1));
	return BF_OK;
}

/* Release all layers. */
void
bf_builder_free_layers(BfBuilder *b)
{
	while (b->nlayers > 0)
		b->env.free(b->env.context, b->layers[--b->nlayers].memory);
	if (b->layers != NULL)
		b->env.free(b->env.context, b->layers);
	b->layers = NULL;
	b->layer_room = 0;
}

/* What the layers of a filter are, for the one that follows. */
typedef struct Layers
{
	uint64_t	bits_left;
	uint64_t	largest;		/* capacity */
	double		fpp;			/* the lowest */
	uint8_t		generation;		/* the last */
} Layers;

static void
include_layer(Layers *layers, const BfGeometry *geometry)
{
	layers->bits_left -= bf_geometry_bits(geometry);
	if (geometry->generation > layers->generation)
		layers->generation = geometry->generation;
	if (geometry->capacity > layers->largest)
		layers->largest = geometry->capacity;
	if (geometry->fpp < layers->fpp)
		layers->fpp = geometry->fpp;
}

/*
 * The successor of full layers: for expected keys, but at most 16 times
 * the capacity of the largest layer, for twice that capacity, or for the keys
 * that are known to remain, whichever is most, at half of the lowest rate.  The
 * limit is there because expected may come from an image that holds little.
 *
 * If BF_MAX_BITS leaves less than these keys need, it is for as many as it
 * leaves room for, unless that is far below the largest layer and hardly worth
 * the probes: BF_TOO_LARGE.
 */
static BfStatus
successor(const Layers *layers, uint64_t expected, uint32_t remaining,
		  BfGeometry *geometry)
{
	double		fpp = layers->fpp / 2 > BF_LAYER_FPP_MIN ? layers->fpp / 2 :
		BF_LAYER_FPP_MIN;
	uint64_t	n = expected < MAX_GROWTH * layers->largest ? expected :
		MAX_GROWTH * layers->largest;

	if (n < BF_GROWTH * layers->largest)
		n = BF_GROWTH * layers->largest;
	if (n < remaining)
		n = remaining;

	if (bf_geometry_for(fpp, false, n, geometry) != BF_OK ||
		bf_geometry_bits(geometry) > layers->bits_left)
	{
		/* The rest is for headroom and for rounding to whole blocks. */
		n = (uint64_t) ((double) layers->bits_left / bf_bits_per_key(fpp) *
						125 / 128);
		if (n < layers->largest / 8 || n == 0 ||
			bf_geometry_for(fpp, false, n, geometry) != BF_OK)
			return BF_TOO_LARGE;
	}
	geometry->generation = layers->generation < BF_MAX_GENERATION ?
		layers->generation + 1 : layers->generation;
	return BF_OK;
}

static BfStatus
append_successor(BfBuilder *b, uint32_t remaining, BfLayer **layer)
{
	Layers		layers = {BF_MAX_BITS, 1, b->params.fpp, 0};
	BfGeometry	geometry;
	BfStatus	status;
	int			i;

	for (i = 0; i < b->nlayers; i++)
		include_layer(&layers, &b->layers[i].geometry);
	status = successor(&layers, b->params.expected, remaining, &geometry);
	return status == BF_OK ? bf_builder_append_layer(b, &geometry, layer) :
		status;
}

/*
 * The number of keys that a filter for expected ones, at most bf_max_keys, holds
 * when it can grow no more; its rate is below twice fpp until then.
 */
uint64_t
bf_max_grown_keys(double fpp, uint64_t expected)
{
	Layers		layers = {BF_MAX_BITS, 1, fpp, 0};
	uint64_t	keys = 0;
	BfGeometry	geometry;
	BfStatus	status = bf_geometry_for(fpp, false, expected, &geometry);

	while (status == BF_OK && bf_geometry_bits(&geometry) <= layers.bits_left)
	{
		keys += geometry.capacity;
		include_layer(&layers, &geometry);
		status = successor(&layers, expected, 0, &geometry);
	}
	return keys;
}

/*
 * The first of the layers that are asked for a key before it is added.  The key
 * takes no room if this layer, or a later one, reports it.  Of a filter that
 * grew, all layers are asked: the few keys that they hide in this way are known
 * (statistics.c).  The layers of a union may hide most keys, and then its
 * cardinality would be no upper bound.  So only the last ones are asked, those
 * that can have grown from one: each rate is half of another one, or less, and
 * none is above that of the filter.
 */
static int
first_asked(const BfParams *params, const BfLayer *layers, int nlayers)
{
	uint64_t	seen = 0;
	int			first = nlayers;

	if (nlayers == 1)			/* for speed */
		return 0;
	while (first > 0)
	{
		double		ratio = params->fpp / layers[first - 1].geometry.fpp;
		int			halvings;

		(void) frexp(ratio, &halvings); /* 1 if the rates are equal */
		if (ratio < 1 || halvings > 63 || (seen >> halvings & 1) != 0)
			break;
		seen |= UINT64_C(1) << halvings;
		first--;
	}
	return first < nlayers || nlayers == 0 ? first : nlayers - 1;
}

/* Would adding a hash leave these layers as they are? */
bool
bf_layers_have(const BfParams *params, const BfLayer *layers, int nlayers,
			   uint64_t hash)
{
	int			first = first_asked(params, layers, nlayers);

	return bf_layers_contain(layers + first, nlayers - first, hash);
}

/* Can these layers certainly take n more keys, whatever they are? */
bool
bf_layers_have_room(const BfParams *params, const BfLayer *layers, int nlayers,
					uint32_t n)
{
	int			i;

	for (i = first_asked(params, layers, nlayers); i < nlayers; i++)
	{
		if (bf_layer_has_room(&layers[i], n))
			return true;
	}
	return false;
}

/*
 * Add a hash to the layers, of which there is at least one.  remaining is the
 * number of keys that are known to come, this one included.
 */
BfStatus
bf_builder_add_to_layers(BfBuilder *b, uint64_t hash, uint32_t remaining)
{
	BfLayer    *layer;
	BfStatus	status;
	int			first;
	int			i;

	if (b->first_asked < 0)
		b->first_asked = first_asked(&b->params, b->layers, b->nlayers);
	first = b->first_asked;
	if (b->nlayers > 1 &&
		bf_layers_contain(b->layers + first, b->nlayers - first, hash))
		return BF_OK;

	for (i = b->nlayers - 1; i >= first; i--)
	{
		layer = &b->layers[i];
		if (bf_bits_add_within(&layer->geometry, layer->bits, hash,
							   layer->bits_full > layer->bits_cut ?
							   layer->bits_full - layer->bits_cut : 0,
							   &layer->bits_set))
			return BF_OK;
	}

	status = append_successor(b, remaining, &layer);
	if (status == BF_OK)
		layer->bits_set = bf_bits_add(&layer->geometry, layer->bits, hash);
	return status;
}

/*
 * Add n hashes to the layers.  The usual case is that of one layer that takes
 * them all; then nothing is asked for each of them.
 */
BfStatus
bf_builder_add_all_to_layers(BfBuilder *b, const uint64_t *hashes, uint32_t n)
{
	BfLayer    *layer = &b->layers[0];
	uint32_t	i;

	if (b->nlayers == 1 && bf_layer_has_room(layer, n))
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
		status = bf_builder_add_to_layers(b, hashes[i], n - i);
		if (status != BF_OK)
			return status;
	}
	return BF_OK;
}

/* The order of layers in an image: capacity, falling fpp, and all else. */
static int
compare_layers(const BfLayer *x, const BfLayer *y)
{
	const BfGeometry *g = &x->geometry;
	const BfGeometry *h = &y->geometry;

	if (g->capacity != h->capacity)
		return g->capacity < h->capacity ? -1 : 1;
	if (g->fpp != h->fpp)
		return g->fpp > h->fpp ? -1 : 1;
	if (g->nblocks != h->nblocks)
		return g->nblocks < h->nblocks ? -1 : 1;
	if (g->block_log2 != h->block_log2)
		return g->block_log2 < h->block_log2 ? -1 : 1;
	if (g->k != h->k)
		return g->k < h->k ? -1 : 1;
	if (g->generation != h->generation)
		return g->generation < h->generation ? -1 : 1;
	if (x->bits_set != y->bits_set)
		return x->bits_set < y->bits_set ? -1 : 1;
	if (x->bits_cut != y->bits_cut)
		return x->bits_cut < y->bits_cut ? -1 : 1;
	return memcmp(x->bits, y->bits, bf_geometry_size(g));
}

/*
 * Sort the layers.  Where several filters are combined, this makes the image
 * independent of the order in which they came.  Neighbours are swapped, so that
 * a long jump finds all of them.
 */
void
bf_builder_sort_layers(BfBuilder *b)
{
	int			i,
				j;

	b->first_asked = -1;
	for (i = 1; i < b->nlayers; i++)
	{
		for (j = i; j > 0; j--)
		{
			BfLayer    *layer = &b->layers[j];
			BfLayer		swap = *layer;

			bf_check_interrupts(&b->env.interrupts);
			if (compare_layers(layer - 1, layer) <= 0)
				break;
			layer[0] = layer[-1];
			layer[-1] = swap;
		}
	}
}
