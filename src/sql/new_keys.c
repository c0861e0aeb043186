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

/* How to compare keys. */
typedef struct Comparison
{
	PgBloomKeyInfo *input;		/* what reads them from text, or NULL */
	TypeCacheEntry *type;
	Oid			collation;
} Comparison;

static void
init_comparison(Comparison *comparison, FunctionCallInfo fcinfo,
				const PgBloomKeyArray *keys)
{
	PgBloomKeyInfo *input = pgbloom_element_info(fcinfo, 1)->resolved;

	comparison->input = input != NULL && input->from_text ? input : NULL;
	comparison->type = lookup_type_cache(comparison->input != NULL ?
										 input->input_type :
										 getBaseType(keys->type),
										 TYPECACHE_EQ_OPR_FINFO);
	comparison->collation = PG_GET_COLLATION();
}

/*
 * Are two keys with the same hash equal?  A type without an equality
 * operator is compared by its bytes.
 */
static bool
keys_equal(Comparison *comparison, const PgBloomKeyArray *keys, int a, int b)
{
	FmgrInfo   *function = &comparison->type->eq_opr_finfo;
	Datum		x = keys->values[a];
	Datum		y = keys->values[b];

	if (comparison->input != NULL)
	{
		x = pgbloom_read_untyped(comparison->input, x);
		y = pgbloom_read_untyped(comparison->input, y);
	}
	if (!OidIsValid(function->fn_oid))
		return datum_image_eq(x, y, comparison->type->typbyval,
							  comparison->type->typlen);
	return DatumGetBool(FunctionCall2Coll(function, comparison->collation,
										  x, y));
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
			  PgBloomHashedKey *hashed, Comparison *comparison, bool *is_new)
{
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
			if (keys_equal(comparison, keys, hashed[j].index,
						   hashed[i].index))
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
	Comparison	comparison;
	bool	   *is_new;
	int			nnew = 0;
	int			i;

	pgbloom_probe_open(fcinfo, 0, &probe);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	hashed = pgbloom_hash_key_array(fcinfo, 1, &keys, probe.params);
	pgbloom_probe_batch(&probe, keys.nkeys);
	is_new = palloc0(keys.nkeys);
	init_comparison(&comparison, fcinfo, &keys);
	find_new_keys(&probe, &keys, hashed, &comparison, is_new);
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
