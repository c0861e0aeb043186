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
 * Lengths around all turns that XXH3 takes, each under four seeds, of bytes
 * of which number i is 131 i + 7 modulo 256.
 */
static const uint64_t seeds[4] = {
	0, 42, UINT64_C(0x9E3779B97F4A7C15), UINT64_MAX
};

typedef struct Pattern
{
	size_t		size;
	uint64_t	hashes[4];
} Pattern;

#define PATTERN(size, h1, h2, h3, h4) \
	{size, {UINT64_C(h1), UINT64_C(h2), UINT64_C(h3), UINT64_C(h4)}}

static const Pattern patterns[] = {
	PATTERN(0, 0x2D06800538D394C2, 0xB029411FF43D84D2,
			0x602B0E2CD6662C8B, 0x4C093276AE47A555),
	PATTERN(1, 0x4C5CCA45D0F4811F, 0xC72384329881F542,
			0x2F3ACD3805F81DE3, 0x36CE6DE3F8CE2550),
	PATTERN(2, 0x29C60963CBFA4E6E, 0x06522E37B0708B01,
			0x28A7B77C08C091EB, 0x3C22FBF2E52C4222),
	PATTERN(3, 0x6E3E2670E61106AC, 0x06BE808A0F1E13D6,
			0xBC74611D87F659E0, 0x4E704406273A2F10),
	PATTERN(4, 0x5C4C63133443D03F, 0xCCA1C5C31699ED91,
			0x6C3753177C607DE4, 0x7D3C976072267E11),
	PATTERN(5, 0x49F5EB3111280B63, 0x00F6355CD943C259,
			0xC527066B4C496B85, 0xF9CE6A22E619E421),
	PATTERN(7, 0x46A5C724D51FE43F, 0x767DE11FC4002F28,
			0x3E7941A452179655, 0xD6DDA6D227CB596B),
	PATTERN(8, 0xF9FD4DD0B04D78F5, 0x859EE438A590E13D,
			0xBC72D0531396303F, 0xCDB415EADB92D8C2),
	PATTERN(9, 0x7C20DF9712C26EDF, 0x18D8D7990EFDCE09,
			0x93C5AA006102DAF5, 0xDAA24BB15E66F8C7),
	PATTERN(12, 0x16D2DFF54DC2EE45, 0xA48E50F6CCFE8183,
			0xFE7FFCDD4D01FE31, 0x9D39C23819795E86),
	PATTERN(15, 0xB345A7B2698BA575, 0x76F60777A81E660A,
			0x082933F851BA6E46, 0xF2193B528742D238),
	PATTERN(16, 0x86ABF6BACCEA0858, 0x3DFB7C5AE85844FE,
			0x69D001B16ECF450A, 0x3F0451510585CFF3),
	PATTERN(17, 0xB58BF5DC5022D071, 0x75BB843C3DF21312,
			0xB7C99D19BE27EB69, 0x397BBD722A5D5277),
	PATTERN(24, 0x08CE26A7964BA200, 0xCDC0D5AFD4DF0662,
			0x4BB8532C0F764B96, 0x737DF689365CF240),
	PATTERN(31, 0x48442FCD5518B086, 0x59449C41BD180FDB,
			0x4D0CA634AB4CA4F4, 0x6194CA176FF896BB),
	PATTERN(32, 0xE3712ED84C04A66E, 0x3C7F87D5A8AF1DEE,
			0xE5FB38C81D49C6F5, 0xCB9CAA178B185B77),
	PATTERN(33, 0xA4DEE99B093E1F73, 0x90F34DFBE86805F0,
			0x5A46A370C35146AC, 0x52B233361D732E92),
	PATTERN(64, 0x1291D2D4042330DD, 0x5148DB359644EE58,
			0x543FA55D8DB03991, 0xF6FF5AD357D38EC6),
	PATTERN(65, 0x97C6BF83217E5EC9, 0x9985D4F00C416D87,
			0xF3EFE40559A76A28, 0x8983CA26F86872B1),
	PATTERN(96, 0x81296929FC063365, 0xB2E4E137F9E11B30,
			0x260F288635623EE8, 0xBA85DFC936A1D32B),
	PATTERN(97, 0xF145A45B658AB9DD, 0xFA09B106DBD576BB,
			0x58817B2A6EC0ED2E, 0xA92B24B79C584A09),
	PATTERN(127, 0xED4CF62104020DB5, 0x945832BC7F22B660,
			0x12557EB9B4C6D9C6, 0x493ED38BDABBF626),
	PATTERN(128, 0x10D17F72C0CCBA41, 0xA80975A8E9C98D88,
			0x49B81C6E0ABB9305, 0x8CEB4F7C4CEBFF08),
	PATTERN(129, 0x1648BDC3DB49D1A2, 0xB5978592DA15B4C3,
			0x5E3831B221810B00, 0x7706F67EF1F6CBA6),
	PATTERN(160, 0x655C8DC33B4B4C4A, 0x4BEFCA0B9F758B59,
			0x3C40F880A7D41EBF, 0xFD080CD60F3A429C),
	PATTERN(192, 0xDAF64F63DC7D5E36, 0xD6A1DE00D748A460,
			0x8A25C40E51DD909B, 0xD83576BB3782107C),
	PATTERN(239, 0xF0D154819ADB16CD, 0x35170653CB6C70E5,
			0x23AD00DEA6ED6611, 0xFBDFCB70DF9A1A3F),
	PATTERN(240, 0xB6CFAF343FAB81E6, 0xD865D0B2178586A4,
			0x76A73EC26433F82C, 0x44C6095D221569F6),
	PATTERN(241, 0x956CAE592C67279E, 0xF10C69779CBA8524,
			0x2BE236BA3BACF75C, 0xC895ED9E580244D6),
	PATTERN(255, 0x64A6073025EB7929, 0xD1C8CE4AC4EFD6F8,
			0x407522CE8DDF4B58, 0x7CF75A595A30B0F7),
	PATTERN(256, 0xB15E550733C5DFAC, 0x1FEEDDA695EC7F63,
			0x92999D62F0815EEF, 0x72DBBC40BB89F1EA),
	PATTERN(257, 0x87B3BF2D941CF085, 0xE48D63F3B13F2929,
			0x49D44AE56FAE6E04, 0x514D710244F74DCD),
	PATTERN(511, 0x5A17DA924907228A, 0x5E95F77AF1822ABF,
			0x4978D24EE7555891, 0xBDEEEB936F71C7FA),
	PATTERN(512, 0xA0E9790EB93990D7, 0xF4EB96D4D409C646,
			0x36385C68AA6755EA, 0x5460F9644D7B0EB7),
	PATTERN(513, 0x984828B9EFD042CB, 0xBF72B5F77720F325,
			0xF6248B1A08DAE670, 0x4135C35A61166BFC),
	PATTERN(1023, 0xA94FFCD2254368E4, 0x49A1A5A2067B58D1,
			0x4DE00B8BA99FE3EA, 0x74791D4AEA824BBC),
	PATTERN(1024, 0x70BD377D9574F4BB, 0x0052D93F0342F851,
			0xD8CF6B464541F232, 0xCBB7E3E786BA8E7D),
	PATTERN(1025, 0x66C4487C41E127A7, 0x8C0470D62FC408F6,
			0x8DC3A55E9C26D886, 0x48B8F100BC047E95),
	PATTERN(2047, 0xDED1F434A1510C6A, 0xA6465CA6DBC769BF,
			0x30D2806C6F0FF0D5, 0x870F1C28AF645921),
	PATTERN(2048, 0x8B46CAA67DAB3A30, 0x60CE775AD36A0276,
			0x9F2F0261A2592B60, 0x3A21763408C86BA7),
	PATTERN(2049, 0x581CD184FD9B76C5, 0x19F005F8D8F806D5,
			0xB13B8B382256117C, 0xA0C6DB0CE6D8A504),
	PATTERN(4096, 0x9DDD66C14AF0DAFF, 0x3A984CB5A6913189,
			0xC7BC989F5D547A4D, 0x4A704E4016D5F3B0),
	PATTERN(10000, 0x9E5D23D943285455, 0x19238AE6FEA1EDE9,
			0x7F7E8216C8A754FF, 0x0F612D6A20EFFABE)
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
test_patterns(void)
{
	size_t		at;

	for (size_t i = 0; i < LENGTH(patterns); i++)
	{
		size_t		size = patterns[i].size;

		/* A key is in a tuple at any address. */
		for (at = 0; at < 9; at++)
		{
			uint8_t    *bytes = exactly(at + size);

			for (size_t j = 0; j < size; j++)
				bytes[at + j] = (uint8_t) (131 * j + 7);
			for (size_t s = 0; s < LENGTH(seeds); s++)
			{
				uint64_t	hash = bf_hash_bytes(bytes + at, size, seeds[s]);

				EQUAL(hash, patterns[i].hashes[s]);
			}
			free(bytes);
		}
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
	tap_run("bytes of every length class hash as XXH3 says", test_patterns);
	tap_run("texts hash as XXH3 says", test_texts);
	tap_run("numbers hash as their little-endian bytes", test_numbers);
	tap_run("sequential numbers spread evenly", test_spread);
	tap_run("shards are what they were, even, and apart from blocks",
			test_shards);
	return tap_done();
}
