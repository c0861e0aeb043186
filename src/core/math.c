/*-------------------------------------------------------------------------
 *
 * math.c
 *	  Keys, bits and false-positive rates of a blocked Bloom filter.
 *
 * A key sets k bits, drawn with replacement, in one block of B bits.  With
 * load i, the number of keys in a block, a bit of it is still unset with
 * probability (1 - 1/B)^(ki), and an absent key that falls there tests
 * positive with the k-th power of the share of bits that are set.  Loads
 * differ from block to block: they follow the binomial distribution of n keys
 * over N blocks, which for many blocks is Poisson's with mean n / N.  The
 * rate of the filter is the mean over the loads (Putze, Sanders, Singler:
 * Cache-, Hash- and Space-Efficient Bloom Filters, 2007).  It is above the
 * rate of an unblocked filter of the same size, the more so the smaller the
 * block, which is why the standard formula would miss the rate asked for.
 *
 * The share of set bits differs between blocks of one load, too, and the mean
 * of its k-th power is above the power of its mean, by 1 % where blocks are
 * small (Bose et al.: On the false-positive rate of Bloom filters, 2008).
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stddef.h>

#include "bf.h"
#include "internal.h"

/*
 * A block size is good enough when it costs no more than this factor over
 * the standard filter.  Together with the rounding of the number of blocks,
 * below 1/128, a filter stays within 1.06 times the standard bits.
 */
#define BLOCKING_COST	1.05

/*
 * What a design consists of are multiples of 1 / 1024, so that the last digit
 * of libm is moot.
 */
#define BITS_GRID		1024.0

/* Significant bits of a number of blocks: the rest divides by two. */
#define NBLOCKS_DIGITS	8

/*
 * Standard deviations of the number of set bits that a layer leaves room
 * for, so that just the keys it was made for do not fill it before the last.
 */
#define SLACK			4

/*
 * Variables of one thread.  C11 has them under this name, unless it says that
 * it has no threads, and compilers had them before under names of their own.
 * Where there are none, the core must be called by one thread only, as a
 * PostgreSQL backend does.
 */
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && \
	!defined(__STDC_NO_THREADS__)
#define THREAD_LOCAL	_Thread_local
#elif defined(__GNUC__)
#define THREAD_LOCAL	__thread
#elif defined(_MSC_VER)
#define THREAD_LOCAL	__declspec(thread)
#else
#define THREAD_LOCAL
#endif

typedef struct Design
{
	double		fpp;
	double		bits_per_key;
	double		deviation;		/* of sqrt(n) keys, in keys */
	uint8_t		block_log2;
	uint8_t		k;
} Design;

static double
power(double base, unsigned exponent)
{
	double		result = 1;

	for (; exponent > 0; exponent >>= 1)
	{
		if (exponent & 1)
			result *= base;
		base *= base;
	}
	return result;
}

/* Probability that one key leaves a given bit of its block unset. */
static double
unset_by_one(unsigned block_log2, unsigned k)
{
	return power(1 - ldexp(1, -(int) block_log2), k);
}

/*
 * Mean of the k-th power of the share of bits that are set in a block, to the
 * second order of its deviation.  Of any one bit, and of any two, unset and
 * two_unset are the probabilities to be unset.  Where a number of blocks is
 * known to have so many bits set, this leaves 1 - 1/nblocks of the variance;
 * nblocks is 0 where it is not.
 */
static double
load_fpp(double B, unsigned k, double unset, double two_unset,
		 double nblocks)
{
	double		set = 1 - unset;
	double		variance = unset / B + (1 - 1 / B) * two_unset - unset * unset;

	if (k < 2 || set == 0)
		return set;
	if (nblocks > 0)
		variance *= 1 - 1 / nblocks;
	return power(set, k - 2) *
		(set * set + k * (k - 1) / 2.0 * variance);
}

/*
 * Mean rate of the loads.  Their weights are built from the most likely one
 * outwards by the ratio of neighbours, which needs no factorials, and are
 * divided by their sum at the end.  For n = 0 the loads are Poisson's with
 * the given mean, else binomial: n keys over nblocks blocks.
 */
static double
mean_fpp(unsigned block_log2, unsigned k, double mean, double n,
		 double nblocks)
{
	double		B = ldexp(1, (int) block_log2);
	double		unset = unset_by_one(block_log2, k);
	double		two_unset = power(1 - 2 / B, k);
	double		mode = floor(mean);
	double		u,
				v,
				w,
				i;
	double		weights = 0;
	double		sum = 0;

	/* One block holds all keys. */
	if (n > 0 && nblocks < 2)
		return power(1 - pow(unset, n), k);

	/*
	 * No factor of a weight exceeds 1, so what is left out beyond a weight
	 * that is small beside the sum is small, too.
	 */
	w = 1;
	u = pow(unset, mode);
	v = pow(two_unset, mode);
	for (i = mode; w > 1e-18 * sum; i++)
	{
		weights += w;
		sum += w * load_fpp(B, k, u, v, nblocks);
		w *= n > 0 ? (n - i) / ((i + 1) * (nblocks - 1)) : mean / (i + 1);
		u *= unset;
		v *= two_unset;
	}

	w = 1;
	u = pow(unset, mode);
	v = pow(two_unset, mode);
	for (i = mode; i > 0; i--)
	{
		w *= n > 0 ? i * (nblocks - 1) / (n - i + 1) : i / mean;
		if (w < 1e-18 * weights)
			break;
		u /= unset;
		v /= two_unset;
		weights += w;
		sum += w * load_fpp(B, k, u, v, nblocks);
	}

	return fmin(sum / weights, 1);
}

/*
 * Standard deviation of the number of bits that n keys set in m: that of the
 * number of occupied cells when kn balls are thrown into m, with a = kn/m the
 * root of m e^-a (1 - (1 + a) e^-a) (Johnson, Kotz: Urn Models, 1977).
 */
static double
deviation(double m, double k, double n)
{
	double		a = k * n / m;

	return sqrt(fmax(0, m * exp(-a) * (1 - (1 + a) * exp(-a))));
}

/* Number of hash functions that is best without blocks. */
unsigned
bf_standard_hashes(double fpp)
{
	double		k = floor(-log2(fpp));
	double		fewer,
				more;

	if (k < 1)
		return 1;
	fewer = -k / log1p(-pow(fpp, 1 / k));
	more = -(k + 1) / log1p(-pow(fpp, 1 / (k + 1)));
	return (unsigned) (more < fewer ? k + 1 : k);
}

/*
 * Bits per key of an unblocked filter with the best whole k: the rate is
 * (1 - e^(-kn/m))^k (Mitzenmacher, Upfal: Probability and Computing, 5.5.3).
 */
double
bf_standard_bits_per_key(double fpp)
{
	double		k = bf_standard_hashes(fpp);

	return -k / log1p(-pow(fpp, 1 / k));
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

	if (mean_fpp(block_log2, k, B * BITS_GRID / enough, 0, 0) > fpp)
		return 0;
	while (enough - below > 1)
	{
		double		middle = floor((below + enough) / 2);

		if (mean_fpp(block_log2, k, B * BITS_GRID / middle, 0, 0) > fpp)
			below = middle;
		else
			enough = middle;
	}
	return enough / BITS_GRID;
}

/*
 * The design for a rate: the smallest block whose bits per key stay within
 * BLOCKING_COST of the standard filter, with its best k.  It depends on the
 * rate alone and takes a fraction of a millisecond to find, so the last few
 * are remembered.
 */
static const Design *
design_for(double fpp)
{
	static THREAD_LOCAL Design known[8];
	static THREAD_LOCAL unsigned next = 0;
	double		standard = bf_standard_bits_per_key(fpp);
	unsigned	max_k = bf_standard_hashes(fpp) + 1;
	unsigned	least_k = max_k > 8 ? max_k - 8 : 1;
	unsigned	block_log2;
	Design	   *design;
	size_t		i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
	{
		if (known[i].fpp == fpp)
			return &known[i];
	}

	design = &known[next];
	next = (next + 1) % (sizeof(known) / sizeof(known[0]));
	design->bits_per_key = 0;
	for (block_log2 = BF_MIN_BLOCK_LOG2;
		 block_log2 <= BF_MAX_BLOCK_LOG2 && design->bits_per_key == 0;
		 block_log2++)
	{
		/* The largest block has to do in any case. */
		double		high = standard *
			(block_log2 < BF_MAX_BLOCK_LOG2 ? BLOCKING_COST : 2);
		unsigned	k;

		for (k = least_k; k <= max_k && k <= BF_MAX_HASHES; k++)
		{
			double		bits = fewest_bits(fpp, block_log2, k,
										   standard * 0.99, high);

			if (bits > 0)
			{
				design->bits_per_key = high = bits;
				design->block_log2 = (uint8_t) block_log2;
				design->k = (uint8_t) k;
			}
		}
	}
	design->fpp = fpp;

	/* n keys in their bits; one more of them sets k e^-a bits */
	design->deviation =
		ceil(BITS_GRID * deviation(design->bits_per_key, design->k, 1) /
			 (design->k * exp(-design->k / design->bits_per_key))) / BITS_GRID;
	return design;
}

/* Bits per key that a filter of ours needs for this rate. */
double
bf_bits_per_key(double fpp)
{
	return design_for(fpp)->bits_per_key;
}

static double
needed_bits(const Design *design, double n)
{
	return (n + SLACK * design->deviation * sqrt(n)) * design->bits_per_key;
}

/*
 * Bits that n keys need at this rate, before rounding to whole blocks: for
 * the keys and for the deviation of what they set.
 */
double
bf_needed_bits(double fpp, uint64_t n)
{
	return needed_bits(design_for(fpp), (double) n);
}

/* The most keys that need no more than this many bits: its inverse. */
static uint64_t
capacity_of(const Design *design, double bits)
{
	double		half = SLACK * design->deviation / 2;
	double		keys = bits / design->bits_per_key;
	double		root = sqrt(half * half + keys) - half;
	double		n = floor(root * root) + 1;

	while (n > 1 && needed_bits(design, n) > bits)
		n--;
	return (uint64_t) n;
}

/* The most keys that one filter can be made for at this rate. */
uint64_t
bf_max_keys(double fpp)
{
	return capacity_of(design_for(fpp), (double) BF_MAX_BITS);
}

/*
 * The layer for n keys at a rate.  Its capacity is what its whole blocks
 * hold, at least n.
 */
BfStatus
bf_geometry_for(double fpp, uint64_t n, BfGeometry *geometry)
{
	const Design *design = design_for(fpp);
	double		bits = bf_needed_bits(fpp, n);
	uint64_t	nblocks;
	uint64_t	unit = 1;

	if (bits > (double) BF_MAX_BITS)
		return BF_TOO_LARGE;

	nblocks = (uint64_t) ceil(ldexp(bits, -design->block_log2));
	if (nblocks == 0)
		nblocks = 1;
	while (nblocks > unit << NBLOCKS_DIGITS)
		unit <<= 1;
	nblocks = (nblocks + unit - 1) / unit * unit;

	geometry->nblocks = (uint32_t) nblocks;
	geometry->block_log2 = design->block_log2;
	geometry->k = design->k;
	geometry->fpp = fpp;
	geometry->generation = 0;
	geometry->merged = false;
	geometry->capacity = capacity_of(design, (double) bf_geometry_bits(geometry));
	return BF_OK;
}

/* The layer that is best to be folded; see BF_FIRST_FOLDED_LAYER. */
void
bf_geometry_to_fold(double fpp, BfGeometry *geometry)
{
	const Design *design = design_for(fpp);

	geometry->nblocks = BF_FOLDED_FACTOR;
	geometry->block_log2 = design->block_log2;
	geometry->k = design->k;
	geometry->fpp = fpp;
	geometry->generation = 0;
	geometry->merged = false;
	while (needed_bits(design, (double) BF_FIRST_FOLDED_LAYER) >
		   (double) bf_geometry_bits(geometry))
		geometry->nblocks *= 2;
	geometry->capacity = capacity_of(design, (double) bf_geometry_bits(geometry));
}

/*
 * The smallest layer into which one of this geometry and content folds so that
 * it still has the rate of its design; false if it has to stay as it is.
 */
bool
bf_geometry_fold(const BfGeometry *geometry, uint64_t bits_set, BfGeometry *folded)
{
	const Design *design = design_for(geometry->fpp);
	double		n = bf_geometry_cardinality(geometry, bits_set);
	double		limit;
	uint32_t	factor;

	if (geometry->merged || geometry->k != design->k ||
		geometry->block_log2 != design->block_log2)
	{
		*folded = *geometry;
		return false;
	}

	limit = (double) bf_geometry_bits(geometry) / needed_bits(design, fmax(n, 1));
	if (limit > geometry->nblocks)
		limit = geometry->nblocks;
	for (factor = (uint32_t) limit; factor > 1; factor--)
	{
		if (geometry->nblocks % factor == 0)
			break;
	}
	*folded = *geometry;
	if (factor <= 1)
		return false;
	folded->nblocks = geometry->nblocks / factor;
	folded->capacity = capacity_of(design, (double) bf_geometry_bits(folded));
	return true;
}

uint64_t
bf_geometry_bits(const BfGeometry *geometry)
{
	return (uint64_t) geometry->nblocks << geometry->block_log2;
}

/*
 * Expected number of bits that n keys set.  A block has load i with binomial
 * probability and then (1 - unset^i) of its bits set, the mean of which is
 * 1 - (1 - (1 - unset) / N)^n.
 */
static double
expected_bits_set(const BfGeometry *geometry, double n)
{
	double		unset = unset_by_one(geometry->block_log2, geometry->k);

	return -(double) bf_geometry_bits(geometry) *
		expm1(n * log1p(-(1 - unset) / geometry->nblocks));
}

/*
 * Maximum number of bits set in a layer: what its capacity sets on average and
 * the slack included in its size.  Then it has its rate.  A merged layer takes
 * no further key.
 */
uint64_t
bf_geometry_full(const BfGeometry *geometry)
{
	double		m = (double) bf_geometry_bits(geometry);
	double		n = (double) geometry->capacity;

	if (geometry->merged)
		return 0;
	return (uint64_t) fmin(expected_bits_set(geometry, n) +
						   SLACK * deviation(m, geometry->k, n), m);
}

/*
 * Estimated number of distinct keys in a layer: expected_bits_set inverted
 * (for a filter without blocks, Swamidass, Baldi: Mathematical Correction for
 * Fingerprint Similarity Measures, 2007).  A layer with all bits set tells
 * only a lower bound, that of one unset bit.
 */
double
bf_geometry_cardinality(const BfGeometry *geometry, uint64_t bits_set)
{
	double		m = (double) bf_geometry_bits(geometry);
	double		unset = unset_by_one(geometry->block_log2, geometry->k);
	double		set = (double) bits_set;

	if (set > m - 1)
		set = m - 1;
	return log1p(-set / m) / log1p(-(1 - unset) / geometry->nblocks);
}

/*
 * Estimated number of distinct keys that a layer accounts for.
 *
 * Growth appends a layer when those before it are full, so when they have the
 * rates of their designs: twice the rate of the layer, four times, and so on.
 * Of the keys that come after them, those that they report as members by
 * chance are not added; this corrects for that.
 */
double
bf_geometry_keys(const BfGeometry *geometry, uint64_t bits_set)
{
	double		n = bf_geometry_cardinality(geometry, bits_set);
	double		fpp = geometry->fpp;
	int			i;

	if (geometry->merged)
		return (double) geometry->capacity;
	for (i = 0; i < geometry->generation; i++)
	{
		fpp = fmin(2 * fpp, BF_FPP_MAX);
		n /= 1 - fpp;
	}
	return n;
}

/* Rate of a layer with this many bits set. */
double
bf_geometry_fpp(const BfGeometry *geometry, uint64_t bits_set)
{
	double		n;

	if (geometry->merged)
		return geometry->fpp;
	if (bits_set == 0)
		return 0;
	n = fmax(1, rint(bf_geometry_cardinality(geometry, bits_set)));
	return mean_fpp(geometry->block_log2, geometry->k, n / geometry->nblocks, n,
					geometry->nblocks);
}
