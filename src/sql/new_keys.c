/*-------------------------------------------------------------------------
 *
 * new_keys.c
 *	  The keys of an array that a filter does not contain.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "pg/key_array.h"

PG_FUNCTION_INFO_V1(bloom_new_keys);

/*
 * Are two keys with the same hash equal?  A type without an equality
 * operator, which is only bloom_key, is compared by its bytes.
 */
static bool
keys_equal(TypeCacheEntry *type, const PgBloomKeyArray *keys, int a, int b,
		   Oid collation)
{
	if (!OidIsValid(type->eq_opr_finfo.fn_oid))
		return datum_image_eq(keys->values[a], keys->values[b],
							  keys->typbyval, keys->typlen);
	return DatumGetBool(FunctionCall2Coll(&type->eq_opr_finfo, collation,
										  keys->values[a], keys->values[b]));
}

/*
 * Set is_new for the first occurrence of each key that the filter does not
 * contain.
 *
 * Sorting brings keys with the same hash together, in the order of the array.
 * The distinct ones among them, nearly always one, are moved to the beginning
 * of their run: hashed[start .. end - 1].
 */
static void
find_new_keys(PgBloomProbe *probe, const PgBloomKeyArray *keys,
			  PgBloomHashedKey *hashed, Oid collation, bool *is_new)
{
	TypeCacheEntry *type = lookup_type_cache(getBaseType(keys->type),
											 TYPECACHE_EQ_OPR_FINFO);
	bool		found = false;
	int			start = 0;
	int			end = 0;
	int			i;
	int			j;

	pgbloom_sort_hashed_keys(hashed, keys->nkeys);
	for (i = 0; i < keys->nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || hashed[i].hash != hashed[start].hash)
		{
			start = end = i;
			found = pgbloom_probe_contains(probe, hashed[i].hash);
		}
		if (found)
			continue;
		for (j = start; j < end; j++)
		{
			CHECK_FOR_INTERRUPTS();
			if (keys_equal(type, keys, hashed[j].index, hashed[i].index,
						   collation))
				break;
		}
		if (j == end)
		{
			is_new[hashed[i].index] = true;
			hashed[end++] = hashed[i];
		}
	}
}

/*
 * The keys that were certainly never added, each of them once, in the order
 * of their first occurrence.
 */
Datum
bloom_new_keys(PG_FUNCTION_ARGS)
{
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed;
	bool	   *is_new;
	int			nnew = 0;
	int			i;

	pgbloom_probe_open(fcinfo, 0, &probe);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	hashed = pgbloom_hash_key_array(fcinfo, 1, &keys, probe.params);
	pgbloom_probe_batch(&probe, keys.nkeys);
	is_new = palloc0(keys.nkeys);
	find_new_keys(&probe, &keys, hashed, PG_GET_COLLATION(), is_new);
	pgbloom_probe_close(&probe);

	for (i = 0; i < keys.nkeys; i++)
	{
		if (is_new[i])
			keys.values[nnew++] = keys.values[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(keys.values, nnew, keys.type,
										  keys.typlen, keys.typbyval,
										  keys.typalign));
}
