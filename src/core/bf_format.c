/*-------------------------------------------------------------------------
 *
 * bf_format.c
 *	  Images: the bytes of a filter on disk, on the wire and in memory.
 *
 * doc/FORMAT.md is the specification.  An image is a header, the name of the
 * key kind if it has one, the directory of layers, and then either the
 * hashes of the sparse form or the blocks of the layers and the hashes of
 * known false positives.  With PostgreSQL's length word of four bytes in
 * front, every field lies at a multiple of its size.
 *
 * bf_open() checks all that can be known from header, directory and length,
 * which makes every later access safe; each use of a filter pays for it.
 * bf_open_front() does the same where the rest of an image is elsewhere.
 * bf_validate() adds what takes a walk through the content and is for bytes
 * that come from outside.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>

#include "bf_bytes.h"
#include "bf_internal.h"

#define VERSION			1
#define SCHEME_XXH3_GOLDEN	1	/* how hashes and positions are made */

/* Offsets in the header. */
#define MAGIC_AT		0
#define VERSION_AT		4
#define FORM_AT			5
#define SCHEME_AT		6
#define NLAYERS_AT		7
#define KIND_AT			8
#define NAMELEN_AT		9
#define BYTE_ORDER_AT	10
#define ENCODING_AT		11
#define NHASHES_AT		12
#define NEXCEPTIONS_AT	16
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
static_assert(HEADER_SIZE + (BF_MAX_KIND_NAME + 7) / 8 * 8 +
			  BF_MAX_LAYERS * ENTRY_SIZE == BF_MAX_FRONT,
			  "BF_MAX_FRONT is wrong");
static_assert((HEADER_SIZE + 4) % 8 == 0, "content is not aligned");
static_assert(BITS_SET_AT + 8 == ENTRY_SIZE, "directory entry has a gap");
static_assert(BF_MAX_KIND_NAME == UINT8_MAX, "a length needs to be checked");

/* Names of the kinds that have none of their own; part of no image. */
static const char *const kind_names[] = {
	[BF_KIND_TEXT] = "text",
	[BF_KIND_BYTEA] = "bytea",
	[BF_KIND_INTEGER] = "integer",
	[BF_KIND_FLOAT] = "float",
	[BF_KIND_NUMERIC] = "numeric",
	[BF_KIND_BOOLEAN] = "boolean",
	[BF_KIND_CHAR] = "\"char\"",
	[BF_KIND_OID] = "oid",
	[BF_KIND_UUID] = "uuid",
	[BF_KIND_DATE] = "date",
	[BF_KIND_TIME] = "time",
	[BF_KIND_TIMETZ] = "timetz",
	[BF_KIND_TIMESTAMP] = "timestamp",
	[BF_KIND_TIMESTAMPTZ] = "timestamptz",
	[BF_KIND_INTERVAL] = "interval",
	[BF_KIND_INET] = "inet",
	[BF_KIND_MACADDR] = "macaddr",
	[BF_KIND_MACADDR8] = "macaddr8",
	[BF_KIND_PG_LSN] = "pg_lsn",
	[BF_KIND_XID8] = "xid8"
};

#define NKIND_NAMES		(sizeof(kind_names) / sizeof(kind_names[0]))

/* The name for messages, in UTF-8; NULL as long as the kind is open. */
const char *
bf_kind_name(const BfKind *kind)
{
	if (kind->code == BF_KIND_NONE)
		return NULL;
	return kind->code < NKIND_NAMES ? kind_names[kind->code] : kind->name;
}

bool
bf_kind_equal(const BfKind *a, const BfKind *b)
{
	return a->code == b->code &&
		a->byte_order == b->byte_order &&
		a->encoding == b->encoding &&
		a->namelen == b->namelen &&
		(a->namelen == 0 || memcmp(a->name, b->name, a->namelen) == 0);
}

static bool
kind_has_name(unsigned code)
{
	return code == BF_KIND_ENUM || code == BF_KIND_FOREIGN;
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
bf_valid_kind_name(const char *name, size_t length)
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
refuse(BfView *view, BfStatus status, const char *reason)
{
	view->reason = reason;
	return status;
}

static bool
valid_platform(const BfKind *kind)
{
	if (kind->code == BF_KIND_FOREIGN)
		return kind->byte_order == BF_LITTLE_ENDIAN ||
			kind->byte_order == BF_BIG_ENDIAN;
	if (kind->byte_order != 0)
		return false;
	return kind->encoding == 0 || (kind->encoding == BF_MULE_INTERNAL &&
								   (kind->code == BF_KIND_TEXT ||
									kind->code == BF_KIND_ENUM));
}

static BfStatus
open_kind(const uint8_t *front, BfView *view)
{
	BfKind	   *kind = &view->params.kind;
	size_t		i;

	kind->code = front[KIND_AT];
	kind->namelen = front[NAMELEN_AT];
	kind->byte_order = front[BYTE_ORDER_AT];
	kind->encoding = front[ENCODING_AT];

	if (kind->code >= NKIND_NAMES && !kind_has_name(kind->code))
		return refuse(view, BF_CORRUPT, "The type of its keys is unknown.");
	if ((kind->namelen > 0) != kind_has_name(kind->code))
		return refuse(view, BF_CORRUPT,
					  "The name of its key type has a wrong length.");
	if (!valid_platform(kind))
		return refuse(view, BF_CORRUPT,
					  "The byte order or encoding of its keys is unknown.");
	if (kind->encoding > BF_MAX_ENCODING)
		return refuse(view, BF_CORRUPT,
					  "The encoding of its keys is unknown.");

	if (view->size < HEADER_SIZE + padded(kind->namelen))
		return refuse(view, BF_CORRUPT, "It is shorter than its header.");
	memcpy(kind->name, front + HEADER_SIZE, kind->namelen);
	kind->name[kind->namelen] = '\0';
	if (!bf_valid_kind_name(kind->name, kind->namelen))
		return refuse(view, BF_CORRUPT,
					  "The name of its key type has wrong characters.");
	for (i = kind->namelen; i < padded(kind->namelen); i++)
	{
		if (front[HEADER_SIZE + i] != 0)
			return refuse(view, BF_CORRUPT,
						  "The padding of a name is not zero.");
	}
	return BF_OK;
}

static BfStatus
open_layers(const uint8_t *front, size_t directory, BfView *view)
{
	const uint8_t *entry = front + directory;
	size_t		at = directory + (size_t) view->nlayers * ENTRY_SIZE;
	uint64_t	total = 0;
	int			i;

	for (i = 0; i < view->nlayers; i++, entry += ENTRY_SIZE)
	{
		BfViewLayer *layer = &view->layers[i];
		BfShape    *shape = &layer->shape;

		shape->nblocks = bf_load32(entry + NBLOCKS_AT);
		shape->block_log2 = entry[BLOCK_LOG2_AT];
		shape->k = entry[K_AT];
		shape->capacity = bf_load64(entry + CAPACITY_AT);
		shape->fpp = bf_load_double(entry + L_FPP_AT);
		layer->bits_set = bf_load64(entry + BITS_SET_AT);
		shape->generation = entry[GENERATION_AT];
		shape->merged = entry[MERGED_AT] != 0;
		layer->at = at;
		layer->bits = NULL;

		if (shape->block_log2 < BF_MIN_BLOCK_LOG2 ||
			shape->block_log2 > BF_MAX_BLOCK_LOG2)
			return refuse(view, BF_CORRUPT,
						  "The block size of a layer is out of range.");
		if (shape->k < 1 || shape->k > BF_MAX_HASHES)
			return refuse(view, BF_CORRUPT,
						  "The number of hash functions of a layer is out of range.");
		if (shape->nblocks < 1 || bf_shape_bits(shape) > BF_MAX_BITS - total)
			return refuse(view, BF_CORRUPT,
						  "The number of blocks of a layer is out of range.");
		if (shape->generation > BF_MAX_GENERATION)
			return refuse(view, BF_CORRUPT,
						  "The generation of a layer is out of range.");
		if (entry[MERGED_AT] > 1)
			return refuse(view, BF_CORRUPT,
						  "The flags of a layer are unknown.");
		if (shape->capacity < 1 || shape->capacity >
			(shape->merged ? BF_MAX_KEYS : bf_shape_bits(shape)))
			return refuse(view, BF_CORRUPT,
						  "The capacity of a layer is out of range.");
		/* Written so that NaN fails. */
		if (!(shape->fpp >= BF_LAYER_FPP_MIN &&
			  shape->fpp <= (shape->merged ? 1 : BF_FPP_MAX)))
			return refuse(view, BF_CORRUPT,
						  "The false-positive rate of a layer is out of range.");
		if (layer->bits_set > bf_shape_bits(shape))
			return refuse(view, BF_CORRUPT,
						  "The number of set bits of a layer is out of range.");

		total += bf_shape_bits(shape);
		at += bf_shape_size(shape);
	}

	view->list_at = at;
	if (view->size != at + 8 * (size_t) view->nexceptions)
		return refuse(view, BF_CORRUPT,
					  "Its length does not match its layers.");
	return BF_OK;
}

/*
 * Look at an image of which only the first bytes are at hand: BF_MAX_FRONT
 * of them, or as many as its header and directory are known to take, or all.
 * The view tells where everything lies, but has no pointers to it.
 *
 * On any status but BF_OK, view->reason says in words what is wrong, and
 * nothing else in the view may be used.
 */
BfStatus
bf_open_front(const uint8_t *front, size_t size, BfView *view)
{
	size_t		content;
	size_t		left;
	BfStatus	status;

	view->image = NULL;
	view->size = size;
	view->reason = NULL;
	view->hashes = NULL;
	view->exceptions = NULL;

	if (size < VERSION_AT + 1 || memcmp(front, magic, sizeof(magic)) != 0)
		return refuse(view, BF_CORRUPT, "It is not a Bloom filter.");
	if (front[VERSION_AT] != VERSION)
		return refuse(view, BF_UNKNOWN_VERSION,
					  "Its format version is unknown.");
	if (size < HEADER_SIZE)
		return refuse(view, BF_CORRUPT, "It is shorter than its header.");
	if (front[SCHEME_AT] != SCHEME_XXH3_GOLDEN)
		return refuse(view, BF_UNKNOWN_VERSION,
					  "Its hashing scheme is unknown.");
	if (front[FORM_AT] != FORM_SPARSE && front[FORM_AT] != FORM_DENSE)
		return refuse(view, BF_CORRUPT, "Its form is unknown.");

	view->params.seed = bf_load64(front + SEED_AT);
	view->params.fpp = bf_load_double(front + FPP_AT);
	view->params.expected = bf_load64(front + EXPECTED_AT);
	/* Written so that NaN fails. */
	if (!(view->params.fpp >= BF_FPP_MIN && view->params.fpp <= BF_FPP_MAX))
		return refuse(view, BF_CORRUPT,
					  "Its false-positive rate is out of range.");
	if (view->params.expected > BF_MAX_BITS)
		return refuse(view, BF_CORRUPT,
					  "Its number of expected keys is out of range.");
	status = open_kind(front, view);
	if (status != BF_OK)
		return status;

	content = HEADER_SIZE + padded(view->params.kind.namelen);
	left = size - content;
	view->nhashes = bf_load32(front + NHASHES_AT);
	view->nlayers = front[NLAYERS_AT];
	view->nexceptions = bf_load32(front + NEXCEPTIONS_AT);

	if (front[FORM_AT] == FORM_SPARSE)
	{
		if (view->nlayers != 0)
			return refuse(view, BF_CORRUPT,
						  "It has layers beside a list of hashes.");
		if (view->nexceptions != 0)
			return refuse(view, BF_CORRUPT,
						  "It has exceptions beside a list of hashes.");
		if (left % 8 != 0 || left / 8 != view->nhashes)
			return refuse(view, BF_CORRUPT,
						  "Its length does not match the number of hashes.");
		view->list_at = content;
		return BF_OK;
	}

	if (view->nhashes != 0)
		return refuse(view, BF_CORRUPT, "It has hashes beside its layers.");
	if (view->nlayers < 1 || view->nlayers > BF_MAX_LAYERS)
		return refuse(view, BF_CORRUPT,
					  "Its number of layers is out of range.");
	if (view->nexceptions > BF_MAX_EXCEPTIONS)
		return refuse(view, BF_CORRUPT,
					  "Its number of exceptions is out of range.");
	if (left < (size_t) view->nlayers * ENTRY_SIZE)
		return refuse(view, BF_CORRUPT, "It is shorter than its directory.");
	return open_layers(front, content, view);
}

/* Look at an image that is at hand as a whole. */
BfStatus
bf_open(const uint8_t *image, size_t size, BfView *view)
{
	BfStatus	status = bf_open_front(image, size, view);
	int			i;

	if (status != BF_OK)
		return status;
	view->image = image;
	if (view->nlayers == 0)
		view->hashes = image + view->list_at;
	else
		view->exceptions = image + view->list_at;
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
		return refuse(view, BF_CORRUPT, "Its hashes are not ascending.");
	for (i = 0; i < (uint32_t) view->nlayers; i++)
	{
		const BfViewLayer *layer = &view->layers[i];

		if (bf_bits_count(layer->bits, bf_shape_size(&layer->shape)) !=
			layer->bits_set)
			return refuse(view, BF_CORRUPT,
						  "The number of set bits of a layer does not match its bits.");
	}
	if (!is_ascending(view->exceptions, view->nexceptions))
		return refuse(view, BF_CORRUPT, "Its exceptions are not ascending.");
	for (i = 0; i < view->nexceptions; i++)
	{
		if (!bf_bits_say(view, bf_load64(view->exceptions + 8 * (size_t) i)))
			return refuse(view, BF_CORRUPT,
						  "It has an exception that does not test positive.");
	}
	return BF_OK;
}

/* Bytes in front of the hashes or blocks. */
size_t
bf_header_size(const BfParams *params, int nlayers)
{
	return HEADER_SIZE + padded(params->kind.namelen) +
		(size_t) nlayers * ENTRY_SIZE;
}

/* Write all but the directory; returns where that begins. */
uint8_t *
bf_write_header(uint8_t *image, const BfParams *params,
				uint32_t nhashes, int nlayers, uint32_t nexceptions)
{
	const BfKind *kind = &params->kind;

	memcpy(image + MAGIC_AT, magic, sizeof(magic));
	image[VERSION_AT] = VERSION;
	image[FORM_AT] = nlayers > 0 ? FORM_DENSE : FORM_SPARSE;
	image[SCHEME_AT] = SCHEME_XXH3_GOLDEN;
	image[NLAYERS_AT] = (uint8_t) nlayers;
	image[KIND_AT] = kind->code;
	image[NAMELEN_AT] = kind->namelen;
	image[BYTE_ORDER_AT] = kind->byte_order;
	image[ENCODING_AT] = kind->encoding;
	bf_store32(image + NHASHES_AT, nhashes);
	bf_store32(image + NEXCEPTIONS_AT, nexceptions);
	bf_store64(image + SEED_AT, params->seed);
	bf_store_double(image + FPP_AT, params->fpp);
	bf_store64(image + EXPECTED_AT, params->expected);

	image += HEADER_SIZE;
	memset(image, 0, padded(kind->namelen));
	memcpy(image, kind->name, kind->namelen);
	return image + padded(kind->namelen);
}

/* Write one entry of the directory; returns where the next one begins. */
uint8_t *
bf_write_layer(uint8_t *entry, const BfShape *shape, uint64_t bits_set)
{
	bf_store32(entry + NBLOCKS_AT, shape->nblocks);
	entry[BLOCK_LOG2_AT] = shape->block_log2;
	entry[K_AT] = shape->k;
	entry[GENERATION_AT] = shape->generation;
	entry[MERGED_AT] = shape->merged;
	bf_store64(entry + CAPACITY_AT, shape->capacity);
	bf_store_double(entry + L_FPP_AT, shape->fpp);
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
