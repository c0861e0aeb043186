/*-------------------------------------------------------------------------
 *
 * test_sizing.c
 *	  Keys, bits and rates, against the definitions computed the long way.
 *
 * The reference below sums over the loads term by term, with factorials from
 * lgamma().  It shares no code and no summation order with the core.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

static const double table_fpp[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};

#define NTABLE	(LENGTH(table_fpp))

static const double table_standard[NTABLE] = {
	4.81, 9.59, 14.38, 19.17, 23.97, 28.76, 33.55
};
static const int table_standard_k[NTABLE] = {3, 7, 10, 13, 17, 20, 23};
static const int table_block_log2[NTABLE] = {9, 9, 10, 11, 12, 12, 13};

/* Bits per key, for blocks of 2^9 to 2^14 bits. */
static const double table_bits[NTABLE][6] = {
	{4.84, 4.82, 4.82, 4.81, 4.81, 4.81},
	{9.92, 9.76, 9.68, 9.63, 9.61, 9.60},
	{15.55, 14.97, 14.68, 14.53, 14.45, 14.41},
	{22.03, 20.62, 19.90, 19.53, 19.35, 19.26},
	{29.67, 26.83, 25.41, 24.69, 24.33, 24.15},
	{38.82, 33.78, 31.29, 30.03, 29.40, 29.08},
	{49.91, 41.60, 37.59, 35.59, 34.58, 34.06}
};

/* log of a binomial coefficient */
static double
log_choose(double n, double i)
{
	return lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1);
}

/*
 * Rate of a block with i keys.  The number of cells that ki balls leave empty
 * has variance B q + B (B - 1) (1 - 2/B)^ki - (B q)^2, where q is the chance
 * of one cell (Johnson, Kotz: Urn Models, 1977); to second order, the mean of
 * the k-th power of the fill is larger by k (k - 1) / 2 times the square of
 * the coefficient of variation.  Of N blocks that hold a known number of bits
 * set, 1 - 1/N of the variance is left.
 */
static double
block_rate(double B, double k, double i, double nblocks)
{
	double		q = pow(1 - 1 / B, k * i);
	double		variance = q / B + (1 - 1 / B) * pow(1 - 2 / B, k * i) - q * q;

	if (i == 0)
		return 0;
	if (nblocks > 0)
		variance *= 1 - 1 / nblocks;
	return pow(1 - q, k) *
		(1 + k * (k - 1) / 2 * variance / ((1 - q) * (1 - q)));
}

/* Rate with n keys in nblocks blocks; n = 0: with Poisson loads of a mean. */
static double
reference_rate(double B, double k, double mean, double n, double nblocks)
{
	double		far = 12 * sqrt(mean) + 40;
	double		i = floor(mean - far);
	double		last = ceil(mean + far);
	double		sum = 0;

	if (n > 0 && nblocks == 1)
		return block_rate(B, k, n, nblocks);
	if (i < 0)
		i = 0;
	if (n > 0 && last > n)
		last = n;
	for (; i <= last; i++)
	{
		double		weight = n > 0
			? log_choose(n, i) - i * log(nblocks) +
			(n - i) * log1p(-1 / nblocks)
			: i * log(mean) - mean - lgamma(i + 1);

		sum += exp(weight) * block_rate(B, k, i, nblocks);
	}
	return sum;
}

static double
reference_standard(double fpp, int *best_k)
{
	double		best = HUGE_VAL;

	for (int k = 1; k <= 64; k++)
	{
		double		bits = -k / log(1 - pow(fpp, 1.0 / k));

		if (bits < best)
		{
			best = bits;
			*best_k = k;
		}
	}
	return best;
}

/* Fewest bits per key with the best k, to 2^-20 of it. */
static double
reference_bits(double fpp, int block_log2)
{
	double		B = ldexp(1, block_log2);
	double		best = HUGE_VAL;
	int			middle_k = 0;
	double		standard = reference_standard(fpp, &middle_k);

	for (int k = middle_k > 10 ? middle_k - 10 : 1; k <= middle_k + 1; k++)
	{
		double		low = standard * 0.99;
		double		high = best < HUGE_VAL ? best : standard * 2;

		if (reference_rate(B, k, B / high, 0, 0) > fpp)
			continue;
		for (int i = 0; i < 20; i++)
		{
			double		middle = (low + high) / 2;

			if (reference_rate(B, k, B / middle, 0, 0) > fpp)
				low = middle;
			else
				high = middle;
		}
		best = high;
	}
	return best;
}

static double
ratio_of(uint64_t i, uint64_t n, double from, double to)
{
	return from * pow(to / from, (double) i / (double) (n - 1));
}

static BfGeometry
geometry_for(double fpp, bool paged, uint64_t n)
{
	BfGeometry	geometry;

	memset(&geometry, 0, sizeof(geometry));
	tap_case("%g, %llu keys", fpp, (unsigned long long) n);
	EQUAL(bf_geometry_for(fpp, paged, n, &geometry), BF_OK);
	return geometry;
}

static double
bits_of(BfGeometry geometry)
{
	return (double) bf_geometry_bits(&geometry);
}

static void
test_standard(void)
{
	for (uint64_t i = 0; i < NTABLE; i++)
	{
		int			k = 0;
		double		reference = reference_standard(table_fpp[i], &k);

		HOLDS(fabs(bf_standard_bits_per_key(table_fpp[i]) -
				   table_standard[i]) <= 0.0051);
		EQUAL(bf_standard_hashes(table_fpp[i]),
			  (unsigned) table_standard_k[i]);
		HOLDS(fabs(reference - table_standard[i]) <= 0.0051);
		EQUAL(k, table_standard_k[i]);
	}
	for (uint64_t i = 0; i < 2000; i++)
	{
		double		fpp = ratio_of(i, 2000, BF_FPP_MAX, BF_FPP_MIN);
		int			k = 0;
		double		reference = reference_standard(fpp, &k);

		HOLDS(fabs(bf_standard_bits_per_key(fpp) / reference - 1) < 1e-9);
		EQUAL(bf_standard_hashes(fpp), (unsigned) k);
	}
}

static void
test_table(void)
{
	for (size_t i = 0; i < NTABLE; i++)
	{
		double		fpp = table_fpp[i];
		int			chosen = table_block_log2[i];
		double		wanted = table_bits[i][chosen - BF_MIN_BLOCK_LOG2];
		double		got = bf_bits_per_key(fpp);

		/* The cells are rounded to 1/100, the core's figure up to 1/1024. */
		HOLDS(got > wanted - 0.0051 && got < wanted + 0.0051 + 1.0 / 1024);
		EQUAL(geometry_for(fpp, false, 1000000).block_log2, chosen);
		for (int log2 = BF_MIN_BLOCK_LOG2; log2 <= BF_MAX_BLOCK_LOG2; log2++)
		{
			double		bits = reference_bits(fpp, log2);
			double		cell = table_bits[i][log2 - BF_MIN_BLOCK_LOG2];

			HOLDS(fabs(bits - cell) < 0.0051 + 0.0002 * cell);
		}
	}
}

/*
 * The design at any rate: the rate is kept, with the fewest bits, in the
 * smallest block that comes within 5 % of the standard filter.
 */
static void
test_design(void)
{
	uint64_t	n = scaled(60, 12);

	for (uint64_t i = 0; i < n; i++)
	{
		double		fpp = ratio_of(i, n, BF_FPP_MAX, BF_FPP_MIN);
		int			standard_k = 0;
		double		standard = reference_standard(fpp, &standard_k);
		double		got = bf_bits_per_key(fpp);
		BfGeometry	geometry = geometry_for(fpp, false, 1000000);
		double		best = reference_bits(fpp, geometry.block_log2);
		double		B = ldexp(1, geometry.block_log2);

		EQUAL(got * 1024, floor(got * 1024));
		HOLDS(reference_rate(B, geometry.k, B / got, 0, 0) <= fpp * (1 + 1e-9));
		HOLDS(got > best - 1e-4 && got <= best + 1.0 / 1024 + 1e-9);
		HOLDS(got <= 1.05 * standard);
		if (geometry.block_log2 > BF_MIN_BLOCK_LOG2)
			HOLDS(reference_bits(fpp, geometry.block_log2 - 1) >
				  1.05 * standard - 1.0 / 1024);
	}
}

/*
 * The design for pages has the same blocks, keeps the rate, and takes at most
 * 15 % more bits, with which one hash function less would miss the rate.
 */
static void
test_paged_design(void)
{
	const uint64_t n = 1000000;
	uint64_t	rounds = scaled(60, 12);
	uint64_t	fewer = 0;

	for (uint64_t i = 0; i < rounds; i++)
	{
		double		fpp = ratio_of(i, rounds, BF_FPP_MAX, BF_FPP_MIN);
		double		best = bf_bits_per_key(fpp);
		BfGeometry	geometry = geometry_for(fpp, false, n);
		BfGeometry	paged = geometry_for(fpp, true, n);
		double		B = ldexp(1, paged.block_log2);
		double		bits;

		EQUAL(paged.block_log2, geometry.block_log2);
		HOLDS(paged.k <= geometry.k);
		fewer += paged.k < geometry.k;

		/* Without the headroom, which grows with the root of n. */
		bits = (bf_needed_bits(fpp, true, 4 * n) -
				2 * bf_needed_bits(fpp, true, n)) / (2 * (double) n);
		HOLDS(bits >= best - 1e-6 && bits <= 1.15 * best + 1e-6);
		HOLDS(reference_rate(B, paged.k, B / bits, 0, 0) <= fpp * (1 + 1e-6));
		HOLDS(paged.k == 1 ||
			  reference_rate(B, paged.k - 1, B / (1.15 * best), 0,
							 0) > fpp * (1 - 1e-6));
		HOLDS(paged.capacity >= n);
		HOLDS(bf_needed_bits(fpp, true, paged.capacity) <= bits_of(paged));
	}
	HOLDS(fewer > rounds / 2);
}

/* Whatever was computed in between, a rate has one design. */
static void
test_remembered(void)
{
	double		bits[40];
	double		nearby[40];
	BfGeometry	geometries[40];

	for (int round = 0; round < 4; round++)
	{
		for (int i = 0; i < 40; i++)
		{
			/* Forwards and backwards, so that what is remembered varies. */
			int			j = round % 2 == 0 ? i : 39 - i;
			double		fpp = ratio_of((uint64_t) j, 40, 0.5, 1e-9);
			BfGeometry	geometry = geometry_for(fpp, false, 12345);

			if (round == 0)
			{
				bits[j] = bf_bits_per_key(fpp);
				geometries[j] = geometry;
			}
			EQUAL(bits[j], bf_bits_per_key(fpp));
			EQUAL(memcmp(&geometries[j], &geometry, sizeof(geometry)), 0);

			/* Nor is a rate nearby taken for it. */
			HOLDS(round == 0 || bf_bits_per_key(fpp * 0.999) == nearby[j]);
		}
		for (int i = 0; round == 0 && i < 40; i++)
			nearby[i] = bf_bits_per_key(ratio_of((uint64_t) i, 40, 0.5, 1e-9) *
										0.999);
	}
}

static void
test_million(void)
{
	const uint64_t n = 1000000;
	uint64_t	sweep = scaled(4000, 400);
	double		worst = 0;

	for (uint64_t i = 0; i < sweep; i++)
	{
		double		fpp = ratio_of(i, sweep, 0.1, 1e-7);
		int			k = 0;
		double		allowed = 1.06 * reference_standard(fpp, &k) * (double) n;

		/* Header, one entry of the directory, and the longest key type name. */
		double		bits = bits_of(geometry_for(fpp, false, n)) + 8 * (HEADER + ENTRY + 80);

		HOLDS(bits <= allowed);
		worst = fmax(worst, bits / allowed);
	}
	printf("# the largest takes %.4f times the standard bits\n",
		   worst * 1.06);
}

/* Blocks come in numbers of eight significant bits: the rest divides. */
static uint64_t
reference_rounding(uint64_t nblocks)
{
	unsigned	shift = 0;

	while (nblocks >> shift > 255)
		shift++;
	if (nblocks >> shift << shift != nblocks)
		nblocks = ((nblocks >> shift) + 1) << shift;
	return nblocks;
}

static uint64_t
reference_nblocks(double bits_per_key, int block_log2, uint64_t n)
{
	/* Bits per key are multiples of 2^-10, so this is exact. */
	uint64_t	parts = (uint64_t) (bits_per_key * 1024) * n;
	uint64_t	block = (uint64_t) 1 << (block_log2 + 10);

	return reference_rounding(parts / block + (parts % block > 0));
}

static void
test_geometries(void)
{
	uint64_t	state = 3;
	uint64_t	rounds = scaled(200000, 20000);

	for (uint64_t i = 0; i < rounds; i++)
	{
		double		fpp = table_fpp[i / (rounds / NTABLE + 1)];
		uint64_t	n = 1 + (random64(&state) >> (38 + random64(&state) % 26));
		double		needed = bf_bits_per_key(fpp) * (double) n;
		double		root = sqrt((double) n);
		BfGeometry	geometry = geometry_for(fpp, false, n);
		double		per_key = bf_bits_per_key(fpp);
		double		capacity = (double) geometry.capacity;

		/* and room for the deviation of what they set, below 3 sqrt(n) */
		HOLDS(bf_needed_bits(fpp, false, n) > needed);
		HOLDS(bf_needed_bits(fpp, false, n) < needed + 3 * root * per_key);

		/*
		 * A few more blocks may be taken, so that chance does not overfill
		 * the layer: the bits that n keys set deviate by no more than those
		 * of 0.4 sqrt(n) keys.
		 */
		HOLDS(geometry.nblocks >= reference_nblocks(per_key, geometry.block_log2, n));
		HOLDS(geometry.nblocks <= reference_nblocks(per_key, geometry.block_log2,
													n + (uint64_t) (3 * root) + 6));
		EQUAL(reference_rounding(geometry.nblocks), geometry.nblocks);
		EQUAL(bf_geometry_bits(&geometry),
			  (uint64_t) geometry.nblocks << geometry.block_log2);
		EQUAL(geometry.fpp, fpp);
		HOLDS(geometry.k >= 1 && geometry.k <= BF_MAX_HASHES);
		HOLDS(geometry.capacity >= n && capacity * per_key <= bits_of(geometry));
		HOLDS((capacity + 3 * sqrt(capacity) + 6) * per_key > bits_of(geometry));
	}
}

static void
test_limit(void)
{
	BfGeometry	geometry;

	geometry_for(0.01, false, 430000000);
	geometry_for(0.0001, false, 215000000);
	for (uint64_t i = 0; i < 40; i++)
	{
		double		fpp = ratio_of(i, 40, 0.5, 1e-9);
		uint64_t	max = (uint64_t) (4294967296.0 / bf_bits_per_key(fpp));
		uint64_t	fitting = max - (uint64_t) (4 * sqrt((double) max));

		uint64_t	too_many[] = {max + 1, UINT64_C(1) << 33, UINT64_MAX};

		HOLDS(bits_of(geometry_for(fpp, false, fitting)) <= (double) BF_MAX_BITS);
		for (size_t j = 0; j < LENGTH(too_many); j++)
			EQUAL(bf_geometry_for(fpp, false, too_many[j], &geometry),
				  BF_TOO_LARGE);
		geometry = geometry_for(fpp, false, 1);
		HOLDS(geometry.nblocks == 1 && geometry.capacity >= 1);
	}

	/* Successors of layers are stricter than what can be requested. */
	for (uint64_t i = 0; i < 30; i++)
	{
		double		fpp = ratio_of(i, 30, 1e-9, BF_LAYER_FPP_MIN);

		geometry = geometry_for(fpp, false, 1000);
		HOLDS(geometry.k <= BF_MAX_HASHES && geometry.capacity >= 1000);
		HOLDS(bf_bits_per_key(fpp) < 1.2 * bf_standard_bits_per_key(fpp));
	}
}

/* Mean number of bits that n keys set: 1 - (1 - (1 - u) / N)^n of them. */
static double
reference_bits_set(const BfGeometry *geometry, double n)
{
	double		B = ldexp(1, geometry->block_log2);
	double		set_by_one = 1 - pow(1 - 1 / B, geometry->k);

	return (double) bf_geometry_bits(geometry) *
		-expm1(n * log1p(-set_by_one / geometry->nblocks));
}

static void
test_cardinality(void)
{
	uint64_t	state = 4;
	uint64_t	rounds = scaled(100000, 10000);

	for (uint64_t i = 0; i < rounds; i++)
	{
		double		fpp = table_fpp[i / (rounds / NTABLE + 1)];
		BfGeometry	geometry = geometry_for(fpp, false,
											1 + (random64(&state) >> 38));
		double		n = floor((double) geometry.capacity *
							  (double) (random64(&state) % 3000) / 1000);
		double		set = reference_bits_set(&geometry, n);
		double		estimate =
			bf_geometry_cardinality(&geometry, (uint64_t) rint(set));

		/* Rounding to whole bits moves it by half a bit's worth of keys. */
		HOLDS(fabs(estimate - n) <= 1e-9 * n + 0.51 /
			  (reference_bits_set(&geometry, n + 1) - set));
		EQUAL(bf_geometry_cardinality(&geometry, 0), 0);
	}
}

/* Any number of set bits has an answer, the more bits the larger. */
static void
test_saturated(void)
{
	for (int log2 = BF_MIN_BLOCK_LOG2; log2 <= BF_MAX_BLOCK_LOG2; log2++)
		for (int k = 1; k <= BF_MAX_HASHES; k++)
		{
			BfGeometry	geometry = {3, (uint8_t) log2, (uint8_t) k, 0, 1, 0.01};
			uint64_t	bits = bf_geometry_bits(&geometry);
			double		before = 0;
			double		rate_before = 0;
			uint64_t	set;

			tap_case("2^%d, k = %d", log2, k);
			EQUAL(bf_geometry_fpp(&geometry, 0), 0);
			for (set = 1; set <= bits;
				 set = set < bits && 2 * set > bits ? bits : 2 * set)
			{
				double		n = bf_geometry_cardinality(&geometry, set);
				double		rate = bf_geometry_fpp(&geometry, set);

				HOLDS(isfinite(n) && n >= before);
				HOLDS(rate > 0 && rate <= 1 + 1e-12 && rate >= rate_before);
				before = n;
				rate_before = rate;
			}

			/* All bits set: every key tests positive, or nearly so. */
			HOLDS(rate_before > 0.8);
		}

	/* As large as a layer can be. */
	for (int k = 1; k <= BF_MAX_HASHES; k++)
	{
		BfGeometry	geometries[] = {
			{1 << 23, 9, (uint8_t) k, 0, 1, 0.01},
			{1 << 18, 14, (uint8_t) k, 0, 1, 0.01}
		};

		for (int i = 0; i < 2; i++)
			HOLDS(fabs(bf_geometry_fpp(&geometries[i], BF_MAX_BITS) - 0.9) <=
				  0.1 + 1e-12);
	}
}

/* Keys that a number of blocks, eight significant bits of it, is made for. */
static uint64_t
capacity_of_blocks(double fpp, uint32_t nblocks)
{
	BfGeometry	geometry;
	uint64_t	low = 0;
	uint64_t	high;

	bf_geometry_for(fpp, false, 1, &geometry);
	high = (uint64_t) (ldexp(nblocks, geometry.block_log2) /
					   bf_bits_per_key(fpp)) + 1;
	while (high - low > 1)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (bf_geometry_for(fpp, false, middle, &geometry) == BF_OK &&
			geometry.nblocks <= nblocks)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void
test_rate_of_content(void)
{
	static const uint32_t nblocks[] = {1, 2, 3, 10, 100, 1000, 30000};
	static const double fill[] = {0.01, 0.1, 0.5, 1, 1.5, 3};

	for (size_t p = 0; p < NTABLE; p++)
		for (size_t i = 0; i < LENGTH(nblocks); i++)
			for (size_t j = 0; j < LENGTH(fill); j++)
			{
				uint64_t	keys = capacity_of_blocks(table_fpp[p], nblocks[i]);
				BfGeometry	geometry = geometry_for(table_fpp[p], false, keys);
				double		n = ceil((double) geometry.capacity * fill[j]);
				uint64_t	set = (uint64_t) rint(reference_bits_set(&geometry, n));
				double		rate = bf_geometry_fpp(&geometry, set);

				/* What the bits tell is rounded to a whole number of keys. */
				n = fmax(1, rint(bf_geometry_cardinality(&geometry, set)));
				HOLDS(fabs(rate / reference_rate(ldexp(1, geometry.block_log2),
												 geometry.k, n / geometry.nblocks,
												 n, geometry.nblocks) - 1) < 1e-6);
				if (fill[j] <= 1)
					HOLDS(rate <= table_fpp[p] * 1.001);
			}
}

/* A layer with the design for pages folds to another one of this design. */
static void
test_paged_fold(void)
{
	const double few = 30000;
	BfGeometry	geometry = geometry_for(0.0005, true, 1000000);
	uint64_t	bits_set = (uint64_t) reference_bits_set(&geometry, few);
	BfGeometry	folded;

	HOLDS(bf_geometry_fold(&geometry, bits_set, &folded));
	HOLDS(folded.k == geometry.k && folded.nblocks < geometry.nblocks / 8);
	EQUAL(geometry.nblocks % folded.nblocks, 0);
	HOLDS((double) folded.capacity >= few);
	HOLDS(bf_needed_bits(0.0005, true, folded.capacity) <= bits_of(folded));
	HOLDS(bf_needed_bits(0.0005, true, folded.capacity + 1) > bits_of(folded));
}

/* The bits of a layer that is folded to n keys, as a multiple of theirs. */
static double
bits_when_folded(BfGeometry geometry, double n)
{
	double		needed = bf_needed_bits(geometry.fpp, false, (uint64_t) n);
	BfGeometry	folded;

	while (bf_geometry_fold(&geometry,
							(uint64_t) reference_bits_set(&geometry, n),
							&folded))
		geometry = folded;
	return bits_of(geometry) / needed;
}

/*
 * The layer that is made to be folded: within a third of what keys need up to
 * a third of its capacity, within a half up to a half of it, and never beyond
 * the double.  Over all rates, results are 10 % smaller at least than those of
 * the layer for filters that are not folded, which is half as large.
 */
static void
test_geometry_to_fold(void)
{
	double		sum = 0;
	double		sum_of_other = 0;

	for (size_t p = 0; p < NTABLE; p++)
	{
		double		worst[3] = {0, 0, 0};
		BfGeometry	other = geometry_for(table_fpp[p], false,
										 BF_FIRST_UNSIZED_LAYER);
		BfGeometry	whole;

		bf_geometry_to_fold(table_fpp[p], &whole);
		HOLDS(bf_needed_bits(table_fpp[p], false, whole.capacity) <= bits_of(whole));
		HOLDS(whole.capacity >= BF_FIRST_FOLDED_LAYER);
		HOLDS(whole.capacity < 2 * BF_FIRST_FOLDED_LAYER + 10000);
		for (double n = BF_MAX_UNSIZED_HASHES; n <= (double) whole.capacity; n *= 1.01)
		{
			int			part = n <= (double) whole.capacity / 3 ? 0 :
				n <= (double) whole.capacity / 2 ? 1 : 2;
			double		bits = bits_when_folded(whole, n);

			if (n <= (double) BF_FIRST_UNSIZED_LAYER)
			{
				sum += bits;
				sum_of_other += bits_when_folded(other, n);
			}
			worst[part] = fmax(worst[part], bits);
			HOLDS(bits >= 1 - 1e-6);
		}
		HOLDS(worst[0] < 1.34 && worst[1] < 1.51 && worst[2] < 2.01);
	}
	HOLDS(sum < 0.9 * sum_of_other);
}

/* A layer that takes no more keys is not far beyond what it was made for. */
static void
test_full(void)
{
	uint64_t	state = 5;
	uint64_t	rounds = scaled(20000, 2000);

	for (uint64_t i = 0; i < rounds; i++)
	{
		double		fpp = table_fpp[i / (rounds / NTABLE + 1)];
		uint64_t	n = 1 + (random64(&state) >> (40 + random64(&state) % 24));
		BfGeometry	geometry = geometry_for(fpp, false, n);
		uint64_t	full = bf_geometry_full(&geometry);

		HOLDS((double) full >= reference_bits_set(&geometry, (double) n));
		HOLDS(full < bf_geometry_bits(&geometry));
		HOLDS(bf_geometry_fpp(&geometry, full) <= 1.02 * fpp);
	}
}

/* bf_needed_bits() between whole numbers of keys, where it is nearly linear. */
static double
needed_bits(double fpp, double keys)
{
	uint64_t	whole = (uint64_t) keys;
	double		bits = bf_needed_bits(fpp, false, whole);

	return bits +
		(keys - floor(keys)) * (bf_needed_bits(fpp, false, whole + 1) - bits);
}

/* Against trying every divisor. */
static void
test_fold(void)
{
	uint64_t	state = 6;
	uint64_t	rounds = scaled(3000, 500);
	uint64_t	folds = 0;

	for (uint64_t i = 0; i < rounds; i++)
	{
		double		fpp = table_fpp[i / (rounds / NTABLE + 1)];
		uint64_t	n = 1 + (random64(&state) >> (42 + random64(&state) % 22));
		uint32_t	best = 1;
		uint64_t	set;
		bool		did;
		BfGeometry	geometry = geometry_for(fpp, false, n);
		BfGeometry	folded,
					designed;

		/* From nothing to more than it was made for. */
		double		keys = (double) geometry.capacity *
			ldexp(1.25, -(int) (random64(&state) % 24));

		set = i % 50 == 0 ? 0 :
			(uint64_t) rint(reference_bits_set(&geometry, keys));
		keys = bf_geometry_cardinality(&geometry, set);
		for (uint32_t f = 2; f <= geometry.nblocks; f++)
			if (geometry.nblocks % f == 0 &&
				ldexp(geometry.nblocks / f, geometry.block_log2) >=
				needed_bits(fpp, fmax(keys, 1)))
				best = f;

		memset(&folded, 0, sizeof(folded));
		did = bf_geometry_fold(&geometry, set, &folded);
		folds += did;
		EQUAL(did, (best > 1));
		EQUAL(folded.nblocks, geometry.nblocks / best);
		EQUAL(folded.block_log2, geometry.block_log2);
		HOLDS(folded.k == geometry.k && folded.fpp == geometry.fpp);

		/* It is the layer that one would get by asking for its capacity. */
		EQUAL(folded.capacity, capacity_of_blocks(fpp, folded.nblocks));
		designed = geometry_for(fpp, false, folded.capacity);
		EQUAL(designed.nblocks, folded.nblocks);
		EQUAL(designed.capacity, folded.capacity);

		/* A layer of another make has a rate that is not known. */
		geometry.k++;
		HOLDS(!bf_geometry_fold(&geometry, set, &folded));
		HOLDS(folded.nblocks == geometry.nblocks && folded.k == geometry.k);
		geometry.k--;
		geometry.block_log2 = geometry.block_log2 == BF_MAX_BLOCK_LOG2 ?
			BF_MIN_BLOCK_LOG2 : (uint8_t) (geometry.block_log2 + 1);
		HOLDS(!bf_geometry_fold(&geometry, set, &folded));
		EQUAL(folded.nblocks, geometry.nblocks);
	}
	HOLDS(folds > rounds / 10 && folds < rounds);
}

int
main(void)
{
	tap_run("standard bits per key", test_standard);
	tap_run("bits per key and block size follow the table", test_table);
	tap_run("the smallest block within 5 %, its best k and bits", test_design);
	tap_run("on pages, few hash functions", test_paged_design);
	tap_run("a layer of the design for pages can be folded", test_paged_fold);
	tap_run("a rate has one design", test_remembered);
	tap_run("a million keys take 1.06 times the bits", test_million);
	tap_run("number of blocks and capacity", test_geometries);
	tap_run("the limit of 2^32 bits", test_limit);
	tap_run("cardinality inverts the number of bits", test_cardinality);
	tap_run("any number of bits has a rate and keys", test_saturated);
	tap_run("the rate of a content", test_rate_of_content);
	tap_run("a full layer is not far beyond its design", test_full);
	tap_run("folding to the smallest divisor that keeps the rate", test_fold);
	tap_run("sizes that the layer to be folded can come to", test_geometry_to_fold);
	return tap_done();
}
