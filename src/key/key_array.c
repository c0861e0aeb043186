/*-------------------------------------------------------------------------
 *
 * key_array.c
 *	  Arrays of keys.
 *
 * Arrays may have any number of dimensions.  Null elements are skipped.
 *
 *-------------------------------------------------------------------------
 */
#include "key/key.h"

#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/*
 * The array in an argument.  The elements of one without a type are text, each
 * of them a key without a type.
 */
static ArrayType *
get_array(FunctionCallInfo fcinfo, int argno)
{
	char	   *string;
	ErrorContextCallback callback;
	ArrayType  *array;

	if (!pgbloom_element_info(fcinfo, argno)->array_text)
		return PG_GETARG_ARRAYTYPE_P(argno);
	string = TextDatumGetCString(PG_GETARG_DATUM(argno));

	/* A driver may not know that a list is an array. */
	callback.callback = pgbloom_add_hint;
	callback.arg = "Pass an array, with a cast if the driver does not send one, as in $1::text[].";
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	array = DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, string,
													TEXTOID, -1));
	error_context_stack = callback.previous;
	return array;
}

/* Deconstruct an array of keys. */
void
pgbloom_read_key_array(ArrayType *array, PgBloomKeyArray *keys)
{
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

/* The same for an argument. */
void
pgbloom_get_key_array(FunctionCallInfo fcinfo, int argno,
					  PgBloomKeyArray *keys)
{
	pgbloom_read_key_array(get_array(fcinfo, argno), keys);
}

/* Hash all keys of an array for a filter with these parameters. */
PgBloomHashedKey *
pgbloom_hash_key_array(PgBloomKeyInfo *key_info, const PgBloomKeyArray *keys,
					   const BfParams *params)
{
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
#define ST_SORT sort_shuffled_keys
#define ST_ELEMENT_TYPE PgBloomHashedKey
#define ST_COMPARE(a, b) compare_hashed_keys(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Sort by hash; keys with the same hash stay in the order of the array.  They
 * are shuffled before, because the caller may have chosen both their hashes and
 * their order, for which quicksort would take quadratic time.
 */
void
pgbloom_sort_hashed_keys(PgBloomHashedKey *hashed, size_t n)
{
	size_t		i;

	for (i = 1; i < n; i++)
	{
		size_t		other = pg_prng_uint64_range(&pg_global_prng_state, 0, i);
		PgBloomHashedKey swap = hashed[i];

		CHECK_FOR_INTERRUPTS();
		hashed[i] = hashed[other];
		hashed[other] = swap;
	}
	sort_shuffled_keys(hashed, n);
}

/*
 * Construct a boolean array with the dimensions and nulls of the array of
 * keys, and one of the results in place of each key.
 */
ArrayType *
pgbloom_make_result_array(const PgBloomKeyArray *keys, const bool *results)
{
	ArrayType  *array = keys->array;
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	Datum	   *values = MemoryContextAllocHuge(CurrentMemoryContext,
												n * sizeof(Datum));
	bool	   *nulls = palloc(n);
	int			next = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		nulls[i] = bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0;
		values[i] = BoolGetDatum(nulls[i] ? false : results[next++]);
	}
	return construct_md_array(values, nulls, ARR_NDIM(array), ARR_DIMS(array),
							  ARR_LBOUND(array), BOOLOID, sizeof(bool), true,
							  TYPALIGN_CHAR);
}
