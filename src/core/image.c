/*-------------------------------------------------------------------------
 *
 * image.c
 *	  The codec of images, which are the bytes of a filter on disk, on the
 *	  wire and in memory.
 *
 * doc/FORMAT.md is the specification.  An image is a header, the name of the
 * key type if it has one, the layer directory, and then the hashes of the
 * sparse form or the blocks of the layers.
 * After a length word of four bytes, as PostgreSQL has it, every field is
 * aligned to its size.
 *
 * bf_open_header() checks all that can be known from the header, the directory
 * and the length, which makes every later access safe.  Its time does not
 * depend on the size of the content, since each use of a filter pays for it.
 * What takes a walk through the content is left to validate.c.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>
#include <string.h>

#include "bytes.h"
#include "image.h"

#define VERSION			1
#define SCHEME_XXH3_GOLDEN	1	/* how hashes and positions are made */

/* Offsets in the header. */
#define MAGIC_AT		0
#define VERSION_AT		4
#define FORM_AT			5
#define SCHEME_AT		6
#define RESERVED_AT		7
#define KEY_TYPE_AT		8
#define NAMELEN_AT		9
#define BYTE_ORDER_AT	10
#define ENCODING_AT		11
#define NHASHES_AT		12
#define NLAYERS_AT		16
#define SEED_AT			20
#define FPP_AT			28
#define EXPECTED_AT		36
#define HEADER_SIZE		44

/* Offsets in an entry of the directory. */
#define NBLOCKS_AT		0
#define BLOCK_LOG2_AT	4
#define K_AT			5
#define GENERATION_AT	6
#define L_RESERVED_AT	7
#define CAPACITY_AT		8
#define L_FPP_AT		16
#define BITS_SET_AT		24
#define ENTRY_SIZE		32

#define FORM_SPARSE		0
#define FORM_DENSE		1

static const uint8_t magic[4] = {'B', 'L', 'M', 'F'};

static_assert(EXPECTED_AT + 8 == HEADER_SIZE, "header has a gap");
static_assert(HEADER_SIZE + (BF_MAX_KEY_TYPE_NAME + 7) / 8 * 8 +
			  BF_MAX_LAYERS * ENTRY_SIZE == BF_MAX_HEADER,
			  "BF_MAX_HEADER is wrong");
static_assert((HEADER_SIZE + 4) % 8 == 0, "content is not aligned");
static_assert(BITS_SET_AT + 8 == ENTRY_SIZE, "directory entry has a gap");
static_assert(BF_MAX_KEY_TYPE_NAME == UINT8_MAX,
			  "the length of a name must be checked");

/* The size of a name, padded so that what follows is aligned. */
static size_t
padded(size_t namelen)
{
	return (namelen + 7) / 8 * 8;
}

static BfStatus
reject(BfView *view, BfStatus status, const char *reason)
{
	view->reason = reason;
	return status;
}

/* Everything that tells whether these bytes are of this format. */
static BfStatus
open_version(const uint8_t *header, BfView *view)
{
	if (view->size < VERSION_AT + 1 ||
		memcmp(header, magic, sizeof(magic)) != 0)
		return reject(view, BF_CORRUPT, "It is not a Bloom filter.");
	if (header[VERSION_AT] != VERSION)
		return reject(view, BF_UNKNOWN_VERSION,
					  "Its format version is unknown.");
	if (view->size < HEADER_SIZE)
		return reject(view, BF_CORRUPT, "It is shorter than its header.");
	if (header[SCHEME_AT] != SCHEME_XXH3_GOLDEN)
		return reject(view, BF_UNKNOWN_VERSION,
					  "Its hashing scheme is unknown.");
	if (header[FORM_AT] != FORM_SPARSE && header[FORM_AT] != FORM_DENSE)
		return reject(view, BF_CORRUPT, "Its form is unknown.");
	if (header[RESERVED_AT] != 0)
		return reject(view, BF_CORRUPT, "Its flags are unknown.");
	return BF_OK;
}

static BfStatus
open_key_type(const uint8_t *header, BfView *view)
{
	BfKeyType  *key_type = &view->params.key_type;
	size_t		i;

	key_type->code = header[KEY_TYPE_AT];
	key_type->namelen = header[NAMELEN_AT];
	key_type->byte_order = header[BYTE_ORDER_AT];
	key_type->encoding = header[ENCODING_AT];

	if (!bf_key_type_is_known(key_type->code))
		return reject(view, BF_CORRUPT, "The type of its keys is unknown.");
	if ((key_type->namelen > 0) != bf_key_type_has_name(key_type->code))
		return reject(view, BF_CORRUPT,
					  "The name of its key type has a wrong length.");
	if (!bf_valid_platform(key_type))
		return reject(view, BF_CORRUPT,
					  "The byte order or encoding of its keys is unknown.");
	if (key_type->encoding > BF_MAX_ENCODING)
		return reject(view, BF_CORRUPT,
					  "The encoding of its keys is unknown.");

	if (view->size < HEADER_SIZE + padded(key_type->namelen))
		return reject(view, BF_CORRUPT, "It is shorter than its header.");
	memcpy(key_type->name, header + HEADER_SIZE, key_type->namelen);
	key_type->name[key_type->namelen] = '\0';
	if (!bf_valid_key_type_name(key_type->name, key_type->namelen))
		return reject(view, BF_CORRUPT,
					  "The name of its key type has wrong characters.");
	for (i = key_type->namelen; i < padded(key_type->namelen); i++)
	{
		if (header[HEADER_SIZE + i] != 0)
			return reject(view, BF_CORRUPT,
						  "The padding of a name is not zero.");
	}
	return BF_OK;
}

static BfStatus
open_params(const uint8_t *header, BfView *view)
{
	view->params.seed = bf_load64(header + SEED_AT);
	view->params.fpp = bf_load_double(header + FPP_AT);
	view->params.expected = bf_load64(header + EXPECTED_AT);

	/* Written so that NaN fails. */
	if (!(view->params.fpp >= BF_FPP_MIN && view->params.fpp <= BF_FPP_MAX))
		return reject(view, BF_CORRUPT,
					  "Its false-positive rate is out of range.");
	if (view->params.expected > BF_MAX_BITS)
		return reject(view, BF_CORRUPT,
					  "Its number of expected keys is out of range.");
	return open_key_type(header, view);
}

/*
 * One entry of the directory.  The layers before it have total bits.
 */
static BfStatus
open_layer(const uint8_t *entry, uint64_t total, BfViewLayer *layer,
		   BfView *view)
{
	BfGeometry *geometry = &layer->geometry;

	geometry->nblocks = bf_load32(entry + NBLOCKS_AT);
	geometry->block_log2 = entry[BLOCK_LOG2_AT];
	geometry->k = entry[K_AT];
	geometry->capacity = bf_load64(entry + CAPACITY_AT);
	geometry->fpp = bf_load_double(entry + L_FPP_AT);
	layer->bits_set = bf_load64(entry + BITS_SET_AT);
	geometry->generation = entry[GENERATION_AT];

	if (geometry->block_log2 < BF_MIN_BLOCK_LOG2 ||
		geometry->block_log2 > BF_MAX_BLOCK_LOG2)
		return reject(view, BF_CORRUPT,
					  "The block size of a layer is out of range.");
	if (geometry->k < 1 || geometry->k > BF_MAX_HASHES)
		return reject(view, BF_CORRUPT,
					  "The number of hash functions of a layer is out of range.");
	if (geometry->nblocks < 1 ||
		bf_geometry_bits(geometry) > BF_MAX_BITS - total)
		return reject(view, BF_CORRUPT,
					  "The number of blocks of a layer is out of range.");
	if (geometry->generation > BF_MAX_GENERATION)
		return reject(view, BF_CORRUPT,
					  "The generation of a layer is out of range.");
	if (entry[L_RESERVED_AT] != 0)
		return reject(view, BF_CORRUPT,
					  "The flags of a layer are unknown.");
	if (geometry->capacity < 1 ||
		geometry->capacity > bf_geometry_bits(geometry))
		return reject(view, BF_CORRUPT,
					  "The capacity of a layer is out of range.");
	/* Written so that NaN fails. */
	if (!(geometry->fpp >= BF_LAYER_FPP_MIN && geometry->fpp <= BF_FPP_MAX))
		return reject(view, BF_CORRUPT,
					  "The false-positive rate of a layer is out of range.");
	if (layer->bits_set > bf_geometry_bits(geometry))
		return reject(view, BF_CORRUPT,
					  "The number of set bits of a layer is out of range.");
	return BF_OK;
}

/* What follows the header in the sparse form, from offset at on. */
static BfStatus
open_hashes(size_t at, BfView *view)
{
	size_t		left = view->size - at;

	if (view->nlayers != 0)
		return reject(view, BF_CORRUPT,
					  "It has both layers and a list of hashes.");
	if (left % 8 != 0 || left / 8 != view->nhashes)
		return reject(view, BF_CORRUPT,
					  "Its length does not match the number of hashes.");
	view->list_at = at;
	return BF_OK;
}

/* What follows the header in the dense form. */
static BfStatus
open_layers(const uint8_t *header, size_t at, BfView *view)
{
	const uint8_t *entry = header + at;
	uint64_t	total = 0;
	int			i;

	if (view->nhashes != 0)
		return reject(view, BF_CORRUPT, "It has both hashes and layers.");
	if (view->nlayers < 1 || view->nlayers > BF_MAX_LAYERS)
		return reject(view, BF_CORRUPT,
					  "Its number of layers is out of range.");
	if (view->size - at < (size_t) view->nlayers * ENTRY_SIZE)
		return reject(view, BF_CORRUPT, "It is shorter than its directory.");

	at += (size_t) view->nlayers * ENTRY_SIZE;
	for (i = 0; i < view->nlayers; i++, entry += ENTRY_SIZE)
	{
		BfViewLayer *layer = &view->layers[i];
		BfStatus	status = open_layer(entry, total, layer, view);

		if (status != BF_OK)
			return status;
		layer->at = at;
		layer->bits = NULL;
		total += bf_geometry_bits(&layer->geometry);
		at += bf_geometry_size(&layer->geometry);
	}

	if (view->size != at)
		return reject(view, BF_CORRUPT,
					  "Its length does not match its layers.");
	return BF_OK;
}

/*
 * Open an image of size bytes of which only the first are in memory: at least
 * BF_MAX_HEADER of them, or as many as its header and directory are known to
 * take, or all.  The view has the offsets of everything, but no pointers to it.
 *
 * BF_CORRUPT or BF_UNKNOWN_VERSION if it is not an image; then view->reason is
 * a sentence that says why, and nothing else in the view may be used.
 */
BfStatus
bf_open_header(const uint8_t *header, size_t size, BfView *view)
{
	size_t		content;
	uint32_t	nlayers;
	BfStatus	status;

	view->image = NULL;
	view->size = size;
	view->reason = NULL;
	view->hashes = NULL;
	view->list_at = 0;

	status = open_version(header, view);
	if (status == BF_OK)
		status = open_params(header, view);
	if (status != BF_OK)
		return status;

	view->nhashes = bf_load32(header + NHASHES_AT);
	nlayers = bf_load32(header + NLAYERS_AT);
	view->nlayers = nlayers > BF_MAX_LAYERS ? -1 : (int) nlayers;
	content = HEADER_SIZE + padded(view->params.key_type.namelen);
	return header[FORM_AT] == FORM_SPARSE ? open_hashes(content, view) :
		open_layers(header, content, view);
}

/*
 * Open an image that is completely in memory; status and reason are as in
 * bf_open_header.  The content is not checked: an image from outside has to
 * pass bf_validate first.
 */
BfStatus
bf_open(const uint8_t *image, size_t size, BfView *view)
{
	BfStatus	status = bf_open_header(image, size, view);
	int			i;

	if (status != BF_OK)
		return status;
	view->image = image;
	if (view->nlayers == 0)
		view->hashes = image + view->list_at;
	for (i = 0; i < view->nlayers; i++)
		view->layers[i].bits = image + view->layers[i].at;
	return BF_OK;
}

/*
 * What the first bytes of an image tell of its size before it is opened: bytes
 * of the header and directory, at most BF_MAX_HEADER, and the number of
 * layers, at most BF_MAX_LAYERS.  If they are not an image, bf_open_header
 * rejects them without reading so much.
 */
size_t
bf_peek_header(const uint8_t *image, size_t size, int *nlayers)
{
	uint32_t	n = size < HEADER_SIZE ? 0 : bf_load32(image + NLAYERS_AT);

	*nlayers = n > BF_MAX_LAYERS ? 0 : (int) n;
	return HEADER_SIZE +
		(size < HEADER_SIZE ? 0 : padded(image[NAMELEN_AT])) +
		(size_t) *nlayers * ENTRY_SIZE;
}

/* Bytes of the header and directory, in front of the hashes or blocks. */
size_t
bf_header_size(const BfParams *params, int nlayers)
{
	return HEADER_SIZE + padded(params->key_type.namelen) +
		(size_t) nlayers * ENTRY_SIZE;
}

/* Write all but the directory; returns where that begins. */
uint8_t *
bf_write_header(uint8_t *image, const BfParams *params,
				uint32_t nhashes, int nlayers)
{
	const BfKeyType *key_type = &params->key_type;

	memcpy(image + MAGIC_AT, magic, sizeof(magic));
	image[VERSION_AT] = VERSION;
	image[FORM_AT] = nlayers > 0 ? FORM_DENSE : FORM_SPARSE;
	image[SCHEME_AT] = SCHEME_XXH3_GOLDEN;
	image[RESERVED_AT] = 0;
	image[KEY_TYPE_AT] = key_type->code;
	image[NAMELEN_AT] = key_type->namelen;
	image[BYTE_ORDER_AT] = key_type->byte_order;
	image[ENCODING_AT] = key_type->encoding;
	bf_store32(image + NHASHES_AT, nhashes);
	bf_store32(image + NLAYERS_AT, (uint32_t) nlayers);
	bf_store64(image + SEED_AT, params->seed);
	bf_store_double(image + FPP_AT, params->fpp);
	bf_store64(image + EXPECTED_AT, params->expected);

	image += HEADER_SIZE;
	memset(image, 0, padded(key_type->namelen));
	memcpy(image, key_type->name, key_type->namelen);
	return image + padded(key_type->namelen);
}

/* Write one entry of the directory; returns where the next one begins. */
uint8_t *
bf_write_layer(uint8_t *entry, const BfGeometry *geometry, uint64_t bits_set)
{
	bf_store32(entry + NBLOCKS_AT, geometry->nblocks);
	entry[BLOCK_LOG2_AT] = geometry->block_log2;
	entry[K_AT] = geometry->k;
	entry[GENERATION_AT] = geometry->generation;
	entry[L_RESERVED_AT] = 0;
	bf_store64(entry + CAPACITY_AT, geometry->capacity);
	bf_store_double(entry + L_FPP_AT, geometry->fpp);
	bf_store64(entry + BITS_SET_AT, bits_set);
	return entry + ENTRY_SIZE;
}

/*
 * Write the header and directory of a dense filter: what the parameters,
 * geometries and numbers of set bits in the view tell.  The blocks of the
 * layers follow in the same order.
 */
void
bf_write_view_header(uint8_t *image, const BfView *view)
{
	int			i;

	image = bf_write_header(image, &view->params, 0, view->nlayers);
	for (i = 0; i < view->nlayers; i++)
		image = bf_write_layer(image, &view->layers[i].geometry,
							   view->layers[i].bits_set);
}
