/*-------------------------------------------------------------------------
 *
 * bf.h
 *	  The Bloom filter itself, without PostgreSQL.
 *
 * This is the one header that callers of the core include.  The core knows
 * 64-bit hashes, images (byte sequences in the format of doc/FORMAT.md) and
 * the mathematics that connects keys, bits and false-positive rates.  It
 * takes memory only from the environment that it is given, never exits, and
 * reports errors as a BfStatus.
 *
 * An image is used in two ways:
 *
 * - BfView reads it in place.  bf_open() checks the header and the layer
 *	 directory; bf_contains() and the accessors then read the bytes.  If
 *	 only the first bytes are in memory, use bf_open_header() and
 *	 bf_contains_sliced() instead.
 * - BfBuilder is a filter under construction.  It takes hashes and views in
 *	 any order, and writes one canonical image at the end.
 *
 * Each function is described where it is defined; unless it says otherwise
 * there, no pointer may be NULL.
 *
 * Terms: p or fpp is the false-positive rate (a probability), n a number of
 * keys, m a number of bits, k the number of hash functions, that is of bits
 * that one key sets, N the number of blocks of a layer and B the number of
 * bits in a block.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_H
#define BF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The range of rates that a filter can be made for.  The casts round: an x87
 * computes with more digits, also those of constants (FLT_EVAL_METHOD 2).
 */
#define BF_FPP_MIN				((double) 1e-9)
#define BF_FPP_MAX				0.5
#define BF_FPP_DEFAULT			((double) 0.01)

/* The lowest rate of one layer, because each successor halves the rate. */
#define BF_LAYER_FPP_MIN		((double) 1e-18)

/* The lowest list_fpp, 2^-126: it is kept in single precision. */
#define BF_LIST_FPP_MIN			((double) 0x1p-126)

/* All layers of a filter together: 512 MiB, so that its text fits in 1 GB. */
#define BF_MAX_BITS				((uint64_t) 1 << 32)

/* So many hashes take as much of an image as a layer and its entry. */
#define BF_LIST_OF_BITS(bits)	((uint32_t) ((bits) / 64 + 4))
#define BF_MAX_LIST				BF_LIST_OF_BITS(BF_MAX_BITS)

/*
 * One layer that is not in an image, but on pages: 128 GiB, so that its number
 * of blocks fits in 32 bits.
 */
#define BF_MAX_PAGED_BITS		((uint64_t) 1 << 40)

/*
 * A lookup reads a block of each.  Part of the format: stored filters that have
 * so many are loaded into builders, which have the same limit.
 */
#define BF_MAX_LAYERS			1024

/* A successor by growth has this many times the capacity of the largest layer. */
#define BF_GROWTH				2

/*
 * The generation of the last successor by growth; later ones repeat it.  Part
 * of the format; by doubling, a filter of one block reaches BF_MAX_BITS at this
 * generation.
 */
#define BF_MAX_GENERATION		23

#define BF_MAX_HASHES			64	/* of k */
#define BF_MAX_COMMON			8	/* filters whose common keys are counted */
#define BF_MIN_BLOCK_LOG2		9	/* 512 bits, one cache line */
#define BF_MAX_BLOCK_LOG2		14	/* 2 KiB, one TOAST chunk or two */
#define BF_MAX_BLOCK_SIZE		((size_t) 1 << (BF_MAX_BLOCK_LOG2 - 3))

/* An aggregate without expected keys is exact up to this many of them. */
#define BF_MAX_EXACT			128

/* A filter without expected keys stays sparse up to this many hashes. */
#define BF_MAX_UNSIZED_HASHES	((uint32_t) 1 << 22)

/* Its first layer is made for this many keys. */
#define BF_FIRST_UNSIZED_LAYER	(UINT64_C(4) * BF_MAX_UNSIZED_HASHES)

/*
 * If that layer is going to be folded (see BfBuilder.compact_at_end), it is
 * made for at least this many keys, and its number of blocks is 75 times a
 * power of two.  The sizes to fold to are its divisors: the more of them
 * there are, the nearer is one to what the keys need.  On average, the result
 * is more than 10 % smaller than if the layer were made as above.  A filter
 * that is not going to be folded would be twice as large.
 */
#define BF_FIRST_FOLDED_LAYER	(UINT64_C(6) * BF_MAX_UNSIZED_HASHES)
#define BF_FOLDED_FACTOR		75

/*
 * The longest name of a key type in bytes: what one byte can count.  The name
 * of any type, in UTF-8, with "[]" and a locale fits.
 */
#define BF_MAX_KEY_TYPE_NAME	255

/* PostgreSQL's largest number of an encoding that a database can have. */
#define BF_MAX_ENCODING			34

/* Header and layer directory of an image take at most this many bytes. */
#define BF_MAX_HEADER			33068

typedef enum BfStatus
{
	BF_OK,
	BF_NO_MEMORY,				/* the environment returned NULL */
	BF_TOO_LARGE,				/* more than BF_MAX_BITS */
	BF_TOO_MANY_LAYERS,			/* more than BF_MAX_LAYERS */
	BF_INCOMPLETE,				/* a merge into the builder was not finished */
	BF_CORRUPT,					/* not an image */
	BF_UNKNOWN_VERSION,			/* an image of another format version */
	BF_SEED_MISMATCH,
	BF_KEY_TYPE_MISMATCH,
	BF_GEOMETRY_MISMATCH,		/* the bits of two filters do not correspond */
	BF_IS_INTERSECTION			/* its keys are known as a bound only */
} BfStatus;

/*
 * Types of keys.  Codes are part of the format: never reassign one.  Those below
 * BF_KEY_ENUM are consecutive; key types from there on carry a name.
 */
typedef enum BfKeyTypeCode
{
	BF_KEY_NONE = 0,			/* no key yet */
	BF_KEY_TEXT = 1,
	BF_KEY_BYTEA = 2,
	BF_KEY_INTEGER = 3,
	BF_KEY_FLOAT = 4,
	BF_KEY_NUMERIC = 5,
	BF_KEY_BOOLEAN = 6,
	BF_KEY_CHAR = 7,
	BF_KEY_OID = 8,
	BF_KEY_UUID = 9,
	BF_KEY_DATE = 10,
	BF_KEY_TIME = 11,
	BF_KEY_TIMETZ = 12,
	BF_KEY_TIMESTAMP = 13,
	BF_KEY_TIMESTAMPTZ = 14,
	BF_KEY_INTERVAL = 15,
	BF_KEY_INET = 16,
	BF_KEY_MACADDR = 17,
	BF_KEY_MACADDR8 = 18,
	BF_KEY_PG_LSN = 19,
	BF_KEY_XID8 = 20,
	BF_KEY_ENUM = 64,			/* labels of the enum type named */
	BF_KEY_OPCLASS = 65			/* hashed by the hash operator class of the
								 * named type */
} BfKeyTypeCode;

/*
 * A key type in full.  The hash function of an opclass-hashed type may depend
 * on the byte order of the machine, on the encoding of the database and, for
 * some types, on locales.  Keys that were hashed under one of them are not found
 * under another, so all are recorded, the locales at the end of the name.
 */
typedef struct BfKeyType
{
	uint8_t		code;			/* BfKeyTypeCode */
	uint8_t		byte_order;		/* BF_*_ENDIAN; 0 if canonical */
	uint8_t		encoding;		/* PostgreSQL's number; 0 if canonical */
	uint8_t		namelen;		/* 0 for key types without a name */
	char		name[BF_MAX_KEY_TYPE_NAME + 1]; /* UTF-8, NUL-terminated */
} BfKeyType;

/* Are keys of these two types hashed alike and comparable? */
static inline bool
bf_key_type_equal(const BfKeyType *a, const BfKeyType *b)
{
	return a->code == b->code &&
		a->byte_order == b->byte_order &&
		a->encoding == b->encoding &&
		a->namelen == b->namelen &&
		(a->namelen == 0 || memcmp(a->name, b->name, a->namelen) == 0);
}

#define BF_LITTLE_ENDIAN		1
#define BF_BIG_ENDIAN			2

/* The parameters of a filter. */
typedef struct BfParams
{
	double		fpp;			/* BF_FPP_MIN to BF_FPP_MAX */
	uint64_t	expected;		/* distinct keys; 0: the filter sizes itself */
	uint64_t	seed;			/* of the key hash */
	BfKeyType	key_type;
} BfParams;

/*
 * Layer parameters.
 *
 * generation is 0 for a first layer.  A layer that was appended because those
 * before it were full has one more than they have.  Each generation has bit
 * positions of its own: a key that an earlier layer reports as a member is not
 * added to a later one, so with common positions, the keys that are added
 * would avoid bits that are set there, and the rates of the layers would not
 * be independent.
 */
typedef struct BfGeometry
{
	uint32_t	nblocks;
	uint8_t		block_log2;		/* log2 of B */
	uint8_t		k;
	uint8_t		generation;		/* 0 to BF_MAX_GENERATION */
	uint64_t	capacity;		/* keys it is made for */
	double		fpp;			/* it is made for */
} BfGeometry;

static inline uint64_t
bf_geometry_bits(const BfGeometry *geometry)
{
	return (uint64_t) geometry->nblocks << geometry->block_log2;
}

/* So many blocks in bytes. */
static inline size_t
bf_blocks_size(const BfGeometry *geometry, uint32_t nblocks)
{
	return (size_t) nblocks << (geometry->block_log2 - 3);
}

/* All blocks in bytes. */
static inline size_t
bf_geometry_size(const BfGeometry *geometry)
{
	return bf_blocks_size(geometry, geometry->nblocks);
}

static inline bool
bf_geometry_equal(const BfGeometry *x, const BfGeometry *y)
{
	return x->nblocks == y->nblocks && x->block_log2 == y->block_log2 &&
		x->k == y->k && x->capacity == y->capacity && x->fpp == y->fpp &&
		x->generation == y->generation;
}

/* The high word of hash * n: a number from 0 to n - 1, for n up to 2^32. */
static inline uint64_t
bf_scale(uint64_t hash, uint32_t n)
{
	uint64_t	low = (hash & 0xFFFFFFFF) * n;
	uint64_t	high = (hash >> 32) * n;

	return (high + (low >> 32)) >> 32;
}

/* The number of the block of a key in its layer. */
static inline uint32_t
bf_block_number(const BfGeometry *geometry, uint64_t hash)
{
	return (uint32_t) bf_scale(hash, geometry->nblocks);
}

/*
 * A layer of an image in place, or of a filter under construction.
 *
 * bits_cut tells what intersections did to the layer.  A key of one operand is
 * a false positive of the result where it is one of the other, so the rate is
 * that of the operands, not that of the few bits that are left.  With bits_cut
 * more bits, the layer would have as many as the fullest operand, and all bits
 * that were set since: it has at most the rate of so many.
 */
typedef struct BfLayer
{
	BfGeometry	geometry;
	uint64_t	bits_set;
	uint32_t	bits_cut;
	uint8_t    *bits;			/* in a view read only, or NULL */
	size_t		at;				/* view: offset of the bits in the image */
	uint64_t	bits_full;		/* builder: takes no key that would set more */
	void	   *memory;			/* builder: from alloc; bits are within it */
} BfLayer;

/*
 * An image in place; valid as long as the image is.  In the view of a header,
 * all pointers into the image are NULL.  A view that is kept needs memory only
 * for as many layers as it has: BF_VIEW_SIZE.
 */
typedef struct BfView
{
	const uint8_t *image;
	size_t		size;			/* of the whole image */
	const char *reason;			/* why it was rejected; a static string */
	BfParams	params;
	double		list_fpp;		/* see BfBuilder */
	uint32_t	nhashes;		/* of the sparse form */
	size_t		list_at;		/* offset of the hashes */
	const uint8_t *hashes;		/* little-endian, ascending */
	int			nlayers;		/* 0: sparse form */
	BfLayer		layers[BF_MAX_LAYERS];
} BfView;

#define BF_VIEW_SIZE(nlayers) \
	(offsetof(BfView, layers) + (nlayers) * sizeof(BfLayer))

/*
 * Returns a slice of an image that is elsewhere: length bytes, at most
 * BF_MAX_BLOCK_SIZE, from offset at on.  They remain valid until the next call.
 */
typedef const uint8_t *(*BfReadSlice) (void *context, size_t at,
									   size_t length);

/*
 * Is called every few milliseconds of a long operation, unless that is one of
 * memset(), memcpy() and memcmp().  It may leave the operation by a long jump.
 */
typedef struct BfInterrupts
{
	void		(*check) (void *context);
	void	   *context;
} BfInterrupts;

/*
 * What the core needs from its surroundings.  alloc returns NULL if there is
 * no memory.  The core owns nothing but memory from alloc, so a caller that
 * releases all of it may abandon a builder at any check for interrupts.
 */
typedef struct BfEnv
{
	void	   *(*alloc) (void *context, size_t size);
	void		(*free) (void *context, void *pointer);
	void	   *context;		/* of alloc and free */
	BfInterrupts interrupts;
} BfEnv;

/*
 * A filter under construction.  It is sparse while nlayers is 0: then hashes
 * holds nsorted hashes that are ascending and distinct, followed by pending
 * ones in the order in which they came.  Between calls, a dense filter has no
 * hashes, unless a merge was not finished.
 *
 * list_fpp is above 0 if hashes are, or were, an intersection with a dense
 * filter.  They include its false positives, so that keys of the list of which
 * they were taken have at most this rate, besides that of the bits.
 */
typedef struct BfBuilder
{
	BfEnv		env;
	BfParams	params;
	bool		compact_at_end; /* bf_builder_compact is called at the end:
								 * without expected keys, take more room */
	bool		keeps_hashes;	/* see the functions of these names */
	bool		expects_probes;
	bool		incomplete;		/* a merge was not finished */
	double		list_fpp;
	uint32_t	max_hashes;		/* sparse up to this many distinct hashes */
	uint32_t	nhashes;
	uint32_t	nsorted;
	uint32_t	room;			/* allocated in hashes */
	uint64_t   *hashes;
	int			nlayers;
	int			layer_room;		/* allocated in layers */
	int			first_asked;	/* see layers.c; below 0 if not known */
	BfLayer    *layers;
} BfBuilder;

/* Collect a hash for a sparse filter, if that is all there is to do. */
static inline bool
bf_builder_collect(BfBuilder *b, uint64_t hash)
{
	if (b->nlayers > 0 || b->expects_probes || b->nhashes == b->room)
		return false;
	b->hashes[b->nhashes++] = hash;
	return true;
}

/*
 * The functions of the core are not visible to other libraries of the same
 * process.
 */
#pragma GCC visibility push(hidden)

/* hash.c: keys to hashes */
extern uint64_t bf_hash_bytes(const void *bytes, size_t size, uint64_t seed);
extern uint64_t bf_hash_u64(uint64_t value, uint64_t seed);
extern uint32_t bf_shard(uint64_t hash, uint32_t shards);

/* key_type.c */
extern const char *bf_key_type_name(const BfKeyType *key_type);
extern bool bf_valid_key_type_name(const char *name, size_t length);

/* bits.c and bitmap.c: single blocks, of layers that are on pages */
extern bool bf_block_contains(const BfGeometry *geometry,
							  const uint8_t *block, uint64_t hash);
extern unsigned bf_block_add(const BfGeometry *geometry, uint8_t *block,
							 uint64_t hash);
extern uint64_t bf_blocks_bits_set(const uint8_t *blocks, size_t size);

/* statistics.c: bits to numbers of keys and rates */
extern double bf_geometry_cardinality(const BfGeometry *geometry,
									  uint64_t bits_set);
extern double bf_geometry_fpp(const BfGeometry *geometry, uint64_t bits_set);
extern double bf_cardinality(const BfView *view);
extern double bf_count_distinct(const BfInterrupts *interrupts,
								uint32_t nhashes, const BfLayer *layers,
								int nlayers);
extern bool bf_is_empty(const BfView *view);
extern bool bf_is_intersection(const BfView *view);
extern double bf_fpp(double list_fpp, uint32_t nhashes, const BfLayer *layers,
					 int nlayers);
extern double bf_current_fpp(const BfView *view);
extern double bf_largest_fpp(const BfView *view);

/* sizing.c: rates and numbers of keys to bits */
extern unsigned bf_standard_hashes(double fpp);
extern double bf_standard_bits_per_key(double fpp);
extern double bf_bits_per_key(double fpp);
extern double bf_needed_bits(double fpp, bool paged, uint64_t n);
extern uint64_t bf_max_keys(double fpp);
extern BfStatus bf_geometry_for(double fpp, bool paged, uint64_t n,
								BfGeometry *geometry);
extern void bf_geometry_to_fold(double fpp, BfGeometry *geometry);
extern bool bf_geometry_fold(const BfGeometry *geometry, uint64_t bits_set,
							 BfGeometry *folded);
extern uint64_t bf_geometry_full(const BfGeometry *geometry);
extern uint64_t bf_blocks_full(const BfGeometry *geometry, uint32_t nblocks);

/* image.c: images in place */
extern BfStatus bf_open(const uint8_t *image, size_t size, BfView *view);
extern BfStatus bf_open_header(const uint8_t *header, size_t size,
							   BfView *view);
extern BfStatus bf_validate(const BfInterrupts *interrupts,
							const uint8_t *image, size_t size, BfView *view);
extern size_t bf_peek_header(const uint8_t *image, size_t size, int *nlayers);
extern size_t bf_header_size(const BfParams *params, int nlayers);
extern uint8_t *bf_write_header(uint8_t *image, const BfParams *params,
								double list_fpp, uint32_t nhashes,
								const BfLayer *layers, int nlayers);
extern bool bf_contains(const BfView *view, uint64_t hash);
extern bool bf_contains_sliced(const BfView *view, uint64_t hash,
							   BfReadSlice read, void *context);

/* layers.c: how far a filter can grow, and what is in it already */
extern uint64_t bf_max_grown_keys(double fpp, uint64_t expected);
extern bool bf_layers_have(const BfParams *params, const BfLayer *layers,
						   int nlayers, uint64_t hash);

/* builder.c: filters under construction */
extern void bf_builder_init(BfBuilder *b, const BfEnv *env,
							const BfParams *params);
extern void bf_builder_free(BfBuilder *b);
extern void bf_builder_keep_hashes(BfBuilder *b, bool keep);
extern void bf_builder_expect_probes(BfBuilder *b);
extern BfStatus bf_builder_set_key_type(BfBuilder *b,
										const BfKeyType *key_type);
extern BfStatus bf_builder_reserve(BfBuilder *b, uint32_t n);
extern BfStatus bf_builder_add(BfBuilder *b, uint64_t hash);
extern BfStatus bf_builder_add_all(BfBuilder *b, const uint64_t *hashes,
								   uint32_t n);
extern bool bf_builder_contains(const BfBuilder *b, uint64_t hash);
extern bool bf_builder_has(const BfBuilder *b, uint64_t hash);
extern void bf_builder_sort_for_probes(BfBuilder *b);
extern bool bf_builder_has_room(const BfBuilder *b, uint32_t n);
extern BfStatus bf_builder_plan(BfBuilder *b, size_t *size);
extern void bf_builder_write(const BfBuilder *b, uint8_t *image);
extern uint8_t *bf_builder_write_in_place(BfBuilder *b, size_t before);

/* set.c, common.c and compact.c: whole filters */
extern BfStatus bf_builder_merge(BfBuilder *b, const BfView *view);
extern BfStatus bf_union(BfBuilder *b, const BfEnv *env,
						 const BfView *x, const BfView *y);
extern BfStatus bf_intersection(BfBuilder *b, const BfEnv *env,
								const BfView *x, const BfView *y);
extern BfStatus bf_common_keys(const BfInterrupts *interrupts, int n,
							   const BfView *const *filters, double *common,
							   int pair[2]);
extern BfStatus bf_builder_pack(const BfBuilder *b, BfBuilder *packed,
								bool *dense);
extern void bf_builder_pack_hash(BfBuilder *packed, uint64_t hash);
extern BfStatus bf_builder_compact(BfBuilder *b, BfBuilder *smaller,
								   bool *found);

#pragma GCC visibility pop

#endif							/* BF_H */
