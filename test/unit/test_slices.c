/*-------------------------------------------------------------------------
 *
 * test_slices.c
 *	  Images of which only the header is in memory: the same answers as from
 *	  the whole, with few reads.
 *
 *-------------------------------------------------------------------------
 */
#include "support.h"

#define LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

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
	static const uint8_t nothing[BF_MAX_SLICE];

	reader->reads++;
	free(reader->part);
	reader->part = NULL;
	if (!CHECK(length > 0 && length <= BF_MAX_SLICE &&
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

		if (quick() && lengths[i] > 100000)
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
	tap_run("lists of hashes by parts, in few of them", test_sparse);
	tap_run("lists of hashes that are not spread", test_made_up);
	tap_run("blocks of all sizes and layers by parts", test_dense);
	tap_run("a front is opened as the whole is", test_opening);
	return tap_done();
}
