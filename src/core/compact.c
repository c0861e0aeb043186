/*-------------------------------------------------------------------------
 *
 * compact.c
 *	  The smallest filter whose layers keep the rates that they are made for.
 *
 * Hashes go into a layer for just their number if that is smaller than they
 * are, and each layer is folded to what it holds.
 *
 *-------------------------------------------------------------------------
 */
#include "internal.h"

/*
 * Fold a layer as far as it goes, and take it in.  The number of its keys is
 * estimated again from the bits that are left.  The estimates differ a little,
 * so it may fold once more: without the loop, what is compact could be made
 * smaller by another call.
 */
static BfStatus
fold_layer(BfBuilder *to, const BfLayer *layer)
{
	const BfEnv *env = &to->env;
	BfLayer		folded = *layer;
	uint8_t    *bits = NULL;	/* of folded, if allocated here */
	BfGeometry	smaller;
	BfStatus	status;

	bf_check_interrupts(&env->interrupts);
	while (bf_geometry_fold(&folded.geometry, bf_layer_fullness(&folded),
							&smaller))
	{
		size_t		size = bf_geometry_size(&smaller);

		/* Later folds are done in place. */
		if (bits == NULL)
			bits = env->alloc(env->context, size);
		if (bits == NULL)
			return BF_NO_MEMORY;
		bf_bitmap_fold(&env->interrupts, bits, folded.bits,
					   folded.geometry.nblocks,
					   folded.geometry.nblocks / smaller.nblocks,
					   bf_blocks_size(&smaller, 1));
		folded.bits = bits;
		folded.geometry = smaller;
		folded.bits_set = bf_bitmap_combine(&env->interrupts, false, NULL,
											bits, bits, size);
		bf_layer_set_cut(&folded, folded.bits_cut);
	}

	status = bf_builder_take_in_layer(to, to->nlayers, &folded);
	if (bits != NULL)
		env->free(env->context, bits);
	return status;
}

/* Turn a list of distinct hashes into a layer for just their number. */
static BfStatus
pack_hashes(BfBuilder *to, const BfBuilder *b, const BfGeometry *geometry)
{
	BfLayer    *layer;
	BfStatus	status = bf_builder_append_layer(to, geometry, &layer);

	if (status == BF_OK)
		bf_bits_add_all(&b->env.interrupts, geometry, layer->bits, b->hashes,
						b->nhashes, &layer->bits_set);
	return status;
}

/*
 * Make packed, which has the parameters of a sparse filter, a layer for just
 * its keys, all of which are distinct; *dense tells whether there are too many
 * for a list.  A layer that it has already, with these keys, serves if the
 * size is right.
 */
BfStatus
bf_builder_pack(const BfBuilder *b, BfBuilder *packed, bool *dense)
{
	BfGeometry	geometry;

	*dense = b->nhashes > BF_MAX_EXACT &&
		bf_geometry_for(b->params.fpp, false, b->nhashes,
						&geometry) == BF_OK &&
		b->nhashes > BF_LIST_OF_BITS(bf_geometry_bits(&geometry));
	packed->params = b->params;
	if (!*dense || (packed->nlayers == 1 &&
					bf_geometry_equal(&packed->layers[0].geometry, &geometry)))
		return BF_OK;
	bf_builder_free_layers(packed);
	return pack_hashes(packed, b, &geometry);
}

/* Add a new key to its layer, if it has one. */
void
bf_builder_pack_hash(BfBuilder *packed, uint64_t hash)
{
	BfLayer    *layer = packed->layers;

	if (packed->nlayers == 1)
		layer->bits_set += bf_bits_add(&layer->geometry, layer->bits, hash);
}

/*
 * Is there a smaller filter?  If this one is sparse, *geometry is then the
 * layer for its hashes.  Of an intersection with a dense filter, there is none:
 * see begin_intersection in set.c.
 */
static bool
can_compact(const BfBuilder *b, BfGeometry *geometry)
{
	int			i;

	if (b->nlayers == 0)
		return b->nhashes > 0 && b->list_fpp == 0 &&
			bf_geometry_for(b->params.fpp, false, b->nhashes,
							geometry) == BF_OK &&
			b->nhashes > BF_LIST_OF_BITS(bf_geometry_bits(geometry));
	for (i = 0; i < b->nlayers; i++)
	{
		bf_check_interrupts(&b->env.interrupts);
		if (bf_geometry_fold(&b->layers[i].geometry,
							 bf_layer_fullness(&b->layers[i]), geometry))
			return true;
	}
	return false;
}

/*
 * Build the smallest filter that keeps the rate.  *found tells whether that is
 * another one than b, which is then in *smaller, to be freed; if it is false,
 * *smaller is not set.  BF_NO_MEMORY leaves nothing to be freed.
 *
 * A sized filter of one layer becomes, to the byte, the one that was made with
 * the smaller size.  What is compact cannot be made smaller by another call.
 * b keeps its keys, and more may be added to it.
 */
BfStatus
bf_builder_compact(BfBuilder *b, BfBuilder *smaller, bool *found)
{
	BfGeometry	geometry;
	BfStatus	status = bf_builder_sort_and_convert(b);
	int			i;

	*found = false;
	if (status != BF_OK)
		return status;
	*found = can_compact(b, &geometry);
	if (!*found)
		return BF_OK;

	bf_builder_init(smaller, &b->env, &b->params);
	smaller->list_fpp = b->list_fpp;
	if (b->nlayers == 0)
		status = pack_hashes(smaller, b, &geometry);
	for (i = 0; status == BF_OK && i < b->nlayers; i++)
		status = fold_layer(smaller, &b->layers[i]);
	if (status != BF_OK)
	{
		bf_builder_free(smaller);
		return status;
	}

	bf_builder_sort_layers(smaller);
	if (b->params.expected > 0 && b->nlayers == 0)
		smaller->params.expected = b->nhashes;
	else if (b->params.expected > 0 && b->nlayers == 1 &&
			 b->layers[0].geometry.fpp == b->params.fpp)
		smaller->params.expected = smaller->layers[0].geometry.capacity;
	return BF_OK;
}
