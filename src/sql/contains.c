/*-------------------------------------------------------------------------
 *
 * contains.c
 *	  Functions that look up keys, and those that return the hash of a key and
 *	  the shard derived from it.
 *
 * Null elements of arrays are skipped, except by bloom_contains_each.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bloom_contains);
PG_FUNCTION_INFO_V1(bloom_contained_by);
PG_FUNCTION_INFO_V1(bloom_contains_hash);
PG_FUNCTION_INFO_V1(bloom_contains_any);
PG_FUNCTION_INFO_V1(bloom_contains_all);
PG_FUNCTION_INFO_V1(bloom_contains_each);
PG_FUNCTION_INFO_V1(bloom_contains_count);
PG_FUNCTION_INFO_V1(bloom_new_keys);
PG_FUNCTION_INFO_V1(bloom_hash);
PG_FUNCTION_INFO_V1(bloom_shard);

static bool
filter_contains_key(FunctionCallInfo fcinfo, int filter_argno, int key_argno)
{
	PgBloomKeyInfo *key_info = pgbloom_key_info(fcinfo, key_argno);
	PgBloomProbe probe;
	uint64		hash;

	pgbloom_probe_open(fcinfo, filter_argno, &probe);
	hash = pgbloom_key_hash(key_info, PG_GETARG_DATUM(key_argno),
							probe.params, NULL);
	return pgbloom_probe_contains(&probe, hash);
}

Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(filter_contains_key(fcinfo, 0, 1));
}

/* bloom_contains with its arguments exchanged, for the operator <@ */
Datum
bloom_contained_by(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(filter_contains_key(fcinfo, 1, 0));
}

Datum
bloom_contains_hash(PG_FUNCTION_ARGS)
{
	PgBloomProbe probe;

	pgbloom_probe_open(fcinfo, 0, &probe);
	PG_RETURN_BOOL(pgbloom_probe_contains(&probe,
										  (uint64) PG_GETARG_INT64(1)));
}

/*
 * Open the filter and hash the keys, sorted or else in the order in which it is
 * best to look them up.  Keys of one hash stay in the order of the array.
 */
static PgBloomHashedKey *
open_lookup(FunctionCallInfo fcinfo, PgBloomProbe *probe, PgBloomKeyArray *keys,
			bool sorted)
{
	PgBloomHashedKey *hashed;

	pgbloom_probe_open(fcinfo, 0, probe);
	pgbloom_get_key_array(fcinfo, 1, keys);
	hashed = pgbloom_hash_key_array(pgbloom_element_info(fcinfo, 1), keys,
									probe->params);
	if (pgbloom_probe_batch(probe, keys->nkeys) || sorted)
		pgbloom_sort_hashed_keys(hashed, keys->nkeys);
	return hashed;
}

/* Is there a key for which bloom_contains returns this value? */
static bool
contains_some(FunctionCallInfo fcinfo, bool contained)
{
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed = open_lookup(fcinfo, &probe, &keys, false);
	bool		found = false;
	int			i;

	for (i = 0; i < keys.nkeys && !found; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found = pgbloom_probe_contains(&probe, hashed[i].hash) == contained;
	}
	return found;
}

Datum
bloom_contains_any(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains_some(fcinfo, true));
}

Datum
bloom_contains_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!contains_some(fcinfo, false));
}

/*
 * Does the filter contain each of the keys?  With once, a key that has the hash
 * of one before it in the array counts as contained.
 */
static bool *
contains_each(FunctionCallInfo fcinfo, PgBloomKeyArray *keys, bool once)
{
	PgBloomProbe probe;
	PgBloomHashedKey *hashed = open_lookup(fcinfo, &probe, keys, once);
	bool	   *results = palloc(keys->nkeys);
	bool		found = false;
	int			i;

	for (i = 0; i < keys->nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || hashed[i].hash != hashed[i - 1].hash)
			found = pgbloom_probe_contains(&probe, hashed[i].hash);
		else if (once)
			found = true;
		results[hashed[i].index] = found;
	}
	return results;
}

/* bloom_contains for each element of an array. */
Datum
bloom_contains_each(PG_FUNCTION_ARGS)
{
	PgBloomKeyArray keys;
	bool	   *contained = contains_each(fcinfo, &keys, false);

	PG_RETURN_ARRAYTYPE_P(pgbloom_make_result_array(&keys, contained));
}

/*
 * How many elements the filter contains, and how many of these were probably
 * added: of n elements of which c were, c + (n - c) fpp are found.
 */
Datum
bloom_contains_count(PG_FUNCTION_ARGS)
{
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed = open_lookup(fcinfo, &probe, &keys, false);
	double		fpp = pgbloom_probe_fpp(&probe);
	int64		found = 0;
	double		estimate;
	Datum		values[2];
	bool		nulls[2] = {false, false};
	int			i;

	for (i = 0; i < keys.nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found += pgbloom_probe_contains(&probe, hashed[i].hash);
	}
	estimate = fpp < 1 ? (found - keys.nkeys * fpp) / (1 - fpp) : 0;
	values[0] = Int64GetDatum(found);
	values[1] = Float8GetDatum(fmin(fmax(estimate, 0), found));
	return pgbloom_row(fcinfo, 2, values, nulls);
}

/*
 * The result has the type of the argument.  Functions of these types read
 * fields that an empty array does not have.
 */
static void
reject_vector(Oid type)
{
	if (OidIsValid(type))
		type = getBaseType(type);
	if (type == INT2VECTOROID || type == OIDVECTOROID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the new keys cannot be a value of type %s",
						format_type_be(type)),
				 errhint("Cast the keys to %s[].",
						 type == OIDVECTOROID ? "oid" : "smallint")));
}

/*
 * The keys that were certainly never added, each of them once, in the order
 * of their first occurrence.  Keys with one hash count as one key, as they do
 * in a filter.
 */
Datum
bloom_new_keys(PG_FUNCTION_ARGS)
{
	PgBloomKeyArray keys;
	bool	   *contained;
	int			nnew = 0;
	int			i;

	reject_vector(get_fn_expr_argtype(fcinfo->flinfo, 1));
	contained = contains_each(fcinfo, &keys, true);
	for (i = 0; i < keys.nkeys; i++)
	{
		if (!contained[i])
			keys.values[nnew++] = keys.values[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(keys.values, nnew, keys.type,
										  keys.typlen, keys.typbyval,
										  keys.typalign));
}

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
