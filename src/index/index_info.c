/*-------------------------------------------------------------------------
 *
 * index_info.c
 *	  What an index tells about itself, and a copy of it as a value.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "filter/filter.h"

#include <math.h>

#include "access/table.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(bloom_index_info);
PG_FUNCTION_INFO_V1(bloom_index_filter);

/* The columns of bloom_index_info, in the order of its SQL definition. */
enum
{
	INFO_KEY_TYPE, INFO_FPP, INFO_EXPECTED, INFO_SEED, INFO_LAYERS,
	INFO_PAGES, INFO_BYTES, INFO_BITS, INFO_HASHES, INFO_BLOCK_BITS,
	INFO_BITS_SET, INFO_FILL, INFO_CARDINALITY, INFO_KEYS_SINCE_BUILD,
	INFO_CURRENT_FPP, INFO_DELETED, INFO_LAST_REBUILD, NINFO
};

/* What an index tells, or the sums of what the partitions of one tell. */
typedef struct Totals
{
	int			nparts;
	PgBloomKeyInfo *key_info;
	bool		sized;			/* all have "expected" */
	uint64		expected;
	uint64		seed;			/* of the last one */
	BfGeometry	last;			/* layer of the last one */
	int			layers;
	uint64		pages;
	uint64		bits;
	uint64		bits_set;
	double		keys;
	double		keys_since_build;
	double		live;			/* keys that the tables have; NaN if not known */
	TimestampTz rebuilt;		/* when VACUUM has last done so, or 0 */
	double		fpp;
	double		current_fpp;
} Totals;

/* The rate of two filters of which both are probed. */
static double
add_rates(double a, double b)
{
	return a + b - a * b;
}

/* Estimate the keys of an index that its table has; NaN if nothing tells. */
static double
count_live_keys(const BfiIndex *index, double keys)
{
	Relation	table = table_open(index->relation->rd_index->indrelid,
								   AccessShareLock);
	BlockNumber pages;
	double		rows;
	double		all_visible;

	estimate_rel_size(table, NULL, &pages, &rows, &all_visible);
	if (table->rd_rel->reltuples < 0)
		rows = get_float8_nan();
	table_close(table, AccessShareLock);
	return isnan(rows) ? rows : bfi_live_keys(&index->meta, rows, keys);
}

static void
add_index_info(Totals *totals, const BfiPartition *partition)
{
	BfiIndex	index;
	BfView		view;
	double		keys;
	int			i;

	bfi_open_partition(&index, partition);
	bfi_check_complete(&index, partition->index);
	totals->nparts++;
	totals->key_info = bfi_key_info(index.relation, CurrentMemoryContext);
	bfi_measure(index.relation, &index.meta, &view);
	for (i = 0; i < view.nlayers; i++)
	{
		BfLayer    *layer = &view.layers[i];

		totals->bits += bf_geometry_bits(&layer->geometry);
		totals->bits_set += layer->bits_set;
		totals->last = layer->geometry;
	}
	keys = rint(bf_cardinality(&view));
	totals->sized &= index.meta.expected > 0;
	totals->expected += index.meta.expected;
	totals->seed = index.meta.seed;
	totals->layers += view.nlayers;
	totals->pages += RelationGetNumberOfBlocks(index.relation);
	totals->keys += keys;
	totals->keys_since_build += fmax(keys - (double) index.meta.keys_built, 0);
	totals->live += count_live_keys(&index, keys);
	totals->rebuilt = Max(totals->rebuilt, index.meta.rebuilt);
	totals->fpp = add_rates(totals->fpp, index.meta.fpp);
	if (view.nlayers > 0)
		totals->current_fpp = add_rates(totals->current_fpp,
										bf_current_fpp(&view));
	bfi_close(&index);
}

static Datum
make_info(FunctionCallInfo fcinfo, const Totals *totals)
{
	Datum		values[NINFO] = {0};
	bool		nulls[NINFO] = {false};

	nulls[INFO_KEY_TYPE] = totals->nparts == 0;
	if (totals->nparts > 0)
		values[INFO_KEY_TYPE] =
			CStringGetTextDatum(pgbloom_key_type_name(&totals->key_info->key_type));
	values[INFO_FPP] = Float8GetDatum(totals->fpp);
	values[INFO_EXPECTED] = Int64GetDatum((int64) totals->expected);
	nulls[INFO_EXPECTED] = !totals->sized;
	values[INFO_SEED] = Int64GetDatum((int64) totals->seed);
	nulls[INFO_SEED] = totals->nparts != 1;
	values[INFO_LAYERS] = Int32GetDatum(totals->layers);
	values[INFO_PAGES] = Int64GetDatum((int64) totals->pages);
	values[INFO_BYTES] = Int64GetDatum((int64) (totals->pages * BLCKSZ));
	values[INFO_BITS] = Int64GetDatum((int64) totals->bits);
	values[INFO_HASHES] = Int32GetDatum(totals->last.k);
	values[INFO_BLOCK_BITS] = Int32GetDatum(1 << totals->last.block_log2);
	nulls[INFO_HASHES] = nulls[INFO_BLOCK_BITS] = totals->nparts != 1;
	values[INFO_BITS_SET] = Int64GetDatum((int64) totals->bits_set);
	values[INFO_FILL] = Float8GetDatum((double) totals->bits_set /
									   (double) totals->bits);
	if (totals->layers == 0)
		memset(&nulls[INFO_BITS], true, INFO_FILL - INFO_BITS + 1);
	values[INFO_CARDINALITY] = Int64GetDatum((int64) totals->keys);
	values[INFO_KEYS_SINCE_BUILD] =
		Int64GetDatum((int64) totals->keys_since_build);
	values[INFO_CURRENT_FPP] = Float8GetDatum(totals->current_fpp);
	values[INFO_DELETED] =
		Float8GetDatum(totals->keys > 0 ? 1 - totals->live / totals->keys : 0);
	nulls[INFO_DELETED] = isnan(totals->live);
	values[INFO_LAST_REBUILD] = TimestampTzGetDatum(totals->rebuilt);
	nulls[INFO_LAST_REBUILD] = totals->rebuilt == 0;
	return pgbloom_row(fcinfo, NINFO, values, nulls);
}

/* A lookup in a partitioned index probes all partitions: their rates add up. */
Datum
bloom_index_info(PG_FUNCTION_ARGS)
{
	Totals		totals = {.sized = true};
	int			n;
	BfiPartition *partitions = bfi_complete_partitions(PG_GETARG_OID(0), &n);
	int			i;

	for (i = 0; i < n; i++)
		add_index_info(&totals, &partitions[i]);
	return make_info(fcinfo, &totals);
}

/* Copy the blocks of a layer.  Returns how many of their bits are set. */
static uint64
copy_layer_blocks(Relation index, const BfiLayer *layer, uint8 *to)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	uint64		bits_set = 0;
	BlockNumber i;

	for (i = 0; i < layer->npages; i++)
	{
		BfiPage		page;
		size_t		size;

		bfi_read_layer_page(index, layer, i, strategy, &page);
		size = bf_blocks_size(&layer->geometry, page.nblocks);
		memcpy(to, page.blocks, size);
		to += size;
		bits_set += bfi_count_bits_set(&page);
		UnlockReleaseBuffer(page.buffer);
	}
	FreeAccessStrategy(strategy);
	return bits_set;
}

/* The size of a value with the layers of an index; an error if it is too large. */
static size_t
filter_size(Relation index, const BfParams *params, const BfiSet *set)
{
	uint64		bits = 0;
	int			i;

	for (i = 0; i < set->nlayers; i++)
		bits += bf_geometry_bits(&set->layers[i].geometry);
	if (bits > BF_MAX_BITS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" is too large for a value of type bloom",
						RelationGetRelationName(index)),
				 errdetail("It takes %s, and the maximum size of a Bloom filter is %s.",
						   pgbloom_pretty_size((double) bits / 8),
						   pgbloom_pretty_size(BF_MAX_BITS / 8.0)),
				 errhint("Look up keys by bloom_index_contains.")));
	return bf_header_size(params, set->nlayers) + (size_t) (bits / 8);
}

/* A value with the layers of an index. */
static struct varlena *
copy_index(const BfiIndex *index, const PgBloomKeyInfo *info)
{
	const BfiSet *set = &index->meta.current;
	BfParams	params = bfi_params(&index->meta, info);
	BfLayer		layers[BFI_MAX_LAYERS] = {0};
	size_t		size = filter_size(index->relation, &params, set);
	struct varlena *result = palloc(VARHDRSZ + size);
	uint8	   *image = (uint8 *) VARDATA(result);
	uint8	   *to = image + bf_header_size(&params, set->nlayers);
	int			i;

	SET_VARSIZE(result, VARHDRSZ + size);
	for (i = 0; i < set->nlayers; i++)
	{
		layers[i].geometry = set->layers[i].geometry;
		layers[i].bits_set = copy_layer_blocks(index->relation,
											   &set->layers[i], to);
		to += bf_geometry_size(&layers[i].geometry);
	}
	bf_write_header(image, &params, 0, 0, layers, set->nlayers);
	return result;
}

Datum
bloom_index_filter(PG_FUNCTION_ARGS)
{
	BfiIndex	index;
	PgBloomKeyInfo *info;
	struct varlena *result;

	bfi_flush();
	bfi_open(&index, PG_GETARG_OID(0));
	bfi_check_complete(&index, PG_GETARG_OID(0));
	if (index.partitioned)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" is partitioned",
						RelationGetRelationName(index.relation)),
				 errhint("Call the function for the index of each partition: see pg_partition_tree.")));
	bfi_check_has_all_rows(index.relation);
	info = bfi_key_info(index.relation, CurrentMemoryContext);
	bfi_check_key_type(index.relation, &index.meta, info);
	result = copy_index(&index, info);
	bfi_close(&index);
	PG_RETURN_POINTER(result);
}
