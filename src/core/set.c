/*-------------------------------------------------------------------------
 *
 * set.c
 *	  Merging, union and intersection of filters.
 *
 * Both have to have the same seed and key type, whatever their other parameters
 * are: else BF_SEED_MISMATCH or BF_KEY_TYPE_MISMATCH.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bytes.h"
#include "internal.h"

/*
 * Bytes at the start of a layer that stand for all of it: as many hashes as
 * fall there set their bits in it, so that its share of set bits is within an
 * eighth of that of the layer, by more than six standard deviations.
 */
#define SAMPLE			8192

/*
 * Is this a filter without keys, and with the parameters of bloom_empty()
 * without arguments?  Its union with any other filter is the other filter.
 */
static bool
is_neutral(const BfParams *params, uint32_t nhashes, int nlayers)
{
	return nhashes == 0 && nlayers == 0 && params->fpp == BF_FPP_DEFAULT &&
		params->expected == 0 && params->seed == 0 &&
		params->key_type.code == BF_KEY_NONE;
}

/*
 * Join the parameters of another filter: the result has the lower rate and the
 * larger number of expected keys, or as many of them as are possible at it.
 *
 * The limits of a sparse filter follow from its parameters.  If it has to
 * become dense by those that it has had, that is done before they change, so
 * that it does not matter how long conversion was deferred, or whether at all.
 */
static BfStatus
join_params(BfBuilder *b, const BfParams *params)
{
	BfParams	joined;
	BfStatus	status;

	if (b->params.seed != params->seed)
		return BF_SEED_MISMATCH;
	status = bf_builder_set_key_type(b, &params->key_type);
	if (status != BF_OK)
		return status;

	if (b->params.fpp <= params->fpp && b->params.expected >= params->expected)
		return BF_OK;

	joined = b->params;
	joined.fpp = fmin(joined.fpp, params->fpp);
	if (joined.expected < params->expected)
		joined.expected = params->expected;
	if (joined.expected > bf_max_keys(joined.fpp))
		joined.expected = bf_max_keys(joined.fpp);
	if (joined.fpp == b->params.fpp && joined.expected == b->params.expected)
		return BF_OK;

	bf_builder_keep_hashes(b, false);
	status = bf_builder_sort_and_convert(b);
	if (status == BF_OK)
		bf_builder_set_params(b, &joined);
	return status;
}

/*
 * Does the start of two large layers of equal geometry show that neither is a
 * subset of the other, and that one ORed into the other would be over full?
 * This spares the union of many full filters from reading all layers of each
 * for each other one; with 64 of 1 MB, it took 1.7 times as long.
 */
static bool
seems_over_full(const BfInterrupts *interrupts, const BfLayer *layer,
				const uint8_t *bits)
{
	double		m = (double) bf_geometry_bits(&layer->geometry);
	uint64_t	both;

	if (bf_geometry_size(&layer->geometry) < 4 * SAMPLE)
		return false;
	both = bf_bitmap_combine(interrupts, false, NULL, layer->bits, bits,
							 SAMPLE);
	return (double) both / (8 * SAMPLE) >
		(double) layer->bits_full / m + 1.0 / 8 &&
		both > bf_blocks_bits_set(layer->bits, SAMPLE) &&
		both > bf_blocks_bits_set(bits, SAMPLE);
}

/*
 * What intersections cut of two layers that are ORed, with so many bits set.
 *
 * It adds up: with x inside X and y inside Y, the bits of X or Y that are in
 * neither x nor y are at most those of X that are not in x, and those of Y that
 * are not in y.  If x has all bits of y, or y those of x, both together are as
 * full as the fuller one: x has the keys of which y is what was left, or else it
 * was cut like y, and counts that.
 */
static uint64_t
cut_of_both(const BfLayer *x, const BfLayer *y, uint64_t bits_set)
{
	uint64_t	fullness = bf_layer_fullness(x);

	if (bits_set > x->bits_set && bits_set > y->bits_set)
		return (uint64_t) x->bits_cut + y->bits_cut;
	if (fullness < bf_layer_fullness(y))
		fullness = bf_layer_fullness(y);
	return fullness - bits_set;
}

/*
 * The layer, among the first ones of a builder, to OR another one of equal
 * geometry into: that which it adds the fewest bits to, if the result is not
 * over full, or no fuller than one of the two; NULL if there is none.
 */
static BfLayer *
find_room(BfBuilder *b, int among, const BfLayer *from)
{
	const BfGeometry *geometry = &from->geometry;
	const uint8_t *bits = from->bits;
	BfLayer    *best = NULL;
	uint64_t	best_added = 0;
	int			nequal = 0;
	int			i;

	for (i = 0; i < among; i++)
	{
		if (bf_geometry_equal(&b->layers[i].geometry, geometry))
		{
			best = &b->layers[i];
			nequal++;
		}
	}

	/* Often there is one with room in any case: no need to read the bits. */
	if (nequal == 0 ||
		(nequal == 1 && bf_layer_fullness(best) + bf_layer_fullness(from) <=
		 best->bits_full))
		return best;

	best = NULL;
	for (i = 0; i < among; i++)
	{
		BfLayer    *layer = &b->layers[i];
		uint64_t	set;
		uint64_t	added;
		uint64_t	full;

		if (!bf_geometry_equal(&layer->geometry, geometry) ||
			seems_over_full(&b->env.interrupts, layer, bits))
			continue;
		set = bf_bitmap_combine(&b->env.interrupts, false, NULL, layer->bits,
								bits, bf_geometry_size(geometry));
		added = set - layer->bits_set;

		full = set + cut_of_both(layer, from, set);
		if (full > layer->bits_full && full > bf_layer_fullness(layer) &&
			full > bf_layer_fullness(from))
			continue;
		if (best == NULL || added < best_added)
		{
			best = layer;
			best_added = added;
		}
	}
	return best;
}

/*
 * Take in a layer of another filter.  It is ORed into one of equal geometry
 * that has room, among the first layers, or else appended.
 */
BfStatus
bf_builder_take_in_layer(BfBuilder *b, int among, const BfLayer *from)
{
	const BfGeometry *geometry = &from->geometry;
	BfLayer    *layer = find_room(b, among, from);
	BfStatus	status = layer != NULL ? BF_OK :
		bf_builder_append_layer(b, geometry, &layer);
	uint64_t	bits_set;
	uint64_t	cut;

	if (status != BF_OK)
		return status;
	bits_set = bf_bitmap_combine(&b->env.interrupts, false, layer->bits,
								 layer->bits, from->bits,
								 bf_geometry_size(geometry));
	cut = cut_of_both(layer, from, bits_set);
	layer->bits_set = bits_set;
	bf_layer_set_cut(layer, cut);
	return BF_OK;
}

/*
 * Take in the layers of a dense filter, and add the hashes of the builder to
 * them, if it has some.  Those of one filter are not compared with each other:
 * if the builder has none, they stay as they are.
 */
static BfStatus
merge_layers(BfBuilder *b, const BfView *view)
{
	int			nlayers = b->nlayers;
	int			i;

	for (i = 0; i < view->nlayers; i++)
	{
		BfStatus	status = bf_builder_take_in_layer(b, nlayers,
													  &view->layers[i]);

		if (status != BF_OK)
			return status;
	}
	if (nlayers > 0)
		bf_builder_sort_layers(b);
	return bf_builder_flush_hashes(b);
}

/* Set what is kept in single precision; rounded up, since it is a bound. */
static void
set_list_fpp(BfBuilder *b, double list_fpp)
{
	float		rounded = (float) list_fpp;

	if (rounded < list_fpp)
		rounded = nextafterf(rounded, 1);
	if (list_fpp > 0 && rounded < BF_LIST_FPP_MIN)
		rounded = (float) BF_LIST_FPP_MIN;
	b->list_fpp = fminf(rounded, 1);
}

/*
 * Take in all keys of another filter.  Hashes are added as any others are.
 * Layers are ORed into layers of equal geometry that have room for them, and
 * are else put next to the others.  An empty builder with default parameters
 * adopts those of the other filter.
 *
 * BF_NO_MEMORY, BF_TOO_MANY_LAYERS, or BF_TOO_LARGE if all layers together
 * would be too large; these leave the builder incomplete, as does a long jump.
 */
BfStatus
bf_builder_merge(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;

	if (b->incomplete)
		return BF_INCOMPLETE;
	if (is_neutral(&view->params, view->nhashes, view->nlayers))
		return BF_OK;
	if (is_neutral(&b->params, b->nhashes, b->nlayers))
		bf_builder_set_params(b, &view->params);

	/* The layers of others would make it too late to become dense. */
	if (view->nlayers > 0)
		bf_builder_keep_hashes(b, false);
	if (view->nlayers > 0 || bf_builder_must_convert(b, view->nhashes))
		status = bf_builder_sort_and_convert(b);
	if (status == BF_OK)
		status = join_params(b, &view->params);
	if (status != BF_OK)
		return status;

	b->incomplete = true;
	if (view->nlayers > 0)
		status = merge_layers(b, view);
	else if (view->nhashes > 0)
		status = bf_builder_add_list(b, view->hashes, view->nhashes);
	b->incomplete = status != BF_OK;
	set_list_fpp(b, b->list_fpp + (1 - b->list_fpp) * view->list_fpp);
	if (b->expects_probes)
		bf_builder_sort_for_probes(b);
	return status;
}

/* A total order of images, which tells the one that is merged first. */
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
	const BfView *first = comes_first(x, y) ? x : y;
	BfStatus	status;

	bf_builder_init(b, env, &first->params);
	status = bf_builder_merge(b, first);
	if (status == BF_OK)
		status = bf_builder_merge(b, first == x ? y : x);
	return status;
}

/*
 * Do the bits of two layers correspond?  The blocks of x have to be as many as
 * those of y, or a multiple.
 */
static bool
layers_correspond(const BfGeometry *x, const BfGeometry *y)
{
	return x->block_log2 == y->block_log2 && x->k == y->k &&
		x->generation == y->generation && x->nblocks % y->nblocks == 0;
}

/*
 * Order two filters so that x is sparse if one is, of two lists the shorter; of
 * two layers, the one of more blocks.  BF_GEOMETRY_MISMATCH if both are dense
 * and their bits do not correspond.  They cannot if one has several layers,
 * because a common key may lie in different ones.
 */
static BfStatus
order_to_intersect(const BfView **x, const BfView **y)
{
	const BfView *swap = *x;
	bool		exchange;

	if ((*x)->nlayers == 1 && (*y)->nlayers == 1)
	{
		uint32_t	nx = (*x)->layers[0].geometry.nblocks;
		uint32_t	ny = (*y)->layers[0].geometry.nblocks;

		exchange = nx < ny || (nx == ny && !comes_first(*x, *y));
	}
	else
		exchange = (*y)->nlayers == 0 &&
			((*x)->nlayers > 0 || (*y)->nhashes < (*x)->nhashes);
	if (exchange)
	{
		*x = *y;
		*y = swap;
	}
	return (*x)->nlayers == 0 ||
		((*x)->nlayers == 1 && (*y)->nlayers == 1 &&
		 layers_correspond(&(*x)->layers[0].geometry,
						   &(*y)->layers[0].geometry)) ?
		BF_OK : BF_GEOMETRY_MISMATCH;
}

/*
 * The layer of an intersection: the bits that are set in both.  Block i of y
 * holds the keys of several neighbouring blocks of x, at the same positions, so
 * it is combined with each of them.
 */
static BfStatus
intersect_layers(BfBuilder *b, const BfLayer *x, const BfLayer *y)
{
	const BfInterrupts *interrupts = &b->env.interrupts;
	uint32_t	factor = x->geometry.nblocks / y->geometry.nblocks;
	size_t		size = bf_blocks_size(&x->geometry, 1);
	uint64_t	fullness = bf_layer_fullness(y) * factor;
	BfLayer    *layer;
	BfStatus	status = bf_builder_append_layer(b, &x->geometry, &layer);
	uint32_t	i;

	if (status != BF_OK)
		return status;
	if (factor == 1)
		layer->bits_set = bf_bitmap_combine(interrupts, true, layer->bits,
											x->bits, y->bits,
											bf_geometry_size(&x->geometry));
	for (i = 0; factor > 1 && i < x->geometry.nblocks; i++)
		layer->bits_set += bf_bitmap_combine(interrupts, true,
											 layer->bits + i * size,
											 x->bits + i * size,
											 y->bits + i / factor * size, size);
	if (fullness < bf_layer_fullness(x))
		fullness = bf_layer_fullness(x);
	bf_layer_set_cut(layer, fullness - layer->bits_set);
	return BF_OK;
}

/*
 * Give b the parameters of an intersection, and order the filters.  If one of
 * them sizes itself, so does the result: a list of any length then remains one.
 * In bits of its own, what another filter leaves of it would set bits of that
 * filter only, whose keys would be found too often.
 *
 * *empty tells that a filter without keys, whose seed or bits do not correspond to
 * those of the other one, leaves nothing in common.  The result then has the
 * seed of the filter that has keys.
 */
static BfStatus
begin_intersection(BfBuilder *b, const BfEnv *env, const BfView **x,
				   const BfView **y, bool *empty)
{
	BfStatus	status;

	*empty = false;
	bf_builder_init(b, env, &(*x)->params);
	status = join_params(b, &(*y)->params);
	if (status == BF_OK &&
		((*x)->params.expected == 0 || (*y)->params.expected == 0))
	{
		BfParams	params = b->params;

		params.expected = 0;
		bf_builder_set_params(b, &params);
	}
	if (status == BF_OK)
		status = order_to_intersect(x, y);
	if ((status == BF_SEED_MISMATCH || status == BF_GEOMETRY_MISMATCH) &&
		(bf_is_empty(*x) || bf_is_empty(*y)))
		*empty = true;
	if (*empty && status == BF_SEED_MISMATCH)
	{
		bool		from_x = bf_is_empty(*x) == bf_is_empty(*y) ?
			comes_first(*x, *y) : bf_is_empty(*y);
		const BfView *from = from_x ? *x : *y;

		bf_builder_init(b, env, &from->params);
		return bf_builder_set_key_type(b, &(from_x ? *y : *x)->params.key_type);
	}
	return *empty ? BF_OK : status;
}

/*
 * Make b the intersection of two filters, which holds at least every common
 * key: the hashes of a sparse one that the other contains, or the bits that
 * are set in both.  Its rate is the larger one of theirs: a key of one of them
 * is found at the rate of the other.  It is to be freed whatever the status is.
 * BF_GEOMETRY_MISMATCH if both are dense and their bits do not correspond;
 * BF_NO_MEMORY and BF_TOO_LARGE as in bf_builder_add.  With a filter without
 * keys, it is empty, whatever the seeds and the sizes are.
 */
BfStatus
bf_intersection(BfBuilder *b, const BfEnv *env,
				const BfView *x, const BfView *y)
{
	bool		empty;
	BfStatus	status = begin_intersection(b, env, &x, &y, &empty);
	uint32_t	i;

	if (status != BF_OK || empty)
		return status;
	set_list_fpp(b, fmax(x->list_fpp, x->nlayers == 0 && y->nlayers > 0 ?
						 bf_current_fpp(y) : y->list_fpp));
	if (x->nlayers > 0)
		return intersect_layers(b, &x->layers[0], &y->layers[0]);

	/* All at once: the list is then converted, if at all, as a whole. */
	status = bf_builder_reserve(b, x->nhashes);
	for (i = 0; status == BF_OK && i < x->nhashes; i++)
	{
		uint64_t	hash = bf_load64(x->hashes + 8 * (size_t) i);

		bf_check_interrupts_at(&env->interrupts, i, y->nlayers);
		if (bf_contains(y, hash))
			status = bf_builder_add(b, hash);
	}
	return status;
}
