/*-------------------------------------------------------------------------
 *
 * key_array.c
 *	  Arrays of keys.
 *
 * Arrays may have any number of dimensions.  Null elements are skipped.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/key_array.h"

#include "miscadmin.h"
#include "utils/lsyscache.h"

/* Deconstruct an argument that is an array of keys. */
void
pgbloom_get_key_array(FunctionCallInfo fcinfo, int argno,
					  PgBloomKeyArray *keys)
{
	ArrayType  *array = pgbloom_key_array(fcinfo, argno);
	bool	   *nulls;
	int			nelements;
	int			i;

	keys->array = array;
	keys->type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(keys->type, &keys->typlen, &keys->typbyval,
						 &keys->typalign);
	deconstruct_array(array, keys->type, keys->typlen, keys->typbyval,
					  keys->typalign, &keys->values, &nulls, &nelements);
	keys->nkeys = 0;
	for (i = 0; i < nelements; i++)
	{
		if (!nulls[i])
			keys->values[keys->nkeys++] = keys->values[i];
	}
	pfree(nulls);
}

/* Hash all keys of an argument for a filter with these parameters. */
PgBloomHashedKey *
pgbloom_hash_key_array(FunctionCallInfo fcinfo, int argno,
					   const PgBloomKeyArray *keys, const BfParams *params)
{
	PgBloomKeyInfo *key_info = pgbloom_element_info(fcinfo, argno);
	PgBloomHashedKey *hashed;
	int			i;

	hashed = MemoryContextAllocHuge(CurrentMemoryContext,
									keys->nkeys * sizeof(PgBloomHashedKey));
	for (i = 0; i < keys->nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashed[i].hash = pgbloom_key_hash(key_info, keys->values[i], params,
										  NULL);
		hashed[i].index = i;
	}
	return hashed;
}

static int
compare_hashed_keys(const PgBloomHashedKey *a, const PgBloomHashedKey *b)
{
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Sorting millions of keys takes seconds, so it checks for interrupts. */
#define ST_SORT sort_hashed_keys
#define ST_ELEMENT_TYPE PgBloomHashedKey
#define ST_COMPARE(a, b) compare_hashed_keys(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* Sort by hash; keys with the same hash stay in the order of the array. */
void
pgbloom_sort_hashed_keys(PgBloomHashedKey *hashed, int n)
{
	sort_hashed_keys(hashed, n);
}
