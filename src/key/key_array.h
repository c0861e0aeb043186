/*-------------------------------------------------------------------------
 *
 * key_array.h
 *	  Arrays of keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGBLOOM_KEY_ARRAY_H
#define PGBLOOM_KEY_ARRAY_H

#include "key/key.h"

#include "utils/array.h"

/* A deconstructed array, with what it takes to construct one like it. */
typedef struct PgBloomKeyArray
{
	ArrayType  *array;
	Oid			type;			/* of the elements */
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;			/* the elements that are not null */
	int			nkeys;			/* their number */
} PgBloomKeyArray;

/* The hash of a key, and its index in PgBloomKeyArray.values. */
typedef struct PgBloomHashedKey
{
	uint64		hash;
	int			index;
} PgBloomHashedKey;

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

extern void pgbloom_get_key_array(FunctionCallInfo fcinfo, int argno,
								  PgBloomKeyArray *keys);
extern PgBloomHashedKey *pgbloom_hash_key_array(FunctionCallInfo fcinfo,
												int argno,
												const PgBloomKeyArray *keys,
												const BfParams *params);
extern void pgbloom_sort_hashed_keys(PgBloomHashedKey *hashed, size_t n);
extern ArrayType *pgbloom_make_result_array(const PgBloomKeyArray *keys,
											const bool *results);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif							/* PGBLOOM_KEY_ARRAY_H */
