/*-------------------------------------------------------------------------
 *
 * hash_functions.c
 *	  The hash of a key, and the shard derived from it.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

PG_FUNCTION_INFO_V1(bloom_hash);
PG_FUNCTION_INFO_V1(bloom_shard);

/* Hash the first argument as a filter with this seed does. */
static uint64
hash_argument(FunctionCallInfo fcinfo, int64 seed)
{
	BfParams	params;

	/* Hashing reads no other parameter. */
	params.seed = (uint64) seed;
	params.key_type.code = BF_KEY_NONE;
	return pgbloom_key_hash(pgbloom_key_info(fcinfo, 0), PG_GETARG_DATUM(0),
							&params, NULL);
}

Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) hash_argument(fcinfo, PG_GETARG_INT64(1)));
}

Datum
bloom_shard(PG_FUNCTION_ARGS)
{
	int32		nshards = PG_GETARG_INT32(1);

	if (nshards < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of shards %d is out of range", nshards),
				 errdetail("The number must be at least 1.")));
	PG_RETURN_INT32((int32) bf_shard(hash_argument(fcinfo, 0), nshards));
}
