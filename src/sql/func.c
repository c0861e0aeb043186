/*-------------------------------------------------------------------------
 *
 * func.c
 *	  One filter and one key, or the hash of one: to construct, to add, to
 *	  ask.
 *
 *-------------------------------------------------------------------------
 */
#include "pg/pgbloom.h"

#include "access/htup_details.h"
#include "funcapi.h"

PG_FUNCTION_INFO_V1(bloom_empty);
PG_FUNCTION_INFO_V1(bloom_add);
PG_FUNCTION_INFO_V1(bloom_try_add);
PG_FUNCTION_INFO_V1(bloom_add_hash);
PG_FUNCTION_INFO_V1(bloom_exclude);
PG_FUNCTION_INFO_V1(bloom_contains);
PG_FUNCTION_INFO_V1(bloom_contained_by);
PG_FUNCTION_INFO_V1(bloom_contains_hash);
PG_FUNCTION_INFO_V1(bloom_hash);
PG_FUNCTION_INFO_V1(bloom_shard);

Datum
bloom_empty(PG_FUNCTION_ARGS)
{
	BfParams	params;
	BfKeyType		key_type;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s of a Bloom filter must not be null",
						PG_ARGISNULL(0) ? "false-positive rate" : "seed")));
	pgbloom_init_params(&params, PG_GETARG_FLOAT8(0), !PG_ARGISNULL(1),
						PG_ARGISNULL(1) ? 0 : PG_GETARG_FLOAT8(1),
						PG_GETARG_INT64(2));
	bf_builder_init(&builder, &env, &params);
	if (!PG_ARGISNULL(3))
	{
		pgbloom_key_type_of(PG_GETARG_OID(3), &key_type);
		pgbloom_check(bf_builder_set_key_type(&builder, &key_type), &params, NULL);
	}
	PG_RETURN_POINTER(pgbloom_result(&builder, false));
}

/*
 * The filter with a hash of a key of this key type added: itself, if the hash is
 * in it already.
 */
static struct varlena *
add_hash(struct varlena *filter, const BfView *view, const BfKeyType *key_type,
		 uint64 hash)
{
	bool		same_key_type = bf_key_type_equal(&view->params.key_type, key_type);
	struct varlena *result;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	if (same_key_type && bf_contains(view, hash))
		return filter;

	/* With room in the bits, a copy of the value is the result. */
	if (same_key_type && view->nlayers > 0)
	{
		result = palloc(VARHDRSZ + view->size);
		SET_VARSIZE(result, VARHDRSZ + view->size);
		memcpy(VARDATA(result), view->image, view->size);
		if (bf_add_in_place((uint8_t *) VARDATA(result), view,
							hash) == BF_OK)
			return result;
		pfree(result);
	}

	pgbloom_load(&builder, &env, view);
	bf_builder_set_key_type(&builder, key_type);
	pgbloom_check(bf_builder_add(&builder, hash), &builder.params, NULL);
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	return result;
}

Datum
bloom_add(PG_FUNCTION_ARGS)
{
	Datum		base;
	struct varlena *filter;
	BfView		view;
	BfKeyType		key_type;
	uint64		hash;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	base = pgbloom_base_filter(fcinfo);
	if (pgbloom_in_place(fcinfo, base))
	{
		Datum		writable = pgbloom_writable(base);

		hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1),
								PG_GETARG_DATUM(1),
								&pgbloom_expanded(writable)->params, &key_type);
		return pgbloom_add_hashes(writable, &key_type, &hash, 1);
	}

	filter = PG_DETOAST_DATUM_PACKED(base);
	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&view.params, &key_type);
	PG_RETURN_POINTER(add_hash(filter, &view, &key_type, hash));
}

/*
 * bloom_add that also tells whether the key was new.  For a NULL key this is
 * not known.
 */
Datum
bloom_try_add(PG_FUNCTION_ARGS)
{
	struct varlena *filter;
	BfView		view;
	BfKeyType		key_type;
	uint64		hash;
	TupleDesc	descriptor;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);

	if (PG_ARGISNULL(1))
	{
		values[0] = PG_ARGISNULL(0) ? (Datum) 0 :
			PointerGetDatum(PG_GETARG_VARLENA_PP(0));
		values[1] = (Datum) 0;
		nulls[0] = PG_ARGISNULL(0);
		nulls[1] = true;
	}
	else
	{
		filter = PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
		pgbloom_open(filter, &view);
		hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1),
								PG_GETARG_DATUM(1), &view.params, &key_type);
		values[0] = PointerGetDatum(add_hash(filter, &view, &key_type, hash));
		values[1] = BoolGetDatum(!bf_contains(&view, hash));
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}

/* A hash says nothing of its key's type: the filter's key type stays as it is. */
Datum
bloom_add_hash(PG_FUNCTION_ARGS)
{
	Datum		base;
	uint64		hash;
	struct varlena *filter;
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

	filter = PG_DETOAST_DATUM_PACKED(base);
	pgbloom_open(filter, &view);
	PG_RETURN_POINTER(add_hash(filter, &view, &view.params.key_type, hash));
}

/*
 * Record a known false positive.
 */
Datum
bloom_exclude(PG_FUNCTION_ARGS)
{
	struct varlena *filter;
	struct varlena *result;
	BfView		view;
	BfKeyType		key_type;
	uint64		hash;
	BfEnv		env = pgbloom_env(CurrentMemoryContext);
	BfBuilder	builder;

	if (PG_ARGISNULL(1))
		return pgbloom_unchanged(fcinfo);
	filter = PG_DETOAST_DATUM_PACKED(pgbloom_base_filter(fcinfo));
	pgbloom_open(filter, &view);
	hash = pgbloom_key_hash(pgbloom_key_info(fcinfo, 1), PG_GETARG_DATUM(1),
							&view.params, &key_type);
	if (!bf_contains(&view, hash))
		PG_RETURN_POINTER(filter);

	pgbloom_load(&builder, &env, &view);
	pgbloom_check(bf_builder_exclude(&builder, hash), &builder.params, NULL);
	result = pgbloom_result(&builder, false);
	bf_builder_free(&builder);
	PG_RETURN_POINTER(result);
}

static bool
contains(FunctionCallInfo fcinfo, int filter_argno, int key_argno)
{
	PgBloomKeyInfo *type = pgbloom_key_info(fcinfo, key_argno);
	PgBloomProbe filter;
	uint64		hash;
	bool		found;

	pgbloom_probe_open(fcinfo, filter_argno, &filter);
	hash = pgbloom_key_hash(type, PG_GETARG_DATUM(key_argno), filter.params,
							NULL);
	found = pgbloom_probe_contains(&filter, hash);
	pgbloom_probe_close(&filter);
	return found;
}

Datum
bloom_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 0, 1));
}

/* bloom_contains with its arguments exchanged, for the operator <@ */
Datum
bloom_contained_by(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 1, 0));
}

Datum
bloom_contains_hash(PG_FUNCTION_ARGS)
{
	PgBloomProbe filter;
	bool		found;

	pgbloom_probe_open(fcinfo, 0, &filter);
	found = pgbloom_probe_contains(&filter, (uint64) PG_GETARG_INT64(1));
	pgbloom_probe_close(&filter);
	PG_RETURN_BOOL(found);
}

/* The hash of a key, as a filter with this seed would take it. */
static uint64
hash_argument(FunctionCallInfo fcinfo, int64 seed)
{
	BfParams	params;

	/* Hashing looks at nothing else. */
	params.seed = (uint64) seed;
	params.key_type.code = BF_KEY_NONE;
	return pgbloom_key_hash(pgbloom_key_info(fcinfo, 0), PG_GETARG_DATUM(0),
							&params, NULL);
}

Datum
bloom_hash(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) hash_argument(fcinfo, PG_GETARG_INT64(1)));
}

Datum
bloom_shard(PG_FUNCTION_ARGS)
{
	int32		shards = PG_GETARG_INT32(1);

	if (shards < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of shards %d is out of range", shards),
				 errdetail("The number must be at least 1.")));
	PG_RETURN_INT32((int32) bf_shard(hash_argument(fcinfo, 0), shards));
}
