/*-------------------------------------------------------------------------
 *
 * value.c
 *	  Filters as values of PostgreSQL: open, validate, write.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

/* Raise an error unless a filter could be opened. */
static void
check_opened(BfStatus status, const BfView *view)
{
	if (status != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid Bloom filter"),
				 errdetail_internal("%s", view->reason),
				 status == BF_UNKNOWN_VERSION ?
				 errhint("It may have been written by a newer version of the extension \"bloomfilter\".") :
				 errhint("Restore the value from a backup, or build the filter again.")));
}

/*
 * Open a detoasted filter.  It was validated when it was read, so an invalid
 * one is damaged, or was written by a newer version of the extension.
 */
void
pgbloom_open(const struct varlena *filter, BfView *view)
{
	check_opened(bf_open((const uint8_t *) VARDATA_ANY(filter),
						 VARSIZE_ANY_EXHDR(filter), view), view);
}

/* Open the header and layer directory of a filter. */
void
pgbloom_open_header(const uint8_t *header, size_t size, BfView *view)
{
	check_opened(bf_open_header(header, size, view), view);
}

/* Validate bytes that come from outside.  Returns false after a soft error. */
bool
pgbloom_validate(const uint8_t *image, size_t size, int sqlerrcode,
				 Node *escontext)
{
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfView		view;
	BfStatus	status = bf_validate(&env.interrupts, image, size, &view);

	if (status != BF_OK)
		ereturn(escontext, false,
				(errcode(sqlerrcode),
				 errmsg("invalid Bloom filter"),
				 errdetail_internal("%s", view.reason),
				 status == BF_UNKNOWN_VERSION ?
				 errhint("It may have been written by a newer version of the extension \"bloomfilter\".") : 0));
	return true;
}

/* Initialize a builder, in a memory context, with the content of a filter. */
void
pgbloom_load(BfBuilder *builder, MemoryContext context, const BfView *view)
{
	BfEnv		env = pgbloom_env(context);

	bf_builder_init(builder, &env, &view->params);
	pgbloom_check(bf_builder_merge(builder, view), &builder->params,
				  &view->params);
}

/*
 * Write a builder as a new value.  With compact, the value is the smallest one
 * that keeps the rate; the builder stays as it is.
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

/*
 * The filter that a function adds to: its first argument, or an empty filter
 * if that is NULL.  The argument itself must not be replaced, because the
 * executor stores constant arguments only once for all calls.
 */
Datum
pgbloom_base_filter(FunctionCallInfo fcinfo)
{
	return PG_ARGISNULL(0) ? PointerGetDatum(pgbloom_empty(NULL)) :
		PG_GETARG_DATUM(0);
}

/* Result of a function that adds NULL to its first argument. */
Datum
pgbloom_unchanged(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
