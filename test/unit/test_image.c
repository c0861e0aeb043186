/*-------------------------------------------------------------------------
 *
 * test_image.c
 *	  Images: what is written, and what is rejected; images of which only the
 *	  header is in memory give the same answers, with few reads.
 *
 * The golden images were put together by another program from the format's
 * description.  Offsets are repeated here as numbers of their own: a field
 * that moves is a new format, and this test has to notice.
 *
 * Whatever is not rejected must be safe to use: see ../fuzz/fuzz_image.c.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

/* fpp 0.001, expected 1000, seed 0x0123456789ABCDEF, integers, 3 hashes */
static const uint8_t golden_sparse[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xEF, 0xCD, 0xAB, 0x89,
	0x67, 0x45, 0x23, 0x01, 0xFC, 0xA9, 0xF1, 0xD2, 0x4D, 0x62, 0x50, 0x3F,
	0xE8, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
	0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE
};

/*
 * fpp 0.1, expected 20, seed 1, texts; one block of 512 bits, k = 3, with the
 * first 16 multiples of 0x0123456789ABCDEF
 */
static const uint8_t golden_dense[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x9A, 0x99, 0x99, 0x99, 0x99, 0x99, 0xB9, 0x3F,
	0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x09, 0x03, 0x00, 0x00, 0x5C, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x9A, 0x99, 0x99, 0x99, 0x99, 0x99, 0xB9, 0x3F, 0x2D, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x04, 0x00,
	0x00, 0x08, 0x01, 0x00, 0x11, 0x00, 0x00, 0x20, 0x00, 0x01, 0x40, 0x01,
	0x00, 0x00, 0x01, 0x00, 0x01, 0x02, 0x00, 0x41, 0x0C, 0x21, 0x04, 0x29,
	0x00, 0x00, 0x10, 0x00, 0x01, 0x20, 0x01, 0x00, 0x40, 0x00, 0x00, 0x01,
	0x01, 0x00, 0x00, 0x02, 0x01, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x01,
	0x00, 0x01, 0x40, 0x08, 0x21, 0x08, 0x21, 0x04
};

/* fpp 0.01, unsized, seed 0, an opclass-hashed type of a database in UTF-8, 1 hash */
static const uint8_t golden_named[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x00, 0x01, 0x00, 0x41, 0x06, 0x01, 0x06,
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x7B, 0x14, 0xAE, 0x47, 0xE1, 0x7A, 0x84, 0x3F,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x68, 0x73, 0x74, 0x6F,
	0x72, 0x65, 0x00, 0x00, 0xEE, 0xFF, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00
};

#define VERSION_AT		4
#define FORM_AT			5
#define SCHEME_AT		6
#define RESERVED_AT		7
#define KEY_TYPE_AT			8
#define NAMELEN_AT		9
#define BYTE_ORDER_AT	10
#define ENCODING_AT		11
#define NHASHES_AT		12
#define NLAYERS_AT		16
#define SEED_AT			20
#define FPP_AT			28
#define EXPECTED_AT		36

/* In an image without a name, first entry of the directory. */
#define NBLOCKS_AT		(HEADER + 0)
#define BLOCK_LOG2_AT	(HEADER + 4)
#define K_AT			(HEADER + 5)
#define GENERATION_AT	(HEADER + 6)
#define L_RESERVED_AT	(HEADER + 7)
#define CAPACITY_AT		(HEADER + 8)
#define BITS_CUT_AT		(HEADER + 12)
#define L_FPP_AT		(HEADER + 16)
#define BITS_SET_AT		(HEADER + 24)

static void
put(uint8_t *at, uint64_t value, int bytes)
{
	for (; bytes > 0; bytes--)
	{
		*at++ = (uint8_t) value;
		value >>= 8;
	}
}

static uint64_t
bits_of(double value)
{
	uint64_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* A copy that may be edited, of any size; what is new is zero. */
static uint8_t *
copy_of(const uint8_t *bytes, size_t size, size_t new_size)
{
	uint8_t    *copy = exactly(new_size);

	memset(copy, 0, new_size);
	memcpy(copy, bytes, size < new_size ? size : new_size);
	return copy;
}

typedef struct Sample
{
	const uint8_t *bytes;
	size_t		size;
} Sample;

#define SAMPLE(array)	((Sample) {array, sizeof(array)})

/*
 * What bf_validate(), bf_open(), and bf_open_header() of no more than a header
 * may take, say; a rejection has a reason.
 */
static void
expect(const uint8_t *bytes, size_t size, BfStatus expected)
{
	size_t		front = size < BF_MAX_HEADER ? size : BF_MAX_HEADER;
	uint8_t    *copy = copy_of(bytes, size, size);
	uint8_t    *header = copy_of(bytes, front, front);
	BfView		whole,
				open,
				part;

	if (!EQUAL(bf_validate(&no_interrupts, copy, size, &whole), expected) ||
		!EQUAL(bf_open(copy, size, &open), expected) ||
		!EQUAL(bf_open_header(header, size, &part), expected))
	{
		/* There is nothing to compare. */
	}
	else if (expected != BF_OK)
		HOLDS(whole.reason[0] != '\0' &&
			  strcmp(whole.reason, open.reason) == 0 &&
			  strcmp(whole.reason, part.reason) == 0);
	else
		HOLDS(open.size == part.size && open.list_at == part.list_at &&
			  open.nlayers == part.nlayers && open.nhashes == part.nhashes);
	free(copy);
	free(header);
}

/* The same of a sample with some bytes at a place set to a value. */
static void
expect_edited(Sample sample, size_t at, int bytes, uint64_t value,
			  BfStatus expected)
{
	uint8_t    *copy = copy_of(sample.bytes, sample.size, sample.size);

	tap_case("%zu bytes, %llX at %zu", sample.size,
			 (unsigned long long) value, at);
	put(copy + at, value, bytes);
	expect(copy, sample.size, expected);
	free(copy);
}

static BfStatus
good(bool valid)
{
	return valid ? BF_OK : BF_CORRUPT;
}

static BfKeyType
named_key_type(int code, const char *name)
{
	BfKeyType	key_type;

	memset(&key_type, 0, sizeof(key_type));
	key_type.code = (uint8_t) code;
	key_type.namelen = (uint8_t) strlen(name);
	strcpy(key_type.name, name);
	if (code == BF_KEY_OPCLASS)
	{
		key_type.byte_order = BF_LITTLE_ENDIAN;
		key_type.encoding = 6;
	}
	return key_type;
}

static void
write_golden(Sample golden, BfParams params, uint64_t seed, uint64_t n,
			 const uint64_t *hashes)
{
	TestEnv		env;
	BfBuilder	b;
	Image		image;

	params.seed = seed;
	start_with(&b, &env, &params);
	add_list(&b, hashes, n);
	image_write(&image, &b, false);
	finish(&b, &env);
	EQUAL(image.size, golden.size);
	for (size_t i = 0; i < golden.size; i++)
		CHECK(image.bytes[i] == golden.bytes[i], "byte %zu is %02X, not %02X",
			  i, image.bytes[i], golden.bytes[i]);
}

static void
test_golden(void)
{
	const uint64_t three[] = {
		UINT64_C(0xFEDCBA9876543210), 1, (uint64_t) 1 << 63
	};
	const uint64_t one[] = {0xC0FFEE};
	uint64_t	multiples[16];
	BfParams	dense = params_of(0.1, 20);
	BfParams	opclass = params_of(0.01, 0);

	for (size_t i = 0; i < 16; i++)
		multiples[i] = (i + 1) * UINT64_C(0x0123456789ABCDEF);
	dense.key_type.code = BF_KEY_TEXT;
	opclass.key_type = named_key_type(BF_KEY_OPCLASS, "hstore");
	write_golden(SAMPLE(golden_sparse), params_of(0.001, 1000),
				 UINT64_C(0x0123456789ABCDEF), 3, three);
	write_golden(SAMPLE(golden_dense), dense, 1, 16, multiples);
	write_golden(SAMPLE(golden_named), opclass, 0, 1, one);
}

/* What a reader sees of the golden images. */
static void
test_read(void)
{
	BfView		view;

	EQUAL(bf_validate(&no_interrupts, golden_sparse, sizeof(golden_sparse),
					  &view), BF_OK);
	HOLDS(view.params.fpp == (double) 0.001 && view.params.expected == 1000);
	EQUAL(view.params.seed, UINT64_C(0x0123456789ABCDEF));
	EQUAL(view.params.key_type.code, BF_KEY_INTEGER);
	HOLDS(view.params.key_type.namelen == 0);
	HOLDS(view.params.key_type.name[0] == '\0');
	HOLDS(view.nlayers == 0 && view.nhashes == 3);
	HOLDS(view.hashes == golden_sparse + HEADER);
	HOLDS(view.image == golden_sparse && view.size == sizeof(golden_sparse));

	EQUAL(bf_validate(&no_interrupts, golden_dense, sizeof(golden_dense),
					  &view), BF_OK);
	HOLDS(view.params.fpp == (double) 0.1 && view.params.expected == 20);
	HOLDS(view.params.seed == 1 && view.params.key_type.code == BF_KEY_TEXT);
	HOLDS(view.nlayers == 1 && view.nhashes == 0);
	EQUAL(view.layers[0].geometry.nblocks, 1);
	EQUAL(view.layers[0].geometry.block_log2, 9);
	EQUAL(view.layers[0].geometry.k, 3);
	EQUAL(view.layers[0].geometry.capacity, 92);
	EQUAL(view.layers[0].geometry.fpp, (double) 0.1);
	EQUAL(view.layers[0].bits_set, 45);
	HOLDS(view.layers[0].bits == golden_dense + HEADER + ENTRY);
	for (int i = 1; i <= 16; i++)
		HOLDS(bf_contains(&view, (uint64_t) i * UINT64_C(0x0123456789ABCDEF)));

	HOLDS(bf_validate(&no_interrupts, golden_named, sizeof(golden_named),
					  &view) == BF_OK);
	EQUAL(view.params.key_type.code, BF_KEY_OPCLASS);
	EQUAL(view.params.key_type.byte_order, BF_LITTLE_ENDIAN);
	EQUAL(view.params.key_type.encoding, 6);
	HOLDS(view.params.key_type.namelen == 6);
	HOLDS(strcmp(view.params.key_type.name, "hstore") == 0);
	CHECK(view.nhashes == 1 && bf_contains(&view, 0xC0FFEE), "its hash");
}

static void
test_lengths(void)
{
	const Sample samples[] = {
		SAMPLE(golden_sparse), SAMPLE(golden_dense), SAMPLE(golden_named)
	};

	for (size_t i = 0; i < LENGTH(samples); i++)
		for (size_t size = 0; size < samples[i].size + 100; size++)
		{
			uint8_t    *copy = copy_of(samples[i].bytes, samples[i].size, size);

			tap_case("sample %zu, %zu bytes", i, size);
			expect(copy, size, good(size == samples[i].size));
			free(copy);
		}
}

/* Each byte of the header, and of the entry of a layer, has its values. */
static void
test_bytes(void)
{
	const Sample sparse = SAMPLE(golden_sparse);
	const Sample dense = SAMPLE(golden_dense);

	for (uint64_t i = 0; i < 256; i++)
	{
		BfStatus	known = i == 1 ? BF_OK : BF_UNKNOWN_VERSION;

		for (size_t at = 0; at < 4; at++)
			expect_edited(sparse, at, 1, i, good(i == golden_sparse[at]));
		expect_edited(sparse, VERSION_AT, 1, i, known);
		expect_edited(dense, VERSION_AT, 1, i, known);
		expect_edited(sparse, SCHEME_AT, 1, i, known);
		expect_edited(dense, SCHEME_AT, 1, i, known);
		expect_edited(sparse, RESERVED_AT, 1, i, good(i == 0));
		expect_edited(dense, RESERVED_AT, 1, i, good(i == 0));

		/* Reads as the other form, whose fields do not fit. */
		expect_edited(sparse, FORM_AT, 1, i, good(i == 0));
		expect_edited(dense, FORM_AT, 1, i, good(i == 1));

		/* Layers in the sparse form, hashes in the dense one. */
		expect_edited(sparse, NLAYERS_AT, 1, i, good(i == 0));
		expect_edited(sparse, NLAYERS_AT + 1, 1, i, good(i == 0));
		expect_edited(dense, NHASHES_AT, 1, i, good(i == 0));
		expect_edited(dense, NHASHES_AT + 1, 1, i, good(i == 0));
		expect_edited(dense, NLAYERS_AT, 1, i, good(i == 1));
		for (size_t at = NLAYERS_AT + 1; at < NLAYERS_AT + 4; at++)
			expect_edited(dense, at, 1, i, good(i == 0));

		expect_edited(dense, K_AT, 1, i, good(i >= 1 && i <= 64));
		expect_edited(dense, BLOCK_LOG2_AT, 1, i, good(i == 9));
		expect_edited(dense, GENERATION_AT, 1, i, good(i <= 23));
		expect_edited(dense, L_RESERVED_AT, 1, i, good(i == 0));
	}
}

/* Fields of several bytes: good values, and bad ones. */
static void
test_fields(void)
{
	const Sample sparse = SAMPLE(golden_sparse);
	const Sample dense = SAMPLE(golden_dense);
	const uint64_t nan = UINT64_C(0x7FF8000000000000);
	const uint64_t high = (uint64_t) 1 << 63;
	const struct
	{
		Sample		sample;
		size_t		at;
		int			bytes;
		uint64_t	good[4];	/* the first is a good one, if any is */
		uint64_t	bad[9];		/* up to a zero behind the first */
	}			fields[] = {
		/* 2^29 hashes and 3: as many bytes modulo 2^32 as there are */
		{sparse, NHASHES_AT, 4, {3, 3, 3, 3}, {0, 2, 4, 0x20000003, UINT32_MAX}},
		{sparse, EXPECTED_AT, 8, {1, 0, bf_max_keys(0.001), 1},
		{((uint64_t) 1 << 32) + 1, high, UINT64_MAX}},
		{sparse, SEED_AT, 8, {0, high, UINT64_MAX, 1}, {0}},
		{dense, SEED_AT, 8, {0, high, UINT64_MAX, 1}, {0}},
		{dense, NBLOCKS_AT, 4, {1, 1, 1, 1},
		{0, 2, (1 << 23) + 1, UINT32_C(0x80000000), UINT32_MAX}},
		{dense, CAPACITY_AT, 8, {1, 512, 1, 1},
		{0, 513, (uint64_t) 1 << 32, high, UINT64_MAX}},
		{dense, BITS_SET_AT, 8, {45, 45, 45, 45},
		{513, ((uint64_t) 1 << 32) + 45, UINT64_MAX}},

		/* Rates of lists are in single precision. */
		{sparse, NLAYERS_AT, 4, {0, 0x00800000, 0x3C23D70A, 0x3F800000},
		{1, 0x007FFFFF, 0x3F800001, 0x7F800000, 0x7FC00000, 0x80000000,
		0x80000001, 0xBC23D70A, UINT32_MAX}},
		{dense, NHASHES_AT, 4, {0, 0x00800000, 0x3C23D70A, 0x3F800000},
		{1, 0x007FFFFF, 0x3F800001, 0x7F800000, 0x7FC00000, 0x80000000,
		0x80000001, 0xBC23D70A, UINT32_MAX}},
		{dense, FPP_AT, 8,
			{bits_of(0.1), bits_of(0.5), bits_of(1e-9), bits_of(0.01)},
			{bits_of(nextafter(0.5, 1)), bits_of(nextafter(1e-9, 0)), nan,
		nan | high, UINT64_C(0x7FF0000000000001), nan + 1, UINT64_MAX}},
		{dense, L_FPP_AT, 8,
			{bits_of(0.1), bits_of(0.5), bits_of(1e-18), bits_of(0.01)},
			{bits_of(nextafter(0.5, 1)), bits_of(nextafter(1e-18, 0)), nan,
		nan | high, UINT64_C(0x7FF0000000000001), nan + 1, UINT64_MAX}}
	};
	const double rates[] = {
		0.0, -0.0, -0.01, 1.0, 0.75, 1e300, -1e300, 5e-324, 1e-310, 2.3e-308,
		1e-300, HUGE_VAL, -HUGE_VAL
	};

	for (size_t i = 0; i < LENGTH(fields); i++)
	{
		for (size_t j = 0; j < LENGTH(fields[i].good); j++)
			expect_edited(fields[i].sample, fields[i].at, fields[i].bytes,
						  fields[i].good[j], BF_OK);
		for (size_t j = 0; j < LENGTH(fields[i].bad); j++)
			if (fields[i].bad[j] != 0 || (j == 0 && fields[i].bad[1] != 0))
				expect_edited(fields[i].sample, fields[i].at, fields[i].bytes,
							  fields[i].bad[j], BF_CORRUPT);
	}
	for (size_t i = 0; i < LENGTH(rates); i++)
	{
		expect_edited(sparse, FPP_AT, 8, bits_of(rates[i]), BF_CORRUPT);
		expect_edited(dense, FPP_AT, 8, bits_of(rates[i]), BF_CORRUPT);
		expect_edited(dense, L_FPP_AT, 8, bits_of(rates[i]), BF_CORRUPT);
	}
}

/* Blocks whose size, or the sum of whose sizes, fits the length or wraps. */
static void
test_blocks(void)
{
	static const struct
	{
		uint32_t	nblocks;
		uint8_t		block_log2;
	}			wrapping[] = {
		{UINT32_C(0x80000001), 14}, {UINT32_C(0x04000001), 9},
		{UINT32_C(0x00800001), 9}, {UINT32_C(0x00200001), 14},
		{UINT32_C(0x00040001), 14}, {UINT32_C(0x08000001), 9}
	};
	const size_t size = HEADER + 8 * ENTRY;
	uint8_t    *copy;

	for (int i = 0; i < 20 + (int) LENGTH(wrapping); i++)
	{
		int			log2 = i < 20 ? i : wrapping[i - 20].block_log2;
		size_t		fitting = HEADER + ENTRY + ((size_t) 1 << log2) / 8;

		tap_case("case %d: block of 2^%d", i, log2);
		copy = copy_of(golden_dense, sizeof(golden_dense), fitting);
		put(copy + BLOCK_LOG2_AT, (uint64_t) log2, 1);
		put(copy + NBLOCKS_AT, i < 20 ? 1 : wrapping[i - 20].nblocks, 4);
		expect(copy, fitting, good(i < 20 && log2 >= 9 && log2 <= 14));
		free(copy);
	}

	/* Without a block, of just that length. */
	copy = copy_of(golden_dense, HEADER + ENTRY, size);
	put(copy + NBLOCKS_AT, 0, 4);
	put(copy + BITS_SET_AT, 0, 8);
	for (uint64_t capacity = 0; capacity < 2; capacity++)
	{
		put(copy + CAPACITY_AT, capacity, 8);
		expect(copy, HEADER + ENTRY, BF_CORRUPT);
	}

	/* Eight layers of 2^32 bits, and none of their blocks. */
	memcpy(copy, golden_dense, HEADER + ENTRY);
	put(copy + NLAYERS_AT, 8, 4);
	put(copy + NBLOCKS_AT, 1 << 23, 4);
	for (size_t i = 1; i < 8; i++)
		memcpy(copy + HEADER + i * ENTRY, copy + HEADER, ENTRY);
	expect(copy, size, BF_CORRUPT);
	free(copy);
}

static uint8_t *
many_layers(int n, size_t *size)
{
	uint8_t    *image;

	*size = HEADER + (size_t) n * (ENTRY + 64);
	image = copy_of(golden_dense, HEADER, *size);
	put(image + NLAYERS_AT, (uint64_t) n, 4);
	for (int i = 0; i < n; i++)
	{
		memcpy(image + HEADER + i * ENTRY, golden_dense + HEADER, ENTRY);
		memcpy(image + HEADER + n * ENTRY + i * 64,
			   golden_dense + HEADER + ENTRY, 64);
	}
	return image;
}

static void
test_number_of_layers(void)
{
	static const int numbers[] = {
		0, 1, 2, 32, 33, 255, 256, 1023, 1024, 1025, 65535
	};

	for (size_t i = 0; i < LENGTH(numbers); i++)
	{
		size_t		size;
		uint8_t    *image = many_layers(numbers[i], &size);

		tap_case("%d layers", numbers[i]);
		expect(image, size,
			   good(numbers[i] >= 1 && numbers[i] <= BF_MAX_LAYERS));
		free(image);
	}
}

/* The limit of all layers together.  None of the blocks is looked at. */
static void
test_total(void)
{
	size_t		size = HEADER + 2 * ENTRY + ((size_t) 1 << 29) + 64;
	uint8_t    *image = calloc(size, 1);
	BfView		view;

	if (image == NULL)
	{
		printf("# 512 MiB are not to be had here, so the limit is not "
			   "tried\n");
		return;
	}
	memcpy(image, golden_dense, HEADER + ENTRY);
	put(image + NLAYERS_AT, 2, 4);
	memcpy(image + HEADER + ENTRY, image + HEADER, ENTRY);

	put(image + NBLOCKS_AT, (1 << 23) - 1, 4);
	EQUAL(bf_open(image, size - 64, &view), BF_OK);
	CHECK(view.layers[1].bits == image + size - 128, "the last block");
	put(image + NBLOCKS_AT, 1 << 23, 4);
	CHECK(bf_open(image, size, &view) == BF_CORRUPT, "2^32 + 512 bits");
	free(image);

	/* The longest list.  Of this, nothing is there but the header. */
	image = copy_of(golden_sparse, HEADER, HEADER);
	put(image + NHASHES_AT, (1 << 26) + 4, 4);
	size = HEADER + 8 * ((size_t) (1 << 26) + 4);
	EQUAL(bf_open_header(image, size, &view), BF_OK);
	put(image + NHASHES_AT, (1 << 26) + 5, 4);
	EQUAL(bf_open_header(image, size + 8, &view), BF_CORRUPT);
	free(image);
}

/* What takes a look at the content: bf_open() lets it pass. */
static void
reject_content(Sample sample, size_t at, int bytes, uint64_t value)
{
	uint8_t    *copy = copy_of(sample.bytes, sample.size, sample.size);
	BfView		view;

	tap_case("%zu bytes, %llX at %zu", sample.size,
			 (unsigned long long) value, at);
	put(copy + at, value, bytes);
	EQUAL(bf_open(copy, sample.size, &view), BF_OK);
	EQUAL(bf_validate(&no_interrupts, copy, sample.size, &view), BF_CORRUPT);
	HOLDS(view.reason != NULL && view.reason[0] != '\0');
	free(copy);
}

static void
test_content(void)
{
	static const uint64_t counts[] = {0, 44, 46, 512};
	const Sample sparse = SAMPLE(golden_sparse);
	const uint64_t middle = (uint64_t) 1 << 63;
	size_t		size;
	uint8_t    *layers = many_layers(3, &size);
	Sample		three = {layers, size};

	for (size_t i = 0; i < LENGTH(counts); i++)
		reject_content(SAMPLE(golden_dense), BITS_SET_AT, 8, counts[i]);
	for (size_t i = 0; i < 3; i++)
	{
		size_t		bits = HEADER + 3 * ENTRY + i * 64;

		reject_content(three, BITS_SET_AT + i * ENTRY, 8, 44);
		reject_content(three, BITS_SET_AT + i * ENTRY, 8, 46);
		reject_content(three, bits, 1, 0x80);
		reject_content(three, bits + 63, 1, 0x84);
	}
	free(layers);

	/* More keys than fit */
	reject_content(sparse, EXPECTED_AT, 8, bf_max_keys(0.001) + 1);

	/* 1, 2^63, 0xFEDCBA9876543210: duplicates, and descents */
	reject_content(sparse, HEADER, 8, middle);
	reject_content(sparse, HEADER + 8, 8, 1);
	reject_content(sparse, HEADER + 8, 8, 0);
	reject_content(sparse, HEADER + 16, 8, middle);
	reject_content(sparse, HEADER + 16, 8, middle - 1);
	expect_edited(sparse, HEADER + 8, 8, 2, BF_OK);
	expect_edited(sparse, HEADER, 8, 0, BF_OK);
	expect_edited(sparse, HEADER + 16, 8, UINT64_MAX, BF_OK);
}

/* An empty sparse image with a key type; its name is not checked here. */
static uint8_t *
image_of_key_type(int code, size_t namelen, int byte_order, int encoding,
				  size_t *size)
{
	uint8_t    *image;

	*size = HEADER + (namelen + 7) / 8 * 8;
	image = copy_of(golden_sparse, HEADER, *size);
	put(image + KEY_TYPE_AT, (uint64_t) code, 1);
	put(image + NAMELEN_AT, namelen, 1);
	put(image + BYTE_ORDER_AT, (uint64_t) byte_order, 1);
	put(image + ENCODING_AT, (uint64_t) encoding, 1);
	put(image + NHASHES_AT, 0, 4);
	memset(image + HEADER, 'x', namelen);
	return image;
}

static void
try_key_type(int code, size_t namelen, int byte_order, int encoding, bool valid)
{
	size_t		size;
	uint8_t    *image = image_of_key_type(code, namelen, byte_order, encoding,
										  &size);

	tap_case("key type %d, name of %zu, byte order %d, encoding %d", code,
			 namelen, byte_order, encoding);
	expect(image, size, good(valid));
	free(image);
}

static void
test_key_types(void)
{
	for (int code = 0; code < 256; code++)
	{
		bool		foreign = code == BF_KEY_OPCLASS;
		bool		named = code == BF_KEY_ENUM || foreign;
		bool		canonical = code <= BF_KEY_XID8;
		int			order = foreign ? BF_LITTLE_ENDIAN : 0;

		try_key_type(code, 0, order, 0, canonical);
		for (size_t namelen = 1; namelen < 256; namelen++)
			try_key_type(code, namelen, order, 0, named);
		for (int i = 0; i < 256; i++)
		{
			try_key_type(code, named ? 5 : 0, i, 0,
						 foreign ? i == 1 || i == 2 : i == 0 &&
						 (named || canonical));
			try_key_type(code, named ? 5 : 0, order, i,
						 foreign ? i <= 34 : i == 0 &&
						 (named || canonical));
		}
	}
}

static void
test_names(void)
{
	for (size_t namelen = 1; namelen <= BF_MAX_KEY_TYPE_NAME; namelen += 6)
	{
		size_t		size;
		uint8_t    *image = image_of_key_type(BF_KEY_ENUM, namelen, 0, 0, &size);
		Sample		sample = {image, size};

		for (uint64_t c = 0; c < 256; c++)
		{
			for (size_t i = 0; i < namelen; i += namelen > 1 ? namelen - 1 : 1)
				expect_edited(sample, HEADER + i, 1, c, good(c >= ' ' && c < 0x7F));
			for (size_t i = namelen; c > 0 && i < (namelen + 7) / 8 * 8; i++)
				expect_edited(sample, HEADER + i, 1, c, BF_CORRUPT);
		}

		/* Ends within the name or its padding. */
		for (size_t i = HEADER; i < size; i++)
			expect(image, i, BF_CORRUPT);
		free(image);
	}
}

/* How many of all strings of this many bytes are a name. */
static uint64_t
count_names(size_t length)
{
	uint64_t	count = 0;
	uint8_t		string[8];

	for (uint64_t value = 0; value >> (8 * length) == 0; value++)
	{
		put(string, value, 8);
		count += bf_valid_key_type_name((const char *) string, length);
	}
	return count;
}

/*
 * Names are UTF-8 without control characters: every code point has its one
 * form, and there are as many strings as there are code points.
 */
static void
test_utf8(void)
{
	static const uint8_t ends[] = {0, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
	uint64_t	count = 0;

	for (uint32_t c = 0; c <= 0x10FFFF; c++)
	{
		char		string[4];
		size_t		more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
		bool		valid = !(c < 0x20 || (c >= 0x7F && c < 0xA0) ||
							  (c >= 0xD800 && c < 0xE000));

		string[0] = (char) (more == 0 ? c : 0xFF00 >> (more + 1) | c >> 6 * more);
		for (size_t i = 1; i <= more; i++)
		{
			string[i] = (char) (0x80 | (c >> 6 * (more - i) & 0x3F));
			CHECK(!bf_valid_key_type_name(string, i), "U+%04X cut off", c);
		}
		CHECK(bf_valid_key_type_name(string, more + 1) == valid, "U+%04X", c);
	}

	/* 95 printable characters of ASCII; from U+00A0 on; from U+0800 on */
	EQUAL(count_names(1), 95);
	EQUAL(count_names(2), 95 * 95 + 0x760);
	HOLDS(count_names(3) == 95 * 95 * 95 + 2 * 95 * 0x760 + 0xF000);

	for (int lead = 0xF0; lead < 0x100; lead++)
		for (int second = 0; second < 0x100; second++)
			for (size_t i = 0; i < LENGTH(ends); i++)
				for (size_t j = 0; j < LENGTH(ends); j++)
				{
					uint8_t		string[4] = {
						(uint8_t) lead, (uint8_t) second, ends[i], ends[j]
					};

					count += bf_valid_key_type_name((char *) string, 4);
				}
	EQUAL(count, 0x100 * 2 * 2);
}

static void
test_key_type_functions(void)
{
	static const char *const names[] = {
		"text", "bytea", "integer", "float", "numeric", "boolean",
		"\"char\"", "oid", "uuid", "date", "time", "timetz", "timestamp",
		"timestamptz", "interval", "inet", "macaddr", "macaddr8", "pg_lsn",
		"xid8"
	};
	BfKeyType	a,
				b;

	memset(&a, 0, sizeof(a));
	CHECK(bf_key_type_name(&a) == NULL,
		  "a filter without a key type has a name");
	for (size_t i = 0; i < LENGTH(names); i++)
	{
		a.code = (uint8_t) (BF_KEY_TEXT + i);
		HOLDS(strcmp(bf_key_type_name(&a), names[i]) == 0);
	}

	a = named_key_type(BF_KEY_OPCLASS, "hstore");
	CHECK(strcmp(bf_key_type_name(&a), "hstore") == 0, "%s",
		  bf_key_type_name(&a));
	b = a;
	CHECK(bf_key_type_equal(&a, &b), "a copy");

	/* What stands behind the name is not part of it. */
	memset(b.name + b.namelen, 'z', sizeof(b.name) - b.namelen);
	CHECK(bf_key_type_equal(&a, &b), "a copy with other padding");
	b = a;
	b.code = BF_KEY_ENUM;
	CHECK(!bf_key_type_equal(&a, &b), "another code");
	b = a;
	b.byte_order = BF_BIG_ENDIAN;
	CHECK(!bf_key_type_equal(&a, &b), "another byte order");
	b = a;
	b.encoding = 0;
	CHECK(!bf_key_type_equal(&a, &b), "another encoding");
	b = a;
	b.name[5] = 'd';
	CHECK(!bf_key_type_equal(&a, &b), "another name");
	b = a;
	b.namelen = 5;
	CHECK(!bf_key_type_equal(&a, &b) &&
		  !bf_key_type_equal(&b, &a), "a prefix");
}

/* A name survives being written, with all its bytes and neighbours. */
static void
test_longest_name(void)
{
	BfParams	params = params_of(0.1, 20);
	TestEnv		env;
	BfBuilder	b;
	Image		image;

	for (size_t namelen = 1; namelen <= BF_MAX_KEY_TYPE_NAME; namelen++)
	{
		memset(&params.key_type, 0, sizeof(params.key_type));
		params.key_type.code = BF_KEY_ENUM;
		params.key_type.namelen = (uint8_t) namelen;
		for (int i = 0; i < (int) namelen; i++)
			params.key_type.name[i] = (char) ('!' + i % 94);
		start_with(&b, &env, &params);
		add_keys(&b, 0, 5 + namelen, 1);
		if (image_write(&image, &b, false))
		{
			HOLDS(bf_key_type_equal(&image.view.params.key_type,
									&params.key_type));
			HOLDS(strcmp(image.view.params.key_type.name,
						 params.key_type.name) == 0);
			image_has(&image, 0, 5 + namelen, 1);
		}
		finish(&b, &env);
	}
}

/* Hands out each part in memory of its own, so that no overrun goes unseen. */
typedef struct Reader
{
	const Image *image;
	uint8_t    *part;
	int			reads;
} Reader;

/* The most reads of one lookup. */
static int	max_reads;

static const uint8_t *
read_block_slice(void *context, size_t at, size_t length)
{
	Reader	   *reader = context;
	static const uint8_t nothing[BF_MAX_BLOCK_SIZE];

	reader->reads++;
	free(reader->part);
	reader->part = NULL;
	if (!HOLDS(length > 0 && length <= BF_MAX_BLOCK_SIZE &&
			   at <= reader->image->size && length <= reader->image->size - at))
		return nothing;
	reader->part = exactly(length);
	memcpy(reader->part, reader->image->bytes + at, length);
	return reader->part;
}

/*
 * Open the front of an image, which is given no byte more than header and
 * directory take.
 */
static bool
open_header(const Image *image, BfView *view)
{
	size_t		length = bf_header_size(&image->view.params,
										image->view.nlayers);
	uint8_t    *header = exactly(length);
	bool		open;

	memcpy(header, image->bytes, length);
	open = EQUAL(bf_open_header(header, image->size, view), BF_OK);
	free(header);
	return open &&
		HOLDS(view->image == NULL && view->hashes == NULL &&
			  (view->nlayers == 0 || view->layers[0].bits == NULL));
}

/* Compare for a hash, with the view of the header. */
static void
compare(const Image *image, const BfView *view, uint64_t hash)
{
	Reader		reader = {image, NULL, 0};
	bool		found = bf_contains_sliced(view, hash, read_block_slice, &reader);

	free(reader.part);
	EQUAL(found, bf_contains(&image->view, hash));
	if (reader.reads > max_reads)
		max_reads = reader.reads;
}

/* For keys and others; returns the most parts that were read for one. */
static int
compare_many(const Image *image, uint64_t nkeys)
{
	uint64_t	n = scaled(5000, 500);
	BfView		view;

	tap_case("%d layers, %llu keys", image->view.nlayers,
			 (unsigned long long) nkeys);
	max_reads = 0;
	if (open_header(image, &view))
	{
		for (uint64_t i = 0; i < nkeys; i += nkeys / n + 1)
			compare(image, &view, key(i, 1));
		for (uint64_t i = 0; i < n; i++)
			compare(image, &view, key(i, 2));
		for (uint64_t i = 0; i < 3; i++)
		{
			compare(image, &view, i);
			compare(image, &view, UINT64_MAX - i);
		}
	}
	return max_reads;
}

/* Lists of all lengths around a part, and of millions. */
static void
test_sparse(void)
{
	static const uint64_t lengths[] =
	{
		0, 1, 2, 3, 127, 128, 129, 130, 255, 256, 257, 385, 1000, 10000,
		100000, 1000000, BF_MAX_UNSIZED_HASHES
	};

	for (size_t i = 0; i < (is_long() ? LENGTH(lengths) : 15); i++)
	{
		Image		image;

		image_build(&image, 0.01, 0, 0, lengths[i], 1, false);
		EQUAL(image.view.nlayers, 0);
		HOLDS(compare_many(&image, lengths[i]) <= (lengths[i] > 128 ? 6 : 1));
	}
}

/*
 * Hashes that are not spread evenly, as somebody may have made them up:
 * nobody makes a search longer than halving would be.
 */
static void
test_made_up(void)
{
	uint64_t	state = 5;

	for (int form = 0; form < 4; form++)
	{
		BfBuilder	b;
		TestEnv		env;
		Image		image;
		BfView		view;

		start(&b, &env, 0.01, 0);
		for (uint64_t i = 0; i < 20000; i++)
			bf_builder_add(&b, form == 0 ? i : form == 1 ? UINT64_MAX - 3 * i :
						   form == 2 ? UINT64_C(1) << i % 64 | i << i % 40 :
						   random64(&state) >> i % 64);
		image_write(&image, &b, false);
		finish(&b, &env);
		EQUAL(image.view.nlayers, 0);
		max_reads = 0;
		open_header(&image, &view);
		for (uint64_t i = 0; i < image.view.nhashes; i++)
		{
			uint64_t	hash;

			memcpy(&hash, image.view.hashes + 8 * i, 8);
			for (uint64_t j = 0; j < 3; j++)
				compare(&image, &view, hash + j - 1);
		}
		HOLDS(max_reads <= 6 + 8);
	}
}

/* Each size of block, and several numbers of layers. */
static void
test_dense(void)
{
	static const double rates[] = {0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9};
	int			nlayers = 0;

	for (size_t i = 0; i < LENGTH(rates); i++)
	{
		Image		image;

		image_build(&image, rates[i], 20000, 0, 20000, 1, false);
		EQUAL(image.view.nlayers, 1);
		EQUAL(compare_many(&image, 20000), 1);
	}
	for (uint64_t n = 80; nlayers < 6; n = n * 3 / 2)
	{
		Image		image;

		image_build(&image, 0.1, 100, 0, n, 1, false);
		nlayers = image.view.nlayers;
		EQUAL(compare_many(&image, n), nlayers);
	}
}

int
main(void)
{
	tap_run("golden bytes", test_golden);
	tap_run("the golden images are read back", test_read);
	tap_run("every truncation and trailing bytes", test_lengths);
	tap_run("each byte of header and directory", test_bytes);
	tap_run("fields of several bytes", test_fields);
	tap_run("blocks: sizes, none, and sums that wrap around", test_blocks);
	tap_run("number of layers", test_number_of_layers);
	tap_run("the limit of all layers together", test_total);
	tap_run("bits set, and the order of hashes", test_content);
	tap_run("key types: code, length of name, byte order, encoding", test_key_types);
	tap_run("names: characters and padding", test_names);
	tap_run("names: every code point, and no other bytes", test_utf8);
	tap_run("names and equality of key types", test_key_type_functions);
	tap_run("names of every length are written", test_longest_name);
	tap_run("lists of hashes by parts, in few of them", test_sparse);
	tap_run("lists of hashes that are not spread", test_made_up);
	tap_run("blocks of all sizes and layers by parts", test_dense);
	return tap_done();
}
