/*-------------------------------------------------------------------------
 *
 * test_hash.c
 *	  The hash of a key: XXH3, 64 bits, seeded.
 *
 * The hashes are part of the format: a filter that was stored yesterday is
 * of no use to a library that hashes otherwise.  The expected values come
 * from python3-xxhash, those without a seed also from xxhsum -H3.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

/*
 * Lengths around all turns that XXH3 takes, each under four seeds, of bytes of
 * which number i is 131 i + 7 modulo 256.  Of the hashes under one seed, this is
 * what is left when each is XORed to what there is, which is then multiplied
 * by the third seed.
 */
static const uint64_t seeds[4] = {
	0, 42, UINT64_C(0x9E3779B97F4A7C15), UINT64_MAX
};
static const size_t sizes[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64, 65, 96, 97,
	127, 128, 129, 160, 192, 239, 240, 241, 255, 256, 257, 511, 512, 513,
	1023, 1024, 1025, 2047, 2048, 2049, 4096, 10000
};
static const uint64_t digests[4] = {
	UINT64_C(0x1B061884FFA5D354), UINT64_C(0xDA0FF2E037F17322),
	UINT64_C(0x33598003E6FAC6B6), UINT64_C(0xF32E395300E85F5A)
};

static const struct
{
	const char *text;
	uint64_t	hash;
	uint64_t	hash42;
}			texts[] = {
	{"", UINT64_C(0x2D06800538D394C2), UINT64_C(0xB029411FF43D84D2)},
	{"a", UINT64_C(0xE6C632B61E964E1F), UINT64_C(0x4C437DD47F0716F4)},
	{"abc", UINT64_C(0x78AF5F94892F3950), UINT64_C(0xD8438DEF21BBDCC3)},
	{"hello", UINT64_C(0x9555E8555C62DCFD), UINT64_C(0xBAFA072F07DB7937)},
	{"PostgreSQL", UINT64_C(0x76393C2D77B3AEEE),
	UINT64_C(0xB29532F6FD4C9FA8)},
	{"Gr\xC3\xBC\xC3\x9F" "e", UINT64_C(0xB40C17E2196D97D8),
	UINT64_C(0x8CAC2955CB59D9E3)},
	{"https://www.postgresql.org/docs/", UINT64_C(0x7F0AC0CBF0A2F325),
	UINT64_C(0x1BDCF6F3E1C892BB)},
	{"The quick brown fox jumps over the lazy dog",
		UINT64_C(0xCE7D19A5418FB365),
	UINT64_C(0xB4A3F3C36B3C7D26)}
};

/* Of the eight bytes of a number, least significant first. */
static const struct
{
	uint64_t	value;
	uint64_t	hash;
	uint64_t	hash42;
}			numbers[] = {
	{0, UINT64_C(0xC77B3ABB6F87ACD9), UINT64_C(0x4596708167F8EB2E)},
	{1, UINT64_C(0x2FBC593564DB792E), UINT64_C(0xE3ACD5DEC7D7D3FB)},
	{255, UINT64_C(0x0D00568A2225A3E5), UINT64_C(0x169B423BA1B0FBA8)},
	{256, UINT64_C(0x8822485C398FDCE3), UINT64_C(0x27C1276FB82BB76B)},
	{UINT64_C(0x0123456789ABCDEF), UINT64_C(0xB78DF414284277A6),
	UINT64_C(0xAD2AD1AC61C2919A)},
	{UINT64_C(0x8000000000000000), UINT64_C(0x828F2476789A0E5F),
	UINT64_C(0x8FFD6E7EAE2CB767)},
	{UINT64_MAX, UINT64_C(0x5111C7E47D784413),
	UINT64_C(0x412B089853A0709E)}
};

static void
test_lengths(void)
{
	/* A key is in a tuple at any address. */
	for (size_t at = 0; at < 9; at++)
		for (size_t s = 0; s < LENGTH(seeds); s++)
		{
			uint64_t	digest = 0;

			for (size_t i = 0; i < LENGTH(sizes); i++)
			{
				uint8_t    *bytes = exactly(at + sizes[i]);

				for (size_t j = 0; j < sizes[i]; j++)
					bytes[at + j] = (uint8_t) (131 * j + 7);
				digest ^= bf_hash_bytes(bytes + at, sizes[i], seeds[s]);
				digest *= seeds[2];
				free(bytes);
			}
			CHECK(digest == digests[s], "at %zu, seed %zu", at, s);
		}
}

static void
test_texts(void)
{
	for (size_t i = 0; i < LENGTH(texts); i++)
	{
		const char *text = texts[i].text;

		EQUAL(bf_hash_bytes(text, strlen(text), 0), texts[i].hash);
		EQUAL(bf_hash_bytes(text, strlen(text), 42), texts[i].hash42);
	}
}

static void
test_numbers(void)
{
	uint64_t	state = 1;

	for (size_t i = 0; i < LENGTH(numbers); i++)
	{
		EQUAL(bf_hash_u64(numbers[i].value, 0), numbers[i].hash);
		EQUAL(bf_hash_u64(numbers[i].value, 42), numbers[i].hash42);
	}
	for (size_t i = 0; i < 1000; i++)
	{
		uint64_t	value = random64(&state);
		uint64_t	seed = random64(&state);
		uint8_t		bytes[8];

		for (int j = 0; j < 8; j++)
			bytes[j] = (uint8_t) (value >> 8 * j);
		EQUAL(bf_hash_u64(value, seed), bf_hash_bytes(bytes, 8, seed));
	}
}

/* Keys differ in their last bits; what a block is chosen by is the first. */
static void
test_spread(void)
{
	uint64_t	n = scaled(1000000, 100000);
	double		counts[256] = {0};
	double		chi2 = 0;

	for (uint64_t i = 0; i < n; i++)
		counts[bf_hash_u64(i, 0) >> 56]++;
	for (int byte = 0; byte < 256; byte++)
	{
		double		off = counts[byte] - (double) n / 256;

		chi2 += off * off / ((double) n / 256);
	}

	/* 255 degrees of freedom: mean 255, standard deviation 22.6 */
	HOLDS(chi2 > 255 - 5 * 22.6 && chi2 < 255 + 5 * 22.6);
}

/*
 * Shards, worked out by another program: hash the hash with the seed "shard"
 * and scale.  To be the same for ever: data lie where they say.
 */
static void
test_shards(void)
{
	static const struct
	{
		uint64_t	hash;
		uint32_t	shards;
		uint32_t	shard;
	}			cases[] = {
		{UINT64_C(0x0000000000000000), UINT32_C(1), UINT32_C(0)},
		{UINT64_C(0x0000000000000000), UINT32_C(16), UINT32_C(14)},
		{UINT64_C(0x0000000000000001), UINT32_C(16), UINT32_C(9)},
		{UINT64_C(0xC77B3ABB6F87ACD9), UINT32_C(16), UINT32_C(3)},
		{UINT64_C(0xC77B3ABB6F87ACD9), UINT32_C(1000), UINT32_C(232)},
		{UINT64_C(0xFFFFFFFFFFFFFFFF), UINT32_C(7), UINT32_C(5)},
		{UINT64_MAX, UINT32_C(4294967295), UINT32_C(3081373978)},
		{(uint64_t) 1 << 63, UINT32_C(2147483648), UINT32_C(2015951963)},
		{UINT64_C(0x0123456789ABCDEF), UINT32_C(3), UINT32_C(1)}
	};
	uint64_t	n = scaled(1000000, 100000);
	double		counts[2][10];
	int			half,
				s;

	for (size_t i = 0; i < LENGTH(cases); i++)
	{
		uint32_t	shard = bf_shard(cases[i].hash, cases[i].shards);

		EQUAL(shard, cases[i].shard);
	}

	/*
	 * Whatever half of the blocks a key falls in, it falls in any shard.  A
	 * count's standard deviation is the root of its mean.
	 */
	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < n; i++)
	{
		uint64_t	hash = bf_hash_u64(i, 0);

		counts[hash >> 63][bf_shard(hash, 10)]++;
	}
	for (half = 0; half < 2; half++)
		for (s = 0; s < 10; s++)
			HOLDS(fabs(counts[half][s] - (double) n / 20) < 5 *
				  sqrt((double) n / 20));
}

int
main(void)
{
	tap_run("bytes of every length class hash as XXH3 says", test_lengths);
	tap_run("texts hash as XXH3 says", test_texts);
	tap_run("numbers hash as their little-endian bytes", test_numbers);
	tap_run("sequential numbers spread evenly", test_spread);
	tap_run("shards are what they were, even, and apart from blocks",
			test_shards);
	return tap_done();
}
