/*-------------------------------------------------------------------------
 *
 * new_keys.c
 *	  The keys of an array that a filter does not contain.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "key/key_array.h"

PG_FUNCTION_INFO_V1(bloom_new_keys);

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
	PgBloomProbe probe;
	PgBloomKeyArray keys;
	PgBloomHashedKey *hashed;
	PgBloomKeyInfo *key_info;
	bool	   *is_new;
	int			nnew = 0;
	int			i;

	reject_vector(get_fn_expr_argtype(fcinfo->flinfo, 1));
	pgbloom_probe_open(fcinfo, 0, &probe);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	hashed = pgbloom_hash_key_array(fcinfo, 1, &keys, probe.params);
	pgbloom_probe_batch(&probe, keys.nkeys);
	key_info = pgbloom_element_info(fcinfo, 1);
	is_new = palloc0(keys.nkeys);

	/* Sorting brings equal hashes together, in the order of the array. */
	pgbloom_sort_hashed_keys(hashed, keys.nkeys);
	for (i = 0; i < keys.nkeys; i++)
	{
		int			index = hashed[i].index;

		CHECK_FOR_INTERRUPTS();
		if (i == 0 || hashed[i].hash != hashed[i - 1].hash)
			is_new[index] = !pgbloom_probe_contains_key(&probe, key_info,
														keys.values[index],
														hashed[i].hash);
	}
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
