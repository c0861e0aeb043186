/*-------------------------------------------------------------------------
 *
 * builder.c
 *	  Filters under construction.
 *
 * A builder collects hashes in the order in which they come, until there are
 * more distinct ones than the sparse form may hold: max_hashes.  When room runs
 * out, the list is sorted, which drops duplicates, and if there are too many
 * hashes even so, the builder becomes dense: all of them go into a first layer.
 * Whenever the layers are full, a successor takes the keys that follow
 * (layers.c).
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
#include "bytes.h"
#include "internal.h"

/* Hashes that the first list has room for. */
#define INITIAL_ROOM	8

/*
 * Set the number of hashes up to which a filter is sparse.  With expected keys,
 * it is so as long as that is the smaller form.
 */
static void
set_max_hashes(BfBuilder *b)
{
	const BfParams *params = &b->params;
	BfGeometry	geometry;

	b->max_hashes = BF_MAX_UNSIZED_HASHES;
	if (params->expected > 0 &&
		bf_geometry_for(params->fpp, false, params->expected,
						&geometry) == BF_OK)
	{
		uint32_t	max = BF_LIST_OF_BITS(bf_geometry_bits(&geometry));

		if (!b->keeps_hashes || max > BF_MAX_UNSIZED_HASHES ||
			params->expected > BF_MAX_UNSIZED_HASHES)
			b->max_hashes = max;
	}
}

/* Set the parameters of a builder and what follows from them. */
void
bf_builder_set_params(BfBuilder *b, const BfParams *params)
{
	b->params = *params;
	b->first_asked = -1;
	set_max_hashes(b);
}

/* Make b an empty builder.  It takes memory as keys come. */
void
bf_builder_init(BfBuilder *b, const BfEnv *env, const BfParams *params)
{
	memset(b, 0, sizeof(*b));
	b->env = *env;
	bf_builder_set_params(b, params);
}

static void
free_hashes(BfBuilder *b)
{
	if (b->hashes != NULL)
		b->env.free(b->env.context, b->hashes);
	b->hashes = NULL;
	b->nhashes = b->nsorted = b->room = 0;
}

/* Release all memory; b may be freed again, or initialized. */
void
bf_builder_free(BfBuilder *b)
{
	free_hashes(b);
	bf_builder_free_layers(b);
}

/*
 * Tell an empty builder that it is one of several partial ones, which another
 * process is going to merge.  If all of them keep hashes, the result has the
 * layers that one process would have built, also if all keys together are more
 * than expected; layers of several processes would each add to its rate.  They
 * keep as many as a filter without expected keys.  If more than so many are
 * expected, they keep no more than any filter, because hashes would take several
 * times the memory of bits.
 *
 * With false, it becomes dense from now on as any other filter does.
 */
void
bf_builder_keep_hashes(BfBuilder *b, bool keep)
{
	b->keeps_hashes = keep;
	set_max_hashes(b);
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

/*
 * Add all collected hashes to the layers, in an order that looks random: by a
 * permutation of the numbers up to mask, which is one less than a power of two
 * (a linear congruential generator of full period: Knuth, TAOCP 2, 3.2.1.2;
 * constants of Press et al., Numerical Recipes).
 */
static BfStatus
add_scattered(BfBuilder *b)
{
	uint32_t	n = b->nhashes;
	uint32_t	mask = 0;
	uint32_t	at = 0;
	uint32_t	i;

	while (mask < n)
		mask = mask << 1 | 1;
	for (i = 0; i < n; i++)
	{
		BfStatus	status = bf_builder_add_to_layers(b, b->hashes[at], n - i);

		bf_check_interrupts_at(&b->env.interrupts, i, b->nlayers);
		if (status != BF_OK)
			return status;
		do
		{
			at = (at * UINT32_C(1664525) + UINT32_C(1013904223)) & mask;
		} while (at >= n && i + 1 < n);
	}
	return BF_OK;
}

/*
 * Add all collected hashes to a layer without a bit set in ascending order, in
 * which each block comes from memory only once.  Returns false and leaves the
 * layer empty if it is over full then.
 */
static bool
add_ascending(BfBuilder *b, BfLayer *layer)
{
	bf_bits_add_all(&b->env.interrupts, &layer->geometry, layer->bits,
					b->hashes, b->nhashes, &layer->bits_set);
	if (layer->bits_set <= layer->bits_full)
		return true;
	memset(layer->bits, 0, bf_geometry_size(&layer->geometry));
	layer->bits_set = 0;
	return false;
}

/*
 * Add all collected hashes to the layers, of which there is at least one, and
 * forget them.
 *
 * The list is ascending, so neighbours belong to neighbouring blocks.  In this
 * order, hashes would fill a layer without room for all of them block by block,
 * with a rate far above the one it is made for.  So they are added in another
 * order, unless one layer takes all of them: then the order does not matter.
 * A new layer is likely to, if it has the capacity.
 */
BfStatus
bf_builder_flush_hashes(BfBuilder *b)
{
	BfLayer    *last = &b->layers[b->nlayers - 1];
	BfStatus	status = BF_OK;

	if (bf_layer_has_room(last, b->nhashes))
		status = bf_builder_add_all_to_layers(b, b->hashes, b->nhashes);
	else if (b->nlayers > 1 || last->bits_set > 0 ||
			 b->nhashes > last->geometry.capacity || !add_ascending(b, last))
		status = add_scattered(b);
	if (status == BF_OK)
		free_hashes(b);
	return status;
}

/*
 * Make the first layer and add the hashes to it.  The layers belong to another
 * builder until all hashes are in, so that neither an error nor a long jump
 * changes this one.
 */
static BfStatus
convert_to_dense(BfBuilder *b)
{
	const BfParams *params = &b->params;
	BfBuilder	converted = *b;
	BfGeometry	geometry;
	BfLayer    *layer;
	BfStatus	status = BF_OK;

	if (params->expected == 0 && b->compact_at_end)
		bf_geometry_to_fold(params->fpp, &geometry);
	else
		status = bf_geometry_for(params->fpp, false, params->expected > 0 ?
								 params->expected : BF_FIRST_UNSIZED_LAYER,
								 &geometry);
	if (status == BF_OK)
		status = bf_builder_append_layer(&converted, &geometry, &layer);
	if (status == BF_OK)
		status = bf_builder_flush_hashes(&converted);
	if (status == BF_OK)
		*b = converted;
	else
		bf_builder_free_layers(&converted);
	return status;
}

/*
 * Sort the hashes and drop duplicates.  The pending ones are sorted and then
 * merged with the others, for which they are copied: BF_NO_MEMORY leaves a
 * valid list.
 */
static BfStatus
sort_hashes(BfBuilder *b)
{
	const BfEnv *env = &b->env;
	uint64_t   *pending;
	size_t		npending = b->nhashes - b->nsorted;

	if (npending == 0)
		return BF_OK;
	pending = b->hashes + b->nsorted;
	bf_list_sort(&env->interrupts, pending, npending);
	if (b->nsorted > 0)
	{
		size_t		size = npending * sizeof(uint64_t);
		uint64_t   *copy = env->alloc(env->context, size);

		if (copy == NULL)
			return BF_NO_MEMORY;
		memcpy(copy, pending, size);
		bf_list_merge(b->hashes, b->nsorted, copy, npending);
		env->free(env->context, copy);

		/* For a long jump from here on: they are not distinct. */
		b->nsorted = 0;
	}
	b->nhashes = (uint32_t) bf_list_dedup(&env->interrupts, b->hashes,
										  b->nhashes);
	b->nsorted = b->nhashes;
	return BF_OK;
}

/*
 * Sort the hashes of a sparse filter, drop duplicates, and convert it to a
 * dense one if too many are left.
 */
BfStatus
bf_builder_sort_and_convert(BfBuilder *b)
{
	BfStatus	status;

	if (b->incomplete)
		return BF_INCOMPLETE;
	if (b->nlayers > 0)
		return BF_OK;
	status = sort_hashes(b);
	if (status == BF_OK && b->nhashes > b->max_hashes)
		status = convert_to_dense(b);
	return status;
}

/*
 * Sort the hashes before a probe, if so many are pending that it pays.  A probe
 * looks at pending hashes one by one.  In a loop that probes and adds in turns,
 * these are t^2 / 2 comparisons until t are pending; sorting them in takes some
 * passes over all hashes, and is due when the comparisons have cost as much.
 * Without memory to sort, probes are just slower.
 */
void
bf_builder_sort_for_probes(BfBuilder *b)
{
	uint64_t	npending = b->nhashes - b->nsorted;

	if (npending * npending > 8 * ((uint64_t) b->nhashes + 64))
		(void) sort_hashes(b);
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

/* Allocate so much room for hashes, and keep those that are there. */
static BfStatus
enlarge_hashes(BfBuilder *b, uint32_t room)
{
	uint64_t   *hashes = bf_reallocate(&b->env, b->hashes,
									   b->nhashes * sizeof(uint64_t),
									   room * sizeof(uint64_t));

	if (hashes == NULL)
		return BF_NO_MEMORY;
	b->hashes = hashes;
	b->room = room;
	return BF_OK;
}

/*
 * The pending limit: hashes that may be collected before the list is sorted
 * and perhaps converted.  It is a quarter above max_hashes, because a list
 * that is nearly full would otherwise be sorted for each duplicate that is
 * added to it.  The first layer takes all of them, so it does not matter how
 * many they are when it is made.
 */
static uint32_t
pending_limit(const BfBuilder *b)
{
	return b->max_hashes + b->max_hashes / 4 + INITIAL_ROOM;
}

/*
 * Must the list be converted before n more hashes are added?  It may be
 * deferred as long as the first layer is sure to take them all.
 */
bool
bf_builder_must_convert(const BfBuilder *b, uint32_t n)
{
	return b->nhashes > b->max_hashes &&
		(uint64_t) b->nhashes + n > pending_limit(b);
}

/*
 * Make room for n more hashes in a sparse filter: drop duplicates, or else
 * double the list, up to the pending limit if that is enough.
 */
static BfStatus
make_room_for_hashes(BfBuilder *b, uint32_t n)
{
	uint32_t	room;
	BfStatus	status;

	if (b->room - b->nhashes >= n)
		return BF_OK;
	status = sort_hashes(b);
	if (status != BF_OK || b->room - b->nhashes >= n)
		return status;

	room = 2 * b->nhashes;
	if (room < b->nhashes + INITIAL_ROOM)
		room = b->nhashes + INITIAL_ROOM;
	if (room > pending_limit(b))
		room = pending_limit(b);
	if (room < b->nhashes + n)
		room = b->nhashes + n;
	return enlarge_hashes(b, room);
}

/*
 * Make room for n more hashes that are going to be added one by one: if room
 * runs out and there are too many hashes, the filter becomes dense.
 */
BfStatus
bf_builder_reserve(BfBuilder *b, uint32_t n)
{
	BfStatus	status;

	if (b->nlayers > 0 || b->room - b->nhashes >= n)
		return BF_OK;
	status = bf_builder_sort_and_convert(b);
	if (status != BF_OK || b->nlayers > 0)
		return status;
	return make_room_for_hashes(b, n);
}

/*
 * Add the n > 0 hashes of a list in an image.  A sparse filter does not become
 * dense on the way, so that all its hashes are converted at once.
 */
BfStatus
bf_builder_add_list(BfBuilder *b, const uint8_t *list, uint32_t n)
{
	BfStatus	status = b->nlayers > 0 ? enlarge_hashes(b, n) :
		make_room_for_hashes(b, n);
	uint32_t	i;

	if (status != BF_OK)
		return status;
	for (i = 0; i < n; i++)
	{
		bf_check_interrupts_at(&b->env.interrupts, i, 0);
		b->hashes[b->nhashes++] = bf_load64(list + 8 * (size_t) i);
	}
	return b->nlayers > 0 ? bf_builder_flush_hashes(b) : BF_OK;
}

/* Add a hash.  Fails without memory, or if the filter cannot grow. */
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
		return bf_builder_add_to_layers(b, hash, 1);

	/* Before the hash is in the list: this may end in a long jump. */
	if (b->expects_probes)
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
	return i < n ? bf_builder_add_all_to_layers(b, hashes + i, n - i) : BF_OK;
}
