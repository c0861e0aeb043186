/*-------------------------------------------------------------------------
 *
 * format.c
 *	  Images: the bytes of a filter on disk, on the wire and in memory.
 *
 * doc/FORMAT.md is the specification.  An image is a header, the name of the
 * key type if it has one, the directory of layers, and then either the
 * hashes of the sparse form or the blocks of the layers and the hashes of
 * known false positives.  With PostgreSQL's length word of four bytes in
 * header, every field lies at a multiple of its size.
 *
 * bf_open() checks all that can be known from header, directory and length,
 * which makes every later access safe; each use of a filter pays for it.
 * bf_open_header() does the same where the rest of an image is elsewhere.
 * bf_validate() adds what takes a walk through the content and is for bytes
 * that come from outside.
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
#define NLAYERS_AT		7
#define KEY_TYPE_AT			8
#define NAMELEN_AT		9
#define BYTE_ORDER_AT	10
#define ENCODING_AT		11
#define NHASHES_AT		12
#define NEXCLUSIONS_AT	16
#define SEED_AT			20
#define FPP_AT			28
#define EXPECTED_AT		36
#define HEADER_SIZE		44

/* Offsets in an entry of the directory. */
#define NBLOCKS_AT		0
#define BLOCK_LOG2_AT	4
#define K_AT			5
#define GENERATION_AT	6
#define MERGED_AT		7
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
			  "BF_MAX_FRONT is wrong");
static_assert((HEADER_SIZE + 4) % 8 == 0, "content is not aligned");
static_assert(BITS_SET_AT + 8 == ENTRY_SIZE, "directory entry has a gap");
static_assert(BF_MAX_KEY_TYPE_NAME == UINT8_MAX, "a length needs to be checked");

/* Names of the key types that have none of their own; part of no image. */
static const char *const key_type_names[] = {
	[BF_KEY_TEXT] = "text",
	[BF_KEY_BYTEA] = "bytea",
	[BF_KEY_INTEGER] = "integer",
	[BF_KEY_FLOAT] = "float",
	[BF_KEY_NUMERIC] = "numeric",
	[BF_KEY_BOOLEAN] = "boolean",
	[BF_KEY_CHAR] = "\"char\"",
	[BF_KEY_OID] = "oid",
	[BF_KEY_UUID] = "uuid",
	[BF_KEY_DATE] = "date",
	[BF_KEY_TIME] = "time",
	[BF_KEY_TIMETZ] = "timetz",
	[BF_KEY_TIMESTAMP] = "timestamp",
	[BF_KEY_TIMESTAMPTZ] = "timestamptz",
	[BF_KEY_INTERVAL] = "interval",
	[BF_KEY_INET] = "inet",
	[BF_KEY_MACADDR] = "macaddr",
	[BF_KEY_MACADDR8] = "macaddr8",
	[BF_KEY_PG_LSN] = "pg_lsn",
	[BF_KEY_XID8] = "xid8"
};

#define NKEY_TYPE_NAMES		(sizeof(key_type_names) / sizeof(key_type_names[0]))

/* The name for messages, in UTF-8; NULL as long as the key type is open. */
const char *
bf_key_type_name(const BfKeyType *key_type)
{
	if (key_type->code == BF_KEY_NONE)
		return NULL;
	return key_type->code < NKEY_TYPE_NAMES ? key_type_names[key_type->code] : key_type->name;
}

bool
bf_key_type_equal(const BfKeyType *a, const BfKeyType *b)
{
	return a->code == b->code &&
		a->byte_order == b->byte_order &&
		a->encoding == b->encoding &&
		a->namelen == b->namelen &&
		(a->namelen == 0 || memcmp(a->name, b->name, a->namelen) == 0);
}

static bool
key_type_has_name(unsigned code)
{
	return code == BF_KEY_ENUM || code == BF_KEY_OPCLASS;
}

/* How many bytes of this string are one character of UTF-8; 0: not valid. */
static size_t
utf8_length(const uint8_t *s, size_t left)
{
	size_t		length = 1 + (s[0] >= 0x80) + (s[0] >= 0xE0) + (s[0] >= 0xF0);
	size_t		i;

	/* Continuation bytes, overlong forms, and what is above U+10FFFF */
	if ((s[0] >= 0x80 && s[0] < 0xC2) || s[0] > 0xF4 || length > left)
		return 0;
	for (i = 1; i < length; i++)
	{
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90) ||
		(s[0] == 0xF4 && s[1] >= 0x90))
		return 0;

	/* Halves of surrogate pairs */
	if (s[0] == 0xED && s[1] >= 0xA0)
		return 0;
	return length;
}

static bool
is_control(const uint8_t *s)
{
	return s[0] < ' ' || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

/* Names are printed in messages, so they are UTF-8 without controls. */
bool
bf_valid_key_type_name(const char *name, size_t length)
{
	const uint8_t *s = (const uint8_t *) name;

	while (length > 0)
	{
		size_t		n = utf8_length(s, length);

		if (n == 0 || is_control(s))
			return false;
		s += n;
		length -= n;
	}
	return true;
}

/* Names are padded so that what follows stays aligned. */
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

static bool
valid_platform(const BfKeyType *key_type)
{
	if (key_type->code == BF_KEY_OPCLASS)
		return key_type->byte_order == BF_LITTLE_ENDIAN ||
			key_type->byte_order == BF_BIG_ENDIAN;
	if (key_type->byte_order != 0)
		return false;
	return key_type->encoding == 0 || (key_type->encoding == BF_MULE_INTERNAL &&
								   (key_type->code == BF_KEY_TEXT ||
									key_type->code == BF_KEY_ENUM));
}

static BfStatus
open_key_type(const uint8_t *header, BfView *view)
{
	BfKeyType	   *key_type = &view->params.key_type;
	size_t		i;

	key_type->code = header[KEY_TYPE_AT];
	key_type->namelen = header[NAMELEN_AT];
	key_type->byte_order = header[BYTE_ORDER_AT];
	key_type->encoding = header[ENCODING_AT];

	if (key_type->code >= NKEY_TYPE_NAMES && !key_type_has_name(key_type->code))
		return reject(view, BF_CORRUPT, "The type of its keys is unknown.");
	if ((key_type->namelen > 0) != key_type_has_name(key_type->code))
		return reject(view, BF_CORRUPT,
					  "The name of its key type has a wrong length.");
	if (!valid_platform(key_type))
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
open_layers(const uint8_t *header, size_t directory, BfView *view)
{
	const uint8_t *entry = header + directory;
	size_t		at = directory + (size_t) view->nlayers * ENTRY_SIZE;
	uint64_t	total = 0;
	int			i;

	for (i = 0; i < view->nlayers; i++, entry += ENTRY_SIZE)
	{
		BfViewLayer *layer = &view->layers[i];
		BfGeometry    *geometry = &layer->geometry;

		geometry->nblocks = bf_load32(entry + NBLOCKS_AT);
		geometry->block_log2 = entry[BLOCK_LOG2_AT];
		geometry->k = entry[K_AT];
		geometry->capacity = bf_load64(entry + CAPACITY_AT);
		geometry->fpp = bf_load_double(entry + L_FPP_AT);
		layer->bits_set = bf_load64(entry + BITS_SET_AT);
		geometry->generation = entry[GENERATION_AT];
		geometry->merged = entry[MERGED_AT] != 0;
		layer->at = at;
		layer->bits = NULL;

		if (geometry->block_log2 < BF_MIN_BLOCK_LOG2 ||
			geometry->block_log2 > BF_MAX_BLOCK_LOG2)
			return reject(view, BF_CORRUPT,
						  "The block size of a layer is out of range.");
		if (geometry->k < 1 || geometry->k > BF_MAX_HASHES)
			return reject(view, BF_CORRUPT,
						  "The number of hash functions of a layer is out of range.");
		if (geometry->nblocks < 1 || bf_geometry_bits(geometry) > BF_MAX_BITS - total)
			return reject(view, BF_CORRUPT,
						  "The number of blocks of a layer is out of range.");
		if (geometry->generation > BF_MAX_GENERATION)
			return reject(view, BF_CORRUPT,
						  "The generation of a layer is out of range.");
		if (entry[MERGED_AT] > 1)
			return reject(view, BF_CORRUPT,
						  "The flags of a layer are unknown.");
		if (geometry->capacity < 1 || geometry->capacity >
			(geometry->merged ? BF_MAX_KEYS : bf_geometry_bits(geometry)))
			return reject(view, BF_CORRUPT,
						  "The capacity of a layer is out of range.");
		/* Written so that NaN fails. */
		if (!(geometry->fpp >= BF_LAYER_FPP_MIN &&
			  geometry->fpp <= (geometry->merged ? 1 : BF_FPP_MAX)))
			return reject(view, BF_CORRUPT,
						  "The false-positive rate of a layer is out of range.");
		if (layer->bits_set > bf_geometry_bits(geometry))
			return reject(view, BF_CORRUPT,
						  "The number of set bits of a layer is out of range.");

		total += bf_geometry_bits(geometry);
		at += bf_geometry_size(geometry);
	}

	view->list_at = at;
	if (view->size != at + 8 * (size_t) view->nexclusions)
		return reject(view, BF_CORRUPT,
					  "Its length does not match its layers.");
	return BF_OK;
}

/*
 * Look at an image of which only the first bytes are at hand: BF_MAX_HEADER
 * of them, or as many as its header and directory are known to take, or all.
 * The view tells where everything lies, but has no pointers to it.
 *
 * On any status but BF_OK, view->reason says in words what is wrong, and
 * nothing else in the view may be used.
 */
BfStatus
bf_open_header(const uint8_t *header, size_t size, BfView *view)
{
	size_t		content;
	size_t		left;
	BfStatus	status;

	view->image = NULL;
	view->size = size;
	view->reason = NULL;
	view->hashes = NULL;
	view->exclusions = NULL;

	if (size < VERSION_AT + 1 || memcmp(header, magic, sizeof(magic)) != 0)
		return reject(view, BF_CORRUPT, "It is not a Bloom filter.");
	if (header[VERSION_AT] != VERSION)
		return reject(view, BF_UNKNOWN_VERSION,
					  "Its format version is unknown.");
	if (size < HEADER_SIZE)
		return reject(view, BF_CORRUPT, "It is shorter than its header.");
	if (header[SCHEME_AT] != SCHEME_XXH3_GOLDEN)
		return reject(view, BF_UNKNOWN_VERSION,
					  "Its hashing scheme is unknown.");
	if (header[FORM_AT] != FORM_SPARSE && header[FORM_AT] != FORM_DENSE)
		return reject(view, BF_CORRUPT, "Its form is unknown.");

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
	status = open_key_type(header, view);
	if (status != BF_OK)
		return status;

	content = HEADER_SIZE + padded(view->params.key_type.namelen);
	left = size - content;
	view->nhashes = bf_load32(header + NHASHES_AT);
	view->nlayers = header[NLAYERS_AT];
	view->nexclusions = bf_load32(header + NEXCLUSIONS_AT);

	if (header[FORM_AT] == FORM_SPARSE)
	{
		if (view->nlayers != 0)
			return reject(view, BF_CORRUPT,
						  "It has layers beside a list of hashes.");
		if (view->nexclusions != 0)
			return reject(view, BF_CORRUPT,
						  "It has exceptions beside a list of hashes.");
		if (left % 8 != 0 || left / 8 != view->nhashes)
			return reject(view, BF_CORRUPT,
						  "Its length does not match the number of hashes.");
		view->list_at = content;
		return BF_OK;
	}

	if (view->nhashes != 0)
		return reject(view, BF_CORRUPT, "It has hashes beside its layers.");
	if (view->nlayers < 1 || view->nlayers > BF_MAX_LAYERS)
		return reject(view, BF_CORRUPT,
					  "Its number of layers is out of range.");
	if (view->nexclusions > BF_MAX_EXCLUSIONS)
		return reject(view, BF_CORRUPT,
					  "Its number of exceptions is out of range.");
	if (left < (size_t) view->nlayers * ENTRY_SIZE)
		return reject(view, BF_CORRUPT, "It is shorter than its directory.");
	return open_layers(header, content, view);
}

/* Look at an image that is at hand as a whole. */
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
	else
		view->exclusions = image + view->list_at;
	for (i = 0; i < view->nlayers; i++)
		view->layers[i].bits = image + view->layers[i].at;
	return BF_OK;
}

static bool
is_ascending(const uint8_t *list, uint32_t n)
{
	uint32_t	i;

	for (i = 1; i < n; i++, list += 8)
	{
		if (bf_load64(list) >= bf_load64(list + 8))
			return false;
	}
	return true;
}

/* Open an image that comes from outside: nothing of it is trusted. */
BfStatus
bf_validate(const uint8_t *image, size_t size, BfView *view)
{
	BfStatus	status = bf_open(image, size, view);
	uint32_t	i;

	if (status != BF_OK)
		return status;

	if (!is_ascending(view->hashes, view->nhashes))
		return reject(view, BF_CORRUPT, "Its hashes are not ascending.");
	for (i = 0; i < (uint32_t) view->nlayers; i++)
	{
		const BfViewLayer *layer = &view->layers[i];

		if (bf_bits_count(layer->bits, bf_geometry_size(&layer->geometry)) !=
			layer->bits_set)
			return reject(view, BF_CORRUPT,
						  "The number of set bits of a layer does not match its bits.");
	}
	if (!is_ascending(view->exclusions, view->nexclusions))
		return reject(view, BF_CORRUPT, "Its exceptions are not ascending.");
	for (i = 0; i < view->nexclusions; i++)
	{
		if (!bf_layers_contain(view, bf_load64(view->exclusions + 8 * (size_t) i)))
			return reject(view, BF_CORRUPT,
						  "It has an exception that does not test positive.");
	}
	return BF_OK;
}

/* Bytes in front of the hashes or blocks. */
size_t
bf_header_size(const BfParams *params, int nlayers)
{
	return HEADER_SIZE + padded(params->key_type.namelen) +
		(size_t) nlayers * ENTRY_SIZE;
}

/* Write all but the directory; returns where that begins. */
uint8_t *
bf_write_header(uint8_t *image, const BfParams *params,
				uint32_t nhashes, int nlayers, uint32_t nexclusions)
{
	const BfKeyType *key_type = &params->key_type;

	memcpy(image + MAGIC_AT, magic, sizeof(magic));
	image[VERSION_AT] = VERSION;
	image[FORM_AT] = nlayers > 0 ? FORM_DENSE : FORM_SPARSE;
	image[SCHEME_AT] = SCHEME_XXH3_GOLDEN;
	image[NLAYERS_AT] = (uint8_t) nlayers;
	image[KEY_TYPE_AT] = key_type->code;
	image[NAMELEN_AT] = key_type->namelen;
	image[BYTE_ORDER_AT] = key_type->byte_order;
	image[ENCODING_AT] = key_type->encoding;
	bf_store32(image + NHASHES_AT, nhashes);
	bf_store32(image + NEXCLUSIONS_AT, nexclusions);
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
	entry[MERGED_AT] = geometry->merged;
	bf_store64(entry + CAPACITY_AT, geometry->capacity);
	bf_store_double(entry + L_FPP_AT, geometry->fpp);
	bf_store64(entry + BITS_SET_AT, bits_set);
	return entry + ENTRY_SIZE;
}

/* Change the number of set bits of one layer in place. */
void
bf_update_bits_set(uint8_t *image, const BfView *view, int layer,
				   uint64_t bits_set)
{
	bf_store64(image + bf_header_size(&view->params, layer) + BITS_SET_AT,
			   bits_set);
}
