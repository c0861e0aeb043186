/*-------------------------------------------------------------------------
 *
 * index.h
 *	  What the files of the index access method share.
 *
 * README.md in this folder has the map, doc/INDEX_FORMAT.md the layout of the
 * pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BFI_INDEX_H
#define BFI_INDEX_H

#include "key/key.h"

#include "storage/block.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/* The meta page. */
#define BFI_META_BLOCK		0

/* As many layers as the directory of the meta page has room for. */
#define BFI_MAX_LAYERS		32

/* More bits than a page has: an index with all of its layers takes any key. */
#define BFI_NO_LIMIT		((uint64) 8 * BLCKSZ)

/* A layer of an index: blocks on consecutive pages. */
typedef struct BfiLayer
{
	BfGeometry	geometry;
	BlockNumber first;			/* its first page */
	BlockNumber npages;
	uint32		page_blocks;	/* blocks on each page but the last */
} BfiLayer;

/* The content of the meta page. */
typedef struct BfiMeta
{
	double		fpp;			/* asked for */
	uint64		expected;		/* keys; 0 if not given */
	uint64		seed;
	uint64		keys_built;		/* distinct keys when the index was built */
	uint64		complete_from;	/* for snapshots from this transaction on */
	uint8		key_type;		/* BfKeyTypeCode */
	int			nlayers;
	BfiLayer	layers[BFI_MAX_LAYERS];
} BfiMeta;

/* At the end of each page of a layer. */
typedef struct BfiPageOpaque
{
	uint32		bits_set;		/* in units of BFI_BITS_UNIT, rounded up */
	BlockNumber number;			/* of the page in its layer */
	uint16		layer;
	uint16		unused;
	uint16		version;
	uint16		page_id;		/* BFI_PAGE_ID, for programs that read files */
} BfiPageOpaque;

#define BFI_PAGE_ID			0xFF8B

/*
 * The number of set bits of a page is for checks.  It is recorded in this unit
 * because most changes of a page then need not log it.
 */
#define BFI_BITS_UNIT		128

#define BfiPageGetOpaque(page) \
	((BfiPageOpaque *) PageGetSpecialPointer(page))
#define BfiPageGetBlocks(page)	((uint8 *) PageGetContents(page))

/* The page of a hash in its layer. */
static inline BlockNumber
bfi_page_number(const BfiLayer *layer, uint64 hash)
{
	return bf_block_number(&layer->geometry, hash) / layer->page_blocks;
}

/* The block of a hash on its page. */
static inline uint8 *
bfi_block_on_page(Page page, const BfiLayer *layer, uint64 hash)
{
	uint32		block = bf_block_number(&layer->geometry, hash);

	return BfiPageGetBlocks(page) +
		bf_blocks_size(&layer->geometry, block % layer->page_blocks);
}

/* Reloptions of an index. */
typedef struct BfiOptions
{
	int32		vl_len_;
	double		fpp;
	double		expected;		/* NaN if not given */
	int			seed_offset;	/* of a string */
} BfiOptions;

/* The index that this place in a query looked into last. */
struct PgBloomIndexCache
{
	Oid			oid;
	MemoryContext context;		/* of key_info */
	PgBloomKeyInfo *key_info;	/* of the indexed column or expression */
};

/* An index that a function looks into. */
typedef struct BfiIndex
{
	Relation	relation;
	bool		partitioned;	/* then meta is not set */
	BfiMeta		meta;
} BfiIndex;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* options.c */
extern bytea *bfi_options(Datum reloptions, bool validate);
extern void bfi_get_options(Relation index, BfiMeta *meta);

/* page.c */
pg_noreturn extern void bfi_report_damage(Relation index, BlockNumber block,
										  const char *reason);
extern void bfi_set_layer(BfiLayer *layer, BlockNumber first);
extern uint32 bfi_page_nblocks(const BfiLayer *layer, BlockNumber number);
extern void bfi_init_page(Page page, int layer, BlockNumber number);
extern void bfi_record_bits_set(Page page, const BfiLayer *layer,
								uint64 bits_set);
extern uint64 bfi_page_bits_set(Page page, const BfiLayer *layer);
extern bool bfi_page_bits_match(Page page, const BfiLayer *layer);
extern Buffer bfi_read_page(Relation index, const BfiMeta *meta, int layer,
							BlockNumber number, int lock_mode,
							BufferAccessStrategy strategy);

/* meta.c */
extern void bfi_init_meta(Page page, const BfiMeta *meta);
extern void bfi_read_meta(Relation index, BfiMeta *meta);
extern void bfi_enter_layer(Relation index, const BfiLayer *layer);
extern BlockNumber bfi_end(const BfiMeta *meta);

/* index_probe.c */
extern int	bfi_probe_layers(Relation index, const BfiMeta *meta,
							 int first, int end, const uint64 *hashes, int n,
							 bool *found);
extern bool bfi_contains(Relation index, const BfiMeta *meta, uint64 hash);

/* index_add.c */
extern void bfi_add(Relation index, uint64 *hashes, int n);

/* grow.c */
extern void bfi_check_size(double fpp, uint64 n);
extern void bfi_first_geometry(const BfiMeta *meta, uint64 keys,
							   BfGeometry *geometry);
extern uint64 bfi_bits_set(Relation index, const BfiMeta *meta, int layer);
extern uint64 bfi_extra_bits(Relation index, const BfiMeta *meta);
extern void bfi_append_layer(Relation index, const BfiMeta *meta, uint64 keys);

/* pending.c */
extern void bfi_pend(Relation index, uint64 hash);
extern bool bfi_is_pending(Relation index, uint64 hash);
extern void bfi_flush(void);
extern void bfi_init(void);

/* index_build.c */
struct IndexInfo;
struct IndexBuildResult;
extern struct IndexBuildResult *bfi_build(Relation heap, Relation index,
										  struct IndexInfo *info);
extern void bfi_build_empty(Relation index);
extern char *bfi_build_phase_name(int64 phase);

/* access.c */
extern Oid	bfi_key_sql_type(Relation index);
extern PgBloomKeyInfo *bfi_key_info(Relation index, MemoryContext context);
extern void bfi_set_key_type(BfiMeta *meta, const PgBloomKeyInfo *info);
extern void bfi_check_key_type(Relation index, const BfiMeta *meta,
							   const PgBloomKeyInfo *info);
extern void bfi_remember(Oid oid);
extern bool bfi_open(BfiIndex *index, Oid oid, bool is_partition);
extern void bfi_close(BfiIndex *index);
extern void bfi_open_complete(BfiIndex *index, Oid oid, bool is_partition);
extern List *bfi_index_parts(Oid oid);
extern void bfi_check_has_all_rows(Relation index);
extern List *bfi_partitions(const BfiIndex *index);

/* expressions.c */
extern void bfi_pull_columns(Relation index, Bitmapset **columns);
extern void bfi_set_expressions(Relation index, struct IndexInfo *info);

/* privileges.c */
extern void bfi_check_privileges(Relation index);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFI_INDEX_H */
