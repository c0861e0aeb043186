/*-------------------------------------------------------------------------
 *
 * array.c
 *	  One filter and an array of keys.
 *
 * Arrays may have any number of dimensions.  Null elements are skipped, except
 * by bloom_contains_each.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

PG_FUNCTION_INFO_V1(bloom_add_all);
PG_FUNCTION_INFO_V1(bloom_exclude_all);
PG_FUNCTION_INFO_V1(bloom_contains_any);
PG_FUNCTION_INFO_V1(bloom_contains_all);
PG_FUNCTION_INFO_V1(bloom_contains_each);
PG_FUNCTION_INFO_V1(bloom_new_keys);

/* An array taken apart, and what it takes to build one of the same type. */
typedef struct Keys
{
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	ArrayType  *array;
	Datum	   *values;			/* only those that are not null */
	int			n;
} Keys;

static void
get_keys(FunctionCallInfo fcinfo, int argno, Keys *keys)
{
	ArrayType  *array = pgbloom_key_array(fcinfo, argno);
	bool	   *nulls;
	int			n;
	int			i;

	keys->array = array;
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
add_in_place(Datum filter, PgBloomKeyInfo *type, const Keys *keys)
{
	Datum		writable = pgbloom_writable(filter);
	const BfParams *params = &pgbloom_expanded(writable)->params;
	uint64	   *hashes = palloc(keys->n * sizeof(uint64));
	BfKeyType		key_type;
	int			i;

	for (i = 0; i < keys->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashes[i] = pgbloom_key_hash(type, keys->values[i], params, &key_type);
	}
	writable = pgbloom_add_hashes(writable, &key_type, hashes, keys->n);
	pfree(hashes);
	return writable;
}

/*
 * Add all keys, which copies the filter once, not once a key.
 */
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	Datum		base;
	struct varlena *filter;
	PgBloomKeyInfo *type;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;
	BfView		view;
	Keys		keys;
	struct varlena *result;
	int			i;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	base = pgbloom_base_filter(fcinfo);
	type = pgbloom_element_info(fcinfo, 1);
	get_keys(fcinfo, 1, &keys);
	if (keys.n == 0)
		PG_RETURN_DATUM(base);
	if (pgbloom_in_place(fcinfo, base))
		return add_in_place(base, type, &keys);

	filter = PG_DETOAST_DATUM_PACKED(base);
	pgbloom_open(filter, &view);
	pgbloom_load(&builder, &env, &view);
	for (i = 0; i < keys.n; i++)
	{
		BfKeyType		key_type;
		uint64		hash = pgbloom_key_hash(type, keys.values[i],
											&builder.params, &key_type);

		CHECK_FOR_INTERRUPTS();
		bf_builder_set_key_type(&builder, &key_type);
		pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	}
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

/*
 * Record known false positives, which copies the filter once, not once a key.
 * If one of them cannot be recorded, none is.
 */
Datum
bloom_exclude_all(PG_FUNCTION_ARGS)
{
	struct varlena *filter;
	PgBloomKeyInfo *type;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;
	BfView		view;
	Keys		keys;
	uint64	   *hashes;
	int			npositive = 0;
	struct varlena *result;
	int			i;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	filter = PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
	type = pgbloom_element_info(fcinfo, 1);
	pgbloom_open(filter, &view);
	get_keys(fcinfo, 1, &keys);
	hashes = MemoryContextAllocHuge(CurrentMemoryContext,
									keys.n * sizeof(uint64));
	for (i = 0; i < keys.n; i++)
	{
		uint64		hash = pgbloom_key_hash(type, keys.values[i],
											&view.params, NULL);

		CHECK_FOR_INTERRUPTS();
		if (bf_contains(&view, hash))
			hashes[npositive++] = hash;
	}
	if (npositive == 0)
		PG_RETURN_POINTER(filter);

	pgbloom_load(&builder, &env, &view);
	for (i = 0; i < npositive; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pgbloom_check(bf_builder_exclude(&builder, hashes[i]),
					  &builder.params, NULL);
	}
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

/* A key on its way to a filter. */
typedef struct Probe
{
	uint64		hash;
	int			key;			/* its number in the array */
} Probe;

static int
compare_probes(const void *a, const void *b)
{
	const Probe *x = a;
	const Probe *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Sorting millions of keys takes seconds, so it can be cancelled. */
#define ST_SORT sort_probes
#define ST_ELEMENT_TYPE Probe
#define ST_COMPARE(a, b) compare_probes(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

static Probe *
make_probes(FunctionCallInfo fcinfo, const Keys *keys,
			   const PgBloomProbe *filter)
{
	PgBloomKeyInfo *type = pgbloom_element_info(fcinfo, 1);
	Probe   *probes = MemoryContextAllocHuge(CurrentMemoryContext,
												   keys->n * sizeof(Probe));
	int			i;

	for (i = 0; i < keys->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		probes[i].hash = pgbloom_key_hash(type, keys->values[i],
											 filter->params, NULL);
		probes[i].key = i;
	}
	return probes;
}

/* Whether there is a key of which bloom_contains says what is wanted. */
static bool
exists(FunctionCallInfo fcinfo, bool wanted)
{
	PgBloomProbe filter;
	Keys		keys;
	Probe   *probes;
	bool		found = false;
	int			i;

	pgbloom_probe_open(fcinfo, 0, &filter);
	get_keys(fcinfo, 1, &keys);
	probes = make_probes(fcinfo, &keys, &filter);
	if (pgbloom_probe_batch(&filter, keys.n))
		sort_probes(probes, keys.n);
	for (i = 0; i < keys.n && !found; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found = pgbloom_probe_contains(&filter,
										probes[i].hash) == wanted;
	}
	pgbloom_probe_close(&filter);
	return found;
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

/* An array like that of the keys, with an answer in place of each of them. */
static ArrayType *
make_answers(const Keys *keys, const bool *answers)
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
		values[i] = BoolGetDatum(nulls[i] ? false : answers[next++]);
	}
	return construct_md_array(values, nulls, ARR_NDIM(array), ARR_DIMS(array),
							  ARR_LBOUND(array), BOOLOID, sizeof(bool), true,
							  TYPALIGN_CHAR);
}

/*
 * What bloom_contains says of each key.
 */
Datum
bloom_contains_each(PG_FUNCTION_ARGS)
{
	PgBloomProbe filter;
	Keys		keys;
	Probe   *probes;
	bool	   *answers;
	bool		found = false;
	int			i;

	pgbloom_probe_open(fcinfo, 0, &filter);
	get_keys(fcinfo, 1, &keys);
	probes = make_probes(fcinfo, &keys, &filter);
	if (pgbloom_probe_batch(&filter, keys.n))
		sort_probes(probes, keys.n);
	answers = palloc(keys.n);
	for (i = 0; i < keys.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || probes[i].hash != probes[i - 1].hash)
			found = pgbloom_probe_contains(&filter, probes[i].hash);
		answers[probes[i].key] = found;
	}
	pgbloom_probe_close(&filter);
	PG_RETURN_ARRAYTYPE_P(make_answers(&keys, answers));
}

/*
 * Are two keys with the same hash equal?  Without an equality operator of
 * their type, which only bloom_key lacks, equal bytes make them so.
 */
static bool
equal_keys(TypeCacheEntry *type, const Keys *keys, int a, int b,
		   Oid collation)
{
	if (!OidIsValid(type->eq_opr_finfo.fn_oid))
		return datum_image_eq(keys->values[a], keys->values[b],
							  keys->typbyval, keys->typlen);
	return DatumGetBool(FunctionCall2Coll(&type->eq_opr_finfo, collation,
										  keys->values[a], keys->values[b]));
}

/*
 * The keys that were certainly never added, each of them once, in the order
 * of their first occurrence.
 */
Datum
bloom_new_keys(PG_FUNCTION_ARGS)
{
	PgBloomProbe filter;
	Keys		keys;
	Probe   *probes;
	TypeCacheEntry *type;
	bool	   *is_new;
	bool		found = false;
	int			first = 0;
	int			end = 0;
	int			nnew = 0;
	int			i;
	int			j;

	pgbloom_probe_open(fcinfo, 0, &filter);
	get_keys(fcinfo, 1, &keys);
	probes = make_probes(fcinfo, &keys, &filter);
	pgbloom_probe_batch(&filter, keys.n);

	type = lookup_type_cache(getBaseType(keys.type), TYPECACHE_EQ_OPR_FINFO);

	/*
	 * Sorting brings keys with the same hash together, in the order of the
	 * array.  The distinct ones among them, nearly always one, are collected
	 * from the first on.
	 */
	sort_probes(probes, keys.n);
	is_new = palloc0(keys.n);
	for (i = 0; i < keys.n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i == 0 || probes[i].hash != probes[first].hash)
		{
			first = end = i;
			found = pgbloom_probe_contains(&filter, probes[i].hash);
		}
		if (found)
			continue;
		for (j = first; j < end; j++)
		{
			CHECK_FOR_INTERRUPTS();
			if (equal_keys(type, &keys, probes[j].key, probes[i].key,
						   PG_GET_COLLATION()))
				break;
		}
		if (j == end)
		{
			is_new[probes[i].key] = true;
			probes[end++] = probes[i];
		}
	}
	pgbloom_probe_close(&filter);

	for (i = 0; i < keys.n; i++)
	{
		if (is_new[i])
			keys.values[nnew++] = keys.values[i];
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(keys.values, nnew, keys.type,
										  keys.typlen, keys.typbyval,
										  keys.typalign));
}
