/*-------------------------------------------------------------------------
 *
 * builder.c
 *	  Filters under construction.
 *
 * A builder collects hashes until there are more distinct ones than the
 * sparse form may hold (hashes.c).  Then it becomes dense: all hashes go into
 * a first layer, and whenever the layers are full, a successor takes the keys
 * that follow (growth.c).
 *
 * What a builder writes depends on its parameters and keys alone, not on
 * their order or on the way in which they came, as long as one layer holds
 * them all.
 *
 * Neither an error nor a long jump out of a check for interrupts loses a key
 * that was there before: a builder has the keys that were being added, some of
 * them, or none.  Only a merge that was not finished leaves a builder that can
 * no longer be written or merged: BF_INCOMPLETE.  What an operation allocated
 * before a long jump is not freed.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "bits.h"
#include "builder.h"
#include "bytes.h"
#include "image.h"
#include "interrupts.h"
#include "list.h"

/* The size of a sparse image in bytes. */
size_t
bf_sparse_size(const BfParams *params, uint32_t nhashes)
{
	return bf_header_size(params, 0) + 8 * (size_t) nhashes;
}

/* The size of a dense image of one layer in bytes. */
size_t
bf_dense_size(const BfParams *params, const BfGeometry *geometry)
{
	return bf_header_size(params, 1) + bf_geometry_size(geometry);
}

/*
 * The number of hashes up to which a filter is sparse.  With expected keys, it
 * is so as long as that is the smaller form.
 */
static uint32_t
max_hashes(const BfBuilder *b)
{
	const BfParams *params = &b->params;
	BfGeometry	geometry;
	uint32_t	max;

	if (params->expected == 0 ||
		bf_geometry_for(params->fpp, params->expected, &geometry) != BF_OK)
		return BF_MAX_UNSIZED_HASHES;
	max = (uint32_t) ((bf_dense_size(params, &geometry) -
					   bf_sparse_size(params, 0)) / 8);
	return b->keeps_hashes && max < BF_MAX_UNSIZED_HASHES &&
		params->expected <= BF_MAX_UNSIZED_HASHES ?
		BF_MAX_UNSIZED_HASHES : max;
}

/*
 * Set the parameters of a builder and what follows from them.  Two filters
 * that are possible may join to a rate and a number of expected keys that are
 * not; then the number is reduced.
 */
void
bf_builder_set_params(BfBuilder *b, const BfParams *params)
{
	uint64_t	max_keys = bf_max_keys(params->fpp);

	b->params = *params;
	if (b->params.expected > max_keys)
		b->params.expected = max_keys;
	b->max_hashes = max_hashes(b);
}

/* Make b an empty builder.  It takes memory as keys come. */
void
bf_builder_init(BfBuilder *b, const BfEnv *env, const BfParams *params)
{
	memset(b, 0, sizeof(*b));
	b->env = *env;
	bf_builder_set_params(b, params);
}

/* Release all memory; b may be freed again, or initialized. */
void
bf_builder_free(BfBuilder *b)
{
	bf_builder_free_hashes(b);
	bf_build_layers_free(b);
}

/*
 * Tell an empty builder that bf_builder_compact is going to be called at the
 * end.  Without expected keys, the filter may then take more room than it
 * needs until it is.
 */
void
bf_builder_compact_at_end(BfBuilder *b)
{
	b->compact_at_end = true;
}

/*
 * Tell an empty builder that it is one of several partial ones, which another
 * process is going to merge.  If all of them keep hashes, the result has the
 * layers that one process would have built, also if all keys together are more
 * than expected; layers of several processes would each add to its rate.  They
 * keep as many as a filter without expected keys.  If more than so many are
 * expected, they keep no more than any filter, because hashes would take several
 * times the memory of bits.
 */
void
bf_builder_keep_hashes(BfBuilder *b)
{
	b->keeps_hashes = true;
	b->max_hashes = max_hashes(b);
}

/* From now on, become dense as any other filter does. */
void
bf_builder_end_keep(BfBuilder *b)
{
	b->keeps_hashes = false;
	b->max_hashes = max_hashes(b);
}

/*
 * Tell a builder that from now on it is going to be probed between adds.  It
 * then keeps its hashes in an order that makes probes fast, whereas they would
 * else be sorted once at the end.  What it writes is the same.
 */
void
bf_builder_expect_probes(BfBuilder *b)
{
	b->expects_probes = true;
	bf_builder_sort_for_probes(b);
}

/*
 * Tell the type of the keys, which all have to be of one: else
 * BF_KEY_TYPE_MISMATCH.  BF_KEY_NONE is equal to any.
 */
BfStatus
bf_builder_set_key_type(BfBuilder *b, const BfKeyType *key_type)
{
	if (b->params.key_type.code == BF_KEY_NONE)
		b->params.key_type = *key_type;
	else if (key_type->code != BF_KEY_NONE &&
			 !bf_key_type_equal(&b->params.key_type, key_type))
		return BF_KEY_TYPE_MISMATCH;
	return BF_OK;
}

/* Add a hash.  BF_NO_MEMORY, or BF_TOO_LARGE if the filter cannot grow. */
BfStatus
bf_builder_add(BfBuilder *b, uint64_t hash)
{
	BfStatus	status;

	if (bf_builder_collect(b, hash))
		return BF_OK;
	status = bf_builder_reserve(b, 1);
	if (status != BF_OK)
		return status;
	if (b->nlayers > 0)
		return bf_build_layers_add(b, hash, 1);

	/* Before the hash is in the list: this may end in a long jump. */
	bf_builder_sort_for_probes(b);
	b->hashes[b->nhashes++] = hash;
	return BF_OK;
}

/*
 * Add n hashes.  In a filter larger than the caches of the processor, this is
 * faster than adding them one by one, which waits for memory each time.
 */
BfStatus
bf_builder_add_all(BfBuilder *b, const uint64_t *hashes, uint32_t n)
{
	uint32_t	i;

	for (i = 0; i < n && b->nlayers == 0; i++)
	{
		BfStatus	status = bf_builder_add(b, hashes[i]);

		if (status != BF_OK)
			return status;
	}
	return i < n ? bf_build_layers_add_all(b, hashes + i, n - i) : BF_OK;
}

/*
 * Is a hash in the filter so far?  Pending hashes are looked at one by one:
 * call bf_builder_expect_probes before a loop that probes and adds.
 */
bool
bf_builder_contains(const BfBuilder *b, uint64_t hash)
{
	size_t		i;

	/* There are both after a merge that was not finished. */
	if (bf_build_layers_contain(b, hash))
		return true;
	i = bf_list_find(b->hashes, b->nsorted, hash);
	if (i < b->nsorted && b->hashes[i] == hash)
		return true;
	for (i = b->nsorted; i < b->nhashes; i++)
	{
		if (b->hashes[i] == hash)
			return true;
	}
	return false;
}

/* As bf_count_distinct; pending duplicates count. */
double
bf_builder_cardinality(const BfBuilder *b)
{
	BfBits		layers[BF_MAX_LAYERS];
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		layers[i].geometry = &b->layers[i].geometry;
		layers[i].bits_set = b->layers[i].bits_set;
		layers[i].bits = b->layers[i].bits;
	}
	return b->nlayers == 0 ? b->nhashes :
		bf_distinct_keys(&b->env.interrupts, layers, b->nlayers);
}

/*
 * Can n hashes, all of them new, certainly be added without a change of form?
 * Then the filter neither becomes dense nor gets another layer, and adding
 * them fails at most for lack of memory, which leaves a valid filter.
 */
bool
bf_builder_has_room(const BfBuilder *b, uint32_t n)
{
	int			i;

	if (b->nlayers == 0)
		return b->nhashes <= b->max_hashes && n <= b->max_hashes - b->nhashes;

	for (i = 0; i < b->nlayers; i++)
	{
		if (bf_build_layer_has_room(&b->layers[i], n))
			return true;
	}
	return false;
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

	if (status != BF_OK)
		return status;

	if (b->nlayers == 0)
	{
		*size = bf_sparse_size(&b->params, b->nhashes);
		return BF_OK;
	}
	*size = bf_header_size(&b->params, b->nlayers);
	for (i = 0; i < b->nlayers; i++)
		*size += bf_geometry_size(&b->layers[i].geometry);
	return BF_OK;
}

/*
 * Write the image: as many bytes as were planned.  No key may have been added
 * since bf_builder_plan.
 */
void
bf_builder_write(const BfBuilder *b, uint8_t *image)
{
	uint8_t    *entry;
	uint8_t    *content = image + bf_header_size(&b->params, b->nlayers);
	uint32_t	j;
	int			i;

	entry = bf_write_header(image, &b->params, b->nhashes, b->nlayers);
	for (i = 0; i < b->nlayers; i++)
	{
		const BfBuildLayer *layer = &b->layers[i];
		size_t		size = bf_geometry_size(&layer->geometry);

		entry = bf_write_layer(entry, &layer->geometry, layer->bits_set);
		bf_bitmap_copy(&b->env.interrupts, content, layer->bits, size);
		content += size;
	}
	for (j = 0; j < b->nhashes; j++)
	{
		bf_check_interrupts_at(&b->env.interrupts, j, 0);
		bf_store64(content + 8 * (size_t) j, b->hashes[j]);
	}
}

/*
 * Write the image around the bits of a large filter of one layer, so that they
 * are not copied: returns it, or NULL if that is not possible.  Some bytes
 * before it, at most 32, are the caller's.  No key may have been added since
 * bf_builder_plan.  The image is valid until the next one is, or the builder is
 * freed.
 */
uint8_t *
bf_builder_write_in_place(BfBuilder *b, size_t before)
{
	const BfBuildLayer *layer = &b->layers[0];
	size_t		size = bf_header_size(&b->params, 1);
	uint8_t    *image;
	uint8_t    *entry;

	if (b->nlayers != 1 ||
		(size_t) (layer->bits - (uint8_t *) layer->memory) < before + size)
		return NULL;
	image = layer->bits - size;
	entry = bf_write_header(image, &b->params, 0, 1);
	bf_write_layer(entry, &layer->geometry, layer->bits_set);
	return image;
}
