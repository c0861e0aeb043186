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

/* Rows of the table are looked up so many at a time. */
#define BATCH	65536

typedef struct Check
{
	BfiIndex   *index;
	PgBloomKeyInfo *key_info;
	MemoryContext key_context;	/* for one key */
	int			n;
	PgBloomHashedKey *hashed;
	ItemPointerData *rows;
	uint64	   *hashes;
	bool	   *found;
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

	if (BfiPageGetOpaque(raw)->bits_set !=
		bfi_bits_in_units(bfi_page_bits_set(page)))
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

/* Check the pages of a layer, and sum up their rates; false if it is gone. */
static bool
check_layer(Relation index, const BfiLayer *layer,
			BufferAccessStrategy strategy, double *rates)
{
	BlockNumber i;

	*rates = 0;
	for (i = 0; i < layer->npages; i++)
	{
		BfiPage		page;

		CHECK_FOR_INTERRUPTS();
		if (!bfi_read_page(index, layer, i, BUFFER_LOCK_SHARE, strategy,
						   &page))
			return false;
		*rates += check_page_bits(index, &page);
		UnlockReleaseBuffer(page.buffer);
	}
	return true;
}

/* Check the pages of all layers, and their rate; false if they are gone. */
static bool
check_layers(const BfiIndex *index, double *rate)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	double		negative = 1;
	int			i;

	if (RelationGetNumberOfBlocks(index->relation) < bfi_end(&index->meta))
		bfi_report_damage(index->relation,
						  RelationGetNumberOfBlocks(index->relation),
						  "Pages are missing at the end.");
	for (i = 0; i < index->meta.current.nlayers; i++)
	{
		const BfiLayer *layer = &index->meta.current.layers[i];
		double		rates;

		if (!check_layer(index->relation, layer, strategy, &rates))
			return false;
		negative *= 1 - rates / layer->geometry.nblocks;
	}
	FreeAccessStrategy(strategy);
	*rate = 1 - negative;
	return true;
}

/* Check all pages, and the rate that they have. */
static void
check_pages(BfiIndex *index)
{
	double		rate;

	while (!check_layers(index, &rate))
		bfi_read_meta(index->relation, &index->meta);
	if (rate > 2 * index->meta.fpp)
		ereport(WARNING,
				(errmsg("index \"%s\" reports absent keys at a rate of %.2g",
						RelationGetRelationName(index->relation), rate),
				 errdetail("It was made for a rate of %g.", index->meta.fpp),
				 errhint("Rebuild the index by REINDEX, with another \"seed\" if somebody may have chosen the keys.")));
}

/* Look up the rows that have been collected. */
static void
check_batch_of_rows(Check *check)
{
	BfiIndex   *index = check->index;
	int			i;

	pgbloom_sort_hashed_keys(check->hashed, check->n);
	for (i = 0; i < check->n; i++)
		check->hashes[i] = check->hashed[i].hash;

	/* Rows that were inserted since may be in a layer that is newer. */
	do
		bfi_read_meta(index->relation, &index->meta);
	while (!bfi_probe_set(index->relation, &index->meta.current, check->hashes,
						  check->n, check->found));
	for (i = 0; i < check->n; i++)
	{
		ItemPointer row = &check->rows[check->hashed[i].index];

		if (!check->found[i])
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" lacks a row of its table",
							RelationGetRelationName(index->relation)),
					 errdetail("The key of row (%u,%u) is not found.",
							   ItemPointerGetBlockNumber(row),
							   ItemPointerGetOffsetNumber(row)),
					 errhint("Rebuild the index by REINDEX.")));
	}
	check->n = 0;
}

static void
check_row_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				   bool tuple_is_alive, void *state)
{
	Check	   *check = state;
	MemoryContext old_context;

	(void) index;
	(void) tuple_is_alive;
	if (isnull[0])
		return;
	old_context = MemoryContextSwitchTo(check->key_context);
	check->hashed[check->n].hash = pgbloom_hash_value(check->key_info,
													  values[0],
													  check->index->meta.seed);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(check->key_context);
	check->hashed[check->n].index = check->n;
	check->rows[check->n] = *tid;
	if (++check->n == BATCH)
		check_batch_of_rows(check);
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
	check.n = 0;
	check.hashed = palloc(BATCH * sizeof(PgBloomHashedKey));
	check.rows = palloc(BATCH * sizeof(ItemPointerData));
	check.hashes = palloc(BATCH * sizeof(uint64));
	check.found = palloc(BATCH * sizeof(bool));

	/* As CREATE INDEX CONCURRENTLY does: the rows of a snapshot. */
	info->ii_Concurrent = true;
	(void) table_index_build_scan(table, index->relation, info, true, false,
								  check_row_callback, &check, NULL);
	if (check.n > 0)
		check_batch_of_rows(&check);
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
