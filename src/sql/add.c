/*-------------------------------------------------------------------------
 *
 * add.c
 *	  Empty filters, and functions that add keys.
 *
 * A NULL key leaves the filter as it is, and a NULL filter counts as an empty
 * one.  A filter in a PL/pgSQL variable is changed in place (filter/expanded.c);
 * any other is copied, once a call.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bloom_empty);
PG_FUNCTION_INFO_V1(bloom_empty_like);
PG_FUNCTION_INFO_V1(bloom_add);
PG_FUNCTION_INFO_V1(bloom_try_add);
PG_FUNCTION_INFO_V1(bloom_add_hash);
PG_FUNCTION_INFO_V1(bloom_add_all);

/* bloom_empty(fpp, expected, seed, key_type) */
Datum
bloom_empty(PG_FUNCTION_ARGS)
{
	BfParams	params;

	pgbloom_get_params(fcinfo, 0, &params);
	if (!PG_ARGISNULL(3))
		pgbloom_key_type_of(PG_GETARG_OID(3), &params.key_type);
	PG_RETURN_BLOOM_P(pgbloom_empty(&params));
}

/* An empty filter with the parameters of another one. */
Datum
bloom_empty_like(PG_FUNCTION_ARGS)
{
	BfView		view;

	pgbloom_open_info(PG_GETARG_DATUM(0), &view);
	PG_RETURN_BLOOM_P(pgbloom_empty(&view.params));
}

/* The filter that a function adds to. */
typedef struct AddTarget
{
	Datum		writable;		/* an expanded filter to be changed; or 0 */
	Bloom	   *image;			/* of any other filter */
	BfView		view;			/* of the image */
	const BfParams *params;
} AddTarget;

/*
 * The first argument, or an empty filter if that is NULL.  The argument itself
 * must not be replaced, because the executor stores constant arguments only
 * once for all calls.
 */
static Datum
get_base_filter(FunctionCallInfo fcinfo)
{
	return PG_ARGISNULL(0) ? PointerGetDatum(pgbloom_empty(NULL)) :
		PG_GETARG_DATUM(0);
}

static void
open_target_image(FunctionCallInfo fcinfo, AddTarget *target)
{
	target->writable = (Datum) 0;
	target->image = (Bloom *) PG_DETOAST_DATUM_PACKED(get_base_filter(fcinfo));
	pgbloom_open(target->image, &target->view);
	target->params = &target->view.params;
}

static void
open_target(FunctionCallInfo fcinfo, AddTarget *target)
{
	target->writable = pgbloom_writable(fcinfo);
	if (target->writable == (Datum) 0)
		open_target_image(fcinfo, target);
	else
		target->params = &pgbloom_expanded(target->writable)->params;
}

/* Would adding a hash leave a filter as it is? */
static bool
view_has(const BfView *view, uint64 hash)
{
	return view->nlayers > 1 ?
		bf_layers_have(&view->params, view->layers, view->nlayers, hash) :
		bf_contains(view, hash);
}

/*
 * Add hashes of keys of one key type.  Returns the filter itself if it has all
 * of them already.
 */
static Datum
add_to_target(AddTarget *target, const BfKeyType *key_type,
			  const uint64 *hashes, int n)
{
	BfBuilder	builder;
	int			first = 0;

	if (target->writable != (Datum) 0)
		return pgbloom_add_hashes(target->writable, key_type, hashes, n);
	if (bf_key_type_equal(&target->params->key_type, key_type))
	{
		while (first < n && view_has(&target->view, hashes[first]))
		{
			CHECK_FOR_INTERRUPTS();
			first++;
		}
		if (first == n)
			return PointerGetDatum(target->image);
	}

	pgbloom_load(&builder, &target->view);
	pgbloom_add_to_copy(&builder, key_type, hashes + first, n - first);
	return PointerGetDatum(pgbloom_finish(&builder));
}

/* Hash the second argument, a key to be added. */
static uint64
hash_new_key(FunctionCallInfo fcinfo, const AddTarget *target,
			 const BfKeyType **key_type)
{
	PgBloomKeyInfo *key_info = pgbloom_key_info(fcinfo, 1);
	uint64		hash = pgbloom_key_hash(key_info, PG_GETARG_DATUM(1),
										target->params, key_type);

	if (key_info->untyped)
		pgbloom_reject_array_text(key_info, PG_GETARG_DATUM(1));
	return hash;
}

Datum
bloom_add(PG_FUNCTION_ARGS)
{
	AddTarget	target;
	const BfKeyType *key_type;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	open_target(fcinfo, &target);
	hash = hash_new_key(fcinfo, &target, &key_type);
	return add_to_target(&target, key_type, &hash, 1);
}

/*
 * bloom_add that also returns whether the key was new, which is NULL for a
 * NULL key.
 */
Datum
bloom_try_add(PG_FUNCTION_ARGS)
{
	AddTarget	target;
	const BfKeyType *key_type;
	uint64		hash;
	Datum		values[2] = {(Datum) 0, (Datum) 0};
	bool		nulls[2] = {false, false};

	if (PG_ARGISNULL(1))
	{
		nulls[0] = PG_ARGISNULL(0);
		nulls[1] = true;
		if (!nulls[0])
			values[0] = PointerGetDatum(PG_GETARG_BLOOM_PP(0));
	}
	else
	{
		open_target_image(fcinfo, &target);
		hash = hash_new_key(fcinfo, &target, &key_type);
		values[0] = add_to_target(&target, key_type, &hash, 1);
		values[1] = BoolGetDatum(!bf_contains(&target.view, hash));
	}
	return pgbloom_row(fcinfo, 2, values, nulls);
}

/*
 * A hash does not tell the type of its key, so the key type of the filter is
 * not changed.
 */
Datum
bloom_add_hash(PG_FUNCTION_ARGS)
{
	AddTarget	target;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	hash = (uint64) PG_GETARG_INT64(1);
	open_target(fcinfo, &target);
	return add_to_target(&target, &target.params->key_type, &hash, 1);
}

/*
 * Add all keys of an array with one copy of the filter.  All keys are hashed
 * before the first is added, so that an error does not leave some of them in a
 * filter that is changed in place.
 */
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	AddTarget	target;
	PgBloomKeyInfo *key_info;
	PgBloomKeyArray keys;
	const BfKeyType *key_type;
	uint64	   *hashes;
	int			i;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	key_info = pgbloom_element_info(fcinfo, 1);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	if (keys.nkeys == 0)
		return get_base_filter(fcinfo);
	open_target(fcinfo, &target);
	hashes = MemoryContextAllocHuge(CurrentMemoryContext,
									keys.nkeys * sizeof(uint64));
	for (i = 0; i < keys.nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashes[i] = pgbloom_key_hash(key_info, keys.values[i], target.params,
									 &key_type);
	}
	return add_to_target(&target, key_type, hashes, keys.nkeys);
}
