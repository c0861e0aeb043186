/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Errors for what the core reports.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "utils/float.h"

/*
 * Raise the error for a status of the core, if it is one.  params are those of
 * the filter under construction.  other are those of the filter that was
 * combined with it, or NULL.
 */
void
pgbloom_check(BfStatus status, const BfParams *params, const BfParams *other)
{
	switch (status)
	{
		case BF_OK:
			return;
		case BF_NO_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("A Bloom filter under construction could not get the memory it needs.")));
			break;
		case BF_TOO_LARGE:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("Bloom filter would exceed the maximum size of %s",
							pgbloom_pretty_size(BF_MAX_BITS / 8.0)),
					 errdetail("It has a requested false-positive rate of %s and holds more keys than fit at this rate.",
							   float8out_internal(params->fpp)),
					 errhint("Distribute the keys over several filters by bloom_shard, or use a larger false-positive rate.")));
			break;
		case BF_TOO_MANY_LAYERS:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("Bloom filter would exceed the maximum of %d layers",
							BF_MAX_LAYERS),
					 errdetail("Filters are merged into one layer only while it keeps its rate."),
					 errhint("Build the filters with the same \"fpp\" and the same \"expected\", large enough for the union.")));
			break;
		case BF_INCOMPLETE:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("Bloom filter under construction is incomplete"),
					 errdetail("An error interrupted the union with another filter.")));
			break;
		case BF_SEED_MISMATCH:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot combine Bloom filters with different seeds"),
					 errdetail("One has seed %lld, the other %lld.",
							   (long long) params->seed,
							   (long long) other->seed),
					 errhint("Build both filters with the same seed.")));
			break;
		case BF_KEY_TYPE_MISMATCH:
			pgbloom_filter_mismatch(&params->key_type, &other->key_type);
			break;
		case BF_GEOMETRY_MISMATCH:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot intersect Bloom filters with different layer parameters"),
					 errdetail("Bits of filters that differ in size or false-positive rate, or have more than one layer, do not correspond."),
					 errhint("Build both filters with the same \"fpp\" and the same \"expected\", large enough for each of them.")));
			break;
		default:
			elog(ERROR, "unexpected status %d of a Bloom filter", status);
	}
}
