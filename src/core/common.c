/*-------------------------------------------------------------------------
 *
 * common.c
 *	  The number of keys that several filters have in common.
 *
 * If one of the filters is sparse, its hashes are looked up in the others.
 * Otherwise each has to have one layer, with blocks of the same size and the
 * same positions in them; their numbers of blocks may differ.  Then inclusion
 * and exclusion is used.  The bits that are set in all layers tell much less,
 * since most of them are set by different keys.
 *
 * The blocks of layers of unlike sizes divide the range of hashes into pieces.
 * In a piece, each layer has one block, and the keys in any of these blocks
 * follow from the numbers of keys that the unions of the filters have: where a
 * hash is in the blocks of a set S of them, there are as many keys as in the
 * union of S.  With Poisson loads, a bit is unset in all of these blocks with
 * probability exp(-theta * keys), where theta is what one key adds.  So
 * the bits that are unset tell the keys in the union of a set, once those of
 * all its subsets are known.  If all layers have the same size, all pieces are
 * alike, and this is the number of keys in their union by rate.c.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bytes.h"
#include "internal.h"

#define NSETS			(1 << BF_MAX_COMMON)

/* Newton's method ends after a few steps. */
#define MAX_STEPS		50

/* Sets of filters are masks of their numbers. */
typedef struct Counts
{
	const BfInterrupts *interrupts;
	int			n;
	const BfLayer *layers[BF_MAX_COMMON];
	double		theta;
	double		keys[NSETS];	/* in any filter of a set */
} Counts;

/* A piece and its blocks, in shares of all hashes. */
typedef struct Piece
{
	uint32_t	block[BF_MAX_COMMON];
	double		end[BF_MAX_COMMON]; /* of the block */
	double		before[BF_MAX_COMMON];	/* the block begins before the piece */
	double		after[BF_MAX_COMMON];	/* it ends after the piece */
	double		width;
	double		next;			/* where it ends */
} Piece;

/* Has a set an odd number of filters? */
static bool
is_odd(unsigned set)
{
	bool		odd = false;

	for (; set > 0; set &= set - 1)
		odd = !odd;
	return odd;
}

/*
 * Go to the piece that begins where the last one ended; the first one begins at
 * 0.  Returns false after the last one.  Ends of blocks that are equal are equal
 * as numbers, and those that are not differ by more than 2^-46, because a layer
 * has at most 2^23 blocks.
 */
static bool
next_piece(const Counts *counts, unsigned set, Piece *piece)
{
	double		from = piece->next;
	int			i;

	if (from >= 1)
		return false;
	piece->next = 1;
	for (i = 0; i < counts->n; i++)
	{
		double		nblocks = counts->layers[i]->geometry.nblocks;

		if (!(set >> i & 1))
			continue;
		if (from == 0)
			piece->block[i] = 0;
		else if (piece->end[i] == from)
			piece->block[i]++;
		piece->before[i] = from - piece->block[i] / nblocks;
		piece->end[i] = (piece->block[i] + 1.0) / nblocks;
		piece->next = fmin(piece->next, piece->end[i]);
	}
	for (i = 0; i < counts->n; i++)
		piece->after[i] = piece->end[i] - piece->next;
	piece->width = piece->next - from;
	return true;
}

/* Do all layers of a set have the same number of blocks? */
static bool
same_size(const Counts *counts, unsigned set)
{
	uint32_t	nblocks = 0;
	int			i;

	for (i = 0; i < counts->n; i++)
	{
		if (!(set >> i & 1))
			continue;
		if (nblocks != 0 && counts->layers[i]->geometry.nblocks != nblocks)
			return false;
		nblocks = counts->layers[i]->geometry.nblocks;
	}
	return true;
}

/*
 * The keys on one side of a piece that are in its blocks, which reach so far
 * there: the farther away, the fewer of them there are.
 */
static double
keys_beside(const Counts *counts, unsigned set, const double *reach)
{
	double		keys = 0;
	double		at = 0;
	int			i;

	while (set > 0)
	{
		int			nearest = -1;

		for (i = 0; i < counts->n; i++)
		{
			if ((set >> i & 1) && (nearest < 0 || reach[i] < reach[nearest]))
				nearest = i;
		}
		keys += (reach[nearest] - at) * counts->keys[set];
		at = reach[nearest];
		set &= ~(1U << nearest);
	}
	return keys;
}

/* The keys in the blocks of a piece. */
static double
keys_in_piece(const Counts *counts, const Piece *piece, unsigned set)
{
	return piece->width * counts->keys[set] +
		keys_beside(counts, set, piece->before) +
		keys_beside(counts, set, piece->after);
}

/*
 * The share of bits that is expected to be unset in all blocks of a piece, on
 * average over the pieces, and in *slope by how much it changes with
 * theta times the keys in the union of the set.
 */
static double
expected_unset(const Counts *counts, unsigned set, double *slope)
{
	bool		alike = same_size(counts, set);
	double		unset = 0;
	Piece		piece = {.next = 0};

	*slope = 0;
	while (next_piece(counts, set, &piece))
	{
		double		share = exp(-counts->theta *
								keys_in_piece(counts, &piece, set));

		bf_check_interrupts(counts->interrupts);
		if (alike)
		{
			*slope = share * piece.width;
			return share;
		}
		unset += share * piece.width;
		*slope += share * piece.width * piece.width;
	}
	return unset;
}

/* The same share, as it is. */
static double
observed_unset(const Counts *counts, unsigned set)
{
	uint8_t		bits[BF_MAX_BLOCK_SIZE];
	double		unset = 0;
	double		pieces = 0;
	Piece		piece = {.next = 0};

	while (next_piece(counts, set, &piece))
	{
		bool		first = true;
		size_t		size = 0;
		uint64_t	bits_set = 0;
		int			i;

		for (i = 0; i < counts->n; i++)
		{
			const BfLayer *layer = counts->layers[i];
			const uint8_t *block = layer->bits;

			if (!(set >> i & 1))
				continue;
			size = bf_blocks_size(&layer->geometry, 1);
			block += size * piece.block[i];
			bits_set = bf_bitmap_combine(counts->interrupts, false, bits,
										 first ? block : bits, block, size);
			first = false;
		}
		unset += piece.width * (1 - (double) bits_set / (8.0 * size));
		pieces += 8.0 * size;
	}

	/* Without an unset bit there would be no end of keys. */
	return fmax(unset, 0.5 / pieces);
}

/* Find the keys in the union of a set by those in the unions of its subsets. */
static void
count_union(Counts *counts, unsigned set)
{
	double		observed = log(observed_unset(counts, set));
	double	   *keys = &counts->keys[set];
	int			step;

	/* They are not fewer than those of a subset. */
	*keys = counts->keys[set & (set - 1)];
	for (step = 0; step < MAX_STEPS; step++)
	{
		double		slope;
		double		unset = expected_unset(counts, set, &slope);
		double		missing = (log(unset) - observed) * unset /
			(counts->theta * slope);

		*keys += missing;
		if (fabs(missing) <= 1e-6 * (1 + fabs(*keys)))
			break;
	}
}

/* Count the keys that filters of one layer each have in common. */
static BfStatus
count_in_layers(const BfInterrupts *interrupts, int n,
				const BfView *const *filters, double *common)
{
	Counts		counts = {.interrupts = interrupts};
	const BfLayer *smallest = NULL;
	unsigned	all = (1U << n) - 1;
	double		most = HUGE_VAL;
	unsigned	set;
	int			i;

	counts.n = n;
	for (i = 0; i < n; i++)
	{
		const BfLayer *layer = &filters[i]->layers[0];
		const BfGeometry *geometry = &layer->geometry;
		const BfGeometry *first = &filters[0]->layers[0].geometry;

		if (smallest == NULL ||
			geometry->nblocks < smallest->geometry.nblocks)
			smallest = layer;
		if (filters[i]->nlayers > 1 ||
			geometry->block_log2 != first->block_log2 ||
			geometry->k != first->k ||
			geometry->generation != first->generation)
			return BF_GEOMETRY_MISMATCH;
		counts.layers[i] = layer;
		counts.keys[1U << i] = bf_cardinality(filters[i]);
		most = fmin(most, counts.keys[1U << i]);
	}

	/* What one key adds is exact for layers of the same size. */
	counts.theta = smallest->geometry.nblocks *
		-log1p(-1 / (double) bf_geometry_bits(&smallest->geometry)) /
		bf_expected_keys(&smallest->geometry, 1);
	*common = 0;
	for (set = 1; set <= all; set++)
	{
		if ((set & (set - 1)) != 0)
			count_union(&counts, set);
		*common += is_odd(set) ? counts.keys[set] : -counts.keys[set];
	}
	*common = fmin(fmax(*common, 0), most);
	return BF_OK;
}

/*
 * Count the hashes of a list that the other filters contain, less the false
 * positives that are to be expected: a hash counts as the product over the
 * filters of (1 - fpp) / (1 - fpp) = 1 if it is found, else of -fpp / (1 - fpp),
 * the mean of which is 1 for a member and 0 for any other.
 */
static double
count_in_list(const BfInterrupts *interrupts, int n,
			  const BfView *const *filters, const BfView *list)
{
	double		fpp[BF_MAX_COMMON];
	double		common = 0;
	double		hits = 0;
	uint32_t	i;
	int			j;

	for (j = 0; j < n; j++)
		fpp[j] = filters[j]->nlayers > 0 ? bf_current_fpp(filters[j]) : 0;
	for (i = 0; i < list->nhashes; i++)
	{
		uint64_t	hash = bf_load64(list->hashes + 8 * (size_t) i);
		double		weight = 1;
		bool		hit = true;

		for (j = 0; j < n; j++)
		{
			if (filters[j] == list)
				continue;
			bf_check_interrupts_at(interrupts, i, filters[j]->nlayers);
			if (bf_contains(filters[j], hash))
				continue;
			hit = false;
			weight *= fpp[j] < 1 ? -fpp[j] / (1 - fpp[j]) : 0;
		}
		common += weight;
		hits += hit;
	}
	return fmin(fmax(common, 0), hits);
}

/*
 * Estimate the number of keys that n filters, 1 to BF_MAX_COMMON, have in
 * common; it is exact if all are sparse.  Nothing is allocated.
 *
 * Filters without keys have none in common with any, whatever their parameters
 * are.  Otherwise BF_SEED_MISMATCH and BF_KEY_TYPE_MISMATCH as of unions, with the
 * numbers of two such filters in pair; BF_IS_INTERSECTION if one is; and
 * BF_GEOMETRY_MISMATCH if all are dense, but their bits do not correspond.
 */
BfStatus
bf_common_keys(const BfInterrupts *interrupts, int n,
			   const BfView *const *filters, double *common, int pair[2])
{
	const BfView *list = NULL;
	const BfKeyType *key_type = &filters[0]->params.key_type;
	bool		empty = false;
	int			i;

	*common = 0;
	pair[0] = 0;
	for (i = 0; i < n; i++)
	{
		const BfView *filter = filters[i];

		pair[1] = i;
		if (key_type->code == BF_KEY_NONE)
		{
			key_type = &filter->params.key_type;
			pair[0] = i;
		}
		else if (filter->params.key_type.code != BF_KEY_NONE &&
				 !bf_key_type_equal(&filter->params.key_type, key_type))
			return BF_KEY_TYPE_MISMATCH;
		if (filter->nlayers == 0 &&
			(list == NULL || filter->nhashes < list->nhashes))
			list = filter;
		empty |= bf_is_empty(filter);
	}
	if (empty)
		return BF_OK;

	pair[0] = 0;
	for (i = 0; i < n; i++)
	{
		pair[1] = i;
		if (filters[i]->params.seed != filters[0]->params.seed)
			return BF_SEED_MISMATCH;
		if (bf_is_intersection(filters[i]))
			return BF_IS_INTERSECTION;
	}
	if (list == NULL)
		return count_in_layers(interrupts, n, filters, common);
	*common = count_in_list(interrupts, n, filters, list);
	return BF_OK;
}
