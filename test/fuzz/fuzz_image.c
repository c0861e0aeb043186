/*-------------------------------------------------------------------------
 *
 * fuzz_image.c
 *	  Bytes that come from outside: the validator, and every operation on
 *	  what it accepts.
 *
 * The input is one image, or two: then its first two bytes after the mark
 * tell the length of the first one.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bytes.h"
#include "fuzz.h"

#define MARK	'2'

/* Hashes that are added and looked for. */
#define NPROBES	24

/* No image of a size that a fuzzer makes needs so much in one piece. */
#define MEMORY	((size_t) 32 << 20)

static uint64_t probes[NPROBES];

/* Some from the image, some next to them, and some at random. */
static void
choose_probes(const BfView *view)
{
	uint64_t	seed = bf_hash_bytes(view->image, view->size, 0);
	uint32_t	n = view->nhashes;
	uint32_t	i;

	for (i = 0; i < NPROBES; i++)
	{
		probes[i] = bf_hash_u64(i, seed);
		if (i < 8 && n > 0)
			probes[i] = bf_load64(view->hashes + 8 * (size_t) (probes[i] % n)) +
				(i & 1);
	}
	probes[8] = 0;
	probes[9] = UINT64_MAX;
}

/*
 * The most memory in one piece that working on filters of this content may
 * take: what their keys take, which is bounded by their size, and the layer
 * for as many keys as they expect, or as one layer can be made for.  A
 * successor has BF_GROWTH times the capacity of a layer, which is at most the
 * number of its bits, at a rate that takes up to 120 bits per key.
 */
static size_t
max_memory(const BfView *view, size_t size)
{
	size_t		max = BF_GROWTH * 120 * size +
		BF_MAX_LAYERS * sizeof(BfLayer);
	uint64_t	expected = view->params.expected;
	double		fpp = view->params.fpp;
	uint64_t	possible;
	BfGeometry	geometry;
	int			i;

	/* A successor has half of the lowest rate. */
	for (i = 0; i < view->nlayers; i++)
		fpp = fmin(fpp, view->layers[i].geometry.fpp);
	fpp = fmax(fpp / 2, BF_LAYER_FPP_MIN);
	possible = bf_max_keys(fpp);
	if (expected > possible)
		expected = possible;
	if (expected > 0 &&
		bf_geometry_for(fpp, false, expected, &geometry) == BF_OK)
		max += (size_t) (bf_geometry_bits(&geometry) / 8) * 5 / 4;
	return max;
}

/* Whether the second filter has every hash that the first is sure to have. */
static void
demand_no_loss(const BfView *from, const BfView *to)
{
	uint32_t	i;

	for (i = 0; i < from->nhashes; i++)
		DEMAND(bf_contains(to, bf_load64(from->hashes + 8 * (size_t) i)));

	/* Of bits, that what tests positive still does. */
	for (i = 0; i < NPROBES; i++)
		DEMAND(!bf_contains(from, probes[i]) || bf_contains(to, probes[i]));
}

static void
probe(const BfView *view)
{
	double		n = bf_cardinality(view);
	double		fpp = bf_current_fpp(view);
	uint32_t	i;

	/* A negative zero is none; written so that NaN fails. */
	DEMAND(n >= 0 && n <= 1e18);
	DEMAND(fpp >= 0 && fpp <= 1);
	DEMAND(view->params.key_type.code == BF_KEY_NONE ||
		   bf_key_type_name(&view->params.key_type) != NULL);
	for (i = 0; i < view->nhashes; i++)
		DEMAND(bf_contains(view, bf_load64(view->hashes + 8 * (size_t) i)));
}

/* Load, write, compact, add, write again. */
static void
rebuild(const BfView *view)
{
	TestEnv		env;
	BfBuilder	b;
	BfStatus	status;
	Image		image;
	bool		compact = false;
	bool		added[NPROBES];
	int			i;

	env_init(&env, MEMORY);
	bf_builder_init(&b, &env.env, &view->params);
	bf_builder_expect_probes(&b);
	status = bf_builder_merge(&b, view);
	DEMAND(status == BF_OK || env.largest_requested > MEMORY);

	/* Reading alone takes no more than what is read. */
	DEMAND(env.largest_requested <= view->size +
		   BF_MAX_LAYERS * sizeof(BfLayer) + 1024);
	do
	{
		if (status != BF_OK || image_write(&image, &b, compact) != BF_OK)
			continue;
		demand_no_loss(view, &image.view);
		DEMAND(compact || image.size <= view->size ||
			   image.view.nlayers > 0);
		image_free(&image);
	} while ((compact = !compact));

	for (i = 0; i < NPROBES; i++)
	{
		added[i] = false;
		if (status == BF_OK)
		{
			status = bf_builder_add_all(&b, &probes[i], 1);
			added[i] = status == BF_OK;
		}
		DEMAND(!added[i] || bf_builder_contains(&b, probes[i]));
	}
	DEMAND(status == BF_OK || status == BF_NO_MEMORY ||
		   status == BF_TOO_LARGE);
	DEMAND(status != BF_NO_MEMORY || env.largest_requested > MEMORY);
	DEMAND(bf_count_distinct(&b.env.interrupts, b.nhashes, b.layers,
							 b.nlayers) >= 0);
	if (status == BF_OK && image_write(&image, &b, true) == BF_OK)
	{
		demand_no_loss(view, &image.view);
		for (i = 0; i < NPROBES; i++)
			DEMAND(bf_contains(&image.view, probes[i]));
		image_free(&image);
	}

	DEMAND(env.largest_requested <= max_memory(view, view->size));
	finish(&b, &env);
}

static void
combine(const BfView *x, const BfView *y)
{
	size_t		max = max_memory(x, x->size + y->size) +
		max_memory(y, x->size + y->size);
	TestEnv		env;
	BfBuilder	b;
	BfParams	params = x->params;
	BfStatus	status;
	Image		image;
	BfGeometry	geometry;
	const BfView *views[3];
	double		n;
	int			pair[2];
	int			count;

	/* The larger number at the smaller rate, if there is such a filter. */
	params.fpp = fmin(x->params.fpp, y->params.fpp);
	params.expected = x->params.expected > y->params.expected ?
		x->params.expected : y->params.expected;
	if (params.expected > bf_max_keys(params.fpp))
		params.expected = bf_max_keys(params.fpp);
	if (params.expected > 0 &&
		bf_geometry_for(params.fpp, false, params.expected, &geometry) == BF_OK)
		max += (size_t) (bf_geometry_bits(&geometry) / 8) * 5 / 4;

	env_init(&env, MEMORY);
	status = bf_union(&b, &env.env, x, y);
	if (status == BF_OK && image_write(&image, &b, false) == BF_OK)
	{
		demand_no_loss(x, &image.view);
		demand_no_loss(y, &image.view);
		image_free(&image);
	}
	DEMAND(env.largest_requested <= max);
	finish(&b, &env);

	env_init(&env, MEMORY);
	status = bf_intersection(&b, &env.env, x, y);
	if (status == BF_OK && image_write(&image, &b, false) == BF_OK)
	{
		int			i;

		for (i = 0; i < NPROBES; i++)
			DEMAND(!bf_contains(x, probes[i]) || !bf_contains(y, probes[i]) ||
				   bf_contains(&image.view, probes[i]));
		image_free(&image);
	}
	DEMAND(env.largest_requested <= max);
	finish(&b, &env);

	views[0] = views[2] = x;
	views[1] = y;
	for (count = 1; count <= 3; count++)
	{
		status = bf_common_keys(&env.env.interrupts, count, views, &n, pair);
		DEMAND(status != BF_OK || (n >= 0 && n <= 1e18));
		DEMAND(pair[0] >= 0 && pair[0] < count);
		DEMAND(pair[1] >= 0 && pair[1] < count);
	}
}

/*
 * What bf_validate() rejects may be stored already: keys are lost then, but
 * whatever is done with it ends well.
 */
static void
survive(const BfView *view)
{
	TestEnv		env;
	BfBuilder	b;

	for (int with_itself = 0; with_itself < 2; with_itself++)
	{
		BfStatus	status;

		env_init(&env, MEMORY);
		bf_builder_init(&b, &env.env, &view->params);
		if (with_itself)
			status = bf_union(&b, &env.env, view, view);
		else
			status = bf_builder_merge(&b, view);
		for (int i = 0; status == BF_OK && i < NPROBES; i++)
		{
			(void) bf_contains(view, probes[i]);
			status = bf_builder_add(&b, probes[i]);
		}
		for (int compact = 0; status == BF_OK && compact < 2; compact++)
		{
			Image		image;

			status = image_of(&image, &b, compact);
			DEMAND(status != BF_OK ||
				   bf_open(image.bytes, image.size, &image.view) == BF_OK);
			image_free(&image);
		}
		DEMAND(status == BF_OK || status == BF_NO_MEMORY ||
			   status == BF_TOO_LARGE);
		finish(&b, &env);
	}
	(void) bf_cardinality(view);
	(void) bf_current_fpp(view);
}

/* Bytes of their own to look at, and to work on if they are an image. */
static bool
open_copy(const uint8_t *data, size_t size, Image *image)
{
	BfStatus	status;

	image->bytes = exactly(size);
	image->size = size;
	if (size > 0)
		memcpy(image->bytes, data, size);
	status = bf_validate(&no_interrupts, image->bytes, size, &image->view);
	if (status != BF_OK)
	{
		DEMAND(status == BF_CORRUPT || status == BF_UNKNOWN_VERSION);
		DEMAND(image->view.reason != NULL);
		return false;
	}
	choose_probes(&image->view);
	probe(&image->view);
	rebuild(&image->view);
	combine(&image->view, &image->view);
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Image		x,
				y;

	if (size > 3 && data[0] == MARK)
	{
		size_t		first = bf_load32(data) >> 8 & 0xFFFF;
		bool		both;

		data += 3;
		size -= 3;
		if (first > size)
			first = size;
		both = open_copy(data, first, &x);
		both &= open_copy(data + first, size - first, &y);
		if (both)
		{
			combine(&x.view, &y.view);
			combine(&y.view, &x.view);
		}
		image_free(&x);
		image_free(&y);
		return 0;
	}
	open_copy(data, size, &x);
	image_free(&x);

	x.bytes = exactly(size);
	if (size > 0)
		memcpy(x.bytes, data, size);
	if (bf_open(x.bytes, size, &x.view) == BF_OK)
	{
		choose_probes(&x.view);
		survive(&x.view);
	}
	image_free(&x);
	return 0;
}
