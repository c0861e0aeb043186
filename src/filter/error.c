/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Parameters of a filter, as users give them, and errors for what the
 *	  core reports.
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

/* Raise an error if a number of expected keys is not in this range. */
static void
check_expected(double expected, int min, const char *hint)
{
	/* Written so that NaN fails. */
	if (!(expected >= min && expected <= MAX_EXPECTED))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of expected keys %.16g is out of range",
						expected),
				 errdetail("The number must be between %d and %.16g.", min,
						   MAX_EXPECTED),
				 errhint("%s", hint)));
}

/* The same for the storage parameter of an index. */
void
pgbloom_check_index_expected(double expected)
{
	check_expected(expected, 1,
				   "Without this parameter, an index sizes itself.");
}

/*
 * A number of expected keys.  None at all, such as the rows of a table that is
 * still empty, counts as one, and a fraction of a key as a whole one.
 */
static uint64
round_expected(double expected)
{
	check_expected(expected, 0, "Use NULL for a filter that sizes itself.");
	return (uint64) fmax(ceil(expected), 1);
}

/* Is this number of expected keys the one that parameters have? */
bool
pgbloom_is_expected(const BfParams *params, double expected)
{
	return expected >= 0 &&
		fmax(ceil(expected), 1) == (double) params->expected;
}

/* Validate user-supplied parameters and fill in *params. */
void
pgbloom_init_params(BfParams *params, double fpp, bool sized, double expected,
					int64 seed)
{
	uint64		n = 0;
	BfGeometry	geometry;

	pgbloom_check_fpp(fpp, true);
	if (sized)
		n = round_expected(expected);
	if (sized && bf_geometry_for(fpp, false, n, &geometry) != BF_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("Bloom filter for %lld keys at a false-positive rate of %s would take %s",
						(long long) n, float8out_internal(fpp),
						pgbloom_pretty_size(bf_needed_bits(fpp, false, n) / 8)),
				 errdetail("The maximum size of a filter is %s, at this rate enough for %lld keys.",
						   pgbloom_pretty_size(BF_MAX_BITS / 8.0),
						   (long long) bf_max_keys(fpp)),
				 errhint("Distribute the keys over several filters by bloom_shard, or use a larger false-positive rate.")));

	memset(params, 0, sizeof(*params));
	params->fpp = fpp;
	params->expected = n;
	params->seed = (uint64_t) seed;
}

/*
 * The parameters in the arguments fpp, expected and seed, of which the first is
 * number argno.  There may be fewer of them.
 */
void
pgbloom_get_params(FunctionCallInfo fcinfo, int argno, BfParams *params)
{
	int			nargs = PG_NARGS() - argno;
	bool		no_fpp = nargs > 0 && PG_ARGISNULL(argno);
	bool		sized = nargs > 1 && !PG_ARGISNULL(argno + 1);

	if (no_fpp || (nargs > 2 && PG_ARGISNULL(argno + 2)))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						no_fpp ? "false-positive rate" : "seed")));
	pgbloom_init_params(params,
						nargs > 0 ? PG_GETARG_FLOAT8(argno) : BF_FPP_DEFAULT,
						sized, sized ? PG_GETARG_FLOAT8(argno + 1) : 0,
						nargs > 2 ? PG_GETARG_INT64(argno + 2) : 0);
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
					 errhint("Build the filter with an \"expected\" large enough for all its keys, and filters to be merged with the same \"fpp\" and the same \"expected\".")));
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
			pgbloom_key_type_mismatch(&params->key_type, &other->key_type, true);
			break;
		case BF_GEOMETRY_MISMATCH:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot intersect Bloom filters with different layer parameters"),
					 errdetail("Bits correspond if both filters have one layer with the same block size and number of hash functions and, for &, the number of blocks of one is a multiple of the other's."),
					 errhint("Build both filters with the same \"fpp\" and the same \"expected\", large enough for each of them, or look keys up in both: a @> key AND b @> key.")));
			break;
		case BF_IS_INTERSECTION:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot count the common keys of a Bloom filter that is an intersection"),
					 errdetail("It has keys of some of its operands as false positives, so the count would be too high."),
					 errhint("Pass the operands instead: bloom_intersection_cardinality(a, b, c) in place of bloom_intersection_cardinality(a & b, c).")));
			break;
		default:
			elog(ERROR, "unexpected status %d of a Bloom filter", status);
	}
}
