/*-------------------------------------------------------------------------
 *
 * index_build.c
 *	  Building an index from its table.
 *
 * The hashes of all keys are sorted, within maintenance_work_mem.  Then the
 * number of distinct keys is known, and the pages are written in order, each
 * once.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

enum
{
	PHASE_SCAN = PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE + 1,
	PHASE_SORT, PHASE_COUNT, PHASE_WRITE
};

typedef struct Build
{
	BfiMeta		meta;
	PgBloomKeyInfo *key_info;
	Tuplesortstate *sort;
	double		ntuples;
	MemoryContext key_context;	/* for one key */
	BufferAccessStrategy strategy;
} Build;

char *
bfi_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "hashing keys of table";
		case PHASE_SORT:
			return "sorting hashes";
		case PHASE_COUNT:
			return "counting distinct keys";
		case PHASE_WRITE:
			return "writing pages";
		default:
			return NULL;
	}
}

/* The order of int8 is that of the hashes if the first bit is inverted. */
static inline Datum
hash_to_datum(uint64 hash)
{
	return Int64GetDatum((int64) (hash ^ (UINT64CONST(1) << 63)));
}

static inline uint64
datum_to_hash(Datum datum)
{
	return (uint64) DatumGetInt64(datum) ^ (UINT64CONST(1) << 63);
}

static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			   bool tuple_is_alive, void *state)
{
	Build	   *build = state;
	MemoryContext old_context;

	(void) index;
	(void) tid;
	(void) tuple_is_alive;
	if (isnull[0])
		return;
	old_context = MemoryContextSwitchTo(build->key_context);
	tuplesort_putdatum(build->sort,
					   hash_to_datum(pgbloom_hash_value(build->key_info,
														values[0],
														build->meta.seed)),
					   false);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(build->key_context);
	build->ntuples++;
}

/* The next distinct hash; false if there is none. */
static bool
next_hash(Build *build, uint64 *hash, bool first)
{
	uint64		last = *hash;
	Datum		datum;
	bool		isnull;

	while (PGBLOOM_TUPLESORT_GETDATUM(build->sort, &datum, &isnull))
	{
		CHECK_FOR_INTERRUPTS();
		*hash = datum_to_hash(datum);
		PGBLOOM_FREE_INT8(datum);
		if (first || *hash != last)
			return true;
	}
	return false;
}

static uint64
count_distinct(Build *build)
{
	uint64		hash = 0;
	uint64		n = 0;

	while (next_hash(build, &hash, n == 0))
		n++;
	tuplesort_rescan(build->sort);
	return n;
}

static void
finish_new_page(Relation index, ForkNumber fork, Buffer buffer)
{
	START_CRIT_SECTION();
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

static void
write_meta(Relation index, ForkNumber fork, const BfiMeta *meta)
{
	Buffer		buffer = bfi_extend(index, fork, BFI_META_BLOCK, NULL);

	bfi_init_meta(BufferGetPage(buffer), meta);
	finish_new_page(index, fork, buffer);
}

/* Write the pages of the first layer. */
static void
write_layer_pages(Relation index, Build *build)
{
	const BfiLayer *layer = &build->meta.layers[0];
	BlockNumber number;
	uint64		hash = 0;
	bool		more = next_hash(build, &hash, true);

	for (number = 0; number < layer->npages; number++)
	{
		Buffer		buffer;
		BfiPage		page;
		uint8	   *block;
		uint64		bits_set = 0;

		CHECK_FOR_INTERRUPTS();
		buffer = bfi_extend(index, MAIN_FORKNUM, layer->first + number,
							build->strategy);
		bfi_set_page(&page, layer, number, buffer);
		bfi_init_page(&page);
		while (more && (block = bfi_block_on_page(&page, hash)) != NULL)
		{
			bits_set += bf_block_add(&layer->geometry, block, hash);
			more = next_hash(build, &hash, false);
		}
		if (bits_set > 0)
			bfi_record_bits_set(BufferGetPage(buffer), layer, bits_set);
		finish_new_page(index, MAIN_FORKNUM, buffer);
	}
}

/* Size the index for its keys, and write it. */
static void
write_index(Relation index, Build *build)
{
	BfiMeta    *meta = &build->meta;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	tuplesort_performsort(build->sort);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_COUNT);
	meta->keys_built = count_distinct(build);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	if (meta->keys_built > 0)
	{
		bfi_first_geometry(meta, meta->keys_built, &meta->layers[0].geometry);
		bfi_set_layer(&meta->layers[0], 0, BFI_META_BLOCK + 1);
		meta->nlayers = 1;
	}
	write_meta(index, MAIN_FORKNUM, meta);
	if (meta->nlayers > 0)
		write_layer_pages(index, build);
}

IndexBuildResult *
bfi_build(Relation heap, Relation index, IndexInfo *info)
{
	Build	   *build = palloc0(sizeof(Build));
	IndexBuildResult *result = palloc0(sizeof(*result));

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	bfi_get_options(index, &build->meta);
	bfi_check_expressions(index);
	build->key_info = bfi_key_info(index, CurrentMemoryContext);
	build->meta.key_type = build->key_info->key_type.code;
	build->key_context = AllocSetContextCreate(CurrentMemoryContext,
											   "key of a Bloom filter index",
											   ALLOCSET_DEFAULT_SIZES);
	build->strategy = GetAccessStrategy(BAS_BULKWRITE);
	build->sort = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid,
										false, maintenance_work_mem, NULL,
										TUPLESORT_RANDOMACCESS);

	/* PostgreSQL is the owner of the table already, and ends this. */
	RestrictSearchPath();

	/*
	 * After it has truncated the table, it gives no expressions, as nothing
	 * may be evaluated then: a commit may have begun, without a snapshot.
	 */
	if (info->ii_Concurrent || RelationGetNumberOfBlocks(heap) > 0)
		bfi_set_expressions(index, info);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	result->heap_tuples = bfi_scan_versions(heap, index, info, build_callback,
											build,
											&build->meta.complete_from);
	result->index_tuples = build->ntuples;
	write_index(index, build);
	tuplesort_end(build->sort);
	return result;
}

/*
 * The initial content of an unlogged index.  It has no layer, so that
 * restoring it after a crash takes no time; the first key makes one.
 */
void
bfi_build_empty(Relation index)
{
	BfiMeta		meta;

	bfi_get_options(index, &meta);
	meta.key_type = bfi_key_info(index, CurrentMemoryContext)->key_type.code;
	write_meta(index, INIT_FORKNUM, &meta);
}
