/*-------------------------------------------------------------------------
 *
 * rate.c
 *	  The model of a blocked Bloom filter: the false-positive rate and the
 *	  number of set bits that n keys cause.
 *
 * A key sets k bits, drawn with replacement, in one block of B bits.  With
 * load i, the number of keys in a block, a bit of it is still unset with
 * probability (1 - 1/B)^(ki), and an absent key that falls there is reported
 * as a member with the k-th power of the share of bits that are set.  Loads
 * differ from block to block: they follow the binomial distribution of n keys
 * over N blocks, which for many blocks is that of Poisson with mean n / N.
 * The rate of the filter is the mean over the loads (Putze, Sanders, Singler:
 * Cache-, Hash- and Space-Efficient Bloom Filters, 2007).  It is above the
 * rate of an unblocked filter of the same size, the more so the smaller the
 * block, so the standard formula would miss the rate that a filter is made
 * for.
 *
 * The share of set bits differs between blocks of one load, too, and the mean
 * of its k-th power is above the power of its mean, by 1 % where blocks are
 * small (Bose et al.: On the false-positive rate of Bloom filters, 2008).
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "internal.h"

/* Loads of less weight than this share of the rate do not change it. */
#define NEGLIGIBLE	1e-18

/* pow() of libm would be slower, and differ between implementations. */
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
 * second order of its deviation.  unset and two_unset are the probabilities
 * that a given bit, and that two given bits, are unset.  Where the number of
 * set bits in nblocks blocks is known, only 1 - 1/nblocks of the variance is
 * left; nblocks is 0 where it is not known.
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
 * The mean rate over the loads: Poisson's with the given mean if n is 0, for
 * many blocks, else binomial, of n keys that are known, by the set bits, to be
 * in nblocks blocks.
 *
 * The weights of the loads are built from the most likely one outwards by the
 * ratio of neighbours, which needs no factorials, and are divided by their
 * sum at the end.  These ratios only fall on the way, so what is left out
 * beyond a negligible weight is negligible, too.
 */
double
bf_mean_fpp(unsigned block_log2, unsigned k, double mean, double n,
			double nblocks)
{
	double		B = ldexp(1, (int) block_log2);
	double		unset = unset_by_one(block_log2, k);
	double		two_unset = power(1 - 2 / B, k);
	double		mode = floor(mean);
	double		weights = 1;
	double		sum = load_fpp(B, k, pow(unset, mode), pow(two_unset, mode),
							   nblocks);
	int			step;

	/* One block holds all keys. */
	if (n > 0 && nblocks < 2)
		return power(1 - pow(unset, n), k);

	for (step = 1; step >= -1; step -= 2)
	{
		double		u = pow(unset, mode);
		double		v = pow(two_unset, mode);
		double		w = 1;
		double		i;

		for (i = mode;; i += step)
		{
			if (step > 0)
			{
				w *= n > 0 ? (n - i) / ((i + 1) * (nblocks - 1)) :
					mean / (i + 1);
				u *= unset;
				v *= two_unset;
			}
			else
			{
				w *= n > 0 ? i * (nblocks - 1) / (n - i + 1) : i / mean;
				u /= unset;
				v /= two_unset;
			}
			if (!(w > NEGLIGIBLE * sum))
				break;
			weights += w;
			sum += w * load_fpp(B, k, u, v, nblocks);
		}
	}
	return fmin(sum / weights, 1);
}

/*
 * Expected number of bits that n keys set.  A block has load i with binomial
 * probability and then (1 - unset^i) of its bits set, the mean of which is
 * 1 - (1 - (1 - unset) / N)^n.
 */
double
bf_expected_bits_set(const BfGeometry *geometry, double n)
{
	double		unset = unset_by_one(geometry->block_log2, geometry->k);

	return -(double) bf_geometry_bits(geometry) *
		expm1(n * log1p(-(1 - unset) / geometry->nblocks));
}

/*
 * Its inverse: the number of keys that are expected to set so many bits, fewer
 * than all (for a filter without blocks, Swamidass, Baldi: Mathematical
 * Correction for Fingerprint Similarity Measures, 2007).
 */
double
bf_expected_keys(const BfGeometry *geometry, double bits_set)
{
	double		m = (double) bf_geometry_bits(geometry);
	double		unset = unset_by_one(geometry->block_log2, geometry->k);

	return log1p(-bits_set / m) / log1p(-(1 - unset) / geometry->nblocks);
}

/*
 * Standard deviation of the number of bits that n keys set in m: that of the
 * number of occupied cells when kn balls are thrown into m, with a = kn/m the
 * root of m e^-a (1 - (1 + a) e^-a) (Johnson, Kotz: Urn Models, 1977).
 */
double
bf_deviation(double m, double k, double n)
{
	double		a = k * n / m;

	return sqrt(fmax(0, m * exp(-a) * (1 - (1 + a) * exp(-a))));
}
