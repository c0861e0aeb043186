/*-------------------------------------------------------------------------
 *
 * image.c
 *	  Images, which are the bytes of a filter on disk, on the wire and in
 *	  memory: the codec, and probes.
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
 * What comes from outside goes through bf_validate(), which walks through the
 * content as well and makes sure that the answers are right.
 *
 * The functions that check return why an image is rejected, or NULL.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>

#include "bytes.h"
#include "internal.h"

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
#define NHASHES_AT		12		/* sparse form */
#define DENSE_LIST_FPP_AT	12
#define NLAYERS_AT		16		/* dense form */
#define SPARSE_LIST_FPP_AT	16
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
#define BITS_CUT_AT		12
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
static_assert(BF_MAX_BITS / 8 + ENTRY_SIZE == (uint64_t) 8 * BF_MAX_LIST,
			  "BF_MAX_LIST is wrong");
static_assert(BITS_SET_AT + 8 == ENTRY_SIZE, "directory entry has a gap");
static_assert(BF_MAX_KEY_TYPE_NAME == UINT8_MAX,
			  "the length of a name must be checked");

/* Bytes of the header, the padded name and the directory. */
static size_t
header_size(size_t namelen, size_t nlayers)
{
	return HEADER_SIZE + (namelen + 7) / 8 * 8 + nlayers * ENTRY_SIZE;
}

static const char *
open_key_type(const uint8_t *header, BfView *view)
{
	BfKeyType  *key_type = &view->params.key_type;
	size_t		content;
	size_t		i;
	const char *reason;

	key_type->code = header[KEY_TYPE_AT];
	key_type->namelen = header[NAMELEN_AT];
	key_type->byte_order = header[BYTE_ORDER_AT];
	key_type->encoding = header[ENCODING_AT];
	reason = bf_key_type_reason(key_type);
	if (reason != NULL)
		return reason;

	content = header_size(key_type->namelen, 0);
	if (view->size < content)
		return "It is shorter than its header.";
	memcpy(key_type->name, header + HEADER_SIZE, key_type->namelen);
	key_type->name[key_type->namelen] = '\0';
	if (!bf_valid_key_type_name(key_type->name, key_type->namelen))
		return "The name of its key type has wrong characters.";
	for (i = HEADER_SIZE + key_type->namelen; i < content; i++)
	{
		if (header[i] != 0)
			return "The padding of a name is not zero.";
	}
	return NULL;
}

/* One entry of the directory.  The layers before it have total bits. */
static const char *
open_layer(const uint8_t *entry, uint64_t total, BfLayer *layer)
{
	BfGeometry *geometry = &layer->geometry;
	uint64_t	bits;

	geometry->nblocks = bf_load32(entry + NBLOCKS_AT);
	geometry->block_log2 = entry[BLOCK_LOG2_AT];
	geometry->k = entry[K_AT];
	geometry->capacity = bf_load32(entry + CAPACITY_AT);
	geometry->fpp = bf_load_double(entry + L_FPP_AT);
	geometry->generation = entry[GENERATION_AT];
	layer->bits_set = bf_load64(entry + BITS_SET_AT);
	layer->bits_cut = bf_load32(entry + BITS_CUT_AT);

	if (geometry->block_log2 < BF_MIN_BLOCK_LOG2 ||
		geometry->block_log2 > BF_MAX_BLOCK_LOG2)
		return "The block size of a layer is out of range.";
	if (geometry->k < 1 || geometry->k > BF_MAX_HASHES)
		return "The number of hash functions of a layer is out of range.";
	bits = bf_geometry_bits(geometry);
	if (geometry->nblocks < 1 || bits > BF_MAX_BITS - total)
		return "The number of blocks of a layer is out of range.";
	if (geometry->generation > BF_MAX_GENERATION)
		return "The generation of a layer is out of range.";
	if (entry[L_RESERVED_AT] != 0)
		return "The flags of a layer are unknown.";
	if (geometry->capacity < 1 || geometry->capacity > bits)
		return "The capacity of a layer is out of range.";
	/* Written so that NaN fails. */
	if (!(geometry->fpp >= BF_LAYER_FPP_MIN && geometry->fpp <= BF_FPP_MAX))
		return "The false-positive rate of a layer is out of range.";
	if (layer->bits_set > bits)
		return "The number of set bits of a layer is out of range.";
	if (layer->bits_cut > bits - layer->bits_set)
		return "The number of cut bits of a layer is out of range.";
	return NULL;
}

/* What follows the header in the dense form, from offset at on. */
static const char *
open_layers(const uint8_t *header, size_t at, uint32_t nlayers, BfView *view)
{
	const uint8_t *entry = header + at;
	uint64_t	total = 0;

	if (nlayers < 1 || nlayers > BF_MAX_LAYERS)
		return "Its number of layers is out of range.";
	if (view->size - at < (size_t) nlayers * ENTRY_SIZE)
		return "It is shorter than its directory.";

	at += (size_t) nlayers * ENTRY_SIZE;
	for (; nlayers > 0; nlayers--, entry += ENTRY_SIZE)
	{
		BfLayer    *layer = &view->layers[view->nlayers++];
		const char *reason = open_layer(entry, total, layer);

		if (reason != NULL)
			return reason;
		layer->at = at;
		layer->bits = NULL;
		total += bf_geometry_bits(&layer->geometry);
		at += bf_geometry_size(&layer->geometry);
	}
	return view->size == at ? NULL : "Its length does not match its layers.";
}

/* All but whether these bytes are of this version of the format. */
static const char *
open_content(const uint8_t *header, BfView *view)
{
	BfParams   *params = &view->params;
	const char *reason;
	bool		dense;
	size_t		at;

	if (header[FORM_AT] != FORM_SPARSE && header[FORM_AT] != FORM_DENSE)
		return "Its form is unknown.";
	if (header[RESERVED_AT] != 0)
		return "Its flags are unknown.";

	params->seed = bf_load64(header + SEED_AT);
	params->fpp = bf_load_double(header + FPP_AT);
	params->expected = bf_load64(header + EXPECTED_AT);
	/* Written so that NaN fails. */
	if (!(params->fpp >= BF_FPP_MIN && params->fpp <= BF_FPP_MAX))
		return "Its false-positive rate is out of range.";
	if (params->expected > BF_MAX_BITS)
		return "Its number of expected keys is out of range.";
	reason = open_key_type(header, view);
	if (reason != NULL)
		return reason;

	dense = header[FORM_AT] == FORM_DENSE;
	at = dense ? DENSE_LIST_FPP_AT : SPARSE_LIST_FPP_AT;
	view->list_fpp = bf_load_float(header + at);
	/* Written so that NaN and -0 fail. */
	if (bf_load32(header + at) != 0 &&
		!(view->list_fpp >= BF_LIST_FPP_MIN && view->list_fpp <= 1))
		return "The false-positive rate of its list is out of range.";
	at = header_size(params->key_type.namelen, 0);
	if (dense)
		return open_layers(header, at, bf_load32(header + NLAYERS_AT), view);
	view->nhashes = bf_load32(header + NHASHES_AT);
	if (view->nhashes > BF_MAX_LIST)
		return "Its number of hashes is out of range.";
	if ((view->size - at) % 8 != 0 || (view->size - at) / 8 != view->nhashes)
		return "Its length does not match the number of hashes.";
	view->list_at = at;
	return NULL;
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
	view->image = NULL;
	view->size = size;
	view->reason = NULL;
	view->hashes = NULL;
	view->nhashes = 0;
	view->list_at = 0;
	view->nlayers = 0;

	if (size <= VERSION_AT || memcmp(header, magic, sizeof(magic)) != 0)
		view->reason = "It is not a Bloom filter.";
	else if (header[VERSION_AT] != VERSION)
	{
		view->reason = "Its format version is unknown.";
		return BF_UNKNOWN_VERSION;
	}
	else if (size < HEADER_SIZE)
		view->reason = "It is shorter than its header.";
	else if (header[SCHEME_AT] != SCHEME_XXH3_GOLDEN)
	{
		view->reason = "Its hashing scheme is unknown.";
		return BF_UNKNOWN_VERSION;
	}
	else
		view->reason = open_content(header, view);
	return view->reason == NULL ? BF_OK : BF_CORRUPT;
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
		view->layers[i].bits = (uint8_t *) image + view->layers[i].at;
	return BF_OK;
}

static const char *
check_content(const BfInterrupts *interrupts, const BfView *view)
{
	const uint8_t *list = view->hashes;
	uint32_t	j;
	int			i;

	for (j = 1; j < view->nhashes; j++, list += 8)
	{
		bf_check_interrupts_at(interrupts, j, 0);
		if (bf_load64(list) >= bf_load64(list + 8))
			return "Its hashes are not ascending.";
	}
	for (i = 0; i < view->nlayers; i++)
	{
		const BfLayer *layer = &view->layers[i];

		if (bf_bitmap_combine(interrupts, false, NULL, layer->bits, layer->bits,
							  bf_geometry_size(&layer->geometry)) !=
			layer->bits_set)
			return "The number of set bits of a layer does not match its bits.";
	}
	if (view->params.expected > bf_max_keys(view->params.fpp))
		return "It expects more keys than fit at its rate.";
	return NULL;
}

/*
 * Open an image of which nothing is trusted; status and reason as those of
 * bf_open.
 */
BfStatus
bf_validate(const BfInterrupts *interrupts, const uint8_t *image, size_t size,
			BfView *view)
{
	BfStatus	status = bf_open(image, size, view);

	if (status == BF_OK)
	{
		view->reason = check_content(interrupts, view);
		if (view->reason != NULL)
			status = BF_CORRUPT;
	}
	return status;
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
	uint32_t	n = size < HEADER_SIZE || image[FORM_AT] != FORM_DENSE ? 0 :
		bf_load32(image + NLAYERS_AT);

	*nlayers = n > BF_MAX_LAYERS ? 0 : (int) n;
	return header_size(size < HEADER_SIZE ? 0 : image[NAMELEN_AT], *nlayers);
}

/* Bytes of the header and directory, in front of the hashes or blocks. */
size_t
bf_header_size(const BfParams *params, int nlayers)
{
	return header_size(params->key_type.namelen, nlayers);
}

/*
 * Write the header, and the directory of a dense filter, of which geometries
 * and numbers of set bits are read.  Returns where the content begins: the
 * hashes, or the blocks of the layers in the same order.
 */
uint8_t *
bf_write_header(uint8_t *image, const BfParams *params, double list_fpp,
				uint32_t nhashes, const BfLayer *layers, int nlayers)
{
	const BfKeyType *key_type = &params->key_type;
	uint8_t    *entry = image + header_size(key_type->namelen, 0);
	int			i;

	memset(image, 0, entry - image);
	memcpy(image + MAGIC_AT, magic, sizeof(magic));
	image[VERSION_AT] = VERSION;
	image[FORM_AT] = nlayers > 0 ? FORM_DENSE : FORM_SPARSE;
	image[SCHEME_AT] = SCHEME_XXH3_GOLDEN;
	image[KEY_TYPE_AT] = key_type->code;
	image[NAMELEN_AT] = key_type->namelen;
	image[BYTE_ORDER_AT] = key_type->byte_order;
	image[ENCODING_AT] = key_type->encoding;
	if (nlayers > 0)
	{
		bf_store_float(image + DENSE_LIST_FPP_AT, list_fpp);
		bf_store32(image + NLAYERS_AT, (uint32_t) nlayers);
	}
	else
	{
		bf_store32(image + NHASHES_AT, nhashes);
		bf_store_float(image + SPARSE_LIST_FPP_AT, nhashes > 0 ? list_fpp : 0);
	}
	bf_store64(image + SEED_AT, params->seed);
	bf_store_double(image + FPP_AT, params->fpp);
	bf_store64(image + EXPECTED_AT, params->expected);
	memcpy(image + HEADER_SIZE, key_type->name, key_type->namelen);

	for (i = 0; i < nlayers; i++, entry += ENTRY_SIZE)
	{
		const BfGeometry *geometry = &layers[i].geometry;
		BfLayer		layer = layers[i];

		/* Keys that were added may have set bits that had been cut. */
		bf_layer_set_cut(&layer, layer.bits_cut);
		bf_store32(entry + NBLOCKS_AT, geometry->nblocks);
		entry[BLOCK_LOG2_AT] = geometry->block_log2;
		entry[K_AT] = geometry->k;
		entry[GENERATION_AT] = geometry->generation;
		entry[L_RESERVED_AT] = 0;
		bf_store32(entry + CAPACITY_AT, (uint32_t) geometry->capacity);
		bf_store32(entry + BITS_CUT_AT, layer.bits_cut);
		bf_store_double(entry + L_FPP_AT, geometry->fpp);
		bf_store64(entry + BITS_SET_AT, layers[i].bits_set);
	}
	return entry;
}

/* Is the hash in the filter?  The view must not be that of a header. */
bool
bf_contains(const BfView *view, uint64_t hash)
{
	return view->nlayers == 0 ?
		bf_list_contains(view->hashes, view->nhashes, hash) :
		bf_layers_contain(view->layers, view->nlayers, hash);
}

/* The same for an image of which only the header is in memory. */
bool
bf_contains_sliced(const BfView *view, uint64_t hash,
				   BfReadSlice read, void *context)
{
	int			i;

	if (view->nlayers == 0)
		return bf_list_contains_sliced(view->list_at, view->nhashes, hash,
									   read, context);
	for (i = view->nlayers - 1; i >= 0; i--)
	{
		const BfLayer *layer = &view->layers[i];
		size_t		at = layer->at + bf_block_at(&layer->geometry, hash);
		const uint8_t *block = read(context, at,
									bf_blocks_size(&layer->geometry, 1));

		if (bf_block_contains(&layer->geometry, block, hash))
			return true;
	}
	return false;
}
