/*-------------------------------------------------------------------------
 *
 * opclass.c
 *	  Equality and hash functions of the operator class bloom_ops.
 *
 * Filters are equal if their images are.  Equal parameters and keys give
 * equal images as long as no layer overflows.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "access/detoast.h"

PG_FUNCTION_INFO_V1(bloom_eq);
PG_FUNCTION_INFO_V1(bloom_ne);
PG_FUNCTION_INFO_V1(hash_bloom);
PG_FUNCTION_INFO_V1(hash_bloom_extended);

static bool
images_equal(FunctionCallInfo fcinfo)
{
	Bloom	   *a;
	Bloom	   *b;
	bool		result;

	/* The length is known without detoasting. */
	if (toast_raw_datum_size(PG_GETARG_DATUM(0)) !=
		toast_raw_datum_size(PG_GETARG_DATUM(1)))
		return false;

	a = PG_GETARG_BLOOM_PP(0);
	b = PG_GETARG_BLOOM_PP(1);
	result = memcmp(VARDATA_ANY(a), VARDATA_ANY(b),
					VARSIZE_ANY_EXHDR(a)) == 0;
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return result;
}

Datum
bloom_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(images_equal(fcinfo));
}

Datum
bloom_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!images_equal(fcinfo));
}

static uint64
hash_image(FunctionCallInfo fcinfo, uint64 seed)
{
	Bloom	   *filter = PG_GETARG_BLOOM_PP(0);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(filter),
									 VARSIZE_ANY_EXHDR(filter), seed);

	PG_FREE_IF_COPY(filter, 0);
	return hash;
}

/*
 * A hash operator class requires these 32 bits to be the low half of the
 * extended hash with seed 0.
 */
Datum
hash_bloom(PG_FUNCTION_ARGS)
{
	PG_RETURN_UINT32((uint32) hash_image(fcinfo, 0));
}

Datum
hash_bloom_extended(PG_FUNCTION_ARGS)
{
	PG_RETURN_UINT64(hash_image(fcinfo, (uint64) PG_GETARG_INT64(1)));
}
