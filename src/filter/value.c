/*-------------------------------------------------------------------------
 *
 * value.c
 *	  Filters as values of PostgreSQL: open, validate, write, and the rows of
 *	  functions that describe them.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"

/*
 * The slice that is read first of a stored filter: header and directory, if it
 * has not more layers than growth makes.
 */
#define HEADER_SLICE	1536

/*
 * Raise an error unless a filter could be opened.  Returns false after a soft
 * error.
 */
static bool
check_opened(BfStatus status, const BfView *view, int sqlerrcode,
			 Node *escontext)
{
	if (status != BF_OK)
		ereturn(escontext, false,
				(errcode(sqlerrcode),
				 errmsg("invalid Bloom filter"),
				 errdetail_internal("%s", view->reason),
				 status == BF_UNKNOWN_VERSION ?
				 errhint("It may have been written by a newer version of the extension \"bloomfilter\".") :
				 sqlerrcode == ERRCODE_DATA_CORRUPTED ?
				 errhint("Restore the value from a backup, or build the filter again.") : 0));
	return true;
}

/*
 * Open a detoasted filter.  It was validated when it was read, so an invalid
 * one is damaged, or was written by a newer version of the extension.
 */
void
pgbloom_open(const struct varlena *filter, BfView *view)
{
	check_opened(bf_open((const uint8_t *) VARDATA_ANY(filter),
						 VARSIZE_ANY_EXHDR(filter), view), view,
				 ERRCODE_DATA_CORRUPTED, NULL);
}

/* Open the header and layer directory of a filter. */
static void
open_header(const uint8_t *header, size_t size, BfView *view)
{
	check_opened(bf_open_header(header, size, view), view,
				 ERRCODE_DATA_CORRUPTED, NULL);
}

/*
 * Open a filter for its header.  No more of a stored or compressed value is
 * read, and the view has no pointer to the rest.
 */
void
pgbloom_open_info(Datum filter, BfView *view)
{
	struct varlena *value = (struct varlena *) DatumGetPointer(filter);

	if (VARATT_IS_EXTERNAL_ONDISK(value) || VARATT_IS_COMPRESSED(value))
	{
		size_t		size = toast_raw_datum_size(filter) - VARHDRSZ;
		size_t		length = HEADER_SLICE;
		struct varlena *header = detoast_attr_slice(value, 0, length);
		size_t		needed;
		int			nlayers;

		needed = bf_peek_header((const uint8_t *) VARDATA_ANY(header),
								VARSIZE_ANY_EXHDR(header), &nlayers);
		if (needed > length)
		{
			pfree(header);
			length = needed;
			header = detoast_attr_slice(value, 0, length);
		}

		/* A damaged value may be shorter than its pointer says. */
		if (VARSIZE_ANY_EXHDR(header) < Min(size, length))
			size = VARSIZE_ANY_EXHDR(header);
		open_header((const uint8_t *) VARDATA_ANY(header), size, view);
		pfree(header);
	}
	else
		pgbloom_open(PG_DETOAST_DATUM_PACKED(filter), view);
}

/*
 * The number of distinct keys of a filter that is open for its header.  More
 * of it is read only if its layers are compared.
 */
int64
pgbloom_count_distinct(Datum filter, const BfView *header)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	double		n = bf_count_distinct(&env.interrupts, header->nhashes,
									  header->layers, header->nlayers);
	struct varlena *whole;
	BfView		view;

	if (n >= 0)
		return (int64) rint(n);
	whole = PG_DETOAST_DATUM_PACKED(filter);
	pgbloom_open(whole, &view);
	n = bf_count_distinct(&env.interrupts, view.nhashes, view.layers,
						  view.nlayers);
	if ((Pointer) whole != DatumGetPointer(filter))
		pfree(whole);
	return (int64) rint(n);
}

/* Validate bytes that come from outside.  Returns false after a soft error. */
bool
pgbloom_validate(const uint8_t *image, size_t size, int sqlerrcode,
				 Node *escontext)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfView		view;

	return check_opened(bf_validate(&env.interrupts, image, size, &view),
						&view, sqlerrcode, escontext);
}

/* Merge a filter into a builder. */
void
pgbloom_merge(BfBuilder *builder, const BfView *view)
{
	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/* Initialize a builder with the content of a filter. */
void
pgbloom_load(BfBuilder *builder, const BfView *view)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);

	bf_builder_init(builder, &env, &view->params);
	pgbloom_merge(builder, view);
}

/* Add hashes of keys of one key type to a copy, which an error abandons. */
void
pgbloom_add_to_copy(BfBuilder *builder, const BfKeyType *key_type,
					const uint64 *hashes, int n)
{
	int			i;

	pgbloom_check(bf_builder_set_key_type(builder, key_type),
				  &builder->params, NULL);
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pgbloom_check(bf_builder_add(builder, hashes[i]), &builder->params,
					  NULL);
	}
}

/*
 * Write a builder as a new value.  With compact, its list and its layers become
 * smaller where their rates allow it; the builder stays as it is.
 */
struct varlena *
pgbloom_result(BfBuilder *builder, bool compact)
{
	BfBuilder	smaller;
	bool		found = false;
	size_t		size;
	struct varlena *result;

	if (compact)
		pgbloom_check(bf_builder_compact(builder, &smaller, &found),
					  &builder->params, NULL);
	if (found)
		return pgbloom_finish(&smaller);

	pgbloom_check(bf_builder_plan(builder, &size), &builder->params, NULL);
	result = pgbloom_prefer_huge_pages(palloc(VARHDRSZ + size), size);
	SET_VARSIZE(result, VARHDRSZ + size);
	bf_builder_write(builder, (uint8_t *) VARDATA(result));
	return result;
}

/* Write a builder as a new value, and free the builder. */
struct varlena *
pgbloom_finish(BfBuilder *builder)
{
	struct varlena *result = pgbloom_result(builder, false);

	bf_builder_free(builder);
	return result;
}

/* An empty filter with these parameters, or with default ones. */
struct varlena *
pgbloom_empty(const BfParams *params)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfParams	defaults;
	BfBuilder	builder;

	if (params == NULL)
		pgbloom_init_params(&defaults, BF_FPP_DEFAULT, false, 0, 0);
	bf_builder_init(&builder, &env, params == NULL ? &defaults : params);
	return pgbloom_result(&builder, false);
}

/* Result of a function that adds NULL to its first argument. */
Datum
pgbloom_unchanged(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/*
 * The result of a function that returns a row of so many columns.  The library
 * may be newer than the SQL definition, or older.
 */
Datum
pgbloom_row(FunctionCallInfo fcinfo, int ncolumns, Datum *values, bool *nulls)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (descriptor->natts != ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library and SQL definition of extension \"bloomfilter\" do not match"),
				 errdetail("A result has %d columns in the library, but %d in SQL.",
						   ncolumns, descriptor->natts),
				 errhint("Run ALTER EXTENSION bloomfilter UPDATE.")));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
											 values, nulls));
}

/*
 * Fill in the columns that bloom_info() and bloom_index_info() have about
 * bits: bits, hashes, block_bits, bits_set and fill.  They are NULL while
 * there is no layer.
 */
void
pgbloom_set_bits_columns(const BfView *view, Datum *values, bool *nulls)
{
	const BfGeometry *last;
	uint64		bits = 0;
	uint64		bits_set = 0;
	int			i;

	if (view->nlayers == 0)
	{
		memset(nulls, true, 5 * sizeof(bool));
		return;
	}
	for (i = 0; i < view->nlayers; i++)
	{
		bits += bf_geometry_bits(&view->layers[i].geometry);
		bits_set += view->layers[i].bits_set;
	}
	last = &view->layers[view->nlayers - 1].geometry;
	values[0] = Int64GetDatum((int64) bits);
	values[1] = Int32GetDatum(last->k);
	values[2] = Int32GetDatum(1 << last->block_log2);
	values[3] = Int64GetDatum((int64) bits_set);
	values[4] = Float8GetDatum((double) bits_set / (double) bits);
}
