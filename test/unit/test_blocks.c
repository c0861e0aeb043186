/*-------------------------------------------------------------------------
 *
 * test_blocks.c
 *	  Layers of which single blocks are in memory: their bits, their limits,
 *	  and sizes beyond those of an image.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"
#include "bits.h"

/* Single blocks have the bits of the whole layer. */
static void
same_bits(void)
{
	static const double rates[] = {0.1, 0.01, 1e-3, 1e-5, 1e-9};
	size_t		r;

	for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
	{
		BfGeometry	geometry;
		uint8_t    *whole;
		uint8_t    *blocks;
		uint64_t	set = 0;
		uint64_t	i;

		bf_geometry_for(rates[r], 3000, &geometry);
		geometry.generation = (uint8_t) r;
		whole = calloc(1, bf_geometry_size(&geometry));
		blocks = calloc(1, bf_geometry_size(&geometry));
		for (i = 0; i < 3000; i++)
		{
			uint64_t	hash = key(i, r);
			uint8_t    *block = blocks +
				bf_blocks_size(&geometry, bf_block_number(&geometry, hash));

			bf_bits_add(&geometry, whole, hash);
			set += bf_block_add(&geometry, block, hash);
			CHECK(bf_block_contains(&geometry, block, hash),
				  "key %llu at rate %g", (unsigned long long) i, rates[r]);
		}
		CHECK(memcmp(whole, blocks, bf_geometry_size(&geometry)) == 0,
			  "rate %g", rates[r]);
		CHECK(set == bf_blocks_bits_set(blocks, bf_geometry_size(&geometry)),
			  "%llu bits at rate %g", (unsigned long long) set, rates[r]);
		for (i = 3000; i < 6000; i++)
		{
			uint64_t	hash = key(i, r);
			uint8_t    *block = blocks +
				bf_blocks_size(&geometry, bf_block_number(&geometry, hash));

			CHECK(bf_block_contains(&geometry, block, hash) ==
				  bf_bits_contain(&geometry, whole, hash),
				  "absent key %llu at rate %g", (unsigned long long) i,
				  rates[r]);
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

	bf_geometry_for(0.01, 12345, &geometry);
	full = bf_blocks_full(&geometry, geometry.nblocks);
	CHECK(full == bf_geometry_full(&geometry), "%llu bits",
		  (unsigned long long) full);
	CHECK(geometry.nblocks % 2 != 0 ||
		  bf_blocks_full(&geometry, geometry.nblocks / 2) == full / 2,
		  "half of %llu bits", (unsigned long long) full);
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
	uint64_t	i;

	CHECK(bf_geometry_paged(fpp, n, &geometry) == BF_OK,
		  "%llu keys", (unsigned long long) n);
	CHECK(bf_geometry_bits(&geometry) > BF_MAX_BITS, "no larger than an image");
	span = UINT64_MAX / geometry.nblocks * MADE;
	blocks = calloc(MADE + 2, bf_blocks_size(&geometry, 1));
	made_keys = (uint64_t) ((double) geometry.capacity / geometry.nblocks *
							MADE);

	for (i = 0; i < made_keys + probes; i++)
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
	CHECK((double) found < 1.1 * fpp * (double) probes +
		  4 * sqrt(fpp * (double) probes) &&
		  (double) found > 0.8 * fpp * (double) probes -
		  4 * sqrt(fpp * (double) probes),
		  "%llu keys at rate %g: %llu of %llu probes",
		  (unsigned long long) n, fpp, (unsigned long long) found,
		  (unsigned long long) probes);
	free(blocks);
}

static void
large_layers(void)
{
	BfGeometry	geometry;

	large_rate(0.005, UINT64_C(1000000000), scaled(5000000, 500000));
	large_rate(0.005, UINT64_C(10000000000), scaled(5000000, 500000));
	large_rate(5e-4, UINT64_C(10000000000), scaled(20000000, 1000000));
	CHECK(bf_geometry_paged(0.005, UINT64_C(90000000000), &geometry) == BF_OK,
		  "90 billion keys");
	CHECK(bf_geometry_paged(0.005, UINT64_C(1000000000000),
							&geometry) == BF_TOO_LARGE, "10^12 keys");
}

/* An image from a view, layer by layer. */
static void
view_header(void)
{
	BfBuilder	b;
	TestEnv		env;
	Image		image;
	const BfView *view = &image.view;
	size_t		header;
	uint8_t    *copy;

	start(&b, &env, 0.01, 1000);
	add_keys(&b, 0, 5000, 42);
	image_write(&image, &b, false);
	CHECK(view->nlayers > 1, "%d layers", view->nlayers);
	header = bf_header_size(&view->params, view->nlayers);
	copy = calloc(1, header);
	bf_write_header(copy, &view->params, 0, view->layers, view->nlayers);
	CHECK(memcmp(copy, image.bytes, header) == 0, "%d layers", view->nlayers);
	free(copy);
	free(image.bytes);
	finish(&b, &env);
}

int
main(void)
{
	tap_run("single blocks have the bits of the whole layer", same_bits);
	tap_run("the share of a part in a full layer", share_full);
	tap_run("layers beyond the size of an image have their rate",
			large_layers);
	tap_run("the header of an image from a view", view_header);
	return tap_done();
}
