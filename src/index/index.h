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

#include "access/generic_xlog.h"
#include "nodes/bitmapset.h"
#include "storage/block.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/* The meta page. */
#define BFI_META_BLOCK		0

/* As many layers as the directory of the meta page has room for. */
#define BFI_MAX_LAYERS		32

/* So many pages of a layer, at most, tell how full it is. */
#define BFI_MAX_SAMPLE		256

/* More bits than a page has: an index with all of its layers takes any key. */
#define BFI_NO_LIMIT		((uint64) 8 * BLCKSZ)

/* A layer of an index: blocks on consecutive pages. */
typedef struct BfiLayer
{
	BfGeometry	geometry;
	uint32		set;			/* number of its set */
	int			number;			/* of the layer, from 0 */
	BlockNumber first;			/* its first page */
	BlockNumber npages;
	uint32		page_blocks;	/* blocks on each page but the last */
} BfiLayer;

/* The layers that have the keys of an index. */
typedef struct BfiSet
{
	uint32		number;			/* 0 if there is no such set */
	int			nlayers;
	BfiLayer	layers[BFI_MAX_LAYERS];
} BfiSet;

/* The content of the meta page, up to the sets as it is there. */
typedef struct BfiMeta
{
	uint8		version;
	uint8		scheme;			/* of hashing */
	uint8		key_type;		/* BfKeyTypeCode */
	uint8		partial;		/* the current set may lack pages: rebuild.c */
	uint32		last_set;		/* that has been used */
	double		fpp;			/* asked for */
	uint64		expected;		/* keys; 0 if not given */
	uint64		seed;
	uint64		keys_built;		/* distinct keys when the set was built */
	double		keys_per_row;	/* or version of one, 0 if not known */
	TimestampTz rebuilt;		/* when VACUUM last began to, or 0 */
	uint64		complete_from;	/* for snapshots whose xmin is not below it */
	BfiSet		current;
	BfiSet		next;			/* or, if its number is less, what it was */
} BfiMeta;

/* At the end of each page of a layer. */
typedef struct BfiPageOpaque
{
	uint32		bits_set;
	BlockNumber number;			/* of the page in its layer */
	uint32		set;			/* number of the layer's set */
	uint8		grants;			/* of bits beyond its share: see hashes.c */
	uint8		layer;
	uint16		page_id;		/* BFI_PAGE_ID, for programs that read files */
} BfiPageOpaque;

#define BFI_PAGE_ID			0xFF8B

/* Are changes of pages of this set logged?  What VACUUM fills has even numbers. */
#define BFI_IS_LOGGED(set)	((set) % 2 == 1)

#define BfiPageGetOpaque(page) \
	((BfiPageOpaque *) PageGetSpecialPointer(page))

/* A page of a layer, in a buffer. */
typedef struct BfiPage
{
	const BfiLayer *layer;
	BlockNumber number;			/* of the page in its layer */
	uint32		set;			/* number of the set that it says */
	uint32		first;			/* number of its first block in the layer */
	uint32		nblocks;
	Buffer		buffer;
	uint8	   *blocks;			/* in the buffer, or in a copy of it */
} BfiPage;

/* The block of a hash, or NULL if it is not on this page. */
static inline uint8 *
bfi_block_on_page(const BfiPage *page, uint64 hash)
{
	const BfGeometry *geometry = &page->layer->geometry;
	uint32		block = bf_block_number(geometry, hash) - page->first;

	return block < page->nblocks ?
		page->blocks + bf_blocks_size(geometry, block) : NULL;
}

/* Pages that one record of WAL can change. */
#define BFI_MAX_CHANGES		MAX_GENERIC_XLOG_PAGES

/* So many buffers that had pages of an index are remembered, by block. */
#define BFI_RECENT			32

/* What the relation cache keeps of an index, or a list of partitions. */
typedef struct BfiCache
{
	RelFileLocator locator;		/* of the pages */
	Buffer		recent[BFI_RECENT];
	TransactionId built;		/* xmin of its row of pg_class */
	TransactionId valid;		/* and of pg_index */
	BfiMeta		meta;			/* up to the current set's end, in lists only */
} BfiCache;

/* A page that is being changed. */
typedef struct BfiChange
{
	Buffer		buffer;
	bool		is_delta;		/* else it is logged as a full image */
	int			from;			/* what changes but header and end */
	int			to;
	size_t		size;			/* of delta */
	PGAlignedBlock image;		/* what is going to be there */
	char		delta[BLCKSZ / 2];
} BfiChange;

/* Reloptions of an index. */
typedef struct BfiOptions
{
	int32		vl_len_;
	double		fpp;
	double		expected;		/* NaN if not given */
	int			seed_offset;	/* of a string */
	double		rebuild_scale_factor;
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
	Oid			locked_table;	/* until it is closed, or invalid */
	bool		partitioned;
	bool		complete;		/* else it may lack rows */
	BfiMeta		meta;			/* if it is complete and not partitioned */
} BfiIndex;

/* A partition, which is no partitioned table itself. */
typedef struct BfiPartition
{
	Oid			table;
	Oid			index;			/* invalid if there is none */
	bool		is_heap;		/* PostgreSQL's own access method */
	BfiCache  **known;			/* what is known of the index, while */
	uint64		changes;		/* bfi_list_changes is this; or NULL */
} BfiPartition;

/* A call of a lookup function: its arguments, and the result. */
typedef struct BfiLookup
{
	Oid			function;
	Oid			index;
	Oid			user;			/* who may look it up */
	Oid			type;			/* of the key, or invalid: not read */
	Oid			collation;
	int16		typlen;
	bool		typbyval;
	bool		is_array;		/* the result */
	uint64		hash;			/* of the key's bytes */
	Datum		key;			/* not compressed, if the type is known */
	Datum		result;
	uint64		moment;			/* before */
} BfiLookup;

/* The execution of a plan, which remembers lookups: see remember.c. */
typedef struct BfiMemory BfiMemory;
typedef struct BfiExecution
{
	MemoryContext context;		/* in which its functions are prepared */
	bool		only_reads;		/* it goes on with no newer version of a row */
	BfiMemory  *memory;			/* or NULL */
} BfiExecution;

/* Lists of more keys are not looked up: hardly any partition lacks all of them. */
#define BFI_MAX_KEYS	1000

/* The keys that a query looks up in indexes of one table or of partitions. */
typedef struct BfiKeys
{
	PgBloomKeyInfo *info;
	Datum	   *values;			/* not null */
	int			n;
	MemoryContext context;		/* of hashes */
	uint64	   *hashes;			/* ascending; NULL until they are computed */
	uint64		seed;			/* of the hashes */
} BfiKeys;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

/* options.c */
extern bytea *bfi_options(Datum reloptions, bool validate);
extern void bfi_get_options(Relation index, BfiMeta *meta);
extern double bfi_rebuild_scale_factor(Relation index);

/* page.c */
extern Buffer bfi_read_buffer(Relation index, BlockNumber block,
							  BufferAccessStrategy strategy);
extern void bfi_set_page(BfiPage *page, const BfiLayer *layer,
						 BlockNumber number, Buffer buffer);
extern void bfi_init_page(const BfiPage *page);
extern void bfi_empty_page(const BfiPage *page);
extern void bfi_record_bits_set(Page page, const BfiLayer *layer,
								uint32 bits_set);
extern uint64 bfi_count_bits_set(const BfiPage *page);
extern Buffer bfi_extend(Relation index, ForkNumber fork, BlockNumber block,
						 BufferAccessStrategy strategy);
extern void bfi_finish_new_page(Relation index, ForkNumber fork,
								Buffer buffer);
extern bool bfi_is_page_of(const BfiPage *page);
extern bool bfi_read_page(Relation index, const BfiLayer *layer,
						  BlockNumber number, int lock_mode,
						  BufferAccessStrategy strategy, BfiPage *page);
extern bool bfi_read_recent_page(BfiCache *cache, const BfiLayer *layer,
								 BlockNumber number, BfiPage *page);
extern void bfi_read_layer_page(Relation index, const BfiLayer *layer,
								BlockNumber number,
								BufferAccessStrategy strategy, BfiPage *page);

/* meta.c */
pg_noreturn extern void bfi_report_damage(Relation index, BlockNumber block,
										  const char *reason);
extern void bfi_set_layer(BfiLayer *layer, const BfiSet *set, int number,
						  BlockNumber first);
extern void bfi_init_meta(Page page, BfiMeta *meta);
extern void bfi_read_meta(Relation index, BfiMeta *meta);
extern void bfi_read_meta_in(Relation index, Buffer buffer, BfiMeta *meta);
extern void bfi_change_meta(Relation index, const BfiMeta *meta);
extern bool bfi_is_being_rebuilt(Relation index);
extern void bfi_read_live_meta(Relation index, BfiMeta *meta);
extern uint32 bfi_current_set(Buffer buffer);
extern BfiSet *bfi_find_set(BfiMeta *meta, uint32 number);
extern const BfiLayer *bfi_layer_source(const BfiMeta *meta,
										const BfiLayer *layer);
extern BlockNumber bfi_end(const BfiMeta *meta);

/* hashes.c */
extern void bfi_probe(Relation index, BfiCache *known, const BfiSet *set, int nlayers,
					  const uint64 *hashes, int n, bool *found);
extern int	bfi_add_to_shares(Relation index, uint32 number, uint64 *hashes,
							  int n);
extern void bfi_add_to_set(Relation index, BfiMeta *meta, uint32 number,
						   const uint64 *hashes, int n);

/* wal.c */
extern void bfi_begin_change(BfiChange *change, Buffer buffer, int from,
							 int to);
extern void bfi_mark_unlogged(Relation index, Buffer buffer);
extern void bfi_finish_changes(Relation index, BfiChange *changes, int n);

/* free.c */
extern void bfi_return_free_pages(Relation heap, Relation cleaned);

/* grow.c; so many pages are made at once, in a millisecond or two */
#define BFI_PAGES_AT_ONCE	128

extern bool bfi_is_too_large(double fpp, uint64 n);
extern void bfi_check_size(double fpp, uint64 n);
extern void bfi_first_geometry(const BfiMeta *meta, uint64 keys, uint64 room,
							   BfGeometry *geometry);
extern void bfi_measure(Relation index, const BfiMeta *meta, BfView *view);
extern uint64 bfi_extra_bits(Relation index, const BfiSet *set);
extern void bfi_make_layer_pages(Relation index, const BfiLayer *layer,
								 BlockNumber from, BlockNumber to);
extern void bfi_append_geometry(Relation index, BfiMeta *meta, BfiSet *set,
								const BfGeometry *geometry, BlockNumber made);
extern void bfi_append_layer(Relation index, BfiMeta *meta, BfiSet *set,
							 uint64 keys);

/* pending.c */
struct IndexInfo;
extern void bfi_write(Relation index, const uint64 *hashes, int n);
extern void bfi_pend(Relation index, uint64 hash);
extern void bfi_find_pending(Oid index, const uint64 *hashes, int n,
							 bool *found);
extern void bfi_flush(void);
extern void bfi_insert_cleanup(Relation index, struct IndexInfo *info);
extern void bfi_init(void);

/* handler.c */
struct IndexOptInfo;
extern uint64 bfi_keys_inserted;
extern bool bfi_is_bloomfilter(const struct IndexOptInfo *index);
extern bool bfi_is_access_method(Oid method);

/* index_contains.c */
extern void bfi_find_hashes(const BfiIndex *index, const uint64 *hashes, int n,
							bool *found);

/* remember.c */
extern BfiExecution *bfi_execution;
extern uint64 bfi_moment(void);
extern bool bfi_recall(FunctionCallInfo fcinfo, bool is_array,
					   BfiLookup *lookup);
extern void bfi_remember(FunctionCallInfo fcinfo, BfiLookup *lookup);
extern void bfi_forget(BfiExecution *execution);

/* keys.c */
struct Tuplesortstate;
typedef struct BfiKeySort
{
	uint64		seed;
	PgBloomKeyInfo *key_info;
	struct Tuplesortstate *sort;
	double		nrows;			/* with a key that is not null */
	MemoryContext key_context;	/* for one key */
} BfiKeySort;

extern void bfi_begin_keys(BfiKeySort *keys, Relation index, uint64 seed,
						   int memory);
extern void bfi_take_hash(BfiKeySort *keys, uint64 hash);
extern void bfi_take_key(Relation index, ItemPointer tid, Datum *values,
						 bool *isnull, bool is_live, void *state);
extern bool bfi_next_key(BfiKeySort *keys, uint64 *hash, bool first);
extern uint64 bfi_count_keys(BfiKeySort *keys);
extern void bfi_end_keys(BfiKeySort *keys);

/* versions.c */
typedef struct BfiScan
{
	double		rows;			/* of the table */
	double		versions;		/* that a snapshot may see and no other
								 * replaced */
	uint64		complete_from;	/* for snapshots whose xmin is not below it */
} BfiScan;

extern void bfi_scan_versions(Relation heap, Relation index,
							  struct IndexInfo *info, BfiKeySort *keys,
							  BfiScan *scan);
extern double bfi_count_versions(Relation heap, bool replaced);

/* index_build.c */
struct IndexBuildResult;
extern struct IndexBuildResult *bfi_build(Relation heap, Relation index,
										  struct IndexInfo *info);
extern void bfi_build_empty(Relation index);
extern char *bfi_build_phase_name(int64 phase);

/* rebuild.c */
struct IndexVacuumInfo;
struct IndexBulkDeleteResult;
extern double bfi_keys_per_row(double keys, double rows);
extern double bfi_live_keys(const BfiMeta *meta, double rows, double keys);
extern struct IndexBulkDeleteResult *bfi_vacuum_cleanup(struct IndexVacuumInfo *info,
														struct IndexBulkDeleteResult *stats);

/* access.c */
extern Oid	bfi_key_sql_type(Relation index);
extern PgBloomKeyInfo *bfi_key_info(Relation index, MemoryContext context);
extern void bfi_check_key_type(Relation index, const BfiMeta *meta,
							   const PgBloomKeyInfo *info);
extern BfParams bfi_params(const BfiMeta *meta, const PgBloomKeyInfo *info);
extern uint64 bfi_full_transaction_id(TransactionId transaction);
extern bool bfi_is_citus_table(Relation table);
extern bool bfi_is_open_bloomfilter(Relation index);
extern bool bfi_has_all_rows(const BfiCache *cache, const BfiMeta *meta);
extern void bfi_begin_reading(BfiIndex *index, bool raise);
extern void bfi_open(BfiIndex *index, Oid oid);
extern void bfi_open_partition(BfiIndex *index, const BfiPartition *partition);
extern void bfi_close(BfiIndex *index);
extern void bfi_check_complete(const BfiIndex *index, Oid oid);
extern void bfi_check_has_all_rows(Relation index);

/* lookup.c */
extern bool bfi_asked_by_queries;
extern AttrNumber bfi_column_of(Oid index);
extern bool bfi_is_hashed_in_c(Oid type);
extern bool bfi_can_look_up(Oid operator, Oid operator_collation, Oid type,
							Oid key_type, Oid collation);
extern void bfi_open_leaf(BfiIndex *index, const BfiPartition *leaf);
extern void bfi_open_for_query(BfiIndex *index, Oid oid);
extern bool bfi_read_keys(Datum key, Oid type, bool is_array, Oid collation,
						  BfiKeys *keys);
extern bool bfi_leaf_may_have(const BfiPartition *leaf, BfiKeys *keys);
extern bool bfi_may_have(const BfiIndex *index, BfiKeys *keys);

/* partitions.c */
extern uint64 bfi_relation_changes;
extern bool bfi_have_changed(const List *oids, uint64 changes);
extern uint64 bfi_list_changes;
extern void bfi_count_relation_changes(void);
extern BfiPartition *bfi_leaves(Relation index, int *n);
extern void bfi_remember_leaf(const BfiPartition *leaf, const BfiIndex *index);
extern BfiPartition *bfi_partitions(Relation index, int *n);
extern void bfi_check_partitions(Relation index,
								 const BfiPartition *partitions, int n);
extern BfiPartition *bfi_complete_partitions(Oid oid, int *n);

/* security.c */
extern void bfi_check_expressions(Relation index);
extern bool bfi_key_may_change(Relation index);
extern void bfi_set_expressions(Relation index, struct IndexInfo *info);
extern Bitmapset *bfi_indexed_columns(Relation index);
extern void bfi_check_privileges(Relation index, bool tells_partition);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* BFI_INDEX_H */
