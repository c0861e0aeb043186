/*-------------------------------------------------------------------------
 *
 * add.c
 *	  An empty filter, and functions that add keys.
 *
 * A NULL key leaves the filter as it is, and a NULL filter counts as an empty
 * one.  A filter in a PL/pgSQL variable is changed in place (filter/expanded.c);
 * any other is copied, once a call.
 *
 *-------------------------------------------------------------------------
 */
#include "filter/filter.h"

#include "miscadmin.h"

#include "key/key_array.h"

PG_FUNCTION_INFO_V1(bloom_empty);
PG_FUNCTION_INFO_V1(bloom_add);
PG_FUNCTION_INFO_V1(bloom_try_add);
PG_FUNCTION_INFO_V1(bloom_add_hash);
PG_FUNCTION_INFO_V1(bloom_add_all);

/*
 * bloom_empty(fpp, expected, seed, key_type)
 */
Datum
bloom_empty(PG_FUNCTION_ARGS)
{
	BfParams	params;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						PG_ARGISNULL(0) ? "false-positive rate" : "seed")));
	pgbloom_init_params(&params, PG_GETARG_FLOAT8(0), !PG_ARGISNULL(1),
						PG_ARGISNULL(1) ? 0 : PG_GETARG_FLOAT8(1),
						PG_GETARG_INT64(2));
	if (!PG_ARGISNULL(3))
		pgbloom_key_type_of(PG_GETARG_OID(3), &params.key_type);
	PG_RETURN_BLOOM_P(pgbloom_empty(&params));
}

/*
 * Add the hash of a key of this type.  Returns the filter itself if it
 * contains the hash already.
 */
static Bloom *
add_hash(Bloom *filter, const BfView *view, const BfKeyType *key_type,
		 uint64 hash)
{
	BfBuilder	builder;

	if (bf_key_type_equal(&view->params.key_type, key_type) &&
		bf_contains(view, hash))
		return filter;

	pgbloom_load(&builder, CurrentMemoryContext, view);
	bf_builder_set_key_type(&builder, key_type);
	pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	return pgbloom_finish(&builder);
}

Datum
bloom_add(PG_FUNCTION_ARGS)
{
	Datum		base;
	Bloom	   *filter;
	BfView		view;
	BfKeyType	key_type;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	base = pgbloom_base_filter(fcinfo);
	if (pgbloom_in_place(fcinfo, base))
	{
		Datum		writable = pgbloom_writable(base);

		hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1),
								PG_GETARG_DATUM(1),
								&pgbloom_expanded(writable)->params,
								&key_type);
		return pgbloom_add_hashes(writable, &key_type, &hash, 1);
	}

	filter = (Bloom *) PG_DETOAST_DATUM_PACKED(base);
	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&view.params, &key_type);
	PG_RETURN_BLOOM_P(add_hash(filter, &view, &key_type, hash));
}

/*
 * bloom_add that also returns whether the key was new, which is NULL for a
 * NULL key.
 */
Datum
bloom_try_add(PG_FUNCTION_ARGS)
{
	Bloom	   *filter;
	BfView		view;
	BfKeyType	key_type;
	PgBloomKeyInfo *key_info;
	uint64		hash;
	uint64		unpadded;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (PG_ARGISNULL(1))
	{
		values[0] = PG_ARGISNULL(0) ? (Datum) 0 :
			PointerGetDatum(PG_GETARG_BLOOM_PP(0));
		values[1] = (Datum) 0;
		nulls[0] = PG_ARGISNULL(0);
		nulls[1] = true;
	}
	else
	{
		filter = (Bloom *)
			PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
		pgbloom_open(filter, &view);
		key_info = pgbloom_key_info(fcinfo, 1);
		hash = pgbloom_key_hash(key_info, PG_GETARG_DATUM(1), &view.params,
								&key_type);
		unpadded = pgbloom_unpadded_hash(key_info, PG_GETARG_DATUM(1),
										 &view.params, hash);
		values[0] = PointerGetDatum(add_hash(filter, &view, &key_type, hash));
		values[1] = BoolGetDatum(!bf_contains(&view, hash) &&
								 !bf_contains(&view, unpadded));
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
	Datum		base;
	uint64		hash;
	Bloom	   *filter;
	BfView		view;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	base = pgbloom_base_filter(fcinfo);
	hash = (uint64) PG_GETARG_INT64(1);
	if (pgbloom_in_place(fcinfo, base))
	{
		Datum		writable = pgbloom_writable(base);

		return pgbloom_add_hashes(writable,
								  &pgbloom_expanded(writable)->params.key_type,
								  &hash, 1);
	}

	filter = (Bloom *) PG_DETOAST_DATUM_PACKED(base);
	pgbloom_open(filter, &view);
	PG_RETURN_BLOOM_P(add_hash(filter, &view, &view.params.key_type, hash));
}

/*
 * Add all keys of an array to a writable filter.  All keys are hashed before
 * the first is added, so that an error does not leave some of them added.
 */
static Datum
add_all_in_place(Datum filter, PgBloomKeyInfo *key_info,
				 const PgBloomKeyArray *keys)
{
	Datum		writable = pgbloom_writable(filter);
	const BfParams *params = &pgbloom_expanded(writable)->params;
	uint64	   *hashes = palloc(keys->nkeys * sizeof(uint64));
	BfKeyType	key_type;
	int			i;

	for (i = 0; i < keys->nkeys; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hashes[i] = pgbloom_key_hash(key_info, keys->values[i], params,
									 &key_type);
	}
	writable = pgbloom_add_hashes(writable, &key_type, hashes, keys->nkeys);
	pfree(hashes);
	return writable;
}

/*
 * Add all keys of an array with one copy of the filter.
 */
Datum
bloom_add_all(PG_FUNCTION_ARGS)
{
	Datum		base;
	PgBloomKeyInfo *key_info;
	PgBloomKeyArray keys;
	BfBuilder	builder;
	BfView		view;
	int			i;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	base = pgbloom_base_filter(fcinfo);
	key_info = pgbloom_element_info(fcinfo, 1);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	if (keys.nkeys == 0)
		PG_RETURN_DATUM(base);
	if (pgbloom_in_place(fcinfo, base))
		return add_all_in_place(base, key_info, &keys);

	pgbloom_open((Bloom *) PG_DETOAST_DATUM_PACKED(base), &view);
	pgbloom_load(&builder, CurrentMemoryContext, &view);
	for (i = 0; i < keys.nkeys; i++)
	{
		BfKeyType	key_type;
		uint64		hash = pgbloom_key_hash(key_info, keys.values[i],
											&builder.params, &key_type);

		CHECK_FOR_INTERRUPTS();
		bf_builder_set_key_type(&builder, &key_type);
		pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	}
	PG_RETURN_BLOOM_P(pgbloom_finish(&builder));
}
