/*-------------------------------------------------------------------------
 *
 * params.c
 *	  Parameters of a filter, as users give them.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "utils/float.h"

/* Largest number of expected keys: all integers up to it are exact. */
#define MAX_EXPECTED	9007199254740992.0	/* 2^53 */

/* Raise an error if a false-positive rate is out of range. */
void
pgbloom_check_fpp(double fpp, bool is_argument)
{
	/* Written so that NaN fails. */
	if (!(fpp >= BF_FPP_MIN && fpp <= BF_FPP_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("false-positive rate %s is out of range",
						float8out_internal(fpp)),
				 errdetail("The rate must be between %g and %g.",
						   BF_FPP_MIN, BF_FPP_MAX),
				 is_argument && fpp >= 1 ?
				 errhint("The false-positive rate comes before the number of expected keys, as in bloom_empty(0.01, 1000000) and bloom_agg(key, 0.01, 1000000).") :
				 errhint("A rate of 0.01 means that one in a hundred keys that were never added tests positive.")));
}

/* Raise an error if a number of expected keys is out of range. */
void
pgbloom_check_expected(double expected, bool is_argument)
{
	/* Written so that NaN fails. */
	if (!(expected >= 1 && expected <= MAX_EXPECTED))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of expected keys %.16g is out of range",
						expected),
				 errdetail("The number must be between 1 and %.16g.",
						   MAX_EXPECTED),
				 is_argument ?
				 errhint("Use NULL for a filter that sizes itself.") :
				 errhint("Without this parameter, an index sizes itself.")));
}

/*
 * Validate user-supplied parameters and fill in *params.  A fraction of an
 * expected key counts as a whole one.
 */
void
pgbloom_init_params(BfParams *params, double fpp, bool sized, double expected,
					int64 seed)
{
	uint64		n = 0;
	BfGeometry	geometry;

	pgbloom_check_fpp(fpp, true);
	if (sized)
		pgbloom_check_expected(expected, true);
	if (sized)
		n = (uint64) ceil(expected);
	if (sized && bf_geometry_for(fpp, n, &geometry) != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("Bloom filter for %lld keys at a false-positive rate of %s would take %s",
						(long long) n, float8out_internal(fpp),
						pgbloom_pretty_size(bf_needed_bits(fpp, n) / 8)),
				 errdetail("The maximum size of a filter is %s, at this rate enough for %lld keys.",
						   pgbloom_pretty_size(BF_MAX_BITS / 8.0),
						   (long long) bf_max_keys(fpp)),
				 errhint("Distribute the keys over several filters by bloom_shard, or use a larger false-positive rate.")));

	memset(params, 0, sizeof(*params));
	params->fpp = fpp;
	params->expected = n;
	params->seed = (uint64_t) seed;
}
