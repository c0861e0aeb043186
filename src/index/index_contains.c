/*-------------------------------------------------------------------------
 *
 * index_contains.c
 *	  Functions that look up keys in an index.
 *
 * An index that may lack rows, because it is still being built, contains every
 * key: "probably" is always right.  So does one that has been replaced since
 * the query was planned.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_proc_d.h"
#include "funcapi.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(bloom_index_contains);
PG_FUNCTION_INFO_V1(bloom_index_contains_each);
PG_FUNCTION_INFO_V1(bloom_index_partitions);

/*
 * The type as which keys without a type are read: without domains, also of
 * elements, whose constraints call functions of the owner.
 */
static Oid
input_type(Relation index)
{
	Oid			type = getBaseType(bfi_key_sql_type(index));
	Oid			element = get_element_type(type);

	if (!OidIsValid(element) || getBaseType(element) == element)
		return type;
	type = get_array_type(getBaseType(element));
	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" cannot look up a key without a type",
						RelationGetRelationName(index)),
				 errhint("Cast the key to %s.",
						 format_type_be(bfi_key_sql_type(index)))));
	return type;
}

/*
 * How to hash the keys of an index, looked up once for all calls from this
 * place.  Keys without a type are read as the type of the indexed column, and
 * have its collation unless they are given one.
 */
static const PgBloomKeyInfo *
key_info_of(FunctionCallInfo fcinfo, const BfiIndex *index,
			PgBloomKeyInfo *given)
{
	PgBloomFnCache *fn_cache = pgbloom_fn_cache(fcinfo);
	PgBloomIndexCache *cache = fn_cache->index_cache;
	Oid			oid = RelationGetRelid(index->relation);

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
									   sizeof(PgBloomIndexCache));
		cache->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt,
											   "Bloom filter index of a query",
											   ALLOCSET_SMALL_SIZES);
		fn_cache->index_cache = cache;
	}
	if (cache->oid != oid)
	{
		cache->oid = InvalidOid;
		given->resolved = NULL;
		MemoryContextReset(cache->context);
		cache->key_info = bfi_key_info(index->relation, cache->context);
		if (given->untyped)
		{
			Oid			type = input_type(index->relation);

			pgbloom_set_input(cache->key_info, type);
			cache->key_info->exact = true;
			given->key_type = cache->key_info->key_type;
			if (given->collation != DEFAULT_COLLATION_OID &&
				type_is_collatable(type))
				given->key_type = pgbloom_make_key_info(type, given->collation,
														cache->context,
														true)->key_type;
		}
		cache->oid = oid;
	}
	if (given->untyped)
		given->resolved = cache->key_info;
	return cache->key_info;
}

/* Raise an error unless the argument has keys of the index's type. */
static void
check_given_type(FunctionCallInfo fcinfo, Relation index,
				 const PgBloomKeyInfo *given, const PgBloomKeyInfo *info,
				 bool is_array)
{
	Oid			type;
	Oid			element;
	char	   *index_type;

	if (bf_key_type_equal(&given->key_type, &info->key_type))
		return;
	type = get_fn_expr_argtype(fcinfo->flinfo, 1);
	element = get_base_element_type(type);
	if (given->untyped ||
		(is_array ? element : type) == bfi_key_sql_type(index))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("index \"%s\" holds keys of another collation than \"%s\"",
						RelationGetRelationName(index),
						get_collation_name(given->collation)),
				 errhint("Apply that of the index to the key, as in $1 COLLATE \"%s\".",
						 get_collation_name(index->rd_indcollation[0]))));
	index_type = format_type_be(bfi_key_sql_type(index));
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("index \"%s\" holds keys of type %s, not of type %s",
					RelationGetRelationName(index), index_type,
					format_type_be(is_array ? element : type)),
			 errdetail("Keys of different types hash differently, so the answer would be wrong."),
			 OidIsValid(element) && !is_array ?
			 errhint("To look up the elements of an array, use bloom_index_contains_each.") :
			 is_array && OidIsValid(get_base_element_type(bfi_key_sql_type(index))) ?
			 errhint("To look up an array as one key, use bloom_index_contains.") :
			 errhint("Cast the key to the type of the index's keys, as in $1::%s%s.",
					 index_type, is_array ? "[]" : "")));
}

/* Look up ascending hashes on the pages and among those that wait. */
void
bfi_find_hashes(const BfiIndex *index, const uint64 *hashes, int n,
				bool *found)
{
	pgstat_count_index_scan(index->relation);
	bfi_probe(index->relation, NULL, &index->meta.current,
			  index->meta.current.nlayers, hashes, n, found);
	bfi_find_pending(RelationGetRelid(index->relation), hashes, n, found);
}

/* A key; or those of an array, and which of them were found. */
typedef struct Search
{
	PgBloomKeyInfo *key_info;
	Datum		key;
	PgBloomKeyArray keys;
	bool	   *results;
} Search;

/* Looks into an index that is open, complete and not partitioned. */
typedef bool (*LookUp) (const BfiIndex *index, const BfParams *params,
						Search *search);

static bool
contains_key(const BfiIndex *index, const BfParams *params, Search *search)
{
	uint64		hash = pgbloom_key_hash(search->key_info, search->key, params,
										NULL);
	bool		found;

	bfi_find_hashes(index, &hash, 1, &found);
	return found;
}

/* Sets results to true for the keys that the index contains. */
static bool
contains_keys(const BfiIndex *index, const BfParams *params, Search *search)
{
	int			n = search->keys.nkeys;
	PgBloomHashedKey *hashed = pgbloom_hash_key_array(search->key_info,
													  &search->keys, params);
	uint64	   *hashes = MemoryContextAllocHuge(CurrentMemoryContext,
												n * sizeof(uint64));
	bool	   *found = palloc(n * sizeof(bool));
	int			i;

	pgbloom_sort_hashed_keys(hashed, n);
	for (i = 0; i < n; i++)
		hashes[i] = hashed[i].hash;
	bfi_find_hashes(index, hashes, n, found);
	for (i = 0; i < n; i++)
		search->results[hashed[i].index] |= found[i];
	pfree(hashed);
	pfree(hashes);
	pfree(found);
	return false;
}

/*
 * Open an index to look up keys of these.  Returns how to hash them, or NULL if
 * the index has been replaced since the query was planned.
 */
static const PgBloomKeyInfo *
open_for_keys(FunctionCallInfo fcinfo, BfiIndex *index, PgBloomKeyInfo *given,
			  bool is_array)
{
	const PgBloomKeyInfo *info;

	bfi_open(index, PG_GETARG_OID(0));
	if (index->relation == NULL)
		return NULL;
	bfi_check_has_all_rows(index->relation);
	info = key_info_of(fcinfo, index, given);
	check_given_type(fcinfo, index->relation, given, info, is_array);
	return info;
}

/*
 * Look into an index that is not partitioned.  Returns true also if it may lack
 * rows.
 */
static bool
look_into_one(const BfiIndex *index, const PgBloomKeyInfo *info,
			  LookUp look_up, Search *search)
{
	BfParams	params;

	if (!index->complete)
		return true;
	bfi_check_key_type(index->relation, &index->meta, info);
	params = bfi_params(&index->meta, info);
	return look_up(index, &params, search);
}

/*
 * Look into the index of a partition.  Returns true also if it may lack rows,
 * or is not there.
 */
static bool
look_into_partition(const BfiPartition *partition, const PgBloomKeyInfo *info,
					LookUp look_up, Search *search)
{
	BfiIndex	index;
	bool		result;

	bfi_open_partition(&index, partition);
	result = look_into_one(&index, info, look_up, search);
	bfi_close(&index);
	return result;
}

/*
 * Look into an index, or into those of partitions until one returns true; says
 * whether the result is worth remembering.
 */
static bool
look_into(FunctionCallInfo fcinfo, LookUp look_up, Search *search,
		  bool *may_remember)
{
	BfiIndex	index;
	const PgBloomKeyInfo *info = open_for_keys(fcinfo, &index,
											   search->key_info,
											   look_up == contains_keys);
	bool		done = false;

	*may_remember = false;
	if (info == NULL)
		return true;
	if (!index.complete || !index.partitioned)
		done = look_into_one(&index, info, look_up, search);
	else
	{
		int			n;
		BfiPartition *partitions = bfi_partitions(index.relation, &n);
		int			i;

		/* What a key without a type is may depend on settings. */
		*may_remember = !search->key_info->untyped ||
			func_volatile(info->input.fn_oid) == PROVOLATILE_IMMUTABLE;
		bfi_check_partitions(index.relation, partitions, n);
		for (i = 0; i < n && !done; i++)
			done = look_into_partition(&partitions[i], info, look_up, search);
		pfree(partitions);
	}
	bfi_close(&index);
	return done;
}

Datum
bloom_index_contains(PG_FUNCTION_ARGS)
{
	BfiLookup	lookup;
	Search		search = {.key_info = pgbloom_key_info(fcinfo, 1)};
	bool		may_remember;

	if (bfi_recall(fcinfo, false, &lookup))
		return lookup.result;
	search.key = lookup.key;
	lookup.result = BoolGetDatum(look_into(fcinfo, contains_key, &search,
										   &may_remember));
	if (may_remember)
		bfi_remember(fcinfo, &lookup);
	return lookup.result;
}

/* bloom_index_contains for each element of an array */
Datum
bloom_index_contains_each(PG_FUNCTION_ARGS)
{
	BfiLookup	lookup;
	Search		search = {.key_info = pgbloom_element_info(fcinfo, 1)};
	bool		may_remember;

	if (bfi_recall(fcinfo, true, &lookup))
		return lookup.result;
	pgbloom_get_key_array(fcinfo, 1, &search.keys);
	search.results = palloc0(search.keys.nkeys * sizeof(bool));
	if (look_into(fcinfo, contains_keys, &search, &may_remember))
		memset(search.results, true, search.keys.nkeys * sizeof(bool));
	lookup.result = PointerGetDatum(pgbloom_make_result_array(&search.keys,
															  search.results));
	if (may_remember)
		bfi_remember(fcinfo, &lookup);
	return lookup.result;
}

/*
 * The tables below that of an index, or this itself, which may have the key:
 * those whose index does not tell that they lack it.  A partition may have no
 * index that tells, as a foreign one has none.
 */
Datum
bloom_index_partitions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Search		search = {.key_info = pgbloom_key_info(fcinfo, 1),
		.key = PG_GETARG_DATUM(1)
	};
	BfiIndex	index;
	const PgBloomKeyInfo *info = open_for_keys(fcinfo, &index,
											   search.key_info, false);
	BfiPartition *partitions;
	int			n;
	int			i;

	if (info == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("index with OID %u does not exist", PG_GETARG_OID(0))));
	bfi_check_privileges(index.relation, true);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	partitions = bfi_partitions(index.relation, &n);
	for (i = 0; i < n; i++)
	{
		Datum		table = ObjectIdGetDatum(partitions[i].table);
		bool		isnull = false;

		if (look_into_partition(&partitions[i], info, contains_key, &search))
			tuplestore_putvalues(result->setResult, result->setDesc, &table,
								 &isnull);
	}
	bfi_close(&index);
	return (Datum) 0;
}
