/*-------------------------------------------------------------------------
 *
 * contains.c
 *	  Functions that look up keys.
 *
 * Null elements of arrays are skipped, except by bloom_contains_each.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "miscadmin.h"

#include "key/key_array.h"

PG_FUNCTION_INFO_V1(bloom_contains);
PG_FUNCTION_INFO_V1(bloom_contained_by);
PG_FUNCTION_INFO_V1(bloom_contains_hash);
PG_FUNCTION_INFO_V1(bloom_contains_any);
PG_FUNCTION_INFO_V1(bloom_contains_all);
PG_FUNCTION_INFO_V1(bloom_contains_each);

static bool
contains_key(FunctionCallInfo fcinfo, int filter_argno, int key_argno)
{
	PgBloomKeyInfo *key_info = pgbloom_key_info(fcinfo, key_argno);
	PgBloomProbe probe;
	uint64		hash;
	bool		found;

	pgbloom_probe_open(fcinfo, filter_argno, &probe);
	hash = pgbloom_key_hash(key_info, PG_GETARG_DATUM(key_argno),
							probe.params, NULL);
	found = pgbloom_probe_contains_key(&probe, key_info,
									   PG_GETARG_DATUM(key_argno), hash);
	pgbloom_probe_close(&probe);
	return found;
}

Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains_key(fcinfo, 0, 1));
}

/* bloom_contains with its arguments exchanged, for the operator <@ */
Datum
bloom_contained_by(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains_key(fcinfo, 1, 0));
}

Datum
bloom_contains_hash(PG_FUNCTION_ARGS)
{
	PgBloomProbe probe;
	bool		found;

	pgbloom_probe_open(fcinfo, 0, &probe);
	found = pgbloom_probe_contains(&probe, (uint64) PG_GETARG_INT64(1));
	pgbloom_probe_close(&probe);
	PG_RETURN_BOOL(found);
}

/*
 * Open the filter and hash the keys, in the order in which it is best to look
 * them up.
 */
static PgBloomHashedKey *
open_lookup(FunctionCallInfo fcinfo, PgBloomProbe *probe, PgBloomKeyArray *keys)
{
	PgBloomHashedKey *hashed;

	pgbloom_probe_open(fcinfo, 0, probe);
	pgbloom_get_key_array(fcinfo, 1, keys);
	hashed = pgbloom_hash_key_array(fcinfo, 1, keys, probe->params);
	if (pgbloom_probe_batch(probe, keys->nkeys))
		pgbloom_sort_hashed_keys(hashed, keys->nkeys);
	return hashed;
}

/* Is there a key for which bloom_contains returns this value? */
static bool
contains_some(FunctionCallInfo fcinfo, bool contained)
{
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed = open_lookup(fcinfo, &probe, &keys);
	PgBloomKeyInfo *key_info = pgbloom_element_info(fcinfo, 1);
	bool		found = false;
	int			i;

	for (i = 0; i < keys.nkeys && !found; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found = pgbloom_probe_contains_key(&probe, key_info,
										   keys.values[hashed[i].index],
										   hashed[i].hash) == contained;
	}
	pgbloom_probe_close(&probe);
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
 * bloom_contains for each element of an array.
 */
Datum
bloom_contains_each(PG_FUNCTION_ARGS)
{
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed = open_lookup(fcinfo, &probe, &keys);
	PgBloomKeyInfo *key_info = pgbloom_element_info(fcinfo, 1);
	bool	   *results = palloc(keys.nkeys);
	bool		found = false;
	int			i;

	for (i = 0; i < keys.nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || hashed[i].hash != hashed[i - 1].hash)
			found = pgbloom_probe_contains_key(&probe, key_info,
											   keys.values[hashed[i].index],
											   hashed[i].hash);
		results[hashed[i].index] = found;
	}
	pgbloom_probe_close(&probe);
	PG_RETURN_ARRAYTYPE_P(pgbloom_make_result_array(&keys, results));
}
