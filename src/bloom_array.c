/*-------------------------------------------------------------------------
 *
 * bloom_array.c
 *	  One filter and an array of keys.
 *
 * Arrays may have any number of dimensions; null elements are skipped.
 *
 *-------------------------------------------------------------------------
 */
#include "bloom.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bloom_add_all);
PG_FUNCTION_INFO_V1(bloom_contains_any);
PG_FUNCTION_INFO_V1(bloom_contains_all);
PG_FUNCTION_INFO_V1(bloom_new_keys);

/* An array taken apart, and what it takes to build one of the same type. */
typedef struct Keys
{
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;			/* only those that are not null */
	int			n;
} Keys;

static void
get_keys(FunctionCallInfo fcinfo, int argno, Keys *keys)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(argno);
	bool	   *nulls;
	int			n;
	int			i;

	keys->type = ARR_ELEMTYPE(array);
	get_typlenbyvalalign(keys->type, &keys->typlen, &keys->typbyval,
						 &keys->typalign);
	deconstruct_array(array, keys->type, keys->typlen, keys->typbyval,
					  keys->typalign, &keys->values, &nulls, &n);
	keys->n = 0;
	for (i = 0; i < n; i++)
	{
		if (!nulls[i])
			keys->values[keys->n++] = keys->values[i];
	}
	pfree(nulls);
}

/* Hash all keys first: an error here must not leave some of them added. */
static Datum
add_in_place(Datum filter, PgBloomKeyType *type, const Keys *keys)
{
	Datum		writable = pgbloom_writable(filter);
	const BfParams *params = &pgbloom_expanded(writable)->params;
	uint64	   *hashes = palloc(keys->n * sizeof(uint64));
	BfKind		kind;
	int			i;

	for (i = 0; i < keys->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashes[i] = pgbloom_key_hash(type, keys->values[i], params, &kind);
	}
	writable = pgbloom_add_hashes(writable, &kind, hashes, keys->n);
	pfree(hashes);
	return writable;
}

/*
 * Add all keys, which copies the filter once, not once a key.
 */
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	struct varlena *filter;
	PgBloomKeyType *type = pgbloom_element_type(fcinfo, 1);
	BfHost		host = pgbloom_host(CurrentMemoryContext);
	BfBuilder	builder;
	BfView		view;
	Keys		keys;
	struct varlena *result;
	int			i;

	get_keys(fcinfo, 1, &keys);
	if (keys.n == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (pgbloom_in_place(fcinfo))
		return add_in_place(PG_GETARG_DATUM(0), type, &keys);

	filter = PG_GETARG_VARLENA_PP(0);
	pgbloom_open(filter, &view);
	pgbloom_load(&builder, &host, &view);
	for (i = 0; i < keys.n; i++)
	{
		BfKind		kind;
		uint64		hash = pgbloom_key_hash(type, keys.values[i],
											&builder.params, &kind);

		CHECK_FOR_INTERRUPTS();
		bf_builder_set_kind(&builder, &kind);
		pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	}
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

/* Whether there is a key of which bloom_contains says what is wanted. */
static bool
exists(FunctionCallInfo fcinfo, bool wanted)
{
	PgBloomKeyType *type = pgbloom_element_type(fcinfo, 1);
	BfView		view;
	Keys		keys;
	int			i;

	pgbloom_open(PG_GETARG_VARLENA_PP(0), &view);
	get_keys(fcinfo, 1, &keys);
	for (i = 0; i < keys.n; i++)
	{
		BfKind		kind;
		uint64		hash = pgbloom_key_hash(type, keys.values[i],
											&view.params, &kind);

		CHECK_FOR_INTERRUPTS();
		if (bf_contains(&view, hash) == wanted)
			return true;
	}
	return false;
}

Datum
bloom_contains_any(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(exists(fcinfo, true));
}

Datum
bloom_contains_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!exists(fcinfo, false));
}

/*
 * The keys that were certainly never added, each of them once, in the order
 * of their first occurrence.
 */
Datum
bloom_new_keys(PG_FUNCTION_ARGS)
{
	PgBloomKeyType *type = pgbloom_element_type(fcinfo, 1);
	BfView		view;
	Keys		keys;
	HASHCTL		control;
	HTAB	   *seen;
	int			nnew = 0;
	int			i;

	pgbloom_open(PG_GETARG_VARLENA_PP(0), &view);
	get_keys(fcinfo, 1, &keys);
	memset(&control, 0, sizeof(control));
	control.keysize = control.entrysize = sizeof(uint64);
	control.hcxt = CurrentMemoryContext;
	seen = hash_create("new keys of bloomfilter", keys.n, &control,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (i = 0; i < keys.n; i++)
	{
		BfKind		kind;
		uint64		hash = pgbloom_key_hash(type, keys.values[i],
											&view.params, &kind);
		bool		repeated;

		CHECK_FOR_INTERRUPTS();
		if (bf_contains(&view, hash))
			continue;
		hash_search(seen, &hash, HASH_ENTER, &repeated);
		if (!repeated)
			keys.values[nnew++] = keys.values[i];
	}
	hash_destroy(seen);
	PG_RETURN_ARRAYTYPE_P(construct_array(keys.values, nnew, keys.type,
										  keys.typlen, keys.typbyval,
										  keys.typalign));
}
