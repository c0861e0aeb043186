/*-------------------------------------------------------------------------
 *
 * builder.c
 *	  Filters under construction: hashes first, then layers of bits.
 *
 * A builder collects hashes until there are more distinct ones than the
 * sparse form may hold.  Then it becomes dense: all hashes go into one layer,
 * and whenever the layers are full, a successor of twice the capacity and
 * half the rate takes the following keys, so that the rates of all layers
 * sum up to less than twice the first one (Almeida, Baquero, Preguica,
 * Hutchison: Scalable Bloom Filters, 2007).  Where there would be too many
 * layers, two of them are merged.
 *
 * What a builder writes depends on parameters and keys alone, not on their
 * order or on the way they came, as long as one layer holds them all.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bytes.h"
#include "internal.h"

/* Hashes that a list first has room for. */
#define INITIAL_ROOM	8

static size_t
sparse_size(const BfParams *params, uint32_t nhashes)
{
	return bf_header_size(params, 0) + 8 * (size_t) nhashes;
}

static size_t
dense_size(const BfParams *params, const BfGeometry *geometry)
{
	return bf_header_size(params, 1) + bf_geometry_size(geometry);
}

/*
 * Work out the number of hashes up to which the sparse form is kept: in a
 * sized filter, as long as it is the smaller one.  Two filters that are
 * possible may join to a rate and a number of keys that are not; then the
 * number gives way.
 */
static void
apply_params(BfBuilder *b)
{
	BfGeometry		geometry;

	if (b->params.expected > bf_max_keys(b->params.fpp))
		b->params.expected = bf_max_keys(b->params.fpp);
	if (b->params.expected > 0 &&
		bf_geometry_for(b->params.fpp, b->params.expected, &geometry) == BF_OK)
		b->max_hashes = (uint32_t)
			((dense_size(&b->params, &geometry) -
			  sparse_size(&b->params, 0)) / 8);
	else
		b->max_hashes = BF_MAX_UNSIZED_HASHES;
	if (b->keeps_hashes && b->params.expected <= BF_MAX_KEEP_EXPECTED)
		b->max_hashes = BF_MAX_UNSIZED_HASHES;
}

/* Make b an empty builder, which takes memory as keys come. */
void
bf_builder_init(BfBuilder *b, const BfEnv *env, const BfParams *params)
{
	memset(b, 0, sizeof(*b));
	b->env = *env;
	b->params = *params;
	apply_params(b);
}

/*
 * The filter is going to be made compact in the end.  Without expected keys,
 * it may then take more room than it needs until it is.
 */
void
bf_builder_compact_at_end(BfBuilder *b)
{
	b->compact_at_end = true;
}

/*
 * The filter is one of several partial ones, which another process is going to
 * merge.  Made of hashes, the result is what one process would have built,
 * also where all of them together are more than expected; layers of several
 * processes would each add to its rate.  Where many keys are expected, the
 * hashes of those that do not even fill a layer would take too much memory, so
 * then the filter becomes dense as any other does.
 */
void
bf_builder_keep_hashes(BfBuilder *b)
{
	b->keeps_hashes = true;
	apply_params(b);
}

static void
free_hashes(BfBuilder *b)
{
	if (b->hashes != NULL)
		b->env.free(b->env.context, b->hashes);
	b->hashes = NULL;
	b->nhashes = b->nsorted = b->room = 0;
}

void
bf_builder_free(BfBuilder *b)
{
	int			i;

	free_hashes(b);
	for (i = 0; i < b->nlayers; i++)
		b->env.free(b->env.context, b->layers[i].memory);
	if (b->layers != NULL)
		b->env.free(b->env.context, b->layers);
	b->layers = NULL;
	b->nlayers = 0;
	b->layer_room = 0;
	if (b->exclusions != NULL)
		b->env.free(b->env.context, b->exclusions);
	b->exclusions = NULL;
	b->nexclusions = 0;
}

/* State what the keys are; all have to be of one key type. */
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

static uint64_t
total_bits(const BfBuilder *b)
{
	uint64_t	total = 0;
	int			i;

	for (i = 0; i < b->nlayers; i++)
		total += bf_geometry_bits(&b->layers[i].geometry);
	return total;
}

/*
 * Make room for one more layer.  Most filters have one, and there may be many
 * of them, so room is not taken for more than twice what there is.
 */
static BfStatus
make_layer_room(BfBuilder *b)
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

/* The order of layers in an image: smaller, laxer and emptier ones first. */
static int
compare_layers(const BfBuildLayer *x, const BfBuildLayer *y)
{
	if (x->geometry.capacity != y->geometry.capacity)
		return x->geometry.capacity < y->geometry.capacity ? -1 : 1;
	if (x->geometry.fpp != y->geometry.fpp)
		return x->geometry.fpp > y->geometry.fpp ? -1 : 1;
	if (x->geometry.nblocks != y->geometry.nblocks)
		return x->geometry.nblocks < y->geometry.nblocks ? -1 : 1;
	if (x->geometry.block_log2 != y->geometry.block_log2)
		return x->geometry.block_log2 < y->geometry.block_log2 ? -1 : 1;
	if (x->geometry.k != y->geometry.k)
		return x->geometry.k < y->geometry.k ? -1 : 1;
	if (x->geometry.generation != y->geometry.generation)
		return x->geometry.generation < y->geometry.generation ? -1 : 1;
	if (x->geometry.merged != y->geometry.merged)
		return y->geometry.merged ? -1 : 1;
	if (x->bits_set != y->bits_set)
		return x->bits_set < y->bits_set ? -1 : 1;
	return memcmp(x->bits, y->bits, bf_geometry_size(&x->geometry));
}

static void
sort_layers(BfBuilder *b)
{
	int			i,
				j;

	for (i = 1; i < b->nlayers; i++)
	{
		BfBuildLayer layer = b->layers[i];

		j = i;
		while (j > 0 && compare_layers(&b->layers[j - 1], &layer) > 0)
		{
			b->layers[j] = b->layers[j - 1];
			j--;
		}
		b->layers[j] = layer;
	}
}

/* Allocate a layer with no bit set. */
static BfStatus
make_layer(const BfBuilder *b, const BfGeometry *geometry, BfBuildLayer *layer)
{
	layer->geometry = *geometry;
	layer->bits_set = 0;
	layer->bits_full = bf_geometry_full(geometry);
	layer->memory = b->env.alloc(b->env.context,
								  bf_geometry_size(geometry) + BF_CACHE_LINE - 1);
	if (layer->memory == NULL)
		return BF_NO_MEMORY;
	layer->bits = (uint8_t *) (((uintptr_t) layer->memory +
								BF_CACHE_LINE - 1) &
							   ~(uintptr_t) (BF_CACHE_LINE - 1));
	memset(layer->bits, 0, bf_geometry_size(geometry));
	return BF_OK;
}

/* The layer that has room for what two layers of one generation contain. */
static BfGeometry
merged_geometry(const BfBuildLayer *x, const BfBuildLayer *y)
{
	BfGeometry		geometry = x->geometry;
	double		keys = bf_geometry_keys(&x->geometry, x->bits_set) +
		bf_geometry_keys(&y->geometry, y->bits_set);

	if (geometry.nblocks < y->geometry.nblocks)
		geometry.nblocks = y->geometry.nblocks;
	if (geometry.block_log2 > y->geometry.block_log2)
		geometry.block_log2 = y->geometry.block_log2;
	if (geometry.k > y->geometry.k)
		geometry.k = y->geometry.k;
	geometry.merged = true;
	geometry.capacity = keys < 1 ? 1 :
		keys > (double) BF_MAX_KEYS ? BF_MAX_KEYS : (uint64_t) keys;
	return geometry;
}

/*
 * Approximate share of bits not set in what becomes of a layer's blocks in a
 * merged layer.  Two bits become one where blocks get half the size.  Where
 * the numbers of blocks differ, most blocks receive two of the layer's.
 */
static double
share_unset(const BfBuildLayer *layer, const BfGeometry *merged)
{
	double		unset = 1 - (double) layer->bits_set /
		(double) bf_geometry_bits(&layer->geometry);
	int			log2;

	for (log2 = layer->geometry.block_log2; log2 > merged->block_log2; log2--)
		unset *= unset;
	return layer->geometry.nblocks == merged->nblocks ? unset : unset * unset;
}

static double
share_positive(double unset, unsigned k)
{
	double		result = 1;

	while (k-- > 0)
		result *= 1 - unset;
	return result;
}

/*
 * How much of the share of keys that are reported as absent remains when two
 * layers are merged: the more, the better.
 */
static double
merge_benefit(const BfBuildLayer *x, const BfBuildLayer *y)
{
	BfGeometry		geometry = merged_geometry(x, y);
	double		before = (1 - share_positive(share_unset(x, &x->geometry),
											 x->geometry.k)) *
		(1 - share_positive(share_unset(y, &y->geometry), y->geometry.k));
	double		after = 1 - share_positive(share_unset(x, &geometry) *
										   share_unset(y, &geometry), geometry.k);

	return before > 0 ? after / before : 1;
}

/*
 * Merge those two layers of one generation of which it costs the least.  All
 * their keys remain; the rate of the result is that of its bits.
 */
static BfStatus
merge_two_layers(BfBuilder *b)
{
	BfBuildLayer merged;
	BfBuildLayer *x;
	BfBuildLayer *y;
	BfGeometry		geometry;
	double		best = -1;
	int			best_i = 0;
	int			best_j = 0;
	int			i,
				j;

	for (i = 0; i < b->nlayers; i++)
	{
		for (j = i + 1; j < b->nlayers; j++)
		{
			double		benefit;

			if (b->layers[i].geometry.generation !=
				b->layers[j].geometry.generation)
				continue;
			benefit = merge_benefit(&b->layers[i], &b->layers[j]);
			if (benefit > best)
			{
				best = benefit;
				best_i = i;
				best_j = j;
			}
		}
	}

	x = &b->layers[best_i];
	y = &b->layers[best_j];
	geometry = merged_geometry(x, y);
	if (make_layer(b, &geometry, &merged) != BF_OK)
		return BF_NO_MEMORY;
	bf_bits_unite_into(&b->env, &geometry, merged.bits, &x->geometry, x->bits);
	bf_bits_unite_into(&b->env, &geometry, merged.bits, &y->geometry, y->bits);
	merged.bits_set = bf_bits_count(merged.bits, bf_geometry_size(&geometry));
	merged.geometry.fpp = fmax(bf_bits_fpp(&geometry, merged.bits),
							BF_LAYER_FPP_MIN);

	b->env.free(b->env.context, x->memory);
	b->env.free(b->env.context, y->memory);
	*x = merged;
	b->nlayers--;
	memmove(y, y + 1, (b->nlayers - best_j) * sizeof(BfBuildLayer));
	sort_layers(b);
	return BF_OK;
}

/* Append a layer with no bit set. */
static BfStatus
append_layer(BfBuilder *b, const BfGeometry *geometry)
{
	BfStatus	status = BF_OK;

	if (b->nlayers == BF_MAX_LAYERS)
		status = merge_two_layers(b);
	if (status != BF_OK)
		return status;
	if (bf_geometry_bits(geometry) > BF_MAX_BITS - total_bits(b))
		return BF_TOO_LARGE;
	if (make_layer_room(b) != BF_OK ||
		make_layer(b, geometry, &b->layers[b->nlayers]) != BF_OK)
		return BF_NO_MEMORY;
	b->nlayers++;
	return BF_OK;
}

/*
 * Append the successor of full layers: for as many keys as the filter was
 * made for, twice the capacity of the largest layer, or as many as are known
 * to come, whichever is most, at half the rate of the strictest.  Where the
 * limit of a filter leaves less, take what it leaves, unless that would be
 * hardly worth a layer.
 */
static BfStatus
grow(BfBuilder *b, uint32_t remaining)
{
	uint64_t	largest = 1;
	double		fpp = b->params.fpp;
	unsigned	generation = 0;
	uint64_t	left = BF_MAX_BITS - total_bits(b);
	uint64_t	wanted = b->params.expected;
	BfGeometry		geometry;
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
	if (wanted < 2 * largest)
		wanted = 2 * largest;
	if (wanted < remaining)
		wanted = remaining;
	if (bf_geometry_for(fpp, wanted, &geometry) != BF_OK ||
		bf_geometry_bits(&geometry) > left)
	{
		uint64_t	n = (uint64_t)
			((double) left / bf_bits_per_key(fpp) * 125 / 128);

		if (n < largest / 8 || n == 0)
			return BF_TOO_LARGE;
		if (bf_geometry_for(fpp, n, &geometry) != BF_OK)
			return BF_TOO_LARGE;
	}
	geometry.generation = (uint8_t)
		(generation < BF_MAX_GENERATION ? generation + 1 : generation);
	return append_layer(b, &geometry);
}

static bool
is_exclusion(const BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	return i < b->nexclusions && b->exclusions[i] == hash;
}

/* Keep a hash apart for which the bits say yes. */
BfStatus
bf_builder_add_exclusion(BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	if (i < b->nexclusions && b->exclusions[i] == hash)
		return BF_OK;
	if (b->nexclusions == BF_MAX_EXCLUSIONS)
		return BF_TOO_MANY_EXCLUSIONS;
	if (b->exclusions == NULL)
	{
		b->exclusions = b->env.alloc(b->env.context,
									  BF_MAX_EXCLUSIONS * sizeof(uint64_t));
		if (b->exclusions == NULL)
			return BF_NO_MEMORY;
	}
	memmove(b->exclusions + i + 1, b->exclusions + i,
			(b->nexclusions - i) * sizeof(uint64_t));
	b->exclusions[i] = hash;
	b->nexclusions++;
	return BF_OK;
}

/*
 * The same where there may be too many.  What does not fit is a false positive
 * again, which is no reason to fail.
 */
BfStatus
bf_builder_keep_exclusion(BfBuilder *b, uint64_t hash)
{
	BfStatus	status = bf_builder_add_exclusion(b, hash);

	return status == BF_TOO_MANY_EXCLUSIONS ? BF_OK : status;
}

static void
remove_exclusion(BfBuilder *b, uint64_t hash)
{
	size_t		i = bf_list_find(b->exclusions, b->nexclusions, hash);

	if (i == b->nexclusions || b->exclusions[i] != hash)
		return;
	b->nexclusions--;
	memmove(b->exclusions + i, b->exclusions + i + 1,
			(b->nexclusions - i) * sizeof(uint64_t));
}

static bool
layers_contain(const BfBuilder *b, uint64_t hash)
{
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		if (bf_bits_contain(&b->layers[i].geometry, b->layers[i].bits, hash))
			return true;
	}
	return false;
}

/* Add a hash that coming - 1 others are known to follow. */
static BfStatus
add_to_layers(BfBuilder *b, uint64_t hash, uint32_t remaining)
{
	BfBuildLayer *layer;
	BfStatus	status;
	int			i;

	if (b->nexclusions > 0)
		remove_exclusion(b, hash);

	/* A key that some layer has needs no room in another one. */
	if (b->nlayers > 1 && layers_contain(b, hash))
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
 * The successor of a number in an order of all numbers up to mask, which is
 * one less than a power of two, that looks random: a linear congruential
 * generator of full period (Knuth, TAOCP 2, 3.2.1.2; constants of Press et
 * al., Numerical Recipes).
 */
static uint32_t
next_scattered(uint32_t i, uint32_t mask)
{
	return (i * UINT32_C(1664525) + UINT32_C(1013904223)) & mask;
}

static bool
layer_has_room(const BfBuildLayer *layer, uint32_t n)
{
	return layer->bits_set + (uint64_t) n * layer->geometry.k <=
		layer->bits_full;
}

/*
 * Add all collected hashes to the layers, and forget them.  The list is
 * ascending, and neighbours in it lie in neighbouring blocks: added one after
 * the other, they would fill a layer without room for all of them from its
 * first block on, and ruin its rate there.  So they are added in another
 * order, unless one layer is going to take them all in any order.
 */
static BfStatus
add_list_to_layers(BfBuilder *b)
{
	uint32_t	n = b->nhashes;
	bool		scattered = !layer_has_room(&b->layers[b->nlayers - 1], n);
	uint32_t	mask = 0;
	uint32_t	at = 0;
	uint32_t	i;

	while (mask < n)
		mask = mask << 1 | 1;
	for (i = 0; i < n; i++)
	{
		BfStatus	status = add_to_layers(b, b->hashes[at], n - i);

		bf_check_interrupts(&b->env, i);
		if (status != BF_OK)
			return status;
		if (scattered)
		{
			do
			{
				at = next_scattered(at, mask);
			} while (at >= n && i + 1 < n);
		}
		else
			at++;
	}
	free_hashes(b);
	return BF_OK;
}

static BfStatus
convert_to_dense(BfBuilder *b)
{
	BfStatus	status = BF_OK;
	BfGeometry		geometry;

	if (b->compact_at_end && b->params.expected == 0)
		bf_geometry_to_fold(b->params.fpp, &geometry);
	else
		status = bf_geometry_for(b->params.fpp,
							  b->params.expected > 0 ? b->params.expected :
							  BF_FIRST_UNSIZED_LAYER, &geometry);
	if (status == BF_OK)
		status = append_layer(b, &geometry);
	if (status == BF_OK)
		status = add_list_to_layers(b);
	return status;
}

/* Sort the hashes and drop duplicates. */
static BfStatus
sort_hashes(BfBuilder *b)
{
	size_t		ntail = b->nhashes - b->nsorted;

	if (ntail > 0)
	{
		uint64_t   *tail = b->hashes + b->nsorted;

		bf_list_sort(&b->env, tail, ntail);
		ntail = bf_list_dedup(tail, ntail);
		b->nhashes = b->nsorted + (uint32_t) ntail;
	}
	if (ntail > 0 && b->nsorted > 0)
	{
		uint64_t   *copy = b->env.alloc(b->env.context,
										 ntail * sizeof(uint64_t));

		if (copy == NULL)
			return BF_NO_MEMORY;
		memcpy(copy, b->hashes + b->nsorted, ntail * sizeof(uint64_t));
		bf_list_merge(b->hashes, b->nsorted, copy, ntail);
		b->env.free(b->env.context, copy);
		b->nhashes = (uint32_t) bf_list_dedup(b->hashes, b->nhashes);
	}
	b->nsorted = b->nhashes;

	/* Only now, since a merge that is left would lose hashes. */
	if (ntail > 0)
		b->env.check_interrupts(b->env.context);
	return BF_OK;
}

/* Sort the hashes, drop duplicates; too many of them become dense. */
static BfStatus
sort_and_convert(BfBuilder *b)
{
	BfStatus	status = sort_hashes(b);

	if (status == BF_OK && b->nhashes > b->max_hashes)
		status = convert_to_dense(b);
	return status;
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
 * Hashes that may be collected before the list is settled: a quarter more
 * than the sparse form may hold, so that few duplicates do not cause many
 * sorts.  The first layer takes all of them, so it is the same one, however
 * many of them there are when it comes.
 */
static uint32_t
pending_limit(const BfBuilder *b)
{
	return b->max_hashes + b->max_hashes / 4 + INITIAL_ROOM;
}

/*
 * Allocate room for n more hashes: half as much again as there is, but no
 * more than may be collected if that is enough.
 */
static BfStatus
make_room(BfBuilder *b, uint32_t n)
{
	uint32_t	max = pending_limit(b);
	uint32_t	room = b->nhashes / 2 > INITIAL_ROOM ?
		b->nhashes + b->nhashes / 2 : b->nhashes + INITIAL_ROOM;

	if (room > max)
		room = max;
	if (room < b->nhashes + n)
		room = b->nhashes + n;
	return enlarge(b, room);
}

/*
 * Find room for n more hashes, by dropping duplicates if that will do; too
 * many distinct ones become dense.
 */
BfStatus
bf_builder_reserve(BfBuilder *b, uint32_t n)
{
	BfStatus	status;

	if (b->nlayers > 0 || b->room - b->nhashes >= n)
		return BF_OK;
	status = sort_and_convert(b);
	if (status != BF_OK || b->nlayers > 0 || b->room - b->nhashes >= n)
		return status;
	return make_room(b, n);
}

BfStatus
bf_builder_add(BfBuilder *b, uint64_t hash)
{
	BfStatus	status = bf_builder_reserve(b, 1);

	if (status != BF_OK)
		return status;
	if (b->nlayers > 0)
		return add_to_layers(b, hash, 1);
	b->hashes[b->nhashes++] = hash;
	return BF_OK;
}

/*
 * Prepare for adding a hash after some others: fetching what it needs from
 * memory takes as long as adding several.
 */
void
bf_builder_prefetch(const BfBuilder *b, uint64_t hash)
{
	if (b->nlayers > 0)
		bf_bits_prefetch(&b->layers[b->nlayers - 1].geometry,
						 b->layers[b->nlayers - 1].bits, hash);
}

/*
 * Whether a hash is in the filter so far.  Hashes that came since the last
 * sort are looked at one by one.  In a loop that adds and asks in turns, this
 * makes t^2 / 2 looks until there are t of them; sorting them in costs some
 * passes over all hashes and is due when the looks have cost as much.
 */
bool
bf_builder_contains(BfBuilder *b, uint64_t hash)
{
	uint64_t	ntail = b->nhashes - b->nsorted;
	size_t		i;

	if (b->nlayers > 0)
		return layers_contain(b, hash) && !is_exclusion(b, hash);

	/* Without memory to sort, the search is just slower. */
	if (ntail * ntail > 8 * ((uint64_t) b->nhashes + 64) &&
		b->nhashes <= b->max_hashes)
		(void) sort_and_convert(b);

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

/* As bf_cardinality, provided that all hashes added were new. */
double
bf_builder_cardinality(const BfBuilder *b)
{
	BfView		view;
	int			i;

	view.params = b->params;
	view.nhashes = b->nlayers == 0 ? b->nhashes : 0;
	view.nlayers = b->nlayers;
	for (i = 0; i < b->nlayers; i++)
	{
		view.layers[i].geometry = b->layers[i].geometry;
		view.layers[i].bits_set = b->layers[i].bits_set;
	}
	return bf_cardinality(&view);
}

/*
 * Whether n hashes, all of them new, can certainly be added without a change
 * of form: the filter neither becomes dense nor gets another layer.  Adding
 * them then fails at most for lack of memory, and leaves a sound filter if it
 * does.
 */
bool
bf_builder_has_room(const BfBuilder *b, uint32_t n)
{
	int			i;

	if (b->nlayers == 0)
		return b->nhashes <= b->max_hashes && n <= b->max_hashes - b->nhashes;

	for (i = 0; i < b->nlayers; i++)
	{
		if (layer_has_room(&b->layers[i], n))
			return true;
	}
	return false;
}

/*
 * Record that the key of this hash is known not to be in the filter, though
 * it may test positive.  The list of the sparse form is exact: what is in it
 * was added.
 */
BfStatus
bf_builder_exclude(BfBuilder *b, uint64_t hash)
{
	if (b->nlayers == 0)
	{
		BfStatus	status = sort_and_convert(b);
		size_t		i = bf_list_find(b->hashes, b->nhashes, hash);

		if (status != BF_OK)
			return status;
		if (b->nlayers == 0)
			return i < b->nhashes && b->hashes[i] == hash ?
				BF_IS_MEMBER : BF_OK;
	}
	return layers_contain(b, hash) ?
		bf_builder_add_exclusion(b, hash) : BF_OK;
}

/*
 * Take over the exclusions of another dense filter, before its layers.  One
 * that the other side contains may be a real member there: only a key that
 * neither contains is known to be in none of them.
 */
static BfStatus
merge_exclusions(BfBuilder *b, const BfView *view)
{
	uint32_t	nmine = b->nexclusions;
	uint32_t	i;
	BfStatus	status = BF_OK;

	for (i = nmine; i > 0; i--)
	{
		uint64_t	hash = b->exclusions[i - 1];

		if (bf_contains(view, hash))
			remove_exclusion(b, hash);
	}
	for (i = 0; status == BF_OK && i < view->nexclusions; i++)
	{
		uint64_t	hash = bf_load64(view->exclusions + 8 * (size_t) i);

		if (!layers_contain(b, hash) || is_exclusion(b, hash))
			status = bf_builder_keep_exclusion(b, hash);
	}
	return status;
}

/*
 * Unite a layer with the one of equal geometry that it adds the fewest bits to,
 * if the result stays within the fill of its design; else put it beside.
 */
static BfStatus
merge_layer(BfBuilder *b, const BfViewLayer *other)
{
	size_t		size = bf_geometry_size(&other->geometry);
	BfBuildLayer *best = NULL;
	uint64_t	best_set = 0;
	BfStatus	status = BF_OK;
	int			i;

	for (i = 0; i < b->nlayers; i++)
	{
		BfBuildLayer *layer = &b->layers[i];
		uint64_t	set;

		if (!bf_geometry_equal(&layer->geometry, &other->geometry))
			continue;
		set = bf_bits_count_union(&b->env, layer->bits, other->bits, size);
		/* A layer within another one is united with it however full. */
		if (set > layer->bits_full &&
			set > layer->bits_set && set > other->bits_set)
			continue;
		if (best == NULL ||
			set - layer->bits_set < best_set - best->bits_set)
		{
			best = layer;
			best_set = set;
		}
	}

	if (best == NULL)
	{
		status = append_layer(b, &other->geometry);
		if (status != BF_OK)
			return status;
		best = &b->layers[b->nlayers - 1];
		best_set = other->bits_set;
	}
	bf_bits_unite(&b->env, best->bits, other->bits, size);
	best->bits_set = best_set;
	return BF_OK;
}

/*
 * Turn dense now if a sort would.  This is put off as long as it makes no
 * difference.
 */
static BfStatus
convert_if_due(BfBuilder *b)
{
	return b->nlayers == 0 && b->nhashes > b->max_hashes ?
		sort_and_convert(b) : BF_OK;
}

/*
 * Take over the parameters of another filter.  Of different ones, a result
 * records the smaller rate and the larger number of expected keys.
 */
BfStatus
bf_builder_join_params(BfBuilder *b, const BfParams *params)
{
	BfStatus	status;

	if (b->params.seed != params->seed)
		return BF_SEED_MISMATCH;
	status = bf_builder_set_key_type(b, &params->key_type);
	if (status != BF_OK)
		return status;
	if (b->params.fpp > params->fpp || b->params.expected < params->expected)
	{
		status = convert_if_due(b);
		if (status != BF_OK)
			return status;
		if (b->params.fpp > params->fpp)
			b->params.fpp = params->fpp;
		if (b->params.expected < params->expected)
			b->params.expected = params->expected;
		apply_params(b);
	}
	return BF_OK;
}

/* Take over the hashes of a sparse filter, all at once. */
static BfStatus
merge_hashes(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;
	uint32_t	i;

	if (b->nlayers > 0)
		status = enlarge(b, view->nhashes);
	else if (b->room - b->nhashes < view->nhashes)
	{
		status = sort_hashes(b);
		if (status == BF_OK && b->room - b->nhashes < view->nhashes)
			status = make_room(b, view->nhashes);
	}
	if (status != BF_OK)
		return status;
	for (i = 0; i < view->nhashes; i++)
		b->hashes[b->nhashes++] = bf_load64(view->hashes + 8 * (size_t) i);
	return b->nlayers > 0 ? add_list_to_layers(b) : BF_OK;
}

/*
 * Take in the layers of a dense filter.  Their order is kept where there are
 * no others: then the image that is written is the one that came.
 */
static BfStatus
merge_layers(BfBuilder *b, const BfView *view)
{
	bool		had_layers = b->nlayers > 0;
	BfStatus	status = merge_exclusions(b, view);
	int			i;

	for (i = 0; status == BF_OK && i < view->nlayers; i++)
		status = merge_layer(b, &view->layers[i]);
	if (status == BF_OK)
		status = sort_hashes(b);
	if (status != BF_OK)
		return status;
	if (had_layers)
		sort_layers(b);
	return add_list_to_layers(b);
}

/*
 * Take in all keys of another filter.  Where a list that has become too long
 * can wait, it does: not for layers, not for other parameters, and not for
 * more hashes than the first layer is sure to take.
 */
BfStatus
bf_builder_merge(BfBuilder *b, const BfView *view)
{
	BfStatus	status = BF_OK;

	if (bf_is_neutral(view))
		return BF_OK;
	if (b->nlayers == 0 && b->nhashes == 0 &&
		bf_params_are_neutral(&b->params))
	{
		b->params = view->params;
		apply_params(b);
	}
	if (view->nlayers > 0 ||
		(uint64_t) b->nhashes + view->nhashes > pending_limit(b))
		status = convert_if_due(b);
	if (status == BF_OK)
		status = bf_builder_join_params(b, &view->params);
	if (status == BF_OK && view->nlayers > 0)
		return merge_layers(b, view);
	if (status == BF_OK && view->nhashes > 0)
		status = merge_hashes(b, view);
	return status;
}

/*
 * Fold a layer as far as it goes, and take it in.  With the bits that are
 * left, the number of its keys is computed again: it is not quite the same.
 */
static BfStatus
merge_folded(BfBuilder *b, const BfBuildLayer *layer)
{
	BfViewLayer folded = {layer->geometry, layer->bits_set, 0, layer->bits};
	uint8_t    *bits = NULL;
	BfGeometry		geometry;
	BfStatus	status;

	while (bf_geometry_fold(&folded.geometry, folded.bits_set, &geometry))
	{
		uint8_t    *smaller = b->env.alloc(b->env.context,
											bf_geometry_size(&geometry));

		if (smaller != NULL)
			bf_bits_fold(&b->env, smaller, folded.bits,
						 folded.geometry.nblocks,
						 folded.geometry.nblocks / geometry.nblocks,
						 (size_t) 1 << (geometry.block_log2 - 3));
		if (bits != NULL)
			b->env.free(b->env.context, bits);
		if (smaller == NULL)
			return BF_NO_MEMORY;
		bits = smaller;
		folded.geometry = geometry;
		folded.bits_set = bf_bits_count(bits, bf_geometry_size(&geometry));
		folded.bits = bits;
	}

	status = merge_layer(b, &folded);
	if (bits != NULL)
		b->env.free(b->env.context, bits);
	return status;
}

static BfStatus
fold_layers(BfBuilder *to, const BfBuilder *b)
{
	BfStatus	status = BF_OK;
	uint32_t	i;

	for (i = 0; status == BF_OK && i < (uint32_t) b->nlayers; i++)
		status = merge_folded(to, &b->layers[i]);
	for (i = 0; status == BF_OK && i < b->nexclusions; i++)
		status = bf_builder_add_exclusion(to, b->exclusions[i]);
	if (status == BF_OK)
		sort_layers(to);
	return status;
}

/* Turn a settled list into a layer for just its number of hashes. */
static BfStatus
pack_hashes(BfBuilder *to, const BfBuilder *b, const BfGeometry *geometry)
{
	BfStatus	status = append_layer(to, geometry);
	uint32_t	i;

	for (i = 0; status == BF_OK && i < b->nhashes; i++)
	{
		bf_check_interrupts(&b->env, i);
		to->layers[0].bits_set += bf_bits_add(geometry, to->layers[0].bits,
											  b->hashes[i]);
	}
	return status;
}

/*
 * Build the smallest filter that keeps the rate, if it is not b itself:
 * hashes go into a layer for just their number if that is smaller than they
 * are, and each layer is folded to what it holds.  A sized filter of one
 * layer is then one that was asked for with the smaller size, to the byte.
 * A filter that was made so cannot be made smaller again.  More keys may
 * come to b.
 */
BfStatus
bf_builder_compact(BfBuilder *b, BfBuilder *smaller, bool *found)
{
	BfParams	params = b->params;
	BfGeometry		geometry;
	BfStatus	status = BF_OK;
	int			i;

	if (b->nlayers == 0)
		status = sort_and_convert(b);
	*found = false;
	if (status != BF_OK)
		return status;

	if (b->nlayers == 0)
		*found = b->nhashes > 0 &&
			bf_geometry_for(params.fpp, b->nhashes, &geometry) == BF_OK &&
			dense_size(&params, &geometry) < sparse_size(&params, b->nhashes);
	for (i = 0; i < b->nlayers && !*found; i++)
		*found = bf_geometry_fold(&b->layers[i].geometry, b->layers[i].bits_set,
							   &geometry);
	if (!*found)
		return BF_OK;

	bf_builder_init(smaller, &b->env, &params);
	status = b->nlayers > 0 ? fold_layers(smaller, b) :
		pack_hashes(smaller, b, &geometry);
	if (status != BF_OK)
		bf_builder_free(smaller);
	else if (params.expected > 0 && b->nlayers == 0)
		smaller->params.expected = b->nhashes;
	else if (params.expected > 0 && b->nlayers == 1)
		smaller->params.expected = smaller->layers[0].geometry.capacity;
	return status;
}

/*
 * Settle what is to be written, and tell the size of its image.  This changes
 * nothing that could be told from outside: more keys may follow.
 */
BfStatus
bf_builder_plan(BfBuilder *b, size_t *size)
{
	BfStatus	status = BF_OK;
	int			i;

	if (b->nlayers == 0)
		status = sort_and_convert(b);
	if (status != BF_OK)
		return status;

	if (b->nlayers == 0)
		*size = sparse_size(&b->params, b->nhashes);
	else
	{
		*size = bf_header_size(&b->params, b->nlayers) +
			8 * (size_t) b->nexclusions;
		for (i = 0; i < b->nlayers; i++)
			*size += bf_geometry_size(&b->layers[i].geometry);
	}
	return BF_OK;
}

static void
write_list(uint8_t *to, const uint64_t *list, uint32_t n)
{
	uint32_t	i;

	for (i = 0; i < n; i++)
		bf_store64(to + 8 * (size_t) i, list[i]);
}

/* Write the image: as many bytes as were planned. */
void
bf_builder_write(const BfBuilder *b, uint8_t *image)
{
	uint8_t    *entry;
	uint8_t    *content = image + bf_header_size(&b->params, b->nlayers);
	int			i;

	entry = bf_write_header(image, &b->params, b->nhashes, b->nlayers,
							b->nexclusions);
	for (i = 0; i < b->nlayers; i++)
	{
		const BfBuildLayer *layer = &b->layers[i];
		size_t		size = bf_geometry_size(&layer->geometry);

		entry = bf_write_layer(entry, &layer->geometry, layer->bits_set);
		bf_bits_copy(&b->env, content, layer->bits, size);
		content += size;
	}
	if (b->nlayers == 0)
		write_list(content, b->hashes, b->nhashes);
	else
		write_list(content, b->exclusions, b->nexclusions);
}
