/*-------------------------------------------------------------------------
 *
 * hashes.c
 *	  The hashes that a builder collects until it becomes dense.
 *
 * A filter is sparse up to max_hashes distinct hashes.  Hashes are appended
 * in the order in which they come; sorting drops duplicates.  When room runs
 * out, the list is sorted, and if there are too many distinct hashes even so,
 * they are converted to the first layer.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "bits.h"
#include "builder.h"
#include "bytes.h"
#include "interrupts.h"
#include "list.h"

/* Hashes that the first list has room for. */
#define INITIAL_ROOM	8

/*
 * The successor of a number in a permutation of the numbers up to mask, which
 * is one less than a power of two, that looks random: a linear congruential
 * generator of full period (Knuth, TAOCP 2, 3.2.1.2; constants of Press et
 * al., Numerical Recipes).
 */
static uint32_t
next_scattered(uint32_t i, uint32_t mask)
{
	return (i * UINT32_C(1664525) + UINT32_C(1013904223)) & mask;
}

void
bf_builder_free_hashes(BfBuilder *b)
{
	if (b->hashes != NULL)
		b->env.free(b->env.context, b->hashes);
	b->hashes = NULL;
	b->nhashes = b->nsorted = b->room = 0;
}

/* Add all collected hashes to the layers, in an order that looks random. */
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
		BfStatus	status = bf_build_layers_add(b, b->hashes[at], n - i);

		bf_check_interrupts_at(&b->env.interrupts, i, b->nlayers);
		if (status != BF_OK)
			return status;
		do
		{
			at = next_scattered(at, mask);
		} while (at >= n && i + 1 < n);
	}
	return BF_OK;
}

/* Is this a new layer, which is likely to take as many keys? */
static bool
may_take_all(const BfBuilder *b)
{
	const BfBuildLayer *layer = &b->layers[0];

	return b->nlayers == 1 && layer->bits_set == 0 &&
		b->nhashes <= layer->geometry.capacity;
}

/*
 * Add all collected hashes to a new layer in ascending order, in which each
 * block comes from memory only once.  Returns false and leaves the layer empty
 * if it is over full then.
 */
static bool
add_ascending(BfBuilder *b)
{
	BfBuildLayer *layer = &b->layers[0];

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
 */
BfStatus
bf_builder_flush_hashes(BfBuilder *b)
{
	BfStatus	status = BF_OK;

	if (bf_build_layer_has_room(&b->layers[b->nlayers - 1], b->nhashes))
		status = bf_build_layers_add_all(b, b->hashes, b->nhashes);
	else if (!may_take_all(b) || !add_ascending(b))
		status = add_scattered(b);
	if (status == BF_OK)
		bf_builder_free_hashes(b);
	return status;
}

static BfStatus
first_geometry(const BfBuilder *b, BfGeometry *geometry)
{
	uint64_t	n = b->params.expected > 0 ? b->params.expected :
		BF_FIRST_UNSIZED_LAYER;

	if (b->params.expected > 0 || !b->compact_at_end)
		return bf_geometry_for(b->params.fpp, n, geometry);
	bf_geometry_to_fold(b->params.fpp, geometry);
	return BF_OK;
}

/*
 * Make the first layer and add the hashes to it.  The layers belong to another
 * builder until all hashes are in, so that neither an error nor a long jump
 * changes this one.
 */
static BfStatus
convert_to_dense(BfBuilder *b)
{
	BfBuilder	converted = *b;
	BfGeometry	geometry;
	BfStatus	status = first_geometry(b, &geometry);

	if (status == BF_OK)
		status = bf_build_layers_append(&converted, &geometry);
	if (status == BF_OK)
		status = bf_builder_flush_hashes(&converted);
	if (status == BF_OK)
		*b = converted;
	else
		bf_build_layers_free(&converted);
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
	uint64_t   *pending;
	size_t		npending = b->nhashes - b->nsorted;

	if (npending == 0)
		return BF_OK;
	pending = b->hashes + b->nsorted;
	bf_list_sort(&b->env.interrupts, pending, npending);
	npending = bf_list_dedup(pending, npending);
	b->nhashes = b->nsorted + (uint32_t) npending;
	if (b->nsorted > 0)
	{
		uint64_t   *copy = b->env.alloc(b->env.context,
										npending * sizeof(uint64_t));

		if (copy == NULL)
			return BF_NO_MEMORY;
		memcpy(copy, pending, npending * sizeof(uint64_t));
		bf_list_merge(b->hashes, b->nsorted, copy, npending);
		b->env.free(b->env.context, copy);
		b->nhashes = (uint32_t) bf_list_dedup(b->hashes, b->nhashes);
	}
	b->nsorted = b->nhashes;

	/* Not earlier: a long jump out of the merge would lose hashes. */
	bf_check_interrupts(&b->env.interrupts);
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
 * If probes are expected, sort the hashes when so many are pending that it
 * pays.  A probe looks at pending hashes one by one.  In a loop that probes
 * and adds in turns, these are t^2 / 2 comparisons until t are pending;
 * sorting them in takes some passes over all hashes, and is due when the
 * comparisons have cost as much.  Without memory to sort, probes are just
 * slower.
 */
void
bf_builder_sort_for_probes(BfBuilder *b)
{
	uint64_t	npending = b->nhashes - b->nsorted;

	if (b->expects_probes &&
		npending * npending > 8 * ((uint64_t) b->nhashes + 64))
		(void) sort_hashes(b);
}

/* Allocate so much room for hashes, and keep those that are there. */
static BfStatus
enlarge(BfBuilder *b, uint32_t room)
{
	uint64_t   *hashes = b->env.alloc(b->env.context,
									  room * sizeof(uint64_t));

	if (hashes == NULL)
		return BF_NO_MEMORY;
	if (b->hashes != NULL)
	{
		memcpy(hashes, b->hashes, b->nhashes * sizeof(uint64_t));
		b->env.free(b->env.context, b->hashes);
	}
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
 * The size of a list with room for n more hashes: half as much again as there
 * is, up to the pending limit if that is enough.
 */
static uint32_t
next_room(const BfBuilder *b, uint32_t n)
{
	uint32_t	max = pending_limit(b);
	uint32_t	room = b->nhashes + b->nhashes / 2;

	if (room < b->nhashes + INITIAL_ROOM)
		room = b->nhashes + INITIAL_ROOM;
	if (room > max)
		room = max;
	if (room < b->nhashes + n)
		room = b->nhashes + n;
	return room;
}

/*
 * Make room for n more hashes in a sparse filter: drop duplicates, or else
 * enlarge the list.
 */
static BfStatus
make_room(BfBuilder *b, uint32_t n)
{
	BfStatus	status;

	if (b->room - b->nhashes >= n)
		return BF_OK;
	status = sort_hashes(b);
	if (status != BF_OK || b->room - b->nhashes >= n)
		return status;
	return enlarge(b, next_room(b, n));
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
	return make_room(b, n);
}

/*
 * Add the n > 0 hashes of a list in an image.  A sparse filter does not become
 * dense on the way, so that all its hashes are converted at once.
 */
BfStatus
bf_builder_add_list(BfBuilder *b, const uint8_t *list, uint32_t n)
{
	BfStatus	status = b->nlayers > 0 ? enlarge(b, n) : make_room(b, n);
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
