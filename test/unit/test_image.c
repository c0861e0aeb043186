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
 * Whatever is not rejected must be safe to use.  The images go through all
 * operations in memory of just their size, which shows its worth under a
 * sanitizer.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

/* fpp 0.001, expected 1000, seed 0x0123456789ABCDEF, integers, 3 hashes */
static const uint8_t golden_sparse[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x00, 0x01, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xEF, 0xCD, 0xAB, 0x89,
	0x67, 0x45, 0x23, 0x01, 0xFC, 0xA9, 0xF1, 0xD2,
	0x4D, 0x62, 0x50, 0x3F, 0xE8, 0x03, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x80, 0x10, 0x32, 0x54, 0x76,
	0x98, 0xBA, 0xDC, 0xFE
};

/*
 * fpp 0.1, expected 20, seed 1, texts; one block of 512 bits, k = 3, with the
 * first 16 multiples of 0x0123456789ABCDEF
 */
static const uint8_t golden_dense[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x01, 0x01, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x9A, 0x99, 0x99, 0x99,
	0x99, 0x99, 0xB9, 0x3F, 0x14, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x09, 0x03, 0x00, 0x00, 0x5C, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x9A, 0x99, 0x99, 0x99,
	0x99, 0x99, 0xB9, 0x3F, 0x2D, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	0x00, 0x01, 0x04, 0x00, 0x00, 0x08, 0x01, 0x00,
	0x11, 0x00, 0x00, 0x20, 0x00, 0x01, 0x40, 0x01,
	0x00, 0x00, 0x01, 0x00, 0x01, 0x02, 0x00, 0x41,
	0x0C, 0x21, 0x04, 0x29, 0x00, 0x00, 0x10, 0x00,
	0x01, 0x20, 0x01, 0x00, 0x40, 0x00, 0x00, 0x01,
	0x01, 0x00, 0x00, 0x02, 0x01, 0x00, 0x05, 0x00,
	0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x40, 0x08,
	0x21, 0x08, 0x21, 0x04
};

/* fpp 0.01, unsized, seed 0, an opclass-hashed type of a database in UTF-8, 1 hash */
static const uint8_t golden_named[] = {
	0x42, 0x4C, 0x4D, 0x46, 0x01, 0x00, 0x01, 0x00,
	0x41, 0x06, 0x01, 0x06, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x7B, 0x14, 0xAE, 0x47,
	0xE1, 0x7A, 0x84, 0x3F, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x68, 0x73, 0x74, 0x6F,
	0x72, 0x65, 0x00, 0x00, 0xEE, 0xFF, 0xC0, 0x00,
	0x00, 0x00, 0x00, 0x00
};

#define HEADER			44
#define ENTRY			32

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

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

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

/* To be rejected by bf_open() already, whose reason must be given. */
static void
reject(const uint8_t *bytes, size_t size, BfStatus expected,
	   const char *what, uint64_t value)
{
	uint8_t    *copy = copy_of(bytes, size, size);
	BfView		view;
	BfStatus	status;

	memset(&view, 0, sizeof(view));
	status = bf_open(copy, size, &view);
	CHECK(status == expected, "%s %llX: bf_open gives %d, should be %d",
		  what, (unsigned long long) value, (int) status, (int) expected);
	CHECK(status == BF_OK || (view.reason != NULL && view.reason[0] != '\0'),
		  "%s %llX: bf_open gives no reason", what,
		  (unsigned long long) value);

	memset(&view, 0, sizeof(view));
	status = bf_validate(&no_interrupts, copy, size, &view);
	CHECK(status == expected, "%s %llX: bf_validate gives %d, should be %d",
		  what, (unsigned long long) value, (int) status, (int) expected);
	CHECK(status == BF_OK || (view.reason != NULL && view.reason[0] != '\0'),
		  "%s %llX: bf_validate gives no reason", what,
		  (unsigned long long) value);
	free(copy);
}

static void
accept(const uint8_t *bytes, size_t size, const char *what, uint64_t value)
{
	uint8_t    *copy = copy_of(bytes, size, size);
	BfView		view;
	BfStatus	status = bf_validate(&no_interrupts, copy, size, &view);

	CHECK(status == BF_OK, "%s %llX: status %d, %s", what,
		  (unsigned long long) value, (int) status,
		  view.reason == NULL ? "" : view.reason);
	free(copy);
}

typedef struct Sample
{
	const uint8_t *bytes;
	size_t		size;
} Sample;

#define SAMPLE(array)	((Sample) {array, sizeof(array)})

/* Reject a sample with some bytes at a place set to a value. */
static void
reject_edited(Sample sample, size_t at, int bytes, uint64_t value,
			  BfStatus expected, const char *what)
{
	uint8_t    *copy = copy_of(sample.bytes, sample.size, sample.size);

	put(copy + at, value, bytes);
	reject(copy, sample.size, expected, what, value);
	free(copy);
}

static void
accept_edited(Sample sample, size_t at, int bytes, uint64_t value,
			  const char *what)
{
	uint8_t    *copy = copy_of(sample.bytes, sample.size, sample.size);

	put(copy + at, value, bytes);
	accept(copy, sample.size, what, value);
	free(copy);
}

static void
compare_golden(const Image *image, Sample golden)
{
	size_t		i;

	if (!CHECK(image->size == golden.size, "%zu bytes, should be %zu",
			   image->size, golden.size))
		return;
	for (i = 0; i < golden.size; i++)
		CHECK(image->bytes[i] == golden.bytes[i],
			  "byte %zu is %02X, should be %02X", i, image->bytes[i],
			  golden.bytes[i]);
}

static void
test_golden_sparse(void)
{
	BfParams	params = params_of(0.001, 1000);
	TestEnv		env;
	BfBuilder	b;
	Image		image;

	params.seed = UINT64_C(0x0123456789ABCDEF);
	env_init(&env, SIZE_MAX);
	bf_builder_init(&b, &env.env, &params);
	CHECK(bf_builder_add(&b, UINT64_C(0xFEDCBA9876543210)) == BF_OK, "add");
	CHECK(bf_builder_add(&b, 1) == BF_OK, "add");
	CHECK(bf_builder_add(&b, (uint64_t) 1 << 63) == BF_OK, "add");
	if (image_write(&image, &b, false))
		compare_golden(&image, SAMPLE(golden_sparse));
	image_free(&image);
	finish(&b, &env);
}

static void
test_golden_dense(void)
{
	BfParams	params = params_of(0.1, 20);
	TestEnv		env;
	BfBuilder	b;
	Image		image;
	uint64_t	i;

	params.seed = 1;
	params.key_type.code = BF_KEY_TEXT;
	env_init(&env, SIZE_MAX);
	bf_builder_init(&b, &env.env, &params);
	for (i = 1; i <= 16; i++)
		CHECK(bf_builder_add(&b, i * UINT64_C(0x0123456789ABCDEF)) == BF_OK,
			  "add");
	if (image_write(&image, &b, false))
		compare_golden(&image, SAMPLE(golden_dense));
	image_free(&image);
	finish(&b, &env);
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
test_golden_named(void)
{
	BfParams	params = params_of(0.01, 0);
	TestEnv		env;
	BfBuilder	b;
	Image		image;

	params.seed = 0;
	params.key_type = named_key_type(BF_KEY_OPCLASS, "hstore");
	env_init(&env, SIZE_MAX);
	bf_builder_init(&b, &env.env, &params);
	CHECK(bf_builder_add(&b, 0xC0FFEE) == BF_OK, "add");
	if (image_write(&image, &b, false))
		compare_golden(&image, SAMPLE(golden_named));
	image_free(&image);
	finish(&b, &env);
}

/* What a reader sees of the golden images. */
static void
test_read(void)
{
	BfView		view;
	int			i;

	CHECK(bf_validate(&no_interrupts, golden_sparse, sizeof(golden_sparse),
					  &view) == BF_OK,
		  "%s", view.reason);
	CHECK(view.params.fpp == (double) 0.001 && view.params.expected == 1000 &&
		  view.params.seed == UINT64_C(0x0123456789ABCDEF) &&
		  view.params.key_type.code == BF_KEY_INTEGER &&
		  view.params.key_type.namelen == 0 &&
		  view.params.key_type.name[0] == '\0', "parameters of the sparse one");
	CHECK(view.nlayers == 0 && view.nhashes == 3 &&
		  view.hashes == golden_sparse + HEADER &&
		  view.image == golden_sparse && view.size == sizeof(golden_sparse),
		  "content of the sparse one");

	CHECK(bf_validate(&no_interrupts, golden_dense, sizeof(golden_dense),
					  &view) == BF_OK,
		  "%s", view.reason);
	CHECK(view.params.fpp == (double) 0.1 && view.params.expected == 20 &&
		  view.params.seed == 1 && view.params.key_type.code == BF_KEY_TEXT,
		  "parameters of the dense one");
	CHECK(view.nlayers == 1 && view.nhashes == 0 &&
		  view.layers[0].geometry.nblocks == 1 &&
		  view.layers[0].geometry.block_log2 == 9 &&
		  view.layers[0].geometry.k == 3 &&
		  view.layers[0].geometry.capacity == 92 &&
		  view.layers[0].geometry.fpp == (double) 0.1 &&
		  view.layers[0].bits_set == 45 &&
		  view.layers[0].bits == golden_dense + HEADER + ENTRY,
		  "layer of the dense one");
	for (i = 1; i <= 16; i++)
		CHECK(bf_contains(&view, (uint64_t) i * UINT64_C(0x0123456789ABCDEF)),
			  "key %d", i);

	CHECK(bf_validate(&no_interrupts, golden_named, sizeof(golden_named),
					  &view) == BF_OK,
		  "%s", view.reason);
	CHECK(view.params.key_type.code == BF_KEY_OPCLASS &&
		  view.params.key_type.byte_order == BF_LITTLE_ENDIAN &&
		  view.params.key_type.encoding == 6 &&
		  view.params.key_type.namelen == 6 &&
		  strcmp(view.params.key_type.name, "hstore") == 0, "the opclass-hashed type");
	CHECK(view.nhashes == 1 && bf_contains(&view, 0xC0FFEE), "its hash");
}

static void
test_lengths(void)
{
	const Sample samples[] = {
		SAMPLE(golden_sparse), SAMPLE(golden_dense), SAMPLE(golden_named)
	};
	size_t		i,
				size;

	for (i = 0; i < LENGTH(samples); i++)
	{
		for (size = 0; size < samples[i].size; size++)
			reject(samples[i].bytes, size, BF_CORRUPT, "truncated to", size);
		for (size = samples[i].size + 1; size < samples[i].size + 100; size++)
		{
			uint8_t    *longer = copy_of(samples[i].bytes, samples[i].size,
										 size);

			reject(longer, size, BF_CORRUPT, "with trailing bytes", size);
			free(longer);
		}
	}
}

static void
test_header(void)
{
	const Sample sparse = SAMPLE(golden_sparse);
	const Sample dense = SAMPLE(golden_dense);
	const uint64_t max = bf_max_keys(0.001);
	uint64_t	i;
	size_t		at;

	for (i = 0; i < 256; i++)
	{
		for (at = 0; at < 4; at++)
		{
			if (i != golden_sparse[at])
				reject_edited(sparse, at, 1, i, BF_CORRUPT, "magic");
		}
		if (i != 1)
		{
			reject_edited(sparse, VERSION_AT, 1, i, BF_UNKNOWN_VERSION,
						  "version");
			reject_edited(dense, VERSION_AT, 1, i, BF_UNKNOWN_VERSION,
						  "version");
			reject_edited(sparse, SCHEME_AT, 1, i, BF_UNKNOWN_VERSION,
						  "scheme");
			reject_edited(dense, SCHEME_AT, 1, i, BF_UNKNOWN_VERSION,
						  "scheme");
		}
		if (i != 0)
		{
			/* Reads as the other form, whose fields do not fit. */
			reject_edited(sparse, FORM_AT, 1, i, BF_CORRUPT, "form");
			reject_edited(sparse, NLAYERS_AT, 1, i, BF_CORRUPT,
						  "layers in the sparse form:");
			for (at = NLAYERS_AT + 1; at < NLAYERS_AT + 4; at++)
				reject_edited(dense, at, 1, i, BF_CORRUPT, "layers:");
			reject_edited(sparse, NLAYERS_AT + 1, 1, i, BF_CORRUPT,
						  "layers in the sparse form:");
			reject_edited(sparse, RESERVED_AT, 1, i, BF_CORRUPT, "flags:");
			reject_edited(dense, RESERVED_AT, 1, i, BF_CORRUPT, "flags:");
			for (at = NHASHES_AT; at < NHASHES_AT + 2; at++)
				reject_edited(dense, at, 1, i, BF_CORRUPT,
							  "hashes in the dense form:");
		}
		if (i != 1)
		{
			reject_edited(dense, FORM_AT, 1, i, BF_CORRUPT, "form");
			reject_edited(dense, NLAYERS_AT, 1, i, BF_CORRUPT, "layers:");
		}
	}

	/* 2^29 hashes and 3: as many bytes modulo 2^32 as there are */
	reject_edited(sparse, NHASHES_AT, 4, 0x20000003, BF_CORRUPT, "hashes:");
	reject_edited(sparse, NHASHES_AT, 4, 2, BF_CORRUPT, "hashes:");
	reject_edited(sparse, NHASHES_AT, 4, 4, BF_CORRUPT, "hashes:");
	reject_edited(sparse, NHASHES_AT, 4, 0, BF_CORRUPT, "hashes:");
	reject_edited(sparse, NHASHES_AT, 4, UINT32_MAX, BF_CORRUPT, "hashes:");

	accept_edited(sparse, EXPECTED_AT, 8, 0, "expected");
	accept_edited(sparse, EXPECTED_AT, 8, max, "expected");
	reject_edited(sparse, EXPECTED_AT, 8, ((uint64_t) 1 << 32) + 1,
				  BF_CORRUPT, "expected");
	reject_edited(sparse, EXPECTED_AT, 8, (uint64_t) 1 << 63, BF_CORRUPT,
				  "expected");
	reject_edited(sparse, EXPECTED_AT, 8, UINT64_MAX, BF_CORRUPT, "expected");
	accept_edited(sparse, SEED_AT, 8, UINT64_MAX, "seed");
	accept_edited(dense, SEED_AT, 8, (uint64_t) 1 << 63, "seed");
}

/* The rate of a list, in single precision; where depends on the form. */
static void
test_list_rates(void)
{
	static const uint32_t good[] = {0, 0x00800000, 0x3C23D70A, 0x3F800000};
	static const uint32_t bad[] = {
		1, 0x007FFFFF, 0x3F800001, 0x7F800000, 0x7FC00000, 0x80000000,
		0x80000001, 0xBC23D70A, UINT32_MAX
	};
	size_t		i;

	for (i = 0; i < LENGTH(good); i++)
	{
		accept_edited(SAMPLE(golden_sparse), NLAYERS_AT, 4, good[i], "list");
		accept_edited(SAMPLE(golden_dense), NHASHES_AT, 4, good[i], "list");
	}
	for (i = 0; i < LENGTH(bad); i++)
	{
		reject_edited(SAMPLE(golden_sparse), NLAYERS_AT, 4, bad[i], BF_CORRUPT,
					  "rate of the list");
		reject_edited(SAMPLE(golden_dense), NHASHES_AT, 4, bad[i], BF_CORRUPT,
					  "rate of the list");
	}
}

static void
test_rates(void)
{
	const Sample dense = SAMPLE(golden_dense);
	const double bad[] = {
		0.0, -0.0, -0.01, 1.0, 0.75, 1e300, -1e300, 5e-324, 1e-310, 2.3e-308,
		1e-300, HUGE_VAL, -HUGE_VAL
	};
	const uint64_t nans[] = {
		UINT64_C(0x7FF8000000000000), UINT64_C(0xFFF8000000000000),
		UINT64_C(0x7FF0000000000001), UINT64_MAX
	};
	size_t		i;

	for (i = 0; i < LENGTH(bad); i++)
	{
		reject_edited(SAMPLE(golden_sparse), FPP_AT, 8, bits_of(bad[i]),
					  BF_CORRUPT, "rate");
		reject_edited(dense, FPP_AT, 8, bits_of(bad[i]), BF_CORRUPT, "rate");
		reject_edited(dense, L_FPP_AT, 8, bits_of(bad[i]), BF_CORRUPT,
					  "rate of the layer");
	}
	for (i = 0; i < LENGTH(nans); i++)
	{
		reject_edited(dense, FPP_AT, 8, nans[i], BF_CORRUPT, "rate");
		reject_edited(dense, L_FPP_AT, 8, nans[i], BF_CORRUPT,
					  "rate of the layer");
	}

	accept_edited(dense, FPP_AT, 8, bits_of(0.5), "rate");
	accept_edited(dense, FPP_AT, 8, bits_of(1e-9), "rate");
	accept_edited(dense, L_FPP_AT, 8, bits_of(0.5), "rate of the layer");
	accept_edited(dense, L_FPP_AT, 8, bits_of(1e-18), "rate of the layer");
	reject_edited(dense, FPP_AT, 8, bits_of(nextafter(0.5, 1)), BF_CORRUPT,
				  "rate");
	reject_edited(dense, FPP_AT, 8, bits_of(nextafter(1e-9, 0)), BF_CORRUPT,
				  "rate");
	reject_edited(dense, L_FPP_AT, 8, bits_of(nextafter(0.5, 1)), BF_CORRUPT,
				  "rate of the layer");
	reject_edited(dense, L_FPP_AT, 8, bits_of(nextafter(1e-18, 0)),
				  BF_CORRUPT, "rate of the layer");
}

static void
test_layer(void)
{
	const Sample dense = SAMPLE(golden_dense);
	uint64_t	i;
	int			log2;

	for (i = 0; i < 256; i++)
	{
		if (i >= 1 && i <= 64)
			accept_edited(dense, K_AT, 1, i, "k");
		else
			reject_edited(dense, K_AT, 1, i, BF_CORRUPT, "k");
		if (i != 9)
			reject_edited(dense, BLOCK_LOG2_AT, 1, i, BF_CORRUPT,
						  "log2 of the block size");
		if (i <= 23)
			accept_edited(dense, GENERATION_AT, 1, i, "generation");
		else
			reject_edited(dense, GENERATION_AT, 1, i, BF_CORRUPT,
						  "generation");
		if (i > 0)
			reject_edited(dense, L_RESERVED_AT, 1, i, BF_CORRUPT, "flags");
	}

	/* A block of each size, so that the length fits. */
	for (log2 = 0; log2 < 20; log2++)
	{
		size_t		size = HEADER + ENTRY + ((size_t) 1 << log2) / 8;
		uint8_t    *copy = copy_of(golden_dense, sizeof(golden_dense), size);

		put(copy + BLOCK_LOG2_AT, (uint64_t) log2, 1);
		if (log2 >= 9 && log2 <= 14)
			accept(copy, size, "block of 2^", (uint64_t) log2);
		else
			reject(copy, size, BF_CORRUPT, "block of 2^", (uint64_t) log2);
		free(copy);
	}

	reject_edited(dense, NBLOCKS_AT, 4, 0, BF_CORRUPT, "blocks:");
	reject_edited(dense, NBLOCKS_AT, 4, 2, BF_CORRUPT, "blocks:");
	reject_edited(dense, NBLOCKS_AT, 4, (1 << 23) + 1, BF_CORRUPT, "blocks:");
	reject_edited(dense, NBLOCKS_AT, 4, UINT32_MAX, BF_CORRUPT, "blocks:");
	reject_edited(dense, NBLOCKS_AT, 4, UINT32_C(0x80000000), BF_CORRUPT,
				  "blocks:");

	/* Without a block, of just that length. */
	{
		uint8_t    *copy = copy_of(golden_dense, HEADER + ENTRY,
								   HEADER + ENTRY);

		put(copy + NBLOCKS_AT, 0, 4);
		put(copy + CAPACITY_AT, 0, 8);
		put(copy + BITS_SET_AT, 0, 8);
		reject(copy, HEADER + ENTRY, BF_CORRUPT, "no block", 0);
		put(copy + CAPACITY_AT, 1, 8);
		reject(copy, HEADER + ENTRY, BF_CORRUPT, "no block", 1);
		free(copy);
	}

	reject_edited(dense, CAPACITY_AT, 8, 0, BF_CORRUPT, "capacity");
	accept_edited(dense, CAPACITY_AT, 8, 1, "capacity");
	accept_edited(dense, CAPACITY_AT, 8, 512, "capacity");
	reject_edited(dense, CAPACITY_AT, 8, 513, BF_CORRUPT, "capacity");

	reject_edited(dense, CAPACITY_AT, 8, (uint64_t) 1 << 32, BF_CORRUPT,
				  "capacity");
	reject_edited(dense, CAPACITY_AT, 8, (uint64_t) 1 << 63, BF_CORRUPT,
				  "capacity");
	reject_edited(dense, CAPACITY_AT, 8, UINT64_MAX, BF_CORRUPT, "capacity");

	reject_edited(dense, BITS_SET_AT, 8, 513, BF_CORRUPT, "bits set:");
	reject_edited(dense, BITS_SET_AT, 8, ((uint64_t) 1 << 32) + 45,
				  BF_CORRUPT, "bits set:");
	reject_edited(dense, BITS_SET_AT, 8, UINT64_MAX, BF_CORRUPT, "bits set:");
}

/* Sizes whose product or sum fits the length modulo 2^32. */
static void
test_wrapping(void)
{
	static const struct
	{
		uint32_t	nblocks;
		uint8_t		block_log2;
	}			cases[] = {
		{UINT32_C(0x80000001), 14}, {UINT32_C(0x04000001), 9},
		{UINT32_C(0x00800001), 9}, {UINT32_C(0x00200001), 14},
		{UINT32_C(0x00040001), 14}, {UINT32_C(0x08000001), 9}
	};
	size_t		i;

	for (i = 0; i < LENGTH(cases); i++)
	{
		size_t		block = (size_t) 1 << (cases[i].block_log2 - 3);
		size_t		size = HEADER + ENTRY + block;
		uint8_t    *copy = copy_of(golden_dense, sizeof(golden_dense), size);

		put(copy + NBLOCKS_AT, cases[i].nblocks, 4);
		put(copy + BLOCK_LOG2_AT, cases[i].block_log2, 1);
		reject(copy, size, BF_CORRUPT, "blocks whose size wraps:",
			   cases[i].nblocks);
		free(copy);
	}

	/* Eight layers of 2^32 bits, and none of their blocks. */
	{
		size_t		size = HEADER + 8 * ENTRY;
		uint8_t    *copy = copy_of(golden_dense, HEADER + ENTRY, size);

		put(copy + NLAYERS_AT, 8, 4);
		for (i = 0; i < 8; i++)
		{
			memmove(copy + HEADER + i * ENTRY, copy + HEADER, ENTRY);
			put(copy + NBLOCKS_AT + i * ENTRY, 1 << 23, 4);
		}
		reject(copy, size, BF_CORRUPT, "layers whose sizes wrap:", 8);
		free(copy);
	}
}

static uint8_t *
many_layers(int n, size_t *size)
{
	uint8_t    *image;
	int			i;

	*size = HEADER + (size_t) n * (ENTRY + 64);
	image = copy_of(golden_dense, HEADER, *size);
	put(image + NLAYERS_AT, (uint64_t) n, 4);
	for (i = 0; i < n; i++)
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
	size_t		i;

	for (i = 0; i < LENGTH(numbers); i++)
	{
		size_t		size;
		uint8_t    *image = many_layers(numbers[i], &size);

		if (numbers[i] >= 1 && numbers[i] <= BF_MAX_LAYERS)
			accept(image, size, "layers:", (uint64_t) numbers[i]);
		else
			reject(image, size, BF_CORRUPT, "layers:",
				   (uint64_t) numbers[i]);
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
	CHECK(bf_open(image, size - 64, &view) == BF_OK, "2^32 bits: %s",
		  view.reason);
	CHECK(view.layers[1].bits == image + size - 128, "the last block");
	put(image + NBLOCKS_AT, 1 << 23, 4);
	CHECK(bf_open(image, size, &view) == BF_CORRUPT, "2^32 + 512 bits");
	free(image);

	/* The longest list.  Of this, nothing is there but the header. */
	image = copy_of(golden_sparse, HEADER, HEADER);
	put(image + NHASHES_AT, (1 << 26) + 4, 4);
	size = HEADER + 8 * ((size_t) (1 << 26) + 4);
	CHECK(bf_open_header(image, size, &view) == BF_OK, "2^26 + 4 hashes: %s",
		  view.reason);
	put(image + NHASHES_AT, (1 << 26) + 5, 4);
	CHECK(bf_open_header(image, size + 8, &view) == BF_CORRUPT,
		  "2^26 + 5 hashes");
	free(image);
}

/* What takes a look at the content: bf_open() lets it pass. */
static void
reject_content(Sample sample, size_t at, int bytes, uint64_t value,
			   const char *what)
{
	uint8_t    *copy = copy_of(sample.bytes, sample.size, sample.size);
	BfView		view;

	put(copy + at, value, bytes);
	CHECK(bf_open(copy, sample.size, &view) == BF_OK, "%s: %s", what,
		  view.reason);
	CHECK(bf_validate(&no_interrupts, copy, sample.size, &view) == BF_CORRUPT,
		  "%s is not noticed", what);
	CHECK(view.reason != NULL && view.reason[0] != '\0', "no reason");
	free(copy);
}

static void
test_content(void)
{
	const Sample sparse = SAMPLE(golden_sparse);
	const Sample dense = SAMPLE(golden_dense);
	size_t		size;
	uint8_t    *layers = many_layers(3, &size);
	int			i;

	reject_content(dense, BITS_SET_AT, 8, 44, "one bit less");
	reject_content(dense, BITS_SET_AT, 8, 46, "one bit more");
	reject_content(dense, BITS_SET_AT, 8, 0, "no bit");
	reject_content(dense, BITS_SET_AT, 8, 512, "all bits");
	for (i = 0; i < 3; i++)
	{
		Sample		three = {layers, size};
		size_t		at = HEADER + (size_t) i * ENTRY + 24;

		reject_content(three, at, 8, 44, "one bit less in one of three");
		reject_content(three, at, 8, 46, "one bit more in one of three");
		at = HEADER + 3 * ENTRY + (size_t) i * 64;
		reject_content(three, at, 1, 0x80, "a bit set in the first byte");
		reject_content(three, at + 63, 1, 0x84, "a bit set in the last one");
	}
	free(layers);

	/* 1, 2^63, 0xFEDCBA9876543210 */
	reject_content(sparse, HEADER, 8, (uint64_t) 1 << 63, "a duplicate");
	reject_content(sparse, HEADER + 8, 8, 1, "a duplicate");
	reject_content(sparse, HEADER + 8, 8, 0, "a descent at the front");
	reject_content(sparse, HEADER + 16, 8, (uint64_t) 1 << 63,
				   "a duplicate at the end");
	reject_content(sparse, HEADER + 16, 8, ((uint64_t) 1 << 63) - 1,
				   "a descent at the end");
	accept_edited(sparse, HEADER + 8, 8, 2, "neighbouring hash");
	accept_edited(sparse, HEADER, 8, 0, "hash");
	accept_edited(sparse, HEADER + 16, 8, UINT64_MAX, "hash");
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
try_key_type(int code, size_t namelen, int byte_order, int encoding, bool good)
{
	size_t		size;
	uint8_t    *image = image_of_key_type(code, namelen, byte_order, encoding,
										  &size);
	uint64_t	all = (uint64_t) code << 24 | namelen << 16 |
		(uint64_t) byte_order << 8 | (uint64_t) encoding;

	if (good)
		accept(image, size, "key type", all);
	else
		reject(image, size, BF_CORRUPT, "key type", all);
	free(image);
}

static void
test_key_types(void)
{
	int			code,
				i;
	size_t		namelen;

	for (code = 0; code < 256; code++)
	{
		bool		foreign = code == BF_KEY_OPCLASS;
		bool		named = code == BF_KEY_ENUM || foreign;
		bool		canonical = code <= BF_KEY_XID8;
		int			order = foreign ? BF_LITTLE_ENDIAN : 0;

		try_key_type(code, 0, order, 0, canonical);
		for (namelen = 1; namelen < 256; namelen++)
			try_key_type(code, namelen, order, 0, named);
		for (i = 0; i < 256; i++)
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
	size_t		namelen,
				i;
	uint64_t	c;

	for (namelen = 1; namelen <= BF_MAX_KEY_TYPE_NAME; namelen += 6)
	{
		size_t		size;
		uint8_t    *image = image_of_key_type(BF_KEY_ENUM, namelen, 0, 0, &size);
		Sample		sample = {image, size};

		for (c = 0; c < 256; c++)
		{
			for (i = 0; i < namelen; i += namelen > 1 ? namelen - 1 : 1)
			{
				if (c < ' ' || c >= 0x7F)
					reject_edited(sample, HEADER + i, 1, c, BF_CORRUPT,
								  "in a name, character");
				else
					accept_edited(sample, HEADER + i, 1, c,
								  "in a name, character");
			}
			for (i = namelen; c > 0 && i < (namelen + 7) / 8 * 8; i++)
				reject_edited(sample, HEADER + i, 1, c, BF_CORRUPT,
							  "after a name, byte");
		}

		/* Ends within the name or its padding. */
		for (i = HEADER; i < size; i++)
			reject(image, i, BF_CORRUPT, "a name cut off at", i);
		free(image);
	}
}

/* How many of all strings of this many bytes are a name. */
static uint64_t
count_names(size_t length)
{
	uint64_t	count = 0;
	uint64_t	value;
	uint8_t		string[8];

	for (value = 0; value >> (8 * length) == 0; value++)
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
	uint32_t	c;
	int			lead,
				second;
	size_t		i,
				j;
	uint64_t	count = 0;

	for (c = 0; c <= 0x10FFFF; c++)
	{
		char		string[4];
		size_t		length = 0;
		bool		good = !(c < 0x20 || (c >= 0x7F && c < 0xA0) ||
							 (c >= 0xD800 && c < 0xE000));

		if (c < 0x80)
			string[length++] = (char) c;
		else
		{
			if (c < 0x800)
				string[length++] = (char) (0xC0 | c >> 6);
			else
			{
				if (c < 0x10000)
					string[length++] = (char) (0xE0 | c >> 12);
				else
				{
					string[length++] = (char) (0xF0 | c >> 18);
					string[length++] = (char) (0x80 | (c >> 12 & 0x3F));
				}
				string[length++] = (char) (0x80 | (c >> 6 & 0x3F));
			}
			string[length++] = (char) (0x80 | (c & 0x3F));
		}
		CHECK(bf_valid_key_type_name(string, length) == good, "U+%04X is %s",
			  (unsigned) c, good ? "rejected" : "accepted");
		for (i = 1; i < length; i++)
			CHECK(!bf_valid_key_type_name(string, i), "U+%04X cut off at %d",
				  (unsigned) c, (int) i);
	}

	/* 95 printable characters of ASCII; from U+00A0 on; from U+0800 on */
	CHECK(count_names(1) == 95, "of one byte");
	CHECK(count_names(2) == 95 * 95 + 0x760, "of two bytes");
	CHECK(count_names(3) == 95 * 95 * 95 + 2 * 95 * 0x760 + 0xF000,
		  "of three bytes");

	for (lead = 0xF0; lead < 0x100; lead++)
	{
		for (second = 0; second < 0x100; second++)
		{
			for (i = 0; i < LENGTH(ends); i++)
			{
				for (j = 0; j < LENGTH(ends); j++)
				{
					uint8_t		string[4] = {
						(uint8_t) lead, (uint8_t) second, ends[i], ends[j]
					};

					count += bf_valid_key_type_name((char *) string, 4);
				}
			}
		}
	}
	CHECK(count == 0x100 * 2 * 2, "of four bytes: %u", (unsigned) count);
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
	size_t		i;

	memset(&a, 0, sizeof(a));
	CHECK(bf_key_type_name(&a) == NULL, "a filter without a key type has a name");
	for (i = 0; i < LENGTH(names); i++)
	{
		a.code = (uint8_t) (BF_KEY_TEXT + i);
		CHECK(strcmp(bf_key_type_name(&a), names[i]) == 0, "%s is called %s",
			  names[i], bf_key_type_name(&a));
	}

	a = named_key_type(BF_KEY_OPCLASS, "hstore");
	CHECK(strcmp(bf_key_type_name(&a), "hstore") == 0, "%s", bf_key_type_name(&a));
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
	CHECK(!bf_key_type_equal(&a, &b) && !bf_key_type_equal(&b, &a), "a prefix");
}

/* A name survives being written, with all its bytes and neighbours. */
static void
test_longest_name(void)
{
	BfParams	params = params_of(0.1, 20);
	TestEnv		env;
	BfBuilder	b;
	Image		image;
	int			i;
	size_t		namelen;

	for (namelen = 1; namelen <= BF_MAX_KEY_TYPE_NAME; namelen++)
	{
		memset(&params.key_type, 0, sizeof(params.key_type));
		params.key_type.code = BF_KEY_ENUM;
		params.key_type.namelen = (uint8_t) namelen;
		for (i = 0; i < (int) namelen; i++)
			params.key_type.name[i] = (char) ('!' + i % 94);
		env_init(&env, SIZE_MAX);
		bf_builder_init(&b, &env.env, &params);
		add_keys(&b, 0, 5 + namelen, 1);
		if (image_write(&image, &b, false))
		{
			CHECK(bf_key_type_equal(&image.view.params.key_type, &params.key_type) &&
				  strcmp(image.view.params.key_type.name, params.key_type.name) == 0,
				  "\"%s\" is read as \"%s\"", params.key_type.name,
				  image.view.params.key_type.name);
			image_has(&image, 0, 5 + namelen, 1);
		}
		image_free(&image);
		finish(&b, &env);
	}
}

/* Memory that a small image may make us request before we are rejected. */
#define ENOUGH	((size_t) 1 << 22)

static bool
harmless(BfStatus status)
{
	return status == BF_OK || status == BF_NO_MEMORY ||
		status == BF_TOO_LARGE;
}

static void
use_builder(BfBuilder *b, const BfView *view, bool valid, size_t at)
{
	uint64_t	i;
	int			compact;

	for (compact = 0; compact < 2; compact++)
	{
		BfBuilder	smaller;
		bool		found = false;
		size_t		size;
		BfStatus	status = compact ?
			bf_builder_compact(b, &smaller, &found) : BF_OK;
		BfBuilder  *made = found ? &smaller : b;
		uint8_t    *written;
		BfView		again;

		if (status == BF_OK)
			status = bf_builder_plan(made, &size);
		CHECK(harmless(status), "byte %zu: plan gives %d", at, (int) status);
		if (status != BF_OK)
			return;
		written = exactly(size);
		bf_builder_write(made, written);
		if (found)
			bf_builder_free(&smaller);
		status = valid ? bf_validate(&no_interrupts, written, size, &again)
			: bf_open(written, size, &again);
		CHECK(status == BF_OK, "byte %zu: rewritten, it is rejected: %s", at,
			  again.reason);

		/* What tested positive still does. */
		for (i = 0; status == BF_OK && i < 300; i++)
			CHECK(!valid || !bf_contains(view, key(i, 1)) ||
				  bf_contains(&again, key(i, 1)), "byte %zu: key %llu lost",
				  at, (unsigned long long) i);
		free(written);
	}
}

/* Do everything with an image that bf_open() has let pass. */
static void
use_view(const BfView *view, bool valid, const BfView *other,
		 size_t at)
{
	double		cardinality = bf_cardinality(view);
	double		rate = bf_current_fpp(view);
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;
	uint64_t	i;

	CHECK(cardinality >= 0 && isfinite(cardinality), "byte %zu: %g keys", at,
		  cardinality);
	CHECK(rate >= 0 && rate <= 1 + 1e-12, "byte %zu: rate %g", at, rate);
	(void) bf_key_type_name(&view->params.key_type);
	for (i = 0; i < 50; i++)
		(void) bf_contains(view, key(i, 1));
	(void) bf_contains(view, 0);
	(void) bf_contains(view, UINT64_MAX);

	/* Into an empty one of its own parameters, and more keys after it. */
	env_init(&env, SIZE_MAX);
	env.limit = ENOUGH;
	bf_builder_init(&b, &env.env, &view->params);
	status = bf_builder_merge(&b, view);
	if (status == BF_OK)
		use_builder(&b, view, valid, at);
	for (i = 0; status == BF_OK && i < 300; i++)
		status = bf_builder_add(&b, key(i, 2));
	CHECK(harmless(status), "byte %zu: status %d", at, (int) status);
	if (status == BF_OK)
		use_builder(&b, view, valid, at);
	finish(&b, &env);

	/* With another one, on either side. */
	for (i = 0; i < 2; i++)
	{
		env_init(&env, SIZE_MAX);
		env.limit = ENOUGH;
		status = i == 0 ? bf_union(&b, &env.env, view, other)
			: bf_union(&b, &env.env, other, view);
		CHECK(harmless(status) || status == BF_SEED_MISMATCH ||
			  status == BF_KEY_TYPE_MISMATCH, "byte %zu: union gives %d", at,
			  (int) status);
		if (status == BF_OK)
			use_builder(&b, view, valid, at);
		finish(&b, &env);
	}
}

/* Returns whether the bytes were let pass. */
static bool
try_image(const uint8_t *bytes, size_t size, const BfView *other, size_t at)
{
	uint8_t    *copy = copy_of(bytes, size, size);
	BfView		view;
	BfStatus	opened = bf_open(copy, size, &view);
	BfStatus	status = bf_validate(&no_interrupts, copy, size, &view);
	bool		valid = status == BF_OK;

	CHECK(opened == BF_OK || opened == status,
		  "byte %zu: opened as %d, validated as %d", at, (int) opened,
		  (int) status);
	CHECK(valid || (view.reason != NULL && view.reason[0] != '\0'),
		  "byte %zu: no reason", at);
	if (opened == BF_OK)
	{
		/* A rejected one may be stored already, and is used all the same. */
		(void) bf_open(copy, size, &view);
		use_view(&view, valid, other, at);
	}
	free(copy);
	return opened == BF_OK;
}

/* Images of all sorts: sparse, dense, layers, a named key type in both forms. */
static void
make_samples(Image *samples)
{
	static const struct
	{
		double		fpp;
		uint64_t	expected;
		uint64_t	n;
		bool		named;
	}			what[6] = {
		{0.01, 0, 7, false}, {0.01, 40, 40, false}, {0.1, 20, 250, false},
		{0.01, 0, 4, true}, {0.01, 40, 30, true}, {0.001, 1, 0, false}
	};
	int			i;

	for (i = 0; i < 6; i++)
	{
		BfParams	params = params_of(what[i].fpp, what[i].expected);
		TestEnv		env;
		BfBuilder	b;

		if (what[i].named)
			params.key_type = named_key_type(BF_KEY_OPCLASS, "a.type_of_10");
		env_init(&env, SIZE_MAX);
		bf_builder_init(&b, &env.env, &params);
		add_keys(&b, 0, what[i].n, 1);
		image_write(&samples[i], &b, false);
		finish(&b, &env);
	}
	CHECK(samples[0].view.nlayers == 0 && samples[1].view.nlayers == 1 &&
		  samples[2].view.nlayers == 2 && samples[3].view.nlayers == 0 &&
		  samples[4].view.nlayers == 1 && samples[5].view.nhashes == 0,
		  "the samples are not what they are meant to be");
}

static void
test_every_byte(void)
{
	static const uint8_t values[] = {0, 1, 0x7F, 0x80, 0xFF};
	Image		samples[6];
	long		passed = 0;
	long		tried = 0;
	size_t		s,
				at,
				v;

	make_samples(samples);
	for (s = 0; s < 6; s++)
	{
		for (at = 0; at < samples[s].size; at++)
		{
			uint8_t		before = samples[s].bytes[at];

			/* Blocks are alike. */
			if (!is_long() && at > 160 && at % 7 > 0)
				continue;
			for (v = 0; v < LENGTH(values); v++)
			{
				samples[s].bytes[at] = values[v];
				tried++;
				passed += try_image(samples[s].bytes, samples[s].size,
									&samples[s].view, at);
			}
			samples[s].bytes[at] = before;
		}
	}
	CHECK(passed > tried / 10 && passed < tried,
		  "%ld of %ld passed: not much of a test", passed, tried);
	for (s = 0; s < 6; s++)
		image_free(&samples[s]);
}

/* Several fields at a time, with the values that break arithmetic. */
static void
test_many_bytes(void)
{
	static const uint64_t values[] = {
		0, 1, 2, 8, 9, 14, 64, 65, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF,
		0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, UINT64_C(0x100000000),
		UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0x8000000000000000),
		UINT64_MAX
	};
	static const int widths[] = {1, 1, 2, 4, 8};
	uint64_t	state = 7;
	uint64_t	rounds = scaled(100000, 4000);
	uint64_t	i;
	long		passed = 0;
	Image		samples[6];
	size_t		s;

	make_samples(samples);
	for (i = 0; i < rounds; i++)
	{
		const Image *sample = &samples[i % 6];
		uint8_t    *copy = copy_of(sample->bytes, sample->size, sample->size);
		size_t		header = sample->size < 140 ? sample->size : 140;
		int			edits = 1 + (int) (random64(&state) % 4);

		for (; edits > 0; edits--)
		{
			int			width = widths[random64(&state) % LENGTH(widths)];
			size_t		at = random64(&state) % (header - 8);

			/* Often a whole field. */
			if (random64(&state) % 2 == 0)
				at = at / 4 * 4;
			put(copy + at, values[random64(&state) % LENGTH(values)], width);
		}
		if (random64(&state) % 4 > 0)
			memcpy(copy, sample->bytes, 8);
		passed += try_image(copy, sample->size, &sample->view, (size_t) i);
		free(copy);
	}
	CHECK(passed > (long) rounds / 50, "%ld of %llu passed: not much of a "
		  "test", passed, (unsigned long long) rounds);
	for (s = 0; s < 6; s++)
		image_free(&samples[s]);
}

/* Hands out each part in memory of its own, so that no overrun goes unseen. */
typedef struct Reader
{
	const Image *image;
	uint8_t    *part;
	int			reads;
} Reader;

static const uint8_t *
read_block_slice(void *context, size_t at, size_t length)
{
	Reader	   *reader = context;
	static const uint8_t nothing[BF_MAX_BLOCK_SIZE];

	reader->reads++;
	free(reader->part);
	reader->part = NULL;
	if (!CHECK(length > 0 && length <= BF_MAX_BLOCK_SIZE &&
			   at <= reader->image->size &&
			   length <= reader->image->size - at,
			   "%zu bytes at %zu of %zu", length, at, reader->image->size))
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
	BfStatus	status;

	memcpy(header, image->bytes, length);
	status = bf_open_header(header, image->size, view);
	free(header);
	return CHECK(status == BF_OK, "status %d", (int) status) &&
		CHECK(view->image == NULL && view->hashes == NULL &&
			  (view->nlayers == 0 || view->layers[0].bits == NULL),
			  "a view of a front has pointers");
}

/*
 * Compare for a hash; returns how many parts were read.  view is that of the
 * header.
 */
static int
compare(const Image *image, const BfView *view, uint64_t hash)
{
	Reader		reader = {image, NULL, 0};
	bool		found = bf_contains_sliced(view, hash, read_block_slice, &reader);

	free(reader.part);
	CHECK(found == bf_contains(&image->view, hash),
		  "%llx: %d by parts", (unsigned long long) hash, found);
	return reader.reads;
}

/* For keys and others; returns the most parts that were read for one. */
static int
compare_many(const Image *image, uint64_t nkeys, uint64_t set)
{
	uint64_t	step = nkeys / scaled(5000, 500) + 1;
	uint64_t	n = scaled(5000, 500);
	BfView		view;
	int			max = 0;
	uint64_t	i;

	if (!open_header(image, &view))
		return 0;
	for (i = 0; i < nkeys; i += step)
	{
		int			reads = compare(image, &view, key(i, set));

		max = reads > max ? reads : max;
	}
	for (i = 0; i < n; i++)
	{
		int			reads = compare(image, &view, key(i, set + 1));

		max = reads > max ? reads : max;
	}
	for (i = 0; i < 3; i++)
	{
		compare(image, &view, i);
		compare(image, &view, UINT64_MAX - i);
	}
	return max;
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
	size_t		i;

	for (i = 0; i < LENGTH(lengths); i++)
	{
		Image		image;
		int			max;

		if (!is_long() && lengths[i] > 100000)
			break;
		image_build(&image, 0.01, 0, 0, lengths[i], 1, false);
		CHECK(image.view.nlayers == 0, "not sparse");
		max = compare_many(&image, lengths[i], 1);
		CHECK(max <= 6, "%d parts for one of %llu hashes", max,
			  (unsigned long long) lengths[i]);
		CHECK(lengths[i] == 0 || lengths[i] > 128 || max == 1,
			  "%d parts of a short list", max);
		image_free(&image);
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
	int			form;

	for (form = 0; form < 4; form++)
	{
		BfBuilder	b;
		TestEnv		env;
		Image		image;
		BfView		view;
		uint64_t	n = 20000;
		int			max = 0;
		uint64_t	i;

		start(&b, &env, 0.01, 0);
		for (i = 0; i < n; i++)
		{
			uint64_t	hash = form == 0 ? i :
				form == 1 ? UINT64_MAX - 3 * i :
				form == 2 ? UINT64_C(1) << i % 64 | i << i % 40 :
				random64(&state) >> i % 64;

			bf_builder_add(&b, hash);
		}
		image_write(&image, &b, false);
		finish(&b, &env);

		CHECK(image.view.nlayers == 0, "not sparse");
		if (open_header(&image, &view))
		{
			for (i = 0; i < image.view.nhashes; i++)
			{
				uint64_t	hash;
				int			j;

				memcpy(&hash, image.view.hashes + 8 * i, 8);
				for (j = -1; j <= 1; j++)
				{
					int			reads = compare(&image, &view,
												hash + (uint64_t) j);

					max = reads > max ? reads : max;
				}
			}
		}
		CHECK(max <= 6 + 8, "form %d: %d parts", form, max);
		image_free(&image);
	}
}

/* Each size of block, and several numbers of layers. */
static void
test_dense(void)
{
	static const double rates[] = {0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9};
	uint64_t	n;
	size_t		i;
	int			nlayers = 0;

	for (i = 0; i < LENGTH(rates); i++)
	{
		Image		image;

		image_build(&image, rates[i], 20000, 0, 20000, 1, false);
		CHECK(image.view.nlayers == 1, "%d layers", image.view.nlayers);
		CHECK(compare_many(&image, 20000, 1) == 1, "more than a block");
		image_free(&image);
	}
	for (n = 80; nlayers < 6; n = n * 3 / 2)
	{
		Image		image;

		image_build(&image, 0.1, 100, 0, n, 1, false);
		nlayers = image.view.nlayers;
		CHECK(compare_many(&image, n, 1) == nlayers, "a block a layer");
		image_free(&image);
	}
}

/* What bf_open says of an image, bf_open_header says of its header. */
static void
compare_opening(const uint8_t *bytes, size_t size)
{
	size_t		length = size < BF_MAX_HEADER ? size : BF_MAX_HEADER;
	uint8_t    *header = exactly(length);
	BfView		x;
	BfView		y;
	BfStatus	status = bf_open(bytes, size, &x);

	memcpy(header, bytes, length);
	CHECK(bf_open_header(header, size, &y) == status, "status %d", (int) status);
	if (status != BF_OK)
		CHECK(strcmp(x.reason, y.reason) == 0, "%s %s", x.reason, y.reason);
	else
		CHECK(x.size == y.size && x.list_at == y.list_at &&
			  x.nlayers == y.nlayers && x.nhashes == y.nhashes,
			  "views differ");
	free(header);
}

/* For each byte of the header changed, and for each wrong size. */
static void
test_opening(void)
{
	static const uint64_t expected[] = {0, 1000, 100, 10};
	size_t		i;

	for (i = 0; i < LENGTH(expected); i++)
	{
		Image		image;
		size_t		header;
		size_t		at;

		image_build(&image, 0.1, expected[i], 0, 1000, 1, false);
		header = bf_header_size(&image.view.params, image.view.nlayers);
		for (at = 0; at < header; at++)
		{
			uint8_t		was = image.bytes[at];
			static const uint8_t values[] = {0, 1, 2, 0x7F, 0x80, 0xFF};
			size_t		j;

			for (j = 0; j < LENGTH(values); j++)
			{
				image.bytes[at] = values[j];
				compare_opening(image.bytes, image.size);
			}
			image.bytes[at] = was;
		}
		for (at = 0; at < image.size + 20; at++)
		{
			uint8_t    *other = exactly(at);

			memset(other, 0, at);
			memcpy(other, image.bytes, at < image.size ? at : image.size);
			compare_opening(other, at);
			free(other);
		}
		image_free(&image);
	}
}

int
main(void)
{
	tap_run("golden bytes of a sparse image", test_golden_sparse);
	tap_run("golden bytes of a dense image", test_golden_dense);
	tap_run("golden bytes of an image with a named key type", test_golden_named);
	tap_run("the golden images are read back", test_read);
	tap_run("every truncation and trailing bytes", test_lengths);
	tap_run("magic, version, form, scheme, reserved bytes, counts",
			test_header);
	tap_run("rates: NaN, infinite, negative, denormal, out of range",
			test_rates);
	tap_run("rates of lists", test_list_rates);
	tap_run("entry of the directory", test_layer);
	tap_run("sizes that wrap around", test_wrapping);
	tap_run("number of layers", test_number_of_layers);
	tap_run("the limit of all layers together", test_total);
	tap_run("bits set, and the order of hashes", test_content);
	tap_run("key types: code, length of name, byte order, encoding", test_key_types);
	tap_run("names: characters and padding", test_names);
	tap_run("names: every code point, and no other bytes", test_utf8);
	tap_run("names and equality of key types", test_key_type_functions);
	tap_run("names of every length are written and read",
			test_longest_name);
	tap_run("each byte changed: rejected, or safe to use", test_every_byte);
	tap_run("several fields changed: rejected, or safe to use",
			test_many_bytes);
	tap_run("lists of hashes by parts, in few of them", test_sparse);
	tap_run("lists of hashes that are not spread", test_made_up);
	tap_run("blocks of all sizes and layers by parts", test_dense);
	tap_run("a front is opened as the whole is", test_opening);
	return tap_done();
}
