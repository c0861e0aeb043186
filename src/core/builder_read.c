/*-------------------------------------------------------------------------
 *
 * builder_read.c
 *	  What a filter under construction contains, and its image.
 *
 *-------------------------------------------------------------------------
 */
#include "bytes.h"
#include "internal.h"

/* Is a hash in the list?  Pending ones are looked at one by one. */
static bool
list_contains(const BfBuilder *b, uint64_t hash)
{
	const uint64_t *sorted = b->hashes;
	size_t		n = b->nsorted;
	uint32_t	i;

	while (n > 0)
	{
		size_t		half = n / 2;

		if (sorted[half] == hash)
			return true;
		if (sorted[half] < hash)
		{
			sorted += half + 1;
			n -= half + 1;
		}
		else
			n = half;
	}
	for (i = b->nsorted; i < b->nhashes; i++)
	{
		if (b->hashes[i] == hash)
			return true;
	}
	return false;
}

/*
 * Is a hash in the filter so far?  There are both layers and hashes after a
 * merge that was not finished.  Call bf_builder_sort_for_probes before a
 * loop that probes, and bf_builder_expect_probes before one that adds, too.
 */
bool
bf_builder_contains(const BfBuilder *b, uint64_t hash)
{
	return bf_layers_contain(b->layers, b->nlayers, hash) ||
		list_contains(b, hash);
}

/* Would adding a hash leave the filter as it is? */
bool
bf_builder_has(const BfBuilder *b, uint64_t hash)
{
	return bf_layers_have(&b->params, b->layers, b->nlayers, hash) ||
		list_contains(b, hash);
}

/*
 * Can n hashes, all of them new, certainly be added without a change of form?
 * Then the filter neither becomes dense nor gets another layer, and adding
 * them fails at most for lack of memory, which leaves a valid filter.
 */
bool
bf_builder_has_room(const BfBuilder *b, uint32_t n)
{
	if (b->nlayers == 0)
		return b->nhashes <= b->max_hashes && n <= b->max_hashes - b->nhashes;
	return bf_layers_have_room(&b->params, b->layers, b->nlayers, n);
}

/*
 * Prepare the filter to be written, and set *size to the bytes of its image.
 * This sorts hashes and may convert them, which adding more keys would do
 * anyway: they may follow, and the result is the same.
 */
BfStatus
bf_builder_plan(BfBuilder *b, size_t *size)
{
	BfStatus	status = bf_builder_sort_and_convert(b);
	int			i;

	*size = bf_header_size(&b->params, b->nlayers) +
		b->nhashes * sizeof(uint64_t);
	for (i = 0; i < b->nlayers; i++)
		*size += bf_geometry_size(&b->layers[i].geometry);
	return status;
}

/*
 * Write the image: as many bytes as were planned.  No key may have been added
 * since bf_builder_plan.
 */
void
bf_builder_write(const BfBuilder *b, uint8_t *image)
{
	uint8_t    *content = bf_write_header(image, &b->params, b->list_fpp,
										  b->nhashes, b->layers, b->nlayers);
	uint32_t	j;
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		size_t		size = bf_geometry_size(&b->layers[i].geometry);

		memcpy(content, b->layers[i].bits, size);
		content += size;
	}
	for (j = 0; j < b->nhashes; j++, content += 8)
	{
		bf_check_interrupts_at(&b->env.interrupts, j, 0);
		bf_store64(content, b->hashes[j]);
	}
}

/*
 * Write the image around the bits of a large filter of one layer, so that they
 * are not copied: returns it, or NULL if that is not possible.  With a copy,
 * bloom_agg() of a filter of 48 MB took 1.4 times as long.  Some bytes
 * before it, at most 32, are the caller's.  No key may have been added since
 * bf_builder_plan.  The image is valid until the next one is, or the builder is
 * freed.
 */
uint8_t *
bf_builder_write_in_place(BfBuilder *b, size_t before)
{
	const BfLayer *layer = b->layers;
	size_t		size = bf_header_size(&b->params, 1);

	if (b->nlayers != 1 ||
		(size_t) (layer->bits - (uint8_t *) layer->memory) < before + size)
		return NULL;
	bf_write_header(layer->bits - size, &b->params, b->list_fpp, 0, b->layers,
					1);
	return layer->bits - size;
}
