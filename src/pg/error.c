/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Errors for what the core reports.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

/* Size with a unit, for messages. */
char *
pgbloom_pretty_size(double bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	int			i = -1;

	do
	{
		bytes /= 1024;
		i++;
	} while (bytes >= 1024 && i < (int) lengthof(units) - 1);
	return psprintf(bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

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
					 errdetail("It has a requested false-positive rate of %g and holds more keys than fit at this rate.",
							   params->fpp),
					 errhint("Distribute the keys over several filters by bloom_shard, or use a larger false-positive rate.")));
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
		case BF_TOO_MANY_EXCLUSIONS:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("Bloom filter would exceed the maximum of %d excluded keys",
							BF_MAX_EXCLUSIONS),
					 errhint("Build the filter again with a smaller false-positive rate or another seed.")));
			break;
		case BF_IS_MEMBER:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot exclude a key that was added to the Bloom filter"),
					 errdetail("The filter is in its sparse form, which is exact.")));
			break;
		default:
			elog(ERROR, "unexpected status %d of a Bloom filter", status);
	}
}
