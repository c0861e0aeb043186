/*-------------------------------------------------------------------------
 *
 * test_bits.c
 *	  Kernels on blocks, against a slow implementation of the definition; layers
 *	  of which single blocks are in memory, with sizes beyond those of an image.
 *
 * The reference is written from the text of the design: block number = high
 * 64 bits of the 128-bit product of hash and number of blocks; bit i of the
 * block = top bits of hash times the i-th power of G; bit b of a layer is
 * bit b modulo 8, counted from the least significant, of byte b / 8.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bits.h"

/* High word of a product, by schoolbook multiplication of 16-bit digits. */
static uint64_t
high_of_product(uint64_t x, uint64_t y)
{
	uint32_t	digits[8] = {0};
	uint64_t	high = 0;

	for (int i = 0; i < 4; i++)
	{
		uint32_t	carry = 0;

		for (int j = 0; j < 4; j++)
		{
			uint32_t	xi = (uint32_t) (x >> 16 * i & 0xFFFF);
			uint32_t	yj = (uint32_t) (y >> 16 * j & 0xFFFF);
			uint32_t	sum = xi * yj + digits[i + j] + carry;

			digits[i + j] = sum & 0xFFFF;
			carry = sum >> 16;
		}
		digits[i + 4] = carry;
	}
	for (int i = 7; i >= 4; i--)
		high = high << 16 | digits[i];
	return high;
}

/* Number, in the layer, of bit i of a hash, i from 1. */
static uint64_t
reference_bit(const BfGeometry *geometry, uint64_t hash, int i)
{
	uint64_t	block = high_of_product(hash, geometry->nblocks);
	uint64_t	x = hash;

	while (i-- > 0)
		x *= UINT64_C(11400714819323198485);
	return (block << geometry->block_log2) + (x >> (64 - geometry->block_log2));
}

static bool
reference_get(const uint8_t *bits, uint64_t bit)
{
	return bits[bit / 8] >> bit % 8 & 1;
}

static void
reference_add(const BfGeometry *geometry, uint8_t *bits, uint64_t hash)
{
	for (int i = 1; i <= geometry->k; i++)
	{
		uint64_t	bit = reference_bit(geometry, hash, i);

		bits[bit / 8] = (uint8_t) (bits[bit / 8] | 1 << bit % 8);
	}
}

static bool
reference_contain(const BfGeometry *geometry, const uint8_t *bits, uint64_t hash)
{
	for (int i = 1; i <= geometry->k; i++)
		if (!reference_get(bits, reference_bit(geometry, hash, i)))
			return false;
	return true;
}

static uint64_t
reference_count(const uint8_t *bits, size_t size)
{
	uint64_t	count = 0;

	for (uint64_t bit = 0; bit < 8 * (uint64_t) size; bit++)
		count += reference_get(bits, bit);
	return count;
}

/* Hashes at the edges of words, half-words and blocks. */
static const uint64_t extremes[] = {
	0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
	UINT64_C(0x100000000), UINT64_C(0x7FFFFFFFFFFFFFFF),
	UINT64_C(0x8000000000000000), UINT64_C(0x8000000000000001),
	UINT64_C(0xFFFFFFFF00000000), UINT64_C(0xFFFFFFFF00000001),
	UINT64_C(0xFFFFFFFFFFFFFFFE), UINT64_MAX,
	UINT64_C(0x5555555555555555), UINT64_C(0x5555555555555556),
	UINT64_C(0xAAAAAAAAAAAAAAAA), UINT64_C(0xAAAAAAAAAAAAAAAB)
};

#define NEXTREMES	(LENGTH(extremes))

static BfGeometry
geometry_of(uint32_t nblocks, int block_log2, int k)
{
	BfGeometry	geometry = {nblocks, (uint8_t) block_log2, (uint8_t) k, 0, 1, 0.01};

	return geometry;
}

static uint8_t *
zeros(size_t size)
{
	return memset(exactly(size), 0, size);
}

/* Worked out apart from any of this code. */
static void
test_golden(void)
{
	static const struct
	{
		uint64_t	hash;
		BfGeometry	geometry;
		uint64_t	bits[6];
	}			cases[] = {
		{1, {1, 9, 4, 0, 1, 0.01}, {316, 446, 192, 434}},
		{UINT64_C(0xC77B3ABB6F87ACD9), {20, 9, 6, 0, 1, 0.01},
		{8092, 8163, 7697, 8051, 7977, 7683}},
		{UINT64_C(0x0123456789ABCDEF), {1000, 12, 5, 0, 1, 0.01},
		{16585, 17600, 18411, 18103, 19725}},
		{UINT64_MAX, {7, 14, 4, 0, 1, 0.01}, {104562, 100398, 108525, 100783}}
	};

	for (size_t i = 0; i < LENGTH(cases); i++)
	{
		const BfGeometry *geometry = &cases[i].geometry;
		size_t		size = bf_geometry_size(geometry);
		uint8_t    *bits = zeros(size);
		unsigned	added = bf_bits_add(geometry, bits, cases[i].hash);

		CHECK(added == reference_count(bits, size), "case %zu", i);
		for (int j = 0; j < geometry->k; j++)
		{
			uint64_t	bit = cases[i].bits[j];

			EQUAL(reference_bit(geometry, cases[i].hash, j + 1), bit);
			CHECK(reference_get(bits, bit), "case %zu, bit %d", i, j + 1);
		}
		free(bits);
	}
}

/* Every block size and k: same bits, same answers, right counts. */
static void
test_reference(void)
{
	uint64_t	state = 1;

	for (int log2 = BF_MIN_BLOCK_LOG2; log2 <= BF_MAX_BLOCK_LOG2; log2++)
		for (int k = 1; k <= BF_MAX_HASHES; k++)
		{
			BfGeometry	geometry = geometry_of(1 + (uint32_t)
											   (random64(&state) % 5), log2, k);
			size_t		size = bf_geometry_size(&geometry);
			uint8_t    *bits = zeros(size);
			uint8_t    *expected = zeros(size);
			int			keys = (1 << log2) / k / 4 + 2;
			uint64_t	count = 0;

			tap_case("2^%d, k = %d", log2, k);
			if (!is_long() && k % 8 > 1)
				keys = 2;
			for (int i = 0; i < keys; i++)
			{
				uint64_t	hash = random64(&state);
				unsigned	added = bf_bits_add(&geometry, bits, hash);

				reference_add(&geometry, expected, hash);
				count += added;
				HOLDS(bf_bits_contain(&geometry, bits, hash));
				EQUAL(bf_bits_add(&geometry, bits, hash), 0);
			}
			EQUAL(memcmp(bits, expected, size), 0);
			EQUAL(count, reference_count(expected, size));
			for (int i = 0; i < 200; i++)
			{
				uint64_t	hash = random64(&state);

				EQUAL(bf_bits_contain(&geometry, bits, hash),
					  reference_contain(&geometry, expected, hash));
			}
			free(bits);
			free(expected);
		}
}

/* How many bits an add reports, one add at a time. */
static void
test_added(void)
{
	static const int ks[] = {1, 3, 6, 13, 64};
	uint64_t	state = 2;

	for (size_t i = 0; i < LENGTH(ks); i++)
	{
		BfGeometry	geometry = geometry_of(3, 9, ks[i]);
		size_t		size = bf_geometry_size(&geometry);
		uint8_t    *bits = zeros(size);
		uint64_t	before = 0;

		for (int j = 0; j < 600; j++)
		{
			unsigned	added = bf_bits_add(&geometry, bits, random64(&state));
			uint64_t	count = reference_count(bits, size);

			EQUAL(count - before, added);
			before = count;
		}
		free(bits);
	}
}

/* A key whose bits are all set but one is absent, whichever one it is. */
static void
test_every_bit_counts(void)
{
	uint64_t	state = 3;

	for (int k = 1; k <= BF_MAX_HASHES; k++)
	{
		BfGeometry	geometry = geometry_of(2, 14, k);
		size_t		size = bf_geometry_size(&geometry);
		uint8_t    *bits = exactly(size);
		uint64_t	hash = random64(&state);

		memset(bits, 0xFF, size);
		CHECK(bf_bits_contain(&geometry, bits, hash), "k = %d: all set", k);
		for (int missing = 1; missing <= k; missing++)
		{
			uint64_t	bit = reference_bit(&geometry, hash, missing);

			bits[bit / 8] = (uint8_t) ~(1 << bit % 8);
			HOLDS(!bf_bits_contain(&geometry, bits, hash));
			bits[bit / 8] = 0xFF;
		}

		/* The bit after the last one does not matter. */
		if (k < BF_MAX_HASHES)
		{
			uint64_t	bit = reference_bit(&geometry, hash, k + 1);
			bool		other = true;

			for (int i = 1; i <= k; i++)
				other &= reference_bit(&geometry, hash, i) != bit;
			bits[bit / 8] = (uint8_t) ~(1 << bit % 8);
			EQUAL(bf_bits_contain(&geometry, bits, hash), other);
		}
		free(bits);
	}
}

/* Whatever the hash: the block is one of the layer's, and the right one. */
static void
test_extremes(void)
{
	static const uint32_t nblocks[] = {
		1, 2, 3, 5, 7, 255, 256, 257, 65535, 65536, 1 << 18
	};
	uint64_t	state = 4;

	for (size_t i = 0; i < LENGTH(nblocks); i++)
	{
		BfGeometry	geometry = geometry_of(nblocks[i], 9, 6);
		size_t		size = bf_geometry_size(&geometry);
		uint8_t    *bits = zeros(size);
		uint8_t    *expected = zeros(size);

		for (size_t j = 0; j < NEXTREMES + 3 * 200; j++)
		{
			uint64_t	hash;

			if (j < NEXTREMES)
				hash = extremes[j];
			else
			{
				/* First and last hashes of a block, and one before. */
				uint64_t	block = random64(&state) % nblocks[i];

				hash = UINT64_MAX / nblocks[i] * block + j % 3 - 1;
			}
			HOLDS(high_of_product(hash, nblocks[i]) < nblocks[i]);
			bf_bits_add(&geometry, bits, hash);
			reference_add(&geometry, expected, hash);
			HOLDS(bf_bits_contain(&geometry, bits, hash));
		}
		EQUAL(memcmp(bits, expected, size), 0);
		free(bits);
		free(expected);
	}
}

/* The largest layer there can be.  Few of its pages are ever touched. */
static void
test_largest(void)
{
	BfGeometry	geometry = geometry_of(1 << 23, 9, 6);
	uint8_t    *bits = calloc(bf_geometry_size(&geometry), 1);

	EQUAL(bf_geometry_size(&geometry), (size_t) 1 << 29);
	if (bits == NULL)
	{
		printf("# 512 MiB are not to be had here, so the largest layer is "
			   "not tried\n");
		return;
	}
	for (size_t i = 0; i < NEXTREMES; i++)
	{
		bf_bits_add(&geometry, bits, extremes[i]);
		HOLDS(bf_bits_contain(&geometry, bits, extremes[i]));
		for (int j = 1; j <= geometry.k; j++)
			HOLDS(reference_get(bits, reference_bit(&geometry, extremes[i],
													j)));
	}
	free(bits);
}

/* An image may lie at any address. */
static void
test_kernels(void)
{
	uint64_t	state = 5;
	TestEnv		env;

	env_init(&env, SIZE_MAX);
	for (int round = 0; round < 400; round++)
	{
		/*
		 * A few of them longer than what is done between two check for
		 * interrupts.
		 */
		size_t		size = 64 * (1 + random64(&state) %
								 (round % 40 == 0 ? 40000 : 40));
		size_t		at = random64(&state) % 8;
		uint8_t    *x = exactly(at + size);
		uint8_t    *y = exactly(size);
		uint8_t    *both = exactly(size);
		uint8_t    *common = exactly(size);
		uint8_t    *z = exactly(size);

		for (size_t i = 0; i < at; i++)
			x[i] = 0xEE;
		for (size_t i = 0; i < size; i++)
		{
			/* Sparse, dense, all and nothing. */
			x[at + i] = (uint8_t) (round % 7 == 0 ? 0 : round % 7 == 1 ? 255 :
								   random64(&state) & random64(&state));
			y[i] = (uint8_t) (round % 5 == 0 ? 255 : random64(&state));
			both[i] = x[at + i] | y[i];
			common[i] = x[at + i] & y[i];
		}
		HOLDS(bf_bitmap_combine(&no_interrupts, false, NULL, x + at, x + at,
								size) == reference_count(x + at, size));
		HOLDS(bf_bitmap_combine(&env.env.interrupts, false, NULL, x + at, y,
								size) == reference_count(both, size));
		HOLDS(bf_bitmap_combine(&env.env.interrupts, false, NULL, y, x + at,
								size) == reference_count(both, size));
		memcpy(z, x + at, size);
		EQUAL(bf_bitmap_combine(&env.env.interrupts, true, z, z, y, size),
			  reference_count(common, size));
		EQUAL(memcmp(z, common, size), 0);
		EQUAL(bf_bitmap_combine(&env.env.interrupts, false, x + at, x + at, y,
								size), reference_count(both, size));
		CHECK(memcmp(x + at, both, size) == 0, "union of %zu bytes", size);
		for (size_t i = 0; i < at; i++)
			CHECK(x[i] == 0xEE, "written before the first block");
		free(x);
		free(y);
		free(both);
		free(common);
		free(z);
	}
}

/* A cancel request waits for 16 kB at most. */
static void
test_polls(void)
{
	size_t		size = (size_t) 8 << 20;
	long		chunks = 512;
	uint8_t    *x = exactly(size);
	uint8_t    *y = exactly(size);
	TestEnv		env;

	memset(x, 1, size);
	memset(y, 2, size);
	env_init(&env, SIZE_MAX);
	bf_bitmap_combine(&env.env.interrupts, false, x, x, y, size);
	CHECK(env.polls == chunks, "uniting: %ld", env.polls);
	bf_bitmap_combine(&env.env.interrupts, true, x, x, y, size);
	CHECK(env.polls == 2 * chunks, "intersecting: %ld", env.polls);
	bf_bitmap_fold(&env.env.interrupts, x, y, (uint32_t) (size / 64), 4, 64);
	CHECK(env.polls == 3 * chunks, "folding: %ld", env.polls);
	free(x);
	free(y);
}

/* A folded layer is the layer that would have been built smaller. */
static void
test_fold(void)
{
	static const struct
	{
		uint32_t	nblocks;
		uint32_t	factor;
	}			cases[] = {
		{1, 1}, {2, 1}, {2, 2}, {6, 2}, {6, 3}, {6, 6}, {64, 2}, {64, 32},
		{64, 64}, {45, 3}, {45, 5}, {45, 9}, {45, 15}, {45, 45}, {35, 7},
		{254, 127}, {1020, 17}, {1016, 127}, {900, 25}
	};
	uint64_t	state = 6;

	for (int log2 = BF_MIN_BLOCK_LOG2; log2 <= BF_MAX_BLOCK_LOG2; log2++)
		for (size_t c = 0; c < LENGTH(cases); c++)
		{
			BfGeometry	geometry = geometry_of(cases[c].nblocks, log2, 7 + (int) c);
			BfGeometry	small = geometry_of(cases[c].nblocks / cases[c].factor,
											log2, 7 + (int) c);
			uint8_t    *from = zeros(bf_geometry_size(&geometry));
			uint8_t    *to = exactly(bf_geometry_size(&small));
			uint8_t    *direct = zeros(bf_geometry_size(&small));
			size_t		keys = 4 * (size_t) cases[c].nblocks + 20;
			TestEnv		env;

			tap_case("case %zu, 2^%d", c, log2);
			env_init(&env, SIZE_MAX);
			memset(to, 0xA5, bf_geometry_size(&small));
			for (size_t i = 0; i < NEXTREMES + keys; i++)
			{
				uint64_t	hash = i < NEXTREMES ? extremes[i]
					: random64(&state);

				bf_bits_add(&geometry, from, hash);
				bf_bits_add(&small, direct, hash);
			}
			bf_bitmap_fold(&env.env.interrupts, to, from, cases[c].nblocks,
						   cases[c].factor, (size_t) 1 << log2 >> 3);
			EQUAL(memcmp(to, direct, bf_geometry_size(&small)), 0);
			bf_bitmap_fold(&env.env.interrupts, from, from, cases[c].nblocks,
						   cases[c].factor, (size_t) 1 << log2 >> 3);
			EQUAL(memcmp(from, direct, bf_geometry_size(&small)), 0);
			free(from);
			free(to);
			free(direct);
		}
}

/* Single blocks have the bits of the whole layer. */
static void
same_bits(void)
{
	static const double rates[] = {0.1, 0.01, 1e-3, 1e-5, 1e-9};

	for (size_t r = 0; r < LENGTH(rates); r++)
	{
		BfGeometry	geometry;
		uint8_t    *whole;
		uint8_t    *blocks;
		uint64_t	set = 0;

		bf_geometry_for(rates[r], false, 3000, &geometry);
		geometry.generation = (uint8_t) r;
		whole = calloc(1, bf_geometry_size(&geometry));
		blocks = calloc(1, bf_geometry_size(&geometry));
		for (uint64_t i = 0; i < 3000; i++)
		{
			uint64_t	hash = key(i, r);
			uint8_t    *block = blocks +
				bf_blocks_size(&geometry, bf_block_number(&geometry, hash));

			bf_bits_add(&geometry, whole, hash);
			set += bf_block_add(&geometry, block, hash);
			HOLDS(bf_block_contains(&geometry, block, hash));
		}
		EQUAL(memcmp(whole, blocks, bf_geometry_size(&geometry)), 0);
		EQUAL(set, bf_blocks_bits_set(blocks, bf_geometry_size(&geometry)));
		for (uint64_t i = 3000; i < 6000; i++)
		{
			uint64_t	hash = key(i, r);
			uint8_t    *block = blocks +
				bf_blocks_size(&geometry, bf_block_number(&geometry, hash));

			EQUAL(bf_block_contains(&geometry, block, hash),
				  bf_bits_contain(&geometry, whole, hash));
		}
		free(whole);
		free(blocks);
	}
}

/* All of a layer is full when the layer is, and half of it at half of that. */
static void
share_full(void)
{
	BfGeometry	geometry;
	uint64_t	full;

	bf_geometry_for(0.01, false, 12345, &geometry);
	full = bf_blocks_full(&geometry, geometry.nblocks);
	EQUAL(full, bf_geometry_full(&geometry));
	HOLDS(geometry.nblocks % 2 != 0 ||
		  bf_blocks_full(&geometry, geometry.nblocks / 2) == full / 2);
}

/*
 * The rate of a layer far beyond the size of an image.  Only some of its
 * blocks are made: their keys are those hashes that fall into them, an even
 * share of all.
 */
static void
large_rate(double fpp, uint64_t n, uint64_t probes)
{
	enum
	{
		MADE = 2000
	};
	BfGeometry	geometry;
	uint64_t	random = 7;
	uint64_t	found = 0;
	uint64_t	first = UINT64_C(1) << 63;
	uint64_t	span;
	uint64_t	made_keys;
	uint8_t    *blocks;

	EQUAL(bf_geometry_for(fpp, true, n, &geometry), BF_OK);
	CHECK(bf_geometry_bits(&geometry) > BF_MAX_BITS,
		  "no larger than an image");
	span = UINT64_MAX / geometry.nblocks * MADE;
	blocks = calloc(MADE + 2, bf_blocks_size(&geometry, 1));
	made_keys = (uint64_t) ((double) geometry.capacity / geometry.nblocks *
							MADE);

	for (uint64_t i = 0; i < made_keys + probes; i++)
	{
		uint64_t	hash = first + random64(&random) % span;
		uint32_t	block = bf_block_number(&geometry, hash) -
			bf_block_number(&geometry, first);
		uint8_t    *at = blocks + bf_blocks_size(&geometry, block);

		if (i < made_keys)
			bf_block_add(&geometry, at, hash);
		else
			found += bf_block_contains(&geometry, at, hash);
	}
	HOLDS((double) found < 1.1 * fpp * (double) probes + 4 * sqrt(fpp *
																  (double) probes));
	HOLDS((double) found > 0.8 * fpp * (double) probes - 4 * sqrt(fpp *
																  (double) probes));
	free(blocks);
}

static void
large_layers(void)
{
	BfGeometry	geometry;

	large_rate(0.005, UINT64_C(1000000000), scaled(5000000, 500000));
	large_rate(0.005, UINT64_C(10000000000), scaled(5000000, 500000));
	large_rate(5e-4, UINT64_C(10000000000), scaled(20000000, 1000000));
	EQUAL(bf_geometry_for(0.005, true, UINT64_C(90000000000), &geometry),
		  BF_OK);
	EQUAL(bf_geometry_for(0.005, true, UINT64_C(1000000000000), &geometry),
		  BF_TOO_LARGE);
}

int
main(void)
{
	tap_run("positions worked out by hand", test_golden);
	tap_run("every block size and k sets and finds the reference's bits",
			test_reference);
	tap_run("adding reports how many bits it set", test_added);
	tap_run("each of the k bits counts, and no other",
			test_every_bit_counts);
	tap_run("extreme hashes stay in their block", test_extremes);
	tap_run("the largest layer", test_largest);
	tap_run("counting, uniting, intersecting and copying", test_kernels);
	tap_run("kernels poll", test_polls);
	tap_run("folding gives what building smaller gives", test_fold);
	tap_run("single blocks have the bits of the whole layer", same_bits);
	tap_run("the share of a part in a full layer", share_full);
	tap_run("layers beyond the size of an image have their rate",
			large_layers);
	return tap_done();
}
