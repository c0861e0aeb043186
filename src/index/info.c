/*-------------------------------------------------------------------------
 *
 * info.c
 *	  What an index tells about itself, and a copy of it as a value.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include <math.h>

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bloom_index_info);
PG_FUNCTION_INFO_V1(bloom_index_filter);

/* The view of a filter with the parameters and layers of an index. */
static void
set_view(const BfiIndex *index, const PgBloomKeyInfo *info, BfView *view)
{
	int			i;

	memset(view, 0, offsetof(BfView, layers));
	view->params.fpp = index->meta.fpp;
	view->params.expected = Min(index->meta.expected, BF_MAX_BITS);
	view->params.seed = index->meta.seed;
	view->params.key_type = info->key_type;
	view->nlayers = index->meta.nlayers;
	for (i = 0; i < view->nlayers; i++)
		view->layers[i].geometry = index->meta.layers[i].geometry;
}

/* The columns of bloom_index_info, in the order of its SQL definition. */
enum
{
	INFO_KEY_TYPE, INFO_FPP, INFO_EXPECTED, INFO_SEED, INFO_LAYERS,
	INFO_PAGES, INFO_BYTES, INFO_BITS, INFO_HASHES, INFO_BLOCK_BITS,
	INFO_BITS_SET, INFO_FILL, INFO_CARDINALITY, INFO_KEYS_SINCE_BUILD,
	INFO_CURRENT_FPP, NINFO
};

Datum
bloom_index_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = pgbloom_row_type(fcinfo, NINFO);
	Datum		values[NINFO];
	bool		nulls[NINFO] = {false};
	BfiIndex	index;
	BfView		view;
	BlockNumber pages;
	double		keys;
	int			i;

	bfi_open_plain(&index, PG_GETARG_OID(0));
	set_view(&index, bfi_key_info(index.relation, CurrentMemoryContext),
			 &view);
	for (i = 0; i < view.nlayers; i++)
		view.layers[i].bits_set = bfi_bits_set(index.relation, &index.meta, i);
	keys = rint(bf_cardinality(&view));
	pages = RelationGetNumberOfBlocks(index.relation);

	values[INFO_KEY_TYPE] =
		CStringGetTextDatum(pgbloom_key_type_name(&view.params.key_type));
	values[INFO_FPP] = Float8GetDatum(index.meta.fpp);
	values[INFO_EXPECTED] = Int64GetDatum((int64) index.meta.expected);
	nulls[INFO_EXPECTED] = index.meta.expected == 0;
	values[INFO_SEED] = Int64GetDatum((int64) index.meta.seed);
	values[INFO_LAYERS] = Int32GetDatum(view.nlayers);
	values[INFO_PAGES] = Int64GetDatum((int64) pages);
	values[INFO_BYTES] = Int64GetDatum((int64) pages * BLCKSZ);
	pgbloom_set_bits_columns(&view, &values[INFO_BITS], &nulls[INFO_BITS]);
	values[INFO_CARDINALITY] = Int64GetDatum((int64) keys);
	values[INFO_KEYS_SINCE_BUILD] =
		Int64GetDatum((int64) fmax(keys - (double) index.meta.keys_built, 0));
	values[INFO_CURRENT_FPP] =
		Float8GetDatum(view.nlayers > 0 ? bf_current_fpp(&view) : 0);
	bfi_close(&index);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}

/* Copy the blocks of a layer; returns how many of their bits are set. */
static uint64
copy_blocks(const BfiIndex *index, int number, uint8 *to)
{
	const BfiLayer *layer = &index->meta.layers[number];
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	uint64		bits_set = 0;
	BlockNumber i;

	for (i = 0; i < layer->npages; i++)
	{
		size_t		size = bf_blocks_size(&layer->geometry,
										  bfi_page_nblocks(layer, i));
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		buffer = bfi_read_page(index->relation, &index->meta, number, i,
							   BUFFER_LOCK_SHARE, strategy);
		memcpy(to, BfiPageGetBlocks(BufferGetPage(buffer)), size);
		bits_set += bfi_page_bits_set(BufferGetPage(buffer), layer);
		UnlockReleaseBuffer(buffer);
		to += size;
	}
	FreeAccessStrategy(strategy);
	return bits_set;
}

/* The size of a value with these layers; an error if it is not possible. */
static size_t
filter_size(const BfiIndex *index, const BfView *view)
{
	uint64		bits = 0;
	int			i;

	for (i = 0; i < view->nlayers; i++)
		bits += bf_geometry_bits(&view->layers[i].geometry);
	if (bits > BF_MAX_BITS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" is too large for a value of type bloom",
						RelationGetRelationName(index->relation)),
				 errdetail("It takes %s, and the maximum size of a Bloom filter is %s.",
						   pgbloom_pretty_size((double) bits / 8),
						   pgbloom_pretty_size(BF_MAX_BITS / 8.0)),
				 errhint("Look up keys by bloom_index_contains.")));
	return bf_header_size(&view->params, view->nlayers) + (size_t) (bits / 8);
}

/* An index without a layer is an empty filter. */
static struct varlena *
empty_filter(const BfView *view)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	bf_builder_init(&builder, &env, &view->params);
	return pgbloom_result(&builder, false);
}

Datum
bloom_index_filter(PG_FUNCTION_ARGS)
{
	BfiIndex	index;
	PgBloomKeyInfo *info;
	BfView		view;
	size_t		size;
	struct varlena *result;
	uint8	   *image;
	uint8	   *to;
	int			i;

	bfi_flush();
	bfi_open_plain(&index, PG_GETARG_OID(0));
	info = bfi_key_info(index.relation, CurrentMemoryContext);
	bfi_check_key_type(index.relation, &index.meta, info);
	set_view(&index, info, &view);
	if (view.nlayers == 0)
	{
		bfi_close(&index);
		PG_RETURN_POINTER(empty_filter(&view));
	}

	size = filter_size(&index, &view);
	result = palloc(VARHDRSZ + size);
	SET_VARSIZE(result, VARHDRSZ + size);
	image = (uint8 *) VARDATA(result);
	to = image + bf_header_size(&view.params, view.nlayers);
	for (i = 0; i < view.nlayers; i++)
	{
		view.layers[i].bits_set = copy_blocks(&index, i, to);
		to += bf_geometry_size(&view.layers[i].geometry);
	}
	bf_write_view_header(image, &view);
	bfi_close(&index);
	PG_RETURN_POINTER(result);
}
