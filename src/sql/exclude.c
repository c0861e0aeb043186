/*-------------------------------------------------------------------------
 *
 * exclude.c
 *	  Functions that record exclusions: keys that the filter reports as
 *	  members although they were never added.
 *
 * A key that the filter does not contain needs no exclusion.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "miscadmin.h"

#include "pg/key_array.h"

PG_FUNCTION_INFO_V1(bloom_exclude);
PG_FUNCTION_INFO_V1(bloom_exclude_all);

Datum
bloom_exclude(PG_FUNCTION_ARGS)
{
	Bloom	   *filter;
	BfView		view;
	uint64		hash;
	BfBuilder	builder;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	filter = (Bloom *) PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&view.params, NULL);
	if (!bf_contains(&view, hash))
		PG_RETURN_BLOOM_P(filter);

	pgbloom_load(&builder, CurrentMemoryContext, &view);
	pgbloom_check(bf_builder_exclude(&builder, hash), &builder.params, NULL);
	PG_RETURN_BLOOM_P(pgbloom_finish(&builder));
}

/*
 * Record exclusions for all keys of an array with one copy of the filter.  If
 * one of them cannot be recorded, none is.
 */
Datum
bloom_exclude_all(PG_FUNCTION_ARGS)
{
	Bloom	   *filter;
	PgBloomKeyInfo *key_info;
	PgBloomKeyArray keys;
	BfBuilder	builder;
	BfView		view;
	uint64	   *hashes;
	int			nhashes = 0;
	int			i;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	filter = (Bloom *) PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
	key_info = pgbloom_element_info(fcinfo, 1);
	pgbloom_open(filter, &view);
	pgbloom_get_key_array(fcinfo, 1, &keys);
	hashes = palloc(keys.nkeys * sizeof(uint64));
	for (i = 0; i < keys.nkeys; i++)
	{
		uint64		hash = pgbloom_key_hash(key_info, keys.values[i],
											&view.params, NULL);

		CHECK_FOR_INTERRUPTS();
		if (bf_contains(&view, hash))
			hashes[nhashes++] = hash;
	}
	if (nhashes == 0)
		PG_RETURN_BLOOM_P(filter);

	pgbloom_load(&builder, CurrentMemoryContext, &view);
	for (i = 0; i < nhashes; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pgbloom_check(bf_builder_exclude(&builder, hashes[i]),
					  &builder.params, NULL);
	}
	PG_RETURN_BLOOM_P(pgbloom_finish(&builder));
}
