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
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/guc.h"
#include "utils/tuplesort.h"

enum
{
	PHASE_SCAN = PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE + 1,
	PHASE_SORT, PHASE_COUNT, PHASE_WRITE
};

typedef struct Build
{
	BfiMeta		meta;
	BfiKeySort	keys;
	BufferAccessStrategy strategy;
} Build;

char *
bfi_build_phase_name(int64 phase)
{
	static char *const names[] = {
		[PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE] = "initializing",
		[PHASE_SCAN] = "hashing keys of table",
		[PHASE_SORT] = "sorting hashes",
		[PHASE_COUNT] = "counting distinct keys",
		[PHASE_WRITE] = "writing pages"
	};

	return phase >= 0 && phase < (int64) lengthof(names) ? names[phase] : NULL;
}

static void
write_meta(Relation index, ForkNumber fork, BfiMeta *meta)
{
	Buffer		buffer = bfi_extend(index, fork, BFI_META_BLOCK, NULL);

	bfi_init_meta(BufferGetPage(buffer), meta);
	bfi_finish_new_page(index, fork, buffer);
}

/* Write the pages of the first layer. */
static void
write_layer_pages(Relation index, Build *build)
{
	const BfiLayer *layer = &build->meta.current.layers[0];
	BlockNumber number;
	uint64		hash = 0;
	bool		more = bfi_next_key(&build->keys, &hash, true);

	for (number = 0; number < layer->npages; number++)
	{
		Buffer		buffer;
		BfiPage		page;
		uint8	   *block;
		uint32		bits_set = 0;

		CHECK_FOR_INTERRUPTS();
		buffer = bfi_extend(index, MAIN_FORKNUM, layer->first + number,
							build->strategy);
		bfi_set_page(&page, layer, number, buffer);
		bfi_init_page(&page);
		while (more && (block = bfi_block_on_page(&page, hash)) != NULL)
		{
			bits_set += bf_block_add(&layer->geometry, block, hash);
			more = bfi_next_key(&build->keys, &hash, false);
		}
		if (bits_set > 0)
			bfi_record_bits_set(BufferGetPage(buffer), layer, bits_set);
		bfi_finish_new_page(index, MAIN_FORKNUM, buffer);
	}
}

/* Size the index for its keys, and write it. */
static void
write_index(Relation index, Build *build, double versions)
{
	BfiMeta    *meta = &build->meta;
	BfiSet	   *set = &meta->current;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	tuplesort_performsort(build->keys.sort);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_COUNT);
	meta->keys_built = bfi_count_keys(&build->keys);
	meta->keys_per_row = bfi_keys_per_row((double) meta->keys_built,
										  versions);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	if (meta->keys_built > 0)
	{
		bfi_first_geometry(meta, meta->keys_built,
						   meta->keys_built + meta->keys_built / 2,
						   &set->layers[0].geometry);
		bfi_set_layer(&set->layers[0], set, 0, BFI_META_BLOCK + 1);
		set->nlayers = 1;
	}
	write_meta(index, MAIN_FORKNUM, meta);
	if (set->nlayers > 0)
		write_layer_pages(index, build);
}

IndexBuildResult *
bfi_build(Relation heap, Relation index, IndexInfo *info)
{
	Build	   *build = palloc0(sizeof(Build));
	IndexBuildResult *result = palloc0(sizeof(*result));
	BfiScan		scan;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	bfi_get_options(index, &build->meta);
	bfi_check_expressions(index);
	bfi_begin_keys(&build->keys, index, build->meta.seed, maintenance_work_mem);
	build->meta.key_type = build->keys.key_info->key_type.code;
	build->strategy = GetAccessStrategy(BAS_BULKWRITE);

	/* PostgreSQL is the owner of the table already, and ends this. */
	RestrictSearchPath();

	/*
	 * After it has truncated the table, it gives no expressions, as nothing
	 * may be evaluated then: a commit may have begun, without a snapshot.
	 */
	if (info->ii_Concurrent || RelationGetNumberOfBlocks(heap) > 0)
		bfi_set_expressions(index, info);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	bfi_scan_versions(heap, index, info, &build->keys, &scan);
	build->meta.complete_from = scan.complete_from;
	result->heap_tuples = scan.rows;
	result->index_tuples = build->keys.nrows;
	write_index(index, build, scan.versions);
	bfi_end_keys(&build->keys);
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
