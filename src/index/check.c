/*-------------------------------------------------------------------------
 *
 * check.c
 *	  The function that verifies an index: its structure, its rate, and that
 *	  every visible row of the table is found.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/guc.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(bloom_index_check);

typedef struct Check
{
	BfiIndex   *index;
	PgBloomKeyInfo *key_info;
	MemoryContext key_context;	/* for one key */
} Check;

/*
 * Report a page on which bits and their number disagree.  Returns the sum of
 * the rates of its blocks.
 */
static double
check_page_bits(Relation index, const BfiPage *page)
{
	const BfGeometry *geometry = &page->layer->geometry;
	Page		raw = BufferGetPage(page->buffer);
	BlockNumber number = BufferGetBlockNumber(page->buffer);
	size_t		block_size = bf_blocks_size(geometry, 1);
	const uint8 *end = page->blocks + page->nblocks * block_size;
	const uint8 *at;
	double		rates = 0;

	if (BfiPageGetOpaque(raw)->bits_set != bfi_count_bits_set(page))
		bfi_report_damage(index, number,
						  "The number of set bits of the page does not match its bits.");
	for (at = end; at < (uint8 *) PageGetSpecialPointer(raw); at++)
	{
		if (*at != 0)
			bfi_report_damage(index, number,
							  "There are bits behind the last block of the page.");
	}
	for (at = page->blocks; at < end; at += block_size)
		rates += pow(bf_blocks_bits_set(at, block_size) / (8.0 * block_size),
					 geometry->k);
	return rates;
}

/* Check the pages of a layer.  Returns its rate. */
static double
check_layer(Relation index, const BfiLayer *layer,
			BufferAccessStrategy strategy)
{
	double		rates = 0;
	BlockNumber i;

	for (i = 0; i < layer->npages; i++)
	{
		BfiPage		page;

		bfi_read_layer_page(index, layer, i, strategy, &page);
		rates += check_page_bits(index, &page);
		UnlockReleaseBuffer(page.buffer);
	}
	return rates / layer->geometry.nblocks;
}

/* Check the pages of all layers, and the rate that they have. */
static void
check_pages(const BfiIndex *index)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	double		negative = 1;
	double		rate;
	int			i;

	if (RelationGetNumberOfBlocks(index->relation) < bfi_end(&index->meta))
		bfi_report_damage(index->relation,
						  RelationGetNumberOfBlocks(index->relation),
						  "Pages are missing at the end.");
	for (i = 0; i < index->meta.current.nlayers; i++)
		negative *= 1 - check_layer(index->relation,
									&index->meta.current.layers[i], strategy);
	FreeAccessStrategy(strategy);
	rate = 1 - negative;
	if (rate > 2 * index->meta.fpp)
		ereport(WARNING,
				(errmsg("index \"%s\" reports absent keys at a rate of %.2g",
						RelationGetRelationName(index->relation), rate),
				 errdetail("It was made for a rate of %g.", index->meta.fpp),
				 errhint("Rebuild the index by REINDEX, with another \"seed\" if somebody may have chosen the keys.")));
}

/*
 * Look up a row of the table.  It may have been inserted since, and its key be
 * in a layer that is newer.
 */
static void
check_row(Relation index, ItemPointer row, Datum *values, bool *isnull,
		  bool tuple_is_alive, void *state)
{
	Check	   *check = state;
	BfiMeta    *meta = &check->index->meta;
	MemoryContext old_context = MemoryContextSwitchTo(check->key_context);
	bool		found = isnull[0];
	uint64		hash;

	(void) tuple_is_alive;
	if (!found)
	{
		hash = pgbloom_hash_value(check->key_info, values[0], meta->seed);
		bfi_begin_reading(check->index, true);
		bfi_probe(index, NULL, &meta->current, meta->current.nlayers, &hash, 1,
				  &found);
	}
	if (!found)
	{
		/* VACUUM may have rebuilt it meanwhile, for newer snapshots. */
		bfi_check_complete(check->index, RelationGetRelid(index));
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" lacks a row of its table",
						RelationGetRelationName(index)),
				 errdetail("The key of row (%u,%u) is not found.",
						   ItemPointerGetBlockNumber(row),
						   ItemPointerGetOffsetNumber(row)),
				 errhint("Rebuild the index by REINDEX.")));
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(check->key_context);
}

/* Look up all rows that a new snapshot sees. */
static void
check_rows(BfiIndex *index, Relation table)
{
	IndexInfo  *info = BuildIndexInfo(index->relation);
	Check		check;

	bfi_set_expressions(index->relation, info);
	check.index = index;
	check.key_info = bfi_key_info(index->relation, CurrentMemoryContext);
	bfi_check_key_type(index->relation, &index->meta, check.key_info);
	check.key_context = AllocSetContextCreate(CurrentMemoryContext,
											  "key of a Bloom filter index",
											  ALLOCSET_DEFAULT_SIZES);

	/* As CREATE INDEX CONCURRENTLY does: the rows of a snapshot. */
	info->ii_Concurrent = true;
	(void) table_index_build_scan(table, index->relation, info, true, false,
								  check_row, &check, NULL);
}

/*
 * Check an index that is not partitioned.  Its expressions are evaluated as the
 * owner of the table, as REINDEX does, so that they gain nothing from who calls
 * this function.
 */
static void
check_one_index(const BfiPartition *partition)
{
	BfiIndex	index;
	Relation	table;
	Oid			user;
	int			security;
	int			nest_level;

	bfi_open_partition(&index, partition);
	bfi_check_complete(&index, partition->index);
	table = table_open(partition->table, NoLock);
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(table->rd_rel->relowner,
						   security | SECURITY_RESTRICTED_OPERATION);
	nest_level = NewGUCNestLevel();
	RestrictSearchPath();

	check_pages(&index);
	check_rows(&index, table);

	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(user, security);
	table_close(table, NoLock);
	bfi_close(&index);
}

Datum
bloom_index_check(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "check of a Bloom filter index",
												  ALLOCSET_DEFAULT_SIZES);
	BfiPartition *partitions;
	int			n;
	int			i;

	bfi_flush();
	partitions = bfi_complete_partitions(PG_GETARG_OID(0), &n);
	for (i = 0; i < n; i++)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);

		check_one_index(&partitions[i]);
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(context);
	}
	PG_RETURN_VOID();
}
