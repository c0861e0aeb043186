/*-------------------------------------------------------------------------
 *
 * sizing.c
 *	  How many bits a rate and a number of keys need, and the layer that has
 *	  them.
 *
 * The design of a rate is a block size, a k and a number of bits per key.  It
 * depends on the rate and on whether the layer is on pages.  A layer has room
 * for its keys and headroom for the deviation of what they set; a layer that is
 * filled to bf_geometry_full has its rate.
 *
 * The results are part of the format, because equal parameters and keys have
 * to give equal bytes everywhere: see section 7 of doc/FORMAT.md.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"

/*
 * A block size is good enough if it needs no more than this factor over the
 * standard filter.  With the rounding of the number of blocks, below 1/128, a
 * layer stays within 1.06 times the standard bits.
 */
#define BLOCKING_COST	1.05

/* The least that one could need. */
#define LEAST_COST		0.99

/*
 * Bits per key and deviations are multiples of 1/1024, so that different libm
 * implementations compute the same layout.
 */
#define BITS_GRID		1024.0

/*
 * Significant bits of a number of blocks.  The rest of it is a power of two,
 * so that large layers have many divisors to fold by.
 */
#define NBLOCKS_DIGITS	8

/*
 * Headroom, in standard deviations of the number of set bits, so that a layer
 * is not declared full before its capacity is reached.
 */
#define HEADROOM		4

/*
 * For a block size, k from so much below that of a standard filter to 1 above
 * it is tried: blocks want fewer hash functions.
 */
#define FEWER_HASHES	7

/*
 * On pages, each byte that a key changes is logged, with the four bytes of a
 * place.  So they get the fewest hash functions with which the bits per key
 * stay within this factor over the best number.
 */
#define PAGED_COST		1.15

/*
 * Designs that are remembered: a filter may have many layers of unlike rates.
 * The core is used from one thread.
 */
#define NCACHED			64

typedef struct Design
{
	double		fpp;
	double		bits_per_key;
	double		deviation;		/* of sqrt(n) keys, in keys */
	uint8_t		block_log2;
	uint8_t		k;
	bool		paged;
} Design;

/*
 * Bits per key of a standard (unblocked) filter with k hash functions: the rate
 * is (1 - e^(-kn/m))^k (Mitzenmacher, Upfal: Probability and Computing, 5.5.3).
 */
static double
standard_bits(double fpp, double k)
{
	return -k / log1p(-pow(fpp, 1 / k));
}

/* Its best k at this rate, BF_LAYER_FPP_MIN to BF_FPP_MAX. */
unsigned
bf_standard_hashes(double fpp)
{
	double		k = fmax(1, floor(-log2(fpp)));

	return (unsigned) (standard_bits(fpp, k + 1) < standard_bits(fpp, k) ?
					   k + 1 : k);
}

/* Bits per key with that k. */
double
bf_standard_bits_per_key(double fpp)
{
	return standard_bits(fpp, bf_standard_hashes(fpp));
}

/*
 * The fewest bits per key, a multiple of 1 / BITS_GRID between low and high,
 * with which k bits in blocks of this size keep the rate; 0 if high misses
 * it.
 */
static double
fewest_bits(double fpp, unsigned block_log2, unsigned k,
			double low, double high)
{
	double		B = (double) (1 << block_log2);
	double		below = floor(low * BITS_GRID) - 1;
	double		enough = floor(high * BITS_GRID);

	if (bf_mean_fpp(block_log2, k, B * BITS_GRID / enough, 0, 0) > fpp)
		return 0;
	while (enough - below > 1)
	{
		double		middle = floor((below + enough) / 2);

		if (bf_mean_fpp(block_log2, k, B * BITS_GRID / middle, 0, 0) > fpp)
			below = middle;
		else
			enough = middle;
	}
	return enough / BITS_GRID;
}

/* Change a design to the fewest hash functions that PAGED_COST allows. */
static void
reduce_hashes(double fpp, Design *design)
{
	double		best = design->bits_per_key;
	unsigned	k;

	for (k = 1; k < design->k; k++)
	{
		double		bits = fewest_bits(fpp, design->block_log2, k, best,
									   best * PAGED_COST);

		if (bits > 0)
		{
			design->bits_per_key = bits;
			design->k = (uint8_t) k;
		}
	}
}

/*
 * Find the design of a rate: the smallest block whose bits per key stay
 * within BLOCKING_COST of the standard filter, with its best k.
 */
static void
find_design(double fpp, bool paged, Design *design)
{
	double		standard = bf_standard_bits_per_key(fpp);
	unsigned	standard_k = bf_standard_hashes(fpp);
	unsigned	min_k = standard_k > FEWER_HASHES ?
		standard_k - FEWER_HASHES : 1;
	unsigned	block_log2;

	design->bits_per_key = 0;
	for (block_log2 = BF_MIN_BLOCK_LOG2;
		 block_log2 <= BF_MAX_BLOCK_LOG2 && design->bits_per_key == 0;
		 block_log2++)
	{
		/* The largest block is taken whatever it needs. */
		double		high = standard *
			(block_log2 < BF_MAX_BLOCK_LOG2 ? BLOCKING_COST : 2);
		unsigned	k;

		for (k = min_k; k <= standard_k + 1 && k <= BF_MAX_HASHES; k++)
		{
			double		bits = fewest_bits(fpp, block_log2, k,
										   standard * LEAST_COST, high);

			if (bits > 0)
			{
				design->bits_per_key = high = bits;
				design->block_log2 = (uint8_t) block_log2;
				design->k = (uint8_t) k;
			}
		}
	}
	if (paged)
		reduce_hashes(fpp, design);
	design->fpp = fpp;
	design->paged = paged;

	/* n keys in their bits; one more of them sets k e^-a bits */
	design->deviation =
		ceil(BITS_GRID * bf_deviation(design->bits_per_key, design->k, 1) /
			 (design->k * exp(-design->k / design->bits_per_key))) / BITS_GRID;
}

/*
 * The design of a rate.  Finding one takes a fraction of a millisecond, which
 * is too much for each small filter, so the last few are remembered.  The
 * result is valid until NCACHED others were found.
 */
static const Design *
design_for(double fpp, bool paged)
{
	static Design cache[NCACHED];
	static unsigned next = 0;
	Design	   *design;
	size_t		i;

	for (i = 0; i < NCACHED; i++)
	{
		if (cache[i].fpp == fpp && cache[i].paged == paged)
			return &cache[i];
	}

	design = &cache[next];
	next = (next + 1) % NCACHED;
	find_design(fpp, paged, design);
	return design;
}

/* Bits per key of a blocked filter at this rate, without headroom. */
double
bf_bits_per_key(double fpp)
{
	return design_for(fpp, false)->bits_per_key;
}

static double
needed_bits(const Design *design, double n)
{
	return (n + HEADROOM * design->deviation * sqrt(n)) * design->bits_per_key;
}

/*
 * Bits that n keys need at this rate, with headroom, before rounding to whole
 * blocks.
 */
double
bf_needed_bits(double fpp, bool paged, uint64_t n)
{
	return needed_bits(design_for(fpp, paged), (double) n);
}

/*
 * The largest number of keys that need no more than this many bits, at least
 * 1: the inverse of needed_bits, a quadratic equation in sqrt(n).
 */
static uint64_t
capacity_of(const Design *design, double bits)
{
	double		half = HEADROOM * design->deviation / 2;
	double		keys = bits / design->bits_per_key;
	double		root = sqrt(half * half + keys) - half;
	double		n = floor(root * root) + 1;

	while (n > 1 && needed_bits(design, n) > bits)
		n--;
	return (uint64_t) n;
}

/* The largest number of keys that one layer can be made for at this rate. */
uint64_t
bf_max_keys(double fpp)
{
	return capacity_of(design_for(fpp, false), (double) BF_MAX_BITS);
}

/* Fill in a first layer of so many blocks. */
static void
set_first_geometry(BfGeometry *geometry, const Design *design, uint32_t nblocks)
{
	geometry->nblocks = nblocks;
	geometry->block_log2 = design->block_log2;
	geometry->k = design->k;
	geometry->fpp = design->fpp;
	geometry->generation = 0;
	geometry->capacity = capacity_of(design,
									 (double) bf_geometry_bits(geometry));
}

/*
 * The layer for n keys at a rate, BF_LAYER_FPP_MIN to BF_FPP_MAX.  Its
 * capacity is what its whole blocks hold, at least n.  BF_TOO_LARGE, and
 * *geometry is not set, if n is above bf_max_keys.  A layer on pages has fewer
 * hash functions and up to BF_MAX_PAGED_BITS.
 */
BfStatus
bf_geometry_for(double fpp, bool paged, uint64_t n, BfGeometry *geometry)
{
	const Design *design = design_for(fpp, paged);
	double		bits = needed_bits(design, (double) n);
	uint64_t	nblocks;
	uint64_t	unit = 1;

	if (bits > (double) (paged ? BF_MAX_PAGED_BITS : BF_MAX_BITS))
		return BF_TOO_LARGE;

	nblocks = (uint64_t) ceil(ldexp(bits, -design->block_log2));
	if (nblocks == 0)
		nblocks = 1;
	while (nblocks > unit << NBLOCKS_DIGITS)
		unit <<= 1;
	nblocks = (nblocks + unit - 1) / unit * unit;
	set_first_geometry(geometry, design, (uint32_t) nblocks);
	return BF_OK;
}

/* The layer that folds to the most sizes; see BF_FIRST_FOLDED_LAYER. */
void
bf_geometry_to_fold(double fpp, BfGeometry *geometry)
{
	const Design *design = design_for(fpp, false);
	double		bits = needed_bits(design, (double) BF_FIRST_FOLDED_LAYER);
	uint32_t	nblocks = BF_FOLDED_FACTOR;

	while (ldexp(nblocks, design->block_log2) < bits)
		nblocks *= 2;
	set_first_geometry(geometry, design, nblocks);
}

/* The design of a layer, or NULL if it has none. */
static const Design *
design_of(const BfGeometry *geometry)
{
	int			paged;

	for (paged = 0; paged <= 1; paged++)
	{
		const Design *design = design_for(geometry->fpp, paged);

		if (geometry->k == design->k &&
			geometry->block_log2 == design->block_log2)
			return design;
	}
	return NULL;
}

/* The largest divisor of a number that is not above max, or 1. */
static uint32_t
largest_divisor(uint32_t number, uint32_t max)
{
	uint32_t	largest = 1;
	uint32_t	i;

	for (i = 1; i <= number / i; i++)
	{
		if (number % i != 0)
			continue;
		if (i <= max && i > largest)
			largest = i;
		if (number / i <= max && number / i > largest)
			largest = number / i;
	}
	return largest;
}

/*
 * The smallest layer into which one with this many bits set folds so that it
 * still has its rate.  Returns false, and the same geometry, if there is none:
 * a layer of another design stays as it is.
 */
bool
bf_geometry_fold(const BfGeometry *geometry, uint64_t bits_set,
				 BfGeometry *folded)
{
	double		m = (double) bf_geometry_bits(geometry);
	double		n = fmax(1, bf_geometry_cardinality(geometry, bits_set));
	double		limit;
	const Design *design;
	uint32_t	factor;

	/* No design needs fewer bits: of full layers, none has to be found. */
	*folded = *geometry;
	limit = m / (n * LEAST_COST * bf_standard_bits_per_key(geometry->fpp));
	if (limit < 2 ||
		largest_divisor(geometry->nblocks,
						(uint32_t) fmin(limit, geometry->nblocks)) <= 1)
		return false;
	design = design_of(geometry);
	if (design == NULL)
		return false;

	limit = m / needed_bits(design, n);
	factor = largest_divisor(geometry->nblocks,
							 (uint32_t) fmin(limit, geometry->nblocks));
	if (factor <= 1)
		return false;
	folded->nblocks = geometry->nblocks / factor;
	folded->capacity = capacity_of(design, (double) bf_geometry_bits(folded));
	return true;
}

/*
 * The number of set bits at which a layer is full: what its capacity sets on
 * average, and the headroom.  Then it has its rate.
 */
uint64_t
bf_geometry_full(const BfGeometry *geometry)
{
	double		m = (double) bf_geometry_bits(geometry);
	double		n = (double) geometry->capacity;

	return (uint64_t) fmin(bf_expected_bits_set(geometry, n) +
						   HEADROOM * bf_deviation(m, geometry->k, n), m);
}

/* The share of nblocks blocks in that number. */
uint64_t
bf_blocks_full(const BfGeometry *geometry, uint32_t nblocks)
{
	return (uint64_t) ((double) bf_geometry_full(geometry) /
					   geometry->nblocks * nblocks);
}
