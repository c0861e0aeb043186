/*-------------------------------------------------------------------------
 *
 * layers.c
 *	  The layers of a builder: their memory and their order.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "bits.h"
#include "builder.h"

/* Does any layer report this hash as a member? */
bool
bf_build_layers_contain(const BfBuilder *b, uint64_t hash)
{
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		if (bf_bits_contain(&b->layers[i].geometry, b->layers[i].bits, hash))
			return true;
	}
	return false;
}

/* Is there certainly room for n more keys, whatever they are? */
bool
bf_build_layer_has_room(const BfBuildLayer *layer, uint32_t n)
{
	return layer->bits_set + (uint64_t) n * layer->geometry.k <=
		layer->bits_full;
}

/* The number of bits of all layers together. */
uint64_t
bf_build_layers_bits(const BfBuilder *b)
{
	uint64_t	total = 0;
	int			i;

	for (i = 0; i < b->nlayers; i++)
		total += bf_geometry_bits(&b->layers[i].geometry);
	return total;
}

/*
 * Bytes in front of the bits of a large layer: the header of its image fits
 * there, with the longest name of a key type and some bytes of the caller, so
 * that the image can be written without a copy of the bits.
 */
#define IMAGE_FRONT		384
#define LARGE_LAYER		((size_t) 1 << 18)

/*
 * Allocate a layer with no bit set.  Blocks of 512 bits are aligned so that
 * each is one cache line.
 */
BfStatus
bf_build_layer_make(const BfBuilder *b, const BfGeometry *geometry,
					BfBuildLayer *layer)
{
	size_t		size = bf_geometry_size(geometry);
	size_t		front = size < LARGE_LAYER ? 0 : IMAGE_FRONT;
	size_t		allocated = front + size + BF_CACHE_LINE - 1;

	layer->geometry = *geometry;
	layer->bits_set = 0;
	layer->bits_full = bf_geometry_full(geometry);
	layer->memory = b->env.alloc(b->env.context, allocated);
	if (layer->memory == NULL)
		return BF_NO_MEMORY;
	memset(layer->memory, 0, allocated);
	layer->bits = (uint8_t *) (((uintptr_t) layer->memory + front +
								BF_CACHE_LINE - 1) &
							   ~(uintptr_t) (BF_CACHE_LINE - 1));
	return BF_OK;
}

/*
 * Make room for one more layer.  A plan may hold many builders, most of them
 * with one layer, so the array starts with one and doubles.
 */
static BfStatus
make_room(BfBuilder *b)
{
	int			room = b->nlayers > 0 ? 2 * b->nlayers : 1;
	BfBuildLayer *layers;

	if (b->nlayers < b->layer_room)
		return BF_OK;
	layers = b->env.alloc(b->env.context, room * sizeof(BfBuildLayer));
	if (layers == NULL)
		return BF_NO_MEMORY;
	if (b->layers != NULL)
	{
		memcpy(layers, b->layers, b->nlayers * sizeof(BfBuildLayer));
		b->env.free(b->env.context, b->layers);
	}
	b->layers = layers;
	b->layer_room = room;
	return BF_OK;
}

/* Append a layer with no bit set; the limits of a filter are not checked. */
BfStatus
bf_build_layers_push(BfBuilder *b, const BfGeometry *geometry)
{
	if (make_room(b) != BF_OK ||
		bf_build_layer_make(b, geometry, &b->layers[b->nlayers]) != BF_OK)
		return BF_NO_MEMORY;
	b->nlayers++;
	return BF_OK;
}

/* Release all layers. */
void
bf_build_layers_free(BfBuilder *b)
{
	int			i;

	for (i = 0; i < b->nlayers; i++)
		b->env.free(b->env.context, b->layers[i].memory);
	if (b->layers != NULL)
		b->env.free(b->env.context, b->layers);
	b->layers = NULL;
	b->nlayers = 0;
	b->layer_room = 0;
}

/* The order of layers in an image: capacity, falling fpp, and all else. */
static int
compare_layers(const BfInterrupts *interrupts, const BfBuildLayer *x,
			   const BfBuildLayer *y)
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
	return bf_bitmap_compare(interrupts, x->bits, y->bits,
							 bf_geometry_size(g));
}

/*
 * Sort the layers.  Where several filters are combined, this makes the image
 * independent of the order in which they came.  Neighbours are swapped, so that
 * a long jump out of a comparison finds all of them.
 */
void
bf_build_layers_sort(BfBuilder *b)
{
	int			i,
				j;

	for (i = 1; i < b->nlayers; i++)
	{
		for (j = i; j > 0; j--)
		{
			BfBuildLayer *layer = &b->layers[j];
			BfBuildLayer swap = *layer;

			if (compare_layers(&b->env.interrupts, layer - 1, layer) <= 0)
				break;
			layer[0] = layer[-1];
			layer[-1] = swap;
		}
	}
}
